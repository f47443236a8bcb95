/* Rounds: loops whose iterations have nothing to do with each other, such as the sum of a loss over all data.
 *
 *   for (i = 0; i < n; i++) total += f(i, x);
 *
 * What such a loop carries is counters and sums, and a sum is only added to. So the reverse of a round needs
 * nothing of other rounds: some of them can be run and reversed before the next ones begin, and what they
 * keep is gone then. So many rounds become a function that returns what they add to each sum, and the call of
 * it is made again in the reverse pass, as with [PreferRecompute]:
 *
 *   for (c = 0; c < (n + 31) / 32; c++) total += rounds(32 * c, min(32 * c + 32, n), x);
 *
 *   reversed:  for (...) { context = rounds.pri(lo, hi, x); rounds.prop(context, g); }
 *
 * That is no more work where nobody wants the total, which is so in bwd_diff(f): then the primal pass need
 * not run the loop. Hence sums must lead to results of the function, and that by additions, changes of sign,
 * and constant factors alone. What is kept stays in the cache, however many rounds there are; taking a few at
 * a time leaves the processor something to overlap, which the reverse of a single round, waiting for each of
 * its own values, does not.
 *
 * A round that has loops itself keeps much, and has enough to overlap: it is run and reversed by itself. What
 * it keeps is on a tape of its own, which is memory of a single round for whoever does several rounds at once:
 * lanes then have rows there (opt/lanes_tape.c), and C and LLVM a local array, if it is small.
 *
 *   reversed:  for (i < n) { tape; context = round.pri(i, x, tape); round.prop(i, context, g, tape); }
 *
 * Of loops in loops the innermost are split that are of this kind, so that nothing is run more than twice and
 * the rounds are short. */
#include "autodiff/ad.h"

enum { MOST_CAPTURED = 64, AT_A_TIME = 32, SHORT = 4 };

typedef struct Rounds {
    Outline outline;
    bool written;           /* the function is code of the source */
    const bool *stable;     /* by parameter of the function: an array that holds the same in the reverse */
    const Settled *settled; /* local arrays that nobody writes any more */
    Map added;              /* Val -> Sum: the sum so far, plus something */
    bool fits;
    bool alone;                  /* each round is run and reversed by itself */
    const struct Rounds *around; /* of the loop that it stands in, which is of this kind, too; or NULL */
} Rounds;

typedef struct Sum {
    int index; /* of the carried value */
} Sum;

/* ---- sums: values that are a carried value plus something that does not depend on it */

static const Sum *sum_of(const Rounds *x, const Val *v) {
    return val_is_const(v) ? NULL : map_get(&x->added, PTR_KEY(v));
}

static void mark(Rounds *x, const Val *v, const Sum *sum) {
    map_put(x->outline.ad->arena, &x->added, PTR_KEY(v), (void *)(uintptr_t)sum);
}

static void follow(Rounds *x, const Region *region);

static void follow_addition(Rounds *x, const Inst *inst) {
    const Sum *left = sum_of(x, inst->args[0]), *right = sum_of(x, inst->args[1]);
    if ((left && right) || (right && inst->op == OP_sub)) x->fits = false;
    if (left || right) mark(x, inst->results[0], left ? left : right);
}

static void follow_choice(Rounds *x, const Inst *inst) {
    const Sum *one = sum_of(x, inst->args[1]), *other = sum_of(x, inst->args[2]);
    if (one != other) x->fits = false;
    if (one) mark(x, inst->results[0], one);
}

/* A result is a sum if it is the same one on every way. */
static void follow_branches(Rounds *x, const Inst *inst) {
    for (int k = 0; k < inst->nregions; k++) follow(x, inst->regions[k]);
    for (int i = 0; i < inst->nresults; i++) {
        const Sum *sum = sum_of(x, inst->regions[0]->last->args[i]);
        for (int k = 1; k < inst->nregions; k++)
            if (sum_of(x, inst->regions[k]->last->args[i]) != sum) x->fits = false;
        if (sum) mark(x, inst->results[i], sum);
    }
}

