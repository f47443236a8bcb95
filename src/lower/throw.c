/* Errors. A function that throws has a parameter for its error (check/throw.c); to throw is to fill it and to
 * return. After each call that may fail stands an `if`, which leaves for the handler as `break` would, or
 * returns. A block with handlers notes in a variable which of them goes on. What is left for the stages
 * behind is early exits, which they know. */
#include "lower/lowerer.h"

static Local *own_error(Fn *f) {
    const Decl *decl = f->request->decl;
    if (!decl || decl->kind != DECL_func || !decl->throws) return NULL;
    return find_local(f, vec_last(&decl->params));
}

void begin_error(Fn *f) {
    const Local *error = own_error(f);
    if (error) store_default(f, concrete(f, vec_last(&f->request->decl->params)->type), error->address);
}

/* ---- leaving */

static void copy_error(Fn *f, Val *to, Val *from, const Type *type) {
    if (is_simple(lower_type(f->l, type))) build_store(&f->b, to, build_load(&f->b, from));
    else copy_object(f, to, from, false);
}

static void fill_optional(Fn *f, Val *optional, Val *from, const Type *type) {
    copy_error(f, build_field(&f->b, optional, 0), from, type);
    build_store(&f->b, build_field(&f->b, optional, 1), const_int(f, TYPE_bool, 1));
}

/* The halves of a pair. */
static const Type *half_of(Fn *f, const Type *pair, int half) {
    return half ? concrete(f, check_differential(f->l->c, pair->args[0])) : pair->args[0];
}

/* Out of the function: what it returns then does not matter, but is something. */
static void leave_function(Fn *f, Val *from, const Type *type) {
    Val *error = own_error(f)->address;
    bool is_pair = type->kind == TYPE_pair;
    for (int half = 0; half < 2 && is_pair; half++) {
        Val *to_part = build_field(&f->b, error, half);
        Val *from_part = build_field(&f->b, from, half);
        fill_optional(f, to_part, from_part, half_of(f, type, half));
    }
    if (!is_pair) fill_optional(f, error, from, type);
    run_defers(f, NULL);
    if (f->result && !f->sig->is_init) store_default(f, f->sig->result, f->result);
    Val *zero = f->func->nresults ? ir_const_zero(f->l->m, f->func->results[0]) : NULL;
    build_return(&f->b, &zero, zero ? 1 : 0);
}

static int handler_number(const Stmt *guard, const Stmt *handler) {
    int i = 0;
    while (guard->body.at[i] != handler) i++;
    return i + 1;
}

static void leave_for(Fn *f, const Stmt *guard, const Stmt *handler, Val *from, const Type *type) {
    if (!guard) leave_function(f, from, type);
    else {
        Target *target = find_target(f, guard);
        if (handler->decls.count) copy_error(f, find_local(f, handler->decls.at[0])->address, from, type);
        build_store(&f->b, target->which, const_int(f, TYPE_int, handler_number(guard, handler)));
        run_defers(f, target->defers);
        build_break(&f->b, target->inst, NULL, 0);
    }
    f->dead = true;
}

void lower_throw(Fn *f, Stmt *stmt) {
    const Type *type = concrete(f, stmt->expr->type);
    Val *error = temp_var(f, type, "error");
    if (is_simple(lower_type(f->l, type))) build_store(&f->b, error, lower_value(f, stmt->expr));
    else lower_into(f, stmt->expr, error);
    leave_for(f, stmt->target, stmt->other, error, type);
}

/* ---- try */

bool may_fail(const Expr *e) {
    if (!e) return false;
    if (e->kind == EXPR_try) return true;
    if (e->kind == EXPR_lambda || may_fail(e->a) || may_fail(e->b) || may_fail(e->c))
        return e->kind != EXPR_lambda;
    for (int i = 0; i < e->args.count; i++)
        if (may_fail(e->args.at[i])) return true;
    return false;
}

static bool takes_pair(const Fn *f, const Expr *e) {
    const Type *own = e->guard ? NULL : vec_last(&f->request->decl->params)->type;
    if (!e->guard) return own->kind == TYPE_pair;
    return e->handler->decls.count > 0 && e->handler->decls.at[0]->type->kind == TYPE_pair;
}

