/* A damped pendulum over thousands of steps; the gradient of where it ends by its constants and its start.
 *
 * The way there keeps, for each evaluation of the acceleration, sine, cosine (computed together) and speed:
 * all that the way back needs. */
#include "derivative.h"

enum { COUNT = 16, STEPS = 4000, PARAMETERS = 4 };

typedef struct Pendulum {
    real stiffness, damping, angle, speed;
} Pendulum;

typedef struct Stage {
    real sine, cosine, speed;
} Stage;

static const real dt = R(0.002);

static inline real acceleration(const Pendulum *p, real x, real v) {
    return -p->stiffness * sin(x) - p->damping * v;
}

static void primal(const void *data, real *restrict values) {
    const Pendulum *pendulums = data;
    for (int i = 0; i < COUNT; i++) {
        Pendulum p = pendulums[i];
        real x = p.angle, v = p.speed;
        for (int step = 0; step < STEPS; step++) {
            real v1 = v, a1 = acceleration(&p, x, v1);
            real v2 = v + 0.5f * dt * a1, a2 = acceleration(&p, x + 0.5f * dt * v1, v2);
            real v3 = v + 0.5f * dt * a2, a3 = acceleration(&p, x + 0.5f * dt * v2, v3);
            real v4 = v + dt * a3, a4 = acceleration(&p, x + dt * v3, v4);
            x += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
            v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
        }
        values[i] = x * x + v * v;
    }
}

static inline real keep(const Pendulum *p, real x, real v, Stage *stage) {
    sine_and_cosine(x, &stage->sine, &stage->cosine);
    stage->speed = v;
    return -p->stiffness * stage->sine - p->damping * v;
}

/* Of an acceleration: adds to the gradient and to the adjoint of the speed, returns the adjoint of the
 * angle. */
static inline real back(const Pendulum *p, const Stage *stage, real a_bar, Pendulum *g, real *v_bar) {
    g->stiffness -= stage->sine * a_bar;
    g->damping -= stage->speed * a_bar;
    *v_bar -= p->damping * a_bar;
    return -p->stiffness * stage->cosine * a_bar;
}

static void gradient(const void *data, real *restrict gradients) {
    const Pendulum *pendulums = data;
    static Stage stages[STEPS][4];
    for (int i = 0; i < COUNT; i++) {
        Pendulum p = pendulums[i], g = {0};
        real x = p.angle, v = p.speed;
        for (int step = 0; step < STEPS; step++) {
            Stage *s = stages[step];
            real v1 = v, a1 = keep(&p, x, v1, &s[0]);
            real v2 = v + 0.5f * dt * a1, a2 = keep(&p, x + 0.5f * dt * v1, v2, &s[1]);
            real v3 = v + 0.5f * dt * a2, a3 = keep(&p, x + 0.5f * dt * v2, v3, &s[2]);
            real v4 = v + dt * a3, a4 = keep(&p, x + dt * v3, v4, &s[3]);
            x += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
            v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
        }
        real x_bar = 2 * x, v_bar = 2 * v;
        for (int step = STEPS - 1; step >= 0; step--) {
            const Stage *s = stages[step];
            real sixth_x = dt / 6 * x_bar, sixth_v = dt / 6 * v_bar;
            real v4_bar = sixth_x, x4_bar = back(&p, &s[3], sixth_v, &g, &v4_bar);
            real v3_bar = 2 * sixth_x + dt * x4_bar,
                 x3_bar = back(&p, &s[2], 2 * sixth_v + dt * v4_bar, &g, &v3_bar);
            real v2_bar = 2 * sixth_x + 0.5f * dt * x3_bar;
            real x2_bar = back(&p, &s[1], 2 * sixth_v + 0.5f * dt * v3_bar, &g, &v2_bar);
            real v1_bar = sixth_x + 0.5f * dt * x2_bar;
            real x1_bar = back(&p, &s[0], sixth_v + 0.5f * dt * v2_bar, &g, &v1_bar);
            x_bar += x4_bar + x3_bar + x2_bar + x1_bar;
            v_bar += v4_bar + v3_bar + v2_bar + v1_bar;
        }
        g.angle = x_bar;
        g.speed = v_bar;
        memcpy(gradients + PARAMETERS * i, &g, sizeof g);
    }
}

#ifdef ENZYME
static void gradient_by_enzyme(const void *data, real *restrict gradients) {
    static real values[COUNT], seeds[COUNT];
    for (int i = 0; i < COUNT; i++) seeds[i] = 1;
    memset(gradients, 0, sizeof(real) * PARAMETERS * COUNT);
    __enzyme_autodiff((void *)primal, enzyme_dup, data, (void *)gradients, enzyme_dup, values, seeds);
}
#endif

int main(int argc, char **argv) {
    real *pendulums = derivative_numbers(PARAMETERS * COUNT, 0.2f, 1);
    for (int i = 0; i < COUNT; i++) pendulums[PARAMETERS * i] *= 9, pendulums[PARAMETERS * i + 1] *= 0.3f;
    Derivative d = derivative_open((Problem){COUNT, PARAMETERS, primal, gradient, pendulums, 1e-3});
    derivative_bind(&d, "items", pendulums, sizeof(real) * PARAMETERS * COUNT);
    derivative_set(&d, "count", COUNT);
    derivative_set(&d, "steps", STEPS);
    return derivative_run(&d, argc, argv);
}
