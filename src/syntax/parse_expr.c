/* Expressions, from commas down to what can follow a primary.
 *
 *   expression  = assignment { "," assignment }
 *   assignment  = condition [ ("=" | "+=" | ...) initializer ]
 *   condition   = operators [ "?" expression ":" condition ]
 *   operators   = unary { operator unary }, by precedence; also `x is T`, `x as T`
 *   unary       = ("-" | "!" | "++" | ... | "no_diff" | "each" | "try" | cast) unary | "expand" assignment | lambda | postfix
 *   postfix     = primary { "." name | "->" name | "::" name | "(" arguments ")" | "[" arguments "]" | generic arguments
 *                           | "++" | "--" | "*" where only a type fits | list }
 *
 * The height of the tree is kept (p->height), since later stages recurse over it: chains of operators are
 * loops here and have no natural limit. */
#include "syntax/parser.h"

Expr *parse_error_expr(Parser *p) {
    p->height = 1;
    return expr_new(p->arena, EXPR_error, p->token->loc);
}

Expr *parse_grown(Parser *p, Expr *expr, int height) {
    expr_ends_at(expr, parser_previous(p)->loc);
    p->height = height + 1;
    if (p->height <= MAX_HEIGHT) return expr;
    if (parser_complain(p)) diag_report(p->syntax->diags, DIAG_expression_too_long, expr->loc, MAX_HEIGHT);
    return parse_error_expr(p);
}

static Expr *parse_unary(Parser *p);

/* ---- unary */

static Expr *prefix(Parser *p, ExprKind kind, Operator op) {
    Expr *expr = expr_new(p->arena, kind, p->token->loc);
    expr->op = (uint8_t)op;
    parser_advance(p);
    expr->a = parse_unary(p);
    return parse_grown(p, expr, p->height);
}

static Expr *cast(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_cast, p->token->loc);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle;
    p->angle = 0;
    expr->b = parse_declared_type(p);
    parser_close_bracket(p, open);
    p->angle = angle;
    expr->a = parser_at(p, TOKEN_brace_open) ? parse_list(p) : parse_unary(p);
    return parse_grown(p, expr, p->height);
}

static Expr *lambda(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_lambda, p->token->loc);
    Decl *func = decl_new(p->arena, DECL_func, p->token->loc, NULL), *parent = p->parent;
    int scope = parser_scope(p), angle = p->angle;
    func->flavour = FUNC_lambda;
    func->parent = parent;
    func->file = p->file;
    expr->decl = func;
    p->parent = func;
    p->angle = 0;
    parse_parameters(p, func, false);
    if (parser_at(p, TOKEN_brace_open) && !p->panic)
        diag_report(p->syntax->diags, DIAG_lambda_arrow, p->token->loc);
    else parser_expect(p, TOKEN_fat_arrow);
    for (int i = 0; i < func->params.count; i++) parser_add_local(p, func->params.at[i]->name);
    p->height = 1;
    if (parser_at(p, TOKEN_brace_open)) func->body = parse_block(p);
    else func->body_expr = parse_assignment(p);
    parser_end_scope(p, scope);
    p->parent = parent;
    p->angle = angle;
    return parse_grown(p, expr, p->height);
}

static Expr *expand(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_expand, p->token->loc);
    parser_advance(p);
    expr->a = parse_assignment(p);
    return parse_grown(p, expr, p->height);
}

static bool starts_pack_operand(const Parser *p) {
    const Token *next = parser_peek(p, 1);
    return (next->kind == TOKEN_name || next->kind == TOKEN_paren_open) &&
           !parser_is_local(p, p->token->name);
}

/* What cannot follow a name begins a pattern as well: expand 2 * each v, expand -each v. */
static bool starts_pattern(const Parser *p) {
    if (starts_pack_operand(p)) return true;
    if (parser_is_local(p, p->token->name)) return false;
    switch ((TokenKind)parser_peek(p, 1)->kind) {
    case TOKEN_int:
    case TOKEN_float:
    case TOKEN_string:
    case TOKEN_bang:
    case TOKEN_tilde: return true;
    case TOKEN_minus: return token_word(parser_peek(p, 2)) == KEYWORD_each;
    default: return false;
    }
}

static Expr *member_or_call(Parser *p, Expr *base);

