/* Particles in a field of attractors. The gradient keeps position and velocity before each step, and computes
 * the forces again. */
#include "derivative.h"

enum { COUNT = 64, STEPS = 256, ATTRACTORS = 4 };
static const real dt = R(0.01);

typedef struct Particle {
    real position[3], velocity[3], drag, mass;
} Particle;

enum { PARAMETERS = sizeof(Particle) / sizeof(real) };

typedef struct Data {
    const Particle *particles;
    const real (*attractors)[3];
} Data;

static inline real square(const real *a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }

static inline void add_forces(const Data *d, const real *x, real *force) {
    for (int i = 0; i < ATTRACTORS; i++) {
        real way[3];
        for (int c = 0; c < 3; c++) way[c] = d->attractors[i][c] - x[c];
        real over = 1 / (square(way) + R(0.1));
        for (int c = 0; c < 3; c++) force[c] += way[c] * over;
    }
}

static inline void step(const Data *d, const Particle *p, real *x, real *v) {
    real force[3], over = 1 / p->mass;
    for (int c = 0; c < 3; c++) force[c] = -p->drag * v[c];
    add_forces(d, x, force);
    for (int c = 0; c < 3; c++) {
        v[c] += dt * (force[c] * over);
        x[c] += dt * v[c];
    }
}

static void primal(const void *data, real *restrict values) {
    const Data *d = data;
    for (int i = 0; i < COUNT; i++) {
        Particle p = d->particles[i];
        for (int s = 0; s < STEPS; s++) step(d, &d->particles[i], p.position, p.velocity);
        values[i] = square(p.position);
    }
}

typedef struct State {
    real x[3], v[3];
} State;

/* Of a step that began at `s`: what is known behind it becomes what is known before. */
static inline void back(const Data *d, const Particle *p, const State *s, Particle *g) {
    real force[3], force_bar[3], over = 1 / p->mass, along = 0, *x_bar = g->position, *v_bar = g->velocity;
    for (int c = 0; c < 3; c++) force[c] = -p->drag * s->v[c];
    add_forces(d, s->x, force);
    for (int c = 0; c < 3; c++) {
        v_bar[c] += dt * x_bar[c];
        force_bar[c] = dt * v_bar[c] * over;
        along += force_bar[c] * force[c];
        g->drag -= force_bar[c] * s->v[c];
        v_bar[c] -= p->drag * force_bar[c];
    }
    g->mass -= along * over;
    for (int i = 0; i < ATTRACTORS; i++) {
        real way[3], towards = 0;
        for (int c = 0; c < 3; c++) way[c] = d->attractors[i][c] - s->x[c];
        real r = 1 / (square(way) + R(0.1));
        for (int c = 0; c < 3; c++) towards += force_bar[c] * way[c];
        for (int c = 0; c < 3; c++) x_bar[c] -= r * force_bar[c] - 2 * towards * r * r * way[c];
    }
}

static void gradient(const void *data, real *restrict gradients) {
    const Data *d = data;
    static State states[STEPS];
    for (int i = 0; i < COUNT; i++) {
        const Particle *p = &d->particles[i];
        Particle g = {0};
        State now;
        memcpy(now.x, p->position, sizeof now.x);
        memcpy(now.v, p->velocity, sizeof now.v);
        for (int s = 0; s < STEPS; s++) {
            states[s] = now;
            step(d, p, now.x, now.v);
        }
        for (int c = 0; c < 3; c++) g.position[c] = 2 * now.x[c];
        for (int s = STEPS - 1; s >= 0; s--) back(d, p, &states[s], &g);
        memcpy(gradients + PARAMETERS * i, &g, sizeof g);
    }
}

BY_ENZYME(COUNT, PARAMETERS, particles, attractors)

int main(int argc, char **argv) {
    real *particles = derivative_numbers(PARAMETERS * COUNT, -1, 1),
         *attractors = derivative_numbers(3 * ATTRACTORS, -2, 2);
    for (int i = 0; i < COUNT; i++) {
        real *p = particles + PARAMETERS * i;
        p[6] = 0.2f + R(0.1) * p[6], p[7] = 1.5f + 0.5f * p[7];
    }
    Data data = {(const Particle *)(const void *)particles, (const real(*)[3])(const void *)attractors};
    Derivative d = derivative_open((Problem){COUNT, PARAMETERS, primal, gradient, &data, 1e-3});
    derivative_bind(&d, "items", particles, sizeof(Particle) * COUNT);
    derivative_bind(&d, "attractors", attractors, sizeof(real) * 3 * ATTRACTORS);
    derivative_set(&d, "count", COUNT);
    return derivative_run(&d, argc, argv);
}
