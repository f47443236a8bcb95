/* slope.h: compile, run and inspect Slang programs from C or C++.
 *
 *     SlopeConfig config;
 *     slope_config_init(&config);
 *     SlopeSession *session;
 *     SlopeProgram *program;
 *     SlopeFunction *square;
 *     slope_session_new(&config, &session);
 *     if (slope_load_file(session, "square.slang", &program) == SLOPE_STATUS_ok &&
 *         slope_find_function(program, "square", &square) == SLOPE_STATUS_ok) {
 *         float x = 3, y;
 *         slope_call(square, (void *[]){&x, &y});
 *     }
 *     slope_session_free(session);
 *
 * Handles. A session owns its programs, buffers and blobs, a program its functions, kernels and types:
 * freeing the owner frees them and gives back their memory. Handles are opaque. Texts are NUL-terminated
 * UTF-8 and live as long as the handle they came from, unless said otherwise.
 *
 * Threads. There is no global state. A session, with all that it owns, is used by one thread at a time;
 * different sessions are independent. Two things may be done from any thread at any time: calling the
 * address of a function (slope_function_address), and slope_stop.
 *
 * Failure. Functions that can fail return a SlopeStatus. Before they fail, they pass at least one diagnostic
 * that says why to the `report` callback (after SLOPE_STATUS_memory perhaps none). A result is written to
 * `*out` only with SLOPE_STATUS_ok; otherwise `*out` is NULL. Every `free` function accepts NULL. Any other
 * NULL is misuse, unless said otherwise; for a handle or for `out`, without a diagnostic. Functions that
 * return no status then return 0, NULL, false or an empty text. */
#ifndef SLOPE_H
#define SLOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOPE_VERSION "0.1.0"

#if defined(__GNUC__)
#define SLOPE_API __attribute__((visibility("default")))
#else
#define SLOPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SlopeSession SlopeSession;
typedef struct SlopeProgram SlopeProgram;
typedef struct SlopeFunction SlopeFunction;
typedef struct SlopeKernel SlopeKernel;
typedef struct SlopeType SlopeType;
typedef struct SlopeBuffer SlopeBuffer;

typedef enum SlopeStatus {
    SLOPE_STATUS_ok,
    SLOPE_STATUS_error,  /* the program is wrong: it does not compile, or it failed while it ran */
    SLOPE_STATUS_misuse, /* the call is wrong: a name that the program does not have, data of the wrong size */
    SLOPE_STATUS_stopped, /* slope_stop ended the run */
    SLOPE_STATUS_memory,  /* out of memory; the program at work can only be freed */
    SLOPE_STATUS_fault,   /* a defect of Slope; the session can only be freed */
} SlopeStatus;

SLOPE_API const char *slope_version(void); /* SLOPE_VERSION of the library */

/* What a message means, by its code: 5102 of E5102. `message` is as for printf; cause, example and remedy
 * may be NULL. False: no such code. */
typedef struct SlopeExplanation {
    bool is_error; /* else a warning */
    int code;
    const char *message, *cause, *example, *remedy;
} SlopeExplanation;
SLOPE_API bool slope_explain(int code, SlopeExplanation *out);
SLOPE_API const char *slope_status_name(SlopeStatus status); /* "ok", "error", ... */

/* ---- diagnostics */

typedef enum SlopeSeverity {
    SLOPE_SEVERITY_note,
    SLOPE_SEVERITY_warning,
    SLOPE_SEVERITY_error
} SlopeSeverity;

typedef struct SlopeNote {
    const char *message;
    const char *path; /* NULL: no place */
    int line, column; /* from 1; columns count characters */
} SlopeNote;

/* One message, complete. All of it is valid during the callback only. */
typedef struct SlopeDiagnostic {
    SlopeSeverity severity;
    int code; /* 1234 of E1234 or W1234; 0: none */
    const char *message;
    const char *path; /* NULL: no place */
    int line, column;
    /* the text it is about, up to but not including its end */
    int first_line, first_column, end_line, end_column;
    /* What to write instead of a part of its line, from the first column up to but not including the end; an
     * insertion where they are the same. */
    const char *fix; /* NULL: nothing can be said */
    int fix_column, fix_end_column;
    const SlopeNote *notes;
    int note_count;
    /* The whole message with its notes, ready to be shown; each ends with a newline. */
    const char *text;     /* `path:line:col: error E1234: message`, the source line, underlined */
    const char *coloured; /* the same with terminal colours */
    const char *json;     /* one object on one line */
} SlopeDiagnostic;

