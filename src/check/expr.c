/* Expressions. check_term turns what the parser built into checked nodes (see nodes.def): a value, a type, a
 * namespace or an overloaded function; operators, members, calls, conversions and constructors have files of
 * their own. */
#include "check/checker.h"

Expr *error_expr(Checker *c, Loc loc) {
    Expr *e = expr_new(c->arena, EXPR_error, loc);
    e->type = ERROR_TYPE(c);
    e->flags = EXPR_CHECKED;
    return e;
}

Expr *type_expr(Checker *c, Loc loc, const Type *type) {
    Expr *e = expr_new(c->arena, EXPR_type, loc);
    e->type_value = type;
    e->flags = EXPR_CHECKED;
    return e;
}

Expr *decl_expr(Checker *c, Loc loc, Decl *decl, const Subst *subst, Expr *base) {
    Expr *e = expr_new(c->arena, EXPR_decl, loc);
    e->decl = decl;
    e->name = decl->name;
    e->subst = subst;
    e->a = base;
    e->flags = EXPR_CHECKED;
    e->type = check_subst(c, decl_value_type(c, decl), subst);
    return e;
}

static bool expr_is_place(const Expr *e) { return (e->flags & EXPR_PLACE) != 0; }

/* ---- literals */

static TypeKind int_literal_kind(const Expr *e, bool *too_big) {
    uint64_t v = e->number;
    bool any_sign = (e->flags & EXPR_HEX) != 0;
    *too_big = false;
    switch ((LiteralSuffix)e->suffix) {
    case SUFFIX_ll: return v > INT64_MAX ? TYPE_uint64 : TYPE_int64;
    case SUFFIX_z: return TYPE_int64;
    case SUFFIX_ull:
    case SUFFIX_uz: return TYPE_uint64;
    case SUFFIX_u:
    case SUFFIX_ul: return v > UINT32_MAX ? TYPE_uint64 : TYPE_uint;
    default: break;
    }
    if (e->flags & EXPR_CHAR) return TYPE_uint;
    if (v <= INT32_MAX) return TYPE_int;
    if (any_sign && v <= UINT32_MAX) return TYPE_uint;
    if (v <= INT64_MAX) return TYPE_int64;
    *too_big = !any_sign;
    return TYPE_uint64;
}

static Expr *check_int(Env *env, Expr *e) {
    bool too_big;
    e->type = type_basic(env->c->types, int_literal_kind(e, &too_big));
    if (too_big) report_expr(env->c, e, DIAG_literal_too_big);
    return e;
}

static Expr *check_float(Env *env, Expr *e) {
    TypeKind kind = e->suffix == SUFFIX_h                             ? TYPE_half
                    : e->suffix == SUFFIX_lf || e->suffix == SUFFIX_l ? TYPE_double
                                                                      : TYPE_float;
    e->type = type_basic(env->c->types, kind);
    if (e->suffix == SUFFIX_none) note_large_number(env->c, e);
    return e;
}

/* ---- names */

static bool is_readonly_var(const Decl *decl) {
    if (decl->modifiers & (MODIFIER_const | MODIFIER_let | MODIFIER_constref)) return true;
    if (decl->flavour != VAR_global) return false;
    return !(decl->modifiers & (MODIFIER_static | MODIFIER_groupshared)); /* a shader parameter */
}

bool has_accessor(const Decl *decl, FuncFlavour flavour) {
    for (int i = 0; i < decl->members.count; i++)
        if (decl->members.at[i]->kind == DECL_func && decl->members.at[i]->flavour == flavour) return true;
    return false;
}

static bool setter_mutates(const Decl *decl) {
    if (decl_is_static(decl)) return false;
    for (int i = 0; i < decl->members.count; i++) {
        const Decl *member = decl->members.at[i];
        bool sets = member->kind == DECL_func && (member->flavour == FUNC_set || member->flavour == FUNC_ref);
        if (sets && find_attribute(member, "nonmutating")) return false;
    }
    return true;
}

