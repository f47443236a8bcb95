/* Sessions: configuration, messages on their way out, files on their way in, and the trap that all calls
 * share. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *slope_version(void) { return SLOPE_VERSION; }

const char *slope_status_name(SlopeStatus status) {
    switch (status) {
    case SLOPE_STATUS_ok: return "ok";
    case SLOPE_STATUS_error: return "error";
    case SLOPE_STATUS_misuse: return "misuse";
    case SLOPE_STATUS_stopped: return "stopped";
    case SLOPE_STATUS_memory: return "memory";
    case SLOPE_STATUS_fault: return "fault";
    }
    return "unknown";
}

/* ---- defaults of the callbacks */

static void *default_resize(void *user, void *old, size_t old_size, size_t new_size) {
    return allocator_system.resize(user, old, old_size, new_size);
}

enum { MOST_SOURCE = 256 << 20 }; /* bytes of a file; a device may have no end */

/* Reads to the end, so that pipes work too; `*size` is what was read. */
static int read_all(int descriptor, char **bytes, size_t *size) {
    size_t room = 16 * 1024;
    *size = 0;
    *bytes = malloc(room);
    while (*bytes) {
        ssize_t got = read(descriptor, *bytes + *size, room - *size);
        if (got == 0) return 0;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        *size += (size_t)got;
        if (*size > MOST_SOURCE) return EFBIG;
        if (*size < room) continue;
        char *grown = realloc(*bytes, room *= 2);
        if (!grown) break;
        *bytes = grown;
    }
    return ENOMEM;
}

static int default_read_file(void *user, const char *path, const char **bytes, size_t *size) {
    (void)user;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    struct stat about;
    char *read_bytes = NULL;
    int error = fstat(descriptor, &about) < 0 ? errno
                : S_ISDIR(about.st_mode)      ? EISDIR
                : about.st_size > MOST_SOURCE ? EFBIG
                                              : read_all(descriptor, &read_bytes, size);
    close(descriptor);
    *bytes = read_bytes;
    if (error) free(read_bytes);
    return error;
}

static void default_release_file(void *user, const char *bytes, size_t size) {
    (void)user, (void)size;
    free((void *)(uintptr_t)bytes);
}

void slope_config_init(SlopeConfig *config) {
    if (!config) return;
    *config = (SlopeConfig){
        .resize = default_resize,
        .read_file = default_read_file,
        .release_file = default_release_file,
        .error_limit = 20,
        .optimization = 3,
    };
}

/* ---- messages */

static SlopeNote public_note(const DiagNote *note) {
    return (SlopeNote){note->message, note->at.path ? note->at.path->text : NULL, note->at.line,
                       note->at.column};
}

static void deliver(SlopeSession *session, const SlopeDiagnostic *diagnostic) {
    if (session->config.report) session->config.report(session->config.user, diagnostic);
    else text_add(&session->messages, str_of(diagnostic->text));
}

/* The sink of Diags. */
static void report(void *user, const Diagnostic *d) {
    SlopeSession *session = user;
    Arena *arena = arena_scratch(&session->arena);
    Text text = {.arena = arena}, coloured = text, json = text;
    diag_render_text(&text, d, (RenderStyle){.colour = false});
    diag_render_text(&coloured, d, (RenderStyle){.colour = true});
    diag_render_json(&json, d);
    SlopeNote *notes = arena_array(arena, SlopeNote, d->nnotes);
    for (int i = 0; i < d->nnotes; i++) notes[i] = public_note(&d->notes[i]);
    SlopeDiagnostic out = {
        .severity = (SlopeSeverity)d->severity,
        .code = d->code,
        .message = d->message,
        .path = d->at.path ? d->at.path->text : NULL,
        .line = d->at.line,
        .column = d->at.column,
        .first_line = d->extent.line,
        .first_column = d->extent.column,
        .end_line = d->extent.end_line,
        .end_column = d->extent.end_column,
        .fix = d->fix.text,
        .fix_column = d->fix.column,
        .fix_end_column = d->fix.end_column,
        .notes = notes,
        .note_count = d->nnotes,
        .text = text.at,
        .coloured = coloured.at,
        .json = json.at,
    };
    deliver(session, &out);
    arena_free(arena);
}

const char *slope_messages(const SlopeSession *session) {
    return session && session->messages.at ? session->messages.at : "";
}

void slope_clear_messages(SlopeSession *session) {
    if (!session) return;
    arena_free(&session->message_arena);
    session->messages = (Text){.arena = &session->message_arena};
}

