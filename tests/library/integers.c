/* Integers: functions and operators component by component, conversions between all types, bits of floating
 * types. */
#include "reference.h"

#include <math.h>
#include <stdio.h>

/* ---- functions and operators; both words hold the arguments, extended as their type says */

typedef struct Row {
    const char *code;
    int arity;
    uint64_t (*value)(Kind kind, const uint64_t *x);
    Kind result; /* KIND_COUNT: that of the arguments */
    bool only_vectors;
} Row;

static bool less(Kind kind, uint64_t a, uint64_t b) {
    return kind_is_signed(kind) ? (int64_t)a < (int64_t)b : a < b;
}
static uint64_t lesser(Kind kind, uint64_t a, uint64_t b) { return less(kind, b, a) ? b : a; }
static uint64_t greater(Kind kind, uint64_t a, uint64_t b) { return less(kind, a, b) ? b : a; }
static uint64_t mask_of(Kind kind) { return ~(uint64_t)0 >> (64 - kind_bits(kind)); }

#define INTEGER(name, expression)                                                                            \
    static uint64_t int_##name(Kind kind, const uint64_t *x) {                                               \
        (void)kind;                                                                                          \
        return (uint64_t)(expression);                                                                       \
    }
INTEGER(add, x[0] + x[1])
INTEGER(subtract, x[0] - x[1])
INTEGER(multiply, x[0] * x[1])
INTEGER(and, x[0] & x[1])
INTEGER(or, x[0] | x[1])
INTEGER(xor, x[0] ^ x[1])
INTEGER(not, ~x[0])
INTEGER(negate, 0 - x[0])
INTEGER(shl, x[0] << (x[1] & (uint64_t)(kind_bits(kind) - 1)))
INTEGER(abs, kind_is_signed(kind) && (int64_t)x[0] < 0 ? 0 - x[0] : x[0])
INTEGER(min, lesser(kind, x[0], x[1]))
INTEGER(max, greater(kind, x[0], x[1]))
INTEGER(min3, lesser(kind, lesser(kind, x[0], x[1]), x[2]))
INTEGER(max3, greater(kind, greater(kind, x[0], x[1]), x[2]))
INTEGER(median3, greater(kind, lesser(kind, x[0], x[1]), lesser(kind, greater(kind, x[0], x[1]), x[2])))
INTEGER(clamp, lesser(kind, greater(kind, x[0], x[1]), x[2]))
INTEGER(mad, x[0] * x[1] + x[2])
INTEGER(sign, less(kind, 0, x[0]) - less(kind, x[0], 0))
INTEGER(equal, x[0] == x[1])
INTEGER(unequal, x[0] != x[1])
INTEGER(less, less(kind, x[0], x[1]))
INTEGER(less_equal, !less(kind, x[1], x[0]))
INTEGER(greater, less(kind, x[1], x[0]))
INTEGER(greater_equal, !less(kind, x[0], x[1]))

static uint64_t int_divide(Kind kind, const uint64_t *x) {
    if (x[1] == 0) return ~(uint64_t)0;
    if (!kind_is_signed(kind)) return x[0] / x[1];
    return x[1] == ~(uint64_t)0 ? 0 - x[0] : (uint64_t)((int64_t)x[0] / (int64_t)x[1]);
}

static uint64_t int_remainder(Kind kind, const uint64_t *x) {
    return x[1] == 0 ? ~(uint64_t)0 : x[0] - int_divide(kind, x) * x[1];
}

static uint64_t int_shr(Kind kind, const uint64_t *x) {
    uint64_t count = x[1] & (uint64_t)(kind_bits(kind) - 1), shifted = x[0] >> count;
    bool negative = kind_is_signed(kind) && (int64_t)x[0] < 0;
    return negative && count ? shifted | ~(uint64_t)0 << (64 - count) : shifted;
}

static uint64_t int_countbits(Kind kind, const uint64_t *x) {
    uint64_t count = 0;
    for (uint64_t rest = x[0] & mask_of(kind); rest; rest >>= 1) count += rest & 1;
    return count;
}

static uint64_t int_firstbithigh(Kind kind, const uint64_t *x) {
    uint64_t value = kind_is_signed(kind) && (int64_t)x[0] < 0 ? ~x[0] : x[0], place = ~(uint64_t)0;
    for (uint64_t i = 0; i < 64 && value >> i; i++) place = i;
    return place;
}

static uint64_t int_firstbitlow(Kind kind, const uint64_t *x) {
    for (uint64_t i = 0; i < (uint64_t)kind_bits(kind); i++)
        if (x[0] >> i & 1) return i;
    return ~(uint64_t)0;
}

static uint64_t int_clz(Kind kind, const uint64_t *x) {
    uint64_t count = 0, bits = (uint64_t)kind_bits(kind);
    while (count < bits && !(x[0] >> (bits - 1 - count) & 1)) count++;
    return count;
}

static uint64_t int_ctz(Kind kind, const uint64_t *x) {
    uint64_t place = int_firstbitlow(kind, x);
    return place == ~(uint64_t)0 ? (uint64_t)kind_bits(kind) : place;
}

