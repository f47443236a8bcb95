/* Calls what the header declares, whatever it is linked with. */
#include "program.h"
#include <stdio.h>

static void scalars_and_vectors(void) {
    const float1 c = {3};
    const double1 d = {4};
    const int64_t2 e = {0, -5};
    const uint8_t4 f = {0, 0, 0, 200};
    const bool2 g = {false, true};
    const int16_t3 h = {0, 0, -8};
    const bool1 i = {true};
    printf("%g\n", sizes(-100, 60000, c, d, e, f, g, h, i));
    float memory[2] = {3, 4};
    const Buffer_float j = {memory, 2}, k = {memory, 1};
    const float3 one = {0, 0, 1}, two = {0, 0, 2}, three_ = {0, 0, 3}, four_ = {0, 0, 4};
    const float4 five = {0, 0, 0, 5};
    const float2 six = {0, 6};
    const int3 eight = {0, 0, 8};
    const int2 nine = {0, 9}, seven = {0, 7};
    const double3 last = {0, 0, 0.5};
    double4 all = many(one, two, three_, four_, five, six, 7, eight, j, nine, k, 2, seven, last, 9);
    printf("%g %g %g %g\n", all.x, all.y, all.z, all.w);
}

static void results(void) {
    const float2 x = {2, 3};
    const double2 y = {10, 100};
    const float3 z = {1, 2, 3};
    const float4 w = {1, 2, 3, 4};
    const int64_t3 big = {1, 2, (int64_t)1 << 40};
    const int3 small = {-1, -2, -3};
    const bool3 truth = {true, false, true};
    const half3 half = {0x3c00, 0x4000, 0x4200};
    float memory[2] = {1, 2};
    const Buffer_float buffer = {memory, 2};
    settings.shift.y = 0.5f;
    settings.on = true;
    settings.scale[1].y = 100;
    a_f_2 = 1000;
    float2 r2 = few(x, y);
    float3 r3 = three(2, z);
    float4 r4 = four(w, 2);
    int64_t3 l3 = whole(big, small);
    bool3 b3 = truths(truth, false);
    half3 h3 = halves(1.5f, half);
    Buffer_float same_ = same(buffer, 9);
    printf("%g %g, %g %g %g, %g %g\n", r2.x, r2.y, r3.x, r3.y, r3.z, r4.x, r4.w);
    printf("%lld %lld, %d %d %d, %x %x\n", (long long)l3.x, (long long)l3.z, b3.x, b3.y, b3.z, h3.x, h3.z);
    printf("%g %d %d %g\n", exact(0.1f), same_.data == memory, (int)same_.count, memory[1]);
}

static void objects(void) {
    const float3 at = {1, 2, 3};
    float2 range = {4, 5};
    int32_t count = 0;
    Body body;
    object(&body, at, 7.5f, &count, &range);
    printf("%g %g %g %d %g %g\n", body.at.x, body.at.z, body.mass, count, range.x, range.y);
    const float x[3] = {1, 2, 3};
    const int3 add = {10, 20, 30};
    float y[3];
    list(y, x, add);
    float2 m[3] = {{1, 2}, {3, 4}, {5, 6}};
    float3 t[2];
    turned(t, m, 2);
    printf("%g %g %g, %g %g %g\n", y[0], y[1], y[2], t[0].y, t[1].x, t[1].z);
    IShape disc, box;
    disc.tag = 1; /* as the header says */
    disc.Disc_.radius = 2;
    box.tag = 2;
    box.Box_.sides.x = 3;
    box.Box_.sides.y = 4;
    box.Box_.count = 5;
    printf("%g %g, %d %d, %g\n", shown(&disc), shown(&box), next(Kind_Red) == Kind_Green, next(Kind_Green),
           a_f(1));
}

static void derivatives(void) {
    DifferentialPair_Body body = {{{1, 2, 3}, 2}, {{0, 0, 0}, 0}};
    DifferentialPair_float3 push = {{4, 5, 6}, {1, 0, 0}};
    DifferentialPair_float t = {3, 1};
    DifferentialPair_float3 result;
    const float3 seed = {1, 10, 100};
    fwd_step(&result, &body, &push, &t);
    printf("%g %g, %g %g\n", result.p.x, result.p.z, result.d.x, result.d.z);
    bwd_step(&body, &push, &t, seed);
    printf("%g %g, %g %g, %g\n", body.d.at.z, body.d.mass, push.d.x, push.d.z, t.d);
    float3 plain = step(&body.p, push.p, 3);
    printf("%g %g %g\n", plain.x, plain.y, plain.z);
}

static void kernels(void) {
    float memory[4] = {0, 0, 0, 0}, other[3] = {0, 0, 0};
    const Buffer_float to = {memory, 4}, last = {other, 3};
    const float3 by = {0, 0, 3};
    const int2 at = {7, 10};
    spread(2, 1, 1, by, 1.5f, to, at, last);
    printf("%g %g %g, %g %g\n", memory[0], memory[1], memory[3], other[0], other[2]);
}

int main(void) {
    scalars_and_vectors();
    results();
    objects();
    derivatives();
    kernels();
    return 0;
}
