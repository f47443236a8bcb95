/* The log-likelihood of a mixture of Gaussians; its gradient by all parameters. Both passes are made for one
 * point after the other. */
#include "derivative.h"

enum { COUNT = 500, D = 8, K = 10, LOWER = D * (D - 1) / 2 };

typedef struct Mixture {
    real alpha[K], mean[K][D], diagonal[K][D], below[K][LOWER];
} Mixture;

enum { PARAMETERS = sizeof(Mixture) / sizeof(real) };

typedef struct Data {
    const Mixture *mixture;
    const real (*points)[D];
} Data;

typedef struct Factors {
    real diagonal[K][D], sums[K];
} Factors;

static const real gamma_squared = 1;
static const int m = 0;

static void make_factors(const Mixture *mixture, Factors *factors) {
    for (int k = 0; k < K; k++) {
        factors->sums[k] = 0;
        for (int i = 0; i < D; i++) {
            factors->diagonal[k][i] = exp(mixture->diagonal[k][i]);
            factors->sums[k] += mixture->diagonal[k][i];
        }
    }
}

/* exp(x - greatest) in `e`, their sum in `*total`. */
static inline real log_sum_exp(const real *restrict x, real *restrict e, real *total) {
    real greatest = x[0], sum = 0;
    for (int k = 1; k < K; k++) greatest = greatest > x[k] ? greatest : x[k];
    for (int k = 0; k < K; k++) sum += e[k] = exp(x[k] - greatest);
    *total = sum;
    return log(sum) + greatest;
}

/* x - mean in `centered`, Q times that in `y`. */
static inline real square_distance(const Mixture *restrict mixture, const Factors *restrict factors, int k,
                                   const real *restrict x, real *restrict centered, real *restrict y) {
    for (int i = 0; i < D; i++) {
        centered[i] = x[i] - mixture->mean[k][i];
        y[i] = factors->diagonal[k][i] * centered[i];
    }
    const real *below = mixture->below[k];
    for (int i = 0; i < D; i++)
        for (int j = i + 1; j < D; j++) y[j] += *below++ * centered[i];
    real sum = 0;
    for (int i = 0; i < D; i++) sum += y[i] * y[i];
    return sum;
}

static inline real prior_of(const Mixture *mixture, const Factors *factors) {
    real prior = 0;
    for (int k = 0; k < K; k++) {
        real squares = 0;
        for (int i = 0; i < D; i++) squares += factors->diagonal[k][i] * factors->diagonal[k][i];
        for (int i = 0; i < LOWER; i++) squares += mixture->below[k][i] * mixture->below[k][i];
        prior += 0.5f * gamma_squared * squares - m * factors->sums[k];
    }
    return prior;
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    const Mixture *mixture = d->mixture;
    Factors factors;
    real total = 0, terms[K], e[K], centered[D], y[D], sum;
    make_factors(mixture, &factors);
    for (int n = 0; n < COUNT; n++) {
        for (int k = 0; k < K; k++)
            terms[k] = mixture->alpha[k] + factors.sums[k] -
                       0.5f * square_distance(mixture, &factors, k, d->points[n], centered, y);
        total += log_sum_exp(terms, e, &sum);
    }
    values[0] = total - COUNT * log_sum_exp(mixture->alpha, e, &sum) + prior_of(mixture, &factors);
}

/* Adds the gradient of -0.5 |Q (x - mean)|^2 times `weight`. That by exp(diagonal) is kept apart. */
static inline void add_square_distance(const Mixture *restrict mixture, const Factors *restrict factors,
                                       int k, real weight, const real *restrict centered,
                                       const real *restrict y, Mixture *restrict g) {
    real back[D];
    for (int i = 0; i < D; i++) {
        real by_y = -weight * y[i];
        g->diagonal[k][i] += by_y * centered[i];
        back[i] = by_y * factors->diagonal[k][i];
    }
    const real *below = mixture->below[k];
    real *below_bar = g->below[k];
    for (int i = 0; i < D; i++) {
        real sum = 0;
        for (int j = i + 1; j < D; j++) {
            real by_y = -weight * y[j];
            *below_bar++ += by_y * centered[i];
            sum += by_y * *below++;
        }
        g->mean[k][i] -= back[i] + sum;
    }
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    const Mixture *mixture = d->mixture;
    Mixture *restrict g = (Mixture *)(void *)gradients;
    Factors factors;
    real terms[K], e[K], centered[K][D], y[K][D], sum;
    memset(g, 0, sizeof *g);
    make_factors(mixture, &factors);
    for (int n = 0; n < COUNT; n++) {
        for (int k = 0; k < K; k++)
            terms[k] = mixture->alpha[k] + factors.sums[k] -
                       0.5f * square_distance(mixture, &factors, k, d->points[n], centered[k], y[k]);
        log_sum_exp(terms, e, &sum);
        for (int k = 0; k < K; k++) {
            real weight = e[k] / sum;
            g->alpha[k] += weight;
            add_square_distance(mixture, &factors, k, weight, centered[k], y[k], g);
        }
    }
    log_sum_exp(mixture->alpha, e, &sum);
    for (int k = 0; k < K; k++) {
        real by_sum = g->alpha[k] - m;
        g->alpha[k] -= COUNT * e[k] / sum;
        for (int i = 0; i < D; i++) {
            real q = factors.diagonal[k][i];
            g->diagonal[k][i] = q * (g->diagonal[k][i] + gamma_squared * q) + by_sum;
        }
        for (int i = 0; i < LOWER; i++) g->below[k][i] += gamma_squared * mixture->below[k][i];
    }
}

BY_ENZYME(1, PARAMETERS, mixture, points)

int main(int argc, char **argv) {
    real *parameters = derivative_numbers(PARAMETERS, -0.5, 0.5),
         *points = derivative_numbers(COUNT * D, -2, 2);
    Data data = {(const Mixture *)(const void *)parameters, (const real(*)[D])(const void *)points};
    Derivative d = derivative_open((Problem){1, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "parameters", parameters, sizeof(Mixture));
    derivative_bind(&d, "points", points, sizeof(real) * COUNT * D);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
