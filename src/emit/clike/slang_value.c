/* Slang: types, constants and expressions. Vectors are values with operators of their own, half is a number
 * like any other, and what the IR defines (indices, shifts, conversions) is what Slang means; so there is
 * little to be done. */
#include "emit/clike/slang.h"
#include <math.h>

/* ---- types */

static const char *const scalar_names[] = {"bool", "int8_t",  "uint8_t",  "int16_t", "uint16_t", "int",
                                           "uint", "int64_t", "uint64_t", "half",    "float",    "double"};

static const char *vector_name(Printer *p, const Type *type) {
    const Type *lane = type->args[0];
    bool is_short =
        lane->kind == TYPE_bool || lane->kind == TYPE_int || lane->kind == TYPE_uint || type_is_float(lane);
    const char *word = scalar_names[lane->kind - TYPE_bool];
    return clike_format(p, is_short && type_count(type) > 1 ? "%s%d" : "vector<%s, %d>", word,
                        type_count(type));
}

static const char *type_name(Printer *p, const Type *type);

static const char *buffer_name(Printer *p, const Type *type) {
    static const char *const names[] = {
        "StructuredBuffer",  "RWStructuredBuffer",  "AppendStructuredBuffer", "ConsumeStructuredBuffer",
        "ByteAddressBuffer", "RWByteAddressBuffer", "ConstantBuffer"};
    const char *name = names[type->number];
    return type->args[0]->kind == TYPE_void ? name
                                            : clike_format(p, "%s<%s>", name, type_name(p, type->args[0]));
}

static const char *type_name(Printer *p, const Type *type) {
    if (type_is_scalar(type)) return scalar_names[type->kind - TYPE_bool];
    switch (type->kind) {
    case TYPE_void: return "void";
    case TYPE_vector: return vector_name(p, type);
    case TYPE_buffer: return buffer_name(p, type);
    case TYPE_tape: return "SlopeTape";
    case TYPE_array:
        return clike_format(p, "%s[%lld]", type_name(p, type->args[0]), (long long)type_length(type));
    case TYPE_pointer:
        if (clike_is_text(type)) return "String";
        return clike_format(p, "ConstantBuffer<%s>", type_name(p, type->args[0]));
    default: return clike_named_type(p, type);
    }
}

const char *slang_declare(Printer *p, const Type *type, const char *name) {
    if (!*name) return type_name(p, type);
    if (type->kind != TYPE_array) return clike_format(p, "%s %s", type_name(p, type), name);
    return slang_declare(p, type->args[0], clike_format(p, "%s[%lld]", name, (long long)type_length(type)));
}

void slang_define_record(Printer *p, Text *text, const Type *type, const char *name) {
    const Record *record = type_record(type);
    text_printf(text, "struct %s {\n", name);
    for (int i = 0; i < record->nfields; i++)
        if (!clike_is_nothing(record->fields[i].type))
            text_printf(text, "    %s;\n", clike_declare(p, record->fields[i].type, clike_field(p, type, i)));
    text_add(text, STR("};\n\n"));
}

const Type *slang_held(const Param *param) {
    return param->flags & PARAM_BLOCK ? param->type->args[0] : param->type;
}

const char *slang_declare_param(Printer *p, const Param *param, const char *name) {
    static const char *const directions[] = {"", "out ", "inout ", "__ref "};
    bool by_address = (param->flags & PARAM_BY_ADDRESS) != 0;
    const char *direction = by_address                       ? directions[param->dir]
                            : param->type->kind == TYPE_tape ? "inout "
                                                             : "";
    if (clike_is_nothing(param->type) || (param->flags & PARAM_RESULT)) return NULL;
    if (param->flags & PARAM_BLOCK)
        return clike_format(p, "ConstantBuffer<%s> %s", type_name(p, slang_held(param)), name);
    return clike_format(p, "%s%s", direction, clike_declare(p, param->type, name));
}

/* ---- constants */

const char *slang_zero(Printer *p, const Type *type) {
    if (type->kind == TYPE_bool) return "false";
    if (type->kind == TYPE_int) return "0";
    if (type->kind == TYPE_float) return "0.0";
    if (type->kind == TYPE_pointer) return "\"\"";
    if (type_is_scalar(type) || type->kind == TYPE_vector)
        return clike_format(p, "%s(0)", type_name(p, type));
    return clike_format(p, "(%s)0", type_name(p, type));
}

