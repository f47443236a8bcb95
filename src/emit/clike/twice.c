/* Twice a number, beside a product.
 *
 *     %da4.2 = mul %da4, 2.0
 *     %1 = mul %dt, %dv4
 *     %da3 = add %da4.2, %1
 *
 * Where multiplication and addition are one instruction, one of the two products is computed before it, the other in it. gcc takes the first for the one in
 * there, be it written as a sum or as a product: then it adds what is there for long to what comes last, and takes two instructions for
 * that where one would do. It is told to keep it apart: a number that is added to itself takes no longer than it would in there. */
#include "emit/clike/clike.h"

static bool is_two(const Val *v) { return v->kind == VAL_const && type_is_float(v->type) && v->real == 2; }

static bool is_twice(const Inst *inst) {
    const Val *a = inst_operand(inst, 0), *b = inst_operand(inst, 1);
    if (inst->op == OP_mul) return is_two(a) || is_two(b);
    return inst->op == OP_add && a == b;
}

static bool is_other_product(const Val *v) {
    return v->kind == VAL_inst && v->inst->op == OP_mul && !is_twice(v->inst);
}

static bool is_sum_with_product(const Inst *sum) {
    if (sum->op != OP_add && sum->op != OP_sub) return false;
    return is_other_product(inst_operand(sum, 0)) || is_other_product(inst_operand(sum, 1));
}

bool clike_is_twice_beside_product(const Printer *p, const Inst *inst) {
    const FuncState *at = p->at;
    bool fuses = p->dialect->steers_loops && p->options->level > 0 && !p->is_strict;
    const Val *v = inst->results[0];
    bool is_number = v->type->kind == TYPE_float || v->type->kind == TYPE_double;
    if (!fuses || !is_number || !is_twice(inst)) return false;
    for (int i = at->first_use[v->id]; i < at->first_use[v->id + 1]; i++)
        if (is_sum_with_product(at->all_uses[i])) return true;
    return false;
}
