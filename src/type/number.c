/* The integer arithmetic of the language, the only place that knows it: what the compiler works out is what a
 * program computes.
 *
 * A number is kept as 64 bits, extended by its sign if its type has one. Results wrap around in the bits of
 * the type; shifts count modulo them; a division by zero gives -1 (who must not divide by zero says so
 * before). */
#include "type.h"

int64_t number_wrap(int64_t value, const Type *type) {
    if (type->kind == TYPE_bool) return value != 0;
    int bits = type_bits(type);
    if (bits >= 64) return value;
    uint64_t mask = ((uint64_t)1 << bits) - 1, low = (uint64_t)value & mask;
    bool negative = type_is_signed(type) && (low >> (bits - 1) & 1);
    return (int64_t)(negative ? low | ~mask : low);
}

uint64_t number_bits(int64_t value, const Type *type) {
    int bits = type_bits(type);
    return bits == 64 ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << bits) - 1);
}

int64_t number_divide(int64_t a, int64_t b, const Type *type) {
    if (b == 0) return -1;
    if (!type_is_signed(type)) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

int64_t number_remainder(int64_t a, int64_t b, const Type *type) {
    if (b == 0) return -1;
    if (!type_is_signed(type)) return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

bool number_less(int64_t a, int64_t b, const Type *type) {
    return type_is_signed(type) ? a < b : (uint64_t)a < (uint64_t)b;
}

static int shift_count(int64_t count, const Type *type) {
    return (int)((uint64_t)count & (uint64_t)(type_bits(type) - 1));
}

int64_t number_shift_left(int64_t a, int64_t count, const Type *type) {
    return (int64_t)((uint64_t)a << shift_count(count, type));
}

int64_t number_shift_right(int64_t a, int64_t count, const Type *type) {
    int n = shift_count(count, type);
    return type_is_signed(type) ? a >> n : (int64_t)(number_bits(a, type) >> n);
}
