/* Conversions: which are implicit, what each costs in overload resolution, and the nodes that perform them.
 *
 * The costs reproduce the rankings of the language: splatting is almost free, widening beats changing
 * signedness, that beats going to floating point, and everything that may lose information comes last. */
#include "check/checker.h"

#include <math.h>

enum {
    COST_literal = 23,
    COST_literal_unsigned = 32,
    COST_literal_signed = 81,
    COST_enum = 20,
    COST_enum_to_bool = 40,
    COST_unsized = 10,
    COST_read_only = 10,
    COST_void_pointer = 20,
    COST_bool_int = 120,
    COST_widen = 150,
    COST_widen_mixed = 200,
    COST_unsigned = 250,
    COST_signed = 300,
    COST_real = 400,
    COST_half = 500,
    COST_lossy = 900,
};

/* ---- numbers */

static int scalar_cost(const Type *from, const Type *to) {
    if (from == to) return 0;
    if (to->kind == TYPE_bool) return COST_lossy;
    if (from->kind == TYPE_bool) {
        if (to->kind == TYPE_int) return COST_bool_int;
        if (!type_is_integer(to)) return COST_lossy;
        return type_is_signed(to) ? COST_widen_mixed : COST_widen;
    }
    int from_bits = type_bits(from), to_bits = type_bits(to);
    if (type_is_float(from)) return type_is_float(to) && to_bits > from_bits ? COST_widen : COST_lossy;
    if (type_is_float(to)) return to->kind == TYPE_half ? COST_half : COST_real;
    bool from_signed = type_is_signed(from), to_signed = type_is_signed(to);
    if (from_signed == to_signed) return to_bits > from_bits ? COST_widen : COST_lossy;
    if (to_signed)
        return to_bits > from_bits ? COST_widen_mixed : to_bits == from_bits ? COST_signed : COST_lossy;
    return to_bits >= from_bits ? COST_unsigned : COST_lossy;
}

static bool is_negative(const Expr *e) {
    return e->kind == EXPR_builtin && e->op == OPERATOR_sub && e->args.count == 1;
}

/* The value of an integer literal, with its sign. */
static bool literal_value(const Expr *e, int64_t *value) {
    bool negative = is_negative(e);
    const Expr *digits = negative ? e->args.at[0] : e;
    if (digits->kind != EXPR_int || digits->number > INT64_MAX) return false;
    *value = negative ? -(int64_t)digits->number : (int64_t)digits->number;
    return true;
}

static bool fits(int64_t value, const Type *to) {
    int bits = type_bits(to);
    if (!type_is_signed(to)) return value >= 0 && (bits == 64 || value < (int64_t)1 << bits);
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}

static int literal_cost(const Expr *e, const Type *to) {
    int64_t value;
    if (!type_is_integer(to) || !literal_value(e, &value) || !fits(value, to)) return COST_none;
    bool from_signed = type_is_signed(e->type), to_signed = type_is_signed(to);
    if (e->type == to) return 0;
    return from_signed == to_signed ? COST_literal
           : from_signed            ? COST_literal_unsigned
                                    : COST_literal_signed;
}

static bool is_shape(const Type *t) { return t->kind == TYPE_vector || t->kind == TYPE_matrix; }

static bool same_shape(const Type *a, const Type *b) {
    return a->kind == b->kind && a->args[1] == b->args[1] &&
           (a->kind == TYPE_vector || a->args[2] == b->args[2]);
}

static bool is_one_lane(const Type *t) { return t->kind == TYPE_vector && type_count(t) == 1; }

/* Between scalars, vectors and matrices; elements may be generic, then only equal ones convert. */
static int element_cost(const Type *from, const Type *to) {
    if (from == to) return 0;
    return type_is_scalar(from) && type_is_scalar(to) ? scalar_cost(from, to) : COST_none;
}

static int numeric_cost(const Type *from, const Type *to) {
    if (type_is_scalar(from) && type_is_scalar(to)) return scalar_cost(from, to);
    if (is_shape(from) && is_shape(to))
        return same_shape(from, to) ? element_cost(from->args[0], to->args[0]) : COST_none;
    if (is_shape(to) && (type_is_scalar(from) || type_is_abstract(from))) {
        int cost = element_cost(from, to->args[0]);
        return cost < 0 ? cost : cost + COST_splat;
    }
    if (!is_one_lane(from) || !type_is_scalar(to)) return COST_none;
    int cost = element_cost(from->args[0], to);
    return cost < 0 ? cost : cost + COST_lane;
}

