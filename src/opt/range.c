/* Range checks out of loops. A nest of loops that count, and whose accesses have indices that are linear in
 * the counters, is there twice: before it, the least and the greatest index of every such access are tested;
 * if all are in range, the copy without these checks runs, which vectorises like C, otherwise the one with
 * them.
 *
 *     for (i = first; i < end; i += step) ... a[base + factor * i] ...
 *
 * Indices are computed modulo 2^32 in the program. base and factors are, too, and then taken as signed
 * numbers; if base + factor * i, computed without overflow, is within 0 .. 2^31 - 1 (2^32 - 1, unsigned) at
 * both ends of i's range, it is so in between, and equal to what the program computes: the copy computes it
 * so, in 64 bits. The counter may have 64 bits (those of reversed loops have: they count what is left) if
 * both ends of its range are found to fit into 32; what is converted to 32 bits may be computed in 64 before.
 * Of indices of 64 bits, all that they are made of has to fit.
 *
 * What the files beside this one do: range_linear.c finds the sum that an index is, and its least and
 * greatest, range_curve.c where it has the square of a counter, or half of one; range_own.c between what
 * others are that are no sums; range_counter.c between what the counters are; range_clip.c what conditions
 * tell of either; range_index.c tests.
 *
 * Of what a nest computes by constants alone, however it does, the least and the greatest value are known by
 * running it (ir/inrange.c): the index of a packed triangle, from a base that may be anything, times any
 * stride.
 *
 * Of a nest all accesses must be such, or else its inner loops are tried one by one; of an innermost loop
 * some will do. Their bounds must be what they come near, too: of i - i / 2 the parts are known, but not at
 * their ends together, so that the test would fail where those of inner loops do not. The copy with checks is
 * what runs if a few rounds of the outer loop are out of range, so that those inside it are tried once more,
 * unless they are short; what is inside of these is not, of which there would be a copy for each level.
 *
 * A loop that does several rounds at once (opt/lanes_loop.c) has a loop behind it for the rounds that it
 * leaves, which stays as it is. So it needs no copy: if an index that all these rounds use is out of range
 * somewhere, it leaves them all. Only what is done in every round, or in those of loops inside that end by
 * counting, is asked for so: of others it is not known whether it is done at all, and to do one round after
 * the other takes long. For these, innermost loops are there twice.
 *
 * What a call does mostly takes longer than a test: loops with calls stay as they are, unless those who are
 * called do nothing but compute, without loops of their own, so that such a loop can become vectors as a
 * whole, be it around scalar calls of the sine. The call in the copy that is unlikely does not count where it
 * matters that a function is called in one place.
 *
 * A loop is also there twice if those inside it and in what it calls are so short that they are written out,
 * and what it keeps so little that it is no tape then: it can become vectors as one without loops can. LLVM
 * does so where a register has four of its numbers at least; with two, it does better with the rows of one
 * round, unless that is arithmetic enough to be done for two items at once (ir/atonce.c).
 *
 * Loops of a few rounds are unrolled later, and indices into arrays are known then; for these alone no test
 * is made, nor is it for those of reversed loops, many of which are short as well, and a clamped index costs
 * less than the test.
 *
 * Compilers of C are asked first whether the nest has a round at all: clang else concludes from the other
 * tests that it has, forgets to test it, and then does not know that its counter is small, without which
 * addresses of elements that are not neighbours might wrap around.
 *
 * The same test asks whether buffers overlap (apart.c).
 *
 * Before all this, indices into arrays of which constants tell that they are in range are marked
 * (ir/inrange.c), and those into buffers that the loop compares with their length (range_below.c). */
#include "opt/range.h"

