/* Free to normal form: no break, continue or early return.
 *
 * A variable `state` tells which exit is under way, 0 being none. An exit sets it; what may follow an exit is
 * guarded by state == 0; a loop that may be left early tests it before its condition, in an `if`, since the
 * condition must not be evaluated after a break: it could fail to end. Where the target of an exit is
 * reached, state goes back to 0. Before a loop and at the head of its body state is set to 0 once more: so it
 * is, and now every pass can see it. A loop with only `continue` inside keeps its condition as it is, and so
 * its trip count.
 *
 * Values that a break carries, and the results of early returns, go through variables. */
#include "opt.h"

typedef VEC(int) Codes;

typedef struct Exits {
    Arena *scratch;
    Module *module;
    Func *func;
    Val *state;
    Val **results; /* variables for the function's results, if it returns early */
    Map numbers;   /* target Inst -> number + 1 */
    Map values;    /* target Inst -> ValVec of variables */
    int ntargets;
    int loops; /* around what is rewritten */
    bool returns_early;
    bool cut; /* some values are used where they cannot be seen */
} Exits;

enum { RETURN_CODE = 1 };

/* ---- sets of exits */

static bool has_code(const Codes *codes, int code) {
    for (int i = 0; i < codes->count; i++)
        if (codes->at[i] == code) return true;
    return false;
}

static void add_code(Exits *x, Codes *codes, int code) {
    if (!has_code(codes, code)) vec_push(x->scratch, codes, code);
}

static void add_codes(Exits *x, Codes *codes, const Codes *more, int except) {
    for (int i = 0; i < more->count; i++)
        if (more->at[i] != except) add_code(x, codes, more->at[i]);
}

static int number_of(Exits *x, const Inst *target) {
    void *known = map_get(&x->numbers, PTR_KEY(target));
    if (known) return (int)(uintptr_t)known;
    map_put(x->scratch, &x->numbers, PTR_KEY(target), (void *)(uintptr_t)++x->ntargets);
    return x->ntargets;
}

static int break_code(Exits *x, const Inst *target) { return 2 * number_of(x, target); }
static int continue_code(Exits *x, const Inst *target) { return 2 * number_of(x, target) + 1; }

/* ---- building */

static Val *code_value(Exits *x, int code) {
    return ir_const_int(x->module, type_basic(x->module->types, TYPE_int), code);
}

static void set_state(Exits *x, Builder *b, int code) { build_store(b, x->state, code_value(x, code)); }

static Val *state_is(Exits *x, Builder *b, int code) {
    return build_binary(b, OP_eq, build_load(b, x->state), code_value(x, code));
}

/* if (state == code) state = 0, at the builder's place; there is no need to ask where it is the only exit
 * that may be under way. */
static void consume(Exits *x, Builder *b, int code, bool only) {
    if (only) {
        set_state(x, b, 0);
        return;
    }
    Inst *test = build_if(b, state_is(x, b, code), NULL, 0);
    Builder then = build_at_end(test->regions[0]), other = build_at_end(test->regions[1]);
    set_state(x, &then, 0);
    build_yield(&then, NULL, 0);
    build_yield(&other, NULL, 0);
}

static void move_to_end(Region *region, Inst *first) {
    for (Inst *inst = first, *next; inst; inst = next) {
        next = inst->next;
        inst_remove(inst);
        inst_append(region, inst);
    }
}

static Inst *end_of(const Region *region) { return region->last; }

/* ---- values of control flow that jumps cut through: kept in variables */

static bool contains_jump(const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (op_has(inst->op, OP_LEAVES) || inst->op == OP_unreachable) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (contains_jump(inst->regions[i])) return true;
    }
    return false;
}

static ValVec *vars_for(Exits *x, Inst *inst) {
    ValVec *vars = arena_new(x->scratch, ValVec);
    Builder b = build_before(inst);
    for (int i = 0; i < inst->nresults; i++)
        vec_push(x->scratch, vars, build_var(&b, inst->results[i]->type, inst->results[i]->name, false));
    map_put(x->scratch, &x->values, PTR_KEY(inst), vars);
    return vars;
}

static void store_all(Builder *b, const ValVec *vars, Inst *jump) {
    for (int i = 0; i < vars->count; i++) build_store(b, vars->at[i], ir_resolve(jump->args[i]));
    jump->nargs = 0;
}

