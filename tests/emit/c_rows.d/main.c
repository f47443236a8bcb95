/* In memory of their own, and with a result that is one element further on in what is read. */
#include <math.h>
#include <stdio.h>

static Five memory[16];
static float3 ones[16];
static float norm_of[16];

static void fill(void) {
    for (int i = 0; i < 16; i++) {
        Five f = {{1, 2}, {3, 4}, 5};
        memory[i] = f;
        ones[i].x = ones[i].y = ones[i].z = 1;
    }
}

static void bind(Five *data, int rounds) {
    fill();
    to.data = data;
    to.count = sums.count = weights.count = from.count = 16;
    from.data = memory;
    weights.data = ones;
    sums.data = norm_of;
    count = rounds;
}

/* In units in the last place of a float. */
static double off(float is, double should) {
    int exponent;
    frexp(should, &exponent);
    return fabs(is - should) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static bool are_turned(float x, float sine, float cosine) {
    double s = sin((double)x), c = cos((double)x), most = SLOPE_OWN_SINES ? 1.6 : 4;
    return isnan(s) ? isnan(sine) && isnan(cosine) : off(sine, s) < most && off(cosine, c) < most;
}

/* Numbers of all sizes, among them some that are very near to multiples of pi / 2, both zeros, infinities and
 * NaN. */
static int check_turns(void) {
    static float x[4096], sine[4096], cosine[4096], tried[4096];
    static uint32_t is_large[4096];
    for (uint32_t i = 0; i < 4096; i++) {
        uint32_t bits = i < 4094 ? i * 1048573u : i == 4094 ? 0x6f79be45u : 0x80000000u;
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int i = 0; i < 1024; i++) x[2 * i] = 1.57079637f * floorf(exp2f((float)i / 60));
    x[4093] = INFINITY;
    for (int i = 0; i < 4096; i++) {
        sine[i] = slope_sin_float(x[i]);
        cosine[i] = slope_cos_float(x[i]);
    }
    for (int i = 0; i < 4096; i++)
        if (!are_turned(x[i], sine[i], cosine[i])) return 1;
    for (int i = 0; i < 4096; i++) {
        sine[i] = slope_sin_tried_float(x[i], true, &is_large[i]);
        tried[i] = slope_sin_tried_float(x[i], false, &is_large[i]);
        cosine[i] = slope_cos_tried_float(x[i], false, &is_large[i]);
    }
    for (int i = 0; i < 4096; i++) {
        if (is_large[i] && fabsf(x[i]) < 1e5f) return 1;
        if (!is_large[i] && !are_turned(x[i], tried[i], cosine[i])) return 1;
        if (!are_turned(x[i], sine[i], cosf(x[i]))) return 1;
    }
    return !signbit(sine[4095]) || !signbit(tried[4095]);
}

/* Numbers that are large beside others. */
static int check_large_turns(void) {
    static Five turned_to[16];
    const float large[] = {1e6f, -1e12f, 1e13f, 1e30f, -3e38f, INFINITY, NAN};
    bind(turned_to, 16);
    for (int i = 0; i < 7; i++) memory[2 * i + 1].turn = large[i];
    spun(1, 1, 1); /* by (1, 2) */
    for (int i = 0; i < 16; i++) {
        const double x = (double)memory[i].turn, one = cos(x) - 2 * sin(x), two = sin(x) + 2 * cos(x);
        const float *is = &turned_to[i].at.x;
        if (isnan(one) ? !isnan(is[0]) : !(fabs(is[0] - one) < 1e-6 && fabs(is[1] - two) < 1e-6)) return 1;
        turned_to[i].turn = memory[i].turn;
    }
    wound(1, 1, 1);
    for (int i = 0; i < 16; i++) {
        const double sine = sin((double)memory[i].turn);
        if (isnan(sine) ? !isnan(turned_to[i].turn) : !(off(turned_to[i].turn, sine) < 1.6)) return 1;
        turned_to[i].turn = 0;
    }
    swung(1, 1, 1);
    for (int i = 0; i < 16; i++) {
        const double cosine = cos((double)memory[i].turn);
        if (isnan(cosine) ? !isnan(turned_to[i].turn) : !(off(turned_to[i].turn, cosine) < 1.6)) return 1;
    }
    return 0;
}

/* In units in the last place of a double. */
static long double off_double(double is, long double should) {
    int exponent;
    frexpl(should, &exponent);
    return fabsl(is - should) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53);
}

static bool are_turned_doubles(double x, double sine, double cosine) {
    long double s = sinl(x), c = cosl(x), most = SLOPE_OWN_SINES ? 0.9L : 4.0L;
    return isnan(s) ? isnan(sine) && isnan(cosine)
                    : off_double(sine, s) < most && off_double(cosine, c) < most;
}

/* All sizes, among them numbers very near to multiples of pi / 2, or between two of them. */
static int check_double_turns(void) {
    static double x[4096], sine[4096], cosine[4096];
    static uint32_t is_large[4096];
    for (uint32_t i = 0; i < 4096; i++) {
        const uint64_t bits = i * 0x000ffffffffffca3u << 4;
        if (i < 2048) memcpy(&x[i], &bits, sizeof bits);
        else if (i < 4000) x[i] = (i & 1 ? 1 : -1) * 0.78539816339744831 * floor(exp2((i - 2048) / 64.0));
        else x[i] = (i - 4000) / 8.0;
    }
    x[4093] = INFINITY, x[4094] = NAN, x[4095] = -0.0;
    for (int i = 0; i < 4096; i++) {
        sine[i] = slope_sin_tried_double(x[i], false, &is_large[i]);
        cosine[i] = slope_cos_tried_double(x[i], false, &is_large[i]);
    }
    for (int i = 0; i < 4096; i++) {
        if (is_large[i] && fabs(x[i]) < 1e9) return 1;
        if (!is_large[i] && !are_turned_doubles(x[i], sine[i], cosine[i])) return 1;
    }
    return !signbit(sine[4095]);
}

