/* What conditions tell of the numbers of a nest (range.c), where they hold: of counters, and of what is
 * computed from several.
 *
 *     if (i > 0) ... a[i - 1] ...               i is at least 1
 *     j = i + k; if (j >= 0 && j < n) ... a[j]  so is j between its bounds, whatever i and k are
 *     j < 0 ? j + n : j                         j + n is below n */
#include "opt/range.h"

/* ---- what is known at the moment */

Clips range_save_clips(const Nest *n) {
    Clips saved = {.nclipped = n->nclipped};
    for (int i = 0; i < n->ncounters; i++) saved.counters[i] = n->counters[i].between;
    for (int i = 0; i < n->nclipped; i++) saved.clipped[i] = n->clipped[i];
    return saved;
}

void range_restore_clips(Nest *n, const Clips *saved) {
    n->nclipped = saved->nclipped;
    for (int i = 0; i < n->ncounters; i++) n->counters[i].between = saved->counters[i];
    for (int i = 0; i < n->nclipped; i++) n->clipped[i] = saved->clipped[i];
}

void range_drop_clips(Nest *n) {
    n->nclipped = 0;
    for (int i = 0; i < n->ncounters; i++) n->counters[i].between = n->counters[i].whole;
}

const Between *range_clipped(Nest *n, const Val *v) {
    for (int i = 0; i < n->nclipped; i++) {
        if (n->clipped[i].v != v) continue;
        n->meets_clipped = true;
        return &n->clipped[i];
    }
    return NULL;
}

/* ---- conditions */

/* a < b, or a <= b, where one of them is a counter, and something that stays the same more; false: they are
 * not. */
static bool clip_counter(Nest *n, Val *a, Val *b, bool or_equal) {
    Linear left, right, room;
    int64_t known;
    bool is_known = range_exact(n, a, &left) && range_exact(n, b, &right) &&
                    range_combine(n, &right, &left, true, &room) && range_factors(&room) == 1;
    for (int i = 0; i < n->ncounters && is_known; i++) {
        Between *between = &n->counters[i].between;
        if (!room.factors[i] || n->counters[i].varies || !val_is_int(room.factors[i], &known)) continue;
        Val *end = range_binary(n, OP_sub, room.base, range_number(n, !or_equal));
        if (known == 1)
            between->low = range_binary(n, OP_max, between->low, build_unary(&n->before, OP_neg, end));
        if (known == -1) between->high = range_binary(n, OP_min, between->high, end);
        if (known == 1 || known == -1) return true;
    }
    return false;
}

/* What is known of a number that the nest computes, to be told more of; NULL: it stays the same, or there are
 * too many. A counter is not: sums with it are found by its bounds. */
static Between *find_clipped(Nest *n, Val *v, const Between *between) {
    if (n->clips_counters || v->kind != VAL_inst || !range_is_word(v->type) || range_prepared(n, v))
        return NULL;
    for (int i = 0; i < n->nclipped; i++)
        if (n->clipped[i].v == v) return &n->clipped[i];
    if (n->nclipped == MOST_CLIPPED) return NULL;
    n->clipped[n->nclipped] = *between;
    n->clipped[n->nclipped].v = v;
    return &n->clipped[n->nclipped++];
}

static bool find_numbers(Nest *n, Val *const pair[2], Between numbers[2]) {
    Linear whole;
    return range_fits_word(pair[0]->type) && range_between_of(n, pair[0], &whole, &numbers[0]) &&
           range_between_of(n, pair[1], &whole, &numbers[1]);
}

static void clip_by(Nest *n, Val *a, Val *b, bool or_equal) {
    Val *others = n->safe, *pair[] = {a, b};
    Between numbers[2], *low, *high;
    if (clip_counter(n, a, b, or_equal)) return;
    n->safe = others;
    Val *room = range_number(n, !or_equal);
    if (!n->clips_counters && find_numbers(n, pair, numbers)) {
        high = find_clipped(n, a, &numbers[0]);
        low = find_clipped(n, b, &numbers[1]);
        if (high)
            high->high = range_binary(n, OP_min, high->high, range_binary(n, OP_sub, numbers[1].high, room));
        if (low) low->low = range_binary(n, OP_max, low->low, range_binary(n, OP_add, numbers[0].low, room));
        if (high || low) return;
    }
    n->safe = others;
}

/* The counter itself, whose bounds stay the same; NULL: it is none. */
static Between *find_counter(Nest *n, const Val *v) {
    const Counter *c = range_counter_of(n, v);
    return c && !c->varies ? &n->counters[c - n->counters].between : NULL;
}

/* What is not equal to its end is one further in. */
static void clip_equal(Nest *n, Val *v, Val *other, bool holds) {
    Val *others = n->safe, *pair[] = {v, other};
    Between numbers[2], *between = find_counter(n, v);
    Val *fixed = range_prepared(n, other), *one = range_number(n, 1);
    if (!fixed || !range_is_word(v->type) || !find_numbers(n, pair, numbers) ||
        (!between && !(between = find_clipped(n, v, &numbers[0])))) {
        n->safe = others;
        return;
    }
    Val *at = range_wide(n, fixed), *low = between->low, *high = between->high;
    if (holds) {
        between->low = between->high = at;
        return;
    }
    Val *is_low = range_binary(n, OP_eq, low, at), *above = range_binary(n, OP_add, low, one);
    between->low = build_select(&n->before, is_low, above, low);
    Val *is_high = range_binary(n, OP_eq, high, at), *below = range_binary(n, OP_sub, high, one);
    between->high = build_select(&n->before, is_high, below, high);
}

void range_clip(Nest *n, const Val *condition, bool holds) {
    const Inst *inst = condition->kind == VAL_inst ? condition->inst : NULL;
    if (!inst) return;
    if (inst->op == OP_not) range_clip(n, inst_operand(inst, 0), !holds);
    if (inst->op == (holds ? OP_and : OP_or)) {
        range_clip(n, inst_operand(inst, 0), holds);
        range_clip(n, inst_operand(inst, 1), holds);
    } else if (inst->op == OP_lt || inst->op == OP_le) {
        Val *a = inst_operand(inst, 0), *b = inst_operand(inst, 1);
        clip_by(n, holds ? a : b, holds ? b : a, (inst->op == OP_le) == holds);
    } else if (inst->op == OP_eq || inst->op == OP_ne) {
        clip_equal(n, inst_operand(inst, 0), inst_operand(inst, 1), (inst->op == OP_eq) == holds);
    }
}

void range_clip_around(Nest *n, const Inst *access) {
    for (const Region *at = access->parent; at->owner != n->loop; at = at->owner->parent) {
        n->terms = 0;
        if (at->owner->op == OP_if) range_clip(n, inst_operand(at->owner, 0), at == at->owner->regions[0]);
    }
}
