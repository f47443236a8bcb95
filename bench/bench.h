/* The host of a benchmark: runs a kernel of a .slang file and the same work written in C, on the same data.
 *
 * Both run on one thread, several times; the best time counts. The program prints one line: milliseconds of
 * Slope, milliseconds of C, the largest difference between the results. */
#ifndef BENCH_H
#define BENCH_H

#include <slope.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 7 };

static inline double now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static inline void require(SlopeSession *session, SlopeStatus status) {
    if (status == SLOPE_STATUS_ok) return;
    fprintf(stderr, "%s(%s)\n", slope_messages(session), slope_status_name(status));
    exit(1);
}

/* As the environment says, for comparisons (loops.py); else `usual`. */
static inline int bench_lanes(int usual) {
    const char *wanted = getenv("BENCH_LANES");
    return !wanted ? usual : strcmp(wanted, "auto") == 0 ? SLOPE_LANES_AUTO : atoi(wanted);
}

typedef struct Bench {
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
} Bench;

static inline Bench bench_open(const char *path) {
    Bench bench;
    SlopeConfig config;
    slope_config_init(&config);
    config.threads = 1;
    config.lanes = bench_lanes(1); /* lanes.c measures those */
    if (slope_session_new(&config, &bench.session) != SLOPE_STATUS_ok) exit(1);
    require(bench.session, slope_load_file(bench.session, path, &bench.program));
    require(bench.session, slope_find_kernel(bench.program, NULL, &bench.kernel));
    require(bench.session, slope_kernel_prepare(bench.kernel));
    return bench;
}

/* One kernel of a program, compiled; in how many milliseconds. */
static inline Bench bench_open_with(const SlopeConfig *config, const char *path, const char *kernel,
                                    double *compile) {
    Bench bench;
    double start = now_milliseconds();
    if (slope_session_new(config, &bench.session) != SLOPE_STATUS_ok) exit(1);
    require(bench.session, slope_load_file(bench.session, path, &bench.program));
    require(bench.session, slope_find_kernel(bench.program, kernel, &bench.kernel));
    require(bench.session, slope_kernel_prepare(bench.kernel));
    *compile = now_milliseconds() - start;
    return bench;
}

/* Numbers between -1 and 1, always the same ones. */
static inline float *bench_numbers(int count) {
    float *numbers = malloc(sizeof(float) * (size_t)count);
    uint32_t state = 12345;
    for (int i = 0; numbers && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    if (!numbers) exit(1);
    return numbers;
}

static inline void bench_bind(Bench *bench, const char *name, float *data, int count) {
    SlopeBuffer *buffer;
    require(bench->session, slope_buffer_wrap(bench->session, data, sizeof(float) * (size_t)count, &buffer));
    require(bench->session, slope_bind_buffer(bench->program, name, buffer));
}

static inline double bench_dispatch(Bench *bench, int groups) {
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_milliseconds();
        require(bench->session, slope_dispatch(bench->kernel, groups, 1, 1));
        best = fmin(best, now_milliseconds() - start);
    }
    return best;
}

static inline void bench_report(double slope, double c, const float *found, const float *expected,
                                int count) {
    float worst = 0;
    for (int i = 0; i < count; i++) {
        float difference = fabsf(found[i] - expected[i]) / fmaxf(1.0f, fabsf(expected[i]));
        worst = difference <= worst ? worst : difference; /* keeps a NaN */
    }
    printf("%.4f %.4f %g\n", slope, c, (double)worst);
}

#endif