static int check_large_double_turns(void) {
    static Wide memory_of[16], turned_to[16];
    const double large[] = {1e6, -1e9, 1e10, 1e22, -1e300, INFINITY, NAN};
    bind(memory, 16);
    wide_from.data = memory_of;
    wide_to.data = turned_to;
    wide_from.count = wide_to.count = 16;
    for (int k = 0; k < 3; k++) { /* none that is large, two, all */
        for (int i = 0; i < 16; i++) memory_of[i].turn = i - 8;
        for (int i = 0; i < (k == 0 ? 2 : k == 1 ? 4 : 7); i++) memory_of[2 * i + 1].turn = large[i];
        swirled(1, 1, 1);
        for (int i = 0; i < 16; i++)
            if (!are_turned_doubles(memory_of[i].turn, turned_to[i].size[0], turned_to[i].size[1])) return 1;
        curled(1, 1, 1);
        for (int i = 0; i < 16; i++)
            if (!are_turned_doubles(memory_of[i].turn, turned_to[i].turn, turned_to[i].size[1])) return 1;
    }
    return 0;
}

static void bind_numbers(float *read) {
    for (int i = 0; i < 16; i++) norm_of[i] = read[i] = (float)(i % 3) * 0.5f + 0.25f;
    sums.data = norm_of;
    terms.data = tangents.data = read;
    sums.count = terms.count = tangents.count = 16;
}

int main(void) {
    if (check_turns() || check_large_turns() || check_double_turns() || check_large_double_turns()) return 1;
    static Five other[16];
    bind(other, 16);
    twice(1, 1, 1);
    printf("%g %g %g %g %g, ", other[0].at.x, other[5].at.y, other[10].size[0], other[14].size[1],
           other[15].turn);
    norms(1, 1, 1);
    part(1, 1, 1);
    printf("%g %g, ", norm_of[15], other[15].turn);
    bind(memory + 1, 10);
    twice(1, 1, 1);
    printf("%g %g %g, ", memory[1].at.x, memory[10].size[0], memory[10].turn);
    bind(memory + 1, 10);
    again(1, 1, 1);
    from.count = 12; /* the last are out of range */
    bind(memory, 16);
    twice(1, 1, 1);
    printf("%g %g, ", memory[3].at.x, norm_of[9]);
    bind(memory, 16);
    turned(1, 1, 1);
    printf("%g %g %g %g %g, ", memory[9].at.x, memory[9].at.y, memory[9].size[0], memory[9].size[1],
           memory[9].turn);
    bind(other, 16);
    memory[3].turn = 0;
    spun(1, 1, 1);
    if (other[3].at.x != 1 || other[3].turn != 0) return 1;
    printf("%g %g %g, ", other[9].at.x, other[9].at.y, other[9].turn);
    logged(1, 1, 1);
    printf("%g, ", norm_of[9]);
    for (int i = 0; i < 8; i++) norm_of[i] = (float)i;
    layer(1, 1, 1);
    printf("%g %g, ", norm_of[3], norm_of[4]);
    bind(other, 8);
    both(1, 1, 1);
    printf("%g %g %g %g, ", other[14].at.x, other[14].turn, other[15].at.x, other[15].turn);
    bind(memory + 1, 7); /* a round reads what the one before wrote */
    both(1, 1, 1);
    printf("%g %g %g %g, ", memory[11].at.x, memory[11].turn, memory[12].at.x, memory[12].turn);
    bind(other, 8);
    shared(1, 1, 1);
    printf("%g %g %g, ", other[6].turn, other[7].turn, other[8].turn);
    static Square nine[16];
    for (int i = 0; i < 16; i++) nine[i].at[0][0] = nine[i].at[1][2] = nine[i].at[2][1] = (float)i;
    squares.data = nine;
    squares.count = 12;
    count = 16;
    squared(1, 1, 1);
    count = 11;
    squared(1, 1, 1);
    shares(1, 1, 1);
    printf("%g %g %g, %g, ", nine[10].at[1][1], nine[11].at[2][2], nine[12].at[0][0], norm_of[0]);
    bind(other, 16);
    for (int i = 0; i < 16; i++) other[i] = memory[i];
    added(1, 1, 1);
    printf("%g %g %g, ", other[15].turn, other[9].at.y, other[9].at.x);
    bind(memory + 1, 10); /* a round adds what the one before added to */
    added(1, 1, 1);
    printf("%g %g %g, ", memory[1].at.y, memory[10].at.y, memory[10].turn);
    bind(other, 16);
    other[8].turn = 13;
    replaced(1, 1, 1);
    printf("%g %g, ", other[8].at.x, other[8].turn);
    static float numbers[16];
    bind_numbers(numbers);
    few(1, 1, 1);
    printf("%g %g, ", norm_of[7], norm_of[14]);
    bind_numbers(norm_of); /* a round reads what the one before added to */
    few(1, 1, 1);
    printf("%g %g, ", norm_of[7], norm_of[14]);
    bind_numbers(numbers);
    slopes(1, 1, 1);
    printf("%g %g\n", numbers[5], numbers[12]);
    return 0;
}
