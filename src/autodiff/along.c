/* Along: loops that carry one number whose derivative is wanted, such as a march along a ray or an iteration
 * that ends when it has converged.
 *
 *   while (...) s = f(s, x, y);
 *
 * The derivative of such a number by all that the loop is given is a row of as many numbers, and a round
 * turns the row of the number that it was given into that of the number that it gives: ds/dx becomes f_s *
 * ds/dx + f_x. So the rows are carried along with the number, the partial derivatives of a round coming from
 * its own reverse pass, which follows it at once with a seed of one. Nothing is kept from one round to the
 * next, the loop is gone through once, and how often it runs need not be known:
 *
 *   pri:   while (...) { s, context = round.pri(s, x, y);  f_s, f_x, f_y = round.prop(context, 1);
 *                        by_x = f_s * by_x + f_x;  by_y = f_s * by_y + f_y;  by_s = f_s * by_s; }
 *   prop:  dx = by_x * seed ...
 *
 * A loop whose rounds can be counted before it starts keeps values in a block instead of pushing them, and is
 * reversed as others are.
 *
 * What is zero stays zero, as in untaken.c: a row that has nothing in it yet when a slope is infinite, or
 * that holds too much when a round does not depend on the number at all. */
#include "autodiff/ad.h"

#include <float.h>

enum { MOST_CARRIED = 24 };

typedef struct Along {
    Outline outline;
    AdFunc *f;
    Activity activity;
    ValVec given; /* active results of loops that were replaced */
    int carried;  /* which of the values that the loop carries */
} Along;

/* ---- which loops */

static bool is_active(const Along *x, const Val *v) {
    if (val_is_const(v)) return false;
    for (int i = 0; i < x->given.count; i++)
        if (x->given.at[i] == v) return true;
    return v->id < x->activity.nvals && x->activity.vals[v->id];
}

static bool carries_one(Along *x) {
    const Region *body = x->outline.loop->regions[1];
    int count = 0;
    for (int i = 0; i < body->nparams; i++) {
        if (!is_active(x, body->params[i])) continue;
        if (!type_is_float(body->params[i]->type) || count++) return false;
        x->carried = i;
    }
    return count == 1;
}

/* Memory with a shadow, and references with a counterpart, get their gradients in the reverse pass; rows are
 * of the type of the number. */
static bool can_capture(const Along *x, Val *v) {
    if (v->type->kind == TYPE_tape) return false;
    const Type *number = x->outline.loop->args[x->carried]->type;
    if (type_is_scalar(v->type) && is_active(x, v) && v->type != number) return false;
    if (v->type->kind == TYPE_pointer) return !ad_is_active_address(&x->activity, v);
    const Type *counterpart = ad_captured_param(&x->outline, v).counterpart;
    return !counterpart || counterpart->kind == TYPE_void;
}

static bool can_capture_all(const Along *x) {
    const ValVec *captured = &x->outline.captured;
    int active = 0;
    for (int i = 0; i < captured->count; i++) {
        if (!can_capture(x, captured->at[i])) return false;
        active += is_active(x, captured->at[i]);
    }
    return active <= MOST_CARRIED;
}

static bool is_unfit_call(const void *user, const Inst *inst) {
    Ad *ad = ((const Outline *)user)->ad;
    if (inst->op != OP_call) return false;
    CallPlan plan = ad_plan_call(ad, inst, AD_bwd);
    bool is_derived = plan.kind == CALL_derived && !ad_gives_references(&plan.callee->leaves) &&
                      !ad_has(ad, plan.callee, AD_sources);
    return plan.kind != CALL_plain && plan.kind != CALL_rule && !is_derived;
}

static bool suits(Along *x, Inst *loop) {
    Outline *outline = &x->outline;
    outline->loop = loop;
    if (loop->nregions != 2 || !carries_one(x) || loop_trip(loop)) return false;
    for (int i = 0; i < 2; i++) ad_survey(outline, loop->regions[i]);
    ad_take_globals(outline);
    return !outline->writes_memory && !outline->has_effects && can_capture_all(x) &&
           !region_find(loop->regions[1], is_unfit_call, outline);
}

/* ---- the loop as a function, and a round of it */

