/* --portable: declarations that other compilers of the language refuse. What is found in the middle of
 * something else is told there, by diag_portable. */
#include "check/checker.h"

static bool has_body(const Decl *property) {
    for (int i = 0; i < property->members.count; i++) {
        const Decl *accessor = property->members.at[i];
        if (accessor->kind == DECL_func && (accessor->flags & DECL_HAS_DEFAULT)) return true;
    }
    return false;
}

static void check_requirement(Checker *c, const Decl *decl) {
    bool constant = decl->kind == DECL_var && decl->type && !type_is_integer(decl->type);
    if (constant) diag_portable(c->diags, decl->loc, "a constant that is no integer as a requirement");
    if (decl->kind == DECL_property && has_body(decl))
        diag_portable(c->diags, decl->loc, "a default implementation of a property");
}

/* where T : I, of a method, about a T of the type around it */
static void check_constraints(Checker *c, const Decl *decl) {
    if (decl->kind != DECL_func || !decl->generics) return;
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        const Type *subject = constraint->subject_type;
        while (subject && subject->kind == TYPE_assoc) subject = subject->args[0];
        const Decl *owner = subject && subject->kind == TYPE_param ? subject->decl : NULL;
        if (owner && owner != decl && owner->kind != DECL_interface)
            diag_portable(c->diags, constraint->loc,
                          "a constraint of a method on a parameter of the type around it");
    }
}

/* Derivatives of derivatives go through it anyway. */
static void check_sum(Checker *c, const Decl *decl) {
    bool method = decl->kind == DECL_func && (decl->modifiers & MODIFIER_static) && decl->name;
    bool sum = method && (strcmp(decl->name->text, "dzero") == 0 || strcmp(decl->name->text, "dadd") == 0);
    if (sum && !(decl->flags & DECL_FWD))
        diag_portable(c->diags, decl->loc, "a dzero or dadd that is not [Differentiable]");
}

void check_portable(Checker *c, const Decl *decl) {
    if (!c->diags->portable || !decl->parent) return;
    if (decl->parent->kind == DECL_interface) check_requirement(c, decl);
    if (decl->parent->kind == DECL_extension && (decl->modifiers & MODIFIER_public))
        diag_portable(c->diags, decl->loc, "'public' inside of an extension");
    check_constraints(c, decl);
    check_sum(c, decl);
}
