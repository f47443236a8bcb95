/* Folding again, now that operands may be known, and control flow that is constant or trivial.
 *
 * One walk in the order of execution. Operands are resolved before an instruction is looked at, so that
 * whatever was found earlier counts at once. Inside the regions of an `if` its condition is known, and so are
 * the parts of a conjunction that holds.
 *
 *   if, switch   with a known condition: the region takes their place; results that are one value on every way are
 *                that value; small `if`s that only choose become selects;
 *   loop         with a condition that fails at once: gone; carried values that never change are what they start as;
 *                a body that never comes to its end runs once and is a block; continues become plain control flow,
 *                and without them the step joins the body;
 *   block        jumps out of it become plain control flow, and what has no jumps is no block;
 *   code that cannot be reached is cut off.
 *
 * An `if` may become a select only if nothing moves out of it that a derivative could turn into inf * 0:
 * integers, comparisons, and floating operations with bounded partial derivatives. */
#include "opt.h"

#define MAX_SELECT_COST    8
#define MAX_CONDITION_SIZE 32
#define MAX_ROUNDS         3 /* what one round moves, the next may simplify */

enum { UNKNOWN, KNOWN_FALSE, KNOWN_TRUE };

typedef struct Fact {
    uint32_t id;
    uint8_t old;
} Fact;

typedef struct Simplify {
    Func *func;
    Arena *scratch;
    uint8_t *known; /* by id, of bool values */
    uint32_t nids;
    VEC(Fact) log;
    bool changed;
} Simplify;

static Module *module_of(const Simplify *s) { return s->func->module; }

/* ---- what is known where */

static void learn(Simplify *s, const Val *condition, bool holds) {
    if (condition->kind == VAL_const || condition->id >= s->nids) return;
    Fact fact = {condition->id, s->known[condition->id]};
    vec_push(s->scratch, &s->log, fact);
    s->known[condition->id] = holds ? KNOWN_TRUE : KNOWN_FALSE;
    if (condition->kind != VAL_inst) return;
    const Inst *inst = condition->inst;
    if (inst->op == OP_not) learn(s, ir_resolve(inst->args[0]), !holds);
    if (inst->op == (holds ? OP_and : OP_or))
        for (int i = 0; i < 2; i++) learn(s, ir_resolve(inst->args[i]), holds);
}

static void forget_to(Simplify *s, int mark) {
    while (s->log.count > mark) {
        Fact fact = vec_pop(&s->log);
        s->known[fact.id] = fact.old;
    }
}

static Val *resolve(Simplify *s, Val *v) {
    v = ir_resolve(v);
    if (v->kind == VAL_const || v->id >= s->nids || s->known[v->id] == UNKNOWN) return v;
    s->changed = true;
    return ir_const_int(module_of(s), v->type, s->known[v->id] == KNOWN_TRUE);
}

/* Regions know how deep they are, once the walk has entered them. */
static intptr_t depth_of(const Region *region) { return (intptr_t)region->note; }

static void enter(Region *region) {
    intptr_t depth = region->owner ? depth_of(region->owner->parent) + 1 : 0;
    region->note = (void *)depth;
}

static bool is_from_outside(const Val *v, const Inst *inst) {
    if (v->kind == VAL_const) return true;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    return depth_of(region) <= depth_of(inst->parent);
}

/* ---- moving code */

static void replace(Val *old, Val *with) {
    with = ir_resolve(with);
    if (!with->name && with->kind != VAL_const) with->name = old->name;
    old->forward = with;
}

/* In normal form every region comes to its end, as far as anyone can see. */
static void cut_after(Simplify *s, Inst *inst) {
    if (s->func->flags & FUNC_NORMAL) return;
    if (inst->next && inst->next->op == OP_unreachable) return;
    while (inst->next) inst_remove(inst->next);
    Builder b = build_at_end(inst->parent);
    b.loc = inst->loc;
    build_unreachable(&b);
    s->changed = true;
}

/* Moves all but the end of a region before `at`. */
static void move_before(Inst *at, Region *region) {
    while (region->first != region->last) {
        Inst *inst = region->first;
        inst_remove(inst);
        inst_insert_before(at, inst);
    }
}

