/* What slope_call_batch gains: functions of lanes.slang and their gradients, called for many arguments on one
 * thread, one slope_call after the other, as a batch one at a time, and as a batch with the lanes that seem
 * best. Prints a line for each: its name, the number of lanes, nanoseconds per call in the three ways, the
 * largest difference between them.
 *
 *     lanes_batch FILE */
#include "bench.h"

#include <string.h>

enum { CALLS = 1 << 16, MOST_ARGS = 4, MOST_FLOATS = 10 };

typedef struct Case {
    const char *function;
    int floats[MOST_ARGS]; /* of each argument; the result or the seed is the last */
    int read;              /* the argument that is compared */
} Case;

static const Case cases[] = {
    {"shade", {5, 3, 3, 1}, 3},
    {"bwd_diff(shade)", {10, 6, 6, 1}, 0},
    {"flight", {4, 1}, 1},
    {"bwd_diff(flight)", {8, 1}, 0},
};

typedef struct Calls {
    SlopeSession *session;
    SlopeFunction *function;
    float *args[MOST_ARGS];
    int count;
} Calls;

static Calls open_calls(const char *path, const Case *what, int lanes) {
    SlopeConfig config;
    SlopeProgram *program;
    Calls calls = {0};
    slope_config_init(&config);
    config.threads = 1;
    config.lanes = lanes;
    if (slope_session_new(&config, &calls.session) != SLOPE_STATUS_ok) exit(1);
    require(calls.session, slope_load_file(calls.session, path, &program));
    require(calls.session, slope_find_function(program, what->function, &calls.function));
    while (calls.count < MOST_ARGS && what->floats[calls.count]) calls.count++;
    return calls;
}

/* Numbers between 0 and 1. */
static void fill(Calls *calls, const Case *what) {
    for (int i = 0; i < calls->count; i++) {
        calls->args[i] = bench_numbers(CALLS * what->floats[i]);
        for (int k = 0; k < CALLS * what->floats[i]; k++)
            calls->args[i][k] = calls->args[i][k] * 0.45f + 0.5f;
    }
}

static void call_one_by_one(Calls *calls, const Case *what) {
    for (int at = 0; at < CALLS; at++) {
        void *args[MOST_ARGS];
        for (int i = 0; i < calls->count; i++) args[i] = calls->args[i] + at * what->floats[i];
        require(calls->session, slope_call(calls->function, args));
    }
}

static void call_all(Calls *calls, const Case *what) {
    void *args[MOST_ARGS];
    (void)what;
    for (int i = 0; i < calls->count; i++) args[i] = calls->args[i];
    require(calls->session, slope_call_batch(calls->function, CALLS, args, NULL));
}

/* Nanoseconds per call. Every time anew: a gradient is added to what was there. */
static double measure(Calls *calls, const Case *what, void (*call)(Calls *, const Case *)) {
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        for (int k = 0; k < calls->count; k++) free(calls->args[k]);
        fill(calls, what);
        double start = now_milliseconds();
        call(calls, what);
        best = i ? fmin(best, now_milliseconds() - start) : best; /* the first compiles */
    }
    return best * 1e6 / (double)CALLS;
}

static double difference(const Calls *a, const Calls *b, const Case *what) {
    double worst = 0;
    for (int k = 0; k < CALLS * what->floats[what->read]; k++) {
        double x = (double)a->args[what->read][k], y = (double)b->args[what->read][k];
        double off = fabs(x - y) / fmax(1, fabs(x));
        worst = off <= worst ? worst : off; /* keeps a NaN */
    }
    return worst;
}

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Case *what = &cases[i];
        Calls single = open_calls(argv[1], what, 1), alone = open_calls(argv[1], what, 1),
              together = open_calls(argv[1], what, SLOPE_LANES_AUTO);
        double apart = measure(&single, what, call_one_by_one), one = measure(&alone, what, call_all),
               several = measure(&together, what, call_all);
        SlopeRemark remark = {.lanes = 1};
        slope_remark(together.session, 0, &remark);
        printf("%-18s %2d lanes  slope_call %8.2f ns  batch, one at a time %8.2f  with lanes %8.2f (%.2f "
               "times as fast)  "
               "differ by %g, %g\n",
               what->function, remark.lanes, apart, one, several, one / several,
               difference(&single, &alone, what), difference(&single, &together, what));
    }
    return 0;
}
