/* Bundle adjustment; both components of the error of an observation, and their Jacobian by camera, point and
 * weight. */
#include "camera.h"

enum { COUNT = 2048 };

typedef struct Data {
    const Observation *observations;
    const real (*seen)[2];
} Data;

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        const Observation *o = &d->observations[i];
        Turn t;
        Vec p = turn(&t, o->rotation, sub(o->point, o->center));
        real u = p.x / p.z, v = p.y / p.z, r = u * u + v * v;
        real l = 1 + o->distortion[0] * r + o->distortion[1] * r * r;
        values[2 * i] = o->weight * (u * l * o->focal + o->principal[0] - d->seen[i][0]);
        values[2 * i + 1] = o->weight * (v * l * o->focal + o->principal[1] - d->seen[i][1]);
    }
}

/* What both rows need of the point in the image. */
typedef struct Image {
    real u, v, r, l, over_z, error[2];
} Image;

BY_HAND void row(const Observation *o, const Turn *t, Vec x, const Image *at, int k,
                 Observation *restrict out) {
    real w = o->weight, k1 = o->distortion[0], k2 = o->distortion[1];
    real along = w * (k ? at->v : at->u), l_bar = along * o->focal, r_bar = l_bar * (k1 + 2 * k2 * at->r);
    real direct = w * o->focal * at->l;
    real u_bar = (k ? 0 : direct) + 2 * r_bar * at->u, v_bar = (k ? direct : 0) + 2 * r_bar * at->v;
    Vec p_bar = {u_bar * at->over_z, v_bar * at->over_z, -(u_bar * at->u + v_bar * at->v) * at->over_z};
    Vec rotation_bar, x_bar;
    turn_back(t, o->rotation, x, p_bar, &rotation_bar, &x_bar);
    *out = (Observation){.rotation = rotation_bar,
                         .center = {-x_bar.x, -x_bar.y, -x_bar.z},
                         .focal = along * at->l,
                         .principal = {k ? 0 : w, k ? w : 0},
                         .distortion = {l_bar * at->r, l_bar * at->r * at->r},
                         .point = x_bar,
                         .weight = at->error[k]};
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        const Observation *o = &d->observations[i];
        Observation *out = (Observation *)(void *)gradients + 2 * (ptrdiff_t)i;
        Turn t;
        Vec x = sub(o->point, o->center), p = turn(&t, o->rotation, x);
        Image at = {.over_z = 1 / p.z};
        at.u = p.x * at.over_z, at.v = p.y * at.over_z, at.r = at.u * at.u + at.v * at.v;
        at.l = 1 + o->distortion[0] * at.r + o->distortion[1] * at.r * at.r;
        at.error[0] = at.u * at.l * o->focal + o->principal[0] - d->seen[i][0];
        at.error[1] = at.v * at.l * o->focal + o->principal[1] - d->seen[i][1];
        for (int k = 0; k < 2; k++) row(o, &t, x, &at, k, &out[k]);
    }
}

#ifdef ENZYME
static void primal_of(const void *observations, const void *seen, real *restrict values) {
    Data data = {observations, seen};
    primal(&data, values);
}

static void gradient_by_enzyme(const void *data, real *restrict gradients) {
    static real values[2 * COUNT], seeds[2 * COUNT];
    static Observation rows[COUNT];
    const Data *d = data;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2 * COUNT; i++) seeds[i] = i % 2 == k;
        memset(rows, 0, sizeof rows);
        __enzyme_autodiff((void *)primal_of, enzyme_dup, (const void *)d->observations, (void *)rows,
                          enzyme_const, (const void *)d->seen, enzyme_dup, values, seeds);
        for (int i = 0; i < COUNT; i++)
            memcpy((Observation *)(void *)gradients + 2 * i + k, &rows[i], sizeof rows[i]);
    }
}
#endif

int main(int argc, char **argv) {
    real *numbers = camera_numbers(COUNT), *seen = derivative_numbers(2 * COUNT, -1, 1);
    Data data = {(const Observation *)(const void *)numbers, (const real(*)[2])(const void *)seen};
    Derivative d = derivative_open((Problem){2 * COUNT, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "observations", numbers, sizeof(real) * PARAMETERS * COUNT);
    derivative_bind(&d, "seen", seen, sizeof(real) * 2 * COUNT);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
