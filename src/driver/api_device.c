/* Kernels on a GPU.
 *
 * A kernel is printed as CUDA C++ for the runtime (emit/clike/hosted.def), which has it compiled, loads and
 * launches it. Before each launch uniforms and arguments are brought over as the GPU is to see them: in the
 * scalar layout, whatever the program says, and with addresses of the GPU in place of ours. An address is
 * that of a buffer, or of a constant buffer, which gets memory there (a block); any other is left as it is:
 * it may be one of the GPU. */
#include "driver.h"

#include <stdlib.h>

/* Bytes that are on the GPU as well. */
typedef struct Block {
    char *bytes;
    size_t size;
    uint64_t address;
    bool sent;
} Block;

typedef struct DeviceUniform {
    const Uniform *uniform;
    Block image; /* in the code's own memory */
} DeviceUniform;

typedef struct DeviceKernel {
    GpuCode *code;
    VEC(DeviceUniform) uniforms;
    VEC(Block *) blocks; /* constant buffers and arrays, in the order in which they are met */
    void **args;
    /* Of the launch at hand: what it may write. */
    VEC(SlopeBuffer *) written;
    VEC(GpuRange) ranges;
} DeviceKernel;

/* A launch, as it is made ready. */
typedef struct Sending {
    SlopeKernel *kernel;
    Gpu *gpu;
    const char *name; /* of the uniform at hand */
    int nblocks;      /* in use */
    SlopeStatus status;
} Sending;

/* ---- the device */

/* Which one: -1: the CPU, -2: no such thing. */
static int device_number(const char *name) {
    if (!name || !*name || strcmp(name, "cpu") == 0) return -1;
    if (strcmp(name, "cuda") == 0) return 0;
    if (strncmp(name, "cuda:", 5) != 0 || strspn(name + 5, "0123456789") != strlen(name + 5)) return -2;
    return name[5] && strlen(name + 5) < 5 ? atoi(name + 5) : -2;
}

bool driver_has_gpu(const SlopeSession *session) { return device_number(session->config.device) >= 0; }

static bool code_is_by(const SlopeConfig *config, const char *compiler) {
    return config->device_code && strcmp(config->device_code, compiler) == 0;
}

SlopeStatus driver_check_device(SlopeSession *session) {
    const SlopeConfig *config = &session->config;
    if (device_number(config->device) == -2)
        diag_report(session->diags, DIAG_unknown_device, 0, config->device);
    else if (config->device_code && !code_is_by(config, "llvm") && !code_is_by(config, "nvrtc"))
        diag_report(session->diags, DIAG_unknown_device_code, 0, config->device_code);
    else if (driver_has_gpu(session) && (config->strict || config->interpret))
        diag_report(session->diags, DIAG_device_strict, 0,
                    config->strict ? "tell where an index was out of range" : "can be interpreted");
    else return SLOPE_STATUS_ok;
    return SLOPE_STATUS_misuse;
}

Gpu *driver_gpu(SlopeSession *session) {
    if (session->gpu) return session->gpu;
    int mib = session->config.tape_mib;
    GpuConfig config = {.index = device_number(session->config.device),
                        .tape_limit = mib > 0 ? (uint64_t)mib << 20 : 0,
                        .stop = &session->stop,
                        .cache = driver_gpu_cache(session)};
    char error[512];
    StageTimer timer;
    driver_time_begin(session, &timer, "open GPU");
    session->gpu = gpu_open(&config, error, sizeof error);
    driver_time_end(&timer);
    if (session->gpu) return session->gpu;
    diag_report(session->diags, DIAG_device_failed, 0, error);
    diag_note(session->diags, DIAG_note_use_cpu, 0);
    return NULL;
}

static void fail(Sending *sending) {
    if (sending->status != SLOPE_STATUS_ok) return;
    diag_report(sending->kernel->program->session->diags, DIAG_device_failed, 0, gpu_error(sending->gpu));
    sending->status = SLOPE_STATUS_error;
}

/* ---- code */

