/* Groups whose threads wait for each other. Each thread of a group, or several that are lanes of vectors
 * (opt/lanes.c), is a fiber with a stack of its own; all fibers of a group take turns on one thread of the
 * machine and give way at barriers only. When every fiber has run once, either all are waiting, and the next
 * round begins, or all are done. A mixture means that the barrier was not reached by all threads, which is an
 * error in the program.
 *
 * A fiber is started as a ucontext; after that, switching is by setjmp and longjmp, which unlike swapcontext
 * make no system call.
 *
 * Fibers are made once and reused: when a fiber's thread of the program ends, the fiber waits for the next
 * group. After an error the fibers of the group stand somewhere inside the program; they are made anew before
 * their next use. */
#undef _FORTIFY_SOURCE /* its longjmp refuses to go to another stack */
#include "runtime/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

typedef enum FiberState { FIBER_none, FIBER_ready, FIBER_waiting, FIBER_meeting, FIBER_done } FiberState;

struct RtFiber {
    ucontext_t start;
    jmp_buf pause;
    RtContext context;
    FiberSet *set;
    char *stack;          /* above its guard page */
    FiberState state;     /* none: `start` must be made */
    uint64_t site, value; /* meeting: where, and what it brings */
    uint64_t lanes[2];    /* meeting: with whom, as bits; none: with all that come there */
    bool started;
    /* of the first frame: stacks that all begin alike in their page would share few lines of the cache */
    size_t inset;
    void *shadow_stack; /* of the address sanitizer */
};

struct FiberSet {
    jmp_buf scheduler;
    RtFiber **fibers;
    int count;
    size_t stack_size;
    const RtKernel *kernel;
    RtFiber *running;
    uint64_t meeting[RT_WAVE_LANES + 2]; /* of the wave that is running: the last one */
    bool failed;
    void *shadow_stack;
    const void *scheduler_stack; /* as the address sanitizer sees it */
    size_t scheduler_size;
};

/* ---- switching */

static void resume(RtFiber *fiber) {
    if (fiber->started) _longjmp(fiber->pause, 1);
    fiber->started = true;
    setcontext(&fiber->start);
}

static void switch_to_fiber(FiberSet *set, RtFiber *fiber) {
    set->running = fiber;
    stack_leaving(&set->shadow_stack, fiber->stack, set->stack_size);
    if (_setjmp(set->scheduler) == 0) resume(fiber);
    stack_arrived(set->shadow_stack, NULL, NULL);
    set->running = NULL;
}

static void switch_to_scheduler(FiberSet *set, RtFiber *fiber) {
    stack_leaving(&fiber->shadow_stack, set->scheduler_stack, set->scheduler_size);
    if (_setjmp(fiber->pause) == 0) _longjmp(set->scheduler, 1);
    stack_arrived(fiber->shadow_stack, &set->scheduler_stack, &set->scheduler_size);
}

void fiber_abandon(FiberSet *set) {
    set->failed = true;
    stack_leaving(NULL, set->scheduler_stack, set->scheduler_size);
    _longjmp(set->scheduler, 1);
}

bool fiber_is_running(const FiberSet *set) { return set && set->running; }

StackRange fiber_stack(const FiberSet *set) {
    char *bottom = set->running->stack;
    return (StackRange){bottom, bottom + set->stack_size};
}

/* ---- the life of a fiber */

static void fiber_main(unsigned high, unsigned low) {
    RtFiber *fiber = (RtFiber *)(uintptr_t)(((uint64_t)high << 32) | low);
    FiberSet *set = fiber->set;
    stack_arrived(NULL, &set->scheduler_stack, &set->scheduler_size);
    for (;;) {
        set->kernel->thread(&fiber->context);
        fiber->state = FIBER_done;
        switch_to_scheduler(set, fiber);
    }
}

void rt_barrier(const RtContext *context) {
    RtFiber *fiber = context->fiber;
    if (!fiber) return; /* a group of one thread */
    fiber->state = FIBER_waiting;
    switch_to_scheduler(fiber->set, fiber);
}

