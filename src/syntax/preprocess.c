/* The preprocessor: files and directives. Macros are in macro.c and expand.c, the arithmetic of #if in
 * condition.c.
 *
 * It pulls tokens from the lexer of the current file and puts what the parser shall see into one array. A
 * directive is read with the lexer in a mode where the line ends the tokens. A group that is not taken is
 * lexed too, quietly, since only the lexer knows what is a comment. Files included are a recursion of
 * read_file. */
#include "syntax/parser.h"

enum { MAX_INCLUDE_DEPTH = 64, MAX_INCLUDES = 5000, MAX_TOKENS = 1 << 22 };

static void read_file(Preprocessor *pp, SourceFile *file);

void preprocess_stop(Preprocessor *pp) {
    pp->stopped = true;
    pp->lexer->at = pp->lexer->end;
}

static Diags *diags_of(const Preprocessor *pp) { return pp->syntax->diags; }

/* ---- lines of directives */

/* What follows on the line, macros not yet expanded. */
static MacroTokens read_line(Preprocessor *pp) {
    MacroTokens line = {0};
    Token token;
    bool pieces = pp->lexer->pieces;
    pp->lexer->pieces = true;
    for (lex_next(pp->lexer, &token); token.kind != TOKEN_end; lex_next(pp->lexer, &token)) {
        MacroToken item = macro_token(pp, &token);
        if (token.kind != TOKEN_error) vec_push(pp->arena, &line, item);
    }
    pp->lexer->pieces = pieces;
    return line;
}

static void skip_line(Preprocessor *pp) {
    bool quiet = pp->lexer->quiet;
    Token token;
    pp->lexer->quiet = true;
    do lex_next(pp->lexer, &token);
    while (token.kind != TOKEN_end);
    pp->lexer->quiet = quiet;
}

static void expect_line_end(Preprocessor *pp, const char *directive) {
    Token token;
    lex_next(pp->lexer, &token);
    if (token.kind == TOKEN_end || token.kind == TOKEN_error) return;
    diag_report(diags_of(pp), DIAG_extra_tokens, token.loc, directive);
    skip_line(pp);
}

/* The name after #ifdef and the like; NULL, and reported, if there is none. */
static Name read_name(Preprocessor *pp, const char *directive) {
    Token token;
    lex_next(pp->lexer, &token);
    if (token.kind == TOKEN_name) return token.name;
    diag_report(diags_of(pp), DIAG_macro_name_expected, token.loc, directive);
    return NULL;
}

/* ---- conditions */

typedef enum ConditionWord {
    WORD_other,
    WORD_if,
    WORD_elif,
    WORD_elifdef,
    WORD_elifndef,
    WORD_else,
    WORD_endif
} ConditionWord;

static ConditionWord condition_word(const Token *name) {
    static const struct {
        const char *text;
        ConditionWord word;
    } rows[] = {{"if", WORD_if},     {"ifdef", WORD_if},        {"ifndef", WORD_if},
                {"elif", WORD_elif}, {"elifdef", WORD_elifdef}, {"elifndef", WORD_elifndef},
                {"else", WORD_else}, {"endif", WORD_endif}};
    if (name->kind != TOKEN_name) return WORD_other;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(name->name->text, rows[i].text) == 0) return rows[i].word;
    return WORD_other;
}

/* The condition that #elif, #else or #endif at `at` belongs to. */
static Condition *open_condition(Preprocessor *pp, Loc at, const char *directive) {
    if (pp->conditions.count > pp->condition_base) return &vec_last(&pp->conditions);
    diag_report(diags_of(pp), DIAG_condition_not_open, at, directive);
    return NULL;
}

static bool else_is_last(Preprocessor *pp, Condition *condition, Loc at, const char *directive) {
    if (!condition->else_seen) return true;
    diag_report(diags_of(pp), DIAG_after_else, at, directive);
    diag_note(diags_of(pp), DIAG_condition_here, condition->loc);
    return false;
}

static bool line_holds(Preprocessor *pp, Loc at) {
    bool quiet = pp->lexer->quiet;
    pp->lexer->quiet = false;
    MacroTokens line = read_line(pp);
    bool holds = condition_holds(pp, &line, at);
    pp->lexer->quiet = quiet;
    return holds;
}

