/* Operators. Built-in types (and generic parameters that can only be built-in) are handled here directly, as
 * EXPR_builtin and EXPR_update, unless the program declares an operator for just these types; everything else
 * is a call of a global function named `operator+` and so on. */
#include "check/checker.h"

static bool is_shape(const Type *t) { return t->kind == TYPE_vector || t->kind == TYPE_matrix; }
static const Type *element_of(const Type *t) { return is_shape(t) ? t->args[0] : t; }

bool is_builtin_operand(Checker *c, const Type *type) {
    const Type *element = element_of(type);
    return type_is_scalar(element) ||
           (type_is_abstract(element) && conforms_to(c, element, c->known.__BuiltinType));
}

static const Type *with_element(Checker *c, const Type *shape, const Type *element) {
    if (!is_shape(shape)) return element;
    const Type *args[3] = {element, shape->args[1], shape->kind == TYPE_matrix ? shape->args[2] : NULL};
    return type_make(c->types, shape->kind, shape->flags & TYPE_COLUMN_MAJOR, NULL, NULL, 0, args,
                     shape->nargs);
}

static const Type *bool_shape(Checker *c, const Type *type) {
    return with_element(c, type, type_basic(c->types, TYPE_bool));
}

static const Type *underlying_of(Checker *c, const Type *type) {
    if (type->kind != TYPE_enum) return type;
    Decl *decl = (Decl *)(uintptr_t)type->decl;
    ensure_header(c, decl);
    return decl_sema(c, decl)->underlying;
}

static Expr *from_enum(Env *env, Expr *e) {
    if (e->type->kind != TYPE_enum) return e;
    return convert_node(env->c, e, underlying_of(env->c, e->type), CONVERT_enum);
}

static Expr *builtin(Env *env, Loc loc, Operator op, const Type *type, Expr *a, Expr *b) {
    Checker *c = env->c;
    Expr *e = expr_new(c->arena, EXPR_builtin, loc);
    e->op = (uint8_t)op;
    e->type = type;
    vec_push(c->arena, &e->args, a);
    if (b) vec_push(c->arena, &e->args, b);
    e->flags = EXPR_CHECKED;
    return e;
}

/* Conversions that operators make are never worth a warning. */
static Expr *silently(Env *env, Expr *e, const Type *to) {
    if (e->type == to) return e;
    warn_quotient(env->c, e, to);
    return convert_explicit(env, e, to, e->loc);
}

static bool is_shift(Operator op) { return op == OPERATOR_shl || op == OPERATOR_shr; }

static Expr *no_operator(Env *env, Loc loc, Operator op, Expr *a, Expr *b) {
    Checker *c = env->c;
    if (is_half_known(c, a->type) || (b && is_half_known(c, b->type))) return error_expr(c, loc);
    Span whole = {b ? expr_span(a).first : loc, loc, expr_span(b ? b : a).last};
    if (b)
        diag_report_span(c->diags, whole, DIAG_no_binary_operator, operator_text(op), type_str(c, a->type),
                         type_str(c, b->type));
    else diag_report_span(c->diags, whole, DIAG_no_unary_operator, operator_text(op), type_str(c, a->type));
    const Type *generic = type_is_abstract(a->type)        ? a->type
                          : b && type_is_abstract(b->type) ? b->type
                                                           : NULL;
    bool optional = a->type->kind == TYPE_optional || (b && b->type->kind == TYPE_optional);
    if (optional) note(c, DIAG_note_optional_value, 0);
    else if (generic && b && a->type != b->type && !is_shift(op) && allows_operator(c, generic, op))
        note(c, DIAG_note_write_constructor, 0, type_str(c, generic));
    else if (generic) suggest_for_operator(c, generic, op);
    else if (b && op == OPERATOR_mul && is_shape(a->type) && is_shape(b->type) &&
             (a->type->kind == TYPE_matrix || b->type->kind == TYPE_matrix))
        note(c, DIAG_note_use_mul, 0);
    else if (b && is_shape(a->type) && is_shape(b->type)) note(c, DIAG_note_shapes_differ, 0);
    Candidates members = {.name = c->known.operators[op]};
    if (a->type->kind == TYPE_struct && lookup_own_member(c, a->type, members.name, &members))
        note(c, DIAG_note_operator_member, members.at[0].decl->loc);
    return error_expr(c, loc);
}

/* The members of a type that are operators, `statically` those without an object. */
static void operators_in(Checker *c, const Type *type, bool statically, Candidates *out) {
    Candidates all = {.name = out->name};
    if (!out->name || !lookup_member(c, type, out->name, &all)) return;
    for (int i = 0; i < all.count; i++)
        if (((all.at[i].decl->modifiers & MODIFIER_static) != 0) == statically)
            candidates_add(c, out, all.at[i]);
}

/* An operator that is a member of its left operand, or a static one of either. */
static Expr *member_operator(Env *env, Loc loc, Name name, Expr *a, Expr *b) {
    Checker *c = env->c;
    for (int statically = 0; statically < 2; statically++) {
        Candidates *members = arena_new(c->arena, Candidates);
        members->name = name;
        operators_in(c, a->type, statically, members);
        if (statically && b && b->type != a->type) operators_in(c, b->type, statically, members);
        ExprVec args = {0};
        if (statically) vec_push(c->arena, &args, a);
        if (b) vec_push(c->arena, &args, b);
        for (int i = 0; i < members->count && !statically; i++) members->at[i].base = a;
        Expr *call = members->count ? resolve_call(env, loc, members, &args, true) : NULL;
        if (call) return call;
    }
    return NULL;
}

