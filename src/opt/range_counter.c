/* Counters of loops, for range.c: between what they begin with and what they are compared with, as numbers of
 * 64 bits.
 *
 * Loops may count up or down, by steps that need not be the same, to an end that may be a number ahead (i + 1
 * < n, or by what counts further out, i + lag < n), that is met (i != n), or that is asked for behind the
 * round. What a reverse pass counts down from, the rounds of a part of a loop, is a difference with the least
 * of two in it, of which each is a bound. */
#include "opt/range.h"

enum { SHORT_TRIP = 16 };

/* ---- bounds of counters: the numbers themselves, in 64 bits */

/* The value, of 64 bits, is within -2^31 .. 2^31 - 1. */
static void require_small(Nest *n, Val *v) {
    Val *narrow = build_convert(&n->before, v, range_type(n, TYPE_int));
    Val *narrowed = range_wide(n, narrow), *whole = range_wide(n, v);
    range_require(n, range_binary(n, OP_eq, narrowed, whole));
    if (!type_is_signed(v->type)) range_require_ordered(n, range_number(n, 0), range_wide(n, narrow));
}

static bool find_parts(const Val *v, Val *parts[2], Op *op);

static bool find_exact_between(Nest *n, Val *v, Linear *whole, Between *between) {
    return range_exact(n, v, whole) && range_find_ends(n, whole, between);
}

static bool exact_quotient(Nest *n, const Inst *inst, Between *between) {
    Linear whole;
    Between x, by;
    int64_t known;
    if (!val_is_int(inst_operand(inst, 1), &known) || known <= 0 ||
        !find_exact_between(n, inst_operand(inst, 0), &whole, &x))
        return false;
    if (known == 2 && range_half(n, &whole, between)) return true;
    by = (Between){.low = range_number(n, known), .high = range_number(n, known)};
    *between = range_grown(n, OP_div, &x, &by);
    range_quotient(n, &whole, OP_div, known, between);
    return true;
}

/* The least or the greatest of two. */
static bool exact_either(Nest *n, const Val *v, Between *between) {
    Val *parts[2];
    Op op;
    Linear one, other;
    Between x, y;
    if (!find_parts(v, parts, &op) || !find_exact_between(n, parts[0], &one, &x) ||
        !find_exact_between(n, parts[1], &other, &y))
        return false;
    *between = range_grown(n, op, &x, &y);
    between->parts = range_parts(n, op, &one, &other);
    return true;
}

bool range_exact_own(Nest *n, const Val *v, Between *between) {
    if (v->type->kind != TYPE_int64) return false;
    if (v->inst->op == OP_mul) return range_find_product(n, v->inst, between);
    return v->inst->op == OP_div ? exact_quotient(n, v->inst, between) : exact_either(n, v, between);
}

static bool exact_own(Nest *n, const Val *v, Linear *result) {
    Between between;
    if (!range_exact_own(n, v, &between)) return false;
    between.v = v;
    *result = (Linear){.base = range_number(n, 0), .own = {between}};
    result->factors[OWN] = range_number(n, 1);
    return true;
}

static bool exact_inst(Nest *n, const Inst *inst, Linear *result) {
    Linear a, b;
    if (inst->op == OP_convert)
        return range_is_word(inst->args[0]->type) && range_exact(n, inst_operand(inst, 0), result);
    bool is_sum = inst->op == OP_add || inst->op == OP_sub;
    if ((!is_sum && inst->op != OP_mul) || !range_exact(n, inst_operand(inst, 0), &a)) return false;
    if (is_sum)
        return range_exact(n, inst_operand(inst, 1), &b) &&
               range_combine(n, &a, &b, inst->op == OP_sub, result);
    Val *fixed = range_prepared(n, inst_operand(inst, 1));
    if (!fixed) return false;
    require_small(n, fixed);
    *result = range_times(n, &a, fixed);
    require_small(n, result->base);
    for (int i = 0; i < FACTORS; i++)
        if (result->factors[i]) require_small(n, result->factors[i]);
    return true;
}

