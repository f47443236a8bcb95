/* The derivative data-flow check: in a differentiable function no derivative may be lost unless the program
 * says so.
 *
 * The checked body is walked from start to end, once for all instances of a generic function. Each value is
 * known to carry a derivative or not, and has a list of losses: calls of functions without derivative, whose
 * arguments carried one and on whose result the value depends. Where a value with losses reaches an output of
 * the function, the lost derivative matters, and the call is an error unless it stands under no_diff. Storing
 * a value that carries a derivative where none can be kept (a buffer, a global, a no_diff field) is an error
 * unless it is detached. What does not reach an output, or is compared, or becomes an integer, has no
 * derivative to lose: not a word about it.
 *
 * Variables are followed through each of their fields and lanes, elements of arrays together. Where paths
 * join, values join; a loop is walked until nothing is added at its head, which ends because only finitely
 * many calls can be lost. It begins with what was found the last time, when loops around it come to it again,
 * so that loops in loops take their sum, not their product. Where even that takes too long, as values move on
 * by one variable in each round, the search ends and says so.
 *
 * A function with a custom derivative for one mode only can be called from functions that are differentiable
 * in both. That is an error once the other mode of such a caller is asked for: what was found is kept, and
 * looked up for each request. */
#include "check/flow.h"

/* A loss that counts in one mode only. */
typedef struct ModeLoss {
    Loss loss;
    uint8_t kind; /* OutputKind */
    Loc loc;
    const Decl *decl;
} ModeLoss;

typedef struct FlowFacts {
    Map calls; /* differentiable functions that it calls */
    Map reversed; /* functions whose backward derivative it calls: to go forward through that, they must go forward */
    VEC(ModeLoss) losses;
    LocVec lost; /* where a derivative is lost with a warning */
    bool walked;
} FlowFacts;

static FlowFacts *facts_of(Checker *c, const Decl *func) {
    FlowFacts *facts = map_get(&c->flow_facts, PTR_KEY(func));
    if (facts) return facts;
    facts = arena_new(c->arena, FlowFacts);
    map_put(c->arena, &c->flow_facts, PTR_KEY(func), facts);
    return facts;
}

static void walk_function(Checker *c, Decl *func, uint8_t modes);

static void add_call(Checker *c, const Decl *func, Decl *callee) {
    map_put(c->arena, &facts_of(c, func)->calls, PTR_KEY(callee), callee);
}

void flow_reverses(Checker *c, const Decl *func, Decl *callee) {
    if (callee->flags & DECL_PRELUDE || callee->kind != DECL_func) return;
    map_put(c->arena, &facts_of(c, func)->reversed, PTR_KEY(callee), callee);
}

void flow_calls(FlowWalk *w, Decl *callee) {
    if (callee->flags & DECL_PRELUDE) return;
    add_call(w->c, w->func, callee);
    if (!check_is_inlined(callee) || facts_of(w->c, callee)->walked) return;
    check_decl_body(w->c, callee); /* not looked at for its own sake: it matters here */
    walk_function(w->c, callee, LOST_both);
}

static void remember(FlowWalk *w, Loc loc) {
    LocVec *lost = &facts_of(w->c, w->func)->lost;
    for (int i = 0; i < lost->count; i++)
        if (lost->at[i] == loc) return;
    vec_push(w->c->arena, lost, loc);
}

static void gather_lost(Checker *c, Decl *func, Map *seen, LocVec *out) {
    const FlowFacts *facts = map_get(&c->flow_facts, PTR_KEY(func));
    if (!facts || map_has(seen, PTR_KEY(func))) return;
    map_put(c->arena, seen, PTR_KEY(func), func);
    for (int i = 0; i < facts->lost.count; i++) vec_push(c->arena, out, facts->lost.at[i]);
    for (int i = 0; i < facts->calls.count; i++) gather_lost(c, facts->calls.entries[i].value, seen, out);
}

