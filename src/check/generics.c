/* Generic parameters: their constraints, and what follows from them inside a generic body. */
#include "check/checker.h"

/* Types, or, in an equation, numbers as well: where A.size == B.size. */
static const Type *resolve_side(Env *env, Expr *expr, bool may_be_number) {
    Expr *e = may_be_number ? check_term(env, expr) : expr;
    return may_be_number && e->kind != EXPR_type && e->kind != EXPR_error ? resolve_number(env, e)
                                                                          : resolve_type(env, e);
}

/* each T : I and expand each T : I say it of the pack; what is said of (each T).A is kept as that pattern. */
static const Type *constrained(const Type *subject) {
    if (subject->kind == TYPE_expand) subject = subject->args[0];
    return subject->kind == TYPE_each ? subject->args[0] : subject;
}

/* What a side is under these arguments; of a pattern over packs, the list of what it is for each element. */
static const Type *side_under(Checker *c, const Type *side, const Subst *subst) {
    bool pattern = side->kind != TYPE_apply && pack_in(side);
    return check_subst(c, pattern ? pack_expand(c, side) : side, subst);
}

/* The other side for one element: each has its own, or all have the same. */
static const Type *bound_for(const Type *bound, int element) {
    if (bound->kind != TYPE_pack) return bound;
    return element < bound->nargs ? bound->args[element] : NULL;
}

static const Type *demanded_pack(Env *env, const Decl *decl, Expr *expr) {
    Checker *c = env->c;
    Expr *e = check_term(env, expr);
    if (e->kind == EXPR_error) return ERROR_TYPE(c);
    const Type *type = e->kind == EXPR_type ? e->type_value : NULL;
    for (int i = 0; i < generic_count(decl) && e->kind == EXPR_decl; i++)
        if (generic_param(decl, i) == e->decl) type = param_type(c, decl, i);
    if (type && type->kind == TYPE_param && type->decl == decl && (type->flags & TYPE_IS_PACK_PARAM))
        return type;
    report_expr(c, expr, DIAG_nonempty_needs_pack);
    return ERROR_TYPE(c);
}

static void resolve_demand(Env *env, const Decl *decl, Demand *demand) {
    if (demand->kind == DEMAND_nonempty) {
        demand->subject_type = demanded_pack(env, decl, demand->subject);
        return;
    }
    demand->subject_type = resolve_type(env, demand->subject);
    demand->to_type = resolve_type(env, demand->to);
}

static void resolve_constraint(Env *env, Constraint *constraint) {
    Checker *c = env->c;
    c->expand_depth++; /* where each T : I */
    const Type *bound = resolve_side(env, constraint->bound, constraint->equal),
               *subject = resolve_side(env, constraint->subject, constraint->equal);
    c->expand_depth--;
    subject = constrained(subject);
    if (bound->kind == TYPE_expand) bound = bound->args[0];
    if (!constraint->equal && bound->kind != TYPE_interface && !has_error(bound)) {
        report(c, DIAG_constraint_no_interface, constraint->loc, type_str(c, bound));
        bound = ERROR_TYPE(c);
    }
    constraint->bound_type = bound;
    constraint->subject_type = subject;
    c->has_equations |= constraint->equal && (subject->kind == TYPE_param || bound->kind == TYPE_param);
}