bool range_exact(Nest *n, Val *v, Linear *result) {
    bool is_word = range_is_word(v->type);
    Linear narrow;
    Between between;
    if (!type_is_integer(v->type) || ++n->terms > RANGE_TERMS) return false;
    const Counter *c = range_counter_of(n, v);
    if (c) {
        *result = range_linear_counter(n, c, range_number(n, 1));
        return true;
    }
    Val *fixed = range_prepared(n, v);
    if (fixed) {
        if (range_is_long(v->type)) require_small(n, fixed);
        *result = (Linear){.base = range_wide(n, fixed)};
        return true;
    }
    if (!is_word)
        return v->type->kind == TYPE_int64 && v->kind == VAL_inst &&
               (exact_inst(n, v->inst, result) || exact_own(n, v, result));
    if (!range_linear(n, v, &narrow)) return false;
    *result = range_widened(n, &narrow);
    return range_find_between(n, result, v->type, &between);
}

/* a < b ? b - a : 0, where nothing overflows: the greatest of 0 and b - a. */
static bool is_distance(const Val *distance, const Val *otherwise, const Val *low, const Val *high) {
    const Inst *sub = distance->kind == VAL_inst && distance->inst->op == OP_sub ? distance->inst : NULL;
    return sub && type_is_signed(distance->type) && val_is_zero(otherwise) &&
           val_is_same(inst_operand(sub, 0), high) && val_is_same(inst_operand(sub, 1), low);
}

/* The least or the greatest of two, also as a choice by their comparison; false: it is neither. */
static bool find_parts(const Val *v, Val *parts[2], Op *op) {
    const Inst *inst = v->kind == VAL_inst ? v->inst : NULL;
    if (!inst || (inst->op != OP_min && inst->op != OP_max && inst->op != OP_select)) return false;
    Val *first = inst_operand(inst, 0);
    parts[0] = inst->op == OP_select ? inst_operand(inst, 2) : first;
    parts[1] = inst_operand(inst, 1);
    *op = (Op)inst->op;
    if (inst->op != OP_select) return true;
    const Inst *test = first->kind == VAL_inst ? first->inst : NULL;
    if (!test || (test->op != OP_lt && test->op != OP_le)) return false;
    const Val *low = inst_operand(test, 0), *high = inst_operand(test, 1);
    bool is_min = val_is_same(low, parts[1]) && val_is_same(high, parts[0]);
    *op = is_min ? OP_min : OP_max;
    return is_min || is_distance(parts[1], parts[0], low, high) ||
           (val_is_same(low, parts[0]) && val_is_same(high, parts[1]));
}

/* Something that matters only where it is above a number: of the greatest of a constant below that and
 * something else, the latter. */
static Val *above(Val *v, int64_t least) {
    Val *parts[2];
    Op op;
    int64_t known;
    if (!find_parts(v, parts, &op) || op != OP_max) return v;
    for (int i = 0; i < 2; i++)
        if (val_is_int(parts[i], &known) && known <= least) return parts[1 - i];
    return v;
}

static bool find_bound(Nest *n, Val *v, int64_t least, Bound *bound);

/* Adds a sum, or takes it away; false: there are too many numbers of their own. */
static bool move_bound(Nest *n, Bound *bound, const Linear *by, bool negative) {
    for (int i = 0; i < bound->count; i++)
        if (!range_combine(n, &bound->parts[i], by, negative, &bound->parts[i])) return false;
    return true;
}

/* A sum with, or a difference from, the least or the greatest of two, of 64 bits. */
static bool find_moved(Nest *n, const Inst *inst, int64_t least, Bound *bound) {
    Linear by;
    int64_t known;
    bool is_sum = inst->op == OP_add || inst->op == OP_sub;
    if (!is_sum || inst->results[0]->type->kind != TYPE_int64 || !range_exact(n, inst_operand(inst, 1), &by))
        return false;
    const Val *low = inst->op == OP_sub && least >= 0 ? range_extreme(n, &by, false) : NULL;
    bool is_more = low && val_is_int(low, &known) && known >= 0;
    if (!find_bound(n, inst_operand(inst, 0), is_more ? least : INT64_MIN, bound) || bound->count == 1)
        return false;
    return move_bound(n, bound, &by, inst->op == OP_sub);
}

