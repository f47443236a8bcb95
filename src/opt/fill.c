/* What is set and then added to is set once.
 *
 *     for (i ..) g[i] = 0;
 *     for (i ..) g[i] += x;                  for (i ..) g[i] = x;
 *
 * Gradients in buffers begin as zeros, which the program stores, and reverse passes add to them. Where the
 * sum is the first that happens to what was set, the sum is what is set. LLVM finds that within one round,
 * but makes a call of the zeros first, for which it then does one round at a time; and it never joins two
 * loops. Such a loop that sets, and one behind it that has as many rounds, each of which does nothing with
 * the buffer but in the element that the same round of the first one set, are one where a test before the
 * second has found that buffers do not overlap (range.c), and has asked all that the test before the first
 * asks, if there is one; else both run as they are.
 *
 * Others may have added something between the store and the sum, had they not waited: that is lost as if they
 * had done so before the store. */
#include "opt.h"

enum {
    MOST_LANES = 4,
    MOST_BETWEEN = 2000, /* instructions, in which the sum is looked for */
};

typedef struct Fill {
    LoopJumps jumps;
    int *uses; /* by Val.id */
    bool changed;
} Fill;

/* ---- places in buffers */

static bool is_same_element(const Inst *a, const Inst *b) {
    return inst_operand(a, 0) == inst_operand(b, 0) && inst_operand(a, 1) == inst_operand(b, 1);
}

static bool is_same_place(const Val *a, const Val *b) {
    if (a == b) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst || a->inst->op != b->inst->op) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (one->op == OP_buffer_elem) return is_same_element(one, other);
    bool is_same_step = one->op == OP_field
                            ? one->index == other->index
                            : one->op == OP_elem && val_is_same(inst_operand(one, 1), inst_operand(other, 1));
    return is_same_step && is_same_place(inst_operand(one, 0), inst_operand(other, 0));
}

static bool is_in_buffer(const Val *address) {
    Space space = ir_space(address->type);
    return space == SPACE_buffer || space == SPACE_any;
}

/* ---- the sum that is the first thing that happens */

static bool may_meet(const Val *address, const Val *other) {
    const Inst *element = ir_element(address), *its = ir_element(other);
    if (!its) return true;
    if (is_same_element(element, its)) return !ir_are_apart(address, other);
    return !ir_are_marked_apart(element->apart, its->apart);
}

/* Does it do something that is not seen here, or go elsewhere? */
static bool is_opaque(const Inst *inst) {
    if (inst->op == OP_tape_open || inst->op == OP_tape_close) return false;
    return inst->op == OP_call ? !opt_is_repeatable(inst) : op_has(inst->op, OP_EFFECT | OP_LEAVES);
}

/* The address in a buffer that it reads or writes by the operand; NULL: none. */
static const Val *used_place(const Inst *inst, int operand) {
    Role role = op_has(inst->op, OP_READS | OP_WRITES) ? ir_role(inst, operand) : ROLE_value;
    const Val *address = inst_operand(inst, operand);
    return (role == ROLE_read || role == ROLE_write) && is_in_buffer(address) ? address : NULL;
}

static bool touches(const void *address, const Inst *inst) {
    if (is_opaque(inst)) return true;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *other = used_place(inst, i);
        if (other && may_meet(address, other)) return true;
    }
    return false;
}

static bool is_touched(const Val *address, const Inst *inst) {
    return touches(address, inst) || inst_find(inst, touches, address);
}

/* A constant that surely is stored in a buffer. */
static bool is_set(const Inst *inst) {
    if (inst->op != OP_store || !val_is_const(inst_operand(inst, 1))) return false;
    const Inst *element = ir_element(inst_operand(inst, 0));
    const Type *type = inst->args[1]->type;
    bool fits = type->kind != TYPE_vector || type_count(type) <= MOST_LANES;
    return element && inst_has(element, INST_UNCHECKED) && fits && type_is_float(type_element(type));
}

static int lanes_of(const Inst *set) {
    const Type *type = set->args[1]->type;
    return type->kind == TYPE_vector ? type_count(type) : 1;
}

/* The lane of what was set that the sum adds to; -1: it adds to something else. */
static int lane_of(const Inst *set, const Inst *sum) {
    const Val *address = inst_operand(set, 0), *at = inst_operand(sum, 0);
    int64_t lane;
    if (set->args[1]->type->kind != TYPE_vector) return is_same_place(address, at) ? 0 : -1;
    if (at->kind != VAL_inst || at->inst->op != OP_elem) return -1;
    if (!is_same_place(address, inst_operand(at->inst, 0))) return -1;
    return val_is_int(inst_operand(at->inst, 1), &lane) && lane >= 0 && lane < lanes_of(set) ? (int)lane : -1;
}