/* ---- sessions */

typedef struct SlopeDefine {
    const char *name;
    const char *value; /* NULL: empty */
} SlopeDefine;

/* What may be made of floating-point arithmetic; docs/accuracy.md. */
typedef enum SlopeFloats {
    SLOPE_FLOATS_contract, /* a product and the sum it goes into may be rounded once */
    SLOPE_FLOATS_strict,   /* every operation as it is written */
    SLOPE_FLOATS_fast      /* sums and products in any order */
} SlopeFloats;

enum { SLOPE_LANES_AUTO = -1 };

/* The user's own folder for such things: $XDG_CACHE_HOME/slope, or ~/.cache/slope. */
#define SLOPE_CACHE_USER "~"

/* Everything is optional: slope_config_init gives each field its default. What the fields point to is
 * copied. */
typedef struct SlopeConfig {
    void *user; /* first argument of every callback */

    /* As realloc: `new_size` 0 frees, `old` NULL allocates; NULL when there is no memory. Default: the C
     * library. */
    void *(*resize)(void *user, void *old, size_t old_size, size_t new_size);

    /* Reads a whole file. Returns 0, or an errno value (ENOENT makes an import look elsewhere). The bytes
     * need only last until `release_file`, which may be NULL and is called before the function that needed
     * the file returns. Default: the file system. */
    int (*read_file)(void *user, const char *path, const char **bytes, size_t *size);
    void (*release_file)(void *user, const char *bytes, size_t size);

    /* Receives every message. Default: they are collected for slope_messages. */
    void (*report)(void *user, const SlopeDiagnostic *diagnostic);

    /* Receives what programs print; calls do not overlap, but may come from any thread. Default: standard
     * output. */
    void (*write)(void *user, const char *text, size_t size);

    /* where #include and import look, after the folder of the asking file */
    const char *const *include_paths;
    int include_path_count;
    const SlopeDefine *defines; /* macros, as if defined at the start of every file */
    int define_count;
    const char *const *conformances; /* "Type:Interface=ID": ids of types behind interface values */
    int conformance_count;
    /* files of modules whose `export`s stand for what the program declares `extern` */
    const char *const *links;
    int link_count;

    int error_limit; /* errors reported at most for a program; 0: all. Default 20 */
    bool no_warnings, warnings_as_errors;
    bool portable; /* warn about what other Slang compilers do not accept */

    int optimization;   /* 0 to 3. Default 3 */
    bool debug_info;    /* positions and names for debuggers in compiled code */
    bool unchecked;     /* do not test indices into buffers; out of range is then undefined */
    SlopeFloats floats; /* what may be made of floating-point arithmetic. Default: contract */
    /* that run kernels; 0: one per processor. 1: always the same order, and no atomic sums. In any case,
     * nothing else may write to the buffers of a kernel while it runs */
    int threads;
    /* items of a kernel that are done at once, in vectors: 2, 4, 8 or 16; SLOPE_LANES_AUTO: as many as are
     * best; 1: one by one. 0, the default: as many as are best in machine code that runs at once, one by
     * one in files, dumps, and with debug_info */
    int lanes;
    /* about how many groups kernels will be dispatched over in all, for the choice of lanes: what is done
     * only once is not worth compiling for vectors. 0: many */
    int groups;
    int wave; /* lanes of a wave, 1 to 128; 0: 32 */
    /* threads of a group of kernels without [numthreads]: up to 65536 each, 2^30 in all; 0: 1 */
    int block[3];
    /* MiB of stack for programs that call themselves; 0: a sixteenth of the memory, or 1 GiB */
    int stack_mib;

    /* What compiling one program may take, LLVM aside; more is an error that closes the program. Negative:
     * no limit. */
    int limit_memory; /* MiB; 0: 4096 */
    int limit_time;   /* seconds of processor time; 0: 600 */

    /* Where kernels run: "cpu"; "cuda" or "cuda:1", an NVIDIA GPU (docs/gpu.md). Functions always run on the
     * CPU. NULL: cpu */
    const char *device;
    /* What makes the GPU's code: "nvrtc", NVIDIA's compiler, or "llvm". NULL: NVRTC where it is found
     * (docs/gpu.md) */
    const char *device_code;
    /* most of a GPU's memory that reverse passes of a kernel may take; 0: three quarters of what is free */
    int tape_mib;

    bool strict; /* a run in which an index was out of range is an error that says where, and how often */

    /* Programs are run from their intermediate form, without a code generator: with the same results, and
     * without a delay, but ten to a hundred times more slowly. Functions have no address then. */
    bool interpret;

    /* A folder in which machine code is kept for later sessions, at most 256 MiB, or SLOPE_CACHE_USER. It is
     * created if it does not exist, and not used if others may write to it (docs/c-api.md). NULL, or "":
     * none */
    const char *cache;
} SlopeConfig;

