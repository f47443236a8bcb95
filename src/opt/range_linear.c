/* Sums of the counters of a nest (range.c), each times something that stays the same, and the least and the
 * greatest that they are, computed before it.
 *
 * Where what bounds a counter depends on the counters of loops further out, it is put in its place, so that
 * of a triangle the index is found exactly,
 *
 *     for (i = 0; i < n; i++) for (j = 0; j <= i; j++) ... a[i - j] ...         i - j is at least i - i, at most i - 0
 *
 * and where that is the least or the greatest of two, as in max(0, i - k), both are, and the results
 * compared. Whatever else a loop carries on by equal steps is linear in its counter: what counts beside it,
 * offsets of rows, what counts through the loops inside. What is divided, a remainder, or a minimum is not
 * linear; but where its parts are between bounds, so is this, and of a minimum each part can take its place.
 *
 * Where one part of a sum rises with a counter that another falls with, its bounds are loose. */
#include "opt/range.h"

const Type *range_type(const Nest *n, TypeKind kind) {
    return type_basic(n->loop->func->module->types, kind);
}

bool range_is_word(const Type *type) { return type->kind == TYPE_int || type->kind == TYPE_uint; }

bool range_is_long(const Type *type) { return type->kind == TYPE_int64 || type->kind == TYPE_uint64; }

bool range_fits_word(const Type *type) { return type_is_integer(type) && type_bits(type) <= 32; }

/* ---- numbers before the loop */

static Val *int_of(Nest *n, int64_t value) {
    return ir_const_int(n->loop->func->module, range_type(n, TYPE_int), value);
}

Val *range_number(Nest *n, int64_t value) {
    return ir_const_int(n->loop->func->module, range_type(n, TYPE_int64), value);
}

Val *range_wide(Nest *n, Val *v) { return build_convert(&n->before, v, range_type(n, TYPE_int64)); }

Val *range_binary(Nest *n, Op op, Val *a, Val *b) { return build_binary(&n->before, op, a, b); }

void range_require(Nest *n, Val *condition) {
    n->safe = n->safe ? range_binary(n, OP_and, n->safe, condition) : condition;
}

void range_require_ordered(Nest *n, Val *low, Val *high) {
    range_require(n, range_binary(n, OP_le, low, high));
}

/* The value as it can be computed before the loop; NULL: it cannot. */
Val *range_prepared(Nest *n, Val *v) {
    if (!inst_contains(n->loop, v)) return v;
    Val *known = map_get(&n->again.vals, PTR_KEY(v));
    if (known) return known;
    if (v->kind != VAL_inst || ++n->terms > RANGE_TERMS || !inst_is_steady(v->inst)) return NULL;
    for (int i = 0; i < v->inst->nargs; i++)
        if (!range_prepared(n, inst_operand(v->inst, i))) return NULL;
    inst_insert_before(n->loop, clone_inst(&n->again, v->inst));
    return map_get(&n->again.vals, PTR_KEY(v));
}

/* ---- sums of counters */

static Val *sum(Nest *n, Val *a, Val *b, bool negative) {
    if (!b) return a;
    if (negative) b = build_unary(&n->before, OP_neg, b);
    return a ? range_binary(n, OP_add, a, b) : b;
}

static Val *unless_zero(Val *factor) { return factor && val_is_zero(factor) ? NULL : factor; }

bool range_is_fixed(const Linear *l) {
    for (int i = 0; i < FACTORS; i++)
        if (l->factors[i]) return false;
    return true;
}

int range_factors(const Linear *index) {
    int count = 0;
    for (int i = 0; i < FACTORS; i++) count += index->factors[i] != NULL;
    return count;
}

/* Where a counter of an index's own goes in the sum; -1: nowhere. */
static int own_place(const Linear *l, const Between *own) {
    for (int i = 0; i < MOST_OWN; i++)
        if (!l->factors[OWN + i] || l->own[i].v == own->v) return i;
    return -1;
}

bool range_combine(Nest *n, const Linear *a, const Linear *b, bool negative, Linear *result) {
    Linear total = *a;
    total.base = sum(n, a->base, b->base, negative);
    for (int i = 0; i < MOST_COUNTERS; i++)
        total.factors[i] = unless_zero(sum(n, a->factors[i], b->factors[i], negative));
    for (int i = 0; i < MOST_OWN; i++) {
        if (!b->factors[OWN + i]) continue;
        int place = own_place(&total, &b->own[i]);
        if (place < 0) return false;
        total.own[place] = b->own[i];
        total.factors[OWN + place] =
            unless_zero(sum(n, total.factors[OWN + place], b->factors[OWN + i], negative));
    }
    *result = total;
    return true;
}

