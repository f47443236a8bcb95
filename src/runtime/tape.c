/* Tapes: the storage of reverse passes. A tape is a set of stacks, one per scalar type, each in an address
 * range of its own that is reserved once, far larger than needed, and filled with memory by the system as it
 * is touched: data does not move, and a push is a comparison and a store. Emitted code does pushes and pops
 * itself and comes here only when a stack has used up what it was granted.
 *
 * Grants are counted against the limit of the runtime. A closed tape keeps its memory and waits in its thread
 * for the next one that is opened; under pressure these waiting ones are given back first.
 *
 * Where address space is short (a limit on the process), ranges are smaller, and a stack that outgrows its
 * range moves to a larger one. */
#include "runtime/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1024 * 1024)

static const int64_t first_grant = 64 * 1024;
static const int64_t largest_step = 64 * MIB;
static const int64_t huge_from = 8 * MIB; /* from here on a stack may use large pages */

static const uint8_t element_size[RT_STACKS] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8};

/* ---- address ranges */

static char *map_range(int64_t size) {
    void *range =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
    madvise(range, (size_t)size, MADV_NOHUGEPAGE); /* most stacks are small */
#endif
    return range;
}

/* A range of `best` bytes; if that cannot be had, address space is scarce: little more than `least`. */
static char *reserve(int64_t best, int64_t least, int64_t *size) {
    const int64_t sizes[] = {best, 4 * least, 2 * least, least};
    for (int i = 0; i < 4; i++) {
        char *range = map_range(sizes[i]);
        *size = sizes[i];
        if (range) return range;
    }
    return NULL;
}

static void allow_large_pages(char *from, int64_t size) {
#ifdef MADV_HUGEPAGE
    madvise(from, (size_t)size, MADV_HUGEPAGE);
#else
    (void)from;
    (void)size;
#endif
}

/* ---- open and close */

/* Closed tapes may be taken by another thread that is short of memory; nobody holds this for long. */
static void lock_kept(RtThread *thread) {
    while (atomic_flag_test_and_set_explicit(&thread->kept_lock, memory_order_acquire)) {}
}
static void unlock_kept(RtThread *thread) {
    atomic_flag_clear_explicit(&thread->kept_lock, memory_order_release);
}

RtTape *rt_tape_open(const RtContext *context) {
    RtThread *thread = context->owner;
    lock_kept(thread);
    RtTape *tape = thread->kept;
    if (tape) thread->kept = tape->next;
    unlock_kept(thread);
    if (!tape) {
        static const char message[] = "out of memory for a tape";
        tape = calloc(1, sizeof *tape);
        if (!tape) thread_fail(thread, message, sizeof message - 1);
        tape->owner = thread;
    }
    tape->serial = ++thread->serial;
    tape->prev = NULL;
    tape->next = thread->open;
    if (tape->next) tape->next->prev = tape;
    thread->open = tape;
    return tape;
}

void rt_tape_close(RtTape *tape) {
    RtThread *thread = tape->owner;
    if (tape->next) tape->next->prev = tape->prev;
    if (tape->prev) tape->prev->next = tape->next;
    else thread->open = tape->next;
    for (int kind = 0; kind < RT_STACKS; kind++) tape->stacks[kind].count = 0;
    tape->prev = NULL;
    lock_kept(thread);
    tape->next = thread->kept;
    thread->kept = tape;
    unlock_kept(thread);
}

static void release_stack(RtTape *tape, int kind) {
    RtStack *stack = &tape->stacks[kind];
    if (!stack->data) return;
    munmap(stack->data, (size_t)tape->reserved[kind]);
    atomic_fetch_sub(&tape->owner->runtime->tape_bytes, (uint64_t)(stack->room * element_size[kind]));
    tape->reserved[kind] = 0;
    *stack = (RtStack){0};
}

static void tape_release(RtTape *tape) {
    for (int kind = 0; kind < RT_STACKS; kind++) release_stack(tape, kind);
    free(tape);
}

void tape_release_kept(RtThread *thread) {
    lock_kept(thread);
    RtTape *tape = thread->kept;
    thread->kept = NULL;
    unlock_kept(thread);
    while (tape) {
        RtTape *next = tape->next;
        tape_release(tape);
        tape = next;
    }
}

