/* Statements and bodies. */
#include "check/checker.h"

/* ---- scopes and locals */

static Scope *push_scope(Env *env) { return env->scope = scope_new(env->c, env->scope, NULL); }

static void declare(Env *env, Decl *decl) {
    Checker *c = env->c;
    DeclVec *others = decl->name ? scope_find(env->scope, decl->name) : NULL;
    if (others) {
        report(c, DIAG_redeclared, decl->loc, decl->name->text);
        note(c, DIAG_note_declared_here, others->at[0]->loc, decl->name->text);
    }
    scope_add(c, env->scope, decl);
}

/* A type inside a function sees what the place sees, not only what the function's parameters are. */
static void declare_local_type(Env *env, Decl *decl) {
    decl->parent = env->decl;
    declare(env, decl);
    scope_within(env->c, env->scope, decl);
    check_declaration(env->c, decl);
}

static const Type *local_type(Env *env, Decl *decl) {
    Checker *c = env->c;
    if (decl->type_expr) {
        const Type *type = type_with_major(c, resolve_type(env, decl->type_expr), false);
        bool unsized = type->kind == TYPE_array && type->nargs == 1 && decl->init;
        return unsized ? sized_by_init(env, type, decl) : refuse_open_array(c, decl, type);
    }
    return NULL;
}

static void infer_local(Env *env, Decl *decl) {
    Checker *c = env->c;
    if (!decl->init) {
        report(c, DIAG_var_needs_type, decl->loc, decl->name->text);
        decl->type = ERROR_TYPE(c);
        return;
    }
    if (decl->init->kind == EXPR_list) {
        report(c, DIAG_list_needs_type, decl->init->loc);
        decl->type = ERROR_TYPE(c);
        return;
    }
    decl->init = check_value(env, decl->init);
    decl->type = decl->init->type;
    if (decl->type->kind == TYPE_none || decl->type->kind == TYPE_null) {
        report(c, DIAG_var_needs_type, decl->loc, decl->name->text);
        decl->type = ERROR_TYPE(c);
    }
}

static void check_local(Env *env, Decl *decl) {
    Checker *c = env->c;
    decl->parent = env->decl;
    decl->flavour = VAR_local;
    check_attributes(c, decl);
    Expr *path = decl->type_expr && decl->type_expr->kind == EXPR_member ? decl->type_expr->a : NULL;
    const Type *type = local_type(env, decl);
    if (type && type->kind == TYPE_void) {
        report(c, DIAG_void_variable, decl->loc, decl->name->text);
        type = ERROR_TYPE(c);
    }
    if (type) type = refuse_function_type(c, decl, type);
    if (!type) infer_local(env, decl);
    else if (decl->init) {
        decl->init = check_value_of(env, decl->init, type);
        decl->type = type;
    } else {
        decl->type = type;
        if (!has_error(type) && has_default(c, type)) decl->init = default_value(env, decl->loc, type);
    }
    decl->type = refuse_function_type(c, decl, decl->type);
    const Decl *object = path && !has_error(type) ? variable_of(check_term(env, path)) : NULL;
    if (object) {
        decl_sema(c, decl)->came_from = object;
        if (decl->init) require_origin(env, decl->init, object);
    } else if (!type && decl->init) decl_sema(c, decl)->came_from = origin_of(decl->init);
    decl->state = STATE_body;
    bool statement = type && has_error(type) && !decl->init && scope_find(env->scope, decl->name);
    if (!statement) declare(env, decl); /* `delete x;` is told, and declares no x */
}

/* ---- control flow facts */

static bool breaks_out(const Stmt *stmt, const Stmt *target) {
    if (!stmt) return false;
    if (stmt->kind == STMT_break) return stmt->target == target;
    for (int i = 0; i < stmt->body.count; i++)
        if (breaks_out(stmt->body.at[i], target)) return true;
    return breaks_out(stmt->then, target) || breaks_out(stmt->other, target);
}

