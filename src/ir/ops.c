/* The table of operations, from ops.def. */
#include "ir.h"

#define V           (-1)
#define NONE_       OP_NONE_
#define PURE        OP_PURE
#define ELEMENTWISE OP_ELEMENTWISE
#define COMMUTES    OP_COMMUTES
#define COMPARES    OP_COMPARES
#define READS       OP_READS
#define WRITES      OP_WRITES
#define EFFECT      OP_EFFECT
#define TAPE        OP_TAPE
#define CALLS       OP_CALLS
#define REGIONS     OP_REGIONS
#define ENDS        OP_ENDS
#define LEAVES      OP_LEAVES
#define STEEP       OP_STEEP
#define DOMAIN      OP_DOMAIN
#define PRODUCT     OP_PRODUCT
#define FLOATS      OP_FLOATS
#define INTEGERS    OP_INTEGERS
#define BITS        OP_BITS
#define PART        OP_PART
#define MOVES       OP_MOVES
#define TWO_OBJECTS OP_TWO_OBJECTS
#define PLAIN       OP_PLAIN
#define OBJECTS     OP_OBJECTS
#define ATTRIBUTES  OP_ATTRIBUTES
#define INTRINSIC   OP_INTRINSIC

const OpInfo op_info[OP_COUNT] = {
#define P1(u)       true
#define P2(u, v)    true
#define P3(u, v, w) true
#define QUOTIENT    true
#define MULTIPLIED  true
#define SCALED      true
#define NO_PARTIALS false
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning)                 \
    {#name, args, results, properties, cost, partials},
#include "ir/ops.def"
#undef OP
};

static const Type *shaped_like(Types *types, TypeKind kind, const Type *like) {
    const Type *scalar = type_basic(types, kind);
    return like->kind == TYPE_vector ? type_vector(types, scalar, type_count(like)) : scalar;
}

const Type *ir_target(const Type *address) {
    if (address->kind == TYPE_vector) address = address->args[0];
    return address->kind == TYPE_pointer ? address->args[0] : NULL;
}

const Type *ir_on_stack(const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_tape_push: return inst->args[1]->type;
    case OP_tape_store: return inst->args[2]->type;
    case OP_tape_pop:
    case OP_tape_load: return inst->results[0]->type;
    default: return inst->type;
    }
}

const RecordDiff *ir_record_diff(Module *module, const Type *type) {
    Record *record = type_record(type);
    if (!record->has_diff && module->hooks.complete_record)
        module->hooks.complete_record(module->hooks.user, record);
    return &record->diff;
}

bool ir_holds_reference(Module *module, const Type *type) {
    if (type->kind == TYPE_array) return ir_holds_reference(module, type->args[0]);
    if (type->kind != TYPE_record) return false;
    if (ir_record_diff(module, type)->reference) return true;
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++)
        if (ir_holds_reference(module, record->fields[i].type)) return true;
    return false;
}

static Space global_space(const Global *global) {
    static const Space spaces[] = {[GLOBAL_const] = SPACE_const,
                                   [GLOBAL_static] = SPACE_static,
                                   [GLOBAL_shared] = SPACE_shared,
                                   [GLOBAL_uniform] = SPACE_uniform};
    return spaces[global->kind];
}

Space ir_space(const Type *address) {
    return type_space(address->kind == TYPE_vector ? address->args[0] : address);
}

static Space space_of_either(const Inst *inst) {
    Space one = ir_space(inst->args[1]->type), other = ir_space(inst->args[2]->type);
    return one == other ? one : SPACE_any;
}

/* Of an instruction that makes an address: where it leads to, if that follows from its operands; else
 * SPACE_COUNT. */
static Space result_space(const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_var: return SPACE_local;
    case OP_global: return global_space(inst->global);
    case OP_buffer_elem:
    case OP_buffer_bytes:
    case OP_buffer_pointer:
    case OP_buffer_counter: return SPACE_buffer;
    case OP_tape_elem: return SPACE_tape;
    case OP_field:
    case OP_elem:
    case OP_offset: return ir_space(inst->args[0]->type);
    case OP_bitcast: return ir_target(inst->args[0]->type) ? ir_space(inst->args[0]->type) : SPACE_any;
    case OP_select: return space_of_either(inst);
    default: return SPACE_COUNT;
    }
}

static const Type *type_in_space(Types *types, const Type *address, Space space) {
    const Type *pointer = type_address(types, ir_target(address), space);
    return address->kind == TYPE_vector ? type_vector(types, pointer, type_count(address)) : pointer;
}