/* continue carries values to the step, break to the end: both are the variables now. */
static void store_jumps(const ValVec *vars, Region *region, const Inst *target) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if ((inst->op == OP_break || inst->op == OP_continue) && inst->target == target && inst->nargs) {
            Builder b = build_before(inst);
            store_all(&b, vars, inst);
        }
        for (int i = 0; i < inst->nregions; i++) store_jumps(vars, inst->regions[i], target);
    }
}

static void load_results(Inst *inst, const ValVec *vars) {
    Builder b = build_after(inst);
    for (int i = 0; i < inst->nresults; i++) inst->results[i]->forward = build_load(&b, vars->at[i]);
    inst->nresults = 0;
}

static void demote_loop(Exits *x, Inst *loop) {
    ValVec *vars = vars_for(x, loop);
    Builder b = build_before(loop);
    for (int i = 0; i < vars->count; i++) build_store(&b, vars->at[i], ir_resolve(loop->args[i]));
    loop->nargs = 0;
    for (int k = 0; k < loop->nregions; k++) {
        Region *region = loop->regions[k];
        Builder head = build_before(region->first);
        for (int i = 0; i < region->nparams; i++) region->params[i]->forward = build_load(&head, vars->at[i]);
        region->nparams = 0;
        store_jumps(vars, region, loop);
        Inst *yield = end_of(region);
        if (k == 0 || yield->op != OP_yield) continue;
        Builder end = build_before(yield);
        store_all(&end, vars, yield);
    }
    load_results(loop, vars);
    map_put(x->scratch, &x->values, PTR_KEY(loop), NULL);
}

static void demote_branches(Exits *x, Inst *inst) {
    ValVec *vars = vars_for(x, inst);
    for (int k = 0; k < inst->nregions; k++) {
        Inst *yield = end_of(inst->regions[k]);
        if (yield->op != OP_yield) continue;
        Builder end = build_before(yield);
        store_all(&end, vars, yield);
    }
    load_results(inst, vars);
}

static void demote(Exits *x, Inst *inst) {
    bool jumps = inst->nresults && inst->op == OP_loop && inst->nregions > 2; /* to the step */
    for (int i = 0; i < inst->nregions && inst->nresults; i++) jumps |= contains_jump(inst->regions[i]);
    if (!jumps) return;
    if (inst->op == OP_loop) demote_loop(x, inst);
    else if (inst->op == OP_if || inst->op == OP_switch) demote_branches(x, inst);
}

/* ---- jumps, loops and blocks */

static Codes lower_region(Exits *x, Region *region);

static void store_values(Exits *x, Builder *b, const Inst *target, Inst *jump) {
    ValVec *vars = map_get(&x->values, PTR_KEY(target));
    for (int i = 0; vars && i < vars->count; i++) build_store(b, vars->at[i], jump->args[i]);
}

/* A jump becomes a store; the region then ends like any other. */
static int lower_jump(Exits *x, Inst *jump) {
    Region *region = jump->parent;
    Builder b = build_before(jump);
    b.loc = jump->loc;
    int code = RETURN_CODE;
    if (jump->op == OP_return) {
        for (int i = 0; i < jump->nargs; i++) build_store(&b, x->results[i], jump->args[i]);
    } else {
        if (jump->op == OP_break) store_values(x, &b, jump->target, jump);
        code = jump->op == OP_break ? break_code(x, jump->target) : continue_code(x, jump->target);
    }
    set_state(x, &b, code);
    inst_remove(jump);
    Builder end = build_at_end(region);
    build_yield(&end, NULL, 0);
    return code;
}

static bool targets(const Region *region, Op op, const Inst *target) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == op && inst->target == target) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (targets(inst->regions[i], op, target)) return true;
    }
    return false;
}

static void guard_condition(Exits *x, Region *cond) {
    Inst *yield = end_of(cond);
    Val *value = ir_resolve(yield->args[0]);
    const Type *flag = type_basic(x->module->types, TYPE_bool);
    Inst *first = cond->first;
    Builder b = build_before(first);
    Val *running = state_is(x, &b, 0);
    Inst *test = build_if(&b, running, &flag, 1);
    inst_remove(yield);
    move_to_end(test->regions[0], first == yield ? NULL : first);
    Builder then = build_at_end(test->regions[0]), other = build_at_end(test->regions[1]),
            end = build_at_end(cond);
    build_yield(&then, &value, 1);
    Val *no = ir_const_int(x->module, flag, 0), *go = inst_result(test);
    build_yield(&other, &no, 1);
    build_yield(&end, &go, 1);
}

