/* Effects: does a function change memory that others see? And does it read what has a derivative by a
 * function's own word, or by a reference, so that derivatives come out although none go in?
 *
 * Such memory is a buffer, what a pointer leads to, a global variable. It is changed by assignments, by
 * arguments for out and inout parameters, by the library's functions on buffers, and by functions that do one
 * of these. What is called by way of an interface is not known, and counts as harmless: this is for
 * warnings. */
#include "check/checker.h"

typedef struct Search {
    Checker *c;
    EffectKind kind;
    bool found;
} Search;

static bool is_shared_variable(const Decl *decl) {
    if (decl->kind != DECL_var) return false;
    return decl->flavour == VAR_global || (decl->modifiers & (MODIFIER_static | MODIFIER_groupshared));
}

static bool is_shared_place(const Expr *e) {
    switch ((ExprKind)e->kind) {
    case EXPR_deref: return true;
    case EXPR_element:
        if (e->a->type->kind == TYPE_buffer || e->a->type->kind == TYPE_pointer) return true;
        return is_shared_place(e->a);
    case EXPR_paren:
    case EXPR_convert:
    case EXPR_swizzle:
    case EXPR_part: return is_shared_place(e->a);
    case EXPR_decl: return e->a ? is_shared_place(e->a) : is_shared_variable(e->decl);
    default: return false;
    }
}

static void search_expr(Search *s, const Expr *e);

static bool is_written(uint8_t pass) { return pass == PASS_out || pass == PASS_inout || pass == PASS_ref; }

/* Of the library: it has no body that says what it does. */
static bool is_effect_itself(const Search *s, const Decl *callee, const Expr *object) {
    if (!(callee->flags & DECL_PRELUDE) || callee->body ||
        signature_of(s->c, (Decl *)callee)->result->kind != TYPE_void)
        return false;
    return s->kind == EFFECT_output || (object && object->type && object->type->kind == TYPE_buffer);
}

/* A requirement may be met by one. */
static bool is_source_itself(const Search *s, Decl *callee) {
    if (callee->flags & DECL_PRELUDE) return false;
    check_derivatives(s->c, callee);
    return callee->sema->bwd.decl ||
           ((callee->flags & DECL_REQUIREMENT) && check_is_differentiable(s->c, callee, DIFF_bwd));
}

/* An element of a tensor or buffer of the library. */
static bool reads_itself(const Search *s, Decl *callee) {
    const FuncSig *sig = signature_of(s->c, callee);
    bool reference =
        (callee->flags & DECL_PRELUDE) && sig->has_this && check_is_reference(s->c, sig->this_type, callee);
    return reference && check_is_diff_type(s->c, sig->result, callee) &&
           check_is_differentiable(s->c, callee, DIFF_bwd);
}

static bool has_it_itself(const Search *s, Decl *callee, const Expr *object) {
    switch (s->kind) {
    case EFFECT_source: return is_source_itself(s, callee);
    case EFFECT_reads: return reads_itself(s, callee);
    case EFFECT_memory:
    case EFFECT_output: return is_effect_itself(s, callee, object);
    case EFFECT_count: break;
    }
    return false;
}

static void search_callee(Search *s, Decl *callee, const Expr *object) {
    if (callee->kind != DECL_func) return;
    s->found |= has_it_itself(s, callee, object) || check_has_effect(s->c, callee, s->kind);
}

static bool is_of_reading(const Search *s) { return s->kind == EFFECT_source || s->kind == EFFECT_reads; }

static void search_call(Search *s, const Expr *e) {
    bool writes = !is_of_reading(s) && e->decl->kind == DECL_func;
    const FuncSig *sig = writes ? signature_of(s->c, e->decl) : NULL;
    for (int i = 0; sig && i < e->args.count; i++) {
        int param = sig_param_of(sig, e->args.count, i);
        if (e->args.at[i] && param < sig->nparams && is_written(sig->params[param].pass))
            s->found |= is_shared_place(e->args.at[i]);
    }
    if (sig && sig->has_this && e->a && is_written(sig->this_pass)) s->found |= is_shared_place(e->a);
    search_callee(s, e->decl, e->a);
}

static void search_accessor(Search *s, const Expr *e, FuncFlavour flavour) {
    for (int i = 0; e->kind == EXPR_decl && i < e->decl->members.count; i++)
        if (e->decl->members.at[i]->kind == DECL_func && e->decl->members.at[i]->flavour == flavour)
            search_callee(s, e->decl->members.at[i], e->a);
}

/* A place that is a property or subscript is set by a function. */
static void search_written(Search *s, const Expr *place) {
    s->found |= is_shared_place(place);
    while (place->kind == EXPR_paren || place->kind == EXPR_swizzle) place = place->a;
    search_accessor(s, place, FUNC_set);
}

static void search_expr(Search *s, const Expr *e) {
    if (!e || s->found) return;
    if (e->kind == EXPR_invoke && e->decl) search_call(s, e);
    if (is_of_reading(s)) search_accessor(s, e, FUNC_get);
    else if (e->kind == EXPR_assign || e->kind == EXPR_update) search_written(s, e->a);
    search_expr(s, e->a);
    search_expr(s, e->b);
    search_expr(s, e->c);
    for (int i = 0; i < e->args.count; i++) search_expr(s, e->args.at[i]);
}

static void search_stmt(Search *s, const Stmt *stmt) {
    if (!stmt || s->found) return;
    search_expr(s, stmt->expr);
    search_expr(s, stmt->step);
    search_stmt(s, stmt->init);
    search_stmt(s, stmt->then);
    search_stmt(s, stmt->other);
    for (int i = 0; i < stmt->body.count; i++) search_stmt(s, stmt->body.at[i]);
    for (int i = 0; i < stmt->decls.count; i++) search_expr(s, stmt->decls.at[i]->init);
}

bool check_has_effect(Checker *c, Decl *func, EffectKind kind) {
    Map *known = &c->effects[kind];
    if (map_has(known, PTR_KEY(func))) return map_get(known, PTR_KEY(func)) != NULL;
    map_put(c->arena, known, PTR_KEY(func), NULL); /* as long as it is looked at: it calls itself */
    check_decl_body(c, func);
    Search s = {.c = c, .kind = kind};
    if (!(func->flags & DECL_BODY_ERRORS)) search_stmt(&s, func->body);
    if (s.found) map_put(c->arena, known, PTR_KEY(func), func);
    return s.found;
}
