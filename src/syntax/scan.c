/* Looking ahead. Where the grammar is ambiguous (declaration or expression, generic arguments or comparison,
 * cast or parentheses) the answer is found by walking over tokens, without building anything, and then the
 * parser goes that one way. No walk goes over a bracket token by token: `match` holds the other end.
 *
 * What a name means is known only to the checker, but three things help: names of local variables (the parser
 * keeps track), types that this file declares (collected here, before parsing) and built-in types. */
#include "syntax/parser.h"

/* ---- brackets */

typedef VEC(int) IntVec;

/* Closes the nearest bracket of its kind; what was opened since then stays open. Parentheses do not reach out
 * of braces. */
static void close_bracket(ParseFile *file, IntVec *open, int at) {
    TokenKind kind = (TokenKind)file->tokens[at].kind;
    for (int i = open->count - 1; i >= 0; i--) {
        TokenKind opened = (TokenKind)file->tokens[open->at[i]].kind;
        if (token_closing(opened) == kind) {
            file->match[open->at[i]] = at;
            open->count = i;
            return;
        }
        if (opened == TOKEN_brace_open) return;
    }
}

/* A ; stands inside parentheses only after `for`: others that are open have lost their end. */
static void drop_open(const ParseFile *file, IntVec *open) {
    for (; open->count > 0; open->count--) {
        int at = vec_last(open);
        if (file->tokens[at].kind == TOKEN_brace_open) return;
        if (at > 0 && token_word(&file->tokens[at - 1]) == KEYWORD_for) return;
    }
}

static void match_brackets(ParseFile *file) {
    Arena *arena = file->syntax->arena;
    IntVec open = {0};
    file->match = arena_array(arena, int, file->count);
    for (int i = 0; i < file->count; i++) {
        file->match[i] = -1;
        switch ((TokenKind)file->tokens[i].kind) {
        case TOKEN_paren_open:
        case TOKEN_bracket_open:
        case TOKEN_brace_open: vec_push(arena, &open, i); break;
        case TOKEN_paren_close:
        case TOKEN_bracket_close:
        case TOKEN_brace_close: close_bracket(file, &open, i); break;
        case TOKEN_semicolon: drop_open(file, &open); break;
        default: break;
        }
    }
}

/* ---- types that the file declares */

static void add_type(ParseFile *file, const Token *name) {
    if (token_is_identifier(name))
        map_put(file->syntax->arena, &file->types, PTR_KEY(name->name), (void *)(uintptr_t)name->name);
}

/* The last name before a comma, a bracket or the end: typedef int A, B[3]; */
static void add_typedef(ParseFile *file, int at) {
    int angle = 0;
    for (int i = at + 1; i + 1 < file->count; i++) {
        TokenKind kind = (TokenKind)file->tokens[i].kind, next = (TokenKind)file->tokens[i + 1].kind;
        if (kind == TOKEN_semicolon || kind == TOKEN_brace_close) return;
        if (file->match[i] > i) i = file->match[i];
        else if (kind == TOKEN_less) angle++;
        else if (kind == TOKEN_greater) angle--;
        else if (kind == TOKEN_shift_right) angle -= 2;
        else if (angle == 0 && kind == TOKEN_name &&
                 (next == TOKEN_semicolon || next == TOKEN_comma || next == TOKEN_bracket_open))
            add_type(file, &file->tokens[i]);
    }
}

static bool ends_type(const Token *token) {
    return token_is_identifier(token) || token_word(token) == KEYWORD_this_type ||
           token->kind == TOKEN_greater || token->kind == TOKEN_shift_right || token->kind == TOKEN_star ||
           token->kind == TOKEN_bracket_close;
}

/* Does the < at `at` open the parameters of a generic declaration? */
static bool opens_parameters(const ParseFile *file, int at) {
    const Token *name = &file->tokens[at > 0 ? at - 1 : 0], *before = &file->tokens[at > 1 ? at - 2 : 0];
    switch (token_word(name)) {
    case KEYWORD_generic:
    case KEYWORD_extension:
    case KEYWORD_old_extension:
    case KEYWORD_func_extension:
    case KEYWORD_init:
    case KEYWORD_subscript: return true;
    default: break;
    }
    if (name->kind != TOKEN_name) return token_word(before) == KEYWORD_operator;
    switch (token_word(before)) {
    case KEYWORD_struct:
    case KEYWORD_class:
    case KEYWORD_interface:
    case KEYWORD_alias:
    case KEYWORD_assoc:
    case KEYWORD_func: return true;
    default: return token_is_identifier(name) && ends_type(before);
    }
}

