/* What is unlikely becomes a function: the copy of a nest of loops that has range checks (range.c). LLVM
 * spends half of its time on such copies otherwise, and more where what it does grows faster than a function;
 * a function that is called in such places alone gets few of its passes (emit/llvm/target.c).
 *
 *     if likely (all in range) { loops } else { loops with checks }     ->     else { f.unlikely(n, buffer, copy of a) }
 *
 * The other copy must lose nothing by the call. A small local array is in registers where loops over it are
 * written out, which ends where its address goes to a function: what is called gets the address of a copy,
 * and the array is set to that behind the call. The same for small tapes of known size (emit/tape.c), which
 * cannot be copied: code that keeps something on one that may be such stays where it is. */
#include "opt/opt.h"

enum {
    LEAST_INSTS = 24,     /* fewer are compiled sooner than called */
    LARGEST_COPIED = 512, /* bytes: larger objects are in memory in any case */
};

/* An object outside, as a whole. */
typedef struct OuterObject {
    Val *address;
    const Type *type;
    bool is_read_only;
} OuterObject;

typedef struct Unlikely {
    Func *func;
    Arena *scratch;
    Map escaped; /* Val: objects that may be reached by addresses that are kept somewhere */
    Map growing; /* Val: tapes that are no local variables */
    bool changed;
} Unlikely;

typedef struct Outlined {
    Unlikely *unlikely;
    Inst *choice;
    CloneMap map;
    ValVec values; /* from outside, that it is given */
    InstVec again; /* what it computes again: addresses in objects */
    VEC(OuterObject) objects;
    bool stays;
} Outlined;

/* ---- what is known of the function */

/* Nobody knows how many elements, or there are too many for a local variable. */
static bool is_amount_large(const Inst *inst) {
    int64_t count;
    switch ((Op)inst->op) {
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_reach:
        return !val_is_int(inst_operand(inst, 1), &count) ||
               count > LOCAL_TAPE / type_layout(inst->type, LAYOUT_scalar).size;
    default: return false;
    }
}

static void look_at(void *user, Inst *inst) {
    Unlikely *u = user;
    if (is_amount_large(inst)) map_put(u->scratch, &u->growing, PTR_KEY(inst_operand(inst, 0)), u);
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = ir_resolve(inst->args[i]);
        Role role = ir_target(v->type) ? ir_role(inst, i) : ROLE_value;
        if (role == ROLE_escape || role == ROLE_move)
            map_put(u->scratch, &u->escaped, PTR_KEY(ir_root(v)), u);
    }
}

/* ---- what is needed from outside */

static void capture(void *user, Inst *inst);

/* The object that the address is that of; false: it is none, or only a part. */
static bool find_object(Val *v, OuterObject *object) {
    *object = (OuterObject){.address = v, .type = ir_target(v->type)};
    if (v->kind == VAL_inst) return v->inst->op == OP_var;
    if (v->region->owner) return false;
    const Param *param = &v->region->func->params[v->index];
    object->is_read_only = param->dir == DIR_in;
    return (param->flags & PARAM_BY_ADDRESS) && !(param->flags & PARAM_BLOCK) && param->dir != DIR_ref;
}

static bool is_found_again(const Val *v) {
    bool is_address = v->kind == VAL_inst && ir_target(v->type);
    return is_address &&
           (op_has(v->inst->op, OP_PART) || v->inst->op == OP_global || v->inst->op == OP_buffer_elem);
}

static void capture_address(Outlined *o, Val *v) {
    OuterObject object;
    if (is_found_again(v)) {
        capture(o, v->inst);
        vec_push(o->unlikely->scratch, &o->again, v->inst);
    } else if (find_object(v, &object) && !map_has(&o->unlikely->escaped, PTR_KEY(v))) {
        vec_push(o->unlikely->scratch, &o->objects, object);
    } else {
        o->stays = true;
    }
}

static void capture_val(Outlined *o, Val *v) {
    if (val_is_const(v) || inst_contains(o->choice, v) || map_has(&o->map.vals, PTR_KEY(v))) return;
    clone_map_val(&o->map, v, v); /* seen */
    if (ir_target(v->type)) {
        capture_address(o, v);
        return;
    }
    o->stays |= v->type->kind == TYPE_tape && !map_has(&o->unlikely->growing, PTR_KEY(v));
    vec_push(o->unlikely->scratch, &o->values, v);
}

