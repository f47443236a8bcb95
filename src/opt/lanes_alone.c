/* What LLVM does well with one item at a time, so that lanes gain less.
 *
 *     for (p = 0; p < 4; p++)                                       a nest of short loops: it is written out (emit/nest.c),
 *         for (i = 0; i < 4; i++)                                   so that the array is in registers
 *             for (k = 0; k < 4; k++) a[i][k] -= f[i] * a[p][k];    a loop over neighbours: it becomes vectors
 */
#include "opt/lanes.h"

#include <math.h>

/* ---- nests of short loops */

/* How many rounds it has, if constants say so; else 0. */
double lanes_known_rounds(const Inst *loop) {
    const Inst *test = loop->regions[0]->last;
    const Val *condition = test->op == OP_yield ? ir_resolve(test->args[0]) : NULL;
    LoopTest found;
    int64_t first, limit, step;
    bool known = condition && condition->kind == VAL_inst && loop_comparison(loop, condition->inst, &found) &&
                 val_is_int(ir_resolve(loop->args[found.index]), &first) && val_is_int(found.limit, &limit) &&
                 loop_step(loop, found.index, &step) && step != 0;
    double count = known ? (double)(limit - first) / (double)step : 0;
    return !known ? 0 : count < 1 ? 1 : count > 1e6 ? 1e6 : count;
}

enum { MOST_ROUNDS = 8, MOST_WRITTEN = 2048, MOST_SHORT = 160 };

/* Instructions, with those of loops as often as they are run; more than MOST_WRITTEN: too many, or nobody knows how often. */
static double written(const Inst *inst) {
    double size = 1, rounds = inst->op == OP_loop ? lanes_known_rounds(inst) : 1;
    if (rounds == 0) return INFINITY;
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *part = inst->regions[i]->first; part && size <= MOST_WRITTEN; part = part->next)
            size += written(part);
    return size * rounds;
}

static void look_for_loop(void *user, Inst *inst) {
    bool *found = user;
    *found |= inst->op == OP_loop;
}

bool lanes_is_short(const Inst *loop) {
    double rounds = lanes_known_rounds(loop);
    return rounds > 0 && rounds <= MOST_ROUNDS && written(loop) <= MOST_SHORT;
}

bool lanes_is_written_out(const Inst *nest) {
    bool has_loop = false;
    double rounds = nest->op == OP_loop ? lanes_known_rounds(nest) : 0;
    if (rounds <= 0 || rounds > MOST_ROUNDS || written(nest) > MOST_WRITTEN) return false;
    region_walk(nest->regions[1], look_for_loop, &has_loop);
    return has_loop;
}

bool lanes_is_in_written_out(const Inst *inst) {
    const Region *region = inst->parent;
    while (region->owner && !lanes_is_written_out(region->owner)) region = region->owner->parent;
    return region->owner != NULL;
}

/* ---- arrays and tapes that are numbers in registers, once short loops are written out */

static bool is_left(const Inst *loop) {
    return loop->op == OP_loop && (lanes_is_short(loop) || lanes_is_written_out(loop));
}

/* A constant then: made of constants, and of counters of loops that are written out. */
static bool is_fixed(const Val *v, int depth) {
    int64_t step;
    if (val_is_const(v)) return true;
    if (depth == 0) return false;
    if (v->kind != VAL_inst) {
        const Inst *loop = v->region->owner;
        return loop && is_left(loop) && loop_step(loop, v->index, &step) &&
               is_fixed(inst_operand(loop, v->index), depth - 1);
    }
    const Inst *inst = v->inst;
    bool is_made = op_has(inst->op, OP_ELEMENTWISE) || inst->op == OP_tape_grow;
    for (int i = inst->op == OP_tape_grow; i < inst->nargs && is_made; i++)
        is_made = is_fixed(inst_operand(inst, i), depth - 1);
    return is_made;
}

static bool is_fixed_index(const Inst *inst) {
    enum { DEEP = 8 };
    return is_fixed(inst_operand(inst, 1), DEEP);
}

/* The tape is as high there whatever was done before. */
static bool is_on_every_way(const Inst *inst, const Inst *open) {
    const Region *region = inst->parent;
    while (region != open->parent && region->owner && is_left(region->owner)) region = region->owner->parent;
    return region == open->parent;
}

static bool is_tape_in_registers(const Inst *inst) {
    if (inst->op == OP_tape_open) return true; /* what is done with it decides */
    const Val *tape = inst_operand(inst, 0);
    if (tape->kind != VAL_inst || tape->inst->op != OP_tape_open) return false;
    switch ((Op)inst->op) {
    case OP_tape_load:
    case OP_tape_store: return is_fixed_index(inst);
    case OP_tape_grow:
    case OP_tape_shrink: return is_fixed_index(inst) && is_on_every_way(inst, tape->inst);
    case OP_tape_push:
    case OP_tape_pop: return is_on_every_way(inst, tape->inst);
    default: return inst->op == OP_tape_close;
    }
}

static bool is_in_variable(const Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_elem || address->inst->op == OP_field))
        address = inst_operand(address->inst, 0);
    return address->kind == VAL_inst && address->inst->op == OP_var;
}

