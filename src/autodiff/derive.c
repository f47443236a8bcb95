/* Requests: which derivative is asked for, what it needs, and what the source has to say about it. */
#include "autodiff/ad.h"

const char *const ad_stages[] = {"normalize", "activity",   "linearize", "unzip",
                                 "transpose", "checkpoint", "extract",   NULL};

void ad_after(Ad *ad, const char *stage, const Func *now, const Func *other) {
    if (ad->config.after && ad->what) ad->config.after(ad->config.user, stage, ad->what, now, other);
}

void ad_verify(Ad *ad, const Func *func, const char *stage) {
    Arena *scratch = arena_scratch(ad->arena);
    const char *wrong = ir_verify(scratch, func);
    if (wrong) arena_malformed(scratch, format_text(ad->arena, "after %s: %s", stage, wrong));
    arena_free(scratch);
}

/* ---- the functions that autodiff knows */

static void fill_derivation(Ad *ad, Func *func);

void ad_complete(Ad *ad, Func *func) {
    IrHooks *hooks = &ad->m->hooks;
    if (func->derivation.of && !func->body) fill_derivation(ad, func);
    if (!func->body && hooks->complete) hooks->complete(hooks->user, func);
    if (!func->custom.complete && hooks->complete_diff) hooks->complete_diff(hooks->user, func);
}

static AdFunc *ad_add_flat(Ad *ad, Func *flat, Leaves leaves) {
    AdFunc *f = arena_new(ad->arena, AdFunc);
    f->flat = flat;
    f->leaves = leaves;
    f->filled = f->normal = true;
    map_put(ad->arena, &ad->funcs, PTR_KEY(flat), f);
    return f;
}

static void find_vector(void *user, Inst *inst) {
    bool *found = user;
    for (int i = 0; i < inst->nresults; i++) *found |= inst->results[i]->type->kind == TYPE_vector;
}

/* A user's dadd that became a part of a reverse pass may work on vectors. */
static bool has_vectors(const Func *func) {
    bool found = false;
    if (func->body) region_walk(func->body, find_vector, &found);
    return found;
}

/* A function made by autodiff: everything that can be differentiated is. What is not flat is made so when that is asked for. */
static AdFunc *add_generated(Ad *ad, Func *flat) {
    if (map_get(&ad->adapters, PTR_KEY(flat)) || has_vectors(flat)) {
        map_put(ad->arena, &ad->adapters, PTR_KEY(flat), NULL);
        ad_flatten_adapter(ad, flat);
    }
    return ad_add_flat(ad, flat, ad_leaves_of_flat(ad, flat));
}

AdFunc *ad_func(Ad *ad, Func *func) {
    AdFunc *f = map_get(&ad->funcs, PTR_KEY(func));
    if (f) return f;
    if ((func->flags & FUNC_GENERATED) && !func->derivation.of) return add_generated(ad, func);
    f = arena_new(ad->arena, AdFunc);
    f->source = func;
    map_put(ad->arena, &ad->funcs, PTR_KEY(func), f);
    f->leaves = ad_leaves_of_func(ad, func);
    f->flat = ad_declare_flat(ad, func, &f->leaves);
    map_put(ad->arena, &ad->funcs, PTR_KEY(f->flat), f);
    vec_push(ad->arena, &ad->unfilled, f);
    return f;
}

/* ---- normalize */

/* Inside the caller it would be with its counterpart again. */
static bool leaves_reference(const Func *func) {
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_NO_DIFF) return true;
    return false;
}

static bool may_inline(void *user, const Func *callee, const Inst *call) {
    Ad *ad = user;
    Func *func = (Func *)(uintptr_t)callee;
    if (inst_has(call, INST_NO_DIFF) ||
        (callee->flags & (FUNC_TREAT_AS_DIFF | FUNC_RECOMPUTE | FUNC_CHECKPOINT)))
        return false;
    if (!(callee->flags & (FUNC_BWD | FUNC_GENERATED))) return false;
    if ((callee->flags & FUNC_GENERATED) || leaves_reference(callee)) return false;
    ad_complete(ad, func);
    return func->body && !func->custom.fwd && !func->custom.bwd && !func->custom.substitute;
}