static Expr *user_operator(Env *env, Loc loc, Operator op, Expr *a, Expr *b) {
    Expr *args[2] = {a, b};
    Name name = env->c->known.operators[op];
    Expr *call = call_named(env, loc, name, args, b ? 2 : 1, true);
    if (!call) call = member_operator(env, loc, name, a, b);
    return call ? call : no_operator(env, loc, op, a, b);
}

/* ---- operators of the program's own */

/* Global functions of that name, in all modules but the library. */
struct OwnOperators {
    DeclVec found;
    int modules; /* that were looked through */
};

static void find_own(Checker *c, const Decl *space, Name name, DeclVec *out) {
    for (int i = 0; i < space->members.count; i++) {
        Decl *member = space->members.at[i];
        if (member->kind == DECL_namespace) find_own(c, member, name, out);
        if (member->kind == DECL_func && member->name == name) vec_push(c->arena, out, member);
    }
}

static const DeclVec *own_operators(Checker *c, Operator op) {
    if (!c->own_operators) c->own_operators = arena_array(c->arena, struct OwnOperators, OPERATOR_COUNT);
    struct OwnOperators *own = &c->own_operators[op];
    for (; own->modules < c->modules.count; own->modules++)
        if (c->modules.at[own->modules] != c->prelude && c->known.operators[op])
            find_own(c, c->modules.at[own->modules], c->known.operators[op], &own->found);
    return &own->found;
}

static bool is_for_builtin(Checker *c, Decl *func, int count) {
    const FuncSig *sig = signature_of(c, func);
    bool fits = sig->nparams == count;
    for (int i = 0; i < count && fits; i++)
        fits = is_shape(sig->params[i].type) || is_builtin_operand(c, sig->params[i].type);
    return fits;
}

/* Just of these types; of a generic one it is told when its arguments are known. */
static bool may_take(Checker *c, Decl *func, const Type *a, const Type *b) {
    const FuncSig *sig = signature_of(c, func);
    if (!is_for_builtin(c, func, b ? 2 : 1)) return false;
    if (generic_count(func)) return true;
    return sig->params[0].type == a && (!b || sig->params[1].type == b);
}

static Expr *call_if_exact(Env *env, Loc loc, Candidates *list, Expr *a, Expr *b) {
    Checker *c = env->c;
    ExprVec args = {0};
    vec_push(c->arena, &args, a);
    if (b) vec_push(c->arena, &args, b);
    c->diags->muted++; /* generic ones may be ambiguous */
    Expr *call = list->count ? resolve_call(env, loc, list, &args, true) : NULL;
    c->diags->muted--;
    bool exact = call && call->kind == EXPR_invoke && call->args.at[0]->type == a->type &&
                 (!b || call->args.at[1]->type == b->type);
    return exact ? call : NULL;
}

/* An operator that the program declares for built-in types goes before what they can do by themselves, if it
 * takes these operands as they are; NULL: there is none. */
static Expr *own_operator(Env *env, Loc loc, Operator op, Expr *a, Expr *b) {
    Checker *c = env->c;
    const DeclVec *own = own_operators(c, op);
    bool any = false;
    for (int i = 0; i < own->count && !any; i++) any = may_take(c, own->at[i], a->type, b ? b->type : NULL);
    if (!any) return NULL;
    Candidates all = {0}, *list = arena_new(c->arena, Candidates);
    list->name = c->known.operators[op];
    lookup_name(env, list->name, &all);
    for (int i = 0; i < all.count; i++) {
        Decl *decl = all.at[i].decl;
        bool global = decl->kind == DECL_func && !(decl->flags & DECL_PRELUDE) && !decl_type_around(decl);
        if (global && may_take(c, decl, a->type, b ? b->type : NULL)) candidates_push(c, list, all.at[i]);
    }
    return call_if_exact(env, loc, list, a, b);
}

static bool is_comparison(Operator op) {
    return op == OPERATOR_less || op == OPERATOR_greater || op == OPERATOR_less_equal ||
           op == OPERATOR_greater_equal || op == OPERATOR_equal || op == OPERATOR_not_equal;
}
static bool is_bitwise(Operator op) {
    return op == OPERATOR_bit_and || op == OPERATOR_bit_or || op == OPERATOR_bit_xor;
}

static bool is_generic_element(const Type *t) { return type_is_abstract(element_of(t)); }

/* May `op` be applied to elements of this type? */
static bool element_allows(Checker *c, Operator op, const Type *type) {
    const Type *element = element_of(type);
    if (is_bitwise(op) || is_shift(op) || op == OPERATOR_bit_not) {
        if (type_is_abstract(element))
            return conforms_to(c, element, c->known.__BuiltinIntegerType) ||
                   conforms_to(c, element, c->known.__BuiltinLogicalType);
        return type_is_integer(element) || (element->kind == TYPE_bool && !is_shift(op));
    }
    if (type_is_abstract(element) && !is_comparison(op))
        return conforms_to(c, element, c->known.__BuiltinArithmeticType);
    return true;
}

