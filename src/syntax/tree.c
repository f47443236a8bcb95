/* Making nodes, and the texts of tokens and operators. */
#include "syntax/parser.h"

Expr *expr_new(Arena *arena, ExprKind kind, Loc loc) {
    Expr *expr = arena_new(arena, Expr);
    expr->kind = (uint8_t)kind;
    expr->loc = loc;
    return expr;
}

static Loc first_of(const Expr *expr) { return expr->first ? expr->first : expr->loc; }

Span expr_span(const Expr *expr) {
    while (expr->kind == EXPR_convert && expr->flags & EXPR_IMPLICIT && !expr->last && expr->a)
        expr = expr->a;
    return (Span){first_of(expr), expr->loc, expr->last ? expr->last : expr->loc};
}

void expr_ends_at(Expr *expr, Loc last) {
    expr->first = expr->a && first_of(expr->a) < expr->loc ? first_of(expr->a) : expr->loc;
    expr->last = last;
}

Stmt *stmt_new(Arena *arena, StmtKind kind, Loc loc) {
    Stmt *stmt = arena_new(arena, Stmt);
    stmt->kind = (uint8_t)kind;
    stmt->loc = loc;
    return stmt;
}

Decl *decl_new(Arena *arena, DeclKind kind, Loc loc, Name name) {
    Decl *decl = arena_new(arena, Decl);
    decl->kind = (uint8_t)kind;
    decl->loc = loc;
    decl->name = name;
    return decl;
}

Expr *expr_copy(Arena *arena, const Expr *expr) {
    if (!expr) return NULL;
    Expr *copy = arena_copy(arena, expr, sizeof *expr);
    copy->a = expr_copy(arena, expr->a);
    copy->b = expr_copy(arena, expr->b);
    copy->c = expr_copy(arena, expr->c);
    copy->args = (ExprVec){0};
    for (int i = 0; i < expr->args.count; i++)
        vec_push(arena, &copy->args, expr_copy(arena, expr->args.at[i]));
    return copy;
}

const char *operator_text(Operator op) {
    static const char *const texts[] = {
        [OPERATOR_none] = "",
#define OPERATOR(name, text) [OPERATOR_##name] = text,
#include "syntax/operators.def"
    };
    return texts[op];
}

const char *token_kind_text(TokenKind kind) {
    static const char *const texts[] = {
        [TOKEN_end] = "the end of the file",       [TOKEN_name] = "a name",     [TOKEN_int] = "a number",
        [TOKEN_float] = "a floating-point number", [TOKEN_string] = "a string", [TOKEN_char] = "a character",
        [TOKEN_error] = "something wrong",
#define PUNCTUATION(name, text) [TOKEN_##name] = text,
#include "syntax/operators.def"
    };
    return texts[kind];
}

const char *token_describe(Arena *arena, const Token *token) {
    if (token->kind == TOKEN_name) return format_text(arena, "'%s'", token->name->text);
    if (token->kind <= TOKEN_error) return token_kind_text((TokenKind)token->kind);
    return format_text(arena, "'%s'", token_kind_text((TokenKind)token->kind));
}

TokenKind token_closing(TokenKind open) {
    if (open == TOKEN_paren_open) return TOKEN_paren_close;
    if (open == TOKEN_bracket_open) return TOKEN_bracket_close;
    return open == TOKEN_brace_open ? TOKEN_brace_close : TOKEN_end;
}

Operator operator_of_token(TokenKind kind) {
    static const uint8_t operators[TOKEN_KIND_COUNT] = {
        [TOKEN_plus] = OPERATOR_add,
        [TOKEN_minus] = OPERATOR_sub,
        [TOKEN_star] = OPERATOR_mul,
        [TOKEN_slash] = OPERATOR_div,
        [TOKEN_percent] = OPERATOR_mod,
        [TOKEN_amp] = OPERATOR_bit_and,
        [TOKEN_pipe] = OPERATOR_bit_or,
        [TOKEN_caret] = OPERATOR_bit_xor,
        [TOKEN_tilde] = OPERATOR_bit_not,
        [TOKEN_bang] = OPERATOR_not,
        [TOKEN_less] = OPERATOR_less,
        [TOKEN_greater] = OPERATOR_greater,
        [TOKEN_less_equal] = OPERATOR_less_equal,
        [TOKEN_greater_equal] = OPERATOR_greater_equal,
        [TOKEN_equal_equal] = OPERATOR_equal,
        [TOKEN_bang_equal] = OPERATOR_not_equal,
        [TOKEN_shift_left] = OPERATOR_shl,
        [TOKEN_shift_right] = OPERATOR_shr,
        [TOKEN_amp_amp] = OPERATOR_and,
        [TOKEN_pipe_pipe] = OPERATOR_or,
        [TOKEN_plus_plus] = OPERATOR_increment,
        [TOKEN_minus_minus] = OPERATOR_decrement,
        [TOKEN_comma] = OPERATOR_comma,
        [TOKEN_plus_equal] = OPERATOR_add,
        [TOKEN_minus_equal] = OPERATOR_sub,
        [TOKEN_star_equal] = OPERATOR_mul,
        [TOKEN_slash_equal] = OPERATOR_div,
        [TOKEN_percent_equal] = OPERATOR_mod,
        [TOKEN_amp_equal] = OPERATOR_bit_and,
        [TOKEN_pipe_equal] = OPERATOR_bit_or,
        [TOKEN_caret_equal] = OPERATOR_bit_xor,
        [TOKEN_shift_left_equal] = OPERATOR_shl,
        [TOKEN_shift_right_equal] = OPERATOR_shr,
    };
    return (Operator)operators[kind];
}

int token_level(TokenKind kind) {
    static const uint8_t levels[TOKEN_KIND_COUNT] = {
        [TOKEN_pipe_pipe] = LEVEL_lowest,
        [TOKEN_caret_caret] = 2,
        [TOKEN_amp_amp] = 3,
        [TOKEN_pipe] = 4,
        [TOKEN_caret] = 5,
        [TOKEN_amp] = 6,
        [TOKEN_equal_equal] = 7,
        [TOKEN_bang_equal] = 7,
        [TOKEN_less] = LEVEL_relation,
        [TOKEN_greater] = LEVEL_relation,
        [TOKEN_less_equal] = LEVEL_relation,
        [TOKEN_greater_equal] = LEVEL_relation,
        [TOKEN_shift_left] = 9,
        [TOKEN_shift_right] = 9,
        [TOKEN_plus] = 10,
        [TOKEN_minus] = 10,
        [TOKEN_star] = 11,
        [TOKEN_slash] = 11,
        [TOKEN_percent] = 11,
    };
    return levels[kind];
}
