/* Numbers that depend on generic parameters: sizes and values in types, and what they become once the
 * parameters are known.
 *
 * A sum of products is kept in a normal form (type.h), so that N + 1 and 1 + N are one node. Everything else
 * is an operator applied to nodes, opaque until all of them are numbers. */
#include "check/checker.h"

/* Beyond the operators of the language. */
enum {
    NUMBER_countof = OPERATOR_COUNT,
    NUMBER_select,
    NUMBER_sizeof,
    NUMBER_alignof,
    NUMBER_numbersof,
    NUMBER_min,
    NUMBER_max,
    NUMBER_abs,
    NUMBER_is,
};

static const Type *number_of(Env *env, Expr *e);

static const Type *apply(Checker *c, int code, const char *name, const Type *const *args, int nargs) {
    return type_make(c->types, TYPE_apply, 0, NULL, name_from(c->names, name), code, args, nargs);
}

/* An operator on operands of a type, which decides how it is computed: kept as the node's declaration. */
static const Type *apply_operator(Checker *c, const Expr *e, const Type *const *args) {
    const Type *operands = scalar_operands(c, e->args.at[0]->type);
    const char *name = operator_text((Operator)e->op);
    return type_make(c->types, TYPE_apply, 0, operands, name_from(c->names, name), e->op, args,
                     e->args.count);
}

static const Type *number_of_operator(Env *env, Expr *e) {
    Types *types = env->c->types;
    const Type *args[2] = {number_of(env, e->args.at[0])};
    if (!args[0]) return NULL;
    if (e->args.count == 1) {
        if (e->op == OPERATOR_sub) return type_multiply(types, type_number(types, -1), args[0]);
        return e->op == OPERATOR_add ? args[0] : apply_operator(env->c, e, args);
    }
    args[1] = number_of(env, e->args.at[1]);
    if (!args[1]) return NULL;
    switch ((Operator)e->op) {
    case OPERATOR_add: return type_add(types, args[0], args[1]);
    case OPERATOR_sub: return type_add(types, args[0], type_multiply(types, type_number(types, -1), args[1]));
    case OPERATOR_mul: return type_multiply(types, args[0], args[1]);
    default: return apply_operator(env->c, e, args);
    }
}

static const Type *number_of_decl(Env *env, Expr *e) {
    Decl *decl = e->decl;
    if (decl->kind == DECL_value_param) {
        Decl *owner = decl->parent;
        for (int i = 0; i < generic_count(owner); i++)
            if (generic_param(owner, i) == decl) return param_type(env->c, owner, i);
    }
    if (decl->kind == DECL_var && decl->parent && decl->parent->kind == DECL_interface) {
        const Type *self =
            subst_find(e->subst, decl->parent, 0); /* T.size, a constant that an interface requires */
        bool integral = type_is_integer(e->type) || e->type->kind == TYPE_bool || e->type->kind == TYPE_enum;
        return self && integral ? assoc_of(env->c, self, decl, e->subst) : NULL;
    }
    bool constant = decl->kind == DECL_var && (decl->modifiers & MODIFIER_const) && decl->init &&
                    decl->flavour != VAR_param;
    if (constant && !(decl->flags & DECL_BUSY_CONST)) {
        check_decl_body(env->c, decl);
        decl->flags |= DECL_BUSY_CONST;
        const Type *value = number_of(env, decl->init);
        decl->flags &= ~(uint32_t)DECL_BUSY_CONST;
        return value && e->subst ? check_subst(env->c, value, e->subst) : value;
    }
    return NULL;
}

/* Of a pack that is not known yet. */
const Type *number_countof(Checker *c, const Type *pack) {
    return apply(c, NUMBER_countof, "countof", &pack, 1);
}

const Type *number_is_not_zero(Checker *c, const Type *number) {
    const Type *args[2] = {number, type_number(c->types, 0)};
    TypeVec operands = {.at = args, .count = 2};
    return number_apply(c, apply(c, OPERATOR_not_equal, "!=", args, 2), &operands);
}

