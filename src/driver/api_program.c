/* Programs, the functions found in them, and kernels: handles, and calls into compiled code. */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>

/* ---- loading */

static SlopeProgram *new_program(SlopeSession *session) {
    SlopeProgram *program = session->allocator.resize(session->allocator.user, NULL, 0, sizeof *program);
    if (!program) trap_spring(&session->trap, TRAP_memory, "out of memory");
    *program = (SlopeProgram){.session = session};
    arena_init(&program->arena, driver_limited_memory(program), &session->trap);
    return program;
}

static void link_program(SlopeProgram *program) {
    SlopeSession *session = program->session;
    program->next = session->programs;
    if (program->next) program->next->prev = program;
    session->programs = program;
    driver_talk_about(session, program);
}

static void unlink_program(SlopeProgram *program) {
    SlopeSession *session = program->session;
    if (session->program == program) driver_talk_about(session, NULL);
    if (program->prev) program->prev->next = program->next;
    else session->programs = program->next;
    if (program->next) program->next->prev = program->prev;
}

static SlopeStatus begin(DriverWork *work) {
    driver_make_ready(work->program);
    return SLOPE_STATUS_ok;
}

static SlopeProgram *add_program(SlopeSession *session, const char *path, Str text) {
    if (!session->programs) driver_keep(session, text);
    SlopeProgram *program = driver_take_ready(session);
    bool is_new = !program;
    if (is_new) program = new_program(session);
    if (is_new) driver_init_diags(session, &program->diags, &program->arena, &program->sources);
    link_program(program);
    if (is_new) driver_deep(session, begin, &(DriverWork){.program = program});
    program->diags.no_warnings = session->config.no_warnings; /* of a copy it has none */
    program->path = name_from(&program->names, path);
    return program;
}

/* What came of loading a program: if it went wrong, nothing is left of it. */
static SlopeStatus finish_load(SlopeSession *session, SlopeStatus status, SlopeProgram **out) {
    status = driver_leave(session, status);
    if (status == SLOPE_STATUS_ok) *out = session->program;
    else slope_program_free(session->program);
    return status;
}

static SlopeStatus load_trapped(SlopeSession *session) {
    SlopeStatus status = driver_trapped(session);
    slope_program_free(session->program);
    return status;
}

static SlopeStatus load(DriverWork *work) { return driver_load(work->program, work->source); }

static SlopeStatus load_deep(SlopeProgram *program, Str source) {
    return driver_deep(program->session, load, &(DriverWork){.program = program, .source = source});
}

/* The bytes are the caller's, or wait in the session. */
static SlopeStatus load_bytes(SlopeSession *session, const char *path, Str bytes, int error,
                              SlopeProgram **out) {
    Str text;
    SlopeProgram *program = add_program(session, path, bytes);
    if (!error) error = driver_take_file(program, bytes, &text);
    if (!error) program->text = text;
    if (!error) return finish_load(session, load_deep(program, text), out);
    diag_report(session->diags, DIAG_file_unreadable, 0, path, strerror(error));
    return finish_load(session, SLOPE_STATUS_error, out);
}

SlopeStatus slope_load_file(SlopeSession *session, const char *path, SlopeProgram **out) {
    if (out) *out = NULL;
    if (!session || !out) return SLOPE_STATUS_misuse;
    if (setjmp(session->trap.at)) return load_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!path) return driver_missing(session, "slope_load_file", "path");
    Str bytes = {0};
    int error = driver_open_file(session, path, &bytes);
    return load_bytes(session, path, bytes, error, out);
}

SlopeStatus slope_load_text(SlopeSession *session, const char *path, const char *text, size_t size,
                            SlopeProgram **out) {
    if (out) *out = NULL;
    if (!session || !out) return SLOPE_STATUS_misuse;
    if (setjmp(session->trap.at)) return load_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!path || !text) return driver_missing(session, "slope_load_text", path ? "text" : "path");
    bool fits = size < INT32_MAX / 2;
    return load_bytes(session, path, fits ? (Str){text, (int)size} : (Str){0}, fits ? 0 : EFBIG, out);
}

void slope_program_free(SlopeProgram *program) {
    if (!program) return;
    SlopeSession *session = program->session;
    driver_device_unload(program);
    driver_unload(program);
    driver_free_images(program, NULL);
    driver_forget_rows(program);
    unlink_program(program);
    if (driver_set_back(program)) return;
    arena_free(&program->arena);
    session->allocator.resize(session->allocator.user, program, sizeof *program, 0);
}

static SlopeStatus check(DriverWork *work) { return driver_check(work->program); }

