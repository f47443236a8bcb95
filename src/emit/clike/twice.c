/* Twice a number, beside a product.
 *
 *     %da4.2 = mul %da4, 2.0
 *     %1 = mul %dt, %dv4
 *     %da3 = add %da4.2, %1
 *
 * Where multiplication and addition are one instruction, one of the two products is computed before it, the
 * other in it. gcc takes the first for the one in there, be it written as a sum or as a product: then it adds
 * what is there for long to what comes last, and takes two instructions for that where one would do. It is
 * told to keep it apart: a number that is added to itself takes no longer than it would in there. */
#include "emit/clike/clike.h"

static bool is_two(const Val *v) { return v->kind == VAL_const && type_is_float(v->type) && v->real == 2; }

/* Which operand it is twice of; -1: of none. */
static int doubled(const Inst *inst) {
    const Val *a = inst_operand(inst, 0), *b = inst_operand(inst, 1);
    if (inst->op == OP_mul) return is_two(b) ? 0 : is_two(a) ? 1 : -1;
    return inst->op == OP_add && a == b ? 0 : -1;
}

static bool is_other_product(const Val *v) {
    return v->kind == VAL_inst && v->inst->op == OP_mul && doubled(v->inst) < 0;
}

static bool is_sum_with_product(const Inst *sum) {
    if (sum->op != OP_add && sum->op != OP_sub) return false;
    return is_other_product(inst_operand(sum, 0)) || is_other_product(inst_operand(sum, 1));
}

int clike_doubled_beside_product(const Printer *p, const Inst *inst) {
    const FuncState *at = p->at;
    bool fuses = p->dialect->steers_loops && p->options->level > 0 && !p->is_strict;
    const Val *v = inst->results[0];
    bool is_number = v->type->kind == TYPE_float || v->type->kind == TYPE_double;
    int operand = fuses && is_number ? doubled(inst) : -1;
    for (int i = at->first_use[v->id]; operand >= 0 && i < at->first_use[v->id + 1]; i++)
        if (is_sum_with_product(at->all_uses[i])) return operand;
    return -1;
}
