/* [Checkpoint(budget)]: a loop differentiated within a budget of states.
 *
 * The loop becomes a recursive function that runs iterations lo to hi:
 *
 *   run(lo, hi, snaps, state):  if hi - lo <= leaf: the loop itself
 *                               else: middle = run(lo, mid, snaps, state)       -- called again in the reverse pass
 *                                     run(mid, hi, snaps - 1, middle)
 *
 * Its derivative follows from the rules for any function: the state in the middle is kept, the right half is reversed first, then the
 * left half is run once more from its start and reversed. Half of the budget is for such states, half for the iterations of a
 * leaf. The split is the binomial one (Griewank): with s states and r repetitions, C(s + r, s) leaves can be reversed. Where only
 * the state in the middle is wanted, the loop over lo to hi does instead of the recursion.
 *
 * The trip count must be known when the loop starts, and its state must be scalars: an array that the loop writes is
 * changed in place and cannot be taken back, nor can what it writes to buffers or through pointers. What it reads
 * there must still be the same when it runs again, which is certain of read-only buffers. */
#include "autodiff/ad.h"

typedef struct Seg {
    Outline outline;
    Func *run;
} Seg;

/* ---- what the loop uses */

/* A result of a loop that was replaced before goes by what stands for it. */
static void capture(Outline *x, Val *v) {
    v = ir_resolve(v);
    if (val_is_const(v)) return;
    if (inst_contains(x->loop, v)) return;
    for (int i = 0; i < x->captured.count; i++)
        if (x->captured.at[i] == v) return;
    vec_push(x->ad->arena, &x->captured, v);
}

/* A buffer that can be written, or a pointer of the source: who knows what it leads to when the loop runs again. */
static bool may_change(const Outline *x, Val *v) {
    if (v->type->kind == TYPE_buffer) return !x->steady && !type_is_read_only(v->type);
    if (v->type->kind != TYPE_pointer || ad_is_object(v)) return false;
    const Val *root = ir_root(v);
    const Inst *inst = root->kind == VAL_inst ? root->inst : NULL;
    if (inst && (inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes))
        return !x->steady && !type_is_read_only(inst->args[0]->type);
    bool global = inst && inst->op == OP_global;
    return !global || (inst->global->kind != GLOBAL_const && inst->global->kind != GLOBAL_uniform);
}

/* A variable from before the loop whose address goes somewhere: as a reference to it, it needs its counterpart beside it, which goes
 * by no address of a parameter. */
static bool is_referred_to(const Outline *x, const Inst *inst, int operand) {
    Val *v = inst->args[operand];
    return ir_role(inst, operand) == ROLE_escape && ad_is_object(v) && !inst_contains(x->loop, v);
}

void ad_survey(Outline *x, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++) {
            capture(x, inst->args[i]);
            x->has_effects |= may_change(x, inst->args[i]) || is_referred_to(x, inst, i);
        }
        bool writes = op_has(inst->op, OP_PLAIN) && op_has(inst->op, OP_WRITES);
        Val *root = writes ? ad_root(inst->args[0]) : NULL;
        if (root && !inst_contains(x->loop, root)) x->writes_memory = true;
        x->has_effects |= ad_inst_has_effects(x->ad, inst);
        for (int i = 0; i < inst->nargs && inst->op == OP_call; i++) {
            const Param *param = &inst->callee->params[i];
            if ((param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in && ad_root(inst->args[i]))
                x->writes_memory = true;
        }
        for (int i = 0; i < inst->nregions; i++) ad_survey(x, inst->regions[i]);
    }
}

static bool is_global(const Val *v) { return v->kind == VAL_inst && v->inst->op == OP_global; }

void ad_take_globals(Outline *x) {
    int kept = 0;
    for (int i = 0; i < x->captured.count; i++)
        if (is_global(x->captured.at[i])) vec_push(x->ad->arena, &x->globals, x->captured.at[i]);
        else x->captured.at[kept++] = x->captured.at[i];
    x->captured.count = kept;
}

bool ad_is_given_number(const Outline *x, const Val *v) {
    return !type_is_float(v->type) || (v->kind == VAL_param && v->region == x->func->body);
}

