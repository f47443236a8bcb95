/* Expressions on scalars; vectors are the same, lane by lane, in functions of their own (object.c). */
#include "emit/clike/clike.h"
#include "emit/elementary.h"
#include <math.h>

/* ---- constants */

static const char *float_constant(Printer *p, double value, const Type *type) {
    bool wide = type->kind == TYPE_double;
    if (isnan(value)) return signbit(value) ? "(-NAN)" : "NAN";
    if (isinf(value)) return value < 0 ? "(-INFINITY)" : "INFINITY";
    Text text = {.arena = &p->arena};
    text_float(&text, value, wide ? WIDTH_double : WIDTH_float); /* a half is a float that fits */
    if (!wide) text_char(&text, 'f');
    return text.at;
}

static const char *integer_constant(Printer *p, int64_t value, const Type *type) {
    switch (type->kind) {
    case TYPE_bool: return value ? "true" : "false";
    case TYPE_int: return value == INT32_MIN ? "INT32_MIN" : clike_format(p, "%lld", (long long)value);
    case TYPE_uint: return clike_format(p, "%lluu", (unsigned long long)(uint32_t)value);
    case TYPE_int64: return value == INT64_MIN ? "INT64_MIN" : clike_format(p, "%lldLL", (long long)value);
    case TYPE_uint64: return clike_format(p, "%lluULL", (unsigned long long)value);
    default: return clike_format(p, "%lld", (long long)value);
    }
}

const char *clike_c_constant(Printer *p, const Val *v) {
    if (!type_is_scalar(v->type)) return clike_zero(p, v->type);
    return type_is_float(v->type) ? float_constant(p, v->real, v->type)
                                  : integer_constant(p, v->integer, v->type);
}

const char *clike_constant(Printer *p, const Val *v) {
    const char *name = clike_case_name(p, v->name);
    return name ? name : p->dialect->language->constant(p, v);
}

static Value constant_value(Printer *p, const Val *v) {
    const char *text = clike_constant(p, v);
    return clike_value(text, text[0] == '-' ? LEVEL_unary : LEVEL_primary);
}

static Value operand(Printer *p, const Inst *inst, int index, bool reading) {
    const Val *v = ir_resolve(inst->args[index]);
    if (val_is_const(v)) return constant_value(p, v);
    Value value = p->at->values[v->id];
    return value.guarded ? clike_guarded(p, v->inst, reading) : value;
}

Value clike_operand(Printer *p, const Inst *inst, int index) { return operand(p, inst, index, false); }

Value clike_read_operand(Printer *p, const Inst *inst, int index) { return operand(p, inst, index, true); }

/* ---- operators */

Value clike_call(Printer *p, const char *function, const Value *args, int nargs) {
    Text text = {.arena = &p->arena};
    text_printf(&text, "%s(", function);
    for (int i = 0; i < nargs; i++) text_printf(&text, "%s%s", i ? ", " : "", args[i].text);
    text_char(&text, ')');
    return clike_value(text.at, LEVEL_primary);
}

static bool is_literal(const char *text) { return text[0] >= '0' && text[0] <= '9'; }

static bool is_negative_literal(Value value) {
    return value.text[0] == '-' && strspn(value.text + 1, "0123456789.efLU+-") == strlen(value.text + 1);
}

/* Is there `||` in it where `&&` follows, or the other way round? Compilers want parentheses then. */
static bool is_mixed(const char *text, const char *operator) {
    return strstr(text, strcmp(operator, "&&") == 0 ? " || " : " && ") != NULL;
}

Value clike_infix(Printer *p, const Value *given, const char *operator, Level level) {
    Level left = level, right = (Level)(level + 1);
    Value args[2] = {given[0], given[1]};
    if (strcmp(operator, "+") == 0 && is_negative_literal(args[1])) {
        operator= "-";
        args[1] = clike_value(args[1].text + 1, LEVEL_primary);
    }
    bool is_typed = level == LEVEL_sum || level == LEVEL_product || level == LEVEL_comparison;
    for (int i = 0; i < 2 && is_typed; i++)
        if (!is_literal(args[1 - i].text)) args[i].text = clike_short(p, args[i].text);
    if (level == LEVEL_bits || level == LEVEL_shift) left = right = LEVEL_unary; /* compilers warn of less */
    if (level == LEVEL_comparison) left = right = LEVEL_sum;
    if (level == LEVEL_logic) {
        right = LEVEL_comparison;
        left = is_mixed(args[0].text, operator) ? right : LEVEL_logic;
    }
    return clike_value(
        clike_format(p, "%s %s %s", clike_in(p, args[0], left), operator, clike_in(p, args[1], right)),
        level);
}