/* Callees must have their bodies before they can be inlined. */
static void complete_callees(void *user, Inst *inst) {
    if (inst->op == OP_call) ad_complete(user, inst->callee);
}

typedef struct Completion {
    Ad *ad;
    Map seen;
} Completion;

static void complete_callee(void *user, Inst *inst) {
    Completion *all = user;
    if (inst->op != OP_call || map_has(&all->seen, PTR_KEY(inst->callee))) return;
    map_put(all->ad->arena, &all->seen, PTR_KEY(inst->callee), all);
    ad_complete(all->ad, inst->callee);
    if (inst->callee->body) region_walk(inst->callee->body, complete_callee, all);
}

void ad_complete_all(Ad *ad, Func *func) {
    Completion all = {.ad = ad};
    region_walk(func->body, complete_callee, &all);
}

static void clear_marks(Region *region) {
    for (int i = 0; i < region->nparams; i++) region->params[i]->flags &= (uint8_t)~VAL_DIFF;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst->tag = TAG_primal;
        for (int i = 0; i < inst->nresults; i++) inst->results[i]->flags &= (uint8_t)~VAL_DIFF;
        for (int i = 0; i < inst->nregions; i++) clear_marks(inst->regions[i]);
    }
}

static void mark_active(Region *region, const Activity *activity) {
    for (int i = 0; i < region->nparams; i++)
        if (activity->vals[region->params[i]->id]) region->params[i]->flags |= VAL_DIFF;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nresults; i++)
            if (activity->vals[inst->results[i]->id]) inst->results[i]->flags |= VAL_DIFF;
        for (int i = 0; i < inst->nregions; i++) mark_active(inst->regions[i], activity);
    }
}

/* Active values are marked, as differentials are. */
static void show_activity(Ad *ad, AdFunc *f) {
    if (!ad->config.after) return;
    Activity activity = ad_activity(ad, f, AD_bwd);
    mark_active(f->flat->body, &activity);
    ad_after(ad, "activity", f->flat, NULL);
    clear_marks(f->flat->body);
}

void ad_fill(Ad *ad, AdFunc *f, bool normal) {
    if (!f->source || (f->filled && (f->normal || !normal))) return;
    ad_complete(ad, f->source);
    if (!f->source->body) return;
    f->filled = true;
    f->normal = normal;
    Func *copy = clone_func(f->source, format_text(ad->arena, "%s.normal", f->source->name->text));
    copy->derivation = (Derivation){0};
    copy->source = NULL;
    copy->flags &= ~(uint32_t)FUNC_EXPORT;
    if (normal) {
        region_walk(copy->body, complete_callees, ad);
        ad->config.inline_calls(ad->config.user, copy, may_inline, ad);
        ad->config.lower_exits(ad->config.user, copy);
    }
    ad->config.clean(ad->config.user, copy);
    f->flat->flags |= copy->flags & (FUNC_PRECISE | FUNC_INLINE);
    ad_flatten(ad, copy, f);
    copy->body = NULL; /* it has served */
    ad->config.clean_flat(ad->config.user, f->flat);
    if (normal) ad_sink(ad, f->flat);
    if (normal) ad_segment_loops(ad, f->flat);
    if (ad->what == f->source) {
        ad_after(ad, "normalize", f->flat, NULL);
        show_activity(ad, f);
    }
}

/* ---- what the source says about calls */

/* Which function's derivative is meant when `func` is differentiated: its primal substitute, if it has one. */
static Func *ad_substitute(Ad *ad, Func *func) {
    for (int i = 0; i < 16; i++) { /* substitutes of substitutes, in a circle at worst */
        ad_complete(ad, func);
        if (!func->custom.substitute) return func;
        func = func->custom.substitute;
    }
    return func;
}

static bool takes_values(const Leaves *leaves) {
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].diff) return true;
    return false;
}

static bool has_forward(const Func *func) {
    return func->custom.fwd || ((func->flags & FUNC_FWD) && !(func->flags & FUNC_TREAT_AS_DIFF));
}

/* There is nothing to be reversed in a function that has references in and out alone. */
static bool serves_both_modes(const AdFunc *f) {
    const Func *func = f->source;
    return has_forward(func) && !func->custom.bwd && ad_gives_references(&f->leaves) &&
           !takes_values(&f->leaves);
}

