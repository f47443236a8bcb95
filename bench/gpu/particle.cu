/* Particles in a field that they share. By hand, a thread keeps position and velocity before each step and computes the forces again. */
#include "bench.h"

namespace hand {
enum { STEPS = 256 };
static const float dt = 0.01f;

struct Field {
    float at[4][3], drag;
};

struct State {
    float x[3], v[3];
};

static __global__ void __launch_bounds__(GROUP) item(Field field, const State *starts, float *total, int count) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    State states[STEPS], now = {};
    float mine[13] = {0};
    if (id < count) now = starts[id];
    for (int s = 0; s < STEPS; s++) {
        float force[3];
        states[s] = now;
        for (int c = 0; c < 3; c++) force[c] = -field.drag * now.v[c];
        for (int i = 0; i < 4; i++) {
            const float d[3] = {field.at[i][0] - now.x[0], field.at[i][1] - now.x[1], field.at[i][2] - now.x[2]};
            const float over = 1 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.1f);
            for (int c = 0; c < 3; c++) force[c] += d[c] * over;
        }
        for (int c = 0; c < 3; c++) now.v[c] += dt * force[c], now.x[c] += dt * now.v[c];
    }
    float x_bar[3], v_bar[3] = {0};
    for (int c = 0; c < 3; c++) x_bar[c] = id < count ? 2 * now.x[c] : 0;
    for (int s = STEPS - 1; s >= 0; s--) {
        const State before = states[s];
        float f_bar[3];
        for (int c = 0; c < 3; c++) {
            v_bar[c] += dt * x_bar[c];
            f_bar[c] = dt * v_bar[c];
            mine[12] -= f_bar[c] * before.v[c];
            v_bar[c] -= field.drag * f_bar[c];
        }
        for (int i = 0; i < 4; i++) {
            const float d[3] = {field.at[i][0] - before.x[0], field.at[i][1] - before.x[1], field.at[i][2] - before.x[2]};
            const float over = 1 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.1f);
            const float along = 2 * over * over * (f_bar[0] * d[0] + f_bar[1] * d[1] + f_bar[2] * d[2]);
            for (int c = 0; c < 3; c++) {
                const float d_bar = over * f_bar[c] - along * d[c];
                mine[3 * i + c] += d_bar;
                x_bar[c] -= d_bar;
            }
        }
    }
    add_up(mine, total);
}
} // namespace hand

int main() {
    const int count = 1 << 18;
    hand::Field field = {{}, 0.2f};
    const std::vector<float> at = numbers<float>(12, -2, 2);
    std::copy(at.begin(), at.end(), &field.at[0][0]);
    Memory<float> starts(numbers<float>(6 * count, -1, 1)), total(13);
    bind(slope::starts_set, starts);
    bind(slope::total_set, total);
    check(slope::field_set((const slope::Field *)&field, 0));
    check(slope::count_set(&count, 0));
    return compare<float>(
        "particle", count, total, 13, [&] { slope::item_launch(groups(count), 0); },
        [&] { hand::item<<<groups(count), GROUP>>>(field, (const hand::State *)starts.data, total.data, count); });
}
