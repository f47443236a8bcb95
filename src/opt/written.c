/* Short nests over local arrays are written out before they are differentiated.
 *
 *     for (r = 0; r < 3; r++)
 *         for (c = 0; c <= r; c++) { ... for (k = 0; k < c; k++) s -= l[r][k] * l[c][k]; ... }
 *
 * In copies every index is a constant, so that the array is numbers, of which nothing is kept but what the
 * reverse needs. Loops keep what they overwrite, and those inside, if the number of their rounds differs,
 * where they have kept it: compilers that write out the loops of the derivative do not see through that. And
 * the loop around can become vectors once it is arithmetic alone.
 *
 * Which loops go on as constants tell, and how long they are then, is found by running them (ir/inrange.c).
 * An array is numbers only if all loops that choose among its elements are written out; unless it is made as
 * a whole, such as an item of a buffer, and only read, when it may stay what it is. Nests over buffers alone
 * stay, unless the rounds of a loop inside differ in number: what others keep has its place, and rows of
 * buffers are vectors as they are.
 *
 * Nests whose rounds are alike gain while they are short: longer ones compilers do by rows, better than
 * number by number. In C they stay if they compute exp and the like, of which there are vectors in loops
 * alone. Those with loops inside that differ may be long, such as factors of 6 x 6; but not over weights that
 * many items share, as each of these then has a sum of its own, and there are too few registers for those. */
#include "opt.h"

enum {
    MOST_ROUNDS = 40, /* of the outermost loop */
    FEW_ROUNDS = 9,   /* more of them may become vectors */
    MOST_STEPS = 600, /* instructions of a nest, many of which compute indices and are gone then */
    MOST_IN_ALL = 800,
    MOST_LONG = 1500, /* likewise, of those that may be long */
    MOST_LONG_IN_ALL = 2000,
    MOST_CALLED = 16, /* of a function that is called in it */
    DEPTH = 8,        /* of operands of operands */
};

typedef struct Nest {
    Inst *loop;
    int steps;
    bool varies;    /* it depends on the round how many a loop inside has */
    bool is_alike;  /* not, and it stays unless it shares an array with one that does */
    bool decides;   /* its counters say which of two numbers, or which way */
    bool is_shared; /* it reads what the items of a loop have in common */
    bool computes;  /* exp and the like */
    bool stays;
} Nest;

typedef struct Writing {
    Func *func;
    Arena *scratch;
    Rehearsal *rehearsal;
    VEC(Nest) nests;
    Map filled;    /* arrays of which elements are written: Val */
    Map remaining; /* arrays that are none of numbers: Val */
    Map varying;   /* those of nests that vary */
    Nest *nest;    /* at work; NULL: outside of all */
    bool gains, loses, changed;
    bool for_source;
} Writing;

/* ---- which nests could be */

/* Does a loop start from, or end at, what is no constant? */
static bool has_free_ends(const Inst *loop) {
    const Inst *end = loop->regions[0]->last;
    const Val *test = end->op == OP_yield ? inst_operand(end, 0) : NULL;
    if (!test || test->kind != VAL_inst || (test->inst->op != OP_lt && test->inst->op != OP_le)) return false;
    for (int i = 0; i < test->inst->nargs; i++) {
        const Val *v = inst_operand(test->inst, i);
        bool is_carried = v->kind == VAL_param && v->region == loop->regions[0];
        if (!val_is_const(is_carried ? inst_operand(loop, v->index) : v)) return true;
    }
    return false;
}

/* Made of constants and of what loops of the nest carry. */
static bool is_counted(const Nest *nest, const Val *v, int depth) {
    if (val_is_const(v)) return true;
    if (depth == 0 || !inst_contains(nest->loop, v)) return false;
    if (v->kind == VAL_param) return v->region->owner->op == OP_loop;
    if (!op_has(v->inst->op, OP_PURE)) return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (!is_counted(nest, inst_operand(v->inst, i), depth - 1)) return false;
    return true;
}

static bool is_long_call(const Inst *inst) {
    if (inst->op != OP_call) return inst->op == OP_printf;
    return !inst->callee->body || region_size(inst->callee->body) > MOST_CALLED;
}

