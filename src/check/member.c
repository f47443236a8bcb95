/* a.name, a[i], a<args>. */
#include "check/checker.h"

/* ---- swizzles */

static int lane_index(char letter) {
    switch (letter) {
    case 'x':
    case 'r': return 0;
    case 'y':
    case 'g': return 1;
    case 'z':
    case 'b': return 2;
    case 'w':
    case 'a': return 3;
    default: return -1;
    }
}

/* In GLSL coordinates of textures have names of their own. */
static int glsl_lane_index(char letter) {
    const char *const letters = "stpq", *found = strchr(letters, letter);
    return found && letter ? (int)(found - letters) : lane_index(letter);
}

static bool vector_lanes(const Env *env, Name name, int lanes, Expr *out) {
    bool is_glsl = decl_module(env->decl)->flags & DECL_GLSL;
    if (name->len < 1 || name->len > 4) return false;
    for (int i = 0; i < name->len; i++) {
        int lane = is_glsl ? glsl_lane_index(name->text[i]) : lane_index(name->text[i]);
        if (lane < 0 || lane >= lanes) return false;
        out->lanes[i] = (uint8_t)lane;
    }
    out->nlanes = name->len;
    return true;
}

/* _m00_m11 counts from 0, _11_22 from 1. */
static bool matrix_lanes(Name name, int rows, int columns, Expr *out) {
    const char *p = name->text;
    int n = 0;
    while (*p == '_' && n < 4) {
        int base = p[1] == 'm' ? '0' : '1', skip = p[1] == 'm' ? 2 : 1;
        if (!p[skip] || !p[skip + 1]) return false;
        int row = p[skip] - base, column = p[skip + 1] - base;
        if (row < 0 || row >= rows || column < 0 || column >= columns) return false;
        out->lanes[n++] = (uint8_t)(row * 4 + column);
        p += skip + 2;
    }
    out->nlanes = n;
    return n > 0 && *p == 0;
}

static Expr *swizzle(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    Expr *node = expr_new(c->arena, EXPR_swizzle, e->loc);
    const Type *type = a->type,
               *element = type->kind == TYPE_vector || type->kind == TYPE_matrix ? type->args[0] : type;
    bool is_vector = type->kind == TYPE_vector && (type->args[1]->kind == TYPE_number);
    bool found = false;
    if (is_vector) found = vector_lanes(env, e->name, type_count(type), node);
    else if (type->kind == TYPE_matrix && type->args[1]->kind == TYPE_number &&
             type->args[2]->kind == TYPE_number)
        found = matrix_lanes(e->name, (int)type->args[1]->number, (int)type->args[2]->number, node);
    else if (type_is_scalar(type)) found = vector_lanes(env, e->name, 1, node);
    else if (type->kind == TYPE_vector) found = vector_lanes(env, e->name, 4, node); /* size not known yet */
    if (!found) return NULL;
    node->a = a;
    node->type = node->nlanes == 1 ? element : type_vector(c->types, element, node->nlanes);
    node->flags = EXPR_CHECKED | (a->flags & (EXPR_PLACE | EXPR_READONLY));
    return node;
}

/* ---- parts of built-in aggregates */

static Expr *part(Env *env, Expr *e, Expr *a, int index, const Type *type, bool writable) {
    Expr *node = expr_new(env->c->arena, EXPR_part, e->loc);
    node->a = a;
    node->number = (uint64_t)index;
    node->type = type;
    node->name = e->name;
    node->flags =
        EXPR_CHECKED | (a->flags & EXPR_PLACE) | (writable ? a->flags & EXPR_READONLY : EXPR_READONLY);
    return node;
}

/* Is `this` a pair that stands for an object? */
bool in_deriv_method(const Env *env) {
    if (!env->sig || !env->sig->has_this) return false;
    bool pair = env->sig->this_type->kind == TYPE_pair || env->sig->this_type->kind == TYPE_ptr_pair;
    const Decl *func = env->decl;
    while (func && func->kind != DECL_func) func = func->parent;
    return pair && func && (func->flags & DECL_DERIV_METHOD);
}

