/* Lanes read and write nothing that one item at a time would not: buffers end where their page does, and behind it is memory that nobody may
 * touch. Indices are not checked, so that only the masks of lanes stand between an item that is off and that memory. */
#include "slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { ITEMS = 37 }; /* no multiple of any number of lanes; a dispatch has 64 */

static const char text[] =
    "StructuredBuffer<float> input; RWStructuredBuffer<float> output; uniform int items;\n"
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
    "}\n";

/* Room for floats that ends with a page, behind which there is nothing. */
static float *at_the_edge(int count) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    return (float *)(void *)(pages + page - sizeof(float) * (size_t)count);
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
    assert_int_equal(slope_set_uniform(program, "items", &items, sizeof items), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, kernel_name, &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    if (lanes > 1) assert_true(slope_remark(session, 0, &remark) && remark.lanes == lanes);
    slope_session_free(session);
}

static void nothing_behind_a_buffer_is_touched(void **state) {
    static const char *const kernels[] = {"edge", "apart", "back"};
    (void)state;
    float *input = at_the_edge(ITEMS), *output = at_the_edge(ITEMS), expected[ITEMS];
    for (int i = 0; i < ITEMS; i++) input[i] = 0.5f + (float)(i % 7) * 0.25f;
    for (int k = 0; k < 3; k++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_behind_a_buffer_is_touched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
