/* Transpose: the differential half, backwards.
 *
 * Only linear operations occur there. Each is undone in reverse order: the adjoint of its result is handed on
 * to its operands. The adjoint of a value is the sum of what its uses contributed; a region passes on what it
 * contributed to values from outside ("captured"): an `if` yields it, a loop carries it as an accumulator.
 * Shadow memory is the same memory, now holding adjoints: a load adds to it, a store takes from it and leaves
 * zero. A local shadow is needed first in reverse and starts as zeros, so it is made at the head of the
 * reversed region. */
#include "autodiff/ad.h"

typedef struct Tr {
    Ad *ad;
    Making *making;
    Untaken *untaken;
    bool takes; /* the loop at work reads derivatives in memory */
} Tr;

/* Adjoints so far, of values in and outside the region at work. */
typedef struct Adjoints {
    Map map; /* Val -> Val; NULL once taken */
} Adjoints;

static Val *take(const Adjoints *adj, const Val *v) { return map_get(&adj->map, PTR_KEY(v)); }

static void put(Tr *t, Adjoints *adj, const Val *v, Val *g) {
    map_put(t->ad->arena, &adj->map, PTR_KEY(v), g);
}

/* The adjoint is called like the differential. */
static Val *take_out(Tr *t, Adjoints *adj, const Val *v) {
    Val *g = take(adj, v);
    if (g) put(t, adj, v, NULL);
    if (g && g->kind == VAL_inst && !g->name) g->name = v->name;
    return g;
}

static Name name_like(Tr *t, const Val *v, const char *otherwise) {
    return v->name ? v->name : name_from(t->ad->m->names, otherwise);
}

static void bump(Tr *t, Builder *b, Adjoints *adj, Val *v, Val *g) {
    if (!g || val_is_const(v) || (val_is_const(g) && val_is_zero(g))) return;
    Val *before = take(adj, v);
    put(t, adj, v, before ? build_sum(b, before, g) : g);
}

static Val *zero(Tr *t, const Type *type) { return ad_zero(t->ad, type); }

static bool is_diff(const Val *v) { return (v->flags & VAL_DIFF) != 0; }

/* ---- regions */

static Region *transpose_region(Tr *t, Region *d, Region *reverse, Builder *b, Adjoints *adj, Region *primal);

/* Local shadows, at the head. */
static void open_shadows(Tr *t, const Region *d, Builder *b, InstVec *tapes) {
    for (Inst *inst = d->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op != OP_var && inst->op != OP_tape_open) continue;
        inst_remove(inst);
        inst_append(b->region, inst);
        if (inst->op == OP_var) ad_zero_shadow(t->ad, b, inst->results[0]);
        if (inst->op == OP_tape_open) vec_push(t->ad->arena, tapes, inst);
    }
}

/* ---- linear arithmetic */

/* Whether only the last round of the primal loop needs it. */
static Val *with_guard(const Tr *t, const Val *differential, Val *v) {
    bool is_guarded = v->kind == VAL_inst && (v->inst->op == OP_scale || v->inst->op == OP_ratio);
    if (is_guarded && ad_is_carried(t->untaken, differential)) v->inst->flags |= INST_CARRIED;
    return v;
}

/* Where both will do, a factor is doubled, and not the adjoint, for which others wait. What is so large that
 * twice of it is infinite must not meet an adjoint that is to stay zero. */
static Val *product(Tr *t, Builder *b, const Val *differential, Val *factor, Val *g) {
    Op op = ad_product(t->untaken, differential, factor);
    Val *half = ad_is_firm(t->untaken, differential) && !val_is_const(factor) ? val_half(g) : NULL;
    Val *result =
        half ? build_binary(b, op, build_sum(b, factor, factor), half) : build_binary(b, op, factor, g);
    return with_guard(t, differential, result);
}

