/* Code in memory: ORC's LLJIT holds the objects of all modules added to it. Symbols of the runtime and of the
 * C library are given to it by address, so that nothing depends on what the process exports. */
#define _GNU_SOURCE /* sincos */
#include "emit/llvm/llvm.h"
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct EmitJit {
    LLVMOrcLLJITRef lljit;
    Runtime *runtime; /* `slope.runtime` of the code points here */
    const EmitCache *cache;
    char **defined; /* symbols of all modules */
    int ndefined, nmodules;
    bool has_lanes;   /* of the library that lanes.c names functions of */
    char report[512]; /* what the execution session said first since it was last asked */
};

typedef union Address { /* of functions as integers */
    void (*function)(void);
    void *data;
    uintptr_t bits;
} Address;

/* ---- the C library */

/* Conversions of half on processors without instructions for it. LLVM passes a half in the low bits of a
 * vector register, where C passes a float. */
#if defined(__x86_64__)
static float widen_half(float packed) {
    uint32_t bits;
    memcpy(&bits, &packed, sizeof bits);
    return half_to_float((uint16_t)bits);
}

static float packed_half(uint16_t half) {
    uint32_t bits = half;
    float packed;
    memcpy(&packed, &bits, sizeof packed);
    return packed;
}

static float narrow_float(float value) { return packed_half(half_from_float(value)); }
static float narrow_double(double value) { return packed_half(half_from_double(value)); }
#endif

#define ROW(name)                                                                                            \
    { #name, (void (*)(void))name }
#define BOTH(name) ROW(name), ROW(name##f)

/* What emitter and LLVM may call: elementary functions for double and float, memory. */
static const RtSymbol *library_symbols(int *count) {
    static const RtSymbol rows[] = {
        BOTH(sin),
        BOTH(cos),
        BOTH(tan),
        BOTH(asin),
        BOTH(acos),
        BOTH(atan),
        BOTH(atan2),
        BOTH(sinh),
        BOTH(cosh),
        BOTH(tanh),
        BOTH(asinh),
        BOTH(acosh),
        BOTH(atanh),
        BOTH(exp),
        BOTH(exp2),
        BOTH(log),
        BOTH(log2),
        BOTH(log10),
        BOTH(pow),
        BOTH(lgamma),
        BOTH(erfc),
        BOTH(erf),
        BOTH(hypot),
        BOTH(log1p),
        BOTH(sqrt),
        BOTH(floor),
        BOTH(ceil),
        BOTH(trunc),
        BOTH(rint),
        BOTH(round),
        BOTH(fma),
        BOTH(fmod),
        BOTH(ldexp),
        BOTH(fmin),
        BOTH(fmax),
        BOTH(fabs),
        BOTH(cbrt),
        BOTH(sincos),
        BOTH(exp10),
        BOTH(nearbyint),
        BOTH(expm1),
        BOTH(copysign),
        ROW(memcpy),
        ROW(memset),
        ROW(memmove),
        ROW(memcmp),
#if defined(__x86_64__)
        {"__extendhfsf2", (void (*)(void))widen_half},
        {"__truncsfhf2", (void (*)(void))narrow_float},
        {"__truncdfhf2", (void (*)(void))narrow_double},
#endif
    };
    *count = (int)(sizeof rows / sizeof *rows);
    return rows;
}

/* ---- symbols by address */

static LLVMOrcCSymbolMapPair absolute(EmitJit *jit, const char *name, Address address, bool is_function) {
    uint8_t flags = LLVMJITSymbolGenericFlagsExported;
    if (is_function) flags |= LLVMJITSymbolGenericFlagsCallable;
    return (LLVMOrcCSymbolMapPair){LLVMOrcLLJITMangleAndIntern(jit->lljit, name), {address.bits, {flags, 0}}};
}

static bool define_symbols(EmitJit *jit, const EmitJitConfig *config, EmitError *error) {
    int nlibrary, count = 0;
    const RtSymbol *library = library_symbols(&nlibrary);
    LLVMOrcCSymbolMapPair *pairs = calloc((size_t)(nlibrary + config->nsymbols + 1), sizeof *pairs);
    if (!pairs) {
        error_set(error, "out of memory");
        return false;
    }
    for (int i = 0; i < nlibrary; i++)
        pairs[count++] = absolute(jit, library[i].name, (Address){.function = library[i].address}, true);
    for (int i = 0; i < config->nsymbols; i++)
        pairs[count++] =
            absolute(jit, config->symbols[i].name, (Address){.function = config->symbols[i].address}, true);
    pairs[count++] = absolute(jit, "slope.runtime", (Address){.data = &jit->runtime}, false);
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs, (size_t)count);
    LLVMErrorRef failure = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit->lljit), unit);
    free(pairs);
    if (!failure) return true;
    LLVMOrcDisposeMaterializationUnit(unit);
    error_take(error, failure);
    return false;
}

