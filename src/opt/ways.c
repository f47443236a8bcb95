/* Ways: a loop that carries derivatives along (autodiff/along.c) goes one way or the other, where elsewhere
 * numbers are chosen.
 *
 *     d = (none ? 0 : x) * (all ? 1 : 0.5);      if (none) d = 0; else if (all) d = x; else d = x * 0.5;
 *
 * Where two share, what one gets the other does not, and both are chosen at once:
 *
 *     if (a < b) d = 0, e = x; else if (b < a) d = x, e = 0; else d = x * 0.5, e = x * 0.5;
 *
 * Such a loop waits for its own number from round to round. A round goes the way of the one before, as a
 * rule: a branch is foreseen, and what follows from it is done while the number is on its way, where a choice
 * waits for its condition and for both sides. LLVM chooses nevertheless, unless it is told that a way is
 * likely: all of these are called that (inst_goes_ways, too).
 *
 * What ends the loop also ends the round. If one way of an `if` gives nothing but constants, the rest of the
 * round is done on either way, and little of it is left on this one.
 *
 *     if (c) { s = 1; } else { s = ..; }  y = y * s;      if (c) {} else { s = ..; y = y * s; }
 *
 * Several items at once choose, and so do the threads of a GPU. */
#include "opt.h"

#include <math.h>

enum { MOST_REST = 400 }; /* instructions of a round that are there twice */

typedef struct Ways {
    Arena *scratch;
    VEC(Inst *) products; /* of shares, in a loop */
    bool changed;
} Ways;

/* ---- shares */

/* A choice between one constant and another value, or a constant as well. */
static const Inst *choice_of(const Val *v, bool (*is_first)(const Val *v)) {
    bool is_choice = v->kind == VAL_inst && v->inst->op == OP_select && type_is_float(v->type);
    return is_choice && is_first(inst_operand(v->inst, 1)) ? v->inst : NULL;
}

static bool is_finite(const Val *v) { return val_is_const(v) && isfinite(v->real); }

/* A part of a number, all of it, or nothing. */
typedef struct Share {
    const Inst *weight, *some; /* NULL: it is none */
} Share;

static Share share_of(const Inst *inst) {
    for (int i = 0; i < 2 && inst->op == OP_mul; i++) {
        Share share = {choice_of(inst_operand(inst, i), val_is_one),
                       choice_of(inst_operand(inst, 1 - i), val_is_zero)};
        if (share.weight && share.some && is_finite(inst_operand(share.weight, 2))) return share;
    }
    return (Share){0};
}

static Val *of(const Share *share) { return inst_operand(share->some, 2); }
static Val *none(const Share *share) { return inst_operand(share->some, 1); }

static Val *part(Builder *b, const Share *share) {
    return build_binary(b, OP_mul, of(share), inst_operand(share->weight, 2));
}

/* a < b and b < a, which are not both true. */
static bool are_opposite(const Val *v, const Val *other) {
    if (v->kind != VAL_inst || v->inst->op != OP_lt || other->kind != VAL_inst || other->inst->op != OP_lt)
        return false;
    return inst_operand(v->inst, 0) == inst_operand(other->inst, 1) &&
           inst_operand(v->inst, 1) == inst_operand(other->inst, 0);
}

/* What is behind it gets the rest of the same number. */
static Inst *find_other(const Inst *inst, const Share *share) {
    const Val *without = inst_operand(share->some, 0), *whole = inst_operand(share->weight, 0);
    if (!are_opposite(without, whole)) return NULL;
    for (Inst *at = inst->next; at; at = at->next) {
        Share other = share_of(at);
        if (other.some && of(&other) == of(share) && inst_operand(other.some, 0) == whole &&
            inst_operand(other.weight, 0) == without)
            return at;
    }
    return NULL;
}

/* `shares`: of one, or of the two that are opposite. */
static Inst *choose(Builder *b, const Share *shares, int count) {
    const Type *types[] = {of(shares)->type, of(shares)->type};
    Inst *outer = build_if(b, inst_operand(shares->some, 0), types, count);
    Builder without = build_at_end(outer->regions[0]), with = build_at_end(outer->regions[1]);
    Inst *inner = build_if(&with, inst_operand(shares->weight, 0), types, count);
    Builder whole = build_at_end(inner->regions[0]), divided = build_at_end(inner->regions[1]);
    outer->flags |= INST_LIKELY;
    inner->flags |= INST_LIKELY;
    build_yield(&without, (Val *[]){none(shares), of(shares)}, count);
    build_yield(&whole, (Val *[]){of(shares), count > 1 ? none(shares + 1) : NULL}, count);
    Val *parts[] = {part(&divided, shares), count > 1 ? part(&divided, shares + 1) : NULL};
    build_yield(&divided, parts, count);
    build_yield(&with, inner->results, count);
    return outer;
}

static void replace(Inst *inst, Val *by) {
    inst->results[0]->forward = by;
    inst_remove(inst);
}

