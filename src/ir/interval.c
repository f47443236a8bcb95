/* What an integer is at least and at most, as far as constants and counters of loops that run between constants tell. What might
 * wrap around is not known. */
#include "ir.h"

enum { DEPTH = 8 };

static const Interval anything = {0, 0, false};

static Interval interval_of(const LoopJumps *jumps, const Val *v, int depth);

/* ---- what fits */

/* Unless it is out of what the type holds, where it would wrap around. */
static Interval within(const Type *type, int64_t low, int64_t high) {
    int64_t least = type_is_signed(type) ? INT32_MIN : 0,
            greatest = type_is_signed(type) ? INT32_MAX : UINT32_MAX;
    bool is_wide = type_bits(type) == 64;
    bool fits = is_wide ? type_is_signed(type) || low >= 0 : low >= least && high <= greatest;
    return (Interval){low, high, fits && type_bits(type) >= 32};
}

static bool is_modest(Interval i) {
    return i.known && i.low > -((int64_t)1 << 31) && i.high < (int64_t)1 << 31;
}

/* ---- counters */

/* Does the condition compare that carried value with something? */
static bool find_test(const Inst *loop, const Val *condition, int index, LoopTest *test) {
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and)
        return find_test(loop, ir_resolve(inst->args[0]), index, test) ||
               find_test(loop, ir_resolve(inst->args[1]), index, test);
    return inst->op != OP_ne && loop_comparison(loop, inst, test) && test->index == index;
}

static Interval counter(const LoopJumps *jumps, const Val *v, int depth) {
    const Inst *loop = v->region->owner, *yield = loop->regions[0]->last;
    LoopTest test;
    if (v->region != loop->regions[1] || yield->op != OP_yield) return anything;
    if (!find_test(loop, ir_resolve(yield->args[0]), v->index, &test)) return anything;
    LoopSteps steps = loop_steps_by(jumps, loop, v->index);
    if (!steps.known || (test.up ? steps.least < 0 : steps.greatest > 0)) return anything;
    Interval first = interval_of(jumps, ir_resolve(loop->args[v->index]), depth),
             limit = interval_of(jumps, ir_resolve(test.limit), depth);
    if (!is_modest(first) || !is_modest(limit)) return anything;
    int64_t last = test.up ? limit.high + steps.greatest : limit.low + steps.least;
    if (!within(v->type, last, last).known) return anything; /* it might start over from the other end */
    int64_t beyond = test.or_equal ? 0 : 1;
    return test.up ? (Interval){first.low, limit.high - beyond, true}
                   : (Interval){limit.low + beyond, first.high, true};
}

/* ---- arithmetic */

static Interval product(const Type *type, Interval a, Interval b) {
    if (a.low < 0 || b.low < 0) return anything;
    return within(type, a.low * b.low, a.high * b.high);
}

static Interval joined(Interval a, Interval b) {
    if (!a.known || !b.known) return anything;
    return (Interval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, true};
}

/* By some of the bits that a constant has. */
static Interval masked(const Inst *inst) {
    int64_t mask;
    bool is_known =
        val_is_int(ir_resolve(inst->args[0]), &mask) || val_is_int(ir_resolve(inst->args[1]), &mask);
    return is_known && mask >= 0 ? within(inst->results[0]->type, 0, mask) : anything;
}

static Interval of_inst(const LoopJumps *jumps, const Inst *inst, int depth) {
    const Type *type = inst->results[0]->type;
    Interval args[3] = {anything, anything, anything};
    if (inst->nresults != 1 || inst->nargs > 3 || !type_is_integer(type)) return anything;
    if (inst->op == OP_and) return masked(inst);
    for (int i = 0; i < inst->nargs; i++) {
        args[i] = interval_of(jumps, ir_resolve(inst->args[i]), depth);
        if (!is_modest(args[i]) && !(inst->op == OP_select && i == 0)) return anything;
    }
    switch ((Op)inst->op) {
    case OP_add: return within(type, args[0].low + args[1].low, args[0].high + args[1].high);
    case OP_sub: return within(type, args[0].low - args[1].high, args[0].high - args[1].low);
    case OP_mul: return product(type, args[0], args[1]);
    case OP_convert:
    case OP_bitcast: return within(type, args[0].low, args[0].high);
    case OP_select: return joined(args[1], args[2]);
    default: return anything;
    }
}

static Interval interval_of(const LoopJumps *jumps, const Val *v, int depth) {
    int64_t known;
    if (val_is_int(v, &known)) return (Interval){known, known, true};
    if (depth == 0 || !type_is_integer(v->type)) return anything;
    if (v->kind == VAL_inst) return of_inst(jumps, v->inst, depth - 1);
    bool carried = v->kind == VAL_param && v->region->owner && v->region->owner->op == OP_loop;
    return carried ? counter(jumps, v, depth - 1) : anything;
}

Interval ir_interval(const LoopJumps *jumps, const Val *v) { return interval_of(jumps, v, DEPTH); }
