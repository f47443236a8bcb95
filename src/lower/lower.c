/* Setting up, and the work list. */
#include "lower/lowerer.h"

enum { MOST_DEPTH = 16 }; /* of calls of calls */

static void complete_func(void *user, Func *func) {
    Lowerer *l = user;
    if (func->body || func->derivation.of || !func->source) return;
    lower_body(l, (Request *)(uintptr_t)func->source);
    lower_run(l);
}

Lowerer *lower_new(Arena *arena, Checker *checker, Module *module, const LowerConfig *config) {
    Lowerer *l = arena_new(arena, Lowerer);
    l->arena = arena;
    l->c = checker;
    l->m = module;
    l->types = module->types;
    l->config = *config;
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

typedef struct Calls {
    Lowerer *l;
    int depth;
} Calls;

static void lower_called(void *user, Inst *inst) {
    const Calls *around = user;
    const Func *func = inst->op == OP_call ? inst->callee : NULL;
    if (!func || func->body || func->derivation.of || !func->source || around->depth == MOST_DEPTH) return;
    Request *request = (Request *)(uintptr_t)func->source;
    if (depends_on_variants(request)) return;
    Calls inside = {around->l, around->depth + 1};
    lower_request(around->l, request);
    if (func->body) region_walk(func->body, lower_called, &inside);
}

void lower_with_calls(Lowerer *l, Request *request) {
    Calls calls = {l, 0};
    Loc at = l->at;
    if (!request->func->body && !depends_on_variants(request)) lower_request(l, request);
    if (request->func->body) region_walk(request->func->body, lower_called, &calls);
    l->at = at;
}

/* Switches over the types behind an interface come last: by then all types that are ever put behind it are
 * known. If one makes more known, those made before are made again. */
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
