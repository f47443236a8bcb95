/* Together: the rounds of a loop that differ in little are made at once, so that what they have in common is
 * computed once.
 *
 *     for (j = 0; j < 4; j++)                          A derivative in several directions, or with several seeds, runs the function
 *         column[j] = fwd_diff(f)(x, unit(j)).d;       again for each of them: jacobian, hessian, and whoever writes such a loop.
 *
 * What does not depend on j can go in front of the loop (licm.c), but where it is in a loop of f, with the
 * differentials beside it, it stays; and so do the tapes of a reverse pass. Here the loop over j is exchanged
 * with those inside: each runs once, with the primal values once and the differentials of all rounds beside
 * each other. That works for code of any kind, at any order of derivatives, since it is done when all of them
 * are there:
 *
 *     1  loops that lead to a derivative are marked, before calls are inlined
 *     2  all calls in marked loops of few rounds are inlined, in a copy of the function, unless a look into them tells that it would be too much
 *     3  together_vary.c finds out what differs between rounds, and what has to stay in the order of the rounds
 *     4  if that leaves enough in common, together_make.c makes as many rounds at once as are reasonable
 *
 * Recursive functions stay calls, which are made for each round, or keep the loop as it is, if they have a
 * tape. */
#include "opt/together.h"

#include <limits.h>

enum {
    MOST_ROUNDS = 4096, /* of a loop that is looked at */
    MOST_COPIES =
        600, /* instructions that a loop may become: more of them take longer to compile than they gain */
    MOST_COPIES_OF_FOUR = 1300, /* ... of four rounds that have much in common */
    MOST_COPIES_OF_ALL =
        2400, /* ... of all rounds: seeds are constants then, and what is multiplied by their zeros, mostly half of it, vanishes */
    MOST_SIZE = 20000, /* ... and may have */
    MOST_CALLS = 200   /* on the way from one function to another; what is further down is not looked at */
};

/* ---- loops that lead to a derivative */

typedef struct Marks {
    Arena *scratch;
    Map known; /* Func that leads to one -> itself; one that does not -> NULL */
    int depth;
    bool changed;
} Marks;

static bool mark_region(Marks *marks, const Region *region);

static bool leads_to_derivative(Marks *marks, const Func *func) {
    if (func_is_derivative(func)) return true;
    if (map_has(&marks->known, PTR_KEY(func))) return map_get(&marks->known, PTR_KEY(func)) != NULL;
    if (!func->body || marks->depth >= MOST_CALLS) return false;
    map_put(marks->scratch, &marks->known, PTR_KEY(func), NULL); /* for a function that calls itself */
    marks->depth++;
    bool leads = mark_region(marks, func->body);
    marks->depth--;
    map_put(marks->scratch, &marks->known, PTR_KEY(func), leads ? (void *)(uintptr_t)func : NULL);
    return leads;
}

static bool mark_inst(Marks *marks, Inst *inst) {
    bool leads = inst->op == OP_call && leads_to_derivative(marks, inst->callee);
    for (int i = 0; i < inst->nregions; i++) leads |= mark_region(marks, inst->regions[i]);
    if (inst->op == OP_loop && leads) marks->changed = inst->hints.together = true;
    return leads;
}

static bool mark_region(Marks *marks, const Region *region) {
    bool leads = false;
    for (Inst *inst = region->first; inst; inst = inst->next) leads |= mark_inst(marks, inst);
    return leads;
}

/* Loops of a derivative that its function had are not over seeds. Rounds of those have operands in common,
 * which a processor then reads once; a thread of a GPU has no room for the sums of so many rounds. */
static bool may_have_seeds(const Func *func) {
    return func->body && !(func->module->many_threads && (func->flags & FUNC_GENERATED));
}

bool opt_mark_derivatives(Module *module, int first) {
    Marks marks = {.scratch = arena_scratch(module->arena)};
    for (int i = first; i < module->funcs.count; i++)
        if (may_have_seeds(module->funcs.at[i])) mark_region(&marks, module->funcs.at[i]->body);
    arena_free(marks.scratch);
    return marks.changed;
}

/* ---- how many rounds */

/* 0: not known, or too many. */
static int count_rounds(const Inst *loop) {
    const Region *condition = loop->regions[0], *body = loop->regions[1];
    const Inst *compare = condition->first;
    LoopTest test;
    int64_t value, step, limit, far = (int64_t)1 << 30;
    if (loop->nregions != 2 || body->last->op != OP_yield || !compare || compare->next != condition->last)
        return 0;
    if (compare->op == OP_ne || !loop_comparison(loop, compare, &test)) return 0;
    if (ir_resolve(condition->last->args[0]) != compare->results[0] || !loop_step(loop, test.index, &step))
        return 0;
    if (!val_is_int(test.limit, &limit) || !val_is_int(ir_resolve(loop->args[test.index]), &value)) return 0;
    if (value < -far || value > far || limit < -far || limit > far || step < -far || step > far) return 0;
    if (step == 0 || (step > 0) != test.up) return 0;
    int64_t span = (test.up ? limit - value : value - limit) + test.or_equal, by = step > 0 ? step : -step;
    int64_t count = span > 0 ? (span + by - 1) / by : 0;
    return count <= MOST_ROUNDS ? (int)count : 0;
}

static bool is_candidate(const Inst *inst) {
    return inst->op == OP_loop && inst->hints.together && count_rounds(inst) > 1;
}

/* ---- one loop */

static void analyse(Rounds *r, Func *func, Inst *loop, bool guesses) {
    *r = (Rounds){.func = func,
                  .scratch = arena_scratch(func->module->arena),
                  .loop = loop,
                  .guesses = guesses,
                  .left = 2 * MOST_SIZE};
    ir_resolve_func(func);
    rounds_analyse(r);
}

