/* What is added to zeros for the first time is put there.
 *
 *     dy = var float[8]                      dy = var float[8]
 *     for (i ..) dy[i] += x                  for (i ..) dy[i] = x
 *
 * An array of derivatives begins with zeros, and a loop adds to each of them before anything else is done with it. If no two rounds go to the same element, each
 * of them finds a zero there. LLVM, which is told that the sign of a zero in such sums means nothing, sees that once it has written out the loop, and makes better
 * vectors if it does so itself; compilers of C, for which the pass is, keep adding zeros. */
#include "opt.h"

enum {
    MOST_STEP = 1 << 16,
    MOST_LENGTH = 1 << 24
}; /* no step goes through all numbers that are not an index */

typedef struct Access {
    Inst *inst;
    int number; /* as things are written */
} Access;

typedef struct First {
    LoopJumps jumps;
    int *uses;            /* by Val.id */
    const Inst **user;    /* by id of a variable: what uses it first; NULL: nothing so far */
    const Inst **next;    /* ... and then */
    Access *load, *store; /* by id of the address of an element: the last of each */
    int now;
    bool changed;
} First;

static void note_inst(void *user, Inst *inst) {
    First *f = user;
    Access access = {inst, f->now++};
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        Op op = v->kind == VAL_inst ? (Op)v->inst->op : OP_yield;
        if (op == OP_elem && inst->op == OP_load) f->load[v->id] = access;
        if (op == OP_elem && inst->op == OP_store && i == 0) f->store[v->id] = access;
        if (op != OP_var || f->next[v->id]) continue;
        if (!f->user[v->id]) f->user[v->id] = inst;
        else f->next[v->id] = inst;
    }
}

static bool is_of(const Inst *inst, const Region *region) {
    for (const Region *at = inst->parent; at; at = at->owner ? at->owner->parent : NULL)
        if (at == region) return true;
    return false;
}

static bool is_array_of_numbers(const Type *type) {
    return type->kind == TYPE_array && type_is_float(type->args[0]) && type_length(type) <= MOST_LENGTH;
}

/* A constant more than what the loop carries, maybe converted: that. NULL: something else. */
static const Val *counter_of(const Val *index, const Region *body) {
    for (int i = 0; i < 3; i++) {
        if (index->kind == VAL_param) return index->region == body ? index : NULL;
        if (index->kind != VAL_inst) return NULL;
        const Inst *inst = index->inst;
        int64_t change;
        bool moves = (inst->op == OP_add || inst->op == OP_sub) && val_is_int(inst_operand(inst, 1), &change);
        if (!moves && inst->op != OP_convert) return NULL;
        index = inst_operand(inst, 0);
        if (!type_is_integer(index->type) || type_bits(index->type) < 32) return NULL;
    }
    return NULL;
}

/* Has every round an element of its own? The index is in range, so it does not come round. */
static bool is_by_round(const First *f, const Inst *elem, const Inst *loop) {
    const Val *counter = counter_of(inst_operand(elem, 1), loop->regions[1]);
    if (!counter || !inst_has(elem, INST_UNCHECKED)) return false;
    LoopSteps steps = loop_steps_by(&f->jumps, loop, counter->index);
    return steps.known && (steps.least > 0 || steps.greatest < 0) && steps.least >= -MOST_STEP &&
           steps.greatest <= MOST_STEP;
}

/* What that loop does with it, if it is the first to do anything: the address of an element. Else NULL. */
static const Inst *only_use(const First *f, const Inst *var) {
    const Inst *elem = f->user[var->results[0]->id], *next = f->next[var->results[0]->id];
    if (!elem || elem->op != OP_elem) return NULL;
    const Inst *loop = elem->parent->owner;
    bool is_beside = loop && loop->op == OP_loop && loop->nregions == 2 && loop->parent == var->parent;
    if (!is_beside || elem->parent != loop->regions[1] || (next && is_of(next, elem->parent))) return NULL;
    return is_by_round(f, elem, loop) ? elem : NULL;
}

/* The load that finds a zero there; NULL: there is none. */
static Inst *load_of_zero(const First *f, const Inst *var) {
    if (inst_has(var, INST_RAW) || !is_array_of_numbers(var->type)) return NULL;
    const Inst *elem = only_use(f, var);
    if (!elem) return NULL;
    const Val *address = elem->results[0];
    Access load = f->load[address->id], store = f->store[address->id];
    if (!load.inst || !store.inst || f->uses[address->id] != 2) return NULL;
    bool are_beside = load.inst->parent == elem->parent && store.inst->parent == elem->parent;
    return are_beside && load.number < store.number ? load.inst : NULL;
}

static void look_at(void *user, Inst *inst) {
    First *f = user;
    Inst *load = inst->op == OP_var ? load_of_zero(f, inst) : NULL;
    if (!load) return;
    load->results[0]->forward = ir_const_real(inst->func->module, load->results[0]->type, 0);
    inst_remove(load);
    f->changed = true;
}

bool opt_first(Func *func) {
    if (!func->body || !func->module->orders_sums) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    First f = {.jumps = loop_find_jumps(scratch, func),
               .uses = region_count_uses(scratch, func->body),
               .user = arena_array(scratch, const Inst *, func->nvals + 1),
               .next = arena_array(scratch, const Inst *, func->nvals + 1),
               .load = arena_array(scratch, Access, func->nvals + 1),
               .store = arena_array(scratch, Access, func->nvals + 1)};
    region_walk(func->body, note_inst, &f);
    region_walk(func->body, look_at, &f);
    if (f.changed) ir_resolve_func(func);
    arena_free(scratch);
    return f.changed;
}
