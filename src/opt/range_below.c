/* Indices that a loop itself compares with the number of elements (range.c):
 *
 *     for (i = 0; i < b.getCount(); i++) ... b[i] ...
 *
 * They are in range in every round, so nothing is tested before the loop, and it is not there twice. The same
 * holds where a reverse pass counts the rounds of such a loop down, or does a few of them at a time:
 *
 *     count = max(b.getCount(), 0);
 *     for (left = count; 0 < left; left--) ... b[left - 1] ...
 *     for (at = 0; at < (count + 31) / 32; at++) {
 *         first = at * 32; end = min(first + 32, count);
 *         for (i = 0; i < (first < end ? end - first : 0); i++) ... b[first + i] ...
 *     } */
#include "opt/range.h"

enum { MOST_OPERANDS = 6 /* operands of operands */ };

/* ---- buffers */

/* One value, or two that are read from the same uniform. */
static bool is_same(const Val *a, const Val *b) {
    if (val_is_same(a, b)) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst || a->inst->op != b->inst->op) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (!inst_is_steady(one) || !inst_is_steady(other)) return false;
    if (one->op == OP_global) return one->global == other->global;
    if (one->op != OP_load && one->op != OP_field) return false;
    return one->index == other->index && is_same(inst_operand(one, 0), inst_operand(other, 0));
}

/* ---- conversions that keep the number */

static const Inst *conversion(const Val *v) {
    bool is_one = v->kind == VAL_inst && v->inst->op == OP_convert;
    return is_one && type_is_integer(v->type) && type_is_integer(v->inst->args[0]->type) ? v->inst : NULL;
}

/* The number that an index is converted from, if it is not below zero. */
static const Val *origin_of(const Val *v) {
    for (const Inst *inst; (inst = conversion(v)); v = inst_operand(inst, 0)) {
        const Type *from = inst->args[0]->type, *to = v->type;
        int more = type_bits(to) - type_bits(from);
        if (more < 0 || (more == 0 && type_is_signed(to) && !type_is_signed(from))) break;
    }
    return v;
}

/* Is it the number of elements, or, where that is no number of its type, below zero? */
static bool is_length(const Val *v, const Val *buffer) {
    bool is_signed = type_is_signed(v->type);
    for (const Inst *inst; (inst = conversion(v)); v = inst_operand(inst, 0))
        if (type_bits(v->type) < 32 || (!is_signed && type_is_signed(inst->args[0]->type))) return false;
    return v->kind == VAL_inst && v->inst->op == OP_buffer_length &&
           is_same(inst_operand(v->inst, 0), buffer);
}

/* ---- loops */

static bool compares(const Inst *loop, const Val *condition, int index, const Val *buffer) {
    LoopTest test;
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and)
        return compares(loop, inst_operand(inst, 0), index, buffer) ||
               compares(loop, inst_operand(inst, 1), index, buffer);
    return inst->op == OP_lt && loop_comparison(loop, inst, &test) && test.up && test.index == index &&
           is_length(test.limit, buffer);
}

/* Of what is below the length, which is a number of its type: one by one, it comes to that, and not to the
 * other end of the numbers. */
static bool is_never_negative(const LoopJumps *jumps, const Inst *loop, int index) {
    int64_t first;
    if (!type_is_signed(loop->regions[1]->params[index]->type)) return true;
    LoopSteps steps = loop_steps_by(jumps, loop, index);
    return steps.known && steps.least >= 0 && steps.greatest <= 1 &&
           val_is_int(inst_operand(loop, index), &first) && first >= 0;
}

static bool is_below_length(const LoopJumps *jumps, const Val *v, const Val *buffer) {
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    if (!loop || loop->op != OP_loop || v->region != loop->regions[1]) return false;
    const Inst *end = loop->regions[0]->last;
    return end->op == OP_yield && compares(loop, inst_operand(end, 0), v->index, buffer) &&
           is_never_negative(jumps, loop, v->index);
}

