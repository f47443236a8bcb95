/* What a target need not know, written out in operations that every target has. What an operation means
 * stands here or in ir/compute.c then, and not once more in each backend.
 *
 * Sums of objects become sums of their numbers, part by part, in loops over what arrays have; so they do for
 * every target. What else a target lacks, the caller says: that integers are divided by zero, that the least
 * integer is divided by -1, that bits are shifted by more than there are; that vectors of floats become integers, wherever they lie;
 * that halves are computed with in all ways; that nothing times anything is nothing.
 *
 * A pointer that is compared, kept or handed on is an address, whether there is an element or not: `&data[0]
 * + n` is where a loop ends. */
#include "opt.h"

#include <math.h>

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
        Val *to_part = build_elem(&loop.body, to, loop.index, true);
        Val *from_part = build_elem(&loop.body, from, loop.index, true);
        for_parts(&loop.body, to_part, from_part, on_part);
        build_next(&loop);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            Val *to_part = build_field(b, to, i);
            Val *from_part = build_field(b, from, i);
            for_parts(b, to_part, from_part, on_part);
        }
    } else {
        on_part(b, to, from);
    }
}

/* ---- sums of objects; what is no float has no differential */

static void add_part(Builder *b, Val *to, Val *from) {
    if (!type_is_float(type_element(ir_target(to->type)))) return;
    Val *sum = build_load(b, to);
    Val *term = build_load(b, from);
    build_store(b, to, build_sum(b, sum, term));
}

/* ---- integers */

/* The number in every lane of that type. */
static Val *in_lanes(Builder *b, const Type *type, Val *one) {
    return type->kind == TYPE_vector ? build_splat(b, type, one) : one;
}

static Val *number(Builder *b, const Type *type, int64_t value) {
    return in_lanes(b, type, ir_const_int(b->func->module, type_element(type), value));
}

static Val *real(Builder *b, const Type *type, double value) {
    return in_lanes(b, type, ir_const_real(b->func->module, type_element(type), value));
}

/* Of operands for which every target has it. */
static Val *unchecked(Val *v, Op op) {
    if (v->kind == VAL_inst && v->inst->op == op) v->inst->flags |= INST_UNCHECKED;
    return v;
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
    return build_select(b, by_zero, minus_one, unchecked(quotient, (Op)inst->op));
}

/* The count modulo the width, and in the type of what is shifted. */
static Val *shift(Builder *b, const Inst *inst) {
    Val *value = inst_operand(inst, 0), *amount = build_convert(b, inst_operand(inst, 1), value->type);
    amount =
        build_binary(b, OP_and, amount, number(b, value->type, type_bits(type_element(value->type)) - 1));
    return unchecked(build_binary(b, (Op)inst->op, value, amount), (Op)inst->op);
}

static void legalize_integers(Legalize *l, Inst *inst) {
    Builder b = build_before(inst);
    if (inst_has(inst, INST_UNCHECKED)) return;
    if (inst->op == OP_shl || inst->op == OP_shr) replace(l, inst, shift(&b, inst));
    else if (!is_harmless_divisor(inst_operand(inst, 1))) replace(l, inst, divide(&b, inst));
    else {
        inst->flags |= INST_UNCHECKED;
        l->changed = true;
    }
}

/* ---- conversions */

/* Out of range is the nearest number, and what is none is zero: it is converted as zero, and then replaced.
 * Bounds are powers of two, so that float and double have them. */
static Val *clamp(Builder *b, Val *x, const Type *to) {
    bool has_sign = type_is_signed(to);
    int bits = type_bits(type_element(to));
    uint64_t most = UINT64_MAX >> (64 - bits + has_sign), least = has_sign ? most + 1 : 0;
    double over = ldexp(1, bits - has_sign);
    Val *above = build_binary(b, OP_le, real(b, x->type, over), x),
        *below = build_binary(b, OP_lt, x, real(b, x->type, has_sign ? -over : 0));
    Val *is_nan = build_unary(b, OP_isnan, x);
    Val *is_beyond = build_binary(b, OP_or, above, below);
    Val *outside = build_binary(b, OP_or, is_nan, is_beyond);
    Val *inside = build_select(b, outside, real(b, x->type, 0), x);
    Val *result = unchecked(build_convert(b, inside, to), OP_convert);
    result = build_select(b, above, number(b, to, (int64_t)most), result);
    return build_select(b, below, number(b, to, (int64_t)least), result);
}

static const Type *in_shape(Builder *b, TypeKind kind, const Type *shape) {
    const Type *element = type_basic(b->func->module->types, kind);
    return shape->kind == TYPE_vector ? type_vector(b->func->module->types, element, type_count(shape))
                                      : element;
}

/* double to half with one rounding: to float by rounding to odd, which a second rounding to half cannot
 * spoil. */
