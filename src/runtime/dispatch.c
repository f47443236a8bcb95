/* Kernels over a pool of threads. Groups are numbered x fastest; workers take runs of consecutive groups
 * until none are left. The calling thread is a worker itself, so with one worker everything happens there, in
 * order. Workers look between two runs of groups whether the dispatch failed or was told to stop; that it was
 * told, the kernel notices as well. A child of fork, in which there are no workers, gets its own. */
#include "runtime/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS_PER_WORKER = 16, LONGEST_RUN = 1024 };

/* ---- one worker's part of a job */

static bool fit_shared(RtThread *thread, const RtKernel *kernel) {
    size_t align = kernel->shared_align < 64 ? 64 : kernel->shared_align;
    size_t size = (size_t)kernel->shared_size;
    if (size <= thread->shared_size) return true;
    size = (size + align - 1) / align * align;
    free(thread->shared);
    thread->shared_size = 0;
    thread->shared = aligned_alloc(align, size);
    if (!thread->shared) return false;
    thread->shared_size = size;
    return true;
}

static void place_group(RtContext *context, uint64_t number) {
    context->group_id[0] = (uint32_t)(number % context->groups[0]);
    context->group_id[1] = (uint32_t)(number / context->groups[0] % context->groups[1]);
    context->group_id[2] = (uint32_t)(number / context->groups[0] / context->groups[1]);
}

static bool run_groups(RtThread *thread, const Job *job, RtContext *context, uint64_t first, uint64_t end) {
    if (job->kernel->run) {
        job->kernel->run(context, first, end);
        return true;
    }
    for (uint64_t number = first; number < end; number++) {
        place_group(context, number);
        if (job->kernel->shared_size) memset(context->shared, 0, (size_t)job->kernel->shared_size);
        if (!fiber_run_group(thread, job->kernel, context) || *context->stop) return false;
    }
    return true;
}

/* A wave is part of a group. */
static uint32_t wave_size(const Runtime *runtime, const RtKernel *kernel) {
    uint32_t wave = runtime->config.wave > 0 ? (uint32_t)runtime->config.wave : 32;
    if (kernel->wave) wave = (uint32_t)kernel->wave;
    uint64_t threads = (uint64_t)kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
    return threads < wave ? (uint32_t)threads : wave;
}

static bool is_over(const RtThread *thread, Job *job) {
    return atomic_load(&job->failed) || atomic_load(thread->runtime->stop);
}

/* False: none is left. */
static bool take_run(Job *job, uint64_t *first, uint64_t *end) {
    *first = atomic_fetch_add(&job->next, job->chunk);
    if (*first >= job->total) return false;
    *end = job->total - *first < job->chunk ? job->total : *first + job->chunk;
    return true;
}

static bool run_runs(RtThread *thread, Job *job, RtContext *context) {
    uint64_t first, end;
    while (!is_over(thread, job) && take_run(job, &first, &end))
        if (!run_groups(thread, job, context, first, end)) return false;
    return true;
}

/* However many groups there are in it, somebody looks whether to stop. */
static bool run_chunk(RtThread *thread, Job *job, RtContext *context, uint64_t first, uint64_t end) {
    for (uint64_t next; first < end; first = next) {
        next = end - first < LONGEST_RUN ? end : first + LONGEST_RUN;
        if (is_over(thread, job) || !run_groups(thread, job, context, first, next)) return false;
    }
    return true;
}

static bool run_chunks(RtThread *thread, Job *job, RtContext *context) {
    static const char message[] = "out of memory for sums of a dispatch";
    uint64_t first, end;
    SumCopy *copy;
    while (!is_over(thread, job)) {
        SumsTaken taken = sums_take(job->sums, &copy);
        if (taken == SUMS_no_memory) thread_set_error(thread, message, sizeof message - 1);
        if (taken != SUMS_taken) return false;
        if (!take_run(job, &first, &end)) {
            sums_give(job->sums, copy);
            return true;
        }
        context->args = sums_args(job->sums, first / job->chunk, copy);
        if (!run_chunk(thread, job, context, first, end)) return false;
        sums_done(job->sums, first / job->chunk, copy);
    }
    return true;
}

static bool take_runs(RtThread *thread, Job *job) {
    RtContext context;
    memset(&context, 0, sizeof context);
    memcpy(context.groups, job->groups, sizeof context.groups);
    context.wave_size = wave_size(thread->runtime, job->kernel);
    memcpy(context.group_size, job->kernel->group_size, sizeof context.group_size);
    context.args = job->args;
    context.kernel = job->kernel;
    context.owner = thread;
    context.shared = thread->shared;
    context.stack_limit = stack_limit(thread);
    context.stop = thread_stop_flag(thread);
    return job->sums ? run_chunks(thread, job, &context) : run_runs(thread, job, &context);
}

static void fail(Job *job) {
    atomic_store(&job->failed, true);
    if (job->sums) sums_fail(job->sums);
}

typedef struct Part {
    RtThread *thread;
    Job *job;
} Part;

static void work_guarded(void *user) {
    Part *part = user;
    RtThread *thread = part->thread;
    RtGuard guard;
    guard.outer = thread->guard;
    guard.serial = thread->serial;
    bool answered = thread->answers;
    thread->answers = true;
    if (_setjmp(guard.at) == 0) {
        thread->guard = &guard;
        if (!take_runs(thread, part->job)) fail(part->job);
    } else {
        fail(part->job);
    }
    thread_reclaim(thread, guard.serial);
    thread->guard = guard.outer;
    thread->answers = answered;
    thread->stopped = false;
}