/* ---- the other types */

/* Kept, unless it is asked for while one of them finds out what it inherits. */
const TypeVec *interface_with_inherited(Checker *c, const Type *interface) {
    TypeVec *kept = map_get(&c->inherited, PTR_KEY(interface));
    if (kept) return kept;
    TypeVec *found = arena_new(c->arena, TypeVec);
    bool all_known = true;
    vec_push(c->arena, found, interface);
    for (int next = 0; next < found->count; next++) {
        const Type *now = found->at[next];
        Decl *decl = (Decl *)(uintptr_t)now->decl;
        ensure_bases(c, decl);
        const Sema *sema = decl_sema(c, decl);
        all_known &= sema->bases_done;
        const Subst *subst = sema->interfaces.count ? interface_subst(c, now, now) : NULL;
        for (int i = 0; i < sema->interfaces.count; i++)
            type_vec_add_once(c, found, check_subst(c, sema->interfaces.at[i], subst));
    }
    if (all_known) map_put(c->arena, &c->inherited, PTR_KEY(interface), found);
    return found;
}

bool interface_inherits(Checker *c, const Type *sub, const Type *super) {
    if (sub == super) return true;
    const TypeVec *all = interface_with_inherited(c, sub);
    for (int i = 0; i < all->count; i++)
        if (all->at[i] == super) return true;
    return false;
}

bool types_match(Checker *c, const Type *a, const Type *b) {
    (void)c;
    return a == b || has_error(a) || has_error(b);
}

static int upcast_cost(Checker *c, const Type *from, const Type *to) {
    int cost = 0;
    for (const Type *t = from; t; t = check_base(c, t), cost += 100)
        if (t == to) return cost;
    return COST_none;
}

/* Is there an implicit conversion by a constraint: where To(From) implicit; an enum, whichever it is, to
 * bool? */
static bool is_promised(Checker *c, const Type *from, const Type *to) {
    bool generic = ((from->flags | to->flags) & TYPE_HAS_PARAM) != 0;
    if (!generic || from->kind == TYPE_expand || to->kind == TYPE_expand) return false;
    if (known_to_convert(c, from, to, true)) return true;
    return to->kind == TYPE_bool && type_is_abstract(from) && conforms_to(c, from, c->known.__EnumType);
}

static bool is_interface_diff(Checker *c, const Type *type) {
    return type->kind == TYPE_assoc && type->name == c->known.Differential &&
           type->args[0]->kind == TYPE_interface;
}

static int optional_depth(const Type *type) {
    int depth = 0;
    for (; type->kind == TYPE_optional; type = type->args[0]) depth++;
    return depth;
}

/* Is what may be in the one converted to what may be in the other? Of fewer optionals, the whole is the
 * value. */
static bool maps_optional(const Type *from, const Type *to) {
    return from->kind == TYPE_optional && optional_depth(from) >= optional_depth(to);
}

/* To void*, to one that is only read from, or both. */
static int pointer_cost(const Type *from, const Type *to) {
    bool writes_more = from->flags & TYPE_READONLY && !(to->flags & TYPE_READONLY);
    bool same = from->args[0] == to->args[0], to_void = to->args[0]->kind == TYPE_void;
    if (writes_more || !(same || to_void)) return COST_none;
    return (same ? 0 : COST_void_pointer) + (from->flags == to->flags ? 0 : COST_read_only);
}

