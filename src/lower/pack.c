/* Packs, once they are known: an expansion is its pattern, lowered for one element after the other.
 *
 * Fn.pack_element is the element that `each` stands for; types and constants inside are substituted for that
 * element as well. An expansion may leave elements out at its ends (EXPR_expand.number: how many at the
 * front, << 32 at the back). */
#include "lower/lowerer.h"

static int front_of(const Expr *e) { return (int)(e->number & 0xFFFFFFFF); }
static int trimmed(const Expr *e) { return front_of(e) + (int)(e->number >> 32); }

/* The local that stands for the current element of a pack. */
Local *pack_element(Fn *f, Expr *e) {
    if (e->a->kind != EXPR_decl) return NULL;
    Local *pack = find_local(f, e->a->decl);
    if (!pack || f->pack_element < 0 || f->pack_element >= pack->nelements) return NULL;
    return &pack->elements[f->pack_element];
}

Val *each_address(Fn *f, Expr *e) { /* each of a tuple */
    int element = f->pack_element;
    f->pack_element = -1;
    Val *tuple = lower_address(f, e->a);
    f->pack_element = element;
    return build_field(&f->b, tuple, element);
}

/* ---- lengths */

static int length_of_each(Fn *f, const Expr *e) {
    if (e->a->kind == EXPR_expand) return expansion_length(f, e->a);
    if (e->a->kind == EXPR_decl && e->a->decl->kind == DECL_var) {
        Local *pack = find_local(f, e->a->decl);
        if (pack && !pack->address && !pack->value) return pack->nelements;
    }
    if (e->a->kind == EXPR_decl && e->a->decl->kind == DECL_value_param)
        return check_value_pack_length(e->a->decl, f->subst);
    int element = f->pack_element;
    f->pack_element = -1;
    const Type *tuple = concrete(f, e->a->type);
    f->pack_element = element;
    return tuple->kind == TYPE_tuple || tuple->kind == TYPE_pack ? tuple->nargs : -1;
}

/* -1: no packs in it; what was found first otherwise, unless another one differs. */
static int join_lengths(Fn *f, Loc loc, int a, int b) {
    if (a < 0 || b < 0 || a == b) return a < 0 ? b : a;
    if (loc) lower_report(f, DIAG_packs_differ, loc, a, b);
    return a < b ? a : b;
}

static int length_in_subst(Fn *f, const Expr *e) {
    int length = -1;
    for (const Subst *s = e->kind == EXPR_invoke || e->kind == EXPR_decl ? e->subst : NULL; s; s = s->outer)
        for (int i = 0; i < s->nargs; i++)
            length = join_lengths(f, e->loc, length, check_pack_length(f->l->c, s->args[i], f->subst));
    return length;
}

static int pack_length_of(Fn *f, const Expr *e) {
    if (e->kind == EXPR_each) return length_of_each(f, e);
    if (e->kind == EXPR_expand) return -1;
    if (e->kind == EXPR_type) return check_pack_length(f->l->c, e->type_value, f->subst);
    int length = -1;
    const Expr *parts[] = {e->a, e->b, e->c};
    for (int i = 0; i < 3; i++)
        if (parts[i]) length = join_lengths(f, e->loc, length, pack_length_of(f, parts[i]));
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i]) length = join_lengths(f, e->loc, length, pack_length_of(f, e->args.at[i]));
    if (e->type) length = join_lengths(f, e->loc, length, check_pack_length(f->l->c, e->type, f->subst));
    return join_lengths(f, e->loc, length, length_in_subst(f, e));
}

int expansion_length(Fn *f, const Expr *e) {
    int elements = pack_length_of(f, e->a), length = elements - trimmed(e);
    if (elements < 0) arena_fault(f->l->arena, "an expansion that goes over no pack"); /* rather than none */
    return length > 0 ? length : 0;
}

/* ---- evaluating */

void for_expansion(Fn *f, Expr *e, void (*lower)(Fn *f, Expr *pattern, void *user), void *user) {
    int n = e->a ? expansion_length(f, e) : e->args.count, outer = f->pack_element;
    for (int i = 0; i < n; i++) {
        if (e->a) f->pack_element = front_of(e) + i;
        lower(f, e->a ? e->a : e->args.at[i], user);
        f->pack_element = outer;
    }
}

static void effect_of_one(Fn *f, Expr *pattern, void *user) {
    (void)user;
    lower_effect(f, pattern);
}

void lower_expand(Fn *f, Expr *e) { for_expansion(f, e, effect_of_one, NULL); }

/* An element that is named by its place: `each` of an expansion, an end. Says which expression it is, and
 * makes it the current one; the caller restores pack_element. */
Expr *enter_element(Fn *f, Expr *e) {
    Expr *expansion = e->a;
    if (e->kind == EXPR_each) f->pack_element += front_of(expansion);
    else
        f->pack_element = e->number == PACK_first ? front_of(expansion)
                                                  : front_of(expansion) + expansion_length(f, expansion) - 1;
    return expansion->a;
}

bool names_element(const Expr *e) {
    return e->kind == EXPR_end || (e->kind == EXPR_each && e->a->kind == EXPR_expand);
}
