/* Setting up, and the work list. */
#include "lower/lowerer.h"

static void complete_func(void *user, Func *func) {
    Lowerer *l = user;
    if (func->body || func->derivation.of || !func->source) return;
    lower_body(l, (Request *)(uintptr_t)func->source);
    lower_run(l);
}

Lowerer *lower_new(Arena *arena, Checker *checker, Module *module) {
    Lowerer *l = arena_new(arena, Lowerer);
    l->arena = arena;
    l->c = checker;
    l->m = module;
    l->types = module->types;
    module->hooks = (IrHooks){.user = l,
                              .complete = complete_func,
                              .complete_diff = complete_func_diff,
                              .complete_record = complete_record_diff,
                              .op_rule = op_rule,
                              .library = library_func};
    return l;
}

static bool depends_on_variants(const Request *request) {
    return request->kind == REQUEST_dispatch || request->kind == REQUEST_opened ||
           request->kind == REQUEST_move;
}

static void lower_request(Lowerer *l, Request *request) {
    int failures = l->m->diags->failures;
    lower_body(l, request);
    if (l->m->diags->failures > failures) request->func->flags |= FUNC_FAILED;
}

/* Switches over the types behind an interface come last: by then all types that are ever put behind it are known. If one makes
 * more known, those made before are made again. */
static bool lower_switches(Lowerer *l) {
    int before = l->pending.count, variants = 0, after = 0;
    for (int i = 0; i < l->interfaces.count; i++)
        variants += type_record(lower_type(l, l->interfaces.at[i]))->nfields;
    for (int i = 0; i < l->switches.count; i++) {
        Request *request = l->switches.at[i];
        if (request->func->body && request->variants == variants) continue;
        request->func->body = NULL;
        request->func->nvals = 1;
        lower_request(l, request);
        request->variants = variants;
    }
    for (int i = 0; i < l->interfaces.count; i++)
        after += type_record(lower_type(l, l->interfaces.at[i]))->nfields;
    return l->pending.count > before || after != variants;
}

void lower_run(Lowerer *l) {
    if (l->running) return;
    l->running = true;
    do {
        for (; l->done < l->pending.count; l->done++) {
            Request *request = l->pending.at[l->done];
            if (depends_on_variants(request)) vec_push(l->arena, &l->switches, request);
            else lower_request(l, request);
        }
    } while (lower_switches(l));
    complete_interfaces(l);
    l->asks_machine |= l->asking.count > 0;
    l->asking.count = 0;
    l->running = false;
}
