/* What rounds of a loop add to places beside each other is added up in registers first.
 *
 *     for (i ..) {                               a = b = 0;
 *         d[i - 1] += x;                         for (i ..) {
 *         d[i] += y;                                 d[i - 1] += a + x;
 *         d[i + 1] += z;                             a = b + y; b = z;
 *     }                                          }
 *                                                d[i - 1] += a; d[i] += b;
 *
 * The adjoint of a stencil is such a loop. Each round adds to places that the one before has just stored, so
 * that it waits for it in memory, and LLVM does one after the other. But they are sums, of which no order was
 * ever written: those for one place are carried until the last round that adds to it. What is carried does
 * not come round: LLVM takes vectors of it (fixed-order recurrences), and a round reads and writes one place.
 *
 * A step that is made in place reads what it writes. What is read there meanwhile is what is in memory with
 * what is held for it. What every round writes is all that is there from then on: it is held as a whole, and
 * goes to memory once; where the first rounds find such numbers, they are read before the loop.
 *
 * All else that the loop does must be apart from these places. Whether other sums are does not matter, unless
 * something is held as a whole. Places move by constant steps, and are in range, so that indices which differ
 * by a constant do so in memory, too. Behind the loop nothing is written but what rounds have added to: where
 * there was none, the place may be out of range, or another thread's. */
#include "opt.h"

enum {
    MOST_ACCESSES = 64, /* of a loop, that may be in windows */
    MOST_AHEAD = 8,     /* rounds between the first that adds to a place and the last ... */
    MOST_BETWEEN = 3, /* ... and between one and the next: LLVM makes vectors where they are further apart */
    MOST_HELD = 16,   /* numbers that a loop carries on */
    MOST_TERMS = 4,   /* of an index */
    DEPTH = 12,
    ELSEWHERE = 1 << 20, /* as a lag: at no place of the window, or nobody knows */
};
static const int64_t FAR = (int64_t)1 << 26; /* few such terms make no distance of 2 to the 32 */

/* An index: its terms, and a constant. Numbers may wrap around, which moves them by 2 to the 32. */
typedef struct Index {
    const Val *terms[MOST_TERMS];
    int64_t factors[MOST_TERMS];
    int count;
    int64_t offset, step; /* from round to round */
    bool known;
} Index;

typedef enum Kind { SUM, READ, WRITE } Kind;

typedef struct Access {
    Kind kind;
    Inst *inst;       /* of a sum, a store or an atomic one; NULL: it is not made there any more */
    int number;       /* as things are written */
    Inst *moving;     /* the step of its address that is another one in each round */
    Val *value;       /* that is added, or written */
    bool is_negative; /* it is taken away */
    Index index;
    int64_t lag; /* of a window: so many rounds later, this place is where the last of it is */
} Access;

/* Something else that reads or writes memory. */
typedef struct Other {
    Inst *inst;
    int number;
} Other;

typedef struct Window {
    Func *func;
    Memory memory;
    int *uses;     /* by Val.id */
    bool *is_part; /* by id of what a load reads: of a sum */
    Arena *scratch;
    Inst *loop;
    Access at[MOST_ACCESSES];
    int count, now;
    VEC(Other) others;
    InstVec loose; /* sums that are made anywhere */
    bool is_opaque;
    int held;
    bool changed;
} Window;

/* ---- indices */

static void add_index(const Window *w, Index *index, const Val *v, int64_t factor, int depth);

static void add_term(const Window *w, Index *index, const Val *v, int64_t factor) {
    int i = 0;
    if (inst_contains(w->loop, v)) {
        bool is_carried = v->kind == VAL_param && v->region == w->loop->regions[1];
        LoopSteps steps = is_carried ? loop_steps(w->loop, NULL, 0, v->index) : (LoopSteps){0};
        bool is_even =
            steps.known && steps.least == steps.greatest && steps.least > -FAR && steps.least < FAR;
        index->known &= is_even;
        if (!is_even) return;
        index->step += factor * steps.least;
    }
    while (i < index->count && index->terms[i] != v) i++;
    index->known &= i < MOST_TERMS;
    if (!index->known) return;
    if (i == index->count) index->terms[index->count++] = v, index->factors[i] = 0;
    index->factors[i] += factor;
}

