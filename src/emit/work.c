/* How long code runs at most between two looks at the flag that tells it to stop.
 *
 * Whoever runs a kernel may want it to end, whatever it does. So a function looks at the flag in loops that
 * may take long, and at its start if it calls itself or does much without loops: functions that call each
 * other twice, forty deep. What is known to be done after MUCH_WORK instructions does not look, so that short
 * loops are unrolled as ever. A loop that counts looks once in many rounds: inside it, in between, is a loop
 * that nothing but the counter ends, which can be vectorised (emit/llvm/control.c), unless its rounds do much
 * and wait for each other. All others look in every round, or in every eighth if they do little in one.
 *
 * Work is counted in instructions of the IR, roughly. Functions that call nothing come first, then their
 * callers; those that call themselves last, as anybody else sees only that they look at their start. On this
 * way it is also found how long the chains of calls are. */
#include "emit/reach.h"

/* A value that a loop counts with, in its body. */
typedef struct Counter {
    const Inst *loop;
    LoopTest test;
} Counter;

typedef struct Estimate {
    Reached *reached;
    ReachedFunc *of;
    Map counters; /* Val -> Counter, of the loops around */
    int terms;    /* that may still be looked at */
} Estimate;

static int64_t limited(int64_t work) { return work < MUCH_WORK ? work : MUCH_WORK; }

/* Both are at most MUCH_WORK + 1. */
static int64_t times(int64_t work, int64_t count) { return limited(work * count); }

/* ---- loops that count */

typedef struct Jumps {
    Arena *arena;
    const Inst *loop;
    InstVec list;
} Jumps;

static void note_jump(void *user, Inst *inst) {
    Jumps *jumps = user;
    if (inst->op == OP_continue && inst->target == jumps->loop) vec_push(jumps->arena, &jumps->list, inst);
}

/* What a loop counts with. */
typedef struct Counting {
    LoopTest test;
    int64_t step;
    bool alone; /* nothing else is tested, or done, before a round */
} Counting;

/* Every round moves the counter on by as much. In normal form a round in which the loop is left may not: no
 * other comes after it. */
static bool find_step(Estimate *estimate, const Inst *loop, const LoopTest *test, int64_t *step) {
    Jumps jumps = {.arena = estimate->reached->arena, .loop = loop};
    region_walk(loop->regions[1], note_jump, &jumps);
    LoopSteps steps = loop_steps(loop, jumps.list.at, jumps.list.count, test->index);
    bool is_normal = jumps.list.count == 0 && loop->nregions == 2 && loop->regions[1]->last->op == OP_yield;
    bool found = (steps.known && steps.least == steps.greatest) ||
                 (is_normal && loop_step(loop, test->index, &steps.least));
    *step = steps.least;
    return found && *step != 0 && (*step > 0) == test->up && *step > -MUCH_WORK && *step < MUCH_WORK;
}

/* A comparison and whatever it needs to know its limit; other conditions may stand beside it. */
static bool find_counting(Estimate *estimate, const Inst *loop, const Val *condition, Counting *counting) {
    if (condition->kind != VAL_inst || condition->inst->op == OP_ne) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and) {
        bool found = find_counting(estimate, loop, ir_resolve(inst->args[0]), counting) ||
                     find_counting(estimate, loop, ir_resolve(inst->args[1]), counting);
        counting->alone = false;
        return found;
    }
    counting->alone = true;
    LoopTest *test = &counting->test;
    return loop_comparison(loop, inst, test) && loop_has_fixed(loop, test->limit) &&
           find_step(estimate, loop, test, &counting->step);
}

/* It tests something, and that is all. */
static bool only_tests(const Region *condition) {
    for (const Inst *inst = condition->first; inst != condition->last; inst = inst->next)
        if (!op_has(inst->op, OP_PURE) && inst->op != OP_load) return false;
    return true;
}

static bool loop_counts(Estimate *estimate, const Inst *loop, Counting *counting) {
    const Inst *end = loop->regions[0]->last;
    bool counts =
        end && end->op == OP_yield && find_counting(estimate, loop, ir_resolve(end->args[0]), counting);
    counting->alone &= only_tests(loop->regions[0]);
    return counts;
}

/* ---- bounds of numbers: constants, counters of loops around, and sums of such, so small that none wraps around */

typedef struct Bounds {
    int64_t low, high;
} Bounds;

/* What a counter is compared with is known, and then also its own bounds. */
static void note_counter(Estimate *estimate, const Inst *loop, const LoopTest *test) {
    Counter *counter = arena_new(estimate->reached->arena, Counter);
    *counter = (Counter){loop, *test};
    map_put(estimate->reached->arena, &estimate->counters, PTR_KEY(loop->regions[1]->params[test->index]),
            counter);
}

static bool find_bounds(Estimate *estimate, const Val *v, Bounds *bounds);

