/* Lanes read and write nothing that one item at a time would not, and keep no more: buffers end where their
 * page does, and behind it is memory that nobody may touch. Indices are not checked, so that only the masks
 * of lanes stand between an item that is off and that memory. Buffers that overlap give what they give one
 * step at a time. */
#include "slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { ITEMS = 37 }; /* no multiple of any number of lanes; a dispatch has 64 */

static const char text[] =
    "StructuredBuffer<float> input; RWStructuredBuffer<float> output; uniform int items;\n"
    "Texture2D<float> picture; RWTexture2D<float> canvas; SamplerState repeated; RWStructuredBuffer<float> "
    "data;\n"
    "[Differentiable] float power(float x, int n) { float y = x; for (int i = 0; i < n; i++) y = y * x; "
    "return y; }\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void edge(uint3 id : SV_DispatchThreadID) {\n"
    "    int i = int(id.x);\n"
    "    if (i < items) output[i] = input[i] * 2;\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void apart(uint3 id : SV_DispatchThreadID) {\n"
    "    int i = int(id.x), k = i;\n"
    "    while (k < items) { output[k] = input[items - 1 - k] + float(k); k += 64; }\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void back(uint3 id : SV_DispatchThreadID) {\n"
    "    int i = int(id.x);\n"
    "    if (i >= items) return;\n"
    "    var x = diffPair(input[i]);\n"
    "    bwd_diff(power)(x, i % 5, input[items - 1 - i]);\n"
    "    output[i] = x.d;\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void list(uint3 id : SV_DispatchThreadID) {\n"
    "    int i = int(id.x), k = i;\n"
    "    float sum = 0;\n"
    "    while (k >= 0 && k < items && input[k] < 1.9) { sum += input[k]; k += 1 + int(input[k] * 3); }\n"
    "    sum += i > 3 && i < items + 4 && input[i - 4] > 1 ? input[i - 4] : i < items ? input[i] : 0.0;\n"
    "    for (k = i; ; k++) { if (k >= items) break; if (input[k] > 1.5) { sum += float(k); break; } }\n"
    "    switch (i % 3) { case 0: if (i + 1 < items) sum += input[i + 1]; break;\n"
    "                     case 1: sum *= 2; break; default: break; }\n"
    "    if (i < items) output[i] = sum;\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void texels(uint3 id : SV_DispatchThreadID) {\n"
    "    int i = int(id.x);\n"
    "    float at = (i * 1.3 + 0.25) / items, sum = picture.SampleLevel(repeated, float2(at, 0.5), 0);\n"
    "    while (i < items && sum < 2) { sum += picture.Load(int3(i, 0, 0)) + picture[uint2(items - 1 - i, "
    "0)]; i += 5; }\n"
    "    if (int(id.x) < items) canvas[id.xy] = sum + picture.Load(int3(items - 1, int(id.x) % 2, 0));\n"
    "}\n"
    "[Differentiable] float bent(DiffTensor<float, 2> t, int i) {\n"
    "    float y = t[i, 0];\n"
    "    for (int k = 0; k < i % 4; k++) y = y * t[i - k, 0] + 0.5 * y;\n"
    "    return y;\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void tensors(uint3 id : SV_DispatchThreadID) {\n"
    "    typealias Tensor = DiffTensor<float, 2>;\n"
    "    int i = int(id.x);\n"
    "    Tensor value = Tensor(data, {items, 1}), slope = Tensor(output, {items, 1});\n"
    "    if (i < items) bwd_diff(bent)(DifferentialPtrPair<Tensor>(value, slope), i, 1.0 + i % 3);\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(64, 1, 1)] void rows(uint3 id : SV_DispatchThreadID) {\n"
    "    typealias Tensor = DiffTensor<float, 2>;\n"
    "    int sizes[2] = {items, 1}, steps[2] = {-1, 1};\n"
    "    Tensor back = Tensor(data, items - 1, sizes, steps), to = Tensor(output, {items, 1});\n"
    "    for (int i = int(id.x); i < items; i += 64) to[i, 0] = back[i, 0] + bent(back, i);\n"
    "}\n";

/* Room for floats that ends with a page, behind which there is nothing, or begins with one. */
static float *at_the_edge(int count, bool begins) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
    return (float *)(void *)(pages + page + (begins ? 0 : page - sizeof(float) * (size_t)count));
}

