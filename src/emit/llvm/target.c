/* The machine that code is made for, and LLVM's optimisations for it. */
#include "emit/llvm/llvm.h"
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* LLVM's registry of targets is its own; this runs once, when the shared object is loaded. */
__attribute__((constructor)) static void initialise_targets(void) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
}

bool target_masks_vectors(void) {
#if defined(__aarch64__) && defined(__linux__)
    const unsigned long has_sve = 1UL << 22;
    return getauxval(AT_HWCAP) & has_sve;
#elif defined(__aarch64__)
    return false;
#else
    return true;
#endif
}

/* LLVM may name a processor whose scalable vectors the kernel does not let us use. And where x86 compares
 * vectors of half by itself, LLVM 19 exchanges the operands of some comparisons, but not their sense (masked
 * ones, with one operand in memory). */
static const char *forbidden_features(void) {
#if defined(__x86_64__)
    return ",-avx512fp16";
#elif defined(__aarch64__) && defined(__linux__)
    if (!target_masks_vectors())
        return ",-sve,-sve2,-sve2-aes,-sve2-sm4,-sve2-sha3,-sve2-bitperm,-sve2p1,-sme,-sme2";
#endif
    return "";
}

/* From Skylake to Rocket Lake, microcode lets a gather wait so that nobody learns what others have loaded
 * (Gather Data Sampling): 28 cycles for eight floats that loads bring in 7, which LLVM does not know. What it
 * would gather or scatter takes a third of the time number by number. Lanes, of which some may be off, gain by
 * such an instruction nevertheless (wide.c). */
static const char *unwanted_features(const char *cpu) {
    static const char *const names[] = {"skylake",        "skylake-avx512", "cascadelake",
                                        "cooperlake",     "cannonlake",     "icelake-client",
                                        "icelake-server", "tigerlake",      "rocketlake"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(cpu, names[i]) == 0) return ",+prefer-no-gather,+prefer-no-scatter";
    return "";
}

/* To be freed; NULL: no memory. */
static char *features_of(const EmitOptions *options, const char *cpu) {
    const char *named = options->features ? options->features : "", *unwanted = unwanted_features(cpu);
    char *own = options->cpu ? LLVMCreateMessage(named) : LLVMGetHostCPUFeatures();
    const char *forbidden = options->cpu ? "" : forbidden_features();
    size_t size = strlen(own) + strlen(forbidden) + strlen(unwanted) + 1;
    char *all = malloc(size);
    if (all) snprintf(all, size, "%s%s%s", own, forbidden, unwanted);
    LLVMDisposeMessage(own);
    return all;
}

static int known_level(int level) { return level < 0 ? 0 : level > 3 ? 3 : level; }

static LLVMCodeGenOptLevel machine_level(int level) {
    static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                                 LLVMCodeGenLevelDefault, LLVMCodeGenLevelAggressive};
    return levels[known_level(level)];
}

static LLVMTargetMachineRef new_machine(const EmitOptions *options, EmitError *error) {
    char *triple = LLVMGetDefaultTargetTriple(), *message = NULL;
    char *cpu = options->cpu ? LLVMCreateMessage(options->cpu) : LLVMGetHostCPUName();
    char *features = features_of(options, cpu);
    LLVMTargetRef target = NULL;
    LLVMTargetMachineRef machine = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message))
        error_set(error, "no code generator: %s", message);
    else if (!features) error_set(error, "out of memory");
    else
        machine = LLVMCreateTargetMachine(target, triple, cpu, features, machine_level(options->level),
                                          LLVMRelocPIC, LLVMCodeModelDefault);
    if (target && features && !machine) error_set(error, "no code generator for processor '%s'", cpu);
    /* On arm64 it is the default of -O0, and does not end on some vectors of three. */
    if (machine) LLVMSetTargetMachineGlobalISel(machine, false);
    LLVMDisposeMessage(message);
    free(features);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(triple);
    return machine;
}

/* Where that of a level is between two translations: to make one, and all that LLVM asks of it first, takes
 * as long as to compile a line. NULL: nowhere. */