static uint32_t place_flags(const Decl *decl, const Expr *base) {
    uint32_t of_base = base ? base->flags & (EXPR_PLACE | EXPR_READONLY) : EXPR_PLACE;
    switch ((DeclKind)decl->kind) {
    case DECL_var:
        if (decl->flavour == VAR_field && !(decl->modifiers & MODIFIER_static))
            return of_base | (is_readonly_var(decl) ? EXPR_READONLY : 0);
        return EXPR_PLACE | (is_readonly_var(decl) ? EXPR_READONLY : 0);
    case DECL_property:
    case DECL_subscript:
        if (!has_accessor(decl, FUNC_ref) && !has_accessor(decl, FUNC_set)) return EXPR_PLACE | EXPR_READONLY;
        return setter_mutates(decl) ? of_base : EXPR_PLACE;
    default: return 0;
    }
}

uint32_t decl_place_flags(const Decl *decl, const Expr *base) { return place_flags(decl, base); }

static bool needs_object(const Decl *decl) { return decl_type_around(decl) && !decl_is_static(decl); }

void report_deprecated(Checker *c, const Decl *decl, Loc loc) {
    if (!(decl->flags & DECL_DEPRECATED)) return;
    const Attribute *attribute = find_attribute(decl, "deprecated");
    const Expr *text = attribute && attribute->args.count ? attribute->args.at[0] : NULL;
    const char *why =
        text && text->kind == EXPR_string ? format_text(c->arena, ": %.*s", STR_ARG(text->text)) : "";
    report(c, DIAG_deprecated, loc, decl->name->text, why);
}

static Expr *value_of_decl(Env *env, Loc loc, const Candidate *found) {
    Checker *c = env->c;
    Decl *decl = found->decl;
    if (decl->kind == DECL_var && decl->flavour == VAR_local && !decl->type) {
        report(c, DIAG_used_before_declared, loc, decl->name->text);
        return error_expr(c, loc);
    }
    Expr *base = found->base;
    if (base && base->kind == EXPR_this && !base->type) base = check_term(env, base);
    if (needs_object(decl) && !base) {
        report(c, DIAG_needs_object, loc, decl->name ? decl->name->text : "[]");
        return error_expr(c, loc);
    }
    const Subst *subst = found->subst;
    if (decl->kind == DECL_property && base && decl->parent->kind == DECL_struct)
        base = as_base(env, base, check_subst(c, this_type_of(c, decl->parent), subst));
    if (decl->kind == DECL_var && decl->parent && decl->parent->kind == DECL_interface && !base) {
        const Type *self = subst_find(subst, decl->parent, 0);
        if (self && self->kind == TYPE_interface) {
            report(c, DIAG_static_of_interface, loc, decl->name->text, type_str(c, self));
            return error_expr(c, loc);
        }
    }
    bool local = decl->kind == DECL_var && decl->flavour == VAR_local;
    if (local && (decl->modifiers & MODIFIER_static))
        subst = subst_identity(c, decl->parent); /* one per specialisation of its function */
    Expr *e = decl_expr(c, loc, decl, subst, base);
    e->flags |= place_flags(decl, base);
    if (decl->kind == DECL_value_param && (decl->modifiers & MODIFIER_pack))
        e->type = value_pack_type(c, decl);
    if (decl->flags & DECL_BEFORE_CASE) decl->flags |= DECL_IN_CASES;
    report_deprecated(c, decl, loc);
    if (env->lambda && decl->kind == DECL_var && !e->a) return lambda_capture(env, e, decl);
    return e;
}