/* ---- what is no more than the length */

/* A choice between two, the lesser of which is one: select(a < b, a, b). */
static bool is_lesser(const Inst *inst) {
    const Val *condition = inst->op == OP_select ? inst_operand(inst, 0) : NULL;
    return condition && condition->kind == VAL_inst && condition->inst->op == OP_lt &&
           val_is_same(inst_operand(condition->inst, 0), inst_operand(inst, 1)) &&
           val_is_same(inst_operand(condition->inst, 1), inst_operand(inst, 2));
}

/* NULL: it is not select(a < b, what there is if it is, 0). */
static const Inst *condition_of_part(const Inst *inst) {
    int64_t otherwise;
    const Val *condition = inst->op == OP_select ? inst_operand(inst, 0) : NULL;
    bool is_one = condition && condition->kind == VAL_inst && condition->inst->op == OP_lt &&
                  val_is_int(inst_operand(inst, 2), &otherwise) && otherwise == 0;
    return is_one ? condition->inst : NULL;
}

/* select(0 < a, a, 0) */
static bool is_positive_part(const Inst *inst) {
    int64_t zero;
    const Inst *condition = condition_of_part(inst);
    return condition && val_is_int(inst_operand(condition, 0), &zero) && zero == 0 &&
           val_is_same(inst_operand(condition, 1), inst_operand(inst, 1));
}

/* select(low < high, high - low, 0): NULL if it is not. */
static const Inst *distance(const Val *v) {
    const Inst *condition = v->kind == VAL_inst ? condition_of_part(v->inst) : NULL;
    const Val *between = condition ? inst_operand(v->inst, 1) : NULL;
    bool is_one = between && between->kind == VAL_inst && between->inst->op == OP_sub &&
                  val_is_same(inst_operand(between->inst, 0), inst_operand(condition, 1)) &&
                  val_is_same(inst_operand(between->inst, 1), inst_operand(condition, 0));
    return is_one ? between->inst : NULL;
}

static bool keeps_number(const Inst *conversion) {
    const Type *from = conversion->args[0]->type, *to = conversion->results[0]->type;
    return type_bits(to) > type_bits(from) && (type_is_signed(to) || !type_is_signed(from));
}

/* What is added to a constant; NULL: it is no such sum, or it might wrap around. */
static const Val *sum_with(const LoopJumps *jumps, const Inst *inst, int64_t *more) {
    if ((inst->op != OP_add && inst->op != OP_sub) || !val_is_int(inst_operand(inst, 1), more)) return NULL;
    if (*more <= INT32_MIN || *more > INT32_MAX || !ir_interval_by_types(jumps, inst->results[0]).known)
        return NULL;
    if (inst->op == OP_sub) *more = -*more;
    return inst_operand(inst, 0);
}

/* Is v + more at most the length? If v is positive, its positive part is itself. */
static bool is_within(const LoopJumps *jumps, const Val *v, int64_t more, bool is_positive, const Val *buffer,
                      int depth) {
    int64_t k;
    if (is_length(v, buffer)) return more <= 0;
    if (v->kind != VAL_inst || depth == 0) return false;
    const Inst *inst = v->inst;
    if (conversion(v) && keeps_number(inst))
        return is_within(jumps, inst_operand(inst, 0), more, is_positive, buffer, depth - 1);
    if (is_positive && is_positive_part(inst))
        return is_within(jumps, inst_operand(inst, 1), more, true, buffer, depth - 1);
    if (inst->op == OP_min || is_lesser(inst)) {
        for (int i = inst->op == OP_select; i < inst->nargs; i++)
            if (is_within(jumps, inst_operand(inst, i), more, is_positive, buffer, depth - 1)) return true;
        return false;
    }
    const Val *rest = sum_with(jumps, inst, &k);
    return rest && is_within(jumps, rest, more + k, is_positive && k <= 0, buffer, depth - 1);
}

