/* Packs: lists of types or of numbers whose length is known only once a declaration is specialised.
 *
 * A pack is a TYPE_pack of its elements; or TYPE_expand of a pattern that mentions packs by TYPE_each. An
 * element of a TYPE_pack may itself be a TYPE_expand: so many elements as its packs have. A parameter that is
 * a pack occurs only under TYPE_each, TYPE_slice and TYPE_at; as an argument it is `expand each P`, which
 * makes equal lists one node. Ends are pushed down to the parameters: the first of `expand Box<each P>` is
 * Box of the first of P. */
#include "check/checker.h"

const Type *pack_expand(Checker *c, const Type *pattern) {
    return type_make(c->types, TYPE_expand, 0, NULL, NULL, 0, &pattern, 1);
}

const Type *pack_each(Checker *c, const Type *pack) {
    return type_make(c->types, TYPE_each, 0, NULL, NULL, 0, &pack, 1);
}

/* What stands for the length of a pack: the one parameter in its pattern, where there is one only. */
static const Type *measure_of(const Type *pattern) {
    while (pattern->kind == TYPE_repeat) pattern = pattern->args[1];
    const Type *only = NULL;
    for (int i = 0; i < pattern->nargs && pattern->kind != TYPE_each; i++) {
        if (!(pattern->args[i]->flags & TYPE_HAS_PACK)) continue;
        const Type *measure = pattern->args[i]->kind == TYPE_expand ? NULL : measure_of(pattern->args[i]);
        if (!measure || measure->kind != TYPE_each || (only && only != measure)) return pattern;
        only = measure;
    }
    return only ? only : pattern;
}

const Type *pack_repeat(Checker *c, const Type *type, const Type *pattern) {
    const Type *args[] = {type->kind == TYPE_repeat ? type->args[0] : type, measure_of(pattern)};
    return type_make(c->types, TYPE_repeat, 0, NULL, NULL, 0, args, 2);
}

/* Is every pack in a pattern a list of so many elements? */
static bool goes_over_lists(const Type *pattern, int *length) {
    if (pattern->kind == TYPE_each) {
        const Type *list = pattern->args[0];
        bool same = list->kind == TYPE_pack && (*length < 0 || *length == list->nargs);
        *length = list->nargs;
        return same;
    }
    for (int i = 0; i < pattern->nargs && pattern->kind != TYPE_expand; i++)
        if (!goes_over_lists(pattern->args[i], length)) return false;
    return true;
}

/* As an element of another list, an expansion over a list is what it is for each of the list's elements. */
static const Type *flattened(Checker *c, const Type *element) {
    int length = -1;
    bool lists = element->kind == TYPE_expand && goes_over_lists(element->args[0], &length) && length >= 0;
    return lists ? check_subst_element(c, element, NULL, -1) : element;
}

const Type *pack_make(Checker *c, const Type *const *elements, int count) {
    TypeVec flat = {0};
    for (int i = 0; i < count; i++) {
        const Type *element = flattened(c, elements[i]);
        if (element->kind != TYPE_pack) vec_push(c->arena, &flat, element);
        for (int k = 0; k < element->nargs && element->kind == TYPE_pack; k++)
            vec_push(c->arena, &flat, element->args[k]);
    }
    if (flat.count == 1 && flat.at[0]->kind == TYPE_expand) return flat.at[0];
    return type_make(c->types, TYPE_pack, 0, NULL, NULL, 0, flat.at, flat.count);
}

/* Of what stands in a list: one element, or an expansion. */
const Type *pack_element_type(const Type *listed) {
    const Type *pattern = listed->kind == TYPE_expand ? listed->args[0] : listed;
    return pattern->kind == TYPE_repeat ? pattern->args[0] : pattern;
}

static bool same_but_for_args(const Type *a, const Type *b) {
    return a->kind == b->kind && a->decl == b->decl && a->number == b->number && a->nargs == b->nargs;
}

/* A type in the place of one that stands in a list, as often as that. */
static const Type *listed_as(Checker *c, const Type *type, const Type *listed) {
    if (listed->kind != TYPE_expand) return type;
    return pack_expand(c, type->flags & TYPE_HAS_PACK ? type : pack_repeat(c, type, listed->args[0]));
}