/* What else LLVM may come up with is looked for in the process. */
static bool search_process(EmitJit *jit, EmitError *error) {
    LLVMOrcDefinitionGeneratorRef generator;
    LLVMErrorRef failure = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
        &generator, LLVMOrcLLJITGetGlobalPrefix(jit->lljit), NULL, NULL);
    if (failure) {
        error_take(error, failure);
        return false;
    }
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit->lljit), generator);
    return true;
}

static bool search_lanes(EmitJit *jit, const char *library, EmitError *error) {
    LLVMOrcDefinitionGeneratorRef generator;
    LLVMErrorRef failure = LLVMOrcCreateDynamicLibrarySearchGeneratorForPath(
        &generator, library, LLVMOrcLLJITGetGlobalPrefix(jit->lljit), NULL, NULL);
    if (failure) {
        error_take(error, failure);
        return false;
    }
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit->lljit), generator);
    return jit->has_lanes = true;
}

/* Says what is missing, where the error of the lookup only lists all that fails because of it. */
static void keep_report(void *user, LLVMErrorRef failure) {
    EmitJit *jit = user;
    char *message = LLVMGetErrorMessage(failure);
    if (!jit->report[0]) snprintf(jit->report, sizeof jit->report, "%s", message);
    LLVMDisposeErrorMessage(message);
}

/* It is given objects alone, so that it need not know which processor this is: to find out takes LLVM longer
 * than all else here. */
static LLVMErrorRef new_lljit(LLVMOrcLLJITRef *lljit) {
    char *triple = LLVMGetDefaultTargetTriple(), *message = NULL;
    LLVMTargetRef target = NULL;
    LLVMOrcLLJITBuilderRef builder = NULL;
    if (!LLVMGetTargetFromTriple(triple, &target, &message)) {
        LLVMTargetMachineRef any = LLVMCreateTargetMachine(target, triple, "", "", LLVMCodeGenLevelNone,
                                                           LLVMRelocPIC, LLVMCodeModelJITDefault);
        builder = LLVMOrcCreateLLJITBuilder();
        LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
            builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(any));
    }
    LLVMDisposeMessage(message);
    LLVMDisposeMessage(triple);
    return LLVMOrcCreateLLJIT(lljit, builder);
}

EmitJit *jit_new(const EmitJitConfig *config, EmitError *error) {
    error->text[0] = '\0';
    EmitJit *jit = calloc(1, sizeof *jit);
    if (!jit) {
        error_set(error, "out of memory");
        return NULL;
    }
    jit->runtime = config->runtime;
    jit->cache = config->cache;
    LLVMErrorRef failure = new_lljit(&jit->lljit);
    if (failure) {
        error_take(error, failure);
        free(jit);
        return NULL;
    }
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit->lljit), keep_report, jit);
    if (define_symbols(jit, config, error) && search_process(jit, error)) return jit;
    jit_free(jit);
    return NULL;
}

void jit_free(EmitJit *jit) {
    if (!jit) return;
    LLVMErrorRef failure = LLVMOrcDisposeLLJIT(jit->lljit);
    if (failure) LLVMConsumeError(failure);
    for (int i = 0; i < jit->ndefined; i++) free(jit->defined[i]);
    free(jit->defined);
    free(jit);
}

/* ---- modules */

static bool is_defined(void *user, const char *symbol) {
    const EmitJit *jit = user;
    for (int i = 0; i < jit->ndefined; i++)
        if (strcmp(jit->defined[i], symbol) == 0) return true;
    return false;
}

/* Takes the symbols over from the translation. */
static bool remember_defined(EmitJit *jit, Translation *t) {
    int count = jit->ndefined + t->ndefined;
    char **all = realloc(jit->defined, sizeof *all * (size_t)(count + 1));
    if (!all) return false;
    jit->defined = all;
    for (int i = 0; i < t->ndefined; i++) jit->defined[jit->ndefined++] = t->defined[i];
    t->ndefined = 0;
    return true;
}

