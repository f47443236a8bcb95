/* The API as a sequence of calls, drawn from the input: each byte chooses a call, the next ones its
 * arguments, among them NULL, names that do not exist and handles of other programs; allocations fail from
 * some point on, for a while. Every call must return, and the session must be free to go at the end with
 * nothing left behind. */
#include "slope.h"
#include "target.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 };

typedef struct Host {
    const uint8_t *data;
    size_t size, at;
    long until_failure, failures; /* allocations before the next ones fail, and how many do; none: 0 */
    size_t held;
    SlopeSession *session;
    SlopeProgram *programs[SLOTS];
    SlopeFunction *functions[SLOTS];
    SlopeKernel *kernels[SLOTS];
    SlopeBuffer *buffers[SLOTS];
    int owner[SLOTS]; /* of functions and kernels: which program */
} Host;

static void *resize(void *user, void *old, size_t old_size, size_t new_size) {
    Host *host = user;
    if (new_size && host->failures > 0 && --host->until_failure < 0) {
        host->failures--;
        return NULL;
    }
    host->held += new_size - old_size;
    if (new_size) return realloc(old, new_size);
    free(old);
    return NULL;
}

static void ignore(void *user, const SlopeDiagnostic *diagnostic) { (void)user, (void)diagnostic; }

static int no_file(void *user, const char *path, const char **bytes, size_t *size) {
    (void)user, (void)path, (void)bytes, (void)size;
    return ENOENT;
}

static unsigned draw(Host *host, unsigned below) {
    return host->at < host->size ? host->data[host->at++] % below : 0;
}

static const char *const texts[] = {
    "[Differentiable] float f(float x) { return x * x; } uniform float k; RWStructuredBuffer<float> b; void "
    "main() { b[0] = f(k); }",
    "struct S { float3 a; int n[4]; }; uniform S s; ConstantBuffer<S> c; [shader(\"compute\")] "
    "[numthreads(4, "
    "1, 1)] void run(uint3 i : SV_DispatchThreadID, uniform int m) { }",
    "float f(float x) { return y; }",
    "[Differentiable] float f(float x, int n) { float y = x; for (int i = 0; i < n; i++) y = y * x + 1; "
    "return y; } Texture2D t; SamplerState p; void main() { printf(\"%g\", f(2, 3)); }",
    "interface I { float g(); } struct A : I { float a; float g() { return a; } } float f(I i) { return "
    "i.g(); }",
    "import nothing; void main() {}",
    "",
};

static const char *const names[] = {"f",   "bwd_diff(f)", "fwd_diff(f)", "main", "run",  "k",
                                    "s.a", "s.n[2]",      "c.n",         "b",    "t",    "nothing",
                                    "",    "m",           "run.m",       "f(",   "1 + 1"};

static const char *a_name(Host *host) {
    unsigned drawn = draw(host, sizeof names / sizeof *names + 1);
    return drawn == sizeof names / sizeof *names ? NULL : names[drawn];
}

static void drop_program(Host *host, unsigned slot) {
    slope_program_free(host->programs[slot]);
    host->programs[slot] = NULL;
    for (int i = 0; i < SLOTS; i++)
        if (host->owner[i] == (int)slot) host->functions[i] = NULL, host->kernels[i] = NULL;
}

static void load(Host *host, unsigned slot) {
    const char *text = texts[draw(host, sizeof texts / sizeof *texts)];
    drop_program(host, slot);
    slope_load_text(host->session, "api.slang", text, strlen(text), &host->programs[slot]);
}

static void look_at_type(const SlopeType *type, int depth) {
    SlopeField field;
    slope_type_kind(type), slope_type_name(type), slope_type_size(type), slope_type_align(type);
    slope_type_count(type), slope_type_element_stride(type), slope_type_buffer_kind(type);
    if (!type || depth > 3) return;
    if (slope_type_element(type)) look_at_type(slope_type_element(type), depth + 1);
    for (int i = -1; i <= slope_type_field_count(type); i++)
        if (slope_type_field(type, i, &field)) look_at_type(field.type, depth + 1);
}

static void look_at_declarations(SlopeProgram *program, const char *name) {
    SlopeDeclaration row;
    const SlopeType *type;
    for (int i = 0; i < slope_declaration_count(program); i++) slope_declaration(program, i, &row);
    if (slope_find_type(program, name, &type) == SLOPE_STATUS_ok) slope_type_size(type);
}

static void look_at_uniforms(SlopeProgram *program) {
    SlopeUniform uniform;
    for (int i = -1, count = slope_uniform_count(program); i <= count; i++)
        if (slope_uniform(program, i, &uniform)) look_at_type(uniform.type, 0);
}