/* The sums that are the first that happens to each lane; false: something else is. */
static bool find_sums(const Fill *f, const Inst *set, Inst *sums[MOST_LANES]) {
    const Val *address = inst_operand(set, 0);
    int missing = lanes_of(set), left = MOST_BETWEEN;
    for (int i = 0; i < MOST_LANES; i++) sums[i] = NULL;
    for (Inst *inst = set->next; inst && missing > 0 && left-- > 0; inst = inst->next) {
        int lane = opt_is_sum(f->uses, inst) ? lane_of(set, inst) : -1;
        if (lane >= 0 && !sums[lane]) missing--, sums[lane] = inst;
        else if (lane < 0 && is_touched(address, inst)) return false;
    }
    return missing == 0;
}

static void put_sums(Fill *f, Inst *set, Inst *const sums[MOST_LANES]) {
    Val *value = inst_operand(set, 1);
    if (value->type->kind == TYPE_vector) value = ir_const_zero(set->func->module, type_element(value->type));
    for (int i = 0; i < lanes_of(set); i++) {
        Builder b = build_before(sums[i]);
        build_store(&b, sums[i]->args[0], build_sum(&b, value, sums[i]->args[1]));
        inst_remove(sums[i]);
    }
    inst_remove(set);
    f->changed = true;
}

/* ---- two loops */

/* It begins with the loop, but for what has no effect; NULL: there is none. */
static Inst *loop_in(const Region *region) {
    Inst *inst = region->first;
    while (inst && op_has(inst->op, OP_PURE)) inst = inst->next;
    return inst && inst->op == OP_loop && inst->nregions == 2 ? inst : NULL;
}

static bool is_loop_alone(const Fill *f, const Inst *inst) {
    if (inst->op != OP_loop || inst->nregions != 2) return false;
    for (int i = 0; i < inst->nresults; i++)
        if (f->uses[inst->results[i]->id]) return false;
    return true;
}

/* The loop before it, whose indices are in range, or a choice of one that runs if they are. */
static Inst *setting_before(const Fill *f, const Inst *choice) {
    Inst *inst = choice->prev;
    while (inst && (op_has(inst->op, OP_PURE) || (inst->op == OP_load && inst_is_steady(inst))))
        inst = inst->prev;
    bool is_choice = inst && inst->op == OP_if && inst_has(inst, INST_LIKELY) && inst->nresults == 0;
    return is_choice || (inst && is_loop_alone(f, inst)) ? inst : NULL;
}

/* Does the condition ask for what the other asks? */
static bool asks(const Val *condition, const Val *other) {
    if (condition == other) return true;
    bool is_both = other->kind == VAL_inst && other->inst->op == OP_and;
    if (is_both)
        return asks(condition, inst_operand(other->inst, 0)) && asks(condition, inst_operand(other->inst, 1));
    if (condition->kind != VAL_inst || condition->inst->op != OP_and) return false;
    return asks(inst_operand(condition->inst, 0), other) || asks(inst_operand(condition->inst, 1), other);
}

typedef struct Counting {
    LoopTest test;
    int64_t step;
} Counting;

/* Its condition is a comparison and nothing else. */
static bool find_counting(const Fill *f, const Inst *loop, Counting *out) {
    const Inst *test = loop->regions[0]->first;
    bool is_test = test && test->next == loop->regions[0]->last && test->next->op == OP_yield &&
                   inst_operand(test->next, 0) == test->results[0];
    if (!is_test || !loop_comparison(loop, test, &out->test)) return false;
    LoopSteps steps = loop_steps_by(&f->jumps, loop, out->test.index);
    out->step = steps.least;
    return steps.known && steps.least == steps.greatest;
}

static bool is_as_long(const Fill *f, const Inst *loop, const Inst *other, const Val **counter) {
    Counting a, b;
    if (!find_counting(f, loop, &a) || !find_counting(f, other, &b)) return false;
    *counter = other->regions[1]->params[b.test.index];
    return a.step == b.step && a.test.up == b.test.up && a.test.or_equal == b.test.or_equal &&
           val_is_same(ir_resolve(a.test.limit), ir_resolve(b.test.limit)) &&
           val_is_same(inst_operand(loop, a.test.index), inst_operand(other, b.test.index));
}

/* The buffer that the loop sets, in each round the element of that number; NULL: it does something else. */
static Val *buffer_of(const Inst *loop) {
    const Region *body = loop->regions[1];
    Val *buffer = NULL;
    if (loop->nargs != 1 || body->last->op != OP_yield) return NULL;
    for (const Inst *inst = body->first; inst != body->last; inst = inst->next) {
        if (op_has(inst->op, OP_PURE)) continue;
        if (!is_set(inst)) return NULL;
        const Inst *element = ir_element(inst_operand(inst, 0));
        if (inst_operand(element, 1) != body->params[0]) return NULL;
        if (buffer && buffer != inst_operand(element, 0)) return NULL;
        buffer = inst_operand(element, 0);
    }
    return buffer;
}

