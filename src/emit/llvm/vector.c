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

/* ---- indices of which bits are cut off
 *
 * LLVM knows x[(3 * i) % 64] as steps of 3 in a number of 6 bits, and may take several rounds together if that does not wrap. Whether it does
 * is tested before the loop, but (LLVM 19) not for what begins with 0: the whole of x, and what lies behind it, is then read in steps of 3. So
 * it is not told what such an index is: half of what is twice as much, as a product of fixed-point numbers, which nothing looks into before it
 * becomes machine code. */

/* Of a loop, in steps of 1: that is tested. */
static bool is_plain_count(const Val *v) {
    bool moved = v->kind == VAL_inst && (v->inst->op == OP_add || v->inst->op == OP_sub) &&
                 val_is_const(inst_operand(v->inst, 1));
    if (moved) v = inst_operand(v->inst, 0);
    int64_t step;
    return v->kind == VAL_param && v->region->owner && v->region->owner->op == OP_loop &&
           loop_step(v->region->owner, v->index, &step) && step == 1;
}

static bool is_narrow(const Type *type) {
    return type_is_integer(type) && !type_is_signed(type) && type_bits(type) < 32;
}

static bool is_power_of_two(const Val *v) {
    return val_is_const(v) && v->integer > 0 && (v->integer & (v->integer - 1)) == 0;
}

static bool is_cut(const Val *v, int depth) {
    if (v->kind != VAL_inst || depth == 0 || !type_is_integer(v->type)) return false;
    const Val *of = v->inst->nargs ? inst_operand(v->inst, 0) : v;
    switch ((Op)v->inst->op) {
    case OP_and: return !is_plain_count(of);
    case OP_rem: return is_power_of_two(inst_operand(v->inst, 1)) && !is_plain_count(of);
    case OP_convert: return is_narrow(of->type) || is_narrow(v->type) || is_cut(of, depth - 1);
    case OP_shr: return is_cut(of, depth - 1) || (of->kind == VAL_inst && of->inst->op == OP_shl);
    case OP_shl: return is_cut(of, depth - 1);
    case OP_add:
    case OP_sub:
    case OP_mul: return is_cut(of, depth - 1) || is_cut(inst_operand(v->inst, 1), depth - 1);
    default: return false;
    }
}

LLVMValueRef emit_index_arg(Emitter *e, const Inst *inst, int64_t length) {
    const int far = 8;
    const Val *v = inst_operand(inst, 1);
    LLVMValueRef index = emit_index(e, emit_use(e, inst, 1), v->type, length);
    if (e->device || LLVMIsConstant(index) || !(is_narrow(v->type) || is_cut(v, far))) return index;
    LLVMValueRef args[] = {index, emit_i64(e, 2), emit_i32(e, 0)};
    LLVMValueRef twice = emit_intrinsic(e, "llvm.smul.fix", &e->i64, 1, args, 3);
    return LLVMBuildLShr(e->builder, twice, emit_i64(e, 1), "");
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