/* Is the element in an array that all rounds of a loop around the nest use? */
static bool is_of_all_rounds(const Nest *nest, const Inst *elem) {
    const Inst *around = nest->loop->parent->owner;
    while (around && around->op != OP_loop) around = around->parent->owner;
    return around && !inst_contains(around, ir_root(elem->args[0]));
}

/* It reads what is the same in all rounds of a loop around the nest, or whoever calls the function: a call
 * that is given nothing but numbers of the nest, and something by address. */
static bool reads_shared(const Nest *nest, const Inst *inst) {
    bool has_memory = false;
    if (inst->op == OP_elem) return is_of_all_rounds(nest, inst);
    if (inst->op != OP_call) return false;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        bool is_number = type_is_integer(v->type);
        if (is_number ? !is_counted(nest, v, DEPTH) : type_is_float(type_element(v->type))) return false;
        has_memory |= !is_number;
    }
    return has_memory;
}

static bool is_decided_by_counters(const Nest *nest, const Inst *inst) {
    bool chooses = inst->op == OP_select || inst->op == OP_if || inst->op == OP_switch;
    return chooses && is_counted(nest, inst_operand(inst, 0), DEPTH);
}

static void look_at(void *user, Inst *inst) {
    Nest *nest = user;
    nest->decides |= is_decided_by_counters(nest, inst);
    nest->is_shared |= reads_shared(nest, inst);
    bool is_loop = inst->op == OP_loop;
    nest->varies |= is_loop && has_free_ends(inst);
    nest->computes |= op_is_elementary(inst->op);
    nest->stays |= is_loop ? inst->hints.unroll || inst->hints.checkpoint : is_long_call(inst);
}

static bool may_be_long(const Nest *nest) { return nest->varies && !nest->is_shared; }

/* Compilers of C make vectors of functions in loops alone. */
static bool stays_alike(const Writing *w, const Nest *nest) {
    return loop_most_trips(nest->loop) > FEW_ROUNDS || (w->for_source && (nest->computes || nest->is_shared));
}

static int most_steps(const Nest *nest) { return may_be_long(nest) ? MOST_LONG : MOST_STEPS; }

static void find_nests(Writing *w, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        Nest nest = {.loop = inst};
        if (inst->op == OP_loop && loop_most_trips(inst) <= MOST_ROUNDS) {
            look_at(&nest, inst);
            inst_walk(inst, look_at, &nest);
            nest.is_alike = !nest.varies && stays_alike(w, &nest);
            nest.steps = nest.stays ? 0 : ir_rehearsed_steps(w->rehearsal, inst, most_steps(&nest));
        }
        if (nest.steps) vec_push(w->scratch, &w->nests, nest);
        else
            for (int i = 0; i < inst->nregions; i++) find_nests(w, inst->regions[i]);
    }
}

/* ---- which of them gain */

/* All of an object may be written at once, but its address goes nowhere else. */
static void note_filled(void *user, Inst *inst) {
    Writing *w = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_read || role == ROLE_part) continue;
        const Val *root = ir_root(inst->args[i]);
        if (role != ROLE_write || root != inst_operand(inst, i))
            map_put(w->scratch, &w->filled, PTR_KEY(root), inst);
    }
}

/* A variable, or in C a parameter: the derivative is a part of a loop over items only if all that it is given
 * are numbers then. */
static bool is_array(const Writing *w, const Val *root) {
    return root->kind == VAL_inst ? root->inst->op == OP_var
                                  : w->for_source && root->kind == VAL_param && !root->region->owner;
}

static const Val *array_of(const Writing *w, const Inst *inst) {
    const Val *root = inst->op == OP_elem ? ir_root(inst->args[0]) : NULL;
    return root && is_array(w, root) && !val_is_const(inst_operand(inst, 1)) ? root : NULL;
}

static void note_remaining(void *user, Inst *inst) {
    Writing *w = user;
    const Val *array = array_of(w, inst);
    if (!array || (w->nest && is_counted(w->nest, inst_operand(inst, 1), DEPTH))) return;
    w->changed |= !map_has(&w->remaining, PTR_KEY(array));
    map_put(w->scratch, &w->remaining, PTR_KEY(array), inst);
}

