/* Variables that are read though nothing can have written them, and `out` parameters that are left unwritten.
 *
 * A walk over the checked body that keeps, for the place it is at, the set of variables that some path from
 * the start may have written. A read of a variable that is not in the set is certainly a mistake, whatever
 * the run: only those are reported, once per variable. Where paths join the sets join; a place that cannot be
 * reached has no paths. A loop is gone through once: what is written anywhere in it may have been written
 * when an iteration starts.
 *
 * A variable that one branch of an `if` writes and the other does not is unsure after it. Often that is
 * meant, and a flag or an early exit tells the two apart; so a read counts only in the block of the
 * declaration itself, and any exit in between makes all sure again. So is one that some cases of a `switch`
 * write and others do not; where there is no `default`, no case at all is one more, unless the cases are
 * those of an enum.
 *
 * Writing any part of a variable counts as writing it, and so does taking its address. */
#include "check/checker.h"

typedef struct Paths {
    bool reached;
    uint64_t *written; /* a bit per variable; NULL: none */
    uint64_t *unsure;  /* likewise: written in one branch only */
} Paths;

typedef struct Jump { /* where break and continue go */
    struct Jump *outer;
    const Stmt *stmt;
    Paths after;
    uint64_t *always; /* what every path that got there has written; NULL: there is none yet */
} Jump;

typedef struct Walk {
    Checker *c;
    const Decl *func;
    Map variables; /* Decl -> index + 1 */
    DeclVec outs;
    int words;
    Paths now;
    Jump *jumps;
    bool gathering; /* only looking for what a loop writes */
    int depth;      /* of statements that may be skipped */
    int *depths;    /* of the declarations, by variable */
} Walk;

/* ---- sets of paths */

static Paths copy_paths(const Walk *w, Paths paths) {
    size_t size = sizeof *paths.written * (size_t)w->words;
    if (paths.written) paths.written = arena_copy(w->c->arena, paths.written, size);
    if (paths.unsure) paths.unsure = arena_copy(w->c->arena, paths.unsure, size);
    return paths;
}

static uint64_t word_of(const uint64_t *bits, int i) { return bits ? bits[i] : 0; }

/* After the two branches of an `if`, whose paths join here. */
static void note_unsure(Walk *w, const Paths *a, const Paths *b) {
    bool exits = !a->reached || !b->reached; /* what is left may well be the case in which all is written */
    uint64_t *unsure = exits ? NULL : arena_array(w->c->arena, uint64_t, w->words);
    for (int i = 0; unsure && i < w->words; i++)
        unsure[i] =
            word_of(a->unsure, i) | word_of(b->unsure, i) | (word_of(a->written, i) ^ word_of(b->written, i));
    w->now.unsure = unsure;
}

static void join_paths(Walk *w, Paths *into, Paths from) {
    if (!from.reached) return;
    if (!into->reached) {
        *into = copy_paths(w, from);
        return;
    }
    if (!into->written) into->written = arena_array(w->c->arena, uint64_t, w->words);
    for (int i = 0; from.written && i < w->words; i++) into->written[i] |= from.written[i];
}

static void join_jump(Walk *w, Jump *jump, Paths from) {
    if (!from.reached) return;
    bool first = !jump->always;
    if (first) jump->always = arena_array(w->c->arena, uint64_t, w->words);
    for (int i = 0; i < w->words; i++)
        jump->always[i] = word_of(from.written, i) & (first ? UINT64_MAX : jump->always[i]);
    join_paths(w, &jump->after, from);
}

static int index_of(const Walk *w, const Decl *decl) {
    return (int)(intptr_t)map_get(&w->variables, PTR_KEY(decl)) - 1;
}

static bool has_bit(const uint64_t *bits, int index) {
    return bits && (bits[index / 64] >> (index % 64) & 1);
}

static bool is_written(const Walk *w, int index) { return has_bit(w->now.written, index); }

static bool is_unsure(const Walk *w, int index) {
    return has_bit(w->now.unsure, index) && w->depth == w->depths[index];
}

