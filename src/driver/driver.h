/* driver: sessions, programs and the pipeline that takes them through the stages; behind the public API.
 *
 * The files with an api_ prefix are the API: they check arguments, keep handles, set the trap and turn
 * results into a status. What needs the compiler itself they leave to the functions under "pipeline" below.
 *
 * A function here that returns a SlopeStatus has reported why, unless it is ok. misuse: a name or value that
 * the caller gave does not fit the program; error: the program is at fault. All of them run under the
 * session's trap. */
#ifndef SLOPE_DRIVER_H
#define SLOPE_DRIVER_H

#include "check/check.h"
#include "ir/ir.h"
#include "runtime/runtime.h"
#include "slope.h"

/* ---- the prelude, embedded by the build: its files, ended by one without a name; its declarations, ended by one in file -1 */
extern const PreludeFile prelude_files[];
extern const PreludeRow prelude_rows[];

/* ---- handles */

/* A type in memory: IR types, laid out by rules. One per program and pair of both. */
struct SlopeType {
    SlopeProgram *program;
    const Type *type;
    LayoutRules rules;
    const char *name;
};

/* How an argument moves from one call of many to the next: not, as the elements of an array do, by some
 * distance. */
typedef enum BatchStep { BATCH_same, BATCH_next, BATCH_apart } BatchStep;

/* The kernel that calls a function for many values. */
typedef struct Batch {
    BatchStep *steps; /* of parameters, then results, as the IR has them */
    Func *func;
    const RtKernel *compiled; /* when it is first run; NULL before */
    void **args;              /* what a run is given, and where addresses and distances are meanwhile */
    char **addresses;
    int64_t *distances;
} Batch;

struct SlopeFunction {
    SlopeProgram *program;
    const char *name; /* the expression it was found by */
    Func *func;
    void *call; /* for driver_call; NULL: not compiled yet */
    VEC(Batch) batches;
};

struct SlopeKernel {
    SlopeProgram *program;
    const char *name;
    Func *func;
    const RtKernel *compiled;    /* NULL: not yet */
    void **args;                 /* of its parameters, which are uniforms: their `data` */
    struct DeviceKernel *device; /* its code on a GPU; NULL: not yet */
};

/* Something that the host sets: a global, or a parameter of an entry point. */
typedef struct Uniform {
    Name name; /* "entry.name" for parameters */
    Name full; /* "space.name", "module.name"; NULL: a parameter */
    const Type *type;
    LayoutRules rules;
    Global *global; /* NULL: a parameter */
    bool is_block;  /* a constant buffer by its address, or an array of them */
    char *data;     /* its value; copied to compiled code when that exists and whenever it changes */
} Uniform;

struct SlopeBuffer {
    SlopeSession *session;
    SlopeBuffer *prev, *next;
    RtBuffer memory; /* count: bytes */
    bool wrapped;    /* memory of the caller, without a counter */
    /* Of an image that nobody else holds: who shows it, and in which texture. Else NULL. */
    const SlopeProgram *program;
    const char *texture;
    /* On a GPU: */
    uint64_t base, address;        /* what was taken, and the data in it; 0: not there yet */
    bool host_newer, device_newer; /* which of the two counts, if they may differ */
    bool foreign;                  /* memory of the caller on the GPU: memory.data is its address */
};

/* A constant buffer that the program reads through a pointer; see api_constant.c. */
typedef struct ConstantCopy {
    const char *slot; /* where the pointer is */
    const Type *element;
    char *host, *data; /* what the host sets, and what the program reads */
} ConstantCopy;

/* What slope_blob_free gets is the address of `blob`. */
typedef struct BlobNode BlobNode;
struct BlobNode {
    SlopeBlob blob;
    SlopeSession *session;
    BlobNode *prev, *next;
    size_t total; /* bytes of this node */
};

/* Of the program's own file; see declared.c. */
typedef VEC(SlopeDeclaration) Declarations;

typedef struct StageTimer StageTimer;

/* What a reverse pass keeps, and whose it is. */
typedef struct StoredRow {
    SlopeStored row;
    const SlopeProgram *program;
} StoredRow;

typedef struct RemarkRow {
    SlopeRemark row;
    const SlopeProgram *program;
} RemarkRow;

typedef struct SpareBlock SpareBlock;
typedef struct Spare {
    SpareBlock *first;
    size_t bytes;
} Spare;

/* Names and sources of a session are those of the library, and complete when it is open: each program has its
 * own in addition. */