static bool is_true(const Expr *e) {
    return !e || (e->kind == EXPR_bool && e->number) ||
           (e->kind == EXPR_convert && is_true(e->a) && e->a->kind == EXPR_int && e->a->number);
}

static bool switch_leaves(const Stmt *stmt) {
    bool has_default = false, leaves = false;
    const Stmt *body = stmt->then;
    if (!body || breaks_out(body, stmt)) return false;
    for (int i = 0; i < body->body.count; i++) {
        const Stmt *s = body->body.at[i];
        if (s->kind == STMT_case) has_default |= s->is_default;
        else leaves = always_leaves(s);
    }
    return has_default && leaves;
}

/* Does control never come to the end of this statement? */
bool always_leaves(const Stmt *stmt) {
    if (!stmt) return false;
    switch ((StmtKind)stmt->kind) {
    case STMT_break:
    case STMT_continue: return stmt->target != NULL;
    case STMT_return:
    case STMT_target_switch: /* without a branch that could be taken */
    case STMT_intrinsic_asm:
    case STMT_throw:
    case STMT_discard: return true;
    case STMT_try:
        for (int i = 0; i < stmt->body.count; i++)
            if (!always_leaves(stmt->body.at[i]->then)) return false;
        return always_leaves(stmt->then);
    case STMT_block:
        for (int i = 0; i < stmt->body.count; i++)
            if (always_leaves(stmt->body.at[i])) return true;
        return false;
    case STMT_if:
        for (int i = 0; i < stmt->body.count; i++)
            if (!always_leaves(stmt->body.at[i]->then)) return false;
        return stmt->other && always_leaves(stmt->then) && always_leaves(stmt->other);
    case STMT_label: return always_leaves(stmt->then);
    case STMT_switch: return switch_leaves(stmt);
    case STMT_for:
    case STMT_while: return is_true(stmt->expr) && !breaks_out(stmt->then, stmt);
    case STMT_do: return is_true(stmt->expr) && !breaks_out(stmt->then, stmt);
    default: return false;
    }
}

/* ---- statements */

static void check_block(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    Scope *outer = env->scope;
    push_scope(env);
    bool left = false, told = false;
    for (int i = 0; i < stmt->body.count; i++) {
        Stmt *s = stmt->body.at[i];
        if (s->kind == STMT_case) left = false;
        if (left && !told && s->kind != STMT_empty) {
            report(c, DIAG_unreachable, s->loc);
            told = true;
        }
        check_stmt(env, s);
        left |= always_leaves(s);
    }
    env->scope = outer;
}

static void check_nested(Env *env, Stmt *stmt) {
    Scope *outer = env->scope;
    push_scope(env);
    if (stmt) check_stmt(env, stmt);
    env->scope = outer;
}

/* if (let x = optional) */
static void check_if_let(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    Decl *decl = stmt->decls.at[0];
    Expr *value = check_value(env, decl->init ? decl->init : stmt->expr);
    if (is_conditional(c, value->type)) value = conditional_value(env, value);
    decl->init = stmt->expr = value;
    decl->parent = env->decl;
    decl->flavour = VAR_local;
    decl->modifiers |= MODIFIER_let;
    decl->state = STATE_body;
    decl->type = ERROR_TYPE(c);
    if (value->type->kind == TYPE_optional) decl->type = value->type->args[0];
    else if (!has_error(value->type)) report_expr(c, value, DIAG_if_let_optional, type_str(c, value->type));
    Scope *outer = env->scope;
    push_scope(env);
    declare(env, decl);
    check_nested(env, stmt->then);
    env->scope = outer;
}

