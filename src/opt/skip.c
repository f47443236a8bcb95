/* Sums in buffers of what an `if` chooses are a part of it, where the other way adds zeros.
 *
 *     left = 9;                                          left = 9;
 *     while (0 < left) {                                 while (0 < left) {
 *         if (a < b) { g = 0; } else { g = ..; d = ..; }     if (a < b) {} else { g = ..; d = ..; dx[i] += g; }
 *         dx[i] += g;
 *
 * A function reads an element before it decides what to do with it, so that its reverse adds to the
 * derivative after the `if`. Where most rounds add nothing, that is most of what they do.
 *
 * A loop that could be vectors stays as it is: vectors choose between numbers, not between writing and not.
 * So the `if` decides what the next round is given, other than by a sum. The sign of a zero that derivatives
 * add up to means nothing, which is why it must be one of those. */
#include "opt.h"

enum { MOST_BEHIND = 256 }; /* instructions behind an `if` that are looked at */

typedef struct Skip {
    int *uses; /* by Val.id */
    bool changed;
} Skip;

static bool is_of_derivative(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_scale || inst->op == OP_ratio || inst_has(inst, INST_FREE);
}

/* Does a way hand on something else than the number that the round was given, and what it adds to that? */
static bool computes_anew(const Inst *choice, int result, const Val *given) {
    for (int i = 0; i < choice->nregions; i++) {
        const Val *v = inst_operand(choice->regions[i]->last, result);
        const Inst *sum = v->kind == VAL_inst && v->inst->op == OP_add ? v->inst : NULL;
        bool adds = sum && (inst_operand(sum, 0) == given || inst_operand(sum, 1) == given);
        if (v != given && !adds) return true;
    }
    return false;
}

/* Do rounds of the loop wait for what it chooses? */
static bool decides_next(const Inst *choice) {
    const Region *body = choice->parent;
    const Inst *loop = body->owner, *yield = body->last;
    if (!loop || loop->op != OP_loop || body != loop->regions[1] || yield->op != OP_yield) return false;
    for (int i = 0; i < yield->nargs; i++) {
        const Val *next = inst_operand(yield, i), *given = body->params[i];
        bool is_chosen = next->kind == VAL_inst && next->inst == choice && type_is_float(next->type);
        if (is_chosen && computes_anew(choice, next->index, given)) return true;
    }
    return false;
}

static bool is_choice(const Inst *inst) {
    if (inst->op != OP_if || inst->nresults == 0) return false;
    for (int i = 0; i < inst->nregions; i++)
        if (inst->regions[i]->last->op != OP_yield) return false;
    return decides_next(inst) && inst_find(inst, is_of_derivative, NULL);
}

/* The way on which the sum is not of a zero, if there is one on which it is; else NULL. */
static Region *way_of(const Skip *s, const Inst *choice, const Inst *sum) {
    const Val *term = inst_operand(sum, 1);
    if (term->kind != VAL_inst || term->inst != choice || s->uses[term->id] != 1) return NULL;
    for (int i = 0; i < 2; i++)
        if (val_is_zero(inst_operand(choice->regions[1 - i]->last, term->index))) return choice->regions[i];
    return NULL;
}

/* Is it there before the `if`? All from that to `until` may not be. */
static bool is_before(const Inst *choice, const Inst *until, const Val *v) {
    for (const Inst *at = choice; at != until; at = at->next)
        if (v->kind == VAL_inst && v->inst == at) return false;
    return true;
}

static bool can_be_before(const Inst *choice, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (!is_before(choice, inst, inst_operand(inst, i))) return false;
    return true;
}

static void move_before(Inst *at, Inst *inst) {
    inst_remove(inst);
    inst_insert_before(at, inst);
}

/* Sums, and addresses for them, up to what might see that a sum is made sooner. */
static void visit_choice(Skip *s, Inst *choice) {
    Inst *inst = choice->next;
    for (int left = MOST_BEHIND; left > 0; left--) {
        Inst *next = inst->next;
        bool is_sum = opt_is_sum(s->uses, inst);
        if (!is_sum && !op_has(inst->op, OP_PURE)) return;
        Region *way =
            is_sum && is_before(choice, inst, inst_operand(inst, 0)) ? way_of(s, choice, inst) : NULL;
        if (way) {
            inst->args[1] = inst_operand(way->last, inst_operand(inst, 1)->index);
            move_before(way->last, inst);
            s->changed = true;
        } else if (!is_sum && can_be_before(choice, inst)) {
            move_before(choice, inst);
            s->changed = true;
        }
        inst = next;
    }
}

static void visit_region(Skip *s, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nregions; i++) visit_region(s, inst->regions[i]);
        if (is_choice(inst)) visit_choice(s, inst);
    }
}

bool opt_skip(Func *func) {
    if (!func->body || func->module->many_threads) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Skip s = {.uses = region_count_uses(scratch, func->body)};
    visit_region(&s, func->body);
    arena_free(scratch);
    return s.changed;
}
