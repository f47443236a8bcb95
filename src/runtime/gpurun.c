/* A kernel on a GPU, from launch to end.
 *
 * Kernels tell by their RtHost how it went: what they printed, why they failed, and whether the memory for
 * tapes or for output was too small. In that case nothing of what they did counts: what they may have written
 * is put back as it was, they get more memory, and run again. While a kernel runs, this thread looks whether
 * it is to stop, and tells it. */
#include "runtime/gpu.h"
#include "runtime/thread.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NOT_READY = 600, FIRST_PRINTED = 1 << 20 };
static const uint64_t first_tapes = 16 << 20, most_printed = (uint64_t)1 << 30;
static const long patience = 3000; /* milliseconds, for a kernel that was told to stop */

/* ---- waiting */

static void rest(int rounds) {
    long nanoseconds = rounds < 200 ? 0 : rounds < 1000 ? 20000 : 1000000;
    struct timespec time = {0, nanoseconds};
    if (nanoseconds) nanosleep(&time, NULL);
}

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void tell_to_stop(Gpu *gpu) {
    static const uint32_t yes = 1;
    for (const GpuCode *code = gpu->queued; code; code = code->next)
        if (code->host)
            gpu->cuda.cuMemcpyHtoDAsync_v2(code->host + offsetof(RtHost, stop), &yes, sizeof yes,
                                           gpu->signals);
}

/* For all that is queued. False: an error, or it does not end. */
static bool wait_for(Gpu *gpu) {
    long told = 0;
    for (int rounds = 0;; rounds += rounds < 1000) {
        int status = gpu->cuda.cuStreamQuery(gpu->stream);
        if (status != NOT_READY) return gpu_done(gpu, "cuStreamQuery", status);
        if (gpu->config.stop && atomic_load(gpu->config.stop)) {
            if (!told) tell_to_stop(gpu);
            if (told && now() - told > patience) {
                gpu->hangs = true;
                return gpu_fail(gpu, "the kernel was told to stop and does not");
            }
            if (!told) told = now();
        }
        rest(rounds);
    }
}

/* ---- what it may write */

static size_t round_up(size_t size) { return (size + 255) / 256 * 256; }

static bool copy_ranges(Gpu *gpu, const GpuRun *run, bool back) {
    uint64_t at = gpu->copies.address;
    bool fine = true;
    for (int i = 0; i < run->nwritten && fine; i++) {
        const GpuRange *range = &run->written[i];
        uint64_t to = back ? range->address : at, from = back ? at : range->address;
        fine = range->size == 0 || CALL(gpu, cuMemcpyDtoDAsync_v2, (to, from, range->size, gpu->stream));
        at += round_up(range->size);
    }
    return fine;
}

static bool save(Gpu *gpu, const GpuRun *run) {
    size_t size = 0;
    for (int i = 0; i < run->nwritten; i++) size += round_up(run->written[i].size);
    return gpu_room_fit(gpu, &gpu->copies, size) && copy_ranges(gpu, run, false);
}

/* ---- memory for what it keeps */

static uint64_t tape_limit(Gpu *gpu) {
    size_t unused = 0, total = 0;
    if (gpu->config.tape_limit) return gpu->config.tape_limit;
    if (!CALL(gpu, cuMemGetInfo_v2, (&unused, &total))) return 0;
    return (unused + gpu->tapes.size) / 4 * 3;
}

static bool grow_tapes(Gpu *gpu, uint64_t used) {
    uint64_t limit = tape_limit(gpu), size = 4 * (uint64_t)gpu->tapes.size;
    if (size < used) size = used;
    if (size < first_tapes) size = first_tapes;
    if (size > limit) size = limit / RT_CHUNK * RT_CHUNK;
    if (size > gpu->tapes.size) return gpu_room_fit(gpu, &gpu->tapes, (size_t)size);
    return gpu_fail(gpu,
                    "what reverse passes keep takes more than %llu MiB of the GPU's memory; --tape and "
                    "SlopeConfig.tape_mib allow more",
                    (unsigned long long)(limit >> 20));
}

static bool grow_printed(Gpu *gpu, uint64_t used) {
    if (used <= gpu->printed.size) return true;
    if (used <= most_printed) return gpu_room_fit(gpu, &gpu->printed, (size_t)used);
    return gpu_fail(gpu, "the kernel prints more than %llu MiB", (unsigned long long)(most_printed >> 20));
}

/* ---- what it printed */

typedef struct Printed {
    char *bytes;
    uint64_t size;
} Printed;

static void print_record(const RtContext *context, char *record) {
    RtPrinted head;
    memcpy(&head, record, sizeof head);
    const RtPrintArg *args = (const RtPrintArg *)(const void *)(record + sizeof head);
    char *format = record + sizeof head + 2 * (size_t)head.nargs;
    size_t front = (sizeof head + 2 * (size_t)head.nargs + head.length + 7) / 8 * 8;
    uint64_t *values = (uint64_t *)(void *)(record + front), *value = values;
    for (uint32_t i = 0; i < head.nargs; value += args[i].lanes, i++)
        if (args[i].kind == RT_PRINT_text) *value = (uint64_t)(uintptr_t)(record + *value);
    rt_print(context, format, (int64_t)head.length, args, (int64_t)head.nargs, values);
}

static void print_all(const RtContext *context, void *const *args) {
    const Printed *printed = args[0];
    RtPrinted head;
    for (uint64_t at = 0; at + sizeof head <= printed->size; at += head.size) {
        memcpy(&head, printed->bytes + at, sizeof head);
        if (head.size < sizeof head || head.size > printed->size - at) return; /* it was not finished */
        print_record(context, printed->bytes + at);
    }
}

