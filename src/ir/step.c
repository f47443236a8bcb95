/* How far a carried integer moves in a round.
 *
 * A loop that is left early goes on while its state says so, too. Then the counter need not move in the round
 * that changes the state, which is the last: no later round sees it.
 *
 *     while (state == 0 && i < 96) { ... state = found ? 2 : 0; i = state == 0 ? i + 1 : i; }
 *
 * What the two are in the next round is looked at together, way by way. */
#include "ir/ir.h"

/* ---- over all ways */

static const Inst *made_by(const Val *v, Op op) {
    return v->kind == VAL_inst && v->inst->op == op ? v->inst : NULL;
}

/* v as a constant more than param; false: it is something else. */
static bool find_delta(const Val *v, const Val *param, int64_t *delta) {
    const Inst *add = made_by(v, OP_add), *sub = made_by(v, OP_sub);
    *delta = 0;
    if (v == param) return true;
    if (add && inst_operand(add, 0) == param && val_is_int(inst_operand(add, 1), delta)) return true;
    if (add && inst_operand(add, 1) == param && val_is_int(inst_operand(add, 0), delta)) return true;
    if (!sub || inst_operand(sub, 0) != param || !val_is_int(inst_operand(sub, 1), delta)) return false;
    *delta = (int64_t)(0 - (uint64_t)*delta);
    return true;
}

enum { MOST_CHOICES = 8 }; /* that a carried value is chosen by, one in another */

static void add_ways(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth);

static void add_delta(LoopSteps *steps, bool *any, int64_t delta) {
    if (!*any || delta < steps->least) steps->least = delta;
    if (!*any || delta > steps->greatest) steps->greatest = delta;
    *any = true;
}

/* Both sides of a choice; false: it is none. */
static bool add_choice(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth) {
    const Inst *select = made_by(next, OP_select), *branch = made_by(next, OP_if);
    if (depth == 0 || (!select && !branch)) return false;
    for (int i = 0; i < 2; i++) {
        const Inst *end = branch ? branch->regions[i]->last : NULL;
        if (select) add_ways(steps, any, inst_operand(select, i + 1), param, depth - 1);
        else if (end->op == OP_yield) add_ways(steps, any, inst_operand(end, next->index), param, depth - 1);
    }
    return true;
}

static void add_ways(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth) {
    int64_t delta;
    if (find_delta(next, param, &delta)) add_delta(steps, any, delta);
    else if (!add_choice(steps, any, next, param, depth)) steps->known = false, *any = true;
}

static void add_way(LoopSteps *steps, bool *any, Val *next, const Val *param) {
    add_ways(steps, any, ir_resolve(next), param, MOST_CHOICES);
}

LoopSteps loop_steps(const Inst *loop, Inst *const *jumps, int njumps, int index) {
    const Region *body = loop->regions[1];
    LoopSteps steps = {.known = true}, last = {.known = true};
    bool any = false, any_last = false;
    if (body->last->op == OP_yield) add_way(&steps, &any, body->last->args[index], body->params[index]);
    for (int i = 0; i < njumps; i++)
        if (jumps[i]->op == OP_continue) add_way(&steps, &any, jumps[i]->args[index], body->params[index]);
    if (loop->nregions == 2) return steps;
    const Region *step = loop->regions[2];
    if (step->last->op == OP_yield) add_way(&last, &any_last, step->last->args[index], step->params[index]);
    steps.known &= last.known;
    steps.least = (int64_t)((uint64_t)steps.least + (uint64_t)last.least);
    steps.greatest = (int64_t)((uint64_t)steps.greatest + (uint64_t)last.greatest);
    return steps;
}

LoopSteps loop_steps_by(const LoopJumps *jumps, const Inst *loop, int index) {
    const InstVec *found = map_get(&jumps->of, PTR_KEY(loop));
    return loop_steps(loop, found ? found->at : NULL, found ? found->count : 0, index);
}

/* ---- beside a state, in normal form */

enum { MOST_WAYS = 256 };

/* What was found out on the way to here. */
typedef struct Known {
    const Val *condition;
    bool holds;
    const struct Known *before;
} Known;

typedef struct Moving {
    const Inst *loop;
    int counter, state; /* indices of carried values */
    const Val *value;   /* the constant that the state is while the loop goes on */
    LoopSteps steps;
    int ways; /* that may still be looked at */
    bool any;
} Moving;

/* a < b and b <= a, of integers */
static bool are_opposite(const Val *one, const Val *other) {
    if (one->kind != VAL_inst || other->kind != VAL_inst) return false;
    const Inst *less = one->inst->op == OP_lt ? one->inst : other->inst,
               *least = one->inst->op == OP_lt ? other->inst : one->inst;
    return less->op == OP_lt && least->op == OP_le && type_is_integer(inst_operand(less, 0)->type) &&
           val_is_same(inst_operand(less, 0), inst_operand(least, 1)) &&
           val_is_same(inst_operand(less, 1), inst_operand(least, 0));
}

static bool is_known(const Known *known, const Val *condition, bool *holds) {
    for (; known; known = known->before) {
        bool is_opposite = are_opposite(known->condition, condition);
        if (!is_opposite && known->condition != condition) continue;
        *holds = known->holds != is_opposite;
        return true;
    }
    return false;
}

