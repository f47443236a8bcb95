/* Values known at compile time: array sizes, enum cases, labels, attribute arguments. */
#include "check/checker.h"

#include <math.h>

typedef struct Constant {
    bool is_real;
    int64_t integer;
    double real;
} Constant;

/* On operands of `type`; false: it has no value. The result is not wrapped yet. */
bool eval_operator(Operator op, int64_t a, int64_t b, const Type *type, int64_t *value) {
    switch (op) {
    case OPERATOR_add: *value = (int64_t)((uint64_t)a + (uint64_t)b); return true;
    case OPERATOR_sub: *value = (int64_t)((uint64_t)a - (uint64_t)b); return true;
    case OPERATOR_mul: *value = (int64_t)((uint64_t)a * (uint64_t)b); return true;
    case OPERATOR_div: *value = number_divide(a, b, type); return b != 0;
    case OPERATOR_mod: *value = number_remainder(a, b, type); return b != 0;
    case OPERATOR_bit_and: *value = a & b; return true;
    case OPERATOR_bit_or: *value = a | b; return true;
    case OPERATOR_bit_xor: *value = a ^ b; return true;
    case OPERATOR_shl: *value = number_shift_left(a, b, type); return true;
    case OPERATOR_shr: *value = number_shift_right(a, b, type); return true;
    case OPERATOR_and: *value = a && b; return true;
    case OPERATOR_or: *value = a || b; return true;
    case OPERATOR_less: *value = number_less(a, b, type); return true;
    case OPERATOR_greater: *value = number_less(b, a, type); return true;
    case OPERATOR_less_equal: *value = !number_less(b, a, type); return true;
    case OPERATOR_greater_equal: *value = !number_less(a, b, type); return true;
    case OPERATOR_equal: *value = a == b; return true;
    case OPERATOR_not_equal: *value = a != b; return true;
    case OPERATOR_comma: *value = b; return true;
    default: return false;
    }
}

bool constant_fits(int64_t value, const Type *type) { return number_wrap(value, type) == value; }

static bool eval(Env *env, Expr *e, Constant *out);
static Expr *known_part(Env *env, Expr *e);

static bool eval_convert(Env *env, Expr *e, Constant *out) {
    Constant from;
    if (!type_is_scalar(e->type) && e->type->kind != TYPE_enum) return false;
    if (!eval(env, e->a, &from)) return false;
    *out = from;
    if (e->type->kind == TYPE_enum) return !from.is_real;
    if (type_is_float(e->type)) {
        if (!from.is_real) out->real = (double)from.integer;
        out->is_real = true;
        if (e->type->kind == TYPE_float) out->real = (double)(float)out->real;
        return true;
    }
    if (from.is_real) {
        if (!(fabs(from.real) < 9e18)) return false;
        out->integer = e->type->kind == TYPE_bool ? from.real != 0 : (int64_t)from.real;
    }
    out->is_real = false;
    out->integer = number_wrap(out->integer, e->type);
    return true;
}

static bool eval_real(Operator op, double a, double b, Constant *out) {
    out->is_real = true;
    switch (op) {
    case OPERATOR_add: out->real = a + b; return true;
    case OPERATOR_sub: out->real = a - b; return true;
    case OPERATOR_mul: out->real = a * b; return true;
    case OPERATOR_div: out->real = a / b; return true;
    default: break;
    }
    out->is_real = false;
    switch (op) {
    case OPERATOR_less: out->integer = a < b; return true;
    case OPERATOR_greater: out->integer = a > b; return true;
    case OPERATOR_less_equal: out->integer = a <= b; return true;
    case OPERATOR_greater_equal: out->integer = a >= b; return true;
    case OPERATOR_equal: out->integer = a == b; return true;
    case OPERATOR_not_equal: out->integer = a != b; return true;
    default: return false;
    }
}