static void **spare_of(const EmitOptions *options) {
    return options->spare && !options->cpu ? &options->spare->machines[known_level(options->level)] : NULL;
}

LLVMTargetMachineRef target_machine(const EmitOptions *options, EmitError *error) {
    void **spare = spare_of(options);
    LLVMTargetMachineRef known = spare ? *spare : NULL;
    if (!known) return new_machine(options, error);
    *spare = NULL;
    return known;
}

void target_give_back(LLVMTargetMachineRef machine, const EmitOptions *options) {
    void **spare = spare_of(options);
    if (spare && !*spare) *spare = machine;
    else LLVMDisposeTargetMachine(machine);
}

void target_forget(EmitSpare *spare) {
    for (size_t i = 0; i < sizeof spare->machines / sizeof spare->machines[0]; i++)
        if (spare->machines[i]) LLVMDisposeTargetMachine(spare->machines[i]);
    *spare = (EmitSpare){{NULL}};
}

/* ---- a GPU */

#ifdef SLOPE_NVPTX
/* The newest that LLVM knows and that is not newer; the driver translates for newer ones. PTX is of the
 * version that brought them, and at least of 7.5, which has all that debuggers want. */
static const char *device_model(int capability, const char **features) {
    static const struct {
        int capability;
        const char *name, *features;
    } models[] = {{90, "sm_90", "+ptx78"}, {89, "sm_89", "+ptx78"}, {86, "sm_86", "+ptx75"},
                  {80, "sm_80", "+ptx75"}, {75, "sm_75", "+ptx75"}, {0, "sm_70", "+ptx75"}};
    const int last = (int)(sizeof models / sizeof *models) - 1;
    int at = 0;
    while (at < last && models[at].capability > capability) at++;
    *features = models[at].features;
    return models[at].name;
}

LLVMTargetMachineRef target_device(const EmitOptions *options, int capability, EmitError *error) {
    static const char triple[] = "nvptx64-nvidia-cuda";
    enum { OLDEST = 75 }; /* that all toolkits since CUDA 12 know */
    const char *features, *model = device_model(capability ? capability : OLDEST, &features);
    LLVMTargetRef target = NULL;
    char *message = NULL;
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    if (LLVMGetTargetFromTriple(triple, &target, &message))
        error_set(error, "no code generator for GPUs: %s", message);
    LLVMDisposeMessage(message);
    return target ? LLVMCreateTargetMachine(target, triple, model, features, machine_level(options->level),
                                            LLVMRelocDefault, LLVMCodeModelDefault)
                  : NULL;
}
#else
LLVMTargetMachineRef target_device(const EmitOptions *options, int capability, EmitError *error) {
    (void)options, (void)capability;
    error_set(error, "this LLVM was built without NVPTX, its code generator for NVIDIA's GPUs; -target "
                     "ptx-nvrtc does without");
    return NULL;
}
#endif

/* On x86-64 a function that keeps registers may end with vzeroupper, and their upper halves are lost. */
TargetHabits target_habits(LLVMTargetMachineRef machine) {
    enum { KEEPS_REGISTERS = 15 };
    char *triple = LLVMGetTargetMachineTriple(machine),
         *features = LLVMGetTargetMachineFeatureString(machine);
    bool is_x86 = strncmp(triple, "x86_64", 6) == 0;
    bool is_arm = strncmp(triple, "aarch64", 7) == 0 || strncmp(triple, "arm64", 5) == 0;
    TargetHabits habits = {.has_extremes = !is_x86,
                           .has_round_even = !is_x86 || strstr(features, "+sse4.1") != NULL,
                           .fuses = is_arm || strstr(features, "+fma") != NULL,
                           .seldom_called = is_arm ? KEEPS_REGISTERS : LLVMCCallConv,
                           .row = strstr(features, "+avx512f") ? 64
                                  : strstr(features, "+avx2")  ? 32
                                                               : 16,
                           .structs = is_x86   ? STRUCTS_x86_64
                                      : is_arm ? STRUCTS_aarch64
                                               : STRUCTS_unknown};
    LLVMDisposeMessage(features);
    LLVMDisposeMessage(triple);
    return habits;
}

/* ---- how wide vectors are */