Linear range_times(Nest *n, const Linear *varies, Val *factor) {
    Linear result = *varies;
    result.base = range_binary(n, OP_mul, varies->base, factor);
    for (int i = 0; i < FACTORS; i++)
        if (varies->factors[i]) result.factors[i] = range_binary(n, OP_mul, varies->factors[i], factor);
    return result;
}

static bool multiply(Nest *n, const Linear *varies, const Linear *fixed, Linear *result) {
    if (!range_is_fixed(fixed)) return false;
    *result = range_times(n, varies, fixed->base);
    return true;
}

Linear range_widened(Nest *n, const Linear *index) {
    Linear wide = *index;
    wide.base = range_wide(n, index->base);
    for (int i = 0; i < FACTORS; i++)
        if (index->factors[i]) wide.factors[i] = range_wide(n, index->factors[i]);
    return wide;
}

const Between *range_between(const Nest *n, const Linear *index, int i) {
    return i >= OWN ? &index->own[i - OWN] : &n->counters[i].between;
}

/* ---- counters where a loop asks whether it goes on: while (i < n && a[i] > 0) ... */

/* Is the access in the condition of the loop? */
static bool is_in_condition(const Inst *access, const Inst *loop) {
    const Region *at = access->parent;
    while (at->owner && at->owner != loop) at = at->owner->parent;
    return at->owner == loop && at == loop->regions[0];
}

static bool implies(const Val *condition, const Inst *test) {
    const Inst *inst = condition->kind == VAL_inst ? condition->inst : NULL;
    if (!inst || inst == test) return inst == test;
    return inst->op == OP_and &&
           (implies(inst_operand(inst, 0), test) || implies(inst_operand(inst, 1), test));
}

static bool is_behind_test(const Inst *access, const Inst *loop, const Inst *test) {
    for (const Region *at = access->parent; at->owner != loop; at = at->owner->parent)
        if (at->owner->op == OP_if && at == at->owner->regions[0] &&
            implies(inst_operand(at->owner, 0), test))
            return true;
    return false;
}

/* All that the bounds of the counter are known by have been asked. */
static bool is_behind(const Inst *access, const Counter *c) {
    for (int i = 0; i < c->ntests; i++)
        if (!is_behind_test(access, c->loop, c->tests[i])) return false;
    return true;
}

/* Where the access is, what a round begins with: in the region that it is a parameter of. */
static const Region *seen_region(const Inst *access, const Counter *c) {
    bool asks = access && is_in_condition(access, c->loop);
    return !asks ? c->loop->regions[1] : is_behind(access, c) ? c->loop->regions[0] : NULL;
}

const Counter *range_counter_of(const Nest *n, const Val *v) {
    for (int i = 0; i < n->ncounters && v->kind == VAL_param; i++) {
        const Counter *c = &n->counters[i];
        if (v->index == c->index && v->region->owner == c->loop && v->region == seen_region(n->access, c))
            return c;
    }
    return NULL;
}

const Val *range_counter(const Nest *n, const Access *access, int i) {
    if (i >= OWN) return access->index.own[i - OWN].v;
    return seen_region(access->inst, &n->counters[i])->params[n->counters[i].index];
}

/* ---- the least and the greatest of a sum, of 64 bits */

static Ways ways_of(const Nest *n, const Linear *l, int i) {
    int64_t known = 0;
    Ways ways = range_between(n, l, i)->ways;
    if (i < OWN) ways.rises |= 1u << i;
    if (!val_is_int(l->factors[i], &known)) ways.rises = ways.falls = ways.rises | ways.falls;
    return known < 0 ? (Ways){ways.falls, ways.rises} : ways;
}

Ways range_ways(const Nest *n, const Linear *l) {
    Ways all = {0};
    for (int i = 0; i < FACTORS; i++) {
        if (!l->factors[i]) continue;
        Ways ways = ways_of(n, l, i);
        all.rises |= ways.rises;
        all.falls |= ways.falls;
    }
    return all;
}