static Value cast(Printer *p, const char *type, Value value) {
    return clike_value(clike_format(p, "(%s)%s", type, clike_in(p, value, LEVEL_unary)), LEVEL_unary);
}

/* Every result of half is rounded. */
static Value rounded(Printer *p, Value value, const Type *type) {
    return type->kind == TYPE_half ? clike_call(p, clike_helper(p, "slope_round_half"), &value, 1) : value;
}

static bool is_narrow(const Type *type) { return type->kind >= TYPE_int8 && type->kind <= TYPE_uint16; }

/* The unsigned type in which arithmetic wraps. */
static const char *wrapping_type(const Type *type) { return type_bits(type) == 64 ? "uint64_t" : "uint32_t"; }

/* The unsigned number of the same bits: arithmetic that wraps goes on with it. */
static Value bits_of(Printer *p, const Type *type, Value value) {
    size_t digits = strspn(value.text, "0123456789");
    const char *suffix = value.text + digits;
    if (value.bits) return clike_value(value.bits, value.bits_level);
    if (digits == 0 || (*suffix && strcmp(suffix, "LL") != 0)) return cast(p, wrapping_type(type), value);
    return clike_value(
        clike_format(p, "%.*s%s", (int)digits, value.text, type_bits(type) == 64 ? "ULL" : "u"),
        LEVEL_primary);
}

/* Back to the type. */
static Value of_bits(Printer *p, const Type *type, Value bits) {
    Value value = cast(p, clike_type(p, type), bits);
    value.bits = bits.text;
    value.bits_level = bits.level;
    return value;
}

static bool says_constant(const Region *r, bool *known) {
    const Val *v = r->first && r->first->op == OP_yield ? ir_resolve(r->first->args[0]) : NULL;
    if (v) *known = val_is_one(v);
    return v && (val_is_one(v) || val_is_zero(v));
}

Logic clike_logic(const Inst *inst) {
    Logic logic = {0}, none = {0};
    if (inst->op != OP_if || inst->nresults != 1 || inst->results[0]->type->kind != TYPE_bool) return none;
    logic.when = !says_constant(inst->regions[0], &logic.known);
    logic.asked = inst->regions[!logic.when];
    return logic.when && !says_constant(inst->regions[1], &logic.known) ? none : logic;
}

/* a && b: b is asked only if a holds. */
static bool is_conjunction(const Inst *inst) {
    Logic logic = clike_logic(inst);
    return logic.asked && logic.when && !logic.known;
}

/* Does the condition of a loop say that its carried value `index` is less, or more, than something? */
static bool says_apart(const Inst *loop, const Val *condition, int index, bool less) {
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    if (is_conjunction(inst)) return says_apart(loop, ir_resolve(inst->args[0]), index, less);
    if (inst->op == OP_and)
        return says_apart(loop, ir_resolve(inst->args[0]), index, less) ||
               says_apart(loop, ir_resolve(inst->args[1]), index, less);
    return inst->op == OP_lt && ir_resolve(inst->args[less ? 0 : 1]) == loop->regions[0]->params[index];
}

/* Is it the step of a loop's counter that was found less than something, or more if it counts down? It cannot
 * overflow. */
static bool is_bounded_step(const Inst *inst) {
    int64_t step;
    const Val *counter = ir_resolve(inst->args[0]);
    if (inst->op != OP_add && inst->op != OP_sub) return false;
    if (!val_is_int(ir_resolve(inst->args[1]), &step) || step != 1) return false;
    if (counter->kind != VAL_param || !counter->region->owner || counter->region->owner->op != OP_loop)
        return false;
    const Inst *loop = counter->region->owner, *yield = loop->regions[0]->last;
    if (loop->nregions > 2 || counter->region != loop->regions[1] || yield->op != OP_yield) return false;
    return says_apart(loop, ir_resolve(yield->args[0]), counter->index, inst->op == OP_add);
}

