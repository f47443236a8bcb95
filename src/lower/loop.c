/* Loops. What leaves them where a round begins or ends is their condition, so that they are seen to count:
 *
 *     for (;;) { if (i >= n) break; ... }          while (!(i >= n)) { ... }
 *     for (;;) { if (i < n) ...; else break; }     while (i < n) ...;
 *     for (;;) { if (i >= n) return s; ... }       while (!(i >= n)) { ... } return s;     if there is no other way behind it
 *     while (true) { ... if (i >= n) break; }      do { ... } while (!(i >= n)); */
#include "lower/lowerer.h"

enum { MOST_EXITS = 8 }; /* that become part of the condition, each inside the one before */

/* ---- attributes */

static int64_t attribute_number(Fn *f, const Attribute *attribute, int64_t none) {
    int64_t value;
    if (attribute->args.count == 0) return none;
    return expr_constant(f, attribute->args.at[0], &value) ? value : none;
}

static LoopHints hints_of(Fn *f, const Stmt *stmt) {
    LoopHints hints = {0};
    for (int i = 0; i < stmt->attributes.count; i++) {
        const Attribute *attribute = stmt->attributes.at[i];
        const char *name = attribute->name->text;
        if (strcmp(name, "MaxIters") == 0) hints.max_iters = attribute_number(f, attribute, 0);
        else if (strcmp(name, "ForceUnroll") == 0) hints.unroll = attribute_number(f, attribute, -1);
        else if (strcmp(name, "Checkpoint") == 0) hints.checkpoint = attribute_number(f, attribute, 0);
    }
    return hints;
}

/* ---- exits that are conditions */

/* if (...) break; with what is done instead, if anything. */
typedef struct Exit {
    Expr *condition;
    bool if_holds;
    Stmt *leaves, *rest;
} Exit;

/* How a loop goes on: while its condition holds, and none of those that its body begins with. */
typedef struct Going {
    Expr *condition; /* NULL: always */
    Exit exits[MOST_EXITS];
    int nexits;
    bool is_tested_inside; /* the condition, as what the body begins with */
} Going;

static Stmt *only_statement(Stmt *stmt) {
    while (stmt && stmt->kind == STMT_block && stmt->body.count == 1) stmt = stmt->body.at[0];
    return stmt;
}

static bool leaves(const Stmt *stmt, const Stmt *loop) {
    return stmt && (stmt->kind == STMT_return || (stmt->kind == STMT_break && stmt->target == loop));
}

static bool find_exit(const Stmt *stmt, const Stmt *loop, Exit *exit) {
    if (stmt->kind != STMT_if || stmt->body.count || stmt->decls.count || may_fail(stmt->expr)) return false;
    Stmt *then = only_statement(stmt->then), *other = only_statement(stmt->other);
    bool if_holds = leaves(then, loop);
    *exit = (Exit){.condition = stmt->expr,
                   .if_holds = if_holds,
                   .leaves = if_holds ? then : other,
                   .rest = if_holds ? stmt->other : stmt->then};
    return if_holds || leaves(other, loop);
}

/* if (...) break; */
static bool is_exit(const Stmt *stmt, const Stmt *loop) {
    Exit exit;
    return find_exit(stmt, loop, &exit) && exit.leaves->kind == STMT_break && !exit.rest;
}

static bool has_break(const Stmt *stmt, const Stmt *loop) {
    if (!stmt) return false;
    if (stmt->kind == STMT_break && stmt->target == loop) return true;
    for (int i = 0; i < stmt->body.count; i++)
        if (has_break(stmt->body.at[i], loop)) return true;
    return has_break(stmt->then, loop) || has_break(stmt->other, loop);
}

static bool has_no_condition(Fn *f, const Stmt *loop) {
    int64_t value;
    return !loop->expr || (expr_constant(f, loop->expr, &value) && value);
}

