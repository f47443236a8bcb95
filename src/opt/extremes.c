/* What a number is where it is the greater one, and else the greater one of both, is that in any case.
 *
 *     select(low <= x, x, max(x, low))        max(x, low)
 *
 * The derivative of `clamp` says so, in order that derivatives of it in turn go to x on a boundary: they have
 * been made when this is asked. Which of two zeros is the greater one nobody says. */
#include "opt.h"

static const Inst *made_by_either(const Val *v, Op a, Op b) {
    return v->kind == VAL_inst && (v->inst->op == a || v->inst->op == b) ? v->inst : NULL;
}

/* Is the number compared with the other one, and greater? */
static bool says_greater(const Inst *test, const Val *number, const Val *other) {
    return inst_operand(test, 1) == number && val_is_same(inst_operand(test, 0), other);
}

static bool says_less(const Inst *test, const Val *number, const Val *other) {
    return inst_operand(test, 0) == number && val_is_same(inst_operand(test, 1), other);
}

static void visit(void *user, Inst *select) {
    bool *changed = user;
    if (select->op != OP_select) return;
    const Val *number = inst_operand(select, 1);
    const Val *extreme = inst_operand(select, 2);
    const Inst *test = made_by_either(inst_operand(select, 0), OP_lt, OP_le),
               *made = made_by_either(extreme, OP_min, OP_max);
    if (!test || !made || val_is_const(number) || !type_is_float(type_element(extreme->type))) return;
    for (int i = 0; i < 2; i++) {
        const Val *other = inst_operand(made, 1 - i);
        bool is_extreme =
            made->op == OP_max ? says_greater(test, number, other) : says_less(test, number, other);
        if (inst_operand(made, i) != number || !is_extreme) continue;
        inst_replace(select, made);
        *changed = true;
        return;
    }
}

bool opt_extremes(Func *func) {
    bool changed = false;
    if (!func->body || func->module->rounds_as_written || (func->flags & FUNC_PRECISE)) return false;
    region_walk(func->body, visit, &changed);
    if (changed) ir_resolve_func(func);
    return changed;
}
