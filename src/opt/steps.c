/* Counters go on in the last round, too.
 *
 *     state = early ? 2 : 0;                         state = early ? 2 : 0;
 *     i = state == 0 ? i + 1 : i                     i = i + 1
 *
 * Where a loop ends early, its counter is kept from going on, which is seen only by who reads it afterwards.
 * If nobody does, the step need not wait for what ends the loop: the next round can begin while that is still
 * being computed. Likewise the flag of a loop that asks behind its rounds.
 *
 * And those that count down to zero begin with what is left, also where that is less than nothing: no round
 * is made then, either.
 *
 *     left = 0 < n ? n : 0; while (0 < left) ...     left = n; while (0 < left) ...
 *
 * Without the choice, LLVM takes loops to be short enough to be written out that it would leave as they
 * are. */
#include "opt.h"

typedef struct Steps {
    const int *uses; /* by Val.id */
    bool changed;
} Steps;

static bool is_sum(const Val *next, const Val *counter) {
    bool adds = next->kind == VAL_inst && (next->inst->op == OP_add || next->inst->op == OP_sub);
    return adds && inst_operand(next->inst, 0) == counter;
}

static bool is_plain(const Val *next, const Val *counter) { return next == counter || is_sum(next, counter); }

/* The step is there already, in every round; NULL: it is made only where the loop goes on. */
static Val *find_step(const Val *next, const Val *counter) {
    bool is_choice = next->kind == VAL_inst && next->inst->op == OP_select;
    for (int i = 1; i <= 2 && is_choice; i++)
        if (is_sum(inst_operand(next->inst, i), counter) && inst_operand(next->inst, 3 - i) == counter)
            return inst_operand(next->inst, i);
    return NULL;
}

/* A flag that is kept as it is where the loop is over: what it is else; NULL: it is something else. */
static Val *find_flag(const Inst *loop, const Val *next, const Val *flag) {
    bool is_choice = next->kind == VAL_inst && next->inst->op == OP_select && flag->type->kind == TYPE_bool;
    for (int i = 1; i <= 2 && is_choice; i++)
        if (inst_operand(next->inst, i) == flag && loop_ends_if(loop, inst_operand(next->inst, 0), i == 1))
            return inst_operand(next->inst, 3 - i);
    return NULL;
}

/* The condition is asked once more after an early exit, with a number that it would not have seen. An `if` in
 * it is that about the exit. */
static bool may_be_asked(const Region *condition) {
    if (condition->last->op != OP_yield) return false;
    const Val *go = inst_operand(condition->last, 0);
    for (const Inst *inst = condition->first; inst != condition->last; inst = inst->next) {
        bool is_guard = inst->op == OP_if && go->kind == VAL_inst && go->inst == inst;
        if (!is_guard && !op_has(inst->op, OP_PURE)) return false;
    }
    return true;
}

/* The n of 0 < n ? n : 0; else NULL */
static Val *find_count(const Val *v) {
    if (v->kind != VAL_inst || v->inst->op != OP_select || !type_is_signed(v->type)) return NULL;
    const Val *asked = inst_operand(v->inst, 0);
    Val *count = inst_operand(v->inst, 1);
    if (asked->kind != VAL_inst || asked->inst->op != OP_lt || !val_is_zero(inst_operand(v->inst, 2)))
        return NULL;
    return val_is_zero(inst_operand(asked->inst, 0)) && inst_operand(asked->inst, 1) == count ? count : NULL;
}

static void start_below(Steps *s, Inst *loop) {
    const Region *condition = loop->regions[0];
    const Inst *first = condition->first;
    LoopTest test;
    if (first->next != condition->last || inst_operand(condition->last, 0) != first->results[0]) return;
    if (first->op != OP_lt || !loop_comparison(loop, first, &test) || test.up || !val_is_zero(test.limit))
        return;
    const Val *start = inst_operand(loop, test.index);
    Val *count = find_count(start);
    if (!count || s->uses[start->id] > 1 || s->uses[loop->results[test.index]->id]) return;
    loop->args[test.index] = count;
    s->changed = true;
}

static void look_at(void *user, Inst *loop) {
    Steps *s = user;
    if (loop->op != OP_loop || loop->nregions != 2 || loop->regions[1]->last->op != OP_yield) return;
    if (!may_be_asked(loop->regions[0])) return;
    start_below(s, loop);
    Inst *yield = loop->regions[1]->last;
    for (int i = 0; i < loop->nargs; i++) {
        Val *counter = loop->regions[1]->params[i], *next = inst_operand(yield, i);
        int64_t step;
        if (s->uses[loop->results[i]->id] || is_plain(next, counter)) continue;
        Builder b = build_before(yield);
        Val *flag = find_flag(loop, next, counter), *made = flag ? flag : find_step(next, counter);
        if (!flag && !loop_step(loop, i, &step)) continue;
        yield->args[i] =
            made ? made
                 : build_binary(&b, OP_add, counter, ir_const_int(loop->func->module, counter->type, step));
        s->changed = true;
    }
}

bool opt_steps(Func *func) {
    if (!func->body) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Steps s = {.uses = region_count_uses(scratch, func->body)};
    region_walk(func->body, look_at, &s);
    arena_free(scratch);
    return s.changed;
}
