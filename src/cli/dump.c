/* slope dump: the program as text after a stage. */
#include "cli.h"

static ExitStatus dump(const Options *options, SlopeSession *session, const char *file) {
    const Texts *asked = &options->values[OPTION_function];
    SlopeProgram *program;
    SlopeStatus status = cli_load(session, file, &program);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    ExitStatus written = EXIT_fine;
    for (int i = 0; written == EXIT_fine && (i == 0 || i < asked->count); i++) {
        SlopeBlob *blob = NULL;
        status = slope_dump(program, asked->count ? asked->at[i] : NULL, option_text(options, OPTION_after),
                            &blob);
        written = status == SLOPE_STATUS_ok ? cli_write(blob) : cli_exit_status(status);
    }
    return written;
}

ExitStatus command_dump(const Options *options) {
    const char *file = option_file(options);
    if (!file) return EXIT_misuse;
    SlopeSession *session;
    ExitStatus status = cli_open(options, &session);
    if (session) status = dump(options, session, file);
    return cli_close(options, session, status);
}
