/* Making a function flat: from structs and vectors to scalars.
 *
 *     1  calls are made to flat functions: arguments and results go scalar by scalar
 *     2  sroa splits variables and parameters into their parts
 *     3  a copy is built in which parameters and results are those of the flat function, and every value is a scalar (or pointer, buffer, tape),
 *        vectors being held lane by lane
 *
 * Variables that are vectors are taken apart when that is cleaned up. Arrays stay in memory, as do structs whose Differential is opaque
 * and objects whose address is used for more than reading and writing. What is left is what the later stages know. */
#include "autodiff/ad.h"

/* What stands for a value of the old function. */
typedef struct Held {
    Val **lanes;
    int n;
} Held;

/* A part of a parameter, by the way to it. Sroa has left it to a load when the function begins, and a store when it returns. */
typedef struct Part {
    int param;
    int *path;
    int npath;
} Part;

typedef struct Flat {
    Ad *ad;
    Module *m;
    AdFunc *to;
    const Func *from;
    Builder b;
    Map held;   /* old Val -> Held */
    Map parts;  /* old Val, the address of a part of a parameter -> Part */
    Map insts;  /* old Inst -> new Inst, for jumps */
    Val **outs; /* what was stored to parts of parameters, by result of the flat function */
} Flat;

/* ---- calls of flat functions, in the structured function */

static Val *leaf_given(Builder *b, const Inst *call, const Leaf *leaf) {
    Val *arg = call->args[leaf->param];
    if (!(call->callee->params[leaf->param].flags & PARAM_BY_ADDRESS))
        return leaf->npath ? build_extract_lane(b, arg, -1 - leaf->path[0]) : arg;
    Val *address = ad_leaf_address(b, arg, leaf->path, leaf->npath);
    return leaf->by_ref ? address : build_load(b, address);
}

/* Stores what the call gives; the lanes of its result are kept. */
static void take_results(Builder *b, const Inst *call, const Leaves *leaves, const Inst *flat, Val **lanes) {
    int n = 0;
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->out < 0) continue;
        if (leaf->param < 0) lanes[n++] = flat->results[leaf->out];
        else ad_leaf_store(b, call->args[leaf->param], leaf->path, leaf->npath, flat->results[leaf->out]);
    }
}

static void give_result(Builder *b, Val *result, Val *const *lanes) {
    bool is_vector = result->type->kind == TYPE_vector;
    result->forward = is_vector ? build_vec(b, result->type, lanes) : lanes[0];
    if (!is_vector && !lanes[0]->name) lanes[0]->name = result->name;
}

static void call_by_leaves(void *user, Inst *inst) {
    Ad *ad = user;
    AdFunc *callee = inst->op == OP_call ? ad_func(ad, inst->callee) : NULL;
    if (!callee || callee->flat == inst->callee) return;
    const Leaves *leaves = &callee->leaves;
    Builder b = build_before(inst);
    Val **args = arena_array(ad->arena, Val *, callee->flat->nparams);
    Val **lanes = arena_array(ad->arena, Val *, callee->flat->nresults);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].in >= 0) args[leaves->at[i].in] = leaf_given(&b, inst, &leaves->at[i]);
    Inst *call = build_call(&b, callee->flat, args, callee->flat->nparams);
    call->flags = inst->flags & INST_NO_DIFF;
    take_results(&b, inst, leaves, call, lanes);
    if (inst->nresults) give_result(&b, inst->results[0], lanes);
    inst_remove(inst);
}

/* ---- values */

static int lane_count(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }
static const Type *lane_type(const Type *type) { return type->kind == TYPE_vector ? type->args[0] : type; }

static void hold(Flat *x, const Val *old, Val **lanes, int n) {
    Held *held = arena_new(x->ad->arena, Held);
    *held = (Held){lanes, n};
    map_put(x->ad->arena, &x->held, PTR_KEY(old), held);
}

static void hold_one(Flat *x, const Val *old, Val *value) {
    Val **lanes = arena_array(x->ad->arena, Val *, 1);
    lanes[0] = value;
    if (old->name && !value->name && value->kind == VAL_inst) value->name = old->name;
    hold(x, old, lanes, 1);
}

