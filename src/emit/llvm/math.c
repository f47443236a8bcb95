/* Elementary functions: LLVM's intrinsics where it has them and every target can lower them, the C library
 * otherwise, lane by lane, or for lanes of a kernel all at once (lanes.c). half is computed in float and
 * rounded. */
#include "emit/llvm/llvm.h"

static bool is_function(unsigned op) { return op == OP_fma || (op >= OP_sqrt && op <= OP_ldexp); }

/* In the library, for double; "f" is added for float. LLVM's intrinsic, if it has one, is of the same
 * name. */
static const char *function_name(unsigned op) { return op == OP_round ? "rint" : op_info[op].name; }

/* NULL: it is only in the library. */
static const char *intrinsic_of(Emitter *e, unsigned op) {
    if (!op_has(op, OP_INTRINSIC) || (e->device && op_is_elementary(op))) return NULL;
    if (op == OP_round && e->habits.has_round_even) return "llvm.roundeven";
    return format_text(&e->arena, "llvm.%s", function_name(op));
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
    enum { OF_SOURCE = 4 }; /* as a rule; loops of one function may have different numbers of lanes */
    const Func *func = e->at->info ? e->at->info->func : NULL;
    int lanes = func ? func_lanes(func) : 0;
    if (lanes <= 1 || shape->kind != TYPE_vector) return false;
    return type_count(shape) == lanes || (type_count(shape) < lanes && type_count(shape) > OF_SOURCE);
}

/* ---- in place */

/* Numbers, or vectors of them. */
typedef struct Floats {
    Emitter *e;
    const Type *shape;
    LLVMTypeRef type, bits; /* of floats; of integers of the same size */
} Floats;

static LLVMValueRef number(Floats p, double value) {
    bool is_vector = p.shape->kind == TYPE_vector;
    LLVMValueRef scalar = LLVMConstReal(is_vector ? LLVMGetElementType(p.type) : p.type, value);
    return emit_splat(p.e, scalar, p.shape);
}

static LLVMValueRef integer(Floats p, uint64_t value) {
    bool is_vector = p.shape->kind == TYPE_vector;
    LLVMValueRef scalar = LLVMConstInt(is_vector ? LLVMGetElementType(p.bits) : p.bits, value, false);
    return emit_splat(p.e, scalar, p.shape);
}

static LLVMValueRef fused(Floats p, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
    LLVMValueRef args[] = {a, b, c};
    return emit_intrinsic(p.e, "llvm.fma", &p.type, 1, args, 3);
}

/* first[0] + x * first[1] + x^2 * (first[2] + x * first[3] + x^2 * ...). */
static LLVMValueRef polynomial(Floats p, LLVMValueRef x, LLVMValueRef square, const double *first,
                               int count) {
    LLVMValueRef low = number(p, first[0]);
    if (count > 1) low = fused(p, x, number(p, first[1]), low);
    return count > 2 ? fused(p, square, polynomial(p, x, square, first + 2, count - 2), low) : low;
}

/* How e^x is found: 2^n times one more than a polynomial of what is left. */
typedef struct Exponential {
    double shift; /* added to a moderate number, it leaves a whole one in the last bits */
    uint64_t shift_bits, bias;
    unsigned fraction; /* bits */
    double ln2[2];     /* the first so short that products with whole numbers are exact */
    double terms[12];  /* from the square on */
    int count;
    double most; /* of which the hyperbolic tangent is one */
} Exponential;

static const Exponential of_float = {
    12582912.0,
    0x4b400000u,
    127,
    23,
    {0.693145752, 1.42860677e-06},
    {0.5, 0.166666672, 0.041666463, 0.00833331048, 0.00139336742, 0.000198910173},
    6,
    10};
static const Exponential of_double = {6755399441055744.0,
                                      0x4338000000000000u,
                                      1023,
                                      52,
                                      {0.69314718036912382, 1.9082149292705877e-10},
                                      {0.5, 0.1666666666666667, 0.041666666666666667, 0.00833333333332612,
                                       0.0013888888888883737, 0.00019841269874873975, 2.480158732558584e-05,
                                       2.755725533255441e-06, 2.7557273594799413e-07, 2.510524515390137e-08,
                                       2.0914707069612355e-09},
                                      11,
                                      20};

/* e^x is 2^whole * (1 + more). */
typedef struct Power {
    LLVMValueRef shifted, whole, more; /* shifted: whole, in its last bits */
} Power;

static Power power_of(Floats p, LLVMValueRef x, const Exponential *by) {
    LLVMBuilderRef b = p.e->builder;
    LLVMValueRef shifted = fused(p, x, number(p, 1.4426950408889634), number(p, by->shift));
    LLVMValueRef whole = LLVMBuildFSub(b, shifted, number(p, by->shift), ""),
                 rest = fused(p, whole, number(p, -by->ln2[0]), x);
    rest = fused(p, whole, number(p, -by->ln2[1]), rest);
    LLVMValueRef square = LLVMBuildFMul(b, rest, rest, "");
    LLVMValueRef more = fused(p, square, polynomial(p, rest, square, by->terms, by->count), rest);
    return (Power){shifted, whole, more};
}

/* One less than e^x, for x not above zero. */
static LLVMValueRef exponential_less_one(Floats p, LLVMValueRef x, const Exponential *by) {
    LLVMBuilderRef b = p.e->builder;
    Power of = power_of(p, x, by);
    LLVMValueRef bits = LLVMBuildBitCast(b, of.shifted, p.bits, "");
    bits = LLVMBuildAdd(b, bits, integer(p, by->bias - by->shift_bits), "");
    LLVMValueRef power = LLVMBuildBitCast(b, LLVMBuildShl(b, bits, integer(p, by->fraction), ""), p.type, "");
    return fused(p, power, of.more, LLVMBuildFSub(b, power, number(p, 1), ""));
}

