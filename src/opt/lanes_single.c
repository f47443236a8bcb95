/* What lanes do one after the other: atomic operations, what they print, calls that are not inlined.
 *
 *     for each lane:  if (it is on) the instruction, with what that lane has as operands
 *
 * and a row is made of the results. Where a callee gets the address of a variable that is spread, it gets a
 * copy of the lane's object, which is copied back afterwards; where it gets a tape, each lane has its own. It
 * may be anything but a function that would ask which item it is called for, or whose static variables it is
 * to use: these are told by the context, which is that of the first lane.
 *
 * Sums into one place that all lanes share, whose result nobody wants, are made over the lanes first, in
 * pairs: ((0 + 1) + (2 + 3)) + ...; then there is one atomic addition. */
#include "opt/lanes.h"

/* ---- one lane */

Val *lanes_of_lane(Lanes *lanes, Val *v, int lane) {
    v = ir_resolve(v);
    if (v->type->kind == TYPE_tape) return lanes_tape_use(v)->own[lane];
    if (!varies(lanes, v)) return lanes_same(lanes, v);
    Val *parts[MOST_PARTS];
    for (int i = 0; i < parts_of(v->type); i++) {
        parts[i] = lanes_part(lanes, v, i);
        if (varies(lanes, v) >> i & 1) parts[i] = build_extract_lane(&lanes->b, parts[i], lane);
    }
    return v->type->kind == TYPE_vector ? build_vec(&lanes->b, v->type, parts) : parts[0];
}

static bool is_own_object(Val *v) { return ir_target(v->type) && lanes_is_spread(v); }

/* The instruction as that lane does it. */
static Inst *inst_of_lane(Lanes *lanes, Inst *inst, int lane) {
    CloneMap map = {.module = lanes->module, .func = lanes->to};
    for (int i = 0; i < inst->nargs; i++) {
        Val *arg = ir_resolve(inst->args[i]), *own;
        if (arg->kind == VAL_const) continue;
        if (is_own_object(arg)) {
            own = build_var(&lanes->b, ir_target(arg->type), NULL, true);
            lanes_take_column(lanes, own, arg, lane);
        } else {
            own = lanes_of_lane(lanes, arg, lane);
        }
        clone_map_val(&map, arg, own);
    }
    Inst *copy = clone_inst(&map, inst);
    inst_append(lanes->b.region, copy);
    for (int i = 0; i < inst->nargs; i++)
        if (is_own_object(ir_resolve(inst->args[i])) && inst->callee->params[i].dir != DIR_in)
            lanes_give_column(lanes, inst->args[i], copy->args[i], lane);
    return copy;
}

/* Only that lane is on. */
static Val *mask_of(Lanes *lanes, int lane) {
    const Type *boolean = type_basic(lanes->module->types, TYPE_bool);
    Val *bits[MOST_LANES];
    for (int i = 0; i < lanes->width; i++) bits[i] = ir_const_int(lanes->module, boolean, i == lane);
    return build_vec(&lanes->b, lanes_row(lanes, boolean), bits);
}

static void yield_zeros(Lanes *lanes, const Inst *inst, Region *region) {
    Val **zeros = arena_array(lanes->scratch, Val *, inst->nresults + 1);
    for (int i = 0; i < inst->nresults; i++) zeros[i] = ir_const_zero(lanes->module, inst->results[i]->type);
    Builder b = build_at_end(region);
    build_yield(&b, zeros, inst->nresults);
}

static Val *const *if_lane_is_on(Lanes *lanes, Inst *inst, int lane) {
    const Type **types = arena_array(lanes->scratch, const Type *, inst->nresults + 1);
    for (int i = 0; i < inst->nresults; i++) types[i] = inst->results[i]->type;
    Val *is_on = build_extract_lane(&lanes->b, lanes->mask, lane), *outer_mask = lanes->mask;
    Inst *branch = build_if(&lanes->b, is_on, types, inst->nresults);
    Builder outer = lanes->b;
    lanes->b = build_at_end(branch->regions[0]);
    lanes->b.loc = inst->loc;
    lanes->mask = mask_of(lanes, lane);
    const Inst *copy = inst_of_lane(lanes, inst, lane);
    build_yield(&lanes->b, copy->results, copy->nresults);
    yield_zeros(lanes, inst, branch->regions[1]);
    lanes->b = outer;
    lanes->mask = outer_mask;
    return branch->results;
}

static Val *const *done_by_lane(Lanes *lanes, Inst *inst, int lane) {
    if (lanes->mask) return if_lane_is_on(lanes, inst, lane);
    lanes->mask = mask_of(lanes, lane);
    const Inst *copy = inst_of_lane(lanes, inst, lane);
    lanes->mask = NULL;
    return copy->results;
}

/* ---- all of them */

static void define_rows(Lanes *lanes, const Val *result, int index, Val *const *const *of_lanes) {
    Val *parts[MOST_PARTS], *row[MOST_LANES];
    for (int k = 0; k < parts_of(result->type); k++) {
        for (int lane = 0; lane < lanes->width; lane++) {
            Val *value = of_lanes[lane][index];
            row[lane] = result->type->kind == TYPE_vector ? build_extract_lane(&lanes->b, value, k) : value;
        }
        parts[k] = build_vec(&lanes->b, lanes_row(lanes, part_type(result->type)), row);
    }
    lanes_define(lanes, result, parts);
}

