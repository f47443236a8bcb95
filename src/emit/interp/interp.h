/* interp: programs are run from the IR, without machine code: what every operation means, once more and
 * plainly.
 *
 * The interpreter is a backend like that of LLVM, and stands on the same runtime: threads, fibers, tapes,
 * output and errors are those of src/runtime. A function is translated once, to a list of steps whose
 * operands are numbers of slots in a frame (code.h); nothing is looked up while it runs. It needs no library,
 * starts in no time, and computes ten to a hundred times slower than machine code.
 *
 * Floating-point arithmetic is strict, each operation rounded once; elementary functions are those of the C
 * library. Indices are tested as always, and use of a tape that is empty is an error.
 *
 * What a program does can be counted: instructions, and bytes on tapes. */
#ifndef SLOPE_EMIT_INTERP_H
#define SLOPE_EMIT_INTERP_H

#include "emit/emit.h"

/* How something that is counted ended. */
typedef enum InterpEnd {
    INTERP_fine,
    INTERP_aborted, /* by the program, or for lack of something */
    INTERP_out_of_steps,
    INTERP_unreachable, /* came where control never comes */
    INTERP_bad_tape,    /* took from an empty one, or left something in it */
} InterpEnd;

typedef struct InterpCounts {
    int64_t steps; /* instructions that it may still take, set by the caller; looked at where blocks begin */
    int64_t work;  /* instructions so far, and words that copying, clearing and adding objects moved */
    int64_t kept, most; /* bytes on tapes: now, and at the worst */
    int64_t open_tapes;
    InterpEnd end;
} InterpCounts;

/* ---- backend.c */
const EmitBackend *interp_backend(void);

/* ---- count.c */
/* What is added from now on is counted there. One thread at a time may run it. */
void interp_count(EmitJit *jit, InterpCounts *counts);
int64_t interp_executed(const EmitJit *jit, Op op); /* how often, in what is counted */

#endif