/* ---- 64-bit numbers that are small: counters and places on a tape, which reverse passes are full of */

/* How many bits their magnitude takes: of what is in memory, of what counts one by one from few (for a year
 * or two), and of what may be any number. */
enum { BITS_IN_MEMORY = 48, BITS_OF_COUNTER = 56, BITS_OF_ANY = 64 };

static int bits_taken(const Val *v, int depth);

static int bits_of_constant(int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int bits = 0;
    for (; magnitude; magnitude >>= 1) bits++;
    return bits;
}

static bool is_unit_step(const Val *v, const Val *counter) {
    int64_t step;
    if (v->kind != VAL_inst || (v->inst->op != OP_add && v->inst->op != OP_sub)) return false;
    return ir_resolve(v->inst->args[0]) == counter && val_is_int(ir_resolve(v->inst->args[1]), &step) &&
           step == 1;
}

static int bits_of_counter(const Inst *loop, int index, int depth) {
    const Inst *yield = loop->regions[1]->last;
    if (loop->nregions > 2 || yield->op != OP_yield) return BITS_OF_ANY;
    bool counts = is_unit_step(ir_resolve(yield->args[index]), loop->regions[1]->params[index]);
    int first = counts ? bits_taken(ir_resolve(loop->args[index]), depth) : BITS_OF_ANY;
    return first < BITS_OF_COUNTER ? BITS_OF_COUNTER : first;
}

static int bits_of_result(const Val *v, int depth) {
    const Inst *inst = v->inst;
    bool is_choice = inst->op == OP_select, is_one_of = is_choice || inst->op == OP_min || inst->op == OP_max;
    int64_t divisor;
    if (inst->op == OP_tape_grow) return BITS_IN_MEMORY;
    if (inst->op == OP_loop) return bits_of_counter(inst, v->index, depth);
    if (inst->op == OP_convert)
        return type_is_integer(inst->args[0]->type) && type_bits(inst->args[0]->type) <= 32 ? 32
                                                                                            : BITS_OF_ANY;
    if (inst->op == OP_div && val_is_int(ir_resolve(inst->args[1]), &divisor) && divisor != 0)
        return bits_taken(ir_resolve(inst->args[0]), depth);
    if (!is_one_of && inst->op != OP_add && inst->op != OP_sub && inst->op != OP_mul) return BITS_OF_ANY;
    int left = bits_taken(ir_resolve(inst->args[is_choice]), depth),
        right = bits_taken(ir_resolve(inst->args[is_choice + 1]), depth);
    if (inst->op == OP_mul) return left + right;
    return (left > right ? left : right) + !is_one_of;
}

static int bits_taken(const Val *v, int depth) {
    int64_t known;
    if (val_is_int(v, &known)) return bits_of_constant(known);
    if (depth == 0) return BITS_OF_ANY;
    if (v->kind == VAL_inst) return bits_of_result(v, depth - 1);
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    return loop && loop->op == OP_loop ? bits_of_counter(loop, v->index, depth - 1) : BITS_OF_ANY;
}

/* Is it only a place on a tape, or a part of one? */
static bool is_tape_place(const Printer *p, const Val *v) {
    return p->at->places[v->id] > 0 && p->at->places[v->id] == p->at->uses[v->id];
}

/* Can the result not leave the range of the type? */
static bool cannot_overflow(Printer *p, const Inst *inst) {
    const Val *v = inst->results[0];
    if (inst_has(inst, INST_UNCHECKED) || is_bounded_step(inst) || is_tape_place(p, v)) return true;
    if (ir_interval(&p->at->jumps, v).known) return true;
    return v->type->kind == TYPE_int64 && bits_taken(v, 6) < 64;
}

/* Beside a variable of 64 bits, C converts what is narrower by itself. */
static Value plain_arithmetic(Printer *p, const Value *args, const char *operator, Level level,
                              const Inst *inst) {
    Value both[2] = {args[0], args[1]};
    for (int i = 0; i < 2; i++) {
        if (!args[i].narrow || args[1 - i].narrow || val_is_const(ir_resolve(inst->args[1 - i]))) continue;
        both[i].text = args[i].narrow;
        both[i].level = args[i].narrow_level;
    }
    return clike_infix(p, both, operator, level);
}