/* Whether the name on the rest of the line is that of a macro, as `wanted`. */
static bool name_holds(Preprocessor *pp, const char *directive, bool wanted) {
    bool quiet = pp->lexer->quiet;
    pp->lexer->quiet = false;
    Name name = read_name(pp, directive);
    if (name) expect_line_end(pp, directive);
    pp->lexer->quiet = quiet;
    return name && (macro_find(pp, name) != NULL) == wanted;
}

/* #elif and its kin, or #else, of the group being skipped: is it their turn? */
static bool takes_over(Preprocessor *pp, Condition *condition, ConditionWord word, const Token *name) {
    const char *text = name->name->text;
    if (!else_is_last(pp, condition, name->loc, format_text(pp->arena, "#%s", text))) return false;
    if (word == WORD_else) condition->else_seen = true;
    if (condition->taken) return false;
    if (word == WORD_else) condition->taken = true;
    else if (word == WORD_elif) condition->taken = line_holds(pp, name->loc);
    else condition->taken = name_holds(pp, text, word == WORD_elifdef);
    return condition->taken;
}

/* After a directive in a group that is skipped; false once the skipping is over. */
static bool still_skipping(Preprocessor *pp, int *depth) {
    Token name;
    pp->lexer->in_directive = true;
    lex_next(pp->lexer, &name);
    ConditionWord word = condition_word(&name);
    bool skipping = true, outer = *depth == 0;
    if (word == WORD_if) ++*depth;
    else if (word == WORD_endif && !outer) --*depth;
    else if (word == WORD_endif) {
        pp->conditions.count--;
        skipping = false;
    } else if (word != WORD_other && outer)
        skipping = !takes_over(pp, &vec_last(&pp->conditions), word, &name);
    skip_line(pp);
    pp->lexer->in_directive = false;
    return skipping;
}

static void skip_group(Preprocessor *pp) {
    int depth = 0;
    Token token;
    pp->lexer->quiet = true;
    pp->lexer->in_directive = false;
    for (;;) {
        lex_next(pp->lexer, &token);
        if (token.kind == TOKEN_end) break;
        if (token.kind == TOKEN_hash && token.line_start && !still_skipping(pp, &depth)) break;
    }
    pp->lexer->quiet = false;
}

static void enter_condition(Preprocessor *pp, Loc at, bool holds) {
    Condition condition = {.loc = at, .taken = holds};
    vec_push(pp->arena, &pp->conditions, condition);
    skip_line(pp);
    if (!holds) skip_group(pp);
}

static void directive_if(Preprocessor *pp, Loc at) { enter_condition(pp, at, line_holds(pp, at)); }

static void if_defined(Preprocessor *pp, Loc at, const char *directive, bool wanted) {
    enter_condition(pp, at, name_holds(pp, directive, wanted));
}

static void directive_ifdef(Preprocessor *pp, Loc at) { if_defined(pp, at, "ifdef", true); }
static void directive_ifndef(Preprocessor *pp, Loc at) { if_defined(pp, at, "ifndef", false); }

/* In a group that was taken: the rest is skipped. */
static void leave_group(Preprocessor *pp, Loc at, const char *directive) {
    bool is_else = strcmp(directive, "#else") == 0;
    Condition *condition = open_condition(pp, at, directive);
    if (!condition) return;
    else_is_last(pp, condition, at, directive);
    condition->else_seen |= is_else;
    condition->taken = true;
    if (is_else) expect_line_end(pp, "else");
    skip_line(pp);
    skip_group(pp);
}

static void directive_elif(Preprocessor *pp, Loc at) { leave_group(pp, at, "#elif"); }
static void directive_elifdef(Preprocessor *pp, Loc at) { leave_group(pp, at, "#elifdef"); }
static void directive_elifndef(Preprocessor *pp, Loc at) { leave_group(pp, at, "#elifndef"); }
static void directive_else(Preprocessor *pp, Loc at) { leave_group(pp, at, "#else"); }

static void directive_endif(Preprocessor *pp, Loc at) {
    if (open_condition(pp, at, "#endif")) pp->conditions.count--;
    expect_line_end(pp, "endif");
}

/* ---- #define, #undef */

static void directive_define(Preprocessor *pp, Loc at) {
    (void)at;
    macro_define(pp);
}

static void directive_undef(Preprocessor *pp, Loc at) {
    Name name = read_name(pp, "undef");
    if (!name) return;
    const Macro *macro = macro_find(pp, name);
    if (macro && (macro->kind == MACRO_file || macro->kind == MACRO_line))
        diag_report(diags_of(pp), DIAG_macro_fixed, at, name->text);
    else if (macro) macro_undefine(pp, name);
    expect_line_end(pp, "undef");
}

