/* The parser's own machinery: the current token, what is reported when it is not the one expected, finding
 * one's feet again, nesting, local names; and the entry points of syntax.
 *
 * After an error the parser is in panic: nothing more is reported, and every function returns as soon as it
 * can. Panic ends where the next good place is certain: at a closing bracket whose partner is known, or where
 * the next statement or declaration starts. */
#include "syntax/parser.h"

/* ---- the current token */

static void set_token(Parser *p) { p->token = p->at < p->end ? &p->file->tokens[p->at] : &p->stop; }

static void parser_open(Parser *p, ParseFile *file, int from, int to) {
    *p = (Parser){.file = file, .syntax = file->syntax, .arena = file->syntax->arena, .at = from, .end = to};
    const Token *last = &file->tokens[to < file->count ? to : to - 1];
    p->stop = (Token){.kind = TOKEN_end, .line_start = true, .loc = last->loc};
    if (last->kind == TOKEN_end) p->stop.flags = last->flags;
    set_token(p);
}

void parser_jump(Parser *p, int to) {
    p->at = to;
    set_token(p);
}

void parser_advance(Parser *p) {
    if (p->at < p->end) p->at++;
    set_token(p);
}

const Token *parser_peek(const Parser *p, int ahead) {
    return p->at + ahead < p->end ? &p->file->tokens[p->at + ahead] : &p->stop;
}

const Token *parser_previous(const Parser *p) { return p->at > 0 ? &p->file->tokens[p->at - 1] : p->token; }

/* ---- complaints */

static bool is_reported(const Token *token) { return token->kind == TOKEN_error || token->flags & TOKEN_BAD; }

/* A string or character without end has taken what is missing along with the rest of its line. */
static bool cut_off(const Parser *p) {
    const Token *last = parser_previous(p);
    bool quoted = last->kind == TOKEN_string || last->kind == TOKEN_char;
    return p->token->line_start && quoted && is_reported(last);
}

/* Whether something can be said about the current token. */
static bool is_news(const Parser *p) { return !p->panic && !is_reported(p->token) && !cut_off(p); }

bool parser_complain(Parser *p) {
    bool report = is_news(p);
    p->errors += !p->panic;
    p->panic = true;
    return report;
}

void parser_expected(Parser *p, const char *what) {
    if (!parser_complain(p)) return;
    diag_report(p->syntax->diags, DIAG_expected_token, p->token->loc, what,
                token_describe(p->arena, p->token));
}

bool parser_expect(Parser *p, TokenKind kind) {
    if (parser_take(p, kind)) return true;
    parser_expected(p, format_text(p->arena, "'%s'", token_kind_text(kind)));
    return false;
}

/* A semicolon forgotten at the end of a line is reported there, and all goes on as if it were there. */
static void miss_semicolon(Parser *p, const char *after) {
    const char *what = format_text(p->arena, "';' after %s", after);
    if (!p->token->line_start && !parser_at(p, TOKEN_brace_close)) {
        parser_expected(p, what);
        return;
    }
    const Token *last = parser_previous(p);
    if (cut_off(p)) return;
    if (parser_complain(p)) {
        diag_report(p->syntax->diags, DIAG_expected_token, last->loc + (Loc)last->len, what,
                    token_describe(p->arena, p->token));
        diag_fix_insert(p->syntax->diags, ";");
    }
    p->panic = false;
}

void parser_expect_semicolon(Parser *p, const char *after) {
    if (parser_take(p, TOKEN_semicolon)) p->panic = false;
    else if (!p->panic) miss_semicolon(p, after);
}

Name parser_expect_name(Parser *p, const char *what) {
    if (!token_is_identifier(p->token)) {
        parser_expected(p, what);
        return NULL;
    }
    Name name = p->token->name;
    parser_advance(p);
    return name;
}

Name parser_expect_member_name(Parser *p, const char *what) {
    if (token_is_identifier(p->token) || !parser_at(p, TOKEN_name)) return parser_expect_name(p, what);
    Name name = p->token->name;
    parser_advance(p);
    return name;
}

/* ---- brackets */

int parser_open_bracket(Parser *p, TokenKind kind, const char *what) {
    if (!parser_at(p, kind)) {
        parser_expected(p, what);
        return -1;
    }
    int at = p->at;
    parser_advance(p);
    return at;
}

static int column_of(Parser *p, const Token *token) {
    return source_position(p->syntax->sources, token->loc).column;
}

/* The column in which the line of a token begins. */
static int indentation_of(Parser *p, int at) {
    while (at > 0 && !p->file->tokens[at].line_start) at--;
    return column_of(p, &p->file->tokens[at]);
}

/* The brace that was forgotten lies where a '}' at the start of a line stands farther left than the line of
 * its '{'. */
