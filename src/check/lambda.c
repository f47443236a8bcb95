/* Lambdas. Each becomes a struct with one field per captured variable and a method operator(); it conforms to
 * IFunc with its own signature. Variables are captured by value when the lambda is made, and are constants
 * inside; a pack of them is a tuple. */
#include "check/checker.h"

struct LambdaState {
    LambdaState *outer;
    Env *around;        /* where the lambda stands */
    Decl *type;         /* its struct */
    Decl *call;         /* its operator() */
    Expr *node;         /* EXPR_lambda: args are the captured values */
    DeclVec captured;   /* variables, in the order of the fields; NULL stands for `this` */
    const Type *result; /* known from the first return */
};

static Expr *lambda_object(Env *env, Loc loc) {
    Checker *c = env->c;
    Expr *self = expr_new(c->arena, EXPR_this, loc);
    self->type = type_of_type_decl(c, env->lambda->type);
    self->flags = EXPR_CHECKED | EXPR_IMPLICIT | EXPR_PLACE | EXPR_READONLY;
    return self;
}

static Decl *capture_field(Env *env, Loc loc, Decl *variable, Name name, Expr *value) {
    Checker *c = env->c;
    LambdaState *state = env->lambda;
    for (int i = 0; i < state->captured.count; i++)
        if (state->captured.at[i] == variable) return state->type->members.at[i];
    Decl *field = decl_new(c->arena, DECL_var, loc, name);
    field->flavour = VAR_field;
    field->parent = state->type;
    field->type = value->type;
    field->state = STATE_body;
    vec_push(c->arena, &state->type->members, field);
    vec_push(c->arena, &state->captured, variable);
    vec_push(c->arena, &state->node->args, value);
    return field;
}

static Expr *field_value(Env *env, Loc loc, Decl *field) {
    Checker *c = env->c;
    Expr *e = decl_expr(c, loc, field, subst_of_type(c, type_of_type_decl(c, env->lambda->type)),
                        lambda_object(env, loc));
    e->flags |= EXPR_PLACE | EXPR_READONLY;
    return e;
}

Expr *lambda_capture(Env *env, Expr *expr, Decl *decl) {
    bool local = decl->flavour == VAR_local || decl->flavour == VAR_param;
    if (!local || decl->parent == env->decl || (decl->modifiers & MODIFIER_static)) return expr;
    if (decl->type->kind == TYPE_function) return expr; /* known at compile time, nothing to carry */
    LambdaState *state = env->lambda;
    Expr *value = expr;
    if (state->around->lambda) value = lambda_capture(state->around, expr, decl);
    if (value->type->kind == TYPE_expand) value = pack_as_tuple(env->c, value);
    return field_value(env, expr->loc, capture_field(env, expr->loc, decl, decl->name, value));
}

/* Is this a copy that the lambda holds? */
bool is_captured(const Env *env, const Expr *e) {
    return env->lambda && e->kind == EXPR_decl && e->decl->parent == env->lambda->type;
}

bool is_captured_pack(const Env *env, const Expr *e) {
    if (!is_captured(env, e)) return false;
    const LambdaState *state = env->lambda;
    for (int i = 0; i < state->captured.count; i++)
        if (state->type->members.at[i] == e->decl)
            return state->captured.at[i] && state->captured.at[i]->type->kind == TYPE_expand;
    return false;
}

bool lambda_this(Env *env, Expr *expr, Expr **out) {
    Checker *c = env->c;
    LambdaState *state = env->lambda;
    Expr *outer = expr_new(c->arena, EXPR_this, expr->loc);
    outer->flags |= EXPR_IMPLICIT;
    outer = check_term(state->around, outer);
    if (outer->kind == EXPR_error) {
        *out = outer;
        return true;
    }
    *out = field_value(env, expr->loc, capture_field(env, expr->loc, NULL, c->known._this, outer));
    return true;
}

void lambda_return(Env *env, Stmt *stmt) {
    Checker *c = env->c;
    LambdaState *state = env->lambda;
    if (!stmt->expr) {
        if (!state->result) state->result = type_basic(c->types, TYPE_void);
        else if (state->result->kind != TYPE_void)
            report(c, DIAG_return_needs_value, stmt->loc, type_str(c, state->result));
        return;
    }
    if (state->result) stmt->expr = check_value_of(env, stmt->expr, state->result);
    else {
        stmt->expr = check_value(env, stmt->expr);
        state->result = stmt->expr->type;
    }
}

static Decl *lambda_struct(Env *env, Expr *e, const FuncSig *sig) {
    Checker *c = env->c;
    Text text = {.arena = c->arena};
    text_add(&text, STR("lambda("));
    for (int i = 0; i < sig->nparams; i++)
        text_printf(&text, "%s%s", i ? ", " : "", type_str(c, sig->params[i].type));
    text_char(&text, ')');
    Name name = name_of(c->names, text_str(&text));
    Decl *type = decl_new(c->arena, DECL_struct, e->loc, name);
    type->parent = env->decl;
    type->modifiers = MODIFIER_synthesized;
    type->state = STATE_header;
    decl_sema(c, type)->bases_done = true;
    type->scope = scope_new(c, env->scope, type);
    return type;
}

