/* Arithmetic, bits, comparisons and conversions. What operations mean is told by ir/compute.c; those that
 * programs do most have steps of their own. */
#include "emit/interp/code.h"
#include <math.h>

/* ---- any operation */

static double real_of(Slot slot, const Type *type) {
    switch (type->kind) {
    case TYPE_half: return (double)half_to_float((uint16_t)slot.bits);
    case TYPE_float: return (double)slot.single;
    default: return slot.real;
    }
}

static Slot from_real(double value, const Type *type) {
    Slot slot = {0};
    switch (type->kind) {
    case TYPE_half: slot.bits = half_from_double(value); break;
    case TYPE_float: slot.single = (float)value; break;
    default: slot.real = value;
    }
    return slot;
}

static Slot from_integer(int64_t value) { return (Slot){.integer = value}; }

Slot interp_compute(Op op, const Type *type, const Type *to, Slot a, Slot b, Slot c) {
    int64_t integer = 0;
    if (!type_is_float(type)) {
        compute_int(op, type, a.integer, b.integer, &integer);
        return from_integer(number_wrap(integer, to));
    }
    double x[] = {real_of(a, type), real_of(b, type), real_of(c, type)}, real = 0;
    compute_float(op, type, x, &real);
    return type_is_float(to) ? from_real(real, to) : from_integer(real != 0);
}

static const Step *compute(Slot *r, const Step *s) {
    for (int i = 0; i < s->lanes; i++)
        r[s->to + (uint32_t)i] = interp_compute((Op)s->what, s->type, s->data, r[s->a + (uint32_t)i],
                                                r[s->b + (uint32_t)i], r[s->c + (uint32_t)i]);
    return s + 1;
}

/* Where runs are compared, the sign of a NaN means nothing, nor which one it is. */
static Slot plain_nan(Slot slot, const Type *type) {
    return isnan(real_of(slot, type)) ? from_real((double)NAN, type) : slot;
}

static const Step *copy_sign(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++)
        r[s->to + i] = interp_compute(OP_copysign, s->type, s->data, r[s->a + i],
                                      plain_nan(r[s->b + i], s->type), r[s->a + i]);
    return s + 1;
}

static const Step *scale_by_power(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++)
        r[s->to + i] = from_real(compute_ldexp(real_of(r[s->a + i], s->type), r[s->b + i].integer), s->type);
    return s + 1;
}

static Slot converted(Slot x, const Type *from, const Type *to) {
    bool was_float = type_is_float(from);
    if (to->kind == TYPE_bool) return from_integer(was_float ? real_of(x, from) != 0 : x.integer != 0);
    if (type_is_float(to))
        return from_real(was_float ? real_of(x, from) : compute_real(from, to, x.integer), to);
    return from_integer(number_wrap(was_float ? compute_integer(to, real_of(x, from)) : x.integer, to));
}

static const Step *convert(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) r[s->to + i] = converted(r[s->a + i], s->type, s->data);
    return s + 1;
}

/* ---- those that are frequent: name, operation on a and b, member of the slot, type that the result wraps to */

#define FREQUENT(name, expression, member, operand, result, wrapped)                                         \
    static const Step *name(Slot *r, const Step *s) {                                                        \
        for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {                                                  \
            const operand a = (operand)r[s->a + i].member, b = (operand)r[s->b + i].member;                  \
            r[s->to + i].result = (wrapped)(expression);                                                     \
        }                                                                                                    \
        return s + 1;                                                                                        \
    }
