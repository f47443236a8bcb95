/* Arithmetic, bits, comparisons and conversions, on scalars and vectors alike. Where LLVM leaves a result
 * undefined, ops.def defines it: opt/legalize.c has made it so, but for floats too large for an integer,
 * where LLVM has an operation. */
#include "emit/llvm/llvm.h"

typedef LLVMValueRef (*BuildBinary)(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, const char *);

static bool is_float(const Type *type) { return type_is_float(type_element(type)); }
static bool is_bool(const Type *type) { return type_element(type)->kind == TYPE_bool; }
static int bits_of(const Type *type) { return type_bits(type_element(type)); }

/* ---- arithmetic */

static LLVMValueRef allow(LLVMValueRef value, LLVMFastMathFlags flags) {
    if (LLVMIsAInstruction(value) && LLVMCanValueUseFastMathFlags(value)) LLVMSetFastMathFlags(value, flags);
    return value;
}

EmitFloats emit_floats(const Emitter *e) {
    bool precise = e->at->info && (e->at->info->func->flags & FUNC_PRECISE);
    return e->options->level == 0 || precise ? EMIT_floats_strict : e->options->floats;
}

LLVMValueRef emit_freely(Emitter *e, LLVMValueRef value) {
    static const LLVMFastMathFlags freedom[] = {
        [EMIT_floats_strict] = LLVMFastMathNone,
        [EMIT_floats_contract] = LLVMFastMathAllowContract,
        [EMIT_floats_fast] = LLVMFastMathAllowContract | LLVMFastMathAllowReassoc |
                             LLVMFastMathNoSignedZeros | LLVMFastMathAllowReciprocal,
    };
    return allow(value, freedom[emit_floats(e)]);
}

/* Of differentials, whose order is free. */
static LLVMValueRef free_sum(Emitter *e, LLVMValueRef sum) {
    LLVMFastMathFlags flags = LLVMFastMathAllowReassoc | LLVMFastMathNoSignedZeros;
    if (emit_floats(e) != EMIT_floats_strict) flags |= LLVMFastMathAllowContract;
    return allow(sum, e->options->level > 0 ? flags : LLVMFastMathNone);
}

/* If that is known of the sum or product. */
static LLVMValueRef without_wrapping(const Inst *inst, LLVMValueRef value) {
    if (!inst_has(inst, INST_UNCHECKED) || !LLVMIsABinaryOperator(value)) return value;
    if (type_is_signed(inst->args[0]->type)) LLVMSetNSW(value, true);
    else LLVMSetNUW(value, true);
    return value;
}

static LLVMValueRef binary(Emitter *e, const Inst *inst, BuildBinary on_float, BuildBinary on_int) {
    LLVMValueRef a = emit_use(e, inst, 0), b = emit_use(e, inst, 1);
    if (!is_float(inst->args[0]->type)) return without_wrapping(inst, on_int(e->builder, a, b, ""));
    if (inst_is_free_sum(inst)) return free_sum(e, on_float(e->builder, a, b, ""));
    return emit_freely(e, on_float(e->builder, a, b, ""));
}

/* By zero, and where it would overflow, nothing is divided: opt/legalize.c. */
static LLVMValueRef integer_division(Emitter *e, const Inst *inst, bool remainder) {
    static const BuildBinary build[2][2] = {{LLVMBuildUDiv, LLVMBuildURem}, {LLVMBuildSDiv, LLVMBuildSRem}};
    bool is_signed = type_is_signed(inst->args[0]->type);
    return build[is_signed][remainder](e->builder, emit_use(e, inst, 0), emit_use(e, inst, 1), "");
}

static LLVMValueRef division(Emitter *e, const Inst *inst, bool remainder) {
    if (!is_float(inst->args[0]->type)) return integer_division(e, inst, remainder);
    if (!remainder) return binary(e, inst, LLVMBuildFDiv, NULL);
    return emit_remainder(e, emit_use(e, inst, 0), emit_use(e, inst, 1), inst->args[0]->type);
}