/* An object goes by address; what comes with a counterpart does so there, too. */
Param ad_captured_param(const Outline *x, Val *v) {
    bool object = v->type->kind == TYPE_pointer && ad_is_object(v);
    const Type *counterpart =
        v->kind == VAL_param && v->region == x->func->body ? x->func->params[v->index].counterpart : NULL;
    return (Param){.name = v->name,
                   .type = object ? v->type->args[0] : v->type,
                   .flags = object ? PARAM_BY_ADDRESS : 0,
                   .counterpart = counterpart};
}

/* ---- the function */

enum { LO, HI, SNAPS, FIRST };

static Func *declare(const Outline *x, const char *name) {
    Ad *ad = x->ad;
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    static const char *const names[] = {"lo", "hi", "snaps"};
    for (int i = 0; i < FIRST; i++)
        vec_push(ad->arena, &params, ((Param){.name = name_from(ad->m->names, names[i]), .type = word}));
    for (int i = 0; i < x->loop->nargs; i++) {
        const Val *v = x->loop->regions[1]->params[i];
        vec_push(ad->arena, &params, ((Param){.name = v->name, .type = v->type}));
        vec_push(ad->arena, &results, v->type);
    }
    for (int i = 0; i < x->captured.count; i++)
        vec_push(ad->arena, &params, ad_captured_param(x, x->captured.at[i]));
    Func *func = func_new(ad->m, format_text(ad->arena, "%s.%s", x->func->name->text, name));
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    func->flags |= FUNC_GENERATED | FUNC_NORMAL | (x->func->flags & FUNC_PRECISE);
    func->loc = x->loop->loc;
    return func;
}

static Val *param(const Seg *x, int index) { return x->run->body->params[index]; }

/* Iterations lo to hi of the loop as it is, from a given state on; the map knows what stands for captured values. */
Inst *ad_copy_loop(const Outline *x, Builder *b, CloneMap *map, Val *const *state, Val *lo, Val *hi) {
    Ad *ad = x->ad;
    int n = x->loop->nargs;
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    ValVec args = {0};
    for (int i = 0; i < n; i++) vec_push(ad->arena, &args, state[i]);
    vec_push(ad->arena, &args, lo);
    Inst *copy = build_inst(b, OP_loop, args.at, args.count, 0, 2);
    Region *cond = copy->regions[0], *body = copy->regions[1];
    for (int i = 0; i < n; i++) {
        const Val *old = x->loop->regions[1]->params[i];
        region_add_param(cond, old->type, old->name);
        clone_map_val(map, x->loop->regions[1]->params[i], region_add_param(body, old->type, old->name));
    }
    Val *at = region_add_param(cond, word, NULL), *now = region_add_param(body, word, NULL);
    Builder cb = build_at_end(cond);
    Val *go = build_binary(&cb, OP_lt, at, hi);
    build_yield(&cb, &go, 1);
    clone_region_into(map, x->loop->regions[1], body);
    Builder tail = build_before(body->last);
    inst_add_arg(body->last, build_binary(&tail, OP_add, now, ad_int64(ad, 1)));
    for (int i = 0; i <= n; i++) inst_add_result(copy, args.at[i]->type, NULL);
    return copy;
}

/* In a function made by `declare`. */
static Inst *copy_loop(const Outline *x, Builder *b, Func *func) {
    Val **params = func->body->params;
    CloneMap map = {.module = x->ad->m, .func = func};
    for (int i = 0; i < x->captured.count; i++)
        clone_map_val(&map, x->captured.at[i], params[FIRST + x->loop->nargs + i]);
    return ad_copy_loop(x, b, &map, params + FIRST, params[LO], params[HI]);
}

static Inst *call_run(Seg *x, Builder *b, Val *lo, Val *hi, Val *snaps, Val *const *state) {
    ValVec args = {0};
    Val *head[FIRST] = {lo, hi, snaps};
    for (int i = 0; i < FIRST; i++) vec_push(x->outline.ad->arena, &args, head[i]);
    for (int i = 0; i < x->outline.loop->nargs; i++) vec_push(x->outline.ad->arena, &args, state[i]);
    for (int i = 0; i < x->outline.captured.count; i++)
        vec_push(x->outline.ad->arena, &args, param(x, FIRST + x->outline.loop->nargs + i));
    return build_call(b, x->run, args.at, args.count);
}

