/* Showing a message: as text with the source line, a caret and the rest of what is meant underlined, or as
 * one line of JSON.
 *
 * Whatever a file contains, the output is valid UTF-8 and moves no cursor: a byte that is not UTF-8 or is a
 * control character is shown as U+FFFD. Tabs become spaces, wide characters take two columns and combining
 * ones none, so that the caret stands under its character. A long line is cut to a window around the
 * caret. */
#include "diag.h"

enum {
    TAB = 4,
    INDENT = 2,
    WINDOW = 160,      /* columns shown of a long line */
    BEFORE_CARET = 60, /* of these at most so many before the caret */
};

/* ---- characters */

typedef struct Character {
    uint32_t code; /* 0xfffd: not to be shown as it is */
    int bytes;
} Character;

static bool is_continuation(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

static int sequence_length(unsigned char lead) {
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead < 0xe0) return 2;
    if (lead >= 0xe0 && lead < 0xf0) return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

static bool is_valid(uint32_t code, int bytes) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    return code >= smallest[bytes] && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
}

static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static Character decode(Str s, int at) {
    int bytes = sequence_length((unsigned char)s.at[at]);
    if (bytes == 0 || at + bytes > s.len) return (Character){0xfffd, 1};
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)s.at[at] & masks[bytes];
    for (int i = 1; i < bytes; i++) {
        if (!is_continuation(s.at[at + i])) return (Character){0xfffd, 1};
        code = code << 6 | ((unsigned char)s.at[at + i] & 0x3f);
    }
    return is_valid(code, bytes) ? (Character){code, bytes} : (Character){0xfffd, 1};
}

typedef struct Range {
    uint32_t first, last;
} Range;

static const Range combining[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
                                  {0x064b, 0x065f}, {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948},
                                  {0x094d, 0x094d}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},
                                  {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                                  {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef}};