struct SlopeSession {
    SlopeConfig config; /* lists and texts copied */
    Allocator allocator;
    Spare spare; /* memory for the next program */
    Trap trap;
    DeepStack *stack; /* where callers have too little; NULL: none had */
    bool on_own_stack;
    const char *stack_end; /* of the stack at hand, roughly; NULL: not known */
    bool broken;           /* a fault happened: refuse everything but freeing */
    const char *file;      /* read and not yet released; NULL: none */
    size_t file_size;
    Arena arena;
    Names names;
    Sources sources;
    SlopeProgram *program;         /* of the call under way; NULL: it is about none */
    const struct Limits *exceeded; /* of that program, or of another that takes its results; NULL: none */
    Diags *diags;                  /* of that program; else these: */
    Diags own_diags;
    Arena message_arena;
    Text messages; /* where no callback takes them */
    VEC(SlopeTiming) times;
    int timed;             /* the row of them that was last asked for */
    VEC(StoredRow) stored; /* by reverse passes */
    VEC(RemarkRow) remarks;
    StageTimer *timer; /* the innermost that runs */
    SlopeProgram *programs;
    SlopeProgram *ready; /* see ready.c */
    SlopeBuffer *buffers;
    BlobNode *blobs;
    Runtime *runtime;        /* see driver_runtime */
    Gpu *gpu;                /* see driver_gpu */
    atomic_int stop;         /* slope_stop was called; it may come from any thread at any time */
    struct Pipeline *stages; /* the pipeline's own: checker, code generator, ... */
};

/* What compiling a program took so far, and what it may take; see limit.c. */
typedef struct Limits {
    size_t bytes, most_bytes;
    double seconds, most_seconds; /* of the processor, before the stage that is at work */
    double started, began;        /* when that did, by the processor; 0: none is; ... and by the clock */
    size_t taken;                 /* bytes since the clock was looked at */
    DiagId exceeded;              /* of the row that says so; 0: nothing was */
} Limits;

/* All that a program needs is in its arena, and goes with it. */
struct SlopeProgram {
    SlopeSession *session;
    SlopeProgram *prev, *next;
    Arena arena; /* text, tree, types, IR, handles, messages */
    Names names;
    Sources sources;
    Types types;
    Diags diags;
    SlopeStatus refusal; /* not ok: memory or a limit ended something in the middle; only freeing is left */
    Limits limits;
    Name path;
    Str text; /* of its file */
    Map type_handles;
    Map found_functions, found_types; /* Name of an expression: SlopeFunction, SlopeType */
    VEC(Uniform *) uniforms; /* globals first found by driver_list_uniforms, then parameters of kernels */
    bool uniforms_listed;
    Declarations declarations;
    bool declarations_listed;
    VEC(ConstantCopy) constants;
    VEC(SlopeKernel *) kernels;
    struct Unit *unit;   /* the pipeline's own: module, IR, compiled code */
    struct Start *start; /* what it is set back to when it is freed; NULL: it goes */
};

/* ---- pipeline: the compiler behind the API (pipeline.c and beside it) */

/* Once per session, when all but `stages` is set up; and before it is freed, also after a failed open. */
SlopeStatus driver_open(SlopeSession *session);
/* Between programs: what the last ones used is kept for the next; before the first, what its text names. */
void driver_keep(SlopeSession *session, Str text);
/* All that comes before the text. True: with enough of the library in it to be used again. */
bool driver_begin(SlopeProgram *program);
void driver_close(SlopeSession *session);
/* Parses the text as the program's module. The text lives as long as the program. */
SlopeStatus driver_load(SlopeProgram *program, Str text);
void driver_unload(SlopeProgram *program); /* compiled code is gone after this */
SlopeStatus driver_check(SlopeProgram *program);

/* The IR function for an expression, with its signature; marked FUNC_EXPORT. misuse: no such function. */
SlopeStatus driver_find_function(SlopeProgram *program, const char *expression, Func **out);
/* The entry point of that name, or by the rules of slope_find_kernel. Its parameters are its uniforms; SV_
 * values are not among them. */
SlopeStatus driver_find_entry(SlopeProgram *program, const char *name, Func **out);
/* Calls driver_add_uniform for every uniform global of the program and of what it imports, used or not. */
SlopeStatus driver_list_uniforms(SlopeProgram *program);

SlopeStatus driver_list_declarations(SlopeProgram *program, Declarations *out);
/* The IR type for an expression. misuse: no such type. */
SlopeStatus driver_find_type(SlopeProgram *program, const char *expression, const Type **out);

/* Makes machine code for the function and all it needs. */
SlopeStatus driver_compile(SlopeProgram *program, Func *func);
/* Of a function that is compiled; see emit/abi.h for `f` and `f.kernel`. An interpreter has no addresses:
 * NULL. */
void *driver_native_address(SlopeProgram *program, Func *func);
void *driver_find_call(SlopeProgram *program, Func *func); /* for driver_call; NULL: there is none */
/* With one pointer per parameter, then one per result. */
void driver_call(SlopeProgram *program, void *function, void *const *args);
const RtKernel *driver_kernel(SlopeProgram *program, Func *func);
/* A form of a kernel that is compiled, which has no copies of the buffers in `large`, bits in the order of
 * RtKernel.sums. */
