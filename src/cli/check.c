/* slope check: diagnostics only, for any number of files. */
#include "cli.h"

ExitStatus command_check(const Options *options) {
    if (options->files.count == 0) return cli_misuse("which file? see: slope help check");
    SlopeSession *session;
    ExitStatus worst = cli_open(options, &session);
    for (int i = 0; session && i < options->files.count; i++) {
        SlopeProgram *program;
        SlopeStatus status = slope_load_file(session, options->files.at[i], &program);
        if (status == SLOPE_STATUS_ok) status = slope_check(program);
        worst = cli_worse(worst, cli_exit_status(status));
        slope_program_free(program);
    }
    return cli_close(options, session, worst);
}
