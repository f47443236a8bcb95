/* The arithmetic of #if and #elif: 64-bit integers, unsigned where an operand is. A name that is no macro
 * counts as 0, with a warning, unless the value does not matter (`defined(X) && X > 3`). */
#include "syntax/parser.h"

enum { MAX_CONDITION_DEPTH = 200 };

typedef struct Value {
    uint64_t bits;
    bool is_unsigned;
} Value;

typedef struct Evaluator {
    Preprocessor *pp;
    MacroTokens tokens;
    int at;
    Loc loc;      /* of the directive, for what is missing at its end */
    int unwanted; /* > 0: the value does not matter */
    int depth;
    bool failed; /* and reported */
} Evaluator;

static Value conditional(Evaluator *e);

static TokenKind kind(const Evaluator *e) {
    return e->at < e->tokens.count ? (TokenKind)e->tokens.at[e->at].token.kind : TOKEN_end;
}

static Loc here(const Evaluator *e) {
    return e->at < e->tokens.count ? e->tokens.at[e->at].token.loc : e->loc;
}

static Value fail(Evaluator *e, DiagId id, const char *text) {
    bool reported = e->failed || kind(e) == TOKEN_error;
    if (!reported) diag_report(e->pp->syntax->diags, id, here(e), text);
    e->failed = true;
    e->at = e->tokens.count;
    return (Value){0, false};
}

static bool take(Evaluator *e, TokenKind wanted) {
    if (kind(e) != wanted) return false;
    e->at++;
    return true;
}

static Value truth(bool value) { return (Value){value, false}; }

static Value defined(Evaluator *e) {
    bool parenthesis = take(e, TOKEN_paren_open);
    if (kind(e) != TOKEN_name) return fail(e, DIAG_macro_name_expected, "defined");
    Name name = e->tokens.at[e->at++].token.name;
    if (parenthesis && !take(e, TOKEN_paren_close)) return fail(e, DIAG_condition_paren, NULL);
    return truth(macro_find(e->pp, name) != NULL);
}

static Value name_value(Evaluator *e) {
    Name name = e->tokens.at[e->at].token.name;
    if (strcmp(name->text, "defined") == 0) {
        e->at++;
        return defined(e);
    }
    bool is_true = strcmp(name->text, "true") == 0, is_false = strcmp(name->text, "false") == 0;
    if (!is_true && !is_false && !e->unwanted)
        diag_report(e->pp->syntax->diags, DIAG_undefined_in_condition, here(e), name->text);
    e->at++;
    return truth(is_true);
}

static Value parenthesized(Evaluator *e) {
    e->at++;
    Value value = conditional(e);
    if (!take(e, TOKEN_paren_close)) return fail(e, DIAG_condition_paren, NULL);
    return value;
}

static Value primary(Evaluator *e) {
    switch (kind(e)) {
    case TOKEN_int:
    case TOKEN_char: {
        const Token *token = &e->tokens.at[e->at++].token;
        bool is_unsigned = token->suffix == SUFFIX_u || token->suffix == SUFFIX_ul ||
                           token->suffix == SUFFIX_ull || token->number > INT64_MAX;
        return (Value){token->number, is_unsigned};
    }
    case TOKEN_name: return name_value(e);
    case TOKEN_paren_open: return parenthesized(e);
    case TOKEN_end: return fail(e, DIAG_condition_operand_missing, NULL);
    default: return fail(e, DIAG_condition_operand, token_describe(e->pp->arena, &e->tokens.at[e->at].token));
    }
}

static Value unary(Evaluator *e) {
    TokenKind op = kind(e);
    if (op != TOKEN_plus && op != TOKEN_minus && op != TOKEN_bang && op != TOKEN_tilde &&
        op != TOKEN_paren_open)
        return primary(e);
    if (++e->depth > MAX_CONDITION_DEPTH) return fail(e, DIAG_condition_too_deep, NULL);
    Value value;
    if (op == TOKEN_paren_open) value = primary(e);
    else {
        e->at++;
        value = unary(e);
        if (op == TOKEN_minus) value.bits = -value.bits;
        if (op == TOKEN_tilde) value.bits = ~value.bits;
        if (op == TOKEN_bang) value = truth(!value.bits);
    }
    e->depth--;
    return value;
}

