/* runtime: what emitted programs stand on: threads, kernels over groups, tapes, output, errors, buffers.
 *
 * A Runtime belongs to one session (or, in a program linked with libslope-rt, to one module). Threads that run emitted
 * code get an RtThread each, kept until the thread or the runtime ends; tapes and fiber stacks in it are reused from call
 * to call. There are no globals: a thread finds its RtThread by a key of its Runtime.
 *
 * Errors. `abort`, a tape that grew past the limit, a stack that is full and a barrier that not all threads of a group
 * reach end the call or dispatch at once: control returns to rt_call or runtime_dispatch by longjmp, memory of the thread is reclaimed,
 * and the message waits in the runtime until somebody takes it. */
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
/* The first error since this was last asked, or NULL. The text is the caller's, to be freed. Errors of dispatches and of
 * calls between runtime_answer(true) and (false) come first; those of other calls, which somebody made by address, can be
 * asked for alone. */
char *runtime_take_error(Runtime *runtime);
char *runtime_take_answer(Runtime *runtime);
char *runtime_take_stray(Runtime *runtime);
/* The places where an index was out of range since this was last asked. Whoever asks sets their counts to zero. */
RtSite *runtime_take_outside(Runtime *runtime);
uint64_t runtime_tape_bytes(const Runtime *runtime); /* granted to tapes now, kept ones included */

/* ---- thread.c */
/* rt_call with a runtime that is there. False: it was ended by an error. */
bool runtime_call(Runtime *runtime, void (*body)(const RtContext *context, void *const *args),
                  void *const *args);
/* This thread makes a call whose error somebody asks for, or (false) has made it; false: it was told to stop. */
bool runtime_answer(Runtime *runtime, bool answer);

/* ---- dispatch.c */
/* Runs the kernel over groups[0] * groups[1] * groups[2] groups. False: an error ended it, or runtime_stop, of which there
 * is no message. */
bool runtime_dispatch(Runtime *runtime, const RtKernel *kernel, const uint32_t groups[3], void *const *args);

/* ---- buffer.c */
/* Zeroed memory for count elements of that many bytes each, with a header; data NULL: no memory. */
RtBuffer runtime_buffer_new(uint64_t count, uint64_t stride);
void runtime_buffer_free(RtBuffer buffer);
uint32_t *runtime_buffer_counter(RtBuffer buffer);

/* ---- symbols.c: what emitted code refers to by name, for the JIT */
const RtSymbol *runtime_symbols(int *count);

#endif
