/* Addresses, loads and stores. An address in range is a plain pointer. One that may be out of range carries
 * its guard along until it is used: a load becomes "if in range, load, else zero" and a store is skipped.
 * Branches, not selected pointers: they are predicted in scalar code and become masked accesses in vectorised
 * loops. */
#include "emit/llvm/llvm.h"

Value emit_plain_value(LLVMValueRef value) { return (Value){.value = value}; }

static const Type *target_of(const Val *address) { return address->type->args[0]; }

/* ---- loads and stores */

static unsigned access_align(const Type *type, Value address) {
    return address.unaligned ? 1 : (unsigned)type_layout(type, LAYOUT_scalar).align;
}

static LLVMValueRef load_at(Emitter *e, LLVMTypeRef type, LLVMValueRef pointer, unsigned align,
                            Value address) {
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, pointer, "");
    LLVMSetAlignment(load, align);
    emit_tag_at(e, load, &address);
    if (address.space == SPACE_uniform) LLVMSetMetadata(load, e->invariant_kind, e->invariant);
    return load;
}

static void store_at(Emitter *e, LLVMValueRef value, LLVMValueRef pointer, unsigned align, Value address) {
    LLVMValueRef store = LLVMBuildStore(e->builder, value, pointer);
    LLVMSetAlignment(store, align);
    emit_tag_at(e, store, &address);
}

/* A bool is a bit; in memory, it is a byte or a word that is not zero. */
LLVMValueRef emit_from_memory(Emitter *e, const Type *type, LLVMValueRef stored) {
    if (type_element(type)->kind != TYPE_bool) return stored;
    return LLVMBuildICmp(e->builder, LLVMIntNE, stored, LLVMConstNull(LLVMTypeOf(stored)), "");
}

LLVMValueRef emit_to_memory(Emitter *e, const Type *type, LLVMValueRef value, LLVMTypeRef memory) {
    return type_element(type)->kind == TYPE_bool ? LLVMBuildZExt(e->builder, value, memory, "") : value;
}

static LLVMValueRef load_in_range(Emitter *e, const Type *type, Value address) {
    unsigned align = access_align(type, address);
    if (type->kind == TYPE_buffer) {
        LLVMValueRef data = load_at(e, e->ptr, address.value, align, address);
        LLVMValueRef count = load_at(e, e->i64, emit_at(e, address.value, 8), align, address);
        LLVMValueRef whole = LLVMBuildInsertValue(e->builder, LLVMGetPoison(e->buffer), data, 0, "");
        return LLVMBuildInsertValue(e->builder, whole, count, 1, "");
    }
    LLVMTypeRef memory = emit_memory_type(e, type);
    return emit_from_memory(e, type, load_at(e, memory, address.value, align, address));
}

static void store_in_range(Emitter *e, const Type *type, Value address, LLVMValueRef value) {
    unsigned align = access_align(type, address);
    if (type->kind == TYPE_buffer) {
        store_at(e, LLVMBuildExtractValue(e->builder, value, 0, ""), address.value, align, address);
        store_at(e, LLVMBuildExtractValue(e->builder, value, 1, ""), emit_at(e, address.value, 8), align,
                 address);
        return;
    }
    value = emit_to_memory(e, type, value, emit_memory_type(e, type));
    store_at(e, value, address.value, align, address);
}

LLVMValueRef emit_load(Emitter *e, const Type *type, Value address) {
    if (!address.guard) return load_in_range(e, type, address);
    Branch branch = emit_branch_begin(e, address.guard);
    LLVMValueRef value = load_in_range(e, type, address), zero = LLVMConstNull(LLVMTypeOf(value));
    LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder);
    emit_branch_end(e, &branch);
    LLVMValueRef phi = LLVMBuildPhi(e->builder, LLVMTypeOf(value), "");
    LLVMAddIncoming(phi, &value, &end, 1);
    LLVMAddIncoming(phi, &zero, &branch.from, 1);
    return phi;
}

void emit_store(Emitter *e, const Type *type, Value address, LLVMValueRef value) {
    if (!address.guard) {
        store_in_range(e, type, address, value);
        return;
    }
    Branch branch = emit_branch_begin(e, address.guard);
    store_in_range(e, type, address, value);
    emit_branch_end(e, &branch);
}

