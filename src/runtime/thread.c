/* Threads of the machine that run emitted code, and how they come back from an error.
 *
 * A guard is set where the world outside calls in. An error records its message and jumps to the innermost
 * guard; tapes and blocks that were opened behind that guard are closed there, because the frames that would
 * have closed them are gone. */
#include "runtime/thread.h"
#include <stdlib.h>
#include <string.h>

static void list_thread(Runtime *runtime, RtThread *thread) {
    pthread_mutex_lock(&runtime->lock);
    thread->next = runtime->threads;
    if (thread->next) thread->next->prev = thread;
    runtime->threads = thread;
    pthread_mutex_unlock(&runtime->lock);
}

static void unlist_thread(Runtime *runtime, RtThread *thread) {
    pthread_mutex_lock(&runtime->lock);
    if (thread->next) thread->next->prev = thread->prev;
    if (thread->prev) thread->prev->next = thread->next;
    else runtime->threads = thread->next;
    pthread_mutex_unlock(&runtime->lock);
}

RtThread *thread_current(Runtime *runtime) {
    RtThread *thread = pthread_getspecific(runtime->key);
    if (thread) return thread;
    thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    thread->runtime = runtime;
    atomic_flag_clear(&thread->kept_lock);
    if (pthread_setspecific(runtime->key, thread) != 0) {
        free(thread);
        return NULL;
    }
    list_thread(runtime, thread);
    return thread;
}

void thread_destroy(void *data) {
    RtThread *thread = data;
    unlist_thread(thread->runtime, thread);
    thread_reclaim(thread, 0);
    tape_release_kept(thread);
    fiber_set_free(thread->fibers);
    stack_free(thread->deep);
    free(thread->shared);
    free(thread);
}

void thread_reclaim(RtThread *thread, uint64_t serial) {
    while (thread->open && thread->open->serial > serial) rt_tape_close(thread->open);
    while (thread->blocks && thread->blocks->serial > serial) rt_memory_give((char *)(thread->blocks + 1));
    made_free(&thread->made, serial);
}

void thread_set_error(const RtThread *thread, const char *text, size_t length) {
    runtime_set_error(thread->runtime, thread->answers, text, length);
}

bool runtime_answer(Runtime *runtime, bool answer) {
    RtThread *thread = thread_current(runtime);
    if (!thread) return true;
    bool stopped = thread->stopped;
    thread->answers = answer;
    thread->stopped = false;
    return !stopped;
}

/* Whoever calls by address is not asked to stop: there would be nobody to tell that it was. */
const volatile int32_t *thread_stop_flag(const RtThread *thread) {
    _Static_assert(sizeof(atomic_int) == sizeof(int32_t), "emitted code reads the flag as a number");
    return thread->answers ? (const volatile int32_t *)(const volatile void *)thread->runtime->stop
                           : &thread->runtime->never;
}

static void leave(RtThread *thread) __attribute__((noreturn));
static void leave(RtThread *thread) {
    if (fiber_is_running(thread->fibers)) fiber_abandon(thread->fibers);
    _longjmp(thread->guard->at, 1);
}

void thread_fail(RtThread *thread, const char *text, size_t length) {
    thread_set_error(thread, text, length);
    leave(thread);
}

void rt_stop(RtThread *thread) {
    thread->stopped = true;
    leave(thread);
}

void rt_abort(const RtContext *context, const char *text, int64_t length) {
    thread_fail(context->owner, text, (size_t)length);
}

/* ---- calls from outside */

typedef struct Call {
    RtThread *thread;
    void (*body)(const RtContext *context, void *const *args);
    void *const *args;
    bool fine;
} Call;

static void run_body(const Call *call) {
    RtContext context;
    memset(&context, 0, sizeof context);
    context.owner = call->thread;
    context.stack_limit = stack_limit(call->thread);
    context.stop = thread_stop_flag(call->thread);
    call->body(&context, call->args);
}

static void run_guarded(void *user) {
    Call *call = user;
    RtThread *thread = call->thread;
    RtGuard guard;
    guard.outer = thread->guard;
    guard.serial = thread->serial;
    call->fine = _setjmp(guard.at) == 0;
    if (call->fine) {
        thread->guard = &guard;
        run_body(call);
        made_free(&thread->made, guard.serial);
    } else {
        thread_reclaim(thread, guard.serial);
    }
    thread->guard = guard.outer;
}

bool thread_call(Runtime *runtime, void (*body)(const RtContext *, void *const *), void *const *args,
                 bool deep) {
    Call call = {thread_current(runtime), body, args, false};
    bool started = call.thread != NULL;
    if (started && deep) started = stack_run(call.thread, run_guarded, &call);
    else if (started) run_guarded(&call);
    if (!started) runtime_set_error(runtime, false, "out of memory", strlen("out of memory"));
    return started && call.fine;
}

bool runtime_call(Runtime *runtime, void (*body)(const RtContext *, void *const *), void *const *args) {
    return thread_call(runtime, body, args, false);
}

/* ---- large statics and variables */

static char *list_block(RtThread *thread, RtBlock *block) {
    static const char message[] = "out of memory for variables";
    if (!block) thread_fail(thread, message, sizeof message - 1);
    block->owner = thread;
    block->serial = ++thread->serial;
    block->prev = NULL;
    block->next = thread->blocks;
    if (block->next) block->next->prev = block;
    thread->blocks = block;
    return (char *)(block + 1);
}

char *rt_memory_take(const RtContext *context, int64_t size) {
    return list_block(context->owner, calloc(1, sizeof(RtBlock) + (size_t)size));
}

char *rt_local_take(const RtContext *context, int64_t size) {
    return list_block(context->owner, malloc(sizeof(RtBlock) + (size_t)size));
}

void rt_memory_give(char *memory) {
    RtBlock *block = (RtBlock *)(void *)memory - 1;
    if (block->next) block->next->prev = block->prev;
    if (block->prev) block->prev->next = block->next;
    else block->owner->blocks = block->next;
    free(block);
}
