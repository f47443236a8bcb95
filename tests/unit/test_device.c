/* Sessions whose kernels run on a GPU: where buffers are and when they are copied, memory of others,
 * stopping. The driver only pretends (tests/fake); a kernel adds one to the floats of its buffer, or does
 * nothing. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "slope.h"

static const char source[] =
    "[numthreads(4, 1, 1)] [shader(\"compute\")]\n"
    "void add(uint3 id : SV_DispatchThreadID, uniform RWStructuredBuffer<float> to) { to[id.x] += 1; }\n"
    "[numthreads(1, 1, 1)] [shader(\"compute\")]\n"
    "void endless(uniform RWStructuredBuffer<int> to) { while (to[0] == 0) to[1]++; }\n"
    "struct Holder { float *p; };\n"
    "[numthreads(1, 1, 1)] [shader(\"compute\")]\n"
    "void follow(uniform StructuredBuffer<Holder> from) { *from[0].p = 1; }\n"
    "float twice(float x) { return 2 * x; }\n";

typedef struct Device {
    SlopeSession *session;
    SlopeProgram *program;
} Device;

/* Libraries that are loaded already are found by their names. */
static void load_fakes(void) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = 0;
    char *end = strrchr(path, '/');
    snprintf(end, 64, "/fake/libcuda.so.1");
    assert_non_null(dlopen(path, RTLD_NOW));
    snprintf(end, 64, "/fake/libnvrtc.so.13");
    assert_non_null(dlopen(path, RTLD_NOW));
    unsetenv("CUDA_HOME");
}

static Device open_device(const char *device, const char *kernel) {
    SlopeConfig config;
    Device opened;
    setenv("FAKE_KERNEL", kernel, 1);
    slope_config_init(&config);
    config.device = device;
    assert_int_equal(slope_session_new(&config, &opened.session), SLOPE_STATUS_ok);
    assert_int_equal(
        slope_load_text(opened.session, "device.slang", source, sizeof source - 1, &opened.program),
        SLOPE_STATUS_ok);
    return opened;
}

static SlopeKernel *find(const Device *device, const char *name) {
    SlopeKernel *kernel;
    assert_int_equal(slope_find_kernel(device->program, name, &kernel), SLOPE_STATUS_ok);
    return kernel;
}

static void dispatch(SlopeKernel *kernel) {
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
}

static bool says(const Device *device, const char *code) {
    return strstr(slope_messages(device->session), code) != NULL;
}

static void buffers_go_there_and_back(void **state) {
    (void)state;
    Device device = open_device("cuda", "add");
    SlopeKernel *add = find(&device, "add");
    SlopeBuffer *buffer;
    assert_int_equal(slope_buffer_new(device.session, 4 * sizeof(float), &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(device.program, "to", buffer), SLOPE_STATUS_ok);
    ((float *)slope_buffer_data(buffer))[1] = 5;
    dispatch(add);
    dispatch(add);
    assert_true(((float *)slope_buffer_data(buffer))[1] == 7);
    *slope_buffer_counter(buffer) = 3;
    dispatch(add);
    float value = 10, read = 0;
    assert_int_equal(slope_buffer_write(buffer, 8, &value, 4), SLOPE_STATUS_ok);
    dispatch(add);
    assert_int_equal(slope_buffer_read(buffer, 8, &read, 4), SLOPE_STATUS_ok);
    assert_true(read == 11);
    assert_int_equal(*slope_buffer_counter(buffer), 3);
    assert_true(((float *)slope_buffer_data(buffer))[1] == 9);
    assert_int_equal(slope_buffer_read(buffer, 12, &read, 8), SLOPE_STATUS_misuse);
    assert_int_equal(slope_buffer_write(buffer, 20, &read, 0), SLOPE_STATUS_misuse);
    assert_true(says(&device, "E7066"));
    slope_session_free(device.session);
}

static void memory_of_the_caller(void **state) {
    (void)state;
    Device device = open_device("cuda:0", "add");
    SlopeKernel *add = find(&device, "add");
    float here[4] = {1, 2, 3, 4}, there[4] = {5, 6, 7, 8}, read;
    SlopeBuffer *wrapped, *foreign;
    uint64_t address;
    assert_int_equal(slope_buffer_wrap(device.session, here, sizeof here, &wrapped), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(device.program, "to", wrapped), SLOPE_STATUS_ok);
    dispatch(add);
    here[0] = 10;
    dispatch(add);
    assert_true(here[0] == 11 && here[3] == 6);
    assert_int_equal(slope_buffer_address(wrapped, &address), SLOPE_STATUS_ok);
    assert_true(address != 0 && address != (uint64_t)(uintptr_t)here);
    /* What pretends to be the memory of a GPU is the host's. */
    assert_int_equal(
        slope_buffer_wrap_device(device.session, (uint64_t)(uintptr_t)there, sizeof there, &foreign),
        SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(device.program, "to", foreign), SLOPE_STATUS_ok);
    dispatch(add);
    assert_true(there[0] == 6 && there[3] == 9);
    assert_null(slope_buffer_data(foreign));
    assert_int_equal(slope_buffer_read(foreign, 4, &read, 4), SLOPE_STATUS_ok);
    assert_true(read == 7);
    assert_int_equal(slope_buffer_address(foreign, &address), SLOPE_STATUS_ok);
    assert_true(address == (uint64_t)(uintptr_t)there);
    slope_session_free(device.session);
}

/* Functions run on the CPU, and see what kernels wrote. */
static void functions_stay_here(void **state) {
    (void)state;
    Device device = open_device("cuda", "add");
    SlopeFunction *twice;
    float x = 3, y = 0;
    assert_int_equal(slope_find_function(device.program, "twice", &twice), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(twice, (void *[]){&x, &y}), SLOPE_STATUS_ok);
    assert_true(y == 6);
    slope_session_free(device.session);
}

static void *stop_soon(void *session) {
    usleep(20000);
    slope_stop(session);
    return NULL;
}

static void a_kernel_is_stopped(void **state) {
    (void)state;
    Device device = open_device("cuda", "endless");
    SlopeKernel *endless = find(&device, "endless");
    pthread_t thread;
    assert_int_equal(slope_kernel_prepare(endless), SLOPE_STATUS_ok);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, device.session), 0);
    assert_int_equal(slope_dispatch(endless, 1, 1, 1), SLOPE_STATUS_stopped);
    pthread_join(thread, NULL);
    slope_session_free(device.session);
}