static Func *declare(const Along *x, const char *name) {
    Func *func = ad_outline(&x->outline, name, NULL, 0, NULL);
    func->flags |= FUNC_HARMLESS;
    return func;
}

/* Only the number has a derivative, and what it is made of. */
static AdFunc *add(const Along *x, Func *func) {
    Ad *ad = x->outline.ad;
    AdFunc *f = ad_func(ad, func);
    int states = x->outline.loop->nargs;
    bool *doubted = arena_array(ad->arena, bool, func->nparams + 1);
    for (int i = 0; i < f->leaves.count; i++) {
        Leaf *leaf = &f->leaves.at[i];
        bool captured = leaf->in >= states;
        const Val *v = captured ? x->outline.captured.at[leaf->in - states] : NULL;
        leaf->diff = captured ? is_active(x, v) : (leaf->in >= 0 ? leaf->in : leaf->out) == x->carried;
        if (leaf->in >= 0) doubted[leaf->in] = !captured || !ad_is_given_number(&x->outline, v);
    }
    f->written = x->f->written;
    f->doubted = doubted;
    return f;
}

static AdFunc *make_round(const Along *x) {
    const Region *body = x->outline.loop->regions[1];
    Func *func = declare(x, "round");
    CloneMap map = ad_enter(&x->outline, func);
    for (int i = 0; i < body->nparams; i++) clone_map_val(&map, body->params[i], func->body->params[i]);
    clone_region_into(&map, body, func->body);
    Inst *yield = func->body->last;
    Builder b = build_before(yield);
    build_return(&b, yield->args, yield->nargs);
    inst_remove(yield);
    return add(x, func);
}

static Func *make_function(const Along *x) {
    Func *func = declare(x, "along");
    CloneMap map = ad_enter(&x->outline, func);
    Inst *copy = clone_inst(&map, x->outline.loop);
    for (int i = 0; i < copy->nargs; i++) copy->args[i] = func->body->params[i];
    inst_append(func->body, copy);
    Builder b = build_at_end(func->body);
    build_return(&b, copy->results, copy->nresults);
    AdFunc *f = add(x, func);
    f->round = make_round(x);
    f->round->reversed_at_once = true;
    f->carried = x->carried;
    return func;
}

static void replace_loop(Along *x, Func *function) {
    Ad *ad = x->outline.ad;
    Inst *loop = x->outline.loop;
    Builder b = build_before(loop);
    b.loc = loop->loc;
    ValVec args = {0};
    for (int i = 0; i < loop->nargs; i++) vec_push(ad->arena, &args, loop->args[i]);
    inst_replace(loop, ad_call_outline(&x->outline, &b, function, args));
}

/* The outermost ones: a round of them has those inside. */
static bool carry(void *user, Inst *loop) {
    Along *all = user, x = *all;
    if (!suits(&x, loop)) return false;
    replace_loop(&x, make_function(&x));
    vec_push(x.outline.ad->arena, &all->given, ir_resolve(loop->results[x.carried]));
    return true;
}

static bool carry_all(void *user, Region *body) {
    Along *all = user;
    all->activity = ad_activity(all->outline.ad, all->f, AD_bwd);
    return ad_for_loops(body, carry, all);
}

Region *ad_carry_along(Ad *ad, AdFunc *f) {
    Along all = {.outline = {.ad = ad, .func = f->flat, .steady = true}, .f = f};
    return ad_change_copy(ad, f->flat, carry_all, &all);
}

/* ---- its derivative */

typedef struct Carrying {
    Ad *ad;
    const AdFunc *f;
    const Reverse *round;
    const Inst *loop; /* of the function itself */
    Val *tape;
    ValVec rows;  /* of pri: what stands for each, in order of ... */
    int *row_of;  /* ... by leaf: -1: it has none */
    Val **primal; /* by leaf: what a round is given */
    Val **slots;  /* what it hands over */
} Carrying;

static Val *round_arg(void *user, const Place *place) {
    const Carrying *x = user;
    switch (place->role) {
    case AS_primal: return x->primal[place->leaf];
    case AS_slot: return x->slots[place->leaf];
    case AS_seed: return ir_const_real(x->ad->m, x->f->round->leaves.at[place->leaf].dtype, 1);
    default: return x->tape;
    }
}

