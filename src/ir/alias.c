/* Addresses: what an instruction does with each of its operands, and which object an address leads into.
 *
 * An address is made by naming an object (var, global, a parameter, an element of a buffer) and taking parts of it (field, elem). It
 * can also be moved (offset, bitcast, select): it is then another address in the same object, though nobody can say where. Whatever
 * else happens to an address, it escapes: it is stored, passed on as a value, carried by a loop. What an address that was
 * loaded from memory leads into is not known. */
#include "ir.h"

static Role role_in_call(const Param *param) {
    if (!(param->flags & PARAM_BY_ADDRESS)) return ROLE_escape;
    return param->dir == DIR_in ? ROLE_read : param->dir == DIR_ref ? ROLE_share : ROLE_write;
}

/* Which operands are addresses follows from what the operation does with memory: the first is written, or else read;
 * the second is read if two objects are involved. */
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

Val *ir_root(Val *address) {
    address = ir_resolve(address);
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART | OP_MOVES)) {
        const Inst *inst = address->inst;
        if (inst->op != OP_select) {
            address = ir_resolve(inst->args[0]);
            continue;
        }
        Val *one = ir_root(inst->args[1]), *other = ir_root(inst->args[2]);
        return one == other ? one : address;
    }
    return address;
}

bool ir_is_own(Val *address) {
    const Val *v = ir_root(address);
    if (v->kind == VAL_inst && v->inst->op == OP_extract) v = ir_root(v->inst->args[0]);
    if (v->kind != VAL_inst || v->inst->op != OP_buffer_elem) return false;
    const Val *buffer = ir_resolve(v->inst->args[0]);
    if (buffer->kind != VAL_param || buffer->region->owner) return false;
    return (buffer->region->func->params[buffer->index].flags & PARAM_OWN) != 0;
}
