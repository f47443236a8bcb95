/* Indices into arrays that are in range whatever the program is given: by what counters are at least and at
 * most (interval.c), or else by running the loops that they are in, on the constants that these start from.
 * So the index of a packed triangle is found, which counts through two loops:
 *
 *     next = 0; for (i = 0; i < 8; i++) for (j = i + 1; j < 8; j++) { ... a[next] ...; next++; }
 *
 * Only integers are computed, and nothing is known of what is loaded. Where a condition is not known both
 * ways are gone; a loop that may have any number of rounds, or is left from within, ends the rehearsal.
 *
 * What is found are the bounds of what loops carry, in their bodies: so an index that was marked is in range
 * wherever it may be computed, even where its load is moved before a loop or a condition. And it is so in
 * derivatives, which compute the same index in the same rounds.
 *
 * How many elements a buffer has is known when the program runs, so opt/range.c asks what an index is at
 * least and at most, and tests that before the loops. */
#include "ir.h"

enum {
    MOST_STEPS = 50000, /* instructions of all rehearsals in a function */
    MOST_DEPTH = 8      /* operands of operands that are looked at */
};

struct Rehearsal {
    Func *func;
    Module *module;
    LoopJumps jumps;
    Val **known;      /* by id: the constant that a value is at the moment, or NULL */
    Interval *seen;   /* by id, of what loops carry and compute in their bodies; all of it, if it is known */
    Interval *before; /* ... before the rehearsal at work */
    Map tried;        /* loops; those of which it is known go to themselves */
    Arena *scratch;
    int steps; /* left */
    uint32_t nvals;
    bool changed;
};

static int64_t length_of(const Inst *elem) {
    const Type *whole = elem->args[0]->type->args[0];
    return whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
}

static bool is_tested(const Inst *inst) {
    int64_t known;
    return inst->op == OP_elem && !inst_has(inst, INST_UNCHECKED) && length_of(inst) > 0 &&
           inst->results[0]->type->kind != TYPE_vector && !val_is_int(ir_resolve(inst->args[1]), &known);
}

static void mark(Rehearsal *r, Inst *inst) {
    inst->flags |= INST_UNCHECKED;
    r->changed = true;
}

/* ---- rehearsals */

static bool run_region(Rehearsal *r, const Region *region);

static Val *known_value(const Rehearsal *r, Val *v) {
    v = ir_resolve(v);
    return v->kind == VAL_const ? v : r->known[v->id];
}

static void forget_results(const Rehearsal *r, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++) r->known[inst->results[i]->id] = NULL;
}

static Val *folded(const Rehearsal *r, const Inst *inst) {
    Val *args[3], *result;
    const Type *type = inst->results[0]->type;
    if (!op_has(inst->op, OP_PURE) || inst->nargs > 3) return NULL;
    if (!type_is_integer(type) && type->kind != TYPE_bool) return NULL;
    for (int i = 0; i < inst->nargs; i++)
        if (!(args[i] = known_value(r, inst->args[i]))) return NULL;
    result = ir_fold(r->module, (Op)inst->op, type, args, inst->nargs);
    return result && result->kind == VAL_const ? result : NULL;
}

static void see(Interval *seen, const Val *v) {
    int64_t value = 0;
    bool is_first = seen->low > seen->high;
    seen->known &= v && val_is_int(v, &value);
    if (is_first || value < seen->low) seen->low = value;
    if (is_first || value > seen->high) seen->high = value;
}

static void compute(const Rehearsal *r, const Inst *inst) {
    forget_results(r, inst);
    if (inst->nresults != 1) return;
    uint32_t id = inst->results[0]->id;
    r->known[id] = folded(r, inst);
    see(&r->seen[id], r->known[id]);
}

static void set_params(const Rehearsal *r, const Region *region, Val *const *values) {
    for (int i = 0; i < region->nparams; i++) {
        r->known[region->params[i]->id] = values[i];
        see(&r->seen[region->params[i]->id], values[i]);
    }
}

/* The carried values of the next round. They are all read before one is set. */
static void take(const Rehearsal *r, Val *const *from, Val **values, int count) {
    for (int i = 0; i < count; i++) values[i] = known_value(r, from[i]);
}

/* A round is a step, too: there are loops without end in which nothing is done. */
static bool run_rounds(Rehearsal *r, const Inst *loop, Val **values) {
    while (--r->steps >= 0) {
        for (int i = 0; i < loop->nregions; i++) {
            const Region *region = loop->regions[i];
            set_params(r, region, values);
            if (!run_region(r, region)) return false;
            if (i > 0) {
                take(r, region->last->args, values, loop->nargs);
                continue;
            }
            const Val *goes_on = known_value(r, region->last->args[0]);
            if (!goes_on) return false;
            if (val_is_zero(goes_on)) return true;
        }
    }
    return false;
}

