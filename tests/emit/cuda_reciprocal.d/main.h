/* What the kernel `add` has made of four vectors, of which one ends with a very small number, one with zero,
 * and one with a very large one. */
int main() {
    static slope::float4 given[4] = {
        {3, 6, 9, 1.5f}, {1e-39f, 1e-38f, 0, 1e-40f}, {1, 2, -1, 0}, {3e37f, 6e37f, 9e37f, 3e37f}};
    static float quotients[32];
    slope::given = {given, 4};
    slope::quotients = {quotients, 32};
    launch(slope::add, 1, 4);
    for (int i = 0; i < 4; i++) {
        const float *q = quotients + 8 * i;
        printf("%g %g %g %g %g %g %.4g\n", q[0], q[1], q[2], q[3], q[4], q[5], q[6]);
    }
}