enum {
    MOST_TESTED = 256,    /* where nothing is there twice */
    MOST_INSTS = 600,     /* of an innermost loop */
    MOST_STRAIGHT = 1500, /* of one without branches */
    MOST_IN_NEST = 200,   /* of others */
    MOST_CALLED = 800,    /* in functions that are called, of these */
    MOST_ON_GPU =
        96, /* of either, where code that is there twice is compiled for long and does not stay in its cache */
    MOST_DEPTH = 6,  /* of operands of operands */
    MOST_LOOPS = 12, /* of a nest */
    SHORT_TRIP = 16,
    MOST_COPIES = 2,  /* with checks, one in the other: of a nest, and of what is inside */
    WRITTEN_TRIP = 8, /* of loops that are written out, as emit/nest.c does */
};

/* ---- what is in a loop */

static bool is_checked(const Inst *inst) {
    int64_t known;
    bool has_lanes = inst->nresults == 1 && inst->results[0]->type->kind == TYPE_vector;
    if (inst_has(inst, INST_UNCHECKED) || inst_has(inst, INST_COPIED) || has_lanes) return false;
    if (inst->op == OP_elem) return range_length(inst) > 0 && !val_is_int(inst_operand(inst, 1), &known);
    return inst->op == OP_buffer_elem;
}

bool opt_is_written_out_in_c(const Inst *loop) {
    return loop->func->module->keeps_order && loop_most_trips(loop) <= WRITTEN_TRIP;
}

/* Is it so short, or keeps so little, that it is no loop, and no tape, once it is written out? */
static bool is_written_out(const Inst *inst) {
    int64_t known;
    switch ((Op)inst->op) {
    case OP_loop: return inst->func->module->keeps_order ? opt_is_written_out_in_c(inst) : loop_is_left(inst);
    case OP_tape_grow:
    case OP_tape_shrink: return val_is_int(inst_operand(inst, 1), &known);
    case OP_tape_load:
    case OP_tape_store: return true;
    default: return !op_has(inst->op, OP_TAPE);
    }
}

static bool computes_doubles(const Inst *inst) {
    return op_has(inst->op, OP_ELEMENTWISE) && type_element(inst->results[0]->type)->kind == TYPE_double;
}

static bool stores_quotient(const Inst *inst) {
    const Val *v = inst->op == OP_store ? inst_operand(inst, 1) : NULL;
    bool is_quotient = v && v->kind == VAL_inst && (v->inst->op == OP_div || v->inst->op == OP_ratio);
    return is_quotient && type_is_float(v->type) && !val_is_const(inst_operand(v->inst, 1));
}

/* What is called in it. */
static void look_into(void *user, Inst *inst) {
    Nest *n = user;
    n->has_doubles |= computes_doubles(inst);
    n->stores_quotients |= stores_quotient(inst);
    n->is_reverse |= opt_memory_sum(inst) != NULL;
    bool is_long = op_has(inst->op, OP_EFFECT) ||
                   (n->is_flat ? !is_written_out(inst) : inst->op == OP_loop || op_has(inst->op, OP_TAPE));
    n->ncalled++;
    n->calls |= is_long || n->ncalled > MOST_CALLED || (inst->op == OP_call && !inst->callee->body);
    if (inst->op == OP_call && !n->calls) region_walk(inst->callee->body, look_into, n);
}

static void look_at_call(void *user, Inst *inst) {
    if (inst->op == OP_call && !opt_is_inlined_in_loop(inst)) look_into(user, inst);
}

bool opt_calls_keep_checks(const Inst *loop, bool if_flat) {
    Nest n = {.is_flat = if_flat};
    inst_walk(loop, look_at_call, &n);
    return n.calls;
}

static void add_access(Nest *n, Inst *inst) {
    if (n->accesses.count < MOST_ACCESSES) vec_push(n->scratch, &n->accesses, (Access){.inst = inst});
}

/* Is it done in every round of the loops around it? */
static bool is_in_each_round(const Nest *n, const Inst *inst) {
    const Inst *owner = inst->parent->owner;
    while (owner != n->loop && owner->op == OP_loop) owner = owner->parent->owner;
    return owner == n->loop;
}

/* The address of an element that does not change in the nest is found before it, but tested where it is used.
 * That alone is no reason to have the nest twice. */
