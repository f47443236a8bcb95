/* Functions as arguments: what fits a parameter `functype(P...) -> R`, and what its type tells about generic
 * parameters.
 *
 * A function fits, a lambda, or an object with a call operator: whatever is known when the program is
 * compiled. Its parameters are just P, its result R or something that converts to it. What differs from the
 * wanted type in its result or in what is no_diff, and derivatives, are put into a lambda that does just the
 * call; an object that holds data must be of the wanted type as it is, but for no_diff, which whoever calls
 * it sees to. So must a function that throws: lambdas do not. */
#include "check/checker.h"

bool type_mentions(const Type *type, const Decl *owner) {
    if (!(type->flags & TYPE_HAS_PARAM)) return false;
    if (type->kind == TYPE_param) return type->decl == owner;
    for (int i = 0; i < type->nargs; i++)
        if (type_mentions(type->args[i], owner)) return true;
    return false;
}

void function_type_parts(const Type *type, const Type **result, const Type *const **params, int *nparams) {
    *result = type->args[0];
    *params = type->args + 1;
    *nparams = type->nargs - 1;
}

static const Type *function_type(Checker *c, const FuncSig *sig, const Subst *subst) {
    TypeVec parts = {0};
    int64_t drops = 0;
    vec_push(c->arena, &parts, check_subst(c, sig->result, subst));
    for (int i = 0; i < sig->nparams; i++) {
        drops |= sig->params[i].no_diff ? type_function_drop(i + 1) : 0;
        vec_push(c->arena, &parts, check_subst(c, sig->params[i].type, subst));
    }
    return type_make(c->types, TYPE_function, sig_throws(sig) ? TYPE_THROWS : 0, NULL, NULL, drops, parts.at,
                     parts.count);
}

/* The functions that an argument may stand for: overloads, or the call operators of an object. NULL: it is no
 * function. */
static const Candidates *functions_of(Checker *c, const Expr *arg) {
    if (arg->kind == EXPR_overload) return arg->candidates;
    if (!arg->type || arg->type->kind != TYPE_struct) return NULL;
    Candidates *list = arena_new(c->arena, Candidates);
    return lookup_member(c, arg->type, c->known.call, list) ? list : NULL;
}

/* ---- inference */

/* What is known by now in place of the parameters that are inferred. */
static const Type *with_known(const Inference *inference, const Type *pattern) {
    Checker *c = inference->c;
    const Type **args = arena_array(c->arena, const Type *, inference->nargs);
    for (int i = 0; i < inference->nargs; i++)
        args[i] = inference->args[i] ? inference->args[i] : param_argument(c, inference->owner, i);
    return check_subst(c, pattern, subst_new(c, NULL, inference->owner, args, inference->nargs));
}

/* Are the parameters, as far as they are known, those of this function? Then `subst` has its generic
 * arguments. */
static bool takes_known(const Inference *inference, const Candidate *candidate, const FuncSig *sig,
                        const Type *wanted, const Subst **subst) {
    Checker *c = inference->c;
    const Type *result, *const *params;
    int nparams, n = generic_count(candidate->decl);
    function_type_parts(wanted, &result, &params, &nparams);
    *subst = candidate->subst;
    if (sig->nparams != nparams || sig_throws(sig) != ((wanted->flags & TYPE_THROWS) != 0)) return false;
    Inference own = {
        .c = c, .owner = candidate->decl, .args = arena_array(c->arena, const Type *, n + 1), .nargs = n};
    if (!take_written_args(&own, candidate)) return false;
    for (int i = 0; i < nparams && n; i++)
        if (!type_mentions(params[i], inference->owner))
            infer_match(&own, check_subst(c, sig->params[i].type, candidate->subst), params[i]);
    if (n && !infer_finish(&own, candidate->subst, subst)) return false;
    for (int i = 0; i < nparams; i++)
        if (!type_mentions(params[i], inference->owner) &&
            check_subst(c, sig->params[i].type, *subst) != params[i])
            return false;
    return true;
}

/* A single function that is not generic tells all there is, early; of others the one that takes what is known
 * by then. */
