/* Substitution: generic arguments for parameters.
 *
 * A substitution is an interned chain, one link per generic declaration, innermost first. Substituting
 * rebuilds a type from its parts; an associated type is looked up anew once its base becomes concrete, and a
 * pattern with packs is expanded once they are known. */
#include "check/checker.h"

/* ---- interning */

typedef struct Wanted {
    const Subst *outer;
    const Decl *owner;
    const Type *const *args;
    int nargs;
} Wanted;

static bool same_subst(const void *stored, const void *candidate) {
    const Subst *a = stored;
    const Wanted *b = candidate;
    if (a->outer != b->outer || a->owner != b->owner || a->nargs != b->nargs) return false;
    return a->nargs == 0 || memcmp(a->args, b->args, sizeof a->args[0] * (size_t)a->nargs) == 0;
}

const Subst *subst_new(Checker *c, const Subst *outer, const Decl *owner, const Type *const *args,
                       int nargs) {
    uint64_t hash = hash_mix(PTR_KEY(outer), PTR_KEY(owner));
    for (int i = 0; i < nargs; i++) hash = hash_mix(hash, args[i]->id);
    Wanted wanted = {outer, owner, args, nargs};
    Subst *subst = intern_find(&c->substs, hash, &wanted, same_subst);
    if (subst) return subst;
    subst = arena_take(c->arena, sizeof(Subst) + sizeof args[0] * (size_t)nargs);
    subst->outer = outer;
    subst->owner = owner;
    subst->nargs = nargs;
    if (nargs) memcpy(subst->args, args, sizeof args[0] * (size_t)nargs);
    intern_add(c->arena, &c->substs, hash, subst);
    return subst;
}

const Type *subst_find(const Subst *subst, const Decl *owner, int index) {
    for (; subst; subst = subst->outer)
        if (subst->owner == owner) return index < subst->nargs ? subst->args[index] : NULL;
    return NULL;
}

/* ---- generic declarations */

int generic_count(const Decl *decl) {
    int own = decl->generics ? decl->generics->params.count : 0;
    return decl->kind == DECL_interface ? own + 1 : own;
}

Decl *generic_param(const Decl *owner, int index) {
    if (owner->kind == DECL_interface) index--;
    return index < 0 || !owner->generics ? NULL : owner->generics->params.at[index];
}

const Type *param_type(Checker *c, const Decl *owner, int index) {
    const Decl *param = generic_param(owner, index);
    uint32_t flags = 0;
    if (param && param->kind == DECL_value_param) flags |= TYPE_IS_VALUE_PARAM;
    if (param && (param->modifiers & MODIFIER_pack)) flags |= TYPE_IS_PACK_PARAM;
    return type_make(c->types, TYPE_param, flags, owner, param ? param->name : c->known.This, index, NULL, 0);
}

const Type *param_argument(Checker *c, const Decl *owner, int index) {
    return pack_argument(c, param_type(c, owner, index));
}

const Subst *subst_identity(Checker *c, const Decl *decl) {
    if (!decl || decl->kind == DECL_module) return NULL;
    const Subst *outer = subst_identity(c, decl->parent);
    int n = generic_count(decl);
    if (n == 0) return outer;
    const Type **args = arena_array(c->arena, const Type *, n);
    for (int i = 0; i < n; i++) args[i] = param_argument(c, decl, i);
    return subst_new(c, outer, decl, args, n);
}

const Subst *subst_for_decl(Checker *c, const Decl *decl, const Subst *subst) {
    if (!decl || decl->kind == DECL_module || !subst) return NULL;
    const Subst *outer = subst_for_decl(c, decl->parent, subst);
    int n = generic_count(decl);
    if (n == 0) return outer;
    for (const Subst *s = subst; s; s = s->outer)
        if (s->owner == decl) return subst_new(c, outer, decl, s->args, s->nargs);
    return outer;
}

/* ---- declared types */

