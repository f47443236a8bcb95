/* What is done as a loop is left is done behind it.
 *
 *     for (..) {                                   for (..) {
 *         d = f(t);                                    d = f(t);
 *         if (d < eps) return shade(t, d);             if (d < eps) { kept = d; left = true; break; }
 *         t += d;                                      t += d;
 *     }                                            }
 *                                                  if (left) return shade(t, kept);
 *
 * In normal form, where both are an `if` that sets what the condition of the loop asks for. In the loop it
 * would be a part of every round: a reverse pass would ask each whether it kept something for it, and lanes
 * that leave at different times would do it once for each.
 *
 * Of each `if` in a body, what its way leads to is looked at with the conditions on that way taken for true
 * or false: if the loop then ends, and nothing but arithmetic is done until it does, the instructions of the
 * way go behind it. What they use of the round is what the loop gives, or computed again, or handed on. */
#include "opt/opt.h"

enum {
    MOST_WAYS = 8,     /* in each other */
    MOST_STEPS = 2000, /* of a search */
    LEAST_WORK = 12,   /* that is worth while, in the units of ops.def */
    MOST_AGAIN = 100 /* of computing what the way uses again, once, instead of handing it on in every round */
};

typedef struct Way {
    Inst *branch;
    int region; /* that is gone through */
} Way;

typedef struct Leaving {
    Arena *scratch;
    Func *func;
    Inst *loop;
    Way ways[MOST_WAYS];
    int count;
    int steps;    /* left */
    ValVec ends;  /* what the loop hands on, if it is left on that way */
    Map moved;    /* values that are used behind the loop -> what they are there */
    ValVec kept;  /* values that the loop is to hand on */
    double again; /* what computing some of them again costs */
} Leaving;

static Region *region_of(const Leaving *x) {
    const Way *last = &x->ways[x->count - 1];
    return last->branch->regions[last->region];
}

static bool is_inside(const Region *region, const Val *v) {
    return !val_is_const(v) && region_is_in(v->kind == VAL_inst ? v->inst->parent : v->region, region);
}

/* ---- what a value is, if the loop is left on that way */

static Val *on_way(Leaving *x, Val *v);

static int way_through(Leaving *x, const Inst *branch) {
    int64_t value;
    for (int i = 0; i < x->count; i++)
        if (x->ways[i].branch == branch) return x->ways[i].region;
    return val_is_int(on_way(x, branch->args[0]), &value) ? !value : -1;
}

/* Conditions on the way are known; so may be those that are made of what it hands on. */
static Val *known_condition(const Leaving *x, const Val *v) {
    for (int i = 0; i < x->count; i++)
        if (inst_operand(x->ways[i].branch, 0) == v)
            return ir_const_int(x->func->module, v->type, x->ways[i].region == 0);
    return NULL;
}

static Val *folded(Leaving *x, Val *v) {
    enum { MOST = 3 };
    const Inst *inst = v->inst;
    const Type *type = type_element(v->type);
    Val *args[MOST];
    bool decides = inst->nargs <= MOST && (type->kind == TYPE_bool || type_is_integer(type));
    if (!decides || !op_has(inst->op, OP_PURE) || op_has(inst->op, OP_ATTRIBUTES)) return v;
    for (int i = 0; i < inst->nargs; i++) args[i] = on_way(x, inst->args[i]);
    Val *same = ir_fold(x->func->module, inst->op, v->type, args, inst->nargs);
    return same ? ir_resolve(same) : v;
}

static Val *on_way(Leaving *x, Val *v) {
    v = ir_resolve(v);
    if (v->kind == VAL_param && v->region == x->loop->regions[0]) /* the condition is asked once more */
        return on_way(x, x->loop->regions[1]->last->args[v->index]);
    if (val_is_const(v) || v->kind != VAL_inst || --x->steps < 0) return v;
    const Inst *inst = v->inst;
    if (!is_inside(x->loop->regions[1], v) && !is_inside(x->loop->regions[0], v)) return v;
    Val *known = known_condition(x, v);
    if (known) return known;
    int64_t side;
    if (inst->op == OP_if) {
        int region = way_through(x, inst);
        const Inst *end = region < 0 ? NULL : inst->regions[region]->last;
        return end && end->op == OP_yield ? on_way(x, end->args[v->index]) : v;
    }
    if (inst->op == OP_select && val_is_int(on_way(x, inst->args[0]), &side))
        return on_way(x, inst->args[side ? 1 : 2]);
    return inst->nregions ? v : folded(x, v);
}