void lanes_one_by_one(Lanes *lanes, Inst *inst) {
    Val *const *of_lanes[MOST_LANES];
    for (int lane = 0; lane < lanes->width; lane++) of_lanes[lane] = done_by_lane(lanes, inst, lane);
    for (int i = 0; i < inst->nresults; i++) define_rows(lanes, inst->results[i], i, of_lanes);
}

/* ---- sums into one place */

static bool uses(const void *v, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst_operand(inst, i) == v) return true;
    return false;
}

static bool is_wanted(const Lanes *lanes, const Val *v) { return region_find(lanes->from->body, uses, v); }

static void add_pairs(Lanes *lanes, Val **terms, int count) {
    for (; count > 1; count /= 2)
        for (int i = 0; i < count / 2; i++) terms[i] = build_sum(&lanes->b, terms[2 * i], terms[2 * i + 1]);
}

/* Four lanes are added to four others, as registers are, and then those four to each other. */
Val *lanes_sum(Lanes *lanes, Val *row) {
    enum { AT_ONCE = 4 };
    Val *terms[MOST_LANES];
    int width = lanes->width, parts = width / AT_ONCE;
    for (int i = 0; i < parts && parts > 1; i++) {
        uint8_t four[AT_ONCE];
        for (int k = 0; k < AT_ONCE; k++) four[k] = (uint8_t)(i * AT_ONCE + k);
        terms[i] = build_shuffle(&lanes->b, row, four, AT_ONCE);
    }
    if (parts > 1) {
        add_pairs(lanes, terms, parts);
        row = terms[0];
        width = AT_ONCE;
    }
    for (int i = 0; i < width; i++) terms[i] = build_extract_lane(&lanes->b, row, i);
    add_pairs(lanes, terms, width);
    return terms[0];
}

/* Nothing is added where no lane is on, since the code is then skipped. */
static void add_once(Lanes *lanes, const Inst *inst) {
    Val *row = lanes_spread(lanes, inst->args[1], 0);
    row = lanes_where_on(lanes, row, ir_const_zero(lanes->module, row->type));
    Val *args[] = {lanes_same(lanes, inst->args[0]), lanes_sum(lanes, row)};
    Inst *sum = build_inst(&lanes->b, OP_atomic, args, 2, 1, 0);
    sum->index = inst->index;
    sum->flags = inst->flags;
    sum->results[0]->type = args[1]->type;
    Val *nothing = ir_const_zero(lanes->module, row->type);
    lanes_define(lanes, inst->results[0], &nothing);
}

void lanes_atomic(Lanes *lanes, Inst *inst) {
    bool adds = inst->op == OP_atomic && inst->index == ATOMIC_add;
    bool in_one_place = !varies(lanes, ir_resolve(inst->args[0]));
    if (adds && in_one_place && !is_wanted(lanes, inst->results[0])) add_once(lanes, inst);
    else lanes_one_by_one(lanes, inst);
}

/* ---- what is called */

typedef struct Called {
    Lanes *lanes;
    Map seen;               /* Func */
    VEC(const Func *) open; /* ... those that are not looked into yet: chains of calls may be long */
    const char *why;
} Called;

static void note_called(Called *called, const Func *func) {
    if (!func->body || map_has(&called->seen, PTR_KEY(func))) return;
    map_put(called->lanes->scratch, &called->seen, PTR_KEY(func), (void *)(uintptr_t)func);
    vec_push(called->lanes->scratch, &called->open, func);
}

static void look_at(void *user, Inst *inst) {
    Called *called = user;
    bool asks = inst->op == OP_thread_id && inst->index <= 3;
    if (inst->op == OP_call) note_called(called, inst->callee);
    else if (asks) called->why = "it calls a function that asks which item it is";
    else if (inst->op == OP_global && inst->global->kind == GLOBAL_static)
        called->why = "it calls a function with static variables";
    else if (inst_meets(inst)) called->why = "it calls a function that waits for other items";
}

static void look_into(Called *called, const Func *func) {
    note_called(called, func);
    while (called->open.count > 0 && !called->why)
        region_walk(called->open.at[--called->open.count]->body, look_at, called);
}

static bool is_plain(const Type *type) { return type_is_scalar(part_type(type)); }

/* Of a variable the callee gets a copy of what it is said to use; a pointer might lead it elsewhere. */
static const char *refused_operand(const Inst *call, int index) {
    Val *v = ir_resolve(call->args[index]);
    if (v->type->kind == TYPE_tape) return lanes_tape_use(v) ? NULL : "which tape is used is not known";
    bool is_copied = (call->callee->params[index].flags & PARAM_BY_ADDRESS) != 0;
    if (!is_own_object(v) || (is_copied && lanes_can_be_spread(ir_target(v->type)))) return NULL;
    return "it calls a function with a pointer to what differs between items";
}

bool lanes_calls_once(const Lanes *lanes, const Inst *call) {
    for (int i = 0; i < call->nargs; i++) {
        const Val *arg = ir_resolve(call->args[i]);
        if (!is_plain(arg->type) || varies(lanes, arg)) return false;
    }
    return (call->callee->flags & FUNC_PURE) != 0;
}

const char *lanes_refused_call(Lanes *lanes, const Inst *call) {
    Called called = {.lanes = lanes};
    look_into(&called, call->callee);
    for (int i = 0; i < call->nargs && !called.why; i++) called.why = refused_operand(call, i);
    for (int i = 0; i < call->nresults && !called.why; i++)
        if (!is_plain(call->results[i]->type)) called.why = "it calls a function that returns an address";
    return called.why;
}
