/* Taking a function apart: from structs and vectors to scalars.
 *
 * A copy of the function is built in which every value is a scalar (or pointer, buffer, tape), vectors being held lane by lane, and
 * every local struct, vector or small matrix is a set of variables, one per scalar. Arrays stay in memory, as do structs
 * whose Differential is opaque and objects whose address is used for more than reading and writing. Calls go to flat
 * functions: structs are passed leaf by leaf. What is left is what the later stages know. */
#include "autodiff/ad.h"

/* An object in memory: whole (address), or in parts (kids). */
typedef struct Obj Obj;
struct Obj {
    const Type *type;
    Val *address;
    Obj **kids;
    int nkids;
};

/* What stands for a value of the old function. */
typedef struct Held {
    Val **lanes;
    int n;
    Obj *obj; /* of an address */
} Held;

typedef struct Flat {
    Ad *ad;
    Module *m;
    AdFunc *to;
    const Func *from;
    Builder b;
    Map held;  /* old Val -> Held */
    Map insts; /* old Inst -> new Inst, for jumps */
    Map whole; /* key of an object or part that must stay in one piece */
    Obj **params;
} Flat;

enum { MAX_SPLIT = 16 }; /* elements of an array that is taken apart */

/* ---- which objects can be taken apart */

static uint64_t path_key(uint64_t base, int step) {
    return hash_mix(base, (uint64_t)(int64_t)step + 1000003) | 1;
}

static bool is_object_root(const Val *v) {
    return v->kind == VAL_param || (v->kind == VAL_inst && v->inst->op == OP_var);
}

static int64_t constant_index(const Inst *elem) {
    int64_t index;
    const Type *type = elem->args[0]->type->args[0];
    int64_t n = type->kind == TYPE_vector ? type_count(type) : type_length(type);
    if (!val_is_int(elem->args[1], &index) || index < 0 || index >= n) return -1;
    return index;
}

/* The key of what an address points to: its root and the way from there; 0: not into a local object. */
static uint64_t address_key(const Val *v) {
    if (is_object_root(v)) return PTR_KEY(v);
    if (v->kind != VAL_inst) return 0;
    const Inst *inst = v->inst;
    if (inst->op != OP_field && inst->op != OP_elem) return 0;
    uint64_t base = address_key(inst->args[0]);
    if (!base) return 0;
    if (inst->op == OP_field) return path_key(base, inst->index);
    int64_t index = constant_index(inst);
    return index < 0 ? 0 : path_key(base, -1 - (int)index);
}

static void mark(Flat *x, uint64_t key) {
    if (key) map_put(x->ad->arena, &x->whole, key, x);
}

/* An address that is used as a value: the whole object behind it stays in memory. */
static void mark_escape(Flat *x, const Val *v) {
    if (v->type->kind != TYPE_pointer) return;
    while (v->kind == VAL_inst && (v->inst->op == OP_field || v->inst->op == OP_elem)) v = v->inst->args[0];
    if (is_object_root(v)) mark(x, PTR_KEY(v));
}

static void mark_arrays(Flat *x, uint64_t key, const Type *type) {
    if (!key) return;
    if (type->kind == TYPE_array) mark(x, key);
    if (type->kind != TYPE_record) return;
    for (int i = 0; i < type_record(type)->nfields; i++)
        mark_arrays(x, path_key(key, i), type_record(type)->fields[i].type);
}

static void survey_operand(Flat *x, const Inst *inst, int operand) {
    const Val *address = inst->args[operand];
    switch (ir_role(inst, operand)) {
    case ROLE_part:
        if (inst->op == OP_elem && constant_index(inst) < 0) mark(x, address_key(address));
        return;
    case ROLE_read:
    case ROLE_write:
    case ROLE_share:
        if (op_has(inst->op, OP_CALLS))
            mark_arrays(x, address_key(address), inst->callee->params[operand].type);
        else if (!op_has(inst->op, OP_PLAIN) || inst->op == OP_acc) mark_escape(x, address);
        return;
    case ROLE_value: /* compared */
    case ROLE_move:
    case ROLE_escape: mark_escape(x, address);
    }
}

