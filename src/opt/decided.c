/* What a way decides is decided on that way.
 *
 *     if (far) a = 0; else a = exp(..);               if (far) {}
 *     if (a < eps) {} else { .. }                     else { a = exp(..); if (a < eps) {} else { .. } }
 *
 * Functions that find out early that there is nothing to do say so by a number, which is asked again outside.
 * The reverse of two such branches cannot see that what the one leaves out makes the other idle
 * (autodiff/taken.c); of one within the other it can, and so a loop that skips most of its rounds goes back
 * through the others alone.
 *
 * A way that is empty and gives constants is followed through the arithmetic behind it to the next `if`, in
 * loops. If that then goes an empty way, too, what it gives is known on the first way; the second `if`, with
 * the arithmetic that leads to it, becomes a part of the other one. */
#include "opt/opt.h"

enum {
    MOST_BETWEEN = 64, /* instructions */
    LEAST_WORK = 6     /* instructions that are left out */
};

typedef struct Deciding {
    Arena *scratch;
    Func *func;
    Inst *first, *second;
    int way;         /* of the first: its region that is empty */
    int then;        /* of the second, on that way */
    Map known;       /* values that depend on the first -> what they are on that way; NULL: nobody knows */
    InstVec between; /* such instructions */
    Map others;      /* values of the first, and what depends on them -> what they are on the other way */
} Deciding;

static bool is_empty(const Region *region) {
    return region->first == region->last && region->last->op == OP_yield;
}

/* ---- what is known on the way */

static bool depends(const Deciding *x, const Val *v) { return map_has(&x->known, PTR_KEY(v)); }

static Val *on_way(const Deciding *x, Val *v) {
    v = ir_resolve(v);
    return depends(x, v) ? map_get(&x->known, PTR_KEY(v)) : v;
}

static bool depends_any(const Deciding *x, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (depends(x, ir_resolve(inst->args[i]))) return true;
    return false;
}

static void follow(Deciding *x, Inst *inst) {
    enum { MOST = 3 };
    Val *args[MOST], *same = NULL;
    bool all = inst->nargs <= MOST && !op_has(inst->op, OP_ATTRIBUTES);
    for (int i = 0; i < inst->nargs && all; i++) all = (args[i] = on_way(x, inst->args[i])) != NULL;
    if (all) same = ir_fold(x->func->module, inst->op, inst->results[0]->type, args, inst->nargs);
    map_put(x->scratch, &x->known, PTR_KEY(inst->results[0]), same ? ir_resolve(same) : NULL);
    vec_push(x->scratch, &x->between, inst);
}

/* The second `if`, which the way decides; NULL: there is none. */
static bool find_second(Deciding *x) {
    const Inst *end = x->first->regions[x->way]->last;
    int64_t value;
    for (int i = 0; i < x->first->nresults; i++)
        map_put(x->scratch, &x->known, PTR_KEY(x->first->results[i]), ir_resolve(end->args[i]));
    Inst *inst = x->first->next;
    for (int steps = 0; inst && steps < MOST_BETWEEN; steps++, inst = inst->next) {
        if (inst->op == OP_if && depends(x, inst_operand(inst, 0))) break;
        if (!op_has(inst->op, OP_PURE) || inst->nregions || inst->nresults != 1) return false;
        if (depends_any(x, inst)) follow(x, inst);
    }
    Val *condition = inst && inst->op == OP_if ? on_way(x, inst->args[0]) : NULL;
    if (!condition || !val_is_int(condition, &value)) return false;
    x->second = inst;
    x->then = value ? 0 : 1;
    return true;
}

/* ---- can it be done? */

static bool is_between(const Deciding *x, const Inst *inst) {
    for (int i = 0; i < x->between.count; i++)
        if (x->between.at[i] == inst) return true;
    return false;
}

typedef struct Users {
    const Deciding *deciding;
    bool are_inside; /* who uses what depends on the first way stands between the two, or in the second */
} Users;

static void look_at_user(void *user, Inst *inst) {
    Users *users = user;
    const Deciding *x = users->deciding;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        users->are_inside &= v->kind != VAL_inst || !is_between(x, v->inst);
    }
}

static bool are_used_inside(const Deciding *x) {
    Users users = {x, true};
    for (const Inst *inst = x->second->next; inst && users.are_inside; inst = inst->next) {
        look_at_user(&users, (Inst *)(uintptr_t)inst);
        inst_walk(inst, look_at_user, &users);
    }
    return users.are_inside;
}

static bool can_decide(Deciding *x) {
    const Region *other = x->first->regions[1 - x->way], *empty = x->second->regions[x->then],
                 *rest = x->second->regions[1 - x->then];
    if (other->last->op != OP_yield || !is_empty(empty) || rest->last->op != OP_yield) return false;
    if (region_size((Region *)(uintptr_t)rest) + region_size((Region *)(uintptr_t)other) < LEAST_WORK)
        return false;
    for (int i = 0; i < empty->last->nargs; i++)
        if (!on_way(x, empty->last->args[i])) return false;
    return are_used_inside(x);
}

/* ---- doing it */

static void use_others(void *user, Inst *inst) {
    Deciding *x = user;
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = ir_resolve(inst->args[i]), *other = map_get(&x->others, PTR_KEY(v));
        inst->args[i] = other ? other : v;
    }
}

static void move_before(Deciding *x, Inst *inst, Inst *before) {
    inst_remove(inst);
    inst_insert_before(before, inst);
    use_others(x, inst);
    inst_walk(inst, use_others, x);
}

/* What stands between the two and does not depend on the first goes before it. */
static void move_up(Deciding *x) {
    for (Inst *inst = x->first->next, *next; inst != x->second; inst = next) {
        next = inst->next;
        if (is_between(x, inst)) continue;
        inst_remove(inst);
        inst_insert_before(x->first, inst);
    }
}

static void decide(Deciding *x) {
    Inst *first = x->first, *second = x->second, *end = first->regions[1 - x->way]->last,
         *known = second->regions[x->then]->last;
    for (int i = 0; i < first->nresults; i++)
        map_put(x->scratch, &x->others, PTR_KEY(first->results[i]), ir_resolve(end->args[i]));
    move_up(x);
    for (int i = 0; i < second->nresults; i++)
        inst_add_arg(first->regions[x->way]->last, on_way(x, known->args[i]));
    for (int i = 0; i < x->between.count; i++) move_before(x, x->between.at[i], end);
    move_before(x, second, end);
    for (int i = 0; i < second->nresults; i++) {
        Val *old = second->results[i];
        inst_add_arg(end, inst_renew_result(second, i));
        old->forward = inst_add_result(first, old->type, old->name);
    }
    ir_resolve_func(x->func);
}

static bool try_both_ways(Arena *scratch, Func *func, Inst *first) {
    for (int way = 0; way < first->nregions; way++) {
        Deciding x = {.scratch = scratch, .func = func, .first = first, .way = way};
        if (!is_empty(first->regions[way]) || !find_second(&x) || !can_decide(&x)) continue;
        decide(&x);
        return true;
    }
    return false;
}

static bool visit(Arena *scratch, Func *func, const Region *region, bool in_loop) {
    bool changed = false;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        while (in_loop && inst->op == OP_if && try_both_ways(scratch, func, inst)) changed = true;
        for (int i = 0; i < inst->nregions; i++)
            changed |= visit(scratch, func, inst->regions[i], in_loop || inst->op == OP_loop);
    }
    return changed;
}

bool opt_decide(Func *func) {
    Arena *scratch = arena_scratch(func->module->arena);
    bool changed = visit(scratch, func, func->body, false);
    arena_free(scratch);
    return changed;
}