static void set_written(Walk *w, int index) {
    if (!w->now.written) w->now.written = arena_array(w->c->arena, uint64_t, w->words);
    w->now.written[index / 64] |= (uint64_t)1 << (index % 64);
    if (w->now.unsure) w->now.unsure[index / 64] &= ~((uint64_t)1 << (index % 64));
}

static void write_variable(Walk *w, const Decl *decl) {
    int index = index_of(w, decl);
    if (index >= 0) set_written(w, index);
}

static void read_variable(Walk *w, const Expr *e) {
    int index = index_of(w, e->decl);
    if (index < 0 || !w->now.reached || w->gathering) return;
    bool unsure = is_unsure(w, index), interface = e->decl->type && e->decl->type->kind == TYPE_interface;
    if (is_written(w, index) && !unsure) return;
    report(w->c,
           unsure      ? DIAG_may_be_uninitialised
           : interface ? DIAG_interface_unassigned
                       : DIAG_uninitialised,
           e->loc, e->decl->name->text);
    note(w->c, DIAG_note_declared_here, e->decl->loc, e->decl->name->text);
    map_put(w->c->arena, &w->variables, PTR_KEY(e->decl), NULL); /* once is enough */
}

/* ---- expressions */

static void walk_expr(Walk *w, const Expr *e);

/* What is evaluated on the way to a place; its root is not read. */
static const Decl *walk_place(Walk *w, const Expr *e) {
    switch ((ExprKind)e->kind) {
    case EXPR_decl:
        for (int i = 0; i < e->args.count; i++)
            if (e->args.at[i]) walk_expr(w, e->args.at[i]);
        return e->a ? walk_place(w, e->a) : e->decl;
    case EXPR_element: {
        bool elsewhere = e->a->type->kind == TYPE_pointer || e->a->type->kind == TYPE_buffer;
        const Decl *root = NULL;
        if (elsewhere) walk_expr(w, e->a);
        else root = walk_place(w, e->a);
        walk_expr(w, e->b);
        return root;
    }
    case EXPR_swizzle:
    case EXPR_part:
    case EXPR_convert:
    case EXPR_each:
    case EXPR_paren: return walk_place(w, e->a);
    default: walk_expr(w, e); return NULL;
    }
}

/* Adds the paths on which `then` is evaluated to `after`; the others go on. */
static void walk_choice(Walk *w, const Expr *condition, const Expr *then, Paths *after) {
    walk_expr(w, condition);
    Paths before = copy_paths(w, w->now);
    walk_expr(w, then);
    join_paths(w, after, w->now);
    w->now = before;
}

static void walk_select(Walk *w, const Expr *e) {
    Paths after = {0};
    walk_choice(w, e->a, e->b, &after);
    for (int i = 0; i < e->args.count; i += 2) walk_choice(w, e->args.at[i], e->args.at[i + 1], &after);
    walk_expr(w, e->c);
    join_paths(w, &w->now, after);
}

static void walk_lazy(Walk *w, const Expr *e) {
    Paths after = {0};
    walk_choice(w, e->args.at[0], e->args.at[1], &after);
    join_paths(w, &w->now, after);
}

static bool is_lazy(const Expr *e) {
    return e->args.count == 2 && (e->op == OPERATOR_and || e->op == OPERATOR_or) && type_is_scalar(e->type);
}

