/* See irinterp.h. */
#include "irinterp.h"

#include <math.h>

/* ---- tapes: one stack per scalar type */

typedef struct TapeStack {
    Datum *at;
    int64_t count, room;
} TapeStack;

struct InterpTape {
    TapeStack stacks[TYPE_double + 1];
};

static void stack_push(Interp *in, TapeStack *stack, Datum value) {
    if (stack->count == stack->room) {
        int64_t room = stack->room ? stack->room * 2 : 16;
        Datum *grown = arena_array(in->arena, Datum, room);
        if (stack->count) memcpy(grown, stack->at, sizeof(Datum) * (size_t)stack->count);
        stack->at = grown;
        stack->room = room;
    }
    stack->at[stack->count++] = value;
    in->pushed++;
}

static void keep(Interp *in, const Type *type, int64_t count) {
    in->kept += count * type_layout(type, LAYOUT_scalar).size;
    if (in->kept > in->most) in->most = in->kept;
}

/* ---- frames and control */

typedef enum Flow { FLOW_yield, FLOW_break, FLOW_continue, FLOW_return, FLOW_stop } Flow;

typedef struct Frame {
    Interp *in;
    const Func *func;
    Datum *vals;        /* by id */
    const Inst *end;    /* the instruction that ended the region, for its operands */
    const Inst *target; /* of break and continue */
    Datum *results;
} Frame;

static Flow stop(Interp *in, InterpStatus why) {
    if (in->status == INTERP_fine) in->status = why;
    return FLOW_stop;
}

static Datum value_of(const Frame *f, const Val *v) {
    v = ir_resolve((Val *)(uintptr_t)v);
    if (v->kind != VAL_const) return f->vals[v->id];
    Datum d = {0};
    if (type_is_float(v->type)) d.real[0] = v->real;
    else if (type_is_scalar(v->type)) d.integer[0] = v->integer;
    return d;
}

/* ---- numbers */

static int64_t wrap(const Type *type, int64_t value) {
    switch (type->kind) {
    case TYPE_bool: return value & 1;
    case TYPE_int8: return (int8_t)value;
    case TYPE_uint8: return (uint8_t)value;
    case TYPE_int16: return (int16_t)value;
    case TYPE_uint16: return (uint16_t)value;
    case TYPE_int: return (int32_t)value;
    case TYPE_uint: return (uint32_t)value;
    default: return value;
    }
}

static double narrow(const Type *type, double value) {
    if (type->kind == TYPE_float) return (double)(float)value;
    if (type->kind == TYPE_half) return (double)half_to_float(half_from_double(value));
    return value;
}

static double float_op(Op op, const Type *type, double a, double b, double c) {
    bool single = type->kind == TYPE_float;
    float x = (float)a, y = (float)b, z = (float)c;
    switch (op) {
    case OP_add: return single ? (double)(x + y) : narrow(type, a + b);
    case OP_sub: return single ? (double)(x - y) : narrow(type, a - b);
    case OP_mul: return single ? (double)(x * y) : narrow(type, a * b);
    case OP_div: return single ? (double)(x / y) : narrow(type, a / b);
    case OP_scale: return b == 0 ? 0 : float_op(OP_mul, type, a, b, c);
    case OP_ratio: return a == 0 ? 0 : float_op(OP_div, type, a, b, c);
    case OP_fma: return single ? (double)fmaf(x, y, z) : narrow(type, fma(a, b, c));
    case OP_rem: return narrow(type, fmod(a, b));
    case OP_neg: return -a;
    case OP_min: return isnan(a) || b < a || (b == a && signbit(b)) ? b : a;
    case OP_max: return isnan(a) || b > a || (b == a && !signbit(b)) ? b : a;
    case OP_abs: return fabs(a);
    case OP_detach: return a;
    case OP_sqrt: return single ? (double)sqrtf(x) : narrow(type, sqrt(a));
    case OP_sin: return narrow(type, sin(a));
    case OP_cos: return narrow(type, cos(a));
    case OP_tan: return narrow(type, tan(a));
    case OP_asin: return narrow(type, asin(a));
    case OP_acos: return narrow(type, acos(a));
    case OP_atan: return narrow(type, atan(a));
    case OP_atan2: return narrow(type, atan2(a, b));
    case OP_sinh: return narrow(type, sinh(a));
    case OP_cosh: return narrow(type, cosh(a));
    case OP_tanh: return narrow(type, tanh(a));
    case OP_asinh: return narrow(type, asinh(a));
    case OP_acosh: return narrow(type, acosh(a));
    case OP_atanh: return narrow(type, atanh(a));
    case OP_exp: return narrow(type, exp(a));
    case OP_exp2: return narrow(type, exp2(a));
    case OP_log: return narrow(type, log(a));
    case OP_log2: return narrow(type, log2(a));
    case OP_log10: return narrow(type, log10(a));
    case OP_pow: return narrow(type, pow(a, b));
    case OP_expm1: return narrow(type, expm1(a));
    case OP_log1p: return narrow(type, log1p(a));
    case OP_cbrt: return narrow(type, cbrt(a));
    case OP_hypot: return narrow(type, hypot(a, b));
    case OP_erf: return narrow(type, erf(a));
    case OP_erfc: return narrow(type, erfc(a));
    case OP_lgamma: return narrow(type, lgamma(a));
    case OP_floor: return floor(a);
    case OP_ceil: return ceil(a);
    case OP_round: return rint(a);
    case OP_trunc: return trunc(a);
    case OP_copysign: return copysign(a, isnan(b) ? 1 : b); /* the sign of a NaN means nothing */
    default: return (double)NAN;
    }
}

