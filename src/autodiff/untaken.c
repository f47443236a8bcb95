/* Untaken: what was not chosen contributes exactly nothing.
 *
 * The side of a choice that was not taken, a loop without iterations, an element that nobody reads: their
 * adjoints are zero. But zero times the slope of a logarithm at 0, or times a product that overflowed, is no
 * zero, and one NaN spoils the whole gradient. So where an adjoint may be such a zero, and its factor may be
 * infinite, the transposed product is a `scale` and the quotient a `ratio`, for which zero stays zero; their
 * own derivatives are of the same kind, so that it holds at any order.
 *
 * An adjoint is firm if some use contributes to it whenever its region runs: then zero is a number like any
 * other, and plain arithmetic will do. A use in an `if` counts if all its regions have one; a use in a loop
 * only if that surely iterates. Carried values are taken to be firm until the contrary is found. The results
 * of a function are firm if its caller says so. What a loop leaves and nobody reads is not; but what the last round makes
 * firm of what it is given is so for all rounds before. So for an innermost loop it is also found out what is firm
 * in those (unread.c).
 *
 * A factor is calm if nothing in its making can overflow or divide by zero. What comes from memory or from a
 * parameter is taken to be so, unless the function is itself a derivative: there it is what the function
 * kept; and unless it is an element of a local array, into which the function has stored what may have no
 * value (the root of a negative number, as in a Cholesky factor of which a part is unused). */
#include "autodiff/ad.h"

#include <math.h>

struct Untaken {
    Ad *ad;
    const Making *making;
    uint32_t nvals;
    bool trusts;        /* what comes from outside */
    bool *firm;         /* by id of a differential: so far, in the pass at work */
    bool *carried;      /* by id of a differential: but for the last round of the loop around */
    const Inst *peeled; /* a loop of which the last round is left out, */
    const bool *last;   /* ... and what is firm in that, by id */
    bool *denied;       /* carried differentials that have turned out not to be */
    uint8_t *calm;      /* by id of a primal value: CALM, WILD; 0: not asked yet */
    bool *
        undefined; /* by id of a primal value: it may have no value; of a variable: what is stored there may have none */
    Elements *elements;
    ValVec log; /* what became firm, in order */
    bool changed;
};

enum { CALM = 1, WILD };

/* ---- what may have no value */

static bool is_undefined(const Untaken *u, const Val *v) {
    return !val_is_const(v) && v->id < u->nvals && u->undefined[v->id];
}

static void mark_undefined(Untaken *u, const Val *v) {
    if (!v || val_is_const(v) || v->id >= u->nvals || u->undefined[v->id]) return;
    u->undefined[v->id] = u->changed = true;
}

static const Val *variable_of(const Inst *inst) {
    const Val *root = ir_root(inst->args[0]);
    return root && root->kind == VAL_inst && root->inst->op == OP_var ? root : NULL;
}

/* From the ends of its regions to what it gives, and in a loop to the next round. */
static void carry_undefined(Untaken *u, const Inst *inst) {
    bool is_loop = inst->op == OP_loop;
    for (int k = is_loop; k < inst->nregions; k++)
        for (int i = 0; i < inst->nresults; i++)
            if (is_undefined(u, inst->regions[k]->last->args[i])) mark_undefined(u, inst->results[i]);
    for (int i = 0; i < inst->nresults && is_loop; i++) {
        if (is_undefined(u, inst->args[i])) mark_undefined(u, inst->results[i]);
        for (int k = 0; k < 2 && is_undefined(u, inst->results[i]); k++)
            mark_undefined(u, inst->regions[k]->params[i]);
    }
}

static bool makes_undefined(const Untaken *u, const Inst *inst) {
    const Val *variable = inst->op == OP_load ? variable_of(inst) : NULL;
    if (variable) return is_undefined(u, variable);
    if (!op_has(inst->op, OP_PURE) || inst->nresults != 1 || !type_is_float(inst->results[0]->type))
        return false;
    for (int i = 0; i < inst->nargs; i++)
        if (is_undefined(u, inst->args[i])) return true;
    return op_has(inst->op, OP_DOMAIN);
}

static void visit_undefined(void *user, Inst *inst) {
    Untaken *u = user;
    if (inst->op == OP_loop || inst->op == OP_if || inst->op == OP_switch) carry_undefined(u, inst);
    else if (inst->op == OP_store && is_undefined(u, inst->args[1])) mark_undefined(u, variable_of(inst));
    else if (inst->nresults && makes_undefined(u, inst)) mark_undefined(u, inst->results[0]);
}

static void find_undefined(Untaken *u) {
    u->undefined = arena_array(u->ad->arena, bool, (int)u->nvals);
    do {
        u->changed = false;
        region_walk(u->making->primal, visit_undefined, u);
    } while (u->changed);
}

/* ---- factors */

static bool find_calm(Untaken *u, const Val *v);

static bool is_doubted(const Untaken *u, const Val *param) {
    const AdFunc *f = u->making->f;
    return f->doubted && (param->index >= f->flat->nparams || f->doubted[param->index]);
}

