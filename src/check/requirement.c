/* Does a type provide all that the interfaces it names require? What is missing is told requirement by
 * requirement, with the signature that was expected and the nearest member that is there; all of it in one
 * message per base that is named. */
#include "check/checker.h"

typedef struct Missing {
    Conformance *conformance;
    Decl *requirement;
} Missing;

typedef struct Review {
    Loc loc;           /* of the base */
    const Type *base;  /* that was named */
    bool builtin_only; /* reported; nothing more is said */
    VEC(Missing) missing;
} Review;

/* ---- the nearest member */

static bool is_own(const Decl *decl) { return !decl->parent || decl->parent->kind != DECL_interface; }

static Decl *same_name(Checker *c, const Type *type, Name name) {
    Candidates list = {.name = name};
    lookup_own_member(c, type, name, &list);
    for (int i = 0; i < list.count; i++)
        if (is_own(list.at[i].decl) && !(list.at[i].decl->flags & DECL_PRELUDE)) return list.at[i].decl;
    return NULL;
}

static Decl *similar_name(Checker *c, const Type *type, const Decl *requirement) {
    Decl *decl = (Decl *)(uintptr_t)type_head(c, type);
    if (!decl || (decl->flags & DECL_PRELUDE) || !requirement->name) return NULL;
    VEC(Name) names = {0};
    for (int i = 0; i < decl->members.count; i++)
        if (decl->members.at[i]->name && decl->members.at[i]->kind == requirement->kind)
            vec_push(c->arena, &names, decl->members.at[i]->name);
    Name nearest = diag_nearest(requirement->name, names.at, names.count);
    return nearest ? same_name(c, type, nearest) : NULL;
}

static void tell_nearest(Checker *c, const Missing *missing) {
    const Type *type = missing->conformance->type;
    Name name = missing->requirement->name ? missing->requirement->name : c->known.subscript;
    if (missing->requirement->flavour == FUNC_init && missing->requirement->kind == DECL_func)
        name = c->known.__init;
    Decl *nearest = same_name(c, type, name);
    if (!nearest) nearest = similar_name(c, type, missing->requirement);
    if (nearest) note(c, DIAG_note_nearest, nearest->loc, member_text(c, nearest, NULL));
}

static void tell_missing(Checker *c, const Review *review) {
    if (review->missing.count == 0) return;
    const Conformance *first = review->missing.at[0].conformance;
    report(c, DIAG_requirement_missing, review->loc, type_str(c, first->type), type_str(c, review->base));
    for (int i = 0; i < review->missing.count; i++) {
        const Missing *missing = &review->missing.at[i];
        const Conformance *conformance = missing->conformance;
        const Subst *subst = interface_subst(c, conformance->interface, conformance->type);
        note(c, DIAG_note_requirement, missing->requirement->loc,
             member_text(c, missing->requirement, subst));
        tell_nearest(c, missing);
    }
}

/* ---- requirements that are met */

static void check_assoc_bounds(Checker *c, Conformance *conformance, Decl *requirement, const Type *type) {
    ensure_bases(c, requirement);
    const Subst *subst = interface_subst(c, conformance->interface, conformance->type);
    Sema *sema = decl_sema(c, requirement);
    for (int i = 0; i < sema->interfaces.count; i++) {
        const Type *bound = check_subst(c, sema->interfaces.at[i], subst);
        if (check_conforms(c, type, bound, NULL)) continue;
        Decl *alias = same_name(c, conformance->type, requirement->name);
        report(c, DIAG_assoc_bound, alias ? alias->loc : conformance->loc, requirement->name->text,
               type_str(c, type), type_str(c, bound));
        note(c, DIAG_note_required_here, requirement->loc);
    }
    constraints_hold(c, requirement, subst, conformance->loc);
}

static void check_override(Checker *c, Decl *requirement, const Satisfaction *found) {
    if (!(requirement->flags & DECL_HAS_DEFAULT) || found->kind != SATISFY_decl) return;
    if (requirement->flags & DECL_PRELUDE) return; /* nobody has to know what the library would do */
    if (found->decl->modifiers & (MODIFIER_override | MODIFIER_synthesized)) return;
    report(c, DIAG_needs_override, found->decl->loc, found->decl->name ? found->decl->name->text : "?");
    note(c, DIAG_note_required_here, requirement->loc);
}