void emit_zero(Emitter *e, LLVMValueRef address, int64_t size, int64_t align) {
    if (size > 0)
        LLVMBuildMemSet(e->builder, address, LLVMConstInt(e->i8, 0, false), emit_i64(e, size),
                        (unsigned)align);
}

static void zero_object(Emitter *e, const Type *type, Value address) {
    Layout layout = type_layout(type, LAYOUT_scalar);
    Branch branch = {0};
    if (address.guard) branch = emit_branch_begin(e, address.guard);
    emit_zero(e, address.value, layout.size, address.unaligned ? 1 : layout.align);
    if (address.guard) emit_branch_end(e, &branch);
}

/* ---- addresses for others */

static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

static LLVMValueRef readable_zero(Emitter *e, int64_t size) {
    e->zero_size = at_least(e->zero_size, size);
    if (!e->zero_object) e->zero_object = LLVMAddGlobal(e->llvm, e->i8, "zero.forward");
    return e->zero_object;
}

static LLVMValueRef fresh_sink(Emitter *e, int64_t size) {
    e->sink_size = at_least(e->sink_size, size);
    LLVMValueRef sink = emit_context_load(e, e->at->context, e->ptr, offsetof(RtContext, sink));
    emit_zero(e, sink, size, 1);
    return sink;
}

LLVMValueRef emit_plain_address(Emitter *e, Value address, const Type *target, bool read_only) {
    if (!address.guard) return address.value;
    int64_t size = type_layout(target, LAYOUT_scalar).stride;
    if (read_only)
        return LLVMBuildSelect(e->builder, address.guard, address.value, readable_zero(e, size), "");
    Branch branch = emit_unless_begin(e, address.guard);
    LLVMValueRef sink = fresh_sink(e, size);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder);
    emit_branch_end(e, &branch);
    LLVMValueRef phi = LLVMBuildPhi(e->builder, e->ptr, "");
    LLVMAddIncoming(phi, &sink, &end, 1);
    LLVMAddIncoming(phi, &address.value, &branch.from, 1);
    return phi;
}

/* ---- making addresses */

static int64_t size_in_block(int64_t size) { return (size + 63) / 64 * 64; }

static void add_large(void *user, Inst *inst) {
    if (inst->op == OP_var && reach_is_large(inst->type))
        *(int64_t *)user += size_in_block(type_layout(inst->type, LAYOUT_scalar).size);
}

void emit_take_large(Emitter *e, const Func *func) {
    int64_t size = 0;
    if (!e->device) region_walk(func->body, add_large, &size);
    if (size == 0) return;
    LLVMTypeRef types[] = {e->ptr, e->i64};
    LLVMValueRef function = emit_external(e, "rt_local_take", e->ptr, types, 2, "nounwind");
    emit_attribute(e, function, (unsigned)LLVMAttributeReturnIndex, "noalias", 0);
    LLVMValueRef args[] = {e->at->context, emit_i64(e, size)};
    e->at->large = emit_call_external(e, function, args, 2);
}

void emit_give_large(Emitter *e) {
    if (!e->at->large) return;
    LLVMValueRef give = emit_external(e, "rt_memory_give", e->void_type, &e->ptr, 1, "nounwind");
    emit_call_external(e, give, &e->at->large, 1);
}

static LLVMValueRef part_of_block(Emitter *e, int64_t size) {
    int64_t offset = e->at->large_used;
    e->at->large_used += size_in_block(size);
    return emit_at(e, e->at->large, offset);
}

/* What vectors read and write of an array lies in one line of the cache, not in two. */
static int64_t align_for_vectors(Layout layout, int64_t row) {
    while (row > layout.size && row > layout.align) row /= 2;
    return row > layout.align ? row : layout.align;
}