/* Where one part rises with what another falls with, they are not at their ends together. */
static bool is_loose(const Nest *n, const Linear *l) {
    Ways before = {0};
    for (int i = 0; i < FACTORS; i++) {
        if (!l->factors[i]) continue;
        Ways ways = ways_of(n, l, i);
        if (range_between(n, l, i)->is_loose || (ways.rises & before.falls) || (ways.falls & before.rises))
            return true;
        before.rises |= ways.rises;
        before.falls |= ways.falls;
    }
    return false;
}

/* The part of a counter, whichever its factor makes of its ends. */
static Val *part_at(Nest *n, Val *factor, const Between *between, bool greatest) {
    int64_t known;
    if (val_is_int(factor, &known))
        return range_binary(n, OP_mul, factor, (known > 0) == greatest ? between->high : between->low);
    Val *ends[] = {range_binary(n, OP_mul, factor, between->low),
                   range_binary(n, OP_mul, factor, between->high)};
    return range_binary(n, greatest ? OP_max : OP_min, ends[0], ends[1]);
}

/* With the parts of a bound in place of a counter. */
static Val *with_parts(Nest *n, const Linear *index, int at, const Bound *bound, bool greatest) {
    Val *factor = index->factors[at], *ends[2];
    bool is_loose[2];
    int64_t known = 0;
    for (int i = 0; i < bound->count; i++) {
        Linear rest = *index, part = range_times(n, &bound->parts[i], factor), whole;
        rest.factors[at] = NULL;
        ends[i] = range_combine(n, &rest, &part, false, &whole) ? range_extreme(n, &whole, greatest) : NULL;
        if (!ends[i]) return NULL;
        is_loose[i] = n->is_loose;
    }
    if (bound->count == 1) return ends[0];
    bool falls = val_is_int(factor, &known) && known < 0;
    Op op = !falls ? bound->op : bound->op == OP_min ? OP_max : OP_min;
    bool is_nearest = greatest == (op == OP_min); /* of two bounds; else it may be either */
    n->is_loose = is_nearest ? is_loose[0] && is_loose[1] : is_loose[0] || is_loose[1];
    return range_binary(n, op, ends[0], ends[1]);
}

/* With what bounds the counter in its place. What is not known to be negative must not be. */
static Val *without_counter(Nest *n, const Linear *index, int at, bool greatest) {
    Val *factor = index->factors[at];
    int64_t known = 0;
    if (!val_is_int(factor, &known)) range_require_ordered(n, range_number(n, 0), factor);
    const Counter *c = &n->counters[at];
    return with_parts(n, index, at, greatest == (known >= 0) ? &c->high : &c->low, greatest);
}

/* The first of its own numbers, once or taken away once, that is the least or the greatest of two; -1:
 * none. */
static int find_parted(const Linear *sum) {
    int64_t known;
    for (int i = 0; i < MOST_OWN; i++) {
        const Val *factor = sum->factors[OWN + i];
        if (factor && sum->own[i].parts && val_is_int(factor, &known) && (known == 1 || known == -1))
            return OWN + i;
    }
    return -1;
}

/* Counters further in are replaced first, those that a curve depends on together with it. */
Val *range_extreme(Nest *n, const Linear *index, bool greatest) {
    int parted = find_parted(index);
    for (int i = n->ncounters - 1; i >= 0; i--) {
        int curve = parted < 0 ? range_find_curve(n, index, i) : -1;
        if (curve >= 0) return range_curve_extreme(n, index, curve, greatest);
        if (index->factors[i] && n->counters[i].varies) return without_counter(n, index, i, greatest);
    }
    if (parted >= 0) return with_parts(n, index, parted, index->own[parted - OWN].parts, greatest);
    Val *at = index->base;
    n->is_loose = is_loose(n, index);
    for (int i = 0; i < FACTORS; i++)
        if (index->factors[i])
            at = range_binary(n, OP_add, at,
                              part_at(n, index->factors[i], range_between(n, index, i), greatest));
    return at;
}

bool range_find_ends(Nest *n, const Linear *wide, Between *between) {
    *between = (Between){0};
    if (!range_require_moderate(n, wide)) return false;
    between->low = range_extreme(n, wide, false);
    between->is_loose = n->is_loose;
    between->high = range_extreme(n, wide, true);
    between->is_loose |= n->is_loose;
    between->ways = range_ways(n, wide);
    return between->low && between->high;
}