static void look_outside(Nest *n, const Inst *user, Val *v) {
    const Val *at = v;
    if (n->loop->func->module->many_threads) return; /* where what is there twice is to be short */
    while (at->kind == VAL_inst && (at->inst->op == OP_field || at->inst->op == OP_elem))
        at = inst_operand(at->inst, 0);
    if (at->kind != VAL_inst || at->inst->op != OP_buffer_elem || inst_contains(n->loop, v)) return;
    if (!is_checked(at->inst) || map_has(n->summed, PTR_KEY(at->inst)) || !is_in_each_round(n, user)) return;
    if (!range_is_word(type_element(range_narrow_index(at->inst)->type)) || map_has(&n->outside, PTR_KEY(v)))
        return;
    vec_push(n->scratch, &n->addresses, v);
    map_put(n->scratch, &n->outside, PTR_KEY(v), v);
    if (map_has(&n->outside, PTR_KEY(at->inst))) return;
    map_put(n->scratch, &n->outside, PTR_KEY(at->inst), v);
    add_access(n, at->inst);
}

static void look_at(void *user, Inst *inst) {
    Nest *n = user;
    n->ninsts++;
    n->has_doubles |= computes_doubles(inst);
    n->stores_quotients |= stores_quotient(inst);
    n->is_reverse |= opt_memory_sum(inst) != NULL;
    if (inst->op == OP_call) look_into(n, inst);
    if (inst->op == OP_loop && !n->is_flat) vec_push(n->scratch, &n->inner, inst);
    n->calls |= n->is_flat && !is_written_out(inst);
    n->meets |= inst_meets(inst);
    n->forks |= inst->nregions > 0;
    for (int i = 0; i < inst->nargs; i++) look_outside(n, inst, inst_operand(inst, i));
    if (!is_checked(inst) || map_has(n->summed, PTR_KEY(inst))) return;
    n->naccesses++;
    n->reads_buffers |= inst->op == OP_buffer_elem;
    add_access(n, inst);
}

static bool suits(const Nest *n) {
    bool is_nest = n->inner.count > 0, on_gpu = n->loop->func->module->many_threads;
    int most = on_gpu ? MOST_ON_GPU : is_nest ? MOST_IN_NEST : n->forks ? MOST_INSTS : MOST_STRAIGHT;
    bool calls = n->calls || (on_gpu && n->ncalled > 0);
    if (n->naccesses == 0 || calls || n->meets || n->ninsts > most) return false;
    return !is_nest || (n->naccesses <= MOST_ACCESSES && n->inner.count < MOST_LOOPS);
}

static bool find_counters(Nest *n) {
    n->is_short = true;
    if (!range_add_loop(n, n->loop)) return false;
    for (int i = 0; i < n->inner.count; i++)
        if (!range_add_loop(n, n->inner.at[i]) && !range_is_rehearsed(n, n->inner.at[i])) return false;
    return n->reads_buffers || (!n->is_reversed && !n->is_short);
}

/* Keeps the accesses that can be tested. */
static bool cover(Nest *n) {
    int kept = 0, covered = 0;
    for (int i = 0; i < n->accesses.count; i++) {
        Access access = n->accesses.at[i];
        if (!range_require_access(n, &access)) continue;
        n->accesses.at[kept++] = access;
        covered += inst_contains(n->loop, access.inst->results[0]);
    }
    n->accesses.count = kept;
    return n->inner.count > 0 || n->is_flat ? covered == n->naccesses : covered > 0;
}

/* That buffers are apart is asked for only where something else is, too. */
/* Rounds that are done together have asked for what they need: two sums may be in one buffer, and often are. */
static void require_apart(Nest *n) {
    if (n->number == 0 || val_is_const(n->safe)) return;
    opt_find_buffers(&n->buffers, n->loop);
    if (n->loop->hints.wide) opt_join_written(&n->buffers);
    Val *apart = opt_test_apart(&n->before, &n->buffers);
    if (apart) range_require(n, apart);
    else n->number = 0;
}

/* ---- indices that are not tested */

