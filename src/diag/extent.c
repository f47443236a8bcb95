/* How far the text reaches that a message is about: from the token at which it begins to the end of its last
 * token.
 *
 * Trees know where tokens begin; where one ends is read off the text, here and only when something is
 * reported. */
#include "diag.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char char_at(Str text, int at) { return at < text.len ? text.at[at] : '\0'; }

/* 1.5e-3f: letters, digits, points, and the sign of an exponent. */
static int number_end(Str text, int at) {
    bool hex = char_at(text, at) == '0' && (char_at(text, at + 1) | 0x20) == 'x';
    for (;; at++) {
        char c = char_at(text, at), before = at > 0 ? (char)(char_at(text, at - 1) | 0x20) : '\0';
        bool is_sign = (c == '+' || c == '-') && before == (hex ? 'p' : 'e');
        if (!is_word(c) && c != '.' && !is_sign) return at;
    }
}

static int quoted_end(Str text, int at) {
    char quote = char_at(text, at);
    for (at++; at < text.len && text.at[at] != quote; at++)
        if (text.at[at] == '\\') at++;
    return at < text.len ? at + 1 : text.len;
}

static int operator_end(Str text, int at) {
    static const char *const longer[] = {"<<=", ">>=", "...", "->", "++", "--", "+=", "-=",
                                         "*=",  "/=",  "%=",  "&=", "|=", "^=", "<<", ">>",
                                         "<=",  ">=",  "==",  "!=", "&&", "||", "::", "=>"};
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
        int length = (int)strlen(longer[i]);
        if (at + length <= text.len && memcmp(text.at + at, longer[i], (size_t)length) == 0)
            return at + length;
    }
    return at + 1;
}

/* Of the token that begins at a byte of a line; of no token one character. */
int diag_token_end(Str text, int at) {
    char c = char_at(text, at);
    if (is_digit(c) || (c == '.' && is_digit(char_at(text, at + 1)))) return number_end(text, at);
    if (c == '"' || c == '\'') return quoted_end(text, at);
    if (!is_word(c)) return operator_end(text, at);
    while (is_word(char_at(text, at))) at++;
    return at;
}

int diag_count_characters(Str text, int from, int to) {
    int count = 0;
    for (int i = from; i < to; i++) count += i >= text.len || ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

static int indentation(Str text) {
    int at = 0;
    while (char_at(text, at) == ' ' || char_at(text, at) == '\t') at++;
    return at;
}

/* A span that goes astray, as one whose ends come from a macro may, is only its own token. */
static bool is_sound(const Sources *sources, Span span) {
    return span.first && span.first <= span.at && span.at <= span.last &&
           source_of(sources, span.first) == source_of(sources, span.last);
}

Extent diag_extent(Sources *sources, const Position *at, Span span) {
    if (!at->path) return (Extent){0};
    if (!is_sound(sources, span)) span.first = span.last = span.at;
    Position first = source_position(sources, span.first), last = source_position(sources, span.last);
    int end = diag_token_end(last.text, last.byte);
    return (Extent){
        .line = first.line,
        .column = first.column,
        .end_line = last.line,
        .end_column = last.column + diag_count_characters(last.text, last.byte, end),
        .from = first.line == at->line ? at->byte - (int)(span.at - span.first) : indentation(at->text),
        .to = last.line == at->line ? at->byte + (int)(span.last - span.at) + end - last.byte : at->text.len};
}
