/* Arrays of items that lanes read over and over.
 *
 *     for (i) for (k) sum[i] += w[i][k] * gather(item.x[k])        for (k) x[k] = gather(item.x[k])
 *                                                                  for (i) for (k) sum[i] += w[i][k] * x[k]
 *
 *     for (k) mean += gather(item.x[k]) / n                        for (k) x[k] = gather(item.x[k])
 *     for (k) square += (gather(item.x[k]) - mean)^2               for (k) mean += x[k] / n
 *                                                                  for (k) square += (x[k] - mean)^2
 *
 * An array that is part of what an item is given lies in a buffer, one behind the other for items that follow
 * each other: what lanes have of one of its elements are numbers at a distance, which are read one by one.
 * Where a loop around the one over its elements reads them again in every round, or another loop comes after
 * it, they are read once before, into an array that has a row of lanes for each.
 *
 * Nothing may write to the buffer meanwhile. It is one that is only read, but its memory may be that of
 * another: what is written in these loops must have been found to lie elsewhere, which is asked before items
 * are done together (lanes_apart.c). */
#include "opt.h"

enum { MOST_ELEMENTS = 64 }; /* of an array */

/* A gather of such an array. */
typedef struct Reading {
    Inst *gather;  /* NULL: it is done with */
    Val *array;    /* vector of its addresses */
    Val *buffer;   /* that these lead into */
    Val *mask;     /* NULL: all lanes read */
    Inst *around;  /* the loops; it stands where the array is known */
    bool is_again; /* a loop does so in every round */
} Reading;

typedef struct Turn {
    Arena *scratch;
    Func *func;
    VEC(Reading) readings;
    VEC(Reading *) alike;
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

/* That is only read, and of which it is an element, or a part that is the same in all of them: where that is
 * known, the array is there to be read, whether rounds come to that or not. NULL: it is another. */
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

/* Loops around the gather, and what is in the region in which the array is known. */
static Inst *look_around(Inst *gather, const Val *array, int *loops) {
    Inst *inst = gather;
    *loops = 0;
    for (; inst && inst->parent != array->inst->parent; inst = inst->parent->owner)
        *loops += inst->op == OP_loop;
    *loops += inst && inst->op == OP_loop;
    return inst;
}

/* A loop that goes through half of the array, at least. */
static bool goes_through(const Inst *loop, const Val *array) {
    return loop->op == OP_loop && 2 * loop_known_rounds(loop) >= (double)type_length(ir_target(array->type));
}

static Val *mask_of(const Inst *gather) {
    Val *mask = inst_operand(gather, 1);
    bool is_splat = mask->kind == VAL_inst && mask->inst->op == OP_splat;
    int64_t value;
    return is_splat && val_is_int(inst_operand(mask->inst, 0), &value) && value ? NULL : mask;
}

static void find_reading(void *user, Inst *inst) {
    Turn *turn = user;
    const Inst *element = inst->op == OP_gather ? element_of(inst) : NULL;
    Val *array = element ? inst_operand(element, 0) : NULL;
    int loops = 0;
    if (!array || !is_short(array)) return;
    Reading reading = {inst, array, buffer_of(array), mask_of(inst), look_around(inst, array, &loops), false};
    reading.is_again = loops >= 2;
    bool fits = reading.buffer && reading.around && (loops >= 2 || goes_through(reading.around, array)) &&
                !(reading.mask && inst_contains(reading.around, reading.mask));
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

/* What the first one reads, while this runs. */
static bool stays_the_same(const Reading *first, const Inst *inst) {
    return !may_write(first, inst) && !inst_find(inst, may_write, first);
}

/* ---- the copy */

static Val *element_again(Builder *b, const Inst *element, Val *index) {
    Inst *again = build_inst(b, OP_elem, (Val *[]){inst_operand(element, 0), index}, 2, 1, 0);
    again->flags = element->flags;
    again->results[0]->type = element->results[0]->type;
    return again->results[0];
}

static Val *all_lanes(Builder *b, const Type *mask) {
    return build_splat(b, mask, ir_const_int(b->func->module, type_element(mask), 1));
}

static Val *copy_of(const Turn *turn, const Reading *reading) {
    const Type *row = reading->gather->results[0]->type;
    int64_t length = type_length(ir_target(reading->array->type));
    Builder b = build_before(reading->around);
    Val *copy = build_var(&b, type_array(turn->func->module->types, row, length), reading->array->name, true);
    Val *mask = reading->mask ? reading->mask : all_lanes(&b, inst_operand(reading->gather, 1)->type);
    CountLoop loop = build_count(&b, 0, length);
    Val *args[] = {element_again(&loop.body, element_of(reading->gather), loop.index), mask};
    Val *value = build_op(&loop.body, OP_gather, row, args, 2);
    build_store(&loop.body, build_elem(&loop.body, copy, loop.index, true), value);
    build_next(&loop);
    return copy;
}

static void read_copy(Reading *reading, Val *copy) {
    Builder b = build_before(reading->gather);
    Val *index = inst_operand(element_of(reading->gather), 1);
    reading->gather->results[0]->forward = build_load(&b, build_elem(&b, copy, index, true));
    inst_remove(reading->gather);
    reading->gather = NULL;
}

static bool is_alike(const Reading *a, const Reading *b) {
    return b->gather && a->array == b->array && a->mask == b->mask;
}

/* Is what the first one reads still there, up to those loops? `checked` is how far that is known. */
static bool is_there_still(const Reading *first, const Inst *loops, const Inst **checked) {
    while (*checked != loops) {
        const Inst *next = *checked ? (*checked)->next : first->around;
        if (!next || !stays_the_same(first, next)) return false;
        *checked = next;
    }
    return true;
}

/* Those that can have one copy with the first; are they worth it? */
static bool find_alike(Turn *turn, int first) {
    const Reading *reading = &turn->readings.at[first];
    const Inst *checked = NULL;
    bool is_often = false;
    turn->alike.count = 0;
    for (int i = first; i < turn->readings.count; i++) {
        Reading *other = &turn->readings.at[i];
        if (!is_alike(reading, other)) continue;
        if (!is_there_still(reading, other->around, &checked)) break;
        is_often |= other->is_again || other->around != reading->around;
        vec_push(turn->scratch, &turn->alike, other);
    }
    return is_often;
}

bool opt_turn(Func *func) {
    if (!func->body || func->module->many_threads) return false;
    Turn turn = {.scratch = arena_scratch(func->module->arena), .func = func};
    region_walk(func->body, find_reading, &turn);
    bool changed = false;
    for (int i = 0; i < turn.readings.count; i++) {
        if (!turn.readings.at[i].gather || !find_alike(&turn, i)) continue;
        Val *copy = copy_of(&turn, &turn.readings.at[i]);
        for (int k = 0; k < turn.alike.count; k++) read_copy(turn.alike.at[k], copy);
        changed = true;
    }
    if (changed) ir_resolve_func(func);
    arena_free(turn.scratch);
    return changed;
}
