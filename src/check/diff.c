/* Derivatives of functions: their signatures, the operators that name them, the attributes that provide
 * them. */
#include "check/checker.h"

/* ---- signatures */

static bool is_diff(Checker *c, const Type *type, bool no_diff) {
    return !no_diff && is_differentiable_type(c, type);
}

/* Of a pack: a pair for each element. */
static const Type *pair_of(Checker *c, const Type *type) {
    if (type->kind == TYPE_expand) return pack_expand(c, pair_of(c, type->args[0]));
    return type_wrap(c->types, TYPE_pair, type);
}

/* Of a type that is known to be differentiable; an error if that was told by a constraint that has errors
 * itself. */
static const Type *differential_of(Checker *c, const Type *type) {
    const Type *differential = check_differential(c, type);
    return differential ? differential : ERROR_TYPE(c);
}

static ParamSig plain(const ParamSig *param) {
    ParamSig result = *param;
    result.decl = NULL; /* defaults do not carry over */
    return result;
}

static bool is_reference(Checker *c, const Type *type, bool no_diff) {
    return !no_diff && is_ptr_differentiable_type(c, type);
}

static FuncSig forward_signature(Checker *c, const FuncSig *sig) {
    FuncSig result = *sig;
    result.params = arena_array(c->arena, ParamSig, sig->nparams ? sig->nparams : 1);
    for (int i = 0; i < sig->nparams; i++) {
        ParamSig param = plain(&sig->params[i]);
        if (is_diff(c, param.type, param.no_diff)) param.type = pair_of(c, param.type);
        else if (is_reference(c, param.type, param.no_diff))
            param.type = type_wrap(c->types, TYPE_ptr_pair, param.type);
        result.params[i] = param;
    }
    if (is_diff(c, sig->result, sig->result_no_diff)) result.result = pair_of(c, sig->result);
    else if (is_reference(c, sig->result, sig->result_no_diff))
        result.result = type_wrap(c->types, TYPE_ptr_pair, sig->result);
    result.is_init = false;
    return result;
}

static void backward_param(Checker *c, const ParamSig *param, FuncSig *out) {
    ParamSig result = plain(param);
    if (is_diff(c, param->type, param->no_diff)) {
        if (param->pass == PASS_out) {
            result.type = differential_of(c, param->type);
            result.pass = PASS_in;
        } else {
            result.type = pair_of(c, param->type);
            result.pass = PASS_inout;
        }
    } else if (is_reference(c, param->type, param->no_diff) && param->pass != PASS_out) {
        result.type = type_wrap(c->types, TYPE_ptr_pair, param->type);
        result.pass = PASS_in;
    } else {
        if (param->pass == PASS_out) return;
        if (param->pass == PASS_inout) result.pass = PASS_in;
    }
    out->params[out->nparams++] = result;
}

static FuncSig backward_signature(Checker *c, const FuncSig *sig) {
    FuncSig result = {
        .result = type_basic(c->types, TYPE_void), .has_this = sig->has_this, .this_type = sig->this_type};
    result.this_no_diff = sig->this_no_diff;
    result.params = arena_array(c->arena, ParamSig, sig->nparams + 1);
    for (int i = 0; i < sig->nparams; i++) backward_param(c, &sig->params[i], &result);
    if (is_diff(c, sig->result, sig->result_no_diff))
        result.params[result.nparams++] =
            (ParamSig){.name = name_from(c->names, "dResult"), .type = differential_of(c, sig->result)};
    return result;
}

FuncSig diff_signature(Checker *c, const FuncSig *sig, DiffMode mode) {
    return mode == DIFF_fwd ? forward_signature(c, sig) : backward_signature(c, sig);
}

const char *signature_text(Checker *c, const char *name, const FuncSig *sig) {
    Text text = {.arena = c->arena};
    if (!sig->is_init) {
        type_print(&text, sig->result);
        text_char(&text, ' ');
    }
    text_printf(&text, "%s(", name);
    static const char *const directions[] = {"", "out ", "inout ", "__ref ", "__constref "};
    int written = sig->nparams - (sig_throws(sig) ? 1 : 0);
    for (int i = 0; i < written; i++) {
        const ParamSig *param = &sig->params[i];
        text_printf(&text, "%s%s%s", i ? ", " : "", param->no_diff ? "no_diff " : "",
                    directions[param->pass]);
        type_print(&text, param->type);
        if (param->name) text_printf(&text, " %s", param->name->text);
    }
    text_char(&text, ')');
    if (sig_throws(sig)) {
        text_add(&text, STR(" throws "));
        type_print(&text, thrown_type(c, sig->params[written].type));
    }
    return text.at;
}

/* ---- finding derivatives */

static const char *const of_attributes[] = {"ForwardDerivativeOf", "BackwardDerivativeOf",
                                            "PrimalSubstituteOf", "__ApplyOf"};

static Name last_name(const Expr *e) {
    while (e && e->kind == EXPR_apply) e = e->a;
    return e ? e->name : NULL;
}

Name derivative_target(const Decl *decl) {
    for (int k = 0; k < 4 && decl->kind == DECL_func; k++) {
        const Attribute *attribute = find_attribute(decl, of_attributes[k]);
        Name name = attribute && attribute->args.count ? last_name(attribute->args.at[0]) : NULL;
        if (name) return name;
    }
    return NULL;
}

/* Those of the library come first. */
static DeclVec *derivative_list(Checker *c, Name name) {
    DeclVec *list = map_get(&c->derivative_of, PTR_KEY(name));
    if (list) return list;
    list = arena_new(c->arena, DeclVec);
    map_put(c->arena, &c->derivative_of, PTR_KEY(name), list);
    library_derivatives(c, name, list);
    return list;
}

static void index_derivatives_in(Checker *c, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        Name name = derivative_target(member);
        if (name) vec_push(c->arena, derivative_list(c, name), member);
        index_derivatives_in(c, member);
    }
}

static DeclVec *derivatives_named(Checker *c, Name name) {
    for (; c->derivative_modules < c->modules.count; c->derivative_modules++)
        if (c->modules.at[c->derivative_modules] != c->prelude)
            index_derivatives_in(c, c->modules.at[c->derivative_modules]);
    return name ? derivative_list(c, name) : NULL;
}