uint64_t *rt_wave(const RtContext *context, uint64_t site, uint64_t value, uint64_t low, uint64_t high,
                  uint64_t *own) {
    RtFiber *fiber = context->fiber;
    if (!fiber) { /* a wave of one thread */
        own[0] = 1, own[1] = 0, own[2] = value;
        return own;
    }
    fiber->state = FIBER_meeting;
    fiber->site = site;
    fiber->value = value;
    fiber->lanes[0] = low, fiber->lanes[1] = high;
    switch_to_scheduler(fiber->set, fiber);
    return fiber->set->meeting;
}

static bool make_start(FiberSet *set, RtFiber *fiber) {
    if (getcontext(&fiber->start) != 0) return false;
    stack_forget_frames(fiber->stack, set->stack_size);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = set->stack_size - fiber->inset;
    fiber->start.uc_link = NULL;
    fiber->started = false;
    uint64_t bits = (uint64_t)(uintptr_t)fiber;
    makecontext(&fiber->start, (void (*)(void))fiber_main, 2, (unsigned)(bits >> 32), (unsigned)bits);
    return true;
}

static RtFiber *fiber_new(FiberSet *set) {
    RtFiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber) return NULL;
    fiber->stack = stack_map(set->stack_size);
    if (!fiber->stack) {
        free(fiber);
        return NULL;
    }
    fiber->set = set;
    fiber->inset = (size_t)(set->count % 32) * 128;
    return fiber;
}

/* ---- sets */

static FiberSet *set_of(RtThread *thread) {
    if (thread->fibers) return thread->fibers;
    FiberSet *set = calloc(1, sizeof *set);
    if (!set) return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    set->stack_size = (thread->runtime->config.fiber_stack + page - 1) / page * page;
    return thread->fibers = set;
}

static bool set_fit(FiberSet *set, int count) {
    if (count <= set->count) return true;
    RtFiber **fibers = realloc(set->fibers, sizeof *fibers * (size_t)count);
    if (!fibers) return false;
    set->fibers = fibers;
    while (set->count < count) {
        RtFiber *fiber = fiber_new(set);
        if (!fiber) return false;
        set->fibers[set->count++] = fiber;
    }
    return true;
}

void fiber_set_free(FiberSet *set) {
    if (!set) return;
    for (int i = 0; i < set->count; i++) {
        stack_forget_frames(set->fibers[i]->stack, set->stack_size);
        stack_unmap(set->fibers[i]->stack, set->stack_size);
        free(set->fibers[i]);
    }
    free(set->fibers);
    free(set);
}

/* ---- groups */

static void place_thread(RtContext *context, const uint32_t size[3], uint32_t index) {
    uint32_t at[3] = {index % size[0], index / size[0] % size[1], index / size[0] / size[1]};
    context->local_index = index;
    for (int i = 0; i < 3; i++) {
        context->local_id[i] = at[i];
        context->thread_id[i] = context->group_id[i] * size[i] + at[i];
    }
}

static int lanes_of(const RtKernel *kernel) { return kernel->lanes ? (int)kernel->lanes : 1; }

static bool prepare(FiberSet *set, const RtContext *group, int count) {
    for (int i = 0; i < count; i++) {
        RtFiber *fiber = set->fibers[i];
        if (fiber->state == FIBER_none && !make_start(set, fiber)) return false;
        fiber->state = FIBER_ready;
        fiber->context = *group;
        fiber->context.fiber = count > 1 ? fiber : NULL;
        fiber->context.stack_limit =
            stack_limit_of((StackRange){fiber->stack, fiber->stack + set->stack_size});
        place_thread(&fiber->context, set->kernel->group_size, (uint32_t)(i * lanes_of(set->kernel)));
    }
    return true;
}

static bool names_lanes(const RtFiber *fiber) { return (fiber->lanes[0] | fiber->lanes[1]) != 0; }

/* Do both wait for the same meeting? */
static bool meet(const RtFiber *a, const RtFiber *b) {
    return a->state == FIBER_meeting && b->state == FIBER_meeting && a->site == b->site &&
           a->lanes[0] == b->lanes[0] && a->lanes[1] == b->lanes[1];
}