static Held *get(Flat *x, Val *old) {
    old = ir_resolve(old);
    Held *held = map_get(&x->held, PTR_KEY(old));
    if (held) return held;
    if (!val_is_const(old)) arena_fault(x->ad->arena, "a value is used before it is made");
    int n = lane_count(old->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++)
        lanes[i] = old->type->kind == TYPE_vector ? ad_zero(x->ad, old->type->args[0]) : old;
    hold(x, old, lanes, n);
    return map_get(&x->held, PTR_KEY(old));
}

static Val *one(Flat *x, Val *old) { return get(x, old)->lanes[0]; }

/* As a single value: vectors are put together again. */
static Val *joined(Flat *x, Val *old) {
    Held *held = get(x, old);
    if (old->type->kind != TYPE_vector) return held->lanes[0];
    return build_vec(&x->b, old->type, held->lanes);
}

static void hold_joined(Flat *x, const Val *old, Val *value) {
    if (value->type->kind != TYPE_vector) {
        hold_one(x, old, value);
        return;
    }
    int n = type_count(value->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = build_extract_lane(&x->b, value, i);
    hold(x, old, lanes, n);
}

/* ---- vectors, lane by lane */

static void flat_elementwise(Flat *x, Inst *inst) {
    const Type *type = inst->results[0]->type, *element = type->kind == TYPE_vector ? type->args[0] : type;
    int n = lane_count(type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) {
        Val *args[3];
        for (int k = 0; k < inst->nargs; k++) {
            Held *held = get(x, inst->args[k]);
            args[k] = held->lanes[held->n == 1 ? 0 : i];
        }
        lanes[i] = build_op(&x->b, (Op)inst->op, element, args, inst->nargs);
    }
    if (n == 1) hold_one(x, inst->results[0], lanes[0]);
    else hold(x, inst->results[0], lanes, n);
}

static void flat_extract(Flat *x, Inst *inst) {
    Held *vector = get(x, inst->args[0]);
    Val *index = one(x, inst->args[1]);
    int64_t known;
    if (val_is_int(index, &known)) {
        int64_t lane = known < 0 || known >= vector->n ? vector->n - 1 : known;
        hold_one(x, inst->results[0], vector->lanes[lane]);
        return;
    }
    Val *value = vector->lanes[vector->n - 1]; /* out of range counts as the last lane */
    for (int i = vector->n - 2; i >= 0; i--) {
        Val *is = build_binary(&x->b, OP_eq, index, ir_const_int(x->m, index->type, i));
        value = build_select(&x->b, is, vector->lanes[i], value);
    }
    hold_one(x, inst->results[0], value);
}

static void flat_insert(Flat *x, Inst *inst) {
    Held *vector = get(x, inst->args[0]);
    Val *index = one(x, inst->args[1]), *value = one(x, inst->args[2]);
    Val **lanes = arena_copy(x->ad->arena, vector->lanes, sizeof(Val *) * (size_t)vector->n);
    int64_t known;
    bool constant = val_is_int(index, &known);
    if (constant && (known < 0 || known >= vector->n)) known = vector->n - 1;
    for (int i = 0; i < vector->n; i++) {
        if (constant) {
            if (i == known) lanes[i] = value;
            continue;
        }
        bool last = i == vector->n - 1; /* takes all that is out of range */
        const Type *flag = type_basic(x->m->types, TYPE_bool);
        Val *hit = ir_const_int(x->m, flag, last);
        if (!last) hit = build_binary(&x->b, OP_eq, index, ir_const_int(x->m, index->type, i));
        else
            for (int k = 0; k < i; k++) {
                Val *other = build_binary(&x->b, OP_eq, index, ir_const_int(x->m, index->type, k));
                hit = build_select(&x->b, other, ir_const_int(x->m, flag, 0), hit);
            }
        lanes[i] = build_select(&x->b, hit, value, lanes[i]);
    }
    hold(x, inst->results[0], lanes, vector->n);
}

static void flat_lanes(Flat *x, Inst *inst) {
    int n = lane_count(inst->results[0]->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) {
        if (inst->op == OP_splat) lanes[i] = one(x, inst->args[0]);
        else if (inst->op == OP_shuffle) lanes[i] = get(x, inst->args[0])->lanes[inst->lanes[i]];
        else lanes[i] = one(x, inst->args[i]);
    }
    hold(x, inst->results[0], lanes, n);
}

static void flat_reduce(Flat *x, Inst *inst) {
    Held *vector = get(x, inst->args[0]);
    Val *value = vector->lanes[0];
    for (int i = 1; i < vector->n; i++)
        value = build_binary(&x->b, inst->op == OP_any ? OP_or : OP_and, value, vector->lanes[i]);
    hold_one(x, inst->results[0], value);
}

static void flat_select(Flat *x, Inst *inst) {
    Held *condition = get(x, inst->args[0]), *a = get(x, inst->args[1]), *b = get(x, inst->args[2]);
    Val **lanes = arena_array(x->ad->arena, Val *, a->n);
    for (int i = 0; i < a->n; i++)
        lanes[i] = build_select(&x->b, condition->lanes[condition->n == 1 ? 0 : i], a->lanes[i], b->lanes[i]);
    hold(x, inst->results[0], lanes, a->n);
}

/* ---- anything else: the same instruction on the new operands */

static void flat_other(Flat *x, Inst *inst) {
    Val **args = arena_array(x->ad->arena, Val *, inst->nargs ? inst->nargs : 1);
    for (int i = 0; i < inst->nargs; i++) args[i] = joined(x, inst->args[i]);
    const Inst *copy = clone_with(&x->b, inst, args);
    for (int i = 0; i < inst->nresults; i++) hold_joined(x, inst->results[i], copy->results[i]);
}

/* ---- parts of parameters */

static Part *part_at(const Flat *x, Val *address) { return map_get(&x->parts, PTR_KEY(ir_resolve(address))); }

static bool starts_with(const Leaf *leaf, const Part *part) {
    bool fits = leaf->param == part->param && leaf->npath >= part->npath;
    return fits && (!part->npath || !memcmp(leaf->path, part->path, sizeof(int) * (size_t)part->npath));
}

static const Leaf *find_leaf(const Flat *x, const Part *part) {
    for (int i = 0; i < x->to->leaves.count; i++) {
        const Leaf *leaf = &x->to->leaves.at[i];
        if (leaf->npath == part->npath && starts_with(leaf, part)) return leaf;
    }
    return NULL;
}

static Part *step_in(Flat *x, const Part *part, int step) {
    Part *inner = arena_new(x->ad->arena, Part);
    *inner = (Part){part->param, arena_array(x->ad->arena, int, part->npath + 1), part->npath + 1};
    if (part->npath) memcpy(inner->path, part->path, sizeof(int) * (size_t)part->npath);
    inner->path[part->npath] = step;
    return inner;
}

/* An array has its address in the flat function; anything else has none. */
static void hold_part(Flat *x, const Val *old, Part *part) {
    const Leaf *leaf = find_leaf(x, part);
    if (leaf && leaf->by_ref) hold_one(x, old, x->to->flat->body->params[leaf->in]);
    else map_put(x->ad->arena, &x->parts, PTR_KEY(old), part);
}

static const Leaf *lane_of_part(Flat *x, const Part *part, const Type *type, int lane) {
    const Leaf *leaf = find_leaf(x, type->kind == TYPE_vector ? step_in(x, part, -1 - lane) : part);
    if (!leaf) arena_fault(x->ad->arena, "a part of a parameter was not taken apart");
    return leaf;
}

static Val *leaf_in(const Flat *x, const Leaf *leaf) {
    if (leaf->in < 0) arena_fault(x->ad->arena, "a part of a parameter is read that has no value");
    return x->to->flat->body->params[leaf->in];
}

/* An object that had to stay whole, scalar by scalar and array by array. */
static void copy_leaf(Flat *x, const Leaf *leaf, const Part *part, Val *object, bool back) {
    Val *at = ad_leaf_address(&x->b, object, leaf->path + part->npath, leaf->npath - part->npath);
    if (leaf->by_ref && back) build_copy(&x->b, leaf_in(x, leaf), at);
    else if (leaf->by_ref) build_copy(&x->b, at, leaf_in(x, leaf));
    else if (back) x->outs[leaf->out] = build_load(&x->b, at);
    else build_store(&x->b, at, leaf_in(x, leaf));
}

static void copy_part(Flat *x, const Part *part, Val *object, bool back) {
    for (int i = 0; i < x->to->leaves.count; i++)
        if (starts_with(&x->to->leaves.at[i], part)) copy_leaf(x, &x->to->leaves.at[i], part, object, back);
}

/* ---- memory */

static Val *lane_address(Flat *x, Val *address, const Type *type, int lane) {
    if (type->kind != TYPE_vector) return address;
    return build_elem(&x->b, address, ir_const_int(x->m, type_basic(x->m->types, TYPE_int), lane), true);
}

static void flat_load(Flat *x, Inst *inst) {
    const Type *type = inst->results[0]->type;
    const Part *part = part_at(x, inst->args[0]);
    Val **lanes = arena_array(x->ad->arena, Val *, lane_count(type));
    for (int i = 0; i < lane_count(type); i++)
        lanes[i] = part ? leaf_in(x, lane_of_part(x, part, type, i))
                        : build_load(&x->b, lane_address(x, one(x, inst->args[0]), type, i));
    if (type->kind == TYPE_vector) hold(x, inst->results[0], lanes, lane_count(type));
    else hold_one(x, inst->results[0], lanes[0]);
}

static void flat_store(Flat *x, Inst *inst) {
    const Type *type = ir_target(inst->args[0]->type);
    const Part *part = part_at(x, inst->args[0]);
    const Held *value = get(x, inst->args[1]);
    for (int i = 0; i < lane_count(type); i++)
        if (part) x->outs[lane_of_part(x, part, type, i)->out] = value->lanes[i];
        else build_store(&x->b, lane_address(x, one(x, inst->args[0]), type, i), value->lanes[i]);
}

static void flat_part(Flat *x, Inst *inst) {
    Part *part = part_at(x, inst->args[0]);
    if (part) hold_part(x, inst->results[0], step_in(x, part, inst->index));
    else flat_other(x, inst);
}

static void flat_copy(Flat *x, Inst *inst) {
    const Part *to = part_at(x, inst->args[0]), *from = part_at(x, inst->args[1]);
    if (to) copy_part(x, to, one(x, inst->args[1]), true);
    else if (from) copy_part(x, from, one(x, inst->args[0]), false);
    else flat_other(x, inst);
}

/* ---- control flow */

static void flat_region(Flat *x, const Region *from);

static void add_lanes(Flat *x, ValVec *out, Val *old) {
    Held *held = get(x, old);
    for (int i = 0; i < held->n; i++) vec_push(x->ad->arena, out, held->lanes[i]);
}

static ValVec all_lanes(Flat *x, Val *const *old, int n) {
    ValVec out = {0};
    for (int i = 0; i < n; i++) add_lanes(x, &out, old[i]);
    return out;
}

/* New values for old ones that control flow makes: results, parameters of regions. */
static void hold_new(Flat *x, const Val *old, Val *(*make)(void *where, const Type *type, Name name),
                     void *where) {
    int n = lane_count(old->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = make(where, lane_type(old->type), old->name);
    hold(x, old, lanes, n);
}

static Val *make_result(void *where, const Type *type, Name name) {
    return inst_add_result(where, type, name);
}
static Val *make_param(void *where, const Type *type, Name name) {
    return region_add_param(where, type, name);
}

static void flat_control(Flat *x, Inst *inst) {
    ValVec args = all_lanes(x, inst->args, inst->nargs);
    Inst *copy = build_inst(&x->b, (Op)inst->op, args.at, args.count, 0, inst->nregions);
    map_put(x->ad->arena, &x->insts, PTR_KEY(inst), copy);
    if (inst->op == OP_switch) {
        copy->cases = inst->cases;
        copy->ncases = inst->ncases;
    } else if (inst->op == OP_loop) copy->hints = inst->hints;
    Builder outer = x->b;
    for (int i = 0; i < inst->nregions; i++) {
        Region *region = copy->regions[i];
        for (int k = 0; k < inst->regions[i]->nparams; k++)
            hold_new(x, inst->regions[i]->params[k], make_param, region);
        x->b = build_at_end(region);
        flat_region(x, inst->regions[i]);
    }
    x->b = outer;
    for (int i = 0; i < inst->nresults; i++) hold_new(x, inst->results[i], make_result, copy);
}

static void flat_return(Flat *x, const Inst *inst) {
    const Leaves *leaves = &x->to->leaves;
    ValVec lanes = all_lanes(x, inst->args, inst->nargs);
    for (int i = 0, lane = 0; i < leaves->count; i++)
        if (leaves->at[i].param < 0) x->outs[leaves->at[i].out] = lanes.at[lane++];
    build_return(&x->b, x->outs, x->to->flat->nresults);
}

static void flat_jump(Flat *x, Inst *inst) {
    if (inst->op == OP_return) {
        flat_return(x, inst);
        return;
    }
    ValVec args = all_lanes(x, inst->args, inst->nargs);
    Inst *target =
        inst->op == OP_break || inst->op == OP_continue ? map_get(&x->insts, PTR_KEY(inst->target)) : NULL;
    if (inst->op == OP_yield) build_yield(&x->b, args.at, args.count);
    else if (inst->op == OP_break) build_break(&x->b, target, args.at, args.count);
    else if (inst->op == OP_continue) build_continue(&x->b, target, args.at, args.count);
    else build_unreachable(&x->b);
}

static void flat_inst(Flat *x, Inst *inst) {
    x->b.loc = inst->loc;
    switch ((Op)inst->op) {
    case OP_field: flat_part(x, inst); return;
    case OP_load: flat_load(x, inst); return;
    case OP_store: flat_store(x, inst); return;
    case OP_copy: flat_copy(x, inst); return;
    case OP_vec:
    case OP_splat:
    case OP_shuffle: flat_lanes(x, inst); return;
    case OP_extract: flat_extract(x, inst); return;
    case OP_insert: flat_insert(x, inst); return;
    case OP_any:
    case OP_all: flat_reduce(x, inst); return;
    case OP_select: flat_select(x, inst); return;
    case OP_if:
    case OP_switch:
    case OP_loop:
    case OP_block: flat_control(x, inst); return;
    case OP_yield:
    case OP_break:
    case OP_continue:
    case OP_return:
    case OP_unreachable: flat_jump(x, inst); return;
    default:
        if (op_has(inst->op, OP_ELEMENTWISE)) flat_elementwise(x, inst);
        else flat_other(x, inst);
    }
}

static void flat_region(Flat *x, const Region *from) {
    for (Inst *inst = from->first; inst; inst = inst->next) flat_inst(x, inst);
}

/* ---- the function */

static void bind_param(Flat *x, int index) {
    const Type *type = x->from->params[index].type;
    Part *whole = arena_new(x->ad->arena, Part);
    *whole = (Part){.param = index};
    if (x->from->params[index].flags & PARAM_BY_ADDRESS) {
        hold_part(x, x->from->body->params[index], whole);
        return;
    }
    Val **lanes = arena_array(x->ad->arena, Val *, lane_count(type));
    for (int i = 0; i < lane_count(type); i++) lanes[i] = leaf_in(x, lane_of_part(x, whole, type, i));
    hold(x, x->from->body->params[index], lanes, lane_count(type));
}

void ad_flatten(Ad *ad, Func *from, AdFunc *to, bool in_parts) {
    Flat x = {.ad = ad, .m = ad->m, .to = to, .from = from};
    region_walk(from->body, call_by_leaves, ad);
    ir_resolve_func(from);
    ad->config.split(ad->config.user, from, in_parts);
    x.b = build_at_end(func_begin(to->flat));
    x.b.loc = from->loc;
    x.outs = arena_array(ad->arena, Val *, to->flat->nresults + 1);
    for (int i = 0; i < from->nparams; i++) bind_param(&x, i);
    flat_region(&x, from->body);
    from->body = NULL; /* it has served */
    to->flat->flags |= from->flags & FUNC_NORMAL;
}
