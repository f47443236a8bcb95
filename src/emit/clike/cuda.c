/* CUDA as a dialect: kernels are kernels, functions run on the device, all in the namespace `slope`, which
 * keeps its vectors apart from CUDA's, whose alignment is another. Beside each kernel stands a function of
 * the host that launches it, beside each uniform one that sets it. What is private to a thread (static
 * variables, memory for what is dropped, values of other lanes) is in a SlopeThread that the kernel makes and
 * functions hand on. */
#include "emit/clike/clike.h"

enum { MOST_THREADS = 2048 }; /* of a multiprocessor; where it has fewer, compilers know better */

/* A compiler at run time (NVRTC) knows only the device. */
#define HOST_OPEN  "#ifndef __CUDACC_RTC__\n"
#define HOST_CLOSE "#endif\n"

#define HELPER_ROWS "emit/clike/cuda.def"
#include "emit/clike/tables.h"

/* Of code that the runtime launches. */
static const HelperRow hosted[] = {
#define HELPER(name, needs, text) {name, needs, text},
#define FAMILY(prefix, on_signed, on_other)
#include "emit/clike/hosted.def"
};

/* ---- threads */

static const char *thread_id(Printer *p, int index) {
    static const char *const names[] = {"slope_thread_id",   "slope_group_id",   "slope_local_id",
                                        "slope_local_index", "slope_group_size", "slope_groups",
                                        "slope_wave_size"};
    const Type *triple = type_vector(p->module->types, type_basic(p->module->types, TYPE_uint), 3);
    clike_make_vector(p, triple);
    return clike_format(p, "%s()", clike_helper(p, names[index]));
}

static bool is_known(const Printer *p, const char *helper) {
    return map_has(&p->known, PTR_KEY(name_from(p->module->names, helper)));
}

static void thread_type(Printer *p, Text *out) {
    if (is_known(p, "SlopeTape")) /* those that are local variables need none */
        text_printf(out,
                    "/* Bytes of its own memory that each thread has for tapes. */\n"
                    "#ifndef SLOPE_TAPE_BYTES\n#define SLOPE_TAPE_BYTES %d\n#endif\n",
                    is_known(p, "slope_tape_begin") ? 4096 : 8);
    text_printf(out, "/* What is private to a thread. */\ntypedef struct SlopeThread {\n");
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (global->kind == GLOBAL_static)
            text_printf(out, "    %s;\n", clike_declare(p, global->type, clike_global_name(p, global)));
    }
    if (is_known(p, "slope_wave")) text_add(out, STR("    uint64_t wave[34];\n"));
    if (is_known(p, "SlopeTape"))
        text_add(out, STR("    alignas(8) unsigned char room[SLOPE_TAPE_BYTES]; /* for tapes */\n"
                          "    size_t used = 0;\n    int open = 0;\n"
                          "    struct SlopeBlock *block = 0; /* for more of them */\n"));
    text_printf(
        out,
        "    alignas(16) unsigned char none[%lld]; /* where accesses out of range go */\n} SlopeThread;\n",
        (long long)(p->largest > 16 ? p->largest : 16));
}

/* Nobody but the driver finds what is in it, by name. */
static bool is_for_driver(const Printer *p) {
    return p->file->hosted || (p->file->target->capabilities & TARGET_COMPILED);
}

/* ---- what begins anew */

/* Those who launch such code find things by their names. */
static void tell(const Printer *p, EmitSymbol what, const char *name, const char *symbol) {
    if (p->file->found) p->file->found(p->file->user, what, name, symbol);
}

/* Functions of the host stand together, so that they can be left out. */
static Text *to_host(Printer *p) {
    Text *before = p->out;
    p->out = &p->host;
    return before;
}

/* Constants that need code: by a kernel of their own, before the first other one. */
static void print_init(Printer *p) {
    if (!p->has_init) return;
    text_add(&p->host_prototypes, STR("static cudaError_t slope_init(void);\n"));
    tell(p, EMIT_kernel, "", "slope_init_kernel");
    clike_line(p, "%s __global__ void slope_init_kernel(void) {",
               is_for_driver(p) ? "extern \"C\"" : "static");
    p->indent++;
    clike_line(p, "SlopeThread thread;");
    if (clike_has_globals(p, GLOBAL_static)) clike_line(p, "slope_start_thread(&thread);");
    clike_line(p, "(void)thread;");
    clike_inits(p, GLOBAL_const, "&thread");
    p->indent--;
    clike_line(p, "}\n");
    Text *before = to_host(p);
    clike_line(p,
               "static cudaError_t slope_init(void) {\n    static bool done = false;\n    if (done) return "
               "cudaSuccess;\n"
               "    slope_init_kernel<<<1, 1>>>();\n    const cudaError_t error = cudaDeviceSynchronize();\n"
               "    done = error == cudaSuccess;\n    return error;\n}\n");
    p->out = before;
}

