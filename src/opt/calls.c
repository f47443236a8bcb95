/* Elementary functions of many numbers, one after the other, are those of an array, in a loop.
 *
 *     a = tanh x                            t = var float[8]
 *     b = tanh y                            t[0] = x, t[1] = y, ...
 *     ...                                   for (i ..) t[i] = tanh t[i]
 *     use a, b, ...                         use t[0], t[1], ...
 *
 * Rows of a layer that are done together have such calls, and so have loops that were unrolled. LLVM makes
 * vectors of them as they are; compilers of C, for which the pass is, know the functions that the C library
 * has for vectors, but call them in loops alone. */
#include "opt.h"

enum { FEWEST = 8, MOST = 64 };

typedef struct Calls {
    Inst *at[MOST]; /* of one function, of numbers of one type; nothing between them uses what they give */
    int count;
    bool changed;
} Calls;

static bool is_call(const Inst *inst) {
    return op_is_elementary(inst->op) && inst->nargs == 1 && type_is_scalar(inst->results[0]->type);
}

static bool is_alike(const Inst *a, const Inst *b) {
    return a->op == b->op && a->flags == b->flags && a->results[0]->type == b->results[0]->type &&
           inst_operand(a, 0)->type == inst_operand(b, 0)->type;
}

static Val *place_of(Builder *b, Val *array, int i) {
    const Type *number = type_basic(b->func->module->types, TYPE_int);
    return build_elem(b, array, ir_const_int(b->func->module, number, i), true);
}

/* The calls are all done before `next`. */
static void make_loop(const Calls *calls, Inst *next) {
    const Inst *first = calls->at[0];
    const Type *type = first->results[0]->type;
    Builder b = build_before(next);
    b.loc = first->loc;
    Val *array = build_var(&b, type_array(b.func->module->types, type, calls->count), NULL, true);
    for (int i = 0; i < calls->count; i++)
        build_store(&b, place_of(&b, array, i), inst_operand(calls->at[i], 0));
    CountLoop loop = build_count(&b, 0, calls->count);
    Val *place = build_elem(&loop.body, array, loop.index, true), *number = build_load(&loop.body, place);
    Inst *call = build_inst(&loop.body, first->op, &number, 1, 0, 0);
    call->flags = first->flags;
    build_store(&loop.body, place, inst_add_result(call, type, NULL));
    build_next(&loop);
    for (int i = 0; i < calls->count; i++) {
        Val *result = build_load(&b, place_of(&b, array, i));
        result->name = calls->at[i]->results[0]->name;
        calls->at[i]->results[0]->forward = result;
        inst_remove(calls->at[i]);
    }
}

static void end_calls(Calls *calls, Inst *next) {
    if (calls->count >= FEWEST) {
        make_loop(calls, next);
        calls->changed = true;
    }
    calls->count = 0;
}

static bool uses(const Calls *calls, const Inst *inst) {
    for (int i = 0; i < calls->count; i++)
        for (int k = 0; k < inst->nargs; k++)
            if (inst_operand(inst, k) == calls->at[i]->results[0]) return true;
    return false;
}

static void visit_region(Calls *calls, Region *region) {
    Calls here = {0};
    for (Inst *inst = region->first; inst; inst = inst->next) {
        bool is_full = here.count == MOST || (here.count && is_call(inst) && !is_alike(here.at[0], inst));
        if (inst->nregions || is_full || uses(&here, inst)) end_calls(&here, inst);
        for (int i = 0; i < inst->nregions; i++) visit_region(calls, inst->regions[i]);
        if (is_call(inst)) here.at[here.count++] = inst;
    }
    calls->changed |= here.changed;
}

bool opt_calls(Func *func) {
    Calls calls = {0};
    if (!func->body || !func->module->keeps_order) return false;
    visit_region(&calls, func->body);
    if (calls.changed) ir_resolve_func(func);
    return calls.changed;
}