static const Range wide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
                             {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},
                             {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                             {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
                             {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};

static bool is_in(const Range *ranges, size_t count, uint32_t code) {
    for (size_t i = 0; i < count && ranges[i].first <= code; i++)
        if (code <= ranges[i].last) return true;
    return false;
}

static int width_at(uint32_t code, int column) {
    if (code == '\t') return TAB - column % TAB;
    if (code < 0x300) return 1;
    if (is_in(combining, sizeof combining / sizeof *combining, code)) return 0;
    return is_in(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

/* ---- text */

static void add_character(Text *out, Str s, int at, Character c) {
    if (c.code == 0xfffd || is_control(c.code)) text_add(out, STR("\xef\xbf\xbd"));
    else text_add(out, (Str){s.at + at, c.bytes});
}

static void add_clean(Text *out, const char *text) {
    Str s = str_of(text);
    Character c;
    for (int i = 0; i < s.len; i += c.bytes) {
        c = decode(s, i);
        add_character(out, s, i, c);
    }
}

static int column_of(Str line, int byte) {
    int column = 0;
    Character c;
    for (int i = 0; i < line.len && i < byte; i += c.bytes) {
        c = decode(line, i);
        column += width_at(c.code, column);
    }
    return column;
}

/* The part of the line between two columns. */
static void add_columns(Text *out, Str line, int from, int to) {
    int column = 0;
    Character c;
    for (int i = 0; i < line.len && column < to; i += c.bytes) {
        c = decode(line, i);
        int width = width_at(c.code, column);
        if (column >= from && c.code != '\t') add_character(out, line, i, c);
        for (int k = 0; k < width; k++)
            if (column + k >= from && column + k < to && (column < from || c.code == '\t'))
                text_char(out, ' ');
        column += width;
    }
}

static const char *paint(RenderStyle style, const char *colour) { return style.colour ? colour : ""; }

#define BOLD    "\033[1m"
#define RED     "\033[1;31m"
#define MAGENTA "\033[1;35m"
#define CYAN    "\033[1;36m"
#define GREEN   "\033[1;32m"
#define PLAIN   "\033[0m"

static void add_spaces(Text *out, int count) {
    for (int i = 0; i < count; i++) text_char(out, ' ');
}

static void add_marks(Text *out, const Position *at, const Extent *extent, int from, int to) {
    int caret = column_of(at->text, at->byte);
    int first = column_of(at->text, extent->from), end = column_of(at->text, extent->to);
    for (int column = from; column <= caret || (column < end && column < to); column++)
        text_char(out, column == caret ? '^' : column < first || column >= end ? ' ' : '~');
}

/* Under the marks, where it belongs. */
static void add_fix(Text *out, const Position *at, const Fix *fix, int from, RenderStyle style) {
    int column = column_of(at->text, fix->from);
    if (column < from) return;
    add_spaces(out, INDENT + (from ? 3 : 0) + column - from);
    text_printf(out, "%s", paint(style, CYAN));
    add_clean(out, fix->text);
    text_printf(out, "%s\n", paint(style, PLAIN));
}

static void add_source(Text *out, const Position *at, const Extent *extent, const Fix *fix,
                       RenderStyle style) {
    int caret = column_of(at->text, at->byte), end = column_of(at->text, at->text.len);
    int from = end > WINDOW && caret > BEFORE_CARET ? caret - BEFORE_CARET : 0;
    int to = end > from + WINDOW ? from + WINDOW : end;
    add_spaces(out, INDENT);
    if (from) text_add(out, STR("..."));
    add_columns(out, at->text, from, to);
    if (to < end) text_add(out, STR("..."));
    text_char(out, '\n');
    add_spaces(out, INDENT + (from ? 3 : 0));
    text_printf(out, "%s", paint(style, GREEN));
    add_marks(out, at, extent, from, to);
    text_printf(out, "%s\n", paint(style, PLAIN));
    if (fix->text) add_fix(out, at, fix, from, style);
}

static void add_place(Text *out, const Position *at, RenderStyle style) {
    if (!at->path) return;
    text_printf(out, "%s", paint(style, BOLD));
    add_clean(out, at->path->text);
    if (at->line) text_printf(out, ":%d:%d", at->line, at->column);
    text_printf(out, ":%s ", paint(style, PLAIN));
}

static const char *severity_name(Severity severity) {
    switch (severity) {
    case SEVERITY_note: return "note";
    case SEVERITY_warning: return "warning";
    case SEVERITY_error: return "error";
    }
    return "";
}

static const char *severity_colour(Severity severity) {
    switch (severity) {
    case SEVERITY_note: return CYAN;
    case SEVERITY_warning: return MAGENTA;
    case SEVERITY_error: return RED;
    }
    return "";
}

static void add_code(Text *out, Severity severity, int code) {
    if (severity != SEVERITY_note) text_printf(out, "%c%04d", severity == SEVERITY_error ? 'E' : 'W', code);
}

static void add_message(Text *out, Severity severity, int code, const char *message, const Position *at,
                        const Extent *extent, const Fix *fix, RenderStyle style) {
    add_place(out, at, style);
    text_printf(out, "%s%s", paint(style, severity_colour(severity)), severity_name(severity));
    if (severity != SEVERITY_note) text_char(out, ' ');
    add_code(out, severity, code);
    text_printf(out, ":%s ", paint(style, PLAIN));
    add_clean(out, message);
    text_char(out, '\n');
    if (at->path && at->line) add_source(out, at, extent, fix, style);
}

void diag_render_text(Text *out, const Diagnostic *diagnostic, RenderStyle style) {
    const Diagnostic *d = diagnostic;
    add_message(out, d->severity, d->code, d->message, &d->at, &d->extent, &d->fix, style);
    for (int i = 0; i < d->nnotes; i++) {
        const DiagNote *note = &d->notes[i];
        add_message(out, SEVERITY_note, 0, note->message, &note->at, &note->extent, &(Fix){0}, style);
    }
}

/* ---- JSON */

static void add_json_character(Text *out, Str s, int at, Character c) {
    if (c.code == '"' || c.code == '\\') text_printf(out, "\\%c", (char)c.code);
    else if (c.code == '\n') text_add(out, STR("\\n"));
    else if (c.code == '\t') text_add(out, STR("\\t"));
    else if (c.code < 0x20 || c.code == 0x7f) text_printf(out, "\\u%04x", (unsigned)c.code);
    else if (c.code == 0xfffd) text_add(out, STR("\xef\xbf\xbd"));
    else text_add(out, (Str){s.at + at, c.bytes});
}

static void add_json_string(Text *out, Str s) {
    text_char(out, '"');
    Character c;
    for (int i = 0; i < s.len; i += c.bytes) {
        c = decode(s, i);
        add_json_character(out, s, i, c);
    }
    text_char(out, '"');
}

static void add_json_place(Text *out, const Position *at, const Extent *extent) {
    if (!at->path) {
        text_add(out, STR("\"path\":null,\"line\":null,\"column\":null,\"range\":null"));
        return;
    }
    text_add(out, STR("\"path\":"));
    add_json_string(out, (Str){at->path->text, at->path->len});
    text_printf(out, ",\"line\":%d,\"column\":%d", at->line, at->column);
    text_printf(out, ",\"range\":{\"line\":%d,\"column\":%d,\"endLine\":%d,\"endColumn\":%d}", extent->line,
                extent->column, extent->end_line, extent->end_column);
}

static void add_json_note(Text *out, const DiagNote *note) {
    text_char(out, '{');
    add_json_place(out, &note->at, &note->extent);
    text_add(out, STR(",\"message\":"));
    add_json_string(out, str_of(note->message));
    text_char(out, '}');
}

static void add_json_fix(Text *out, const Diagnostic *d) {
    text_printf(out,
                ",\"fix\":{\"line\":%d,\"column\":%d,\"endLine\":%d,\"endColumn\":%d,\"text\":", d->at.line,
                d->fix.column, d->at.line, d->fix.end_column);
    add_json_string(out, str_of(d->fix.text));
    text_char(out, '}');
}

void diag_render_json(Text *out, const Diagnostic *diagnostic) {
    const Diagnostic *d = diagnostic;
    text_printf(out, "{\"severity\":\"%s\",\"code\":", severity_name(d->severity));
    if (d->severity == SEVERITY_note) text_add(out, STR("null"));
    else {
        text_char(out, '"');
        add_code(out, d->severity, d->code);
        text_char(out, '"');
    }
    text_char(out, ',');
    add_json_place(out, &d->at, &d->extent);
    text_add(out, STR(",\"message\":"));
    add_json_string(out, str_of(d->message));
    if (d->fix.text) add_json_fix(out, d);
    text_add(out, STR(",\"notes\":["));
    for (int i = 0; i < d->nnotes; i++) {
        if (i) text_char(out, ',');
        add_json_note(out, &d->notes[i]);
    }
    text_add(out, STR("]}\n"));
}
