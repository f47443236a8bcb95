/* What the commands have in common: a session made as the options say, messages, the end. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_ends_with(const char *text, const char *ending) {
    size_t length = strlen(text), last = strlen(ending);
    return length >= last && strcmp(text + length - last, ending) == 0;
}

ExitStatus cli_exit_status(SlopeStatus status) {
    switch (status) {
    case SLOPE_STATUS_ok: return EXIT_fine;
    case SLOPE_STATUS_error: return EXIT_errors;
    case SLOPE_STATUS_stopped: return EXIT_errors;
    case SLOPE_STATUS_misuse: return EXIT_misuse;
    case SLOPE_STATUS_memory: return EXIT_fault;
    case SLOPE_STATUS_fault: return EXIT_fault;
    }
    return EXIT_fault;
}

ExitStatus cli_worse(ExitStatus a, ExitStatus b) { return a > b ? a : b; }

ExitStatus cli_misuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("slope: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_misuse;
}

/* ---- messages */

static void report_json(void *user, const SlopeDiagnostic *diagnostic) {
    (void)user;
    fputs(diagnostic->json, stderr);
}

static void report_text(void *user, const SlopeDiagnostic *diagnostic) {
    (void)user;
    fputs(diagnostic->text, stderr);
}

static void report_coloured(void *user, const SlopeDiagnostic *diagnostic) {
    (void)user;
    fputs(diagnostic->coloured, stderr);
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value;
}

