/* What the kernel `add` has made, against a loop; doubles, since floats would lose a part of it. */
enum { THREADS = 256, NUMBERS = 9 };
static double gradient[NUMBERS], expected[NUMBERS];

int main() {
    int wrong = 0;
    slope::gradient = {gradient, NUMBERS};
    launch(slope::add, THREADS / 128, 128);
    for (int id = 0; id < THREADS; id++) {
        for (int k = 0; k < 5; k++) expected[k] += (id + 0.1) * k;
        expected[5 + id % 4] += 1;
    }
    for (int i = 0; i < NUMBERS; i++) {
        const double error = gradient[i] - expected[i];
        wrong += !(error < 1e-9 && error > -1e-9);
    }
    printf("%d wrong\n", wrong);
}
