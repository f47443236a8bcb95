/* What becomes part of a module for a GPU: functions of device.ll and device_sums.ll that it calls, and of
 * libdevice, NVIDIA's elementary functions, which come with CUDA as LLVM's bitcode. Only what is called is
 * taken over. */
#include "emit/llvm/llvm.h"
#include <glob.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- where libdevice is */

static const char *readable(const char *path) { return access(path, R_OK) == 0 ? path : NULL; }

static const char *in_folder(Emitter *e, const char *folder) {
    if (!folder || !*folder) return NULL;
    return readable(format_text(&e->arena, "%s/nvvm/libdevice/libdevice.10.bc", folder));
}

/* The last of those that the pattern finds. */
static const char *by_pattern(Emitter *e, const char *pattern) {
    glob_t found;
    const char *path = NULL;
    if (glob(pattern, 0, NULL, &found) != 0) return NULL;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (readable(found.gl_pathv[i])) path = format_text(&e->arena, "%s", found.gl_pathv[i]);
    globfree(&found);
    return path;
}

static const char *find_libdevice(Emitter *e) {
    const char *given = getenv("SLOPE_LIBDEVICE");
    if (given && *given) return readable(given);
    const char *path = in_folder(e, getenv("CUDA_HOME"));
    if (!path) path = by_pattern(e, "/usr/local/cuda*/nvvm/libdevice/libdevice.10.bc");
    if (!path) path = readable("/opt/cuda/nvvm/libdevice/libdevice.10.bc");
    if (!path) path = readable("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc");
    return path;
}

const char *emit_device_function(Emitter *e, const char *name) {
    if (!e->libdevice) e->libdevice = find_libdevice(e);
    if (!e->libdevice)
        emit_fail(e,
                  "'%s' is a function of NVIDIA's libdevice, which is not found: SLOPE_LIBDEVICE can name "
                  "the file libdevice.10.bc; it is part of CUDA, and looked for in $CUDA_HOME and "
                  "/usr/local/cuda",
                  name);
    return format_text(&e->arena, "__nv_%s", name);
}

/* ---- linking */

static void link_module(Emitter *e, LLVMModuleRef other) {
    LLVMSetTarget(other, LLVMGetTarget(e->llvm));
    LLVMSetModuleDataLayout(other, LLVMGetModuleDataLayout(e->llvm));
    if (LLVMLinkModules2(e->llvm, other)) emit_fail(e, "what runs on the GPU could not be linked");
}

static bool is_called(const Emitter *e, LLVMValueRef function) {
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    return LLVMGetNamedFunction(e->llvm, name) != NULL;
}

/* What is internal comes along only if something else needs it. */
static void keep_called(Emitter *e, LLVMModuleRef other) {
    for (LLVMValueRef f = LLVMGetFirstFunction(other); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !is_called(e, f)) LLVMSetLinkage(f, LLVMInternalLinkage);
}

static void link_libdevice(Emitter *e) {
    LLVMMemoryBufferRef bytes = NULL;
    LLVMModuleRef other = NULL;
    char *message = NULL;
    bool fine =
        !LLVMCreateMemoryBufferWithContentsOfFile(e->libdevice, &bytes, &message) &&
        !LLVMGetBitcodeModuleInContext2(e->context, bytes, &other); /* functions are read when needed */
    LLVMDisposeMessage(message);
    if (!fine && bytes) LLVMDisposeMemoryBuffer(bytes);
    if (!fine) emit_fail(e, "'%s' cannot be read", e->libdevice);
    keep_called(e, other);
    link_module(e, other);
}

static LLVMModuleRef parse(Emitter *e, const char *name, const char *text, size_t size) {
    LLVMModuleRef module;
    char *message = NULL;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(text, size, name, true);
    if (LLVMParseIRInContext(e->context, buffer, &module, &message))
        emit_fail(e, "%s: %s", name, format_text(&e->arena, "%s", message));
    return module;
}

/* The text is of numbers that are `real`. */
static void link_sums(Emitter *e, const char *kind) {
    static const char real[] = "real";
    if (!LLVMGetNamedFunction(e->llvm, format_text(&e->arena, "rt_sum_%s", kind)) &&
        !LLVMGetNamedFunction(e->llvm, format_text(&e->arena, "rt_sums_start_%s", kind)))
        return;
    Text text = {.arena = &e->arena};
    const char *at = device_sums_text;
    for (const char *next; (next = strstr(at, real)); at = next + strlen(real))
        text_printf(&text, "%.*s%s", (int)(next - at), at, kind);
    text_printf(&text, "%s", at);
    LLVMModuleRef other = parse(e, "device_sums.ll", text.at, (size_t)text.len);
    keep_called(e, other);
    link_module(e, other);
}

static void link_runtime(Emitter *e) {
    link_sums(e, "float");
    link_sums(e, "double");
    LLVMModuleRef other = parse(e, "device.ll", device_text, device_text_size);
    LLVMSetLinkage(LLVMGetNamedGlobal(other, device_host), LLVMLinkOnceODRLinkage); /* it goes if it can */
    keep_called(e, other);
    link_module(e, other);
    LLVMValueRef host = LLVMGetNamedGlobal(e->llvm, device_host);
    if (host) LLVMSetLinkage(host, LLVMExternalLinkage);
    LLVMValueRef hosted = LLVMGetNamedGlobal(e->llvm, "slope_hosted");
    if (hosted) LLVMSetInitializer(hosted, emit_i32(e, e->device->hosted));
}

/* Variables by which the two parts know each other. */
static void hide_variables(Emitter *e) {
    static const char *const names[] = {"slope_hosted",   "slope_sums",      "slope_sum_places",
                                        "slope_sum_base", "slope_sum_count", "slope_sum_order"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LLVMValueRef variable = LLVMGetNamedGlobal(e->llvm, names[i]);
        if (variable) LLVMSetLinkage(variable, LLVMInternalLinkage);
    }
}

