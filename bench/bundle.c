/* Bundle adjustment; the gradient of the squared error of an observation by camera, point and weight. */
#define REAL double
#include "derivative.h"

enum { COUNT = 2048, PARAMETERS = 15 };

typedef struct Vec {
    double x, y, z;
} Vec;

typedef struct Observation {
    Vec rotation, center;
    double focal, principal[2], distortion[2];
    Vec point;
    double weight;
} Observation;

typedef struct Data {
    const Observation *observations;
    const double (*seen)[2];
} Data;

BY_HAND double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
BY_HAND Vec sub(Vec a, Vec b) { return (Vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
BY_HAND Vec scale(double s, Vec a) { return (Vec){s * a.x, s * a.y, s * a.z}; }
BY_HAND Vec sum3(Vec a, Vec b, Vec c) { return (Vec){a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z}; }
BY_HAND Vec cross(Vec a, Vec b) {
    return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

#ifndef __CUDACC__
static void primal(const void *data, double *restrict values) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        const Observation *o = &d->observations[i];
        Vec x = sub(o->point, o->center), p;
        double square = dot(o->rotation, o->rotation);
        if (square == 0) {
            Vec turned = cross(o->rotation, x);
            p = (Vec){x.x + turned.x, x.y + turned.y, x.z + turned.z};
        } else {
            double angle = sqrt(square), cosine = cos(angle), sine = sin(angle);
            Vec axis = scale(1 / angle, o->rotation);
            p = sum3(scale(cosine, x), scale(sine, cross(axis, x)), scale(dot(axis, x) * (1 - cosine), axis));
        }
        double u = p.x / p.z, v = p.y / p.z, r = u * u + v * v;
        double l = 1 + o->distortion[0] * r + o->distortion[1] * r * r;
        double du = o->weight * (u * l * o->focal + o->principal[0] - d->seen[i][0]);
        double dv = o->weight * (v * l * o->focal + o->principal[1] - d->seen[i][1]),
               slack = 1 - o->weight * o->weight;
        values[i] = du * du + dv * dv + slack * slack;
    }
}
#endif

/* What the rotation does, and what its derivative needs of it. */
typedef struct Turn {
    Vec axis, side; /* side: axis x point */
    double angle, cosine, sine, along;
} Turn;

BY_HAND Vec turn(Turn *t, Vec rotation, Vec x) {
    double square = dot(rotation, rotation);
    t->angle = sqrt(square);
    if (square == 0) {
        t->side = cross(rotation, x);
        return (Vec){x.x + t->side.x, x.y + t->side.y, x.z + t->side.z};
    }
    t->cosine = cos(t->angle);
    t->sine = sin(t->angle);
    t->axis = scale(1 / t->angle, rotation);
    t->side = cross(t->axis, x);
    t->along = dot(t->axis, x);
    return sum3(scale(t->cosine, x), scale(t->sine, t->side), scale(t->along * (1 - t->cosine), t->axis));
}

BY_HAND void turn_back(const Turn *t, Vec rotation, Vec x, Vec p_bar, Vec *rotation_bar, Vec *x_bar) {
    if (t->angle == 0) {
        Vec back = cross(p_bar, rotation);
        *x_bar = (Vec){p_bar.x + back.x, p_bar.y + back.y, p_bar.z + back.z};
        *rotation_bar = cross(x, p_bar);
        return;
    }
    double spread = dot(p_bar, t->axis), along_bar = spread * (1 - t->cosine);
    *x_bar = sum3(scale(t->cosine, p_bar), scale(t->sine, cross(p_bar, t->axis)), scale(along_bar, t->axis));
    Vec axis_bar =
        sum3(scale(t->sine, cross(x, p_bar)), scale(t->along * (1 - t->cosine), p_bar), scale(along_bar, x));
    double cosine_bar = dot(p_bar, x) - spread * t->along, sine_bar = dot(p_bar, t->side);
    double angle_bar = t->cosine * sine_bar - t->sine * cosine_bar, over = 1 / t->angle;
    double radial = angle_bar - dot(t->axis, axis_bar) * over;
    *rotation_bar = (Vec){over * axis_bar.x + radial * t->axis.x, over * axis_bar.y + radial * t->axis.y,
                          over * axis_bar.z + radial * t->axis.z};
}

BY_HAND void item_gradient(const Observation *o, const double *seen, Observation *restrict out) {
    Turn t;
    Vec x = sub(o->point, o->center), p = turn(&t, o->rotation, x);
    double over_z = 1 / p.z, u = p.x * over_z, v = p.y * over_z, r = u * u + v * v;
    double k1 = o->distortion[0], k2 = o->distortion[1], l = 1 + k1 * r + k2 * r * r, fl = o->focal * l;
    double eu = u * fl + o->principal[0] - seen[0], ev = v * fl + o->principal[1] - seen[1];
    double w = o->weight, slack = 1 - w * w;

    double eu_bar = 2 * w * w * eu, ev_bar = 2 * w * w * ev, along = eu_bar * u + ev_bar * v,
           l_bar = along * o->focal;
    double r_bar = l_bar * (k1 + 2 * k2 * r), u_bar = eu_bar * fl + 2 * r_bar * u,
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
static void gradient(const void *data, double *restrict gradients) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++)
        item_gradient(&d->observations[i], d->seen[i], (Observation *)(void *)gradients + i);
}

int main(int argc, char **argv) {
    double *numbers = derivative_numbers(PARAMETERS * COUNT, -0.5, 0.5),
           *seen = derivative_numbers(2 * COUNT, -1, 1);
    for (int i = 0; i < COUNT; i++) {
        double *o = numbers + PARAMETERS * i;
        if (i % 64 == 0) o[0] = o[1] = o[2] = 0;
        o[6] += 1.5;
        o[13] += 4;
        o[14] += 1;
    }
    Data data = {(const Observation *)(const void *)numbers, (const double(*)[2])(const void *)seen};
    Derivative d =
        derivative_open((Problem){"bundle.slang", COUNT, PARAMETERS, primal, gradient, &data, 1e-9});
    derivative_bind(&d, "observations", numbers, sizeof(double) * PARAMETERS * COUNT);
    derivative_bind(&d, "seen", seen, sizeof(double) * 2 * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
#endif
