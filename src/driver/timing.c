/* Where the time goes: one row per stage, in the order in which they first ran. */
#include "driver.h"

#include <sys/resource.h>
#include <time.h>

static double now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static size_t peak_memory(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

static SlopeTiming *row_of(SlopeSession *session, const char *stage) {
    for (int i = 0; i < session->times.count; i++)
        if (strcmp(session->times.at[i].stage, stage) == 0) return &session->times.at[i];
    SlopeTiming row = {.stage = stage};
    vec_push(&session->arena, &session->times, row);
    return &vec_last(&session->times);
}

void driver_time_begin(SlopeSession *session, StageTimer *timer, const char *stage) {
    *timer = (StageTimer){.session = session, .stage = stage, .outer = session->timer};
    row_of(session, stage);
    session->timer = timer;
    if (!timer->outer) driver_limit_begin(session->program);
    timer->started = now_milliseconds();
}

void driver_time_end(StageTimer *timer) {
    double spent = now_milliseconds() - timer->started;
    SlopeTiming *row = row_of(timer->session, timer->stage);
    row->milliseconds += spent - timer->inner;
    row->peak_memory = peak_memory();
    if (timer->outer) timer->outer->inner += spent;
    timer->session->timer = timer->outer;
    if (!timer->outer) driver_limit_end(timer->session->program);
}

int slope_timing_count(const SlopeSession *session) { return session ? session->times.count : 0; }

bool slope_timing(const SlopeSession *session, int index, SlopeTiming *out) {
    if (!session || !out || index < 0 || index >= session->times.count) return false;
    *out = session->times.at[index];
    return true;
}

void driver_time_add(SlopeSession *session, const char *stage, double milliseconds) {
    SlopeTiming *row = row_of(session, stage);
    row->milliseconds += milliseconds;
    row->peak_memory = peak_memory();
    if (session->timer) session->timer->inner += milliseconds;
}