/* A row times what the round makes of the number: zero if one of them is. (That product is not the plain one,
 * which LLVM can make one with a sum.) */
static Val *careful_product(Ad *ad, Builder *b, Val *row, Val *slope) {
    Val *zero = ad_zero(ad, row->type);
    return build_binary(b, OP_scale, row, build_select(b, build_binary(b, OP_eq, row, zero), zero, slope));
}

/* The greatest number of a type. */
static double most(const Type *type) {
    return type->kind == TYPE_double ? DBL_MAX : type->kind == TYPE_float ? FLT_MAX : 65504;
}

/* Zeros need no care unless the slope is none, or infinite, or no number. (Compared with infinity, LLVM would
 * look at its bits, which takes longer.) */
static Val *is_smooth(Ad *ad, Builder *b, Val *slope) {
    Val *size = build_unary(b, OP_abs, slope);
    Val *some = build_binary(b, OP_lt, ad_zero(ad, slope->type), size),
        *finite = build_binary(b, OP_le, size, ir_const_real(ad->m, slope->type, most(slope->type)));
    return build_binary(b, OP_and, some, finite);
}

/* The rows after the round; `added`: what it adds to each, or NULL. Plain products come first, for all: that
 * they are made in vain is rare. (LLVM is told so: it would do both sums in one place otherwise, apart from
 * their products.) */
static Val **next_rows(const Carrying *x, Builder *b, Val *const *rows, Val *slope, Val *const *added) {
    int n = x->rows.count;
    const Type **types = arena_array(x->ad->arena, const Type *, n + 1);
    Val **careful = arena_array(x->ad->arena, Val *, n + 1),
        **plain = arena_array(x->ad->arena, Val *, n + 1);
    for (int i = 0; i < n; i++) {
        types[i] = rows[i]->type;
        plain[i] = build_binary(b, OP_mul, rows[i], slope);
        if (added[i]) plain[i] = build_sum(b, plain[i], added[i]);
    }
    Inst *test = build_if(b, is_smooth(x->ad, b, slope), types, n);
    test->flags |= INST_LIKELY;
    Builder one = build_at_end(test->regions[0]), other = build_at_end(test->regions[1]);
    for (int i = 0; i < n; i++) {
        careful[i] = careful_product(x->ad, &other, rows[i], slope);
        if (added[i]) careful[i] = build_sum(&other, careful[i], added[i]);
    }
    build_yield(&one, plain, n);
    build_yield(&other, careful, n);
    return test->results;
}

/* A round, its reverse, and what that does to the rows. */
static void fill_body(Carrying *x, Region *body) {
    Builder b = build_at_end(body);
    b.loc = x->loop->loc;
    int states = x->loop->nargs;
    for (int i = 0; i < states; i++) x->primal[i] = body->params[i];
    ValVec yields = {0};
    Inst *run = ad_call(x->ad, &b, &x->round->pri, round_arg, x);
    for (int i = 0; i < states; i++) vec_push(x->ad->arena, &yields, run->results[i]);
    x->slots = run->results + states;
    Inst *back = ad_call(x->ad, &b, &x->round->prop, round_arg, x);
    Val **slopes = ad_by_leaf(x->ad, x->f->round, &x->round->prop.results, AS_adjoint, back->results);
    Val **added = arena_array(x->ad->arena, Val *, x->rows.count + 1);
    for (int i = 0; i < x->f->leaves.count; i++)
        if (x->row_of[i] >= 0 && i != x->f->carried) added[x->row_of[i]] = slopes[i];
    Val **rows = next_rows(x, &b, body->params + states, slopes[x->f->carried], added);
    for (int i = 0; i < x->rows.count; i++) vec_push(x->ad->arena, &yields, rows[i]);
    build_yield(&b, yields.at, yields.count);
}

