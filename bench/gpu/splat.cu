/* 64 Gaussians over a million pixels. By hand, a thread keeps how much light was left before each of them and computes the rest again; the lanes
 * of a warp share the sums of a Gaussian's nine numbers, those of a group meet in shared memory. */
#include "bench.h"

namespace hand {
enum { COUNT = 64, EACH = 9 };

struct Gaussian {
    float x, y, xx, xy, yy, color[3], opacity;
};

/* Nine numbers of each lane become nine sums, in the lanes that count them. */
static __device__ float shared_sum(const float (&from)[EACH], int lane) {
    float v[16];
#pragma unroll
    for (int k = 0; k < 16; k++) v[k] = k < EACH ? from[k] : 0;
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const int bit = 16 >> step, half = 8 >> step;
        const bool upper = lane & bit;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (k >= half) continue;
            const float low = v[k], high = v[k + half];
            v[k] = (upper ? high : low) + __shfl_xor_sync(~0u, upper ? low : high, bit);
        }
    }
    return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

static __global__ void __launch_bounds__(GROUP) splat(const Gaussian *gaussians, float *gradient, int width) {
    __shared__ Gaussian all[COUNT];
    __shared__ float sums[COUNT * EACH];
    const int id = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    const float x = (float)(id % width) / (float)width, y = (float)(id / width) / (float)width;
    float left[COUNT], through = 1, light[3] = {0}, behind = 0;
    for (int i = threadIdx.x; i < COUNT * EACH; i += GROUP) {
        ((float *)all)[i] = ((const float *)gaussians)[i];
        sums[i] = 0;
    }
    __syncthreads();
    for (int i = 0; i < COUNT; i++) {
        const Gaussian &g = all[i];
        const float dx = x - g.x, dy = y - g.y;
        const float alpha = g.opacity * expf(-0.5f * (g.xx * dx * dx + g.yy * dy * dy) - g.xy * dx * dy);
        left[i] = through;
        for (int c = 0; c < 3; c++) light[c] += through * alpha * g.color[c];
        through *= 1 - alpha;
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        const Gaussian &g = all[i];
        const float dx = x - g.x, dy = y - g.y;
        const float weight = expf(-0.5f * (g.xx * dx * dx + g.yy * dy * dy) - g.xy * dx * dy), alpha = g.opacity * weight;
        const float own = 2 * (light[0] * g.color[0] + light[1] * g.color[1] + light[2] * g.color[2]);
        const float alpha_bar = left[i] * (own - behind), power = alpha_bar * alpha, seen = 2 * left[i] * alpha;
        behind = behind * (1 - alpha) + own * alpha;
        const float mine[EACH] = {power * (g.xx * dx + g.xy * dy), power * (g.yy * dy + g.xy * dx), -0.5f * power * dx * dx,
                                  -power * dx * dy, -0.5f * power * dy * dy, seen * light[0], seen * light[1], seen * light[2],
                                  alpha_bar * weight};
        const float sum = shared_sum(mine, lane);
        if (lane % 2 == 0 && lane / 2 < EACH) atomicAdd(&sums[EACH * i + lane / 2], sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < COUNT * EACH; i += GROUP) atomicAdd(&gradient[i], sums[i]);
}
} // namespace hand

int main() {
    const uint32_t width = 1024, count = width * width;
    std::vector<float> data = numbers<float>(64 * 9, 0, 1);
    for (int i = 0; i < 64; i++) {
        float *g = &data[9 * i];
        g[2] = 100 + 100 * g[2], g[3] = 20 * g[3], g[4] = 100 + 100 * g[4];
        g[8] = 0.2f + 0.6f * g[8];
    }
    Memory<float> gaussians(data), gradient(64 * 9);
    bind(slope::gaussians_set, gaussians);
    bind(slope::gradient_set, gradient);
    check(slope::width_set(&width, 0));
    return compare<float>(
        "splat", count, gradient, 9, [&] { slope::splat_launch(groups(count), 0); },
        [&] { hand::splat<<<groups(count), GROUP>>>((const hand::Gaussian *)gaussians.data, gradient.data, width); });
}