static void add_made(const Window *w, Index *index, const Inst *inst, int64_t factor, int depth) {
    int64_t number;
    bool is_sum = inst->op == OP_add || inst->op == OP_sub,
         is_product = inst->op == OP_mul && val_is_int(inst_operand(inst, 1), &number) && number > -FAR &&
                      number < FAR;
    if (is_sum || is_product || inst->op == OP_convert)
        add_index(w, index, inst_operand(inst, 0), is_product ? factor * number : factor, depth - 1);
    if (is_sum) add_index(w, index, inst_operand(inst, 1), inst->op == OP_sub ? -factor : factor, depth - 1);
    if (!is_sum && !is_product && inst->op != OP_convert) add_term(w, index, inst->results[0], factor);
}

static void add_index(const Window *w, Index *index, const Val *v, int64_t factor, int depth) {
    int64_t number;
    bool is_wide = type_is_integer(v->type) && type_bits(v->type) >= 32;
    index->known &= depth > 0 && factor > -FAR && factor < FAR && is_wide;
    if (!index->known) return;
    if (val_is_int(v, &number)) {
        index->known = number > -FAR && number < FAR;
        if (index->known) index->offset += factor * number;
    } else if (v->kind == VAL_inst) {
        add_made(w, index, v->inst, factor, depth);
    } else {
        add_term(w, index, v, factor);
    }
}

static int64_t factor_of(const Index *index, const Val *term) {
    for (int i = 0; i < index->count; i++)
        if (index->terms[i] == term) return index->factors[i];
    return 0;
}

/* Do they differ by a constant? */
static bool are_beside(const Index *a, const Index *b) {
    for (int i = 0; i < a->count; i++)
        if (factor_of(b, a->terms[i]) != a->factors[i]) return false;
    for (int i = 0; i < b->count; i++)
        if (factor_of(a, b->terms[i]) != b->factors[i]) return false;
    return true;
}

/* ---- places */

static bool is_element(const Inst *step) { return step->op == OP_elem || step->op == OP_buffer_elem; }

static bool is_step(const Val *address) {
    return address->kind == VAL_inst && (is_element(address->inst) || address->inst->op == OP_field);
}

/* The step that is another one in each round, if all others are the same ones; else NULL. */
static Inst *moving_step(const Window *w, const Val *address) {
    Inst *moving = NULL;
    while (is_step(address) && inst_contains(w->loop, address)) {
        Inst *step = address->inst;
        if (is_element(step) && inst_contains(w->loop, inst_operand(step, 1))) {
            if (moving || !inst_has(step, INST_UNCHECKED)) return NULL;
            moving = step;
        }
        address = inst_operand(step, 0);
    }
    return inst_contains(w->loop, address) ? NULL : moving;
}

static bool is_same_step(const Inst *a, const Inst *b) {
    if (a->op != b->op) return false;
    return a->op == OP_field ? a->index == b->index : val_is_same(inst_operand(a, 1), inst_operand(b, 1));
}

/* Are the addresses the same but for the index by which they move? */
static bool is_same_way(const Access *a, const Access *b) {
    const Val *one = inst_operand(a->inst, 0), *other = inst_operand(b->inst, 0);
    while (one != other) {
        if (!is_step(one) || !is_step(other)) return false;
        bool is_moving =
            one->inst == a->moving && other->inst == b->moving && one->inst->op == other->inst->op;
        if (!is_moving && !is_same_step(one->inst, other->inst)) return false;
        one = inst_operand(one->inst, 0);
        other = inst_operand(other->inst, 0);
    }
    return true;
}