/* The step, run after the body unless that is left for good. */
static void append_step(Exits *x, Region *body, Region *step, bool guarded) {
    if (!step) return;
    Inst *yield = end_of(body), *step_yield = end_of(step);
    if (!guarded) {
        inst_remove(yield);
        move_to_end(body, step->first);
        return;
    }
    inst_remove(step_yield);
    if (!step->first) return;
    Builder b = build_before(yield);
    Inst *test = build_if(&b, state_is(x, &b, 0), NULL, 0);
    move_to_end(test->regions[0], step->first);
    Builder then = build_at_end(test->regions[0]), other = build_at_end(test->regions[1]);
    build_yield(&then, NULL, 0);
    build_yield(&other, NULL, 0);
}

/* Does a jump lead out of the region, or does it never end? */
static bool is_left(const Region *region, const Region *part) {
    for (const Inst *inst = part->first; inst; inst = inst->next) {
        if (inst->op == OP_return) return true;
        bool jumps = inst->op == OP_break || inst->op == OP_continue;
        const Region *at = jumps ? inst->target->parent : region;
        while (at != region && at->owner) at = at->owner->parent;
        if (at != region) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (is_left(region, inst->regions[i])) return true;
    }
    return region->last->op == OP_unreachable;
}

/* A condition that is left otherwise than by its value becomes the head of the body. */
static void move_condition(Exits *x, Inst *loop) {
    Region *cond = loop->regions[0], *body = loop->regions[1];
    Inst *yield = end_of(cond), *rest = body->first;
    bool goes_on = yield->op == OP_yield;
    if (goes_on) inst_remove(yield);
    for (Inst *inst = cond->first, *next; inst; inst = next) {
        next = inst->next;
        inst_remove(inst);
        inst_insert_before(rest, inst);
    }
    for (Inst *next; rest && !goes_on; rest = next) {
        next = rest->next;
        inst_remove(rest);
    }
    if (goes_on) {
        Builder b = build_before(rest);
        Inst *test = build_if(&b, ir_resolve(yield->args[0]), NULL, 0);
        Builder then = build_at_end(test->regions[0]), other = build_at_end(test->regions[1]);
        build_yield(&then, NULL, 0);
        build_break(&other, loop, NULL, 0);
    }
    Builder end = build_at_end(cond);
    Val *always = ir_const_int(x->module, type_basic(x->module->types, TYPE_bool), 1);
    build_yield(&end, &always, 1);
}

static Codes lower_loop(Exits *x, Inst *loop) {
    x->loops++;
    Builder before = build_before(loop);
    set_state(x, &before, 0);
    if (is_left(loop->regions[0], loop->regions[0])) move_condition(x, loop);
    Region *cond = loop->regions[0], *body = loop->regions[1],
           *step = loop->nregions > 2 ? loop->regions[2] : NULL;
    bool continues = targets(body, OP_continue, loop);
    bool plain_end = end_of(body)->op == OP_yield;
    lower_region(x, cond); /* calls that were inlined */
    Codes exits = {0}, leaves = {0};
    if (!continues && plain_end) append_step(x, body, step, false); /* joins the last guard */
    else if (step && continues) exits = lower_region(x, step);
    Codes from_body = lower_region(x, body);
    add_codes(x, &exits, &from_body, 0);
    int next = continues ? continue_code(x, loop) : 0;
    add_codes(x, &leaves, &exits, next);
    if (continues) {
        Builder b = build_before(end_of(body));
        consume(x, &b, next, leaves.count == 0);
        append_step(x, body, step, leaves.count > 0);
    }
    if (exits.count) {
        Builder b = build_before(body->first);
        set_state(x, &b, 0);
    }
    if (leaves.count) guard_condition(x, cond);
    loop->nregions = 2;
    x->loops--;
    Codes outer = {0};
    int own = break_code(x, loop);
    add_codes(x, &outer, &leaves, own);
    if (has_code(&leaves, own)) {
        Builder b = build_after(loop);
        consume(x, &b, own, outer.count == 0);
    }
    return outer;
}

