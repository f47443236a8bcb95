/* Scopes: which names a declaration makes visible, and to whom. */
#include "check/checker.h"

Scope *scope_new(Checker *c, Scope *outer, Decl *decl) {
    Scope *scope = arena_new(c->arena, Scope);
    scope->outer = outer;
    scope->decl = decl;
    return scope;
}

DeclVec *scope_find(Scope *scope, Name name) {
    DeclVec *found = scope->bits & name_bit(name) ? map_get(&scope->names, PTR_KEY(name)) : NULL;
    if (found || !scope->library) return found;
    library_find(scope->library, scope, name);
    return map_get(&scope->names, PTR_KEY(name));
}

static void add_named(Checker *c, Scope *scope, Name name, Decl *decl) {
    DeclVec *list = map_get(&scope->names, PTR_KEY(name));
    if (!list) {
        list = arena_new(c->arena, DeclVec);
        map_put(c->arena, &scope->names, PTR_KEY(name), list);
        scope->bits |= name_bit(name);
    }
    vec_push(c->arena, list, decl);
}

static bool shows_members(const Decl *decl) {
    if (decl->kind == DECL_buffer_block) return true;
    return decl->kind == DECL_enum && (!decl->name || find_attribute(decl, "UnscopedEnum"));
}

/* In an extension: says something about a field that the struct has, and is no member itself. */
bool decl_is_extern_field(const Decl *decl) {
    return decl->kind == DECL_var && (decl->modifiers & MODIFIER_extern) &&
           !(decl->modifiers & MODIFIER_static) && decl->parent && decl->parent->kind == DECL_extension;
}

/* `module m;` hides nothing: as a qualifier m is looked for last, see module_named. The name of a cbuffer is
 * none of the program's: `cbuffer camera { Camera camera; }`. */
void scope_add(Checker *c, Scope *scope, Decl *decl) {
    if (decl->kind == DECL_module_name || decl->kind == DECL_implementing || decl_is_extern_field(decl))
        return;
    if (decl->name && decl->kind != DECL_buffer_block) add_named(c, scope, decl->name, decl);
    else if (decl->kind == DECL_subscript) add_named(c, scope, c->known.subscript, decl);
    if (!shows_members(decl)) return;
    for (int i = 0; i < decl->members.count; i++) scope_add(c, scope, decl->members.at[i]);
}

/* ---- the scope inside a declaration */

static Scope *generics_scope(Checker *c, Scope *outer, Decl *decl) {
    if (!decl->generics || decl->generics->params.count == 0) return outer;
    Scope *scope = scope_new(c, outer, decl);
    scope->is_generics = true;
    for (int i = 0; i < decl->generics->params.count; i++) {
        decl->generics->params.at[i]->parent = decl;
        scope_add(c, scope, decl->generics->params.at[i]);
    }
    return scope;
}

static bool holds_members(const Decl *decl) {
    switch ((DeclKind)decl->kind) {
    case DECL_module:
    case DECL_namespace:
    case DECL_struct:
    case DECL_enum:
    case DECL_interface:
    case DECL_extension:
    case DECL_attribute: return true;
    default: return false;
    }
}

Scope *scope_within(Checker *c, Scope *outer, Decl *decl) {
    Scope *scope = generics_scope(c, outer, decl);
    if (holds_members(decl)) {
        scope = scope_new(c, scope, decl);
        for (int i = 0; i < decl->members.count; i++) scope_add(c, scope, decl->members.at[i]);
    } else if (decl->params.count) {
        scope = scope_new(c, scope, decl);
        scope->is_params = true;
        for (int i = 0; i < decl->params.count; i++) scope_add(c, scope, decl->params.at[i]);
    }
    return decl->scope = scope;
}

Scope *scope_inside(Checker *c, Decl *decl) {
    if (decl->scope) return decl->scope;
    return scope_within(c, decl->parent ? scope_inside(c, decl->parent) : NULL, decl);
}

/* ---- facts about declarations */

Decl *decl_module(const Decl *decl) {
    while (decl->kind != DECL_module && decl->parent) decl = decl->parent;
    return (Decl *)(uintptr_t)decl;
}

bool decl_is_library(const Decl *decl) {
    return ((decl->flags | decl_module(decl)->flags) & DECL_PRELUDE) != 0;
}

Decl *decl_type_around(const Decl *decl) {
    for (Decl *d = decl->parent; d; d = d->parent) {
        if (d->kind == DECL_struct || d->kind == DECL_enum || d->kind == DECL_interface ||
            d->kind == DECL_extension)
            return d;
        if (d->kind == DECL_func || d->kind == DECL_module || d->kind == DECL_namespace) return NULL;
    }
    return NULL;
}