static const Type *type_of_candidate(Env *env, const Candidate *found) {
    Checker *c = env->c;
    Decl *decl = found->decl;
    switch ((DeclKind)decl->kind) {
    case DECL_type_param:
        for (int i = 0; i < generic_count(decl->parent); i++)
            if (generic_param(decl->parent, i) == decl) {
                const Type *param = param_type(c, decl->parent, i);
                return c->header == decl->parent ? param : known_type(c, param);
            }
        return ERROR_TYPE(c);
    case DECL_assoc: {
        const Type *base = subst_find(found->subst, decl->parent, 0);
        return assoc_of(c, base ? base : param_type(c, decl->parent, 0), decl, found->subst);
    }
    case DECL_alias:
        ensure_header(c, decl);
        return check_subst(c, decl->type ? decl->type : ERROR_TYPE(c), found->subst);
    default: ensure_header(c, decl); return type_with_subst(c, decl, found->subst);
    }
}

static Expr *type_of_decl(Env *env, Loc loc, const Candidate *found) {
    Checker *c = env->c;
    Decl *decl = found->decl;
    bool unapplied = decl->generics && decl->generics->params.count;
    Expr *e = type_expr(c, loc, unapplied ? NULL : type_of_candidate(env, found));
    e->decl = decl;
    e->name = decl->name;
    if (unapplied) {
        e->candidates = arena_new(c->arena, Candidates);
        candidates_add(c, e->candidates, *found);
    } else if (e->type_value->kind == TYPE_error) return error_expr(c, loc);
    return e;
}

static bool report_ambiguous(Env *env, Expr *expr, const Candidates *list) {
    const Candidate *first = &list->at[0], *second = NULL;
    for (int i = 1; i < list->count && !second; i++)
        if (list->at[i].distance == first->distance && list->at[i].decl->parent != first->decl->parent)
            second = &list->at[i]; /* of one parent: declared twice, which is told at the declaration */
    if (!second) return false;
    report_expr(env->c, expr, DIAG_ambiguous_name, list->name->text);
    note(env->c, DIAG_note_declared_here, first->decl->loc, list->name->text);
    note(env->c, DIAG_note_declared_here, second->decl->loc, list->name->text);
    return true;
}

Expr *expr_from_candidates(Env *env, Expr *expr, Candidates *list) {
    Checker *c = env->c;
    bool functions = true, spaces = true, subscripts = true;
    for (int i = 0; i < list->count; i++) {
        functions &= decl_is_function(list->at[i].decl);
        spaces &= list->at[i].decl->kind == DECL_namespace;
        subscripts &= list->at[i].decl->kind == DECL_subscript;
    }
    if (functions || subscripts || spaces) {
        Expr *e = expr_new(c->arena, spaces ? EXPR_space : EXPR_overload, expr->loc);
        e->name = list->name;
        e->decl = list->at[0].decl;
        e->candidates = list;
        e->flags = EXPR_CHECKED;
        return e;
    }
    if (report_ambiguous(env, expr, list)) return error_expr(c, expr->loc);
    const Candidate *found = &list->at[0];
    if (decl_is_type(found->decl)) return type_of_decl(env, expr->loc, found);
    if (found->decl->kind == DECL_import || found->decl->kind == DECL_using) return error_expr(c, expr->loc);
    return value_of_decl(env, expr->loc, found);
}

static Expr *space_expr(Checker *c, const Expr *expr, Decl *space) {
    Expr *e = expr_new(c->arena, EXPR_space, expr->loc);
    e->name = expr->name;
    e->decl = space;
    e->candidates = arena_new(c->arena, Candidates);
    candidates_add(c, e->candidates, (Candidate){.decl = space});
    e->flags = EXPR_CHECKED;
    return e;
}

/* Tries the type of that name that is built in and not in the prelude: float3, int2x2. */
static bool returns_value(const Env *env) {
    return env->sig && !env->lambda && !env->sig->is_init && env->sig->result->kind != TYPE_void;
}

/* The object that the function returns when control reaches its end: a variable of its outermost block. */
static Expr *return_value(Env *env, Loc loc) {
    Checker *c = env->c;
    Sema *sema = decl_sema(c, env->decl);
    if (!sema->return_value)
        sema->return_value = hidden_variable(env, loc, c->known.__return_val, env->sig->result);
    Expr *e = decl_expr(c, loc, sema->return_value, NULL, NULL);
    e->flags |= EXPR_PLACE;
    return e;
}

