/* Siblings: calls of one derivative that have operands in common become parts of their caller, so that what
 * follows from these alone is computed once.
 *
 *     a = fwd_diff(f)(diffPair(x, u)).d;     Each takes the sine of x again, which cse.c and asked.c find, once they see it.
 *     b = fwd_diff(f)(diffPair(x, v)).d;
 *
 * A call is compared with the first ones of the same function that are sure to have been made before it.
 * Whether copies bring enough is told by a look into the function (together_vary.c), as for loops over seeds.
 * What is in loops stays apart here: functions with loops stay calls. */
#include "opt/together.h"

enum {
    MOST_ELDERS = 8,    /* that a call is compared with */
    MOST_COPIED = 1300, /* instructions, in one function */
    MOST_LOOKED_AT = 20000
};

typedef struct Elders {
    Inst *calls[MOST_ELDERS];
    int count;
    bool is_out; /* too large, or not a function for this */
} Elders;

typedef struct Siblings {
    Arena *scratch;
    Map elders;   /* Func -> Elders */
    Map chosen;   /* Inst: calls to be copied */
    int64_t left; /* instructions that may still be copied */
    bool any;
} Siblings;

typedef struct Shape {
    int64_t size;
    bool loops;
} Shape;

static void look_at(void *user, Inst *inst) {
    Shape *shape = user;
    shape->size++;
    shape->loops |= inst->op == OP_loop;
}

static Shape shape_of(const Func *func) {
    Shape shape = {0};
    region_walk(func->body, look_at, &shape);
    return shape;
}

static bool is_derivative(const Func *func) {
    bool is_own = (func->flags & FUNC_GENERATED) && !(func->flags & (FUNC_NOINLINE | FUNC_EXPORT));
    return is_own && func->body && (func->flags & (FUNC_PURE | FUNC_HARMLESS));
}

static Elders *elders_of(Siblings *s, const Func *callee) {
    Elders *elders = map_get(&s->elders, PTR_KEY(callee));
    if (elders) return elders;
    elders = arena_new(s->scratch, Elders);
    elders->is_out = !is_derivative(callee) || shape_of(callee).loops;
    map_put(s->scratch, &s->elders, PTR_KEY(callee), elders);
    return elders;
}

/* Was it made whenever control comes to the other? It stands before it. */
static bool comes_before(const Inst *call, const Inst *other) {
    const Region *region = other->parent;
    while (region != call->parent && region->owner) region = region->owner->parent;
    return region == call->parent;
}

static bool is_worth_it(Siblings *s, const Inst *elder, const Inst *call) {
    bool *varies = arena_array(s->scratch, bool, call->nargs + 1), some = false;
    for (int i = 0; i < call->nargs; i++) {
        varies[i] = !val_is_same(elder->args[i], call->args[i]);
        some |= !varies[i] && call->args[i]->kind != VAL_const;
    }
    if (!some) return false;
    Rounds r = {.func = call->callee, .scratch = s->scratch, .guesses = true, .left = MOST_LOOKED_AT};
    rounds_weigh_func(&r, varies, 1, false);
    return r.left >= 0 && r.shared > 0 && r.shared * 4 >= r.repeated;
}

static void choose(Siblings *s, Inst *call) {
    if (map_has(&s->chosen, PTR_KEY(call))) return;
    map_put(s->scratch, &s->chosen, PTR_KEY(call), call);
    s->left -= shape_of(call->callee).size;
    s->any = true;
}

static void visit(void *user, Inst *inst) {
    Siblings *s = user;
    if (inst->op != OP_call) return;
    inst_resolve(inst);
    Elders *elders = elders_of(s, inst->callee);
    if (elders->is_out || 2 * shape_of(inst->callee).size > s->left) return;
    for (int i = 0; i < elders->count; i++) {
        if (!comes_before(elders->calls[i], inst) || !is_worth_it(s, elders->calls[i], inst)) continue;
        choose(s, elders->calls[i]);
        choose(s, inst);
        return;
    }
    if (elders->count < MOST_ELDERS) elders->calls[elders->count++] = inst;
}

static bool is_chosen(void *user, const Func *callee, const Inst *call) {
    const Siblings *s = user;
    (void)callee;
    return map_has(&s->chosen, PTR_KEY(call));
}

bool opt_inline_siblings(Func *func) {
    Siblings s = {.scratch = arena_scratch(func->module->arena), .left = MOST_COPIED};
    region_walk(func->body, visit, &s);
    InlinePolicy policy = {.max_size = MOST_COPIED, .may = is_chosen, .user = &s, .any_form = true};
    if (s.any) opt_inline(func, policy);
    arena_free(s.scratch);
    return s.any;
}