LocVec check_lost_derivatives(Checker *c, Decl *func) {
    LocVec lost = {0};
    Map seen = {0};
    gather_lost(c, func, &seen, &lost);
    return lost;
}

/* ---- messages */

static void note_no_diff(Checker *c, const Loss *loss, const char *name) {
    bool call = loss->call->kind == EXPR_invoke;
    if (call && loss->call->decl->kind == DECL_func) name = call_name(c, loss->call->decl);
    call &= strncmp(name, "operator", 8) != 0;
    for (int i = 0; call && i < loss->call->nmodes; i++) {
        name =
            format_text(c->arena, "%s(%s)", loss->call->modes[i] == DIFF_fwd ? "fwd_diff" : "bwd_diff", name);
    }
    if (call) note(c, DIAG_note_write_no_diff, 0, format_text(c->arena, "%s(...)", name));
    else if (loss->call->decl->kind == DECL_subscript)
        note(c, DIAG_note_write_no_diff, 0, "before the subscript");
    else note(c, DIAG_note_write_detach, 0);
}

enum { MOST_STEPS = 16 };

/* The last steps, in order. */
static void note_steps(Checker *c, const LossStep *step, int most) {
    if (!step || most == 0) return;
    note_steps(c, step->before, most - 1);
    note(c, DIAG_note_loss_into, step->loc, step->into->name ? step->into->name->text : "?");
}

static void note_path(Checker *c, const LossStep *last) { note_steps(c, last, MOST_STEPS); }

static void note_output(Checker *c, OutputKind kind, Loc loc, const Decl *decl) {
    switch (kind) {
    case OUTPUT_result: note(c, DIAG_note_loss_returned, loc); break;
    case OUTPUT_error: note(c, DIAG_note_loss_thrown, loc); break;
    case OUTPUT_this: note(c, DIAG_note_loss_this, loc); break;
    case OUTPUT_param: note(c, DIAG_note_loss_param, loc, decl->name->text); break;
    case OUTPUT_argument:
        note(c, DIAG_note_loss_argument, loc, function_name(c, (Decl *)(uintptr_t)decl));
        break;
    }
}

static bool has_reference(Checker *c, const Type *type) {
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++)
        if (may_be_ptr_pair(c, check_field_type(c, type, fields.at[i]))) return true;
    return false;
}

static void note_plain(Checker *c, const Type *plain) {
    if (!plain) return;
    bool interface = plain->kind == TYPE_interface, pointer = interface && may_be_ptr_pair(c, plain);
    DiagId advice = pointer                   ? DIAG_note_generic_reference
                    : interface               ? DIAG_note_make_interface_differentiable
                    : has_reference(c, plain) ? DIAG_note_make_reference
                                              : DIAG_note_make_differentiable;
    note(c, advice, ((const Decl *)plain->decl)->loc, declared_name(c, plain));
}

/* One for each cause, in all functions together. */
bool flow_first(Checker *c, const void *cause) {
    if (map_has(&c->told_losses, PTR_KEY(cause))) return false;
    map_put(c->arena, &c->told_losses, PTR_KEY(cause), c);
    return true;
}

static void report_stored(Checker *c, const Loss *loss) {
    report(c, DIAG_derivative_stored, loss->loc, loss->where);
    note(c, DIAG_note_write_detach, 0);
    note_plain(c, loss->plain);
}

static void report_constant(Checker *c, const Loss *loss) {
    if (loss->plain) {
        report(c, DIAG_plain_value, loss->loc, loss->where, type_str(c, loss->plain));
        note_plain(c, loss->plain);
        note(c, DIAG_note_say_no_diff, 0, loss->where);
    } else {
        report(c, DIAG_field_alone, loss->loc, loss->where);
        note(c, DIAG_note_counterpart, loss->callee->loc, loss->where);
    }
}