SLOPE_API void slope_config_init(SlopeConfig *config);
/* `config` NULL: all defaults. */
SLOPE_API SlopeStatus slope_session_new(const SlopeConfig *config, SlopeSession **out);
SLOPE_API void slope_session_free(SlopeSession *session);
/* The text of all messages since the last slope_clear_messages, where no `report` callback takes them; "" if
 * none. */
SLOPE_API const char *slope_messages(const SlopeSession *session);
SLOPE_API void slope_clear_messages(SlopeSession *session);
/* Ends a slope_dispatch or slope_call that is under way, within 100 ms, whatever the program does (on a GPU:
 * when its loops next look, docs/gpu.md). That call returns `stopped`, and buffers have what was written
 * until then. May be called from any thread and from a signal handler; does nothing if nothing is under way. */
SLOPE_API void slope_stop(SlopeSession *session);

/* ---- programs */

/* Reads and parses a file. Its declarations are checked when they are asked for; slope_check checks all of
 * them. */
SLOPE_API SlopeStatus slope_load_file(SlopeSession *session, const char *path, SlopeProgram **out);
/* The same from memory; `path` is used in messages and to resolve imports. */
SLOPE_API SlopeStatus slope_load_text(SlopeSession *session, const char *path, const char *text, size_t size,
                                      SlopeProgram **out);
SLOPE_API void slope_program_free(SlopeProgram *program);
/* Checks everything in the file, also what nobody calls. */
SLOPE_API SlopeStatus slope_check(SlopeProgram *program);

/* ---- types
 *
 * A type is described as it is laid out in memory. Sizes, offsets and strides are bytes. A matrix is an
 * array of its rows (or columns, if it is column_major), an enum its underlying integer; optionals, tuples
 * and interface values are structs. */

typedef enum SlopeTypeKind {
    SLOPE_TYPE_void,
    SLOPE_TYPE_bool, /* one byte, 0 or 1 */
    SLOPE_TYPE_int8,
    SLOPE_TYPE_uint8,
    SLOPE_TYPE_int16,
    SLOPE_TYPE_uint16,
    SLOPE_TYPE_int32,
    SLOPE_TYPE_uint32,
    SLOPE_TYPE_int64,
    SLOPE_TYPE_uint64,
    SLOPE_TYPE_half,
    SLOPE_TYPE_float,
    SLOPE_TYPE_double,
    SLOPE_TYPE_vector,  /* element, count */
    SLOPE_TYPE_array,   /* element, count */
    SLOPE_TYPE_struct,  /* fields */
    SLOPE_TYPE_pointer, /* element: its target */
    SLOPE_TYPE_buffer,  /* element; in memory a SlopeSpan */
} SlopeTypeKind;