/* Numbers that have no digits, by their bits. */
static const char *special(Printer *p, const Type *type, double value) {
    uint64_t bits;
    float narrow = (float)value;
    uint32_t narrow_bits;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    if (type->kind == TYPE_double)
        return clike_format(p, "asdouble(0x%08xu, 0x%08xu)", (unsigned)bits, (unsigned)(bits >> 32));
    return clike_format(p, type->kind == TYPE_half ? "half(asfloat(0x%08xu))" : "asfloat(0x%08xu)",
                        (unsigned)narrow_bits);
}

const char *slang_not_a_number(Printer *p, const Type *type) { return special(p, type, (double)NAN); }

static const char *float_constant(Printer *p, const Type *type, double value) {
    if (!isfinite(value)) return special(p, type, value);
    Text text = {.arena = &p->arena};
    text_float(&text, value, type->kind == TYPE_double ? WIDTH_double : WIDTH_float);
    if (type->kind != TYPE_float) text_char(&text, type->kind == TYPE_double ? 'L' : 'h');
    return text.at;
}

const char *slang_constant(Printer *p, const Val *v) {
    const Type *type = v->type;
    long long value = (long long)v->integer;
    if (!type_is_scalar(type)) return slang_zero(p, type);
    if (type_is_float(type)) return float_constant(p, type, v->real);
    switch (type->kind) {
    case TYPE_bool: return value ? "true" : "false";
    case TYPE_int: return value == INT32_MIN ? "(-2147483647 - 1)" : clike_format(p, "%lld", value);
    case TYPE_uint: return clike_format(p, "%lluu", (unsigned long long)(uint32_t)value);
    case TYPE_int64:
        return value == INT64_MIN ? "(-9223372036854775807LL - 1LL)" : clike_format(p, "%lldLL", value);
    case TYPE_uint64: return clike_format(p, "%lluULL", (unsigned long long)value);
    default: return clike_format(p, "%s(%lld)", type_name(p, type), value);
    }
}

/* ---- functions that Slang lacks, of one number each; $T is its type */

typedef struct Missing {
    Op op;
    const char *body;
} Missing;

static const Missing missing[] = {
    {OP_scale, "return b == $T(0) ? $T(0) : a * b;"},
    {OP_ratio, "return a == $T(0) ? $T(0) : a / b;"},
    {OP_hypot,
     "const $T most = max(abs(a), abs(b));\n    const $T least = min(abs(a), abs(b));\n"
     "    return most == $T(0) || isinf(most) ? most : most * sqrt($T(1) + least / most * (least / most));"},
    {OP_expm1,
     "const $T u = exp(a);\n    if (u == $T(1)) return a;\n    if (u - $T(1) == $T(-1)) return $T(-1);\n"
     "    return isinf(u) ? u : (u - $T(1)) * a / log(u);"},
    {OP_log1p, "const $T u = $T(1) + a;\n    return u == $T(1) || isinf(u) ? a : log(u) * a / (u - $T(1));"},
    {OP_cbrt, "const $T y = sign(a) * pow(abs(a), $T(1) / $T(3));\n"
              "    return y == $T(0) || isinf(y) ? y : y - (y - a / (y * y)) / $T(3);"},
};

static const Missing *find_missing(Op op) {
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (missing[i].op == op) return &missing[i];
    return NULL;
}

static void print_missing(Printer *p, const Missing *what, const char *name, const char *type) {
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s %s(%s a%s%s) {\n    ", type, name, type, op_info[what->op].nargs > 1 ? ", " : "",
                op_info[what->op].nargs > 1 ? clike_format(p, "%s b", type) : "");
    for (const char *at = what->body; *at; at++) {
        if (*at != '$') text_char(&text, *at);
        else text_add(&text, str_of(type)), at++;
    }
    text_add(&text, STR("\n}\n\n"));
    text_add(&p->helpers, text_str(&text));
}