static void follow_loop(Rounds *x, const Inst *loop) {
    for (int k = 0; k < loop->nregions; k++) {
        for (int i = 0; i < loop->nargs; i++)
            if (sum_of(x, loop->args[i])) mark(x, loop->regions[k]->params[i], sum_of(x, loop->args[i]));
        follow(x, loop->regions[k]);
    }
    for (int i = 0; i < loop->nresults; i++) {
        const Sum *sum = sum_of(x, loop->args[i]);
        if (sum_of(x, loop->regions[1]->last->args[i]) != sum) x->fits = false;
        if (sum) mark(x, loop->results[i], sum);
    }
}

static bool uses_sum(const Rounds *x, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (sum_of(x, inst->args[i])) return true;
    return false;
}

static void follow(Rounds *x, const Region *region) {
    for (const Inst *inst = region->first; inst && x->fits; inst = inst->next) {
        bool condition =
            inst->op == OP_yield && region->owner->op == OP_loop && region == region->owner->regions[0];
        if (inst->op == OP_add || inst->op == OP_sub) follow_addition(x, inst);
        else if (inst->op == OP_select) follow_choice(x, inst);
        else if (inst->op == OP_loop) follow_loop(x, inst);
        else if (uses_sum(x, inst) && (inst->op != OP_yield || condition)) x->fits = false;
        else if (inst->nregions) follow_branches(x, inst);
    }
}

static bool is_counter(const Inst *loop, int index) {
    int64_t step;
    return loop_step(loop, index, &step);
}

/* Does the loop carry nothing but counters and sums? */
static bool carries_sums(Rounds *x) {
    const Inst *loop = x->outline.loop;
    const Region *body = loop->regions[1];
    int sums = 0;
    for (int i = 0; i < loop->nargs; i++) {
        if (is_counter(loop, i)) continue;
        if (!type_is_float(body->params[i]->type)) return false;
        Sum *sum = arena_new(x->outline.ad->arena, Sum);
        sum->index = i;
        mark(x, body->params[i], sum);
        sums++;
    }
    follow(x, body);
    for (int i = 0; i < loop->nargs && x->fits; i++) {
        const Sum *sum = sum_of(x, body->last->args[i]);
        x->fits = is_counter(loop, i) ? !sum : sum && sum->index == i;
    }
    return x->fits && sums > 0;
}

/* ---- where the sums go */

typedef struct Use {
    const Rounds *of;
    const Val *v;
} Use;

static bool leads_to_results(const Rounds *x, const Val *v);

static bool is_number(const Val *v) {
    bool converted = v->kind == VAL_inst && v->inst->op == OP_convert;
    return val_is_const(v) || (converted && !type_is_float(v->inst->args[0]->type));
}

static bool fits_use(const Rounds *x, const Inst *inst, int operand) {
    switch ((Op)inst->op) {
    case OP_return: return true;
    case OP_add:
    case OP_sub:
    case OP_neg: return leads_to_results(x, inst->results[0]);
    case OP_mul: return is_number(inst->args[1 - operand]) && leads_to_results(x, inst->results[0]);
    case OP_div: return operand == 0 && is_number(inst->args[1]) && leads_to_results(x, inst->results[0]);
    case OP_yield: {
        const Inst *owner = inst->parent->owner;
        return owner->op == OP_if && leads_to_results(x, owner->results[operand]);
    }
    default: return false;
    }
}

static bool is_unfit(const void *user, const Inst *inst) {
    const Use *use = user;
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i] == use->v && !fits_use(use->of, inst, i)) return true;
    return false;
}

/* What becomes part of a sum around it does so. */
static bool leads_to_results(const Rounds *x, const Val *v) {
    if (x->around && sum_of(x->around, v)) return true;
    return !region_find(x->outline.func->body, is_unfit, &(Use){x, v});
}

/* ---- what it uses */

static bool can_capture(const Rounds *x, Val *v) {
    if (v->type->kind == TYPE_tape) return false;
    if (v->type->kind != TYPE_pointer) return true;
    if (ad_is_settled_array(x->settled, v, x->outline.loop)) return true;
    return v->kind == VAL_param && v->region == x->outline.func->body && x->stable[v->index];
}

static bool is_independent(Rounds *x) {
    ad_survey(&x->outline, x->outline.loop->regions[1]);
    ad_take_globals(&x->outline);
    bool fits = !x->outline.writes_memory && !x->outline.has_effects;
    for (int i = 0; i < x->outline.captured.count && fits; i++)
        fits = can_capture(x, x->outline.captured.at[i]);
    return fits && x->outline.captured.count <= MOST_CAPTURED;
}