static bool eval_unary(Env *env, Expr *e, Constant *out) {
    if (!eval(env, e->args.at[0], out)) return false;
    switch ((Operator)e->op) {
    case OPERATOR_sub:
        out->real = -out->real;
        out->integer = out->is_real ? 0 : number_wrap((int64_t)(0 - (uint64_t)out->integer), e->type);
        return true;
    case OPERATOR_not: out->integer = !out->integer; return !out->is_real;
    case OPERATOR_bit_not: out->integer = number_wrap(~out->integer, e->type); return !out->is_real;
    default: return false;
    }
}

/* What is computed with: of an enum its underlying type. */
const Type *scalar_operands(Checker *c, const Type *type) {
    if (type->kind == TYPE_enum) type = check_enum_underlying(c, type);
    return type_is_scalar(type) ? type : type_basic(c->types, TYPE_int64);
}

static bool eval_binary(Env *env, Expr *e, Constant *out) {
    Constant a, b;
    if (!type_is_scalar(e->type) || !eval(env, e->args.at[0], &a)) return false;
    bool lazy = e->op == OPERATOR_and || e->op == OPERATOR_or;
    if (lazy && !a.is_real && (a.integer != 0) == (e->op == OPERATOR_or)) {
        *out = a;
        return true;
    }
    if (!eval(env, e->args.at[1], &b)) return false;
    if (a.is_real || b.is_real)
        return eval_real((Operator)e->op, a.is_real ? a.real : (double)a.integer,
                         b.is_real ? b.real : (double)b.integer, out);
    out->is_real = false;
    const Type *operands = scalar_operands(env->c, e->args.at[0]->type);
    if (!eval_operator((Operator)e->op, a.integer, b.integer, operands, &out->integer)) return false;
    out->integer = number_wrap(out->integer, e->type);
    return true;
}

enum { CONSTANT_new, CONSTANT_integer, CONSTANT_real, CONSTANT_unknown };

#define MAX_CHAIN 400 /* of constants that each need the next */

/* Found out once: a constant may be named often, and need others that need others. */
static bool eval_constant(Env *env, Decl *decl, Constant *out) {
    Checker *c = env->c;
    Sema *sema = decl_sema(c, decl);
    if (sema->constant == CONSTANT_new) {
        if (c->depth > MAX_CHAIN) {
            if (!c->too_deep) report(c, DIAG_too_deep, decl->loc);
            c->too_deep = true;
            return false;
        }
        c->depth++;
        check_decl_body(c, decl);
        decl->flags |= DECL_BUSY_CONST;
        bool known = eval(env, decl->init, out);
        decl->flags &= ~(uint32_t)DECL_BUSY_CONST;
        c->depth--;
        sema->constant = !known ? CONSTANT_unknown : out->is_real ? CONSTANT_real : CONSTANT_integer;
        if (known) sema->value = out->integer, sema->real_value = out->real;
    }
    *out = (Constant){sema->constant == CONSTANT_real, sema->value, sema->real_value};
    return sema->constant != CONSTANT_unknown;
}

static bool eval_decl(Env *env, Expr *e, Constant *out) {
    Decl *decl = e->decl;
    Checker *c = env->c;
    if (decl->kind == DECL_case) {
        if (decl->state == STATE_busy) report(c, DIAG_circular, decl->loc, decl->name->text);
        if (decl->state == STATE_busy) return false;
        ensure_header(c, decl);
        out->is_real = false;
        out->integer = decl_sema(c, decl)->value;
        return true;
    }
    bool constant = decl->kind == DECL_var && decl->init &&
                    (decl->modifiers & (MODIFIER_const | MODIFIER_let)) && decl->flavour != VAR_param;
    bool local_const = decl->flavour == VAR_local || (decl->modifiers & MODIFIER_static);
    bool required = decl->parent && decl->parent->kind == DECL_interface; /* it has another for other types */
    if (!constant || !local_const || required || (decl->flags & DECL_BUSY_CONST)) return false;
    return eval_constant(env, decl, out);
}

/* The bits of a floating number, as a signed integer of its size. */
static bool eval_bits(Constant from, const Type *type, Constant *out) {
    float narrow = (float)from.real;
    uint32_t bits;
    *out = (Constant){0};
    if (type->kind == TYPE_half) out->integer = (int16_t)half_from_double(from.real);
    else if (type->kind == TYPE_double) memcpy(&out->integer, &from.real, sizeof from.real);
    else {
        memcpy(&bits, &narrow, sizeof bits);
        out->integer = (int32_t)bits;
    }
    return from.is_real;
}