/* What a loop does with buffers that were found to be apart. */
typedef struct Rounds {
    const Val *buffer, *counter;
    ApartMark own;   /* of the buffer; nest 0: not used so far */
    uint16_t nest;   /* of all */
    uint32_t others; /* bits: of the other buffers in it */
    bool may_meet;   /* what another round did to the buffer */
} Rounds;

static void look_in_round(void *user, Inst *inst) {
    Rounds *rounds = user;
    rounds->may_meet |= is_opaque(inst);
    for (int i = 0; i < inst->nargs; i++) {
        const Val *address = used_place(inst, i);
        const Inst *element = address ? ir_element(address) : NULL;
        ApartMark mark = element ? element->apart : (ApartMark){0};
        if (!address) continue;
        rounds->may_meet |= mark.nest == 0 || (rounds->nest > 0 && rounds->nest != mark.nest);
        rounds->nest = mark.nest;
        if (!element || inst_operand(element, 0) != rounds->buffer) {
            rounds->others |= (uint32_t)1 << mark.which % 32;
        } else {
            rounds->may_meet |= inst_operand(element, 1) != rounds->counter;
            rounds->own = mark;
        }
    }
}

/* Does a round of the loop do nothing with the buffer but in its own element? */
static bool has_own_elements(const Inst *loop, Rounds *rounds) {
    inst_walk(loop, look_in_round, rounds);
    return rounds->own.nest > 0 && !rounds->may_meet && !(rounds->others >> rounds->own.which % 32 & 1);
}

/* Copies of what a round sets, at the beginning of a round of the other loop. */
static InstVec copy_sets(Arena *scratch, const Inst *loop, const Inst *other, const Rounds *rounds) {
    const Region *body = loop->regions[1];
    Inst *at = other->regions[1]->first;
    CloneMap map = {.module = loop->func->module, .func = loop->func};
    InstVec copies = {0};
    clone_map_val(&map, body->params[0], (Val *)(uintptr_t)rounds->counter);
    for (Inst *inst = body->first; inst != body->last; inst = inst->next) {
        Inst *copy = clone_inst(&map, inst);
        if (copy->op == OP_buffer_elem) copy->apart = rounds->own;
        inst_insert_before(at, copy);
        vec_push(scratch, &copies, copy);
    }
    return copies;
}

static bool put_all_sums(Fill *f, const InstVec *copies) {
    Inst *sums[MOST_LANES];
    for (int i = 0; i < copies->count; i++)
        if (copies->at[i]->op == OP_store && !find_sums(f, copies->at[i], sums)) return false;
    for (int i = 0; i < copies->count; i++)
        if (copies->at[i]->op == OP_store && find_sums(f, copies->at[i], sums))
            put_sums(f, copies->at[i], sums);
    return true;
}

/* The loop that runs if all is well sets what the one before has set, which is left for where it is not well.
 * True: it did. */
static bool join(Fill *f, Inst *choice) {
    Inst *first = setting_before(f, choice);
    bool is_tested = first && first->op == OP_if;
    const Inst *loop = is_tested ? loop_in(first->regions[0]) : first, *other = loop_in(choice->regions[0]);
    Rounds rounds = {.buffer = loop ? buffer_of(loop) : NULL};
    if (!rounds.buffer || !other) return false;
    if (is_tested && (loop->next->op != OP_yield || !asks(inst_operand(choice, 0), inst_operand(first, 0))))
        return false;
    if (!is_as_long(f, loop, other, &rounds.counter)) return false;
    if (!has_own_elements(other, &rounds)) return false;
    Arena *scratch = arena_scratch(choice->func->module->arena);
    InstVec copies = copy_sets(scratch, loop, other, &rounds);
    bool joined = put_all_sums(f, &copies);
    for (int i = copies.count - 1; i >= 0 && !joined; i--) inst_remove(copies.at[i]);
    if (joined) {
        inst_remove(first);
        inst_insert_before(choice->regions[1]->first, first);
    }
    arena_free(scratch);
    return joined;
}

/* ---- the entry */

static void visit_region(Fill *f, Region *region) {
    Inst *sums[MOST_LANES];
    for (Inst *inst = region->first, *next; inst; inst = next) {
        Inst *last = inst->prev;
        bool is_choice = inst->op == OP_if && inst_has(inst, INST_LIKELY);
        while (is_choice && join(f, inst)) continue;
        for (int i = 0; i < inst->nregions; i++) visit_region(f, inst->regions[i]);
        next = inst->next;
        if (!is_set(inst) || !find_sums(f, inst, sums)) continue;
        put_sums(f, inst, sums);
        next = last ? last->next : region->first;
    }
}

bool opt_fill(Func *func) {
    if (!opt_has_own_sums(func)) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Fill f = {.jumps = loop_find_jumps(scratch, func), .uses = region_count_uses(scratch, func->body)};
    visit_region(&f, func->body);
    arena_free(scratch);
    return f.changed;
}