/* A texture of one row, whose texels are these. */
static void show(SlopeProgram *program, const char *name, const char *texels, SlopeBuffer *buffer) {
    SlopeImage image = {.width = ITEMS, .height = 1, .depth = 1, .channels = 1, .format = SLOPE_IMAGE_float};
    assert_int_equal(slope_bind_image(program, name, &image, NULL), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, texels, buffer), SLOPE_STATUS_ok);
}

static void run(const char *kernel_name, int lanes, bool interpret, float *input, float *output) {
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
    SlopeBuffer *buffers[2];
    SlopeRemark remark;
    int items = ITEMS;
    slope_config_init(&config);
    config.lanes = lanes, config.interpret = interpret, config.unchecked = true, config.optimization = 1;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "edge.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    slope_buffer_wrap(session, input, sizeof(float) * ITEMS, &buffers[0]);
    slope_buffer_wrap(session, output, sizeof(float) * ITEMS, &buffers[1]);
    assert_int_equal(slope_bind_buffer(program, "input", buffers[0]), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "output", buffers[1]), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "data", buffers[0]), SLOPE_STATUS_ok);
    show(program, "picture", "picture.image.texels", buffers[0]);
    show(program, "canvas", "canvas.image.texels", buffers[1]);
    assert_int_equal(slope_set_uniform(program, "items", &items, sizeof items), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, kernel_name, &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    if (lanes > 1) assert_true(slope_remark(session, 0, &remark) && remark.lanes == lanes);
    slope_session_free(session);
}

static void nothing_behind_a_buffer_is_touched(void **state) {
    static const char *const kernels[] = {"edge", "apart", "back", "list", "texels", "tensors", "rows"};
    (void)state;
    float *input = at_the_edge(ITEMS, false), *output = at_the_edge(ITEMS, false), expected[ITEMS];
    for (int i = 0; i < ITEMS; i++) input[i] = 0.5f + (float)(i % 7) * 0.25f;
    for (int k = 0; k < (int)(sizeof kernels / sizeof *kernels); k++) {
        memset(output, 0, sizeof expected);
        run(kernels[k], 1, true, input, output);
        memcpy(expected, output, sizeof expected);
        for (int lanes = 4; lanes <= 16; lanes *= 4)
            for (int interpret = 0; interpret < 2; interpret++) {
                memset(output, 0, sizeof expected);
                run(kernels[k], lanes, interpret, input, output);
                for (int i = 0; i < ITEMS; i++) assert_float_equal(output[i], expected[i], 1e-4);
            }
    }
}

/* ---- rounds of loops, which ask before they begin whether what they use is in range */

static const char reaches[] =
    "StructuredBuffer<float> input; RWStructuredBuffer<float> output; uniform int items, from;\n"
    "StructuredBuffer<uint8_t> bytes;\n"
    "float low(float x) { while (x > 1) x *= 0.7; return x; }\n"
    "[noinline] void ahead() {\n"
    "    for (int i = 0; i < items; i++) output[i] = low(input[i + from + 3] + 2 * input[i + from]);\n"
    "}\n"
    "[noinline] void pairs() {\n"
    "    for (uint i = 0; i < items; i++) output[i] += low(input[2 * i + uint(from) + 1] + input[2 * i + "
    "uint(from)]);\n"
    "}\n"
    "[noinline] void back() { for (int i = items - 1; i >= 0; i--) output[i - from] -= low(3 * input[i]); }\n"
    "[noinline] void down() {\n"
    "    for (int64_t i = 0; i < items; i++) output[int(i)] += low(input[from + items - 3 * int(i)] + 0.1);\n"
    "}\n"
    "[noinline] void tensor() {\n"
    "    int sizes[1] = {items}, steps[1] = {1};\n"
    "    DiffTensor<float, 1> t = DiffTensor<float, 1>(output, from, sizes, steps);\n"
    "    for (int i = 0; i < items; i++) t[i] = low(t[i] + 1.5);\n"
    "}\n"
    "[noinline] void far() { for (int i = 0; i < items; i++) output[i] += low(bytes[i + from]); }\n"
    "[shader(\"compute\")] [numthreads(1, 1, 1)] void all() { ahead(); pairs(); back(); down(); far(); "
    "tensor(); }\n";

enum { STARTS = 8 };
static const int starts[STARTS] = {0, 1, -1, -5, 7, INT32_MAX - 3, INT32_MIN + 2, -2 * ITEMS};

