/* Local identities whose result needs new instructions; see fold.c for those that do not, and for what counts
 * as exact. Every rule leads to fewer instructions, or to the same number of a cheaper or more canonical
 * kind, so that applying rules again comes to an end. */
#include "ir.h"

#include <math.h>

typedef struct Rewrite {
    Builder *b;
    Op op;
    const Type *type;
    Val *const *args;
    int nargs;
} Rewrite;

static Module *module_of(const Rewrite *r) { return r->b->func->module; }
static bool is_inst(const Val *v, Op op) { return v->kind == VAL_inst && v->inst->op == op; }
static Val *operand(const Val *v, int index) { return ir_resolve(v->inst->args[index]); }
static bool is_true(const Val *v) { return v->type->kind == TYPE_bool && val_is_one(v); }
static bool is_false(const Val *v) { return v->type->kind == TYPE_bool && val_is_zero(v); }

/* ---- vectors of constants, or of one value, are computed by lanes */

static Val *constant_lane(const Rewrite *r, Val *vector, int lane) {
    const Type *element = type_element(vector->type);
    if (val_is_zero(vector)) return ir_const_zero(module_of(r), element);
    if (!is_inst(vector, OP_vec) && !is_inst(vector, OP_splat)) return NULL;
    Val *source = ir_trace_lane(vector, &lane);
    return val_is_const(source) ? source : NULL;
}

static const Type *lane_type(const Rewrite *r) { return type_element(r->type); }

static Val *rewrite_constant_lanes(const Rewrite *r) {
    Val *lanes[4];
    for (int i = 0; i < type_count(r->type); i++) {
        Val *args[3];
        for (int j = 0; j < r->nargs; j++)
            if (!(args[j] = constant_lane(r, r->args[j], i))) return NULL;
        lanes[i] = ir_fold(module_of(r), r->op, lane_type(r), args, r->nargs);
        if (!lanes[i]) return NULL;
    }
    return build_vec(r->b, r->type, lanes);
}

static Val *rewrite_splats(const Rewrite *r) {
    Val *args[3];
    bool any_splat = false;
    for (int i = 0; i < r->nargs; i++) {
        Val *arg = r->args[i];
        any_splat |= is_inst(arg, OP_splat);
        if (is_inst(arg, OP_splat)) args[i] = operand(arg, 0);
        else if (val_is_zero(arg)) args[i] = ir_const_zero(module_of(r), type_element(arg->type));
        else return NULL;
    }
    if (!any_splat) return NULL;
    return build_splat(r->b, r->type, build_op(r->b, r->op, lane_type(r), args, r->nargs));
}

static Val *rewrite_elementwise(const Rewrite *r) {
    if (r->type->kind != TYPE_vector || r->nargs > 3 || type_count(r->type) > 4) return NULL;
    Val *result = rewrite_constant_lanes(r);
    return result ? result : rewrite_splats(r);
}

/* ---- vectors from lanes */

static Val *rewrite_vec_splat(const Rewrite *r) {
    for (int i = 1; i < r->nargs; i++)
        if (r->args[i] != r->args[0]) {
            bool constants = val_is_const(r->args[0]) && val_is_const(r->args[i]);
            if (!constants || r->args[0]->integer != r->args[i]->integer) return NULL;
        }
    return build_splat(r->b, r->type, r->args[0]);
}

static Val *rewrite_vec(const Rewrite *r) {
    if (r->nargs > 1) {
        Val *splat = rewrite_vec_splat(r);
        if (splat) return splat;
    }
    uint8_t lanes[4];
    Val *origin = NULL;
    if (r->nargs > 4) return NULL;
    for (int i = 0; i < r->nargs; i++) {
        int64_t index;
        if (!is_inst(r->args[i], OP_extract)) return NULL;
        Val *vector = operand(r->args[i], 0);
        if ((origin && vector != origin) || type_count(vector->type) > 4) return NULL;
        if (!val_is_int(operand(r->args[i], 1), &index)) return NULL;
        if (index < 0 || index >= type_count(vector->type)) return NULL;
        lanes[i] = (uint8_t)index;
        origin = vector;
    }
    return build_shuffle(r->b, origin, lanes, r->nargs);
}