static void t_arithmetic(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    Val *g = take_out(t, adj, inst->results[0]);
    if (!g) return;
    Val **a = inst->args;
    switch ((Op)inst->op) {
    case OP_add:
        bump(t, b, adj, a[0], g);
        bump(t, b, adj, a[1], g);
        return;
    case OP_sub:
        if (a[0] == a[1]) return; /* adding and taking away a large g would leave nothing of what was there */
        bump(t, b, adj, a[0], g);
        if (!val_is_const(a[1])) bump(t, b, adj, a[1], build_unary(b, OP_neg, g));
        return;
    case OP_neg: bump(t, b, adj, a[0], build_unary(b, OP_neg, g)); return;
    case OP_mul:
    case OP_scale: {
        int d = is_diff(a[1]) ? 1 : 0;
        bool by_factor = inst->op == OP_scale && d == 0; /* that is what must keep it zero */
        bump(t, b, adj, a[d],
             by_factor              ? build_binary(b, OP_scale, g, a[1])
             : inst->op == OP_scale ? build_binary(b, OP_scale, a[1 - d], g)
                                    : product(t, b, inst->results[0], a[1 - d], g));
        return;
    }
    case OP_div:
    case OP_ratio: {
        Op op = inst->op == OP_ratio ? OP_ratio : ad_quotient(t->untaken, inst->results[0], a[1]);
        bump(t, b, adj, a[0], with_guard(t, inst->results[0], build_quotient(b, op, g, a[1])));
        return;
    }
    case OP_select:
        if (!val_is_const(a[1])) bump(t, b, adj, a[1], build_select(b, a[0], g, zero(t, g->type)));
        if (!val_is_const(a[2])) bump(t, b, adj, a[2], build_select(b, a[0], zero(t, g->type), g));
        return;
    case OP_convert: bump(t, b, adj, a[0], build_convert(b, g, a[0]->type)); return;
    default:
        arena_fault(t->ad->arena, format_text(t->ad->arena, "'%s' is not linear in a differential",
                                              op_info[inst->op].name));
    }
}

/* ---- shadow memory */

static Val *address(Builder *b, Val *v) { return build_place_again(b, v, NULL, NULL); }

static void t_load(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    Val *g = take_out(t, adj, inst->results[0]);
    if (!g) return;
    Val *at = address(b, inst->args[0]);
    build_store(b, at, build_sum(b, build_load(b, at), g));
}

static void t_store(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    Val *at = address(b, inst->args[0]);
    if (!val_is_const(inst->args[1])) bump(t, b, adj, inst->args[1], build_load(b, at));
    build_store(b, at, zero(t, inst->args[1]->type));
}

static void t_copy(Tr *t, Builder *b, Inst *inst) {
    Val *to = address(b, inst->args[0]), *from = address(b, inst->args[1]);
    if (inst->op == OP_acc) {
        ad_accumulate(t->ad, b, from, to);
        return;
    }
    if (to == from) return;
    Val *adjoint = to;
    if (ir_root(to) == ir_root(from)) { /* rows of one array: they may be the same */
        adjoint = build_var(b, to->type->args[0], NULL, true);
        build_copy(b, adjoint, to);
        ad_zero_object(t->ad, b, to);
    }
    ad_accumulate(t->ad, b, from, adjoint);
    if (adjoint == to) ad_zero_object(t->ad, b, to);
}

static void t_tape(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    Val **a = inst->args;
    switch ((Op)inst->op) {
    case OP_tape_push: {
        const Type *type = a[1]->type;
        Inst *pop = ad_tape_inst(b, OP_tape_pop, a, 1, NULL);
        bump(t, b, adj, a[1], inst_add_result(pop, type, NULL));
        return;
    }
    case OP_tape_pop: {
        Val *g = take_out(t, adj, inst->results[0]);
        Val *args[2] = {a[0], g ? g : zero(t, inst->results[0]->type)};
        ad_tape_inst(b, OP_tape_push, args, 2, NULL);
        return;
    }
    case OP_tape_grow: ad_tape_inst(b, OP_tape_shrink, a, 2, inst->type); return;
    case OP_tape_shrink: {
        Inst *grow = ad_tape_inst(b, OP_tape_grow, a, 2, inst->type);
        inst_add_result(grow, type_basic(t->ad->m->types, TYPE_int64), NULL);
        return;
    }
    case OP_tape_load: {
        Val *g = take_out(t, adj, inst->results[0]);
        if (!g) return;
        Inst *load = ad_tape_inst(b, OP_tape_load, a, 2, NULL);
        Val *before = inst_add_result(load, g->type, NULL), *args[3] = {a[0], a[1], build_sum(b, before, g)};
        ad_tape_inst(b, OP_tape_store, args, 3, NULL);
        return;
    }
    default: {
        Inst *load = ad_tape_inst(b, OP_tape_load, a, 2, NULL);
        Val *g = inst_add_result(load, a[2]->type, NULL), *args[3] = {a[0], a[1], zero(t, a[2]->type)};
        bump(t, b, adj, a[2], g);
        ad_tape_inst(b, OP_tape_store, args, 3, NULL);
        return;
    }
    }
}