/* What is added to an address cannot wrap around. */
static Val *surely(Builder *b, Op op, Val *x, Val *y) {
    Val *value = build_binary(b, op, x, y);
    if (value->kind == VAL_inst && value->inst->op == op) value->inst->flags |= INST_UNCHECKED;
    return value;
}

static Interval rehearsed(const Nest *n, const Val *v) {
    int64_t known;
    return val_is_int(v, &known) ? (Interval){known, known, true} : ir_rehearsed(n->rehearsal, v);
}

static void widen_to(Interval *interval, int64_t value) {
    if (value < interval->low) interval->low = value;
    if (value > interval->high) interval->high = value;
}

/* Sums, differences and products of what constants tell the bounds of, which are of 32 bits. */
static bool cannot_wrap(const Nest *n, const Inst *inst) {
    if (inst->op != OP_add && inst->op != OP_sub && inst->op != OP_mul) return false;
    Interval a = rehearsed(n, inst_operand(inst, 0)), b = rehearsed(n, inst_operand(inst, 1));
    if (!range_is_word(inst->results[0]->type) || !rehearsed(n, inst->results[0]).known || !a.known ||
        !b.known)
        return false;
    int64_t ends[] = {a.low, a.high}, others[] = {b.low, b.high};
    Interval all = {INT64_MAX, INT64_MIN, true};
    for (int i = 0; i < 4; i++) {
        int64_t x = ends[i / 2], y = others[i % 2];
        widen_to(&all, inst->op == OP_add ? x + y : inst->op == OP_sub ? x - y : x * y);
    }
    bool sign = type_is_signed(inst->results[0]->type);
    return all.low >= (sign ? INT32_MIN : 0) && all.high <= (sign ? INT32_MAX : UINT32_MAX);
}

/* A value that constants tell of, in 64 bits: LLVM else shifts each up and down. Where registers are wider,
 * it then makes vectors of what is written out, which take twice as long. */
static Val *plain_value(Nest *n, CloneMap *map, Val *v, Builder *b, int depth) {
    Inst *inst = v->kind == VAL_inst && depth > 0 ? v->inst : NULL;
    bool narrows = inst && inst->op == OP_convert && range_is_long(inst->args[0]->type);
    Val *from = inst && (narrows || cannot_wrap(n, inst)) ? inst_operand(inst, 0) : NULL;
    if (!from || (narrows && !rehearsed(n, from).known))
        return build_convert(b, clone_val(map, v), range_type(n, TYPE_int64));
    if (narrows) return build_convert(b, clone_val(map, from), range_type(n, TYPE_int64));
    Val *x = plain_value(n, map, from, b, depth - 1);
    return surely(b, (Op)inst->op, x, plain_value(n, map, inst_operand(inst, 1), b, depth - 1));
}

/* The index in 64 bits, where the program computes it in 32. What it is in a triangle stands together: it is
 * not negative then. */
static Val *plain_index(Nest *n, CloneMap *map, const Access *access, Builder *b) {
    Val *index = range_wide(n, access->index.base), *inner = NULL;
    int first = range_first_of_curves(&access->index);
    for (int k = 0; k < FACTORS; k++) {
        int i = first < FACTORS ? (k + OWN) % FACTORS : k; /* curves, then what changes more often */
        if (!access->index.factors[i]) continue;
        Val *counter = (Val *)range_counter(n, access, i);
        Val *factor = range_wide(n, access->index.factors[i]),
            *by = plain_value(n, map, counter, b, i >= OWN && n->has_wide_indices ? MOST_DEPTH : 0);
        Val *part = surely(b, OP_mul, factor, by);
        if (i < first) index = surely(b, OP_add, part, index);
        else inner = inner ? surely(b, OP_add, part, inner) : part;
    }
    return inner ? surely(b, OP_add, index, inner) : index;
}

/* What is not is used as it is, if it has bits enough for an address. */
static bool is_computed(const Val *index) {
    return (index->kind == VAL_inst && op_has(index->inst->op, OP_ELEMENTWISE)) ||
           type_bits(type_element(index->type)) < 32;
}

