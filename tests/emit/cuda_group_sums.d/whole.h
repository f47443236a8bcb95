/* What the kernel `add` has added to `gradient`, against plain sums: by whole warps, by lanes beside each
 * other, by others. */
int main() {
    enum { GROUPS = 2, SIZE = 128, COUNT = 200 };
    static const unsigned lanes[] = {~0u, 0x0ffffff0u, 0x04030201u};
    for (unsigned active : lanes) {
        static float sums[COUNT + 400], expected[COUNT + 400];
        int wrong = 0;
        memset(sums, 0, sizeof sums);
        memset(expected, 0, sizeof expected);
        warp_lanes = slope::lanes = active;
        slope::gradient = {sums, COUNT};
        launch(slope::add, GROUPS, SIZE);
        for (unsigned id = 0; id < GROUPS * SIZE; id++) {
            const unsigned i = id % SIZE;
            const float x = i % 4;
            if (!(active >> i % 32 & 1)) continue;
            expected[30] += x, expected[29] += 1;
            for (int k = 0; k < 13; k++) expected[k] += x * k;
            for (int k = 0; k < 9; k++) expected[28 - k] += x + k;
            for (int k = 0; k < 3; k++) expected[13 + id / SIZE + k] += 1;
            expected[18 + i % 2] += 1;
            for (int k = 0; k < 2; k++) expected[31 + k] += 1;
            for (int k = 0; k < 5; k++) expected[33 + i + k] += x + k;
            for (int k = 0; k < 3; k++) expected[33 + id + 2 * k] += 1;
            for (int k = 0; k < 2; k++) expected[33 + i / 2 + k] += 1;
            for (int k = 0; k < 2; k++) expected[120 + i / 32 * 2 + k] += x;
        }
        for (int i = 0; i < COUNT + 400; i++) wrong += sums[i] != (i < COUNT ? expected[i] : 0);
        printf("%d wrong\n", wrong);
    }
}
