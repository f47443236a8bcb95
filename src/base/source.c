/* Source files share one numbering of positions, so that a position is one number. */
#include "base.h"

void sources_init(Sources *sources, Arena *arena, Sources *outer) {
    *sources = (Sources){.arena = arena, .outer = outer, .next = outer ? outer->next : 1};
}

SourceFile *source_add(Sources *sources, Name path, Str text) {
    SourceFile *file = arena_new(sources->arena, SourceFile);
    file->path = path;
    file->text = text;
    file->base = sources->next;
    sources->next += (Loc)text.len + 1; /* the end of the file is a position too */
    vec_push(sources->arena, &sources->files, file);
    return file;
}

SourceFile *source_of(const Sources *sources, Loc loc) {
    if (loc == 0 || loc >= sources->next) return NULL;
    if (sources->outer && loc < sources->outer->next) return source_of(sources->outer, loc);
    int low = 0, high = sources->files.count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (sources->files.at[middle]->base <= loc) low = middle;
        else high = middle - 1;
    }
    return sources->files.at[low];
}

void source_mark_line(Sources *sources, Loc at, int line, Name path) {
    SourceFile *file = source_of(sources, at);
    struct LineMark mark = {(int)(at - file->base), line, path ? path : file->path};
    vec_push(sources->arena, &file->marks, mark);
}

static void find_lines(Sources *sources, SourceFile *file) {
    VEC(int) starts = {0};
    vec_push(sources->arena, &starts, 0);
    for (int i = 0; i < file->text.len; i++)
        if (file->text.at[i] == '\n') vec_push(sources->arena, &starts, i + 1);
    file->lines = starts.at;
    file->nlines = starts.count;
}

static int line_index(const SourceFile *file, int offset) {
    int low = 0, high = file->nlines - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (file->lines[middle] <= offset) low = middle;
        else high = middle - 1;
    }
    return low;
}

static int count_characters(Str s) {
    int n = 0;
    for (int i = 0; i < s.len; i++)
        n += ((unsigned char)s.at[i] & 0xc0) != 0x80; /* not a UTF-8 continuation */
    return n;
}

/* Counted from the place that was asked for last, if that is on the same line: messages tend to come in
 * order, and a line may be the whole file. */
static int column_at(SourceFile *file, int line, int start, int offset) {
    const char *text = file->text.at;
    if (file->asked_line != line || offset - start < file->asked - offset)
        file->asked_line = line, file->asked = start, file->asked_column = 1;
    if (offset >= file->asked)
        file->asked_column += count_characters((Str){text + file->asked, offset - file->asked});
    else file->asked_column -= count_characters((Str){text + offset, file->asked - offset});
    file->asked = offset;
    return file->asked_column;
}

/* The line around the offset; of a very long one as much on both sides as anyone can want to see. */
static Str text_around(const SourceFile *file, int start, int offset) {
    enum { MOST = 1024 };
    const char *text = file->text.at;
    if (offset - start > MOST) start = offset - MOST;
    while (start < offset && ((unsigned char)text[start] & 0xc0) == 0x80)
        start++; /* not inside a character */
    int end = start, last = file->text.len - offset < MOST ? file->text.len : offset + MOST;
    while (end < last && text[end] != '\n' && text[end] != '\r') end++;
    return (Str){text + start, end - start};
}

Position source_position(Sources *sources, Loc loc) {
    SourceFile *file = source_of(sources, loc);
    if (!file) return (Position){.text = STR("")};
    while (sources->outer && loc < sources->outer->next) sources = sources->outer; /* whose file it is */
    if (!file->lines) find_lines(sources, file);
    int offset = (int)(loc - file->base), index = line_index(file, offset), start = file->lines[index];
    Position position = {.path = file->path, .line = index + 1, .text = text_around(file, start, offset)};
    position.byte = offset - (int)(position.text.at - file->text.at);
    position.column = column_at(file, index + 1, start, offset);
    for (int i = file->marks.count - 1; i >= 0; i--) {
        const struct LineMark *mark = &file->marks.at[i];
        if (mark->at > offset) continue;
        position.path = mark->path;
        position.line = mark->line + index - line_index(file, mark->at);
        break;
    }
    return position;
}
