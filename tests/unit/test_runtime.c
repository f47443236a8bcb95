/* The runtime without a compiler: kernels, bodies and tapes are written in C here, against the same
 * structs. */
#include "runtime/runtime.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void assert_error(Runtime *runtime, const char *expected) {
    char *error = runtime_take_error(runtime);
    assert_non_null(error);
    assert_string_equal(error, expected);
    free(error);
}

static Runtime *with_workers(int workers) {
    RuntimeConfig config = {.workers = workers};
    Runtime *runtime = runtime_new(&config);
    assert_non_null(runtime);
    return runtime;
}

/* ---- dispatch */

typedef struct Seen {
    atomic_int visits[64];
    int order[64];
    atomic_int count;
} Seen;

static void note_groups(const RtContext *context, uint64_t first, uint64_t end) {
    Seen *seen = context->args[0];
    for (uint64_t group = first; group < end; group++) {
        atomic_fetch_add(&seen->visits[group], 1);
        seen->order[atomic_fetch_add(&seen->count, 1)] = (int)group;
    }
}

/* Whose sums are plain: groups are run in turn, however many threads there are. */
static void test_alone(void **state) {
    (void)state;
    Runtime *runtime = with_workers(4);
    RtKernel kernel = {.run = note_groups, .group_size = {1, 1, 1}, .alone = 1};
    uint32_t groups[3] = {8, 8, 1};
    for (int round = 0; round < 100; round++) {
        Seen seen = {.count = 0};
        void *args[] = {&seen};
        assert_true(runtime_dispatch(runtime, &kernel, groups, args));
        for (int i = 0; i < 64; i++) assert_int_equal(seen.order[i], i);
    }
    runtime_free(runtime);
}

