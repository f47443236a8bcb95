/* Loops that ask for it are replaced by copies of their bodies.
 *
 * How often a loop runs is found by running it, on the constants that are known: the condition is computed by
 * folding, and carried values as far as it depends on them. A loop that runs a known number of times becomes
 * that many copies of condition and body, each with the values of the one before. Copies are folded on the
 * way, so that inner loops see constants, and are looked at in their turn.
 *
 * Breaks and continues of the loop leave blocks: one around everything, one around each body.
 *
 *   block #1 { condition; block #2 { body } step; condition; block #3 { body } step; ... }
 *
 * [ForceUnroll(n)] with a number of iterations that is not known makes n copies, each under the test of the
 * condition, with the loop itself behind them for the rest. Without n there is a warning, and the loop stays.
 *
 * A processor gains nothing from long straight code, and code generators take time that grows with its
 * square: there, a loop whose copies would be more than a few hundred instructions stays one, and its inner
 * loops are looked at by themselves. A GPU keeps arrays in registers by it.
 *
 * For a GPU, short loops that add to shared memory ask for it as well: sums that follow each other are shared
 * among threads. */
#include "opt.h"

#define MAX_TRIPS     4096
#define MAX_SIZE      200000 /* instructions that the loops of a function may become */
#define MAX_STRAIGHT  1024   /* that one of them may become, on a processor */
#define MAX_FUNCTION  8192   /* that all of them may become there */
#define MAX_CHAIN     200
#define MAX_TESTS     64 /* copies under a test of their own */
#define MAX_SUMS      32 /* trips of a loop that adds, which did not ask */
#define MAX_SUMS_SIZE 2048

typedef struct Jumps {
    Arena *arena;
    const Inst *target;
    InstVec found;
} Jumps;

typedef struct Unroll {
    Func *func;
    Inst *loop; /* at work */
    Jumps jumps;
    Arena *scratch;
    Val **known;   /* by id: the constant that a value is in the iteration at work */
    int64_t *when; /* by id: in which iteration `known` was found */
    int64_t now;   /* counts the iterations of all loops */
    uint32_t nids;
    int64_t growth; /* instructions added so far */
    bool changed;
} Unroll;

static Module *module_of(const Unroll *u) { return u->func->module; }

/* ---- how often a loop runs */

static void set_known(Unroll *u, const Val *v, Val *constant) {
    u->known[v->id] = constant;
    u->when[v->id] = u->now;
}

/* The constant that v is in this iteration, or NULL. Values of nested constructs are not followed, nor are
 * very long chains. */
static Val *evaluate(Unroll *u, Val *v, int depth) {
    v = ir_resolve(v);
    if (v->kind == VAL_const) return v;
    if (v->id >= u->nids || depth > MAX_CHAIN) return NULL;
    if (u->when[v->id] == u->now) return u->known[v->id];
    set_known(u, v, NULL);
    if (v->kind != VAL_inst || !op_has(v->inst->op, OP_PURE) || v->inst->nargs > 3) return NULL;
    const Inst *inst = v->inst;
    Val *args[3];
    for (int i = 0; i < inst->nargs; i++)
        if (!(args[i] = evaluate(u, inst->args[i], depth + 1))) return NULL;
    Val *result = ir_fold(module_of(u), (Op)inst->op, v->type, args, inst->nargs);
    if (result && result->kind != VAL_const) result = NULL;
    set_known(u, v, result);
    return result;
}

static void find_jump(void *user, Inst *inst) {
    Jumps *jumps = user;
    if ((inst->op != OP_break && inst->op != OP_continue) || inst->target != jumps->target) return;
    vec_push(jumps->arena, &jumps->found, inst);
}

static bool same_const(const Val *a, const Val *b) {
    return a && b && a->type == b->type && a->integer == b->integer;
}

/* What carried value `index` is at the end of the body, the same on every way, or NULL. */
static Val *value_at_end(Unroll *u, const Jumps *jumps, int index) {
    const Inst *end = u->loop->regions[1]->last;
    Val *value = end->op == OP_yield ? evaluate(u, end->args[index], 0) : NULL;
    bool known = end->op != OP_yield || value;
    for (int i = 0; i < jumps->found.count && known; i++) {
        if (jumps->found.at[i]->op != OP_continue) continue;
        Val *other = evaluate(u, jumps->found.at[i]->args[index], 0);
        if (!value) value = other;
        known = same_const(value, other);
    }
    return known ? value : NULL;
}

