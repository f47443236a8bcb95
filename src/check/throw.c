/* Errors: throws, throw, try, do ... catch.
 *
 * A function that throws E has one more parameter, `out Optional<E>`, which no source writes: none where it
 * returns, and the error where it does not. So whatever is said about parameters (overloading, generics,
 * conformance, derivatives) holds for errors as well. `try f(x)` hands over a variable of its own and looks
 * at it after the call; where an error goes is known here: to a handler in the same function, or out of it.
 *
 * Of a forward derivative that parameter is a pair of optionals: the error and its derivative. What is
 * written for it throws a pair. Where a derivative that is made fails, the pair is thrown if someone asks for
 * it, and else the error. */
#include "check/checker.h"

/* ---- the parameter and the variable */

const Type *error_param_type(Env *env, Expr *throws) {
    Types *types = env->c->types;
    const Type *error = resolve_type(env, throws);
    if (has_error(error)) return error;
    if (error->kind != TYPE_pair) return type_wrap(types, TYPE_optional, error);
    return type_wrap(types, TYPE_pair, type_wrap(types, TYPE_optional, error->args[0]));
}

const Type *thrown_type(Checker *c, const Type *param) {
    if (param->kind == TYPE_optional) return param->args[0];
    return param->kind == TYPE_pair ? type_wrap(c->types, TYPE_pair, param->args[0]->args[0]) : param;
}

void add_error_param(Checker *c, Env *env, Decl *func) {
    Decl *param = decl_new(c->arena, DECL_var, func->throws->loc, name_from(c->names, "__error"));
    param->flavour = VAR_param;
    param->parent = func;
    param->modifiers = MODIFIER_out | MODIFIER_synthesized;
    param->type = error_param_type(env, func->throws);
    param->state = STATE_header;
    vec_push(c->arena, &func->params, param);
}

Expr *error_variable(Env *env, Loc loc, const Type *type) {
    Checker *c = env->c;
    Decl *decl = hidden_variable(env, loc, name_from(c->names, "__error"), type);
    decl->flags |= DECL_ASSIGNED;
    Expr *e = decl_expr(c, loc, decl, NULL, NULL);
    e->flags |= EXPR_PLACE;
    return e;
}

/* ---- where an error goes */

static bool takes(const Stmt *handler, const Type *type) {
    return handler->decls.count == 0 || handler->decls.at[0]->type == type;
}

static bool find_handler(Env *env, const Type *type, Stmt **guard, Stmt **handler) {
    for (TryList *t = env->tries; t; t = t->outer)
        for (int i = 0; i < t->stmt->body.count; i++) {
            if (!takes(t->stmt->body.at[i], type)) continue;
            *guard = t->stmt;
            *handler = t->stmt->body.at[i];
            return true;
        }
    return false;
}

/* The type of what the function around throws; NULL: it does not. */
static const Type *own_error(const Env *env) {
    if (!env->sig || env->lambda || !sig_throws(env->sig)) return NULL;
    return thrown_type(env->c, env->sig->params[env->sig->nparams - 1].type);
}

static bool find_way(Env *env, Loc loc, const Type *type, Stmt **guard, Stmt **handler) {
    Checker *c = env->c;
    if (has_error(type) || find_handler(env, type, guard, handler)) return true;
    if (env->in_defer) {
        report(c, DIAG_defer_jump, loc, "throw");
        return false;
    }
    if (own_error(env) == type) return true;
    report(c, DIAG_error_uncaught, loc, type_str(c, type));
    note(c, DIAG_note_catch_or_throws, 0, type_str(c, type), type_str(c, type));
    return false;
}

/* Is the error asked for with its derivative? */
static bool takes_pair(const Env *env, const Type *pair) {
    for (TryList *t = env->tries; t; t = t->outer)
        for (int i = 0; i < t->stmt->body.count; i++) {
            const Stmt *handler = t->stmt->body.at[i];
            if (takes(handler, pair)) return handler->decls.count > 0;
            if (takes(handler, pair->args[0])) return false;
        }
    return own_error(env) == pair;
}

