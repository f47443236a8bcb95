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

Position source_position(Sources *sources, Loc loc) {
    SourceFile *file = source_of(sources, loc);
    if (!file) return (Position){.text = STR("")};
    while (sources->outer && loc < sources->outer->next) sources = sources->outer; /* whose file it is */
    if (!file->lines) find_lines(sources, file);
    int offset = (int)(loc - file->base), index = line_index(file, offset), start = file->lines[index],
        end = start;
    while (end < file->text.len && file->text.at[end] != '\n' && file->text.at[end] != '\r') end++;
    Position position = {.path = file->path, .line = index + 1, .byte = offset - start};
    position.text = (Str){file->text.at + start, end - start};
    position.column = count_characters((Str){position.text.at, position.byte}) + 1;
    for (int i = file->marks.count - 1; i >= 0; i--) {
        const struct LineMark *mark = &file->marks.at[i];
        if (mark->at > offset) continue;
        position.path = mark->path;
        position.line = mark->line + index - line_index(file, mark->at);
        break;
    }
    return position;
}