static bool show_printed(Gpu *gpu, Runtime *runtime, uint64_t used) {
    if (used == 0) return true;
    Printed printed = {malloc((size_t)used), used};
    if (!printed.bytes) return gpu_fail(gpu, "out of memory for what the kernel printed");
    bool fine = gpu_read(gpu, printed.bytes, gpu->printed.address, (size_t)used);
    runtime_answer(runtime, true);
    if (fine) fine = runtime_call(runtime, print_all, (void *[]){&printed});
    runtime_answer(runtime, false);
    free(printed.bytes);
    return fine;
}

/* ---- once, and again */

static bool launch(Gpu *gpu, GpuCode *code, const GpuRun *run) {
    const uint32_t *groups = run->groups, *size = run->group_size;
    if (!CALL(gpu, cuLaunchKernel,
              (code->function, groups[0], groups[1], groups[2], size[0], size[1], size[2], 0, gpu->stream,
               run->args, NULL)))
        return false;
    if (!code->is_queued) code->next = gpu->queued, gpu->queued = code;
    return code->is_queued = true;
}

static void forget_queued(Gpu *gpu) {
    for (GpuCode *code = gpu->queued; code; code = code->next) code->is_queued = false;
    gpu->queued = NULL;
}

static bool launch_and_wait(Gpu *gpu, GpuCode *code, const GpuRun *run) {
    bool fine = launch(gpu, code, run) && wait_for(gpu);
    forget_queued(gpu);
    return fine;
}

/* What the kernel has to say is in *host afterwards. */
static bool launch_hosted(Gpu *gpu, GpuCode *code, const GpuRun *run, RtHost *host) {
    *host = (RtHost){.room = gpu->tapes.address,
                     .room_size = gpu->tapes.size,
                     .print = gpu->printed.address,
                     .print_size = gpu->printed.size};
    return gpu_write(gpu, code->host, host, sizeof *host) && launch_and_wait(gpu, code, run) &&
           gpu_read(gpu, host, code->host, sizeof *host);
}

static bool was_too_small(const RtHost *host) {
    return !host->failed && (host->room_used > host->room_size || host->print_used > host->print_size);
}

static bool make_room(Gpu *gpu, const GpuRun *run, const RtHost *host) {
    if (host->room_used > host->room_size && !grow_tapes(gpu, host->room_used)) return false;
    return grow_printed(gpu, host->print_used) && copy_ranges(gpu, run, true);
}

static bool says_failure(Gpu *gpu, RtHost *host) {
    if (!host->failed) return false;
    host->text[sizeof host->text - 1] = 0;
    return !gpu_fail(gpu, "%s", host->text);
}

static bool is_stopped(const Gpu *gpu) { return gpu->config.stop && atomic_load(gpu->config.stop); }

static bool run_hosted(Gpu *gpu, Runtime *runtime, GpuCode *code, const GpuRun *run) {
    RtHost host;
    if (code->repeats && (!gpu_room_fit(gpu, &gpu->printed, FIRST_PRINTED) || !save(gpu, run))) return false;
    do {
        if (!launch_hosted(gpu, code, run, &host)) return false;
    } while (was_too_small(&host) && !is_stopped(gpu) && make_room(gpu, run, &host));
    if (was_too_small(&host) && !is_stopped(gpu)) return false;
    uint64_t printed = host.print_used < host.print_size ? host.print_used : host.print_size;
    if (!show_printed(gpu, runtime, printed)) return false;
    return !says_failure(gpu, &host);
}

/* ---- entries */

static bool enter(Gpu *gpu) {
    gpu->error[0] = 0;
    return CALL(gpu, cuCtxPushCurrent_v2, (gpu->context));
}

/* How a run ended goes to the runtime. */
static bool leave(Gpu *gpu, Runtime *runtime, bool fine) {
    void *context;
    gpu->cuda.cuCtxPopCurrent_v2(&context);
    bool stopped = is_stopped(gpu);
    if (!fine && !stopped && gpu->error[0]) runtime_set_error(runtime, true, gpu->error, strlen(gpu->error));
    return fine && !stopped;
}

static bool is_empty(const GpuRun *run) {
    return run->groups[0] == 0 || run->groups[1] == 0 || run->groups[2] == 0;
}

bool gpu_wait(Gpu *gpu, Runtime *runtime) {
    if (!gpu->queued) return true;
    if (!enter(gpu)) return false;
    GpuCode *queued = gpu->queued;
    bool fine = wait_for(gpu);
    forget_queued(gpu);
    for (const GpuCode *code = queued; code && fine; code = code->next) {
        RtHost host;
        if (code->host) fine = gpu_read(gpu, &host, code->host, sizeof host) && !says_failure(gpu, &host);
    }
    return leave(gpu, runtime, fine);
}

bool gpu_run(Gpu *gpu, Runtime *runtime, GpuCode *code, const GpuRun *run) {
    if (!gpu_wait(gpu, runtime)) return false;
    if (is_empty(run)) return true;
    if (!enter(gpu)) return false;
    return leave(gpu, runtime,
                 code->host ? run_hosted(gpu, runtime, code, run) : launch_and_wait(gpu, code, run));
}

bool gpu_can_queue(const GpuCode *code) { return !code->repeats; }

bool gpu_queue(Gpu *gpu, Runtime *runtime, GpuCode *code, const GpuRun *run) {
    if (is_empty(run)) return true;
    if (!enter(gpu)) return false;
    bool fine = code->is_queued || !code->host ||
                CALL(gpu, cuMemsetD8Async, (code->host, 0, sizeof(RtHost), gpu->stream));
    return leave(gpu, runtime, fine && launch(gpu, code, run));
}
