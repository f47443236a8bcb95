/* How often a loop runs at most, which follows from constants: its counter starts at one, and has not come to
 * another yet. */
#include "ir/ir.h"

enum { MOST_DEPTH = 16 };

static const int64_t unknown = INT64_MAX;

/* ---- counters */

static bool is_moderate(Val *v, int64_t *value) {
    return val_is_int(ir_resolve(v), value) && *value > INT32_MIN && *value < INT32_MAX;
}

/* From where it starts to where it ends. */
static int64_t way_of(const LoopJumps *jumps, const Inst *loop, const LoopTest *test) {
    Val *from = ir_resolve(loop->args[test->index]), *to = ir_resolve(test->limit);
    int64_t start, limit;
    if (is_moderate(from, &start) && is_moderate(to, &limit)) return test->up ? limit - start : start - limit;
    return jumps ? ir_most_between(jumps, test->up ? from : to, test->up ? to : from) : unknown;
}

/* Is the limit so far from the end of the numbers that no step leads there? */
static bool ends_far_off(const LoopJumps *jumps, const LoopTest *test, int64_t longest) {
    const Interval anything = {0, 0, false};
    Interval limit = jumps ? ir_interval(jumps, ir_resolve(test->limit)) : anything;
    int64_t most = type_is_signed(test->limit->type) ? INT32_MAX : UINT32_MAX,
            least = type_is_signed(test->limit->type) ? INT32_MIN : 0;
    if (!limit.known || type_bits(test->limit->type) < 32 || longest > INT32_MAX) return false;
    return test->up ? limit.high <= most - longest : limit.low >= least + longest;
}

/* ---- counters that are doubled, halved and the like */

enum { MOST_ROUNDS = 128, FEW_STEPS = 4 };

static const Val *next_of(const Inst *loop, int index) {
    const Inst *yield = loop->regions[1]->last;
    return yield && yield->op == OP_yield ? inst_operand(yield, index) : NULL;
}

/* What a value is in a round where the counter is that number; false: it does not follow from it. */
static bool follows(const Val *counter, int64_t now, const Val *v, int depth, int64_t *out) {
    if (val_is_int(v, out)) return true;
    *out = now;
    if (v == counter) return true;
    int64_t x[2] = {0, 0};
    if (v->kind != VAL_inst || v->type != counter->type || v->inst->nargs < 1 || v->inst->nargs > 2 ||
        depth == 0)
        return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (!follows(counter, now, inst_operand(v->inst, i), depth - 1, &x[i])) return false;
    if (!compute_int((Op)v->inst->op, v->type, x[0], x[1], out)) return false;
    *out = number_wrap(*out, v->type);
    return true;
}

static bool goes_on(const LoopTest *test, const Type *type, int64_t now, int64_t limit) {
    bool less = type_is_signed(type) ? now < limit : (uint64_t)now < (uint64_t)limit;
    if (now == limit) return test->or_equal;
    return less == test->up;
}

/* From constants on, the counter is followed; `late`: tested at the end of a round. */
static int64_t trips_followed(const Inst *loop, const LoopTest *test, bool late) {
    const Val *counter = loop->regions[1]->params[test->index], *next = next_of(loop, test->index);
    int64_t now, limit, trips = 0;
    if (!next || !val_is_int(inst_operand(loop, test->index), &now)) return unknown;
    if (!val_is_int(ir_resolve(test->limit), &limit)) return unknown;
    for (; (late && trips == 0) || goes_on(test, counter->type, now, limit); trips++)
        if (trips == MOST_ROUNDS || !follows(counter, now, next, FEW_STEPS, &now)) return unknown;
    return trips;
}

/* A number that loses at least a bit in each round is not positive any more when it has lost all. */
static int64_t trips_to_zero(const Inst *loop, const LoopTest *test) {
    const Val *counter = loop->regions[1]->params[test->index], *next = next_of(loop, test->index);
    const Inst *inst = next && next->kind == VAL_inst ? next->inst : NULL;
    int64_t by, limit;
    bool shrinks = inst && (inst->op == OP_shr || inst->op == OP_div) && inst_operand(inst, 0) == counter &&
                   val_is_int(inst_operand(inst, 1), &by) && by >= (inst->op == OP_shr ? 1 : 2) &&
                   by < (inst->op == OP_shr ? type_bits(counter->type) : INT32_MAX);
    if (!shrinks || test->up || !val_is_int(ir_resolve(test->limit), &limit)) return unknown;
    return limit >= (test->or_equal ? 1 : 0) ? type_bits(counter->type) : unknown;
}