static int struct_like_cost(Env *env, const Type *from, const Type *to) {
    Checker *c = env->c;
    if (to->kind == TYPE_interface) {
        if (from->kind == TYPE_interface)
            return check_conforms(c, from, to, NULL) ? COST_interface : COST_none;
        if (is_interface_diff(c, from))
            return to->name == c->known.IDifferentiable ? COST_interface : COST_none;
        return check_conforms(c, from, to, NULL) ? COST_interface : COST_none;
    }
    if (to->kind == TYPE_optional) {
        if (from->kind == TYPE_none) return 0;
        int inner = type_conversion_cost(env, maps_optional(from, to) ? from->args[0] : from, to->args[0]);
        return inner < 0 ? inner : inner + COST_widen;
    }
    if (to->kind == TYPE_pair && from->kind == TYPE_pair) {
        const Type *a = from->args[0], *b = to->args[0];
        if (type_is_float(a) && type_is_float(b) && type_bits(b) > type_bits(a)) return COST_widen;
        if (b->kind == TYPE_interface) return check_conforms(c, a, b, NULL) ? COST_interface : COST_none;
        return COST_none;
    }
    if (is_interface_diff(c, to)) {
        if (from->kind == TYPE_interface && from->name == c->known.IDifferentiable) return COST_interface;
        return check_conforms(c, from, interface_named(c, c->known.IDifferentiable), NULL) ? COST_interface
                                                                                           : COST_none;
    }
    if (is_promised(c, from, to)) return COST_enum;
    if (from->kind == TYPE_enum) {
        if (to->kind == TYPE_bool) return COST_enum_to_bool;
        ensure_header(c, (Decl *)(uintptr_t)from->decl);
        return decl_sema(c, (Decl *)(uintptr_t)from->decl)->underlying == to ? COST_enum : COST_none;
    }
    if (from->kind == TYPE_struct && to->kind == TYPE_struct) return upcast_cost(c, from, to);
    if (from->kind == TYPE_array && to->kind == TYPE_array && to->nargs == 1)
        return from->args[0] == to->args[0] ? COST_unsized : COST_none;
    if (from->kind == TYPE_null && to->kind == TYPE_pointer) return 0;
    if (from->kind == TYPE_pointer && to->kind == TYPE_pointer) return pointer_cost(from, to);
    return COST_none;
}

int type_conversion_cost(Env *env, const Type *from, const Type *to) {
    from = known_type(env->c, from);
    to = known_type(env->c, to);
    if (from == to || has_error(from) || has_error(to)) return 0;
    int cost = numeric_cost(from, to);
    return cost >= 0 ? cost : struct_like_cost(env, from, to);
}

/* What it costs that a constructor of one parameter takes a value of that type, and its generic arguments
 * then. */
static int init_cost(Env *env, Decl *init, const Type *from, const Subst **subst) {
    Checker *c = env->c;
    FuncSig *sig = signature_of(c, init);
    int n = generic_count(init);
    if (sig->nparams != 1) return COST_none;
    if (n) {
        Inference inference = {
            .c = c, .owner = init, .args = arena_array(c->arena, const Type *, n), .nargs = n};
        infer_match(&inference, check_subst(c, sig->params[0].type, *subst), from);
        if (!infer_finish(&inference, *subst, subst) || !constraints_hold(c, init, *subst, 0))
            return COST_none;
    }
    return type_conversion_cost(env, from, check_subst(c, sig->params[0].type, *subst));
}

/* A constructor marked __implicit_conversion(cost), of the type or of an extension, that makes `to` from
 * `from`: of several the one whose parameter fits best, then the cheapest. */
static int user_conversion(Env *env, const Type *from, const Type *to, Candidate *found) {
    Checker *c = env->c;
    Candidates inits = {.name = c->known.__init};
    bool extended = from->kind == TYPE_struct && (is_shape(to) || type_is_scalar(to));
    if (!(extended || to->kind == TYPE_struct) || !lookup_member(c, to, c->known.__init, &inits))
        return COST_none;
    int best = COST_none;
    for (int i = 0; i < inits.count; i++) {
        Decl *init = inits.at[i].decl;
        const Subst *subst = inits.at[i].subst;
        int fit = init->modifiers & MODIFIER_implicit ? init_cost(env, init, from, &subst) : COST_none;
        bool better = best < 0 || fit < best || (fit == best && init->number < found->decl->number);
        if (fit < 0 || !better) continue;
        *found = (Candidate){.decl = init, .subst = inits.at[i].subst};
        best = fit;
    }
    return best < 0 ? COST_none : (int)found->decl->number;
}

/* A ConstantBuffer or ParameterBlock, which stands for what is in it. */
static bool is_block(const Type *type) {
    return type->kind == TYPE_buffer && type->number == BUFFER_constant;
}