/* 64 bits, with or without a sign. */
static const Type *type_of(bool is_unsigned) {
    static const Type with_sign = {.kind = TYPE_int64}, without = {.kind = TYPE_uint64};
    return is_unsigned ? &without : &with_sign;
}

static Value divide(Evaluator *e, TokenKind op, Value a, Value b, bool is_unsigned) {
    if (b.bits == 0) return e->unwanted ? truth(false) : fail(e, DIAG_condition_division, NULL);
    const Type *type = type_of(is_unsigned);
    int64_t x = (int64_t)a.bits, y = (int64_t)b.bits;
    return (Value){(uint64_t)(op == TOKEN_slash ? number_divide(x, y, type) : number_remainder(x, y, type)),
                   is_unsigned};
}

static bool is_less(Value a, Value b, bool is_unsigned) {
    return number_less((int64_t)a.bits, (int64_t)b.bits, type_of(is_unsigned));
}

static Value shift(Value a, int64_t count, bool left) {
    const Type *type = type_of(a.is_unsigned);
    int64_t bits = (int64_t)a.bits;
    bits = left ? number_shift_left(bits, count, type) : number_shift_right(bits, count, type);
    return (Value){(uint64_t)bits, a.is_unsigned};
}

static Value apply(Evaluator *e, TokenKind op, Value a, Value b) {
    bool u = a.is_unsigned || b.is_unsigned;
    switch (op) {
    case TOKEN_pipe_pipe: return truth(a.bits || b.bits);
    case TOKEN_caret_caret: return truth(!a.bits != !b.bits);
    case TOKEN_amp_amp: return truth(a.bits && b.bits);
    case TOKEN_pipe: return (Value){a.bits | b.bits, u};
    case TOKEN_caret: return (Value){a.bits ^ b.bits, u};
    case TOKEN_amp: return (Value){a.bits & b.bits, u};
    case TOKEN_equal_equal: return truth(a.bits == b.bits);
    case TOKEN_bang_equal: return truth(a.bits != b.bits);
    case TOKEN_less: return truth(is_less(a, b, u));
    case TOKEN_greater: return truth(is_less(b, a, u));
    case TOKEN_less_equal: return truth(!is_less(b, a, u));
    case TOKEN_greater_equal: return truth(!is_less(a, b, u));
    case TOKEN_shift_left: return shift(a, (int64_t)b.bits, true);
    case TOKEN_shift_right: return shift(a, (int64_t)b.bits, false);
    case TOKEN_plus: return (Value){a.bits + b.bits, u};
    case TOKEN_minus: return (Value){a.bits - b.bits, u};
    case TOKEN_star: return (Value){a.bits * b.bits, u};
    default: return divide(e, op, a, b, u);
    }
}

static Value binary(Evaluator *e, int lowest) {
    Value left = unary(e);
    for (;;) {
        TokenKind op = kind(e);
        int level = token_level(op);
        if (level == LEVEL_none || level < lowest) return left;
        e->at++;
        bool known = (op == TOKEN_pipe_pipe && left.bits) || (op == TOKEN_amp_amp && !left.bits);
        e->unwanted += known;
        Value right = binary(e, level + 1);
        e->unwanted -= known;
        left = apply(e, op, left, right);
    }
}

static Value conditional(Evaluator *e) {
    Value condition = binary(e, LEVEL_lowest);
    if (!take(e, TOKEN_question)) return condition;
    if (++e->depth > MAX_CONDITION_DEPTH) return fail(e, DIAG_condition_too_deep, NULL);
    bool chosen = condition.bits != 0;
    e->unwanted += !chosen;
    Value yes = conditional(e);
    e->unwanted -= !chosen;
    if (!take(e, TOKEN_colon)) return fail(e, DIAG_condition_colon, NULL);
    e->unwanted += chosen;
    Value no = conditional(e);
    e->unwanted -= chosen;
    e->depth--;
    return chosen ? yes : no;
}

bool condition_holds(Preprocessor *pp, const MacroTokens *line, Loc loc) {
    pp->in_condition = true;
    Evaluator e = {.pp = pp, .tokens = macro_expand_line(pp, line), .loc = loc};
    pp->in_condition = false;
    Value value = conditional(&e);
    if (!e.failed && e.at < e.tokens.count)
        fail(&e, DIAG_condition_operator, token_describe(pp->arena, &e.tokens.at[e.at].token));
    return !e.failed && value.bits != 0;
}