/* ---- control flow */

typedef struct Captured {
    VEC(Val *) vals;
} Captured;

/* Values from outside that a region contributed to. */
static void add_captured(Tr *t, Captured *captured, const Adjoints *adj) {
    for (int i = 0; i < adj->map.count; i++) {
        Val *v = (Val *)(uintptr_t)adj->map.entries[i].key;
        if (!adj->map.entries[i].value) continue;
        bool known = false;
        for (int k = 0; k < captured->vals.count && !known; k++) known = captured->vals.at[k] == v;
        if (!known) vec_push(t->ad->arena, &captured->vals, v);
    }
}

/* An `if` or `switch`, reversed. */
typedef struct Branches {
    Inst *twin, *primal;
    Region **regions;
    Adjoints *inner; /* by region */
    Captured captured;
    bool empty;
} Branches;

static void reverse_branch(Tr *t, Branches *x, int k, Val *const *adjoints) {
    x->regions[k] = region_new(t->making->linear.func, NULL);
    Builder b = build_at_end(x->regions[k]);
    const Inst *yield = x->twin->regions[k]->last;
    for (int i = 0; i < x->twin->nresults; i++) bump(t, &b, &x->inner[k], yield->args[i], adjoints[i]);
    transpose_region(t, x->twin->regions[k], x->regions[k], &b, &x->inner[k], x->primal->regions[k]);
    add_captured(t, &x->captured, &x->inner[k]);
    x->empty &= x->regions[k]->first == NULL;
}

static void end_branch(Tr *t, const Branches *x, Inst *reverse, int k) {
    reverse->regions[k] = x->regions[k];
    x->regions[k]->owner = reverse;
    Builder b = build_at_end(x->regions[k]);
    ValVec values = {0};
    for (int i = 0; i < x->captured.vals.count; i++) {
        const Val *v = x->captured.vals.at[i];
        Val *g = take(&x->inner[k], v);
        vec_push(t->ad->arena, &values, g ? g : zero(t, v->type));
    }
    build_yield(&b, values.at, values.count);
}

static void t_branches(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    int n = inst->nregions;
    Branches x = {.twin = inst, .primal = map_get(&t->making->twins, PTR_KEY(inst)), .empty = true};
    x.regions = arena_array(t->ad->arena, Region *, n);
    x.inner = arena_array(t->ad->arena, Adjoints, n);
    Val **adjoints = arena_array(t->ad->arena, Val *, inst->nresults ? inst->nresults : 1);
    for (int i = 0; i < inst->nresults; i++) adjoints[i] = take_out(t, adj, inst->results[i]);
    for (int k = 0; k < n; k++) reverse_branch(t, &x, k, adjoints);
    if (x.empty && x.captured.vals.count == 0) return;
    Inst *reverse = build_inst(b, (Op)inst->op, inst->args, 1, 0, n);
    inst_copy_cases(inst, reverse);
    map_put(t->ad->arena, &t->making->mirror, PTR_KEY(x.primal), reverse);
    for (int k = 0; k < n; k++) end_branch(t, &x, reverse, k);
    for (int i = 0; i < x.captured.vals.count; i++) {
        Val *v = x.captured.vals.at[i], *g = inst_add_result(reverse, v->type, name_like(t, v, "g"));
        bump(t, b, adj, v, g);
    }
}

/* A loop, reversed: it counts the trip count down. By carried value: */
typedef struct BackLoop {
    Inst *twin, *primal;
    LoopInfo *info;
    Val **starts; /* adjoints from behind the loop; NULL: zero */
    Val **bars;   /* parameters of the reversed body */
    Val **nexts;  /* what the reversed body hands on; NULL: zero */
    Region *body;
    Builder b; /* at its end */
    Adjoints inner;
    Captured captured;
    bool takes; /* LoopHints.takes */
} BackLoop;

static Val **values_for(Tr *t, const Inst *inst) {
    return arena_array(t->ad->arena, Val *, inst->nresults ? inst->nresults : 1);
}

