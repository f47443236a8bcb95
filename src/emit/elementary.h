/* Elementary functions that the C library of GNU/Linux has for vectors, too, on x86-64 (libmvec). */
#ifndef SLOPE_EMIT_ELEMENTARY_H
#define SLOPE_EMIT_ELEMENTARY_H

#include "ir/ir.h"

#include <stdio.h>
#include <string.h>

/* The minor version of glibc 2 that they came with; 0: there are none. */
static inline int emit_vectors_since(const char *library) {
    static const char early[] = " sin cos exp log pow ",
                      later[] = " tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp2 log2 log10"
                                " erf erfc cbrt expm1 log1p hypot ";
    char word[16];
    snprintf(word, sizeof word, " %s ", library);
    return strstr(early, word) ? 22 : strstr(later, word) ? 35 : 0;
}

/* Is it a function that there is for vectors? */
static inline bool emit_is_for_vectors(const Inst *inst) {
    return op_is_elementary(inst->op) && emit_vectors_since(op_info[inst->op].name) > 0;
}

#endif
