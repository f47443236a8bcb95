/* Elementary functions: LLVM's intrinsics where it has them and every target can lower them, the C library otherwise, lane
 * by lane, or for lanes of a kernel all at once (lanes.c). half is computed in float and rounded. */
#include "emit/llvm/llvm.h"

typedef struct MathFunction {
    uint16_t op;
    const char *intrinsic; /* NULL: only in the library */
    const char *library;   /* name for double; "f" is added for float */
} MathFunction;

static const MathFunction functions[] = {
    {OP_sqrt, "llvm.sqrt", "sqrt"},    {OP_sin, "llvm.sin", "sin"},
    {OP_cos, "llvm.cos", "cos"},       {OP_tan, NULL, "tan"},
    {OP_asin, NULL, "asin"},           {OP_acos, NULL, "acos"},
    {OP_atan, NULL, "atan"},           {OP_atan2, NULL, "atan2"},
    {OP_sinh, NULL, "sinh"},           {OP_cosh, NULL, "cosh"},
    {OP_tanh, NULL, "tanh"},           {OP_asinh, NULL, "asinh"},
    {OP_acosh, NULL, "acosh"},         {OP_atanh, NULL, "atanh"},
    {OP_exp, "llvm.exp", "exp"},       {OP_exp2, "llvm.exp2", "exp2"},
    {OP_log, "llvm.log", "log"},       {OP_log2, "llvm.log2", "log2"},
    {OP_log10, "llvm.log10", "log10"}, {OP_pow, "llvm.pow", "pow"},
    {OP_floor, "llvm.floor", "floor"}, {OP_ceil, "llvm.ceil", "ceil"},
    {OP_round, "llvm.rint", "rint"},   {OP_trunc, "llvm.trunc", "trunc"},
    {OP_fma, "llvm.fma", "fma"},       {OP_copysign, "llvm.copysign", "copysign"},
    {OP_ldexp, NULL, "ldexp"},         {OP_expm1, NULL, "expm1"},
    {OP_log1p, NULL, "log1p"},         {OP_cbrt, NULL, "cbrt"},
    {OP_hypot, NULL, "hypot"},         {OP_erf, NULL, "erf"},
    {OP_erfc, NULL, "erfc"},           {OP_lgamma, NULL, "lgamma"},
};

static const MathFunction *find(unsigned op) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].op == op) return &functions[i];
    return NULL;
}

static LLVMValueRef library_function(Emitter *e, const char *name, LLVMTypeRef real, LLVMValueRef *args,
                                     int nargs) {
    LLVMTypeRef types[3];
    for (int i = 0; i < nargs; i++) types[i] = LLVMTypeOf(args[i]);
    if (e->device) name = emit_device_function(e, name);
    const char *symbol = real == e->f32 ? format_text(&e->arena, "%sf", name) : name;
    return emit_external(e, symbol, real, types, nargs, "nounwind willreturn memory nofree");
}

static LLVMValueRef call_library(Emitter *e, const char *name, LLVMTypeRef real, LLVMValueRef *args,
                                 int nargs) {
    return emit_call_external(e, library_function(e, name, real, args, nargs), args, nargs);
}

static LLVMValueRef call_by_lane(Emitter *e, const char *name, const Type *shape, LLVMValueRef *args,
                                 int nargs) {
    LLVMTypeRef vector = LLVMTypeOf(args[0]);
    LLVMValueRef result = LLVMGetPoison(vector);
    for (int lane = 0; lane < type_count(shape); lane++) {
        LLVMValueRef index = emit_i32(e, lane), scalars[3];
        for (int i = 0; i < nargs; i++) scalars[i] = LLVMBuildExtractElement(e->builder, args[i], index, "");
        LLVMValueRef value = call_library(e, name, LLVMGetElementType(vector), scalars, nargs);
        result = LLVMBuildInsertElement(e->builder, result, value, index, "");
    }
    return result;
}

LLVMValueRef emit_remainder(Emitter *e, LLVMValueRef a, LLVMValueRef b, const Type *shape) {
    LLVMValueRef args[] = {a, b};
    if (!e->device) return LLVMBuildFRem(e->builder, a, b, "");
    if (shape->kind == TYPE_vector) return call_by_lane(e, "fmod", shape, args, 2);
    return call_library(e, "fmod", LLVMTypeOf(a), args, 2);
}

static bool is_of_lanes(const Emitter *e, const Type *shape) {
    const Func *func = e->at->info ? e->at->info->func : NULL;
    if (!func || func->wide || shape->kind != TYPE_vector) return false;
    int lanes = func->rounds ? func->rounds : func->lanes;
    return lanes > 1 && type_count(shape) == lanes;
}

static LLVMValueRef compute(Emitter *e, const MathFunction *function, const Type *shape, LLVMValueRef *args,
                            int nargs) {
    const char *intrinsic = function->intrinsic;
    if (function->op == OP_round && e->habits.has_round_even) intrinsic = "llvm.roundeven";
    if (e->device && op_is_elementary(function->op)) intrinsic = NULL;
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    LLVMValueRef at_once = is_of_lanes(e, shape) && op_is_elementary(function->op)
                               ? emit_lanes_call(e, function->library, args, nargs)
                               : NULL;
    if (at_once) return at_once;
    if (!intrinsic && shape->kind == TYPE_vector)
        return call_by_lane(e, function->library, shape, args, nargs);
    LLVMValueRef call = intrinsic ? emit_intrinsic(e, intrinsic, &type, 1, args, nargs)
                                  : call_library(e, function->library, type, args, nargs);
    if (!e->device) emit_lanes(e, call, function->library);
    return call;
}

LLVMValueRef emit_math(Emitter *e, const Inst *inst) {
    const MathFunction *function = find(inst->op);
    if (!function) return NULL;
    const Type *type = inst->args[0]->type;
    bool half = type_element(type)->kind == TYPE_half;
    LLVMValueRef args[3];
    for (int i = 0; i < inst->nargs; i++) {
        args[i] = emit_use(e, inst, i);
        if (inst->op == OP_ldexp && i == 1) {
            if (type_bits(type_element(inst->args[1]->type)) != 32)
                args[i] = LLVMBuildIntCast2(e->builder, args[i], emit_shaped(e->i32, type), true, "");
        } else if (half) {
            args[i] = LLVMBuildFPExt(e->builder, args[i], emit_shaped(e->f32, type), "");
        }
    }
    LLVMValueRef result = compute(e, function, type, args, inst->nargs);
    return half ? LLVMBuildFPTrunc(e->builder, result, emit_type(e, type), "") : result;
}