static Uniform *find_uniform(const SlopeProgram *program, Name name) {
    for (int i = 0; i < program->uniforms.count; i++) {
        Uniform *uniform = program->uniforms.at[i];
        if (uniform->global && uniform->global->name == name) return uniform;
    }
    return NULL;
}

static void find_uniforms(SlopeProgram *program, Gpu *gpu, DeviceKernel *device, const DeviceText *text) {
    for (int i = 0; i < text->uniforms.count; i++) {
        const Uniform *uniform = find_uniform(program, text->uniforms.at[i].name);
        uint64_t address = gpu_variable(gpu, device->code, text->uniforms.at[i].symbol);
        if (!uniform || !address) continue;
        size_t size = (size_t)type_layout(uniform->type, LAYOUT_scalar).stride;
        Block image = {arena_take(&program->arena, size + 1), size, address, false};
        vec_push(&program->arena, &device->uniforms, ((DeviceUniform){uniform, image}));
    }
}

/* NVIDIA's assembler optimises fully or not at all: random functions that it compiled with -O1 (CUDA 13.0)
 * lost the lower halves of doubles, which the same source has as it is compiled for the host. */
void driver_device_options(const SlopeSession *session, GpuSource *source) {
    static const char *const floats[] = {[SLOPE_FLOATS_contract] = "--fmad=true",
                                         [SLOPE_FLOATS_strict] = "--fmad=false",
                                         [SLOPE_FLOATS_fast] = "--use_fast_math"};
    source->options[source->noptions++] = floats[session->config.floats];
    if (session->config.optimization == 0) source->options[source->noptions++] = "--ptxas-options=-O0";
}

static GpuCode *load(SlopeProgram *program, Gpu *gpu, const DeviceText *text) {
    GpuSource source = {.text = text->text, .is_ptx = text->is_ptx, .entry = text->entry, .init = text->init};
    driver_device_options(program->session, &source);
    StageTimer timer;
    driver_time_begin(program->session, &timer, "compile for GPU");
    GpuCode *code = gpu_load(gpu, &source);
    driver_time_end(&timer);
    if (!code) diag_report(program->session->diags, DIAG_device_code_failed, 0, gpu_error(gpu));
    return code;
}

/* NVIDIA's compiler is the better one; it need not be there. */
static bool is_by_llvm(const SlopeSession *session) {
    if (session->config.device_code) return code_is_by(&session->config, "llvm");
    return !gpu_has_nvrtc();
}

SlopeStatus driver_device_prepare(SlopeKernel *kernel) {
    SlopeProgram *program = kernel->program;
    DeviceText text;
    if (kernel->device) return SLOPE_STATUS_ok;
    driver_runtime(program->session);
    bool by_llvm = is_by_llvm(program->session);
    Gpu *gpu = by_llvm ? driver_gpu(program->session) : NULL;
    if (by_llvm && !gpu) return SLOPE_STATUS_error;
    SlopeStatus status = driver_device_text(program, kernel->func, gpu, &text);
    if (status != SLOPE_STATUS_ok) return status;
    if (!gpu) gpu = driver_gpu(program->session);
    GpuCode *code = gpu ? load(program, gpu, &text) : NULL;
    free(text.text);
    if (!code) return SLOPE_STATUS_error;
    kernel->device = arena_new(&program->arena, DeviceKernel);
    *kernel->device = (DeviceKernel){.code = code};
    driver_apply_uniforms(program); /* so that all of them are known */
    find_uniforms(program, gpu, kernel->device, &text);
    kernel->device->args = arena_array(&program->arena, void *, kernel->func->nparams + 1);
    for (int i = 0; i < kernel->func->nparams; i++) {
        size_t size = (size_t)type_layout(kernel->func->params[i].type, LAYOUT_scalar).stride;
        kernel->device->args[i] = arena_take(&program->arena, size + 16);
    }
    return SLOPE_STATUS_ok;
}

