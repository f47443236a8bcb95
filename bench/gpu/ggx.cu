/* A surface fitted to pictures. By hand, the gradient by the material alone, added up over groups of threads. */
#include "bench.h"

namespace hand {
typedef float real;
#include "../brdf.c"

struct Pixel {
    Vec to_viewer, to_light, seen;
};

static inline __device__ void pixel_gradient(const Pixel &p, const Sample &s, float (&out)[5]) {
    const Vec v = scale(rsqrtf(dot(p.to_viewer, p.to_viewer)), p.to_viewer);
    const Vec l = scale(rsqrtf(dot(p.to_light, p.to_light)), p.to_light);
    Vec h = add(v, l);
    h = scale(rsqrtf(dot(h, h)), h);
    const float nv = at_least(v.z, least), nl = at_least(l.z, least), nh = h.z, vh = dot(v, h);
    const float alpha = s.roughness * s.roughness, a = alpha * alpha;
    const float t = nh * nh * (a - 1) + 1, over_t = 1 / (pi * t * t), distribution = a * over_t;
    const float sv = sqrtf(nv * nv * (1 - a) + a), sl = sqrtf(nl * nl * (1 - a) + a);
    const float masking = 0.5f / (nl * sv + nv * sl), spec = distribution * masking;
    const float g = 1 - vh, g5 = g * g * (g * g) * g, kd = (1 - s.metallic) / pi;
    const float base[3] = {s.base.x, s.base.y, s.base.z}, seen[3] = {p.seen.x, p.seen.y, p.seen.z};
    float spec_bar = 0, kd_bar = 0, metallic_bar = 0;
    for (int c = 0; c < 3; c++) {
        const float f0 = 0.04f + (base[c] - 0.04f) * s.metallic, f = f0 + (1 - f0) * g5;
        const float w = 2 * nl * (((1 - f) * base[c] * kd + f * spec) * nl - seen[c]);
        const float f0_bar = w * (spec - base[c] * kd) * (1 - g5);
        spec_bar += w * f;
        kd_bar += w * (1 - f) * base[c];
        out[c] = w * (1 - f) * kd + f0_bar * s.metallic;
        metallic_bar += f0_bar * (base[c] - 0.04f);
    }
    const float distribution_bar = spec_bar * masking, q_bar = -2 * spec_bar * distribution * masking * masking;
    const float xv = 0.5f * q_bar * nl / sv, xl = 0.5f * q_bar * nv / sl;
    const float t_bar = -2 * distribution_bar * distribution / t;
    const float a_bar = xv * (1 - nv * nv) + xl * (1 - nl * nl) + distribution_bar * over_t + t_bar * nh * nh;
    out[3] = 4 * s.roughness * alpha * a_bar;
    out[4] = metallic_bar - kd_bar / pi;
}

static __global__ void __launch_bounds__(GROUP) fit(const Pixel *pixels, Sample surface, float *total, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float mine[5] = {0};
    if (i < count) pixel_gradient(pixels[i], surface, mine);
    add_up(mine, total);
}
} // namespace hand

int main() {
    const int count = 1 << 22;
    std::vector<float> data = numbers<float>(9 * count, 0.2f, 0.9f);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 6; k++)
            if (k % 3 != 2) data[9 * i + k] = 2 * data[9 * i + k] - 1.1f;
    const hand::Sample surface = {{0.7f, 0.5f, 0.3f}, 0.55f, 0.4f};
    Memory<float> pixels(data), total(5);
    bind(slope::pixels_set, pixels);
    bind(slope::total_set, total);
    check(slope::surface_set((const slope::Material *)&surface, 0));
    check(slope::count_set(&count, 0));
    return compare<float>(
        "ggx", count, total, 5, [&] { slope::fit_launch(groups(count), 0); },
        [&] { hand::fit<<<groups(count), GROUP>>>((const hand::Pixel *)pixels.data, surface, total.data, count); });
}
