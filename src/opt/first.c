/* What is added to zeros for the first time is put there.
 *
 *     dy = var float[8]                      dy = var float[8]
 *     for (i ..) dy[i] += x                  for (i ..) dy[i] = x
 *
 * An array of derivatives begins with zeros, and a loop, or a nest of them, adds to each of them before
 * anything else is done with it. If no two rounds go to the same element, each of them finds a zero there. A
 * function that adds to an array of its caller's has a second form, for callers that give it zeros. LLVM,
 * which is told that the sign of a zero in such sums means nothing, sees that once it has written out the
 * loop, and makes better vectors if it does so itself; compilers of C, for which the pass is, keep adding
 * zeros. */
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
    const Inst **user;    /* by id of an address: what uses it first; NULL: nothing so far */
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
        if (!ir_target(v->type) || val_is_const(v) || f->next[v->id]) continue;
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
    const Type *element = type->kind == TYPE_array ? type->args[0] : NULL;
    return element && type_length(type) <= MOST_LENGTH &&
           (type_is_float(element) || is_array_of_numbers(element));
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

/* The element that a round of a loop in the region uses, and no other round, if nothing else was done with
 * the array before. Else NULL. */
static const Inst *element_of_round(const First *f, const Val *array, const Region *region) {
    const Inst *elem = f->user[array->id], *next = f->next[array->id];
    if (!elem || elem->op != OP_elem) return NULL;
    const Inst *loop = elem->parent->owner;
    bool is_there = loop && loop->op == OP_loop && loop->nregions == 2 && loop->parent == region;
    if (!is_there || elem->parent != loop->regions[1] || (next && is_of(next, elem->parent))) return NULL;
    return is_by_round(f, elem, loop) ? elem : NULL;
}

/* The load that finds a zero in an array which is zero where the region begins, or in it; NULL: there is
 * none. */
static Inst *load_of_zero(const First *f, const Val *array, const Region *region) {
    const Inst *elem = element_of_round(f, array, region);
    if (!elem) return NULL;
    const Val *address = elem->results[0];
    if (ir_target(address->type)->kind == TYPE_array) return load_of_zero(f, address, elem->parent);
    Access load = f->load[address->id], store = f->store[address->id];
    if (!load.inst || !store.inst || f->uses[address->id] != 2) return NULL;
    bool are_beside = load.inst->parent == elem->parent && store.inst->parent == elem->parent;
    return are_beside && load.number < store.number ? load.inst : NULL;
}

static void put(First *f, Inst *load) {
    load->results[0]->forward = ir_const_real(load->func->module, load->results[0]->type, 0);
    inst_remove(load);
    f->changed = true;
}

static bool is_of_zeros(const Inst *inst) {
    return inst->op == OP_var && !inst_has(inst, INST_RAW) && is_array_of_numbers(inst->type);
}

static void look_at(void *user, Inst *inst) {
    First *f = user;
    Inst *load = is_of_zeros(inst) ? load_of_zero(f, inst->results[0], inst->parent) : NULL;
    if (load) put(f, load);
}

static First find_uses(Arena *scratch, Func *func) {
    First f = {.jumps = loop_find_jumps(scratch, func),
               .uses = region_count_uses(scratch, func->body),
               .user = arena_array(scratch, const Inst *, func->nvals + 1),
               .next = arena_array(scratch, const Inst *, func->nvals + 1),
               .load = arena_array(scratch, Access, func->nvals + 1),
               .store = arena_array(scratch, Access, func->nvals + 1)};
    region_walk(func->body, note_inst, &f);
    return f;
}

/* ---- arrays of the caller's */

static Inst *load_of_param(const First *f, const Func *func, int index) {
    const Param *param = &func->params[index];
    bool is_array = (param->flags & PARAM_BY_ADDRESS) && is_array_of_numbers(param->type);
    return is_array ? load_of_zero(f, func->body->params[index], func->body) : NULL;
}

/* Is it a variable that nothing was done with before the call? */
static bool gives_zeros(const First *f, const Inst *call, int index) {
    const Val *arg = inst_operand(call, index);
    bool is_own = arg->kind == VAL_inst && is_of_zeros(arg->inst) && arg->inst->parent == call->parent;
    return is_own && f->user[arg->id] == call && f->next[arg->id] != call;
}

/* Which of its arrays it adds to first; those of its form, if it has one: it may have been changed since. */
static const bool *sets_of(Arena *scratch, Func *func) {
    if (func->setting) return func->sets;
    First f = find_uses(scratch, func);
    bool *sets = arena_array(scratch, bool, func->nparams + 1);
    for (int i = 0; i < func->nparams; i++) sets[i] = load_of_param(&f, func, i) != NULL;
    return sets;
}

/* Is each of those one of zeros? */
static bool gives_all_zeros(const First *f, const bool *sets, const Inst *call) {
    bool some = false;
    for (int i = 0; i < call->nargs; i++) {
        if (!sets[i]) continue;
        if (!gives_zeros(f, call, i)) return false;
        some = true;
    }
    return some;
}

static void make_form(Arena *scratch, Func *func, const bool *sets) {
    Func *form = clone_func(func, format_text(scratch, "%s.set", func->name->text));
    First f = find_uses(scratch, form);
    for (int i = 0; i < form->nparams; i++) {
        Inst *load = load_of_param(&f, form, i);
        if (load) put(&f, load);
    }
    ir_resolve_func(form);
    opt_simplify(form);
    opt_dce(form);
    func->setting = form;
    bool *kept = arena_array(func->module->arena, bool, func->nparams + 1);
    for (int i = 0; i < func->nparams; i++) kept[i] = sets[i];
    func->sets = kept;
}

static void look_at_call(void *user, Inst *inst) {
    First *f = user;
    Func *callee = inst->op == OP_call ? inst->callee : NULL;
    bool is_made =
        callee && callee->body && (callee->flags & FUNC_GENERATED) && !(callee->flags & FUNC_EXPORT);
    bool gives = false;
    for (int i = 0; i < inst->nargs && is_made; i++) gives |= gives_zeros(f, inst, i);
    if (!gives) return;
    Arena *scratch = arena_scratch(callee->module->arena);
    const bool *sets = sets_of(scratch, callee);
    if (gives_all_zeros(f, sets, inst)) {
        if (!callee->setting) make_form(scratch, callee, sets);
        inst->callee = callee->setting;
        f->changed = true;
    }
    arena_free(scratch);
}

bool opt_first(Func *func) {
    if (!func->body || !func->module->keeps_order) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    First f = find_uses(scratch, func);
    region_walk(func->body, look_at_call, &f);
    region_walk(func->body, look_at, &f);
    if (f.changed) ir_resolve_func(func);
    arena_free(scratch);
    return f.changed;
}
