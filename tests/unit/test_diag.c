/* Messages: what is counted, dropped and kept together, and how they look. */
#include "diag/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

typedef struct Fixture {
    Arena arena;
    Names names;
    Sources sources;
    Diags diags;
    Text text, json;
    RenderStyle style;
    int messages;
} Fixture;

static void collect(void *user, const Diagnostic *diagnostic) {
    Fixture *f = user;
    f->messages++;
    diag_render_text(&f->text, diagnostic, f->style);
    diag_render_json(&f->json, diagnostic);
}

static int set_up(void **state) {
    static Fixture fixture;
    Fixture *f = &fixture;
    *f = (Fixture){0};
    arena_init(&f->arena, allocator_system, NULL);
    names_init(&f->names, &f->arena, NULL);
    sources_init(&f->sources, &f->arena, NULL);
    diags_init(&f->diags, &f->arena, &f->sources);
    f->diags.sink = collect;
    f->diags.user = f;
    f->text.arena = f->json.arena = &f->arena;
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    arena_free(&f->arena);
    return 0;
}

/* The position of `mark` in the file. */
static Loc place(Fixture *f, const char *path, const char *text, const char *mark) {
    SourceFile *file = source_add(&f->sources, name_from(&f->names, path), str_of(text));
    return file->base + (Loc)(strstr(text, mark) - text);
}

static const char *shown(Fixture *f) {
    diags_flush(&f->diags);
    return f->text.at ? f->text.at : "";
}

/* ---- rendering */

static void text_has_place_line_and_caret(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "a.slang", "int x;\nint y = @;\n", "@");
    diag_report(&f->diags, DIAG_expected_token, at, "an expression", "'@'");
    assert_string_equal(shown(f), "a.slang:2:9: error E2001: expected an expression, found '@'\n"
                                  "  int y = @;\n"
                                  "          ^\n");
}

static void caret_follows_tabs(void **state) {
    Fixture *f = *state;
    diag_report(&f->diags, DIAG_unterminated_string, place(f, "t.slang", "\tab\t\"x", "\"x"));
    assert_string_equal(shown(f), "t.slang:1:5: error E1002: this string never ends\n"
                                  "      ab  \"x\n"
                                  "          ^~\n");
}

static void caret_follows_wide_and_combining_characters(void **state) {
    Fixture *f = *state;
    /* two ideographs (two columns each), e with a combining accent (one column) */
    const char *text = "\xe6\xbc\xa2\xe5\xad\x97"
                       "e\xcc\x81@";
    diag_report(&f->diags, DIAG_unterminated_string, place(f, "w.slang", text, "@"));
    assert_string_equal(shown(f), "w.slang:1:5: error E1002: this string never ends\n"
                                  "  \xe6\xbc\xa2\xe5\xad\x97"
                                  "e\xcc\x81@\n"
                                  "       ^\n");
}

static void spans_are_underlined(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "s.slang", "x = f(1.5e-3f) +\n    g(\"a)\");", "+");
    diag_report_span(&f->diags, (Span){at - 11, at, at + 11}, DIAG_unterminated_comment);
    diag_report_span(&f->diags, (Span){at + 6, at + 8, at + 8}, DIAG_unterminated_string);
    assert_string_equal(shown(f), "s.slang:1:16: error E1001: this comment never ends\n"
                                  "  x = f(1.5e-3f) +\n"
                                  "      ~~~~~~~~~~~^\n"
                                  "s.slang:2:7: error E1002: this string never ends\n"
                                  "      g(\"a)\");\n"
                                  "      ~~^~~~\n");
    assert_non_null(strstr(f->json.at, "{\"line\":1,\"column\":5,\"endLine\":2,\"endColumn\":"));
}

static void bytes_that_are_no_text_are_replaced(void **state) {
    Fixture *f = *state;
    diag_report(&f->diags, DIAG_unterminated_string, place(f, "b.slang", "\xff\x1b[2J\xc3@", "@"));
    assert_string_equal(shown(f), "b.slang:1:7: error E1002: this string never ends\n"
                                  "  \xef\xbf\xbd\xef\xbf\xbd[2J\xef\xbf\xbd@\n"
                                  "        ^\n");
    assert_null(strchr(f->json.at, '\x1b'));
}

