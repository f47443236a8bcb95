/* Requests: which derivative is asked for, what it needs, and what the source has to say about it. */
#include "autodiff/ad.h"

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

static bool gives_vector(const void *user, const Inst *inst) {
    (void)user;
    for (int i = 0; i < inst->nresults; i++)
        if (inst->results[i]->type->kind == TYPE_vector) return true;
    return false;
}

/* A user's dadd that became a part of a reverse pass may work on vectors. */
static bool has_vectors(const Func *func) {
    return func->body && region_find(func->body, gives_vector, NULL);
}

/* A function made by autodiff: everything that can be differentiated is. What is not flat is made so when
 * that is asked for. */
static AdFunc *add_generated(Ad *ad, Func *flat) {
    if (map_get(&ad->adapters, PTR_KEY(flat)) || has_vectors(flat)) {
        map_put(ad->arena, &ad->adapters, PTR_KEY(flat), NULL);
        ad_flatten_adapter(ad, flat);
    }
    return ad_add_flat(ad, flat, ad_leaves_of_flat(ad, flat));
}

const char *ad_name(const AdFunc *f) { return (f->source ? f->source : f->flat)->name->text; }

AdFunc *ad_func(Ad *ad, Func *func) {
    AdFunc *f = map_get(&ad->funcs, PTR_KEY(func));
    if (f) return f;
    if ((func->flags & FUNC_GENERATED) && !func->derivation.of) return add_generated(ad, func);
    f = arena_new(ad->arena, AdFunc);
    f->source = func;
    f->written = true;
    map_put(ad->arena, &ad->funcs, PTR_KEY(func), f);
    f->leaves = ad_leaves_of_func(ad, func);
    f->flat = ad_declare_flat(ad, func, &f->leaves);
    map_put(ad->arena, &ad->funcs, PTR_KEY(f->flat), f);
    vec_push(ad->arena, &ad->unfilled, f);
    return f;
}

/* ---- references without counterparts */

static bool is_copy(const AdFunc *f, const AdFunc *copy, const bool *constants) {
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].dual && copy->leaves.at[i].dual == constants[i]) return false;
    return true;
}

/* Of a function that autodiff made: a copy with other parameters. */
static Func *copy_flat(Ad *ad, const AdFunc *f, const Leaves *leaves) {
    Func *flat = clone_func(f->flat, f->flat->name->text);
    if (flat->counterparts)
        flat->counterparts =
            arena_copy(ad->arena, flat->counterparts, sizeof *flat->counterparts * (size_t)flat->nresults);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->later && leaf->in >= 0)
            flat->params[leaf->in].counterpart = type_basic(ad->m->types, TYPE_void);
        if (leaf->later && leaf->out >= 0 && flat->counterparts) flat->counterparts[leaf->out] = NULL;
    }
    return flat;
}

static AdFunc *make_copy(Ad *ad, AdFunc *f, Leaves leaves) {
    AdFunc *copy =
        f->source ? arena_new(ad->arena, AdFunc) : ad_add_flat(ad, copy_flat(ad, f, &leaves), leaves);
    copy->general = f;
    copy->written = f->written;
    copy->doubted = f->doubted;
    copy->plain = f->plain;
    vec_push(ad->arena, &f->copies, copy);
    if (!f->source) return copy;
    copy->source = f->source;
    copy->leaves = leaves;
    copy->flat = ad_declare_flat(ad, f->source, &copy->leaves);
    map_put(ad->arena, &ad->funcs, PTR_KEY(copy->flat), copy);
    vec_push(ad->arena, &ad->unfilled, copy);
    return copy;
}

AdFunc *ad_with_constants(Ad *ad, AdFunc *f, const bool *constants) {
    if (f->round || is_copy(f, f, constants)) return f;
    for (int i = 0; i < f->copies.count; i++)
        if (is_copy(f, f->copies.at[i], constants)) return f->copies.at[i];
    Leaves leaves = f->leaves;
    leaves.at = arena_copy(ad->arena, f->leaves.at, sizeof(Leaf) * (size_t)leaves.count);
    for (int i = 0; i < leaves.count; i++) {
        Leaf *leaf = &leaves.at[i];
        if (!leaf->dual || !constants[i]) continue;
        leaf->dual = leaf->held = false;
        leaf->later = leaf->dtype; /* it may have one in derivatives of derivatives */
        leaf->dtype = NULL;
    }
    return make_copy(ad, f, leaves);
}