bool lanes_keeps_in_memory(const Inst *inst) {
    if (is_for_tape(inst)) return !is_tape_in_registers(inst);
    if (inst->op == OP_elem) return is_in_variable(inst->results[0]) && !is_fixed_index(inst);
    bool is_whole = inst->op == OP_copy || inst->op == OP_zero || inst->op == OP_acc;
    for (int i = 0; i < inst->nargs && is_whole; i++)
        if (is_in_variable(inst_operand(inst, i))) return true;
    return false;
}

/* ---- loops that become vectors */

static bool moves_by(const Inst *loop, Val *v, int64_t *by);

/* A counter of a loop inside, which begins again with the same in each round. */
static bool counts_within(const Inst *loop, const Val *v) {
    const Inst *inner = v->region->owner;
    int64_t step, by;
    return inner && inner->op == OP_loop && loop_step(inner, v->index, &step) &&
           moves_by(loop, inner->args[v->index], &by) && by == 0;
}

/* How far the value moves from a round to the next; false: nobody knows. */
static bool moves_by(const Inst *loop, Val *v, int64_t *by) {
    int64_t a, b;
    v = ir_resolve(v);
    *by = 0;
    if (!inst_contains(loop, v)) return true;
    if (v->kind != VAL_inst)
        return v->region == loop->regions[1] ? loop_step(loop, v->index, by) : counts_within(loop, v);
    const Inst *inst = v->inst;
    if (inst->op == OP_convert) return moves_by(loop, inst->args[0], by);
    if (inst->op != OP_add && inst->op != OP_sub && inst->op != OP_mul) return false;
    bool known = moves_by(loop, inst->args[0], &a) && moves_by(loop, inst->args[1], &b);
    if (known) *by = inst->op == OP_add ? a + b : a - b;
    return known && (inst->op != OP_mul || (a == 0 && b == 0));
}

static bool moves_to_neighbours(const Inst *loop, Val *index) {
    int64_t by;
    return moves_by(loop, index, &by) && by >= -1 && by <= 1;
}

/* Do rounds go to neighbours, or all to one place? */
static bool is_in_line(const Inst *loop, Val *address) {
    address = ir_resolve(address);
    if (!inst_contains(loop, address)) return true;
    const Inst *inst = address->kind == VAL_inst ? address->inst : NULL;
    if (!inst || (inst->op != OP_elem && inst->op != OP_buffer_elem)) return false;
    if (inst->op == OP_elem && !is_in_line(loop, inst->args[0])) return false;
    return moves_to_neighbours(loop, inst->args[1]);
}

static bool is_plain(const Lanes *lanes, const Inst *loop, const Inst *inst);

/* What is written out, so that nothing but its instructions is left: not where that is all of the loop. */
static bool is_plain_nest(const Lanes *lanes, const Inst *loop, const Inst *inner) {
    if (!is_left(inner) || lanes_known_rounds(loop) > 0) return false;
    for (int i = 0; i < inner->nregions; i++)
        for (const Inst *inst = inner->regions[i]->first; inst; inst = inst->next)
            if (inst->op != OP_yield && !is_plain(lanes, loop, inst)) return false;
    return true;
}

static bool is_plain(const Lanes *lanes, const Inst *loop, const Inst *inst) {
    if (inst->op == OP_tape_load || inst->op == OP_tape_store)
        return moves_to_neighbours(loop, inst->args[1]);
    if (lanes_is_plain_sum(lanes->options, inst)) return is_in_line(loop, inst->args[0]);
    if (inst->nregions) return is_plain_nest(lanes, loop, inst);
    if (inst->op == OP_elem) return true; /* who uses it is looked at */
    if (lanes_is_left_to_lanes(lanes->options, inst)) return false;
    if (inst->op == OP_load || inst->op == OP_store) return is_in_line(loop, inst->args[0]);
    return op_has(inst->op, OP_PURE);
}

/* It carries counters and sums that have no order, and writes or adds up. */
static bool is_for_vectors(const Lanes *lanes, const Inst *loop) {
    const Region *body = loop->regions[1];
    bool does = false;
    for (int i = 0; i < loop->nargs && body->last->op == OP_yield; i++) {
        const Val *next = ir_resolve(body->last->args[i]);
        bool is_sum = next->kind == VAL_inst && next->inst->op == OP_add && inst_has(next->inst, INST_FREE);
        int64_t step;
        if (!is_sum && !loop_step(loop, i, &step)) return false;
        does |= is_sum;
    }
    for (const Inst *inst = body->first; inst != body->last; inst = inst->next) {
        if (!is_plain(lanes, loop, inst)) return false;
        does |= !op_has(inst->op, OP_PURE) && inst->op != OP_load && inst->op != OP_tape_load;
    }
    return does && body->last->op == OP_yield;
}

/* Of the largest numbers that it computes with. */
static int bits_of_loop(const Inst *loop) {
    int most = 32;
    for (const Inst *inst = loop->regions[1]->first; inst; inst = inst->next) {
        const Type *type = inst->nresults == 1 ? type_element(inst->results[0]->type) : NULL;
        if (type && type_is_float(type) && type_bits(type) > most) most = type_bits(type);
    }
    return most;
}

double lanes_done_alone(const Lanes *lanes, const Inst *loop) {
    double known = lanes_known_rounds(loop),
           most = (double)lanes->options->register_bits / bits_of_loop(loop);
    if (!is_for_vectors(lanes, loop)) return 1;
    double at_once = 0.75 * (known > 0 && known < most ? known : most);
    return at_once < 1 ? 1 : at_once;
}