/* A child of fork has none of the workers: it makes its own, and does not wait for those when it ends. */
static void test_child_of_fork(void **state) {
    (void)state;
    Runtime *runtime = with_workers(4);
    RtKernel kernel = {.run = note_groups, .group_size = {1, 1, 1}};
    uint32_t groups[3] = {8, 8, 1};
    Seen seen = {.count = 0}, again = {.count = 0};
    assert_true(runtime_dispatch(runtime, &kernel, groups, (void *[]){&seen}));
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        bool fine = runtime_dispatch(runtime, &kernel, groups, (void *[]){&again}) && again.count == 64;
        runtime_free(runtime);
        _exit(fine ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    runtime_free(runtime);
}

static void test_every_group_once(void **state) {
    (void)state;
    for (int workers = 1; workers <= 5; workers++) {
        Runtime *runtime = with_workers(workers);
        RtKernel kernel = {.run = note_groups, .group_size = {1, 1, 1}};
        uint32_t groups[3] = {4, 4, 4};
        for (int round = 0; round < 20; round++) {
            Seen seen = {.count = 0};
            void *args[] = {&seen};
            assert_true(runtime_dispatch(runtime, &kernel, groups, args));
            assert_int_equal(seen.count, 64);
            for (int i = 0; i < 64; i++) assert_int_equal(seen.visits[i], 1);
            for (int i = 0; workers == 1 && i < 64; i++) assert_int_equal(seen.order[i], i);
        }
        runtime_free(runtime);
    }
}

static void never(const RtContext *context, uint64_t first, uint64_t end) {
    (void)context, (void)first, (void)end;
    fail_msg("a group ran");
}

static void test_no_groups_and_stop(void **state) {
    (void)state;
    Runtime *runtime = with_workers(2);
    RtKernel kernel = {.run = never, .group_size = {1, 1, 1}};
    uint32_t none[3] = {5, 0, 5}, some[3] = {5, 1, 5}, many[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    assert_true(runtime_dispatch(runtime, &kernel, none, NULL));
    runtime_stop(runtime, true);
    assert_false(runtime_dispatch(runtime, &kernel, some, NULL));
    assert_null(runtime_take_error(runtime));
    runtime_stop(runtime, false);
    assert_false(runtime_dispatch(runtime, &kernel, many, NULL));
    assert_error(runtime, "the dispatch has too many groups");
    assert_null(runtime_take_error(runtime));
    runtime_free(runtime);
}

/* ---- sums in copies of buffers */

static void add_up(const RtContext *context, uint64_t first, uint64_t end) {
    const RtBuffer *singles = context->args[1], *doubles = context->args[2];
    for (uint64_t group = first; group < end; group++) {
        if (group == *(const uint64_t *)context->args[0]) rt_abort(context, "no more", 7);
        ((float *)singles->data)[group % singles->count] += 1.0F / (float)(group + 1);
        ((double *)doubles->data)[group % 2] += 1.0 / (double)(group + 1);
    }
}

typedef struct Summed {
    float singles[7];
    double doubles[2];
    RtBuffer buffers[2];
    RtBuffer *indirect;
    uint64_t last; /* group that is allowed */
    uint64_t work; /* of a thread, as far as is known */
} Summed;

/* One buffer is found in a uniform, the other at a pointer there. */
static bool sum_up(int workers, Summed *summed, uint64_t count) {
    Runtime *runtime = with_workers(workers);
    *summed = (Summed){.singles = {[3] = 100, [5] = -0.0F}, .last = summed->last, .work = summed->work};
    summed->buffers[0] = (RtBuffer){summed->singles, count},
    summed->buffers[1] = (RtBuffer){summed->doubles, 2};
    summed->indirect = summed->buffers;
    const RtSum sums[] = {
        {.base = (char *)summed->buffers, .offsets = {0}, .nsteps = 1, .size = 4, .stride = 4},
        {.base = (char *)&summed->indirect, .offsets = {0, 16}, .nsteps = 2, .size = 8, .stride = 16}};
    RtKernel kernel = {
        .run = add_up, .group_size = {1, 1, 1}, .nargs = 1, .nsums = 2, .sums = sums, .work = summed->work};
    void *args[] = {&summed->last};
    bool finished = runtime_dispatch(runtime, &kernel, (uint32_t[]){1000, 3, 1}, args);
    if (!finished) assert_error(runtime, "no more");
    runtime_free(runtime);
    return finished;
}

static void check_one_order(uint64_t work) {
    Summed one = {.last = UINT64_MAX, .work = work}, other = one;
    assert_true(sum_up(1, &one, 5));
    for (int workers = 2; workers <= 9; workers++) {
        assert_true(sum_up(workers, &other, 5));
        assert_memory_equal(one.singles, other.singles, sizeof one.singles);
        assert_memory_equal(one.doubles, other.doubles, sizeof one.doubles);
    }
    assert_true(fabs(one.doubles[0] + one.doubles[1] - 8.583749) < 1e-5);
    assert_true(one.singles[3] > 101 && one.singles[3] < 103);
    assert_true(signbit(one.singles[5])); /* out of the buffer */
}

static void test_sums_have_one_order(void **state) {
    (void)state;
    check_one_order(0);
    check_one_order(1); /* few chunks pay */
    check_one_order(1000);
}

/* Counts, in the first argument, how often it is given other memory than the time before. */
static void count_memory(const RtContext *context, uint64_t first, uint64_t end) {
    const RtBuffer *buffer = context->args[1];
    int *changes = context->args[0];
    float *numbers = buffer->data;
    *changes += numbers[0] == 0 && signbit(numbers[0]);
    for (uint64_t group = first; group < end; group++) numbers[0] += 1;
}

/* On one worker: how many chunks had copies. */
static int chunks_with_copies(uint64_t work, uint32_t groups) {
    Runtime *runtime = with_workers(1);
    static float numbers[1000];
    numbers[0] = 0;
    RtBuffer buffer = {numbers, 1000};
    RtSum sum = {.base = (char *)&buffer, .nsteps = 1, .size = 4, .stride = 4};
    RtKernel kernel = {
        .run = count_memory, .group_size = {1, 1, 1}, .nargs = 1, .nsums = 1, .sums = &sum, .work = work};
    int changes = 0;
    void *args[] = {&changes};
    assert_true(runtime_dispatch(runtime, &kernel, (uint32_t[]){groups, 1, 1}, args));
    assert_float_equal(numbers[0], (float)groups, 0);
    runtime_free(runtime);
    return changes;
}

/* Where little is done for each number, there is less to add up. */
static void test_small_dispatches_have_few_copies(void **state) {
    (void)state;
    assert_int_equal(chunks_with_copies(0, 1000), 15);
    assert_int_equal(chunks_with_copies(10, 1000), 0);
    assert_int_equal(chunks_with_copies(200, 1000), 2);
    assert_int_equal(chunks_with_copies(100000, 1000), 15);
    assert_int_equal(chunks_with_copies(20, 160000), 13);
}

static void test_sums_are_dropped_after_an_error(void **state) {
    (void)state;
    for (int workers = 1; workers <= 4; workers++) {
        Summed summed = {.last = 1500};
        assert_false(sum_up(workers, &summed, 5));
        assert_true(summed.doubles[1] < 8);
    }
}

static void note_worker(const RtContext *context, uint64_t first, uint64_t end) {
    const RtBuffer *buffer = context->args[1];
    RtThread **only = context->args[0];
    assert_true(*only == NULL || *only == context->owner);
    *only = context->owner;
    for (uint64_t group = first; group < end; group++) ((float *)buffer->data)[0] += 1;
}

static void test_buffers_too_large_for_copies(void **state) {
    (void)state;
    Runtime *runtime = with_workers(3);
    static float numbers[20000];
    RtBuffer buffer = {numbers, 20000};
    RtThread *only = NULL;
    RtSum sum = {.base = (char *)&buffer, .nsteps = 1, .size = 4, .stride = 4};
    RtKernel kernel = {.run = note_worker, .group_size = {1, 1, 1}, .nargs = 1, .nsums = 1, .sums = &sum};
    const uint32_t few[] = {159999, 1, 1}, many[] = {160000, 1, 1};
    void *args[] = {&only};
    assert_int_equal(runtime_large_sums(runtime, &kernel, few, args), 1);
    assert_int_equal(runtime_large_sums(runtime, &kernel, many, args), 0);
    assert_int_equal(runtime_large_sums(runtime, &kernel, (uint32_t[]){1, 1, 1}, args), 0);
    assert_true(runtime_dispatch(runtime, &kernel, few, args));
    assert_float_equal(numbers[0], 159999, 0);
    buffer.count = (4 << 20) + 1;
    kernel.group_size[0] = 1 << 20;
    assert_int_equal(runtime_large_sums(runtime, &kernel, many, args), 1);
    buffer.count = 1; /* one number that no memory has room for */
    sum.size = sum.stride = (uint64_t)1 << 42;
    assert_false(runtime_dispatch(runtime, &kernel, many, args));
    assert_error(runtime, "out of memory for sums of a dispatch");
    runtime_free(runtime);
}

/* Of many numbers there are copies where as much is done as makes two chunks pay, which take not too much memory. */
static void test_many_numbers_have_copies_that_pay(void **state) {
    (void)state;
    Runtime *runtime = with_workers(3);
    static float numbers[20000];
    RtBuffer buffer = {numbers, 20000};
    int changes = 0;
    RtSum sum = {.base = (char *)&buffer, .nsteps = 1, .size = 4, .stride = 4};
    RtKernel kernel = {.run = count_memory, .group_size = {1, 1, 1}, .nargs = 1, .nsums = 1, .sums = &sum};
    const uint32_t groups[] = {1000, 1, 1};
    void *args[] = {&changes};
    kernel.least = 3839; /* 4 * 48 operations for each number */
    assert_int_equal(runtime_large_sums(runtime, &kernel, groups, args), 1);
    kernel.least = 3840;
    assert_int_equal(runtime_large_sums(runtime, &kernel, groups, args), 0);
    buffer.count = (16 << 20) + 1;
    kernel.least = 1 << 30;
    assert_int_equal(runtime_large_sums(runtime, &kernel, groups, args), 1);
    buffer.count = 16 << 20;
    assert_int_equal(runtime_large_sums(runtime, &kernel, groups, args), 0);
    runtime_free(runtime);
    runtime = with_workers(1);
    buffer.count = 20000;
    kernel.least = 16 * 48 * 20;
    assert_true(runtime_dispatch(runtime, &kernel, groups, args));
    assert_int_equal(changes, 3);
    assert_float_equal(numbers[0], 1000, 0);
    runtime_free(runtime);
}

static void fail_at_20(const RtContext *context, uint64_t first, uint64_t end) {
    Seen *seen = context->args[0];
    for (uint64_t group = first; group < end; group++) {
        if (group == 20) {
            rt_tape_open(context);
            rt_abort(context, "at twenty, and more", 9);
        }
        atomic_fetch_add(&seen->count, 1);
    }
}

static void test_abort_ends_dispatch(void **state) {
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        Runtime *runtime = with_workers(workers);
        RtKernel failing = {.run = fail_at_20, .group_size = {1, 1, 1}},
                 fine = {.run = note_groups, .group_size = {1, 1, 1}};
        uint32_t groups[3] = {64, 1, 1};
        Seen seen = {.count = 0};
        void *args[] = {&seen};
        assert_false(runtime_dispatch(runtime, &failing, groups, args));
        assert_error(runtime, "at twenty");
        assert_true(seen.count < 64);
        seen.count = 0;
        assert_true(runtime_dispatch(runtime, &fine, groups, args));
        assert_int_equal(seen.count, 64);
        runtime_free(runtime);
    }
}

/* Several threads of the host dispatch at the same time. */
typedef struct Host {
    Runtime *runtime;
    Seen seen;
} Host;

static void *dispatch_often(void *data) {
    Host *host = data;
    RtKernel kernel = {.run = note_groups, .group_size = {1, 1, 1}};
    uint32_t groups[3] = {64, 1, 1};
    void *args[] = {&host->seen};
    for (int round = 0; round < 50; round++) {
        host->seen.count = 0;
        if (!runtime_dispatch(host->runtime, &kernel, groups, args) || host->seen.count != 64) return NULL;
    }
    return data;
}

static void test_dispatch_from_many_threads(void **state) {
    (void)state;
    Runtime *runtime = with_workers(3);
    pthread_t threads[4];
    Host *hosts = calloc(4, sizeof *hosts);
    for (int i = 0; i < 4; i++) {
        hosts[i].runtime = runtime;
        assert_int_equal(pthread_create(&threads[i], NULL, dispatch_often, &hosts[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    free(hosts);
    runtime_free(runtime);
}

/* ---- barriers */

enum { WIDTH = 6 };

static void rotate(const RtContext *context) {
    int *cells = (int *)(void *)context->shared;
    int *out = context->args[0];
    uint32_t me = context->local_index, next = (me + 1) % WIDTH;
    assert_int_equal(cells[me], 0);
    rt_barrier(context);
    cells[me] = (int)context->thread_id[0];
    for (int round = 0; round < 10; round++) {
        rt_barrier(context);
        int value = cells[next];
        rt_barrier(context);
        cells[me] = value;
    }
    out[context->thread_id[0]] = cells[me];
}

static void test_barriers(void **state) {
    (void)state;
    for (int workers = 1; workers <= 3; workers++) {
        Runtime *runtime = with_workers(workers);
        RtKernel kernel = {.thread = rotate,
                           .group_size = {3, 2, 1},
                           .shared_align = 16,
                           .shared_size = WIDTH * sizeof(int)};
        uint32_t groups[3] = {20, 1, 1};
        int out[20 * 3] = {0};
        void *args[] = {out};
        assert_true(runtime_dispatch(runtime, &kernel, groups, args));
        for (int i = 0; i < 60; i++) {
            int group = i / 3, low = group * 3;
            assert_in_range(out[i], low, low + 2);
        }
        runtime_free(runtime);
    }
}

static void leaves_early(const RtContext *context) {
    if (context->local_index == 1) return;
    rt_barrier(context);
}

static void fails_inside(const RtContext *context) {
    rt_barrier(context);
    RtTape *tape = rt_tape_open(context);
    rt_tape_more(tape, 6, 100);
    rt_barrier(context);
    if (context->local_index == 2) rt_abort(context, "inside", 6);
    rt_barrier(context);
    rt_tape_close(tape);
}

static void test_barrier_errors(void **state) {
    (void)state;
    Runtime *runtime = with_workers(2);
    RtKernel early = {.thread = leaves_early, .group_size = {3, 1, 1}},
             failing = {.thread = fails_inside, .group_size = {4, 1, 1}};
    uint32_t groups[3] = {1, 1, 1};
    for (int round = 0; round < 3; round++) {
        assert_false(runtime_dispatch(runtime, &early, groups, NULL));
        assert_error(
            runtime,
            "a group barrier was reached by 2 of the 3 threads of group (0, 0, 0); the others have ended");
        assert_false(runtime_dispatch(runtime, &failing, groups, NULL));
        assert_error(runtime, "inside");
    }
    runtime_free(runtime);
}

/* ---- tapes */

static void push(RtTape *tape, int64_t value) {
    RtStack *stack = &tape->stacks[7]; /* int64 */
    if (stack->count == stack->room) rt_tape_more(tape, 7, 1);
    ((int64_t *)(void *)stack->data)[stack->count++] = value;
}

static int64_t pop(RtTape *tape) {
    RtStack *stack = &tape->stacks[7];
    return ((int64_t *)(void *)stack->data)[--stack->count];
}

static void fill_and_empty(const RtContext *context, void *const *args) {
    int64_t count = *(int64_t *)args[0], wrong = 0;
    RtTape *outer = rt_tape_open(context), *inner = rt_tape_open(context);
    for (int64_t i = 0; i < count; i++) {
        push(outer, i);
        if (i % 3 == 0) push(inner, -i);
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        wrong += pop(outer) != i;
        if (i % 3 == 0) wrong += pop(inner) != -i;
    }
    rt_tape_close(inner);
    rt_tape_close(outer);
    *(int64_t *)args[1] = wrong;
}

static void test_tapes_grow(void **state) {
    (void)state;
    Runtime *runtime = runtime_new(NULL);
    int64_t wrong = -1, counts[] = {0, 1, 8192, 8193, 3000000};
    for (int i = 0; i < 5; i++) {
        void *args[] = {&counts[i], &wrong};
        assert_true(runtime_call(runtime, fill_and_empty, args));
        assert_int_equal(wrong, 0);
    }
    /* The memory is kept and used again. */
    uint64_t bytes = runtime_tape_bytes(runtime);
    void *args[] = {&counts[4], &wrong};
    assert_true(bytes >= 3000000 * 8);
    assert_true(runtime_call(runtime, fill_and_empty, args));
    assert_int_equal(runtime_tape_bytes(runtime), bytes);
    runtime_free(runtime);
}

static void test_tape_limit(void **state) {
    (void)state;
    RuntimeConfig config = {.tape_limit = 10 << 20};
    Runtime *runtime = runtime_new(&config);
    int64_t wrong = -1, many = 3000000, few = 1000, most = 900000;
    void *args[] = {&many, &wrong}, *next[] = {&few, &wrong}, *near[] = {&most, &wrong};
    for (int round = 0; round < 3; round++) {
        assert_false(runtime_call(runtime, fill_and_empty, args));
        assert_error(runtime, "a reverse pass needs more than the 10 MiB allowed for its storage");
        assert_true(runtime_call(runtime, fill_and_empty, next));
        assert_int_equal(wrong, 0);
        /* 9.6 MB: fits only if what others were granted and do not use is taken back */
        assert_true(runtime_call(runtime, fill_and_empty, near));
        assert_int_equal(wrong, 0);
    }
    runtime_free(runtime);
}

static void *fill_in_thread(void *data) {
    int64_t wrong = -1, count = 900000;
    void *args[] = {&count, &wrong};
    return runtime_call(data, fill_and_empty, args) && wrong == 0 ? data : NULL;
}

/* Tapes that wait in one thread are given up for another. */
static void test_tapes_of_other_threads(void **state) {
    (void)state;
    RuntimeConfig config = {.tape_limit = 10 << 20};
    Runtime *runtime = runtime_new(&config);
    pthread_t thread;
    void *result = NULL;
    assert_ptr_equal(fill_in_thread(runtime), runtime);
    pthread_create(&thread, NULL, fill_in_thread, runtime);
    pthread_join(thread, &result);
    assert_ptr_equal(result, runtime);
    assert_ptr_equal(fill_in_thread(runtime), runtime);
    runtime_free(runtime);
}

static void open_deeply(const RtContext *context, void *const *args) {
    enum { DEPTH = 3000 };
    static RtTape *tapes[DEPTH];
    int64_t wrong = 0;
    for (int i = 0; i < DEPTH; i++) push(tapes[i] = rt_tape_open(context), i);
    for (int i = 0; i < DEPTH; i++) push(tapes[i], 2 * i);
    for (int i = DEPTH - 1; i >= 0; i--) {
        wrong += pop(tapes[i]) != 2 * i;
        wrong += pop(tapes[i]) != i;
        rt_tape_close(tapes[i]);
    }
    *(int64_t *)args[0] = wrong;
}

static void test_many_tapes(void **state) {
    (void)state;
    Runtime *runtime = runtime_new(NULL);
    int64_t wrong = -1;
    void *args[] = {&wrong};
    for (int round = 0; round < 2; round++) {
        assert_true(runtime_call(runtime, open_deeply, args));
        assert_int_equal(wrong, 0);
    }
    runtime_free(runtime);
}

#if !defined(__SANITIZE_ADDRESS__)
static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * 4096;
}

/* With little address space, ranges are small and stacks move when they outgrow them. */
static void test_little_address_space(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = address_space() + ((rlim_t)400 << 20);
    Runtime *runtime = runtime_new(NULL);
    int64_t wrong = -1, count = 5000000;
    void *args[] = {&count, &wrong};
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    bool fine = runtime_call(runtime, fill_and_empty, args);
    setrlimit(RLIMIT_AS, &before);
    assert_true(fine);
    assert_int_equal(wrong, 0);
    runtime_free(runtime);
}

/* A deep stack leaves half of it to tapes, however much there is. */
static void test_deep_stack_leaves_address_space(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    for (rlim_t size = (rlim_t)300 << 20; size < (rlim_t)1300 << 20; size += (rlim_t)50 << 20) {
        small = before;
        small.rlim_cur = address_space() + size;
        assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
        DeepStack *stack = stack_new((size_t)1 << 30);
        size_t left = size / 20 * 9; /* some is taken by now */
        void *range = mmap(NULL, left, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        setrlimit(RLIMIT_AS, &before);
        assert_non_null(stack);
        assert_ptr_not_equal(range, MAP_FAILED);
        munmap(range, left);
        stack_free(stack);
    }
}
#endif

/* ---- output */

typedef struct Written {
    char text[4096];
    size_t length;
} Written;

static void take_text(void *user, const char *text, size_t length) {
    Written *written = user;
    if (written->length + length < sizeof written->text)
        memcpy(written->text + written->length, text, length);
    written->length += length;
}

static uint64_t bits_of(double real) {
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static void print_some(const RtContext *context, void *const *args) {
    static const RtPrintArg kinds[] = {{RT_PRINT_int, 1}, {RT_PRINT_double, 2}, {RT_PRINT_uint64, 1}};
    const uint64_t values[] = {(uint64_t)-7, bits_of(0.5), bits_of(1e30), UINT64_MAX};
    const char *format = args[0];
    rt_print(context, format, (int64_t)strlen(format), kinds, 3, values);
}

static void assert_prints(const char *format, const char *expected) {
    Written *written = calloc(1, sizeof *written);
    RuntimeConfig config = {.write = take_text, .user = written};
    Runtime *runtime = runtime_new(&config);
    void *args[] = {(void *)(uintptr_t)format};
    assert_true(runtime_call(runtime, print_some, args));
    assert_string_equal(written->text, expected);
    runtime_free(runtime);
    free(written);
}

static void test_printing(void **state) {
    (void)state;
    assert_prints("%d|%g|%llu", "-7|0.5, 1e+30|18446744073709551615");
    assert_prints("%g %d %x", "-7 0, 9223372036854775807 ffffffffffffffff");
    assert_prints("%s %s %s", "-7 0.5, 1e+30 18446744073709551615");
    assert_prints("%u %c", "4294967289 \0");
    assert_prints("%08.3f|%-12d|", "-007.000|0           , 9223372036854775807|");
    assert_prints("%5%|%z|%", "%5%|%z|%");
    assert_prints("%-+ #0-+ #0d", "-7");
    assert_prints(
        "%.300d",
        "-000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "000000000007");
    assert_prints("%s%s%s%s", "-70.5, 1e+3018446744073709551615%s");
}

static void print_lines(const RtContext *context, uint64_t first, uint64_t end) {
    static const RtPrintArg kinds[] = {{RT_PRINT_uint64, 1}};
    for (uint64_t group = first; group < end; group++) rt_print(context, "<%u>", 4, kinds, 1, &group);
}

static void test_printing_is_not_mixed(void **state) {
    (void)state;
    Written *written = calloc(1, sizeof *written);
    RuntimeConfig config = {.workers = 4, .write = take_text, .user = written};
    Runtime *runtime = runtime_new(&config);
    RtKernel kernel = {.run = print_lines, .group_size = {1, 1, 1}};
    uint32_t groups[3] = {500, 1, 1};
    bool seen[500] = {false};
    assert_true(runtime_dispatch(runtime, &kernel, groups, NULL));
    int count = 0, used;
    unsigned number;
    for (const char *at = written->text; sscanf(at, "<%u>%n", &number, &used) == 1; at += used, count++) {
        assert_true(number < 500 && !seen[number]);
        seen[number] = true;
    }
    assert_int_equal(count, 500);
    runtime_free(runtime);
    free(written);
}

/* ---- buffers, memory, nested calls */

static void test_buffers(void **state) {
    (void)state;
    RtBuffer buffer = runtime_buffer_new(10, 12), empty = runtime_buffer_new(0, 4);
    assert_non_null(buffer.data);
    assert_non_null(empty.data);
    assert_int_equal(buffer.count, 10);
    assert_int_equal((uintptr_t)buffer.data % 64, 0);
    for (int i = 0; i < 120; i++) assert_int_equal(((char *)buffer.data)[i], 0);
    memset(buffer.data, 255, 120);
    assert_int_equal(*runtime_buffer_counter(buffer), 0);
    *runtime_buffer_counter(buffer) = 7;
    assert_int_equal(*(uint32_t *)(void *)((char *)buffer.data - 16), 7);
    assert_null(runtime_buffer_new(UINT64_MAX / 2, 16).data);
    runtime_buffer_free(buffer);
    runtime_buffer_free(empty);
}

static void take_and_fail(const RtContext *context, void *const *args) {
    char *memory = rt_memory_take(context, 100000);
    for (int i = 0; i < 100000; i++) assert_int_equal(memory[i], 0);
    memory[99999] = 1;
    if (*(int *)args[0]) rt_abort(context, "after taking", 12);
    rt_memory_give(memory);
}

/* The inner call fails; the outer one goes on with its own tape. */
static void call_inside(const RtContext *context, void *const *args) {
    int yes = 1;
    void *inner[] = {&yes};
    RtTape *tape = rt_tape_open(context);
    push(tape, 3);
    *(bool *)args[1] = runtime_call(args[0], take_and_fail, inner);
    *(int64_t *)args[2] = pop(tape);
    rt_tape_close(tape);
}

static void test_nested_calls(void **state) {
    (void)state;
    Runtime *runtime = runtime_new(NULL);
    int no = 0;
    bool inner = true;
    int64_t kept = 0;
    void *plain[] = {&no}, *args[] = {runtime, &inner, &kept};
    assert_true(runtime_call(runtime, take_and_fail, plain));
    assert_true(runtime_call(runtime, call_inside, args));
    assert_false(inner);
    assert_int_equal(kept, 3);
    assert_error(runtime, "after taking");
    runtime_free(runtime);
}

static void make_tensors(const RtContext *context, void *const *args) {
    char *kept = rt_made_take(context, 100), *last = rt_made_take(context, 0);
    for (int i = -RT_BUFFER_HEADER; i < 100; i++) assert_int_equal(kept[i], 0);
    memset(kept - RT_BUFFER_HEADER, 1, 100 + RT_BUFFER_HEADER);
    *(char **)args[0] = kept;
    rt_made_return(context, args[0], sizeof kept);
    rt_made_return(context, args[0], sizeof kept - 1);
    if (*(int *)args[1] == 1) rt_made_constants(context); /* of what is left, the empty one */
    if (*(int *)args[1] == 2) rt_abort(context, "after taking", 12);
    assert_non_null(last);
}

/* The sanitizer tells what is freed too early, twice or never. */
static void test_made_tensors(void **state) {
    (void)state;
    Runtime *runtime = runtime_new(NULL);
    for (int way = 0; way < 3; way++) {
        char *kept = NULL;
        void *args[] = {&kept, &way};
        assert_int_equal(runtime_call(runtime, make_tensors, args), way < 2);
        assert_int_equal(kept[99], 1);
        free(kept - RT_BUFFER_HEADER);
    }
    assert_error(runtime, "after taking");
    runtime_free(runtime);
}

static void count_error(void *user, const char *text) { *(int *)user += strcmp(text, "after taking") == 0; }

static void test_errors_are_handed_over(void **state) {
    (void)state;
    int errors = 0, yes = 1;
    RuntimeConfig config = {.failed = count_error, .user = &errors};
    Runtime *runtime = runtime_new(&config);
    void *args[] = {&yes};
    for (int i = 0; i < 3; i++) assert_false(runtime_call(runtime, take_and_fail, args));
    assert_int_equal(errors, 3);
    assert_null(runtime_take_error(runtime));
    runtime_free(runtime);
}

static void test_runtime_made_on_demand(void **state) {
    (void)state;
    Runtime *slot = NULL;
    int no = 0;
    void *args[] = {&no};
    rt_call(&slot, take_and_fail, args);
    assert_non_null(slot);
    runtime_free(slot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_group_once),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_child_of_fork),
        cmocka_unit_test(test_no_groups_and_stop),
        cmocka_unit_test(test_abort_ends_dispatch),
        cmocka_unit_test(test_sums_have_one_order),
        cmocka_unit_test(test_small_dispatches_have_few_copies),
        cmocka_unit_test(test_sums_are_dropped_after_an_error),
        cmocka_unit_test(test_buffers_too_large_for_copies),
        cmocka_unit_test(test_many_numbers_have_copies_that_pay),
        cmocka_unit_test(test_dispatch_from_many_threads),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_barrier_errors),
        cmocka_unit_test(test_tapes_grow),
        cmocka_unit_test(test_tape_limit),
        cmocka_unit_test(test_tapes_of_other_threads),
        cmocka_unit_test(test_many_tapes),
#if !defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(test_little_address_space),
        cmocka_unit_test(test_deep_stack_leaves_address_space),
#endif
        cmocka_unit_test(test_printing),
        cmocka_unit_test(test_printing_is_not_mixed),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_nested_calls),
        cmocka_unit_test(test_made_tensors),
        cmocka_unit_test(test_errors_are_handed_over),
        cmocka_unit_test(test_runtime_made_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