static bool start_work(RtThread *thread, Job *job) {
    Part part = {thread, job};
    if (!thread || !fit_shared(thread, job->kernel)) return false;
    if (job->kernel->deep) return stack_run(thread, work_guarded, &part);
    work_guarded(&part);
    return true;
}

static void work(Runtime *runtime, Job *job) {
    if (start_work(thread_current(runtime), job)) return;
    static const char message[] = "out of memory for a worker of a dispatch";
    runtime_set_error(runtime, true, message, sizeof message - 1);
    fail(job);
}

/* ---- the pool */

typedef struct WorkerStart {
    Runtime *runtime;
    int number;
} WorkerStart;

static void *worker_main(void *data) {
    WorkerStart start = *(WorkerStart *)data;
    free(data);
    Pool *pool = &start.runtime->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->quit && (pool->generation == seen || start.number >= pool->wanted)) {
            seen = pool->generation;
            pthread_cond_wait(&pool->wake, &pool->lock);
        }
        if (pool->quit) break;
        seen = pool->generation;
        Job *job = pool->job;
        pthread_mutex_unlock(&pool->lock);
        work(start.runtime, job);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0) pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static bool start_worker(Runtime *runtime) {
    Pool *pool = &runtime->pool;
    WorkerStart *start = malloc(sizeof *start);
    if (!start) return false;
    *start = (WorkerStart){runtime, pool->count};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, runtime->config.worker_stack);
    bool fine = pthread_create(&pool->threads[pool->count], &attributes, worker_main, start) == 0;
    pthread_attr_destroy(&attributes);
    if (fine) pool->count++;
    else free(start);
    return fine;
}

/* As many helpers as can be had, up to `count`. */
static int have_helpers(Runtime *runtime, int count) {
    Pool *pool = &runtime->pool;
    if (count > pool->count) {
        pthread_t *threads = realloc(pool->threads, sizeof *threads * (size_t)count);
        if (!threads) return pool->count;
        pool->threads = threads;
        while (pool->count < count && start_worker(runtime)) {}
    }
    return count < pool->count ? count : pool->count;
}

void pool_init(Pool *pool) {
    *pool = (Pool){.process = getpid()};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
}

static bool is_of_parent(const Pool *pool) { return pool->process != getpid(); }

/* Who held the lock, or waits, was left behind in the parent, too. */
static void forget_parent(Pool *pool) {
    free(pool->threads);
    pool_init(pool);
}

void pool_free(Pool *pool) {
    if (is_of_parent(pool)) forget_parent(pool);
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->idle);
}

static void run_with_helpers(Runtime *runtime, Job *job, int helpers) {
    Pool *pool = &runtime->pool;
    if (is_of_parent(pool)) forget_parent(pool);
    pthread_mutex_lock(&pool->lock);
    helpers = have_helpers(runtime, helpers);
    pool->job = job;
    pool->wanted = pool->busy = helpers;
    pool->generation++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    work(runtime, job);
    pthread_mutex_lock(&pool->lock);
    while (pool->busy > 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pool->wanted = 0;
    pool->job = NULL;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- the entry */

static bool refuse(Runtime *runtime, const char *text) {
    runtime_set_error(runtime, true, text, strlen(text));
    return false;
}

static uint64_t length_of_runs(uint64_t total, int workers) {
    if (workers == 1) return total < LONGEST_RUN ? total : LONGEST_RUN;
    uint64_t length = total / ((uint64_t)workers * RUNS_PER_WORKER);
    return length < 1 ? 1 : length > LONGEST_RUN ? LONGEST_RUN : length;
}

static bool run_job(Runtime *runtime, Job *job, int workers) {
    pthread_mutex_lock(&runtime->turn);
    if (workers > 1) run_with_helpers(runtime, job, workers - 1);
    else work(runtime, job);
    pthread_mutex_unlock(&runtime->turn);
    return !atomic_load(&job->failed) && !atomic_load(runtime->stop);
}

/* A single chunk needs no copies. */
static bool dispatch_sums(Runtime *runtime, Job *job, int workers) {
    Sums *sums = sums_new(job->kernel, job->total, job->args, workers);
    if (!sums) return refuse(runtime, "out of memory for sums of a dispatch");
    bool alone = sums_direct(sums) || sums_are_shared(sums);
    if (sums_direct(sums)) {
        job->args = sums_direct(sums);
        job->chunk = length_of_runs(job->total, 1);
    } else {
        job->sums = sums;
        job->chunk = sums_chunk(sums);
    }
    bool finished = run_job(runtime, job, alone ? 1 : workers);
    sums_free(sums);
    return finished;
}

bool runtime_dispatch(Runtime *runtime, const RtKernel *kernel, const uint32_t groups[3], void *const *args) {
    uint64_t plane = (uint64_t)groups[0] * groups[1];
    if (plane == 0 || groups[2] == 0) return true;
    if (plane > UINT64_MAX / 2 / groups[2]) return refuse(runtime, "the dispatch has too many groups");
    Job job = {.kernel = kernel, .groups = groups, .args = args, .total = plane * groups[2]};
    int workers = kernel->alone ? 1 : runtime_workers(runtime);
    if ((uint64_t)workers > job.total) workers = (int)job.total;
    if (kernel->nsums) return dispatch_sums(runtime, &job, workers);
    job.chunk = length_of_runs(job.total, workers);
    return run_job(runtime, &job, workers);
}