static Value variable(Emitter *e, const Inst *inst) {
    enum { BLOCK_ALIGN = 16 };
    Layout layout = type_layout(inst->type, LAYOUT_scalar);
    bool is_large = reach_is_large(inst->type) && !e->device;
    int64_t align = align_for_vectors(layout, is_large ? BLOCK_ALIGN : e->habits.row);
    if (e->device) emit_device_variable(e, inst->type);
    LLVMValueRef memory = is_large ? part_of_block(e, layout.size) : emit_alloca(e, layout.size, align);
    if (!inst_has(inst, INST_RAW)) emit_zero(e, memory, layout.size, align);
    return emit_plain_value(memory);
}

static Value global_address(Emitter *e, const Inst *inst) {
    Global *global = inst->global;
    const GlobalInfo *info = emit_global_info(e, global);
    Value value = {0};
    LLVMValueRef context = e->at->context;
    switch ((GlobalKind)global->kind) {
    case GLOBAL_const:
    case GLOBAL_uniform: value.value = info->memory; break;
    case GLOBAL_static:
        value.value = emit_at(e, emit_context_load(e, context, e->ptr, offsetof(RtContext, statics)),
                              info->reached->offset);
        break;
    case GLOBAL_shared:
        value.value = e->device
                          ? emit_device_shared(e, info->reached->offset)
                          : emit_at(e, emit_context_load(e, context, e->ptr, offsetof(RtContext, shared)),
                                    info->reached->offset);
        break;
    }
    return value;
}

static Value field_address(Emitter *e, const Inst *inst) {
    Value value = emit_operand(e, inst, 0);
    const Type *record = target_of(inst->args[0]);
    value.value = emit_at(e, value.value, type_field_offset(record, inst->index, LAYOUT_scalar));
    return value;
}

static LLVMValueRef move_pointer(Emitter *e, LLVMValueRef pointer, LLVMValueRef index, int64_t stride) {
    LLVMTypeRef unit = LLVMArrayType2(e->i8, (uint64_t)stride);
    return LLVMBuildInBoundsGEP2(e->builder, unit, pointer, &index, 1, "");
}

static Value element_address(Emitter *e, const Inst *inst) {
    Value value = emit_operand(e, inst, 0);
    const Type *whole = target_of(inst->args[0]);
    int64_t length = whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
    if (inst_has(inst, INST_UNCHECKED) || e->options->unchecked) length = -1;
    LLVMValueRef index = emit_index_arg(e, inst, length);
    value.value = move_pointer(e, value.value, index, type_element_stride(whole, LAYOUT_scalar));
    return value;
}

static Value moved_pointer(Emitter *e, const Inst *inst) {
    LLVMValueRef index = emit_index_arg(e, inst, -1);
    int64_t stride = type_layout(target_of(inst->args[0]), LAYOUT_scalar).stride;
    return emit_plain_value(move_pointer(e, emit_use(e, inst, 0), index, stride > 0 ? stride : 1));
}

static Value loaded(Emitter *e, const Inst *inst) {
    return emit_plain_value(emit_load(e, inst->results[0]->type, emit_operand(e, inst, 0)));
}

static void store_part(Emitter *e, const Inst *inst) {
    const Type *type = target_of(inst->args[0]);
    Value to = e->device ? emit_device_stored(e, inst) : emit_operand(e, inst, 0);
    if (inst->op == OP_store) emit_store(e, type, to, emit_use(e, inst, 1));
    else if (inst->op == OP_copy) emit_copy(e, type, to, emit_operand(e, inst, 1));
    else zero_object(e, type, to);
    if (e->device) emit_device_end_stored(e, inst);
}

bool emit_memory(Emitter *e, const Inst *inst) {
    Value value;
    switch ((Op)inst->op) {
    case OP_var: value = variable(e, inst); break;
    case OP_global: value = global_address(e, inst); break;
    case OP_field: value = field_address(e, inst); break;
    case OP_elem: value = element_address(e, inst); break;
    case OP_offset: value = moved_pointer(e, inst); break;
    case OP_bitcast:
        if (!ir_is_view(inst)) return false; /* which has the layout that the memory has */
        value = emit_operand(e, inst, 0);
        break;
    case OP_load: value = loaded(e, inst); break;
    case OP_store:
    case OP_copy:
    case OP_zero: store_part(e, inst); return true;
    default: return false;
    }
    emit_set(e, inst->results[0], value);
    return true;
}
