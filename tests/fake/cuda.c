/* A driver of NVIDIA that only pretends, libcuda.so.1, for tests without a GPU. Memory of the device is
 * memory of the host, and kernels do nothing, except for what FAKE_KERNEL says. FAKE_LOG and FAKE_FAIL as in
 * fake.h.
 *
 *   FAKE_IMAGES=FOLDER            all code that is loaded is written to files there
 *   FAKE_DEVICES=0                how many devices there are; default 1
 *   FAKE_KERNEL=abort             it aborts; print: it prints; tape: it needs 100 MiB for tapes; endless: it runs until it is told to stop;
 *               add               it adds one to each float of the buffer that is its first argument */
#include "emit/abi.h"
#include "fake.h"
#include <unistd.h>

enum { VARIABLE_SIZE = sizeof(RtHost) + 4096 }; /* enough for any */

typedef struct Variable {
    char name[64];
    char *memory;
} Variable;

typedef struct State {
    const char *image;
    Variable variables[32];
    int nvariables;
    RtHost *host;   /* of the kernel that runs */
    int is_running; /* one that does not end */
} State;

static State state;

static int is_asked(const char *variable, const char *value) {
    const char *text = getenv(variable);
    return text && strcmp(text, value) == 0;
}

#define CUDA_CALL(name, params) API name params;
#include "runtime/cuda.def"

/* ---- devices */

API cuInit(unsigned flags) {
    (void)flags;
    return called("cuInit");
}
API cuGetErrorName(int error, const char **text) {
    *text = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == 100 ? "CUDA_ERROR_NO_DEVICE"
                           : "CUDA_ERROR_UNKNOWN";
    return 0;
}
API cuGetErrorString(int error, const char **text) {
    *text = error == 2     ? "out of memory"
            : error == 100 ? "no CUDA-capable device is detected"
                           : "unknown error";
    return 0;
}
API cuDeviceGetCount(int *count) {
    const char *devices = getenv("FAKE_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return called("cuDeviceGetCount");
}
API cuDeviceGet(int *device, int index) {
    *device = index;
    return called("cuDeviceGet");
}
API cuDeviceGetName(char *name, int room, int device) {
    snprintf(name, (size_t)room, "fake %d", device);
    return 0;
}
API cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : 0;
    return 0;
}
API cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = &state;
    return called("cuDevicePrimaryCtxRetain");
}
API cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return called("cuDevicePrimaryCtxRelease_v2");
}
API cuCtxPushCurrent_v2(void *context) { return context != &state; }
API cuCtxPopCurrent_v2(void **context) {
    *context = &state;
    return 0;
}
API cuCtxSetLimit(int limit, size_t value) {
    (void)limit, (void)value;
    return called("cuCtxSetLimit");
}

/* ---- memory */

API cuMemGetInfo_v2(size_t *unused, size_t *total) {
    *unused = (size_t)1 << 30;
    *total = (size_t)2 << 30;
    return 0;
}
API cuMemAlloc_v2(uint64_t *address, size_t size) {
    int status = called("cuMemAlloc_v2");
    *address = status ? 0 : (uint64_t)(uintptr_t)malloc(size);
    return status;
}
API cuMemFree_v2(uint64_t address) {
    free((void *)(uintptr_t)address);
    return called("cuMemFree_v2");
}
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, size);
    return called("cuMemcpyHtoDAsync_v2");
}
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, size);
    return called("cuMemcpyDtoHAsync_v2");
}
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return called("cuMemcpyDtoDAsync_v2");
}
API cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void *stream) {
    (void)stream;
    memset((void *)(uintptr_t)to, value, size);
    return 0;
}

/* ---- streams and code */

API cuStreamCreate(void **stream, unsigned flags) {
    (void)flags;
    *stream = &state;
    return called("cuStreamCreate");
}
API cuStreamQuery(void *stream) {
    (void)stream;
    if (state.is_running && !state.host->stop) return 600;
    state.is_running = 0;
    return called("cuStreamQuery");
}
API cuStreamSynchronize(void *stream) {
    (void)stream;
    return called("cuStreamSynchronize");
}
API cuStreamDestroy_v2(void *stream) {
    (void)stream;
    return called("cuStreamDestroy_v2");
}
static void write_image(const char *image) {
    const char *folder = getenv("FAKE_IMAGES");
    static int number;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d-%d.ptx", folder ? folder : "", (int)getpid(), number++);
    FILE *file = folder ? fopen(path, "w") : NULL;
    if (!file) return;
    fputs(image, file);
    fclose(file);
}