static void drop_check(Nest *n, CloneMap *map, const Access *access) {
    Inst *copy = clone_val(map, access->inst->results[0])->inst;
    Builder b = build_before(copy);
    copy->flags |= INST_UNCHECKED;
    if (copy->results[0]->type->kind == TYPE_vector || !is_computed(range_narrow_index(access->inst))) return;
    copy->args[1] = plain_index(n, map, access, &b);
}

/* Whoever used the results of the loop uses those of the choice. */
static void exchange_results(Inst *a, Inst *b) {
    Val **results = a->results;
    a->results = b->results;
    b->results = results;
    for (int i = 0; i < a->nresults; i++) {
        a->results[i]->inst = a;
        b->results[i]->inst = b;
    }
}

/* ---- loops that can leave their rounds to another */

static bool ends_by_counting(const Inst *loop) {
    LoopTest test;
    const Inst *end = loop->regions[0]->last;
    const Val *condition = end && end->op == OP_yield ? inst_operand(end, 0) : NULL;
    return condition && condition->kind == VAL_inst && loop_comparison(loop, condition->inst, &test);
}

/* Loops that have no rounds use nothing. One that goes to another number, and not below it, is not such
 * where it begins above: it goes around. */
static void unless_empty(Nest *n) {
    for (int i = 0; i < n->ncounters; i++) {
        const Between *between = &n->counters[i].between;
        if (n->counters[i].begins) continue;
        n->safe = range_binary(n, OP_or, n->safe, range_binary(n, OP_lt, between->high, between->low));
    }
}

/* Counters are those of the loops around it, the outermost first. */
static bool add_loops_around(Nest *n, const Inst *inst) {
    const Inst *loop = inst->parent->owner;
    if (loop == n->loop) {
        range_add_loop(n, loop);
        return true;
    }
    if (loop->op != OP_loop || !ends_by_counting(loop) || !add_loops_around(n, loop)) return false;
    return range_add_loop(n, loop) || range_is_rehearsed(n, loop);
}

static bool require_in_rounds(Nest *n, Access *access) {
    n->ncounters = 0;
    n->safe = NULL;
    if (!add_loops_around(n, access->inst) || !range_require_access(n, access)) return false;
    unless_empty(n);
    return true;
}

static bool is_true(const Val *mask) {
    int64_t known;
    return mask->kind == VAL_inst && mask->inst->op == OP_splat &&
           val_is_int(inst_operand(mask->inst, 0), &known) && known;
}

/* Addresses of lanes some of which may be off, or that are used in another way. */
static void note_masked(void *user, Inst *inst) {
    Nest *n = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        bool is_address =
            v->kind == VAL_inst && v->inst->op == OP_buffer_elem && v->type->kind == TYPE_vector;
        bool is_access = i == 0 && (inst->op == OP_gather || inst->op == OP_scatter);
        if (is_address && !(is_access && is_true(inst_operand(inst, inst->op == OP_gather ? 1 : 2))))
            map_put(n->scratch, &n->masked, PTR_KEY(v->inst), v->inst);
    }
}

/* Elements of arrays, which may be read before the loop, are left alone. */
static void cover_in_rounds(void *user, Inst *inst) {
    Nest *n = user;
    Access access = {.inst = inst};
    Val *others = n->safe;
    if (inst->op != OP_buffer_elem || inst_has(inst, INST_UNCHECKED) || inst_has(inst, INST_COPIED) ||
        map_has(&n->masked, PTR_KEY(inst)) || n->ntested == MOST_TESTED)
        return;
    bool is_covered = require_in_rounds(n, &access);
    n->safe = !is_covered ? others : others ? range_binary(n, OP_and, others, n->safe) : n->safe;
    if (!is_covered) return;
    CloneMap same = {.module = n->loop->func->module, .func = n->loop->func};
    drop_check(n, &same, &access);
    n->ntested++;
}