static int unclosed_brace(Parser *p, int until) {
    VEC(int) open = {0};
    for (int i = 0; i < until; i++) {
        const Token *token = &p->file->tokens[i];
        if (token->kind == TOKEN_brace_open) vec_push(p->arena, &open, i);
        if (token->kind != TOKEN_brace_close || open.count == 0) continue;
        int last = open.at[--open.count];
        if (token->line_start && column_of(p, token) < indentation_of(p, last)) return last;
    }
    return -1;
}

bool parser_note_unclosed(Parser *p) {
    int brace = p->noted_unclosed ? -1 : unclosed_brace(p, p->at);
    if (brace < 0) return false;
    diag_note(p->syntax->diags, DIAG_note_unclosed_brace, p->file->tokens[brace].loc);
    p->noted_unclosed = true;
    return true;
}

void parser_note_outside(Parser *p) {
    int open = 0;
    for (int i = p->at, depth = 1; i > 0 && depth > 0; i--) { /* the block that this is in */
        const Token *token = &p->file->tokens[i - 1];
        depth += (token->kind == TOKEN_brace_close) - (token->kind == TOKEN_brace_open);
        open = i - 1;
    }
    if (p->noted_unclosed || indentation_of(p, p->at) > indentation_of(p, open)) return;
    diag_note(p->syntax->diags, DIAG_note_unclosed_brace, p->file->tokens[open].loc);
    p->noted_unclosed = true;
}

void parser_close_bracket(Parser *p, int open) {
    if (open < 0) return;
    const Token *opened = &p->file->tokens[open];
    TokenKind kind = (TokenKind)opened->kind, closing = token_closing(kind);
    if (!p->panic && parser_take(p, closing)) return;
    bool reported = is_news(p), at_end = p->at >= p->end;
    if (at_end && kind == TOKEN_brace_open && p->noted_unclosed) { /* that was said */
        p->errors += !p->panic;
        p->panic = true;
        return;
    }
    parser_expected(p, format_text(p->arena, "'%s'", token_kind_text(closing)));
    if (reported && at_end && kind == TOKEN_brace_open && parser_note_unclosed(p)) return;
    if (reported) diag_note(p->syntax->diags, DIAG_match_open, opened->loc, token_kind_text(kind));
    int match = p->file->match[open];
    if (match < p->at || match >= p->end) return;
    parser_jump(p, match + 1);
    p->panic = false;
}

/* ---- nesting */

bool parser_enter(Parser *p) {
    int limit = p->syntax->max_depth > 0 ? p->syntax->max_depth : DEFAULT_DEPTH;
    if (++p->depth <= limit) return true;
    bool reported = p->too_deep > 0;
    if (parser_complain(p) && !reported)
        diag_report(p->syntax->diags, DIAG_nested_too_deeply, p->token->loc, limit);
    p->too_deep = limit / 2;
    p->was_too_deep = true;
    return false;
}

void parser_leave(Parser *p) {
    if (--p->depth < p->too_deep) p->too_deep = 0;
}

/* ---- recovery */

static bool starts_declaration(const Token *token) {
    switch (token_word(token)) {
    case KEYWORD_struct:
    case KEYWORD_class:
    case KEYWORD_enum:
    case KEYWORD_interface:
    case KEYWORD_extension:
    case KEYWORD_typedef:
    case KEYWORD_alias:
    case KEYWORD_assoc:
    case KEYWORD_func:
    case KEYWORD_import:
    case KEYWORD_old_import:
    case KEYWORD_include:
    case KEYWORD_namespace:
    case KEYWORD_generic:
    case KEYWORD_init:
    case KEYWORD_subscript:
    case KEYWORD_property:
    case KEYWORD_constraint:
    case KEYWORD_public:
    case KEYWORD_private:
    case KEYWORD_internal:
    case KEYWORD_let:
    case KEYWORD_var:
    case KEYWORD_const:
    case KEYWORD_static: return true;
    default: return token->kind == TOKEN_bracket_open;
    }
}

static bool starts_statement(const Token *token) {
    switch (token_word(token)) {
    case KEYWORD_if:
    case KEYWORD_for:
    case KEYWORD_while:
    case KEYWORD_do:
    case KEYWORD_switch:
    case KEYWORD_case:
    case KEYWORD_default:
    case KEYWORD_return:
    case KEYWORD_break:
    case KEYWORD_continue:
    case KEYWORD_defer:
    case KEYWORD_let:
    case KEYWORD_var:
    case KEYWORD_const:
    case KEYWORD_static: return true;
    default: return false;
    }
}

/* To what looks like a start, or past the end of what was wrong. Braces are jumped over whole, and end it
 * too. */