static Expr *shift(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    const Type *type = a->type;
    if (is_shape(b->type) && !is_shape(type)) {
        type = with_element(c, b->type, type);
        a = silently(env, a, type);
    } else if (is_shape(type) && !is_shape(b->type)) {
        b = silently(env, b, with_element(c, type, b->type));
    }
    bool lanes_differ = is_shape(type) && is_shape(b->type) &&
                        (type->kind != b->type->kind || type->args[1] != b->type->args[1]);
    if (lanes_differ || !element_allows(c, OPERATOR_bit_and, b->type))
        return no_operator(env, e->loc, (Operator)e->op, a, b);
    return builtin(env, e->loc, (Operator)e->op, type, a, b);
}

static void warn_zero_divisor(Env *env, Operator op, const Type *type, Expr *b) {
    int64_t divisor;
    if ((op != OPERATOR_div && op != OPERATOR_mod) || !type_is_integer(element_of(type))) return;
    if (eval_number(env, b, &divisor) && divisor == 0) report_expr(env->c, b, DIAG_zero_divisor);
}

static Expr *builtin_binary(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Operator op = (Operator)e->op;
    if (!element_allows(c, op, a->type) || !element_allows(c, op, b->type))
        return no_operator(env, e->loc, op, a, b);
    if (is_shift(op)) return shift(env, e, a, b);
    const Type *joined = join_types(c, a->type, b->type);
    if (!joined) return no_operator(env, e->loc, op, a, b);
    bool arithmetic = !is_comparison(op) && !is_bitwise(op);
    if (arithmetic && element_of(joined)->kind == TYPE_bool)
        joined = with_element(c, joined, type_basic(c->types, TYPE_int));
    warn_zero_divisor(env, op, joined, b);
    const Type *result = is_comparison(op) ? bool_shape(c, joined) : joined;
    return builtin(env, e->loc, op, result, silently(env, a, joined), silently(env, b, joined));
}

/* ---- && and || */

static Expr *logical(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    const Type *flag = type_basic(c->types, TYPE_bool);
    bool shapes = is_shape(a->type) || is_shape(b->type);
    a = from_enum(env, a);
    b = from_enum(env, b);
    if (!is_builtin_operand(c, a->type) || !is_builtin_operand(c, b->type)) {
        bool pointers = (type_is_scalar(a->type) || a->type->kind == TYPE_pointer) &&
                        (type_is_scalar(b->type) || b->type->kind == TYPE_pointer);
        if (!pointers) return user_operator(env, e->loc, (Operator)e->op, a, b);
        return builtin(env, e->loc, (Operator)e->op, flag, convert_node(c, a, flag, CONVERT_bool),
                       convert_node(c, b, flag, CONVERT_bool));
    }
    if (!shapes) {
        a = a->type == flag ? a : convert_node(c, a, flag, CONVERT_bool);
        b = b->type == flag ? b : convert_node(c, b, flag, CONVERT_bool);
        return builtin(env, e->loc, (Operator)e->op, flag, a, b);
    }
    const Type *joined = join_types(c, a->type, b->type);
    if (!joined) return no_operator(env, e->loc, (Operator)e->op, a, b);
    const Type *flags = bool_shape(c, joined);
    Expr *both = builtin(env, e->loc, (Operator)e->op, flags, silently(env, silently(env, a, joined), flags),
                         silently(env, silently(env, b, joined), flags));
    return type_is_float(element_of(joined)) ? both : silently(env, both, joined);
}

/* ---- pointers, enums, optionals */

static Expr *pointer_binary(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Operator op = (Operator)e->op;
    bool a_ptr = a->type->kind == TYPE_pointer, b_ptr = b->type->kind == TYPE_pointer;
    if (is_comparison(op)) {
        const Type *type = a_ptr ? a->type : b->type;
        if (conversion_cost(env, a, type) < 0 || conversion_cost(env, b, type) < 0)
            return no_operator(env, e->loc, op, a, b);
        return builtin(env, e->loc, op, type_basic(c->types, TYPE_bool), coerce(env, a, type),
                       coerce(env, b, type));
    }
    if (a_ptr && type_is_integer(b->type) && (op == OPERATOR_add || op == OPERATOR_sub))
        return builtin(env, e->loc, op, a->type, a, b);
    if (b_ptr && type_is_integer(a->type) && op == OPERATOR_add)
        return builtin(env, e->loc, op, b->type, b, a);
    if (a->type == b->type && op == OPERATOR_sub)
        return builtin(env, e->loc, op, type_basic(c->types, TYPE_int64), a, b);
    return no_operator(env, e->loc, op, a, b);
}

static Expr *enum_binary(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Operator op = (Operator)e->op;
    bool same = a->type == b->type;
    if (same && is_comparison(op))
        return builtin(env, e->loc, op, type_basic(c->types, TYPE_bool), from_enum(env, a),
                       from_enum(env, b));
    Expr *x = from_enum(env, a), *y = from_enum(env, b);
    if (same && is_bitwise(op)) {
        Expr *bits = builtin(env, e->loc, op, x->type, x, y);
        return convert_node(c, bits, a->type, CONVERT_enum);
    }
    if (!is_builtin_operand(c, x->type) || !is_builtin_operand(c, y->type))
        return user_operator(env, e->loc, op, a, b);
    if (!element_allows(c, op, x->type) || !element_allows(c, op, y->type))
        return no_operator(env, e->loc, op, a, b);
    return builtin_binary(env, e, x, y);
}