/* Arguments first, in order; what the call writes is written when it is over. */
static void walk_invoke(Walk *w, const Expr *e) {
    const FuncSig *sig = e->nmodes == 0 && e->decl->kind == DECL_func ? signature_of(w->c, e->decl) : NULL;
    const Decl **roots = arena_array(w->c->arena, const Decl *, e->args.count + 1);
    bool changes_object = sig && sig->has_this && sig->this_pass == PASS_inout;
    bool only_asks = e->a && e->a->type->kind == TYPE_array && decl_is_library(e->decl); /* getCount */
    if (only_asks) walk_place(w, e->a);
    else if (e->a && changes_object) roots[0] = walk_place(w, e->a);
    else if (e->a) walk_expr(w, e->a);
    for (int i = 0; i < e->args.count; i++) {
        const Expr *arg = e->args.at[i];
        if (!arg) continue;
        int param = sig ? sig_param_of(sig, e->args.count, i) : 0;
        uint8_t pass = sig && param < sig->nparams ? sig->params[param].pass : PASS_in;
        if (!sig && (arg->flags & EXPR_PLACE)) pass = PASS_out; /* a derivative: some are written */
        bool only_written = pass == PASS_out || pass == PASS_ref;
        if (pass == PASS_inout || !only_written) walk_expr(w, arg);
        if (pass == PASS_inout || only_written) roots[i + 1] = walk_place(w, arg);
    }
    for (int i = 0; i <= e->args.count; i++)
        if (roots[i]) write_variable(w, roots[i]);
}

static void walk_parts(Walk *w, const Expr *e) {
    if (e->a) walk_expr(w, e->a);
    if (e->b) walk_expr(w, e->b);
    if (e->c) walk_expr(w, e->c);
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i]) walk_expr(w, e->args.at[i]);
}

static void walk_expr(Walk *w, const Expr *e) {
    const Decl *root;
    switch ((ExprKind)e->kind) {
    case EXPR_decl:
        if (e->a || e->decl->kind != DECL_var) walk_parts(w, e);
        else read_variable(w, e);
        return;
    case EXPR_assign:
        if (e->a->kind == EXPR_construct) { /* parts of a tuple */
            walk_expr(w, e->b);
            return;
        }
        root = walk_place(w, e->a);
        walk_expr(w, e->b);
        if (root) write_variable(w, root);
        return;
    case EXPR_update:
        walk_parts(w, e);
        root = walk_place(w, e->a);
        if (root) write_variable(w, root);
        return;
    case EXPR_address:
        root = walk_place(w, e->a);
        if (root) write_variable(w, root);
        return;
    case EXPR_select:
        if (type_is_scalar(e->a->type)) walk_select(w, e);
        else walk_parts(w, e);
        return;
    case EXPR_builtin:
        if (is_lazy(e)) walk_lazy(w, e);
        else walk_parts(w, e);
        return;
    case EXPR_invoke:
        if (e->decl && e->decl->kind != DECL_var) walk_invoke(w, e);
        else walk_parts(w, e);
        return;
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof:
    case EXPR_type: return;
    default: walk_parts(w, e);
    }
}

/* ---- statements */

static void walk_stmt(Walk *w, const Stmt *stmt);

static void leave(Walk *w) { w->now = (Paths){0}; }

static void jump_to(Walk *w, const Stmt *target) {
    for (Jump *jump = w->jumps; jump; jump = jump->outer)
        if (jump->stmt == target) join_jump(w, jump, w->now);
    leave(w);
}

/* Nothing in the `out` parameter when the function is left. */
static void check_outs(Walk *w, Loc loc) {
    if (!w->now.reached || w->gathering) return;
    for (int i = 0; i < w->outs.count; i++) {
        const Decl *param = w->outs.at[i];
        int index = index_of(w, param);
        if (index < 0 || (is_written(w, index) && !is_unsure(w, index))) continue;
        report(w->c, DIAG_out_unwritten, param->loc, param->name->text);
        note(w->c, DIAG_note_left_here, loc);
        map_put(w->c->arena, &w->variables, PTR_KEY(param), NULL);
    }
}

/* The paths at its end; those on which the condition does not hold go on. */
static Paths walk_if_arm(Walk *w, const Stmt *stmt) {
    if (stmt->expr) walk_expr(w, stmt->expr);
    Paths before = copy_paths(w, w->now);
    w->depth++;
    walk_stmt(w, stmt->then);
    Paths then = w->now;
    w->now = before;
    return then;
}