static LLVMValueRef negation(Emitter *e, const Inst *inst) {
    LLVMValueRef a = emit_use(e, inst, 0);
    if (!is_float(inst->args[0]->type)) return LLVMBuildNeg(e->builder, a, "");
    return emit_freely(e, LLVMBuildFNeg(e->builder, a, ""));
}

static LLVMValueRef magnitude(Emitter *e, const Inst *inst) {
    const Type *type = inst->args[0]->type;
    LLVMTypeRef overload = emit_type(e, type);
    LLVMValueRef args[] = {emit_use(e, inst, 0), LLVMConstInt(e->i1, 0, false)};
    if (is_float(type)) return emit_intrinsic(e, "llvm.fabs", &overload, 1, args, 1);
    return type_is_signed(type) ? emit_intrinsic(e, "llvm.abs", &overload, 1, args, 2) : args[0];
}

/* The first as a rule. */
static LLVMValueRef likely_choice(Emitter *e, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef chosen = LLVMBuildSelect(e->builder, condition, a, b, "");
    if (LLVMIsASelectInst(chosen)) LLVMSetMetadata(chosen, e->weight_kind, e->likely);
    return chosen;
}

static LLVMValueRef extreme_by_ways(Emitter *e, LLVMValueRef a, LLVMValueRef b, bool greater) {
    LLVMValueRef is_first = LLVMBuildFCmp(e->builder, greater ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    LLVMValueRef is_number = LLVMBuildFCmp(e->builder, LLVMRealORD, b, b, "");
    return likely_choice(e, is_number, likely_choice(e, is_first, a, b), a);
}

static LLVMValueRef extreme(Emitter *e, const Inst *inst, bool greater) {
    const Type *type = inst->args[0]->type;
    LLVMTypeRef overload = emit_type(e, type);
    LLVMValueRef args[] = {emit_use(e, inst, 0), emit_use(e, inst, 1)};
    if (!e->habits.has_extremes && inst_goes_ways(inst)) return extreme_by_ways(e, args[0], args[1], greater);
    const char *name = is_float(type)         ? (greater ? "llvm.maxnum" : "llvm.minnum")
                       : type_is_signed(type) ? (greater ? "llvm.smax" : "llvm.smin")
                                              : (greater ? "llvm.umax" : "llvm.umin");
    return emit_intrinsic(e, name, &overload, 1, args, 2);
}

/* ---- bits */

static LLVMValueRef resize(Emitter *e, LLVMValueRef value, const Type *from, const Type *to, bool sign) {
    int have = bits_of(from), want = bits_of(to);
    LLVMTypeRef type = emit_type(e, to);
    if (have > want) return LLVMBuildTrunc(e->builder, value, type, "");
    if (have == want) return value;
    return sign ? LLVMBuildSExt(e->builder, value, type, "") : LLVMBuildZExt(e->builder, value, type, "");
}

static LLVMValueRef shift(Emitter *e, const Inst *inst, bool left) {
    LLVMValueRef value = emit_use(e, inst, 0), amount = emit_use(e, inst, 1);
    if (left) return LLVMBuildShl(e->builder, value, amount, "");
    return type_is_signed(inst->args[0]->type) ? LLVMBuildAShr(e->builder, value, amount, "")
                                               : LLVMBuildLShr(e->builder, value, amount, "");
}

/* A count of bits as the uint of the result. */
static LLVMValueRef bit_count(Emitter *e, const Inst *inst, const char *name, LLVMValueRef value) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    LLVMTypeRef overload = emit_type(e, from);
    LLVMValueRef args[] = {value, LLVMConstInt(e->i1, 0, false)};
    LLVMValueRef count = emit_intrinsic(e, name, &overload, 1, args, strcmp(name, "llvm.ctpop") == 0 ? 1 : 2);
    return resize(e, count, from, to, false);
}