/* What a member that is named without an object belongs to where `this` is a pair. */
Expr *primal_part(Env *env, Expr *pair) {
    Expr *like = expr_new(env->c->arena, EXPR_member, pair->loc);
    like->name = env->c->known.p;
    return part(env, like, pair, 0, pair->type->args[0], false);
}

static bool tuple_index(const char **p, int count, int *index) {
    if (**p != '_' || (*p)[1] < '0' || (*p)[1] > '9') return false;
    int n = 0;
    for ((*p)++; **p >= '0' && **p <= '9'; (*p)++)
        if (n < count) n = n * 10 + (**p - '0');
    *index = n;
    return n < count;
}

/* t._0, and t._1_0 for a tuple of several parts */
static Expr *tuple_part(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    const char *p = e->name->text;
    VEC(int) indices = {0};
    for (int index; *p && tuple_index(&p, a->type->nargs, &index);) vec_push(c->arena, &indices, index);
    if (indices.count == 0 || *p) return NULL;
    if (indices.count == 1) return part(env, e, a, indices.at[0], a->type->args[indices.at[0]], true);
    Expr *node = expr_new(c->arena, EXPR_construct, e->loc);
    TypeVec types = {0};
    for (int i = 0; i < indices.count; i++) {
        int index = indices.at[i];
        Expr *one = part(env, e, a, index, a->type->args[index], true);
        vec_push(c->arena, &node->args, one);
        vec_push(c->arena, &types, one->type);
    }
    node->type = type_make(c->types, TYPE_tuple, 0, NULL, NULL, 0, types.at, types.count);
    node->flags = EXPR_CHECKED;
    return node;
}

static Expr *builtin_part(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    const Type *type = a->type;
    Name name = e->name;
    switch (type->kind) {
    case TYPE_tuple: return tuple_part(env, e, a);
    case TYPE_optional:
        if (name == c->known.hasValue) return part(env, e, a, 0, type_basic(c->types, TYPE_bool), false);
        if (name == c->known.value) return part(env, e, a, 1, type->args[0], false);
        return NULL;
    case TYPE_pair:
    case TYPE_ptr_pair: {
        const Type *primal = type->args[0];
        if (name == c->known.p || name == c->known.v) return part(env, e, a, 0, primal, false);
        if (name != c->known.d) return NULL;
        const Type *d =
            type->kind == TYPE_pair ? check_differential(c, primal) : check_ptr_differential(c, primal);
        bool own = a->kind == EXPR_this && type->kind == TYPE_pair && in_deriv_method(env);
        return part(env, e, a, 1, d ? d : ERROR_TYPE(c), own);
    }
    default: return NULL;
    }
}

/* ---- members of values */

Expr *auto_deref(Env *env, Expr *a) {
    Checker *c = env->c;
    const Type *type = a->type;
    bool block = type->kind == TYPE_buffer && type->number == BUFFER_constant;
    if (type->kind != TYPE_pointer && !block) return a;
    Expr *node = expr_new(c->arena, EXPR_deref, a->loc);
    node->a = a;
    node->type = type->args[0];
    node->flags = EXPR_CHECKED | EXPR_PLACE | EXPR_IMPLICIT |
                  (block || (type->flags & TYPE_READONLY) ? EXPR_READONLY : 0);
    return node;
}

static bool report_hidden(Env *env, Loc loc, const Candidates *list) {
    Checker *c = env->c;
    for (int i = 0; i < list->count; i++) {
        Decl *decl = list->at[i].decl;
        if (decl_visible_from(c, decl, env->decl)) return false;
        if (satisfies_public_requirement(c, decl)) return false;
    }
    report_not_visible(c, loc, list->at[0].decl);
    return true;
}