/* It begins with no round, and ends with those that it does. */
static void leave_rounds_unless_safe(Nest *n) {
    Inst *test = inst_operand(n->loop->regions[0]->last, 0)->inst;
    Val *none = ir_const_zero(n->loop->func->module, test->args[1]->type);
    test->args[1] = build_select(&n->before, n->safe, inst_operand(test, 1), none);
    if (n->number > 0) opt_mark_apart(&n->buffers, n->loop, n->number);
}

/* ---- two copies */

/* Once more in the choice, without the check. */
static void repeat_address(CloneMap *map, Region *region, Val *v) {
    if (clone_val(map, v) != v) return;
    if (v->inst->op != OP_buffer_elem) repeat_address(map, region, inst_operand(v->inst, 0));
    inst_append(region, clone_inst(map, v->inst));
}

static void make_copies(Nest *n) {
    Inst *loop = n->loop;
    const Type **types = arena_array(n->scratch, const Type *, loop->nresults + 1);
    for (int i = 0; i < loop->nresults; i++) types[i] = loop->results[i]->type;
    Inst *choice = build_if(&n->before, n->safe, types, loop->nresults);
    choice->flags |= INST_LIKELY;
    CloneMap map = {.module = loop->func->module, .func = loop->func};
    for (int i = 0; i < n->addresses.count; i++) repeat_address(&map, choice->regions[0], n->addresses.at[i]);
    Inst *copy = clone_inst(&map, loop);
    n->before = build_before(choice);
    inst_append(choice->regions[0], copy);
    for (int i = 0; i < n->accesses.count; i++) drop_check(n, &map, &n->accesses.at[i]);
    if (n->number > 0) opt_mark_apart(&n->buffers, copy, n->number);
    inst_remove(loop);
    inst_append(choice->regions[1], loop);
    exchange_results(loop, choice);
    Builder then = build_at_end(choice->regions[0]), otherwise = build_at_end(choice->regions[1]);
    build_yield(&then, copy->results, copy->nresults);
    build_yield(&otherwise, loop->results, loop->nresults);
}

/* ---- the entry */

typedef struct Range {
    Func *func;
    Arena *scratch;
    LoopJumps jumps;
    Rehearsal *rehearsal;
    Map summed; /* Inst: it finds an element that a GPU adds to, by a function that tests for itself */
    RangeOptions options;
    bool in_rounds; /* of a loop that does several at once */
    int copies;     /* with checks, of nests that were tested, that the loop is inside of */
    int nests;      /* of which buffers are apart */
    bool changed;
} Range;

static void visit_region(Range *r, Region *region);

static Nest find_nest(Range *r, Inst *loop, bool is_flat) {
    Nest n = {.scratch = r->scratch,
              .jumps = &r->jumps,
              .rehearsal = r->rehearsal,
              .loop = loop,
              .before = build_before(loop),
              .number = r->options.apart && r->nests < APART_NESTS ? r->nests + 1 : 0,
              .summed = &r->summed,
              .has_wide_indices = r->options.register_bits <= 128 && !r->func->module->many_threads,
              .is_flat = is_flat};
    n.again = (CloneMap){.module = r->func->module, .func = r->func};
    inst_walk(loop, look_at, &n);
    return n;
}

static bool has_few_rounds(const Nest *n) {
    bool has_few = loop_most_trips(n->loop) <= SHORT_TRIP;
    for (int i = 0; i < n->inner.count && has_few; i++)
        has_few = loop_most_trips(n->inner.at[i]) <= SHORT_TRIP;
    return has_few;
}

static bool copy_nest(Range *r, Nest *n) {
    Inst *last = n->loop->prev;
    bool worth_it = suits(n) && find_counters(n) && !(r->copies > 0 && has_few_rounds(n)) && cover(n) &&
                    !val_is_const(n->safe);
    if (worth_it) {
        range_merge_tests(n);
        require_apart(n);
        make_copies(n);
        r->nests += n->number > 0;
    } else {
        while (n->loop->prev != last) inst_remove(n->loop->prev);
    }
    r->changed |= worth_it;
    return worth_it;
}

