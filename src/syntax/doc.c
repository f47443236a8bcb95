/* Documentation comments: of what stands before a declaration, the first sentence.
 *
 * Comments leave no tokens; the documentation of a declaration is found, by who asks for it, by looking back
 * in the text from its first token. */
#include "syntax/parser.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static Str trim(Str s) {
    while (s.len && is_blank(s.at[0])) s.at++, s.len--;
    while (s.len && is_blank(s.at[s.len - 1])) s.len--;
    return s;
}

/* The line that ends before `end`, without its blanks. */
static Str line_before(const char *text, const char *end) {
    const char *start = end;
    while (start > text && start[-1] != '\n') start--;
    return trim((Str){start, (int)(end - start)});
}

static bool is_doc_line(Str line) { return str_starts(line, "///") && !str_starts(line, "////"); }

/* A paragraph, its lines joined, until a sentence ends; false once it does. */
static bool add_sentence(Text *out, Str line) {
    line = trim(line);
    if (line.len == 0) return out->len == 0;
    if (out->len) text_char(out, ' ');
    for (int i = 0; i < line.len; i++) {
        bool last = i + 1 == line.len || is_blank(line.at[i + 1]);
        if (last && strchr(".!?", line.at[i])) {
            text_add(out, (Str){line.at, i + 1});
            return false;
        }
    }
    text_add(out, line);
    return true;
}

static Str doc_from_lines(Arena *arena, const char *text, const char *end) {
    Text out = {.arena = arena};
    const char *first = line_before(text, end).at;
    while (first > text) {
        const char *before = first;
        while (before > text && before[-1] != '\n') before--;
        Str line = before > text ? line_before(text, before - 1) : (Str){text, 0};
        if (!is_doc_line(line)) break;
        first = line.at;
    }
    for (const char *at = first; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        Str line = trim((Str){at, (int)(stop - at)});
        if (!add_sentence(&out, (Str){line.at + 3, line.len - 3})) break;
        at = stop + 1;
    }
    return text_str(&out);
}

/* `end` is where the comment ends. */
static Str doc_from_block(Arena *arena, const char *text, const char *end) {
    const char *start = end - 4;
    while (start > text && !(start[0] == '/' && start[1] == '*')) start--;
    bool is_doc = start >= text && end - start > 4 && memcmp(start, "/**", 3) == 0 && start[3] != '*';
    for (const char *at = start + 2; is_doc && at < end - 2; at++)
        if (at[0] == '*' && at[1] == '/') is_doc = false;
    Text out = {.arena = arena};
    for (const char *at = start + 3; is_doc && at < end - 2;) {
        const char *stop = memchr(at, '\n', (size_t)(end - 2 - at));
        if (!stop) stop = end - 2;
        Str line = trim((Str){at, (int)(stop - at)});
        if (line.len && line.at[0] == '*') line.at++, line.len--;
        if (!add_sentence(&out, line)) break;
        at = stop + 1;
    }
    return text_str(&out);
}

Str syntax_doc(Arena *arena, const Sources *sources, Loc first) {
    const SourceFile *file = source_of(sources, first);
    if (!file) return (Str){NULL, 0};
    const char *text = file->text.at, *end = text + (first - file->base);
    bool on_new_line =
        false; /* only then the line before may be a comment: a long line is not searched again and again */
    for (; end > text && is_blank(end[-1]); end--) on_new_line |= end[-1] == '\n';
    if (end - text >= 5 && end[-1] == '/' && end[-2] == '*') return doc_from_block(arena, text, end);
    if (on_new_line && end - text >= 3 && is_doc_line(line_before(text, end)))
        return doc_from_lines(arena, text, end);
    return (Str){NULL, 0};
}
