/* Primary expressions: literals, names, parentheses, lists, and words that look like calls
 * (`fwd_diff(f)`). */
#include "syntax/parser.h"

/* ---- literals */

static Expr *leaf(Parser *p, ExprKind kind) {
    Expr *expr = expr_new(p->arena, kind, p->token->loc);
    p->height = 1;
    return expr;
}

static Expr *take_leaf(Parser *p, ExprKind kind) {
    Expr *expr = leaf(p, kind);
    parser_advance(p);
    return expr;
}

static Expr *number(Parser *p) {
    const Token *token = p->token;
    Expr *expr = leaf(p, token->kind == TOKEN_float ? EXPR_float : EXPR_int);
    expr->suffix = token->suffix;
    if (token->kind == TOKEN_float) expr->real = token->real;
    else expr->number = token->number;
    if (token->kind == TOKEN_char) expr->flags |= EXPR_CHAR;
    if (token->flags & TOKEN_HEX) expr->flags |= EXPR_HEX;
    parser_advance(p);
    return expr;
}

/* Strings that stand side by side are one. */
static Expr *string(Parser *p) {
    Expr *expr = leaf(p, EXPR_string);
    expr->text = p->token->text;
    parser_advance(p);
    if (!parser_at(p, TOKEN_string)) return expr;
    Text joined = {.arena = p->arena};
    text_add(&joined, expr->text);
    for (; parser_at(p, TOKEN_string); parser_advance(p)) text_add(&joined, p->token->text);
    expr->text = text_str(&joined);
    return expr;
}

/* ---- names */

static bool is_overloadable(TokenKind kind) {
    return kind >= TOKEN_plus || kind == TOKEN_comma || kind == TOKEN_arrow;
}

/* Why none of the program's own is called by it; NULL: one is. */
static const char *refusal_of(TokenKind kind) {
    switch ((int)kind) {
    case TOKEN_equal: return "'=' copies the value; write a method or a constructor";
    case TOKEN_comma: return "',' gives what is behind it; write a function";
    case TOKEN_question: return "'?:' gives one of its operands; write a function";
    case TOKEN_arrow: return "'->' follows a pointer; write a method or a property";
    default: return NULL;
    }
}

Name parse_operator_name(Parser *p) {
    TokenKind kind = (TokenKind)p->token->kind, next = (TokenKind)parser_peek(p, 1)->kind;
    const char *text = token_kind_text(kind);
    bool pair = true;
    if (kind == TOKEN_paren_open && next == TOKEN_paren_close) text = "()";
    else if (kind == TOKEN_bracket_open && next == TOKEN_bracket_close) text = "[]";
    else if (kind == TOKEN_question && next == TOKEN_colon) text = "?:";
    else pair = false;
    if (!pair && !is_overloadable(kind)) {
        parser_expected(p, "an operator after 'operator'");
        return NULL;
    }
    const char *why = refusal_of(kind);
    if (why && !p->panic) diag_report(p->syntax->diags, DIAG_operator_refused, p->token->loc, text, why);
    parser_advance(p);
    if (pair) parser_advance(p);
    return name_from(p->syntax->names, format_text(p->arena, "operator%s", text));
}

static Expr *plain_name(Parser *p) {
    Expr *expr = leaf(p, EXPR_name);
    expr->name = p->token->name;
    parser_advance(p);
    return expr;
}

static Expr *operator_name(Parser *p) {
    Expr *expr = take_leaf(p, EXPR_name);
    expr->name = parse_operator_name(p);
    return expr->name ? expr : parse_error_expr(p);
}

/* ---- brackets */

/* Under #language slang 2026: (a, b) is a tuple. */
static void tuple_items(Parser *p, Expr *expr) {
    ExprVec items = {0};
    int height = p->height;
    vec_push(p->arena, &items, expr->a);
    while (!p->panic && parser_take(p, TOKEN_comma)) {
        Expr *item = parse_assignment(p);
        vec_push(p->arena, &items, item);
        if (p->height > height) height = p->height;
    }
    p->height = height;
    if (items.count == 1) return;
    expr->kind = EXPR_tuple;
    expr->a = NULL;
    expr->args = items;
}

static Expr *parenthesized(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_paren, p->token->loc);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle;
    bool tuples = p->file->language >= 2026;
    p->angle = 0;
    expr->a = tuples ? parse_assignment(p) : parse_expression(p);
    if (tuples) tuple_items(p, expr);
    int height = p->height;
    parser_close_bracket(p, open);
    p->angle = angle;
    p->height = height + 1;
    expr_ends_at(expr, parser_previous(p)->loc);
    return expr;
}

/* { a, b, } */
Expr *parse_list(Parser *p) {
    Expr *expr = expr_new(p->arena, EXPR_list, p->token->loc);
    bool entered = parser_enter(p);
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'"), angle = p->angle, height = 0;
    p->angle = 0;
    while (entered && !p->panic && !parser_at(p, TOKEN_brace_close)) {
        bool designated = parser_at(p, TOKEN_dot) && token_is_identifier(parser_peek(p, 1));
        Expr *item = parse_initializer(p);
        if (designated) diag_note(p->syntax->diags, DIAG_note_list_positional, 0);
        vec_push(p->arena, &expr->args, item);
        if (p->height > height) height = p->height;
        if (!parser_take(p, TOKEN_comma)) break;
    }
    if (!p->panic && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end))
        parser_expected(p, "',' or '}'");
    parser_close_bracket(p, open);
    p->angle = angle;
    parser_leave(p);
    p->height = height + 1;
    expr_ends_at(expr, parser_previous(p)->loc);
    return expr;
}