/* ---- #include */

/* Between the delimiters, as written: no escapes. */
static Str read_delimited(Preprocessor *pp, char close) {
    const char *start = pp->lexer->at + 1, *end = start;
    while (*end != close && *end != '\n' && end < pp->lexer->end) end++;
    if (*end != close || end == pp->lexer->end) return (Str){NULL, 0};
    pp->lexer->at = end + 1;
    return (Str){start, (int)(end - start)};
}

/* `#include NAME`, where NAME expands to a string or to <...>. */
static Str path_from_macro(Preprocessor *pp) {
    MacroTokens line = read_line(pp);
    MacroTokens tokens = macro_expand_line(pp, &line);
    if (tokens.count == 1 && tokens.at[0].token.kind == TOKEN_string) return tokens.at[0].token.text;
    if (tokens.count < 3 || tokens.at[0].token.kind != TOKEN_less ||
        vec_last(&tokens).token.kind != TOKEN_greater)
        return (Str){NULL, 0};
    Text path = {.arena = pp->arena};
    for (int i = 1; i < tokens.count - 1; i++) text_add(&path, (Str){tokens.at[i].text, tokens.at[i].len});
    return text_str(&path);
}

static Str read_path(Preprocessor *pp) {
    while (*pp->lexer->at == ' ' || *pp->lexer->at == '\t') pp->lexer->at++;
    char first = *pp->lexer->at;
    if (first == '"') return read_delimited(pp, '"');
    if (first == '<') return read_delimited(pp, '>');
    return path_from_macro(pp);
}

static SourceFile *find_file(Preprocessor *pp, Str path, Loc at) {
    Syntax *syntax = pp->syntax;
    Str text = {0};
    Name found = NULL;
    if (!syntax->read || !syntax->read(syntax->user, path, pp->lexer->file->path, &text, &found)) {
        const char *name = format_text(pp->arena, "%.*s", STR_ARG(path));
        if (!found) diag_report(diags_of(pp), DIAG_include_not_found, at, name);
        else diag_report(diags_of(pp), DIAG_include_unreadable, at, found->text, text.at);
        return NULL;
    }
    SourceFile *file = map_get(&pp->files, PTR_KEY(found));
    if (!file) {
        file = source_add(syntax->sources, found, text);
        map_put(pp->arena, &pp->files, PTR_KEY(found), file);
    }
    return file;
}

static void directive_include(Preprocessor *pp, Loc at) {
    if (pp->in_arguments) {
        diag_report(diags_of(pp), DIAG_include_in_arguments, at);
        return;
    }
    Str path = read_path(pp);
    if (!path.at || path.len == 0) {
        diag_report(diags_of(pp), DIAG_include_path_expected, at);
        return;
    }
    expect_line_end(pp, "include");
    if (pp->include_depth >= MAX_INCLUDE_DEPTH || pp->includes >= MAX_INCLUDES) {
        bool deep = pp->include_depth >= MAX_INCLUDE_DEPTH;
        diag_report(diags_of(pp), deep ? DIAG_include_too_deep : DIAG_too_many_includes, at,
                    deep ? MAX_INCLUDE_DEPTH : MAX_INCLUDES);
        preprocess_stop(pp);
        return;
    }
    SourceFile *file = find_file(pp, path, at);
    if (!file || map_has(&pp->once, PTR_KEY(file->path))) return;
    pp->include_depth++;
    pp->includes++;
    read_file(pp, file);
    pp->include_depth--;
}

/* ---- the rest */

static void show_line(Preprocessor *pp, Loc at, DiagId id) {
    Str text = lex_line(pp->lexer);
    diag_report(diags_of(pp), id, at, format_text(pp->arena, "%.*s", STR_ARG(text)));
}

static void directive_error(Preprocessor *pp, Loc at) { show_line(pp, at, DIAG_user_error); }
static void directive_warning(Preprocessor *pp, Loc at) { show_line(pp, at, DIAG_user_warning); }

/* The same words, whatever blanks are between them; `words` has none. */
static bool is_without_blanks(Str text, const char *words) {
    for (int i = 0; i < text.len; i++)
        if (text.at[i] != ' ' && text.at[i] != '\t' && text.at[i] != *words++) return false;
    return *words == 0;
}

/* `#pragma warning(disable : 30081)` names warnings by the numbers of another compiler, so there is nothing
 * to do, nor to say. */