static bool compare(Op op, const Type *type, Datum x, Datum y, int i) {
    if (type_is_float(type)) {
        double a = x.real[i], b = y.real[i];
        switch (op) {
        case OP_eq: return a == b;
        case OP_ne: return a != b;
        case OP_lt: return a < b;
        case OP_le: return a <= b;
        default: return isnan(a);
        }
    }
    int64_t a = x.integer[i], b = y.integer[i];
    bool below = type_is_signed(type) ? a < b : (uint64_t)a < (uint64_t)b;
    switch (op) {
    case OP_eq: return a == b;
    case OP_ne: return a != b;
    case OP_lt: return below;
    default: return below || a == b;
    }
}

static int64_t divide(const Type *type, int64_t a, int64_t b, bool remainder) {
    if (b == 0) return -1;
    if (!type_is_signed(type)) {
        uint64_t u = (uint64_t)a, v = (uint64_t)b;
        return (int64_t)(remainder ? u % v : u / v);
    }
    if (b == -1) return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
    return remainder ? a % b : a / b;
}

static uint64_t bits_of(const Type *type, int64_t a) {
    int bits = type_bits(type);
    return bits == 64 ? (uint64_t)a : (uint64_t)a & (((uint64_t)1 << bits) - 1);
}

static int64_t find_bit(Op op, const Type *type, int64_t a) {
    uint64_t bits =
        op == OP_firstbithigh && type_is_signed(type) && a < 0 ? bits_of(type, ~a) : bits_of(type, a);
    int width = type_bits(type);
    for (int i = 0; i < width; i++) {
        int at = op == OP_firstbithigh ? width - 1 - i : i;
        if (bits >> at & 1) return at;
    }
    return -1;
}

static int64_t reverse(const Type *type, int64_t a) {
    uint64_t bits = bits_of(type, a), out = 0;
    int width = type_bits(type);
    for (int i = 0; i < width; i++)
        if (bits >> i & 1) out |= (uint64_t)1 << (width - 1 - i);
    return (int64_t)out;
}

static int64_t int_op(Op op, const Type *type, int64_t a, int64_t b) {
    uint64_t u = (uint64_t)a, v = (uint64_t)b;
    bool below = type_is_signed(type) ? a < b : u < v;
    int shift = (int)(v % (uint64_t)type_bits(type)), ones = 0;
    switch (op) {
    case OP_add: return (int64_t)(u + v);
    case OP_sub: return (int64_t)(u - v);
    case OP_mul: return (int64_t)(u * v);
    case OP_div: return divide(type, a, b, false);
    case OP_rem: return divide(type, a, b, true);
    case OP_neg: return (int64_t)(0 - u);
    case OP_min: return below ? a : b;
    case OP_max: return below ? b : a;
    case OP_abs: return type_is_signed(type) && a < 0 ? (int64_t)(0 - u) : a;
    case OP_and: return a & b;
    case OP_or: return a | b;
    case OP_xor: return a ^ b;
    case OP_not: return ~a;
    case OP_shl: return (int64_t)(u << shift);
    case OP_shr: return type_is_signed(type) ? a >> shift : (int64_t)(bits_of(type, a) >> shift);
    case OP_countbits:
        for (uint64_t bits = bits_of(type, a); bits; bits >>= 1) ones += (int)(bits & 1);
        return ones;
    case OP_firstbithigh:
    case OP_firstbitlow: return find_bit(op, type, a);
    case OP_reversebits: return reverse(type, a);
    default: return a; /* detach */
    }
}