/* ---- large objects, after all optimisations: word by word */

enum { LARGE_OBJECT = 128 }; /* bytes; what is smaller NVPTX writes out */

static const char large_objects[] = "llvm.compiler.used"; /* holds what is called for them */

static uint64_t alignment(LLVMValueRef call, unsigned param) {
    static const char name[] = "align";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAttributeRef found = LLVMGetCallSiteEnumAttribute(call, param, kind);
    return found ? LLVMGetEnumAttributeValue(found) : 1;
}

/* Of LLVM's operations on memory, one of a constant size that is aligned; 0: it is none. */
static uint64_t word_of(LLVMValueRef call, bool copies) {
    LLVMValueRef size = LLVMGetOperand(call, 2);
    if (!LLVMIsAConstantInt(size) || LLVMConstIntGetZExtValue(size) <= LARGE_OBJECT) return 0;
    uint64_t bits = LLVMConstIntGetZExtValue(size) | alignment(call, 1) | (copies ? alignment(call, 2) : 0);
    return bits % 4 ? 0 : bits % 8 ? 4 : 8;
}

static LLVMValueRef generic(LLVMBuilderRef builder, LLVMValueRef pointer) {
    LLVMTypeRef type = LLVMPointerTypeInContext(LLVMGetTypeContext(LLVMTypeOf(pointer)), 0);
    return LLVMBuildAddrSpaceCast(builder, pointer, type, "");
}

static void replace(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef call, bool copies) {
    uint64_t word = word_of(call, copies);
    bool zeroes = !copies && LLVMIsNull(LLVMGetOperand(call, 1));
    if (word == 0 || (!copies && !zeroes)) return;
    const char *names[2][2] = {{"slope_set4", "slope_set8"}, {"slope_copy4", "slope_copy8"}};
    LLVMValueRef function = LLVMGetNamedFunction(module, names[copies][word == 8]);
    LLVMValueRef size = LLVMGetOperand(call, 2);
    LLVMPositionBuilderBefore(builder, call);
    LLVMValueRef count = LLVMConstInt(LLVMInt64TypeInContext(LLVMGetModuleContext(module)),
                                      LLVMConstIntGetZExtValue(size) / word, false);
    LLVMValueRef args[3] = {generic(builder, LLVMGetOperand(call, 0)), count};
    if (copies) args[1] = generic(builder, LLVMGetOperand(call, 1)), args[2] = count;
    LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, args, copies ? 3 : 2, "");
    LLVMInstructionEraseFromParent(call);
}

static void replace_calls(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef intrinsic, bool copies) {
    for (LLVMUseRef use = LLVMGetFirstUse(intrinsic), next; use; use = next) {
        next = LLVMGetNextUse(use);
        replace(module, builder, LLVMGetUser(use), copies);
    }
}

/* ---- sums in any order
 *
 * LLVM 19 makes a + b * c + d * e of sums that may be reordered into nested fma, and looks for the same that is there already only after it has changed one: where NVPTX
 * had both, a term came twice. What could be reordered has been by now. */

/* LLVM can add to such freedoms, but not take them back: it is another instruction. */
static void fix_order(LLVMBuilderRef builder, LLVMValueRef sum) {
    LLVMFastMathFlags flags = LLVMGetFastMathFlags(sum), free_order = LLVMFastMathAllowReassoc;
    if (!(flags & free_order)) return;
    LLVMPositionBuilderBefore(builder, sum);
    LLVMValueRef fixed = LLVMBuildBinOp(builder, LLVMGetInstructionOpcode(sum), LLVMGetOperand(sum, 0),
                                        LLVMGetOperand(sum, 1), "");
    if (LLVMIsAInstruction(fixed)) LLVMSetFastMathFlags(fixed, flags & ~free_order);
    LLVMReplaceAllUsesWith(sum, fixed);
    LLVMInstructionEraseFromParent(sum);
}

static void fix_orders(LLVMBuilderRef builder, LLVMValueRef function) {
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef inst = LLVMGetFirstInstruction(block), next; inst; inst = next) {
            next = LLVMGetNextInstruction(inst);
            if (LLVMIsABinaryOperator(inst) && LLVMCanValueUseFastMathFlags(inst)) fix_order(builder, inst);
        }
}

bool device_lower(const Translation *t, EmitError *error) {
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(t->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(t->llvm); f; f = LLVMGetNextFunction(f)) {
        fix_orders(builder, f);
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        bool copies = strncmp(name, "llvm.memcpy.p", 13) == 0;
        if (copies || strncmp(name, "llvm.memset.p", 13) == 0) replace_calls(t->llvm, builder, f, copies);
    }
    LLVMDisposeBuilder(builder);
    LLVMValueRef held = LLVMGetNamedGlobal(t->llvm, large_objects);
    if (held) LLVMDeleteGlobal(held);
    LLVMPassBuilderOptionsRef tuning = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failure = LLVMRunPasses(t->llvm, "always-inline,globaldce", t->machine, tuning);
    LLVMDisposePassBuilderOptions(tuning);
    if (failure) error_take(error, failure);
    return !failure;
}

static bool is_kernel(LLVMValueRef function) { return LLVMGetFunctionCallConv(function) != LLVMCCallConv; }

void emit_device_link(Emitter *e) {
    link_runtime(e);
    hide_variables(e);
    if (e->libdevice) link_libdevice(e);
    for (LLVMValueRef f = LLVMGetFirstFunction(e->llvm); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !is_kernel(f)) LLVMSetLinkage(f, LLVMInternalLinkage);
}