/* `it` is the index of the primal iteration. */
static void begin_body(Tr *t, BackLoop *x) {
    Ad *ad = t->ad;
    Region *d = x->twin->regions[1];
    x->body = region_new(t->making->linear.func, NULL);
    Val *left =
        region_add_param(x->body, type_basic(ad->m->types, TYPE_int64), name_from(ad->m->names, "left"));
    for (int i = 0; i < x->twin->nresults; i++)
        x->bars[i] = region_add_param(x->body, d->params[i]->type, name_like(t, d->params[i], "g"));
    x->b = build_at_end(x->body);
    x->b.no_fold = true;
    x->info->it = build_binary(&x->b, OP_sub, left, ad_int64(ad, 1));
    x->b.no_fold = false;
    x->info->it->name = name_from(ad->m->names, "it");
}

/* Whether anything happens in it. */
static bool reverse_body(Tr *t, BackLoop *x) {
    Region *d = x->twin->regions[1];
    int n = x->twin->nresults;
    for (int i = 0; i < n; i++) bump(t, &x->b, &x->inner, d->last->args[i], x->bars[i]);
    transpose_region(t, d, x->body, &x->b, &x->inner, x->primal->regions[1]);
    bool idle = x->body->first->next == NULL;
    for (int i = 0; i < n; i++) {
        x->nexts[i] = take_out(t, &x->inner, d->params[i]);
        idle &= x->nexts[i] == x->bars[i];
    }
    add_captured(t, &x->captured, &x->inner);
    return !idle || x->captured.vals.count > 0;
}

/* Ends the body; the result is what the loop starts with. */
static ValVec end_body(Tr *t, BackLoop *x) {
    Arena *arena = t->ad->arena;
    ValVec args = {0}, yields = {0};
    vec_push(arena, &args, x->info->trip);
    vec_push(arena, &yields, x->info->it);
    for (int i = 0; i < x->twin->nresults; i++) {
        vec_push(arena, &args, x->starts[i] ? x->starts[i] : zero(t, x->bars[i]->type));
        vec_push(arena, &yields, x->nexts[i] ? x->nexts[i] : zero(t, x->bars[i]->type));
    }
    for (int i = 0; i < x->captured.vals.count; i++) {
        const Val *v = x->captured.vals.at[i];
        Val *sum = region_add_param(x->body, v->type, name_like(t, v, "sum"));
        vec_push(arena, &args, zero(t, v->type));
        vec_push(arena, &yields, build_sum(&x->b, sum, take(&x->inner, v)));
    }
    build_yield(&x->b, yields.at, yields.count);
    return args;
}

static Inst *close_loop(Tr *t, const BackLoop *x, Builder *b, const ValVec *args) {
    Inst *reverse = build_inst(b, OP_loop, args->at, args->count, 0, 2);
    reverse->hints.back = true;
    reverse->hints.takes = x->takes;
    reverse->regions[1] = x->body;
    x->body->owner = reverse;
    Region *cond = reverse->regions[0];
    for (int i = 0; i < x->body->nparams; i++) {
        region_add_param(cond, x->body->params[i]->type, x->body->params[i]->name);
        inst_add_result(reverse, x->body->params[i]->type, x->body->params[i]->name);
    }
    Builder cb = build_at_end(cond);
    Val *go = build_binary(&cb, OP_lt, ad_int64(t->ad, 0), cond->params[0]);
    build_yield(&cb, &go, 1);
    return reverse;
}

static void t_loop(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    int n = inst->nresults;
    BackLoop x = {.twin = inst, .primal = map_get(&t->making->twins, PTR_KEY(inst))};
    x.info = ad_loop_info(t->making, x.primal);
    x.starts = values_for(t, inst), x.bars = values_for(t, inst), x.nexts = values_for(t, inst);
    for (int i = 0; i < n; i++) x.starts[i] = take_out(t, adj, inst->results[i]);
    begin_body(t, &x);
    bool outer = t->takes;
    t->takes = false;
    bool is_idle = !reverse_body(t, &x);
    x.takes = t->takes;
    t->takes |= outer;
    if (is_idle) {
        x.info->it = NULL;
        for (int i = 0; i < n; i++) bump(t, b, adj, inst->args[i], x.starts[i]);
        return;
    }
    ValVec args = end_body(t, &x);
    Inst *reverse = x.info->reverse = close_loop(t, &x, b, &args);
    map_put(t->ad->arena, &t->making->mirror, PTR_KEY(x.primal), reverse);
    for (int i = 0; i < n; i++) bump(t, b, adj, inst->args[i], reverse->results[1 + i]);
    for (int i = 0; i < x.captured.vals.count; i++)
        bump(t, b, adj, x.captured.vals.at[i], reverse->results[1 + n + i]);
}