static int64_t clamp_to(const Type *type, double value) {
    bool is_signed = type_is_signed(type);
    int bits = type_bits(type) - is_signed;
    double limit = ldexp(1, bits);
    if (isnan(value)) return 0;
    if (value >= limit) return is_signed ? (int64_t)(((uint64_t)1 << bits) - 1) : -1;
    if (is_signed) return value <= -limit ? (int64_t)(0 - ((uint64_t)1 << bits)) : (int64_t)value;
    return value <= 0 ? 0 : (int64_t)(uint64_t)value;
}

static void convert_lane(const Type *from, const Type *to, Datum *out, Datum x, int i) {
    bool was_float = type_is_float(from);
    if (to->kind == TYPE_bool) out->integer[i] = was_float ? x.real[i] != 0 : x.integer[i] != 0;
    else if (!type_is_float(to))
        out->integer[i] = wrap(to, was_float ? clamp_to(to, x.real[i]) : x.integer[i]);
    else if (was_float) out->real[i] = narrow(to, x.real[i]);
    else if (to->kind == TYPE_float)
        out->real[i] =
            (double)(from->kind == TYPE_uint64 ? (float)(uint64_t)x.integer[i] : (float)x.integer[i]);
    else
        out->real[i] =
            narrow(to, from->kind == TYPE_uint64 ? (double)(uint64_t)x.integer[i] : (double)x.integer[i]);
}

static Datum elementwise(const Frame *f, const Inst *inst) {
    const Type *type = inst->args[0]->type, *element = type_element(type), *to = inst->results[0]->type;
    Datum x[3] = {0}, out = {0};
    for (int i = 0; i < inst->nargs; i++) x[i] = value_of(f, inst->args[i]);
    for (int i = 0; i < type_count(type); i++) {
        if (type->kind == TYPE_pointer)
            out.integer[i] = (x[0].address == x[1].address) == (inst->op == OP_eq);
        else if (op_has(inst->op, OP_COMPARES))
            out.integer[i] = compare((Op)inst->op, element, x[0], x[1], i);
        else if (inst->op == OP_convert) convert_lane(element, type_element(to), &out, x[0], i);
        else if (inst->op == OP_ldexp) {
            int64_t by = x[1].integer[i];
            int limited = by > 5000 ? 5000 : by < -5000 ? -5000 : (int)by;
            out.real[i] = narrow(element, ldexp(x[0].real[i], limited));
        } else if (type_is_float(element))
            out.real[i] = float_op((Op)inst->op, element, x[0].real[i], x[1].real[i], x[2].real[i]);
        else
            out.integer[i] =
                wrap(type_element(to), int_op((Op)inst->op, element, x[0].integer[i], x[1].integer[i]));
    }
    return out;
}

/* ---- memory */

static void store_scalar(const Type *type, char *at, Datum d, int i) {
    int8_t byte = (int8_t)d.integer[i];
    int16_t word = (int16_t)d.integer[i];
    int32_t number = (int32_t)d.integer[i];
    float single = (float)d.real[i];
    uint16_t half;
    switch (type->kind) {
    case TYPE_bool:
    case TYPE_int8:
    case TYPE_uint8: memcpy(at, &byte, 1); break;
    case TYPE_int16:
    case TYPE_uint16: memcpy(at, &word, 2); break;
    case TYPE_int:
    case TYPE_uint: memcpy(at, &number, 4); break;
    case TYPE_half: half = half_from_double(d.real[i]), memcpy(at, &half, 2); break;
    case TYPE_float: memcpy(at, &single, 4); break;
    default: memcpy(at, &d.integer[i], 8); break;
    }
}

