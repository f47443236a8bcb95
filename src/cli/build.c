/* slope build: code for a target, to a file or to standard output. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static ExitStatus check_stage(const Options *options) {
    const char *stage = option_text(options, OPTION_stage);
    if (!stage || strcmp(stage, "compute") == 0) return EXIT_fine;
    return cli_misuse("only compute programs can be built: '-stage compute', not '%s'", stage);
}

/* What -entry and -f name, in one list. */
static const char **names_of(const Options *options, int *count) {
    const Texts *lists[] = {&options->values[OPTION_entry], &options->values[OPTION_function]};
    const char **names = malloc((size_t)(lists[0]->count + lists[1]->count + 1) * sizeof *names);
    *count = 0;
    for (int i = 0; names && i < 2; i++)
        for (int k = 0; k < lists[i]->count; k++) names[(*count)++] = lists[i]->at[k];
    return names;
}

static bool is_dash(const char *path) { return path && strcmp(path, "-") == 0; }

/* All files, or none. Code for standard output comes last. */
static SlopeStatus write_all(SlopeProgram *program, SlopeBuildOptions how, const char *path,
                             SlopeBlob **blob) {
    SlopeBuildOptions rest = how;
    if (path && !is_dash(path)) return slope_build_file(program, &how, path);
    const char *first = how.header_path ? how.header_path : how.page_path;
    rest.header = how.header_path;
    rest.side_by_side = !rest.header;
    rest.header_path = NULL;
    if (!rest.header) rest.page_path = NULL;
    SlopeStatus status = slope_build(program, &how, blob);
    return status == SLOPE_STATUS_ok && first ? slope_build_file(program, &rest, first) : status;
}

/* What the ending of the file to be made says. */
static const char *target_of(const Options *options) {
    static const char *const endings[][2] = {{".so", "shared"},  {".o", "obj"},      {".s", "asm"},
                                             {".ll", "llvm-ir"}, {".c", "c"},        {".cu", "cuda"},
                                             {".ptx", "ptx"},    {".slang", "slang"}};
    const char *target = option_text(options, OPTION_target), *path = option_text(options, OPTION_output);
    size_t length = path ? strlen(path) : 0;
    for (size_t i = 0; !target && i < sizeof endings / sizeof endings[0]; i++) {
        size_t n = strlen(endings[i][0]);
        if (length > n && strcmp(path + length - n, endings[i][0]) == 0) return endings[i][1];
    }
    return target;
}

static ExitStatus build(const Options *options, SlopeSession *session, const char *file) {
    SlopeBuildOptions how = {
        .target = target_of(options),
        .openmp = option_given(options, OPTION_openmp),
        .alone = option_given(options, OPTION_threads),
        .header_path = option_text(options, OPTION_header),
        .page_path = option_text(options, OPTION_side_by_side),
        .lines = option_given(options, OPTION_lines),
        .comments = option_given(options, OPTION_comments),
        .sanitize = option_given(options, OPTION_sanitize),
    };
    if (how.sanitize && strcmp(option_text(options, OPTION_sanitize), "address") != 0)
        return cli_misuse("there is one sanitizer for compiled code: --sanitize address");
    if (is_dash(how.header_path) || is_dash(how.page_path))
        return cli_misuse("only the code can go to standard output: give %s the name of a file",
                          is_dash(how.header_path) ? "--header" : "--side-by-side");
    int threads = 1;
    if (!option_number(options, OPTION_tape, 1, 1 << 24, &how.tape) ||
        !option_number(options, OPTION_threads, 1, 4096, &threads))
        return EXIT_misuse;
    if (how.alone && threads != 1)
        return cli_misuse("build has no use for a number of threads but 1: code for several is what it makes "
                          "without --threads");
    const char **names = names_of(options, &how.entry_count);
    how.entries = names;
    SlopeProgram *program;
    SlopeBlob *blob = NULL;
    SlopeStatus status = names ? cli_load(session, file, &program) : SLOPE_STATUS_memory;
    if (status == SLOPE_STATUS_ok)
        status = write_all(program, how, option_text(options, OPTION_output), &blob);
    free(names);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    return blob ? cli_write(blob) : EXIT_fine;
}

ExitStatus command_build(const Options *options) {
    const char *file = option_file(options);
    if (!file || check_stage(options) != EXIT_fine) return EXIT_misuse;
    if (!target_of(options))
        return cli_misuse("what is to be made? say: -target TARGET, or -o FILE.so; see: slope help build");
    SlopeSession *session;
    ExitStatus status = cli_open(options, &session);
    if (session) status = build(options, session, file);
    return cli_close(options, session, status);
}