static Value integer_arithmetic(Printer *p, const Type *type, const Value *args, const char *operator,
                                Level level, const Inst *inst) {
    if (type->kind == TYPE_uint || type->kind == TYPE_uint64) return clike_infix(p, args, operator, level);
    if (inst && !is_narrow(type) && cannot_overflow(p, inst))
        return plain_arithmetic(p, args, operator, level, inst);
    Value other = args[1];
    if (strcmp(operator, "+") == 0 && is_negative_literal(other)) {
        operator= "-";
        other = clike_value(other.text + 1, LEVEL_primary);
    }
    Value wide[2] = {bits_of(p, type, args[0]), bits_of(p, type, other)};
    return of_bits(p, type, clike_infix(p, wide, operator, level));
}

static Value arithmetic(Printer *p, const Type *type, const Value *args, const char *operator, Level level,
                        const Inst *inst) {
    if (!type_is_float(type)) return integer_arithmetic(p, type, args, operator, level, inst);
    int doubled = inst ? clike_doubled_beside_product(p, inst) : -1;
    if (doubled >= 0) {
        clike_helper(p, "SLOPE_APART");
        const char *twice = clike_helper(p, clike_format(p, "slope_twice_%s", clike_word(p, type)));
        return rounded(p, clike_call(p, twice, &args[doubled], 1), type);
    }
    return rounded(p, clike_infix(p, args, operator, level), type);
}

/* Compilers for GPUs copy the mathematics to where they are called, hundreds of instructions each; little
 * optimisation means few of them. */
static const char *function_apart(Printer *p, const char *function, const Type *type, int nargs) {
    const char *name = clike_format(p, "slope_apart_%s", function), *number = clike_type(p, type);
    if (clike_begin_helper(p, name))
        text_printf(&p->helpers, "%s%s %s(%s x%s%s) {\n    return %s(x%s);\n}\n", p->dialect->apart, number,
                    name, number, nargs > 1 ? ", " : "", nargs > 1 ? clike_format(p, "%s y", number) : "",
                    function, nargs > 1 ? ", y" : "");
    return name;
}

/* May it be written as compilers make the most of it? */
static bool is_steered(const Printer *p) {
    return p->dialect->steers_loops && p->options->level > 0 && !p->is_strict;
}

bool clike_has_vectors(const Printer *p) { return is_steered(p) && p->options->level >= 3; }

/* Where rounds of a loop become vectors, gcc calls functions of vectors if it knows that they are there. */
static void declare_for_vectors(Printer *p, const char *name, const char *function, const Type *type,
                                int nargs) {
    int since = emit_vectors_since(name);
    bool wanted = clike_has_vectors(p) && since > 0;
    if (!wanted || !clike_begin_helper(p, clike_format(p, "vectors of %s", function))) return;
    const char *number = type->kind == TYPE_double ? "double" : "float";
    const char *macro = clike_helper(p, "SLOPE_FOR_VECTORS");
    text_printf(&p->helpers, "%s(%d, %s, %s, (%s%s%s))\n", macro, since, number, function, number,
                nargs > 1 ? ", " : "", nargs > 1 ? number : "");
}

static Value library(Printer *p, const char *name, const Type *type, const Value *args, int nargs) {
    const char *function = type->kind == TYPE_double ? name : clike_format(p, "%sf", name);
    bool is_basic = type->kind != TYPE_double && type->kind != TYPE_float;
    static const char *const small[] = {"sqrt",  "rsqrt", "fabs", "floor", "ceil",     "trunc",
                                        "round", "rint",  "fmin", "fmax",  "copysign", "ldexp"};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) is_basic |= strcmp(name, small[i]) == 0;
    if (p->dialect->apart && p->options->level < 2 && !is_basic && nargs < 3)
        function = function_apart(p, function, type, nargs);
    if (!is_basic) declare_for_vectors(p, name, function, type, nargs);
    return rounded(p, clike_call(p, function, args, nargs), type);
}

