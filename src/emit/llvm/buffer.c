/* Buffers and atomic operations. The range of an access is tested against the count that the buffer carries;
 * the outcome stays with the address as its guard. */
#include "emit/llvm/llvm.h"

static LLVMValueRef data_of(Emitter *e, const Inst *inst) {
    return LLVMBuildExtractValue(e->builder, emit_use(e, inst, 0), 0, "");
}

static LLVMValueRef count_in(Emitter *e, const Inst *inst) {
    return LLVMBuildExtractValue(e->builder, emit_use(e, inst, 0), 1, "");
}

static bool is_checked(const Emitter *e, const Inst *inst) {
    return !inst_has(inst, INST_UNCHECKED) && !e->options->unchecked;
}

static Value in_buffer(Emitter *e, const Inst *inst, LLVMValueRef index, int64_t unit) {
    Value value = emit_operand(e, inst, 0);
    value.apart = inst->apart;
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)unit);
    LLVMValueRef data = data_of(e, inst);
    value.value = e->device ? emit_in_global(e, data, type, index)
                            : LLVMBuildInBoundsGEP2(e->builder, type, data, &index, 1, "");
    return value;
}

static Value buffer_element(Emitter *e, const Inst *inst) {
    const Type *element = inst->results[0]->type->args[0];
    int64_t stride = type_layout(element, LAYOUT_scalar).stride;
    LLVMValueRef index = emit_index_arg(e, inst, -1);
    LLVMValueRef copy = e->device ? emit_device_copy(e, inst) : NULL;
    if (copy) {
        LLVMTypeRef unit = LLVMArrayType2(e->i8, (uint64_t)stride);
        return emit_plain_value(LLVMBuildInBoundsGEP2(e->builder, unit, copy, &index, 1, ""));
    }
    Value value = in_buffer(e, inst, index, stride);
    if (is_checked(e, inst))
        value.guard = LLVMBuildICmp(e->builder, LLVMIntULT, index, count_in(e, inst), "");
    return value;
}

/* In range: offset + size <= count, tested without overflow. */
static Value buffer_bytes(Emitter *e, const Inst *inst) {
    int64_t size = type_layout(inst->results[0]->type->args[0], LAYOUT_scalar).size;
    LLVMValueRef offset = emit_index_arg(e, inst, -1);
    Value value = in_buffer(e, inst, offset, 1);
    value.unaligned = true;
    if (!is_checked(e, inst)) return value;
    LLVMValueRef args[] = {count_in(e, inst), emit_i64(e, size > 0 ? size - 1 : 0)};
    LLVMValueRef starts = emit_intrinsic(e, "llvm.usub.sat", &e->i64, 1, args, 2);
    value.guard = LLVMBuildICmp(e->builder, LLVMIntULT, offset, starts, "");
    return value;
}

/* As uint; a buffer with more elements than that can say has as many as it can. */
static LLVMValueRef buffer_length(Emitter *e, const Inst *inst) {
    LLVMValueRef args[] = {count_in(e, inst), emit_i64(e, UINT32_MAX)};
    LLVMValueRef count = emit_intrinsic(e, "llvm.umin", &e->i64, 1, args, 2);
    return LLVMBuildIntCast2(e->builder, count, emit_type(e, inst->results[0]->type), false, "");
}

/* Where the memory of a buffer begins, and where it ends. */
typedef struct Taken {
    LLVMValueRef begin, end;
} Taken;

static Taken extent_of(Emitter *e, const Inst *inst, int operand) {
    const Type *type = inst->args[operand]->type;
    Value buffer = emit_operand(e, inst, operand);
    bool is_bytes = type->number == BUFFER_bytes || type->number == BUFFER_rw_bytes;
    int64_t stride = is_bytes ? 1 : type_layout(type->args[0], LAYOUT_scalar).stride;
    LLVMValueRef data = LLVMBuildExtractValue(e->builder, buffer.value, 0, "");
    LLVMValueRef count = LLVMBuildExtractValue(e->builder, buffer.value, 1, "");
    Taken extent = {.begin = LLVMBuildPtrToInt(e->builder, data, e->i64, "")};
    LLVMValueRef size = LLVMBuildMul(e->builder, count, emit_i64(e, stride), "");
    extent.end = LLVMBuildAdd(e->builder, extent.begin, size, "");
    return extent;
}