/* What all these are, where they differ an element of the list of what they are there: of Box<each A> and
 * Box<each B> it is Box<each (A, B)>. */
static const Type *common_pattern(Checker *c, const Type *const *types, const Type *tuple) {
    int count = tuple->nargs;
    bool same = !(types[0]->flags & TYPE_HAS_PACK), alike = types[0]->nargs > 0;
    for (int i = 1; i < count; i++) {
        same &= types[i] == types[0];
        alike &= same_but_for_args(types[i], types[0]);
    }
    if (same) return types[0];
    bool composed = types[0]->kind == TYPE_struct || types[0]->kind == TYPE_optional;
    const Type **part = arena_array(c->arena, const Type *, count);
    if (alike && composed) {
        const Type **args = arena_array(c->arena, const Type *, types[0]->nargs);
        for (int k = 0; k < types[0]->nargs; k++) {
            for (int i = 0; i < count; i++) part[i] = types[i]->args[k];
            args[k] = common_pattern(c, part, tuple);
        }
        return type_make(c->types, types[0]->kind, 0, types[0]->decl, types[0]->name, types[0]->number, args,
                         types[0]->nargs);
    }
    for (int i = 0; i < count; i++) part[i] = listed_as(c, types[i], tuple->args[i]);
    return pack_each(c, pack_make(c, part, count));
}

/* The elements of a tuple that is known in part, as one expansion. A tuple that is known is returned as it
 * is. */
const Type *pack_over(Checker *c, const Type *tuple) {
    bool open = false;
    const Type **elements = arena_array(c->arena, const Type *, tuple->nargs);
    for (int i = 0; i < tuple->nargs; i++) {
        open |= tuple->args[i]->kind == TYPE_expand;
        elements[i] = pack_element_type(tuple->args[i]);
    }
    if (!open) return tuple;
    if (tuple->nargs == 1) return tuple->args[0];
    const Type *pattern = common_pattern(c, elements, tuple);
    if (pattern->flags & TYPE_HAS_PACK) return pack_expand(c, pattern);
    return pack_expand(c, pack_repeat(c, pattern, pack_each(c, pack_make(c, tuple->args, tuple->nargs))));
}

/* What a pack has as elements of a list: itself as an expansion, or those of a TYPE_pack. */
const Type *pack_argument(Checker *c, const Type *type) {
    bool bare = (type->kind == TYPE_param && (type->flags & TYPE_IS_PACK_PARAM)) || type->kind == TYPE_slice;
    return bare ? pack_expand(c, pack_each(c, type)) : type;
}

bool type_is_pack(const Type *type) {
    return type->kind == TYPE_pack || type->kind == TYPE_expand || type->kind == TYPE_slice ||
           (type->kind == TYPE_param && (type->flags & TYPE_IS_PACK_PARAM));
}

/* What these are elements of: a parameter, or a list. */
const Type *pack_source(const Type *type) {
    while (type->kind == TYPE_each || type->kind == TYPE_at || type->kind == TYPE_slice) type = type->args[0];
    return type;
}

/* The parameter whose elements these are; NULL: of a list that is half known. */
const Type *pack_root(const Type *type) {
    type = pack_source(type);
    return type->kind == TYPE_param ? type : NULL;
}

/* The type of a pack of values: its element type, as often as it has elements. */
const Type *value_pack_type(Checker *c, const Decl *decl) {
    const Type *element = decl->type;
    for (int i = 0; i < generic_count(decl->parent); i++)
        if (generic_param(decl->parent, i) == decl) element = pack_each(c, param_type(c, decl->parent, i));
    return pack_expand(c, pack_repeat(c, decl->type, element));
}

/* ---- ends */

static int64_t front_of(int64_t number) { return (int64_t)((uint64_t)number & 0xFFFFFFFF); }
static int64_t back_of(int64_t number) { return (int64_t)((uint64_t)number >> 32); }

int64_t pack_trim_number(int64_t front, int64_t back) {
    return (int64_t)((uint64_t)front | (uint64_t)back << 32);
}

typedef const Type *(*PackMap)(Checker *c, const Type *pack, int64_t number);

