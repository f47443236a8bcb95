/* Elementary functions of several numbers at once. The C library of GNU/Linux on x86-64 has them (libmvec). Each call of a scalar
 * function says which others do the same on vectors ("vector-function-abi-variant"), and LLVM takes those where it vectorises:
 *
 *   call float @llvm.exp.f32(float %x) "vector-function-abi-variant"="_ZGV_LLVM_N8v_llvm.exp.f32(_ZGVdN8v_expf)"
 *
 * They are less accurate than the scalar ones, by up to 4 units in the last place (docs/accuracy.md), hence at -O3 only. */
#include "emit/llvm/llvm.h"

#if defined(__x86_64__) && defined(__GLIBC__)
static const bool is_available = true;
#else
static const bool is_available = false;
#endif

/* Registers that functions exist for, by the letter in their names. */
static const struct {
    char letter;
    unsigned bits;
    const char *feature; /* of the processor; NULL: all have it */
} registers[] = {{'b', 128, NULL}, {'d', 256, "+avx2"}, {'e', 512, "+avx512f"}};
enum { KINDS = sizeof registers / sizeof *registers };

static bool has_lanes(Emitter *e, const char *library) {
    static const char with_lanes[] =
        " sin cos exp log pow"
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
        " tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp2 log2 log10"
#endif
        " ";
    return strstr(with_lanes, format_text(&e->arena, " %s ", library)) != NULL;
}

/* Keeps the declarations until vectorisation, though nothing calls them yet. */
void emit_lanes_keep(Emitter *e) {
    if (e->lanes.count == 0) return;
    LLVMValueRef all = LLVMConstArray2(e->ptr, e->lanes.at, (uint64_t)e->lanes.count);
    LLVMValueRef used = LLVMAddGlobal(e->llvm, LLVMTypeOf(all), "llvm.compiler.used");
    LLVMSetInitializer(used, all);
    LLVMSetLinkage(used, LLVMAppendingLinkage);
    LLVMSetSection(used, "llvm.metadata");
}

typedef struct Version {
    const char *name;
    LLVMTypeRef type; /* the vector */
    unsigned lanes;
} Version;

static bool is_usable(const Emitter *e, int kind) {
    return !registers[kind].feature || strstr(e->features, registers[kind].feature);
}

static Version version_of(Emitter *e, int kind, const char *library, LLVMTypeRef real, int nargs) {
    unsigned lanes = registers[kind].bits / (real == e->f32 ? 32 : 64);
    const char *name = format_text(&e->arena, "_ZGV%cN%u%s_%s%s", registers[kind].letter, lanes,
                                   nargs == 2 ? "vv" : "v", library, real == e->f32 ? "f" : "");
    return (Version){name, LLVMVectorType(real, lanes), lanes};
}

static LLVMValueRef declare(Emitter *e, Version version, int nargs) {
    LLVMValueRef function = LLVMGetNamedFunction(e->llvm, version.name);
    if (function) return function;
    LLVMTypeRef types[] = {version.type, version.type};
    function =
        emit_external(e, version.name, version.type, types, nargs, "nounwind willreturn memory nofree");
    vec_push(&e->arena, &e->lanes, function);
    return function;
}

static bool applies(Emitter *e, const char *library, LLVMTypeRef real) {
    return is_available && e->options->level >= 3 && (real == e->f32 || real == e->f64) &&
           has_lanes(e, library);
}

void emit_lanes(Emitter *e, LLVMValueRef call, const char *library) {
    LLVMTypeRef real = LLVMTypeOf(call);
    if (!applies(e, library, real)) return;
    int nargs = (int)LLVMGetNumArgOperands(call);
    size_t length;
    const char *scalar = LLVMGetValueName2(LLVMGetCalledValue(call), &length);
    Text variants = {.arena = &e->arena};
    for (int kind = 0; kind < KINDS; kind++) {
        if (!is_usable(e, kind)) continue;
        Version version = version_of(e, kind, library, real, nargs);
        declare(e, version, nargs);
        text_printf(&variants, "%s_ZGV_LLVM_N%u%s_%s(%s)", variants.len ? "," : "", version.lanes,
                    nargs == 2 ? "vv" : "v", scalar, version.name);
    }
    emit_call_attribute(e, call, "vector-function-abi-variant", variants.at);
}