static void survey(void *user, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) survey_operand(user, inst, i);
}

/* ---- objects */

static Obj *new_obj(Flat *x, const Type *type, Val *address) {
    Obj *obj = arena_new(x->ad->arena, Obj);
    obj->type = type;
    obj->address = address;
    return obj;
}

static int part_count(Flat *x, const Type *type) {
    if (type->kind == TYPE_vector) return type_count(type);
    if (type->kind == TYPE_array) return type_length(type) <= MAX_SPLIT ? (int)type_length(type) : -1;
    if (type->kind != TYPE_record) return -1;
    const RecordDiff *diff = ad_record_diff(x->ad, type);
    return diff->opaque ? -1 : type_record(type)->nfields;
}

static const Type *part_type(const Type *type, int index) {
    return type->kind == TYPE_record ? type_record(type)->fields[index].type : type->args[0];
}

static Name part_name(Flat *x, Name base, const Type *type, int index) {
    const char *prefix = base ? base->text : "v";
    if (type->kind == TYPE_record)
        return name_from(x->m->names, format_text(x->ad->arena, "%s.%s", prefix,
                                                  type_record(type)->fields[index].name->text));
    return name_from(x->m->names, format_text(x->ad->arena, "%s.%d", prefix, index));
}

static Obj *make_var(Flat *x, const Type *type, Name name, uint64_t key, bool raw) {
    int n = map_has(&x->whole, key) ? -1 : part_count(x, type);
    if (n < 0) return new_obj(x, type, build_var(&x->b, type, name, raw));
    Obj *obj = new_obj(x, type, NULL);
    obj->kids = arena_array(x->ad->arena, Obj *, n ? n : 1);
    obj->nkids = n;
    for (int i = 0; i < n; i++) {
        int step = type->kind == TYPE_record ? i : -1 - i;
        obj->kids[i] = make_var(x, part_type(type, i), part_name(x, name, type, i), path_key(key, step), raw);
    }
    return obj;
}

static Val *int_const(Flat *x, int64_t value) {
    return ir_const_int(x->m, type_basic(x->m->types, TYPE_int), value);
}

static Obj *part_of(Flat *x, Obj *obj, int index) {
    if (obj->kids) return obj->kids[index];
    Val *address = obj->type->kind == TYPE_record
                       ? build_field(&x->b, obj->address, index)
                       : build_elem(&x->b, obj->address, int_const(x, index), true);
    return new_obj(x, part_type(obj->type, index), address);
}

static Obj *follow(Flat *x, Obj *obj, const int *path, int npath) {
    for (int i = 0; i < npath; i++) obj = part_of(x, obj, path[i] >= 0 ? path[i] : -1 - path[i]);
    return obj;
}

/* ---- loads, stores, copies */

static int lane_count(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }

static void load_obj(Flat *x, Obj *obj, Val **lanes) {
    if (obj->type->kind != TYPE_vector) {
        lanes[0] = build_load(&x->b, obj->address);
        return;
    }
    for (int i = 0; i < type_count(obj->type); i++) lanes[i] = build_load(&x->b, part_of(x, obj, i)->address);
}

static void store_obj(Flat *x, Obj *obj, Val *const *lanes) {
    if (obj->type->kind != TYPE_vector) {
        build_store(&x->b, obj->address, lanes[0]);
        return;
    }
    for (int i = 0; i < type_count(obj->type); i++) build_store(&x->b, part_of(x, obj, i)->address, lanes[i]);
}

static Val *without_derivative(Flat *x, Val *value, bool no_diff) {
    return no_diff && type_is_float(value->type) ? build_unary(&x->b, OP_detach, value) : value;
}

static void copy_whole(Flat *x, Val *to, Val *from, bool no_diff) {
    build_copy(&x->b, to, from);
    Inst *last = x->b.region->last;
    if (no_diff && last && last->op == OP_copy) last->flags |= INST_NO_DIFF;
}

