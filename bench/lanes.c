/* Runs a kernel of lanes.slang over many items with 1 lane and with others, and prints a line for each: how
 * many lanes it has, milliseconds to compile it, nanoseconds per item, the largest difference from the
 * results of one lane. The second line is one lane again with -O1, where LLVM makes no vectors of its own;
 * the last is that of the same in C, by `#pragma omp simd`, with 0 lanes.
 *
 *     lanes FILE KERNEL ITEMS LANES... */
#include "bench.h"
#include "lanes_simd.h"

#include <string.h>

enum { PER_ITEM = 12 };

typedef struct Work {
    const char *path, *kernel;
    int items;
    float *input;
} Work;

static Bench open_with(const Work *work, int lanes, int level, double *compile) {
    SlopeConfig config;
    slope_config_init(&config);
    config.threads = 1;
    config.lanes = lanes;
    config.optimization = level;
    return bench_open_with(&config, work->path, work->kernel, compile);
}

static float worst_difference(const float *found, const float *expected, int count) {
    float worst = 0;
    for (int i = 0; i < count; i++) {
        float difference = fabsf(found[i] - expected[i]) / fmaxf(1.0f, fabsf(expected[i]));
        worst = difference <= worst ? worst : difference; /* keeps a NaN */
    }
    return worst;
}

static void run_with(const Work *work, int lanes, int level, const float *expected, float *output) {
    double compile;
    Bench bench = open_with(work, lanes, level, &compile);
    uint32_t items = (uint32_t)work->items;
    bench_bind(&bench, "input", work->input, work->items * PER_ITEM);
    bench_bind(&bench, "output", output, work->items);
    require(bench.session, slope_set_uniform(bench.program, "items", &items, sizeof items));
    double best = bench_dispatch(&bench, work->items / 64);
    SlopeRemark remark;
    int found = slope_remark(bench.session, 0, &remark) ? remark.lanes : 1;
    printf("%d %.2f %.3f %g\n", found, compile, best * 1e6 / work->items,
           (double)worst_difference(output, expected, work->items));
    slope_session_free(bench.session);
}

static void run_in_c(const Work *work, const float *expected, float *output) {
    size_t at = 0;
    while (strcmp(in_c[at].name, work->kernel) != 0) at++;
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_milliseconds();
        in_c[at].run(work->input, output, work->items);
        double time = now_milliseconds() - start;
        best = time < best ? time : best;
    }
    printf("0 0 %.3f %g\n", best * 1e6 / work->items,
           (double)worst_difference(output, expected, work->items));
}

int main(int argc, char **argv) {
    if (argc < 4) return 1;
    Work work = {.path = argv[1], .kernel = argv[2], .items = atoi(argv[3])};
    work.input = bench_numbers(work.items * PER_ITEM);
    for (int i = 0; i < work.items * PER_ITEM; i++) work.input[i] = work.input[i] * 0.5f + 0.5f;
    float *expected = malloc(sizeof(float) * (size_t)work.items),
          *output = malloc(sizeof(float) * (size_t)work.items);
    if (!expected || !output) return 1;
    double first; /* loads the code generator, which nobody is to pay */
    slope_session_free(open_with(&work, 1, 3, &first).session);
    run_with(&work, 1, 3, expected, expected);
    run_with(&work, 1, 1, expected, output);
    for (int i = 4; i < argc; i++) run_with(&work, atoi(argv[i]), 3, expected, output);
    run_in_c(&work, expected, output);
    return 0;
}
