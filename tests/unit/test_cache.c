/* Machine code kept on disk: it is used again for the very same program and no other, never when it was
 * harmed or when others could have put it there, by many processes at a time, and there is never too much of
 * it. */
#include "slope.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char square[] = "[Differentiable] float f(float x) { return x * x; }\n"
                             "float g(float x) { var p = diffPair(x); bwd_diff(f)(p, 1.0); return p.d; }\n";
static const char cube[] = "[Differentiable] float f(float x) { return x * x * x; }\n"
                           "float g(float x) { var p = diffPair(x); bwd_diff(f)(p, 1.0); return p.d; }\n";

static double time_in(const SlopeSession *session, const char *stage) {
    SlopeTiming timing;
    for (int i = 0; slope_timing(session, i, &timing); i++)
        if (strcmp(timing.stage, stage) == 0) return timing.milliseconds;
    return 0;
}

/* Was it compiled? */
static bool compiles(const char *folder, const char *text, int level, float x, float wanted) {
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeFunction *function;
    float result = 0;
    void *args[] = {&x, &result};
    slope_config_init(&config);
    config.cache = folder;
    config.optimization = level;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "f.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "g", &function), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(function, args), SLOPE_STATUS_ok);
    assert_float_equal(result, wanted, 1e-6);
    bool compiled = time_in(session, "LLVM passes") > 0;
    slope_session_free(session);
    return compiled;
}

/* The files of a folder; the path of one of them. */
static int count_files(const char *folder, char path[512]) {
    int count = 0;
    DIR *list = opendir(folder);
    if (!list) return 0;
    for (struct dirent *next = readdir(list); next; next = readdir(list)) {
        if (next->d_name[0] == '.') continue;
        snprintf(path, 512, "%s/%s", folder, next->d_name);
        count++;
    }
    closedir(list);
    return count;
}

static char *new_folder(char name[64]) {
    strcpy(name, "/tmp/slope-cache-XXXXXX");
    assert_non_null(mkdtemp(name));
    return name;
}

static void remove_folder(const char *folder) {
    char path[512];
    while (count_files(folder, path) > 0) assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_same_again(void **state) {
    char base[64], folder[128], path[512];
    (void)state;
    snprintf(folder, sizeof folder, "%s/not/there", new_folder(base));
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_false(compiles(folder, square, 2, 5, 10));
    assert_true(compiles(folder, cube, 2, 3, 27));
    assert_true(compiles(folder, square, 1, 3, 6));
    assert_false(compiles(folder, cube, 2, 2, 12));
    assert_int_equal(count_files(folder, path), 3);
    assert_true(compiles(NULL, square, 2, 3, 6));
    assert_true(compiles("", square, 2, 3, 6));
    remove_folder(folder);
    snprintf(folder, sizeof folder, "%s/not", base);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(base), 0);
}

static void harm(const char *path, off_t from_end, bool cut) {
    struct stat about;
    int file = open(path, O_RDWR);
    assert_int_equal(fstat(file, &about), 0);
    char byte;
    assert_int_equal(pread(file, &byte, 1, about.st_size - from_end), 1);
    byte ^= 1;
    if (cut) assert_int_equal(ftruncate(file, about.st_size - from_end), 0);
    else assert_int_equal(pwrite(file, &byte, 1, about.st_size - from_end), 1);
    close(file);
}

static void test_harmed(void **state) {
    char folder[64], path[512], moved[600];
    (void)state;
    new_folder(folder);
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_int_equal(count_files(folder, path), 1);
    for (int i = 0; i < 6; i++) {
        harm(path, (off_t[]){1, 200, 1, 700, 1500, 100000}[i] % 1700, i % 2);
        assert_true(compiles(folder, square, 2, 3, 6));
        assert_false(compiles(folder, square, 2, 3, 6));
    }
    assert_int_equal(truncate(path, 10), 0);
    assert_true(compiles(folder, square, 2, 3, 6));
    snprintf(moved, sizeof moved, "%s-moved", folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_int_equal(unlink(moved), 0);
    remove_folder(folder);
}

static void test_open_to_others(void **state) {
    char folder[64], path[512];
    (void)state;
    new_folder(folder);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_int_equal(count_files(folder, path), 0);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_int_equal(count_files(folder, path), 1);
    assert_int_equal(chmod(path, 0666), 0);
    assert_true(compiles(folder, square, 2, 3, 6));
    remove_folder(folder);
    assert_true(compiles("/dev/null/x", square, 2, 3, 6));
}

static void test_many_processes(void **state) {
    char folder[64], path[512];
    (void)state;
    new_folder(folder);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            compiles(folder, square, 2, 3, 6);
            _exit(0);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(folder, path), 1);
    assert_false(compiles(folder, square, 2, 3, 6));
    remove_folder(folder);
}

/* Files of 60 MiB that take no room, the first the oldest: 300 MiB are too much, 192 stay. */
static void test_not_too_much(void **state) {
    char folder[64], path[512];
    (void)state;
    new_folder(folder);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%032d.code", folder, i);
        int file = open(path, O_RDWR | O_CREAT, 0600);
        assert_int_equal(ftruncate(file, 60 << 20), 0);
        struct timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
        assert_int_equal(futimens(file, times), 0);
        close(file);
    }
    assert_true(compiles(folder, square, 2, 3, 6));
    assert_int_equal(count_files(folder, path), 4);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%032d.code", folder, i);
        assert_int_equal(access(path, F_OK), i < 2 ? -1 : 0);
    }
    assert_false(compiles(folder, square, 2, 3, 6));
    remove_folder(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_again),     cmocka_unit_test(test_harmed),
        cmocka_unit_test(test_open_to_others), cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_not_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