/* Not less and not more than these, or no number. */
static LLVMValueRef within(Floats p, LLVMValueRef x, double least, double most) {
    LLVMBuilderRef b = p.e->builder;
    LLVMValueRef is_more = LLVMBuildFCmp(b, LLVMRealOGT, x, number(p, most), "");
    x = LLVMBuildSelect(b, is_more, number(p, most), x, "");
    LLVMValueRef is_less = LLVMBuildFCmp(b, LLVMRealOLT, x, number(p, least), "");
    return LLVMBuildSelect(b, is_less, number(p, least), x, "");
}

/* Times 2^whole, which may be out of range: the product need not be, or becomes infinity, or zero. */
static LLVMValueRef scaled(Floats p, LLVMValueRef x, LLVMValueRef whole) {
    enum { AS_EVER = 4, WIDEST = 512 }; /* how it is rounded; bits */
    bool is_float = LLVMGetElementType(p.type) == p.e->f32;
    unsigned count = LLVMGetVectorSize(p.type), bits = count * (is_float ? 32 : 64);
    LLVMTypeRef mask = count == 16 ? p.e->i16 : p.e->i8;
    LLVMValueRef args[] = {x, whole, LLVMGetUndef(p.type), LLVMConstAllOnes(mask), emit_i32(p.e, AS_EVER)};
    const char *name =
        format_text(&p.e->arena, "llvm.x86.avx512.mask.scalef.%s.%u", is_float ? "ps" : "pd", bits);
    return emit_intrinsic(p.e, name, NULL, 0, args, bits == WIDEST ? 5 : 4);
}

bool emit_has_exponential(const Emitter *e, LLVMTypeRef vector) {
    unsigned bits = LLVMGetVectorSize(vector) * (LLVMGetElementType(vector) == e->f32 ? 32 : 64);
    return (bits == 256 || bits == 512) && strstr(e->features, "+avx512vl") && e->options->level >= 3 &&
           emit_floats(e) != EMIT_floats_strict;
}

LLVMValueRef emit_exponential(Emitter *e, LLVMValueRef x) {
    LLVMTypeRef type = LLVMTypeOf(x);
    bool is_float = LLVMGetElementType(type) == e->f32;
    Types *types = e->module->types;
    const Type *each = type_basic(types, is_float ? TYPE_float : TYPE_double);
    Floats p = {e, type_vector(types, each, (int)LLVMGetVectorSize(type)), type, NULL};
    x = within(p, x, is_float ? -104 : -750, is_float ? 89 : 710); /* beyond, it is zero or infinity */
    Power of = power_of(p, x, is_float ? &of_float : &of_double);
    return scaled(p, LLVMBuildFAdd(e->builder, of.more, number(p, 1), ""), of.whole);
}

/* The hyperbolic tangent takes a third of the time of a call so, and a loop with it can become vectors; it
 * errs by up to 2.5 units in the last place, as those of libraries for vectors do. C has the same
 * (emit/clike/elementary.c). */
static LLVMValueRef tanh_in_place(Emitter *e, const Type *shape, LLVMValueRef x) {
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef type = LLVMTypeOf(x);
    bool is_float = (shape->kind == TYPE_vector ? LLVMGetElementType(type) : type) == e->f32;
    const Exponential *by = is_float ? &of_float : &of_double;
    Floats p = {e, shape, type, emit_shaped(is_float ? e->i32 : e->i64, shape)};
    LLVMValueRef size = emit_intrinsic(e, "llvm.fabs", &type, 1, &x, 1), most = number(p, by->most);
    LLVMValueRef is_large = LLVMBuildFCmp(b, LLVMRealOGT, size, most, "");
    LLVMValueRef moderate = LLVMBuildSelect(b, is_large, most, size, "");
    LLVMValueRef less = exponential_less_one(p, LLVMBuildFMul(b, moderate, number(p, -2), ""), by);
    LLVMValueRef result = LLVMBuildFDiv(b, less, LLVMBuildFAdd(b, less, number(p, 2), ""), "");
    LLVMValueRef args[] = {result, x};
    return emit_intrinsic(e, "llvm.copysign", &type, 1, args, 2);
}

/* Where there are functions for vectors, those of floats are as fast. */
static bool is_in_place(const Emitter *e, unsigned op, const Type *shape) {
    return op == OP_tanh && !e->device && e->habits.fuses && e->options->level >= 3 &&
           emit_floats(e) != EMIT_floats_strict &&
           (type_bits(type_element(shape)) == 64 || !emit_knows_vectors());
}

static LLVMValueRef compute(Emitter *e, unsigned op, const Type *shape, LLVMValueRef *args, int nargs) {
    const char *intrinsic = intrinsic_of(e, op), *name = function_name(op);
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    LLVMValueRef at_once =
        is_of_lanes(e, shape) && op_is_elementary(op) ? emit_lanes_call(e, name, args, nargs) : NULL;
    if (is_in_place(e, op, shape)) return tanh_in_place(e, shape, args[0]);
    if (at_once) return at_once;
    if (!intrinsic && shape->kind == TYPE_vector) return call_by_lane(e, name, shape, args, nargs);
    LLVMValueRef call = intrinsic ? emit_intrinsic(e, intrinsic, &type, 1, args, nargs)
                                  : call_library(e, name, type, args, nargs);
    if (!e->device) emit_lanes(e, call, name);
    return call;
}

LLVMValueRef emit_math(Emitter *e, const Inst *inst) {
    if (!is_function(inst->op)) return NULL;
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
    LLVMValueRef result = compute(e, inst->op, type, args, inst->nargs);
    return half ? LLVMBuildFPTrunc(e->builder, result, emit_type(e, type), "") : result;
}