/* What a block yields when it is not left by break, if it has results: stored before the guards are made. */
static void store_block_yield(Exits *x, Inst *block) {
    Inst *yield = end_of(block->regions[0]);
    if (!block->nresults || yield->op != OP_yield) return;
    Builder b = build_before(yield);
    store_values(x, &b, block, yield);
    yield->nargs = 0;
}

/* A block dissolves into the region around it. */
static Codes lower_block(Exits *x, Inst *block) {
    Region *inside = block->regions[0];
    ValVec *vars = NULL;
    if (block->nresults) {
        vars = arena_new(x->scratch, ValVec);
        Builder b = build_before(block);
        for (int i = 0; i < block->nresults; i++)
            vec_push(x->scratch, vars,
                     build_var(&b, block->results[i]->type, block->results[i]->name, false));
        map_put(x->scratch, &x->values, PTR_KEY(block), vars);
    }
    store_block_yield(x, block);
    Codes exits = lower_region(x, inside), outer = {0};
    Inst *yield = end_of(inside);
    for (Inst *inst = inside->first, *next; inst && inst != yield; inst = next) {
        next = inst->next;
        inst_remove(inst);
        inst_insert_before(block, inst);
    }
    Builder b = build_before(block);
    int own = break_code(x, block);
    bool broken = has_code(&exits, own);
    add_codes(x, &outer, &exits, own);
    if (broken) consume(x, &b, own, outer.count == 0);
    for (int i = 0; i < block->nresults; i++) block->results[i]->forward = build_load(&b, vars->at[i]);
    inst_remove(block);
    return outer;
}

static bool is_jump(const Exits *x, const Inst *inst) {
    if (inst->op == OP_break || inst->op == OP_continue) return true;
    return inst->op == OP_return && x->returns_early;
}

/* ---- guards: what may follow an exit, under the condition that none is under way
 *
 * Behind an `if` or `switch` of which all ways but one have left, that way goes on, and there is nothing to ask. In loops one asks nevertheless, as the loop does: what is left of a round would be
 * done on either way, and numbers chosen, where now it is not done in the last round (a gradient of sphere tracing would take 1.06 to 1.12 times as long). Guards stand in one another, so that what came about in one is seen in
 * the next; of very many, some stand behind the others, and opt_reach_values makes up for that. */

enum { MAX_GUARDS = 16 }; /* in one another */

typedef struct Guards {
    Region *outer, *at; /* the region that is rewritten; where its instructions go */
    int depth;
} Guards;

/* The only region of an instruction that comes to its end; NULL: there is another, or none. */
typedef struct Way {
    Region *region;
    bool is_left; /* here and there */
} Way;

static void end_guards(Guards *g) {
    while (g->at != g->outer) {
        Builder b = build_at_end(g->at);
        if (!g->at->last || !op_has(g->at->last->op, OP_ENDS)) build_yield(&b, NULL, 0);
        g->at = g->at->owner->parent;
    }
    g->depth = 0;
}

static Way way_on(const Inst *inst) {
    Way way = {0};
    int ways = 0;
    for (int i = 0; i < inst->nregions && (inst->op == OP_if || inst->op == OP_switch); i++) {
        if (end_of(inst->regions[i])->op != OP_yield) continue;
        way.region = inst->regions[i];
        ways++;
    }
    return ways == 1 ? way : (Way){0};
}

/* What the instruction has given so far comes with the rest. */
static void follow(Guards *g, const Way *way) {
    const Inst *owner = way->region->owner;
    inst_remove(end_of(way->region));
    move_to_end(way->region, owner->next);
    g->at = way->region;
    g->depth++;
}

/* `way`: by which alone one comes there. */
static void begin_guard(Exits *x, Guards *g, const Way *way) {
    if (g->depth == MAX_GUARDS) {
        end_guards(g);
        x->cut = true;
    } else if (way->region && x->loops == 0) {
        follow(g, way);
        if (!way->is_left) return;
    }
    Builder b = build_at_end(g->at);
    Inst *test = build_if(&b, state_is(x, &b, 0), NULL, 0);
    Builder other = build_at_end(test->regions[1]);
    build_yield(&other, NULL, 0);
    g->at = test->regions[0];
    g->depth++;
}

/* ---- regions */