Func *driver_sum_form(SlopeProgram *program, Func *func, uint64_t large);
/* Where compiled code keeps a uniform; NULL: none refers to it. */
void *driver_uniform_address(SlopeProgram *program, Global *global);
bool driver_mentions(SlopeKernel *kernel, const Global *global); /* front.c: it, or what it calls */
const char *driver_built_name(SlopeProgram *program,
                              const char *name); /* front.c: of a variable, in what is built */

/* The output of a target, appended to `out`. The target is one of the names below. */
SlopeStatus driver_build(SlopeProgram *program, const SlopeBuildOptions *options, Text *out);
const char *driver_target_name(int index); /* NULL after the last */
bool driver_target_is_linked(const char *name);
/* The program, or one function, after a stage (NULL: the last), appended to `out`. */
SlopeStatus driver_dump(SlopeProgram *program, const char *function, const char *stage, Text *out);
const char *driver_stage_name(int index);
SlopeStatus driver_all_entries(SlopeProgram *program); /* every entry point of the file is compiled */
/* Functions that are marked as entry points; or, by name, whether there is such a function. The program is
 * checked. */
int driver_count_entries(SlopeProgram *program, const char *name);
SlopeStatus driver_entry_or_function(SlopeProgram *program, const char *expression, Func **out);

/* ---- batch.c */
/* With groups of that many calls; its parameters are the number of calls, then, for each parameter and result
 * of the function, the address and, of those that are apart, the distance. */
enum { DRIVER_BATCH_GROUP = 64 };
Func *driver_batch_kernel(Func *func, const BatchStep *steps);

/* ---- deep.c */
/* What the pipeline is asked for: whatever of it the call needs. */
typedef struct DriverWork {
    SlopeProgram *program;
    Str source;
    const char *name, *stage;
    const SlopeBuildOptions *options;
    Func *func; /* comes in or out, as do these */
    Text text;  /* that is made */
    const Type *type;
    Declarations declarations;
    void *user;
} DriverWork;
/* run(work), on a stack that is large enough. */
SlopeStatus driver_deep(SlopeSession *session, SlopeStatus (*run)(DriverWork *work), DriverWork *work);

/* ---- api_session.c */
/* What every function of the API starts with, after `if (setjmp(session->trap.at)) return
 * driver_trapped(session);`. False: the session or the program is broken. */
bool driver_enter(SlopeSession *session);
bool driver_enter_program(SlopeProgram *program);
SlopeStatus driver_refused(SlopeSession *session); /* what is returned then; reported */
/* The messages are those of the program from now on; NULL: of the session. */
void driver_talk_about(SlopeSession *session, SlopeProgram *program);
void driver_init_diags(SlopeSession *session, Diags *diags, Arena *arena, Sources *sources);
SlopeStatus driver_trapped(SlopeSession *session);
/* What it ends with: hands over pending messages; an error reported since driver_enter makes ok an error. */
SlopeStatus driver_leave(SlopeSession *session, SlopeStatus status);
SlopeStatus driver_missing(SlopeSession *session, const char *function, const char *argument); /* misuse */
bool driver_list_is_whole(const char *const *list, int count); /* no text in it is missing */
/* Reads a file through the session's callback into the program's arena, NUL-terminated. 0, or an errno value;
 * reports nothing. In two steps: the bytes as they come, which wait in the session, and the text, for which
 * there may be no memory. */
int driver_read_file(SlopeProgram *program, const char *path, Str *text);
bool driver_reads_disk(const SlopeSession *session); /* not by a callback of the host */
int driver_open_file(SlopeSession *session, const char *path, Str *bytes);
int driver_take_file(SlopeProgram *program, Str bytes, Str *text);
Runtime *driver_runtime(SlopeSession *session); /* made at the first call */

/* ---- limit.c */
Allocator driver_limited_memory(SlopeProgram *program); /* for its arena */
void driver_limit_begin(SlopeProgram *program);         /* the clock of the program runs from here ... */
void driver_limit_end(SlopeProgram *program);           /* ... to here */
void driver_limit_test(SlopeProgram *program);          /* leaves through the trap if it is late */

/* ---- ready.c */
void driver_make_ready(SlopeProgram *program);          /* a new one, for a text to be loaded */
SlopeProgram *driver_take_ready(SlopeSession *session); /* NULL: none waits */
/* Instead of freeing what is left of a program: it waits for the next text. False: it is to be freed. */
bool driver_set_back(SlopeProgram *program);
void driver_free_ready(SlopeSession *session);

