/* How a derivative is made: the two lists of stages, at the end, and what leads from one stage to the next.
 *
 * Forward mode ends with the linearized function. Reverse mode goes on from there; what a stage finds out for
 * the later ones is in a Making. `slope dump --after STAGE` shows the function after each one. */
#include "autodiff/ad.h"

const char *const ad_stages[] = {"normalize", "activity",   "linearize", "unzip",
                                 "transpose", "checkpoint", "extract",   NULL};

/* ---- dumps and checks */

void ad_after(Ad *ad, const char *stage, const Func *now, const Func *other) {
    if (ad->config.after && ad->what) ad->config.after(ad->config.user, stage, ad->what, now, other);
}

void ad_verify(Ad *ad, const Func *func, const char *stage) {
    Arena *scratch = arena_scratch(ad->arena);
    const char *wrong = ir_verify(scratch, func);
    if (wrong && ad->m->diags->errors) arena_give_up(scratch); /* what was refused is not in it */
    if (wrong) arena_malformed(scratch, format_text(ad->arena, "after %s: %s", stage, wrong));
    arena_free(scratch);
}

void ad_clear_marks(Region *region) {
    for (int i = 0; i < region->nparams; i++) region->params[i]->flags &= (uint8_t)~VAL_DIFF;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst->tag = TAG_primal;
        for (int i = 0; i < inst->nresults; i++) inst->results[i]->flags &= (uint8_t)~VAL_DIFF;
        for (int i = 0; i < inst->nregions; i++) ad_clear_marks(inst->regions[i]);
    }
}

/* Half of a function, as one of its own. */
static Func shell_of(Ad *ad, const Making *x, Region *half, const char *name) {
    Func shell = *x->linear.func;
    shell.name = name_from(ad->m->names, format_text(ad->arena, "%s.%s", ad_name(x->f), name));
    shell.body = half;
    shell.nresults = 0;
    shell.nparams = half->nparams;
    shell.params = arena_array(ad->arena, Param, shell.nparams + 1);
    for (int i = 0; i < shell.nparams; i++) {
        const Val *v = half->params[i];
        bool by_address = v->type->kind == TYPE_pointer;
        shell.params[i] = (Param){.name = v->name,
                                  .type = by_address ? v->type->args[0] : v->type,
                                  .dir = by_address ? DIR_inout : DIR_in,
                                  .flags = by_address ? PARAM_BY_ADDRESS : 0};
    }
    return shell;
}

static void show_linear(Ad *ad, const Making *x, const char *stage) {
    ad_after(ad, stage, x->linear.func, NULL);
}

static void show_halves(Ad *ad, const Making *x, const char *stage) {
    Func primal = shell_of(ad, x, x->primal, "primal"),
         other =
             x->reversed ? shell_of(ad, x, x->reversed, "reverse") : shell_of(ad, x, x->diff, "differential");
    ad_after(ad, stage, &primal, &other);
}

static void show_functions(Ad *ad, const Making *x, const char *stage) {
    ad_after(ad, stage, x->reverse->pri.func, NULL);
    ad_after(ad, stage, x->reverse->prop.func, NULL);
}

/* ---- forward mode */

static void linearize_forward(Ad *ad, Making *x) {
    x->linear = x->f->fwd;
    ad_linearize(ad, x->f, AD_fwd, &x->linear, NULL);
}

static void finish_forward(Ad *ad, Making *x) {
    ad_clear_marks(x->linear.func->body);
    ad_verify(ad, x->linear.func, "linearize");
    ad->config.clean_flat(ad->config.user, x->linear.func);
}

/* ---- reverse mode */

static void begin_reverse(Ad *ad, Making *x) {
    x->recursive = ad_is_recursive(ad, x->f);
    x->steady = x->reverse->terms.steady && !ad_has(ad, x->f, AD_disturbs);
    if (x->recursive) ad_declare_recursive(ad, x);
}

/* Where nobody wants the results, loops of independent rounds are taken apart, and the primal pass need not
 * run them. */