/* The carried values of the next iteration, as far as they are constants. */
static void advance(Unroll *u, const Jumps *jumps, Val **carried) {
    const Inst *loop = u->loop;
    int count = loop->nargs;
    for (int i = 0; i < count; i++) carried[i] = value_at_end(u, jumps, i);
    if (loop->nregions < 3) return;
    for (int i = 0; i < count; i++) set_known(u, loop->regions[2]->params[i], carried[i]);
    const Inst *end = loop->regions[2]->last;
    for (int i = 0; i < count; i++) carried[i] = end->op == OP_yield ? evaluate(u, end->args[i], 0) : NULL;
}

static Val **initial_constants(Unroll *u) {
    Val **known = arena_array(u->scratch, Val *, u->loop->nargs + 1);
    for (int i = 0; i < u->loop->nargs; i++) {
        Val *initial = ir_resolve(u->loop->args[i]);
        known[i] = initial->kind == VAL_const ? initial : NULL;
    }
    return known;
}

static void begin_iteration(Unroll *u, Val *const *known) {
    u->now++;
    for (int i = 0; i < u->loop->nargs; i++) {
        set_known(u, u->loop->regions[0]->params[i], known[i]);
        set_known(u, u->loop->regions[1]->params[i], known[i]);
    }
}

/* -1: not known, or more than `limit`. */
static int count_trips(Unroll *u, int64_t limit) {
    const Inst *test = u->loop->regions[0]->last;
    Val **known = initial_constants(u);
    if (test->op != OP_yield) return -1;
    for (int trip = 0; trip <= limit; trip++) {
        begin_iteration(u, known);
        const Val *go = evaluate(u, test->args[0], 0);
        if (!go) return -1;
        if (val_is_zero(go)) return trip;
        advance(u, &u->jumps, known);
    }
    return -1;
}

/* ---- copying */

/* Copies the instructions of a region to the builder's place, its parameters being `carried`; not its end. */
static CloneMap copy_region(Builder *b, const Region *region, Val *const *carried) {
    CloneMap map = {.module = b->func->module, .func = b->func};
    for (int i = 0; i < region->nparams; i++) clone_map_val(&map, region->params[i], carried[i]);
    for (Inst *inst = region->first; inst != region->last; inst = inst->next) {
        Inst *copy = clone_inst(&map, inst);
        if (b->before) inst_insert_before(b->before, copy);
        else inst_append(b->region, copy);
        if (!op_has(copy->op, OP_PURE) || copy->nresults != 1) continue;
        Builder fold = build_before(copy);
        Val *simpler = build_again(&fold, copy);
        if (!simpler) continue;
        clone_map_val(&map, inst->results[0], simpler);
        inst_remove(copy);
    }
    return map;
}

static void take_values(CloneMap *map, const Inst *end, Val **carried) {
    ValVec values = {0};
    for (int i = 0; i < end->nargs; i++) vec_push(map->module->arena, &values, clone_val(map, end->args[i]));
    for (int i = 0; i < end->nargs; i++) carried[i] = values.at[i];
}

static Inst *block_like(Builder *b, const Inst *loop) {
    Inst *block = build_block(b);
    for (int i = 0; i < loop->nresults; i++)
        inst_add_result(block, loop->results[i]->type, loop->results[i]->name);
    return block;
}

typedef struct Retarget {
    const Inst *loop;
    Inst *outer, *inner; /* where break and continue go */
} Retarget;

static void retarget(void *user, Inst *inst) {
    const Retarget *r = user;
    if ((inst->op != OP_break && inst->op != OP_continue) || inst->target != r->loop) return;
    inst->target = inst->op == OP_break ? r->outer : r->inner;
    inst->op = OP_break;
}

/* One copy of the body in a block of its own, for continues. */
static void copy_body_in_block(Builder *b, const Inst *loop, Inst *outer, Val **carried) {
    Region *body = loop->regions[1];
    Inst *block = block_like(b, loop);
    Builder in = build_at_end(block->regions[0]);
    CloneMap map = copy_region(&in, body, carried);
    inst_append(block->regions[0], clone_inst(&map, body->last));
    Retarget r = {loop, outer, block};
    region_walk(block->regions[0], retarget, &r);
    for (int i = 0; i < block->nresults; i++) carried[i] = block->results[i];
}

/* The end of a region that is not a yield, at the end of the builder's region. */
static void copy_end(Builder *b, CloneMap *map, const Region *region) {
    inst_append(b->region, clone_inst(map, region->last));
}