const Type *counted_elements(const Expr *call) {
    bool counts = call->a && (call->decl->flags & DECL_PRELUDE) && call->decl->name && !call->nmodes &&
                  strcmp(call->decl->name->text, "getCount") == 0;
    const Type *type = counts ? call->a->type : NULL;
    bool sized = type && (type->kind == TYPE_array || type->kind == TYPE_vector || type->kind == TYPE_matrix);
    return sized && type->nargs > 1 ? type->args[1] : NULL;
}

static bool eval_call(Env *env, Expr *e, Constant *out) {
    const Type *count = counted_elements(e);
    if (count) {
        out->is_real = false;
        return type_is_number(count, &out->integer);
    }
    if (!(e->decl->flags & DECL_PRELUDE) || e->args.count == 0 || e->args.count > 3 || e->nmodes)
        return false;
    Constant args[3];
    for (int i = 0; i < e->args.count; i++)
        if (!e->args.at[i] || !type_is_scalar(e->args.at[i]->type) || !eval(env, e->args.at[i], &args[i]))
            return false;
    const char *name = e->decl->name->text;
    if (strcmp(name, "__floatAsInt") == 0) return eval_bits(args[0], e->args.at[0]->type, out);
    for (int i = 0; i < e->args.count; i++)
        if (args[i].is_real) return false;
    int64_t a = args[0].integer, b = args[1].integer;
    out->is_real = false;
    const Type *type = e->args.at[0]->type;
    if (strcmp(name, "max") == 0 && e->args.count == 2) out->integer = number_less(a, b, type) ? b : a;
    else if (strcmp(name, "min") == 0 && e->args.count == 2) out->integer = number_less(a, b, type) ? a : b;
    else if (strcmp(name, "abs") == 0) out->integer = a < 0 ? -a : a;
    else return false;
    return true;
}

static bool eval_size(Env *env, Expr *e, Constant *out) {
    const Type *type = e->a->kind == EXPR_type ? e->a->type_value : e->a->type;
    Layout layout;
    out->is_real = false;
    if (e->kind == EXPR_countof) {
        if (type->kind == TYPE_tuple || type->kind == TYPE_pack) {
            for (int i = 0; i < type->nargs; i++)
                if (type->args[i]->kind == TYPE_expand) return false;
            out->integer = type->nargs;
            return true;
        }
        return (type->kind == TYPE_array || type->kind == TYPE_vector) && type->nargs > 1 &&
               type_is_number(type->args[1], &out->integer);
    }
    if (type->flags & TYPE_HAS_PARAM) return false;
    if (e->number) return check_numbers(env->c, type, &out->integer);
    if (!check_layout(env->c, type, &layout)) return false;
    out->integer = e->kind == EXPR_sizeof ? layout.size : layout.align;
    return true;
}

bool check_type_is_a(Checker *c, const Type *type, const Type *other) {
    return type == other || (other->kind == TYPE_interface && check_conforms(c, type, other, NULL));
}

static bool eval_is(Env *env, const Expr *e, Constant *out) {
    const Type *type = e->a->kind == EXPR_type ? e->a->type_value : NULL, *other = e->b->type_value;
    if (!type || (type->flags | other->flags) & TYPE_HAS_PARAM) return false;
    *out = (Constant){.integer = check_type_is_a(env->c, type, other)};
    return true;
}

/* ---- parts of constant aggregates */

static bool is_field(const Expr *e) {
    return e->kind == EXPR_decl && e->a && e->decl->kind == DECL_var &&
           !(e->decl->modifiers & MODIFIER_static);
}

