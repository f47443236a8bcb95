/* Code generators: built in, or loaded when code is first made. They are looked for beside this library (or
 * the executable that this code is part of), where they were to be installed, and where the loader looks;
 * never in the current folder. */
#define _GNU_SOURCE /* dladdr */
#include "driver/unit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static const char *folder_of(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return path[0] == '/' ? format_text(arena, "%.*s", (int)(slash - path), path) : NULL;
}

/* The folder this code was loaded from. An executable may have been called by a path that is relative to
 * where it began. */
static const char *own_folder(Arena *arena) {
    Dl_info info;
    void *self;
    const char *(*function)(void) = slope_version;
    memcpy(&self, &function, sizeof self); /* ISO C has no such cast */
    if (!dladdr(self, &info) || !info.dli_fname) return NULL;
    if (info.dli_fname[0] == '/') return folder_of(arena, info.dli_fname);
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    return folder_of(arena, path);
}

/* If none can be loaded, *why says what is wrong with the first that is there, or where it was looked for
 * last. */
static void *open_library(Arena *arena, const char *name, const char **why) {
    const char *folder = own_folder(arena);
    const char *const places[] = {folder ? format_text(arena, "%s/%s", folder, name) : name,
                                  format_text(arena, "%s/%s", SLOPE_LIBRARY_FOLDER, name), name};
    void *library = NULL;
    bool was_there = false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++) {
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        const char *error = library ? NULL : dlerror();
        if (error && !was_there) *why = format_text(arena, "%s", error);
        was_there |= access(places[i], F_OK) == 0;
    }
    return library;
}

/* NULL: there is no such library, *why says so. The library stays: LLVM does not like to be unloaded. */
static EmitBackendFunction *load(Arena *arena, const EmitMaker *maker, const char **why) {
    void *library = open_library(arena, maker->library, why);
    EmitBackendFunction *function = NULL;
    void *symbol = library ? dlsym(library, maker->symbol) : NULL;
    if (library && !symbol) *why = format_text(arena, "%s", dlerror());
    memcpy(&function, &symbol, sizeof symbol);
    return function;
}

static void report_missing(SlopeSession *session, const char *why) {
    diag_report(session->diags, DIAG_no_backend, 0, why);
    diag_note(session->diags, DIAG_note_interpret, 0);
}

/* NULL: reported */
static const EmitBackend *unit_backend(SlopeSession *session, EmitBackendId id) {
    Pipeline *pipeline = session->stages;
    const EmitMaker *maker = emit_maker(id);
    if (pipeline->backends[id]) return pipeline->backends[id];
    if (!maker->library) return pipeline->backends[id] = maker->function();
    StageTimer timer;
    driver_time_begin(session, &timer, "load LLVM");
    const char *why = NULL;
    EmitBackendFunction *function = load(&session->arena, maker, &why);
    if (function) pipeline->backends[id] = function();
    else report_missing(session, why);
    driver_time_end(&timer);
    return pipeline->backends[id];
}

/* What code is run with; NULL: reported */
static const EmitBackend *jit_backend(SlopeSession *session) {
    return unit_backend(session, session->config.interpret ? EMIT_BACKEND_interp : EMIT_BACKEND_llvm);
}

/* Libraries stay. */
void driver_close(SlopeSession *session) {
    Pipeline *pipeline = session->stages;
    for (int i = 0; pipeline && i < EMIT_BACKENDS; i++)
        if (pipeline->backends[i] && pipeline->backends[i]->forget)
            pipeline->backends[i]->forget(&pipeline->spare);
}

void driver_unload(SlopeProgram *program) {
    Unit *unit = program->unit;
    if (!unit || !unit->jit) return;
    if (program->session->runtime)
        runtime_take_outside(program->session->runtime); /* they go with the code */
    jit_backend(program->session)->jit_free(unit->jit);
    unit->jit = NULL;
}

/* ---- compiled code */

static EmitFloats floats_of(SlopeFloats floats) {
    switch (floats) {
    case SLOPE_FLOATS_contract: return EMIT_floats_contract;
    case SLOPE_FLOATS_fast: return EMIT_floats_fast;
    case SLOPE_FLOATS_strict: break;
    }
    return EMIT_floats_strict;
}