/* this.x, of a vector or another type whose members are not declared. */
static Expr *member_of_this(Env *env, const Expr *expr) {
    Checker *c = env->c;
    Expr *self = expr_new(c->arena, EXPR_this, expr->loc),
         *member = expr_new(c->arena, EXPR_member, expr->loc);
    self->flags |= EXPR_IMPLICIT;
    member->a = self;
    member->name = expr->name;
    return check_term(env, member);
}

static bool is_member_of_this(Env *env, const Expr *expr) {
    TypeKind kind = env->this_type && !env->is_static ? env->this_type->kind : TYPE_void;
    if (kind != TYPE_vector && kind != TYPE_optional && kind != TYPE_pair && kind != TYPE_tuple) return false;
    Diags *diags = env->c->diags;
    diags->muted++;
    bool found = member_of_this(env, expr)->kind != EXPR_error;
    diags->muted--;
    return found;
}

static Expr *builtin_or_unknown(Env *env, Expr *expr) {
    Checker *c = env->c;
    const Type *builtin = builtin_named_type(c, expr->name);
    if (builtin) return type_expr(c, expr->loc, builtin);
    if (expr->name == c->known.__return_val && returns_value(env)) return return_value(env, expr->loc);
    Decl *module = module_named(c, decl_module(env->decl), expr->name);
    if (module) return space_expr(c, expr, module);
    if (is_member_of_this(env, expr)) return member_of_this(env, expr);
    report_unknown_name(env, expr, expr->name);
    return error_expr(c, expr->loc);
}

static bool report_invisible(Env *env, Expr *expr, const Candidate *found) {
    if (decl_visible_from(env->c, found->decl, env->decl)) return false;
    report_expr(env->c, expr, DIAG_not_visible, found->decl->name ? found->decl->name->text : "[]");
    note(env->c, DIAG_note_declared_here, found->decl->loc,
         found->decl->name ? found->decl->name->text : "[]");
    return true;
}

/* `struct { ... } x`: the type is declared in this place. */
static Expr *check_type_in_place(Env *env, Expr *expr) {
    Decl *decl = expr->decl;
    const Subst *subst = decl->parent ? subst_identity(env->c, decl->parent) : NULL;
    return type_of_decl(env, expr->loc, &(Candidate){.decl = decl, .subst = subst});
}

static Expr *check_name(Env *env, Expr *expr) {
    if (expr->decl) return check_type_in_place(env, expr);
    Candidate local;
    if (!(expr->flags & EXPR_OUTERMOST) && lookup_local(env, expr->name, &local))
        return value_of_decl(env, expr->loc, &local);
    Candidates *list = arena_new(env->c->arena, Candidates);
    Env outermost = *env;
    if (expr->flags & EXPR_OUTERMOST) outermost.scope = scope_inside(env->c, decl_module(env->decl));
    if (!lookup_name(&outermost, expr->name, list)) return builtin_or_unknown(env, expr);
    if (report_invisible(env, expr, &list->at[0])) return error_expr(env->c, expr->loc);
    return expr_from_candidates(env, expr, list);
}

static Expr *check_this(Env *env, Expr *e) {
    Expr *captured;
    if (env->lambda && lambda_this(env, e, &captured)) return captured;
    if (!env->this_type) {
        report_expr(env->c, e, DIAG_no_this);
        return error_expr(env->c, e->loc);
    }
    e->type = env->this_type;
    if (env->sig && env->sig->has_this) e->type = env->sig->this_type;
    e->flags |= EXPR_PLACE | (env->this_writable ? 0 : EXPR_READONLY);
    return (e->flags & EXPR_IMPLICIT) && in_deriv_method(env) ? primal_part(env, e) : e;
}

