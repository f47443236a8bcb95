/* Sessions that live long: programs come and go, fail and run out of memory, and leave nothing behind. */
#define _GNU_SOURCE /* asprintf */
#include "slope.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Host {
    SlopeSession *session;
    size_t used;      /* bytes that the library holds */
    size_t taken;     /* bytes that it asked for so far */
    long allocations; /* so far */
    long failing;     /* allocations from this one on fail; 0: none */
    SlopeSession *to_stop;
} Host;

static void *count_bytes(void *user, void *old, size_t old_size, size_t new_size) {
    Host *host = user;
    if (new_size && host->failing && ++host->allocations >= host->failing) return NULL;
    host->used += new_size - old_size;
    if (new_size > old_size) host->taken += new_size - old_size;
    if (new_size) return realloc(old, new_size);
    free(old);
    return NULL;
}

static void stop_at_output(void *user, const char *text, size_t size) {
    Host *host = user;
    (void)text, (void)size;
    if (host->to_stop) slope_stop(host->to_stop);
}

static void open_session(Host *host) {
    SlopeConfig config;
    slope_config_init(&config);
    config.user = host;
    config.resize = count_bytes;
    config.write = stop_at_output;
    config.threads = 1;
    config.optimization = 0;
    assert_int_equal(slope_session_new(&config, &host->session), SLOPE_STATUS_ok);
}

static SlopeStatus load(Host *host, const char *text, SlopeProgram **program) {
    return slope_load_text(host->session, "p.slang", text, strlen(text), program);
}

static SlopeProgram *loaded(Host *host, const char *text) {
    SlopeProgram *program;
    assert_int_equal(load(host, text, &program), SLOPE_STATUS_ok);
    return program;
}

static const char sample[] = "struct Ball : IDifferentiable { float3 at; float mass; }\n"
                             "[Differentiable] float energy(Ball b, no_diff float g) {\n"
                             "    float e = 0;\n"
                             "    for (int i = 0; i < 3; i++) e += sin(b.at[i]) * exp(-b.mass * g);\n"
                             "    return e;\n"
                             "}\n"
                             "RWStructuredBuffer<float> result;\n"
                             "[shader(\"compute\")] void main() {\n"
                             "    DifferentialPair<Ball> b = diffPair(Ball(float3(1), 2));\n"
                             "    bwd_diff(energy)(b, 1.0f, 1.0f);\n"
                             "    result[0] = b.d.mass;\n"
                             "}\n";

static void use(Host *host) {
    SlopeProgram *program = loaded(host, sample);
    SlopeFunction *function;
    SlopeBlob *blob;
    SlopeUniform uniform;
    assert_int_equal(slope_check(program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "fwd_diff(energy)", &function), SLOPE_STATUS_ok);
    assert_non_null(slope_function_result(function));
    assert_int_equal(slope_find_uniform(program, "result", &uniform), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_uniform(program, "in", &uniform), SLOPE_STATUS_misuse);
    assert_int_equal(slope_dump(program, NULL, NULL, &blob), SLOPE_STATUS_ok);
    slope_blob_free(blob);
    slope_program_free(program);
    assert_int_equal(load(host, "int f( { }", &program), SLOPE_STATUS_error);
    slope_clear_messages(host->session);
}

static void a_program_returns_its_memory(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    use(&host);
    use(&host); /* from the second program on, each finds the library ready */
    size_t before = host.used;
    for (int i = 0; i < 50; i++) use(&host);
    assert_int_equal(host.used, before);
    slope_session_free(host.session);
    assert_int_equal(host.used, 0);
}

static void ask(Host *host, SlopeProgram *program) {
    static const uint8_t texel = 7;
    const SlopeImage image = {&texel, 1, 1, 1, 1, SLOPE_IMAGE_unorm8, false};
    SlopeFunction *function;
    const SlopeType *type;
    SlopeUniform uniform;
    SlopeBuffer *buffer;
    float one = 1;
    assert_int_equal(slope_find_function(program, "bwd_diff(f)", &function), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_type(program, "DifferentialPair<float>", &type), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_uniform(program, "scale[1]", &uniform), SLOPE_STATUS_ok);
    assert_int_equal(slope_set_uniform(program, "scale[1]", &one, sizeof one), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_image(program, "picture", &image, NULL), SLOPE_STATUS_ok);
    assert_int_equal(slope_buffer_new(host->session, 16, &buffer), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(program, "data", buffer), SLOPE_STATUS_ok);
    slope_buffer_free(buffer);
}

