/* What the files of the runtime share among themselves. */
#ifndef SLOPE_RUNTIME_THREAD_H
#define SLOPE_RUNTIME_THREAD_H

#include "runtime/runtime.h"
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Where an error goes: the innermost call or dispatch of this thread. */
typedef struct RtGuard {
    jmp_buf at;
    struct RtGuard *outer;
    uint64_t serial; /* of the thread when the guard was set: what was opened later is reclaimed */
} RtGuard;

/* Memory for large statics. The data follows. */
typedef struct RtBlock {
    struct RtBlock *next, *prev;
    RtThread *owner;
    uint64_t serial;
} RtBlock;

typedef struct FiberSet FiberSet;
typedef struct Made Made; /* a tensor */

/* How a recursion that has reached the end of its stack is measured: see stack.c. */
typedef struct StackWatch {
    const char *name; /* the function that was first there; NULL: none */
    char *at;         /* its frame */
} StackWatch;

typedef struct StackRange {
    char *bottom, *top;
} StackRange;

struct RtThread {
    Runtime *runtime;
    RtThread *next, *prev; /* of the runtime */
    RtGuard *guard;
    bool answers; /* its errors are those of a run that somebody waits for */
    bool stopped; /* that run was told to */
    RtTape *open; /* newest first */
    RtTape *kept; /* closed, for reuse; under the lock: other threads may empty it */
    atomic_flag kept_lock;
    RtBlock *blocks;  /* newest first */
    Made *made;       /* likewise */
    uint64_t serial;  /* of the newest tape, block or tensor */
    FiberSet *fibers; /* made when first needed */
    DeepStack *deep;  /* likewise */
    StackWatch watch;
    char *shared; /* group-shared memory of the group at work */
    size_t shared_size;
};

typedef struct Sums Sums;       /* of a dispatch */
typedef struct SumCopy SumCopy; /* of all buffers that it adds to */

/* A dispatch under way. */
typedef struct Job {
    const RtKernel *kernel;
    const uint32_t *groups;
    void *const *args;
    uint64_t total, chunk;     /* groups; groups taken at a time */
    Sums *sums;                /* what it adds to copies of buffers; NULL: nothing */
    atomic_uint_fast64_t next; /* first group that nobody has taken */
    atomic_bool failed;
} Job;

typedef struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    pthread_t *threads;
    pid_t process;       /* that they are threads of: a child of fork has none of them */
    int count;           /* threads that exist */
    int wanted;          /* threads with a lower number take part in the job at hand */
    int busy;            /* threads that have not finished it */
    uint64_t generation; /* counts jobs */
    Job *job;
    bool quit;
} Pool;

struct Runtime {
    RuntimeConfig config;
    atomic_int workers;
    atomic_int *stop; /* of the configuration, or the next */
    atomic_int own_stop;
    int32_t never; /* 0: for those who are not to stop */
    atomic_bool mute;
    atomic_uint_fast64_t tape_bytes;
    pthread_key_t key;      /* RtThread of the current thread */
    pthread_mutex_t lock;   /* threads, error */
    pthread_mutex_t output; /* one printf at a time */
    pthread_mutex_t turn;   /* one dispatch at a time */
    RtThread *threads;
    locale_t plain;  /* the one of C, for printing; 0: no memory */
    char *error;     /* of runs */
    char *stray;     /* of calls by address */
    RtSite *outside; /* places where an index was out of range */
    Made *made;      /* that constants hold; under the lock */
    Pool pool;
};

/* thread.c */
RtThread *thread_current(Runtime *runtime); /* made if there is none; NULL: no memory */
void thread_destroy(void *thread);
/* False: an error ended it. `deep`: on the stack for programs that call themselves. */
bool thread_call(Runtime *runtime, void (*body)(const RtContext *context, void *const *args),
                 void *const *args, bool deep);
void thread_fail(RtThread *thread, const char *text, size_t length) __attribute__((noreturn));
const volatile int32_t *thread_stop_flag(const RtThread *thread); /* for contexts */
void thread_reclaim(RtThread *thread, uint64_t serial);           /* closes what was opened after that */
void thread_set_error(const RtThread *thread, const char *text, size_t length);

/* made.c */
void made_free(Made **list, uint64_t serial); /* those that were made after that */

/* stack.c */
char *stack_map(size_t size); /* with a guard page below; NULL: no memory */
void stack_unmap(char *stack, size_t size);
/* Runs body(user) on the deep stack of the thread, or where it is if that is there already. False: no memory
 * for it. */
bool stack_run(RtThread *thread, void (*body)(void *user), void *user);
char *
stack_limit(const RtThread *thread); /* for contexts of the stack at hand; NULL: it is the caller's own */
char *stack_limit_of(StackRange range);
/* What the address sanitizer wants to hear of switches between stacks. */
void stack_leaving(void **save, const void *bottom, size_t size);
void stack_arrived(void *saved, const void **bottom, size_t *size);
void stack_forget_frames(char *stack, size_t size);

/* tape.c */
void tape_release_kept(RtThread *thread); /* frees the closed tapes that wait for reuse */

/* fiber.c */
/* Runs one group, each thread as a fiber. False: an error, which is recorded. */
bool fiber_run_group(RtThread *thread, const RtKernel *kernel, const RtContext *group);
void fiber_set_free(FiberSet *set);
bool fiber_is_running(const FiberSet *set);
StackRange fiber_stack(const FiberSet *set); /* of the one that runs */
void fiber_abandon(FiberSet *set)
    __attribute__((noreturn)); /* from within a fiber: the group ends in an error */

/* dispatch.c */
void pool_init(Pool *pool);
void pool_free(Pool *pool);

/* sums.c */
Sums *sums_new(const RtKernel *kernel, uint64_t groups, void *const *args, int workers); /* NULL: no memory */
void sums_free(Sums *sums);
uint64_t sums_chunk(const Sums *sums); /* how many groups are one */
/* The arguments for a worker that is the only one, and adds to the buffers themselves; NULL: there are
 * chunks. */
void *const *sums_direct(const Sums *sums);
bool sums_are_shared(const Sums *sums); /* some have no copies: only one worker may add to them */
/* For the next chunk: before its number is known, or there might be no copy left for the one that all wait
 * for. */
typedef enum SumsTaken { SUMS_taken, SUMS_over, SUMS_no_memory } SumsTaken;
SumsTaken sums_take(Sums *sums, SumCopy **out);
void sums_give(Sums *sums, SumCopy *copy);                                     /* it was not needed */
void *const *sums_args(const Sums *sums, uint64_t chunk, const SumCopy *copy); /* of the kernel */
void sums_done(Sums *sums, uint64_t chunk, SumCopy *copy);
void sums_fail(Sums *sums); /* nobody is to wait any more */

/* runtime.c */
void runtime_set_error(Runtime *runtime, bool answers, const char *text, size_t length);

#endif
