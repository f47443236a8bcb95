/* Loops, as far as they can be seen through: what is inside, what jumps, whether counting can wrap around,
 * how often a counting loop runs.
 *
 * Numbers of the program wrap around. `for (i = 0; i < n; i += 3)` with n at the end of the range does not
 * stop where division says: i jumps over the end and goes on from the other one. Everything here takes that
 * into account. */
#include "ir.h"

bool inst_contains(const Inst *owner, const Val *v) {
    if (val_is_const(v)) return false;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    for (; region; region = region->owner ? region->owner->parent : NULL)
        if (region->owner == owner) return true;
    return false;
}

bool region_is_in(const Region *region, const Region *outer) {
    while (region && region != outer) region = region->owner ? region->owner->parent : NULL;
    return region != NULL;
}

/* Of several conditions around it the innermost decides. */
bool inst_is_unlikely(const Inst *inst) {
    for (const Region *r = inst->parent; r->owner; r = r->owner->parent)
        if (r->owner->op == OP_if && inst_has(r->owner, INST_LIKELY)) return r == r->owner->regions[1];
    return inst->func->flags & FUNC_UNLIKELY;
}

const Inst *inst_loop_around(const Inst *inst) {
    const Region *region = inst->parent;
    while (region->owner && region->owner->op != OP_loop) region = region->owner->parent;
    return region->owner;
}

bool loop_adds_freely(const Inst *loop, int index) {
    const Val *next = inst_operand(loop->regions[1]->last, index);
    return next->kind == VAL_inst && inst_is_free_sum(next->inst);
}

bool inst_goes_ways(const Inst *inst) {
    bool chooses = inst->op == OP_select || inst->op == OP_min || inst->op == OP_max;
    if (!chooses || !type_is_float(inst->results[0]->type)) return false;
    const Inst *loop = inst_loop_around(inst);
    return loop && loop->hints.ways;
}

bool inst_is_derivative(const Inst *inst) {
    bool is_derivative = func_is_derivative(inst->func);
    for (; inst && !is_derivative; inst = inst->parent->owner)
        is_derivative = inst->op == OP_loop && inst->hints.back;
    return is_derivative;
}

static bool is_loop(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_loop;
}

bool region_has_loop(const Region *region) { return region_find(region, is_loop, NULL) != NULL; }

int inst_loops_around(const Inst *inst) {
    int loops = 0;
    for (const Region *r = inst->parent; r->owner; r = r->owner->parent) loops += r->owner->op == OP_loop;
    return loops;
}

/* ---- jumps */

static void note_jump(void *user, Inst *inst) {
    LoopJumps *jumps = user;
    if (inst->op != OP_continue) return;
    InstVec *found = map_get(&jumps->of, PTR_KEY(inst->target));
    if (!found) {
        found = arena_new(jumps->arena, InstVec);
        map_put(jumps->arena, &jumps->of, PTR_KEY(inst->target), found);
    }
    vec_push(jumps->arena, found, inst);
}

static bool goes_on(const void *loop, const Inst *inst) {
    return inst->op == OP_continue && inst->target == loop;
}

static bool jumps_to(const void *loop, const Inst *inst) {
    return goes_on(loop, inst) || (inst->op == OP_break && inst->target == loop);
}

/* Not where a block or a loop inside is left, or the next round begun. */
static bool leaves(const void *user, const Inst *inst) {
    const Inst *loop = user;
    bool jumps = inst->op == OP_break || inst->op == OP_continue;
    if (!jumps) return op_has(inst->op, OP_LEAVES);
    const Region *at = inst->target->parent;
    while (at && at != loop->regions[1]) at = at->owner ? at->owner->parent : NULL;
    return !at && !goes_on(loop, inst);
}

bool loop_has_continue(const Inst *loop) { return region_find(loop->regions[1], goes_on, loop); }
bool loop_has_jumps(const Inst *loop) { return region_find(loop->regions[1], jumps_to, loop); }
bool loop_body_leaves(const Inst *loop) { return region_find(loop->regions[1], leaves, loop); }

