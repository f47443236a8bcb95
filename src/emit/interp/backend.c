/* The interpreter as a backend: programs that are added, and what can be found in them. */
#include "emit/interp/code.h"
#include <stdio.h>
#include <stdlib.h>

static EmitJit *jit_new(const EmitJitConfig *config, EmitError *error) {
    EmitJit *jit = calloc(1, sizeof *jit);
    if (!jit) {
        snprintf(error->text, sizeof error->text, "out of memory");
        return NULL;
    }
    jit->runtime = config->runtime;
    arena_init(&jit->arena, allocator_system, &jit->trap);
    return jit;
}

static void jit_free(EmitJit *jit) {
    arena_free(&jit->arena);
    free(jit);
}

/* ---- what is there */

static Uniform *find_uniform(const EmitJit *jit, const char *name) {
    for (int i = 0; i < jit->uniforms.count; i++)
        if (strcmp(jit->uniforms.at[i]->name, name) == 0) return jit->uniforms.at[i];
    return NULL;
}

static Entry *find_entry(const EmitJit *jit, const char *name) {
    for (int i = 0; i < jit->entries.count; i++)
        if (strcmp(jit->entries.at[i]->name, name) == 0) return jit->entries.at[i];
    return NULL;
}

/* There is no machine code that could be called by address. */
static void *jit_find(EmitJit *jit, EmitSymbol what, const char *name) {
    Uniform *uniform;
    Entry *entry;
    switch (what) {
    case EMIT_native: return NULL;
    case EMIT_uniform: uniform = find_uniform(jit, name); return uniform ? uniform->memory : NULL;
    case EMIT_call:
    case EMIT_kernel:
        entry = find_entry(jit, name);
        return entry && (entry->kernel.group_size[0] > 0) == (what == EMIT_kernel) ? entry : NULL;
    }
    return NULL;
}

/* ---- adding a program */

static char *memory_of(Arena *arena, const Global *global) {
    char *memory = arena_take(arena, (size_t)type_layout(global->type, LAYOUT_scalar).stride + 1);
    emit_fill_image(global, memory);
    return memory;
}

/* Uniforms of earlier programs are shared. */
static char *uniform_memory(Translator *t, const Global *global) {
    Uniform *uniform = find_uniform(t->jit, global->name->text);
    if (uniform) return uniform->memory;
    uniform = arena_new(t->arena, Uniform);
    uniform->name = format_text(t->arena, "%s", global->name->text);
    uniform->memory = memory_of(t->arena, global);
    vec_push(t->arena, &t->jit->uniforms, uniform);
    return uniform->memory;
}

static void declare(Translator *t) {
    Reached *reached = &t->program->reached;
    *reached = emit_reach(t->arena, t->module, true);
    if (reached->missing)
        interp_fail(t, reached->missing->loc, "function '%s' has no body", reached->missing->name->text);
    for (int i = 0; i < reached->globals.count; i++) {
        ReachedGlobal *info = reached->globals.at[i];
        if (info->global->kind == GLOBAL_const) info->emitted = memory_of(t->arena, info->global);
        if (info->global->kind == GLOBAL_uniform) info->emitted = uniform_memory(t, info->global);
    }
    for (int i = 0; i < reached->funcs.count; i++) {
        Code *code = arena_new(t->arena, Code);
        code->reached = reached->funcs.at[i];
        code->program = t->program;
        reached->funcs.at[i]->emitted = code;
    }
}

static void add_entry(Translator *t, const Code *code) {
    const Func *func = code->reached->func;
    if (!(func->flags & FUNC_EXPORT) || find_entry(t->jit, func->name->text)) return;
    Entry *entry = arena_new(t->arena, Entry);
    entry->name = format_text(t->arena, "%s", func->name->text);
    interp_describe(t->arena, entry, code);
    vec_push(t->arena, &t->jit->entries, entry);
}

static void list_inits(Translator *t, GlobalKind kind, Codes *list) {
    const Reached *reached = &t->program->reached;
    for (int i = 0; i < reached->globals.count; i++) {
        const ReachedGlobal *info = reached->globals.at[i];
        if (info->global->kind == kind && info->init) vec_push(t->arena, list, info->init->emitted);
    }
}

static void add(Translator *t) {
    const Reached *reached = &t->program->reached;
    Codes constants = {0};
    declare(t);
    for (int i = 0; i < reached->funcs.count; i++) interp_function(t, reached->funcs.at[i]->emitted);
    list_inits(t, GLOBAL_static, &t->program->inits);
    list_inits(t, GLOBAL_const, &constants);
    interp_run_inits(t->jit, t->program, constants.at, constants.count);
    for (int i = 0; i < reached->funcs.count; i++) add_entry(t, reached->funcs.at[i]->emitted);
}

static bool jit_add(EmitJit *jit, Module *module, const EmitOptions *options, EmitTimes *times,
                    EmitError *error) {
    Translator t = {.jit = jit, .arena = &jit->arena, .module = module, .options = options, .error = error};
    (void)times;
    if (setjmp(jit->trap.at)) {
        if (jit->trap.why == TRAP_memory) snprintf(error->text, sizeof error->text, "out of memory");
        return false;
    }
    t.program = arena_new(&jit->arena, Program);
    t.program->counts = jit->counts;
    add(&t);
    return true;
}

const EmitBackend *interp_backend(void) {
    static const EmitBackend backend = {.name = "interp",
                                        .version = "1",
                                        .jit_new = jit_new,
                                        .jit_free = jit_free,
                                        .jit_add = jit_add,
                                        .jit_find = jit_find,
                                        .jit_call = interp_call_entry};
    return &backend;
}
