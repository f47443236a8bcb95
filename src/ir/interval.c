/* What an integer is at least and at most, as far as constants and counters of loops that run between
 * constants tell. What might wrap around is not known. */
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

/* Sums of such are no more than 64 bits hold. */
static bool is_moderate(Interval i) {
    return i.known && i.low > -((int64_t)1 << 40) && i.high < (int64_t)1 << 40;
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

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

static Interval product(const Type *type, Interval a, Interval b) {
    int64_t ll = a.low * b.low, lh = a.low * b.high, hl = a.high * b.low, hh = a.high * b.high;
    return within(type, least(least(ll, lh), least(hl, hh)), greatest(greatest(ll, lh), greatest(hl, hh)));
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

/* ---- what keeps any number in bounds */

static Interval whole(const Type *type) {
    int bits = type_bits(type);
    if (bits > 32) return (Interval){INT64_MIN, INT64_MAX, type_is_signed(type)};
    int64_t count = (int64_t)1 << bits;
    return type_is_signed(type) ? (Interval){-count / 2, count / 2 - 1, true}
                                : (Interval){0, count - 1, true};
}

static Interval lesser(Interval a, Interval b) {
    return (Interval){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high, a.known && b.known};
}

static Interval greater(Interval a, Interval b) {
    return (Interval){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.known && b.known};
}

static Interval remainder_by(Interval a, int64_t by) {
    int64_t most = by - 1;
    return (Interval){a.low >= 0      ? 0
                      : a.low > -most ? a.low
                                      : -most,
                      a.high <= 0     ? 0
                      : a.high < most ? a.high
                                      : most,
                      a.known};
}

static Interval quotient_by(Interval a, int64_t by) { return (Interval){a.low / by, a.high / by, a.known}; }

/* a < b ? a : b, the lesser of two; or the greater. */
static bool takes(const Inst *inst, bool takes_greater) {
    const Val *condition = inst_operand(inst, 0);
    return condition->kind == VAL_inst && condition->inst->op == OP_lt &&
           val_is_same(inst_operand(condition->inst, takes_greater), inst_operand(inst, 1)) &&
           val_is_same(inst_operand(condition->inst, !takes_greater), inst_operand(inst, 2));
}

/* A number of few bits is between the ends of these, whatever it is. */
static Interval converted(const Inst *inst, Interval of) {
    const Type *from = inst->args[0]->type;
    if (!type_is_integer(from) || type_bits(from) > 32) return anything;
    Interval all = of.known ? of : whole(from);
    return within(inst->results[0]->type, all.low, all.high);
}

/* Whatever some operand is. */
static Interval bounded(const LoopJumps *jumps, const Inst *inst, const Interval *args) {
    const Type *type = inst->results[0]->type;
    Interval all[3] = {whole(type), whole(type), whole(type)};
    for (int i = 0; i < inst->nargs; i++)
        if (args[i].known) all[i] = args[i];
    int64_t by = inst->nargs == 2 && args[1].known && args[1].low == args[1].high ? args[1].low : 0;
    switch ((Op)inst->op) {
    case OP_min: return lesser(all[0], all[1]);
    case OP_max: return greater(all[0], all[1]);
    case OP_rem: return by > 0 ? remainder_by(all[0], by) : anything;
    case OP_div: return by > 0 ? quotient_by(all[0], by) : anything;
    case OP_shr:
        return by > 0 && by < 32 && all[0].low >= 0 ? quotient_by(all[0], (int64_t)1 << by) : anything;
    case OP_select:
        return takes(inst, false)  ? lesser(all[1], all[2])
               : takes(inst, true) ? greater(all[1], all[2])
                                   : anything;
    case OP_convert: return jumps->by_types ? converted(inst, args[0]) : anything;
    default: return anything;
    }
}

static Interval of_inst(const LoopJumps *jumps, const Inst *inst, int depth) {
    const Type *type = inst->results[0]->type;
    Interval args[3] = {anything, anything, anything};
    if (inst->nresults != 1 || inst->nargs > 3 || !type_is_integer(type)) return anything;
    if (inst->op == OP_and) return masked(inst);
    bool are_modest = true, are_moderate = true;
    for (int i = inst->op == OP_select; i < inst->nargs; i++) {
        args[i] = interval_of(jumps, ir_resolve(inst->args[i]), depth);
        are_modest &= is_modest(args[i]);
        are_moderate &= is_moderate(args[i]);
    }
    Interval kept = bounded(jumps, inst, args);
    if (kept.known || !are_moderate || (inst->op == OP_mul && !are_modest)) return kept;
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
    if (v == jumps->counter) return (Interval){jumps->at, jumps->at, true};
    bool carried = v->kind == VAL_param && v->region->owner && v->region->owner->op == OP_loop;
    return carried ? counter(jumps, v, depth - 1) : anything;
}

Interval ir_interval(const LoopJumps *jumps, const Val *v) { return interval_of(jumps, v, DEPTH); }

Interval ir_interval_by_types(const LoopJumps *jumps, const Val *v) {
    LoopJumps all = *jumps;
    all.by_types = true;
    return interval_of(&all, v, DEPTH);
}

Interval ir_interval_at(const LoopJumps *jumps, const Val *v, const Val *counter, int64_t at) {
    LoopJumps one = *jumps;
    one.counter = counter;
    one.at = at;
    return interval_of(&one, v, DEPTH);
}

/* ---- distances

   Numbers of which nothing is known may be known to be near each other: min(at + 32, n) - at is 32 at most. */

static int64_t distance(const LoopJumps *jumps, const Val *from, const Val *to, int depth) {
    Interval low = interval_of(jumps, from, depth), high = interval_of(jumps, to, depth);
    int64_t most = is_modest(low) && is_modest(high) ? high.high - low.low : INT64_MAX, more;
    if (to->kind != VAL_inst || depth == 0) return most;
    const Inst *inst = to->inst;
    bool is_sum = inst->op == OP_add && inst_operand(inst, 0) == from;
    if (is_sum && val_is_int(inst_operand(inst, 1), &more) && more > 0) return least(most, more);
    bool is_choice = inst->op == OP_select && takes(inst, false);
    if (!is_choice && inst->op != OP_min) return most;
    for (int i = is_choice; i < inst->nargs; i++)
        most = least(most, distance(jumps, from, inst_operand(inst, i), depth - 1));
    return most;
}

int64_t ir_most_between(const LoopJumps *jumps, const Val *from, const Val *to) {
    return distance(jumps, from, to, DEPTH);
}

/* low < high ? high - low : 0 */
static bool is_distance(const Inst *inst) {
    if (inst->op != OP_select || inst_operand(inst, 0)->kind != VAL_inst ||
        inst_operand(inst, 1)->kind != VAL_inst)
        return false;
    const Inst *condition = inst_operand(inst, 0)->inst, *between = inst_operand(inst, 1)->inst;
    int64_t otherwise;
    return condition->op == OP_lt && between->op == OP_sub &&
           inst_operand(condition, 0) == inst_operand(between, 1) &&
           inst_operand(condition, 1) == inst_operand(between, 0) &&
           val_is_int(inst_operand(inst, 2), &otherwise) && otherwise == 0;
}

int64_t ir_most(const LoopJumps *jumps, const Val *v) {
    Interval known = ir_interval(jumps, v);
    int64_t most = known.known ? known.high : INT64_MAX;
    if (v->kind != VAL_inst || !is_distance(v->inst)) return most;
    const Inst *between = inst_operand(v->inst, 1)->inst;
    return least(most, ir_most_between(jumps, inst_operand(between, 1), inst_operand(between, 0)));
}