API cuModuleLoadData(void **module, const void *image) {
    state.image = strdup(image);
    write_image(image);
    *module = (void *)(uintptr_t)state.image;
    return called("cuModuleLoadData");
}
API cuModuleUnload(void *module) {
    free(module);
    while (state.nvariables > 0) free(state.variables[--state.nvariables].memory);
    return called("cuModuleUnload");
}
API cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strstr(module, name) ? called("cuModuleGetFunction") : 500;
}
API cuFuncGetAttribute(int *value, int attribute, void *function) {
    (void)attribute, (void)function;
    *value = 0;
    return called("cuFuncGetAttribute");
}

/* By its plain name; C++ calls x of the namespace _ZN5slope1xE. */
API cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name) {
    char plain[64];
    if (strncmp(name, "_ZN5slope", 9) == 0) {
        char *start;
        long length = strtol(name + 9, &start, 10);
        snprintf(plain, sizeof plain, "%.*s", (int)length, start);
    } else snprintf(plain, sizeof plain, "%s", name);
    if (!strstr(module, plain)) return 500;
    Variable *variable = state.variables;
    while (variable < state.variables + state.nvariables && strcmp(variable->name, plain) != 0) variable++;
    if (variable == state.variables + state.nvariables) {
        snprintf(variable->name, sizeof variable->name, "%s", plain);
        variable->memory = calloc(1, VARIABLE_SIZE);
        state.nvariables++;
    }
    if (strcmp(plain, "slope_host") == 0) state.host = (RtHost *)(void *)variable->memory;
    *address = (uint64_t)(uintptr_t)variable->memory;
    *size = VARIABLE_SIZE;
    return 0;
}

/* ---- kernels */

static void print_something(void) {
    if (!state.host->print) return;
    static const char format[] = "%d and %s: %g, %d%%\n",
                      kinds[] = {RT_PRINT_int, 1, RT_PRINT_text, 1, RT_PRINT_double, 2};
    const double numbers[] = {1.5, -2};
    enum { FRONT = 16 + 6 + 20 + 6, SIZE = FRONT + 4 * 8 + 8 };
    RtPrinted head = {SIZE, sizeof format - 1, 3, 4};
    uint64_t values[4] = {7, FRONT + 32};
    memcpy(values + 2, numbers, sizeof numbers);
    state.host->print_used += SIZE;
    char *to = (char *)(uintptr_t)state.host->print;
    memcpy(to, &head, sizeof head);
    memcpy(to + 16, kinds, sizeof kinds);
    memcpy(to + 22, format, sizeof format - 1);
    memcpy(to + FRONT, values, sizeof values);
    memcpy(to + FRONT + 32, "text", 5);
}

static void need_tapes(void) {
    enum { NEED = 100 << 20 };
    state.host->room_used = state.host->room_size < NEED ? state.host->room_size + 4096 : NEED;
}

static void add_one(const RtBuffer *buffer) {
    for (uint64_t i = 0; i < buffer->count; i++) ((float *)buffer->data)[i] += 1;
}

API cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned group_x, unsigned group_y,
                   unsigned group_z, unsigned shared, void *stream, void **args, void **extra) {
    (void)function, (void)shared, (void)stream, (void)extra;
    char line[160];
    snprintf(line, sizeof line, "    %u,%u,%u groups of %u,%u,%u", x, y, z, group_x, group_y, group_z);
    int status = called("cuLaunchKernel");
    called(line);
    if (is_asked("FAKE_KERNEL", "endless")) state.is_running = 1;
    if (is_asked("FAKE_KERNEL", "add")) add_one(args[0]);
    if (is_asked("FAKE_KERNEL", "print")) print_something();
    if (is_asked("FAKE_KERNEL", "tape")) need_tapes();
    if (is_asked("FAKE_KERNEL", "abort")) {
        state.host->failed = 1;
        snprintf(state.host->text, sizeof state.host->text, "too far");
    }
    return status;
}
