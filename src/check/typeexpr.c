/* Types and the numbers in them, from the expressions that spell them. */
#include "check/checker.h"

const char *type_str(Checker *c, const Type *type) { return type_text(c->arena, type); }

const char *declared_name(Checker *c, const Type *type) {
    bool generic = (type->kind == TYPE_struct || type->kind == TYPE_interface) && type->nargs;
    return generic ? ((const Decl *)type->decl)->name->text : type_str(c, type);
}

const char *range_text(Checker *c, int least, int most, const char *noun) {
    if (most < 0) return format_text(c->arena, "at least %d %s%s", least, noun, least == 1 ? "" : "s");
    if (least != most) return format_text(c->arena, "%d to %d %ss", least, most, noun);
    if (least == 0) return format_text(c->arena, "no %ss", noun);
    return format_text(c->arena, "%d %s%s", least, noun, least == 1 ? "" : "s");
}

const Type *type_with_major(Checker *c, const Type *type, bool column_major) {
    if (type->kind == TYPE_matrix)
        return type_make(c->types, TYPE_matrix, column_major ? TYPE_COLUMN_MAJOR : 0, NULL, NULL, 0,
                         type->args, type->nargs);
    if (type->kind != TYPE_array) return type;
    const Type *args[2] = {type_with_major(c, type->args[0], column_major),
                           type->nargs > 1 ? type->args[1] : NULL};
    return type_make(c->types, TYPE_array, 0, NULL, NULL, 0, args, type->nargs);
}

/* ---- names of built-in scalars, vectors and matrices */

static const struct {
    const char *name;
    TypeKind kind;
} scalar_names[] = {
    {"void", TYPE_void},       {"bool", TYPE_bool},        {"int8_t", TYPE_int8},
    {"uint8_t", TYPE_uint8},   {"int16_t", TYPE_int16},    {"uint16_t", TYPE_uint16},
    {"int", TYPE_int},         {"uint", TYPE_uint},        {"int64_t", TYPE_int64},
    {"uint64_t", TYPE_uint64}, {"half", TYPE_half},        {"float", TYPE_float},
    {"double", TYPE_double},   {"int32_t", TYPE_int},      {"uint32_t", TYPE_uint},
    {"float16_t", TYPE_half},  {"float32_t", TYPE_float},  {"float64_t", TYPE_double},
    {"size_t", TYPE_uint64},   {"usize_t", TYPE_uint64},   {"ssize_t", TYPE_int64},
    {"intptr_t", TYPE_int64},  {"uintptr_t", TYPE_uint64}, {"ptrdiff_t", TYPE_int64},
    {"uint64", TYPE_uint64},   {"int64", TYPE_int64},      {"uint32", TYPE_uint},
    {"int32", TYPE_int},       {"uint16", TYPE_uint16},    {"int16", TYPE_int16},
    {"uint8", TYPE_uint8},     {"int8", TYPE_int8},        {"min16float", TYPE_half},
    {"min16int", TYPE_int16},  {"min16uint", TYPE_uint16}, {"dword", TYPE_uint},
    {"unsigned", TYPE_uint},   {"min10float", TYPE_half},  {"min12int", TYPE_int16},
};

static bool is_lane_count(char digit) { return digit >= '1' && digit <= '4'; }

/* Splits `float3x4` into `float`, 3, 4; counts are 0 where absent. */
static Str split_shape(Name name, int *rows, int *columns) {
    Str s = {name->text, name->len};
    *rows = *columns = 0;
    if (s.len >= 4 && is_lane_count(s.at[s.len - 1]) && s.at[s.len - 2] == 'x' &&
        is_lane_count(s.at[s.len - 3])) {
        *columns = s.at[s.len - 1] - '0';
        *rows = s.at[s.len - 3] - '0';
        s.len -= 3;
    } else if (s.len >= 2 && is_lane_count(s.at[s.len - 1])) {
        *rows = s.at[s.len - 1] - '0';
        s.len -= 1;
    }
    return s;
}

static const Type *scalar_named(Checker *c, Str s) {
    for (size_t i = 0; i < sizeof scalar_names / sizeof scalar_names[0]; i++)
        if (str_eq(s, str_of(scalar_names[i].name))) return type_basic(c->types, scalar_names[i].kind);
    return NULL;
}

static const Type *find_builtin_named(Checker *c, Name name) {
    const Type *scalar = scalar_named(c, (Str){name->text, name->len});
    if (scalar) return scalar;
    if (strcmp(name->text, "none_t") == 0) return type_basic(c->types, TYPE_none);
    int rows, columns;
    Str base = split_shape(name, &rows, &columns);
    scalar = rows ? scalar_named(c, base) : NULL;
    if (!scalar || scalar->kind == TYPE_void) return NULL;
    return columns ? type_matrix(c->types, scalar, rows, columns) : type_vector(c->types, scalar, rows);
}

