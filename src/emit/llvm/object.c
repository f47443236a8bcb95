/* Copies of whole objects, and what is done only if something is in range. */
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

/* ---- copy */

static void copy_in_range(Emitter *e, const Type *type, Value to, Value from) {
    Layout layout = type_layout(type, LAYOUT_scalar);
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
        Layout layout = type_layout(type, LAYOUT_scalar);
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