static Val *rewrite_extract(const Rewrite *r) {
    int count = type_count(r->args[0]->type), lane;
    int64_t index;
    if (!val_is_int(r->args[1], &index)) return NULL;
    lane = index < 0 || index >= count ? count - 1 : (int)index;
    Val *source = ir_trace_lane(r->args[0], &lane);
    return source == r->args[0] ? NULL : build_extract_lane(r->b, source, lane);
}

static Val *rewrite_insert(const Rewrite *r) {
    int count = type_count(r->type);
    int64_t index;
    Val *lanes[4], *vector = r->args[0];
    if (count > 4 || !val_is_int(r->args[1], &index) || index < 0 || index >= count) return NULL;
    if (!val_is_zero(vector) && !is_inst(vector, OP_vec) && !is_inst(vector, OP_splat)) return NULL;
    for (int i = 0; i < count; i++) {
        int lane = i;
        lanes[i] =
            val_is_zero(vector) ? ir_const_zero(module_of(r), lane_type(r)) : ir_trace_lane(vector, &lane);
    }
    lanes[index] = r->args[2];
    return build_vec(r->b, r->type, lanes);
}

/* ---- arithmetic */

/* (x + 1) + 2 is x + 3, for integers. */
static Val *rewrite_constant_chain(const Rewrite *r) {
    Val *x = r->args[0], *y = r->args[1];
    int64_t inner, outer;
    if (r->op == OP_div || !type_is_integer(r->type) || !val_is_int(y, &outer)) return NULL;
    bool sums = r->op == OP_add || r->op == OP_sub;
    if (!is_inst(x, OP_add) && !is_inst(x, OP_sub) && !is_inst(x, OP_mul)) return NULL;
    if (is_inst(x, OP_mul) == sums || !val_is_int(operand(x, 1), &inner)) return NULL;
    uint64_t a = (uint64_t)inner, c = (uint64_t)outer;
    if (is_inst(x, OP_sub)) a = 0 - a;
    uint64_t value = !sums ? a * c : r->op == OP_add ? a + c : a - c;
    Val *constant = ir_const_int(module_of(r), r->type, (int64_t)value);
    return build_binary(r->b, sums ? OP_add : OP_mul, operand(x, 0), constant);
}

static Val *rewrite_signs(const Rewrite *r) {
    Val *x = r->args[0], *y = r->args[1];
    if (r->op == OP_add && is_inst(y, OP_neg)) return build_binary(r->b, OP_sub, x, operand(y, 0));
    if (r->op == OP_add && is_inst(x, OP_neg)) return build_binary(r->b, OP_sub, y, operand(x, 0));
    if (r->op == OP_sub && is_inst(y, OP_neg)) return build_binary(r->b, OP_add, x, operand(y, 0));
    if (r->op != OP_mul && r->op != OP_div) return NULL;
    bool is_float = type_is_float(type_element(r->type));
    if (is_float && is_inst(x, OP_neg) && is_inst(y, OP_neg))
        return build_binary(r->b, r->op, operand(x, 0), operand(y, 0));
    bool minus_one = val_is_const(y) && type_is_float(y->type) && y->real == -1;
    return minus_one ? build_unary(r->b, OP_neg, x) : NULL;
}

static Val *rewrite_arithmetic(const Rewrite *r) {
    Val *result = rewrite_constant_chain(r);
    return result ? result : rewrite_signs(r);
}

/* ---- logic */

/* The comparison that is true exactly where this one is false. Floats may be unordered: only eq and ne have
 * one. */
