/* Arrays of items that lanes read over and over.
 *
 *     for (i) for (k) sum[i] += w[i][k] * gather(item.x[k])        for (k) x[k] = gather(item.x[k])
 *                                                                  for (i) for (k) sum[i] += w[i][k] * x[k]
 *
 * An array that is part of what an item is given lies in a buffer, one behind the other for items that follow each other: what lanes have of one of its elements are numbers at a distance, which are read one by one.
 * Where a loop around the one over its elements reads them again in every round, they are read once before it, into an array that has a row of lanes for each.
 *
 * Nothing may write to the buffer meanwhile. It is one that is only read, but its memory may be that of another: what is written in these loops must have been found to lie elsewhere, which is
 * asked before items are done together (lanes_apart.c). */
#include "opt.h"

enum { MOST_ELEMENTS = 64 }; /* of an array */

/* A gather of such an array. */
typedef struct Reading {
    Inst *gather;
    Val *array;   /* vector of its addresses */
    Val *buffer;  /* that these lead into */
    Inst *around; /* stands where the array is known */
} Reading;

typedef struct Turn {
    Arena *scratch;
    Func *func;
    VEC(Reading) readings;
} Turn;

/* ---- what is read */

static Inst *element_of(const Inst *gather) {
    const Val *address = inst_operand(gather, 0);
    bool is_element = address->kind == VAL_inst && address->inst->op == OP_elem;
    return is_element && inst_has(address->inst, INST_UNCHECKED) ? address->inst : NULL;
}

static bool is_short(const Val *array) {
    const Type *type = ir_target(array->type);
    return array->kind == VAL_inst && array->type->kind == TYPE_vector && type && type->kind == TYPE_array &&
           type_is_scalar(type->args[0]) && type_length(type) <= MOST_ELEMENTS;
}

/* That is only read, and of which it is an element, or a part that is the same in all of them: where that is known, the array is there to be read, whether rounds come to that or not. NULL: it is another. */
static Val *buffer_of(Val *array) {
    const Inst *part = array->inst;
    while (part->op == OP_field || (part->op == OP_elem && val_is_const(inst_operand(part, 1)))) {
        const Val *whole = inst_operand(part, 0);
        if (whole->kind != VAL_inst) return NULL;
        part = whole->inst;
    }
    bool is_read = part->op == OP_buffer_elem && !inst_has(part, INST_WRITES);
    return is_read ? inst_operand(part, 0) : NULL;
}

/* In the region in which the array is known, around at least two loops; NULL: there are fewer. */
static Inst *loops_around(Inst *gather, const Val *array) {
    int loops = 0;
    Inst *inst = gather;
    for (; inst && inst->parent != array->inst->parent; inst = inst->parent->owner)
        loops += inst->op == OP_loop;
    return inst && loops + (inst->op == OP_loop) >= 2 ? inst : NULL;
}

static void find_reading(void *user, Inst *inst) {
    Turn *turn = user;
    const Inst *element = inst->op == OP_gather ? element_of(inst) : NULL;
    Val *array = element ? inst_operand(element, 0) : NULL;
    if (!array || !is_short(array)) return;
    Reading reading = {inst, array, buffer_of(array), loops_around(inst, array)};
    bool fits = reading.buffer && reading.around && !inst_contains(reading.around, inst_operand(inst, 1));
    if (fits) vec_push(turn->scratch, &turn->readings, reading);
}

/* ---- whether it stays the same */

/* No round is run unless the two are apart. */
static bool is_tested(const Inst *loop, const Val *one, const Val *other) {
    const Inst *yield = loop->op == OP_loop ? loop->regions[0]->last : NULL;
    const Val *condition = yield && yield->op == OP_yield ? inst_operand(yield, 0) : NULL;
    if (!condition || condition->kind != VAL_inst || condition->inst->op != OP_lt) return false;
    const Val *limit = inst_operand(condition->inst, 1);
    while (limit->kind == VAL_inst && limit->inst->op == OP_select &&
           val_is_zero(inst_operand(limit->inst, 2))) {
        const Val *test = inst_operand(limit->inst, 0);
        bool asks = test->kind == VAL_inst && test->inst->op == OP_buffers_apart;
        const Val *a = asks ? inst_operand(test->inst, 0) : NULL,
                  *b = asks ? inst_operand(test->inst, 1) : NULL;
        if (asks && ((a == one && b == other) || (a == other && b == one))) return true;
        limit = inst_operand(limit->inst, 1);
    }
    return false;
}

