/* expand and each, and the ends of packs.
 *
 * An expansion in generic code is one node: its pattern is checked once, and evaluated for each element when
 * specialised. Over a tuple whose elements are known it is taken apart at once: the pattern is checked for
 * each element, and the expansion is a list of what came out (EXPR_expand without a pattern), which is
 * spliced into the list that it stands in. */
#include "check/checker.h"

static Expr *not_a_pack(Env *env, const Expr *e) {
    report_expr(env->c, e, DIAG_each_needs_pack);
    return error_expr(env->c, e->loc);
}

static Expr *checked_node(Checker *c, ExprKind kind, Loc loc, const Type *type) {
    Expr *e = expr_new(c->arena, kind, loc);
    e->type = type;
    e->flags = EXPR_CHECKED;
    return e;
}

/* ---- names of packs */

static Expr *expansion_of(Checker *c, Expr *pack, const Type *type) {
    Expr *each = checked_node(c, EXPR_each, pack->loc, known_type(c, pack_element_type(type)));
    each->a = pack;
    each->flags |= pack->flags & (EXPR_PLACE | EXPR_READONLY);
    Expr *e = checked_node(c, EXPR_expand, pack->loc, type);
    e->a = each;
    return e;
}

/* v alone, where a list is expected, is `expand each v`; a lambda holds v as a tuple. */
Expr *as_expansion(Env *env, Expr *e) {
    bool bare = e->kind == EXPR_decl && e->type && e->type->kind == TYPE_expand;
    if (e->kind == EXPR_decl && is_captured_pack(env, e)) return expansion_of(env->c, e, e->type->args[0]);
    return bare ? expansion_of(env->c, e, e->type) : e;
}

/* Checks the items of a list; those of expansions that are taken apart stand in it themselves. */
void splice_expansions(Env *env, ExprVec *items) {
    bool found = false;
    for (int i = 0; i < items->count; i++) {
        Expr *item = items->at[i];
        if (item && item->kind != EXPR_list) items->at[i] = item = as_expansion(env, check_term(env, item));
        found |= item && item->kind == EXPR_expand && !item->a;
    }
    if (!found) return;
    ExprVec spliced = {0};
    for (int i = 0; i < items->count; i++) {
        Expr *item = items->at[i];
        bool list = item->kind == EXPR_expand && !item->a;
        for (int k = 0; k < (list ? item->args.count : 1); k++)
            vec_push(env->c->arena, &spliced, list ? item->args.at[k] : item);
    }
    *items = spliced;
}

/* ---- each */

static bool names_pack(Env *env, const Expr *e) {
    Candidates list = {0};
    if (e->kind != EXPR_name || e->decl || !lookup_name(env, e->name, &list)) return false;
    const Decl *decl = list.at[0].decl;
    const Type *type = decl->kind == DECL_var ? decl->type : NULL;
    if (type && type->kind == TYPE_tuple) type = pack_over(env->c, type);
    if (decl->kind == DECL_type_param || decl->kind == DECL_value_param)
        return (decl->modifiers & MODIFIER_pack) != 0;
    return type && type->kind == TYPE_expand;
}

bool may_expand(Env *env, const Expr *e) { return e->kind == EXPR_expand || names_pack(env, e); }

/* each v.f(x) is (each v).f(x), each T.X is (each T).X: it is the pack that has elements. */
static bool move_each_inside(Env *env, Expr *e) {
    Expr **leaf = &e->a;
    while ((*leaf)->kind == EXPR_member || (*leaf)->kind == EXPR_call || (*leaf)->kind == EXPR_index)
        leaf = &(*leaf)->a;
    if (leaf == &e->a || !names_pack(env, *leaf)) return false;
    diag_portable(env->c->diags, e->loc, "'each' before a member of an element; write (each P).member");
    Expr *each = expr_new(env->c->arena, EXPR_each, (*leaf)->loc);
    each->a = *leaf;
    *leaf = each;
    return true;
}