static Expr *member_of_value(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    Expr *node = builtin_part(env, e, a);
    if (node) return node;
    const Type *type = a->type;
    bool numeric = type->kind == TYPE_vector || type->kind == TYPE_matrix || type_is_scalar(type);
    if (numeric && (node = swizzle(env, e, a))) return node;
    Expr *inner = auto_deref(env, a);
    if (inner != a && type_head(c, type)) { /* a pointer has members of its own, too */
        Candidates own = {.name = e->name};
        if (!lookup_own_member(c, type, e->name, &own)) return member_of_value(env, e, inner);
    } else if (inner != a) return member_of_value(env, e, inner);
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = e->name;
    if (!lookup_member(c, type, e->name, list)) {
        report_unknown_member(env, e->loc, type, e->name);
        return error_expr(c, e->loc);
    }
    if (report_hidden(env, e->loc, list)) return error_expr(c, e->loc);
    for (int i = 0; i < list->count; i++) {
        list->at[i].base_type = type;
        if (!decl_is_static(list->at[i].decl)) list->at[i].base = a;
        else if (type->kind == TYPE_interface) list->at[i].base = a; /* a static method of the stored type */
    }
    node = expr_from_candidates(env, e, list);
    if (node->kind == EXPR_type && type->kind == TYPE_interface && list->at[0].decl->kind == DECL_assoc)
        node->a = a, node->type_other = assoc_node(c, type, list->at[0].decl, list->at[0].subst);
    return node;
}

/* ---- members of types and namespaces */

/* S.p names the accessors of a property: fwd_diff(S.p.get). */
static Candidates *accessors_of(Env *env, const Candidates *properties) {
    Checker *c = env->c;
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = properties->name;
    for (int i = 0; i < properties->count; i++) {
        Candidate candidate = properties->at[i];
        Decl *property = candidate.decl;
        ensure_header(c, property);
        for (int k = 0; k < property->members.count; k++) {
            candidate.decl = property->members.at[k];
            candidates_add(c, list, candidate);
        }
    }
    return list;
}

static Expr *accessor_named(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    bool get = strcmp(e->name->text, "get") == 0, set = strcmp(e->name->text, "set") == 0;
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = a->candidates->name;
    for (int i = 0; (get || set) && i < a->candidates->count; i++)
        if (a->candidates->at[i].decl->flavour == (get ? FUNC_get : FUNC_set))
            candidates_push(c, list, a->candidates->at[i]);
    return list->count ? expr_from_candidates(env, e, list) : NULL;
}

/* o.A.member: of the associated type that belongs to what is in the interface value o. What is known is a
 * bound of A; its `This` is the A of that value, whichever it is. */
static Expr *member_of_associated(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    const Type *bound = a->type_value, *self = a->type_other;
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = e->name;
    if (!lookup_member(c, bound, e->name, list)) {
        report_unknown_member(env, e->loc, bound, e->name);
        return error_expr(c, e->loc);
    }
    for (int i = 0; i < list->count; i++) {
        Candidate *candidate = &list->at[i];
        candidate->base_type = bound;
        if (!decl_is_static(candidate->decl) || candidate->decl->parent->kind != DECL_interface) continue;
        candidate->subst = subst_for_self(c, candidate->subst, candidate->decl->parent, self);
        candidate->base = a->a;
    }
    return expr_from_candidates(env, e, list);
}

static Expr *member_of_type(Env *env, Expr *e, Expr *a);

/* T.A of a pack is the pack of all (each T).A. */
static Expr *members_of_pack(Env *env, Expr *e, const Type *expansion) {
    Checker *c = env->c;
    Expr *one = member_of_type(env, e, type_expr(c, e->loc, expansion->args[0]));
    return one->kind == EXPR_type ? type_expr(c, e->loc, pack_expand(c, one->type_value)) : one;
}