/* More than an int counts; nothing can be read but what is around the last that one does. */
static SlopeBuffer *many_bytes(SlopeSession *session) {
    size_t size = ((size_t)1 << 31) + (1 << 16), last = ((size_t)1 << 31) - (1 << 16);
    char *pages = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SlopeBuffer *buffer;
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages, 1 << 16, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(mprotect(pages + last, size - last, PROT_READ | PROT_WRITE), 0);
    memset(pages + last, 1, size - last);
    slope_buffer_wrap(session, pages, size, &buffer);
    return buffer;
}

/* For every beginning, and loops that end before, at and behind the end of the input. */
static void reach(int lanes, bool interpret, float *input, float *memory, float results[STARTS][5][ITEMS]) {
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
    SlopeBuffer *from, *to;
    slope_config_init(&config);
    config.lanes = lanes, config.interpret = interpret, config.optimization = 1;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "reach.slang", reaches, strlen(reaches), &program),
                     SLOPE_STATUS_ok);
    slope_buffer_wrap(session, input, sizeof(float) * ITEMS, &from);
    slope_buffer_wrap(session, memory, sizeof(float) * ITEMS, &to);
    assert_int_equal(slope_bind_buffer(program, "input", from), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "output", to), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "bytes", many_bytes(session)), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, "all", &kernel), SLOPE_STATUS_ok);
    for (int k = 0; k < STARTS; k++)
        for (int n = 0; n < 5; n++) {
            int items = n < 4 ? ITEMS - 3 + n * 2 : ITEMS / 2;
            memset(memory, 0, sizeof results[k][n]);
            assert_int_equal(slope_set_uniform(program, "items", &items, sizeof items), SLOPE_STATUS_ok);
            assert_int_equal(slope_set_uniform(program, "from", &starts[k], sizeof starts[k]),
                             SLOPE_STATUS_ok);
            assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
            memcpy(results[k][n], memory, sizeof results[k][n]);
        }
    int widened = 0;
    SlopeRemark remark;
    for (int i = 0; slope_remark(session, i, &remark); i++)
        widened += remark.is_loop && remark.lanes == lanes;
    assert_true(lanes == 1 || widened == 6);
    slope_session_free(session);
}

static void rounds_touch_nothing_around_a_buffer(void **state) {
    static float found[STARTS][5][ITEMS], expected[STARTS][5][ITEMS];
    (void)state;
    for (int side = 0; side < 2; side++) {
        float *input = at_the_edge(ITEMS, side), *output = at_the_edge(ITEMS, side);
        for (int i = 0; i < ITEMS; i++) input[i] = 0.5f + (float)(i % 7) * 0.75f;
        reach(1, true, input, output, expected);
        for (int lanes = 4; lanes <= 16; lanes *= 4) {
            reach(lanes, lanes == 4 && side == 0, input, output, found);
            for (int i = 0; i < STARTS * 5 * ITEMS; i++)
                assert_float_equal((&found[0][0][0])[i], (&expected[0][0][0])[i], 1e-4);
        }
    }
}

/* ---- buffers that overlap */

static const char rows[] =
    "StructuredBuffer<float> input; RWStructuredBuffer<float> output; uniform int items;\n"
    "[shader(\"compute\")] [numthreads(1, 1, 1)] void scale() {\n"
    "    for (int i = 0; i < items; i++) output[i] = input[i] * 0.5 + input[items - 1] + input[0];\n"
    "}\n";

enum { DISTANCES = 7 };
static const int offsets[DISTANCES] = {-ITEMS, 1 - ITEMS, -1, 0, 1, ITEMS - 1, ITEMS};

/* The output begins so many elements behind the input. */
static void scale(bool interpret, float memory[DISTANCES][3 * ITEMS]) {
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
    SlopeBuffer *input, *output;
    int items = ITEMS;
    slope_config_init(&config);
    config.interpret = interpret;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "rows.slang", rows, strlen(rows), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_set_uniform(program, "items", &items, sizeof items), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, "scale", &kernel), SLOPE_STATUS_ok);
    for (int k = 0; k < DISTANCES; k++) {
        for (int i = 0; i < 3 * ITEMS; i++) memory[k][i] = 0.5f + (float)(i % 7);
        slope_buffer_wrap(session, memory[k] + ITEMS, sizeof(float) * ITEMS, &input);
        slope_buffer_wrap(session, memory[k] + ITEMS + offsets[k], sizeof(float) * ITEMS, &output);
        assert_int_equal(slope_bind_buffer(program, "input", input), SLOPE_STATUS_ok);
        assert_int_equal(slope_bind_buffer(program, "output", output), SLOPE_STATUS_ok);
        assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    }
    slope_session_free(session);
}

