/* See irreduce.h.
 *
 * Every instruction is tried in turn: is the failure still there without it? Its results become zero; a
 * construct can also be replaced by one of its regions. Whatever makes the program ill-formed is no
 * answer. */
#include "irreduce.h"

typedef struct Attempt {
    int wanted, seen;
    int region; /* -1: remove; else put this region in its place */
    bool done;
} Attempt;

static void put_region(Inst *inst, Region *region) {
    Inst *end = region->last;
    for (int i = 0; i < region->nparams; i++) region->params[i]->forward = inst->args[i];
    while (region->first != end) {
        Inst *moved = region->first;
        inst_remove(moved);
        inst_insert_before(inst, moved);
    }
    for (int i = 0; i < inst->nresults; i++)
        inst->results[i]->forward = end->op == OP_yield && i < end->nargs
                                        ? ir_resolve(end->args[i])
                                        : ir_const_zero(inst->func->module, inst->results[i]->type);
    inst_remove(inst);
}

static void attempt(void *user, Inst *inst) {
    Attempt *a = user;
    if (a->done || a->seen++ != a->wanted || op_has(inst->op, OP_ENDS)) return;
    if (a->region >= inst->nregions) return;
    a->done = true;
    if (a->region >= 0) {
        put_region(inst, inst->regions[a->region]);
        return;
    }
    for (int i = 0; i < inst->nresults; i++)
        inst->results[i]->forward = ir_const_zero(inst->func->module, inst->results[i]->type);
    inst_remove(inst);
}

static void count_inst(void *user, Inst *inst) {
    (void)inst;
    ++*(int *)user;
}

/* The program with one change; empty: none was possible. */
static Str change(Arena *arena, Str text, int wanted, int region, int *total) {
    ToolSession session;
    Attempt a = {.wanted = wanted, .region = region};
    Str result = STR("");
    tool_begin(&session);
    bool fine = tool_parse(&session, "program", text);
    *total = 0;
    for (int i = 0; i < session.module->funcs.count && fine; i++) {
        Func *func = session.module->funcs.at[i];
        if (!func->body) continue;
        region_walk(func->body, count_inst, total);
        region_walk(func->body, attempt, &a);
        ir_resolve_func(func);
    }
    for (int i = 0; i < session.module->funcs.count; i++)
        fine &= ir_verify(&session.arena, session.module->funcs.at[i]) == NULL;
    if (fine && a.done) {
        Text out = {.arena = arena};
        ir_print_module(&out, session.module);
        result = text_str(&out);
    }
    arena_free(&session.arena);
    return result;
}

Str tool_reduce(Arena *arena, Str text, bool (*fails)(void *user, Str text), void *user) {
    for (bool smaller = true; smaller;) {
        int total = 1;
        smaller = false;
        for (int wanted = 0; wanted < total; wanted++)
            for (int region = -1; region < 4; region++) {
                Str changed = change(arena, text, wanted, region, &total);
                if (changed.len == 0 || !fails(user, changed)) continue;
                text = changed;
                smaller = true;
                wanted--;
                break;
            }
    }
    return text;
}
