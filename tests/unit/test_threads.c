/* The API's promises about threads: slope_stop ends whatever runs, from any thread and soon; sessions in
 * several threads do not meet. The thread sanitizer watches this one (make test). */
#include "slope.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* What this process has computed so far, in ms: others may use the machine as they like. */
static double worked(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void sleep_ms(int milliseconds) {
    nanosleep(&(struct timespec){milliseconds / 1000, (long)(milliseconds % 1000) * 1000000}, NULL);
}

/* ---- stopping */

typedef struct Stopper {
    SlopeSession *session;
    double worked; /* when it was told */
    atomic_bool ended;
} Stopper;

/* On a machine with much to do it may be told before it has begun, which does nothing: then it is told
 * again. */
static void *stop_soon(void *user) {
    Stopper *stopper = user;
    sleep_ms(20);
    while (!atomic_load(&stopper->ended)) {
        slope_stop(stopper->session);
        stopper->worked = worked(); /* not before: this thread may have to wait */
        for (int i = 0; i < 400 && !atomic_load(&stopper->ended); i++) sleep_ms(5);
    }
    return NULL;
}

/* What nobody would wait for. `run` is called or dispatched; what it computes is used, so that it must be
 * computed. */
typedef struct Endless {
    const char *what;
    const char *text;
    bool waits; /* at barriers: stacks that the thread sanitizer does not know */
} Endless;

static const Endless endless[] = {
    {"a loop without a condition",
     "RWStructuredBuffer<int> b; void run() { int i = 0; while (true) { i = i * 3 + 1; b[0] = i; } }", false},
    {"a loop that does nothing",
     "RWStructuredBuffer<int> b; void run() { int i = 1; while (i != 0) i += 2; b[0] = i; }", false},
    {"a loop that counts far",
     "RWStructuredBuffer<int> b; void run() { int64_t s = 0; for (int64_t i = 0; i < 4000000000000ll; i++) s "
     "^= i * b[int(i & 1)]; b[0] = int(s); }",
     false},
    {"a loop that counts down",
     "RWStructuredBuffer<int> b; void run() { int64_t s = 0; for (int64_t i = 4000000000000ll; i > 0; i--) s "
     "^= i * b[int(i & 1)]; b[0] = int(s); }",
     false},
    {"a loop that passes the end of the numbers",
     "RWStructuredBuffer<int> b; void run() { int s = 0; for (int i = 0; i <= 2147483647; i++) s ^= i * b[i "
     "& 1]; b[0] = s; }",
     false},
    {"a loop whose steps never meet its end",
     "RWStructuredBuffer<int> b; void run() { int s = 0; for (uint8_t i = uint8_t(2); i < uint8_t(255 + b[1] "
     "- b[0]); "
     "i += uint8_t(4)) s = s * 3 + i; b[0] = s; }",
     false},
    {"a loop whose large steps pass the end of the numbers",
     "RWStructuredBuffer<int> b; void run() { int s = 0, n = 2147483646 + b[0] - b[1]; for (int i = 0; i <= "
     "n; i += 5) s "
     "= s * 3 + b[i & 1]; b[0] = s; }",
     false},
    {"a loop that counts to a near end, but not in every round",
     "RWStructuredBuffer<int> b; void run() { int i = 0, s = 1; while (i < 100 && s != 0) { s = s * 3 | 1; "
     "if "
     "(s == 0) i++; } b[0] = i; }",
     false},
    {"a loop that counts far beside another condition",
     "RWStructuredBuffer<int> b; void run() { int s = 1; for (int64_t i = 0; i < 4000000000000ll && s != 0; "
     "i++) s = (s * 3 + b[int(i & 1)]) | 1; b[0] = s; }",
     false},
    {"a derivative of a loop that leaves early, if at all",
     "RWStructuredBuffer<int> b; [Differentiable] float f(float x, int64_t n) { float y = x; for (int64_t i "
     "= "
     "0; i < n; i++) { y = y * 0.5 + 1; if (y == 0) break; } return y; }\n"
     "void run() { b[0] = int(fwd_diff(f)(diffPair(1.0f, 1.0f), 4000000000000ll + b[0]).d); }",
     false},
    {"loops of a few rounds in each other",
     "RWStructuredBuffer<int> b; void run() { int s = 0;\n"
     "for (int i = 0; i < 1000; i++) for (int j = 0; j < 1000; j++) for (int k = 0; k < 1000; k++) for (int "
     "l = 0; l < 1000; l++)\n"
     "s = s * 5 + b[(i + j + k + l) & 1]; b[0] = s; }",
     false},
    {"a loop of short loops",
     "RWStructuredBuffer<int> b; void run() { int s = 0; for (int64_t i = 0; i < 4000000000000ll; i++) for "
     "(int k = 0; k < b[1]; k++) s += k; b[0] = s; }",
     false},
    {"calls without loops",
     "RWStructuredBuffer<int> b; int f0(int x) { return x * b[x & 1] + 1; }\n"
#define CALLS(n, m) "[noinline] int f" #n "(int x) { return f" #m "(f" #m "(f" #m "(f" #m "(x + 1)))); }\n"
     CALLS(1, 0) CALLS(2, 1) CALLS(3, 2) CALLS(4, 3) CALLS(5, 4) CALLS(6, 5) CALLS(7, 6) CALLS(8, 7)
         CALLS(9, 8) CALLS(10, 9) CALLS(11, 10) CALLS(12, 11) CALLS(13, 12) CALLS(14, 13) CALLS(15, 14)
             CALLS(16, 15) CALLS(17, 16) "void run() { b[0] = f17(b[0]); }",
     false},
    {"a derivative",
     "RWStructuredBuffer<int> b; [Differentiable] float f(float x) { float y = x; while (y != 0) y = y * 0.5 "
     "+ 1; return y; }\n"
     "void run() { var p = diffPair(1.0f); bwd_diff(f)(p, 1.0f); b[0] = int(p.d); }",
     false},
    {"many threads of a group",
     "RWStructuredBuffer<int> b; [numthreads(1024, 1, 1)] void run(uint3 id : SV_DispatchThreadID) { int s = "
     "0; for (int i = 0; i < 100000000; i++) s = s * 3 + b[i & 1]; b[0] = s; }",
     false},
    {"recursion",
     "RWStructuredBuffer<int> b; int f(int n) { return n < 2 ? b[n] + 1 : f(n - 1) + f(n - 2); } void run() "
     "{ b[0] = f(90); }",
     true},
    {"barriers without end",
     "RWStructuredBuffer<int> b; [numthreads(8, 1, 1)] void run() { while (b[0] == b[1]) "
     "GroupMemoryBarrierWithGroupSync(); }",
     true},
    {"a loop beside barriers",
     "RWStructuredBuffer<int> b; [numthreads(8, 1, 1)] void run() { int i = 1; "
     "GroupMemoryBarrierWithGroupSync(); while (i != 0) i += 2; b[0] = i; }",
     true},
};

enum { INTERPRETED = -1 }; /* as a level of optimisation */

static SlopeSession *open_session(int level) {
    SlopeSession *session;
    SlopeConfig config;
    slope_config_init(&config);
    config.interpret = level == INTERPRETED;
    config.optimization = level == INTERPRETED ? 3 : level;
    config.threads = 2;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    return session;
}

static SlopeKernel *kernel_in(SlopeSession *session, const char *text, int32_t *data, size_t count) {
    SlopeProgram *program;
    SlopeKernel *kernel = NULL;
    SlopeBuffer *buffer;
    SlopeStatus status = slope_load_text(session, "t.slang", text, strlen(text), &program);
    if (status == SLOPE_STATUS_ok) status = slope_find_kernel(program, "run", &kernel);
    if (status == SLOPE_STATUS_ok) status = slope_kernel_prepare(kernel);
    if (status != SLOPE_STATUS_ok) fail_msg("%s", slope_messages(session));
    assert_int_equal(slope_buffer_new(session, count * sizeof *data, &buffer), SLOPE_STATUS_ok);
    memcpy(slope_buffer_data(buffer), data, count * sizeof *data);
    assert_int_equal(slope_bind_buffer(program, "b", buffer), SLOPE_STATUS_ok);
    return kernel;
}

/* How much was still done until it ended. */
static double stop_once(SlopeSession *session, SlopeKernel *kernel) {
    Stopper stopper = {session, 0, false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopper), 0);
    SlopeStatus status = slope_dispatch(kernel, 100000, 1, 1);
    double ended = worked();
    atomic_store(&stopper.ended, true);
    pthread_join(thread, NULL);
    assert_int_equal(status, SLOPE_STATUS_stopped);
    assert_non_null(strstr(slope_messages(session), "E7007"));
    slope_clear_messages(session);
    return ended - stopper.worked;
}

