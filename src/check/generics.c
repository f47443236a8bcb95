/* Generic parameters: their constraints, and what follows from them inside a generic body. */
#include "check/checker.h"

/* Constraints become visible one by one, so that a later one may use an earlier one. */
void ensure_generics(Checker *c, Decl *decl) {
    Generics *generics = decl->generics;
    if (!generics || generics->checked) return;
    generics->checked = true;
    Env env = env_for_decl(c, decl);
    const Decl *context = c->context;
    c->context = decl;
    for (int i = 0; i < generics->params.count; i++) {
        Decl *param = generics->params.at[i];
        if (param->kind == DECL_value_param && !param->type) ensure_header(c, param);
    }
    for (int i = 0; i < generics->constraints.count; i++) {
        Constraint *constraint = &generics->constraints.at[i];
        const Type *bound = resolve_type(&env, constraint->bound);
        const Type *subject = resolve_type(&env, constraint->subject);
        if (subject->kind == TYPE_each) subject = subject->args[0];
        if (!constraint->equal && bound->kind != TYPE_interface && !has_error(bound)) {
            report(c, DIAG_constraint_no_interface, constraint->loc, type_str(c, bound));
            bound = ERROR_TYPE(c);
        }
        constraint->bound_type = bound;
        constraint->subject_type = subject;
    }
    c->context = context;
}

bool constraints_hold(Checker *c, const Decl *decl, const Subst *subst, Loc loc) {
    if (!decl->generics) return true;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (!constraint->subject_type || constraint->optional) continue;
        const Type *subject = check_subst(c, constraint->subject_type, subst);
        const Type *bound = check_subst(c, constraint->bound_type, subst);
        if (has_error(subject) || has_error(bound)) continue;
        bool is_pack = subject->kind == TYPE_pack;
        bool holds = true;
        for (int k = 0; k < (is_pack ? subject->nargs : 1) && holds; k++) {
            const Type *one = is_pack ? subject->args[k] : subject;
            holds = constraint->equal ? types_match(c, one, bound) : check_conforms(c, one, bound, NULL);
        }
        if (holds) continue;
        if (loc && constraint->equal)
            report(c, DIAG_constraint_not_equal, loc, type_str(c, subject), type_str(c, bound));
        else if (loc) report(c, DIAG_constraint_not_met, loc, type_str(c, subject), type_str(c, bound));
        if (loc && constraint->loc) note(c, DIAG_note_constraint_here, constraint->loc);
        return false;
    }
    return true;
}

/* ---- what a generic body may assume */

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
        if (constraint->equal || constraint->subject_type != type) continue;
        if (constraint->optional && !(c->optional_bounds && map_has(c->optional_bounds, PTR_KEY(constraint))))
            continue;
        add_bound(c, out, constraint->bound_type);
    }
}

static void bounds_from_context(Checker *c, const Type *type, const Decl *except, TypeVec *out) {
    for (const Decl *d = c->context; d; d = d->parent)
        if (d != except) bounds_from_generics(c, d, type, out);
}

static void bounds_of_assoc(Checker *c, const Type *type, TypeVec *out) {
    Decl *assoc = (Decl *)(uintptr_t)type->decl;
    ensure_bases(c, assoc);
    const Subst *subst = subst_new(c, NULL, assoc->parent, type->args, type->nargs);
    Sema *sema = decl_sema(c, assoc);
    for (int i = 0; i < sema->interfaces.count; i++)
        add_bound(c, out, check_subst(c, sema->interfaces.at[i], subst));
}

void bounds_of(Checker *c, const Type *type, TypeVec *out) {
    if (type->kind == TYPE_each) type = type->args[0];
    if (type->kind == TYPE_assoc) {
        bounds_of_assoc(c, type, out);
        bounds_from_context(c, type, NULL, out);
        return;
    }
    if (type->kind != TYPE_param) return;
    const Decl *owner = type->decl;
    if (owner->kind == DECL_interface && type->number == 0)
        add_bound(c, out, type_of_type_decl(c, (Decl *)(uintptr_t)owner));
    bounds_from_generics(c, owner, type, out);
    bounds_from_context(c, type, owner, out);
}

static const Type *equal_in(Checker *c, const Decl *decl, const Type *assoc) {
    if (!decl->generics) return NULL;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (!constraint->equal || !constraint->subject_type) continue;
        if (constraint->subject_type == assoc) return constraint->bound_type;
        if (constraint->bound_type == assoc && constraint->subject_type->kind != TYPE_assoc)
            return constraint->subject_type;
    }
    return NULL;
}

const Type *known_equal(Checker *c, const Type *assoc) {
    for (const Decl *d = c->context; d; d = d->parent) {
        const Type *equal = equal_in(c, d, assoc);
        if (equal && equal != assoc) return equal;
    }
    const Type *root = assoc;
    while (root->kind == TYPE_assoc) root = root->args[0];
    if (root->kind == TYPE_each) root = root->args[0];
    const Type *equal = root->kind == TYPE_param ? equal_in(c, root->decl, assoc) : NULL;
    return equal == assoc ? NULL : equal;
}