static void load_scalar(const Type *type, const char *at, Datum *d, int i) {
    uint16_t half;
    float single;
    int64_t raw = 0;
    switch (type->kind) {
    case TYPE_half: memcpy(&half, at, 2), d->real[i] = (double)half_to_float(half); break;
    case TYPE_float: memcpy(&single, at, 4), d->real[i] = (double)single; break;
    case TYPE_double: memcpy(&d->real[i], at, 8); break;
    default:
        memcpy(&raw, at, (size_t)type_layout(type, LAYOUT_scalar).size);
        d->integer[i] = wrap(type, raw);
        break;
    }
}

Datum interp_load(const Type *type, const char *address) {
    Datum d = {0};
    if (!address) return d;
    if (type->kind == TYPE_pointer || type->kind == TYPE_buffer || type->kind == TYPE_tape)
        memcpy(&d.address, address, sizeof d.address);
    else {
        const Type *element = type_element(type);
        int64_t size = type_layout(element, LAYOUT_scalar).size;
        for (int i = 0; i < type_count(type); i++) load_scalar(element, address + i * size, &d, i);
    }
    return d;
}

void interp_store(const Type *type, char *address, Datum value) {
    if (!address) return;
    if (type->kind == TYPE_pointer || type->kind == TYPE_buffer || type->kind == TYPE_tape)
        memcpy(address, &value.address, sizeof value.address);
    else {
        const Type *element = type_element(type);
        int64_t size = type_layout(element, LAYOUT_scalar).size;
        for (int i = 0; i < type_count(type); i++) store_scalar(element, address + i * size, value, i);
    }
}

char *interp_memory(Interp *in, const Type *type) {
    return arena_take(in->arena, (size_t)type_layout(type, LAYOUT_scalar).stride + 1);
}

/* The parts of a record or array. */
static int64_t part_count(const Type *type) {
    return type->kind == TYPE_record ? type_record(type)->nfields : type_length(type);
}

static const Type *part_type(const Type *type, int64_t i) {
    return type->kind == TYPE_record ? type_record(type)->fields[i].type : type_element(type);
}

static int64_t part_offset(const Type *type, int64_t i) {
    return type->kind == TYPE_record ? type_field_offset(type, (int)i, LAYOUT_scalar)
                                     : i * type_element_stride(type, LAYOUT_scalar);
}

static bool has_parts(const Type *type) { return type->kind == TYPE_record || type->kind == TYPE_array; }

static void copy_object(const Type *type, char *to, const char *from) {
    if (!has_parts(type)) {
        interp_store(type, to, interp_load(type, from));
        return;
    }
    for (int64_t i = 0; i < part_count(type); i++) {
        int64_t offset = part_offset(type, i);
        copy_object(part_type(type, i), to ? to + offset : NULL, from ? from + offset : NULL);
    }
}

static void add_object(const Type *type, char *to, const char *from) {
    if (has_parts(type)) {
        for (int64_t i = 0; i < part_count(type) && to; i++)
            add_object(part_type(type, i), to + part_offset(type, i),
                       from ? from + part_offset(type, i) : NULL);
        return;
    }
    const Type *element = type_element(type);
    if (!type_is_float(element)) return;
    Datum a = interp_load(type, to), b = interp_load(type, from);
    for (int i = 0; i < type_count(type); i++) a.real[i] = float_op(OP_add, element, a.real[i], b.real[i], 0);
    interp_store(type, to, a);
}

bool interp_values_equal(const Type *type, Datum a, Datum b) {
    const Type *element = type_element(type);
    if (!type_is_scalar(element)) return true; /* addresses differ from run to run */
    for (int i = 0; i < type_count(type); i++) {
        bool nan = type_is_float(element) && isnan(a.real[i]) && isnan(b.real[i]);
        if (!nan && a.integer[i] != b.integer[i]) return false;
    }
    return true;
}

bool interp_objects_equal(const Type *type, const char *a, const char *b) {
    if (!has_parts(type)) return interp_values_equal(type, interp_load(type, a), interp_load(type, b));
    for (int64_t i = 0; i < part_count(type); i++)
        if (!interp_objects_equal(part_type(type, i), a + part_offset(type, i), b + part_offset(type, i)))
            return false;
    return true;
}

static int64_t clamp_index(int64_t index, int64_t count) {
    return (uint64_t)index < (uint64_t)count ? index : count - 1;
}