/* ---- entering and leaving */

void driver_init_diags(SlopeSession *session, Diags *diags, Arena *arena, Sources *sources) {
    diags_init(diags, arena, sources);
    diags->sink = report;
    diags->user = session;
    diags->limit = session->config.error_limit > 0 ? session->config.error_limit : 0;
    diags->no_warnings = session->config.no_warnings;
    diags->warnings_as_errors = session->config.warnings_as_errors;
    diags->portable = session->config.portable;
}

void driver_talk_about(SlopeSession *session, SlopeProgram *program) {
    session->program = program;
    session->diags = program ? &program->diags : &session->own_diags;
    diags_begin(session->diags);
}

bool driver_enter(SlopeSession *session) {
    session->timer = NULL;
    driver_talk_about(session, NULL);
    return !session->broken;
}

bool driver_enter_program(SlopeProgram *program) {
    SlopeSession *session = program->session;
    session->timer = NULL;
    program->limits.started = 0; /* a call that was left through the trap did not stop the clock */
    driver_talk_about(session, program);
    return !session->broken && program->refusal == SLOPE_STATUS_ok;
}

/* What is wrong with a program is found once, and told then; who goes on with it is told that. */
SlopeStatus driver_leave(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_error && !session->diags->errors)
        diag_report(session->diags, DIAG_told_before, 0, "the program");
    diags_flush(session->diags);
    return status == SLOPE_STATUS_ok && session->diags->errors ? SLOPE_STATUS_error : status;
}

SlopeStatus driver_missing(SlopeSession *session, const char *function, const char *argument) {
    diag_report(session->diags, DIAG_argument_missing, 0, function, argument);
    return driver_leave(session, SLOPE_STATUS_misuse);
}

