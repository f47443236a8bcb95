/* Folding: operations on constants, and identities whose result is a value that exists already.
 *
 * Nothing here is approximate. An identity on floats is used only if it holds for every number, infinities,
 * NaN and both zeros included: x * 1, x - 0.0 and x + -0.0 are x, but x + 0.0 is not (for -0.0), x * 0 is not
 * 0, x == x is not true. What operations on constants give is told by compute.c.
 *
 * Vectors have no constants but zero. A vector whose lanes are one known constant (a splat) takes part in the
 * identities; operations on vectors of constants are folded lane by lane in build.c, since that makes
 * instructions. */
#include "ir.h"

#include <math.h>

typedef struct Fold {
    Module *module;
    Op op;
    const Type *type; /* of the result */
    Val *const *args;
    int nargs;
} Fold;

/* ---- what is known of an operand: one constant in all lanes */

static bool is_inst(const Val *v, Op op) { return v->kind == VAL_inst && v->inst->op == op; }

static const Val *lane_source(const Val *v) {
    return is_inst(v, OP_splat) ? ir_resolve(v->inst->args[0]) : v;
}

static bool is_all_zero(const Val *v) { return val_is_zero(lane_source(v)); }

static bool is_all_real(const Val *v, double wanted) {
    const Val *source = lane_source(v);
    bool scalar = source->kind == VAL_const && type_is_float(source->type);
    return scalar && source->real == wanted && !signbit(source->real) == !signbit(wanted);
}

static bool is_all_int(const Val *v, int64_t wanted) {
    int64_t value;
    return val_is_int(lane_source(v), &value) ? value == wanted : wanted == 0 && is_all_zero(v);
}

static bool is_all_ones(const Val *v) {
    const Type *element = type_element(v->type);
    uint64_t mask = type_bits(element) == 64 ? UINT64_MAX : ((uint64_t)1 << type_bits(element)) - 1;
    return is_all_int(v, type_is_signed(element) ? -1 : (int64_t)mask);
}

static bool is_float_shape(const Type *type) { return type_is_float(type_element(type)); }
static bool is_bool_shape(const Type *type) { return type_element(type)->kind == TYPE_bool; }

/* ---- operations on constants */

static Val *make_bool(Fold *f, bool value) {
    return ir_const_int(f->module, type_basic(f->module->types, TYPE_bool), value);
}

static Val *fold_float(Fold *f) {
    const Type *type = f->args[0]->type;
    double x[3] = {0}, value;
    int64_t exponent;
    if (f->op == OP_ldexp) {
        if (!val_is_int(f->args[1], &exponent)) return NULL;
        return ir_const_real(f->module, type, compute_ldexp(f->args[0]->real, exponent));
    }
    if (f->nargs > 3) return NULL;
    for (int i = 0; i < f->nargs; i++) x[i] = f->args[i]->real;
    if (!compute_float(f->op, type, x, &value)) return NULL;
    return op_has(f->op, OP_COMPARES) ? make_bool(f, value != 0) : ir_const_real(f->module, type, value);
}

static Val *fold_int(Fold *f) {
    int64_t value, b = 0;
    if (f->nargs > 2) return NULL;
    if (f->nargs == 2) b = f->args[1]->integer;
    if (!compute_int(f->op, f->args[0]->type, f->args[0]->integer, b, &value)) return NULL;
    return ir_const_int(f->module, f->type, value);
}

/* ---- conversions of constants */

static Val *convert_constant(Module *module, const Val *x, const Type *to) {
    bool from_float = type_is_float(x->type);
    if (to->kind == TYPE_bool) return ir_const_int(module, to, from_float ? x->real != 0 : x->integer != 0);
    if (type_is_float(to))
        return ir_const_real(module, to, from_float ? x->real : compute_real(x->type, to, x->integer));
    return ir_const_int(module, to, from_float ? compute_integer(to, x->real) : x->integer);
}