/* A host may ask before each of its frames. */
static void asking_again_takes_no_memory(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program =
        loaded(&host, "[Differentiable] float f(float x) { return x * x; }\n"
                      "uniform float scale[2]; Texture2D picture; RWStructuredBuffer<float> data;\n");
    for (int i = 0; i < 10; i++) ask(&host, program);
    size_t before = host.used;
    for (int i = 0; i < 1000; i++) ask(&host, program);
    assert_int_equal(host.used, before);
    slope_session_free(host.session);
    assert_int_equal(host.used, 0);
}

static size_t taken_by_load(Host *host) {
    size_t before = host->taken;
    SlopeProgram *program = loaded(host, sample);
    assert_int_equal(slope_check(program), SLOPE_STATUS_ok);
    slope_program_free(program);
    return host->taken - before;
}

static void the_second_program_finds_the_library_ready(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    size_t first = taken_by_load(&host), second = taken_by_load(&host);
    assert_true(second < first / 8); /* the library is neither parsed nor checked again */
    slope_session_free(host.session);
}

static const char declaring[] =
    "namespace art { enum Mode { on, off }; struct Pen : IDifferentiable { float2 at; int kind;\n"
    "  [Differentiable] float far(float x) { return x * at.x; } } }\n"
    "interface IShape { float area(); }\n"
    "typealias Pens = art.Pen[2];\n"
    "namespace art { extension Pen { float near() { return at.y; } } }\n"
    "[ForwardDifferentiable] T twice<T : IFloat>(T x) { return x + x; }\n"
    "float plain(float x) { return x; }\n"
    "float plain(int x) { return x; }\n"
    "float declared(float x);\n"
    "[shader(\"compute\")] void paint() { }\n";

static void assert_declared(SlopeProgram *program, int index, SlopeDeclarationKind kind, const char *name,
                            const char *how, int line) {
    SlopeDeclaration row;
    assert_true(slope_declaration(program, index, &row));
    assert_int_equal(row.kind, kind);
    assert_string_equal(row.name, name);
    assert_string_equal(row.path, "p.slang");
    assert_int_equal(row.line, line);
    assert_int_equal(row.is_generic, strchr(how, 'g') != NULL);
    assert_int_equal(row.has_fwd_diff, strchr(how, 'f') != NULL);
    assert_int_equal(row.has_bwd_diff, strchr(how, 'b') != NULL);
}

static void a_program_says_what_it_declares(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, declaring);
    assert_int_equal(slope_declaration_count(program), 10);
    assert_declared(program, 0, SLOPE_DECLARATION_type, "art.Mode", "", 1);
    assert_declared(program, 1, SLOPE_DECLARATION_type, "art.Pen", "fb", 1);
    assert_declared(program, 2, SLOPE_DECLARATION_function, "art.Pen.far", "fb", 2);
    assert_declared(program, 3, SLOPE_DECLARATION_function, "art.Pen.near", "", 5);
    assert_declared(program, 4, SLOPE_DECLARATION_type, "IShape", "", 3);
    assert_declared(program, 5, SLOPE_DECLARATION_type, "Pens", "fb", 4);
    assert_declared(program, 6, SLOPE_DECLARATION_function, "twice", "gf", 6);
    assert_declared(program, 7, SLOPE_DECLARATION_function, "plain", "", 7);
    assert_declared(program, 8, SLOPE_DECLARATION_function, "plain", "", 8);
    assert_declared(program, 9, SLOPE_DECLARATION_kernel, "paint", "", 10);
    SlopeDeclaration row;
    assert_false(slope_declaration(program, 10, &row));
    assert_false(slope_declaration(program, -1, &row));
    assert_int_equal(slope_declaration_count(loaded(&host, "int f() { return x; }")), 0);
    slope_session_free(host.session);
}

static void types_are_found_by_name(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, declaring);
    const SlopeType *type, *same;
    SlopeField field;
    assert_int_equal(slope_find_type(program, "art.Pen", &type), SLOPE_STATUS_ok);
    assert_int_equal(slope_type_kind(type), SLOPE_TYPE_struct);
    assert_int_equal(slope_type_size(type), 12);
    assert_int_equal(slope_find_type(program, "Pens", &type), SLOPE_STATUS_ok);
    assert_int_equal(slope_type_count(type), 2);
    assert_int_equal(slope_find_type(program, "art.Pen[2]", &same), SLOPE_STATUS_ok);
    assert_ptr_equal(type, same);
    assert_int_equal(slope_find_type(program, "DifferentialPair<art.Pen>", &type), SLOPE_STATUS_ok);
    assert_true(slope_type_field(type, 1, &field));
    assert_int_equal(field.offset, 12);
    assert_int_equal(slope_find_type(program, "art.Brush", &type), SLOPE_STATUS_misuse);
    assert_null(type);
    assert_int_equal(slope_find_type(program, "plain", &type), SLOPE_STATUS_misuse);
    assert_int_equal(slope_find_type(program, "float3[", &type), SLOPE_STATUS_misuse);
    slope_session_free(host.session);
}

