/* Who includes headers with halves: makes numbers of them, and halves of numbers. */
#include "half.h"
#include "next.h"
#include <math.h>
#include <stdio.h>

static void take_mean(void) {
    Texel texels[2] = {{{0, 0, 0}, {0, 0}}, {{0, 0, 0}, {0, 0}}};
    Buffer_Texel buffer = {texels, 2};
    slope_half first = 0;
    texels[0].color.x = slope_half_bits(0.5);
    texels[0].color.z = slope_half_bits(-3);
    texels[0].weight[0] = slope_half_bits(1);
    texels[1].color.y = slope_half_bits(4);
    texels[1].weight[1] = slope_half_bits(2);
    float half = mean(buffer, &first);
    printf("mean %g, first %g\n", half, slope_half_value(first));
}

static bool is_same(float a, float b) { return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b); }

static void look_at_all(void) {
    int differ = 0;
    for (int i = 0; i < 65536; i++) {
        slope_half bits = (slope_half)i;
        float value = slope_half_value(bits);
        if (isnan(value) ? !isnan(slope_half_value(slope_half_bits(value))) : slope_half_bits(value) != bits)
            differ++;
    }
    printf("65536 halves, %d differ\n", differ);
}

/* Between each half and the next: a quarter, the middle, and what is just below and above it. */
static void look_between(void) {
    int count = 0, differ = 0;
    for (int i = 0; i < 0x7c00; i++)
        for (int k = 0; k < 8; k++) {
            half2 here = {(slope_half)i, 0};
            double a = slope_half_value(here.x), b = i == 0x7bff ? 65536 : slope_half_value(next(here).x),
                   middle = (a + b) / 2,
                   x = k / 2 == 0   ? a + (b - a) / 4
                       : k / 2 == 1 ? middle
                                    : nextafter(middle, k / 2 == 2 ? a : b);
            if (k % 2) x = -x;
            differ += !is_same(slope_half_value(slope_half_bits(x)), rounded(x));
            count++;
        }
    printf("%d numbers, %d differ\n", count, differ);
}

int main(void) {
    take_mean();
    look_at_all();
    look_between();
    return 0;
}