static uint64_t bits_of(const Val *x) {
    uint64_t bits = 0;
    float single = (float)x->real;
    switch (x->type->kind) {
    case TYPE_half: return half_from_double(x->real);
    case TYPE_float: memcpy(&bits, &single, 4); return bits;
    case TYPE_double: memcpy(&bits, &x->real, 8); return bits;
    default: return (uint64_t)x->integer;
    }
}

static Val *bitcast_constant(Module *module, const Val *x, const Type *to) {
    uint64_t bits = bits_of(x);
    uint32_t low = (uint32_t)bits;
    float single;
    double value;
    switch (to->kind) {
    case TYPE_half: return ir_const_real(module, to, (double)half_to_float((uint16_t)bits));
    case TYPE_float: memcpy(&single, &low, 4); return ir_const_real(module, to, (double)single);
    case TYPE_double: memcpy(&value, &bits, 8); return ir_const_real(module, to, value);
    default: return ir_const_int(module, to, (int64_t)bits);
    }
}

static bool holds_floats(const Type *type) {
    return type_is_float(type->kind == TYPE_vector ? type->args[0] : type);
}

bool ir_bits_cut(const Type *through, const Type *to) { return holds_floats(to) && !holds_floats(through); }

static Val *fold_conversion(Fold *f) {
    Val *x = f->args[0];
    if (x->type == f->type) return x;
    if (f->op == OP_bitcast && is_inst(x, OP_bitcast)) {
        Val *origin = ir_resolve(x->inst->args[0]);
        if (origin->type == f->type && !ir_bits_cut(x->type, f->type)) return origin;
    }
    if (x->kind != VAL_const) return NULL;
    if (val_is_zero(x)) return ir_const_zero(f->module, f->type);
    if (!type_is_scalar(x->type) || !type_is_scalar(f->type)) return NULL;
    if (f->op == OP_convert) return convert_constant(f->module, x, f->type);
    /* A NaN would lose its payload, and a bool has no bits of its own. */
    if (x->type->kind == TYPE_bool || f->type->kind == TYPE_bool) return NULL;
    if (type_is_float(x->type) && isnan(x->real)) return NULL;
    Val *result = bitcast_constant(f->module, x, f->type);
    return type_is_float(result->type) && isnan(result->real) ? NULL : result;
}

/* ---- identities */

static Val *zero(Fold *f) { return ir_const_zero(f->module, f->type); }

static Val *fold_float_identity(Fold *f, Val *x, Val *y) {
    switch (f->op) {
    case OP_add: return is_all_real(y, -0.0) ? x : is_all_real(x, -0.0) ? y : NULL;
    case OP_sub: return is_all_real(y, 0.0) || (!type_is_scalar(y->type) && is_all_zero(y)) ? x : NULL;
    case OP_scale:
        if (is_all_zero(y)) return zero(f);
        return is_all_real(y, 1) ? x : is_all_real(x, 1) ? y : NULL;
    case OP_mul: return is_all_real(y, 1) ? x : is_all_real(x, 1) ? y : NULL;
    case OP_ratio: return is_all_zero(x) ? zero(f) : is_all_real(y, 1) ? x : NULL;
    case OP_div: return is_all_real(y, 1) ? x : NULL;
    case OP_pow: return is_all_real(y, 1) ? x : NULL;
    case OP_min:
    case OP_max: return x == y ? x : NULL;
    default: return NULL;
    }
}