const Type *in_block(const Type *type) { return is_block(type) ? type->args[0] : type; }

Expr *read_block(Env *env, Expr *e) { return e->type && is_block(e->type) ? auto_deref(env, e) : e; }

bool is_conditional(Checker *c, const Type *type) {
    const Decl *decl = type->kind == TYPE_struct ? type->decl : NULL;
    return decl && (decl->flags & DECL_PRELUDE) && decl->name == c->known.Conditional;
}

Expr *conditional_value(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *get = expr_new(c->arena, EXPR_member, e->loc), *call = expr_new(c->arena, EXPR_call, e->loc);
    get->a = e;
    get->name = name_from(c->names, "get");
    call->a = get;
    return check_value(env, call);
}

bool type_converts(Env *env, const Type *from, const Type *to) {
    Candidate user;
    return type_conversion_cost(env, from, to) >= 0 || user_conversion(env, from, to, &user) >= 0;
}

int conversion_cost(Env *env, const Expr *from, const Type *to) {
    if (from->kind == EXPR_error || has_error(to)) return 0;
    to = known_type(env->c, to);
    if (from->kind == EXPR_list) return list_cost(env, from, to);
    if (to->kind == TYPE_function) return function_cost(env, from, to);
    if (from->kind == EXPR_overload || !from->type) return COST_none;
    if (is_block(from->type) && to != from->type) return type_conversion_cost(env, in_block(from->type), to);
    if (from->type->kind == TYPE_interface && from->type == to) return COST_interface;
    int literal = literal_cost(from, to);
    if (literal >= 0) return literal;
    if (to->kind == TYPE_vector && type_is_scalar(to->args[0])) { /* a literal splats cheaply, too */
        literal = literal_cost(from, to->args[0]);
        if (literal >= 0) return literal + COST_splat;
    }
    if (to->kind == TYPE_optional && is_conditional(env->c, from->type)) {
        int inner = from->type->args[0] == to->args[0]
                        ? 0
                        : type_conversion_cost(env, from->type->args[0], to->args[0]);
        return inner < 0 ? COST_none : inner + COST_splat;
    }
    int cost = type_conversion_cost(env, from->type, to);
    Candidate user;
    return cost >= 0 ? cost : user_conversion(env, from->type, to, &user);
}

/* ---- nodes */

/* ---- numbers that are too large
 *
 * A number without suffix is a float, unless it becomes a double right away, or what may be one: then it is meant as it is written, which is known when all around it has been looked at. */

static Expr *digits_of(Expr *e) { return is_negative(e) ? e->args.at[0] : e; }

static bool is_infinite_as(double value, TypeKind kind) {
    if (kind == TYPE_half) return isinf(half_to_float(half_from_double(value)));
    return kind == TYPE_float && isinf((float)value);
}

static void report_large(Checker *c, const Expr *e, const char *type) {
    report_expr(c, e, DIAG_float_overflow, format_text(c->arena, "%g", e->real), type);
}

void note_large_number(Checker *c, Expr *e) {
    if (!isinf(e->real) && is_infinite_as(e->real, TYPE_float) && !c->diags->muted)
        vec_push(c->arena, &c->large, e);
}

void report_large_numbers(Checker *c, int first) {
    for (int i = first; i < c->large.count; i++)
        if (c->large.at[i]) report_large(c, c->large.at[i], "float");
    c->large.count = first;
}

static void becomes_double(Checker *c, const Expr *e) {
    for (int i = 0; i < c->large.count; i++)
        if (c->large.at[i] == e) c->large.at[i] = NULL;
}

Expr *convert_node(Checker *c, Expr *e, const Type *to, ConversionKind kind) {
    if (c->large.count && (to->kind == TYPE_double || type_is_abstract(to))) becomes_double(c, digits_of(e));
    Expr *node = expr_new(c->arena, EXPR_convert, e->loc);
    node->a = e;
    node->type = to;
    node->conversion = (uint8_t)kind;
    node->flags = EXPR_CHECKED | EXPR_IMPLICIT;
    return node;
}