void infer_from_function(Inference *inference, const Type *pattern, const Expr *arg, bool early) {
    Checker *c = inference->c;
    const Candidates *list = functions_of(c, arg);
    bool single = list && list->count == 1 && !list->at[0].decl->generics;
    if (!list || single != early) return;
    const Type *wanted = with_known(inference, pattern);
    for (int i = 0; i < list->count; i++) {
        const Candidate *candidate = &list->at[i];
        FuncSig sig = derived_signature(c, candidate->decl, candidate->subst, arg->kind != EXPR_overload,
                                        list->modes, list->nmodes);
        const Subst *subst = candidate->subst;
        if (!single && !takes_known(inference, candidate, &sig, wanted, &subst)) continue;
        infer_match(inference, pattern, function_type(c, &sig, subst));
        return;
    }
}

/* ---- fitting */

enum { COST_no_diff = 1 }; /* only what is no_diff differs */

/* The cost of using this function where `type` is wanted; COST_none: it does not fit. */
static int candidate_cost(Env *env, const Candidates *list, const Candidate *candidate, bool is_object,
                          const Type *type, const Subst **subst) {
    Checker *c = env->c;
    const Type *result, *const *params;
    int nparams;
    function_type_parts(type, &result, &params, &nparams);
    FuncSig sig =
        derived_signature(c, candidate->decl, candidate->subst, is_object, list->modes, list->nmodes);
    if ((sig.has_this && !is_object) || sig.this_pass == PASS_inout || sig.nparams != nparams)
        return COST_none;
    Inference known = {.c = c, .owner = candidate->decl};
    if (!takes_known(&known, candidate, &sig, type, subst)) return COST_none;
    if (!constraints_hold(c, candidate->decl, *subst, 0)) return COST_none;
    bool same = true;
    for (int i = 0; i < nparams; i++) {
        if (sig.params[i].pass != PASS_in && !sig.params[i].is_error) return COST_none;
        same &= sig.params[i].no_diff == type_function_drops(type, i + 1);
    }
    const Type *given = check_subst(c, sig.result, *subst);
    if (given == result && same) return 0;
    if (sig_throws(&sig)) return COST_none; /* a lambda throws nothing */
    if (given == result) return COST_no_diff;
    int cost = type_conversion_cost(env, given, result);
    return cost < 0 && type_converts(env, given, result) ? COST_interface : cost;
}

static bool holds_nothing(Checker *c, const Expr *arg) {
    return arg->kind == EXPR_overload || check_all_fields(c, arg->type).count == 0;
}

/* The best of the functions that fit, the first of several; NULL: none. */
static const Candidate *best_function(Env *env, const Expr *arg, const Type *to, int *cost,
                                      const Subst **subst) {
    const Candidates *list = functions_of(env->c, arg);
    const Candidate *best = NULL;
    if (!list) return NULL;
    bool as_it_is = !holds_nothing(env->c, arg);
    for (int i = 0; i < list->count; i++) {
        const Subst *own;
        int now = candidate_cost(env, list, &list->at[i], arg->kind != EXPR_overload, to, &own);
        if (now == COST_no_diff && as_it_is) now = 0;
        if (now < 0 || (now > 0 && as_it_is) || (best && now >= *cost)) continue;
        best = &list->at[i];
        *cost = now;
        *subst = own;
    }
    return best;
}

int function_cost(Env *env, const Expr *arg, const Type *to) {
    const Subst *subst;
    int cost = COST_none;
    if (arg->type == to) return 0;
    if (arg->type && arg->type->kind == TYPE_function) {
        const Type *have, *wanted, *const *params;
        int nparams;
        function_type_parts(arg->type, &have, &params, &nparams);
        function_type_parts(to, &wanted, &params, &nparams);
        bool same = arg->type->nargs == to->nargs && !((arg->type->flags | to->flags) & TYPE_THROWS);
        for (int i = 1; i < to->nargs && same; i++) same = arg->type->args[i] == to->args[i];
        if (!same) return COST_none;
        return have == wanted ? COST_no_diff : type_conversion_cost(env, have, wanted);
    }
    bool found = best_function(env, arg, to, &cost, &subst) != NULL;
    return found && !holds_nothing(env->c, arg) ? COST_interface : cost; /* F : IFunc<...> is better */
}

/* ---- what is passed */

