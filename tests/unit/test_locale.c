/* A host that speaks another language: what programs print, and numbers in sources, dumps and output, keep
 * their point. The locale is made here, with a comma and no more, by localedef; where that is missing there
 * is nothing to test with. */
#include "slope.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char definition[] =
    "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n"
    "LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n";

static bool speak_with_commas(char *folder) {
    char path[256], command[1024];
    snprintf(path, sizeof path, "%s/comma.def", folder);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fputs(definition, file);
    fclose(file);
    snprintf(command, sizeof command, "localedef -c -f ANSI_X3.4-1968 -i %s %s/comma >/dev/null 2>&1", path,
             folder);
    if (system(command) < 0) return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "comma") && localeconv()->decimal_point[0] == ',';
}

typedef struct Heard {
    char text[512];
    size_t size;
} Heard;

static void hear(void *user, const char *text, size_t size) {
    Heard *heard = user;
    if (heard->size + size >= sizeof heard->text) return;
    memcpy(heard->text + heard->size, text, size);
    heard->size += size;
}

static const char text[] =
    "uniform float k; float half_of(float x) { return x * 0.25 + 1.75; }\n"
    "void main() { printf(\"%g %.2f %8.3f|%e|%s\\n\", 1.5, 0.125, half_of(k), 2.5, 1234567.5); }";

static void check_output(SlopeProgram *program) {
    SlopeBlob *blob;
    SlopeBuildOptions options = {.target = "c"};
    assert_int_equal(slope_dump(program, NULL, "lower", &blob), SLOPE_STATUS_ok);
    assert_non_null(strstr(blob->data, "0.25"));
    assert_int_equal(slope_build(program, &options, &blob), SLOPE_STATUS_ok);
    assert_non_null(strstr(blob->data, "1.75"));
    assert_null(strstr(blob->data, "1,75"));
}

static void numbers_keep_their_point(void **state) {
    (void)state;
    char folder[] = "/tmp/slope-locale-XXXXXX", command[64], room[32];
    assert_non_null(mkdtemp(folder));
    bool spoken = speak_with_commas(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) spoken = false;
    if (!spoken) skip();
    Heard heard = {0};
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeKernel *kernel;
    float k;
    slope_config_init(&config);
    config.user = &heard;
    config.write = hear;
    config.optimization = 0;
    assert_int_equal(slope_scalar_parse(SLOPE_TYPE_float, "0.5", &k), SLOPE_STATUS_ok);
    assert_true(k == 0.5f);
    slope_scalar_print(SLOPE_TYPE_float, &k, room, sizeof room);
    assert_string_equal(room, "0.5");
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "l.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    check_output(program);
    assert_int_equal(slope_set_uniform(program, "k", &k, sizeof k), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, "main", &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    assert_string_equal(heard.text, "1.5 0.12    1.875|2.500000e+00|1.23457e+06\n");
    snprintf(room, sizeof room, "%g", 1.5);
    assert_string_equal(room, "1,5"); /* the host's own are as they were */
    slope_session_free(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_keep_their_point)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
