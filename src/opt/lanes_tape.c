/* Tapes in the wide function.
 *
 * A stack to which lanes push the same is one stack for all. Any other has rows, a number for each lane, and
 * elements are counted in rows. As long as all lanes grow, push and pop together the heights of all columns
 * are the same: room is made for the lane that wants the most. A tape on which some lanes push while others
 * do not is uneven, and so is one on which blocks of different sizes are made where some lanes are off
 * (lanes_vary.c). Before anything else is made of it, its pushes and pops become stores and loads at a height
 * that is counted by hand, in a variable, which opt/ssa.c makes a value: one that differs between lanes,
 * where it does. In a loop that lanes leave one after the other it is the same for all that are still in it,
 * so that they store whole rows; in the reverse each lane loads from its own column. Such a stack has as many
 * rows as its highest column ever needed.
 *
 * Where functions are called lane by lane that keep something on a tape, each lane has a tape of its own. */
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
    case OP_tape_reach:
    case OP_tape_shrink: change_height(lanes, inst, 0); break;
    case OP_tape_load:
        result = load_row(lanes, args[0], index_of(lanes, inst->args[1]), inst->results[0]->type);
        lanes_define(lanes, inst->results[0], &result);
        break;
    default: {
        Val *index = index_of(lanes, inst->args[1]);
        store_row(lanes, args[0], index, lanes_spread(lanes, inst->args[2], 0));
        break;
    }
    }
}

/* ---- each lane by itself: in the kernel as it was, before anything is made of it */

static Val *tape_inst(Builder *b, Op op, const Type *type, Val *const *args, int nargs, const Type *result) {
    Inst *inst = build_inst(b, op, args, nargs, result ? 1 : 0, 0);
    inst->type = type;
    if (!result) return NULL;
    inst->results[0]->type = result;
    return inst->results[0];
}

static void move_to(Builder *b, Val *tape, Val *height, const Type *type, Val *to) {
    Val *args[] = {tape, to};
    tape_inst(b, OP_tape_reach, type, args, 2, NULL);
    build_store(b, height, to);
}

/* Rows that a block takes again may have what was there before; elements that begin with zero are set to
 * it. */
static void clear_block(Lanes *lanes, Builder *b, Val *tape, const Type *type, Val *first, Val *end) {
    Inst *loop = build_loop(b, &first, 1, false);
    Builder test = build_at_end(loop->regions[0]), body = build_at_end(loop->regions[1]);
    Val *go = build_binary(&test, OP_lt, loop->regions[0]->params[0], end), *at = loop->regions[1]->params[0];
    build_yield(&test, &go, 1);
    Val *args[] = {tape, at, ir_const_zero(lanes->module, type)};
    tape_inst(&body, OP_tape_store, NULL, args, 3, NULL);
    Val *next = build_binary(&body, OP_add, at, long_const(lanes, 1));
    build_yield(&body, &next, 1);
}

/* The same by the height of the stack, which is a number like others. */
static void count_by_hand(Lanes *lanes, Inst *inst, Val *height) {
    Builder b = build_before(inst);
    Val *tape = ir_resolve(inst->args[0]), *now = build_load(&b, height), *one = long_const(lanes, 1), *next;
    Val *args[] = {tape, now, NULL};
    switch ((Op)inst->op) {
    case OP_tape_push:
        args[2] = ir_resolve(inst->args[1]);
        move_to(&b, tape, height, args[2]->type, build_binary(&b, OP_add, now, one));
        tape_inst(&b, OP_tape_store, NULL, args, 3, NULL);
        break;
    case OP_tape_pop:
        args[1] = build_binary(&b, OP_sub, now, one);
        build_store(&b, height, args[1]);
        inst->results[0]->forward = tape_inst(&b, OP_tape_load, NULL, args, 2, inst->results[0]->type);
        break;
    case OP_tape_grow:
        next = build_binary(&b, OP_add, now, ir_resolve(inst->args[1]));
        move_to(&b, tape, height, inst->type, next);
        if (!inst_has(inst, INST_RAW)) clear_block(lanes, &b, tape, inst->type, now, next);
        inst->results[0]->forward = now;
        break;
    default: build_store(&b, height, build_binary(&b, OP_sub, now, ir_resolve(inst->args[1]))); break;
    }
    inst_remove(inst);
}