static LLVMValueRef first_bit_high(Emitter *e, const Inst *inst) {
    const Type *type = inst->args[0]->type;
    LLVMValueRef value = emit_use(e, inst, 0);
    if (type_is_signed(type)) {
        LLVMValueRef sign = LLVMBuildAShr(e->builder, value, emit_int_like(e, type, bits_of(type) - 1), "");
        value = LLVMBuildXor(e->builder, value, sign, "");
    }
    LLVMValueRef zeros = bit_count(e, inst, "llvm.ctlz", value);
    return LLVMBuildSub(e->builder, emit_int_like(e, inst->results[0]->type, bits_of(type) - 1), zeros, "");
}

static LLVMValueRef first_bit_low(Emitter *e, const Inst *inst) {
    const Type *type = inst->args[0]->type, *to = inst->results[0]->type;
    LLVMValueRef value = emit_use(e, inst, 0);
    LLVMValueRef none = LLVMBuildICmp(e->builder, LLVMIntEQ, value, emit_int_like(e, type, 0), "");
    return LLVMBuildSelect(e->builder, none, emit_int_like(e, to, -1), bit_count(e, inst, "llvm.cttz", value),
                           "");
}

static LLVMValueRef reverse_bits(Emitter *e, const Inst *inst) {
    LLVMTypeRef overload = emit_type(e, inst->args[0]->type);
    LLVMValueRef value = emit_use(e, inst, 0);
    return emit_intrinsic(e, "llvm.bitreverse", &overload, 1, &value, 1);
}

/* ---- comparison */

static LLVMValueRef comparison(Emitter *e, const Inst *inst, LLVMRealPredicate real,
                               LLVMIntPredicate as_signed, LLVMIntPredicate as_unsigned) {
    const Type *type = inst->args[0]->type;
    LLVMValueRef a = emit_use(e, inst, 0), b = emit_use(e, inst, 1);
    if (is_float(type)) return LLVMBuildFCmp(e->builder, real, a, b, "");
    return LLVMBuildICmp(e->builder, type_is_signed(type) ? as_signed : as_unsigned, a, b, "");
}

static LLVMValueRef reduction(Emitter *e, const Inst *inst, const char *name) {
    LLVMValueRef value = emit_use(e, inst, 0);
    if (inst->args[0]->type->kind != TYPE_vector) return value;
    LLVMTypeRef overload = LLVMTypeOf(value);
    return emit_intrinsic(e, name, &overload, 1, &value, 1);
}

static LLVMValueRef is_nan(Emitter *e, const Inst *inst) {
    LLVMValueRef value = emit_use(e, inst, 0);
    return LLVMBuildFCmp(e->builder, LLVMRealUNO, value, value, "");
}

/* ---- conversion */

static LLVMValueRef float_to_float(Emitter *e, LLVMValueRef value, const Type *from, const Type *to) {
    int have = bits_of(from), want = bits_of(to);
    if (have == want) return value;
    if (have < want) return LLVMBuildFPExt(e->builder, value, emit_type(e, to), "");
    return LLVMBuildFPTrunc(e->builder, value, emit_type(e, to), "");
}

/* Out of range is the nearest number, and what is none is zero, unless it is known to be in range. */
static LLVMValueRef float_to_int(Emitter *e, const Inst *inst, LLVMValueRef value, const Type *to) {
    LLVMTypeRef overloads[] = {emit_type(e, to), LLVMTypeOf(value)};
    bool has_sign = type_is_signed(to);
    if (!inst_has(inst, INST_UNCHECKED))
        return emit_intrinsic(e, has_sign ? "llvm.fptosi.sat" : "llvm.fptoui.sat", overloads, 2, &value, 1);
    return has_sign ? LLVMBuildFPToSI(e->builder, value, overloads[0], "")
                    : LLVMBuildFPToUI(e->builder, value, overloads[0], "");
}

static LLVMValueRef int_to_float(Emitter *e, LLVMValueRef value, const Type *from, const Type *to) {
    return type_is_signed(from) ? LLVMBuildSIToFP(e->builder, value, emit_type(e, to), "")
                                : LLVMBuildUIToFP(e->builder, value, emit_type(e, to), "");
}

