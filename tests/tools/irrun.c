/* irrun FILE [FUNCTION]: reads IR text and interprets a function without parameters, `main` if none is named.
 *
 * `slope dump FILE | irrun -` runs a program from its text, with an end after many steps. Exit status: 0
 * fine, 1 not. */
#include "irobject.h"
#include "irtool.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_STEPS = 150000000, BUFFER_ELEMENTS = 64, BUFFER_BYTES = 64 };

/* Every uniform that is a buffer gets one of its own, all zero. */
static void give_buffers(const JitProgram *program, Module *module) {
    for (int i = 0; i < module->globals.count; i++) {
        const Global *global = module->globals.at[i];
        char *memory = program->backend->jit_find(program->jit, EMIT_uniform, global->name->text);
        if (global->type->kind != TYPE_buffer || !memory) continue;
        char *room = arena_take(module->arena, RT_BUFFER_HEADER + BUFFER_ELEMENTS * BUFFER_BYTES);
        RtBuffer buffer = {room + RT_BUFFER_HEADER, BUFFER_ELEMENTS};
        memcpy(memory, &buffer, sizeof buffer);
    }
}

static bool call(const JitProgram *program, const char *name, InterpCounts *counts) {
    *counts = (InterpCounts){.steps = MOST_STEPS};
    void *found = program->backend->jit_find(program->jit, EMIT_call, name), *none[1] = {NULL};
    program->backend->jit_call(program->jit, found, none);
    char *error = runtime_take_error(program->runtime);
    if (error || counts->open_tapes) fprintf(stderr, "%s\n", error ? error : "a tape is left open");
    bool fine = !error && !counts->open_tapes;
    free(error);
    return fine;
}

static bool run(ToolSession *session, const char *name) {
    Func *func = module_find(session->module, name_from(&session->names, name));
    if (!func || !func->body || func->nparams || func->nresults)
        return fprintf(stderr, "there is no function %s() with a body\n", name), false;
    InterpCounts counts = {.steps = MOST_STEPS};
    RuntimeConfig config = {.workers = 1};
    JitProgram program;
    func->flags |= FUNC_EXPORT;
    func->group_size[0] = 0; /* called, not dispatched */
    if (!interp_open(&program, session->module, &config, &counts)) return false;
    give_buffers(&program, session->module);
    bool fine = call(&program, name, &counts);
    jit_close(&program);
    return fine;
}

int main(int argc, char **argv) {
    ToolSession session;
    bool fine = tool_open(&session, argc > 1 ? argv[1] : "-", NULL);
    diags_flush(&session.diags);
    fine = fine && run(&session, argc > 2 ? argv[2] : "main");
    arena_free(&session.arena);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
