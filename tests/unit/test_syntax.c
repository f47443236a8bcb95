/* Syntax, where files beside their expected trees do not reach: tokens, positions, bodies parsed later, what
 * the caller hands in and gets back. */
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct Fixture {
    Arena arena;
    Names names;
    Sources sources;
    Diags diags;
    Syntax syntax;
    Text messages;
    const char *include_text; /* what #include finds; NULL: nothing */
    Str include_path;
    Name include_from;
} Fixture;

static void collect(void *user, const Diagnostic *diagnostic) {
    Fixture *f = user;
    text_printf(&f->messages, "%d:%d %d;", diagnostic->at.line, diagnostic->at.column, diagnostic->code);
}

static bool read_include(void *user, Str path, Name from, Str *text, Name *found) {
    Fixture *f = user;
    f->include_path = path;
    f->include_from = from;
    if (!f->include_text) return false;
    *text = str_of(f->include_text);
    *found = name_from(&f->names, "found.h");
    return true;
}

static int set_up(void **state) {
    static Fixture fixture;
    Fixture *f = &fixture;
    *f = (Fixture){0};
    arena_init(&f->arena, allocator_system, NULL);
    names_init(&f->names, &f->arena, NULL);
    syntax_init_names(&f->names);
    sources_init(&f->sources, &f->arena, NULL);
    diags_init(&f->diags, &f->arena, &f->sources);
    f->diags.sink = collect;
    f->diags.user = f;
    f->messages.arena = &f->arena;
    f->syntax = (Syntax){.arena = &f->arena,
                         .names = &f->names,
                         .sources = &f->sources,
                         .diags = &f->diags,
                         .read = read_include,
                         .user = f};
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    Fixture *f = *state;
    arena_free(&f->arena);
    return 0;
}

static SourceFile *add(Fixture *f, const char *text) {
    return source_add(&f->sources, name_from(&f->names, "test.slang"), str_of(text));
}

static const char *messages(Fixture *f) {
    diags_flush(&f->diags);
    return f->messages.at ? f->messages.at : "";
}

static const char *tree(Fixture *f, const Decl *module) {
    Text text = {.arena = &f->arena};
    syntax_print(&text, &f->sources, module);
    return text.at;
}

static const char *parsed(Fixture *f, const char *text) {
    return tree(f, syntax_parse(&f->syntax, add(f, text)));
}

/* "line:column" */
static const char *place(Fixture *f, Loc loc) {
    Position at = source_position(&f->sources, loc);
    return format_text(&f->arena, "%d:%d", at.line, at.column);
}

static TokenVec preprocessed(Fixture *f, const char *text) {
    TokenVec tokens = {0};
    syntax_preprocess(&f->syntax, add(f, text), &tokens);
    return tokens;
}

static Name name(Fixture *f, const char *text) { return name_from(&f->names, text); }

/* ---- tokens */

static void test_tokens(void **state) {
    Fixture *f = *state;
    TokenVec tokens = {0};
    syntax_lex(&f->syntax, add(f, "ab >>= 0x1Fu\n  'x' \"s\" 2.5h // c\n/* c */;"), &tokens);
    static const uint8_t kinds[] = {TOKEN_name,  TOKEN_shift_right_equal, TOKEN_int, TOKEN_char, TOKEN_string,
                                    TOKEN_float, TOKEN_semicolon,         TOKEN_end};
    assert_int_equal(tokens.count, 8);
    for (int i = 0; i < 8; i++) assert_int_equal(tokens.at[i].kind, kinds[i]);
    assert_ptr_equal(tokens.at[0].name, name(f, "ab"));
    assert_int_equal(tokens.at[1].len, 3);
    assert_int_equal(tokens.at[2].number, 31);
    assert_int_equal(tokens.at[2].suffix, SUFFIX_u);
    assert_int_equal(tokens.at[2].flags, TOKEN_HEX);
    assert_int_equal(tokens.at[3].number, 'x');
    assert_true(str_eq(tokens.at[4].text, STR("s")));
    assert_true(tokens.at[5].real == 2.5);
    assert_int_equal(tokens.at[5].suffix, SUFFIX_h);
    assert_string_equal(messages(f), "");
}

