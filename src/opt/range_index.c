/* Which indices of a nest are in range (range.c): by a test of the least and the greatest, before it. */
#include "opt/range.h"

enum { MOST_FACTOR = 1 << 27 }; /* where several are added up: nothing overflows then */

/* ---- rehearsals */

/* The nest, or what of it goes on as constants tell. */
static void rehearse_all(const Nest *n) {
    if (ir_rehearse(n->rehearsal, n->loop)) return;
    for (int i = 0; i < n->inner.count; i++) ir_rehearse(n->rehearsal, n->inner.at[i]);
}

bool range_is_rehearsed(const Nest *n, const Inst *loop) {
    for (const Inst *at = loop; at; at = at == n->loop ? NULL : at->parent->owner)
        if (at->op == OP_loop && ir_rehearse(n->rehearsal, (Inst *)at)) return true;
    return false;
}

/* ---- accesses */

static Val *as_natural(Nest *n, Val *v) { return build_convert(&n->before, v, range_type(n, TYPE_uint64)); }

/* How much larger factors can become where a bound is in place of a counter. */
static int64_t growth_by(const Bound *bound) {
    int64_t total = 0, known;
    for (int k = 0; k < bound->count; k++)
        for (int f = 0; f < FACTORS; f++) {
            const Linear *part = &bound->parts[k];
            if (!part->factors[f] || !val_is_int(part->factors[f], &known)) continue;
            const Bound *own = f >= OWN ? part->own[f - OWN].parts : NULL;
            total += (known < 0 ? -known : known) * (own ? 1 + growth_by(own) : 1);
        }
    return total;
}

static int64_t growth(const Nest *n, const Linear *index) {
    int64_t most = 1;
    bool any = false;
    for (int i = n->ncounters - 1; i >= 0; i--) {
        if (!n->counters[i].varies) continue;
        most *= 1 + growth_by(&n->counters[i].low) + growth_by(&n->counters[i].high);
        any |= index->factors[i] != NULL;
    }
    for (int i = 0; i < MOST_OWN; i++) {
        if (!index->factors[OWN + i] || !index->own[i].parts) continue;
        most *= 1 + growth_by(index->own[i].parts);
        any = true;
    }
    return any ? most : 1;
}

/* Several terms add up without overflow if each is moderate. */
bool range_require_moderate(Nest *n, const Linear *wide) {
    int64_t known, grows = growth(n, wide), most = MOST_FACTOR / grows;
    if (range_factors(wide) < 2 && grows == 1) return true;
    for (int i = 0; i < FACTORS; i++) {
        Val *factor = wide->factors[i];
        if (!factor) continue;
        if (val_is_int(factor, &known) && (known > most || known < -most)) return false;
        Val *positive = as_natural(n, range_binary(n, OP_add, factor, range_number(n, most)));
        range_require(n, range_binary(n, OP_lt, positive, as_natural(n, range_number(n, 2 * most + 1))));
    }
    return true;
}

/* Of one counter alone, either end will do: both are tested. */
static Val *index_at(Nest *n, const Linear *index, bool greatest) {
    for (int i = 0; i < FACTORS && range_factors(index) == 1; i++) {
        if (!index->factors[i] || (i < OWN && n->counters[i].varies)) continue;
        const Between *between = range_between(n, index, i);
        n->is_loose = between->is_loose;
        Val *part = range_binary(n, OP_mul, index->factors[i], greatest ? between->high : between->low);
        return range_binary(n, OP_add, index->base, part);
    }
    return range_extreme(n, index, greatest);
}

/* Of a nest, by bounds that it comes near: or else the copy with checks is what runs, where each inner loop,
 * tested by itself, has none. */
static bool require_at(Nest *n, const Linear *wide, Val *limit, bool greatest) {
    Val *at = index_at(n, wide, greatest);
    n->may_be_loose |= n->is_loose;
    if (!at || (n->is_loose && n->inner.count > 0)) return false;
    range_require(n, range_binary(n, OP_lt, as_natural(n, at), limit));
    return true;
}

static bool require_index(Nest *n, const Linear *wide, Val *limit) {
    return require_at(n, wide, limit, false) && (range_is_fixed(wide) || require_at(n, wide, limit, true));
}

int64_t range_length(const Inst *elem) {
    const Type *whole = elem->args[0]->type->args[0];
    return whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
}

Val *range_narrow_index(const Inst *inst) {
    Val *index = inst_operand(inst, 1);
    bool is_convert = index->kind == VAL_inst && index->inst->op == OP_convert;
    return is_convert && range_is_word(index->inst->args[0]->type) ? inst_operand(index->inst, 0) : index;
}

/* How many elements there are, which is not more than 2^32: of larger buffers the lower bits of the
 * number. */
static Val *count_of(Nest *n, const Inst *inst) {
    if (inst->op == OP_elem) return as_natural(n, range_number(n, range_length(inst)));
    Val *buffer = range_prepared(n, inst_operand(inst, 0));
    return buffer
               ? as_natural(n, build_op(&n->before, OP_buffer_length, range_type(n, TYPE_uint), &buffer, 1))
               : NULL;
}

static bool require_linear(Nest *n, Access *access, Val *index, bool rehearses) {
    const Type *type = type_element(index->type);
    bool is_long = range_is_long(type);
    n->terms = 0;
    n->rehearses = rehearses;
    if (rehearses) rehearse_all(n);
    if (is_long ? rehearses || !range_exact(n, index, &access->index)
                : !range_linear(n, index, &access->index))
        return false;
    Val *count = count_of(n, access->inst);
    Linear wide = range_widened(n, &access->index);
    if (!count || !range_require_moderate(n, &wide)) return false;
    if (type_is_signed(type) && !is_long)
        count = range_binary(n, OP_min, count, as_natural(n, range_number(n, (int64_t)1 << 31)));
    return require_index(n, &wide, count);
}

