/* Types, rounding, and the inputs of all cases. */
#include "reference.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    int bits;
    bool is_signed;
} kinds[KIND_COUNT] = {
    [KIND_bool] = {"bool", 1, false},        [KIND_int8] = {"int8_t", 8, true},
    [KIND_uint8] = {"uint8_t", 8, false},    [KIND_int16] = {"int16_t", 16, true},
    [KIND_uint16] = {"uint16_t", 16, false}, [KIND_int] = {"int", 32, true},
    [KIND_uint] = {"uint", 32, false},       [KIND_int64] = {"int64_t", 64, true},
    [KIND_uint64] = {"uint64_t", 64, false}, [KIND_half] = {"half", 16, true},
    [KIND_float] = {"float", 32, true},      [KIND_double] = {"double", 64, true},
};

const char *kind_name(Kind kind) { return kinds[kind].name; }
int kind_bits(Kind kind) { return kinds[kind].bits; }
bool kind_is_float(Kind kind) { return kind >= KIND_half; }
bool kind_is_signed(Kind kind) { return kinds[kind].is_signed; }

int shape_lanes(Shape shape) { return (shape.rows ? shape.rows : 1) * (shape.columns ? shape.columns : 1); }

/* ---- rounding */

typedef struct Format {
    int digits, least,
        greatest; /* bits of a significand; exponents of the least and the greatest normal number */
} Format;

static Format format_of(Kind kind) {
    if (kind == KIND_half) return (Format){11, -14, 15};
    return kind == KIND_float ? (Format){24, -126, 127} : (Format){53, -1022, 1023};
}

Real unit_of(Kind kind, Real x) {
    if (!kind_is_float(kind)) return 1;
    Format format = format_of(kind);
    int exponent = x == 0 || !isfinite(x) ? format.least : ilogbl(x);
    if (exponent < format.least) exponent = format.least;
    if (exponent > format.greatest) exponent = format.greatest;
    return ldexpl(1, exponent - format.digits + 1);
}

Real round_to(Kind kind, Real x) {
    if (!kind_is_float(kind) || x == 0 || !isfinite(x)) return x;
    Format format = format_of(kind);
    Real unit = unit_of(kind, x), rounded = rintl(x / unit) * unit;
    if (fabsl(rounded) >= ldexpl(1, format.greatest + 1)) return copysignl(INFINITY, x);
    return rounded == 0 ? copysignl(0, x) : rounded;
}

uint64_t bits_of(Real x) { return x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x; }

Real wrap_to(Kind kind, uint64_t x) {
    int unused = 64 - kind_bits(kind);
    if (!kind_is_signed(kind)) return (Real)(x << unused >> unused);
    uint64_t sign = (uint64_t)1 << (kind_bits(kind) - 1);
    x = x << unused >> unused;
    return x & sign ? -(Real)(~x << unused >> unused) - 1 : (Real)x;
}

Real from_transport(Kind kind, uint64_t word) {
    if (!kind_is_float(kind)) return kind_is_signed(kind) ? (Real)(int64_t)word : (Real)word;
    double real;
    memcpy(&real, &word, sizeof real);
    return real;
}

uint64_t to_transport(Kind kind, Real x) {
    if (!kind_is_float(kind)) return bits_of(x);
    double real = (double)x;
    uint64_t word;
    memcpy(&word, &real, sizeof word);
    return word;
}

/* ---- bits: half by way of its definition */

static uint64_t half_bits(Real x) {
    uint64_t sign = signbit(x) ? 0x8000 : 0;
    x = round_to(KIND_half, fabsl(x));
    if (isnan(x)) return sign | 0x7e00;
    if (isinf(x)) return sign | 0x7c00;
    if (x < ldexpl(1, -14)) return sign | (uint64_t)ldexpl(x, 24);
    int exponent = ilogbl(x);
    return sign | (uint64_t)(exponent + 15) << 10 | ((uint64_t)ldexpl(x, 10 - exponent) & 1023);
}