static void start(Printer *p) {
    if (clike_has_globals(p, GLOBAL_shared)) clike_helper(p, "slope_clear");
    clike_print_start(p, &(Start){.kind = GLOBAL_shared,
                                  .head = "static __device__ void slope_start_group(void)",
                                  .clear = "slope_clear(&",
                                  .end = "__syncthreads();"});
    clike_print_start(p, &(Start){.kind = GLOBAL_static,
                                  .head = "static __device__ void slope_start_thread(SlopeThread *thread)",
                                  .owner = "thread->",
                                  .thread = "thread"});
    print_init(p);
}

/* ---- uniforms */

/* Constant memory, as long as they fit there. */
static const char *uniform_space(const Printer *p) {
    int64_t size = 0;
    for (int i = 0; i < p->reached.globals.count; i++) {
        const Global *global = p->reached.globals.at[i]->global;
        if (global->kind == GLOBAL_uniform) size += type_layout(global->type, LAYOUT_scalar).stride + 16;
    }
    return size < 32 * 1024 ? "__constant__" : "__device__";
}

static const char *setter(Printer *p, const Global *global) {
    const char *name = clike_global_name(p, global);
    const Type *pointer = type_pointer(p->module->types, global->type);
    return clike_format(p, "cudaError_t %s_set(const %s, cudaStream_t stream)", name,
                        clike_declare(p, pointer, "value"));
}

static void declare_uniform(Printer *p, const Global *global) {
    text_printf(&p->host_prototypes, "%s;\n", setter(p, global));
}

static void uniform(Printer *p, const Global *global, const char *declaration) {
    const char *name = clike_global_name(p, global);
    text_printf(&p->outside, "%s%s %s;\n", is_for_driver(p) ? "" : "static ", uniform_space(p), declaration);
    tell(p, EMIT_uniform, global->name->text,
         clike_format(p, "_ZN5slope%d%sE", (int)strlen(name), name)); /* as C++ calls it */
    Text *before = to_host(p);
    clike_line(p, "%s {", setter(p, global));
    clike_line(p,
               "    return cudaMemcpyToSymbolAsync(slope::%s, value, sizeof slope::%s, 0, "
               "cudaMemcpyHostToDevice, stream);",
               name, name);
    clike_line(p, "}\n");
    p->out = before;
}

/* ---- kernels */

/* What the program takes by address, other than arrays, the host hands over as a value. */
static bool is_handed_over(const Param *param) {
    return (param->flags & PARAM_BY_ADDRESS) && param->type->kind != TYPE_array;
}

static const char *kernel_params(Printer *p, const Func *func, const char **names, const char *first,
                                 const char *last) {
    Text text = {.arena = &p->arena};
    text_add(&text, str_of(first));
    for (int i = 0; i < func->nparams; i++) {
        const Type *type = func->params[i].type;
        if ((func->params[i].flags & PARAM_BY_ADDRESS) && type->kind == TYPE_array)
            type = type_pointer(p->module->types, type);
        text_printf(&text, "%s%s", text.len ? ", " : "", clike_declare_value(p, type, names[i]));
    }
    if (*last) text_printf(&text, "%s%s", text.len ? ", " : "", last);
    return text.len ? text.at : "void";
}

static const char *launcher(Printer *p, const Func *func, const char **names) {
    return clike_format(p, "cudaError_t %s_launch(%s)", clike_outer_name(p, func),
                        kernel_params(p, func, names, "dim3 groups", "cudaStream_t stream"));
}

static bool has_growing_tapes(const Printer *p) {
    for (int i = 0; i < p->reached.tapes.count; i++) {
        const TapeRoom *room = p->reached.tapes.entries[i].value;
        if (!room->is_local) return true;
    }
    return false;
}