static bool report_plain(Checker *c, const Loss *loss) {
    if (loss->kind == LOSS_call || !flow_first(c, loss->cause)) return false;
    if (loss->kind == LOSS_stored) report_stored(c, loss);
    else report_constant(c, loss);
    return true;
}

void flow_report_stored(FlowWalk *w, const Loss *loss) {
    remember(w, loss->loc);
    report_plain(w->c, loss);
}

const Flow *flow_stored(FlowWalk *w, const Flow *flow, Loss loss) {
    const Flow *whole = flow_whole(w->arena, flow);
    if (!whole || !whole->carries) return flow_lost(w->arena, whole);
    loss.modes = w->modes;
    return flow_make(w->arena, false, loss_add(w->arena, whole->losses, &loss));
}

static void report_loss(Checker *c, const Loss *loss, OutputKind kind, Loc loc, const Decl *decl) {
    Decl *target = check_differentiated(c, loss->callee);
    const char *name = function_name(c, loss->callee), *made_from = function_name(c, target);
    bool forward = check_is_differentiable(c, target, DIFF_fwd),
         backward = check_is_differentiable(c, target, DIFF_bwd);
    if (loss->indirect && !flow_first(c, loss->cause)) return;
    report(c, loss->indirect ? DIAG_derivative_lost_part : DIAG_derivative_lost, loss->call->loc, made_from,
           forward    ? " backward"
           : backward ? " forward"
                      : "");
    note_no_diff(c, loss, name);
    if (target != loss->callee) note(c, DIAG_note_substitute, loss->callee->loc, name, made_from);
    const Sema *sema = decl_sema(c, target);
    DiagId advice = forward    ? sema->fwd.decl ? DIAG_note_only_forward_derivative : DIAG_note_only_forward
                    : backward ? DIAG_note_only_backward
                               : DIAG_note_mark_differentiable;
    note(c, advice, (sema->special_of.decl ? sema->special_of.decl : target)->loc, made_from);
    note_path(c, loss->path);
    note_output(c, kind, loc, decl);
}

void flow_dropped(FlowWalk *w, Loc loc, const char *where, const Type *plain) {
    if (plain && !flow_first(w->c, plain->decl)) return;
    report(w->c, DIAG_derivative_dropped, loc, where);
    note(w->c, DIAG_note_write_detach, 0);
    if (plain)
        note(w->c, DIAG_note_make_differentiable, ((const Decl *)plain->decl)->loc,
             declared_name(w->c, plain));
}

/* ---- outputs */

static const LossStep *keep_path(Checker *c, const LossStep *step) {
    const LossStep *last = NULL, **at = &last;
    for (; step; step = step->before) {
        LossStep *copy = arena_copy(c->arena, step, sizeof *step);
        *at = copy;
        at = &copy->before;
    }
    return last;
}

static void keep_loss(FlowWalk *w, const Loss *loss, OutputKind kind, Loc loc, const Decl *decl) {
    FlowFacts *facts = facts_of(w->c, w->func);
    for (int i = 0; i < facts->losses.count; i++)
        if (facts->losses.at[i].loss.call == loss->call) return;
    ModeLoss kept = {*loss, (uint8_t)kind, loc, decl};
    kept.loss.path = keep_path(w->c, loss->path);
    vec_push(w->c->arena, &facts->losses, kept);
}

void flow_output(FlowWalk *w, const Flow *flow, OutputKind kind, Loc loc, const Decl *decl) {
    const Flow *whole = flow_whole(w->arena, flow);
    if (!w->now.reached) return;
    for (const Loss *loss = whole ? whole->losses : NULL; loss; loss = loss->next) {
        if (loss->kind != LOSS_call || loss->indirect) remember(w, loss->loc);
        if (loss->kind != LOSS_call) {
            if (!report_plain(w->c, loss)) continue;
            note_path(w->c, loss->path);
            note_output(w->c, kind, loc, decl);
        } else if (loss->modes == w->modes) report_loss(w->c, loss, kind, loc, decl);
        else keep_loss(w, loss, kind, loc, decl);
    }
}

