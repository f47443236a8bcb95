/* Cases: addresses that are chosen among several objects.
 *
 * An address is accompanied by one in the shadow of the object that it leads into. Where it was chosen, what is done with it is done by cases, each of which knows the object:
 *
 *   %p = select %c, %a, %b           if %c {
 *   store %p, %x                       store %a, %x
 *                                    } else {
 *                                      store %b, %x
 *                                    }
 *
 * What branches and loops choose is a select by then (choose.c). References that all come with counterparts are left alone: these are chosen likewise. */
#include "autodiff/ad.h"

typedef struct Cases {
    Ad *ad;
    InstVec found; /* what is done with such addresses */
} Cases;

bool ad_has_shadow(Ad *ad, Val *address) {
    const Val *root = address->type->kind == TYPE_pointer && ad_is_object(address) ? ad_root(address) : NULL;
    return root && root->type->kind == TYPE_pointer && ad_differential(ad, root->type->args[0]);
}

/* The select that it leads to, if that chooses among objects; else NULL. Null is none. */
static const Inst *choice_of(Ad *ad, Val *address) {
    const Val *root = address->type->kind == TYPE_pointer ? ir_root(address) : NULL;
    if (!root || root->kind != VAL_inst || root->inst->op != OP_select) return NULL;
    Val *one = inst_operand(root->inst, 1), *other = inst_operand(root->inst, 2);
    if (val_is_const(one) || val_is_const(other)) return NULL;
    bool is_among =
        ad_has_shadow(ad, one) || ad_has_shadow(ad, other) || choice_of(ad, one) || choice_of(ad, other);
    return is_among ? root->inst : NULL;
}

static bool gives_address(const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (inst->results[i]->type->kind == TYPE_pointer) return true;
    return false;
}

static const Inst *choice_in(Ad *ad, const Inst *inst) {
    if (inst->nregions || op_has(inst->op, OP_ENDS) || gives_address(inst)) return NULL;
    for (int i = 0; i < inst->nargs; i++) {
        bool is_used = ir_role(inst, i) != ROLE_value && !(inst->op == OP_store && i == 1);
        const Inst *select = is_used ? choice_of(ad, inst_operand(inst, i)) : NULL;
        if (select) return select;
    }
    return NULL;
}

static void find(void *user, Inst *inst) {
    Cases *x = user;
    if (choice_in(x->ad, inst)) vec_push(x->ad->arena, &x->found, inst);
}

typedef struct Case {
    const Inst *select;
    int index; /* of its operands */
} Case;

static Val *in_case(void *user, Builder *b, Val *v) {
    const Case *x = user;
    (void)b;
    return v == x->select->results[0] ? inst_operand(x->select, x->index) : NULL;
}

static Inst *copy_in_case(Ad *ad, Builder *b, Inst *inst, Case *which) {
    Val **args = arena_array(ad->arena, Val *, inst->nargs + 1);
    for (int i = 0; i < inst->nargs; i++) {
        Val *arg = inst_operand(inst, i);
        bool is_chosen = arg->type->kind == TYPE_pointer && ir_root(arg) == which->select->results[0];
        args[i] = is_chosen ? build_place_again(b, arg, in_case, which) : arg;
    }
    Inst *copy = clone_with(b, inst, args);
    build_yield(b, copy->results, copy->nresults);
    return copy;
}

static void do_by_cases(Ad *ad, Inst *inst) {
    const Inst *select = choice_in(ad, inst);
    if (!select) return;
    Builder b = build_before(inst);
    b.loc = inst->loc;
    Inst *branches = build_inst(&b, OP_if, &(Val *){inst_operand(select, 0)}, 1, 0, 2);
    for (int i = 0; i < inst->nresults; i++)
        inst->results[i]->forward = inst_add_result(branches, inst->results[i]->type, inst->results[i]->name);
    for (int k = 0; k < 2; k++) {
        Builder inner = build_at_end(branches->regions[k]);
        inner.loc = inst->loc;
        do_by_cases(ad, copy_in_case(ad, &inner, inst, &(Case){select, 1 + k}));
    }
    inst_remove(inst);
}

bool ad_do_by_cases(Ad *ad, Func *flat) {
    Cases x = {.ad = ad};
    region_walk(flat->body, find, &x);
    for (int i = 0; i < x.found.count; i++) do_by_cases(ad, x.found.at[i]);
    if (x.found.count) ir_resolve_func(flat);
    return x.found.count > 0;
}
