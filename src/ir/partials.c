/* The differential of an operation, by the partial derivatives of its row in ops.def: linear in the
 * differentials of its operands, NULL being zero. */
#include "ir.h"

#include <math.h>

/* ---- linear arithmetic */

static bool is_minus(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_neg; }

/* Nobody wrote an order of these sums. Differences stay what they are: of those in any order LLVM makes sums,
 * with one operation more for the minus. */
static Val *dadd(Builder *b, Val *x, Val *y) {
    if (!x || !y) return x ? x : y;
    return is_minus(x) || is_minus(y) ? build_binary(b, OP_add, x, y) : build_sum(b, x, y);
}

static Val *dneg(Builder *b, Val *x) { return x ? build_unary(b, OP_neg, x) : NULL; }

static Val *dsub(Builder *b, Val *x, Val *y) {
    return !y ? x : !x ? dneg(b, y) : build_binary(b, OP_sub, x, y);
}

static bool is_minus_one(const Val *v) {
    return val_is_const(v) && type_is_float(v->type) && v->real == -1.0;
}

static Val *dscale(Builder *b, Val *factor, Val *d) {
    if (!d || val_is_one(factor)) return d;
    if (is_minus_one(factor)) return dneg(b, d);
    if (val_is_const(factor) && val_is_zero(factor)) return NULL;
    return build_binary(b, OP_mul, factor, d);
}

/* ---- scale and ratio, of which zero stays zero: where one is 0 because something else was chosen, so is its derivative. There the factor that is
 * not finite, or the divisor that makes it so, is replaced. */

static Val *real(Builder *b, const Type *type, double value) {
    return ir_const_real(b->func->module, type, value);
}

static Val *is_zero(Builder *b, Val *v) { return build_binary(b, OP_eq, v, real(b, v->type, 0)); }

static Val *tame_factor(Builder *b, Val *x, Val *y) {
    Val *wild = build_unary(b, OP_isnan, build_binary(b, OP_sub, x, x));
    Val *unused = build_binary(b, OP_and, is_zero(b, y), wild);
    return build_select(b, unused, real(b, x->type, 0), x);
}

static Val *tame_divisor(Builder *b, Val *x, Val *y) {
    Val *is_none = is_zero(b, y);
    Val *is_nan = build_unary(b, OP_isnan, y);
    Val *wild = build_binary(b, OP_or, is_none, is_nan);
    Val *unused = build_binary(b, OP_and, is_zero(b, x), wild);
    return build_select(b, unused, real(b, y->type, INFINITY), y);
}

static Val *dscaled(Builder *b, Val *const *a, Val *const *d) {
    Val *first = d[0] ? build_binary(b, OP_scale, d[0], a[1]) : NULL;
    return dadd(b, first, d[1] ? build_binary(b, OP_scale, tame_factor(b, a[0], a[1]), d[1]) : NULL);
}

/* Of a square twice one term, so that its reverse doubles what all the squares of a sum are given, once. */
static Val *dproduct(Builder *b, Val *const *a, Val *const *d) {
    Val *first = d[0] ? dscale(b, a[1], d[0]) : NULL;
    bool is_square = a[0] == a[1] && d[0] == d[1];
    return dadd(b, first, is_square ? first : d[1] ? dscale(b, a[0], d[1]) : NULL);
}

/* ---- quotients */

enum { DEPTH_OF_SUMS = 6 };

/* Is it so large so soon that it may be infinite where what is divided by it is nothing unusual? */
static bool is_explosive(const Val *v, int depth) {
    if (v->kind != VAL_inst || depth == 0) return false;
    switch ((Op)v->inst->op) {
    case OP_exp:
    case OP_exp2:
    case OP_expm1:
    case OP_pow:
    case OP_sinh:
    case OP_cosh: return true;
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_fma:
    case OP_neg:
    case OP_convert:
        for (int i = 0; i < v->inst->nargs; i++)
            if (is_explosive(v->inst->args[i], depth - 1)) return true;
        return false;
    case OP_if:
    case OP_loop:
        for (int i = v->inst->op == OP_loop; i < v->inst->nregions; i++) {
            const Inst *end = v->inst->regions[i]->last;
            if (end->op == OP_yield && is_explosive(end->args[v->index], depth - 1)) return true;
        }
        return false;
    default: return false;
    }
}

/* What was divided by something infinite is 0 and does not change, though dv is infinite, too: 1 / (1 +
 * exp(x)) is flat there. */
Val *build_unless_infinite(Builder *b, Val *v, Val *change) {
    if (!change || !is_explosive(v, DEPTH_OF_SUMS)) return change;
    Val *size = build_unary(b, OP_abs, v);
    Val *infinite = real(b, v->type, INFINITY);
    Val *is_infinite = build_binary(b, OP_eq, size, infinite);
    return build_select(b, is_infinite, real(b, v->type, 0), change);
}

/* (du - y * dv) / v: one division instead of two. */
Val *build_quotient_differential(Builder *b, Val *v, Val *du, Val *ydv) {
    Val *top = dsub(b, du, build_unless_infinite(b, v, ydv));
    return top ? build_quotient(b, OP_div, top, v) : NULL;
}

static Val *dquotient(Builder *b, Op op, Val *const *a, Val *const *d, Val *y) {
    if (op == OP_div) return build_quotient_differential(b, a[1], d[0], dscale(b, y, d[1]));
    Val *top = dsub(b, d[0], d[1] ? build_binary(b, OP_scale, d[1], y) : NULL);
    return top ? build_quotient(b, op, top, tame_divisor(b, a[0], a[1])) : NULL;
}

/* ---- by the table */

#define A           a[0]
#define B           a[1]
#define C           a[2]
#define Y           y
#define ONE         real(b, y->type, 1)
#define MINUS_ONE   real(b, y->type, -1)
#define DIV(u, v)   build_binary(b, OP_div, u, v)
#define LDEXP(u, v) build_binary(b, OP_ldexp, u, v)
#define NEG(u)      build_unary(b, OP_neg, u)
#define TRUNC(u)    build_unary(b, OP_trunc, u)
#define TERM(i, factor)                                                                                      \
    if (d[i]) sum = dadd(b, sum, dscale(b, factor, d[i]));
#define P1(u)       TERM(0, u)
#define P2(u, v)    TERM(0, u) TERM(1, v)
#define P3(u, v, w) TERM(0, u) TERM(1, v) TERM(2, w)
#define QUOTIENT    sum = dquotient(b, op, a, d, y);
#define MULTIPLIED  sum = dproduct(b, a, d);
#define SCALED      sum = dscaled(b, a, d);
#define NO_PARTIALS
#define OP(name, args, results, properties, cost, float_value, int_value, rule, meaning)                     \
    case OP_##name: {                                                                                        \
        rule                                                                                                 \
    } break;

Val *build_differential(Builder *b, Op op, Val *const *a, Val *const *d, Val *y) {
    Val *sum = NULL;
    switch (op) {
#include "ir/ops.def"
    case OP_COUNT: break;
    }
    return sum;
}