LoopJumps loop_find_jumps(Arena *arena, const Func *func) {
    LoopJumps jumps = {.arena = arena};
    if (func->body && !(func->flags & FUNC_NORMAL)) region_walk(func->body, note_jump, &jumps);
    return jumps;
}

/* ---- conditions that compare */

bool loop_comparison(const Inst *loop, const Inst *test, LoopTest *out) {
    if (test->op != OP_lt && test->op != OP_le && test->op != OP_ne) return false;
    Val *sides[] = {inst_operand(test, 0), inst_operand(test, 1)};
    if (!type_is_integer(sides[0]->type)) return false;
    for (int i = 0; i < 2; i++) {
        if (sides[i]->kind != VAL_param || sides[i]->region != loop->regions[0]) continue;
        if (sides[1 - i]->kind == VAL_param && sides[1 - i]->region == loop->regions[0]) return false;
        *out = (LoopTest){sides[i]->index, sides[1 - i], i == 0, test->op == OP_le};
        return true;
    }
    return false;
}

bool loop_comparison_ahead(const Inst *loop, const Inst *test, LoopTest *out, LoopAhead *ahead) {
    for (int side = 0; side < 2 && (test->op == OP_lt || test->op == OP_le); side++) {
        const Val *compared = inst_operand(test, side);
        const Inst *sum = compared->kind == VAL_inst ? compared->inst : NULL;
        if (!sum || (sum->op != OP_add && sum->op != OP_sub) || !type_is_integer(compared->type)) continue;
        for (int i = 0; i < 2 - (sum->op == OP_sub); i++) {
            const Val *counter = inst_operand(sum, i);
            if (counter->kind != VAL_param || counter->region != loop->regions[0]) continue;
            *out = (LoopTest){counter->index, inst_operand(test, 1 - side), side == 0, test->op == OP_le};
            *ahead = (LoopAhead){inst_operand(sum, 1 - i), sum->op == OP_sub};
            return true;
        }
    }
    return false;
}

/* Does the address lead into a uniform by fields alone? */
static bool is_uniform_address(const Val *v) {
    while (v->kind == VAL_inst && v->inst->op == OP_field) v = inst_operand(v->inst, 0);
    return v->kind == VAL_inst && v->inst->op == OP_global && v->inst->global->kind == GLOBAL_uniform;
}

bool inst_is_steady(const Inst *inst) {
    return op_has(inst->op, OP_ELEMENTWISE) || inst->op == OP_global || inst->op == OP_field ||
           inst->op == OP_extract || inst->op == OP_buffer_length ||
           (inst->op == OP_load && is_uniform_address(inst_operand(inst, 0)));
}

static bool is_fixed(const Inst *loop, const Val *v, int *terms) {
    if (!inst_contains(loop, v)) return true;
    if (v->kind != VAL_inst || --*terms < 0 || !inst_is_steady(v->inst)) return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (!is_fixed(loop, inst_operand(v->inst, i), terms)) return false;
    return true;
}

bool loop_has_fixed(const Inst *loop, const Val *v) {
    int terms = 64;
    return is_fixed(loop, v, &terms);
}

void loop_limits_of(const Type *type, int64_t *low, int64_t *high) {
    int bits = type_bits(type);
    bool is_signed = type_is_signed(type);
    *high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
    *low = is_signed ? -*high - 1 : 0;
}

bool loop_cannot_wrap(const LoopTest *test, int64_t longest) {
    int64_t value, low, high;
    const Type *type = test->limit->type;
    if (longest == 1 && !test->or_equal) return true;
    if (type_bits(type) > 32 || longest > INT32_MAX || !val_is_int(test->limit, &value)) return false;
    loop_limits_of(type, &low, &high);
    if (!test->or_equal) value += test->up ? -1 : 1; /* the last value that goes on */
    return test->up ? value + longest <= high : value - longest >= low;
}

/* ---- loops that surely end */

