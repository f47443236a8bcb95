/* __func_extension __apply(f)(params) -> Tuple<R, Context>: a forward pass that keeps a context, whose call
 * operator is the backward derivative. It becomes what [ForwardPass] and [BackwardDerivative] are: two
 * functions are made,
 *
 *   R pass(params, out Context state) { let both = apply(params); state = both._1; return both._0; }
 *   void bwd(pairs, dResult, Context state) { var dx = {}; state(dx, dResult); x = diffPair(x.p, dx); }
 *
 * and nothing behind knows the difference. The apply of a method is a method itself, of an extension that is
 * made around it; there the two functions are static, and take the object as their first parameter. In the
 * same way a derivative whose signature only nearly agrees is adapted. */
#include "check/checker.h"

typedef struct Maker {
    Checker *c;
    Loc loc;
    Decl *func;         /* being made */
    const Subst *subst; /* its own parameters for those of the function that was written */
    Stmt *body;
} Maker;

/* ---- the apply of a method */

static Decl *struct_named(Checker *c, Decl *from, const Expr *type) {
    Env env = env_for_decl(c, from->parent);
    Candidates list = {0};
    if (type->kind == EXPR_apply) type = type->a;
    if (type->kind == EXPR_name && lookup_name(&env, type->name, &list) &&
        list.at[0].decl->kind == DECL_struct)
        return list.at[0].decl;
    c->diags->muted++;
    const Type *named = resolve_type(&env, expr_copy(c->arena, type));
    c->diags->muted--;
    return named->kind == TYPE_struct ? (Decl *)(uintptr_t)named->decl : NULL;
}

/* S::m, S<T>::m, S::p::get: the method, and what was written for its type. NULL: it is none. */
static Decl *method_named(Checker *c, Decl *from, const Expr *path, Expr **type) {
    if (path->kind == EXPR_apply) path = path->a;
    if (path->kind != EXPR_member) return NULL;
    Name name = path->name;
    bool set = strcmp(name->text, "set") == 0,
         accessor = path->a->kind == EXPR_member && (set || strcmp(name->text, "get") == 0);
    if (accessor) path = path->a;
    *type = path->a;
    Decl *owner = struct_named(c, from, path->a);
    DeclVec *found = owner ? scope_find(scope_inside(c, owner), path->name) : NULL;
    for (int i = 0; found && i < found->count; i++) {
        Decl *member = found->at[i];
        if (member->kind == DECL_func && !accessor && !decl_is_static(member)) return member;
        for (int k = 0; accessor && k < member->members.count; k++)
            if (member->members.at[k]->flavour == (set ? FUNC_set : FUNC_get)) return member->members.at[k];
    }
    return NULL;
}

void place_apply(Checker *c, Decl *apply) {
    const Attribute *attribute = find_attribute(apply, "__ApplyOf");
    Expr *type;
    Decl *method = attribute ? method_named(c, apply, attribute->args.at[0], &type) : NULL;
    if (!method) return;
    Decl *extension = decl_new(c->arena, DECL_extension, apply->loc, NULL);
    extension->parent = apply->parent;
    extension->file = apply->file;
    extension->modifiers = MODIFIER_synthesized;
    extension->target = expr_copy(c->arena, type);
    if (!method->generics) { /* else they are the method's */
        extension->generics = apply->generics;
        apply->generics = NULL;
    }
    apply->parent = extension;
    vec_push(c->arena, &extension->members, apply);
    bool mutates = find_attribute(method, "mutating") ||
                   (method->flavour == FUNC_set && !find_attribute(method, "nonmutating"));
    if (mutates) apply->flags |= DECL_MUTATING;
}

/* ---- pieces of the tree */

static Expr *named(Maker *m, Name name) {
    Expr *e = expr_new(m->c->arena, EXPR_name, m->loc);
    e->name = name;
    return e;
}

static Expr *text_named(Maker *m, const char *name) { return named(m, name_from(m->c->names, name)); }

static Expr *member(Maker *m, Expr *base, const char *name) {
    Expr *e = expr_new(m->c->arena, EXPR_member, m->loc);
    e->a = base;
    e->name = name_from(m->c->names, name);
    return e;
}

static Expr *call(Maker *m, Expr *callee) {
    Expr *e = expr_new(m->c->arena, EXPR_call, m->loc);
    e->a = callee;
    return e;
}