/* Constraints become visible one by one, so that a later one may use an earlier one. */
void ensure_generics(Checker *c, Decl *decl) {
    Generics *generics = decl->generics;
    if (!generics || generics->checked) return;
    if (decl->kind == DECL_assoc) { /* `where View.Item == Item` needs to know what View is */
        ensure_bases(c, decl);
        if (!decl_sema(c, decl)->bases_done || generics->checked) return;
    }
    generics->checked = true;
    Env env = env_for_head(c, decl);
    const Decl *context = c->context;
    c->context = decl;
    for (int i = 0; i < generics->params.count; i++) {
        Decl *param = generics->params.at[i];
        if (param->kind == DECL_value_param && !param->type) ensure_header(c, param);
        for (int k = 0; k < i && param->name; k++) {
            if (generics->params.at[k]->name != param->name) continue;
            report(c, DIAG_redeclared, param->loc, param->name->text);
            note(c, DIAG_note_declared_here, generics->params.at[k]->loc, param->name->text);
        }
    }
    for (int others = 0; others < 2; others++) /* T : I first: what follows may say something about T.A */
        for (int i = 0; i < generics->constraints.count; i++) {
            Constraint *constraint = &generics->constraints.at[i];
            bool about_param = !constraint->equal && constraint->subject->kind == EXPR_name;
            if (about_param != (others == 1)) resolve_constraint(&env, constraint);
        }
    for (int i = 0; i < generics->demands.count; i++) resolve_demand(&env, decl, &generics->demands.at[i]);
    c->context = context;
}

static void report_constraint(Checker *c, const Constraint *constraint, const Type *subject,
                              const Type *bound, Loc loc) {
    if (is_half_known(c, subject)) return;
    if (constraint->equal)
        report(c, DIAG_constraint_not_equal, loc, type_str(c, constraint->subject_type), type_str(c, subject),
               type_str(c, bound));
    else report(c, DIAG_constraint_not_met, loc, type_str(c, subject), type_str(c, bound));
    if (constraint->loc) note(c, DIAG_note_constraint_here, constraint->loc);
    const Type *param = pack_root(subject);
    bool differentiable =
        !constraint->equal && bound->decl && ((const Decl *)bound->decl)->name == c->known.IDifferentiable;
    if (differentiable && is_ptr_differentiable_type(c, subject))
        note(c, DIAG_note_ptr_pair, 0, type_str(c, subject));
    else if (differentiable && subject->kind == TYPE_struct)
        note(c, DIAG_note_make_differentiable, ((const Decl *)subject->decl)->loc, declared_name(c, subject));
    if (!constraint->equal && param && ((const Decl *)param->decl)->kind != DECL_interface)
        note(c, DIAG_note_add_constraint, ((const Decl *)param->decl)->loc, type_str(c, param),
             type_str(c, bound));
}

static bool stated_equal(Checker *c, const Type *number, const Type *other);

static bool constraint_holds(Checker *c, const Constraint *constraint, const Type *one, const Type *bound) {
    if (!bound) return false;
    if (one->kind == TYPE_expand) one = one->args[0];
    if (one->kind == TYPE_repeat) one = one->args[0];
    if (bound->kind == TYPE_expand) bound = bound->args[0];
    if (!constraint->equal) return check_conforms(c, one, bound, NULL);
    return types_match(c, known_type(c, one), known_type(c, bound)) || stated_equal(c, one, bound);
}

/* Can it be converted as the constraint asks? In generic code because a constraint there says so. */
static bool demand_converts(Checker *c, const Demand *demand, const Type *from, const Type *to) {
    Env env = {.c = c};
    if (from == to || known_to_convert(c, from, to, demand->kind == DEMAND_implicit)) return true;
    return demand->kind == DEMAND_implicit ? type_converts(&env, from, to) : type_can_cast(&env, from, to);
}

static bool demands_hold(Checker *c, const Decl *decl, const Subst *subst, Loc loc) {
    for (int i = 0; i < decl->generics->demands.count; i++) {
        const Demand *demand = &decl->generics->demands.at[i];
        if (!demand->subject_type) continue;
        const Type *subject = check_subst(c, demand->subject_type, subst);
        const Type *to = demand->to_type ? check_subst(c, demand->to_type, subst) : subject;
        if (has_error(subject) || has_error(to)) continue;
        if (demand->kind == DEMAND_nonempty ? pack_is_nonempty(c, subject)
                                            : demand_converts(c, demand, subject, to))
            continue;
        if (loc && demand->kind == DEMAND_nonempty)
            report(c, DIAG_demand_nonempty, loc, demand->subject_type->name->text,
                   decl->name ? decl->name->text : "this");
        else if (loc)
            report(c, DIAG_demand_converts, loc, type_str(c, subject), type_str(c, to),
                   demand->kind == DEMAND_implicit ? " implicitly" : "");
        if (loc) note(c, DIAG_note_constraint_here, demand->loc);
        return false;
    }
    return true;
}

