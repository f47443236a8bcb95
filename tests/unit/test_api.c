/* The public API over a pipeline that only pretends: handles, messages, failures, reflection, uniforms,
 * output.
 *
 * The program that the pipeline pretends to compile:
 *
 *     struct Light { float3 position; bool on; int16_t levels[2]; }
 *     RWStructuredBuffer<float> result;   StructuredBuffer<Light> lights;   ConstantBuffer<Light> sun;   (std140)
 *     AppendStructuredBuffer<int> found;  ByteAddressBuffer raw;            int counts[3];   float *weights;
 *     Light lerp(Light this, out float3 a, inout int b, half c);
 *     [numthreads(4, 2, 1)] void paint(uniform float scale);   void other(uniform float scale, uniform int counts); */
#include "driver/driver.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- the pipeline */

typedef struct Fake {
    Global globals[7];
    Func lerp, paint, other;
    Param lerp_params[5], paint_params[1], other_params[2];
    Record *light;
    bool compiled;
    char counts[12];          /* where compiled code would keep that uniform */
    void *const *called_with; /* args of the last call */
    float seen_scale;         /* when `paint` ran last */
    int groups_run;
} Fake;

static Fake fake;

static void pretend_groups(const RtContext *context, uint64_t first, uint64_t end) {
    memcpy(&fake.seen_scale, context->args[0], sizeof fake.seen_scale);
    fake.groups_run += (int)(end - first);
}

static const RtKernel pretend_kernel = {.run = pretend_groups, .group_size = {4, 2, 1}};

void driver_keep(SlopeSession *session, Str text) { (void)session, (void)text; }

bool driver_begin(SlopeProgram *program) {
    (void)program;
    return false;
}

SlopeStatus driver_open(SlopeSession *session) {
    fake = (Fake){0};
    (void)session;
    return SLOPE_STATUS_ok;
}
void driver_close(SlopeSession *session) { (void)session; }
void driver_unload(SlopeProgram *program) { (void)program; }

static void make_light(SlopeProgram *program) {
    Types *types = &program->types;
    Record *light = record_new(types, name_from(&program->names, "Light"));
    light->fields = arena_array(&program->arena, Field, 3);
    light->nfields = 3;
    light->fields[0] = (Field){.name = name_from(&program->names, "position"),
                               .type = type_vector(types, type_basic(types, TYPE_float), 3)};
    light->fields[1] =
        (Field){.name = name_from(&program->names, "on"), .type = type_basic(types, TYPE_bool)};
    light->fields[2] = (Field){.name = name_from(&program->names, "levels"),
                               .type = type_array(types, type_basic(types, TYPE_int16), 2)};
    fake.light = light;
}