typedef enum LinkKind { LINK_fwd, LINK_bwd, LINK_substitute, LINK_pass } LinkKind;

static void resolve_pass(Checker *c, Decl *primal);

FuncSig flat_signature(Checker *c, const FuncSig *sig) {
    if (!sig->has_this) return *sig;
    FuncSig flat = *sig;
    flat.params = arena_array(c->arena, ParamSig, sig->nparams + 1);
    flat.params[0] = (ParamSig){
        .name = c->known._this, .type = sig->this_type, .pass = sig->this_pass, .no_diff = sig->this_no_diff};
    if (sig->nparams) memcpy(flat.params + 1, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    flat.nparams++;
    flat.has_this = false;
    return flat;
}

static FuncSig with_param(Checker *c, const FuncSig *sig, ParamSig param) {
    FuncSig result = *sig;
    result.params = arena_array(c->arena, ParamSig, sig->nparams + 1);
    if (sig->nparams) memcpy(result.params, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    result.params[result.nparams++] = param;
    return result;
}

/* What a forward pass fills for the backward derivative is the last parameter of either. */
static ParamSig state_param(Checker *c, Decl *primal, PassMode pass) {
    ParamSig result = {.name = name_from(c->names, "state"), .pass = (uint8_t)pass};
    const FuncRef *ref = &decl_sema(c, primal)->primal;
    if (ref->decl) {
        const FuncSig *sig = signature_of(c, ref->decl);
        result.type = check_subst(c, sig->params[sig->nparams - 1].type, ref->subst);
    }
    return result;
}

static FuncSig wanted_signature(Checker *c, Decl *primal, LinkKind kind) {
    FuncSig flat = flat_signature(c, signature_of(c, primal));
    if (kind == LINK_bwd) resolve_pass(c, primal);
    const Decl *context = c->context;
    c->context = primal;
    FuncSig wanted = flat;
    if (kind == LINK_fwd) wanted = diff_signature(c, &flat, DIFF_fwd);
    if (kind == LINK_bwd) wanted = diff_signature(c, &flat, DIFF_bwd);
    if (kind == LINK_bwd && decl_sema(c, primal)->primal.decl)
        wanted = with_param(c, &wanted, state_param(c, primal, PASS_in));
    c->context = context;
    return wanted;
}

static bool signatures_agree(Checker *c, const FuncSig *wanted, const FuncSig *have, const Subst *subst,
                             bool method) {
    if (wanted->nparams != have->nparams) return false;
    if (wanted->result != check_subst(c, have->result, subst)) return false;
    for (int i = 0; i < wanted->nparams; i++) {
        const ParamSig *w = &wanted->params[i], *h = &have->params[i];
        bool is_this = method && i == 0; /* deriv_method: direction follows from [mutating] */
        if (w->pass != h->pass && !is_this && !(w->pass == PASS_in && h->pass == PASS_constref)) return false;
        if (w->type != check_subst(c, h->type, subst)) return false;
    }
    return true;
}

/* Arguments for `derivative` in terms of the parameters of `primal`; false: their generics do not
 * correspond. */
static bool align(Checker *c, Decl *primal, Decl *derivative, const Subst *outer, const Subst **subst) {
    int n = generic_count(derivative);
    *subst = outer;
    if (n != generic_count(primal)) return false;
    if (n == 0) return true;
    const Type **args = arena_array(c->arena, const Type *, n);
    for (int i = 0; i < n; i++) args[i] = param_type(c, primal, i);
    *subst = subst_new(c, outer, derivative, args, n);
    return true;
}

/* A derivative whose parameters are not those of the primal: its arguments are given, or follow from the
 * signature that is wanted. */
static bool align_by_types(Checker *c, const Candidate *derivative, const FuncSig *wanted,
                           const Subst **subst) {
    int n = generic_count(derivative->decl);
    const FuncSig have = flat_signature(c, signature_of(c, derivative->decl));
    if (have.nparams != wanted->nparams || derivative->nargs > n) return false;
    Inference inference = {
        .c = c, .owner = derivative->decl, .args = arena_array(c->arena, const Type *, n), .nargs = n};
    for (int i = 0; i < derivative->nargs; i++) inference.args[i] = derivative->args[i];
    for (int i = 0; i < have.nparams; i++)
        infer_match(&inference, check_subst(c, have.params[i].type, derivative->subst),
                    wanted->params[i].type);
    return infer_finish(&inference, derivative->subst, subst);
}

static bool constraints_follow(Checker *c, Decl *from, Decl *wanted, const Subst *subst) {
    const Decl *context = c->context;
    c->context = from;
    bool holds = constraints_hold(c, wanted, subst, 0);
    c->context = context;
    return holds;
}

/* Those of either follow from those of the other. */
static bool same_constraints(Checker *c, Decl *primal, Decl *derivative, const Subst *subst) {
    const Subst *back;
    ensure_generics(c, primal);
    ensure_generics(c, derivative);
    if (!constraints_follow(c, primal, derivative, subst)) return false;
    if (generic_count(primal) == 0 || decl_type_around(primal) != decl_type_around(derivative)) return true;
    Decl *around = decl_type_around(primal);
    return align(c, derivative, primal, around ? subst_identity(c, around) : NULL, &back) &&
           constraints_follow(c, derivative, primal, back);
}

static bool matches_by(Checker *c, Decl *primal, const Candidate *candidate, LinkKind kind, bool by_types,
                       FuncRef *out) {
    const Subst *subst;
    Decl *derivative = candidate->decl;
    FuncSig wanted = wanted_signature(c, primal, kind), have = flat_signature(c, signature_of(c, derivative));
    if (!(by_types ? align_by_types(c, candidate, &wanted, &subst)
                   : align(c, primal, derivative, candidate->subst, &subst)))
        return false;
    bool method = (derivative->flags & DECL_DERIV_METHOD) != 0;
    const Decl *context = c->context;
    c->context = primal;
    bool agree = signatures_agree(c, &wanted, &have, subst, method);
    c->context = context;
    if (!agree) return false;
    ensure_generics(c, derivative);
    if (!(by_types ? constraints_follow(c, primal, derivative, subst)
                   : same_constraints(c, primal, derivative, subst)))
        return false;
    *out = (FuncRef){derivative, subst};
    return true;
}

static bool matches(Checker *c, Decl *primal, const Candidate *candidate, LinkKind kind, FuncRef *out) {
    bool by_types = candidate->nargs > 0 || generic_count(candidate->decl) > generic_count(primal);
    return matches_by(c, primal, candidate, kind, by_types, out);
}

/* One whose signature agrees by implicit conversions and defaults is called by a function that is made for
 * it. */
static bool matches_nearly(Checker *c, Decl *primal, const Candidate *candidate, LinkKind kind,
                           FuncRef *out) {
    if (generic_count(primal) || (candidate->decl->flags & DECL_DERIV_METHOD)) return false;
    Decl *around = decl_type_around(primal);
    if (around && around != decl_type_around(candidate->decl)) return false;
    FuncSig wanted = wanted_signature(c, primal, kind);
    Decl *adapted = adapt_derivative(c, &wanted, candidate->decl);
    if (adapted) *out = (FuncRef){adapted, candidate->subst};
    return adapted != NULL;
}

/* As it is called: constructors by their type. */
const char *call_name(Checker *c, Decl *func) {
    bool makes = func->kind == DECL_func && func->flavour == FUNC_init;
    return makes ? type_str(c, signature_of(c, func)->result) : function_name(c, func);
}

/* As it is declared: constructors and accessors with what they belong to. */
const char *function_name(Checker *c, Decl *func) {
    if (func->kind == DECL_func && func->flavour == FUNC_init)
        return format_text(c->arena, "%s.__init", call_name(c, func));
    static const char *const accessors[] = {[FUNC_get] = "get", [FUNC_set] = "set", [FUNC_ref] = "ref"};
    FuncFlavour flavour = func->kind == DECL_func ? (FuncFlavour)func->flavour : FUNC_plain;
    bool accessor = flavour == FUNC_get || flavour == FUNC_set || flavour == FUNC_ref;
    if (!accessor) return func->name ? func->name->text : "?";
    const char *owner = func->parent->name ? func->parent->name->text : "__subscript";
    if (decl_sema(c, func)->ref_accessor) flavour = FUNC_ref; /* half of it */
    return format_text(c->arena, "%s.%s", owner, accessors[flavour]);
}

static bool is_broken(const FuncSig *sig) {
    bool broken = has_error(sig->result);
    for (int i = 0; i < sig->nparams; i++) broken |= has_error(sig->params[i].type);
    return broken;
}

static void report_signature(Checker *c, Decl *primal, LinkKind kind, Loc loc, Decl *found) {
    if (is_broken(signature_of(c, found))) return; /* which is told there */
    static const char *const what[] = {"forward derivative", "backward derivative", "primal substitute"};
    FuncSig wanted = wanted_signature(c, primal, kind);
    const FuncSig *sig = signature_of(c, primal);
    const char *name = found->name ? found->name->text : "derivative";
    bool pair =
        kind != LINK_substitute && sig->has_this && wanted.nparams && wanted.params[0].type != sig->this_type;
    const char *before = pair ? "static " : "";
    if (pair && (found->flags & DECL_DERIV_METHOD)) { /* the pair is its `this` */
        before = wanted.params[0].pass == PASS_inout ? "[deriv_method] [mutating] " : "[deriv_method] ";
        wanted.params++;
        wanted.nparams--;
    }
    report(c, DIAG_derivative_signature, loc, what[kind], function_name(c, primal),
           format_text(c->arena, "%s%s", before, function_text(c, name, primal, &wanted)));
    if (found->kind == DECL_func)
        note(c, DIAG_note_signature, found->loc, function_text(c, name, found, signature_of(c, found)));
}

static Candidates *candidates_of(Checker *c, Decl *from, Expr *expr) {
    Env env = env_for_decl(c, from);
    env.in_attribute = true;
    env.this_type = NULL;
    Decl *type = decl_type_around(from);
    if (type) env.is_static = true;
    Expr *e = check_term(&env, expr);
    if (e->kind == EXPR_error) return NULL;
    if (e->kind != EXPR_overload) {
        report_expr(c, expr, DIAG_not_a_function);
        return NULL;
    }
    return e->candidates;
}

/* [ForwardDerivative(f)] and the like, on the primal */
static void resolve_own(Checker *c, Decl *primal, Attribute *attribute, LinkKind kind, FuncRef *out) {
    if (!attribute || out->decl) return;
    bool *broken = &decl_sema(c, primal)->derivatives_broken;
    Candidates *list = candidates_of(c, primal, attribute->args.at[0]);
    *broken |= !list;
    if (!list) return;
    for (int i = 0; i < list->count; i++)
        if (matches(c, primal, &list->at[i], kind, out)) return;
    /* a member of a generic type, or one to which the primal's parameters do not matter */
    for (int i = 0; i < list->count; i++)
        if (generic_count(list->at[i].decl) < generic_count(primal) &&
            matches_by(c, primal, &list->at[i], kind, true, out))
            return;
    for (int i = 0; i < list->count; i++)
        if (matches_nearly(c, primal, &list->at[i], kind, out)) return;
    *broken = true;
    report_signature(c, primal, kind, attribute->loc, list->at[0].decl);
}

/* The signature of the primal, and one more parameter: `out`, of any type. */
static bool matches_pass(Checker *c, Decl *primal, const Candidate *candidate, FuncRef *out) {
    const Subst *subst;
    Decl *pass = candidate->decl;
    if (!align(c, primal, pass, candidate->subst, &subst)) return false;
    FuncSig wanted = wanted_signature(c, primal, LINK_pass), have = flat_signature(c, signature_of(c, pass));
    if (have.nparams != wanted.nparams + 1 || have.params[wanted.nparams].pass != PASS_out) return false;
    have.nparams--;
    if (!signatures_agree(c, &wanted, &have, subst, false) || !same_constraints(c, primal, pass, subst))
        return false;
    *out = (FuncRef){pass, subst};
    return true;
}

static void report_pass(Checker *c, Decl *primal, Loc loc, Decl *found) {
    FuncSig wanted = wanted_signature(c, primal, LINK_pass);
    const char *name = found->name ? found->name->text : "pass",
               *text = function_text(c, name, primal, &wanted);
    report(c, DIAG_derivative_signature, loc, "forward pass", function_name(c, primal),
           format_text(c->arena, "%.*s%sout STATE state)", (int)strlen(text) - 1, text,
                       wanted.nparams ? ", " : ""));
    if (found->kind == DECL_func)
        note(c, DIAG_note_signature, found->loc, function_text(c, name, found, signature_of(c, found)));
}

/* [ForwardPass(f)]: runs in place of the function when the reverse follows, and keeps what that needs. */
static void resolve_pass(Checker *c, Decl *primal) {
    Sema *sema = decl_sema(c, primal);
    Attribute *attribute = sema->primal_attr;
    if (!attribute || sema->primal.decl || sema->pass_done) return;
    sema->pass_done = true;
    int muted = c->diags->muted;
    c->diags->muted = 0;
    Candidates *list = candidates_of(c, primal, attribute->args.at[0]);
    for (int i = 0; list && i < list->count && !sema->primal.decl; i++)
        matches_pass(c, primal, &list->at[i], &sema->primal);
    if (list && !sema->primal.decl) report_pass(c, primal, attribute->loc, list->at[0].decl);
    c->diags->muted = muted;
}

/* Arguments that the derivative's own surroundings need, in terms of the primal's. */
static const Subst *outer_for(Checker *c, Decl *derivative, Decl *primal) {
    Decl *around = decl_type_around(derivative), *home = decl_type_around(primal);
    if (!around) return NULL;
    if (around == home || !home) return subst_identity(c, around);
    const Subst *subst;
    if (around->kind == DECL_extension && infer_extension(c, around, this_type_of(c, home), &subst))
        return subst;
    return subst_identity(c, around);
}

static void link(Checker *c, Decl *primal, FuncRef ref, FuncRef *out) {
    if (out->decl && out->decl != ref.decl) {
        bool from_prelude = (out->decl->flags & DECL_PRELUDE) != 0; /* a user's own replaces the library's */
        if (!from_prelude && !(ref.decl->flags & DECL_PRELUDE)) {
            report(c, DIAG_two_derivatives, ref.decl->loc, primal->name->text);
            const char *name = out->decl->name->text; /* before the dot, if it stands for another */
            note(c, DIAG_note_declared_here, out->decl->loc,
                 format_text(c->arena, "%.*s", (int)strcspn(name, "."), name));
            return;
        }
        if (!from_prelude) return;
    }
    *out = ref;
}

static bool names_function(const Candidates *list, const Decl *func) {
    for (int i = 0; list && i < list->count; i++)
        if (list->at[i].decl == func) return true;
    return false;
}

static FuncRef *slot_of(Checker *c, Decl *primal, LinkKind kind) {
    Sema *sema = decl_sema(c, primal);
    return kind == LINK_fwd ? &sema->fwd : kind == LINK_bwd ? &sema->bwd : &sema->substitute;
}

/* The extension around the apply of a method fits the type that has the method, whatever its arguments. */
static bool applies_to_all(Checker *c, Decl *primal, Decl *apply, const Subst **outer) {
    const Subst *subst;
    Decl *extension = decl_type_around(apply), *home = decl_type_around(primal);
    *outer = NULL;
    if (extension && extension->kind == DECL_extension && home) {
        const Decl *context = c->context;
        c->context = home;
        bool fits = infer_extension(c, extension, this_type_of(c, home), outer);
        c->context = context;
        if (!fits) return false;
    }
    return align(c, primal, apply, *outer, &subst) && same_constraints(c, primal, apply, subst);
}

static bool link_to_special(Checker *c, Decl *special, Decl *derivative, LinkKind kind) {
    const Subst *outer = outer_for(c, derivative, special);
    if (kind == LINK_pass) return link_apply(c, special, derivative, outer);
    Candidate candidate = {.decl = derivative, .subst = outer};
    FuncRef ref;
    if (!matches(c, special, &candidate, kind, &ref)) return false;
    link(c, special, ref, slot_of(c, special, kind));
    return true;
}

/* Whether two stand for the same specialisations of one function. */
static bool same_special(Checker *c, Decl *a, Decl *b) {
    FuncRef same;
    Candidate candidate = {.decl = b, .subst = outer_for(c, b, a)};
    const Subst *of = decl_sema(c, a)->special_of.subst;
    return matches(c, a, &candidate, LINK_substitute, &same) &&
           check_subst_subst(c, decl_sema(c, b)->special_of.subst, same.subst) == of;
}

/* For some specialisations of a generic function, or, in an extension of some instances of a type, of a
 * method: the derivative belongs to what stands for them. */
static void resolve_special(Checker *c, Decl *primal, const Candidates *targets, Decl *derivative,
                            LinkKind kind) {
    DeclVec *specials = &decl_sema(c, primal)->specials;
    for (int i = 0; i < targets->count; i++) {
        Decl *special = targets->at[i].decl == primal ? make_special(c, &targets->at[i], derivative) : NULL;
        if (!special) continue;
        int known = 0;
        while (known < specials->count && !same_special(c, specials->at[known], special)) known++;
        bool is_new = known == specials->count;
        if (!link_to_special(c, is_new ? special : specials->at[known], derivative, kind)) continue;
        if (is_new) vec_push(c->arena, specials, special);
        return;
    }
}

/* [ForwardDerivativeOf(f)] and the like, on the derivative */
static void resolve_others(Checker *c, Decl *primal) {
    DeclVec *list = derivatives_named(c, primal->name);
    for (int i = 0; list && i < list->count; i++) {
        Decl *derivative = list->at[i];
        if (derivative == primal) continue;
        ensure_header(c, derivative);
        Attribute *apply = find_attribute(derivative, of_attributes[3]);
        Candidates *applied = apply ? candidates_of(c, derivative, apply->args.at[0]) : NULL;
        const Subst *outer;
        if (names_function(applied, primal) &&
            !(applies_to_all(c, primal, derivative, &outer) && link_apply(c, primal, derivative, outer)))
            resolve_special(c, primal, applied, derivative, LINK_pass);
        for (int k = 0; k < 3; k++) {
            Attribute *attribute = find_attribute(derivative, of_attributes[k]);
            if (!attribute || last_name(attribute->args.at[0]) != primal->name) continue;
            Candidates *targets = candidates_of(c, derivative, attribute->args.at[0]);
            FuncRef ref;
            Candidate candidate = {.decl = derivative, .subst = outer_for(c, derivative, primal)};
            bool fits = names_function(targets, primal) &&
                        (matches(c, primal, &candidate, (LinkKind)k, &ref) ||
                         (targets->count == 1 && matches_nearly(c, primal, &candidate, (LinkKind)k, &ref)));
            if (fits) link(c, primal, ref, slot_of(c, primal, (LinkKind)k));
            else if (names_function(targets, primal))
                resolve_special(c, primal, targets, derivative, (LinkKind)k);
            Sema *sema = decl_sema(c, primal);
            bool beside = decl_type_around(primal) == decl_type_around(derivative);
            if (!fits && beside && targets && targets->count == 1 && !sema->specials.count)
                sema->derivatives_broken = true;
        }
    }
}

/* The derivative that a requirement names is, for what implements it, the member of that name. */
static void inherit_link(Checker *c, Decl *func, const Attribute *attribute, LinkKind kind, FuncRef *out) {
    if (!attribute || out->decl || attribute->args.count != 1) return;
    Expr *name = expr_new(c->arena, EXPR_name, attribute->loc);
    name->name = last_name(attribute->args.at[0]);
    c->diags->muted++;
    Candidates *list = name->name ? candidates_of(c, func, name) : NULL;
    for (int i = 0; list && i < list->count && !out->decl; i++) matches(c, func, &list->at[i], kind, out);
    c->diags->muted--;
}

static void inherit_from(Checker *c, Decl *func, Decl *home) {
    ensure_bases(c, home);
    const Sema *bases = decl_sema(c, home);
    Sema *sema = decl_sema(c, func);
    for (int i = 0; i < bases->interfaces.count; i++) {
        Decl *interface = (Decl *)(uintptr_t)bases->interfaces.at[i]->decl;
        if (!interface || (interface->flags & DECL_PRELUDE)) continue;
        DeclVec *found = scope_find(scope_inside(c, interface), func->name);
        for (int k = 0; found && k < found->count; k++) {
            Decl *requirement = found->at[k];
            if (requirement->kind != DECL_func) continue;
            ensure_header(c, requirement);
            const Sema *wanted = decl_sema(c, requirement);
            inherit_link(c, func, wanted->fwd_attr, LINK_fwd, &sema->fwd);
            inherit_link(c, func, wanted->bwd_attr, LINK_bwd, &sema->bwd);
            inherit_link(c, func, wanted->substitute_attr, LINK_substitute, &sema->substitute);
        }
        inherit_from(c, func, interface);
    }
}

static void inherit_derivatives(Checker *c, Decl *func) {
    Decl *home = func->name ? func->parent : NULL;
    const Sema *sema = decl_sema(c, func);
    bool own = sema->fwd_attr || sema->bwd_attr || sema->substitute_attr;
    if (!home || own || (func->flags & DECL_PRELUDE)) return;
    if (home->kind == DECL_extension) {
        inherit_from(c, func, home);
        const Type *type = this_type_of(c, home);
        home = type && type->kind == TYPE_struct ? (Decl *)(uintptr_t)type->decl : NULL;
    }
    if (home && home->kind == DECL_struct) inherit_from(c, func, home);
}

/* What stands in for a function is differentiated in its place, marked or not. */
static void derive_substitute(Checker *c, Decl *substitute) {
    uint32_t marks = DECL_FWD | DECL_BWD | DECL_TREAT_AS_DIFF | DECL_PRELUDE;
    if (!substitute) return;
    check_derivatives(c, substitute);
    const Sema *sema = decl_sema(c, substitute);
    if ((substitute->flags & marks) || sema->fwd.decl || sema->bwd.decl || sema->substitute.decl) return;
    substitute->flags |= DECL_FWD | DECL_BWD;
    if (substitute->state == STATE_body) check_differentiable_body(c, substitute);
}

/* Substitutes may have substitutes. */
static void refuse_circle(Checker *c, Decl *func) {
    Sema *sema = decl_sema(c, func);
    const Decl *at = sema->substitute.decl;
    while (at && at != func) at = at->sema ? at->sema->substitute.decl : NULL;
    if (!at) return;
    report(c, DIAG_circular_substitute, sema->substitute_attr ? sema->substitute_attr->loc : func->loc,
           func->name->text);
    sema->substitute = (FuncRef){0};
}

void check_derivatives(Checker *c, Decl *func) {
    ensure_header(c, func);
    Sema *sema = decl_sema(c, func);
    if (sema->derivatives_done || sema->derivatives_busy) return;
    sema->derivatives_busy = true;
    int muted = c->diags->muted;
    c->diags->muted = 0;
    resolve_own(c, func, sema->fwd_attr, LINK_fwd, &sema->fwd);
    resolve_own(c, func, sema->substitute_attr, LINK_substitute, &sema->substitute);
    resolve_pass(c, func);
    Attribute *backward[2] = {sema->bwd_attr, sema->bwd_attr2};
    for (int i = 0; i < 2 && backward[i]; i++) {
        Candidates *list = sema->bwd_attr2 ? candidates_of(c, func, backward[i]->args.at[0]) : NULL;
        bool forward = false; /* seed 004 writes [BackwardDerivative(get_fwd)]: the signature tells */
        for (int k = 0; list && k < list->count && !forward; k++)
            forward = matches(c, func, &list->at[k], LINK_fwd, &sema->fwd);
        if (!forward && sema->bwd.decl)
            report(c, DIAG_two_derivatives, backward[i]->loc, function_name(c, func));
        else if (!forward) resolve_own(c, func, backward[i], LINK_bwd, &sema->bwd);
    }
    resolve_others(c, func);
    inherit_derivatives(c, func);
    refuse_circle(c, func);
    c->diags->muted = muted;
    sema->derivatives_busy = false;
    sema->derivatives_done = true;
    derive_substitute(c, sema->substitute.decl);
    for (int i = 0; i < sema->specials.count; i++)
        derive_substitute(c, decl_sema(c, sema->specials.at[i])->substitute.decl);
}

Decl *check_differentiated(Checker *c, Decl *func) {
    while (func->kind == DECL_func) {
        check_derivatives(c, func);
        if (!func->sema->substitute.decl) break;
        func = func->sema->substitute.decl;
    }
    return func;
}

/* Its body becomes a part of the caller before that is differentiated. */
bool check_is_inlined(const Decl *func) {
    uint32_t marks = DECL_FWD | DECL_BWD | DECL_TREAT_AS_DIFF | DECL_PRELUDE;
    return func->kind == DECL_func && (func->flags & DECL_FORCE_INLINE) && !(func->flags & marks) &&
           func->body && !func->sema->fwd.decl && !func->sema->bwd.decl;
}

static bool takes_values(Checker *c, const FuncSig *flat) {
    for (int i = 0; i < flat->nparams; i++)
        if (flat->params[i].pass != PASS_out && is_diff(c, flat->params[i].type, flat->params[i].no_diff))
            return true;
    return false;
}

/* Of what gives references and no values there is nothing to be reversed: its forward derivative serves both
 * modes. */
static bool gives_references_only(Checker *c, Decl *func) {
    FuncSig sig = flat_signature(c, signature_of(c, func));
    bool values = takes_values(c, &sig) || is_diff(c, sig.result, sig.result_no_diff);
    bool references = is_reference(c, sig.result, sig.result_no_diff);
    for (int i = 0; i < sig.nparams; i++) {
        const ParamSig *param = &sig.params[i];
        if (param->pass == PASS_in) continue;
        values |= is_diff(c, param->type, param->no_diff);
        references |= is_reference(c, param->type, param->no_diff);
    }
    return references && !values;
}

bool check_is_differentiable(Checker *c, Decl *func, DiffMode mode) {
    if (func->kind == DECL_var) return true; /* a function passed in: judged where it is known */
    func = check_differentiated(c, func);
    Sema *sema = decl_sema(c, func);
    if (func->flags & (DECL_TREAT_AS_DIFF | (mode == DIFF_fwd ? DECL_FWD : DECL_BWD))) return true;
    if (check_is_inlined(func) || sema->derivatives_broken) return true;
    if (sema->derivatives_busy) return false;
    if (mode == DIFF_fwd) return sema->fwd.decl != NULL;
    if (sema->bwd.decl || !sema->fwd.decl) return sema->bwd.decl != NULL;
    return (sema->fwd.decl->flags & DECL_TRANSPOSABLE) || gives_references_only(c, func);
}

/* ---- checking attributes of a function on its own account */

static void check_diff_param(Checker *c, Decl *func, const ParamSig *param, bool values) {
    if (param->no_diff || param->pass == PASS_in || has_error(param->type)) return;
    Loc loc = param->decl ? param->decl->loc : func->loc;
    if (values && param->pass != PASS_constref && is_ptr_differentiable_type(c, param->type)) {
        report(c, DIAG_ptr_type_direction, loc, type_str(c, param->type));
        if (!param->decl && signature_of(c, func)->has_this)
            note(c, DIAG_note_leave_object, 0,
                 func->flavour == FUNC_set ? "write [nonmutating] set" : "leave out [mutating]");
    }
    if (param->pass == PASS_constref && is_differentiable_type(c, param->type))
        report(c, DIAG_diff_constref, loc, param->name ? param->name->text : "?");
}

/* Its `this` is a pair, so there must be one. */
static void check_deriv_method(Checker *c, Decl *func) {
    const FuncSig *sig = signature_of(c, func);
    bool pair = sig->has_this && (sig->this_type->kind == TYPE_pair || sig->this_type->kind == TYPE_ptr_pair);
    if (!pair && !(sig->has_this && has_error(sig->this_type)))
        report(c, DIAG_deriv_method_this, func->loc, func->name ? func->name->text : "?");
}

static bool serves_special(Checker *c, const Candidate *target, Decl *derivative, LinkKind kind) {
    check_derivatives(c, target->decl);
    const DeclVec *specials = &decl_sema(c, target->decl)->specials;
    Decl *special = specials->count ? make_special(c, target, derivative) : NULL;
    for (int i = 0; special && i < specials->count; i++) {
        Candidate candidate = {.decl = derivative, .subst = outer_for(c, derivative, specials->at[i])};
        FuncRef ref;
        if (same_special(c, specials->at[i], special) && matches(c, specials->at[i], &candidate, kind, &ref))
            return true;
    }
    return false;
}

static void report_target(Checker *c, const Candidate *target, LinkKind kind, Loc loc, Decl *derivative) {
    Decl *special = make_special(c, target, derivative);
    report_signature(c, special ? special : target->decl, kind, loc, derivative);
}

/* A public function takes its derivative from a module that those who import this one do not see. */
static void warn_not_exported(Checker *c, Decl *func, const Attribute *attribute, const FuncRef *derivative) {
    if (!attribute || !derivative->decl || !(func->modifiers & MODIFIER_public)) return;
    Decl *home = decl_module(func), *from = decl_module(derivative->decl);
    const DeclVec *exported = &decl_sema(c, home)->exported;
    for (int i = 0; i < exported->count; i++)
        if (exported->at[i] == from) return;
    if (from == home || from == c->prelude) return;
    const Name name = decl_sema(c, from)->module_name;
    report(c, DIAG_derivative_not_exported, attribute->loc, function_name(c, func),
           function_name(c, derivative->decl));
    if (name) note(c, DIAG_note_export_import, 0, name->text);
}

void check_diff_attributes(Checker *c, Decl *func) {
    Sema *sema = decl_sema(c, func);
    if (sema->fwd_attr || sema->bwd_attr || sema->substitute_attr || sema->primal_attr) {
        check_derivatives(c, func);
        warn_not_exported(c, func, sema->fwd_attr, &sema->fwd);
        warn_not_exported(c, func, sema->bwd_attr, &sema->bwd);
        warn_not_exported(c, func, sema->substitute_attr, &sema->substitute);
    }
    if (sema->primal.decl && !sema->bwd.decl && !sema->bwd_attr)
        report(c, DIAG_pass_alone, sema->primal_attr->loc, function_name(c, func));
    for (int k = 0; k < 3; k++) {
        Attribute *attribute = find_attribute(func, of_attributes[k]);
        if (!attribute || attribute->args.count != 1) continue;
        Candidates *targets = candidates_of(c, func, attribute->args.at[0]);
        bool found = false;
        for (int t = 0; targets && t < targets->count && !found; t++) {
            FuncRef ref;
            Decl *primal = targets->at[t].decl;
            Candidate candidate = {.decl = func, .subst = outer_for(c, func, primal)};
            found = matches(c, primal, &candidate, (LinkKind)k, &ref) ||
                    (targets->count == 1 && matches_nearly(c, primal, &candidate, (LinkKind)k, &ref));
            if (found) check_derivatives(c, primal); /* two of a kind are told there */
            else found = serves_special(c, &targets->at[t], func, (LinkKind)k);
        }
        if (targets && !found) report_target(c, &targets->at[0], (LinkKind)k, attribute->loc, func);
    }
    Attribute *apply = find_attribute(func, of_attributes[3]);
    if (apply) check_apply_of(c, func, candidates_of(c, func, apply->args.at[0]), apply->loc);
    if (func->flags & DECL_DERIV_METHOD) check_deriv_method(c, func);
    if (!(func->flags & (DECL_FWD | DECL_BWD))) return;
    FuncSig sig = flat_signature(c, sema->sig);
    bool values = takes_values(c, &sig);
    for (int i = 0; i < sig.nparams; i++) check_diff_param(c, func, &sig.params[i], values);
    if (values && is_reference(c, sig.result, sig.result_no_diff))
        report(c, DIAG_ptr_type_result, func->loc, type_str(c, sig.result));
}

/* What stands in a wrapper that was made because the signatures differ. */
static Decl *behind_wrapper(Checker *c, Decl *func) {
    if (!(func->modifiers & MODIFIER_synthesized) || !func->body || func->body->body.count != 1) return func;
    bool no_warnings = c->diags->no_warnings; /* nobody wrote the conversions in it */
    c->diags->no_warnings = true;
    check_decl_body(c, func);
    c->diags->no_warnings = no_warnings;
    const Expr *e = func->body->body.at[0]->expr;
    while (e && e->kind == EXPR_convert) e = e->a;
    return e && e->kind == EXPR_invoke && e->decl->kind == DECL_func ? e->decl : func;
}

/* A backward derivative of its own is enough for what is to be [Differentiable]: forward, the body serves. */
static void serve_forward(Checker *c, const Decl *requirement, Decl *implementation) {
    bool wanted = (requirement->flags & DECL_FWD) && !check_is_differentiable(c, implementation, DIFF_fwd);
    if (wanted && implementation->body && check_is_differentiable(c, implementation, DIFF_bwd))
        implementation->flags |= DECL_FWD;
}

static void check_function_diff(Checker *c, Decl *requirement, Decl *implementation) {
    implementation = behind_wrapper(c, implementation);
    serve_forward(c, requirement, implementation);
    bool lacks[2];
    for (int i = 0; i < 2; i++)
        lacks[i] = (requirement->flags & (i ? DECL_BWD : DECL_FWD)) &&
                   !check_is_differentiable(c, implementation, i ? DIFF_bwd : DIFF_fwd);
    flow_implements(c, requirement, implementation);
    if (!lacks[0] && !lacks[1]) return;
    const char *way = lacks[0] && lacks[1] ? "" : lacks[0] ? "forward " : "backward ";
    report(c, DIAG_requirement_not_differentiable, implementation->loc, function_name(c, implementation),
           way);
    note(c, DIAG_note_required_here, requirement->loc);
}

void check_requirement_diff(Checker *c, Decl *requirement, Decl *implementation) {
    if (requirement->kind == DECL_func && implementation->kind == DECL_func) {
        check_function_diff(c, requirement, implementation);
        return;
    }
    for (int i = 0; i < requirement->members.count; i++)
        for (int k = 0; k < implementation->members.count; k++) { /* accessors of a property or subscript */
            Decl *wanted = requirement->members.at[i], *have = implementation->members.at[k];
            if (wanted->kind != DECL_func || have->kind != DECL_func || wanted->flavour != have->flavour)
                continue;
            ensure_header(c, wanted);
            check_function_diff(c, wanted, have);
        }
}

/* ---- fwd_diff(f), bwd_diff(f) */

static void report_not_differentiable(Env *env, Expr *e, DiffMode mode, const Candidates *list) {
    Checker *c = env->c;
    Decl *decl = list->at[0].decl;
    const char *name = function_name(c, decl);
    report_expr(c, e, DIAG_not_differentiable, name, mode == DIFF_fwd ? "fwd_diff" : "bwd_diff");
    Sema *sema = decl_sema(c, decl);
    if (mode == DIFF_fwd && sema->bwd.decl) note(c, DIAG_note_only_backward, decl->loc, name);
    else if (mode == DIFF_bwd && sema->fwd.decl) note(c, DIAG_note_only_forward_derivative, decl->loc, name);
    else if (mode == DIFF_bwd && (decl->flags & DECL_FWD)) note(c, DIAG_note_only_forward, decl->loc, name);
    else note(c, DIAG_note_mark_differentiable, decl->loc, name);
}

/* A derivative is as visible as the less visible of the function and its definition. */
bool refuse_hidden_derivative(Env *env, Loc loc, Decl *func, DiffMode mode) {
    Checker *c = env->c;
    if (func->kind != DECL_func) return false;
    func = check_differentiated(c, func);
    const FuncRef *custom = mode == DIFF_fwd ? &func->sema->fwd : &func->sema->bwd;
    Decl *hidden = decl_visible_from(c, func, env->decl) ? custom->decl : func;
    if (!hidden || decl_visible_from(c, hidden, env->decl)) return false;
    report(c, DIAG_not_visible, loc, function_name(c, hidden));
    note(c, DIAG_note_declared_here, hidden->loc, function_name(c, hidden));
    return true;
}

/* A parameter of function type: whether what is passed is differentiable shows when it is known. */
static Candidates *function_parameter(Checker *c, Expr *a) {
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = a->decl->name;
    candidates_add(c, list, (Candidate){.decl = a->decl, .base = a});
    return list;
}

/* A value that can be called: such a parameter, or an object with call operators, which does not move. */
static Expr *function_operand(Env *env, Expr *a) {
    Checker *c = env->c;
    a = check_value(env, a);
    if (a->kind == EXPR_error || !a->type) return a;
    bool parameter = a->kind == EXPR_decl && a->type->kind == TYPE_function;
    Candidates *list = parameter ? function_parameter(c, a) : call_operators(c, a);
    if (!list) return a;
    Expr *node = expr_new(c->arena, EXPR_overload, a->loc);
    node->name = list->name;
    node->decl = list->at[0].decl;
    node->candidates = list;
    return node;
}

/* fwd_diff(f), again differentiated: what stands for it if that is written by hand; f itself if it is
 * made. */
static Decl *derivative_behind(Checker *c, Decl *func, const Candidates *list) {
    Decl *behind = func;
    for (int i = 0; i < list->nmodes && behind->kind == DECL_func; i++) {
        Decl *target = check_differentiated(c, behind);
        const FuncRef *custom = list->modes[i] == DIFF_fwd ? &target->sema->fwd : &target->sema->bwd;
        if (!custom->decl || (custom->decl->flags & DECL_PRELUDE)) return func;
        behind = custom->decl;
    }
    return behind;
}

/* Specialisations with derivatives of their own: the one that is named, or all that it may turn out to be. */
static bool add_specials(Checker *c, const Candidate *candidate, DiffMode mode, Candidates *list) {
    Decl *func = candidate->decl;
    int n = func->kind == DECL_func ? generic_count(func) : 0;
    FuncRef found;
    if (func->kind != DECL_func || list->nmodes) return false;
    check_derivatives(c, func);
    const DeclVec *specials = &decl_sema(c, func)->specials;
    for (int i = 0; i < specials->count && n && candidate->nargs == 0; i++) {
        Candidate special = *candidate;
        special.decl = specials->at[i];
        if (special_fits_around(c, special.decl, candidate->subst, &special.subst) &&
            check_is_differentiable(c, special.decl, mode))
            candidates_add(c, list, special);
    }
    if (candidate->nargs != n || specials->count == 0) return false;
    const Subst *args = n ? subst_new(c, candidate->subst, func, candidate->args, n) : candidate->subst;
    if (!check_special(c, func, args, &found) || !check_is_differentiable(c, found.decl, mode)) return false;
    Candidate special = *candidate;
    special.decl = found.decl;
    special.subst = found.subst;
    special.nargs = generic_count(found.decl);
    if (special.nargs) special.args = found.subst->args, special.subst = found.subst->outer;
    candidates_add(c, list, special);
    return true;
}

static bool is_plain_number(const Type *type) {
    return type_is_scalar(type->kind == TYPE_vector ? type->args[0] : type);
}

/* A function on integers may be marked, so that others can call it; its own derivative is nothing. One that
 * gives a float, or nothing, may have gradients of what it refers to. */
static void warn_constant(Checker *c, const Expr *e, Decl *func) {
    if (func->kind != DECL_func) return;
    const FuncSig *sig = signature_of(c, func);
    if (sig->has_this || !is_plain_number(sig->result) || is_diff(c, sig->result, sig->result_no_diff))
        return;
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i];
        if (!is_plain_number(param->type) || is_diff(c, param->type, param->no_diff)) return;
    }
    report_expr(c, e, DIAG_constant_derivative, func->name->text);
    note(c, DIAG_note_declared_here, func->loc, signature_text(c, func->name->text, sig));
}