static void directive_pragma(Preprocessor *pp, Loc at) {
    Str text = lex_line(pp->lexer);
    if (is_without_blanks(text, "pack_matrix(row_major)")) return; /* it is so in any case */
    if (str_eq(text, STR("once")) || str_starts(text, "once "))
        map_put(pp->arena, &pp->once, PTR_KEY(pp->lexer->file->path), pp);
    else if (!str_starts(text, "warning(") && !str_starts(text, "warning "))
        diag_report(diags_of(pp), DIAG_unknown_pragma, at, format_text(pp->arena, "%.*s", STR_ARG(text)));
}

/* #version 460: what follows is GLSL, so that its names are known, as after `import glsl;`. */
static void directive_version(Preprocessor *pp, Loc at) {
    Names *names = pp->syntax->names;
    Token import = {.kind = TOKEN_name, .name = name_from(names, "import"), .loc = at, .line_start = true};
    Token glsl = {.kind = TOKEN_name, .name = name_from(names, "glsl"), .loc = at};
    Token end = {.kind = TOKEN_semicolon, .loc = at};
    vec_push(pp->arena, pp->out, import);
    vec_push(pp->arena, pp->out, glsl);
    vec_push(pp->arena, pp->out, end);
    lex_line(pp->lexer);
}

/* #extension GL_... : enable; of GLSL, in files that are shared with it. */
static void directive_extension(Preprocessor *pp, Loc at) {
    (void)at;
    lex_line(pp->lexer);
}

static void directive_line(Preprocessor *pp, Loc at) {
    MacroTokens line = read_line(pp);
    MacroTokens tokens = macro_expand_line(pp, &line);
    const MacroToken *t = tokens.at;
    bool valid = tokens.count > 0 && t[0].token.kind == TOKEN_int && t[0].token.number < INT32_MAX / 2 &&
                 (tokens.count == 1 || (tokens.count == 2 && t[1].token.kind == TOKEN_string));
    if (!valid) {
        diag_report(diags_of(pp), DIAG_bad_line_directive, at);
        return;
    }
    Name path = tokens.count == 2 ? name_of(pp->syntax->names, t[1].token.text) : NULL;
    if (pp->lexer->at == pp->lexer->end) return;
    source_mark_line(pp->syntax->sources, lex_loc(pp->lexer, pp->lexer->at + 1), (int)t[0].token.number,
                     path);
}

static const struct {
    const char *name;
    int year;
} versions[] = {
    {"2018", 2018}, {"legacy", 2018}, {"default", 2018}, {"2025", 2025},   {"202a", 2025},
    {"2026", 2026}, {"202b", 2026},   {"202c", 2026},    {"latest", 2026}, {"next", 2026},
};

static Str next_word(Str *line) {
    int n = 0;
    while (n < line->len && line->at[n] != ' ' && line->at[n] != '\t') n++;
    Str word = {line->at, n};
    while (n < line->len && (line->at[n] == ' ' || line->at[n] == '\t')) n++;
    *line = (Str){line->at + n, line->len - n};
    return word;
}

static int language_year(Str name) {
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (str_eq(name, str_of(versions[i].name))) return versions[i].year;
    return 0;
}

/* #language slang 2026, #language 2026 */
static void directive_language(Preprocessor *pp, Loc at) {
    Str line = lex_line(pp->lexer);
    for (int i = 0; i + 1 < line.len; i++)
        if (line.at[i] == '/' && (line.at[i + 1] == '/' || line.at[i + 1] == '*')) line.len = i;
    Str word = next_word(&line);
    bool slang = str_eq(word, STR("slang"));
    if (slang) word = next_word(&line);
    if (slang && word.len == 0) return;
    int year = line.len == 0 ? language_year(word) : 0;
    if (year) pp->language = year;
    else diag_report(diags_of(pp), DIAG_bad_language, at);
}

typedef struct Directive {
    const char *name;
    void (*run)(Preprocessor *pp, Loc at);
} Directive;

static const Directive directives[] = {
    {"define", directive_define},     {"include", directive_include},     {"if", directive_if},
    {"ifdef", directive_ifdef},       {"ifndef", directive_ifndef},       {"elif", directive_elif},
    {"else", directive_else},         {"endif", directive_endif},         {"undef", directive_undef},
    {"pragma", directive_pragma},     {"error", directive_error},         {"warning", directive_warning},
    {"line", directive_line},         {"language", directive_language},   {"lang", directive_language},
    {"version", directive_version},   {"extension", directive_extension}, {"elifdef", directive_elifdef},
    {"elifndef", directive_elifndef},
};

