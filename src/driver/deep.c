/* The compiler follows what is nested by calling itself, as deep as its limits on nesting allow: that takes a
 * few MiB of stack. A thread of the host that has less left (512 KiB is common, 128 KiB not unheard of) gets
 * a stack of the session's for the time of the call. Whatever has enough stays where it is: debuggers,
 * profilers and sanitizers know that stack.
 *
 * Chains of calls in a program can be of any length, and what follows them may come to the end of any stack:
 * limit.c looks where that is.
 *
 * A trap springs on the stack it was set on: the one of the API call waits while the work has its own. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "driver.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

static const size_t enough = 4u << 20, own_size = 64u << 20;

typedef struct Deep {
    SlopeSession *session;
    DriverWork *work;
    SlopeStatus (*run)(DriverWork *work);
    SlopeStatus status;
    bool trapped;
} Deep;

/* The first thread's stack grows as far as the system lets it. */
static size_t stack_of_process(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_STACK, &limit) == 0 ? (size_t)limit.rlim_cur : enough;
}

static size_t stack_left(void) {
    pthread_attr_t attributes;
    void *bottom = NULL;
    size_t size = 0;
    if (gettid() == getpid()) return stack_of_process();
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return enough;
    pthread_attr_getstack(&attributes, &bottom, &size);
    pthread_attr_destroy(&attributes);
    char *here = __builtin_frame_address(0);
    return here > (char *)bottom && here <= (char *)bottom + size ? (size_t)(here - (char *)bottom) : enough;
}

/* From here on. */
static const char *end_after(size_t left) {
    const char *here = __builtin_frame_address(0);
    return (uintptr_t)here > left ? here - left : NULL;
}

static void run_trapped(void *user) {
    Deep *deep = user;
    deep->session->stack_end = end_after(own_size);
    deep->trapped = setjmp(deep->session->trap.at) != 0;
    if (!deep->trapped) deep->status = deep->run(deep->work);
}

SlopeStatus driver_deep(SlopeSession *session, SlopeStatus (*run)(DriverWork *work), DriverWork *work) {
    Deep deep = {.session = session, .work = work, .run = run};
    if (session->on_own_stack) return run(work);
    size_t left = stack_left();
    session->stack_end = end_after(left);
    bool is_short = left < enough;
    if (is_short && !session->stack) session->stack = stack_new(own_size);
    if (!is_short || !session->stack) return run(work);
    jmp_buf outer;
    memcpy(&outer, &session->trap.at, sizeof outer);
    session->on_own_stack = true;
    bool begun = stack_call(session->stack, run_trapped, &deep);
    session->on_own_stack = false;
    memcpy(&session->trap.at, &outer, sizeof outer);
    if (!begun) return run(work);
    if (deep.trapped) longjmp(session->trap.at, 1);
    return deep.status;
}