static LLVMValueRef buffers_apart(Emitter *e, const Inst *inst) {
    Taken a = extent_of(e, inst, 0), b = extent_of(e, inst, 1);
    return LLVMBuildOr(e->builder, LLVMBuildICmp(e->builder, LLVMIntULE, a.end, b.begin, ""),
                       LLVMBuildICmp(e->builder, LLVMIntULE, b.end, a.begin, ""), "");
}

static Value buffer_counter(Emitter *e, const Inst *inst) {
    LLVMValueRef data = data_of(e, inst), back = emit_i64(e, -RT_BUFFER_HEADER);
    Value value = emit_plain_value(LLVMBuildGEP2(e->builder, e->i8, data, &back, 1, ""));
    value.guard = LLVMBuildICmp(e->builder, LLVMIntNE, data, LLVMConstNull(e->ptr), "");
    return value;
}

static LLVMValueRef new_buffer(Emitter *e, const Inst *inst) {
    if (e->device) emit_fail(e, "this target does not make tensors; pass them in");
    const Type *type = inst->results[0]->type;
    LLVMValueRef stride = emit_i64(e, type_layout(type->args[0], LAYOUT_scalar).stride);
    LLVMValueRef count = LLVMBuildZExt(e->builder, emit_use(e, inst, 0), e->i64, "");
    LLVMTypeRef types[] = {e->ptr, e->i64};
    LLVMValueRef args[] = {e->at->context, LLVMBuildMul(e->builder, count, stride, "")};
    LLVMValueRef take = emit_external(e, "rt_made_take", e->ptr, types, 2, "nounwind");
    LLVMValueRef data = emit_call_external(e, take, args, 2);
    LLVMValueRef buffer = LLVMBuildInsertValue(e->builder, LLVMGetPoison(emit_type(e, type)), data, 0, "");
    return LLVMBuildInsertValue(e->builder, buffer, count, 1, "");
}

bool emit_buffer(Emitter *e, const Inst *inst) {
    Value value;
    switch ((Op)inst->op) {
    case OP_buffer_new: value = emit_plain_value(new_buffer(e, inst)); break;
    case OP_buffer_length: value = emit_plain_value(buffer_length(e, inst)); break;
    case OP_buffers_apart: value = emit_plain_value(buffers_apart(e, inst)); break;
    case OP_buffer_elem: value = buffer_element(e, inst); break;
    case OP_buffer_bytes: value = buffer_bytes(e, inst); break;
    case OP_buffer_pointer: value = emit_plain_value(data_of(e, inst)); break;
    case OP_buffer_counter: value = buffer_counter(e, inst); break;
    default: return false;
    }
    emit_set(e, inst->results[0], value);
    return true;
}

/* ---- atomics, sequentially consistent where several threads run */

static LLVMAtomicRMWBinOp operation(const Inst *inst, const Type *type) {
    bool real = type_is_float(type), is_signed = type_is_signed(type);
    switch ((AtomicKind)inst->index) {
    case ATOMIC_add: return real ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd;
    case ATOMIC_min:
        return real ? LLVMAtomicRMWBinOpFMin : is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case ATOMIC_max:
        return real ? LLVMAtomicRMWBinOpFMax : is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case ATOMIC_and: return LLVMAtomicRMWBinOpAnd;
    case ATOMIC_or: return LLVMAtomicRMWBinOpOr;
    case ATOMIC_xor: return LLVMAtomicRMWBinOpXor;
    case ATOMIC_exchange: return LLVMAtomicRMWBinOpXchg;
    }
    return LLVMAtomicRMWBinOpXchg;
}