static bool ends_parameter(TokenKind kind) {
    return kind == TOKEN_colon || kind == TOKEN_comma || kind == TOKEN_equal || kind == TOKEN_greater;
}

/* Returns where they end: there are no other declarations among them. */
static int add_parameters(ParseFile *file, int at) {
    int angle = 0, i;
    bool starts = true; /* a parameter */
    for (i = at; i + 1 < file->count; i++) {
        const Token *token = &file->tokens[i];
        TokenKind kind = (TokenKind)token->kind;
        Keyword word = token_word(token);
        if (kind == TOKEN_semicolon || kind == TOKEN_brace_open || kind == TOKEN_brace_close) break;
        if (file->match[i] > i) i = file->match[i];
        else if (kind == TOKEN_less) starts = ++angle == 1;
        else if (kind == TOKEN_greater || kind == TOKEN_shift_right) {
            angle -= kind == TOKEN_greater ? 1 : 2;
            if (angle <= 0) break;
        } else if (kind == TOKEN_comma) starts = angle == 1;
        else if (starts && word != KEYWORD_typename && word != KEYWORD_each) {
            if (ends_parameter((TokenKind)file->tokens[i + 1].kind)) add_type(file, token);
            starts = false;
        }
    }
    return i;
}

void scan_file(ParseFile *file) {
    int parameters_end = 0;
    match_brackets(file);
    for (int i = 0; i + 1 < file->count; i++) {
        const Token *token = &file->tokens[i], *next = token + 1;
        if (token->kind == TOKEN_less && i >= parameters_end && opens_parameters(file, i))
            parameters_end = add_parameters(file, i);
        switch (token_word(token)) {
        case KEYWORD_struct:
        case KEYWORD_class:
        case KEYWORD_enum:
        case KEYWORD_interface:
        case KEYWORD_alias:
        case KEYWORD_assoc: add_type(file, next); break;
        case KEYWORD_typedef: add_typedef(file, i); break;
        default: break;
        }
    }
}

/* ---- types */

static const Token *token_at(const Parser *p, int at) {
    return at < p->end ? &p->file->tokens[at] : &p->stop;
}

static TokenKind kind_at(const Parser *p, int at) { return (TokenKind)token_at(p, at)->kind; }

bool scan_is_type_name(const Parser *p, const Token *token) {
    if (!token_is_identifier(token) || parser_is_local(p, token->name)) return false;
    Keyword word = token_word(token);
    return word == KEYWORD_type || word == KEYWORD_generic_type ||
           map_has(&p->file->types, PTR_KEY(token->name));
}

/* May the token stand in generic arguments, outside of brackets? */
static bool fits_in_arguments(const Token *token) {
    switch ((TokenKind)token->kind) {
    case TOKEN_name:
        switch (token_word(token)) {
        case KEYWORD_no_diff:
        case KEYWORD_const:
        case KEYWORD_this_type:
        case KEYWORD_true:
        case KEYWORD_false: return true;
        default: return token_is_identifier(token);
        }
    case TOKEN_int:
    case TOKEN_float:
    case TOKEN_char:
    case TOKEN_string:
    case TOKEN_dot:
    case TOKEN_scope:
    case TOKEN_comma:
    case TOKEN_arrow:
    case TOKEN_plus:
    case TOKEN_minus:
    case TOKEN_star:
    case TOKEN_slash:
    case TOKEN_percent:
    case TOKEN_amp:
    case TOKEN_pipe:
    case TOKEN_caret:
    case TOKEN_tilde:
    case TOKEN_bang:
    case TOKEN_shift_left:
    case TOKEN_equal_equal:
    case TOKEN_bang_equal: return true;
    default: return false;
    }
}