/* ---- is the loop left on that way, and is nothing done after it? */

static bool does_nothing(Leaving *x, const Inst *first);

static bool is_harmless(Leaving *x, const Inst *inst) {
    if (op_has(inst->op, OP_PURE) || inst->op == OP_yield) return true;
    if (inst->op != OP_if) return false;
    int region = way_through(x, inst);
    for (int i = 0; i < inst->nregions; i++)
        if ((region < 0 || region == i) && !does_nothing(x, inst->regions[i]->first)) return false;
    return true;
}

static bool does_nothing(Leaving *x, const Inst *first) {
    for (const Inst *inst = first; inst; inst = inst->next)
        if (!is_harmless(x, inst)) return false;
    return true;
}

static bool leaves(Leaving *x) {
    const Region *condition = x->loop->regions[0];
    int64_t goes_on;
    bool ends = val_is_int(on_way(x, condition->last->args[0]), &goes_on) && !goes_on;
    for (int i = 0; i < x->count && ends; i++) ends = does_nothing(x, x->ways[i].branch->next);
    return ends && does_nothing(x, condition->first) && x->steps >= 0;
}

/* ---- what the way uses of the round */

static bool can_be_again(const Inst *inst) {
    return op_has(inst->op, OP_PURE) && !inst->nregions && inst->nresults == 1;
}

/* The result of the loop that it is, if the loop is left on that way; NULL: none is. */
static Val *given_by_loop(const Leaving *x, const Val *v) {
    for (int i = 0; i < x->ends.count; i++)
        if (x->ends.at[i] == v) return x->loop->results[i];
    return NULL;
}

/* Can a loop hand it on? */
static bool is_value(const Type *type) {
    return type_is_scalar(type) || type->kind == TYPE_bool || type->kind == TYPE_vector;
}

static bool is_kept(const Leaving *x, const Val *v) {
    for (int i = 0; i < x->kept.count; i++)
        if (x->kept.at[i] == v) return true;
    return false;
}

/* Is it there behind the loop: the same in all rounds, by its results, or computed again of such? What it is
 * there is noted: itself, if it is computed again. */
static bool is_there(Leaving *x, Val *v) {
    if (val_is_const(v) || !inst_contains(x->loop, v) || is_kept(x, v) || map_has(&x->moved, PTR_KEY(v)))
        return true;
    Val *given = given_by_loop(x, v);
    if (!given && v->kind == VAL_inst && can_be_again(v->inst)) {
        x->again += op_info[v->inst->op].cost;
        given = x->again <= MOST_AGAIN ? v : NULL;
        for (int i = 0; i < v->inst->nargs && given; i++)
            if (!is_there(x, ir_resolve(v->inst->args[i]))) given = NULL;
    }
    if (given) map_put(x->scratch, &x->moved, PTR_KEY(v), given);
    return given != NULL;
}

static bool can_have(Leaving *x, Val *v) {
    double again = x->again;
    if (is_there(x, v)) return true;
    x->again = again;
    if (is_value(v->type)) vec_push(x->scratch, &x->kept, v);
    return is_value(v->type);
}

typedef struct Work {
    Leaving *leaving;
    double cost;
    bool can;
} Work;

static void look_at(void *user, Inst *inst) {
    Work *work = user;
    Leaving *x = work->leaving;
    bool jumps = op_has(inst->op, OP_ENDS) && inst->op != OP_yield;
    work->cost += inst->op == OP_call || inst->op == OP_loop ? LEAST_WORK : op_info[inst->op].cost;
    work->can &= !jumps && !op_has(inst->op, OP_TAPE) && !inst_meets(inst);
    for (int i = 0; i < inst->nargs && work->can; i++) {
        Val *v = ir_resolve(inst->args[i]);
        if (!is_inside(region_of(x), v)) work->can = can_have(x, v);
    }
}

/* Of the values that the loop then hands on, those of the way are known behind it; others must not depend on
 * them. */
