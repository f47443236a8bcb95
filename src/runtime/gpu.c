/* A GPU: NVIDIA's driver, opened by dlopen, so that nobody who has none needs it; memory, copies, code.
 *
 * The context is the device's primary one, which other libraries in the process use as well: their pointers
 * are good here, and ours there. It is made current for the time of a call. Everything happens on one stream,
 * of our own or of others, and calls wait until it is done, except where kernels are queued. */
#include "runtime/gpu.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_STACK = 0, LOCAL_SIZE = 3, RECURSIVE_STACK = 32 << 10, NOT_FOUND = 500, NON_BLOCKING = 1 };
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

/* ---- errors */

bool gpu_fail(Gpu *gpu, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(gpu->error, sizeof gpu->error, format, args);
    va_end(args);
    return false;
}

bool gpu_done(Gpu *gpu, const char *call, int status) {
    if (status == 0) return true;
    const char *name = NULL, *text = NULL;
    gpu->cuda.cuGetErrorName(status, &name);
    gpu->cuda.cuGetErrorString(status, &text);
    return gpu_fail(gpu, "%s: %s (%s)", call, text ? text : "unknown error", name ? name : "no name");
}

const char *gpu_error(const Gpu *gpu) { return gpu->error; }

int gpu_capability(const Gpu *gpu) { return gpu->capability; }

/* ---- opening */

static bool find_calls(Gpu *gpu) {
    static const char *const names[] = {
#define CUDA_CALL(name, params) #name,
#include "runtime/cuda.def"
    };
    char *calls = (char *)&gpu->cuda;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(gpu->library, names[i]);
        if (!symbol) return gpu_fail(gpu, "libcuda.so.1 has no %s: the driver is too old", names[i]);
        memcpy(calls + i * sizeof symbol, &symbol, sizeof symbol); /* all members are pointers to functions */
    }
    return true;
}

static bool open_device(Gpu *gpu) {
    int count = 0, major = 0, minor = 0;
    if (!CALL(gpu, cuInit, (0)) || !CALL(gpu, cuDeviceGetCount, (&count))) return false;
    if (gpu->config.index >= count)
        return gpu_fail(gpu, "there is no GPU number %d: the driver knows %d", gpu->config.index, count);
    if (!CALL(gpu, cuDeviceGet, (&gpu->device, gpu->config.index)) ||
        !CALL(gpu, cuDeviceGetAttribute, (&major, CAPABILITY_MAJOR, gpu->device)) ||
        !CALL(gpu, cuDeviceGetAttribute, (&minor, CAPABILITY_MINOR, gpu->device)))
        return false;
    gpu->capability = major * 10 + minor;
    if (gpu->capability < 70)
        return gpu_fail(gpu, "the GPU has compute capability %d.%d; 7.0 is needed", major, minor);
    return CALL(gpu, cuDevicePrimaryCtxRetain, (&gpu->context, gpu->device));
}

static bool enter(Gpu *gpu) { return CALL(gpu, cuCtxPushCurrent_v2, (gpu->context)); }

static bool leave(Gpu *gpu, bool fine) {
    void *context;
    gpu->cuda.cuCtxPopCurrent_v2(&context);
    return fine;
}

static bool open_streams(Gpu *gpu) {
    bool fine = enter(gpu) && leave(gpu, CALL(gpu, cuStreamCreate, (&gpu->own_stream, NON_BLOCKING)) &&
                                             CALL(gpu, cuStreamCreate, (&gpu->signals, NON_BLOCKING)));
    gpu->stream = gpu->own_stream;
    return fine;
}

static bool open_gpu(Gpu *gpu) {
    gpu->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!gpu->library) return gpu_fail(gpu, "there is no driver of NVIDIA: %s", dlerror());
    return find_calls(gpu) && open_device(gpu) && open_streams(gpu);
}

Gpu *gpu_open(const GpuConfig *config, char *error, size_t room) {
    Gpu *gpu = calloc(1, sizeof *gpu);
    snprintf(error, room, "out of memory");
    if (!gpu) return NULL;
    gpu->config = *config;
    if (open_gpu(gpu)) return gpu;
    snprintf(error, room, "%s", gpu->error);
    gpu_close(gpu);
    return NULL;
}

static void close_context(Gpu *gpu) {
    if (!enter(gpu)) return;
    gpu_give(gpu, gpu->tapes.address);
    gpu_give(gpu, gpu->printed.address);
    gpu_give(gpu, gpu->copies.address);
    if (gpu->own_stream) gpu->cuda.cuStreamDestroy_v2(gpu->own_stream);
    if (gpu->signals) gpu->cuda.cuStreamDestroy_v2(gpu->signals);
    leave(gpu, true);
    gpu->cuda.cuDevicePrimaryCtxRelease_v2(gpu->device);
}

/* Libraries stay: the driver does not like to be unloaded. */
void gpu_close(Gpu *gpu) {
    if (gpu->context && !gpu->hangs) close_context(gpu);
    gpu_forget_images(gpu);
    free(gpu);
}