static const Directive *find_directive(const Token *name) {
    for (size_t i = 0; name->kind == TOKEN_name && i < sizeof directives / sizeof *directives; i++)
        if (strcmp(name->name->text, directives[i].name) == 0) return &directives[i];
    return NULL;
}

void preprocess_directive(Preprocessor *pp) {
    Lexer *lexer = pp->lexer;
    Token name;
    lexer->in_directive = true;
    lex_next(lexer, &name);
    const Directive *directive = find_directive(&name);
    if (directive) directive->run(pp, name.loc);
    else if (name.kind != TOKEN_end && name.kind != TOKEN_error)
        diag_report(diags_of(pp), DIAG_unknown_directive, name.loc, token_describe(pp->arena, &name));
    lexer->in_directive = true; /* a group that was skipped has reset it, at the end of a line */
    skip_line(pp);
    lexer->in_directive = false;
}

/* ---- files */

static void read_token(Preprocessor *pp, const Token *token) {
    if (token->kind == TOKEN_hash && token->line_start) {
        preprocess_directive(pp);
        return;
    }
    Macro *macro = token->kind == TOKEN_name ? macro_find(pp, token->name) : NULL;
    if (macro) {
        macro_expand_use(pp, token, macro);
        return;
    }
    vec_push(pp->arena, pp->out, *token);
    if (pp->line_start_pending) vec_last(pp->out).line_start = true;
    pp->line_start_pending = false;
}

static void read_tokens(Preprocessor *pp) {
    Token token;
    while (!pp->stopped) {
        if (pp->has_ahead) token = pp->ahead;
        else lex_next(pp->lexer, &token);
        pp->has_ahead = false;
        if (token.kind == TOKEN_end) break;
        read_token(pp, &token);
        if (pp->out->count < MAX_TOKENS) continue;
        diag_report(diags_of(pp), DIAG_too_many_tokens, token.loc);
        preprocess_stop(pp);
    }
}

static void read_file(Preprocessor *pp, SourceFile *file) {
    Lexer lexer, *outer = pp->lexer;
    int base = pp->condition_base;
    lex_open(&lexer, pp->syntax, file);
    pp->lexer = &lexer;
    pp->condition_base = pp->conditions.count;
    read_tokens(pp);
    pp->cut_off |= lexer.cut_off;
    for (int i = pp->condition_base; i < pp->conditions.count && !pp->stopped && !pp->cut_off; i++)
        diag_report(diags_of(pp), DIAG_condition_open, pp->conditions.at[i].loc);
    pp->conditions.count = pp->condition_base;
    pp->condition_base = base;
    pp->lexer = outer;
    pp->has_ahead = false;
    if (outer && pp->stopped) outer->at = outer->end;
}

/* -D options, as the directives that they stand for. */
static void read_defines(Preprocessor *pp) {
    Syntax *syntax = pp->syntax;
    if (syntax->ndefines == 0) return;
    Text text = {.arena = pp->arena};
    for (int i = 0; i < syntax->ndefines; i++)
        text_printf(&text, "#define %.*s %.*s\n", STR_ARG(syntax->defines[i].name),
                    STR_ARG(syntax->defines[i].value));
    read_file(pp, source_add(syntax->sources, name_from(syntax->names, "<command line>"), text_str(&text)));
}

void preprocess_run(Syntax *syntax, SourceFile *file, TokenVec *out, int *language) {
    Preprocessor pp = {.syntax = syntax, .arena = syntax->arena, .out = out};
    if (out->room == 0) { /* more than most files have */
        out->room = file->text.len / 3 + 16;
        out->at = arena_array(pp.arena, Token, out->room);
    }
    macro_add_builtins(&pp);
    read_defines(&pp);
    read_file(&pp, file);
    if (pp.stopped) out->count = 0; /* half a program would only give more messages */
    Token end = {.kind = TOKEN_end, .line_start = true, .loc = file->base + (Loc)file->text.len};
    if (pp.cut_off) end.flags = TOKEN_BAD;
    vec_push(pp.arena, out, end);
    *language = pp.language;
}

void syntax_preprocess(Syntax *syntax, SourceFile *file, TokenVec *out) {
    int language;
    preprocess_run(syntax, file, out, &language);
}
