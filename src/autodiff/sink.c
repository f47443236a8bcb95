/* Sink: what only one side of a choice needs is computed under that choice.
 *
 * A select computes both sides. Where one of them has an operation whose slope can be infinite, the reverse
 * would have to make sure that the adjoint 0 of the side not taken stays 0 (untaken.c). So such a select
 * becomes an `if`, and what nobody else uses moves into it; likewise what was computed before an `if` and is
 * used in one of its regions only. Runs on flat code in normal form, as its last step: nothing moves it out
 * again.
 *
 * Differentials that only one region of an `if` needs move there in any case, once they stand apart from the
 * primal values: transposed, what was not chosen then costs nothing, instead of adding zeros to gradients. */
#include "autodiff/ad.h"

typedef struct Sink {
    Ad *ad;
    int *uses, *inside; /* by id: how often it is used, and by what is being collected */
    const Inst *branch; /* differentials: what they are to move into; else NULL */
} Sink;

static bool is_steep(const Inst *inst) {
    return op_has(inst->op, OP_STEEP) && type_is_float(inst->results[0]->type);
}

/* ---- what one side alone needs: an instruction joins when all its users have */

static bool writes(const Inst *inst) {
    if (inst->op == OP_call || op_has(inst->op, OP_WRITES | OP_EFFECT | OP_TAPE)) return true;
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *inner = inst->regions[i]->first; inner; inner = inner->next)
            if (writes(inner)) return true;
    return false;
}

enum { FAR = 256 }; /* instructions */

/* Does it read the same if it is read later, in the branch? */
static bool can_wait(const Inst *load, const Inst *branch) {
    const Inst *inst = load->next;
    for (int steps = 0; inst && inst != branch; inst = inst->next)
        if (++steps > FAR || writes(inst)) return false;
    return inst != NULL;
}

static bool can_sink(const Sink *s, const Val *v, const Region *region) {
    if (v->kind != VAL_inst) return false;
    const Inst *inst = v->inst;
    if (inst->parent != region || inst->nregions || inst->nresults != 1) return false;
    return op_has(inst->op, OP_PURE) || (s->branch && inst->op == OP_load && can_wait(inst, s->branch));
}

static void use(Sink *s, InstVec *set, const Val *v, const Region *region) {
    if (val_is_const(v) || ++s->inside[v->id] < s->uses[v->id] || !can_sink(s, v, region)) return;
    vec_push(s->ad->arena, set, v->inst);
}

static void forget(Sink *s, const Val *v) {
    if (!val_is_const(v)) s->inside[v->id] = 0;
}

/* All that the instructions in the set need and nobody else does. */
static void complete(Sink *s, InstVec *set, const Region *region) {
    for (int i = 0; i < set->count; i++)
        for (int k = 0; k < set->at[i]->nargs; k++) use(s, set, set->at[i]->args[k], region);
    for (int i = 0; i < set->count; i++)
        for (int k = 0; k < set->at[i]->nargs; k++) forget(s, set->at[i]->args[k]);
}

static InstVec only_for_side(Sink *s, const Inst *select, int side) {
    InstVec set = {0};
    use(s, &set, select->args[side], select->parent);
    complete(s, &set, select->parent);
    forget(s, select->args[side]);
    return set;
}

static void use_all(Sink *s, InstVec *set, const Region *from, const Region *region) {
    for (const Inst *inst = from->first; inst; inst = inst->next) {
        for (int k = 0; k < inst->nargs; k++) use(s, set, inst->args[k], region);
        for (int k = 0; k < inst->nregions; k++) use_all(s, set, inst->regions[k], region);
    }
}

static void forget_all(Sink *s, const Region *from) {
    for (const Inst *inst = from->first; inst; inst = inst->next) {
        for (int k = 0; k < inst->nargs; k++) forget(s, inst->args[k]);
        for (int k = 0; k < inst->nregions; k++) forget_all(s, inst->regions[k]);
    }
}

static InstVec only_for_region(Sink *s, const Region *from, const Region *region) {
    InstVec set = {0};
    use_all(s, &set, from, region);
    complete(s, &set, region);
    forget_all(s, from);
    return set;
}

static bool any_steep(const InstVec *set) {
    for (int i = 0; i < set->count; i++)
        if (is_steep(set->at[i])) return true;
    return false;
}

/* ---- from select to if */

static void fill_side(Region *region, const InstVec *set, Val *value) {
    for (int i = set->count - 1; i >= 0; i--) {
        inst_remove(set->at[i]);
        inst_append(region, set->at[i]);
    }
    Builder b = build_at_end(region);
    build_yield(&b, &value, 1);
}

/* Returns where to go on: what takes the select's place, or what is before it. */
static Inst *sink_select(Sink *s, Inst *select) {
    if (!type_is_float(select->results[0]->type)) return select->prev;
    InstVec sides[2] = {only_for_side(s, select, 1), only_for_side(s, select, 2)};
    if (!any_steep(&sides[0]) && !any_steep(&sides[1])) return select->prev;
    Builder b = build_before(select);
    b.loc = select->loc;
    const Type *type = select->results[0]->type;
    Inst *choice = build_if(&b, select->args[0], &type, 1);
    for (int i = 0; i < 2; i++) fill_side(choice->regions[i], &sides[i], select->args[1 + i]);
    choice->results[0]->name = select->results[0]->name;
    select->results[0]->forward = choice->results[0];
    inst_remove(select);
    return choice;
}

static void sink_into(Sink *s, const Inst *branch) {
    for (int i = 0; i < branch->nregions; i++) {
        Region *region = branch->regions[i];
        InstVec set = only_for_region(s, region, branch->parent);
        if (!s->branch && !any_steep(&set)) continue;
        for (int k = 0; k < set.count; k++) {
            inst_remove(set.at[k]);
            inst_insert_before(region->first, set.at[k]);
        }
    }
}

/* From the last to the first, so that a choice within a choice moves along with its side and is met there. */
static void sink_region(Sink *s, Region *region) {
    for (Inst *inst = region->last, *before; inst; inst = before) {
        before = inst->op == OP_select ? sink_select(s, inst) : NULL;
        if (inst->op == OP_if || inst->op == OP_switch) sink_into(s, inst);
        if (inst->op != OP_select) before = inst->prev;
        for (int i = 0; i < inst->nregions; i++) sink_region(s, inst->regions[i]);
    }
}

void ad_sink(Ad *ad, Func *func) {
    Sink s = {.ad = ad, .uses = region_count_uses(ad->arena, func->body)};
    s.inside = arena_array(ad->arena, int, func->nvals + 1);
    sink_region(&s, func->body);
    ir_resolve_func(func);
}

/* The order is that of the program: each goes to the head of the region, before what uses it. */
static void sink_differentials(Sink *s, const Region *region) {
    for (const Inst *inst = region->last; inst; inst = inst->prev) {
        s->branch = inst;
        if (inst->op == OP_if || inst->op == OP_switch) sink_into(s, inst);
        for (int i = 0; i < inst->nregions; i++) sink_differentials(s, inst->regions[i]);
    }
}

void ad_sink_differentials(Ad *ad, const Making *making) {
    Sink s = {.ad = ad, .uses = region_count_uses(ad->arena, making->diff)};
    s.inside = arena_array(ad->arena, int, making->linear.func->nvals + 1);
    sink_differentials(&s, making->diff);
}