static void programs_are_apart(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *right = loaded(&host, "int f() { return 1; }"), *other;
    SlopeProgram *wrong = loaded(&host, "int f() { return x; }");
    assert_int_equal(slope_load_file(host.session, "/nowhere/at.all", &other), SLOPE_STATUS_error);
    assert_int_equal(slope_check(wrong), SLOPE_STATUS_error);
    assert_int_equal(slope_check(right), SLOPE_STATUS_ok);
    assert_int_equal(slope_check(wrong), SLOPE_STATUS_error);
    slope_program_free(wrong);
    SlopeProgram *own = loaded(&host, "[ForwardDerivativeOf(sin)] float s(float x) { return 1; }\n"
                                      "extension float { float twice() { return this * 2; } }\n"
                                      "float f(float x) { return x.twice(); }");
    SlopeProgram *without = loaded(&host, "float f(float x) { return x.twice(); }");
    slope_check(own);
    slope_clear_messages(host.session);
    assert_int_equal(slope_check(without), SLOPE_STATUS_error);
    assert_non_null(strstr(slope_messages(host.session), "error E3004"));
    assert_int_equal(slope_check(right), SLOPE_STATUS_ok);
    slope_session_free(host.session);
}

/* What the last program read of the library is kept for the next, which finds there what it would have found
 * without. */
static void files_of_the_library_are_kept(void **state) {
    static const char *const texts[] = {
        "float f(uint seed) { RandomStream r = RandomStream(seed, 0); return r.nextFloat(); }",
        "struct RandomStream { float at; }; float f(float2x2 m) { return determinant(m); }",
        "float f() { Momentum<float> m; return toUnitFloat(7); }",
    };
    (void)state;
    Host host = {0};
    open_session(&host);
    size_t used = 0;
    for (int i = 0; i < 9; i++) {
        SlopeProgram *one = loaded(&host, texts[i % 3]), *other = loaded(&host, texts[(i + 1) % 3]);
        assert_int_equal(slope_check(other), SLOPE_STATUS_ok);
        assert_int_equal(slope_check(one), SLOPE_STATUS_ok);
        slope_program_free(i % 2 ? one : other);
        slope_program_free(i % 2 ? other : one);
        if (i > 3) assert_int_equal(host.used, used);
        used = host.used;
    }
    slope_session_free(host.session);
    assert_int_equal(host.used, 0);
}

/* What a program is made into: its messages and its IR. */
static char *made_of(Host *host, const char *text, SlopeProgram **program) {
    SlopeBlob *blob = NULL;
    char *made = NULL;
    slope_clear_messages(host->session);
    *program = NULL;
    if (load(host, text, program) == SLOPE_STATUS_ok) slope_dump(*program, NULL, NULL, &blob);
    assert_true(asprintf(&made, "%s%s", slope_messages(host->session), blob ? blob->data : "") >= 0);
    slope_blob_free(blob);
    return made;
}

/* Whatever the programs before it asked for, extended, differentiated or got wrong, a program becomes what it
 * becomes alone. */
static void what_came_before_does_not_matter(void **state) {
    static const char *const texts[] = {
        sample,
        declaring,
        "interface INamed { int name(); }\n"
        "extension float3 : INamed { int name() { return 3; } }\n"
        "extension int : IFunc<int, int> { int operator()(int x) { return this + x; } }\n"
        "int named<T : INamed>(T x) { return x.name(); }\n"
        "int applied<F : IFunc<int, int> >(F f) { return f(2); }\n"
        "export int main() { return named(float3(1)) + applied(5); }\n",
        "int applied<F : IFunc<int, int> >(F f) { return f(2); }\n"
        "int f() { return applied(5) + float3(1).name(); }\n",
        "[ForwardDerivativeOf(rsqrt)] DifferentialPair<T> own<T : "
        "__BuiltinFloatingPointType>(DifferentialPair<T> x)\n"
        "{ return diffPair(rsqrt(x.p), T(7) * x.d); }\n"
        "[Differentiable] float g(float x) { return rsqrt(x) * length(float3(x, 1, 2)); }\n"
        "export float main(float x) { return fwd_diff(g)(diffPair(x, 1.0f)).d; }\n",
        "[Differentiable] float g(float x) { return rsqrt(x); }\n"
        "export float main(float x) { return fwd_diff(g)(diffPair(x, 1.0f)).d; }\n",
        "float f(uint seed) { RandomStream r = RandomStream(seed, 0); return r.nextFloat() + unknown; }\n",
    };
    enum { COUNT = sizeof texts / sizeof *texts };
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *before = NULL;
    for (int i = 0; i < 3 * COUNT; i++) {
        Host alone = {0};
        SlopeProgram *program, *other;
        const char *text = texts[i * 3 % COUNT];
        open_session(&alone);
        char *expected = made_of(&alone, text, &other), *made = made_of(&host, text, &program);
        assert_string_equal(made, expected);
        free(made);
        free(expected);
        slope_session_free(alone.session);
        if (i % 2) slope_program_free(before); /* sometimes two are there at a time */
        if (i % 2) slope_program_free(program);
        else before = program;
    }
    slope_session_free(host.session);
    assert_int_equal(host.used, 0);
}

