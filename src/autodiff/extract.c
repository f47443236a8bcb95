/* Extract: the two functions of reverse mode.
 *
 *   pri    parameters of the flat function, counterparts of references, tape?  ->  its results, counterparts of references among
 *          them, slots of the context
 *   prop   primal parameters that it needs, counterparts of references, slots, adjoints of the results (seeds), shadows of arrays,
 *          tape?  ->  adjoints of the scalar parameters
 *
 * In prop, the shadow of an `in` array is added to, that of an inout array is transformed in place, that of an out array is
 * consumed and left zero. The context of a recursive function is on the tape: its size is not known. */
#include "autodiff/ad.h"

typedef struct Build {
    Ad *ad;
    AdFunc *f;
    Reverse *r;
    Func *linear;
    Halves halves;
    Region *extra; /* holds what stands for parameters of prop and the tapes */
    Val *tape, *reverse_tape;
    ValVec seeds;
    Transposed t;
    Checkpoint *checkpoint;
    bool *stable;
    uint32_t nstable;
    Lists *lists;
    bool results_unwanted;
} Build;

static bool is_shadow(const Leaf *leaf) {
    return leaf->diff && leaf->in >= 0 && (leaf->by_ref || leaf->type->kind == TYPE_tape);
}
static bool is_scalar_input(const Leaf *leaf) {
    return leaf->diff && leaf->in >= 0 && !leaf->by_ref && leaf->type->kind != TYPE_tape;
}

static const char *base_name(const AdFunc *f) {
    return f->source ? f->source->name->text : f->flat->name->text;
}

/* ---- which values are used */

static bool uses(const Region *region, const Val *v) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++)
            if (inst->args[i] == v) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (uses(inst->regions[i], v)) return true;
    }
    return false;
}

static void mark_used(const Region *region, bool *used, uint32_t n) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++)
            if (!val_is_const(inst->args[i]) && inst->args[i]->id < n) used[inst->args[i]->id] = true;
        for (int i = 0; i < inst->nregions; i++) mark_used(inst->regions[i], used, n);
    }
}

/* ---- the parts */

static void make_placeholders(Build *x) {
    Ad *ad = x->ad;
    const Type *tape = type_basic(ad->m->types, TYPE_tape);
    x->extra = region_new(x->linear, NULL);
    x->tape = region_add_param(x->extra, tape, name_from(ad->m->names, "tape"));
    x->reverse_tape = region_add_param(x->extra, tape, name_from(ad->m->names, "tape"));
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->diff && leaf->fdout >= 0)
            vec_push(ad->arena, &x->seeds,
                     region_add_param(x->extra, leaf->dtype, name_from(ad->m->names, "seed")));
    }
}

/* Memory that holds the same in the reverse as it did: nobody writes it, or it is made again from the values in it. */
static void find_stable(Build *x, Val *const *all) {
    x->nstable = x->linear->nvals;
    x->stable = arena_array(x->ad->arena, bool, x->nstable + 1);
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->in >= 0 && x->r->terms.stable[i]) x->stable[all[leaf->fin]->id] = true;
        if (leaf->in >= 0 && leaf->dual && leaf->by_ref && leaf->dir == DIR_in)
            x->stable[all[leaf->fdin]->id] = true; /* nobody writes it */
    }
    x->lists = ad_find_lists(x->ad, x->halves.primal);
    for (int i = 0; i < x->lists->by_var.count; i++)
        x->stable[((const Val *)(uintptr_t)x->lists->by_var.entries[i].key)->id] = true;
}

/* Parameters of the linear function before unzip takes the differential ones out of its body. */
static ValVec diff_params(Build *x, Val *const *params) {
    ValVec list = {0};
    for (int i = 0; i < x->f->leaves.count; i++)
        if (is_scalar_input(&x->f->leaves.at[i]))
            vec_push(x->ad->arena, &list, params[x->f->leaves.at[i].fdin]);
    return list;
}

/* ---- signatures */

typedef struct PropParams {
    VEC(Param) params;
    ValVec stands_for; /* what each is in the linear function */
} PropParams;

static void add_param(Build *x, PropParams *list, Name name, const Type *type, uint8_t dir, uint8_t flags,
                      Val *stands_for) {
    vec_push(x->ad->arena, &list->params, ((Param){.name = name, .type = type, .dir = dir, .flags = flags}));
    vec_push(x->ad->arena, &list->stands_for, stands_for);
}