/* It matters only where it is above `least`. */
static bool find_bound(Nest *n, Val *v, int64_t least, Bound *bound) {
    Val *parts[2] = {v};
    Op op = OP_min;
    bool is_inst = v->kind == VAL_inst && !range_prepared(n, v);
    if (is_inst && v->type->kind == TYPE_int64 && v->inst->op == OP_convert &&
        range_is_word(v->inst->args[0]->type))
        return find_bound(n, inst_operand(v->inst, 0), least, bound);
    bool is_pair = is_inst && find_parts(v, parts, &op);
    if (!is_pair) parts[0] = v;
    if (!is_pair && is_inst && find_moved(n, v->inst, least, bound)) return true;
    *bound = (Bound){.count = is_pair ? 2 : 1, .op = op};
    for (int i = 0; i < bound->count; i++)
        if (!range_exact(n, op == OP_min ? above(parts[i], least) : parts[i], &bound->parts[i])) return false;
    return true;
}

/* What a loop counts down from, or up to, as far as it has rounds: what is chosen where a is below b is b -
 * a. */
static Val *with_rounds(Nest *n, Val *v, int64_t least) {
    int64_t known;
    if (range_prepared(n, v)) return v;
    const Inst *inst = v->kind == VAL_inst && v->inst->op == OP_select ? v->inst : NULL;
    if (inst && val_is_int(inst_operand(inst, 2), &known) && known <= least) return inst_operand(inst, 1);
    return above(v, least);
}

static bool has_small_factors(Nest *n, const Bound *bound) {
    for (int i = 0; i < bound->count; i++) {
        if (!range_is_bounding(&bound->parts[i])) return false;
        if (!range_is_fixed(&bound->parts[i])) require_small(n, bound->parts[i].base);
    }
    return true;
}

static void add_ways(const Nest *n, const Bound *bound, Ways *ways) {
    for (int i = 0; i < bound->count; i++) {
        Ways more = range_ways(n, &bound->parts[i]);
        ways->rises |= more.rises;
        ways->falls |= more.falls;
    }
}

static bool bound_varies(const Bound *bound) {
    for (int i = 0; i < bound->count; i++)
        if (!range_is_fixed(&bound->parts[i])) return true;
    return false;
}

static Bound moved(Nest *n, Bound bound, Val *by) {
    for (int i = 0; i < bound.count; i++)
        bound.parts[i].base = range_binary(n, OP_add, bound.parts[i].base, by);
    return bound;
}

static Val *bound_extreme(Nest *n, const Bound *bound, bool greatest) {
    Val *first = range_extreme(n, &bound->parts[0], greatest),
        *second = bound->count == 2 ? range_extreme(n, &bound->parts[1], greatest) : first;
    return !first || !second || first == second ? first : range_binary(n, bound->op, first, second);
}

/* ---- counters */

/* How a loop ends. */
typedef struct Ending {
    LoopTest test;
    const Inst *inst; /* that is it */
    bool is_alone;    /* it ends in no other way */
    bool begins;      /* only if it has a round is the test what it ends by */
    /* int64: what is compared is so much more than the counter; NULL: it is the counter */
    const Linear *ahead;
} Ending;

/* How far a counter goes in a round. */
typedef struct Stride {
    Val *longest;   /* int64 */
    int64_t known;  /* the same, if it is a constant; else 0 */
    bool is_even;   /* it is so in every round */
    int64_t factor; /* it becomes so many times as large; 0: it is not multiplied */
    unsigned of;    /* counters that it goes with */
} Stride;

static bool is_moderate(Interval i) { return i.known && i.low >= INT32_MIN && i.high <= UINT32_MAX; }

static bool is_short(const Nest *n, Val *first, Val *limit, int64_t step) {
    Interval from = ir_interval(n->jumps, first), to = ir_interval(n->jumps, limit);
    if (step == 0 || !is_moderate(from) || !is_moderate(to)) return false;
    int64_t distance = step > 0 ? to.high - from.low : from.high - to.low;
    return distance / (step < 0 ? -step : step) <= SHORT_TRIP;
}

