/* Calls are replaced by copies of the bodies of their callees.
 *
 * Parameters are values, addresses included, so that a copy uses the operands of the call directly. A body
 * with one return, at its end, takes the place of the call; any other becomes a block, and its returns leave
 * that block (simplify makes plain control flow of most of these). Calls in the copy are looked at in turn; a
 * function is never copied into itself, so that recursion stays a call. A function in normal form takes only
 * what keeps it so, unless it may be in any form. */
#include "opt.h"

#include <limits.h>

#define MAX_GROWTH 50000 /* instructions added to one function, beyond which only [ForceInline] counts */
#define MAX_DEPTH                                                                                            \
    16 /* likewise: copies in copies; or long chains of calls would cost the square of their length */
#define MAX_LOOPS        5 /* likewise: loops in loops, which cost LLVM more than the square of their number */
#define MAX_COPIED_LOOPS 64 /* likewise: loops that follow each other, which cost its square */

/* The functions whose copies are around. */
typedef struct Chain {
    const Func *func;
    const struct Chain *outer;
} Chain;

typedef struct Room {
    int64_t size, loops;
} Room;

typedef struct Inliner {
    Func *func;
    InlinePolicy policy;
    Arena *scratch;
    Map calls;   /* Func -> places in the function that call it, before anything was copied */
    Map fitting; /* Func: copies for all of these have room; NULL: they have not */
    Room taken;  /* by those that have */
    int growth, depth;
    bool changed;
} Inliner;

/* ---- what may be inlined */

typedef struct Shape {
    int size, returns;
    int loops;      /* in each other, at most */
    bool has_jumps; /* or something else that normal form has not */
} Shape;

static void add_to_shape(void *user, Inst *inst) {
    Shape *shape = user;
    shape->size++;
    shape->returns += inst->op == OP_return;
    if (inst->op == OP_loop && shape->loops <= inst_loops_around(inst))
        shape->loops = inst_loops_around(inst) + 1;
    shape->has_jumps |= inst->op == OP_break || inst->op == OP_continue || inst->op == OP_block ||
                        inst->op == OP_unreachable || (inst->op == OP_loop && inst->nregions == 3);
}

static Shape shape_of(const Func *func) {
    Shape shape = {0};
    region_walk(func->body, add_to_shape, &shape);
    return shape;
}

static bool returns_at_end(const Func *func, Shape shape) {
    return shape.returns == 1 && func->body->last->op == OP_return;
}

/* Threads of a wave meet at one place of the program: a function with such a place is copied to where it is
 * called, so that calls in two branches are two places. */
typedef struct Waves {
    Map seen;      /* Func */
    bool barriers; /* are looked for instead */
    bool found;
} Waves;

static void look_for_waves(Waves *waves, const Func *func);

static void look_at(void *user, Inst *inst) {
    Waves *waves = user;
    waves->found |= waves->barriers ? inst->op == OP_barrier && inst->index == 1 : inst->op == OP_wave;
    if (inst->op == OP_call && !waves->found) look_for_waves(waves, inst->callee);
}

static void look_for_waves(Waves *waves, const Func *func) {
    if (!func->body || map_has(&waves->seen, PTR_KEY(func))) return;
    map_put(func->module->arena, &waves->seen, PTR_KEY(func), (void *)(uintptr_t)func);
    region_walk(func->body, look_at, waves);
}

static bool meets_others(const Func *func) {
    Waves waves = {0};
    if (func->module->has_waves) look_for_waves(&waves, func);
    return waves.found;
}

static bool is_in(const Chain *chain, const Func *func) {
    for (; chain; chain = chain->outer)
        if (chain->func == func) return true;
    return false;
}

static bool is_normal(const Func *func, Shape shape) {
    return !shape.has_jumps && returns_at_end(func, shape);
}

static bool has_at_most(const Region *region, int *left) {
    for (const Inst *inst = region->first; inst && --*left >= 0; inst = inst->next)
        for (int i = 0; i < inst->nregions; i++)
            if (!has_at_most(inst->regions[i], left)) return false;
    return *left >= 0;
}

static bool is_small(const Inliner *n, const Func *func) {
    int left = n->policy.max_size;
    return func->body && (left == INT_MAX || has_at_most(func->body, &left));
}

