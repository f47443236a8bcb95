/* Sphere tracing; the gradient of where a ray hits by the scene.
 *
 * The state of the march is one number t, so the gradient is carried along with it: one pass, nothing to
 * store. A step adds to t the distance d, whose gradient by the point and the scene comes from the lengths
 * that the step computes anyway. */
#include "derivative.h"

enum { COUNT = 2048, STEPS = 96, PARAMETERS = 10 };

typedef struct Vec {
    real x, y, z;
} Vec;

typedef struct Scene {
    Vec center;
    real radius;
    Vec corner;
    real rounding, height, blend;
} Scene;

typedef struct Data {
    Scene scene;
    const Vec *rays;
} Data;

static const Vec eye = {0, 1, -5};

BY_HAND real least(real a, real b) { return a < b ? a : b; }
BY_HAND real greatest(real a, real b) { return a > b ? a : b; }
BY_HAND real dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
BY_HAND Vec sub(Vec a, Vec b) { return (Vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
BY_HAND Vec along(Vec origin, real t, Vec direction) {
    return (Vec){origin.x + t * direction.x, origin.y + t * direction.y, origin.z + t * direction.z};
}

BY_HAND real blend_union(real a, real b, real k) {
    real h = greatest(k - fabs(a - b), 0) / k;
    return least(a, b) - h * h * k * 0.25f;
}

BY_HAND real distance(const Scene *scene, Vec p) {
    Vec r = sub(p, scene->center), q = sub((Vec){fabs(p.x), fabs(p.y), fabs(p.z)}, scene->corner);
    real ball = sqrt(dot(r, r)) - scene->radius;
    Vec out = {greatest(q.x, 0), greatest(q.y, 0), greatest(q.z, 0)};
    real box = sqrt(dot(out, out)) + least(greatest(q.x, greatest(q.y, q.z)), 0) - scene->rounding;
    return blend_union(blend_union(ball, box, scene->blend), p.y - scene->height, scene->blend);
}

#ifndef __CUDACC__
static inline real march(const Scene *scene, const Vec *direction) {
    real t = 0;
    for (int step = 0; step < STEPS; step++) {
        real near = distance(scene, along(eye, t, *direction));
        if (near < R(1e-3)) break;
        t += near;
        if (t > 12) break;
    }
    return t;
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    Scene scene = d->scene;
    for (int i = 0; i < COUNT; i++) values[i] = march(&scene, &d->rays[i]);
}
#endif

/* Also the derivatives by a and k; that by b is 1 - *by_a. */
BY_HAND real blend_gradient(real a, real b, real k, real *by_a, real *by_k) {
    real h = greatest(k - fabs(a - b), 0) / k;
    *by_a = a < b ? 1 - 0.5f * h : 0.5f * h;
    *by_k = 0.25f * h * h - 0.5f * h;
    return least(a, b) - h * h * k * 0.25f;
}

/* The distance, its gradient by the scene, and by the point. */
BY_HAND real distance_gradient(const Scene *scene, Vec p, Scene *g, Vec *by_point) {
    Vec r = sub(p, scene->center), q = sub((Vec){fabs(p.x), fabs(p.y), fabs(p.z)}, scene->corner);
    real length = sqrt(dot(r, r)), ball = length - scene->radius;
    Vec out = {greatest(q.x, 0), greatest(q.y, 0), greatest(q.z, 0)};
    real outside = sqrt(dot(out, out)), deepest = greatest(q.x, greatest(q.y, q.z));
    real box = outside + least(deepest, 0) - scene->rounding;
    real by_ball, by_both, by_blend, by_blend2;
    real both = blend_gradient(ball, box, scene->blend, &by_ball, &by_blend);
    real all = blend_gradient(both, p.y - scene->height, scene->blend, &by_both, &by_blend2);
    real by_box = by_both * (1 - by_ball);
    by_ball *= by_both;
    real scale = by_ball / length;
    *by_point = (Vec){scale * r.x, scale * r.y, scale * r.z};
    *g = (Scene){.center = {-by_point->x, -by_point->y, -by_point->z},
                 .radius = -by_ball,
                 .rounding = -by_box,
                 .height = by_both - 1,
                 .blend = by_both * by_blend + by_blend2};
    Vec by_q = {0, 0, 0};
    if (deepest > 0) {
        scale = by_box / outside;
        by_q = (Vec){scale * out.x, scale * out.y, scale * out.z};
    } else if (deepest == q.x) by_q.x = by_box;
    else if (deepest == q.y) by_q.y = by_box;
    else by_q.z = by_box;
    g->corner = (Vec){-by_q.x, -by_q.y, -by_q.z};
    by_point->x += copysign(by_q.x, p.x);
    by_point->y += copysign(by_q.y, p.y) + 1 - by_both;
    by_point->z += copysign(by_q.z, p.z);
    return all;
}

BY_HAND void item_gradient(const Scene *scene, Vec direction, real *restrict sum) {
    real t = 0;
    for (int k = 0; k < PARAMETERS; k++) sum[k] = 0;
    for (int step = 0; step < STEPS; step++) {
        union {
            Scene scene;
            real at[PARAMETERS];
        } g;
        Vec by_point;
        real near = distance_gradient(scene, along(eye, t, direction), &g.scene, &by_point);
        if (near < R(1e-3)) break;
        real stretch = 1 + dot(by_point, direction);
        for (int k = 0; k < PARAMETERS; k++) sum[k] = stretch * sum[k] + g.at[k];
        t += near;
        if (t > 12) break;
    }
}

#ifndef __CUDACC__
static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    Scene scene = d->scene;
    for (int i = 0; i < COUNT; i++) item_gradient(&scene, d->rays[i], gradients + PARAMETERS * i);
}

#ifdef ENZYME
static void gradient_by_enzyme(const void *data, real *restrict gradients) {
    const Data *d = data;
    Scene scene = d->scene;
    memset(gradients, 0, sizeof(real) * PARAMETERS * COUNT);
    for (int i = 0; i < COUNT; i++)
        __enzyme_autodiff((void *)march, enzyme_dup, &scene, (void *)(gradients + PARAMETERS * i),
                          enzyme_const, &d->rays[i]);
}
#endif

int main(int argc, char **argv) {
    Data data = {.scene = {{0.9f, 0.4f, -0.3f}, 0.8f, {0.6f, 0.5f, 0.7f}, 0.1f, -0.6f, 0.5f}};
    real *rays = derivative_numbers(3 * COUNT, -0.5f, 0.5f);
    for (int i = 0; i < COUNT; i++) {
        real *ray = rays + 3 * i;
        ray[1] = ray[1] * 0.6f - 0.15f;
        ray[2] = 1;
        real size = sqrt(ray[0] * ray[0] + ray[1] * ray[1] + 1);
        for (int k = 0; k < 3; k++) ray[k] /= size;
    }
    data.rays = (const Vec *)(const void *)rays;
    Derivative d = derivative_open((Problem){COUNT, PARAMETERS, primal, gradient, &data, 2e-3});
    derivative_bind(&d, "rays", rays, sizeof(real) * 3 * COUNT);
    derivative_set_object(&d, "scene", &data.scene, sizeof data.scene);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
#endif