static void remember_angle(const Parser *p, int at, int end) {
    map_put(p->file->syntax->arena, &p->file->angles, (uint64_t)at, (void *)(intptr_t)end);
}

/* Those that are open need not be looked at again: a < b < c < ... would be read from each on. */
static int give_up_angles(const Parser *p, IntVec *open) {
    for (int i = 1; i < open->count; i++) remember_angle(p, open->at[i], -1);
    return -1;
}

/* At a > or >>, which closes two or none of them; where the outermost ends, 0 while it does not. */
static int close_angles(const Parser *p, IntVec *open, int at) {
    bool two = kind_at(p, at) == TOKEN_shift_right;
    if (two && open->count > 1) remember_angle(p, open->at[--open->count], -1);
    else if (two) return -1;
    if (--open->count == 0) return at + 1;
    remember_angle(p, open->at[open->count], at + 1);
    return 0;
}

/* At the <: where the arguments end that it opens, -1 if they are none. */
static int scan_generic_arguments(const Parser *p, int at) {
    intptr_t known = (intptr_t)map_get(&p->file->angles, (uint64_t)at);
    if (known) return (int)known;
    IntVec open = {0};
    for (int i = at; i < p->end; i++) {
        TokenKind kind = kind_at(p, i);
        if (kind == TOKEN_less) vec_push(p->arena, &open, i);
        else if (kind == TOKEN_greater || kind == TOKEN_shift_right) {
            int end = close_angles(p, &open, i);
            if (end) return end;
        } else if (kind == TOKEN_paren_open || kind == TOKEN_bracket_open) {
            if (p->file->match[i] < 0) return give_up_angles(p, &open);
            i = p->file->match[i];
        } else if (!fits_in_arguments(token_at(p, i))) return give_up_angles(p, &open);
    }
    return -1;
}

static bool is_type_modifier(const Parser *p, int at) {
    switch (token_word(token_at(p, at))) {
    case KEYWORD_no_diff:
    case KEYWORD_const: return true;
    case KEYWORD_row_major:
    case KEYWORD_column_major:
    case KEYWORD_unorm:
    case KEYWORD_snorm:
    case KEYWORD_dyn:
    case KEYWORD_some:
    case KEYWORD_expand:
    case KEYWORD_each: return kind_at(p, at + 1) == TOKEN_name;
    default: return false;
    }
}

/* From `functype` to the type of its result. */
static int skip_function_type(const Parser *p, int at) {
    if (kind_at(p, at + 1) != TOKEN_paren_open || p->file->match[at + 1] < 0) return -1;
    int arrow = p->file->match[at + 1] + 1;
    if (token_word(token_at(p, arrow)) == KEYWORD_throws) arrow = scan_type(p, arrow + 1);
    return arrow >= 0 && kind_at(p, arrow) == TOKEN_arrow ? arrow + 1 : -1;
}

/* Members, arguments, dimensions and stars after the first name of a type. */
static int scan_type_suffix(const Parser *p, int at) {
    for (;;) {
        switch (kind_at(p, at)) {
        case TOKEN_dot:
        case TOKEN_scope:
            if (kind_at(p, at + 1) != TOKEN_name) return -1;
            at += 2;
            break;
        case TOKEN_less:
            at = scan_generic_arguments(p, at);
            if (at < 0) return -1;
            break;
        case TOKEN_bracket_open:
            if (p->file->match[at] < 0) return -1;
            at = p->file->match[at] + 1;
            break;
        case TOKEN_star: at++; break;
        default: return at;
        }
    }
}

/* __first(P), with its parentheses */
static bool is_pack_word(const Parser *p, int at) {
    switch (token_word(token_at(p, at))) {
    case KEYWORD_first:
    case KEYWORD_last:
    case KEYWORD_trim_first:
    case KEYWORD_trim_last:
    case KEYWORD_pack_branch: return kind_at(p, at + 1) == TOKEN_paren_open && p->file->match[at + 1] >= 0;
    default: return false;
    }
}

