/* slope build: code for a target, to a file or to standard output. */
#include "cli.h"

#include <string.h>

static ExitStatus check_stage(const Options *options) {
    const char *stage = option_text(options, OPTION_stage);
    if (!stage || strcmp(stage, "compute") == 0) return EXIT_fine;
    return cli_misuse("only compute programs can be built: '-stage compute', not '%s'", stage);
}

static ExitStatus build(const Options *options, SlopeSession *session, const char *file) {
    SlopeBuildOptions how = {
        .target = option_text(options, OPTION_target),
        .entries = options->values[OPTION_entry].at,
        .entry_count = options->values[OPTION_entry].count,
    };
    const char *path = option_text(options, OPTION_output);
    SlopeProgram *program;
    SlopeBlob *blob = NULL;
    SlopeStatus status = slope_load_file(session, file, &program);
    if (status == SLOPE_STATUS_ok)
        status = path ? slope_build_file(program, &how, path) : slope_build(program, &how, &blob);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    return blob ? cli_write(blob) : EXIT_fine;
}

ExitStatus command_build(const Options *options) {
    const char *file = option_file(options);
    if (!file || check_stage(options) != EXIT_fine) return EXIT_misuse;
    if (!option_given(options, OPTION_target))
        return cli_misuse("what is to be made? say: -target TARGET; see: slope help build");
    SlopeSession *session;
    ExitStatus status = cli_open(options, &session);
    if (session) status = build(options, session, file);
    return cli_close(options, session, status);
}
