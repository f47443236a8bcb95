/* Unzip: a linearized function falls into a primal and a differential half, control flow in both.
 *
 * The regions of the function become the primal half; the differential instructions move to regions of their
 * own, under twins of the control flow around them. The differential half goes on naming primal values of the
 * regions it mirrors: that is made legal by checkpoint. Primal loops with a twin get a counter, so that the
 * reversed loop knows how often to run. */
#include "autodiff/ad.h"

/* ---- splitting */

static Region *split_region(Ad *ad, Making *x, Region *region, const bool *is_diff);

/* The differentials among them, which are left out of the list from then on. */
static Val **take(Ad *ad, Val **vals, int *n, const bool *is_diff, int *ntaken) {
    Val **taken = arena_array(ad->arena, Val *, *n ? *n : 1);
    int kept = 0;
    *ntaken = 0;
    for (int i = 0; i < *n; i++) {
        if (is_diff[i]) taken[(*ntaken)++] = vals[i];
        else vals[kept++] = vals[i];
    }
    *n = kept;
    return taken;
}

/* Of results, or parameters. */
static Val **take_vals(Ad *ad, Val **vals, int *n, const bool *is_diff, int *ntaken) {
    Val **taken = take(ad, vals, n, is_diff, ntaken);
    for (int i = 0; i < *n; i++) vals[i]->index = i;
    for (int i = 0; i < *ntaken; i++) taken[i]->index = i;
    return taken;
}

static bool *diff_positions(Ad *ad, Val *const *vals, int n) {
    bool *is_diff = arena_array(ad->arena, bool, n ? n : 1);
    for (int i = 0; i < n; i++) is_diff[i] = (vals[i]->flags & VAL_DIFF) != 0;
    return is_diff;
}

/* The differential half of an `if`, `switch` or `loop`. */
static Inst *split_control(Ad *ad, Making *x, Inst *inst) {
    int n = inst->nresults, ntaken;
    bool *is_diff = diff_positions(ad, inst->results, n);
    Inst *twin = inst_new(inst->func, (Op)inst->op, 0, 0, inst->nregions);
    twin->tag = TAG_diff;
    twin->loc = inst->loc;
    map_put(ad->arena, &x->twins, PTR_KEY(twin), inst);
    if (inst->op == OP_loop) {
        twin->hints = inst->hints;
        twin->args = take(ad, inst->args, &inst->nargs, is_diff, &ntaken);
        twin->nargs = ntaken;
    } else {
        inst_add_arg(twin, inst->args[0]);
        inst_copy_cases(inst, twin);
    }
    for (int k = 0; k < inst->nregions; k++) {
        bool *none = arena_array(ad->arena, bool, n + 1);
        bool condition = inst->op == OP_loop && k == 0;
        twin->regions[k] = split_region(ad, x, inst->regions[k], condition ? none : is_diff);
        twin->regions[k]->owner = twin;
    }
    twin->results = take_vals(ad, inst->results, &inst->nresults, is_diff, &ntaken);
    twin->nresults = ntaken;
    for (int i = 0; i < ntaken; i++) twin->results[i]->inst = twin;
    inst->tag = TAG_primal;
    return twin;
}

/* `is_diff`: which operands of the region's last instruction are differentials. */
static Region *split_region(Ad *ad, Making *x, Region *region, const bool *is_diff) {
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
            end->args = take(ad, inst->args, &inst->nargs, is_diff, &ntaken);
            end->nargs = ntaken;
            inst_append(half, end);
        } else if (inst->tag == TAG_diff) {
            inst_remove(inst);
            inst_append(half, inst);
        } else if (inst->tag == TAG_mixed) inst_append(half, split_control(ad, x, inst));
    }
    return half;
}

void ad_unzip(Ad *ad, Making *x) {
    bool *is_diff = arena_array(ad->arena, bool, x->linear.results.count + 1);
    for (int i = 0; i < x->linear.results.count; i++)
        is_diff[i] = x->linear.results.at[i].role == AS_differential;
    x->primal = x->linear.func->body;
    x->diff = split_region(ad, x, x->primal, is_diff);
}

/* ---- trip counts */

LoopInfo *ad_loop_info(const Making *x, const Inst *loop) { return map_get(&x->loops, PTR_KEY(loop)); }

static bool is_made_in(const Inst *loop, const Inst *inst) {
    bool inside = false;
    for (int i = 0; i < inst->nargs && !inside; i++) inside = inst_contains(loop, inst->args[i]);
    return inside;
}

void ad_hoist(const Inst *loop, Inst *from) {
    for (Inst *inst = from, *next; inst != loop; inst = next) {
        next = inst->next;
        Inst *outer = inst->parent->owner, *before = NULL;
        bool movable = op_has(inst->op, OP_PURE) && inst->nregions == 0;
        for (; movable && outer && !(outer->op == OP_loop && is_made_in(outer, inst));
             outer = outer->parent->owner)
            if (outer->op == OP_loop) before = outer;
        if (!before) continue;
        inst_remove(inst);
        inst_insert_before(before, inst);
    }
}

static void count_loop(Ad *ad, Making *x, Inst *loop) {
    LoopInfo *info = arena_new(ad->arena, LoopInfo);
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    Name name = name_from(ad->m->names, "it");
    Inst *last = loop->prev;
    info->trip = loop_trip(loop);
    info->known = info->trip != NULL;
    ad_hoist(loop, last ? last->next : loop->parent->first);
    inst_add_arg(loop, ad_int64(ad, 0));
    region_add_param(loop->regions[0], word, name);
    info->counter = region_add_param(loop->regions[1], word, name);
    Inst *yield = loop->regions[1]->last;
    Builder b = build_before(yield);
    inst_add_arg(yield, build_binary(&b, OP_add, info->counter, ad_int64(ad, 1)));
    Val *counted = inst_add_result(loop, word, name_from(ad->m->names, "trip"));
    if (!info->known) info->trip = counted;
    map_put(ad->arena, &x->loops, PTR_KEY(loop), info);
}

static void count_region(Ad *ad, Making *x, const Region *diff) {
    for (Inst *twin = diff->first; twin; twin = twin->next) {
        for (int i = 0; i < twin->nregions; i++) count_region(ad, x, twin->regions[i]);
        if (twin->op == OP_loop) count_loop(ad, x, map_get(&x->twins, PTR_KEY(twin)));
    }
}

void ad_count_trips(Ad *ad, Making *x) { count_region(ad, x, x->diff); }

bool ad_is_stable(const Making *x, Val *address, const Inst *at) {
    const Val *root = ad_root(address);
    int stable = root && root->id < x->nstable ? x->stable[root->id] : STABLE_not;
    return stable == STABLE_always || (stable == STABLE_settled && ad_is_settled_array(x->settled, root, at));
}