/* One of five times counts: it may be told before it has begun. */
static void stop_it(const Endless *program, int level) {
    SlopeSession *session = open_session(level);
    SlopeKernel *kernel = kernel_in(session, program->text, (int32_t[]){1, 1}, 2);
    double least = 1e9;
    for (int i = 0; i < 5 && least > 100; i++) {
        double took = stop_once(session, kernel);
        if (took < least) least = took;
    }
    if (least > 100) fail_msg("%s: did %g ms of work after it was told to end", program->what, least);
    slope_session_free(session);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
static const bool is_watched = true;
#else
static const bool is_watched = false;
#endif

static void whatever_runs_can_be_stopped(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
        for (int level = 0; level <= 3; level += 3)
            if (!is_watched || !endless[i].waits) stop_it(&endless[i], level);
}

/* The last five bits of the round in which a loop was stopped. */
static int32_t stopped_in_round(const char *end, const char *work) {
    SlopeSession *session;
    SlopeConfig config;
    char text[400];
    int32_t data[2] = {-1, 0};
    slope_config_init(&config);
    config.threads = 1;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    snprintf(text, sizeof text,
             "RWStructuredBuffer<int> b; void run() { int s = 1; float x = 1; for (int64_t i = 0; i %s "
             "4000000000000ll; i++) {\n"
             "for (int k = 0; k < 200; k++) s = s * 3 ^ k; %s; b[1] = s; b[0] = int(i & 31); } }",
             end, work);
    SlopeProgram *program;
    SlopeKernel *kernel;
    SlopeBuffer *buffer;
    assert_int_equal(slope_load_text(session, "t.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(program, "run", &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_kernel_prepare(kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_buffer_wrap(session, data, sizeof data, &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "b", buffer), SLOPE_STATUS_ok);
    stop_once(session, kernel);
    slope_session_free(session);
    return data[0];
}

/* 32 rounds of a loop that does much in one come between two looks, whatever ends it: as many as fill
 * vectors, so that none is left over in each part. */
static void parts_of_loops_fill_vectors(void **state) {
    (void)state;
    assert_int_equal(stopped_in_round("<", ""), 31);
    assert_int_equal(stopped_in_round("<=", ""), 31);
}

/* Where each waits for the one before, it is stopped in any. */
static void rounds_that_wait_look(void **state) {
    const int most = 50;
    int tries = 0;
    (void)state;
    while (tries < most &&
           stopped_in_round(
               "<", "x = cos(cos(cos(cos(cos(cos(cos(cos(cos(cos(x)))))))))) + 0.5; s += int(x)") == 31)
        tries++;
    assert_true(tries < most);
}

static void what_is_interpreted_can_be_stopped(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
        if (!is_watched || !endless[i].waits) stop_it(&endless[i], INTERPRETED);
}

static void check_calls_stopped(int level) {
    static const char text[] =
        "int run(int n) { int i = 1; while (i != n) i += 2; return i; } int one() { return 1; }";
    SlopeSession *session = open_session(level);
    SlopeProgram *program;
    SlopeFunction *run, *one;
    assert_int_equal(slope_load_text(session, "t.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "run", &run), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "one", &one), SLOPE_STATUS_ok);
    int32_t n = 3, result = 0;
    assert_int_equal(slope_call(run, (void *[]){&n, &result}), SLOPE_STATUS_ok);
    n = 0;
    Stopper stopper = {session, 0, false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopper), 0);
    assert_int_equal(slope_call(run, (void *[]){&n, &result}), SLOPE_STATUS_stopped);
    atomic_store(&stopper.ended, true);
    pthread_join(thread, NULL);
    assert_int_equal(slope_call(one, (void *[]){&result}), SLOPE_STATUS_ok);
    assert_int_equal(result, 1);
    n = 5;
    assert_int_equal(slope_call(run, (void *[]){&n, &result}), SLOPE_STATUS_ok);
    assert_int_equal(result, 5);
    slope_session_free(session);
}

static void calls_can_be_stopped(void **state) {
    (void)state;
    check_calls_stopped(3);
    check_calls_stopped(INTERPRETED);
}

/* Nothing runs: nothing is stopped, neither what runs next nor what is called by its address. */
static void a_stop_between_runs_does_nothing(void **state) {
    (void)state;
    static const char text[] =
        "RWStructuredBuffer<int> b; int count(int n) { int i = 1; while (i != n) i += 2; return i; }\n"
        "void run() { b[0] = count(b[1]); }";
    SlopeSession *session = open_session(0);
    slope_stop(session);
    SlopeKernel *kernel = kernel_in(session, text, (int32_t[]){0, 7}, 2);
    slope_stop(session);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    SlopeFunction *count;
    int32_t (*address)(int32_t);
    void *found;
    SlopeProgram *program;
    assert_int_equal(slope_load_text(session, "t.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "count", &count), SLOPE_STATUS_ok);
    assert_int_equal(slope_function_address(count, &found), SLOPE_STATUS_ok);
    memcpy(&address, &found, sizeof found);
    slope_stop(session);
    assert_int_equal(address(9), 9);
    slope_session_free(session);
}

/* ---- several sessions, and functions that are called by address from several threads */

static void *work_alone_at(atomic_int *wrong, int level) {
    static const char text[] =
        "[Differentiable] float f(float x) { float y = 1; for (int i = 0; i < 5; i++) y *= x; return y; }";
    SlopeSession *session = open_session(level);
    SlopeProgram *program;
    SlopeFunction *f;
    float pair[2] = {2, 0}, d = 1;
    bool fine = slope_load_text(session, "t.slang", text, strlen(text), &program) == SLOPE_STATUS_ok &&
                slope_find_function(program, "bwd_diff(f)", &f) == SLOPE_STATUS_ok &&
                slope_call(f, (void *[]){pair, &d}) == SLOPE_STATUS_ok && pair[1] == 80;
    if (!fine) atomic_fetch_add(wrong, 1);
    slope_session_free(session);
    return NULL;
}

static void *work_alone(void *user) {
    work_alone_at(user, INTERPRETED);
    return work_alone_at(user, 0);
}

static void sessions_do_not_meet(void **state) {
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    atomic_int wrong = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_alone, &wrong), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

typedef struct Caller {
    int32_t (*address)(int32_t);
    atomic_int *wrong;
} Caller;

static void *call_often(void *user) {
    Caller *caller = user;
    for (int i = 0; i < 200; i++) {
        int32_t given = i % 3 == 0 ? -1 : i;
        if (caller->address(given) != (given < 0 ? 0 : given * given)) atomic_fetch_add(caller->wrong, 1);
    }
    return NULL;
}

/* Errors of calls by address, in other threads, do not become those of a dispatch. */
static void errors_stay_in_their_thread(void **state) {
    (void)state;
    static const char text[] = "RWStructuredBuffer<int> b;\n"
                               "int square(int x) { if (x < 0) abort(\"negative\"); return x * x; }\n"
                               "void run(uint3 id : SV_DispatchThreadID) { b[id.x] = square(int(id.x)); }";
    SlopeSession *session = open_session(0);
    int32_t data[64] = {0};
    SlopeKernel *kernel = kernel_in(session, text, data, 64);
    SlopeProgram *program;
    SlopeFunction *square;
    void *found;
    atomic_int wrong = 0;
    Caller caller = {NULL, &wrong};
    assert_int_equal(slope_load_text(session, "t.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "square", &square), SLOPE_STATUS_ok);
    assert_int_equal(slope_function_address(square, &found), SLOPE_STATUS_ok);
    memcpy(&caller.address, &found, sizeof found);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_often, &caller), 0);
    for (int i = 0; i < 50; i++) assert_int_equal(slope_dispatch(kernel, 64, 1, 1), SLOPE_STATUS_ok);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    slope_session_free(session);
}

/* ---- sums of gradients */

static const char *const fit =
    "struct Line : IDifferentiable { float slope, offset; }; uniform DiffBuffer<Line> line, dline; uniform "
    "DiffBuffer<float> data, ddata;"
    "[Differentiable] float at(DiffBuffer<Line> line, DiffBuffer<float> data, int i) {"
    "    Line l = line[i % line.getCount()]; float y = l.slope * data[i] + l.offset; return sin(y) * y; }"
    "void pull(DiffBuffer<Line> line, DiffBuffer<Line> dline, int i) { bwd_diff(at)("
    "    DifferentialPtrPair<DiffBuffer<Line>>(line, dline), DifferentialPtrPair<DiffBuffer<float>>(data, "
    "ddata), i, 1.0); }"
    "[shader(\"compute\")] [numthreads(8, 1, 1)] void run(uint3 id : SV_DispatchThreadID) { pull(line, "
    "dline, int(id.x)); }";

enum { LINES = 3, ITEMS = 8 * 500 };
typedef struct Line {
    float slope, offset;
} Line;
typedef struct Fit {
    Line line[LINES], dline[LINES];
    float data[ITEMS], ddata[ITEMS];
} Fit;

static void bind_part(SlopeSession *session, SlopeProgram *program, const char *name, void *data,
                      size_t size) {
    SlopeBuffer *buffer;
    assert_int_equal(slope_buffer_wrap(session, data, size, &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, name, buffer), SLOPE_STATUS_ok);
}

/* By a dispatch, or by many calls that share the lines. */
static void fit_on(int threads, bool batch, Fit *fitted) {
    SlopeSession *session;
    SlopeProgram *program;
    SlopeConfig config;
    slope_config_init(&config);
    config.threads = threads;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "t.slang", fit, strlen(fit), &program), SLOPE_STATUS_ok);
    *fitted = (Fit){.line = {{0.5F, 1}, {2, 0.25F}, {-1, 3}}};
    for (int i = 0; i < ITEMS; i++) fitted->data[i] = 0.001F * (float)i;
    bind_part(session, program, "line.data", fitted->line, sizeof fitted->line);
    bind_part(session, program, "dline.data", fitted->dline, sizeof fitted->dline);
    bind_part(session, program, "data.data", fitted->data, sizeof fitted->data);
    bind_part(session, program, "ddata.data", fitted->ddata, sizeof fitted->ddata);
    SlopeStatus status = SLOPE_STATUS_ok;
    if (batch) {
        SlopeFunction *pull;
        struct {
            void *data;
            uint64_t count;
        } line = {fitted->line, LINES}, dline = {fitted->dline, LINES};
        int32_t numbers[ITEMS];
        for (int i = 0; i < ITEMS; i++) numbers[i] = i;
        assert_int_equal(slope_find_function(program, "pull", &pull), SLOPE_STATUS_ok);
        status = slope_call_batch(pull, ITEMS, (void *[]){&line, &dline, numbers}, (int64_t[]){0, 0, 4});
    } else {
        SlopeKernel *kernel;
        assert_int_equal(slope_find_kernel(program, "run", &kernel), SLOPE_STATUS_ok);
        status = slope_dispatch(kernel, ITEMS / 8, 1, 1);
    }
    if (status != SLOPE_STATUS_ok) fail_msg("%s", slope_messages(session));
    slope_session_free(session);
}

static void sums_do_not_depend_on_threads(void **state) {
    (void)state;
    static Fit one, other;
    for (int batch = 0; batch < 2; batch++) {
        fit_on(1, batch, &one);
        assert_true(one.dline[0].slope != 0 && one.ddata[7] != 0);
        fit_on(4, batch, &other);
        assert_memory_equal(one.dline, other.dline, sizeof one.dline);
        assert_memory_equal(one.ddata, other.ddata, sizeof one.ddata);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_do_not_depend_on_threads),
        cmocka_unit_test(whatever_runs_can_be_stopped),
        cmocka_unit_test(calls_can_be_stopped),
        cmocka_unit_test(parts_of_loops_fill_vectors),
        cmocka_unit_test(rounds_that_wait_look),
        cmocka_unit_test(what_is_interpreted_can_be_stopped),
        cmocka_unit_test(a_stop_between_runs_does_nothing),
        cmocka_unit_test(sessions_do_not_meet),
        cmocka_unit_test(errors_stay_in_their_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