bool constraints_hold(Checker *c, const Decl *decl, const Subst *subst, Loc loc) {
    if (!decl->generics) return true;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (!constraint->subject_type || constraint->optional) continue;
        const Type *subject = side_under(c, constraint->subject_type, subst);
        const Type *bound = side_under(c, constraint->bound_type, subst);
        if (has_error(subject) || has_error(bound)) continue;
        bool is_pack = subject->kind == TYPE_pack;
        for (int k = 0; k < (is_pack ? subject->nargs : 1); k++) {
            const Type *one = is_pack ? subject->args[k] : subject,
                       *wanted = is_pack ? bound_for(bound, k) : bound;
            if (constraint_holds(c, constraint, one, wanted)) continue;
            if (loc) report_constraint(c, constraint, one, wanted ? wanted : bound, loc);
            return false;
        }
    }
    return demands_hold(c, decl, subst, loc);
}

/* ---- interfaces as arguments */

static bool mentions_self(const Type *type, const Decl *interface) {
    if (type->kind == TYPE_param) return type->decl == interface && type->number == 0;
    for (int i = 0; i < type->nargs; i++)
        if (mentions_self(type->args[i], interface)) return true;
    return false;
}

/* A member that needs to know which type it is that conforms; NULL: all can be called on a value. */
static Decl *needs_type(Checker *c, const Type *bound) {
    Decl *interface = (Decl *)(uintptr_t)bound->decl;
    if ((interface->flags & DECL_PRELUDE) &&
        (interface->name == c->known.IDifferentiable || interface->name == c->known.IDifferentiablePtrType))
        return NULL;
    for (int i = 0; i < interface->members.count; i++) {
        Decl *member = interface->members.at[i];
        if (member->kind == DECL_assoc) return member;
        if (member->kind == DECL_var && (member->modifiers & MODIFIER_static)) return member;
        if (member->kind != DECL_func) continue;
        if (decl_is_static(member)) return member;
        const FuncSig *sig = signature_of(c, member);
        for (int k = 0; k < sig->nparams; k++)
            if (mentions_self(sig->params[k].type, interface)) return member;
    }
    ensure_bases(c, interface);
    const Sema *sema = decl_sema(c, interface);
    for (int i = 0; i < sema->interfaces.count; i++) {
        Decl *member = needs_type(c, sema->interfaces.at[i]);
        if (member) return member;
    }
    return NULL;
}

/* Can an interface be the argument for `param` of `decl`, as such? Not if a constraint promises what only a
 * type has. Says so if `loc` is given. */
bool interface_as_argument(Checker *c, const Decl *decl, const Type *param, Loc loc) {
    for (int i = 0; decl->generics && i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (constraint->subject_type != param || !constraint->bound_type ||
            constraint->bound_type->kind != TYPE_interface)
            continue;
        Decl *member = needs_type(c, constraint->bound_type);
        if (!member) continue;
        if (!loc) return false;
        report(c, DIAG_interface_argument, loc, type_str(c, param), type_str(c, constraint->bound_type),
               member->name ? member->name->text : "__init");
        note(c, DIAG_note_declared_here, member->loc, member->name ? member->name->text : "__init");
        return false;
    }
    return true;
}

/* Does T occur, other than in T.Differential? */
static bool mentions_param(const Checker *c, const Type *type, const Type *param) {
    if (type == param) return true;
    if (type->kind == TYPE_assoc && type->name == c->known.Differential) return false;
    for (int i = 0; i < type->nargs; i++)
        if (mentions_param(c, type->args[i], param)) return true;
    return false;
}

/* Two values of one interface need not hold the same type, so that `param` is what one of them holds only if
 * it is the only one. */