static bool this_is_output(FlowWalk *w) {
    const FuncSig *sig = w->sig;
    if (sig->is_init) return flow_is_diff(w, sig->result);
    return sig->has_this && sig->this_pass == PASS_inout && !sig->this_no_diff &&
           flow_is_diff(w, sig->this_type);
}

/* The function is left: what its parameters hold now goes out. */
static void leave_function(FlowWalk *w, Loc loc) {
    for (int i = 0; i < w->sig->nparams; i++) {
        const ParamSig *param = &w->sig->params[i];
        bool out = param->decl && (param->pass == PASS_out || param->pass == PASS_inout) && !param->no_diff;
        if (out && flow_is_diff(w, param->type))
            flow_output(w, flow_variable(w, param->decl), OUTPUT_param, param->decl->loc, param->decl);
    }
    if (this_is_output(w)) flow_output(w, flow_variable(w, w->func), OUTPUT_this, loc, w->func);
}

static void leave_with(FlowWalk *w, const Expr *value, Loc loc) {
    const Flow *flow = value ? flow_expr(w, value) : NULL;
    bool counts = !w->sig->result_no_diff && !w->sig->is_init && flow_is_diff(w, w->sig->result);
    if (counts) flow_output(w, flow, OUTPUT_result, loc, NULL);
    leave_function(w, loc);
    w->now = (FlowState){0};
}

/* ---- statements */

static void walk(FlowWalk *w, const Stmt *stmt);

static void join_state(FlowWalk *w, FlowState *into, FlowState from) {
    if (!from.reached) return;
    if (into->reached) into->vars = vars_join(w->arena, into->vars, from.vars);
    else *into = from;
}

static void jump(FlowWalk *w, const Stmt *stmt) {
    for (FlowJump *j = w->jumps; j; j = j->outer)
        if (j->stmt == stmt->target) join_state(w, stmt->kind == STMT_break ? &j->left : &j->next, w->now);
    w->now = (FlowState){0};
}

static void walk_variables(FlowWalk *w, const Stmt *stmt) {
    w->steps += stmt->decls.count;
    for (int i = 0; i < stmt->decls.count; i++) {
        const Decl *decl = stmt->decls.at[i];
        if (decl->kind != DECL_var) continue;
        const Flow *flow = decl->init && decl->init->type ? flow_expr(w, decl->init) : NULL;
        if (decl->modifiers & MODIFIER_static) continue;
        bool is_pointer = decl->type && decl->type->kind == TYPE_pointer && decl->init;
        if (is_pointer && decl->init->type) flow_point(w, decl, decl->init);
        else flow_declare(w, decl, flow_through(w->arena, flow_as(w, flow, decl->type), decl->loc, decl));
    }
}

/* Adds the state at its end to `after`; where the condition does not hold it goes on. */
static void walk_if_arm(FlowWalk *w, const Stmt *stmt, FlowState *after) {
    const Flow *condition = stmt->expr ? flow_expr(w, stmt->expr) : NULL;
    FlowState before = w->now;
    if (stmt->decls.count) /* if (let x = optional) */
        flow_declare(
            w, stmt->decls.at[0],
            flow_through(w->arena, flow_part(condition, 1), stmt->decls.at[0]->loc, stmt->decls.at[0]));
    walk(w, stmt->then);
    join_state(w, after, w->now);
    w->now = before;
}

static void walk_if(FlowWalk *w, const Stmt *stmt) {
    FlowState after = {0};
    walk_if_arm(w, stmt, &after);
    for (int i = 0; i < stmt->body.count; i++) walk_if_arm(w, stmt->body.at[i], &after);
    if (stmt->other) walk(w, stmt->other);
    join_state(w, &w->now, after);
}

