/* slope dump: the program as text after a stage. */
#include "cli.h"

static ExitStatus dump(const Options *options, SlopeSession *session, const char *file) {
    SlopeProgram *program;
    SlopeBlob *blob = NULL;
    SlopeStatus status = cli_load(session, file, &program);
    if (status == SLOPE_STATUS_ok)
        status = slope_dump(program, option_text(options, OPTION_function),
                            option_text(options, OPTION_after), &blob);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    return cli_write(blob);
}

ExitStatus command_dump(const Options *options) {
    const char *file = option_file(options);
    if (!file) return EXIT_misuse;
    SlopeSession *session;
    ExitStatus status = cli_open(options, &session);
    if (session) status = dump(options, session, file);
    return cli_close(options, session, status);
}
