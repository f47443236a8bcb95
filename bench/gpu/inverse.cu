/* Inverse and determinant of 4 x 4 matrices, one per thread. */
#include "bench.h"

namespace hand {
typedef float real;
#include "../inverse.c"

static __global__ void __launch_bounds__(GROUP) item(const float *matrices, const float *weights, float *gradients, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) item_gradient(matrices + N * N * i, weights + N * N * i, gradients + N * N * i);
}
} // namespace hand

int main() {
    const int count = 1 << 21;
    std::vector<float> data = numbers<float>(16 * count, -1, 1);
    for (int i = 0; i < 4 * count; i++) data[i * 4 + i % 4] += 4;
    Memory<float> matrices(data), weights(numbers<float>(16 * count, -1, 1)), gradients(16 * count);
    bind(slope::items_set, matrices);
    bind(slope::weights_set, weights);
    bind(slope::gradients_set, gradients);
    check(slope::count_set(&count, 0));
    return compare<float>(
        "inverse", count, gradients, 16, [&] { slope::item_launch(groups(count), 0); },
        [&] { hand::item<<<groups(count), GROUP>>>(matrices.data, weights.data, gradients.data, count); });
}