#define ARITHMETIC(name, operator)                                                                           \
    FREQUENT(name##_float, a operator b, single, float, single, float)                                       \
    FREQUENT(name##_double, a operator b, real, double, real, double)                                        \
    FREQUENT(name##_int, a operator b, bits, uint32_t, integer, int32_t)                                     \
    FREQUENT(name##_uint, a operator b, bits, uint32_t, integer, uint32_t)                                   \
    FREQUENT(name##_int64, a operator b, bits, uint64_t, integer, int64_t)
#define COMPARISON(name, operator)                                                                           \
    FREQUENT(name##_float, a operator b, single, float, integer, int64_t)                                    \
    FREQUENT(name##_double, a operator b, real, double, integer, int64_t)                                    \
    FREQUENT(name##_signed, a operator b, integer, int64_t, integer, int64_t)                                \
    FREQUENT(name##_unsigned, a operator b, bits, uint64_t, integer, int64_t)

ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)
FREQUENT(div_float, a / b, single, float, single, float)
FREQUENT(div_double, a / b, real, double, real, double)
FREQUENT(and_bits, a &b, integer, int64_t, integer, int64_t)
FREQUENT(or_bits, a | b, integer, int64_t, integer, int64_t)
FREQUENT(xor_bits, a ^ b, integer, int64_t, integer, int64_t)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(eq, ==)
COMPARISON(ne, !=)

typedef struct Frequent {
    uint16_t op;
    StepFunction *on_float, *on_double, *on_int, *on_uint, *on_int64, *on_uint64;
} Frequent;

static const Frequent frequent[] = {
    {OP_add, add_float, add_double, add_int, add_uint, add_int64, add_int64},
    {OP_sub, sub_float, sub_double, sub_int, sub_uint, sub_int64, sub_int64},
    {OP_mul, mul_float, mul_double, mul_int, mul_uint, mul_int64, mul_int64},
    {OP_div, div_float, div_double, NULL, NULL, NULL, NULL},
    {OP_and, NULL, NULL, and_bits, and_bits, and_bits, and_bits},
    {OP_or, NULL, NULL, or_bits, or_bits, or_bits, or_bits},
    {OP_xor, NULL, NULL, xor_bits, xor_bits, xor_bits, xor_bits},
    {OP_lt, lt_float, lt_double, lt_signed, lt_unsigned, lt_signed, lt_unsigned},
    {OP_le, le_float, le_double, le_signed, le_unsigned, le_signed, le_unsigned},
    {OP_eq, eq_float, eq_double, eq_signed, eq_unsigned, eq_signed, eq_unsigned},
    {OP_ne, ne_float, ne_double, ne_signed, ne_unsigned, ne_signed, ne_unsigned},
};

static StepFunction *frequent_step(unsigned op, const Type *type) {
    for (size_t i = 0; i < sizeof frequent / sizeof *frequent; i++) {
        const Frequent *row = &frequent[i];
        if (row->op != op) continue;
        switch (type->kind) {
        case TYPE_bool: return op_has(op, OP_BITS) ? row->on_int64 : NULL;
        case TYPE_float: return row->on_float;
        case TYPE_double: return row->on_double;
        case TYPE_int: return row->on_int;
        case TYPE_uint: return row->on_uint;
        case TYPE_int64: return row->on_int64;
        case TYPE_uint64: return row->on_uint64;
        default: return NULL;
        }
    }
    return NULL;
}

/* ---- choice, and what takes a vector as a whole */

static const Step *choose(Slot *r, const Step *s) {
    const Slot *from = &r[r[s->a].integer ? s->b : s->c];
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) r[s->to + i] = from[i];
    return s + 1;
}

static const Step *choose_lanes(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++)
        r[s->to + i] = r[(r[s->a + i].integer ? s->b : s->c) + i];
    return s + 1;
}

static int count_true(const Slot *r, const Step *s) {
    int count = 0;
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) count += r[s->a + i].integer != 0;
    return count;
}

static const Step *any(Slot *r, const Step *s) {
    r[s->to] = from_integer(count_true(r, s) > 0);
    return s + 1;
}

static const Step *all(Slot *r, const Step *s) {
    r[s->to] = from_integer(count_true(r, s) == s->lanes);
    return s + 1;
}

/* ---- bits as another type: through memory */

static const Step *reinterpret(Slot *r, const Step *s) {
    char bytes[sizeof(Slot) * (size_t)interp_slots(s->type)];
    interp_store_value(s->type, bytes, &r[s->a]);
    interp_load_value(s->data, bytes, &r[s->to]);
    return s + 1;
}

static const Step *reinterpret_number(Slot *r, const Step *s) {
    const Type *type = type_element(s->type);
    Slot one[interp_slots(s->type)];
    for (uint32_t i = 0; i < (uint32_t)type_count(s->type); i++) one[i] = plain_nan(r[s->a + i], type);
    char bytes[sizeof(Slot) * (size_t)interp_slots(s->type)];
    interp_store_value(s->type, bytes, one);
    interp_load_value(s->data, bytes, &r[s->to]);
    return s + 1;
}

/* ---- translation */

static void elementwise(Translator *t, const Inst *inst) {
    const Type *type = inst->args[0]->type, *to = inst->results[0]->type;
    uint32_t args[3];
    for (int i = 0; i < 3; i++) args[i] = interp_use(t, inst, i < inst->nargs ? i : 0);
    const Type *element = type->kind == TYPE_pointer || type->kind == TYPE_tape
                              ? type_basic(t->module->types, TYPE_uint64)
                              : type_element(type);
    bool signless = inst->op == OP_copysign && t->program->counts;
    StepFunction *run = inst->op == OP_convert ? convert
                        : inst->op == OP_ldexp ? scale_by_power
                        : signless             ? copy_sign
                                               : frequent_step(inst->op, element);
    Step *step = interp_step(t, run ? run : compute, interp_result(t, inst), args[0], args[1]);
    step->c = args[2];
    step->lanes = interp_slots(type);
    step->what = inst->op;
    step->type = element;
    step->data = type_element(to);
}

static void select_value(Translator *t, const Inst *inst) {
    bool by_lane = inst->args[0]->type->kind == TYPE_vector;
    uint32_t args[3];
    for (int i = 0; i < 3; i++) args[i] = interp_use(t, inst, i);
    Step *step = interp_step(t, by_lane ? choose_lanes : choose, interp_result(t, inst), args[0], args[1]);
    step->c = args[2];
    step->lanes = interp_slots(inst->results[0]->type);
}

static void bitcast(Translator *t, const Inst *inst) {
    const Type *from = inst->args[0]->type;
    bool is_number = t->program->counts && type_is_float(type_element(from));
    uint32_t value = interp_use(t, inst, 0);
    Step *step =
        interp_step(t, is_number ? reinterpret_number : reinterpret, interp_result(t, inst), value, 0);
    step->type = from;
    step->data = inst->results[0]->type;
}

bool interp_number(Translator *t, const Inst *inst) {
    uint32_t value;
    switch ((Op)inst->op) {
    case OP_select: select_value(t, inst); return true;
    case OP_bitcast:
        if (ir_is_view(inst)) return false;
        bitcast(t, inst);
        return true;
    case OP_any:
    case OP_all:
        value = interp_use(t, inst, 0);
        interp_step(t, inst->op == OP_any ? any : all, interp_result(t, inst), value, 0)->lanes =
            type_count(inst->args[0]->type);
        return true;
    default:
        if (!op_has(inst->op, OP_ELEMENTWISE)) return false;
        elementwise(t, inst);
        return true;
    }
}