static void copy_obj(Flat *x, Obj *to, Obj *from, bool no_diff) {
    if (to->address && from->address && to->type->kind != TYPE_vector && !type_is_scalar(to->type)) {
        bool memory = to->type->kind == TYPE_array || to->type->kind == TYPE_record;
        if (memory) {
            copy_whole(x, to->address, from->address, no_diff);
            return;
        }
    }
    if (to->type->kind != TYPE_vector && to->type->kind != TYPE_record && to->type->kind != TYPE_array) {
        build_store(&x->b, to->address, without_derivative(x, build_load(&x->b, from->address), no_diff));
        return;
    }
    int n = to->kids ? to->nkids : from->kids ? from->nkids : part_count(x, to->type);
    if (n < 0)
        n = to->type->kind == TYPE_record ? type_record(to->type)->nfields : (int)type_length(to->type);
    for (int i = 0; i < n; i++) copy_obj(x, part_of(x, to, i), part_of(x, from, i), no_diff);
}

static void zero_obj(Flat *x, Obj *obj) {
    if (obj->address) {
        bool memory =
            obj->type->kind == TYPE_array || obj->type->kind == TYPE_record || obj->type->kind == TYPE_vector;
        if (memory) build_zero(&x->b, obj->address);
        else build_store(&x->b, obj->address, ad_zero(x->ad, obj->type));
        return;
    }
    for (int i = 0; i < obj->nkids; i++) zero_obj(x, obj->kids[i]);
}

/* ---- values */

static Held *hold(Flat *x, const Val *old, Val **lanes, int n, Obj *obj) {
    Held *held = arena_new(x->ad->arena, Held);
    *held = (Held){lanes, n, obj};
    map_put(x->ad->arena, &x->held, PTR_KEY(old), held);
    return held;
}

static Held *hold_one(Flat *x, const Val *old, Val *value) {
    Val **lanes = arena_array(x->ad->arena, Val *, 1);
    lanes[0] = value;
    if (old->name && !value->name && value->kind == VAL_inst) value->name = old->name;
    Obj *obj = value->type->kind == TYPE_pointer ? new_obj(x, value->type->args[0], value) : NULL;
    return hold(x, old, lanes, 1, obj);
}

static Held *get(Flat *x, Val *old) {
    old = ir_resolve(old);
    Held *held = map_get(&x->held, PTR_KEY(old));
    if (held) return held;
    if (!val_is_const(old)) arena_fault(x->ad->arena, "a value is used before it is made");
    int n = lane_count(old->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++)
        lanes[i] = n == 1 && old->type->kind != TYPE_vector ? old : ad_zero(x->ad, old->type->args[0]);
    return hold(x, old, lanes, n,
                old->type->kind == TYPE_pointer ? new_obj(x, old->type->args[0], old) : NULL);
}

static Val *one(Flat *x, Val *old) { return get(x, old)->lanes[0]; }

static Obj *object(Flat *x, Val *old) { return get(x, old)->obj; }

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
    hold(x, old, lanes, n, NULL);
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
    Held *held = hold(x, inst->results[0], lanes, n, NULL);
    if (n == 1 && inst->results[0]->name && held->lanes[0]->kind == VAL_inst && !held->lanes[0]->name)
        held->lanes[0]->name = inst->results[0]->name;
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
    hold(x, inst->results[0], lanes, vector->n, NULL);
}

static void flat_lanes(Flat *x, Inst *inst) {
    int n = lane_count(inst->results[0]->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) {
        if (inst->op == OP_splat) lanes[i] = one(x, inst->args[0]);
        else if (inst->op == OP_shuffle) lanes[i] = get(x, inst->args[0])->lanes[inst->lanes[i]];
        else lanes[i] = one(x, inst->args[i]);
    }
    hold(x, inst->results[0], lanes, n, NULL);
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
    hold(x, inst->results[0], lanes, a->n,
         a->obj && a->n == 1 ? new_obj(x, lanes[0]->type->args[0], lanes[0]) : NULL);
}

/* ---- anything else: the same instruction on the new operands */

