/* Whole objects: copies, also between memory of different layout rules, and the sum of differentials. */
#include "emit/llvm/llvm.h"

static Branch branch_new(Emitter *e) {
    return (Branch){LLVMGetInsertBlock(e->builder), emit_block(e, "in"), emit_block(e, "after")};
}

static void jump_on(Emitter *e, LLVMValueRef condition, LLVMBasicBlockRef likely,
                    LLVMBasicBlockRef unlikely) {
    LLVMValueRef jump = LLVMBuildCondBr(e->builder, condition, likely, unlikely);
    LLVMSetMetadata(jump, e->weight_kind, e->likely);
}

Branch emit_branch_begin(Emitter *e, LLVMValueRef condition) {
    Branch branch = branch_new(e);
    jump_on(e, condition, branch.inside, branch.after);
    LLVMPositionBuilderAtEnd(e->builder, branch.inside);
    return branch;
}

Branch emit_unless_begin(Emitter *e, LLVMValueRef condition) {
    Branch branch = branch_new(e);
    jump_on(e, condition, branch.after, branch.inside);
    LLVMPositionBuilderAtEnd(e->builder, branch.inside);
    return branch;
}

void emit_branch_end(Emitter *e, Branch *branch) {
    LLVMBuildBr(e->builder, branch->after);
    LLVMPositionBuilderAtEnd(e->builder, branch->after);
}

/* ---- part by part */

typedef void (*OnPart)(Emitter *e, const Type *type, Value to, Value from);

static Value part_at(Emitter *e, Value whole, int64_t offset) {
    whole.value = emit_at(e, whole.value, offset);
    return whole;
}

static Value part_indexed(Emitter *e, Value whole, const Type *array, LLVMValueRef index) {
    LLVMTypeRef unit = LLVMArrayType2(e->i8, (uint64_t)type_element_stride(array, (LayoutRules)whole.rules));
    whole.value = LLVMBuildInBoundsGEP2(e->builder, unit, whole.value, &index, 1, "");
    return whole;
}

static void for_parts(Emitter *e, const Type *type, Value to, Value from, OnPart on_part);

static void for_elements(Emitter *e, const Type *array, Value to, Value from, OnPart on_part) {
    int64_t length = type_length(array);
    if (length <= 0) return;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->builder), body = emit_block(e, "each"),
                      after = emit_block(e, "after");
    LLVMValueRef zero = emit_i64(e, 0);
    LLVMBuildBr(e->builder, body);
    LLVMPositionBuilderAtEnd(e->builder, body);
    LLVMValueRef index = LLVMBuildPhi(e->builder, e->i64, "");
    for_parts(e, array->args[0], part_indexed(e, to, array, index), part_indexed(e, from, array, index),
              on_part);
    LLVMValueRef next = LLVMBuildAdd(e->builder, index, emit_i64(e, 1), "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(e->builder);
    LLVMAddIncoming(index, &zero, &before, 1);
    LLVMAddIncoming(index, &next, &end, 1);
    LLVMValueRef more = LLVMBuildICmp(e->builder, LLVMIntULT, next, emit_i64(e, length), "");
    LLVMBuildCondBr(e->builder, more, body, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
}

static void for_parts(Emitter *e, const Type *type, Value to, Value from, OnPart on_part) {
    if (type->kind == TYPE_array) {
        for_elements(e, type, to, from, on_part);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            for_parts(e, type_record(type)->fields[i].type,
                      part_at(e, to, type_field_offset(type, i, (LayoutRules)to.rules)),
                      part_at(e, from, type_field_offset(type, i, (LayoutRules)from.rules)), on_part);
    } else {
        on_part(e, type, to, from);
    }
}

/* ---- copy */

static void copy_part(Emitter *e, const Type *type, Value to, Value from) {
    emit_store(e, type, to, emit_load(e, type, from));
}

static void copy_in_range(Emitter *e, const Type *type, Value to, Value from) {
    if (to.rules != from.rules) {
        for_parts(e, type, to, from, copy_part);
        return;
    }
    Layout layout = type_layout(type, (LayoutRules)to.rules);
    unsigned align = (unsigned)layout.align;
    if (layout.size > 0)
        LLVMBuildMemCpy(e->builder, to.value, to.unaligned ? 1 : align, from.value,
                        from.unaligned ? 1 : align, emit_i64(e, layout.size));
}

void emit_copy(Emitter *e, const Type *type, Value to, Value from) {
    Branch writes = {0};
    LLVMValueRef may_write = to.guard, may_read = from.guard;
    to.guard = from.guard = NULL;
    if (may_write) writes = emit_branch_begin(e, may_write);
    if (may_read) {
        /* Out of range, zeros come instead. */
        Layout layout = type_layout(type, (LayoutRules)to.rules);
        Branch misses = emit_unless_begin(e, may_read);
        emit_zero(e, to.value, layout.size, to.unaligned ? 1 : layout.align);
        emit_branch_end(e, &misses);
        Branch hits = emit_branch_begin(e, may_read);
        copy_in_range(e, type, to, from);
        emit_branch_end(e, &hits);
    } else {
        copy_in_range(e, type, to, from);
    }
    if (may_write) emit_branch_end(e, &writes);
}

/* ---- sum of differentials; what is no float has none */

static void add_part(Emitter *e, const Type *type, Value to, Value from) {
    if (!type_is_float(type_element(type))) return;
    LLVMValueRef old = emit_load(e, type, to), more = emit_load(e, type, from);
    emit_store(e, type, to, emit_sum(e, old, more));
}

void emit_accumulate(Emitter *e, const Type *type, Value to, Value from) {
    LLVMValueRef guard = to.guard && from.guard ? LLVMBuildAnd(e->builder, to.guard, from.guard, "")
                         : to.guard             ? to.guard
                                                : from.guard;
    Branch branch = {0};
    to.guard = from.guard = NULL;
    if (guard) branch = emit_branch_begin(e, guard);
    for_parts(e, type, to, from, add_part);
    if (guard) emit_branch_end(e, &branch);
}