/* Each misuse is told, also the hundredth of its kind. */
/* Of a program with a function that fails when it is lowered, one whose derivative is lost, and one whose
 * address has none. */
static const char failing[] =
    "int room<let N : int>() { static_assert(N > 3, \"too small\"); return N; }\n"
    "int small() { return room<2>(); } int large() { return room<4>(); } int smaller() { return room<1>() + "
    "1; }\n"
    "[BackwardDerivative(back)] float given(float x) { return x * 0.5; }\n"
    "void back(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 0.5f * d); }\n"
    "[Differentiable] float half(float x) { return given(x); }\n"
    "void clear(float* p) { *p = 5; }\n"
    "[Differentiable] float kept(float x) { float a[2] = {x, x * x}; no_diff(clear(&a[0])); return a[1]; }\n"
    "[Differentiable] float twice(float x) { return kept(x) * 2; }\n"
    "[Differentiable] float plain(float x) { return x * x; }\n";

static void assert_found(SlopeProgram *program, const char *name, bool is_well) {
    SlopeFunction *function;
    void *address;
    SlopeStatus status = slope_find_function(program, name, &function);
    if (status == SLOPE_STATUS_ok) status = slope_function_address(function, &address);
    assert_int_equal(status == SLOPE_STATUS_ok, is_well);
}

static void what_fails_fails_again(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, failing);
    for (int i = 0; i < 2; i++) {
        const char *const wrong[] = {"small", "smaller", "fwd_diff(half)", "bwd_diff(kept)",
                                     "bwd_diff(twice)"},
                          *const right[] = {"large", "half", "bwd_diff(half)", "kept", "bwd_diff(plain)"};
        for (int k = 0; k < 5; k++) {
            slope_clear_messages(host.session);
            assert_found(program, wrong[k], false);
            assert_string_not_equal(slope_messages(host.session), "");
            assert_found(program, right[k], true);
        }
    }
    slope_clear_messages(host.session);
    assert_found(program, "small", false);
    assert_non_null(strstr(slope_messages(host.session), "E7055: 'small' has errors"));
    slope_session_free(host.session);
}

static const char summed[] =
    "RWStructuredBuffer<float> b; RWStructuredBuffer<float> s; uniform int n;\n"
    "float f(float x) { return sin(x); }\n"
    "[shader(\"compute\")] [numthreads(4, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {\n"
    "    float y = f(b[id.x]); for (int i = 0; i < n; i++) b[i] += y * s[i]; InterlockedAdd(s[0], y);\n"
    "}\n";

/* Does what the program is used for before matter? */
static void use_program(SlopeProgram *program, const char *other) {
    SlopeFunction *function;
    SlopeKernel *kernel;
    SlopeBlob *unused;
    float x[2] = {0}, y[2];
    const char *const entry = "f";
    SlopeBuildOptions options = {.target = other, .entries = &entry, .entry_count = 1};
    assert_int_equal(slope_find_kernel(program, "main", &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "f", &function), SLOPE_STATUS_ok);
    assert_int_equal(slope_call_batch(function, 2, (void *[]){x, y}, NULL), SLOPE_STATUS_ok);
    assert_int_equal(slope_build(program, &options, &unused), SLOPE_STATUS_ok);
    assert_int_equal(slope_dump(program, NULL, "inline", &unused), SLOPE_STATUS_ok);
}

/* A target, or a stage. */
static SlopeBlob *made_after(SlopeSession *session, const char *target, const char *stage,
                             const char *other) {
    SlopeProgram *program;
    SlopeBlob *blob;
    assert_int_equal(slope_load_text(session, "s.slang", summed, strlen(summed), &program), SLOPE_STATUS_ok);
    if (other) use_program(program, other);
    assert_int_equal(target ? slope_build(program, &(SlopeBuildOptions){.target = target}, &blob)
                            : slope_dump(program, NULL, stage, &blob),
                     SLOPE_STATUS_ok);
    slope_program_free(program);
    return blob;
}

