/* CUDA C++ to machine code by NVRTC, which every CUDA toolkit has, and which frameworks bring along. */
#include "runtime/gpu.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where it is */

static void *open_at(const char *folder, const char *rest) {
    char path[4096];
    if (!folder || !*folder) return NULL;
    snprintf(path, sizeof path, "%s%s", folder, rest);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *open_library(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    void *library = open_at(getenv("CUDA_HOME"), "/lib64/libnvrtc.so");
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) library = open_at("/usr/local/cuda", "/lib64/libnvrtc.so");
    return library;
}

static bool find_compiler(Gpu *gpu) {
    static const char *const names[] = {
#define NVRTC_CALL(name, params) #name,
#include "runtime/cuda.def"
    };
    if (gpu->compiler_library) return true;
    void *library = open_library();
    if (!library)
        return gpu_fail(gpu, "NVRTC, which compiles for the GPU, is missing: libnvrtc.so is neither in "
                             "$CUDA_HOME/lib64, nor where the loader looks, nor in /usr/local/cuda/lib64");
    char *calls = (char *)&gpu->nvrtc;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i]);
        if (!symbol) return gpu_fail(gpu, "libnvrtc.so has no %s: it is too old", names[i]);
        memcpy(calls + i * sizeof symbol, &symbol, sizeof symbol);
    }
    gpu->compiler_library = library;
    return true;
}

/* ---- compiling */

/* For a GPU that it does not know: code that the driver translates. */
static bool choose_target(Gpu *gpu, char *option, size_t room) {
    int count = 0, archs[64], best = 0;
    bool known = false;
    if (gpu->nvrtc.nvrtcGetNumSupportedArchs(&count) == 0 && count > 0 && count <= 64 &&
        gpu->nvrtc.nvrtcGetSupportedArchs(archs) == 0)
        for (int i = 0; i < count; i++) {
            known |= archs[i] == gpu->capability;
            if (archs[i] <= gpu->capability && archs[i] > best) best = archs[i];
        }
    snprintf(option, room, "--gpu-architecture=%s_%d", known ? "sm" : "compute",
             known ? gpu->capability : best);
    return known;
}

static char *fetch(Gpu *gpu, void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *)) {
    size_t size = 0;
    char *bytes = size_of(program, &size) == 0 ? malloc(size + 1) : NULL;
    if (bytes && get(program, bytes) == 0) {
        bytes[size] = 0;
        return bytes;
    }
    free(bytes);
    gpu_fail(gpu, "NVRTC has made no code");
    return NULL;
}

static void report_log(Gpu *gpu, void *program) {
    char *log = fetch(gpu, program, gpu->nvrtc.nvrtcGetProgramLogSize, gpu->nvrtc.nvrtcGetProgramLog);
    for (char *end = log; end && (end = strchr(end, '\n'));)
        *end = end[1] ? ' ' : 0; /* a message is one line */
    gpu_fail(gpu, "nvrtcCompileProgram: %s", log ? log : "no reason given");
    free(log);
}

static char *compile(Gpu *gpu, void *program, const GpuSource *source) {
    char target[64];
    const char *options[16] = {target, "--std=c++17"};
    int count = 2;
    bool is_machine_code = gpu->context && choose_target(gpu, target, sizeof target);
    if (!gpu->context) snprintf(target, sizeof target, "--gpu-architecture=compute_%d", gpu->capability);
    for (int i = 0; i < source->noptions && count < 16; i++) options[count++] = source->options[i];
    const NvrtcCalls *nvrtc = &gpu->nvrtc;
    if (nvrtc->nvrtcCompileProgram(program, count, options) != 0) {
        report_log(gpu, program);
        return NULL;
    }
    return is_machine_code ? fetch(gpu, program, nvrtc->nvrtcGetCUBINSize, nvrtc->nvrtcGetCUBIN)
                           : fetch(gpu, program, nvrtc->nvrtcGetPTXSize, nvrtc->nvrtcGetPTX);
}

char *gpu_compile(Gpu *gpu, const GpuSource *source) {
    if (!find_compiler(gpu)) return NULL;
    void *program = NULL;
    if (gpu->nvrtc.nvrtcCreateProgram(&program, source->text, "slope.cu", 0, NULL, NULL) != 0) {
        gpu_fail(gpu, "nvrtcCreateProgram failed");
        return NULL;
    }
    char *code = compile(gpu, program, source);
    gpu->nvrtc.nvrtcDestroyProgram(&program);
    return code;
}

char *gpu_make_ptx(const GpuSource *source, int capability, char *error, size_t room) {
    Gpu *none = calloc(1, sizeof *none);
    snprintf(error, room, "out of memory");
    if (!none) return NULL;
    none->capability = capability;
    char *text = gpu_compile(none, source);
    snprintf(error, room, "%s", none->error);
    free(none);
    return text;
}