static Expr *unary_word(Parser *p) {
    switch (token_word(p->token)) {
    case KEYWORD_no_diff: return prefix(p, EXPR_no_diff, OPERATOR_none);
    case KEYWORD_each:
        if (starts_pack_operand(p)) return prefix(p, EXPR_each, OPERATOR_none);
        break;
    case KEYWORD_expand:
        if (starts_pattern(p)) return expand(p);
        break;
    case KEYWORD_try:
        if (starts_pack_operand(p) && token_is_identifier(parser_peek(p, 1)))
            return prefix(p, EXPR_try, OPERATOR_none);
        break;
    default: break;
    }
    return member_or_call(p, parse_primary(p));
}

static Expr *unary(Parser *p) {
    switch ((TokenKind)p->token->kind) {
    case TOKEN_plus:
    case TOKEN_minus:
    case TOKEN_bang:
    case TOKEN_tilde:
    case TOKEN_star:
    case TOKEN_amp:
    case TOKEN_plus_plus:
    case TOKEN_minus_minus: return prefix(p, EXPR_unary, operator_of_token((TokenKind)p->token->kind));
    case TOKEN_paren_open:
        if (scan_is_lambda(p)) return lambda(p);
        if (scan_is_cast(p)) return cast(p);
        return member_or_call(p, parse_primary(p));
    default: return unary_word(p);
    }
}

static Expr *parse_unary(Parser *p) {
    Expr *expr = parser_enter(p) ? unary(p) : parse_error_expr(p);
    parser_leave(p);
    return expr;
}

/* ---- what follows a primary */

/* Up to the closing bracket; an initialiser list may be an argument, a comma may stand after the last. */
static ExprVec arguments(Parser *p, TokenKind close) {
    ExprVec args = {0};
    int angle = p->angle, height = 0;
    p->angle = 0;
    while (!p->panic && !parser_at(p, close)) {
        Expr *arg = parse_initializer(p);
        vec_push(p->arena, &args, arg);
        height = max_int(height, p->height);
        if (!parser_take(p, TOKEN_comma)) break;
    }
    if (!p->panic && !parser_at(p, close) && !parser_at(p, TOKEN_end) && !parser_at(p, TOKEN_semicolon)) {
        bool named = parser_at(p, TOKEN_colon) && token_is_identifier(parser_previous(p));
        parser_expected(p, close == TOKEN_paren_close ? "',' or ')'" : "',' or ']'");
        if (named) diag_note(p->syntax->diags, DIAG_note_positional, 0);
    }
    p->angle = angle;
    p->height = height;
    return args;
}

ExprVec parse_arguments(Parser *p) {
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    ExprVec args = arguments(p, TOKEN_paren_close);
    parser_close_bracket(p, open);
    return args;
}

static Expr *member(Parser *p, Expr *base) {
    TokenKind kind = (TokenKind)p->token->kind;
    int height = p->height;
    parser_advance(p);
    Expr *expr = expr_new(p->arena, EXPR_member, p->token->loc);
    expr->a = base;
    if (kind == TOKEN_arrow) expr->flags = EXPR_ARROW;
    if (kind == TOKEN_scope) expr->flags = EXPR_SCOPE;
    if (parser_take_word(p, KEYWORD_operator)) expr->name = parse_operator_name(p);
    else if (parser_at(p, TOKEN_name)) {
        expr->name = p->token->name;
        parser_advance(p);
    } else
        parser_expected(p, format_text(p->arena, "the name of a member after '%s'", token_kind_text(kind)));
    return expr->name ? parse_grown(p, expr, height) : parse_error_expr(p);
}