/* ---- words */

/* word(a) */
static Expr *operand_in_parentheses(Parser *p, ExprKind kind, uint32_t flags) {
    Expr *expr = take_leaf(p, kind);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('"), angle = p->angle;
    expr->flags = flags;
    p->angle = 0;
    expr->a = parse_type_or_expression(p);
    int height = p->height;
    parser_close_bracket(p, open);
    p->angle = angle;
    p->height = height + 1;
    return expr;
}

/* __getAddress(a): &a */
static Expr *address_of(Parser *p) {
    Expr *expr = operand_in_parentheses(p, EXPR_unary, 0);
    expr->op = OPERATOR_bit_and;
    return expr;
}

static Expr *boolean(Parser *p, bool value) {
    Expr *expr = take_leaf(p, EXPR_bool);
    expr->number = value;
    return expr;
}

/* __numbersof(T): how many floating numbers a T consists of */
static Expr *numbers_of(Parser *p) {
    Expr *expr = operand_in_parentheses(p, EXPR_sizeof, 0);
    expr->number = 1;
    return expr;
}

/* Words that are operators only before a parenthesis, and unless a variable has their name. */
static Expr *word_operator(Parser *p) {
    if (parser_peek(p, 1)->kind != TOKEN_paren_open || parser_is_local(p, p->token->name))
        return plain_name(p);
    switch (token_word(p->token)) {
    case KEYWORD_fwd_diff: return operand_in_parentheses(p, EXPR_fwd_diff, 0);
    case KEYWORD_bwd_diff: return operand_in_parentheses(p, EXPR_bwd_diff, 0);
    case KEYWORD_old_fwd_diff: return operand_in_parentheses(p, EXPR_fwd_diff, EXPR_OLD_NAME);
    case KEYWORD_old_bwd_diff: return operand_in_parentheses(p, EXPR_bwd_diff, EXPR_OLD_NAME);
    case KEYWORD_sizeof: return operand_in_parentheses(p, EXPR_sizeof, 0);
    case KEYWORD_numbersof: return numbers_of(p);
    case KEYWORD_alignof: return operand_in_parentheses(p, EXPR_alignof, 0);
    case KEYWORD_countof: return operand_in_parentheses(p, EXPR_countof, 0);
    case KEYWORD_first:
    case KEYWORD_last:
    case KEYWORD_trim_first:
    case KEYWORD_trim_last:
    case KEYWORD_pack_branch: return parse_pack_word(p);
    case KEYWORD_functype: return parse_type(p);
    case KEYWORD_get_address: return address_of(p);
    default: return plain_name(p);
    }
}

/* spirv_asm { ... } */
static Expr *assembly(Parser *p) {
    if (parser_peek(p, 1)->kind != TOKEN_brace_open) return word_operator(p);
    Expr *expr = take_leaf(p, EXPR_asm);
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'");
    if (open >= 0 && p->file->match[open] >= 0) parser_jump(p, p->file->match[open]);
    parser_close_bracket(p, open);
    return expr;
}

static Expr *missing(Parser *p) {
    bool list = parser_at(p, TOKEN_bracket_open) && !p->panic;
    bool lambda = list && parser_peek(p, 1)->kind == TOKEN_bracket_close;
    parser_expected(p, "an expression");
    if (list) diag_note(p->syntax->diags, lambda ? DIAG_note_lambda : DIAG_note_list, 0);
    return parse_error_expr(p);
}

/* new Foo(3): objects of classes. Told once; the rest is read as a value of Foo. */
static Expr *new_object(Parser *p) {
    if (parser_peek(p, 1)->kind != TOKEN_name) return word_operator(p);
    const Token *type = parser_peek(p, 1);
    diag_report(p->syntax->diags, DIAG_new_object, p->token->loc, type->name->text, type->name->text);
    parser_advance(p);
    return word_operator(p);
}

static Expr *name_or_word(Parser *p) {
    switch (token_word(p->token)) {
    case KEYWORD_true: return boolean(p, true);
    case KEYWORD_false: return boolean(p, false);
    case KEYWORD_nullptr: return take_leaf(p, EXPR_null);
    case KEYWORD_this: return take_leaf(p, EXPR_this);
    case KEYWORD_this_type: return take_leaf(p, EXPR_this_type);
    case KEYWORD_operator: return operator_name(p);
    case KEYWORD_unsigned: return parse_base_type(p);
    case KEYWORD_new: return new_object(p);
    case KEYWORD_spirv_asm: return assembly(p);
    case KEYWORD_none_literal:
        return parser_is_local(p, p->token->name) ? plain_name(p) : take_leaf(p, EXPR_none);
    default: return token_is_identifier(p->token) ? word_operator(p) : missing(p);
    }
}

/* ::name, looked up from the outermost scope */
Expr *parse_outermost_name(Parser *p) {
    parser_advance(p);
    if (!token_is_identifier(p->token)) {
        parser_expected(p, "a name after '::'");
        return parse_error_expr(p);
    }
    Expr *expr = plain_name(p);
    expr->flags |= EXPR_OUTERMOST;
    return expr;
}

Expr *parse_primary(Parser *p) {
    switch ((TokenKind)p->token->kind) {
    case TOKEN_name: return name_or_word(p);
    case TOKEN_int:
    case TOKEN_float:
    case TOKEN_char: return number(p);
    case TOKEN_string: return string(p);
    case TOKEN_paren_open: return parenthesized(p);
    case TOKEN_scope: return parse_outermost_name(p);
    default: return missing(p);
    }
}
