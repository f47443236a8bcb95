/* A small network, one example per thread. By hand, weights and sums of their gradients are in shared memory;
 * the lanes of a warp add up by shuffles. Slope has the weights in a buffer, in tensors, or in a struct that
 * each thread takes apart. */
#include "bench.h"

namespace hand {
enum { INPUTS = 16, HIDDEN = 32 };

struct Network {
    float first[HIDDEN][INPUTS], first_bias[HIDDEN], second[HIDDEN][HIDDEN], second_bias[HIDDEN],
        last[HIDDEN], last_bias;
};

struct Example {
    float x[INPUTS], y;
};

enum { WEIGHTS = sizeof(Network) / sizeof(float) };

/* COUNT numbers of each lane, a power of two of at most 32: their sums go to `to`. */
template <int COUNT> static __device__ void add(float (&v)[COUNT], float *to) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int bit = 16, half = COUNT / 2; bit; bit /= 2, half /= 2) {
        const bool upper = lane & bit;
#pragma unroll
        for (int k = 0; k < COUNT / 2; k++) {
            if (k >= half) continue;
            const float low = v[k], high = v[k + half];
            v[k] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, bit);
        }
        if (half == 0) v[0] += __shfl_xor_sync(~0u, v[0], bit);
    }
    if (lane % (32 / COUNT) == 0) atomicAdd(&to[lane / (32 / COUNT)], v[0]);
}

static __global__ void __launch_bounds__(GROUP)
    item(const Network *network, const Example *examples, float *gradients) {
    __shared__ Network net, sums;
    const Example example = examples[blockIdx.x * blockDim.x + threadIdx.x];
    float a[HIDDEN], b[HIDDEN], a_bar[HIDDEN] = {0}, y;
    for (int i = threadIdx.x; i < WEIGHTS; i += GROUP) {
        ((float *)&net)[i] = ((const float *)network)[i];
        ((float *)&sums)[i] = 0;
    }
    __syncthreads();
    y = net.last_bias;
#pragma unroll
    for (int i = 0; i < HIDDEN; i++) {
        float sum = net.first_bias[i];
        for (int k = 0; k < INPUTS; k++) sum += net.first[i][k] * example.x[k];
        a[i] = tanhf(sum);
    }
#pragma unroll
    for (int i = 0; i < HIDDEN; i++) {
        float sum = net.second_bias[i];
        for (int k = 0; k < HIDDEN; k++) sum += net.second[i][k] * a[k];
        b[i] = fmaxf(sum, 0);
        y += net.last[i] * b[i];
    }
    const float y_bar = 2 * (y - example.y);
    float s[HIDDEN], products[HIDDEN], one[1] = {y_bar};
    add(one, &sums.last_bias);
#pragma unroll
    for (int i = 0; i < HIDDEN; i++) s[i] = b[i] > 0 ? y_bar * net.last[i] : 0, products[i] = y_bar * b[i];
    add(products, sums.last);
#pragma unroll
    for (int i = 0; i < HIDDEN; i++) {
        for (int k = 0; k < HIDDEN; k++) products[k] = s[i] * a[k], a_bar[k] += s[i] * net.second[i][k];
        add(products, sums.second[i]);
    }
    add(s, sums.second_bias);
#pragma unroll
    for (int i = 0; i < HIDDEN; i++) {
        float inner[INPUTS];
        a_bar[i] *= 1 - a[i] * a[i];
        for (int k = 0; k < INPUTS; k++) inner[k] = a_bar[i] * example.x[k];
        add(inner, sums.first[i]);
    }
    add(a_bar, sums.first_bias);
    __syncthreads();
    for (int i = threadIdx.x; i < WEIGHTS; i += GROUP) atomicAdd(&gradients[i], ((float *)&sums)[i]);
}
} // namespace hand

/* The module's network: a buffer of numbers, or of one struct. */
template <typename Buffer>
static int run_network(const char *name, cudaError_t (*set_network)(const Buffer *, cudaStream_t)) {
    const int count = 1 << 16;
    Memory<float> network(numbers<float>(hand::WEIGHTS, -0.4f, 0.4f)),
        examples(numbers<float>(17 * count, -1, 1)), gradients(hand::WEIGHTS);
    bind(set_network, network);
    bind(slope::examples_set, examples);
    bind(slope::gradients_set, gradients);
    check(slope::count_set(&count, 0));
    return compare<float>(
        name, count, gradients, 1, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::item<<<groups(count), GROUP>>>((const hand::Network *)network.data,
                                                 (const hand::Example *)examples.data, gradients.data);
        });
}