/* The last that it is, by steps of several from the first. */
static void take_whole_steps(Nest *n, Counter *c, bool up) {
    if (!c->size || val_is_one(c->size)) return;
    Val *distance = range_binary(n, OP_sub, c->between.high, c->between.low);
    Val *rest = range_binary(n, OP_rem, distance, c->size);
    if (up) c->between.high = range_binary(n, OP_sub, c->between.high, rest);
    else c->between.low = range_binary(n, OP_add, c->between.low, rest);
}

/* One at least, which is required where it is no constant. */
static Val *size_of(Nest *n, const Stride *stride, bool up) {
    if (!stride->is_even) return NULL;
    Val *size = up ? stride->longest : build_unary(&n->before, OP_neg, stride->longest);
    return stride->known ? size : range_binary(n, OP_max, size, range_number(n, 1));
}

/* The least and the greatest number of the type of a counter; those of 64 bits have to fit into an int. */
static Val *end_of_type(Nest *n, const Type *type, bool greatest) {
    int64_t low, high;
    bool is_long = type_bits(type) > 32;
    loop_limits_of(is_long ? range_type(n, TYPE_int) : type, &low, &high);
    if (is_long && !type_is_signed(type)) low = 0;
    return range_number(n, greatest ? high : low);
}

/* The counter must not wrap around where it leaves its range. */
static void require_end(Nest *n, const Counter *c, const LoopTest *test, const Stride *stride) {
    const Type *type = c->between.v->type;
    int64_t step = stride->known;
    if (step != 0 && loop_cannot_wrap(test, step < 0 ? -step : step)) return;
    Val *last = test->up ? c->between.high : c->between.low;
    Val *after = stride->factor ? range_binary(n, OP_mul, last, range_number(n, stride->factor))
                                : range_binary(n, OP_add, last, stride->longest);
    if (test->up) range_require_ordered(n, after, end_of_type(n, type, true));
    else range_require_ordered(n, end_of_type(n, type, false), after);
}

/* Nor must what is compared; the counter does not where that is further. */
static bool require_ahead(Nest *n, const Counter *c, const Ending *ending, const Stride *stride) {
    bool up = ending->test.up;
    Bound first = up ? c->low : c->high, last = up ? c->high : c->low;
    Val *ends[] = {end_of_type(n, c->between.v->type, false), end_of_type(n, c->between.v->type, true)};
    int64_t known;
    if (!move_bound(n, &first, ending->ahead, false) || !move_bound(n, &last, ending->ahead, false))
        return false;
    Val *low = bound_extreme(n, &first, false), *high = bound_extreme(n, &first, true),
        *end = bound_extreme(n, &last, up), *least = range_extreme(n, ending->ahead, !up);
    if (!low || !high || !end || !least) return false;
    bool is_further = val_is_int(least, &known) && (up ? known >= 0 : known <= 0);
    if (!is_further && up) range_require_ordered(n, c->between.high, ends[1]);
    if (!is_further && !up) range_require_ordered(n, ends[0], c->between.low);
    end = range_binary(n, OP_add, end, stride->longest);
    range_require_ordered(n, ends[0], up ? low : range_binary(n, OP_min, low, end));
    range_require_ordered(n, up ? range_binary(n, OP_max, high, end) : high, ends[1]);
    return true;
}

/* That the outermost has one; of the numbers themselves, from which compilers conclude. */
static void require_round(Nest *n, const Counter *c, const Ending *ending, Val *limit) {
    const LoopTest *test = &ending->test;
    Val *from = range_prepared(n, inst_operand(c->loop, c->index)), *to = range_prepared(n, limit);
    if (ending->ahead || !from || !to || from->type != to->type)
        range_require_ordered(n, c->between.low, c->between.high);
    else
        range_require(
            n, range_binary(n, test->or_equal ? OP_le : OP_lt, test->up ? from : to, test->up ? to : from));
}

/* The constant that the greatest number of the counter is above if there are rounds. */
static int64_t least_of(const Ending *ending, const Val *first) {
    int64_t known;
    const LoopTest *test = &ending->test;
    if (test->or_equal || ending->begins || ending->ahead) return INT64_MIN;
    return val_is_int(test->up ? first : test->limit, &known) ? known : INT64_MIN;
}