static void fill_pri(Carrying *x, const Made *pri) {
    Ad *ad = x->ad;
    Region *from = x->loop->regions[0], *top = func_begin(pri->func);
    CloneMap map = {.module = ad->m, .func = pri->func};
    Val **given = ad_by_leaf(ad, x->f, &pri->params, AS_primal, top->params);
    const Inst *inst = x->f->flat->body->first;
    for (int i = 0; i < x->f->flat->nparams; i++) clone_map_val(&map, x->f->flat->body->params[i], given[i]);
    for (; inst != x->loop; inst = inst->next) inst_append(top, clone_inst(&map, (Inst *)(uintptr_t)inst));
    if (x->round->uses_tape) x->tape = top->params[top->nparams - 1];
    x->primal = given;
    Builder b = build_at_end(top);
    b.loc = x->loop->loc;
    ValVec starts = {0};
    for (int i = 0; i < x->loop->nargs; i++) vec_push(ad->arena, &starts, given[i]);
    for (int i = 0; i < x->f->leaves.count; i++)
        if (x->row_of[i] >= 0)
            vec_push(ad->arena, &starts,
                     ir_const_real(ad->m, x->f->leaves.at[i].dtype, i == x->f->carried ? 1 : 0));
    Inst *loop = build_loop(&b, starts.at, starts.count, false);
    loop->hints = x->loop->hints;
    loop->hints.ways = true;
    for (int i = 0; i < from->nparams; i++) clone_map_val(&map, from->params[i], loop->regions[0]->params[i]);
    clone_region_into(&map, from, loop->regions[0]);
    fill_body(x, loop->regions[1]);
    build_return(&b, loop->results, loop->nresults);
}

static void fill_prop(const Carrying *x, const Made *prop) {
    Region *body = func_begin(prop->func);
    Builder b = build_at_end(body);
    b.loc = x->loop->loc;
    ValVec results = {0};
    Val *seed = body->params[x->rows.count]; /* the slots come first */
    for (int i = 0; i < prop->results.count; i++) {
        Val *row = body->params[x->row_of[prop->results.at[i].leaf]];
        vec_push(x->ad->arena, &results, build_binary(&b, OP_scale, row, seed));
    }
    build_return(&b, results.at, results.count);
}

static const Inst *loop_of(const Func *func) {
    const Inst *inst = func->body->first;
    while (inst->op != OP_loop) inst = inst->next;
    return inst;
}

/* Nothing is written, by the loop or between a round and its reverse. */
static const Reverse *reverse_round(Ad *ad, AdFunc *round) {
    bool *stable = arena_array(ad->arena, bool, round->leaves.count + 1);
    for (int i = 0; i < round->leaves.count; i++) stable[i] = round->leaves.at[i].by_ref;
    return ad_reverse(ad, round, (Terms){.stable = stable, .firm = ALL_FIRM, .steady = true});
}

/* With a seed of one, and with values at hand that its reverse would compute again, less is left of it. */
static bool is_of_round(void *user, const Func *callee, const Inst *call) {
    const Carrying *x = user;
    (void)call;
    return callee == x->round->pri.func || callee == x->round->prop.func;
}

void ad_reverse_along(Ad *ad, AdFunc *f, Reverse *made) {
    Carrying x = {.ad = ad, .f = f, .round = reverse_round(ad, f->round), .loop = loop_of(f->flat)};
    bool *none = arena_array(ad->arena, bool, f->leaves.count + 1);
    x.row_of = arena_array(ad->arena, int, f->leaves.count + 1);
    for (int i = 0; i < f->leaves.count; i++) {
        bool has = f->leaves.at[i].diff && f->leaves.at[i].in >= 0;
        x.row_of[i] = has ? x.rows.count : -1;
        if (has) vec_push(ad->arena, &x.rows, f->flat->body->params[f->leaves.at[i].in]);
    }
    made->uses_tape = x.round->uses_tape;
    ad_declare(ad, f, SHAPE_pri, (Contents){.slots = x.rows, .tape = made->uses_tape}, &made->pri);
    ad_declare(ad, f, SHAPE_prop, (Contents){.primal = none, .slots = x.rows}, &made->prop);
    fill_pri(&x, &made->pri);
    fill_prop(&x, &made->prop);
    x.round->pri.func->flags |= FUNC_INLINE;
    x.round->prop.func->flags |= FUNC_INLINE;
    ad->config.inline_calls(ad->config.user, made->pri.func, is_of_round, &x);
}