static void output_is_the_same_after_others(void **state) {
    (void)state;
    SlopeConfig config;
    SlopeSession *session;
    const char *const targets[] = {"c", "cuda", "slang"};
    const char *const stages[] = {"syntax", "lower", NULL};
    slope_config_init(&config);
    config.interpret = true;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    for (int i = 0; i < 3; i++) {
        const SlopeBlob *alone = made_after(session, targets[i], NULL, NULL);
        assert_string_equal(made_after(session, targets[i], NULL, targets[i])->data, alone->data);
        assert_string_equal(made_after(session, targets[i], NULL, targets[(i + 1) % 3])->data, alone->data);
        alone = made_after(session, NULL, stages[i], NULL);
        assert_string_equal(made_after(session, NULL, stages[i], targets[i])->data, alone->data);
    }
    slope_session_free(session);
}

/* What is made has warnings of its own, which nobody sees: not so the next program, nor this one, whatever is
 * asked first. */
static void warnings_are_told_once(void **state) {
    (void)state;
    static const char text[] = "float f(double x) { return x; } uniform int n; void main() { f(n); }";
    SlopeSession *session;
    SlopeProgram *program;
    SlopeBlob *blob;
    SlopeUniform uniform;
    const SlopeType *type;
    assert_int_equal(slope_session_new(NULL, &session), SLOPE_STATUS_ok);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(slope_load_text(session, "w.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
        assert_int_equal(slope_build(program, &(SlopeBuildOptions){.target = "c"}, &blob), SLOPE_STATUS_ok);
        assert_non_null(strstr(slope_messages(session), "W3201"));
        assert_int_equal(slope_check(program), SLOPE_STATUS_ok);
        assert_null(strstr(strstr(slope_messages(session), "W3201") + 1, "W3201"));
        assert_true(slope_uniform(program, 0, &uniform));
        for (int k = 0; k < 2; k++) {
            slope_clear_messages(session);
            assert_int_equal(slope_find_type(program, "Nothing", &type), SLOPE_STATUS_misuse);
            assert_string_not_equal(slope_messages(session), "");
        }
        slope_clear_messages(session);
        slope_program_free(program);
    }
    slope_session_free(session);
}

static void misuse_is_always_told(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, "int f() { return 1; }");
    for (int i = 0; i < 100; i++) {
        SlopeFunction *function;
        slope_clear_messages(host.session);
        assert_int_equal(slope_find_function(program, "g", &function), SLOPE_STATUS_misuse);
        assert_non_null(strstr(slope_messages(host.session), "unknown name 'g'"));
    }
    slope_session_free(host.session);
}

/* After a failure the program is refused, unless only the blob found no room: then it is whole and can be
 * shown. */
static void refused_or_whole(SlopeProgram *program) {
    SlopeBlob *blob = NULL;
    SlopeStatus status = slope_check(program);
    if (status == SLOPE_STATUS_ok) assert_int_equal(slope_dump(program, NULL, NULL, &blob), SLOPE_STATUS_ok);
    else assert_int_equal(status, SLOPE_STATUS_memory);
}

/* What was at work when memory ran out is refused afterwards; the session goes on. */
static void the_session_survives_lack_of_memory(void **state) {
    (void)state;
    int failures = 0;
    for (long n = 1; n < 40; n++) {
        Host host = {0};
        open_session(&host);
        host.failing = n;
        SlopeProgram *program = NULL, *fresh = NULL;
        SlopeBlob *blob = NULL;
        SlopeStatus status = load(&host, sample, &program);
        if (status == SLOPE_STATUS_ok) status = slope_dump(program, NULL, NULL, &blob);
        host.failing = 0;
        if (status != SLOPE_STATUS_ok) {
            failures++;
            assert_int_equal(status, SLOPE_STATUS_memory);
            if (program) refused_or_whole(program);
        }
        assert_int_equal(load(&host, sample, &fresh), SLOPE_STATUS_ok);
        assert_int_equal(slope_check(fresh), SLOPE_STATUS_ok);
        assert_int_equal(slope_dump(fresh, NULL, NULL, &blob), SLOPE_STATUS_ok);
        slope_session_free(host.session);
        assert_int_equal(host.used, 0);
    }
    assert_true(failures > 3);
}

/* ---- running */

static SlopeFunction *found(SlopeProgram *program, const char *name) {
    SlopeFunction *function;
    assert_int_equal(slope_find_function(program, name, &function), SLOPE_STATUS_ok);
    return function;
}

