/* Elementary functions that are computed in place.
 *
 *     for (int32_t i = 0; i < 32; i++) {          slope_tanh_float: a polynomial of the rest that a power of two leaves,
 *         a[i] = slope_tanh_float(sum[i]);        without a branch, which compilers make vectors of like any arithmetic
 *     }
 *
 * A call of the C library keeps a loop from becoming vectors unless the compiler knows that there is a
 * function of vectors: gcc does on x86-64 (SLOPE_FOR_VECTORS), clang nowhere unless it is asked (-fveclib),
 * and then of few; Slope's own backend for LLVM knows them all. `tanh` computed so is faster than the
 * library's even one by one; `exp` is slower, and computed only where rounds become vectors, that is, where
 * they hand nothing on to each other but counters; `sin` and `cos` are slower still, for what a whole number
 * of turns leaves of a large number takes many steps to find, and computed only where structs are read number
 * by number for that (rows.c), if possible the short way (tried.c), in double only so. Where rounds leave a
 * rest that is no vector, both are computed on x86-64 as well (masked.c). Like all that errs more than the
 * scalar functions do, this is for -O3. */
#include "emit/clike/clike.h"

/* ---- a cosine beside a sine
 *
 *     s = sin(x); x += f(s); keep(slope_cos_late_float(x))       one call of both takes longer than the sine alone, for which the next round waits
 */

enum { MOST_TERMS = 8 }; /* that lead from what a round is given to a number */

/* Is it computed from a number that the rounds hand on? */
static bool is_handed_on(const Inst *loop, const Val *v, int terms) {
    if (v->kind == VAL_param) return v->region == loop->regions[1] && type_is_float(v->type);
    if (v->kind != VAL_inst || terms == 0 || !op_has(v->inst->op, OP_PURE)) return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (is_handed_on(loop, inst_operand(v->inst, i), terms - 1)) return true;
    return false;
}

static bool has_sine_beside(const Inst *cosine) {
    for (const Inst *at = cosine->parent->first; at; at = at->next)
        if (at->op == OP_sin && inst_operand(at, 0) == inst_operand(cosine, 0)) return true;
    return false;
}

const char *clike_cosine_apart(Printer *p, const Inst *inst, const Type *type) {
    const Inst *loop = inst->op == OP_cos ? inst_loop_around(inst) : NULL;
    if (!loop || type->kind != TYPE_float || !clike_has_vectors(p) || !has_sine_beside(inst)) return NULL;
    return is_handed_on(loop, inst_operand(inst, 0), MOST_TERMS) ? "slope_cos_late_float" : NULL;
}

/* What each round adds to in one place of memory is a sum. */
static bool is_sum(const void *loop, const Inst *inst) {
    return inst->op == OP_store && !inst_contains(loop, inst_operand(inst, 0));
}

/* Do rounds hand on nothing but counters? */
static bool are_apart(const Inst *loop) {
    return clike_carries_counters(loop) && !region_find(loop->regions[1], is_sum, loop);
}

bool clike_is_turn(const Inst *inst) { return inst->op == OP_sin || inst->op == OP_cos; }

bool clike_comes_along(const Inst *inst) {
    TypeKind kind = op_is_elementary(inst->op) ? inst->results[0]->type->kind : TYPE_void;
    bool is_known = clike_is_turn(inst) || inst->op == OP_tanh || inst->op == OP_exp;
    return is_known && (kind == TYPE_float || kind == TYPE_double);
}

/* Is it faster so, at this place? */
static bool is_worth_while(Printer *p, const Inst *inst) {
    const Inst *loop = inst_loop_around(inst);
    if (clike_is_turn(inst)) return clike_is_computed_in_rows(p, inst);
    return loop && (inst->op == OP_tanh || are_apart(loop));
}

/* Is it in a loop of which some rounds would call functions of single numbers, although there are some for
 * vectors? What takes the place of a masked loop where indices are out of range computes the same. */
static bool has_rest(const Inst *inst) {
    const Inst *loop = inst_loop_around(inst);
    bool is_long = inst->op == OP_exp || inst->op == OP_tanh;
    return is_long && loop && loop_leaves_rest(loop_most_trips(loop), inst->results[0]->type);
}

const char *clike_computed_in_place(Printer *p, const Inst *inst, const Type *type) {
    bool is_called = clike_is_turn(inst) && type->kind == TYPE_double; /* unless it is tried */
    if (is_called || !clike_comes_along(inst) || !clike_has_vectors(p)) return NULL;
    bool is_masked = p->at->masked.loop != NULL, is_worth = is_worth_while(p, inst);
    if (!is_masked && !is_worth) return NULL;
    const char *how = is_masked || has_rest(inst) ? "_computed" : "";
    if (!is_worth && inst->op == OP_exp) how = "_masked"; /* and called where no elements are left out */
    return clike_format(p, "slope_%s%s_%s", op_info[inst->op].name, how, clike_word(p, type));
}
