/* What wide.c and records.c share: addresses of several lanes. */
#ifndef SLOPE_EMIT_LLVM_WIDE_H
#define SLOPE_EMIT_LLVM_WIDE_H

#include "emit/llvm/llvm.h"

/* Places in one buffer: data + index * unit + offset, if the index is below the count. */
typedef struct Indexed {
    LLVMValueRef data, count; /* count NULL: nobody asks */
    LLVMValueRef index;       /* a vector of integers of the program */
    bool is_signed;
    int64_t unit, offset;
} Indexed;

typedef struct Access {
    const Type *scalar, *shape; /* what is there; a vector of lanes */
    LLVMTypeRef memory;         /* a vector of what is there */
    Value address;
    LLVMValueRef mask; /* lanes that are on ... */
    LLVMValueRef on;   /* ... and in range */
    LLVMValueRef all;  /* i1: the fast way can be gone; NULL: surely */
    int row;           /* ... which is one vector: 1, or -1 from the last lane to the first; else 0 */
    unsigned align;
    int lanes;
} Access;

/* Of a gather or scatter, at that address for each lane, under that mask. */
Access emit_access(Emitter *e, const Inst *inst, Value address, LLVMValueRef mask);
/* Into `all`. */
void emit_access_ask(Emitter *e, Access *access);
/* So many bytes further on. */
Value emit_further(Emitter *e, Value address, int64_t bytes);
LLVMValueRef emit_lane_at(Emitter *e, const Access *access, int lane);
/* The fast way. */
LLVMValueRef emit_load_all(Emitter *e, const Access *access);
void emit_store_all(Emitter *e, const Access *access, LLVMValueRef value);
/* The other one; `stored` NULL: it is loaded. */
LLVMValueRef emit_access_masked(Emitter *e, const Access *access, LLVMValueRef stored);

/* ---- records.c */
/* Several gathers or scatters that are one: false, it is by itself. */
bool emit_record(Emitter *e, const Inst *inst);

#endif