static Expr *convert_numeric(Checker *c, Expr *e, const Type *to) {
    const Type *from = e->type;
    if (is_shape(to) && !is_shape(from)) {
        if (from != to->args[0]) e = convert_node(c, e, to->args[0], CONVERT_numeric);
        return convert_node(c, e, to, CONVERT_splat);
    }
    if (is_one_lane(from) && !is_shape(to)) {
        e = convert_node(c, e, from->args[0], CONVERT_single);
        return from->args[0] == to ? e : convert_node(c, e, to, CONVERT_numeric);
    }
    return convert_node(c, e, to, CONVERT_numeric);
}

/* `1 / n` where a fraction was surely meant: the dividend is a number that was written without a point. */
static bool drops_fraction(const Expr *e, int64_t *dividend) {
    while (e->kind == EXPR_paren) e = e->a;
    if (e->kind != EXPR_builtin || e->op != OPERATOR_div || e->args.count != 2) return false;
    int64_t divisor;
    if (!literal_value(e->args.at[0], dividend) || *dividend == 0) return false;
    return !literal_value(e->args.at[1], &divisor) || (divisor != 0 && *dividend % divisor != 0);
}

void warn_quotient(Checker *c, const Expr *e, const Type *to) {
    int64_t dividend;
    if (!type_is_integer(e->type) || !type_is_float(is_shape(to) ? to->args[0] : to)) return;
    if (!drops_fraction(e, &dividend)) return;
    report_expr(c, e, DIAG_integer_quotient, type_str(c, to));
    note(c, DIAG_note_write_float, 0, (int)dividend);
    const char *written = format_text(c->arena, "%d", (int)dividend);
    diag_fix_word(c->diags, written, format_text(c->arena, "%s.0", written));
}

static void warn_numeric(Env *env, const Expr *e, const Type *to) {
    Checker *c = env->c;
    const Type *from = is_shape(e->type) ? e->type->args[0] : e->type,
               *target = is_shape(to) ? to->args[0] : to;
    if (from == target || !type_is_scalar(from) || !type_is_scalar(target)) return;
    int64_t value;
    bool literal = literal_value(e, &value) || e->kind == EXPR_float ||
                   (is_negative(e) && e->args.at[0]->kind == EXPR_float);
    if (type_is_integer(from) && type_is_integer(target)) {
        if (literal_value(e, &value)) {
            bool wraps_silently = type_bits(from) == type_bits(target);
            if (!fits(value, target) && !wraps_silently)
                report_expr(c, e, DIAG_constant_wraps, type_str(c, target));
            return;
        }
        int64_t constant;
        if (eval_number(env, (Expr *)(uintptr_t)e, &constant) && fits(constant, target)) return;
        if (type_bits(target) < type_bits(from))
            report_expr(c, e, DIAG_narrowing, type_str(c, e->type), type_str(c, to));
        return;
    }
    warn_quotient(c, e, target);
    bool lossy = target->kind == TYPE_bool || from->kind == TYPE_bool ? target->kind == TYPE_bool
                 : type_is_float(from) ? !type_is_float(target) || type_bits(target) < type_bits(from)
                                       : target->kind == TYPE_half;
    const Expr *digits = digits_of((Expr *)(uintptr_t)e);
    bool is_large = digits->kind == EXPR_float && target->kind == TYPE_half && !isinf((float)digits->real) &&
                    is_infinite_as(digits->real, TYPE_half);
    if (is_large) report_large(c, digits, "half");
    if (lossy && !(literal && type_is_float(target)))
        report_expr(c, e, DIAG_narrowing, type_str(c, e->type), type_str(c, to));
    else if (!lossy && type_is_float(from) && target->kind == TYPE_double && !literal)
        report_expr(c, e, DIAG_float_to_double);
}

static Expr *convert_enum(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    if (e->type->kind == TYPE_enum) {
        Decl *decl = (Decl *)(uintptr_t)e->type->decl;
        ensure_header(c, decl);
        e = convert_node(c, e, decl_sema(c, decl)->underlying, CONVERT_enum);
    }
    if (to->kind != TYPE_enum) return e->type == to ? e : convert_numeric(c, e, to);
    Decl *decl = (Decl *)(uintptr_t)to->decl;
    ensure_header(c, decl);
    const Type *underlying = decl_sema(c, decl)->underlying;
    if (e->type != underlying) e = convert_numeric(c, e, underlying);
    return convert_node(c, e, to, CONVERT_enum);
}

