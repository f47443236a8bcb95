/* Writes the index of the prelude as C source: which file declares what, beginning with which token.
 *
 * A program of the build. Sessions would find out the same by parsing all of the prelude, each time they start. */
#include "driver/driver.h"

#include <stdio.h>
#include <stdlib.h>

static void print_text(FILE *file, const char *text) {
    if (text) fprintf(file, "\"%s\"", text);
    else fputs("NULL", file);
}

static void print_row(FILE *file, const PreludeRow *row) {
    fprintf(file, "    {%d, %d, ", row->file, row->at);
    print_text(file, row->name);
    fputs(", ", file);
    print_text(file, row->derivative_of);
    fprintf(file, ", %s},\n", row->is_extension ? "true" : "false");
}

static bool print_rows(const char *path, const PreludeRows *rows) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fputs("/* Made by cmake/index.c from prelude/. */\n#include \"driver/driver.h\"\n\n", file);
    fputs("const PreludeRow prelude_rows[] = {\n", file);
    for (int i = 0; i < rows->count; i++) print_row(file, &rows->at[i]);
    fputs("    {-1, 0, NULL, NULL, false},\n};\n", file);
    return fclose(file) == 0;
}

static void make_index(Syntax *syntax, PreludeRows *rows) {
    int nfiles = 0;
    while (prelude_files[nfiles].name) nfiles++;
    syntax_init_names(syntax->names);
    library_index(syntax, prelude_files, nfiles, rows);
}

int main(int argc, char **argv) {
    Arena arena;
    Names names;
    Sources sources;
    Diags diags;
    PreludeRows rows = {0};
    arena_init(&arena, allocator_system, NULL);
    names_init(&names, &arena, NULL);
    sources_init(&sources, &arena, NULL);
    diags_init(&diags, &arena, &sources);
    make_index(&(Syntax){.arena = &arena, .names = &names, .sources = &sources, .diags = &diags}, &rows);
    bool written = argc == 2 && print_rows(argv[1], &rows);
    arena_free(&arena);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