/* ---- spare.c */
/* As Allocator.resize, for the memory of programs. */
void *driver_resize_spare(SlopeSession *session, void *old, size_t old_size, size_t new_size);
void driver_free_spare(SlopeSession *session);

/* ---- api_uniform.c */
void driver_add_uniform(SlopeProgram *program, Name name, Name full, Global *global);
void driver_add_parameters(SlopeKernel *kernel);   /* uniforms for its parameters, memory for its args */
void driver_apply_uniforms(SlopeProgram *program); /* copies all values to compiled code */

/* ---- api_constant.c */
/* What the host sets, before it does so. */
typedef struct Held {
    const Type *type;
    LayoutRules rules;
    bool is_block;         /* the pointers in it are constant buffers */
    uint16_t image_format; /* of the images in it, as check has it; 0: not said */
} Held;
/* Gives memory to all constant buffers in it, and images the formats that they are declared with. */
void driver_prepare(SlopeProgram *program, Held held, char *data);
char *driver_constant_data(SlopeProgram *program, const char *slot); /* what the host sets */
void driver_copy_constants(SlopeProgram *program);                   /* to where the program reads */

/* The one that the program reads there; NULL: none. */
const ConstantCopy *driver_constant_at(const SlopeProgram *program, const void *data);
/* From one layout to the scalar one; `reference` copies buffers and pointers, if it is not NULL. */
typedef struct LayoutCopy {
    LayoutRules rules;
    void (*reference)(void *user, const Type *type, LayoutRules rules, const char *from, char *to);
    void *user;
} LayoutCopy;
void driver_copy_value(const LayoutCopy *copy, const Type *type, const char *from, char *to);

/* ---- api_device.c: kernels on a GPU */
SlopeStatus driver_check_device(SlopeSession *session); /* of the configuration: is there such a thing? */
bool driver_has_gpu(const SlopeSession *session);       /* it is to run kernels */
Gpu *driver_gpu(SlopeSession *session);                 /* opened at the first call; NULL: reported */
void driver_device_options(const SlopeSession *session, GpuSource *source); /* how it is compiled */
SlopeStatus driver_device_prepare(SlopeKernel *kernel);
/* *finished: it ran to its end; else the runtime knows why. */
SlopeStatus driver_device_dispatch(SlopeKernel *kernel, const uint32_t groups[3], bool waits, bool *finished);
void driver_device_unload(SlopeProgram *program);

/* Code for a GPU, and how the driver finds its parts. */
typedef struct DeviceSymbol {
    Name name;          /* of a uniform, in the IR */
    const char *symbol; /* in the code */
} DeviceSymbol;
typedef struct DeviceText {
    SlopeProgram *program;
    char *text;  /* to be freed */
    bool is_ptx; /* or CUDA C++ */
    const char *entry, *init;
    VEC(DeviceSymbol) uniforms;
} DeviceText;
/* backend.c; with a GPU, LLVM makes it, for that one */
SlopeStatus driver_device_text(SlopeProgram *program, Func *func, const Gpu *gpu, DeviceText *out);
GpuCache driver_gpu_cache(SlopeSession *session); /* cache.c: of compiled code; find: NULL: none is wanted */

/* ---- api_type.c */
const SlopeType *driver_type(SlopeProgram *program, const Type *type, LayoutRules rules);

/* ---- api_buffer.c, api_output.c */
SlopeBuffer *driver_buffer_at(const SlopeSession *session,
                              const void *data);             /* that this is in; NULL: none */
bool driver_buffer_to_device(SlopeBuffer *buffer, Gpu *gpu); /* what counts is there then; false: it failed */
size_t driver_buffer_header(
    const SlopeBuffer *buffer); /* bytes before its data that go along with them: the counter */
bool driver_buffer_to_host(SlopeBuffer *buffer);
bool driver_buffers_to_host(SlopeSession *session); /* all; and what they hold may change there */
void driver_forget_rows(
    const SlopeProgram *program); /* what its reverse passes keep, how kernels were made */
void driver_free_buffers(SlopeSession *session);
/* Of the program's images that nobody else holds: what shows in a texture; NULL: all. */
void driver_free_images(const SlopeProgram *program, const char *texture);
void driver_free_blobs(SlopeSession *session);

/* ---- timing.c: stages may run any number of times, and nest; time inside an inner stage is not the outer one's */
struct StageTimer {
    SlopeSession *session;
    int row; /* of the session's times */
    bool runs;
    StageTimer *outer;
    double started, inner; /* milliseconds */
};
void driver_time_begin(SlopeSession *session, StageTimer *timer, const char *stage);
void driver_time_run(SlopeSession *session, StageTimer *timer); /* not of the compiler: the program itself */
void driver_time_end(StageTimer *timer);
void driver_time_add(SlopeSession *session, const char *stage, double milliseconds);

#endif