bool check_opens(Checker *c, const FuncSig *sig, const Type *param) {
    int opened = sig->has_this && sig->this_type == param, others = opened && sig->this_pass != PASS_in;
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *p = &sig->params[i];
        bool in = p->pass == PASS_in || p->pass == PASS_constref;
        bool tied = in && p->type->kind == TYPE_assoc && p->type->args[0] == param; /* see origin.c */
        if (in && p->type == param) opened++;
        else if (!tied && mentions_param(c, p->type, param)) others++;
    }
    return opened == 1 && others == 0;
}

/* ---- generic arguments that were written */

static bool is_number(const Type *type) {
    switch (type->kind) {
    case TYPE_number:
    case TYPE_sum:
    case TYPE_product:
    case TYPE_apply: return true;
    case TYPE_expand: return is_number(type->args[0]);
    case TYPE_param:
    case TYPE_each:
    case TYPE_at: {
        const Type *root = pack_root(type);
        return root && (root->flags & TYPE_IS_VALUE_PARAM);
    }
    case TYPE_assoc:
        return ((const Decl *)type->decl)->kind == DECL_var; /* a constant that an interface requires */
    default: return false;
    }
}

static bool value_fits(const Type *param, const Type *given) {
    if (!param || !given || has_error(param) || given == param) return true;
    return (given->kind == TYPE_enum || type_is_integer(given)) &&
           (type_is_integer(param) || param->kind == TYPE_bool);
}

/* The argument for a parameter, if `arg` is the kind of thing that it stands for; for a bool a number is
 * converted. `value_type`: of a value, as it was written, or NULL. NULL: it is not, which is told if `loc` is
 * given. */
const Type *generic_arg_for(Checker *c, const Decl *owner, Decl *param, const Type *arg,
                            const Type *value_type, Loc loc) {
    const char *name = owner->name ? owner->name->text : "?";
    bool wants_value = param->kind == DECL_value_param;
    if (has_error(arg)) return arg;
    if (wants_value != is_number(arg)) {
        static const char *const kinds[] = {"a type", "a value"};
        if (loc)
            report(c, DIAG_generic_arg_kind, loc, param->name->text, name, kinds[wants_value],
                   kinds[!wants_value]);
        return NULL;
    }
    if (!wants_value || param->state == STATE_busy) return arg;
    ensure_header(c, param);
    if (value_fits(param->type, value_type)) {
        bool to_bool = param->type->kind == TYPE_bool && value_type && value_type->kind != TYPE_bool;
        return to_bool ? number_is_not_zero(c, arg) : arg;
    }
    if (loc)
        report(c, DIAG_generic_arg_type, loc, param->name->text, name, type_str(c, param->type),
               type_str(c, value_type));
    return NULL;
}

/* ---- what a generic body may assume */

typedef struct CommonBounds {
    const Type *const *types;
    int ntypes;
    TypeVec *out;
} CommonBounds;

static void add_bound(Checker *c, TypeVec *out, const Type *bound) {
    for (int i = 0; i < out->count; i++)
        if (out->at[i] == bound) return;
    if (bound->kind == TYPE_interface) vec_push(c->arena, out, bound);
}

static void bounds_from_generics(Checker *c, const Decl *decl, const Type *type, TypeVec *out) {
    if (!decl->generics) return;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        const Type *subject = constraint->subject_type;
        bool about = subject == type || (subject && subject->kind == TYPE_expand && subject->args[0] == type);
        if (constraint->equal || !about) continue;
        if (constraint->optional && !(c->optional_bounds && map_has(c->optional_bounds, PTR_KEY(constraint))))
            continue;
        add_bound(c, out, constraint->bound_type);
    }
}

static void bounds_from_context(Checker *c, const Type *type, const Decl *except, TypeVec *out) {
    for (const Decl *d = c->context; d; d = d->parent)
        if (d != except) bounds_from_generics(c, d, type, out);
}

