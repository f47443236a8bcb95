/* Unzip: a linearized function falls into a primal and a differential half, control flow in both.
 *
 * The regions of the function become the primal half; the differential instructions move to regions of their own, under twins of
 * the control flow around them. The differential half goes on naming primal values of the regions it mirrors: that is made
 * legal by checkpoint. Primal loops with a twin get a counter, so that the reversed loop knows how often to run. */
#include "autodiff/autodiff.h"

/* ---- splitting */

static Region *split_region(Ad *ad, Region *region, const bool *is_diff);

static Val **take_vals(Ad *ad, Val **vals, int *n, const bool *is_diff, int *ntaken) {
    Val **taken = arena_array(ad->arena, Val *, *n ? *n : 1);
    int kept = 0;
    *ntaken = 0;
    for (int i = 0; i < *n; i++) {
        if (is_diff[i]) taken[(*ntaken)++] = vals[i];
        else vals[kept++] = vals[i];
    }
    *n = kept;
    for (int i = 0; i < kept; i++) vals[i]->index = (uint16_t)i;
    for (int i = 0; i < *ntaken; i++) taken[i]->index = (uint16_t)i;
    return taken;
}

static Val **take_args(Ad *ad, Inst *inst, const bool *is_diff, int *ntaken) {
    Val **taken = arena_array(ad->arena, Val *, inst->nargs ? inst->nargs : 1);
    int kept = 0;
    *ntaken = 0;
    for (int i = 0; i < inst->nargs; i++) {
        if (is_diff[i]) taken[(*ntaken)++] = inst->args[i];
        else inst->args[kept++] = inst->args[i];
    }
    inst->nargs = kept;
    return taken;
}

static bool *diff_positions(Ad *ad, Val *const *vals, int n) {
    bool *is_diff = arena_array(ad->arena, bool, n ? n : 1);
    for (int i = 0; i < n; i++) is_diff[i] = (vals[i]->flags & VAL_DIFF) != 0;
    return is_diff;
}

/* The differential half of an `if`, `switch` or `loop`; its note is the primal half. */
static Inst *split_control(Ad *ad, Inst *inst) {
    int n = inst->nresults, ntaken;
    bool *is_diff = diff_positions(ad, inst->results, n);
    Inst *twin = inst_new(inst->func, (Op)inst->op, 0, 0, inst->nregions);
    twin->tag = TAG_diff;
    twin->loc = inst->loc;
    twin->note = inst;
    if (inst->op == OP_loop) {
        twin->hints = inst->hints;
        twin->args = take_args(ad, inst, is_diff, &ntaken);
        twin->nargs = ntaken;
    } else {
        inst_add_arg(twin, inst->args[0]);
        if (inst->op == OP_switch) {
            twin->cases = inst->cases;
            twin->ncases = inst->ncases;
        }
    }
    for (int k = 0; k < inst->nregions; k++) {
        bool *none = arena_array(ad->arena, bool, n + 1);
        bool condition = inst->op == OP_loop && k == 0;
        twin->regions[k] = split_region(ad, inst->regions[k], condition ? none : is_diff);
        twin->regions[k]->owner = twin;
    }
    twin->results = take_vals(ad, inst->results, &inst->nresults, is_diff, &ntaken);
    twin->nresults = ntaken;
    for (int i = 0; i < ntaken; i++) twin->results[i]->inst = twin;
    inst->tag = TAG_primal;
    return twin;
}

/* `is_diff`: which operands of the region's last instruction are differentials. */
static Region *split_region(Ad *ad, Region *region, const bool *is_diff) {
    Region *half = region_new(region->func, NULL);
    int ntaken;
    half->params = take_vals(ad, region->params, &region->nparams,
                             diff_positions(ad, region->params, region->nparams), &ntaken);
    half->nparams = ntaken;
    for (int i = 0; i < ntaken; i++) half->params[i]->region = half;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (op_has(inst->op, OP_ENDS)) {
            Inst *end = inst_new(inst->func, OP_yield, 0, 0, 0);
            end->args = take_args(ad, inst, is_diff, &ntaken);
            end->nargs = ntaken;
            inst_append(half, end);
        } else if (inst->tag == TAG_diff) {
            inst_remove(inst);
            inst_append(half, inst);
        } else if (inst->tag == TAG_mixed) inst_append(half, split_control(ad, inst));
    }
    return half;
}

Halves ad_unzip(Ad *ad, AdFunc *f, Func *linear) {
    bool *is_diff = arena_array(ad->arena, bool, linear->nresults + 1);
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].fdout >= 0) is_diff[f->leaves.at[i].fdout] = true;
    Halves halves = {.primal = linear->body};
    halves.diff = split_region(ad, linear->body, is_diff);
    return halves;
}

/* ---- induction variables and trip counts */

static const Inst *def_of(const Val *v, Op op) {
    return v->kind == VAL_inst && v->inst->op == op ? v->inst : NULL;
}

static bool is_zero_int(const Val *v) {
    int64_t value;
    return val_is_int(v, &value) && value == 0;
}

/* state == 0, for a state that is carried value `param` */
static bool tests_running(const Val *v, const Val *state) {
    const Inst *eq = def_of(v, OP_eq);
    return eq && ((eq->args[0] == state && is_zero_int(eq->args[1])) ||
                  (eq->args[1] == state && is_zero_int(eq->args[0])));
}