bool decl_is_type(const Decl *decl) {
    switch ((DeclKind)decl->kind) {
    case DECL_struct:
    case DECL_enum:
    case DECL_interface:
    case DECL_alias:
    case DECL_assoc:
    case DECL_type_param:
    case DECL_attribute: return true;
    default: return false;
    }
}

bool decl_is_function(const Decl *decl) { return decl->kind == DECL_func; }

bool decl_is_static(const Decl *decl) {
    if (decl->kind == DECL_func) {
        if (decl->flavour == FUNC_get || decl->flavour == FUNC_set || decl->flavour == FUNC_ref)
            return decl_is_static(decl->parent);
        return decl->flavour == FUNC_init || (decl->modifiers & MODIFIER_static) || !decl_type_around(decl);
    }
    if (decl->kind == DECL_var) return decl->flavour != VAR_field || (decl->modifiers & MODIFIER_static);
    if (decl->kind == DECL_property || decl->kind == DECL_subscript)
        return (decl->modifiers & MODIFIER_static) || !decl_type_around(decl);
    return true;
}

/* ---- visibility */

static Visibility own_visibility(Checker *c, const Decl *decl) {
    if (decl->modifiers & MODIFIER_public) return VISIBLE_public;
    if (decl->modifiers & MODIFIER_private) return VISIBLE_private;
    if (decl->modifiers & MODIFIER_internal) return VISIBLE_internal;
    if (decl->kind == DECL_namespace || decl->kind == DECL_extension) return VISIBLE_public;
    const Decl *parent = decl->parent;
    if (parent && (parent->kind == DECL_interface || parent->kind == DECL_enum ||
                   parent->kind == DECL_property || parent->kind == DECL_subscript))
        return own_visibility(c, parent);
    return decl_module(decl)->flags & DECL_MODERN ? VISIBLE_internal : VISIBLE_public;
}

static bool is_inside(const Decl *inner, const Decl *outer) {
    for (; inner; inner = inner->parent)
        if (inner == outer) return true;
    return false;
}

/* Private: within the type, its extensions included. */
static bool sees_private(Checker *c, const Decl *decl, const Decl *from) {
    const Decl *type = decl_type_around(decl);
    if (!type) return decl_module(decl) == decl_module(from);
    const Decl *home =
        type->kind == DECL_extension ? type_head(c, this_type_of(c, (Decl *)(uintptr_t)type)) : type;
    for (const Decl *d = from; d; d = d->parent) {
        if (d == type || d == home || is_inside(d, type)) return true;
        if (d->kind == DECL_extension && type_head(c, this_type_of(c, (Decl *)(uintptr_t)d)) == home)
            return true;
    }
    return false;
}

bool decl_visible_from(Checker *c, const Decl *decl, const Decl *from) {
    if (!from || (decl->flags & DECL_PRELUDE)) return true;
    switch (own_visibility(c, decl)) {
    case VISIBLE_default:
    case VISIBLE_public: return true;
    case VISIBLE_internal: return decl_module(decl) == decl_module(from);
    case VISIBLE_private: return sees_private(c, decl, from);
    }
    return true;
}

Visibility decl_visibility(Checker *c, const Decl *decl) { return own_visibility(c, decl); }

/* ---- environments */

Env env_for_decl(Checker *c, Decl *decl) {
    Env env = {.c = c, .scope = scope_inside(c, decl), .decl = decl};
    Decl *type = decl_type_around(decl);
    if (type && decl->kind != DECL_struct && decl->kind != DECL_enum && decl->kind != DECL_interface) {
        env.is_static = decl_is_static(decl) && !(decl->kind == DECL_func && decl->flavour == FUNC_init);
        if (!env.is_static) env.this_type = this_type_of(c, type);
    }
    if (decl->kind == DECL_func && env.this_type) {
        bool init = decl->flavour == FUNC_init;
        bool setter = decl->flavour == FUNC_set && !(decl->flags & DECL_NONMUTATING);
        bool ref = decl->flavour == FUNC_ref && !(decl->flags & DECL_NONMUTATING);
        env.this_writable = init || setter || ref || (decl->flags & DECL_MUTATING);
    }
    return env;
}

Env env_for_head(Checker *c, Decl *decl) {
    Env env = env_for_decl(c, decl);
    env.head = decl;
    return env;
}