/* ---- what interfaces promise about their associated types: `associatedtype D where ...`, `__constraint ...` */

typedef struct Promise Promise;
typedef bool (*PromiseVisitor)(Checker *c, Promise *promise, const Constraint *constraint,
                               const Subst *subst);
struct Promise {
    const Type *type; /* T.A.B, of which something is asked */
    const Type *base; /* T or T.A: its interfaces are looked at */
    const Decl *interface;
    PromiseVisitor visit;
    TypeVec *bounds;
    const Type *found;
};

/* Is the path This.A.B, as the interface writes it, the type that is asked for? */
static bool is_path_from(const Type *path, const Promise *promise) {
    const Type *type = promise->type;
    while (path->kind == TYPE_assoc && type->kind == TYPE_assoc && path->decl == type->decl) {
        path = path->args[0];
        type = type->args[0];
    }
    return path->kind == TYPE_param && path->decl == promise->interface && path->number == 0 &&
           type == promise->base;
}

static bool states_promise(const Decl *member) {
    return member->generics && (member->kind == DECL_assoc || member->kind == DECL_constraint);
}

static bool is_being_resolved(const Generics *generics) {
    for (int i = 0; generics->checked && i < generics->constraints.count; i++)
        if (!generics->constraints.at[i].subject_type) return true;
    return false;
}

static bool search_interface(Checker *c, void *user, const Declared *declared) {
    Promise *promise = user;
    const Decl *interface = promise->interface = declared->interface->decl;
    const Subst *subst = interface_subst(c, declared->interface, promise->base);
    for (int i = 0; i < interface->members.count; i++) {
        Decl *member = interface->members.at[i];
        if (!states_promise(member)) continue;
        ensure_generics(c, member);
        if (is_being_resolved(member->generics)) return false; /* those after it may rest on it */
        for (int k = 0; k < member->generics->constraints.count; k++)
            if (promise->visit(c, promise, &member->generics->constraints.at[k], subst)) return true;
    }
    return false;
}

static bool makes_promises(Checker *c, const Type *interface) {
    Decl *decl = (Decl *)(uintptr_t)interface->decl;
    for (int i = 0; i < decl->members.count; i++)
        if (states_promise(decl->members.at[i])) return true;
    Sema *sema = decl_sema(c, decl);
    if (sema->promises_nothing) return false;
    ensure_bases(c, decl);
    sema->promises_nothing = sema->bases_done; /* also ends the search where interfaces inherit in a circle */
    for (int i = 0; i < sema->interfaces.count; i++)
        if (makes_promises(c, sema->interfaces.at[i])) {
            sema->promises_nothing = false;
            return true;
        }
    return false;
}

/* Looks through the interfaces of T, T.A ... that lead to T.A.B. */
static const Type *search_promises(Checker *c, const Type *type, PromiseVisitor visit, TypeVec *bounds) {
    Promise promise = {.type = type, .visit = visit, .bounds = bounds};
    for (promise.base = type; promise.base->kind == TYPE_assoc && !promise.found;) {
        promise.base = promise.base->args[0];
        TypeVec known = {0};
        if (type_is_abstract(promise.base)) bounds_of(c, promise.base, &known);
        for (int i = 0; i < known.count && !promise.found; i++) {
            Declared declared = {NULL, known.at[i], NULL, false};
            if (makes_promises(c, known.at[i]))
                visit_closure(c, &declared, promise.base, search_interface, &promise);
        }
    }
    return promise.found;
}

static bool find_bound(Checker *c, Promise *promise, const Constraint *constraint, const Subst *subst) {
    const Type *subject = constraint->subject_type;
    if (subject && !constraint->equal && is_path_from(subject, promise))
        add_bound(c, promise->bounds, check_subst(c, constraint->bound_type, subst));
    return false;
}