static void choose_shares(Ways *w, Inst *inst) {
    Share shares[2] = {share_of(inst)};
    Inst *other = find_other(inst, shares);
    if (other) shares[1] = share_of(other);
    Builder b = build_before(inst);
    const Inst *choice = choose(&b, shares, other ? 2 : 1);
    if (other) replace(other, choice->results[1]);
    replace(inst, choice->results[0]);
    w->changed = true;
}

static void note_product(void *user, Inst *inst) {
    Ways *w = user;
    if (share_of(inst).some) vec_push(w->scratch, &w->products, inst);
}

/* ---- the rest of the round */

static bool gives_constants(const Region *region) {
    for (int i = 0; i < region->last->nargs; i++)
        if (!val_is_const(inst_operand(region->last, i))) return false;
    return region->first == region->last;
}

static bool ends_with_yields(const Inst *choice) {
    return choice->regions[0]->last->op == OP_yield && choice->regions[1]->last->op == OP_yield;
}

static bool has_constant_way(const Inst *inst) {
    return inst->op == OP_if && inst->nresults > 0 && ends_with_yields(inst) &&
           (gives_constants(inst->regions[0]) || gives_constants(inst->regions[1]));
}

static bool is_on(const Inst *inst, const Val *condition) {
    return inst->op == OP_if && inst_operand(inst, 0) == condition && ends_with_yields(inst);
}

/* The first `if` on the condition of the last one with such a way; NULL: there is none. */
static Inst *find_choice(const Region *body) {
    const Val *condition = NULL;
    for (const Inst *inst = body->first; inst; inst = inst->next)
        if (has_constant_way(inst)) condition = inst_operand(inst, 0);
    if (!condition || val_is_const(condition)) return NULL;
    Inst *first = body->first;
    while (!is_on(first, condition)) first = first->next;
    return first;
}

static int size_from(const Inst *inst) {
    int size = 0;
    for (; inst; inst = inst->next) {
        size++;
        for (int i = 0; i < inst->nregions; i++) size += region_size(inst->regions[i]);
    }
    return size;
}

/* Of an `if` on the same condition, that way alone. */
static void copy_way(CloneMap *map, const Inst *choice, int way, Region *into) {
    const Region *region = choice->regions[way];
    for (Inst *inst = region->first; inst != region->last; inst = inst->next)
        inst_append(into, clone_inst(map, inst));
    for (int i = 0; i < choice->nresults; i++)
        clone_map_val(map, choice->results[i], clone_val(map, inst_operand(region->last, i)));
}

static void copy_rest(const Ways *w, Inst *choice, int way, Region *into) {
    CloneMap map = {.module = into->func->module, .func = into->func};
    Val *condition = inst_operand(choice, 0);
    const Inst *yield = choice->parent->last;
    Val **yielded = arena_array(w->scratch, Val *, yield->nargs + 1);
    clone_map_val(&map, condition, ir_const_int(map.module, condition->type, way == 0));
    for (Inst *inst = choice; inst != yield; inst = inst->next)
        if (is_on(inst, condition)) copy_way(&map, inst, way, into);
        else inst_append(into, clone_inst(&map, inst));
    for (int i = 0; i < yield->nargs; i++) yielded[i] = clone_val(&map, inst_operand(yield, i));
    Builder b = build_at_end(into);
    build_yield(&b, yielded, yield->nargs);
}

static void part_round(Ways *w, const Region *body) {
    Inst *choice = body->last->op == OP_yield ? find_choice(body) : NULL, *yield = body->last;
    if (!choice || size_from(choice) > MOST_REST) return;
    const Type **types = arena_array(w->scratch, const Type *, yield->nargs + 1);
    for (int i = 0; i < yield->nargs; i++) types[i] = inst_operand(yield, i)->type;
    Builder b = build_before(choice);
    b.loc = choice->loc;
    Inst *both = build_if(&b, inst_operand(choice, 0), types, yield->nargs);
    for (int i = 0; i < 2; i++) copy_rest(w, choice, i, both->regions[i]);
    for (int i = 0; i < yield->nargs; i++) yield->args[i] = both->results[i];
    while (yield->prev != both) inst_remove(yield->prev);
    w->changed = true;
}

/* ---- the entry */

static bool is_of_one_item(const Region *body) {
    for (int i = 0; i < body->nparams; i++)
        if (!type_is_scalar(body->params[i]->type)) return false;
    return true;
}

static void visit_loop(void *user, Inst *inst) {
    if (inst->op != OP_loop || !inst->hints.ways || !is_of_one_item(inst->regions[1])) return;
    Ways *w = user;
    part_round(w, inst->regions[1]);
    w->products.count = 0;
    region_walk(inst->regions[1], note_product, w);
    for (int i = 0; i < w->products.count; i++)
        if (!w->products.at[i]->results[0]->forward) choose_shares(w, w->products.at[i]);
}

bool opt_ways(Func *func) {
    if (func->module->many_threads) return false;
    Ways w = {.scratch = arena_scratch(func->module->arena)};
    region_walk(func->body, visit_loop, &w);
    if (w.changed) ir_resolve_func(func);
    arena_free(w.scratch);
    return w.changed;
}
