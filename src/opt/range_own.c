/* Numbers of a nest (range.c) that are no sums of counters, but between bounds: remainders, quotients, the
 * least or the greatest of two, magnitudes, parts of the bits, choices by a condition, and what a loop
 * carries on in another way than by equal steps.
 *
 *     if (x[i] > 0) y[w++] = x[i];             w is at most the number of rounds
 *     if (x[i] > x[best]) best = i;            best is what it was before, or i
 *     at = at + 1 == n ? 0 : at + 1;           if at is within 0 .. n - 1, it is so in the next round */
#include "opt/range.h"

/* Within 32 bits. */
bool range_between_of(Nest *n, Val *v, Linear *wide, Between *between) {
    Linear narrow;
    bool is_word = range_is_word(v->type);
    if (is_word ? !range_linear(n, v, &narrow) : !range_exact(n, v, wide)) return false;
    if (is_word) *wide = range_widened(n, &narrow);
    return range_find_between(n, wide, is_word ? v->type : range_type(n, TYPE_int), between);
}

/* Divided by what is not changed; with sign, of what is not negative. */
static bool between_remainder(Nest *n, const Inst *inst, Between *between) {
    Val *by = range_prepared(n, inst_operand(inst, 1)), *others = n->safe;
    Linear whole;
    Between x;
    if (!by) return false;
    bool is_known = range_between_of(n, inst_operand(inst, 0), &whole, &x),
         sign = type_is_signed(inst->results[0]->type);
    if (!is_known && sign) return false;
    Val *zero = range_number(n, 0), *end = range_binary(n, OP_sub, range_wide(n, by), range_number(n, 1));
    if (!is_known) {
        n->safe = others;
        x = (Between){.high = end};
    } else if (sign) {
        range_require_ordered(n, zero, x.low);
    }
    range_require_ordered(n, zero, end);
    unsigned of = x.ways.rises | x.ways.falls;
    *between = (Between){
        .low = zero, .high = range_binary(n, OP_min, x.high, end), .ways = {of, of}, .is_loose = x.is_loose};
    return true;
}

/* i & -8, which does not fall as i rises. */
static bool between_floors(Nest *n, const Inst *inst, int64_t mask, Between *between) {
    Linear whole;
    Between x, y = {.low = range_number(n, mask), .high = range_number(n, mask)};
    if ((-mask & (-mask - 1)) != 0 || !range_between_of(n, inst_operand(inst, 0), &whole, &x)) return false;
    *between = range_grown(n, OP_and, &x, &y);
    return true;
}

/* Whatever it is a part of: i & 7. */
static bool between_mask(Nest *n, const Inst *inst, Between *between) {
    Linear whole;
    Between x;
    int64_t known;
    if (val_is_int(inst_operand(inst, 1), &known) && known < 0)
        return between_floors(n, inst, known, between);
    for (int i = 0; i < 2; i++) {
        Val *mask = range_prepared(n, inst_operand(inst, i)), *others = n->safe;
        if (!mask) continue;
        unsigned of = 0;
        if (range_between_of(n, inst_operand(inst, 1 - i), &whole, &x)) of = x.ways.rises | x.ways.falls;
        n->safe = others;
        *between = (Between){.low = range_number(n, 0), .high = range_wide(n, mask), .ways = {of, of}};
        range_require_ordered(n, between->low, between->high);
        return true;
    }
    return false;
}

static bool between_magnitude(Nest *n, const Inst *inst, Between *between) {
    Linear whole;
    Between x;
    if (!range_between_of(n, inst_operand(inst, 0), &whole, &x)) return false;
    unsigned of = x.ways.rises | x.ways.falls;
    Val *low = build_unary(&n->before, OP_neg, x.high), *high = build_unary(&n->before, OP_neg, x.low);
    low = range_binary(n, OP_max, range_binary(n, OP_max, low, x.low), range_number(n, 0));
    *between = (Between){
        .low = low, .high = range_binary(n, OP_max, x.high, high), .ways = {of, of}, .is_loose = x.is_loose};
    range_require_of_type(n, between, inst->results[0]->type);
    return true;
}

/* What is not negative, by what is not changed. */
static bool between_shares(Nest *n, const Inst *inst, Between *between) {
    Val *by = range_prepared(n, inst_operand(inst, 1));
    Linear whole;
    Between x;
    if (!by || val_is_const(by) || !range_between_of(n, inst_operand(inst, 0), &whole, &x)) return false;
    Val *one = range_number(n, 1), *wide = range_wide(n, by);
    range_require_ordered(n, range_number(n, 0), x.low);
    range_require_ordered(n, one, wide);
    wide = range_binary(n, OP_max, wide, one);
    Between divisor = {.low = wide, .high = wide};
    *between = range_grown(n, OP_div, &x, &divisor);
    return true;
}

