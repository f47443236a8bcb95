/* Numbers, strings and characters.
 *
 * A literal with a mistake in it is reported here and still gives a token of its kind, so that the parser has
 * nothing more to say about it. */
#include "syntax/parser.h"

#include <math.h>

static void warn(const Lexer *lexer, DiagId id, const char *at, const char *a, const char *b) {
    if (!lexer->quiet) diag_report(lexer->syntax->diags, id, lex_loc(lexer, at), a, b);
}

static void report(Lexer *lexer, DiagId id, const char *at, const char *a, const char *b) {
    if (!lexer->quiet) diag_report(lexer->syntax->diags, id, lex_loc(lexer, at), a, b);
    lexer->bad = true;
}

static const char *quote(const Lexer *lexer, const char *start, const char *end) {
    int len = end - start > 40 ? 40 : (int)(end - start);
    return format_text(lexer->syntax->arena, "%.*s", len, start);
}

/* ---- numbers */

static bool is_piece(Lexer *lexer) {
    if (!lexer->pieces) return false;
    lexer->bad = lexer->untold = true;
    return true;
}

static void report_number(Lexer *lexer, DiagId id, const char *at, const char *a, const char *b) {
    if (!is_piece(lexer)) report(lexer, id, at, a, b);
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static const char *skip_digits(const char *at, int base) {
    while (digit_value(*at) < base || (*at == '_' && digit_value(at[1]) < base)) at++;
    return at;
}

/* At a point after digits: does `.xxx` follow, a swizzle, rather than a fraction? */
static bool is_swizzle(const char *at) {
    const char *letter = at + 1;
    while (*letter && strchr("xyzwrgba", *letter)) letter++;
    return letter > at + 1 && !lex_is_word(*letter);
}

/* Past an exponent, if one is there. */
static const char *skip_exponent(const char *at, char lower, char upper) {
    if (*at != lower && *at != upper) return at;
    const char *digits = at + 1;
    if (*digits == '+' || *digits == '-') digits++;
    return digit_value(*digits) < 10 ? skip_digits(digits, 10) : at;
}

/* From the end of the whole part to the end of a float; the same place if it is an integer. */
static const char *skip_fraction(const char *at, int base) {
    if (base == 2) return at;
    const char *end = at;
    if (base == 16) {
        if (*end == '.') end = skip_digits(end + 1, 16);
        const char *exponent = skip_exponent(end, 'p', 'P');
        return exponent == end ? at : exponent;
    }
    if (*end == '.' && !is_swizzle(end)) end = skip_digits(end + 1, 10);
    return skip_exponent(end, 'e', 'E');
}

static double real_value(const Lexer *lexer, const char *start, const char *end) {
    if (!memchr(start, '_', (size_t)(end - start))) return number_parse(start, NULL);
    char *copy = arena_take(lexer->syntax->arena, (size_t)(end - start) + 1), *to = copy;
    for (const char *from = start; from < end; from++)
        if (*from != '_') *to++ = *from;
    return number_parse(copy, NULL);
}

/* False if it needs more than 64 bits. */
static bool integer_value(const char *start, const char *end, unsigned base, uint64_t *value) {
    *value = 0;
    for (; start < end; start++) {
        if (*start == '_') continue;
        unsigned digit = (unsigned)digit_value(*start);
        if (*value > (UINT64_MAX - digit) / base) return false;
        *value = *value * base + digit;
    }
    return true;
}

typedef struct SuffixRow {
    const char *text;
    uint8_t suffix;
} SuffixRow;

static const SuffixRow integer_suffixes[] = {{"u", SUFFIX_u},     {"l", SUFFIX_l},   {"ul", SUFFIX_ul},
                                             {"lu", SUFFIX_ul},   {"ll", SUFFIX_ll}, {"ull", SUFFIX_ull},
                                             {"llu", SUFFIX_ull}, {"z", SUFFIX_z},   {"uz", SUFFIX_uz},
                                             {"zu", SUFFIX_uz},   {NULL, 0}};

static const SuffixRow real_suffixes[] = {{"f", SUFFIX_f},  {"h", SUFFIX_h},   {"hf", SUFFIX_h},
                                          {"l", SUFFIX_lf}, {"lf", SUFFIX_lf}, {NULL, 0}};

static bool same_letters(const char *at, const char *end, const char *lower) {
    for (; at < end; at++, lower++) {
        char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if (c != *lower) return false;
    }
    return *lower == 0;
}

static uint8_t find_suffix(const SuffixRow *rows, const char *at, const char *end) {
    for (; rows->text; rows++)
        if (same_letters(at, end, rows->text)) return rows->suffix;
    return SUFFIX_none;
}

static const char *skip_word(const char *at) {
    while (lex_is_word(*at)) at++;
    return at;
}

/* What the suffix makes of it; without one, where it is used decides. */
static bool overflows(double value, uint8_t suffix, const char **type) {
    *type = suffix == SUFFIX_f ? "float" : suffix == SUFFIX_h ? "half" : "double";
    if (suffix == SUFFIX_h) return isinf(half_to_float(half_from_double(value)));
    return suffix == SUFFIX_f ? isinf((float)value) : isinf(value);
}

static void finish_real(Lexer *lexer, Token *token, double value) {
    const char *end = skip_word(lexer->at);
    token->kind = TOKEN_float;
    token->real = value;
    token->suffix = find_suffix(real_suffixes, lexer->at, end);
    if (lexer->at < end && !token->suffix)
        report_number(lexer, DIAG_bad_float_suffix, lexer->at, quote(lexer, lexer->at, end), NULL);
    lexer->at = end;
}

/* `1#INF`, `1.#INF` */
static bool infinity_follows(const char *at) { return strncmp(at, "#INF", 4) == 0; }

static void wrong_suffix(Lexer *lexer, const char *start, const char *suffix, const char *end) {
    const char *digits = quote(lexer, start, suffix), *letters = quote(lexer, suffix, end);
    if (is_piece(lexer)) return;
    lexer->bad = true;
    if (!lexer->quiet && find_suffix(real_suffixes, suffix, end))
        diag_report(lexer->syntax->diags, DIAG_float_suffix_on_integer, lex_loc(lexer, suffix), digits,
                    letters, digits, letters);
    else report(lexer, DIAG_bad_integer_suffix, suffix, letters, digits);
}

static unsigned octal_or_decimal(Lexer *lexer, const char *start, const char *end) {
    if (*start != '0' || end == start + 1) return 10;
    for (const char *at = start; at < end; at++)
        if (digit_value(*at) < 10 && digit_value(*at) >= 8) {
            report_number(lexer, DIAG_bad_octal_digit, at, quote(lexer, start, end), NULL);
            return 10;
        }
    warn(lexer, DIAG_octal_literal, start, quote(lexer, start, end), NULL);
    return 8;
}

static void finish_integer(Lexer *lexer, Token *token, const char *start, const char *digits, unsigned base) {
    const char *end = skip_word(lexer->at);
    token->kind = TOKEN_int;
    token->suffix = find_suffix(integer_suffixes, lexer->at, end);
    if (base == 10) base = octal_or_decimal(lexer, digits, lexer->at);
    if (base != 10) token->flags |= TOKEN_HEX;
    if (digits == lexer->at) {
        report_number(lexer, DIAG_number_without_digits, start, quote(lexer, start, digits), NULL);
        lexer->at = end;
        return;
    }
    if (!integer_value(digits, lexer->at, base, &token->number))
        report_number(lexer, DIAG_integer_too_large, start, quote(lexer, start, lexer->at), NULL);
    if (lexer->at < end && !token->suffix) wrong_suffix(lexer, start, lexer->at, end);
    lexer->at = end;
}

void lex_number(Lexer *lexer, Token *token) {
    const char *start = lexer->at, *digits = start;
    int base = 10;
    if (*start == '0' && (start[1] == 'x' || start[1] == 'X')) base = 16, digits += 2;
    else if (*start == '0' && (start[1] == 'b' || start[1] == 'B')) base = 2, digits += 2;
    const char *whole = skip_digits(digits, base), *end = skip_fraction(whole, base);
    if (base == 10 && infinity_follows(end)) {
        lexer->at = end + 4;
        finish_real(lexer, token, (double)INFINITY);
        return;
    }
    lexer->at = end;
    if (end == whole) {
        finish_integer(lexer, token, start, digits, (unsigned)base);
        return;
    }
    finish_real(lexer, token, real_value(lexer, start, end));
    const char *type;
    if (overflows(token->real, token->suffix, &type))
        warn(lexer, DIAG_float_overflow, start, quote(lexer, start, end), type);
}

/* ---- escapes */

typedef struct Escape {
    uint32_t code;
    bool is_byte; /* \x and octal: a byte, not a character */
} Escape;

static const char *hex_digits(const char *at, int most, uint32_t *code) {
    *code = 0;
    for (; most > 0 && digit_value(*at) < 16; most--, at++) *code = *code << 4 | (uint32_t)digit_value(*at);
    return at;
}

static const char *octal_digits(const char *at, uint32_t *code) {
    *code = 0;
    for (int n = 0; n < 3 && digit_value(*at) < 8; n++, at++) *code = *code << 3 | (uint32_t)digit_value(*at);
    *code &= 0xff;
    return at;
}

static uint32_t simple_escape(char c) {
    static const char letters[] = "abefnrtv\\'\"?", codes[] = "\a\b\033\f\n\r\t\v\\'\"?";
    const char *found = c ? strchr(letters, c) : NULL;
    return found ? (uint32_t)(unsigned char)codes[found - letters] : 0;
}

static bool is_hex_escape(const char *at) {
    return (*at == 'x' || *at == 'u' || *at == 'U') && digit_value(at[1]) < 16;
}

/* After a backslash; gives what follows the escape. */
static const char *read_escape(Lexer *lexer, const char *at, Escape *escape) {
    *escape = (Escape){simple_escape(*at), false};
    if (escape->code) return at + 1;
    if (digit_value(*at) < 8) {
        escape->is_byte = true;
        return octal_digits(at, &escape->code);
    }
    if (is_hex_escape(at)) {
        escape->is_byte = *at == 'x';
        const char *end = hex_digits(at + 1, *at == 'x' ? 2 : *at == 'u' ? 4 : 8, &escape->code);
        bool valid = escape->code <= 0x10ffff && (escape->code & 0xfffff800u) != 0xd800;
        if (!valid) report(lexer, DIAG_bad_escape_code, at - 1, quote(lexer, at - 1, end), NULL);
        return end;
    }
    uint32_t code = 0;
    int bytes = lex_utf8(at, lexer->end, &code);
    if (!bytes) bytes = at < lexer->end;
    report(lexer, DIAG_bad_escape, at - 1, quote(lexer, at, at + bytes), NULL);
    escape->code = code;
    return at + bytes;
}

static void add_utf8(Text *text, uint32_t code) {
    if (code < 0x80) text_char(text, (char)code);
    else if (code < 0x800) {
        text_char(text, (char)(0xc0 | code >> 6));
        text_char(text, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        text_char(text, (char)(0xe0 | code >> 12));
        text_char(text, (char)(0x80 | (code >> 6 & 0x3f)));
        text_char(text, (char)(0x80 | (code & 0x3f)));
    } else {
        text_char(text, (char)(0xf0 | (code >> 18 & 7)));
        text_char(text, (char)(0x80 | (code >> 12 & 0x3f)));
        text_char(text, (char)(0x80 | (code >> 6 & 0x3f)));
        text_char(text, (char)(0x80 | (code & 0x3f)));
    }
}

/* ---- strings and characters */

static bool ends_line(const Lexer *lexer, const char *at) {
    return *at == '\n' || (*at == '\r' && at[1] == '\n') || at == lexer->end;
}

static const char *skip_string(const Lexer *lexer, const char *at) {
    while (*at != '"' && !ends_line(lexer, at)) {
        if (*at == '\\' && at + 1 < lexer->end) at++;
        if (*at == '\r' && at[1] == '\n') at++;
        at++;
    }
    return at;
}

static Str decode(Lexer *lexer, const char *at, const char *end) {
    Text text = {.arena = lexer->syntax->arena};
    while (at < end) {
        const char *plain = at;
        while (at < end && *at != '\\') at++;
        text_add(&text, (Str){plain, (int)(at - plain)});
        if (at == end) break;
        at++;
        if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
            at += *at == '\r' ? 2 : 1;
            continue;
        }
        Escape escape;
        at = read_escape(lexer, at, &escape);
        if (escape.is_byte) text_char(&text, (char)escape.code);
        else add_utf8(&text, escape.code);
    }
    return text_str(&text);
}

void lex_string(Lexer *lexer, Token *token) {
    const char *start = lexer->at + 1, *end = skip_string(lexer, start);
    token->kind = TOKEN_string;
    if (*end != '"') report(lexer, DIAG_unterminated_string, lexer->at, NULL, NULL);
    token->text = (Str){start, (int)(end - start)};
    if (memchr(start, '\\', (size_t)(end - start))) token->text = decode(lexer, start, end);
    lexer->at = end + (*end == '"');
}

static const char *find_text(const char *at, const char *end, Str what) {
    for (; end - at >= what.len; at++)
        if (memcmp(at, what.at, (size_t)what.len) == 0) return at;
    return NULL;
}

/* R"name( ... )name": nothing in it is an escape, and it may go over lines. The lexer stands at the quote. */
void lex_raw_string(Lexer *lexer, Token *token) {
    const char *name = lexer->at + 1, *open = name;
    token->kind = TOKEN_string;
    while (open - name < 16 && (lex_is_word(*open) || *open == '-')) open++;
    int length = (int)(open - name);
    char closing[20] = {')'};
    memcpy(closing + 1, name, (size_t)length);
    closing[length + 1] = '"';
    const char *end = *open == '(' ? find_text(open, lexer->end, (Str){closing, length + 2}) : NULL;
    if (!end) {
        report(lexer, DIAG_unterminated_string, lexer->at, NULL, NULL);
        token->text = STR("");
        lexer->at = *open == '(' ? lexer->end : open;
        return;
    }
    token->text = (Str){open + 1, (int)(end - open - 1)};
    lexer->at = end + length + 2;
}

/* One character or escape. */
static const char *read_character(Lexer *lexer, const char *at, uint32_t *code) {
    if (*at == '\\' && !ends_line(lexer, at + 1)) {
        Escape escape;
        at = read_escape(lexer, at + 1, &escape);
        *code = escape.code;
        return at;
    }
    int bytes = lex_utf8(at, lexer->end, code);
    if (!bytes) *code = (unsigned char)*at;
    return at + (bytes ? bytes : 1);
}

void lex_character(Lexer *lexer, Token *token) {
    const char *start = lexer->at, *at = start + 1;
    int count = 0;
    token->kind = TOKEN_char;
    for (; *at != '\'' && !ends_line(lexer, at); count++) {
        uint32_t code;
        at = read_character(lexer, at, &code);
        if (count == 0) token->number = code;
    }
    lexer->at = at + (*at == '\'');
    if (*at != '\'') report(lexer, DIAG_unterminated_character, start, NULL, NULL);
    else if (count != 1) report(lexer, DIAG_character_count, start, NULL, NULL);
}