/* Does a call only fetch it from memory, as accessors do? */
static bool is_fetched(const Inst *call, int result) {
    const Inst *end = call->callee->body ? call->callee->body->last : NULL;
    if (!end || end->op != OP_return || result >= end->nargs) return false;
    const Val *v = ir_resolve(end->args[result]);
    return v->kind == VAL_inst && v->inst->op == OP_load;
}

static bool make_calm(Untaken *u, const Val *v) {
    if (!type_is_float(v->type)) return true;
    if (v->kind == VAL_param) return u->trusts && !v->region->owner && !is_doubted(u, v);
    const Inst *inst = v->inst;
    if (inst->op == OP_load) return u->trusts && !is_undefined(u, v);
    if (inst->op == OP_call) return u->trusts && is_fetched(inst, v->index);
    if (!op_has(inst->op, OP_PURE) || op_has(inst->op, OP_STEEP | OP_PRODUCT)) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (!find_calm(u, inst->args[i])) return false;
    return true;
}

static bool find_calm(Untaken *u, const Val *v) {
    if (val_is_const(v)) return !type_is_float(v->type) || isfinite(v->real);
    if (v->id >= u->nvals) return false;
    if (!u->calm[v->id]) {
        u->calm[v->id] = WILD;
        if (make_calm(u, v)) u->calm[v->id] = CALM;
    }
    return u->calm[v->id] == CALM;
}

/* ---- adjoints */

static bool is_firm(const Untaken *u, const Val *v) {
    return !val_is_const(v) && v->id < u->nvals && u->firm[v->id];
}

static void set_firm(Untaken *u, Val *v) {
    if (val_is_const(v) || v->id >= u->nvals || u->firm[v->id]) return;
    u->firm[v->id] = true;
    vec_push(u->ad->arena, &u->log, v);
}

static void visit_region(Untaken *u, const Region *region);

/* Takes back what became firm outside of `owner` since `mark`. What is inside stays as it is, whatever
 * comes. */
static void take_back(Untaken *u, const Inst *owner, int mark) {
    for (int i = mark; i < u->log.count; i++)
        if (!inst_contains(owner, u->log.at[i])) u->firm[u->log.at[i]->id] = false;
    u->log.count = mark;
}

/* What is outside of a branch is firm if every region makes it so. */
static void visit_branches(Untaken *u, const Inst *inst) {
    ValVec common = {0};
    ElementsAfter after = ad_elements_enter(u->elements);
    for (int k = 0; k < inst->nregions; k++) {
        const Region *region = inst->regions[k];
        int mark = u->log.count, kept = 0;
        for (int i = 0; i < inst->nresults; i++)
            if (is_firm(u, inst->results[i])) set_firm(u, region->last->args[i]);
        visit_region(u, region);
        for (int i = mark; i < u->log.count && k == 0; i++)
            if (!inst_contains(inst, u->log.at[i])) vec_push(u->ad->arena, &common, u->log.at[i]);
        for (int i = 0; i < common.count; i++)
            if (is_firm(u, common.at[i])) common.at[kept++] = common.at[i];
        common.count = kept;
        take_back(u, inst, mark);
        ad_elements_branch(u->elements, &after);
    }
    ad_elements_join(u->elements, &after);
    for (int i = 0; i < common.count; i++) set_firm(u, common.at[i]);
}

/* How many rounds there are; 0: that is not known, or maybe there is none. */
static int64_t known_trip(Untaken *u, const Inst *loop) {
    const LoopInfo *info = ad_loop_info(u->making, map_get(&u->making->twins, PTR_KEY(loop)));
    int64_t trip;
    return info && info->known && val_is_int(info->trip, &trip) && trip > 0 ? trip : 0;
}

static bool is_handed_on(const Untaken *u, const Inst *loop, int i) {
    uint32_t id = loop->regions[1]->params[i]->id;
    return loop == u->peeled ? u->last[id] : is_firm(u, loop->results[i]) && !u->denied[id];
}

static void visit_loop(Untaken *u, const Inst *loop) {
    const Region *body = loop->regions[1];
    int mark = u->log.count;
    int64_t trip = known_trip(u, loop);
    ElementsAfter after = ad_elements_enter(u->elements);
    ad_elements_enter_round(u->elements, &after);
    for (int i = 0; i < loop->nresults; i++)
        if (is_handed_on(u, loop, i)) set_firm(u, body->last->args[i]);
    visit_region(u, body);
    for (int i = 0; i < body->nparams; i++) {
        uint32_t id = body->params[i]->id;
        if (u->firm[id] || u->denied[id]) continue;
        u->denied[id] = u->changed = true;
    }
    u->changed |= ad_elements_leave_loop(u->elements, loop, trip, &after);
    if (trip == 0) take_back(u, loop, mark);
    for (int i = 0; i < loop->nresults; i++)
        if (is_firm(u, loop->results[i]) && is_firm(u, body->params[i])) set_firm(u, loop->args[i]);
}