bool ad_knows_counterparts(const CallPlan *plan) {
    const Func *func = plan->callee ? plan->callee->source : NULL;
    if (plan->kind == CALL_plain || !func) return false;
    return has_forward(func);
}

static CallPlan plan(Ad *ad, Func *source, AdMode mode) {
    Func *func = ad_substitute(ad, source);
    CallPlan result = {.kind = CALL_plain, .callee = ad_func(ad, func)};
    const Custom *custom = &func->custom;
    bool transposable = custom->fwd && (custom->fwd->flags & FUNC_TRANSPOSABLE);
    if (serves_both_modes(result.callee)) {
        result.kind = CALL_counterparts;
        result.custom = custom->fwd;
    } else if (mode == AD_fwd && custom->fwd) {
        result.kind = transposable ? CALL_rule : CALL_custom;
        result.custom = custom->fwd;
    } else if (mode == AD_bwd && custom->bwd) {
        result.kind = CALL_custom;
        result.custom = custom->bwd;
        if (custom->primal) result.pass = ad_func(ad, custom->primal);
    } else if (mode == AD_bwd && transposable) {
        result.kind = CALL_rule;
        result.custom = custom->fwd;
    } else if (!(func->flags & FUNC_TREAT_AS_DIFF) && (func->flags & (mode == AD_fwd ? FUNC_FWD : FUNC_BWD)))
        result.kind = CALL_derived;
    return result;
}

CallPlan ad_plan_call(Ad *ad, const Inst *call, AdMode mode) {
    AdFunc *f = ad_func(ad, call->callee);
    if (!f->source)
        return (CallPlan){.kind = inst_has(call, INST_NO_DIFF) ? CALL_plain : CALL_derived, .callee = f};
    if (inst_has(call, INST_NO_DIFF)) /* its substitute, as it is */
        return (CallPlan){.kind = CALL_plain, .callee = ad_func(ad, ad_substitute(ad, f->source))};
    return plan(ad, f->source, mode);
}

/* A derivative that is wanted while it is being made: the function asks for it itself. */
void ad_refuse_endless(Ad *ad, const AdFunc *f) {
    const Func *of = f->source ? f->source->derivation.of : NULL;
    if (!of) return;
    while (of->derivation.of) of = of->derivation.of;
    diag_report(ad->m->diags, DIAG_endless_order, of->loc, of->name->text);
}

/* ---- forward mode of a flat function */

Func *ad_fwd(Ad *ad, AdFunc *f) {
    ad_declare_fwd(ad, f);
    if (f->fwd_ready) return f->fwd;
    f->fwd_ready = true;
    if (f->source) ad_complete(ad, f->source);
    Func *custom = f->source ? f->source->custom.fwd : NULL;
    if (custom) {
        ad_complete(ad, custom);
        if (custom->flags & FUNC_TRANSPOSABLE) custom->flags |= FUNC_INLINE;
        ad_fill_fwd_adapter(ad, f, custom);
        if (custom->flags & FUNC_TRANSPOSABLE) {
            map_put(ad->arena, &ad->adapters, PTR_KEY(f->fwd), NULL);
            ad_inline_rule(ad, f->fwd);
        }
        return f->fwd;
    }
    if (f->source && (f->source->flags & FUNC_TREAT_AS_DIFF)) {
        ad_fill_trivial_fwd(ad, f);
        return f->fwd;
    }
    ad_fill(ad, f, true);
    if (!f->flat->body) {
        ad_refuse_endless(ad, f);
        return f->fwd;
    }
    ad_linearize(ad, f, AD_fwd, f->fwd);
    if (ad->what == f->source) ad_after(ad, "linearize", f->fwd, NULL);
    clear_marks(f->fwd->body);
    ad_verify(ad, f->fwd, "linearize");
    ad->config.clean_flat(ad->config.user, f->fwd);
    return f->fwd;
}

/* ---- requests */