/* How many of the arguments of a type `inside` a declaration are for that one. A type that is a member of an
 * interface has none for it: This is not known there; those of a default implementation, such as lambdas, are
 * made for each conforming type. */
static int count_args(const Decl *decl, const Decl *inside) {
    bool member = inside && (inside->kind == DECL_struct || inside->kind == DECL_enum);
    bool known = decl->kind != DECL_interface || (inside && !member);
    return known ? generic_count(decl) : 0;
}

static void collect_args(Checker *c, const Decl *decl, const Decl *inside, const Subst *subst, TypeVec *out) {
    if (!decl || decl->kind == DECL_module) return;
    collect_args(c, decl->parent, decl, subst, out);
    for (int i = 0; i < count_args(decl, inside); i++) {
        const Type *arg = subst_find(subst, decl, i);
        vec_push(c->arena, out, arg ? arg : param_argument(c, decl, i));
    }
}

static const Type *builtin_type(Checker *c, const Decl *decl, const TypeVec *args) {
    Sema *sema = decl->sema;
    TypeKind kind = (TypeKind)sema->builtin_kind;
    if (args->count == 0 && kind != TYPE_buffer) return type_basic(c->types, kind);
    if (kind == TYPE_tuple && args->at[0]->kind == TYPE_pack)
        return type_make(c->types, kind, 0, NULL, NULL, 0, args->at[0]->args, args->at[0]->nargs);
    const Type *bytes[1] = {type_basic(c->types, TYPE_void)};
    bool is_bytes = kind == TYPE_buffer && args->count == 0;
    return type_make(c->types, kind, 0, NULL, NULL, sema->builtin_number, is_bytes ? bytes : args->at,
                     is_bytes ? 1 : args->count);
}

/* A Differential that was made is called by the struct that it belongs to. */
static Name shown_name(Checker *c, const Decl *decl) {
    if (!(decl->modifiers & MODIFIER_synthesized) || decl->name != c->known.Differential) return decl->name;
    const Decl *owner = decl->parent;
    Name name = owner->kind == DECL_extension ? this_type_of(c, decl->parent)->name : owner->name;
    return name ? name_from(c->names, format_text(c->arena, "%s.Differential", name->text)) : decl->name;
}

const Type *type_with_subst(Checker *c, Decl *decl, const Subst *subst) {
    TypeVec args = {0};
    if (decl->kind == DECL_interface) {
        for (int i = 1; i < generic_count(decl); i++) {
            const Type *arg = subst_find(subst, decl, i);
            vec_push(c->arena, &args, arg ? arg : param_argument(c, decl, i));
        }
        return type_make(c->types, TYPE_interface, 0, decl, decl->name, 0, args.at, args.count);
    }
    collect_args(c, decl, NULL, subst, &args);
    if (decl->type && !is_error(decl->type) && args.count == 0) return decl->type;
    if (decl->sema && decl->sema->builtin_kind) return builtin_type(c, decl, &args);
    TypeKind kind = decl->kind == DECL_enum ? TYPE_enum : TYPE_struct;
    return type_make(c->types, kind, 0, decl, shown_name(c, decl), 0, args.at, args.count);
}

const Type *type_of_type_decl(Checker *c, Decl *decl) {
    if (!decl->type) decl->type = type_with_subst(c, decl, NULL);
    return decl->type;
}

const Type *this_type_of(Checker *c, Decl *decl) {
    if (decl->kind == DECL_interface) return param_type(c, decl, 0);
    if (decl->kind == DECL_extension) {
        ensure_header(c, decl);
        return decl_sema(c, decl)->target;
    }
    return type_of_type_decl(c, decl);
}

const Decl *type_head(Checker *c, const Type *type) {
    switch (type->kind) {
    case TYPE_struct:
    case TYPE_enum:
    case TYPE_interface: return type->decl;
    case TYPE_param:
    case TYPE_assoc: return NULL;
    default: return library_builtin(c, type);
    }
}

