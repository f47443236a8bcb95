/* emit: from IR to code. One struct of functions per way of making code; the driver knows nothing else of it.
 * The targets that users can name are the rows of targets.def: what makes them, and what they are capable of.
 *
 * The LLVM emitter lives in a shared object of its own (libslope-llvm.so), so that LLVM is not even mapped
 * unless code is made. The driver loads it and asks for the function `slope_llvm_backend`. Others are built
 * in.
 *
 * What is emitted: every function with FUNC_EXPORT that has a body, and all that they reach. The functions
 * must be verified and concrete; both states are taken. Names and calling conventions of what comes out are
 * described in abi.h.
 *
 * Errors come back as text in an EmitError; nothing is printed. Different sessions may use a backend at the
 * same time; one EmitJit, or one Module, is used by one thread at a time. */
#ifndef SLOPE_EMIT_H
#define SLOPE_EMIT_H

#include "emit/abi.h"
#include "ir/ir.h"

/* How floating-point arithmetic may differ from what is written, from -O1 on. NaN and infinities always have
 * their meaning. */
typedef enum EmitFloats {
    EMIT_floats_strict,   /* not at all */
    EMIT_floats_contract, /* a * b + c may become fma */
    EMIT_floats_fast, /* sums and products in any order, quotients by reciprocals; 0 and -0 are the same */
} EmitFloats;

/* What a generator of machine code has of one translation for the next: its own. NULL: nothing. */
typedef struct EmitSpare {
    void *machines[4]; /* descriptions of this processor, by level */
} EmitSpare;

typedef struct EmitOptions {
    int level;            /* 0 to 3, as -O0 to -O3 */
    bool unchecked;       /* no range checks on buffers and arrays */
    bool watch;           /* machine code in memory: indices out of range are told, by rt_outside */
    EmitFloats floats;    /* source code: strict asks the compiler for it; the rest is its own affair */
    bool alone;           /* no two threads run it at a time: atomic sums are plain ones */
    int wave;             /* lanes of a wave; 0: 32 */
    bool debug;           /* debug info: functions and lines */
    bool sanitize;        /* machine code: every access is watched by the address sanitizer */
    bool verify;          /* check LLVM's view of the module before it is optimised */
    const char *cpu;      /* for files; NULL: this machine. Its features are all assumed. */
    const char *features; /* of that processor, where more is to be known than its name; NULL: none */
    EmitSpare *spare;     /* of a session; NULL: nothing is left for the next */
} EmitOptions;

/* Milliseconds, added to what is there. */
typedef struct EmitTimes {
    double translate; /* IR to LLVM IR */
    double passes;    /* LLVM's optimisations */
    double machine;   /* machine code and linking */
} EmitTimes;

typedef struct EmitError {
    char text[1024]; /* "" if there was none */
    Loc loc;         /* 0: of the program as a whole */
} EmitError;

typedef enum EmitFormat {
#define TARGET(id, name, extension, backend, capabilities) EMIT_##id,
#include "emit/targets.def"
} EmitFormat;

typedef enum EmitBackendId {
#define BACKEND(id, library, function, lacks) EMIT_BACKEND_##id,
#include "emit/targets.def"
    EMIT_BACKENDS
} EmitBackendId;

typedef enum TargetCapabilities {
    TARGET_JUMPS = 1,         /* out of regions; else functions must be in normal form */
    TARGET_POINTERS = 2,      /* as values; also to memory that is seen as another type */
    TARGET_GROWING_TAPES = 4, /* without a bound that is known beforehand */
    TARGET_BARRIERS = 8,      /* that threads of a group wait at */
    TARGET_RECURSION = 16,
    TARGET_WAVES = 32,
    TARGET_SOURCE = 64,         /* text that people read: with comments, pages */
    TARGET_LINKED = 128,        /* what is made is a file that the system loads and runs */
    TARGET_COMPILED = 256,      /* what the backend makes is CUDA C++, for NVRTC to compile */
    TARGET_MANY_THREADS = 512,  /* so many that what they keep is far away: to compute it again costs less */
    TARGET_CHECKED = 1024,      /* what compiles it sees to indices */
    TARGET_OWN_THREADS = 2048,  /* kernels are functions that run all of their threads */
    TARGET_PLAIN_SUMS = 131072, /* may be told that one thread runs it, which needs no atomic sums */
    TARGET_DEVICE = 4096,       /* code for a GPU, as its driver takes it */
    TARGET_STARTS = 32768,      /* a program of its own, which begins at main */
    TARGET_LANES = 8192,        /* vectors of any length, and of addresses */
    TARGET_HEADERS = 65536,     /* C and C++ call what is in it, by a header */
    TARGET_KEEPS_ORDER = 16384, /* what compiles it adds up as it is written, one item at a time */
} TargetCapabilities;

/* Operations that a backend does not have for all operands, so that they are written out before it sees
 * them. */
typedef enum BackendLacks {
    BACKEND_LACKS_INTEGERS = 1, /* division by zero and what overflows, shifts by more than there are bits */
    BACKEND_LACKS_SHORT =
        4, /* a use for vectors of two and three lanes: it makes vectors of scalars itself */
    BACKEND_LACKS_HALVES = 8,   /* conversions of halves other than from and to float, and their remainder */
    BACKEND_LACKS_ZEROS = 16,   /* `scale` and `ratio`, of which nothing stays nothing */
    BACKEND_LACKS_VIEWS = 64,   /* memory that is seen as another type */
    BACKEND_LACKS_UNUSED = 128, /* a place for what nobody uses: compilers warn of it */
/* Vectors of floats to integers, clamped: LLVM takes the lanes one by one where the processor has no such
 * instruction. */
#if defined(__x86_64__)
    BACKEND_LACKS_CLAMPS = 32,
#else
    BACKEND_LACKS_CLAMPS = 0,
#endif
} BackendLacks;

