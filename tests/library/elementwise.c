/* Functions and operators on floating types that work component by component. */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Row {
    const char *name;
    const char *code; /* NULL: a call of `name` with all arguments, assigned to y */
    int arity;
    Real (*value)(Kind kind, const Real *x, Real *scale);
    Real (*second)(Kind kind, const Real *x, Real *scale); /* of z; NULL: there is none */
    Kind result, second_result;                            /* KIND_COUNT: that of the arguments */
    Kind last;                                             /* of the last argument; KIND_COUNT: likewise */
    Real half_tolerance, tolerance;
    bool any_zero;
} Row;

#define SAME    KIND_COUNT
#define EXACT   0, 0
#define ROUNDED 0.5005L, 0.5005L /* long double has at least 11 bits more than the result */
#define LIBRARY 0.51L, 2.5L
#define UNARY(name, expression)                                                                              \
    static Real ref_##name(Kind kind, const Real *v, Real *scale) {                                          \
        (void)kind, (void)scale;                                                                             \
        Real x = v[0];                                                                                       \
        return expression;                                                                                   \
    }
#define BINARY(name, expression)                                                                             \
    static Real ref_##name(Kind kind, const Real *v, Real *scale) {                                          \
        (void)kind, (void)scale;                                                                             \
        Real x = v[0], y = v[1];                                                                             \
        return expression;                                                                                   \
    }
#define TERNARY(name, expression)                                                                            \
    static Real ref_##name(Kind kind, const Real *v, Real *scale) {                                          \
        (void)kind, (void)scale;                                                                             \
        Real x = v[0], y = v[1], z = v[2];                                                                   \
        return expression;                                                                                   \
    }

static const Real pi = 3.14159265358979323846264338327950288L;

UNARY(sin, sinl(x))
UNARY(cos, cosl(x))
UNARY(tan, tanl(x))
UNARY(asin, asinl(x))
UNARY(acos, acosl(x))
UNARY(atan, atanl(x))
BINARY(atan2, atan2l(x, y))
UNARY(sinh, sinhl(x))
UNARY(cosh, coshl(x))
UNARY(tanh, tanhl(x))
UNARY(asinh, asinhl(x))
UNARY(acosh, acoshl(x))
UNARY(atanh, atanhl(x))
UNARY(radians, x / 180 * pi)
UNARY(degrees, x / pi * 180)
UNARY(exp, expl(x))
UNARY(exp2, exp2l(x))
UNARY(exp10, powl(10, x))
UNARY(log, logl(x))
UNARY(log2, log2l(x))
UNARY(log10, log10l(x))
BINARY(pow, powl(x, y))
UNARY(expm1, expm1l(x))
UNARY(log1p, log1pl(x))
UNARY(cbrt, cbrtl(x))
UNARY(asinpi, asinl(x) / pi)
UNARY(acospi, acosl(x) / pi)
UNARY(atanpi, atanl(x) / pi)
BINARY(atan2pi, atan2l(x, y) / pi)
BINARY(hypot, hypotl(x, y))
UNARY(erf, erfl(x))
UNARY(erfc, erfcl(x))
UNARY(sigmoid, 1 / (1 + expl(-x)))
UNARY(softplus, isnan(x) ? x : fmaxl(x, 0) + log1pl(expl(-fabsl(x))))
UNARY(relu, x > 0 ? x : 0)
UNARY(sqrt, sqrtl(x))
UNARY(rsqrt, 1 / sqrtl(x))
UNARY(rcp, 1 / x)
UNARY(floor, floorl(x))
UNARY(ceil, ceill(x))
UNARY(round, rintl(x))
UNARY(trunc, truncl(x))
UNARY(frac, x - floorl(x))
UNARY(abs, fabsl(x))
BINARY(min, fminl(x, y))
BINARY(max, fmaxl(x, y))
TERNARY(min3, fminl(fminl(x, y), z))
TERNARY(max3, fmaxl(fmaxl(x, y), z))
TERNARY(median3, fmaxl(fminl(x, y), fminl(fmaxl(x, y), z)))
BINARY(fdim, fdiml(x, y))
TERNARY(clamp, fminl(fmaxl(x, y), z))
UNARY(saturate, fminl(fmaxl(x, 0), 1))
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
BINARY(step, y >= x ? 1 : 0)
TERNARY(fma, fmal(x, y, z))
BINARY(fmod, fmodl(x, y))
BINARY(copysign, copysignl(x, y))

