/* Detached: derivatives that a function uses as constants.
 *
 * A call of a derivative, as any other call, is differentiated where numbers that move go in. If all that
 * becomes of its results goes through `detach`, nothing of that is wanted, and the call is taken for one
 * under no_diff. It is not a matter of speed: of functions that use each other's derivatives so, derivatives
 * of every order would be needed.
 *
 * Only calls that take numbers and give numbers are of that kind, of functions that reach no memory but their
 * own: what is stored elsewhere may have a derivative, too. */
#include "autodiff/ad.h"

typedef struct Search {
    Ad *ad;
    Map candidates; /* Inst: calls */
    bool *useful;   /* by id: its derivative leads somewhere */
    bool changed;
} Search;

/* ---- candidates */

typedef struct Reach {
    Ad *ad;
    Map seen;
    bool elsewhere;
} Reach;

static void reach(Reach *r, Func *func);

static void reach_inst(void *user, Inst *inst) {
    Reach *r = user;
    r->elsewhere |= inst->op == OP_global || op_has(inst->op, OP_EFFECT);
    if (inst->op == OP_call) reach(r, inst->callee);
}

static void reach(Reach *r, Func *func) {
    while (func->derivation.of) func = func->derivation.of;
    if (r->elsewhere || map_has(&r->seen, PTR_KEY(func))) return;
    map_put(r->ad->arena, &r->seen, PTR_KEY(func), func);
    ad_complete(r->ad, func);
    const Func *const more[] = {func->custom.fwd, func->custom.bwd, func->custom.substitute,
                                func->custom.primal};
    for (int i = 0; i < 4; i++)
        if (more[i]) reach(r, (Func *)(uintptr_t)more[i]);
    if (func->body) region_walk(func->body, reach_inst, r);
}

bool ad_reaches_elsewhere(Ad *ad, Func *func) {
    for (int i = 0; i < func->nparams; i++)
        if (type_leads_elsewhere(func->params[i].type)) return true;
    Reach all = {.ad = ad};
    reach(&all, func);
    return all.elsewhere;
}

static bool is_candidate(Ad *ad, const Inst *call) {
    const AdFunc *callee = call->op == OP_call ? ad_func(ad, call->callee) : NULL;
    if (!callee || !callee->source || !callee->source->derivation.of || inst_has(call, INST_NO_DIFF))
        return false;
    for (int i = 0; i < call->nargs; i++)
        if (!type_is_scalar(call->args[i]->type)) return false;
    return !ad_reaches_elsewhere(ad, callee->source);
}

static void find_candidate(void *user, Inst *inst) {
    Search *s = user;
    if (is_candidate(s->ad, inst)) map_put(s->ad->arena, &s->candidates, PTR_KEY(inst), inst);
}

/* ---- what is useful: from the end to the beginning, until nothing is added */

static bool is_useful(const Search *s, const Val *v) { return !val_is_const(v) && s->useful[v->id]; }

static void use(Search *s, const Val *v) {
    if (val_is_const(v) || s->useful[v->id]) return;
    s->useful[v->id] = s->changed = true;
}

static bool has_useful_result(const Search *s, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (is_useful(s, inst->results[i])) return true;
    return false;
}

static void walk(Search *s, const Region *region);

static void walk_loop(Search *s, const Inst *loop) {
    const Region *body = loop->regions[1];
    for (int i = 0; i < loop->nresults; i++) {
        if (!is_useful(s, loop->results[i]) && !is_useful(s, body->params[i])) continue;
        use(s, loop->args[i]);
        use(s, body->last->args[i]);
    }
}

static void walk_inst(Search *s, const Inst *inst) {
    bool asks =
        op_has(inst->op, OP_PURE) || map_has(&s->candidates, PTR_KEY(inst)); /* who uses its results? */
    if (inst->op == OP_detach || inst->op == OP_yield) return;               /* a yield by its owner */
    if (inst->op == OP_loop) walk_loop(s, inst);
    else if (inst->nregions) {
        for (int i = 0; i < inst->nresults; i++)
            for (int k = 0; k < inst->nregions && is_useful(s, inst->results[i]); k++)
                use(s, inst->regions[k]->last->args[i]);
    } else if (!asks || has_useful_result(s, inst))
        for (int i = 0; i < inst->nargs; i++) use(s, inst->args[i]);
    for (int k = 0; k < inst->nregions; k++) walk(s, inst->regions[k]);
}

static void walk(Search *s, const Region *region) {
    for (const Inst *inst = region->last; inst; inst = inst->prev) walk_inst(s, inst);
}

void ad_mark_detached(Ad *ad, Func *func) {
    Search s = {.ad = ad};
    region_walk(func->body, find_candidate, &s);
    if (!s.candidates.count) return;
    s.useful = arena_array(ad->arena, bool, func->nvals + 1);
    do {
        s.changed = false;
        walk(&s, func->body);
    } while (s.changed);
    for (int i = 0; i < s.candidates.count; i++) {
        Inst *call = s.candidates.entries[i].value;
        if (!has_useful_result(&s, call)) call->flags |= INST_NO_DIFF;
    }
}