static Val *rewrite_not(const Rewrite *r) {
    Val *x = r->args[0];
    if (x->kind != VAL_inst || !op_has(x->inst->op, OP_COMPARES) || x->inst->nargs != 2) return NULL;
    Val *a = operand(x, 0), *b = operand(x, 1);
    bool is_float = type_is_float(type_element(a->type));
    if (x->inst->op == OP_eq) return build_binary(r->b, OP_ne, a, b);
    if (x->inst->op == OP_ne) return build_binary(r->b, OP_eq, a, b);
    return is_float ? NULL : build_binary(r->b, x->inst->op == OP_lt ? OP_le : OP_lt, b, a);
}

/* What is compared with a constant is one of two: where to go on after a statement that can be left, say. */
static Val *rewrite_compared_choice(const Rewrite *r) {
    int64_t one, other, with;
    if (!is_inst(r->args[0], OP_select) || !val_is_int(r->args[1], &with)) return NULL;
    Val *choice = r->args[0], *condition = operand(choice, 0);
    if (!val_is_int(operand(choice, 1), &one) || !val_is_int(operand(choice, 2), &other)) return NULL;
    if (condition->type->kind != TYPE_bool || one == other || (one != with && other != with)) return NULL;
    return (one == with) == (r->op == OP_eq) ? condition : build_not(r->b, condition);
}

/* The sign of a difference is known before it is: a difference is zero where both are equal, and nowhere
 * else. What is a product may become one with the difference, which is then rounded once. */
static Val *rewrite_order(const Rewrite *r) {
    int at = val_is_zero(r->args[0]) ? 1 : 0;
    Val *difference = r->args[at];
    if (!val_is_zero(r->args[1 - at]) || !is_inst(difference, OP_sub)) return NULL;
    Val *a = operand(difference, 0), *b = operand(difference, 1);
    if (!type_is_float(type_element(a->type)) || is_inst(a, OP_mul) || is_inst(b, OP_mul)) return NULL;
    return at ? build_binary(r->b, OP_lt, b, a) : build_binary(r->b, OP_lt, a, b);
}

static Val *rewrite_comparison(const Rewrite *r) {
    Val *x = r->args[0], *y = r->args[1], *chosen = rewrite_compared_choice(r);
    if (chosen) return chosen;
    if (r->op == OP_eq && is_false(y)) return build_not(r->b, x);
    return r->op == OP_ne && is_true(y) ? build_not(r->b, x) : NULL;
}

static Val *rewrite_select(const Rewrite *r) {
    Val *condition = r->args[0], *x = r->args[1], *y = r->args[2];
    if (is_inst(condition, OP_not)) return build_select(r->b, operand(condition, 0), y, x);
    bool decides_x =
        is_inst(x, OP_select) && operand(x, 0) == condition; /* what the one inside chooses, too */
    bool decides_y = is_inst(y, OP_select) && operand(y, 0) == condition;
    if (decides_x || decides_y)
        return build_select(r->b, condition, decides_x ? operand(x, 1) : x, decides_y ? operand(y, 2) : y);
    if (condition->type->kind != TYPE_bool || r->type->kind != TYPE_bool) return NULL;
    if (is_false(x) && is_true(y)) return build_not(r->b, condition);
    if (is_true(x) || condition == x) return build_binary(r->b, OP_or, condition, y);
    if (is_false(y) || condition == y) return build_binary(r->b, OP_and, condition, x);
    return NULL;
}

/* ---- conversions */

/* Every value of `from` is one of `to`. */
static bool is_lossless(const Type *from, const Type *to) {
    static const int digits[] = {[TYPE_half] = 11, [TYPE_float] = 24, [TYPE_double] = 53};
    if (from->kind == TYPE_bool) return true;
    if (to->kind == TYPE_bool) return false;
    bool was_signed = type_is_signed(from);
    if (type_is_float(from)) return type_is_float(to) && type_bits(from) <= type_bits(to);
    if (type_is_float(to)) return type_bits(from) - was_signed <= digits[to->kind];
    if (was_signed != type_is_signed(to)) return !was_signed && type_bits(from) < type_bits(to);
    return type_bits(from) <= type_bits(to);
}