/* The region takes the place of its owner. Where to go on: `again`: at its first instruction. */
static Inst *take_region(Simplify *s, Inst *inst, Region *region, bool again) {
    Inst *before = inst->prev, *end = region->last, *next;
    move_before(inst, region);
    inst_remove(end);
    if (end->op == OP_yield) {
        next = inst->next;
        for (int i = 0; i < inst->nresults; i++) replace(inst->results[i], end->args[i]);
    } else {
        while (inst->next) inst_remove(inst->next);
        inst_append(inst->parent, end);
        next = end;
    }
    if (again) next = before ? before->next : inst->parent->first;
    if (next == inst) next = inst->next;
    inst_remove(inst);
    s->changed = true;
    return next;
}

static bool is_only(const Region *region, Op op) {
    return region->first == region->last && region->first->op == op;
}

/* ---- if and switch */

static void simplify_region(Simplify *s, Region *region);

/* May it be computed where it was not before? Not if its derivative could be infinite there. */
static bool can_move_out(const Inst *inst) {
    if (!op_has(inst->op, OP_PURE) || inst->nresults != 1 || op_info[inst->op].cost > 2) return false;
    return !op_has(inst->op, OP_STEEP | OP_PRODUCT) || !type_is_float(type_element(inst->results[0]->type));
}

/* The cost of computing all of it, or a number too large. */
static int cost_of(const Region *region) {
    int cost = 0;
    for (const Inst *inst = region->first; inst != region->last; inst = inst->next) {
        if (!can_move_out(inst)) return MAX_SELECT_COST + 1;
        cost += op_info[inst->op].cost;
        if (cost > MAX_SELECT_COST) break;
    }
    return region->last->op == OP_yield ? cost : MAX_SELECT_COST + 1;
}

static bool can_be_selected(const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) {
        const Type *type = inst->results[i]->type;
        if (!type_is_scalar(type) && type->kind != TYPE_vector && type->kind != TYPE_pointer) return false;
    }
    return cost_of(inst->regions[0]) + cost_of(inst->regions[1]) + inst->nresults <= MAX_SELECT_COST;
}

static Inst *make_selects(Simplify *s, Inst *inst) {
    Inst *yields[] = {inst->regions[0]->last, inst->regions[1]->last}, *next = inst->next;
    for (int i = 0; i < 2; i++) move_before(inst, inst->regions[i]);
    Builder b = build_before(inst);
    for (int i = 0; i < inst->nresults; i++)
        replace(inst->results[i], build_select(&b, inst->args[0], yields[0]->args[i], yields[1]->args[i]));
    inst_remove(inst);
    s->changed = true;
    return next;
}

/* A result that is the same value from outside on every way. */
static void join_results(Simplify *s, Inst *inst) {
    int kept = 0;
    for (int i = 0; i < inst->nresults; i++) {
        Val *common = NULL;
        bool same = true;
        for (int r = 0; r < inst->nregions; r++) {
            const Inst *end = inst->regions[r]->last;
            if (end->op != OP_yield) continue;
            Val *value = ir_resolve(end->args[i]);
            if (!common) common = value;
            else same &= val_is_same(common, value);
        }
        bool joins = common && same && is_from_outside(common, inst);
        if (joins) replace(inst->results[i], common);
        for (int r = 0; r < inst->nregions && !joins; r++) {
            Inst *end = inst->regions[r]->last;
            if (end->op == OP_yield) end->args[kept] = end->args[i];
        }
        if (joins) continue;
        inst->results[i]->index = kept;
        inst->results[kept++] = inst->results[i];
    }
    if (kept == inst->nresults) return;
    inst->nresults = kept;
    for (int r = 0; r < inst->nregions; r++)
        if (inst->regions[r]->last->op == OP_yield) inst->regions[r]->last->nargs = kept;
    s->changed = true;
}

/* The only region that can be reached, or NULL. */
static Region *only_reachable(const Inst *inst) {
    Region *found = NULL;
    for (int i = 0; i < inst->nregions; i++) {
        if (is_only(inst->regions[i], OP_unreachable)) continue;
        if (found) return NULL;
        found = inst->regions[i];
    }
    return found;
}