static unsigned element_bits(LLVMTypeRef element) {
    enum { POINTER = 64 };
    switch (LLVMGetTypeKind(element)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(element);
    case LLVMHalfTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    default: return POINTER; /* or a double */
    }
}

static bool is_wide(LLVMValueRef value) {
    enum { NARROW = 256 };
    LLVMTypeRef type = LLVMTypeOf(value);
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    return is_vector && element_bits(LLVMGetElementType(type)) * LLVMGetVectorSize(type) > NARROW;
}

static bool has_wide(LLVMValueRef inst) {
    for (int i = 0; i < LLVMGetNumOperands(inst); i++)
        if (is_wide(LLVMGetOperand(inst, (unsigned)i))) return true;
    return is_wide(inst);
}

static bool has_wide_vectors(LLVMValueRef function) {
    for (LLVMValueRef param = LLVMGetFirstParam(function); param; param = LLVMGetNextParam(param))
        if (is_wide(param)) return true;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef inst = LLVMGetFirstInstruction(block); inst; inst = LLVMGetNextInstruction(inst))
            if (has_wide(inst)) return true;
    return false;
}

static bool is_called(LLVMValueRef function, const char *word) {
    return LLVMGetStringAttributeAtIndex(function, of_function, word, (unsigned)strlen(word)) != NULL;
}

/* Where LLVM makes vectors of 256 bits of loops although the processor has larger ones, as for Intel's, it
 * would still use those to read what lies in turns, unless it is told, as clang does, that a function has
 * none by itself; and beside such an instruction, that processor does half of all others. What lanes have
 * made is as wide as it is. Other processors know no such attribute. */
static const char legal_width[] = "min-legal-vector-width";
static void keep_vectors_narrow(LLVMModuleRef module) {
    LLVMAttributeRef narrow =
        LLVMCreateStringAttribute(LLVMGetModuleContext(module), legal_width, sizeof legal_width - 1, "0", 1);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !is_called(f, WHOLE_REGISTERS) && !has_wide_vectors(f))
            LLVMAddAttributeAtIndex(f, of_function, narrow);
}

/* The sanitizer looks at functions that ask for it, after all optimisations. */
static LLVMErrorRef sanitize(LLVMModuleRef module, LLVMTargetMachineRef machine,
                             LLVMPassBuilderOptionsRef tuning) {
    static const char name[] = "sanitize_address";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAttributeRef asks = LLVMCreateEnumAttribute(LLVMGetModuleContext(module), kind, 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) LLVMAddAttributeAtIndex(f, of_function, asks);
    return LLVMRunPasses(module, "asan", machine, tuning);
}

static bool has_attribute(LLVMValueRef function, unsigned kind) {
    return LLVMGetEnumAttributeAtIndex(function, of_function, kind) != NULL;
}

static void take_back(LLVMModuleRef module, const char *attribute) {
    unsigned kind = LLVMGetEnumAttributeKindForName(attribute, strlen(attribute));
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        LLVMRemoveEnumAttributeAtIndex(f, of_function, kind);
}

/* Those that had it have it no more, and the others have it. What is left as it is has it anyway. */
static void exchange(LLVMModuleRef module, const char *attribute) {
    unsigned kind = LLVMGetEnumAttributeKindForName(attribute, strlen(attribute));
    LLVMAttributeRef given = LLVMCreateEnumAttribute(LLVMGetModuleContext(module), kind, 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (is_called(f, AS_IT_IS)) continue;
        if (has_attribute(f, kind)) LLVMRemoveEnumAttributeAtIndex(f, of_function, kind);
        else if (!LLVMIsDeclaration(f)) LLVMAddAttributeAtIndex(f, of_function, given);
    }
}

static bool calls_with_wide_vectors(LLVMValueRef function) {
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef inst = LLVMGetFirstInstruction(block); inst; inst = LLVMGetNextInstruction(inst)) {
            LLVMValueRef called = LLVMIsACallInst(inst) ? LLVMGetCalledValue(inst) : NULL;
            if (called && !LLVMGetIntrinsicID(called) && has_wide(inst)) return true;
        }
    return false;
}

