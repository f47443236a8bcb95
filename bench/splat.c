/* Gaussians drawn one over the other. The gradient keeps those that are drawn at a pixel, and goes back
 * through these alone. */
#include "derivative.h"

enum { WIDTH = 48, HEIGHT = 32, N = 64 };

typedef struct Gaussian {
    real center[2], shape[3], color[3], opacity;
} Gaussian;

enum { EACH = sizeof(Gaussian) / sizeof(real) };

typedef struct Data {
    const Gaussian *gaussians;
    const real (*targets)[3];
} Data;

typedef struct Drawn {
    int index;
    real dx, dy, weight, alpha, left; /* left: of the light, before it */
} Drawn;

static inline real weight_at(const Gaussian *g, real dx, real dy) {
    return exp(-0.5f * (g->shape[0] * dx * dx + g->shape[2] * dy * dy) - g->shape[1] * dx * dy);
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    real sum = 0;
    for (int pixel = 0; pixel < WIDTH * HEIGHT; pixel++) {
        real x = (real)(pixel % WIDTH) + 0.5f, y = (real)(pixel / WIDTH) + 0.5f, left = 1, color[3] = {0};
        for (int i = 0; i < N; i++) {
            const Gaussian *g = &d->gaussians[i];
            real alpha = g->opacity * weight_at(g, x - g->center[0], y - g->center[1]);
            if (alpha < R(0.004)) continue;
            for (int c = 0; c < 3; c++) color[c] += left * alpha * g->color[c];
            left *= 1 - alpha;
            if (left < R(0.001)) break;
        }
        for (int c = 0; c < 3; c++) {
            real error = color[c] - d->targets[pixel][c];
            sum += error * error;
        }
    }
    values[0] = sum;
}

static inline int draw(const Data *d, real x, real y, Drawn *drawn, real *color) {
    real left = 1;
    int count = 0;
    for (int i = 0; i < N; i++) {
        const Gaussian *g = &d->gaussians[i];
        real dx = x - g->center[0], dy = y - g->center[1], weight = weight_at(g, dx, dy);
        real alpha = g->opacity * weight;
        if (alpha < R(0.004)) continue;
        drawn[count++] = (Drawn){i, dx, dy, weight, alpha, left};
        for (int c = 0; c < 3; c++) color[c] += left * alpha * g->color[c];
        left *= 1 - alpha;
        if (left < R(0.001)) break;
    }
    return count;
}

static inline void undraw(const Gaussian *g, Gaussian *bar, const Drawn *n, const real *color_bar,
                          real *left_bar) {
    real alpha_bar = -*left_bar * n->left, own = 0;
    for (int c = 0; c < 3; c++) {
        bar->color[c] += color_bar[c] * n->left * n->alpha;
        own += color_bar[c] * g->color[c];
    }
    alpha_bar += own * n->left;
    *left_bar = *left_bar * (1 - n->alpha) + own * n->alpha;
    bar->opacity += alpha_bar * n->weight;
    real power = alpha_bar * n->alpha;
    bar->shape[0] -= 0.5f * power * n->dx * n->dx;
    bar->shape[1] -= power * n->dx * n->dy;
    bar->shape[2] -= 0.5f * power * n->dy * n->dy;
    bar->center[0] += power * (g->shape[0] * n->dx + g->shape[1] * n->dy);
    bar->center[1] += power * (g->shape[2] * n->dy + g->shape[1] * n->dx);
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    Gaussian *bars = (Gaussian *)(void *)gradients;
    memset(gradients, 0, sizeof(Gaussian) * N);
    for (int pixel = 0; pixel < WIDTH * HEIGHT; pixel++) {
        Drawn drawn[N];
        real x = (real)(pixel % WIDTH) + 0.5f, y = (real)(pixel / WIDTH) + 0.5f, color[3] = {0}, left_bar = 0;
        int count = draw(d, x, y, drawn, color);
        for (int c = 0; c < 3; c++) color[c] = 2 * (color[c] - d->targets[pixel][c]);
        for (int k = count - 1; k >= 0; k--)
            undraw(&d->gaussians[drawn[k].index], &bars[drawn[k].index], &drawn[k], color, &left_bar);
    }
}

BY_ENZYME(1, EACH *N, gaussians, targets)

int main(int argc, char **argv) {
    real *scene = derivative_numbers(EACH * N, 0, 1), *targets = derivative_numbers(3 * WIDTH * HEIGHT, 0, 1);
    for (int i = 0; i < N; i++) {
        real *g = scene + EACH * i;
        g[0] *= WIDTH, g[1] *= HEIGHT;
        g[2] = 0.05f + 0.2f * g[2], g[4] = 0.05f + 0.2f * g[4], g[3] = R(0.04) * (g[3] - 0.5f);
        g[8] = 0.2f + 0.7f * g[8];
    }
    Data data = {(const Gaussian *)(const void *)scene, (const real(*)[3])(const void *)targets};
    Derivative d = derivative_open((Problem){1, EACH * N, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "parameters", scene, sizeof(Gaussian) * N);
    derivative_bind(&d, "targets", targets, sizeof(real) * 3 * WIDTH * HEIGHT);
    derivative_set(&d, "width", WIDTH);
    derivative_set(&d, "height", HEIGHT);
    return derivative_run(&d, argc, argv);
}