void range_require_of_type(Nest *n, const Between *between, const Type *type) {
    int64_t low, high;
    loop_limits_of(type, &low, &high);
    range_require_ordered(n, range_number(n, low), between->low);
    range_require_ordered(n, between->high, range_number(n, high));
}

/* What the program computes in 32 bits is the sum itself. */
bool range_find_between(Nest *n, const Linear *wide, const Type *type, Between *between) {
    if (!range_find_ends(n, wide, between)) return false;
    range_require_of_type(n, between, type);
    return true;
}

/* ---- linear indices */

static bool linear_inst(Nest *n, const Inst *inst, Linear *result) {
    Linear a, b;
    int64_t known;
    bool is_binary = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul;
    if (inst->op == OP_shl && val_is_int(inst_operand(inst, 1), &known) && known >= 0 && known < 31 &&
        range_linear(n, inst_operand(inst, 0), &a)) {
        *result = range_times(n, &a, int_of(n, 1 << known));
        return true;
    }
    if (inst->op == OP_convert || inst->op == OP_bitcast)
        return range_linear(n, inst_operand(inst, 0), result);
    if (!is_binary || !range_linear(n, inst_operand(inst, 0), &a) ||
        !range_linear(n, inst_operand(inst, 1), &b))
        return false;
    if (inst->op == OP_mul) return multiply(n, &a, &b, result) || multiply(n, &b, &a, result);
    return range_combine(n, &a, &b, inst->op == OP_sub, result);
}

static const Counter *counter_of_loop(const Nest *n, const Inst *loop) {
    for (int i = 0; i < n->ncounters; i++)
        if (n->counters[i].loop == loop) return &n->counters[i];
    return NULL;
}

Linear range_linear_counter(Nest *n, const Counter *counter, Val *factor) {
    Linear result = {.base = ir_const_zero(n->loop->func->module, factor->type)};
    result.factors[counter - n->counters] = factor;
    return result;
}

/* How often a loop inside runs, which nothing but its counter ends. */
static Val *rounds_inside(Nest *n, const Inst *loop) {
    const Counter *c = counter_of_loop(n, loop);
    if (!c || c->varies || !c->ends_loop || (c->step != 1 && c->step != -1)) return NULL;
    Val *last = range_binary(n, OP_sub, c->whole.high, c->whole.low);
    Val *rounds =
        range_binary(n, OP_max, range_binary(n, OP_add, last, range_number(n, 1)), range_number(n, 0));
    return build_convert(&n->before, rounds, range_type(n, TYPE_int));
}

/* What each round adds to a carried number, of type int; NULL: not always the same. */
static Val *step_of(Nest *n, const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    LoopSteps steps = loop_steps_by(n->jumps, loop, index);
    if (steps.known) return steps.least == steps.greatest ? int_of(n, (int32_t)steps.least) : NULL;
    if (loop->nregions != 2 || body->last->op != OP_yield || map_has(&n->jumps->of, PTR_KEY(loop)))
        return NULL;
    Val *next = inst_operand(body->last, index);
    if (next->kind != VAL_inst) return NULL;
    if (next->inst->op == OP_loop) {
        bool goes_on = inst_operand(next->inst, next->index) == body->params[index];
        Val *rounds = goes_on ? rounds_inside(n, next->inst) : NULL,
            *each = rounds ? step_of(n, next->inst, next->index) : NULL;
        return each ? range_binary(n, OP_mul, rounds, each) : NULL;
    }
    int term = loop_term(loop, index);
    Val *fixed = term >= 0 ? range_prepared(n, inst_operand(next->inst, term)) : NULL;
    if (!fixed) return NULL;
    Val *step = build_convert(&n->before, fixed, range_type(n, TYPE_int));
    return next->inst->op == OP_sub ? build_unary(&n->before, OP_neg, step) : step;
}

Linear range_own_number(Nest *n, const Val *v, Between between) {
    between.v = v;
    Linear result = {.base = int_of(n, 0), .own = {between}};
    result.factors[OWN] = int_of(n, 1);
    return result;
}

/* How often a loop inside runs, which nothing but its counter ends, by that of the loop around it: not less
 * than never, which is required. */
