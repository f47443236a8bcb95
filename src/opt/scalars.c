/* Vectors of two and three lanes become scalars, for who makes vectors itself: they seldom fill a register, and LLVM takes several rounds of a
 * loop together only if nothing in them is a vector. Where it cannot, since the rounds may end early, lanes at once are better than
 * one by one, if they fit into a register: functions that compute with such vectors in such loops stay as they are, and so
 * do parameters and results of all functions. */
#include "opt.h"

enum {
    LANES = 3,     /* at most */
    REGISTER = 16, /* bytes */
};

typedef struct Search {
    bool found;   /* short vectors */
    bool is_best; /* as it is */
} Search;

static bool is_short(const Type *type) { return type->kind == TYPE_vector && type_count(type) <= LANES; }

static void find_leaving(void *user, Inst *inst) {
    *(bool *)user |= inst->op != OP_continue && op_has(inst->op, OP_LEAVES);
}

/* May a round be the last one without the counter having come to its end? */
static bool ends_early(const Inst *loop) {
    LoopTest test;
    bool leaves = false;
    const Inst *end = loop->regions[0]->last; /* of the condition: it may also leave, or never come there */
    region_walk(loop->regions[1], find_leaving, &leaves);
    if (leaves || end->op != OP_yield) return true;
    const Val *more = ir_resolve(end->args[0]);
    return more->kind != VAL_inst || !loop_comparison(loop, more->inst, &test);
}

static void find_work(void *user, Inst *inst) {
    bool *works = user;
    if (!op_has(inst->op, OP_ELEMENTWISE)) return;
    const Type *type = inst->results[0]->type;
    *works |= is_short(type) && type_layout(type, LAYOUT_scalar).size <= REGISTER;
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    for (int i = 0; i < inst->nresults; i++) search->found |= is_short(inst->results[i]->type);
    for (int i = 0; i < inst->nargs; i++) search->found |= is_short(inst->args[i]->type);
    if (inst->op == OP_loop && !search->is_best && ends_early(inst))
        region_walk(inst->regions[1], find_work, &search->is_best);
}

bool opt_scalars(Func *func) {
    Search search = {0};
    Region *old = func->body;
    if (old) region_walk(old, look_at, &search);
    if (!search.found || search.is_best) return false;
    LaneCopy copy = {.module = func->module, .arena = arena_scratch(func->module->arena), .most = LANES};
    copy.b = build_at_end(func_begin(func));
    for (int i = 0; i < func->nparams; i++) apart_hold_joined(&copy, old->params[i], func->body->params[i]);
    apart_copy_region(&copy, old);
    arena_free(copy.arena);
    return true;
}
