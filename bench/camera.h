/* A camera with radial distortion that sees a point, for bundle.c and residual.c; rotations, and how they are
 * differentiated by hand. */
#ifndef BENCH_CAMERA_H
#define BENCH_CAMERA_H

#include "derivative.h"

enum { PARAMETERS = 15 };

typedef struct Vec {
    real x, y, z;
} Vec;

typedef struct Observation {
    Vec rotation, center;
    real focal, principal[2], distortion[2];
    Vec point;
    real weight;
} Observation;

BY_HAND real dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
BY_HAND Vec sub(Vec a, Vec b) { return (Vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
BY_HAND Vec scale(real s, Vec a) { return (Vec){s * a.x, s * a.y, s * a.z}; }
BY_HAND Vec sum3(Vec a, Vec b, Vec c) { return (Vec){a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z}; }
BY_HAND Vec cross(Vec a, Vec b) {
    return (Vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* What the rotation does, and what its derivative needs of it. */
typedef struct Turn {
    Vec axis, side; /* side: axis x point */
    real angle, cosine, sine, along;
} Turn;

BY_HAND Vec turn(Turn *t, Vec rotation, Vec x) {
    real square = dot(rotation, rotation);
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
    real spread = dot(p_bar, t->axis), along_bar = spread * (1 - t->cosine);
    *x_bar = sum3(scale(t->cosine, p_bar), scale(t->sine, cross(p_bar, t->axis)), scale(along_bar, t->axis));
    Vec axis_bar =
        sum3(scale(t->sine, cross(x, p_bar)), scale(t->along * (1 - t->cosine), p_bar), scale(along_bar, x));
    real cosine_bar = dot(p_bar, x) - spread * t->along, sine_bar = dot(p_bar, t->side);
    real angle_bar = t->cosine * sine_bar - t->sine * cosine_bar, over = 1 / t->angle;
    real radial = angle_bar - dot(t->axis, axis_bar) * over;
    *rotation_bar = (Vec){over * axis_bar.x + radial * t->axis.x, over * axis_bar.y + radial * t->axis.y,
                          over * axis_bar.z + radial * t->axis.z};
}

#ifndef __CUDACC__
/* Observations; some of cameras that are not turned. */
static inline real *camera_numbers(int count) {
    real *numbers = derivative_numbers(PARAMETERS * count, -0.5, 0.5);
    for (int i = 0; i < count; i++) {
        real *o = numbers + PARAMETERS * i;
        if (i % 64 == 0) o[0] = o[1] = o[2] = 0;
        o[6] += 1.5;
        o[13] += 4;
        o[14] += 1;
    }
    return numbers;
}
#endif

#endif