/* LLVM has made calls since, such as one for eight sines, that take 512 bits in one register, and would put
 * them into two where there are no such registers. */
static void widen_for_calls(LLVMModuleRef module) {
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (is_called(f, legal_width) && calls_with_wide_vectors(f))
            LLVMRemoveStringAttributeAtIndex(f, of_function, legal_width, sizeof legal_width - 1);
}

/* No passes but the one for vectors in straight code ask for it after those for loops. */
static void leave_rounds_alone(LLVMModuleRef module) {
    unsigned kind = LLVMGetEnumAttributeKindForName(WITHOUT_VECTORS, sizeof WITHOUT_VECTORS - 1);
    LLVMAttributeRef given = LLVMCreateEnumAttribute(LLVMGetModuleContext(module), kind, 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
        if (is_called(f, ROUNDS_ALONE)) LLVMAddAttributeAtIndex(f, of_function, given);
}

/* What is left of the passes for functions that go without the others: their time grows with the size of a
 * function alone. Loops are tested at their end already. Nothing is left to do in other functions. */
static LLVMErrorRef optimise_large(LLVMModuleRef module, LLVMTargetMachineRef machine,
                                   LLVMPassBuilderOptionsRef tuning) {
    exchange(module, WITHOUT_PASSES);
    LLVMErrorRef failure = LLVMRunPasses(
        module, "function(sroa,early-cse<memssa>,simplifycfg,loop-mssa(licm))", machine, tuning);
    exchange(module, WITHOUT_PASSES);
    return failure;
}

/* Instructions are selected the quick way, which takes half the time or much less; registers are given out
 * with the same care as ever, so that it runs 1.2 times as long and not several times. */
static void leave_to_be_quick(LLVMModuleRef module) {
    unsigned kind = LLVMGetEnumAttributeKindForName(WITHOUT_PASSES, sizeof WITHOUT_PASSES - 1);
    LLVMAttributeRef given = LLVMCreateEnumAttribute(LLVMGetModuleContext(module), kind, 0);
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
        if (is_called(f, QUICKLY)) LLVMAddAttributeAtIndex(f, of_function, given);
        else LLVMRemoveEnumAttributeAtIndex(f, of_function, kind);
    }
}

static bool has_any_large(LLVMModuleRef module) {
    unsigned kind = LLVMGetEnumAttributeKindForName(WITHOUT_PASSES, sizeof WITHOUT_PASSES - 1);
    LLVMValueRef f = LLVMGetFirstFunction(module);
    while (f && (!has_attribute(f, kind) || is_called(f, AS_IT_IS))) f = LLVMGetNextFunction(f);
    return f != NULL;
}

bool target_optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, const EmitOptions *options,
                     EmitError *error) {
    int level = known_level(options->level);
    bool is_device = strncmp(LLVMGetTarget(module), "nvptx", 5) == 0, vectorises = level >= 2 && !is_device;
    LLVMPassBuilderOptionsRef tuning = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(tuning, vectorises);
    LLVMPassBuilderOptionsSetSLPVectorization(tuning, vectorises);
    LLVMPassBuilderOptionsSetLoopInterleaving(tuning, vectorises);
    LLVMPassBuilderOptionsSetLoopUnrolling(tuning, level >= 2);
    if (vectorises) keep_vectors_narrow(module);
    Passes passes = passes_of(level, is_device);
    LLVMErrorRef failure = LLVMRunPasses(module, passes.first, machine, tuning);
    leave_rounds_alone(module);
    if (!failure && passes.rest) failure = LLVMRunPasses(module, passes.rest, machine, tuning);
    take_back(module, WITHOUT_VECTORS);
    bool has_large = !is_device && has_any_large(module);
    if (!failure && has_large && level > 0) failure = optimise_large(module, machine, tuning);
    if (!is_device && level > 0) leave_to_be_quick(module);
    if (vectorises) widen_for_calls(module);
    if (!is_device && level > 0) target_cut_blocks(module);
    if (!failure && options->sanitize) failure = sanitize(module, machine, tuning);
    LLVMDisposePassBuilderOptions(tuning);
    if (!failure) return true;
    error_take(error, failure);
    return false;
}