SlopeStatus driver_load(SlopeProgram *program, Str text) {
    SlopeSession *session = program->session;
    SourceFile *file = source_add(&program->sources, program->path, text);
    make_light(program);
    for (int i = 0; i < text.len; i++) /* every @ is an error */
        if (text.at[i] == '@')
            diag_report(session->diags, DIAG_expected_token, file->base + (Loc)i, "code", "'@'");
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_check(SlopeProgram *program) {
    if (strstr(program->path->text, "fault")) arena_fault(&program->arena, "a \"bad\" day");
    if (strstr(program->path->text, "malformed")) arena_malformed(&program->arena, "a bad function");
    if (strstr(program->path->text, "huge")) arena_take(&program->arena, SIZE_MAX / 2);
    return SLOPE_STATUS_ok;
}

static Param param(SlopeProgram *program, const char *name, const Type *type, Dir dir, int flags) {
    return (Param){
        .name = name_from(&program->names, name), .type = type, .dir = (uint8_t)dir, .flags = (uint8_t)flags};
}

SlopeStatus driver_find_function(SlopeProgram *program, const char *expression, Func **out) {
    SlopeSession *session = program->session;
    Types *types = &program->types;
    const Type *light = fake.light->type, *position = type_vector(types, type_basic(types, TYPE_float), 3);
    if (strcmp(expression, "paint") == 0) return driver_find_entry(program, expression, out);
    if (strcmp(expression, "Light.lerp") != 0) {
        diag_report(session->diags, DIAG_unknown_uniform, 0, expression);
        return SLOPE_STATUS_misuse;
    }
    fake.lerp_params[0] = param(program, "result", light, DIR_out, PARAM_RESULT | PARAM_BY_ADDRESS);
    fake.lerp_params[1] = param(program, "self", light, DIR_in, PARAM_THIS | PARAM_BY_ADDRESS);
    fake.lerp_params[2] = param(program, "a", position, DIR_out, PARAM_BY_ADDRESS);
    fake.lerp_params[3] = param(program, "b", type_basic(types, TYPE_int), DIR_inout, PARAM_BY_ADDRESS);
    fake.lerp_params[4] = param(program, "c", type_basic(types, TYPE_half), DIR_in, 0);
    fake.lerp = (Func){.name = name_from(&program->names, "lerp"), .params = fake.lerp_params, .nparams = 5};
    *out = &fake.lerp;
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_find_entry(SlopeProgram *program, const char *name, Func **out) {
    SlopeSession *session = program->session;
    Types *types = &program->types;
    bool other = name && strcmp(name, "other") == 0;
    if (name && !other && strcmp(name, "paint") != 0) {
        diag_report(session->diags, DIAG_unknown_uniform, 0, name);
        return SLOPE_STATUS_misuse;
    }
    fake.paint_params[0] = param(program, "scale", type_basic(types, TYPE_float), DIR_in, 0);
    fake.paint =
        (Func){.name = name_from(&program->names, "paint"), .params = fake.paint_params, .nparams = 1};
    memcpy(fake.paint.group_size, (int[]){4, 2, 1}, sizeof fake.paint.group_size);
    fake.other_params[0] = fake.paint_params[0];
    fake.other_params[1] = param(program, "counts", type_basic(types, TYPE_int), DIR_in, 0);
    fake.other =
        (Func){.name = name_from(&program->names, "other"), .params = fake.other_params, .nparams = 2};
    *out = other ? &fake.other : &fake.paint;
    return SLOPE_STATUS_ok;
}

static void add_global(SlopeProgram *program, int index, const char *name, const Type *type,
                       LayoutRules rules) {
    fake.globals[index] = (Global){.kind = GLOBAL_uniform, .type = type, .layout = (uint8_t)rules};
    driver_add_uniform(program, name_from(&program->names, name), NULL, &fake.globals[index]);
}

SlopeStatus driver_list_declarations(SlopeProgram *program, Declarations *out) {
    vec_push(&program->arena, out, ((SlopeDeclaration){.name = "lerp"}));
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_find_type(SlopeProgram *program, const char *expression, const Type **out) {
    (void)program, (void)expression;
    *out = fake.light->type;
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_list_uniforms(SlopeProgram *program) {
    Types *types = &program->types;
    const Type *light = fake.light->type, *number = type_basic(types, TYPE_float),
               *integer = type_basic(types, TYPE_int);
    add_global(program, 0, "result", type_buffer(types, BUFFER_rw_structured, number), LAYOUT_scalar);
    add_global(program, 1, "lights", type_buffer(types, BUFFER_structured, light), LAYOUT_scalar);
    add_global(program, 2, "sun", type_buffer(types, BUFFER_constant, light), LAYOUT_std140);
    add_global(program, 3, "found", type_buffer(types, BUFFER_append, integer), LAYOUT_scalar);
    add_global(program, 4, "raw", type_buffer(types, BUFFER_bytes, type_basic(types, TYPE_void)),
               LAYOUT_scalar);
    add_global(program, 5, "counts", type_array(types, integer, 3), LAYOUT_scalar);
    add_global(program, 6, "weights", type_pointer(types, number), LAYOUT_scalar);
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_compile(SlopeProgram *program, Func *func) {
    (void)program, (void)func;
    fake.compiled = true;
    return SLOPE_STATUS_ok;
}
GpuCache driver_gpu_cache(SlopeSession *session) {
    (void)session;
    return (GpuCache){0};
}
SlopeStatus driver_device_text(SlopeProgram *program, Func *func, const Gpu *gpu, DeviceText *out) {
    (void)gpu, (void)program, (void)func, (void)out;
    return SLOPE_STATUS_error;
}
void *driver_native_address(SlopeProgram *program, Func *func) {
    (void)program;
    return func;
}
void *driver_find_call(SlopeProgram *program, Func *func) {
    (void)program;
    return func;
}
void driver_call(SlopeProgram *program, void *function, void *const *args) {
    (void)program, (void)function;
    fake.called_with = args;
}
const RtKernel *driver_kernel(SlopeProgram *program, Func *func) {
    (void)program, (void)func;
    return &pretend_kernel;
}
Func *driver_sum_form(SlopeProgram *program, Func *func, uint64_t skipped) {
    (void)program, (void)skipped;
    return func;
}
Func *driver_batch_kernel(Func *func, const BatchStep *steps) {
    (void)steps;
    return func;
}
const char *driver_built_name(SlopeProgram *program, const char *name) {
    return format_text(&program->arena, "built_%s", name);
}
bool driver_mentions(SlopeKernel *kernel, const Global *global) {
    (void)kernel;
    return global != NULL;
}

void *driver_uniform_address(SlopeProgram *program, Global *global) {
    (void)program;
    return fake.compiled && global == &fake.globals[5] ? fake.counts : NULL;
}

SlopeStatus driver_build(SlopeProgram *program, const SlopeBuildOptions *options, Text *out) {
    if (options->entry_count) {
        diag_report(program->session->diags, DIAG_unknown_uniform, 0, options->entries[0]);
        return SLOPE_STATUS_misuse;
    }
    text_printf(out, "code for %s", options->target);
    return SLOPE_STATUS_ok;
}
SlopeStatus driver_dump(SlopeProgram *program, const char *function, const char *stage, Text *out) {
    (void)program;
    text_printf(out, "%s after %s", function ? function : "all", stage ? stage : "all");
    return SLOPE_STATUS_ok;
}
bool driver_target_is_linked(const char *name) {
    (void)name;
    return false;
}

const char *driver_target_name(int index) { return (const char *const[]){"obj", "asm", NULL}[index]; }
const char *driver_stage_name(int index) { return (const char *const[]){"syntax", "check", NULL}[index]; }

/* ---- the host */

typedef struct Host {
    long blocks, allowed; /* allocations that live; how many more may be made */
    int messages, last_code, released;
    char last_text[512];
    SlopeSession *session;
    SlopeProgram *program;
} Host;

static void *count_memory(void *user, void *old, size_t old_size, size_t new_size) {
    Host *host = user;
    (void)old_size;
    if (new_size == 0) {
        host->blocks -= old != NULL;
        free(old);
        return NULL;
    }
    if (host->allowed-- <= 0) return NULL;
    host->blocks += old == NULL;
    return realloc(old, new_size);
}

static void take_message(void *user, const SlopeDiagnostic *diagnostic) {
    Host *host = user;
    host->messages++;
    host->last_code = diagnostic->code;
    snprintf(host->last_text, sizeof host->last_text, "%s", diagnostic->text);
    assert_non_null(diagnostic->coloured);
    assert_int_equal(diagnostic->json[0], '{');
}

static int read_from_memory(void *user, const char *path, const char **bytes, size_t *size) {
    (void)user;
    if (strcmp(path, "memory.slang") != 0) return ENOENT;
    *bytes = "int x;\n@\n";
    *size = strlen(*bytes);
    return 0;
}

static void count_release(void *user, const char *bytes, size_t size) {
    (void)bytes, (void)size;
    ((Host *)user)->released++;
}

static SlopeConfig host_config(Host *host) {
    SlopeConfig config;
    slope_config_init(&config);
    config.user = host;
    config.resize = count_memory;
    config.report = take_message;
    config.threads = 1;
    return config;
}

static int set_up(void **state) {
    static Host host;
    host = (Host){.allowed = 1000000};
    SlopeConfig config = host_config(&host);
    assert_int_equal(slope_session_new(&config, &host.session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_text(host.session, "p.slang", "x", 1, &host.program), SLOPE_STATUS_ok);
    *state = &host;
    return 0;
}

static int tear_down(void **state) {
    Host *host = *state;
    slope_session_free(host->session);
    assert_int_equal(host->blocks, 0);
    return 0;
}

static void assert_refused(Host *host, SlopeStatus status, int code) {
    assert_int_equal(status, SLOPE_STATUS_misuse);
    assert_int_equal(host->last_code, code);
}

/* ---- sessions and failures */

static void everything_has_a_default(void **state) {
    (void)state;
    SlopeSession *session;
    SlopeProgram *program;
    assert_int_equal(slope_session_new(NULL, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_file(session, "/nowhere/to/be/found.slang", &program), SLOPE_STATUS_error);
    assert_null(program);
    assert_string_equal(slope_messages(session),
                        "error E7001: cannot read '/nowhere/to/be/found.slang': No such file or directory\n");
    slope_clear_messages(session);
    assert_string_equal(slope_messages(session), "");
    assert_int_equal(slope_load_file(session, "/", &program), SLOPE_STATUS_error);
    assert_non_null(strstr(slope_messages(session), "Is a directory"));
    slope_session_free(session);
    slope_session_free(NULL);
}

static void an_empty_config_works_too(void **state) {
    (void)state;
    SlopeConfig config = {0};
    SlopeSession *session;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    slope_session_free(session);
}

static void files_come_through_the_callback(void **state) {
    Host *host = *state;
    SlopeConfig config = host_config(host);
    config.read_file = read_from_memory;
    config.release_file = count_release;
    SlopeSession *session;
    SlopeProgram *program;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    assert_int_equal(slope_load_file(session, "memory.slang", &program), SLOPE_STATUS_error);
    assert_string_equal(host->last_text,
                        "memory.slang:2:1: error E2001: expected code, found '@'\n  @\n  ^\n");
    assert_int_equal(host->released, 1);
    assert_int_equal(slope_load_file(session, "other.slang", &program), SLOPE_STATUS_error);
    assert_int_equal(host->last_code, 7001);
    slope_session_free(session);
}

static void the_error_limit_is_per_program(void **state) {
    Host *host = *state;
    SlopeConfig config = host_config(host);
    config.error_limit = 2;
    SlopeSession *session;
    SlopeProgram *program;
    assert_int_equal(slope_session_new(&config, &session), SLOPE_STATUS_ok);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(slope_load_text(session, "e.slang", "@@@@", 4, &program), SLOPE_STATUS_error);
        assert_int_equal(host->messages, 3 * i); /* two, and that there are more */
    }
    slope_session_free(session);
}

static void a_fault_breaks_the_session_only(void **state) {
    Host *host = *state;
    SlopeProgram *program, *next;
    slope_load_text(host->session, "fault.slang", "", 0, &program);
    assert_int_equal(slope_check(program), SLOPE_STATUS_fault);
    assert_string_equal(host->last_text, "error E7004: this is a fault in Slope itself: a 'bad' day\n");
    assert_int_equal(slope_check(host->program), SLOPE_STATUS_fault);
    assert_int_equal(host->last_code, 7050); /* refused, and says so */
    assert_int_equal(slope_load_text(host->session, "n.slang", "", 0, &next), SLOPE_STATUS_fault);
    assert_null(next);
}

static void a_malformed_function_closes_its_program_only(void **state) {
    Host *host = *state;
    SlopeProgram *program;
    slope_load_text(host->session, "malformed.slang", "", 0, &program);
    assert_int_equal(slope_check(program), SLOPE_STATUS_fault);
    assert_string_equal(host->last_text, "error E7004: this is a fault in Slope itself: a bad function\n");
    assert_int_equal(slope_check(program), SLOPE_STATUS_fault);
    assert_int_equal(host->last_code, 7009);
    assert_int_equal(slope_check(host->program), SLOPE_STATUS_ok);
}

static void lack_of_memory_is_survived(void **state) {
    Host *host = *state;
    SlopeProgram *program;
    slope_load_text(host->session, "huge.slang", "", 0, &program);
    assert_int_equal(slope_check(program), SLOPE_STATUS_memory);
    assert_int_equal(host->last_code, 7003);
    assert_int_equal(slope_check(program), SLOPE_STATUS_memory);
    assert_int_equal(host->last_code, 7009); /* closed */
    assert_int_equal(slope_check(host->program), SLOPE_STATUS_ok);
}

static void lack_of_memory_at_any_point_is_survived(void **state) {
    (void)state;
    for (long allowed = 0; allowed < 40; allowed++) {
        Host host = {.allowed = allowed};
        SlopeConfig config = host_config(&host);
        SlopeSession *session;
        SlopeProgram *program;
        SlopeStatus status = slope_session_new(&config, &session);
        if (status == SLOPE_STATUS_ok) status = slope_load_text(session, "m.slang", "@", 1, &program);
        assert_true(status == SLOPE_STATUS_memory || status == SLOPE_STATUS_error);
        slope_session_free(session);
        assert_int_equal(host.blocks, 0);
    }
}

static void missing_arguments_are_refused(void **state) {
    Host *host = *state;
    SlopeProgram *program;
    SlopeFunction *function;
    assert_refused(host, slope_load_file(host->session, NULL, &program), 7006);
    assert_refused(host, slope_find_function(host->program, NULL, &function), 7006);
    assert_refused(host, slope_set_uniform(host->program, "counts", NULL, 4), 7006);
    assert_refused(host, slope_bind_buffer(host->program, NULL, NULL), 7006);
    assert_int_equal(host->messages, 4);
}

/* ---- functions and types */

static void functions_are_described(void **state) {
    Host *host = *state;
    SlopeFunction *lerp, *none;
    assert_refused(host, slope_find_function(host->program, "nothing", &none), 7010);
    assert_null(none);
    assert_int_equal(slope_find_function(host->program, "Light.lerp", &lerp), SLOPE_STATUS_ok);
    assert_string_equal(slope_function_name(lerp), "Light.lerp");
    assert_int_equal(slope_function_parameter_count(lerp), 4);
    static const struct {
        const char *name, *type;
        SlopeDirection direction;
    } expected[] = {{"this", "Light", SLOPE_DIRECTION_in},
                    {"a", "float3", SLOPE_DIRECTION_out},
                    {"b", "int", SLOPE_DIRECTION_inout},
                    {"c", "half", SLOPE_DIRECTION_in}};
    SlopeParameter parameter;
    for (int i = 0; i < 4; i++) {
        assert_true(slope_function_parameter(lerp, i, &parameter));
        assert_string_equal(parameter.name, expected[i].name);
        assert_string_equal(slope_type_name(parameter.type), expected[i].type);
        assert_int_equal(parameter.direction, expected[i].direction);
    }
    assert_false(slope_function_parameter(lerp, 4, &parameter));
    assert_false(slope_function_parameter(lerp, -1, &parameter));
    assert_string_equal(slope_type_name(slope_function_result(lerp)), "Light");
}

static void calls_pass_their_arguments(void **state) {
    Host *host = *state;
    SlopeFunction *function;
    void *address;
    void *args[] = {&host, NULL};
    assert_int_equal(slope_find_function(host->program, "paint", &function), SLOPE_STATUS_ok);
    assert_int_equal(slope_type_kind(slope_function_result(function)), SLOPE_TYPE_void);
    assert_int_equal(slope_call(function, args), SLOPE_STATUS_ok);
    assert_ptr_equal(fake.called_with, args);
    assert_int_equal(slope_function_address(function, &address), SLOPE_STATUS_ok);
    assert_ptr_equal(address, &fake.paint);
}

static const SlopeType *type_of(Host *host, const char *name) {
    SlopeUniform uniform;
    assert_int_equal(slope_find_uniform(host->program, name, &uniform), SLOPE_STATUS_ok);
    return uniform.type;
}

static void assert_field(const SlopeType *type, int index, const char *name, size_t offset, size_t size) {
    SlopeField field;
    assert_true(slope_type_field(type, index, &field));
    assert_string_equal(field.name, name);
    assert_int_equal(field.offset, offset);
    assert_int_equal(slope_type_size(field.type), size);
}

static void structs_are_laid_out_as_in_c(void **state) {
    struct Light {
        float position[3];
        bool on;
        int16_t levels[2];
    };
    const SlopeType *buffer = type_of(*state, "lights"), *light = slope_type_element(buffer);
    assert_int_equal(slope_type_kind(buffer), SLOPE_TYPE_buffer);
    assert_int_equal(slope_type_buffer_kind(buffer), SLOPE_BUFFER_structured);
    assert_int_equal(slope_type_size(buffer), sizeof(SlopeSpan));
    assert_int_equal(slope_type_kind(light), SLOPE_TYPE_struct);
    assert_int_equal(slope_type_size(light), sizeof(struct Light));
    assert_int_equal(slope_type_align(light), 4);
    assert_int_equal(slope_type_element_stride(buffer), sizeof(struct Light));
    assert_int_equal(slope_type_field_count(light), 3);
    assert_field(light, 0, "position", offsetof(struct Light, position), 12);
    assert_field(light, 1, "on", offsetof(struct Light, on), 1);
    assert_field(light, 2, "levels", offsetof(struct Light, levels), 4);
    SlopeField field;
    assert_false(slope_type_field(light, 3, &field));
    assert_int_equal(slope_type_count(light), 1);
    assert_null(slope_type_element(light));
}

static void constant_buffers_have_their_own_rules(void **state) {
    const SlopeType *buffer = type_of(*state, "sun"), *light = slope_type_element(buffer);
    assert_int_equal(slope_type_buffer_kind(buffer), SLOPE_BUFFER_constant);
    assert_field(light, 1, "on", 12, 4);
    assert_field(light, 2, "levels", 16, 32); /* elements take 16 bytes each */
    assert_ptr_not_equal(light, slope_type_element(type_of(*state, "lights")));
    assert_ptr_equal(light, slope_type_element(buffer)); /* one handle each */
}

static void arrays_and_references_have_elements(void **state) {
    const SlopeType *counts = type_of(*state, "counts"), *raw = type_of(*state, "raw");
    assert_int_equal(slope_type_kind(counts), SLOPE_TYPE_array);
    assert_int_equal(slope_type_count(counts), 3);
    assert_int_equal(slope_type_element_stride(counts), 4);
    assert_int_equal(slope_type_kind(slope_type_element(counts)), SLOPE_TYPE_int32);
    assert_int_equal(slope_type_kind(type_of(*state, "weights")), SLOPE_TYPE_pointer);
    assert_int_equal(slope_type_element_stride(type_of(*state, "weights")), 4);
    assert_int_equal(slope_type_kind(slope_type_element(raw)), SLOPE_TYPE_void);
    assert_int_equal(slope_type_element_stride(raw), 1);
}

/* ---- uniforms, buffers, kernels */

static void uniforms_are_listed(void **state) {
    Host *host = *state;
    assert_int_equal(slope_uniform_count(host->program), 7);
    SlopeUniform uniform;
    assert_true(slope_uniform(host->program, 5, &uniform));
    assert_string_equal(uniform.name, "counts");
    assert_false(slope_uniform(host->program, 7, &uniform));
    assert_string_equal(slope_built_name(host->program, uniform.name),
                        format_text(&host->program->arena, "built_%s", uniform.name));
    assert_null(slope_built_name(host->program, NULL));
    assert_refused(host, slope_find_uniform(host->program, "count", &uniform), 7010);
    assert_non_null(strstr(host->last_text, "note: did you mean 'counts'?"));
}

static void values_reach_compiled_code(void **state) {
    Host *host = *state;
    SlopeFunction *function;
    int values[] = {1, 2, 3}, seen[3], nine = 9;
    void *args[8];
    for (int i = 0; i < 8; i++) args[i] = values; /* the function that is called looks at none */
    assert_int_equal(slope_set_uniform(host->program, "counts", values, sizeof values), SLOPE_STATUS_ok);
    slope_find_function(host->program, "Light.lerp", &function);
    assert_int_equal(slope_call(function, args), SLOPE_STATUS_ok);
    memcpy(seen, fake.counts, sizeof seen);
    assert_int_equal(seen[2], 3);
    assert_int_equal(slope_set_uniform(host->program, "counts[1]", &nine, sizeof nine), SLOPE_STATUS_ok);
    memcpy(seen, fake.counts, sizeof seen);
    assert_int_equal(seen[1], 9);
    assert_int_equal(seen[0], 1);
}

static void wrong_values_are_refused(void **state) {
    Host *host = *state;
    int values[4] = {0};
    assert_refused(host, slope_set_uniform(host->program, "counts", values, sizeof values), 7015);
    assert_string_equal(host->last_text, "error E7015: 'counts' is int[3]: it takes 12 bytes, not 16\n");
    assert_refused(host, slope_set_uniform(host->program, "counts[3]", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "counts[-1]", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "counts[1", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "counts.x", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "sun.off", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "lights.on", values, 4), 7011);
    assert_refused(host, slope_set_uniform(host->program, "result", values, 4), 7013);
}

static void parts_of_constant_buffers_can_be_set(void **state) {
    Host *host = *state;
    float position[] = {1, 2, 3};
    assert_int_equal(slope_set_uniform(host->program, "sun.position", position, sizeof position),
                     SLOPE_STATUS_ok);
    SlopeSpan span;
    memcpy(&span, host->program->uniforms.at[2]->data, sizeof span);
    assert_int_equal(span.count, 1);
    assert_memory_equal(span.data, position, sizeof position);
    assert_int_equal(slope_type_kind(type_of(host, "sun.levels[1]")), SLOPE_TYPE_int16);
}

static void parameters_of_kernels_are_uniforms(void **state) {
    Host *host = *state;
    SlopeKernel *paint, *other, *again;
    float two = 2;
    int size[3];
    assert_refused(host, slope_find_kernel(host->program, "nothing", &paint), 7010);
    assert_int_equal(slope_find_kernel(host->program, NULL, &paint), SLOPE_STATUS_ok);
    assert_int_equal(slope_find_kernel(host->program, "paint", &again), SLOPE_STATUS_ok);
    assert_ptr_equal(paint, again);
    assert_string_equal(slope_kernel_name(paint), "paint");
    slope_kernel_group_size(paint, size);
    assert_true(size[0] == 4 && size[1] == 2 && size[2] == 1);
    assert_int_equal(slope_set_uniform(host->program, "scale", &two, sizeof two), SLOPE_STATUS_ok);
    assert_int_equal(slope_dispatch(paint, 3, 2, 1), SLOPE_STATUS_ok);
    assert_true(fake.seen_scale == 2 && fake.groups_run == 6);
    assert_int_equal(slope_find_kernel(host->program, "other", &other), SLOPE_STATUS_ok);
    slope_kernel_group_size(other, size);
    assert_true(size[0] == 1 && size[1] == 1 && size[2] == 1);
    assert_refused(host, slope_set_uniform(host->program, "scale", &two, sizeof two), 7012);
    assert_int_equal(slope_set_uniform(host->program, "other.scale", &two, sizeof two), SLOPE_STATUS_ok);
    assert_int_equal(slope_type_kind(type_of(host, "counts")), SLOPE_TYPE_array); /* the global wins */
    assert_int_equal(slope_type_kind(type_of(host, "other.counts")), SLOPE_TYPE_int32);
    assert_refused(host, slope_dispatch(paint, -1, 1, 1), 7022);
}

static SlopeSpan span_of(Host *host, int index) {
    SlopeSpan span;
    memcpy(&span, host->program->uniforms.at[index]->data, sizeof span);
    return span;
}

static void buffers_are_bound_by_element(void **state) {
    Host *host = *state;
    SlopeBuffer *buffer, *empty;
    assert_int_equal(slope_buffer_new(host->session, 40, &buffer), SLOPE_STATUS_ok);
    assert_int_equal((uintptr_t)slope_buffer_data(buffer) % 64, 0);
    assert_int_equal(slope_buffer_size(buffer), 40);
    assert_int_equal(*slope_buffer_counter(buffer), 0);
    assert_int_equal(slope_buffer_new(host->session, 0, &empty), SLOPE_STATUS_ok);
    assert_int_equal(slope_bind_buffer(host->program, "result", buffer), SLOPE_STATUS_ok);
    assert_int_equal(span_of(host, 0).count, 10);
    assert_ptr_equal(span_of(host, 0).data, slope_buffer_data(buffer));
    assert_int_equal(slope_bind_buffer(host->program, "lights", buffer), SLOPE_STATUS_ok);
    assert_int_equal(span_of(host, 1).count, 2);
    assert_int_equal(slope_bind_buffer(host->program, "raw", buffer), SLOPE_STATUS_ok);
    assert_int_equal(span_of(host, 4).count, 40);
    assert_int_equal(slope_bind_buffer(host->program, "lights", empty), SLOPE_STATUS_ok);
    assert_int_equal(span_of(host, 1).count, 0);
    assert_int_equal(slope_bind_buffer(host->program, "result", NULL), SLOPE_STATUS_ok);
    assert_null(span_of(host, 0).data);
    slope_buffer_free(empty); /* the other one goes with the session */
}

static void wrong_buffers_are_refused(void **state) {
    Host *host = *state;
    float memory[4] = {0};
    SlopeBuffer *wrapped, *odd;
    slope_buffer_wrap(host->session, memory, sizeof memory, &wrapped);
    assert_null(slope_buffer_counter(wrapped));
    slope_buffer_new(host->session, 30, &odd);
    assert_ptr_equal(slope_buffer_data(wrapped), memory);
    assert_refused(host, slope_bind_buffer(host->program, "result", odd), 7016);
    assert_refused(host, slope_bind_buffer(host->program, "sun", wrapped), 7016);
    assert_refused(host, slope_bind_buffer(host->program, "found", wrapped), 7017);
    assert_refused(host, slope_bind_buffer(host->program, "counts", wrapped), 7014);
    assert_int_equal(slope_bind_buffer(host->program, "weights", wrapped), SLOPE_STATUS_ok);
}

/* ---- output */

static void dumps_and_code_are_blobs(void **state) {
    Host *host = *state;
    SlopeBlob *dump, *code;
    SlopeBuildOptions options = {.target = "asm"};
    assert_int_equal(slope_dump(host->program, "f", "check", &dump), SLOPE_STATUS_ok);
    assert_string_equal(dump->data, "f after check");
    assert_int_equal(dump->size, 13);
    assert_int_equal(slope_build(host->program, &options, &code), SLOPE_STATUS_ok);
    assert_string_equal(code->data, "code for asm");
    slope_blob_free(dump); /* the other one goes with the session */
    slope_blob_free(NULL);
    assert_refused(host, slope_dump(host->program, NULL, "no", &dump), 7021);
    assert_null(dump);
    assert_string_equal(host->last_text, "error E7021: there is no stage 'no'; there are: syntax, check\n");
    options.target = "wasm";
    assert_refused(host, slope_build(host->program, &options, &code), 7020);
    options.target = NULL;
    assert_refused(host, slope_build(host->program, &options, &code), 7020);
}

static void read_back(const char *path, char *text, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = 0;
    fclose(file);
}

static void a_failed_build_leaves_the_file_alone(void **state) {
    Host *host = *state;
    char folder[] = "/tmp/slope-api-XXXXXX", path[64], text[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    SlopeBuildOptions options = {.target = "obj"};
    assert_int_equal(slope_build_file(host->program, &options, path), SLOPE_STATUS_ok);
    read_back(path, text, sizeof text);
    assert_string_equal(text, "code for obj");
    SlopeBuildOptions bad = {.target = "asm", .entries = (const char *const[]){"f"}, .entry_count = 1};
    assert_refused(host, slope_build_file(host->program, &bad, path), 7010);
    read_back(path, text, sizeof text);
    assert_string_equal(text, "code for obj");
    options.target = "asm";
    assert_int_equal(slope_build_file(host->program, &options, path), SLOPE_STATUS_ok);
    read_back(path, text, sizeof text);
    assert_string_equal(text, "code for asm");
    assert_refused(host, slope_build_file(host->program, &options, folder), 7002);
    assert_refused(host, slope_build_file(host->program, &options, "/nowhere/at/all"), 7002);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left in it */
}

/* ---- scalars */

static void assert_scalar(SlopeTypeKind kind, const char *text, const char *shown) {
    char memory[8] = {0}, printed[32];
    if (slope_scalar_parse(kind, text, memory) != SLOPE_STATUS_ok) fail_msg("'%s' is no %d", text, (int)kind);
    int length = slope_scalar_print(kind, memory, printed, sizeof printed);
    assert_string_equal(printed, shown);
    assert_int_equal(length, (int)strlen(shown));
}

static void scalars_read_back(void **state) {
    (void)state;
    assert_scalar(SLOPE_TYPE_bool, "true", "true");
    assert_scalar(SLOPE_TYPE_bool, "0", "false");
    assert_scalar(SLOPE_TYPE_int8, "-128", "-128");
    assert_scalar(SLOPE_TYPE_uint8, "255", "255");
    assert_scalar(SLOPE_TYPE_int16, "0xffff", "-1");
    assert_scalar(SLOPE_TYPE_uint16, "+65535", "65535");
    assert_scalar(SLOPE_TYPE_int32, "-2147483648", "-2147483648");
    assert_scalar(SLOPE_TYPE_uint32, "0xFFFFFFFF", "4294967295");
    assert_scalar(SLOPE_TYPE_int64, "-9223372036854775808", "-9223372036854775808");
    assert_scalar(SLOPE_TYPE_uint64, "18446744073709551615", "18446744073709551615");
    assert_scalar(SLOPE_TYPE_half, "0.1", "0.1");
    assert_scalar(SLOPE_TYPE_half, "65504", "65504.0");
    assert_scalar(SLOPE_TYPE_float, "0.1", "0.1");
    assert_scalar(SLOPE_TYPE_float, "16777217", "16777216.0");
    assert_scalar(SLOPE_TYPE_float, "-inf", "-inf");
    assert_scalar(SLOPE_TYPE_float, "nan", "nan");
    assert_scalar(SLOPE_TYPE_double, "0.1", "0.1");
    assert_scalar(SLOPE_TYPE_double, "1e308", "1e+308");
}

static void what_is_no_scalar_is_refused(void **state) {
    (void)state;
    static const struct {
        SlopeTypeKind kind;
        const char *text;
    } bad[] = {{SLOPE_TYPE_bool, "2"},           {SLOPE_TYPE_bool, "yes"},
               {SLOPE_TYPE_int8, "128"},         {SLOPE_TYPE_int8, "-129"},
               {SLOPE_TYPE_uint8, "-1"},         {SLOPE_TYPE_uint8, "256"},
               {SLOPE_TYPE_int32, "1.5"},        {SLOPE_TYPE_int32, ""},
               {SLOPE_TYPE_int32, "0x"},         {SLOPE_TYPE_int32, "12a"},
               {SLOPE_TYPE_int32, " 1"},         {SLOPE_TYPE_int32, "--1"},
               {SLOPE_TYPE_int32, "2147483648"}, {SLOPE_TYPE_uint64, "18446744073709551616"},
               {SLOPE_TYPE_half, "70000"},       {SLOPE_TYPE_float, "1e39"},
               {SLOPE_TYPE_double, "1e309"},     {SLOPE_TYPE_float, ""},
               {SLOPE_TYPE_float, "1.0f"},       {SLOPE_TYPE_float, " 1"},
               {SLOPE_TYPE_struct, "1"},         {SLOPE_TYPE_void, "1"}};
    char memory[8];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (slope_scalar_parse(bad[i].kind, bad[i].text, memory) == SLOPE_STATUS_ok)
            fail_msg("'%s' was taken for a %d", bad[i].text, (int)bad[i].kind);
}

/* ---- timing */

static void inner_stages_are_not_counted_twice(void **state) {
    Host *host = *state;
    StageTimer outer, inner;
    driver_time_begin(host->session, &outer, "outer");
    driver_time_begin(host->session, &inner, "inner");
    usleep(20000);
    driver_time_end(&inner);
    driver_time_end(&outer);
    SlopeTiming timings[2];
    assert_int_equal(slope_timing_count(host->session), 2);
    for (int i = 0; i < 2; i++) assert_true(slope_timing(host->session, i, &timings[i]));
    assert_string_equal(timings[0].stage, "outer");
    assert_true(timings[1].milliseconds >= 20 && timings[0].milliseconds < timings[1].milliseconds);
    assert_true(timings[1].peak_memory > 0);
    assert_false(slope_timing(host->session, 2, &timings[0]));
}

static void every_stage_keeps_its_row(void **state) {
    enum { STAGES = 100 };
    Host *host = *state;
    static char names[STAGES][8];
    for (int i = 0; i < STAGES; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        driver_time_add(host->session, names[i], i + 1);
    }
    for (int i = 0; i < STAGES; i++) {
        SlopeTiming timing;
        assert_true(slope_timing(host->session, i, &timing));
        assert_true(strcmp(timing.stage, names[i]) == 0 && timing.milliseconds == i + 1);
    }
}

/* Kernels may take a microsecond: nothing is asked of the system for each. */
static void runs_are_not_limited(void **state) {
    Host *host = *state;
    SlopeProgram *program = host->program;
    SlopeKernel *paint;
    assert_int_equal(slope_find_kernel(program, "paint", &paint), SLOPE_STATUS_ok);
    assert_int_equal(slope_kernel_prepare(paint), SLOPE_STATUS_ok);
    double compiling = program->limits.seconds;
    for (int i = 0; i < 3; i++) assert_int_equal(slope_dispatch(paint, 1, 1, 1), SLOPE_STATUS_ok);
    assert_true(program->limits.seconds == compiling);
    int last = slope_timing_count(host->session) - 1;
    SlopeTiming run;
    assert_true(slope_timing(host->session, last, &run));
    assert_string_equal(run.stage, "run");
    assert_true(run.milliseconds > 0 && run.peak_memory > 0);
    assert_true(host->session->times.at[last].peak_memory == 0);
}

static void what_a_run_compiles_is_limited(void **state) {
    Host *host = *state;
    SlopeProgram *program = host->program;
    double before = program->limits.seconds;
    StageTimer run, stage;
    assert_true(driver_enter_program(program));
    driver_time_run(host->session, &run);
    assert_true(program->limits.started == 0);
    driver_time_begin(host->session, &stage, "lower");
    assert_true(program->limits.started > 0);
    driver_time_end(&stage);
    assert_true(program->limits.started == 0 && program->limits.seconds > before);
    driver_time_end(&run);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everything_has_a_default),
        TEST(an_empty_config_works_too),
        TEST(files_come_through_the_callback),
        TEST(the_error_limit_is_per_program),
        TEST(a_fault_breaks_the_session_only),
        TEST(a_malformed_function_closes_its_program_only),
        TEST(lack_of_memory_is_survived),
        TEST(lack_of_memory_at_any_point_is_survived),
        TEST(missing_arguments_are_refused),
        TEST(functions_are_described),
        TEST(calls_pass_their_arguments),
        TEST(structs_are_laid_out_as_in_c),
        TEST(constant_buffers_have_their_own_rules),
        TEST(arrays_and_references_have_elements),
        TEST(uniforms_are_listed),
        TEST(values_reach_compiled_code),
        TEST(wrong_values_are_refused),
        TEST(parts_of_constant_buffers_can_be_set),
        TEST(parameters_of_kernels_are_uniforms),
        TEST(buffers_are_bound_by_element),
        TEST(wrong_buffers_are_refused),
        TEST(dumps_and_code_are_blobs),
        TEST(a_failed_build_leaves_the_file_alone),
        TEST(scalars_read_back),
        TEST(what_is_no_scalar_is_refused),
        TEST(inner_stages_are_not_counted_twice),
        TEST(every_stage_keeps_its_row),
        TEST(runs_are_not_limited),
        TEST(what_a_run_compiles_is_limited),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