static void look_at_function(SlopeFunction *function) {
    SlopeParameter parameter;
    slope_function_name(function);
    look_at_type(slope_function_result(function), 0);
    for (int i = -1; i <= slope_function_parameter_count(function); i++)
        if (slope_function_parameter(function, i, &parameter)) look_at_type(parameter.type, 0);
}

static void output(Host *host, SlopeProgram *program) {
    static const char *const targets[] = {"c", "cuda", "llvm", NULL};
    static const char *const stages[] = {"syntax", "check", "lower", "transpose", "bad", NULL};
    const char *entry = a_name(host);
    SlopeBuildOptions options = {
        .target = targets[draw(host, 4)], .entries = &entry, .entry_count = (int)draw(host, 2)};
    SlopeBlob *blob = NULL;
    bool builds = draw(host, 2);
    SlopeStatus status = builds ? slope_build(program, &options, &blob)
                                : slope_dump(program, a_name(host), stages[draw(host, 6)], &blob);
    if (status == SLOPE_STATUS_ok && draw(host, 2)) slope_blob_free(blob);
}

static void buffer_call(Host *host, unsigned slot) {
    static char memory[64];
    SlopeBuffer **buffer = &host->buffers[slot];
    switch (draw(host, 4)) {
    case 0:
        if (!*buffer) slope_buffer_new(host->session, draw(host, 200), buffer);
        break;
    case 1:
        if (!*buffer) slope_buffer_wrap(host->session, memory, draw(host, sizeof memory), buffer);
        break;
    default: slope_buffer_data(*buffer), slope_buffer_size(*buffer), slope_buffer_counter(*buffer); break;
    }
}

static void image_call(Host *host, SlopeProgram *program) {
    SlopeImage image = {.width = (int)draw(host, 5) - 1,
                        .height = (int)draw(host, 3),
                        .depth = 1,
                        .channels = (int)draw(host, 6),
                        .format = (SlopeImageFormat)draw(host, 14),
                        .make_levels = draw(host, 2)};
    slope_bind_image(program, a_name(host), draw(host, 8) ? &image : NULL, NULL);
}

static void one_call(Host *host) {
    static const uint32_t zeros[64];
    unsigned call = draw(host, 15), slot = draw(host, SLOTS), other = draw(host, SLOTS);
    SlopeProgram *program = host->programs[slot];
    SlopeUniform uniform;
    switch (call) {
    case 0: load(host, slot); break;
    case 1: slope_check(program); break;
    case 2:
        host->owner[other] = (int)slot;
        host->kernels[other] = NULL;
        slope_find_function(program, a_name(host), &host->functions[other]);
        break;
    case 3:
        host->owner[other] = (int)slot;
        host->functions[other] = NULL;
        slope_find_kernel(program, a_name(host), &host->kernels[other]);
        break;
    case 4: look_at_function(host->functions[slot]); break;
    case 5: look_at_uniforms(program); break;
    case 6: slope_find_uniform(program, a_name(host), &uniform); break;
    case 7: slope_set_uniform(program, a_name(host), draw(host, 8) ? zeros : NULL, draw(host, 40)); break;
    case 8: slope_bind_buffer(program, a_name(host), host->buffers[other]); break;
    case 9: output(host, program); break;
    case 10: buffer_call(host, slot); break;
    case 11: image_call(host, program); break;
    case 12: drop_program(host, slot); break;
    case 13: look_at_declarations(program, a_name(host)); break;
    default:
        host->until_failure = (long)draw(host, 255) * (long)draw(host, 40);
        host->failures = 1 + (long)draw(host, 20);
        slope_messages(host->session), slope_clear_messages(host->session), slope_stop(host->session);
        slope_kernel_name(host->kernels[slot]), slope_kernel_uses(host->kernels[slot], (int)other);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Host host = {.data = data, .size = size};
    SlopeConfig config;
    slope_config_init(&config);
    config.user = &host;
    config.resize = resize;
    config.read_file = no_file;
    config.release_file = NULL;
    if (draw(&host, 2)) config.report = ignore;
    host.until_failure = (long)draw(&host, 255);
    host.failures = draw(&host, 4) == 0;
    if (slope_session_new(&config, &host.session) == SLOPE_STATUS_ok)
        while (host.at < host.size) one_call(&host);
    slope_session_free(host.session);
    if (host.held != 0) {
        fprintf(stderr, "%zu bytes are left\n", host.held);
        abort();
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    (void)seed;
    return LLVMFuzzerMutate(data, size, room);
}