/* Says what sprang the trap, in fixed memory: there may be none left. */
static void report_trap(SlopeSession *session, char *what, int code) {
    char text[320], coloured[320], json[480];
    for (char *c = what; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = '\''; /* it goes into JSON as it is */
    snprintf(text, sizeof text, "error E%d: %.200s\n", code, what);
    snprintf(coloured, sizeof coloured, "\033[1;31merror E%d:\033[0m %.200s\n", code, what);
    snprintf(json, sizeof json,
             "{\"severity\":\"error\",\"code\":\"E%d\",\"path\":null,\"line\":null,\"column\":null,"
             "\"message\":\"%.200s\",\"notes\":[]}\n",
             code, what);
    SlopeDiagnostic out = {.severity = SLOPE_SEVERITY_error, .code = code, .message = what};
    out.text = text, out.coloured = coloured, out.json = json;
    if (!setjmp(session->trap.at)) deliver(session, &out);
}

/* The message for what ended the work; 0: it has been reported. */
static int describe_trap(const SlopeSession *session, char *what, size_t size) {
    const Limits *limits = session->exceeded;
    if (session->trap.why == TRAP_limit) return 0;
    if (session->trap.why == TRAP_fault || session->trap.why == TRAP_malformed)
        return diag_fill(what, size, DIAG_internal_fault, session->trap.what);
    if (limits && limits->exceeded == DIAG_memory_limit)
        return diag_fill(what, size, DIAG_memory_limit, (int)(limits->most_bytes >> 20));
    if (limits && limits->exceeded == DIAG_time_limit)
        return diag_fill(what, size, DIAG_time_limit, (int)limits->most_seconds);
    if (limits && limits->exceeded == DIAG_stack_limit) return diag_fill(what, size, DIAG_stack_limit);
    return diag_fill(what, size, DIAG_out_of_memory);
}

static void release_file(SlopeSession *session) {
    const SlopeConfig *config = &session->config;
    if (session->file && config->release_file)
        config->release_file(config->user, session->file, session->file_size);
    session->file = NULL;
}

SlopeStatus driver_trapped(SlopeSession *session) {
    char what[256];
    release_file(session);
    TrapReason why = session->trap.why;
    int code = describe_trap(session, what, sizeof what);
    bool limited = why == TRAP_limit || session->exceeded;
    session->exceeded = NULL;
    if (!setjmp(session->trap.at)) diags_flush(session->diags);
    session->diags->muted = 0;
    session->diags->errors++;
    if (code) report_trap(session, what, code);
    session->broken = session->broken || why == TRAP_fault;
    bool fault = why == TRAP_fault || why == TRAP_malformed;
    SlopeStatus status = fault ? SLOPE_STATUS_fault : limited ? SLOPE_STATUS_error : SLOPE_STATUS_memory;
    if (session->program) session->program->refusal = status; /* what was at work is half made */
    return status;
}

SlopeStatus driver_refused(SlopeSession *session) {
    char what[256];
    DiagId id = session->broken ? DIAG_session_closed : DIAG_program_closed;
    int code = diag_fill(what, sizeof what, id);
    session->diags->errors++;
    report_trap(session, what, code);
    return session->broken ? SLOPE_STATUS_fault : session->program->refusal;
}

/* ---- files */

int driver_open_file(SlopeSession *session, const char *path, Str *bytes) {
    const SlopeConfig *config = &session->config;
    const char *read = NULL;
    size_t size = 0;
    int error = config->read_file(config->user, path, &read, &size);
    if (error) return error;
    session->file = read;
    session->file_size = size;
    bool fits = size < INT32_MAX / 2;
    if (fits) *bytes = (Str){read, (int)size};
    else release_file(session);
    return fits ? 0 : EFBIG;
}

int driver_take_file(SlopeProgram *program, Str bytes, Str *text) {
    bool fits = (size_t)bytes.len + 2 < UINT32_MAX - program->sources.next;
    if (fits) {
        char *copy = arena_take(&program->arena, (size_t)bytes.len + 1);
        if (bytes.len) memcpy(copy, bytes.at, (size_t)bytes.len);
        *text = (Str){copy, bytes.len};
    }
    release_file(program->session);
    return fits ? 0 : EFBIG;
}

int driver_read_file(SlopeProgram *program, const char *path, Str *text) {
    Str bytes;
    int error = driver_open_file(program->session, path, &bytes);
    return error ? error : driver_take_file(program, bytes, text);
}

bool driver_reads_disk(const SlopeSession *session) { return session->config.read_file == default_read_file; }

/* ---- sessions */

bool driver_list_is_whole(const char *const *list, int count) {
    if (count < 0) return false;
    for (int i = 0; i < count; i++)
        if (!list || !list[i]) return false;
    return true;
}

static bool is_whole(const SlopeConfig *config) {
    if (config->define_count < 0) return false;
    for (int i = 0; i < config->define_count; i++)
        if (!config->defines || !config->defines[i].name) return false;
    return driver_list_is_whole(config->include_paths, config->include_path_count) &&
           driver_list_is_whole(config->conformances, config->conformance_count) &&
           driver_list_is_whole(config->links, config->link_count);
}

static const char *copy_text(Arena *arena, const char *text) {
    return text ? arena_copy(arena, text, strlen(text) + 1) : NULL;
}

static const char *const *copy_list(Arena *arena, const char *const *list, int count) {
    const char **copy = arena_array(arena, const char *, count);
    for (int i = 0; i < count; i++) copy[i] = copy_text(arena, list[i]);
    return copy;
}

static void copy_config(SlopeSession *session) {
    Arena *arena = &session->arena;
    SlopeConfig *config = &session->config;
    config->include_paths = copy_list(arena, config->include_paths, config->include_path_count);
    config->conformances = copy_list(arena, config->conformances, config->conformance_count);
    config->links = copy_list(arena, config->links, config->link_count);
    SlopeDefine *defines = arena_array(arena, SlopeDefine, config->define_count);
    for (int i = 0; i < config->define_count; i++)
        defines[i] =
            (SlopeDefine){copy_text(arena, config->defines[i].name),
                          copy_text(arena, config->defines[i].value ? config->defines[i].value : "")};
    config->defines = defines;
    config->device = copy_text(arena, config->device);
    config->device_code = copy_text(arena, config->device_code);
    config->cache = copy_text(arena, config->cache);
}

static void fill_in_defaults(SlopeConfig *config) {
    SlopeConfig defaults;
    slope_config_init(&defaults);
    if (!config->resize) config->resize = defaults.resize;
    if (!config->read_file) {
        config->read_file = defaults.read_file;
        config->release_file = defaults.release_file;
    }
}

/* Numbers that mean nothing are told here, not by what comes of them. */
static SlopeStatus check_numbers(SlopeSession *session) {
    const SlopeConfig *config = &session->config;
    int lanes = config->lanes;
    const struct {
        const char *name;
        int value;
        bool fits;
        const char *wanted;
    } numbers[] = {
        {"error_limit", config->error_limit, config->error_limit >= 0, "0 or more"},
        {"optimization", config->optimization, config->optimization >= 0 && config->optimization <= 3,
         "0 to 3"},
        {"floats", (int)config->floats, (unsigned)config->floats <= SLOPE_FLOATS_fast, "a SlopeFloats"},
        {"threads", config->threads, config->threads >= 0, "0 or more"},
        {"lanes", lanes,
         lanes == SLOPE_LANES_AUTO || (lanes >= 0 && lanes <= 16 && (lanes & (lanes - 1)) == 0),
         "-1, 0, 1, 2, 4, 8 or 16"},
        {"groups", config->groups, config->groups >= 0, "0 or more"},
        {"wave", config->wave, config->wave >= 0 && config->wave <= 128, "0 to 128"},
        {"stack_mib", config->stack_mib, config->stack_mib >= 0, "0 or more"},
        {"tape_mib", config->tape_mib, config->tape_mib >= 0, "0 or more"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].fits) continue;
        diag_report(session->diags, DIAG_bad_config, 0, numbers[i].name, numbers[i].wanted, numbers[i].value);
        return SLOPE_STATUS_misuse;
    }
    return SLOPE_STATUS_ok;
}