SlopeStatus slope_check(SlopeProgram *program) {
    if (!program) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    return driver_leave(session, driver_deep(session, check, &(DriverWork){.program = program}));
}

/* ---- functions */

static SlopeStatus find_function(DriverWork *work) {
    return driver_find_function(work->program, work->name, &work->func);
}

SlopeStatus slope_find_function(SlopeProgram *program, const char *expression, SlopeFunction **out) {
    if (out) *out = NULL;
    if (!program || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!expression) return driver_missing(session, "slope_find_function", "expression");
    Name name = name_from(&program->names, expression);
    SlopeFunction *function = map_get(&program->found_functions, PTR_KEY(name));
    if (!function) {
        DriverWork work = {.program = program, .name = expression};
        SlopeStatus status = driver_leave(session, driver_deep(session, find_function, &work));
        if (status != SLOPE_STATUS_ok) return status;
        function = arena_new(&program->arena, SlopeFunction);
        *function = (SlopeFunction){.program = program, .name = name->text, .func = work.func};
        map_put(&program->arena, &program->found_functions, PTR_KEY(name), function);
    }
    *out = function;
    return SLOPE_STATUS_ok;
}

const char *slope_function_name(const SlopeFunction *function) { return function ? function->name : ""; }

static bool has_result_parameter(const Func *func) {
    return func->nparams > 0 && (func->params[0].flags & PARAM_RESULT);
}

int slope_function_parameter_count(const SlopeFunction *function) {
    if (!function) return 0;
    return function->func->nparams - has_result_parameter(function->func);
}

static SlopeDirection direction_of(const Param *param) {
    switch ((Dir)param->dir) {
    case DIR_in: return SLOPE_DIRECTION_in;
    case DIR_out: return SLOPE_DIRECTION_out;
    case DIR_inout: return SLOPE_DIRECTION_inout;
    case DIR_ref: return SLOPE_DIRECTION_ref;
    }
    return SLOPE_DIRECTION_in;
}

bool slope_function_parameter(const SlopeFunction *function, int index, SlopeParameter *out) {
    if (!function || !out) return false;
    SlopeSession *session = function->program->session;
    if (index < 0 || index >= slope_function_parameter_count(function)) return false;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return false;
    }
    if (!driver_enter_program(function->program)) return false;
    const Param *param = &function->func->params[index + has_result_parameter(function->func)];
    const char *name = param->flags & PARAM_THIS ? "this" : param->name ? param->name->text : "";
    *out = (SlopeParameter){name, driver_type(function->program, param->type, LAYOUT_scalar),
                            direction_of(param)};
    return true;
}

const SlopeType *slope_function_result(const SlopeFunction *function) {
    if (!function) return NULL;
    SlopeSession *session = function->program->session;
    const Func *func = function->func;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return NULL;
    }
    if (!driver_enter_program(function->program)) return NULL;
    const Type *type = has_result_parameter(func) ? func->params[0].type
                       : func->nresults           ? func->results[0]
                                                  : type_basic(&function->program->types, TYPE_void);
    return driver_type(function->program, type, LAYOUT_scalar);
}

static SlopeStatus compile_func(DriverWork *work) { return driver_compile(work->program, work->func); }

static SlopeStatus compile(SlopeProgram *program, Func *func) {
    DriverWork work = {.program = program, .func = func};
    SlopeStatus status = driver_leave(program->session, driver_deep(program->session, compile_func, &work));
    if (status == SLOPE_STATUS_ok) driver_apply_uniforms(program);
    return status;
}

/* Runs a kernel that is compiled, on all threads of the session. What it adds to buffers that are too large
 * for copies is added there, atomically: by another form of it, which is compiled when it is first needed. */
