/* Elementary functions of several numbers at once. The C library of GNU/Linux on x86-64 has them (libmvec),
 * newer ones on arm64 too; else SLEEF has them there, by the same names, if it is installed. They are called
 * in two ways.
 *
 * Where items of a kernel are lanes (opt/lanes.c), the numbers of all lanes go to one of them, in as many
 * parts as it takes. What is not found is called lane by lane.
 *
 * On x86-64 each call of a scalar function says which others do the same on vectors
 * ("vector-function-abi-variant"), and LLVM takes those where it vectorises:
 *
 *   call float @llvm.exp.f32(float %x) "vector-function-abi-variant"="_ZGV_LLVM_N8v_llvm.exp.f32(_ZGVdN8v_expf)"
 *
 * Some are our own, of this module, and computed in place (emit_exponential).
 *
 * On arm64 they are looked for when code is made, and only for code that runs at once: a file must not depend
 * on what is installed here. They are less accurate than the scalar ones, by up to 4 units in the last place
 * (docs/accuracy.md), hence at -O3 only. */
#define _GNU_SOURCE
#include "emit/elementary.h"
#include "emit/llvm/llvm.h"

#include <dlfcn.h>
#include <stdio.h>

#if defined(__x86_64__) && defined(__GLIBC__)
static const bool is_available = true;
static const bool is_searched = false;
#elif defined(__aarch64__)
static const bool is_available = false;
static const bool is_searched = true;
#else
static const bool is_available = false;
static const bool is_searched = false;
#endif

/* Registers that functions exist for, by the letter in their names. */
static const struct {
    char letter;
    unsigned bits;
    const char *feature; /* of the processor; NULL: all have it */
} registers[] = {
#if defined(__aarch64__)
    {'n', 128, NULL},
#else
    {'b', 128, NULL},
    {'d', 256, "+avx2"},
    {'e', 512, "+avx512f"},
#endif
};
enum { KINDS = sizeof registers / sizeof *registers };

static bool has_lanes(const char *library) {
#if defined(__GLIBC__)
    int since = emit_vectors_since(library);
    return since > 0 && __GLIBC_PREREQ(2, since);
#else
    (void)library;
    return false;
#endif
}

bool emit_knows_vectors(void) { return is_available; }

const char *emit_lanes_library(const Emitter *e) { return is_available ? "libmvec.so.1" : e->lanes_library; }

static const char sleef[] = "libsleefgnuabi.so.3";

/* The first that has functions of this kind. It stays open: code may call it as long as the process lives. */
static void *open_library(Emitter *e) {
    static const char *const names[] = {"libmvec.so.1", sleef};
    if (e->lanes_searched) return e->lanes_opened;
    e->lanes_searched = true;
    for (size_t i = 0; i < sizeof names / sizeof *names && !e->lanes_opened; i++) {
        void *opened = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (opened && dlsym(opened, "_ZGVnN4v_expf")) e->lanes_opened = opened, e->lanes_library = names[i];
        else if (opened) dlclose(opened);
    }
    return e->lanes_opened;
}

/* Scalar functions that are better than those of SLEEF for vectors of 128 bits. Some are faster, more of them
 * for double: by 1.1 (asin) to 10 (erfc). SLEEF gives infinity too soon for others: sinh and cosh from 88 on,
 * asinh and acosh of what has no square, log1p from 1e38 on. */
static bool is_better_alone(const Emitter *e, const char *library, LLVMTypeRef real) {
    static const char of_all[] = " pow lgamma hypot erf erfc sinh cosh asinh acosh log1p ",
                      of_doubles[] = " asin acos atan atan2 atanh exp exp2 log log2 log10 expm1 ";
    char word[32];
    snprintf(word, sizeof word, " %s ", library);
    return strcmp(e->lanes_library, sleef) == 0 &&
           (strstr(of_all, word) || (real == e->f64 && strstr(of_doubles, word)));
}

/* The name that it has there: SLEEF has several of most functions, of which the faster err by up to 3.5
 * units, not 1. */
static const char *name_there(Emitter *e, const char *library, LLVMTypeRef real, const char *version) {
    if (is_available) return has_lanes(library) ? version : NULL;
    void *opened = is_searched && e->for_jit ? open_library(e) : NULL;
    const char *faster = format_text(&e->arena, "%s_u35", version);
    if (!opened || is_better_alone(e, library, real)) return NULL;
    return dlsym(opened, faster) ? faster : dlsym(opened, version) ? version : NULL;
}

/* Declarations stay until vectorisation, though nothing calls them yet; functions as they are declared. */
void emit_lanes_keep(Emitter *e) {
    if (e->kept.count == 0) return;
    LLVMValueRef all = LLVMConstArray2(e->ptr, e->kept.at, (uint64_t)e->kept.count);
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
    vec_push(&e->arena, &e->kept, function);
    return function;
}

/* e^x of doubles takes 3 times as long by the C library, of floats 1.5 times: these gain in rounds of a loop that
 * are done together, and lose in kernels (a mixture 1.17, volume rendering 1.08). */
