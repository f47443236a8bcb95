/* The kernels of lanes.slang as somebody would write them in C for vectors: loops over items under `#pragma
 * omp simd`, their gradients by hand. Where items end at different times, blocks of them go on as long as one
 * does. */
#ifndef LANES_SIMD_H
#define LANES_SIMD_H

#include <math.h>

enum { BLOCK = 16, STEPS = 256, SPLATS = 64, NEURONS = 16 };

typedef struct Vec {
    float x, y, z;
} Vec;

static inline float dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline Vec add(Vec a, Vec b) { return (Vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline Vec scale(float s, Vec a) { return (Vec){s * a.x, s * a.y, s * a.z}; }
static inline float greater(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }

/* The adjoint of the unit vector u = inverse_length * x becomes that of x. */
static inline Vec normalize_back(Vec u, float inverse_length, Vec bar) {
    return scale(inverse_length, add(bar, scale(-dot(u, bar), u)));
}

/* ---- GGX */

static inline float shade_back(float roughness, float metallic, const float *base, Vec viewer, Vec light) {
    const float pi = 3.14159265f, least = 1e-4f, weight[3] = {0.3f, 0.6f, 0.1f};
    float iv = 1 / sqrtf(dot(viewer, viewer)), il = 1 / sqrtf(dot(light, light));
    Vec v = scale(iv, viewer), l = scale(il, light), h = add(v, l);
    float ih = 1 / sqrtf(dot(h, h));
    h = scale(ih, h);
    float nv = greater(v.z, least), nl = greater(l.z, least), nh = h.z, vh = dot(v, h);
    float alpha = roughness * roughness, a = alpha * alpha, t = nh * nh * (a - 1) + 1,
          over = 1 / (pi * t * t);
    float sv = sqrtf(nv * nv * (1 - a) + a), sl = sqrtf(nl * nl * (1 - a) + a),
          masking = 0.5f / (nl * sv + nv * sl);
    float distribution = a * over, spec = distribution * masking;
    float g = 1 - vh, g4 = g * g * (g * g), g5 = g4 * g, kd = (1 - metallic) / pi;
    float sum = 0, nl_bar = 0, spec_bar = 0, kd_bar = 0, g5_bar = 0, metallic_bar = 0;
    for (int c = 0; c < 3; c++) {
        float f0 = 0.04f + (base[c] - 0.04f) * metallic, f = f0 + (1 - f0) * g5;
        float w = weight[c] * nl, f_bar = w * (spec - base[c] * kd), f0_bar = f_bar * (1 - g5);
        nl_bar += weight[c] * ((1 - f) * base[c] * kd + f * spec);
        spec_bar += w * f;
        kd_bar += w * (1 - f) * base[c];
        g5_bar += f_bar * (1 - f0);
        sum += w * (1 - f) * kd + f0_bar * metallic;
        metallic_bar += f0_bar * (base[c] - 0.04f);
    }
    metallic_bar -= kd_bar / pi;
    float vh_bar = -5 * g4 * g5_bar, distribution_bar = spec_bar * masking;
    float q_bar = -2 * spec_bar * distribution * masking * masking;
    float xv = 0.5f * q_bar * nl / sv, xl = 0.5f * q_bar * nv / sl;
    float nv_bar = q_bar * sl + 2 * xv * nv * (1 - a), t_bar = -2 * distribution_bar * distribution / t;
    nl_bar += q_bar * sv + 2 * xl * nl * (1 - a);
    float a_bar = xv * (1 - nv * nv) + xl * (1 - nl * nl) + distribution_bar * over + t_bar * nh * nh;
    Vec h_bar = scale(vh_bar, v);
    h_bar.z += 2 * t_bar * nh * (a - 1);
    Vec s_bar = normalize_back(h, ih, h_bar), v_bar = add(s_bar, scale(vh_bar, h)), l_bar = s_bar;
    v_bar.z += v.z > least ? nv_bar : 0;
    l_bar.z += l.z > least ? nl_bar : 0;
    Vec one = {1, 1, 1};
    return 4 * roughness * alpha * a_bar + metallic_bar + sum + dot(normalize_back(v, iv, v_bar), one) +
           dot(normalize_back(l, il, l_bar), one);
}

static void ggx_simd(const float *restrict in, float *restrict out, int items) {
#pragma omp simd
    for (int i = 0; i < items; i++) {
        float base[3] = {in[i + 2 * items], in[i + 3 * items], in[i + 4 * items]};
        Vec viewer = {in[i + 5 * items] - 0.5f, in[i + 6 * items] - 0.5f, in[i + 7 * items] + 0.5f};
        Vec light = {in[i + 8 * items] - 0.5f, in[i + 9 * items] - 0.5f, in[i + 10 * items] + 0.5f};
        out[i] = shade_back(in[i] * 0.8f + 0.1f, in[i + items], base, viewer, light);
    }
}

/* ---- the inverse of a matrix, by products of 2 x 2 determinants */

static inline float inverse_sum(const float m[4][4]) {
    float s0 = m[0][0] * m[1][1] - m[1][0] * m[0][1], s1 = m[0][0] * m[1][2] - m[1][0] * m[0][2];
    float s2 = m[0][0] * m[1][3] - m[1][0] * m[0][3], s3 = m[0][1] * m[1][2] - m[1][1] * m[0][2];
    float s4 = m[0][1] * m[1][3] - m[1][1] * m[0][3], s5 = m[0][2] * m[1][3] - m[1][2] * m[0][3];
    float c5 = m[2][2] * m[3][3] - m[3][2] * m[2][3], c4 = m[2][1] * m[3][3] - m[3][1] * m[2][3];
    float c3 = m[2][1] * m[3][2] - m[3][1] * m[2][2], c2 = m[2][0] * m[3][3] - m[3][0] * m[2][3];
    float c1 = m[2][0] * m[3][2] - m[3][0] * m[2][2], c0 = m[2][0] * m[3][1] - m[3][0] * m[2][1];
    float over = 1 / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
    float n00 = m[1][1] * c5 - m[1][2] * c4 + m[1][3] * c3, n03 = -m[2][1] * s5 + m[2][2] * s4 - m[2][3] * s3;
    float n12 = -m[3][0] * s5 + m[3][2] * s2 - m[3][3] * s1,
          n21 = -m[0][0] * c4 + m[0][1] * c2 - m[0][3] * c0;
    float n30 = -m[1][0] * c3 + m[1][1] * c1 - m[1][2] * c0, n33 = m[2][0] * s3 - m[2][1] * s1 + m[2][2] * s0;
    return over * (n00 + n12 + n21 + n33 + n03 + n30);
}

#define ENTRY(k) (in[i + (k) % 12 * items] + ((k) % 5 == 0 ? 3.0f + (float)((k) / 5) : 0))
#define ROW(r)                                                                                               \
    { ENTRY(4 * (r)), ENTRY(4 * (r) + 1), ENTRY(4 * (r) + 2), ENTRY(4 * (r) + 3) }

static void invert_simd(const float *restrict in, float *restrict out, int items) {
#pragma omp simd
    for (int i = 0; i < items; i++) {
        const float m[4][4] = {ROW(0), ROW(1), ROW(2), ROW(3)};
        out[i] = inverse_sum(m);
    }
}

/* ---- a particle, 256 steps, and back */

static inline void pull(float px, float py, float *fx, float *fy) {
    float ax = px - 0.5f, ay = py - 1.5f, bx = px + 1, by = py + 0.5f;
    float ra = 1 / (ax * ax + ay * ay + 0.25f), rb = 0.5f / (bx * bx + by * by + 0.25f);
    *fx = -ax * ra - bx * rb, *fy = -ay * ra - by * rb;
}

/* What the force's adjoint gives to that of the position. */
static inline void pull_back(float px, float py, float fx, float fy, float *gx, float *gy) {
    float ax = px - 0.5f, ay = py - 1.5f, bx = px + 1, by = py + 0.5f;
    float ra = 1 / (ax * ax + ay * ay + 0.25f), rb = 1 / (bx * bx + by * by + 0.25f);
    float along_a = 2 * (fx * ax + fy * ay) * ra * ra, along_b = (fx * bx + fy * by) * rb * rb;
    *gx += -fx * ra + along_a * ax - 0.5f * fx * rb + along_b * bx;
    *gy += -fy * ra + along_a * ay - 0.5f * fy * rb + along_b * by;
}

typedef struct Flight {
    float px[BLOCK], py[BLOCK], vx[BLOCK], vy[BLOCK];
} Flight;

static void fly(Flight *f, Flight *g, float kept[STEPS][2][BLOCK]) {
    for (int s = 0; s < STEPS; s++)
#pragma omp simd
        for (int k = 0; k < BLOCK; k++) {
            float fx, fy;
            kept[s][0][k] = f->px[k], kept[s][1][k] = f->py[k];
            pull(f->px[k], f->py[k], &fx, &fy);
            f->vx[k] += 0.01f * fx, f->vy[k] += 0.01f * fy;
            f->px[k] += 0.01f * f->vx[k], f->py[k] += 0.01f * f->vy[k];
        }
    for (int k = 0; k < BLOCK; k++) g->px[k] = 2 * f->px[k], g->py[k] = 2 * f->py[k], g->vx[k] = g->vy[k] = 0;
    for (int s = STEPS - 1; s >= 0; s--)
#pragma omp simd
        for (int k = 0; k < BLOCK; k++) {
            float gx = g->px[k], gy = g->py[k];
            g->vx[k] += 0.01f * gx, g->vy[k] += 0.01f * gy;
            pull_back(kept[s][0][k], kept[s][1][k], 0.01f * g->vx[k], 0.01f * g->vy[k], &gx, &gy);
            g->px[k] = gx, g->py[k] = gy;
        }
}

static void particle_simd(const float *restrict in, float *restrict out, int items) {
    static float kept[STEPS][2][BLOCK];
    for (int i = 0; i < items; i += BLOCK) {
        Flight f, g;
        for (int k = 0; k < BLOCK; k++) {
            f.px[k] = in[i + k], f.py[k] = in[i + k + items];
            f.vx[k] = in[i + k + 2 * items], f.vy[k] = in[i + k + 3 * items];
        }
        fly(&f, &g, kept);
        for (int k = 0; k < BLOCK; k++) out[i + k] = g.px[k] + g.py[k] + g.vx[k] + g.vy[k];
    }
}

/* ---- sphere tracing */

static inline float scene(Vec p) {
    Vec b = {p.x - 0.3f, p.y - 0.2f, p.z - 0.1f};
    Vec q = {fabsf(p.x + 0.8f) - 0.3f, fabsf(p.y) - 0.3f, fabsf(p.z) - 0.3f};
    Vec out = {greater(q.x, 0), greater(q.y, 0), greater(q.z, 0)};
    float box = sqrtf(dot(out, out)) + smaller(greater(q.x, greater(q.y, q.z)), 0) - 0.05f;
    return smaller(smaller(sqrtf(dot(b, b)) - 0.6f, box), p.y + 0.8f);
}

static void march_simd(const float *restrict in, float *restrict out, int items) {
    (void)in;
    for (int i = 0; i < items; i += BLOCK) {
        float dx[BLOCK], dy[BLOCK], dz[BLOCK], t[BLOCK];
        int on[BLOCK], left = BLOCK;
        for (int k = 0; k < BLOCK; k++) {
            Vec d = {(float)((i + k) % 1024) / 512.0f - 1,
                     (float)((i + k) / 1024) / (float)(items / 1024) * 1.4f - 0.9f, 1.6f};
            d = scale(1 / sqrtf(dot(d, d)), d);
            dx[k] = d.x, dy[k] = d.y, dz[k] = d.z, t[k] = 0, on[k] = 1;
        }
        for (int s = 0; s < 96 && left; s++) {
            left = 0;
#pragma omp simd reduction(+ : left)
            for (int k = 0; k < BLOCK; k++) {
                float d = scene((Vec){t[k] * dx[k], 0.4f + t[k] * dy[k], -3 + t[k] * dz[k]});
                on[k] &= d >= 1e-3f;
                t[k] += on[k] ? d : 0;
                on[k] &= t[k] <= 12;
                left += on[k];
            }
        }
        for (int k = 0; k < BLOCK; k++) out[i + k] = t[k];
    }
}

/* ---- splatting */

static void splat_simd(const float *restrict in, float *restrict out, int items) {
    for (int i = 0; i < items; i += BLOCK) {
        float x[BLOCK], y[BLOCK], left[BLOCK], colour[BLOCK];
        int on = BLOCK;
        for (int k = 0; k < BLOCK; k++) {
            x[k] = (float)((i + k) % 1024) / 1024, y[k] = (float)((i + k) / 1024) * 1024 / (float)items;
            left[k] = 1, colour[k] = 0;
        }
        for (int s = 0; s < SPLATS && on; s++) {
            const float *w = in + 4 * s;
            on = 0;
#pragma omp simd reduction(+ : on)
            for (int k = 0; k < BLOCK; k++) {
                float dx = x[k] - w[0], dy = y[k] - w[1], power = (dx * dx + dy * dy) * (2 + 40 * w[2]);
                float alpha = power > 4 || left[k] < 0.01f ? 0 : 0.9f * expf(-power);
                colour[k] += left[k] * alpha * w[3];
                left[k] *= 1 - alpha;
                on += left[k] >= 0.01f;
            }
        }
        for (int k = 0; k < BLOCK; k++) out[i + k] = colour[k];
    }
}

/* ---- a network */

static void neuron(const float *restrict w, const float *restrict x, int items, float bias, float weight,
                   float gradient[8][BLOCK]) {
    float slope[BLOCK];
#pragma omp simd
    for (int k = 0; k < BLOCK; k++) {
        float a =
            bias + (w[0] - 0.5f) * x[k] + (w[1] - 0.5f) * x[k + items] + (w[2] - 0.5f) * x[k + 2 * items];
        a += (w[3] - 0.5f) * x[k + 3 * items] + (w[4] - 0.5f) * x[k + 4 * items] +
             (w[5] - 0.5f) * x[k + 5 * items];
        a += (w[6] - 0.5f) * x[k + 6 * items] + (w[7] - 0.5f) * x[k + 7 * items];
        slope[k] = a >= 0.1f * a ? weight : 0.1f * weight;
    }
    for (int c = 0; c < 8; c++)
#pragma omp simd
        for (int k = 0; k < BLOCK; k++) gradient[c][k] += slope[k] * (w[c] - 0.5f);
}

static void mlp_simd(const float *restrict in, float *restrict out, int items) {
    for (int i = 0; i < items; i += BLOCK) {
        float gradient[8][BLOCK] = {{0}};
        for (int j = 0; j < NEURONS; j++)
            neuron(in + j * 8, in + i, items, in[200 + j], in[300 + j] - 0.4f, gradient);
        for (int k = 0; k < BLOCK; k++) {
            out[i + k] = 0;
            for (int c = 0; c < 8; c++) out[i + k] += gradient[c][k];
        }
    }
}

static const struct {
    const char *name;
    void (*run)(const float *restrict in, float *restrict out, int items);
} in_c[] = {{"ggx", ggx_simd},     {"invert", invert_simd}, {"particle", particle_simd},
            {"march", march_simd}, {"splat", splat_simd},   {"mlp", mlp_simd}};

#endif
