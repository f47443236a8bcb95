/* Associated types of interface values: `o.D d = o.make(); o.run(d);`.
 *
 * The type D depends on what is in o. Wherever such a value goes back to a method, it must have come from the
 * same variable, which is what is followed here: a local variable of such a type remembers the variable that
 * its type was taken from. */
#include "check/checker.h"

/* The local variable or parameter that an expression names; NULL: something else. */
const Decl *variable_of(const Expr *e) {
    while (e->kind == EXPR_paren) e = e->a;
    bool names = e->kind == EXPR_decl && e->decl->kind == DECL_var && !e->a;
    return names ? e->decl : NULL;
}

bool is_associated(Checker *c, const Type *type) {
    return type && type->kind == TYPE_assoc && type->name != c->known.Differential &&
           type->args[0]->kind == TYPE_param;
}

/* The variable whose associated type the value has. */
const Decl *origin_of(const Expr *e) {
    while (e->kind == EXPR_paren) e = e->a;
    if (e->kind == EXPR_decl && !e->a) return e->decl->sema ? e->decl->sema->came_from : NULL;
    bool method = e->kind == EXPR_invoke && e->decl && e->decl->parent && e->a && e->a->type;
    if (!method || e->decl->parent->kind != DECL_interface || e->a->type->kind != TYPE_interface) return NULL;
    const Type *result = e->decl->sema && e->decl->sema->sig ? e->decl->sema->sig->result : NULL;
    return result && result->kind == TYPE_assoc ? variable_of(e->a) : NULL;
}

bool require_origin(Env *env, const Expr *e, const Decl *wanted) {
    if (e->kind == EXPR_error || e->kind == EXPR_default || (wanted && origin_of(e) == wanted)) return true;
    report_expr(env->c, e, DIAG_other_origin, wanted ? wanted->name->text : "the same variable");
    return false;
}

/* Is it an associated type of the value that the requirement is called on? */
static bool is_tied(Checker *c, const Type *type, const Subst *subst) {
    if (is_associated(c, type)) return true;
    const Type *given = type->kind == TYPE_param ? check_subst(c, type, subst) : type;
    return given->kind == TYPE_assoc && given->args[0]->kind == TYPE_interface &&
           given->name != c->known.Differential;
}

/* A generic function that opens one of its arguments: what is of its associated types must have come from
 * there. */
static bool require_opened(Env *env, const Decl *decl, const FuncSig *sig, const Subst *subst,
                           const ExprVec *args) {
    for (int i = 0; i < args->count && i < sig->nparams; i++) {
        const Type *param = sig->params[i].type;
        bool opened = param->kind == TYPE_param && param->decl == decl &&
                      check_subst(env->c, param, subst)->kind == TYPE_interface;
        for (int k = 0; k < args->count && k < sig->nparams && opened; k++) {
            const Type *type = sig->params[k].type;
            if (is_associated(env->c, type) && type->args[0] == param &&
                !require_origin(env, args->at[k], variable_of(args->at[i])))
                return false;
        }
    }
    return true;
}

/* Parameters of a requirement that is called on an interface value: what was its associated type must be so
 * still. */
bool require_origins(Env *env, const Decl *decl, const FuncSig *sig, const Subst *subst, Expr *object,
                     const ExprVec *args) {
    if (decl->generics && !(decl->flags & DECL_PRELUDE) && !require_opened(env, decl, sig, subst, args))
        return false;
    if (!decl->parent || decl->parent->kind != DECL_interface || !object || !object->type ||
        object->type->kind != TYPE_interface)
        return true;
    for (int i = 0; i < args->count && i < sig->nparams; i++)
        if (is_tied(env->c, sig->params[i].type, subst) &&
            !require_origin(env, args->at[i], variable_of(object)))
            return false;
    return true;
}

/* A differentiable method that gives an associated type which may have no derivative, in a function that is
 * differentiated. */
bool refuse_lost_associated(Env *env, Loc loc, const Decl *decl, const FuncSig *sig, const Expr *call) {
    Checker *c = env->c;
    const uint32_t differentiable = DECL_FWD | DECL_BWD;
    bool through_value = call->a && call->a->type && call->a->type->kind == TYPE_interface;
    if (!through_value || !(env->decl->flags & differentiable) || !(decl->flags & differentiable))
        return false;
    if (!is_associated(c, sig->result) || is_differentiable_type(c, call->type)) return false;
    bool carries = false;
    for (int i = 0; i < sig->nparams; i++)
        carries |= !sig->params[i].no_diff &&
                   is_differentiable_type(c, call->args.at[i] ? call->args.at[i]->type : sig->params[i].type);
    if (!carries) return false;
    const char *name = sig->result->name->text;
    report(c, DIAG_associated_not_diff, loc, decl->name ? decl->name->text : "[]", name);
    note(c, DIAG_note_bound_differentiable, ((const Decl *)sig->result->decl)->loc, name);
    return true;
}
