/* orderfuzz [FIRST [COUNT [SHOWN]]]: random sequences of calls of the API, each of which must give what it
 * gives when it is the only one.
 *
 * For each seed a session with some configuration loads a program, and makes calls on it: functions, batches,
 * kernels, builds, dumps, gradcheck, lists, names, sizes and counts that are wrong, runs that another thread
 * stops. What each returns, writes and prints is compared with a program of its own in a session of its own.
 * In some sessions allocations fail for a while, or compiling may take little memory: until then the same is
 * asked, from there on that every call returns, and at the end that all memory is given back. With several
 * threads, each has seeds of its own. Exit status: 0 fine, 1 not. */
#include "slope.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 12, THREADS = 2, ROOM = 1 << 20 };

typedef struct Host {
    uint64_t state;
    long until_failure, failures; /* allocations before the next ones fail, and how many do; none: 0 */
    bool failed;
    size_t held;
    char *text; /* what a call gave */
    size_t length;
    int messages;
} Host;

static unsigned draw(Host *host, unsigned below) {
    host->state = host->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(host->state >> 33) % below;
}

static void note(Host *host, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(host->text + host->length, ROOM - host->length, format, args);
    va_end(args);
    if (n > 0 && host->length + (size_t)n < ROOM) host->length += (size_t)n;
}

static void *resize(void *user, void *old, size_t old_size, size_t new_size) {
    Host *host = user;
    if (new_size && host->failures > 0 && --host->until_failure < 0) {
        host->failures--;
        host->failed = true;
        return NULL;
    }
    host->held += new_size - old_size;
    if (new_size) return realloc(old, new_size);
    free(old);
    return NULL;
}

static void report(void *user, const SlopeDiagnostic *diagnostic) {
    Host *host = user;
    host->messages++;
    if (diagnostic->code == 7051) host->failed = true;
    if (diagnostic->code == 7004) note(host, "FAULT: %s\n", diagnostic->text);
}

static void print(void *user, const char *text, size_t size) { note(user, "%.*s", (int)size, text); }

/* ---- programs */

static const char *const texts[] = {
    "RWStructuredBuffer<float> b; RWStructuredBuffer<float> s; uniform int n; uniform float k;\n"
    "float endless(float x) { while (x < 1e30f) x = x * 0.5f + 1; return x; }\n"
    "[Differentiable] float f(float x, float3 v) { float y = x; for (int i = 0; i < 3; i++) y += v[i] * "
    "sin(x * y); return y; }\n"
    "[Differentiable] float g(float x, int n) { float y = x; for (int i = 0; i < n; i++) { if (y > 9) break; "
    "y = y * x + k; } return y; }\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { "
    "InterlockedAdd(s[id.x % 2], f(b[id.x], float3(1, 2, 3))); }\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void grad(uint3 id : SV_DispatchThreadID) { var p = "
    "diffPair(b[id.x]); bwd_diff(g)(p, 3, 1.0f);\n"
    "    for (int i = 0; i < n; i++) s[i] += p.d; b[id.x] = p.d + k; }\n",

    "interface IShape : IDifferentiable { [Differentiable] float area(float x); }\n"
    "struct Disc : IShape { float r; [Differentiable] float area(float x) { return r * r * x; } }\n"
    "struct Box : IShape { float a, b; [Differentiable] float area(float x) { return a * b + x; } }\n"
    "[Differentiable] float total<S : IShape>(S s, float x) { return s.area(x) * s.area(x); }\n"
    "[Differentiable] float f(float x, float3 v) { Disc d = {v.x}; Box b = {v.y, v.z}; return total(d, x) + "
    "total(b, x); }\n"
    "float endless(float x) { for (;;) { if (x > 0) x += 0.25f; else x -= 1; } return x; }\n"
    "float g(float x, int n) { float a[8]; for (int i = 0; i < 8; i++) a[i] = x * i; return a[n & 7]; }\n"
    "RWStructuredBuffer<float> b; RWStructuredBuffer<float> s; uniform float k;\n"
    "groupshared float shared[4];\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint t : "
    "SV_GroupIndex) {\n"
    "    shared[t] = b[id.x]; GroupMemoryBarrierWithGroupSync(); s[id.x] = shared[3 - t] + k; }\n"
    "[numthreads(2, 1, 1)] [shader(\"compute\")] void grad(uint3 id : SV_DispatchThreadID) { "
    "printf(\"%u\\n\", id.x / 100); }\n",

    /* Some of it cannot be differentiated, which is found out when it is asked for. */
    "RWStructuredBuffer<float> b; RWStructuredBuffer<float> s; uniform float k;\n"
    "extern float beyond(float x);\n"
    "[Differentiable] float f(float x, float3 v) { return x * v.x + dot(v, v); }\n"
    "float g(float x, int n) { return n > 100 ? beyond(x) : x * n; }\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { b[id.x] = f(k, "
    "1) + s[id.x]; }\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void grad(uint3 id : SV_DispatchThreadID) { b[id.x] = g(k, "
    "101); }\n",

    "float f(float x, float3 v) { return y; } float g(float x, int n) { return x; }",
    "float f(float x, float3 v) { return x +; }",
};

