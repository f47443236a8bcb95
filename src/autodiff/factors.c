/* Differentials factor by factor, where the rule of the operation alone would leave the range of floats on
 * the way: of logarithms, quotients by exponentials and by products, and products of the two. */
#include "autodiff/ad.h"

#include <math.h>

static Val *primal(const Tangents *t, Val *old) { return val_is_const(old) ? old : t->p[old->id]; }

static Val *diff(const Tangents *t, const Val *old) { return val_is_const(old) ? NULL : t->d[old->id]; }

/* ---- logarithms
 *
 * The differential of log x is dx / x. Its transpose makes the adjoint of x, which is beyond all floats where x is smaller than the least
 * normal number, such as a probability of a softmax, though what comes of it is not: it is multiplied by x again. So the
 * quotient is taken factor by factor, and that of exp(u) is du; that of cosh(u), which is half an exponential far out, tanh(u) du. */

enum { LOG_FACTORS_DEEP = 3 }; /* of products of products: a square is two factors */

static const Inst *log_operand(const Val *x) { return x->kind == VAL_inst ? x->inst : NULL; }

static bool is_exponential_op(const Inst *inst) {
    return inst->op == OP_exp || inst->op == OP_exp2 || inst->op == OP_cosh;
}

/* Is it made of factors that are better taken one by one? A plain product would be divided twice for that. */
static bool has_log_factors(const Val *x, int depth) {
    const Inst *inst = log_operand(x);
    if (!inst) return false;
    switch ((Op)inst->op) {
    case OP_exp:
    case OP_exp2:
    case OP_cosh: return true;
    case OP_div: return depth > 0;
    case OP_mul:
        return depth > 0 &&
               (has_log_factors(inst->args[0], depth - 1) || has_log_factors(inst->args[1], depth - 1));
    default: return false;
    }
}

/* Of log exp(u), and the like; NULL: zero. */
static Val *exponent_differential(const Tangents *t, const Inst *inst) {
    Val *u = inst->args[0], *du = diff(t, u);
    if (!du || inst->op == OP_exp) return du;
    Val *slope = inst->op == OP_exp2 ? ir_const_real(t->b->func->module, u->type, M_LN2)
                                     : build_unary(t->b, OP_tanh, primal(t, u));
    return build_binary(t->b, OP_mul, slope, du);
}

/* dx / x; NULL: zero. */
static Val *log_differential(const Tangents *t, Val *x, int depth) {
    Val *d = diff(t, x);
    if (!d) return NULL;
    if (!has_log_factors(x, depth)) return build_binary(t->b, OP_div, d, primal(t, x));
    const Inst *inst = log_operand(x);
    if (is_exponential_op(inst)) return exponent_differential(t, inst);
    Val *a = log_differential(t, inst->args[0], depth - 1),
        *b = log_differential(t, inst->args[1], depth - 1);
    if (!a && b && inst->op == OP_div) return build_unary(t->b, OP_neg, b);
    if (!a || !b) return a ? a : b;
    return build_binary(t->b, inst->op == OP_div ? OP_sub : OP_add, a, b);
}

static double log_scale(const Inst *inst) {
    return inst->op == OP_log ? 1 : inst->op == OP_log2 ? M_LOG2E : inst->op == OP_log10 ? M_LOG10E : 0;
}

static Val *of_log(const Tangents *t, const Inst *inst) {
    double scale = log_scale(inst);
    Val *d = log_differential(t, inst->args[0], LOG_FACTORS_DEEP);
    if (!d || scale == 1) return d;
    return build_binary(t->b, OP_mul, ir_const_real(t->b->func->module, inst->results[0]->type, scale), d);
}

/* ---- quotients by exponentials
 *
 * The differential of u / v has y * dv in it. With v = 1 + exp(x) and much that depends on x, dv is beyond all floats long before v is, while y * exp(x)
 * is at most u: this comes first. If there are exponentials in u as well, each is divided by v first.
 *
 * The reverse begins with the quotient, so that nothing is too large; but where v is large, y / v is too small for a float, though its product with exp(x) is not. It is multiplied by each
 * exponential first, and then by y; if there is but one, that takes nothing more.
 *
 * So it is with a v that is a square, or a product with such terms: y / v times a factor of v need not be too small where y / v is, nor y * dv too large where dv is. y is multiplied by the other factors first. */

enum { TERMS_DEEP = 4, PRODUCTS_DEEP = 2 };

/* Of a multiple of something, or what may be 0 instead: that. NULL: it is neither. */
static const Val *multiplied(const Inst *inst) {
    if (inst->op == OP_neg) return inst->args[0];
    if (inst->op != OP_mul && inst->op != OP_select) return NULL;
    const Val *first = inst->args[inst->nargs - 2], *second = inst->args[inst->nargs - 1];
    bool is_choice = inst->op == OP_select;
    if (val_is_const(first) && (!is_choice || val_is_zero(first))) return second;
    return val_is_const(second) && (!is_choice || val_is_zero(second)) ? first : NULL;
}

