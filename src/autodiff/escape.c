/* Escape: addresses of variables that carry derivatives, and where they go.
 *
 * An address that is moved about in its variable has a shadow that moves along (linearize.c), and a DiffPtr
 * takes the shadow as its counterpart. What branches, loops and local arrays hand on is found again
 * (choose.c). But an address that is stored elsewhere, computed with as a number, or handed to a function as
 * a plain pointer would let values in and out without their derivatives: that is an error. */
#include "autodiff/ad.h"

typedef struct Check {
    Ad *ad;
    const Activity *activity;
    Map kept; /* numbers that are made of addresses, and then not only compared */
    bool found;
} Check;

static bool writes_through(const void *pointer, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        bool writes = role == ROLE_write || role == ROLE_share || role == ROLE_escape;
        if (writes && ir_root(inst->args[i]) == pointer) return true;
    }
    return false;
}

static bool may_write_through(Check *c, const Inst *call, int arg) {
    AdFunc *callee = ad_plan_call(c->ad, call, AD_bwd).callee;
    ad_fill(c->ad, callee, callee->normal);
    if (!callee->flat->body || arg >= callee->flat->nparams) return true;
    return region_find(callee->flat->body, writes_through, callee->flat->body->params[arg]);
}

/* A function takes the address if it knows what to do with the shadow, or if it is told to ignore it and
 * writes nothing. */
static bool takes_address(Check *c, const Inst *call, int arg) {
    const AdFunc *callee = ad_func(c->ad, call->callee);
    for (int i = 0; i < callee->leaves.count; i++)
        if (callee->leaves.at[i].in == arg && callee->leaves.at[i].dual) return true;
    return inst_has(call, INST_NO_DIFF) && !may_write_through(c, call, arg);
}

static bool is_number_of_address(const Val *v) {
    return v->kind == VAL_inst && v->inst->op == OP_bitcast && type_is_integer(v->type);
}

static void find_kept(void *user, Inst *inst) {
    Check *c = user;
    for (int i = 0; i < inst->nargs && !op_has(inst->op, OP_COMPARES); i++)
        if (is_number_of_address(inst->args[i])) map_put(c->ad->arena, &c->kept, PTR_KEY(inst->args[i]), c);
}

static bool is_only_compared(const Check *c, const Inst *inst) {
    return is_number_of_address(inst->results[0]) && !map_has(&c->kept, PTR_KEY(inst->results[0]));
}

static bool is_followed(Check *c, const Inst *inst, int arg) {
    bool atomic = inst->op == OP_atomic || inst->op == OP_atomic_cas;
    switch (ir_role(inst, arg)) {
    case ROLE_escape:
        return inst->op == OP_call ? takes_address(c, inst, arg)
                                   : inst->nresults && is_only_compared(c, inst);
    case ROLE_move: return inst->op != OP_select || ad_is_active_address(c->activity, inst->results[0]);
    case ROLE_write: return !atomic;
    default: return true;
    }
}

static void check_addresses(void *user, Inst *inst) {
    Check *c = user;
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_pointer && ad_is_active_address(c->activity, inst->args[i]) &&
            !is_followed(c, inst, i)) {
            diag_report(c->ad->m->diags, DIAG_address_escapes, inst->loc);
            c->found = true;
            return;
        }
}

/* Does one go where its shadow cannot? That is reported. */
bool ad_addresses_escape(Ad *ad, const AdFunc *f, const Activity *activity) {
    bool written = f->source && !f->source->derivation.of && !(f->source->flags & FUNC_GENERATED);
    Check check = {.ad = ad, .activity = activity};
    if (!written) return false;
    region_walk(f->flat->body, find_kept, &check);
    region_walk(f->flat->body, check_addresses, &check);
    return check.found;
}