/* May a conversion from a over b to c go directly from a to c? Integers wrap where floats clamp, so that an
 * integer that went through a float may only come back, or stay a float. */
static bool can_skip(const Type *a, const Type *b, const Type *c) {
    bool narrowing = type_is_integer(a) && type_is_integer(b) && type_is_integer(c);
    if (narrowing && type_bits(c) <= type_bits(b)) return true;
    if (!is_lossless(a, b)) return false;
    return !(type_is_integer(a) && type_is_float(b) && type_is_integer(c)) || a == c;
}

static Val *rewrite_conversion(const Rewrite *r) {
    Val *x = r->args[0];
    if (!is_inst(x, r->op)) return NULL;
    Val *origin = operand(x, 0);
    if (r->op == OP_bitcast)
        return ir_bits_cut(x->type, r->type) ? NULL : build_bitcast(r->b, origin, r->type);
    bool skip = can_skip(type_element(origin->type), type_element(x->type), type_element(r->type));
    return skip ? build_convert(r->b, origin, r->type) : NULL;
}

/* ---- products that keep zero: with a constant that is a plain number, or a choice of such as the sign of something, they are products like any other */

static bool is_plain_number(const Val *v) {
    return val_is_const(v) && type_is_float(v->type) && isnormal(v->real);
}

static bool is_choice_of_numbers(const Val *v, int depth) {
    if (val_is_const(v)) return type_is_float(v->type) && isfinite(v->real);
    return is_inst(v, OP_select) && depth > 0 && is_choice_of_numbers(operand(v, 1), depth - 1) &&
           is_choice_of_numbers(operand(v, 2), depth - 1);
}

static bool is_plain_factor(const Val *v) {
    enum { CHOICES = 3 };
    return is_plain_number(v) || (!val_is_const(v) && is_choice_of_numbers(v, CHOICES));
}

static Val *rewrite_guarded(const Rewrite *r) {
    bool plain = is_plain_number(r->args[1]) || (r->op == OP_scale && is_plain_factor(r->args[0]));
    return plain ? build_op(r->b, r->op == OP_scale ? OP_mul : OP_div, r->type, r->args, 2) : NULL;
}

/* ---- entry */

/* A pointer that is moved on from an element of a buffer leads to another one, whose index is tested like any
 * other. */
static Val *rewrite_offset(const Rewrite *r) {
    if (!is_inst(r->args[0], OP_buffer_elem) || inst_has(r->args[0]->inst, INST_UNCHECKED)) return NULL;
    const Type *wide = type_basic(module_of(r)->types, TYPE_int64);
    Val *from = operand(r->args[0], 1), *index = r->args[1];
    if (!val_is_zero(from)) {
        Val *wide_from = build_convert(r->b, from, wide);
        Val *wide_index = build_convert(r->b, index, wide);
        index = build_binary(r->b, OP_add, wide_from, wide_index);
    }
    return build_buffer_elem(r->b, operand(r->args[0], 0), index, inst_has(r->args[0]->inst, INST_WRITES));
}

Val *build_rewrite(Builder *b, Op op, const Type *type, Val *const *args, int nargs) {
    Rewrite r = {b, op, type, args, nargs};
    Val *result = op_has(op, OP_ELEMENTWISE) ? rewrite_elementwise(&r) : NULL;
    if (result) return result;
    switch (op) {
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div: return rewrite_arithmetic(&r);
    case OP_scale:
    case OP_ratio: return rewrite_guarded(&r);
    case OP_not: return rewrite_not(&r);
    case OP_eq:
    case OP_ne: return rewrite_comparison(&r);
    case OP_lt: return rewrite_order(&r);
    case OP_select: return rewrite_select(&r);
    case OP_convert:
    case OP_bitcast: return rewrite_conversion(&r);
    case OP_vec: return rewrite_vec(&r);
    case OP_extract: return rewrite_extract(&r);
    case OP_insert: return rewrite_insert(&r);
    case OP_offset: return rewrite_offset(&r);
    default: return NULL;
    }
}