static void buffers_may_overlap(void **state) {
    float found[DISTANCES][3 * ITEMS], expected[DISTANCES][3 * ITEMS];
    (void)state;
    scale(false, found);
    scale(true, expected);
    for (int k = 0; k < DISTANCES; k++)
        for (int i = 0; i < 3 * ITEMS; i++)
            assert_float_equal(found[k][i], expected[k][i], 1e-4 * expected[k][i]);
}

/* ---- memory */

static const char steps[] =
    "RWStructuredBuffer<float> output; uniform int count;\n"
    "[Differentiable] float known(float x) { float y = x; for (int i = 0; i < count; i++) y = y * x * (1.5 - "
    "y * y) + "
    "0.25; return y; }\n"
    "[Differentiable] float unknown(float x) { float y = x; int i = 0; while (i < count + int(x * 8) && y < "
    "1e9) { y "
    "= y * x * (1.5 - y * y) + 0.25; i++; } return y; }\n"
    "[shader(\"compute\")] [numthreads(16, 1, 1)] void counted(uint3 id : SV_DispatchThreadID) {\n"
    "    var x = diffPair(id.x * 0.01); bwd_diff(known)(x, 1.0); output[id.x] = x.d;\n"
    "}\n"
    "[shader(\"compute\")] [numthreads(16, 1, 1)] void pushed(uint3 id : SV_DispatchThreadID) {\n"
    "    var x = diffPair(id.x * 0.01); bwd_diff(unknown)(x, 1.0); output[id.x] = x.d;\n"
    "}\n";

static double peak_in_mib(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (double)usage.ru_maxrss / 1024;
}