static Expr *optional_part(Env *env, Expr *e, int part) {
    Checker *c = env->c;
    Expr *node = expr_new(c->arena, EXPR_part, e->loc);
    node->a = e;
    node->number = (uint64_t)part;
    node->type = part == 0 ? type_basic(c->types, TYPE_bool) : e->type->args[0];
    node->flags = EXPR_CHECKED;
    return node;
}

/* opt == none, opt != none */
static Expr *none_comparison(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Expr *optional = a->type->kind == TYPE_optional ? a : b;
    Expr *has = optional_part(env, optional, 0);
    return e->op == OPERATOR_not_equal
               ? has
               : builtin(env, e->loc, OPERATOR_not, type_basic(c->types, TYPE_bool), has, NULL);
}

static bool is_none_comparison(const Expr *e, const Expr *a, const Expr *b) {
    if (e->op != OPERATOR_equal && e->op != OPERATOR_not_equal) return false;
    return (a->type->kind == TYPE_optional && b->type->kind == TYPE_none) ||
           (b->type->kind == TYPE_optional && a->type->kind == TYPE_none);
}

/* A user may define | or ~ for an enum; what the prelude has for numbers does not count. Values of cases are
 * constants, which no function makes. */
static Expr *enum_operator(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    if (c->header && c->header->kind == DECL_case) return NULL;
    Candidates found = {0}, *own = arena_new(c->arena, Candidates);
    own->name = c->known.operators[e->op];
    lookup_name(env, own->name, &found);
    for (int i = 0; i < found.count; i++)
        if (!(found.at[i].decl->flags & DECL_PRELUDE) && !decl_type_around(found.at[i].decl))
            candidates_push(c, own, found.at[i]);
    ExprVec args = {0};
    vec_push(c->arena, &args, a);
    if (b) vec_push(c->arena, &args, b);
    return own->count ? resolve_call(env, e->loc, own, &args, true) : NULL;
}

/* ---- binary */

static Expr *binary_checked(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Operator op = (Operator)e->op;
    if (op == OPERATOR_and || op == OPERATOR_or) return logical(env, e, a, b);
    if (is_builtin_operand(c, a->type) && is_builtin_operand(c, b->type)) {
        Expr *own = own_operator(env, e->loc, op, a, b);
        if (own) return own;
        bool mixed = (is_generic_element(a->type) || is_generic_element(b->type)) &&
                     !join_types(c, a->type, b->type) && !is_shift(op);
        return mixed ? user_operator(env, e->loc, op, a, b) : builtin_binary(env, e, a, b);
    }
    if (a->type->kind == TYPE_pointer || b->type->kind == TYPE_pointer) return pointer_binary(env, e, a, b);
    if (is_none_comparison(e, a, b)) return none_comparison(env, e, a, b);
    bool enums = (a->type->kind == TYPE_enum || b->type->kind == TYPE_enum) &&
                 (a->type->kind == TYPE_enum || is_builtin_operand(c, a->type)) &&
                 (b->type->kind == TYPE_enum || is_builtin_operand(c, b->type));
    if (enums) {
        Expr *own = enum_operator(env, e, a, b);
        return own ? own : enum_binary(env, e, a, b);
    }
    return user_operator(env, e->loc, op, a, b);
}

/* Long chains `a + b + c ...` lean left; going down them in a loop keeps the stack flat. */
static Expr *check_comma(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_value(env, e->a), *b = check_value(env, e->b);
    if (a->kind == EXPR_error || b->kind == EXPR_error) return error_expr(c, e->loc);
    if (!env->in_step) report_expr(c, e, DIAG_comma_operator);
    return builtin(env, e->loc, OPERATOR_comma, b->type, a, b);
}

static Expr *check_operand(Env *env, Expr *e) {
    if (e->kind == EXPR_list) {
        report_expr(env->c, e, DIAG_list_needs_type);
        return error_expr(env->c, e->loc);
    }
    e = check_value(env, e);
    bool block = e->type->kind == TYPE_buffer && e->type->number == BUFFER_constant;
    return block ? auto_deref(env, e) : e;
}

static Expr *binary_step(Env *env, Expr *e, Expr *a) {
    if (e->op == OPERATOR_comma) return check_comma(env, e);
    Expr *b = check_operand(env, e->b);
    if (a->kind == EXPR_error || b->kind == EXPR_error || has_error(a->type) || has_error(b->type))
        return error_expr(env->c, e->loc);
    Expr *result = binary_checked(env, e, a, b);
    result->flags |= EXPR_CHECKED;
    return result;
}

/* Optional<I & J>: between types, & makes a type. NULL: these are none. */
static Expr *types_joined(Env *env, const ExprVec *chain, Expr **left) {
    bool named = (*left)->kind == EXPR_name || (*left)->kind == EXPR_member || (*left)->kind == EXPR_apply;
    for (int i = 0; i < chain->count && named; i++) named = chain->at[i]->op == OPERATOR_bit_and;
    if (!named) return NULL;
    *left = check_term(env, *left);
    if ((*left)->kind != EXPR_type) return NULL;
    Expr *all = expr_new(env->c->arena, EXPR_all_types, chain->at[0]->loc);
    vec_push(env->c->arena, &all->args, *left);
    for (int i = chain->count - 1; i >= 0; i--) vec_push(env->c->arena, &all->args, chain->at[i]->b);
    return check_term(env, all);
}

