/* A recurrent network, a sequence per thread. By hand, weights and sums are in shared memory; gates are kept in the thread's local memory, and the lanes of a warp add up what a step
 * contributes by shuffles when the sequence is done. */
#include "bench.h"

namespace hand {
enum { B = 14, LAYERS = 2, STEPS = 16, THREADS = 128 };

struct Layer {
    double weight[4][B], bias[4][B];
};

struct Network {
    Layer layer[LAYERS];
    double enters[B], leaves[B], shift[B];
};

enum { WEIGHTS = sizeof(Network) / sizeof(double) };

/* Of a layer in a step; x, hidden and cell as they came in. */
struct Gates {
    double x[B], hidden[B], cell[B], forget[B], enter[B], leave[B], change[B], squashed[B];
};

static inline __device__ double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static __device__ void run_layer(const Layer &w, double *hidden, double *cell, double *x, Gates &g) {
    for (int i = 0; i < B; i++) {
        g.x[i] = x[i], g.hidden[i] = hidden[i], g.cell[i] = cell[i];
        g.forget[i] = sigmoid(x[i] * w.weight[0][i] + w.bias[0][i]);
        g.enter[i] = sigmoid(hidden[i] * w.weight[1][i] + w.bias[1][i]);
        g.leave[i] = sigmoid(x[i] * w.weight[2][i] + w.bias[2][i]);
        g.change[i] = tanh(hidden[i] * w.weight[3][i] + w.bias[3][i]);
        cell[i] = cell[i] * g.forget[i] + g.enter[i] * g.change[i];
        g.squashed[i] = tanh(cell[i]);
        hidden[i] = x[i] = g.leave[i] * g.squashed[i];
    }
}

static inline __device__ void gate_back(const Layer &w, Layer &g, int gate, int i, double in, double bar, double &in_bar) {
    g.weight[gate][i] += bar * in;
    g.bias[gate][i] += bar;
    in_bar += bar * w.weight[gate][i];
}

static __device__ void back_layer(const Layer &w, Layer &bar, const Gates &g, double *hidden_bar, double *cell_bar, double *x_bar) {
    for (int i = 0; i < B; i++) {
        const double out = x_bar[i] + hidden_bar[i], f = g.forget[i], e = g.enter[i], o = g.leave[i], c = g.change[i];
        const double inner = cell_bar[i] + out * o * (1 - g.squashed[i] * g.squashed[i]);
        double x = 0, hidden = 0;
        gate_back(w, bar, 0, i, g.x[i], inner * g.cell[i] * f * (1 - f), x);
        gate_back(w, bar, 1, i, g.hidden[i], inner * c * e * (1 - e), hidden);
        gate_back(w, bar, 2, i, g.x[i], out * g.squashed[i] * o * (1 - o), x);
        gate_back(w, bar, 3, i, g.hidden[i], inner * e * (1 - c * c), hidden);
        cell_bar[i] = inner * f;
        hidden_bar[i] = hidden;
        x_bar[i] = x;
    }
}

static __device__ void sequence_gradient(const Network &w, const double (*sequence)[B], Network &g) {
    Gates gates[STEPS - 1][LAYERS];
    double outs[STEPS - 1][B], sums[STEPS - 1], hidden[LAYERS][B] = {{0}}, cell[LAYERS][B] = {{0}};
    for (int t = 0; t < STEPS - 1; t++) {
        double *x = outs[t];
        sums[t] = 2;
        for (int i = 0; i < B; i++) x[i] = w.enters[i] * sequence[t][i];
        for (int l = 0; l < LAYERS; l++) run_layer(w.layer[l], hidden[l], cell[l], x, gates[t][l]);
        for (int i = 0; i < B; i++) sums[t] += x[i] = exp(x[i] * w.leaves[i] + w.shift[i]);
    }
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < B; i++) hidden[l][i] = cell[l][i] = 0;
    for (int t = STEPS - 2; t >= 0; t--) {
        const Gates &last = gates[t][LAYERS - 1];
        double x_bar[B], weight = 0;
        for (int i = 0; i < B; i++) weight += sequence[t + 1][i];
        for (int i = 0; i < B; i++) {
            const double bar = -(sequence[t + 1][i] - weight * outs[t][i] / sums[t]) / (STEPS - 1);
            g.shift[i] += bar;
            g.leaves[i] += bar * last.leave[i] * last.squashed[i];
            x_bar[i] = bar * w.leaves[i];
        }
        for (int l = LAYERS - 1; l >= 0; l--) back_layer(w.layer[l], g.layer[l], gates[t][l], hidden[l], cell[l], x_bar);
        for (int i = 0; i < B; i++) g.enters[i] += x_bar[i] * sequence[t][i];
    }
}

static __global__ void __launch_bounds__(THREADS) item(const Network *network, const double (*sequences)[B], double *gradients) {
    __shared__ Network w, sums;
    Network own = {};
    for (int i = threadIdx.x; i < WEIGHTS; i += THREADS) {
        ((double *)&w)[i] = ((const double *)network)[i];
        ((double *)&sums)[i] = 0;
    }
    __syncthreads();
    sequence_gradient(w, sequences + (blockIdx.x * THREADS + threadIdx.x) * STEPS, own);
    for (int i = 0; i < WEIGHTS; i++) {
        double sum = ((double *)&own)[i];
        for (int distance = 16; distance; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
        if (threadIdx.x % 32 == 0) atomicAdd(&((double *)&sums)[i], sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < WEIGHTS; i += THREADS) atomicAdd(&gradients[i], ((double *)&sums)[i]);
}
} // namespace hand

int main() {
    const int sequences = 1 << 15, count = sequences * hand::STEPS;
    Memory<double> network(numbers<double>(hand::WEIGHTS, -1, 1)), elements(numbers<double>((size_t)hand::B * count, 0, 1)),
        total(hand::WEIGHTS);
    bind(slope::parameters_set, network);
    bind(slope::sequence_set, elements);
    bind(slope::total_set, total);
    check(slope::count_set(&count, 0));
    const dim3 blocks(sequences / hand::THREADS);
    return compare<double>(
        "lstm", sequences, total, 1, [&] { slope::item_launch(blocks, 0); },
        [&] {
            hand::item<<<blocks, hand::THREADS>>>((const hand::Network *)network.data, (const double(*)[hand::B])elements.data,
                                                  total.data);
        });
}