/* if (T is I): inside, a constraint `where optional T : I` counts. */
static const Constraint *optional_constraint(Env *env, const Expr *e) {
    if (e->kind != EXPR_is || e->a->kind != EXPR_type || e->b->kind != EXPR_type) return NULL;
    for (const Decl *d = env->decl; d; d = d->parent)
        for (int i = 0; d->generics && i < d->generics->constraints.count; i++) {
            const Constraint *constraint = &d->generics->constraints.at[i];
            if (constraint->optional && constraint->subject_type == e->a->type_value &&
                constraint->bound_type == e->b->type_value)
                return constraint;
        }
    return NULL;
}

static void check_if_arm(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    if (stmt->decls.count) {
        check_if_let(env, stmt);
        return;
    }
    stmt->expr = check_condition(env, stmt->expr);
    const Constraint *constraint = optional_constraint(env, stmt->expr);
    Map *before = c->optional_bounds, now = {0};
    if (constraint) {
        for (int i = 0; before && i < before->count; i++)
            map_put(c->arena, &now, before->entries[i].key, before->entries[i].value);
        map_put(c->arena, &now, PTR_KEY(constraint), c);
        c->optional_bounds = &now;
    }
    if (stmt->then && stmt->then->kind == STMT_empty && !stmt->other)
        report(c, DIAG_empty_if, stmt->then->loc);
    check_nested(env, stmt->then);
    c->optional_bounds = before;
}

static void check_if(Env *env, Stmt *stmt) {
    check_if_arm(env, stmt);
    for (int i = 0; i < stmt->body.count; i++) {
        check_stmt_attributes(env, stmt->body.at[i]);
        check_if_arm(env, stmt->body.at[i]);
    }
    if (stmt->other) check_nested(env, stmt->other);
}

static void check_loop_body(Env *env, Stmt *stmt) {
    Stmt *breakable = env->breakable, *loop = env->loop;
    env->breakable = env->loop = stmt;
    check_nested(env, stmt->then);
    env->breakable = breakable;
    env->loop = loop;
}

/* +1: the step makes the variable greater, -1: smaller, 0: not known. */
static int direction_of_step(Env *env, const Expr *step, const Decl **variable) {
    if (step->kind == EXPR_builtin && step->op == OPERATOR_comma) return 0;
    if (step->kind != EXPR_update || step->a->kind != EXPR_decl || step->a->a) return 0;
    if (step->op != OPERATOR_add && step->op != OPERATOR_sub) return 0;
    int64_t by = 1;
    if (step->b && !eval_number(env, step->b, &by)) return 0;
    *variable = step->a->decl;
    return by == 0 ? 0 : (by > 0) == (step->op == OPERATOR_add) ? 1 : -1;
}

static const Decl *variable_in(const Expr *e) {
    while (e->kind == EXPR_convert || e->kind == EXPR_paren) e = e->a;
    return e->kind == EXPR_decl && !e->a ? e->decl : NULL;
}

/* for (int i = 9; i >= 0; i++): the step leads away from where the loop ends. */
static void check_direction(Env *env, const Stmt *stmt) {
    const Expr *condition = stmt->expr;
    const Decl *variable;
    if (!condition || !stmt->step || condition->kind != EXPR_builtin || condition->args.count != 2) return;
    int direction = direction_of_step(env, stmt->step, &variable);
    bool less = condition->op == OPERATOR_less || condition->op == OPERATOR_less_equal,
         greater = condition->op == OPERATOR_greater || condition->op == OPERATOR_greater_equal;
    if (direction == 0 || (!less && !greater)) return;
    bool on_left = variable_in(condition->args.at[0]) == variable;
    if (!on_left && variable_in(condition->args.at[1]) != variable) return;
    int goes_on_below = less == on_left ? 1 : -1; /* the loop goes on while the variable is below a limit */
    if (goes_on_below != direction)
        report(env->c, DIAG_loop_direction, stmt->step->loc, variable->name->text,
               direction > 0 ? "greater" : "smaller");
}

/* for (int i = 0; j < n; i++), for (int i = 0; i < n; j++): i is declared here, j is a variable from
 * outside. */