static PropParams prop_params(Build *x, Val *const *all) {
    PropParams list = {0};
    const AdFunc *f = x->f;
    for (int i = 0; i < x->r->nprimal; i++) {
        int index = x->r->primal_params[i];
        for (int k = 0; k < f->leaves.count; k++)
            if (f->leaves.at[k].in == index) {
                Param param = f->flat->params[index];
                add_param(x, &list, param.name, param.type, param.dir, param.flags, all[f->leaves.at[k].fin]);
                list.params.at[list.params.count - 1].counterpart = param.counterpart;
            }
    }
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->dual && leaf->in >= 0)
            add_param(x, &list, all[leaf->fdin]->name, leaf->dtype, DIR_in,
                      leaf->by_ref ? PARAM_BY_ADDRESS : 0, all[leaf->fdin]);
        if (leaf->dual && leaf->in >= 0) list.params.at[list.params.count - 1].counterpart = leaf->dtype;
    }
    for (int i = 0; i < x->r->nslots; i++) {
        Val *slot = x->checkpoint->slots.at[i];
        add_param(x, &list, slot->name, slot->type, DIR_in, 0, slot);
    }
    for (int i = 0; i < x->seeds.count; i++)
        add_param(x, &list, x->seeds.at[i]->name, x->seeds.at[i]->type, DIR_in, 0, x->seeds.at[i]);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (!is_shadow(leaf)) continue;
        uint8_t dir =
            leaf->by_ref ? (leaf->dir == DIR_in || leaf->dir == DIR_ref ? DIR_ref : DIR_inout) : DIR_in;
        add_param(x, &list, all[leaf->fdin]->name, leaf->dtype, dir, leaf->by_ref ? PARAM_BY_ADDRESS : 0,
                  all[leaf->fdin]);
    }
    if (x->r->uses_tape)
        add_param(x, &list, x->reverse_tape->name, x->reverse_tape->type, DIR_in, 0, x->reverse_tape);
    return list;
}

static void declare_pri(Build *x) {
    Ad *ad = x->ad;
    const Func *flat = x->f->flat;
    Reverse *r = x->r;
    if (!r->pri) r->pri = func_new(ad->m, format_text(ad->arena, "%s.pri", base_name(x->f)));
    Param *params = arena_array(ad->arena, Param, flat->nparams + x->f->leaves.count + 1);
    if (flat->nparams) memcpy(params, flat->params, sizeof(Param) * (size_t)flat->nparams);
    int n = flat->nparams;
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (!leaf->dual || leaf->in < 0) continue;
        params[n] = flat->params[leaf->in];
        params[n++].type = leaf->dtype;
    }
    if (r->uses_tape)
        params[n++] =
            (Param){.name = name_from(ad->m->names, "tape"), .type = type_basic(ad->m->types, TYPE_tape)};
    func_set_params(r->pri, params, n);
    VEC(const Type *) results = {0};
    for (int i = 0; i < flat->nresults; i++) vec_push(ad->arena, &results, flat->results[i]);
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->dual && leaf->out >= 0) vec_push(ad->arena, &results, leaf->dtype);
    }
    for (int i = 0; i < r->nslots; i++) vec_push(ad->arena, &results, r->slots[i]);
    func_set_results(r->pri, results.at, results.count);
    r->pri->flags |= FUNC_GENERATED | FUNC_NORMAL | (flat->flags & FUNC_PRECISE);
    r->pri->loc = flat->loc;
}

static void declare_prop(Build *x, const PropParams *list) {
    Ad *ad = x->ad;
    Reverse *r = x->r;
    if (!r->prop) r->prop = func_new(ad->m, format_text(ad->arena, "%s.prop", base_name(x->f)));
    func_set_params(r->prop, list->params.at, list->params.count);
    VEC(const Type *) results = {0};
    for (int i = 0; i < x->f->leaves.count; i++)
        if (is_scalar_input(&x->f->leaves.at[i])) vec_push(ad->arena, &results, x->f->leaves.at[i].dtype);
    func_set_results(r->prop, results.at, results.count);
    r->prop->flags |= FUNC_GENERATED | FUNC_NORMAL | (x->f->flat->flags & FUNC_PRECISE);
    r->prop->loc = x->f->flat->loc;
}

/* ---- bodies */

static void clear_tags(Region *region) {
    for (int i = 0; i < region->nparams; i++) region->params[i]->flags &= (uint8_t)~VAL_DIFF;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst->tag = TAG_primal;
        inst->note = NULL;
        for (int i = 0; i < inst->nresults; i++) inst->results[i]->flags &= (uint8_t)~VAL_DIFF;
        for (int i = 0; i < inst->nregions; i++) clear_tags(inst->regions[i]);
    }
}

