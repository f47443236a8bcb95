/* What ends as a copy in an `out` parameter is there from the start.
 *
 *     %p.d = var float3[12]                 %0 = field %g, control
 *     call @prop(.., %p.d)                  zero %0
 *     %0 = field %g, control                call @prop(.., %0)
 *     copy %0, %p.d
 *
 * That saves the copy, and waiting for it: what was stored number by number a moment ago cannot be read in
 * large pieces before it is in the cache. Nothing else may lead to that place before the copy, and nothing to
 * the variable after it. `out` parameters overlap nothing else that the function is given.
 *
 * A variable whose elements all have constant indices stays, as it is numbers once what it is given to has
 * become a part of the function. */
#include "opt.h"

enum { DEPTH = 4 }; /* of calls that are looked into */

typedef struct Use {
    const Inst *inst;
    int operand, number; /* in the order in which they stand */
} Use;

typedef struct Placed {
    Func *func;
    Arena *scratch;
    VEC(Use) uses; /* of addresses */
    InstVec copies;
    int now;
} Placed;

static void note_inst(void *user, Inst *inst) {
    Placed *p = user;
    p->now++;
    for (int i = 0; i < inst->nargs; i++)
        if (ir_role(inst, i) != ROLE_value) vec_push(p->scratch, &p->uses, ((Use){inst, i, p->now}));
    if (inst->op == OP_copy && inst->parent == p->func->body) vec_push(p->scratch, &p->copies, inst);
}

/* ---- the variable */

static bool is_indexed(const Region *body, const Val *object, int depth);

typedef struct Indexed {
    const Val *object;
    int depth;
} Indexed;

static bool indexes(const void *user, const Inst *inst) {
    const Indexed *x = user;
    if (inst->op == OP_elem)
        return ir_root(inst->args[0]) == x->object && !val_is_const(inst_operand(inst, 1));
    for (int i = 0; inst->op == OP_call && inst->callee->body && x->depth > 0 && i < inst->nargs; i++) {
        const Region *body = inst->callee->body;
        bool is_given = ir_role(inst, i) != ROLE_value && ir_root(inst->args[i]) == x->object;
        if (is_given && is_indexed(body, body->params[i], x->depth - 1)) return true;
    }
    return false;
}

static bool is_indexed(const Region *body, const Val *object, int depth) {
    const Indexed indexed = {object, depth};
    return region_find(body, indexes, &indexed) != NULL;
}

/* Reached by what derivatives and other functions are given alone, and by nothing behind the copy. */
static bool ends_in_copy(const Placed *p, const Val *var, int copy) {
    for (int i = 0; i < p->uses.count; i++) {
        const Use *use = &p->uses.at[i];
        if (ir_root(use->inst->args[use->operand]) != var) continue;
        bool is_given = use->inst->op == OP_call && ir_role(use->inst, use->operand) == ROLE_share;
        if (use->number > copy || (!is_given && !ir_is_private_use(use->inst, use->operand))) return false;
    }
    return true;
}

/* ---- the place */

/* In an `out` parameter, by constants alone. */
static bool is_place(const Placed *p, const Val *address) {
    const Val *base = ir_base(address);
    if (base->kind != VAL_param || base->region != p->func->body) return false;
    const Param *param = &p->func->params[base->index];
    if (!(param->flags & PARAM_BY_ADDRESS) || param->dir != DIR_out) return false;
    const Val *at = address;
    for (; at->kind == VAL_inst && at != base; at = inst_operand(at->inst, 0))
        if (at->inst->op == OP_elem && !val_is_const(inst_operand(at->inst, 1))) return false;
    return at == base;
}

/* Before the copy nothing is done with it. */
static bool is_untouched(const Placed *p, const Val *place, int copy) {
    const Val *base = ir_base(place);
    for (int i = 0; i < p->uses.count && p->uses.at[i].number < copy; i++) {
        const Use *use = &p->uses.at[i];
        Val *address = use->inst->args[use->operand];
        if (ir_root(address) != base || ir_role(use->inst, use->operand) == ROLE_part) continue;
        if (ir_base(address) != base || !ir_are_apart(address, place)) return false;
    }
    return true;
}

/* ---- the entry */

static int number_of(const Placed *p, const Inst *copy) {
    int i = 0;
    while (p->uses.at[i].inst != copy) i++;
    return p->uses.at[i].number;
}

static bool can_place(const Placed *p, const Inst *copy) {
    const Val *var = inst_operand(copy, 1), *place = inst_operand(copy, 0);
    if (var->kind != VAL_inst || var->inst->op != OP_var || var->inst->parent != copy->parent) return false;
    int number = number_of(p, copy);
    return ir_target(var->type) == ir_target(place->type) && is_place(p, place) &&
           is_indexed(p->func->body, var, DEPTH) && ends_in_copy(p, var, number) &&
           is_untouched(p, place, number);
}

static void move(Inst *copy) {
    Val *var = inst_operand(copy, 1);
    Builder b = build_before(var->inst);
    Val *place = build_place_again(&b, copy->args[0], NULL, NULL);
    if (!inst_has(var->inst, INST_RAW)) build_zero(&b, place);
    var->forward = place;
    inst_remove(copy);
    inst_remove(var->inst);
}

bool opt_place(Func *func) {
    if (!func->body) return false;
    Placed p = {.func = func, .scratch = arena_scratch(func->module->arena)};
    bool changed = false;
    region_walk(func->body, note_inst, &p);
    for (int i = 0; i < p.copies.count; i++) {
        if (!can_place(&p, p.copies.at[i])) continue;
        move(p.copies.at[i]);
        changed = true;
    }
    if (changed) ir_resolve_func(func);
    arena_free(p.scratch);
    return changed;
}