/* Body and step once; false: that never comes to its end, and nothing can follow. */
static bool copy_body(Builder *b, const Inst *loop, Inst *outer, Val **carried) {
    if (outer) copy_body_in_block(b, loop, outer, carried);
    else {
        CloneMap map = copy_region(b, loop->regions[1], carried);
        take_values(&map, loop->regions[1]->last, carried);
    }
    if (loop->nregions < 3) return true;
    const Region *step = loop->regions[2];
    CloneMap map = copy_region(b, step, carried);
    if (step->last->op == OP_yield) return take_values(&map, step->last, carried), true;
    copy_end(b, &map, step);
    return false;
}

/* Is this loop simple enough to be straight code? Else everything goes into a block. */
static bool needs_block(const Inst *loop, const Jumps *jumps) {
    if (jumps->found.count) return true;
    for (int r = 1; r < loop->nregions; r++)
        if (loop->regions[r]->last->op != OP_yield) return true;
    return false;
}

static Inst *replace_by(Inst *loop, Val *const *values) {
    Inst *next = loop->next;
    for (int i = 0; i < loop->nresults; i++) {
        Val *value = ir_resolve(values[i]);
        if (!value->name && value->kind != VAL_const) value->name = loop->results[i]->name;
        loop->results[i]->forward = value;
    }
    inst_remove(loop);
    return next;
}

/* Known values are used as constants: behind a block they would be results of it. */
static void copy_all(Unroll *u, Builder *b, Inst *outer, Val **carried, int trips) {
    const Inst *loop = u->loop;
    Val **known = initial_constants(u);
    for (int i = 0; i < trips; i++) {
        begin_iteration(u, known);
        copy_region(b, loop->regions[0], carried);
        if (!copy_body(b, loop, outer, carried)) return;
        advance(u, &u->jumps, known);
        for (int j = 0; j < loop->nargs; j++)
            if (known[j]) carried[j] = known[j];
    }
    copy_region(b, loop->regions[0], carried); /* the test that fails */
    if (outer) build_yield(b, carried, loop->nargs);
}

/* Some iterations, each under its test, then the loop for the rest. Gives the carried values after all of
 * it. */
static void copy_guarded(Builder *b, Inst *loop, Inst *outer, Val **carried, int64_t trips) {
    if (trips == 0) {
        CloneMap map = {.module = b->func->module, .func = b->func};
        Inst *rest = clone_inst(&map, loop);
        for (int i = 0; i < loop->nargs; i++) rest->args[i] = carried[i], carried[i] = rest->results[i];
        rest->hints.unroll = 0;
        if (b->before) inst_insert_before(b->before, rest);
        else inst_append(b->region, rest);
        return;
    }
    CloneMap map = copy_region(b, loop->regions[0], carried);
    const Type **types = arena_array(b->func->module->arena, const Type *, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) types[i] = carried[i]->type;
    Inst *test = build_if(b, clone_val(&map, loop->regions[0]->last->args[0]), types, loop->nargs);
    Builder stop = build_at_end(test->regions[1]), go = build_at_end(test->regions[0]);
    build_yield(&stop, carried, loop->nargs);
    if (copy_body(&go, loop, outer, carried)) {
        copy_guarded(&go, loop, outer, carried, trips - 1);
        build_yield(&go, carried, loop->nargs);
    }
    for (int i = 0; i < loop->nargs; i++) carried[i] = test->results[i];
}

typedef struct Plan {
    int trips;      /* exactly; -1: not known */
    int64_t copies; /* then */
    bool in_block;
} Plan;

/* Where to go on: at the first copy. */
static Inst *replace_loop(Unroll *u, Plan plan) {
    Inst *loop = u->loop, *before = loop->prev;
    Region *parent = loop->parent;
    Val **carried = arena_array(module_of(u)->arena, Val *, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) carried[i] = ir_resolve(loop->args[i]);
    Builder b = build_before(loop);
    Inst *outer = plan.in_block ? block_like(&b, loop) : NULL;
    Builder in = outer ? build_at_end(outer->regions[0]) : b;
    if (plan.trips >= 0) copy_all(u, &in, outer, carried, plan.trips);
    else {
        copy_guarded(&in, loop, outer, carried, plan.copies);
        if (outer) build_yield(&in, carried, loop->nargs);
    }
    replace_by(loop, outer ? outer->results : carried);
    u->changed = true;
    return before ? before->next : parent->first;
}

/* ---- the walk */

