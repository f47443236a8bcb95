/* Numbers to text and back, whatever the locale of the process.
 *
 * The C library's strtod and printf are exact but write the decimal point of the current locale, so that the
 * point is exchanged on the way in and out. */
#include "base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static char decimal_point(void) { return localeconv()->decimal_point[0]; }

static bool is_number_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '.' ||
           c == 'x' || c == 'X' || c == 'p' || c == 'P' || c == '+' || c == '-';
}

double number_parse(const char *text, const char **end) {
    char point = decimal_point(), local[512], *stop;
    if (point == '.') {
        double value = strtod(text, &stop);
        if (end) *end = stop;
        return value;
    }
    size_t length = 0;
    while (is_number_char(text[length])) length++;
    char *copy = length < sizeof local ? local : malloc(length + 1);
    if (!copy) { /* no number can be read */
        if (end) *end = text;
        return 0;
    }
    for (size_t i = 0; i < length; i++) copy[i] = text[i] == '.' ? point : text[i];
    copy[length] = 0;
    double value = strtod(copy, &stop);
    if (end) *end = text + (stop - copy);
    if (copy != local) free(copy);
    return value;
}

/* ---- half precision */

float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 1023,
             out;
    if (exponent == 31) out = sign | 0x7f800000u | fraction << 13;
    else if (exponent) out = sign | (exponent + 112) << 23 | fraction << 13;
    else {
        float tiny = ldexpf((float)fraction, -24);
        memcpy(&out, &tiny, 4);
        out |= sign;
    }
    float value;
    memcpy(&value, &out, 4);
    return value;
}

uint16_t half_from_double(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double x = fabs(value);
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    if (x >= 65520.0) return (uint16_t)(sign | 0x7c00);
    int exponent;
    frexp(x, &exponent);
    if (x < 6.103515625e-05) exponent = -13;       /* subnormal: fixed scale */
    double scaled = rint(ldexp(x, 11 - exponent)); /* 11 significant bits, ties to even */
    int steps = (int)scaled;                       /* exact: at most 2048 */
    if (steps == 2048) steps = 1024, exponent++;
    if (steps < 1024) return (uint16_t)(sign | steps); /* zero or subnormal */
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | (unsigned)(steps - 1024));
}

uint16_t half_from_float(float value) { return half_from_double((double)value); }

/* ---- shortest decimal */

static bool reads_back(const char *text, double value, FloatWidth width) {
    double read = strtod(text, NULL);
    if (width == WIDTH_double) return read == value;
    if (width == WIDTH_float) return (float)read == (float)value;
    return half_from_double(read) == half_from_double(value);
}

void text_float(Text *text, double value, FloatWidth width) {
    if (isnan(value) || isinf(value)) {
        text_add(text, str_of(isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"));
        return;
    }
    char digits[400], point = decimal_point();
    int precision = 1;
    for (; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision - 1, value);
        if (reads_back(digits, value, width)) break;
    }
    if (precision == 17) snprintf(digits, sizeof digits, "%.*e", precision - 1, value);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= -5 && exponent < 17) { /* as people write it */
        int decimals = precision - 1 - exponent;
        snprintf(digits, sizeof digits, "%.*f", decimals > 0 ? decimals : 0, value);
    }
    bool looks_real = false;
    for (char *p = digits; *p; p++) {
        if (*p == point) *p = '.';
        if (*p == '.' || *p == 'e') looks_real = true;
    }
    text_add(text, str_of(digits));
    if (!looks_real) text_add(text, STR(".0"));
}