static void linearize_split(Ad *ad, Making *x) {
    Func *flat = x->f->flat;
    Region *body = flat->body, *counted = ad_compute_counted(ad, flat), *rounds = NULL, *along = NULL;
    if (counted) {
        flat->body = counted;
        ad->config.clean_flat(ad->config.user, flat);
    }
    if (x->steady && !x->recursive && x->reverse->terms.lone)
        rounds = ad_split_rounds(ad, x->f, x->reverse->terms.stable);
    if (rounds) flat->body = rounds;
    if (!x->recursive) along = ad_carry_along(ad, x->f);
    if (along) flat->body = along;
    ad_linearize(ad, x->f, AD_bwd, &x->linear, &x->calls);
    flat->body = body;
    x->results_unwanted = rounds != NULL;
}

/* What stands for parameters of pri and prop that the linearized function does not have. */
static void make_placeholders(Ad *ad, Making *x) {
    const Type *tape = type_basic(ad->m->types, TYPE_tape);
    Region *extra = region_new(x->linear.func, NULL);
    x->tape = region_add_param(extra, tape, name_from(ad->m->names, "tape"));
    x->reverse_tape = region_add_param(extra, tape, name_from(ad->m->names, "tape"));
    for (int i = 0; i < x->linear.results.count; i++)
        if (x->linear.results.at[i].role == AS_differential)
            vec_push(ad->arena, &x->seeds,
                     region_add_param(extra, x->linear.func->results[i], name_from(ad->m->names, "seed")));
}

static void note_params(Ad *ad, Making *x) {
    const Places *places = &x->linear.params;
    Val *const *params = x->linear.func->body->params;
    x->primals = ad_by_leaf(ad, x->f, places, AS_primal, params);
    x->differentials = ad_by_leaf(ad, x->f, places, AS_differential, params);
    Val **counterparts = ad_by_leaf(ad, x->f, places, AS_counterpart, params);
    for (int i = 0; i < x->f->leaves.count; i++)
        if (counterparts[i]) x->differentials[i] = counterparts[i];
}

/* What is not transposed is not carried along either, nor kept. What belongs to tangent calls will be
 * needed. */
static void merge(Ad *ad, const Making *x) {
    InstVec calls = {0};
    ValVec named = {0};
    for (int i = 0; i < x->calls.count; i++) {
        const CallNote *note = x->calls.entries[i].value;
        vec_push(ad->arena, &calls, note->primal);
        for (int k = 0; k < note->plan.callee->leaves.count; k++)
            if (note->duals[k]) vec_push(ad->arena, &named, note->duals[k]);
    }
    ad->config.merge(ad->config.user, x->linear.func, &calls, &named);
}

static void count_places(Ad *ad, Making *x) {
    Map places = {0}; /* AdFunc -> how many */
    for (int i = 0; i < x->calls.count; i++) {
        const CallNote *note = x->calls.entries[i].value;
        uintptr_t before = (uintptr_t)map_get(&places, PTR_KEY(note->plan.callee));
        map_put(ad->arena, &places, PTR_KEY(note->plan.callee), (void *)(before + 1));
    }
    for (int i = 0; i < x->calls.count; i++) {
        CallNote *note = x->calls.entries[i].value;
        note->places = (int)(uintptr_t)map_get(&places, PTR_KEY(note->plan.callee));
    }
}

static void linearize_reverse(Ad *ad, Making *x) {
    ad_declare(ad, x->f, SHAPE_linear, (Contents){0}, &x->linear);
    linearize_split(ad, x);
    count_places(ad, x);
    merge(ad, x);
    note_params(ad, x);
    make_placeholders(ad, x);
}

/* What is returned is not what was computed, which may be left out then. */
static void drop_results(Ad *ad, Making *x) {
    Inst *end = x->primal->last;
    for (int i = 0; i < end->nargs && x->results_unwanted; i++)
        if (type_is_scalar(end->args[i]->type)) end->args[i] = ad_zero(ad, end->args[i]->type);
}

static void unzip(Ad *ad, Making *x) {
    ad_unzip(ad, x);
    ad_sink_differentials(ad, x);
    drop_results(ad, x);
}

typedef struct Stabilise {
    Ad *ad;
    Making *making;
} Stabilise;