/* That of another test of the same number. */
static bool join(Nest *n, const Counter *c) {
    for (int i = 0; i < n->ncounters; i++) {
        Counter *other = &n->counters[i];
        if (other->loop != c->loop || other->index != c->index) continue;
        if (other->varies || c->varies || other->ntests == MOST_TESTS) return true;
        other->tests[other->ntests++] = c->tests[0];
        other->between.low = range_binary(n, OP_max, other->between.low, c->between.low);
        other->between.high = range_binary(n, OP_min, other->between.high, c->between.high);
        other->whole = other->between;
        other->begins |= c->begins;
        return true;
    }
    return false;
}

static bool add_counter(Nest *n, const Inst *loop, const Ending *ending, const Stride *stride) {
    const LoopTest *test = &ending->test;
    Val *first = inst_operand(loop, test->index), *limit = ir_resolve(test->limit);
    int64_t least = least_of(ending, first);
    Val *begin = test->up ? first : with_rounds(n, first, least),
        *last = test->up ? with_rounds(n, limit, least) : limit;
    Bound from, to;
    if (!find_bound(n, begin, test->up ? INT64_MIN : least, &from) ||
        !find_bound(n, last, test->up ? least : INT64_MIN, &to))
        return false;
    if (ending->ahead && !move_bound(n, &to, ending->ahead, true)) return false;
    if (!has_small_factors(n, &from) || !has_small_factors(n, &to)) return false;
    Counter c = {.between = {.v = loop->regions[1]->params[test->index]},
                 .loop = loop,
                 .tests = {ending->inst},
                 .ntests = 1,
                 .index = test->index,
                 .step = stride->is_even ? stride->known : 0,
                 .size = size_of(n, stride, test->up),
                 .varies = bound_varies(&from) || bound_varies(&to),
                 .ends_loop = ending->is_alone && begin == first && last == limit,
                 .begins = ending->begins};
    if (c.varies && ending->begins) return false;
    Bound end = moved(n, to, range_number(n, test->or_equal ? 0 : test->up ? -1 : 1));
    c.low = test->up ? from : end;
    c.high = test->up ? end : from;
    add_ways(n, &from, &c.between.ways);
    add_ways(n, &to, &c.between.ways);
    c.between.ways.rises |= stride->of;
    c.between.ways.falls |= stride->of;
    c.between.low = bound_extreme(n, &c.low, false);
    c.between.high = bound_extreme(n, &c.high, true);
    if (!c.between.low || !c.between.high) return false;
    if (!c.varies) take_whole_steps(n, &c, test->up);
    if (ending->begins) range_require_ordered(n, c.between.low, c.between.high);
    if (loop == n->loop && n->loop->func->module->keeps_order) require_round(n, &c, ending, limit);
    if (ending->ahead && !require_ahead(n, &c, ending, stride)) return false;
    if (!ending->ahead) require_end(n, &c, test, stride);
    n->is_short &= is_short(n, first, limit, stride->known);
    n->is_reversed |= range_is_long(first->type);
    c.whole = c.between;
    if (!join(n, &c)) n->counters[n->ncounters++] = c;
    return true;
}

/* What each round adds, or takes away, which is no constant, but more than zero. */
static bool find_variable_stride(Nest *n, const Inst *loop, const LoopTest *test, Stride *stride) {
    const Region *body = loop->regions[1];
    Linear by;
    int term =
        loop->nregions == 2 && !map_has(&n->jumps->of, PTR_KEY(loop)) ? loop_term(loop, test->index) : -1;
    if (term < 0) return false;
    const Inst *next = inst_operand(body->last, test->index)->inst;
    Val *added = inst_operand(next, term);
    if (!range_is_word(added->type) || !range_exact(n, added, &by)) return false;
    if (next->op == OP_sub) by = range_times(n, &by, range_number(n, -1));
    Val *longest = range_extreme(n, &by, test->up), *shortest = range_extreme(n, &by, !test->up);
    if (!longest || !shortest) return false;
    Ways ways = range_ways(n, &by);
    *stride = (Stride){.longest = longest, .is_even = range_is_fixed(&by), .of = ways.rises | ways.falls};
    if (test->up) range_require_ordered(n, range_number(n, 1), shortest);
    else range_require_ordered(n, shortest, range_number(n, -1));
    return true;
}