static SlopeStatus run_kernel(SlopeProgram *program, Func *func, const RtKernel *compiled,
                              const uint32_t groups[3], void *const *args, bool *finished) {
    Runtime *runtime = program->session->runtime;
    uint64_t large = runtime_large_sums(runtime, compiled, groups, args);
    if (large) {
        Func *form = driver_sum_form(program, func, large);
        compiled = driver_kernel(program, form);
        SlopeStatus status = compiled ? SLOPE_STATUS_ok : compile(program, form);
        if (status != SLOPE_STATUS_ok) return status;
        compiled = driver_kernel(program, form);
    }
    *finished = runtime_dispatch(runtime, compiled, groups, args);
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_function_address(SlopeFunction *function, void **out) {
    if (out) *out = NULL;
    if (!function || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = function->program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(function->program)) return driver_refused(session);
    SlopeStatus status = compile(function->program, function->func);
    if (status != SLOPE_STATUS_ok) return status;
    *out = driver_native_address(function->program, function->func);
    if (*out) return SLOPE_STATUS_ok;
    diag_report(session->diags, DIAG_interpreted_address, function->func->loc, function->func->name->text);
    return driver_leave(session, SLOPE_STATUS_misuse);
}

static int compare_sites(const void *a, const void *b) {
    const RtSite *one = *(RtSite *const *)a, *other = *(RtSite *const *)b;
    return one->loc < other->loc ? -1 : one->loc > other->loc;
}

/* Where indices were out of range, in the order of the program; how many places there are. */
static int report_outside(SlopeSession *session) {
    VEC(RtSite *) places = {0};
    RtSite *first = session->config.strict ? runtime_take_outside(session->runtime) : NULL;
    for (RtSite *site = first; site; site = site->next) vec_push(&session->arena, &places, site);
    if (places.count) qsort(places.at, (size_t)places.count, sizeof *places.at, compare_sites);
    for (int i = 0; i < places.count; i++) {
        RtSite *site = places.at[i];
        long long count = (long long)atomic_exchange(&site->count, 0);
        diag_report(session->diags, DIAG_index_out_of_range, (Loc)site->loc,
                    count == 1 ? "once" : format_text(&session->arena, "%lld times", count));
    }
    if (places.count) diag_note(session->diags, DIAG_note_out_of_range, 0);
    return places.count;
}

/* What the runtime has to say after a run: of the run, and of calls by address that failed since the last. */
static SlopeStatus report_run(SlopeSession *session, bool finished) {
    char *error = runtime_take_answer(session->runtime), *stray = runtime_take_stray(session->runtime);
    if (stray) diag_report(session->diags, DIAG_stray_failure, 0, stray);
    if (error) diag_report(session->diags, DIAG_run_failed, 0, error);
    else if (!finished) diag_report(session->diags, DIAG_run_stopped, 0);
    bool failed = report_outside(session) > 0 || error;
    SlopeStatus status = failed ? SLOPE_STATUS_error : finished ? SLOPE_STATUS_ok : SLOPE_STATUS_stopped;
    free(error);
    free(stray);
    return driver_leave(session, status);
}

/* The first argument that is missing; NULL: all are there. */
static const char *missing_argument(const SlopeFunction *function, void *const args[]) {
    const Func *func = function->func;
    int given = func->nparams + func->nresults;
    if (!args) return given > 0 ? "args" : NULL;
    for (int i = 0; i < given; i++)
        if (!args[i]) return "args[i]";
    return NULL;
}

SlopeStatus slope_call(SlopeFunction *function, void *const args[]) {
    if (!function) return SLOPE_STATUS_misuse;
    SlopeSession *session = function->program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(function->program)) return driver_refused(session);
    const char *missing = missing_argument(function, args);
    if (missing) return driver_missing(session, "slope_call", missing);
    driver_runtime(session);
    atomic_store(&session->stop, 0);
    if (!function->call) {
        SlopeStatus status = compile(function->program, function->func);
        if (status != SLOPE_STATUS_ok) return status;
        function->call = driver_find_call(function->program, function->func);
    }
    if (!driver_buffers_to_host(session)) return driver_leave(session, SLOPE_STATUS_error);
    runtime_answer(session->runtime, true);
    driver_call(function->program, function->call, args);
    return report_run(session, runtime_answer(session->runtime, false));
}

/* ---- many calls */

/* The argument of the API that a parameter, or behind them a result, of the IR is: the result through memory
 * comes last. */
static int argument_of(const Func *func, int index) {
    bool first_is_result = has_result_parameter(func);
    if (index >= func->nparams || !first_is_result) return index;
    return index == 0 ? func->nparams - 1 : index - 1;
}

static const Type *value_type(const Func *func, int index) {
    return index < func->nparams ? func->params[index].type : func->results[index - func->nparams];
}

static bool is_written(const Func *func, int index) {
    return index >= func->nparams || func->params[index].dir != DIR_in;
}

static int64_t stride_of(const Func *func, int index, const int64_t strides[]) {
    return strides ? strides[argument_of(func, index)]
                   : type_layout(value_type(func, index), LAYOUT_scalar).stride;
}

static BatchStep step_of(const Func *func, int index, const int64_t strides[]) {
    int64_t stride = stride_of(func, index, strides);
    if (stride == 0) return BATCH_same;
    return stride == type_layout(value_type(func, index), LAYOUT_scalar).stride ? BATCH_next : BATCH_apart;
}