static const Subst *split_args(Checker *c, const Decl *decl, const Decl *inside, const Type *const **args) {
    if (!decl || decl->kind == DECL_module) return NULL;
    const Subst *outer = split_args(c, decl->parent, decl, args);
    int n = count_args(decl, inside);
    if (n == 0) return outer;
    const Subst *subst = subst_new(c, outer, decl, *args, n);
    *args += n;
    return subst;
}

const Subst *subst_of_type(Checker *c, const Type *type) {
    const Decl *decl = type_head(c, type);
    if (!decl) return NULL;
    if (type->kind == TYPE_interface) return interface_subst(c, type, type);
    if (type->kind == TYPE_tuple) {
        const Type *pack = pack_make(c, type->args, type->nargs);
        return subst_new(c, NULL, decl, &pack, 1);
    }
    if (type->nargs < generic_count(decl) && type->kind != TYPE_struct && type->kind != TYPE_enum)
        return NULL;
    const Type *const *args = type->args;
    return type->nargs ? split_args(c, decl, NULL, &args) : NULL;
}

const Type *check_type_around(Checker *c, const Type *type) {
    Decl *around = ((const Decl *)type->decl)->parent;
    const Subst *subst = subst_of_type(c, type);
    if (around->kind == DECL_extension) return check_subst(c, this_type_of(c, around), subst);
    return type_with_subst(c, around, subst);
}

const Subst *interface_subst(Checker *c, const Type *interface, const Type *self) {
    const Decl *decl = interface->decl;
    const Type **args = arena_array(c->arena, const Type *, interface->nargs + 1);
    args[0] = self;
    for (int i = 0; i < interface->nargs; i++) args[i + 1] = interface->args[i];
    return subst_new(c, NULL, decl, args, interface->nargs + 1);
}

const Subst *subst_for_self(Checker *c, const Subst *subst, const Decl *interface, const Type *self) {
    if (!subst) return NULL;
    const Type **args = arena_copy(c->arena, subst->args, sizeof subst->args[0] * (size_t)subst->nargs);
    if (subst->owner == interface) args[0] = self;
    return subst_new(c, subst_for_self(c, subst->outer, interface, self), subst->owner, args, subst->nargs);
}

/* The argument for This is an associated type of an interface value: what it is, and what else the interface
 * takes, for one of the types that may be behind it. */
static const Subst *for_associated(Checker *c, const Subst *subst, const Decl *interface, const Type *self) {
    if (!subst) return NULL;
    const Subst *outer = for_associated(c, subst->outer, interface, self);
    if (subst->owner != interface) return subst_new(c, outer, subst->owner, subst->args, subst->nargs);
    const Type *found = check_find_conformance(c, self, interface);
    return found ? interface_subst(c, found, self) : NULL;
}

const Subst *check_subst_behind(Checker *c, const Subst *subst, const Decl *interface, const Type *type) {
    const Type *self = subst_find(subst, interface, 0);
    if (self->kind != TYPE_assoc) return subst_for_self(c, subst, interface, type);
    Decl *assoc = (Decl *)(uintptr_t)self->decl;
    const Subst *own = subst_new(c, NULL, assoc->parent, self->args, self->nargs);
    return for_associated(c, subst, interface,
                          assoc_of(c, type, assoc, subst_for_self(c, own, assoc->parent, type)));
}

bool type_is_abstract(const Type *type) {
    while (type->kind == TYPE_assoc) type = type->args[0];
    return type->kind == TYPE_param || type->kind == TYPE_each || type->kind == TYPE_at ||
           type->kind == TYPE_branch;
}

/* ---- associated types */

static bool is_differential(Checker *c, const Decl *assoc) {
    return assoc->name == c->known.Differential && (assoc->parent->flags & DECL_PRELUDE);
}