static void test_token_places(void **state) {
    Fixture *f = *state;
    TokenVec tokens = {0};
    syntax_lex(&f->syntax, add(f, "a b\n\tc(\\\nd)"), &tokens);
    static const char *const places[] = {"1:1", "1:3", "2:2", "2:3", "3:1", "3:2", "3:3"};
    static const bool starts[] = {true, false, true, false, false, false, false};
    static const bool spaces[] = {false, true, true, false, true, false, false};
    assert_int_equal(tokens.count, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(place(f, tokens.at[i].loc), places[i]);
        assert_int_equal(tokens.at[i].line_start, starts[i]);
        assert_int_equal(tokens.at[i].space_before, spaces[i]);
    }
}

static void test_every_punctuation(void **state) {
    Fixture *f = *state;
    Text text = {.arena = &f->arena};
    static const char *const all[] = {
#define PUNCTUATION(name, spelling) spelling,
#include "syntax/operators.def"
    };
    int count = (int)(sizeof all / sizeof *all);
    for (int i = 0; i < count; i++) text_printf(&text, "%s ", all[i]);
    TokenVec tokens = {0};
    syntax_lex(&f->syntax, add(f, text.at), &tokens);
    assert_int_equal(tokens.count, count + 1);
    for (int i = 0; i < count; i++) assert_int_equal(tokens.at[i].kind, TOKEN_error + 1 + i);
}

static void test_bad_literal_is_marked(void **state) {
    Fixture *f = *state;
    TokenVec tokens = {0};
    syntax_lex(&f->syntax, add(f, "1f 2 'ab"), &tokens);
    assert_true(tokens.at[0].flags & TOKEN_BAD);
    assert_false(tokens.at[1].flags & TOKEN_BAD);
    assert_true(tokens.at[2].flags & TOKEN_BAD);
    assert_string_equal(messages(f), "1:2 1014;1:6 1003;");
}

static void test_empty_files(void **state) {
    Fixture *f = *state;
    assert_string_equal(parsed(f, ""), "module\n");
    assert_string_equal(parsed(f, "\n\n  "), "module\n");
    assert_string_equal(parsed(f, "\xef\xbb\xbf"), "module\n");
    assert_string_equal(parsed(f, "// only a comment"), "module\n");
    assert_string_equal(messages(f), "");
}

/* ---- preprocessor */

static void test_macro_tokens_are_where_used(void **state) {
    Fixture *f = *state;
    TokenVec tokens = preprocessed(f, "#define A(x) (1 + x)\nint\ny = A(\n z);");
    static const char *const places[] = {"2:1", "3:1", "3:3", "3:5", "3:5", "3:5", "4:2", "3:5", "4:4"};
    static const bool starts[] = {true, true, false, false, false, false, false, false, false};
    assert_int_equal(tokens.count, 10);
    for (int i = 0; i < 9; i++) {
        assert_string_equal(place(f, tokens.at[i].loc), places[i]);
        assert_int_equal(tokens.at[i].line_start, starts[i]);
    }
}

static void test_defines(void **state) {
    Fixture *f = *state;
    const Define defines[] = {{STR("N"), STR("5")}, {STR("E"), STR("")}, {STR("F(x)"), STR("x + x")}};
    f->syntax.defines = defines;
    f->syntax.ndefines = 3;
    assert_string_equal(parsed(f, "int a = N E; int b = F(1);"), "module\n  var global a : int = 5\n"
                                                                 "  var global b : int = (+ 1 1)\n");
}

static void test_macros_end_with_their_file(void **state) {
    Fixture *f = *state;
    parsed(f, "#define A 1\n");
    assert_string_equal(parsed(f, "int A;\n#ifdef A\nint no;\n#endif"), "module\n  var global A : int\n");
}

static void test_include(void **state) {
    Fixture *f = *state;
    f->include_text = "#pragma once\nint inner;\n#define A 3\n";
    const char *text = parsed(f, "#include \"dir/a b.h\"\n#include <other.h>\nint outer = A;");
    assert_string_equal(text, "module\n  var global inner : int\n  var global outer : int = 3\n");
    assert_true(str_eq(f->include_path, STR("other.h")));
    assert_ptr_equal(f->include_from, name(f, "test.slang"));
}