/* (A, B): what stands in one more pair of parentheses is not looked at. */
static int scan_tuple(const Parser *p, int at) {
    int close = p->file->match[at];
    if (close < 0 || close >= p->end || kind_at(p, at + 1) == TOKEN_paren_close) return -1;
    bool several = false;
    for (int next = at; next != close; several |= kind_at(p, next) == TOKEN_comma) {
        int first = next + 1;
        bool nested = kind_at(p, first) == TOKEN_paren_open && p->file->match[first] >= 0;
        next = nested ? scan_type_suffix(p, p->file->match[first] + 1) : scan_type(p, first);
        if (next < 0 || (next != close && kind_at(p, next) != TOKEN_comma)) return -1;
    }
    return several ? scan_type_suffix(p, close + 1) : -1;
}

int scan_type(const Parser *p, int at) {
    while (is_type_modifier(p, at) || token_word(token_at(p, at)) == KEYWORD_functype) {
        at = is_type_modifier(p, at) ? at + 1 : skip_function_type(p, at);
        if (at < 0) return -1;
    }
    if (kind_at(p, at) == TOKEN_paren_open) return scan_tuple(p, at);
    if (kind_at(p, at) == TOKEN_scope) at++;
    Keyword word = token_word(token_at(p, at));
    bool two_words = word == KEYWORD_unsigned && token_word(token_at(p, at + 1)) == KEYWORD_type;
    if (two_words || word == KEYWORD_struct || word == KEYWORD_class || word == KEYWORD_enum) at++;
    if (is_pack_word(p, at)) return scan_type_suffix(p, p->file->match[at + 1] + 1);
    const Token *name = token_at(p, at);
    if (!token_is_identifier(name) && token_word(name) != KEYWORD_this_type) return -1;
    return scan_type_suffix(p, at + 1);
}

/* ---- the questions */

/* Names with dots between them: `o.D d` declares a d of the associated type D of what is in o. */
static bool is_path(const Parser *p, int at, int end) {
    for (at++; at < end; at += 2)
        if (kind_at(p, at) != TOKEN_dot) return false;
    return true;
}

bool scan_is_tuple_of(const Parser *p, int at) {
    int end = kind_at(p, at) == TOKEN_paren_open ? scan_type(p, at) : -1;
    return end >= 0 && kind_at(p, end) == TOKEN_name;
}

/* & J, and more of them. */
static int scan_types(const Parser *p, int at) {
    while (at >= 0 && kind_at(p, at) == TOKEN_amp) at = scan_type(p, at + 1);
    return at;
}

/* As it is if there is no name behind, as in `int& x)`, which C++ has. */
static int scan_further_types(const Parser *p, int at) {
    int end = scan_types(p, at);
    return end >= 0 && token_is_identifier(token_at(p, end)) ? end : at;
}

bool scan_is_conjunction(const Parser *p) { return scan_further_types(p, p->at) > p->at; }

static bool is_type_for_certain(const Parser *p, int at, int end);

/* `int& r = x;`, which C++ has: nothing can be assigned to `a & b`. */
static bool is_reference(const Parser *p, int end) {
    if (kind_at(p, end) != TOKEN_amp || !token_is_identifier(token_at(p, end + 1))) return false;
    TokenKind after = kind_at(p, end + 2);
    return after == TOKEN_equal || (after == TOKEN_semicolon && is_type_for_certain(p, p->at, end));
}

bool scan_is_declaration(const Parser *p) {
    const Token *first = token_at(p, p->at);
    int end = scan_type(p, p->at);
    if (end >= 0) end = scan_further_types(p, end);
    if (end >= 0 && (is_reference(p, end) || token_word(token_at(p, end)) == KEYWORD_const)) return true;
    if (end < 0 || !token_is_identifier(token_at(p, end))) return false;
    Keyword word = token_word(token_at(p, end));
    bool infix = word == KEYWORD_is || word == KEYWORD_as;
    if (infix && kind_at(p, end + 1) == TOKEN_name) return false;
    bool local = token_is_identifier(first) && parser_is_local(p, first->name);
    return !local || end == p->at + 1 || is_path(p, p->at, end);
}