/* Pairs have no room for counterparts of what a differentiable struct holds. */
static AdFunc *in_pairs(Ad *ad, AdFunc *f) {
    bool *held = arena_array(ad->arena, bool, f->leaves.count + 1);
    for (int i = 0; i < f->leaves.count; i++) held[i] = f->leaves.at[i].held;
    return ad_with_constants(ad, f, held);
}

/* ---- what the source says about calls */

Func *ad_substitute(Ad *ad, Func *func) {
    for (;;) { /* substitutes of substitutes; the checker lets no circle pass */
        ad_complete(ad, func);
        if (!func->custom.substitute) return func;
        func = func->custom.substitute;
    }
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
    if (result.custom) result.callee = in_pairs(ad, result.callee);
    return result;
}

CallPlan ad_plan_call(Ad *ad, const Inst *call, AdMode mode) {
    AdFunc *f = ad_func(ad, call->callee);
    if (!f->source)
        return (CallPlan){.kind = inst_has(call, INST_NO_DIFF) ? CALL_plain : CALL_derived, .callee = f};
    if (inst_has(call, INST_NO_DIFF) &&
        f->source->derivation.of) /* it gets its body later: it may need what is being made */
        return (CallPlan){.kind = CALL_plain, .callee = f};
    if (inst_has(call, INST_NO_DIFF)) /* its substitute, as it is */
        return (CallPlan){.kind = CALL_plain, .callee = ad_func(ad, ad_substitute(ad, f->source))};
    return plan(ad, f->source, mode);
}

static void call_substitute(void *user, Inst *inst) {
    if (inst->op != OP_call) return;
    CallPlan forward = ad_plan_call(user, inst, AD_fwd), backward = ad_plan_call(user, inst, AD_bwd);
    bool derived = forward.kind == CALL_derived || backward.kind == CALL_derived;
    inst->callee = derived ? ad_primal(user, forward.callee) : forward.callee->flat;
}

Func *ad_primal(Ad *ad, AdFunc *f) {
    if (f->primal) return f->primal;
    if (!ad_has(ad, f, AD_substitutes)) return f->primal = f->flat;
    f->primal = clone_func(f->flat, format_text(ad->arena, "%s.primal", f->flat->name->text));
    region_walk(f->primal->body, call_substitute, ad);
    return f->primal;
}

/* A derivative that is wanted while it is being made: the function asks for it itself. */
void ad_refuse_endless(Ad *ad, const AdFunc *f) {
    const Func *of = f->source ? f->source->derivation.of : NULL;
    if (!of) return;
    while (of->derivation.of) of = of->derivation.of;
    diag_report(ad->m->diags, DIAG_endless_order, of->loc, of->name->text);
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
    else if (func->derivation.mode == AD_fwd) ad_fill_user_fwd(ad, func, in_pairs(ad, ad_func(ad, target)));
    else ad_fill_user_bwd(ad, func, in_pairs(ad, ad_func(ad, by_call ? wrap_call(ad, target) : target)));
    if (func->body) ad_verify(ad, func, "derive");
    ad->what = outer;
}

static bool fill_some(Ad *ad) {
    bool some = false;
    for (int i = 0; i < ad->m->funcs.count; i++) {
        Func *func = ad->m->funcs.at[i];
        if (!func->derivation.of || func->body || map_has(&ad->tried, PTR_KEY(func))) continue;
        map_put(ad->arena, &ad->tried, PTR_KEY(func), func); /* once, whatever comes of it */
        int failures = ad->m->diags->failures;
        fill_derivation(ad, func);
        if (ad->m->diags->failures > failures) func->flags |= FUNC_FAILED;
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