/* May something there be a part of the place that the sum is in? */
static bool may_meet(const Window *w, const Val *address, const Val *other) {
    Space space = ir_space(address->type), its = ir_space(other->type);
    if (space != its && space != SPACE_any && its != SPACE_any) return false;
    const Inst *a = ir_element(address), *b = ir_element(other);
    if (a && b && ir_are_marked_apart(a->apart, b->apart)) return false;
    Object object = opt_memory_object(&w->memory, address), that = opt_memory_object(&w->memory, other);
    if (object.key && object.key == that.key) return !ir_are_apart(address, other);
    bool is_known = (object.key && object.is_private) || (that.key && (that.is_private || that.is_constant));
    return !is_known;
}

static bool is_used_there(const Window *w, const Inst *inst, const Val *address) {
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        bool is_used = role == ROLE_read || role == ROLE_write || role == ROLE_share;
        if (is_used && may_meet(w, address, inst_operand(inst, i))) return true;
    }
    return false;
}

/* ---- what a loop does */

/* What is read is added to, and put back, before anything else is written. */
static bool is_at_once(const Inst *load, const Inst *store) {
    const Inst *inst = load;
    while (inst && inst != store && !inst->nregions &&
           !op_has(inst->op, OP_WRITES | OP_EFFECT | OP_CALLS | OP_LEAVES))
        inst = inst->next;
    return inst == store;
}

/* The load of `d[i] += x`, if that is all that it is for; else NULL. */
static const Inst *load_of_sum(const Window *w, const Inst *inst) {
    const Inst *load = opt_memory_sum(inst);
    if (!load || ir_space(inst->args[0]->type) == SPACE_tape) return NULL;
    bool is_all = w->uses[load->results[0]->id] == 1 && w->uses[inst_operand(inst, 1)->id] == 1;
    return is_all && is_at_once(load, inst) ? load : NULL;
}

/* False: where it is nobody can tell. */
static bool add_access(Window *w, Kind kind, Inst *inst, const Inst *load, int number) {
    Access access = {.kind = kind, .inst = inst, .number = number, .index = {.known = true}};
    access.moving = moving_step(w, inst_operand(inst, 0));
    if (inst->parent != w->loop->regions[1] || w->count == MOST_ACCESSES || !access.moving) return false;
    add_index(w, &access.index, inst_operand(access.moving, 1), 1, DEPTH);
    if (!access.index.known || access.index.step == 0) return false;
    access.value = kind == READ ? inst->results[0] : inst_operand(inst, 1);
    if (load) {
        const Inst *made = access.value->inst;
        bool is_first = inst_operand(made, 0) == load->results[0];
        access.is_negative = made->op == OP_sub;
        access.value = inst_operand(made, is_first ? 1 : 0);
    }
    w->at[w->count++] = access;
    return true;
}

static void look_at(void *user, Inst *inst) {
    Window *w = user;
    const Inst *load = load_of_sum(w, inst);
    w->now++;
    w->is_opaque |= op_has(inst->op, OP_EFFECT | OP_LEAVES) ? !is_for_tape(inst)
                                                            : inst->op == OP_call && !opt_is_repeatable(inst);
    if (load) w->is_part[load->results[0]->id] = true;
    bool is_sum = load || opt_is_sum(w->uses, inst);
    if (is_sum && !add_access(w, SUM, inst, load, w->now)) vec_push(w->scratch, &w->loose, inst);
    if (!is_sum && op_has(inst->op, OP_READS | OP_WRITES))
        vec_push(w->scratch, &w->others, ((Other){inst, w->now}));
}
/* Is it read for a sum, and nothing else? */
static bool is_for_sum(const Window *w, const Inst *inst) {
    return inst->op == OP_load && w->is_part[inst->results[0]->id];
}

static bool has_sum_in(const Window *w, const Val *base, int count) {
    for (int i = 0; i < count; i++)
        if (w->at[i].inst->op == OP_store && ir_base(w->at[i].inst->args[0]) == base) return true;
    return false;
}

