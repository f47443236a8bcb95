/* printf of the program. The format is C's; a conversion takes the next value, whatever its type, and
 * converts it if the two do not fit, so that no format can do harm. A vector prints its lanes with the same
 * conversion, separated by ", ". A conversion that finds no value, or that is unknown, is printed as it
 * stands. Text is put together first and written at once, so that output of different threads is never mixed
 * within a call. */
#include "runtime/thread.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Output {
    char *at;
    size_t length, room;
    bool full; /* no memory: the rest is dropped */
    char local[512];
} Output;

static void output_add(Output *out, const char *text, size_t length) {
    if (out->full) return;
    if (out->length + length > out->room) {
        size_t room = (out->length + length) * 2;
        char *memory = out->at == out->local ? malloc(room) : realloc(out->at, room);
        if (!memory) {
            out->full = true;
            return;
        }
        if (out->at == out->local) memcpy(memory, out->local, out->length);
        out->at = memory;
        out->room = room;
    }
    memcpy(out->at + out->length, text, length);
    out->length += length;
}

/* ---- values */

typedef struct Values {
    const RtPrintArg *args;
    int64_t nargs, next;
    const uint64_t *bits; /* of argument `next` */
} Values;

static const RtPrintArg *next_arg(Values *values, const uint64_t **bits) {
    if (values->next >= values->nargs) return NULL;
    const RtPrintArg *arg = &values->args[values->next++];
    *bits = values->bits;
    values->bits += arg->lanes;
    return arg;
}

static double as_double(RtPrintKind kind, uint64_t bits) {
    double real;
    switch (kind) {
    case RT_PRINT_double: memcpy(&real, &bits, sizeof real); return real;
    case RT_PRINT_int:
    case RT_PRINT_int64: return (double)(int64_t)bits;
    case RT_PRINT_bool:
    case RT_PRINT_uint:
    case RT_PRINT_uint64:
    case RT_PRINT_text: return (double)bits;
    }
    return 0;
}

static int64_t clamp_to_integer(double real) {
    if (isnan(real)) return 0;
    if (real >= 9223372036854775808.0) return INT64_MAX;
    if (real <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)real;
}

/* As C would see it after its promotions: 32-bit values wrap to 32 bits of the signedness that the conversion
 * has. */
static int64_t as_signed(RtPrintKind kind, uint64_t bits) {
    if (kind == RT_PRINT_double) return clamp_to_integer(as_double(kind, bits));
    if (kind == RT_PRINT_uint) return (int32_t)(uint32_t)bits;
    return (int64_t)bits;
}

static uint64_t as_unsigned(RtPrintKind kind, uint64_t bits) {
    if (kind == RT_PRINT_double) return (uint64_t)clamp_to_integer(as_double(kind, bits));
    if (kind == RT_PRINT_int) return (uint32_t)bits;
    return bits;
}

/* ---- conversions */

typedef struct Conversion {
    char flags[8];
    int width, precision; /* -1: none */
    int shorts;           /* how many `h` */
    char letter;
} Conversion;

static int clamp_size(int64_t size) { return size > 4096 ? 4096 : size < 0 ? 0 : (int)size; }

/* A number, or `*` for the next value. */
static const char *read_size(const char *at, const char *end, Values *values, int64_t *size) {
    if (at < end && *at == '*') {
        const uint64_t *bits;
        const RtPrintArg *arg = next_arg(values, &bits);
        *size = arg ? as_signed((RtPrintKind)arg->kind, *bits) : 0;
        return at + 1;
    }
    for (*size = 0; at < end && *at >= '0' && *at <= '9'; at++)
        if (*size < 100000) *size = *size * 10 + (*at - '0');
    return at;
}

static const char *read_flags(const char *at, const char *end, Conversion *conversion) {
    size_t count = 0;
    for (; at < end && *at && strchr("-+ #0", *at); at++)
        if (!memchr(conversion->flags, *at, count)) conversion->flags[count++] = *at;
    return at;
}

static const char *read_conversion(const char *at, const char *end, Values *values, Conversion *conversion) {
    *conversion = (Conversion){.width = -1, .precision = -1};
    at = read_flags(at, end, conversion);
    int64_t size;
    const char *digits = at;
    at = read_size(at, end, values, &size);
    if (at > digits && size < 0) {
        size = size < -4096 ? 4096 : -size;
        if (!strchr(conversion->flags, '-')) conversion->flags[strlen(conversion->flags)] = '-';
    }
    if (at > digits) conversion->width = clamp_size(size);
    if (at < end && *at == '.') {
        at = read_size(at + 1, end, values, &size);
        conversion->precision = size < 0 ? -1 : clamp_size(size);
    }
    for (; at < end && *at && strchr("hlLqjzt", *at); at++) conversion->shorts += *at == 'h';
    if (at < end) conversion->letter = *at++;
    return at;
}

/* The conversion as a format for snprintf, with the letters that fit the C type given to it. */
static void make_format(char *format, size_t size, const Conversion *conversion, const char *letters) {
    int length = snprintf(format, size, "%%%s", conversion->flags);
    if (conversion->width >= 0)
        length += snprintf(format + length, size - (size_t)length, "%d", conversion->width);
    if (conversion->precision >= 0)
        length += snprintf(format + length, size - (size_t)length, ".%d", conversion->precision);
    snprintf(format + length, size - (size_t)length, "%s", letters);
}

static int64_t shorten_signed(int64_t value, int shorts) {
    return shorts == 0 ? value : shorts == 1 ? (int16_t)value : (int8_t)value;
}

