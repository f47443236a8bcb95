/* Tapes in the wide function.
 *
 * A stack to which lanes push the same is one stack for all. Any other has rows, a number for each lane, and elements are counted
 * in rows. As long as all lanes grow, push and pop together the heights of all columns are the same: room is made for the lane that wants
 * the most. A tape on which some lanes push while others do not is uneven: each lane has a height of its own, in a variable, and its
 * elements, in its column, are scattered and gathered. Such a stack has as many rows as its highest column ever needed. */
#include "opt/lanes.h"

static const Type *long_type(const Lanes *lanes) { return type_basic(lanes->module->types, TYPE_int64); }

static Val *long_const(Lanes *lanes, int64_t value) {
    return ir_const_int(lanes->module, long_type(lanes), value);
}

static Val *greatest(Lanes *lanes, Val *row) {
    Val *most = build_extract_lane(&lanes->b, row, 0);
    for (int i = 1; i < lanes->width; i++)
        most = build_binary(&lanes->b, OP_max, most, build_extract_lane(&lanes->b, row, i));
    return most;
}

/* How many elements the lanes that are on want, at most. */
static Val *most_wanted(Lanes *lanes, Val *count) {
    count = ir_resolve(count);
    if (!varies(lanes, count)) return lanes_same(lanes, count);
    Val *row = lanes_spread(lanes, count, 0);
    return greatest(lanes, lanes_where_on(lanes, row, ir_const_zero(lanes->module, row->type)));
}

static Val *tape_value(Lanes *lanes, const Inst *inst) { return lanes_same(lanes, inst->args[0]); }

/* ---- elements by their index */

static Val *address_on_tape(Lanes *lanes, Val *tape, Val *index, const Type *scalar) {
    Val *args[] = {tape, index};
    Inst *inst = build_inst(&lanes->b, OP_tape_elem, args, 2, 1, 0);
    const Type *pointer = type_pointer(lanes->module->types, lanes_row(lanes, scalar));
    inst->results[0]->type = index->type->kind == TYPE_vector ? lanes_row(lanes, pointer) : pointer;
    return inst->results[0];
}

static Val *load_row(Lanes *lanes, Val *tape, Val *index, const Type *scalar) {
    Val *args[] = {address_on_tape(lanes, tape, index, scalar), lanes_mask(lanes)};
    Inst *inst = build_inst(&lanes->b, OP_gather, args, 2, 1, 0);
    inst->results[0]->type = lanes_row(lanes, scalar);
    return inst->results[0];
}

static void store_row(Lanes *lanes, Val *tape, Val *index, Val *row) {
    Val *args[] = {address_on_tape(lanes, tape, index, type_element(row->type)), row, lanes_mask(lanes)};
    build_inst(&lanes->b, OP_scatter, args, 3, 0, 0);
}

static Val *index_of(Lanes *lanes, Val *index) {
    index = ir_resolve(index);
    return varies(lanes, index) ? lanes_part(lanes, index, 0) : lanes_same(lanes, index);
}

/* ---- all lanes together */

static Inst *change_height(Lanes *lanes, const Inst *inst, int nresults) {
    Val *args[] = {tape_value(lanes, inst), most_wanted(lanes, inst->args[1])};
    Inst *copy = build_inst(&lanes->b, (Op)inst->op, args, 2, nresults, 0);
    copy->flags = inst->flags;
    copy->type = lanes_row(lanes, inst->type);
    return copy;
}

