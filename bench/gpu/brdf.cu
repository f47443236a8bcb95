/* A microfacet BRDF, one sample per thread. */
#include "bench.h"

namespace hand {
typedef float real;
#include "../brdf.c"

static __global__ void __launch_bounds__(GROUP) item(const Sample *samples, const Vec *weights, float *gradients, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Sample sample = samples[i];
    item_gradient(&sample, weights[i], gradients + 11 * i);
}
} // namespace hand

int main() {
    const int count = 1 << 22;
    std::vector<float> data = numbers<float>(11 * count, 0.2f, 0.9f);
    for (int i = 0; i < count; i++) {
        float *sample = &data[11 * i];
        sample[3] = 0.4f + 0.5f * sample[3];
        for (int k = 5; k < 11; k++)
            if (k != 7 && k != 10) sample[k] = 2 * sample[k] - 1.1f;
    }
    Memory<float> samples(data), weights(numbers<float>(3 * count, 0.5f, 1)), gradients(11 * count);
    bind(slope::items_set, samples);
    bind(slope::gradients_set, gradients);
    bind(slope::weights_set, weights);
    check(slope::count_set(&count, 0));
    return compare<float>(
        "brdf", count, gradients, 11, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::item<<<groups(count), GROUP>>>((const hand::Sample *)samples.data, (const hand::Vec *)weights.data,
                                                 gradients.data, count);
        });
}