/* A function that does nothing but call `target`: differentiating it applies the rule for calls of target. */
static Func *wrap_call(Ad *ad, Func *target) {
    Func *wrapper = func_new(ad->m, format_text(ad->arena, "%s.call", target->name->text));
    func_set_params(wrapper, target->params, target->nparams);
    func_set_results(wrapper, target->results, target->nresults);
    wrapper->flags = target->flags & ~(uint32_t)(FUNC_EXPORT | FUNC_NORMAL);
    wrapper->loc = target->loc;
    wrapper->custom.complete = true;
    Region *body = func_begin(wrapper);
    Builder b = build_at_end(body);
    Inst *call = build_call(&b, target, body->params, body->nparams);
    build_return(&b, call->results, call->nresults);
    return wrapper;
}

static bool has_rule(const Func *target) {
    return target->custom.fwd && !target->custom.bwd && (target->custom.fwd->flags & FUNC_TRANSPOSABLE);
}

static void fill_derivation(Ad *ad, Func *func) {
    Func *of = func->derivation.of;
    if (of->derivation.of && !of->body) fill_derivation(ad, of);
    const Func *outer = ad->what;
    ad_complete(ad, of);
    Func *target = ad_substitute(ad, of);
    ad->what = target;
    Func *custom = func->derivation.mode == AD_fwd ? target->custom.fwd : target->custom.bwd;
    bool by_call = has_rule(target) || target->custom.primal ||
                   (target->custom.fwd && serves_both_modes(ad_func(ad, target)));
    if (custom && (func->derivation.mode == AD_fwd || !target->custom.primal))
        ad_fill_forwarding(ad, func, custom);
    else if (func->derivation.mode == AD_fwd) ad_fill_user_fwd(ad, func, ad_func(ad, target));
    else if (by_call) ad_fill_user_bwd(ad, func, ad_func(ad, wrap_call(ad, target)));
    else ad_fill_user_bwd(ad, func, ad_func(ad, target));
    if (func->body) ad_verify(ad, func, "derive");
    ad->what = outer;
}

static bool fill_some(Ad *ad) {
    bool some = false;
    for (int i = 0; i < ad->m->funcs.count; i++) {
        Func *func = ad->m->funcs.at[i];
        if (!func->derivation.of || func->body || func->note == ad) continue;
        func->note = ad; /* once, whatever comes of it */
        fill_derivation(ad, func);
        some = true;
    }
    for (int i = 0; i < ad->unfilled.count; i++) {
        AdFunc *f = ad->unfilled.at[i];
        if (f->filled) continue;
        ad_fill(ad, f, false);
        some |= f->filled;
    }
    return some;
}

static bool has_requests(const Module *m) {
    for (int i = 0; i < m->funcs.count; i++)
        if (m->funcs.at[i]->derivation.of && !m->funcs.at[i]->body) return true;
    return false;
}

void ad_run(const AdConfig *config) {
    if (!has_requests(config->module)) return;
    Ad *ad = config->module->derivatives;
    if (!ad) ad = config->module->derivatives = arena_new(config->module->arena, Ad);
    ad->m = config->module;
    ad->arena = config->module->arena;
    ad->config = *config;
    while (fill_some(ad)) {}
}

/* ---- reverse mode of a flat function */

static bool same_stable(const AdFunc *f, const bool *a, const bool *b) {
    for (int i = 0; i < f->leaves.count; i++)
        if (a[i] != b[i]) return false;
    return true;
}

static bool same_terms(const AdFunc *f, const Terms *a, const Terms *b) {
    return a->firm == b->firm && a->steady == b->steady && a->lone == b->lone &&
           same_stable(f, a->stable, b->stable);
}

Reverse *ad_reverse(Ad *ad, AdFunc *f, Terms terms) {
    for (int i = 0; i < f->reverses.count; i++)
        if (same_terms(f, &f->reverses.at[i]->terms, &terms)) return f->reverses.at[i];
    Reverse *reverse = arena_new(ad->arena, Reverse);
    reverse->terms = terms;
    reverse->terms.stable = arena_copy(ad->arena, terms.stable, sizeof(bool) * (size_t)(f->leaves.count + 1));
    vec_push(ad->arena, &f->reverses, reverse);
    if (f->source) ad_complete(ad, f->source);
    ad_build_reverse(ad, f, reverse);
    return reverse;
}
