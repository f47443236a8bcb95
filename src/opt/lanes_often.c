/* How often is something done, at most? (About so: of what is done once in a number of rounds, the number
 * counts.) If it is known over how many groups kernels are dispatched, and how many rounds the loops have
 * that lead to it, then so is whether there is enough to do to make up for the time to compile more.
 *
 *     void main() { for (int i = 0; i < 600; i++) step(); }              f, which step calls in a loop of 10 rounds: 6000 times
 */
#include "opt/lanes.h"

#include <math.h>

typedef VEC(const Inst *) Calls;

struct Often {
    Arena *scratch;
    int groups;
    Map calls; /* Func -> Calls of it */
    Map known; /* Func -> double; while it is being found out: anything */
};

static void note_call(void *user, Inst *inst) {
    Often *often = user;
    if (inst->op != OP_call) return;
    Calls *calls = map_get(&often->calls, PTR_KEY(inst->callee));
    if (!calls) calls = arena_new(often->scratch, Calls);
    vec_push(often->scratch, calls, inst);
    map_put(often->scratch, &often->calls, PTR_KEY(inst->callee), calls);
}

Often *lanes_often(Arena *scratch, Func *const *funcs, int count, const LaneOptions *options) {
    Often *often = arena_new(scratch, Often);
    *often = (Often){.scratch = scratch, .groups = options->groups};
    for (int i = 0; i < count; i++) region_walk(funcs[i]->body, note_call, often);
    return often;
}

/* ---- how many rounds, where the function is given where to begin and where to end: some of another loop's (autodiff/round.c) */

/* `a` less `b`, at most. Of `a < c ? a : c` the lesser counts. */
static double difference_at_most(const Val *a, const Val *b) {
    int64_t x, y;
    a = ir_resolve((Val *)a), b = ir_resolve((Val *)b);
    if (val_is_int(a, &x) && val_is_int(b, &y)) return (double)x - (double)y;
    if (a->kind != VAL_inst) return INFINITY;
    const Inst *inst = a->inst;
    if (inst->op == OP_add && inst_operand(inst, 0) == b && val_is_int(inst_operand(inst, 1), &x))
        return (double)x;
    const Val *asked = inst->op == OP_select ? inst_operand(inst, 0) : NULL;
    bool is_lesser = asked && asked->kind == VAL_inst && asked->inst->op == OP_lt &&
                     inst_operand(asked->inst, 0) == inst_operand(inst, 1) &&
                     inst_operand(asked->inst, 1) == inst_operand(inst, 2);
    return is_lesser ? fmin(difference_at_most(inst_operand(inst, 1), b),
                            difference_at_most(inst_operand(inst, 2), b))
                     : INFINITY;
}

static bool is_param_of(const Func *func, const Val *v) {
    return v->kind == VAL_param && v->region == func->body;
}

static double value_at_most(const Often *often, const Func *func, const Val *v) {
    int64_t number;
    v = ir_resolve((Val *)v);
    if (val_is_int(v, &number)) return (double)number;
    if (v->kind != VAL_inst) return INFINITY;
    const Inst *inst = v->inst;
    if (inst->op == OP_select)
        return fmax(value_at_most(often, func, inst->args[1]), value_at_most(often, func, inst->args[2]));
    const Val *a = inst->nargs == 2 ? inst_operand(inst, 0) : NULL, *b = a ? inst_operand(inst, 1) : NULL;
    const Calls *calls = map_get(&often->calls, PTR_KEY(func));
    if (inst->op != OP_sub || !is_param_of(func, a) || !is_param_of(func, b) || !calls) return INFINITY;
    double most = 0;
    for (int i = 0; i < calls->count; i++)
        most = fmax(most, difference_at_most(calls->at[i]->args[a->index], calls->at[i]->args[b->index]));
    return most;
}

/* Of a loop that counts from nothing, or to nothing. */
static double rounds_by_calls(const Often *often, const Inst *loop) {
    const Inst *test = loop->regions[0]->last;
    const Val *condition = test && test->op == OP_yield ? inst_operand(test, 0) : NULL;
    LoopTest found;
    int64_t from, step;
    if (!condition || condition->kind != VAL_inst || !loop_comparison(loop, condition->inst, &found) ||
        !loop_step(loop, found.index, &step) || step == 0)
        return INFINITY;
    const Val *start = inst_operand(loop, found.index), *first = found.up ? start : found.limit;
    bool is_from_nothing = val_is_int(first, &from) && from >= 0;
    return is_from_nothing ? value_at_most(often, loop->func, found.up ? found.limit : start) : INFINITY;
}

static double rounds_at_most(const Often *often, const Inst *loop) {
    int64_t trips = loop_most_trips(loop);
    return trips == INT64_MAX ? rounds_by_calls(often, loop) : (double)trips + 1; /* it asks once more */
}

/* ---- how often */

/* `if (i % 100 == 0)`: once in a hundred times. */
static double share_of_branch(const Region *branch) {
    const Inst *choice = branch->owner;
    int64_t divisor = 1;
    if (choice->op != OP_if || branch != choice->regions[0]) return 1;
    const Val *condition = inst_operand(choice, 0), *rest = NULL;
    if (condition->kind != VAL_inst) return 1;
    if (condition->inst->op == OP_eq) rest = inst_operand(condition->inst, 0);
    bool is_rest = rest && rest->kind == VAL_inst && rest->inst->op == OP_rem &&
                   val_is_const(inst_operand(condition->inst, 1)) &&
                   val_is_int(inst_operand(rest->inst, 1), &divisor);
    return is_rest && divisor > 0 ? 1 / (double)divisor : 1;
}

static double runs_at_most(Often *often, const Func *func);

/* Nobody counts how often others call a function. */
static double times_from_outside(const Often *often, const Func *func) {
    const int *size = func->group_size;
    if (!(func->flags & FUNC_EXPORT)) return 0;
    return often->groups == 0 || size[0] == 0 ? INFINITY
                                              : (double)often->groups * size[0] * size[1] * size[2];
}

static double times_at_most(Often *often, const Inst *inst) {
    double times = runs_at_most(often, inst->func);
    for (const Region *region = inst->parent; region->owner; region = region->owner->parent)
        times *=
            region->owner->op == OP_loop ? rounds_at_most(often, region->owner) : share_of_branch(region);
    return times;
}

static double runs_at_most(Often *often, const Func *func) {
    double *known = map_get(&often->known, PTR_KEY(func));
    if (known) return *known;
    known = arena_new(often->scratch, double);
    *known = INFINITY;
    map_put(often->scratch, &often->known, PTR_KEY(func), known);
    const Calls *calls = map_get(&often->calls, PTR_KEY(func));
    double times = times_from_outside(often, func);
    for (int i = 0; calls && i < calls->count && times < INFINITY; i++)
        times += times_at_most(often, calls->at[i]);
    return *known = times;
}

double lanes_rounds_at_most(Often *often, const Inst *loop) {
    if (often->groups == 0) return INFINITY;
    double times = times_at_most(often, loop), rounds = rounds_at_most(often, loop);
    return times == 0 ? 0 : times * rounds;
}