static void walk_switch(FlowWalk *w, const Stmt *stmt) {
    flow_expr(w, stmt->expr);
    if (!stmt->then) return;
    FlowJump here = {.outer = w->jumps, .stmt = stmt};
    FlowState start = w->now;
    bool has_default = false;
    w->jumps = &here;
    w->now = (FlowState){0};
    for (int i = 0; i < stmt->then->body.count; i++) {
        const Stmt *s = stmt->then->body.at[i];
        if (s->kind != STMT_case) {
            walk(w, s);
            continue;
        }
        has_default |= s->is_default;
        join_state(w, &w->now, start);
    }
    w->jumps = here.outer;
    if (!has_default) join_state(w, &w->now, start);
    join_state(w, &w->now, here.left);
}

/* One time round; `exit` is where the condition may end the loop. */
static void walk_iteration(FlowWalk *w, const Stmt *stmt, FlowJump *here, FlowState *exit) {
    bool first = stmt->kind != STMT_do;
    if (first && stmt->kind != STMT_static_for && stmt->expr) flow_expr(w, stmt->expr);
    if (first) join_state(w, exit, w->now);
    if (stmt->then) walk(w, stmt->then);
    join_state(w, &w->now, here->next);
    if (!first && w->now.reached) flow_expr(w, stmt->expr);
    if (!first) join_state(w, exit, w->now);
    if (stmt->kind == STMT_for && stmt->step && w->now.reached) flow_expr(w, stmt->step);
}

static FlowState *head_of(FlowWalk *w, const Stmt *loop) {
    FlowState *head = map_get(&w->heads, PTR_KEY(loop));
    if (head) return head;
    head = arena_new(w->arena, FlowState);
    map_put(w->arena, &w->heads, PTR_KEY(loop), head);
    return head;
}

static void walk_loop(FlowWalk *w, const Stmt *stmt) {
    if (stmt->init) walk(w, stmt->init);
    FlowJump here = {.outer = w->jumps, .stmt = stmt};
    FlowState *head = head_of(w, stmt), exit = {0};
    join_state(w, head, w->now);
    w->jumps = &here;
    for (;;) {
        const FlowVars *before = head->vars;
        w->now = *head;
        walk_iteration(w, stmt, &here, &exit);
        join_state(w, head, w->now);
        if (!head->reached || head->vars == before) break;
    }
    w->jumps = here.outer;
    bool endless = stmt->kind != STMT_static_for && always_leaves(stmt);
    w->now = endless ? (FlowState){0} : exit;
    join_state(w, &w->now, here.left);
}

/* What was thrown told of its losses there. */
static void declare_error(FlowWalk *w, Decl *error) {
    bool carries = flow_is_diff(w, decl_value_type(w->c, error));
    flow_declare(w, error, carries ? flow_make(w->arena, true, NULL) : NULL);
}

/* A handler may be reached from anywhere in the block. */
static void walk_try(FlowWalk *w, const Stmt *stmt) {
    FlowState start = w->now;
    walk(w, stmt->then);
    FlowState after = w->now;
    join_state(w, &start, after);
    for (int i = 0; i < stmt->body.count; i++) {
        const Stmt *handler = stmt->body.at[i];
        w->now = start;
        if (handler->decls.count) declare_error(w, handler->decls.at[0]);
        walk(w, handler->then);
        join_state(w, &after, w->now);
    }
    w->now = after;
}

enum { MAX_STEPS = 1 << 20 }; /* nobody waits longer for this check */

