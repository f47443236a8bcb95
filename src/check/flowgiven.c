/* Functions that are given to functions which differentiate them: what has no derivative, or loses one, is an
 * error where it is given.
 *
 *     float slope(functype(float) -> float f, float x) { var p = diffPair(x); bwd_diff(f)(p, 1.0); return p.d; }
 *     slope((float x) => plain(x), 1.0)
 *
 * Calls are noted as they are checked; what becomes of a parameter is known when all bodies are. One is
 * differentiated by the operators, by a derivative that takes it, and by a function that it is handed on to.
 * The functions of the library that take functions all do it, and say how. */
#include "check/flow.h"

/* Beside LOST_fwd and LOST_bwd: in the one that it has, or that is cheaper; backward, and that forward. */
enum { GIVEN_any = 4, GIVEN_twice = 8 };

/* [__differentiates(forward)]; backward is what most do. */
static uint8_t modes_of_library(const Decl *func) {
    const Attribute *attribute = find_attribute(func, "__differentiates");
    const char *how = attribute ? attribute->args.at[0]->name->text : "";
    if (strcmp(how, "forward") == 0) return LOST_fwd;
    if (strcmp(how, "either") == 0) return GIVEN_any;
    return strcmp(how, "twice") == 0 ? LOST_bwd | GIVEN_twice : LOST_bwd;
}

static uint8_t known_modes(Checker *c, const Decl *param) {
    return (uint8_t)(uintptr_t)map_get(&c->differentiated, PTR_KEY(param));
}

static bool add_modes(Checker *c, const Decl *param, uint8_t modes) {
    uint8_t known = known_modes(c, param);
    if ((known | modes) == known) return false;
    map_put(c->arena, &c->differentiated, PTR_KEY(param), (void *)(uintptr_t)(known | modes));
    return true;
}

void flow_given_differentiated(Checker *c, const Decl *param, uint8_t modes) { add_modes(c, param, modes); }

/* Does it conform to that interface of the library, with any arguments? */
static bool is_some(Checker *c, const Type *type, Name interface) {
    DeclVec *found = scope_find(scope_inside(c, c->prelude), interface);
    return found && check_find_conformance(c, type, found->at[0]);
}

static bool promises_derivative(Checker *c, const GivenFunction *given) {
    if (given->param->type->kind == TYPE_function) return true;
    const Decl *context = c->context;
    c->context = given->callee;
    bool promised = is_some(c, given->param->type, c->known.IDifferentiableFunc);
    c->context = context;
    return promised;
}

static uint8_t modes_of(Checker *c, const GivenFunction *given) {
    if (!(given->callee->flags & DECL_PRELUDE)) return known_modes(c, given->param);
    return promises_derivative(c, given) ? modes_of_library(given->callee) : 0;
}

/* ---- calls */

static const Expr *plain_arg(const Expr *arg) {
    while (arg && (arg->kind == EXPR_convert || arg->kind == EXPR_paren || arg->kind == EXPR_expand))
        arg = arg->a;
    return arg;
}

/* Of a pack: its elements. */
static bool can_be_function(const Type *type) {
    if (type && type->kind == TYPE_expand) type = type->args[0];
    return type && (type->kind == TYPE_function || type->kind == TYPE_param || type->kind == TYPE_each);
}

/* Of a parameter that takes anything: a lambda, or an object that may have a call operator of its own. */
static bool is_worth_noting(Checker *c, const GivenFunction *given) {
    const Expr *arg = plain_arg(given->arg);
    if (!arg || !arg->type || !can_be_function(given->param->type)) return false;
    if (given->param->type->kind == TYPE_function) return true;
    if (arg->type->kind == TYPE_param || arg->type->kind == TYPE_each)
        return is_some(c, arg->type, c->known.IMutatingFunc);
    if (arg->type->kind != TYPE_struct) return false;
    const Decl *type = arg->type->decl;
    return !(given->callee->flags & DECL_PRELUDE) || (type->modifiers & MODIFIER_synthesized);
}

/* The parameter of the function around that is handed on; NULL: it is something else. */
static const Decl *handed_on(const Expr *arg) {
    arg = plain_arg(arg);
    if (arg && arg->kind == EXPR_each) arg = arg->a;
    bool param = arg && arg->kind == EXPR_decl && arg->decl->kind == DECL_var &&
                 arg->decl->flavour == VAR_param && can_be_function(arg->decl->type);
    return param ? arg->decl : NULL;
}

static uint8_t modes_of_call(const Expr *call) {
    uint8_t modes = 0;
    for (int i = 0; i < call->nmodes; i++) modes |= call->modes[i] == DIFF_fwd ? LOST_fwd : LOST_bwd;
    return modes;
}