static EmitOptions options_of(const SlopeSession *session) {
    return (EmitOptions){.level = session->config.optimization,
                         .unchecked = session->config.unchecked,
                         .wave = session->config.wave,
                         .watch = session->config.strict,
                         .floats = floats_of(session->config.floats),
                         .debug = session->config.debug_info,
                         .spare = &session->stages->spare,
#ifndef NDEBUG
                         .verify = true
#endif
    };
}

/* LLVM's share of the time goes on record like that of any stage. */
static void note_times(SlopeSession *session, const EmitTimes *times) {
    driver_time_add(session, "translate", times->translate);
    driver_time_add(session, "LLVM passes", times->passes);
    driver_time_add(session, "machine code", times->machine);
}

static SlopeStatus emit_failed(SlopeSession *session, const EmitError *error) {
    diag_report(session->diags, DIAG_emit_failed, error->loc,
                error->text[0] ? error->text : "no reason given");
    return SLOPE_STATUS_error;
}

/* One thread runs all kernels; functions can be called from any number, by their address. */
static bool runs_alone(const SlopeSession *session, const Module *module) {
    bool kernels_only = session->config.threads == 1;
    for (int i = 0; i < module->funcs.count && kernels_only; i++)
        if (module->funcs.at[i]->flags & FUNC_EXPORT) kernels_only = module->funcs.at[i]->group_size[0] > 0;
    return kernels_only;
}

/* A generator of machine code says itself what took how long; the interpreter has one stage. */
static bool add_code(Unit *unit, const EmitBackend *backend, const EmitOptions *options, EmitError *error) {
    SlopeSession *session = unit->program->session;
    EmitTimes times = {0};
    StageTimer timer;
    unit_legalize(unit,
                  emit_maker(session->config.interpret ? EMIT_BACKEND_interp : EMIT_BACKEND_llvm)->lacks);
    if (session->config.interpret) driver_time_begin(session, &timer, "translate");
    bool fine = backend->jit_add(unit->jit, unit->ir, options, &times, error);
    if (session->config.interpret) driver_time_end(&timer);
    else note_times(session, &times);
    return fine;
}

/* What keeps all of its sums does the same on one thread as on several, to the last bit. */
static bool is_indifferent(const Unit *unit, const Func *func) {
    const Func *form = unit_sum_form(unit, func, 0);
    if (!form) form = func;
    return form->nsums > 0 && !form->has_other_sums;
}

/* What earlier stages do for the target; NULL: for code that runs at once. */
static void aim_at(SlopeProgram *program, const EmitTarget *target) {
    Unit *unit = program->unit;
    uint32_t capabilities = target ? target->capabilities : TARGET_POINTERS | TARGET_LANES;
    unit->is_checked_later = (capabilities & TARGET_CHECKED) != 0;
    unit->is_source = (capabilities & TARGET_SOURCE) != 0;
    unit->has_no_pointers = (capabilities & TARGET_POINTERS) == 0;
    unit->has_no_lanes = (capabilities & TARGET_LANES) == 0;
    unit->ir->many_threads = (capabilities & TARGET_MANY_THREADS) != 0;
    unit->ir->keeps_order = (capabilities & TARGET_KEEPS_ORDER) != 0;
    unit->ir->rounds_as_written = program->session->config.floats == SLOPE_FLOATS_strict;
}

/* What was asked for before, and never run, may have errors: they are told now, but are not the
 * function's. */
static SlopeStatus prepare(Unit *unit, const Func *func) {
    Diags *diags = unit->program->session->diags;
    int errors = diags->errors;
    for (;;) {
        int failures = diags->failures;
        SlopeStatus status = unit_prepare(unit, NULL);
        bool is_of_others = unit->has_failed && !(func->flags & FUNC_FAILED) && diags->failures > failures;
        if (status == SLOPE_STATUS_ok || !is_of_others) return status;
        diags_flush(diags);
        diags->errors = errors;
    }
}

static SlopeStatus refuse_declared_only(SlopeProgram *program, const Func *func) {
    if (func->body) return SLOPE_STATUS_ok;
    while (func->derivation.of) func = func->derivation.of;
    diag_report(program->session->diags, DIAG_no_body, func->loc, func->name->text);
    return SLOPE_STATUS_error;
}