/* Are all here that the fiber names? */
static bool is_complete(const FiberSet *set, int first, int end, const RtFiber *fiber) {
    for (int i = first; i < end; i++) {
        int lane = i - first;
        bool named = (fiber->lanes[lane / 64] >> lane % 64 & 1) != 0;
        if (named && !meet(set->fibers[i], fiber)) return false;
    }
    return true;
}

/* One of those who meet next: who named others, if all of them are here; else the place that comes first in
 * the program: who is behind catches up, so that branches and loops end together. NULL: nobody waits. */
static const RtFiber *next_meeting(const FiberSet *set, int first, int end) {
    const RtFiber *next = NULL;
    for (int i = first; i < end; i++) {
        const RtFiber *fiber = set->fibers[i];
        if (fiber->state != FIBER_meeting) continue;
        if (names_lanes(fiber) && is_complete(set, first, end, fiber)) return fiber;
        if (!next || names_lanes(next) > names_lanes(fiber) ||
            (names_lanes(next) == names_lanes(fiber) && fiber->site < next->site))
            next = fiber;
    }
    return next;
}

/* The threads of a wave that have come to the same place go on together. False: none waits for others. */
static bool hold_meeting(FiberSet *set, int first, int end) {
    const RtFiber *next = next_meeting(set, first, end);
    if (!next) return false;
    RtFiber one = *next;
    memset(set->meeting, 0, 2 * sizeof *set->meeting);
    for (int i = first; i < end; i++) {
        RtFiber *fiber = set->fibers[i];
        if (!meet(fiber, &one)) continue;
        int lane = i - first;
        set->meeting[lane / 64] |= 1ull << lane % 64;
        set->meeting[lane + 2] = fiber->value;
        fiber->state = FIBER_ready;
    }
    return true;
}

/* Until all of its fibers wait for the group, or have ended. When a meeting is held nobody runs: all that met
 * before have read what they wanted. */
static bool run_wave(FiberSet *set, int first, int end) {
    do {
        for (int i = first; i < end; i++) {
            if (set->fibers[i]->state != FIBER_ready) continue;
            switch_to_fiber(set, set->fibers[i]);
            if (set->failed) return false;
        }
    } while (hold_meeting(set, first, end));
    return true;
}

/* Every fiber runs until it waits or ends. Returns how many ended, or -1 after an error. */
static int run_round(FiberSet *set, int wave, int count) {
    int done = 0;
    for (int first = 0; first < count; first += wave)
        if (!run_wave(set, first, first + wave < count ? first + wave : count)) return -1;
    for (int i = 0; i < count; i++) {
        RtFiber *fiber = set->fibers[i];
        if (fiber->state == FIBER_done) done++;
        else fiber->state = FIBER_ready;
    }
    return done;
}

static void abandon_all(FiberSet *set, int count) {
    for (int i = 0; i < count; i++) set->fibers[i]->state = FIBER_none;
}

static void report_divergence(RtThread *thread, const RtContext *group, int waiting, int count) {
    char text[200];
    int length = snprintf(
        text, sizeof text,
        "a group barrier was reached by %d of the %d threads of group (%u, %u, %u); the others have ended",
        waiting, count, group->group_id[0], group->group_id[1], group->group_id[2]);
    thread_set_error(thread, text, (size_t)length);
}

static bool report_memory(RtThread *thread) {
    static const char message[] = "out of memory for the threads of a group";
    thread_set_error(thread, message, sizeof message - 1);
    return false;
}

bool fiber_run_group(RtThread *thread, const RtKernel *kernel, const RtContext *group) {
    int threads = (int)(kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2]);
    int lanes = lanes_of(kernel), count = threads / lanes;
    FiberSet *set = set_of(thread);
    if (!set || !set_fit(set, count)) return report_memory(thread);
    set->kernel = kernel;
    set->failed = false;
    if (!prepare(set, group, count)) return report_memory(thread);
    for (;;) {
        int done = run_round(set, group->wave_size ? (int)group->wave_size : RT_WAVE_LANES, count);
        if (done == count) return true;
        if (done == 0) continue;
        if (done > 0) report_divergence(thread, group, (count - done) * lanes, threads);
        abandon_all(set, count);
        return false;
    }
}