static bool terminal_has_colours(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && !is_set("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

static bool choose_report(const Options *options, SlopeConfig *config) {
    const char *when = option_text(options, OPTION_colour);
    bool always = when && strcmp(when, "always") == 0, never = when && strcmp(when, "never") == 0;
    if (when && !always && !never && strcmp(when, "auto") != 0) {
        cli_misuse("the option '--color' takes auto, always or never, not '%s'", when);
        return false;
    }
    bool coloured = always || (!never && terminal_has_colours());
    config->report = option_given(options, OPTION_json) ? report_json
                     : coloured                         ? report_coloured
                                                        : report_text;
    return true;
}

/* ---- opening */

/* "NAME=VALUE" in two; the copies are freed by their owner. */
static SlopeDefine *split_defines(const Texts *texts) {
    SlopeDefine *defines = calloc((size_t)texts->count + 1, sizeof *defines);
    for (int i = 0; defines && i < texts->count; i++) {
        char *name = strdup(texts->at[i]);
        char *equals = name ? strchr(name, '=') : NULL;
        if (equals) *equals++ = 0;
        defines[i] = (SlopeDefine){name, equals ? equals : ""};
    }
    return defines;
}

static void free_defines(SlopeDefine *defines, int count) {
    for (int i = 0; defines && i < count; i++) free((void *)(uintptr_t)defines[i].name);
    free(defines);
}

static bool read_numbers(const Options *options, SlopeConfig *config) {
    return option_number(options, OPTION_error_limit, 0, 1000000, &config->error_limit) &&
           option_number(options, OPTION_optimization, 0, 3, &config->optimization) &&
           option_number(options, OPTION_wave, 1, 128, &config->wave) &&
           option_counts(options, OPTION_block, 1024, config->block) &&
           option_number(options, OPTION_threads, 1, 4096, &config->threads) &&
           option_number(options, OPTION_stack, 1, 1 << 20, &config->stack_mib) &&
           (options->command != COMMAND_run ||
            option_number(options, OPTION_tape, 1, 1 << 24, &config->tape_mib)) &&
           option_number(options, OPTION_limit_memory, 1, 1 << 20, &config->limit_memory) &&
           option_number(options, OPTION_limit_time, 1, 1 << 20, &config->limit_time);
}

/* A single group, of main above all, is the work of one thread; and how many there are tells how much there
 * is to do. */
static bool choose_by_groups(const Options *options, SlopeConfig *config) {
    double all = 0;
    int count = options->values[OPTION_dispatch].count, groups[3];
    if (options->command != COMMAND_run) return true;
    for (int i = 0; i < (count ? count : 1); i++) {
        if (!option_counts_at(options, OPTION_dispatch, i, INT_MAX, groups)) return false;
        all += (double)groups[0] * groups[1] * groups[2];
    }
    if (all == 1 && config->threads == 0) config->threads = 1;
    config->groups = all < 1 ? 1 : all < INT_MAX ? (int)all : INT_MAX;
    return true;
}

static bool choose_lanes(const Options *options, SlopeConfig *config) {
    const char *given = option_text(options, OPTION_lanes);
    if (given && strcmp(given, "auto") == 0) {
        config->lanes = SLOPE_LANES_AUTO;
        return true;
    }
    if (!option_number(options, OPTION_lanes, 1, 16, &config->lanes)) return false;
    if ((config->lanes & (config->lanes - 1)) == 0) return true;
    cli_misuse("the option '--lanes' takes 1, 2, 4, 8, 16 or auto, not %d", config->lanes);
    return false;
}

static bool choose_floats(const Options *options, SlopeConfig *config) {
    static const char *const models[] = {
        [SLOPE_FLOATS_contract] = "contract", [SLOPE_FLOATS_strict] = "strict", [SLOPE_FLOATS_fast] = "fast"};
    const char *model = option_text(options, OPTION_floats);
    if (!model) return true;
    for (int i = 0; i < (int)(sizeof models / sizeof *models); i++)
        if (strcmp(model, models[i]) == 0) {
            config->floats = (SlopeFloats)i;
            return true;
        }
    cli_misuse("the option '--fp' takes strict, contract or fast, not '%s'", model);
    return false;
}

/* SLOPE_CACHE may be empty: none. */
static const char *choose_cache(const Options *options) {
    const char *folder = option_text(options, OPTION_cache), *usual = getenv("SLOPE_CACHE");
    if (option_given(options, OPTION_no_cache)) return NULL;
    return folder ? folder : usual ? usual : SLOPE_CACHE_USER;
}

ExitStatus cli_open(const Options *options, SlopeSession **session) {
    SlopeConfig config;
    slope_config_init(&config);
    *session = NULL;
    if (!read_numbers(options, &config) || !choose_report(options, &config) ||
        !choose_floats(options, &config) || !choose_lanes(options, &config) ||
        !choose_by_groups(options, &config))
        return EXIT_misuse;
    const Texts *defines = &options->values[OPTION_define];
    SlopeDefine *split = split_defines(defines);
    config.defines = split;
    config.define_count = split ? defines->count : 0;
    config.include_paths = options->values[OPTION_include].at;
    config.include_path_count = options->values[OPTION_include].count;
    config.conformances = options->values[OPTION_conformance].at;
    config.conformance_count = options->values[OPTION_conformance].count;
    config.links = options->values[OPTION_link].at;
    config.link_count = options->values[OPTION_link].count;
    config.no_warnings = option_given(options, OPTION_no_warnings);
    config.warnings_as_errors = option_given(options, OPTION_werror);
    config.portable = option_given(options, OPTION_portable);
    config.debug_info = option_given(options, OPTION_debug);
    config.unchecked = option_given(options, OPTION_unchecked);
    config.device = option_text(options, OPTION_device);
    config.device_code = option_text(options, OPTION_device_code);
    config.interpret = option_given(options, OPTION_interpret);
    config.cache = choose_cache(options);
    config.strict = options->command == COMMAND_run && option_given(options, OPTION_strict);
    SlopeStatus status = slope_session_new(&config, session);
    free_defines(split, defines->count);
    return cli_exit_status(status);
}

SlopeStatus cli_load(SlopeSession *session, const char *file, SlopeProgram **program) {
    if (strcmp(file, "-") != 0) return slope_load_file(session, file, program);
    Data text;
    *program = NULL;
    SlopeStatus status = SLOPE_STATUS_misuse;
    if (data_read_stream(stdin, "standard input", &text) == EXIT_fine)
        status = slope_load_text(session, "<stdin>", text.bytes, text.size, program);
    free(text.bytes);
    return status;
}

/* ---- the end */

static void show_times(const SlopeSession *session) {
    double total = 0;
    fprintf(stderr, "%-16s %10s %12s\n", "stage", "ms", "peak MiB");
    SlopeTiming timing;
    for (int i = 0; slope_timing(session, i, &timing); i++) {
        total += timing.milliseconds;
        fprintf(stderr, "%-16s %10.3f %12.1f\n", timing.stage, timing.milliseconds,
                (double)timing.peak_memory / (1024.0 * 1024.0));
    }
    fprintf(stderr, "%-16s %10.3f\n", "total", total);
}

/* Who closes a pipe early, as `head` does, has read what was wanted. */
ExitStatus cli_flush(ExitStatus status) {
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE) return status;
    return cli_worse(status,
                     cli_misuse("cannot write to standard output: %s", strerror(errno ? errno : EIO)));
}

ExitStatus cli_close(const Options *options, SlopeSession *session, ExitStatus status) {
    bool made_code = session && (status == EXIT_fine || slope_stored_count(session) > 0);
    if (made_code && option_given(options, OPTION_report_checkpoints)) stored_show(options, session);
    if (made_code && option_given(options, OPTION_remarks)) remarks_show(session);
    if (session && option_given(options, OPTION_time)) show_times(session);
    slope_session_free(session);
    return cli_flush(status);
}

/* `,"name":"text"`, with what JSON wants escaped; null for NULL. */
void cli_json_text(FILE *out, const char *name, const char *text) {
    fprintf(out, text ? ",\"%s\":\"" : ",\"%s\":null", name);
    if (!text) return;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else if (c < ' ') fprintf(out, "\\u%04x", c);
        else fputc(c, out);
    }
    fputc('"', out);
}

ExitStatus cli_write(const SlopeBlob *blob) {
    if (isatty(STDOUT_FILENO) && memchr(blob->data, 0, blob->size))
        return cli_misuse("this is nothing for a terminal; say where to write it: -o FILE");
    fwrite(blob->data, 1, blob->size, stdout);
    return EXIT_fine;
}
