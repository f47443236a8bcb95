/* abi: what emitted code and the runtime share. Plain C structs, known to both by their offsets; nothing else
 * of the compiler is needed here, so that the runtime also builds alone (libslope-rt).
 *
 * Symbols of an emitted module, for a function `f` that is exported (FUNC_EXPORT):
 *   f           its native form. In the JIT, `in` scalars and pointers are passed by value as the C type (bool as bool, half as
 *               uint16_t), everything else by pointer; a scalar or pointer result comes back by value, other results go
 *               through pointers that follow the parameters. For a kernel: (uint32_t x, y, z: groups; then as above). In
 *               files, it is the C function that the header declares (native.c).
 *   f.call      void (void *const *args): one pointer per parameter, in order, then one per result. The JIT's alone.
 *   f.kernel    kernels only: the RtKernel that describes it. The JIT's alone.
 *   u           a uniform: its memory.
 *   slope.init  void (void): fills constants that need code; run it once after loading. Shared libraries and objects run it
 *               by themselves.
 * In files the names are those that C can say (names.c): bwd_f for bwd_diff(f), and the prefix slope_ for
 * what C or C++ claims. In the JIT they are those of the IR with the prefix `slope.`.
 *
 * Objects are laid out as in C with scalar alignment: a float3 is float[3], bool one byte, a buffer an
 * RtBuffer. Memory of `in` parameters is not written
 * during a call; memory of out and inout parameters overlaps with nothing else that the function reaches. A
 * call that is ended by `abort` returns zero, and the session has the message; in files it ends the program. */
#ifndef SLOPE_EMIT_ABI_H
#define SLOPE_EMIT_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct Runtime Runtime;
typedef struct RtThread RtThread;
typedef struct RtFiber RtFiber;
typedef struct RtKernel RtKernel;

/* What every emitted function receives as its first, hidden parameter. One per thread of a dispatch (or per
 * call from outside), on the stack of the entry function. */
typedef struct RtContext {
    uint32_t thread_id[3]; /* SV_DispatchThreadID */
    uint32_t group_id[3];  /* SV_GroupID */
    uint32_t local_id[3];  /* SV_GroupThreadID */
    uint32_t local_index;  /* SV_GroupIndex: x fastest */
    char *shared;          /* group-shared variables of this group */
    char *statics;         /* `static` globals of this thread */
    char *sink; /* takes what is written out of range through an address; zeroed before each such use */
    void *const *args;      /* kernels: one pointer per parameter */
    uint32_t groups[3];     /* size of the dispatch */
    uint32_t group_size[3]; /* of a group; 0 outside of kernels */
    uint32_t wave_size; /* lanes of a wave: threads of a group that follow each other; 0 outside of kernels */
    uint32_t unused;    /* keeps the next field aligned */
    RtThread *owner; /* the machine's thread: tapes, output, way back from `abort`; NULL if none is needed */
    RtFiber *fiber;  /* set if this thread of a group can wait at barriers */
    /* a function that may call itself asks rt_stack before it goes below; NULL: no limit */
    char *stack_limit;
    const volatile int32_t *stop; /* not 0: the call or dispatch is to end, by rt_stop */
    const RtKernel *kernel;       /* that is run; NULL outside of kernels */
} RtContext;

/* A stack of a tape. Elements have the size of their scalar type, bool one byte. */
typedef struct RtStack {
    char *data;
    int64_t count; /* elements in use */
    int64_t room;  /* elements that can be used before rt_tape_more must be asked */
} RtStack;

enum { RT_STACKS = 12 }; /* one per scalar kind, in the order of TypeKind from TYPE_bool on */

typedef struct RtTape {
    RtStack stacks[RT_STACKS];
    /* the rest is the runtime's */
    int64_t reserved[RT_STACKS]; /* bytes of address space behind each stack */
    RtThread *owner;
    struct RtTape *next, *prev; /* among the open, or the free, tapes of the thread */
    uint64_t serial;            /* order of opening */
} RtTape;