/* Is it one over a square root that stands right here? Then *under is what that is of. */
static bool is_over_root(Printer *p, const Inst *inst, const Value *args, Value *under) {
    if (!inst || !p->dialect->over_root || !p->module->many_threads || p->module->rounds_as_written)
        return false;
    const Val *root = ir_resolve(inst->args[1]);
    if (!val_is_one(ir_resolve(inst->args[0])) || root->kind != VAL_inst || root->inst->op != OP_sqrt)
        return false;
    if (inst->func->flags & FUNC_PRECISE) return false;
    *under = clike_operand(p, root->inst, 0);
    return strcmp(library(p, "sqrt", root->type, under, 1).text, args[1].text) == 0;
}

static Value quotient(Printer *p, const Type *type, const Value *args, const Inst *inst) {
    Value under;
    if (is_over_root(p, inst, args, &under)) return library(p, p->dialect->over_root, type, &under, 1);
    return rounded(p, clike_infix(p, args, "/", LEVEL_product), type);
}

static Value division(Printer *p, Op op, const Type *type, const Value *args, const Inst *inst) {
    int64_t divisor;
    const char *operator= op == OP_div ? "/" : "%";
    if (type_is_float(type))
        return op == OP_div ? quotient(p, type, args, inst) : library(p, "fmod", type, args, 2);
    bool harmless = inst && val_is_int(ir_resolve(inst->args[1]), &divisor) && divisor != 0 && divisor != -1;
    if (harmless && is_narrow(type))
        return cast(p, clike_type(p, type), clike_infix(p, args, operator, LEVEL_product));
    if (harmless) return clike_infix(p, args, operator, LEVEL_product);
    return clike_call(
        p, clike_helper(p, clike_format(p, "slope_%s_%s", op == OP_div ? "div" : "rem", clike_word(p, type))),
        args, 2);
}

static Value negation(Printer *p, const Type *type, const Value *args) {
    if (type_is_float(type))
        return clike_value(clike_format(p, "-%s", clike_in(p, args[0], LEVEL_primary)), LEVEL_unary);
    Value wide[2] = {clike_value("0u", LEVEL_primary), bits_of(p, type, args[0])};
    return of_bits(p, type, clike_infix(p, wide, "-", LEVEL_sum));
}

static Value extreme(Printer *p, const Type *type, const Value *args, const Inst *inst, bool greater) {
    const char *name = greater ? "max" : "min";
    bool is_number = type->kind == TYPE_float || type->kind == TYPE_double;
    if (is_number && is_steered(p)) {
        bool goes_ways = inst && inst_goes_ways(inst);
        clike_helper(p, goes_ways ? "SLOPE_LIKELY" : "SLOPE_LACKS_FMAX");
        const char *how = goes_ways ? "way_" : "f";
        return clike_call(
            p, clike_helper(p, clike_format(p, "slope_%s%s_%s", how, name, clike_word(p, type))), args, 2);
    }
    if (type_is_float(type)) return library(p, clike_format(p, "f%s", name), type, args, 2);
    return clike_call(p, clike_helper(p, clike_format(p, "slope_%s_%s", name, clike_word(p, type))), args, 2);
}

static Value magnitude(Printer *p, const Type *type, const Value *args) {
    if (type_is_float(type)) return library(p, "fabs", type, args, 1);
    if (!type_is_signed(type)) return args[0];
    return clike_call(p, clike_helper(p, clike_format(p, "slope_abs_%s", clike_word(p, type))), args, 1);
}

/* ---- bits and logic */

static Value bitwise(Printer *p, const Type *type, const Value *args, const char *on_bits,
                     const char *on_bool) {
    bool is_bool = type->kind == TYPE_bool;
    Value value = clike_infix(p, args, is_bool ? on_bool : on_bits,
                              !is_bool                     ? LEVEL_bits
                              : strcmp(on_bool, "!=") == 0 ? LEVEL_comparison
                                                           : LEVEL_logic);
    return is_narrow(type) ? cast(p, clike_type(p, type), value) : value;
}

static Value complement(Printer *p, const Type *type, const Value *args) {
    bool is_bool = type->kind == TYPE_bool;
    Value value = clike_value(clike_format(p, "%c%s", is_bool ? '!' : '~', clike_in(p, args[0], LEVEL_unary)),
                              LEVEL_unary);
    return is_narrow(type) ? cast(p, clike_type(p, type), value) : value;
}