/* Takes the size of a region from `left`, with all that would be copied into it. */
static void take_whole(const Inliner *n, const Region *region, Room *left, const Chain *chain, int depth) {
    for (const Inst *inst = region->first; inst && left->size >= 0; inst = inst->next) {
        left->size--;
        left->loops -= inst->op == OP_loop;
        for (int i = 0; i < inst->nregions; i++) take_whole(n, inst->regions[i], left, chain, depth);
        bool copied = inst->op == OP_call && depth < MAX_DEPTH && !is_in(chain, inst->callee) &&
                      is_small(n, inst->callee);
        if (!copied) continue;
        Chain inner = {inst->callee, chain};
        take_whole(n, inst->callee->body, left, &inner, depth + 1);
    }
}

static void count_calls(void *user, Inst *inst) {
    Inliner *n = user;
    if (inst->op != OP_call) return;
    uintptr_t before = (uintptr_t)map_get(&n->calls, PTR_KEY(inst->callee));
    map_put(n->scratch, &n->calls, PTR_KEY(inst->callee), (void *)(before + 1));
}

/* Copies for some of many calls would be code of both kinds: each is differentiated by itself, and what is
 * called as well. A few instructions are less than a call. */
static bool has_room(Inliner *n, const Func *callee, Room whole) {
    enum { FEW = 16 };
    int64_t most = n->policy.max_whole ? n->policy.max_whole : INT_MAX;
    bool is_short = whole.size <= FEW && whole.loops == 0;
    if (!is_short && map_has(&n->fitting, PTR_KEY(callee)))
        return map_get(&n->fitting, PTR_KEY(callee)) != NULL;
    int64_t calls = is_short ? 1 : (int64_t)(uintptr_t)map_get(&n->calls, PTR_KEY(callee));
    Room all = {n->taken.size + whole.size * calls, n->taken.loops + whole.loops * calls};
    bool fits = all.size <= most && all.loops <= MAX_COPIED_LOOPS;
    if (fits) n->taken = all;
    map_put(n->scratch, &n->fitting, PTR_KEY(callee), fits ? n : NULL);
    return fits;
}

/* What a copy calls was looked at with it. */
static bool fits_whole(Inliner *n, const Func *callee) {
    int64_t most = n->policy.max_whole ? n->policy.max_whole - n->growth : INT_MAX;
    if (n->policy.max_each && n->policy.max_each < most) most = n->policy.max_each;
    if (most == INT_MAX) return true;
    Room left = {.size = most};
    Chain chain = {callee, NULL};
    take_whole(n, callee->body, &left, &chain, n->depth);
    return left.size >= 0 && (n->depth > 0 || has_room(n, callee, (Room){most - left.size, -left.loops}));
}

static bool fits_nest(const Inst *call, Shape shape) {
    return shape.loops == 0 || shape.loops + inst_loops_around(call) <= MAX_LOOPS;
}

static bool may_inline(Inliner *n, const Inst *call, Shape shape) {
    const Func *callee = call->callee;
    bool normal = (n->func->flags & FUNC_NORMAL) && !n->policy.any_form;
    if (normal && !is_normal(callee, shape)) return false;
    bool small = shape.size <= n->policy.max_size && n->growth < MAX_GROWTH && n->depth < MAX_DEPTH;
    small = small && (n->policy.max_size == INT_MAX || fits_nest(call, shape));
    bool full = n->policy.max_growth && n->func->module->inlined >= n->policy.max_growth;
    bool must = (callee->flags & FUNC_INLINE) || meets_others(callee);
    if (!must && (!small || full)) return false;
    if (n->policy.may && !n->policy.may(n->policy.user, callee, call)) return false;
    return must || fits_whole(n, callee);
}

/* ---- copying */

static CloneMap map_params(const Inst *call) {
    CloneMap map = {.module = call->func->module, .func = call->func, .loc = call->loc};
    map.relocates = call->callee->is_library && call->loc;
    for (int i = 0; i < call->nargs; i++)
        clone_map_val(&map, call->callee->body->params[i], ir_resolve(call->args[i]));
    return map;
}

static void replace(Val *old, Val *with) {
    if (!with->name && with->kind != VAL_const) with->name = old->name;
    old->forward = with;
}

static void copy_straight(Inst *call) {
    const Region *body = call->callee->body;
    CloneMap map = map_params(call);
    for (Inst *inst = body->first; inst != body->last; inst = inst->next)
        inst_insert_before(call, clone_inst(&map, inst));
    for (int i = 0; i < call->nresults; i++) replace(call->results[i], clone_val(&map, body->last->args[i]));
}

