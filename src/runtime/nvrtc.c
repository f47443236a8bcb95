/* CUDA C++ to machine code by NVRTC, which every CUDA toolkit has, and which frameworks bring along. What was compiled stays as long as the GPU is
 * open: a program that is loaded again, or a kernel that another program has as well, takes no time. */
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

static char *compile_new(Gpu *gpu, const GpuSource *source) {
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

/* ---- what was compiled */

/* The options, each on a line, and the text. */
static char *key_of(const GpuSource *source) {
    size_t size = strlen(source->text) + 1, at = 0;
    for (int i = 0; i < source->noptions; i++) size += strlen(source->options[i]) + 1;
    char *key = malloc(size);
    for (int i = 0; i < source->noptions && key; i++)
        at += (size_t)snprintf(key + at, size - at, "%s\n", source->options[i]);
    if (key) snprintf(key + at, size - at, "%s", source->text);
    return key;
}

static const char *keep_image(Gpu *gpu, char *key, char *code) {
    GpuImage *image = code ? malloc(sizeof *image) : NULL;
    if (!image) {
        if (code) gpu_fail(gpu, "out of memory");
        free(key);
        free(code);
        return NULL;
    }
    *image = (GpuImage){gpu->images, key, code};
    gpu->images = image;
    return code;
}

const char *gpu_compile(Gpu *gpu, const GpuSource *source) {
    char *key = key_of(source);
    if (!key) {
        gpu_fail(gpu, "out of memory");
        return NULL;
    }
    for (const GpuImage *image = gpu->images; image; image = image->next)
        if (strcmp(image->source, key) == 0) {
            free(key);
            return image->code;
        }
    return keep_image(gpu, key, compile_new(gpu, source));
}

void gpu_forget_images(Gpu *gpu) {
    for (GpuImage *image = gpu->images, *next; image; image = next) {
        next = image->next;
        free(image->source);
        free(image->code);
        free(image);
    }
    gpu->images = NULL;
}

char *gpu_make_ptx(const GpuSource *source, int capability, char *error, size_t room) {
    Gpu *none = calloc(1, sizeof *none);
    snprintf(error, room, "out of memory");
    if (!none) return NULL;
    none->capability = capability;
    char *text = compile_new(none, source);
    snprintf(error, room, "%s", none->error);
    free(none);
    return text;
}