typedef struct EmitTarget {
    const char *name, *extension;
    EmitFormat format;
    EmitBackendId backend;
    uint32_t capabilities;
} EmitTarget;

/* What can be asked of a JIT about a name of the IR. */
typedef enum EmitSymbol {
    EMIT_native,  /* a function: native form; only of backends that make machine code */
    EMIT_call,    /* a function: for jit_call */
    EMIT_kernel,  /* a kernel: const RtKernel * */
    EMIT_uniform, /* a uniform global: its memory */
} EmitSymbol;

typedef struct EmitJit EmitJit;

/* Keeps what was made for those who ask for the very same again, in this run or a later one. It may forget.
 * From any thread. */
typedef struct EmitCache {
    void *user;
    /* To be freed; NULL: it does not have it. */
    char *(*find)(void *user, const char *key, size_t key_size, size_t *size);
    void (*keep)(void *user, const char *key, size_t key_size, const char *bytes, size_t size);
} EmitCache;

typedef struct EmitJitConfig {
    Runtime *runtime;        /* on which calls run */
    const RtSymbol *symbols; /* what emitted code needs: runtime_symbols */
    int nsymbols;
    const EmitCache *cache; /* of machine code; NULL: none */
} EmitJitConfig;

typedef struct EmitFile {
    EmitFormat format;
    const EmitTarget *target; /* of targets.def; NULL: of the format alone */
    const char *path;
    const char *runtime_library; /* libslope-rt.a, for what is linked */
    /* Source code: */
    bool header;       /* the declarations for those who call it, not the code */
    bool is_called;    /* there is a header of it, too */
    bool openmp;       /* groups of kernels side by side */
    bool lines;        /* say which line of the program each statement comes from */
    bool comments;     /* the same as a comment at its end */
    bool side_by_side; /* a page that shows the program and the code beside each other */
    bool hosted;       /* for a GPU: the runtime loads and launches it, by slope_host of abi.h */
    /* Told how things are called in such code, by their names in the IR: kernels, uniforms; "" is what
     * computes constants. NULL: nobody asks. */
    void (*found)(void *user, EmitSymbol what, const char *name, const char *symbol);
    void *user;
    int capability; /* of the GPU that code is for: 75 is 7.5; 0: of the oldest that there is code for */
    const EmitCache *cache; /* of code that was made before; NULL: none */
    int tape; /* targets without memory that grows: elements of each type on a tape whose size is not known; 0: an error */
} EmitFile;

typedef struct EmitBackend {
    const char *name;    /* "llvm" */
    const char *version; /* of what is behind it */
    /* NULL after an error. */
    EmitJit *(*jit_new)(const EmitJitConfig *config, EmitError *error);
    /* Releases all code and all memory of uniforms. */
    void (*jit_free)(EmitJit *jit);
    /* Translates, optimises, links and initialises. May be called several times: a later module shares the
     * uniforms of the earlier ones, and functions that were exported before are not exported again. */
    bool (*jit_add)(EmitJit *jit, Module *module, const EmitOptions *options, EmitTimes *times,
                    EmitError *error);
    /* NULL if there is no such thing. */
    void *(*jit_find)(EmitJit *jit, EmitSymbol what, const char *name);
    /* Calls a function that was found: one pointer per parameter, in order, then one per result. From any
     * thread. */
    void (*jit_call)(EmitJit *jit, void *function, void *const *args);
    void (*forget)(EmitSpare *spare); /* what is in it is freed; NULL: there never is something */
    /* Writes a file. */
    bool (*write)(Module *module, const EmitOptions *options, const EmitFile *file, EmitTimes *times,
                  EmitError *error);
    /* The same as bytes in memory (path is not used), with a NUL behind them; to be freed by the caller. NULL
     * after an error. */
    char *(*make)(Module *module, const EmitOptions *options, const EmitFile *file, size_t *size,
                  EmitTimes *times, EmitError *error);
} EmitBackend;

typedef const EmitBackend *EmitBackendFunction(void);
const EmitBackend *slope_llvm_backend(void); /* in its library */

/* Where a backend comes from. */
typedef struct EmitMaker {
    const char *library, *symbol; /* library NULL: built in */
    uint32_t lacks;               /* BackendLacks */
    EmitBackendFunction *function;
} EmitMaker;

/* ---- names.c */
/* A C identifier for the name that something has in the IR, as others can see it: what C or C++ claims gets
 * the prefix slope_. */
const char *emit_outer_name(Arena *arena, const char *name);

/* ---- targets.c */
const EmitTarget *emit_target(int index); /* NULL after the last */
const EmitTarget *emit_find_target(const char *name);
const EmitTarget *emit_header_target(const EmitTarget *target); /* whose headers its files have */
const EmitMaker *emit_maker(EmitBackendId id);
uint32_t emit_target_lacks(const EmitTarget *target); /* BackendLacks: also for want of a capability */

#endif