/* The expression that an aggregate which is known, or a part of one, was made with; NULL: it is not known. */
static Expr *known_parts(Env *env, Expr *e) {
    if (e->kind == EXPR_paren) return known_parts(env, e->a);
    if (e->kind == EXPR_construct || e->kind == EXPR_default) return e;
    if (e->kind == EXPR_element || e->kind == EXPR_part || e->kind == EXPR_swizzle || is_field(e))
        return known_part(env, e);
    bool constant = e->kind == EXPR_decl && !e->a && e->decl->kind == DECL_var && e->decl->init &&
                    (e->decl->modifiers & (MODIFIER_const | MODIFIER_let)) && e->decl->flavour != VAR_param &&
                    (e->decl->flavour == VAR_local || (e->decl->modifiers & MODIFIER_static));
    bool required = constant && e->decl->parent && e->decl->parent->kind == DECL_interface;
    if (!constant || required || (e->decl->flags & DECL_BUSY_CONST)) return NULL;
    check_decl_body(env->c, e->decl);
    return e->decl->init->type ? known_parts(env, e->decl->init) : NULL;
}

static Expr *default_part(Env *env, const Expr *e) {
    if (is_field(e) && e->decl->init) {
        check_decl_body(env->c, e->decl);
        return e->decl->init->type ? e->decl->init : NULL;
    }
    Expr *zero = expr_new(env->c->arena, EXPR_default, e->loc);
    zero->type = e->type;
    return zero;
}

/* Which part it is; -1: that is not known. */
static int64_t part_number(Env *env, Expr *e) {
    Constant index;
    if (e->kind == EXPR_part) return (int64_t)e->number;
    if (e->kind == EXPR_swizzle) return e->nlanes == 1 && e->a->type->kind == TYPE_vector ? e->lanes[0] : -1;
    if (e->kind == EXPR_element) return eval(env, e->b, &index) && !index.is_real ? index.integer : -1;
    DeclVec fields = check_all_fields(env->c, e->a->type);
    for (int i = 0; i < fields.count; i++)
        if (fields.at[i] == e->decl) return i;
    return -1;
}

static Expr *known_part(Env *env, Expr *e) {
    Expr *whole = known_parts(env, e->a);
    int64_t index = whole ? part_number(env, e) : -1;
    if (index < 0) return NULL;
    if (whole->kind == EXPR_default) return default_part(env, e);
    bool lanes = whole->type->kind == TYPE_vector || whole->type->kind == TYPE_matrix;
    for (int i = 0; i < whole->args.count; i++) { /* an expansion may be any number of parts, a vector some */
        const Expr *arg = whole->args.at[i];
        if (arg && (arg->kind == EXPR_expand || (lanes && arg->type != e->type))) return NULL;
    }
    Expr *part = index < whole->args.count ? whole->args.at[index] : NULL;
    return part || !is_field(e) ? part : default_part(env, e);
}

static bool eval_part(Env *env, Expr *e, Constant *out) {
    Expr *part = known_part(env, e);
    return part && eval(env, part, out);
}

static bool eval_select(Env *env, Expr *e, Constant *out) {
    Expr *value = e->b;
    Constant condition;
    if (!eval(env, e->a, &condition)) return false;
    for (int i = 0; !condition.is_real && !condition.integer; i += 2) {
        if (i == e->args.count) return eval(env, e->c, out);
        if (!eval(env, e->args.at[i], &condition)) return false;
        value = e->args.at[i + 1];
    }
    return !condition.is_real && eval(env, value, out);
}

static bool eval(Env *env, Expr *e, Constant *out) {
    switch ((ExprKind)e->kind) {
    case EXPR_int:
    case EXPR_bool: *out = (Constant){.integer = (int64_t)e->number}; return true;
    case EXPR_float: *out = (Constant){.is_real = true, .real = e->real}; return true;
    case EXPR_paren: return eval(env, e->a, out);
    case EXPR_default: *out = (Constant){0}; return type_is_integer(e->type) || e->type->kind == TYPE_bool;
    case EXPR_decl: return is_field(e) ? eval_part(env, e, out) : eval_decl(env, e, out);
    case EXPR_convert: return eval_convert(env, e, out);
    case EXPR_builtin: return e->args.count == 1 ? eval_unary(env, e, out) : eval_binary(env, e, out);
    case EXPR_select: return eval_select(env, e, out);
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: return eval_size(env, e, out);
    case EXPR_is: return eval_is(env, e, out);
    case EXPR_invoke: return eval_call(env, e, out);
    case EXPR_element:
    case EXPR_swizzle:
    case EXPR_part: return eval_part(env, e, out);
    default: return false;
    }
}

