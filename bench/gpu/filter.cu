/* A 5 x 5 filter over an image. By hand, each pixel's error is written down, with the sums for the weights; then each pixel that went in collects what
 * it has to do with. */
#include "bench.h"

namespace hand {
enum { SIZE = 5, WEIGHTS = SIZE * SIZE };

static __global__ void __launch_bounds__(GROUP) errors(const float *parameters, const float *targets, float *error, float *gradients, int width,
                                                       int height) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x, x = id % width, y = id / width;
    const float *image = parameters + WEIGHTS;
    float mine[WEIGHTS] = {0}, g = 0;
    if (x <= width - SIZE && y <= height - SIZE) {
        for (int k = 0; k < WEIGHTS; k++) g += parameters[k] * image[(y + k / SIZE) * width + x + k % SIZE];
        g = 2 * (g - targets[id]);
        for (int k = 0; k < WEIGHTS; k++) mine[k] = g * image[(y + k / SIZE) * width + x + k % SIZE];
    }
    error[id] = g;
    add_up(mine, gradients);
}

static __global__ void __launch_bounds__(GROUP) collect(const float *parameters, const float *error, float *gradients, int width) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x, x = id % width, y = id / width;
    float sum = 0;
    for (int k = 0; k < WEIGHTS; k++)
        if (x >= k % SIZE && y >= k / SIZE) sum += parameters[k] * error[id - k / SIZE * width - k % SIZE];
    gradients[WEIGHTS + id] += sum;
}
} // namespace hand

int main() {
    const int width = 1 << 10, height = 1 << 10, count = width * height;
    Memory<float> parameters(numbers<float>(hand::WEIGHTS + count, -1, 1)), targets(numbers<float>(count, -1, 1)), error(count),
        gradients(hand::WEIGHTS + count);
    bind(slope::parameters_set, parameters);
    bind(slope::targets_set, targets);
    bind(slope::gradients_set, gradients);
    check(slope::width_set(&width, 0));
    check(slope::height_set(&height, 0));
    return compare<float>(
        "filter", count, gradients, 1, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::errors<<<groups(count), GROUP>>>(parameters.data, targets.data, error.data, gradients.data, width, height);
            hand::collect<<<groups(count), GROUP>>>(parameters.data, error.data, gradients.data, width);
        });
}
