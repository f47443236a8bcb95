/* What the kernels `add`, `weigh` and `multiply` have made, against loops. There are more bodies than the
 * loops go through, and no multiple of 32 of them. */
enum { THREADS = 64, COUNT = 70, FIRST = 5, ROOM = 80 };
static slope::Body bodies[ROOM], moving[ROOM];
static slope::Light lights[ROOM];
static float sums[THREADS], matrix[6 * COUNT], weights[90], steps[THREADS + 8];
static double fine[COUNT];

static float expected(int id) {
    float sum = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += bodies[i].mass * (bodies[i].position.x - (float)id) + 7 * moving[i].mass;
        if (i >= FIRST && i % 3 != id % 3) sum += 2 * (lights[i].color.y + lights[i].at.x * lights[i].at.y);
        if (i < COUNT - id % 2) sum += 3 * (bodies[i].mass + bodies[i].position.z);
        if (i <= id) sum += 5 * bodies[i].mass;
    }
    return sum;
}

static float weighed(int id) {
    float sum = 0;
    for (int i = 0; i < 96; i++) sum += (i < 90 ? weights[i] : 0) * (float)(id + i % 8) + steps[i % 8];
    for (int i = 0; i < 32; i++) sum += lights[i + 45].at.y * lights[i + 46].color.y + moving[i].mass;
    return sum;
}

static float multiplied(int id, int width) {
    float sum = 0;
    for (int k = 0; k < COUNT; k++) sum += (float)fine[k];
    for (int k = FIRST; k < COUNT; k++)
        sum += matrix[id / width * COUNT + k] * (float)(k - id % 3) + matrix[id + k];
    return sum;
}

int main() {
    int wrong = 0;
    for (int i = 0; i < ROOM; i++) {
        bodies[i] = {{(float)i, 1, (float)(i % 7)}, (float)(i % 5)};
        moving[i].mass = (float)(i % 4);
        lights[i] = {{1, (float)(i % 9), 3}, {(float)(i % 6), (float)(i % 8)}};
    }
    slope::bodies = {bodies, ROOM};
    slope::lights = {lights, ROOM};
    slope::moving = {moving, ROOM};
    slope::sums = {sums, THREADS};
    slope::first = FIRST;
    slope::count = COUNT;
    launch(slope::add, 1, THREADS);
    for (int id = 0; id < THREADS; id++) wrong += sums[id] != expected(id);
    for (int i = 0; i < 90; i++) weights[i] = (float)(i % 11);
    for (int i = 0; i < 8; i++) steps[i] = (float)i;
    slope::weights = {weights, 90};
    slope::steps = {steps, THREADS + 8};
    launch(slope::weigh, 1, THREADS);
    for (int id = 0; id < THREADS; id++) wrong += sums[id] != (id < 50 ? weighed(id) : expected(id));
    for (int i = 0; i < 6 * COUNT; i++) matrix[i] = (float)(i % 13);
    for (int i = 0; i < COUNT; i++) fine[i] = i % 5;
    slope::fine = {fine, COUNT};
    slope::matrix = {matrix, 6 * COUNT};
    for (int width = 32; width > 10; width -= 20) { /* a row for each warp; several in one */
        slope::width = width;
        launch(slope::multiply, 1, THREADS);
        for (int id = 0; id < THREADS; id++) wrong += sums[id] != multiplied(id, width);
    }
    printf("%d wrong\n", wrong);
}
