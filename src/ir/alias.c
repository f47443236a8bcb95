/* Addresses: what an instruction does with each of its operands, and which object an address leads into.
 *
 * An address is made by naming an object (var, global, a parameter, an element of a buffer) and taking parts
 * of it (field, elem). It can also be moved (offset, bitcast, select): it is then another address in the same
 * object, though nobody can say where. Whatever else happens to an address, it escapes: it is stored, passed
 * on as a value, carried by a loop. What an address that was loaded from memory leads into is not known.
 *
 * Two addresses in one object are compared step by step: different fields and different constant indices are
 * apart. */
#include "ir.h"

#define MAX_STEPS 16

static Role role_in_call(const Param *param) {
    if (!(param->flags & PARAM_BY_ADDRESS)) return ROLE_escape;
    return param->dir == DIR_in ? ROLE_read : param->dir == DIR_ref ? ROLE_share : ROLE_write;
}

/* Which operands are addresses follows from what the operation does with memory: the first is written, or
 * else read; the second is read if two objects are involved. */
static Role role_in_access(const Inst *inst, int operand) {
    if (operand == 0) return op_has(inst->op, OP_WRITES) ? ROLE_write : ROLE_read;
    return op_has(inst->op, OP_TWO_OBJECTS) && operand == 1 ? ROLE_read : ROLE_escape;
}

Role ir_role(const Inst *inst, int operand) {
    if (!ir_target(inst->args[operand]->type) || op_has(inst->op, OP_COMPARES)) return ROLE_value;
    if (inst->op == OP_call) return role_in_call(&inst->callee->params[operand]);
    if (op_has(inst->op, OP_READS | OP_WRITES)) return role_in_access(inst, operand);
    if (op_has(inst->op, OP_PART)) return ROLE_part;
    bool moves = op_has(inst->op, OP_MOVES) && inst->results[0]->type->kind == TYPE_pointer;
    return moves ? ROLE_move : ROLE_escape;
}

bool ir_is_private_use(const Inst *inst, int operand) {
    Role role = ir_role(inst, operand);
    return role != ROLE_escape && role != ROLE_share && role != ROLE_move;
}

bool ir_is_view(const Inst *inst) {
    return inst->op == OP_bitcast && inst->results[0]->type->kind == TYPE_pointer &&
           inst->args[0]->type->kind == TYPE_pointer;
}

/* Without a choice. */
static Val *leads_from(Val *address) {
    address = ir_resolve(address);
    while (address->kind == VAL_inst && address->inst->op != OP_select &&
           op_has(address->inst->op, OP_PART | OP_MOVES))
        address = ir_resolve(address->inst->args[0]);
    return address;
}

/* Ways that part may lead to the same place, or to choices whose ways part again: what takes too long to
 * follow is a place of its own. */
static Val *root_of(Val *address, int *steps) {
    address = leads_from(address);
    while (address->kind == VAL_inst && address->inst->op == OP_select && (*steps)-- > 0) {
        Val *one = leads_from(address->inst->args[1]), *other = leads_from(address->inst->args[2]);
        if (one != other) one = root_of(one, steps), other = root_of(other, steps);
        if (one != other) return address;
        address = one;
    }
    return address;
}

bool ir_is_beside(const Val *address) {
    return address->kind == VAL_inst && address->inst->op == OP_buffer_elem &&
           inst_has(address->inst, INST_BESIDE);
}

Val *ir_index_beside(const Inst *elem, int64_t *number) {
    Val *index = inst_operand(elem, 1);
    bool is_sum = index->kind == VAL_inst && index->inst->op == OP_add;
    for (int i = 0; i < 2 && is_sum; i++) {
        const Val *v = inst_operand(index->inst, i);
        bool is_splat = v->kind == VAL_inst && v->inst->op == OP_splat;
        if (is_splat && val_is_int(inst_operand(v->inst, 0), number)) return inst_operand(index->inst, 1 - i);
    }
    return *number = 0, index;
}

Val *ir_root(Val *address) {
    int steps = 256;
    return root_of(address, &steps);
}

const Global *ir_owner(const Val *buffer) {
    if (buffer->kind != VAL_inst || buffer->inst->op != OP_load) return NULL;
    const Val *from = ir_root(buffer->inst->args[0]);
    return from->kind == VAL_inst && from->inst->op == OP_global ? from->inst->global : NULL;
}

uint16_t ir_own_flag(const Val *buffer) {
    bool is_param = buffer->kind == VAL_param && !buffer->region->owner;
    return is_param ? buffer->region->func->params[buffer->index].flags & PARAM_OWN : 0;
}

bool ir_is_own(Val *address) {
    const Val *v = ir_root(address);
    if (v->kind == VAL_inst && v->inst->op == OP_extract) v = ir_root(v->inst->args[0]);
    return v->kind == VAL_inst && v->inst->op == OP_buffer_elem && ir_own_flag(inst_operand(v->inst, 0));
}

const Val *ir_base(const Val *address) {
    address = ir_resolve((Val *)(uintptr_t)address);
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = ir_resolve(address->inst->args[0]);
    return address;
}

const Inst *ir_element(const Val *address) {
    const Val *base = ir_base(address);
    return base->kind == VAL_inst && base->inst->op == OP_buffer_elem ? base->inst : NULL;
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

bool ir_are_apart(const Val *a, const Val *b) {
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

Val *const *ir_constants_at(const Val *address) {
    const Inst *steps[MAX_STEPS];
    const Val *base = ir_base(address);
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