static void note_varying(void *user, Inst *inst) {
    Writing *w = user;
    const Val *array = array_of(w, inst);
    if (array) map_put(w->scratch, &w->varying, PTR_KEY(array), inst);
}

static void look_for_gain(void *user, Inst *inst) {
    Writing *w = user;
    const Val *array = array_of(w, inst);
    if (!array) return;
    bool remains = map_has(&w->remaining, PTR_KEY(array));
    bool is_filled = w->for_source || map_has(&w->filled, PTR_KEY(array));
    w->loses |= remains && is_filled;
    if (remains && !is_filled) return; /* as a parameter would be */
    w->gains |= !w->nest->is_alike || map_has(&w->varying, PTR_KEY(array));
}

static void walk_nest(Writing *w, Nest *nest, InstVisitor visit) { inst_walk(nest->loop, visit, w); }

static Nest *nest_of(const Writing *w, const Inst *loop) {
    for (int i = 0; i < w->nests.count; i++)
        if (w->nests.at[i].loop == loop && !w->nests.at[i].stays) return &w->nests.at[i];
    return NULL;
}

static void find_remaining(Writing *w, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        Nest *nest = inst->op == OP_loop ? nest_of(w, inst) : NULL;
        w->nest = nest;
        if (nest) walk_nest(w, nest, note_remaining);
        w->nest = NULL;
        note_remaining(w, inst);
        for (int i = 0; i < inst->nregions && !nest; i++) find_remaining(w, inst->regions[i]);
    }
}

/* A nest in which an array remains stays, and lets all of its arrays remain. */
static void choose(Writing *w) {
    do {
        w->changed = false;
        w->varying = (Map){0};
        find_remaining(w, w->func->body);
        for (int i = 0; i < w->nests.count; i++)
            if (w->nests.at[i].varies && !w->nests.at[i].stays) walk_nest(w, &w->nests.at[i], note_varying);
        for (int i = 0; i < w->nests.count; i++) {
            Nest *nest = &w->nests.at[i];
            w->nest = nest;
            w->gains = nest->varies || (nest->decides && !nest->is_alike);
            w->loses = false;
            walk_nest(w, nest, look_for_gain);
            bool stays = !w->gains || w->loses;
            w->changed |= stays && !nest->stays;
            nest->stays |= stays;
        }
    } while (w->changed);
}

/* ---- the entry */

static void mark(void *user, Inst *inst) {
    const bool *is_written = user;
    if (inst->op == OP_loop) inst->hints.written = *is_written;
}

static void mark_nest(const Nest *nest) {
    bool is_written = true;
    mark(&is_written, nest->loop);
    inst_walk(nest->loop, mark, &is_written);
}

static bool mark_chosen(const Writing *w) {
    int steps = 0, in_long = 0;
    for (int i = 0; i < w->nests.count; i++) {
        const Nest *nest = &w->nests.at[i];
        if (!nest->stays) *(may_be_long(nest) ? &in_long : &steps) += nest->steps;
    }
    if (steps + in_long == 0 || steps > MOST_IN_ALL || in_long > MOST_LONG_IN_ALL) return false;
    for (int i = 0; i < w->nests.count; i++)
        if (!w->nests.at[i].stays) mark_nest(&w->nests.at[i]);
    return true;
}

bool opt_write_out(Func *func, bool for_source) {
    if (!func->body || func->module->many_threads) return false;
    Writing w = {.func = func, .scratch = arena_scratch(func->module->arena), .for_source = for_source};
    bool changed = false, is_written = false;
    ir_resolve_func(func);
    w.rehearsal = ir_rehearsal(w.scratch, func);
    find_nests(&w, func->body);
    if (w.nests.count) region_walk(func->body, note_filled, &w);
    if (w.nests.count) choose(&w);
    if (w.nests.count && mark_chosen(&w)) {
        changed = opt_unroll(func);
        region_walk(func->body, mark, &is_written);
    }
    arena_free(w.scratch);
    return changed;
}