/* How much the process grows when the gradient keeps a number in each of so many steps. */
static double growth(const char *name, int lanes, int count) {
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
    SlopeBuffer *buffer;
    float output[16];
    int none = 0;
    slope_config_init(&config);
    config.lanes = lanes, config.threads = 1, config.optimization = 1;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "steps.slang", steps, strlen(steps), &program),
                     SLOPE_STATUS_ok);
    slope_buffer_wrap(session, output, sizeof output, &buffer);
    assert_int_equal(slope_bind_buffer(program, "output", buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, name, &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_set_uniform(program, "count", &none, sizeof none), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    double before = peak_in_mib();
    assert_int_equal(slope_set_uniform(program, "count", &count, sizeof count), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    slope_session_free(session);
    return peak_in_mib() - before;
}

/* An item keeps a MiB; sixteen at once keep sixteen, whether the number of steps is known before or not. */
static void an_item_keeps_no_more_than_alone(void **state) {
    enum { STEPS = 1 << 18, LANES = 16 };
    (void)state;
    assert_true(growth("counted", LANES, STEPS) < LANES * 1.3);
    assert_true(growth("pushed", LANES, 2 * STEPS) < LANES * 2 * 1.3);
}

/* ---- functions called for many values */

enum { CALLS = 131 };

static const char functions[] =
    "struct Light { float3 at; float power; }\n"
    "[Differentiable] float lit(Light light, float3 p, float k) {\n"
    "    float3 d = light.at - p; float s = 0;\n"
    "    for (int i = 0; i < int(k); i++) s += light.power / (dot(d, d) + i + 1);\n"
    "    return s;\n"
    "}\n"
    "extension Light : IDifferentiable {}\n"
    "float3 turned(float3 p, inout int n) { n += 1; return p.zxy * n; }\n"
    "void fails(int i) { if (i == 70) abort(\"no\"); }\n";

typedef struct Light {
    float at[3], power;
} Light;

/* Values and their derivatives. */
typedef struct Lights {
    Light value, slope;
} Lights;
typedef struct Points {
    float value[3], slope[3];
} Points;
typedef struct Numbers {
    float value, slope;
} Numbers;

typedef struct Calls {
    SlopeSession *session;
    SlopeProgram *program;
} Calls;

static Calls open_calls(int lanes, bool interpret) {
    SlopeConfig config;
    Calls calls;
    slope_config_init(&config);
    config.lanes = lanes, config.interpret = interpret, config.optimization = 1;
    assert_int_equal(slope_session_new(&config, &calls.session), SLOPE_STATUS_ok);
    assert_int_equal(
        slope_load_text(calls.session, "many.slang", functions, strlen(functions), &calls.program),
        SLOPE_STATUS_ok);
    return calls;
}

static SlopeFunction *find(const Calls *calls, const char *expression) {
    SlopeFunction *function;
    assert_int_equal(slope_find_function(calls->program, expression, &function), SLOPE_STATUS_ok);
    return function;
}

static float at_random(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f;
}

/* Arrays, one value for all, and a distance of its own, as slope_call does them one by one. */
static void check_batch(int lanes, bool interpret) {
    Calls calls = open_calls(lanes, interpret);
    SlopeFunction *lit = find(&calls, "lit"), *turned = find(&calls, "turned");
    Light light = {{1, 2, 3}, 4};
    float points[CALLS][3], wide[CALLS][5], k[CALLS], found[CALLS], other[CALLS], turns[CALLS][3],
        expected[3];
    int counts[CALLS], count;
    unsigned state = 7;
    for (int i = 0; i < CALLS; i++) {
        for (int j = 0; j < 3; j++) wide[i][j + 1] = points[i][j] = at_random(&state);
        k[i] = (float)(i % 6), counts[i] = i;
    }
    void *args[] = {&light, points, k, found}, *apart[] = {&light, &wide[0][1], k, other},
         *inout[] = {points, counts, turns};
    const int64_t strides[] = {0, sizeof points[0], sizeof k[0], sizeof found[0]},
                  distances[] = {0, sizeof wide[0], sizeof k[0], sizeof other[0]};
    assert_int_equal(slope_call_batch(lit, CALLS, args, strides), SLOPE_STATUS_ok);
    assert_int_equal(slope_call_batch(lit, CALLS, apart, distances), SLOPE_STATUS_ok);
    assert_int_equal(slope_call_batch(turned, CALLS, inout, NULL), SLOPE_STATUS_ok);
    for (int i = 0; i < CALLS; i++) {
        void *one[] = {&light, points[i], &k[i], expected};
        assert_int_equal(slope_call(lit, one), SLOPE_STATUS_ok);
        assert_float_equal(found[i], expected[0], 1e-5);
        assert_float_equal(other[i], expected[0], 1e-5);
        count = i;
        void *turn[] = {points[i], &count, expected};
        assert_int_equal(slope_call(turned, turn), SLOPE_STATUS_ok);
        assert_int_equal(counts[i], count);
        for (int j = 0; j < 3; j++) assert_float_equal(turns[i][j], expected[j], 1e-5);
    }
    slope_session_free(calls.session);
}

static void many_calls_give_what_single_ones_give(void **state) {
    (void)state;
    for (int interpret = 0; interpret < 2; interpret++)
        for (int lanes = 0; lanes <= 8; lanes += 4) check_batch(lanes, interpret);
}

/* Pairs of arguments, a seed for each; the gradient of the light comes out for each call. */
static void many_derivatives_give_what_single_ones_give(void **state) {
    (void)state;
    Calls calls = open_calls(8, false);
    SlopeFunction *gradient = find(&calls, "bwd_diff(lit)");
    static const Lights start = {{{1, 2, 3}, 4}, {{0}, 0}};
    Lights lights[CALLS], light;
    Points points[CALLS], point;
    Numbers ks[CALLS], k;
    float seed = 2;
    for (int i = 0; i < CALLS; i++) {
        memset(&points[i], 0, sizeof points[i]);
        for (int j = 0; j < 3; j++) points[i].value[j] = (float)(i * (j + 1) % 17) * 0.25f;
        lights[i] = start;
        ks[i].value = (float)(i % 6), ks[i].slope = 0;
    }
    void *args[] = {lights, points, ks, &seed};
    const int64_t strides[] = {sizeof lights[0], sizeof points[0], sizeof ks[0], 0};
    assert_int_equal(slope_call_batch(gradient, CALLS, args, strides), SLOPE_STATUS_ok);
    SlopeRemark remark;
    assert_true(slope_remark(calls.session, 0, &remark) && remark.lanes == 8);
    for (int i = 0; i < CALLS; i++) {
        light = start;
        memset(&point, 0, sizeof point);
        memcpy(point.value, points[i].value, sizeof point.value);
        k.value = (float)(i % 6), k.slope = 0;
        void *one[] = {&light, &point, &k, &seed};
        assert_int_equal(slope_call(gradient, one), SLOPE_STATUS_ok);
        assert_float_equal(lights[i].slope.power, light.slope.power, 1e-4);
        for (int j = 0; j < 3; j++) assert_float_equal(points[i].slope[j], point.slope[j], 1e-4);
    }
    slope_session_free(calls.session);
}

static void what_goes_wrong_with_many_calls_is_said(void **state) {
    (void)state;
    Calls calls = open_calls(4, false);
    SlopeFunction *turned = find(&calls, "turned"), *fails = find(&calls, "fails");
    float p[3] = {0}, result[3];
    int n = 0, numbers[100];
    void *args[] = {p, &n, result}, *missing[] = {p, NULL, result}, *index[] = {numbers};
    const int64_t shared[] = {0, 0, sizeof result}, none[] = {0, 0, 0};
    for (int i = 0; i < 100; i++) numbers[i] = i;
    assert_int_equal(slope_call_batch(turned, -1, args, none), SLOPE_STATUS_misuse);
    assert_non_null(strstr(slope_messages(calls.session), "error E7024: cannot make -1 calls"));
    assert_int_equal(slope_call_batch(turned, 2, args, shared), SLOPE_STATUS_misuse);
    assert_non_null(strstr(slope_messages(calls.session),
                           "error E7025: all 2 calls would write argument 1 to the same place"));
    assert_int_equal(slope_call_batch(turned, 2, missing, NULL), SLOPE_STATUS_misuse);
    assert_int_equal(slope_call_batch(NULL, 2, args, NULL), SLOPE_STATUS_misuse);
    assert_int_equal(slope_call_batch(turned, 0, args, NULL), SLOPE_STATUS_ok);
    assert_int_equal(slope_call_batch(turned, 1, args, none), SLOPE_STATUS_ok);
    assert_int_equal(n, 1);
    assert_int_equal(slope_call_batch(fails, 70, index, NULL), SLOPE_STATUS_ok);
    assert_int_equal(slope_call_batch(fails, 100, index, NULL), SLOPE_STATUS_error);
    slope_session_free(calls.session);
}

/* ---- groups */

static SlopeStatus find_kernel_in_groups(int x, int y, int z, const char *name, SlopeSession **session) {
    static const char kernels[] =
        "[shader(\"compute\")] void one() {} [shader(\"compute\")] void some<T>() {} void another() {}\n";
    SlopeConfig config;
    SlopeProgram *program;
    SlopeKernel *kernel;
    slope_config_init(&config);
    config.block[0] = x, config.block[1] = y, config.block[2] = z;
    assert_int_equal(slope_session_new(&config, session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(*session, "k.slang", kernels, strlen(kernels), &program),
                     SLOPE_STATUS_ok);
    return slope_find_kernel(program, name, &kernel);
}

static void groups_have_a_size_that_they_may_have(void **state) {
    static const int fitting[][3] = {{0, 0, 0}, {65536, 1, 1}, {1, 65536, 16384}, {1, 0, 65536}};
    static const int others[][3] = {{65537, 1, 1}, {1, 1, 65537}, {65536, 2, 8193}, {-1, 1, 1}};
    static const char *const names[] = {"one", "some<int>", "another"};
    SlopeSession *session;
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            const int *size = fitting[i], *other = others[i];
            assert_int_equal(find_kernel_in_groups(size[0], size[1], size[2], names[k], &session),
                             SLOPE_STATUS_ok);
            slope_session_free(session);
            assert_int_equal(find_kernel_in_groups(other[0], other[1], other[2], names[k], &session),
                             SLOPE_STATUS_misuse);
            assert_non_null(strstr(slope_messages(session), "error E7026: SlopeConfig.block"));
            slope_session_free(session);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_behind_a_buffer_is_touched),
                                       cmocka_unit_test(rounds_touch_nothing_around_a_buffer),
                                       cmocka_unit_test(buffers_may_overlap),
                                       cmocka_unit_test(an_item_keeps_no_more_than_alone),
                                       cmocka_unit_test(many_calls_give_what_single_ones_give),
                                       cmocka_unit_test(many_derivatives_give_what_single_ones_give),
                                       cmocka_unit_test(what_goes_wrong_with_many_calls_is_said),
                                       cmocka_unit_test(groups_have_a_size_that_they_may_have)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