static void make_rounds(Func *func, Inst *loop, int count) {
    Rounds r;
    analyse(&r, func, loop, false);
    rounds_make(&r, count);
    ir_resolve_func(func);
    arena_free(r.scratch);
}

/* How many at once; 0: it is not worth while; 1: they follow each other, behind what goes in front of the
 * loop. */
static int fitting(const Rounds *r, int rounds) {
    bool is_work =
        r->counted * 4 <= r->shared * 3; /* else little is left of it where loops are written out */
    bool is_worth_it = r->shared * 4 >= r->repeated && r->shared > 0 && is_work;
    if (r->leaves || !is_worth_it) return 0;
    bool is_straight = r->ahead * 4 >= r->shared * 3,
         has_room = is_straight || !(r->func->module->many_threads || r->keeps); /* for what loops carry */
    int64_t most = MOST_COPIES / (r->copies + 1);
    if (has_room && rounds <= MOST_TOGETHER && rounds * (r->copies + 1) <= MOST_COPIES_OF_ALL) return rounds;
    if (most < 4 && 4 * (r->copies + 1) <= MOST_COPIES_OF_FOUR && r->shared * 2 >= r->repeated) most = 4;
    if (most > MOST_TOGETHER) most = MOST_TOGETHER;
    if (most > 4) most -= most % 4; /* what vectors have */
    if (most < 2) return r->ahead * 4 >= r->repeated ? 1 : 0;
    int blocks = (int)((rounds + most - 1) / most);
    return (rounds + blocks - 1) / blocks;
}

static Inst *copy_loop(Inst *loop, Val *const *first) {
    CloneMap map = {.module = loop->func->module, .func = loop->func};
    Inst *copy = clone_inst(&map, loop);
    for (int i = 0; i < loop->nargs; i++) copy->args[i] = first[i];
    return copy;
}

/* A loop over blocks of so many rounds, and the rest. */
static void make_blocks(Func *func, Inst *loop, int rounds, int size) {
    Module *m = func->module;
    Builder b = build_before(loop);
    int n = loop->nargs;
    const Type *number = type_basic(m->types, TYPE_int);
    Val **values = arena_array(m->arena, Val *, n + 1);
    for (int i = 0; i < n; i++) values[i] = ir_resolve(loop->args[i]);
    values[n] = ir_const_int(m, number, 0);
    Inst *blocks = build_loop(&b, values, n + 1, false);
    Builder test = build_at_end(blocks->regions[0]), body = build_at_end(blocks->regions[1]);
    Val *go =
        build_binary(&test, OP_lt, blocks->regions[0]->params[n], ir_const_int(m, number, rounds / size));
    build_yield(&test, &go, 1);
    Inst *block = copy_loop(loop, blocks->regions[1]->params), *rest = copy_loop(loop, blocks->results);
    inst_append(blocks->regions[1], block);
    for (int i = 0; i < n; i++) values[i] = block->results[i];
    values[n] = build_binary(&body, OP_add, blocks->regions[1]->params[n], ir_const_int(m, number, 1));
    build_yield(&body, values, n + 1);
    if (rounds % size) inst_insert_before(loop, rest);
    for (int i = 0; i < n; i++)
        loop->results[i]->forward = rounds % size ? rest->results[i] : blocks->results[i];
    inst_remove(loop);
    make_rounds(func, block, size);
    if (rounds % size) make_rounds(func, rest, rounds % size);
}

static bool try_loop(Func *func, Inst *loop) {
    Rounds r;
    int rounds = count_rounds(loop);
    analyse(&r, func, loop, false);
    int size = fitting(&r, rounds);
    arena_free(r.scratch);
    loop->hints.together = false;
    if (size >= rounds) make_rounds(func, loop, rounds);
    else if (size > 1) make_blocks(func, loop, rounds, size);
    return size > 0;
}

/* ---- all of them, the innermost first */

static bool visit_region(Func *func, Region *region) {
    bool changed = false;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions; i++) changed |= visit_region(func, inst->regions[i]);
        if (is_candidate(inst)) changed |= try_loop(func, inst);
    }
    return changed;
}

/* As far as can be told before calls are inlined: that makes more of what is shared, and at most a few times
 * less of what is to be copied. */
static bool may_share(Func *func, Inst *loop) {
    Rounds r;
    analyse(&r, func, loop, true);
    arena_free(r.scratch);
    bool is_small = r.left >= 0 && r.copies <= (int64_t)2 * MOST_COPIES;
    return !r.leaves && r.shared > 0 && is_small;
}

typedef struct Hopes {
    Func *func;
    bool any;
} Hopes;

static void look_for_hope(void *user, Inst *inst) {
    Hopes *hopes = user;
    if (!is_candidate(inst)) return;
    inst->hints.together = may_share(hopes->func, inst);
    hopes->any |= inst->hints.together;
}

bool opt_may_be_together(Func *func) {
    Hopes hopes = {.func = func};
    region_walk(func->body, look_for_hope, &hopes);
    return hopes.any;
}

static bool is_in_candidate(void *user, const Func *callee, const Inst *call) {
    (void)user, (void)callee;
    for (const Inst *owner = call->parent->owner; owner; owner = owner->parent->owner)
        if (is_candidate(owner)) return true;
    return false;
}

bool opt_inline_together(Func *func) {
    return opt_inline(func, (InlinePolicy){.max_size = INT_MAX, .may = is_in_candidate, .any_form = true});
}

bool opt_together(Func *func) {
    if (!func->body || region_size(func->body) > MOST_SIZE) return false;
    ir_resolve_func(func);
    return visit_region(func, func->body);
}