/* Buffers as the program sees them. Those of append, consume and rw kind have a counter in the 16 bytes
 * before `data`. */
typedef struct RtBuffer {
    void *data;
    uint64_t count; /* elements, or bytes of a byte buffer */
} RtBuffer;

enum { RT_BUFFER_HEADER = 16 };

/* A buffer of which every worker has a copy to add to. Where it is: an offset leads to a pointer, which is
 * followed, and so on; the last leads to the RtBuffer. */
enum { RT_SUM_STEPS = 4 };
typedef struct RtSum {
    char *base;   /* the memory of a uniform; NULL: ... */
    uint64_t arg; /* ... that of the argument of that number */
    int64_t offsets[RT_SUM_STEPS];
    uint64_t nsteps;
    uint64_t size;   /* of the numbers that it consists of: 4, float; 8, double */
    uint64_t stride; /* of its elements */
} RtSum;

struct RtKernel {
    /* Runs groups first to end - 1 (x fastest) with all their threads, one after another. NULL: `thread`
     * instead. */
    void (*run)(const RtContext *context, uint64_t first, uint64_t end);
    /* Runs the one thread that the context describes, or it and those that follow in x, as many as `lanes`
     * says; for kernels with group barriers. */
    void (*thread)(const RtContext *context);
    uint32_t group_size[3];
    uint32_t shared_align;
    uint64_t shared_size; /* bytes of group-shared memory */
    uint64_t deep;        /* not 0: calls itself somewhere, so that it wants a deep stack */
    uint64_t lanes;       /* of `thread`: a part of group_size[0]; 0: one */
    uint64_t nargs;       /* that are given; behind them the kernel finds ... */
    uint64_t nsums;       /* ... RtBuffers of its own, that is a copy of each of these: */
    const RtSum *sums;
    uint64_t work;  /* of such: operations of a thread, at most; 0: not known */
    uint64_t least; /* ... about, if no loop whose length is not known is long */
    uint64_t alone; /* not 0: one thread at a time runs all groups; what it adds is added plainly */
    uint64_t wave;  /* lanes of a wave; 0: as many as the runtime says */
};

/* How a value given to printf is held. */
typedef enum RtPrintKind {
    RT_PRINT_bool,
    RT_PRINT_int,  /* sign-extended; as C promotes it */
    RT_PRINT_uint, /* zero-extended */
    RT_PRINT_int64,
    RT_PRINT_uint64,
    RT_PRINT_double, /* the bits; all floating types */
    RT_PRINT_text,   /* the address of bytes that a zero ends; null is empty */
} RtPrintKind;

typedef struct RtPrintArg {
    uint8_t kind, lanes; /* lanes: values that follow each other in the list of values */
} RtPrintArg;

/* ---- what code on a GPU and the runtime share */

/* A variable of the module, by the name slope_host: filled by the runtime before a launch and read after it.
 * Numbers of chunks are powers of two of RT_CHUNK bytes; `spare` has lists for each: the first's place in the
 * room plus one, in chunks, and in the upper half a number that changes with every change, so that none is
 * mistaken for another. A list goes on in the first word of its members. */
enum { RT_CHUNK = 4096, RT_CHUNK_SIZES = 32, RT_CHUNK_LISTS = 16, RT_HOST_TEXT = 488 };
typedef struct RtHost {
    uint32_t stop;   /* not 0: threads leave when they look */
    uint32_t failed; /* not 0: the text says why */
    uint64_t room, room_size,
        room_used; /* address of memory for tapes, and its bytes; used may be larger: then all was not enough */
    uint64_t print, print_size,
        print_used; /* likewise for what was printed: RtPrinted, one behind the other */
    uint64_t spare[RT_CHUNK_LISTS][RT_CHUNK_SIZES];
    char text[RT_HOST_TEXT]; /* a zero ends it */
} RtHost;

/* What one printf has printed; then come its RtPrintArgs, the format, padding up to a multiple of 8 bytes,
 * the values, and texts, of which the values have the places in the record. */
