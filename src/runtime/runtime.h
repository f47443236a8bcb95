/* runtime: what emitted programs stand on: threads, kernels over groups, tapes, output, errors, buffers.
 *
 * A Runtime belongs to one session (or, in a program linked with libslope-rt, to one module). Threads that
 * run emitted code get an RtThread each, kept until the thread or the runtime ends; tapes and fiber stacks in
 * it are reused from call to call. There are no globals: a thread finds its RtThread by a key of its Runtime.
 *
 * Errors. `abort`, a tape that grew past the limit, a stack that is full and a barrier that not all threads
 * of a group reach end the call or dispatch at once: control returns to rt_call or runtime_dispatch by
 * longjmp, memory of the thread is reclaimed, and the message waits in the runtime until somebody takes
 * it. */
#ifndef SLOPE_RUNTIME_H
#define SLOPE_RUNTIME_H

#include "emit/abi.h"
#include <stdatomic.h>
#include <stdbool.h>

typedef struct RuntimeConfig {
    int wave;            /* lanes of a wave, up to RT_WAVE_LANES; 0: 32 */
    int workers;         /* threads that share a dispatch; 0: as many as CPUs are online */
    uint64_t tape_limit; /* bytes on all tapes together; 0: three quarters of the memory of the machine */
    size_t fiber_stack;  /* bytes for each thread of a group that waits at barriers; 0: 1 MiB */
    size_t worker_stack; /* bytes for each worker thread; 0: 64 MiB */
    size_t deep_stack;   /* bytes for programs that call themselves; 0: a sixteenth of the memory, or 1 GiB */
    atomic_int *stop;    /* not 0: runs are to end; NULL: the runtime has one of its own */
    void (*write)(void *user, const char *text,
                  size_t length); /* output of printf; NULL: to file descriptor 1 */
    /* Takes errors as they happen; NULL: the first is kept for runtime_take_error. */
    void (*failed)(void *user, const char *text);
    void *user;
} RuntimeConfig;

/* ---- runtime.c */
Runtime *runtime_new(const RuntimeConfig *config); /* NULL config: all defaults; NULL if there is no memory */
void runtime_free(Runtime *runtime);               /* no call or dispatch may be under way */
int runtime_workers(const Runtime *runtime);
void runtime_stop(Runtime *runtime, bool stop); /* true: dispatches, and calls that answer, end soon */
void runtime_mute(Runtime *runtime, bool mute); /* true: what programs print is dropped */
/* The first error since this was last asked, or NULL. The text is the caller's, to be freed. Errors of
 * dispatches and of calls between runtime_answer(true) and (false) come first; those of other calls, which
 * somebody made by address, can be asked for alone. */
char *runtime_take_error(Runtime *runtime);
char *runtime_take_answer(Runtime *runtime);
char *runtime_take_stray(Runtime *runtime);
/* The places where an index was out of range since this was last asked. Whoever asks sets their counts to
 * zero. */
RtSite *runtime_take_outside(Runtime *runtime);
uint64_t runtime_tape_bytes(const Runtime *runtime); /* granted to tapes now, kept ones included */

/* ---- thread.c */
/* rt_call with a runtime that is there. False: it was ended by an error. */
bool runtime_call(Runtime *runtime, void (*body)(const RtContext *context, void *const *args),
                  void *const *args);
/* This thread makes a call whose error somebody asks for, or (false) has made it; false: it was told to
 * stop. */
bool runtime_answer(Runtime *runtime, bool answer);

/* ---- stack.c */
typedef struct DeepStack DeepStack;
DeepStack *stack_new(size_t wanted); /* or what can be had; NULL: nothing can */
/* Runs body(user) on it, or where it is if that is there already. False: it was not begun. */
bool stack_call(DeepStack *stack, void (*body)(void *user), void *user);
void stack_free(DeepStack *stack);

/* ---- dispatch.c */
/* Runs the kernel over groups[0] * groups[1] * groups[2] groups. False: an error ended it, or runtime_stop,
 * of which there is no message. */
bool runtime_dispatch(Runtime *runtime, const RtKernel *kernel, const uint32_t groups[3], void *const *args);

/* ---- sums.c */
/* Which of the buffers that it adds to are too large for copies, by bits in the order of RtKernel.sums, so
 * that code which adds to them atomically is to be run instead. It depends on the dispatch, not on the number
 * of workers, but that one worker needs no such code. Run in spite of that, the kernel runs on one worker
 * alone. */