static void check_loop_variable(Env *env, const Stmt *stmt) {
    const Decl *counter = stmt->init && stmt->init->kind == STMT_decl && stmt->init->decls.count == 1
                              ? stmt->init->decls.at[0]
                              : NULL;
    const Expr *condition = stmt->expr, *step = stmt->step;
    if (!counter || counter->kind != DECL_var || !condition || !step) return;
    if (condition->kind != EXPR_builtin || condition->args.count != 2 || step->kind != EXPR_update) return;
    const Decl *tested = variable_in(condition->args.at[0]), *limit = variable_in(condition->args.at[1]);
    const Decl *stepped = variable_in(step->a);
    bool tests = tested == counter || limit == counter, steps = stepped == counter;
    if (!tested || !stepped || tests == steps) return;
    const Decl *other = steps ? tested : stepped;
    if (steps && other->flavour != VAR_local) return;
    report(env->c, DIAG_loop_other_variable, steps ? condition->loc : step->loc, counter->name->text,
           steps ? "condition" : "step", other->name->text);
}

static void check_for(Env *env, Stmt *stmt) {
    Scope *outer = env->scope;
    push_scope(env);
    env->in_step = stmt->init && stmt->init->kind == STMT_expr;
    if (stmt->init) check_stmt(env, stmt->init);
    env->in_step = false;
    if (stmt->expr) stmt->expr = check_condition(env, stmt->expr);
    env->in_step = true;
    if (stmt->step) stmt->step = check_value(env, stmt->step);
    env->in_step = false;
    check_direction(env, stmt);
    check_loop_variable(env, stmt);
    Decl *counter = stmt->init && stmt->init->decls.count ? stmt->init->decls.at[0] : NULL;
    uint32_t assigned = counter ? counter->flags & DECL_ASSIGNED : 0;
    if (counter) counter->flags &= ~(uint32_t)DECL_ASSIGNED;
    check_loop_body(env, stmt);
    if (!counter || !(counter->flags & DECL_ASSIGNED)) check_max_iters(env, stmt);
    if (counter) counter->flags |= assigned;
    env->scope = outer;
}

static Expr *check_bound(Env *env, Expr *bound) {
    int64_t value;
    Expr *e = check_value_of(env, bound, type_basic(env->c->types, TYPE_int));
    if (e->kind != EXPR_error && !eval_number(env, e, &value) && !number_is_generic(env, e))
        report_expr(env->c, e, DIAG_not_constant);
    return e;
}

static void check_static_for(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    const Type *type = type_basic(c->types, TYPE_int);
    if (stmt->expr) stmt->expr = check_bound(env, stmt->expr);
    if (stmt->step) stmt->step = check_bound(env, stmt->step);
    Scope *outer = env->scope;
    push_scope(env);
    Decl *decl = stmt->decls.at[0];
    decl->parent = env->decl;
    decl->flavour = VAR_local;
    decl->modifiers |= MODIFIER_let;
    decl->type = type;
    decl->state = STATE_body;
    declare(env, decl);
    check_loop_body(env, stmt);
    env->scope = outer;
}

/* Cases seen so far; keys are never 0. */
typedef struct CaseValues {
    Map positive, negative;
} CaseValues;

static void check_case(Env *env, Stmt *stmt, const Type *type, CaseValues *values) {
    Checker *c = env->c;
    for (int i = 0; i < stmt->values.count; i++) {
        Expr *value = stmt->values.at[i] = check_value_of(env, stmt->values.at[i], type);
        int64_t number;
        if (value->kind == EXPR_error) continue;
        if (!eval_number(env, value, &number)) {
            if (!number_is_generic(env, value)) report_expr(c, value, DIAG_not_constant);
            continue;
        }
        Map *seen = number < 0 ? &values->negative : &values->positive;
        uint64_t key = (uint64_t)(number < 0 ? ~number : number) + 1;
        const Expr *other = map_get(seen, key);
        if (other) {
            report_expr(c, value, DIAG_duplicate_case);
            note(c, DIAG_note_other_here, other->loc);
        } else map_put(c->arena, seen, key, value);
    }
}

