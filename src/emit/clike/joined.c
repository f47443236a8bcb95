/* Results of statements that need no variable of their own.
 *
 *     %y.2 = if %c { %1 = add %y.1, %x  yield %1 } else { yield %y.1 }          if (c) y += x;
 *     yield %y.2
 *
 * What an `if` or `switch` results in is mostly handed on, by what is around it, to a variable that a loop
 * carries. Then it is assigned to that variable in the first place, unless somebody still wants to read what
 * the variable has held so far: every use of that must be inside the statement, in another branch, or before
 * it and already written down. */
#include "emit/clike/clike.h"

enum { MOST_STEPS = 400, DEPTH = 12 };

static const Inst *ancestor_in(const Inst *inst, const Region *region) {
    while (inst && inst->parent != region) inst = inst->parent ? inst->parent->owner : NULL;
    return inst;
}

static bool comes_before(const Inst *first, const Inst *second) {
    int steps = 0;
    for (const Inst *inst = first; inst && steps < MOST_STEPS; inst = inst->next, steps++)
        if (inst == second) return first != second;
    return false;
}

/* Is nothing of it left to be said once `here` begins? What is used once is said by its user (value.c), maybe
 * a condition in a condition as well (stmt.c). */
static bool is_said(const Printer *p, const Inst *inst, const Inst *here, int depth) {
    if (inst->nresults != 1) return true;
    const Val *v = inst->results[0];
    if (inst->nregions && (inst->op != OP_if || v->type->kind != TYPE_bool)) return true;
    if (v->type->kind == TYPE_pointer || depth == 0) return false;
    const Inst *user = p->at->user[v->id];
    if (p->at->uses[v->id] != 1 || user->parent != inst->parent || user == here) return true;
    return comes_before(user, here) && is_said(p, user, here, depth - 1);
}

/* Can this use of what a variable has held so far not come after the statement? */
static bool is_over(const Printer *p, const Inst *use, const Inst *statement) {
    for (const Inst *here = statement; here; here = here->parent->owner) {
        const Inst *there = ancestor_in(use, here->parent);
        if (!there) continue;
        if (there == here) return here == statement || here->op == OP_if || here->op == OP_switch;
        return comes_before(there, here) && is_said(p, there, here, DEPTH);
    }
    return false;
}

static bool is_free(const Printer *p, const Val *held, const Inst *statement) {
    const FuncState *at = p->at;
    for (int i = at->first_use[held->id]; i < at->first_use[held->id + 1]; i++)
        if (!is_over(p, at->all_uses[i], statement)) return false;
    return true;
}

const Value *clike_joined(Printer *p, const Inst *statement, int index, const Val **held) {
    const FuncState *at = p->at;
    const Val *v = statement->results[index];
    const Frame *frame = at->frame;
    const Inst *yield = statement->parent->last;
    if (!frame || !frame->results || frame->condition || at->crosses || v->type->kind == TYPE_pointer)
        return NULL;
    if (at->uses[v->id] != 1 || yield->op != OP_yield || at->user[v->id] != yield) return NULL;
    int to = 0;
    while (ir_resolve(yield->args[to]) != v) to++;
    if (!frame->results[to].text) return NULL;
    *held = frame->held ? frame->held[to] : NULL;
    return !*held || is_free(p, *held, statement) ? &frame->results[to] : NULL;
}

/* ---- uses, in order of values */

static void note_uses(void *user, Inst *inst) {
    FuncState *at = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        if (!val_is_const(v)) at->all_uses[at->first_use[v->id + 1]++] = inst;
    }
}

void clike_find_uses(Printer *p) {
    FuncState *at = p->at;
    int count = (int)at->func->nvals, all = 0;
    at->first_use = arena_array(&p->arena, int, count + 2);
    for (int i = 0; i < count; i++) {
        at->first_use[i + 1] = all; /* where the next of them goes, until all are there */
        all += at->uses[i];
    }
    at->all_uses = arena_array(&p->arena, const Inst *, all + 1);
    region_walk(at->func->body, note_uses, at);
}