/* Lane by lane, the function of numbers having the same name. */
static void print_lanes(Printer *p, const Missing *what, const char *name, const Type *type) {
    const char *vector = type_name(p, type);
    bool two = op_info[what->op].nargs > 1;
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s %s(%s a%s%s%s) {\n    return %s(", vector, name, vector, two ? ", " : "",
                two ? vector : "", two ? " b" : "", vector);
    for (int i = 0; i < type_count(type); i++)
        text_printf(&text, two ? "%s%s(a.%c, b.%c)" : "%s%s(a.%c)", i ? ", " : "", name, "xyzw"[i],
                    "xyzw"[i]);
    text_add(&text, STR(");\n}\n\n"));
    text_add(&p->helpers, text_str(&text));
}

static Value call_missing(Printer *p, const Missing *what, const Type *type, const Value *args) {
    const char *name = clike_format(p, "slope_%s", op_info[what->op].name);
    const Type *lane = type->kind == TYPE_vector ? type->args[0] : type;
    if (clike_begin_helper(p, clike_format(p, "%s %s", name, type_name(p, lane))))
        print_missing(p, what, name, type_name(p, lane));
    if (lane != type && clike_begin_helper(p, clike_format(p, "%s %s", name, type_name(p, type))))
        print_lanes(p, what, name, type);
    return clike_call(p, name, args, op_info[what->op].nargs);
}

/* ---- expressions */

static Value construct(Printer *p, const Type *type, const Value *args, int nargs) {
    return clike_call(p, type_name(p, type), args, nargs);
}

static bool is_bool(const Type *type) {
    return type->kind == TYPE_bool || (type->kind == TYPE_vector && type->args[0]->kind == TYPE_bool);
}

static Value logic(Printer *p, const Type *type, const Value *args, const char *on_bits,
                   const char *on_bool) {
    return type->kind == TYPE_bool ? clike_infix(p, args, on_bool, LEVEL_logic)
                                   : clike_infix(p, args, on_bits, LEVEL_bits);
}

static Value prefix(Printer *p, const char *operator, Value value) {
    return clike_value(clike_format(p, "%s%s", operator, clike_in(p, value, LEVEL_primary)), LEVEL_unary);
}

static Value shift(Printer *p, const Inst *inst, const Value *args) {
    const Type *type = inst->results[0]->type, *count = inst->args[1]->type;
    Value parts[2] = {args[0], count == type ? args[1] : construct(p, type, &args[1], 1)};
    return clike_infix(p, parts, inst->op == OP_shl ? "<<" : ">>", LEVEL_shift);
}

static Value bits(Printer *p, const Inst *inst, const Value *args) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    if (type_is_scalar(from) && type_is_scalar(to) && !type_is_float(from) && !type_is_float(to))
        return construct(p, to, args, 1);
    return clike_call(p, clike_format(p, "bit_cast<%s>", type_name(p, to)), args, 1);
}

static Value lane(Printer *p, const Inst *inst, const Value *args) {
    int64_t known;
    const char *vector = clike_in(p, args[0], LEVEL_primary);
    if (!val_is_int(ir_resolve(inst->args[1]), &known))
        return clike_value(clike_format(p, "%s[%s]", vector, args[1].text), LEVEL_primary);
    int last = type_count(inst->args[0]->type) - 1;
    int index = known < 0 || known > last ? last : (int)known;
    return clike_value(clike_format(p, "%s.%c", vector, "xyzw"[index]), LEVEL_primary);
}

/* A copy in which a lane is set. */
static Value insert(Printer *p, const Inst *inst, const Value *args) {
    const char *name = clike_name_value(p, inst->results[0]);
    clike_line(p, "%s = %s;", clike_declare(p, inst->results[0]->type, name), args[0].text);
    clike_line(p, "%s[%s] = %s;", name, args[1].text, args[2].text);
    return clike_value(name, LEVEL_primary);
}

static Value shuffle(Printer *p, const Inst *inst, const Value *args) {
    const Type *to = inst->results[0]->type;
    char lanes[5] = {0};
    int count = to->kind == TYPE_vector ? type_count(to) : 1;
    for (int i = 0; i < count; i++) lanes[i] = "xyzw"[inst->lanes[i] & 3];
    Value value =
        clike_value(clike_format(p, "%s.%s", clike_in(p, args[0], LEVEL_primary), lanes), LEVEL_primary);
    return count == 1 && to->kind == TYPE_vector ? construct(p, to, &value, 1) : value;
}

