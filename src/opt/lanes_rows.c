/* Numbers that a lane has beside each other in a flat array or in a tensor.
 *
 *     p[3 * i], p[3 * i + 1], p[3 * i + 2]          t[i, 0], t[i, 1], t[i, 2]
 *
 * Records have such numbers, too, and those of all lanes are read and written as rows that are turned
 * (emit/llvm/records.c). Here it is said of which elements that holds: their indices are one number and
 * different constants. Where something is written among them, no lane may have what another one has, or their
 * order would be seen: it is at least as far to the next lane as from the first of these numbers to the last.
 * Of a tensor that the host binds nobody knows how far that is: lanes_ones.c lets the kernel ask.
 *
 * A row is read where the first of its numbers is. So the addresses of the others are made there, too. */
#include "opt/lanes.h"

enum { LONGEST_ROW = 64 }; /* of a row, from the first number to the last */

static const Inst *element(const Val *address) {
    return address->kind == VAL_inst && address->inst->op == OP_buffer_elem ? address->inst : NULL;
}

/* ---- indices: a number and a constant */

static bool is_constant(const Lanes *lanes, const Val *v, int64_t *value) {
    v = lanes_unconverted(v);
    if (v->kind != VAL_const && lanes_is_one(lanes, v)) return *value = 1, true;
    if (v->kind != VAL_inst || v->inst->op != OP_mul) return val_is_int(v, value);
    const Val *factor = lanes_times_one(lanes, v->inst);
    return factor && val_is_int(factor, value);
}

static Val *index_without(const Lanes *lanes, const Inst *elem, int64_t *number) {
    Val *index = inst_operand(elem, 1);
    bool is_sum = index->kind == VAL_inst && index->inst->op == OP_add;
    for (int i = 0; i < 2 && is_sum; i++)
        if (is_constant(lanes, inst_operand(index->inst, i), number)) return inst_operand(index->inst, 1 - i);
    return *number = 0, index;
}

int64_t lanes_number_beside(const Lanes *lanes, const Inst *elem) {
    int64_t number;
    index_without(lanes, elem, &number);
    return number;
}

/* ---- which are beside each other */

typedef struct Row {
    const Val *buffer, *index;
    int64_t least, most;
    bool is_written, has_others; /* something that is no plain access, or sum, of one number */
} Row;

typedef struct Rows {
    Lanes *lanes;
    VEC(Row) rows;
} Rows;

static Row *row_of(Rows *rows, const Inst *elem, int64_t *number) {
    const Val *buffer = inst_operand(elem, 0), *index = index_without(rows->lanes, elem, number);
    for (int i = 0; i < rows->rows.count; i++)
        if (rows->rows.at[i].buffer == buffer && rows->rows.at[i].index == index) return &rows->rows.at[i];
    Row row = {.buffer = buffer, .index = index, .least = *number, .most = *number};
    vec_push(rows->lanes->scratch, &rows->rows, row);
    return &rows->rows.at[rows->rows.count - 1];
}

static void note_element(void *user, Inst *inst) {
    Rows *rows = user;
    int64_t number;
    if (inst->op != OP_buffer_elem || !varies(rows->lanes, inst->results[0])) return;
    Row *row = row_of(rows, inst, &number);
    if (number < row->least) row->least = number;
    if (number > row->most) row->most = number;
    inst->flags &= (uint8_t)~INST_BESIDE;
    row->has_others |= !type_is_scalar(ir_target(inst->results[0]->type));
}

static void note_write(void *user, Inst *inst) {
    Rows *rows = user;
    int64_t number;
    for (int i = 0; i < inst->nargs; i++) {
        const Inst *elem = element(inst_operand(inst, i));
        if (!elem || !varies(rows->lanes, elem->results[0])) continue;
        bool is_plain = inst->op == OP_load || inst->op == OP_store || lanes_adds_by_rows(rows->lanes, inst);
        Row *row = row_of(rows, elem, &number);
        row->is_written |= ir_role(inst, i) != ROLE_read;
        row->has_others |= !is_plain;
    }
}

static bool is_row(const Lanes *lanes, const Row *row) {
    int64_t apart = row->most - row->least + 1;
    if (row->has_others || apart < 2 || apart > LONGEST_ROW) return false;
    if (lanes_step_of(lanes, row->index) == STEP_one) return false; /* lanes have neighbours then */
    return !row->is_written || lanes_least_step(lanes, row->index) >= apart;
}

static void mark(void *user, Inst *inst) {
    Rows *rows = user;
    int64_t number;
    if (inst->op != OP_buffer_elem || !varies(rows->lanes, inst->results[0])) return;
    if (is_row(rows->lanes, row_of(rows, inst, &number))) inst->flags |= INST_BESIDE;
}

void lanes_find_rows(Lanes *lanes) {
    Rows rows = {.lanes = lanes};
    region_walk(lanes->from->body, note_element, &rows);
    region_walk(lanes->from->body, note_write, &rows);
    region_walk(lanes->from->body, mark, &rows);
}

/* ---- the wide form: addresses of a row are made where that of its first number is */

typedef struct First {
    const Val *buffer, *index;
    Inst *elem;
} First;

typedef struct Order {
    Arena *scratch;
    const Region *region;
    int *number; /* by Val.id: of the instruction, in the region at work */
    VEC(First) firsts;
} Order;

static int number_of(const Order *order, const Inst *inst) { return order->number[inst->results[0]->id]; }

static void bring(const Order *order, Val *v, const First *first) {
    if (v->kind != VAL_inst || v->inst->parent != order->region) return;
    if (number_of(order, v->inst) <= number_of(order, first->elem)) return;
    inst_remove(v->inst);
    inst_insert_before(first->elem, v->inst);
}

static void visit_element(Order *order, Inst *elem) {
    int64_t number;
    First here = {inst_operand(elem, 0), ir_index_beside(elem, &number), elem};
    for (int i = 0; i < order->firsts.count; i++) {
        const First *first = &order->firsts.at[i];
        if (first->buffer != here.buffer || first->index != here.index) continue;
        Val *index = inst_operand(elem, 1);
        for (int k = 0; index != here.index && k < 2; k++)
            if (inst_operand(index->inst, k) != here.index) bring(order, inst_operand(index->inst, k), first);
        bring(order, index, first);
        bring(order, elem->results[0], first);
        return;
    }
    vec_push(order->scratch, &order->firsts, here);
}

static void order_region(Order *order, Region *region) {
    int number = 0;
    for (Inst *inst = region->first; inst; inst = inst->next)
        for (int i = 0; i < inst->nregions; i++) order_region(order, inst->regions[i]);
    for (Inst *inst = region->first; inst; inst = inst->next, number++)
        for (int i = 0; i < inst->nresults; i++) order->number[inst->results[i]->id] = number;
    order->region = region;
    order->firsts.count = 0;
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->nresults == 1 && ir_is_beside(inst->results[0])) visit_element(order, inst);
    }
}

void lanes_order_rows(Lanes *lanes, Func *wide) {
    Order order = {.scratch = lanes->scratch};
    order.number = arena_array(lanes->scratch, int, wide->nvals + 1);
    order_region(&order, wide->body);
}
