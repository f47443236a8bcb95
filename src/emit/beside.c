/* Short loops beside long ones: what is prepared before a loop over data, or added up behind it. They take a
 * small part of the time, however they are done, but to write them out and to look for vectors in them takes
 * a compiler as long as for the loop over data: they are left as they are.
 *
 *     for (k = 0; k < 10; k++) scale[k] = exp(x[k]);                   left as it is
 *     for (i = 0; i < count; i++)
 *         for (k = 0; k < 100; k++) sum += scale[k % 10] * ...
 *
 * How long a loop takes is estimated by what it does in a round; where constants do not tell how many there
 * are, or tell of many, they are taken to be SOME_ROUNDS. Loops of functions that become a part of their
 * caller are compared with all that this does.
 *
 * A local array of which all indices are constants, once loops are written out, is in registers. Where a long
 * loop would gain by that, none that uses the array is left: it would then be in memory everywhere. */
#include "emit/reach.h"

enum {
    SOME_ROUNDS = 64,
    LEAST_SHARE = 128,  /* of what is done in all: a loop that does less than this part of it */
    MOST_OF_KEPT = 512, /* instructions: a loop with more of them is surely not written out */
    MOST_CALLS = 64     /* in a chain */
};

typedef struct Beside {
    Reached *reached;
    Map works; /* ReachedFunc -> double */
    Map given; /* Val: a parameter of what is called in one place, or a copy -> the object that it is given */
    Map kept;  /* Inst: loops that are not written out; NULL: it may be */
    Map held;  /* Val: objects that are in memory in any case */
    Map wanted; /* Val: those with elements that long loops may have in registers */
} Beside;

/* ---- how much is done */

static double work_of_func(Beside *b, const ReachedFunc *info);

static double work_of_region(Beside *b, const Region *region);

static double rounds_of(const Inst *loop) {
    int64_t most = loop_most_trips(loop);
    return (double)(most < SOME_ROUNDS ? most : SOME_ROUNDS);
}

/* What is unlikely is not done. */
static double work_of_inst(Beside *b, const Inst *inst) {
    double work = 1 + op_info[inst->op].cost;
    bool is_likely = inst->op == OP_if && inst_has(inst, INST_LIKELY);
    if (inst->op == OP_call) work += work_of_func(b, reached_func(b->reached, inst->callee));
    for (int i = 0; i < inst->nregions - is_likely; i++) work += work_of_region(b, inst->regions[i]);
    return inst->op == OP_loop ? work * rounds_of(inst) : work;
}

static double work_of_region(Beside *b, const Region *region) {
    double work = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next) work += work_of_inst(b, inst);
    return work;
}

/* Of what calls itself nothing is known, nor of long chains of calls. */
static double work_of_func(Beside *b, const ReachedFunc *info) {
    double *known = map_get(&b->works, PTR_KEY(info));
    if (known || info->is_cyclic || info->height > MOST_CALLS) return known ? *known : 0;
    known = arena_new(b->reached->arena, double);
    *known = work_of_region(b, info->func->body);
    map_put(b->reached->arena, &b->works, PTR_KEY(info), known);
    return *known;
}

/* ---- which loops do little */

static bool is_bounded(const Inst *loop);

static bool is_bounded_within(const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_call || (inst->op == OP_loop && !is_bounded(inst))) return false;
        for (int i = 0; i < inst->nregions && inst->op != OP_loop; i++)
            if (!is_bounded_within(inst->regions[i])) return false;
    }
    return true;
}

/* Its rounds, and those of loops inside, are few, and nothing is called. */
static bool is_bounded(const Inst *loop) {
    if (loop_most_trips(loop) > SOME_ROUNDS) return false;
    for (int i = 0; i < loop->nregions; i++)
        if (!is_bounded_within(loop->regions[i])) return false;
    return true;
}

typedef struct Search {
    Beside *beside;
    double whole; /* that is done where the function is called */
} Search;

static void note_loop(void *user, Inst *inst) {
    const Search *search = user;
    if (inst->op != OP_loop || inst_loop_around(inst) || !is_bounded(inst)) return;
    Beside *b = search->beside;
    if (work_of_inst(b, inst) > search->whole / (double)LEAST_SHARE) return;
    map_put(b->reached->arena, &b->reached->beside, PTR_KEY(inst), inst);
}

static void look_for_loops(Beside *b, const ReachedFunc *info) {
    bool is_joined = reach_is_joined(info) && info->loops_around == 0;
    Search search = {b, work_of_func(b, is_joined ? info->root : info)};
    region_walk(info->func->body, note_loop, &search);
}