/* Local arrays that a call needs which is made again in the reverse. */
static void note_settled(void *user, Inst *inst) {
    Stabilise *x = user;
    if (inst->op != OP_call || !inst_has(inst, INST_AGAIN)) return;
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = inst->args[i];
        if (!ad_is_settled_array(x->making->settled, v, inst) || x->making->stable[v->id]) continue;
        x->making->stable[v->id] = STABLE_settled;
        vec_push(x->ad->arena, &x->making->kept_whole, v);
    }
}

/* Memory that holds the same in the reverse as it did: nobody writes it, or it is made again from the values
 * in it, or kept whole. */
static void find_stable(Ad *ad, Making *x) {
    x->nstable = x->linear.func->nvals;
    x->stable = arena_array(ad->arena, uint8_t, x->nstable + 1);
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->in >= 0 && x->reverse->terms.stable[i]) x->stable[x->primals[i]->id] = STABLE_always;
        if (leaf->in >= 0 && leaf->dual && leaf->by_ref && leaf->dir == DIR_in)
            x->stable[x->differentials[i]->id] = STABLE_always;
    }
    x->lists = ad_find_lists(ad, x);
    for (int i = 0; i < x->lists->by_var.count; i++)
        x->stable[((const Val *)(uintptr_t)x->lists->by_var.entries[i].key)->id] = STABLE_always;
    x->settled = ad_settle(ad, x->primal, x->nstable);
    Stabilise stabilise = {ad, x};
    region_walk(x->primal, note_settled, &stabilise);
}

static void transpose(Ad *ad, Making *x) {
    ad_count_trips(ad, x);
    find_stable(ad, x);
    ad_transpose(ad, x);
}

/* By id: what a call hands over, or a branch that has such a call. */
static void note_passed(void *user, Inst *inst) {
    bool *passed = user;
    if (inst->op == OP_call)
        for (int i = 0; i < inst->nresults; i++) passed[inst->results[i]->id] = true;
    Inst *owner = inst->parent->owner;
    if (inst->op != OP_yield || !owner || (owner->op != OP_if && owner->op != OP_switch)) return;
    for (int i = 0; i < inst->nargs && i < owner->nresults; i++) {
        const Val *v = inst_operand(inst, i);
        if (v->kind == VAL_inst && passed[v->id]) passed[owner->results[i]->id] = true;
    }
}

/* Does it hand over much that it was handed by those that it calls? Contexts that only grow would take space
 * that grows with the square of the length of a chain of calls, and double with each level of functions that
 * call another twice. */
static bool passes_much_on(Ad *ad, const Making *x) {
    const int much = 64;
    int count = 0;
    const ValVec *slots = &x->checkpoint->slots;
    if (slots->count <= much) return false;
    bool *passed = arena_array(ad->arena, bool, x->linear.func->nvals + 1);
    region_walk(x->primal, note_passed, passed);
    for (int i = 0; i < slots->count; i++)
        count += slots->at[i]->kind == VAL_inst && passed[slots->at[i]->id];
    return count > much;
}

/* A caller would have as many results and arguments in each place: they are in memory anyhow, and take long
 * to compile. */
static bool is_much_for(int kept, const Terms *terms) {
    const int64_t much = 400;
    return terms->places > 1 && (int64_t)kept * terms->places > much;
}

static void checkpoint(Ad *ad, Making *x) {
    ad_leave_out_rounds(ad, x);
    ad_checkpoint(ad, x);
    bool on_tape = x->recursive || passes_much_on(ad, x);
    x->reverse->kept = on_tape ? 0 : x->checkpoint->slots.count;
    if (on_tape || is_much_for(x->reverse->kept, &x->reverse->terms)) ad_push_slots(ad, x);
    ad_restore(ad, x);
}

static void finish_reverse(Ad *ad, const Reverse *made) {
    ad_verify(ad, made->pri.func, "extract (pri)");
    ad_verify(ad, made->prop.func, "extract (prop)");
    ad->config.clean_flat(ad->config.user, made->pri.func);
    ad->config.clean_flat(ad->config.user, made->prop.func);
}

static void extract(Ad *ad, Making *x) {
    ad_extract(ad, x);
    if (ad_may_peel(ad, x) && x->reverse->prop.func) ad_peel(x->reverse->prop.func);
    finish_reverse(ad, x->reverse);
}

/* ---- the lists */

