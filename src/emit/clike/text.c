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

const char *clike_short(Printer *p, const char *text) {
    size_t digits = strspn(text, "0123456789");
    bool has_suffix = strcmp(text + digits, "LL") == 0 || strcmp(text + digits, "ULL") == 0;
    return has_suffix && digits > 0 && digits < 10 ? clike_format(p, "%.*s", (int)digits, text) : text;
}

/* ---- assignments */

/* Does it bind at least like a product, or, to stand behind a product, like a factor? */
static bool is_term(const char *text, bool as_factor) {
    int depth = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '"') return false;
        depth += (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
        if (depth || *at != ' ') continue;
        if (as_factor || !strchr("*/%", at[1]) || at[2] != ' ') return false;
        at += 2;
    }
    return true;
}

/* Of what they enclose as a whole. */
static const char *without_parentheses(Printer *p, const char *text) {
    size_t length = strlen(text);
    int depth = 0;
    for (size_t i = 0; i < length; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth == 0 && i + 1 < length) return text;
    }
    return text[0] == '(' ? clike_format(p, "%.*s", (int)length - 2, text + 1) : text;
}

const char *clike_assignment(Printer *p, const char *to, const char *from) {
    size_t length = strlen(to);
    const char *rest = from + length;
    bool follows = strncmp(from, to, length) == 0 && rest[0] == ' ' && rest[1] && rest[2] == ' ';
    if (!follows || !strchr("+-*/", rest[1]) || !is_term(rest + 3, rest[1] == '*' || rest[1] == '/'))
        return clike_format(p, "%s = %s", to, clike_short(p, from));
    bool is_step = (rest[1] == '+' || rest[1] == '-') && (!strcmp(rest + 3, "1") || !strcmp(rest + 3, "1u"));
    if (is_step) return clike_format(p, "%s%c%c", to, rest[1], rest[1]);
    return clike_format(p, "%s %c= %s", to, rest[1], without_parentheses(p, rest + 3));
}

bool clike_is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The character after a string that begins at `at`. */
static const char *after_string(const char *at) {
    for (at++; *at && *at != '"'; at++) at += at[0] == '\\' && at[1];
    return *at ? at + 1 : at;
}

static const char *after_comment(const char *at) {
    const char *end = strstr(at, "*/");
    return end ? end + 2 : at + strlen(at);
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
        if (*at == '"') at = after_string(at);
        else if (at[0] == '/' && at[1] == '*') at = after_comment(at);
        else at += length ? length : 1;
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
