/* Copies of functions in which vectors are held lane by lane: every value is a scalar (or pointer, buffer,
 * tape).
 *
 * Who makes the copy says which vectors are taken apart, and may copy an instruction in a way of its own.
 * What is left as it is, such as a call, gets vectors that are put together again, and what it gives is taken
 * apart. */
#include "ir.h"

/* What stands for a value of the old function. */
typedef struct Held {
    Val **lanes;
    int n;
} Held;

/* ---- values */

static bool is_apart(const LaneCopy *x, const Type *type) {
    return type->kind == TYPE_vector && (!x->most || type_count(type) <= x->most);
}

int apart_count(const LaneCopy *x, const Type *type) { return is_apart(x, type) ? type_count(type) : 1; }

static const Type *lane_type(const LaneCopy *x, const Type *type) {
    return is_apart(x, type) ? type->args[0] : type;
}

/* q.x of q. */
static Name lane_name(const LaneCopy *x, const Val *old, int lane) {
    enum { LETTERS = 4 };
    int count = apart_count(x, old->type);
    if (count == 1 || count > LETTERS || !old->name) return old->name;
    return name_from(x->module->names, format_text(x->arena, "%s.%c", old->name->text, "xyzw"[lane]));
}

void apart_hold(LaneCopy *x, const Val *old, Val **lanes) {
    Held *held = arena_new(x->arena, Held);
    *held = (Held){lanes, apart_count(x, old->type)};
    for (int i = 0; i < held->n; i++)
        if (!lanes[i]->name && lanes[i]->kind == VAL_inst) lanes[i]->name = lane_name(x, old, i);
    map_put(x->arena, &x->held, PTR_KEY(old), held);
}

void apart_hold_one(LaneCopy *x, const Val *old, Val *value) {
    Val **lanes = arena_array(x->arena, Val *, 1);
    lanes[0] = value;
    apart_hold(x, old, lanes);
}

static Held *get(LaneCopy *x, Val *old) {
    old = ir_resolve(old);
    Held *held = map_get(&x->held, PTR_KEY(old));
    if (held) return held;
    if (!val_is_const(old)) arena_fault(x->arena, "a value is used before it is made");
    int n = apart_count(x, old->type);
    Val **lanes = arena_array(x->arena, Val *, n);
    for (int i = 0; i < n; i++)
        lanes[i] = is_apart(x, old->type) ? ir_const_zero(x->module, old->type->args[0]) : old;
    apart_hold(x, old, lanes);
    return map_get(&x->held, PTR_KEY(old));
}

Val **apart_lanes(LaneCopy *x, Val *old) { return get(x, old)->lanes; }

static Val *one(LaneCopy *x, Val *old) { return get(x, old)->lanes[0]; }

/* As a single value. */
static Val *joined(LaneCopy *x, Val *old) {
    Held *held = get(x, old);
    return is_apart(x, old->type) ? build_vec(&x->b, old->type, held->lanes) : held->lanes[0];
}