/* ---- indices that are sums: base + counter + more, modulo 2^32 */

typedef struct Sum {
    const Val *base, *counter; /* NULL: there is none */
    int64_t more;
    bool is_narrow; /* some of it is computed in 32 bits */
} Sum;

static bool find_test(const Inst *loop, const Val *condition, int index, LoopTest *test) {
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (inst->op == OP_and)
        return find_test(loop, inst_operand(inst, 0), index, test) ||
               find_test(loop, inst_operand(inst, 1), index, test);
    return inst->op != OP_ne && loop_comparison(loop, inst, test) && test->index == index;
}

/* The loop in whose body it is a number that decides whether the loop goes on. */
static const Inst *loop_that_tests(const Val *v, LoopTest *test) {
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    if (!loop || loop->op != OP_loop || v->region != loop->regions[1]) return NULL;
    const Inst *end = loop->regions[0]->last;
    return end->op == OP_yield && find_test(loop, inst_operand(end, 0), v->index, test) ? loop : NULL;
}

static bool goes_up_by_one(const LoopJumps *jumps, const Inst *loop, int index) {
    LoopSteps steps = loop_steps_by(jumps, loop, index);
    return steps.known && steps.least == 1 && steps.greatest == 1;
}

static bool add_part(const LoopJumps *jumps, const Val *v, Sum *sum, int depth);

static bool is_same_or_none(const Val *a, const Val *b) { return a && b ? val_is_same(a, b) : a == b; }

/* What counts along with the number that the loop tests is always as far from it as in the beginning. */
static bool add_along(const LoopJumps *jumps, const Val *v, Sum *sum, int depth) {
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    if (!loop || loop->op != OP_loop || sum->counter || v->region != loop->regions[1]) return false;
    for (int i = 0; i < loop->nargs; i++) {
        const Val *other = loop->regions[1]->params[i];
        LoopTest test;
        Sum first = {0}, first_of_other = {0};
        if (other == v || !type_is_integer(other->type) || !loop_that_tests(other, &test)) continue;
        if (!goes_up_by_one(jumps, loop, v->index) || !goes_up_by_one(jumps, loop, i)) continue;
        bool are_sums = add_part(jumps, inst_operand(loop, v->index), &first, depth) &&
                        add_part(jumps, inst_operand(loop, i), &first_of_other, depth);
        if (!are_sums || !is_same_or_none(first.base, first_of_other.base) ||
            !is_same_or_none(first.counter, first_of_other.counter))
            continue;
        sum->counter = other;
        sum->more += first.more - first_of_other.more;
        sum->is_narrow |= type_bits(v->type) == 32 || first.is_narrow || first_of_other.is_narrow;
        return true;
    }
    return false;
}

static bool add_part(const LoopJumps *jumps, const Val *v, Sum *sum, int depth) {
    int64_t k;
    LoopTest test;
    for (const Inst *inst; (inst = conversion(v)); v = inst_operand(inst, 0)) {
        if (type_bits(v->type) < 32) return false;
        sum->is_narrow |= type_bits(v->type) == 32;
    }
    if (!type_is_integer(v->type) || type_bits(v->type) < 32 || depth == 0) return false;
    if (val_is_int(v, &k)) {
        sum->more += k;
        return k > INT32_MIN && k < INT32_MAX;
    }
    const Inst *inst = v->kind == VAL_inst ? v->inst : NULL;
    bool is_difference = inst && inst->op == OP_sub && val_is_int(inst_operand(inst, 1), &k);
    if (is_difference || (inst && inst->op == OP_add)) {
        sum->is_narrow |= type_bits(v->type) == 32;
        if (!add_part(jumps, inst_operand(inst, 0), sum, depth - 1)) return false;
        if (!is_difference) return add_part(jumps, inst_operand(inst, 1), sum, depth - 1);
        sum->more -= k;
        return k > INT32_MIN && k < INT32_MAX;
    }
    if (!sum->counter && loop_that_tests(v, &test)) sum->counter = v;
    else if (add_along(jumps, v, sum, depth - 1)) return true;
    else if (!sum->base) sum->base = v;
    else return false;
    return true;
}

