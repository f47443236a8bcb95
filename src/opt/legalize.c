/* What a target need not know, written out in operations that every target has. What an operation means stands here or in ir/compute.c
 * then, and not once more in each backend.
 *
 * Sums of objects become sums of their numbers, part by part, in loops over what arrays have; so they do for every target. What else a
 * target lacks, the caller says: that integers are divided by zero, that the least integer is divided by -1, that bits are
 * shifted by more than there are; that an object is copied from memory in which it is laid out by other rules. */
#include "opt.h"

typedef struct Legalize {
    Func *func;
    LegalOptions options;
    bool changed;
} Legalize;

static void replace(Legalize *l, Inst *inst, Val *value) {
    if (value) inst->results[0]->forward = value;
    inst_remove(inst);
    l->changed = true;
}

/* ---- objects */

typedef void (*OnPart)(Builder *b, Val *to, Val *from);

/* Of whatever is a value, in the order of the layout. */
static void for_parts(Builder *b, Val *to, Val *from, OnPart on_part) {
    const Type *type = ir_target(to->type);
    if (type->kind == TYPE_array) {
        if (type_length(type) <= 0) return;
        CountLoop loop = build_count(b, 0, type_length(type));
        for_parts(&loop.body, build_elem(&loop.body, to, loop.index, true),
                  build_elem(&loop.body, from, loop.index, true), on_part);
        build_next(&loop);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            for_parts(b, build_field(b, to, i), build_field(b, from, i), on_part);
    } else {
        on_part(b, to, from);
    }
}

/* ---- sums of objects; what is no float has no differential */

static void add_part(Builder *b, Val *to, Val *from) {
    if (!type_is_float(type_element(ir_target(to->type)))) return;
    build_store(b, to, build_sum(b, build_load(b, to), build_load(b, from)));
}

/* ---- layouts: those of uniforms may have gaps that those of variables have not */

static void copy_part(Builder *b, Val *to, Val *from) { build_store(b, to, build_load(b, from)); }

static bool has_own_layout(Val *address) {
    const Val *root = ir_root(address);
    if (root->kind != VAL_inst) return false;
    const Inst *inst = root->inst;
    if (inst->op == OP_global)
        return inst->global->kind == GLOBAL_uniform && inst->global->layout != LAYOUT_scalar;
    if (inst->op != OP_buffer_elem) return false;
    const Val *buffer = inst_operand(inst, 0); /* its elements are as whatever it is in */
    return buffer->kind == VAL_inst && buffer->inst->op == OP_load &&
           has_own_layout(inst_operand(buffer->inst, 0));
}

static void copy_layout(Legalize *l, Inst *inst) {
    Val *to = inst_operand(inst, 0), *from = inst_operand(inst, 1);
    if (has_own_layout(to) == has_own_layout(from)) return;
    Builder b = build_before(inst);
    for_parts(&b, to, from, copy_part);
    replace(l, inst, NULL);
}

/* What is called expects objects as variables have them. */
static void pass_layouts(Legalize *l, Inst *call) {
    Builder b = build_before(call);
    for (int i = 0; i < call->nargs; i++) {
        const Param *param = &call->callee->params[i];
        if (!(param->flags & PARAM_BY_ADDRESS) || !has_own_layout(inst_operand(call, i))) continue;
        Val *copy = build_var(&b, param->type, NULL, true);
        for_parts(&b, copy, inst_operand(call, i), copy_part);
        call->args[i] = copy;
        l->changed = true;
    }
}

/* ---- integers */

/* The number in every lane of that type. */
static Val *number(Builder *b, const Type *type, int64_t value) {
    Val *one = ir_const_int(b->func->module, type_element(type), value);
    return type->kind == TYPE_vector ? build_splat(b, type, one) : one;
}

static bool is_harmless_divisor(const Val *v) {
    int64_t value;
    return val_is_int(v, &value) && value != 0 && value != -1;
}

/* x / 0 and x % 0 have all bits set; the least integer divided by -1 wraps: both by dividing by 1 instead. */
static Val *divide(Builder *b, const Inst *inst) {
    Val *x = inst_operand(inst, 0), *y = inst_operand(inst, 1);
    const Type *type = x->type;
    Val *minus_one = number(b, type, -1), *by_zero = build_binary(b, OP_eq, y, number(b, type, 0));
    Val *unsafe = by_zero;
    if (type_is_signed(type)) {
        int64_t least = (int64_t)((uint64_t)1 << (type_bits(type_element(type)) - 1));
        Val *at_least = build_binary(b, OP_eq, x, number(b, type, least)),
            *by_minus_one = build_binary(b, OP_eq, y, minus_one);
        unsafe = build_binary(b, OP_or, by_zero, build_binary(b, OP_and, at_least, by_minus_one));
    }
    Val *quotient = build_binary(b, (Op)inst->op, x, build_select(b, unsafe, number(b, type, 1), y));
    if (quotient->kind == VAL_inst && quotient->inst->op == inst->op) quotient->inst->flags |= INST_UNCHECKED;
    return build_select(b, by_zero, minus_one, quotient);
}

/* The count modulo the width, and in the type of what is shifted. */
static Val *shift(Builder *b, const Inst *inst) {
    Val *value = inst_operand(inst, 0), *amount = build_convert(b, inst_operand(inst, 1), value->type);
    amount =
        build_binary(b, OP_and, amount, number(b, value->type, type_bits(type_element(value->type)) - 1));
    Val *shifted = build_binary(b, (Op)inst->op, value, amount);
    if (shifted->kind == VAL_inst && shifted->inst->op == inst->op) shifted->inst->flags |= INST_UNCHECKED;
    return shifted;
}

static void legalize_integers(Legalize *l, Inst *inst) {
    Builder b = build_before(inst);
    if (inst_has(inst, INST_UNCHECKED) || type_is_float(type_element(inst->args[0]->type))) return;
    if (inst->op == OP_shl || inst->op == OP_shr) replace(l, inst, shift(&b, inst));
    else if (!is_harmless_divisor(inst_operand(inst, 1))) replace(l, inst, divide(&b, inst));
    else {
        inst->flags |= INST_UNCHECKED;
        l->changed = true;
    }
}

/* ---- the entry */

static void visit(void *user, Inst *inst) {
    Legalize *l = user;
    Builder b = build_before(inst);
    switch ((Op)inst->op) {
    case OP_acc:
        for_parts(&b, inst_operand(inst, 0), inst_operand(inst, 1), add_part);
        replace(l, inst, NULL);
        break;
    case OP_copy:
        if (l->options.layouts) copy_layout(l, inst);
        break;
    case OP_call:
        if (l->options.layouts) pass_layouts(l, inst);
        break;
    case OP_div:
    case OP_rem:
    case OP_shl:
    case OP_shr:
        if (l->options.integers) legalize_integers(l, inst);
        break;
    default: break;
    }
}

bool opt_legalize(Func *func, LegalOptions options) {
    Legalize l = {.func = func, .options = options};
    if (!func->body) return false;
    region_walk(func->body, visit, &l);
    if (l.changed) ir_resolve_func(func);
    return l.changed;
}