static Inst *tidy_branches(Simplify *s, Inst *inst) {
    Region *only = only_reachable(inst);
    if (only) return take_region(s, inst, only, false);
    if (inst->op == OP_if && can_be_selected(inst)) return make_selects(s, inst);
    join_results(s, inst);
    bool goes_on = false, does_nothing = inst->nresults == 0;
    for (int i = 0; i < inst->nregions; i++) {
        goes_on |= inst->regions[i]->last->op == OP_yield;
        does_nothing &= is_only(inst->regions[i], OP_yield);
    }
    if (!goes_on) cut_after(s, inst);
    Inst *next = inst->next;
    if (does_nothing) {
        inst_remove(inst);
        s->changed = true;
    }
    return next;
}

static Inst *simplify_if(Simplify *s, Inst *inst) {
    int64_t value;
    Val *condition = inst->args[0];
    if (val_is_int(condition, &value)) return take_region(s, inst, inst->regions[value ? 0 : 1], true);
    if (condition->kind == VAL_inst && condition->inst->op == OP_not) {
        Region *other = inst->regions[0];
        inst->args[0] = condition = ir_resolve(condition->inst->args[0]);
        inst->regions[0] = inst->regions[1];
        inst->regions[1] = other;
        s->changed = true;
    }
    for (int i = 0; i < 2; i++) {
        int mark = s->log.count;
        learn(s, condition, i == 0);
        simplify_region(s, inst->regions[i]);
        forget_to(s, mark);
    }
    return tidy_branches(s, inst);
}

static int find_case(const Inst *inst, int64_t value) {
    for (int i = 0; i < inst->ncases; i++)
        for (int j = 0; j < inst->cases[i].nvalues; j++)
            if (inst->cases[i].values[j] == value) return i;
    return inst->ncases;
}

static Inst *simplify_switch(Simplify *s, Inst *inst) {
    int64_t value;
    if (val_is_int(inst->args[0], &value))
        return take_region(s, inst, inst->regions[find_case(inst, value)], true);
    if (inst->ncases == 0) return take_region(s, inst, inst->regions[0], true);
    if (inst->ncases == 1 && inst->cases[0].nvalues == 1) {
        Builder b = build_before(inst);
        Val *label = ir_const_int(module_of(s), inst->args[0]->type, inst->cases[0].values[0]);
        inst->args[0] = build_binary(&b, OP_eq, inst->args[0], label);
        inst->op = OP_if;
        s->changed = true;
        return simplify_if(s, inst);
    }
    for (int i = 0; i < inst->nregions; i++) simplify_region(s, inst->regions[i]);
    return tidy_branches(s, inst);
}

/* ---- loops */

typedef struct Jumps {
    Arena *arena;
    const Inst *target;
    InstVec found;
    int breaks, continues;
} Jumps;

static void find_jump(void *user, Inst *inst) {
    Jumps *jumps = user;
    if ((inst->op != OP_break && inst->op != OP_continue) || inst->target != jumps->target) return;
    jumps->breaks += inst->op == OP_break;
    jumps->continues += inst->op == OP_continue;
    vec_push(jumps->arena, &jumps->found, inst);
}

static Jumps jumps_to(Simplify *s, Inst *target) {
    Jumps jumps = {.arena = s->scratch, .target = target};
    if (!(s->func->flags & FUNC_NORMAL))
        region_walk(target->regions[target->op == OP_loop], find_jump, &jumps);
    return jumps;
}

/* The value that v has in the first test of the condition, if it is a constant. */
static Val *value_at_entry(const Inst *loop, Val *v) {
    v = ir_resolve(v);
    if (v->kind == VAL_param && v->region == loop->regions[0]) v = ir_resolve(loop->args[v->index]);
    if (v->kind == VAL_inst && v->inst->parent == loop->regions[0]) v = v->inst->note;
    return v;
}

static bool fails_at_entry(Simplify *s, const Inst *loop) {
    const Region *condition = loop->regions[0];
    int size = 0;
    for (Inst *inst = condition->first; inst != condition->last; inst = inst->next) {
        Val *args[3];
        inst->note = NULL;
        if (!op_has(inst->op, OP_PURE) || inst->nargs > 3 || ++size > MAX_CONDITION_SIZE) return false;
        bool all = true;
        for (int i = 0; i < inst->nargs; i++) all &= (args[i] = value_at_entry(loop, inst->args[i])) != NULL;
        if (all) inst->note = ir_fold(module_of(s), (Op)inst->op, inst->results[0]->type, args, inst->nargs);
    }
    Val *first = condition->last->op == OP_yield ? value_at_entry(loop, condition->last->args[0]) : NULL;
    return first && val_is_zero(first);
}