typedef enum SlopeBufferKind {
    SLOPE_BUFFER_structured, /* StructuredBuffer */
    SLOPE_BUFFER_rw_structured,
    SLOPE_BUFFER_append,
    SLOPE_BUFFER_consume,
    SLOPE_BUFFER_bytes, /* ByteAddressBuffer: element void, count in bytes */
    SLOPE_BUFFER_rw_bytes,
    SLOPE_BUFFER_constant, /* ConstantBuffer, ParameterBlock: one element */
} SlopeBufferKind;

/* A buffer as compiled code sees it: what a parameter, field or uniform of buffer type holds. */
typedef struct SlopeSpan {
    void *data;
    uint64_t count; /* of elements */
} SlopeSpan;

typedef struct SlopeField {
    const char *name;
    const SlopeType *type;
    size_t offset;
} SlopeField;

SLOPE_API SlopeTypeKind slope_type_kind(const SlopeType *type);
SLOPE_API const char *slope_type_name(const SlopeType *type); /* as written in Slang: "float3", "Camera" */
SLOPE_API size_t slope_type_size(const SlopeType *type);      /* as sizeof in C */
SLOPE_API size_t slope_type_align(const SlopeType *type);
SLOPE_API const SlopeType *slope_type_element(const SlopeType *type); /* NULL: it has none */
/* Of a vector or array; -1: unsized. 1 for everything else. */
SLOPE_API int64_t slope_type_count(const SlopeType *type);
/* From one element to the next, in a vector or array or behind a pointer or buffer. */
SLOPE_API size_t slope_type_element_stride(const SlopeType *type);
SLOPE_API int slope_type_field_count(const SlopeType *type);
SLOPE_API bool slope_type_field(const SlopeType *type, int index, SlopeField *out); /* false: no such field */
SLOPE_API SlopeBufferKind slope_type_buffer_kind(const SlopeType *type);

/* Text to a scalar in memory and back. Integers are decimal or 0x..., floats also `inf` and `nan`, bool is
 * `true`, `false`, 1 or 0. Parsing fails with SLOPE_STATUS_misuse, without a diagnostic, where the text is
 * not a number of that kind or does not fit. Printing gives the shortest text that reads back exactly; it
 * needs at most 32 bytes and returns the length. */
SLOPE_API SlopeStatus slope_scalar_parse(SlopeTypeKind kind, const char *text, void *out);
SLOPE_API int slope_scalar_print(SlopeTypeKind kind, const void *scalar, char *text, size_t room);

/* ---- what a program declares
 *
 * Functions with a body, entry points and types of the program's own file, those inside namespaces and types
 * included, but not what imported modules declare; in the order of the source (a namespace comes where it
 * first begins). */

typedef enum SlopeDeclarationKind {
    SLOPE_DECLARATION_function,
    SLOPE_DECLARATION_kernel,
    SLOPE_DECLARATION_type, /* struct, interface, enum, typealias */
} SlopeDeclarationKind;

typedef struct SlopeDeclaration {
    SlopeDeclarationKind kind;
    /* as slope_find_function, slope_find_kernel and slope_find_type take it: "Camera.project" */
    const char *name;
    bool is_generic; /* they need arguments with it: "blend<float3>" */
    /* of a function: so is "bwd_diff(f)" one; of a type: it is differentiable */
    bool has_fwd_diff, has_bwd_diff;
    const char *path;
    int line, column;
} SlopeDeclaration;

/* 0 also for a program with errors, which are reported. */
SLOPE_API int slope_declaration_count(SlopeProgram *program);
SLOPE_API bool slope_declaration(SlopeProgram *program, int index, SlopeDeclaration *out);
/* A type by the expression a user would write for it: "Camera", "float3[2]", "DifferentialPair<Camera>". */
SLOPE_API SlopeStatus slope_find_type(SlopeProgram *program, const char *expression, const SlopeType **out);

/* ---- functions */

typedef enum SlopeDirection {
    SLOPE_DIRECTION_in,
    SLOPE_DIRECTION_out,
    SLOPE_DIRECTION_inout,
    SLOPE_DIRECTION_ref, /* __ref: an address that may overlap with others */
} SlopeDirection;

typedef struct SlopeParameter {
    const char *name; /* "this" for the object of a method; "" if unnamed */
    const SlopeType *type;
    SlopeDirection direction;
} SlopeParameter;