static void end_of_file_has_a_caret(void **state) {
    Fixture *f = *state;
    const char *text = "int x\r\n";
    diag_report(&f->diags, DIAG_unterminated_comment, place(f, "e.slang", text, "\r"));
    diag_report(&f->diags, DIAG_unterminated_comment, place(f, "f.slang", text, "\n") + 1);
    assert_string_equal(shown(f), "e.slang:1:6: error E1001: this comment never ends\n"
                                  "  int x\n"
                                  "       ^\n"
                                  "f.slang:2:1: error E1001: this comment never ends\n"
                                  "  \n"
                                  "  ^\n");
}

static void long_lines_are_cut_around_the_caret(void **state) {
    Fixture *f = *state;
    char text[2001];
    memset(text, 'a', 1000);
    memset(text + 1000, 'b', 1000);
    text[2000] = 0;
    diag_report(&f->diags, DIAG_unterminated_string, place(f, "l.slang", text, "b"));
    const char *line = strchr(shown(f), '\n') + 1, *caret = strchr(line, '\n') + 1;
    assert_int_equal(caret - line, 2 + 3 + 160 + 3 + 1);
    assert_memory_equal(line, "  ...aaa", 8);
    assert_int_equal(strchr(line, 'b') - line, strchr(caret, '^') - caret);
}

static void notes_follow_their_message(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "n.slang", "(1 + 2;", ";");
    diag_report(&f->diags, DIAG_expected_token, at, "')'", "';'");
    diag_note(&f->diags, DIAG_error_limit, at - 6, 3); /* any note will do */
    diag_note(&f->diags, DIAG_error_limit, 0, 4);
    assert_string_equal(shown(f), "n.slang:1:7: error E2001: expected ')', found ';'\n"
                                  "  (1 + 2;\n"
                                  "        ^\n"
                                  "n.slang:1:1: note: that is 3 errors; the others are not shown\n"
                                  "  (1 + 2;\n"
                                  "  ^\n"
                                  "note: that is 4 errors; the others are not shown\n");
    assert_int_equal(f->messages, 1);
}

static void colours_only_when_asked(void **state) {
    Fixture *f = *state;
    diag_report(&f->diags, DIAG_unterminated_string, place(f, "c.slang", "\"", "\""));
    assert_null(strchr(shown(f), '\033'));
    f->style.colour = true;
    diag_report(&f->diags, DIAG_unterminated_comment, place(f, "d.slang", "\"", "\""));
    assert_non_null(strstr(shown(f), "\033[1;31merror E1001:\033[0m this comment never ends\n"));
}

static void json_is_one_object_on_one_line(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "j \"1\".slang", "x\n  y", "y");
    diag_report(&f->diags, DIAG_expected_token, at, "'\\'", "\"a\nb\"");
    diag_note(&f->diags, DIAG_error_limit, at, 1);
    diag_note(&f->diags, DIAG_error_limit, 0, 2);
    diags_flush(&f->diags);
    assert_string_equal(
        f->json.at,
        "{\"severity\":\"error\",\"code\":\"E2001\",\"path\":\"j \\\"1\\\".slang\",\"line\":2,\"column\":3,"
        "\"range\":{\"line\":2,\"column\":3,\"endLine\":2,\"endColumn\":4},"
        "\"message\":\"expected '\\\\', found \\\"a\\nb\\\"\",\"notes\":["
        "{\"path\":\"j \\\"1\\\".slang\",\"line\":2,\"column\":3,"
        "\"range\":{\"line\":2,\"column\":3,\"endLine\":2,\"endColumn\":4},"
        "\"message\":\"that is 1 errors; the others are not shown\"},"
        "{\"path\":null,\"line\":null,\"column\":null,\"range\":null,"
        "\"message\":\"that is 2 errors; the others are not shown\"}]}\n");
}