static uint64_t int_reversebits(Kind kind, const uint64_t *x) {
    uint64_t result = 0;
    for (int i = 0; i < kind_bits(kind); i++) result |= (x[0] >> i & 1) << (kind_bits(kind) - 1 - i);
    return result;
}

static uint64_t int_extract(Kind kind, const uint64_t *x) { /* 5 bits from the third on */
    uint64_t bits = x[0] >> 2 & 31;
    return kind_is_signed(kind) && bits & 16 ? bits | ~(uint64_t)31 : bits;
}
INTEGER(insert, (x[0] & ~(uint64_t)124) | (x[1] << 2 & 124))

#define SAME KIND_COUNT
static const Row rows[] = {
    {"a + b", 2, int_add, SAME, false},
    {"a - b", 2, int_subtract, SAME, false},
    {"a * b", 2, int_multiply, SAME, false},
    {"a / b", 2, int_divide, SAME, false},
    {"a % b", 2, int_remainder, SAME, false},
    {"a & b", 2, int_and, SAME, false},
    {"a | b", 2, int_or, SAME, false},
    {"a ^ b", 2, int_xor, SAME, false},
    {"~a", 1, int_not, SAME, false},
    {"-a", 1, int_negate, SAME, false},
    {"a << b", 2, int_shl, SAME, false},
    {"a >> b", 2, int_shr, SAME, false},
    {"a == b", 2, int_equal, KIND_bool, false},
    {"a != b", 2, int_unequal, KIND_bool, false},
    {"a < b", 2, int_less, KIND_bool, false},
    {"a <= b", 2, int_less_equal, KIND_bool, false},
    {"a > b", 2, int_greater, KIND_bool, false},
    {"a >= b", 2, int_greater_equal, KIND_bool, false},
    {"abs(a)", 1, int_abs, SAME, false},
    {"min(a, b)", 2, int_min, SAME, false},
    {"max(a, b)", 2, int_max, SAME, false},
    {"min3(a, b, c)", 3, int_min3, SAME, false},
    {"max3(a, b, c)", 3, int_max3, SAME, false},
    {"median3(a, b, c)", 3, int_median3, SAME, false},
    {"clamp(a, b, c)", 3, int_clamp, SAME, false},
    {"mad(a, b, c)", 3, int_mad, SAME, false},
    {"sign(a)", 1, int_sign, KIND_int, false},
    {"countbits(a)", 1, int_countbits, KIND_uint, true},
    {"firstbithigh(a)", 1, int_firstbithigh, KIND_uint, true},
    {"firstbitlow(a)", 1, int_firstbitlow, KIND_uint, true},
    {"clz(a)", 1, int_clz, KIND_uint, true},
    {"ctz(a)", 1, int_ctz, KIND_uint, true},
    {"reversebits(a)", 1, int_reversebits, SAME, true},
    {"bitfieldExtract(a, 2, 5)", 1, int_extract, SAME, true},
    {"bitfieldInsert(a, b, 2, 5)", 2, int_insert, SAME, true},
};

static void compute(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    const Row *row = c->row;
    int lanes = shape_lanes(c->outs[0]);
    for (int lane = 0; lane < lanes; lane++) {
        uint64_t args[MAX_INS] = {0};
        for (int i = 0; i < row->arity; i++) args[i] = bits_of(in[i * lanes + lane]);
        out[lane] = wrap_to(c->outs[0].kind, row->value(c->ins[0].kind, args));
    }
}

static void add_row(const Row *row, Shape shape, AddCase add, void *user) {
    Case c = {.name = row->code, .nins = row->arity, .nouts = 1, .compute = compute, .row = row};
    snprintf(c.code, sizeof c.code, "y = %s;", row->code);
    for (int i = 0; i < row->arity; i++) c.ins[i] = shape;
    c.outs[0] = shape;
    if (row->result != SAME) c.outs[0].kind = row->result;
    c.constant = !shape.columns;
    add(user, &c);
}

/* int and uint in all shapes, the others in some. */
static void add_rows(AddCase add, void *user) {
    static const int shapes[][2] = {{0, 0}, {0, 3}, {3, 2}, {0, 2}, {0, 4}};
    for (int kind = KIND_int8; kind <= KIND_uint64; kind++)
        for (int s = 0; s < (kind == KIND_int || kind == KIND_uint ? 5 : 3); s++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                Shape shape = {(Kind)kind, shapes[s][0], shapes[s][1]};
                if (!shape.rows || !rows[i].only_vectors) add_row(&rows[i], shape, add, user);
            }
}

/* ---- conversions */

static Real clamp_to(Kind kind, Real x) {
    if (isnan(x)) return 0;
    Real least = kind_is_signed(kind) ? -ldexpl(1, kind_bits(kind) - 1) : 0;
    Real greatest = ldexpl(1, kind_bits(kind) - kind_is_signed(kind)) - 1;
    return x < least ? least : x > greatest ? greatest : truncl(x);
}