static SlopeStatus open_session(SlopeSession *session) {
    if (setjmp(session->trap.at)) return driver_trapped(session);
    copy_config(session);
    names_init(&session->names, &session->arena, NULL);
    driver_enter(session);
    SlopeStatus status = check_numbers(session);
    if (status == SLOPE_STATUS_ok) status = driver_open(session);
    return driver_leave(session, status == SLOPE_STATUS_ok ? driver_check_device(session) : status);
}

SlopeStatus slope_session_new(const SlopeConfig *config, SlopeSession **out) {
    if (!out) return SLOPE_STATUS_misuse;
    *out = NULL;
    SlopeConfig filled;
    slope_config_init(&filled);
    if (config) filled = *config;
    if (!is_whole(&filled)) return SLOPE_STATUS_misuse;
    fill_in_defaults(&filled);
    SlopeSession *session = filled.resize(filled.user, NULL, 0, sizeof *session);
    if (!session) return SLOPE_STATUS_memory;
    *session = (SlopeSession){.config = filled, .allocator = {filled.resize, filled.user}};
    arena_init(&session->arena, session->allocator, &session->trap);
    arena_init(&session->message_arena, session->allocator, &session->trap);
    session->messages.arena = &session->message_arena;
    sources_init(&session->sources, &session->arena, NULL);
    driver_init_diags(session, &session->own_diags, &session->arena, &session->sources);
    driver_talk_about(session, NULL);
    SlopeStatus status = open_session(session);
    if (status == SLOPE_STATUS_ok) *out = session;
    else slope_session_free(session);
    return status;
}

void slope_session_free(SlopeSession *session) {
    if (!session) return;
    while (session->programs) slope_program_free(session->programs);
    driver_free_ready(session);
    driver_close(session);
    driver_free_buffers(session);
    driver_free_blobs(session);
    if (session->gpu) gpu_close(session->gpu);
    if (session->runtime) runtime_free(session->runtime);
    stack_free(session->stack);
    arena_free(&session->message_arena);
    arena_free(&session->arena);
    driver_free_spare(session);
    Allocator allocator = session->allocator;
    allocator.resize(allocator.user, session, sizeof *session, 0);
}

/* ---- running */

Runtime *driver_runtime(SlopeSession *session) {
    Runtime *runtime = session->runtime;
    if (runtime) return runtime;
    RuntimeConfig config = {
        .workers = session->config.threads,
        .wave = session->config.wave,
        .deep_stack = (size_t)(session->config.stack_mib > 0 ? session->config.stack_mib : 0) << 20,
        .stop = &session->stop,
        .write = session->config.write,
        .user = session->config.user,
    };
    runtime = runtime_new(&config);
    if (!runtime) trap_spring(&session->trap, TRAP_memory, "out of memory");
    session->runtime = runtime;
    return runtime;
}

void slope_stop(SlopeSession *session) {
    if (session) atomic_store(&session->stop, 1);
}

bool slope_explain(int code, SlopeExplanation *out) {
    Explanation found;
    if (!out || !diag_explain(code, &found)) return false;
    *out = (SlopeExplanation){
        found.severity == SEVERITY_error, code, found.message, found.cause, found.example, found.remedy};
    return true;
}
