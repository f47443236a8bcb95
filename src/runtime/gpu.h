/* What the files for GPUs share among themselves. */
#ifndef SLOPE_RUNTIME_GPU_H
#define SLOPE_RUNTIME_GPU_H

#include "runtime/runtime.h"

/* The libraries, opened. */
typedef struct CudaCalls {
#define CUDA_CALL(name, params) int(*name) params;
#include "runtime/cuda.def"
} CudaCalls;

typedef struct NvrtcCalls {
#define NVRTC_CALL(name, params) int(*name) params;
#include "runtime/cuda.def"
} NvrtcCalls;

/* Memory that is kept from one run to the next, and grows. */
typedef struct GpuRoom {
    uint64_t address;
    size_t size;
} GpuRoom;

/* Code that was compiled, so that the same need not be compiled again. */
typedef struct GpuImage {
    struct GpuImage *next;
    char *source; /* with its options */
    char *code;
} GpuImage;

struct Gpu {
    GpuConfig config;
    void *library, *compiler_library;
    CudaCalls cuda;
    NvrtcCalls nvrtc;
    int device;
    int capability; /* 90 is 9.0 */
    void *context, *stream;
    void *signals; /* the stream on which a kernel is told to stop */
    bool hangs;    /* a kernel does not end: nothing can be given back */
    GpuRoom tapes, printed, copies;
    GpuImage *images; /* what was compiled, the last first */
    GpuCode *queued;  /* that were launched and not waited for, the last first */
    void *own_stream; /* `stream` may be one of others */
    char error[2048]; /* the last */
};

struct GpuCode {
    void *module, *function;
    uint64_t host; /* of its RtHost; 0: it needs none */
    bool repeats;  /* it may run out of memory for tapes or output, and is run again then */
    bool is_queued;
    GpuCode *next; /* that is queued */
};

/* ---- gpu.c */
bool gpu_fail(Gpu *gpu, const char *format, ...) __attribute__((format(printf, 2, 3))); /* false */
/* Of a call of the driver; false: it went wrong, and the error says which call. */
bool gpu_done(Gpu *gpu, const char *call, int status);
/* At least so large, what was in it is lost. */
bool gpu_room_fit(Gpu *gpu, GpuRoom *room, size_t size);

/* CALL(gpu, cuInit, (0)) */
#define CALL(gpu, name, args) gpu_done(gpu, #name, (gpu)->cuda.name args)

/* ---- nvrtc.c */
/* Machine code, or PTX where the compiler does not know the GPU; it stays the GPU's. NULL: the error says
 * why. */
const char *gpu_compile(Gpu *gpu, const GpuSource *source);
void gpu_forget_images(Gpu *gpu);

#endif