/* ---- calls */

/* A call of the differential half, and what is known of it. */
typedef struct Back {
    Tr *t;
    Builder *b;
    const CallNote *note;
    AdFunc *callee;
    Val **inputs;   /* by leaf: differentials that it was given */
    Val **adjoints; /* by leaf: of its results; NULL: zero */
    Val **duals;    /* by leaf: counterparts, in the reverse */
    Val **present;  /* by leaf: flags of optionals that it gave */
    Val **kept;     /* primal arguments, as ad_keep_arguments has them; NULL: those of the call will do */
    ValVec slots;
    Val *tape; /* of the reverse, or of the call's own */
} Back;

/* Is there anything that the call could pass back? */
static bool matters(const Back *x) {
    bool outputs = false, duals = false;
    for (int i = 0; i < x->callee->leaves.count; i++) {
        const Leaf *leaf = &x->callee->leaves.at[i];
        if (x->adjoints[i]) return true;
        if (leaf->by_ref && leaf->diff && leaf->dir != DIR_in) return true;
        if (leaf->diff && !leaf->by_ref && leaf->type->kind == TYPE_tape) return true;
        outputs |= ad_has_role(leaf, AS_seed, false);
        duals |= leaf->dual;
    }
    if (!outputs && (duals || ad_has(x->t->ad, x->callee, AD_sources))) return true;
    return ad_is_sink(x->t->ad, &x->note->plan);
}

static bool *stable_leaves(Tr *t, AdFunc *callee, const Inst *call) {
    bool *stable = arena_array(t->ad->arena, bool, callee->leaves.count + 1);
    for (int i = 0; i < callee->leaves.count; i++) {
        const Leaf *leaf = &callee->leaves.at[i];
        stable[i] =
            leaf->by_ref && leaf->dir == DIR_in && ad_is_stable(t->making, call->args[leaf->in], call);
    }
    return stable;
}

static uint64_t firm_results(Tr *t, const Inst *tangent) {
    uint64_t firm = ALL_FIRM;
    for (int i = 0; i < tangent->nresults; i++)
        if (!ad_is_firm(t->untaken, tangent->results[i])) firm &= ~ad_result_bit(i);
    return firm;
}

/* What stands at a place of a function that takes adjoints back through the call. */
static Val *back_arg(void *user, const Place *place) {
    const Back *x = user;
    const Leaf *leaf = place->role == AS_slot ? NULL : &x->callee->leaves.at[place->leaf];
    switch (place->role) {
    case AS_primal:
        return x->kept ? x->kept[ad_leaf_of_pass(&x->note->plan, place->leaf)]
                       : ir_resolve(x->note->args[place->leaf]);
    case AS_state: return x->kept[place->leaf];
    case AS_counterpart: return x->duals[place->leaf];
    case AS_slot: return x->slots.at[place->leaf];
    case AS_seed: return x->adjoints[place->leaf] ? x->adjoints[place->leaf] : zero(x->t, leaf->dtype);
    case AS_shadow: return address(x->b, x->inputs[place->leaf]);
    case AS_present: return x->present[place->leaf];
    default: return x->tape;
    }
}

static void pass_back(const Back *x, const Made *made, Adjoints *adj) {
    Inst *call = ad_call(x->t->ad, x->b, made, back_arg, (void *)(uintptr_t)x);
    for (int i = 0; i < call->nresults; i++)
        bump(x->t, x->b, adj, x->inputs[made->results.at[i].leaf], call->results[i]);
}

/* The counterparts of references that are passed, in the reverse; arrays of them are kept as they were at the
 * call, if they may have changed. Kept last and taken first, before anything that the call itself keeps. */
static Val **kept_duals(Tr *t, Builder *b, const CallNote *note) {
    const Leaves *leaves = &note->plan.callee->leaves;
    Val **duals = arena_array(t->ad->arena, Val *, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++) {
        if (!ad_has_role(&leaves->at[i], AS_counterpart, false)) continue;
        bool keep = leaves->at[i].by_ref && !ad_is_stable(t->making, note->duals[i], note->primal);
        duals[i] = keep ? ad_keep_object(t->ad, t->making, note->primal, b, note->duals[i])
                        : address(b, note->duals[i]);
    }
    return duals;
}