/* For a condition that tests the exit state first: which carried value the state is; -1: none. */
static int state_index(const Region *cond) {
    const Val *go = cond->last->args[0];
    const Inst *choice = def_of(go, OP_if), *select = def_of(go, OP_select), *both = def_of(go, OP_and);
    for (int i = 0; i < cond->nparams; i++) {
        const Val *state = cond->params[i];
        if (tests_running(go, state)) return i;
        if (choice && tests_running(choice->args[0], state) && is_zero_int(choice->regions[1]->last->args[0]))
            return i;
        if (select && tests_running(select->args[0], state) && is_zero_int(select->args[2])) return i;
        if (both && (tests_running(both->args[0], state) || tests_running(both->args[1], state))) return i;
    }
    return -1;
}

static bool adds_constant(const Val *v, const Val *param, int64_t *step) {
    const Inst *add = def_of(v, OP_add), *sub = def_of(v, OP_sub);
    if (add && add->args[0] == param && val_is_int(add->args[1], step)) return true;
    if (add && add->args[1] == param && val_is_int(add->args[0], step)) return true;
    if (!sub || sub->args[0] != param || !val_is_int(sub->args[1], step)) return false;
    *step = -*step;
    return true;
}

/* A step under the guard of the exit state counts: where the guard fails the loop ends, so that no later iteration sees
 * the value. The guard must be the very state that the condition tests. */
static const Val *unguarded(const Inst *loop, const Val *v) {
    const Region *cond = loop->regions[0], *body = loop->regions[1];
    int state = state_index(cond);
    if (state < 0) return v;
    const Val *next_state = body->last->args[state];
    const Inst *test = def_of(v, OP_if), *select = def_of(v, OP_select);
    if (test && tests_running(test->args[0], next_state)) return test->regions[0]->last->args[v->index];
    if (select && tests_running(select->args[0], next_state)) return select->args[1];
    return v;
}

bool ad_step_of(const Inst *loop, int index, int64_t *step) {
    const Region *body = loop->regions[1];
    const Val *param = body->params[index];
    if (!type_is_integer(param->type)) return false;
    const Val *next = body->last->args[index];
    if (adds_constant(next, param, step)) return true;
    return adds_constant(unguarded(loop, next), param, step);
}

static bool is_outside(const Val *v, const Region *region) {
    if (val_is_const(v)) return true;
    const Region *home = v->kind == VAL_param ? v->region : v->inst->parent;
    for (; home; home = home->owner ? home->owner->parent : NULL)
        if (home == region) return false;
    return true;
}

static int param_index(const Region *region, const Val *v) {
    for (int i = 0; i < region->nparams; i++)
        if (region->params[i] == v) return i;
    return -1;
}

/* while i < n, i <= n, n < i, n <= i with a constant step in the right direction: the number of iterations, before the loop */
Val *ad_known_trip(Ad *ad, Inst *loop) {
    const Region *cond = loop->regions[0];
    const Inst *test = cond->first;
    if (!test || test->next != cond->last || (test->op != OP_lt && test->op != OP_le) ||
        cond->last->args[0] != test->results[0])
        return NULL;
    Val *a = test->args[0], *b = test->args[1];
    int ia = param_index(cond, a), ib = param_index(cond, b);
    if ((ia >= 0) == (ib >= 0) || !type_is_integer(a->type)) return NULL;
    bool up = ia >= 0;
    int index = up ? ia : ib;
    Val *bound = up ? b : a;
    int64_t step;
    if (!is_outside(bound, cond) || !ad_step_of(loop, index, &step) || step == 0 || (step > 0) != up)
        return NULL;
    Builder bd = build_before(loop);
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    Val *start = build_convert(&bd, loop->args[index], word), *limit = build_convert(&bd, bound, word);
    Val *low = up ? start : limit, *high = up ? limit : start;
    int64_t size = step > 0 ? step : -step;
    Val *span = build_binary(&bd, OP_add, build_binary(&bd, OP_sub, high, low),
                             ad_int64(ad, size - 1 + (test->op == OP_le)));
    Val *trip = size > 1 ? build_binary(&bd, OP_div, span, ad_int64(ad, size)) : span;
    Val *zero = ad_int64(ad, 0);
    trip = build_select(&bd, build_binary(&bd, OP_lt, zero, trip), trip, zero);
    if (trip->kind == VAL_inst && !trip->name) trip->name = name_from(ad->m->names, "trip");
    return trip;
}

LoopInfo *ad_loop_info(Ad *ad, Inst *loop) {
    (void)ad;
    return loop->note;
}

static void count_loop(Ad *ad, Inst *loop) {
    LoopInfo *info = arena_new(ad->arena, LoopInfo);
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    Name name = name_from(ad->m->names, "it");
    info->trip = ad_known_trip(ad, loop);
    info->known = info->trip != NULL;
    inst_add_arg(loop, ad_int64(ad, 0));
    region_add_param(loop->regions[0], word, name);
    info->counter = region_add_param(loop->regions[1], word, name);
    Inst *yield = loop->regions[1]->last;
    Builder b = build_before(yield);
    inst_add_arg(yield, build_binary(&b, OP_add, info->counter, ad_int64(ad, 1)));
    Val *last = inst_add_result(loop, word, name_from(ad->m->names, "trip"));
    if (!info->known) info->trip = last;
    loop->note = info;
}

static void count_region(Ad *ad, const Region *diff) {
    for (Inst *twin = diff->first; twin; twin = twin->next) {
        for (int i = 0; i < twin->nregions; i++) count_region(ad, twin->regions[i]);
        if (twin->op == OP_loop) count_loop(ad, twin->note);
    }
}

void ad_count_trips(Ad *ad, const Region *diff) { count_region(ad, diff); }