static void errors_belong_to_their_run(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, "int bad() { abort(\"bad was called\"); return 1; }\n"
                                          "int good() { return 5; }");
    void *address;
    int (*bad)(void);
    int result = 0;
    assert_int_equal(slope_function_address(found(program, "bad"), &address), SLOPE_STATUS_ok);
    memcpy(&bad, &address, sizeof address);
    bad();
    assert_int_equal(slope_call(found(program, "good"), (void *[]){&result}), SLOPE_STATUS_ok);
    assert_int_equal(result, 5);
    assert_non_null(
        strstr(slope_messages(host.session), "warning W7008: a function that was called by its address"));
    assert_int_equal(slope_call(found(program, "bad"), (void *[]){&result}), SLOPE_STATUS_error);
    assert_int_equal(slope_call(found(program, "good"), (void *[]){&result}), SLOPE_STATUS_ok);
    slope_session_free(host.session);
}

static void a_stopped_run_says_so(void **state) {
    (void)state;
    Host host = {0};
    open_session(&host);
    SlopeProgram *program = loaded(&host, "void main() { printf(\"x\\n\"); }");
    SlopeKernel *kernel;
    assert_int_equal(slope_find_kernel(program, "main", &kernel), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(kernel, 10000, 10, 1), SLOPE_STATUS_ok);
    host.to_stop = host.session;
    assert_int_equal(slope_dispatch(kernel, 10000, 10, 1), SLOPE_STATUS_stopped);
    assert_non_null(strstr(slope_messages(host.session), "E7007"));
    host.to_stop = NULL;
    assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_ok);
    slope_session_free(host.session);
}

static void names_end_on_both_sides(void **state) {
    (void)state;
    assert_null(slope_stage_name(-1));
    assert_null(slope_target_name(-1));
    assert_string_equal(slope_stage_name(0), "syntax");
}

/* The passes inline what has a derivative of its own; a derivative that is asked for later is made from what
 * was written. */
static void ask_for_derivatives(const SlopeConfig *config) {
    SlopeSession *session;
    SlopeProgram *program;
    SlopeFunction *plain, *backward, *forward, *second;
    static const char text[] =
        "[ForwardDerivative(gf)] [BackwardDerivative(gb)] float g(float x) { return x * x; }\n"
        "[Differentiable] DifferentialPair<float> gf(DifferentialPair<float> x) { return diffPair(x.p * x.p, "
        "50 * x.p * x.d); }\n"
        "void gb(inout DifferentialPair<float> x, float d) { x = diffPair(x.p, 100 * d); }\n"
        "[Differentiable] float f(float x) { return 2 * g(x); }\n";
    assert_int_equal(slope_session_new(config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "later.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    float x = 3, y = 0, d = 1, pair[2] = {3, 0}, tangent[2] = {3, 1}, result[2] = {0, 0};
    assert_int_equal(slope_find_function(program, "f", &plain), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(plain, (void *[]){&x, &y}), SLOPE_STATUS_ok);
    assert_true(y == 18);
    assert_int_equal(slope_find_function(program, "bwd_diff(f)", &backward), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(backward, (void *[]){pair, &d}), SLOPE_STATUS_ok);
    assert_true(pair[1] == 200);
    assert_int_equal(slope_find_function(program, "fwd_diff(f)", &forward), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(forward, (void *[]){tangent, result}), SLOPE_STATUS_ok);
    assert_true(result[0] == 18 && result[1] == 300);
    float twice[4] = {3, 1, 1, 0},
          out[4] = {0}; /* of the pair: value and derivative, each with its tangent */
    assert_int_equal(slope_find_function(program, "fwd_diff(fwd_diff(f))", &second), SLOPE_STATUS_ok);
    assert_int_equal(slope_call(second, (void *[]){twice, out}), SLOPE_STATUS_ok);
    assert_true(out[0] == 18 && out[1] == 300 && out[2] == 12 && out[3] == 100);
    assert_string_equal(slope_messages(session), "");
    slope_session_free(session);
}

static void derivatives_may_be_asked_for_one_after_the_other(void **state) {
    (void)state;
    SlopeConfig config;
    slope_config_init(&config);
    config.interpret = true;
    ask_for_derivatives(NULL);
    ask_for_derivatives(&config);
}

/* What is interpreted has no machine code that could be called. */
static void interpreted_functions_have_no_address(void **state) {
    (void)state;
    SlopeConfig config;
    SlopeSession *session;
    SlopeProgram *program;
    SlopeFunction *twice;
    const char *text = "float twice(float x) { return 2 * x; }";
    float x = 4, y = 0;
    void *address = &x;
    slope_config_init(&config);
    config.interpret = true;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(session, "t.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_function(program, "twice", &twice), SLOPE_STATUS_ok);
    assert_int_equal(slope_function_address(twice, &address), SLOPE_STATUS_misuse);
    assert_null(address);
    assert_non_null(
        strstr(slope_messages(session), "error E7023: 'twice' is interpreted and has no address"));
    assert_int_equal(slope_call(twice, (void *[]){&x, &y}), SLOPE_STATUS_ok);
    assert_true(y == 8);
    slope_session_free(session);
}

static void remember(void *user, const SlopeDiagnostic *diagnostic) { *(int *)user = diagnostic->code; }

/* A session with this number in its configuration is refused, with a message. */
static void assert_refused(SlopeConfig *config, int *field, int value, bool is_refused) {
    int code = 0, before = *field;
    SlopeSession *session;
    config->user = &code;
    config->report = remember;
    *field = value;
    SlopeStatus status = slope_session_new(config, &session);
    assert_int_equal(status, is_refused ? SLOPE_STATUS_misuse : SLOPE_STATUS_ok);
    assert_int_equal(code, is_refused ? 7068 : 0);
    slope_session_free(session);
    *field = before;
    config->user = NULL;
    config->report = NULL;
}

static void numbers_that_mean_nothing_are_told(void **state) {
    (void)state;
    SlopeConfig config;
    SlopeSession *session;
    slope_config_init(&config);
    int *not_negative[] = {&config.error_limit, &config.threads, &config.groups, &config.stack_mib,
                           &config.tape_mib};
    for (size_t i = 0; i < sizeof not_negative / sizeof not_negative[0]; i++) {
        assert_refused(&config, not_negative[i], -1, true);
        assert_refused(&config, not_negative[i], 1, false);
    }
    for (int lanes = -3; lanes < 40; lanes++) {
        bool is_wide = lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
        assert_refused(&config, &config.lanes, lanes, !(is_wide || (lanes >= SLOPE_LANES_AUTO && lanes < 2)));
    }
    assert_refused(&config, &config.optimization, -1, true);
    assert_refused(&config, &config.optimization, 3, false);
    assert_refused(&config, &config.optimization, 4, true);
    assert_refused(&config, &config.wave, -1, true);
    assert_refused(&config, &config.wave, 128, false);
    assert_refused(&config, &config.wave, 129, true);
    config.floats = (SlopeFloats)(SLOPE_FLOATS_fast + 1);
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_misuse);
    config.floats = SLOPE_FLOATS_fast;
    int *counts[] = {&config.define_count, &config.include_path_count, &config.conformance_count,
                     &config.link_count};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *counts[i] = -1;
        assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_misuse);
        *counts[i] = 0;
    }
}