static bool run_loop(Rehearsal *r, const Inst *loop) {
    Arena *scratch = arena_scratch(r->module->arena);
    Val **values = arena_array(scratch, Val *, loop->nargs + 1);
    take(r, loop->args, values, loop->nargs);
    bool ends = run_rounds(r, loop, values);
    for (int i = 0; i < loop->nresults; i++) r->known[loop->results[i]->id] = ends ? values[i] : NULL;
    arena_free(scratch);
    return ends;
}

/* An if or a switch: all ways. */
static bool run_ways(Rehearsal *r, const Inst *inst) {
    for (int i = 0; i < inst->nregions; i++)
        if (!run_region(r, inst->regions[i])) return false;
    forget_results(r, inst);
    return true;
}

static bool run_if(Rehearsal *r, const Inst *inst) {
    const Val *condition = known_value(r, inst->args[0]);
    if (!condition) return run_ways(r, inst);
    const Region *taken = inst->regions[val_is_zero(condition) ? 1 : 0];
    if (!run_region(r, taken)) return false;
    for (int i = 0; i < inst->nresults; i++)
        r->known[inst->results[i]->id] = known_value(r, taken->last->args[i]);
    return true;
}

static bool run_inst(Rehearsal *r, const Inst *inst) {
    if (--r->steps < 0) return false;
    switch ((Op)inst->op) {
    case OP_loop: return run_loop(r, inst);
    case OP_if: return run_if(r, inst);
    case OP_switch: return run_ways(r, inst);
    case OP_block: return false;
    default: compute(r, inst); break;
    }
    return true;
}

static bool run_region(Rehearsal *r, const Region *region) {
    for (const Inst *inst = region->first; inst != region->last; inst = inst->next)
        if (!run_inst(r, inst)) return false;
    return region->last->op == OP_yield;
}

/* ---- what is marked */

static const Interval nothing = {1, 0, true}, anything = {0, 0, false};

static void forget_inst(void *user, Inst *inst) {
    const Rehearsal *r = user;
    forget_results(r, inst);
    for (int i = 0; i < inst->nregions; i++)
        for (int k = 0; k < inst->regions[i]->nparams; k++) r->known[inst->regions[i]->params[k]->id] = NULL;
}

static void begin_with(Rehearsal *r, Inst *inst, Interval interval) {
    forget_inst(r, inst);
    for (int i = 0; i < inst->nresults; i++) r->seen[inst->results[i]->id] = interval;
    for (int i = 0; i < inst->nregions; i++)
        for (int k = 0; k < inst->regions[i]->nparams; k++)
            r->seen[inst->regions[i]->params[k]->id] = interval;
}

static void begin_inst(void *user, Inst *inst) { begin_with(user, inst, nothing); }

static void end_inst(void *user, Inst *inst) { begin_with(user, inst, anything); }

static bool is_moderate(Interval i) { return i.known && i.low > -INT32_MAX && i.high < INT32_MAX; }

/* What the value may be, if it is something that a loop carries, and perhaps a constant. */
static Interval seen_of(const Rehearsal *r, const Val *v) {
    int64_t more;
    if (v->kind == VAL_param) return r->seen[v->id];
    if (v->kind != VAL_inst || !type_is_integer(v->type) || type_bits(v->type) < 32) return anything;
    const Inst *inst = v->inst;
    bool is_sum = inst->op == OP_add && val_is_int(ir_resolve(inst->args[1]), &more);
    if (inst->op != OP_convert && inst->op != OP_bitcast && !is_sum) return anything;
    Interval of = seen_of(r, ir_resolve(inst->args[0]));
    if (!is_moderate(of) || !is_sum) return is_moderate(of) ? of : anything;
    if (more <= -INT32_MAX || more >= INT32_MAX) return anything;
    Interval sum = {of.low + more, of.high + more, true};
    return is_moderate(sum) ? sum : anything;
}

static void mark_seen(void *user, Inst *inst) {
    Rehearsal *r = user;
    if (!is_tested(inst)) return;
    Interval index = seen_of(r, ir_resolve(inst->args[1]));
    bool is_seen = index.known && index.low <= index.high;
    if (is_seen && index.low >= 0 && index.high < length_of(inst)) mark(r, inst);
}

static void in_loop(Rehearsal *r, const Inst *loop, InstVisitor visit) { inst_walk(loop, visit, r); }

/* Nothing is known of what is made before the loop, nor afterwards of what was in it. */
static void rehearse(Rehearsal *r, Inst *loop) {
    in_loop(r, loop, begin_inst);
    begin_with(r, loop, nothing);
    if (run_loop(r, loop)) in_loop(r, loop, mark_seen);
    in_loop(r, loop, end_inst);
    begin_with(r, loop, anything);
}

static void mark_by_interval(void *user, Inst *inst) {
    Rehearsal *r = user;
    if (!is_tested(inst)) return;
    Interval index = ir_interval(&r->jumps, ir_resolve(inst->args[1]));
    if (index.known && index.low >= 0 && index.high < length_of(inst)) mark(r, inst);
}