/* One that returns must be the only way behind the loop. What is done instead of leaving may leave, too. */
static void find_exits(Fn *f, const Stmt *loop, Going *going) {
    const Stmt *body = loop->then;
    bool may_return = has_no_condition(f, loop) && !has_break(body, loop), goes_on = true;
    while (goes_on && going->nexits < MOST_EXITS && going->nexits < body->body.count) {
        Exit *exit = &going->exits[going->nexits];
        if (!find_exit(body->body.at[going->nexits], loop, exit)) return;
        bool is_return = exit->leaves->kind == STMT_return;
        if (is_return && !may_return) return;
        going->nexits++;
        goes_on = !is_return && !exit->rest;
    }
}

static Going find_going(Fn *f, const Stmt *loop) {
    const Stmt *body = loop->then;
    Going going = {.condition = loop->kind == STMT_do ? NULL : loop->expr};
    going.is_tested_inside = going.condition && may_fail(going.condition);
    if (going.is_tested_inside) going.condition = NULL;
    bool may_exit = loop->kind != STMT_do && !going.is_tested_inside && body && body->kind == STMT_block;
    if (may_exit) find_exits(f, loop, &going);
    return going;
}

/* What is left of the body. */
static Stmt *without_exits(Fn *f, Stmt *body, const Going *going) {
    int nexits = going->nexits;
    if (nexits == 0) return body;
    Stmt *rest = arena_copy(f->l->arena, body, sizeof *body), *instead = going->exits[nexits - 1].rest;
    rest->body = (StmtVec){0};
    if (instead) vec_push(f->l->arena, &rest->body, instead);
    for (int i = nexits; i < body->body.count; i++) vec_push(f->l->arena, &rest->body, body->body.at[i]);
    return rest;
}

/* What stands behind the loop instead of at the beginning of its rounds; NULL: nothing. */
static Stmt *returned_by(const Going *going) {
    Stmt *last = going->nexits ? going->exits[going->nexits - 1].leaves : NULL;
    return last && last->kind == STMT_return ? last : NULL;
}

static bool is_endless(Fn *f, const Stmt *loop) { return !loop->step && has_no_condition(f, loop); }

/* The exit that a loop ends its rounds with if nothing else decides there; NULL: none. */
static const Stmt *find_last(Fn *f, const Stmt *loop, const Going *going) {
    const Stmt *body = loop->then;
    bool may_exit =
        body && body->kind == STMT_block && body->body.count > going->nexits && is_endless(f, loop);
    const Stmt *last = may_exit ? vec_last(&body->body) : NULL;
    return last && is_exit(last, loop) ? last : NULL;
}

static Val *lower_not(Fn *f, Expr *e) { return build_unary(&f->b, OP_not, lower_condition(f, e)); }

bool loop_ends_with(Fn *f, Stmt *stmt) {
    if (!f->targets || f->targets->last != stmt) return false;
    build_store(&f->b, f->targets->go, lower_not(f, stmt->expr));
    return true;
}

static Val *lower_going_on(Fn *f, const Exit *exit) {
    return exit->if_holds ? lower_not(f, exit->condition) : lower_condition(f, exit->condition);
}

/* ---- its regions */

static void begin_region(Fn *f, Region *region) {
    Loc loc = f->b.loc;
    f->b = build_at_end(region);
    f->b.loc = loc;
}

/* Whether the loop goes on, as far as its exits from `at` on decide. */
static Val *lower_exits(Fn *f, const Going *going, int at, Val *before) {
    const Type *flag = type_basic(f->l->types, TYPE_bool);
    int64_t known;
    if (at == going->nexits || (val_is_int(before, &known) && !known)) return before;
    if (val_is_int(before, &known))
        return lower_exits(f, going, at + 1, lower_going_on(f, &going->exits[at]));
    Inst *inst = build_if(&f->b, before, &flag, 1);
    Builder outer = f->b;
    begin_region(f, inst->regions[0]);
    Val *rest = lower_exits(f, going, at + 1, lower_going_on(f, &going->exits[at]));
    build_yield(&f->b, &rest, 1);
    begin_region(f, inst->regions[1]);
    Val *leaves = const_int(f, TYPE_bool, 0);
    build_yield(&f->b, &leaves, 1);
    f->b = outer;
    return inst_result(inst);
}

