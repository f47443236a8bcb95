/* Values that are used where they cannot be seen: behind the `if` in whose region they came about.
 *
 * Whoever moves the rest of a region out of it (exits.c) knows that it is run only if the first part was, but
 * the IR does not. Memory moves to where both see it; an address is computed again; any other value goes
 * through a variable. */
#include "opt.h"

typedef struct Reach {
    Arena *scratch;
    Map open;   /* regions around the instruction at hand */
    Map places; /* Val -> the variable that holds it */
} Reach;

static bool is_open(const Reach *r, const Region *region) {
    return map_get(&r->open, PTR_KEY(region)) != NULL;
}

static Region *home_of(const Val *v) {
    return v->kind == VAL_inst ? v->inst->parent : v->kind == VAL_param ? v->region : NULL;
}

/* The instruction that contains `region` and stands where the one at hand can see what is before it. */
static Inst *seen_owner(const Reach *r, const Region *region) {
    while (!is_open(r, region->owner->parent)) region = region->owner->parent;
    return region->owner;
}

static Val *reachable(Reach *r, Val *v, Inst *user);

static Val *address_again(Reach *r, Inst *address, Inst *user) {
    CloneMap map = {.module = user->func->module, .func = user->func};
    Inst *copy = clone_inst(&map, address);
    inst_insert_before(user, copy);
    for (int i = 0; i < copy->nargs; i++) copy->args[i] = reachable(r, copy->args[i], copy);
    return inst_result(copy);
}

static Builder build_behind(const Val *v) {
    return v->kind == VAL_inst ? build_after(v->inst) : build_before(v->region->first);
}

static Val *place_for(Reach *r, Val *v) {
    Val *place = map_get(&r->places, PTR_KEY(v));
    if (place) return place;
    Builder before = build_before(seen_owner(r, home_of(v))), behind = build_behind(v);
    place = build_var(&before, v->type, v->name, false);
    build_store(&behind, place, v);
    map_put(r->scratch, &r->places, PTR_KEY(v), place);
    return place;
}

static Val *reachable(Reach *r, Val *v, Inst *user) {
    Region *home = home_of(v);
    if (!home || is_open(r, home)) return v;
    Inst *inst = v->kind == VAL_inst ? v->inst : NULL;
    if (inst && inst->op == OP_var) {
        Inst *owner = seen_owner(r, home);
        inst_remove(inst);
        inst_insert_before(owner, inst);
        return v;
    }
    if (inst && op_has(inst->op, OP_PURE) && v->type->kind == TYPE_pointer)
        return address_again(r, inst, user);
    Builder b = build_before(user);
    return build_load(&b, reachable(r, place_for(r, v), user));
}

static void walk(Reach *r, Region *region) {
    map_put(r->scratch, &r->open, PTR_KEY(region), region);
    for (Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nargs; i++) inst->args[i] = reachable(r, ir_resolve(inst->args[i]), inst);
        for (int i = 0; i < inst->nregions; i++) walk(r, inst->regions[i]);
    }
    map_put(r->scratch, &r->open, PTR_KEY(region), NULL);
}

void opt_reach_values(Func *func, Arena *scratch) {
    Reach r = {.scratch = scratch};
    walk(&r, func->body);
}