/* By what constant a round multiplies a number, or divides it: 1 / factor is negative; 0: it does neither. */
static int64_t find_factor(const Nest *n, const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    int64_t known;
    if (loop->nregions != 2 || body->last->op != OP_yield || map_has(&n->jumps->of, PTR_KEY(loop))) return 0;
    const Val *next = inst_operand(body->last, index);
    const Inst *inst = next->kind == VAL_inst ? next->inst : NULL;
    if (!inst || inst_operand(inst, 0) != body->params[index] || inst->nargs != 2 ||
        !val_is_int(inst_operand(inst, 1), &known))
        return 0;
    bool is_shift = inst->op == OP_shl || inst->op == OP_shr;
    if (is_shift ? known < 1 || known > 16 : known < 2 || known > 1 << 16) return 0;
    if (is_shift) known = 1 << known;
    if (inst->op == OP_div || inst->op == OP_shr) return -known;
    return inst->op == OP_mul || inst->op == OP_shl ? known : 0;
}

/* i *= 2, from above zero; i /= 2, to what is not below zero. */
static bool find_geometric_stride(Nest *n, const Inst *loop, const Ending *ending, Stride *stride) {
    const LoopTest *test = &ending->test;
    int64_t factor = find_factor(n, loop, test->index), known;
    Linear first;
    if (factor == 0 || (factor > 0) != test->up || ending->ahead) return false;
    *stride = (Stride){.longest = range_number(n, 0), .factor = factor > 0 ? factor : 0};
    if (!test->up) return val_is_int(test->limit, &known) && known >= 0;
    if (!range_exact(n, inst_operand(loop, test->index), &first) || !range_is_fixed(&first)) return false;
    range_require_ordered(n, range_number(n, 1), first.base);
    return true;
}

/* The longest step that it takes. */
static bool find_stride(Nest *n, const Inst *loop, const Ending *ending, Stride *stride) {
    const LoopTest *test = &ending->test;
    LoopSteps steps = loop_steps_by(n->jumps, loop, test->index);
    if (!steps.known)
        return find_variable_stride(n, loop, test, stride) || find_geometric_stride(n, loop, ending, stride);
    int64_t step = test->up ? steps.greatest : steps.least;
    bool is_one_way = test->up ? steps.least >= 0 && step > 0 : steps.greatest <= 0 && step < 0;
    *stride =
        (Stride){.longest = range_number(n, step), .known = step, .is_even = steps.least == steps.greatest};
    return is_one_way && step <= INT32_MAX && step >= INT32_MIN;
}

static bool find_counter(Nest *n, const Inst *loop, const Ending *ending) {
    Stride stride;
    Val *others = n->safe;
    bool is_found = n->ncounters < MOST_COUNTERS && find_stride(n, loop, ending, &stride) &&
                    add_counter(n, loop, ending, &stride);
    if (!is_found) n->safe = others;
    return is_found;
}

/* i != end: where steps of one lead from the first to the last, they do not jump over it. */
static bool goes_straight_to(const Nest *n, const Inst *loop, LoopTest *test) {
    LoopSteps steps = loop_steps_by(n->jumps, loop, test->index);
    test->up = steps.greatest > 0;
    return steps.known && steps.least == steps.greatest && (steps.least == 1 || steps.least == -1);
}

/* i + 1 < end */
static bool find_ahead(Nest *n, const Inst *loop, const Inst *test, Linear *ahead, Ending *ending) {
    LoopAhead by;
    if (!loop_comparison_ahead(loop, test, &ending->test, &by) || !range_is_word(by.by->type) ||
        !range_exact(n, by.by, ahead))
        return false;
    ending->ahead = ahead;
    if (by.negative) *ahead = range_times(n, ahead, range_number(n, -1));
    return true;
}

/* ---- tests behind a round */

/* What says whether there is another. */
typedef struct Flag {
    const Val *first, *next;
} Flag;

static bool continues(const Nest *n, const Inst *loop) {
    const InstVec *jumps = map_get(&n->jumps->of, PTR_KEY(loop));
    for (int i = 0; jumps && i < jumps->count; i++)
        if (jumps->at[i]->op == OP_continue) return true;
    return false;
}