static void begin_section(const Scope *scope) {
    for (int i = 0; i < scope->names.count; i++) {
        const DeclVec *decls = scope->names.entries[i].value;
        for (int k = 0; k < decls->count; k++) decls->at[k]->flags |= DECL_BEFORE_CASE;
    }
}

static void check_switch(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    Expr *e = stmt->expr = check_value(env, stmt->expr);
    const Type *type = e->type;
    bool fine = has_error(type) || type_is_integer(type) || type->kind == TYPE_bool ||
                type->kind == TYPE_enum ||
                (type_is_abstract(type) && conforms_to(c, type, c->known.__BuiltinIntegerType));
    if (!fine) {
        report_expr(c, e, DIAG_bad_switch, type_str(c, type));
        type = ERROR_TYPE(c);
    }
    CaseValues seen = {0};
    bool has_default = false;
    for (int i = 0; stmt->then && i < stmt->then->body.count; i++) {
        Stmt *s = stmt->then->body.at[i];
        if (s->kind != STMT_case) continue;
        if (s->is_default && has_default) report(c, DIAG_duplicate_case, s->loc);
        has_default |= s->is_default;
        s->target = stmt;
        check_case(env, s, type, &seen);
    }
    Stmt *breakable = env->breakable;
    env->breakable = stmt;
    int in_switch = env->in_switch;
    env->in_switch = 1;
    if (stmt->then) check_stmt(env, stmt->then);
    env->in_switch = in_switch;
    env->breakable = breakable;
}

/* ---- jumps */

/* It runs while its block is being left already: nothing in it can jump out of it. */
static void check_defer(Env *env, Stmt *stmt) {
    Env inside = *env;
    inside.breakable = inside.loop = NULL;
    inside.labels = NULL;
    inside.tries = NULL;
    inside.in_defer = true;
    check_nested(&inside, stmt->then);
}

static bool refuse_in_defer(Env *env, const Stmt *stmt, const char *word) {
    if (env->in_defer) report(env->c, DIAG_defer_jump, stmt->loc, word);
    return env->in_defer;
}

static Stmt *labelled(Env *env, Name label) {
    for (LabelList *l = env->labels; l; l = l->outer)
        if (l->label == label) return l->stmt;
    return NULL;
}

static void tell_static_jump(Env *env, const Stmt *stmt) {
    if (stmt->target && stmt->target->kind == STMT_static_for)
        diag_portable(env->c->diags, stmt->loc, "'break' or 'continue' in a '$for'");
}

static void check_break(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    if (stmt->label) {
        stmt->target = labelled(env, stmt->label);
        if (stmt->target) return;
        report(c, DIAG_unknown_label, stmt->loc, stmt->label->text);
        stmt->target = env->breakable;
        return;
    }
    stmt->target = env->breakable;
    tell_static_jump(env, stmt);
    if (!stmt->target && refuse_in_defer(env, stmt, "break")) return;
    if (!stmt->target) report(c, DIAG_jump_outside, stmt->loc, "break", "a loop or switch");
}

static void check_continue(Env *env, Stmt *stmt) {
    stmt->target = env->loop;
    tell_static_jump(env, stmt);
    if (!stmt->target && refuse_in_defer(env, stmt, "continue")) return;
    if (!stmt->target) report(env->c, DIAG_jump_outside, stmt->loc, "continue", "a loop");
}

/* `goto label;` reads as a variable of a type that does not exist: that is told there. */
static bool is_for_goto(const Env *env, Name label) {
    const Decl *found = env->decl->kind == DECL_func ? find_local_decl(env->decl->body, label) : NULL;
    const Expr *type = found ? found->type_expr : NULL;
    return type && type->kind == EXPR_name && strcmp(type->name->text, "goto") == 0;
}