static uint64_t shorten_unsigned(uint64_t value, int shorts) {
    return shorts == 0 ? value : shorts == 1 ? (uint16_t)value : (uint8_t)value;
}

static char natural_letter(RtPrintKind kind) {
    if (kind == RT_PRINT_double) return 'g';
    return kind == RT_PRINT_uint || kind == RT_PRINT_uint64 || kind == RT_PRINT_bool ? 'u' : 'd';
}

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#endif

static int print_lane(char *buffer, size_t size, const Conversion *conversion, RtPrintKind kind,
                      uint64_t bits) {
    char letter = conversion->letter == 's' ? natural_letter(kind) : conversion->letter;
    char format[48], letters[4] = {'l', 'l', letter, 0};
    switch (letter) {
    case 'd':
    case 'i':
        make_format(format, sizeof format, conversion, letters);
        return snprintf(buffer, size, format,
                        (long long)shorten_signed(as_signed(kind, bits), conversion->shorts));
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        make_format(format, sizeof format, conversion, letters);
        return snprintf(buffer, size, format,
                        (unsigned long long)shorten_unsigned(as_unsigned(kind, bits), conversion->shorts));
    case 'c':
        make_format(format, sizeof format, conversion, letters + 2);
        return snprintf(buffer, size, format, (int)(unsigned char)as_signed(kind, bits));
    default: make_format(format, sizeof format, conversion, letters + 2);
    }
    return snprintf(buffer, size, format, as_double(kind, bits));
}

static void add_text(Output *out, const Conversion *conversion, uint64_t bits) {
    const char *text = bits ? (const char *)(uintptr_t)bits : "";
    size_t length = strlen(text), width = conversion->width > 0 ? (size_t)conversion->width : 0;
    if (conversion->precision >= 0 && (size_t)conversion->precision < length)
        length = (size_t)conversion->precision;
    bool left = strchr(conversion->flags, '-') != NULL;
    if (left) output_add(out, text, length);
    for (size_t i = length; i < width; i++) output_add(out, " ", 1);
    if (!left) output_add(out, text, length);
}

static void add_lane(Output *out, const Conversion *conversion, RtPrintKind kind, uint64_t bits) {
    char local[128];
    int length = print_lane(local, sizeof local, conversion, kind, bits);
    if (length < 0) return;
    if ((size_t)length < sizeof local) {
        output_add(out, local, (size_t)length);
        return;
    }
    char *large = malloc((size_t)length + 1);
    if (!large) return;
    print_lane(large, (size_t)length + 1, conversion, kind, bits);
    output_add(out, large, (size_t)length);
    free(large);
}

static bool is_known(char letter) { return letter && strchr("diuxXocfFeEgGaAs", letter); }

static void print_all(Output *out, const char *format, int64_t length, Values *values) {
    const char *at = format, *end = format + length;
    while (at < end) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        output_add(out, at, (size_t)((percent ? percent : end) - at));
        if (!percent) return;
        if (percent + 1 < end && percent[1] == '%') {
            output_add(out, "%", 1);
            at = percent + 2;
            continue;
        }
        Conversion conversion;
        const uint64_t *bits = NULL;
        at = read_conversion(percent + 1, end, values, &conversion);
        const RtPrintArg *arg = is_known(conversion.letter) ? next_arg(values, &bits) : NULL;
        if (!arg) output_add(out, percent, (size_t)(at - percent));
        for (int lane = 0; arg && lane < arg->lanes; lane++) {
            if (lane) output_add(out, ", ", 2);
            if (arg->kind == RT_PRINT_text) add_text(out, &conversion, bits[lane]);
            else add_lane(out, &conversion, (RtPrintKind)arg->kind, bits[lane]);
        }
    }
}

/* Numbers are written with a point, whatever the host's language. */
static void print_plainly(const Runtime *runtime, Output *out, const char *format, int64_t length,
                          Values *values) {
    locale_t before = runtime->plain ? uselocale(runtime->plain) : (locale_t)0;
    print_all(out, format, length, values);
    if (before) uselocale(before);
}

/* ---- the entry */

/* Behind what the host's program has printed before. 0, or the error. */
static int write_standard(const char *text, size_t length) {
    if (fflush(stdout) != 0) return errno;
    while (length > 0) {
        ssize_t written = write(1, text, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? errno : EIO;
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

/* A program whose output nobody gets has no reason to go on. */
static void fail_to_write(RtThread *thread, int error) {
    char text[160], reason[96] = "";
    if (strerror_r(error, reason, sizeof reason) != 0) reason[0] = 0;
    int length = snprintf(text, sizeof text, "cannot write to standard output: %s", reason);
    thread_fail(thread, text, (size_t)length);
}

void rt_print(const RtContext *context, const char *format, int64_t length, const RtPrintArg *args,
              int64_t nargs, const uint64_t *bits) {
    Runtime *runtime = context->owner->runtime;
    if (atomic_load(&runtime->mute)) return;
    Output out = {.room = sizeof out.local};
    out.at = out.local;
    Values values = {args, nargs, 0, bits};
    print_plainly(runtime, &out, format, length, &values);
    pthread_mutex_lock(&runtime->output);
    int error = 0;
    if (runtime->config.write) runtime->config.write(runtime->config.user, out.at, out.length);
    else error = write_standard(out.at, out.length);
    pthread_mutex_unlock(&runtime->output);
    if (out.at != out.local) free(out.at);
    if (error) fail_to_write(context->owner, error);
}
