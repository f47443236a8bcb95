/* What operations on numbers give: the one place that computes them in C, for constants that are folded and
 * for the interpreter.
 *
 * Values of floats are computed in double, and rounded once to the type by the caller; that is exact for the
 * basic operations, because a double has more than twice the digits of a float. Integers are kept as
 * type/number.c keeps them, and wrapped by the caller. */
#include "ir.h"

#include <math.h>

/* ---- floats */

static bool compute_table(Op op, double a, double b, double c, double *result) {
    bool known = true;
    double value = 0;
    switch (op) {
#define NONE (known = false, 0)
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning)                 \
    case OP_##name:                                                                                          \
        value = (float_value);                                                                               \
        break;
#include "ir/ops.def"
#undef OP
#undef NONE
    case OP_COUNT: return false;
    }
    (void)a, (void)b, (void)c;
    *result = value;
    return known;
}

bool compute_float(Op op, const Type *type, const double x[3], double *result) {
    bool chooses = op == OP_min || op == OP_max;
    if (op == OP_fma && type->kind == TYPE_float) { /* through double it would round twice */
        *result = (double)fmaf((float)x[0], (float)x[1], (float)x[2]);
        return true;
    }
    if (chooses && x[0] == x[1]) { /* -0.0 is less than 0.0 */
        *result = !signbit(x[0]) == (op == OP_max) ? x[0] : x[1];
        return true;
    }
    return compute_table(op, x[0], x[1], x[2], result);
}

double compute_ldexp(double a, int64_t exponent) {
    int limited = exponent > 10000 ? 10000 : exponent < -10000 ? -10000 : (int)exponent;
    return ldexp(a, limited);
}

double compute_round(const Type *type, double value) {
    if (type->kind == TYPE_float) return (double)(float)value;
    if (type->kind == TYPE_half) return (double)half_to_float(half_from_double(value));
    return value;
}

/* ---- integers and bool */

typedef struct Integers {
    const Type *type; /* of the operands */
    int64_t a, b;
} Integers;

static bool compute_table_int(Op op, Integers x, int64_t *result) {
    const bool SIGNED = type_is_signed(x.type);
    const int64_t a = x.a, b = x.b;
    const uint64_t u = (uint64_t)a, v = (uint64_t)b;
    bool known = true;
    int64_t value = 0;
    switch (op) {
#define NONE (known = false, 0)
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning)                 \
    case OP_##name:                                                                                          \
        value = (int_value);                                                                                 \
        break;
#include "ir/ops.def"
#undef OP
#undef NONE
    case OP_COUNT: return false;
    }
    *result = value;
    return known;
}

static int64_t count_bits(uint64_t bits) {
    int64_t n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

static int64_t highest_bit(Integers x) {
    uint64_t bits = type_is_signed(x.type) && x.a < 0 ? ~(uint64_t)x.a : number_bits(x.a, x.type);
    int64_t at = -1;
    for (; bits; bits >>= 1) at++;
    return at;
}

static int64_t lowest_bit(uint64_t bits) {
    int64_t at = bits ? 0 : -1;
    for (; bits && !(bits & 1); bits >>= 1) at++;
    return at;
}

static int64_t reverse_bits(Integers x) {
    uint64_t bits = number_bits(x.a, x.type), reversed = 0;
    for (int i = type_bits(x.type); i; i--, bits >>= 1) reversed = reversed << 1 | (bits & 1);
    return (int64_t)reversed;
}

bool compute_int(Op op, const Type *type, int64_t a, int64_t b, int64_t *result) {
    Integers x = {type, a, b};
    switch (op) {
    case OP_div: *result = number_divide(x.a, x.b, x.type); return true;
    case OP_rem: *result = number_remainder(x.a, x.b, x.type); return true;
    case OP_min: *result = number_less(x.a, x.b, x.type) ? x.a : x.b; return true;
    case OP_max: *result = number_less(x.a, x.b, x.type) ? x.b : x.a; return true;
    case OP_abs:
        *result = x.a < 0 && type_is_signed(x.type) ? (int64_t)(0 - (uint64_t)x.a) : x.a;
        return true;
    case OP_shl: *result = number_shift_left(x.a, x.b, x.type); return true;
    case OP_shr: *result = number_shift_right(x.a, x.b, x.type); return true;
    case OP_countbits: *result = count_bits(number_bits(x.a, x.type)); return true;
    case OP_firstbithigh: *result = highest_bit(x); return true;
    case OP_firstbitlow: *result = lowest_bit(number_bits(x.a, x.type)); return true;
    case OP_reversebits: *result = reverse_bits(x); return true;
    case OP_not: *result = x.type->kind == TYPE_bool ? !x.a : ~x.a; return true;
    default: return compute_table_int(op, x, result);
    }
}

/* ---- from one to the other */

int64_t compute_integer(const Type *type, double value) {
    int bits = type_bits(type);
    bool is_signed = type_is_signed(type);
    double limit = ldexp(1, is_signed ? bits - 1 : bits), low = is_signed ? -limit : 0;
    if (isnan(value)) return 0;
    if (value <= low) return is_signed ? (int64_t)((uint64_t)1 << (bits - 1)) * (bits == 64 ? 1 : -1) : 0;
    if (value >= limit) return is_signed ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : -1;
    return is_signed ? (int64_t)value : (int64_t)(uint64_t)value;
}

double compute_real(const Type *from, const Type *to, int64_t value) {
    bool is_unsigned = from->kind == TYPE_uint64;
    if (to->kind == TYPE_float) /* directly: through double it would round twice */
        return (double)(is_unsigned ? (float)(uint64_t)value : (float)value);
    return is_unsigned ? (double)(uint64_t)value : (double)value;
}
