/* Among many branches, a number is computed where it is first needed.
 *
 *     c = y < 1; d = z < 2; ... if (e) { ... } ... if (d) { ... } if (c) { ... }
 *         becomes   ... e = ...; if (e) { ... } ... d = z < 2; if (d) { ... } c = y < 1; if (c) { ... }
 *
 * The reverse of a function computes again at its beginning, in the order of the primal, what it needs, and
 * uses it in the opposite order: a thousand conditions were there from the first to the last branch. Giving
 * out registers to numbers that live through many blocks takes time that grows with their product, and ends
 * on the stack; so does the search for vectors among a thousand comparisons. So what is computed long before
 * its first use goes there, with what is computed for it alone, unless more numbers would then have to wait
 * than before. */
#include "opt.h"

enum { MOST_ALONG = 16 }; /* instructions that go with one */

typedef struct Sink {
    uint32_t known;    /* of a Val.id below that something is known */
    int *uses;         /* by Val.id */
    int *first, *last; /* by Val.id: numbers of what uses it, in the region at work, counted from its end */
    const Region **where; /* by Val.id: ... if it is this one */
    bool *goes_along;     /* by Val.id: with what it is computed for */
    bool *comes_later;    /* by Val.id: in the region at work, than what is looked at, or from it */
    /* of the region at work */
    const Region *region;
    Inst **insts;  /* by number */
    Inst **at;     /* by number: the same, or what was put before it */
    int *branches; /* by number: from there on */
    int count, branched;
    int tape_changes; /* the number of what does so next */
    bool changed;
} Sink;

/* Or is it a constant, or was it made meanwhile? */
static bool is_known(const Sink *s, const Val *v) { return !val_is_const(v) && v->id < s->known; }

/* ---- what uses what */

typedef struct User {
    Sink *sink;
    int number;
    bool changes_tapes;
} User;

static void note(void *user, Inst *inst) {
    User *u = user;
    Sink *s = u->sink;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (!is_known(s, v)) continue;
        bool is_new = s->where[v->id] != s->region;
        s->where[v->id] = s->region;
        if (is_new || s->first[v->id] < u->number) s->first[v->id] = u->number;
        if (is_new || s->last[v->id] > u->number) s->last[v->id] = u->number;
    }
    bool is_tape = op_has(inst->op, OP_TAPE | OP_EFFECT) && inst->op != OP_tape_load;
    u->changes_tapes |= is_tape || (inst->op == OP_call && !(inst->callee->flags & FUNC_PURE));
}

static void note_all(Sink *s, Inst *inst, int number) {
    User user = {s, number, false};
    note(&user, inst);
    inst_walk(inst, note, &user);
    if (user.changes_tapes) s->tape_changes = number;
}

/* ---- what goes where */

static bool may_go(const Sink *s, const Inst *inst, int number) {
    if (inst->parent != s->region || inst->nresults != 1 || !type_is_scalar(inst->results[0]->type))
        return false;
    if (inst->op == OP_tape_load) return number >= s->tape_changes;
    return op_has(inst->op, OP_PURE) && !op_has(inst->op, OP_REGIONS | OP_CALLS);
}

static bool is_needed_longer(const Sink *s, const Val *v, int number) {
    const Region *home = v->kind == VAL_param ? v->region : v->inst->parent;
    if (home != s->region || (v->kind == VAL_param && !home->owner)) return false;
    return !is_known(s, v) || s->where[v->id] != s->region || s->last[v->id] > number;
}

/* Numbers that would have to wait; `most`: instructions that may go along. */
static int count_waiting(const Sink *s, const Inst *inst, int number, int *most) {
    int waiting = 0;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (val_is_const(v)) continue;
        bool is_own =
            is_known(s, v) && v->kind == VAL_inst && s->uses[v->id] == 1 && may_go(s, v->inst, number);
        if (is_own && --*most >= 0) {
            s->goes_along[v->id] = true;
            waiting += count_waiting(s, v->inst, number, most);
        } else {
            waiting += is_needed_longer(s, v, number);
        }
    }
    return waiting;
}

static void stay(const Sink *s, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (!is_known(s, v) || !s->goes_along[v->id]) continue;
        s->goes_along[v->id] = false;
        stay(s, v->inst);
    }
}

/* The number of the instruction that it goes before; 0: it stays. */
static int place_of(const Sink *s, const Inst *inst) {
    const Val *v = inst->nresults == 1 ? inst->results[0] : NULL;
    if (!v || !is_known(s, v) || s->where[v->id] != s->region) return 0;
    int number = s->first[v->id], most = MOST_ALONG;
    if (!may_go(s, inst, number)) return 0;
    if (s->goes_along[v->id]) return number;
    if (s->branched == s->branches[number]) return 0;
    if (count_waiting(s, inst, number, &most) <= 1) return number;
    stay(s, inst);
    return 0;
}

