/* Short loops, of which compilers leave nothing but the instructions of their rounds.
 *
 *     for (p = 0; p < 4; p++)
 *         for (k = 0; k < 4; k++) a[p][k] /= pivot;
 *
 * Once they are written out, their counters are constants, and so is every index that is computed of them
 * alone. */
#include "ir/ir.h"

#include <math.h>

double loop_known_rounds(const Inst *loop) {
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

static const double MOST_ROUNDS = 8, MOST_WRITTEN = 2048, MOST_SHORT = 160;

/* Instructions, with those of loops as often as they are run; more than MOST_WRITTEN: too many, or nobody
 * knows how often. */
static double written(const Inst *inst) {
    double size = 1, rounds = inst->op == OP_loop ? loop_known_rounds(inst) : 1;
    if (rounds == 0) return INFINITY;
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *part = inst->regions[i]->first; part && size <= MOST_WRITTEN; part = part->next)
            size += written(part);
    return size * rounds;
}

bool loop_is_short(const Inst *loop) {
    double rounds = loop_known_rounds(loop);
    return rounds > 0 && rounds <= MOST_ROUNDS && written(loop) <= MOST_SHORT;
}

bool loop_is_written_out(const Inst *nest) {
    double rounds = nest->op == OP_loop ? loop_known_rounds(nest) : 0;
    return rounds > 0 && rounds <= MOST_ROUNDS && written(nest) <= MOST_WRITTEN &&
           region_has_loop(nest->regions[1]);
}

bool inst_is_in_written_out(const Inst *inst) {
    const Region *region = inst->parent;
    while (region->owner && !loop_is_written_out(region->owner)) region = region->owner->parent;
    return region->owner != NULL;
}

bool loop_is_left(const Inst *loop) {
    return loop->op == OP_loop && (loop_is_short(loop) || loop_is_written_out(loop));
}

static bool is_fixed(const Val *v, const CallPath *path, int depth);

static bool is_fixed_param(const Val *v, const CallPath *path, int depth) {
    const Inst *loop = v->region->owner;
    int64_t step;
    if (!loop) return path && is_fixed(inst_operand(path->call, v->index), path->caller, depth);
    return loop_is_left(loop) && loop_step(loop, v->index, &step) &&
           is_fixed(inst_operand(loop, v->index), path, depth);
}

/* What a function returns. */
static bool is_fixed_result(const Val *v, const CallPath *caller, int depth) {
    const CallPath path = {v->inst, caller};
    const Region *body = v->inst->callee->body;
    const Inst *end = body ? body->last : NULL;
    return end && end->op == OP_return && is_fixed(inst_operand(end, v->index), &path, depth);
}

static bool is_fixed(const Val *v, const CallPath *path, int depth) {
    if (val_is_const(v)) return true;
    if (depth == 0) return false;
    if (v->kind != VAL_inst) return is_fixed_param(v, path, depth - 1);
    const Inst *inst = v->inst;
    if (inst->op == OP_call) return is_fixed_result(v, path, depth - 1);
    bool is_made = op_has(inst->op, OP_ELEMENTWISE) || inst->op == OP_tape_grow;
    for (int i = inst->op == OP_tape_grow; i < inst->nargs && is_made; i++)
        is_made = is_fixed(inst_operand(inst, i), path, depth - 1);
    return is_made;
}

bool val_is_fixed(const Val *v, const CallPath *path) {
    enum { DEEP = 12 };
    return is_fixed(v, path, DEEP);
}
