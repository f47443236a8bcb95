/* slope check: diagnostics only, for any number of files. */
#include "cli.h"

/* Checking makes no code; what reverse passes keep is known once the derivatives are made. */
static SlopeStatus check(const Options *options, SlopeProgram *program) {
    SlopeBlob *blob;
    SlopeStatus status = slope_check(program);
    if (status != SLOPE_STATUS_ok || !option_given(options, OPTION_report_checkpoints)) return status;
    return slope_dump(program, NULL, "checkpoint", &blob);
}

ExitStatus command_check(const Options *options) {
    if (options->files.count == 0) return cli_misuse("which file? see: slope help check");
    SlopeSession *session;
    ExitStatus worst = cli_open(options, &session);
    for (int i = 0; session && i < options->files.count; i++) {
        SlopeProgram *program;
        SlopeStatus status = cli_load(session, options->files.at[i], &program);
        if (status == SLOPE_STATUS_ok) status = check(options, program);
        worst = cli_worse(worst, cli_exit_status(status));
        if (!option_given(options, OPTION_report_checkpoints))
            slope_program_free(program); /* it is told at the end */
    }
    return cli_close(options, session, worst);
}
