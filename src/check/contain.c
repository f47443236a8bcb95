/* What is part of what, by value.
 *
 * A struct must not contain itself. A value of an interface contains all types that can be in it: a type that
 * has such a value as a part is none of them, unless somebody puts it there, which is then an error. */
#include "check/checker.h"

typedef struct Containment {
    const Decl *wanted;    /* a struct; NULL: */
    const Type *interface; /* as the type of a value */
    const Decl *field;     /* the last on the way to it */
    Map seen;              /* types that were looked into */
} Containment;

static bool contains(Checker *c, const Type *type, Containment *search);

static bool any_contains(Checker *c, const Type *const *types, int count, Containment *search) {
    for (int i = 0; i < count; i++)
        if (contains(c, types[i], search)) return true;
    return false;
}

static bool struct_contains(Checker *c, const Type *type, Containment *search) {
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++)
        if (contains(c, check_field_type(c, type, fields.at[i]), search)) {
            if (!search->field) search->field = fields.at[i];
            return true;
        }
    return false;
}

/* Generic types that grow on the way down, S<T> with a field of S<S<T>>, are found by their declaration
 * alone. */
static bool contains(Checker *c, const Type *type, Containment *search) {
    if (map_has(&search->seen, PTR_KEY(type))) return false;
    map_put(c->arena, &search->seen, PTR_KEY(type), c);
    if (search->seen.count > 10000) return true;
    switch (type->kind) {
    case TYPE_array:
    case TYPE_optional:
    case TYPE_pair:
    case TYPE_tuple: return any_contains(c, type->args, type->nargs, search);
    case TYPE_struct: /* one that is in no circle leads to none; of a generic one only the declaration is known */
        if (type->decl == search->wanted) return true;
        if (search->wanted && type->nargs == 0 && decl_sema(c, (Decl *)(uintptr_t)type->decl)->finite)
            return false;
        return struct_contains(c, type, search);
    case TYPE_interface: { /* by value as well: of every type that can be in it */
        if (type == search->interface) return true;
        const TypeVec *types = search->interface ? declared_conformers(c, type) : check_conformers(c, type);
        return any_contains(c, types->at, types->count, search);
    }
    default: return false;
    }
}

void check_containment(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    if (sema->containment_known) return;
    sema->containment_known = true;
    const Type *self = this_type_of(c, decl);
    DeclVec fields = check_all_fields(c, self);
    bool finite = true;
    for (int i = 0; i < fields.count; i++) {
        const Type *type = check_field_type(c, self, fields.at[i]);
        Containment search = {.wanted = decl};
        if (has_error(type) || !contains(c, type, &search)) continue;
        report(c, DIAG_recursive_struct, fields.at[i]->loc, decl->name ? decl->name->text : "?");
        if (search.field) note(c, DIAG_note_contained_by, search.field->loc, search.field->name->text);
        fields.at[i]->type = ERROR_TYPE(c);
        finite = false;
    }
    sema->finite = finite;
}

bool contains_interface(Checker *c, const Type *type, const Type *interface) {
    Containment search = {.interface = interface};
    return type->kind == TYPE_struct && struct_contains(c, type, &search);
}

/* ---- arrays without a size */

static bool has_open_array(Checker *c, const Type *type);

static bool find_open_array(Checker *c, const Type *type) {
    if (type->kind == TYPE_array && type->nargs == 1) return true;
    if (type->kind == TYPE_array || type->kind == TYPE_optional) return has_open_array(c, type->args[0]);
    if (type->kind != TYPE_struct) return false;
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++)
        if (has_open_array(c, check_field_type(c, type, fields.at[i]))) return true;
    return false;
}

static bool has_open_array(Checker *c, const Type *type) {
    if (type->kind != TYPE_array && type->kind != TYPE_optional && type->kind != TYPE_struct) return false;
    const void *known = map_get(&c->open_arrays, PTR_KEY(type));
    if (known) return known == type;
    map_put(c->arena, &c->open_arrays, PTR_KEY(type), c); /* not by itself */
    bool found = find_open_array(c, type);
    if (found) map_put(c->arena, &c->open_arrays, PTR_KEY(type), (void *)(uintptr_t)type);
    return found;
}

const Type *refuse_open_array(Checker *c, const Decl *decl, const Type *type) {
    if (has_error(type) || !has_open_array(c, type)) return type;
    if (type->kind == TYPE_array && type->nargs == 1)
        report(c, DIAG_unsized_local, decl->loc, decl->name->text);
    else report(c, DIAG_unsized_inside, decl->loc, type_str(c, type));
    return ERROR_TYPE(c);
}
