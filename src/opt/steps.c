/* Counters go on in the last round, too.
 *
 *     state = early ? 2 : 0;                         state = early ? 2 : 0;
 *     i = state == 0 ? i + 1 : i                     i = i + 1
 *
 * Where a loop ends early, its counter is kept from going on, which is seen only by who reads it afterwards. If nobody does, the step need not wait for what ends
 * the loop: the next round can begin while that is still being computed. */
#include "opt.h"

typedef struct Steps {
    const int *uses; /* by Val.id */
    bool changed;
} Steps;

/* The step is there already, in every round; NULL: it is made only where the loop goes on. */
static Val *find_step(const Val *next) {
    bool is_choice = next->kind == VAL_inst && next->inst->op == OP_select;
    return is_choice ? inst_operand(next->inst, 1) : NULL;
}

static bool is_plain(const Val *next, const Val *counter) {
    bool is_sum = next->kind == VAL_inst && (next->inst->op == OP_add || next->inst->op == OP_sub);
    return next == counter || (is_sum && inst_operand(next->inst, 0) == counter);
}

/* The condition is asked once more after an early exit, with a number that it would not have seen. An `if` in it is that about the exit. */
static bool may_be_asked(const Region *condition) {
    if (condition->last->op != OP_yield) return false;
    const Val *go = inst_operand(condition->last, 0);
    for (const Inst *inst = condition->first; inst != condition->last; inst = inst->next) {
        bool is_guard = inst->op == OP_if && go->kind == VAL_inst && go->inst == inst;
        if (!is_guard && !op_has(inst->op, OP_PURE)) return false;
    }
    return true;
}

static void look_at(void *user, Inst *loop) {
    Steps *s = user;
    if (loop->op != OP_loop || loop->nregions != 2 || loop->regions[1]->last->op != OP_yield) return;
    if (!may_be_asked(loop->regions[0])) return;
    Inst *yield = loop->regions[1]->last;
    for (int i = 0; i < loop->nargs; i++) {
        Val *counter = loop->regions[1]->params[i], *next = inst_operand(yield, i);
        int64_t step;
        if (s->uses[loop->results[i]->id] || is_plain(next, counter) || !loop_step(loop, i, &step)) continue;
        Builder b = build_before(yield);
        Val *made = find_step(next);
        yield->args[i] =
            made && is_plain(made, counter)
                ? made
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
