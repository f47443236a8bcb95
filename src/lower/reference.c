/* The addresses of what accessors give.
 *
 * A `ref` accessor whose place lies in a buffer, in group-shared memory or behind a pointer has a third function
 * besides its get and set, which gives the address (check/header.c): so that what other threads see is changed
 * there, and not in a copy. The place may be what another accessor gives, or a part of that; then it depends on
 * the other one, which in generic code is known only here. */
#include "lower/lowerer.h"

/* ---- elements of buffers of words */

static Decl *member_named(const Decl *type, const Expr *name) {
    for (int i = 0; i < type->members.count; i++)
        if (type->members.at[i]->name == name->name) return type->members.at[i];
    return NULL;
}

/* [__element_of(buffer, index)] before a subscript: what it gives lies in the buffer of words that one method
 * gives, from the element that the other gives. So do numbers of 32 bits; others are converted. */
static Val *element_reference(Fn *f, const Place *place) {
    const Attribute *attribute = find_attribute(place->decl, "__element_of");
    const Type *type = lower_type(f->l, place->type);
    if (!attribute || type_layout(type_element(type), LAYOUT_scalar).size != 4) return NULL;
    const Decl *owner = place->decl->parent;
    Decl *texels = member_named(owner, attribute->args.at[0]),
         *index = member_named(owner, attribute->args.at[1]);
    FuncSig sig = check_signature_of(f->l->c, index, place->subst, NULL, 0, true);
    Val *at = build_convert(&f->b, place->args[0], lower_type(f->l, sig.params[0].type));
    Val *buffer = call_method(f, texels, place->subst, place->base, NULL, 0);
    Val *element =
        build_buffer_elem(&f->b, buffer, call_method(f, index, place->subst, place->base, &at, 1), true);
    return build_bitcast(&f->b, element, type_pointer(f->l->types, type));
}

/* ---- ref accessors */

/* A property or subscript, and what its type was made of. */
typedef struct Accessed {
    Decl *decl;
    const Subst *subst;
    const Type *type; /* of the place */
} Accessed;

/* Of a requirement, what the type has for it; false: that is known only when the program runs, or a field. */
static bool find_own(Lowerer *l, Accessed *what) {
    Decl *interface = what->decl->parent->kind == DECL_interface ? what->decl->parent : NULL;
    if (!interface) return true;
    const Type *self = subst_find(what->subst, interface, 0);
    if (!self || self->kind == TYPE_interface) return false;
    Satisfaction found = check_witness(l->c, self, what->decl, what->subst);
    if (found.kind != SATISFY_decl) return false;
    what->subst = own_arguments(l, found.subst, found.decl, what->decl, what->subst);
    what->decl = found.decl;
    return what->decl->kind == DECL_property || what->decl->kind == DECL_subscript;
}

static Decl *ref_of(const Decl *property) {
    for (int i = 0; i < property->members.count; i++)
        if (property->members.at[i]->flavour == FUNC_ref) return property->members.at[i];
    return NULL;
}

/* Are values of the type in memory as they are in variables? */
static bool has_address(Fn *f, const Type *type) {
    const Type *ir = lower_type(f->l, type);
    if (type_is_scalar(ir) || ir->kind == TYPE_vector) return type_element(ir)->kind != TYPE_bool;
    return !is_transposed(type) && !has_external_form(f->l, type);
}

/* The accessor that gives the address; NULL: there is none, or derivatives go by get and set. */
static Decl *find_address(Fn *f, Accessed *what, int depth) {
    enum { DEEPEST = 16 }; /* one may give what it gives itself */
    Lowerer *l = f->l;
    if (depth == DEEPEST || !find_own(l, what) || !has_address(f, what->type)) return NULL;
    Decl *ref = ref_of(what->decl);
    if (!ref) return NULL;
    check_decl_body(l->c, ref);
    const Sema *sema = ref->sema;
    if (sema->gives_own || !sema->address || (ref->flags & DECL_BODY_ERRORS)) return NULL;
    const Subst *outer = f->subst;
    bool all = true;
    f->subst = what->subst;
    for (int i = 0; i < sema->given_by.count && all; i++) {
        const Expr *e = sema->given_by.at[i];
        Accessed inner = {e->decl, concrete_subst(f, e->subst), concrete(f, e->type)};
        all = find_address(f, &inner, depth + 1) != NULL;
    }
    f->subst = outer;
    return all ? sema->address : NULL;
}

static bool holds_floats(Fn *f, const Type *type) {
    const Type *ir = lower_type(f->l, type);
    bool numbers = type_is_scalar(ir) || ir->kind == TYPE_vector;
    return !numbers || type_is_float(type_element(ir));
}

bool accessor_lies_elsewhere(Fn *f, const Place *place) {
    Accessed what = {place->decl, place->subst, place->type};
    return !(f->diff && holds_floats(f, place->type)) && find_address(f, &what, 0);
}

Val *accessor_reference(Fn *f, const Place *place) {
    Val *element = element_reference(f, place);
    if (element || (f->diff && holds_floats(f, place->type))) return element;
    Accessed what = {place->decl, place->subst, place->type};
    Decl *address = find_address(f, &what, 0);
    return address ? call_method(f, address, what.subst, place->base, place->args, place->nargs) : NULL;
}
