/* What the rounds of a loop add to one place of a buffer is added up first.
 *
 *     for (i ..) { g[i] += x; g[n] += y; }           t = 0; for (i ..) { g[i] += x; t += y; } g[n] += t;
 *
 * Parameters of each item and those that all share may lie in one buffer, and so do their derivatives.
 * Whether g[n] is one of the g[i] nobody can tell, but it does not matter: they are sums, and no order of
 * them was ever written. LLVM, which does not know that, has each round wait for the one before in memory.
 * Where there is no other sum in the buffer, it keeps the total in a register itself. All else that the loop
 * does in buffers was found to be apart from this one (apart.c). */
#include "opt.h"

enum { MOST_TOTALS = 64 };

typedef struct Totals {
    int *uses; /* by Val.id */
    const Inst *loop;
    bool is_opaque;
    Inst *sums[MOST_TOTALS]; /* in places that stay the same */
    int count;
    bool changed;
} Totals;

/* ---- what a round does */

static bool is_steady_sum(const Totals *t, const Inst *inst) {
    const Val *address = inst_operand(inst, 0);
    const Inst *element = ir_element(address);
    return inst->parent == t->loop->regions[1] && element && inst_has(element, INST_UNCHECKED) &&
           !inst_contains(t->loop, address);
}

static void find_sum(void *user, Inst *inst) {
    Totals *t = user;
    t->is_opaque |= inst->op == OP_call || (op_has(inst->op, OP_EFFECT | OP_LEAVES) && !is_for_tape(inst));
    if (opt_is_sum(t->uses, inst) && is_steady_sum(t, inst) && t->count < MOST_TOTALS)
        t->sums[t->count++] = inst;
}

/* What else is done in the memory that a sum is in. */
typedef struct Beside {
    const Totals *totals;
    ApartMark mark;
    bool has_others, has_moving; /* than sums; sums that go from place to place */
} Beside;

static void look_beside(void *user, Inst *inst) {
    Beside *beside = user;
    bool is_sum = opt_is_sum(beside->totals->uses, inst),
         is_steady = inst->op == OP_load && inst_is_steady(inst);
    for (int i = 0; i < inst->nargs && op_has(inst->op, OP_READS | OP_WRITES) && !is_steady; i++) {
        Role role = ir_role(inst, i);
        const Val *address = inst_operand(inst, i);
        bool is_used = role == ROLE_read || role == ROLE_write || role == ROLE_share;
        if (!is_used || opt_is_of_thread(address)) continue;
        const Inst *element = ir_element(address);
        if (element && ir_are_marked_apart(element->apart, beside->mark)) continue;
        beside->has_others |= !is_sum;
        beside->has_moving |= is_sum && inst_contains(beside->totals->loop, address);
    }
}

static bool can_wait(const Totals *t, const Inst *sum) {
    Beside beside = {.totals = t, .mark = ir_element(inst_operand(sum, 0))->apart};
    inst_walk(t->loop, look_beside, &beside);
    return !beside.has_others && beside.has_moving;
}

/* ---- the loop with totals */

/* The address behind the loop: that is in range if there was a round. */
static Val *tested(Inst *before, Val *address) {
    CloneMap map = {.module = before->func->module, .func = before->func};
    address = ir_resolve(address);
    bool is_element = address->inst->op == OP_buffer_elem;
    Val *base = is_element ? NULL : tested(before, address->inst->args[0]);
    Inst *copy = clone_inst(&map, address->inst);
    copy->flags &= (uint8_t)~INST_UNCHECKED;
    if (base) copy->args[0] = base;
    inst_insert_before(before, copy);
    return copy->results[0];
}

static void add_total(Inst *loop, Inst *sum) {
    Val *x = inst_operand(sum, 1), *zero = ir_const_zero(loop->func->module, x->type);
    inst_add_arg(loop, zero);
    region_add_param(loop->regions[0], x->type, NULL);
    Val *now = region_add_param(loop->regions[1], x->type, NULL);
    Builder b = build_before(sum);
    inst_add_arg(loop->regions[1]->last, build_sum(&b, now, x));
    Val *total = inst_add_result(loop, x->type, NULL);
    inst_remove(sum);
    inst_insert_before(loop->next, sum);
    sum->args[0] = tested(sum, sum->args[0]);
    sum->args[1] = total;
}

static void visit_loop(Totals *t, Inst *loop) {
    t->loop = loop;
    t->count = 0;
    t->is_opaque = loop->nregions != 2 || loop->regions[1]->last->op != OP_yield;
    inst_walk(loop, find_sum, t);
    bool can = t->count > 0 && !t->is_opaque;
    for (int i = 0; i < t->count && can; i++) {
        if (!can_wait(t, t->sums[i])) continue;
        add_total(loop, t->sums[i]);
        t->changed = true;
    }
}

static void visit_region(Totals *t, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nregions; i++) visit_region(t, inst->regions[i]);
        if (inst->op == OP_loop) visit_loop(t, inst);
    }
}

bool opt_totals(Func *func) {
    if (!opt_has_own_sums(func)) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Totals t = {.uses = region_count_uses(scratch, func->body)};
    visit_region(&t, func->body);
    arena_free(scratch);
    return t.changed;
}
