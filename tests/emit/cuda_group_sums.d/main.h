/* What the kernel `add` has added, against plain sums. */
static float sums[4000], kept[4], expected[4000];

int main() {
    enum { GROUPS = 6, SIZE = 128 };
    slope::gradient = {sums, 4000};
    slope::kept = {kept, 4};
    launch(slope::add, GROUPS, SIZE);
    for (unsigned id = 0; id < GROUPS * SIZE; id++) {
        const unsigned i = id % SIZE;
        expected[i % 3] += 1;
        if (i > 100) expected[3 + i % 4] += 0.5f;
        expected[8 + id * 37 % 3000] += 2;
        if (i != 7) expected[7] += 1;
    }
    int wrong = 0;
    for (int i = 0; i < 4000; i++) wrong += sums[i] != expected[i];
    printf("%d wrong, %g %g %g\n", wrong, sums[0], sums[7], kept[3]);
}
