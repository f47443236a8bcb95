/* How often a loop runs at most, which follows from constants: its counter starts at one, and has not come to another yet.
 *
 * A loop that is left early goes on while its state says so, too. Then the counter need not move in the round that changes the state, which is the last:
 *
 *     while (state == 0 && i < 96) { ... state = found ? 2 : 0; i = state == 0 ? i + 1 : i; }
 *
 * What the two are in the next round is looked at together, way by way. */
#include "ir/ir.h"

enum { MOST_KNOWN = 8, MOST_DEPTH = 16 };

static const int64_t unknown = INT64_MAX;

typedef struct Rounds {
    const Inst *loop;
    int counter, state; /* indices of carried values */
    const Val *value;   /* the constant that the state is while the loop goes on */
    struct {
        const Val *condition;
        bool holds;
    } known[MOST_KNOWN]; /* on this way */
    int nknown;
    int64_t least, greatest; /* step of the counter */
} Rounds;

/* ---- a state that is looked at together with a counter */

/* a < b and b <= a, of integers */
static bool are_opposite(const Val *one, const Val *other) {
    if (one->kind != VAL_inst || other->kind != VAL_inst) return false;
    const Inst *less = one->inst->op == OP_lt ? one->inst : other->inst,
               *least = one->inst->op == OP_lt ? other->inst : one->inst;
    return less->op == OP_lt && least->op == OP_le && type_is_integer(inst_operand(less, 0)->type) &&
           val_is_same(inst_operand(less, 0), inst_operand(least, 1)) &&
           val_is_same(inst_operand(less, 1), inst_operand(least, 0));
}

static bool is_known(const Rounds *r, const Val *condition, bool *holds) {
    for (int i = 0; i < r->nknown; i++) {
        bool is_opposite = are_opposite(r->known[i].condition, condition);
        if (!is_opposite && r->known[i].condition != condition) continue;
        *holds = r->known[i].holds != is_opposite;
        return true;
    }
    return false;
}

static const Val *chosen(const Rounds *r, const Val *v) {
    bool holds;
    while (v->kind == VAL_inst && v->inst->op == OP_select && is_known(r, inst_operand(v->inst, 0), &holds))
        v = inst_operand(v->inst, holds ? 1 : 2);
    return v;
}

static bool is_equality(const Val *condition, const Val *state, const Val *value) {
    if (condition->kind != VAL_inst || condition->inst->op != OP_eq) return false;
    const Val *a = inst_operand(condition->inst, 0), *b = inst_operand(condition->inst, 1);
    int64_t wanted, found;
    const Val *constant = a == state ? b : b == state ? a : NULL;
    return constant && val_is_int(constant, &found) && val_is_int(value, &wanted) && found == wanted;
}

static bool is_over(const Rounds *r, const Val *state) {
    int64_t wanted, found;
    if (val_is_int(state, &found)) return val_is_int(r->value, &wanted) && found != wanted;
    for (int i = 0; i < r->nknown; i++)
        if (!r->known[i].holds && is_equality(r->known[i].condition, state, r->value)) return true;
    return false;
}

static bool is_step(Rounds *r, const Val *next) {
    int64_t step;
    if (next->kind != VAL_inst || (next->inst->op != OP_add && next->inst->op != OP_sub)) return false;
    if (inst_operand(next->inst, 0) != r->loop->regions[1]->params[r->counter]) return false;
    if (!val_is_int(inst_operand(next->inst, 1), &step) || step <= INT32_MIN || step > INT32_MAX)
        return false;
    if (next->inst->op == OP_sub) step = -step;
    if (step < r->least) r->least = step;
    if (step > r->greatest) r->greatest = step;
    return true;
}

/* What a value is if the branch is taken; an operand of `select` likewise. */
static const Val *in_branch(const Val *v, const Inst *branch, int k) {
    if (v->kind != VAL_inst || v->inst != branch) return v;
    if (branch->op == OP_select) return inst_operand(branch, 1 + k);
    const Inst *yield = branch->regions[k]->last;
    return yield->op == OP_yield ? inst_operand(yield, v->index) : NULL;
}

static const Inst *branch_of(const Val *v) {
    bool is_branch = v->kind == VAL_inst && (v->inst->op == OP_select || v->inst->op == OP_if);
    return is_branch ? v->inst : NULL;
}