/* (P p, ...) => callee(p, ...), with the wanted result. */
static Expr *call_in_lambda(Env *env, Loc loc, Expr *callee, const Type *to) {
    Checker *c = env->c;
    const Type *result, *const *params;
    int nparams;
    function_type_parts(to, &result, &params, &nparams);
    Expr *lambda = expr_new(c->arena, EXPR_lambda, loc), *call = expr_new(c->arena, EXPR_call, loc);
    Decl *func = lambda->decl = decl_new(c->arena, DECL_func, loc, NULL);
    func->flavour = FUNC_lambda;
    func->parent = env->decl;
    func->type = result;
    func->body_expr = call;
    call->a = callee;
    for (int i = 0; i < nparams; i++) {
        Name name = name_from(c->names, format_text(c->arena, "argument%d", i + 1));
        Decl *param = decl_new(c->arena, DECL_var, loc, name);
        param->type_expr = type_expr(c, loc, params[i]);
        param->modifiers = type_function_drops(to, i + 1) ? MODIFIER_no_diff : 0;
        vec_push(c->arena, &func->params, param);
        Expr *arg = expr_new(c->arena, EXPR_name, loc);
        arg->name = name;
        vec_push(c->arena, &call->args, arg);
    }
    Expr *checked = check_value(env, lambda);
    return checked->kind == EXPR_error ? checked : convert_node(c, checked, to, CONVERT_same);
}

/* The one function of several that was chosen. */
static Expr *only_function(Checker *c, const Expr *e, const Candidate *candidate) {
    Expr *only = arena_copy(c->arena, e, sizeof *e);
    only->candidates = arena_copy(c->arena, e->candidates, sizeof *e->candidates);
    only->candidates->at = arena_copy(c->arena, candidate, sizeof *candidate);
    only->candidates->count = 1;
    only->flags |= EXPR_CHECKED;
    return only;
}

/* An object in place of a function: its call operator is what is called. */
static Expr *object_as_function(Checker *c, Expr *e, const Type *to, const Candidate *call,
                                const Subst *subst) {
    Expr *node = convert_node(c, e, to, CONVERT_same);
    node->decl = call->decl;
    node->subst = subst;
    return node;
}

static Expr *mismatch(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    if (e->kind == EXPR_overload)
        report_expr(c, e, DIAG_function_mismatch, e->name ? e->name->text : "?", type_str(c, to));
    else {
        report_expr(c, e, DIAG_cannot_convert, type_str(c, e->type), type_str(c, to));
        note_function_holds(c, e);
    }
    return error_expr(c, e->loc);
}

void note_function_holds(Checker *c, const Expr *e) {
    if (functions_of(c, e) && !holds_nothing(c, e)) note(c, DIAG_note_functype_captures, 0);
}

/* A parameter that is passed on where another type says what is no_diff: by a lambda, which names the
 * parameter, as one that holds data is passed as it is. */
static Expr *pass_on(Env *env, Expr *e, const Type *to) {
    Expr *node = call_in_lambda(env, e->loc, e, to);
    const Expr *param = e;
    while (param->kind == EXPR_paren) param = param->a;
    bool same_result = e->type->args[0] == to->args[0];
    if (node->kind == EXPR_convert && same_result && param->kind == EXPR_decl) node->decl = param->decl;
    return node;
}

Expr *coerce_function(Env *env, Expr *e, const Type *to) {
    Checker *c = env->c;
    int cost = COST_none;
    if (e->type == to) return e;
    if (function_cost(env, e, to) < 0) return mismatch(env, e, to);
    if (e->type && e->type->kind == TYPE_function) return pass_on(env, e, to);
    const Subst *subst = NULL;
    const Candidate *best = best_function(env, e, to, &cost, &subst);
    if (e->kind == EXPR_overload) {
        if (cost || e->candidates->nmodes) return call_in_lambda(env, e->loc, only_function(c, e, best), to);
        Expr *node = decl_expr(c, e->loc, best->decl, subst, NULL);
        node->type = to;
        return node;
    }
    if (cost == 0 && (e->kind == EXPR_lambda || !holds_nothing(c, e)))
        return object_as_function(c, e, to, best, subst);
    return call_in_lambda(env, e->loc, e->kind == EXPR_lambda ? e : default_value(env, e->loc, e->type), to);
}