SlopeStatus driver_compile(SlopeProgram *program, Func *func) {
    SlopeSession *session = program->session;
    Unit *unit = program->unit;
    func->flags |= FUNC_EXPORT;
    aim_at(program, NULL);
    unit->runs = !session->config.interpret;
    unit->keeps_sums = true;
    SlopeStatus status = prepare(unit, func);
    unit->runs = unit->keeps_sums = false;
    if (status == SLOPE_STATUS_ok) status = unit_refuse_failed(unit, func);
    if (status == SLOPE_STATUS_ok) status = refuse_declared_only(program, func);
    if (status != SLOPE_STATUS_ok) return status;
    const EmitBackend *backend = jit_backend(session);
    if (!backend) return SLOPE_STATUS_error;
    EmitError error = {"", 0};
    if (!unit->jit) {
        int nsymbols;
        const RtSymbol *symbols = runtime_symbols(&nsymbols);
        EmitJitConfig config = {driver_runtime(session), symbols, nsymbols, unit_cache(session)};
        unit->jit = backend->jit_new(&config, &error);
        if (!unit->jit) return emit_failed(session, &error);
    }
    EmitOptions options = options_of(session);
    options.alone = runs_alone(session, unit->ir) && !is_indifferent(unit, func);
    return add_code(unit, backend, &options, &error) ? SLOPE_STATUS_ok : emit_failed(session, &error);
}

static void *find(SlopeProgram *program, EmitSymbol what, Name name) {
    Unit *unit = program->unit;
    return unit->jit ? jit_backend(program->session)->jit_find(unit->jit, what, name->text) : NULL;
}

void *driver_native_address(SlopeProgram *program, Func *func) {
    return find(program, EMIT_native, func->name);
}
void *driver_find_call(SlopeProgram *program, Func *func) { return find(program, EMIT_call, func->name); }
void driver_call(SlopeProgram *program, void *function, void *const *args) {
    jit_backend(program->session)->jit_call(program->unit->jit, function, args);
}
const RtKernel *driver_kernel(SlopeProgram *program, Func *func) {
    const Func *form = unit_sum_form(program->unit, func, 0);
    return find(program, EMIT_kernel, form ? form->name : func->name);
}
Func *driver_sum_form(SlopeProgram *program, Func *func, uint64_t large) {
    Func *form = unit_sum_form(program->unit, func, large);
    return form ? form : unit_keep_sums(program->unit, func, large);
}
void *driver_uniform_address(SlopeProgram *program, Global *global) {
    return find(program, EMIT_uniform, global->name);
}

/* ---- code for a GPU */

static void note_symbol(void *user, EmitSymbol what, const char *name, const char *symbol) {
    DeviceText *text = user;
    Arena *arena = &text->program->arena;
    const char *copy = format_text(arena, "%s", symbol);
    if (what == EMIT_kernel && *name) text->entry = copy;
    else if (what == EMIT_kernel) text->init = copy;
    else vec_push(arena, &text->uniforms, ((DeviceSymbol){name_from(&text->program->names, name), copy}));
}

/* The kernel alone: what others have asked for may need what a GPU does not have. */
static char *make_alone(SlopeProgram *program, Func *func, const EmitFile *file, EmitError *error) {
    Module *module = program->unit->ir;
    EmitOptions options = options_of(program->session);
    EmitTimes times = {0};
    size_t size;
    uint32_t *flags = arena_array(&program->arena, uint32_t, module->funcs.count);
    for (int i = 0; i < module->funcs.count; i++) {
        flags[i] = module->funcs.at[i]->flags;
        if (module->funcs.at[i] != func) module->funcs.at[i]->flags &= ~(uint32_t)FUNC_EXPORT;
    }
    const EmitBackend *backend = unit_backend(program->session, file->target->backend);
    char *text = backend->make(module, &options, file, &size, &times, error);
    note_times(program->session, &times);
    for (int i = 0; i < module->funcs.count; i++) module->funcs.at[i]->flags = flags[i];
    return text;
}