static SlopeProgram *load(Host *host, SlopeSession *session, unsigned text) {
    SlopeProgram *program = NULL;
    SlopeStatus status = slope_load_text(session, "order.slang", texts[text], strlen(texts[text]), &program);
    note(host, "load: %s\n", slope_status_name(status));
    return program;
}

/* ---- calls: each draws what it needs first, and notes all that came of it */

static void note_status(Host *host, const char *what, SlopeStatus status) {
    note(host, "%s: %s\n", what, slope_status_name(status));
    if (status != SLOPE_STATUS_ok && host->messages == 0 && !host->failed) note(host, "WITHOUT A WORD\n");
}

static const char *const functions[] = {"f",           "g",       "bwd_diff(f)", "fwd_diff(f)",
                                        "bwd_diff(g)", "nothing", "f("};

static void call(Host *host, SlopeProgram *program) {
    const char *name = functions[draw(host, sizeof functions / sizeof *functions)];
    bool is_batch = draw(host, 3) == 0;
    SlopeFunction *function;
    float memory[8][16], result[16] = {0};
    void *args[8];
    SlopeStatus status = slope_find_function(program, name, &function);
    note_status(host, name, status);
    if (status != SLOPE_STATUS_ok) return;
    int count = slope_function_parameter_count(function);
    for (int i = 0; i < 8 * 16; i++) memory[i / 16][i % 16] = 0.25f * (float)(i % 16);
    for (int i = 0; i < count && i < 7; i++) {
        SlopeParameter parameter;
        slope_function_parameter(function, i, &parameter);
        if (slope_type_kind(parameter.type) == SLOPE_TYPE_int32)
            memcpy(memory[i], (int[]){2, 5}, 2 * sizeof(int));
        args[i] = memory[i];
    }
    args[count] = result;
    status = is_batch ? slope_call_batch(function, 2, args, NULL) : slope_call(function, args);
    note_status(host, is_batch ? "batch" : "call", status);
    for (int i = 0; i < count * 16 && status == SLOPE_STATUS_ok; i++)
        note(host, "%g ", (double)memory[i / 16][i % 16]);
    note(host, "-> %g %g\n", (double)result[0], (double)result[1]);
}