const Type *assoc_node(Checker *c, const Type *base, Decl *assoc, const Subst *subst) {
    TypeVec args = {0};
    vec_push(c->arena, &args, base);
    for (int i = 1; subst && i < subst->nargs; i++) vec_push(c->arena, &args, subst->args[i]);
    return type_make(c->types, TYPE_assoc, 0, assoc, assoc->name, 0, args.at, args.count);
}

/* Of an interface value nothing more is known than the bound: an interface value again. Without a bound it is
 * one of the types that those behind the interface have. */
static const Type *assoc_of_existential(Checker *c, const Type *base, Decl *assoc, const Subst *subst) {
    if (is_differential(c, assoc)) return assoc_node(c, base, assoc, subst);
    ensure_bases(c, assoc);
    Sema *sema = decl_sema(c, assoc);
    return sema->interfaces.count ? check_subst(c, sema->interfaces.at[0], subst)
                                  : assoc_node(c, base, assoc, subst);
}

const Type *constant_number(Checker *c, Decl *decl) {
    check_decl_body(c, decl);
    Env env = {.c = c};
    return decl->init && decl->init->kind != EXPR_error ? number_node(&env, decl->init) : NULL;
}

/* The number that a static constant is, which an interface requires. */
static const Type *value_of_constant(Checker *c, const Satisfaction *found) {
    Decl *decl = found->decl;
    const Type *value = decl && decl->kind == DECL_var ? constant_number(c, decl) : NULL;
    return value ? check_subst(c, value, found->subst) : ERROR_TYPE(c);
}

const Type *assoc_of(Checker *c, const Type *base, Decl *assoc, const Subst *subst) {
    if (has_error(base)) return ERROR_TYPE(c);
    base = known_type(c, base);
    if (is_differential(c, assoc) && base->kind == TYPE_assoc && is_differential(c, base->decl)) return base;
    if (type_is_abstract(base)) {
        const Type *node = assoc_node(c, base, assoc, subst), *equal = known_equal(c, node);
        if (equal) return equal;
        if (is_differential(c, assoc) && conforms_to(c, base, c->known.ISelfDifferentiableValueType))
            return base;
        Satisfaction found = check_witness(c, base, assoc, subst); /* by an extension<T : I> T */
        return found.kind == SATISFY_type ? found.type : node;
    }
    if (base->kind == TYPE_interface) return assoc_of_existential(c, base, assoc, subst);
    Satisfaction found = check_witness(c, base, assoc, subst);
    if (assoc->kind == DECL_var) return value_of_constant(c, &found);
    return found.kind == SATISFY_type ? found.type : ERROR_TYPE(c);
}

/* ---- substitution */

static const Type *substitute(Checker *c, const Type *type, const Subst *subst, int element);

enum { LENGTH_none = -1, LENGTH_mixed = -2 };

static int join_lengths(int a, int b) {
    if (a == LENGTH_none || b == LENGTH_none) return a == LENGTH_none ? b : a;
    return a == b ? a : LENGTH_mixed;
}

/* Of the packs that a pattern mentions, which go side by side. */
static int pack_length(Checker *c, const Type *type, const Subst *subst) {
    if (type->kind == TYPE_each) {
        const Type *pack = substitute(c, type->args[0], subst, -1);
        return pack->kind == TYPE_pack ? pack->nargs : LENGTH_none;
    }
    int length = LENGTH_none;
    for (int i = 0; i < type->nargs && type->kind != TYPE_expand; i++) /* another expand has its own packs */
        length = join_lengths(length, pack_length(c, type->args[i], subst));
    return length;
}

/* Is element `element` of a pack in the pattern itself an expansion, of a pack that is not known yet? */
static bool element_expands(Checker *c, const Type *type, const Subst *subst, int element) {
    if (type->kind == TYPE_each) {
        const Type *pack = substitute(c, type->args[0], subst, -1);
        return pack->kind == TYPE_pack && element < pack->nargs && pack->args[element]->kind == TYPE_expand;
    }
    for (int i = 0; i < type->nargs && type->kind != TYPE_expand; i++)
        if (element_expands(c, type->args[i], subst, element)) return true;
    return false;
}