static void flat_other(Flat *x, Inst *inst) {
    Val **args = arena_array(x->ad->arena, Val *, inst->nargs ? inst->nargs : 1);
    for (int i = 0; i < inst->nargs; i++) args[i] = joined(x, inst->args[i]);
    Inst *copy = build_inst(&x->b, (Op)inst->op, args, inst->nargs, 0, 0);
    copy->type = inst->type;
    copy->index = inst->index;
    copy->flags = inst->flags;
    if (inst->op == OP_global) copy->global = inst->global;
    else if (inst->op == OP_printf || inst->op == OP_abort) copy->text = inst->text;
    else memcpy(copy->lanes, inst->lanes, sizeof copy->lanes);
    for (int i = 0; i < inst->nresults; i++)
        hold_joined(x, inst->results[i],
                    inst_add_result(copy, inst->results[i]->type, inst->results[i]->name));
}

/* ---- memory */

static void flat_field(Flat *x, Inst *inst) {
    Obj *part = part_of(x, object(x, inst->args[0]), inst->index);
    hold(x, inst->results[0], part->address ? &part->address : NULL, 1, part);
}

static void flat_elem(Flat *x, Inst *inst) {
    Obj *base = object(x, inst->args[0]);
    int64_t index = constant_index(inst);
    if (base->kids && index >= 0) {
        Obj *part = base->kids[index];
        hold(x, inst->results[0], part->address ? &part->address : NULL, 1, part);
        return;
    }
    hold_one(x, inst->results[0],
             build_elem(&x->b, base->address, one(x, inst->args[1]), inst_has(inst, INST_UNCHECKED)));
}

static void flat_memory(Flat *x, Inst *inst) {
    switch ((Op)inst->op) {
    case OP_var: {
        Obj *obj = make_var(x, inst->type, inst->results[0]->name, PTR_KEY(inst->results[0]),
                            inst_has(inst, INST_RAW));
        hold(x, inst->results[0], obj->address ? &obj->address : NULL, 1, obj);
        return;
    }
    case OP_field: flat_field(x, inst); return;
    case OP_elem: flat_elem(x, inst); return;
    case OP_load: {
        Obj *obj = object(x, inst->args[0]);
        int n = lane_count(obj->type);
        Val **lanes = arena_array(x->ad->arena, Val *, n);
        load_obj(x, obj, lanes);
        if (n == 1 && obj->type->kind != TYPE_vector) hold_one(x, inst->results[0], lanes[0]);
        else hold(x, inst->results[0], lanes, n, NULL);
        return;
    }
    case OP_store: store_obj(x, object(x, inst->args[0]), get(x, inst->args[1])->lanes); return;
    case OP_copy:
        copy_obj(x, object(x, inst->args[0]), object(x, inst->args[1]), inst_has(inst, INST_NO_DIFF));
        return;
    case OP_zero: zero_obj(x, object(x, inst->args[0])); return;
    default: flat_other(x, inst); return;
    }
}

/* ---- calls */

static Val *leaf_in(Flat *x, const Inst *call, const Leaf *leaf) {
    Val *arg = call->args[leaf->param];
    if (!(call->callee->params[leaf->param].flags & PARAM_BY_ADDRESS)) {
        int lane = leaf->npath ? -1 - leaf->path[0] : 0;
        return get(x, arg)->lanes[lane];
    }
    Obj *part = follow(x, object(x, arg), leaf->path, leaf->npath);
    return leaf->by_ref ? part->address : build_load(&x->b, part->address);
}

static void flat_call(Flat *x, Inst *inst) {
    AdFunc *callee = ad_func(x->ad, inst->callee);
    if (callee->flat == inst->callee) { /* flat already: arguments correspond one to one */
        Val **args = arena_array(x->ad->arena, Val *, inst->nargs ? inst->nargs : 1);
        for (int i = 0; i < inst->nargs; i++) args[i] = one(x, inst->args[i]);
        Inst *call = build_call(&x->b, inst->callee, args, inst->nargs);
        call->flags = inst->flags & INST_NO_DIFF;
        for (int i = 0; i < inst->nresults; i++) hold_one(x, inst->results[i], call->results[i]);
        return;
    }
    const Leaves *leaves = &callee->leaves;
    Val **args = arena_array(x->ad->arena, Val *, callee->flat->nparams ? callee->flat->nparams : 1);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].in >= 0) args[leaves->at[i].in] = leaf_in(x, inst, &leaves->at[i]);
    Inst *call = build_call(&x->b, callee->flat, args, callee->flat->nparams);
    call->flags = inst->flags & INST_NO_DIFF;
    Val **lanes = NULL;
    int n = inst->nresults ? lane_count(inst->results[0]->type) : 0, next = 0;
    if (n) lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->out < 0) continue;
        Val *value = call->results[leaf->out];
        if (leaf->param < 0) lanes[next++] = value;
        else
            build_store(&x->b,
                        follow(x, object(x, inst->args[leaf->param]), leaf->path, leaf->npath)->address,
                        value);
    }
    if (!n) return;
    if (inst->results[0]->type->kind == TYPE_vector) hold(x, inst->results[0], lanes, n, NULL);
    else hold_one(x, inst->results[0], lanes[0]);
}