static Val **kept_flags(Tr *t, Builder *b, const CallNote *note) {
    const CallPlan *plan = &note->plan;
    const Leaves *leaves = &plan->callee->leaves, *made = &(plan->pass ? plan->pass : plan->callee)->leaves;
    Val **flags = arena_array(t->ad->arena, Val *, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++) {
        if (!ad_has_role(&leaves->at[i], AS_present, false)) continue;
        int at = ad_leaf_of_pass(plan, i);
        flags[i] = leaves->at[i].by_ref
                       ? ad_keep_object(t->ad, t->making, note->primal, b, ir_resolve(note->args[at]))
                       : note->primal->results[made->at[at].out];
    }
    return flags;
}

static bool takes_pointer(const CallPlan *plan, int i) {
    const Leaf *leaf = &(plan->pass ? plan->pass : plan->callee)->leaves.at[i];
    return leaf->in >= 0 && !leaf->by_ref && leaf->type->kind == TYPE_pointer;
}

/* Pointers that have a counterpart are there for that, and nothing else may be read. */
ValVec ad_objects_read(Ad *ad, const CallNote *note, int leaf) {
    const CallPlan *plan = &note->plan;
    ValVec objects = {0};
    if (takes_pointer(plan, leaf)) ad_find_objects(ad, note->args[leaf], &objects);
    bool has_counterpart = objects.count && (plan->pass ? plan->pass : plan->callee)->leaves.at[leaf].dual;
    if (has_counterpart && !ad_reads_primal(ad, plan->custom)) objects.count = 0;
    return objects;
}

/* A variable holds something else by the time that a custom derivative would read it by its address, or
 * nothing at all: it is kept. That takes to know which one it is. */
static void refuse_unknown_objects(Tr *t, const CallNote *note, const Inst *inst) {
    const CallPlan *plan = &note->plan;
    const Leaves *leaves = &(plan->pass ? plan->pass : plan->callee)->leaves;
    for (int i = 0; i < leaves->count; i++) {
        ValVec objects = {0};
        bool are_known = !takes_pointer(plan, i) || ad_find_objects(t->ad, note->args[i], &objects);
        if (!are_known && ad_objects_read(t->ad, note, i).count)
            diag_report(t->ad->m->diags, DIAG_address_in_reverse, inst->loc);
    }
}

/* Likewise for one that is called further inside, if nothing changes on the way there. */
static void keep_objects(Back *x) {
    Tr *t = x->t;
    if (!ad_has(t->ad, x->callee, AD_looks_back)) return;
    x->kept = arena_array(t->ad->arena, Val *, x->callee->leaves.count + 1);
    for (int i = 0; i < x->callee->leaves.count; i++) {
        Val *arg = x->callee->leaves.at[i].in >= 0 ? ir_resolve(x->note->args[i]) : NULL;
        ValVec objects = {0};
        bool are_known = !takes_pointer(&x->note->plan, i) || ad_find_objects(t->ad, arg, &objects);
        x->kept[i] =
            objects.count ? ad_keep_address(t->ad, t->making, x->note->primal, x->b, arg, &objects) : arg;
        if (!are_known || (objects.count && ad_has(t->ad, x->callee, AD_effects)))
            diag_report(t->ad->m->diags, DIAG_address_in_reverse, x->note->primal->loc);
    }
}

/* A derivative written by the user gets the primal arguments as they were at the call. */
static void t_custom(Back *x, Adjoints *adj, const Inst *inst) {
    refuse_unknown_objects(x->t, x->note, inst);
    const Made *made = ad_bwd_adapter(x->t->ad, &x->note->plan);
    x->present = kept_flags(x->t, x->b, x->note);
    x->duals = kept_duals(x->t, x->b, x->note);
    x->kept = ad_keep_arguments(x->t->ad, x->t->making, x->note, x->b);
    pass_back(x, made, adj);
}

/* Whether the second run of a call may stand anywhere in the reverse: it depends on its arguments only, and
 * writes nothing. */
static bool can_move(const AdFunc *callee, const Inst *call, const Reverse *reverse) {
    bool free = !inst_has(call, INST_AGAIN) && !reverse->uses_tape && call->nresults > 0;
    for (int i = 0; i < callee->leaves.count; i++) {
        const Leaf *leaf = &callee->leaves.at[i];
        free &= !leaf->dual && (!leaf->by_ref || leaf->dir == DIR_in);
    }
    return free;
}