static void fill_pri(Build *x, Val *const *all) {
    Ad *ad = x->ad;
    Func *pri = x->r->pri;
    func_begin(pri);
    CloneMap map = {.module = ad->m, .func = pri};
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->in < 0) continue;
        clone_map_val(&map, all[leaf->fin], pri->body->params[leaf->in]);
    }
    int dual = x->f->flat->nparams;
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->dual && leaf->in >= 0) clone_map_val(&map, all[leaf->fdin], pri->body->params[dual++]);
    }
    if (x->r->uses_tape) clone_map_val(&map, x->tape, pri->body->params[pri->nparams - 1]);
    Inst *end = x->halves.primal->last;
    for (int i = 0; i < x->r->nslots; i++) inst_add_arg(end, x->checkpoint->slots.at[i]);
    clone_region_into(&map, x->halves.primal, pri->body);
    clear_tags(pri->body);
}

/* The adjoints of the parameters, returned: an adjoint may be a primal value, which checkpoint must see. */
static void end_reverse(Build *x) {
    Ad *ad = x->ad;
    Builder b = build_at_end(x->t.reverse);
    ValVec results = {0};
    int next = 0;
    for (int i = 0; i < x->f->leaves.count; i++) {
        if (!is_scalar_input(&x->f->leaves.at[i])) continue;
        Val *g = x->t.adjoints.at[next++];
        vec_push(ad->arena, &results, g ? g : ad_zero(ad, x->f->leaves.at[i].dtype));
    }
    build_return(&b, results.at, results.count);
}

static void fill_prop(Build *x, const PropParams *list) {
    Func *prop = x->r->prop;
    func_begin(prop);
    CloneMap map = {.module = x->ad->m, .func = prop};
    for (int i = 0; i < list->stands_for.count; i++)
        clone_map_val(&map, list->stands_for.at[i], prop->body->params[i]);
    clone_region_into(&map, x->t.reverse, prop->body);
    clear_tags(prop->body);
}

/* A recursive function keeps its context on the tape. */
static void push_slots(Build *x) {
    Ad *ad = x->ad;
    ValVec *slots = &x->checkpoint->slots;
    Builder tail = build_before(x->halves.primal->last);
    Builder head = x->t.reverse->first ? build_before(x->t.reverse->first) : build_at_end(x->t.reverse);
    for (int i = 0; i < slots->count; i++) ad_push(ad, &tail, x->tape, slots->at[i]);
    for (int i = slots->count - 1; i >= 0; i--) {
        Val *v = ad_pop(ad, &head, x->reverse_tape, slots->at[i]->type, slots->at[i]->name);
        map_put(ad->arena, &x->checkpoint->stand_in, PTR_KEY(slots->at[i]), v);
        x->checkpoint->head = v->inst;
    }
    slots->count = 0;
}

static void choose_primal_params(Build *x, Val *const *all, bool everything) {
    Ad *ad = x->ad;
    const AdFunc *f = x->f;
    uint32_t n = x->linear->nvals;
    bool *used = arena_array(ad->arena, bool, n + 1);
    if (!everything) mark_used(x->t.reverse, used, n);
    x->r->primal_params = arena_array(ad->arena, int, f->flat->nparams + 1);
    x->r->nprimal = 0;
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in < 0) continue;
        bool available = !leaf->by_ref || x->r->terms.stable[i];
        bool wanted = everything ? available : used[all[leaf->fin]->id];
        if (wanted && available) x->r->primal_params[x->r->nprimal++] = leaf->in;
        else if (wanted) arena_fault(ad->arena, "the reverse pass reads an array that may have changed");
    }
}

/* The two halves, as functions of their own for a dump. */
static void show(Build *x, const char *stage, Region *first, Region *second) {
    if (!x->ad->config.after || !x->ad->what || x->ad->what != x->f->source) return;
    Region *halves[2] = {first, second};
    Func shells[2] = {*x->linear, *x->linear};
    for (int i = 0; i < 2; i++) {
        Func *shell = &shells[i];
        shell->name = name_from(x->ad->m->names, format_text(x->ad->arena, "%s.%s", base_name(x->f),
                                                             !i                         ? "primal"
                                                             : second == x->halves.diff ? "differential"
                                                                                        : "reverse"));
        shell->body = halves[i];
        shell->nresults = 0;
        shell->nparams = halves[i]->nparams;
        shell->params = arena_array(x->ad->arena, Param, shell->nparams + 1);
        for (int k = 0; k < shell->nparams; k++) {
            const Val *v = halves[i]->params[k];
            bool by_address = v->type->kind == TYPE_pointer;
            shell->params[k] = (Param){.name = v->name,
                                       .type = by_address ? v->type->args[0] : v->type,
                                       .dir = by_address ? DIR_inout : DIR_in,
                                       .flags = by_address ? PARAM_BY_ADDRESS : 0};
        }
    }
    ad_after(x->ad, stage, &shells[0], &shells[1]);
}