void apart_hold_joined(LaneCopy *x, const Val *old, Val *value) {
    if (!is_apart(x, value->type)) {
        apart_hold_one(x, old, value);
        return;
    }
    int n = type_count(value->type);
    Val **lanes = arena_array(x->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = build_extract_lane(&x->b, value, i);
    apart_hold(x, old, lanes);
}

/* ---- the same instruction on the new operands */

static void copy_whole(LaneCopy *x, Inst *inst) {
    Val **args = arena_array(x->arena, Val *, inst->nargs);
    for (int i = 0; i < inst->nargs; i++) args[i] = joined(x, inst->args[i]);
    Inst *copy = clone_with(&x->b, inst, args);
    if (inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes) copy->apart = inst->apart;
    for (int i = 0; i < inst->nresults; i++) apart_hold_joined(x, inst->results[i], copy->results[i]);
}

/* ---- vectors, lane by lane */

/* What is built at the end keeps what was known of the old instruction, unless it was folded. */
static Val *build_lane(LaneCopy *x, const Inst *inst, const Type *type, Val *const *args) {
    const Inst *last = x->b.region->last;
    Val *lane = build_op(&x->b, (Op)inst->op, type, args, inst->nargs);
    bool is_new = x->b.region->last != last && lane->kind == VAL_inst && lane->inst == x->b.region->last;
    if (is_new && lane->inst->op == inst->op) lane->inst->flags = inst->flags;
    return lane;
}

static void copy_elementwise(LaneCopy *x, Inst *inst) {
    const Type *type = inst->results[0]->type;
    int n = apart_count(x, type);
    Val **lanes = arena_array(x->arena, Val *, n);
    for (int i = 0; i < n; i++) {
        Val *args[3];
        for (int k = 0; k < inst->nargs; k++) {
            Held *held = get(x, inst->args[k]);
            args[k] = held->lanes[held->n == 1 ? 0 : i];
        }
        lanes[i] = build_lane(x, inst, lane_type(x, type), args);
    }
    apart_hold(x, inst->results[0], lanes);
}

static Val *is_lane(LaneCopy *x, Val *index, int lane) {
    return build_binary(&x->b, OP_eq, index, ir_const_int(x->module, index->type, lane));
}

/* The last lane counts for all that is out of range. */
static void copy_extract(LaneCopy *x, Inst *inst) {
    const Held *vector = get(x, inst->args[0]);
    Val *index = one(x, inst->args[1]), *value = vector->lanes[vector->n - 1];
    for (int i = vector->n - 2; i >= 0; i--)
        value = build_select(&x->b, is_lane(x, index, i), vector->lanes[i], value);
    apart_hold_one(x, inst->results[0], value);
}

static void copy_insert(LaneCopy *x, Inst *inst) {
    const Held *vector = get(x, inst->args[0]);
    Val *index = one(x, inst->args[1]), *value = one(x, inst->args[2]);
    Val **lanes = arena_array(x->arena, Val *, vector->n);
    Val *is_last = ir_const_int(x->module, type_basic(x->module->types, TYPE_bool), 1);
    for (int i = 0; i < vector->n - 1; i++) {
        Val *hit = is_lane(x, index, i);
        lanes[i] = build_select(&x->b, hit, value, vector->lanes[i]);
        is_last = build_binary(&x->b, OP_and, is_last, build_not(&x->b, hit));
    }
    lanes[vector->n - 1] = build_select(&x->b, is_last, value, vector->lanes[vector->n - 1]);
    apart_hold(x, inst->results[0], lanes);
}

/* A lane of what may be whole. */
static Val *lane_at(LaneCopy *x, Val *old, int lane) {
    return is_apart(x, old->type) ? get(x, old)->lanes[lane] : build_extract_lane(&x->b, one(x, old), lane);
}

static void copy_lanes(LaneCopy *x, Inst *inst) {
    const Type *type = inst->results[0]->type;
    int n = type_count(type);
    Val **lanes = arena_array(x->arena, Val *, n);
    for (int i = 0; i < n; i++) {
        if (inst->op == OP_shuffle) lanes[i] = lane_at(x, inst->args[0], inst->lanes[i]);
        else lanes[i] = one(x, inst->args[inst->op == OP_splat ? 0 : i]);
    }
    if (is_apart(x, type)) apart_hold(x, inst->results[0], lanes);
    else apart_hold_one(x, inst->results[0], build_vec(&x->b, type, lanes));
}

static void copy_reduce(LaneCopy *x, Inst *inst) {
    Held *vector = get(x, inst->args[0]);
    Val *value = vector->lanes[0];
    for (int i = 1; i < vector->n; i++)
        value = build_binary(&x->b, inst->op == OP_any ? OP_or : OP_and, value, vector->lanes[i]);
    apart_hold_one(x, inst->results[0], value);
}

static void copy_select(LaneCopy *x, Inst *inst) {
    Held *condition = get(x, inst->args[0]), *a = get(x, inst->args[1]), *b = get(x, inst->args[2]);
    Val **lanes = arena_array(x->arena, Val *, a->n);
    for (int i = 0; i < a->n; i++)
        lanes[i] = build_select(&x->b, condition->lanes[condition->n == 1 ? 0 : i], a->lanes[i], b->lanes[i]);
    apart_hold(x, inst->results[0], lanes);
}

/* ---- memory */

static Val *lane_address(LaneCopy *x, Val *address, const Type *type, int lane) {
    if (!is_apart(x, type)) return address;
    Val *at = ir_const_int(x->module, type_basic(x->module->types, TYPE_int), lane);
    return build_elem(&x->b, address, at, true);
}

static void copy_load(LaneCopy *x, Inst *inst) {
    const Type *type = inst->results[0]->type;
    Val **lanes = arena_array(x->arena, Val *, apart_count(x, type));
    for (int i = 0; i < apart_count(x, type); i++)
        lanes[i] = build_load(&x->b, lane_address(x, one(x, inst->args[0]), type, i));
    apart_hold(x, inst->results[0], lanes);
}

static void copy_store(LaneCopy *x, Inst *inst) {
    const Type *type = ir_target(inst->args[0]->type);
    const Held *value = get(x, inst->args[1]);
    for (int i = 0; i < value->n; i++)
        build_store(&x->b, lane_address(x, one(x, inst->args[0]), type, i), value->lanes[i]);
}

/* ---- control flow */

static void add_lanes(LaneCopy *x, ValVec *out, Val *old) {
    Held *held = get(x, old);
    for (int i = 0; i < held->n; i++) vec_push(x->arena, out, held->lanes[i]);
}

ValVec apart_all(LaneCopy *x, Val *const *old, int n) {
    ValVec out = {0};
    for (int i = 0; i < n; i++) add_lanes(x, &out, old[i]);
    return out;
}

/* New values for old ones that control flow makes: results, parameters of regions. */
static void hold_new(LaneCopy *x, const Val *old, Val *(*make)(void *where, const Type *type, Name name),
                     void *where) {
    int n = apart_count(x, old->type);
    Val **lanes = arena_array(x->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = make(where, lane_type(x, old->type), lane_name(x, old, i));
    apart_hold(x, old, lanes);
}

static Val *make_result(void *where, const Type *type, Name name) {
    return inst_add_result(where, type, name);
}
static Val *make_param(void *where, const Type *type, Name name) {
    return region_add_param(where, type, name);
}

static void copy_control(LaneCopy *x, Inst *inst) {
    ValVec args = apart_all(x, inst->args, inst->nargs);
    Inst *copy = build_inst(&x->b, (Op)inst->op, args.at, args.count, 0, inst->nregions);
    map_put(x->arena, &x->insts, PTR_KEY(inst), copy);
    copy->flags = inst->flags;
    inst_copy_cases(inst, copy);
    if (inst->op == OP_loop) copy->hints = inst->hints;
    Builder outer = x->b;
    for (int i = 0; i < inst->nregions; i++) {
        Region *region = copy->regions[i];
        for (int k = 0; k < inst->regions[i]->nparams; k++)
            hold_new(x, inst->regions[i]->params[k], make_param, region);
        x->b = build_at_end(region);
        apart_copy_region(x, inst->regions[i]);
    }
    x->b = outer;
    for (int i = 0; i < inst->nresults; i++) hold_new(x, inst->results[i], make_result, copy);
}

static void copy_jump(LaneCopy *x, Inst *inst) {
    ValVec args = apart_all(x, inst->args, inst->nargs);
    Inst *target =
        inst->op == OP_break || inst->op == OP_continue ? map_get(&x->insts, PTR_KEY(inst->target)) : NULL;
    if (inst->op == OP_yield) build_yield(&x->b, args.at, args.count);
    else if (inst->op == OP_break) build_break(&x->b, target, args.at, args.count);
    else if (inst->op == OP_continue) build_continue(&x->b, target, args.at, args.count);
    else build_unreachable(&x->b);
}

/* Operations of vectors, of which the result or the operand is taken apart. */
static void copy_vector(LaneCopy *x, Inst *inst) {
    bool from = is_apart(x, inst->args[0]->type), to = is_apart(x, inst->results[0]->type);
    if (!from && !to) {
        copy_whole(x, inst);
        return;
    }
    switch ((Op)inst->op) {
    case OP_extract: copy_extract(x, inst); break;
    case OP_insert: copy_insert(x, inst); break;
    case OP_any:
    case OP_all: copy_reduce(x, inst); break;
    case OP_bitcast:
        if (from && to) copy_elementwise(x, inst);
        else copy_whole(x, inst);
        break;
    default: copy_lanes(x, inst);
    }
}

static void copy_inst(LaneCopy *x, Inst *inst) {
    x->b.loc = inst->loc;
    if (x->copies && x->copies(x->user, inst)) return;
    switch ((Op)inst->op) {
    case OP_load: copy_load(x, inst); return;
    case OP_store: copy_store(x, inst); return;
    case OP_vec:
    case OP_splat:
    case OP_shuffle:
    case OP_extract:
    case OP_insert:
    case OP_any:
    case OP_all:
    case OP_bitcast: copy_vector(x, inst); return;
    case OP_select: copy_select(x, inst); return;
    case OP_if:
    case OP_switch:
    case OP_loop:
    case OP_block: copy_control(x, inst); return;
    case OP_yield:
    case OP_break:
    case OP_continue:
    case OP_unreachable: copy_jump(x, inst); return;
    default:
        if (op_has(inst->op, OP_ELEMENTWISE)) copy_elementwise(x, inst);
        else copy_whole(x, inst);
    }
}

void apart_copy_region(LaneCopy *x, const Region *from) {
    for (Inst *inst = from->first; inst; inst = inst->next) copy_inst(x, inst);
}
