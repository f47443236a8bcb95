/* Pendulums over a number of steps that is known at run time only. By hand, angle and speed before each step go to memory of the device,
 * those of neighbours side by side, and the stages of a step are computed again. */
#include "bench.h"

namespace hand {
static const float dt = 0.002f;

struct Pendulum {
    float stiffness, damping, angle, speed;
};

struct Stage {
    float sine, cosine, speed;
};

static __device__ float keep(const Pendulum &p, float x, float v, Stage &stage) {
    sincosf(x, &stage.sine, &stage.cosine);
    stage.speed = v;
    return -p.stiffness * stage.sine - p.damping * v;
}

static __device__ float back(const Pendulum &p, const Stage &stage, float a_bar, Pendulum &g, float &v_bar) {
    g.stiffness -= stage.sine * a_bar;
    g.damping -= stage.speed * a_bar;
    v_bar -= p.damping * a_bar;
    return -p.stiffness * stage.cosine * a_bar;
}

static __device__ void step(const Pendulum &p, float &x, float &v, Stage (&s)[4]) {
    const float v1 = v, a1 = keep(p, x, v1, s[0]);
    const float v2 = v + 0.5f * dt * a1, a2 = keep(p, x + 0.5f * dt * v1, v2, s[1]);
    const float v3 = v + 0.5f * dt * a2, a3 = keep(p, x + 0.5f * dt * v2, v3, s[2]);
    const float v4 = v + dt * a3, a4 = keep(p, x + dt * v3, v4, s[3]);
    x += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
    v += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
}

static __global__ void __launch_bounds__(GROUP) item(const Pendulum *pendulums, Pendulum *gradients, float2 *states, int count, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Pendulum p = pendulums[i];
    Pendulum g = {};
    Stage s[4];
    float x = p.angle, v = p.speed;
    for (int n = 0; n < steps; n++) {
        states[(size_t)n * count + i] = make_float2(x, v);
        step(p, x, v, s);
    }
    float x_bar = 2 * x, v_bar = 2 * v;
    for (int n = steps - 1; n >= 0; n--) {
        const float2 state = states[(size_t)n * count + i];
        x = state.x, v = state.y;
        step(p, x, v, s);
        const float sixth_x = dt / 6 * x_bar, sixth_v = dt / 6 * v_bar;
        float v4_bar = sixth_x, x4_bar = back(p, s[3], sixth_v, g, v4_bar);
        float v3_bar = 2 * sixth_x + dt * x4_bar, x3_bar = back(p, s[2], 2 * sixth_v + dt * v4_bar, g, v3_bar);
        float v2_bar = 2 * sixth_x + 0.5f * dt * x3_bar, x2_bar = back(p, s[1], 2 * sixth_v + 0.5f * dt * v3_bar, g, v2_bar);
        float v1_bar = sixth_x + 0.5f * dt * x2_bar, x1_bar = back(p, s[0], sixth_v + 0.5f * dt * v2_bar, g, v1_bar);
        x_bar += x4_bar + x3_bar + x2_bar + x1_bar;
        v_bar += v4_bar + v3_bar + v2_bar + v1_bar;
    }
    g.angle = x_bar;
    g.speed = v_bar;
    gradients[i] = g;
}
} // namespace hand

int main() {
    const int count = 1 << 16, steps = 1000;
    std::vector<float> data = numbers<float>(4 * count, 0.2f, 1);
    for (int i = 0; i < count; i++) data[4 * i] *= 9, data[4 * i + 1] *= 0.3f;
    Memory<float> pendulums(data), gradients(4 * count), states((size_t)2 * count * steps), room((size_t)6 * count * steps);
    bind(slope::items_set, pendulums);
    bind(slope::gradients_set, gradients);
    check(slope::count_set(&count, 0));
    check(slope::slope_room_set(room.data, room.count * sizeof(float), 0));
    check(slope::steps_set(&steps, 0));
    return compare<float>(
        "ode", count, gradients, 4, [&] { slope::item_launch(groups(count), 0); },
        [&] {
            hand::item<<<groups(count), GROUP>>>((const hand::Pendulum *)pendulums.data, (hand::Pendulum *)gradients.data,
                                                 (float2 *)states.data, count, steps);
        });
}
