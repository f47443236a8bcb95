/* A damped pendulum over thousands of steps; the gradient of where it ends by its constants and its start.
 *
 * The way there keeps, for each evaluation of the acceleration, sine, cosine (computed together) and speed: all that the way back
 * needs. */
#include "derivative.h"

enum { COUNT = 16, STEPS = 4000, PARAMETERS = 4 };

typedef struct Pendulum {
    float stiffness, damping, angle, speed;
} Pendulum;

typedef struct Stage {
    float sine, cosine, speed;
} Stage;

static const float dt = 0.002f;

static inline float acceleration(const Pendulum *p, float x, float v) {
    return -p->stiffness * sinf(x) - p->damping * v;
}

static void primal(const void *data, float *restrict values) {
    const Pendulum *pendulums = data;
    for (int i = 0; i < COUNT; i++) {
        Pendulum p = pendulums[i];
        float x = p.angle, v = p.speed;
        for (int step = 0; step < STEPS; step++) {
            float v1 = v, a1 = acceleration(&p, x, v1);
            float v2 = v + 0.5f * dt * a1, a2 = acceleration(&p, x + 0.5f * dt * v1, v2);
            float v3 = v + 0.5f * dt * a2, a3 = acceleration(&p, x + 0.5f * dt * v2, v3);
            float v4 = v + dt * a3, a4 = acceleration(&p, x + dt * v3, v4);
            x += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
            v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
        }
        values[i] = x * x + v * v;
    }
}

static inline float keep(const Pendulum *p, float x, float v, Stage *stage) {
    sincosf(x, &stage->sine, &stage->cosine);
    stage->speed = v;
    return -p->stiffness * stage->sine - p->damping * v;
}

/* Of an acceleration: adds to the gradient and to the adjoint of the speed, returns the adjoint of the angle. */
static inline float back(const Pendulum *p, const Stage *stage, float a_bar, Pendulum *g, float *v_bar) {
    g->stiffness -= stage->sine * a_bar;
    g->damping -= stage->speed * a_bar;
    *v_bar -= p->damping * a_bar;
    return -p->stiffness * stage->cosine * a_bar;
}

static void gradient(const void *data, float *restrict gradients) {
    const Pendulum *pendulums = data;
    static Stage stages[STEPS][4];
    for (int i = 0; i < COUNT; i++) {
        Pendulum p = pendulums[i], g = {0};
        float x = p.angle, v = p.speed;
        for (int step = 0; step < STEPS; step++) {
            Stage *s = stages[step];
            float v1 = v, a1 = keep(&p, x, v1, &s[0]);
            float v2 = v + 0.5f * dt * a1, a2 = keep(&p, x + 0.5f * dt * v1, v2, &s[1]);
            float v3 = v + 0.5f * dt * a2, a3 = keep(&p, x + 0.5f * dt * v2, v3, &s[2]);
            float v4 = v + dt * a3, a4 = keep(&p, x + dt * v3, v4, &s[3]);
            x += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
            v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
        }
        float x_bar = 2 * x, v_bar = 2 * v;
        for (int step = STEPS - 1; step >= 0; step--) {
            const Stage *s = stages[step];
            float sixth_x = dt / 6 * x_bar, sixth_v = dt / 6 * v_bar;
            float v4_bar = sixth_x, x4_bar = back(&p, &s[3], sixth_v, &g, &v4_bar);
            float v3_bar = 2 * sixth_x + dt * x4_bar,
                  x3_bar = back(&p, &s[2], 2 * sixth_v + dt * v4_bar, &g, &v3_bar);
            float v2_bar = 2 * sixth_x + 0.5f * dt * x3_bar;
            float x2_bar = back(&p, &s[1], 2 * sixth_v + 0.5f * dt * v3_bar, &g, &v2_bar);
            float v1_bar = sixth_x + 0.5f * dt * x2_bar;
            float x1_bar = back(&p, &s[0], sixth_v + 0.5f * dt * v2_bar, &g, &v1_bar);
            x_bar += x4_bar + x3_bar + x2_bar + x1_bar;
            v_bar += v4_bar + v3_bar + v2_bar + v1_bar;
        }
        g.angle = x_bar;
        g.speed = v_bar;
        memcpy(gradients + PARAMETERS * i, &g, sizeof g);
    }
}

#ifdef ENZYME
static void gradient_by_enzyme(const void *data, float *restrict gradients) {
    static float values[COUNT], seeds[COUNT];
    for (int i = 0; i < COUNT; i++) seeds[i] = 1;
    memset(gradients, 0, sizeof(float) * PARAMETERS * COUNT);
    __enzyme_autodiff((void *)primal, enzyme_dup, data, (void *)gradients, enzyme_dup, values, seeds);
}
#endif

int main(int argc, char **argv) {
    float *pendulums = derivative_numbers(PARAMETERS * COUNT, 0.2f, 1);
    for (int i = 0; i < COUNT; i++) pendulums[PARAMETERS * i] *= 9, pendulums[PARAMETERS * i + 1] *= 0.3f;
    Derivative d =
        derivative_open((Problem){"ode.slang", COUNT, PARAMETERS, primal, gradient, pendulums, 1e-3});
    derivative_bind(&d, "pendulums", pendulums, sizeof(float) * PARAMETERS * COUNT);
    derivative_set(&d, "count", COUNT);
    derivative_set(&d, "steps", STEPS);
    return derivative_run(&d, argc, argv);
}
