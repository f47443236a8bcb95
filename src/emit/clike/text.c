/* Putting text together: names, parentheses, lines. */
#include "emit/clike/clike.h"

const char *clike_format(Printer *p, const char *format, ...) {
    Text text = {.arena = &p->arena};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    return text.at ? text.at : "";
}

void clike_line(Printer *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (format[0] != '#')
        for (int i = 0; i < p->indent; i++) text_add(p->out, STR("    "));
    text_vprintf(p->out, format, args);
    clike_mark_line(p);
    text_char(p->out, '\n');
    va_end(args);
}

void clike_print_line(Printer *p, Loc loc) {
    if (!p->file->lines || !loc || !p->module->diags) return;
    Position at = source_position(p->module->diags->sources, loc);
    if (!at.path || at.line == p->at->line) return;
    p->at->line = at.line;
    clike_line(p, "#line %d %s", at.line, clike_string(p, str_of(at.path->text)));
}

const char *clike_unique(Printer *p, Map *taken, const char *wish) {
    const char *name = wish;
    uint64_t wished = PTR_KEY(name_from(p->module->names, wish)), key = wished;
    uintptr_t last = (uintptr_t)map_get(taken, wished); /* number of the last that was like it */
    while (map_has(taken, key)) {
        name = clike_format(p, "%s_%d", wish, (int)++last);
        key = PTR_KEY(name_from(p->module->names, name));
    }
    map_put(&p->arena, taken, key, (void *)(uintptr_t)1);
    if (key != wished) map_put(&p->arena, taken, wished, (void *)last);
    return name;
}

Value clike_value(const char *text, Level level) { return (Value){.text = text, .level = level}; }

const char *clike_in(Printer *p, Value value, Level level) {
    return value.level >= level ? value.text : clike_format(p, "(%s)", value.text);
}

bool clike_is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The character after a string that begins at `at`. */
static const char *after_string(const char *at) {
    for (at++; *at && *at != '"'; at++) at += at[0] == '\\' && at[1];
    return *at ? at + 1 : at;
}

static bool is_member(const char *text, const char *at) {
    return at > text && (at[-1] == '.' || (at[-1] == '>' && at - text > 1 && at[-2] == '-'));
}

/* The next variable at or after `at`; without text at the end. */
static Str next_variable(const char *text, const char *at) {
    while (*at) {
        int length = 0;
        while (clike_is_word_char(at[length])) length++;
        if (length && !is_member(text, at)) return (Str){at, length};
        at = *at == '"' ? after_string(at) : at + (length ? length : 1);
    }
    return (Str){0};
}

bool clike_mentions(const char *text, const char *name) {
    for (Str word = next_variable(text, text); word.at; word = next_variable(text, word.at + word.len))
        if (str_eq(word, str_of(name))) return true;
    return false;
}

Map clike_variables(Printer *p, const char *text) {
    Map found = {0};
    for (Str word = next_variable(text, text); word.at; word = next_variable(text, word.at + word.len))
        map_put(&p->arena, &found, PTR_KEY(name_of(p->module->names, word)), p);
    return found;
}
