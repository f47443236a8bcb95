/* Runs the kernel of c_kernel.slang, whose header is included by the command
 * line. */
#include <stdio.h>

int main(void) {
    float values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, sums[9] = {0};
    uint3 numbers[8] = {{0, 0, 0}};
    inputs = (Buffer_float){values, 8};
    gradients = (Buffer_float){sums, 5};
    ids = (Buffer_uint3){numbers, 8};
    float2 rows[2][2] = {{{0, 0}, {0, 0}}, {{0, 0}, {1, 0}}};
    matrices = (Buffer_float2_2){rows, 2};
    offset = 0.5f;
    descend(2, 1, 1, 0.9f);
    printf("%g %g %g\n", sums[0], sums[1], sums[4]);
    printf("%u %u %u, %u %u %u, %s\n", numbers[0].x, numbers[0].y, numbers[0].z, numbers[7].x, numbers[7].y,
           numbers[7].z, sums[5] == 0 ? "none" : "written");
    return 0;
}