SlopeStatus driver_device_text(SlopeProgram *program, Func *func, const Gpu *gpu, DeviceText *out) {
    const EmitTarget *target = emit_find_target(gpu ? "ptx" : "cuda");
    func->flags |= FUNC_EXPORT;
    aim_at(program, target);
    SlopeStatus status = unit_prepare(program->unit, NULL);
    if (status == SLOPE_STATUS_ok) status = unit_refuse_failed(program->unit, func);
    if (status != SLOPE_STATUS_ok) return status;
    if (!unit_backend(program->session, target->backend)) return SLOPE_STATUS_error;
    unit_legalize(program->unit, emit_target_lacks(target));
    *out = (DeviceText){.program = program, .is_ptx = gpu != NULL};
    EmitFile file = {.format = target->format,
                     .target = target,
                     .hosted = true,
                     .capability = gpu ? gpu_capability(gpu) : 0,
                     .cache = gpu ? unit_cache(program->session) : NULL,
                     .found = note_symbol,
                     .user = out};
    EmitError error = {"", 0};
    out->text = make_alone(program, func, &file, &error);
    return out->text ? SLOPE_STATUS_ok : emit_failed(program->session, &error);
}

/* ---- files */

bool driver_target_is_linked(const char *name) {
    return emit_find_target(name)->capabilities & TARGET_LINKED;
}

const char *driver_target_name(int index) {
    const EmitTarget *target = emit_target(index);
    return target ? target->name : NULL;
}

static bool is_for_others(const Decl *decl) {
    return decl->kind == DECL_func && decl->flavour == FUNC_plain && decl->name && !unit_is_generic(decl) &&
           (decl->body || decl->lazy.count) && (decl->modifiers & (MODIFIER_public | MODIFIER_export));
}

/* What is public or exported, in a file without entry points; returns how many there are. */
static int lower_public(Unit *unit, Decl *decl) {
    int count = 0;
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind == DECL_namespace || member->kind == DECL_struct)
            count += lower_public(unit, member);
        bool is_main = decl == unit->module && member->name && strcmp(member->name->text, "main") == 0;
        if (!is_for_others(member) || is_main) continue;
        lower_func(unit->lowerer, member, NULL, NULL, 0)->flags |= FUNC_EXPORT;
        count++;
    }
    return count;
}

static SlopeStatus choose_main(SlopeProgram *program) {
    Func *func;
    return driver_find_entry(program, "main", &func);
}

/* All entry points, with main where a program is made that begins there; or main and what is public. Whoever
 * includes a header of that has a main. */
static SlopeStatus choose_all(SlopeProgram *program, const EmitTarget *target, bool is_included) {
    SlopeStatus status = unit_check(program->unit);
    if (status != SLOPE_STATUS_ok) return status;
    int entries = driver_count_entries(program, NULL), mains = driver_count_entries(program, "main");
    if (entries) status = driver_all_entries(program);
    bool begins = mains && (entries ? (target->capabilities & TARGET_STARTS) != 0 : !is_included);
    if (begins && status == SLOPE_STATUS_ok) status = choose_main(program);
    if (entries || status != SLOPE_STATUS_ok) return status;
    int others = lower_public(program->unit, program->unit->module);
    if (mains && !begins && !others) return choose_main(program);
    if (mains + others > 0) return status;
    diag_report(&program->diags, DIAG_nothing_to_build, 0,
                program->path ? program->path->text : "the program");
    diag_note(&program->diags, DIAG_note_what_is_built, 0);
    return SLOPE_STATUS_misuse;
}

static SlopeStatus choose_functions(SlopeProgram *program, const EmitTarget *target,
                                    const SlopeBuildOptions *options) {
    Func *func;
    SlopeStatus status = SLOPE_STATUS_ok;
    bool is_included = options->header || options->header_path;
    if (options->entry_count == 0) return choose_all(program, target, is_included);
    for (int i = 0; i < options->entry_count && status == SLOPE_STATUS_ok; i++) {
        const char *name = options->entries[i];
        status = strcmp(name, "main") == 0 ? driver_find_entry(program, name, &func)
                                           : driver_entry_or_function(program, name, &func);
    }
    return status;
}