uint64_t runtime_large_sums(const Runtime *runtime, const RtKernel *kernel, const uint32_t groups[3],
                            void *const *args);

/* ---- buffer.c */
/* Zeroed memory for count elements of that many bytes each, with a header; data NULL: no memory. */
RtBuffer runtime_buffer_new(uint64_t count, uint64_t stride);
void runtime_buffer_free(RtBuffer buffer);
uint32_t *runtime_buffer_counter(RtBuffer buffer);

/* ---- gpu.c: a GPU, through NVIDIA's driver, which is opened when one is asked for
 *
 * Addresses on the device are numbers. What fails says so in gpu_error, with the name of the call that failed. */
typedef struct Gpu Gpu;
typedef struct GpuCode GpuCode;

/* Keeps what was compiled for those who ask for the very same again, in this run or a later one. It may
 * forget. */
typedef struct GpuCache {
    void *user;
    /* To be freed; NULL: it does not have it. */
    char *(*find)(void *user, const char *key, size_t key_size, size_t *size);
    void (*keep)(void *user, const char *key, size_t key_size, const char *bytes, size_t size);
} GpuCache;

typedef struct GpuConfig {
    int index;           /* which one, from 0 */
    uint64_t tape_limit; /* bytes for all tapes of a kernel; 0: three quarters of what is free */
    atomic_int *stop;    /* not 0: kernels are to end */
    GpuCache cache;      /* find: NULL: none */
} GpuConfig;

/* CUDA C++, and how it is compiled. */
typedef struct GpuSource {
    const char *text;
    bool is_ptx;            /* it is not CUDA C++, but what the driver loads */
    const char *entry;      /* the kernel */
    const char *init;       /* a kernel to be run once, that computes constants; NULL: none */
    const char *options[4]; /* of the compiler */
    int noptions;
} GpuSource;

/* NULL: there is none; the reason is in `error`. */
Gpu *gpu_open(const GpuConfig *config, char *error, size_t room);
void gpu_close(Gpu *gpu); /* all code and memory must be freed before */
const char *gpu_error(const Gpu *gpu);
int gpu_capability(const Gpu *gpu);                      /* 90 is 9.0 */
bool gpu_take(Gpu *gpu, size_t size, uint64_t *address); /* zeroed */
void gpu_give(Gpu *gpu, uint64_t address);               /* 0 is accepted */
void gpu_use_stream(Gpu *gpu, void *stream);             /* for all that follows; NULL: our own */
bool gpu_write(Gpu *gpu, uint64_t to, const void *from, size_t size);
bool gpu_read(Gpu *gpu, void *to, uint64_t from, size_t size);
GpuCode *gpu_load(Gpu *gpu, const GpuSource *source); /* compiled; NULL: it failed */
void gpu_unload(Gpu *gpu, GpuCode *code);
/* The address of a variable of it; 0: it has none of that name. */
uint64_t gpu_variable(Gpu *gpu, const GpuCode *code, const char *name);

/* ---- nvrtc.c */
bool gpu_has_nvrtc(void);
/* PTX for GPUs of that compute capability (70 is 7.0) and later, by NVRTC; no GPU is needed. To be freed;
 * NULL: the reason is in `error`. */
char *gpu_make_ptx(const GpuSource *source, int capability, char *error, size_t room);

/* ---- gpurun.c */
/* What a kernel may write: it is put back if the kernel has to be run again, with more memory. */
typedef struct GpuRange {
    uint64_t address;
    size_t size;
} GpuRange;

typedef struct GpuRun {
    uint32_t groups[3], group_size[3];
    void **args; /* of the kernel, by address */
    const GpuRange *written;
    int nwritten;
} GpuRun;

/* Launches it and waits until it is done; prints what it printed. False: an error, which is the runtime's as
 * well as one of a dispatch (the program's own, or that of a call), or it was stopped, of which there is no
 * message. */
bool gpu_run(Gpu *gpu, Runtime *runtime, GpuCode *code, const GpuRun *run);
/* Launches it behind what was queued before, and does not wait. Not for code that may have to run again. */
bool gpu_can_queue(const GpuCode *code);
bool gpu_queue(Gpu *gpu, Runtime *runtime, GpuCode *code, const GpuRun *run);
/* Until all that was queued is done; false as gpu_run, of any of them. */
bool gpu_wait(Gpu *gpu, Runtime *runtime);

/* ---- symbols.c: what emitted code refers to by name, for the JIT */
const RtSymbol *runtime_symbols(int *count);

#endif
