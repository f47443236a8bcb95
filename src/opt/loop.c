/* Loops that surely end. */
#include "opt.h"

/* v as a constant more than param; false: it is something else. */
static bool find_delta(const Val *v, const Val *param, int64_t *delta) {
    *delta = 0;
    v = ir_resolve((Val *)(uintptr_t)v);
    if (v == param) return true;
    if (v->kind != VAL_inst || (v->inst->op != OP_add && v->inst->op != OP_sub)) return false;
    if (ir_resolve(v->inst->args[0]) != param || !val_is_int(ir_resolve(v->inst->args[1]), delta))
        return false;
    if (v->inst->op == OP_sub) *delta = (int64_t)(0 - (uint64_t)*delta);
    return true;
}

typedef struct Steps {
    int64_t least, greatest;
    bool any, known;
} Steps;

static void add_way(Steps *steps, const Val *v, const Val *param) {
    int64_t delta;
    if (!find_delta(v, param, &delta)) steps->known = false;
    else if (!steps->any) steps->least = steps->greatest = delta;
    else if (delta < steps->least) steps->least = delta;
    else if (delta > steps->greatest) steps->greatest = delta;
    steps->any = true;
}

/* How far carried value `index` moves in one iteration, over all ways through it. */
static Steps find_steps(const Inst *loop, Inst *const *jumps, int njumps, int index) {
    const Region *body = loop->regions[1];
    Steps steps = {.known = true}, last = {.known = true};
    if (body->last->op == OP_yield) add_way(&steps, body->last->args[index], body->params[index]);
    for (int i = 0; i < njumps; i++)
        if (jumps[i]->op == OP_continue) add_way(&steps, jumps[i]->args[index], body->params[index]);
    if (loop->nregions == 2) return steps;
    const Region *step = loop->regions[2];
    if (step->last->op == OP_yield) add_way(&last, step->last->args[index], step->params[index]);
    steps.known &= last.known;
    steps.least = (int64_t)((uint64_t)steps.least + (uint64_t)last.least);
    steps.greatest = (int64_t)((uint64_t)steps.greatest + (uint64_t)last.greatest);
    return steps;
}

static int param_index(const Region *region, const Val *v) {
    return v->kind == VAL_param && v->region == region ? v->index : -1;
}

static bool is_from_outside(const Inst *loop, const Val *v) {
    if (v->kind == VAL_const) return true;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    for (; region; region = region->owner ? region->owner->parent : NULL)
        if (region->owner == loop) return false;
    return true;
}

/* While i < bound, i growing (up), or i > bound, i falling: no step may jump over the end of the numbers. A step of
 * one cannot, unless equality goes on; a longer one cannot if the bound is a constant far enough from the end. */
static bool cannot_skip(const Type *type, const Val *bound, int64_t longest, bool up, bool or_equal) {
    int64_t value;
    if (longest == 1 && !or_equal) return true;
    if (type_bits(type) > 32 || longest > INT32_MAX || !val_is_int(bound, &value)) return false;
    int bits = type_bits(type);
    bool is_signed = type_is_signed(type);
    int64_t high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;
    return up ? value + longest <= high : value - longest >= low;
}

static bool comparison_ends(const Inst *loop, const Inst *test, Inst *const *jumps, int njumps) {
    const Val *a = ir_resolve(test->args[0]), *b = ir_resolve(test->args[1]);
    int left = param_index(loop->regions[0], a), right = param_index(loop->regions[0], b);
    if (!type_is_integer(a->type) || (left < 0) == (right < 0)) return false;
    const Val *bound = left >= 0 ? b : a;
    if (!is_from_outside(loop, bound)) return false;
    Steps steps = find_steps(loop, jumps, njumps, left >= 0 ? left : right);
    if (!steps.known) return false;
    bool up = left >= 0;
    if (test->op == OP_ne) return steps.least == steps.greatest && (steps.least == 1 || steps.least == -1);
    if (up ? steps.least <= 0 : steps.greatest >= 0) return false;
    return cannot_skip(a->type, bound, up ? steps.greatest : -steps.least, up, test->op == OP_le);
}

static bool condition_ends(const Inst *loop, const Val *condition, Inst *const *jumps, int njumps) {
    condition = ir_resolve((Val *)(uintptr_t)condition);
    if (val_is_zero(condition)) return true;
    if (condition->kind != VAL_inst) return false;
    const Inst *test = condition->inst;
    if (test->op == OP_and)
        return condition_ends(loop, test->args[0], jumps, njumps) ||
               condition_ends(loop, test->args[1], jumps, njumps);
    return (test->op == OP_lt || test->op == OP_le || test->op == OP_ne) &&
           comparison_ends(loop, test, jumps, njumps);
}

bool opt_loop_is_finite(const Inst *loop, Inst *const *jumps, int njumps) {
    const Inst *end = loop->regions[0]->last;
    return end->op == OP_yield && condition_ends(loop, end->args[0], jumps, njumps);
}
