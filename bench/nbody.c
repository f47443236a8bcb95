/* The accelerations of bodies that attract each other. */
#include "bench.h"

enum { COUNT = 2048, GROUP = 64 };

typedef struct Body {
    float x, y, z, mass;
} Body;

static __attribute__((noinline)) void attract(const Body *bodies, float *accelerations, int count) {
    for (int id = 0; id < count; id++) {
        Body here = bodies[id];
        float x = 0, y = 0, z = 0;
        for (int i = 0; i < count; i++) {
            float dx = bodies[i].x - here.x, dy = bodies[i].y - here.y, dz = bodies[i].z - here.z;
            float square = dx * dx + dy * dy + dz * dz + 0.01f;
            float scale = bodies[i].mass / (square * sqrtf(square));
            x += dx * scale;
            y += dy * scale;
            z += dz * scale;
        }
        accelerations[3 * id] = x;
        accelerations[3 * id + 1] = y;
        accelerations[3 * id + 2] = z;
    }
}

int main(void) {
    int count = COUNT;
    float *bodies = bench_numbers(4 * COUNT), *found = bench_numbers(3 * COUNT),
          *expected = bench_numbers(3 * COUNT);
    Bench bench = bench_open("nbody.slang");
    bench_bind(&bench, "bodies", bodies, 4 * COUNT);
    bench_bind(&bench, "accelerations", found, 3 * COUNT);
    require(bench.session, slope_set_uniform(bench.program, "count", &count, sizeof count));
    double slope = bench_dispatch(&bench, COUNT / GROUP), c = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        double start = now_milliseconds();
        attract((const Body *)(const void *)bodies, expected, count);
        c = fmin(c, now_milliseconds() - start);
    }
    bench_report(slope, c, found, expected, 3 * COUNT);
    slope_session_free(bench.session);
    free(bodies), free(found), free(expected);
    return 0;
}
