/* Sphere tracing, one ray per thread. By hand, the gradient is carried along with the march: nothing is kept. */
#include "bench.h"

namespace hand {
typedef float real;
#include "../march.c"

static __global__ void __launch_bounds__(GROUP) item(Scene scene, const Vec *rays, float *gradients, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[PARAMETERS];
    if (i >= count) return;
    item_gradient(&scene, rays[i], sum);
    for (int k = 0; k < PARAMETERS; k++) gradients[PARAMETERS * i + k] = sum[k];
}
} // namespace hand

int main() {
    const int count = 1 << 20, width = 1 << 10;
    const hand::Scene scene = {{0.9f, 0.4f, -0.3f}, 0.8f, {0.6f, 0.5f, 0.7f}, 0.1f, -0.6f, 0.5f};
    std::vector<float> data(3 * count);
    for (int i = 0; i < count; i++) {
        float *ray = &data[3 * i];
        ray[0] = (float)(i % width) / width - 0.5f;
        ray[1] = ((float)(i / width) / width - 0.5f) * 0.6f - 0.15f;
        ray[2] = 1;
        const float size = sqrtf(ray[0] * ray[0] + ray[1] * ray[1] + 1);
        for (int k = 0; k < 3; k++) ray[k] /= size;
    }
    Memory<float> rays(data), gradients(10 * count);
    bind(slope::rays_set, rays);
    bind(slope::gradients_set, gradients);
    check(slope::scene_set((const slope::Scene *)&scene, 0));
    check(slope::count_set(&count, 0));
    return compare<float>(
        "march", count, gradients, 10, [&] { slope::item_launch(groups(count), 0); },
        [&] { hand::item<<<groups(count), GROUP>>>(scene, (const hand::Vec *)rays.data, gradients.data, count); });
}