static void fill_global(const Type *type, char *at, Val *const *data, int ndata, int *next) {
    if (has_parts(type)) {
        for (int64_t i = 0; i < part_count(type); i++)
            fill_global(part_type(type, i), at + part_offset(type, i), data, ndata, next);
        return;
    }
    const Type *element = type_element(type);
    int64_t size = type_layout(element, LAYOUT_scalar).size;
    for (int i = 0; i < type_count(type) && *next < ndata; i++) {
        Frame none = {0};
        interp_store(element, at + i * size, value_of(&none, data[(*next)++]));
    }
}

char *interp_global(Interp *in, const Global *global) {
    char *memory = map_get(&in->globals, PTR_KEY(global));
    if (memory) return memory;
    memory = interp_memory(in, global->type);
    map_put(in->arena, &in->globals, PTR_KEY(global), memory);
    int next = 0;
    if (global->data) fill_global(global->type, memory, global->data, global->ndata, &next);
    if (global->init) interp_call(in, global->init, NULL, NULL);
    return memory;
}

static char *buffer_address(const Frame *f, const Inst *inst) {
    const InterpBuffer *buffer = value_of(f, inst->args[0]).buffer;
    int64_t index = value_of(f, inst->args[1]).integer[0];
    const Type *target = inst->results[0]->type->args[0];
    Layout layout = type_layout(target, LAYOUT_scalar);
    if (!buffer) return NULL;
    if (inst->op == OP_buffer_elem)
        return (uint64_t)index < (uint64_t)buffer->count ? buffer->data + index * layout.stride : NULL;
    bool inside = index >= 0 && index + layout.size <= buffer->count;
    return inside ? buffer->data + index : NULL;
}

static Datum change_atomically(const Frame *f, const Inst *inst) {
    const Type *type = inst->results[0]->type;
    char *address = value_of(f, inst->args[0]).address;
    Datum old = interp_load(type, address), by = value_of(f, inst->args[1]), now = by;
    static const Op ops[] = {OP_add, OP_min, OP_max, OP_and, OP_or, OP_xor, OP_detach};
    if (inst->op == OP_atomic_cas) {
        now = old.integer[0] == by.integer[0] ? value_of(f, inst->args[2]) : old;
    } else if (inst->index != ATOMIC_exchange) {
        Op op = ops[inst->index];
        if (type_is_float(type)) now.real[0] = float_op(op, type, old.real[0], by.real[0], 0);
        else now.integer[0] = wrap(type, int_op(op, type, old.integer[0], by.integer[0]));
    }
    interp_store(type, address, now);
    return old;
}

static Datum address_datum(char *address) {
    Datum d = {0};
    d.address = address;
    return d;
}

static Datum reach(const Frame *f, const Inst *inst) {
    char *base = value_of(f, inst->args[0]).address;
    const Type *target = inst->args[0]->type->args[0];
    if (!base) return address_datum(NULL);
    if (inst->op == OP_field)
        return address_datum(base + type_field_offset(target, inst->index, LAYOUT_scalar));
    int64_t index = value_of(f, inst->args[1]).integer[0];
    if (inst->op == OP_offset) return address_datum(base + index * type_layout(target, LAYOUT_scalar).stride);
    int64_t count = target->kind == TYPE_vector ? type_count(target) : type_length(target);
    return address_datum(base + clamp_index(index, count) * type_element_stride(target, LAYOUT_scalar));
}

/* ---- tapes and text */