/* ---- try */

Expr *untried(Env *env, Expr *e) {
    Checker *c = env->c;
    e->flags &= ~(uint32_t)EXPR_THROWS;
    const char *name = e->decl->name ? e->decl->name->text : "?";
    report_expr(c, e, DIAG_needs_try, name);
    if (env->tried && env->tried->kind != EXPR_call) note(c, DIAG_note_try_covers, 0, name);
    return error_expr(c, e->loc);
}

Expr *check_try(Env *env, Expr *e) {
    Checker *c = env->c;
    const Expr *outer = env->tried;
    env->tried = e->a;
    Expr *call = check_term(env, e->a);
    env->tried = outer;
    if (call->kind == EXPR_error) return call;
    if (call->kind != EXPR_invoke || !(call->flags & EXPR_THROWS)) {
        report_expr(c, e, DIAG_try_needless);
        return error_expr(c, e->loc);
    }
    call->flags &= ~(uint32_t)EXPR_THROWS;
    e->a = call;
    e->decl = call->c->decl;
    e->type = call->type;
    e->guard = e->handler = NULL;
    const Type *error = thrown_type(c, e->decl->type);
    if (call->nmodes && error->kind == TYPE_pair && !takes_pair(env, error)) error = error->args[0];
    return find_way(env, e->loc, error, &e->guard, &e->handler) ? e : error_expr(c, e->loc);
}

/* ---- statements */

void check_throw(Env *env, Stmt *stmt) {
    stmt->expr = check_value(env, stmt->expr);
    if (stmt->expr->kind == EXPR_error) return;
    const Type *own = own_error(env);
    Stmt *guard = NULL, *handler = NULL;
    bool own_fits = own && own != stmt->expr->type && conversion_cost(env, stmt->expr, own) >= 0;
    if (own_fits && !find_handler(env, stmt->expr->type, &guard, &handler))
        stmt->expr = coerce(env, stmt->expr, own);
    if (find_way(env, stmt->loc, stmt->expr->type, &guard, &handler)) {
        stmt->target = guard;
        stmt->other = handler;
    }
}

static void declare_error(Env *env, Stmt *handler) {
    Checker *c = env->c;
    if (handler->decls.count == 0) return;
    Decl *decl = handler->decls.at[0];
    decl->parent = env->decl;
    decl->type = decl->type_expr ? resolve_type(env, decl->type_expr) : ERROR_TYPE(c);
    decl->state = STATE_body;
    if (!decl->type_expr) report(c, DIAG_catch_type, decl->loc);
}

static void check_order(Env *env, const Stmt *stmt) {
    for (int i = 1; i < stmt->body.count; i++)
        for (int k = 0; k < i; k++) {
            const Stmt *late = stmt->body.at[i], *early = stmt->body.at[k];
            const Type *type = late->decls.count ? late->decls.at[0]->type : NULL;
            if ((type && has_error(type)) || !takes(early, type)) continue;
            report(env->c, DIAG_catch_after_all, late->loc);
            break;
        }
}

void check_try_block(Env *env, Stmt *stmt) {
    for (int i = 0; i < stmt->body.count; i++) declare_error(env, stmt->body.at[i]);
    check_order(env, stmt);
    TryList here = {env->tries, stmt};
    env->tries = &here;
    check_stmt(env, stmt->then);
    env->tries = here.outer;
    for (int i = 0; i < stmt->body.count; i++) {
        Stmt *handler = stmt->body.at[i];
        Scope *outer = env->scope;
        env->scope = scope_new(env->c, outer, NULL);
        if (handler->decls.count) scope_add(env->c, env->scope, handler->decls.at[0]);
        check_stmt(env, handler->then);
        env->scope = outer;
    }
}