static void declare_kernel(Printer *p, const Func *func, const char **names) {
    if (has_growing_tapes(p) && clike_begin_helper(p, "slope_room_set"))
        text_add(&p->host_prototypes,
                 STR("cudaError_t slope_room_set(void *memory, size_t size, cudaStream_t stream);\n"));
    text_printf(&p->host_prototypes, "%s;\n", launcher(p, func, names));
}

static void print_launcher(Printer *p, const Func *func, const char **names) {
    Text args = {.arena = &p->arena};
    for (int i = 0; i < func->nparams; i++) text_printf(&args, "%s%s", i ? ", " : "", names[i]);
    Text *before = to_host(p);
    clike_line(p, "%s {", launcher(p, func, names));
    p->indent++;
    if (p->has_init) {
        clike_line(p, "const cudaError_t error = slope_init();");
        clike_line(p, "if (error != cudaSuccess) return error;");
    }
    clike_line(p, "slope::%s<<<groups, dim3(%d, %d, %d), 0, stream>>>(%s);", clike_outer_name(p, func),
               func->group_size[0], func->group_size[1], func->group_size[2], args.at ? args.at : "");
    clike_line(p, "return cudaGetLastError();");
    p->indent--;
    clike_line(p, "}\n");
    p->out = before;
}

/* The stack of a thread is small, unless it is asked for: it has to hold the kernel's own variables, too.
 * Nobody knows how deep a recursion goes. */
static void print_main(Printer *p, const Func *func) {
    bool recursive = (clike_needs(p, func) & NEEDS_STACK) != 0;
    const char *stack =
        clike_format(p,
                     "    cudaFuncAttributes own = {};\n"
                     "    cudaFuncGetAttributes(&own, slope::%s);\n"
                     "    cudaDeviceSetLimit(cudaLimitStackSize, own.localSizeBytes + (32 << 10));\n",
                     clike_outer_name(p, func));
    text_printf(&p->last,
                "\n" HOST_OPEN
                "int main(void) {\n%s    cudaError_t error = slope::%s_launch(dim3(1, 1, 1), 0);\n"
                "    if (error == cudaSuccess) error = cudaDeviceSynchronize();\n"
                "    if (error != cudaSuccess) fprintf(stderr, \"%%s\\n\", cudaGetErrorString(error));\n"
                "    return error == cudaSuccess ? 0 : 1;\n}\n" HOST_CLOSE,
                recursive ? stack : "", clike_outer_name(p, func));
}

/* Both ends are told of the buffer that all are in. */
static void print_sums(Printer *p, const char *end) {
    const char *buffer = p->sums.buffer ? clike_global_name(p, p->sums.buffer) : NULL;
    if (!p->sums.any) return;
    clike_helper(p, "slope_sums_start");
    if (buffer) clike_line(p, "%s(%s.data, %s.count, sizeof *%s.data);", end, buffer, buffer, buffer);
    else clike_line(p, "%s(0, 0, 4);", end);
}

/* How large its groups are. One that waits for memory leaves registers to others: as many threads as a
 * multiprocessor can have. */
static const char *launch_bounds(Printer *p, const Func *func) {
    const int *size = func->group_size, threads = size[0] * size[1] * size[2];
    if (!map_has(&p->waiting, PTR_KEY(func))) return clike_format(p, "%d", threads);
    return clike_format(p, "%d, %d", threads, MOST_THREADS / threads);
}

static void print_kernel(Printer *p, const Func *func, const char **names) {
    const char **args = arena_array(&p->arena, const char *, func->nparams + 1);
    for (int i = 0; i < func->nparams; i++)
        args[i] = is_handed_over(&func->params[i]) ? clike_format(p, "&%s", names[i]) : names[i];
    clike_line(p, "extern \"C\" __global__ void __launch_bounds__(%s) %s(%s) {", launch_bounds(p, func),
               clike_outer_name(p, func), kernel_params(p, func, names, "", ""));
    p->indent++;
    if (clike_takes_thread(p, func)) clike_line(p, "SlopeThread thread;");
    if (clike_needs(p, func) & NEEDS_SHARED) clike_line(p, "slope_start_group();");
    if (clike_needs(p, func) & NEEDS_STATICS) clike_line(p, "slope_start_thread(&thread);");
    bool waits = clike_make_copies(p, func);
    print_sums(p, "slope_sums_start");
    if (waits && !p->sums.any) clike_line(p, "__syncthreads();"); /* sums begin with one */
    clike_line(p, "%s;", clike_call_inner(p, func, args, "&thread"));
    print_sums(p, "slope_sums_end");
    if (clike_takes_thread(p, func) && is_known(p, "slope_tape_begin"))
        clike_line(p, "%s(&thread);", clike_helper(p, "slope_tape_end"));
    p->indent--;
    clike_line(p, "}\n");
    tell(p, EMIT_kernel, func->name->text, clike_outer_name(p, func));
    if ((clike_needs(p, func) & NEEDS_STACK) && p->file->hosted)
        text_add(&p->outside,
                 STR("extern \"C\" __device__ int slope_recursive;\n__device__ int slope_recursive = 1;\n"));
    print_launcher(p, func, names);
    if (clike_is_main(p, func)) print_main(p, func);
}