/* Memory but for some arrays (elements.c), and tapes, hold adjoints that may be zero; a function may not have
 * used its argument; a select passes an adjoint on to one of two; the factor of a scale is an adjoint of a
 * first derivative, itself perhaps zero. */
static void visit_inst(Untaken *u, const Inst *inst) {
    if (inst->op == OP_if || inst->op == OP_switch) visit_branches(u, inst);
    if (inst->op == OP_loop) visit_loop(u, inst);
    if (inst->op == OP_store && ad_elements_store(u->elements, inst)) set_firm(u, inst_operand(inst, 1));
    if (inst->op == OP_load && is_firm(u, inst->results[0])) ad_elements_load(u->elements, inst);
    if (inst->op == OP_var || inst->op == OP_copy || inst->op == OP_zero)
        ad_elements_overwrite(u->elements, inst);
    if (!op_has(inst->op, OP_PURE) || inst->op == OP_select || !is_firm(u, inst->results[0])) return;
    for (int i = inst->op == OP_scale; i < inst->nargs; i++)
        if (inst->args[i]->flags & VAL_DIFF) set_firm(u, inst->args[i]);
}

static void visit_region(Untaken *u, const Region *region) {
    for (const Inst *inst = region->last; inst; inst = inst->prev) visit_inst(u, inst);
}

static void find_firm(Untaken *u) {
    const Region *diff = u->making->diff;
    u->firm = arena_array(u->ad->arena, bool, (int)u->nvals);
    u->denied = arena_array(u->ad->arena, bool, (int)u->nvals);
    do {
        u->changed = false;
        u->log.count = 0;
        ad_elements_restart(u->elements);
        memset(u->firm, 0, sizeof *u->firm * u->nvals);
        for (int i = 0; i < diff->last->nargs; i++)
            if (u->making->reverse->terms.firm & ad_result_bit(i)) set_firm(u, diff->last->args[i]);
        visit_region(u, diff);
    } while (u->changed);
}

/* ---- what the last round carries on */

static void note_loop(void *user, Inst *inst) {
    InstVec *loops = user;
    if (inst->op == OP_loop) vec_push(inst->func->module->arena, loops, inst);
}

static bool is_unread(const Untaken *u, const Inst *loop) {
    bool is_any = false;
    for (int i = 0; i < loop->nresults; i++) is_any |= !is_firm(u, loop->results[i]);
    return is_any && !region_has_loop(loop->regions[1]);
}

static void mark_carried(Untaken *u, const Val *v) {
    if (v->id < u->nvals && !u->last[v->id] && u->firm[v->id]) u->carried[v->id] = true;
}

static void visit_carried(void *user, Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) mark_carried(user, inst->results[i]);
}

/* Each loop takes another look at the whole. */
static void find_carried(Untaken *u) {
    enum { MOST_LOOPS = 8 };
    InstVec loops = {0};
    bool *firm = u->firm, *denied = u->denied;
    u->last = firm;
    u->carried = arena_array(u->ad->arena, bool, (int)u->nvals);
    region_walk(u->making->diff, note_loop, &loops);
    for (int i = 0; i < loops.count && loops.count <= MOST_LOOPS; i++) {
        if (!is_unread(u, loops.at[i])) continue;
        Region *body = loops.at[i]->regions[1];
        u->peeled = loops.at[i];
        find_firm(u);
        for (int k = 0; k < body->nparams; k++) mark_carried(u, body->params[k]);
        region_walk(body, visit_carried, u);
        u->firm = firm, u->denied = denied;
    }
    u->peeled = NULL;
}

Untaken *ad_untaken(Ad *ad, const Making *making) {
    Untaken *u = arena_new(ad->arena, Untaken);
    *u = (Untaken){
        .ad = ad, .making = making, .nvals = making->linear.func->nvals, .trusts = making->f->written};
    u->elements = ad_elements(ad, making);
    u->calm = arena_array(ad->arena, uint8_t, (int)u->nvals);
    find_undefined(u);
    find_firm(u);
    if (ad_may_peel(ad, making)) find_carried(u);
    return u;
}

uint64_t ad_result_bit(int i) { return UINT64_C(1) << (i < FIRM_BITS ? i : FIRM_BITS - 1); }

bool ad_is_firm(const Untaken *u, const Val *differential) { return is_firm(u, differential); }

bool ad_is_carried(const Untaken *u, const Val *differential) {
    return u->carried && !val_is_const(differential) && differential->id < u->nvals &&
           u->carried[differential->id];
}

Op ad_product(Untaken *u, const Val *differential, const Val *factor) {
    return is_firm(u, differential) || find_calm(u, factor) ? OP_mul : OP_scale;
}

Op ad_quotient(const Untaken *u, const Val *differential, const Val *divisor) {
    bool harmless = val_is_const(divisor) && isnormal(divisor->real);
    return is_firm(u, differential) || harmless ? OP_div : OP_ratio;
}