static void together(Lanes *lanes, Inst *inst) {
    Val *args[] = {tape_value(lanes, inst), NULL}, *result;
    Inst *copy;
    switch ((Op)inst->op) {
    case OP_tape_push:
        args[1] = lanes_spread(lanes, inst->args[1], 0);
        build_inst(&lanes->b, OP_tape_push, args, 2, 0, 0);
        break;
    case OP_tape_pop:
        copy = build_inst(&lanes->b, OP_tape_pop, args, 1, 1, 0);
        copy->results[0]->type = lanes_row(lanes, inst->results[0]->type);
        lanes_define(lanes, inst->results[0], copy->results);
        break;
    case OP_tape_grow:
        copy = change_height(lanes, inst, 1);
        copy->results[0]->type = long_type(lanes);
        clone_map_val(&lanes->map, inst->results[0], copy->results[0]);
        break;
    case OP_tape_shrink: change_height(lanes, inst, 0); break;
    case OP_tape_load:
        result = load_row(lanes, args[0], index_of(lanes, inst->args[1]), inst->results[0]->type);
        lanes_define(lanes, inst->results[0], &result);
        break;
    default:
        store_row(lanes, args[0], index_of(lanes, inst->args[1]), lanes_spread(lanes, inst->args[2], 0));
        break;
    }
}

/* ---- each lane by itself */

static Val *heights_of(Lanes *lanes, TapeUse *use, const Type *scalar) {
    return build_load(&lanes->b, use->heights[scalar->kind - TYPE_bool]);
}

static void set_heights(Lanes *lanes, TapeUse *use, const Type *scalar, Val *heights, Val *old) {
    build_store(&lanes->b, use->heights[scalar->kind - TYPE_bool], lanes_where_on(lanes, heights, old));
}

/* Rows for the highest column. */
static void have_rows(Lanes *lanes, Val *tape, TapeUse *use, const Type *scalar, Val *heights) {
    Val *rows = use->rows[scalar->kind - TYPE_bool], *now = build_load(&lanes->b, rows);
    Val *zero = ir_const_zero(lanes->module, heights->type);
    Val *most = greatest(lanes, lanes_where_on(lanes, heights, zero));
    Inst *branch = build_if(&lanes->b, build_binary(&lanes->b, OP_lt, now, most), NULL, 0);
    Builder more = build_at_end(branch->regions[0]), enough = build_at_end(branch->regions[1]);
    more.loc = lanes->b.loc;
    Val *args[] = {tape, build_binary(&more, OP_sub, most, now)};
    Inst *grow = build_inst(&more, OP_tape_grow, args, 2, 1, 0);
    grow->type = lanes_row(lanes, scalar);
    grow->results[0]->type = long_type(lanes);
    build_store(&more, rows, most);
    build_yield(&more, NULL, 0);
    build_yield(&enough, NULL, 0);
}

static Val *moved(Lanes *lanes, Val *heights, Op op, Val *count) {
    return build_binary(&lanes->b, op, heights, count);
}

static Val *one_each(Lanes *lanes) {
    return build_splat(&lanes->b, lanes_row(lanes, long_type(lanes)), long_const(lanes, 1));
}

/* Rows that a block takes again may have what was there before; elements that begin with zero are set to it. */
static void clear_block(Lanes *lanes, Val *tape, const Type *scalar, Val *first, Val *counts) {
    Val *most = greatest(lanes, lanes_where_on(lanes, counts, ir_const_zero(lanes->module, counts->type)));
    Val *start = long_const(lanes, 0);
    Inst *loop = build_loop(&lanes->b, &start, 1, false);
    Builder outer = lanes->b, test = build_at_end(loop->regions[0]);
    Val *go = build_binary(&test, OP_lt, loop->regions[0]->params[0], most);
    build_yield(&test, &go, 1);
    lanes->b = build_at_end(loop->regions[1]);
    Val *index = loop->regions[1]->params[0], *steps = build_splat(&lanes->b, first->type, index),
        *mask = lanes->mask;
    Val *inside = build_binary(&lanes->b, OP_lt, steps, counts);
    lanes->mask = mask ? build_binary(&lanes->b, OP_and, mask, inside) : inside;
    store_row(lanes, tape, moved(lanes, first, OP_add, steps),
              ir_const_zero(lanes->module, lanes_row(lanes, scalar)));
    lanes->mask = mask;
    Val *next = build_binary(&lanes->b, OP_add, index, long_const(lanes, 1));
    build_yield(&lanes->b, &next, 1);
    lanes->b = outer;
}