/* ---- sums */

/* The instruction that adds the number, and nothing else uses it, to one that is there before the `if` at
 * work; NULL: there is none. */
static Inst *sum_behind(const Sink *s, const Val *chosen) {
    if (s->where[chosen->id] != s->region || s->uses[chosen->id] != 1) return NULL;
    Inst *sum = s->insts[s->first[chosen->id]];
    if (sum->op != OP_add || !inst_has(sum, INST_FREE)) return NULL;
    bool is_first = inst_operand(sum, 0) == chosen;
    if (!is_first && inst_operand(sum, 1) != chosen) return NULL; /* it goes before this one, to another */
    const Val *other = inst_operand(sum, is_first);
    return is_known(s, other) && !s->comes_later[other->id] ? sum : NULL;
}

/* a + (c ? x : 0) is c ? a + x : a. */
static void add_within(Sink *s, Inst *choice, Val *chosen, Inst *sum) {
    Val *other = inst_operand(sum, inst_operand(sum, 0) == chosen);
    for (int i = 0; i < choice->nregions; i++) {
        Inst *yield = choice->regions[i]->last;
        Val *term = inst_operand(yield, chosen->index), *whole = other;
        if (!val_is_zero(term)) {
            Builder b = build_before(yield);
            b.loc = sum->loc;
            whole = build_binary(&b, OP_add, other, term);
            if (whole->kind == VAL_inst) whole->inst->flags |= INST_FREE;
        }
        yield->args[chosen->index] = whole;
    }
    s->uses[other->id] += choice->nregions - 1;
    Val *all = sum->results[0];
    s->uses[chosen->id] = s->uses[all->id];
    s->where[chosen->id] = s->where[all->id];
    s->first[chosen->id] = s->first[all->id];
    s->last[chosen->id] = s->last[all->id];
    all->forward = chosen;
    inst_remove(sum);
    s->changed = true;
}

/* What is added behind an `if` is added in it: LLVM would make one sum of all, behind the last branch, for
 * which every term has to wait. */
static void take_sums(Sink *s, Inst *choice) {
    if (choice->op != OP_if || choice->nregions != 2) return;
    for (int i = 0; i < choice->nregions; i++)
        if (choice->regions[i]->last->op != OP_yield) return;
    for (int i = 0; i < choice->nresults; i++) {
        Val *chosen = choice->results[i];
        for (Inst *sum = sum_behind(s, chosen); sum; sum = sum_behind(s, chosen))
            add_within(s, choice, chosen, sum);
    }
}

/* ---- the entry */

static void sink_in(Sink *s, Region *region, int size, Arena *scratch) {
    s->region = region;
    s->at = arena_array(scratch, Inst *, size + 1);
    s->insts = arena_array(scratch, Inst *, size + 1);
    s->branches = arena_array(scratch, int, size + 1);
    s->count = s->branched = s->tape_changes = 0;
    for (Inst *inst = region->last, *prev; inst; inst = prev) {
        prev = inst->prev;
        for (int i = 0; i < inst->nresults; i++)
            if (is_known(s, inst->results[i])) s->comes_later[inst->results[i]->id] = true;
        int number = place_of(s, inst);
        if (number) {
            inst_remove(inst);
            inst_insert_before(s->at[number], inst);
            s->changed = true;
        } else {
            take_sums(s, inst);
            number = ++s->count;
            s->insts[number] = inst;
            s->branched += inst->nregions > 0;
            s->branches[number] = s->branched;
        }
        s->at[number] = inst;
        note_all(s, inst, number);
    }
}

static void visit_region(Sink *s, Region *region, int many, Arena *scratch) {
    int size = 0, branches = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next, size++) branches += inst->nregions > 0;
    if (branches >= many) sink_in(s, region, size, scratch);
    for (Inst *inst = region->first; inst; inst = inst->next)
        for (int i = 0; i < inst->nregions; i++) visit_region(s, inst->regions[i], many, scratch);
}

bool opt_sink(Func *func, int many) {
    if (!func->body) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Sink s = {.known = func->nvals,
              .uses = region_count_uses(scratch, func->body),
              .first = arena_array(scratch, int, func->nvals + 1),
              .last = arena_array(scratch, int, func->nvals + 1),
              .where = arena_array(scratch, const Region *, func->nvals + 1),
              .comes_later = arena_array(scratch, bool, func->nvals + 1),
              .goes_along = arena_array(scratch, bool, func->nvals + 1)};
    visit_region(&s, func->body, many, scratch);
    if (s.changed) ir_resolve_func(func);
    arena_free(scratch);
    return s.changed;
}
