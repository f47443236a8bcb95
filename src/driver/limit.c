/* What compiling one program may take.
 *
 * Memory is counted where the program's arenas get their blocks. Time is that of the processor, so that a
 * machine that is busy or asleep does not matter; it runs while a stage of the compiler is at work, and not
 * while the program runs. It is looked at whenever some memory was taken and between passes: work without end
 * takes memory sooner or later. LLVM is left alone with what it was given, which these limits bound.
 *
 * Nor does the compiler go to the very end of its stack, however long the chains of calls are that it
 * follows: the rest is for what takes no memory.
 *
 * What exceeds a limit is left through the trap like lack of memory: the program is closed, the session goes
 * on. */
#include "driver.h"

#include <time.h>

static const int default_mib = 4096, default_seconds = 600;

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double processor_seconds(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

/* No processor works for longer than the clock says, and that takes a tenth of the time to look at. */
static bool is_late(const Limits *limits) {
    if (limits->started == 0 || limits->most_seconds <= 0) return false;
    if (limits->seconds + seconds_of(CLOCK_MONOTONIC) - limits->began <= limits->most_seconds) return false;
    return limits->seconds + processor_seconds() - limits->started > limits->most_seconds;
}

/* To ask for the time takes longer than most blocks of memory do. */
static bool is_found_late(Limits *limits, size_t size) {
    enum { LOOK = 128 * 1024 };
    limits->taken += size;
    if (limits->taken < LOOK) return false;
    limits->taken = 0;
    return is_late(limits);
}

static bool is_deep(const SlopeSession *session) {
    const ptrdiff_t rest = 512 * 1024;
    const char *here = __builtin_frame_address(0);
    return session->stack_end && here > session->stack_end && here - session->stack_end < rest;
}

static void *limited_resize(void *user, void *old, size_t old_size, size_t new_size) {
    SlopeProgram *program = user;
    Limits *limits = &program->limits;
    if (new_size > old_size && is_found_late(limits, new_size - old_size)) limits->exceeded = DIAG_time_limit;
    else if (new_size > old_size && limits->most_bytes &&
             limits->bytes - old_size + new_size > limits->most_bytes)
        limits->exceeded = DIAG_memory_limit;
    else if (new_size > old_size && is_deep(program->session)) limits->exceeded = DIAG_stack_limit;
    if (new_size > old_size && limits->exceeded) {
        program->session->exceeded = limits;
        return NULL;
    }
    void *block = driver_resize_spare(program->session, old, old_size, new_size);
    if (block || !new_size) limits->bytes += new_size - old_size;
    return block;
}

Allocator driver_limited_memory(SlopeProgram *program) {
    const SlopeConfig *config = &program->session->config;
    int mib = config->limit_memory ? config->limit_memory : default_mib;
    int seconds = config->limit_time ? config->limit_time : default_seconds;
    program->limits = (Limits){.most_bytes = mib > 0 ? (size_t)mib << 20 : 0, .most_seconds = seconds};
    return (Allocator){limited_resize, program};
}

void driver_limit_begin(SlopeProgram *program) {
    if (!program) return;
    program->limits.started = processor_seconds();
    program->limits.began = seconds_of(CLOCK_MONOTONIC);
}

void driver_limit_end(SlopeProgram *program) {
    if (!program || program->limits.started == 0) return;
    program->limits.seconds += processor_seconds() - program->limits.started;
    program->limits.started = 0;
}

void driver_limit_test(SlopeProgram *program) {
    if (!is_late(&program->limits)) return;
    program->limits.exceeded = DIAG_time_limit;
    program->session->exceeded = &program->limits;
    trap_spring(&program->session->trap, TRAP_memory, "out of time");
}