static bool is_apart(const Inst *inst, const Val *one, const Val *other) {
    const Region *region = inst->parent;
    while (region->owner && !is_tested(region->owner, one, other)) region = region->owner->parent;
    return region->owner;
}

static bool may_write(const void *user, const Inst *inst) {
    const Reading *reading = user;
    bool calls = inst->op == OP_call && !(inst->callee->flags & FUNC_PURE);
    if (calls || op_has(inst->op, OP_EFFECT)) return true;
    if (!op_has(inst->op, OP_WRITES)) return false;
    Space space = ir_space(inst->args[0]->type);
    if (space != SPACE_buffer && space != SPACE_any) return false;
    const Inst *element = opt_buffer_element(inst->args[0]);
    return !element || !is_apart(reading->around, inst_operand(element, 0), reading->buffer);
}

static bool stays_the_same(const Reading *reading) {
    return !may_write(reading, reading->around) && !inst_find(reading->around, may_write, reading);
}

/* ---- the copy */

static Val *element_again(Builder *b, const Inst *element, Val *index) {
    Inst *again = build_inst(b, OP_elem, (Val *[]){inst_operand(element, 0), index}, 2, 1, 0);
    again->flags = element->flags;
    again->results[0]->type = element->results[0]->type;
    return again->results[0];
}

static Val *copy_of(const Turn *turn, const Reading *reading) {
    const Type *row = reading->gather->results[0]->type;
    int64_t length = type_length(ir_target(reading->array->type));
    Builder b = build_before(reading->around);
    Val *copy = build_var(&b, type_array(turn->func->module->types, row, length), reading->array->name, true);
    CountLoop loop = build_count(&b, 0, length);
    Val *args[] = {element_again(&loop.body, element_of(reading->gather), loop.index),
                   inst_operand(reading->gather, 1)};
    Val *value = build_op(&loop.body, OP_gather, row, args, 2);
    build_store(&loop.body, build_elem(&loop.body, copy, loop.index, true), value);
    build_next(&loop);
    return copy;
}

static void read_copy(const Reading *reading, Val *copy) {
    Builder b = build_before(reading->gather);
    Val *index = inst_operand(element_of(reading->gather), 1);
    reading->gather->results[0]->forward = build_load(&b, build_elem(&b, copy, index, true));
    inst_remove(reading->gather);
}

/* Those of one array in the same loops, which have the same copy. */
static void take_alike(const Turn *turn, int first) {
    const Reading *reading = &turn->readings.at[first];
    Val *mask = inst_operand(reading->gather, 1), *copy = NULL;
    for (int i = first; i < turn->readings.count; i++) {
        Reading *other = &turn->readings.at[i];
        bool is_alike = other->gather && other->array == reading->array && other->around == reading->around &&
                        inst_operand(other->gather, 1) == mask;
        if (!is_alike) continue;
        if (!copy) copy = copy_of(turn, reading);
        read_copy(other, copy);
        if (i > first) other->gather = NULL;
    }
}

bool opt_turn(Func *func) {
    if (!func->body || func->module->many_threads) return false;
    Turn turn = {.scratch = arena_scratch(func->module->arena), .func = func};
    region_walk(func->body, find_reading, &turn);
    bool changed = false;
    for (int i = 0; i < turn.readings.count; i++) {
        if (!turn.readings.at[i].gather || !stays_the_same(&turn.readings.at[i])) continue;
        take_alike(&turn, i);
        changed = true;
    }
    if (changed) ir_resolve_func(func);
    arena_free(turn.scratch);
    return changed;
}