static void push_apart(Lanes *lanes, const Inst *inst, TapeUse *use) {
    const Type *scalar = inst->args[1]->type;
    Val *tape = tape_value(lanes, inst), *old = heights_of(lanes, use, scalar);
    Val *heights = moved(lanes, old, OP_add, one_each(lanes));
    have_rows(lanes, tape, use, scalar, heights);
    store_row(lanes, tape, old, lanes_spread(lanes, inst->args[1], 0));
    set_heights(lanes, use, scalar, heights, old);
}

static void pop_apart(Lanes *lanes, const Inst *inst, TapeUse *use) {
    const Type *scalar = inst->results[0]->type;
    Val *old = heights_of(lanes, use, scalar), *heights = moved(lanes, old, OP_sub, one_each(lanes));
    Val *row = load_row(lanes, tape_value(lanes, inst), heights, scalar);
    set_heights(lanes, use, scalar, heights, old);
    lanes_define(lanes, inst->results[0], &row);
}

static void grow_apart(Lanes *lanes, const Inst *inst, TapeUse *use) {
    Val *tape = tape_value(lanes, inst), *old = heights_of(lanes, use, inst->type);
    Val *counts = lanes_spread(lanes, inst->args[1], 0), *heights = moved(lanes, old, OP_add, counts);
    have_rows(lanes, tape, use, inst->type, heights);
    if (!inst_has(inst, INST_RAW)) clear_block(lanes, tape, inst->type, old, counts);
    set_heights(lanes, use, inst->type, heights, old);
    lanes_define(lanes, inst->results[0], &old);
}

static void shrink_apart(Lanes *lanes, const Inst *inst, TapeUse *use) {
    Val *old = heights_of(lanes, use, inst->type);
    set_heights(lanes, use, inst->type, moved(lanes, old, OP_sub, lanes_spread(lanes, inst->args[1], 0)),
                old);
}

static void open_apart(Lanes *lanes, TapeUse *use) {
    for (int i = 0; i < SCALAR_KINDS; i++) {
        if (!use->spread[i]) continue;
        use->heights[i] = build_var(&lanes->b, lanes_row(lanes, long_type(lanes)), NULL, false);
        use->rows[i] = build_var(&lanes->b, long_type(lanes), NULL, false);
    }
}

static void apart(Lanes *lanes, Inst *inst, TapeUse *use) {
    switch ((Op)inst->op) {
    case OP_tape_push: push_apart(lanes, inst, use); break;
    case OP_tape_pop: pop_apart(lanes, inst, use); break;
    case OP_tape_grow: grow_apart(lanes, inst, use); break;
    case OP_tape_shrink: shrink_apart(lanes, inst, use); break;
    default: together(lanes, inst); break;
    }
}

/* ---- the choice */

static const Type *scalar_of(const Inst *inst) {
    bool has_value = inst->op == OP_tape_push || inst->op == OP_tape_store;
    if (has_value) return inst->args[inst->nargs - 1]->type;
    return inst->op == OP_tape_pop || inst->op == OP_tape_load ? inst->results[0]->type : inst->type;
}

void lanes_on_tape(Lanes *lanes, Inst *inst) {
    TapeUse *use = lanes_tape(inst);
    if (!use) {
        lanes_decline(lanes, inst, "which tape is used is not known");
        return;
    }
    if (inst->op == OP_tape_open || inst->op == OP_tape_close) {
        lanes_copy(lanes, inst);
        if (inst->op == OP_tape_open && use->uneven) open_apart(lanes, use);
    } else if (!use->spread[scalar_of(inst)->kind - TYPE_bool]) {
        lanes_copy(lanes, inst);
    } else if (use->uneven) {
        apart(lanes, inst, use);
    } else {
        together(lanes, inst);
    }
}
