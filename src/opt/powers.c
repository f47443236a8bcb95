/* A power with a small whole number as exponent becomes products.
 *
 *     pow(x, 5)        x2 = x * x; x4 = x2 * x2; x4 * x
 *
 * So do the powers that its derivative is made of, which share these products (cse.c). The C library takes ten
 * times as long, and no vectors are made of loops that call it. Each product may be rounded: who wants one
 * rounding says so (--fp strict, `precise`). Nothing becomes infinite, or zero, on the way that would not be so
 * in the end; a negative exponent is left as it is, since there it could. */
#include "opt.h"

enum { GREATEST = 8 }; /* x to the n errs by less than n units in the last place */

typedef struct Powers {
    Arena *scratch;
    InstVec found;
} Powers;

/* 0: it is none of these. */
static int whole_exponent(const Inst *power) {
    const Val *v = inst_operand(power, 1);
    if (v->kind == VAL_inst && v->inst->op == OP_splat) v = inst_operand(v->inst, 0);
    bool is_small = val_is_const(v) && type_is_scalar(v->type) && v->real >= 2 && v->real <= GREATEST;
    return is_small && v->real == (int)v->real ? (int)v->real : 0;
}

/* A half is computed in float, and rounded once. */
static void note_power(void *user, Inst *inst) {
    Powers *powers = user;
    if (inst->op != OP_pow || type_element(inst->results[0]->type)->kind == TYPE_half) return;
    if (whole_exponent(inst)) vec_push(powers->scratch, &powers->found, inst);
}

static void multiply(Inst *power) {
    Builder b = build_before(power);
    Val *result = power->results[0], *square = inst_operand(power, 0), *product = NULL;
    b.loc = power->loc;
    for (int n = whole_exponent(power); n > 0; n /= 2) {
        if (n % 2) product = product ? build_binary(&b, OP_mul, square, product) : square;
        if (n > 1) square = build_binary(&b, OP_mul, square, square);
    }
    if (!product->name) product->name = result->name;
    result->forward = product;
    inst_remove(power);
}

bool opt_powers(Func *func) {
    if (!func->body || func->module->rounds_as_written || (func->flags & FUNC_PRECISE)) return false;
    Powers powers = {.scratch = arena_scratch(func->module->arena)};
    region_walk(func->body, note_power, &powers);
    for (int i = 0; i < powers.found.count; i++) multiply(powers.found.at[i]);
    bool changed = powers.found.count > 0;
    if (changed) ir_resolve_func(func);
    arena_free(powers.scratch);
    return changed;
}