static void lines_are_named_as_line_directives_say(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "g.slang", "a\nb\nc @", "@");
    source_mark_line(&f->sources, at - 4, 100, name_from(&f->names, "other.slang"));
    diag_report(&f->diags, DIAG_unterminated_string, at);
    assert_memory_equal(shown(f), "other.slang:101:3: error", 24);
}

/* ---- what is dropped */

static void one_cause_gives_one_message(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "r.slang", "ab", "a");
    diag_report(&f->diags, DIAG_unterminated_string, at);
    diag_report(&f->diags, DIAG_unterminated_string, at);
    diag_note(&f->diags, DIAG_error_limit, at, 1); /* goes with what was dropped */
    diag_report(&f->diags, DIAG_unterminated_comment, at);
    diag_report(&f->diags, DIAG_unterminated_string, at + 1);
    assert_null(strstr(shown(f), "note"));
    assert_int_equal(f->messages, 3);
    assert_int_equal(f->diags.errors, 3);
}

static void without_a_place_the_words_decide(void **state) {
    Fixture *f = *state;
    diag_report(&f->diags, DIAG_expected_token, 0, "a", "b");
    diag_report(&f->diags, DIAG_expected_token, 0, "a", "c");
    diag_report(&f->diags, DIAG_expected_token, 0, "a", "b");
    assert_string_equal(shown(f), "error E2001: expected a, found b\nerror E2001: expected a, found c\n");
}

static void the_limit_is_said_once_and_last(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "m.slang", "abcdef", "a");
    f->diags.limit = 2;
    for (Loc i = 0; i < 5; i++) {
        diag_report(&f->diags, DIAG_unterminated_string, at + i);
        diag_note(&f->diags, DIAG_error_limit, 0, 99);
    }
    const char *last = strstr(shown(f), "m.slang:1:2:");
    assert_string_equal(last, "m.slang:1:2: error E1002: this string never ends\n"
                              "  abcdef\n"
                              "   ^~~~~\n"
                              "note: that is 99 errors; the others are not shown\n"
                              "note: that is 2 errors; the others are not shown\n");
    assert_int_equal(f->messages, 3);
    assert_int_equal(f->diags.errors, 5);
    assert_non_null(strstr(f->json.at, "{\"severity\":\"note\",\"code\":null,\"path\":null,"));
}

static void exactly_the_limit_says_nothing(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "m.slang", "abcdef", "a");
    f->diags.limit = 2;
    for (Loc i = 0; i < 2; i++) diag_report(&f->diags, DIAG_unterminated_string, at + i);
    assert_null(strstr(shown(f), "note"));
    assert_int_equal(f->messages, 2);
}

static void muted_reports_are_only_counted(void **state) {
    Fixture *f = *state;
    Loc at = place(f, "q.slang", "ab", "a");
    diag_report(&f->diags, DIAG_unterminated_string, at);
    f->diags.muted++;
    diag_report(&f->diags, DIAG_unterminated_string, at + 1);
    diag_note(&f->diags, DIAG_error_limit, at, 7);
    f->diags.muted--;
    assert_int_equal(f->diags.swallowed, 1);
    assert_int_equal(f->diags.errors, 1);
    diag_report(&f->diags, DIAG_unterminated_string, at + 1); /* was not seen before */
    assert_null(strstr(shown(f), "note"));
    assert_int_equal(f->messages, 2);
}

/* ---- the table */

typedef struct Row {
    const char *name;
    Severity severity;
    int code;
    const char *text;
} Row;

static const Row rows[] = {
#define DIAG(name, severity, code, text) {#name, SEVERITY_##severity, code, text},
#include "diag/diag.def"
#undef DIAG
};

static void codes_are_unique_and_in_range(void **state) {
    (void)state;
    for (int i = 0; i < DIAG_COUNT; i++) {
        bool is_note = rows[i].severity == SEVERITY_note;
        if (is_note ? rows[i].code != 0 : rows[i].code < 1000 || rows[i].code > 7999)
            fail_msg("%s: code %d", rows[i].name, rows[i].code);
        for (int j = 0; j < i && !is_note; j++)
            if (rows[i].code == rows[j].code) fail_msg("%s and %s: one code", rows[i].name, rows[j].name);
    }
}