static bool depends(Leaving *x, Val *v) {
    v = ir_resolve(v);
    if (--x->steps < 0) return true;
    if (val_is_const(v) || !is_inside(x->loop->regions[1], v) || v->kind != VAL_inst) return false;
    if (is_inside(region_of(x), v) || v->inst->nregions) return true;
    for (int i = 0; i < v->inst->nargs; i++)
        if (depends(x, v->inst->args[i])) return true;
    return false;
}

/* A branch before the way is over when the way begins. */
static bool is_before(const Leaving *x, const Val *v) {
    const Inst *at = v->kind == VAL_inst ? v->inst : NULL;
    for (int i = 0; at && i < x->count; i++)
        for (const Inst *inst = x->ways[i].branch; inst; inst = inst->prev)
            if (inst == at) return inst != x->ways[i].branch;
    return !at;
}

static bool can_be_moved(Leaving *x) {
    const Inst *end = x->loop->regions[1]->last;
    Work work = {.leaving = x, .can = true};
    for (int i = 0; i < end->nargs; i++) vec_push(x->scratch, &x->ends, on_way(x, end->args[i]));
    for (Inst *inst = region_of(x)->first; inst != region_of(x)->last; inst = inst->next) {
        look_at(&work, inst);
        inst_walk(inst, look_at, &work);
    }
    if (!work.can || work.cost < LEAST_WORK) return false;
    for (int i = 0; i < end->nargs; i++) {
        Val *v = x->ends.at[i];
        bool is_moved = is_inside(region_of(x), v);
        if (is_moved ? !is_value(v->type) : !is_before(x, v) && depends(x, v)) return false;
    }
    return x->steps >= 0;
}

/* ---- moving */

static void add_arg(const Region *region, Val *v) {
    if (region->last->op == OP_yield) inst_add_arg(region->last, v);
}

/* One more number that the loop hands on: that, where it is left on the way, and zero elsewhere. */
static Val *hand_on(Leaving *x, Val *v) {
    Inst *loop = x->loop;
    Val *zero = ir_const_zero(x->func->module, v->type), *next = v;
    for (int i = x->count - 1; i >= 0; i--) {
        Inst *branch = x->ways[i].branch;
        for (int k = 0; k < branch->nregions; k++)
            add_arg(branch->regions[k], k == x->ways[i].region ? next : zero);
        next = inst_add_result(branch, v->type, v->name);
    }
    inst_add_arg(loop, zero);
    for (int k = 0; k < 2; k++) region_add_param(loop->regions[k], v->type, v->name);
    inst_add_arg(loop->regions[1]->last, next);
    return inst_add_result(loop, v->type, v->name);
}

static Val *behind(Leaving *x, Builder *b, Val *v);

static Val *compute_again(Leaving *x, Builder *b, const Inst *inst) {
    Val **args = arena_array(x->scratch, Val *, inst->nargs + 1);
    for (int i = 0; i < inst->nargs; i++) args[i] = behind(x, b, ir_resolve(inst->args[i]));
    return clone_with(b, inst, args)->results[0];
}

static Val *behind(Leaving *x, Builder *b, Val *v) {
    Val *to = map_get(&x->moved, PTR_KEY(v));
    if (to != v) return to ? to : v;
    to = compute_again(x, b, v->inst);
    map_put(x->scratch, &x->moved, PTR_KEY(v), to);
    return to;
}

typedef struct Moving {
    Leaving *leaving;
    Builder *again; /* where values are computed again */
} Moving;

static void use_behind(void *user, Inst *inst) {
    Moving *m = user;
    for (int i = 0; i < inst->nargs; i++)
        inst->args[i] = behind(m->leaving, m->again, ir_resolve(inst->args[i]));
}

static void move_instructions(Leaving *x, Region *from, Region *to) {
    Builder again = build_at_end(to);
    for (Inst *inst = from->first, *next; inst != from->last; inst = next) {
        next = inst->next;
        inst_remove(inst);
        inst_append(to, inst);
        if (!again.before) again.before = inst;
    }
    Moving m = {x, &again};
    for (Inst *inst = again.before; inst; inst = inst->next) {
        use_behind(&m, inst);
        inst_walk(inst, use_behind, &m);
    }
}