static Real convert(Kind from, Kind to, Real x) {
    if (to == KIND_bool) return x != 0;
    if (kind_is_float(to)) return x;
    return kind_is_float(from) ? clamp_to(to, x) : wrap_to(to, bits_of(x));
}

static void compute_conversion(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    for (int i = 0; i < shape_lanes(c->outs[0]); i++)
        out[i] = convert(c->ins[0].kind, c->outs[0].kind, in[i]);
}

static void add_conversions(AddCase add, void *user) {
    static const char *const suffixes[] = {"", "3", "2x2"};
    static const int shapes[][2] = {{0, 0}, {0, 3}, {2, 2}};
    for (int from = 0; from < KIND_COUNT; from++)
        for (int to = 0; to < KIND_COUNT; to++)
            for (int s = 0; s < (from == KIND_float || to == KIND_float ? 3 : 2); s++) {
                Case c = {.name = "conversion",
                          .nins = 1,
                          .nouts = 1,
                          .compute = compute_conversion,
                          .constant = s == 0};
                c.ins[0] = (Shape){(Kind)from, shapes[s][0], shapes[s][1]};
                c.outs[0] = (Shape){(Kind)to, shapes[s][0], shapes[s][1]};
                snprintf(c.code, sizeof c.code, "y = (%s%s)a;", kind_name((Kind)to), suffixes[s]);
                add(user, &c);
            }
}

/* ---- bits */

typedef struct BitRow {
    const char *code;
    Kind from, to, second;
    int nins, nouts;
    uint64_t (*value)(const uint64_t *bits); /* from the bits of the inputs to those of all outputs */
} BitRow;

static uint64_t same(const uint64_t *bits) { return bits[0]; }
static uint64_t joined(const uint64_t *bits) { return bits[0] | bits[1] << 32; }

static uint64_t from_half(const uint64_t *bits) { return real_bits(KIND_float, real_of(KIND_half, bits[0])); }
static uint64_t to_half(const uint64_t *bits) { return real_bits(KIND_half, real_of(KIND_float, bits[0])); }

#define CAST(function, from, to)                                                                             \
    { "y = " function "(a);", KIND_##from, KIND_##to, KIND_##to, 1, 1, same }
static const BitRow bit_rows[] = {
    CAST("asuint", float, uint),
    CAST("asuint", int, uint),
    CAST("asuint", uint, uint),
    CAST("asint", float, int),
    CAST("asint", int, int),
    CAST("asint", uint, int),
    CAST("asfloat", float, float),
    CAST("asfloat", int, float),
    CAST("asfloat", uint, float),
    CAST("asuint16", half, uint16),
    CAST("asuint16", int16, uint16),
    CAST("asuint16", uint16, uint16),
    CAST("asint16", half, int16),
    CAST("asint16", int16, int16),
    CAST("asint16", uint16, int16),
    CAST("asfloat16", half, half),
    CAST("asfloat16", int16, half),
    CAST("asfloat16", uint16, half),
    {"y = asdouble(a, b);", KIND_uint, KIND_double, KIND_double, 2, 1, joined},
    {"asuint(a, y, z);", KIND_double, KIND_uint, KIND_uint, 1, 2, same},
    {"y = f16tof32(a);", KIND_uint, KIND_float, KIND_float, 1, 1, from_half},
    {"y = f32tof16(a);", KIND_float, KIND_uint, KIND_uint, 1, 1, to_half},
};

static void compute_bits(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    const BitRow *row = c->row;
    int lanes = shape_lanes(c->outs[0]);
    for (int lane = 0; lane < lanes; lane++) {
        uint64_t words[2] = {0};
        for (int i = 0; i < row->nins; i++) words[i] = real_bits(row->from, in[i * lanes + lane]);
        uint64_t result = row->value(words);
        out[lane] = real_of(row->to, result);
        if (row->nouts == 2) out[lanes + lane] = real_of(row->second, result >> 32);
    }
}

static void add_bits(AddCase add, void *user) {
    static const int shapes[][2] = {{0, 0}, {0, 2}, {0, 3}, {0, 4}, {2, 3}};
    for (size_t i = 0; i < sizeof bit_rows / sizeof *bit_rows; i++)
        for (int s = 0; s < 5; s++) {
            const BitRow *row = &bit_rows[i];
            bool on_matrices = kind_bits(row->from) == 32 && row->value == same;
            if (shapes[s][0] && !on_matrices) continue;
            Case c = {
                .name = "bits", .nins = row->nins, .nouts = row->nouts, .compute = compute_bits, .row = row};
            snprintf(c.code, sizeof c.code, "%s", row->code);
            for (int k = 0; k < row->nins; k++) c.ins[k] = (Shape){row->from, shapes[s][0], shapes[s][1]};
            c.outs[0] = (Shape){row->to, shapes[s][0], shapes[s][1]};
            c.outs[1] = (Shape){row->second, shapes[s][0], shapes[s][1]};
            c.constant = s == 0;
            add(user, &c);
        }
}

void add_integer_cases(AddCase add, void *user) {
    add_rows(add, user);
    add_conversions(add, user);
    add_bits(add, user);
}
