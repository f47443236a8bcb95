/* Stacks of our own. A program that calls itself runs on a deep one, whoever calls it from whichever thread:
 * a large range of addresses that is filled with memory as it is touched. Functions that may call themselves
 * compare their frame with the limit in the context and come to rt_stack when they are below it; the last
 * part of the stack is kept for what they call themselves and for finding out how deep they are.
 *
 * How deep: the first function that arrives is remembered and goes on. When the same function arrives again,
 * further down, the distance of the two frames is what one level takes, and the whole stack divided by it is
 * the depth. */
#include "runtime/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

enum { MIB = 1024 * 1024, LARGEST_RESERVE = 512 * 1024 };
static const size_t kept_size = 8 * MIB; /* of a deep stack, between two calls: no frames are below it then */

struct DeepStack {
    ucontext_t start, back;
    char *memory; /* above its guard page */
    size_t size;
    bool running;
    void (*body)(void *user);
    void *user;
    void *shadow_stack; /* of the caller, as the address sanitizer sees it; and where that is */
    const void *outer;
    size_t outer_size;
};

/* ---- the address sanitizer */

#ifdef WITH_ASAN
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom, size_t *size);
void __asan_unpoison_memory_region(void const volatile *address, size_t size);

void stack_leaving(void **save, const void *bottom, size_t size) {
    __sanitizer_start_switch_fiber(save, bottom, size);
}
void stack_arrived(void *saved, const void **bottom, size_t *size) {
    __sanitizer_finish_switch_fiber(saved, bottom, size);
}
void stack_forget_frames(char *stack, size_t size) { __asan_unpoison_memory_region(stack, size); }
#else
void stack_leaving(void **save, const void *bottom, size_t size) { (void)save, (void)bottom, (void)size; }
void stack_arrived(void *saved, const void **bottom, size_t *size) { (void)saved, (void)bottom, (void)size; }
void stack_forget_frames(char *stack, size_t size) { (void)stack, (void)size; }
#endif

/* ---- memory */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

