/* CUDA C++ to machine code by NVRTC, which every CUDA toolkit has, and which frameworks bring along. What was
 * compiled stays as long as the GPU is open: a program that is loaded again, or a kernel that another program
 * has as well, takes no time. For later runs a cache keeps it, found by all that it depends on: the text, the
 * options, the kind of GPU, and which compiler it was. */
#define _GNU_SOURCE /* dladdr */
#include "runtime/gpu.h"
#include <dlfcn.h>
#include <sys/stat.h>
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

bool gpu_has_nvrtc(void) { return open_library() != NULL; } /* where it stays */

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

typedef struct Code {
    char *bytes; /* NULL: there is none */
    size_t size;
} Code;

static Code fetch(Gpu *gpu, void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *)) {
    Code code = {0};
    if (size_of(program, &code.size) == 0) code.bytes = malloc(code.size + 1);
    if (code.bytes && get(program, code.bytes) == 0) {
        code.bytes[code.size] = 0;
        return code;
    }
    free(code.bytes);
    gpu_fail(gpu, "NVRTC has made no code");
    return (Code){0};
}

static void report_log(Gpu *gpu, void *program) {
    char *log = fetch(gpu, program, gpu->nvrtc.nvrtcGetProgramLogSize, gpu->nvrtc.nvrtcGetProgramLog).bytes;
    for (char *end = log; end && (end = strchr(end, '\n'));)
        *end = end[1] ? ' ' : 0; /* a message is one line */
    gpu_fail(gpu, "nvrtcCompileProgram: %s", log ? log : "no reason given");
    free(log);
}

/* How it is compiled. */
typedef struct Way {
    char target[64];
    const char *options[16];
    int count;
    bool is_machine_code;
} Way;

static void choose_way(Gpu *gpu, const GpuSource *source, Way *way) {
    *way = (Way){.options = {way->target, "--std=c++17"}, .count = 2};
    way->is_machine_code = gpu->context && choose_target(gpu, way->target, sizeof way->target);
    if (!gpu->context)
        snprintf(way->target, sizeof way->target, "--gpu-architecture=compute_%d", gpu->capability);
    for (int i = 0; i < source->noptions && way->count < 16; i++)
        way->options[way->count++] = source->options[i];
}

static Code compile(Gpu *gpu, void *program, const Way *way) {
    const NvrtcCalls *nvrtc = &gpu->nvrtc;
    if (nvrtc->nvrtcCompileProgram(program, way->count, way->options) != 0) {
        report_log(gpu, program);
        return (Code){0};
    }
    return way->is_machine_code ? fetch(gpu, program, nvrtc->nvrtcGetCUBINSize, nvrtc->nvrtcGetCUBIN)
                                : fetch(gpu, program, nvrtc->nvrtcGetPTXSize, nvrtc->nvrtcGetPTX);
}

static Code compile_text(Gpu *gpu, const char *text, const Way *way) {
    void *program = NULL;
    if (gpu->nvrtc.nvrtcCreateProgram(&program, text, "slope.cu", 0, NULL, NULL) != 0) {
        gpu_fail(gpu, "nvrtcCreateProgram failed");
        return (Code){0};
    }
    Code code = compile(gpu, program, way);
    gpu->nvrtc.nvrtcDestroyProgram(&program);
    return code;
}

/* ---- what earlier runs have compiled */

/* Which compiler it is, as text; the length that it has, or would have; -1: nobody knows. */
static int describe(Gpu *gpu, const Way *way, char *head, size_t room) {
    Dl_info info;
    struct stat own;
    int major = 0, minor = 0;
    void *self;
    memcpy(&self, &gpu->nvrtc.nvrtcVersion, sizeof self); /* ISO C has no such cast */
    if (gpu->nvrtc.nvrtcVersion(&major, &minor) != 0 || !dladdr(self, &info) || !info.dli_fname ||
        stat(info.dli_fname, &own) != 0)
        return -1;
    int length = snprintf(head, room, "NVRTC %d.%d, built %lld %lld\n", major, minor,
                          (long long)own.st_mtim.tv_sec, (long long)own.st_size);
    for (int i = 0; i < way->count; i++)
        length +=
            snprintf(head ? head + length : NULL, head ? room - (size_t)length : 0, "%s\n", way->options[i]);
    return length;
}

/* Compiler, options and text; to be freed. NULL: nothing is kept. */
static char *whole_key(Gpu *gpu, const Way *way, const char *text) {
    int length = gpu->config.cache.find ? describe(gpu, way, NULL, 0) : -1;
    char *key = length < 0 ? NULL : malloc((size_t)length + strlen(text) + 1);
    if (!key) return NULL;
    describe(gpu, way, key, (size_t)length + 1);
    strcpy(key + length, text);
    return key;
}

static char *compile_new(Gpu *gpu, const GpuSource *source) {
    Way way;
    Code code = {0};
    const GpuCache *cache = &gpu->config.cache;
    if (!find_compiler(gpu)) return NULL;
    choose_way(gpu, source, &way);
    char *key = whole_key(gpu, &way, source->text);
    if (key) code.bytes = cache->find(cache->user, key, strlen(key), &code.size);
    if (!code.bytes) {
        code = compile_text(gpu, source->text, &way);
        if (key && code.bytes) cache->keep(cache->user, key, strlen(key), code.bytes, code.size);
    }
    free(key);
    return code.bytes;
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