/* Kernels that are queued run in their order; who reads a buffer waits for them. */
static void kernels_are_queued(void **state) {
    (void)state;
    Device plain = open_device("cpu", "none"), device = open_device("cuda", "add");
    SlopeKernel *add = find(&device, "add");
    SlopeBuffer *buffer;
    int stream;
    assert_int_equal(slope_buffer_new(device.session, 4 * sizeof(float), &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(device.program, "to", buffer), SLOPE_STATUS_ok);
    for (int i = 0; i < 3; i++) assert_int_equal(slope_queue(add, 1, 1, 1), SLOPE_STATUS_ok);
    assert_true(((float *)slope_buffer_data(buffer))[1] == 3);
    assert_int_equal(slope_use_stream(device.session, &stream), SLOPE_STATUS_ok);
    assert_int_equal(slope_queue(add, 1, 1, 1), SLOPE_STATUS_ok);
    assert_int_equal(slope_wait(device.session), SLOPE_STATUS_ok);
    dispatch(add);
    assert_true(((float *)slope_buffer_data(buffer))[1] == 5);
    assert_int_equal(slope_wait(plain.session), SLOPE_STATUS_ok);
    assert_int_equal(slope_use_stream(plain.session, &stream), SLOPE_STATUS_misuse);
    assert_true(says(&plain, "E7065"));
    assert_int_equal(slope_queue(NULL, 1, 1, 1), SLOPE_STATUS_misuse);
    assert_int_equal(slope_wait(NULL), SLOPE_STATUS_misuse);
    slope_session_free(device.session);
    slope_session_free(plain.session);
}

/* What goes wrong there is told by who waits; the next kernel begins anew. */
static void queued_kernels_fail(void **state) {
    (void)state;
    Device device = open_device("cuda", "abort");
    SlopeKernel *endless = find(&device, "endless");
    pthread_t thread;
    assert_int_equal(slope_queue(endless, 1, 1, 1), SLOPE_STATUS_ok);
    assert_int_equal(slope_wait(device.session), SLOPE_STATUS_error);
    assert_true(says(&device, "too far"));
    setenv("FAKE_KERNEL", "none", 1);
    assert_int_equal(slope_queue(endless, 1, 1, 1), SLOPE_STATUS_ok);
    assert_int_equal(slope_wait(device.session), SLOPE_STATUS_ok);
    setenv("FAKE_KERNEL", "endless", 1);
    assert_int_equal(slope_queue(endless, 1, 1, 1), SLOPE_STATUS_ok);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, device.session), 0);
    assert_int_equal(slope_wait(device.session), SLOPE_STATUS_stopped);
    pthread_join(thread, NULL);
    slope_session_free(device.session);
}

static int count_lines(const char *path, const char *line) {
    char text[256];
    int count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) count += strncmp(text, line, strlen(line)) == 0;
    fclose(file);
    return count;
}