static void check_label(Env *env, Stmt *stmt) {
    Stmt *inner = stmt->then;
    bool fine = inner && (inner->kind == STMT_for || inner->kind == STMT_while || inner->kind == STMT_do ||
                          inner->kind == STMT_switch);
    if (inner && inner->kind == STMT_decl) { /* nothing can jump there */
        check_stmt(env, inner);
        return;
    }
    if (!fine && !is_for_goto(env, stmt->label)) report(env->c, DIAG_label_misplaced, stmt->loc);
    LabelList here = {env->labels, stmt->label, inner};
    env->labels = &here;
    if (inner) check_stmt(env, inner);
    env->labels = here.outer;
}

/* return x; in a constructor: this = x; return; */
static Expr *assign_this(Env *env, Expr *value) {
    Checker *c = env->c;
    Expr *object = check_term(env, expr_new(c->arena, EXPR_this, value->loc));
    value = check_value_of(env, value, object->type);
    if (value->kind == EXPR_error || value->kind == EXPR_this) return NULL;
    Expr *assign = expr_new(c->arena, EXPR_assign, value->loc);
    assign->a = object;
    assign->b = value;
    assign->type = object->type;
    assign->flags = EXPR_CHECKED;
    return assign;
}

/* Is the place that a `ref` accessor returns in a buffer, in group-shared memory or behind a pointer,
 * whatever becomes of the object? If it is so of what the accessors give that are added to `given_by`. */
static bool lies_elsewhere(Checker *c, Expr *e, ExprVec *given_by) {
    switch ((ExprKind)e->kind) {
    case EXPR_deref: return true;
    case EXPR_paren: return lies_elsewhere(c, e->a, given_by);
    case EXPR_swizzle: return e->nlanes == 1 && lies_elsewhere(c, e->a, given_by);
    case EXPR_element:
        return e->a->type->kind == TYPE_buffer || e->a->type->kind == TYPE_pointer ||
               lies_elsewhere(c, e->a, given_by);
    case EXPR_decl:
        if (e->decl->kind == DECL_property || e->decl->kind == DECL_subscript) {
            vec_push(c->arena, given_by, e);
            return true;
        }
        if (e->decl->kind != DECL_var) return false;
        return e->decl->flavour == VAR_field && e->a && !(e->decl->modifiers & MODIFIER_static)
                   ? lies_elsewhere(c, e->a, given_by)
                   : (e->decl->modifiers & MODIFIER_groupshared) != 0;
    default: return false;
    }
}

static void check_return(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    if (refuse_in_defer(env, stmt, "return")) {
        if (stmt->expr) stmt->expr = check_term(env, stmt->expr);
        return;
    }
    if (env->lambda) {
        lambda_return(env, stmt);
        return;
    }
    const Type *result = env->sig ? env->sig->result : ERROR_TYPE(c);
    bool no_value = result->kind == TYPE_void || (env->sig && env->sig->is_init);
    if (!stmt->expr) {
        if (!no_value && !has_error(result))
            report(c, DIAG_return_needs_value, stmt->loc, type_str(c, result));
        return;
    }
    if (env->sig && env->sig->is_init) {
        stmt->expr = assign_this(env, stmt->expr);
        return;
    }
    if (no_value) {
        stmt->expr = check_value(env, stmt->expr);
        if (stmt->expr->type->kind != TYPE_void && !has_error(stmt->expr->type))
            report(c, DIAG_return_no_value, stmt->loc);
        return;
    }
    if (env->decl->flavour == FUNC_ref) {
        stmt->expr = check_value(env, stmt->expr);
        Sema *sema = decl_sema(c, env->decl);
        if (!lies_elsewhere(c, stmt->expr, &sema->given_by)) sema->gives_own = true;
        if (require_writable(env, stmt->expr, stmt->expr->loc) && stmt->expr->type != result)
            report(c, DIAG_cannot_convert, stmt->expr->loc, type_str(c, stmt->expr->type),
                   type_str(c, result));
        return;
    }
    stmt->expr = check_value_of(env, stmt->expr, result);
}

