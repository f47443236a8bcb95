/* A recurrent network of two layers. The gradient keeps, for each cell and step, what its gates gave. */
#include "derivative.h"

enum { B = 14, LAYERS = 2, COUNT = 256, STEPS = COUNT - 1 };

typedef struct Layer {
    real weight[4][B], bias[4][B];
} Layer;

typedef struct Network {
    Layer layer[LAYERS];
    real enters[B], leaves[B], shift[B];
} Network;

enum { PARAMETERS = sizeof(Network) / sizeof(real) };

typedef struct Data {
    const Network *network;
    const real (*sequence)[B];
} Data;

/* Of a layer in a step; x, hidden and cell as they came in. */
typedef struct Gates {
    real x[B], hidden[B], cell[B], forget[B], enter[B], leave[B], change[B], squashed[B];
} Gates;

static inline real sigmoid(real x) { return 1 / (1 + exp(-x)); }

static inline void run_layer(const Layer *w, real *restrict hidden, real *restrict cell, real *restrict x,
                             Gates *restrict g) {
    for (int i = 0; i < B; i++) {
        g->x[i] = x[i], g->hidden[i] = hidden[i], g->cell[i] = cell[i];
        g->forget[i] = sigmoid(x[i] * w->weight[0][i] + w->bias[0][i]);
        g->enter[i] = sigmoid(hidden[i] * w->weight[1][i] + w->bias[1][i]);
        g->leave[i] = sigmoid(x[i] * w->weight[2][i] + w->bias[2][i]);
        g->change[i] = tanh(hidden[i] * w->weight[3][i] + w->bias[3][i]);
        cell[i] = cell[i] * g->forget[i] + g->enter[i] * g->change[i];
        g->squashed[i] = tanh(cell[i]);
        hidden[i] = x[i] = g->leave[i] * g->squashed[i];
    }
}

/* What goes into the logarithm; x becomes the prediction. */
static inline real run_step(const Data *d, int t, real hidden[LAYERS][B], real cell[LAYERS][B], real *x,
                            Gates *gates) {
    const Network *w = d->network;
    real sum = 2;
    for (int i = 0; i < B; i++) x[i] = w->enters[i] * d->sequence[t][i];
    for (int l = 0; l < LAYERS; l++) run_layer(&w->layer[l], hidden[l], cell[l], x, &gates[l]);
    for (int i = 0; i < B; i++) {
        x[i] = x[i] * w->leaves[i] + w->shift[i];
        sum += exp(x[i]);
    }
    return sum;
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    real hidden[LAYERS][B] = {{0}}, cell[LAYERS][B] = {{0}}, x[B], total = 0;
    Gates gates[LAYERS];
    for (int t = 0; t < STEPS; t++) {
        real all = log(run_step(d, t, hidden, cell, x, gates));
        for (int i = 0; i < B; i++) total += d->sequence[t + 1][i] * (x[i] - all);
    }
    values[0] = -total / STEPS;
}

static inline void gate_back(const Layer *w, Layer *g, int gate, int i, real in, real bar, real *in_bar) {
    g->weight[gate][i] += bar * in;
    g->bias[gate][i] += bar;
    *in_bar += bar * w->weight[gate][i];
}

static inline void back_layer(const Layer *w, Layer *bar, const Gates *g, real *hidden_bar, real *cell_bar,
                              real *x_bar) {
    for (int i = 0; i < B; i++) {
        real out = x_bar[i] + hidden_bar[i], f = g->forget[i], e = g->enter[i], o = g->leave[i],
             c = g->change[i];
        real inner = cell_bar[i] + out * o * (1 - g->squashed[i] * g->squashed[i]), x = 0, hidden = 0;
        gate_back(w, bar, 0, i, g->x[i], inner * g->cell[i] * f * (1 - f), &x);
        gate_back(w, bar, 1, i, g->hidden[i], inner * c * e * (1 - e), &hidden);
        gate_back(w, bar, 2, i, g->x[i], out * g->squashed[i] * o * (1 - o), &x);
        gate_back(w, bar, 3, i, g->hidden[i], inner * e * (1 - c * c), &hidden);
        cell_bar[i] = inner * f;
        hidden_bar[i] = hidden;
        x_bar[i] = x;
    }
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    const Network *w = d->network;
    Network *g = (Network *)(void *)gradients;
    static Gates gates[STEPS][LAYERS];
    static real outs[STEPS][B], sums[STEPS];
    real hidden[LAYERS][B] = {{0}}, cell[LAYERS][B] = {{0}};
    memset(g, 0, sizeof *g);
    for (int t = 0; t < STEPS; t++) sums[t] = run_step(d, t, hidden, cell, outs[t], gates[t]);
    memset(hidden, 0, sizeof hidden);
    memset(cell, 0, sizeof cell);
    for (int t = STEPS - 1; t >= 0; t--) {
        real x_bar[B], weight = 0;
        const real *last = gates[t][LAYERS - 1].squashed, *leave = gates[t][LAYERS - 1].leave;
        for (int i = 0; i < B; i++) weight += d->sequence[t + 1][i];
        for (int i = 0; i < B; i++) {
            real bar = -(d->sequence[t + 1][i] - weight * exp(outs[t][i]) / sums[t]) / STEPS;
            g->shift[i] += bar;
            g->leaves[i] += bar * leave[i] * last[i];
            x_bar[i] = bar * w->leaves[i];
        }
        for (int l = LAYERS - 1; l >= 0; l--)
            back_layer(&w->layer[l], &g->layer[l], &gates[t][l], hidden[l], cell[l], x_bar);
        for (int i = 0; i < B; i++) g->enters[i] += x_bar[i] * d->sequence[t][i];
    }
}

BY_ENZYME(1, PARAMETERS, network, sequence)

int main(int argc, char **argv) {
    real *network = derivative_numbers(PARAMETERS, -1, 1), *sequence = derivative_numbers(B * COUNT, 0, 1);
    Data data = {(const Network *)(const void *)network, (const real(*)[B])(const void *)sequence};
    Derivative d = derivative_open((Problem){1, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "parameters", network, sizeof(Network));
    derivative_bind(&d, "sequence", sequence, sizeof(real) * B * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