static Val *height_of(Lanes *lanes, TapeUse *use, Inst *open, int kind) {
    if (use->heights[kind]) return use->heights[kind];
    Builder b = build_after(open);
    return use->heights[kind] = build_var(&b, long_type(lanes), NULL, false);
}

static void even_out(Lanes *lanes, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        inst_resolve(inst);
        for (int i = 0; i < inst->nregions; i++) even_out(lanes, inst->regions[i]);
        bool moves = inst->op >= OP_tape_push && inst->op <= OP_tape_shrink;
        TapeUse *use = moves ? lanes_tape(inst) : NULL;
        if (!use || !use->uneven || use->apart) continue;
        int kind = (int)ir_on_stack(inst)->kind - TYPE_bool;
        count_by_hand(lanes, inst, height_of(lanes, use, ir_resolve(inst->args[0])->inst, kind));
    }
}

static bool is_uneven(const void *user, const Inst *inst) {
    (void)user;
    const TapeUse *use = inst->op == OP_tape_open ? inst->note : NULL;
    return use && use->uneven && !use->apart;
}

bool lanes_even_out(Lanes *lanes) {
    if (!region_find(lanes->from->body, is_uneven, NULL)) return false;
    even_out(lanes, lanes->from->body);
    ir_resolve_func(lanes->from);
    opt_ssa(lanes->from);
    opt_simplify(lanes->from);
    opt_dce(lanes->from);
    return true;
}

/* ---- a tape for each lane */

static void on_own_tape(Lanes *lanes, Inst *inst, TapeUse *use) {
    if (inst->op != OP_tape_open) {
        lanes_one_by_one(lanes, inst);
        return;
    }
    for (int i = 0; i < lanes->width; i++) {
        lanes_copy(lanes, inst);
        use->own[i] = lanes_same(lanes, inst->results[0]);
    }
}

/* ---- a tape of who opened it before the loop whose rounds are lanes: it has its elements one by one, as those who come later expect */

static Val *addresses_on_tape(Lanes *lanes, const Inst *inst, const Type *scalar) {
    Val *args[] = {tape_value(lanes, inst), lanes_spread(lanes, inst->args[1], 0)};
    Inst *address = build_inst(&lanes->b, OP_tape_elem, args, 2, 1, 0);
    const Type *pointer = type_address(lanes->module->types, scalar, SPACE_tape);
    return address->results[0]->type = lanes_row(lanes, pointer), address->results[0];
}

static void on_outer_tape(Lanes *lanes, Inst *inst) {
    bool is_load = inst->op == OP_tape_load; /* else a store: lanes_apart.c has seen to it */
    if (is_load && !varies(lanes, inst->results[0])) {
        lanes_copy(lanes, inst);
        return;
    }
    Val *at = addresses_on_tape(lanes, inst, ir_on_stack(inst));
    Val *args[] = {at, is_load ? lanes_mask(lanes) : lanes_spread(lanes, inst->args[2], 0),
                   lanes_mask(lanes)};
    Inst *access = build_inst(&lanes->b, is_load ? OP_gather : OP_scatter, args, is_load ? 2 : 3, is_load, 0);
    if (!is_load) return;
    access->results[0]->type = lanes_row(lanes, inst->results[0]->type);
    lanes_define(lanes, inst->results[0], access->results);
}

/* ---- the choice */

void lanes_on_tape(Lanes *lanes, Inst *inst) {
    TapeUse *use = lanes_tape(inst);
    if (!use && lanes->rounds) {
        on_outer_tape(lanes, inst);
        return;
    }
    if (!use) {
        lanes_decline(lanes, inst, "which tape is used is not known");
        return;
    }
    bool is_all = inst->op == OP_tape_open || inst->op == OP_tape_close;
    if (use->apart) on_own_tape(lanes, inst, use);
    else if (is_all || !use->spread[ir_on_stack(inst)->kind - TYPE_bool]) lanes_copy(lanes, inst);
    else together(lanes, inst);
}