/* ---- control flow */

static void flat_region(Flat *x, const Region *from, Region *to);

static void add_lanes(Flat *x, ValVec *out, Val *old) {
    Held *held = get(x, old);
    for (int i = 0; i < held->n; i++) vec_push(x->ad->arena, out, held->lanes[i]);
}

static ValVec all_lanes(Flat *x, Val *const *old, int n) {
    ValVec out = {0};
    for (int i = 0; i < n; i++) add_lanes(x, &out, old[i]);
    return out;
}

static const Type *lane_type(const Type *type) { return type->kind == TYPE_vector ? type->args[0] : type; }

/* New values for old ones that control flow makes: results, parameters of regions. */
static void hold_new(Flat *x, const Val *old, Val *(*make)(void *where, const Type *type, Name name),
                     void *where) {
    int n = lane_count(old->type);
    Val **lanes = arena_array(x->ad->arena, Val *, n);
    for (int i = 0; i < n; i++) lanes[i] = make(where, lane_type(old->type), old->name);
    hold(x, old, lanes, n, old->type->kind == TYPE_pointer ? new_obj(x, old->type->args[0], lanes[0]) : NULL);
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
        flat_region(x, inst->regions[i], region);
    }
    x->b = outer;
    for (int i = 0; i < inst->nresults; i++) hold_new(x, inst->results[i], make_result, copy);
}

static void flat_return(Flat *x, const Inst *inst) {
    const Leaves *leaves = &x->to->leaves;
    Val **values = arena_array(x->ad->arena, Val *, x->to->flat->nresults ? x->to->flat->nresults : 1);
    int lane = 0;
    ValVec lanes = all_lanes(x, inst->args, inst->nargs);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->out < 0) continue;
        if (leaf->param < 0) values[leaf->out] = lanes.at[lane++];
        else
            values[leaf->out] =
                build_load(&x->b, follow(x, x->params[leaf->param], leaf->path, leaf->npath)->address);
    }
    for (int i = 0; i < leaves->count; i++) { /* arrays of an object that had to stay whole */
        const Leaf *leaf = &leaves->at[i];
        if (!leaf->by_ref || leaf->dir == DIR_in ||
            !map_has(&x->whole, PTR_KEY(x->from->body->params[leaf->param])))
            continue;
        Val *to = x->to->flat->body->params[leaf->in],
            *from = follow(x, x->params[leaf->param], leaf->path, leaf->npath)->address;
        if (to != from) build_copy(&x->b, to, from);
    }
    build_return(&x->b, values, x->to->flat->nresults);
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
    case OP_var:
    case OP_field:
    case OP_elem:
    case OP_load:
    case OP_store:
    case OP_copy:
    case OP_zero: flat_memory(x, inst); return;
    case OP_vec:
    case OP_splat:
    case OP_shuffle: flat_lanes(x, inst); return;
    case OP_extract: flat_extract(x, inst); return;
    case OP_insert: flat_insert(x, inst); return;
    case OP_any:
    case OP_all: flat_reduce(x, inst); return;
    case OP_select: flat_select(x, inst); return;
    case OP_call: flat_call(x, inst); return;
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

static void flat_region(Flat *x, const Region *from, Region *to) {
    (void)to;
    for (Inst *inst = from->first; inst; inst = inst->next) flat_inst(x, inst);
}

