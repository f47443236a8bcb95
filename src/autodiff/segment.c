/* [Checkpoint(budget)]: a loop differentiated within a budget of states.
 *
 * The loop becomes a recursive function that runs iterations lo to hi:
 *
 *   run(lo, hi, snaps, state):  if hi - lo <= leaf: the loop itself
 *                               else: middle = run(lo, mid, snaps, state)       -- called again in the reverse pass
 *                                     run(mid, hi, snaps - 1, middle)
 *
 * Its derivative follows from the rules for any function: the state in the middle is kept, the right half is
 * reversed first, then the left half is run once more from its start and reversed. Half of the budget is for
 * such states, half for the iterations of a leaf. The split is the binomial one (Griewank): with s states and
 * r repetitions, C(s + r, s) leaves can be reversed. Where only the state in the middle is wanted, the loop
 * over lo to hi does instead of the recursion.
 *
 * The trip count must be known when the loop starts, and its state must be scalars: an array that the loop
 * writes is changed in place and cannot be taken back, nor can what it writes to buffers or through pointers.
 * What it reads there must still be the same when it runs again, which is certain of read-only buffers. */
#include "autodiff/ad.h"

typedef struct Seg {
    Outline outline;
    Func *run;
} Seg;

/* ---- the function */

enum { LO, HI, SNAPS, FIRST };

static Func *declare(const Outline *x, const char *name) {
    static const char *const words[] = {"lo", "hi", "snaps"};
    return ad_outline(x, name, words, FIRST, NULL);
}

static Val *param(const Seg *x, int index) { return x->run->body->params[index]; }

/* In a function made by `declare`. */
static Inst *copy_loop(const Outline *x, Builder *b, Func *func, CloneMap map) {
    Val **params = func->body->params;
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
    CloneMap map = ad_enter(&x->outline, plain);
    Builder b = build_at_end(plain->body);
    build_return(&b, copy_loop(&x->outline, &b, plain, map)->results, plain->nresults);
    return plain;
}

static void fill(Seg *x, Func *split, int64_t leaf) {
    Ad *ad = x->outline.ad;
    CloneMap map = ad_enter(&x->outline, x->run);
    Builder b = build_at_end(x->run->body);
    Val *n = build_binary(&b, OP_sub, param(x, HI), param(x, LO));
    Val *small = build_binary(&b, OP_le, n, ad_int64(ad, leaf));
    Inst *test = build_if(&b, small, x->run->results, x->run->nresults);
    Builder small_case = build_at_end(test->regions[0]);
    build_yield(&small_case, copy_loop(&x->outline, &small_case, x->run, map)->results, x->run->nresults);
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
    inst_replace(loop, ad_call_outline(&x.outline, &b, x.run, args));
}

typedef struct Segmenting {
    Ad *ad;
    Func *func;
} Segmenting;

static bool segment_marked(void *user, Inst *loop) {
    const Segmenting *x = user;
    if (loop->hints.checkpoint <= 0) return false;
    segment(x->ad, x->func, loop);
    return true;
}

void ad_segment_loops(Ad *ad, Func *func) {
    if (ad_for_loops(func->body, segment_marked, &(Segmenting){ad, func})) ir_resolve_func(func);
}
