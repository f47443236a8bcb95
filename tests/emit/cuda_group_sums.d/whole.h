/* What a kernel without parameters has added to `gradient`, after three groups. */
int main() {
    static float sums[32];
    slope::gradient = {sums, 32};
    launch(slope::add, 3, 128);
    for (int i = 0; i < 32; i++) printf("%g%c", sums[i], i % 16 == 15 ? '\n' : ' ');
}
