/* Effects: does a function change memory that others see?
 *
 * Such memory is a buffer, what a pointer leads to, a global variable. It is changed by assignments, by arguments for out and inout
 * parameters, by the library's functions on buffers, and by functions that do one of these. What is called by way of an interface
 * is not known, and counts as harmless: this is for warnings. */
#include "check/checker.h"

typedef struct Search {
    Checker *c;
    bool prints; /* output counts as well */
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
    return s->prints || (object && object->type && object->type->kind == TYPE_buffer);
}

static void search_callee(Search *s, Decl *callee, const Expr *object) {
    if (callee->kind != DECL_func) return;
    s->found |= is_effect_itself(s, callee, object) ||
                (s->prints ? check_has_effects(s->c, callee) : check_writes_memory(s->c, callee));
}

static void search_call(Search *s, const Expr *e) {
    const FuncSig *sig = e->decl->kind == DECL_func ? signature_of(s->c, e->decl) : NULL;
    for (int i = 0; sig && i < e->args.count; i++) {
        int param = sig_param_of(sig, e->args.count, i);
        if (e->args.at[i] && param < sig->nparams && is_written(sig->params[param].pass))
            s->found |= is_shared_place(e->args.at[i]);
    }
    if (sig && sig->has_this && e->a && is_written(sig->this_pass)) s->found |= is_shared_place(e->a);
    search_callee(s, e->decl, e->a);
}

/* A place that is a property or subscript is set by a function. */
static void search_written(Search *s, const Expr *place) {
    s->found |= is_shared_place(place);
    while (place->kind == EXPR_paren || place->kind == EXPR_swizzle) place = place->a;
    for (int i = 0; place->kind == EXPR_decl && i < place->decl->members.count; i++)
        if (place->decl->members.at[i]->kind == DECL_func && place->decl->members.at[i]->flavour == FUNC_set)
            search_callee(s, place->decl->members.at[i], place->a);
}

static void search_expr(Search *s, const Expr *e) {
    if (!e || s->found) return;
    if (e->kind == EXPR_invoke && e->decl) search_call(s, e);
    if (e->kind == EXPR_assign || e->kind == EXPR_update) search_written(s, e->a);
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

static bool search(Checker *c, Decl *func, bool prints) {
    Map *known = &c->effects[prints];
    if (map_has(known, PTR_KEY(func))) return map_get(known, PTR_KEY(func)) != NULL;
    map_put(c->arena, known, PTR_KEY(func), NULL); /* as long as it is looked at: it calls itself */
    check_decl_body(c, func);
    Search s = {.c = c, .prints = prints};
    if (!(func->flags & DECL_BODY_ERRORS)) search_stmt(&s, func->body);
    if (s.found) map_put(c->arena, known, PTR_KEY(func), func);
    return s.found;
}

bool check_writes_memory(Checker *c, Decl *func) { return search(c, func, false); }

bool check_has_effects(Checker *c, Decl *func) { return search(c, func, true); }