static void bounds_of_assoc(Checker *c, const Type *type, TypeVec *out) {
    Decl *assoc = (Decl *)(uintptr_t)type->decl;
    ensure_bases(c, assoc);
    const Subst *subst = subst_new(c, NULL, assoc->parent, type->args, type->nargs);
    Sema *sema = decl_sema(c, assoc);
    for (int i = 0; i < sema->interfaces.count; i++)
        add_bound(c, out, check_subst(c, sema->interfaces.at[i], subst));
    search_promises(c, type, find_bound, out);
}

/* What all of several types conform to: both of a __packBranch, those of a list. */
static bool add_common_bound(Checker *c, void *user, const Declared *declared) {
    CommonBounds *common = user;
    const Type *interface = check_subst(c, declared->interface, declared->subst);
    for (int i = 0; i < common->ntypes; i++)
        if (!check_conforms(c, common->types[i], interface, NULL)) return false;
    add_bound(c, common->out, interface);
    return false;
}

static void common_bounds(Checker *c, const Type *const *types, int count, TypeVec *out) {
    CommonBounds common = {types, count, out};
    if (!type_is_abstract(types[0])) {
        visit_declared(c, types[0], NULL, add_common_bound, &common);
        return;
    }
    TypeVec bounds = {0};
    bounds_of(c, types[0], &bounds);
    for (int i = 0; i < bounds.count; i++) {
        Declared declared = {NULL, bounds.at[i], NULL, false};
        add_common_bound(c, &common, &declared);
    }
}

static void bounds_of_list(Checker *c, const Type *list, TypeVec *out) {
    const Type **types = arena_array(c->arena, const Type *, list->nargs);
    for (int i = 0; i < list->nargs; i++) types[i] = pack_element_type(list->args[i]);
    if (list->nargs) common_bounds(c, types, list->nargs, out);
}

void bounds_of(Checker *c, const Type *type, TypeVec *out) {
    if (type->kind == TYPE_branch) {
        common_bounds(c, type->args + 1, 2, out);
        return;
    }
    if (type->kind == TYPE_each || type->kind == TYPE_at) type = pack_source(type);
    if (type->kind == TYPE_pack) {
        bounds_of_list(c, type, out);
        return;
    }
    if (type->kind == TYPE_assoc) {
        bounds_of_assoc(c, type, out);
        bounds_from_context(c, type, NULL, out);
        return;
    }
    if (type->kind != TYPE_param) { /* where Box<T> : I */
        if (type->flags & TYPE_HAS_PARAM) bounds_from_context(c, type, NULL, out);
        return;
    }
    const Decl *owner = type->decl;
    if (owner->kind == DECL_interface && type->number == 0)
        add_bound(c, out, type_of_type_decl(c, (Decl *)(uintptr_t)owner));
    bounds_from_generics(c, owner, type, out);
    bounds_from_context(c, type, owner, out);
}

static bool has_wrong_constraint(Checker *c, const Type *param) {
    Decl *owner = (Decl *)(uintptr_t)param->decl;
    if (!owner->generics) return false;
    ensure_generics(c, owner);
    for (int i = 0; i < owner->generics->constraints.count; i++) {
        const Constraint *constraint = &owner->generics->constraints.at[i];
        bool is_about_it = constraint->subject_type == param && constraint->bound_type;
        if (is_about_it && has_error(constraint->bound_type)) return true;
    }
    return false;
}

static bool has_wrong_base(Checker *c, const Type *type) {
    Decl *decl = (Decl *)(uintptr_t)type_head(c, type);
    if (!decl) return false;
    ensure_bases(c, decl);
    return (decl->flags & DECL_BASE_ERROR) != 0;
}

bool is_half_known(Checker *c, const Type *type) {
    if (type->kind == TYPE_param && has_wrong_constraint(c, type)) return true;
    if (!type_is_abstract(type)) return has_wrong_base(c, type);
    TypeVec bounds = {0};
    bounds_of(c, type, &bounds);
    for (int i = 0; i < bounds.count; i++)
        if (has_wrong_base(c, bounds.at[i])) return true;
    return false;
}

/* ---- equations */