static bool leads_to_object(Ad *ad, const Leaf *leaf, const Inst *call) {
    ValVec objects = {0};
    if (leaf->in >= 0 && leaf->type->kind == TYPE_pointer)
        ad_find_objects(ad, call->args[leaf->in], &objects);
    return objects.count > 0;
}

/* The program says so of the function, and memory is as it was. What has effects does them again, and finds
 * its own. */
static bool is_to_be_recomputed(Tr *t, AdFunc *callee) {
    if (!callee->source || !(callee->source->flags & FUNC_RECOMPUTE)) return false;
    return t->making->steady || ad_has(t->ad, callee, AD_effects) || !ad_has(t->ad, callee, AD_looks_around);
}

/* Is the call made once more in the reverse? It must find its arguments as they were. */
static bool is_made_again(Tr *t, AdFunc *callee, const Inst *call) {
    bool again = inst_has(call, INST_AGAIN) || is_to_be_recomputed(t, callee);
    for (int i = 0; i < callee->leaves.count && again; i++) {
        const Leaf *leaf = &callee->leaves.at[i];
        again = leaf->by_ref ? ad_is_stable(t->making, call->args[leaf->in], call)
                             : !leads_to_object(t->ad, leaf, call);
    }
    return again &&
           !ad_gives_references(&callee->leaves); /* the counterparts are made by the pass that is run */
}

static Inst *call_again(Back *x, const Reverse *reverse) {
    Inst *call = x->note->primal, *again = build_inst(x->b, OP_call, call->args, call->nargs, 0, 0);
    for (int i = 0; i < call->nresults; i++)
        inst_add_result(again, call->results[i]->type, call->results[i]->name);
    if (x->callee->plain) call->callee = ad_primal(x->t->ad, ad_func(x->t->ad, x->callee->plain));
    if (can_move(x->callee, call, reverse))
        map_put(x->t->ad->arena, &x->t->making->mirror, PTR_KEY(call), again);
    return again;
}

static Val *without_shadow(void *user, Builder *b, Val *v) {
    (void)user;
    bool is_object = v->kind == VAL_param || (v->kind == VAL_inst && v->inst->op == OP_var);
    return is_object && is_diff(v) ? build_var(b, v->type->args[0], v->name, false) : NULL;
}

/* Shadows begin with the reverse. The primal pass, which writes nothing there, gets other memory in their
 * place. (It gives no reference to that back: linearize.c refuses it.) */
static Val *dual_before(Inst *call, Val *dual) {
    Builder b = build_before(call);
    return build_place_again(&b, dual, without_shadow, NULL);
}

/* A call of the function becomes one of its pri, which has more parameters and results. */
static void extend_call(Back *x, Inst *call, const Reverse *reverse, bool again) {
    const Made *pri = &reverse->pri;
    Val *tape = again ? x->tape : x->t->making->tape;
    call->callee = pri->func;
    for (int i = call->nargs; i < pri->params.count; i++) {
        int leaf = pri->params.at[i].leaf;
        bool is_tape = pri->params.at[i].role == AS_tape;
        inst_add_arg(call, is_tape ? tape : again ? x->duals[leaf] : dual_before(call, x->note->duals[leaf]));
    }
    for (int i = call->nresults; i < pri->results.count; i++)
        vec_push(x->t->ad->arena, &x->slots,
                 inst_add_result(call, pri->func->results[i], name_from(x->t->ad->m->names, "ctx")));
}

static void t_derived(Back *x, Adjoints *adj, const Inst *inst) {
    Tr *t = x->t;
    Inst *call = x->note->primal;
    Terms terms = {.stable = stable_leaves(t, x->callee, call),
                   .firm = firm_results(t, inst),
                   .steady = t->making->steady,
                   .places = x->note->places};
    const Reverse *reverse = ad_reverse(t->ad, x->callee, terms);
    if (!reverse->pri.func) {
        ad_refuse_endless(t->ad, x->callee);
        return;
    }
    bool again = is_made_again(t, x->callee, call),
         opens = again && x->callee->has_own_tape && reverse->uses_tape;
    if (opens)
        x->tape =
            inst_add_result(build_inst(x->b, OP_tape_open, NULL, 0, 0, 0), x->tape->type, x->tape->name);
    x->duals = kept_duals(t, x->b, x->note);
    keep_objects(x);
    extend_call(x, again ? call_again(x, reverse) : call, reverse, again);
    pass_back(x, &reverse->prop, adj);
    if (opens) build_inst(x->b, OP_tape_close, &x->tape, 1, 0, 0);
}