static Real half_value(uint64_t bits) {
    int exponent = (int)(bits >> 10 & 31);
    Real digits = (Real)(bits & 1023), size;
    if (exponent == 31) size = digits > 0 ? NAN : INFINITY;
    else size = exponent ? ldexpl(1024 + digits, exponent - 25) : ldexpl(digits, -24);
    return bits & 0x8000 ? -size : size;
}

uint64_t real_bits(Kind kind, Real x) {
    if (kind == KIND_half) return half_bits(x);
    if (kind == KIND_double) return to_transport(kind, x);
    if (kind != KIND_float) return bits_of(x) & ~(uint64_t)0 >> (64 - kind_bits(kind));
    float real = (float)x;
    uint32_t word;
    memcpy(&word, &real, sizeof word);
    return word;
}

Real real_of(Kind kind, uint64_t bits) {
    if (kind == KIND_half) return half_value(bits);
    if (kind == KIND_double) return from_transport(kind, bits);
    if (kind != KIND_float) return wrap_to(kind, bits);
    uint32_t word = (uint32_t)bits;
    float real;
    memcpy(&real, &word, sizeof real);
    return real;
}

/* ---- inputs */

static uint64_t random_bits(uint64_t seed) {
    seed += 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return seed ^ seed >> 31;
}

static Real special_real(Kind kind, uint64_t which) {
    Format format = format_of(kind);
    Real least = ldexpl(1, format.least - format.digits + 1), normal = ldexpl(1, format.least),
         greatest = ldexpl(2, format.greatest) - ldexpl(1, format.greatest - format.digits + 1),
         step = ldexpl(1, 1 - format.digits);
    const Real values[] = {
        0,        1,   2,     3,      4,        0.5L, 1.5L, 2.5L, 0.25L, 10,    100,   1 + step, 1 - step / 2,
        INFINITY, NAN, least, normal, greatest, 7,    31,   32,   33,    1e-3L, 0.75L, 127,      128};
    Real value = round_to(kind, values[which / 2 % (sizeof values / sizeof *values)]);
    return which & 1 ? -value : value;
}

static Real special_integer(Kind kind, uint64_t which) {
    uint64_t top = (uint64_t)1 << (kind_bits(kind) - 1);
    const uint64_t values[] = {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 64, 100, top, top - 1, top + 1, top >> 1};
    uint64_t value = values[which / 2 % (sizeof values / sizeof *values)];
    return wrap_to(kind, which & 1 ? 0 - value : value);
}

const char *pool_name(Pool pool) {
    static const char *const names[POOL_COUNT] = {"wild", "tame", "unit", "above"};
    return names[pool];
}

static Real tame_value(Kind kind, uint64_t bits) {
    if (!kind_is_float(kind))
        return wrap_to(kind, kind == KIND_bool ? bits : bits % 8 - (kind_is_signed(kind) ? 4 : 0));
    return round_to(kind, (Real)(int32_t)(bits >> 32) / 2147483648.0L * 4);
}

static Real anything(Kind kind, uint64_t bits) {
    if (!kind_is_float(kind)) return wrap_to(kind, bits);
    Format format = format_of(kind);
    int span = format.greatest - format.least + format.digits;
    Real value = ldexpl(1 + (Real)(bits >> 40) / 16777216.0L,
                        (int)(bits % (uint64_t)span) + format.least - format.digits + 1);
    return round_to(kind, bits >> 39 & 1 ? -value : value);
}

Real pool_value(Kind kind, Pool pool, int item, int lane) {
    uint64_t bits = random_bits((uint64_t)item * 1009 + (uint64_t)lane * 7919 + (uint64_t)kind * 104729),
             rest = random_bits(bits);
    Real tame = tame_value(kind, rest);
    if (pool == POOL_tame || (pool != POOL_wild && !kind_is_float(kind))) return tame;
    if (pool == POOL_unit) return round_to(kind, fabsl(tame) / 4);
    if (pool == POOL_above) return round_to(kind, fabsl(tame) + 1);
    switch (bits % 3) {
    case 0: return kind_is_float(kind) ? special_real(kind, rest) : special_integer(kind, rest);
    case 1: return tame;
    default: return anything(kind, rest);
    }
}