/* What callers of a recursive function see before it is done. */
static void declare_recursive(Build *x) {
    x->r->recursive = x->r->uses_tape = true;
    ad_declare_fwd(x->ad, x->f);
    x->linear = x->f->fwd;
    Region *shape = region_new(x->linear, NULL);
    Val **all = arena_array(x->ad->arena, Val *, x->linear->nparams + 1);
    for (int i = 0; i < x->linear->nparams; i++)
        all[i] = region_add_param(shape, param_value_type(x->ad->m, &x->linear->params[i]),
                                  x->linear->params[i].name);
    make_placeholders(x);
    choose_primal_params(x, all, true);
    declare_pri(x);
    PropParams list = prop_params(x, all);
    declare_prop(x, &list);
    x->seeds.count = 0;
}

/* Where nobody wants the results, loops of independent rounds are taken apart, and the primal pass need not run them. */
static Func *linearize(Build *x, bool may_split) {
    Func *flat = x->f->flat;
    Region *body = flat->body, *rounds = NULL;
    if (may_split && x->r->terms.lone) rounds = ad_split_rounds(x->ad, x->f, x->r->terms.stable);
    if (rounds) flat->body = rounds;
    Func *linear = ad_linearize(x->ad, x->f, AD_bwd, NULL);
    flat->body = body;
    x->results_unwanted = rounds != NULL;
    return linear;
}

/* What is returned is not what was computed, which may be left out then. */
static void drop_results(Build *x) {
    Inst *end = x->halves.primal->last;
    for (int i = 0; i < end->nargs; i++) {
        Val *result = end->args[i];
        if (type_is_scalar(result->type)) end->args[i] = ad_zero(x->ad, result->type);
    }
}

void ad_build_reverse(Ad *ad, AdFunc *f, Reverse *r) {
    ad_fill(ad, f, true);
    if (!f->flat->body) return;
    Build x = {.ad = ad, .f = f, .r = r};
    bool recursive = ad_is_recursive(ad, f), steady = r->terms.steady && !ad_has(ad, f, AD_disturbs);
    if (recursive) declare_recursive(&x);
    bool shown = ad->what && ad->what == f->source;
    x.linear = linearize(&x, steady && !recursive);
    ad->config.merge(ad->config.user, x.linear);
    if (shown) ad_after(ad, "linearize", x.linear, NULL);
    Val **all = arena_array(ad->arena, Val *, x.linear->nparams + 1);
    for (int i = 0; i < x.linear->nparams; i++) all[i] = x.linear->body->params[i];
    make_placeholders(&x);
    x.halves = ad_unzip(ad, f, x.linear);
    if (x.results_unwanted) drop_results(&x);
    show(&x, "unzip", x.halves.primal, x.halves.diff);
    ad_count_trips(ad, x.halves.diff);
    find_stable(&x, all);
    TransposeInput input = {.f = f,
                            .func = x.linear,
                            .halves = x.halves,
                            .tape = x.tape,
                            .reverse_tape = x.reverse_tape,
                            .stable = x.stable,
                            .nstable = x.nstable,
                            .firm = r->terms.firm,
                            .steady = steady,
                            .seeds = x.seeds};
    input.params = diff_params(&x, all);
    x.t = ad_transpose(ad, &input);
    CheckpointInput points = {.f = f,
                              .func = x.linear,
                              .primal = x.halves.primal,
                              .reverse = x.t.reverse,
                              .mirror = &x.t.mirror,
                              .tape = x.tape,
                              .reverse_tape = x.reverse_tape,
                              .stable = x.stable,
                              .nstable = x.nstable,
                              .steady = steady,
                              .lists = x.lists};
    end_reverse(&x);
    show(&x, "transpose", x.halves.primal, x.t.reverse);
    x.checkpoint = ad_checkpoint(ad, &points);
    if (recursive) push_slots(&x);
    ad_restore(ad, x.checkpoint, &points);
    show(&x, "checkpoint", x.halves.primal, x.t.reverse);
    if (!recursive) {
        r->nslots = x.checkpoint->slots.count;
        r->slots = arena_array(ad->arena, const Type *, r->nslots + 1);
        for (int i = 0; i < r->nslots; i++) r->slots[i] = x.checkpoint->slots.at[i]->type;
        r->uses_tape = uses(x.halves.primal, x.tape) || uses(x.t.reverse, x.reverse_tape);
        choose_primal_params(&x, all, false);
    }
    declare_pri(&x);
    PropParams list = prop_params(&x, all);
    declare_prop(&x, &list);
    fill_pri(&x, all);
    fill_prop(&x, &list);
    x.linear->body = NULL;
    ad_verify(ad, r->pri, "extract (pri)");
    ad_verify(ad, r->prop, "extract (prop)");
    ad->config.clean_flat(ad->config.user, r->pri);
    ad->config.clean_flat(ad->config.user, r->prop);
    if (shown) {
        ad_after(ad, "extract", r->pri, NULL);
        ad_after(ad, "extract", r->prop, NULL);
    }
}
