/* Objects in memory, for tools that compare what programs do with them; and a program in the interpreter. */
#ifndef IROBJECT_H
#define IROBJECT_H

#include "emit/interp/interp.h"
#include "irgen.h"
#include "jitload.h"

char *object_new(Arena *arena, const Type *type); /* all zero */
void object_fill(Random *random, const Type *type, char *at, bool with_nan);
/* Equal means: the same bits, or both NaN. Addresses differ from run to run, and count as equal. */
bool object_equal(const Type *type, const char *a, const char *b);

/* The memory of all arguments and results of a call, in their order. */
enum { OBJECT_MOST = 16, OBJECT_BUFFER = 8 };
typedef struct ObjectRun {
    void *args[2 * OBJECT_MOST];
    RtBuffer buffer; /* that every parameter of such a type is */
} ObjectRun;

void run_fill(ObjectRun *run, Arena *arena, const Func *func, uint64_t seed, bool with_nan);
/* NULL, or what is not the same: results, memory, or the buffer. */
const char *run_difference(const Func *func, const ObjectRun *a, const ObjectRun *b);

/* Opens a program in the interpreter that counts there; false after a message on stderr. Closed by
 * jit_close. */
bool interp_open(JitProgram *program, Module *module, const RuntimeConfig *config, InterpCounts *counts);

#endif
