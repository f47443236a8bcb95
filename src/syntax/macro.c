/* Macros: definitions and the table of them. How they are expanded stands in expand.c. */
#include "syntax/parser.h"

/* ---- the table */

static uint64_t *filter_word(const Preprocessor *pp, Name name) {
    return (uint64_t *)(uintptr_t)&pp->filter[name->hash >> 6 & 15];
}

Macro *macro_find(const Preprocessor *pp, Name name) {
    if (!(*filter_word(pp, name) >> (name->hash & 63) & 1)) return NULL;
    return map_get(&pp->macros, PTR_KEY(name));
}

static void add(Preprocessor *pp, Macro *macro) {
    *filter_word(pp, macro->name) |= (uint64_t)1 << (macro->name->hash & 63);
    map_put(pp->arena, &pp->macros, PTR_KEY(macro->name), macro);
}

void macro_undefine(Preprocessor *pp, Name name) { map_put(pp->arena, &pp->macros, PTR_KEY(name), NULL); }

static Macro *add_builtin(Preprocessor *pp, const char *name, MacroKind kind) {
    Macro *macro = arena_new(pp->arena, Macro);
    macro->name = name_from(pp->syntax->names, name);
    macro->kind = (uint8_t)kind;
    add(pp, macro);
    return macro;
}

static void add_number(Preprocessor *pp, const char *name, int value) {
    char *text = format_text(pp->arena, "%d", value);
    MacroToken token = {
        .token = {.kind = TOKEN_int, .number = (uint64_t)value}, .text = text, .len = (int)strlen(text)};
    Macro *macro = add_builtin(pp, name, MACRO_object);
    vec_push(pp->arena, &macro->body, token);
}

void macro_add_builtins(Preprocessor *pp) {
    add_builtin(pp, "__FILE__", MACRO_file);
    add_builtin(pp, "__LINE__", MACRO_line);
    add_number(pp, "__SLANG__", 1);
    add_number(pp, "__SLANG_COMPILER__", 1);
    add_number(pp, "__HLSL__", 0);
    add_number(pp, "__HLSL_VERSION", 2018);
}

/* ---- definitions */

MacroToken macro_token(const Preprocessor *pp, const Token *token) {
    bool is_name = token->kind == TOKEN_name; /* whose letters may lie in two lines */
    const char *text = is_name ? token->name->text : pp->lexer->at - token->len;
    return (MacroToken){.token = *token, .text = text, .len = is_name ? token->name->len : token->len};
}

static bool is_fixed(const Preprocessor *pp, const Token *name) {
    const Macro *old = macro_find(pp, name->name);
    if (old && (old->kind == MACRO_file || old->kind == MACRO_line)) return true;
    return strcmp(name->name->text, "defined") == 0 || strcmp(name->name->text, "__VA_ARGS__") == 0;
}

static bool report_at(Preprocessor *pp, DiagId id, const Token *token, const char *text) {
    diag_report(pp->syntax->diags, id, token->loc, text);
    return false;
}

static int find_param(const Macro *macro, const Token *token) {
    if (token->kind != TOKEN_name) return 0;
    for (int i = 0; i < macro->nparams; i++)
        if (macro->params[i] == token->name) return i + 1;
    return 0;
}

/* A parameter, or the dots of a variadic macro, which are the parameter __VA_ARGS__. */
static bool read_param(Preprocessor *pp, Macro *macro, Token *token, Name *param) {
    if (token->kind == TOKEN_ellipsis) {
        macro->variadic = true;
        *param = name_from(pp->syntax->names, "__VA_ARGS__");
        lex_next(pp->lexer, token);
        return true;
    }
    if (token->kind != TOKEN_name) return report_at(pp, DIAG_macro_param_expected, token, macro->name->text);
    if (find_param(macro, token)) return report_at(pp, DIAG_macro_param_twice, token, token->name->text);
    *param = token->name;
    lex_next(pp->lexer, token);
    if (token->kind == TOKEN_ellipsis) {
        macro->variadic = true;
        lex_next(pp->lexer, token);
    }
    return true;
}

