/* Loops, as far as they can be seen through: what is inside, how a carried value moves, whether its counting can wrap
 * around, how often a counting loop runs.
 *
 * Numbers of the program wrap around. `for (i = 0; i < n; i += 3)` with n at the end of the range does not stop where
 * division says: i jumps over the end and goes on from the other one. Everything here takes that into account. */
#include "ir.h"

bool inst_contains(const Inst *owner, const Val *v) {
    if (val_is_const(v)) return false;
    const Region *region = v->kind == VAL_param ? v->region : v->inst->parent;
    for (; region; region = region->owner ? region->owner->parent : NULL)
        if (region->owner == owner) return true;
    return false;
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

bool inst_goes_ways(const Inst *inst) {
    if (inst->op != OP_select || !type_is_float(inst->results[0]->type)) return false;
    const Inst *loop = inst_loop_around(inst);
    return loop && loop->hints.ways;
}

int inst_loops_around(const Inst *inst) {
    int loops = 0;
    for (const Region *r = inst->parent; r->owner; r = r->owner->parent) loops += r->owner->op == OP_loop;
    return loops;
}

/* ---- how a carried value moves */

static const Inst *made_by(const Val *v, Op op) {
    return v->kind == VAL_inst && v->inst->op == op ? v->inst : NULL;
}

/* v as a constant more than param; false: it is something else. */
static bool find_delta(const Val *v, const Val *param, int64_t *delta) {
    const Inst *add = made_by(v, OP_add), *sub = made_by(v, OP_sub);
    *delta = 0;
    if (v == param) return true;
    if (add && inst_operand(add, 0) == param && val_is_int(inst_operand(add, 1), delta)) return true;
    if (add && inst_operand(add, 1) == param && val_is_int(inst_operand(add, 0), delta)) return true;
    if (!sub || inst_operand(sub, 0) != param || !val_is_int(inst_operand(sub, 1), delta)) return false;
    *delta = (int64_t)(0 - (uint64_t)*delta);
    return true;
}

enum { MOST_CHOICES = 8 }; /* that a carried value is chosen by, one in another */

static void add_ways(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth);

static void add_delta(LoopSteps *steps, bool *any, int64_t delta) {
    if (!*any || delta < steps->least) steps->least = delta;
    if (!*any || delta > steps->greatest) steps->greatest = delta;
    *any = true;
}

/* Both sides of a choice; false: it is none. */
static bool add_choice(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth) {
    const Inst *select = made_by(next, OP_select), *branch = made_by(next, OP_if);
    if (depth == 0 || (!select && !branch)) return false;
    for (int i = 0; i < 2; i++) {
        const Inst *end = branch ? branch->regions[i]->last : NULL;
        if (select) add_ways(steps, any, inst_operand(select, i + 1), param, depth - 1);
        else if (end->op == OP_yield) add_ways(steps, any, inst_operand(end, next->index), param, depth - 1);
    }
    return true;
}

static void add_ways(LoopSteps *steps, bool *any, const Val *next, const Val *param, int depth) {
    int64_t delta;
    if (find_delta(next, param, &delta)) add_delta(steps, any, delta);
    else if (!add_choice(steps, any, next, param, depth)) steps->known = false, *any = true;
}

static void add_way(LoopSteps *steps, bool *any, Val *next, const Val *param) {
    add_ways(steps, any, ir_resolve(next), param, MOST_CHOICES);
}

LoopSteps loop_steps(const Inst *loop, Inst *const *jumps, int njumps, int index) {
    const Region *body = loop->regions[1];
    LoopSteps steps = {.known = true}, last = {.known = true};
    bool any = false, any_last = false;
    if (body->last->op == OP_yield) add_way(&steps, &any, body->last->args[index], body->params[index]);
    for (int i = 0; i < njumps; i++)
        if (jumps[i]->op == OP_continue) add_way(&steps, &any, jumps[i]->args[index], body->params[index]);
    if (loop->nregions == 2) return steps;
    const Region *step = loop->regions[2];
    if (step->last->op == OP_yield) add_way(&last, &any_last, step->last->args[index], step->params[index]);
    steps.known &= last.known;
    steps.least = (int64_t)((uint64_t)steps.least + (uint64_t)last.least);
    steps.greatest = (int64_t)((uint64_t)steps.greatest + (uint64_t)last.greatest);
    return steps;
}

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

typedef struct JumpTo {
    const Inst *loop;
    bool found;
} JumpTo;

static void find_jump_to(void *user, Inst *inst) {
    JumpTo *jump = user;
    jump->found |= (inst->op == OP_break || inst->op == OP_continue) && inst->target == jump->loop;
}

bool loop_has_jumps(const Inst *loop) {
    JumpTo jump = {.loop = loop};
    region_walk(loop->regions[1], find_jump_to, &jump);
    return jump.found;
}

LoopJumps loop_find_jumps(Arena *arena, const Func *func) {
    LoopJumps jumps = {.arena = arena};
    if (func->body && !(func->flags & FUNC_NORMAL)) region_walk(func->body, note_jump, &jumps);
    return jumps;
}

LoopSteps loop_steps_by(const LoopJumps *jumps, const Inst *loop, int index) {
    const InstVec *found = map_get(&jumps->of, PTR_KEY(loop));
    return loop_steps(loop, found ? found->at : NULL, found ? found->count : 0, index);
}

/* ---- normal form: the step may stand under the guard of an exit */

/* state == 0 */
static bool tests_running(const Val *v, const Val *state) {
    const Inst *eq = made_by(v, OP_eq);
    return eq && ((inst_operand(eq, 0) == state && val_is_zero(inst_operand(eq, 1))) ||
                  (inst_operand(eq, 1) == state && val_is_zero(inst_operand(eq, 0))));
}

/* For a condition that tests the exit state first: which carried value the state is; -1: none. */
static int state_index(const Region *condition) {
    const Val *go = inst_operand(condition->last, 0);
    const Inst *choice = made_by(go, OP_if), *select = made_by(go, OP_select), *both = made_by(go, OP_and);
    for (int i = 0; i < condition->nparams; i++) {
        const Val *state = condition->params[i];
        if (tests_running(go, state)) return i;
        if (choice && tests_running(inst_operand(choice, 0), state) &&
            val_is_zero(inst_operand(choice->regions[1]->last, 0)))
            return i;
        if (select && tests_running(inst_operand(select, 0), state) && val_is_zero(inst_operand(select, 2)))
            return i;
        if (both &&
            (tests_running(inst_operand(both, 0), state) || tests_running(inst_operand(both, 1), state)))
            return i;
    }
    return -1;
}

/* Both come from an `if` that is entered while no exit is under way, and beside which one is: into it. */
static bool enter_guard(const Val **next, const Val **state) {
    const Inst *guard = made_by(*next, OP_if);
    if (!guard || guard != made_by(*state, OP_if)) return false;
    const Inst *then = guard->regions[0]->last, *otherwise = guard->regions[1]->last;
    if (then->op != OP_yield || otherwise->op != OP_yield) return false;
    if (!tests_running(inst_operand(guard, 0), inst_operand(otherwise, (*state)->index))) return false;
    *next = inst_operand(then, (*next)->index);
    *state = inst_operand(then, (*state)->index);
    return true;
}

/* A step under the guard of the exit state counts: where the guard fails the loop ends, so that no later iteration sees
 * the value. The guard must be the very state that the condition tests. */
static const Val *unguarded(const Inst *loop, const Val *next) {
    const Region *body = loop->regions[1];
    int state = state_index(loop->regions[0]);
    if (state < 0) return next;
    const Val *next_state = inst_operand(body->last, state);
    while (enter_guard(&next, &next_state)) {}
    const Inst *test = made_by(next, OP_if), *select = made_by(next, OP_select);
    if (test && tests_running(inst_operand(test, 0), next_state))
        return inst_operand(test->regions[0]->last, next->index);
    if (select && tests_running(inst_operand(select, 0), next_state)) return inst_operand(select, 1);
    return next;
}

bool loop_step(const Inst *loop, int index, int64_t *step) {
    const Region *body = loop->regions[1];
    const Val *param = body->params[index];
    if (!type_is_integer(param->type) || body->last->op != OP_yield) return false;
    const Val *next = inst_operand(body->last, index);
    return find_delta(next, param, step) || find_delta(unguarded(loop, next), param, step);
}

int loop_term(const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    const Val *param = body->params[index],
              *next = body->last->op == OP_yield ? inst_operand(body->last, index) : param;
    const Inst *sum = made_by(next, OP_add), *difference = made_by(next, OP_sub);
    if (difference) return inst_operand(difference, 0) == param ? 1 : -1;
    return !sum ? -1 : inst_operand(sum, 0) == param ? 1 : inst_operand(sum, 1) == param ? 0 : -1;
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

/* The least and the greatest number of a type of up to 32 bits. */
static void limits_of(const Type *type, int64_t *low, int64_t *high) {
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
    limits_of(type, &low, &high);
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
    const Inst *loop;
    LoopTest test;
    int64_t size;     /* of a step */
    const Type *word; /* int64 */
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
    Val *span =
        build_binary(b, OP_sub, build_convert(b, c->high, natural), build_convert(b, c->low, natural));
    if (!c->test.or_equal) span = build_binary(b, OP_sub, span, ir_const_int(m, natural, 1));
    span = build_binary(b, OP_div, span, ir_const_int(m, natural, c->size));
    Val *trip = build_binary(b, OP_add, build_convert(b, span, c->word), word(c, 1));
    return build_select(b, runs, trip, word(c, 0));
}

/* By counting: for limits so close to the end of the numbers that a step may jump over it. */
static Val *count_by_running(Count *c, Builder *b) {
    const Type *type = c->test.limit->type;
    Module *m = b->func->module;
    Val *initial[] = {ir_resolve(c->loop->args[c->test.index]), word(c, 0)};
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

/* A step of one jumps over nothing: with `<` it ends in time, with `<=` and the last of all numbers it never does. */
Val *loop_trip(Inst *loop) {
    const Region *condition = loop->regions[0];
    const Inst *test = condition->first;
    if (!test || test->next != condition->last || inst_operand(condition->last, 0) != test->results[0])
        return NULL;
    Module *m = loop->func->module;
    Count c = {.b = build_before(loop), .loop = loop, .word = type_basic(m->types, TYPE_int64)};
    int64_t step;
    if (test->op == OP_ne || !loop_comparison(loop, test, &c.test)) return NULL;
    if (inst_contains(loop, c.test.limit) || !loop_step(loop, c.test.index, &step)) return NULL;
    if (step == 0 || step == INT64_MIN || (step > 0) != c.test.up) return NULL;
    c.size = step > 0 ? step : -step;
    Val *start = ir_resolve(loop->args[c.test.index]);
    c.low = c.test.up ? start : c.test.limit;
    c.high = c.test.up ? c.test.limit : start;
    Val *trip = type_bits(start->type) > 32 ? wide_trip(&c) : narrow_trip(&c);
    if (c.size > 1) trip = checked_trip(&c, trip);
    if (trip->kind == VAL_inst && !trip->name) trip->name = name_from(m->names, "trip");
    return trip;
}