Expr *check_binary(Env *env, Expr *e) {
    ExprVec chain = {0};
    Expr *left = e;
    while (left->kind == EXPR_binary && !(left->flags & EXPR_CHECKED) && left->op != OPERATOR_comma) {
        vec_push(env->c->arena, &chain, left);
        left = left->a;
    }
    if (chain.count == 0) return check_comma(env, e);
    Expr *type = types_joined(env, &chain, &left);
    if (type) return type;
    Expr *result = check_operand(env, left);
    for (int i = chain.count - 1; i >= 0; i--) result = binary_step(env, chain.at[i], result);
    return result;
}

/* ---- unary */

static Expr *deref(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    if (conforms_to(c, a->type, c->known.IOpaqueDescriptor)) return a; /* its handle is itself */
    if (a->type->kind != TYPE_pointer) return user_operator(env, e->loc, OPERATOR_mul, a, NULL);
    Expr *node = expr_new(c->arena, EXPR_deref, e->loc);
    node->a = a;
    node->type = a->type->args[0];
    node->flags = EXPR_CHECKED | EXPR_PLACE | (a->type->flags & TYPE_READONLY ? EXPR_READONLY : 0);
    return node;
}

static Expr *address(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    if (!(a->flags & EXPR_PLACE) || (a->kind == EXPR_swizzle && !type_is_scalar(a->type)) ||
        (a->kind == EXPR_decl && (a->decl->kind == DECL_property || a->decl->kind == DECL_subscript))) {
        report_expr(c, e, DIAG_no_address);
        return error_expr(c, e->loc);
    }
    mark_assigned(a);
    Expr *node = expr_new(c->arena, EXPR_address, e->loc);
    node->a = a;
    node->type = type_pointer(c->types, a->type);
    node->flags = EXPR_CHECKED;
    return node;
}

static Expr *logical_not(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    if (a->type->kind == TYPE_pointer || a->type->kind == TYPE_enum) {
        const Type *flag = type_basic(c->types, TYPE_bool);
        return builtin(env, e->loc, OPERATOR_not, flag, convert_node(c, a, flag, CONVERT_bool), NULL);
    }
    if (!is_builtin_operand(c, a->type)) return user_operator(env, e->loc, OPERATOR_not, a, NULL);
    const Type *flags = bool_shape(c, a->type);
    Expr *as_flag = a->type == flags ? a : convert_node(c, a, flags, CONVERT_numeric);
    Expr *negated = builtin(env, e->loc, OPERATOR_not, flags, as_flag, NULL);
    return type_is_integer(element_of(a->type)) ? silently(env, negated, a->type) : negated;
}

static bool can_step(Checker *c, const Type *type) {
    if (type->kind == TYPE_pointer) return true;
    return is_builtin_operand(c, type) && element_of(type)->kind != TYPE_bool;
}

static Expr *step(Env *env, Expr *e, Expr *a, bool postfix) {
    Checker *c = env->c;
    if (!can_step(c, a->type)) {
        Candidates list = {0};
        ExprVec args = {0};
        vec_push(c->arena, &args, a);
        if (lookup_name(env, c->known.operators[e->op], &list)) {
            uint32_t wanted = postfix ? MODIFIER_postfix : MODIFIER_prefix;
            Candidates fitting = {.name = list.name};
            for (int i = 0; i < list.count; i++)
                if (list.at[i].decl->modifiers & wanted) candidates_push(c, &fitting, list.at[i]);
            Expr *call = fitting.count ? resolve_call(env, e->loc, &fitting, &args, true) : NULL;
            if (call) return call;
        }
        no_operator(env, e->loc, (Operator)e->op, a, NULL);
        for (int i = 0; i < list.count; i++)
            if (!(list.at[i].decl->modifiers & (MODIFIER_prefix | MODIFIER_postfix)))
                note(c, DIAG_note_mark_fix, list.at[i].decl->loc, postfix ? "__postfix" : "__prefix");
        return error_expr(c, e->loc);
    }
    if (!require_writable(env, a, e->loc)) return error_expr(c, e->loc);
    Expr *node = expr_new(c->arena, EXPR_update, e->loc);
    node->op = e->op == OPERATOR_increment ? OPERATOR_add : OPERATOR_sub;
    node->a = a;
    node->type = a->type;
    node->flags = EXPR_CHECKED | (postfix ? EXPR_POSTFIX : 0);
    return node;
}

/* -2147483648 is an int, and so on: the sign is part of the number, as far as its type is concerned. */
static void type_negated_literal(Checker *c, Expr *a) {
    bool plain = a->kind == EXPR_int && !(a->flags & (EXPR_HEX | EXPR_CHAR | EXPR_CHECKED)) &&
                 (a->suffix == SUFFIX_none || a->suffix == SUFFIX_l || a->suffix == SUFFIX_ll);
    if (!plain) return;
    if (a->number == (uint64_t)1 << 31 && a->suffix != SUFFIX_ll) a->type = type_basic(c->types, TYPE_int);
    else if (a->number == (uint64_t)1 << 63) a->type = type_basic(c->types, TYPE_int64);
    else return;
    a->flags |= EXPR_CHECKED;
}