static int64_t trips_by(const LoopJumps *jumps, const Inst *loop, const Inst *comparison) {
    LoopTest test;
    if (comparison->op == OP_ne || !loop_comparison(loop, comparison, &test)) return unknown;
    LoopSteps steps = loop_steps_while_running(loop, test.index);
    if (!steps.known) {
        int64_t trips = trips_followed(loop, &test, false);
        return trips != unknown ? trips : trips_to_zero(loop, &test);
    }
    int64_t way = way_of(jumps, loop, &test);
    if (way == unknown || steps.least <= INT32_MIN || steps.greatest > INT32_MAX) return unknown;
    int64_t shortest = test.up ? steps.least : -steps.greatest,
            longest = test.up ? steps.greatest : -steps.least;
    way += test.or_equal;
    if (shortest <= 0 || !(loop_cannot_wrap(&test, longest) || ends_far_off(jumps, &test, longest)))
        return unknown;
    return way <= 0 ? 0 : (way + shortest - 1) / shortest;
}

/* ---- do ... while: a flag that is true at first says whether to go on, by what the counter is after the round */

static int64_t trips_by_next(const Inst *loop, const Inst *comparison, int index, int side) {
    LoopTest test = {index, inst_operand(comparison, 1 - side), side == 0, comparison->op == OP_le};
    LoopSteps steps = loop_steps_while_running(loop, index);
    if (!steps.known) return trips_followed(loop, &test, true);
    int64_t way = way_of(NULL, loop, &test);
    if (way == unknown || way < 0 || steps.least <= INT32_MIN || steps.greatest > INT32_MAX) return unknown;
    int64_t shortest = test.up ? steps.least : -steps.greatest,
            longest = test.up ? steps.greatest : -steps.least;
    if (shortest <= 0 || !loop_cannot_wrap(&test, longest)) return unknown;
    way += test.or_equal;
    return way <= shortest ? 1 : (way + shortest - 1) / shortest;
}

static int64_t trips_by_late_test(const Inst *loop, const Inst *comparison) {
    if (comparison->op != OP_lt && comparison->op != OP_le) return unknown;
    if (!type_is_integer(inst_operand(comparison, 0)->type)) return unknown;
    int64_t least = unknown;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < loop->regions[1]->nparams; i++) {
            if (next_of(loop, i) != inst_operand(comparison, side)) continue;
            int64_t trips = trips_by_next(loop, comparison, i, side);
            least = trips < least ? trips : least;
        }
    return least;
}

/* `flag` by what it is next; as it was where the loop ends in another way. */
static int64_t trips_by_flag(const Inst *loop, int index, const Val *next, int depth) {
    if (!next || next->kind != VAL_inst || depth == 0) return unknown;
    const Inst *inst = next->inst;
    if (inst->op != OP_and && inst->op != OP_select) return trips_by_late_test(loop, inst);
    const Val *a = inst_operand(inst, inst->op == OP_and ? 0 : 1),
              *b = inst_operand(inst, inst->op == OP_and ? 1 : 2), *flag = loop->regions[0]->params[index];
    if (inst->op == OP_select && a == flag && loop_ends_if(loop, inst_operand(inst, 0), true))
        return trips_by_flag(loop, index, b, depth - 1);
    if (inst->op == OP_select && b == flag && loop_ends_if(loop, inst_operand(inst, 0), false))
        return trips_by_flag(loop, index, a, depth - 1);
    int64_t x = trips_by_flag(loop, index, a, depth - 1), y = trips_by_flag(loop, index, b, depth - 1);
    return (x < y) == (inst->op == OP_and) ? x : y;
}

/* Several things may have to be true for it to go on. */
static int64_t most_trips(const LoopJumps *jumps, const Inst *loop, const Val *condition) {
    if (condition->kind == VAL_param && condition->region == loop->regions[0])
        return trips_by_flag(loop, condition->index, next_of(loop, condition->index), MOST_DEPTH);
    if (condition->kind != VAL_inst) return unknown;
    const Inst *inst = condition->inst;
    if (inst->op != OP_and) return trips_by(jumps, loop, inst);
    int64_t a = most_trips(jumps, loop, inst_operand(inst, 0)),
            b = most_trips(jumps, loop, inst_operand(inst, 1));
    return a < b ? a : b;
}

int64_t loop_bounded_trips(const LoopJumps *jumps, const Inst *loop) {
    const Inst *yield = loop->regions[0]->last;
    if (loop->nregions > 2 || !yield || yield->op != OP_yield) return unknown;
    return most_trips(jumps, loop, inst_operand(yield, 0));
}