static void walk(FlowWalk *w, const Stmt *stmt) {
    if (!stmt || !w->now.reached || w->steps++ > MAX_STEPS) return;
    switch ((StmtKind)stmt->kind) {
    case STMT_expr: flow_expr(w, stmt->expr); break;
    case STMT_decl: walk_variables(w, stmt); break;
    case STMT_block:
        for (int i = 0; i < stmt->body.count; i++) walk(w, stmt->body.at[i]);
        break;
    case STMT_if: walk_if(w, stmt); break;
    case STMT_switch: walk_switch(w, stmt); break;
    case STMT_for:
    case STMT_while:
    case STMT_do:
    case STMT_static_for: walk_loop(w, stmt); break;
    case STMT_break:
    case STMT_continue: jump(w, stmt); break;
    case STMT_return: leave_with(w, stmt->expr, stmt->loc); break;
    case STMT_throw:
        flow_output(w, flow_expr(w, stmt->expr), OUTPUT_error, stmt->loc, NULL);
        w->now = (FlowState){0};
        break;
    case STMT_try: walk_try(w, stmt); break;
    case STMT_catch: break;
    case STMT_defer:
    case STMT_label: walk(w, stmt->then); break;
    case STMT_case:
    case STMT_empty:
    case STMT_target_switch:
    case STMT_intrinsic_asm:
    case STMT_static_assert:
    case STMT_discard: break;
    }
}

/* ---- functions */

/* A parameter that would have a derivative, had its struct been declared so. */
static const Flow *plain_input(FlowWalk *w, const ParamSig *param) {
    const Type *plain = param->decl && !has_error(param->type) ? flow_plain_struct(w, param->type) : NULL;
    if (!plain || !param->name) return NULL;
    Loss loss = {.kind = LOSS_constant, .modes = w->modes, .cause = plain->decl, .loc = param->decl->loc};
    loss.where = format_text(w->c->arena, "'%s'", param->name->text);
    loss.plain = plain;
    return flow_make(w->arena, false, loss_add(w->arena, NULL, &loss));
}

static void declare_inputs(FlowWalk *w, const Flow *captured) {
    const FuncSig *sig = w->sig;
    const Flow *derivative = flow_make(w->arena, true, NULL);
    bool of_this = sig->has_this && !sig->this_no_diff && !sig->is_init && flow_is_diff(w, sig->this_type);
    flow_declare(w, w->func, captured ? captured : of_this ? derivative : NULL);
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i];
        bool takes = param->pass != PASS_out && !param->no_diff;
        const Flow *flow = flow_is_diff(w, param->type) ? derivative : plain_input(w, param);
        if (param->decl && param->type->kind == TYPE_pointer) flow_point(w, param->decl, NULL);
        else if (param->decl) flow_declare(w, param->decl, takes ? flow : NULL);
    }
}

static void tell_if_unfinished(const FlowWalk *w) {
    if (w->steps > MAX_STEPS) report(w->c, DIAG_flow_unfinished, w->func->loc, function_name(w->c, w->func));
}

void flow_lambda(FlowWalk *w, Decl *call, const Flow *captured) {
    if (w->func) add_call(w->c, w->func, call);
    facts_of(w->c, call)->walked = true;
    FlowWalk inside = {.c = w->c, .arena = w->arena, .func = call, .modes = w->modes, .no_diff = w->no_diff};
    inside.asked = w->asked;
    inside.sig = signature_of(w->c, call);
    inside.now.reached = true;
    declare_inputs(&inside, captured);
    if (call->body_expr) leave_with(&inside, call->body_expr, call->body_expr->loc);
    else walk(&inside, call->body);
    tell_if_unfinished(&inside);
}

static void walk_function(Checker *c, Decl *func, uint8_t modes) {
    facts_of(c, func)->walked = true;
    FlowWalk w = {.c = c, .arena = arena_scratch(c->arena), .func = func, .sig = signature_of(c, func)};
    w.modes = modes;
    w.now.reached = true;
    declare_inputs(&w, NULL);
    walk(&w, func->body);
    if (w.now.reached) leave_function(&w, func->end ? func->end : func->loc);
    tell_if_unfinished(&w);
    arena_free(w.arena);
}

void check_differentiable_body(Checker *c, Decl *func) {
    bool wanted =
        (func->flags & (DECL_FWD | DECL_BWD)) && !(func->flags & (DECL_PRELUDE | DECL_TREAT_AS_DIFF));
    if (!wanted || !func->body || func->flavour == FUNC_ref || (func->modifiers & MODIFIER_synthesized))
        return;
    walk_function(c, func, func->flags & DECL_BWD ? LOST_both : LOST_fwd);
}