static Flow run_tape(Frame *f, const Inst *inst, Datum *out) {
    Interp *in = f->in;
    if (inst->op == OP_tape_open) {
        out->tape = arena_new(in->arena, InterpTape);
        in->open_tapes++;
        return FLOW_yield;
    }
    InterpTape *tape = value_of(f, inst->args[0]).tape;
    Datum second = inst->nargs > 1 ? value_of(f, inst->args[1]) : (Datum){0};
    const Type *type = inst->op == OP_tape_push    ? inst->args[1]->type
                       : inst->op == OP_tape_store ? inst->args[2]->type
                       : inst->type                ? inst->type
                       : inst->nresults            ? inst->results[0]->type
                                                   : NULL;
    if (inst->op == OP_tape_close) {
        in->open_tapes--;
        for (int i = 0; i <= TYPE_double; i++)
            if (tape->stacks[i].count) return stop(in, INTERP_bad_tape);
        return FLOW_yield;
    }
    TapeStack *stack = &tape->stacks[type->kind];
    int64_t index = second.integer[0];
    bool inside = index >= 0 && index < stack->count;
    switch ((Op)inst->op) {
    case OP_tape_push:
        keep(in, type, 1);
        stack_push(in, stack, second);
        return FLOW_yield;
    case OP_tape_pop:
        if (stack->count == 0) return stop(in, INTERP_bad_tape);
        keep(in, type, -1);
        *out = stack->at[--stack->count];
        return FLOW_yield;
    case OP_tape_grow:
        out->integer[0] = stack->count;
        keep(in, type, index);
        for (int64_t i = 0; i < index; i++)
            stack_push(in, stack,
                       (Datum){.integer = {inst_has(inst, INST_RAW) ? -1 : 0}}); /* raw: whatever was there */
        return FLOW_yield;
    case OP_tape_shrink:
        if (index < 0 || index > stack->count) return stop(in, INTERP_bad_tape);
        stack->count -= index;
        keep(in, type, -index);
        return FLOW_yield;
    case OP_tape_load:
        if (!inside) return stop(in, INTERP_bad_tape);
        *out = stack->at[index];
        return FLOW_yield;
    default:
        if (!inside) return stop(in, INTERP_bad_tape);
        stack->at[index] = value_of(f, inst->args[2]);
        return FLOW_yield;
    }
}

static void print(Frame *f, const Inst *inst) {
    Text *log = &f->in->log;
    log->arena = f->in->arena;
    text_add(log, inst->text);
    for (int i = 0; i < inst->nargs; i++) {
        const Type *type = inst->args[i]->type;
        Datum d = value_of(f, inst->args[i]);
        for (int lane = 0; lane < type_count(type); lane++) {
            text_char(log, ' ');
            if (type_is_float(type_element(type))) text_float(log, d.real[lane], WIDTH_double);
            else text_printf(log, "%lld", (long long)d.integer[lane]);
        }
    }
    text_char(log, '\n');
}

/* ---- vectors and bits */

static Datum bitcast(const Type *from, const Type *to, Datum d) {
    char bytes[32] = {0};
    for (int i = 0; type_is_float(type_element(from)) && i < type_count(from); i++)
        if (isnan(d.real[i])) d.real[i] = (double)NAN; /* which NaN it is means nothing */
    interp_store(from, bytes, d);
    return interp_load(to, bytes);
}

static Datum vector_op(const Frame *f, const Inst *inst) {
    Datum x = value_of(f, inst->args[0]), out = {0};
    int count = type_count(inst->results[0]->type);
    int64_t at = inst->nargs > 1 && inst->op != OP_vec ? value_of(f, inst->args[1]).integer[0] : 0;
    switch ((Op)inst->op) {
    case OP_vec:
        for (int i = 0; i < count; i++) out.integer[i] = value_of(f, inst->args[i]).integer[0];
        return out;
    case OP_splat:
        for (int i = 0; i < count; i++) out.integer[i] = x.integer[0];
        return out;
    case OP_extract: out.integer[0] = x.integer[clamp_index(at, type_count(inst->args[0]->type))]; return out;
    case OP_insert: x.integer[clamp_index(at, count)] = value_of(f, inst->args[2]).integer[0]; return x;
    default:
        for (int i = 0; i < count; i++) out.integer[i] = x.integer[inst->lanes[i]];
        return out;
    }
}

static Datum choose(const Frame *f, const Inst *inst) {
    Datum c = value_of(f, inst->args[0]), x = value_of(f, inst->args[1]), y = value_of(f, inst->args[2]);
    if (inst->args[0]->type->kind == TYPE_bool) return c.integer[0] ? x : y;
    for (int i = 0; i < type_count(inst->args[0]->type); i++)
        if (!c.integer[i]) x.integer[i] = y.integer[i];
    return x;
}

static Datum any_all(const Frame *f, const Inst *inst) {
    Datum x = value_of(f, inst->args[0]), out = {0};
    int ones = 0, count = type_count(inst->args[0]->type);
    for (int i = 0; i < count; i++) ones += x.integer[i] != 0;
    out.integer[0] = inst->op == OP_any ? ones > 0 : ones == count;
    return out;
}

/* ---- control flow */

static Flow run_region(Frame *f, const Region *region);