static Expr *convert_struct_like(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    const Type *from = e->type;
    if (to->kind == TYPE_interface) {
        if (is_interface_diff(c, from)) return convert_node(c, e, to, CONVERT_interface_diff);
        if (contains_interface(c, from, to)) {
            report_expr(c, e, DIAG_interface_in_itself, type_str(c, from), type_str(c, to));
            note(c, DIAG_note_generic_instead, 0, type_str(c, to));
            return error_expr(c, e->loc);
        }
        return convert_node(c, e, to,
                            from->kind == TYPE_interface ? CONVERT_interface : CONVERT_to_interface);
    }
    if (to->kind == TYPE_optional) {
        if (from->kind == TYPE_none) return convert_node(c, e, to, CONVERT_null);
        if (maps_optional(from, to)) return convert_node(c, e, to, CONVERT_optional_map);
        if (to->args[0]->kind == TYPE_interface && from->kind != TYPE_interface)
            diag_portable(c->diags, e->loc, "a conversion to an interface and to an optional in one");
        return convert_node(c, coerce(env, e, to->args[0]), to, CONVERT_optional);
    }
    if (to->kind == TYPE_pair) return convert_node(c, e, to, CONVERT_pair);
    if (is_interface_diff(c, to)) return convert_node(c, e, to, CONVERT_interface_diff);
    if (is_promised(c, from, to)) return convert_node(c, e, to, CONVERT_promised);
    if (from->kind == TYPE_enum && to->kind == TYPE_bool) return convert_enum(env, e, to);
    if (from->kind == TYPE_enum) return convert_node(c, e, to, CONVERT_enum);
    if (from->kind == TYPE_struct) {
        Expr *node = convert_node(c, e, to, CONVERT_upcast);
        node->flags |= e->flags & (EXPR_PLACE | EXPR_READONLY);
        return node;
    }
    if (from->kind == TYPE_null) return convert_node(c, e, to, CONVERT_null);
    return convert_node(c, e, to, from->kind == TYPE_pointer ? CONVERT_pointer : CONVERT_unsized);
}

static bool is_smaller_matrix(const Type *from, const Type *to) {
    int64_t fr, fc, tr, tc;
    if (from->kind != TYPE_matrix || to->kind != TYPE_matrix) return false;
    if (!type_is_number(from->args[1], &fr) || !type_is_number(from->args[2], &fc)) return false;
    if (!type_is_number(to->args[1], &tr) || !type_is_number(to->args[2], &tc)) return false;
    return tr <= fr && tc <= fc;
}

/* Is there a conversion, if somebody asks for it? */
static bool is_cast_meant(const Type *from, const Type *to) {
    bool number = type_is_scalar(to) && to->kind != TYPE_bool;
    bool to_enum = to->kind == TYPE_enum && (type_is_scalar(from) || from->kind == TYPE_enum);
    return to_enum || (from->kind == TYPE_enum && number) || is_smaller_matrix(from, to);
}

void note_conversion(Checker *c, const Type *from, const Type *to) {
    bool number = type_is_scalar(to) && to->kind != TYPE_bool;
    if (from->kind == TYPE_vector && to->kind == TYPE_bool) note(c, DIAG_note_any_all, 0);
    else if (from->kind == TYPE_vector && (to->kind == TYPE_vector || number) &&
             type_count(from) > type_count(to))
        note(c, DIAG_note_use_swizzle, 0, type_count(to) == 1 ? "x" : type_count(to) == 2 ? "xy" : "xyz");
    else if (from->kind == TYPE_optional && to->kind == TYPE_bool) note(c, DIAG_note_optional_condition, 0);
    else if (from->kind == TYPE_optional && (to == from->args[0] || type_is_scalar(to)))
        note(c, DIAG_note_optional_value, 0);
    else if (from->kind == TYPE_pair && to->kind != TYPE_pair) note(c, DIAG_note_pair_parts, 0);
    else if (to->kind == TYPE_tuple && from->kind != TYPE_tuple) note(c, DIAG_note_make_tuple, 0);
    else if (is_cast_meant(from, to)) note(c, DIAG_note_write_cast, 0, type_str(c, to));
    else if (to->kind == TYPE_struct && type_is_scalar(from))
        note(c, DIAG_note_write_constructor, 0, type_str(c, to));
    else if (to->kind == TYPE_interface)
        note(c, DIAG_note_does_not_conform, 0, type_str(c, from), type_str(c, to));
    else if (type_is_abstract(to) && type_is_scalar(from))
        note(c, DIAG_note_write_constructor, 0, type_str(c, to));
}