/* What is the same is compiled once in a session. */
static void code_is_compiled_once(void **state) {
    (void)state;
    char log[] = "/tmp/slope-device-XXXXXX";
    int file = mkstemp(log);
    assert_true(file >= 0);
    close(file);
    setenv("FAKE_LOG", log, 1);
    Device device = open_device("cuda", "add");
    SlopeProgram *again;
    assert_int_equal(slope_kernel_prepare(find(&device, "add")), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(device.session, "again.slang", source, sizeof source - 1, &again),
                     SLOPE_STATUS_ok);
    device.program = again;
    assert_int_equal(slope_kernel_prepare(find(&device, "add")), SLOPE_STATUS_ok);
    assert_int_equal(slope_kernel_prepare(find(&device, "endless")), SLOPE_STATUS_ok);
    slope_session_free(device.session);
    unsetenv("FAKE_LOG");
    assert_int_equal(count_lines(log, "cuModuleLoadData"), 3);
    assert_int_equal(count_lines(log, "nvrtcCompileProgram"), 2);
    remove(log);
}

static void prepare_and_free(Device *device) {
    assert_int_equal(
        slope_load_text(device->session, "device.slang", source, sizeof source - 1, &device->program),
        SLOPE_STATUS_ok);
    assert_int_equal(slope_kernel_prepare(find(device, "add")), SLOPE_STATUS_ok);
    slope_session_free(device->session);
}

/* A later session finds it on disk, unless the options differ. */
static void code_is_kept_on_disk(void **state) {
    (void)state;
    char log[] = "/tmp/slope-device-XXXXXX", folder[] = "/tmp/slope-cache-XXXXXX", command[64];
    int file = mkstemp(log);
    assert_true(file >= 0 && mkdtemp(folder));
    close(file);
    setenv("FAKE_LOG", log, 1);
    for (int i = 0; i < 3; i++) {
        SlopeConfig config;
        Device device;
        slope_config_init(&config);
        config.device = "cuda";
        config.cache = folder;
        config.floats = i == 2 ? SLOPE_FLOATS_strict : SLOPE_FLOATS_contract;
        assert_int_equal(slope_session_new(&config, &device.session), SLOPE_STATUS_ok);
        prepare_and_free(&device);
    }
    unsetenv("FAKE_LOG");
    assert_int_equal(count_lines(log, "cuModuleLoadData"), 3);
    assert_int_equal(count_lines(log, "nvrtcCompileProgram"), 2);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    remove(log);
}

/* What the configuration points to may change as soon as there is a session. */
static void the_configuration_is_copied(void **state) {
    (void)state;
    char log[] = "/tmp/slope-device-XXXXXX", name[] = "cuda", compiler[] = "nvrtc";
    int file = mkstemp(log);
    assert_true(file >= 0);
    close(file);
    setenv("FAKE_LOG", log, 1);
    SlopeConfig config;
    Device device;
    slope_config_init(&config);
    config.device = name;
    config.device_code = compiler;
    assert_int_equal(slope_session_new(&config, &device.session), SLOPE_STATUS_ok);
    strcpy(name, "cpu");
    strcpy(compiler, "llvm");
    prepare_and_free(&device);
    unsetenv("FAKE_LOG");
    assert_int_equal(count_lines(log, "nvrtcCompileProgram"), 1);
    remove(log);
}

static void what_cannot_be(void **state) {
    (void)state;
    Device device = open_device("cuda", "none"), plain = open_device("cpu", "none");
    SlopeKernel *follow = find(&device, "follow");
    SlopeBuffer *buffer;
    uint64_t address;
    assert_int_equal(slope_buffer_new(device.session, 8, &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(device.program, "follow.from", buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(follow, 1, 1, 1), SLOPE_STATUS_error);
    assert_true(says(&device, "E7063"));
    assert_int_equal(slope_buffer_new(plain.session, 8, &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_buffer_address(buffer, &address), SLOPE_STATUS_misuse);
    assert_int_equal(slope_buffer_wrap_device(plain.session, 64, 8, &buffer), SLOPE_STATUS_misuse);
    assert_true(says(&plain, "E7065"));
    slope_session_free(device.session);
    slope_session_free(plain.session);
}

int main(void) {
    load_fakes();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_go_there_and_back),   cmocka_unit_test(memory_of_the_caller),
        cmocka_unit_test(functions_stay_here),         cmocka_unit_test(a_kernel_is_stopped),
        cmocka_unit_test(kernels_are_queued),          cmocka_unit_test(queued_kernels_fail),
        cmocka_unit_test(code_is_compiled_once),       cmocka_unit_test(code_is_kept_on_disk),
        cmocka_unit_test(the_configuration_is_copied), cmocka_unit_test(what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
