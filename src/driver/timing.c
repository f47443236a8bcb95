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

/* Its number. Who runs a kernel again and again asks for the same again and again. */
static int row_of(SlopeSession *session, const char *stage) {
    int last = session->timed;
    if (last < session->times.count && session->times.at[last].stage == stage) return last;
    int found = 0;
    while (found < session->times.count && strcmp(session->times.at[found].stage, stage) != 0) found++;
    SlopeTiming row = {.stage = stage};
    if (found == session->times.count) vec_push(&session->arena, &session->times, row);
    return session->timed = found;
}

/* The clock of the program stands still in stages inside this one, and while it runs. */
static bool has_clock(const StageTimer *timer) {
    return !timer->runs && (!timer->outer || timer->outer->runs);
}

static void begin(StageTimer *timer) {
    SlopeSession *session = timer->session;
    timer->outer = session->timer;
    session->timer = timer;
    if (has_clock(timer)) driver_limit_begin(session->program);
    timer->started = now_milliseconds();
}

void driver_time_begin(SlopeSession *session, StageTimer *timer, const char *stage) {
    *timer = (StageTimer){.session = session, .row = row_of(session, stage)};
    begin(timer);
}

void driver_time_run(SlopeSession *session, StageTimer *timer) {
    *timer = (StageTimer){.session = session, .row = row_of(session, "run"), .runs = true};
    begin(timer);
}

/* To ask for memory takes longer than many a kernel: of a run, whoever wants to know asks. */
void driver_time_end(StageTimer *timer) {
    double spent = now_milliseconds() - timer->started;
    SlopeTiming *row = &timer->session->times.at[timer->row];
    row->milliseconds += spent - timer->inner;
    if (!timer->runs) row->peak_memory = peak_memory();
    if (timer->outer) timer->outer->inner += spent;
    timer->session->timer = timer->outer;
    if (has_clock(timer)) driver_limit_end(timer->session->program);
}

int slope_timing_count(const SlopeSession *session) { return session ? session->times.count : 0; }

bool slope_timing(const SlopeSession *session, int index, SlopeTiming *out) {
    if (!session || !out || index < 0 || index >= session->times.count) return false;
    *out = session->times.at[index];
    if (!out->peak_memory) out->peak_memory = peak_memory();
    return true;
}

void driver_time_add(SlopeSession *session, const char *stage, double milliseconds) {
    int number = row_of(session, stage); /* which may move the rows */
    SlopeTiming *row = &session->times.at[number];
    row->milliseconds += milliseconds;
    row->peak_memory = peak_memory();
    if (session->timer) session->timer->inner += milliseconds;
}