/* exp(u), of which x is a multiple; NULL: it is none. */
static const Inst *exponential(const Val *x) {
    const Inst *inst = log_operand(x);
    while (inst && !is_exponential_op(inst)) {
        const Val *of = multiplied(inst);
        inst = of ? log_operand(of) : NULL;
    }
    return inst;
}

static bool is_exponential(const Val *x) { return exponential(x) != NULL; }

/* Of log |x|, where x is a multiple of exp(u): du. */
static Val *exponent(const Tangents *t, const Val *x) { return exponent_differential(t, exponential(x)); }

static bool has_exponential(const Val *x, int depth) {
    const Inst *inst = log_operand(x);
    bool is_sum = inst && depth > 0 && (inst->op == OP_add || inst->op == OP_sub);
    return is_exponential(x) || (is_sum && (has_exponential(inst->args[0], depth - 1) ||
                                            has_exponential(inst->args[1], depth - 1)));
}

/* ... that has a differential. */
static bool has_moving_exponential(const Tangents *t, const Val *x, int depth) {
    const Inst *inst = log_operand(x);
    if (!diff(t, x) || !has_exponential(x, depth)) return false;
    return is_exponential(x) || has_moving_exponential(t, inst->args[0], depth - 1) ||
           has_moving_exponential(t, inst->args[1], depth - 1);
}

static Val *sum_of(const Tangents *t, Op op, Val *first, Val *second) {
    if (!first && second && op == OP_sub) return build_unary(t->b, OP_neg, second);
    if (!first || !second) return first ? first : second;
    return build_binary(t->b, op, first, second);
}

/* dx times y, or, if `op` is div, divided by it; NULL: zero. */
static Val *with_differential(const Tangents *t, Op op, Val *y, Val *x, int depth) {
    Val *d = diff(t, x);
    if (!d) return NULL;
    const Inst *inst = log_operand(x);
    if (is_exponential(x) && !t->forward) { /* transposed, from left to right */
        Val *change = build_binary(t->b, op, exponent(t, x), y);
        return build_binary(t->b, OP_mul, primal(t, x), change);
    }
    if (is_exponential(x)) {
        Val *scaled = build_binary(t->b, op, primal(t, x), y);
        return build_binary(t->b, OP_mul, scaled, exponent(t, x));
    }
    if (!has_exponential(x, depth)) return build_binary(t->b, op, d, y);
    Val *first = with_differential(t, op, y, inst->args[0], depth - 1),
        *second = with_differential(t, op, y, inst->args[1], depth - 1);
    return sum_of(t, (Op)inst->op, first, second);
}

/* What it is a multiple of. */
static const Val *bare(const Val *x) {
    const Inst *inst = log_operand(x);
    const Val *of = inst && inst->op == OP_mul ? multiplied(inst) : NULL;
    return of ? of : x;
}

/* The operand of a multiple of a square that is squared; -1: it is none. */
static int squared(const Inst *product) {
    Val *const *a = product->args;
    for (int i = 1; i >= 0; i--)
        if (a[1 - i] == a[i] || bare(a[1 - i]) == a[i]) return i;
    return -1;
}

static bool has_exponential_factor(const Tangents *t, const Val *x, int depth) {
    const Inst *inst = log_operand(x);
    if (!inst || inst->op != OP_mul || depth == 0) return has_moving_exponential(t, x, TERMS_DEEP);
    return has_exponential_factor(t, inst->args[0], depth - 1) ||
           has_exponential_factor(t, inst->args[1], depth - 1);
}

/* Is it a product of which the factors are better taken one by one? What takes more than before is for
 * exponentials alone: a factor may be so small that y times the others is too large. */
static bool has_factors(const Tangents *t, const Val *x, int depth) {
    const Inst *inst = log_operand(x);
    if (!inst || inst->op != OP_mul || depth == 0 || !diff(t, x)) return false;
    return squared(inst) >= 0 || has_exponential_factor(t, x, depth);
}

/* dx times y, where y is a quotient by it; NULL: zero. */
static Val *in_divisor(const Tangents *t, Val *y, Val *x, int depth) {
    Val *d = diff(t, x), *terms[2] = {NULL, NULL};
    if (!d) return NULL;
    if (!has_factors(t, x, depth))
        return has_moving_exponential(t, x, TERMS_DEEP) ? with_differential(t, OP_mul, y, x, TERMS_DEEP)
                                                        : build_binary(t->b, OP_mul, y, d);
    const Inst *product = log_operand(x);
    int square = squared(product);
    for (int i = 0; i < 2; i++) {
        Val *factor = product->args[i], *other = primal(t, product->args[1 - i]);
        if (diff(t, factor) && (square < 0 || i == square))
            terms[i] = in_divisor(t, build_binary(t->b, OP_mul, y, other), factor, depth - 1);
    }
    if (square >= 0) terms[1 - square] = terms[square];
    return terms[0] && terms[1] ? build_sum(t->b, terms[0], terms[1]) : terms[0] ? terms[0] : terms[1];
}

