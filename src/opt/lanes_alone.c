/* What LLVM does well with one item at a time, so that lanes gain less.
 *
 *     for (p = 0; p < 4; p++)                                       a nest of short loops: it is written out (ir/nest.c),
 *         for (i = 0; i < 4; i++)                                   so that the array is in registers
 *             for (k = 0; k < 4; k++) a[i][k] -= f[i] * a[p][k];    a loop over neighbours: it becomes vectors
 */
#include "opt/lanes.h"

/* ---- arrays and tapes that are numbers in registers, once short loops are written out */

/* The tape is as high there whatever was done before. */
static bool is_on_every_way(const Inst *inst, const Inst *open) {
    const Region *region = inst->parent;
    while (region != open->parent && region->owner && loop_is_left(region->owner))
        region = region->owner->parent;
    return region == open->parent;
}

static bool is_tape_in_registers(const Inst *inst) {
    if (inst->op == OP_tape_open) return true; /* what is done with it decides */
    const Val *tape = inst_operand(inst, 0);
    if (tape->kind != VAL_inst || tape->inst->op != OP_tape_open) return false;
    switch ((Op)inst->op) {
    case OP_tape_load:
    case OP_tape_store: return val_is_fixed(inst_operand(inst, 1), NULL);
    case OP_tape_grow:
    case OP_tape_shrink:
        return val_is_fixed(inst_operand(inst, 1), NULL) && is_on_every_way(inst, tape->inst);
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
    if (inst->op == OP_elem)
        return is_in_variable(inst->results[0]) && !val_is_fixed(inst_operand(inst, 1), NULL);
    bool is_whole = inst->op == OP_copy || inst->op == OP_zero || inst->op == OP_acc;
    for (int i = 0; i < inst->nargs && is_whole; i++)
        if (is_in_variable(inst_operand(inst, i))) return true;
    return false;
}

/* ---- loops that become vectors */

typedef struct Alone {
    const LaneOptions *options;
    const Inst *loop;
    bool has_gaps; /* between what a round uses and what the next does */
} Alone;

static bool moves_by(const Inst *loop, Val *v, int64_t *by);

/* A counter of a loop inside, which begins again with the same in each round. */
static bool counts_within(const Inst *loop, const Val *v) {
    const Inst *inner = v->region->owner;
    int64_t step, by;
    return inner && inner->op == OP_loop && loop_step(inner, v->index, &step) &&
           moves_by(loop, inner->args[v->index], &by) && by == 0;
}

static bool is_multiple(const Inst *product, int64_t by, int64_t *result) {
    enum { FAR = 1 << 20 };
    int64_t factor;
    bool is_near = by > -FAR && by < FAR && val_is_int(inst_operand(product, 1), &factor) && factor > -FAR &&
                   factor < FAR;
    if (is_near) *result = by * factor;
    return is_near;
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
    if (known && inst->op == OP_mul) return (a == 0 && b == 0) || is_multiple(inst, a, by);
    if (known) *by = inst->op == OP_add ? a + b : a - b;
    return known;
}

/* Rounds may go to neighbours, all to one place, or to places a few numbers apart, such as those of one point
 * after the other: then LLVM reads all that is in between. */
static bool moves_in_line(Alone *alone, Val *index) {
    enum { MOST_STEP = 4 };
    int64_t by;
    if (!moves_by(alone->loop, index, &by) || by < -MOST_STEP || by > MOST_STEP) return false;
    alone->has_gaps |= by < -1 || by > 1;
    return true;
}

static bool is_in_line(Alone *alone, Val *address) {
    address = ir_resolve(address);
    if (!inst_contains(alone->loop, address)) return true;
    const Inst *inst = address->kind == VAL_inst ? address->inst : NULL;
    if (!inst || (inst->op != OP_elem && inst->op != OP_buffer_elem)) return false;
    if (inst->op == OP_elem && !is_in_line(alone, inst->args[0])) return false;
    return moves_in_line(alone, inst->args[1]);
}

static bool is_plain(Alone *alone, const Inst *inst);

/* What is written out, so that nothing but its instructions is left: not where that is all of the loop. */
static bool is_plain_nest(Alone *alone, const Inst *inner) {
    if (!loop_is_left(inner) || loop_known_rounds(alone->loop) > 0) return false;
    for (int i = 0; i < inner->nregions; i++)
        for (const Inst *inst = inner->regions[i]->first; inst; inst = inst->next)
            if (inst->op != OP_yield && !is_plain(alone, inst)) return false;
    return true;
}

static bool is_plain(Alone *alone, const Inst *inst) {
    if (inst->op == OP_tape_load || inst->op == OP_tape_store) return moves_in_line(alone, inst->args[1]);
    if (lanes_is_plain_sum(alone->options, inst)) return is_in_line(alone, inst->args[0]);
    if (inst->nregions) return is_plain_nest(alone, inst);
    if (inst->op == OP_elem) return true; /* who uses it is looked at */
    if (lanes_is_left_to_lanes(alone->options, inst)) return false;
    if (inst->op == OP_load || inst->op == OP_store) return is_in_line(alone, inst->args[0]);
    return op_has(inst->op, OP_PURE);
}

/* Not one that is subtracted from: that of a mean beside another sum, where LLVM gained a tenth in 16
 * rounds. */
static bool adds_up(const Inst *loop, int index) {
    return loop_adds_freely(loop, index) && inst_operand(loop->regions[1]->last, index)->inst->op == OP_add;
}

/* It carries counters and sums that have no order, and writes or adds up. */
static bool is_for_vectors(Alone *alone) {
    const Inst *loop = alone->loop;
    const Region *body = loop->regions[1];
    bool does = false;
    for (int i = 0; i < loop->nargs && body->last->op == OP_yield; i++) {
        bool is_sum = adds_up(loop, i);
        int64_t step;
        if (!is_sum && !loop_step(loop, i, &step)) return false;
        does |= is_sum;
    }
    for (const Inst *inst = body->first; inst != body->last; inst = inst->next) {
        if (!is_plain(alone, inst)) return false;
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
    static const double PLAIN = 0.75, WITH_GAPS = 0.375;
    double known = loop_known_rounds(loop), most = (double)lanes->options->register_bits / bits_of_loop(loop);
    Alone alone = {.options = lanes->options, .loop = loop};
    if (!is_for_vectors(&alone)) return 1;
    double at_once = (alone.has_gaps ? WITH_GAPS : PLAIN) * (known > 0 && known < most ? known : most);
    return at_once < 1 ? 1 : at_once;
}
