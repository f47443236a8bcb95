/* Indices that a loop itself compares with the number of elements (range.c):
 *
 *     for (i = 0; i < b.getCount(); i++) ... b[i] ...
 *
 * They are in range in every round, so nothing is tested before the loop, and it is not there twice. */
#include "opt/range.h"

/* ---- buffers */

/* One value, or two that are read from the same uniform. */
static bool is_same(const Val *a, const Val *b) {
    if (val_is_same(a, b)) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst || a->inst->op != b->inst->op) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (!inst_is_steady(one) || !inst_is_steady(other)) return false;
    if (one->op == OP_global) return one->global == other->global;
    if (one->op != OP_load && one->op != OP_field) return false;
    return one->index == other->index && is_same(inst_operand(one, 0), inst_operand(other, 0));
}

/* ---- conversions that keep the number */

static const Inst *conversion(const Val *v) {
    bool is_one = v->kind == VAL_inst && v->inst->op == OP_convert;
    return is_one && type_is_integer(v->type) && type_is_integer(v->inst->args[0]->type) ? v->inst : NULL;
}

/* The number that an index is converted from, if it is not below zero. */
static const Val *origin_of(const Val *v) {
    for (const Inst *inst; (inst = conversion(v)); v = inst_operand(inst, 0)) {
        const Type *from = inst->args[0]->type, *to = v->type;
        int more = type_bits(to) - type_bits(from);
        if (more < 0 || (more == 0 && type_is_signed(to) && !type_is_signed(from))) break;
    }
    return v;
}

/* Is it the number of elements, or, where that is no number of its type, below zero? */
static bool is_length(const Val *v, const Val *buffer) {
    bool is_signed = type_is_signed(v->type);
    for (const Inst *inst; (inst = conversion(v)); v = inst_operand(inst, 0))
        if (type_bits(v->type) < 32 || (!is_signed && type_is_signed(inst->args[0]->type))) return false;
    return v->kind == VAL_inst && v->inst->op == OP_buffer_length &&
           is_same(inst_operand(v->inst, 0), buffer);
}

/* ---- loops */

static bool compares(const Inst *loop, const Val *condition, int index, const Val *buffer) {
    LoopTest test;
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and)
        return compares(loop, inst_operand(inst, 0), index, buffer) ||
               compares(loop, inst_operand(inst, 1), index, buffer);
    return inst->op == OP_lt && loop_comparison(loop, inst, &test) && test.up && test.index == index &&
           is_length(test.limit, buffer);
}

/* Of what is below the length, which is a number of its type: one by one, it comes to that, and not to the other end of the numbers. */
static bool is_never_negative(const LoopJumps *jumps, const Inst *loop, int index) {
    int64_t first;
    if (!type_is_signed(loop->regions[1]->params[index]->type)) return true;
    LoopSteps steps = loop_steps_by(jumps, loop, index);
    return steps.known && steps.least >= 0 && steps.greatest <= 1 &&
           val_is_int(inst_operand(loop, index), &first) && first >= 0;
}

static bool is_below_length(const LoopJumps *jumps, const Val *v, const Val *buffer) {
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    if (!loop || loop->op != OP_loop || v->region != loop->regions[1]) return false;
    const Inst *end = loop->regions[0]->last;
    return end->op == OP_yield && compares(loop, inst_operand(end, 0), v->index, buffer) &&
           is_never_negative(jumps, loop, v->index);
}

/* ---- the entry */

typedef struct Marks {
    const LoopJumps *jumps;
    bool any;
} Marks;

static void mark(void *user, Inst *inst) {
    Marks *marks = user;
    if (inst->op != OP_buffer_elem || inst_has(inst, INST_UNCHECKED)) return;
    if (!is_below_length(marks->jumps, origin_of(inst_operand(inst, 1)), inst_operand(inst, 0))) return;
    inst->flags |= INST_UNCHECKED;
    marks->any = true;
}

bool range_mark_below(Func *func, const LoopJumps *jumps) {
    Marks marks = {jumps, false};
    region_walk(func->body, mark, &marks);
    return marks.any;
}
