/* slope gradcheck: derivatives against the functions they came from, as a table or as JSON, one line per
 * function. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the options */

static bool read_tolerance(const Options *options, double *tolerance) {
    const char *text = option_text(options, OPTION_tolerance);
    if (!text) return true;
    if (slope_scalar_parse(SLOPE_TYPE_double, text, tolerance) == SLOPE_STATUS_ok && *tolerance > 0 &&
        *tolerance < 1)
        return true;
    cli_misuse("the option '--tolerance' takes a number between 0 and 1, not '%s'", text);
    return false;
}

static bool read_seed(const Options *options, uint64_t *seed) {
    const char *text = option_text(options, OPTION_seed);
    if (!text || slope_scalar_parse(SLOPE_TYPE_uint64, text, seed) == SLOPE_STATUS_ok) return true;
    cli_misuse("the option '--seed' takes a whole number, not '%s'", text);
    return false;
}

/* ---- the table */

/* Of all functions that were asked for, one table. */
typedef struct Report {
    const Options *options;
    int width; /* of the names; 0: nothing was shown yet */
    int found[SLOPE_VERDICT_skipped + 1];
} Report;

static void widen(int *width, const char *name) {
    int length = (int)strlen(name);
    if (length > *width && length <= 40) *width = length;
}

static int width_of_names(const Report *report, const SlopeGradcheckResult *rows, int count) {
    const Texts *asked = &report->options->values[OPTION_function];
    int width = (int)strlen("function");
    for (int i = 0; i < count; i++) widen(&width, rows[i].function);
    for (int i = 0; i < asked->count; i++) widen(&width, asked->at[i]);
    return width;
}

static void show_error(double error, double tolerance) {
    if (error < 0) printf("  %9s", "-");
    else printf("  %8.1e%c", error, error <= tolerance ? ' ' : '!');
}

/* The table has room for a part of it; all of it is in the message, and in JSON. */
static void show_inputs(const SlopeGradcheckResult *row) {
    if (row->inputs) printf("  %.60s%s", row->inputs, strlen(row->inputs) > 60 ? "..." : "");
}

static void show_row(const SlopeGradcheckResult *row, int width) {
    bool compared = row->samples > 0;
    printf("%-*s", width, row->function);
    if (!compared)
        printf("  %s: %s\n", row->verdict == SLOPE_VERDICT_skipped ? "skipped" : "unknown", row->message);
    if (!compared) return;
    printf("  %7d", row->samples);
    show_error(row->fwd_error, row->tolerance);
    show_error(row->bwd_error, row->tolerance);
    show_error(row->identity_error, row->tolerance);
    show_inputs(row);
    printf("\n");
    if (row->verdict != SLOPE_VERDICT_wrong && row->message) printf("  note: %s\n", row->message);
    if (row->verdict != SLOPE_VERDICT_wrong) return;
    printf("  %s:%d: wrong: %s\n", row->path, row->line, row->message);
    printf("  to see it again: -f '%s' --at=%s\n", row->function, row->point);
}

static void show_header(int width) {
    printf("%-*s  %7s  %-9s  %-9s  %-9s  %s\n", width, "function", "samples", "fwd_diff", "bwd_diff",
           "identity", "worst at");
}

static void show_counts(const int *found) {
    printf("%d right, %d wrong, %d unknown, %d skipped\n", found[SLOPE_VERDICT_right],
           found[SLOPE_VERDICT_wrong], found[SLOPE_VERDICT_unknown], found[SLOPE_VERDICT_skipped]);
}

/* ---- JSON */

/* What is not a number in JSON is null: an error that was not measured. One beyond all bounds is the largest
 * number. */
static void json_number(const char *name, double value) {
    char text[32];
    if (isinf(value)) value = 1.7976931348623157e308;
    slope_scalar_print(SLOPE_TYPE_double, &value, text, sizeof text);
    printf(",\"%s\":%s", name, value < 0 || isnan(value) ? "null" : text);
}