Expr *check_unary(Env *env, Expr *e) {
    Checker *c = env->c;
    if (e->op == OPERATOR_sub) type_negated_literal(c, e->a);
    Expr *a = check_operand(env, e->a);
    if (a->kind == EXPR_error || has_error(a->type)) return error_expr(c, e->loc);
    Operator op = (Operator)e->op;
    switch (op) {
    case OPERATOR_mul: return deref(env, e, a);
    case OPERATOR_bit_and: return address(env, e, a);
    case OPERATOR_increment:
    case OPERATOR_decrement: return step(env, e, a, false);
    default: break;
    }
    Expr *of_enum = a->type->kind == TYPE_enum ? enum_operator(env, e, a, NULL) : NULL;
    if (of_enum) return of_enum;
    if (op == OPERATOR_not) return logical_not(env, e, a);
    if (a->type->kind == TYPE_enum && op == OPERATOR_bit_not) {
        Expr *bits = from_enum(env, a);
        return convert_node(c, builtin(env, e->loc, op, bits->type, bits, NULL), a->type, CONVERT_enum);
    }
    a = op == OPERATOR_sub || op == OPERATOR_add ? from_enum(env, a) : a;
    if (!is_builtin_operand(c, a->type)) return user_operator(env, e->loc, op, a, NULL);
    Expr *own = own_operator(env, e->loc, op, a, NULL);
    if (own) return own;
    if (!element_allows(c, op, a->type)) return no_operator(env, e->loc, op, a, NULL);
    if (op != OPERATOR_bit_not && element_of(a->type)->kind == TYPE_bool)
        a = silently(env, a, with_element(c, a->type, type_basic(c->types, TYPE_int)));
    return op == OPERATOR_add ? a : builtin(env, e->loc, op, a->type, a, NULL);
}

Expr *check_postfix(Env *env, Expr *e) {
    Expr *a = check_operand(env, e->a);
    if (a->kind == EXPR_error || has_error(a->type)) return error_expr(env->c, e->loc);
    return step(env, e, a, true);
}

/* ---- assignment */

static Expr *assign_node(Env *env, Expr *e, Expr *a, Expr *b) {
    e->kind = EXPR_assign;
    e->op = OPERATOR_none;
    e->a = a;
    e->b = b;
    e->type = a->type;
    (void)env;
    return e;
}

/* t._1_0: each part is a place, and none is named twice. */
static bool parts_writable(Env *env, Expr *parts, Loc loc) {
    for (int i = 0; i < parts->args.count; i++) {
        if (!require_writable(env, parts->args.at[i], loc)) return false;
        for (int k = 0; k < i; k++) {
            if (parts->args.at[i]->number != parts->args.at[k]->number) continue;
            report(env->c, DIAG_swizzle_repeats, loc);
            return false;
        }
    }
    return true;
}

/* A tuple for these parts: of their types, or of numbers, which are converted one by one when they are
 * stored. */
static Expr *check_parts_value(Env *env, Expr *value, const Type *type) {
    if (value->kind == EXPR_list) return coerce_list(env, value, type);
    Expr *b = check_value(env, value);
    bool fits = b->kind != EXPR_error && b->type->kind == TYPE_tuple && b->type->nargs == type->nargs;
    for (int i = 0; fits && i < type->nargs; i++) {
        const Type *from = b->type->args[i], *to = type->args[i];
        fits = from == to || (type_is_scalar(from) && type_is_scalar(to) && to->kind != TYPE_bool);
    }
    return fits ? b : coerce(env, b, type);
}

static Expr *plain_assign(Env *env, Expr *e) {
    Checker *c = env->c;
    bool member = e->a->kind == EXPR_member;
    Env target = *env;
    target.written = e->a;
    Expr *a = check_value(&target, e->a);
    bool parts = member && a->kind == EXPR_construct && a->type->kind == TYPE_tuple;
    bool writable = parts ? parts_writable(env, a, e->a->loc) : require_writable(env, a, e->a->loc);
    Expr *b = a->kind == EXPR_error ? check_term(env, e->b)
              : parts               ? check_parts_value(env, e->b, a->type)
                                    : check_value_of(env, e->b, a->type);
    if (!writable || b->kind == EXPR_error) return error_expr(c, e->loc);
    if (origin_of(a) && !require_origin(env, b, origin_of(a))) return error_expr(c, e->loc);
    return assign_node(env, e, a, b);
}

/* Evaluated twice without a difference. */
static bool is_simple_place(const Expr *e) {
    if (e->kind == EXPR_this) return true;
    if (e->kind == EXPR_decl) return e->decl->kind == DECL_var && (!e->a || is_simple_place(e->a));
    if (e->kind == EXPR_swizzle || e->kind == EXPR_part) return is_simple_place(e->a);
    return e->kind == EXPR_element && is_simple_place(e->a) &&
           (e->b->kind == EXPR_int || (e->b->kind == EXPR_decl && !e->b->a));
}