static bool is_own(const Emitter *e, const char *library, Version version) {
    bool gains = LLVMGetElementType(version.type) == e->f64 || e->at->info->func->rounds;
    return strcmp(library, "exp") == 0 && gains && emit_has_exponential(e, version.type);
}

/* Calls are made of it like any other function for vectors, and then replaced by what it does: it is there
 * for that alone. */
static LLVMValueRef define_exponential(Emitter *e, Version version) {
    const char *name = format_text(&e->arena, "slope.exp%s.%u",
                                   LLVMGetElementType(version.type) == e->f32 ? "f" : "", version.lanes);
    LLVMValueRef function = LLVMGetNamedFunction(e->llvm, name);
    if (function) return function;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(e->builder);
    function = emit_external(e, name, version.type, &version.type, 1,
                             "nounwind willreturn memory nofree alwaysinline");
    LLVMSetLinkage(function, LLVMAvailableExternallyLinkage);
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, function, ""));
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    LLVMBuildRet(e->builder, emit_exponential(e, LLVMGetParam(function, 0)));
    LLVMPositionBuilderAtEnd(e->builder, here);
    LLVMSetCurrentDebugLocation2(e->builder, place);
    vec_push(&e->arena, &e->kept, function);
    return function;
}

static bool applies(Emitter *e, const char *library, LLVMTypeRef real) {
    return is_available && e->options->level >= 3 && (real == e->f32 || real == e->f64) && has_lanes(library);
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
        /* In a loop, whose rounds wait for each other as a rule, that of floats is no better. */
        if (real == e->f64 && is_own(e, library, version))
            version.name = LLVMGetValueName(define_exponential(e, version));
        else declare(e, version, nargs);
        text_printf(&variants, "%s_ZGV_LLVM_N%u%s_%s(%s)", variants.len ? "," : "", version.lanes,
                    nargs == 2 ? "vv" : "v", scalar, version.name);
    }
    emit_call_attribute(e, call, "vector-function-abi-variant", variants.at);
}

/* ---- calls for lanes */

/* Numbers `first` and those that follow it. */
static LLVMValueRef part_of(Emitter *e, LLVMValueRef vector, unsigned first, unsigned count) {
    LLVMValueRef lanes[64];
    for (unsigned i = 0; i < count; i++) lanes[i] = emit_i32(e, first + i);
    return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                  LLVMConstVector(lanes, count), "");
}

LLVMValueRef emit_joined(Emitter *e, LLVMValueRef *parts, unsigned nparts) {
    for (; nparts > 1; nparts /= 2)
        for (unsigned i = 0; i < nparts / 2; i++) {
            unsigned count = 2 * LLVMGetVectorSize(LLVMTypeOf(parts[2 * i]));
            LLVMValueRef lanes[64];
            for (unsigned k = 0; k < count; k++) lanes[k] = emit_i32(e, k);
            parts[i] = LLVMBuildShuffleVector(e->builder, parts[2 * i], parts[2 * i + 1],
                                              LLVMConstVector(lanes, count), "");
        }
    return parts[0];
}

/* The widest that takes no more than there are. */
static bool choose_version(Emitter *e, const char *library, LLVMTypeRef type, int nargs, Version *version) {
    bool found = false;
    for (int kind = 0; kind < KINDS; kind++) {
        Version next = version_of(e, kind, library, LLVMGetElementType(type), nargs);
        if (next.lanes > LLVMGetVectorSize(type) || !is_usable(e, kind)) continue;
        next.name = name_there(e, library, LLVMGetElementType(type), next.name);
        if (!next.name) continue;
        *version = next;
        found = true;
    }
    return found;
}

static LLVMValueRef chosen_function(Emitter *e, const char *library, Version version, int nargs) {
    LLVMTypeRef types[] = {version.type, version.type};
    if (is_own(e, library, version)) return define_exponential(e, version);
    e->calls_lanes = true;
    return emit_external(e, version.name, version.type, types, nargs, "nounwind willreturn memory nofree");
}

LLVMValueRef emit_lanes_call(Emitter *e, const char *library, LLVMValueRef *args, int nargs) {
    LLVMTypeRef type = LLVMTypeOf(args[0]), real = LLVMGetElementType(type);
    Version version = {0};
    if (e->options->level < 3 || (real != e->f32 && real != e->f64)) return NULL;
    if (!choose_version(e, library, type, nargs, &version)) return NULL;
    LLVMValueRef function = chosen_function(e, library, version, nargs), parts[64];
    unsigned nparts = LLVMGetVectorSize(type) / version.lanes;
    for (unsigned i = 0; i < nparts; i++) {
        LLVMValueRef some[2];
        for (int k = 0; k < nargs; k++)
            some[k] = nparts == 1 ? args[k] : part_of(e, args[k], i * version.lanes, version.lanes);
        parts[i] = emit_call_external(e, function, some, nargs);
    }
    return emit_joined(e, parts, nparts);
}