/* ---- derivatives that are asked for */

typedef struct Search {
    Checker *c;
    const DiffRequest *request; /* NULL: only to see whether there are any */
    DiffMode mode;
    Map *seen;
    bool found;
} Search;

static void search_losses(Search *s, Decl *func) {
    Checker *c = s->c;
    check_derivatives(c, func);
    const Sema *sema = func->sema;
    if (map_has(s->seen, PTR_KEY(func)) || (func->flags & (DECL_PRELUDE | DECL_TREAT_AS_DIFF))) return;
    map_put(c->arena, s->seen, PTR_KEY(func), func);
    if (sema->substitute.decl) {
        search_losses(s, sema->substitute.decl);
        return;
    }
    if (s->mode == DIFF_fwd ? sema->fwd.decl : sema->bwd.decl) return;
    check_decl_body(c, func);
    const FlowFacts *facts = map_get(&c->flow_facts, PTR_KEY(func));
    for (int i = 0; facts && i < facts->losses.count; i++) {
        const ModeLoss *kept = &facts->losses.at[i];
        if (!(kept->loss.modes & (s->mode == DIFF_fwd ? LOST_fwd : LOST_bwd))) continue;
        s->found = true;
        if (!s->request) return;
        report_loss(c, &kept->loss, (OutputKind)kept->kind, kept->loc, kept->decl);
        note(c, DIAG_note_asked_here, s->request->loc, s->mode == DIFF_fwd ? "fwd_diff" : "bwd_diff");
    }
    for (int i = 0; facts && i < facts->calls.count; i++) search_losses(s, facts->calls.entries[i].value);
    for (int i = 0; facts && s->mode == DIFF_fwd && i < facts->reversed.count; i++)
        search_losses(s, facts->reversed.entries[i].value);
}

bool flow_loses(Checker *c, Decl *func, DiffMode mode) {
    Map seen = {0};
    Search search = {.c = c, .mode = mode, .seen = &seen};
    search_losses(&search, func);
    return search.found;
}

void flow_request(Checker *c, Decl *func, const uint8_t *modes, int nmodes, Loc loc) {
    if (func->kind == DECL_var)
        for (int i = 0; i < nmodes; i++)
            flow_given_differentiated(c, func, modes[i] == DIFF_fwd ? LOST_fwd : LOST_bwd);
    if ((func->flags & DECL_PRELUDE) || func->kind != DECL_func) return;
    DiffRequest request = {.func = func, .loc = loc};
    for (int i = 0; i < nmodes; i++) request.modes |= (uint8_t)(1 << modes[i]);
    vec_push(c->arena, &c->diff_requests, request);
}

/* One that stands in a function without derivatives has not been walked with that. */
void flow_request_lambda(Checker *c, Decl *call) {
    if (facts_of(c, call)->walked) return;
    FlowWalk w = {.c = c, .arena = arena_scratch(c->arena), .modes = LOST_both, .asked = true};
    flow_lambda(&w, call, NULL);
    arena_free(w.arena);
}

/* An implementation is called wherever its requirement is. */
void flow_implements(Checker *c, Decl *requirement, Decl *implementation) {
    add_call(c, requirement, implementation);
}

void check_diff_requests(Checker *c) {
    flow_given(c);
    while (c->diff_requests_done < c->diff_requests.count) {
        DiffRequest request = c->diff_requests.at[c->diff_requests_done++];
        for (DiffMode mode = DIFF_fwd; mode <= DIFF_bwd; mode++) {
            Search search = {c, &request, mode, &c->diff_searched[mode - DIFF_fwd], false};
            if (request.modes & (1 << mode)) search_losses(&search, request.func);
        }
    }
}