static Val *of_quotient(const Tangents *t, const Inst *inst, Val *y) {
    Val *v = primal(t, inst->args[1]), *du = diff(t, inst->args[0]);
    bool above = t->forward && du && has_exponential(inst->args[0], TERMS_DEEP);
    if (!above || has_factors(t, inst->args[1], PRODUCTS_DEEP))
        return build_quotient_differential(t->b, v, du, in_divisor(t, y, inst->args[1], PRODUCTS_DEEP));
    Val *of_u = with_differential(t, OP_div, v, inst->args[0], TERMS_DEEP),
        *of_v = with_differential(t, OP_div, v, inst->args[1], TERMS_DEEP);
    if (of_v) of_v = build_unless_infinite(t->b, v, build_binary(t->b, OP_mul, y, of_v));
    return sum_of(t, OP_sub, of_u, of_v);
}

/* ---- products of an exponential with a quotient by it
 *
 * Derivatives of such quotients have them, as exp(x) * (1 / (1 + exp(x))), which is at most 1. The adjoint of the exponential alone, a product of two quotients, is too small for a
 * float where that of its exponent is not: h = exp(x) * y has h * dx in its differential. */

static bool has_term(const Val *x, const Inst *e, int depth) {
    if (is_exponential(x)) return exponential(x) == e;
    const Inst *inst = log_operand(x);
    bool is_sum = inst && depth > 0 && (inst->op == OP_add || inst->op == OP_sub);
    return is_sum && (has_term(inst->args[0], e, depth - 1) || has_term(inst->args[1], e, depth - 1));
}

/* Is it a quotient by a sum with that in it, or a product with one, or may it be? */
static bool is_divided_by(const Val *x, const Inst *e, int depth) {
    const Inst *inst = log_operand(x);
    if (!inst || depth == 0) return false;
    switch ((Op)inst->op) {
    case OP_div:
    case OP_ratio:
        return has_term(inst->args[1], e, TERMS_DEEP) || is_divided_by(inst->args[0], e, depth - 1);
    case OP_neg: return is_divided_by(inst->args[0], e, depth - 1);
    case OP_mul:
    case OP_scale:
    case OP_select:
        return is_divided_by(inst->args[inst->nargs - 2], e, depth - 1) ||
               is_divided_by(inst->args[inst->nargs - 1], e, depth - 1);
    case OP_if:
        for (int i = 0; i < inst->nregions; i++) {
            const Inst *end = inst->regions[i]->last;
            if (end->op == OP_yield && is_divided_by(end->args[x->index], e, depth - 1)) return true;
        }
        return false;
    default: return false;
    }
}

static bool is_product(const Inst *inst) { return inst->op == OP_mul || inst->op == OP_scale; }

/* The operand that is such an exponential; -1: none. */
static int exponential_factor(const Tangents *t, const Inst *inst) {
    for (int i = 0; i < 2; i++)
        if (is_exponential(inst->args[i]) && diff(t, inst->args[i]) &&
            is_divided_by(inst->args[1 - i], exponential(inst->args[i]), TERMS_DEEP))
            return i;
    return -1;
}

static Val *of_product(const Tangents *t, const Inst *inst, Val *y) {
    int factor = exponential_factor(t, inst);
    Val *a[2], *d[2];
    for (int i = 0; i < 2; i++) {
        a[i] = primal(t, inst->args[i]);
        d[i] = i == factor ? NULL : diff(t, inst->args[i]);
    }
    Val *of_exponent = exponent(t, inst->args[factor]),
        *rest = build_differential(t->b, (Op)inst->op, a, d, y);
    if (!of_exponent) return rest;
    Val *change = build_binary(t->b, OP_mul, y, of_exponent);
    return rest ? build_sum(t->b, rest, change) : change;
}

/* ---- entries */

static bool has_factors_below(const Tangents *t, const Inst *div) {
    const Val *v = div->args[1];
    if (has_factors(t, v, PRODUCTS_DEEP)) return true;
    return t->forward ? has_exponential(v, TERMS_DEEP) : has_moving_exponential(t, v, TERMS_DEEP);
}

bool ad_has_factors(const Tangents *t, const Inst *inst) {
    if (inst->op == OP_div) return has_factors_below(t, inst);
    if (is_product(inst)) return exponential_factor(t, inst) >= 0;
    return log_scale(inst) != 0 && has_log_factors(inst->args[0], LOG_FACTORS_DEEP);
}

Val *ad_factors_differential(const Tangents *t, const Inst *inst, Val *y) {
    if (inst->op == OP_div) return of_quotient(t, inst, y);
    return is_product(inst) ? of_product(t, inst, y) : of_log(t, inst);
}