/* By what conditions tell of numbers that the index is made of: which else are found together, as they are in
 * all rounds. */
static bool require_clipped(Nest *n, Access *access, Val *index) {
    n->meets_clipped = false;
    n->may_be_loose = false;
    return n->nclipped > 0 && require_linear(n, access, index, false) && n->meets_clipped && !n->may_be_loose;
}

/* What conditions tell of counters alone, and what has to be true for that. */
static void clip_counters(Nest *n, const Inst *access, Val *before) {
    range_drop_clips(n);
    n->safe = before;
    n->clips_counters = true;
    range_clip_around(n, access);
    n->clips_counters = false;
}

static bool require_access(Nest *n, Access *access) {
    Val *index = range_narrow_index(access->inst), *before = n->safe;
    if (!type_is_integer(type_element(index->type))) return false;
    n->access = access->inst;
    if (inst_contains(n->loop, access->inst->results[0])) range_clip_around(n, access->inst);
    if (require_clipped(n, access, index)) return true;
    if (n->nclipped > 0) clip_counters(n, access->inst, before);
    Val *others = n->safe; /* and what is known of counters under conditions */
    bool is_linear = require_linear(n, access, index, false);
    bool is_curved = is_linear && range_first_of_curves(&access->index) < FACTORS;
    if (is_linear && !is_curved) return true;
    n->safe = others;
    if (require_linear(n, access, index, true)) return true; /* as constants tell, it stays the program's */
    n->safe = others;
    return is_curved && require_linear(n, access, index, false);
}

bool range_require_access(Nest *n, Access *access) {
    Val *others = n->safe;
    Clips saved = range_save_clips(n);
    bool is_covered = require_access(n, access);
    n->access = NULL;
    if (!is_covered) n->safe = others;
    range_restore_clips(n, &saved);
    return is_covered;
}

/* ---- tests of neighbours */

/* sum + low, and sum + high, are below the limit, and not below zero. */
typedef struct Test {
    Val *sum; /* int64; NULL: zero */
    Val *limit;
    int64_t low, high;
} Test;

typedef VEC(Test) TestVec;

static bool is_computed_alike(const Val *a, const Val *b, int depth) {
    if (!a || !b) return a == b;
    if (val_is_same(a, b)) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst || a->type != b->type || depth == 0) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (one->op != other->op || one->nargs != other->nargs || !op_has(one->op, OP_PURE)) return false;
    if (one->nregions || one->nresults != 1 || one->index != other->index) return false;
    for (int i = 0; i < one->nargs; i++)
        if (!is_computed_alike(inst_operand(one, i), inst_operand(other, i), depth - 1)) return false;
    return true;
}

static bool find_test(const Val *condition, Test *test) {
    const Inst *less = condition->kind == VAL_inst && condition->inst->op == OP_lt ? condition->inst : NULL;
    Val *at = less ? inst_operand(less, 0) : NULL;
    int64_t offset = 0;
    if (!at || at->type->kind != TYPE_uint64) return false;
    *test = (Test){.limit = inst_operand(less, 1)};
    if (at->kind == VAL_inst && at->inst->op == OP_convert) {
        test->sum = inst_operand(at->inst, 0);
        const Inst *sum = test->sum->kind == VAL_inst ? test->sum->inst : NULL;
        if (test->sum->type->kind != TYPE_int64) return false;
        if (sum && sum->op == OP_add && val_is_int(inst_operand(sum, 1), &offset))
            test->sum = inst_operand(sum, 0);
    } else if (!val_is_int(at, &offset)) {
        return false;
    }
    test->low = test->high = offset;
    return offset > INT32_MIN && offset < INT32_MAX && (test->sum || offset >= 0);
}

static void add_test(Nest *n, TestVec *tests, const Test *test) {
    enum { DEPTH = 8 };
    for (int i = 0; i < tests->count; i++) {
        Test *other = &tests->at[i];
        if (!is_computed_alike(other->sum, test->sum, DEPTH) ||
            !is_computed_alike(other->limit, test->limit, DEPTH))
            continue;
        if (test->low < other->low) other->low = test->low;
        if (test->high > other->high) other->high = test->high;
        return;
    }
    vec_push(n->scratch, tests, *test);
}

static void require_below(Nest *n, const Test *test, int64_t offset) {
    Val *at = range_number(n, offset);
    if (test->sum) at = range_binary(n, OP_add, test->sum, at);
    range_require(n, range_binary(n, OP_lt, as_natural(n, at), test->limit));
}

/* Of indices that differ by constants, the least and the greatest are in range if all are. */
void range_merge_tests(Nest *n) {
    TestVec tests = {0};
    ValVec others = {0};
    Val *at = n->safe;
    while (at) {
        const Inst *both = at->kind == VAL_inst && at->inst->op == OP_and ? at->inst : NULL;
        Val *condition = both ? inst_operand(both, 1) : at;
        Test test;
        if (find_test(condition, &test)) add_test(n, &tests, &test);
        else vec_push(n->scratch, &others, condition);
        at = both ? inst_operand(both, 0) : NULL;
    }
    n->safe = NULL;
    for (int i = others.count - 1; i >= 0; i--) range_require(n, others.at[i]);
    for (int i = tests.count - 1; i >= 0; i--) {
        const Test *test = &tests.at[i];
        if (test->sum && test->low < test->high) require_below(n, test, test->low);
        require_below(n, test, test->high);
    }
}