static bool find_operand(Estimate *estimate, const Inst *inst, int index, Bounds *bounds) {
    return find_bounds(estimate, ir_resolve(inst->args[index]), bounds);
}

/* In the body the test holds: where it counts up, the first value is the least, the greatest is below the
 * limit. */
static bool counter_bounds(Estimate *estimate, const Counter *counter, Bounds *bounds) {
    const LoopTest *test = &counter->test;
    Bounds first, limit;
    if (!find_operand(estimate, counter->loop, test->index, &first)) return false;
    if (!find_bounds(estimate, test->limit, &limit)) return false;
    int64_t within = test->or_equal ? 0 : 1;
    *bounds = test->up ? (Bounds){first.low, limit.high - within} : (Bounds){limit.low + within, first.high};
    return true;
}

static bool inst_bounds(Estimate *estimate, const Inst *inst, Bounds *bounds) {
    Bounds a, b;
    bool is_choice = inst->op == OP_select;
    if (inst->op == OP_convert) return find_operand(estimate, inst, 0, bounds);
    if (inst->op != OP_add && inst->op != OP_sub && !is_choice) return false;
    if (!find_operand(estimate, inst, is_choice, &a) || !find_operand(estimate, inst, is_choice + 1, &b))
        return false;
    if (is_choice) *bounds = (Bounds){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    else if (inst->op == OP_add) *bounds = (Bounds){a.low + b.low, a.high + b.high};
    else *bounds = (Bounds){a.low - b.high, a.high - b.low};
    return true;
}

static bool find_bounds(Estimate *estimate, const Val *v, Bounds *bounds) {
    if (!type_is_integer(v->type) || type_bits(v->type) < 32 || --estimate->terms < 0) return false;
    const Counter *counter = map_get(&estimate->counters, PTR_KEY(v));
    bool found = counter               ? counter_bounds(estimate, counter, bounds)
                 : v->kind == VAL_inst ? inst_bounds(estimate, v->inst, bounds)
                                       : val_is_int(v, &bounds->low);
    if (found && val_is_const(v)) bounds->high = bounds->low;
    int64_t least = type_is_signed(v->type) ? -MUCH_WORK : 0;
    return found && bounds->low >= least && bounds->high <= MUCH_WORK;
}

/* How often the loop repeats its body at most; MUCH_WORK: that often, or not known. */
static int64_t most_rounds(Estimate *estimate, const Inst *loop, const LoopTest *test, int64_t step) {
    Bounds first, limit;
    estimate->terms = 64;
    if (!find_operand(estimate, loop, test->index, &first)) return MUCH_WORK;
    if (!find_bounds(estimate, test->limit, &limit)) return MUCH_WORK;
    int64_t distance = test->up ? limit.high - first.low : first.high - limit.low;
    return distance < 0 ? 1 : limited(distance / (step < 0 ? -step : step) + 1);
}

/* ---- instructions */

static int64_t work_of_region(Estimate *estimate, const Region *region);

static int64_t work_of_regions(Estimate *estimate, const Inst *inst) {
    int64_t work = 1;
    for (int i = 0; i < inst->nregions; i++)
        work = limited(work + work_of_region(estimate, inst->regions[i]));
    return work;
}

static void set_looks(Estimate *estimate, const Inst *loop, int64_t rounds, int64_t step) {
    LoopLooks *looks = arena_new(estimate->reached->arena, LoopLooks);
    *looks = (LoopLooks){.rounds = rounds, .step = step};
    map_put(estimate->reached->arena, &estimate->reached->looks, PTR_KEY(loop), looks);
    estimate->of->needs |= NEEDS_STOP;
}

/* Between two looks of a loop that counts by `stride`. A loop with little in it is worth being kept free of
 * anything else. What it counts through in these rounds must be a number of its type. */
static int64_t rounds_of_part(const LoopTest *test, int64_t stride, int64_t body) {
    const int64_t some = 32;
    int64_t rounds = body <= SOME_WORK / some ? SOME_WORK / body : MUCH_WORK / body;
    if (body > SOME_WORK / some && rounds > some) rounds = some;
    int bits = type_bits(test->limit->type);
    int64_t most = (((int64_t)1 << ((bits < 32 ? bits : 32) - 1)) - 1) / stride;
    return rounds < most ? rounds : most;
}

/* A loop that does not count. Of a few instructions a look would be a large part. */
static int64_t rounds_in_a_row(int64_t body) {
    const int64_t few = 64, most = 8;
    return body > few ? 1 : body * most > few ? few / body : most;
}

typedef struct Uses {
    const Val *of;
    int count;
} Uses;

static void count_use(void *user, Inst *inst) {
    Uses *uses = user;
    for (int i = 0; i < inst->nargs; i++) uses->count += inst_operand(inst, i) == uses->of;
}

/* A round computes a number from the one before, other than a sum of which nothing else is made. */
static bool is_waited_for(const Inst *loop, int index) {
    Region *body = loop->regions[1];
    const Val *given = body->params[index], *next = inst_operand(body->last, index);
    if (!type_is_float(type_element(given->type)) || next == given) return false;
    Uses uses = {.of = given};
    region_walk(body, count_use, &uses);
    return loop_term(loop, index) < 0 ? uses.count > 0 : uses.count > 1;
}

/* Without what a round may leave out. */
static int64_t sure_work(const Region *body) {
    int64_t work = 0;
    for (const Inst *inst = body->first; inst; inst = inst->next)
        if (inst->nregions == 0) work += 1 + op_info[inst->op].cost;
    return work;
}

/* Then no vectors are made of rounds, and one that does much may as well look: a loop inside a loop takes
 * longer to compile. */
static bool rounds_wait(const Inst *loop) {
    enum { MUCH = 176, MOST_ASKED = 64 };
    const Region *body = loop->regions[1];
    bool waits = false;
    if (loop->nregions != 2 || body->last->op != OP_yield || sure_work(body) < MUCH) return false;
    for (int i = 0; i < body->nparams && i < MOST_ASKED && !waits; i++) waits = is_waited_for(loop, i);
    return waits;
}

static int64_t work_of_loop(Estimate *estimate, const Inst *loop) {
    Counting counting = {0};
    bool counts = loop_counts(estimate, loop, &counting);
    int64_t stride = !counts ? 0 : counting.step < 0 ? -counting.step : counting.step;
    bool ends = counts && loop_cannot_wrap(&counting.test, stride);
    if (ends) note_counter(estimate, loop, &counting.test);
    int64_t body = work_of_regions(estimate, loop);
    int64_t rounds = ends ? most_rounds(estimate, loop, &counting.test, counting.step) : MUCH_WORK;
    if (times(body, rounds) < MUCH_WORK) return times(body, rounds);
    bool in_parts = counts && counting.alone && !rounds_wait(loop);
    rounds = in_parts ? rounds_of_part(&counting.test, stride, body) : 1;
    if (rounds > 1) {
        set_looks(estimate, loop, rounds, counting.step);
    } else {
        rounds = rounds_in_a_row(body);
        set_looks(estimate, loop, rounds, 0);
    }
    return times(body, rounds);
}

static int64_t work_on_object(const Type *type) {
    return limited(1 + type_layout(type, LAYOUT_scalar).size / 16);
}

static int64_t work_of_inst(Estimate *estimate, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_call: return reached_func(estimate->reached, inst->callee)->work;
    case OP_loop: return work_of_loop(estimate, inst);
    case OP_var: return work_on_object(inst->type);
    case OP_copy:
    case OP_zero: return work_on_object(inst->args[0]->type->args[0]);
    default: return inst->nregions > 0 ? work_of_regions(estimate, inst) : 1 + op_info[inst->op].cost;
    }
}