/* ---- the function */

typedef VEC(int) Path;

static const Leaf *find_leaf(const Flat *x, int param, const Path *path) {
    for (int i = 0; i < x->to->leaves.count; i++) {
        const Leaf *leaf = &x->to->leaves.at[i];
        if (leaf->param == param && leaf->npath == path->count &&
            (path->count == 0 || memcmp(leaf->path, path->at, sizeof(int) * (size_t)path->count) == 0))
            return leaf;
    }
    return NULL;
}

static Obj *leaf_obj(Flat *x, const Leaf *leaf) {
    Val *value = leaf->in >= 0 ? x->to->flat->body->params[leaf->in] : NULL;
    if (leaf->by_ref) return new_obj(x, leaf->type, value);
    Name name = value ? value->name : NULL;
    Obj *obj = new_obj(x, leaf->type, build_var(&x->b, leaf->type, name, value != NULL));
    if (value) build_store(&x->b, obj->address, value);
    return obj;
}

static Obj *param_parts(Flat *x, int param, const Type *type, Path *path) {
    const Leaf *leaf = find_leaf(x, param, path);
    if (leaf) return leaf_obj(x, leaf);
    Obj *obj = new_obj(x, type, NULL);
    int n = type->kind == TYPE_record ? type_record(type)->nfields : type_count(type);
    obj->kids = arena_array(x->ad->arena, Obj *, n ? n : 1);
    obj->nkids = n;
    for (int i = 0; i < n; i++) {
        vec_push(x->ad->arena, path, type->kind == TYPE_record ? i : -1 - i);
        obj->kids[i] = param_parts(x, param, part_type(type, i), path);
        path->count--;
    }
    return obj;
}

/* A parameter by address, whose object is put together again because its address is used. */
static Obj *whole_param(Flat *x, int param, const Type *type) {
    Obj *obj = new_obj(x, type, build_var(&x->b, type, x->from->params[param].name, false));
    for (int i = 0; i < x->to->leaves.count; i++) {
        const Leaf *leaf = &x->to->leaves.at[i];
        if (leaf->param != param || leaf->in < 0) continue;
        Val *at = follow(x, obj, leaf->path, leaf->npath)->address,
            *value = x->to->flat->body->params[leaf->in];
        if (!leaf->by_ref) build_store(&x->b, at, value);
        else if (leaf->dir != DIR_out) build_copy(&x->b, at, value);
    }
    return obj;
}

static void bind_params(Flat *x) {
    const Func *from = x->from;
    x->params = arena_array(x->ad->arena, Obj *, from->nparams ? from->nparams : 1);
    for (int i = 0; i < from->nparams; i++) {
        Val *old = from->body->params[i];
        const Type *type = from->params[i].type;
        Path path = {0};
        if (from->params[i].flags & PARAM_BY_ADDRESS) {
            bool whole = map_has(&x->whole, PTR_KEY(old)) && !find_leaf(x, i, &path);
            x->params[i] = whole ? whole_param(x, i, type) : param_parts(x, i, type, &path);
            Obj *obj = x->params[i];
            hold(x, old, obj->address ? &obj->address : NULL, 1, obj);
            continue;
        }
        int n = lane_count(type);
        Val **lanes = arena_array(x->ad->arena, Val *, n);
        for (int k = 0; k < n; k++) {
            path.count = 0;
            if (type->kind == TYPE_vector) vec_push(x->ad->arena, &path, -1 - k);
            lanes[k] = x->to->flat->body->params[find_leaf(x, i, &path)->in];
        }
        hold(x, old, lanes, n, type->kind == TYPE_pointer ? new_obj(x, type->args[0], lanes[0]) : NULL);
    }
}

void ad_flatten(Ad *ad, Func *from, AdFunc *to) {
    Flat x = {.ad = ad, .m = ad->m, .to = to, .from = from};
    region_walk(from->body, survey, &x);
    x.b = build_at_end(func_begin(to->flat));
    x.b.loc = from->loc;
    bind_params(&x);
    flat_region(&x, from->body, to->flat->body);
    to->flat->flags |= from->flags & FUNC_NORMAL;
}