static void *look_up(EmitJit *jit, const char *symbol, EmitError *error) {
    LLVMOrcExecutorAddress address = 0;
    LLVMErrorRef failure = LLVMOrcLLJITLookup(jit->lljit, &address, symbol);
    if (!failure) return (void *)(uintptr_t)address;
    if (error && jit->report[0]) error_set(error, "LLVM: %s", jit->report);
    if (error && !jit->report[0]) error_take(error, failure);
    else LLVMConsumeError(failure);
    jit->report[0] = '\0';
    return NULL;
}

/* NULL after an error */
static LLVMMemoryBufferRef make_object(Translation *t, const EmitOptions *options, EmitTimes *times,
                                       EmitError *error) {
    if (!translation_optimise(t, options, times, error)) return NULL;
    double start = milliseconds();
    char *message = NULL;
    LLVMMemoryBufferRef object = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(t->machine, t->llvm, LLVMObjectFile, &message, &object)) {
        error_set(error, "no machine code: %s", message);
        LLVMDisposeMessage(message);
    }
    if (times) times->machine += milliseconds() - start;
    return object;
}

static LLVMMemoryBufferRef find_or_make(EmitJit *jit, Translation *t, const EmitOptions *options,
                                        EmitTimes *times, EmitError *error) {
    if (!jit->cache) return make_object(t, options, times, error);
    CacheKey key = cache_key(t, options);
    LLVMMemoryBufferRef object = cache_find(jit->cache, &key);
    if (!object) {
        object = make_object(t, options, times, error);
        if (object) cache_keep(jit->cache, &key, object);
    }
    free(key.bytes);
    return object;
}

static bool load_object(EmitJit *jit, LLVMMemoryBufferRef object, EmitError *error) {
    LLVMErrorRef failure =
        LLVMOrcLLJITAddObjectFile(jit->lljit, LLVMOrcLLJITGetMainJITDylib(jit->lljit), object);
    if (!failure) return true;
    error_take(error, failure);
    return false;
}

/* Asks for every symbol, so that missing ones are reported now, and runs the initialiser. */
static bool link_and_start(EmitJit *jit, const Translation *t, EmitError *error) {
    for (int i = 0; i < t->ndefined; i++)
        if (!look_up(jit, t->defined[i], error)) return false;
    if (!t->init_symbol[0]) return true;
    Address init = {.data = look_up(jit, t->init_symbol, error)};
    if (!init.data) return false;
    init.function();
    return true;
}

bool jit_add(EmitJit *jit, Module *module, const EmitOptions *options, EmitTimes *times, EmitError *error) {
    Translation t;
    TranslateWish wish = {.for_jit = true, .number = jit->nmodules, .is_defined = is_defined, .user = jit};
    if (!translate(module, options, &wish, &t, times, error)) return false;
    LLVMMemoryBufferRef object = find_or_make(jit, &t, options, times, error);
    double start = milliseconds();
    jit->nmodules++;
    bool fine = object && (!t.lanes_library || jit->has_lanes || search_lanes(jit, t.lanes_library, error));
    if (object && !fine) LLVMDisposeMemoryBuffer(object);
    fine = fine && load_object(jit, object, error) && link_and_start(jit, &t, error);
    if (fine && !remember_defined(jit, &t)) {
        error_set(error, "out of memory");
        fine = false;
    }
    if (times) times->machine += milliseconds() - start;
    translation_free(&t);
    return fine;
}

void *jit_find(EmitJit *jit, EmitSymbol what, const char *name) {
    static const char *const suffixes[] = {
        [EMIT_native] = "", [EMIT_call] = ".call", [EMIT_kernel] = ".kernel", [EMIT_uniform] = ""};
    size_t length = strlen(name) + 32;
    char *symbol = malloc(length);
    if (!symbol) return NULL;
    snprintf(symbol, length, "slope.%s%s", name, suffixes[what]);
    void *address = look_up(jit, symbol, NULL);
    free(symbol);
    return address;
}

void jit_call(EmitJit *jit, void *function, void *const *args) {
    void (*call)(void *const *) = NULL;
    (void)jit;
    memcpy(&call, &function, sizeof call); /* ISO C has no such cast */
    call(args);
}