static const Inst *branch_of(const Val *v) { return made_by(v, OP_select) ? v->inst : made_by(v, OP_if); }

/* What a value is if the branch is taken; an operand of `select` likewise. */
static const Val *in_branch(const Val *v, const Inst *branch, int k) {
    if (v->kind != VAL_inst || v->inst != branch) return v;
    if (branch->op == OP_select) return inst_operand(branch, 1 + k);
    const Inst *yield = branch->regions[k]->last;
    return yield->op == OP_yield ? inst_operand(yield, v->index) : NULL;
}

static const Val *chosen(const Known *known, const Val *v) {
    bool holds;
    while (v && branch_of(v) && is_known(known, inst_operand(v->inst, 0), &holds))
        v = in_branch(v, v->inst, holds ? 0 : 1);
    return v;
}

static bool is_equality(const Val *condition, const Val *state, const Val *value) {
    if (condition->kind != VAL_inst || condition->inst->op != OP_eq) return false;
    const Val *a = inst_operand(condition->inst, 0), *b = inst_operand(condition->inst, 1);
    int64_t wanted, found;
    const Val *constant = a == state ? b : b == state ? a : NULL;
    return constant && val_is_int(constant, &found) && val_is_int(value, &wanted) && found == wanted;
}

static bool is_over(const Moving *m, const Known *known, const Val *state) {
    int64_t wanted, found;
    if (val_is_int(state, &found)) return val_is_int(m->value, &wanted) && found != wanted;
    for (; known; known = known->before)
        if (!known->holds && is_equality(known->condition, state, m->value)) return true;
    return false;
}

/* On every way the counter makes a step, or the loop is over. */
static bool moves(Moving *m, const Known *known, const Val *next, const Val *state) {
    int64_t delta;
    next = chosen(known, next);
    state = chosen(known, state);
    if (!next || !state || --m->ways < 0) return false;
    if (is_over(m, known, state)) return true;
    const Inst *branch = branch_of(next) ? branch_of(next) : branch_of(state);
    bool steps = find_delta(next, m->loop->regions[1]->params[m->counter], &delta);
    if (steps && (delta || !branch)) {
        add_delta(&m->steps, &m->any, delta);
        return true;
    }
    bool all = branch;
    for (int k = 0; k < 2 && all; k++) {
        const Known here = {inst_operand(branch, 0), k == 0, known};
        all = moves(m, &here, in_branch(next, branch, k), in_branch(state, branch, k));
    }
    return all;
}

/* Some part of the condition says what the state must be. */
static bool find_state(Moving *m, const Val *condition) {
    const Inst *choice = branch_of(condition), *both = made_by(condition, OP_and),
               *equality = made_by(condition, OP_eq);
    if (both) return find_state(m, inst_operand(both, 0)) || find_state(m, inst_operand(both, 1));
    if (choice) {
        const Val *otherwise = in_branch(condition, choice, 1);
        return otherwise && val_is_zero(otherwise) && find_state(m, inst_operand(choice, 0));
    }
    for (int i = 0; i < 2 && equality; i++) {
        const Val *state = inst_operand(equality, i), *value = inst_operand(equality, 1 - i);
        int64_t number;
        if (state->kind != VAL_param || state->region != m->loop->regions[0] || !val_is_int(value, &number))
            continue;
        m->state = state->index;
        m->value = value;
        return true;
    }
    return false;
}

LoopSteps loop_steps_while_running(const Inst *loop, int index) {
    const Inst *yield = loop->regions[1]->last, *end = loop->regions[0]->last;
    const Val *param = loop->regions[1]->params[index];
    LoopSteps none = {0};
    int64_t delta;
    if (!type_is_integer(param->type) || yield->op != OP_yield) return none;
    if (find_delta(inst_operand(yield, index), param, &delta)) return (LoopSteps){delta, delta, true};
    Moving m = {.loop = loop, .counter = index, .steps = {.known = true}, .ways = MOST_WAYS};
    if (end->op != OP_yield || !find_state(&m, inst_operand(end, 0))) return none;
    bool found = moves(&m, NULL, inst_operand(yield, index), inst_operand(yield, m.state));
    return found && m.any ? m.steps : none;
}

bool loop_ends_if(const Inst *loop, const Val *condition, bool holds) {
    const Inst *yield = loop->regions[1]->last, *end = loop->regions[0]->last;
    const Known known = {condition, holds, NULL};
    Moving m = {.loop = loop};
    if (yield->op != OP_yield || end->op != OP_yield || !find_state(&m, inst_operand(end, 0))) return false;
    const Val *state = chosen(&known, inst_operand(yield, m.state));
    return state && is_over(&m, &known, state);
}

bool loop_step(const Inst *loop, int index, int64_t *step) {
    LoopSteps steps = loop_steps_while_running(loop, index);
    *step = steps.least;
    return steps.known && steps.least == steps.greatest;
}

/* ---- by what is no constant */

int loop_term(const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    const Val *param = body->params[index],
              *next = body->last->op == OP_yield ? inst_operand(body->last, index) : param;
    const Inst *sum = made_by(next, OP_add), *difference = made_by(next, OP_sub);
    if (difference) return inst_operand(difference, 0) == param ? 1 : -1;
    return !sum ? -1 : inst_operand(sum, 0) == param ? 1 : inst_operand(sum, 1) == param ? 0 : -1;
}