static Real next_half(Real x, Real y) {
    int exponent;
    if (x == 0) return copysignl(0x1p-24L, y);
    if (isinf(x)) return copysignl(65504, x);
    Real part = frexpl(x, &exponent);
    bool up = y > x, outward = up == (x > 0), edge = !outward && fabsl(part) == 0.5L;
    int unit = exponent - 11 - edge;
    Real next = x + (up ? 1 : -1) * ldexpl(1, unit < -24 ? -24 : unit);
    if (next == 0) return copysignl(0, x);
    return fabsl(next) > 65504 ? copysignl(INFINITY, x) : next;
}

static Real ref_nextafter(Kind kind, const Real *v, Real *scale) {
    (void)scale;
    Real x = v[0], y = v[1];
    if (isnan(x) || isnan(y)) return x + y;
    if (kind == KIND_float) return nextafterf((float)x, (float)y);
    if (kind == KIND_double) return nextafter((double)x, (double)y);
    return x == y ? y : next_half(x, y);
}
UNARY(isnan, isnan(x))
UNARY(isinf, isinf(x) != 0)
UNARY(isfinite, isfinite(x))
BINARY(add, x + y)
BINARY(subtract, x - y)
BINARY(multiply, x *y)
BINARY(divide, x / y)
UNARY(negate, -x)
BINARY(equal, x == y)
BINARY(unequal, x != y)
BINARY(less, x < y)
BINARY(less_equal, x <= y)
BINARY(greater, x > y)
BINARY(greater_equal, x >= y)
BINARY(ldexp, isfinite(x) && y != 0 ? ldexpl(x, (int)y) : x)
BINARY(ldexp_real, x *round_to(kind, exp2l(y)))

/* The nearest integer is taken off first, which is exact. */
static Real ref_sinpi(Kind kind, const Real *v, Real *scale) {
    (void)kind, (void)scale;
    Real n = rintl(v[0]), s = sinl(pi * (v[0] - n));
    return fmodl(n, 2) == 0 ? s : -s;
}
static Real ref_cospi(Kind kind, const Real *v, Real *scale) {
    (void)kind, (void)scale;
    Real n = rintl(v[0]), r = fabsl(v[0] - n), c = r < 0.25L ? cosl(pi * r) : sinl(pi * (0.5L - r));
    return fmodl(n, 2) == 0 ? c : -c;
}
static Real ref_tanpi(Kind kind, const Real *v, Real *scale) {
    return ref_sinpi(kind, v, scale) / ref_cospi(kind, v, scale);
}

/* The C library is exact to so many units of 1 where it is about 0. */
static Real ref_lgamma(Kind kind, const Real *v, Real *scale) {
    (void)kind;
    Real y = lgammal(v[0]);
    *scale = fmaxl(fabsl(y), 1);
    return y;
}

/* Those below round at every step, as the type does: what overflows on the way is infinite at the end. Steps
 * in double are taken in double: where long double has 64 bits, rounding to those first and then to 53 may
 * give the neighbour. */
static Real difference(Kind kind, Real x, Real y) {
    return kind == KIND_double ? (Real)((double)x - (double)y) : round_to(kind, x - y);
}
static Real product(Kind kind, Real x, Real y) {
    return kind == KIND_double ? (Real)((double)x * (double)y) : round_to(kind, x * y);
}
static Real quotient(Kind kind, Real x, Real y) {
    return kind == KIND_double ? (Real)((double)x / (double)y) : round_to(kind, x / y);
}
static Real ref_mad(Kind kind, const Real *v, Real *scale) {
    Real first = product(kind, v[0], v[1]);
    *scale = fmaxl(fabsl(first), fabsl(v[2]));
    return first + v[2];
}
static Real ref_lerp(Kind kind, const Real *v, Real *scale) {
    Real way = product(kind, v[2], difference(kind, v[1], v[0]));
    *scale = fmaxl(fabsl(way), fabsl(v[0]));
    return v[0] + way;
}
static Real ref_smoothstep(Kind kind, const Real *v, Real *scale) {
    (void)scale;
    Real t = quotient(kind, difference(kind, v[2], v[0]), difference(kind, v[1], v[0]));
    t = fminl(fmaxl(t, 0), 1);
    return t * t * (3 - 2 * t);
}

UNARY(modf, isinf(x) ? copysignl(0, x) : copysignl(x - truncl(x), x))
static Real ref_frexp(Kind kind, const Real *v, Real *scale) {
    (void)kind, (void)scale;
    int exponent;
    return isfinite(v[0]) ? frexpl(v[0], &exponent) : v[0];
}
static Real ref_exponent(Kind kind, const Real *v, Real *scale) {
    (void)kind, (void)scale;
    int exponent = 0;
    if (isfinite(v[0])) frexpl(v[0], &exponent);
    return exponent;
}