/* Nobody asks for what the way gave, so it gives what the other one does, which mostly is what it was. */
static void leave_out(const Leaving *x, const Region *from, const Region *moved) {
    const Inst *branch = from->owner;
    const Region *other = branch->regions[branch->regions[0] == from];
    for (int i = 0; i < from->last->nargs; i++) {
        Val *v = ir_resolve(from->last->args[i]), *same = NULL;
        if (!is_inside(moved, v)) continue;
        if (other->last->op == OP_yield) same = inst_operand(other->last, i);
        if (!same || is_inside(other, same)) same = ir_const_zero(x->func->module, v->type);
        from->last->args[i] = same;
    }
}

/* What the loop hands on if it is left on that way, where the way has made it or it is a constant. */
typedef struct Given {
    int result;
    Val *value;
} Given;
typedef VEC(Given) GivenVec;

static GivenVec given_on_way(Leaving *x) {
    GivenVec given = {0};
    for (int i = 0; i < x->ends.count; i++) {
        Val *v = x->ends.at[i];
        if (is_inside(region_of(x), v) || val_is_const(v)) vec_push(x->scratch, &given, ((Given){i, v}));
    }
    return given;
}

static void move_way(Leaving *x, Val *left, const GivenVec *given) {
    Inst *loop = x->loop;
    Region *from = region_of(x);
    const Type **types = arena_array(x->scratch, const Type *, given->count + 1);
    for (int i = 0; i < given->count; i++) types[i] = given->at[i].value->type;
    Builder b = build_after(loop);
    b.loc = from->owner->loc;
    Inst *branch = build_if(&b, left, types, given->count);
    move_instructions(x, from, branch->regions[0]);
    leave_out(x, from, branch->regions[0]);
    Builder then = build_at_end(branch->regions[0]), otherwise = build_at_end(branch->regions[1]);
    Inst *ends[] = {build_inst(&then, OP_yield, NULL, 0, 0, 0),
                    build_inst(&otherwise, OP_yield, NULL, 0, 0, 0)};
    for (int i = 0; i < given->count; i++) {
        Val *old = loop->results[given->at[i].result];
        inst_add_arg(ends[0], given->at[i].value);
        inst_add_arg(ends[1], inst_renew_result(loop, given->at[i].result));
        old->forward = branch->results[i];
    }
}

static void take_behind(Leaving *x) {
    Module *module = x->func->module;
    GivenVec given = given_on_way(x);
    for (int i = 0; i < x->kept.count; i++)
        map_put(x->scratch, &x->moved, PTR_KEY(x->kept.at[i]), hand_on(x, x->kept.at[i]));
    Val *left = ir_const_int(module, type_basic(module->types, TYPE_bool), 1);
    move_way(x, hand_on(x, left), &given);
    ir_resolve_func(x->func);
}

/* ---- finding such ways */

static bool try_way(Leaving *x, Inst *branch, int region) {
    x->ways[x->count++] = (Way){branch, region};
    x->steps = MOST_STEPS;
    x->moved = (Map){0};
    x->kept = x->ends = (ValVec){0};
    x->again = 0;
    bool can = branch->regions[region]->last->op == OP_yield && leaves(x) && can_be_moved(x);
    if (can) take_behind(x);
    return can;
}

static bool look_for_ways(Leaving *x, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op != OP_if || x->count == MOST_WAYS) continue;
        for (int i = 0; i < inst->nregions; i++) {
            int count = x->count;
            if (try_way(x, inst, i)) return true;
            if (look_for_ways(x, inst->regions[i])) return true;
            x->count = count;
        }
    }
    return false;
}

static bool take_all_behind(Arena *scratch, Func *func, Inst *loop) {
    bool changed = false,
         found = loop->regions[1]->last->op == OP_yield && loop->regions[0]->last->op == OP_yield;
    while (found) {
        Leaving x = {.scratch = scratch, .func = func, .loop = loop};
        found = look_for_ways(&x, loop->regions[1]);
        changed |= found;
    }
    return changed;
}

static bool visit(Arena *scratch, Func *func, const Region *region) {
    bool changed = false;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions; i++) changed |= visit(scratch, func, inst->regions[i]);
        if (inst->op == OP_loop && inst->nregions == 2) changed |= take_all_behind(scratch, func, inst);
    }
    return changed;
}

bool opt_behind(Func *func) {
    Arena *scratch = arena_scratch(func->module->arena);
    bool changed = visit(scratch, func, func->body);
    arena_free(scratch);
    return changed;
}