const Type *builtin_named_type(Checker *c, Name name) {
    const Type *known = map_get(&c->named_types, PTR_KEY(name));
    if (known) return known;
    const Type *found = find_builtin_named(c, name);
    if (found) map_put(c->arena, &c->named_types, PTR_KEY(name), (void *)(uintptr_t)found);
    return found;
}

/* ---- numbers */

static bool lacks_value(const Decl *decl) {
    uint32_t constant = MODIFIER_static | MODIFIER_const, kind = constant | MODIFIER_extern;
    bool required = decl->parent && decl->parent->kind == DECL_interface;
    return decl->kind == DECL_var && !decl->init && (decl->modifiers & kind) == constant && !required;
}

/* Constants whose own value is wrong, or not there: told there. */
static bool mentions_bad_constant(Checker *c, const Expr *e) {
    if (e->kind == EXPR_decl && lacks_value(e->decl)) return true;
    if (e->kind == EXPR_decl && e->decl->kind == DECL_var && e->decl->init) {
        check_constant_cycle(c, e->decl);
        if (e->decl->init->kind == EXPR_error) return true;
    }
    if (e->a && mentions_bad_constant(c, e->a)) return true;
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i] && mentions_bad_constant(c, e->args.at[i])) return true;
    return false;
}

void report_not_number(Checker *c, const Expr *e) {
    if (mentions_bad_constant(c, e)) return;
    bool integral = !type_is_float(e->type) && (type_is_scalar(e->type) || e->type->kind == TYPE_enum);
    if (integral || type_is_abstract(e->type)) report_expr(c, e, DIAG_not_constant);
    else report_expr(c, e, DIAG_needs_integer, type_str(c, e->type));
}

const Type *resolve_number(Env *env, Expr *expr) {
    Checker *c = env->c;
    Expr *e = check_value(env, expr);
    if (e->kind == EXPR_error || has_error(e->type)) return ERROR_TYPE(c);
    const Type *number = number_node(env, e);
    if (number) return number;
    report_not_number(c, e);
    return ERROR_TYPE(c);
}

/* ---- generic application */

const Type *resolve_generic_arg(Env *env, Decl *param, Expr *expr) {
    if (param->kind == DECL_value_param) return resolve_number(env, expr);
    return resolve_type(env, expr);
}

static int required_generics(const Decl *decl) {
    int n = 0;
    for (int i = 0; i < decl->generics->params.count; i++) {
        const Decl *param = decl->generics->params.at[i];
        n += !param->init && !(param->modifiers & (MODIFIER_pack | MODIFIER_synthesized));
    }
    return n;
}

static const Type *alias_target(Checker *c, Decl *decl, const Subst *subst) {
    ensure_header(c, decl);
    return check_subst(c, decl->type, subst);
}

/* Of an array or buffer, vector or matrix, as far as it is known already. */
static bool check_shape(Checker *c, const Type *type, Loc loc) {
    bool holds = type->kind == TYPE_array || type->kind == TYPE_buffer;
    if (holds && type->nargs && type->args[0]->kind == TYPE_void) {
        report(c, DIAG_void_element, loc, type->kind == TYPE_array ? "an array" : "a buffer");
        return false;
    }
    if (type->kind != TYPE_vector && type->kind != TYPE_matrix) return true;
    const Type *element = type->args[0];
    if (!type_is_scalar(element) && !(element->flags & TYPE_HAS_PARAM)) {
        report(c, DIAG_shape_element, loc, type_str(c, element));
        return false;
    }
    for (int i = 1; i < type->nargs; i++) {
        int64_t n;
        if (!type_is_number(type->args[i], &n) || (n >= 1 && n <= 4)) continue;
        report(c, DIAG_shape_size, loc);
        return false;
    }
    return true;
}

static bool names_enum(const Type *type, const char *name) {
    const Decl *decl = type && type->kind == TYPE_enum ? type->decl : NULL;
    return decl && (decl->flags & DECL_PRELUDE) && strcmp(decl->name->text, name) == 0;
}

/* StructuredBuffer<T, ScalarDataLayout>: here things lie in memory in one way. */
static bool is_data_layout(const Type *type) {
    const Decl *decl = type->kind == TYPE_struct ? type->decl : NULL;
    return decl && (decl->flags & DECL_PRELUDE) && str_ends(str_of(decl->name->text), "DataLayout");
}

/* Ptr<T, Access, AddressSpace>: a pointer to read from, or any other; the space makes no difference here. */
static const Type *pointer_with_access(Env *env, Loc loc, const Type *const *args, const Type *const *values,
                                       int nargs) {
    Checker *c = env->c;
    bool fits = nargs <= 3 && !values[0] && names_enum(values[1], "Access") &&
                (nargs < 3 || names_enum(values[2], "AddressSpace"));
    int64_t access;
    if (!fits) {
        report(c, DIAG_pointer_arguments, loc);
        return ERROR_TYPE(c);
    }
    uint32_t readonly = type_is_number(args[1], &access) && access != 0 ? TYPE_READONLY : 0;
    return type_make(c->types, TYPE_pointer, readonly, NULL, NULL, 0, args, 1);
}

