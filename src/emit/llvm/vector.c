/* Vectors: making them, taking them apart; and indices of any integer type. */
#include "emit/llvm/llvm.h"

static bool is_known_in_range(LLVMValueRef index, int64_t length) {
    return LLVMIsAConstantInt(index) && LLVMConstIntGetZExtValue(index) < (unsigned long long)length;
}

LLVMValueRef emit_index(Emitter *e, LLVMValueRef index, const Type *type, int64_t length) {
    index = LLVMBuildIntCast2(e->builder, index, e->i64, type_is_signed(type), "");
    if (length <= 0 || is_known_in_range(index, length)) return index;
    LLVMValueRef args[] = {index, emit_i64(e, length - 1)};
    if (e->options->watch) emit_watch(e, LLVMBuildICmp(e->builder, LLVMIntULE, index, args[1], ""));
    return emit_intrinsic(e, "llvm.umin", &e->i64, 1, args, 2);
}

static LLVMValueRef lane_index(Emitter *e, const Inst *inst) {
    return emit_index(e, emit_use(e, inst, 1), inst->args[1]->type, type_count(inst->args[0]->type));
}

static LLVMValueRef from_lanes(Emitter *e, const Inst *inst) {
    LLVMValueRef vector = LLVMGetPoison(emit_type(e, inst->results[0]->type));
    for (int i = 0; i < inst->nargs; i++)
        vector = LLVMBuildInsertElement(e->builder, vector, emit_use(e, inst, i), emit_i32(e, i), "");
    return vector;
}

static LLVMValueRef shuffled(Emitter *e, const Inst *inst) {
    const Type *to = inst->results[0]->type;
    LLVMValueRef vector = emit_use(e, inst, 0), mask[4];
    if (to->kind != TYPE_vector)
        return LLVMBuildExtractElement(e->builder, vector, emit_i32(e, inst->lanes[0]), "");
    int count = type_count(to);
    for (int i = 0; i < count; i++) mask[i] = emit_i32(e, inst->lanes[i]);
    return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                  LLVMConstVector(mask, count_of(count)), "");
}

LLVMValueRef emit_vector(Emitter *e, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_vec: return from_lanes(e, inst);
    case OP_splat: return emit_splat(e, emit_use(e, inst, 0), inst->results[0]->type);
    case OP_extract:
        return LLVMBuildExtractElement(e->builder, emit_use(e, inst, 0), lane_index(e, inst), "");
    case OP_insert:
        return LLVMBuildInsertElement(e->builder, emit_use(e, inst, 0), emit_use(e, inst, 2),
                                      lane_index(e, inst), "");
    case OP_shuffle: return shuffled(e, inst);
    default: return NULL;
    }
}