static void test_include_not_found(void **state) {
    Fixture *f = *state;
    parsed(f, "int a;\n#include \"x.h\"\n");
    assert_string_equal(messages(f), "2:2 1059;");
    f->syntax.read = NULL;
    parsed(f, "int a;\n\n#include \"x.h\"\n");
    assert_string_equal(messages(f), "2:2 1059;3:2 1059;");
}

/* d3 includes d2 twice, and so on down to d0. */
static bool read_doubling(void *user, Str path, Name from, Str *text, Name *found) {
    Fixture *f = user;
    (void)from;
    int level = (path.at[1] - '0') * 10 + path.at[2] - '0';
    const char *once = format_text(&f->arena, "#include \"d%02d\"\n", level - 1);
    *text = str_of(level ? format_text(&f->arena, "%s%s", once, once) : "int x;\n");
    *found = name_from(&f->names, format_text(&f->arena, "%.*s", STR_ARG(path)));
    return true;
}

static void test_include_limit(void **state) {
    Fixture *f = *state;
    f->syntax.read = read_doubling;
    Decl *module = syntax_parse(&f->syntax, add(f, "#include \"d10\"\n"));
    assert_int_equal(module->members.count, 1024);
    assert_string_equal(messages(f), "");
    module = syntax_parse(&f->syntax, add(f, "#include \"d40\"\nint y = ;"));
    assert_int_equal(module->members.count, 0);
    assert_non_null(strstr(messages(f), " 1061;"));
    assert_int_equal(f->diags.errors, 1);
}

static void test_language(void **state) {
    Fixture *f = *state;
    assert_int_equal(syntax_parse(&f->syntax, add(f, "#language slang 2026\n"))->number, 2026);
    assert_int_equal(syntax_parse(&f->syntax, add(f, "int x;"))->number, 0);
}

/* ---- trees */

static Decl *first(Fixture *f, const char *text) {
    Decl *module = syntax_parse(&f->syntax, add(f, text));
    assert_string_equal(messages(f), "");
    return module->members.at[0];
}

static void test_places_of_nodes(void **state) {
    Fixture *f = *state;
    Decl *func = first(f, "float f(float x)\n{\n  return x.y +\n    g(x)[1];\n}");
    assert_string_equal(place(f, func->loc), "1:7");
    assert_string_equal(place(f, func->end), "5:1");
    assert_string_equal(place(f, func->params.at[0]->loc), "1:15");
    assert_string_equal(place(f, func->body->end), "5:1");
    const Stmt *stmt = func->body->body.at[0];
    assert_string_equal(place(f, stmt->loc), "3:3");
    assert_string_equal(place(f, stmt->expr->loc), "3:14");
    assert_string_equal(place(f, stmt->expr->a->loc), "3:12");
    assert_string_equal(place(f, stmt->expr->b->loc), "4:9");
    assert_string_equal(place(f, stmt->expr->b->a->loc), "4:5");
}

static void test_parents(void **state) {
    Fixture *f = *state;
    Decl *module = syntax_parse(
        &f->syntax, add(f, "struct S<T> { property int p { get { int x; return 1; } } void m<U>(int a); }"));
    Decl *structure = module->members.at[0], *property = structure->members.at[0];
    Decl *getter = property->members.at[0], *method = structure->members.at[1];
    assert_null(module->parent);
    assert_ptr_equal(structure->parent, module);
    assert_ptr_equal(structure->generics->params.at[0]->parent, structure);
    assert_ptr_equal(property->parent, structure);
    assert_ptr_equal(getter->parent, property);
    assert_ptr_equal(getter->body->body.at[0]->decls.at[0]->parent, getter);
    assert_ptr_equal(method->generics->params.at[0]->parent, method);
    assert_ptr_equal(method->params.at[0]->parent, method);
}

/* A type is written once for several names, but no two of them share a node. */
static void test_types_are_not_shared(void **state) {
    Fixture *f = *state;
    Decl *module = syntax_parse(&f->syntax, add(f, "A<int> x, y[2]; void g<T : I & J>();"));
    const Decl *x = module->members.at[0], *y = module->members.at[1], *g = module->members.at[2];
    assert_int_equal(y->type_expr->a->kind, EXPR_apply);
    assert_ptr_not_equal(x->type_expr, y->type_expr->a);
    assert_ptr_not_equal(x->type_expr->args.at[0], y->type_expr->a->args.at[0]);
    assert_int_equal(g->generics->constraints.count, 2);
    assert_ptr_not_equal(g->generics->constraints.at[0].subject, g->generics->constraints.at[1].subject);
}