static const Type *substitute_expand(Checker *c, const Type *type, const Subst *subst) {
    int n = pack_length(c, type->args[0], subst);
    if (n == LENGTH_mixed) return ERROR_TYPE(c);
    if (n == LENGTH_none) return pack_expand(c, substitute(c, type->args[0], subst, -1));
    const Type **elements = arena_array(c->arena, const Type *, n);
    for (int i = 0; i < n; i++) {
        elements[i] = substitute(c, type->args[0], subst, i);
        if (element_expands(c, type->args[0], subst, i)) elements[i] = pack_expand(c, elements[i]);
    }
    return pack_make(c, elements, n);
}

static const Type *substitute_each(Checker *c, const Type *type, const Subst *subst, int element) {
    const Type *pack = substitute(c, type->args[0], subst, -1);
    if (pack->kind == TYPE_pack && element >= 0 && element < pack->nargs) pack = pack->args[element];
    else if (pack->kind == TYPE_pack || pack->kind == TYPE_param || pack->kind == TYPE_slice)
        return pack_each(c, pack);
    return pack->kind == TYPE_expand ? pack->args[0] : pack; /* each of `expand P` is P */
}

/* Once the element is known only the type is left. */
static const Type *substitute_repeat(Checker *c, const Type *type, const Subst *subst, int element) {
    const Type *repeated = substitute(c, type->args[0], subst, element);
    const Type *pattern = substitute(c, type->args[1], subst, element);
    return pattern->flags & TYPE_HAS_PACK ? pack_repeat(c, repeated, pattern) : repeated;
}

/* Only the branch that is taken: the other one may not even exist. */
static const Type *substitute_branch(Checker *c, const Type *type, const Subst *subst, int element) {
    const Type *pack = substitute(c, type->args[0], subst, -1);
    if (pack_is_empty(pack)) return substitute(c, type->args[1], subst, element);
    if (pack_is_nonempty(c, pack)) return substitute(c, type->args[2], subst, element);
    return pack_branch(c, pack, substitute(c, type->args[1], subst, element),
                       substitute(c, type->args[2], subst, element));
}

/* Arguments that became packs are spliced into lists that take any number. The number of the result, of which
 * a function's is about its arguments. */
static int64_t substitute_args(Checker *c, const Type *type, const Subst *subst, int element, TypeVec *out) {
    bool splices = type->kind == TYPE_tuple || type->kind == TYPE_function || type->kind == TYPE_pack;
    int64_t drops = 0;
    for (int i = 0; i < type->nargs; i++) {
        const Type *arg = substitute(c, type->args[i], subst, element);
        int first = out->count;
        if (!splices || arg->kind != TYPE_pack) vec_push(c->arena, out, arg);
        else
            for (int j = 0; j < arg->nargs; j++) vec_push(c->arena, out, arg->args[j]);
        for (int j = first; j < out->count && type->kind == TYPE_function && type_function_drops(type, i);
             j++)
            drops |= type_function_drop(j);
    }
    return type->kind == TYPE_function ? drops : type->number;
}

/* An Optional of a float, as often as P has elements, is an Optional<float>, as often: the pattern that says
 * how often; NULL: there is none. */
static const Type *pull_repeats(TypeVec *args) {
    const Type *pattern = NULL;
    for (int i = 0; i < args->count; i++) {
        if (args->at[i]->kind != TYPE_repeat) continue;
        pattern = args->at[i]->args[1];
        args->at[i] = args->at[i]->args[0];
    }
    return pattern;
}

static const Type *substitute_number(Checker *c, const Type *type, const TypeVec *args) {
    const Type *result = type_number(c->types, type->number);
    for (int i = 0; i < args->count; i++)
        result = type->kind == TYPE_sum ? type_add(c->types, result, args->at[i])
                                        : type_multiply(c->types, result, args->at[i]);
    return result;
}