typedef struct Stage {
    const char *name;
    void (*run)(Ad *ad, Making *making);
    void (*show)(Ad *ad, const Making *making, const char *stage); /* NULL: there is nothing to see */
} Stage;

/* Both begin with what ad_fill has made: the flat function, normal and lean (normalize, activity). */
static const Stage forward[] = {
    {"linearize", linearize_forward, show_linear},
    {"finish", finish_forward, NULL},
    {NULL, NULL, NULL},
};

static const Stage reverse[] = {
    {"begin", begin_reverse, NULL},
    {"linearize", linearize_reverse, show_linear},
    {"unzip", unzip, show_halves},
    {"transpose", transpose, show_halves},
    {"checkpoint", checkpoint, show_halves},
    {"extract", extract, show_functions},
    {NULL, NULL, NULL},
};

static void make(Ad *ad, const Stage *stages, Making *x) {
    bool shown = ad->config.after && ad->what && ad->what == x->f->source;
    for (; stages->name; stages++) {
        stages->run(ad, x);
        if (shown && stages->show) stages->show(ad, x, stages->name);
    }
}

/* ---- requests for a flat function */

static void make_forward(Ad *ad, AdFunc *f) {
    ad_fill(ad, f, true);
    if (f->flat->body) make(ad, forward, &(Making){.f = f});
    else ad_refuse_endless(ad, f);
}

/* By a derivative that the source has. */
static void adapt_forward(Ad *ad, AdFunc *f, Func *custom) {
    bool is_rule = (custom->flags & FUNC_TRANSPOSABLE) != 0;
    ad_complete(ad, custom);
    if (is_rule) custom->flags |= FUNC_INLINE;
    ad_fill_fwd_adapter(ad, f, custom);
    if (!is_rule) return;
    map_put(ad->arena, &ad->adapters, PTR_KEY(f->fwd.func), NULL);
    ad_inline_rule(ad, f->fwd.func);
}

/* Was an error found since, in the function or in what it calls? */
static void note_failure(const Ad *ad, int failures, Func *func) {
    if (func && ad->m->diags->failures > failures) func->flags |= FUNC_FAILED;
}

Func *ad_fwd(Ad *ad, AdFunc *f) {
    int failures = ad->m->diags->failures;
    ad_declare_fwd(ad, f);
    if (f->fwd_begun) return f->fwd.func;
    f->fwd_begun = true;
    if (f->source) ad_complete(ad, f->source);
    if (f->source && f->source->custom.fwd) adapt_forward(ad, f, f->source->custom.fwd);
    else if (f->source && (f->source->flags & FUNC_TREAT_AS_DIFF)) ad_fill_trivial_fwd(ad, f);
    else make_forward(ad, f);
    note_failure(ad, failures, f->fwd.func);
    f->fwd_made = true;
    return f->fwd.func;
}

static bool same_stable(const AdFunc *f, const bool *a, const bool *b) {
    for (int i = 0; i < f->leaves.count; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static bool is_on_terms(const AdFunc *f, const Reverse *made, const Terms *terms) {
    const Terms *its = &made->terms;
    return its->firm == terms->firm && its->given == terms->given && its->steady == terms->steady &&
           its->lone == terms->lone && is_much_for(made->kept, its) == is_much_for(made->kept, terms) &&
           same_stable(f, its->stable, terms->stable);
}

Reverse *ad_reverse(Ad *ad, AdFunc *f, Terms terms) {
    for (int i = 0; i < f->reverses.count; i++)
        if (is_on_terms(f, f->reverses.at[i], &terms)) return f->reverses.at[i];
    Reverse *made = arena_new(ad->arena, Reverse);
    made->terms = terms;
    made->terms.stable = arena_copy(ad->arena, terms.stable, sizeof(bool) * (size_t)(f->leaves.count + 1));
    vec_push(ad->arena, &f->reverses, made);
    int failures = ad->m->diags->failures;
    if (f->source) ad_complete(ad, f->source);
    ad_fill(ad, f, true);
    if (f->round) {
        ad_reverse_along(ad, f, made);
        finish_reverse(ad, made);
    } else if (f->flat->body) make(ad, reverse, &(Making){.f = f, .reverse = made});
    note_failure(ad, failures, made->pri.func);
    note_failure(ad, failures, made->prop.func);
    return made;
}