static Inst *remove_loop(Simplify *s, Inst *loop) {
    Inst *next = loop->next;
    for (int i = 0; i < loop->nresults; i++) replace(loop->results[i], loop->args[i]);
    inst_remove(loop);
    s->changed = true;
    return next;
}

/* The condition is false, but it may do something: it runs once. */
static Inst *keep_condition(Simplify *s, Inst *loop) {
    Region *condition = loop->regions[0];
    for (int i = 0; i < condition->nparams; i++) replace(condition->params[i], loop->args[i]);
    move_before(loop, condition);
    return remove_loop(s, loop);
}

static bool keeps(const Inst *end, int index, const Val *param, const Val *initial) {
    const Val *value = ir_resolve(end->args[index]);
    return value == param || val_is_same(value, initial);
}

static bool never_changes(const Inst *loop, const Jumps *jumps, int index) {
    const Val *initial = ir_resolve(loop->args[index]);
    for (int r = 1; r < loop->nregions; r++) {
        const Region *region = loop->regions[r];
        if (region->last->op == OP_yield && !keeps(region->last, index, region->params[index], initial))
            return false;
    }
    for (int i = 0; i < jumps->found.count; i++)
        if (!keeps(jumps->found.at[i], index, loop->regions[1]->params[index], initial)) return false;
    return true;
}

static void drop_place(Val **vals, int *count, int index) {
    --*count;
    for (int i = index; i < *count; i++) vals[i] = vals[i + 1];
}

static void drop_carried(Inst *loop, const Jumps *jumps, int index) {
    for (int r = 0; r < loop->nregions; r++) {
        Region *region = loop->regions[r];
        replace(region->params[index], loop->args[index]);
        drop_place(region->params, &region->nparams, index);
        for (int i = index; i < region->nparams; i++) region->params[i]->index = i;
        if (r > 0 && region->last->op == OP_yield)
            drop_place(region->last->args, &region->last->nargs, index);
    }
    for (int i = 0; i < jumps->found.count; i++)
        drop_place(jumps->found.at[i]->args, &jumps->found.at[i]->nargs, index);
    replace(loop->results[index], loop->args[index]);
    drop_place(loop->results, &loop->nresults, index);
    for (int i = index; i < loop->nresults; i++) loop->results[i]->index = i;
    drop_place(loop->args, &loop->nargs, index);
}

static void drop_unchanging(Simplify *s, Inst *loop, const Jumps *jumps) {
    for (int i = loop->nargs - 1; i >= 0; i--) {
        if (!never_changes(loop, jumps, i)) continue;
        drop_carried(loop, jumps, i);
        s->changed = true;
    }
}

/* A body that never comes to its end runs once:
 *   block { condition; if go {} else { break args }; body } */
static Inst *make_block(Simplify *s, Inst *loop, const Jumps *jumps) {
    Region *condition = loop->regions[0], *body = loop->regions[1];
    Builder b = build_before(loop);
    Inst *block = build_block(&b);
    for (int i = 0; i < loop->nresults; i++)
        replace(loop->results[i], inst_add_result(block, loop->results[i]->type, loop->results[i]->name));
    for (int i = 0; i < loop->nargs; i++) {
        replace(condition->params[i], loop->args[i]);
        replace(body->params[i], loop->args[i]);
    }
    Builder in = build_at_end(block->regions[0]);
    in.loc = loop->loc;
    Inst *test = build_if(&in, condition->last->args[0], NULL, 0), *end = body->last;
    move_before(test, condition);
    Builder go = build_at_end(test->regions[0]), stop = build_at_end(test->regions[1]);
    build_yield(&go, NULL, 0);
    build_break(&stop, block, loop->args, loop->nargs);
    inst_remove(end);
    inst_append(block->regions[0], end);
    while (body->first) {
        Inst *inst = body->first;
        inst_remove(inst);
        inst_insert_before(end, inst);
    }
    for (int i = 0; i < jumps->found.count; i++) jumps->found.at[i]->target = block;
    inst_remove(loop);
    s->changed = true;
    return block;
}

