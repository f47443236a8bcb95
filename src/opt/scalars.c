/* Vectors of two and three lanes become scalars, for who makes vectors itself: they seldom fill a register,
 * and LLVM takes several rounds of a loop together only if nothing in them is a vector. Where it cannot,
 * since the rounds may end early, lanes at once are better than one by one, if they fit into a register:
 * functions that compute with such vectors in such loops stay as they are, and so do parameters and results
 * of all functions.
 *
 * Vectors of four fill a register, and are scalars only in functions that read, put together and write them,
 * but do not compute with any: derivatives of such vectors are taken lane by lane. */
#include "opt.h"

enum {
    LANES = 3,     /* at most */
    FULL = 4,      /* lanes of a register */
    REGISTER = 16, /* bytes */
};

typedef struct Search {
    bool found;    /* short vectors */
    bool is_best;  /* as it is */
    bool is_apart; /* a lane of a full vector is taken or given alone */
    bool is_whole; /* something is done with all lanes of one */
} Search;

static bool is_short(const Type *type) { return type->kind == TYPE_vector && type_count(type) <= LANES; }

/* May a round be the last one without the counter having come to its end? */
static bool ends_early(const Inst *loop) {
    LoopTest test;
    const Inst *end = loop->regions[0]->last; /* of the condition: it may also leave, or never come there */
    if (loop_body_leaves(loop) || end->op != OP_yield) return true;
    const Val *more = ir_resolve(end->args[0]);
    return more->kind != VAL_inst || !loop_comparison(loop, more->inst, &test);
}

static bool works(const void *user, const Inst *inst) {
    (void)user;
    if (!op_has(inst->op, OP_ELEMENTWISE)) return false;
    const Type *type = inst->results[0]->type;
    return is_short(type) && type_layout(type, LAYOUT_scalar).size <= REGISTER;
}

static bool is_full(const Type *type) { return type->kind == TYPE_vector && type_count(type) == FULL; }

static bool has_full(const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (is_full(inst->results[i]->type)) return true;
    for (int i = 0; i < inst->nargs; i++)
        if (is_full(inst->args[i]->type)) return true;
    return false;
}

static void look_at_full(Search *search, const Inst *inst) {
    if (!has_full(inst)) return;
    bool is_apart = inst->op == OP_vec || (inst->op == OP_extract && val_is_const(inst_operand(inst, 1)));
    search->is_apart |= is_apart;
    search->is_whole |= !is_apart && inst->op != OP_load && inst->op != OP_store;
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    look_at_full(search, inst);
    for (int i = 0; i < inst->nresults; i++) search->found |= is_short(inst->results[i]->type);
    for (int i = 0; i < inst->nargs; i++) search->found |= is_short(inst->args[i]->type);
    if (inst->op == OP_loop && !search->is_best && ends_early(inst))
        search->is_best = region_find(inst->regions[1], works, NULL);
}

bool opt_scalars(Func *func) {
    Search search = {0};
    Region *old = func->body;
    if (old) region_walk(old, look_at, &search);
    bool takes_full = search.is_apart && !search.is_whole;
    if (!(search.found || takes_full) || search.is_best) return false;
    LaneCopy copy = {.module = func->module,
                     .arena = arena_scratch(func->module->arena),
                     .most = takes_full ? FULL : LANES};
    copy.b = build_at_end(func_begin(func));
    for (int i = 0; i < func->nparams; i++) apart_hold_joined(&copy, old->params[i], func->body->params[i]);
    apart_copy_region(&copy, old);
    arena_free(copy.arena);
    return true;
}