static bool follows_generic_use(TokenKind kind) {
    switch (kind) {
    case TOKEN_scope:
    case TOKEN_dot:
    case TOKEN_paren_open:
    case TOKEN_paren_close:
    case TOKEN_bracket_open:
    case TOKEN_bracket_close:
    case TOKEN_colon:
    case TOKEN_comma:
    case TOKEN_question:
    case TOKEN_semicolon:
    case TOKEN_equal_equal:
    case TOKEN_bang_equal:
    case TOKEN_brace_close:
    case TOKEN_end: return true;
    default: return false;
    }
}

bool scan_is_generic_use(const Parser *p, const Expr *base) {
    if (base->kind != EXPR_name && base->kind != EXPR_member) return false;
    if (base->kind == EXPR_name && parser_is_local(p, base->name)) return false;
    if (p->angle > 0) return true;
    int end = scan_generic_arguments(p, p->at);
    if (end < 0) return false;
    Token name = {.kind = TOKEN_name, .name = base->name};
    return scan_is_type_name(p, &name) || follows_generic_use(kind_at(p, end));
}

/* Is the type in parentheses from `at` to `end` one for certain, whatever the checker may find? */
static bool is_type_for_certain(const Parser *p, int at, int end) {
    if (!token_is_identifier(token_at(p, at)) || end != scan_type(p, at)) return true;
    while (kind_at(p, at + 1) == TOKEN_dot || kind_at(p, at + 1) == TOKEN_scope) at += 2;
    Keyword word = token_word(token_at(p, at));
    bool spelled = word == KEYWORD_functype || word == KEYWORD_unsigned;
    return spelled || scan_is_type_name(p, token_at(p, at)) || kind_at(p, at + 1) == TOKEN_less ||
           kind_at(p, end - 1) == TOKEN_star;
}

/* The operand of a cast, if the parentheses hold a type: can the token start one, and nothing else? */
static bool starts_operand(const Token *token) {
    switch ((TokenKind)token->kind) {
    case TOKEN_int:
    case TOKEN_float:
    case TOKEN_char:
    case TOKEN_string:
    case TOKEN_bang:
    case TOKEN_tilde: return true;
    case TOKEN_name:
        switch (token_word(token)) {
        case KEYWORD_this:
        case KEYWORD_this_type:
        case KEYWORD_true:
        case KEYWORD_false:
        case KEYWORD_nullptr:
        case KEYWORD_no_diff: return true;
        case KEYWORD_is:
        case KEYWORD_as: return false;
        default: return token_is_identifier(token);
        }
    default: return false;
    }
}

static bool may_start_operand(TokenKind kind) {
    switch (kind) {
    case TOKEN_paren_open:
    case TOKEN_brace_open:
    case TOKEN_minus:
    case TOKEN_plus:
    case TOKEN_star:
    case TOKEN_amp:
    case TOKEN_plus_plus:
    case TOKEN_minus_minus: return true;
    default: return false;
    }
}

bool scan_is_cast(const Parser *p) {
    int close = p->file->match[p->at], first = p->at + 1;
    if (close < 0 || close >= p->end) return false;
    int one = scan_type(p, first);
    if (one < 0 || scan_types(p, one) != close) return false;
    const Token *name = token_at(p, first), *next = token_at(p, close + 1);
    if (name->kind == TOKEN_paren_open || token_word(name) == KEYWORD_no_diff) return false;
    if (token_is_identifier(name) && parser_is_local(p, name->name)) return false;
    if (starts_operand(next) && !next->line_start) return true;
    bool may = starts_operand(next) || may_start_operand((TokenKind)next->kind);
    return may && is_type_for_certain(p, first, one);
}

/* `() {` or `(int x) {`: its arrow is missing. */
static bool lacks_arrow(const Parser *p, int close) {
    if (kind_at(p, close + 1) != TOKEN_brace_open) return false;
    if (close == p->at + 1) return true;
    int end = scan_type(p, p->at + 1);
    return end >= 0 && token_is_identifier(token_at(p, end)) &&
           (end + 1 == close || kind_at(p, end + 1) == TOKEN_comma);
}

bool scan_is_lambda(const Parser *p) {
    int close = p->file->match[p->at];
    return close >= 0 && (kind_at(p, close + 1) == TOKEN_fat_arrow || lacks_arrow(p, close));
}