/* ---- choices */

/* What a value is if the condition holds, or does not; NULL: it is no choice. */
static Val *chosen(const Val *v, int way) {
    if (v->inst->op == OP_select) return inst_operand(v->inst, 1 + way);
    const Inst *end = v->inst->op == OP_if && v->inst->nregions == 2 ? v->inst->regions[way]->last : NULL;
    return end && end->op == OP_yield ? inst_operand(end, v->index) : NULL;
}

static Between either(Nest *n, const Between *x, const Between *y) {
    unsigned of = x->ways.rises | x->ways.falls | y->ways.rises | y->ways.falls;
    return (Between){.low = range_binary(n, OP_min, x->low, y->low),
                     .high = range_binary(n, OP_max, x->high, y->high),
                     .ways = {of, of},
                     .is_loose = x->is_loose || y->is_loose};
}

static bool is_choice(const Val *v) {
    return v->kind == VAL_inst && (v->inst->op == OP_select || v->inst->op == OP_if);
}

/* Where it is `carried`, what a round began with, it stays that: the other way tells what it becomes. */
static bool between_choice(Nest *n, const Val *v, const Val *carried, Between *between) {
    Val *condition = inst_operand(v->inst, 0);
    Between ways[2];
    int count = 0;
    if (++n->terms > RANGE_TERMS) return false;
    for (int k = 0; k < 2; k++) {
        Val *way = chosen(v, k);
        if (!way) return false;
        if (way == carried) continue;
        Linear whole;
        Clips saved = range_save_clips(n);
        range_clip(n, condition, k == 0);
        bool is_found = carried && is_choice(way) ? between_choice(n, way, carried, &ways[count++])
                                                  : range_between_of(n, way, &whole, &ways[count++]);
        range_restore_clips(n, &saved);
        if (!is_found) return false;
    }
    if (count > 0) *between = count == 2 ? either(n, &ways[0], &ways[1]) : ways[0];
    return count > 0;
}

Between range_grown(Nest *n, Op op, const Between *x, const Between *y) {
    return (Between){.low = range_binary(n, op, x->low, y->low),
                     .high = range_binary(n, op, x->high, y->high),
                     .ways = {x->ways.rises | y->ways.rises, x->ways.falls | y->ways.falls},
                     .is_loose = x->is_loose || y->is_loose};
}

/* ---- the least or the greatest of two, of which one may be anything: clamp(int(x), 0, n - 1) */

/* Of two bounds that hold both, and of which one may be missing. */
static Val *nearer(Nest *n, Op op, Val *a, Val *b) { return !a ? b : !b ? a : range_binary(n, op, a, b); }

static Val *further(Nest *n, Op op, Val *a, Val *b) { return a && b ? range_binary(n, op, a, b) : NULL; }

static Between open_either(Nest *n, const Inst *inst);

/* Bounds that are not known are NULL. */
static Between open_between(Nest *n, Val *v, Linear *whole, bool *is_known) {
    Val *others = n->safe;
    Between between;
    *is_known = range_between_of(n, v, whole, &between);
    if (*is_known) return between;
    n->safe = others;
    bool is_either = v->kind == VAL_inst && (v->inst->op == OP_min || v->inst->op == OP_max);
    if (is_either) return open_either(n, v->inst);
    return (Between){.low = type_is_signed(v->type) ? NULL : range_number(n, 0)};
}

static Between open_either(Nest *n, const Inst *inst) {
    Op op = (Op)inst->op;
    Linear one, other;
    bool is_known[2];
    Between x = open_between(n, inst_operand(inst, 0), &one, &is_known[0]),
            y = open_between(n, inst_operand(inst, 1), &other, &is_known[1]);
    bool is_min = op == OP_min;
    return (Between){.low = (is_min ? further : nearer)(n, op, x.low, y.low),
                     .high = (is_min ? nearer : further)(n, op, x.high, y.high),
                     .parts = is_known[0] && is_known[1] ? range_parts(n, op, &one, &other) : NULL,
                     .ways = {x.ways.rises | y.ways.rises, x.ways.falls | y.ways.falls},
                     .is_loose = x.is_loose || y.is_loose};
}