static void show_json(const SlopeGradcheckResult *row) {
    printf("{\"verdict\":\"%s\"", slope_verdict_name(row->verdict));
    cli_json_text(stdout, "function", row->function);
    cli_json_text(stdout, "path", row->path);
    printf(",\"line\":%d,\"samples\":%d,\"discarded\":%d", row->line, row->samples, row->discarded);
    json_number("tolerance", row->tolerance);
    json_number("fwd_error", row->fwd_error);
    json_number("bwd_error", row->bwd_error);
    json_number("identity_error", row->identity_error);
    cli_json_text(stdout, "point", row->point);
    cli_json_text(stdout, "inputs", row->inputs);
    cli_json_text(stdout, "message", row->message);
    printf("}\n");
}

/* ---- as they come */

/* On a terminal, what is at work; it goes when there is a result. */
static void show_progress(const SlopeGradcheckResult *rows, int done, int count) {
    if (!isatty(2)) return;
    if (done < count) fprintf(stderr, "\r\033[K%d of %d: %.60s ...", done + 1, count, rows[done].function);
    else fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

static void hide_progress(void) {
    if (isatty(2)) fprintf(stderr, "\r\033[K");
}

static void take_result(void *user, const SlopeGradcheckResult *rows, int done, int count) {
    Report *report = user;
    bool json = option_given(report->options, OPTION_json);
    if (count == 0) return;
    hide_progress();
    if (!report->width && !json) show_header(width_of_names(report, rows, count));
    if (!report->width) report->width = width_of_names(report, rows, count);
    if (done > 0 && json) show_json(&rows[done - 1]);
    if (done > 0 && !json) show_row(&rows[done - 1], report->width);
    fflush(stdout);
    show_progress(rows, done, count);
}

/* ---- the command */

static ExitStatus judge(const Options *options, const int *found) {
    bool strict = option_given(options, OPTION_strict);
    int unchecked = found[SLOPE_VERDICT_unknown] + found[SLOPE_VERDICT_skipped];
    int checked = found[SLOPE_VERDICT_right] + found[SLOPE_VERDICT_wrong];
    bool fails = found[SLOPE_VERDICT_wrong] || (strict && (unchecked || !checked));
    return fails ? EXIT_errors : EXIT_fine;
}

/* One after the other, or all that there are. */
static SlopeStatus check_all(Report *report, SlopeProgram *program, SlopeGradcheckOptions how) {
    const Texts *asked = &report->options->values[OPTION_function];
    SlopeStatus status = SLOPE_STATUS_ok;
    for (int i = 0; status == SLOPE_STATUS_ok && (i == 0 || i < asked->count); i++) {
        const SlopeGradcheckResult *rows;
        int count;
        how.function = asked->count ? asked->at[i] : NULL;
        status = slope_gradcheck(program, &how, &rows, &count);
        for (int k = 0; status == SLOPE_STATUS_ok && k < count; k++) report->found[rows[k].verdict]++;
    }
    return status;
}

static ExitStatus gradcheck(Report *report, SlopeSession *session, const SlopeGradcheckOptions *how) {
    const Options *options = report->options;
    SlopeProgram *program;
    SlopeStatus status = cli_load(session, options->files.at[0], &program);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    ExitStatus bound = cli_bind(options, session, program);
    if (bound != EXIT_fine) return bound;
    status = check_all(report, program, *how);
    if (status != SLOPE_STATUS_ok) return cli_exit_status(status);
    if (option_given(options, OPTION_json)) return judge(options, report->found);
    if (report->width) show_counts(report->found);
    else printf("there is no differentiable function in '%s'\n", options->files.at[0]);
    return judge(options, report->found);
}

ExitStatus command_gradcheck(const Options *options) {
    Report report = {.options = options};
    SlopeGradcheckOptions how = {.points = options->values[OPTION_at].at,
                                 .point_count = options->values[OPTION_at].count,
                                 .ranges = options->values[OPTION_range].at,
                                 .range_count = options->values[OPTION_range].count,
                                 .report = take_result,
                                 .user = &report};
    int seconds = 0;
    if (!option_file(options) || !option_number(options, OPTION_samples, 1, 1000000, &how.samples) ||
        !option_number(options, OPTION_time_limit, 1, 1000000, &seconds) ||
        !read_tolerance(options, &how.tolerance) || !read_seed(options, &how.seed))
        return EXIT_misuse;
    how.seconds = seconds;
    SlopeSession *session;
    ExitStatus status = cli_open(options, &session);
    if (session) status = gradcheck(&report, session, &how);
    return cli_close(options, session, status);
}