Expr *check_diff_operator(Env *env, Expr *e) {
    Checker *c = env->c;
    DiffMode mode = e->kind == EXPR_fwd_diff ? DIFF_fwd : DIFF_bwd;
    Expr *a = check_term(env, e->a);
    if (a->kind == EXPR_error) return a;
    if (a->kind != EXPR_overload && a->kind != EXPR_type) a = function_operand(env, a);
    if (a->kind == EXPR_error) return a;
    if (a->kind != EXPR_overload) {
        report_expr(c, e, DIAG_diff_needs_function, mode == DIFF_fwd ? "fwd_diff" : "bwd_diff");
        return error_expr(c, e->loc);
    }
    Candidates *list = arena_new(c->arena, Candidates);
    *list = (Candidates){.name = a->candidates->name, .nmodes = a->candidates->nmodes};
    memcpy(list->modes, a->candidates->modes, sizeof list->modes);
    for (int i = 0; i < a->candidates->count; i++)
        if (!add_specials(c, &a->candidates->at[i], mode, list) &&
            check_is_differentiable(c, derivative_behind(c, a->candidates->at[i].decl, a->candidates), mode))
            candidates_add(c, list, a->candidates->at[i]);
    if (list->count == 0) {
        report_not_differentiable(env, e, mode, a->candidates);
        return error_expr(c, e->loc);
    }
    if (list->nmodes == (int)sizeof list->modes) {
        report_expr(c, e, DIAG_too_many_modes);
        return error_expr(c, e->loc);
    }
    if (list->count == 1 && list->nmodes == 0) warn_constant(c, e, list->at[0].decl);
    list->modes[list->nmodes++] = (uint8_t)mode;
    Expr *node = expr_new(c->arena, EXPR_overload, e->loc);
    node->name = a->name;
    node->decl = list->at[0].decl;
    node->candidates = list;
    return node;
}