static Name assign_operator_name(Checker *c, Operator op) {
    return name_from(c->names, format_text(c->arena, "operator%s=", operator_text(op)));
}

static Expr *user_update(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Expr *args[2] = {a, b};
    Name name = assign_operator_name(c, (Operator)e->op);
    Expr *call = call_named(env, e->loc, name, args, 2, true);
    if (!call) call = member_operator(env, e->loc, name, a, b);
    if (call) return call;
    if (type_is_abstract(a->type) && is_simple_place(a)) { /* a generic type with +: a = a + b */
        Expr *sum = call_named(env, e->loc, c->known.operators[e->op], args, 2, true);
        if (sum && require_writable(env, a, e->loc)) return assign_node(env, e, a, coerce(env, sum, a->type));
    }
    if (a->type->kind == TYPE_enum && a->type == b->type && is_bitwise((Operator)e->op) &&
        is_simple_place(a)) {
        Expr *bits = enum_binary(env, e, a, b);
        if (require_writable(env, a, e->loc)) return assign_node(env, e, a, bits);
    }
    report_expr(c, e, DIAG_no_binary_operator, name->text + strlen("operator"), type_str(c, a->type),
                type_str(c, b->type));
    if (is_builtin_operand(c, a->type) && is_builtin_operand(c, b->type))
        note(c, DIAG_note_update_converts, 0, type_str(c, a->type));
    else note(c, DIAG_note_define_assign, 0, operator_text((Operator)e->op), operator_text((Operator)e->op));
    return error_expr(c, e->loc);
}

/* a = a * b, by an operator of the program's own. */
static Expr *own_update(Env *env, Expr *e, Expr *a, Expr *product) {
    Checker *c = env->c;
    if (!is_simple_place(a)) {
        report_expr(c, e, DIAG_update_own, operator_text((Operator)e->op));
        return error_expr(c, e->loc);
    }
    return require_writable(env, a, e->loc) ? assign_node(env, e, a, coerce(env, product, a->type))
                                            : error_expr(c, e->loc);
}

/* a <<= b: as many integers as there are in a, or one for all. */
static bool shift_fits(Checker *c, const Type *a, const Type *b) {
    if (!is_builtin_operand(c, b) || !element_allows(c, OPERATOR_shl, b)) return false;
    if (!is_shape(b)) return true;
    return is_shape(a) && a->kind == b->kind && a->args[1] == b->args[1] &&
           (a->kind != TYPE_matrix || a->args[2] == b->args[2]);
}

static Expr *builtin_update(Env *env, Expr *e, Expr *a, Expr *b) {
    Checker *c = env->c;
    Operator op = (Operator)e->op;
    bool pointer = a->type->kind == TYPE_pointer;
    if (pointer ? op != OPERATOR_add && op != OPERATOR_sub : !element_allows(c, op, a->type))
        return no_operator(env, e->loc, op, a, b);
    if (pointer) diag_portable(c->diags, e->loc, "a compound assignment to a pointer");
    if (is_shift(op) && !shift_fits(c, a->type, b->type)) return no_operator(env, e->loc, op, a, b);
    if (!pointer && !is_shift(op)) b = coerce(env, b, a->type);
    else if (is_shift(op) && is_shape(a->type) && !is_shape(b->type))
        b = silently(env, b, with_element(c, a->type, b->type));
    if (b->kind == EXPR_error || !require_writable(env, a, e->loc)) return error_expr(c, e->loc);
    if (!pointer) warn_zero_divisor(env, op, a->type, b);
    Expr *node = expr_new(c->arena, EXPR_update, e->loc);
    node->op = e->op;
    node->a = a;
    node->b = b;
    node->type = a->type;
    node->flags = EXPR_CHECKED;
    return node;
}

Expr *check_assign(Env *env, Expr *e) {
    Checker *c = env->c;
    if (e->op == OPERATOR_none) return plain_assign(env, e);
    Expr *a = check_operand(env, e->a), *b = check_operand(env, e->b);
    if (a->kind == EXPR_error || b->kind == EXPR_error || has_error(a->type) || has_error(b->type))
        return error_expr(c, e->loc);
    bool builtin_left =
        is_builtin_operand(c, a->type) || (a->type->kind == TYPE_pointer && type_is_integer(b->type));
    Expr *own = builtin_left && is_builtin_operand(c, b->type)
                    ? own_operator(env, e->loc, (Operator)e->op, a, b)
                    : NULL;
    if (own) return own_update(env, e, a, own);
    bool convertible = builtin_left && (a->type->kind == TYPE_pointer || is_shift((Operator)e->op) ||
                                        conversion_cost(env, b, a->type) >= 0);
    return convertible ? builtin_update(env, e, a, b) : user_update(env, e, a, b);
}

/* ---- ?: */

enum { MAX_CHOICE_CHANGES = 300 }; /* of what kind it is, in one chain */

static const Type *join_branches(Env *env, Expr *b, Expr *a) {
    const Type *joined = join_types(env->c, a->type, b->type);
    if (joined) return joined;
    if (conversion_cost(env, a, b->type) >= 0) return b->type;
    if (conversion_cost(env, b, a->type) >= 0) return a->type;
    return NULL;
}