static void add_statement(Maker *m, StmtKind kind, Expr *expr) {
    Stmt *stmt = stmt_new(m->c->arena, kind, m->loc);
    stmt->expr = expr;
    vec_push(m->c->arena, &m->body->body, stmt);
}

static void add_assignment(Maker *m, Expr *place, Expr *value) {
    Expr *e = expr_new(m->c->arena, EXPR_assign, m->loc);
    e->op = OPERATOR_none;
    e->a = place;
    e->b = value;
    add_statement(m, STMT_expr, e);
}

static void add_variable(Maker *m, const char *name, const Type *type, Expr *init) {
    Decl *decl = decl_new(m->c->arena, DECL_var, m->loc, name_from(m->c->names, name));
    decl->flavour = VAR_local;
    decl->modifiers = type ? 0 : MODIFIER_var;
    decl->type_expr = type ? type_expr(m->c, m->loc, type) : NULL;
    decl->init = init;
    Stmt *stmt = stmt_new(m->c->arena, STMT_decl, m->loc);
    vec_push(m->c->arena, &stmt->decls, decl);
    vec_push(m->c->arena, &m->body->body, stmt);
}

static void add_param(Maker *m, Name name, const Type *type, uint8_t pass, bool no_diff) {
    static const uint32_t directions[] = {0, MODIFIER_out, MODIFIER_in | MODIFIER_out, MODIFIER_ref,
                                          MODIFIER_constref};
    Decl *param = decl_new(m->c->arena, DECL_var, m->loc, name);
    param->flavour = VAR_param;
    param->parent = m->func;
    param->modifiers = directions[pass] | (no_diff ? MODIFIER_no_diff : 0);
    param->type_expr = type_expr(m->c, m->loc, type);
    vec_push(m->c->arena, &m->func->params, param);
}

static Maker make_function(Checker *c, Decl *written, const char *suffix, const Type *result) {
    Maker m = {.c = c, .loc = written->loc};
    Name name = name_from(c->names, format_text(c->arena, "%s.%s", written->name->text, suffix));
    m.func = decl_new(c->arena, DECL_func, written->loc, name);
    m.func->parent = written->parent;
    m.func->file = written->file;
    if (decl_type_around(written)) m.func->modifiers |= MODIFIER_static;
    m.subst = copy_generics(c, written, m.func, NULL);
    m.func->type_expr = type_expr(c, written->loc, check_subst(c, result, m.subst));
    m.func->body = m.body = stmt_new(c->arena, STMT_block, written->loc);
    return m;
}

/* The parameters of `to` as arguments for `from`; `outer`: for what is around that. */
static const Subst *renamed(Checker *c, Decl *from, Decl *to, const Subst *outer) {
    int n = generic_count(from);
    const Type **args = arena_array(c->arena, const Type *, n ? n : 1);
    for (int i = 0; i < n; i++) args[i] = param_type(c, to, i);
    return n ? subst_new(c, outer, from, args, n) : outer;
}

static Decl *extension_around(const Decl *apply) {
    Decl *around = decl_type_around(apply);
    return around && around->kind == DECL_extension ? around : NULL;
}

/* The arguments of what a method stands in, for objects of that type. */
static bool arguments_around(Checker *c, Decl *home, const Type *type, const Subst **subst) {
    if (home->kind == DECL_extension) return infer_extension(c, home, type, subst);
    *subst = type->decl == home ? subst_of_type(c, type) : NULL;
    return *subst != NULL;
}

/* The signature of the primal, the object first, in terms of the parameters of the apply. */
static FuncSig primal_signature(Checker *c, Decl *primal, Decl *apply) {
    Decl *extension = extension_around(apply);
    FuncSig flat = flat_signature(c, signature_of(c, primal));
    const Subst *outer = NULL;
    if (extension) arguments_around(c, decl_type_around(primal), this_type_of(c, extension), &outer);
    return check_subst_signature(c, &flat, renamed(c, primal, apply, outer));
}

/* ---- the two functions */

static Name param_name(Checker *c, const FuncSig *sig, int index) {
    Name name = sig->params[index].name;
    return name ? name : name_from(c->names, format_text(c->arena, "__p%d", index));
}