/* ---- constants that need themselves */

static bool is_constant(const Decl *decl) {
    return decl->kind == DECL_var && decl->init && decl->flavour != VAR_param &&
           (decl->modifiers & MODIFIER_const) && (decl->modifiers & MODIFIER_static);
}

static bool needs_itself(Checker *c, Decl *decl);

static bool reaches_itself(Checker *c, const Expr *e) {
    if (e->kind == EXPR_decl && !e->a && is_constant(e->decl) && needs_itself(c, e->decl)) return true;
    const Expr *parts[] = {e->a, e->b, e->c};
    for (int i = 0; i < 3; i++)
        if (parts[i] && reaches_itself(c, parts[i])) return true;
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i] && reaches_itself(c, e->args.at[i])) return true;
    return false;
}

static bool needs_itself(Checker *c, Decl *decl) {
    if (decl->flags & DECL_NO_CYCLE) return false;
    if (decl->flags & DECL_BUSY_CONST) return true;
    if (c->depth > MAX_CHAIN) {
        if (!c->too_deep) report(c, DIAG_too_deep, decl->loc);
        c->too_deep = true;
        return false;
    }
    check_decl_body(c, decl);
    c->depth++;
    decl->flags |= DECL_BUSY_CONST;
    bool found = decl->init->type && reaches_itself(c, decl->init);
    decl->flags &= ~(uint32_t)DECL_BUSY_CONST;
    c->depth--;
    decl->flags |= DECL_NO_CYCLE; /* or told about now */
    return found;
}

void check_constant_cycle(Checker *c, Decl *decl) {
    if (!is_constant(decl)) return;
    if (!needs_itself(c, decl)) {
        Constant value;
        Env env = {.c = c};
        if (type_is_scalar(decl->type))
            eval_constant(&env, decl, &value); /* now, while those before it are known */
        return;
    }
    report(c, DIAG_circular, decl->loc, decl->name->text);
    decl->init = error_expr(c, decl->init->loc);
}

bool eval_number(Env *env, Expr *checked, int64_t *value) {
    Constant constant;
    if (!checked->type || has_error(checked->type) || !eval(env, checked, &constant) || constant.is_real)
        return false;
    *value = constant.integer;
    return true;
}

bool check_constant(Checker *c, Expr *expr, const Subst *subst, int element, int64_t *value) {
    Env env = {.c = c};
    if (eval_number(&env, expr, value)) return true;
    const Type *number = number_node(&env, expr);
    return number && type_is_number(check_subst_element(c, number, subst, element), value);
}

/* ---- sizes of front end types, by the natural rules of type/layout.c */

static int64_t round_up(int64_t n, int64_t align) { return (n + align - 1) / align * align; }

static bool add_part(Checker *c, const Type *type, Layout *sum) {
    Layout part;
    if (!check_layout(c, type, &part)) return false;
    sum->size = round_up(sum->size, part.align) + part.size;
    if (part.align > sum->align) sum->align = part.align;
    sum->stride = round_up(sum->size, sum->align);
    return true;
}

enum { MAX_LAYOUT_DEPTH = 300 };