int64_t loop_most_trips(const Inst *loop) { return loop_bounded_trips(NULL, loop); }

/* ---- numbers that grow by what an inner loop counts

       for (i = 0; i < 8; i++) for (j = i + 1; j < 8; j++) { ... next++; }                   in round i, by 7 - i */

/* base + slope * the number of the round; false: it is not of that form, with constants. */
static bool is_linear(const Inst *loop, const Val *v, int64_t *base, int64_t *slope, int depth) {
    int64_t number;
    *slope = 0;
    if (val_is_int(v, base)) return *base > INT32_MIN && *base < INT32_MAX;
    if (v->kind == VAL_param && v->region == loop->regions[1])
        return loop_step(loop, v->index, slope) && is_moderate(loop->args[v->index], base) &&
               *slope > INT32_MIN && *slope < INT32_MAX;
    bool adds = v->kind == VAL_inst && (v->inst->op == OP_add || v->inst->op == OP_sub);
    if (!adds || depth == 0 || !val_is_int(inst_operand(v->inst, 1), &number)) return false;
    if (number <= INT32_MIN || number >= INT32_MAX) return false;
    if (!is_linear(loop, inst_operand(v->inst, 0), base, slope, depth - 1)) return false;
    *base += v->inst->op == OP_add ? number : -number;
    return *base > INT32_MIN && *base < INT32_MAX;
}

/* The trips of a loop inside, one by one from one number to another: base + slope * the number of the round
 * around, never less than 0. If it is not known how many rounds there are, they must begin at a constant:
 * where more and more are made each time, none ever comes to the end of the numbers. */
static bool trips_are_linear(const Inst *loop, const Inst *inner, int64_t *base, int64_t *slope) {
    LoopTest test;
    int64_t step, start, start_slope, limit, limit_slope, rounds = loop_most_trips(loop);
    const Inst *yield = inner->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? inst_operand(yield, 0) : NULL;
    if (inner->nregions != 2 || !condition || condition->kind != VAL_inst) return false;
    bool compares = condition->inst->op == OP_lt || condition->inst->op == OP_le;
    if (!compares || !loop_comparison(inner, condition->inst, &test) || !test.up) return false;
    if (!loop_step(inner, test.index, &step) || step != 1) return false;
    if (!is_linear(loop, inst_operand(inner, test.index), &start, &start_slope, MOST_DEPTH) ||
        !is_linear(loop, ir_resolve(test.limit), &limit, &limit_slope, MOST_DEPTH))
        return false;
    *base = limit - start + test.or_equal;
    *slope = limit_slope - start_slope;
    if (rounds > INT32_MAX) return start_slope == 0 && *base >= 0 && *slope > 0;
    return *base >= 0 && (rounds == 0 || *base + *slope * (rounds - 1) >= 0);
}

bool loop_ramp(const Inst *loop, int index, int64_t *first, int64_t *change) {
    *change = 0;
    if (loop_step(loop, index, first)) return true;
    const Inst *yield = loop->nregions == 2 ? loop->regions[1]->last : NULL;
    const Val *next = yield && yield->op == OP_yield ? inst_operand(yield, index) : NULL;
    const Inst *inner = next && next->kind == VAL_inst && next->inst->op == OP_loop ? next->inst : NULL;
    int64_t step;
    if (!inner || inner->parent != loop->regions[1] || !loop_step(inner, next->index, &step)) return false;
    if (inst_operand(inner, next->index) != loop->regions[1]->params[index]) return false;
    if (step < INT16_MIN || step > INT16_MAX || !trips_are_linear(loop, inner, first, change)) return false;
    *first *= step;
    *change *= step;
    return true;
}

/* ---- vectors of rounds, as compilers of C have them */

enum { BITS_OF_VECTOR = 256, MOST_IN_VECTORS = 64 };

int loop_vector_numbers(const Type *type) { return BITS_OF_VECTOR / (type->kind == TYPE_float ? 32 : 64); }

int64_t loop_whole_vectors(int64_t rounds, const Type *type) {
    int64_t numbers = loop_vector_numbers(type);
    return (rounds + numbers - 1) / numbers * numbers;
}

bool loop_leaves_rest(int64_t rounds, const Type *type) {
    int64_t numbers = loop_vector_numbers(type), rest = rounds % numbers, half = numbers / 2,
            steps = rest / half + rest % half;
    return rounds > numbers && rounds <= MOST_IN_VECTORS && steps > (type->kind == TYPE_float ? 1 : 0);
}