static void t_call(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    const CallNote *note = map_get(&t->making->calls, PTR_KEY(inst));
    AdFunc *callee = note->plan.callee;
    const Made *tangent = &callee->tangent;
    Val **adjoints = arena_array(t->ad->arena, Val *, inst->nresults ? inst->nresults : 1);
    for (int i = 0; i < inst->nresults; i++) adjoints[i] = take_out(t, adj, inst->results[i]);
    Back x = {.t = t, .b = b, .note = note, .callee = callee, .tape = t->making->reverse_tape};
    x.inputs = ad_by_leaf(t->ad, callee, &tangent->params, AS_differential, inst->args);
    x.adjoints = ad_by_leaf(t->ad, callee, &tangent->results, AS_differential, adjoints);
    if (!matters(&x) && !ad_gives_references(&callee->leaves)) return;
    t->takes |= ad_is_sink(t->ad, &note->plan);
    if (note->plan.kind == CALL_custom) t_custom(&x, adj, inst);
    else t_derived(&x, adj, inst);
}

/* ---- dispatch */

static void t_inst(Tr *t, Builder *b, Adjoints *adj, Inst *inst) {
    b->loc = inst->loc;
    if (inst->nresults == 1 && inst->results[0]->type->kind == TYPE_pointer && inst->nregions == 0 &&
        op_has(inst->op, OP_PART | OP_MOVES))
        return; /* addresses are made where they are needed */
    switch ((Op)inst->op) {
    case OP_if:
    case OP_switch: t_branches(t, b, adj, inst); return;
    case OP_loop: t_loop(t, b, adj, inst); return;
    case OP_call: t_call(t, b, adj, inst); return;
    case OP_load: t_load(t, b, adj, inst); return;
    case OP_store: t_store(t, b, adj, inst); return;
    case OP_copy:
    case OP_acc: t_copy(t, b, inst); return;
    case OP_zero: ad_zero_object(t->ad, b, address(b, inst->args[0])); return;
    case OP_yield:
    case OP_tape_close: return;
    case OP_tape_push:
    case OP_tape_pop:
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_load:
    case OP_tape_store: t_tape(t, b, adj, inst); return;
    default: t_arithmetic(t, b, adj, inst);
    }
}

static Region *transpose_region(Tr *t, Region *d, Region *reverse, Builder *b, Adjoints *adj,
                                Region *primal) {
    InstVec tapes = {0};
    open_shadows(t, d, b, &tapes);
    for (Inst *inst = d->last, *before; inst; inst = before) {
        before = inst->prev;
        t_inst(t, b, adj, inst);
    }
    for (int i = 0; i < tapes.count; i++) build_inst(b, OP_tape_close, tapes.at[i]->results, 1, 0, 0);
    map_put(t->ad->arena, &t->making->mirror, PTR_KEY(primal), reverse);
    return reverse;
}

/* The adjoints of the parameters, returned: an adjoint may be a primal value, which checkpoint must see. */
static void return_adjoints(Tr *t, Builder *b, const Adjoints *adj) {
    ValVec results = {0};
    for (int i = 0; i < t->making->f->leaves.count; i++) {
        const Leaf *leaf = &t->making->f->leaves.at[i];
        if (!ad_has_role(leaf, AS_adjoint, true)) continue;
        Val *g = take(adj, t->making->differentials[i]);
        vec_push(t->ad->arena, &results, g ? g : zero(t, leaf->dtype));
    }
    build_return(b, results.at, results.count);
}

void ad_transpose(Ad *ad, Making *making) {
    Tr t = {.ad = ad, .making = making, .untaken = ad_untaken(ad, making)};
    making->reversed = region_new(making->linear.func, NULL);
    Builder b = build_at_end(making->reversed);
    Adjoints adj = {0};
    const Inst *end = making->diff->last;
    for (int i = 0; i < end->nargs; i++) bump(&t, &b, &adj, end->args[i], making->seeds.at[i]);
    transpose_region(&t, making->diff, making->reversed, &b, &adj, making->primal);
    return_adjoints(&t, &b, &adj);
}