static void capture(void *user, Inst *inst) {
    Outlined *o = user;
    bool leaves = op_has(inst->op, OP_LEAVES) &&
                  (inst->op == OP_return || !map_has(&o->map.insts, PTR_KEY(inst->target)));
    o->stays |= inst_meets(inst) || leaves;
    if (inst->nregions) map_put(o->unlikely->scratch, &o->map.insts, PTR_KEY(inst), inst);
    for (int i = 0; i < inst->nargs; i++) capture_val(o, ir_resolve(inst->args[i]));
}

/* ---- the function */

static Param param_of(const Val *v) {
    return (Param){.name = v->name, .type = v->type, .flags = ir_own_flag(v)};
}

static Func *declare(Outlined *o) {
    Arena *scratch = o->unlikely->scratch;
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    for (int i = 0; i < o->values.count; i++) vec_push(scratch, &params, param_of(o->values.at[i]));
    for (int i = 0; i < o->objects.count; i++) {
        const OuterObject *object = &o->objects.at[i];
        vec_push(scratch, &params,
                 ((Param){.name = object->address->name,
                          .type = object->type,
                          .dir = object->is_read_only ? DIR_in : DIR_inout,
                          .flags = PARAM_BY_ADDRESS}));
    }
    for (int i = 0; i < o->choice->nresults; i++) vec_push(scratch, &results, o->choice->results[i]->type);
    Func *func = func_new_part(o->unlikely->func, "unlikely", o->choice->loc);
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    func->flags |= FUNC_NOINLINE | FUNC_UNLIKELY;
    return func;
}

static Func *make_func(Outlined *o) {
    Func *func = declare(o);
    Region *body = func_begin(func);
    o->map = (CloneMap){.module = func->module, .func = func};
    for (int i = 0; i < o->values.count; i++) clone_map_val(&o->map, o->values.at[i], body->params[i]);
    for (int i = 0; i < o->objects.count; i++)
        clone_map_val(&o->map, o->objects.at[i].address, body->params[o->values.count + i]);
    for (int i = 0; i < o->again.count; i++) inst_append(body, clone_inst(&o->map, o->again.at[i]));
    clone_region_into(&o->map, o->choice->regions[1], body);
    Inst *end = body->last;
    Builder b = build_before(end);
    build_return(&b, end->args, end->nargs);
    inst_remove(end);
    return func;
}

/* ---- the call */

static Val *given_object(Builder *b, const OuterObject *object) {
    if (type_layout(object->type, LAYOUT_scalar).size > LARGEST_COPIED) return object->address;
    Val *copy = build_var(b, object->type, object->address->name, true);
    build_copy(b, copy, object->address);
    return copy;
}

static void call(Outlined *o, Func *func) {
    Region *region = o->choice->regions[1];
    ValVec args = {0};
    while (region->first) inst_remove(region->last);
    Builder b = build_at_end(region);
    b.loc = o->choice->loc;
    for (int i = 0; i < o->values.count; i++) vec_push(o->unlikely->scratch, &args, o->values.at[i]);
    for (int i = 0; i < o->objects.count; i++)
        vec_push(o->unlikely->scratch, &args, given_object(&b, &o->objects.at[i]));
    const Inst *call = build_call(&b, func, args.at, args.count);
    for (int i = 0; i < o->objects.count; i++) {
        const OuterObject *object = &o->objects.at[i];
        Val *given = args.at[o->values.count + i];
        if (given != object->address && !object->is_read_only) build_copy(&b, object->address, given);
    }
    build_yield(&b, call->results, call->nresults);
}

/* ---- the entry */

static void visit_choice(Unlikely *u, Inst *choice) {
    Region *region = choice->regions[1];
    Outlined o = {.unlikely = u, .choice = choice, .map = {.module = u->func->module, .func = u->func}};
    if (region_size(region) < LEAST_INSTS || region->last->op != OP_yield) return;
    region_walk(region, capture, &o);
    if (o.stays) return;
    call(&o, make_func(&o));
    u->changed = true;
}

static void visit_region(Unlikely *u, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_if && inst_has(inst, INST_LIKELY)) visit_choice(u, inst);
        for (int i = 0; i < inst->nregions; i++) visit_region(u, inst->regions[i]);
    }
}

bool opt_outline_unlikely(Func *func) {
    Unlikely u = {.func = func, .scratch = arena_scratch(func->module->arena)};
    region_walk(func->body, look_at, &u);
    visit_region(&u, func->body);
    arena_free(u.scratch);
    return u.changed;
}