static bool lambda_params(Env *env, Decl *call, FuncSig *sig) {
    Checker *c = env->c;
    sig->params = arena_array(c->arena, ParamSig, call->params.count ? call->params.count : 1);
    sig->nparams = call->params.count;
    for (int i = 0; i < sig->nparams; i++) {
        Decl *param = call->params.at[i];
        param->flavour = VAR_param;
        param->parent = call;
        Candidates found = {0};
        bool untyped = !param->name && param->type_expr && param->type_expr->kind == EXPR_name &&
                       !param->type_expr->decl && !lookup_name(env, param->type_expr->name, &found) &&
                       !builtin_named_type(c, param->type_expr->name); /* (x) => ... */
        if (untyped) {
            report(c, DIAG_var_needs_type, param->loc, param->type_expr->name->text);
            return false;
        }
        if (!param->type_expr) {
            report(c, DIAG_var_needs_type, param->loc, param->name ? param->name->text : "?");
            return false;
        }
        param->type = resolve_type(env, param->type_expr);
        param->state = STATE_header;
        uint8_t pass = param->modifiers & MODIFIER_out
                           ? (param->modifiers & MODIFIER_in ? PASS_inout : PASS_out)
                           : PASS_in;
        sig->params[i] = (ParamSig){.name = param->name, .type = param->type, .pass = pass, .decl = param};
        sig->params[i].no_diff = (param->modifiers & MODIFIER_no_diff) != 0;
        if (is_error(param->type)) return false;
    }
    return true;
}

/* IFunc<R, P...> */
static void conform_to_func(Checker *c, Decl *type, const FuncSig *sig) {
    DeclVec *found = scope_find(scope_inside(c, c->prelude), c->known.IFunc);
    if (!found) return;
    TypeVec params = {0};
    for (int i = 0; i < sig->nparams; i++) vec_push(c->arena, &params, sig->params[i].type);
    const Type *args[2] = {sig->result,
                           type_make(c->types, TYPE_pack, 0, NULL, NULL, 0, params.at, params.count)};
    const Type *interface =
        type_make(c->types, TYPE_interface, 0, found->at[0], found->at[0]->name, 0, args, 2);
    vec_push(c->arena, &decl_sema(c, type)->interfaces, interface);
    DeclVec *differentiable = scope_find(scope_inside(c, c->prelude), c->known.IDifferentiableFunc);
    if (!differentiable) return;
    interface = type_make(c->types, TYPE_interface, 0, differentiable->at[0], differentiable->at[0]->name, 0,
                          args, 2);
    vec_push(c->arena, &decl_sema(c, type)->interfaces, interface);
}

/* What it holds has a derivative as it had outside. */
static void conform_to_differentiable(Checker *c, Decl *type) {
    for (int i = 0; i < type->members.count; i++) {
        const Decl *field = type->members.at[i];
        if (field->kind != DECL_var || !is_differentiable_type(c, field->type)) continue;
        vec_push(c->arena, &decl_sema(c, type)->interfaces, interface_named(c, c->known.IDifferentiable));
        return;
    }
}

static Expr *check_inside(Env *env, Expr *e) {
    Checker *c = env->c;
    Decl *call = e->decl;
    call->name = c->known.call;
    call->flavour = FUNC_plain;
    call->state = STATE_body;
    call->flags |= DECL_FWD | DECL_BWD;
    FuncSig *sig = decl_sema(c, call)->sig = arena_new(c->arena, FuncSig);
    sig->result = ERROR_TYPE(c);
    if (!lambda_params(env, call, sig)) return error_expr(c, e->loc);
    Decl *type = call->parent = lambda_struct(env, e, sig);
    LambdaState state = {.outer = env->lambda, .around = env, .type = type, .call = call, .node = e};
    Env inside = *env;
    inside.lambda = &state;
    inside.decl = call;
    inside.sig = sig;
    inside.breakable = inside.loop = NULL;
    inside.labels = NULL;
    inside.tries = NULL;
    inside.scope = scope_new(c, env->scope, NULL);
    for (int i = 0; i < call->params.count; i++) scope_add(c, inside.scope, call->params.at[i]);
    state.result = call->type;
    if (call->body_expr && state.result) {
        call->body_expr = check_value_of(&inside, call->body_expr, state.result);
    } else if (call->body_expr) {
        call->body_expr = check_value(&inside, call->body_expr);
        state.result = call->body_expr->type;
    } else if (syntax_body(call)) {
        check_stmt(&inside, call->body);
        if (!state.result) state.result = type_basic(c->types, TYPE_void);
    }
    check_foreign_lambda(env, call);
    if (!state.result || has_error(state.result)) return error_expr(c, e->loc);
    sig->result = state.result;
    sig->has_this = true;
    sig->this_type = type_of_type_decl(c, type);
    for (int i = 0; i < type->members.count; i++) scope_add(c, type->scope, type->members.at[i]);
    vec_push(c->arena, &type->members, call);
    scope_add(c, type->scope, call);
    decl_sema(c, type)->captures = state.captured;
    conform_to_func(c, type, sig);
    conform_to_differentiable(c, type);
    e->type = type_of_type_decl(c, type);
    return e;
}

/* A lambda is one thing, whatever 'expand' is around it: the elements of that one are not its own. */
Expr *check_lambda(Env *env, Expr *e) {
    Checker *c = env->c;
    int depth = c->expand_depth;
    bool around = c->expand_around;
    c->expand_depth = 0;
    c->expand_around |= depth > 0;
    Expr *lambda = check_inside(env, e);
    c->expand_depth = depth;
    c->expand_around = around;
    return lambda;
}
