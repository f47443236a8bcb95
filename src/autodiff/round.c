/* Rounds: loops whose iterations have nothing to do with each other, such as the sum of a loss over all data.
 *
 *   for (i = 0; i < n; i++) total += f(i, x);
 *
 * What such a loop carries is counters and sums, and a sum is only added to. So the reverse of a round needs nothing of other rounds: the
 * round can be run and reversed at once, and what it keeps is gone before the next begins. The body becomes a function that returns what it
 * adds to each sum, and the call of it is made again in the reverse pass, as with [PreferRecompute]:
 *
 *   for (i = 0; i < n; i++) total += round(i, x);        reversed:  for (...) { context = round.pri(i, x); round.prop(context, g); }
 *
 * That is no more work where nobody wants the total, which is so in bwd_diff(f): then the primal pass need not run the loop. Hence sums
 * must lead to results of the function, and that by additions, changes of sign, and constant factors alone. The tape of a
 * round stays in the cache, however many rounds there are.
 *
 * Only outermost loops are split, so that nothing is run more than twice. */
#include "autodiff/autodiff.h"

enum { MOST_CAPTURED = 64 };

typedef struct Rounds {
    Outline outline;
    const bool *stable; /* by parameter of the function: an array that holds the same in the reverse */
    ValVec globals;     /* captured addresses of globals: named anew */
    Map added;          /* Val -> Sum: the sum so far, plus something */
    bool fits;
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
    const Val *v;
    const Func *func;
    bool fits;
} Use;

static bool leads_to_results(const Func *func, const Val *v);

static bool is_number(const Val *v) {
    bool converted = v->kind == VAL_inst && v->inst->op == OP_convert;
    return val_is_const(v) || (converted && !type_is_float(v->inst->args[0]->type));
}

static bool fits_use(const Func *func, const Inst *inst, int operand) {
    switch ((Op)inst->op) {
    case OP_return: return true;
    case OP_add:
    case OP_sub:
    case OP_neg: return leads_to_results(func, inst->results[0]);
    case OP_mul: return is_number(inst->args[1 - operand]) && leads_to_results(func, inst->results[0]);
    case OP_div: return operand == 0 && is_number(inst->args[1]) && leads_to_results(func, inst->results[0]);
    case OP_yield: {
        const Inst *owner = inst->parent->owner;
        return owner->op == OP_if && leads_to_results(func, owner->results[operand]);
    }
    default: return false;
    }
}

static void look_at_use(void *user, Inst *inst) {
    Use *use = user;
    for (int i = 0; i < inst->nargs && use->fits; i++)
        if (inst->args[i] == use->v) use->fits = fits_use(use->func, inst, i);
}

static bool leads_to_results(const Func *func, const Val *v) {
    Use use = {v, func, true};
    region_walk(func->body, look_at_use, &use);
    return use.fits;
}

/* ---- what it uses */

static bool can_capture(const Rounds *x, Val *v) {
    if (v->type->kind == TYPE_tape) return false;
    if (v->type->kind != TYPE_pointer) return true;
    return v->kind == VAL_param && v->region == x->outline.func->body && x->stable[v->index];
}

static bool is_global(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_global; }

static void take_globals(Rounds *x) {
    ValVec *captured = &x->outline.captured;
    int kept = 0;
    for (int i = 0; i < captured->count; i++)
        if (is_global(captured->at[i])) vec_push(x->outline.ad->arena, &x->globals, captured->at[i]);
        else captured->at[kept++] = captured->at[i];
    captured->count = kept;
}

static bool is_independent(Rounds *x) {
    ad_survey(&x->outline, x->outline.loop->regions[1]);
    take_globals(x);
    bool fits = !x->outline.writes_memory && !x->outline.has_effects;
    for (int i = 0; i < x->outline.captured.count && fits; i++)
        fits = can_capture(x, x->outline.captured.at[i]);
    return fits && x->outline.captured.count <= MOST_CAPTURED;
}

/* ---- the function */

static Func *declare(const Rounds *x) {
    Ad *ad = x->outline.ad;
    const Inst *loop = x->outline.loop;
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    for (int i = 0; i < loop->nargs; i++) {
        const Val *v = loop->regions[1]->params[i];
        if (is_counter(loop, i)) vec_push(ad->arena, &params, ((Param){.name = v->name, .type = v->type}));
        else vec_push(ad->arena, &results, v->type);
    }
    for (int i = 0; i < x->outline.captured.count; i++)
        vec_push(ad->arena, &params, ad_captured_param(&x->outline, x->outline.captured.at[i]));
    Func *func = func_new(ad->m, format_text(ad->arena, "%s.round", x->outline.func->name->text));
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    func->flags |= FUNC_GENERATED | FUNC_NORMAL | FUNC_HARMLESS | (x->outline.func->flags & FUNC_PRECISE);
    func->loc = loop->loc;
    return func;
}