/* What else is done at places that sums are made in. */
static void add_others(Window *w) {
    int sums = w->count;
    for (int i = 0; i < w->others.count; i++) {
        Inst *inst = w->others.at[i].inst;
        bool is_one = inst->op == OP_load || inst->op == OP_store;
        if (is_one && !is_for_sum(w, inst) && has_sum_in(w, ir_base(inst->args[0]), sums))
            add_access(w, inst->op == OP_load ? READ : WRITE, inst, NULL, w->others.at[i].number);
    }
    for (int i = sums; i < w->count; i++) { /* in order */
        Access access = w->at[i];
        int k = i;
        for (; k > 0 && w->at[k - 1].number > access.number; k--) w->at[k] = w->at[k - 1];
        w->at[k] = access;
    }
}

/* ---- windows */

static bool is_atomic(const Access *access) { return access->inst->op == OP_atomic; }

/* Rounds until the place is where the other access is made. False: it never is. */
static bool find_lag(Access *access, const Access *last) {
    if (!access->inst || access->index.step != last->index.step) return false;
    int64_t distance = access->index.offset - last->index.offset, step = last->index.step;
    if (distance % step != 0 || is_atomic(access) != is_atomic(last)) return false;
    if (inst_operand(access->inst, 0)->type != inst_operand(last->inst, 0)->type) return false;
    if (!are_beside(&access->index, &last->index) || !is_same_way(access, last)) return false;
    access->lag = distance / step;
    return true;
}

/* How many rounds the first sum for a place is ahead of this access, if it is the last; 0: it is not, or no
 * sum is. Lags are known then. */
static int rounds_ahead(Window *w, const Access *last) {
    int64_t ahead = 0, reached = 0;
    for (int i = 0; i < w->count; i++) {
        Access *access = &w->at[i];
        if (!find_lag(access, last)) access->lag = ELSEWHERE;
        else if (access->lag < 0 && access->lag >= -MOST_BETWEEN) return 0;
    }
    for (int64_t before = -1; before < reached;) {
        before = reached;
        for (int i = 0; i < w->count; i++) {
            int64_t lag = w->at[i].lag;
            if (lag > MOST_AHEAD || lag < 0 || lag > before + MOST_BETWEEN) continue;
            if (lag > reached) reached = lag;
            if (lag > ahead && w->at[i].kind == SUM) ahead = lag;
        }
    }
    return (int)ahead;
}

/* Is nothing else done at these places? Other sums may matter, or not. */
static bool is_alone(const Window *w, const Val *address, bool sums_matter) {
    for (int i = 0; i < w->others.count; i++) {
        const Inst *inst = w->others.at[i].inst;
        bool is_known = is_for_sum(w, inst);
        for (int k = 0; k < w->count && !is_known; k++)
            is_known = w->at[k].inst == inst && w->at[k].lag != ELSEWHERE;
        if (!is_known && is_used_there(w, inst, address)) return false;
    }
    for (int i = 0; i < w->loose.count && sums_matter; i++)
        if (is_used_there(w, w->loose.at[i], address)) return false;
    for (int i = 0; i < w->count && sums_matter; i++)
        if (w->at[i].inst && w->at[i].lag == ELSEWHERE && is_used_there(w, w->at[i].inst, address))
            return false;
    return true;
}

/* ---- a window in a loop */

/* For each place of the window, by its lag: what was added there, but is not in memory yet; where something
 * is written in every round, all that is there from then on. */
typedef struct Making {
    Window *w;
    const Access *last;
    int ahead;
    int written;     /* the greatest lag of what is written; 0: it goes to memory */
    bool is_written; /* by this round */
    Val *held[MOST_AHEAD + 2];
    Region *behind[MOST_AHEAD + 1]; /* by rounds: what is done there if there were so many */
} Making;