static bool is_library(Checker *c, const Decl *interface, bool *differentiable) {
    if (!(interface->flags & DECL_PRELUDE)) return false;
    *differentiable = interface->name == c->known.IDifferentiable;
    return *differentiable || strncmp(interface->name->text, "__Builtin", 9) == 0;
}

static bool is_required(const Decl *decl) {
    return decl->kind == DECL_func || decl->kind == DECL_assoc || decl->kind == DECL_property ||
           decl->kind == DECL_subscript || (decl->kind == DECL_var && (decl->modifiers & MODIFIER_static));
}

static bool is_met(Checker *c, Conformance *conformance, Decl *requirement) {
    const Satisfaction *found = satisfaction(c, conformance, requirement);
    return found->kind != SATISFY_none || found->type; /* __init() by the default value */
}

bool meets_requirements(Checker *c, Conformance *conformance) {
    const Decl *interface = conformance->interface->decl;
    bool differentiable;
    if (is_library(c, interface, &differentiable)) return true;
    for (int i = 0; i < interface->members.count; i++)
        if (is_required(interface->members.at[i]) && !is_met(c, conformance, interface->members.at[i]))
            return false;
    return true;
}

/* An integer may be the size of an array in generic code, which sees the requirement alone. */
static void check_requirement_value(Checker *c, const Decl *requirement, Decl *constant) {
    const Type *type = decl_value_type(c, constant);
    bool is_number = type_is_integer(type) || type->kind == TYPE_bool || type->kind == TYPE_enum;
    if (!is_number || constant_number(c, constant)) return;
    if (!constant->init || constant->init->kind == EXPR_error) return; /* which is an error, too */
    report_expr(c, constant->init, DIAG_not_constant);
    note(c, DIAG_note_required_here, requirement->loc);
}

static void check_requirement(Checker *c, Review *review, Conformance *conformance, Decl *requirement) {
    if (requirement->kind == DECL_constraint)
        constraints_hold(c, requirement, interface_subst(c, conformance->interface, conformance->type),
                         review->loc);
    if (!is_required(requirement)) return;
    if (!is_met(c, conformance, requirement)) {
        vec_push(c->arena, &review->missing, ((Missing){conformance, requirement}));
        return;
    }
    const Satisfaction *found = satisfaction(c, conformance, requirement);
    if (found->kind == SATISFY_type) check_assoc_bounds(c, conformance, requirement, found->type);
    check_override(c, requirement, found);
    if (requirement->kind == DECL_var) check_requirement_value(c, requirement, found->decl);
    else if (found->kind == SATISFY_decl) check_requirement_diff(c, requirement, found->decl);
}

/* Generic types are judged when they are lowered. */
static void check_value_size(Checker *c, const Conformance *conformance, Loc loc) {
    int64_t room = check_any_value_size(c, conformance->interface);
    Layout layout;
    if (!room || (conformance->type->flags & TYPE_HAS_PARAM)) return;
    if (contains_interface(c, conformance->type, conformance->interface))
        return; /* it will never be in one */
    if (!check_layout(c, conformance->type, &layout) || layout.size <= room) return;
    report(c, DIAG_any_value_size, loc, type_str(c, conformance->type), (int)layout.size,
           type_str(c, conformance->interface), (int)room);
    note(c, DIAG_note_required_here, ((const Decl *)conformance->interface->decl)->loc);
}

/* dzero, dadd and dmul are made where they are not written; one that is written with another signature is not
 * used. */
static void check_unused(Checker *c, Conformance *conformance, Decl *interface) {
    const Subst *subst = interface_subst(c, conformance->interface, conformance->type);
    for (int i = 0; i < interface->members.count; i++) {
        Decl *requirement = interface->members.at[i];
        if (requirement->kind != DECL_func) continue;
        Decl *own = same_name(c, conformance->type, requirement->name);
        if (!own || own->kind != DECL_func || own->parent != type_head(c, conformance->type)) continue;
        if (satisfaction(c, conformance, requirement)->decl == own) continue;
        if (requirement->flags & DECL_HAS_DEFAULT) continue; /* another function of that name */
        report(c, DIAG_unused_requirement, own->loc, own->name->text, interface->name->text);
        note(c, DIAG_note_wanted, requirement->loc, member_text(c, requirement, subst));
    }
}