static bool between_either(Nest *n, const Inst *inst, Between *between) {
    *between = open_either(n, inst);
    return between->low && between->high;
}

/* It grows with its operand, by a constant that is not negative. */
static bool between_monotone(Nest *n, const Inst *inst, Between *between) {
    Linear whole;
    Between x, y;
    int64_t known;
    bool is_shift = inst->op == OP_shr;
    if (!range_between_of(n, inst_operand(inst, 0), &whole, &x)) return false;
    if (!val_is_int(inst_operand(inst, 1), &known) || known < !is_shift || (is_shift && known > 31))
        return false;
    if (known == (is_shift ? 1 : 2) && range_half(n, &whole, between)) return true;
    y = (Between){.low = range_number(n, known), .high = range_number(n, known)};
    *between = range_grown(n, (Op)inst->op, &x, &y);
    range_quotient(n, &whole, (Op)inst->op, known, between);
    return true;
}

/* Factors without sign may be so large that their product has more than 63 bits. */
bool range_find_product(Nest *n, const Inst *inst, Between *between) {
    Linear one, other;
    Between x, y;
    const Type *type = inst->results[0]->type;
    if (!range_between_of(n, inst_operand(inst, 0), &one, &x) ||
        !range_between_of(n, inst_operand(inst, 1), &other, &y) || !range_product(n, &one, &other, between))
        return false;
    range_require_ordered(n, range_binary(n, OP_max, x.high, y.high), range_number(n, INT32_MAX));
    if (range_is_word(type)) range_require_of_type(n, between, type);
    return true;
}

/* Of 64 bits, a number that fits into 32. */
static bool between_long(Nest *n, Val *v, Between *between) {
    if (!range_exact_own(n, v, between)) return false;
    range_require_of_type(n, between, range_type(n, TYPE_int));
    return true;
}

/* The least of something without sign and of what is not changed, of 64 bits: whatever the former is, it is
 * not above the latter. */
static bool between_capped(Nest *n, const Inst *inst, Between *between) {
    if (inst->op != OP_min || inst->results[0]->type->kind != TYPE_uint64) return false;
    for (int i = 0; i < 2; i++) {
        Val *most = range_prepared(n, inst_operand(inst, i));
        if (!most) continue;
        Val *high = range_wide(n, most);
        range_require(n,
                      range_binary(n, OP_lt, most,
                                   build_convert(&n->before, range_number(n, INT64_C(1) << 31), most->type)));
        *between = (Between){.low = range_number(n, 0), .high = high, .is_loose = true};
        return true;
    }
    return false;
}

static bool between_word(Nest *n, const Val *v, Between *between) {
    const Inst *inst = v->inst;
    switch ((Op)inst->op) {
    case OP_rem: return between_remainder(n, inst, between);
    case OP_mul: return range_find_product(n, inst, between);
    case OP_and: return between_mask(n, inst, between);
    case OP_abs: return between_magnitude(n, inst, between);
    case OP_div: return between_shares(n, inst, between) || between_monotone(n, inst, between);
    case OP_shr: return between_monotone(n, inst, between);
    case OP_min:
    case OP_max: return between_either(n, inst, between);
    case OP_select:
    case OP_if: return between_choice(n, v, NULL, between);
    default: return false;
    }
}

bool range_own(Nest *n, Val *v, Linear *result) {
    Between between;
    bool is_found = range_is_word(v->type)
                        ? between_word(n, v, &between)
                        : between_capped(n, v->inst, &between) || between_long(n, v, &between);
    if (is_found) *result = range_own_number(n, v, between);
    return is_found;
}

/* ---- what a loop carries on */

/* By steps that differ: not further than by the longest in every round. By equal ones so far, beside a
 * counter that goes by what is no constant. */
static bool between_uneven(Nest *n, const Counter *c, LoopSteps steps, const Between *first,
                           Between *between) {
    int64_t down = steps.least < 0 ? steps.least : 0, up = steps.greatest > 0 ? steps.greatest : 0;
    if (!steps.known || c->varies || !c->size || down < -MOST_BOUND_FACTOR || up > MOST_BOUND_FACTOR)
        return false;
    Val *rounds = range_binary(n, OP_sub, c->whole.high, c->whole.low);
    rounds = range_binary(n, OP_div, range_binary(n, OP_max, rounds, range_number(n, 0)), c->size);
    *between = (Between){
        .low = range_binary(n, OP_add, first->low, range_binary(n, OP_mul, rounds, range_number(n, down))),
        .high = range_binary(n, OP_add, first->high, range_binary(n, OP_mul, rounds, range_number(n, up))),
        .is_loose = first->is_loose || steps.least != steps.greatest};
    return true;
}