typedef VEC(const Decl *) OwnerVec;

static void pack_owners(Checker *c, const Type *type, OwnerVec *owners) {
    const Type *root = type->kind == TYPE_each ? pack_root(type) : NULL;
    for (int i = 0; root && i < owners->count; i++)
        if (owners->at[i] == root->decl) root = NULL;
    if (root) vec_push(c->arena, owners, (const Decl *)root->decl);
    for (int i = 0; i < type->nargs && type->kind != TYPE_expand; i++) pack_owners(c, type->args[i], owners);
}

/* The pattern with every pack in it mapped: packs are put in place of the parameters. */
static const Type *map_pattern(Checker *c, const Type *pattern, PackMap map, int64_t number) {
    OwnerVec owners = {0};
    const Subst *subst = NULL;
    pack_owners(c, pattern, &owners);
    for (int k = 0; k < owners.count; k++) {
        int n = generic_count(owners.at[k]);
        const Type **args = arena_array(c->arena, const Type *, n);
        for (int i = 0; i < n; i++) {
            const Type *param = param_type(c, owners.at[k], i);
            args[i] = param->flags & TYPE_IS_PACK_PARAM ? map(c, param, number) : param;
        }
        subst = subst_new(c, subst, owners.at[k], args, n);
    }
    return check_subst(c, pattern, subst);
}

static const Type *slice_node(Checker *c, const Type *pack, int64_t number) {
    return type_make(c->types, TYPE_slice, 0, NULL, NULL, number, &pack, 1);
}

static const Type *sliced_argument(Checker *c, const Type *pack, int64_t number) {
    return pack_argument(c, slice_node(c, pack, number));
}

/* Elements at both ends of a list are dropped as long as they are single ones. */
static const Type *slice_list(Checker *c, const Type *pack, int64_t front, int64_t back) {
    int from = 0, to = pack->nargs;
    for (; front && from < to && pack->args[from]->kind != TYPE_expand; front--) from++;
    for (; back && to > from && pack->args[to - 1]->kind != TYPE_expand; back--) to--;
    const Type *rest = pack_make(c, pack->args + from, to - from);
    bool done = (!front && !back) || from == to;
    return done ? rest : pack_argument(c, slice_node(c, rest, pack_trim_number(front, back)));
}

/* The pack without so many elements at its front and its back. */
const Type *pack_slice(Checker *c, const Type *pack, int64_t number) {
    int64_t front = front_of(number), back = back_of(number);
    if (!number || has_error(pack)) return pack;
    switch (pack->kind) {
    case TYPE_pack: return slice_list(c, pack, front, back);
    case TYPE_slice:
        front += front_of(pack->number), back += back_of(pack->number);
        return sliced_argument(c, pack->args[0], pack_trim_number(front, back));
    case TYPE_expand:
        if (pack->args[0]->kind == TYPE_each) {
            const Type *inner = pack->args[0]->args[0];
            return inner->kind == TYPE_slice ? pack_slice(c, inner, number)
                                             : sliced_argument(c, inner, number);
        }
        return pack_expand(c, map_pattern(c, pack->args[0], sliced_argument, number));
    default: return sliced_argument(c, pack, number);
    }
}

static const Type *at_node(Checker *c, const Type *pack, int64_t index) {
    return type_make(c->types, TYPE_at, 0, NULL, NULL, index, &pack, 1);
}

static const Type *at_argument(Checker *c, const Type *pack, int64_t index) {
    return pack_expand(c, at_node(c, pack, index));
}

static const Type *list_at(Checker *c, const Type *pack, int64_t index) {
    bool from_back = index < 0;
    int64_t steps = from_back ? -1 - index : index;
    for (int64_t i = 0; i <= steps && i < pack->nargs; i++) {
        const Type *element = pack->args[from_back ? pack->nargs - 1 - i : i];
        if (element->kind == TYPE_expand) return at_node(c, pack, index);
        if (i == steps) return element;
    }
    return ERROR_TYPE(c);
}

