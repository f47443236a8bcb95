/* Bundle adjustment in double precision, one observation per thread. */
#include "bench.h"

namespace hand {
typedef double real;
#include "../bundle.c"

static __global__ void __launch_bounds__(GROUP) item(const Observation *observations, const double *seen, Observation *gradients, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Observation o = observations[i];
    item_gradient(&o, seen + 2 * i, gradients + i);
}
} // namespace hand

int main() {
    const int count = 1 << 20;
    std::vector<double> data = numbers<double>(15 * count, -0.5, 0.5);
    for (int i = 0; i < count; i++) {
        double *o = &data[15 * i];
        o[6] += 1.5;
        o[13] += 4;
        o[14] += 1;
    }
    Memory<double> observations(data), seen(numbers<double>(2 * count, -1, 1)), gradients(15 * count);
    bind(slope::items_set, observations);
    bind(slope::gradients_set, gradients);
    bind(slope::seen_set, seen);
    check(slope::count_set(&count, 0));
    return compare<double>(
        "bundle", count, gradients, 15, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::item<<<groups(count), GROUP>>>((const hand::Observation *)observations.data, seen.data,
                                                 (hand::Observation *)gradients.data, count);
        });
}