/* The expansion that a type under `each` stands for; NULL: none. */
static const Type *expansion_in(Checker *c, const Type *type) {
    if (!type) return NULL;
    type = pack_argument(c, type);
    if (type->kind == TYPE_tuple) type = pack_over(c, type);
    return type->kind == TYPE_expand ? type : NULL;
}

Expr *check_each(Env *env, Expr *e) {
    Checker *c = env->c;
    if (move_each_inside(env, e)) return check_term(env, e->a);
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) return a;
    c->each_count++;
    if (!c->expand_depth) {
        report_expr(c, e, DIAG_each_outside);
        if (c->expand_around) note(c, DIAG_note_each_in_lambda, 0);
        return error_expr(c, e->loc);
    }
    const Type *type = expansion_in(c, a->kind == EXPR_type ? a->type_value : a->type);
    if (!type || a->kind == EXPR_overload) return not_a_pack(env, e);
    if (a->kind == EXPR_type) return type_expr(c, e->loc, type->args[0]);
    e->a = a;
    e->type = pack_element_type(type);
    e->flags |= (a->kind == EXPR_expand && a->a ? a->a : a)->flags & (EXPR_PLACE | EXPR_READONLY);
    return e;
}

/* ---- expand over tuples that are known */

typedef VEC(Expr *) EachVec;

static void find_each(Expr *e, EachVec *found, Env *env) {
    if (!e || (e->flags & EXPR_CHECKED) || e->kind == EXPR_expand || e->kind == EXPR_lambda) return;
    if (e->kind == EXPR_each && move_each_inside(env, e)) *e = *e->a;
    if (e->kind == EXPR_each) {
        vec_push(env->c->arena, found, e);
        return;
    }
    find_each(e->a, found, env);
    find_each(e->b, found, env);
    find_each(e->c, found, env);
    for (int i = 0; i < e->args.count; i++) find_each(e->args.at[i], found, env);
}

static const Type *known_tuple(const Expr *e) {
    const Type *type = e->kind == EXPR_type ? e->type_value : e->kind == EXPR_overload ? NULL : e->type;
    if (!type || type->kind != TYPE_tuple) return NULL;
    for (int i = 0; i < type->nargs; i++)
        if (type->args[i]->kind == TYPE_expand) return NULL;
    return type;
}

static Expr *tuple_element(Checker *c, Expr *tuple, int index) {
    const Type *type = known_tuple(tuple);
    if (tuple->kind == EXPR_type) return type_expr(c, tuple->loc, type->args[index]);
    Expr *e = checked_node(c, EXPR_part, tuple->loc, type->args[index]);
    e->a = tuple;
    e->number = (uint64_t)index;
    e->flags |= tuple->flags & (EXPR_PLACE | EXPR_READONLY);
    return e;
}

enum { LENGTH_open = -1, LENGTH_wrong = -2 };

/* How many elements all tuples under `each` have; open: some are packs; wrong: they differ. */
static int known_length(Env *env, const EachVec *found) {
    int length = LENGTH_open;
    for (int i = 0; i < found->count; i++) {
        found->at[i]->a = check_term(env, found->at[i]->a);
        const Type *tuple = known_tuple(found->at[i]->a);
        if (!tuple) return LENGTH_open;
        if (i && tuple->nargs != length) {
            report_expr(env->c, found->at[i], DIAG_packs_differ, length, tuple->nargs);
            return LENGTH_wrong;
        }
        length = tuple->nargs;
    }
    return length;
}

static const Type *types_of(Env *env, const ExprVec *items) {
    Checker *c = env->c;
    TypeVec types = {0};
    for (int i = 0; i < items->count; i++)
        if (items->at[i]->kind == EXPR_type) vec_push(c->arena, &types, resolve_type(env, items->at[i]));
    return types.count == items->count ? pack_make(c, types.at, types.count) : NULL;
}

