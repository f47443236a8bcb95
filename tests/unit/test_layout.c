/* docs/layout.md says how data lies in memory: the struct of its example is compiled, and its table compared
 * with what reflection tells, for a structured buffer and for a constant buffer; the scalar layout also with
 * that of C. */
#include "slope.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- the page */

static char *read_page(void) {
    char path[1024];
    const char *name = strstr(__FILE__, "tests/unit/test_layout.c");
    assert_non_null(name);
    snprintf(path, sizeof path, "%.*sdocs/layout.md", (int)(name - __FILE__), __FILE__);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static char *program_text(const char *page) {
    const char *first = strstr(page, "```\n"), *last = first ? strstr(first + 4, "```") : NULL;
    assert_non_null(last);
    char *text = calloc(1, 4096);
    assert_non_null(text);
    snprintf(text, 4096, "%.*s%s", (int)(last - first - 4), first + 4,
             "StructuredBuffer<Example> plain;\nConstantBuffer<Example> block;\n"
             "struct Holder { ConstantBuffer<Example> inside; }\nuniform Holder holder;\n"
             "[numthreads(1, 1, 1)] void main(uniform ConstantBuffer<Example> given) {}\n");
    return text;
}

/* ---- where reflection says a part is */

static const SlopeType *step_into(const SlopeType *type, const char **path, size_t *offset) {
    if (isdigit((unsigned char)**path)) {
        char *end;
        *offset += (size_t)strtoul(*path, &end, 10) * slope_type_element_stride(type);
        *path = end;
        return slope_type_element(type);
    }
    size_t length = strcspn(*path, ".[`");
    SlopeField field;
    for (int i = 0; slope_type_field(type, i, &field); i++) {
        if (strlen(field.name) != length || memcmp(field.name, *path, length) != 0) continue;
        *offset += field.offset;
        *path += length;
        return field.type;
    }
    fail_msg("no field %s", *path);
    return NULL;
}

static size_t offset_of(const SlopeType *type, const char *path) {
    size_t offset = 0;
    while (*path && *path != '`') {
        type = step_into(type, &path, &offset);
        path += strspn(path, ".[]");
    }
    return offset;
}

static void compare_row(const SlopeType *plain, const SlopeType *block, const char *row) {
    char name[64];
    unsigned scalar, std140;
    if (sscanf(row, "| size | %u | %u |", &scalar, &std140) == 2) {
        assert_int_equal(slope_type_size(plain), scalar);
        assert_int_equal(slope_type_size(block), std140);
        return;
    }
    assert_int_equal(sscanf(row, "| `%63[^|]| %u | %u |", name, &scalar, &std140), 3);
    assert_int_equal(offset_of(plain, name), scalar);
    assert_int_equal(offset_of(block, name), std140);
}

/* ---- tests */

typedef struct Setting {
    char *page, *text;
    SlopeSession *session;
    SlopeProgram *program;
} Setting;

static int open_program(void **state) {
    Setting *setting = calloc(1, sizeof *setting);
    setting->page = read_page();
    setting->text = program_text(setting->page);
    assert_int_equal(slope_session_new(NULL, &setting->session), SLOPE_STATUS_ok);
    SlopeStatus status = slope_load_text(setting->session, "layout.slang", setting->text,
                                         strlen(setting->text), &setting->program);
    assert_int_equal(status, SLOPE_STATUS_ok);
    assert_int_equal(slope_check(setting->program), SLOPE_STATUS_ok);
    assert_string_equal(slope_messages(setting->session), "");
    *state = setting;
    return 0;
}

static int close_program(void **state) {
    Setting *setting = *state;
    slope_session_free(setting->session);
    free(setting->page);
    free(setting->text);
    free(setting);
    return 0;
}

static SlopeUniform uniform_of(Setting *setting, const char *name) {
    SlopeUniform uniform;
    assert_int_equal(slope_find_uniform(setting->program, name, &uniform), SLOPE_STATUS_ok);
    return uniform;
}

static void the_page_is_right(void **state) {
    Setting *setting = *state;
    const SlopeType *plain = slope_type_element(uniform_of(setting, "plain").type),
                    *block = uniform_of(setting, "block").type;
    const char *row = strstr(setting->page, "| field | scalar | std140 |\n|---|---|---|\n");
    assert_non_null(row);
    row = strchr(strchr(row, '\n') + 1, '\n') + 1;
    int rows = 0;
    for (; *row == '|'; row = strchr(row, '\n') + 1, rows++) compare_row(plain, block, row);
    assert_int_equal(rows, 18);
}

static void every_constant_buffer_is_std140(void **state) {
    Setting *setting = *state;
    SlopeKernel *kernel;
    assert_int_equal(slope_find_kernel(setting->program, "main", &kernel), SLOPE_STATUS_ok);
    static const char *const names[] = {"block", "holder.inside", "given"};
    for (int i = 0; i < 3; i++) {
        SlopeUniform uniform = uniform_of(setting, names[i]);
        assert_true(uniform.is_block);
        assert_int_equal(slope_type_size(uniform.type), 240);
        assert_int_equal(offset_of(uniform.type, "several[1].b"), 136);
    }
}

typedef struct Inner {
    float a, b[2];
} Inner;
typedef struct Example {
    float x, v[3];
    bool flag;
    uint16_t h;
    uint8_t byte;
    double d;
    float list[3];
    Inner inner, several[2];
    float rows[2][3], columns[3][2];
    int last[4];
} Example;

static void scalar_is_the_layout_of_c(void **state) {
    const SlopeType *type = slope_type_element(uniform_of(*state, "plain").type);
#define SAME(field) assert_int_equal(offset_of(type, #field), offsetof(Example, field))
    SAME(x);
    SAME(v);
    SAME(flag);
    SAME(h);
    SAME(byte);
    SAME(d);
    SAME(list);
    SAME(inner);
    SAME(inner.b);
    SAME(several);
    SAME(rows);
    SAME(columns);
    SAME(last);
    assert_int_equal(slope_type_size(type), sizeof(Example));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_page_is_right, open_program, close_program),
        cmocka_unit_test_setup_teardown(every_constant_buffer_is_std140, open_program, close_program),
        cmocka_unit_test_setup_teardown(scalar_is_the_layout_of_c, open_program, close_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