static Val *fold_int_identity(Fold *f, Val *x, Val *y) {
    switch (f->op) {
    case OP_add: return is_all_zero(y) ? x : is_all_zero(x) ? y : NULL;
    case OP_sub: return is_all_zero(y) ? x : x == y ? zero(f) : NULL;
    case OP_mul:
        if (is_all_zero(x) || is_all_zero(y)) return zero(f);
        return is_all_int(y, 1) ? x : is_all_int(x, 1) ? y : NULL;
    case OP_div: return is_all_int(y, 1) ? x : NULL;
    case OP_rem: return is_all_int(y, 1) ? zero(f) : NULL;
    case OP_min:
    case OP_max: return x == y ? x : NULL;
    case OP_and:
        if (is_all_zero(x) || is_all_zero(y)) return zero(f);
        return x == y || is_all_ones(y) ? x : is_all_ones(x) ? y : NULL;
    case OP_or:
        if (is_all_ones(x) || is_all_zero(y)) return x;
        return x == y || is_all_ones(y) || is_all_zero(x) ? y : NULL;
    case OP_xor: return is_all_zero(y) ? x : is_all_zero(x) ? y : x == y ? zero(f) : NULL;
    case OP_shl:
    case OP_shr: return is_all_zero(y) ? x : NULL;
    default: return NULL;
    }
}

/* Comparisons; only scalars have constants of the result. */
static Val *fold_comparison(Fold *f, Val *x, Val *y) {
    bool is_float = is_float_shape(x->type);
    bool is_unsigned = type_is_integer(x->type) && !type_is_signed(x->type);
    if (is_bool_shape(x->type) && f->op == OP_eq && is_all_ones(y)) return x;
    if (is_bool_shape(x->type) && f->op == OP_eq && is_all_ones(x)) return y;
    if (is_bool_shape(x->type) && f->op == OP_ne && is_all_zero(y)) return x;
    if (is_bool_shape(x->type) && f->op == OP_ne && is_all_zero(x)) return y;
    if (f->op == OP_lt && (x == y || (is_unsigned && is_all_zero(y)))) return zero(f);
    if (f->op == OP_ne && x == y && !is_float) return zero(f);
    if (f->type->kind != TYPE_bool || is_float) return NULL;
    if ((f->op == OP_eq || f->op == OP_le) && x == y) return make_bool(f, true);
    return f->op == OP_le && is_unsigned && is_all_zero(x) ? make_bool(f, true) : NULL;
}

static Val *fold_unary_identity(Fold *f, Val *x) {
    switch (f->op) {
    case OP_neg:
    case OP_not:
    case OP_reversebits: return is_inst(x, f->op) ? ir_resolve(x->inst->args[0]) : NULL;
    case OP_abs:
        if (!type_is_signed(x->type)) return x;
        return is_inst(x, OP_abs) ? x : NULL;
    case OP_floor:
    case OP_ceil:
    case OP_round:
    case OP_trunc: {
        bool whole =
            is_inst(x, OP_floor) || is_inst(x, OP_ceil) || is_inst(x, OP_round) || is_inst(x, OP_trunc);
        return whole ? x : NULL;
    }
    case OP_detach: return x->kind == VAL_const || is_inst(x, OP_detach) ? x : NULL;
    case OP_any:
    case OP_all: return is_all_zero(x) ? zero(f) : is_all_ones(x) ? make_bool(f, true) : NULL;
    default: return NULL;
    }
}

static Val *fold_select(Fold *f) {
    Val *condition = f->args[0], *x = f->args[1], *y = f->args[2];
    if (x == y || is_all_ones(condition)) return x;
    if (is_all_zero(condition)) return y;
    if (x->type == condition->type && is_all_ones(x) && is_all_zero(y)) return condition;
    bool both_zero = val_is_zero(x) && val_is_zero(y);
    return both_zero ? x : NULL;
}

/* ---- vectors */

Val *ir_trace_lane(Val *vector, int *lane) {
    int64_t index;
    for (;;) {
        vector = ir_resolve(vector);
        if (vector->kind != VAL_inst) return vector;
        const Inst *inst = vector->inst;
        if (inst->op == OP_shuffle) *lane = inst->lanes[*lane], vector = inst->args[0];
        else if (inst->op == OP_insert) {
            if (!val_is_int(ir_resolve(inst->args[1]), &index)) return vector;
            if (index < 0 || index >= type_count(vector->type)) return vector;
            if (index != *lane) vector = inst->args[0];
            else return *lane = -1, ir_resolve(inst->args[2]);
        } else if (inst->op == OP_splat || inst->op == OP_vec) {
            int at = inst->op == OP_vec ? *lane : 0;
            return *lane = -1, ir_resolve(inst->args[at]);
        } else return vector;
    }
}