static bool comparison_ends(const Inst *loop, const Inst *test, Inst *const *jumps, int njumps) {
    LoopTest found;
    if (!loop_comparison(loop, test, &found) || inst_contains(loop, found.limit)) return false;
    LoopSteps steps = loop_steps(loop, jumps, njumps, found.index);
    if (!steps.known) return false;
    if (test->op == OP_ne) return steps.least == steps.greatest && (steps.least == 1 || steps.least == -1);
    if (found.up ? steps.least <= 0 : steps.greatest >= 0) return false;
    return loop_cannot_wrap(&found, found.up ? steps.greatest : -steps.least);
}

static bool condition_ends(const Inst *loop, const Val *condition, Inst *const *jumps, int njumps) {
    if (val_is_zero(condition)) return true;
    if (condition->kind != VAL_inst) return false;
    const Inst *test = condition->inst;
    if (test->op != OP_and) return comparison_ends(loop, test, jumps, njumps);
    return condition_ends(loop, inst_operand(test, 0), jumps, njumps) ||
           condition_ends(loop, inst_operand(test, 1), jumps, njumps);
}

bool loop_is_finite(const Inst *loop, Inst *const *jumps, int njumps) {
    const Inst *end = loop->regions[0]->last;
    return end->op == OP_yield && condition_ends(loop, inst_operand(end, 0), jumps, njumps);
}

/* ---- how often a counting loop runs */

typedef struct Count {
    Builder b;
    LoopTest test;
    int64_t size;     /* of a step */
    const Type *word; /* int64 */
    Val *start;       /* of what is compared */
    Val *low, *high;  /* in the type of the counter */
} Count;

static Val *word(Count *c, int64_t value) { return ir_const_int(c->b.func->module, c->word, value); }

/* In up to 32 bits nothing overflows as int64. */
static Val *narrow_trip(Count *c) {
    Builder *b = &c->b;
    Val *low = build_convert(b, c->low, c->word), *high = build_convert(b, c->high, c->word);
    Val *span =
        build_binary(b, OP_add, build_binary(b, OP_sub, high, low), word(c, c->size - 1 + c->test.or_equal));
    Val *trip = c->size > 1 ? build_binary(b, OP_div, span, word(c, c->size)) : span;
    return build_select(b, build_binary(b, OP_lt, word(c, 0), trip), trip, word(c, 0));
}

/* In steps of one. */
static Val *distance(Count *c) {
    Builder *b = &c->b;
    Val *low = build_convert(b, c->low, c->word), *high = build_convert(b, c->high, c->word);
    if (c->test.or_equal) low = build_binary(b, OP_sub, low, word(c, 1));
    return build_binary(b, OP_sub, high, low);
}

/* In 64 bits the distance is a number without sign. */
static Val *wide_trip(Count *c) {
    Builder *b = &c->b;
    Module *m = b->func->module;
    const Type *natural = type_basic(m->types, TYPE_uint64);
    Val *runs = build_binary(b, c->test.or_equal ? OP_le : OP_lt, c->low, c->high);
    if (c->size == 1) return build_select(b, runs, distance(c), word(c, 0));
    Val *high = build_convert(b, c->high, natural), *low = build_convert(b, c->low, natural);
    Val *span = build_binary(b, OP_sub, high, low);
    if (!c->test.or_equal) span = build_binary(b, OP_sub, span, ir_const_int(m, natural, 1));
    span = build_binary(b, OP_div, span, ir_const_int(m, natural, c->size));
    Val *trip = build_binary(b, OP_add, build_convert(b, span, c->word), word(c, 1));
    return build_select(b, runs, trip, word(c, 0));
}