/* What a counter that goes one by one is: `low` at least, and `behind` below the limit at most. */
typedef struct Bounds {
    int64_t low, behind;
    const Val *limit;
} Bounds;

static bool find_bounds(const LoopJumps *jumps, const Val *counter, Bounds *bounds) {
    LoopTest test;
    const Inst *loop = loop_that_tests(counter, &test);
    LoopSteps steps = loop_steps_by(jumps, loop, counter->index);
    int64_t apart = test.or_equal ? 0 : 1;
    const Val *first = inst_operand(loop, counter->index);
    Interval lowest = ir_interval_by_types(jumps, test.up ? first : test.limit);
    bool is_steady = steps.known && (test.up ? steps.least >= 0 && steps.greatest <= 1
                                             : steps.least >= -1 && steps.greatest <= 0);
    *bounds = test.up ? (Bounds){lowest.low, apart, test.limit} : (Bounds){lowest.low + apart, 0, first};
    return is_steady && lowest.known && lowest.low > INT32_MIN && lowest.low < INT32_MAX;
}

/* Is what is below limit + more the number that is computed? That of elements fits into 32 bits without a
 * sign. */
static bool fits(const LoopJumps *jumps, const Type *type, bool is_narrow, const Val *limit, int64_t more) {
    if (type_bits(type) > 32) return !is_narrow;
    Interval known = ir_interval_by_types(jumps, limit);
    bool is_int = type_bits(limit->type) == 32 && type_is_signed(limit->type);
    int64_t most = known.known ? known.high : is_int ? INT32_MAX : INT64_MAX;
    return !type_is_signed(type) || most <= INT32_MAX - (more > 0 ? more : 0);
}

static bool is_sum_below_length(const LoopJumps *jumps, const Val *v, const Val *buffer) {
    Sum sum = {0};
    Bounds bounds;
    if (!add_part(jumps, v, &sum, MOST_OPERANDS) || !sum.counter || !find_bounds(jumps, sum.counter, &bounds))
        return false;
    if (bounds.low < 0 || bounds.low + bounds.behind < 1) return false; /* the limit is positive */
    const Inst *between = sum.base ? distance(bounds.limit) : NULL;
    int64_t least = bounds.low + sum.more;
    if (sum.base) {
        if (!between || !val_is_same(inst_operand(between, 1), sum.base)) return false;
        Interval base = ir_interval_by_types(jumps, sum.base);
        if (!base.known || base.low < 0) return false;
        least += base.low;
        bounds.limit = inst_operand(between, 0);
    }
    int64_t more = sum.more + 1 - bounds.behind;
    return least >= 0 && fits(jumps, v->type, sum.is_narrow, bounds.limit, more) &&
           is_within(jumps, bounds.limit, more, true, buffer, MOST_OPERANDS);
}

/* ---- the entry */

typedef struct Marks {
    const LoopJumps *jumps;
    bool any;
} Marks;

static void mark(void *user, Inst *inst) {
    Marks *marks = user;
    if (inst->op != OP_buffer_elem || inst_has(inst, INST_UNCHECKED)) return;
    const Val *index = origin_of(inst_operand(inst, 1)), *buffer = inst_operand(inst, 0);
    if (!is_below_length(marks->jumps, index, buffer) && !is_sum_below_length(marks->jumps, index, buffer))
        return;
    inst->flags |= INST_UNCHECKED;
    marks->any = true;
}

bool range_mark_below(Func *func, const LoopJumps *jumps) {
    Marks marks = {jumps, false};
    region_walk(func->body, mark, &marks);
    return marks.any;
}