static Val *round_once(Builder *b, Val *x, const Type *to) {
    const Type *word = in_shape(b, TYPE_uint, to);
    Val *near = build_convert(b, x, in_shape(b, TYPE_float, to)), *back = build_convert(b, near, x->type);
    Val *size = build_unary(b, OP_abs, x), *rounded = build_unary(b, OP_abs, back);
    Val *none = number(b, word, 0), *one = number(b, word, 1), *less = number(b, word, -1);
    Val *step = build_select(b, build_binary(b, OP_lt, size, rounded), less, none);
    step = build_select(b, build_binary(b, OP_lt, rounded, size), one, step);
    Val *bits = build_bitcast(b, near, word), *last = build_binary(b, OP_and, bits, one);
    Val *is_odd = build_binary(b, OP_ne, last, none);
    step = build_select(b, is_odd, none, step);
    Val *odd = build_bitcast(b, build_binary(b, OP_add, bits, step), near->type);
    return build_convert(b, odd, to);
}

/* By way of float, which is exact for every integer that is finite as half. (It would be folded.) */
static Val *through_float(Builder *b, Val *x, const Type *to) {
    Val *between = build_convert(b, x, in_shape(b, TYPE_float, to));
    b->no_fold = true;
    return build_convert(b, between, to);
}

static void legalize_conversion(Legalize *l, Inst *inst) {
    Builder b = build_before(inst);
    Val *x = inst_operand(inst, 0);
    const Type *to = inst->results[0]->type;
    TypeKind from_kind = type_element(x->type)->kind, to_kind = type_element(to)->kind;
    bool is_clamped = type_is_float(type_element(x->type)) && type_is_integer(type_element(to)) &&
                      !inst_has(inst, INST_UNCHECKED);
    bool is_vector = to->kind == TYPE_vector;
    if (is_clamped && is_vector && l->options.clamps) {
        if (from_kind == TYPE_half) x = build_convert(&b, x, in_shape(&b, TYPE_float, to));
        replace(l, inst, clamp(&b, x, to));
    } else if (!l->options.halves) {
        return;
    } else if (from_kind == TYPE_double && to_kind == TYPE_half) {
        replace(l, inst, round_once(&b, x, to));
    } else if ((is_clamped && from_kind == TYPE_half) ||
               (to_kind == TYPE_half && !type_is_float(type_element(x->type)))) {
        replace(l, inst, through_float(&b, x, to));
    }
}

/* ---- floats */

static Val *remainder_of_halves(Builder *b, const Inst *inst) {
    const Type *type = inst->results[0]->type, *wide = in_shape(b, TYPE_float, type);
    Val *x = build_convert(b, inst_operand(inst, 0), wide),
        *y = build_convert(b, inst_operand(inst, 1), wide);
    return build_convert(b, build_binary(b, OP_rem, x, y), type);
}

/* A product that is zero if the second factor is, a quotient that is zero if the dividend is. */
static Val *unless_zero(Builder *b, const Inst *inst) {
    Val *x = inst_operand(inst, 0), *y = inst_operand(inst, 1), *zero = real(b, x->type, 0);
    bool is_product = inst->op == OP_scale;
    Val *is_zero = build_binary(b, OP_eq, is_product ? y : x, zero);
    return build_select(b, is_zero, zero, build_binary(b, is_product ? OP_mul : OP_div, x, y));
}

static void legalize_arithmetic(Legalize *l, Inst *inst) {
    const Type *number = type_element(inst->args[0]->type);
    Builder b = build_before(inst);
    if (!type_is_float(number)) {
        if (l->options.integers) legalize_integers(l, inst);
    } else if (number->kind == TYPE_half && inst->op == OP_rem && l->options.halves) {
        replace(l, inst, remainder_of_halves(&b, inst));
    }
}

/* ---- pointers */

/* Only accesses are checked; what is out of range would have another address for them. */
static void take_address(Legalize *l, Inst *inst, int arg) {
    Val *pointer = inst_operand(inst, arg);
    if (pointer->kind != VAL_inst) return;
    const Inst *element = pointer->inst;
    if (element->op != OP_buffer_elem || inst_has(element, INST_UNCHECKED)) return;
    Builder b = build_before(inst);
    Val *buffer = inst_operand(element, 0),
        *first = build_op(&b, OP_buffer_pointer, pointer->type, &buffer, 1);
    pointer = build_offset(&b, first, inst_operand(element, 1));
    inst->args[arg] = pointer;
    l->changed = true;
}

static void take_addresses(Legalize *l, Inst *inst) {
    bool is_for_access = inst->op == OP_call ? inst->callee->flags & FUNC_PART
                                             : inst->op == OP_return && inst->func->flags & FUNC_PLACE;
    if (is_for_access) return;
    for (int i = inst->op == OP_store; i < inst->nargs; i++)
        if (inst->op != OP_call || !(inst->callee->params[i].flags & PARAM_BY_ADDRESS))
            take_address(l, inst, i);
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
    case OP_call: take_addresses(l, inst); break;
    case OP_div:
    case OP_rem:
    case OP_shl:
    case OP_shr: legalize_arithmetic(l, inst); break;
    case OP_scale:
    case OP_ratio:
        if (l->options.zeros) replace(l, inst, unless_zero(&b, inst));
        break;
    case OP_convert: legalize_conversion(l, inst); break;
    case OP_loop:
    case OP_store:
    case OP_return: take_addresses(l, inst); break;
    case OP_bitcast:
        if (inst->results[0]->type->kind != TYPE_pointer) take_addresses(l, inst);
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