static bool find_rounds(Nest *n, const Inst *loop, const Counter *around, Linear *rounds) {
    const Counter *c = counter_of_loop(n, loop);
    Val *one = range_number(n, 1);
    if (!c || !c->ends_loop || (c->step != 1 && c->step != -1) || c->low.count != 1 || c->high.count != 1 ||
        !range_combine(n, &c->high.parts[0], &c->low.parts[0], true, rounds) || range_factors(rounds) != 1)
        return false;
    Val *factor = rounds->factors[around - n->counters];
    if (!factor) return false;
    rounds->base = range_binary(n, OP_add, rounds->base, one);
    const Between *whole = &around->whole;
    Val *first = range_binary(n, OP_mul, factor, whole->low),
        *last = range_binary(n, OP_mul, factor, whole->high);
    Val *least = range_binary(n, OP_add, rounds->base, range_binary(n, OP_min, first, last));
    range_require_ordered(n, range_number(n, 0), least);
    return true;
}

/* What each round of a loop adds to a carried number that goes through a loop inside; by its counter
 * alone. */
static bool find_changing_step(Nest *n, const Counter *c, int index, Linear *step) {
    const Region *body = c->loop->regions[1];
    const Inst *inside = NULL;
    int64_t known;
    if (c->loop->nregions != 2 || body->last->op != OP_yield || map_has(&n->jumps->of, PTR_KEY(c->loop)))
        return false;
    const Val *next = inst_operand(body->last, index);
    if (next->kind == VAL_inst && next->inst->op == OP_loop) inside = next->inst;
    if (!inside || inst_operand(inside, next->index) != body->params[index]) return false;
    Val *each = step_of(n, inside, next->index);
    if (!each || !val_is_int(each, &known) || known > MOST_BOUND_FACTOR || known < -MOST_BOUND_FACTOR ||
        !find_rounds(n, inside, c, step))
        return false;
    *step = range_times(n, step, range_number(n, known));
    return true;
}

/* A number that was `first` where the counter was `start`, and that gains s + t * i where the counter is i:
 *
 *     first + (i - start) * (2 * s + t * (start + i - 1)) / 2             counting down: first + (start - i) * (2 * s + t * (start + i + 1)) / 2
 *
 * One of the factors is even, for i - start and start + i - 1 are not both odd. */
static bool curved_carried(Nest *n, const Counter *c, const Val *v, Linear *result) {
    Linear start, first, step, one, other;
    Between x, y, product, between;
    const Type *type = range_type(n, TYPE_int);
    if ((c->step != 1 && c->step != -1) || !range_is_word(v->type) ||
        !range_exact(n, inst_operand(c->loop, c->index), &start) || !range_is_fixed(&start) ||
        !range_linear(n, inst_operand(c->loop, v->index), &first) || !range_is_fixed(&first) ||
        !find_changing_step(n, c, v->index, &step))
        return false;
    Val *sign = range_number(n, c->step), *rise = step.factors[c - n->counters];
    Linear counter = range_linear_counter(n, c, range_number(n, 1));
    one = range_times(n, &counter, sign);
    one.base = range_binary(n, OP_mul, build_unary(&n->before, OP_neg, sign), start.base);
    other = range_times(n, &counter, rise);
    other.base = range_binary(n, OP_mul, rise, range_binary(n, OP_sub, start.base, sign));
    other.base = range_binary(n, OP_add, other.base, range_binary(n, OP_mul, range_number(n, 2), step.base));
    if (!range_find_between(n, &one, type, &x) || !range_find_between(n, &other, type, &y) ||
        !range_product(n, &one, &other, &product) ||
        !range_even_half(n, &product, range_wide(n, first.base), &between))
        return false;
    range_require_of_type(n, &between, v->type);
    *result = range_own_number(n, v, between);
    return true;
}

/* Beside the counter of its loop. */
static bool linear_beside(Nest *n, const Counter *c, const Val *v, Linear *result) {
    Linear start, first, rounds;
    Val *step = c->step ? step_of(n, c->loop, v->index) : NULL;
    int64_t by = c->step < 0 ? -c->step : c->step, known;
    if (!step) return c->step && curved_carried(n, c, v, result);
    if (by != 1) step = val_is_int(step, &known) && known % by == 0 ? int_of(n, known / by) : NULL;
    if (!step || !range_linear(n, inst_operand(c->loop, c->index), &start) ||
        !range_linear(n, inst_operand(c->loop, v->index), &first))
        return false;
    Linear counter = range_linear_counter(n, c, int_of(n, 1));
    if (!range_combine(n, c->step > 0 ? &counter : &start, c->step > 0 ? &start : &counter, true, &rounds))
        return false;
    rounds = range_times(n, &rounds, step);
    return range_combine(n, &rounds, &first, false, result);
}