/* ---- the dialect */

static const char *const kernel_names[] = {"groups", "stream", "error", "thread", NULL};

const Dialect clike_cuda = {
    .language = &clike_with_pointers,
    .includes =
        "#ifdef __CUDACC_RTC__ /* compiled at run time: without headers, for the device alone */\n"
        "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\n"
        "typedef unsigned short uint16_t;\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n"
        "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\ntypedef size_t "
        "uintptr_t;\ntypedef long long intptr_t;\n"
        "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define UINT8_MAX 255\n#define INT16_MIN (-32768)\n"
        "#define INT16_MAX 32767\n#define UINT16_MAX 65535\n#define INT64_MAX 9223372036854775807LL\n"
        "#define UINT64_MAX 18446744073709551615ULL\n"
        "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n#define UINT32_MAX 4294967295u\n"
        "#define INT64_MIN (-9223372036854775807LL - 1)\n#define INFINITY __builtin_bit_cast(float, "
        "0x7f800000)\n"
        "#define NAN __builtin_bit_cast(float, 0x7fffffff)\n#define abort() __trap()\n"
        "#define offsetof(type, field) __INTADDR__(&((type *)0)->field)\n"
        "#else\n#include <assert.h>\n#include <cuda_runtime.h>\n#include <math.h>\n#include <stddef.h>\n"
        "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#endif\n\n"
        "extern \"C\" __device__ __attribute__((noreturn)) void __assertfail(const char *, const char *, "
        "unsigned, const char *, size_t);\n\nnamespace slope {\n\n",
    .header_includes =
        "#include <assert.h>\n#include <cuda_runtime.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
        "namespace slope {\n\n",
    .open = "",
    .close = "} // namespace slope\n",
    .outside_open = "",
    .outside_close = "",
    .host_open = HOST_OPEN,
    .host_close = HOST_CLOSE "\n",
    .helper = "static inline __device__ ",
    .header_helper = "static inline __host__ __device__ ",
    .inner = "static __device__ ",
    .outer = "__device__ ",
    .apart = "static __noinline__ __device__ ",
    .constant = "static __device__ const ",
    .computed = "static __device__ ",
    .shared = "static __shared__ ",
    .barrier = "__syncthreads();",
    .fence = "__threadfence();",
    .thread_needs = NEEDS_STATICS | NEEDS_SINK | NEEDS_FIBER | NEEDS_RUNTIME,
    .thread_param = "SlopeThread *thread",
    .kernel_names = kernel_names,
    .early_init = true,
    .within = "slope_within",
    .puts_lanes = true,
    .copy = "slope_copy",
    .set = "slope_set",
    .sine_and_cosine = "sincos",
    .over_root = "rsqrt",
    .wave = "slope_wave",
    .warp_sums = true,
    .put_whole = "slope_put_whole",
    .tile = "SlopeTile",
    .copy_elements = "slope_copy_elements",
    .atomic_bits = 32,
    .printf_values = 32,
    .most_local = 512 << 10,
    .own = "slope_own",
    .helpers = helpers,
    .hosted = hosted,
    .families = families,
    .nhelpers = sizeof helpers / sizeof *helpers,
    .nhosted = sizeof hosted / sizeof *hosted,
    .nfamilies = sizeof families / sizeof *families,
    .thread_id = thread_id,
    .thread_type = thread_type,
    .declare_kernel = declare_kernel,
    .kernel = print_kernel,
    .declare_uniform = declare_uniform,
    .uniform = uniform,
    .start = start,
};