static Expr *member_of_type(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    const Type *type = a->type_value ? a->type_value : resolve_type(env, a);
    if (is_error(type)) return error_expr(c, e->loc);
    const Type *pack = pack_argument(c, type);
    if (pack->kind == TYPE_expand) return members_of_pack(env, e, pack);
    if (a->a && type->kind == TYPE_interface) return member_of_associated(env, e, a);
    if (type->kind == TYPE_buffer && e->name == c->known.Handle) return type_expr(c, e->loc, type);
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = e->name;
    if (e->name == c->known.Differential) {
        const Type *differential = check_differential(c, type);
        if (!differential) differential = check_ptr_differential(c, type);
        if (differential) return type_expr(c, e->loc, differential);
    }
    if (!lookup_member(c, type, e->name, list)) {
        report_unknown_member(env, e->loc, type, e->name);
        return error_expr(c, e->loc);
    }
    if (report_hidden(env, e->loc, list)) return error_expr(c, e->loc);
    for (int i = 0; i < list->count; i++) list->at[i].base_type = type;
    Decl *first = list->at[0].decl;
    bool accessors =
        (first->kind == DECL_property || first->kind == DECL_subscript) && !decl_is_static(first);
    return expr_from_candidates(env, e, accessors ? accessors_of(env, list) : list);
}

static Expr *member_of_space(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = e->name;
    for (int i = 0; i < a->candidates->count; i++)
        lookup_in_space(c, a->candidates->at[i].decl, e->name, list);
    if (list->count == 0) {
        report_unknown_in_space(env, e->loc, a, e->name);
        return error_expr(c, e->loc);
    }
    if (report_hidden(env, e->loc, list)) return error_expr(c, e->loc);
    return expr_from_candidates(env, e, list);
}

/* By ->: pointers, and resources, each of which is a handle of itself. */
static bool can_be_followed(Checker *c, const Type *type) {
    return type->kind == TYPE_pointer || type->kind == TYPE_buffer ||
           conforms_to(c, type, c->known.IOpaqueDescriptor);
}

Expr *check_member(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    if (!e->name) return error_expr(c, e->loc);
    switch ((ExprKind)a->kind) {
    case EXPR_error: return a;
    case EXPR_space: return member_of_space(env, e, a);
    case EXPR_type: return member_of_type(env, e, a);
    case EXPR_overload:
        if (e->name == c->known.fwd_diff || e->name == c->known.bwd_diff) {
            Expr *op =
                expr_new(c->arena, e->name == c->known.fwd_diff ? EXPR_fwd_diff : EXPR_bwd_diff, e->loc);
            op->a = a;
            op->flags |= EXPR_MEMBER_FORM;
            return check_term(env, op);
        }
        if (accessor_named(env, e, a)) return accessor_named(env, e, a);
        break;
    default: break;
    }
    a = check_value(env, a);
    if (a->kind == EXPR_error || has_error(a->type)) return error_expr(c, e->loc);
    if ((e->flags & EXPR_ARROW) && !can_be_followed(c, a->type)) {
        report_expr(c, e, DIAG_arrow_needs_pointer, type_str(c, a->type));
        return error_expr(c, e->loc);
    }
    if (a->kind == EXPR_list || a->type->kind == TYPE_list) {
        report_expr(c, a, DIAG_list_needs_type);
        return error_expr(c, e->loc);
    }
    return member_of_value(env, e, a);
}

/* ---- a[i] */

static Expr *array_type(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    const Type *element = a->type_value ? a->type_value : resolve_type(env, a);
    if (is_error(element)) return error_expr(c, e->loc);
    if (element->kind == TYPE_void) {
        report_expr(c, e, DIAG_void_element, "an array");
        return error_expr(c, e->loc);
    }
    if (e->args.count == 0) return type_expr(c, e->loc, type_unsized_array(c->types, element));
    const Type *count = resolve_number(env, e->args.at[0]);
    int64_t n;
    if (is_error(count)) return error_expr(c, e->loc);
    if (type_is_number(count, &n) && (n < 0 || n > INT32_MAX)) {
        report(c, DIAG_array_size, e->args.at[0]->loc, format_text(c->arena, "%lld", (long long)n));
        return error_expr(c, e->loc);
    }
    const Type *args[2] = {element, count};
    return type_expr(c, e->loc, type_make(c->types, TYPE_array, 0, NULL, NULL, 0, args, 2));
}