static void dispatch(Host *host, SlopeProgram *program, SlopeSession *session) {
    static const char *const names[] = {"main", "grad", NULL, "f"};
    const char *name = names[draw(host, 4)];
    unsigned groups = draw(host, 3);
    SlopeKernel *kernel;
    SlopeBuffer *buffers[2] = {NULL, NULL};
    const float k = 0.5f;
    const int n = 4, zero = 0;
    SlopeStatus status = slope_find_kernel(program, name, &kernel);
    note_status(host, name ? name : "the kernel", status);
    if (status != SLOPE_STATUS_ok) return;
    for (int i = 0; i < 2 && status == SLOPE_STATUS_ok; i++) {
        status = slope_buffer_new(session, 64, &buffers[i]);
        for (int j = 0; j < 16 && status == SLOPE_STATUS_ok; j++)
            ((float *)slope_buffer_data(buffers[i]))[j] = (float)(i + j) * 0.125f;
        if (status == SLOPE_STATUS_ok) status = slope_bind_buffer(program, i ? "s" : "b", buffers[i]);
    }
    if (status == SLOPE_STATUS_ok) status = slope_set_uniform(program, "k", &k, sizeof k);
    if (status == SLOPE_STATUS_ok) note(host, "n: %d\n", slope_set_uniform(program, "n", &n, sizeof n));
    if (status == SLOPE_STATUS_ok) status = slope_dispatch(kernel, (int)groups, 1, 1);
    note_status(host, "dispatch", status);
    for (int i = 0; i < 32 && status == SLOPE_STATUS_ok; i++)
        note(host, "%g ", (double)((float *)slope_buffer_data(buffers[i / 16]))[i % 16]);
    slope_set_uniform(program, "k", &zero, sizeof k), slope_set_uniform(program, "n", &zero, sizeof n);
    slope_bind_buffer(program, "b", NULL), slope_bind_buffer(program, "s", NULL);
    slope_buffer_free(buffers[0]), slope_buffer_free(buffers[1]);
}

static void note_blob(Host *host, const char *what, SlopeStatus status, SlopeBlob *blob) {
    unsigned sum = 0;
    note_status(host, what, status);
    if (status != SLOPE_STATUS_ok) return;
    for (size_t i = 0; i < blob->size; i++) sum = sum * 31 + (unsigned char)blob->data[i];
    note(host, "%zu bytes, %x\n%.200000s\n", blob->size, sum, blob->data);
    slope_blob_free(blob);
}

static void build(Host *host, SlopeProgram *program) {
    static const char *const targets[] = {"c", "cuda", "slang", "llvm-ir", "nothing"};
    SlopeBlob *blob;
    const char *entries[2];
    SlopeBuildOptions options = {.target = targets[draw(host, 5)], .entries = entries, .tape = 64};
    options.entry_count = (int)draw(host, 3);
    for (int i = 0; i < 2; i++) entries[i] = functions[draw(host, sizeof functions / sizeof *functions)];
    options.header = strcmp(options.target, "llvm-ir") != 0 && draw(host, 4) == 0;
    SlopeStatus status = slope_build(program, &options, &blob);
    note_blob(host, options.target, status, blob);
}

static void dump(Host *host, SlopeProgram *program) {
    static const char *const stages[] = {"syntax",   "check", "lower", "transpose", "checkpoint",
                                         "simplify", "sums",  "lanes", NULL,        "nothing"};
    SlopeBlob *blob;
    const char *stage = stages[draw(host, sizeof stages / sizeof *stages)];
    const char *function = draw(host, 2) ? functions[draw(host, sizeof functions / sizeof *functions)] : NULL;
    SlopeStatus status = slope_dump(program, function, stage, &blob);
    note_blob(host, stage ? stage : "dump", status, blob);
}

static void gradcheck(Host *host, SlopeProgram *program) {
    const SlopeGradcheckResult *results;
    int count = 0;
    SlopeGradcheckOptions options = {.samples = 3,
                                     .function = draw(host, 2) ? functions[draw(host, 4)] : NULL};
    SlopeStatus status = slope_gradcheck(program, &options, &results, &count);
    note_status(host, "gradcheck", status);
    for (int i = 0; i < count && status == SLOPE_STATUS_ok; i++)
        note(host, "%s %s %d %s\n", results[i].function, slope_verdict_name(results[i].verdict),
             results[i].samples, results[i].message ? results[i].message : "");
}

static void list(Host *host, SlopeProgram *program) {
    SlopeUniform uniform;
    SlopeDeclaration row;
    const SlopeType *type;
    note_status(host, "type", slope_find_type(program, draw(host, 2) ? "float3[2]" : "Nothing", &type));
    note_status(host, "check", slope_check(program));
    for (int i = 0; i < slope_declaration_count(program); i++)
        if (slope_declaration(program, i, &row))
            note(host, "%s %d%d\n", row.name, row.has_fwd_diff, row.has_bwd_diff);
    for (int i = 0; slope_uniform(program, i, &uniform) && !strchr(uniform.name, '.'); i++)
        note(host, "%s %s\n", uniform.name, slope_type_name(uniform.type));
}

