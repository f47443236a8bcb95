/* Facts about functions: is it recursive, does it have derivatives of the user, effects?
 *
 * A fact holds of a function if something in its body shows it, or if it holds of a function that it calls. The search goes
 * through all that can be reached, so that functions which call each other in a circle get the same answer. What a search
 * without success has seen is known from then on. */
#include "autodiff/autodiff.h"

typedef struct Search {
    Ad *ad;
    AdFact fact;
    const AdFunc *wanted;
    Map seen; /* AdFunc -> itself */
    bool found;
} Search;

static bool is_new(Search *search, AdFunc *f) {
    if (search->found || map_has(&search->seen, PTR_KEY(f))) return false;
    map_put(search->ad->arena, &search->seen, PTR_KEY(f), f);
    return true;
}

/* ---- recursion */

static void search_calls(Search *search, AdFunc *f);

static void search_call(void *user, Inst *inst) {
    Search *search = user;
    if (inst->op != OP_call || search->found) return;
    AdFunc *callee = ad_func(search->ad, inst->callee);
    if (callee == search->wanted) search->found = true;
    else search_calls(search, callee);
}

static void search_calls(Search *search, AdFunc *f) {
    if (!is_new(search, f)) return;
    if (f->source) ad_fill(search->ad, f, f->normal);
    if (f->flat->body) region_walk(f->flat->body, search_call, search);
}

bool ad_is_recursive(Ad *ad, AdFunc *f) {
    if (!f->recursive) {
        Search search = {.ad = ad, .wanted = f};
        search_calls(&search, f);
        f->recursive = search.found ? 2 : 1;
    }
    return f->recursive == 2;
}

/* ---- effects */

bool ad_is_object(Val *address) {
    const Val *root = ad_root(address);
    if (!root || root->kind != VAL_param || root->region->owner) return root;
    return root->region->func->params[root->index].flags & PARAM_BY_ADDRESS;
}

static bool has_own_effect(const Inst *inst) {
    bool writes = inst->op == OP_store || inst->op == OP_copy || inst->op == OP_zero || inst->op == OP_acc;
    if (op_has(inst->op, OP_EFFECT) || inst->op == OP_atomic || inst->op == OP_atomic_cas) return true;
    return writes && !ad_is_object(inst->args[0]);
}

bool ad_inst_has_effects(Ad *ad, const Inst *inst) {
    return has_own_effect(inst) || (inst->op == OP_call && ad_has(ad, ad_func(ad, inst->callee), AD_effects));
}

/* ---- derivatives of the user */

/* A function whose only output is memory may receive gradients from there. One that computes results and nothing else
 * has nothing to pass back if they are not used. */
static bool takes_gradients(Ad *ad, AdFunc *f) {
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].diff && f->leaves.at[i].dir != DIR_in) return ad_has(ad, f, AD_effects);
    return true;
}

bool ad_is_sink(Ad *ad, const CallPlan *plan) {
    if (plan->kind == CALL_custom) return takes_gradients(ad, plan->callee);
    return plan->kind == CALL_derived && ad_has(ad, plan->callee, AD_sinks);
}

/* ---- the search */

static void search_body(Search *search, AdFunc *f);

static void search_plan(Search *search, const CallPlan *plan, AdMode mode) {
    if (plan->kind == CALL_derived) search_body(search, plan->callee);
    if (plan->kind != CALL_custom) return;
    search->found |= search->fact == AD_sources || (mode == AD_bwd && ad_is_sink(search->ad, plan));
}

static void search_inst(void *user, Inst *inst) {
    Search *search = user;
    search->found |= search->fact == AD_effects && has_own_effect(inst);
    if (inst->op != OP_call || search->found) return;
    if (search->fact == AD_effects) {
        search_body(search, ad_func(search->ad, inst->callee));
        return;
    }
    for (int mode = search->fact == AD_sinks ? AD_bwd : AD_fwd; mode <= AD_bwd && !inst->flag; mode++) {
        CallPlan plan = ad_plan_call(search->ad, inst, (AdMode)mode);
        search_plan(search, &plan, (AdMode)mode);
    }
}

static void search_body(Search *search, AdFunc *f) {
    int known = f->facts[search->fact];
    search->found |= known == 2;
    if (known || !is_new(search, f)) return;
    ad_fill(search->ad, f, search->fact != AD_effects || f->normal);
    if (f->flat->body) region_walk(f->flat->body, search_inst, search);
}

bool ad_has(Ad *ad, AdFunc *f, AdFact fact) {
    if (f->facts[fact]) return f->facts[fact] == 2;
    Search search = {.ad = ad, .fact = fact};
    search_body(&search, f);
    for (int i = 0; i < search.seen.count && !search.found; i++)
        ((AdFunc *)search.seen.entries[i].value)->facts[fact] = 1;
    if (search.found) f->facts[fact] = 2;
    return search.found;
}