char *stack_map(size_t size) {
    size_t guard = page_size();
    char *memory =
        mmap(NULL, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    if (mprotect(memory, guard, PROT_NONE) == 0) return memory + guard;
    munmap(memory, guard + size);
    return NULL;
}

void stack_unmap(char *stack, size_t size) {
    size_t guard = page_size();
    munmap(stack - guard, guard + size);
}

/* As much as is wanted, but no more than half of the address space that there is, as tapes need some, too. */
DeepStack *stack_new(size_t wanted) {
    DeepStack *stack = calloc(1, sizeof *stack);
    if (!stack) return NULL;
    size_t page = page_size();
    for (stack->size = (wanted + page - 1) / page * page; stack->size >= MIB;
         stack->size = stack->size / 2 / page * page) {
        char *room = stack_map(2 * stack->size);
        if (!room) continue;
        stack_unmap(room, 2 * stack->size);
        stack->memory = stack_map(stack->size);
        if (stack->memory) return stack;
    }
    free(stack);
    return NULL;
}

static bool is_trimmed(const DeepStack *stack) { return stack->size >= 2 * kept_size; }

void stack_free(DeepStack *stack) {
    if (!stack) return;
    size_t used = is_trimmed(stack) ? kept_size : stack->size;
    stack_forget_frames(stack->memory + stack->size - used, used);
    stack_unmap(stack->memory, stack->size);
    free(stack);
}

/* A call that went deep gives its memory back: one page tells, since frames leave something in it. */
static void trim(DeepStack *stack) {
    if (!is_trimmed(stack)) return;
    size_t page = page_size();
    char *top = stack->memory + stack->size, *probe = top - kept_size;
    for (size_t i = 0; i < page; i++) {
        if (!probe[i]) continue;
        stack_forget_frames(stack->memory, stack->size);
        madvise(stack->memory, (size_t)(probe + page - stack->memory), MADV_DONTNEED);
        return;
    }
}

/* ---- running */

static void deep_main(unsigned high, unsigned low) {
    DeepStack *stack = (DeepStack *)(uintptr_t)(((uint64_t)high << 32) | low);
    stack_arrived(NULL, &stack->outer, &stack->outer_size);
    stack->body(stack->user);
    stack_leaving(NULL, stack->outer, stack->outer_size);
}

bool stack_call(DeepStack *stack, void (*body)(void *), void *user) {
    if (stack->running) {
        body(user);
        return true;
    }
    if (getcontext(&stack->start) != 0) return false;
    stack->start.uc_stack.ss_sp = stack->memory;
    stack->start.uc_stack.ss_size = stack->size;
    stack->start.uc_link = &stack->back;
    stack->body = body;
    stack->user = user;
    stack->running = true;
    uint64_t bits = (uint64_t)(uintptr_t)stack;
    makecontext(&stack->start, (void (*)(void))deep_main, 2, (unsigned)(bits >> 32), (unsigned)bits);
    stack_leaving(&stack->shadow_stack, stack->memory, stack->size);
    bool fine = swapcontext(&stack->back, &stack->start) == 0;
    stack_arrived(stack->shadow_stack, NULL, NULL);
    stack->running = false;
    trim(stack);
    return fine;
}

bool stack_run(RtThread *thread, void (*body)(void *), void *user) {
    if (!thread->deep) thread->deep = stack_new(thread->runtime->config.deep_stack);
    DeepStack *stack = thread->deep;
    if (stack && !stack->running) thread->watch = (StackWatch){0};
    return stack && stack_call(stack, body, user);
}

/* ---- limits */

static size_t reserve_of(StackRange range) {
    size_t quarter = (size_t)(range.top - range.bottom) / 4;
    return quarter < LARGEST_RESERVE ? quarter : LARGEST_RESERVE;
}

char *stack_limit_of(StackRange range) { return range.bottom + reserve_of(range); }

static StackRange range_at_hand(const RtThread *thread) {
    if (fiber_is_running(thread->fibers)) return fiber_stack(thread->fibers);
    const DeepStack *stack = thread->deep;
    if (!stack || !stack->running) return (StackRange){NULL, NULL};
    return (StackRange){stack->memory, stack->memory + stack->size};
}

char *stack_limit(const RtThread *thread) {
    StackRange range = range_at_hand(thread);
    return range.bottom ? stack_limit_of(range) : NULL;
}

/* Functions that derivatives are made of are called by the function they come from. */
static size_t plain_name(const char *name, size_t length) {
    static const char *const suffixes[] = {".pri", ".prop", ".tangent", ".bwd", ".fwd", ".flat", ".normal"};
    size_t end = length; /* before a number that tells names apart */
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
    end = end > 0 && end < length && name[end - 1] == '.' ? end - 1 : length;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t size = strlen(suffixes[i]);
        if (end > size && memcmp(name + end - size, suffixes[i], size) == 0) return end - size;
    }
    return length;
}

static void fail_full(RtThread *thread, StackRange range, const char *name, size_t length, uint64_t depth) {
    char text[400], levels[64] = "";
    size_t plain = plain_name(name, length);
    if (depth) snprintf(levels, sizeof levels, ", about %llu calls deep", (unsigned long long)depth);
    int size =
        snprintf(text, sizeof text, "the stack of %llu KiB is full in %s'%.*s'%s; does the recursion end?",
                 (unsigned long long)((range.top - range.bottom) / 1024),
                 plain < length ? "a derivative of " : "", plain > 200 ? 200 : (int)plain, name, levels);
    thread->watch = (StackWatch){0};
    thread_fail(thread, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

void rt_stack(const RtContext *context, const char *name, int64_t length) {
    RtThread *thread = context->owner;
    StackRange range = range_at_hand(thread);
    StackWatch *watch = &thread->watch;
    char *here = __builtin_frame_address(0);
    bool again = watch->name == name && here < watch->at;
    if (again)
        fail_full(thread, range, name, (size_t)length, (uint64_t)((range.top - here) / (watch->at - here)));
    if (here < range.bottom + reserve_of(range) / 2) fail_full(thread, range, name, (size_t)length, 0);
    if (!watch->name || watch->name == name || here > watch->at) *watch = (StackWatch){name, here};
}
