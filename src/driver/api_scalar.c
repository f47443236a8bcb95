/* Scalars as text: what --bind, --set and --print of the command line are made of. */
#include "driver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- text to scalar */

typedef struct Integer {
    uint64_t magnitude;
    bool negative, hex;
} Integer;

static bool parse_integer(const char *text, Integer *out) {
    *out = (Integer){0};
    if (*text == '-' || *text == '+') out->negative = *text++ == '-';
    out->hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (out->hex) text += 2;
    const char *digits = out->hex ? "0123456789abcdefABCDEF" : "0123456789";
    size_t length = strlen(text);
    if (length == 0 || strspn(text, digits) != length) return false;
    errno = 0;
    out->magnitude = strtoull(text, NULL, out->hex ? 16 : 10);
    return errno == 0;
}

/* Hex names the bits: 0xffffffff is an int. */
static bool fits(Integer n, int bits, bool is_signed) {
    uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, most_signed = most >> 1;
    if (!is_signed) return n.negative ? n.magnitude == 0 : n.magnitude <= most;
    if (n.negative) return n.magnitude <= most_signed + 1;
    return n.magnitude <= (n.hex ? most : most_signed);
}

static SlopeStatus store_integer(const char *text, int bits, bool is_signed, void *out) {
    Integer n;
    if (!parse_integer(text, &n) || !fits(n, bits, is_signed)) return SLOPE_STATUS_misuse;
    uint64_t value = n.negative ? 0 - n.magnitude : n.magnitude;
    uint8_t low = (uint8_t)value;
    uint16_t half = (uint16_t)value;
    uint32_t word = (uint32_t)value;
    memcpy(out,
           bits == 8    ? (void *)&low
           : bits == 16 ? (void *)&half
           : bits == 32 ? (void *)&word
                        : &value,
           (size_t)bits / 8);
    return SLOPE_STATUS_ok;
}

static SlopeStatus store_bool(const char *text, void *out) {
    uint8_t value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!value && strcmp(text, "false") != 0 && strcmp(text, "0") != 0) return SLOPE_STATUS_misuse;
    memcpy(out, &value, 1);
    return SLOPE_STATUS_ok;
}

static double round_to(double value, SlopeTypeKind kind) {
    if (kind == SLOPE_TYPE_half) return (double)half_to_float(half_from_double(value));
    return kind == SLOPE_TYPE_float ? (double)(float)value : value;
}

static SlopeStatus store_float(const char *text, SlopeTypeKind kind, void *out) {
    const char *end;
    double value = number_parse(text, &end);
    if (end == text || *end || *text == ' ' || *text == '\t') return SLOPE_STATUS_misuse;
    bool may_be_infinite = strpbrk(text, "nN") != NULL; /* inf, nan */
    if (!may_be_infinite && isinf(round_to(value, kind))) return SLOPE_STATUS_misuse;
    uint16_t half = half_from_double(value);
    float single = (float)value;
    if (kind == SLOPE_TYPE_half) memcpy(out, &half, sizeof half);
    else if (kind == SLOPE_TYPE_float) memcpy(out, &single, sizeof single);
    else memcpy(out, &value, sizeof value);
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_scalar_parse(SlopeTypeKind kind, const char *text, void *out) {
    if (!text || !out) return SLOPE_STATUS_misuse;
    switch (kind) {
    case SLOPE_TYPE_bool: return store_bool(text, out);
    case SLOPE_TYPE_int8: return store_integer(text, 8, true, out);
    case SLOPE_TYPE_uint8: return store_integer(text, 8, false, out);
    case SLOPE_TYPE_int16: return store_integer(text, 16, true, out);
    case SLOPE_TYPE_uint16: return store_integer(text, 16, false, out);
    case SLOPE_TYPE_int32: return store_integer(text, 32, true, out);
    case SLOPE_TYPE_uint32: return store_integer(text, 32, false, out);
    case SLOPE_TYPE_int64: return store_integer(text, 64, true, out);
    case SLOPE_TYPE_uint64: return store_integer(text, 64, false, out);
    case SLOPE_TYPE_half:
    case SLOPE_TYPE_float:
    case SLOPE_TYPE_double: return store_float(text, kind, out);
    case SLOPE_TYPE_void:
    case SLOPE_TYPE_vector:
    case SLOPE_TYPE_array:
    case SLOPE_TYPE_struct:
    case SLOPE_TYPE_pointer:
    case SLOPE_TYPE_buffer: return SLOPE_STATUS_misuse;
    }
    return SLOPE_STATUS_misuse;
}

/* ---- scalar to text */

static int64_t load_signed(const void *scalar, int bytes) {
    int8_t low;
    int16_t half;
    int32_t word;
    int64_t wide;
    memcpy(&low, scalar, 1);
    if (bytes == 1) return low;
    memcpy(&half, scalar, 2);
    if (bytes == 2) return half;
    memcpy(&word, scalar, 4);
    if (bytes == 4) return word;
    memcpy(&wide, scalar, 8);
    return wide;
}

static uint64_t load_unsigned(const void *scalar, int bytes) {
    uint64_t value = 0;
    memcpy(&value, scalar, (size_t)bytes); /* little-endian, as is every machine that Slope makes code for */
    return value;
}

static int print_float(SlopeTypeKind kind, const void *scalar, char *text, size_t room) {
    uint16_t half;
    float single;
    double value;
    memcpy(&half, scalar, sizeof half);
    if (kind == SLOPE_TYPE_half) value = (double)half_to_float(half);
    else if (kind == SLOPE_TYPE_float) memcpy(&single, scalar, sizeof single), value = (double)single;
    else memcpy(&value, scalar, sizeof value);
    char digits[64];
    Text out = {.at = digits, .room = sizeof digits}; /* room enough: the arena is never asked */
    text_float(&out, value, (FloatWidth)(kind - SLOPE_TYPE_half));
    return snprintf(text, room, "%s", digits);
}

int slope_scalar_print(SlopeTypeKind kind, const void *scalar, char *text, size_t room) {
    if (!scalar || (!text && room > 0)) return 0;
    switch (kind) {
    case SLOPE_TYPE_bool: return snprintf(text, room, "%s", *(const uint8_t *)scalar ? "true" : "false");
    case SLOPE_TYPE_int8:
    case SLOPE_TYPE_int16:
    case SLOPE_TYPE_int32:
    case SLOPE_TYPE_int64: {
        int bytes = 1 << (kind - SLOPE_TYPE_int8) / 2;
        return snprintf(text, room, "%lld", (long long)load_signed(scalar, bytes));
    }
    case SLOPE_TYPE_uint8:
    case SLOPE_TYPE_uint16:
    case SLOPE_TYPE_uint32:
    case SLOPE_TYPE_uint64: {
        int bytes = 1 << (kind - SLOPE_TYPE_uint8) / 2;
        return snprintf(text, room, "%llu", (unsigned long long)load_unsigned(scalar, bytes));
    }
    case SLOPE_TYPE_half:
    case SLOPE_TYPE_float:
    case SLOPE_TYPE_double: return print_float(kind, scalar, text, room);
    case SLOPE_TYPE_void:
    case SLOPE_TYPE_vector:
    case SLOPE_TYPE_array:
    case SLOPE_TYPE_struct:
    case SLOPE_TYPE_pointer:
    case SLOPE_TYPE_buffer: break;
    }
    if (room) *text = 0;
    return 0;
}