static bool compute_layout(Checker *c, const Type *type, Layout *out) {
    *out = (Layout){0, 1, 0};
    int64_t rows, columns;
    switch (type->kind) {
    case TYPE_struct: {
        DeclVec fields = check_all_fields(c, type);
        if (c->layout_depth > MAX_LAYOUT_DEPTH) return false; /* it holds itself, or is refused by lowering */
        c->layout_depth++;
        bool known = true;
        const FieldSlot *slots = check_field_slots(c, type, &fields);
        for (int i = 0; i < fields.count && known; i++)
            if (slots[i].is_first) known = add_part(c, slots[i].word, out);
        c->layout_depth--;
        return known;
    }
    case TYPE_tuple:
        for (int i = 0; i < type->nargs; i++)
            if (!add_part(c, type->args[i], out)) return false;
        return true;
    case TYPE_array: {
        Layout element;
        if (type_length(type) < 0 || !check_layout(c, type->args[0], &element)) return false;
        *out =
            (Layout){type_length(type) * element.stride, element.align, type_length(type) * element.stride};
        return true;
    }
    case TYPE_matrix: {
        Layout element;
        if (!type_is_number(type->args[1], &rows) || !type_is_number(type->args[2], &columns)) return false;
        if (!check_layout(c, type->args[0], &element)) return false;
        *out = (Layout){rows * columns * element.size, element.align, rows * columns * element.size};
        return true;
    }
    case TYPE_vector:
        if (type->args[1]->kind != TYPE_number || !type_is_scalar(type->args[0])) return false;
        *out = type_layout(type, LAYOUT_scalar);
        return true;
    case TYPE_enum:
        ensure_header(c, (Decl *)(uintptr_t)type->decl);
        return check_layout(c, decl_sema(c, (Decl *)(uintptr_t)type->decl)->underlying, out);
    case TYPE_interface: { /* without [anyValueSize] it depends on the types that turn up */
        int64_t room = round_up(check_any_value_size(c, type), 8);
        *out = (Layout){16 + room, 8, 16 + room};
        return room > 0;
    }
    case TYPE_optional: {
        const Type *flag = type_basic(c->types, TYPE_bool);
        return add_part(c, type->args[0], out) && add_part(c, flag, out);
    }
    case TYPE_pair: {
        const Type *d = check_differential(c, type->args[0]);
        return d && add_part(c, type->args[0], out) && add_part(c, d, out);
    }
    case TYPE_pointer:
    case TYPE_buffer: *out = type_layout(type, LAYOUT_scalar); return true;
    default:
        if (!type_is_scalar(type)) return false;
        *out = type_layout(type, LAYOUT_scalar);
        return true;
    }
}

bool check_layout(Checker *c, const Type *type, Layout *out) {
    const Layout *known = map_get(&c->layouts, PTR_KEY(type));
    if (known) {
        *out = *known;
        return true;
    }
    if (!compute_layout(c, type, out)) return false;
    map_put(c->arena, &c->layouts, PTR_KEY(type), arena_copy(c->arena, out, sizeof *out));
    return true;
}

/* ---- how many floating numbers there are in a type */

static bool add_numbers(Checker *c, const Type *type, int64_t times, int64_t *sum) {
    int64_t part;
    if (times < 0 || !check_numbers(c, type, &part)) return false;
    *sum += times * part;
    return true;
}

bool check_numbers(Checker *c, const Type *type, int64_t *count) {
    int64_t rows, columns;
    *count = 0;
    switch (type->kind) {
    case TYPE_struct: {
        DeclVec fields = check_all_fields(c, type);
        const FieldSlot *slots = check_field_slots(c, type, &fields);
        for (int i = 0; i < fields.count; i++)
            if (slots[i].is_first && !add_numbers(c, slots[i].word, 1, count)) return false;
        return true;
    }
    case TYPE_tuple:
        for (int i = 0; i < type->nargs; i++)
            if (!add_numbers(c, type->args[i], 1, count)) return false;
        return true;
    case TYPE_array: return add_numbers(c, type->args[0], type_length(type), count);
    case TYPE_vector:
        return type_is_number(type->args[1], &rows) && add_numbers(c, type->args[0], rows, count);
    case TYPE_matrix:
        return type_is_number(type->args[1], &rows) && type_is_number(type->args[2], &columns) &&
               add_numbers(c, type->args[0], rows * columns, count);
    case TYPE_optional: return add_numbers(c, type->args[0], 1, count);
    case TYPE_pair: {
        const Type *d = check_differential(c, type->args[0]);
        return d && add_numbers(c, type->args[0], 1, count) && add_numbers(c, d, 1, count);
    }
    default: *count = type_is_float(type); return type_is_scalar(type) || type->kind == TYPE_enum;
    }
}