static Value shift(Printer *p, Op op, const Type *type, const Value *args, const Inst *inst) {
    int64_t amount;
    int bits = type_bits(type);
    Value parts[2] = {args[0], args[1]};
    bool known = inst && val_is_int(ir_resolve(inst->args[1]), &amount);
    parts[1] = known ? clike_value(clike_format(p, "%lld", (long long)(amount & (bits - 1))), LEVEL_primary)
                     : clike_value(clike_format(p, "(%s & %d)", clike_in(p, args[1], LEVEL_unary), bits - 1),
                                   LEVEL_primary);
    bool is_wide = type->kind == TYPE_uint || type->kind == TYPE_uint64;
    if (op == OP_shl && !is_wide) parts[0] = bits_of(p, type, args[0]);
    Value value = clike_infix(p, parts, op == OP_shl ? "<<" : ">>", LEVEL_shift);
    bool same = is_wide || (op == OP_shr && !is_narrow(type));
    if (op == OP_shl && !same) return of_bits(p, type, value);
    return same ? value : cast(p, clike_type(p, type), value);
}

/* With itself, which tells a NaN from a number and makes compilers warn. */
static Value comparison(Printer *p, const Type *type, const Value *args, const char *operator, bool differs) {
    const char *same = args[0].text;
    if (strcmp(same, args[1].text) != 0) return clike_infix(p, args, operator, LEVEL_comparison);
    if (type_is_float(type))
        return clike_value(clike_format(p, differs ? "isnan(%s)" : "!isnan(%s)", same), LEVEL_unary);
    Value parts[2] = {clike_infix(p, args, "-", LEVEL_sum), clike_value("0", LEVEL_primary)};
    return clike_infix(p, parts, differs ? "!=" : "==", LEVEL_comparison);
}

/* ---- conversion */

static Value to_float(Printer *p, const Type *from, const Type *to, Value value) {
    if (to->kind == TYPE_half) {
        if (type_is_float(from)) return clike_call(p, clike_helper(p, "slope_round_half"), &value, 1);
        return rounded(p, cast(p, "float", value), to);
    }
    if (from->kind == TYPE_half && to->kind == TYPE_float) return value;
    return cast(p, to->kind == TYPE_double ? "double" : "float", value);
}

static Value conversion(Printer *p, const Type *from, const Type *to, Value value) {
    Value against[2] = {value, clike_value(type_is_float(from) ? "0.0f" : "0", LEVEL_primary)};
    if (from == to) return value;
    if (to->kind == TYPE_bool) return clike_infix(p, against, "!=", LEVEL_comparison);
    if (type_is_float(to)) return to_float(p, from, to, value);
    if (type_is_float(from))
        return clike_call(p, clike_helper(p, clike_format(p, "slope_to_%s", clike_word(p, to))), &value, 1);
    Value result = cast(p, clike_type(p, to), value), bits = cast(p, wrapping_type(to), value);
    if (!type_is_signed(to)) return result;
    if (type_bits(to) == 64 && type_bits(from) == 32) {
        result.narrow = value.text;
        result.narrow_level = value.level;
    }
    result.bits = bits.text;
    result.bits_level = bits.level;
    return result;
}

Value clike_choice(Printer *p, const Value *args) {
    const char *parts[3];
    for (int i = 0; i < 3; i++) parts[i] = clike_in(p, args[i], i ? LEVEL_comparison : LEVEL_logic);
    for (int i = 1; i < 3; i++)
        if (!is_literal(args[3 - i].text)) parts[i] = clike_short(p, parts[i]);
    if (args[2].level == LEVEL_choice) parts[2] = args[2].text;
    return clike_value(clike_format(p, "%s ? %s : %s", parts[0], parts[1], parts[2]), LEVEL_choice);
}

/* In a loop that goes ways clang branches if it is told of a way that it is likely; gcc is told so for the
 * whole function (func.c). */
static Value choice(Printer *p, const Value *args, const Inst *inst) {
    if (!inst || !is_steered(p) || !inst_goes_ways(inst)) return clike_choice(p, args);
    const Value told[] = {clike_call(p, clike_helper(p, "SLOPE_LIKELY"), args, 1), args[1], args[2]};
    return clike_choice(p, told);
}

