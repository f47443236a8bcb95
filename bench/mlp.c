/* A small network; the gradient of the squared error over a batch by all weights. Sums are taken in the order
 * of the source; the gradient goes through the two passes for one example after the other, while its
 * activations are at hand. */
#include "derivative.h"

enum { COUNT = 256, INPUTS = 16, HIDDEN = 32 };

typedef struct Network {
    real first[HIDDEN][INPUTS], first_bias[HIDDEN];
    real second[HIDDEN][HIDDEN], second_bias[HIDDEN];
    real last[HIDDEN], last_bias;
} Network;

enum { WEIGHTS = sizeof(Network) / sizeof(real) };

typedef struct Example {
    real x[INPUTS], y;
} Example;

typedef struct Data {
    const Network *network;
    const Example *examples;
} Data;

static inline real evaluate(const Network *net, const real *restrict x, real *restrict a, real *restrict b) {
    for (int i = 0; i < HIDDEN; i++) {
        real sum = net->first_bias[i];
        for (int k = 0; k < INPUTS; k++) sum += net->first[i][k] * x[k];
        a[i] = tanh(sum);
    }
    for (int i = 0; i < HIDDEN; i++) {
        real sum = net->second_bias[i];
        for (int k = 0; k < HIDDEN; k++) sum += net->second[i][k] * a[k];
        b[i] = sum > 0 ? sum : 0;
    }
    real y = net->last_bias;
    for (int i = 0; i < HIDDEN; i++) y += net->last[i] * b[i];
    return y;
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    real a[HIDDEN], b[HIDDEN], sum = 0;
    for (int i = 0; i < COUNT; i++) {
        real error = evaluate(d->network, d->examples[i].x, a, b) - d->examples[i].y;
        sum += error * error;
    }
    values[0] = sum;
}

static inline void add_gradient(const Network *restrict net, Network *restrict g,
                                const Example *restrict example) {
    real a[HIDDEN], b[HIDDEN], a_bar[HIDDEN] = {0};
    real y_bar = 2 * (evaluate(net, example->x, a, b) - example->y);
    g->last_bias += y_bar;
    for (int i = 0; i < HIDDEN; i++) {
        g->last[i] += y_bar * b[i];
        if (!(b[i] > 0)) continue;
        real s = y_bar * net->last[i];
        g->second_bias[i] += s;
        for (int k = 0; k < HIDDEN; k++) g->second[i][k] += s * a[k];
        for (int k = 0; k < HIDDEN; k++) a_bar[k] += s * net->second[i][k];
    }
    for (int i = 0; i < HIDDEN; i++) {
        real s = a_bar[i] * (1 - a[i] * a[i]);
        g->first_bias[i] += s;
        for (int k = 0; k < INPUTS; k++) g->first[i][k] += s * example->x[k];
    }
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    memset(gradients, 0, sizeof(Network));
    for (int i = 0; i < COUNT; i++) add_gradient(d->network, (Network *)(void *)gradients, &d->examples[i]);
}

BY_ENZYME(1, WEIGHTS, network, examples)

int main(int argc, char **argv) {
    real *weights = derivative_numbers(WEIGHTS, -0.4f, 0.4f),
         *examples = derivative_numbers(COUNT * (INPUTS + 1), -1, 1);
    Data data = {(const Network *)(const void *)weights, (const Example *)(const void *)examples};
    Derivative d = derivative_open((Problem){1, WEIGHTS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "networks", weights, sizeof(Network));
    derivative_bind(&d, "examples", examples, sizeof(Example) * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