static void test_module_declarations(void **state) {
    Fixture *f = *state;
    assert_string_equal(
        parsed(f, "module my.module; implementing \"other\"; import a; import a.b.c; import \"dir/x y\";\n"
                  "__exported import d; __include part; __include \"part-two\";"),
        "module\n  module_name my.module\n  implementing \"other\"\n  import a\n  import a.b.c\n"
        "  import \"dir/x y\"\n  import exported d\n  include part\n  include \"part-two\"\n");
    Decl *import = first(f, "import a.b;");
    assert_int_equal(import->npath_parts, 2);
    assert_ptr_equal(import->path_parts[1], name(f, "b"));
    assert_true(str_eq(import->path, STR("a.b")));
    assert_null(first(f, "import \"a\";")->path_parts);
    assert_ptr_equal(first(f, "module \"m\";")->name, name(f, "m"));
}

/* Each `namespace` is a node of its own; to join them is the checker's. */
static void test_namespaces(void **state) {
    Fixture *f = *state;
    assert_string_equal(parsed(f, "namespace A { } namespace A.B { int x; }"),
                        "module\n  namespace A\n  namespace A\n    namespace B\n      var global x : int\n");
}

static void test_struct_in_place(void **state) {
    Fixture *f = *state;
    Decl *module = syntax_parse(&f->syntax, add(f, "struct { int x; } s;"));
    const Decl *variable = module->members.at[1];
    assert_int_equal(variable->type_expr->kind, EXPR_name);
    assert_null(variable->type_expr->name);
    assert_ptr_equal(variable->type_expr->decl, module->members.at[0]);
}