/* After the parenthesis; false if there was something wrong. */
static bool read_params(Preprocessor *pp, Macro *macro) {
    VEC(Name) params = {0};
    Token token;
    lex_next(pp->lexer, &token);
    while (token.kind != TOKEN_paren_close) {
        Name param;
        if (!read_param(pp, macro, &token, &param)) return false;
        vec_push(pp->arena, &params, param);
        macro->params = params.at;
        macro->nparams = params.count;
        if (token.kind == TOKEN_comma && !macro->variadic) lex_next(pp->lexer, &token);
        else if (token.kind != TOKEN_paren_close)
            return report_at(pp, DIAG_macro_params_unclosed, &token, macro->name->text);
    }
    return true;
}

/* A piece of a name or number need not be a number that has a value: x ## 2_end, 0x ## n. */
static void read_body(Preprocessor *pp, Macro *macro) {
    Token token;
    bool pieces = pp->lexer->pieces;
    pp->lexer->pieces = true;
    for (lex_next(pp->lexer, &token); token.kind != TOKEN_end; lex_next(pp->lexer, &token)) {
        if (token.kind == TOKEN_error) continue;
        MacroToken item = macro_token(pp, &token);
        item.token.line_start = false;
        item.param = find_param(macro, &token);
        vec_push(pp->arena, &macro->body, item);
    }
    pp->lexer->pieces = pieces;
    if (macro->body.count) macro->body.at[0].token.space_before = false;
}

/* `#` stands before a parameter, `##` between two tokens. */
static bool body_is_valid(Preprocessor *pp, const Macro *macro) {
    const MacroTokens *body = &macro->body;
    for (int i = 0; i < body->count; i++) {
        const Token *token = &body->at[i].token;
        bool edge = i == 0 || i == body->count - 1;
        if (token->kind == TOKEN_hash_hash && edge) return report_at(pp, DIAG_paste_at_edge, token, NULL);
        if (token->kind != TOKEN_hash || macro->kind != MACRO_function) continue;
        if (i + 1 == body->count || !body->at[i + 1].param)
            return report_at(pp, DIAG_stringize_no_param, token, NULL);
    }
    return true;
}

static bool same_definition(const Macro *a, const Macro *b) {
    if (a->kind != b->kind || a->variadic != b->variadic || a->nparams != b->nparams ||
        a->body.count != b->body.count)
        return false;
    for (int i = 0; i < a->nparams; i++)
        if (a->params[i] != b->params[i]) return false;
    for (int i = 0; i < a->body.count; i++) {
        const MacroToken *x = &a->body.at[i], *y = &b->body.at[i];
        if (x->token.space_before != y->token.space_before || x->len != y->len) return false;
        if (memcmp(x->text, y->text, (size_t)x->len) != 0) return false;
    }
    return true;
}

void macro_define(Preprocessor *pp) {
    Token name, next;
    lex_next(pp->lexer, &name);
    if (name.kind != TOKEN_name) {
        report_at(pp, DIAG_macro_name_expected, &name, "define");
        return;
    }
    if (is_fixed(pp, &name)) {
        report_at(pp, DIAG_macro_fixed, &name, name.name->text);
        return;
    }
    Macro *macro = arena_new(pp->arena, Macro);
    *macro = (Macro){.name = name.name, .loc = name.loc, .kind = MACRO_object};
    if (*pp->lexer->at == '(') {
        macro->kind = MACRO_function;
        lex_next(pp->lexer, &next);
        if (!read_params(pp, macro)) return;
    }
    read_body(pp, macro);
    if (!body_is_valid(pp, macro)) return;
    const Macro *old = macro_find(pp, name.name);
    if (old && !same_definition(old, macro)) {
        report_at(pp, DIAG_macro_redefined, &name, name.name->text);
        if (old->loc) diag_note(pp->syntax->diags, DIAG_earlier_definition, old->loc);
    }
    add(pp, macro);
}
