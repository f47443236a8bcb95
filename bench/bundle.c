/* Bundle adjustment; the gradient of the squared error of an observation by camera, point and weight. */
#include "camera.h"

enum { COUNT = 2048 };

typedef struct Data {
    const Observation *observations;
    const real (*seen)[2];
} Data;

#ifndef __CUDACC__
static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        const Observation *o = &d->observations[i];
        Vec x = sub(o->point, o->center), p;
        real square = dot(o->rotation, o->rotation);
        if (square == 0) {
            Vec turned = cross(o->rotation, x);
            p = (Vec){x.x + turned.x, x.y + turned.y, x.z + turned.z};
        } else {
            real angle = sqrt(square), cosine = cos(angle), sine = sin(angle);
            Vec axis = scale(1 / angle, o->rotation);
            p = sum3(scale(cosine, x), scale(sine, cross(axis, x)), scale(dot(axis, x) * (1 - cosine), axis));
        }
        real u = p.x / p.z, v = p.y / p.z, r = u * u + v * v;
        real l = 1 + o->distortion[0] * r + o->distortion[1] * r * r;
        real du = o->weight * (u * l * o->focal + o->principal[0] - d->seen[i][0]);
        real dv = o->weight * (v * l * o->focal + o->principal[1] - d->seen[i][1]),
             slack = 1 - o->weight * o->weight;
        values[i] = du * du + dv * dv + slack * slack;
    }
}
#endif

BY_HAND void item_gradient(const Observation *o, const real *seen, Observation *restrict out) {
    Turn t;
    Vec x = sub(o->point, o->center), p = turn(&t, o->rotation, x);
    real over_z = 1 / p.z, u = p.x * over_z, v = p.y * over_z, r = u * u + v * v;
    real k1 = o->distortion[0], k2 = o->distortion[1], l = 1 + k1 * r + k2 * r * r, fl = o->focal * l;
    real eu = u * fl + o->principal[0] - seen[0], ev = v * fl + o->principal[1] - seen[1];
    real w = o->weight, slack = 1 - w * w;

    real eu_bar = 2 * w * w * eu, ev_bar = 2 * w * w * ev, along = eu_bar * u + ev_bar * v,
         l_bar = along * o->focal;
    real r_bar = l_bar * (k1 + 2 * k2 * r), u_bar = eu_bar * fl + 2 * r_bar * u,
         v_bar = ev_bar * fl + 2 * r_bar * v;
    Vec p_bar = {u_bar * over_z, v_bar * over_z, -(u_bar * u + v_bar * v) * over_z}, rotation_bar, x_bar;
    turn_back(&t, o->rotation, x, p_bar, &rotation_bar, &x_bar);
    *out = (Observation){.rotation = rotation_bar,
                         .center = {-x_bar.x, -x_bar.y, -x_bar.z},
                         .focal = along * l,
                         .principal = {eu_bar, ev_bar},
                         .distortion = {l_bar * r, l_bar * r * r},
                         .point = x_bar,
                         .weight = 2 * w * (eu * eu + ev * ev) - 4 * w * slack};
}

#ifndef __CUDACC__
static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++)
        item_gradient(&d->observations[i], d->seen[i], (Observation *)(void *)gradients + i);
}

BY_ENZYME(COUNT, PARAMETERS, observations, seen)

int main(int argc, char **argv) {
    real *numbers = camera_numbers(COUNT), *seen = derivative_numbers(2 * COUNT, -1, 1);
    Data data = {(const Observation *)(const void *)numbers, (const real(*)[2])(const void *)seen};
    Derivative d = derivative_open((Problem){COUNT, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "items", numbers, sizeof(real) * PARAMETERS * COUNT);
    derivative_bind(&d, "seen", seen, sizeof(real) * 2 * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
#endif