/* Finds a function by the expression a user would write for it: "shade", "Camera.project"; of several by the
 * types of its parameters, too: "blend(float, float3)". */
SLOPE_API SlopeStatus slope_find_function(SlopeProgram *program, const char *expression, SlopeFunction **out);
SLOPE_API const char *slope_function_name(const SlopeFunction *function);
SLOPE_API int slope_function_parameter_count(const SlopeFunction *function);
SLOPE_API bool slope_function_parameter(const SlopeFunction *function, int index, SlopeParameter *out);
SLOPE_API const SlopeType *slope_function_result(const SlopeFunction *function); /* SLOPE_TYPE_void if none */

/* Calls it. `args` holds one address per parameter, in order, of a value of the parameter's type, then, if
 * the result is not void, the address for the result. Compiles the function the first time. */
SLOPE_API SlopeStatus slope_call(SlopeFunction *function, void *const args[]);

/* Calls it `count` times, as a kernel does: on all threads of the session, several calls at once in vectors
 * (SlopeConfig.lanes), in any order. Call number k has its arguments, in the order of slope_call, at the
 * addresses args[i] + k * strides[i]. `strides` is in bytes; NULL: all are arrays, one value after the
 * other. An argument with a stride of 0 is one value for all calls, which none of them may write to. */
SLOPE_API SlopeStatus slope_call_batch(SlopeFunction *function, int64_t count, void *const args[],
                                       const int64_t strides[]);

/* The address of its machine code, which lives as long as the program. It is a C function:
 *  - an `in` parameter of scalar or pointer type is passed by value, as the C type (bool as bool, half as a
 *    uint16_t with its bits);
 *  - every other parameter is passed as the address of its value;
 *  - a scalar or pointer result is returned; any other result is written through one more parameter, the
 *    last.
 * So `float f(float3 p, inout int n)` is `float (*)(const float p[3], int *n)`. */
SLOPE_API SlopeStatus slope_function_address(SlopeFunction *function, void **out);

/* ---- buffers: memory that kernels work on */

/* Zeroed memory, aligned to 64 bytes. */
SLOPE_API SlopeStatus slope_buffer_new(SlopeSession *session, size_t size, SlopeBuffer **out);
/* The caller's own memory, which must outlive the buffer. It has no counter, so that it cannot be bound to
 * an AppendStructuredBuffer or ConsumeStructuredBuffer, nor may a program count with it. */
SLOPE_API SlopeStatus slope_buffer_wrap(SlopeSession *session, void *data, size_t size, SlopeBuffer **out);
SLOPE_API void slope_buffer_free(SlopeBuffer *buffer); /* no program may use it any more */
/* Its memory, for reading and writing. On a GPU it is a copy: ask for it after each run that may have
 * changed it, and do not write to it while one is under way; what you write is on the GPU in the next run.
 * NULL: it is the caller's memory on a GPU, or cannot be read. */
SLOPE_API void *slope_buffer_data(SlopeBuffer *buffer);
/* Copies a part of it, from or to where it is now; size bytes from an offset. */
SLOPE_API SlopeStatus slope_buffer_read(SlopeBuffer *buffer, size_t offset, void *to, size_t size);
SLOPE_API SlopeStatus slope_buffer_write(SlopeBuffer *buffer, size_t offset, const void *from, size_t size);
/* Sessions with a GPU: the caller's memory there, which is used in place and must outlive the buffer; it has
 * no counter. slope_buffer_address says where a buffer is on the GPU, for other libraries: it stays there as
 * long as it lives. */
SLOPE_API SlopeStatus slope_buffer_wrap_device(SlopeSession *session, uint64_t address, size_t size,
                                               SlopeBuffer **out);
SLOPE_API SlopeStatus slope_buffer_address(SlopeBuffer *buffer, uint64_t *out);
SLOPE_API size_t slope_buffer_size(const SlopeBuffer *buffer);
/* What Append, Consume, IncrementCounter and DecrementCounter count with: zero at first. Read and set it
 * while nothing runs; set it to the number of elements before they are consumed. NULL: the memory is the
 * caller's own. */