static Value bit_function(Printer *p, Op op, const Type *from, const Value *args) {
    const char *name = clike_format(p, "slope_%s_%s", op_info[op].name, clike_word(p, from));
    return clike_call(p, clike_helper(p, name), args, 1);
}

/* A product or quotient that is zero if its factor or dividend is. */
static Value unless_zero(Printer *p, Op op, const Type *type, const Value *args, const Inst *inst) {
    bool loose = is_steered(p), in_turn = inst && clike_is_in_open_loop(inst);
    if (loose) clike_helper(p, "SLOPE_CHOOSES_EARLY");
    if (loose && in_turn && op == OP_scale) {
        clike_helper(p, "SLOPE_STAYS");
        clike_helper(p, "SLOPE_LIKELY");
    }
    const char *what = !loose ? op_info[op].name : op != OP_scale ? "over" : in_turn ? "weigh" : "times";
    const char *name = clike_format(p, "slope_%s_%s", what, clike_word(p, type));
    return rounded(p, clike_call(p, clike_helper(p, name), args, 2), type);
}

/* Where vectors of it are wanted: rows.c. */
static const char *cosine(Printer *p, const Inst *inst, const Type *type) {
    bool is_wanted = inst->op == OP_cos && type_is_float(type) && clike_is_called_in_rows(p, inst);
    return is_wanted ? clike_format(p, "slope_cos_alone_%s", clike_word(p, type))
                     : clike_cosine_apart(p, inst, type);
}

static const char *library_name(Op op) { return op == OP_round ? "rint" : op_info[op].name; }

/* A function of the C library, or what is written for loops instead. */
static Value elementary(Printer *p, Op op, const Type *type, const Value *args, const Inst *inst) {
    Value call = library(p, library_name(op), type, args, op_info[op].nargs); /* declares it, too */
    if (inst && clike_tried_sine(p, inst, args[0], &call)) return call;
    const char *written = inst ? clike_computed_in_place(p, inst, type) : NULL;
    if (inst && !written) written = cosine(p, inst, type);
    return written ? clike_call(p, clike_helper(p, written), args, 1) : call;
}

Value clike_scalar_op(Printer *p, Op op, const Type *from, const Type *to, const Value *args,
                      const Inst *inst) {
    switch (op) {
    case OP_add: return arithmetic(p, from, args, "+", LEVEL_sum, inst);
    case OP_sub: return arithmetic(p, from, args, "-", LEVEL_sum, inst);
    case OP_mul: return arithmetic(p, from, args, "*", LEVEL_product, inst);
    case OP_div:
    case OP_rem: return division(p, op, from, args, inst);
    case OP_scale:
    case OP_ratio: return unless_zero(p, op, from, args, inst);
    case OP_neg: return negation(p, from, args);
    case OP_min: return extreme(p, from, args, inst, false);
    case OP_max: return extreme(p, from, args, inst, true);
    case OP_abs: return magnitude(p, from, args);
    case OP_and: return bitwise(p, from, args, "&", "&&");
    case OP_or: return bitwise(p, from, args, "|", "||");
    case OP_xor: return bitwise(p, from, args, "^", "!=");
    case OP_not: return complement(p, from, args);
    case OP_shl:
    case OP_shr: return shift(p, op, from, args, inst);
    case OP_countbits:
    case OP_firstbithigh:
    case OP_firstbitlow:
    case OP_reversebits: return bit_function(p, op, from, args);
    case OP_eq: return comparison(p, from, args, "==", false);
    case OP_ne: return comparison(p, from, args, "!=", true);
    case OP_lt: return clike_infix(p, args, "<", LEVEL_comparison);
    case OP_le: return comparison(p, from, args, "<=", false);
    case OP_isnan: return clike_call(p, "isnan", args, 1);
    case OP_any:
    case OP_all:
    case OP_detach: return args[0];
    case OP_select: return choice(p, args, inst);
    case OP_convert: return conversion(p, from, to, args[0]);
    case OP_ldexp:
    case OP_fma: return library(p, library_name(op), from, args, op == OP_fma ? 3 : 2);
    default: break;
    }
    if (op < OP_sqrt || op > OP_copysign)
        clike_fail(p, inst ? inst->loc : 0, "'%s' has no form in C", op_info[op].name);
    return elementary(p, op, from, args, inst);
}
