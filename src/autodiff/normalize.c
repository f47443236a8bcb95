/* Normalize: a copy of a function, lean, in normal form and flat.
 *
 * What can be inlined is, unless the source has something to say about its derivative; exits become
 * conditions; opt cleans up; flat.c takes structs and vectors apart, and opt cleans up once more. A function
 * that is not to be differentiated is made flat and no more. */
#include "autodiff/ad.h"

/* ---- what is inlined */

/* Inside the caller it would be with its counterpart again: a reference under no_diff, or in a struct that is
 * none itself. */
static bool leaves_reference(Ad *ad, const Func *func) {
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        if (param->flags & PARAM_NO_DIFF) return true;
        if (!(param->flags & (PARAM_DIFF | PARAM_PTR_DIFF)) && ir_holds_reference(ad->m, param->type))
            return true;
    }
    return false;
}

enum { MOST_STEPS = 32 };

static void take_steps(const Func *func, int *left);

static void take_step(void *user, Inst *inst) {
    int *left = user;
    bool does_more = inst->nregions || op_has(inst->op, OP_WRITES) || op_has(inst->op, OP_EFFECT);
    *left = does_more ? -1 : *left - 1;
    if (inst->op == OP_call && *left > 0) take_steps(inst->callee, left);
}

/* Less than 0 are left: it does something else, or more. */
static void take_steps(const Func *func, int *left) {
    bool counts = func->body && func->nresults > 0;
    for (int i = 0; i < func->nresults; i++) counts &= type_is_integer(func->results[i]);
    for (int i = 0; i < func->nparams; i++) counts &= func->params[i].dir == DIR_in;
    if (counts) region_walk(func->body, take_step, left);
    else *left = -1;
}

/* A few steps to whole numbers, which have no derivatives, whatever they come from. The limit of a loop is
 * often asked for so, as in `i < values.getCount()`, and stays the same only if it can be seen. */
static bool only_counts(const Func *func) {
    int left = MOST_STEPS;
    take_steps(func, &left);
    return left >= 0;
}

/* Straight code that autodiff has made. What a reverse pass is handed by the primal is then seen with what it
 * was computed from: the adjoint of an exponential can be too small for a float where that of its exponent is
 * not (factors.c). What it takes as a constant would be one no longer. */
static bool is_straight_derivative(const Func *func) {
    if (!(func->flags & FUNC_GENERATED) || !func->body || func->derivation.of) return false;
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_NO_DIFF) return false;
    for (const Inst *inst = func->body->first; inst; inst = inst->next)
        if (inst->nregions || inst->op == OP_call || op_has(inst->op, OP_WRITES) ||
            op_has(inst->op, OP_EFFECT))
            return false;
    return true;
}

static bool may_inline(void *user, const Func *callee, const Inst *call) {
    Ad *ad = user;
    Func *func = (Func *)(uintptr_t)callee;
    bool counts = only_counts(callee);
    if (inst_has(call, INST_NO_DIFF) ||
        (callee->flags & (FUNC_TREAT_AS_DIFF | FUNC_RECOMPUTE | FUNC_CHECKPOINT)))
        return false;
    if (is_straight_derivative(callee)) return true;
    if (!counts && !(callee->flags & FUNC_BWD)) return false;
    if (!counts && ((callee->flags & FUNC_GENERATED) || leaves_reference(ad, callee))) return false;
    if (!func->derivation.of) ad_complete(ad, func);
    return func->body && !func->custom.fwd && !func->custom.bwd && !func->custom.substitute;
}

/* Callees must have their bodies before they can be inlined. A derivative gets it later: it may need what is
 * being filled. */
