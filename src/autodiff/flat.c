/* Making a function flat: from structs and vectors to scalars.
 *
 *     1  calls are made to flat functions: arguments and results go scalar by scalar
 *     2  sroa splits variables and parameters into their parts
 *     3  a copy is built in which parameters and results are those of the flat function, and every value is a scalar (or pointer, buffer, tape),
 *        vectors being held lane by lane
 *
 * Variables that are vectors are taken apart when that is cleaned up. Arrays stay in memory, as do structs
 * whose Differential is opaque and objects whose address is used for more than reading and writing. What is
 * left is what the later stages know. */
#include "autodiff/ad.h"

/* A part of a parameter, by the way to it. Sroa has left it to a load when the function begins, and a store
 * when it returns. */
typedef struct Part {
    int param;
    int *path;
    int npath;
} Part;

typedef struct Flat {
    Ad *ad;
    AdFunc *to;
    const Func *from;
    LaneCopy copy;
    Map parts;  /* old Val, the address of a part of a parameter -> Part */
    Val **outs; /* what was stored to parts of parameters, by result of the flat function */
} Flat;

/* ---- calls of flat functions, in the structured function */

static Val *leaf_given(Builder *b, const Inst *call, const Leaf *leaf) {
    Val *arg = call->args[leaf->param];
    bool by_address = call->callee->params[leaf->param].flags & PARAM_BY_ADDRESS;
    return by_address ? ad_leaf_in(b, arg, leaf, false) : ad_leaf_lane(b, arg, leaf);
}

/* Stores what the call gives; the lanes of its result are kept. */
static void take_results(Builder *b, const Inst *call, const Leaves *leaves, const Inst *flat, Val **lanes) {
    int n = 0;
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->out < 0) continue;
        if (leaf->param < 0) lanes[n++] = flat->results[leaf->out];
        else build_store(b, ad_leaf_at(b, call->args[leaf->param], leaf, false), flat->results[leaf->out]);
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
    if (leaf && leaf->by_ref) apart_hold_one(&x->copy, old, x->to->flat->body->params[leaf->in]);
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
    Val *at = ad_leaf_address(&x->copy.b, object, leaf->path + part->npath, leaf->npath - part->npath);
    if (leaf->by_ref && back) build_copy(&x->copy.b, leaf_in(x, leaf), at);
    else if (leaf->by_ref) build_copy(&x->copy.b, at, leaf_in(x, leaf));
    else if (back) x->outs[leaf->out] = build_load(&x->copy.b, at);
    else build_store(&x->copy.b, at, leaf_in(x, leaf));
}

static void copy_part(Flat *x, const Part *part, Val *object, bool back) {
    for (int i = 0; i < x->to->leaves.count; i++)
        if (starts_with(&x->to->leaves.at[i], part)) copy_leaf(x, &x->to->leaves.at[i], part, object, back);
}

/* ---- instructions */

static Val *one(Flat *x, Val *old) { return apart_lanes(&x->copy, old)[0]; }

static void load_part(Flat *x, const Inst *inst, const Part *part) {
    const Type *type = inst->results[0]->type;
    Val **lanes = arena_array(x->ad->arena, Val *, apart_count(&x->copy, type));
    for (int i = 0; i < apart_count(&x->copy, type); i++)
        lanes[i] = leaf_in(x, lane_of_part(x, part, type, i));
    apart_hold(&x->copy, inst->results[0], lanes);
}

static void store_part(Flat *x, const Inst *inst, const Part *part) {
    const Type *type = inst->args[1]->type;
    Val **lanes = apart_lanes(&x->copy, inst->args[1]);
    for (int i = 0; i < apart_count(&x->copy, type); i++)
        x->outs[lane_of_part(x, part, type, i)->out] = lanes[i];
}

static void flat_return(Flat *x, const Inst *inst) {
    const Leaves *leaves = &x->to->leaves;
    ValVec lanes = apart_all(&x->copy, inst->args, inst->nargs);
    for (int i = 0, lane = 0; i < leaves->count; i++)
        if (leaves->at[i].param < 0) x->outs[leaves->at[i].out] = lanes.at[lane++];
    build_return(&x->copy.b, x->outs, x->to->flat->nresults);
}

/* What is done with parts of parameters, and the end; the rest is copied lane by lane. */
static bool flat_inst(void *user, Inst *inst) {
    Flat *x = user;
    const Part *to = inst->nargs ? part_at(x, inst->args[0]) : NULL,
               *from = inst->op == OP_copy ? part_at(x, inst->args[1]) : NULL;
    if (inst->op == OP_return) flat_return(x, inst);
    else if (from && !to) copy_part(x, from, one(x, inst->args[0]), false);
    else if (!to) return false;
    else if (inst->op == OP_field) hold_part(x, inst->results[0], step_in(x, to, inst->index));
    else if (inst->op == OP_load) load_part(x, inst, to);
    else if (inst->op == OP_store) store_part(x, inst, to);
    else if (inst->op == OP_copy) copy_part(x, to, one(x, inst->args[1]), true);
    else return false;
    return true;
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
    int n = apart_count(&x->copy, type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = leaf_in(x, lane_of_part(x, whole, type, i));
    apart_hold(&x->copy, x->from->body->params[index], lanes);
}

void ad_flatten(Ad *ad, Func *from, AdFunc *to, bool in_parts) {
    Flat x = {.ad = ad, .to = to, .from = from};
    x.copy = (LaneCopy){.module = ad->m, .arena = ad->arena, .copies = flat_inst, .user = &x};
    region_walk(from->body, call_by_leaves, ad);
    ir_resolve_func(from);
    ad->config.split(ad->config.user, from, in_parts);
    x.copy.b = build_at_end(func_begin(to->flat));
    x.copy.b.loc = from->loc;
    x.outs = arena_array(ad->arena, Val *, to->flat->nresults + 1);
    for (int i = 0; i < from->nparams; i++) bind_param(&x, i);
    apart_copy_region(&x.copy, from->body);
    from->body = NULL; /* it has served */
    to->flat->flags |= from->flags & FUNC_NORMAL;
}
