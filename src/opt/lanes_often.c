/* How often is something done, at most? (About so: of what is done once in a number of rounds, the number counts.) If it is known over how many groups kernels are dispatched, and how many rounds the loops have that lead to it,
 * then so is whether there is enough to do to make up for the time to compile more.
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

static double rounds_at_most(const Inst *loop) {
    int64_t trips = loop_most_trips(loop);
    return trips == INT64_MAX ? INFINITY : (double)trips + 1; /* it asks once more */
}

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
        times *= region->owner->op == OP_loop ? rounds_at_most(region->owner) : share_of_branch(region);
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
    double times = times_at_most(often, loop), rounds = rounds_at_most(loop);
    return times == 0 ? 0 : times * rounds;
}