/* What only source code has, or only code that runs its threads itself, is not asked of anything else. */
static SlopeStatus check_target(SlopeProgram *program, const EmitTarget *target,
                                const SlopeBuildOptions *options) {
    const struct {
        bool asked;
        uint32_t needs;
        DiagId problem;
        const char *what;
    } all[] = {
        {options->header, TARGET_HEADERS, DIAG_target_without_headers, "a header"},
        {options->header_path, TARGET_HEADERS, DIAG_target_without_headers, "a header"},
        {options->side_by_side, TARGET_SOURCE, DIAG_target_not_source, "a page"},
        {options->page_path, TARGET_SOURCE, DIAG_target_not_source, "a page"},
        {options->comments, TARGET_SOURCE, DIAG_target_not_source, "comments"},
        {options->lines, TARGET_SOURCE, DIAG_target_not_source, "#line"},
        {options->openmp, TARGET_OWN_THREADS, DIAG_target_without_threads, "OpenMP"},
        {options->alone, TARGET_PLAIN_SUMS, DIAG_target_without_threads, "sums without atomic operations"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i].asked || (target->capabilities & all[i].needs)) continue;
        diag_report(&program->diags, all[i].problem, 0, target->name, all[i].what);
        return SLOPE_STATUS_misuse;
    }
    return SLOPE_STATUS_ok;
}

/* Of CUDA C++, which is freed. NULL: reported. */
static char *compile_ptx(SlopeSession *session, char *text, size_t *size) {
    enum { OLDEST = 75 }; /* that the compilers of all toolkits since 12 know */
    char error[2048];
    GpuSource source = {.text = text};
    driver_device_options(session, &source);
    char *ptx = gpu_make_ptx(&source, OLDEST, error, sizeof error);
    free(text);
    if (ptx) *size = strlen(ptx);
    else diag_report(session->diags, DIAG_device_code_failed, 0, error);
    return ptx;
}

SlopeStatus driver_build(SlopeProgram *program, const SlopeBuildOptions *options, Text *out) {
    SlopeSession *session = program->session;
    Unit *unit = program->unit;
    const EmitTarget *target = emit_find_target(options->target);
    SlopeStatus status = check_target(program, target, options);
    aim_at(program, target);
    if (status == SLOPE_STATUS_ok) status = choose_functions(program, target, options);
    if (status == SLOPE_STATUS_ok) status = unit_prepare(unit, NULL);
    if (status == SLOPE_STATUS_ok) status = unit_refuse_failed(unit, NULL);
    for (int i = 0; i < unit->ir->funcs.count && status == SLOPE_STATUS_ok; i++)
        if (unit->ir->funcs.at[i]->flags & FUNC_EXPORT)
            status = refuse_declared_only(program, unit->ir->funcs.at[i]);
    if (status != SLOPE_STATUS_ok) return status;
    if (!(target->capabilities & TARGET_BARRIERS)) unit_inline_waiting(unit);
    const EmitTarget *printed = options->header ? emit_header_target(target) : target;
    const EmitBackend *backend = unit_backend(session, printed->backend);
    if (!backend) return SLOPE_STATUS_error;
    unit_legalize(unit, emit_target_lacks(target));
    EmitFile file = {.format = printed->format,
                     .target = target,
                     .header = options->header,
                     .is_called = options->header || options->header_path,
                     .openmp = options->openmp,
                     .lines = options->lines,
                     .comments = options->comments,
                     .side_by_side = options->side_by_side,
                     .tape = options->tape};
    const char *folder = own_folder(&program->arena);
    if (folder) file.runtime_library = format_text(&program->arena, "%s/libslope-rt.a", folder);
    EmitOptions emit = options_of(session);
    emit.sanitize = options->sanitize;
    emit.alone = options->alone && !options->openmp;
    EmitTimes times = {0};
    EmitError error = {"", 0};
    size_t size;
    char *bytes = backend->make(unit->ir, &emit, &file, &size, &times, &error);
    note_times(session, &times);
    if (!bytes) return emit_failed(session, &error);
    if (target->capabilities & TARGET_COMPILED) bytes = compile_ptx(session, bytes, &size);
    if (!bytes) return SLOPE_STATUS_error;
    text_add(out, (Str){bytes, (int)size});
    free(bytes);
    return SLOPE_STATUS_ok;
}