/* ---- small stacks */

enum { SMALL_STACK = 256 << 10, MOST_TERMS = 4000, LONG_TEXT = 40000 };

/* A sum of that many terms, which is a tree of that depth. */
static void write_sum(char *out, int terms) {
    char *at = out + sprintf(out, "[Differentiable] float f(float x) { return x");
    for (int i = 1; i < terms; i++) at += sprintf(at, " + x");
    strcpy(at, "; }");
}

/* So many in one another. */
static void write_structs(char *out, int count) {
    char *at = out + sprintf(out, "struct S0 { float x; }\n");
    for (int i = 1; i < count; i++) at += sprintf(at, "struct S%d { S%d s; }\n", i, i - 1);
    sprintf(at, "[Differentiable] float f(float x) { S%d s = {}; return x; }", count - 1);
}

typedef struct SmallStack {
    SlopeSession *session;
    const char *text;
    SlopeStatus loaded, found, called;
    float derivative;
} SmallStack;

static void *compile_on_small_stack(void *user) {
    SmallStack *small = user;
    SlopeProgram *program;
    SlopeFunction *function;
    float pair[2] = {1, 0}, seed = 1;
    small->loaded = slope_load_text(small->session, "sum.slang", small->text, strlen(small->text), &program);
    if (small->loaded != SLOPE_STATUS_ok) return NULL;
    small->found = slope_find_function(program, "bwd_diff(f)", &function);
    if (small->found == SLOPE_STATUS_ok) small->called = slope_call(function, (void *[]){pair, &seed});
    small->derivative = pair[1];
    slope_program_free(program);
    return NULL;
}

static SmallStack run_on_small_stack(SlopeSession *session, const char *text) {
    SmallStack small = {.session = session, .text = text};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, compile_on_small_stack, &small), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return small;
}

static void threads_of_the_host_may_have_little_stack(void **state) {
    static char text[LONG_TEXT];
    SlopeConfig config;
    SlopeSession *session;
    (void)state;
    slope_config_init(&config);
    config.optimization = 0;
    config.limit_memory = 64;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    write_sum(text, MOST_TERMS);
    SmallStack small = run_on_small_stack(session, text);
    assert_true(small.loaded == SLOPE_STATUS_ok && small.found == SLOPE_STATUS_ok);
    assert_true(small.called == SLOPE_STATUS_ok && small.derivative == MOST_TERMS);
    write_sum(text, MOST_TERMS + 1);
    small = run_on_small_stack(session, text);
    assert_int_equal(small.loaded, SLOPE_STATUS_error);
    write_structs(text, 310); /* the limit springs a trap that was set on the other stack */
    small = run_on_small_stack(session, text);
    assert_true(small.found == SLOPE_STATUS_error || small.called == SLOPE_STATUS_error);
    write_sum(text, 10);
    small = run_on_small_stack(session, text);
    assert_true(small.called == SLOPE_STATUS_ok && small.derivative == 10);
    slope_session_free(session);
}