/* A lambda is the same one for all elements. */
static void check_lambdas(Env *env, Expr **e) {
    if (!*e || ((*e)->flags & EXPR_CHECKED)) return;
    if ((*e)->kind == EXPR_lambda) {
        *e = check_term(env, *e);
        return;
    }
    check_lambdas(env, &(*e)->a);
    check_lambdas(env, &(*e)->b);
    check_lambdas(env, &(*e)->c);
    for (int i = 0; i < (*e)->args.count; i++) check_lambdas(env, &(*e)->args.at[i]);
}

static Expr *take_apart(Env *env, Expr *e, int length) {
    Checker *c = env->c;
    c->expand_depth++;
    check_lambdas(env, &e->a);
    c->expand_depth--;
    Expr *list = checked_node(c, EXPR_expand, e->loc, type_basic(c->types, TYPE_void));
    for (int k = 0; k < length; k++) {
        Expr *copy = expr_copy(c->arena, e->a);
        EachVec found = {0};
        find_each(copy, &found, env);
        for (int i = 0; i < found.count; i++) *found.at[i] = *tuple_element(c, found.at[i]->a, k);
        Expr *item = check_term(env, copy);
        if (item->kind == EXPR_error) return item;
        vec_push(c->arena, &list->args, item);
    }
    const Type *types = length ? types_of(env, &list->args) : NULL;
    return types ? type_expr(c, e->loc, types) : list;
}

/* ---- expand */

/* A pack that is mentioned by a type in the pattern only: Row<each N>().size(). */
static const Type *pack_in_types(Checker *c, const Expr *e) {
    const Type *type = e->kind == EXPR_type ? e->type_value : e->type;
    if (type && (type->flags & TYPE_HAS_PACK)) return pack_expand(c, type);
    for (const Subst *s = e->kind == EXPR_invoke || e->kind == EXPR_decl ? e->subst : NULL; s; s = s->outer)
        for (int i = 0; i < s->nargs; i++)
            if ((s->args[i]->flags & TYPE_HAS_PACK) && !type_is_pack(s->args[i]))
                return pack_expand(c, s->args[i]);
    return NULL;
}

/* The pack that an expansion of values goes over. */
static const Type *pack_under(Checker *c, const Expr *e) {
    if (!e || e->kind == EXPR_expand) return NULL;
    if (e->kind == EXPR_each) return expansion_in(c, e->a->type);
    const Expr *parts[] = {e->a, e->b, e->c};
    for (int i = 0; i < 3; i++) {
        const Type *found = pack_under(c, parts[i]);
        if (found) return found;
    }
    for (int i = 0; i < e->args.count; i++) {
        const Type *found = pack_under(c, e->args.at[i]);
        if (found) return found;
    }
    return pack_in_types(c, e);
}

/* Values of one type are as many as the pack that they are made from has elements. */
static const Type *repeated(Checker *c, const Type *type, const Type *pack) {
    if ((type->flags & TYPE_HAS_PACK) || !pack || pack->kind != TYPE_expand) return type;
    return pack_repeat(c, type, pack->args[0]);
}

Expr *check_expand(Env *env, Expr *e) {
    Checker *c = env->c;
    EachVec found = {0};
    find_each(e->a, &found, env);
    int length = found.count ? known_length(env, &found) : LENGTH_open;
    if (length == LENGTH_wrong) return error_expr(c, e->loc);
    if (length != LENGTH_open) return take_apart(env, e, length);
    int before = c->each_count;
    c->expand_depth++;
    Expr *a = check_term(env, e->a);
    c->expand_depth--;
    if (a->kind == EXPR_error) return a;
    if (c->each_count == before) return not_a_pack(env, e);
    const Type *pattern = a->kind == EXPR_type ? a->type_value : a->type;
    if (!pattern || a->kind == EXPR_overload || a->kind == EXPR_space) return not_a_pack(env, e);
    if (a->kind == EXPR_type) return type_expr(c, e->loc, pack_expand(c, pattern));
    e->a = a;
    e->type = pack_expand(c, repeated(c, pattern, pack_under(c, a)));
    return e;
}

/* ---- ends */