static const Inst *outermost(const Inst *inst) {
    const Inst *loop = inst->op == OP_loop ? inst : inst_loop_around(inst);
    for (const Inst *around = loop; around; around = inst_loop_around(around)) loop = around;
    return loop;
}

bool emit_is_beside(const Reached *reached, const Inst *loop) {
    return map_get(&reached->beside, PTR_KEY(outermost(loop))) != NULL;
}

/* ---- arrays that long loops may have in registers */

static void note_given(void *user, Inst *inst) {
    Beside *b = user;
    if (inst->op != OP_call || !inst->callee->body || inst_is_unlikely(inst)) return;
    if (reached_func(b->reached, inst->callee)->calls != 1) return;
    for (int i = 0; i < inst->nargs; i++)
        if (inst->callee->params[i].flags & PARAM_BY_ADDRESS)
            map_put(b->reached->arena, &b->given, PTR_KEY(inst->callee->body->params[i]),
                    ir_root(inst->args[i]));
}

/* A variable, or the parameter of what is called from outside or in several places. */
static Val *object_of(const Beside *b, Val *address) {
    Val *root = ir_root(address), *given;
    while ((given = map_get(&b->given, PTR_KEY(root)))) root = given;
    return root;
}

static bool is_variable(const Val *object) { return object->kind == VAL_inst && object->inst->op == OP_var; }

/* Compilers make one variable of two if one is a copy of the other. */
static void note_copy(void *user, Inst *inst) {
    Beside *b = user;
    if (inst->op != OP_copy) return;
    Val *to = object_of(b, inst->args[0]), *from = object_of(b, inst->args[1]);
    if (is_variable(to) && is_variable(from) && to != from)
        map_put(b->reached->arena, &b->given, PTR_KEY(to), from);
}

static bool is_kept(Beside *b, const Inst *loop) {
    if (map_has(&b->kept, PTR_KEY(loop))) return map_get(&b->kept, PTR_KEY(loop)) != NULL;
    int64_t rounds = loop_most_trips(loop), size = region_size(loop->regions[1]);
    bool is_long = rounds > MOST_OF_KEPT || rounds * size > MOST_OF_KEPT;
    bool kept = is_long && !emit_is_written_out(b->reached, loop);
    map_put(b->reached->arena, &b->kept, PTR_KEY(loop), kept ? b : NULL);
    return kept;
}

/* The number is no constant, even if all loops are written out that may be. */
static bool varies(Beside *b, Val *v, int depth) {
    if (val_is_const(v) || depth == 0) return false;
    if (v->kind == VAL_param)
        return !v->region->owner || v->region->owner->op != OP_loop || is_kept(b, v->region->owner);
    for (int i = 0; i < v->inst->nargs; i++)
        if (varies(b, inst_operand(v->inst, i), depth - 1)) return true;
    return op_has(v->inst->op, OP_READS);
}

static void note_access(void *user, Inst *inst) {
    enum { DEPTH = 4 };
    Beside *b = user;
    if (inst->op != OP_elem || !inst_loop_around(inst) || emit_is_beside(b->reached, inst)) return;
    const Val *object = object_of(b, inst->args[0]);
    if (!is_variable(object)) return;
    Map *map = varies(b, inst_operand(inst, 1), DEPTH) ? &b->held : &b->wanted;
    map_put(b->reached->arena, map, PTR_KEY(object), b);
}

static void forget_loop(void *user, Inst *inst) {
    Beside *b = user;
    if (inst->op != OP_elem || !emit_is_beside(b->reached, inst)) return;
    const Val *object = object_of(b, inst->args[0]);
    if (is_variable(object) && map_has(&b->wanted, PTR_KEY(object)) && !map_has(&b->held, PTR_KEY(object)))
        map_put(b->reached->arena, &b->reached->beside, PTR_KEY(outermost(inst)), NULL);
}

static void walk_all(Beside *b, InstVisitor visit) {
    for (int i = 0; i < b->reached->funcs.count; i++)
        region_walk(b->reached->funcs.at[i]->func->body, visit, b);
}

void reach_beside(Reached *reached) {
    Beside b = {.reached = reached};
    for (int i = 0; i < reached->funcs.count; i++) look_for_loops(&b, reached->funcs.at[i]);
    if (reached->beside.count == 0) return;
    walk_all(&b, note_given);
    walk_all(&b, note_copy);
    walk_all(&b, note_access);
    walk_all(&b, forget_loop);
}