/* What is left of a list, for the packs from parameter `first` on. */
static bool take_packs(Checker *c, Loc loc, Inference *inference, int first, const Type *const *args,
                       const Type *const *values, int nargs) {
    const Type **fitting = arena_array(c->arena, const Type *, nargs);
    Decl *param = generic_param(inference->owner, first);
    for (int i = 0; i < nargs; i++) {
        fitting[i] = generic_arg_for(c, inference->owner, param, args[i], values[i], loc);
        if (!fitting[i]) return false;
    }
    if (pack_share(c, inference->owner, first, fitting, nargs, inference->args)) return true;
    report(c, DIAG_packs_share, loc, inference->owner->name->text, nargs);
    return false;
}

/* The arguments of a list, put to their parameters. */
static bool take_arguments(Checker *c, Loc loc, Inference *inference, int first, const Type *const *args,
                           const Type *const *values, int nargs) {
    const Decl *decl = inference->owner;
    int given = 0;
    for (int i = first; i < inference->nargs && given < nargs; i++) {
        Decl *param = generic_param(decl, i);
        if (param->modifiers & MODIFIER_pack) {
            inference->given = inference->nargs;
            return take_packs(c, loc, inference, i, args + given, values + given, nargs - given);
        }
        inference->args[i] = generic_arg_for(c, decl, param, args[given], values[given], loc);
        if (!inference->args[i]) return false;
        given++;
    }
    inference->given = first + given;
    if (given == nargs) return true;
    report(c, DIAG_too_many_generic_args, loc, decl->name->text,
           count_text(c, inference->nargs - first, "generic argument"), nargs);
    return false;
}

const Type *apply_generic_type(Env *env, Loc loc, Decl *decl, const Subst *outer, const Type *const *args,
                               const Type *const *values, int nargs) {
    Checker *c = env->c;
    int builtin_kind = decl->flags & DECL_PRELUDE ? decl_sema(c, decl)->builtin_kind : 0;
    if (builtin_kind == TYPE_pointer && nargs > 1) return pointer_with_access(env, loc, args, values, nargs);
    if (builtin_kind == TYPE_buffer && nargs == 2 && !values[1] && is_data_layout(args[1])) nargs = 1;
    if (builtin_kind == TYPE_matrix && nargs == 4 && values[3]) nargs = 3; /* the last is the layout */
    int n = generic_count(decl), first = decl->kind == DECL_interface ? 1 : 0;
    Inference inference = {
        .c = c, .owner = decl, .args = arena_array(c->arena, const Type *, n ? n : 1), .nargs = n};
    if (first) inference.args[0] = param_type(c, decl, 0);
    if (!take_arguments(c, loc, &inference, first, args, values, nargs)) return ERROR_TYPE(c);
    for (int i = 0; i < n; i++)
        if (inference.args[i] && is_error(inference.args[i])) return ERROR_TYPE(c);
    const Subst *subst;
    if (n == 0) subst = outer;
    else if (!infer_finish(&inference, outer, &subst)) {
        report(c, DIAG_too_few_generic_args, loc, decl->name->text,
               count_text(c, required_generics(decl), "generic argument"), nargs);
        return ERROR_TYPE(c);
    }
    if (decl->generics && !constraints_hold(c, decl, subst, loc)) return ERROR_TYPE(c);
    for (int i = first; i < n && !(decl->flags & DECL_PRELUDE); i++) {
        const Type *arg = subst_find(subst, decl, i);
        if (arg && arg->kind == TYPE_interface &&
            !interface_as_argument(c, decl, param_type(c, decl, i), loc))
            return ERROR_TYPE(c);
    }
    if (decl->flags & DECL_PRELUDE) {
        const Type *shape = type_with_subst(c, decl, subst);
        if (!check_shape(c, shape, loc)) return ERROR_TYPE(c);
    }
    return decl->kind == DECL_alias ? alias_target(c, decl, subst) : type_with_subst(c, decl, subst);
}

/* ---- entry */

const Type *resolve_type(Env *env, Expr *expr) {
    Checker *c = env->c;
    if (expr->kind == EXPR_type && expr->type_value) return expr->type_value;
    uint32_t context = expr->flags & EXPR_TYPE_CONTEXT;
    expr->flags |= EXPR_TYPE_CONTEXT;
    Loc loc = expr->loc;
    Expr *e = check_term(env, expr);
    (void)context;
    if (e->kind == EXPR_error) return ERROR_TYPE(c);
    if (e->kind != EXPR_type) {
        report(c, DIAG_not_a_type, loc);
        return ERROR_TYPE(c);
    }
    if (!e->type_value) { /* a generic type without its arguments */
        const Type *type = apply_generic_type(
            env, loc, e->decl, e->candidates ? e->candidates->at[0].subst : NULL, NULL, NULL, 0);
        *expr = *type_expr(c, loc, type);
        return type;
    }
    if (e != expr) *expr = *e;
    return e->type_value;
}