/* That it does not go above, if it goes round: what begins anew there, as a condition or a remainder says;
 * NULL: nothing does. */
static Val *top_of_ring(Nest *n, const Val *next) {
    const Inst *inst = next->kind == VAL_inst ? next->inst : NULL;
    Val *one = range_number(n, 1);
    if (inst && inst->op == OP_rem) {
        Val *by = range_prepared(n, inst_operand(inst, 1));
        return by ? range_binary(n, OP_sub, range_wide(n, by), one) : NULL;
    }
    if (!inst || (inst->op != OP_select && inst->op != OP_if)) return NULL;
    const Val *condition = inst_operand(inst, 0);
    const Inst *test = condition->kind == VAL_inst ? condition->inst : NULL;
    if (!test || (test->op != OP_eq && test->op != OP_ne && test->op != OP_lt && test->op != OP_le))
        return NULL;
    for (int side = 0; side < 2; side++) {
        Val *limit = range_prepared(n, inst_operand(test, side)), *start = chosen(next, 0),
            *other = chosen(next, 1);
        if (!limit || !range_is_word(limit->type) || !start || !other) continue;
        bool is_falling = val_is_zero(limit);
        start = range_prepared(n, start) ? start : other;
        if (is_falling) return range_prepared(n, start) ? range_wide(n, range_prepared(n, start)) : NULL;
        limit = range_wide(n, limit);
        return test->op == OP_lt && side == 0 ? limit : range_binary(n, OP_sub, limit, one);
    }
    return NULL;
}

/* If it is within 0 .. top in one round, it is so in the next. */
static bool between_ring(Nest *n, const Val *v, Val *next, const Between *first, Between *between) {
    Val *top = top_of_ring(n, next), *zero = range_number(n, 0);
    Linear whole;
    Between then;
    if (!top) return false;
    *between = (Between){.v = v, .low = zero, .high = top};
    n->clipped[n->nclipped++] = *between;
    bool is_found = range_between_of(n, next, &whole, &then);
    n->nclipped--;
    if (!is_found) return false;
    range_require_ordered(n, zero, range_binary(n, OP_min, first->low, then.low));
    range_require_ordered(n, range_binary(n, OP_max, first->high, then.high), top);
    return true;
}

/* What it may become does not depend on what it is. */
static bool between_set(Nest *n, const Val *v, Val *next, const Between *first, Between *between) {
    Linear whole;
    Between then;
    n->looks_ahead = true;
    bool is_found =
        is_choice(next) ? between_choice(n, next, v, &then) : range_between_of(n, next, &whole, &then);
    n->looks_ahead = false;
    if (is_found) *between = either(n, first, &then);
    return is_found;
}

static bool between_carried(Nest *n, const Counter *c, const Val *v, Between *between) {
    const Inst *loop = c->loop, *yield = loop->regions[1]->last;
    Val *others = n->safe;
    Linear whole;
    Between first;
    if (!range_between_of(n, inst_operand(loop, v->index), &whole, &first)) return false;
    if (between_uneven(n, c, loop_steps_by(n->jumps, loop, v->index), &first, between)) return true;
    if (loop->nregions != 2 || yield->op != OP_yield || map_has(&n->jumps->of, PTR_KEY(loop))) return false;
    Val *next = inst_operand(yield, v->index);
    others = n->safe;
    if (between_set(n, v, next, &first, between)) return true;
    n->safe = others;
    return between_ring(n, v, next, &first, between);
}

/* In all rounds, whatever conditions hold where it is used. */
bool range_own_carried(Nest *n, const Counter *c, const Val *v, Linear *result) {
    Between between;
    if (n->looks_ahead || !range_is_word(v->type) || v->region != c->loop->regions[1]) return false;
    Clips saved = range_save_clips(n);
    range_drop_clips(n);
    bool is_found = between_carried(n, c, v, &between);
    range_restore_clips(n, &saved);
    if (!is_found) return false;
    range_require_of_type(n, &between, v->type);
    *result = range_own_number(n, v, between);
    return true;
}

Linear range_number_between(Nest *n, const Val *v, int64_t low, int64_t high) {
    return range_own_number(n, v, (Between){.low = range_number(n, low), .high = range_number(n, high)});
}