static LLVMValueRef to_memory(Emitter *e, LLVMValueRef value, const Type *type) {
    return type->kind == TYPE_bool ? LLVMBuildZExt(e->builder, value, e->i8, "") : value;
}

static LLVMValueRef from_memory(Emitter *e, LLVMValueRef value, const Type *type) {
    return type->kind == TYPE_bool ? LLVMBuildTrunc(e->builder, value, e->i1, "") : value;
}

static LLVMValueRef modify(Emitter *e, const Inst *inst, LLVMValueRef pointer, const Type *type) {
    LLVMValueRef operand = to_memory(e, emit_use(e, inst, 1), type);
    LLVMValueRef old = LLVMBuildAtomicRMW(e->builder, operation(inst, type), pointer, operand,
                                          LLVMAtomicOrderingSequentiallyConsistent, false);
    return from_memory(e, old, type);
}

/* Where nobody comes between, a sum takes a load and a store, which can be kept in registers and done for
 * several elements at once. */
static LLVMValueRef add_plainly(Emitter *e, const Inst *inst, Value address, const Type *type) {
    address.guard = NULL;
    LLVMValueRef old = emit_load(e, type, address), more = emit_use(e, inst, 1);
    LLVMValueRef sum = type_is_float(type) ? emit_freely(e, LLVMBuildFAdd(e->builder, old, more, ""))
                                           : LLVMBuildAdd(e->builder, old, more, "");
    emit_store(e, type, address, sum);
    return old;
}

/* Compares bits: floats as integers of their size. */
static LLVMValueRef compare_and_swap(Emitter *e, const Inst *inst, LLVMValueRef pointer, const Type *type) {
    LLVMTypeRef bits =
        type_is_float(type) ? LLVMIntTypeInContext(e->context, (unsigned)type_bits(type)) : NULL;
    LLVMValueRef values[2];
    for (int i = 0; i < 2; i++) {
        values[i] = to_memory(e, emit_use(e, inst, i + 1), type);
        if (bits) values[i] = LLVMBuildBitCast(e->builder, values[i], bits, "");
    }
    LLVMAtomicOrdering order = LLVMAtomicOrderingSequentiallyConsistent;
    LLVMValueRef pair =
        LLVMBuildAtomicCmpXchg(e->builder, pointer, values[0], values[1], order, order, false);
    LLVMValueRef old = LLVMBuildExtractValue(e->builder, pair, 0, "");
    return bits ? LLVMBuildBitCast(e->builder, old, emit_type(e, type), "") : from_memory(e, old, type);
}

static LLVMValueRef atomically(Emitter *e, const Inst *inst, Value address, const Type *type) {
    return inst->op == OP_atomic ? modify(e, inst, address.value, type)
                                 : compare_and_swap(e, inst, address.value, type);
}

static LLVMValueRef on_cpu(Emitter *e, const Inst *inst, Value address, const Type *type) {
    bool plain =
        inst->op == OP_atomic && inst->index == ATOMIC_add && (e->options->alone || ir_is_own(inst->args[0]));
    return plain ? add_plainly(e, inst, address, type) : atomically(e, inst, address, type);
}