static bool is_whole(const Making *m, int64_t lag) {
    return lag < m->written || (lag == m->written && lag > 0 && m->is_written);
}

static bool is_inside(const Making *m, const Access *access) {
    return access->inst && access->lag >= 0 && access->lag <= m->ahead;
}

/* Does something read what is held? */
static bool is_read(const Making *m) {
    bool is_held = false;
    for (int i = 0; i < m->w->count; i++) {
        const Access *access = &m->w->at[i];
        if (!is_inside(m, access)) continue;
        if (access->kind == READ && (access->lag < m->ahead || is_held)) return true;
        is_held |= access->kind != READ && access->lag == m->ahead;
    }
    return false;
}

static Val *with_sum(Builder *b, Val *before, const Access *sum) {
    Val *value = ir_resolve(sum->value);
    if (sum->is_negative) value = build_unary(b, OP_neg, value);
    return before ? build_sum(b, before, value) : value;
}

/* What is read is what is there with what is held. */
static void put_read(Builder *b, Inst *load, Val *held, bool is_whole) {
    Val *value = is_whole ? held : build_sum(b, build_load(b, inst_operand(load, 0)), held);
    load->results[0]->forward = value;
    inst_remove(load);
}

static void make_access(Making *m, Builder *b, Access *access) {
    Val **held = &m->held[access->lag];
    bool is_kept = access->kind == WRITE && m->written == 0;
    if (access->kind == SUM) *held = with_sum(b, *held, access);
    if (access->kind == READ && *held) put_read(b, access->inst, *held, is_whole(m, access->lag));
    if (access->kind == WRITE) {
        m->is_written |= access->lag == m->written;
        *held = is_kept ? NULL : ir_resolve(access->value);
    }
    if (access->kind != READ && !is_kept) inst_remove(access->inst);
    if (access != m->last) access->inst = NULL;
}

/* Where nothing reads what is held, sums are made last, each before the one that it waits for: as LLVM has
 * them for vectors. */
static void make_accesses(Making *m, Builder *end) {
    Window *w = m->w;
    bool in_order = is_read(m);
    for (int64_t lag = m->ahead; lag >= (in_order ? m->ahead : 0); lag--)
        for (int i = 0; i < w->count; i++) {
            Access *access = &w->at[i];
            if (!is_inside(m, access) || (!in_order && access->lag != lag)) continue;
            Builder here = in_order ? build_before(access->inst) : *end;
            here.loc = access->inst->loc;
            if (in_order || access->kind != READ) make_access(m, &here, access);
        }
}

/* Makes a sum as that was made, elsewhere, or writes all that is there. */
static void put(Builder *b, const Inst *sum, Val *address, Val *value, bool is_whole) {
    Val *const args[] = {address, value};
    if (is_whole) build_store(b, address, value);
    else if (sum->op == OP_atomic) clone_with(b, sum, args);
    else build_store(b, address, build_sum(b, build_load(b, address), value));
}

/* An index, as it is in the first round, or would be in the one after the last: these are carried then. */
static Val *index_in(const Window *w, Builder *b, Val *v, Val *const *carried) {
    if (!inst_contains(w->loop, v)) return v;
    if (v->kind == VAL_param) return ir_resolve(carried[v->index]);
    Val *args[2];
    for (int i = 0; i < v->inst->nargs; i++) args[i] = index_in(w, b, inst_operand(v->inst, i), carried);
    return build_op(b, v->inst->op, v->type, args, v->inst->nargs);
}

/* ... and an address, so many rounds later. */
static Val *place_in(const Making *m, Builder *b, Val *address, Val *const *carried, int64_t rounds) {
    const Access *last = m->last;
    if (!inst_contains(m->w->loop, address)) return address;
    const Inst *step = address->inst;
    Val *from = inst_operand(step, 0), *args[2];
    args[0] = step->op == OP_buffer_elem ? from : place_in(m, b, from, carried, rounds);
    if (is_element(step)) args[1] = index_in(m->w, b, inst_operand(step, 1), carried);
    if (step == last->moving)
        args[1] = build_binary(b, OP_add, args[1],
                               ir_const_int(step->func->module, args[1]->type, rounds * last->index.step));
    Inst *copy = clone_with(b, step, args);
    if (step == last->moving) copy->flags &= (uint8_t)~INST_UNCHECKED;
    return copy->results[0];
}