static void skip(Parser *p, bool (*starts)(const Token *token)) {
    for (int from = p->at; !parser_at(p, TOKEN_end); parser_advance(p)) {
        if (parser_at(p, TOKEN_brace_close)) break;
        if (p->at > from && p->token->line_start && starts(p->token)) break;
        if (parser_at(p, TOKEN_semicolon)) {
            parser_advance(p);
            break;
        }
        int match = p->file->match[p->at];
        if (match < p->at || match >= p->end) continue;
        bool brace = parser_at(p, TOKEN_brace_open);
        parser_jump(p, match);
        if (!brace) continue;
        parser_advance(p);
        parser_take(p, TOKEN_semicolon);
        break;
    }
    p->panic = false;
}

void parser_skip_statement(Parser *p) { skip(p, starts_statement); }
void parser_skip_declaration(Parser *p) { skip(p, starts_declaration); }

/* ---- local names */

int parser_scope(Parser *p) { return p->scope.count; }

static uintptr_t local_count(const Parser *p, Name name) {
    return (uintptr_t)map_get(&p->locals, PTR_KEY(name));
}

void parser_add_local(Parser *p, Name name) {
    if (!name) return;
    vec_push(p->arena, &p->scope, name);
    map_put(p->arena, &p->locals, PTR_KEY(name), (void *)(local_count(p, name) + 1));
}

void parser_end_scope(Parser *p, int mark) {
    while (p->scope.count > mark) {
        Name name = vec_pop(&p->scope);
        map_put(p->arena, &p->locals, PTR_KEY(name), (void *)(local_count(p, name) - 1));
    }
}

bool parser_is_local(const Parser *p, Name name) { return local_count(p, name) > 0; }

/* ---- entry points */

ParseFile *syntax_open(Syntax *syntax, SourceFile *file) {
    ParseFile *parsed = arena_new(syntax->arena, ParseFile);
    TokenVec tokens = {0};
    preprocess_run(syntax, file, &tokens, &parsed->language);
    parsed->syntax = syntax;
    parsed->tokens = tokens.at;
    parsed->count = tokens.count;
    scan_file(parsed);
    return parsed;
}

ParseFile *syntax_share(Syntax *syntax, const ParseFile *file) {
    ParseFile *shared = arena_copy(syntax->arena, file, sizeof *file);
    shared->syntax = syntax;
    return shared;
}

Decl *syntax_declaration(ParseFile *file, Decl *module, int *at) {
    Parser p;
    int before = module->members.count;
    parser_open(&p, file, *at, file->count - 1);
    p.parent = module;
    p.lazy = true;
    while (!parser_at(&p, TOKEN_end) && module->members.count == before)
        parse_declaration(&p, PLACE_global, &module->members);
    *at = p.at;
    return module->members.count > before ? vec_last(&module->members) : NULL;
}

static void parse_stray_brace(Parser *p) {
    if (parser_complain(p)) diag_report(p->syntax->diags, DIAG_stray_brace, p->token->loc);
    p->panic = false;
    parser_advance(p);
}

Decl *syntax_parse(Syntax *syntax, SourceFile *source) {
    ParseFile *file = syntax_open(syntax, source);
    Parser p;
    parser_open(&p, file, 0, file->count - 1);
    Decl *module = decl_new(p.arena, DECL_module, source->base, NULL);
    module->number = file->language;
    module->end = p.stop.loc;
    module->file = file;
    p.parent = module;
    while (!parser_at(&p, TOKEN_end)) {
        if (parser_at(&p, TOKEN_brace_close)) parse_stray_brace(&p);
        else parse_declaration(&p, PLACE_global, &module->members);
    }
    parse_group_size_constant(&p, &module->members);
    diags_flush(syntax->diags);
    return module;
}

Stmt *syntax_body(Decl *func) {
    if (func->body || func->lazy.count == 0) return func->body;
    ParseFile *file = func->file;
    Parser p;
    int from = (int)(func->lazy.first - file->tokens);
    parser_open(&p, file, from, from + func->lazy.count);
    func->lazy.count = 0;
    p.parent = func;
    parse_body(&p, func);
    diags_flush(file->syntax->diags);
    return func->body;
}

Expr *syntax_parse_expr(Syntax *syntax, SourceFile *source) {
    int errors = syntax->diags->errors;
    ParseFile *file = syntax_open(syntax, source);
    Parser p;
    parser_open(&p, file, 0, file->count - 1);
    Expr *expr = parse_type_or_expression(&p);
    if (!p.panic && !parser_at(&p, TOKEN_end)) parser_expected(&p, "the end of the expression");
    diags_flush(syntax->diags);
    return p.errors || syntax->diags->errors > errors ? NULL : expr;
}