static void complete_callees(void *user, Inst *inst) {
    if (inst->op == OP_call && !inst->callee->derivation.of) ad_complete(user, inst->callee);
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

/* Bodies for all that it calls, and so on. */
static void complete_all(Ad *ad, Func *func) {
    Completion all = {.ad = ad};
    region_walk(func->body, complete_callee, &all);
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
    ad_clear_marks(f->flat->body);
}

/* A substitute that always calls what it stands for, which is a call of itself. */
static void refuse_endless_substitute(Ad *ad, Func *source, const Region *body) {
    for (const Inst *inst = body->first; inst; inst = inst->next) {
        bool replaced = inst->op == OP_call && inst->callee != source && inst->callee->custom.substitute;
        if (!replaced || ad_substitute(ad, inst->callee) != source) continue;
        diag_report(ad->m->diags, DIAG_endless_substitute, source->loc, source->name->text,
                    inst->callee->name->text);
        return;
    }
}

/* ---- references that a call leaves as they were */

typedef struct Returns {
    const Val *param;
    int index;
    bool differ;
} Returns;

static void look_at_return(void *user, Inst *inst) {
    Returns *x = user;
    x->differ |= inst->op == OP_return && inst_operand(inst, x->index) != x->param;
}

typedef struct Passed {
    Ad *ad;
    ValVec results;
} Passed;

static bool leaves_as_it_was(const Func *flat, const Leaf *leaf) {
    if (!ad_is_given(leaf) || leaf->in < 0 || leaf->out < 0) return false;
    Returns x = {.param = flat->body->params[leaf->in], .index = leaf->out};
    region_walk(flat->body, look_at_return, &x);
    return !x.differ;
}

/* A method that may change its object, as any setter, is one that gives it; but if that is a reference, and
 * the same as before, its counterpart is known. */
static void pass_reference_by(void *user, Inst *inst) {
    Passed *x = user;
    Ad *ad = x->ad;
    AdFunc *callee = inst->op == OP_call ? ad_func(ad, inst->callee) : NULL;
    if (!callee || !callee->source || !ad_gives_references(&callee->leaves) ||
        callee->source->custom.substitute)
        return;
    ad_fill(ad, callee, callee->normal);
    for (int i = 0; callee->flat->body && i < callee->leaves.count; i++) {
        const Leaf *leaf = &callee->leaves.at[i];
        if (!leaves_as_it_was(callee->flat, leaf)) continue;
        inst->results[leaf->out]->forward = inst_operand(inst, leaf->in);
        vec_push(ad->arena, &x->results, inst->results[leaf->out]);
    }
}

/* The call still gives it, but nobody takes it. */
static void pass_references_by(Ad *ad, Func *flat) {
    Passed x = {.ad = ad};
    region_walk(flat->body, pass_reference_by, &x);
    if (x.results.count) ir_resolve_func(flat);
    for (int i = 0; i < x.results.count; i++) x.results.at[i]->forward = NULL;
}

void ad_fill(Ad *ad, AdFunc *f, bool normal) {
    if (!f->source || (f->filled && (f->normal || !normal))) return;
    ad_complete(ad, f->source);
    if (!f->source->body) return;
    if (func_is_by_hand(f->source)) f->flat->flags |= FUNC_BY_HAND;
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
        refuse_endless_substitute(ad, f->source, copy->body);
    }
    ad->config.clean(ad->config.user, copy);
    f->flat->flags |= copy->flags & (FUNC_PRECISE | FUNC_INLINE);
    ad_flatten(ad, copy, f, true);
    if (normal) pass_references_by(ad, f->flat);
    ad->config.clean_flat(ad->config.user, f->flat);
    if (normal && ad->config.straighten(ad->config.user, f->flat))
        ad->config.clean_flat(ad->config.user, f->flat);
    if (normal && ad_choose_by_number(ad, f)) ad->config.clean_flat(ad->config.user, f->flat);
    if (normal && ad_do_by_cases(ad, f->flat)) ad->config.clean_flat(ad->config.user, f->flat);
    if (normal) ad_mark_detached(ad, f->flat);
    ir_mark_in_range(f->flat);
    if (normal) ad_sink(ad, f->flat);
    if (normal) ad_segment_loops(ad, f->flat);
    if (ad->what == f->source) {
        ad_after(ad, "normalize", f->flat, NULL);
        show_activity(ad, f);
    }
}

/* ---- adapters */

/* From structured code to flat code, in place; calls of the user's functions become calls of their flat
 * forms. */
void ad_flatten_adapter(Ad *ad, Func *func) {
    Func *copy = clone_func(func, format_text(ad->arena, "%s.copy", func->name->text));
    ad->config.lower_exits(ad->config.user, copy);
    ad->config.clean(ad->config.user, copy);
    AdFunc to = {.flat = func, .leaves = ad_leaves_of_flat(ad, func)};
    ad_flatten(ad, copy, &to, false);
    func->flags |= FUNC_NORMAL;
    ad->config.clean_flat(ad->config.user, func);
}

void ad_inline_rule(Ad *ad, Func *fwd) {
    complete_all(ad, fwd);
    fwd->flags &= ~(uint32_t)FUNC_NORMAL; /* until exits are lowered */
    ad->config.inline_calls(ad->config.user, fwd, NULL, NULL);
    ad_flatten_adapter(ad, fwd);
}