enum { MAX_SUBST_DEPTH = 400 };

/* Types in types, or associated types that need others without an end. */
static void enter_type(Checker *c) {
    if (c->subst_depth++ < MAX_SUBST_DEPTH) return;
    report(c, DIAG_too_deep, c->context ? c->context->loc : 0);
    arena_give_up(c->arena);
}

static const Type *substitute(Checker *c, const Type *type, const Subst *subst, int element) {
    if (!(type->flags & TYPE_HAS_PARAM)) return type;
    if (type->kind == TYPE_param) {
        const Type *found = subst_find(subst, type->decl, (int)type->number);
        return found ? found : type;
    }
    if (type->kind == TYPE_expand) return substitute_expand(c, type, subst);
    if (type->kind == TYPE_each) return substitute_each(c, type, subst, element);
    if (type->kind == TYPE_slice) return pack_slice(c, substitute(c, type->args[0], subst, -1), type->number);
    if (type->kind == TYPE_repeat) return substitute_repeat(c, type, subst, element);
    if (type->kind == TYPE_at) return pack_at(c, substitute(c, type->args[0], subst, -1), type->number);
    enter_type(c);
    if (type->kind == TYPE_branch) {
        const Type *branch = substitute_branch(c, type, subst, element);
        c->subst_depth--;
        return branch;
    }
    TypeVec args = {0};
    int64_t number = substitute_args(c, type, subst, element, &args);
    const Type *pattern = pull_repeats(&args), *result;
    switch (type->kind) {
    case TYPE_assoc: {
        const Decl *interface = ((const Decl *)type->decl)->parent;
        const Subst *interface_args = subst_new(c, NULL, interface, args.at, args.count);
        result = assoc_of(c, args.at[0], (Decl *)(uintptr_t)type->decl, interface_args);
        break;
    }
    case TYPE_sum:
    case TYPE_product: result = substitute_number(c, type, &args); break;
    case TYPE_apply: result = number_apply(c, type, &args); break;
    case TYPE_pack: result = pack_make(c, args.at, args.count); break;
    default: {
        uint32_t identity = type->flags & (TYPE_COLUMN_MAJOR | TYPE_HANDLE | TYPE_READONLY | TYPE_THROWS);
        result =
            type_make(c->types, type->kind, identity, type->decl, type->name, number, args.at, args.count);
    }
    }
    c->subst_depth--;
    return pattern && !(result->flags & TYPE_HAS_PACK) ? pack_repeat(c, result, pattern) : result;
}

const Type *check_subst(Checker *c, const Type *type, const Subst *subst) {
    return subst ? substitute(c, type, subst, -1) : type;
}

const Type *check_subst_element(Checker *c, const Type *type, const Subst *subst, int element) {
    return substitute(c, type, subst, element);
}

const Subst *check_subst_subst(Checker *c, const Subst *inner, const Subst *subst) {
    if (!inner || !subst) return inner;
    const Type **args = arena_array(c->arena, const Type *, inner->nargs);
    for (int i = 0; i < inner->nargs; i++) args[i] = check_subst(c, inner->args[i], subst);
    return subst_new(c, check_subst_subst(c, inner->outer, subst), inner->owner, args, inner->nargs);
}

const Type *check_self_type(Checker *c, const Decl *decl) { return this_type_of(c, (Decl *)(uintptr_t)decl); }

int check_pack_length(Checker *c, const Type *type, const Subst *subst) {
    return type->flags & TYPE_HAS_PARAM ? pack_length(c, type, subst) : LENGTH_none;
}

int check_value_pack_length(const Decl *param, const Subst *subst) {
    const Decl *owner = param->parent;
    for (int i = 0; i < generic_count(owner); i++) {
        const Type *pack = generic_param(owner, i) == param ? subst_find(subst, owner, i) : NULL;
        if (pack) return pack->kind == TYPE_pack ? pack->nargs : LENGTH_none;
    }
    return LENGTH_none;
}