void driver_device_unload(SlopeProgram *program) {
    Gpu *gpu = program->session->gpu;
    if (gpu && !gpu_wait(gpu, program->session->runtime))
        free(runtime_take_answer(program->session->runtime));
    for (int i = 0; i < program->kernels.count && gpu; i++) {
        DeviceKernel *device = program->kernels.at[i]->device;
        if (!device) continue;
        for (int k = 0; k < device->blocks.count; k++) gpu_give(gpu, device->blocks.at[k]->address);
        gpu_unload(gpu, device->code);
        program->kernels.at[i]->device = NULL;
    }
}

/* ---- values */

static void send_image(Sending *sending, Block *block, const Type *type, LayoutRules rules, const char *from);

static Block *next_block(Sending *sending, size_t size) {
    DeviceKernel *device = sending->kernel->device;
    Arena *arena = &sending->kernel->program->arena;
    if (sending->nblocks == device->blocks.count) vec_push(arena, &device->blocks, arena_new(arena, Block));
    Block *block = device->blocks.at[sending->nblocks++];
    if (block->size >= size && block->address) return block;
    gpu_give(sending->gpu, block->address);
    *block = (Block){.bytes = arena_take(arena, size + 1), .size = size};
    if (!gpu_take(sending->gpu, size, &block->address)) fail(sending);
    return block;
}

/* The address on the GPU of a value that is brought there. */
static uint64_t send_block(Sending *sending, const Type *type, LayoutRules rules, const char *from) {
    Block *block = next_block(sending, (size_t)type_layout(type, LAYOUT_scalar).stride);
    if (sending->status == SLOPE_STATUS_ok) send_image(sending, block, type, rules, from);
    return block->address;
}

static void add_written(SlopeKernel *kernel, SlopeBuffer *buffer) {
    DeviceKernel *device = kernel->device;
    size_t header = driver_buffer_header(buffer);
    GpuRange range = {buffer->address - header, buffer->memory.count + header};
    for (int i = 0; i < device->written.count; i++)
        if (device->written.at[i] == buffer) return;
    vec_push(&kernel->program->arena, &device->written, buffer);
    vec_push(&kernel->program->arena, &device->ranges, range);
}

static uint64_t send_buffer(Sending *sending, SlopeBuffer *buffer, const Type *type, const char *data) {
    SlopeProgram *program = sending->kernel->program;
    if (type_leads_elsewhere(type->args[0]) && !buffer->foreign && sending->status == SLOPE_STATUS_ok) {
        diag_report(program->session->diags, DIAG_device_addresses, 0, sending->name,
                    type_text(&program->arena, type));
        sending->status = SLOPE_STATUS_error;
    }
    if (sending->status != SLOPE_STATUS_ok) return 0;
    if (!driver_buffer_to_device(buffer, sending->gpu)) fail(sending);
    if (!type_is_read_only(type)) add_written(sending->kernel, buffer);
    return buffer->address + (uint64_t)(data - (const char *)buffer->memory.data);
}

static void send_reference(void *user, const Type *type, LayoutRules rules, const char *from, char *to) {
    Sending *sending = user;
    SlopeProgram *program = sending->kernel->program;
    size_t size = (size_t)type_layout(type, LAYOUT_scalar).size;
    char *data;
    memcpy(&data, from, sizeof data);
    memcpy(to, from, size);
    SlopeBuffer *buffer = driver_buffer_at(program->session, data);
    const ConstantCopy *constant = buffer ? NULL : driver_constant_at(program, data);
    uint64_t address = (uint64_t)(uintptr_t)data;
    if (buffer) address = send_buffer(sending, buffer, type, data);
    else if (constant) address = send_block(sending, constant->element, LAYOUT_scalar, constant->data);
    else if (data && type->kind == TYPE_buffer && type->number == BUFFER_constant)
        address = send_block(sending, type->args[0], rules, data);
    memcpy(to, &address, sizeof address);
}

static void copy_image(Sending *sending, const Type *type, LayoutRules rules, const char *from, char *to) {
    LayoutCopy copy = {rules, send_reference, sending};
    driver_copy_value(&copy, type, from, to);
}