static bool find_flag(const Nest *n, const Inst *loop, const Val *condition, Flag *flag) {
    const Inst *yield = loop->regions[1]->last;
    if (condition->kind != VAL_param || condition->region != loop->regions[0] || loop->nregions != 2 ||
        yield->op != OP_yield || continues(n, loop))
        return false;
    *flag = (Flag){inst_operand(loop, condition->index), inst_operand(yield, condition->index)};
    return true;
}

/* Was the same asked of a number before the first round? `ahead`: how much more that is than the first of the
 * counter. */
static bool begins_alike(const Flag *flag, const Inst *test, int side, const Val *first, int64_t ahead) {
    const Inst *asked = flag->first->kind == VAL_inst ? flag->first->inst : NULL;
    if (!asked || asked->op != test->op ||
        !val_is_same(inst_operand(asked, 1 - side), inst_operand(test, 1 - side)))
        return false;
    const Val *before = inst_operand(asked, side);
    const Inst *sum = first->kind == VAL_inst ? first->inst : NULL;
    int64_t known = 0;
    if (ahead == 0) return val_is_same(before, first);
    if (!sum || (sum->op != OP_add && sum->op != OP_sub) || !val_is_same(inst_operand(sum, 0), before) ||
        !val_is_int(inst_operand(sum, 1), &known))
        return false;
    return (sum->op == OP_add ? -known : known) == ahead;
}

/* Whether what the next round begins with is below the limit, or what this one did: while (i-- > 0). */
static bool find_late_counter(Nest *n, const Inst *loop, const Inst *test, int side, int index,
                              const Flag *flag, bool is_alone) {
    const Region *body = loop->regions[1];
    const Val *compared = inst_operand(test, side);
    LoopSteps steps = loop_steps_by(n->jumps, loop, index);
    bool is_before = compared == body->params[index];
    int64_t known;
    if (!is_before && compared != inst_operand(body->last, index)) return false;
    if (is_before && (!steps.known || steps.least != steps.greatest || steps.least == INT64_MIN))
        return false;
    int64_t ahead = is_before ? -steps.least : 0;
    const Linear sum = {.base = range_number(n, ahead)};
    bool begins = !begins_alike(flag, test, side, inst_operand(loop, index), ahead),
         is_sure = !begins || (val_is_int(flag->first, &known) && known);
    Ending ending = {.test = {index, inst_operand(test, 1 - side), side == 0, test->op == OP_le},
                     .inst = test,
                     .is_alone = is_alone && is_sure,
                     .begins = begins,
                     .ahead = is_before ? &sum : NULL};
    return find_counter(n, loop, &ending);
}

static bool find_late_test(Nest *n, const Inst *loop, const Inst *test, const Flag *flag, bool is_alone) {
    for (int side = 0; side < 2 && (test->op == OP_lt || test->op == OP_le); side++)
        for (int i = 0; i < loop->nargs && type_is_integer(inst_operand(test, 0)->type); i++)
            if (find_late_counter(n, loop, test, side, i, flag, is_alone)) return true;
    return false;
}

/* ---- two counters that come nearer to each other, until they meet: while (low < high) ... */

/* What both are in the last round, if each goes by equal steps: instead of what they are compared with. */
static void find_meeting(Nest *n, Ending ends[2], Val *const firsts[2], const LoopSteps steps[2]) {
    Val *from = range_prepared(n, firsts[0]), *to = range_prepared(n, firsts[1]);
    int64_t up = steps[0].least, down = -steps[1].least;
    if (!from || !to || up != steps[0].greatest || down != -steps[1].greatest) return;
    from = range_wide(n, from);
    to = range_wide(n, to);
    Val *way = range_binary(n, OP_sub, to, from);
    if (!ends[0].test.or_equal) way = range_binary(n, OP_sub, way, range_number(n, 1));
    Val *rounds = range_binary(n, OP_div, way, range_number(n, up + down));
    ends[0].test.limit = range_binary(n, OP_add, from, range_binary(n, OP_mul, rounds, range_number(n, up)));
    ends[1].test.limit = range_binary(n, OP_sub, to, range_binary(n, OP_mul, rounds, range_number(n, down)));
    ends[0].test.or_equal = ends[1].test.or_equal = true;
}