/* One element: 0 is the first, -1 the last. */
const Type *pack_at(Checker *c, const Type *pack, int64_t index) {
    switch (pack->kind) {
    case TYPE_error: return pack;
    case TYPE_pack: return list_at(c, pack, index);
    case TYPE_slice:
        return pack_at(c, pack->args[0],
                       index < 0 ? index - back_of(pack->number) : index + front_of(pack->number));
    case TYPE_expand:
        if (pack->args[0]->kind == TYPE_each) return pack_at(c, pack->args[0]->args[0], index);
        return map_pattern(c, pack->args[0], at_argument, index);
    default: return at_node(c, pack, index);
    }
}

/* ---- lengths */

const Type *pack_in(const Type *pattern) {
    if (pattern->kind == TYPE_each) return pattern->args[0];
    for (int i = 0; i < pattern->nargs && pattern->kind != TYPE_expand; i++) {
        const Type *found = pack_in(pattern->args[i]);
        if (found) return found;
    }
    return NULL;
}

/* How many elements, as a number that may depend on parameters; NULL: no pack. */
const Type *pack_count(Checker *c, const Type *pack) {
    switch (pack->kind) {
    case TYPE_tuple:
    case TYPE_pack: {
        const Type *sum = type_number(c->types, 0);
        for (int i = 0; i < pack->nargs; i++) {
            const Type *element = pack->args[i];
            const Type *n = element->kind == TYPE_expand ? pack_count(c, element) : type_number(c->types, 1);
            sum = n ? type_add(c->types, sum, n) : sum;
        }
        return sum;
    }
    case TYPE_expand: {
        const Type *inner = pack_in(pack->args[0]);
        return inner ? pack_count(c, inner) : NULL;
    }
    case TYPE_each: return pack_count(c, pack->args[0]);
    default: return type_is_pack(pack) ? number_countof(c, pack) : NULL;
    }
}

static bool promises_elements(Checker *c, const Decl *decl, const Type *pack) {
    if (!decl->generics) return false;
    ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = 0; i < decl->generics->demands.count; i++) {
        const Demand *demand = &decl->generics->demands.at[i];
        if (demand->kind == DEMAND_nonempty && demand->subject_type == pack) return true;
    }
    return false;
}

/* Is it known that there is an element? */
bool pack_is_nonempty(Checker *c, const Type *pack) {
    if (pack->kind == TYPE_expand) {
        const Type *inner = pack_in(pack->args[0]);
        return inner && pack_is_nonempty(c, inner);
    }
    for (int i = 0; i < pack->nargs && (pack->kind == TYPE_pack || pack->kind == TYPE_tuple); i++)
        if (pack->args[i]->kind != TYPE_expand || pack_is_nonempty(c, pack->args[i])) return true;
    if (pack->kind != TYPE_param) return false;
    if (pack == c->nonempty_pack || promises_elements(c, pack->decl, pack)) return true;
    for (const Decl *d = c->context; d; d = d->parent)
        if (promises_elements(c, d, pack)) return true;
    return false;
}

/* Is it known that there is none? */
bool pack_is_empty(const Type *pack) { return pack->kind == TYPE_pack && pack->nargs == 0; }

/* ---- __packBranch */

const Type *pack_branch(Checker *c, const Type *pack, const Type *empty, const Type *nonempty) {
    const Type *args[] = {pack, empty, nonempty};
    return type_make(c->types, TYPE_branch, 0, NULL, NULL, 0, args, 3);
}

/* ---- arguments for the packs of one list */

static int packs_of(const Decl *decl, int from) {
    int n = 0;
    for (int i = from; i < generic_count(decl); i++) {
        const Decl *param = generic_param(decl, i);
        n += param && (param->modifiers & MODIFIER_pack) != 0;
    }
    return n;
}

/* Packs from parameter `first` on share the arguments equally. False: they cannot. */
bool pack_share(Checker *c, const Decl *decl, int first, const Type *const *args, int count,
                const Type **out) {
    int packs = packs_of(decl, first);
    if (count % packs) return false;
    for (int i = first; i < generic_count(decl); i++) {
        if (!(generic_param(decl, i)->modifiers & MODIFIER_pack)) continue;
        out[i] = pack_make(c, args, count / packs);
        args += count / packs;
    }
    return true;
}