void gpu_use_stream(Gpu *gpu, void *stream) { gpu->stream = stream ? stream : gpu->own_stream; }

/* ---- memory */

static bool wait_for(Gpu *gpu) { return CALL(gpu, cuStreamSynchronize, (gpu->stream)); }

bool gpu_take(Gpu *gpu, size_t size, uint64_t *address) {
    *address = 0;
    if (!enter(gpu)) return false;
    size_t free_bytes = 0, total = 0;
    int status = gpu->cuda.cuMemAlloc_v2(address, size ? size : 1);
    if (status != 0) {
        gpu_done(gpu, "cuMemAlloc_v2", status);
        size_t length = strlen(gpu->error);
        if (gpu->cuda.cuMemGetInfo_v2(&free_bytes, &total) == 0)
            snprintf(gpu->error + length, sizeof gpu->error - length,
                     ": %zu bytes are asked for, %zu of %zu are free", size, free_bytes, total);
        return leave(gpu, false);
    }
    return leave(gpu,
                 CALL(gpu, cuMemsetD8Async, (*address, 0, size ? size : 1, gpu->stream)) && wait_for(gpu));
}

void gpu_give(Gpu *gpu, uint64_t address) {
    if (!address || gpu->hangs || !enter(gpu)) return;
    gpu->cuda.cuMemFree_v2(address);
    leave(gpu, true);
}

bool gpu_room_fit(Gpu *gpu, GpuRoom *room, size_t size) {
    if (room->size >= size) return true;
    gpu_give(gpu, room->address);
    *room = (GpuRoom){0};
    if (!gpu_take(gpu, size, &room->address)) return false;
    room->size = size;
    return true;
}

/* Behind what is queued, which need not be waited for: the driver has taken what is in plain memory when the
 * call returns. */
bool gpu_write(Gpu *gpu, uint64_t to, const void *from, size_t size) {
    if (size == 0) return true;
    return enter(gpu) && leave(gpu, CALL(gpu, cuMemcpyHtoDAsync_v2, (to, from, size, gpu->stream)) &&
                                        (gpu->queued || wait_for(gpu)));
}

bool gpu_read(Gpu *gpu, void *to, uint64_t from, size_t size) {
    if (size == 0) return true;
    return enter(gpu) &&
           leave(gpu, CALL(gpu, cuMemcpyDtoHAsync_v2, (to, from, size, gpu->stream)) && wait_for(gpu));
}

/* ---- code */

static uint64_t variable(Gpu *gpu, void *module, const char *name) {
    uint64_t address = 0;
    size_t size = 0;
    return gpu->cuda.cuModuleGetGlobal_v2(&address, &size, module, name) == 0 ? address : 0;
}

uint64_t gpu_variable(Gpu *gpu, const GpuCode *code, const char *name) {
    if (!enter(gpu)) return 0;
    uint64_t address = variable(gpu, code->module, name);
    leave(gpu, true);
    return address;
}

static bool run_init(Gpu *gpu, const GpuCode *code, const char *name) {
    void *function;
    return CALL(gpu, cuModuleGetFunction, (&function, code->module, name)) &&
           CALL(gpu, cuLaunchKernel, (function, 1, 1, 1, 1, 1, 1, 0, gpu->stream, NULL, NULL)) &&
           wait_for(gpu);
}

/* The stack of a thread is small, unless it is asked for: it has to hold the kernel's own variables, too.
 * Nobody knows how deep a recursion goes. */
static bool make_stack(Gpu *gpu, const GpuCode *code) {
    int own = 0;
    return CALL(gpu, cuFuncGetAttribute, (&own, LOCAL_SIZE, code->function)) &&
           CALL(gpu, cuCtxSetLimit, (LIMIT_STACK, (size_t)own + RECURSIVE_STACK));
}

static bool prepare(Gpu *gpu, GpuCode *code, const GpuSource *source) {
    if (!CALL(gpu, cuModuleGetFunction, (&code->function, code->module, source->entry))) return false;
    code->host = variable(gpu, code->module, "_ZN5slope10slope_hostE");
    code->repeats = variable(gpu, code->module, "slope_again") != 0;
    if (variable(gpu, code->module, "slope_recursive") && !make_stack(gpu, code)) return false;
    return !source->init || run_init(gpu, code, source->init);
}

GpuCode *gpu_load(Gpu *gpu, const GpuSource *source) {
    const char *image = source->is_ptx ? source->text : gpu_compile(gpu, source);
    if (!image || !enter(gpu)) return NULL;
    GpuCode *code = calloc(1, sizeof *code);
    bool fine = code && CALL(gpu, cuModuleLoadData, (&code->module, image)) && prepare(gpu, code, source);
    leave(gpu, fine);
    if (fine) return code;
    if (code) gpu_unload(gpu, code);
    else gpu_fail(gpu, "out of memory");
    return NULL;
}

/* What is queued must be done before. */
void gpu_unload(Gpu *gpu, GpuCode *code) {
    if (code->module && !gpu->hangs && enter(gpu)) {
        gpu->cuda.cuModuleUnload(code->module);
        leave(gpu, true);
    }
    free(code);
}
