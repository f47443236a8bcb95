/* Arguments of one call that are written and are the same variable, or parts of it that overlap: what the
 * function then does is not specified. Only what is certain is reported. */
#include "check/checker.h"

static const Expr *inside(const Expr *e) {
    while (e->kind == EXPR_paren || e->kind == EXPR_convert) e = e->a;
    return e;
}

typedef VEC(const Expr *) Path;

/* What is stepped into; the variable is last. */
static Path path_of(Checker *c, const Expr *e) {
    Path path = {0};
    for (e = inside(e); e; e = inside(e->a)) {
        vec_push(c->arena, &path, e);
        bool goes_on = e->kind == EXPR_swizzle || e->kind == EXPR_element || e->kind == EXPR_part ||
                       e->kind == EXPR_decl;
        if (!goes_on || !e->a) break;
    }
    return path;
}

static bool same_root(const Expr *a, const Expr *b) {
    if (a->kind == EXPR_this) return b->kind == EXPR_this;
    return a->kind == EXPR_decl && b->kind == EXPR_decl && a->decl == b->decl && a->decl->kind == DECL_var;
}

static bool same_index(Env *env, Expr *a, Expr *b) {
    int64_t x, y;
    if (eval_number(env, a, &x) && eval_number(env, b, &y)) return x == y;
    return a->kind == EXPR_decl && b->kind == EXPR_decl && !a->a && !b->a && a->decl == b->decl;
}

static bool lanes_meet(const Expr *a, const Expr *b) {
    for (int i = 0; i < a->nlanes; i++)
        for (int k = 0; k < b->nlanes; k++)
            if (a->lanes[i] == b->lanes[k]) return true;
    return false;
}

static bool same_step(Env *env, const Expr *a, const Expr *b) {
    if (a->kind != b->kind) return false;
    switch ((ExprKind)a->kind) {
    case EXPR_decl: return a->decl == b->decl && a->decl->kind == DECL_var;
    case EXPR_element: return a->a->type->kind != TYPE_pointer && same_index(env, a->b, b->b);
    case EXPR_part: return a->number == b->number;
    case EXPR_swizzle: return lanes_meet(a, b);
    default: return false;
    }
}

/* certainly */
static bool places_overlap(Env *env, const Expr *a, const Expr *b) {
    Path first = path_of(env->c, a), second = path_of(env->c, b);
    if (!same_root(vec_last(&first), vec_last(&second))) return false;
    for (int i = first.count - 2, k = second.count - 2; i >= 0 && k >= 0; i--, k--)
        if (!same_step(env, first.at[i], second.at[k])) return false;
    return true;
}

void check_aliases(Env *env, Expr *const *places, int count) {
    for (int i = 1; i < count; i++)
        for (int k = 0; k < i; k++) {
            if (!places_overlap(env, places[k], places[i])) continue;
            report(env->c, DIAG_aliased_arguments, places[i]->loc);
            note(env->c, DIAG_note_other_here, places[k]->loc);
            break;
        }
}