static int count_values(const Func *func) { return func->nparams + func->nresults; }

/* The argument that all calls would write to; -1: none. */
static int written_by_all(const Func *func, const int64_t strides[]) {
    for (int i = 0; i < count_values(func); i++)
        if (is_written(func, i) && step_of(func, i, strides) == BATCH_same) return argument_of(func, i);
    return -1;
}

static bool fits_batch(const Batch *batch, const Func *func, const int64_t strides[]) {
    for (int i = 0; i < count_values(func); i++)
        if (batch->steps[i] != step_of(func, i, strides)) return false;
    return true;
}

static Batch *batch_for(SlopeFunction *function, const int64_t strides[]) {
    Func *func = function->func;
    Arena *arena = &function->program->arena;
    int values = count_values(func);
    for (int i = 0; i < function->batches.count; i++)
        if (fits_batch(&function->batches.at[i], func, strides)) return &function->batches.at[i];
    Batch batch = {.steps = arena_array(arena, BatchStep, values + 1),
                   .args = arena_array(arena, void *, 2 * values + 1),
                   .addresses = arena_array(arena, char *, values + 1),
                   .distances = arena_array(arena, int64_t, values + 1)};
    for (int i = 0; i < values; i++) batch.steps[i] = step_of(func, i, strides);
    batch.func = driver_batch_kernel(func, batch.steps);
    vec_push(arena, &function->batches, batch);
    return &function->batches.at[function->batches.count - 1];
}

enum { MOST_CALLS = 1 << 30 }; /* of one dispatch */

/* From number `first` on. */
static SlopeStatus run_batch(const SlopeFunction *function, const Batch *batch, int64_t first, int64_t count,
                             void *const args[], const int64_t strides[], bool *finished) {
    const Func *func = function->func;
    int at = 0;
    uint32_t number = (uint32_t)(count - first < MOST_CALLS ? count - first : MOST_CALLS);
    batch->args[at++] = &number;
    for (int i = 0; i < count_values(func); i++) {
        batch->distances[i] = stride_of(func, i, strides);
        batch->addresses[i] = (char *)args[argument_of(func, i)] + first * batch->distances[i];
        batch->args[at++] = &batch->addresses[i];
        if (batch->steps[i] == BATCH_apart) batch->args[at++] = &batch->distances[i];
    }
    const uint32_t groups[] = {(number + DRIVER_BATCH_GROUP - 1) / DRIVER_BATCH_GROUP, 1, 1};
    return run_kernel(function->program, batch->func, batch->compiled, groups, batch->args, finished);
}

static SlopeStatus call_batch(SlopeFunction *function, int64_t count, void *const args[],
                              const int64_t strides[]) {
    SlopeSession *session = function->program->session;
    Batch *batch = batch_for(function, strides);
    if (!batch->compiled) {
        SlopeStatus status = compile(function->program, batch->func);
        if (status != SLOPE_STATUS_ok) return status;
        batch->compiled = driver_kernel(function->program, batch->func);
    }
    if (!driver_buffers_to_host(session)) return driver_leave(session, SLOPE_STATUS_error);
    bool finished = true;
    SlopeStatus status = SLOPE_STATUS_ok;
    for (int64_t first = 0; first < count && finished && status == SLOPE_STATUS_ok; first += MOST_CALLS)
        status = run_batch(function, batch, first, count, args, strides, &finished);
    return status == SLOPE_STATUS_ok ? report_run(session, finished) : status;
}

SlopeStatus slope_call_batch(SlopeFunction *function, int64_t count, void *const args[],
                             const int64_t strides[]) {
    if (!function) return SLOPE_STATUS_misuse;
    SlopeSession *session = function->program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(function->program)) return driver_refused(session);
    const char *missing = missing_argument(function, args);
    if (missing) return driver_missing(session, "slope_call_batch", missing);
    int shared = written_by_all(function->func, strides);
    bool is_lost = count > 1 && shared >= 0;
    if (count < 0) diag_report(session->diags, DIAG_bad_batch, 0, (long long)count);
    if (is_lost)
        diag_report(session->diags, DIAG_batch_in_one_place, function->func->loc, (long long)count, shared);
    if (count < 0 || is_lost) return driver_leave(session, SLOPE_STATUS_misuse);
    driver_runtime(session);
    atomic_store(&session->stop, 0);
    return call_batch(function, count, args, strides);
}

/* ---- kernels */

/* In the source; what the IR has after a dot only tells it from a function of the same name that was asked
 * for before. */
static const char *entry_name(SlopeProgram *program, const Func *func) {
    const char *name = func->name->text;
    return format_text(&program->arena, "%.*s", (int)strcspn(name, "."), name);
}

