/* Cases: addresses that are chosen among several objects.
 *
 * An address is accompanied by one in the shadow of the object that it leads into. Where it was chosen, what
 * is done with it is done by cases, each of which knows the object:
 *
 *   %p = select %c, %a, %b           if %c {
 *   store %p, %x                       store %a, %x
 *                                    } else {
 *                                      store %b, %x
 *                                    }
 *
 * What branches and loops choose is a select by then (choose.c). References that all come with counterparts
 * are left alone: these are chosen likewise. */
#include "autodiff/ad.h"

enum { MOST_CASES = 64 }; /* of one address; beyond that it goes where derivatives cannot follow (E5039) */

typedef struct Cases {
    Ad *ad;
    Map choices;   /* select -> Choice */
    InstVec found; /* what is done with such addresses */
} Cases;

typedef struct Choice {
    bool is_among; /* objects */
    int ways;      /* by which an address comes there; those beyond MOST_CASES are not counted */
} Choice;

/* It leads into an object that may carry derivatives. */
static bool has_shadow(Ad *ad, Val *address) {
    const Val *root = address->type->kind == TYPE_pointer && ad_is_object(address) ? ad_root(address) : NULL;
    return root && root->type->kind == TYPE_pointer && ad_differential(ad, root->type->args[0]);
}

static const Inst *select_of(Val *address) {
    const Val *root = address->type->kind == TYPE_pointer ? ir_root(address) : NULL;
    return root && root->kind == VAL_inst && root->inst->op == OP_select ? root->inst : NULL;
}

/* Each select is looked at once: `p = c ? p + 1 : p` leads to the one before by both ways. Null is no object,
 * but may stand beside some. */
static const Choice *look_at(Cases *x, const Inst *select) {
    Choice *choice = map_get(&x->choices, PTR_KEY(select));
    if (choice) return choice;
    choice = arena_new(x->ad->arena, Choice);
    map_put(x->ad->arena, &x->choices, PTR_KEY(select), choice);
    for (int i = 1; i <= 2; i++) {
        const Inst *before = select_of(inst_operand(select, i));
        const Choice *inner = before ? look_at(x, before) : NULL;
        bool has_cases = inner && inner->is_among;
        choice->is_among |= has_cases || has_shadow(x->ad, inst_operand(select, i));
        choice->ways += has_cases ? inner->ways : 1;
    }
    if (choice->ways > MOST_CASES) choice->ways = MOST_CASES + 1;
    return choice;
}

/* The select that it leads to, if that chooses among objects; else NULL. */
static const Inst *choice_of(Cases *x, Val *address) {
    const Inst *select = select_of(address);
    const Choice *choice = select ? look_at(x, select) : NULL;
    return choice && choice->is_among && choice->ways <= MOST_CASES ? select : NULL;
}

static bool gives_address(const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (inst->results[i]->type->kind == TYPE_pointer) return true;
    return false;
}

/* Addresses are compared as numbers. */
static Val *operand_of(const Inst *inst, int i) {
    Val *v = inst_operand(inst, i);
    bool is_number = op_has(inst->op, OP_COMPARES) && v->kind == VAL_inst && v->inst->op == OP_bitcast;
    return is_number ? inst_operand(v->inst, 0) : v;
}

static const Inst *choice_in(Cases *x, const Inst *inst) {
    if (inst->nregions || op_has(inst->op, OP_ENDS) || gives_address(inst)) return NULL;
    for (int i = 0; i < inst->nargs; i++) {
        bool is_used = ir_role(inst, i) != ROLE_value || op_has(inst->op, OP_COMPARES);
        bool is_kept = inst->op == OP_bitcast || (inst->op == OP_store && i == 1);
        const Inst *select = is_used && !is_kept ? choice_of(x, operand_of(inst, i)) : NULL;
        if (select) return select;
    }
    return NULL;
}

static void find(void *user, Inst *inst) {
    Cases *x = user;
    if (choice_in(x, inst)) vec_push(x->ad->arena, &x->found, inst);
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
        Val *arg = inst_operand(inst, i), *address = operand_of(inst, i);
        bool is_chosen = address->type->kind == TYPE_pointer && ir_root(address) == which->select->results[0];
        args[i] = is_chosen ? build_place_again(b, address, in_case, which) : arg;
        if (is_chosen && address != arg) args[i] = build_bitcast(b, args[i], arg->type);
    }
    Inst *copy = clone_with(b, inst, args);
    build_yield(b, copy->results, copy->nresults);
    return copy;
}

static void do_by_cases(Cases *x, Inst *inst) {
    const Inst *select = choice_in(x, inst);
    if (!select) return;
    Builder b = build_before(inst);
    b.loc = inst->loc;
    Inst *branches = build_inst(&b, OP_if, &(Val *){inst_operand(select, 0)}, 1, 0, 2);
    for (int i = 0; i < inst->nresults; i++)
        inst->results[i]->forward = inst_add_result(branches, inst->results[i]->type, inst->results[i]->name);
    for (int k = 0; k < 2; k++) {
        Builder inner = build_at_end(branches->regions[k]);
        inner.loc = inst->loc;
        do_by_cases(x, copy_in_case(x->ad, &inner, inst, &(Case){select, 1 + k}));
    }
    inst_remove(inst);
}

bool ad_do_by_cases(Ad *ad, Func *flat) {
    Cases x = {.ad = ad};
    region_walk(flat->body, find, &x);
    for (int i = 0; i < x.found.count; i++) do_by_cases(&x, x.found.at[i]);
    if (x.found.count) ir_resolve_func(flat);
    return x.found.count > 0;
}
