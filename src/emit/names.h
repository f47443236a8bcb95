/* names: what functions, types and variables are called outside, the same for every target, so that a header
 * fits an object. */
#ifndef SLOPE_EMIT_NAMES_H
#define SLOPE_EMIT_NAMES_H

#include "base/base.h"

/* ---- names.c */
/* A C identifier for the name that something has in the IR: bwd_position for bwd_diff(position), sq_double
 * for sq<double>. */
const char *emit_c_name(Arena *arena, const char *name);
/* Do C, its library, C++ or the printed code give the name a meaning that something there must not hide? */
typedef enum NameScope {
    SCOPE_field,
    SCOPE_inside,  /* of a function: its parameters and variables */
    SCOPE_outside, /* functions, types, global variables */
} NameScope;
bool emit_is_claimed(Arena *arena, const char *name, NameScope scope);
bool emit_is_vector(const char *name); /* float3 and the like */

#endif