/* By a load and a store. */
static LLVMValueRef plainly(Emitter *e, const Inst *inst, Value address, const Type *type) {
    LLVMBuilderRef b = e->builder;
    address.guard = NULL;
    LLVMValueRef old = emit_load(e, type, address), value = emit_use(e, inst, 1), now = value;
    LLVMTypeRef overload = LLVMTypeOf(old);
    LLVMValueRef args[] = {old, value};
    if (inst->op == OP_atomic_cas) {
        LLVMTypeRef bits = LLVMIntTypeInContext(e->context, (unsigned)type_bits(type));
        LLVMValueRef same = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildBitCast(b, old, bits, ""),
                                          LLVMBuildBitCast(b, value, bits, ""), "");
        now = LLVMBuildSelect(b, same, emit_use(e, inst, 2), old, "");
    } else if (inst->index == ATOMIC_min || inst->index == ATOMIC_max) {
        const char *names[2][3] = {{"llvm.minnum", "llvm.smin", "llvm.umin"},
                                   {"llvm.maxnum", "llvm.smax", "llvm.umax"}};
        int kind = type_is_float(type) ? 0 : type_is_signed(type) ? 1 : 2;
        now = emit_intrinsic(e, names[inst->index == ATOMIC_max][kind], &overload, 1, args, 2);
    } else if (inst->index == ATOMIC_add) {
        now = type_is_float(type) ? LLVMBuildFAdd(b, old, value, "") : LLVMBuildAdd(b, old, value, "");
    } else if (inst->index == ATOMIC_and) {
        now = LLVMBuildAnd(b, old, value, "");
    } else if (inst->index == ATOMIC_or) {
        now = LLVMBuildOr(b, old, value, "");
    } else if (inst->index == ATOMIC_xor) {
        now = LLVMBuildXor(b, old, value, "");
    }
    emit_store(e, type, address, now);
    return old;
}

/* Sums that nobody asks the result of are made by warps. */
static LLVMValueRef in_common(Emitter *e, const Inst *inst, Value address, const Type *type) {
    bool is_sum =
        inst->op == OP_atomic && inst->index == ATOMIC_add && e->at->sums.uses[inst->results[0]->id] == 0;
    if (is_sum && emit_device_sum(e, type, address.value, emit_use(e, inst, 1)))
        return LLVMConstNull(emit_type(e, type));
    return atomically(e, inst, address, type);
}

static LLVMValueRef on_device(Emitter *e, const Inst *inst, Value address, const Type *type) {
    LLVMValueRef own = emit_device_is_own(e, address);
    if (!own) return in_common(e, inst, address, type);
    if (LLVMIsConstant(own)) return plainly(e, inst, address, type);
    LLVMBasicBlockRef here = emit_block(e, "own"), there = emit_block(e, "common"),
                      after = emit_block(e, "after");
    LLVMBuildCondBr(e->builder, own, here, there);
    LLVMPositionBuilderAtEnd(e->builder, here);
    LLVMValueRef values[2] = {plainly(e, inst, address, type)};
    LLVMBasicBlockRef ends[2] = {LLVMGetInsertBlock(e->builder)};
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, there);
    values[1] = in_common(e, inst, address, type);
    ends[1] = LLVMGetInsertBlock(e->builder);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
    LLVMValueRef phi = LLVMBuildPhi(e->builder, LLVMTypeOf(values[0]), "");
    LLVMAddIncoming(phi, values, ends, 2);
    return phi;
}

/* Is it a sum that waits? It is made with the last of those that stand together. */
static bool waits(Emitter *e, const Inst *inst) {
    SumRows rows;
    if (!e->device || !emit_sums_together(&e->arena, &e->at->sums, inst, &rows)) return false;
    for (int i = 0; i < rows.count; i++) emit_device_row(e, &rows.at[i]);
    return true;
}

LLVMValueRef emit_atomic(Emitter *e, const Inst *inst) {
    if (inst->op != OP_atomic && inst->op != OP_atomic_cas) return NULL;
    if (waits(e, inst)) return LLVMConstNull(emit_type(e, inst->results[0]->type));
    Value address = emit_operand(e, inst, 0);
    const Type *type = inst->results[0]->type;
    Branch branch = {0};
    if (e->device) emit_device_atomic(e, type);
    if (address.guard) branch = emit_branch_begin(e, address.guard);
    LLVMValueRef old = e->device ? on_device(e, inst, address, type) : on_cpu(e, inst, address, type);
    if (!address.guard) return old;
    LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder);
    emit_branch_end(e, &branch);
    LLVMValueRef phi = LLVMBuildPhi(e->builder, LLVMTypeOf(old), ""), zero = LLVMConstNull(LLVMTypeOf(old));
    LLVMAddIncoming(phi, &old, &end, 1);
    LLVMAddIncoming(phi, &zero, &branch.from, 1);
    return phi;
}