bool ir_has_right_space(const Inst *inst) {
    if (inst->nresults != 1 || !ir_target(inst->results[0]->type)) return true;
    Space space = result_space(inst);
    return space == SPACE_COUNT || ir_space(inst->results[0]->type) == space;
}

void ir_follow_space(Inst *inst) {
    if (!ir_has_right_space(inst))
        inst->results[0]->type =
            type_in_space(inst->func->module->types, inst->results[0]->type, result_space(inst));
}

/* One address, or one for each lane if an operand is a vector. */
static const Type *address_of(Types *types, const Inst *inst, const Type *target) {
    const Type *pointer = type_address(types, target, result_space(inst));
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_vector)
            return type_vector(types, pointer, type_count(inst->args[i]->type));
    return pointer;
}

static const Type *address_in(Types *types, const Inst *inst, const Type *outer) {
    if (inst->op == OP_elem) return address_of(types, inst, type_element(outer));
    const Record *record = outer->kind == TYPE_record ? type_record(outer) : NULL;
    bool exists = record && inst->index >= 0 && inst->index < record->nfields;
    return exists ? address_of(types, inst, record->fields[inst->index].type) : NULL;
}

static const Type *gathered(Types *types, const Inst *inst, const Type *target) {
    bool known = inst->nargs > 1 && inst->args[1] && target;
    return known ? type_vector(types, type_element(target), type_count(inst->args[1]->type)) : NULL;
}

/* Of two addresses that lead to different memory, one that leads to any. */
static const Type *chosen(Types *types, const Inst *inst) {
    if (inst->nargs < 3 || !inst->args[1]) return NULL;
    const Type *type = inst->args[1]->type;
    return ir_target(type) && inst->args[2] ? type_in_space(types, type, space_of_either(inst)) : type;
}

const Type *ir_result_type(Module *module, const Inst *inst) {
    Types *types = module->types;
    const Type *first = inst->nargs && inst->args[0] ? inst->args[0]->type : NULL;
    const Type *target = first ? ir_target(first) : NULL;
    if (op_has(inst->op, OP_ELEMENTWISE) && !first) return NULL;
    if (op_has(inst->op, OP_COMPARES)) return shaped_like(types, TYPE_bool, first);
    switch ((Op)inst->op) {
    case OP_countbits:
    case OP_firstbithigh:
    case OP_firstbitlow: return shaped_like(types, TYPE_uint, first);
    case OP_any:
    case OP_all:
    case OP_buffers_apart: return type_basic(types, TYPE_bool);
    case OP_select: return chosen(types, inst);
    case OP_vec: return first ? type_vector(types, first, inst->nargs) : NULL;
    case OP_extract: return first ? type_element(first) : NULL;
    case OP_insert: return first;
    case OP_offset: return target ? address_of(types, inst, target) : NULL;
    case OP_gather: return gathered(types, inst, target);
    case OP_var: return inst->type ? address_of(types, inst, inst->type) : NULL;
    case OP_global: return inst->global ? address_of(types, inst, inst->global->type) : NULL;
    case OP_field:
    case OP_elem: return target ? address_in(types, inst, target) : NULL;
    case OP_load: return target;
    case OP_buffer_elem:
    case OP_buffer_pointer:
        return first && first->kind == TYPE_buffer ? address_of(types, inst, first->args[0]) : NULL;
    case OP_buffer_length: return type_basic(types, TYPE_uint);
    case OP_buffer_counter: return address_of(types, inst, type_basic(types, TYPE_uint));
    case OP_atomic:
    case OP_atomic_cas: return inst->nargs > 1 ? inst->args[1]->type : NULL;
    case OP_wave: return type_pointer(types, type_basic(types, TYPE_uint64));
    case OP_thread_id:
        return inst->index == 3 || inst->index == 6 ? type_basic(types, TYPE_uint)
                                                    : type_vector(types, type_basic(types, TYPE_uint), 3);
    case OP_tape_open: return type_basic(types, TYPE_tape);
    case OP_tape_grow: return type_basic(types, TYPE_int64);
    case OP_convert: return NULL;
    default: return op_has(inst->op, OP_ELEMENTWISE) ? first : NULL;
    }
}

uint8_t ir_flags_of(unsigned op) {
    uint8_t flags = 0;
#define INST_FLAG(flag, word, is_of)                                                                         \
    if (is_of) flags |= flag;
#include "ir/words.def"
    return flags;
}
