/* Which memory an address can mean.
 *
 * Fields and elements lead back to the object they are in: a local variable, a parameter, a global; or to something
 * unknown, such as a buffer or a pointer that was loaded. An object is private if nothing but addresses derived from
 * it in this function reaches it: variables, and out and inout parameters (nobody else may touch these during the
 * call), as long as their address is not given away. Giving it to a call is fine, since the callee cannot keep it;
 * only `ref` can. Two addresses in one object are compared step by step: different fields and different constant
 * indices are apart. */
#include "opt.h"

#define MAX_STEPS 16

static const Val *base_of(const Val *address) {
    address = ir_resolve((Val *)(uintptr_t)address);
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = ir_resolve(address->inst->args[0]);
    return address;
}

static void note_inst(void *user, Inst *inst) {
    Memory *memory = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *arg = ir_resolve(inst->args[i]);
        if (ir_is_private_use(inst, i)) continue;
        const Val *base = base_of(arg);
        if (base->kind != VAL_const) memory->given_away[base->id] = true;
    }
}

void opt_memory_init(Memory *memory, Arena *arena, Func *func) {
    *memory = (Memory){.func = func, .nids = func->nvals};
    memory->given_away = arena_array(arena, bool, func->nvals);
    region_walk(func->body, note_inst, memory);
}

static Object param_object(const Memory *memory, const Val *v) {
    const Func *func = memory->func;
    if (v->region != func->body) return (Object){0};
    const Param *param = &func->params[v->index];
    bool known = (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_ref;
    if (!known) return (Object){0};
    return (Object){.key = v, .is_private = !memory->given_away[v->id], .is_constant = param->dir == DIR_in};
}

static Object global_object(const Global *global) {
    bool constant = global->kind == GLOBAL_const || global->kind == GLOBAL_uniform;
    return (Object){.key = global, .is_constant = constant};
}

Object opt_memory_object(const Memory *memory, const Val *address) {
    const Val *base = base_of(address);
    if (base->kind == VAL_const || base->id >= memory->nids) return (Object){0};
    if (base->kind == VAL_param) return param_object(memory, base);
    if (base->inst->op == OP_global) return global_object(base->inst->global);
    if (base->inst->op != OP_var) return (Object){0};
    return (Object){.key = base, .is_private = !memory->given_away[base->id]};
}

const Val *opt_memory_buffer(const Val *address) {
    const Val *root = ir_root((Val *)(uintptr_t)address);
    bool is_element = root->kind == VAL_inst && root->inst->op == OP_buffer_elem;
    return is_element ? ir_resolve(root->inst->args[0]) : NULL;
}

/* ---- addresses in one object */

/* The steps from the object to the address, outermost first; -1: too many. */
static int steps_to(const Val *address, const Inst *steps[MAX_STEPS]) {
    int count = 0;
    address = ir_resolve((Val *)(uintptr_t)address);
    for (; address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem);
         address = ir_resolve(address->inst->args[0])) {
        if (count == MAX_STEPS) return -1;
        steps[count++] = address->inst;
    }
    for (int i = 0; i < count / 2; i++) {
        const Inst *other = steps[i];
        steps[i] = steps[count - 1 - i];
        steps[count - 1 - i] = other;
    }
    return count;
}

static int64_t element_count(const Inst *elem) {
    const Type *outer = elem->args[0]->type->args[0];
    return outer->kind == TYPE_vector ? type_count(outer) : type_length(outer);
}

static bool known_index(const Inst *elem, int64_t *index) {
    int64_t count = element_count(elem);
    if (!val_is_int(ir_resolve(elem->args[1]), index)) return false;
    return count < 0 || (*index >= 0 && *index < count); /* out of range means the last one */
}

typedef enum Relation { APART, SAME, MAYBE } Relation;

static Relation compare_steps(const Inst *a, const Inst *b) {
    int64_t i, j;
    if (a->op != b->op) return MAYBE;
    if (a->op == OP_field) return a->index == b->index ? SAME : APART;
    if (ir_resolve(a->args[1]) == ir_resolve(b->args[1])) return SAME;
    if (!known_index(a, &i) || !known_index(b, &j)) return MAYBE;
    return i == j ? SAME : APART;
}

bool opt_memory_are_apart(const Val *a, const Val *b) {
    const Inst *to_a[MAX_STEPS], *to_b[MAX_STEPS];
    int na = steps_to(a, to_a), nb = steps_to(b, to_b);
    for (int i = 0; i < na && i < nb; i++) {
        Relation relation = compare_steps(to_a[i], to_b[i]);
        if (relation != SAME) return relation == APART;
    }
    return false;
}

/* ---- constants */

static int64_t count_scalars(const Type *type) {
    int64_t total = 0;
    if (type->kind == TYPE_vector) return type_count(type);
    if (type->kind == TYPE_array) return type_length(type) * count_scalars(type_element(type));
    if (type->kind != TYPE_record) return 1;
    for (int i = 0; i < type_record(type)->nfields; i++)
        total += count_scalars(type_record(type)->fields[i].type);
    return total;
}

/* Scalars before the part that a step leads to; -1: not known. */
static int64_t scalars_before(const Inst *step) {
    const Type *outer = step->args[0]->type->args[0];
    int64_t index, before = 0;
    if (step->op == OP_elem)
        return known_index(step, &index) ? index * count_scalars(type_element(outer)) : -1;
    for (int i = 0; i < step->index; i++) before += count_scalars(type_record(outer)->fields[i].type);
    return before;
}

Val *const *opt_memory_constants(const Val *address) {
    const Inst *steps[MAX_STEPS];
    const Val *base = base_of(address);
    int count = steps_to(address, steps);
    int64_t at = 0;
    if (count < 0 || base->kind != VAL_inst || base->inst->op != OP_global) return NULL;
    const Global *global = base->inst->global;
    if (global->kind != GLOBAL_const || !global->data || global->init) return NULL;
    for (int i = 0; i < count; i++) {
        int64_t before = scalars_before(steps[i]);
        if (before < 0) return NULL;
        at += before;
    }
    const Type *type = ((const Val *)ir_resolve((Val *)(uintptr_t)address))->type->args[0];
    return at + count_scalars(type) <= global->ndata ? global->data + at : NULL;
}