/* By counting: for limits so close to the end of the numbers that a step may jump over it. */
static Val *count_by_running(Count *c, Builder *b) {
    const Type *type = c->test.limit->type;
    Module *m = b->func->module;
    Val *initial[] = {c->start, word(c, 0)};
    Inst *loop = build_loop(b, initial, 2, false);
    Builder head = build_at_end(loop->regions[0]), body = build_at_end(loop->regions[1]);
    Val *at = loop->regions[0]->params[0], *limit = c->test.limit;
    Val *go = build_binary(&head, c->test.or_equal ? OP_le : OP_lt, c->test.up ? at : limit,
                           c->test.up ? limit : at);
    build_yield(&head, &go, 1);
    Val *step = ir_const_int(m, type, c->size);
    Val *nexts[] = {build_binary(&body, c->test.up ? OP_add : OP_sub, loop->regions[1]->params[0], step),
                    build_binary(&body, OP_add, loop->regions[1]->params[1], word(c, 1))};
    build_yield(&body, nexts, 2);
    return loop->results[1];
}

/* Is the limit far enough from the end of the numbers? */
static Val *is_safe(Count *c) {
    const Type *type = c->test.limit->type;
    uint64_t all = UINT64_MAX >> (64 - type_bits(type));
    uint64_t high = type_is_signed(type) ? all >> 1 : all, low = type_is_signed(type) ? ~high : 0;
    uint64_t margin = (uint64_t)c->size - !c->test.or_equal;
    Val *bound = ir_const_int(c->b.func->module, type, (int64_t)(c->test.up ? high - margin : low + margin));
    return build_binary(&c->b, OP_le, c->test.up ? c->test.limit : bound, c->test.up ? bound : c->test.limit);
}

static Val *checked_trip(Count *c, Val *trip) {
    Val *safe = is_safe(c);
    if (val_is_one(safe)) return trip;
    Inst *choice = build_if(&c->b, safe, &c->word, 1);
    Builder then = build_at_end(choice->regions[0]), other = build_at_end(choice->regions[1]);
    build_yield(&then, &trip, 1);
    Val *counted = count_by_running(c, &other);
    build_yield(&other, &counted, 1);
    return inst_result(choice);
}

/* What the condition compares, if it does nothing else: the counter, or a sum with it, which goes by the same
 * steps. */
static bool find_only_test(const Inst *loop, LoopTest *out, LoopAhead *ahead) {
    const Region *condition = loop->regions[0];
    const Inst *first = condition->first, *test = condition->last->prev;
    *ahead = (LoopAhead){0};
    if (!test || test->nresults != 1 || inst_operand(condition->last, 0) != test->results[0] ||
        test->op == OP_ne)
        return false;
    if (first == test) return loop_comparison(loop, test, out);
    return first->next == test && loop_comparison_ahead(loop, test, out, ahead) &&
           !inst_contains(loop, ahead->by);
}

/* A step of one jumps over nothing: with `<` it ends in time, with `<=` and the last of all numbers it never
 * does. */
Val *loop_trip_before(Inst *at, Inst *loop) {
    Module *m = loop->func->module;
    Count c = {.b = build_before(at), .word = type_basic(m->types, TYPE_int64)};
    LoopAhead ahead;
    int64_t step;
    if (!find_only_test(loop, &c.test, &ahead)) return NULL;
    Val *first = ir_resolve(loop->args[c.test.index]);
    if (inst_contains(at, c.test.limit) || inst_contains(at, first) ||
        (ahead.by && inst_contains(at, ahead.by)))
        return NULL;
    if (!loop_step(loop, c.test.index, &step)) return NULL;
    if (step == 0 || step == INT64_MIN || (step > 0) != c.test.up) return NULL;
    c.size = step > 0 ? step : -step;
    c.start = ahead.by ? build_binary(&c.b, ahead.negative ? OP_sub : OP_add, first, ahead.by) : first;
    c.low = c.test.up ? c.start : c.test.limit;
    c.high = c.test.up ? c.test.limit : c.start;
    Val *trip = type_bits(c.start->type) > 32 ? wide_trip(&c) : narrow_trip(&c);
    if (c.size > 1) trip = checked_trip(&c, trip);
    if (trip->kind == VAL_inst && !trip->name) trip->name = name_from(m->names, "trip");
    return trip;
}

Val *loop_trip(Inst *loop) { return loop_trip_before(loop, loop); }