/* A call of just this function, with the parameters as they are; of a method on the first. */
static Expr *pass_on(Maker *m, Candidate function, const FuncSig *sig) {
    bool method = signature_of(m->c, function.decl)->has_this && !function.base;
    if (method) function.base = named(m, param_name(m->c, sig, 0));
    Expr *callee = expr_new(m->c->arena, EXPR_overload, m->loc);
    callee->name = function.decl->name;
    callee->decl = function.decl;
    callee->candidates = arena_new(m->c->arena, Candidates);
    callee->candidates->name = function.decl->name;
    candidates_add(m->c, callee->candidates, function);
    callee->flags = EXPR_CHECKED;
    Expr *e = call(m, callee);
    for (int i = method; i < sig->nparams; i++)
        vec_push(m->c->arena, &e->args, named(m, param_name(m->c, sig, i)));
    return e;
}

static Candidate with_arguments(const Maker *m, Decl *written) {
    Candidate result = {.decl = written};
    Decl *extension = extension_around(written);
    if (extension) result.subst = subst_identity(m->c, extension);
    if (m->subst) result.args = m->subst->args, result.nargs = m->subst->nargs;
    return result;
}

static Decl *make_pass(Checker *c, Decl *apply, const FuncSig *of, const Type *context) {
    Maker m = make_function(c, apply, "pass", of->result);
    FuncSig here = check_subst_signature(c, of, m.subst), *sig = &here;
    Candidate function = with_arguments(&m, apply);
    context = check_subst(c, context, m.subst);
    for (int i = 0; i < sig->nparams; i++)
        add_param(&m, param_name(c, sig, i), sig->params[i].type, sig->params[i].pass,
                  sig->params[i].no_diff);
    add_param(&m, name_from(c->names, "__state"), context, PASS_out, false);
    Expr *state = text_named(&m, "__state");
    if (sig->result->kind == TYPE_void) add_assignment(&m, state, pass_on(&m, function, sig));
    else {
        add_variable(&m, "__both", NULL, pass_on(&m, function, sig));
        add_assignment(&m, state, member(&m, text_named(&m, "__both"), "_1"));
        add_statement(&m, STMT_return, member(&m, text_named(&m, "__both"), "_0"));
    }
    return m.func;
}

static bool carries(Checker *c, const ParamSig *param) {
    return !param->no_diff && is_differentiable_type(c, param->type);
}

/* What the operator gets for a parameter; what it writes there goes back into the pair. */
static Expr *operator_argument(Maker *m, const FuncSig *sig, int index) {
    Checker *c = m->c;
    const ParamSig *param = &sig->params[index];
    Name name = param_name(c, sig, index);
    if (!carries(c, param)) return expr_new(c->arena, EXPR_none, m->loc);
    if (param->pass == PASS_out) return named(m, name); /* its differential comes in */
    const char *local = format_text(c->arena, "__d%d", index);
    Expr *start =
        param->pass == PASS_inout ? member(m, named(m, name), "d") : expr_new(c->arena, EXPR_list, m->loc);
    add_variable(m, local, check_differential(c, param->type), start);
    return text_named(m, local);
}

static void update_pair(Maker *m, const FuncSig *sig, int index) {
    const ParamSig *param = &sig->params[index];
    if (!carries(m->c, param) || param->pass == PASS_out) return;
    Name name = param_name(m->c, sig, index);
    Expr *pair = call(m, text_named(m, "diffPair"));
    vec_push(m->c->arena, &pair->args, member(m, named(m, name), "p"));
    vec_push(m->c->arena, &pair->args, text_named(m, format_text(m->c->arena, "__d%d", index)));
    add_assignment(m, named(m, name), pair);
}

