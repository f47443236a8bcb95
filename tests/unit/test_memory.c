/* Lack of memory at any point: the n-th allocation fails, or every n-th does. A call then returns `memory` or
 * the right answer, never a wrong one; the session goes on, and when it is freed nothing is left. `make test`
 * tries some n, `test_memory all` (make fuzz-api) each up to 5000. */
#include "slope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5000 };

typedef struct Host {
    SlopeSession *session;
    size_t used;
    long count, failing; /* allocations so far; the one that fails, or every one; 0: none */
    bool every, failed;
} Host;

static void *resize(void *user, void *old, size_t old_size, size_t new_size) {
    Host *host = user;
    if (new_size && host->failing) {
        host->count++;
        bool fails = host->every ? host->count % host->failing == 0 : host->count == host->failing;
        host->failed |= fails;
        if (fails) return NULL;
    }
    host->used += new_size - old_size;
    if (new_size) return realloc(old, new_size);
    free(old);
    return NULL;
}

static const char right[] =
    "interface IShape { [Differentiable] float area(float s); }\n"
    "struct Square : IShape { float a; [Differentiable] float area(float s) { return a * a * s; } }\n"
    "[Differentiable] float f<T : IShape>(T shape, float s) { return shape.area(s); }\n"
    "[Differentiable] float g(float x, int n) { Square q = {x}; float y = 0; for (int i = 0; i < n; i++) y "
    "+= f(q, y + x); return y; }\n"
    "struct Light { float3 at; float power; };\n"
    "uniform Light lights[2]; RWStructuredBuffer<float> b;\n"
    "[numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { b[id.x] = g(lights[1].power, 3); }\n";
static const char wrong[] = "float f(float x) { return y; }\n[Differentiable] int g(int n) { return n.z; }";

/* Was there enough memory? Nothing else may have gone wrong. */
static bool went(SlopeStatus status) {
    if (status != SLOPE_STATUS_ok) assert_int_equal(status, SLOPE_STATUS_memory);
    return status == SLOPE_STATUS_ok;
}

static bool compile(SlopeProgram *program) {
    SlopeBlob *blob;
    SlopeBuildOptions options = {.target = "c"};
    bool fine = went(slope_dump(program, NULL, NULL, &blob));
    if (fine) slope_blob_free(blob);
    bool built = went(slope_build(program, &options, &blob));
    if (built) slope_blob_free(blob);
    return fine && built;
}

static bool use_right(Host *host) {
    SlopeProgram *program;
    SlopeFunction *function;
    SlopeUniform uniform;
    float power = 2;
    if (!went(slope_load_text(host->session, "right.slang", right, strlen(right), &program))) return false;
    bool fine = went(slope_check(program));
    fine &= went(slope_find_uniform(program, "lights[1].power", &uniform));
    fine &= went(slope_set_uniform(program, "lights[1].power", &power, sizeof power));
    fine &= went(slope_find_function(program, "bwd_diff(g)", &function));
    fine &= went(slope_find_function(program, "fwd_diff(g)", &function));
    fine &= compile(program);
    if (fine) assert_true(slope_uniform_count(program) >= 2);
    slope_program_free(program);
    return fine;
}

/* A wrong program is never found right, however little memory there is. */
static void use_wrong(Host *host, bool may_fail) {
    SlopeProgram *program;
    SlopeStatus status = slope_load_text(host->session, "wrong.slang", wrong, strlen(wrong), &program);
    for (int i = 0; i < 2 && status == SLOPE_STATUS_ok; i++) {
        SlopeStatus found = slope_check(program);
        if (!may_fail || found != SLOPE_STATUS_memory) assert_int_equal(found, SLOPE_STATUS_error);
    }
    if (!may_fail) assert_int_equal(status, SLOPE_STATUS_ok);
    slope_program_free(program);
}

/* False: no allocation failed, n is beyond the last. */
static bool try_one(long n, bool every) {
    Host host = {.failing = n, .every = every};
    SlopeConfig config;
    slope_config_init(&config);
    config.user = &host;
    config.resize = resize;
    if (went(slope_session_new(&config, &host.session))) {
        use_right(&host);
        use_wrong(&host, true);
        host.failing = 0;
        assert_true(use_right(&host));
        use_wrong(&host, false);
    }
    slope_session_free(host.session);
    assert_int_equal(host.used, 0);
    return host.failed;
}

static void try_many(long step, bool every) {
    for (long n = 1; n <= MOST && try_one(n, every); n += n < step ? 1 : step) {}
}

static void one_allocation_fails(void **state) { try_many(*(long *)*state, false); }
static void every_nth_allocation_fails(void **state) { try_many(*(long *)*state, true); }

int main(int argc, char **argv) {
    long step = argc > 1 && strcmp(argv[1], "all") == 0 ? 1 : 37;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(one_allocation_fails, &step),
        cmocka_unit_test_prestate(every_nth_allocation_fails, &step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