static int64_t size_of(const Inst *loop) {
    int64_t size = 1;
    for (int i = 0; i < loop->nregions; i++) size += region_size(loop->regions[i]);
    return size;
}

static bool asks(const Inst *inst) {
    return inst->op == OP_loop && (inst->hints.unroll || inst->hints.written);
}

static Inst *keep(Unroll *u, const char *why) {
    if (u->loop->hints.unroll) diag_report(module_of(u)->diags, DIAG_cannot_unroll, u->loop->loc, why);
    return u->loop->next;
}

static void begin_loop(Unroll *u, Inst *loop) {
    u->loop = loop;
    if (u->func->nvals <= u->nids) return;
    u->nids = u->func->nvals * 2;
    u->known = arena_array(u->scratch, Val *, u->nids);
    u->when = arena_array(u->scratch, int64_t, u->nids);
}

static void look_at(Unroll *u, Inst *loop) {
    begin_loop(u, loop);
    u->jumps = (Jumps){.arena = u->scratch, .target = loop};
    region_walk(loop->regions[1], find_jump, &u->jumps);
}

/* How many instructions a loop that asks becomes, together with those inside. */
static int64_t whole_size(Unroll *u, Inst *loop) {
    int64_t size = 1;
    for (int r = 0; r < loop->nregions; r++)
        for (Inst *inst = loop->regions[r]->first; inst && size <= MAX_FUNCTION; inst = inst->next)
            size += whole_size(u, inst);
    if (!asks(loop) || size > MAX_FUNCTION) return size;
    look_at(u, loop);
    int trips = count_trips(u, MAX_TRIPS);
    return trips > 0 ? trips * size : size;
}

static bool is_too_straight(Unroll *u, Inst *loop) {
    if (module_of(u)->many_threads) return false;
    int64_t size = whole_size(u, loop);
    return size > MAX_STRAIGHT || u->growth + size > MAX_FUNCTION;
}

/* A loop that says unroll; where to go on. */
static Inst *unroll_loop(Unroll *u, Inst *loop) {
    bool stays = !loop->hints.written && is_too_straight(u, loop);
    look_at(u, loop);
    int64_t size = size_of(loop), room = (MAX_SIZE - u->growth) / size, wanted = loop->hints.unroll;
    Plan plan = {.copies = wanted < MAX_TESTS ? wanted : MAX_TESTS, .in_block = needs_block(loop, &u->jumps)};
    if (plan.in_block && (u->func->flags & FUNC_NORMAL)) return loop->next;
    plan.trips = count_trips(u, room < MAX_TRIPS ? room : MAX_TRIPS);
    int64_t copies = (plan.trips >= 0 ? plan.trips : plan.copies) + 1;
    if (plan.trips < 0 && wanted <= 0) return keep(u, "the number of iterations is not known, or too large");
    if (copies > room) return keep(u, "it would become too large");
    if (stays && plan.trips >= 0) return loop->next;
    if (loop->regions[0]->last->op != OP_yield) return loop->next;
    u->growth += copies * size;
    return replace_loop(u, plan);
}

static bool is_sum(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_atomic && inst->index == 0;
}

/* A short loop that adds, for a target whose threads do that together. */
static bool is_of_sums(Unroll *u, Inst *loop) {
    if (!module_of(u)->many_threads || loop->op != OP_loop || loop->hints.unroll) return false;
    if (!region_find(loop->regions[1], is_sum, NULL)) return false;
    look_at(u, loop);
    int trips = needs_block(loop, &u->jumps) ? -1 : count_trips(u, MAX_SUMS);
    return trips >= 0 && trips * size_of(loop) <= MAX_SUMS_SIZE;
}

static void visit_region(Unroll *u, Region *region) {
    for (Inst *inst = region->first; inst;) {
        inst_resolve(inst);
        Inst *next = inst->next;
        bool is_asked = asks(inst);
        if (is_asked) next = unroll_loop(u, inst);
        if (!is_asked || inst->parent)
            for (int i = 0; i < inst->nregions; i++) visit_region(u, inst->regions[i]);
        if (!is_asked && is_of_sums(u, inst)) next = unroll_loop(u, inst); /* as large as it is by now */
        inst = next;
    }
}

bool opt_unroll(Func *func) {
    if (!func->body) return false;
    Unroll u = {.func = func, .scratch = arena_scratch(func->module->arena)};
    visit_region(&u, func->body);
    ir_resolve_func(func);
    arena_free(u.scratch);
    return u.changed;
}