/* ---- the function */

static Func *declare(const Rounds *x) {
    static const char *const words[] = {"lo", "hi"};
    const char *name = x->alone ? "round" : "rounds";
    Func *func = ad_outline(&x->outline, name, words, x->alone ? 0 : 2, is_counter);
    func->flags |= FUNC_HARMLESS;
    return func;
}

static bool is_written(const Rounds *x) {
    bool written = x->written;
    for (int i = 0; i < x->outline.captured.count; i++)
        written &= ad_is_given_number(&x->outline, x->outline.captured.at[i]);
    return written;
}

/* The counters are parameters, from the first of these on, and sums begin at zero. */
static ValVec state_before(const Rounds *x, const Region *body, int first) {
    Ad *ad = x->outline.ad;
    const Inst *loop = x->outline.loop;
    ValVec state = {0};
    for (int i = 0; i < loop->nargs; i++)
        vec_push(ad->arena, &state,
                 is_counter(loop, i) ? body->params[first++]
                                     : ad_zero(ad, loop->regions[1]->params[i]->type));
    return state;
}

static void return_sums(const Rounds *x, Region *body, Val *const *state) {
    const Inst *loop = x->outline.loop;
    Builder b = build_at_end(body);
    ValVec results = {0};
    for (int i = 0; i < loop->nargs; i++)
        if (!is_counter(loop, i)) vec_push(x->outline.ad->arena, &results, state[i]);
    build_return(&b, results.at, results.count);
}

/* Rounds lo to hi. */
static void fill_rounds(const Rounds *x, Region *body, CloneMap *map) {
    Builder b = build_at_end(body);
    ValVec state = state_before(x, body, 2);
    Inst *copy = ad_copy_loop(&x->outline, &b, map, state.at, body->params[0], body->params[1]);
    return_sums(x, body, copy->results);
}

/* A single one, which is no loop any more. */
static void fill_round(const Rounds *x, Region *body, CloneMap *map) {
    Region *round = x->outline.loop->regions[1];
    ValVec state = state_before(x, body, 0);
    for (int i = 0; i < round->nparams; i++) clone_map_val(map, round->params[i], state.at[i]);
    clone_region_into(map, round, body);
    Inst *end = body->last;
    inst_remove(end);
    return_sums(x, body, end->args);
}

static Func *make_rounds(const Rounds *x) {
    AdFunc *f = ad_func(x->outline.ad, declare(x));
    CloneMap map = ad_enter(&x->outline, f->flat);
    if (x->alone) fill_round(x, f->flat->body, &map);
    else fill_rounds(x, f->flat->body, &map);
    f->written = is_written(x);
    f->has_own_tape = x->alone;
    return f->flat;
}

/* A counter after so many rounds. */
static Val *counter_after(const Rounds *x, Builder *b, int index, Val *rounds) {
    const Inst *loop = x->outline.loop;
    Val *start = loop->args[index];
    int64_t step = 0;
    loop_step(loop, index, &step);
    Val *far = build_binary(b, OP_mul, build_convert(b, rounds, start->type),
                            ir_const_int(x->outline.ad->m, start->type, step));
    return build_binary(b, OP_add, start, far);
}

static int64_t at_a_time(const Rounds *x) { return x->alone ? 1 : AT_A_TIME; }

static Val *end_of_rounds(const Rounds *x, Builder *b, Val *lo, Val *trip) {
    Val *full = build_binary(b, OP_add, lo, ad_int64(x->outline.ad, AT_A_TIME));
    return build_select(b, build_binary(b, OP_lt, full, trip), full, trip);
}