static bool linear_carried(Nest *n, const Val *v, Linear *result) {
    const Counter *c = v->region->owner ? counter_of_loop(n, v->region->owner) : NULL;
    Val *others = n->safe;
    if (!c || v->region != seen_region(n->access, c)) return false;
    if (linear_beside(n, c, v, result)) return true;
    n->safe = others;
    return range_own_carried(n, c, v, result);
}

bool range_is_bounding(const Linear *part) {
    int64_t known;
    for (int i = 0; i < FACTORS; i++) {
        if (!part->factors[i]) continue;
        if (!val_is_int(part->factors[i], &known) || known > MOST_BOUND_FACTOR || known < -MOST_BOUND_FACTOR)
            return false;
    }
    return true;
}

const Bound *range_parts(const Nest *n, Op op, const Linear *one, const Linear *other) {
    if (!range_is_bounding(one) || !range_is_bounding(other)) return NULL;
    Bound *parts = arena_new(n->scratch, Bound);
    *parts = (Bound){.parts = {*one, *other}, .count = 2, .op = op};
    return parts;
}

static bool find_rehearsed(Nest *n, const Val *v, Linear *result) {
    Interval seen = n->rehearses && inst_contains(n->loop, v) ? ir_rehearsed(n->rehearsal, v) : (Interval){0};
    if (!seen.known) return false;
    *result = range_number_between(n, v, seen.low, seen.high);
    return true;
}

/* Between what constants are. */
static bool between_lanes(Nest *n, Val *v, Linear *result) {
    int64_t low = INT32_MAX, high = INT32_MIN, known;
    for (int i = 0; i < v->inst->nargs; i++) {
        if (!val_is_int(inst_operand(v->inst, i), &known) || known < INT32_MIN || known > INT32_MAX)
            return false;
        if (known < low) low = known;
        if (known > high) high = known;
    }
    *result = range_number_between(n, v, low, high);
    return true;
}

/* Of all lanes. */
static bool linear_vector(Nest *n, Val *v, Linear *result) {
    if (v->kind != VAL_inst) return false;
    if (v->inst->op == OP_splat) return range_linear(n, inst_operand(v->inst, 0), result);
    return v->inst->op == OP_vec ? between_lanes(n, v, result) : linear_inst(n, v->inst, result);
}

/* Of less than 32 bits: what is converted, or computed so, is required to fit. */
static bool linear_narrow(Nest *n, const Inst *inst, Linear *result) {
    const Type *type = inst->results[0]->type;
    Linear wide;
    Between between;
    if (inst->op == OP_convert) {
        if (!range_between_of(n, inst_operand(inst, 0), &wide, &between)) return false;
        range_require_of_type(n, &between, type);
        return range_linear(n, inst_operand(inst, 0), result);
    }
    if (!linear_inst(n, inst, result)) return false;
    wide = range_widened(n, result);
    return range_find_between(n, &wide, type, &between);
}

/* Of 64 bits, the lower 32. */
bool range_linear(Nest *n, Val *v, Linear *result) {
    const Type *type = type_element(v->type);
    bool is_narrow = type_is_integer(type) && type_bits(type) < 32;
    if (!type_is_integer(type) || ++n->terms > RANGE_TERMS) return false;
    if (v->type->kind == TYPE_vector) return !is_narrow && linear_vector(n, v, result);
    if (find_rehearsed(n, v, result)) return true;
    const Counter *c = range_counter_of(n, v);
    if (c) {
        *result = range_linear_counter(n, c, int_of(n, 1));
        return true;
    }
    const Between *clipped = range_clipped(n, v);
    if (clipped) {
        *result = range_own_number(n, v, *clipped);
        return true;
    }
    bool is_inside = inst_contains(n->loop, v), is_inst = v->kind == VAL_inst;
    if (is_inside && is_inst && !is_narrow && linear_inst(n, v->inst, result)) return true;
    Val *fixed = range_prepared(n, v);
    if (!fixed && is_narrow) return is_inst && linear_narrow(n, v->inst, result);
    if (!fixed) return is_inst ? range_own(n, v, result) : linear_carried(n, v, result);
    *result = (Linear){.base = build_convert(&n->before, fixed, range_type(n, TYPE_int))};
    return true;
}
