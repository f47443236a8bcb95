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
 * All else that the loop does must be apart from these places. Whether other sums are does not matter. Places
 * move by constant steps, and are in range, so that indices which differ by a constant do so in memory, too.
 * Behind the loop they are in range if there was a round; if not, zeros are added, to whatever is there.
 *
 * Not for C: gcc makes vectors of such loops less often than of those that it is given. */
#include "opt.h"

enum {
    MOST_SUMS = 64,   /* of a loop */
    MOST_AHEAD = 8,   /* rounds between the first that adds to a place and the last ... */
    MOST_BETWEEN = 3, /* ... and between one and the next: LLVM makes vectors where they are further apart */
    MOST_HELD = 16,   /* numbers that a loop carries on */
    MOST_TERMS = 4,   /* of an index */
    DEPTH = 12,
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

typedef struct Sum {
    Inst *inst;   /* a store, or an atomic one */
    Inst *moving; /* the step of its address that is another one in each round */
    Val *value;
    bool is_negative; /* it is taken away */
    Index index;
    int64_t lag; /* of one of the window: so many rounds later, the place is where its last sum is made */
} Sum;

typedef struct Window {
    Func *func;
    Memory memory;
    int *uses;     /* by Val.id */
    bool *is_part; /* by id of what a load reads: of a sum */
    Arena *scratch;
    Inst *loop;
    Sum sums[MOST_SUMS];
    int count;
    InstVec others; /* that read or write memory */
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
static bool is_same_way(const Sum *a, const Sum *b) {
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

static void add_sum(Window *w, Inst *inst, const Inst *load) {
    Sum sum = {.inst = inst, .moving = moving_step(w, inst_operand(inst, 0)), .index = {.known = true}};
    if (inst->parent != w->loop->regions[1] || w->count == MOST_SUMS || !sum.moving) return;
    add_index(w, &sum.index, inst_operand(sum.moving, 1), 1, DEPTH);
    if (!sum.index.known || sum.index.step == 0) return;
    sum.value = inst_operand(inst, 1);
    if (load) {
        const Inst *made = sum.value->inst;
        bool is_first = inst_operand(made, 0) == load->results[0];
        sum.is_negative = made->op == OP_sub;
        sum.value = inst_operand(made, is_first ? 1 : 0);
    }
    w->sums[w->count++] = sum;
}

static void look_at(void *user, Inst *inst) {
    Window *w = user;
    const Inst *load = load_of_sum(w, inst);
    w->is_opaque |= op_has(inst->op, OP_EFFECT | OP_LEAVES) ? !is_for_tape(inst)
                                                            : inst->op == OP_call && !opt_is_repeatable(inst);
    if (load) w->is_part[load->results[0]->id] = true;
    if (load || opt_is_sum(w->uses, inst)) add_sum(w, inst, load);
    else if (op_has(inst->op, OP_READS | OP_WRITES)) vec_push(w->scratch, &w->others, inst);
}

static bool is_alone(const Window *w, const Val *address) {
    for (int i = 0; i < w->others.count; i++) {
        const Inst *inst = w->others.at[i];
        bool is_part = inst->op == OP_load && w->is_part[inst->results[0]->id];
        if (!is_part && is_used_there(w, inst, address)) return false;
    }
    return true;
}

/* ---- windows */

/* Rounds until the place is where the other sum is made. False: it never is. */
static bool find_lag(Sum *sum, const Sum *last) {
    int64_t distance = sum->index.offset - last->index.offset, step = last->index.step;
    if (!sum->inst || sum->index.step != step || distance % step != 0) return false;
    if (inst_operand(sum->inst, 0)->type != inst_operand(last->inst, 0)->type) return false;
    if (!are_beside(&sum->index, &last->index) || !is_same_way(sum, last)) return false;
    sum->lag = distance / step;
    return true;
}

/* How many rounds the first sum for a place is ahead of this one, if it is the last; 0: it is not, or alone.
 * Lags are known then. */
static int rounds_ahead(Window *w, const Sum *last) {
    int64_t ahead = 0;
    for (int i = 0; i < w->count; i++) {
        Sum *sum = &w->sums[i];
        if (!find_lag(sum, last)) sum->lag = MOST_AHEAD + 1;
        else if (sum->lag < 0 && sum->lag >= -MOST_BETWEEN) return 0;
    }
    for (int64_t reached = -1; reached < ahead;) {
        reached = ahead;
        for (int i = 0; i < w->count; i++) {
            int64_t lag = w->sums[i].lag;
            if (lag > ahead && lag <= reached + MOST_BETWEEN && lag <= MOST_AHEAD) ahead = lag;
        }
    }
    return (int)ahead;
}

static Val *add_to(Builder *b, Val *total, const Sum *sum) {
    if (!total) return sum->is_negative ? build_unary(b, OP_neg, sum->value) : sum->value;
    if (!sum->is_negative) return build_sum(b, total, sum->value);
    Val *difference = build_binary(b, OP_sub, total, sum->value);
    difference->inst->flags |= INST_FREE;
    return difference;
}

/* What was carried for a place, and what this round adds to that. They are not made there any more. */
static Val *add_sums(Window *w, Builder *b, Val *carried, int64_t lag, const Sum *last) {
    Val *total = carried;
    for (int i = 0; i < w->count; i++) {
        Sum *sum = &w->sums[i];
        if (sum->lag != lag) continue;
        total = add_to(b, total, sum);
        inst_remove(sum->inst);
        if (sum != last) sum->inst = NULL;
    }
    return total;
}

/* Makes the sum as that was made, elsewhere. */
static void put_sum(Builder *b, const Inst *sum, Val *address, Val *value) {
    Val *const args[] = {address, value};
    if (sum->op == OP_atomic) clone_with(b, sum, args);
    else build_store(b, address, build_sum(b, build_load(b, address), value));
}

/* An index, as it would be in the round after the last. */
static Val *index_behind(const Window *w, Builder *b, Val *v) {
    if (!inst_contains(w->loop, v)) return v;
    if (v->kind == VAL_param) return w->loop->results[v->index];
    Val *args[2];
    for (int i = 0; i < v->inst->nargs; i++) args[i] = index_behind(w, b, inst_operand(v->inst, i));
    Inst *copy = clone_with(b, v->inst, args);
    copy->flags &= (uint8_t)~INST_UNCHECKED;
    return copy->results[0];
}

/* ... and an address, so many rounds later. */
static Val *place_behind(const Window *w, Builder *b, Val *address, const Sum *last, int64_t rounds) {
    if (!inst_contains(w->loop, address)) return address;
    const Inst *step = address->inst;
    Val *args[2] = {step->op == OP_buffer_elem ? inst_operand(step, 0)
                                               : place_behind(w, b, inst_operand(step, 0), last, rounds)};
    if (is_element(step)) args[1] = index_behind(w, b, inst_operand(step, 1));
    if (step == last->moving)
        args[1] = build_binary(b, OP_add, args[1],
                               ir_const_int(w->func->module, args[1]->type, rounds * last->index.step));
    Inst *copy = clone_with(b, step, args);
    if (step == last->moving) copy->flags &= (uint8_t)~INST_UNCHECKED;
    return copy->results[0];
}

static void make_window(Window *w, Sum *last, int ahead) {
    Inst *loop = w->loop, *yield = loop->regions[1]->last;
    Val *address = inst_operand(last->inst, 0), *now[MOST_AHEAD + 2] = {0}, *next[MOST_AHEAD + 1];
    const Type *type = last->value->type;
    Builder inside = build_before(yield), behind = build_before(loop->next);
    inside.loc = behind.loc = last->inst->loc;
    for (int i = 1; i <= ahead; i++) {
        inst_add_arg(loop, ir_const_zero(w->func->module, type));
        region_add_param(loop->regions[0], type, NULL);
        now[i] = region_add_param(loop->regions[1], type, NULL);
    }
    for (int i = ahead; i >= 0; i--) next[i] = add_sums(w, &inside, now[i + 1], i, last);
    put_sum(&inside, last->inst, address, next[0]);
    for (int i = 1; i <= ahead; i++) {
        inst_add_arg(yield, next[i]);
        Val *rest = inst_add_result(loop, type, NULL);
        put_sum(&behind, last->inst, place_behind(w, &behind, address, last, i - 1), rest);
    }
    last->inst = NULL;
    w->held += ahead;
    w->changed = true;
}

/* ---- the function */

static void visit_loop(Window *w, Inst *loop) {
    if (loop->nregions != 2 || loop->regions[1]->last->op != OP_yield || loop_is_left(loop)) return;
    w->loop = loop;
    w->count = w->others.count = w->held = 0;
    w->is_opaque = false;
    inst_walk(loop, look_at, w);
    for (int i = 0; i < w->count && !w->is_opaque; i++) {
        Sum *sum = &w->sums[i];
        int ahead = sum->inst ? rounds_ahead(w, sum) : 0;
        if (ahead > 0 && w->held + ahead <= MOST_HELD && is_alone(w, inst_operand(sum->inst, 0)))
            make_window(w, sum, ahead);
    }
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

static bool is_loop(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_loop;
}

bool opt_window(Func *func) {
    const Module *module = func->module;
    bool has_loops = func->body && region_find(func->body, is_loop, NULL);
    if (!has_loops || module->many_threads || module->keeps_order) return false;
    Arena *scratch = arena_scratch(module->arena);
    Window w = {.func = func,
                .scratch = scratch,
                .uses = region_count_uses(scratch, func->body),
                .is_part = arena_array(scratch, bool, func->nvals + 1)};
    opt_memory_init(&w.memory, scratch, func);
    visit_region(&w, func->body);
    arena_free(scratch);
    return w.changed;
}