/* ---- calls that are wrong */

static void bind_wrong(Host *host, SlopeProgram *program, SlopeSession *session) {
    static const char *const names[] = {"b", "s", "k", "f", "nothing", "b[1]"};
    static const size_t sizes[] = {0, 1, 7, 64};
    SlopeBuffer *buffer;
    SlopeKernel *kernel;
    char bytes[8];
    const char *name = names[draw(host, 6)];
    size_t size = sizes[draw(host, 4)];
    SlopeStatus status = slope_buffer_new(session, size, &buffer);
    note_status(host, "buffer", status);
    if (status != SLOPE_STATUS_ok) return;
    note_status(host, "beyond", slope_buffer_read(buffer, size, bytes, sizeof bytes));
    note_status(host, "far beyond", slope_buffer_write(buffer, SIZE_MAX - 3, bytes, sizeof bytes));
    note_status(host, name, slope_bind_buffer(program, name, buffer));
    status = slope_find_kernel(program, "main", &kernel);
    note_status(host, "main", status);
    if (status == SLOPE_STATUS_ok) note_status(host, "dispatch", slope_dispatch(kernel, 1, 1, 1));
    slope_bind_buffer(program, "b", NULL), slope_bind_buffer(program, "s", NULL);
    slope_buffer_free(buffer);
}

static void dispatch_wrong(Host *host, SlopeProgram *program) {
    static const int counts[] = {-1, 0, INT32_MIN, 1};
    int x = counts[draw(host, 4)], y = counts[draw(host, 4)], z = counts[draw(host, 3)];
    SlopeKernel *kernel;
    SlopeStatus status = slope_find_kernel(program, "grad", &kernel);
    note_status(host, "grad", status);
    if (status == SLOPE_STATUS_ok) note_status(host, "dispatch", slope_dispatch(kernel, x, y, z));
}

static void wrong(Host *host, SlopeProgram *program, SlopeSession *session) {
    static const char *const names[] = {"k", "n", "b", "nothing", "k.x", ""};
    const double data[2] = {0, 0};
    SlopeFunction *function;
    SlopeUniform uniform;
    float memory[16] = {0};
    void *args[] = {memory, memory, memory};
    const char *name = names[draw(host, 6)];
    size_t size = draw(host, 17);
    switch (draw(host, 5)) {
    case 0: bind_wrong(host, program, session); break;
    case 1: dispatch_wrong(host, program); break;
    case 2: note_status(host, name, slope_find_uniform(program, name, &uniform)); break;
    case 3: note_status(host, name, slope_set_uniform(program, name, data, size == 4 ? 5 : size)); break;
    default:
        if (slope_find_function(program, "f", &function) == SLOPE_STATUS_ok)
            note_status(host, "batch", slope_call_batch(function, -(int64_t)size, args, NULL));
    }
}

/* ---- runs that are stopped */

typedef struct Stopper {
    SlopeSession *session;
    atomic_bool done;
} Stopper;

