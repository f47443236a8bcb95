/* What the kernel `add` has made, against a loop. The samples end before the threads do. */
enum { THREADS = 384, SAMPLES = 300 };
static slope::Sample samples[SAMPLES + 1], others[THREADS];
static float gradient[403], expected[403], weights[3] = {1, 2, 4};

static bool is_sample(const slope::Sample &s, unsigned id) {
    const float x = (float)id,
                kept[3] = {(float)((3 - id % 3) % 3), (float)((4 - id % 3) % 3), (float)((5 - id % 3) % 3)};
    return s.material.base.x == x && s.material.base.y == x + 1 && s.material.base.z == x + 2 &&
           (s.material.roughness == kept[0] || s.material.roughness == 9) && s.at[0] == kept[1] &&
           s.at[1] == kept[2];
}

int main() {
    int wrong = 0;
    slope::samples = {samples, SAMPLES};
    slope::others = {others, THREADS};
    slope::gradient = {gradient, 403};
    slope::weights = {weights, 3};
    launch(slope::add, THREADS / 128, 128);
    for (unsigned id = 0; id < THREADS; id++) {
        for (unsigned k = 0; k < 3; k++)
            expected[id + k] += weights[k] * (float)(id + 1), expected[400 + k] += weights[k];
        if (id < SAMPLES) wrong += !is_sample(samples[id], id);
        wrong += !is_sample(others[id * 7 % THREADS], id);
    }
    for (int i = 0; i < 403; i++) wrong += gradient[i] != expected[i];
    wrong += samples[SAMPLES].material.base.x != 0;
    printf("%d wrong\n", wrong);
}