/* In the branch that is taken after an error, which is in the optional, or the pair of them. */
static void leave_branch(Fn *f, Region *region, const Expr *e, Val *error, const Type *type) {
    Builder outer = f->b;
    f->b = build_at_end(region);
    f->b.loc = outer.loc;
    if (type->kind == TYPE_pair && takes_pair(f, e)) {
        const Type *thrown = type_wrap(f->l->types, TYPE_pair, type->args[0]->args[0]);
        Val *pair = temp_var(f, thrown, "error");
        for (int half = 0; half < 2; half++) {
            Val *to_part = build_field(&f->b, pair, half);
            Val *from_part = build_field(&f->b, build_field(&f->b, error, half), 0);
            copy_error(f, to_part, from_part, half_of(f, thrown, half));
        }
        leave_for(f, e->guard, e->handler, pair, thrown);
    } else {
        if (type->kind == TYPE_pair) error = build_field(&f->b, error, 0), type = type->args[0];
        leave_for(f, e->guard, e->handler, build_field(&f->b, error, 0), type->args[0]);
    }
    f->dead = false;
    f->b = outer;
}

Val *lower_try(Fn *f, Expr *e, Val *into) {
    const Type *type = concrete(f, e->decl->type), *result = concrete(f, e->type);
    Val *error = temp_var(f, type, "error"), *value = NULL;
    store_default(f, type, error);
    bind_local(f, e->decl, (Local){.address = error});
    if (into) lower_into(f, e->a, into);
    else if (result->kind == TYPE_void) lower_effect(f, e->a);
    else value = lower_value(f, e->a);
    Val *primal = type->kind == TYPE_pair ? build_field(&f->b, error, 0) : error;
    Inst *inst = build_if(&f->b, build_load(&f->b, build_field(&f->b, primal, 1)), NULL, 0);
    leave_branch(f, inst->regions[0], e, error, type);
    Builder passed = build_at_end(inst->regions[1]);
    build_yield(&passed, NULL, 0);
    return value;
}

/* ---- do ... catch */

static void declare_errors(Fn *f, const Stmt *stmt) {
    for (int i = 0; i < stmt->body.count; i++) {
        if (stmt->body.at[i]->decls.count == 0) continue;
        Decl *decl = stmt->body.at[i]->decls.at[0];
        const Type *type = concrete(f, decl->type);
        Val *address = temp_var(f, type, "caught");
        store_default(f, type, address);
        bind_local(f, decl, (Local){.address = address});
    }
}

/* Handlers in order, each if its number was noted; behind the last, what comes after the block. */
static void lower_handlers(Fn *f, const Stmt *stmt, int at, Val *which, bool block_leaves) {
    if (at == stmt->body.count) {
        if (block_leaves) build_unreachable(&f->b), f->dead = true;
        return;
    }
    Val *here = build_binary(&f->b, OP_eq, which, const_int(f, TYPE_int, at + 1));
    Inst *inst = build_if(&f->b, here, NULL, 0);
    lower_region(f, inst->regions[0], stmt->body.at[at]->then);
    Builder outer = f->b;
    f->b = build_at_end(inst->regions[1]);
    f->b.loc = outer.loc;
    lower_handlers(f, stmt, at + 1, which, block_leaves);
    if (!f->dead) build_yield(&f->b, NULL, 0);
    f->dead = false;
    f->b = outer;
    after_if(f, inst);
}

void lower_try_block(Fn *f, Stmt *stmt) {
    Val *which =
        build_var(&f->b, type_basic(f->l->types, TYPE_int), name_from(f->l->m->names, "handler"), true);
    build_store(&f->b, which, const_int(f, TYPE_int, 0));
    declare_errors(f, stmt);
    Inst *block = build_block(&f->b);
    Target target = {.outer = f->targets, .stmt = stmt, .inst = block, .defers = f->defers, .which = which};
    f->targets = &target;
    lower_region(f, block->regions[0], stmt->then);
    f->targets = target.outer;
    const Inst *last = block->regions[0]->last;
    bool leaves = last && last->op != OP_yield;
    lower_handlers(f, stmt, 0, build_load(&f->b, which), leaves);
}