static Expr *check_this_type(Env *env, Expr *e) {
    Decl *type = env->decl;
    while (type && type->kind != DECL_struct && type->kind != DECL_interface &&
           type->kind != DECL_extension && type->kind != DECL_enum)
        type = type->parent;
    if (!type) {
        report_expr(env->c, e, DIAG_no_this_type);
        return error_expr(env->c, e->loc);
    }
    return type_expr(env->c, e->loc, this_type_of(env->c, type));
}

/* ---- types spelled with operators */

static Expr *check_function_type(Env *env, Expr *e) {
    Checker *c = env->c;
    TypeVec parts = {0};
    vec_push(c->arena, &parts, e->a ? resolve_type(env, e->a) : type_basic(c->types, TYPE_void));
    int64_t drops = 0;
    for (int i = 0; i < e->args.count; i++) {
        const Expr *param = e->args.at[i];
        bool no_diff = param->kind == EXPR_modified_type && (param->flags & EXPR_NO_DIFF);
        drops |= no_diff ? type_function_drop(i + 1) : 0;
        vec_push(c->arena, &parts, resolve_type(env, e->args.at[i]));
    }
    if (e->b) vec_push(c->arena, &parts, error_param_type(env, e->b));
    return type_expr(
        c, e->loc,
        type_make(c->types, TYPE_function, e->b ? TYPE_THROWS : 0, NULL, NULL, drops, parts.at, parts.count));
}

/* I & J: what is written alike, in any order, is one interface. */
static Expr *check_all_types(Env *env, const Expr *e) {
    Checker *c = env->c;
    TypeVec all = {0};
    for (int i = 0; i < e->args.count; i++) {
        const Type *type = resolve_type(env, e->args.at[i]);
        if (is_error(type)) return error_expr(c, e->loc);
        if (type->kind != TYPE_interface) {
            report_expr(c, e->args.at[i], DIAG_constraint_no_interface, type_str(c, type));
            return error_expr(c, e->loc);
        }
        vec_push(c->arena, &all, type);
    }
    return type_expr(c, e->loc, conjunction_of(c, &all));
}

static Expr *check_pointer_type(Env *env, Expr *e) {
    const Type *target = resolve_type(env, e->a);
    return is_error(target) ? error_expr(env->c, e->loc)
                            : type_expr(env->c, e->loc, type_pointer(env->c->types, target));
}

static Expr *check_modified_type(Env *env, Expr *e) {
    const Type *type = resolve_type(env, e->a);
    if (is_error(type)) return error_expr(env->c, e->loc);
    if (e->flags & (EXPR_COLUMN_MAJOR | EXPR_ROW_MAJOR))
        type = type_with_major(env->c, type, (e->flags & EXPR_COLUMN_MAJOR) != 0);
    return type_expr(env->c, e->loc, type);
}

/* ---- casts, tests and the like */

/* (void)a: for its effects */
static Expr *check_void_cast(Env *env, Expr *e, const Type *type) {
    Expr *a = check_value(env, e->a);
    return a->kind == EXPR_error || a->type == type ? a : convert_node(env->c, a, type, CONVERT_same);
}

static Expr *check_cast(Env *env, Expr *e) {
    const Type *type = resolve_type(env, e->b);
    if (type->kind == TYPE_void && e->a->kind != EXPR_list) return check_void_cast(env, e, type);
    if (is_error(type)) {
        check_value(env, e->a);
        return error_expr(env->c, e->loc);
    }
    if (e->a->kind == EXPR_list) return coerce_list(env, e->a, type);
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_overload && type->kind == TYPE_function) return coerce(env, a, type);
    a = check_value(env, a);
    if (a->kind == EXPR_error) return a;
    Expr *converted = convert_explicit(env, a, type, e->loc);
    if (converted == a && expr_is_place(a))
        return convert_node(env->c, a, type, CONVERT_same); /* a value now */
    return converted;
}