/* One that does several rounds at once. */
static void ask_before(Range *r, Nest *n) {
    inst_walk(n->loop, note_masked, n);
    inst_walk(n->loop, cover_in_rounds, n);
    if (n->ntested == 0) return;
    range_merge_tests(n);
    require_apart(n);
    leave_rounds_unless_safe(n);
    r->nests += n->number > 0;
    r->changed = true;
}

static bool is_only_loop(const Inst *loop) {
    const Region *body = loop->func->body;
    int loops = 0;
    for (const Inst *inst = body->first; inst; inst = inst->next) loops += inst->op == OP_loop;
    return loops == 1 && loop->parent == body;
}

/* Of numbers that fill a register by two, LLVM makes few vectors of rounds that are worth it. Elsewhere,
 * where matrices are eliminated, or rows divided by what they sum up to, it makes pairs of what is written
 * out, and these wait for the quotients of both: it is told to look for none, if there is nothing else in the
 * function. Reverse passes, which add up rows, gain by pairs. */
static bool is_elimination(const Range *r, const Nest *n) {
    return n->stores_quotients && !n->is_reverse && is_only_loop(n->loop) && r->options.register_bits >= 128;
}

/* LLVM makes no vectors of loops for GPUs. */
static bool copy_flat(Range *r, Inst *loop) {
    const Module *module = r->func->module;
    Nest flat = find_nest(r, loop, true);
    bool in_pairs = flat.has_doubles && r->options.register_bits < 256, alone = is_elimination(r, &flat);
    bool at_once = !in_pairs || loop_rounds_at_once(loop) > 1;
    bool suits_llvm = !module->many_threads && (at_once ? r->options.register_bits >= 128 : alone);
    if (!(module->keeps_order || suits_llvm) || !copy_nest(r, &flat)) return false;
    if (alone && !at_once && !module->keeps_order) r->func->flags |= FUNC_ONE_BY_ONE;
    return true;
}

static void visit_loop(Range *r, Inst *loop) {
    if (loop->hints.few) return;
    Nest n = find_nest(r, loop, false);
    bool was_in_rounds = r->in_rounds, is_innermost = n.inner.count == 0;
    r->in_rounds |= loop->hints.wide;
    if (loop->hints.wide) ask_before(r, &n);
    bool may_copy = !loop->hints.wide,
         is_done = may_copy && (is_innermost || !r->in_rounds) && copy_nest(r, &n);
    if (may_copy && !is_done) is_done = copy_flat(r, loop);
    r->copies += is_done;
    bool goes_on = !is_innermost && r->copies < MOST_COPIES;
    for (int i = 0; i < loop->nregions && goes_on; i++) visit_region(r, loop->regions[i]);
    r->in_rounds = was_in_rounds;
    r->copies -= is_done;
}

static void visit_region(Range *r, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OP_loop) visit_loop(r, inst);
        else
            for (int i = 0; i < inst->nregions; i++) visit_region(r, inst->regions[i]);
    }
}

static void note_sum(void *user, Inst *inst) {
    Range *r = user;
    const Val *root = inst->op == OP_atomic ? ir_root(inst->args[0]) : NULL;
    if (root && root->kind == VAL_inst) map_put(r->scratch, &r->summed, PTR_KEY(root->inst), r);
}

static void note_nest(void *user, Inst *inst) {
    Range *r = user;
    bool is_element = inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes;
    if (is_element && inst->apart.nest > r->nests) r->nests = inst->apart.nest;
}

bool opt_range(Func *func, RangeOptions options) {
    if (!func->body) return false;
    Range r = {.func = func, .scratch = arena_scratch(func->module->arena), .options = options};
    r.changed = ir_mark_in_range(func);
    r.jumps = loop_find_jumps(r.scratch, func);
    r.changed |= range_mark_below(func, &r.jumps);
    r.rehearsal = ir_rehearsal(r.scratch, func);
    if (func->module->many_threads) region_walk(func->body, note_sum, &r);
    if (options.apart) region_walk(func->body, note_nest, &r);
    if (options.copies) visit_region(&r, func->body);
    arena_free(r.scratch);
    return r.changed;
}