static const Type *count_of(Checker *c, const Type *type) {
    if (type->kind == TYPE_array || type->kind == TYPE_vector) return type->nargs > 1 ? type->args[1] : NULL;
    return pack_count(c, type);
}

/* A pack of values that are constants, as a pack of numbers; NULL: it is none. */
const Type *pack_of_numbers(Env *env, Expr *e) {
    if (e->kind != EXPR_expand) return NULL;
    const Type *number = number_of(env, e->a);
    return number ? pack_slice(env->c, pack_expand(env->c, number), (int64_t)e->number) : NULL;
}

/* each D of a pack of values, each __trimFirst(D) */
static const Type *number_of_each(Env *env, Expr *e) {
    if (e->a->kind == EXPR_expand) {
        const Type *pack = pack_of_numbers(env, e->a);
        return pack && pack->kind == TYPE_expand ? pack->args[0] : NULL;
    }
    const Type *pack =
        e->a->kind == EXPR_decl && e->a->decl->kind == DECL_value_param ? number_of_decl(env, e->a) : NULL;
    return pack ? pack_each(env->c, pack) : NULL;
}

/* __first(D) */
static const Type *number_of_end(Env *env, Expr *e) {
    const Type *pack = pack_of_numbers(env, e->a);
    return pack ? pack_at(env->c, pack, e->number == PACK_first ? 0 : -1) : NULL;
}

static const Type *size_of(Env *env, const Expr *e) {
    Checker *c = env->c;
    const Type *type = e->a->kind == EXPR_type ? e->a->type_value : e->a->type;
    if (e->kind == EXPR_countof) {
        const Type *pack = e->a->kind == EXPR_type ? NULL : pack_of_numbers(env, e->a);
        return count_of(c, pack ? pack : type);
    }
    if (!(type->flags & TYPE_HAS_PARAM)) return NULL;
    if (e->number) return apply(c, NUMBER_numbersof, "__numbersof", &type, 1);
    bool size = e->kind == EXPR_sizeof;
    return apply(c, size ? NUMBER_sizeof : NUMBER_alignof, size ? "sizeof" : "alignof", &type, 1);
}

static const Type *number_of_choice(Env *env, Expr *condition, Expr *value, const Type *rest) {
    const Type *args[3] = {number_of(env, condition), number_of(env, value), rest};
    return args[0] && args[1] && rest ? apply(env->c, NUMBER_select, "select", args, 3) : NULL;
}

static const Type *number_of_select(Env *env, Expr *e) {
    const Type *rest = number_of(env, e->c);
    for (int i = e->args.count - 2; i >= 0 && rest; i -= 2)
        rest = number_of_choice(env, e->args.at[i], e->args.at[i + 1], rest);
    return number_of_choice(env, e->a, e->b, rest);
}

/* T is float */
static const Type *number_of_is(Env *env, const Expr *e) {
    const Type *args[2] = {e->a->kind == EXPR_type ? e->a->type_value : NULL, e->b->type_value};
    return args[0] ? apply(env->c, NUMBER_is, "is", args, 2) : NULL;
}

/* min, max and abs of the library, and getCount */
static const Type *number_of_call(Env *env, Expr *e) {
    static const struct {
        const char *name;
        int code, nargs;
    } known[] = {{"min", NUMBER_min, 2}, {"max", NUMBER_max, 2}, {"abs", NUMBER_abs, 1}};
    if (!(e->decl->flags & DECL_PRELUDE) || !e->decl->name || e->nmodes || !type_is_integer(e->type))
        return NULL;
    const Type *count = counted_elements(e);
    if (count) return count;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, e->decl->name->text) != 0 || e->args.count != known[i].nargs) continue;
        const Type *args[2] = {0};
        for (int k = 0; k < known[i].nargs; k++)
            if (!e->args.at[k] || !(args[k] = number_of(env, e->args.at[k]))) return NULL;
        return apply(env->c, known[i].code, known[i].name, args, known[i].nargs);
    }
    return NULL;
}