static const Type *pack_of_expansion(Env *env, Expr *e) {
    const Type *numbers = pack_of_numbers(env, e);
    if (numbers) return numbers;
    const Type *pack = pack_under(env->c, e->a);
    return pack ? pack_slice(env->c, pack, (int64_t)e->number) : e->type;
}

const Type *expansion_count(Env *env, Expr *e) {
    const Type *count = pack_count(env->c, pack_of_expansion(env, e));
    return count ? count : type_number(env->c->types, 0);
}

Expr *coerce_expansion(Env *env, Expr *e, const Type *type) {
    Checker *c = env->c;
    Expr *pattern = coerce(env, e->a, type);
    if (pattern->kind == EXPR_error || pattern == e->a) return pattern == e->a ? e : pattern;
    Expr *converted = arena_copy(c->arena, e, sizeof *e);
    converted->a = pattern;
    converted->type = pack_expand(c, repeated(c, type, pack_under(c, pattern)));
    return converted;
}

static bool require_element(Env *env, Loc loc, const Type *pack) {
    if (pack_is_nonempty(env->c, pack)) return true;
    report(env->c, pack_is_empty(pack) ? DIAG_pack_empty : DIAG_pack_may_be_empty, loc);
    const Type *root =
        pack->kind == TYPE_expand && pack->args[0]->kind == TYPE_each ? pack_root(pack->args[0]) : NULL;
    if (root) note(env->c, DIAG_note_nonempty, ((const Decl *)root->decl)->loc, root->name->text);
    return false;
}

/* A pack or tuple of types as one pack; NULL: it is neither. */
static const Type *list_of_types(Checker *c, const Type *type) {
    if (type->kind == TYPE_tuple) return pack_make(c, type->args, type->nargs);
    type = pack_argument(c, type);
    return type->kind == TYPE_pack || type->kind == TYPE_expand ? type : NULL;
}

static Expr *end_of_values(Env *env, Expr *e, Expr *a) {
    Checker *c = env->c;
    bool first = e->number == PACK_first;
    const Type *tuple = known_tuple(a);
    if (tuple && tuple->nargs) return tuple_element(c, a, first ? 0 : tuple->nargs - 1);
    if (tuple) return require_element(env, e->loc, pack_make(c, NULL, 0)) ? a : error_expr(c, e->loc);
    if (expansion_in(c, a->type) && a->kind != EXPR_expand) a = expansion_of(c, a, expansion_in(c, a->type));
    if (a->kind == EXPR_expand && !a->a && a->args.count) return a->args.at[first ? 0 : a->args.count - 1];
    if (a->kind != EXPR_expand || !a->a) return not_a_pack(env, e);
    if (!require_element(env, e->loc, pack_of_expansion(env, a))) return error_expr(c, e->loc);
    e->a = a;
    e->type = pack_at(c, a->type, first ? 0 : -1);
    if (e->type->kind == TYPE_repeat) e->type = e->type->args[0];
    if (a->a->kind == EXPR_each) e->flags |= a->a->a->flags & (EXPR_PLACE | EXPR_READONLY);
    return e;
}

Expr *check_end(Env *env, Expr *e) {
    Checker *c = env->c;
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) return a;
    if (a->kind != EXPR_type) {
        a = check_value(env, a);
        return a->kind == EXPR_error ? a : end_of_values(env, e, a);
    }
    const Type *pack = list_of_types(c, a->type_value ? a->type_value : resolve_type(env, a));
    if (!pack) return not_a_pack(env, e);
    if (!require_element(env, e->loc, pack)) return error_expr(c, e->loc);
    return type_expr(c, e->loc, pack_at(c, pack, e->number == PACK_first ? 0 : -1));
}

static const Type *tuple_of(Checker *c, const Type *pack) {
    bool list = pack->kind == TYPE_pack;
    return type_make(c->types, TYPE_tuple, 0, NULL, NULL, 0, list ? pack->args : &pack,
                     list ? pack->nargs : 1);
}