static LLVMValueRef conversion(Emitter *e, const Inst *inst) {
    LLVMValueRef value = emit_use(e, inst, 0);
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    if (from == to) return value;
    if (is_bool(to)) {
        if (is_bool(from)) return value;
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value));
        return is_float(from) ? LLVMBuildFCmp(e->builder, LLVMRealUNE, value, zero, "")
                              : LLVMBuildICmp(e->builder, LLVMIntNE, value, zero, "");
    }
    if (is_float(from))
        return is_float(to) ? float_to_float(e, value, from, to) : float_to_int(e, inst, value, to);
    return is_float(to) ? int_to_float(e, value, from, to) : resize(e, value, from, to, type_is_signed(from));
}

/* ---- bits as another type */

static LLVMValueRef to_bits(Emitter *e, LLVMValueRef value, const Type *type) {
    if (type->kind == TYPE_pointer) return LLVMBuildPtrToInt(e->builder, value, e->i64, "");
    return emit_to_memory(e, type, value, emit_memory_type(e, type));
}

static LLVMValueRef reinterpret(Emitter *e, const Inst *inst) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    LLVMValueRef value = emit_use(e, inst, 0);
    if (emit_type(e, from) == emit_type(e, to)) return value;
    value = to_bits(e, value, from);
    if (to->kind == TYPE_pointer)
        return LLVMBuildIntToPtr(e->builder, LLVMBuildBitCast(e->builder, value, e->i64, ""), e->ptr, "");
    value = LLVMBuildBitCast(e->builder, value, emit_memory_type(e, to), "");
    return emit_from_memory(e, to, value);
}

static LLVMValueRef choice(Emitter *e, const Inst *inst) {
    LLVMValueRef condition = emit_use(e, inst, 0), a = emit_use(e, inst, 1), b = emit_use(e, inst, 2);
    if (inst_goes_ways(inst) && !e->device) return likely_choice(e, condition, a, b);
    return LLVMBuildSelect(e->builder, condition, a, b, "");
}

LLVMValueRef emit_arith(Emitter *e, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_add: return binary(e, inst, LLVMBuildFAdd, LLVMBuildAdd);
    case OP_sub: return binary(e, inst, LLVMBuildFSub, LLVMBuildSub);
    case OP_mul: return binary(e, inst, LLVMBuildFMul, LLVMBuildMul);
    case OP_div: return division(e, inst, false);
    case OP_rem: return division(e, inst, true);
    case OP_neg: return negation(e, inst);
    case OP_min: return extreme(e, inst, false);
    case OP_max: return extreme(e, inst, true);
    case OP_abs: return magnitude(e, inst);
    case OP_and: return binary(e, inst, NULL, LLVMBuildAnd);
    case OP_or: return binary(e, inst, NULL, LLVMBuildOr);
    case OP_xor: return binary(e, inst, NULL, LLVMBuildXor);
    case OP_not: return LLVMBuildNot(e->builder, emit_use(e, inst, 0), "");
    case OP_shl: return shift(e, inst, true);
    case OP_shr: return shift(e, inst, false);
    case OP_countbits: return bit_count(e, inst, "llvm.ctpop", emit_use(e, inst, 0));
    case OP_firstbithigh: return first_bit_high(e, inst);
    case OP_firstbitlow: return first_bit_low(e, inst);
    case OP_reversebits: return reverse_bits(e, inst);
    case OP_eq: return comparison(e, inst, LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ);
    case OP_ne: return comparison(e, inst, LLVMRealUNE, LLVMIntNE, LLVMIntNE);
    case OP_lt: return comparison(e, inst, LLVMRealOLT, LLVMIntSLT, LLVMIntULT);
    case OP_le: return comparison(e, inst, LLVMRealOLE, LLVMIntSLE, LLVMIntULE);
    case OP_any: return reduction(e, inst, "llvm.vector.reduce.or");
    case OP_all: return reduction(e, inst, "llvm.vector.reduce.and");
    case OP_isnan: return is_nan(e, inst);
    case OP_select: return choice(e, inst);
    case OP_convert: return conversion(e, inst);
    case OP_bitcast: return ir_is_view(inst) ? NULL : reinterpret(e, inst);
    case OP_detach: return emit_use(e, inst, 0);
    default: return NULL;
    }
}