SLOPE_API uint32_t *slope_buffer_counter(SlopeBuffer *buffer);

/* ---- uniforms: what a program reads and its host provides
 *
 * Global parameters (plain ones and buffers), those of imported modules too, and parameters of entry points
 * that have no SV_ semantic. Names are as in the source; parts of structs and arrays are reached as there:
 * "scene.lights", "weights[2]". A parameter of an entry point is "entry.name", or just "name" where nothing
 * else has that name. */

typedef struct SlopeUniform {
    const char *name;
    const SlopeType *type;
    /* a ConstantBuffer or ParameterBlock; `type` is the type of what is in it, and that is set */
    bool is_block;
} SlopeUniform;

SLOPE_API int slope_uniform_count(SlopeProgram *program);
SLOPE_API bool slope_uniform(SlopeProgram *program, int index, SlopeUniform *out);
/* What a uniform or a kernel of that name is called in what slope_build makes, where names that mean
 * something to C or C++ are changed. It lives as long as the program; NULL: out of memory. */
SLOPE_API const char *slope_built_name(SlopeProgram *program, const char *name);
SLOPE_API SlopeStatus slope_find_uniform(SlopeProgram *program, const char *name, SlopeUniform *out);
/* Sets a uniform that is neither a buffer nor a pointer; `size` must be the type's. Unset uniforms are zero. */
SLOPE_API SlopeStatus slope_set_uniform(SlopeProgram *program, const char *name, const void *data,
                                        size_t size);
/* Lets a uniform of buffer or pointer type refer to this memory, whose size must be a whole number of
 * elements (for a constant buffer: one). Unbound buffers have no elements; NULL unbinds. */
SLOPE_API SlopeStatus slope_bind_buffer(SlopeProgram *program, const char *name, SlopeBuffer *buffer);

/* ---- images: what is behind a texture */

typedef enum SlopeImageFormat {
    SLOPE_IMAGE_unorm8, /* 0 to 255 is 0 to 1 */
    SLOPE_IMAGE_snorm8, /* -127 to 127 is -1 to 1 */
    SLOPE_IMAGE_unorm16,
    SLOPE_IMAGE_snorm16,
    SLOPE_IMAGE_half, /* uint16_t with its bits */
    SLOPE_IMAGE_float,
    SLOPE_IMAGE_uint8, /* for textures of integers */
    SLOPE_IMAGE_int8,
    SLOPE_IMAGE_uint16,
    SLOPE_IMAGE_int16,
    SLOPE_IMAGE_uint32,
    SLOPE_IMAGE_int32,
} SlopeImageFormat;

typedef struct SlopeImage {
    const void *data; /* channel by channel, texel by texel, row by row, slice by slice; NULL: all zero */
    int width, height, depth; /* height and depth at least 1. Layers and faces of cubes count as depth */
    int channels;             /* 1 to 4. What a texel has more of reads as 0, alpha as 1 */
    SlopeImageFormat format;
    bool make_levels; /* smaller and smaller copies, down to one texel, each the mean of the one before */
} SlopeImage;

/* Lets a texture show a copy of this image. `texels`, if not NULL, gets the memory: 32 bits per channel,
 * float or integer, for reading back what a program wrote; it lives until slope_buffer_free, or as long as
 * the session. If NULL, until the texture shows another image, or as long as the program. */
SLOPE_API SlopeStatus slope_bind_image(SlopeProgram *program, const char *name, const SlopeImage *image,
                                       SlopeBuffer **texels);

/* ---- kernels: entry points */

/* `name` NULL: the only entry point, else `main`. A function that is not marked as an entry point can be one
 * too, if it has no parameters but uniforms and SV_ values; its groups are one thread. */
