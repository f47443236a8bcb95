/* irrun FILE [FUNCTION]: reads IR text and interprets a function without parameters, `main` if none is named.
 *
 * `slope dump FILE | irrun -` runs a program without making machine code, many times faster than making it. What printf is
 * given is shown as the interpreter logs it: the format, then all values. Exit status: 0 fine, 1 not. */
#include "irinterp.h"
#include "irtool.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_STEPS = 150000000, BUFFER_ELEMENTS = 64, BUFFER_BYTES = 64 * 64 };

static const char *const status_names[] = {
    [INTERP_fine] = "fine",
    [INTERP_out_of_steps] = "runs on and on",
    [INTERP_unreachable] = "unreachable",
    [INTERP_aborted] = "aborted",
    [INTERP_too_deep] = "calls are too deep",
    [INTERP_no_body] = "a function has no body",
    [INTERP_bad_tape] = "bad tape",
};

static void show_diagnostic(void *user, const Diagnostic *diagnostic) {
    Text text = {.arena = user};
    diag_render_text(&text, diagnostic, (RenderStyle){0});
    fputs(text.at, stderr);
}

static Str read_file(Arena *arena, FILE *file) {
    Text text = {.arena = arena};
    char chunk[1 << 16];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) text_add(&text, (Str){chunk, (int)n});
    return text_str(&text);
}

static const Func *find_function(const Module *module, const char *name) {
    for (int i = 0; i < module->funcs.count; i++)
        if (strcmp(module->funcs.at[i]->name->text, name) == 0) return module->funcs.at[i];
    return NULL;
}

/* Every global that is a buffer gets one of its own, all zero. */
static void give_buffers(Interp *interp, const Module *module) {
    for (int i = 0; i < module->globals.count; i++) {
        const Global *global = module->globals.at[i];
        if (global->type->kind != TYPE_buffer) continue;
        InterpBuffer *buffer = arena_new(interp->arena, InterpBuffer);
        *buffer =
            (InterpBuffer){.data = arena_array(interp->arena, char, BUFFER_BYTES), .count = BUFFER_ELEMENTS};
        interp_store(global->type, interp_global(interp, global), (Datum){.buffer = buffer});
    }
}

static bool run(ToolSession *session, const char *name) {
    const Func *func = find_function(session->module, name);
    if (!func || !func->body || func->nparams || func->nresults)
        return fprintf(stderr, "there is no function %s() with a body\n", name), false;
    Interp interp;
    interp_init(&interp, &session->arena);
    interp.steps = MOST_STEPS;
    give_buffers(&interp, session->module);
    InterpStatus status = interp_call(&interp, func, NULL, NULL);
    if (interp.log.at) fputs(interp.log.at, stdout);
    if (status == INTERP_fine && interp.open_tapes == 0) return true;
    return fprintf(stderr, "%s\n", status == INTERP_fine ? "a tape is left open" : status_names[status]),
           false;
}

int main(int argc, char **argv) {
    FILE *file = argc < 2 || strcmp(argv[1], "-") == 0 ? stdin : fopen(argv[1], "rb");
    if (!file) return fprintf(stderr, "cannot read '%s'\n", argv[1]), EXIT_FAILURE;
    ToolSession session;
    tool_begin(&session);
    session.diags.sink = show_diagnostic;
    session.diags.user = &session.arena;
    Str text = read_file(&session.arena, file);
    fclose(file);
    bool fine = tool_parse(&session, argc > 1 ? argv[1] : "-", text);
    diags_flush(&session.diags);
    fine = fine && run(&session, argc > 2 ? argv[2] : "main");
    arena_free(&session.arena);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