/* On every way the counter makes a step, or the loop is over. */
static bool moves(Rounds *r, const Val *next, const Val *state, int depth) {
    if (!next || !state || depth == 0) return false;
    next = chosen(r, next);
    state = chosen(r, state);
    if (is_over(r, state) || is_step(r, next)) return true;
    const Inst *branch = branch_of(next) ? branch_of(next) : branch_of(state);
    if (!branch || r->nknown == MOST_KNOWN) return false;
    bool all = true;
    for (int k = 0; k < 2 && all; k++) {
        r->known[r->nknown].condition = inst_operand(branch, 0);
        r->known[r->nknown++].holds = k == 0;
        all = moves(r, in_branch(next, branch, k), in_branch(state, branch, k), depth - 1);
        r->nknown--;
    }
    return all;
}

/* Some part of the condition says what the state must be. */
static bool find_state(Rounds *r, const Val *condition) {
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and)
        return find_state(r, inst_operand(inst, 0)) || find_state(r, inst_operand(inst, 1));
    for (int i = 0; i < 2 && inst->op == OP_eq; i++) {
        const Val *state = inst_operand(inst, i), *value = inst_operand(inst, 1 - i);
        int64_t number;
        if (state->kind != VAL_param || state->region != r->loop->regions[0] || !val_is_int(value, &number))
            continue;
        r->state = state->index;
        r->value = value;
        return true;
    }
    return false;
}

static bool steps_with_state(const Inst *loop, int counter, LoopSteps *steps) {
    Rounds r = {.loop = loop, .counter = counter, .least = INT64_MAX, .greatest = INT64_MIN};
    const Inst *yield = loop->regions[1]->last;
    if (yield->op != OP_yield || !find_state(&r, inst_operand(loop->regions[0]->last, 0))) return false;
    bool found = moves(&r, inst_operand(yield, counter), inst_operand(yield, r.state), MOST_DEPTH);
    *steps = (LoopSteps){r.least, r.greatest, true};
    return found && r.least <= r.greatest;
}

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

static int64_t trips_by(const LoopJumps *jumps, const Inst *loop, const Inst *comparison) {
    LoopTest test;
    LoopSteps steps;
    int64_t step;
    if (comparison->op == OP_ne || !loop_comparison(loop, comparison, &test)) return unknown;
    int64_t way = way_of(jumps, loop, &test);
    if (way == unknown) return unknown;
    if (loop_step(loop, test.index, &step)) steps = (LoopSteps){step, step, true};
    else if (!steps_with_state(loop, test.index, &steps)) return unknown;
    int64_t shortest = test.up ? steps.least : -steps.greatest,
            longest = test.up ? steps.greatest : -steps.least;
    way += test.or_equal;
    if (shortest <= 0 || !(loop_cannot_wrap(&test, longest) || ends_far_off(jumps, &test, longest)))
        return unknown;
    return way <= 0 ? 0 : (way + shortest - 1) / shortest;
}

/* Several things may have to be true for it to go on. */
static int64_t most_trips(const LoopJumps *jumps, const Inst *loop, const Val *condition) {
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

/* The trips of a loop inside, one by one from one number to another: base + slope * the number of the round around, never less than 0. */
static bool trips_are_linear(const Inst *loop, const Inst *inner, int64_t *base, int64_t *slope) {
    LoopTest test;
    int64_t step, start, start_slope, limit, limit_slope, rounds = loop_most_trips(loop);
    const Inst *yield = inner->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? inst_operand(yield, 0) : NULL;
    if (inner->nregions != 2 || rounds > INT32_MAX || !condition || condition->kind != VAL_inst) return false;
    if (condition->inst->op != OP_lt || !loop_comparison(inner, condition->inst, &test) || !test.up)
        return false;
    if (!loop_step(inner, test.index, &step) || step != 1) return false;
    if (!is_linear(loop, inst_operand(inner, test.index), &start, &start_slope, MOST_DEPTH) ||
        !is_linear(loop, ir_resolve(test.limit), &limit, &limit_slope, MOST_DEPTH))
        return false;
    *base = limit - start;
    *slope = limit_slope - start_slope;
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