/* Tries the loops around it, from the innermost, each of them once. */
static void mark_by_rehearsal(void *user, Inst *inst) {
    Rehearsal *r = user;
    for (const Region *at = inst->parent; is_tested(inst) && at && at->owner; at = at->owner->parent) {
        Inst *loop = at->owner;
        if (loop->op != OP_loop || r->steps <= 0 || map_has(&r->tried, PTR_KEY(loop))) continue;
        map_put(r->scratch, &r->tried, PTR_KEY(loop), loop);
        rehearse(r, loop);
    }
}

/* For all values that the function has now. */
static void make_room(Rehearsal *r) {
    uint32_t before = r->nvals;
    if (r->known && before == r->func->nvals) return;
    const Interval *seen = r->seen;
    r->nvals = r->func->nvals;
    r->known = arena_array(r->scratch, Val *, r->nvals + 1);
    r->seen = arena_array(r->scratch, Interval, r->nvals + 1);
    r->before = arena_array(r->scratch, Interval, r->nvals + 1);
    for (uint32_t i = 0; seen && i <= before; i++) r->seen[i] = seen[i];
}

bool ir_mark_in_range(Func *func) {
    if (!func->body) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Rehearsal r = {.func = func, .module = func->module, .scratch = scratch, .steps = MOST_STEPS};
    ir_resolve_func(func);
    r.jumps = loop_find_jumps(scratch, func);
    make_room(&r);
    region_walk(func->body, mark_by_interval, &r);
    region_walk(func->body, mark_by_rehearsal, &r);
    arena_free(scratch);
    return r.changed;
}

/* ---- for indices into buffers */

Rehearsal *ir_rehearsal(Arena *scratch, Func *func) {
    Rehearsal *r = arena_new(scratch, Rehearsal);
    *r = (Rehearsal){.func = func, .module = func->module, .scratch = scratch, .steps = MOST_STEPS};
    return r;
}

static bool is_known(const Rehearsal *r, const Inst *loop) {
    return map_get(&r->tried, PTR_KEY(loop)) == loop;
}

static bool is_part_of_known(const Rehearsal *r, const Inst *inst) {
    while (inst && !is_known(r, inst)) inst = inst->parent->owner;
    return inst;
}

bool ir_rehearse(Rehearsal *r, Inst *loop) {
    if (is_part_of_known(r, loop)) return true;
    if (map_has(&r->tried, PTR_KEY(loop))) return false;
    make_room(r);
    memcpy(r->before, r->seen, sizeof *r->seen * r->nvals);
    in_loop(r, loop, begin_inst);
    begin_with(r, loop, nothing);
    bool ends = r->steps > 0 && run_loop(r, loop);
    if (!ends) memcpy(r->seen, r->before, sizeof *r->seen * r->nvals); /* what is known of loops inside */
    in_loop(r, loop, forget_inst); /* what they were in its last round; loops inside may be tried alone */
    if (!ends) forget_inst(r, loop);
    map_put(r->scratch, &r->tried, PTR_KEY(loop), ends ? (void *)loop : (void *)r);
    return ends;
}

int ir_rehearsed_steps(Rehearsal *r, Inst *loop, int most) {
    int before = r->steps;
    if (before < most) return 0;
    r->steps = most;
    int steps = ir_rehearse(r, loop) ? most - r->steps : 0;
    r->steps += before - most;
    return steps;
}

/* Does it change from round to round? Else it may be computed before the loop, which perhaps has no rounds
 * then. */
static bool changes_in(const Inst *loop, const Val *v, int depth) {
    v = ir_resolve((Val *)v);
    if (v->kind == VAL_param) return v->region->owner == loop;
    if (v->kind != VAL_inst || depth == 0 || !inst_contains(loop, v)) return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (changes_in(loop, v->inst->args[i], depth - 1)) return true;
    return false;
}

/* What is computed in every round of a loop that was rehearsed, or of one inside, but not where a condition
 * does not hold: of an index that may be moved before a condition or a loop, more than it was there would
 * have to be known. */
static bool is_in_every_round(const Rehearsal *r, const Val *v) {
    const Region *at = v->kind == VAL_inst ? v->inst->parent : v->region;
    if (!at->owner || !changes_in(at->owner, v, MOST_DEPTH)) return false;
    for (; at->owner && at->owner->op == OP_loop; at = at->owner->parent)
        if (is_known(r, at->owner)) return true;
    return false;
}

Interval ir_rehearsed(const Rehearsal *r, const Val *v) {
    if (v->kind == VAL_const || v->id > r->nvals || !type_is_integer(v->type)) return anything;
    if (!is_in_every_round(r, v)) return anything;
    Interval seen = r->seen[v->id];
    bool is_seen = is_moderate(seen) && seen.low <= seen.high;
    return is_seen && (seen.low >= 0 || type_is_signed(v->type)) ? seen : anything;
}