static bool has_elements(const Type *type) {
    switch (type->kind) {
    case TYPE_vector:
    case TYPE_matrix:
    case TYPE_array:
    case TYPE_pointer: return true;
    case TYPE_buffer: return type->number == BUFFER_structured || type->number == BUFFER_rw_structured;
    default: return false;
    }
}

static uint32_t element_flags(const Expr *a) {
    if (a->type->kind == TYPE_pointer)
        return EXPR_PLACE | (a->type->flags & TYPE_READONLY ? EXPR_READONLY : 0);
    if (a->type->kind == TYPE_buffer)
        return EXPR_PLACE | (a->type->number == BUFFER_rw_structured ? 0 : EXPR_READONLY);
    return a->flags & (EXPR_PLACE | EXPR_READONLY);
}

static const Type *element_type(Checker *c, const Type *type) {
    if (type->kind != TYPE_matrix) return type->args[0];
    const Type *row[2] = {type->args[0], type->args[2]};
    return type_make(c->types, TYPE_vector, 0, NULL, NULL, 0, row, 2);
}

static Expr *check_index_value(Env *env, Expr *index) {
    Checker *c = env->c;
    Expr *i = check_value(env, index);
    if (i->kind == EXPR_error || has_error(i->type)) return i;
    if (i->type->kind == TYPE_enum) i = convert_explicit(env, i, type_basic(c->types, TYPE_int), i->loc);
    bool generic = type_is_abstract(i->type) && conforms_to(c, i->type, c->known.__BuiltinIntegerType);
    if (generic) diag_portable(c->diags, i->loc, "an index of a generic type");
    if (type_is_integer(i->type) || generic) return i;
    if (!type_is_scalar(i->type)) {
        report_expr(c, i, DIAG_bad_index, type_str(c, i->type));
        return error_expr(c, i->loc);
    }
    return coerce(env, i, type_basic(c->types, i->type->kind == TYPE_bool ? TYPE_int : TYPE_uint));
}

static void check_bounds(Env *env, const Type *type, Expr *index) {
    int64_t i, n = type_length(type);
    if (type->kind != TYPE_array || n < 0 || !eval_number(env, index, &i)) return;
    if (i < 0 || i >= n) report_expr(env->c, index, DIAG_index_range, (int)i, (int)n);
}

static Expr *element(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    if (e->args.count != 1) {
        report_expr(c, e, DIAG_index_count, e->args.count);
        return error_expr(c, e->loc);
    }
    Expr *index = check_index_value(env, e->args.at[0]);
    if (index->kind == EXPR_error) return index;
    check_bounds(env, a->type, index);
    Expr *node = expr_new(c->arena, EXPR_element, e->loc);
    node->a = a;
    node->b = index;
    node->type = element_type(c, a->type);
    node->flags = EXPR_CHECKED | element_flags(a);
    return node;
}

static Expr *subscript(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = c->known.subscript;
    if (!lookup_member(c, a->type, c->known.subscript, list)) {
        Expr *inner = auto_deref(env, a);
        if (inner != a) return has_elements(inner->type) ? element(env, e, inner) : subscript(env, e, inner);
        report_expr(c, e, DIAG_not_indexable, type_str(c, a->type));
        if (lookup_member(c, a->type, name_from(c->names, "load"), list)) note(c, DIAG_note_use_load, 0);
        return error_expr(c, e->loc);
    }
    for (int i = 0; i < list->count; i++) {
        list->at[i].base_type = a->type;
        if (!decl_is_static(list->at[i].decl)) list->at[i].base = a;
    }
    for (int i = 0; i < e->args.count; i++) e->args.at[i] = check_term(env, e->args.at[i]);
    return resolve_call(env, e->loc, list, &e->args, false);
}