static void request(Checker *c, Decl *func, uint8_t lost, Loc loc) {
    uint8_t modes[2];
    int nmodes = 0;
    if (lost & LOST_fwd) modes[nmodes++] = DIFF_fwd;
    if (lost & LOST_bwd) modes[nmodes++] = DIFF_bwd;
    flow_request(c, func, modes, nmodes, loc);
}

/* In one of the modes at least. */
static bool is_plain(Checker *c, Decl *func, uint8_t modes) {
    if (modes & LOST_both) return flow_is_plain(c, func, modes & LOST_both);
    return flow_is_plain(c, func, LOST_fwd) && flow_is_plain(c, func, LOST_bwd);
}

static void report_plain(Checker *c, Decl *func, const Expr *arg, const char *taker) {
    report(c, DIAG_not_differentiable, arg->loc, function_name(c, func), taker);
    note(c, DIAG_note_mark_differentiable, func->loc, function_name(c, func));
}

static void judge(Checker *c, const GivenFunction *given, uint8_t modes, const char *taker) {
    const Expr *arg = given->arg;
    Decl *func = flow_function_arg(c, arg);
    if (!func || (func->flags & DECL_PRELUDE)) return;
    if (func->parent->modifiers & MODIFIER_synthesized) flow_request_lambda(c, func);
    else if (is_plain(c, func, modes)) report_plain(c, func, arg, taker);
    if ((modes & LOST_bwd) && given->caller) flow_reverses(c, given->caller, func);
    if (modes & GIVEN_twice) modes |= LOST_fwd;
    if (modes & LOST_both) request(c, func, modes, arg->loc);
    else if (flow_loses(c, func, DIFF_fwd) && flow_loses(c, func, DIFF_bwd))
        request(c, func, LOST_fwd, arg->loc);
}

/* Derivatives have parameters of the same names, but not all of them. */
static const Decl *param_of(const Expr *call, const FuncSig *sig, int arg) {
    int index = sig_param_of(sig, call->args.count, arg);
    if (index >= sig->nparams) return NULL;
    if (!call->nmodes) return sig->params[index].decl;
    for (int i = 0; i < call->decl->params.count; i++)
        if (call->decl->params.at[i]->name == sig->params[index].name) return call->decl->params.at[i];
    return NULL;
}

void flow_given_args(Env *env, const Expr *call, const FuncSig *sig) {
    Checker *c = env->c;
    if (env->decl && (env->decl->flags & DECL_PRELUDE)) return;
    uint8_t modes = modes_of_call(call);
    for (int i = 0; i < call->args.count; i++) {
        const Decl *param = param_of(call, sig, i), *on = handed_on(call->args.at[i]);
        if (!param) continue;
        bool constant = param->modifiers & MODIFIER_no_diff;
        GivenFunction given = {env->decl, call->decl, param, call->args.at[i]};
        if (modes && !constant && on) add_modes(c, on, modes);
        else if (modes && !constant)
            judge(c, &given, modes, call->modes[0] == DIFF_fwd ? "fwd_diff" : "bwd_diff");
        if (is_worth_noting(c, &given)) vec_push(c->arena, &c->given_functions, given);
    }
}

/* ---- when all is known */

static void hand_on(Checker *c) {
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < c->given_functions.count; i++) {
            const GivenFunction *given = &c->given_functions.at[i];
            const Decl *on = handed_on(given->arg);
            if (on && add_modes(c, on, modes_of(c, given))) more = true;
        }
    }
}

void flow_given(Checker *c) {
    for (bool more = true; more;) {
        more = false;
        hand_on(c);
        for (int i = 0; i < c->given_functions.count; i++) {
            GivenFunction given = c->given_functions.at[i];
            uint8_t modes = given.arg && !handed_on(given.arg) ? modes_of(c, &given) : 0;
            if (!modes) continue;
            c->given_functions.at[i].arg = NULL;
            judge(c, &given, modes, given.callee->name->text);
            more = true;
        }
    }
}

/* ---- what a derivative keeps, for who chooses the mode */

/* What the library calls for a lambda has it as a generic argument. */
static bool loses_behind(Checker *c, Decl *func, const Subst *subst, DiffMode mode) {
    if (!(func->flags & DECL_PRELUDE)) return flow_loses(c, func, mode);
    const Type *first = subst ? subst_find(subst, func, 0) : NULL;
    Decl *call = first && first->kind == TYPE_struct ? flow_call_of(c, first) : NULL;
    return call && flow_loses(c, call, mode);
}

bool check_keeps_derivative(Checker *c, Decl *func, const Subst *subst, DiffMode mode) {
    return check_is_differentiable(c, func, mode) && !loses_behind(c, func, subst, mode);
}