/* How many rounds it takes until something is added to the place that is so many rounds behind the last. */
static int rounds_until(const Window *w, int ahead, int place) {
    int64_t least = MOST_AHEAD;
    for (int i = 0; i < w->count; i++) {
        const Access *access = &w->at[i];
        bool is_later = access->lag > place && access->lag <= ahead && access->lag - place < least;
        if (access->inst && access->kind != READ && is_later) least = access->lag - place;
    }
    return (int)least;
}

/* May it be computed again, before the loop? Also as it is in later rounds? */
static bool is_known_before(const Window *w, const Val *v, bool later) {
    int64_t step;
    if (!inst_contains(w->loop, v)) return true;
    if (v->kind == VAL_param)
        return v->region->owner == w->loop && (!later || loop_step(w->loop, v->index, &step));
    bool is_known = op_has(v->inst->op, OP_ELEMENTWISE) && v->inst->nargs <= 2;
    for (int i = 0; i < v->inst->nargs && is_known; i++)
        is_known = is_known_before(w, inst_operand(v->inst, i), later);
    return is_known;
}

/* What is carried, in the given round. NULL: nobody knows. */
static Val *carried_in(const Window *w, Builder *b, int i, int round) {
    Val *first = ir_resolve(w->loop->args[i]);
    int64_t step;
    if (round == 0) return first;
    if (!loop_step(w->loop, i, &step)) return NULL;
    return build_binary(b, OP_add, first, ir_const_int(w->func->module, first->type, round * step));
}

/* Are there so many rounds? */
static Val *has_rounds(const Window *w, Builder *b, int rounds) {
    Inst *loop = w->loop;
    Val **carried = arena_array(w->scratch, Val *, loop->nargs), *all = NULL;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < loop->nargs; i++) carried[i] = carried_in(w, b, i, round);
        Val *goes_on = index_in(w, b, inst_operand(loop->regions[0]->last, 0), carried);
        all = all ? build_binary(b, OP_and, all, goes_on) : goes_on;
    }
    return all;
}

/* Where things are done behind the loop, for each number of rounds that there has to be. */
static void make_behind(Making *m, Builder *before, Builder *behind) {
    for (int i = 0; i < m->ahead; i++) {
        int rounds = rounds_until(m->w, m->ahead, i);
        if (m->behind[rounds]) continue;
        Val *condition = has_rounds(m->w, before, rounds);
        m->behind[rounds] = behind->region;
        if (val_is_one(condition)) continue;
        Inst *choice = build_if(behind, condition, NULL, 0);
        for (int k = 0; k < 2; k++) {
            Builder side = build_at_end(choice->regions[k]);
            build_yield(&side, NULL, 0);
        }
        m->behind[rounds] = choice->regions[0];
    }
}

/* Of one of the places that are left when the loop ends: the value held for it is added to what is there. */
static void put_behind(const Making *m, Val *address, int place, int rounds, Val *rest) {
    Region *region = m->behind[rounds];
    Builder b = build_before(region == m->w->loop->parent ? m->w->loop->next : region->last);
    b.loc = m->last->inst->loc;
    put(&b, m->last->inst, place_in(m, &b, address, m->w->loop->results, place), rest, place < m->written);
}