/* A kernel that was found, but never run, has errors: they are told once, and nobody else has them. */
static void errors_of_others_are_theirs(void **state) {
    (void)state;
    static const char text[] =
        "extern float beyond(float x); RWStructuredBuffer<float> b;\n"
        "[shader(\"compute\")] [numthreads(1, 1, 1)] void wrong() { b[0] = beyond(b[0]); }\n"
        "[Differentiable] float f(float x) { return x * x; }";
    SlopeConfig config;
    SlopeSession *session;
    slope_config_init(&config);
    config.interpret = true;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    for (int i = 0; i < 2; i++) {
        SlopeProgram *program;
        SlopeKernel *kernel;
        SlopeFunction *function;
        const SlopeGradcheckResult *results;
        int count;
        float x = 3, y = 0;
        assert_int_equal(slope_load_text(session, "o.slang", text, strlen(text), &program), SLOPE_STATUS_ok);
        assert_int_equal(slope_find_kernel(program, "wrong", &kernel), SLOPE_STATUS_ok);
        if (i == 0) assert_int_equal(slope_gradcheck(program, NULL, &results, &count), SLOPE_STATUS_ok);
        assert_int_equal(slope_find_function(program, "f", &function), SLOPE_STATUS_ok);
        assert_int_equal(slope_call(function, (void *[]){&x, &y}), SLOPE_STATUS_ok);
        assert_true(y == 9);
        assert_int_equal(slope_dispatch(kernel, 1, 1, 1), SLOPE_STATUS_error);
        assert_non_null(strstr(slope_messages(session), "'beyond' is declared, but has no body"));
        slope_clear_messages(session);
        slope_program_free(program);
    }
    slope_session_free(session);
}

/* What asks for its thread can be launched from outside, or by functions that are compiled with it or
 * before. */
static void launches_come_before_what_is_launched(void **state) {
    (void)state;
    static const char text[] =
        "[CudaKernel] void kernel(int n) { if (cudaThreadIdx().x > 7) abort(\"7\"); }\n"
        "void outside() { kernel(1); }\n"
        "void launch() { __dispatch_kernel(kernel, uint3(1), uint3(3, 1, 1))(1); }";
    for (int late = 0; late < 2; late++) {
        Host host = {0};
        open_session(&host);
        SlopeProgram *program = loaded(&host, text);
        assert_int_equal(slope_call(found(program, late ? "outside" : "launch"), NULL), SLOPE_STATUS_ok);
        SlopeFunction *second;
        SlopeStatus status = slope_find_function(program, late ? "launch" : "outside", &second);
        if (status == SLOPE_STATUS_ok) status = slope_call(second, NULL);
        assert_int_equal(status, late ? SLOPE_STATUS_error : SLOPE_STATUS_ok);
        assert_true(!late == !strstr(slope_messages(host.session), "E6010"));
        slope_session_free(host.session);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_come_before_what_is_launched),
        cmocka_unit_test(errors_of_others_are_theirs),
        cmocka_unit_test(threads_of_the_host_may_have_little_stack),
        cmocka_unit_test(derivatives_may_be_asked_for_one_after_the_other),
        cmocka_unit_test(a_program_returns_its_memory),
        cmocka_unit_test(asking_again_takes_no_memory),
        cmocka_unit_test(the_second_program_finds_the_library_ready),
        cmocka_unit_test(a_program_says_what_it_declares),
        cmocka_unit_test(types_are_found_by_name),
        cmocka_unit_test(programs_are_apart),
        cmocka_unit_test(files_of_the_library_are_kept),
        cmocka_unit_test(what_came_before_does_not_matter),
        cmocka_unit_test(what_fails_fails_again),
        cmocka_unit_test(output_is_the_same_after_others),
        cmocka_unit_test(warnings_are_told_once),
        cmocka_unit_test(misuse_is_always_told),
        cmocka_unit_test(the_session_survives_lack_of_memory),
        cmocka_unit_test(errors_belong_to_their_run),
        cmocka_unit_test(a_stopped_run_says_so),
        cmocka_unit_test(names_end_on_both_sides),
        cmocka_unit_test(interpreted_functions_have_no_address),
        cmocka_unit_test(numbers_that_mean_nothing_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
