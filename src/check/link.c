/* Linking: `extern` declares what another module defines and marks `export`; a default may stand for it until
 * then.
 *
 *   extern struct Model : IModel = Plain;    export struct Model : IModel = Deep;
 *   extern static const int count = 4;       export static const int count = 8;
 *   extern float f(float x);                 export float f(float x) { ... }
 *
 * All of it happens before anything is checked: an extern type becomes another name for the exported one, an
 * extern constant has its value, an extern function calls it. Afterwards nobody needs to know. */
#include "check/checker.h"

/* ---- finding */

static bool fits(const Decl *declared, const Decl *exported) {
    switch ((DeclKind)declared->kind) {
    case DECL_alias: return decl_is_type(exported);
    default: return exported->kind == declared->kind;
    }
}

static Name space_of(const Decl *decl) {
    return decl->parent && decl->parent->kind == DECL_namespace ? decl->parent->name : NULL;
}

static void find_exports(const Decl *space, const Decl *declared, Decl **found, int *count) {
    for (int i = 0; i < space->members.count; i++) {
        Decl *member = space->members.at[i];
        if (member->kind == DECL_namespace) find_exports(member, declared, found, count);
        bool same = (member->modifiers & MODIFIER_export) && member->name == declared->name &&
                    space_of(member) == space_of(declared);
        if (!same || (declared->kind == DECL_func && member->params.count != declared->params.count))
            continue;
        *found = member;
        ++*count;
    }
}

static Decl *find_export(Checker *c, const Decl *declared) {
    Decl *found = NULL;
    int count = 0;
    for (int i = 0; i < c->modules.count; i++)
        if (c->modules.at[i] != c->prelude) find_exports(c->modules.at[i], declared, &found, &count);
    if (count > 1) {
        report(c, DIAG_exported_twice, found->loc, found->name->text);
        note(c, DIAG_note_declared_here, declared->loc, declared->name->text);
    } else if (count == 1 && !fits(declared, found)) {
        report(c, DIAG_export_kind, found->loc, found->name->text);
        note(c, DIAG_note_declared_here, declared->loc, declared->name->text);
        return NULL;
    }
    return found;
}

/* ---- connecting */

/* { return exported(a, b); } */
static void call_exported(Checker *c, Decl *func, Decl *exported) {
    Expr *callee = expr_new(c->arena, EXPR_overload, func->loc),
         *call = expr_new(c->arena, EXPR_call, func->loc);
    callee->name = exported->name;
    callee->decl = exported;
    callee->candidates = arena_new(c->arena, Candidates);
    callee->candidates->name = exported->name;
    candidates_add(c, callee->candidates, (Candidate){.decl = exported});
    callee->flags = EXPR_CHECKED;
    call->a = callee;
    for (int i = 0; i < func->params.count; i++) {
        Expr *arg = expr_new(c->arena, EXPR_name, func->loc);
        arg->name = func->params.at[i]->name;
        vec_push(c->arena, &call->args, arg);
    }
    Stmt *body = stmt_new(c->arena, STMT_block, func->loc),
         *leave = stmt_new(c->arena, STMT_return, func->loc);
    leave->expr = call;
    vec_push(c->arena, &body->body, leave);
    func->body = body;
    func->lazy = (TokenRange){0};
}

static void name_parameters(Checker *c, Decl *func) {
    for (int i = 0; i < func->params.count; i++)
        if (!func->params.at[i]->name)
            func->params.at[i]->name = name_from(c->names, format_text(c->arena, "__p%d", i));
}

static void connect(Checker *c, Decl *declared, Decl *exported) {
    Expr *reference = expr_new(c->arena, EXPR_name, declared->loc);
    reference->name = exported->name;
    reference->decl = exported;
    switch ((DeclKind)declared->kind) {
    case DECL_alias: declared->type_expr = reference; break;
    case DECL_var: declared->init = decl_expr(c, declared->loc, exported, NULL, NULL); break;
    case DECL_func:
        name_parameters(c, declared);
        call_exported(c, declared, exported);
        break;
    default: break;
    }
}

static void undefined(Checker *c, Decl *declared) {
    report(c, DIAG_extern_undefined, declared->loc, declared->name->text);
    note(c, DIAG_note_link, 0, declared->name->text);
    if (declared->kind == DECL_var) declared->init = error_expr(c, declared->loc);
}

/* A function without a definition is told where it is called. */
static void link_extern(Checker *c, Decl *decl) {
    if (decl->kind == DECL_var && (decl->modifiers & MODIFIER_const)) decl->modifiers |= MODIFIER_static;
    bool constant = decl->kind == DECL_var && (decl->modifiers & MODIFIER_const);
    if (decl->kind != DECL_alias && decl->kind != DECL_func && !constant) return;
    Decl *exported = find_export(c, decl);
    if (exported) connect(c, decl, exported);
    else if ((decl->kind == DECL_alias && !decl->type_expr) || (constant && !decl->init)) undefined(c, decl);
}

static void link_members(Checker *c, Decl *space) {
    for (int i = 0; i < space->members.count; i++) {
        Decl *member = space->members.at[i];
        if (member->kind == DECL_namespace) link_members(c, member);
        else if ((member->modifiers & MODIFIER_extern) && member->name) link_extern(c, member);
    }
}

void link_externs(Checker *c) {
    for (int i = 0; i < c->modules.count; i++)
        if (c->modules.at[i] != c->prelude) link_members(c, c->modules.at[i]);
}