static Decl *make_backward(Checker *c, Decl *apply, const FuncSig *of, const Type *context) {
    Maker m = make_function(c, apply, "bwd", type_basic(c->types, TYPE_void));
    FuncSig here = check_subst_signature(c, of, m.subst), *sig = &here;
    const Decl *outer = c->context;
    c->context = m.func;
    context = check_subst(c, context, m.subst);
    FuncSig backward = diff_signature(c, sig, DIFF_bwd);
    for (int i = 0; i < backward.nparams; i++) {
        const ParamSig *param = &backward.params[i];
        add_param(&m, param->name, param->type, param->pass, param->no_diff);
    }
    add_param(&m, name_from(c->names, "__state"), context, PASS_in, false);
    add_variable(&m, "__context", NULL, text_named(&m, "__state"));
    Expr *run = call(&m, text_named(&m, "__context"));
    for (int i = 0; i < sig->nparams; i++) {
        Expr *arg = operator_argument(&m, sig, i);
        vec_push(c->arena, &run->args, arg);
    }
    if (!sig->result_no_diff && is_differentiable_type(c, sig->result))
        vec_push(c->arena, &run->args, named(&m, backward.params[backward.nparams - 1].name));
    add_statement(&m, STMT_expr, run);
    for (int i = 0; i < sig->nparams; i++) update_pair(&m, sig, i);
    c->context = outer;
    return m.func;
}

/* ---- signatures that are nearly right */

/* As an `int`, a seed would be cut off, and what flows through a substitute lost. */
static bool loses(Checker *c, const Type *wanted, const Type *have) {
    return is_differentiable_type(c, wanted) && !is_differentiable_type(c, have);
}

static bool param_converts(Env *env, const ParamSig *wanted, const ParamSig *have) {
    bool reads = wanted->pass == PASS_in && (have->pass == PASS_in || have->pass == PASS_constref);
    if (wanted->type == have->type) return reads || wanted->pass == have->pass;
    return reads && !loses(env->c, wanted->type, have->type) && type_converts(env, wanted->type, have->type);
}

static bool can_be_called(Checker *c, const FuncSig *wanted, Decl *written) {
    const FuncSig *have = signature_of(c, written);
    Env env = env_for_decl(c, written);
    if (have->has_this || sig_throws(have) || sig_throws(wanted) || have->nparams < wanted->nparams)
        return false;
    for (int i = 0; i < have->nparams; i++) {
        bool fits = i < wanted->nparams ? param_converts(&env, &wanted->params[i], &have->params[i])
                                        : have->params[i].decl && have->params[i].decl->init;
        if (!fits) return false;
    }
    return wanted->result == have->result ||
           (wanted->result->kind != TYPE_void && !loses(c, wanted->result, have->result) &&
            type_converts(&env, have->result, wanted->result));
}

/* A derivative that can be called with what is wanted: by implicit conversions, and defaults for parameters
 * beyond. R name(wanted) { return written(wanted); } stands for it. */
Decl *adapt_derivative(Checker *c, const FuncSig *wanted, Decl *written) {
    if (written->kind != DECL_func || !written->name || generic_count(written) > 0 ||
        !can_be_called(c, wanted, written))
        return NULL;
    Maker m = make_function(c, written, "adapted", wanted->result);
    m.func->modifiers |= MODIFIER_synthesized;
    m.func->flags = written->flags & (DECL_FWD | DECL_BWD | DECL_TREAT_AS_DIFF | DECL_FORCE_INLINE);
    for (int i = 0; i < wanted->nparams; i++)
        add_param(&m, param_name(c, wanted, i), wanted->params[i].type, wanted->params[i].pass,
                  wanted->params[i].no_diff);
    Candidate function = {.decl = written};
    Decl *around = decl_type_around(written);
    if (around) function.subst = subst_identity(c, around);
    add_statement(&m, wanted->result->kind == TYPE_void ? STMT_expr : STMT_return,
                  pass_on(&m, function, wanted));
    bool no_warnings = c->diags->no_warnings; /* nobody wrote the conversions in it */
    c->diags->no_warnings = true;
    check_decl_body(c, m.func);
    c->diags->no_warnings = no_warnings;
    return m.func;
}

/* ---- entry */

/* The type of the context, if the parameters and the result are those of the primal. */
static const Type *context_of(Checker *c, Decl *primal, Decl *apply) {
    FuncSig have = flat_signature(c, signature_of(c, apply));
    if (generic_count(primal) != generic_count(apply)) return NULL;
    FuncSig sig = primal_signature(c, primal, apply);
    if (sig.nparams != have.nparams) return NULL;
    for (int i = 0; i < sig.nparams; i++)
        if (sig.params[i].type != have.params[i].type || sig.params[i].pass != have.params[i].pass)
            return NULL;
    if (sig.result->kind == TYPE_void) return have.result;
    bool both =
        have.result->kind == TYPE_tuple && have.result->nargs == 2 && have.result->args[0] == sig.result;
    return both ? have.result->args[1] : NULL;
}

