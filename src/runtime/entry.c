/* The ways in from other programs: calls of functions and kernels by their addresses.
 *
 * Machine code in files belongs to no session. Each module has a runtime of its own, made when it is first
 * needed, by whichever thread comes first. Nobody would ask it for errors: they end the program, as they do
 * where the same is built as C. A session's code that fails returns zero, and the session is asked. */
#include "runtime/thread.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void say_error(void *user, const char *text) {
    (void)user;
    char line[1024];
    int length = snprintf(line, sizeof line, "slope: %s\n", text);
    size_t size = length < (int)sizeof line ? (size_t)length : sizeof line - 1;
    if (write(2, line, size) < 0) return;
}

static Runtime *runtime_of(Runtime **slot) {
    _Atomic(Runtime *) *shared = (_Atomic(Runtime *) *)(void *)slot;
    Runtime *runtime = atomic_load(shared);
    if (runtime) return runtime;
    RuntimeConfig config = {.failed = say_error};
    Runtime *made = runtime_new(&config);
    if (made && atomic_compare_exchange_strong(shared, &runtime, made)) return made;
    if (!made) say_error(NULL, "out of memory");
    runtime_free(made);
    return runtime;
}

static void end_if_failed(const Runtime *runtime, bool fine) {
    bool has_session = runtime && runtime->config.failed != say_error;
    if (!fine && !has_session) exit(EXIT_FAILURE);
}

void rt_call(Runtime **slot, void (*body)(const RtContext *, void *const *), void *const *args) {
    Runtime *runtime = runtime_of(slot);
    end_if_failed(runtime, runtime && thread_call(runtime, body, args, false));
}

void rt_call_deep(Runtime **slot, void (*body)(const RtContext *, void *const *), void *const *args) {
    Runtime *runtime = runtime_of(slot);
    end_if_failed(runtime, runtime && thread_call(runtime, body, args, true));
}

void rt_launch(Runtime **slot, const RtKernel *kernel, const uint32_t *groups, void *const *args) {
    Runtime *runtime = runtime_of(slot);
    end_if_failed(runtime, runtime && runtime_dispatch(runtime, kernel, groups, args));
}

void rt_close(Runtime **slot) {
    runtime_free(*slot);
    *slot = NULL;
}