static void walk_if(Walk *w, const Stmt *stmt) {
    Paths *ends = arena_array(w->c->arena, Paths, stmt->body.count + 1);
    ends[0] = walk_if_arm(w, stmt);
    for (int i = 0; i < stmt->body.count; i++) ends[i + 1] = walk_if_arm(w, stmt->body.at[i]);
    if (stmt->other) walk_stmt(w, stmt->other);
    for (int i = stmt->body.count; i >= 0; i--) {
        w->depth--;
        Paths other = copy_paths(w, w->now);
        join_paths(w, &w->now, ends[i]);
        note_unsure(w, &ends[i], &other);
    }
}

/* After a switch: what only some of the paths have written that come together here. */
static void end_switch(Walk *w, const Jump *jump, const Paths *start) {
    w->now = jump->after;
    if (!jump->always) return;
    w->now.unsure = arena_array(w->c->arena, uint64_t, w->words);
    for (int i = 0; i < w->words; i++)
        w->now.unsure[i] = (word_of(start->unsure, i) | word_of(w->now.written, i)) & ~jump->always[i];
}

static void walk_switch(Walk *w, const Stmt *stmt) {
    walk_expr(w, stmt->expr);
    if (!stmt->then) return;
    Jump jump = {.outer = w->jumps, .stmt = stmt};
    w->jumps = &jump;
    w->depth++;
    Paths start = copy_paths(w, w->now);
    bool has_default = false;
    leave(w);
    for (int i = 0; i < stmt->then->body.count; i++) {
        const Stmt *s = stmt->then->body.at[i];
        if (s->kind == STMT_case) {
            has_default |= s->is_default;
            join_paths(w, &w->now, start);
        } else walk_stmt(w, s);
    }
    w->depth--;
    w->jumps = jump.outer;
    join_jump(w, &jump, w->now);
    if (!has_default && stmt->expr->type->kind != TYPE_enum) join_jump(w, &jump, start);
    else if (!has_default) join_paths(w, &jump.after, start);
    end_switch(w, &jump, &start);
}

static void walk_iteration(Walk *w, const Stmt *stmt) {
    bool first = stmt->kind != STMT_do;
    if (first && stmt->kind != STMT_static_for && stmt->expr) walk_expr(w, stmt->expr);
    if (stmt->then) walk_stmt(w, stmt->then);
    if (!first) walk_expr(w, stmt->expr);
    if (stmt->kind == STMT_for && stmt->step) walk_expr(w, stmt->step);
}

static void walk_loop(Walk *w, const Stmt *stmt) {
    if (stmt->init) walk_stmt(w, stmt->init);
    Jump jump = {.outer = w->jumps, .stmt = stmt};
    w->depth++;
    Paths start = copy_paths(w, w->now);
    if (!w->gathering) { /* what an earlier iteration may have done */
        w->jumps = NULL;
        w->gathering = true;
        walk_iteration(w, stmt);
        w->gathering = false;
        join_paths(w, &start, w->now);
        w->now = copy_paths(w, start);
    }
    w->jumps = &jump;
    walk_iteration(w, stmt);
    w->jumps = jump.outer;
    w->depth--;
    bool endless = stmt->kind != STMT_static_for && always_leaves(stmt);
    if (endless) leave(w);
    else join_paths(w, &w->now, start);
    join_paths(w, &w->now, jump.after);
}

/* A handler may be reached before the block has done anything. */
static void walk_try(Walk *w, const Stmt *stmt) {
    Paths start = copy_paths(w, w->now);
    w->depth++;
    walk_stmt(w, stmt->then);
    Paths after = w->now;
    for (int i = 0; i < stmt->body.count; i++) {
        w->now = copy_paths(w, start);
        walk_stmt(w, stmt->body.at[i]->then);
        join_paths(w, &after, w->now);
    }
    w->depth--;
    w->now = after;
}

static void walk_decls(Walk *w, const Stmt *stmt) {
    for (int i = 0; i < stmt->decls.count; i++) {
        const Decl *decl = stmt->decls.at[i];
        int index = index_of(w, decl);
        if (index >= 0) w->depths[index] = w->depth;
        if (decl->kind == DECL_var && decl->init && decl->init->type) walk_expr(w, decl->init);
    }
}