Expr *check_index(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) {
        for (int i = 0; i < e->args.count; i++) check_value(env, e->args.at[i]);
        return a;
    }
    if (a->kind == EXPR_type) return array_type(env, e, a);
    a = check_value(env, a);
    if (a->kind == EXPR_error || has_error(a->type)) return error_expr(c, e->loc);
    return has_elements(a->type) ? element(env, e, a) : subscript(env, e, a);
}

/* ---- a<args> */

/* A type; or a number, then `value` is its type. */
static const Type *argument(Env *env, Expr *expr, const Type **value) {
    Checker *c = env->c;
    Expr *e = check_term(env, expr);
    if (e->kind == EXPR_error) return ERROR_TYPE(c);
    if (e->kind == EXPR_type) return pack_argument(c, e->type_value ? e->type_value : resolve_type(env, e));
    e = check_value(env, as_expansion(env, e));
    if (e->kind == EXPR_expand && e->type->kind == TYPE_expand) {
        const Type *pack = pack_of_numbers(env, e);
        *value = e->type->args[0]->kind == TYPE_repeat ? e->type->args[0]->args[0] : e->type->args[0];
        if (!pack) report_expr(c, e, DIAG_not_constant);
        return pack ? pack : ERROR_TYPE(c);
    }
    *value = e->type;
    bool may_fit = type_is_integer(e->type) || e->type->kind == TYPE_bool || e->type->kind == TYPE_enum;
    if (!may_fit && !has_error(e->type))
        return type_number(c->types, 0); /* whoever takes it says what is wrong */
    return resolve_number(env, e);
}

static Expr *not_generic(Env *env, const Expr *e) {
    const char *name = e->a->name                ? e->a->name->text
                       : e->a->kind == EXPR_type ? type_str(env->c, e->a->type_value)
                                                 : "this";
    report_expr(env->c, e, DIAG_not_generic, name);
    return error_expr(env->c, e->loc);
}

/* Where a type argument is that of memory, row_major and column_major are part of it; values know no
 * layout. */
static bool keeps_layout(Checker *c, const Expr *generic) {
    const Decl *decl = generic->decl;
    if (generic->kind != EXPR_type || !decl) return decl && (decl->flags & DECL_PRELUDE);
    int kind = decl_sema(c, (Decl *)(uintptr_t)decl)->builtin_kind;
    return kind == TYPE_buffer || kind == TYPE_pointer || kind == TYPE_array;
}

Expr *check_apply(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    const Type **args = arena_array(c->arena, const Type *, e->args.count + 1);
    const Type **values = arena_array(c->arena, const Type *, e->args.count + 1);
    bool failed = a->kind == EXPR_error;
    for (int i = 0; i < e->args.count; i++) {
        args[i] = argument(env, e->args.at[i], &values[i]);
        failed |= is_error(args[i]);
    }
    if (failed) return error_expr(c, e->loc);
    for (int i = 0; i < e->args.count && !keeps_layout(c, a); i++)
        if (!values[i]) args[i] = type_with_major(c, args[i], false);
    if (a->kind == EXPR_type && !a->type_value) {
        const Subst *outer = a->candidates->at[0].subst;
        const Type *type = apply_generic_type(env, e->loc, a->decl, outer, args, values, e->args.count);
        return is_error(type) ? error_expr(c, e->loc) : type_expr(c, e->loc, type);
    }
    if (a->kind != EXPR_overload) return not_generic(env, e);
    Candidates *list = arena_new(c->arena, Candidates);
    *list = (Candidates){.name = a->candidates->name};
    for (int i = 0; i < a->candidates->count; i++) {
        Candidate candidate = a->candidates->at[i];
        ensure_header(c, candidate.decl);
        if (!candidate.decl->generics) continue;
        candidate.args = args;
        candidate.values = values;
        candidate.nargs = e->args.count;
        candidates_push(c, list, candidate);
    }
    if (list->count == 0) return not_generic(env, e);
    Expr *node = expr_new(c->arena, EXPR_overload, e->loc);
    node->name = a->name;
    node->decl = list->at[0].decl;
    node->candidates = list;
    return node;
}