static void check_static_assert(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    int64_t value;
    stmt->expr = check_condition(env, stmt->expr);
    if (stmt->expr->kind == EXPR_error) return;
    if (eval_number(env, stmt->expr, &value)) {
        if (!value)
            report(c, DIAG_static_assert, stmt->loc, format_text(c->arena, "%.*s", STR_ARG(stmt->text)));
    } else if (!number_is_generic(env, stmt->expr)) report(c, DIAG_not_constant, stmt->expr->loc);
}

static void check_decl_stmt(Env *env, Stmt *stmt) {
    for (int i = 0; i < stmt->decls.count; i++) {
        Decl *decl = stmt->decls.at[i];
        switch ((DeclKind)decl->kind) {
        case DECL_var: check_local(env, decl); break;
        case DECL_struct:
        case DECL_enum:
        case DECL_alias: declare_local_type(env, decl); break;
        case DECL_using: add_using(env, &env->scope->usings, decl); break;
        default: break;
        }
    }
}

static void check_discarded(Env *env, const Expr *e) {
    if (e->kind != EXPR_invoke || !e->decl || !find_attribute(e->decl, "NoDiscard")) return;
    const char *name = e->decl->name ? e->decl->name->text : "?";
    report_expr(env->c, e, DIAG_discarded, name);
    note(env->c, DIAG_note_cast_to_void, 0, name);
}

void check_stmt(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    if (stmt->attributes.count) check_stmt_attributes(env, stmt);
    switch ((StmtKind)stmt->kind) {
    case STMT_empty: break;
    case STMT_expr: {
        Expr *e = check_term(env, stmt->expr);
        stmt->expr = e->kind == EXPR_list ? error_expr(c, e->loc) : check_value(env, e);
        check_discarded(env, stmt->expr);
        break;
    }
    case STMT_decl: check_decl_stmt(env, stmt); break;
    case STMT_block: check_block(env, stmt); break;
    case STMT_if: check_if(env, stmt); break;
    case STMT_switch: check_switch(env, stmt); break;
    case STMT_target_switch: check_target_switch(env, stmt); break;
    case STMT_intrinsic_asm: check_intrinsic_asm(env, stmt); break;
    case STMT_case:
        if (!env->in_switch) report(c, DIAG_jump_outside, stmt->loc, "case", "a switch");
        else if (!stmt->target) report(c, DIAG_case_inside, stmt->loc, stmt->is_default ? "default" : "case");
        else begin_section(env->scope);
        break;
    case STMT_for: check_for(env, stmt); break;
    case STMT_while:
        stmt->expr = check_condition(env, stmt->expr);
        check_loop_body(env, stmt);
        check_max_iters(env, stmt);
        break;
    case STMT_do:
        check_loop_body(env, stmt);
        stmt->expr = check_condition(env, stmt->expr);
        break;
    case STMT_break: check_break(env, stmt); break;
    case STMT_continue: check_continue(env, stmt); break;
    case STMT_return: check_return(env, stmt); break;
    case STMT_throw: check_throw(env, stmt); break;
    case STMT_try: check_try_block(env, stmt); break;
    case STMT_catch: break; /* with its block */
    case STMT_defer: check_defer(env, stmt); break;
    case STMT_label: check_label(env, stmt); break;
    case STMT_static_for: check_static_for(env, stmt); break;
    case STMT_static_assert: check_static_assert(env, stmt); break;
    case STMT_discard: check_discard(env, stmt); break;
    }
}

/* ---- bodies */

Decl *hidden_variable(Env *env, Loc loc, Name name, const Type *type) {
    Decl *decl = decl_new(env->c->arena, DECL_var, loc, name);
    decl->flavour = VAR_local;
    decl->parent = env->decl;
    decl->type = type;
    decl->state = STATE_body;
    decl->modifiers = MODIFIER_synthesized;
    return decl;
}

