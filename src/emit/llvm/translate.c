/* From an IR module to an LLVM module, and what makes it faster, with the time it took. */
#include "emit/llvm/llvm.h"
#include <llvm-c/Analysis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

void error_set(EmitError *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
}

void error_take(EmitError *error, LLVMErrorRef taken) {
    char *message = LLVMGetErrorMessage(taken);
    error_set(error, "LLVM: %s", message);
    LLVMDisposeErrorMessage(message);
}

static void keep_defined(Translation *result, Emitter *e) {
    result->defined = calloc((size_t)e->defined.count + 1, sizeof *result->defined);
    if (!result->defined) trap_spring(&e->trap, TRAP_memory, "out of memory");
    for (int i = 0; i < e->defined.count; i++) {
        result->defined[i] = strdup(e->defined.at[i]);
        if (!result->defined[i]) trap_spring(&e->trap, TRAP_memory, "out of memory");
        result->ndefined = i + 1;
    }
}

static void fill(Emitter *e, Translation *result) {
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(result->machine);
    LLVMSetModuleDataLayout(result->llvm, data);
    LLVMDisposeTargetData(data);
    char *triple = LLVMGetTargetMachineTriple(result->machine);
    LLVMSetTarget(result->llvm, triple);
    LLVMDisposeMessage(triple);
    emit_module(e);
    snprintf(result->init_symbol, sizeof result->init_symbol, "%s", e->init_symbol);
    result->uses_runtime = e->uses_runtime;
    result->is_huge = e->is_huge && !e->device;
    if (e->kept.count > 0 || e->calls_lanes) result->lanes_library = emit_lanes_library(e);
    keep_defined(result, e);
}

#ifdef NDEBUG
static const bool always_verify = false;
#else
static const bool always_verify = true;
#endif

static bool verify(const Translation *result, EmitError *error) {
    char *message = NULL;
    bool fine = !LLVMVerifyModule(result->llvm, LLVMReturnStatusAction, &message);
    if (!fine) error_set(error, "the LLVM module is malformed: %s", message);
    LLVMDisposeMessage(message);
    return fine;
}

static bool run_emitter(Emitter *e, Translation *result, EmitError *error) {
    arena_init(&e->arena, allocator_system, &e->trap);
    bool fine = setjmp(e->trap.at) == 0;
    if (fine) {
        e->init_symbol =
            result->init_symbol[0] ? format_text(&e->arena, "%s", result->init_symbol) : "slope.init";
        fill(e, result);
    } else {
        error_set(error, "%s", e->trap.why == TRAP_memory ? "out of memory" : e->trap.what);
        error->loc = e->trap_loc;
    }
    if (e->debug) LLVMDisposeDIBuilder(e->debug);
    LLVMDisposeBuilder(e->builder);
    arena_free(&e->arena);
    return fine;
}

static bool make(Module *module, const EmitOptions *options, const TranslateWish *wish, Translation *result,
                 EmitTimes *times, EmitError *error) {
    double start = milliseconds();
    result->machine = wish->device ? target_device(options, wish->device->capability, error)
                                   : target_machine(options, error);
    result->made_by = *options;
    if (wish->device) result->made_by.spare = NULL;
    if (!result->machine) return false;
    result->context = LLVMContextCreate();
    LLVMContextSetDiscardValueNames(result->context, wish->for_jit); /* nobody sees those of values */
    result->llvm = LLVMModuleCreateWithNameInContext("slope", result->context);
    if (wish->for_jit)
        snprintf(result->init_symbol, sizeof result->init_symbol, "slope.init.%d", wish->number);
    char *features = LLVMGetTargetMachineFeatureString(result->machine);
    Emitter e = {.module = module,
                 .options = options,
                 .for_jit = wish->for_jit,
                 .device = wish->device,
                 .habits = target_habits(result->machine),
                 .features = features,
                 .is_defined = wish->is_defined,
                 .user = wish->user,
                 .context = result->context,
                 .llvm = result->llvm,
                 .builder = LLVMCreateBuilderInContext(result->context)};
    bool fine = run_emitter(&e, result, error);
    LLVMDisposeMessage(features);
    if (fine && (options->verify || always_verify)) fine = verify(result, error);
    times->translate += milliseconds() - start;
    return fine;
}

bool translate(Module *module, const EmitOptions *options, const TranslateWish *wish, Translation *result,
               EmitTimes *times, EmitError *error) {
    EmitTimes unwanted = {0};
    *result = (Translation){0};
    error->text[0] = '\0';
    if (make(module, options, wish, result, times ? times : &unwanted, error)) return true;
    translation_free(result);
    return false;
}

/* LLVM's own measures against long functions are few, and all that makes good code needs them; its quick way
 * is linear. */
static bool hurry(Translation *t, const EmitOptions *options, EmitError *error) {
    EmitOptions quick = *options;
    quick.level = 0;
    LLVMTargetMachineRef machine = target_machine(&quick, error);
    if (!machine) return false;
    target_give_back(t->machine, &t->made_by);
    t->machine = machine;
    t->made_by = quick;
    return true;
}

/* LLVM would print what it could not do of what it is told to do with loops. */
static void hear(LLVMDiagnosticInfoRef info, void *user) {
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
    char *message = LLVMGetDiagInfoDescription(info);
    error_set(user, "LLVM: %s", message);
    LLVMDisposeMessage(message);
}

bool translation_optimise(Translation *t, const EmitOptions *options, EmitTimes *times, EmitError *error) {
    double start = milliseconds();
    LLVMContextSetDiagnosticHandler(t->context, hear, error);
    bool fine = target_optimise(t->llvm, t->machine, options, error) && error->text[0] == '\0';
    LLVMContextSetDiagnosticHandler(t->context, NULL, NULL);
    if (fine && t->is_huge && options->level > 0) fine = hurry(t, options, error);
    if (times) times->passes += milliseconds() - start;
    return fine;
}

void translation_free(Translation *translation) {
    if (translation->llvm) LLVMDisposeModule(translation->llvm);
    if (translation->context) LLVMContextDispose(translation->context);
    if (translation->machine) target_give_back(translation->machine, &translation->made_by);
    for (int i = 0; i < translation->ndefined; i++) free(translation->defined[i]);
    free(translation->defined);
    *translation = (Translation){0};
}