/* Without continue the step is the end of the body. */
static void merge_step(Simplify *s, Inst *loop) {
    Region *body = loop->regions[1], *step = loop->regions[2];
    Inst *yield = body->last, *end = step->last;
    loop->nregions = 2;
    s->changed = true;
    if (yield->op != OP_yield) return; /* it never ran */
    for (int i = 0; i < step->nparams; i++) replace(step->params[i], yield->args[i]);
    move_before(yield, step);
    inst_remove(yield);
    inst_remove(end);
    inst_append(body, end);
}

static Inst *simplify_loop(Simplify *s, Inst *loop) {
    if (fails_at_entry(s, loop)) return remove_loop(s, loop);
    Jumps jumps = jumps_to(s, loop);
    drop_unchanging(s, loop, &jumps);
    for (int i = 0; i < loop->nregions; i++) simplify_region(s, loop->regions[i]);
    jumps = jumps_to(s, loop);
    drop_unchanging(s, loop, &jumps);
    const Inst *test = loop->regions[0]->last;
    if (test->op == OP_yield && val_is_zero(ir_resolve(test->args[0]))) return keep_condition(s, loop);
    bool is_free = !(s->func->flags & FUNC_NORMAL), ends = loop->regions[1]->last->op == OP_yield;
    if (is_free && !ends && !jumps.continues && test->op == OP_yield) return make_block(s, loop, &jumps);
    bool no_continue = !jumps.continues;
    if (!no_continue) s->changed |= no_continue = opt_flatten_jumps(loop, OP_continue);
    if (no_continue && loop->nregions == 3) merge_step(s, loop);
    bool endless = test->op != OP_yield || val_is_one(ir_resolve(test->args[0]));
    if (endless && !jumps.breaks) cut_after(s, loop);
    return loop->next;
}

/* ---- blocks */

static Inst *simplify_block(Simplify *s, Inst *block) {
    simplify_region(s, block->regions[0]);
    if (opt_flatten_jumps(block, OP_break)) return take_region(s, block, block->regions[0], false);
    return block->next;
}

/* ---- the walk */

/* A load from a constant global. */
static Val *load_constant(Inst *load) {
    const Type *type = load->results[0]->type;
    bool plain = type_is_scalar(type) || (type->kind == TYPE_vector && type_count(type) <= 4);
    Val *const *data = plain ? ir_constants_at(load->args[0]) : NULL;
    if (!data) return NULL;
    Builder b = build_before(load);
    return type->kind == TYPE_vector ? build_vec(&b, type, data) : data[0];
}

/* Looks at an instruction; where to go on. */
static Inst *simplify_inst(Simplify *s, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) inst->args[i] = resolve(s, inst->args[i]);
    ir_follow_space(inst);
    switch ((Op)inst->op) {
    case OP_if: return simplify_if(s, inst);
    case OP_switch: return simplify_switch(s, inst);
    case OP_loop: return simplify_loop(s, inst);
    case OP_block: return simplify_block(s, inst);
    default: break;
    }
    Inst *next = inst->next;
    if (opt_drop_nowhere(inst)) {
        s->changed = true;
        return next;
    }
    if ((!op_has(inst->op, OP_PURE) && inst->op != OP_load) || inst->nresults != 1) return next;
    Builder b = build_before(inst);
    const Val *first = inst->nargs ? inst->args[0] : NULL;
    Val *simpler = inst->op == OP_load ? load_constant(inst) : build_again(&b, inst);
    if (!simpler) {
        s->changed |= inst->nargs && inst->args[0] != first;
        return next;
    }
    replace(inst->results[0], simpler);
    inst_remove(inst);
    s->changed = true;
    return next;
}

static void simplify_region(Simplify *s, Region *region) {
    enter(region);
    for (Inst *inst = region->first; inst;) inst = simplify_inst(s, inst);
}

static bool simplify_once(Func *func) {
    Simplify s = {.func = func, .scratch = arena_scratch(func->module->arena), .nids = func->nvals};
    s.known = arena_array(s.scratch, uint8_t, s.nids);
    simplify_region(&s, func->body);
    ir_resolve_func(func);
    arena_free(s.scratch);
    return s.changed;
}

bool opt_simplify(Func *func) {
    bool changed = false;
    for (int round = 0; func->body && round < MAX_ROUNDS; round++) {
        if (!simplify_once(func)) break;
        changed = true;
    }
    return changed;
}