/* The body, with sums that begin at zero. */
static Func *make_round(const Rounds *x) {
    Ad *ad = x->outline.ad;
    const Inst *loop = x->outline.loop;
    Func *func = declare(x);
    Region *body = func_begin(func), *old = loop->regions[1];
    CloneMap map = {.module = ad->m, .func = func};
    int next = 0;
    for (int i = 0; i < loop->nargs; i++)
        clone_map_val(&map, old->params[i],
                      is_counter(loop, i) ? body->params[next++] : ad_zero(ad, old->params[i]->type));
    for (int i = 0; i < x->outline.captured.count; i++)
        clone_map_val(&map, x->outline.captured.at[i], body->params[next++]);
    for (int i = 0; i < x->globals.count; i++) inst_append(body, clone_inst(&map, x->globals.at[i]->inst));
    clone_region_into(&map, old, body);
    Inst *end = body->last;
    ValVec results = {0};
    for (int i = 0; i < loop->nargs; i++)
        if (!is_counter(loop, i)) vec_push(ad->arena, &results, end->args[i]);
    inst_remove(end);
    Builder b = build_at_end(body);
    build_return(&b, results.at, results.count);
    return func;
}

/* What is left of the loop: it counts, calls and adds. */
static void empty_loop(const Rounds *x, Func *round) {
    Ad *ad = x->outline.ad;
    Inst *loop = x->outline.loop;
    Region *body = loop->regions[1];
    int64_t *steps = arena_array(ad->arena, int64_t, loop->nargs + 1);
    ValVec args = {0}, yields = {0};
    for (int i = 0; i < loop->nargs; i++)
        if (loop_step(loop, i, &steps[i])) vec_push(ad->arena, &args, body->params[i]);
    for (int i = 0; i < x->outline.captured.count; i++) vec_push(ad->arena, &args, x->outline.captured.at[i]);
    bool *counts = arena_array(ad->arena, bool, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) counts[i] = is_counter(loop, i);
    while (body->last) inst_remove(body->last);
    Builder b = build_at_end(body);
    b.loc = loop->loc;
    Inst *call = build_call(&b, round, args.at, args.count);
    call->writes = true; /* again in the reverse pass */
    for (int i = 0, next = 0; i < loop->nargs; i++) {
        Val *more = counts[i] ? ir_const_int(ad->m, body->params[i]->type, steps[i]) : call->results[next++];
        vec_push(ad->arena, &yields, build_binary(&b, OP_add, body->params[i], more));
    }
    build_yield(&b, yields.at, yields.count);
}

static bool split(Ad *ad, Func *func, Inst *loop, const bool *stable) {
    Rounds x = {
        .outline = {.ad = ad, .func = func, .loop = loop, .steady = true}, .stable = stable, .fits = true};
    if (loop->nregions != 2 || !carries_sums(&x) || !is_independent(&x)) return false;
    for (int i = 0; i < loop->nargs; i++)
        if (!is_counter(loop, i) && !leads_to_results(func, loop->results[i])) return false;
    if (!loop_trip(loop)) return false;
    empty_loop(&x, make_round(&x));
    return true;
}

static bool split_region(Ad *ad, Func *func, Region *region, const bool *stable) {
    bool any = false;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_loop) any |= split(ad, func, inst, stable);
        else
            for (int i = 0; i < inst->nregions; i++) any |= split_region(ad, func, inst->regions[i], stable);
    }
    return any;
}

/* ---- the entry */

Region *ad_split_rounds(Ad *ad, AdFunc *f, const bool *stable_leaves) {
    Func *flat = f->flat;
    bool *stable = arena_array(ad->arena, bool, flat->nparams + 1);
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].in >= 0) stable[f->leaves.at[i].in] = stable_leaves[i];
    Region *written = flat->body;
    CloneMap map = {.module = ad->m, .func = flat};
    flat->body = clone_region(&map, written, NULL);
    Region *copy = split_region(ad, flat, flat->body, stable) ? flat->body : NULL;
    flat->body = written;
    return copy;
}
