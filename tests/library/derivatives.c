/* The derivative rules of the prelude, against quotients of differences. The first half of the inputs is the point, the second
 * half the direction in which it moves; y is the value, z how it changes. Where a function is not smooth nearby, or the
 * quotient is not good enough, anything goes: tests/library/rules.slang has such points. */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef void (*Function)(int n, const Real *x, Real *y);

typedef struct Row {
    const char *name; /* of the rule, without __d_ */
    const char *code; /* NULL: a call of the rule with all arguments */
    int arity;
    Function function;
    int ninputs, noutputs; /* shapes by number: 0 scalars, 2..4 vectors, 22, 33, 44 matrices */
} Row;

#define UNARY(name, expression)                                                                              \
    static void f_##name(int n, const Real *v, Real *y) {                                                    \
        (void)n;                                                                                             \
        Real x = v[0];                                                                                       \
        *y = expression;                                                                                     \
    }
#define BINARY(name, expression)                                                                             \
    static void f_##name(int n, const Real *v, Real *y) {                                                    \
        (void)n;                                                                                             \
        *y = expression;                                                                                     \
    }
UNARY(sin, sinl(x))
UNARY(cos, cosl(x))
UNARY(tan, tanl(x))
UNARY(asin, asinl(x))
UNARY(acos, acosl(x))
UNARY(atan, atanl(x))
UNARY(sinh, sinhl(x))
UNARY(cosh, coshl(x))
UNARY(tanh, tanhl(x))
UNARY(asinh, asinhl(x))
UNARY(acosh, acoshl(x))
UNARY(atanh, atanhl(x))
UNARY(exp, expl(x))
UNARY(exp2, exp2l(x))
UNARY(log, logl(x))
UNARY(log2, log2l(x))
UNARY(log10, log10l(x))
UNARY(sqrt, sqrtl(x))
UNARY(floor, floorl(x))
UNARY(ceil, ceill(x))
UNARY(round, rintl(x))
UNARY(trunc, truncl(x))
UNARY(abs, fabsl(x))
UNARY(rcp, 1 / x)
UNARY(rsqrt, 1 / sqrtl(x))
UNARY(saturate, fminl(fmaxl(x, 0), 1))
UNARY(modf, x - truncl(x))
UNARY(ldexp, x * 8)
BINARY(atan2, atan2l(v[0], v[1]))
BINARY(pow, powl(v[0], v[1]))
BINARY(min, fminl(v[0], v[1]))
BINARY(max, fmaxl(v[0], v[1]))
BINARY(copysign, copysignl(v[0], v[1]))
BINARY(clamp, fminl(fmaxl(v[0], v[1]), v[2]))

static void f_length(int n, const Real *v, Real *y) {
    Real sum = 0;
    for (int i = 0; i < n; i++) sum += v[i] * v[i];
    *y = sqrtl(sum);
}

static void f_normalize(int n, const Real *v, Real *y) {
    Real length;
    f_length(n, v, &length);
    for (int i = 0; i < n; i++) y[i] = v[i] / length;
}

static void f_inverse(int n, const Real *v, Real *y) { invert(v, n == 4 ? 2 : n == 9 ? 3 : 4, y); }