/* What is left of the loop: it calls, for some rounds each time, and adds. */
static void fill_outer(const Rounds *x, Inst *outer, Func *rounds, Val *trip) {
    Ad *ad = x->outline.ad;
    const Inst *loop = x->outline.loop;
    Region *body = outer->regions[1];
    Builder b = build_at_end(body);
    b.loc = loop->loc;
    Val *lo = build_binary(&b, OP_mul, body->params[0], ad_int64(ad, at_a_time(x))),
        *hi = x->alone ? NULL : end_of_rounds(x, &b, lo, trip);
    ValVec args = {0}, yields = {0};
    if (hi) {
        vec_push(ad->arena, &args, lo);
        vec_push(ad->arena, &args, hi);
    }
    for (int i = 0; i < loop->nargs; i++)
        if (is_counter(loop, i)) vec_push(ad->arena, &args, counter_after(x, &b, i, lo));
    Inst *call = ad_call_outline(&x->outline, &b, rounds, args);
    call->flags |= INST_AGAIN;
    vec_push(ad->arena, &yields, build_binary(&b, OP_add, body->params[0], ad_int64(ad, 1)));
    for (int i = 0; i < call->nresults; i++)
        vec_push(ad->arena, &yields, build_binary(&b, OP_add, body->params[i + 1], call->results[i]));
    build_yield(&b, yields.at, yields.count);
}

static void replace_loop(const Rounds *x, Func *rounds, Val *trip, Inst *last) {
    Ad *ad = x->outline.ad;
    Inst *loop = x->outline.loop;
    Builder b = build_before(loop);
    b.loc = loop->loc;
    ValVec starts = {0};
    vec_push(ad->arena, &starts, ad_int64(ad, 0));
    for (int i = 0; i < loop->nargs; i++)
        if (!is_counter(loop, i)) vec_push(ad->arena, &starts, loop->args[i]);
    Val *most = build_binary(&b, OP_add, trip, ad_int64(ad, at_a_time(x) - 1)),
        *count = build_binary(&b, OP_div, most, ad_int64(ad, at_a_time(x)));
    ad_hoist(loop, last ? last->next : loop->parent->first);
    Inst *outer = build_loop(&b, starts.at, starts.count, false);
    Builder cond = build_at_end(outer->regions[0]);
    Val *go = build_binary(&cond, OP_lt, outer->regions[0]->params[0], count);
    build_yield(&cond, &go, 1);
    fill_outer(x, outer, rounds, trip);
    for (int i = 0, next = 1; i < loop->nresults; i++)
        loop->results[i]->forward =
            is_counter(loop, i) ? counter_after(x, &b, i, trip) : outer->results[next++];
    inst_remove(loop);
}

/* Rounds with short loops are faster some at a time, unless there are lanes. */
static bool is_loop_to_stay(const void *user, const Inst *inst) {
    const Ad *ad = user;
    return inst->op == OP_loop && !(ad->config.no_lanes && loop_most_trips(inst) <= SHORT);
}

static bool suits(Rounds *x, Inst *loop) {
    x->outline.loop = loop;
    if (loop->nregions != 2 || !carries_sums(x) || !is_independent(x)) return false;
    for (int i = 0; i < loop->nargs; i++)
        if (!is_counter(loop, i) && !leads_to_results(x, loop->results[i])) return false;
    return true;
}

/* The loops in it, if there are such, else itself. */
static bool split(void *user, Inst *loop) {
    const Rounds *all = user;
    Rounds x = *all, inside = *all;
    if (!suits(&x, loop)) return false;
    inside.around = &x;
    if (ad_for_loops(loop->regions[1], split, &inside)) return true;
    Inst *last = loop->prev;
    Val *trip = loop_trip(loop);
    int64_t rounds;
    if (!trip || (val_is_int(trip, &rounds) && rounds <= AT_A_TIME)) return false;
    x.alone = region_find(loop->regions[1], is_loop_to_stay, x.outline.ad);
    replace_loop(&x, make_rounds(&x), trip, last);
    return true;
}

/* ---- the entry */

static bool split_all(void *user, Region *body) {
    Rounds *all = user;
    all->settled = ad_settle(all->outline.ad, body, all->outline.func->nvals);
    return ad_for_loops(body, split, all);
}

Region *ad_split_rounds(Ad *ad, AdFunc *f, const bool *stable_leaves) {
    bool *stable = arena_array(ad->arena, bool, f->flat->nparams + 1);
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].in >= 0) stable[f->leaves.at[i].in] = stable_leaves[i];
    Rounds all = {.outline = {.ad = ad, .func = f->flat, .steady = true}, .stable = stable, .fits = true};
    all.written = f->written;
    return ad_change_copy(ad, f->flat, split_all, &all);
}