SLOPE_API SlopeStatus slope_find_kernel(SlopeProgram *program, const char *name, SlopeKernel **out);
SLOPE_API const char *slope_kernel_name(const SlopeKernel *kernel);
/* Does it use the uniform of that index? Its own parameters count as used. */
SLOPE_API bool slope_kernel_uses(SlopeKernel *kernel, int index);
SLOPE_API void slope_kernel_group_size(const SlopeKernel *kernel, int size[3]); /* [numthreads] */
/* Compiles it; slope_dispatch would do that at its first call. */
SLOPE_API SlopeStatus slope_kernel_prepare(SlopeKernel *kernel);
/* Runs that many groups of threads and returns when all are done. */
SLOPE_API SlopeStatus slope_dispatch(SlopeKernel *kernel, int x, int y, int z);
/* The same on a GPU without waiting: it runs after what was queued before. Kernels that print, that may need
 * more memory for their reverse pass, or that write to memory of the caller (slope_buffer_wrap) are waited
 * for. Without a GPU it is slope_dispatch. What goes wrong in the kernel is reported by slope_wait. */
SLOPE_API SlopeStatus slope_queue(SlopeKernel *kernel, int x, int y, int z);
/* Waits until everything that was queued is done. Reading a buffer and slope_dispatch wait as well. */
SLOPE_API SlopeStatus slope_wait(SlopeSession *session);
/* Sessions with a GPU: from now on kernels and copies go to this stream of another library (a CUstream or
 * cudaStream_t of the device's primary context), in order with its work there; NULL: to the session's own. */
SLOPE_API SlopeStatus slope_use_stream(SlopeSession *session, void *stream);

/* ---- output */

typedef struct SlopeBlob {
    const char *data; /* followed by a NUL byte, which does not count */
    size_t size;
} SlopeBlob;
SLOPE_API void slope_blob_free(SlopeBlob *blob); /* or with the session */

typedef struct SlopeBuildOptions {
    const char *target;         /* one of slope_target_name */
    const char *const *entries; /* expressions of functions to compile; none: all entry points */
    int entry_count;
    /* C: */
    bool openmp; /* groups of kernels run side by side, by OpenMP */
    bool alone;  /* no two threads run the code at a time: sums need no atomic operations */
    /* Targets that are source code: */
    bool header;   /* the header that declares what was compiled, in place of the code */
    bool lines;    /* #line directives that lead to the program */
    bool comments; /* a comment at each statement: which line of the program it comes from */
    /* in place of the code a page of HTML that shows it beside the program, lines linked */
    bool side_by_side;
    /* Files that slope_build_file writes as well, the header and the page: all of them or none. NULL: not
     * that one */
    const char *header_path, *page_path;
    /* Slang: the most numbers of each type that a reverse pass keeps, where loops do not tell; 0: that is an
     * error. */
    int tape;
    /* Targets that are machine code: */
    /* tests every access to memory by the address sanitizer, whose runtime (-fsanitize=address) the program
     * is linked with */
    bool sanitize;
} SlopeBuildOptions;

SLOPE_API const char *slope_target_name(int index); /* "obj", ...; NULL after the last */
SLOPE_API SlopeStatus slope_build(SlopeProgram *program, const SlopeBuildOptions *options, SlopeBlob **out);
/* Writes the result to a file; if anything fails, all files are left as they were. */
SLOPE_API SlopeStatus slope_build_file(SlopeProgram *program, const SlopeBuildOptions *options,
                                       const char *path);

/* The program as text after a stage of the compiler. `function` NULL: all functions. `stage` NULL: the last. */
SLOPE_API const char *slope_stage_name(int index); /* "syntax", "check", ...; NULL after the last */
SLOPE_API SlopeStatus slope_dump(SlopeProgram *program, const char *function, const char *stage,
                                 SlopeBlob **out);

/* ---- gradcheck: derivatives against the functions they came from
 *
 * A derivative is a matrix J. At random points, J u by fwd_diff is compared with differences of the function
 * itself (computed in double, whatever its types), J^T v by bwd_diff with the same differences, and the two
 * with each other: <J u, v> = <u, J^T v>. Points where the function is not defined or not smooth are
 * replaced by others. */

struct SlopeGradcheckResult;