static bool is_written(Checker *c, Conformance *conformance, const Decl *interface, const char *name) {
    for (int i = 0; i < interface->members.count; i++) {
        Decl *requirement = interface->members.at[i];
        if (requirement->kind != DECL_func || strcmp(requirement->name->text, name) != 0) continue;
        const Satisfaction *found = satisfaction(c, conformance, requirement);
        return found->kind == SATISFY_decl && !(found->decl->flags & DECL_PRELUDE);
    }
    return false;
}

/* A zero and a sum that are made go through the differentiable fields of a Differential, and there may be
 * none. */
static void check_sums(Checker *c, Conformance *conformance, const Decl *interface) {
    const Type *differential = check_differential(c, conformance->type);
    if (!differential || differential->kind != TYPE_struct) return;
    DeclVec fields = check_all_fields(c, differential);
    for (int i = 0; i < fields.count; i++)
        if (is_differentiable_type(c, check_field_type(c, differential, fields.at[i]))) return;
    if (fields.count == 0 || is_written(c, conformance, interface, "dadd")) return;
    report(c, DIAG_differential_of_constants, conformance->loc, type_str(c, differential));
}

/* ---- entry */

static bool check_one(Checker *c, void *user, const Declared *declared) {
    Review *review = user;
    Conformance *conformance = conformance_for(c, declared);
    conformance->loc = review->loc;
    if (conformance->checked || review->builtin_only) return false;
    conformance->checked = true;
    Decl *interface = (Decl *)(uintptr_t)declared->interface->decl;
    bool differentiable;
    if (is_library(c, interface, &differentiable)) {
        if (differentiable) {
            check_differentiable_struct(c, conformance);
            check_unused(c, conformance, interface);
            check_sums(c, conformance, interface);
        } else if (!(declared->source->flags & DECL_PRELUDE)) {
            report(c, DIAG_builtin_interface, review->loc, interface->name->text);
            review->builtin_only = true;
        }
        return false;
    }
    if (interface->name == c->known.IDifferentiablePtrType) check_reference_struct(c, conformance);
    const Decl *context = c->context;
    c->context = conformance->decl;
    for (int i = 0; i < interface->members.count; i++)
        check_requirement(c, review, conformance, interface->members.at[i]);
    check_value_size(c, conformance, review->loc);
    c->context = context;
    return false;
}

static Loc loc_of_base(const Decl *decl, const Type *base) {
    for (int i = 0; i < decl->bases.count; i++)
        if (decl->bases.at[i]->kind == EXPR_type && decl->bases.at[i]->type_value == base)
            return decl->bases.at[i]->loc;
    return decl->loc;
}

/* Is there, in some interface that the type conforms to, a member of that name? */
static bool is_requirement_name(Checker *c, void *user, const Declared *declared) {
    Decl *interface = (Decl *)(uintptr_t)declared->interface->decl;
    return scope_find(scope_inside(c, interface), user) != NULL;
}

static void check_overrides(Checker *c, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (!(member->modifiers & MODIFIER_override) || !member->name) continue;
        const Type *type = this_type_of(c, decl);
        if (!visit_declared(c, type, NULL, is_requirement_name, (void *)(uintptr_t)member->name))
            report(c, DIAG_override_nothing, member->loc, member->name->text);
    }
}

void check_conformances(Checker *c, Decl *decl) {
    if (has_error(this_type_of(c, decl))) return;
    ensure_bases(c, decl);
    const Sema *sema = decl_sema(c, decl);
    for (int i = 0; i < sema->interfaces.count; i++) {
        Review review = {.base = sema->interfaces.at[i]};
        review.loc = loc_of_base(decl, review.base);
        Declared declared = {decl, review.base, NULL, false};
        visit_closure(c, &declared, this_type_of(c, decl), check_one, &review);
        tell_missing(c, &review);
    }
    check_overrides(c, decl);
}