static void leave_block(void *user, Inst *inst) {
    if (inst->op != OP_return) return;
    Inst *block = user;
    bool at_end = inst->parent->owner == block;
    inst->op = at_end ? OP_yield : OP_break;
    if (!at_end) inst->target = block;
}

static void copy_as_block(Inst *call) {
    CloneMap map = map_params(call);
    Builder b = build_before(call);
    Inst *block = build_block(&b);
    for (int i = 0; i < call->nresults; i++)
        replace(call->results[i], inst_add_result(block, call->results[i]->type, call->results[i]->name));
    clone_region_into(&map, call->callee->body, block->regions[0]);
    region_walk(block->regions[0], leave_block, block);
}

/* Threads of a wave meet where the program calls the library, not inside of it. */
static void meet_at(void *user, Inst *inst) {
    const Loc *place = user;
    if (inst->op == OP_wave || (inst->op == OP_call && meets_others(inst->callee))) inst->loc = *place;
}

static void place_meetings(Inst *first, const Inst *call) {
    Loc place = call->loc;
    for (Inst *inst = first; inst != call; inst = inst->next) {
        meet_at(&place, inst);
        inst_walk(inst, meet_at, &place);
    }
}

/* ---- the walk */

static void inline_range(Inliner *n, Inst *first, const Inst *stop, const Chain *chain);

static void inline_call(Inliner *n, Inst *call, const Chain *chain) {
    const Func *callee = call->callee;
    if (!callee || !callee->body || is_in(chain, callee)) return;
    if ((callee->flags & FUNC_NOINLINE) && !meets_others(callee)) return;
    Shape shape = shape_of(callee);
    if (!may_inline(n, call, shape)) return;
    Inst *before = call->prev, *after = call->next;
    Region *region = call->parent;
    if (returns_at_end(callee, shape)) copy_straight(call);
    else copy_as_block(call);
    if (callee->module->has_waves) place_meetings(before ? before->next : region->first, call);
    inst_remove(call);
    n->func->flags |= callee->flags & FUNC_PRECISE;
    if (callee->rounds > n->func->rounds) n->func->rounds = callee->rounds;
    if (!is_normal(callee, shape)) n->func->flags &= ~(uint32_t)FUNC_NORMAL;
    n->changed = true;
    n->growth += shape.size;
    n->func->module->inlined += shape.size;
    Chain inner = {callee, chain};
    n->depth++;
    inline_range(n, before ? before->next : region->first, after, &inner);
    n->depth--;
}

static void inline_range(Inliner *n, Inst *first, const Inst *stop, const Chain *chain) {
    for (Inst *inst = first, *next; inst != stop; inst = next) {
        next = inst->next;
        inst_resolve(inst);
        for (int i = 0; i < inst->nregions; i++) inline_range(n, inst->regions[i]->first, NULL, chain);
        if (inst->op == OP_call) inline_call(n, inst, chain);
    }
}

bool opt_inline(Func *func, InlinePolicy policy) {
    if (!func->body) return false;
    Inliner n = {.func = func, .policy = policy, .scratch = arena_scratch(func->module->arena)};
    Chain chain = {func, NULL};
    region_walk(func->body, count_calls, &n);
    inline_range(&n, func->body->first, NULL, &chain);
    ir_resolve_func(func);
    arena_free(n.scratch);
    return n.changed;
}

static bool waits(void *user, const Func *callee, const Inst *call) {
    Waves waves = {.barriers = true};
    (void)user, (void)call;
    look_for_waves(&waves, callee);
    return waves.found;
}

bool opt_inline_waiting(Func *func) {
    return opt_inline(func, (InlinePolicy){.max_size = INT_MAX, .may = waits, .any_form = true});
}

/* ---- what takes objects apart */

enum { MOST_MOVED = 400, MOST_ELSE = 40 }; /* instructions: that move parts of objects, and others */

typedef struct Moves {
    int moves, others;
    bool forks;
} Moves;

static void count_moves(void *user, Inst *inst) {
    Moves *count = user;
    bool is_part = inst->op == OP_field || (inst->op == OP_elem && val_is_const(ir_resolve(inst->args[1])));
    bool moves = is_part || inst->op == OP_load || inst->op == OP_store;
    count->moves += moves;
    count->others += !moves;
    count->forks |= inst->nregions > 0;
}

