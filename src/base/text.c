/* Building text in an arena. */
#include "base.h"

#include <stdio.h>

static void reserve(Text *text, int more) {
    if (text->len + more + 1 <= text->room) return;
    int room = text->room ? text->room : 64;
    while (room < text->len + more + 1) room *= 2;
    char *grown = arena_take(text->arena, (size_t)room);
    if (text->len) memcpy(grown, text->at, (size_t)text->len);
    text->at = grown;
    text->room = room;
}

void text_add(Text *text, Str s) {
    if (s.len == 0) return;
    reserve(text, s.len);
    memcpy(text->at + text->len, s.at, (size_t)s.len);
    text->len += s.len;
    text->at[text->len] = 0;
}

void text_char(Text *text, char c) { text_add(text, (Str){&c, 1}); }

void text_vprintf(Text *text, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0) {
        reserve(text, n);
        vsnprintf(text->at + text->len, (size_t)n + 1, format, again);
        text->len += n;
    }
    va_end(again);
}

void text_printf(Text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

void text_cut(Text *text, int len) {
    text->len = len;
    if (text->at) text->at[len] = 0;
}

void text_pad(Text *text, int column) {
    int start = text->len;
    while (start > 0 && text->at[start - 1] != '\n') start--;
    while (text->len - start < column) text_char(text, ' ');
}

Str text_str(const Text *text) { return (Str){text->at ? text->at : "", text->len}; }

char *format_text(Arena *arena, const char *format, ...) {
    Text text = {.arena = arena};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    return text.at ? text.at : arena_take(arena, 1);
}