/* ---- growth */

static void fail_limit(RtThread *thread) {
    char text[160];
    int length =
        snprintf(text, sizeof text, "a reverse pass needs more than the %llu MiB allowed for its storage",
                 (unsigned long long)(thread->runtime->config.tape_limit / MIB));
    thread_fail(thread, text, (size_t)length);
}

static bool within_limit(Runtime *runtime, int64_t bytes) {
    uint64_t before = atomic_fetch_add(&runtime->tape_bytes, (uint64_t)bytes);
    if (before + (uint64_t)bytes <= runtime->config.tape_limit) return true;
    atomic_fetch_sub(&runtime->tape_bytes, (uint64_t)bytes);
    return false;
}

static int64_t round_up(int64_t bytes) { return (bytes + first_grant - 1) / first_grant * first_grant; }

static void release_all_kept(Runtime *runtime) {
    pthread_mutex_lock(&runtime->lock);
    for (RtThread *thread = runtime->threads; thread; thread = thread->next) tape_release_kept(thread);
    pthread_mutex_unlock(&runtime->lock);
}

/* Gives back what the open tapes of this thread were granted and do not use; except for one stack. */
static void trim_open(RtThread *thread, const RtStack *except) {
    for (RtTape *tape = thread->open; tape; tape = tape->next)
        for (int kind = 0; kind < RT_STACKS; kind++) {
            RtStack *stack = &tape->stacks[kind];
            int64_t used = round_up(stack->count * element_size[kind]);
            int64_t unused = stack->room * element_size[kind] - used;
            if (unused <= 0 || stack == except) continue;
            madvise(stack->data + used, (size_t)unused, MADV_DONTNEED);
            atomic_fetch_sub(&thread->runtime->tape_bytes, (uint64_t)unused);
            stack->room = used / element_size[kind];
        }
}

/* Counts `wanted` bytes, or if that is too much `needed`, against the limit. Returns how many. Other stacks
 * may have less room afterwards. */
static int64_t grant(RtThread *thread, const RtStack *stack, int64_t wanted, int64_t needed) {
    if (within_limit(thread->runtime, wanted)) return wanted;
    if (within_limit(thread->runtime, needed)) return needed;
    release_all_kept(thread->runtime);
    if (within_limit(thread->runtime, needed)) return needed;
    trim_open(thread, stack);
    if (!within_limit(thread->runtime, needed)) fail_limit(thread);
    return needed;
}

static bool fit_range(RtTape *tape, int kind, int64_t bytes) {
    RtStack *stack = &tape->stacks[kind];
    int64_t old = tape->reserved[kind];
    if (bytes <= old) return true;
    uint64_t limit = tape->owner->runtime->config.tape_limit;
    int64_t best = round_up(limit > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)limit);
    int64_t size;
    char *data = reserve(best > bytes ? best : bytes, bytes, &size);
    if (!data) return false;
    if (old) {
        memcpy(data, stack->data, (size_t)(stack->count * element_size[kind]));
        munmap(stack->data, (size_t)old);
    }
    stack->data = data;
    tape->reserved[kind] = size;
    return true;
}

void rt_tape_more(RtTape *tape, int64_t kind, int64_t more) {
    RtStack *stack = &tape->stacks[kind];
    RtThread *thread = tape->owner;
    int64_t size = element_size[kind];
    if (more < 0 || more > INT64_MAX / 16 - stack->count) fail_limit(thread);
    int64_t have = stack->room * size;
    int64_t needed = round_up((stack->count + more) * size) - have;
    if (needed <= 0) return;
    int64_t step = have < first_grant ? first_grant : have > largest_step ? largest_step : have;
    int64_t granted = grant(thread, stack, needed > step ? needed : step, needed);
    if (!fit_range(tape, (int)kind, have + granted)) {
        atomic_fetch_sub(&thread->runtime->tape_bytes, (uint64_t)granted);
        static const char message[] = "out of memory for the storage of a reverse pass";
        thread_fail(thread, message, sizeof message - 1);
    }
    if (have + granted >= huge_from) allow_large_pages(stack->data + have, granted);
    stack->room = (have + granted) / size;
}
