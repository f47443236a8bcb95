/* An interpreter of the IR, for tests: the meaning of every operation, written down a second time and plainly.
 *
 * Memory is real memory in the layout of type/layout.c, with one addition: the null address stands for whatever is
 * out of range in a buffer; loads from it give zero, stores to it are dropped. Arithmetic of floats is done in float.
 * Library functions are computed in double and rounded, as folding does. */
#ifndef IRINTERP_H
#define IRINTERP_H

#include "ir/ir.h"

typedef struct InterpBuffer {
    char *data;
    int64_t count; /* elements; bytes of a byte buffer */
    uint32_t counter;
} InterpBuffer;

typedef struct InterpTape InterpTape;

/* A value: lanes of a scalar or vector, or one of the others. */
typedef struct Datum {
    union {
        int64_t integer[4]; /* as in constants: extended as the type says */
        double real[4];
        char *address;
        InterpBuffer *buffer;
        InterpTape *tape;
    };
} Datum;

typedef enum InterpStatus {
    INTERP_fine,
    INTERP_out_of_steps,
    INTERP_unreachable,
    INTERP_aborted,
    INTERP_too_deep,
    INTERP_no_body,
    INTERP_bad_tape,
} InterpStatus;

typedef struct Interp {
    Arena *arena;
    int64_t steps;       /* left; instructions */
    int depth, deepest;  /* of calls; how deep they may go */
    InterpStatus status; /* why it stopped, if it did */
    Text log;            /* what printf said */
    uint32_t thread[4][3];
    Map globals;    /* Global -> char * */
    int64_t pushed; /* elements that tapes took, all in all */
    int64_t open_tapes;
    int64_t work; /* instructions so far, and words that copying, clearing and adding objects moved */
    int64_t executed[OP_COUNT];
    int64_t kept, most; /* bytes on tapes: now, and at the worst */
} Interp;

void interp_init(Interp *interp, Arena *arena);
/* Calls a function. `results` has room for all of them. Anything but INTERP_fine: it stopped on the way. */
InterpStatus interp_call(Interp *interp, const Func *func, const Datum *args, Datum *results);

/* Memory for an object of the type, all zero. */
char *interp_memory(Interp *interp, const Type *type);
Datum interp_load(const Type *type, const char *address);
void interp_store(const Type *type, char *address, Datum value);
char *interp_global(Interp *interp, const Global *global);

/* Reads all scalars of an object in order. Equal means: the same bits, or both NaN. */
bool interp_objects_equal(const Type *type, const char *a, const char *b);
bool interp_values_equal(const Type *type, Datum a, Datum b);

#endif