/* How many associated types lead there; -1: it is something else. */
static int path_length(const Type *type) {
    int n = -1;
    for (; type->kind == TYPE_assoc; type = type->args[0]) n = n < 0 ? 1 : n + 1;
    return n;
}

/* The longer path is rewritten to the shorter one, or to what is no path; that comes to an end. */
static bool orient(const Constraint *constraint, const Type **from, const Type **to) {
    const Type *subject = constraint->subject_type, *bound = constraint->bound_type;
    if (!constraint->equal || !subject || !bound || subject == bound) return false;
    bool turned = path_length(bound) > path_length(subject);
    *from = turned ? bound : subject;
    *to = turned ? subject : bound;
    return (*from)->kind == TYPE_assoc;
}

static const Type *equal_in(Checker *c, const Decl *decl, const Type *assoc) {
    if (!decl->generics) return NULL;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    const Type *from, *to;
    for (int i = 0; i < decl->generics->constraints.count; i++)
        if (orient(&decl->generics->constraints.at[i], &from, &to) && from == assoc) return to;
    return NULL;
}

static bool find_equal(Checker *c, Promise *promise, const Constraint *constraint, const Subst *subst) {
    const Type *from, *to;
    if (!orient(constraint, &from, &to) || !is_path_from(from, promise)) return false;
    const Type *equal = check_subst(c, to, subst);
    if (equal != promise->type) promise->found = equal;
    return promise->found != NULL;
}

static const Type *equal_once(Checker *c, const Type *assoc) {
    const Type *promised = search_promises(c, assoc, find_equal, NULL);
    if (promised) return promised;
    for (const Decl *d = c->context; d; d = d->parent) {
        const Type *equal = equal_in(c, d, assoc);
        if (equal) return equal;
    }
    const Type *root = assoc;
    while (root->kind == TYPE_assoc) root = root->args[0];
    if (root->kind == TYPE_each || root->kind == TYPE_at) root = pack_root(root);
    return root && root->kind == TYPE_param ? equal_in(c, root->decl, assoc) : NULL;
}

enum { MOST_EQUATIONS = 100 };

/* where U.E == T.E, T.E == int: U.E is int. */
const Type *known_equal(Checker *c, const Type *assoc) {
    const Type *known = NULL, *equal = equal_once(c, assoc);
    for (int i = 0; equal && equal != assoc && i < MOST_EQUATIONS; i++) {
        known = equal;
        equal = known->kind == TYPE_assoc ? equal_once(c, known) : NULL;
    }
    return known;
}

/* What a parameter is said to be. An associated type is rewritten to the parameter, not the other way round
 * (known_equal). */
static const Type *equation_in(Checker *c, const Decl *decl, const Type *param) {
    if (!decl->generics) return NULL;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    const Type *other = NULL;
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (!constraint->equal || constraint->optional || !constraint->subject_type) continue;
        const Type *subject = constraint->subject_type, *bound = constraint->bound_type;
        if (subject == param && bound->kind != TYPE_assoc) return bound;
        if (bound == param && !type_is_abstract(subject)) other = subject;
    }
    return other;
}

static const Type *next_equal(Checker *c, const Type *type) {
    const Type *param = pack_root(type);
    if (!param || (param->flags & TYPE_IS_VALUE_PARAM)) return NULL;
    const Type *equal = equation_in(c, param->decl, param);
    for (const Decl *d = c->context; d && !equal; d = d->parent)
        if (d != param->decl) equal = equation_in(c, d, param);
    return equal;
}

/* where T == U, U == int: inside, T is int. Of a pack it is said of every element. In a circle, all are the
 * one that is met again first. */
static const Type *known_param(Checker *c, const Type *type) {
    Map seen = {0};
    for (const Type *equal; (equal = next_equal(c, type)); type = equal) {
        if (map_has(&seen, PTR_KEY(type))) break;
        map_put(c->arena, &seen, PTR_KEY(type), c);
    }
    return type;
}

