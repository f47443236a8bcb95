/* Images behind textures: how each format is read, levels, sizes, and what is refused. No code is made:
 * texels are looked at. */
#include "slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char source[] =
    "Texture2D flat; Texture3D<float> block; Texture2DArray<float> stack; Texture2D<uint> marks;\n"
    "RWStructuredBuffer<int> counts; void main() {}\n";

typedef struct Setting {
    SlopeSession *session;
    SlopeProgram *program;
} Setting;

static int open_program(void **state) {
    Setting *setting = calloc(1, sizeof *setting);
    assert_int_equal(slope_session_new(NULL, &setting->session), SLOPE_STATUS_ok);
    SlopeStatus status =
        slope_load_text(setting->session, "image.slang", source, strlen(source), &setting->program);
    assert_int_equal(status, SLOPE_STATUS_ok);
    *state = setting;
    return 0;
}

static int close_program(void **state) {
    Setting *setting = *state;
    slope_session_free(setting->session);
    free(setting);
    return 0;
}

static const float *bound(Setting *setting, const char *name, const SlopeImage *image, size_t count) {
    SlopeBuffer *texels;
    assert_int_equal(slope_bind_image(setting->program, name, image, &texels), SLOPE_STATUS_ok);
    assert_int_equal(slope_buffer_size(texels), count * 4);
    return slope_buffer_data(texels);
}

static void numbers_become_fractions(void **state) {
    static const uint8_t bytes[] = {0, 51, 255, 128};
    static const uint16_t words[] = {0, 65535, 0x8000, 0x3c00};
    SlopeImage image = {bytes, 4, 1, 1, 1, SLOPE_IMAGE_unorm8, false};
    const float *at = bound(*state, "flat", &image, 4);
    assert_true(at[0] == 0 && at[1] == 0.2f && at[2] == 1);
    image.format = SLOPE_IMAGE_snorm8;
    at = bound(*state, "flat", &image, 4);
    assert_true(at[1] == 51 / 127.0f && at[2] == -1 / 127.0f && at[3] == -1);
    image.data = words, image.format = SLOPE_IMAGE_unorm16;
    assert_true(bound(*state, "flat", &image, 4)[1] == 1);
    image.format = SLOPE_IMAGE_snorm16;
    assert_true(bound(*state, "flat", &image, 4)[2] == -1);
    image.format = SLOPE_IMAGE_half;
    assert_true(bound(*state, "flat", &image, 4)[3] == 1);
}

static void integers_stay_integers(void **state) {
    static const uint16_t words[] = {7, 0xffff};
    SlopeImage image = {words, 2, 1, 1, 1, SLOPE_IMAGE_int16, false};
    const int32_t *at = (const int32_t *)bound(*state, "marks", &image, 2);
    assert_true(at[0] == 7 && at[1] == -1);
    image.format = SLOPE_IMAGE_uint16;
    at = (const int32_t *)bound(*state, "marks", &image, 2);
    assert_true(at[1] == 65535);
}

/* 4 x 2 x 2: 2 x 1 x 1, 1 x 1 x 1; layers do not shrink. */
static void levels_are_means(void **state) {
    float texels[16];
    for (int i = 0; i < 16; i++) texels[i] = (float)i;
    SlopeImage image = {texels, 4, 2, 2, 1, SLOPE_IMAGE_float, true};
    const float *at = bound(*state, "block", &image, 16 + 2 + 1);
    assert_true(at[16] == 6.5f && at[17] == 8.5f && at[18] == 7.5f);
    at = bound(*state, "stack", &image, 16 + 4 + 2);
    assert_true(at[16] == 2.5f && at[18] == 10.5f && at[20] == 3.5f && at[21] == 11.5f);
}

static void refuse(Setting *setting, const char *name, SlopeImage image, const char *code) {
    slope_clear_messages(setting->session);
    assert_int_equal(slope_bind_image(setting->program, name, &image, NULL), SLOPE_STATUS_misuse);
    if (!strstr(slope_messages(setting->session), code)) fail_msg("%s", slope_messages(setting->session));
}

static void nonsense_is_refused(void **state) {
    SlopeImage image = {NULL, 2, 2, 1, 4, SLOPE_IMAGE_float, false}, wrong = image;
    refuse(*state, "counts", image, "E7018");
    refuse(*state, "nothing", image, "E7010");
    wrong.width = 0;
    refuse(*state, "flat", wrong, "E7019");
    wrong = image, wrong.channels = 5;
    refuse(*state, "flat", wrong, "E7019");
    wrong = image, wrong.format = (SlopeImageFormat)77;
    refuse(*state, "flat", wrong, "E7019");
    wrong = image, wrong.format = SLOPE_IMAGE_uint8, wrong.make_levels = true;
    refuse(*state, "marks", wrong, "E7019");
    wrong = image, wrong.width = wrong.height = wrong.depth = 1 << 20;
    refuse(*state, "flat", wrong, "E7019");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_program, close_program)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(numbers_become_fractions), TEST(integers_stay_integers),
                                       TEST(levels_are_means), TEST(nonsense_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