static void make_window(Window *w, Access *last, int ahead, int written) {
    Making m = {.w = w, .last = last, .ahead = ahead, .written = written};
    Inst *loop = w->loop, *yield = loop->regions[1]->last;
    Val *address = inst_operand(last->inst, 0);
    const Type *type = ir_target(address->type);
    Builder before = build_before(loop), end = build_before(yield), behind = build_before(loop->next);
    before.loc = end.loc = behind.loc = last->inst->loc;
    Val *nothing = build_unary(&before, OP_neg, ir_const_zero(w->func->module, type));
    int rounds[MOST_AHEAD];
    for (int i = 0; i < ahead; i++) rounds[i] = rounds_until(w, ahead, i);
    make_behind(&m, &before, &behind);
    for (int i = 0; i < ahead; i++) {
        bool is_there = is_whole(&m, i);
        Val *first = is_there ? place_in(&m, &before, address, loop->args, i) : NULL;
        inst_add_arg(loop, is_there ? build_load(&before, first) : nothing);
        region_add_param(loop->regions[0], type, NULL);
        m.held[i] = region_add_param(loop->regions[1], type, NULL);
    }
    make_accesses(&m, &end);
    if (m.held[0]) put(&end, last->inst, address, m.held[0], is_whole(&m, 0));
    for (int i = 0; i < ahead; i++) {
        Val *next = m.held[i + 1], *rest = inst_add_result(loop, type, NULL);
        inst_add_arg(yield, next ? next : nothing);
        put_behind(&m, address, i, rounds[i], rest);
    }
    if (yield->prev->op == OP_store || yield->prev->op == OP_atomic)
        vec_push(w->scratch, &w->loose, yield->prev);
    last->inst = NULL;
    w->held += ahead;
    w->changed = true;
}

/* Can be told before the loop whether something is added to each of the places? */
static bool can_count(const Window *w, int ahead) {
    bool later = false;
    for (int i = 0; i < ahead; i++) later |= rounds_until(w, ahead, i) > 1;
    return is_known_before(w, inst_operand(w->loop->regions[0]->last, 0), later);
}

/* Makes the window of which this access is the last, if there is one. */
static void find_window(Window *w, Access *last) {
    int ahead = last->inst ? rounds_ahead(w, last) : 0, written = 0;
    if (ahead == 0 || w->held + ahead > MOST_HELD) return;
    for (int i = 0; i < w->count; i++) {
        const Access *access = &w->at[i];
        bool writes = access->inst && access->kind == WRITE && access->lag <= ahead;
        if (writes && access->lag > written) written = (int)access->lag;
    }
    if (!is_alone(w, inst_operand(last->inst, 0), written > 0) || !can_count(w, ahead)) return;
    make_window(w, last, ahead, written);
}

/* ---- the function */

static void visit_loop(Window *w, Inst *loop) {
    if (loop->nregions != 2 || loop->regions[1]->last->op != OP_yield || loop_is_left(loop)) return;
    w->loop = loop;
    w->count = w->others.count = w->loose.count = w->held = 0;
    w->is_opaque = false;
    inst_walk(loop, look_at, w);
    if (w->count == 0 || w->is_opaque) return;
    add_others(w);
    for (int i = 0; i < w->count; i++) find_window(w, &w->at[i]);
}

/* True: it has loops. Of a nest, those inside are looked at. */
static bool visit_region(Window *w, Region *region) {
    bool any = false;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        bool has_loops = false;
        for (int i = 0; i < inst->nregions; i++) has_loops |= visit_region(w, inst->regions[i]);
        if (inst->op == OP_loop && !has_loops) visit_loop(w, inst);
        any |= has_loops || inst->op == OP_loop;
    }
    return any;
}

bool opt_window(Func *func) {
    if (!func->body || !region_has_loop(func->body)) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Window w = {.func = func,
                .scratch = scratch,
                .uses = region_count_uses(scratch, func->body),
                .is_part = arena_array(scratch, bool, func->nvals + 1)};
    opt_memory_init(&w.memory, scratch, func);
    visit_region(&w, func->body);
    if (w.changed) ir_resolve_func(func);
    arena_free(scratch);
    return w.changed;
}
