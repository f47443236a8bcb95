/* NULL in place of any argument of any function of slope.h is misuse, or nothing, and never a crash. */
#include "slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "[Differentiable] float f(float x) { return x * x; } uniform float k; struct S { int n; }; uniform S s;\n"
    "Texture2D t; RWStructuredBuffer<float> b; void main() { b[0] = f(k); }";

#define MISUSE(call) assert_int_equal(call, SLOPE_STATUS_misuse)

/* Whatever was in `out` before. */
#define NOTHING(out, call)                                                                                   \
    do {                                                                                                     \
        (out) = (void *)(uintptr_t)text;                                                                     \
        MISUSE(call);                                                                                        \
        assert_null(out);                                                                                    \
    } while (0)

typedef struct Handles {
    SlopeSession *session;
    SlopeProgram *program;
    SlopeFunction *function;
    SlopeKernel *kernel;
} Handles;

static Handles open_all(void) {
    Handles h;
    assert_int_equal(slope_session_new(NULL, &h.session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(h.session, "n.slang", text, strlen(text), &h.program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(h.program, "f", &h.function), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(h.program, "main", &h.kernel), SLOPE_STATUS_ok);
    return h;
}

static void sessions(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeSession *session;
    SlopeProgram *program;
    SlopeTiming timing;
    SlopeStored stored;
    SlopeConfig config;
    slope_config_init(NULL);
    MISUSE(slope_session_new(NULL, NULL));
    slope_config_init(&config);
    config.include_path_count = 1;
    MISUSE(slope_session_new(&config, &session));
    config.include_paths = (const char *[]){NULL};
    MISUSE(slope_session_new(&config, &session));
    slope_config_init(&config);
    config.define_count = 1;
    MISUSE(slope_session_new(&config, &session));
    slope_session_free(NULL);
    slope_clear_messages(NULL);
    slope_stop(NULL);
    assert_string_equal(slope_messages(NULL), "");
    NOTHING(program, slope_load_file(NULL, "n", &program));
    MISUSE(slope_load_file(h.session, NULL, &program));
    MISUSE(slope_load_file(h.session, "n", NULL));
    NOTHING(program, slope_load_text(NULL, "n", text, 1, &program));
    MISUSE(slope_load_text(h.session, NULL, text, 1, &program));
    MISUSE(slope_load_text(h.session, "n", NULL, 1, &program));
    MISUSE(slope_load_text(h.session, "n", text, 1, NULL));
    slope_program_free(NULL);
    MISUSE(slope_check(NULL));
    assert_int_equal(slope_timing_count(NULL), 0);
    assert_false(slope_timing(NULL, 0, &timing));
    assert_false(slope_timing(h.session, 0, NULL));
    assert_int_equal(slope_stored_count(NULL), 0);
    assert_false(slope_stored(NULL, 0, &stored));
    assert_false(slope_stored(h.session, 0, NULL));
    assert_false(slope_explain(2003, NULL));
    slope_session_free(h.session);
}

static void functions(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeFunction *function;
    SlopeParameter parameter;
    void *address;
    float x = 2;
    NOTHING(function, slope_find_function(NULL, "f", &function));
    MISUSE(slope_find_function(h.program, NULL, &function));
    MISUSE(slope_find_function(h.program, "f", NULL));
    assert_string_equal(slope_function_name(NULL), "");
    assert_int_equal(slope_function_parameter_count(NULL), 0);
    assert_false(slope_function_parameter(NULL, 0, &parameter));
    assert_false(slope_function_parameter(h.function, 0, NULL));
    assert_null(slope_function_result(NULL));
    MISUSE(slope_call(NULL, (void *[]){&x, &x}));
    MISUSE(slope_call(h.function, NULL));
    MISUSE(slope_call(h.function, (void *[]){NULL, &x}));
    MISUSE(slope_call(h.function, (void *[]){&x, NULL}));
    NOTHING(address, slope_function_address(NULL, &address));
    MISUSE(slope_function_address(h.function, NULL));
    slope_session_free(h.session);
}

static void kernels(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeKernel *kernel;
    int size[3];
    NOTHING(kernel, slope_find_kernel(NULL, "main", &kernel));
    MISUSE(slope_find_kernel(h.program, "main", NULL));
    assert_string_equal(slope_kernel_name(NULL), "");
    assert_false(slope_kernel_uses(NULL, 0));
    assert_null(slope_built_name(NULL, "u"));
    slope_kernel_group_size(NULL, size);
    slope_kernel_group_size(h.kernel, NULL);
    MISUSE(slope_kernel_prepare(NULL));
    MISUSE(slope_dispatch(NULL, 1, 1, 1));
    slope_session_free(h.session);
}

static void types(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeField field;
    SlopeUniform s;
    assert_int_equal(slope_find_uniform(h.program, "s", &s), SLOPE_STATUS_ok);
    const SlopeType *type;
    SlopeDeclaration row;
    NOTHING(type, slope_find_type(NULL, "float", &type));
    MISUSE(slope_find_type(h.program, NULL, &type));
    MISUSE(slope_find_type(h.program, "float", NULL));
    assert_int_equal(slope_declaration_count(NULL), 0);
    assert_false(slope_declaration(NULL, 0, &row));
    assert_true(slope_declaration_count(h.program) > 0);
    assert_false(slope_declaration(h.program, 0, NULL));
    assert_int_equal(slope_type_kind(NULL), SLOPE_TYPE_void);
    assert_string_equal(slope_type_name(NULL), "");
    assert_int_equal(slope_type_size(NULL), 0);
    assert_int_equal(slope_type_align(NULL), 1);
    assert_null(slope_type_element(NULL));
    assert_int_equal(slope_type_count(NULL), 0);
    assert_int_equal(slope_type_element_stride(NULL), 0);
    assert_int_equal(slope_type_field_count(NULL), 0);
    assert_false(slope_type_field(NULL, 0, &field));
    assert_false(slope_type_field(s.type, 0, NULL));
    assert_int_equal(slope_type_buffer_kind(NULL), SLOPE_BUFFER_structured);
    char room[32];
    float x = 1;
    MISUSE(slope_scalar_parse(SLOPE_TYPE_float, NULL, &x));
    MISUSE(slope_scalar_parse(SLOPE_TYPE_float, "1", NULL));
    assert_int_equal(slope_scalar_print(SLOPE_TYPE_float, NULL, room, sizeof room), 0);
    assert_int_equal(slope_scalar_print(SLOPE_TYPE_float, &x, NULL, sizeof room), 0);
    slope_session_free(h.session);
}

static void uniforms(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeUniform uniform;
    SlopeBuffer *buffer;
    SlopeImage image = {.width = 1, .height = 1, .depth = 1, .channels = 4, .format = SLOPE_IMAGE_float};
    float k = 1;
    assert_int_equal(slope_uniform_count(NULL), 0);
    assert_false(slope_uniform(NULL, 0, &uniform));
    assert_true(slope_uniform_count(h.program) > 0);
    assert_false(slope_uniform(h.program, 0, NULL));
    MISUSE(slope_find_uniform(NULL, "k", &uniform));
    MISUSE(slope_find_uniform(h.program, NULL, &uniform));
    MISUSE(slope_find_uniform(h.program, "k", NULL));
    MISUSE(slope_set_uniform(NULL, "k", &k, sizeof k));
    MISUSE(slope_set_uniform(h.program, NULL, &k, sizeof k));
    MISUSE(slope_set_uniform(h.program, "k", NULL, sizeof k));
    NOTHING(buffer, slope_buffer_new(NULL, 4, &buffer));
    MISUSE(slope_buffer_new(h.session, 4, NULL));
    NOTHING(buffer, slope_buffer_wrap(NULL, &k, 4, &buffer));
    NOTHING(buffer, slope_buffer_wrap(h.session, NULL, 4, &buffer));
    assert_non_null(strstr(slope_messages(h.session), "slope_buffer_wrap: the argument 'data' is missing"));
    MISUSE(slope_buffer_wrap(h.session, &k, 4, NULL));
    slope_buffer_free(NULL);
    assert_null(slope_buffer_data(NULL));
    assert_int_equal(slope_buffer_size(NULL), 0);
    assert_null(slope_buffer_counter(NULL));
    MISUSE(slope_bind_buffer(NULL, "b", NULL));
    MISUSE(slope_bind_buffer(h.program, NULL, NULL));
    assert_int_equal(slope_bind_buffer(h.program, "b", NULL), SLOPE_STATUS_ok);
    MISUSE(slope_bind_image(NULL, "t", &image, NULL));
    MISUSE(slope_bind_image(h.program, NULL, &image, NULL));
    MISUSE(slope_bind_image(h.program, "t", NULL, NULL));
    assert_int_equal(slope_bind_image(h.program, "t", &image, NULL), SLOPE_STATUS_ok);
    slope_session_free(h.session);
}

static void output(void **state) {
    (void)state;
    Handles h = open_all();
    SlopeBlob *blob;
    SlopeBuildOptions options = {.target = "c"};
    const SlopeGradcheckResult *results;
    int count;
    slope_blob_free(NULL);
    NOTHING(blob, slope_build(NULL, &options, &blob));
    MISUSE(slope_build(h.program, NULL, &blob));
    MISUSE(slope_build(h.program, &options, NULL));
    MISUSE(slope_build_file(NULL, &options, "x"));
    MISUSE(slope_build_file(h.program, NULL, "x"));
    MISUSE(slope_build_file(h.program, &options, NULL));
    options.entry_count = 1;
    MISUSE(slope_build(h.program, &options, &blob));
    options.target = NULL;
    MISUSE(slope_build(h.program, &options, &blob));
    NOTHING(blob, slope_dump(NULL, NULL, NULL, &blob));
    MISUSE(slope_dump(h.program, NULL, NULL, NULL));
    MISUSE(slope_gradcheck(NULL, NULL, &results, &count));
    MISUSE(slope_gradcheck(h.program, NULL, NULL, &count));
    MISUSE(slope_gradcheck(h.program, NULL, &results, NULL));
    SlopeGradcheckOptions check = {.point_count = 1};
    MISUSE(slope_gradcheck(h.program, &check, &results, &count));
    slope_session_free(h.session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions), cmocka_unit_test(functions), cmocka_unit_test(kernels),
        cmocka_unit_test(types),    cmocka_unit_test(uniforms),  cmocka_unit_test(output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
