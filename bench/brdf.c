/* A microfacet BRDF; its gradient by material and directions. */
#include "derivative.h"

enum { COUNT = 4096 };

typedef struct Vec {
    real x, y, z;
} Vec;

typedef struct Sample {
    Vec base;
    real roughness, metallic;
    Vec to_viewer, to_light;
} Sample;

typedef struct Data {
    const Sample *samples;
    const Vec *weights;
} Data;

static const real pi = R(3.14159265), least = R(1e-4);

BY_HAND real dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
BY_HAND Vec add(Vec a, Vec b) { return (Vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
BY_HAND Vec scale(real s, Vec a) { return (Vec){s * a.x, s * a.y, s * a.z}; }
BY_HAND real at_least(real x, real low) { return x > low ? x : low; }

#ifndef __CUDACC__
static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        const Sample *s = &d->samples[i];
        Vec v = scale(1 / sqrt(dot(s->to_viewer, s->to_viewer)), s->to_viewer);
        Vec l = scale(1 / sqrt(dot(s->to_light, s->to_light)), s->to_light);
        Vec h = add(v, l);
        h = scale(1 / sqrt(dot(h, h)), h);
        real nv = at_least(v.z, least), nl = at_least(l.z, least), nh = h.z, vh = dot(v, h);
        real alpha = s->roughness * s->roughness, a = alpha * alpha;
        real t = nh * nh * (a - 1) + 1;
        real spec =
            a / (pi * t * t) * (0.5f / (nl * sqrt(nv * nv * (1 - a) + a) + nv * sqrt(nl * nl * (1 - a) + a)));
        real g = 1 - vh, g5 = g * g * (g * g) * g, kd = (1 - s->metallic) / pi;
        real sum = 0;
        const real base[3] = {s->base.x, s->base.y, s->base.z};
        const real weight[3] = {d->weights[i].x, d->weights[i].y, d->weights[i].z};
        for (int c = 0; c < 3; c++) {
            real f0 = R(0.04) + (base[c] - R(0.04)) * s->metallic, f = f0 + (1 - f0) * g5;
            sum += weight[c] * ((1 - f) * base[c] * kd + f * spec);
        }
        values[i] = sum * nl;
    }
}
#endif

/* The adjoint of the unit vector u = length_inverse * x becomes that of x. */
BY_HAND Vec normalize_back(Vec u, real length_inverse, Vec u_bar) {
    real along = dot(u, u_bar);
    return scale(length_inverse, (Vec){u_bar.x - along * u.x, u_bar.y - along * u.y, u_bar.z - along * u.z});
}

BY_HAND void item_gradient(const Sample *s, Vec weights, real *restrict out) {
    real iv = 1 / sqrt(dot(s->to_viewer, s->to_viewer)), il = 1 / sqrt(dot(s->to_light, s->to_light));
    Vec v = scale(iv, s->to_viewer), l = scale(il, s->to_light), h = add(v, l);
    real ih = 1 / sqrt(dot(h, h));
    h = scale(ih, h);
    real nv = at_least(v.z, least), nl = at_least(l.z, least), nh = h.z, vh = dot(v, h);
    real alpha = s->roughness * s->roughness, a = alpha * alpha;
    real t = nh * nh * (a - 1) + 1, over_t = 1 / (pi * t * t), distribution = a * over_t;
    real sv = sqrt(nv * nv * (1 - a) + a), sl = sqrt(nl * nl * (1 - a) + a);
    real masking = 0.5f / (nl * sv + nv * sl), spec = distribution * masking;
    real g = 1 - vh, g4 = g * g * (g * g), g5 = g4 * g, kd = (1 - s->metallic) / pi;

    const real base[3] = {s->base.x, s->base.y, s->base.z};
    const real weight[3] = {weights.x, weights.y, weights.z};
    real base_bar[3], nl_bar = 0, spec_bar = 0, kd_bar = 0, g5_bar = 0, metallic_bar = 0;
    for (int c = 0; c < 3; c++) {
        real f0 = R(0.04) + (base[c] - R(0.04)) * s->metallic, f = f0 + (1 - f0) * g5;
        real w = weight[c] * nl, f_bar = w * (spec - base[c] * kd), f0_bar = f_bar * (1 - g5);
        nl_bar += weight[c] * ((1 - f) * base[c] * kd + f * spec);
        spec_bar += w * f;
        kd_bar += w * (1 - f) * base[c];
        g5_bar += f_bar * (1 - f0);
        base_bar[c] = w * (1 - f) * kd + f0_bar * s->metallic;
        metallic_bar += f0_bar * (base[c] - R(0.04));
    }
    metallic_bar -= kd_bar / pi;
    real vh_bar = -5 * g4 * g5_bar;
    real distribution_bar = spec_bar * masking, q_bar = -2 * spec_bar * distribution * masking * masking;
    real xv = 0.5f * q_bar * nl / sv, xl = 0.5f * q_bar * nv / sl;
    real nv_bar = q_bar * sl + 2 * xv * nv * (1 - a);
    nl_bar += q_bar * sv + 2 * xl * nl * (1 - a);
    real t_bar = -2 * distribution_bar * distribution / t;
    real a_bar = xv * (1 - nv * nv) + xl * (1 - nl * nl) + distribution_bar * over_t + t_bar * nh * nh;
    real nh_bar = 2 * t_bar * nh * (a - 1);

    Vec h_bar = scale(vh_bar, v), s_bar, v_bar, l_bar;
    h_bar.z += nh_bar;
    s_bar = normalize_back(h, ih, h_bar);
    v_bar = add(s_bar, scale(vh_bar, h));
    l_bar = s_bar;
    if (v.z > least) v_bar.z += nv_bar;
    if (l.z > least) l_bar.z += nl_bar;
    Vec viewer_bar = normalize_back(v, iv, v_bar), light_bar = normalize_back(l, il, l_bar);

    for (int c = 0; c < 3; c++) out[c] = base_bar[c];
    out[3] = 4 * s->roughness * alpha * a_bar;
    out[4] = metallic_bar;
    out[5] = viewer_bar.x, out[6] = viewer_bar.y, out[7] = viewer_bar.z;
    out[8] = light_bar.x, out[9] = light_bar.y, out[10] = light_bar.z;
}

#ifndef __CUDACC__
static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) item_gradient(&d->samples[i], d->weights[i], gradients + 11 * i);
}

BY_ENZYME(COUNT, 11, samples, weights)

int main(int argc, char **argv) {
    real *numbers = derivative_numbers(11 * COUNT, 0.2f, 0.9f),
         *weights = derivative_numbers(3 * COUNT, 0.5f, 1);
    for (int i = 0; i < COUNT; i++) {
        real *sample = numbers + 11 * i;
        sample[3] = 0.4f + 0.5f * sample[3]; /* a smooth surface loses digits in its highlight */
        for (int k = 5; k < 11; k++)
            if (k != 7 && k != 10) sample[k] = 2 * sample[k] - 1.1f;
    }
    Data data = {(const Sample *)(const void *)numbers, (const Vec *)(const void *)weights};
    Derivative d = derivative_open((Problem){COUNT, 11, primal, gradient, &data, 1e-4});
    derivative_bind(&d, "items", numbers, sizeof(real) * 11 * COUNT);
    derivative_bind(&d, "weights", weights, sizeof(real) * 3 * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
#endif