/* __return_val was mentioned: it is declared first, and returned at the end. */
static void complete_return_value(Checker *c, Decl *variable, Stmt *body) {
    Stmt *first = stmt_new(c->arena, STMT_decl, body->loc),
         *last = stmt_new(c->arena, STMT_return, body->loc);
    vec_push(c->arena, &first->decls, variable);
    last->expr = decl_expr(c, body->loc, variable, NULL, NULL);
    last->expr->flags |= EXPR_PLACE;
    StmtVec all = {0};
    vec_push(c->arena, &all, first);
    for (int i = 0; i < body->body.count; i++) vec_push(c->arena, &all, body->body.at[i]);
    if (!always_leaves(body)) vec_push(c->arena, &all, last);
    body->body = all;
}

static void check_function_body(Checker *c, Decl *func) {
    Decl *ref = decl_sema(c, func)->ref_accessor;
    if (ref) check_decl_body(c, ref);
    if (ref) func->flags |= ref->flags & DECL_BODY_ERRORS;
    Stmt *body = syntax_body(func);
    if (!body) body = func->body = target_body(c, func);
    if (!body) return;
    Env env = env_for_decl(c, func);
    env.sig = decl_sema(c, func)->sig;
    for (int i = 0; i < env.sig->nparams; i++)
        if (env.sig->params[i].decl) check_default_argument(c, env.sig->params[i].decl);
    int failures = c->diags->failures;
    check_stmt(&env, body);
    Decl *return_value = decl_sema(c, func)->return_value;
    if (return_value) complete_return_value(c, return_value, body);
    bool needs_value = env.sig->result->kind != TYPE_void && !env.sig->is_init && !has_error(env.sig->result);
    bool is_sound = c->diags->failures == failures; /* or it may be a mistake in what was to return */
    if (needs_value && is_sound && !always_leaves(body))
        report(c, DIAG_missing_return, func->loc, func->name ? func->name->text : "get");
}

static void check_recomputed(Checker *c, Decl *func) {
    bool warns = (func->flags & DECL_RECOMPUTE) && !(func->flags & (DECL_RECOMPUTE_EFFECTS | DECL_PRELUDE));
    if (warns && check_has_effect(c, func, EFFECT_output))
        report(c, DIAG_recompute_effects, func->loc, function_name(c, func));
}

static void check_variable_value(Checker *c, Decl *decl) {
    if (!decl->init || (decl->init->flags & EXPR_CHECKED) || !decl->type) return;
    Env env = env_for_decl(c, decl->parent ? decl->parent : decl);
    env.decl = decl;
    env.this_type = NULL;
    decl->init = check_value_of(&env, decl->init, decl->type);
    decl->init->flags |= EXPR_CHECKED;
}

/* Functions: the body. Variables: the initialiser. */
void check_decl_body(Checker *c, Decl *decl) {
    ensure_header(c, decl);
    if (decl->state != STATE_header) return;
    decl->state = STATE_body_busy;
    const Decl *context = c->context;
    c->context = decl;
    int muted = c->diags->muted, errors = c->diags->errors, depth = c->expr_depth;
    c->diags->muted = 0;
    c->expr_depth = 0;
    Map *optional = c->optional_bounds;
    c->optional_bounds = NULL;
    int large = c->large.count;
    if (decl->kind == DECL_func) {
        check_function_body(c, decl);
        if (c->diags->errors > errors) decl->flags |= DECL_BODY_ERRORS;
        else {
            check_assigned(c, decl);
            check_differentiable_body(c, decl);
            check_recomputed(c, decl);
        }
    } else if (decl->kind == DECL_var) check_variable_value(c, decl);
    report_large_numbers(c, large);
    c->optional_bounds = optional;
    c->diags->muted = muted;
    c->expr_depth = depth;
    c->context = context;
    decl->state = STATE_body;
}