static bool takes_apart(void *user, const Func *callee, const Inst *call) {
    Moves count = {0};
    (void)user, (void)call;
    region_walk(callee->body, count_moves, &count);
    return !count.forks && count.moves <= MOST_MOVED && count.others <= MOST_ELSE;
}

/* ... and what is given some integers in an array of the caller's: the strides of a tensor, which the caller
 * knows. LLVM finds out, too, but only once indices were tested for any strides. */
enum { MOST_TOLD = 1500, MOST_STRIDES = 8 };

static bool is_of_strides(const Val *arg) {
    const Val *root = ir_root((Val *)arg);
    const Type *target = ir_target(arg->type);
    bool is_own = root && root->kind == VAL_inst && root->inst->op == OP_var;
    return is_own && target->kind == TYPE_array && type_is_integer(target->args[0]) &&
           type_length(target) <= MOST_STRIDES;
}

static bool is_told(const Inst *call) {
    bool has_strides = false;
    for (int i = 0; i < call->nargs; i++) has_strides |= is_of_strides(inst_operand(call, i));
    return has_strides && region_calls(call->func->body, call->callee) == 1 &&
           region_size(call->callee->body) <= MOST_TOLD;
}

static bool is_straight(const Region *body) {
    for (const Inst *inst = body->first; inst; inst = inst->next)
        if (inst->nregions) return false;
    return true;
}

/* ... and for C, derivatives in a loop whose objects, such as matrices, are variables once they are a part of
 * it: LLVM sees that, gcc reads and writes them in memory. */
static bool is_split_by(const Inst *call) {
    const Func *callee = call->callee;
    bool is_own = func_is_derivative(callee) && !(callee->flags & FUNC_EXPORT), has_objects = false;
    if (!is_own || inst_loops_around(call) == 0 || !is_straight(callee->body)) return false;
    for (int i = 0; i < call->nargs; i++) {
        if (!(callee->params[i].flags & PARAM_BY_ADDRESS)) continue;
        if (!opt_is_split_in_caller(call, i)) return false;
        has_objects = true;
    }
    return has_objects && region_calls(call->func->body, callee) == 1 &&
           region_size(callee->body) <= MOST_TOLD;
}

static bool has_parts(void *user, const Func *callee, const Inst *call) {
    return takes_apart(user, callee, call) || is_told(call) ||
           (call->func->module->keeps_order && is_split_by(call));
}

bool opt_inline_parts(Func *func) {
    return opt_inline(func, (InlinePolicy){.max_size = INT_MAX, .may = has_parts, .any_form = true});
}

/* ---- loops around calls */

enum {
    MOST_IN_LOOP = 600,
    MOST_STRAIGHT = 1200,
    MOST_WITH_LOOPS = 250,
    MOST_GROWN = 1000,
    MOST_LOOKED_AT = 16
}; /* instructions: of what is called, without branches, with loops of its own, of where it is called */

typedef struct Look {
    int left; /* functions that are still looked into */
    bool loops;
    bool reads; /* or writes elements of buffers, itself or by what it calls */
} Look;

static void look_into(void *user, Inst *inst) {
    Look *look = user;
    look->loops |= inst->op == OP_loop && !opt_is_written_out_in_c(inst);
    look->reads |= inst->op == OP_buffer_elem;
    if (inst->op != OP_call || look->reads || !inst->callee->body || look->left == 0) return;
    Look inside = {.left = look->left - 1};
    region_walk(inst->callee->body, look_into, &inside);
    look->reads = inside.reads;
    look->left = inside.left;
}

static bool is_for_nest(void *user, const Func *callee, const Inst *call) {
    Look inside = {.left = MOST_LOOKED_AT};
    Region *around = call->func->body;
    int size = region_size(callee->body);
    (void)user;
    if (inst_loops_around(call) == 0 || size > (is_straight(callee->body) ? MOST_STRAIGHT : MOST_IN_LOOP))
        return false;
    region_walk(callee->body, look_into, &inside);
    if (!inside.reads || (inside.loops && size > MOST_WITH_LOOPS)) return false;
    return region_calls(around, callee) == 1 && region_size(around) <= MOST_GROWN;
}

bool opt_is_inlined_in_loop(const Inst *call) {
    return call->callee->body && is_for_nest(NULL, call->callee, call);
}

bool opt_inline_in_loops(Func *func) {
    return opt_inline(func, (InlinePolicy){.max_size = MOST_STRAIGHT, .may = is_for_nest, .any_form = true});
}