/* condition ? a : b, all of which have been looked at; e is the node for it. */
static Expr *check_choice(Env *env, Expr *e, Expr *condition, Expr *a, Expr *b) {
    Checker *c = env->c;
    if (a->kind == EXPR_list && b->kind != EXPR_list && b->type) a = coerce_list(env, a, b->type);
    if (b->kind == EXPR_list && a->kind != EXPR_list && a->type) b = coerce_list(env, b, a->type);
    a = check_operand(env, a);
    b = check_operand(env, b);
    if (condition->kind == EXPR_error || a->kind == EXPR_error || b->kind == EXPR_error)
        return error_expr(c, e->loc);
    const Type *type = join_branches(env, a, b);
    if (!type || type->kind == TYPE_none || type->kind == TYPE_null) {
        report_expr(c, e, DIAG_branches_differ, type_str(c, a->type), type_str(c, b->type));
        return error_expr(c, e->loc);
    }
    if (a->type->kind == TYPE_none || b->type->kind == TYPE_none)
        diag_portable(c->diags, e->loc, "'none' in a conditional expression");
    if (is_shape(condition->type) && is_builtin_operand(c, condition->type)) {
        if (!is_shape(type)) type = with_element(c, condition->type, type);
        bool fits = is_shape(type) && type->kind == condition->type->kind &&
                    type->args[1] == condition->type->args[1];
        if (!fits) {
            report_expr(c, e, DIAG_select_lanes, type_str(c, condition->type), type_str(c, type));
            return error_expr(c, e->loc);
        }
        report_expr(c, e, DIAG_vector_select);
        e->a = silently(env, condition, bool_shape(c, condition->type));
    } else {
        e->a = check_condition(env, condition);
    }
    if (e->a->kind == EXPR_error) return e->a;
    e->b = coerce(env, a, type);
    e->c = coerce(env, b, type);
    e->type = type;
    return e;
}

/* Is `rest`, the last part of e, a choice of the same kind? Then both are one. */
static bool goes_on(const Expr *e, const Expr *rest) {
    return e->kind == EXPR_select && e->c == rest && rest->kind == EXPR_select && e->type == rest->type &&
           !is_shape(e->a->type) && !is_shape(rest->a->type);
}

static void join_choices(Checker *c, Expr *e) {
    while (goes_on(e, e->c)) {
        const Expr *rest = e->c;
        vec_push(c->arena, &e->args, rest->a);
        vec_push(c->arena, &e->args, rest->b);
        for (int i = 0; i < rest->args.count; i++) vec_push(c->arena, &e->args, rest->args.at[i]);
        e->c = rest->c;
    }
}

/* From the right, since the type of a choice depends on what follows it; then the chain is one node again, or
 * some, where the types change on the way or vectors choose by lanes. */
Expr *check_select(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *condition = check_value(env, e->a), *value = check_term(env, e->b);
    ExprVec more = {0};
    for (int i = 0; i < e->args.count; i++) {
        Expr *part = e->args.at[i];
        vec_push(c->arena, &more, i % 2 ? check_term(env, part) : check_value(env, part));
    }
    Expr *rest = check_term(env, e->c);
    int changes = 0;
    for (int i = more.count - 2; i >= 0; i -= 2) {
        Expr *choice = expr_new(c->arena, EXPR_select, more.at[i + 1]->loc);
        choice->first = expr_span(more.at[i]).first, choice->last = e->last;
        choice = check_choice(env, choice, more.at[i], more.at[i + 1], rest);
        choice->flags |= EXPR_CHECKED;
        if (rest->kind == EXPR_select && !goes_on(choice, rest)) join_choices(c, rest), changes++;
        rest = choice;
    }
    if (changes > MAX_CHOICE_CHANGES) {
        report_expr(c, e, DIAG_too_deep);
        return error_expr(c, e->loc);
    }
    e->args = (ExprVec){0};
    e = check_choice(env, e, condition, value, rest);
    if (e->kind == EXPR_select) join_choices(c, e);
    return e;
}

Expr *check_condition(Env *env, Expr *expr) {
    Checker *c = env->c;
    bool plain = expr->kind == EXPR_assign && expr->op == OPERATOR_none; /* of n /= 2 nobody means n == 2 */
    if (plain && !(expr->flags & EXPR_CHECKED)) {
        report_expr(c, expr, DIAG_assign_in_condition);
        check_term(env, expr);
        return error_expr(c, expr->loc);
    }
    Expr *e = check_operand(env, expr);
    if (e->kind == EXPR_error || has_error(e->type)) return error_expr(c, expr->loc);
    const Type *flag = type_basic(c->types, TYPE_bool);
    if (e->type == flag) return e;
    bool scalar = type_is_scalar(e->type) || e->type->kind == TYPE_enum || e->type->kind == TYPE_pointer;
    if (!scalar && !(type_is_abstract(e->type) && is_builtin_operand(c, e->type))) {
        report_expr(c, e, DIAG_bad_condition, type_str(c, e->type));
        if (e->type->kind == TYPE_optional) note(c, DIAG_note_optional_condition, 0);
        else if (is_shape(e->type)) note(c, DIAG_note_any_all, 0);
        return error_expr(c, expr->loc);
    }
    if (type_is_float(e->type)) report_expr(c, e, DIAG_narrowing, type_str(c, e->type), "bool");
    return convert_node(c, e, flag, CONVERT_bool);
}
