/* Inverse and determinant of 4 x 4 matrices. The gradient keeps what the elimination overwrites, and goes
 * back through its steps. */
#include "derivative.h"

enum { COUNT = 1024, N = 4 };

typedef struct Data {
    const real *matrices, *weights;
} Data;

/* What a step has overwritten. */
typedef struct Step {
    real pivot, factors[N], row[N]; /* row: that of the pivot, divided */
} Step;

#ifndef __CUDACC__
static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    for (int item = 0; item < COUNT; item++) {
        real a[N][N], sum = 1;
        memcpy(a, d->matrices + N * N * item, sizeof a);
        for (int p = 0; p < N; p++) {
            real pivot = a[p][p];
            sum *= pivot;
            a[p][p] = 1;
            for (int k = 0; k < N; k++) a[p][k] /= pivot;
            for (int i = 0; i < N; i++) {
                if (i == p) continue;
                real factor = a[i][p];
                a[i][p] = 0;
                for (int k = 0; k < N; k++) a[i][k] -= factor * a[p][k];
            }
        }
        for (int i = 0; i < N * N; i++) sum += d->weights[N * N * item + i] * a[i / N][i % N];
        values[item] = sum;
    }
}
#endif

BY_HAND real forth(real a[N][N], Step *steps) {
    real determinant = 1;
    for (int p = 0; p < N; p++) {
        Step *s = &steps[p];
        s->pivot = a[p][p];
        determinant *= s->pivot;
        a[p][p] = 1;
        for (int k = 0; k < N; k++) s->row[k] = a[p][k] /= s->pivot;
        for (int i = 0; i < N; i++) {
            if (i == p) continue;
            s->factors[i] = a[i][p];
            a[i][p] = 0;
            for (int k = 0; k < N; k++) a[i][k] -= s->factors[i] * a[p][k];
        }
    }
    return determinant;
}

BY_HAND void back(real g[N][N], const Step *steps, real determinant) {
    for (int p = N - 1; p >= 0; p--) {
        const Step *s = &steps[p];
        for (int i = 0; i < N; i++) {
            if (i == p) continue;
            real factor = 0;
            for (int k = 0; k < N; k++) factor -= g[i][k] * s->row[k];
            for (int k = 0; k < N; k++) g[p][k] -= s->factors[i] * g[i][k];
            g[i][p] = factor;
        }
        real pivot = 0;
        for (int k = 0; k < N; k++) {
            pivot -= g[p][k] * s->row[k];
            g[p][k] /= s->pivot;
        }
        g[p][p] = (pivot + determinant) / s->pivot;
    }
}

BY_HAND void item_gradient(const real *matrix, const real *weight, real *restrict out) {
    real a[N][N], g[N][N];
    Step steps[N];
    memcpy(a, matrix, sizeof a);
    memcpy(g, weight, sizeof g);
    back(g, steps, forth(a, steps));
    memcpy(out, g, sizeof g);
}

#ifndef __CUDACC__
static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++)
        item_gradient(d->matrices + N * N * i, d->weights + N * N * i, gradients + N * N * i);
}

BY_ENZYME(COUNT, N *N, matrices, weights)

int main(int argc, char **argv) {
    real *matrices = derivative_numbers(N * N * COUNT, -1, 1),
         *weights = derivative_numbers(N * N * COUNT, -1, 1);
    for (int i = 0; i < COUNT * N; i++) matrices[i * N + i % N] += 4;
    Data data = {matrices, weights};
    Derivative d = derivative_open((Problem){COUNT, N * N, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "items", matrices, sizeof(real) * N * N * COUNT);
    derivative_bind(&d, "weights", weights, sizeof(real) * N * N * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
#endif