static void fill_split(Seg *x, Region *region, Func *split, int64_t leaf) {
    Ad *ad = x->outline.ad;
    Builder b = build_at_end(region);
    Val *n = build_binary(&b, OP_sub, param(x, HI), param(x, LO)), *one = ad_int64(ad, 1),
        *zero = ad_int64(ad, 0);
    Val *split_args[3] = {n, param(x, SNAPS), ad_int64(ad, leaf)};
    Val *left = inst_result(build_call(&b, split, split_args, 3)),
        *mid = build_binary(&b, OP_add, param(x, LO), left);
    Inst *first = call_run(x, &b, param(x, LO), mid, param(x, SNAPS), x->run->body->params + FIRST);
    first->flags |= INST_AGAIN;
    Val *fewer = build_binary(&b, OP_sub, param(x, SNAPS), one);
    fewer = build_select(&b, build_binary(&b, OP_lt, fewer, zero), zero, fewer);
    Inst *second = call_run(x, &b, mid, param(x, HI), fewer, first->results);
    build_yield(&b, second->results, second->nresults);
}

static Func *make_plain(Seg *x) {
    Func *plain = declare(&x->outline, "plain");
    Builder b = build_at_end(func_begin(plain));
    build_return(&b, copy_loop(&x->outline, &b, plain)->results, plain->nresults);
    return plain;
}

static void fill(Seg *x, Func *split, int64_t leaf) {
    Ad *ad = x->outline.ad;
    Builder b = build_at_end(func_begin(x->run));
    Val *n = build_binary(&b, OP_sub, param(x, HI), param(x, LO));
    Val *small = build_binary(&b, OP_le, n, ad_int64(ad, leaf));
    Inst *test = build_if(&b, small, x->run->results, x->run->nresults);
    Builder small_case = build_at_end(test->regions[0]);
    build_yield(&small_case, copy_loop(&x->outline, &small_case, x->run)->results, x->run->nresults);
    fill_split(x, test->regions[1], split, leaf);
    build_return(&b, test->results, test->nresults);
}

/* ---- loops that ask for it */

static void segment(Ad *ad, Func *func, Inst *loop) {
    Seg x = {.outline = {.ad = ad, .func = func, .loop = loop}};
    int64_t budget = loop->hints.checkpoint;
    Func *split = ad->m->hooks.library ? ad->m->hooks.library(ad->m->hooks.user, "__checkpoint_split") : NULL;
    Val *trip = loop_trip(loop);
    loop->hints.checkpoint = 0;
    ad_survey(&x.outline, loop->regions[1]);
    if (!trip || x.outline.writes_memory || x.outline.has_effects || !split || loop->nargs == 0) {
        diag_report(ad->m->diags, DIAG_checkpoint_ignored, loop->loc,
                    !trip                     ? "how often it runs is not known when it starts"
                    : x.outline.writes_memory ? "it changes an array"
                                              : "it uses memory that may change");
        return;
    }
    x.run = declare(&x.outline, "run");
    int64_t leaf = budget / 2 > 1 ? budget / 2 : 1, snaps = budget - leaf > 0 ? budget - leaf : 1;
    AdFunc *library = ad_func(ad, split);
    fill(&x, library->flat, leaf);
    ad_func(ad, x.run)->plain = make_plain(&x);
    Builder b = build_before(loop);
    ValVec args = {0};
    vec_push(ad->arena, &args, ad_int64(ad, 0));
    vec_push(ad->arena, &args, trip);
    vec_push(ad->arena, &args, ad_int64(ad, snaps));
    for (int i = 0; i < loop->nargs; i++) vec_push(ad->arena, &args, loop->args[i]);
    for (int i = 0; i < x.outline.captured.count; i++) vec_push(ad->arena, &args, x.outline.captured.at[i]);
    Inst *call = build_call(&b, x.run, args.at, args.count);
    for (int i = 0; i < loop->nresults; i++) loop->results[i]->forward = call->results[i];
    inst_remove(loop);
}

static void segment_region(Ad *ad, Func *func, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OP_loop && inst->hints.checkpoint > 0) segment(ad, func, inst);
        else
            for (int i = 0; i < inst->nregions; i++) segment_region(ad, func, inst->regions[i]);
    }
}

static void find_hint(void *user, Inst *inst) {
    bool *found = user;
    *found |= inst->op == OP_loop && inst->hints.checkpoint > 0;
}

void ad_segment_loops(Ad *ad, Func *func) {
    bool found = false;
    region_walk(func->body, find_hint, &found);
    if (!found) return;
    segment_region(ad, func, func->body);
    ir_resolve_func(func);
}