/* An instruction with regions, the last one so far of its own. */
static Codes lower_owner(Exits *x, Inst *inst, Way *way) {
    if (inst->op == OP_loop) return lower_loop(x, inst);
    if (inst->op == OP_block) return lower_block(x, inst);
    Codes exits = {0};
    for (int i = 0; i < inst->nregions; i++) {
        Codes inner = lower_region(x, inst->regions[i]);
        if (inst->regions[i] == way->region) way->is_left = inner.count > 0;
        add_codes(x, &exits, &inner, 0);
    }
    return exits;
}

/* The exits that are under way behind it. */
static Codes lower_inst(Exits *x, Inst *inst, Way *way) {
    Codes exits = {0};
    inst_resolve(inst);
    if (is_jump(x, inst)) {
        add_code(x, &exits, lower_jump(x, inst));
        return exits;
    }
    if (inst->op == OP_unreachable) { /* both sides of an `if` before it have left */
        Builder b = build_at_end(inst->parent);
        inst_remove(inst);
        build_yield(&b, NULL, 0);
        return exits;
    }
    demote(x, inst);
    return inst->nregions ? lower_owner(x, inst, way) : exits;
}

/* Its instructions are taken out, and come back one by one, under guards where they need them. */
static Codes lower_region(Exits *x, Region *region) {
    Codes exits = {0};
    Guards g = {.outer = region, .at = region};
    Inst *inst = region->first, *end = end_of(region);
    bool leaves = is_jump(x, end) || end->op == OP_unreachable, guard = false;
    Way way = {0};
    region->first = region->last = NULL;
    for (Inst *next; inst; inst = next) {
        next = inst->next;
        inst->prev = inst->next = NULL;
        inst->parent = NULL;
        if (inst == end && !leaves) end_guards(&g);
        else if (guard) begin_guard(x, &g, &way);
        inst_append(g.at, inst);
        way = way_on(inst);
        Codes here = lower_inst(x, inst, &way);
        guard = here.count > 0;
        add_codes(x, &exits, &here, 0);
    }
    if (g.at != region) {
        end_guards(&g);
        Builder b = build_at_end(region);
        build_yield(&b, NULL, 0);
    }
    return exits;
}

/* ---- the function */

typedef struct Survey {
    int returns, blocks, jumps;
} Survey;

static void survey(void *user, Inst *inst) {
    Survey *found = user;
    found->returns += inst->op == OP_return;
    found->blocks += inst->op == OP_block || (inst->op == OP_loop && inst->nregions > 2);
    found->jumps += inst->op == OP_break || inst->op == OP_continue || inst->op == OP_unreachable;
}

static void make_results(Exits *x, Builder *b) {
    Func *func = x->func;
    x->results = arena_array(x->scratch, Val *, func->nresults ? func->nresults : 1);
    for (int i = 0; i < func->nresults; i++)
        x->results[i] = build_var(b, func->results[i], name_from(x->module->names, "result"), false);
}

static void return_results(Exits *x) {
    Func *func = x->func;
    Inst *end = func->body->last;
    if (end->op == OP_yield || end->op == OP_unreachable) inst_remove(end);
    Builder b = build_at_end(func->body);
    Val **values = arena_array(x->scratch, Val *, func->nresults ? func->nresults : 1);
    for (int i = 0; i < func->nresults; i++) values[i] = build_load(&b, x->results[i]);
    build_return(&b, values, func->nresults);
}

bool opt_lower_exits(Func *func) {
    Module *module = func->module;
    Survey found = {0};
    if (func->flags & FUNC_NORMAL) return false;
    func->flags |= FUNC_NORMAL;
    region_walk(func->body, survey, &found);
    bool early = found.returns > 1 || func->body->last->op != OP_return;
    if (!early && !found.blocks && !found.jumps) return true;
    Exits x = {
        .scratch = arena_scratch(module->arena), .module = module, .func = func, .returns_early = early};
    Builder b = func->body->first ? build_before(func->body->first) : build_at_end(func->body);
    x.state = build_var(&b, type_basic(module->types, TYPE_int), name_from(module->names, "state"), false);
    if (early) make_results(&x, &b);
    lower_region(&x, func->body);
    if (early) return_results(&x);
    ir_resolve_func(func);
    if (x.cut) opt_reach_values(func, x.scratch);
    arena_free(x.scratch);
    return true;
}
