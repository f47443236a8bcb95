/* What becomes part of a module for a GPU: functions of device.ll that it calls, and of libdevice, NVIDIA's elementary functions, which come with CUDA as LLVM's
 * bitcode. Only what is called is taken over. */
#include "emit/llvm/llvm.h"
#include <glob.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
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
    bool fine = !LLVMCreateMemoryBufferWithContentsOfFile(e->libdevice, &bytes, &message) &&
                !LLVMGetBitcodeModuleInContext2(e->context, bytes, &other); /* functions are read when needed */
    LLVMDisposeMessage(message);
    if (!fine && bytes) LLVMDisposeMemoryBuffer(bytes);
    if (!fine) emit_fail(e, "'%s' cannot be read", e->libdevice);
    keep_called(e, other);
    link_module(e, other);
}

static void link_runtime(Emitter *e) {
    LLVMModuleRef other;
    char *message = NULL;
    LLVMMemoryBufferRef text =
        LLVMCreateMemoryBufferWithMemoryRange(device_text, device_text_size, "device.ll", true);
    if (LLVMParseIRInContext(e->context, text, &other, &message))
        emit_fail(e, "device.ll: %s", format_text(&e->arena, "%s", message));
    LLVMSetLinkage(LLVMGetNamedGlobal(other, device_host), LLVMLinkOnceODRLinkage); /* it goes if it can */
    keep_called(e, other);
    link_module(e, other);
    LLVMValueRef host = LLVMGetNamedGlobal(e->llvm, device_host);
    if (host) LLVMSetLinkage(host, LLVMExternalLinkage);
    LLVMValueRef hosted = LLVMGetNamedGlobal(e->llvm, "slope_hosted");
    if (!hosted) return;
    LLVMSetInitializer(hosted, emit_i32(e, e->device->hosted));
    LLVMSetLinkage(hosted, LLVMInternalLinkage);
}

static bool is_kernel(LLVMValueRef function) { return LLVMGetFunctionCallConv(function) != LLVMCCallConv; }

void emit_device_link(Emitter *e) {
    if (e->uses_runtime || LLVMGetNamedGlobal(e->llvm, device_host)) link_runtime(e);
    if (e->libdevice) link_libdevice(e);
    for (LLVMValueRef f = LLVMGetFirstFunction(e->llvm); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !is_kernel(f)) LLVMSetLinkage(f, LLVMInternalLinkage);
}