static void walk_stmt(Walk *w, const Stmt *stmt) {
    switch ((StmtKind)stmt->kind) {
    case STMT_expr: walk_expr(w, stmt->expr); break;
    case STMT_decl: walk_decls(w, stmt); break;
    case STMT_block:
        for (int i = 0; i < stmt->body.count; i++) walk_stmt(w, stmt->body.at[i]);
        break;
    case STMT_if: walk_if(w, stmt); break;
    case STMT_switch: walk_switch(w, stmt); break;
    case STMT_for:
    case STMT_while:
    case STMT_do:
    case STMT_static_for: walk_loop(w, stmt); break;
    case STMT_break:
    case STMT_continue:
        if (w->gathering) break; /* the statements after it count, too: some other iteration gets there */
        jump_to(w, stmt->target);
        break;
    case STMT_return:
        if (stmt->expr) walk_expr(w, stmt->expr);
        check_outs(w, stmt->loc);
        if (!w->gathering) leave(w);
        break;
    case STMT_throw:
        walk_expr(w, stmt->expr);
        if (!w->gathering) leave(w);
        break;
    case STMT_try: walk_try(w, stmt); break;
    case STMT_catch: break;
    case STMT_defer:
    case STMT_label: walk_stmt(w, stmt->then); break;
    case STMT_case:
    case STMT_empty:
    case STMT_target_switch:
    case STMT_intrinsic_asm:
    case STMT_static_assert:
    case STMT_discard: break;
    }
}

/* ---- which variables are watched */

/* A struct of nothing, or of such structs, has nothing to write, an Optional starts as none, alone or as half
 * of a pair. */
static bool has_contents(Checker *c, const Type *type) {
    Layout layout;
    if (has_error(type) || type->kind == TYPE_optional || type->kind == TYPE_function) return false;
    if (type->kind == TYPE_pair) return has_contents(c, type->args[0]);
    if (type->kind == TYPE_struct && check_all_fields(c, type).count == 0) return false;
    if (type->kind == TYPE_array) return has_contents(c, type->args[0]);
    return !check_layout(c, type, &layout) || layout.size > 0;
}

static void watch(Walk *w, Decl *decl) {
    if (!decl->name || !decl->type || !has_contents(w->c, decl->type)) return;
    map_put(w->c->arena, &w->variables, PTR_KEY(decl), (void *)(intptr_t)(w->variables.count + 1));
}

static void watch_locals(Walk *w, const Stmt *stmt) {
    if (!stmt) return;
    bool binds = stmt->kind == STMT_if || stmt->kind == STMT_static_for ||
                 stmt->kind == STMT_catch; /* their variable has a value */
    for (int i = 0; !binds && i < stmt->decls.count; i++) {
        Decl *decl = stmt->decls.at[i];
        if (decl->kind == DECL_var && !decl->init && !(decl->modifiers & MODIFIER_static)) watch(w, decl);
    }
    watch_locals(w, stmt->init);
    watch_locals(w, stmt->then);
    watch_locals(w, stmt->other);
    for (int i = 0; i < stmt->body.count; i++) watch_locals(w, stmt->body.at[i]);
}

void check_assigned(Checker *c, Decl *func) {
    if ((func->flags & DECL_PRELUDE) || !func->body) return;
    Walk w = {.c = c, .func = func, .now = {.reached = true}};
    const FuncSig *sig = signature_of(c, func);
    bool writes_part = func->sema && str_eq(func->sema->stage, STR("mesh")); /* the threads share the mesh */
    for (int i = 0; i < sig->nparams && !writes_part; i++)
        if (sig->params[i].pass == PASS_out && sig->params[i].decl) {
            vec_push(c->arena, &w.outs, sig->params[i].decl);
            watch(&w, sig->params[i].decl);
        }
    watch_locals(&w, func->body);
    if (w.variables.count == 0) return;
    w.words = (w.variables.count + 63) / 64;
    w.depths = arena_array(c->arena, int, w.variables.count);
    walk_stmt(&w, func->body);
    check_outs(&w, func->end ? func->end : func->loc);
}
