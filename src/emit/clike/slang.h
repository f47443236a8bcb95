/* slang: the parts of the dialect that prints Slang. See slang.c. */
#ifndef SLOPE_CLIKE_SLANG_H
#define SLOPE_CLIKE_SLANG_H

#include "emit/clike/clike.h"

/* ---- slang_value.c: types, constants, expressions */
const char *slang_declare(Printer *p, const Type *type, const char *name);
const Type *slang_held(const Param *param); /* its type; of a constant buffer, what that holds */
const char *slang_declare_param(Printer *p, const Param *param, const char *name);
void slang_define_record(Printer *p, Text *text, const Type *type, const char *name);
const char *slang_zero(Printer *p, const Type *type);
const char *slang_constant(Printer *p, const Val *v);
const char *slang_not_a_number(Printer *p, const Type *type);
Value slang_compute(Printer *p, const Inst *inst);

/* ---- slang_place.c: memory */
bool slang_address(Printer *p, const Inst *inst, Value *result);
Value slang_load(Printer *p, const Inst *inst);
bool slang_is_block(const Inst *inst); /* a constant buffer, one of an array of them */
void slang_memory(Printer *p, const Inst *inst);
void slang_var(Printer *p, const Inst *inst);
void slang_call(Printer *p, const Inst *inst);
void slang_atomic(Printer *p, const Inst *inst);

/* ---- slang_tape.c: what a reverse pass keeps */
void slang_tape(Printer *p, const Inst *inst);
void slang_tape_type(Printer *p, Text *out);
void slang_check_tapes(Printer *p); /* is there a bound for each? */

/* ---- slang.c */
const char *slang_thread_id(Printer *p, int index);

#endif