#define RULE(name, arity)                                                                                    \
    { #name, NULL, arity, f_##name, 0, 0 }
#define WITH(name, code, ins, out)                                                                           \
    { #name, code, 1, f_##name, ins, out }
static const Row rows[] = {
    RULE(sin, 1),
    RULE(cos, 1),
    RULE(tan, 1),
    RULE(asin, 1),
    RULE(acos, 1),
    RULE(atan, 1),
    RULE(sinh, 1),
    RULE(cosh, 1),
    RULE(tanh, 1),
    RULE(asinh, 1),
    RULE(acosh, 1),
    RULE(atanh, 1),
    RULE(exp, 1),
    RULE(exp2, 1),
    RULE(log, 1),
    RULE(log2, 1),
    RULE(log10, 1),
    RULE(sqrt, 1),
    RULE(floor, 1),
    RULE(ceil, 1),
    RULE(round, 1),
    RULE(trunc, 1),
    RULE(abs, 1),
    RULE(rcp, 1),
    RULE(rsqrt, 1),
    RULE(saturate, 1),
    RULE(atan2, 2),
    RULE(pow, 2),
    RULE(min, 2),
    RULE(max, 2),
    RULE(copysign, 2),
    RULE(clamp, 3),
    WITH(modf,
         "var whole = diffPair(a); let p = __d_modf(diffPair(a, b), whole); y = p.p; z = p.d + whole.d;", 0,
         0),
    WITH(ldexp, "let p = __d_ldexp(diffPair(a, b), 3); y = p.p; z = p.d;", 0, 0),
    WITH(length, "let p = __d_length(diffPair(a, b)); y = p.p; z = p.d;", 2, 0),
    WITH(length, "let p = __d_length(diffPair(a, b)); y = p.p; z = p.d;", 4, 0),
    WITH(normalize, "let p = __d_normalize(diffPair(a, b)); y = p.p; z = p.d;", 2, 2),
    WITH(normalize, "let p = __d_normalize(diffPair(a, b)); y = p.p; z = p.d;", 3, 3),
    WITH(inverse, "let p = __d_inverse(diffPair(a, b)); y = p.p; z = p.d;", 22, 22),
    WITH(inverse, "let p = __d_inverse(diffPair(a, b)); y = p.p; z = p.d;", 33, 33),
    WITH(inverse, "let p = __d_inverse(diffPair(a, b)); y = p.p; z = p.d;", 44, 44),
};

static void move(int n, const Real *x, const Real *direction, Real step, Real *out) {
    for (int i = 0; i < n; i++) out[i] = x[i] + step * direction[i];
}

/* By how much errors grow in an inverse, about. */
static Real condition(int n, const Real *in, const Real *out) {
    Real most = 0, most_out = 0;
    for (int i = 0; i < n; i++) most = fmaxl(most, fabsl(in[i])), most_out = fmaxl(most_out, fabsl(out[i]));
    return 1 + (Real)n * most * most_out;
}

/* Two steps of different size: how much they disagree tells how good the quotients are. */
static void compute(const Case *c, const Real *in, Real *out, Real *scale) {
    const Row *row = c->row;
    int n = 0, m = shape_lanes(c->outs[0]);
    for (int i = 0; i < c->nins; i++) n += shape_lanes(c->ins[i]);
    n /= 2;
    Real quotients[2][MAX_LANES], steps[2] = {1e-5L, 3e-6L};
    row->function(n, in, out);
    for (int k = 0; k < 2; k++) {
        Real point[MAX_LANES], above[MAX_LANES], below[MAX_LANES];
        move(n, in, in + n, steps[k], point);
        row->function(n, point, above);
        move(n, in, in + n, -steps[k], point);
        row->function(n, point, below);
        for (int i = 0; i < m; i++) quotients[k][i] = (above[i] - below[i]) / (2 * steps[k]);
    }
    Real sensitivity = row->function == f_inverse ? condition(n, in, out) : 1;
    for (int i = 0; i < m; i++) {
        Real a = quotients[0][i], b = quotients[1][i], size = fmaxl(fabsl(a), 1) * sensitivity;
        out[m + i] = b + (b - a) * 0.09L / 0.91L; /* as the square of the step goes to zero */
        scale[m + i] = size;
        scale[i] = sensitivity > 1 ? fabsl(out[i]) + sensitivity : 0;
        if (!(fabsl(a - b) < 1e-4L * size) || isnan(out[i])) scale[i] = scale[m + i] = INFINITY;
    }
}

static Shape shape_of(Kind kind, int number) { return (Shape){kind, number / 10, number % 10}; }

static void write_call(Case *c, const Row *row) {
    static const char *const arguments[] = {"", "diffPair(a, b)", "diffPair(a, c), diffPair(b, d)",
                                            "diffPair(a.x, b.x), diffPair(a.y, b.y), diffPair(a.z, b.z)"};
    if (row->code) snprintf(c->code, sizeof c->code, "%s", row->code);
    else
        snprintf(c->code, sizeof c->code, "let p = __d_%s(%s); y = p.p; z = p.d;", row->name,
                 arguments[row->arity]);
}

void add_derivative_cases(AddCase add, void *user) {
    for (int kind = KIND_float; kind <= KIND_double; kind++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const Row *row = &rows[i];
            Case c = {.name = row->name,
                      .nouts = 2,
                      .pool = POOL_tame,
                      .compute = compute,
                      .row = row,
                      .any_zero = true};
            c.nins = row->arity == 2 ? 4 : 2;
            for (int k = 0; k < c.nins; k++)
                c.ins[k] = shape_of((Kind)kind, row->arity == 3 ? 3 : row->ninputs);
            c.outs[0] = c.outs[1] = shape_of((Kind)kind, row->noutputs);
            c.tolerance = kind == KIND_float ? 400 : 5e7L;
            write_call(&c, row);
            add(user, &c);
        }
}