static Value buffer_length(Printer *p, const Inst *inst, const Value *args) {
    const Type *buffer = inst->args[0]->type;
    const char *type = type_name(p, buffer);
    bool bytes = buffer->args[0]->kind == TYPE_void;
    if (clike_begin_helper(p, clike_format(p, "length %s", type)))
        text_printf(&p->helpers,
                    "uint slope_length(%s buffer) {\n    uint count;\n%s    buffer.GetDimensions(count%s);\n"
                    "    return count;\n}\n\n",
                    type, bytes ? "" : "    uint stride;\n", bytes ? "" : ", stride");
    return clike_call(p, "slope_length", args, 1);
}

static Value elementary(Printer *p, const Inst *inst, const Value *args) {
    Op op = (Op)inst->op;
    const Type *type = inst->results[0]->type;
    const Missing *what = find_missing(op);
    if (what) return call_missing(p, what, type, args);
    if (op == OP_erf || op == OP_erfc || op == OP_lgamma)
        clike_fail(p, inst->loc, "Slang has no function '%s'", op_info[op].name);
    return clike_call(p,
                      op == OP_round ? "rint"
                      : op == OP_rem ? "fmod"
                                     : op_info[op].name,
                      args, inst->nargs);
}

static bool is_float_like(const Type *type) {
    return type_is_float(type->kind == TYPE_vector ? type->args[0] : type);
}

static Value expression(Printer *p, const Inst *inst, const Value *args) {
    const Type *type = inst->results[0]->type;
    switch ((Op)inst->op) {
    case OP_add: return clike_infix(p, args, "+", LEVEL_sum);
    case OP_sub: return clike_infix(p, args, "-", LEVEL_sum);
    case OP_mul: return clike_infix(p, args, "*", LEVEL_product);
    case OP_div: return clike_infix(p, args, "/", LEVEL_product);
    case OP_rem:
        return is_float_like(type) ? elementary(p, inst, args) : clike_infix(p, args, "%", LEVEL_product);
    case OP_neg: return prefix(p, "-", args[0]);
    case OP_and: return logic(p, type, args, "&", "&&");
    case OP_or: return logic(p, type, args, "|", "||");
    case OP_xor:
        return is_bool(type) ? clike_infix(p, args, "!=", LEVEL_comparison) : logic(p, type, args, "^", "");
    case OP_not: return prefix(p, is_bool(type) ? "!" : "~", args[0]);
    case OP_shl:
    case OP_shr: return shift(p, inst, args);
    case OP_eq: return clike_infix(p, args, "==", LEVEL_comparison);
    case OP_ne: return clike_infix(p, args, "!=", LEVEL_comparison);
    case OP_lt: return clike_infix(p, args, "<", LEVEL_comparison);
    case OP_le: return clike_infix(p, args, "<=", LEVEL_comparison);
    case OP_select:
        return inst->args[0]->type->kind == TYPE_vector ? clike_call(p, "select", args, 3)
                                                        : clike_choice(p, args);
    case OP_convert:
    case OP_vec:
    case OP_splat: return construct(p, type, args, inst->nargs);
    case OP_bitcast: return bits(p, inst, args);
    case OP_detach: return args[0];
    case OP_extract: return lane(p, inst, args);
    case OP_insert: return insert(p, inst, args);
    case OP_shuffle: return shuffle(p, inst, args);
    case OP_buffer_length: return buffer_length(p, inst, args);
    case OP_thread_id: return clike_value(slang_thread_id(p, inst->index), LEVEL_primary);
    default: return elementary(p, inst, args);
    }
}

Value slang_compute(Printer *p, const Inst *inst) {
    Value args[4] = {0}, value;
    bool reads = false;
    if (inst->op == OP_bitcast && clike_is_text(inst->results[0]->type) &&
        clike_text_literal(p, inst, &value))
        return value;
    for (int i = 0; i < inst->nargs && i < 4; i++) {
        args[i] = clike_operand(p, inst, i);
        reads |= args[i].reads;
    }
    value = expression(p, inst, args);
    value.reads |= reads && inst->op != OP_insert;
    return value;
}