static Expr *check_is(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    const Type *type = resolve_type(env, e->b);
    if (a->kind == EXPR_error || is_error(type)) return error_expr(c, e->loc);
    bool names_type = a->kind == EXPR_type;
    if (!names_type) a = check_value(env, a);
    const Type *from = names_type ? resolve_type(env, a) : a->type;
    if (!from || is_error(from)) return error_expr(c, e->loc);
    if (type->kind == TYPE_interface && !(type_is_abstract(from) && names_type)) {
        report_expr(c, e, DIAG_is_interface, type_str(c, type));
        return error_expr(c, e->loc);
    }
    if (e->kind == EXPR_as && type->kind == TYPE_void) {
        report_expr(c, e, DIAG_as_void);
        return error_expr(c, e->loc);
    }
    e->a = a;
    e->b = type_expr(c, e->b->loc, type);
    const Type *result = type_basic(c->types, TYPE_bool);
    if (e->kind == EXPR_as) result = type_wrap(c->types, TYPE_optional, type);
    e->type = result;
    return e;
}

static Expr *check_sizeof(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) return a;
    if (a->kind != EXPR_type) a = check_value(env, e->kind == EXPR_countof ? as_expansion(env, a) : a);
    if (a->kind == EXPR_type && !a->type_value) a = type_expr(c, a->loc, resolve_type(env, a));
    if (a->kind == EXPR_error || (a->kind == EXPR_type && is_error(a->type_value)))
        return error_expr(c, e->loc);
    e->a = a;
    e->type = type_basic(c->types, TYPE_int);
    return e;
}

/* no_diff stands before an expression whose last step is a call, a subscript, a constructor or an
 * operator. */
static bool ends_in_call(const Expr *e) {
    while (e->kind == EXPR_paren) e = e->a;
    switch ((ExprKind)e->kind) {
    case EXPR_call:
    case EXPR_index:
    case EXPR_no_diff:
    case EXPR_cast:
    case EXPR_unary:
    case EXPR_binary:
    case EXPR_select: return true;
    default: return false;
    }
}

static Expr *check_no_diff(Env *env, Expr *e) {
    bool call = ends_in_call(e->a);
    Expr *a = check_value(env, e->a);
    if (a->kind == EXPR_error) return a;
    if (!call) {
        report_expr(env->c, e, DIAG_no_diff_needs_call);
        return error_expr(env->c, e->loc);
    }
    e->a = a;
    e->type = a->type;
    return e;
}

static Expr *check_tuple(Env *env, Expr *e) {
    Checker *c = env->c;
    TypeVec types = {0};
    splice_expansions(env, &e->args);
    for (int i = 0; i < e->args.count; i++) {
        e->args.at[i] = check_value(env, e->args.at[i]);
        if (e->args.at[i]->kind == EXPR_error) return e->args.at[i];
        vec_push(c->arena, &types, e->args.at[i]->type);
    }
    e->kind = EXPR_construct;
    e->type = type_make(c->types, TYPE_tuple, 0, NULL, NULL, 0, types.at, types.count);
    return e;
}

/* ---- entries */