static void send_image(Sending *sending, Block *block, const Type *type, LayoutRules rules,
                       const char *from) {
    size_t size = (size_t)type_layout(type, LAYOUT_scalar).stride;
    char *bytes = calloc(1, size + 1);
    if (!bytes) {
        sending->status = SLOPE_STATUS_memory;
        return;
    }
    copy_image(sending, type, rules, from, bytes);
    if (!block->sent || memcmp(bytes, block->bytes, size) != 0) {
        memcpy(block->bytes, bytes, size);
        block->sent = gpu_write(sending->gpu, block->address, bytes, size);
        if (!block->sent) fail(sending);
    }
    free(bytes);
}

/* As print_kernel of emit/clike/cuda.c takes it. */
static void send_arg(Sending *sending, const Param *param, const char *from, char *to) {
    if (param->type->kind == TYPE_array && (param->flags & PARAM_BY_ADDRESS)) {
        uint64_t address = send_block(sending, param->type, LAYOUT_scalar, from);
        memcpy(to, &address, sizeof address);
    } else if (param->type->kind == TYPE_half) {
        uint16_t bits;
        memcpy(&bits, from, sizeof bits);
        memcpy(to, &(float){half_to_float(bits)}, sizeof(float));
    } else copy_image(sending, param->type, LAYOUT_scalar, from, to);
}

static void send_all(Sending *sending) {
    SlopeKernel *kernel = sending->kernel;
    for (int i = 0; i < kernel->device->uniforms.count; i++) {
        DeviceUniform *uniform = &kernel->device->uniforms.at[i];
        sending->name = uniform->uniform->name->text;
        send_image(sending, &uniform->image, uniform->uniform->type, uniform->uniform->rules,
                   uniform->uniform->data);
    }
    for (int i = 0; i < kernel->func->nparams; i++) {
        const Param *param = &kernel->func->params[i];
        sending->name = param->name ? param->name->text : "";
        send_arg(sending, param, kernel->args[i], kernel->device->args[i]);
    }
}

/* ---- running */

/* What was written counts; memory of the caller gets it at once. */
static void note_written(Sending *sending, bool finished) {
    const DeviceKernel *device = sending->kernel->device;
    for (int i = 0; i < device->written.count; i++) {
        SlopeBuffer *buffer = device->written.at[i];
        if (buffer->foreign) continue;
        buffer->device_newer = true;
        if (buffer->wrapped && !driver_buffer_to_host(buffer) && finished) fail(sending);
    }
}

/* Memory of the caller gets what was written at once. */
static bool must_wait(const DeviceKernel *device) {
    for (int i = 0; i < device->written.count; i++)
        if (device->written.at[i]->wrapped && !device->written.at[i]->foreign) return true;
    return !gpu_can_queue(device->code);
}

SlopeStatus driver_device_dispatch(SlopeKernel *kernel, const uint32_t groups[3], bool waits,
                                   bool *finished) {
    SlopeProgram *program = kernel->program;
    DeviceKernel *device = kernel->device;
    Sending sending = {.kernel = kernel, .gpu = program->session->gpu};
    device->written.count = device->ranges.count = 0;
    driver_copy_constants(program);
    send_all(&sending);
    if (sending.status != SLOPE_STATUS_ok) return sending.status;
    GpuRun run = {.args = device->args, .written = device->ranges.at, .nwritten = device->ranges.count};
    int size[3];
    slope_kernel_group_size(kernel, size);
    for (int i = 0; i < 3; i++) {
        run.groups[i] = groups[i];
        run.group_size[i] = (uint32_t)size[i];
    }
    bool (*start)(Gpu *, Runtime *, GpuCode *, const GpuRun *) =
        waits || must_wait(device) ? gpu_run : gpu_queue;
    *finished = start(sending.gpu, program->session->runtime, device->code, &run);
    note_written(&sending, *finished);
    return sending.status;
}