static bool is_small(int64_t step) { return step >= -MOST_BOUND_FACTOR && step <= MOST_BOUND_FACTOR; }

/* Neither leaves its range before they meet, unless the other does. */
static bool find_both(Nest *n, const Inst *loop, const Inst *test) {
    Ending ends[2];
    LoopSteps steps[2];
    Val *firsts[2], *others = n->safe;
    int count = n->ncounters;
    for (int i = 0; i < 2; i++) {
        const Val *side = inst_operand(test, i);
        if (side->kind != VAL_param || side->region != loop->regions[0] || !range_is_word(side->type))
            return false;
        firsts[i] = inst_operand(loop, side->index);
        steps[i] = loop_steps_by(n->jumps, loop, side->index);
        ends[i] = (Ending){.test = {side->index, NULL, i == 0, test->op == OP_le}, .inst = test};
        if (!steps[i].known || !is_small(steps[i].least) || !is_small(steps[i].greatest)) return false;
    }
    if (steps[0].least < 0 || steps[0].greatest == 0 || steps[1].greatest > 0 || steps[1].least == 0)
        return false;
    for (int i = 0; i < 2; i++) ends[i].test.limit = firsts[1 - i];
    find_meeting(n, ends, firsts, steps);
    const Counter *before = arena_copy(n->scratch, n->counters, sizeof n->counters); /* tests may join them */
    if (find_counter(n, loop, &ends[0]) && find_counter(n, loop, &ends[1])) return true;
    n->ncounters = count;
    n->safe = others;
    memcpy(n->counters, before, sizeof n->counters);
    return false;
}

/* ---- the condition of a loop */

static bool has_counter(const Nest *n, const Inst *loop) {
    return n->ncounters > 0 && n->counters[n->ncounters - 1].loop == loop;
}

/* A comparison of a counter with something fixed, or with another that comes nearer. */
static bool find_test(Nest *n, const Inst *loop, const Inst *test, bool is_alone) {
    Ending ending = {.inst = test, .is_alone = is_alone, .begins = test->op == OP_ne};
    Linear ahead;
    if ((test->op == OP_lt || test->op == OP_le) && find_both(n, loop, test)) return true;
    if (!loop_comparison(loop, test, &ending.test) && !find_ahead(n, loop, test, &ahead, &ending))
        return false;
    if (test->op == OP_ne && (has_counter(n, loop) || !goes_straight_to(n, loop, &ending.test))) return false;
    return find_counter(n, loop, &ending);
}

/* What else has to be true where an `if` says false otherwise; NULL: it does not. */
static const Val *second_part(const Val *condition) {
    const Inst *inst = condition->inst;
    if (inst->op != OP_if || inst->nregions != 2) return NULL;
    const Inst *then = inst->regions[0]->last, *otherwise = inst->regions[1]->last;
    bool is_and = then && otherwise && then->op == OP_yield && otherwise->op == OP_yield &&
                  val_is_zero(inst_operand(otherwise, condition->index));
    return is_and ? inst_operand(then, condition->index) : NULL;
}

/* The condition of the loop is such a test, asked before or behind a round, or has some as its parts. */
static bool find_ending(Nest *n, const Inst *loop, const Val *condition, bool is_alone, const Flag *late) {
    Flag flag;
    if (!late && find_flag(n, loop, condition, &flag))
        return find_ending(n, loop, flag.next, is_alone, &flag);
    const Inst *inst = condition->kind == VAL_inst ? condition->inst : NULL;
    const Val *second = !inst ? NULL : inst->op == OP_and ? inst_operand(inst, 1) : second_part(condition);
    if (second) {
        bool is_found = find_ending(n, loop, inst_operand(inst, 0), false, late);
        return find_ending(n, loop, second, false, late) || is_found;
    }
    return inst &&
           (late ? find_late_test(n, loop, inst, late, is_alone) : find_test(n, loop, inst, is_alone));
}

bool range_add_loop(Nest *n, const Inst *loop) {
    const Inst *end = loop->regions[0]->last;
    n->terms = 0;
    if (!end || end->op != OP_yield) return false;
    return find_ending(n, loop, inst_operand(end, 0), !loop_body_leaves(loop), NULL);
}