static void *stop_until_done(void *user) {
    Stopper *stopper = user;
    while (!atomic_load(&stopper->done)) {
        slope_stop(stopper->session);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static void stop(Host *host, SlopeProgram *program, SlopeSession *session) {
    Stopper stopper = {.session = session};
    SlopeFunction *function;
    pthread_t thread;
    float x = (float)draw(host, 3), result = 0;
    void *args[] = {&x, &result};
    slope_stop(session); /* nothing is under way */
    SlopeStatus status = slope_find_function(program, "endless", &function);
    note_status(host, "endless", status);
    if (status != SLOPE_STATUS_ok || pthread_create(&thread, NULL, stop_until_done, &stopper)) return;
    note_status(host, "stopped", slope_call(function, args));
    atomic_store(&stopper.done, true);
    pthread_join(thread, NULL);
}

static void one_call(Host *host, SlopeSession *session, SlopeProgram *program) {
    host->length = 0;
    host->messages = 0;
    host->text[0] = '\0';
    switch (draw(host, 10)) {
    case 0:
    case 1: call(host, program); break;
    case 8: wrong(host, program, session); break;
    case 9: stop(host, program, session); break;
    case 2: dispatch(host, program, session); break;
    case 3:
    case 4: build(host, program); break;
    case 5: dump(host, program); break;
    case 6: gradcheck(host, program); break;
    default: list(host, program); break;
    }
}

/* ---- sessions */

typedef struct Seed {
    uint64_t number;
    SlopeConfig config;
    unsigned text;
    bool may_fail;
} Seed;

static Seed plan(Host *host, uint64_t number) {
    Seed seed = {.number = number, .may_fail = false};
    host->state = number * 7919 + 1;
    slope_config_init(&seed.config);
    seed.config.report = report;
    seed.config.write = print;
    seed.config.resize = resize;
    seed.config.interpret = draw(host, 4) != 0;
    seed.config.threads = 1 + (int)draw(host, 2);
    seed.config.lanes = draw(host, 3) ? 0 : 4;
    seed.config.optimization = draw(host, 3) ? 3 : (int)draw(host, 3);
    seed.config.strict = draw(host, 6) == 0;
    seed.text = draw(host, 8) % (sizeof texts / sizeof *texts);
    seed.may_fail = draw(host, 3) == 0;
    seed.config.limit_memory = draw(host, 6) ? 0 : 1 + (int)draw(host, 6);
    return seed;
}

/* What a call gives that is the first. */
static void alone(Host *host, const Seed *seed, uint64_t state) {
    SlopeSession *session;
    SlopeConfig config = seed->config;
    config.user = host;
    host->state = state;
    if (slope_session_new(&config, &session) != SLOPE_STATUS_ok) abort();
    SlopeProgram *program = load(host, session, seed->text);
    if (program) one_call(host, session, program);
    slope_session_free(session);
}

static bool compare(const Host *host, const Host *other, uint64_t seed, int index) {
    bool is_same = strcmp(host->text, other->text) == 0;
    bool is_fine = !strstr(host->text, "FAULT") && !strstr(host->text, "WITHOUT");
    if (is_same && is_fine) return true;
    printf("seed %llu, call %d: %s\n---- after others\n%s\n---- alone\n%s\n", (unsigned long long)seed, index,
           is_same ? "a fault" : "not the same", host->text, other->text);
    return false;
}

static bool run(Host *host, Host *other, uint64_t number) {
    SlopeSession *session;
    Seed seed = plan(host, number);
    SlopeConfig config = seed.config;
    config.user = host;
    bool fine = true;
    host->failed = false;
    host->failures = 0;
    if (slope_session_new(&config, &session) != SLOPE_STATUS_ok) return false;
    SlopeProgram *program = load(host, session, seed.text);
    for (int i = 0; i < CALLS && fine && program; i++) {
        if (seed.may_fail && draw(host, 4) == 0)
            host->until_failure = (long)draw(host, 300) * (long)draw(host, 10),
            host->failures = 1 + (long)draw(host, 20);
        uint64_t state = host->state;
        one_call(host, session, program);
        if (host->failed) continue;
        host->text[host->length] = '\0';
        other->failed = false;
        alone(other, &seed, state);
        fine = other->failed || compare(host, other, number, i);
    }
    slope_session_free(session);
    if (host->held || other->held)
        printf("seed %llu: memory is left\n", (unsigned long long)number), fine = false;
    return fine;
}

typedef struct Share {
    uint64_t first, count;
    int failures;
} Share;

static void *run_share(void *user) {
    Share *share = user;
    Host host = {.text = malloc(ROOM)}, other = {.text = malloc(ROOM)};
    for (uint64_t i = 0; i < share->count && host.text && other.text; i++)
        share->failures += !run(&host, &other, share->first + i);
    free(host.text);
    free(other.text);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
             count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    uint64_t each = (count + THREADS - 1) / THREADS;
    Share shares[THREADS];
    pthread_t threads[THREADS];
    int failures = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        shares[i] = (Share){.first = first + i * each,
                            .count = i * each >= count         ? 0
                                     : count - i * each < each ? count - i * each
                                                               : each};
        if (pthread_create(&threads[i], NULL, run_share, &shares[i])) return 1;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        failures += shares[i].failures;
    }
    printf("%llu sequences, %d failures\n", (unsigned long long)count, failures);
    return failures ? 1 : 0;
}