static SlopeKernel *kernel_of(SlopeProgram *program, Func *func) {
    for (int i = 0; i < program->kernels.count; i++)
        if (program->kernels.at[i]->func == func) return program->kernels.at[i];
    SlopeKernel *kernel = arena_new(&program->arena, SlopeKernel);
    *kernel = (SlopeKernel){.program = program, .name = entry_name(program, func), .func = func};
    driver_add_parameters(kernel);
    vec_push(&program->arena, &program->kernels, kernel);
    return kernel;
}

static SlopeStatus find_entry(DriverWork *work) {
    return driver_find_entry(work->program, work->name, &work->func);
}

SlopeStatus slope_find_kernel(SlopeProgram *program, const char *name, SlopeKernel **out) {
    if (out) *out = NULL;
    if (!program || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    DriverWork work = {.program = program, .name = name};
    SlopeStatus status = driver_leave(session, driver_deep(session, find_entry, &work));
    if (status == SLOPE_STATUS_ok) *out = kernel_of(program, work.func);
    return status;
}

const char *slope_kernel_name(const SlopeKernel *kernel) { return kernel ? kernel->name : ""; }

void slope_kernel_group_size(const SlopeKernel *kernel, int size[3]) {
    if (!kernel || !size) return;
    for (int i = 0; i < 3; i++) size[i] = kernel->func->group_size[i] ? kernel->func->group_size[i] : 1;
}

static SlopeStatus prepare(SlopeKernel *kernel) {
    if (driver_has_gpu(kernel->program->session))
        return driver_leave(kernel->program->session, driver_device_prepare(kernel));
    if (kernel->compiled) return SLOPE_STATUS_ok;
    driver_runtime(kernel->program->session);
    SlopeStatus status = compile(kernel->program, kernel->func);
    if (status == SLOPE_STATUS_ok) kernel->compiled = driver_kernel(kernel->program, kernel->func);
    return status;
}

SlopeStatus slope_kernel_prepare(SlopeKernel *kernel) {
    if (!kernel) return SLOPE_STATUS_misuse;
    SlopeSession *session = kernel->program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(kernel->program)) return driver_refused(session);
    return prepare(kernel);
}

static SlopeStatus dispatch(SlopeKernel *kernel, int x, int y, int z, bool waits) {
    if (!kernel) return SLOPE_STATUS_misuse;
    SlopeSession *session = kernel->program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(kernel->program)) return driver_refused(session);
    if (x < 0 || y < 0 || z < 0) {
        diag_report(session->diags, DIAG_bad_dispatch, 0, x, y, z);
        return driver_leave(session, SLOPE_STATUS_misuse);
    }
    atomic_store(&session->stop, 0);
    SlopeStatus status = prepare(kernel);
    if (status != SLOPE_STATUS_ok) return status;
    StageTimer timer;
    driver_time_run(session, &timer);
    const uint32_t groups[] = {(uint32_t)x, (uint32_t)y, (uint32_t)z};
    bool finished = false;
    if (driver_has_gpu(session)) status = driver_device_dispatch(kernel, groups, waits, &finished);
    else
        status = run_kernel(kernel->program, kernel->func, kernel->compiled, groups, kernel->args, &finished);
    driver_time_end(&timer);
    return status == SLOPE_STATUS_ok ? report_run(session, finished) : driver_leave(session, status);
}

SlopeStatus slope_dispatch(SlopeKernel *kernel, int x, int y, int z) {
    return dispatch(kernel, x, y, z, true);
}

SlopeStatus slope_queue(SlopeKernel *kernel, int x, int y, int z) { return dispatch(kernel, x, y, z, false); }

SlopeStatus slope_wait(SlopeSession *session) {
    if (!session) return SLOPE_STATUS_misuse;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!session->gpu) return driver_leave(session, SLOPE_STATUS_ok);
    return report_run(session, gpu_wait(session->gpu, driver_runtime(session)));
}

SlopeStatus slope_use_stream(SlopeSession *session, void *stream) {
    SlopeStatus status = slope_wait(session);
    if (status != SLOPE_STATUS_ok) return status;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!driver_has_gpu(session)) {
        diag_report(session->diags, DIAG_device_absent, 0, "slope_use_stream");
        return driver_leave(session, SLOPE_STATUS_misuse);
    }
    Gpu *gpu = driver_gpu(session);
    if (gpu) gpu_use_stream(gpu, stream);
    return driver_leave(session, gpu ? SLOPE_STATUS_ok : SLOPE_STATUS_error);
}
