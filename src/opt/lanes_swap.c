/* Loops in a round that add to rows which overlap, the other way around.
 *
 *     for (i) for (k) image[y + i][x + k] += w[i][k] * d          for (k) for (i) image[y + i][x + k] += w[i][k] * d
 *
 * x counts rounds, so that lanes add a row of numbers to neighbours in memory. The next k adds to a row that
 * begins one number further on: the processor waits until what was written is in the cache, as it can hand on
 * a row that it has just written only as a whole. With the loop over i inside, it does other rows meanwhile.
 *
 * The order of such sums is free, and what is read meanwhile lies elsewhere. */
#include "opt/lanes.h"

typedef struct Factor {
    bool is_there, is_multiple;
    const Val *by;
} Factor;

typedef struct Swap {
    Lanes *lanes;
    Inst *outer, *inner;
    const int *uses; /* by id */
    InstVec sums, loads;
    bool overlaps;                       /* a sum in them does */
    Factor of_round, of_inner, of_outer; /* in the index at hand: what the counters are multiplied by */
} Swap;

static bool is_used(const int *uses, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (uses[inst->results[i]->id]) return true;
    return false;
}

static Val *counter_of(const Inst *loop) { return loop->regions[1]->params[0]; }

/* For i from 0 to a constant, and nothing is carried but i. */
static bool counts(const Inst *loop) {
    int64_t step, first;
    return loop->op == OP_loop && loop->nregions == 2 && loop->nargs == 1 &&
           val_is_int(inst_operand(loop, 0), &first) && first == 0 && loop_step(loop, 0, &step) &&
           step == 1 && loop_most_trips(loop) != INT64_MAX &&
           loop_known_rounds(loop) == (double)loop_most_trips(loop);
}

static void look_at_term(void *user, const Val *v, Val *factor, bool is_multiple) {
    Swap *swap = user;
    Factor *of = lanes_is_counter(swap->lanes, v) ? &swap->of_round
                 : v == counter_of(swap->inner)   ? &swap->of_inner
                 : v == counter_of(swap->outer)   ? &swap->of_outer
                                                  : NULL;
    if (of) *of = (Factor){true, is_multiple || of->is_there, factor};
}

static bool overlaps(const Factor *one, const Factor *other) {
    return other->is_there && !one->is_multiple && !other->is_multiple && one->by == other->by;
}

/* Is it added to a row of which the inner loop adds to the neighbours next, and the outer one to others? */
static void look_at_sum(Swap *swap, const Val *address) {
    const Inst *elem =
        address->kind == VAL_inst && address->inst->op == OP_buffer_elem ? address->inst : NULL;
    if (!elem || lanes_step_of_address(swap->lanes, address) != STEP_one) return;
    swap->of_round = swap->of_inner = swap->of_outer = (Factor){0};
    lanes_terms(swap->lanes, elem->args[1], look_at_term, swap);
    swap->overlaps |= swap->of_outer.is_there && overlaps(&swap->of_round, &swap->of_inner) &&
                      !overlaps(&swap->of_round, &swap->of_outer);
}

/* False: it is neither of both, and does more than to compute. */
static bool note(Swap *swap, Inst *inst) {
    Arena *scratch = swap->lanes->scratch;
    if (inst->op == OP_load) vec_push(scratch, &swap->loads, inst);
    else if (inst->op != OP_atomic) return op_has(inst->op, OP_PURE);
    else if (is_used(swap->uses, inst) || !lanes_is_plain_sum(swap->lanes->options, inst)) return false;
    else vec_push(scratch, &swap->sums, inst);
    return true;
}

/* Nothing in the loops but sums without order, and what is added. */
static bool is_free(Swap *swap) {
    const Region *around = swap->outer->regions[1], *body = swap->inner->regions[1];
    for (const Inst *inst = around->first; inst != around->last; inst = inst->next)
        if (inst != swap->inner && !op_has(inst->op, OP_PURE)) return false;
    for (Inst *inst = body->first; inst != body->last; inst = inst->next)
        if (inst->nregions || !note(swap, inst)) return false;
    for (int i = 0; i < swap->sums.count; i++) {
        look_at_sum(swap, inst_operand(swap->sums.at[i], 0));
        for (int k = 0; k < swap->loads.count; k++)
            if (!lanes_are_elsewhere(swap->lanes, swap->sums.at[i], swap->loads.at[k])) return false;
    }
    return true;
}

static Inst *only_loop_in(const Inst *loop) {
    Inst *found = NULL;
    for (Inst *inst = loop->regions[1]->first; inst; inst = inst->next) {
        if (inst->nregions && found) return NULL;
        if (inst->nregions) found = inst;
    }
    return found && counts(found) ? found : NULL;
}

static void clone_all(CloneMap *map, const Region *from, const Inst *but, Region *to) {
    for (Inst *inst = from->first; inst != from->last; inst = inst->next)
        if (inst != but) inst_append(to, clone_inst(map, inst));
}

static void exchange(const Swap *swap) {
    Builder b = build_before(swap->outer);
    b.loc = swap->outer->loc;
    CountLoop outer = build_count(&b, 0, loop_most_trips(swap->inner)),
              inner = build_count(&outer.body, 0, loop_most_trips(swap->outer));
    CloneMap map = {.module = swap->lanes->module, .func = swap->lanes->from};
    Val *first = counter_of(swap->outer), *second = counter_of(swap->inner);
    clone_map_val(&map, first, build_convert(&inner.body, inner.index, first->type));
    clone_map_val(&map, second, build_convert(&inner.body, outer.index, second->type));
    clone_all(&map, swap->outer->regions[1], swap->inner, inner.body.region);
    clone_all(&map, swap->inner->regions[1], NULL, inner.body.region);
    build_next(&inner);
    build_next(&outer);
    inst_remove(swap->outer);
}

static bool swap_in(Lanes *lanes, const int *uses, Region *region) {
    bool changed = false;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        Inst *inner = counts(inst) && !is_used(uses, inst) ? only_loop_in(inst) : NULL;
        Swap swap = {.lanes = lanes, .outer = inst, .inner = inner, .uses = uses};
        bool does = inner && !is_used(uses, inner) && is_free(&swap) && swap.overlaps;
        if (does) exchange(&swap);
        for (int i = 0; i < inst->nregions && !does; i++) changed |= swap_in(lanes, uses, inst->regions[i]);
        changed |= does;
    }
    return changed;
}

bool lanes_swap_loops(Lanes *lanes) {
    bool changed = swap_in(lanes, region_count_uses(lanes->scratch, lanes->from->body), lanes->from->body);
    if (changed) ir_resolve_func(lanes->from), opt_dce(lanes->from);
    return changed;
}