static void fill_condition(Fn *f, Region *region, const Going *going, Val *go) {
    Builder outer = f->b;
    begin_region(f, region);
    Val *value = go                 ? build_load(&f->b, go)
                 : going->condition ? lower_condition(f, going->condition)
                                    : const_int(f, TYPE_bool, 1);
    value = lower_exits(f, going, 0, value);
    build_yield(&f->b, &value, 1);
    f->b = outer;
}

/* The condition of a loop as its first statement: `if (!condition) break;`. What may fail in it leaves it
 * like any other. */
static Stmt *with_condition(Fn *f, Stmt *stmt) {
    Stmt *test = stmt_new(f->l->arena, STMT_if, stmt->expr->loc),
         *leave = stmt_new(f->l->arena, STMT_break, stmt->loc);
    Stmt *nothing = stmt_new(f->l->arena, STMT_empty, stmt->loc),
         *body = stmt_new(f->l->arena, STMT_block, stmt->loc);
    leave->target = stmt;
    test->expr = stmt->expr;
    test->then = nothing;
    test->other = leave;
    vec_push(f->l->arena, &body->body, test);
    vec_push(f->l->arena, &body->body, stmt->then);
    return body;
}

static void fill_step(Fn *f, Region *region, Stmt *stmt, Val *go) {
    Builder outer = f->b;
    begin_region(f, region);
    if (stmt->step) lower_effect(f, stmt->step);
    if (go) build_store(&f->b, go, lower_condition(f, stmt->expr));
    build_yield(&f->b, NULL, 0);
    f->b = outer;
}

static Val *build_going(Fn *f) {
    Val *go = build_var(&f->b, type_basic(f->l->types, TYPE_bool), name_from(f->l->m->names, "go"), true);
    build_store(&f->b, go, const_int(f, TYPE_bool, 1));
    return go;
}

void lower_loop(Fn *f, Stmt *stmt) {
    if (stmt->init) lower_stmt(f, stmt->init);
    f->b.loc = stmt->loc;
    Going going = find_going(f, stmt);
    const Stmt *last = find_last(f, stmt, &going);
    Val *go = stmt->kind == STMT_do || last ? build_going(f) : NULL;
    Inst *loop = build_loop(&f->b, NULL, 0, true);
    loop->hints = hints_of(f, stmt);
    fill_condition(f, loop->regions[0], &going, go);
    Target target = {
        .outer = f->targets, .stmt = stmt, .inst = loop, .defers = f->defers, .last = last, .go = go};
    f->targets = &target;
    lower_region(f, loop->regions[1],
                 going.is_tested_inside ? with_condition(f, stmt) : without_exits(f, stmt->then, &going));
    f->targets = target.outer;
    fill_step(f, loop->regions[2], stmt, last ? NULL : go);
    if (returned_by(&going)) lower_stmt(f, returned_by(&going));
}

/* $for: one copy of the body per number. */
void lower_static_for(Fn *f, Stmt *stmt) {
    int64_t first = 0, end = 0;
    if ((stmt->expr && !expr_constant(f, stmt->expr, &first)) || !expr_constant(f, stmt->step, &end)) {
        lower_report(f, DIAG_not_constant, stmt->loc);
        return;
    }
    if (end - first > 4096) {
        lower_report(f, DIAG_static_for_long, stmt->loc, (int)(end - first));
        return;
    }
    Inst *outside = build_block(&f->b);
    Builder outer = f->b;
    f->b = build_at_end(outside->regions[0]);
    Target target = {.outer = f->targets, .stmt = stmt, .inst = outside, .defers = f->defers};
    f->targets = &target;
    for (int64_t i = first; i < end && !f->dead; i++) {
        bind_local(f, stmt->decls.at[0], (Local){.value = const_int(f, TYPE_int, i)});
        Inst *inside = build_block(&f->b); /* what continue leaves */
        target.step = inside;
        lower_region(f, inside->regions[0], stmt->then);
    }
    build_yield(&f->b, NULL, 0);
    f->targets = target.outer;
    f->b = outer;
}