static Expr *call(Parser *p, Expr *base) {
    int height = p->height;
    Expr *expr = expr_new(p->arena, EXPR_call, base->loc);
    expr->a = base;
    expr->args = parse_arguments(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *subscript(Parser *p, Expr *base) {
    int height = p->height;
    Expr *expr = expr_new(p->arena, EXPR_index, p->token->loc);
    int open = parser_open_bracket(p, TOKEN_bracket_open, "'['");
    expr->a = base;
    expr->args = arguments(p, TOKEN_bracket_close);
    parser_close_bracket(p, open);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *apply(Parser *p, Expr *base) {
    int height = p->height;
    Expr *expr = expr_new(p->arena, EXPR_apply, base->loc);
    expr->a = base;
    expr->args = parse_generic_arguments(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *postfix(Parser *p, Expr *base) {
    Expr *expr = expr_new(p->arena, EXPR_postfix, p->token->loc);
    expr->a = base;
    expr->op = (uint8_t)operator_of_token((TokenKind)p->token->kind);
    parser_advance(p);
    return parse_grown(p, expr, p->height);
}

/* `int*` where an expression could stand: what follows the stars cannot start an operand. */
static bool star_is_pointer(const Parser *p, const Expr *base) {
    bool named = base->kind == EXPR_name && !parser_is_local(p, base->name);
    if (!named && base->kind != EXPR_member && base->kind != EXPR_apply && base->kind != EXPR_index &&
        base->kind != EXPR_this_type)
        return false;
    int ahead = 1;
    while (ahead < 8 && parser_peek(p, ahead)->kind == TOKEN_star) ahead++;
    switch ((TokenKind)parser_peek(p, ahead)->kind) {
    case TOKEN_paren_close:
    case TOKEN_bracket_close:
    case TOKEN_comma:
    case TOKEN_greater:
    case TOKEN_shift_right: return true;
    default: return false;
    }
}

/* `S{1, 2}`: a list of that type, if S is a type for certain. */
static bool list_follows(const Parser *p, const Expr *base) {
    if (p->token->line_start) return false;
    if (base->kind == EXPR_apply) return true;
    Token name = {.kind = TOKEN_name, .name = base->name};
    return base->kind == EXPR_name && scan_is_type_name(p, &name);
}

static Expr *typed_list(Parser *p, Expr *type) {
    int height = p->height;
    Expr *expr = expr_new(p->arena, EXPR_cast, type->loc);
    diag_portable(p->syntax->diags, type->loc,
                  "a type before a list; write a call, or a variable with the list");
    expr->b = type;
    expr->a = parse_list(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *member_or_call(Parser *p, Expr *base) {
    while (!p->panic) {
        switch ((TokenKind)p->token->kind) {
        case TOKEN_dot:
        case TOKEN_arrow:
        case TOKEN_scope: base = member(p, base); continue;
        case TOKEN_paren_open: base = call(p, base); continue;
        case TOKEN_bracket_open: base = subscript(p, base); continue;
        case TOKEN_plus_plus:
        case TOKEN_minus_minus: base = postfix(p, base); continue;
        case TOKEN_less:
            if (!scan_is_generic_use(p, base)) return base;
            base = apply(p, base);
            continue;
        case TOKEN_brace_open:
            if (!list_follows(p, base)) return base;
            base = typed_list(p, base);
            continue;
        case TOKEN_star:
            if (!star_is_pointer(p, base)) return base;
            base = parse_pointer_suffix(p, base);
            continue;
        default: return base;
        }
    }
    return base;
}

/* ---- binary operators */

static Expr *operators(Parser *p, int lowest);

static int level_of(const Parser *p) {
    TokenKind kind = (TokenKind)p->token->kind;
    if (parser_at_word(p, KEYWORD_is) || parser_at_word(p, KEYWORD_as)) return LEVEL_relation;
    bool closes = kind == TOKEN_greater || kind == TOKEN_greater_equal || kind == TOKEN_shift_right;
    return p->angle > 0 && closes ? LEVEL_none : token_level(kind); /* <...> */
}

/* `left is T`, `left as T` */
static Expr *type_test(Parser *p, Expr *left) {
    int height = p->height;
    ExprKind kind = parser_at_word(p, KEYWORD_is) ? EXPR_is : EXPR_as;
    Expr *expr = expr_new(p->arena, kind, p->token->loc);
    parser_advance(p);
    expr->a = left;
    expr->b = parse_type(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

static Expr *negated(Parser *p, Expr *value) {
    Expr *expr = expr_new(p->arena, EXPR_unary, value->loc);
    expr->op = OPERATOR_not;
    expr->a = value;
    return expr;
}

/* `left ^^ right` of GLSL: one of the two, `!left != !right`. */
static Expr *one_of_two(Parser *p, Expr *left) {
    Expr *expr = expr_new(p->arena, EXPR_binary, p->token->loc);
    int height = p->height, level = token_level(TOKEN_caret_caret);
    expr->op = OPERATOR_not_equal;
    parser_advance(p);
    expr->a = negated(p, left);
    expr->b = negated(p, operators(p, level + 1));
    return parse_grown(p, expr, max_int(height, p->height) + 1);
}

static Expr *operators(Parser *p, int lowest) {
    Expr *left = parse_unary(p);
    while (!p->panic) {
        int level = level_of(p), height = p->height;
        if (level == LEVEL_none || level < lowest) break;
        if (parser_at(p, TOKEN_name)) {
            left = type_test(p, left);
            continue;
        }
        if (parser_at(p, TOKEN_caret_caret)) {
            left = one_of_two(p, left);
            continue;
        }
        Expr *expr = expr_new(p->arena, EXPR_binary, p->token->loc);
        expr->op = (uint8_t)operator_of_token((TokenKind)p->token->kind);
        parser_advance(p);
        expr->a = left;
        expr->b = operators(p, level + 1);
        left = parse_grown(p, expr, max_int(height, p->height));
    }
    return left;
}

Expr *parse_term(Parser *p) { return operators(p, LEVEL_lowest); }

/* ---- the rest of the ladder */

/* ? expression : */
static Expr *chosen_value(Parser *p) {
    int angle = p->angle;
    parser_advance(p);
    p->angle = 0;
    Expr *value = parser_enter(p) ? parse_expression(p) : parse_error_expr(p);
    parser_leave(p);
    p->angle = angle;
    if (!parser_take(p, TOKEN_colon)) parser_expected(p, "':' of '?:'");
    return value;
}

/* `a ? b : c ? d : e` is one node however long it gets. */
static Expr *select_after(Parser *p, Expr *condition) {
    Expr *expr = expr_new(p->arena, EXPR_select, p->token->loc);
    int height = p->height;
    expr->a = condition;
    expr->b = chosen_value(p);
    while (true) {
        height = max_int(height, p->height);
        expr->c = p->panic ? parse_error_expr(p) : operators(p, LEVEL_lowest);
        if (p->panic || !parser_at(p, TOKEN_question)) break;
        height = max_int(height, p->height);
        vec_push(p->arena, &expr->args, expr->c);
        vec_push(p->arena, &expr->args, chosen_value(p));
    }
    return parse_grown(p, expr, max_int(height, p->height));
}

Expr *parse_condition(Parser *p) {
    Expr *expr = operators(p, LEVEL_lowest);
    return !p->panic && parser_at(p, TOKEN_question) ? select_after(p, expr) : expr;
}

static bool is_assignment(TokenKind kind) { return kind >= TOKEN_equal && kind <= TOKEN_shift_right_equal; }

Expr *parse_assignment(Parser *p) {
    Expr *left = parse_condition(p);
    TokenKind kind = (TokenKind)p->token->kind;
    if (p->panic || !is_assignment(kind) || p->angle > 0) return left;
    int height = p->height;
    Expr *expr = expr_new(p->arena, EXPR_assign, p->token->loc);
    expr->op = (uint8_t)operator_of_token(kind);
    expr->a = left;
    bool entered = parser_enter(p);
    parser_advance(p);
    expr->b = entered ? parse_initializer(p) : parse_error_expr(p);
    parser_leave(p);
    return parse_grown(p, expr, max_int(height, p->height));
}

Expr *parse_initializer(Parser *p) {
    return parser_at(p, TOKEN_brace_open) ? parse_list(p) : parse_assignment(p);
}

Expr *parse_expression(Parser *p) {
    Expr *left = parse_assignment(p);
    while (!p->panic && parser_at(p, TOKEN_comma)) {
        int height = p->height;
        Expr *expr = expr_new(p->arena, EXPR_binary, p->token->loc);
        expr->op = OPERATOR_comma;
        parser_advance(p);
        expr->a = left;
        expr->b = parse_assignment(p);
        left = parse_grown(p, expr, max_int(height, p->height));
    }
    return left;
}

/* (int, float), not (x, y) */
static bool at_tuple_type(const Parser *p) {
    return parser_at(p, TOKEN_paren_open) && scan_is_type_name(p, parser_peek(p, 1)) &&
           scan_type(p, p->at) >= 0;
}

Expr *parse_type_or_expression(Parser *p) {
    if (parser_at_word(p, KEYWORD_const) || parser_at_word(p, KEYWORD_struct) || at_tuple_type(p))
        return parse_type(p);
    return parse_assignment(p);
}