static const Type *number_of_convert(Env *env, Expr *e) {
    const Type *args[2] = {number_of(env, e->a), type_number(env->c->types, 0)};
    if (!args[0] || type_is_integer(e->type) || e->type->kind == TYPE_enum) return args[0];
    return e->type->kind == TYPE_bool ? apply(env->c, OPERATOR_not_equal, "!=", args, 2) : NULL;
}

static const Type *number_of(Env *env, Expr *e) {
    int64_t value;
    if (e->kind == EXPR_invoke) diag_portable(env->c->diags, e->loc, "a call where a constant is wanted");
    if (eval_number(env, e, &value)) return type_number(env->c->types, value);
    switch ((ExprKind)e->kind) {
    case EXPR_decl: return number_of_decl(env, e);
    case EXPR_builtin: return number_of_operator(env, e);
    case EXPR_each: return number_of_each(env, e);
    case EXPR_end: return number_of_end(env, e);
    case EXPR_paren: return number_of(env, e->a);
    case EXPR_convert: return number_of_convert(env, e);
    case EXPR_select: return number_of_select(env, e);
    case EXPR_invoke: return number_of_call(env, e);
    case EXPR_is: return number_of_is(env, e);
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: return size_of(env, e);
    default: return NULL;
    }
}

/* A checked expression as a node of the type language; NULL: it is not constant, or, as 1 / 0, has no
 * value. */
const Type *number_node(Env *env, Expr *checked) {
    const Type *number = number_of(env, checked);
    bool open = number && number->kind == TYPE_apply && !(number->flags & TYPE_HAS_PARAM);
    return open ? NULL : number;
}

bool number_is_generic(Env *env, Expr *checked) { return number_of(env, checked) != NULL; }

/* ---- once the parameters are known */

static bool apply_numbers(int code, const int64_t *n, int count, const Type *operands, int64_t *value) {
    switch (code) {
    case NUMBER_select: *value = n[0] ? n[1] : n[2]; return true;
    case NUMBER_min: *value = n[0] < n[1] ? n[0] : n[1]; return true;
    case NUMBER_max: *value = n[0] > n[1] ? n[0] : n[1]; return true;
    case NUMBER_abs: *value = n[0] < 0 ? (int64_t)(0 - (uint64_t)n[0]) : n[0]; return true;
    case OPERATOR_not: *value = !n[0]; return true;
    case OPERATOR_bit_not: *value = ~n[0]; return true;
    default:
        if (count != 2 || !eval_operator((Operator)code, n[0], n[1], operands, value)) return false;
        *value = number_wrap(*value, operands);
        return true;
    }
}

/* The number that an applied operator has become with these operands, or the operator applied to them. */
const Type *number_apply(Checker *c, const Type *type, const TypeVec *args) {
    int code = (int)type->number;
    int64_t numbers[3], value;
    bool known = args->count <= 3;
    for (int i = 0; i < args->count && known; i++) known = type_is_number(args->at[i], &numbers[i]);
    const Type *operands = type->decl ? type->decl : type_basic(c->types, TYPE_int64);
    if (known && apply_numbers(code, numbers, args->count, operands, &value))
        return type_number(c->types, value);
    if (code == NUMBER_countof) {
        const Type *count = count_of(c, args->at[0]);
        return count ? count : ERROR_TYPE(c);
    }
    bool concrete = !(args->at[0]->flags & TYPE_HAS_PARAM);
    if (code == NUMBER_numbersof && concrete && check_numbers(c, args->at[0], &value))
        return type_number(c->types, value);
    if (code == NUMBER_is && concrete && !(args->at[1]->flags & TYPE_HAS_PARAM))
        return type_number(c->types, check_type_is_a(c, args->at[0], args->at[1]));
    Layout layout;
    bool size = code == NUMBER_sizeof || code == NUMBER_alignof;
    if (size && concrete && check_layout(c, args->at[0], &layout))
        return type_number(c->types, code == NUMBER_sizeof ? layout.size : layout.align);
    return type_make(c->types, TYPE_apply, 0, type->decl, type->name, type->number, args->at, args->count);
}