static void take_values(Frame *f, Val *const *to, int count) {
    Datum few[16], *values = count <= 16 ? few : arena_array(f->in->arena, Datum, count);
    for (int i = 0; i < count; i++) values[i] = value_of(f, f->end->args[i]);
    for (int i = 0; i < count; i++) f->vals[to[i]->id] = values[i];
}

static Flow run_choice(Frame *f, const Inst *inst, const Region *region) {
    Flow flow = run_region(f, region);
    if (flow == FLOW_yield) take_values(f, inst->results, inst->nresults);
    return flow;
}

static Flow run_switch(Frame *f, const Inst *inst) {
    int64_t value = value_of(f, inst->args[0]).integer[0];
    for (int i = 0; i < inst->ncases; i++)
        for (int j = 0; j < inst->cases[i].nvalues; j++)
            if (inst->cases[i].values[j] == value) return run_choice(f, inst, inst->regions[i]);
    return run_choice(f, inst, inst->regions[inst->ncases]);
}

static Flow run_loop(Frame *f, const Inst *loop) {
    int count = loop->nargs;
    f->end = loop;
    take_values(f, loop->regions[0]->params, count);
    for (;;) {
        Flow flow = run_region(f, loop->regions[0]);
        if (flow != FLOW_yield) return flow;
        bool goes_on = value_of(f, f->end->args[0]).integer[0];
        Inst carried = {.nargs = count, .args = loop->regions[0]->params};
        f->end = &carried;
        if (!goes_on) return take_values(f, loop->results, count), FLOW_yield;
        take_values(f, loop->regions[1]->params, count);
        flow = run_region(f, loop->regions[1]);
        if (flow == FLOW_break && f->target == loop) return take_values(f, loop->results, count), FLOW_yield;
        if (flow != FLOW_yield && !(flow == FLOW_continue && f->target == loop)) return flow;
        if (loop->nregions == 3) {
            take_values(f, loop->regions[2]->params, count);
            flow = run_region(f, loop->regions[2]);
            if (flow != FLOW_yield) return flow;
        }
        take_values(f, loop->regions[0]->params, count);
    }
}

static Flow run_block(Frame *f, const Inst *block) {
    Flow flow = run_region(f, block->regions[0]);
    bool leaves = flow == FLOW_break && f->target == block;
    if (flow != FLOW_yield && !leaves) return flow;
    take_values(f, block->results, block->nresults);
    return FLOW_yield;
}

static Flow run_call(Frame *f, const Inst *call) {
    Datum *args = arena_array(f->in->arena, Datum, call->nargs + 1);
    Datum *results = arena_array(f->in->arena, Datum, call->nresults + 1);
    for (int i = 0; i < call->nargs; i++) args[i] = value_of(f, call->args[i]);
    if (interp_call(f->in, call->callee, args, results) != INTERP_fine) return FLOW_stop;
    for (int i = 0; i < call->nresults; i++) f->vals[call->results[i]->id] = results[i];
    return FLOW_yield;
}

/* ---- one instruction */

static Datum thread_id(const Frame *f, const Inst *inst) {
    Datum d = {0};
    for (int i = 0; i < (inst->index == 3 || inst->index == 6 ? 1 : 3) && inst->index > 3; i++)
        d.integer[i] = 1;
    for (int i = 0; i < (inst->index == 3 ? 1 : 3) && inst->index <= 3; i++)
        d.integer[i] = f->in->thread[inst->index][i];
    return d;
}

static Datum buffer_value(const Frame *f, const Inst *inst) {
    InterpBuffer *buffer = value_of(f, inst->args[0]).buffer;
    Datum d = {0};
    if (!buffer) return d;
    if (inst->op == OP_buffer_length) d.integer[0] = buffer->count;
    else d.address = inst->op == OP_buffer_pointer ? buffer->data : (char *)&buffer->counter;
    return d;
}