Expr *pack_as_tuple(Checker *c, Expr *pack) {
    Expr *elements = expansion_of(c, pack, pack->type);
    Expr *tuple = checked_node(c, EXPR_construct, pack->loc, tuple_of(c, elements->type));
    vec_push(c->arena, &tuple->args, elements);
    return tuple;
}

/* An expansion that leaves one more element out. */
static Expr *trimmed_expansion(Checker *c, const Expr *a, int64_t trim) {
    Expr *e = checked_node(c, EXPR_expand, a->loc, pack_slice(c, a->type, trim));
    e->a = a->a;
    e->number = a->number + (uint64_t)trim;
    return e;
}

static Expr *trim_values(Env *env, Expr *e, Expr *a, int64_t trim) {
    Checker *c = env->c;
    bool first = e->number == PACK_first, is_tuple = a->type->kind == TYPE_tuple;
    const Type *tuple = known_tuple(a), *open = expansion_in(c, a->type);
    if (a->kind == EXPR_expand && a->a) return trimmed_expansion(c, a, trim);
    Expr *node = checked_node(c, EXPR_construct, e->loc, a->type);
    if (tuple) {
        node->type = tuple_of(c, pack_slice(c, pack_make(c, tuple->args, tuple->nargs), trim));
        for (int i = first; i < tuple->nargs - !first; i++)
            vec_push(c->arena, &node->args, tuple_element(c, a, i));
        return node;
    }
    if (a->kind == EXPR_expand) {
        node->kind = EXPR_expand;
        for (int i = first; i < a->args.count - !first; i++) vec_push(c->arena, &node->args, a->args.at[i]);
        return node;
    }
    if (!open) return not_a_pack(env, e);
    Expr *rest = trimmed_expansion(c, expansion_of(c, a, open), trim);
    if (!is_tuple) return rest;
    node->type = tuple_of(c, rest->type);
    vec_push(c->arena, &node->args, rest);
    return node;
}

Expr *check_trim(Env *env, Expr *e) {
    Checker *c = env->c;
    int64_t trim = e->number == PACK_first ? pack_trim_number(1, 0) : pack_trim_number(0, 1);
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) return a;
    if (a->kind != EXPR_type) {
        a = check_value(env, a);
        return a->kind == EXPR_error ? a : trim_values(env, e, a, trim);
    }
    const Type *type = a->type_value ? a->type_value : resolve_type(env, a), *pack = list_of_types(c, type);
    if (!pack) return not_a_pack(env, e);
    pack = pack_slice(c, pack, trim);
    return type_expr(c, e->loc, type->kind == TYPE_tuple ? tuple_of(c, pack) : pack);
}

/* ---- __packBranch */

static const Type *branch_pack(Env *env, Expr *operand) {
    Expr *e = check_term(env, operand);
    if (e->kind == EXPR_type) return e->type_value ? list_of_types(env->c, e->type_value) : NULL;
    e = as_expansion(env, e);
    return e->kind == EXPR_expand ? pack_of_numbers(env, e) : NULL;
}

Expr *check_branch(Env *env, Expr *e) {
    Checker *c = env->c;
    if (e->args.count < 3) return error_expr(c, e->loc);
    const Type *pack = branch_pack(env, e->args.at[0]), *outer = c->nonempty_pack;
    if (!pack) return not_a_pack(env, e);
    const Type *empty = resolve_type(env, e->args.at[1]);
    bool named = pack->kind == TYPE_expand && pack->args[0]->kind == TYPE_each;
    if (named) c->nonempty_pack = pack->args[0]->args[0];
    const Type *nonempty = resolve_type(env, e->args.at[2]);
    c->nonempty_pack = outer;
    if (is_error(empty) || is_error(nonempty)) return error_expr(c, e->loc);
    if (pack_is_empty(pack)) return type_expr(c, e->loc, empty);
    return type_expr(c, e->loc, pack_is_nonempty(c, pack) ? nonempty : pack_branch(c, pack, empty, nonempty));
}