static void note_address(Checker *c, const Expr *e, const Type *to) {
    const Type *from = e->type;
    if (to->kind != TYPE_pointer || !(e->flags & EXPR_PLACE)) return;
    if (from == to->args[0]) note(c, DIAG_note_address, 0);
    else if (from->kind == TYPE_array && from->args[0] == to->args[0]) note(c, DIAG_note_address_of_first, 0);
}

static Expr *cannot_convert(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    report_expr(c, e, DIAG_cannot_convert, type_str(c, e->type), type_str(c, to));
    note_conversion(c, e->type, to);
    note_address(c, e, to);
    if (is_cast_meant(e->type, to))
        diag_fix_around(c->diags, format_text(c->arena, "%s(", type_str(c, to)), ")");
    return error_expr(c, e->loc);
}

/* An Atomic<T> is a place: what is read from it is a T. */
static Expr *refuse_copy(Env *env, Expr *e) {
    Checker *c = env->c;
    const Decl *decl = e->type->kind == TYPE_struct ? e->type->decl : NULL;
    bool place = (e->flags & EXPR_PLACE) && e->kind != EXPR_default;
    if (!decl || !place || !(decl->flags & DECL_PRELUDE) || decl->name != c->known.Atomic) return e;
    report_expr(c, e, DIAG_atomic_copied, type_str(c, e->type));
    return error_expr(c, e->loc);
}

Expr *coerce(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    if (e->kind == EXPR_list) return coerce_list(env, e, to);
    if (to->kind == TYPE_function)
        return e->kind == EXPR_error || has_error(to) ? error_expr(c, e->loc) : coerce_function(env, e, to);
    e = check_value(env, e);
    to = known_type(c, to);
    if (e->kind == EXPR_error || has_error(e->type) || has_error(to))
        return e->kind == EXPR_error ? e : error_expr(c, e->loc);
    if (e->type == to) return refuse_copy(env, e);
    if (is_block(e->type)) return coerce(env, auto_deref(env, e), to);
    if (numeric_cost(e->type, to) >= 0) {
        warn_numeric(env, e, to);
        return convert_numeric(c, e, to);
    }
    if (to->kind == TYPE_optional && is_conditional(c, e->type) && conversion_cost(env, e, to) >= 0)
        return coerce(env, conditional_value(env, e), to);
    if (struct_like_cost(env, e->type, to) >= 0) return convert_struct_like(env, e, to);
    Candidate user;
    if (user_conversion(env, e->type, to, &user) >= 0) {
        ExprVec args = {0};
        vec_push(c->arena, &args, e);
        Candidates list = {0};
        candidates_add(c, &list, user);
        return resolve_call(env, e->loc, &list, &args, false);
    }
    return cannot_convert(env, e, to);
}

/* Is there a conversion that a cast makes? Tried on a variable that nobody has. */
bool type_can_cast(Env *env, const Type *from, const Type *to) {
    Checker *c = env->c;
    Decl *decl = decl_new(c->arena, DECL_var, 0, c->known.newValue);
    decl->type = from;
    decl->state = STATE_header;
    c->diags->muted++;
    Expr *e = convert_explicit(env, decl_expr(c, 0, decl, NULL, NULL), to, 0);
    c->diags->muted--;
    return e->kind != EXPR_error;
}

/* ---- explicit */

static bool is_integral(const Type *t) { return type_is_integer(t) || t->kind == TYPE_bool; }

/* Numbers of which some are of a generic type that can only be built in: converted once the types are
 * known. */