static void test_expressions(void **state) {
    Fixture *f = *state;
    static const char *const cases[][2] = {
        {"bwd_diff(f<float>)", "(bwd_diff (apply f float))"},
        {"f<float>", "(apply f float)"},
        {"Camera.project", "(. Camera project)"},
        {"N::g<int, 3>", "(apply (:: N g) int 3)"},
        {"float[3]", "(index float 3)"},
        {"a < b", "(< a b)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Text text = {.arena = &f->arena};
        Expr *expr = syntax_parse_expr(&f->syntax, add(f, cases[i][0]));
        assert_non_null(expr);
        syntax_print_expr(&text, expr);
        assert_string_equal(text.at, cases[i][1]);
    }
    assert_string_equal(messages(f), "");
}

static void test_bad_expressions(void **state) {
    Fixture *f = *state;
    static const char *const cases[] = {"", "f<", "f)", "f g", "bwd_diff(f", "1f", "#if", "\"a"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int errors = f->diags.errors;
        assert_null(syntax_parse_expr(&f->syntax, add(f, cases[i])));
        assert_true(f->diags.errors > errors);
    }
}

/* ---- bodies parsed later */

static const char two_functions[] = "struct G<T> { T m(T a) { return a < a ? h<int>(a) : a; } }\n"
                                    "float f(float x) { float y = x; { return y; } }\n"
                                    "float g(float x);\n";

static void parse_bodies(Decl *decl) {
    if (decl->kind == DECL_func) syntax_body(decl);
    for (int i = 0; i < decl->members.count; i++) parse_bodies(decl->members.at[i]);
}

/* Each declaration for itself, from tokens that somebody else has read. */
static Decl *parsed_by_piece(Fixture *f, const char *text) {
    struct ParseFile *file = syntax_share(&f->syntax, syntax_open(&f->syntax, add(f, text)));
    Decl *module = decl_new(&f->arena, DECL_module, 1, NULL);
    for (int at = 0; syntax_declaration(file, module, &at);) {}
    diags_flush(&f->diags);
    return module;
}

static void test_lazy_bodies(void **state) {
    Fixture *f = *state;
    const char *eager = parsed(f, two_functions);
    Decl *module = parsed_by_piece(f, two_functions);
    Decl *func = module->members.at[1];
    assert_null(func->body);
    assert_int_equal(func->lazy.count, 12);
    assert_string_equal(place(f, func->end), "2:47");
    assert_string_not_equal(tree(f, module), eager);
    Stmt *body = syntax_body(func);
    assert_non_null(body);
    assert_ptr_equal(syntax_body(func), body);
    assert_null(syntax_body(module->members.at[2]));
    parse_bodies(module);
    assert_string_equal(tree(f, module), eager);
    assert_string_equal(messages(f), "");
}

static void test_errors_of_lazy_bodies(void **state) {
    Fixture *f = *state;
    Decl *module = parsed_by_piece(f, "void f() { int x = ; }\nvoid g( { }\nvoid h() { 1 +; }");
    assert_string_equal(messages(f), "2:9 2001;");
    parse_bodies(module);
    assert_string_equal(messages(f), "2:9 2001;1:20 2001;3:15 2001;");
}

/* A body without its end cannot be skipped: it is parsed, and reported, at once. */
static void test_lazy_body_without_end(void **state) {
    Fixture *f = *state;
    Decl *module = parsed_by_piece(f, "void f() { { int x; }");
    assert_non_null(module->members.at[0]->body);
    assert_string_equal(messages(f), "1:22 2001;");
}

/* ---- limits */

static char *repeated(Fixture *f, const char *before, const char *part, int count, const char *after) {
    Text text = {.arena = &f->arena};
    text_add(&text, str_of(before));
    for (int i = 0; i < count; i++) text_add(&text, str_of(part));
    text_add(&text, str_of(after));
    return text.at;
}

static void test_depth_limit(void **state) {
    Fixture *f = *state;
    f->syntax.max_depth = 20;
    parsed(f, repeated(f, "int x = ", "-", 10, "1;"));
    assert_string_equal(messages(f), "");
    parsed(f, repeated(f, "int x = ", "- ", 30, "1; int y = ;"));
    assert_string_equal(messages(f), "1:49 2003;1:80 2001;");
}

static void test_else_if_chain(void **state) {
    Fixture *f = *state;
    parsed(f, repeated(f, "void f(int x) {\n", "if (x) { } else\n", 100000, "{ } }"));
    parsed(f, repeated(f, "int f(int x) { return ", "x ? 1 :\n", 100000, "0; }"));
    parsed(f, repeated(f, "void f(int x) {\n", "if (x) { } else [branch]\n", 5000, "if (x) { } }"));
    assert_string_equal(messages(f), "");
}

static void test_chain_limit(void **state) {
    Fixture *f = *state;
    parsed(f, repeated(f, "int x = 1", "+1", 3990, ";"));
    assert_string_equal(messages(f), "");
    parsed(f, repeated(f, "int x = 1", "+1", 10000, ";"));
    parsed(f, repeated(f, "int x = a", ".b", 10000, ";"));
    parsed(f, repeated(f, "int x = 1", ",\n1", 10000, ";")); /* a declarator is no comma operator */
    assert_string_equal(messages(f), "1:8008 2004;1:8009 2004;2:1 2001;");
}

/* Many statements are no nesting, however many there are. */
static void test_long_programs(void **state) {
    Fixture *f = *state;
    parsed(f, repeated(f, "void f(int x) {\n", "x += x < 3 ? x : g(x);\n", 20000, "}"));
    parsed(f, repeated(f, "int x[] = {", "1 + 2 * 3,\n", 20000, "};"));
    assert_string_equal(messages(f), "");
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_tokens),
        TEST(test_token_places),
        TEST(test_every_punctuation),
        TEST(test_bad_literal_is_marked),
        TEST(test_empty_files),
        TEST(test_macro_tokens_are_where_used),
        TEST(test_defines),
        TEST(test_macros_end_with_their_file),
        TEST(test_include),
        TEST(test_include_not_found),
        TEST(test_include_limit),
        TEST(test_language),
        TEST(test_places_of_nodes),
        TEST(test_parents),
        TEST(test_types_are_not_shared),
        TEST(test_module_declarations),
        TEST(test_namespaces),
        TEST(test_struct_in_place),
        TEST(test_expressions),
        TEST(test_bad_expressions),
        TEST(test_lazy_bodies),
        TEST(test_errors_of_lazy_bodies),
        TEST(test_lazy_body_without_end),
        TEST(test_depth_limit),
        TEST(test_else_if_chain),
        TEST(test_chain_limit),
        TEST(test_long_programs),
    };
    return cmocka_run_group_tests_name("syntax", tests, NULL, NULL);
}