static Val *fold_extract(Fold *f) {
    Val *vector = f->args[0];
    int count = type_count(vector->type), lane;
    int64_t index;
    if (val_is_zero(vector)) return zero(f);
    if (is_inst(vector, OP_splat)) return ir_resolve(vector->inst->args[0]);
    if (!val_is_int(f->args[1], &index)) return NULL;
    lane = index < 0 || index >= count ? count - 1 : (int)index;
    Val *source = ir_trace_lane(vector, &lane);
    if (lane < 0) return source;
    return val_is_zero(source) ? zero(f) : NULL;
}

static Val *fold_insert(Fold *f) {
    Val *vector = f->args[0], *x = f->args[2];
    if (val_is_zero(vector) && val_is_zero(x)) return vector;
    int64_t index;
    if (!val_is_int(f->args[1], &index) || index < 0 || index >= type_count(vector->type)) return NULL;
    int lane = (int)index;
    return ir_trace_lane(vector, &lane) == x && lane < 0 ? vector : NULL;
}

/* The vector whose lanes these are, one by one. */
static Val *fold_vec(Fold *f) {
    Val *origin = NULL;
    bool all_zero = true;
    for (int i = 0; i < f->nargs; i++) all_zero &= val_is_zero(f->args[i]);
    if (all_zero) return zero(f);
    for (int i = 0; i < f->nargs; i++) {
        int64_t index;
        if (!is_inst(f->args[i], OP_extract)) return NULL;
        const Inst *extract = f->args[i]->inst;
        Val *vector = ir_resolve(extract->args[0]);
        if (vector->type != f->type || (origin && vector != origin)) return NULL;
        if (!val_is_int(ir_resolve(extract->args[1]), &index) || index != i) return NULL;
        origin = vector;
    }
    return origin;
}

/* ---- entry */

static bool all_scalar_constants(const Fold *f) {
    for (int i = 0; i < f->nargs; i++)
        if (f->args[i]->kind != VAL_const || !type_is_scalar(f->args[i]->type)) return false;
    return f->nargs > 0;
}

static Val *fold_binary(Fold *f) {
    Val *x = f->args[0], *y = f->args[1];
    if (op_has(f->op, OP_COMPARES)) return fold_comparison(f, x, y);
    return is_float_shape(f->type) ? fold_float_identity(f, x, y) : fold_int_identity(f, x, y);
}

Val *ir_fold(Module *module, Op op, const Type *type, Val *const *args, int nargs) {
    Fold f = {module, op, type, args, nargs};
    if (!op_has(op, OP_PURE)) return NULL;
    switch (op) {
    case OP_convert:
    case OP_bitcast: return fold_conversion(&f);
    case OP_select: return fold_select(&f);
    case OP_extract: return fold_extract(&f);
    case OP_insert: return fold_insert(&f);
    case OP_vec: return fold_vec(&f);
    case OP_splat: return val_is_zero(args[0]) ? zero(&f) : NULL;
    case OP_any:
    case OP_all: return fold_unary_identity(&f, args[0]);
    default: break;
    }
    if (!op_has(op, OP_ELEMENTWISE)) return NULL;
    if (all_scalar_constants(&f)) {
        Val *constant = type_is_float(args[0]->type) ? fold_float(&f) : fold_int(&f);
        if (constant) return constant;
    }
    return nargs == 1 ? fold_unary_identity(&f, args[0]) : nargs == 2 ? fold_binary(&f) : NULL;
}