static int64_t work_of_region(Estimate *estimate, const Region *region) {
    int64_t work = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next)
        work = limited(work + work_of_inst(estimate, inst));
    return work;
}

/* ---- functions */

static void estimate_func(Reached *reached, ReachedFunc *info) {
    Estimate estimate = {.reached = reached, .of = info};
    info->work = limited(1 + work_of_region(&estimate, info->func->body));
    if (!info->is_cyclic && info->work < MUCH_WORK) return;
    info->looks = true;
    info->needs |= NEEDS_STOP;
}

/* Frames of short chains fit on any stack. Of a long one every sixteenth function tests whether there is room
 * for the next. */
static void find_height(ReachedFunc *info) {
    const int is_short = 200, between = 16;
    for (int i = 0; i < info->callees.count; i++)
        if (info->callees.at[i]->height >= info->height) info->height = info->callees.at[i]->height + 1;
    if (info->height > is_short && info->height % between == 0) reach_on_stack(info);
}

void reach_work(Reached *reached) {
    VEC(ReachedFunc *) ready = {0};
    for (int i = 0; i < reached->funcs.count; i++) {
        ReachedFunc *info = reached->funcs.at[i];
        info->work = MUCH_WORK;
        info->open_callees = 0;
        for (int k = 0; k < info->callees.count; k++) info->open_callees += !info->callees.at[k]->is_cyclic;
        if (!info->is_cyclic && info->open_callees == 0) vec_push(reached->arena, &ready, info);
    }
    for (int i = 0; i < ready.count; i++) {
        ReachedFunc *info = ready.at[i];
        estimate_func(reached, info);
        find_height(info);
        for (int k = 0; k < info->callers.count; k++)
            if (--info->callers.at[k]->open_callees == 0 && !info->callers.at[k]->is_cyclic)
                vec_push(reached->arena, &ready, info->callers.at[k]);
    }
    for (int i = 0; i < reached->funcs.count; i++)
        if (reached->funcs.at[i]->is_cyclic) estimate_func(reached, reached->funcs.at[i]);
}