/* A row whose arguments, if any, are strings. */
static DiagId find_row(Severity severity) {
    for (int i = 0; i < DIAG_COUNT; i++)
        if (rows[i].severity == severity && !strstr(rows[i].text, "%d")) return (DiagId)i;
    fail_msg("diag.def has no such row");
    return DIAG_COUNT;
}

static void report_warning(Fixture *f, DiagId warning, Loc at) {
    diag_report(&f->diags, warning, at, "a", "b", "c", "d");
}

static void warnings_can_be_silenced_or_promoted(void **state) {
    Fixture *f = *state;
    DiagId warning = find_row(SEVERITY_warning);
    Loc at = place(f, "v.slang", "abc", "a");
    report_warning(f, warning, at);
    assert_non_null(strstr(shown(f), "v.slang:1:1: warning W"));
    assert_int_equal(f->diags.warnings, 1);
    f->diags.no_warnings = true;
    report_warning(f, warning, at + 1);
    assert_null(strstr(shown(f), "v.slang:1:2:"));
    f->diags.no_warnings = false;
    f->diags.warnings_as_errors = true;
    report_warning(f, warning, at + 2);
    assert_non_null(strstr(shown(f), "v.slang:1:3: error E"));
    assert_int_equal(f->diags.errors, 1);
}

/* ---- did you mean */

static const char *nearest(Fixture *f, const char *name, const char *first, const char *second) {
    Name candidates[] = {name_from(&f->names, first), name_from(&f->names, second)};
    Name found = diag_nearest(name_from(&f->names, name), candidates, 2);
    return found ? found->text : "(none)";
}

static void the_nearest_name_is_found(void **state) {
    Fixture *f = *state;
    assert_string_equal(nearest(f, "normalise", "normal", "normalize"), "normalize");
    assert_string_equal(nearest(f, "lenght", "light", "length"), "length");
    assert_string_equal(nearest(f, "X", "y", "x"), "x");
    assert_string_equal(nearest(f, "foo", "Foo", "fop"), "Foo");
    assert_string_equal(nearest(f, "color", "colour", "colors"), "colour");
    assert_string_equal(nearest(f, "outputBufer", "inputBuffer", "outputBuffer"), "outputBuffer");
}

static void far_names_are_not_suggested(void **state) {
    Fixture *f = *state;
    assert_string_equal(nearest(f, "x", "y", "zz"), "(none)");
    assert_string_equal(nearest(f, "shade", "blend", "light"), "(none)");
    assert_string_equal(nearest(f, "same", "same", "different"), "(none)");
    char longer[301];
    memset(longer, 'a', 300);
    longer[300] = 0;
    assert_string_equal(nearest(f, longer, longer + 1, longer + 2), "(none)");
    assert_string_equal(nearest(f, "abc", longer, ""), "(none)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(text_has_place_line_and_caret),
        TEST(caret_follows_tabs),
        TEST(caret_follows_wide_and_combining_characters),
        TEST(spans_are_underlined),
        TEST(bytes_that_are_no_text_are_replaced),
        TEST(end_of_file_has_a_caret),
        TEST(long_lines_are_cut_around_the_caret),
        TEST(notes_follow_their_message),
        TEST(colours_only_when_asked),
        TEST(json_is_one_object_on_one_line),
        TEST(lines_are_named_as_line_directives_say),
        TEST(one_cause_gives_one_message),
        TEST(without_a_place_the_words_decide),
        TEST(the_limit_is_said_once_and_last),
        TEST(exactly_the_limit_says_nothing),
        TEST(muted_reports_are_only_counted),
        TEST(codes_are_unique_and_in_range),
        TEST(warnings_can_be_silenced_or_promoted),
        TEST(the_nearest_name_is_found),
        TEST(far_names_are_not_suggested),
    };
    return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