#define F(name, arity, function, ...)                                                                        \
    { name, NULL, arity, ref_##function, NULL, SAME, SAME, SAME, __VA_ARGS__ }
#define TEST(name, function)                                                                                 \
    { name, NULL, 1, ref_##function, NULL, KIND_bool, SAME, SAME, EXACT, false }
#define OPERATOR(code, arity, function, ...)                                                                 \
    { code, "y = " code ";", arity, ref_##function, NULL, SAME, SAME, SAME, __VA_ARGS__ }
#define COMPARISON(code, function)                                                                           \
    { code, "y = " code ";", 2, ref_##function, NULL, KIND_bool, SAME, SAME, EXACT, false }

static const Row rows[] = {
    F("sin", 1, sin, LIBRARY, false),
    F("cos", 1, cos, LIBRARY, false),
    F("tan", 1, tan, LIBRARY, false),
    F("asin", 1, asin, LIBRARY, false),
    F("acos", 1, acos, LIBRARY, false),
    F("atan", 1, atan, LIBRARY, false),
    F("atan2", 2, atan2, LIBRARY, false),
    F("sinh", 1, sinh, LIBRARY, false),
    F("cosh", 1, cosh, LIBRARY, false),
    F("tanh", 1, tanh, LIBRARY, false),
    F("asinh", 1, asinh, LIBRARY, false),
    F("acosh", 1, acosh, LIBRARY, false),
    F("atanh", 1, atanh, LIBRARY, false),
    F("sinpi", 1, sinpi, 2.5L, 2.5L, true),
    F("cospi", 1, cospi, 2.5L, 2.5L, true),
    F("tanpi", 1, tanpi, 5, 5, true),
    F("asinpi", 1, asinpi, 2.5L, 2.5L, false),
    F("acospi", 1, acospi, 2.5L, 2.5L, false),
    F("atanpi", 1, atanpi, 2.5L, 2.5L, false),
    F("atan2pi", 2, atan2pi, 2.5L, 2.5L, false),
    F("radians", 1, radians, 1.01L, 1.01L, false),
    F("degrees", 1, degrees, 1.01L, 1.01L, false),
    F("exp", 1, exp, LIBRARY, false),
    F("exp2", 1, exp2, LIBRARY, false),
    F("exp10", 1, exp10, LIBRARY, false),
    F("log", 1, log, LIBRARY, false),
    F("log2", 1, log2, LIBRARY, false),
    F("log10", 1, log10, LIBRARY, false),
    F("expm1", 1, expm1, LIBRARY, false),
    F("log1p", 1, log1p, LIBRARY, false),
    F("cbrt", 1, cbrt, LIBRARY, false),
    F("hypot", 2, hypot, LIBRARY, false),
    F("erf", 1, erf, LIBRARY, false),
    F("erfc", 1, erfc, 0.51L, 3.5L, false),
    F("lgamma", 1, lgamma, 1, 8, false),
    F("sigmoid", 1, sigmoid, 4, 4, false),
    F("softplus", 1, softplus, 4, 4, false),
    F("relu", 1, relu, EXACT, false),
    F("pow", 2, pow, LIBRARY, false),
    F("powr", 2, pow, LIBRARY, false),
    F("sqrt", 1, sqrt, ROUNDED, false),
    F("rsqrt", 1, rsqrt, 1.5L, 1.5L, false),
    F("rcp", 1, rcp, ROUNDED, false),
    F("floor", 1, floor, EXACT, false),
    F("ceil", 1, ceil, EXACT, false),
    F("round", 1, round, EXACT, false),
    F("rint", 1, round, EXACT, false),
    F("trunc", 1, trunc, EXACT, false),
    F("frac", 1, frac, ROUNDED, false),
    F("fract", 1, frac, ROUNDED, false),
    F("abs", 1, abs, EXACT, false),
    F("fabs", 1, abs, EXACT, false),
    F("min", 2, min, EXACT, true),
    F("max", 2, max, EXACT, true),
    F("fmin", 2, min, EXACT, true),
    F("fmax", 2, max, EXACT, true),
    F("min3", 3, min3, EXACT, true),
    F("max3", 3, max3, EXACT, true),
    F("median3", 3, median3, EXACT, true),
    F("fmin3", 3, min3, EXACT, true),
    F("fmax3", 3, max3, EXACT, true),
    F("fmedian3", 3, median3, EXACT, true),
    F("fdim", 2, fdim, ROUNDED, false),
    F("clamp", 3, clamp, EXACT, true),
    F("saturate", 1, saturate, EXACT, true),
    F("step", 2, step, EXACT, false),
    F("smoothstep", 3, smoothstep, 4, 4, false),
    F("lerp", 3, lerp, 1.01L, 1.01L, true),
    F("mad", 3, mad, 1.01L, 1.01L, true),
    F("fma", 3, fma, ROUNDED, false),
    F("fmod", 2, fmod, EXACT, false),
    F("copysign", 2, copysign, EXACT, false),
    TEST("isnan", isnan),
    TEST("isinf", isinf),
    TEST("isfinite", isfinite),
    {"sign", NULL, 1, ref_sign, NULL, KIND_int, SAME, SAME, EXACT, false},
    {"sincos", "sincos(a, y, z);", 1, ref_sin, ref_cos, SAME, SAME, SAME, LIBRARY, false},
    {"sincospi", "sincospi(a, y, z);", 1, ref_sinpi, ref_cospi, SAME, SAME, SAME, 2.5L, 2.5L, true},
    {"modf", "y = modf(a, z);", 1, ref_modf, ref_trunc, SAME, SAME, SAME, EXACT, false},
    {"frexp", "y = frexp(a, z);", 1, ref_frexp, ref_exponent, SAME, KIND_int, SAME, EXACT, false},
    {"ldexp", NULL, 2, ref_ldexp, NULL, SAME, SAME, KIND_int, ROUNDED, false},
    OPERATOR("a + b", 2, add, ROUNDED, false),
    OPERATOR("a - b", 2, subtract, ROUNDED, false),
    OPERATOR("a * b", 2, multiply, ROUNDED, false),
    OPERATOR("a / b", 2, divide, ROUNDED, false),
    OPERATOR("a % b", 2, fmod, EXACT, false),
    OPERATOR("-a", 1, negate, EXACT, false),
    COMPARISON("a == b", equal),
    COMPARISON("a != b", unequal),
    COMPARISON("a < b", less),
    COMPARISON("a <= b", less_equal),
    COMPARISON("a > b", greater),
    COMPARISON("a >= b", greater_equal),
};

/* Not defined on matrices. */
static const Row vector_rows[] = {
    {"frexp", "y = frexp(a, z);", 1, ref_frexp, ref_exponent, SAME, SAME, SAME, EXACT, false},
    F("ldexp", 2, ldexp_real, 1.51L, 3.5L, false),
    F("nextafter", 2, nextafter, EXACT, false),
};

static void compute(const Case *c, const Real *in, Real *out, Real *scale) {
    const Row *row = c->row;
    int lanes = shape_lanes(c->outs[0]);
    for (int lane = 0; lane < lanes; lane++) {
        Real args[MAX_INS] = {0};
        for (int i = 0; i < row->arity; i++) args[i] = in[i * lanes + lane];
        out[lane] = row->value(c->ins[0].kind, args, &scale[lane]);
        if (row->second) out[lanes + lane] = row->second(c->ins[0].kind, args, &scale[lanes + lane]);
    }
}

static void write_call(Case *c, int arity) {
    static const char *const arguments[] = {"", "a", "a, b", "a, b, c"};
    snprintf(c->code, sizeof c->code, "y = %s(%s);", c->name, arguments[arity]);
}

static void add_row(const Row *row, Shape shape, AddCase add, void *user) {
    Kind kind = shape.kind;
    Case c = {
        .name = row->name, .nins = row->arity, .nouts = row->second ? 2 : 1, .compute = compute, .row = row};
    if (row->code) snprintf(c.code, sizeof c.code, "%s", row->code);
    else write_call(&c, row->arity);
    for (int i = 0; i < row->arity; i++) c.ins[i] = shape;
    if (row->last != SAME) c.ins[row->arity - 1].kind = row->last;
    c.outs[0] = c.outs[1] = shape;
    if (row->result != SAME) c.outs[0].kind = row->result;
    if (row->second_result != SAME) c.outs[1].kind = row->second_result;
    c.tolerance = kind == KIND_half ? row->half_tolerance : row->tolerance;
    c.any_zero = row->any_zero;
    c.constant = !shape.columns;
    add(user, &c);
}

/* float in all shapes, the others in one of each. */
void add_elementwise_cases(AddCase add, void *user) {
    static const int shapes[][2] = {{0, 0}, {0, 3}, {2, 3}, {0, 2}, {0, 4}, {4, 4}};
    for (int kind = KIND_half; kind <= KIND_double; kind++)
        for (int s = 0; s < (kind == KIND_float ? 6 : 3); s++) {
            Shape shape = {(Kind)kind, shapes[s][0], shapes[s][1]};
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) add_row(&rows[i], shape, add, user);
            for (size_t i = 0; i < sizeof vector_rows / sizeof *vector_rows && !shape.rows; i++)
                add_row(&vector_rows[i], shape, add, user);
        }
}