static Expr *check_kind(Env *env, Expr *e) {
    Checker *c = env->c;
    switch ((ExprKind)e->kind) {
    case EXPR_error: e->type = ERROR_TYPE(c); return e;
    case EXPR_int: return check_int(env, e);
    case EXPR_float: return check_float(env, e);
    case EXPR_bool: e->type = type_basic(c->types, TYPE_bool); return e;
    case EXPR_string: e->type = type_basic(c->types, TYPE_string); return e;
    case EXPR_asm: return check_assembly(env, e);
    case EXPR_null: e->type = type_basic(c->types, TYPE_null); return e;
    case EXPR_none: e->type = type_basic(c->types, TYPE_none); return e;
    case EXPR_list: e->type = type_basic(c->types, TYPE_list); return e;
    case EXPR_name: return check_name(env, e);
    case EXPR_this: return check_this(env, e);
    case EXPR_this_type: return check_this_type(env, e);
    case EXPR_member: return check_member(env, e);
    case EXPR_apply: return check_apply(env, e);
    case EXPR_call: return check_call(env, e);
    case EXPR_index: return check_index(env, e);
    case EXPR_unary: return check_unary(env, e);
    case EXPR_postfix: return check_postfix(env, e);
    case EXPR_binary: return check_binary(env, e);
    case EXPR_assign: return check_assign(env, e);
    case EXPR_select: return check_select(env, e);
    case EXPR_cast: return check_cast(env, e);
    case EXPR_paren: return check_term(env, e->a);
    case EXPR_tuple: return check_tuple(env, e);
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: return check_sizeof(env, e);
    case EXPR_is:
    case EXPR_as: return check_is(env, e);
    case EXPR_lambda: return check_lambda(env, e);
    case EXPR_no_diff: return check_no_diff(env, e);
    case EXPR_fwd_diff:
    case EXPR_bwd_diff: return check_diff_operator(env, e);
    case EXPR_try: return check_try(env, e);
    case EXPR_each: return check_each(env, e);
    case EXPR_expand: return check_expand(env, e);
    case EXPR_end: return check_end(env, e);
    case EXPR_trim: return check_trim(env, e);
    case EXPR_branch: return check_branch(env, e);
    case EXPR_pointer_type: return check_pointer_type(env, e);
    case EXPR_function_type: return check_function_type(env, e);
    case EXPR_all_types: return check_all_types(env, e);
    case EXPR_modified_type: return check_modified_type(env, e);
    default: return e; /* already checked */
    }
}

/* Not a property or subscript that can only be set. */
static Expr *require_readable(Env *env, Expr *e) {
    bool accessed =
        e->kind == EXPR_decl && (e->decl->kind == DECL_property || e->decl->kind == DECL_subscript);
    if (!accessed || has_accessor(e->decl, FUNC_get)) return e;
    const char *name = e->decl->kind == DECL_property ? e->decl->name->text : "[]";
    report_expr(env->c, e, DIAG_needs_getter, name);
    note(env->c, DIAG_note_declared_here, e->decl->loc, name);
    return error_expr(env->c, e->loc);
}

#define MAX_EXPR_DEPTH 5000

Expr *check_term(Env *env, Expr *e) {
    if (e->flags & EXPR_CHECKED) return e;
    Checker *c = env->c;
    if (c->expr_depth > MAX_EXPR_DEPTH) {
        if (!c->too_deep) report_expr(c, e, DIAG_too_deep);
        c->too_deep = true;
        return error_expr(c, e->loc);
    }
    c->expr_depth++;
    bool read = e != env->written;
    Span written = expr_span(e);
    e = check_kind(env, e);
    if (!e->last) e->first = written.first, e->last = written.last;
    if (read) e = require_readable(env, e);
    e->flags |= EXPR_CHECKED;
    if (e->type) e->type = known_type(c, e->type);
    if (e->type && e->type->kind == TYPE_matrix) e->type = type_with_major(c, e->type, false);
    c->expr_depth--;
    return e;
}

Expr *check_value(Env *env, Expr *expr) {
    Checker *c = env->c;
    Expr *e = check_term(env, expr);
    switch ((ExprKind)e->kind) {
    case EXPR_type: report_expr(c, e, DIAG_type_as_value); return error_expr(c, e->loc);
    case EXPR_space: report_expr(c, e, DIAG_space_as_value); return error_expr(c, e->loc);
    case EXPR_overload:
        report_expr(c, e, DIAG_function_as_value, e->name ? e->name->text : "?");
        return error_expr(c, e->loc);
    default: break;
    }
    if (!e->type) e->type = ERROR_TYPE(c);
    return e->flags & EXPR_THROWS ? untried(env, e) : e;
}