static bool are_generic_numbers(Checker *c, const Type *from, const Type *to) {
    bool generic = ((from->flags | to->flags) & TYPE_HAS_PARAM) != 0;
    if (!generic || !is_builtin_operand(c, from) || !is_builtin_operand(c, to)) return false;
    return !is_shape(from) || (is_shape(to) && same_shape(from, to));
}

/* An enum that is known by its constraint, from or to a number. */
static bool is_generic_enum(Checker *c, const Type *type, const Type *number) {
    return type_is_abstract(type) && is_integral(number) && conforms_to(c, type, c->known.__EnumType);
}

static bool is_longer_vector(const Type *from, const Type *to) {
    int64_t n, wanted;
    if (from->kind != TYPE_vector || to->kind != TYPE_vector) return false;
    return type_is_number(from->args[1], &n) && type_is_number(to->args[1], &wanted) && wanted < n;
}

/* (float2)v is (float2)v.xy. */
static Expr *first_lanes(Env *env, Expr *e, const Type *to, Loc loc) {
    Checker *c = env->c;
    Expr *node = expr_new(c->arena, EXPR_swizzle, e->loc);
    node->a = e;
    node->nlanes = type_count(to);
    for (int i = 0; i < node->nlanes; i++) node->lanes[i] = (uint8_t)i;
    node->type = type_vector(c->types, e->type->args[0], node->nlanes);
    node->flags = EXPR_CHECKED;
    return convert_explicit(env, node, to, loc);
}

Expr *convert_explicit(Env *env, Expr *e, const Type *to, Loc loc) {
    Checker *c = env->c;
    const Type *from = e->type;
    if (has_error(from) || has_error(to)) return error_expr(c, loc);
    if (is_block(from) && to->kind != TYPE_buffer) return convert_explicit(env, read_block(env, e), to, loc);
    ExprVec args = {0};
    vec_push(c->arena, &args, e);
    if (from == to) return to->kind == TYPE_struct ? check_construct(env, loc, to, &args) : e;
    if (known_to_convert(c, from, to, false)) {
        e = convert_node(c, e, to, CONVERT_promised);
        e->flags |= EXPR_EXPLICIT;
        return e;
    }
    bool generic = are_generic_numbers(c, from, to);
    if (generic && type_is_abstract(from)) diag_portable(c->diags, loc, "a cast of a generic number");
    generic |= is_generic_enum(c, from, to) || is_generic_enum(c, to, from);
    if (numeric_cost(from, to) >= 0 || generic) return convert_numeric(c, e, to);
    bool enums = (from->kind == TYPE_enum || is_integral(from) || type_is_float(from)) &&
                 (to->kind == TYPE_enum || type_is_scalar(to));
    if (enums) return convert_enum(env, e, to);
    if (is_smaller_matrix(from, to)) return convert_node(c, e, to, CONVERT_truncate);
    if (is_longer_vector(from, to)) return first_lanes(env, e, to, loc);
    bool pointers = (from->kind == TYPE_pointer || from->kind == TYPE_null || is_integral(from)) &&
                    to->kind == TYPE_pointer;
    if (pointers || (from->kind == TYPE_pointer && is_integral(to)))
        return convert_node(c, e, to, CONVERT_pointer);
    if (from->kind == TYPE_buffer && to->kind == TYPE_buffer && from->number == to->number &&
        from->args[0] == to->args[0])
        return convert_node(c, e, to, CONVERT_same);
    if (struct_like_cost(env, from, to) >= 0) return convert_struct_like(env, e, to);
    bool zero = e->kind == EXPR_int && e->number == 0;
    if (zero && to->kind != TYPE_pointer) return default_value(env, loc, to);
    if (to->kind == TYPE_struct || type_is_abstract(to)) return check_construct(env, loc, to, &args);
    Expr *extended = construct_by_extension(env, loc, to, &args);
    return extended ? extended : cannot_convert(env, e, to);
}

/* The conversion that a constraint promised, of a variable whose type is known by now. */
Expr *check_promised_conversion(Checker *c, Decl *variable, const Type *to, bool explicitly) {
    Env env = {.c = c};
    variable->state = STATE_header;
    Expr *value = decl_expr(c, variable->loc, variable, NULL, NULL);
    return explicitly ? convert_explicit(&env, value, to, variable->loc) : coerce(&env, value, to);
}