bool link_apply(Checker *c, Decl *primal, Decl *apply, const Subst *outer) {
    const Type *context = context_of(c, primal, apply);
    Sema *sema = decl_sema(c, primal);
    if (!context || sema->primal.decl || sema->bwd.decl) return context != NULL;
    FuncSig sig = primal_signature(c, primal, apply);
    Decl *pass = make_pass(c, apply, &sig, context), *backward = make_backward(c, apply, &sig, context);
    sema->primal = (FuncRef){pass, renamed(c, pass, primal, outer)};
    sema->bwd = (FuncRef){backward, renamed(c, backward, primal, outer)};
    return true;
}

/* ---- specialisations */

/* A function is named with its arguments. A method has such a derivative in an extension of some instances of
 * its type, or outside, where one of them is named. */
static bool may_be_special(const Candidate *target, const Decl *derivative) {
    const Decl *func = target->decl, *home = decl_type_around(func), *around = decl_type_around(derivative);
    int n = generic_count(func);
    if (!home) return !around && n > 0 && target->nargs == n;
    if (func->flavour != FUNC_plain || around == home) return false;
    return around ? around->kind == DECL_extension && n == generic_count(derivative) : n == 0;
}

/* Around what stands for a method, if the derivative is outside; it takes over the parameters. */
static void place_special(Maker *m, const Candidate *target) {
    Checker *c = m->c;
    Decl *extension = decl_new(c->arena, DECL_extension, m->loc, NULL),
         *home = decl_type_around(target->decl);
    extension->parent = m->func->parent;
    extension->file = m->func->file;
    extension->modifiers = MODIFIER_synthesized;
    const Subst *own = copy_generics(c, m->func, extension, NULL);
    m->subst = m->subst ? check_subst_subst(c, m->subst, own) : NULL;
    m->func->generics = NULL;
    m->func->parent = extension;
    const Type *type = check_subst(c, this_type_of(c, home), target->subst);
    extension->target = type_expr(c, m->loc, check_subst(c, type, m->subst));
}

/* Those specialisations: arguments in terms of the parameters of what stands for them, `own`, and of those of
 * the extension. NULL: there are none, or it is all of them. */
static const Subst *special_pattern(Checker *c, const Candidate *target, Decl *extension, const Subst *own) {
    Decl *func = target->decl, *home = decl_type_around(func);
    int n = generic_count(func);
    const Subst *outer = NULL;
    if (home && (!arguments_around(c, home, this_type_of(c, extension), &outer) || !outer)) return NULL;
    const Type **args = arena_array(c->arena, const Type *, n + 1);
    for (int i = 0; i < n; i++) args[i] = home ? own->args[i] : check_subst(c, target->args[i], own);
    return n ? subst_new(c, outer, func, args, n) : outer;
}

/* R f<P>(...) { return f<pattern>(...); } stands for those of f that a derivative is given for: P are its
 * parameters. That of a method is a method of the extension. */
Decl *make_special(Checker *c, const Candidate *target, Decl *derivative) {
    Decl *func = target->decl;
    if (!may_be_special(target, derivative)) return NULL;
    Maker m = make_function(c, derivative, "special", type_basic(c->types, TYPE_void));
    if (decl_type_around(func) && !decl_type_around(derivative)) place_special(&m, target);
    const Subst *pattern = special_pattern(c, target, decl_type_around(m.func), m.subst);
    if (!pattern) return NULL;
    FuncSig sig = check_subst_signature(c, signature_of(c, func), pattern);
    m.func->name = func->name;
    m.func->modifiers = MODIFIER_synthesized | (func->modifiers & MODIFIER_static);
    m.func->flags = func->flags & (DECL_MUTATING | DECL_NO_DIFF_THIS);
    m.func->type_expr = type_expr(c, m.loc, sig.result);
    for (int i = 0; i < sig.nparams; i++)
        add_param(&m, param_name(c, &sig, i), sig.params[i].type, sig.params[i].pass, sig.params[i].no_diff);
    int n = generic_count(func);
    Candidate function = {
        .decl = func, .subst = n ? pattern->outer : pattern, .args = pattern->args, .nargs = n};
    if (sig.has_this) function.base = expr_new(c->arena, EXPR_this, m.loc);
    add_statement(&m, sig.result->kind == TYPE_void ? STMT_expr : STMT_return, pass_on(&m, function, &sig));
    Sema *sema = decl_sema(c, m.func);
    sema->special_of = (FuncRef){func, pattern};
    sema->derivatives_done = true;
    return m.func;
}

