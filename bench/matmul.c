/* The product of two matrices. */
#include "bench.h"

enum { SIZE = 384 };

static __attribute__((noinline)) void multiply(const float *left, const float *right, float *product,
                                               int size) {
    for (int i = 0; i < size; i++) {
        for (int j = 0; j < size; j++) product[i * size + j] = 0.0f;
        for (int k = 0; k < size; k++) {
            float x = left[i * size + k];
            for (int j = 0; j < size; j++) product[i * size + j] += x * right[k * size + j];
        }
    }
}

int main(void) {
    int count = SIZE * SIZE, size = SIZE;
    float *left = bench_numbers(count), *right = bench_numbers(count);
    float *found = bench_numbers(count), *expected = bench_numbers(count);
    Bench bench = bench_open("matmul.slang");
    bench_bind(&bench, "left", left, count);
    bench_bind(&bench, "right", right, count);
    bench_bind(&bench, "product", found, count);
    require(bench.session, slope_set_uniform(bench.program, "size", &size, sizeof size));
    double slope = bench_dispatch(&bench, 1), c = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_milliseconds();
        multiply(left, right, expected, size);
        c = fmin(c, now_milliseconds() - start);
    }
    bench_report(slope, c, found, expected, count);
    slope_session_free(bench.session);
    free(left), free(right), free(found), free(expected);
    return 0;
}