typedef struct RtPrinted {
    uint32_t size; /* of the whole record, a multiple of 8 */
    uint32_t length, nargs, nvalues;
} RtPrinted;

/* Code that LLVM makes for a GPU: what a thread has for its tapes, and a stack of a tape, of which RT_STACKS
 * and a pointer to the thread are one. Element i is at i << shift: lanes of a warp that take memory together
 * have theirs side by side. emit/llvm/device.ll has the same. */
enum { RT_DEVICE_ROOM = 4096 };
typedef struct RtDeviceThread {
    uint64_t used, open; /* bytes of the room; tapes */
    void *block;
    char room[RT_DEVICE_ROOM];
} RtDeviceThread;

typedef struct RtDeviceStack {
    char *data;
    int64_t count, room, shift;
} RtDeviceStack;

/* ---- what emitted code calls */

/* Runs body(context, args) where `abort` finds its way back. The context is made for the call: what is
 * compiled keeps its own blocks there. *slot is the runtime, made on first use if NULL. */
void rt_call(Runtime **slot, void (*body)(const RtContext *context, void *const *args), void *const *args);
/* The same on a deep stack, for bodies that call themselves somewhere. */
void rt_call_deep(Runtime **slot, void (*body)(const RtContext *context, void *const *args),
                  void *const *args);
/* As a native call of a kernel: dispatches over groups[0..2]. */
void rt_launch(Runtime **slot, const RtKernel *kernel, const uint32_t *groups, void *const *args);
void rt_close(Runtime **slot); /* frees the runtime, if one was made; when a shared library is unloaded */
void rt_abort(const RtContext *context, const char *text, int64_t length) __attribute__((noreturn));
void rt_barrier(const RtContext *context);
/* Meets the other threads of the wave that are, or come, here: all that pass the same `site`, or, if `low`
 * and `high` are bits of lanes, exactly those, who must name the same ones. What is returned lasts until the
 * thread meets others again: bits of those that met, in two words, then what lane i gave in word i + 2. `own`
 * has room for such a table of one lane. */
enum { RT_WAVE_LANES = 128 };
uint64_t *rt_wave(const RtContext *context, uint64_t site, uint64_t value, uint64_t low, uint64_t high,
                  uint64_t *own);
void rt_print(const RtContext *context, const char *format, int64_t length, const RtPrintArg *args,
              int64_t nargs, const uint64_t *values);
RtTape *rt_tape_open(const RtContext *context);
void rt_tape_close(RtTape *tape);
/* Makes room for `more` elements above count in stack `kind`, or ends the program. */
void rt_tape_more(RtTape *tape, int64_t kind, int64_t more);

/* An index is out of range at that place; counts, and keeps the place until somebody asks
 * (runtime_take_outside). */
typedef struct RtSite {
    int64_t loc;
    _Atomic int64_t count;
    struct RtSite *next;
} RtSite;
void rt_outside(const RtContext *context, RtSite *site);

char *rt_memory_take(const RtContext *context, int64_t size); /* zeroed, for statics too large for a stack */
char *rt_local_take(const RtContext *context,
                    int64_t size); /* as it comes, for variables too large for one */
void rt_memory_give(char *memory);
/* The memory of a tensor that the program makes, all zero, behind its counter. It lasts until the call or
 * dispatch ends. */
void *rt_made_take(const RtContext *context, int64_t size);
/* But for those whose address is in such an object, which the call returns: free(data - RT_BUFFER_HEADER) is
 * up to the caller. */
void rt_made_return(const RtContext *context, const void *object, int64_t size);
void rt_made_constants(
    const RtContext *context); /* ... and those made so far by the call, which constants hold */
/* The stack is below its limit in the function of that name: ends the program, unless there is room to find
 * out how deep the recursion is. */
void rt_stack(const RtContext *context, const char *name, int64_t length);
void rt_stop(RtThread *thread) __attribute__((noreturn)); /* ends what it runs, as it was told to */

/* By name, for the JIT. */
typedef struct RtSymbol {
    const char *name;
    void (*address)(void);
} RtSymbol;

#endif