typedef struct SlopeGradcheckOptions {
    /* An expression, as in slope_find_function. NULL: every differentiable function of the file that is not
     * generic. */
    const char *function;
    int samples;      /* points for each function; 0: 32 */
    double tolerance; /* relative error to accept; 0: 1e-6; 1e-4 where float, 2e-2 where half is used */
    uint64_t seed;    /* another one, other points */
    /* Points to use instead: the values of all parameters that come in, scalar by scalar, "1,2.5,3". */
    const char *const *points;
    int point_count;
    /* "NAME=LOW:HIGH": where a parameter, or a part of one ("ray.t"), is drawn from. [Range(low, high)] in
     * the source says the same. */
    const char *const *ranges;
    int range_count;
    double seconds; /* for each function, after which it is judged by what was found; 0: 20 */
    /* Called before the first function and after each, with all results: `done` of them are complete, the
     * others only name their function. It may not call any function of this session. NULL: not called. */
    void (*report)(void *user, const struct SlopeGradcheckResult *results, int done, int count);
    void *user;
} SlopeGradcheckOptions;

typedef enum SlopeVerdict {
    SLOPE_VERDICT_right,
    SLOPE_VERDICT_wrong,
    SLOPE_VERDICT_unknown, /* no point was found where it could be decided */
    SLOPE_VERDICT_skipped, /* nothing was tried */
} SlopeVerdict;

typedef struct SlopeGradcheckResult {
    const char *function;
    const char *path; /* where it is defined */
    int line;
    SlopeVerdict verdict;
    int samples;   /* points that were compared */
    int discarded; /* points that could not be */
    double tolerance;
    /* The worst relative errors of fwd_diff, of bwd_diff, and of the two against each other; negative: not
     * compared. */
    double fwd_error, bwd_error, identity_error;
    const char *point;  /* where the worst of them was, as in the options; NULL: nowhere */
    const char *inputs; /* the same with names: "x = 1.5, ray.t = 2.0" */
    /* wrong: what is; unknown, skipped: why; right: NULL, or which derivatives are lost */
    const char *message;
} SlopeGradcheckResult;

/* One result per function, in the order of the file; they live as long as the program. SLOPE_STATUS_ok means
 * that the check was made, whatever its outcome. */
SLOPE_API SlopeStatus slope_gradcheck(SlopeProgram *program, const SlopeGradcheckOptions *options,
                                      const SlopeGradcheckResult **results, int *count);
SLOPE_API const char *slope_verdict_name(SlopeVerdict verdict); /* "right", "wrong", ... */

/* ---- where the time went, per stage, in the order in which the stages first ran */

typedef struct SlopeTiming {
    const char *stage;
    double milliseconds;
    size_t peak_memory; /* of the process, when the stage ended, in bytes; of "run": so far */
} SlopeTiming;

SLOPE_API int slope_timing_count(const SlopeSession *session);
SLOPE_API bool slope_timing(const SlopeSession *session, int index, SlopeTiming *out);

/* ---- what reverse passes keep of their primal pass, value by value, in the order in which they were made */

typedef struct SlopeStored {
    const char *function; /* that was differentiated */
    const char *name;     /* of the value, or the operation that computes it; "" if neither has one */
    const char *path;     /* where it is computed; NULL: unknown */
    int line, column;
    int bytes;     /* each time */
    int loop_line; /* it is kept in each iteration of the loop there; 0: once per call */
    bool exact;    /* in memory of exactly the size needed; else on a stack that grows */
} SlopeStored;

/* Of all programs of the session that have not been freed. */
SLOPE_API int slope_stored_count(const SlopeSession *session);
SLOPE_API bool slope_stored(const SlopeSession *session, int index, SlopeStored *out);

/* ---- how kernels, and loops over items, were compiled, in the order in which that was done */

typedef struct SlopeRemark {
    const char *kernel; /* or the function that has the loop */
    int lanes;          /* items that it does at once */
    const char *why;    /* not more, where more were asked for; NULL: nothing prevents it */
    const char *path;   /* of what is in the way, or the kernel or loop; NULL: unknown */
    int line, column;
    bool is_loop; /* whose rounds are the items */
} SlopeRemark;

/* Of all programs of the session that have not been freed. */
SLOPE_API int slope_remark_count(const SlopeSession *session);
SLOPE_API bool slope_remark(const SlopeSession *session, int index, SlopeRemark *out);

#ifdef __cplusplus
}
#endif

#endif