Expr *check_value_of(Env *env, Expr *expr, const Type *type) {
    if (expr->kind == EXPR_list && !has_error(type)) return coerce_list(env, expr, type);
    Expr *e = type->kind == TYPE_function ? check_term(env, expr) : check_value(env, expr);
    return coerce(env, e, type);
}

/* ---- places */

/* t[i] = x, where the setter writes to what t refers to, and t stays as it is. */
static bool sets_elsewhere(const Expr *e) {
    bool accessor =
        e->kind == EXPR_decl && (e->decl->kind == DECL_property || e->decl->kind == DECL_subscript);
    return accessor && !setter_mutates(e->decl);
}

void mark_assigned(Expr *e) {
    while (e && !sets_elsewhere(e)) {
        if (e->kind == EXPR_decl && e->decl->kind == DECL_var) e->decl->flags |= DECL_ASSIGNED;
        if (e->kind == EXPR_this) return;
        bool through = e->kind == EXPR_decl || e->kind == EXPR_swizzle || e->kind == EXPR_element ||
                       e->kind == EXPR_part || e->kind == EXPR_convert;
        if (!through) return;
        e = e->a;
    }
}

static void why_decl_readonly(Checker *c, const Decl *decl) {
    const char *name = decl->name ? decl->name->text : "[]";
    bool uniform = decl->kind == DECL_var && decl->flavour == VAR_global &&
                   !(decl->modifiers & (MODIFIER_static | MODIFIER_const));
    if (decl->kind != DECL_var) note(c, DIAG_note_no_setter, decl->loc, name);
    else note(c, uniform ? DIAG_note_shader_parameter : DIAG_note_constant_here, decl->loc, name);
}

/* The innermost thing that may not be written is the reason. */
void why_readonly(Env *env, const Expr *e) {
    Checker *c = env->c;
    for (; e; e = e->a) {
        bool inside = e->a && (e->a->flags & EXPR_READONLY);
        if (is_captured(env, e)) {
            note(c, DIAG_note_captured, 0, e->decl->name->text);
            return;
        }
        switch ((ExprKind)e->kind) {
        case EXPR_this: note(c, DIAG_note_not_mutating, env->decl->loc); return;
        case EXPR_decl:
            if (inside &&
                (e->decl->kind == DECL_var ? !is_readonly_var(e->decl) : has_accessor(e->decl, FUNC_set)))
                break;
            why_decl_readonly(c, e->decl);
            return;
        case EXPR_element:
            if (e->a->type->kind != TYPE_buffer && !(e->a->type->flags & TYPE_READONLY)) break;
            note(c, DIAG_note_read_only_buffer, 0, type_str(c, e->a->type));
            return;
        case EXPR_deref:
            if (e->a->type->kind != TYPE_buffer && !(e->a->type->flags & TYPE_READONLY)) return;
            note(c, DIAG_note_read_only_buffer, 0, type_str(c, e->a->type));
            return;
        case EXPR_part:
            if (inside) break;
            note(c, DIAG_note_read_only_part, 0, e->name ? e->name->text : "?", type_str(c, e->a->type));
            return;
        case EXPR_swizzle:
        case EXPR_convert: break;
        default: return;
        }
    }
}

bool require_writable(Env *env, Expr *e, Loc loc) {
    Checker *c = env->c;
    if (e->kind == EXPR_error || (e->type && has_error(e->type))) return false;
    if (!(e->flags & EXPR_PLACE)) {
        report(c, DIAG_not_a_place, loc);
        return false;
    }
    if (e->flags & EXPR_READONLY) {
        report(c, DIAG_readonly, loc);
        why_readonly(env, e);
        return false;
    }
    if (e->kind == EXPR_swizzle)
        for (int i = 0; i < e->nlanes; i++)
            for (int j = 0; j < i; j++)
                if (e->lanes[i] == e->lanes[j]) {
                    report(c, DIAG_swizzle_repeats, loc);
                    return false;
                }
    mark_assigned(e);
    return true;
}