/* A method: `outer` are the arguments of what the method itself stands in, `out` those of the extension. */
bool special_fits_around(Checker *c, Decl *special, const Subst *outer, const Subst **out) {
    Decl *extension = decl_type_around(special);
    *out = NULL;
    if (!extension) return true;
    Decl *home = decl_type_around(decl_sema(c, special)->special_of.decl);
    return infer_extension(c, extension, check_subst(c, this_type_of(c, home), outer), out);
}

static bool fits_method(Checker *c, Decl *special, const Subst *subst, const Subst **out) {
    const Decl *func = decl_sema(c, special)->special_of.decl;
    bool own = generic_count(func) > 0;
    if (own && (!subst || subst->owner != func)) return false;
    if (!special_fits_around(c, special, own ? subst->outer : subst, out)) return false;
    if (own) *out = subst_new(c, *out, special, subst->args, subst->nargs);
    return !own || constraints_hold(c, special, *out, 0);
}

static bool fits_special(Checker *c, Decl *special, const Subst *subst, const Subst **out) {
    if (decl_type_around(special)) return fits_method(c, special, subst, out);
    const Subst *pattern = decl_sema(c, special)->special_of.subst;
    int n = generic_count(special);
    *out = NULL;
    if (!subst || subst->owner != pattern->owner) return false;
    if (n) {
        Inference inference = {
            .c = c, .owner = special, .args = arena_array(c->arena, const Type *, n), .nargs = n};
        for (int i = 0; i < pattern->nargs; i++) infer_match(&inference, pattern->args[i], subst->args[i]);
        if (!infer_finish(&inference, NULL, out) || !constraints_hold(c, special, *out, 0)) return false;
    }
    for (int i = 0; i < pattern->nargs; i++)
        if (check_subst(c, pattern->args[i], *out) != subst->args[i]) return false;
    return true;
}

static bool has_parameters(const Decl *special) {
    const Decl *extension = decl_type_around(special);
    return generic_count(extension ? extension : special) > 0;
}

/* What stands for this specialisation; one for just these arguments comes before one with parameters. */
bool check_special(Checker *c, Decl *func, const Subst *subst, FuncRef *out) {
    if (func->kind != DECL_func) return false;
    check_derivatives(c, func);
    const DeclVec *specials = &decl_sema(c, func)->specials;
    for (int generic = 0; generic < 2; generic++)
        for (int i = 0; i < specials->count; i++) {
            if (has_parameters(specials->at[i]) != generic) continue;
            const Subst *args;
            if (!fits_special(c, specials->at[i], subst, &args)) continue;
            *out = (FuncRef){specials->at[i], args};
            return true;
        }
    return false;
}

static bool is_applied(Checker *c, Decl *primal, Decl *apply) {
    const Sema *sema = decl_sema(c, primal);
    if (!context_of(c, primal, apply) || !sema->bwd.decl) return false;
    if (sema->primal.decl) check_decl_body(c, sema->primal.decl);
    if (sema->bwd.decl) check_decl_body(c, sema->bwd.decl);
    return true;
}

void check_apply_of(Checker *c, Decl *apply, const Candidates *targets, Loc loc) {
    for (int i = 0; targets && i < targets->count; i++) {
        Decl *primal = targets->at[i].decl;
        check_derivatives(c, primal);
        if (is_applied(c, primal, apply)) return;
        const DeclVec *specials = &decl_sema(c, primal)->specials;
        for (int k = 0; k < specials->count; k++)
            if (is_applied(c, specials->at[k], apply)) return;
    }
    if (!targets) return;
    const FuncSig *sig = signature_of(c, targets->at[0].decl);
    const char *result = sig->result->kind == TYPE_void
                             ? "its context"
                             : format_text(c->arena, "Tuple<%s, CONTEXT>", type_str(c, sig->result));
    report(c, DIAG_apply_signature, loc, function_name(c, targets->at[0].decl), result);
}
