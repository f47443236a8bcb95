/* Elementary functions that are computed in place.
 *
 *     for (int32_t i = 0; i < 32; i++) {          slope_tanh_float: a polynomial of the rest that a power of two leaves,
 *         a[i] = slope_tanh_float(sum[i]);        without a branch, which compilers make vectors of like any arithmetic
 *     }
 *
 * A call of the C library keeps a loop from becoming vectors unless the compiler knows that there is a function of vectors: gcc does on x86-64 (SLOPE_FOR_VECTORS), clang nowhere unless it is
 * asked (-fveclib), and then of few; Slope's own backend for LLVM knows them all. `tanh` computed so is faster than the library's even one by one; `exp` is slower, and computed only where rounds become
 * vectors, that is, where they hand nothing on to each other but counters. Like all that errs more than the scalar functions do, this is for -O3. */
#include "emit/clike/clike.h"

static const Inst *loop_around(const Inst *inst) {
    do inst = inst->parent->owner;
    while (inst && inst->op != OP_loop);
    return inst;
}

const char *clike_computed_in_place(Printer *p, const Inst *inst, const Type *type) {
    bool is_known = inst->op == OP_tanh || inst->op == OP_exp, is_wide = type->kind == TYPE_double;
    if (!is_known || (!is_wide && type->kind != TYPE_float) || !clike_has_vectors(p)) return NULL;
    const Inst *loop = loop_around(inst);
    if (!loop || (inst->op == OP_exp && !clike_carries_counters(loop))) return NULL;
    return clike_format(p, "slope_%s_%s", op_info[inst->op].name, clike_word(p, type));
}