static Flow run_memory(Frame *f, const Inst *inst, Datum *out) {
    Datum x = inst->nargs ? value_of(f, inst->args[0]) : (Datum){0};
    Datum y = inst->nargs > 1 ? value_of(f, inst->args[1]) : (Datum){0};
    const Type *target =
        inst->nargs && inst->args[0]->type->kind == TYPE_pointer ? inst->args[0]->type->args[0] : NULL;
    bool whole = inst->op == OP_copy || inst->op == OP_zero || inst->op == OP_acc;
    if (whole) f->in->work += type_layout(target, LAYOUT_scalar).size / (int64_t)sizeof(int64_t);
    switch ((Op)inst->op) {
    case OP_var: out->address = interp_memory(f->in, inst->type); break;
    case OP_global: out->address = interp_global(f->in, inst->global); break;
    case OP_load: *out = interp_load(target, x.address); break;
    case OP_store: interp_store(target, x.address, y); break;
    case OP_copy: copy_object(target, x.address, y.address); break;
    case OP_zero: copy_object(target, x.address, NULL); break;
    case OP_acc: add_object(target, x.address, y.address); break;
    default: break;
    }
    return FLOW_yield;
}

static Flow run_inst(Frame *f, const Inst *inst) {
    Datum out = {0};
    Flow flow = FLOW_yield;
    switch ((Op)inst->op) {
    case OP_if: return run_choice(f, inst, inst->regions[value_of(f, inst->args[0]).integer[0] ? 0 : 1]);
    case OP_switch: return run_switch(f, inst);
    case OP_loop: return run_loop(f, inst);
    case OP_block: return run_block(f, inst);
    case OP_call: return run_call(f, inst);
    case OP_yield: f->end = inst; return FLOW_yield;
    case OP_return: f->end = inst; return FLOW_return;
    case OP_break:
    case OP_continue:
        f->end = inst;
        f->target = inst->target;
        return inst->op == OP_break ? FLOW_break : FLOW_continue;
    case OP_unreachable: return stop(f->in, INTERP_unreachable);
    case OP_abort: return stop(f->in, INTERP_aborted);
    case OP_printf: print(f, inst); return FLOW_yield;
    case OP_barrier: return FLOW_yield;
    case OP_select: out = choose(f, inst); break;
    case OP_bitcast:
        out = bitcast(inst->args[0]->type, inst->results[0]->type, value_of(f, inst->args[0]));
        break;
    case OP_any:
    case OP_all: out = any_all(f, inst); break;
    case OP_vec:
    case OP_splat:
    case OP_extract:
    case OP_insert:
    case OP_shuffle: out = vector_op(f, inst); break;
    case OP_field:
    case OP_elem:
    case OP_offset: out = reach(f, inst); break;
    case OP_buffer_elem:
    case OP_buffer_bytes: out.address = buffer_address(f, inst); break;
    case OP_buffer_length:
    case OP_buffer_pointer:
    case OP_buffer_counter: out = buffer_value(f, inst); break;
    case OP_atomic:
    case OP_atomic_cas: out = change_atomically(f, inst); break;
    case OP_thread_id: out = thread_id(f, inst); break;
    default:
        if (op_has(inst->op, OP_ELEMENTWISE)) out = elementwise(f, inst);
        else if (inst->op >= OP_tape_open && inst->op <= OP_tape_store) flow = run_tape(f, inst, &out);
        else flow = run_memory(f, inst, &out);
    }
    if (inst->nresults) f->vals[inst->results[0]->id] = out;
    return flow;
}

static Flow run_region(Frame *f, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (--f->in->steps < 0) return stop(f->in, INTERP_out_of_steps);
        f->in->work++;
        f->in->executed[inst->op]++;
        Flow flow = run_inst(f, inst);
        if (flow != FLOW_yield || op_has(inst->op, OP_ENDS)) return flow;
    }
    return FLOW_yield;
}

void interp_init(Interp *interp, Arena *arena) {
    *interp = (Interp){.arena = arena, .steps = 1000000, .deepest = 200};
}

InterpStatus interp_call(Interp *in, const Func *func, const Datum *args, Datum *results) {
    Frame f = {.in = in, .func = func};
    if (!func->body) return stop(in, INTERP_no_body), in->status;
    if (in->depth > in->deepest) return stop(in, INTERP_too_deep), in->status;
    f.vals = arena_array(in->arena, Datum, func->nvals);
    for (int i = 0; i < func->nparams; i++) f.vals[func->body->params[i]->id] = args[i];
    in->depth++;
    Flow flow = run_region(&f, func->body);
    in->depth--;
    if (flow == FLOW_return)
        for (int i = 0; i < func->nresults; i++) results[i] = value_of(&f, f.end->args[i]);
    return in->status;
}