/* A pack each of whose elements is said to be of one type: that type, as often as it has elements. */
static const Type *known_pack(Checker *c, const Type *pack, const Type *known) {
    if (known == pack || type_is_pack(known)) return pack_argument(c, known);
    return pack_expand(c, pack_repeat(c, known, pack_each(c, pack)));
}

/* With what the equations around say put in for parameters. */
const Type *known_type(Checker *c, const Type *type) {
    if (!c->has_equations || !(type->flags & TYPE_HAS_PARAM)) return type;
    if (type->kind == TYPE_param || type->kind == TYPE_each || type->kind == TYPE_at)
        return type->flags & TYPE_IS_PACK_PARAM ? type : known_param(c, type);
    const Subst *subst = NULL;
    for (const Decl *d = c->context; d; d = d->parent) {
        int n = d->generics ? generic_count(d) : 0;
        const Type **args = arena_array(c->arena, const Type *, n + 1);
        bool found = false;
        for (int i = 0; i < n; i++) {
            const Type *param = param_type(c, d, i);
            bool pack = (param->flags & TYPE_IS_PACK_PARAM) != 0;
            const Type *known = known_param(c, param);
            args[i] = pack ? known_pack(c, param, known) : known;
            found |= known != param;
        }
        if (found) subst = subst_new(c, subst, d, args, n);
    }
    return check_subst(c, type, subst);
}

/* where countof(P) == N, where D == 1: of numbers the same equation, and nothing else, is known in its
 * body. */
static bool stated_equal(Checker *c, const Type *number, const Type *other) {
    if (!is_number(number) || !is_number(other)) return false;
    for (const Decl *d = c->context; d; d = d->parent)
        for (int i = 0; d->generics && i < d->generics->constraints.count; i++) {
            const Constraint *constraint = &d->generics->constraints.at[i];
            if (!constraint->equal || !constraint->subject_type) continue;
            const Type *subject = constraint->subject_type, *bound = constraint->bound_type;
            if (subject == constrained(number) && constrained(bound) == constrained(other)) return true;
            if (subject == constrained(other) && constrained(bound) == constrained(number)) return true;
        }
    return false;
}

/* where To(From), said in the context: the same two types. */
bool known_to_convert(Checker *c, const Type *from, const Type *to, bool implicitly) {
    for (const Decl *d = c->context; d; d = d->parent) {
        for (int i = 0; d->generics && i < d->generics->demands.count; i++) {
            const Demand *demand = &d->generics->demands.at[i];
            bool enough = demand->kind == DEMAND_implicit || (demand->kind == DEMAND_cast && !implicitly);
            if (enough && demand->subject_type == from && demand->to_type == to) return true;
        }
    }
    return false;
}

/* ---- copies */

static void copy_constraints(Checker *c, const Generics *from, Generics *to, const Subst *subst) {
    for (int i = 0; i < from->constraints.count; i++) {
        Constraint constraint = from->constraints.at[i];
        constraint.subject_type = check_subst(c, constraint.subject_type, subst);
        constraint.bound_type = check_subst(c, constraint.bound_type, subst);
        vec_push(c->arena, &to->constraints, constraint);
    }
}

/* The generic parameters of `from` for `to` as well; what stands there for those of `from`, inside of
 * `outer`. */
const Subst *copy_generics(Checker *c, Decl *from, Decl *to, const Subst *outer) {
    ensure_generics(c, from);
    int n = generic_count(from);
    if (n == 0) return outer;
    to->generics = arena_new(c->arena, Generics);
    to->generics->checked = true;
    for (int i = 0; i < n; i++) {
        Decl *param = arena_copy(c->arena, generic_param(from, i), sizeof *param);
        param->parent = to;
        vec_push(c->arena, &to->generics->params, param);
    }
    const Type **args = arena_array(c->arena, const Type *, n);
    for (int i = 0; i < n; i++) args[i] = param_type(c, to, i);
    const Subst *subst = subst_new(c, outer, from, args, n);
    copy_constraints(c, from->generics, to->generics, subst);
    return subst;
}
