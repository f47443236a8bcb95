/* Calls: choosing among overloaded functions.
 *
 * Every candidate is tried: arguments are paired with parameters, generic arguments inferred, constraints
 * tested, and the costs of the conversions added up. The cheapest wins; ties are broken by the rules in
 * `compare`. Trying changes nothing; only the winner's arguments are converted. A candidate set can carry
 * derivative operators: then the translated signatures are what the arguments are matched with. */
#include "check/checker.h"

typedef enum Failure {
    FAIL_none,
    FAIL_few,
    FAIL_many,
    FAIL_generics, /* too many generic arguments */
    FAIL_generic,  /* a generic argument of the wrong kind */
    FAIL_share,    /* several packs that cannot share the generic arguments */
    FAIL_infer,
    FAIL_conflict,
    FAIL_opened,
    FAIL_interface,
    FAIL_constraint,
    FAIL_pack, /* an expansion for a parameter that is not a pack */
    FAIL_convert,
    FAIL_place,
    FAIL_exact
} Failure;

typedef struct Attempt {
    const Candidate *candidate;
    FuncSig sig;        /* with derivative operators applied, not yet specialised */
    const Subst *subst; /* complete */
    bool is_derivative;
    int cost;
    Failure failure;
    int arg; /* that failed */
    const Type *wanted;
    Decl *param;                /* generic parameter that failed */
    const Type *first, *second; /* what it would have to be */
} Attempt;

/* ---- pairing arguments with parameters */

/* Over a tuple that is known in part: as many elements as are listed there. */
static int listed_by(Checker *c, const Expr *arg) {
    const Type *list = arg->kind == EXPR_expand && arg->a ? pack_make(c, &arg->type, 1) : NULL;
    return list && list->kind == TYPE_pack ? list->nargs : 1;
}

/* The specialised type of the parameter that argument `arg` goes to. */
static const Type *arg_type(Checker *c, const Attempt *attempt, const ExprVec *args, int arg) {
    int index = sig_param_of(&attempt->sig, args->count, arg), element = 0;
    const ParamSig *param = &attempt->sig.params[index];
    const Type *pack = check_subst(c, param->type, attempt->subst);
    if (!param->is_pack) return pack;
    for (int i = sig_first_arg(&attempt->sig, args->count, index); i < arg; i++)
        element += listed_by(c, args->at[i]);
    if (pack->kind == TYPE_expand) return element == 0 ? pack : ERROR_TYPE(c);
    return pack->kind == TYPE_pack && element < pack->nargs ? pack->args[element] : ERROR_TYPE(c);
}

/* ---- inference */

static const Type *inferable_type(const Expr *arg) {
    if (arg->kind == EXPR_list || arg->kind == EXPR_overload || !arg->type) return NULL;
    return arg->type;
}

/* A function object may be given to a derivative as it is, where a pair is wanted: it is a constant then.
 * What type it must have; NULL: it is none. */
static const Type *as_constant(Checker *c, const Attempt *attempt, const Type *wanted, const Expr *arg) {
    if (!attempt->is_derivative || wanted->kind != TYPE_pair || !arg->type) return NULL;
    DeclVec *functions = scope_find(scope_inside(c, c->prelude), c->known.IMutatingFunc);
    bool is_function = functions && check_find_conformance(c, arg->type, functions->at[0]);
    return is_function ? wanted->args[0] : NULL;
}

/* False: an argument has no type of its own. */
static bool infer_from_pack(Checker *c, Inference *inference, const ParamSig *param, const Subst *outer,
                            ExprVec *args, int first, int count) {
    const Type **types = arena_array(c->arena, const Type *, count ? count : 1);
    for (int i = 0; i < count; i++) {
        types[i] = inferable_type(args->at[first + i]);
        if (!types[i]) return false;
    }
    infer_match(inference, check_subst(c, param->type, outer), pack_make(c, types, count));
    return true;
}

static const Type *given_arg(Checker *c, Attempt *attempt, Decl *param, int i) {
    const Candidate *candidate = attempt->candidate;
    const Type *value = candidate->values ? candidate->values[i] : NULL;
    const Type *arg = generic_arg_for(c, candidate->decl, param, candidate->args[i], value, 0);
    if (arg) return arg;
    attempt->failure = FAIL_generic;
    attempt->param = param;
    attempt->arg = i;
    return NULL;
}

/* All that is left is for the packs. */
static bool take_packs(Attempt *attempt, Inference *inference, int first) {
    Checker *c = inference->c;
    const Candidate *candidate = attempt->candidate;
    int count = candidate->nargs - first;
    const Type **args = arena_array(c->arena, const Type *, count);
    for (int i = 0; i < count; i++) {
        args[i] = given_arg(c, attempt, generic_param(candidate->decl, first), first + i);
        if (!args[i]) return false;
    }
    inference->given = inference->nargs;
    if (pack_share(c, candidate->decl, first, args, count, inference->args)) return true;
    attempt->failure = FAIL_share;
    attempt->arg = count;
    return false;
}

/* The generic arguments that were written. */
static bool take_given(Attempt *attempt, Inference *inference) {
    Checker *c = inference->c;
    const Candidate *candidate = attempt->candidate;
    for (int i = 0; i < candidate->nargs; i++) {
        Decl *param = i < inference->nargs ? generic_param(candidate->decl, i) : NULL;
        if (!param || (param->modifiers & MODIFIER_synthesized)) {
            attempt->failure = FAIL_generics;
            return false;
        }
        if (param->modifiers & MODIFIER_pack) return take_packs(attempt, inference, i);
        inference->args[i] = given_arg(c, attempt, param, i);
        if (!inference->args[i]) return false;
        inference->given = i + 1;
    }
    return true;
}

bool take_written_args(Inference *inference, const Candidate *candidate) {
    Attempt attempt = {.candidate = candidate};
    return take_given(&attempt, inference);
}

static bool has_expansion(const ExprVec *args) {
    for (int i = 0; i < args->count; i++)
        if (args->at[i]->kind == EXPR_expand) return true;
    return false;
}

/* How many arguments a pack takes, where that is known; else -1. */
static int pack_length(Checker *c, const Attempt *attempt, int param) {
    const Type *type = check_subst(c, attempt->sig.params[param].type, attempt->subst);
    if (type->kind != TYPE_pack) return -1;
    for (int i = 0; i < type->nargs; i++)
        if (type->args[i]->kind == TYPE_expand) return -1;
    return type->nargs;
}

/* A pack that was written out, or that the type around has, takes just as many arguments. */
static bool pack_fits(Checker *c, Attempt *attempt, const ExprVec *args) {
    int share = sig_share(&attempt->sig, args->count);
    if (has_expansion(args)) return true;
    for (int i = 0; i < attempt->sig.nparams; i++) {
        int length = attempt->sig.params[i].is_pack ? pack_length(c, attempt, i) : -1;
        if (length < 0 || length == share) continue;
        attempt->failure = length > share ? FAIL_few : FAIL_many;
        return false;
    }
    return true;
}

/* An interface value for a parameter `T t` is opened: T is then the type that it holds. Else T is the
 * interface itself, of which only methods can be called. */
static bool interface_fits(Checker *c, Attempt *attempt, int index) {
    Decl *decl = attempt->candidate->decl;
    const Type *bound = subst_find(attempt->subst, decl, index), *param = param_type(c, decl, index);
    if (!bound || bound->kind != TYPE_interface) return true;
    attempt->param = generic_param(decl, index);
    attempt->first = bound;
    if (check_opens(c, &attempt->sig, param) || interface_as_argument(c, decl, param, 0)) return true;
    attempt->failure = FAIL_interface;
    for (int i = 0; i < attempt->sig.nparams; i++)
        if (attempt->sig.params[i].type == param && attempt->sig.params[i].pass == PASS_in)
            attempt->failure = FAIL_opened;
    return false;
}

static bool interfaces_fit(Checker *c, Attempt *attempt) {
    for (int i = 0; i < generic_count(attempt->candidate->decl); i++)
        if (!interface_fits(c, attempt, i)) return false;
    return true;
}

static bool finish_inference(Attempt *attempt, Inference *inference, const ExprVec *args) {
    if (infer_finish(inference, attempt->candidate->subst, &attempt->subst))
        return pack_fits(inference->c, attempt, args) && interfaces_fit(inference->c, attempt);
    attempt->failure = inference->first ? FAIL_conflict : FAIL_infer;
    attempt->first = inference->first;
    attempt->second = inference->second;
    int index = inference->conflict;
    for (int i = 0; i < inference->nargs && !inference->first; i++)
        if (!inference->args[i]) index = i;
    attempt->param = generic_param(attempt->candidate->decl, index);
    return false;
}

static Decl *first_pack(const Decl *decl) {
    for (int i = 0; i < generic_count(decl); i++) {
        Decl *param = generic_param(decl, i);
        if (param && (param->modifiers & MODIFIER_pack)) return param;
    }
    return NULL;
}

static bool infer_args(Env *env, Attempt *attempt, ExprVec *args) {
    Checker *c = env->c;
    const Candidate *candidate = attempt->candidate;
    Decl *decl = candidate->decl;
    int n = generic_count(decl);
    attempt->subst = candidate->subst;
    if (n == 0) return pack_fits(c, attempt, args);
    Inference inference = {.c = c, .owner = decl, .args = arena_array(c->arena, const Type *, n), .nargs = n};
    inference.single_lane = arena_array(c->arena, bool, n);
    if (!take_given(attempt, &inference)) return false;
    int share = sig_share(&attempt->sig, args->count);
    for (int i = 0; i < args->count; i++) {
        const ParamSig *param = &attempt->sig.params[sig_param_of(&attempt->sig, args->count, i)];
        if (param->is_pack) continue;
        const Type *pattern = check_subst(c, param->type, candidate->subst);
        const Type *actual = inferable_type(args->at[i]);
        if (pattern->kind == TYPE_function) infer_from_function(&inference, pattern, args->at[i], true);
        const Type *constant = as_constant(c, attempt, pattern, args->at[i]);
        if (actual && (pattern->kind != TYPE_function || actual->kind == TYPE_function))
            infer_match(&inference, constant ? constant : pattern, actual);
    }
    for (int i = 0; i < args->count; i++) {
        const ParamSig *param = &attempt->sig.params[sig_param_of(&attempt->sig, args->count, i)];
        if (param->type->kind == TYPE_function)
            infer_from_function(&inference, check_subst(c, param->type, candidate->subst), args->at[i],
                                false);
    }
    for (int i = 0; i < attempt->sig.nparams; i++)
        if (attempt->sig.params[i].is_pack &&
            !infer_from_pack(c, &inference, &attempt->sig.params[i], candidate->subst, args,
                             sig_first_arg(&attempt->sig, args->count, i), share)) {
            attempt->failure = FAIL_infer;
            attempt->param = first_pack(decl);
            return false;
        }
    return finish_inference(attempt, &inference, args);
}

/* ---- costs */

static bool differ_in_sign_only(const Type *a, const Type *b) {
    if (a->kind == TYPE_vector && b->kind == TYPE_vector)
        return a->args[1] == b->args[1] && differ_in_sign_only(a->args[0], b->args[0]);
    return type_is_integer(a) && type_is_integer(b) && type_bits(a) == type_bits(b);
}

static bool is_upcast(Env *env, const Type *from, const Type *to) {
    return from->kind == TYPE_struct && to->kind == TYPE_struct && type_conversion_cost(env, from, to) >= 0;
}

/* An object as one of the struct that a member of it belongs to. */
Expr *as_base(Env *env, Expr *object, const Type *type) {
    if (object->type == type || !is_upcast(env, object->type, type)) return object;
    Expr *node = convert_node(env->c, object, type, CONVERT_upcast);
    node->flags |= object->flags & (EXPR_PLACE | EXPR_READONLY);
    return node;
}

static int place_cost(Env *env, Attempt *attempt, const Expr *arg, const Type *type) {
    if (arg->kind == EXPR_error || has_error(type)) return 0;
    if (!(arg->flags & EXPR_PLACE)) {
        attempt->failure = FAIL_place;
        return COST_none;
    }
    if (arg->type == type) return 0;
    if (differ_in_sign_only(arg->type, type)) return 250;
    if (is_upcast(env, arg->type, type)) return 100;
    attempt->failure = FAIL_exact;
    return COST_none;
}

static bool is_constrained(const Decl *owner, const Type *param) {
    for (int i = 0; i < owner->generics->constraints.count; i++)
        if (owner->generics->constraints.at[i].subject_type == param) return true;
    return false;
}

/* Does it mention a type of the generic declaration that may be any at all? */
static bool mentions_any_type(const Type *type, const Decl *owner) {
    if (!(type->flags & TYPE_HAS_PARAM)) return false;
    if (type->kind == TYPE_param)
        return type->decl == owner && !(type->flags & TYPE_IS_VALUE_PARAM) && !is_constrained(owner, type);
    for (int i = 0; i < type->nargs; i++)
        if (mentions_any_type(type->args[i], owner)) return true;
    return false;
}

/* As many indices as there are dimensions: one number is not all of them. */
static bool is_index_for_all(const Attempt *attempt, const ParamSig *param, const Type *type,
                             const Expr *arg) {
    const Decl *decl = attempt->candidate->decl;
    if (decl->kind != DECL_subscript || !decl_is_library(decl)) return false;
    return type->kind == TYPE_vector && type_count(type) != 1 && arg->type && type_is_scalar(arg->type) &&
           type_count(param->type) == 0;
}

static int arg_cost(Env *env, Attempt *attempt, ExprVec *args, int i) {
    const ParamSig *param = &attempt->sig.params[sig_param_of(&attempt->sig, args->count, i)];
    const Expr *arg = args->at[i];
    if (arg->kind == EXPR_expand && param->is_pack) return 0;
    const Type *type = attempt->wanted = arg_type(env->c, attempt, args, i);
    if (arg->kind == EXPR_expand) {
        attempt->failure = FAIL_pack;
        return COST_none;
    }
    const Type *constant = as_constant(env->c, attempt, type, arg);
    bool by_place = param->pass == PASS_out || param->pass == PASS_inout || param->pass == PASS_ref;
    if (by_place && !constant) return place_cost(env, attempt, arg, type);
    int cost = conversion_cost(env, arg, constant ? constant : type);
    if (cost < 0 || is_index_for_all(attempt, param, type, arg)) {
        attempt->failure = FAIL_convert;
        return COST_none;
    }
    const Decl *decl = attempt->candidate->decl;
    if (!type_mentions(param->type, decl)) return cost;
    if (arg->type && arg->type->kind == TYPE_interface && type == arg->type) cost = 0;
    return cost + (mentions_any_type(param->type, decl) ? COST_any_type : 0);
}

static bool takes_so_many(Attempt *attempt, int nargs) {
    const FuncSig *sig = &attempt->sig;
    int written = sig_written(sig), packs = sig_packs(sig);
    if (!packs && nargs == written) return true;
    int required = sig_required(sig);
    if (nargs < required) attempt->failure = FAIL_few;
    else if (nargs > written && !packs) attempt->failure = FAIL_many;
    else if (packs && (nargs - required) % packs) {
        attempt->failure = FAIL_share;
        attempt->arg = nargs - required;
    }
    return !attempt->failure;
}

static void attempt_candidate(Env *env, Attempt *attempt, ExprVec *args) {
    if (!takes_so_many(attempt, args->count) || !infer_args(env, attempt, args)) return;
    if (!constraints_hold(env->c, attempt->candidate->decl, attempt->subst, 0))
        attempt->failure = FAIL_constraint;
    for (int i = 0; i < args->count && !attempt->failure; i++) {
        attempt->arg = i;
        int cost = arg_cost(env, attempt, args, i);
        if (cost >= 0) attempt->cost += cost;
    }
}

/* ---- ranking */

static int visible_generics(const Decl *decl) {
    int n = 0;
    for (int i = 0; decl->generics && i < decl->generics->params.count; i++)
        n += !(decl->generics->params.at[i]->modifiers & MODIFIER_synthesized);
    return n;
}

static bool is_bound(const Constraint *constraint) {
    return !constraint->equal && !constraint->optional && constraint->bound_type &&
           constraint->bound_type->kind == TYPE_interface;
}

/* b's parameters, replaced by a's; NULL: the two do not have as many. */
static const Subst *renaming(Checker *c, const Decl *a, const Decl *b) {
    int n = generic_count(b);
    if (n != generic_count(a)) return NULL;
    const Type **args = arena_array(c->arena, const Type *, n);
    for (int i = 0; i < n; i++) args[i] = param_type(c, a, i);
    return subst_new(c, NULL, b, args, n);
}

/* Do a's constraints say all that b's say? */
static bool implies(Checker *c, const Decl *a, const Decl *b, const Subst *b_as_a) {
    for (int i = 0; i < b->generics->constraints.count; i++) {
        const Constraint *wanted = &b->generics->constraints.at[i];
        if (!is_bound(wanted)) continue;
        const Type *subject = check_subst(c, wanted->subject_type, b_as_a),
                   *bound = check_subst(c, wanted->bound_type, b_as_a);
        bool found = false;
        for (int k = 0; k < a->generics->constraints.count && !found; k++) {
            const Constraint *have = &a->generics->constraints.at[k];
            found = is_bound(have) && have->subject_type == subject &&
                    interface_inherits(c, have->bound_type, bound);
        }
        if (!found) return false;
    }
    return true;
}

/* Only functions whose parameters have the same types, but for the names of the generic ones, can be
 * compared. */
static int compare_constraints(Checker *c, const Attempt *a, const Attempt *b, const Decl *da,
                               const Decl *db) {
    const Subst *b_as_a = renaming(c, da, db), *a_as_b = renaming(c, db, da);
    if (!b_as_a || a->sig.nparams != b->sig.nparams) return 0;
    for (int i = 0; i < a->sig.nparams; i++)
        if (a->sig.params[i].type != check_subst(c, b->sig.params[i].type, b_as_a)) return 0;
    bool a_implies = implies(c, da, db, b_as_a), b_implies = implies(c, db, da, a_as_b);
    return a_implies == b_implies ? 0 : a_implies ? -1 : 1;
}

/* Of members of two extensions, that of the more special one; of two subscripts, that which can do more. */
static int compare_members(Checker *c, const Attempt *a, const Attempt *b) {
    const Decl *da = a->candidate->decl, *db = b->candidate->decl;
    const Decl *pa = da->parent, *pb = db->parent;
    if (!pa || !pb || pa->kind != DECL_extension || pb->kind != DECL_extension) return 0;
    int constraints = pa->generics && pb->generics ? compare_constraints(c, a, b, pa, pb) : 0;
    if (constraints || da->kind != DECL_subscript) return constraints;
    return db->members.count - da->members.count;
}

static bool has_body(const Decl *decl) { return decl->body || decl->lazy.count || decl->body_expr; }

/* Negative: a is better. */
static int compare(Checker *c, const Attempt *a, const Attempt *b) {
    const Decl *da = a->candidate->decl, *db = b->candidate->decl;
    if (a->cost != b->cost) return a->cost - b->cost;
    int ga = visible_generics(da), gb = visible_generics(db);
    if ((ga == 0) != (gb == 0)) return ga == 0 ? -1 : 1;
    int constraints = ga && a->sig.nparams ? compare_constraints(c, a, b, da, db) : 0;
    if (constraints) return constraints;
    int ra = da->sema ? da->sema->overload_rank : 0, rb = db->sema ? db->sema->overload_rank : 0;
    if (ra != rb) return rb - ra;
    if (ga != gb) return ga - gb;
    if (a->candidate->distance != b->candidate->distance)
        return a->candidate->distance - b->candidate->distance;
    int members = compare_members(c, a, b);
    if (members) return members;
    if (has_body(da) != has_body(db)) return has_body(da) ? -1 : 1;
    return 0;
}

int compare_candidates(Checker *c, const Candidate *a, const Candidate *b) {
    Attempt first = {.candidate = a, .sig = *signature_of(c, a->decl)},
            second = {.candidate = b, .sig = *signature_of(c, b->decl)};
    return compare(c, &first, &second);
}

/* ---- messages */

static const char *arg_types_text(Checker *c, ExprVec *args) {
    Text text = {.arena = c->arena};
    for (int i = 0; i < args->count; i++) {
        const Expr *arg = args->at[i];
        if (i) text_add(&text, STR(", "));
        if (arg->kind == EXPR_list) text_add(&text, STR("{...}"));
        else if (arg->kind == EXPR_overload) text_add(&text, STR("function"));
        else if (arg->type) type_print(&text, arg->type);
    }
    return text.at ? text.at : "";
}

static const char *display_name(Checker *c, const Candidates *list) {
    const char *name = list->name ? list->name->text : "[]";
    if (list->at[0].decl->kind == DECL_func && list->at[0].decl->flavour == FUNC_init) {
        Decl *type = decl_type_around(list->at[0].decl);
        name = type && type->name ? type->name->text : "__init";
    }
    for (int i = 0; i < list->nmodes; i++)
        name = format_text(c->arena, "%s(%s)", list->modes[i] == DIFF_fwd ? "fwd_diff" : "bwd_diff", name);
    return name;
}

static const Type *param_of(Checker *c, const Attempt *attempt) {
    const Decl *decl = attempt->candidate->decl;
    for (int i = 0; i < generic_count(decl); i++)
        if (generic_param(decl, i) == attempt->param) return param_type(c, decl, i);
    return ERROR_TYPE(c);
}

/* How many arguments it takes. */
static const char *taken_text(Checker *c, const Attempt *attempt) {
    const FuncSig *sig = &attempt->sig;
    int least = sig_required(sig), most = sig_packs(sig) ? least : sig_written(sig);
    for (int i = 0; i < sig->nparams; i++) {
        if (!sig->params[i].is_pack) continue;
        int length = attempt->subst ? pack_length(c, attempt, i) : -1;
        if (length < 0) return range_text(c, sig_required(sig), -1, "argument");
        least += length;
        most += length;
    }
    return range_text(c, least, most, "argument");
}

static void report_arg(Env *env, Loc loc, const Attempt *attempt, ExprVec *args, const char *name) {
    Checker *c = env->c;
    const Expr *arg = attempt->arg < args->count ? args->at[attempt->arg] : NULL;
    int position = attempt->arg + 1;
    switch (attempt->failure) {
    case FAIL_none: return;
    case FAIL_few:
    case FAIL_many: report(c, DIAG_argument_count, loc, name, taken_text(c, attempt), args->count); break;
    case FAIL_generics:
        report(c, DIAG_too_many_generic_args, loc, name,
               count_text(c, visible_generics(attempt->candidate->decl), "generic argument"),
               attempt->candidate->nargs);
        break;
    case FAIL_generic: {
        const Candidate *candidate = attempt->candidate;
        generic_arg_for(c, candidate->decl, attempt->param, candidate->args[attempt->arg],
                        candidate->values[attempt->arg], loc);
        break;
    }
    case FAIL_share: report(c, DIAG_packs_share, loc, name, attempt->arg); break;
    case FAIL_infer:
        for (int i = 0; i < attempt->sig.nparams; i++)
            if (has_error(attempt->sig.params[i].type)) return; /* from which it might be known */
        report(c, DIAG_cannot_infer, loc, format_text(c->arena, "'%s'", attempt->param->name->text), name,
               name);
        for (int i = 0; i < args->count; i++)
            if (args->at[i]->kind == EXPR_overload && args->at[i]->name)
                note(c, DIAG_note_function_to_lambda, args->at[i]->loc, args->at[i]->name->text);
        break;
    case FAIL_conflict:
        report(c, DIAG_infer_conflict, loc, attempt->param->name->text, name, type_str(c, attempt->first),
               type_str(c, attempt->second));
        break;
    case FAIL_opened:
        report(c, DIAG_opened_twice, loc, attempt->param->name->text, name, type_str(c, attempt->first));
        break;
    case FAIL_interface: interface_as_argument(c, attempt->candidate->decl, param_of(c, attempt), loc); break;
    case FAIL_constraint: constraints_hold(c, attempt->candidate->decl, attempt->subst, loc); return;
    case FAIL_pack: report_expr(c, arg, DIAG_pack_for_one, position, name); break;
    case FAIL_place: report_expr(c, arg, DIAG_argument_not_place, position, name); break;
    case FAIL_convert:
    case FAIL_exact:
        if (arg->kind == EXPR_list)
            coerce_list(env, args->at[attempt->arg], attempt->wanted); /* says what is wrong with it */
        else if (arg->kind == EXPR_overload)
            report_expr(c, arg, DIAG_function_mismatch, arg->name ? arg->name->text : "?",
                        type_str(c, attempt->wanted));
        else {
            report_expr(c, arg, DIAG_argument_type, position, name, type_str(c, attempt->wanted),
                        type_str(c, arg->type));
            if (attempt->wanted->kind == TYPE_function) note_function_holds(c, arg);
            if (attempt->failure == FAIL_convert &&
                !note_plain_param(c, attempt->candidate->decl, attempt->arg, arg->type))
                note_conversion(c, arg->type, attempt->wanted);
        }
        break;
    }
    const Decl *decl = attempt->candidate->decl;
    note(c, DIAG_note_signature, decl->loc, function_text(c, name, decl, &attempt->sig));
}

bool refuse_written_args(Env *env, Loc loc, const Candidate *candidate, const char *name) {
    Checker *c = env->c;
    int n = generic_count(candidate->decl);
    Inference inference = {
        .c = c, .owner = candidate->decl, .args = arena_array(c->arena, const Type *, n + 1), .nargs = n};
    Attempt attempt = {.candidate = candidate, .sig = *signature_of(c, candidate->decl)};
    if (take_given(&attempt, &inference)) return false;
    report_arg(env, loc, &attempt, &(ExprVec){0}, name);
    return true;
}

static void note_candidate(Checker *c, const Attempt *attempt, ExprVec *args, const char *name) {
    const char *signature = signature_text(c, name, &attempt->sig);
    Loc loc = attempt->candidate->decl->loc;
    const Expr *arg = attempt->arg < args->count ? args->at[attempt->arg] : NULL;
    bool by_type =
        attempt->failure == FAIL_convert || attempt->failure == FAIL_exact || attempt->failure == FAIL_pack;
    if (by_type && arg && arg->type && arg->kind != EXPR_list)
        note(c, DIAG_note_candidate_type, loc, signature, attempt->arg + 1, type_str(c, arg->type));
    else if (attempt->failure == FAIL_place)
        note(c, DIAG_note_candidate_place, loc, signature, attempt->arg + 1);
    else note(c, DIAG_note_candidate, loc, signature);
}

/* The only candidate that takes as many arguments, if their types just do not conform: that says more than a
 * list. */
static const Attempt *only_by_count(const Candidates *list, const Attempt *attempts) {
    const Attempt *only = NULL;
    for (int i = 0; i < list->count; i++) {
        if (attempts[i].failure == FAIL_few || attempts[i].failure == FAIL_many) continue;
        if (attempts[i].failure == FAIL_convert && list->at[i].decl->kind == DECL_subscript) continue;
        if (only) return NULL;
        only = &attempts[i];
    }
    return only && only->failure == FAIL_constraint ? only : NULL;
}

static Expr *report_no_match(Env *env, Loc loc, const Candidates *list, const Attempt *attempts,
                             ExprVec *args) {
    Checker *c = env->c;
    const char *name = display_name(c, list);
    const Attempt *only = only_by_count(list, attempts);
    if (list->count == 1 || only) {
        report_arg(env, loc, only ? only : &attempts[0], args, name);
        return error_expr(c, loc);
    }
    report(c, DIAG_no_overload, loc, name, arg_types_text(c, args));
    note_usage(c, list);
    int shown = 0;
    for (int by_count = 0; by_count < 2; by_count++) /* those that take as many arguments come first */
        for (int i = 0; i < list->count && shown < 6; i++) {
            bool count_differs = attempts[i].failure == FAIL_few || attempts[i].failure == FAIL_many;
            if (count_differs != (by_count == 1)) continue;
            note_candidate(c, &attempts[i], args, name);
            shown++;
        }
    if (list->count > 6) note(c, DIAG_note_more_candidates, 0, list->count - 6);
    return error_expr(c, loc);
}

static Expr *report_tie(Env *env, Loc loc, const Candidates *list, const Attempt *a, const Attempt *b,
                        ExprVec *args) {
    Checker *c = env->c;
    const char *name = display_name(c, list);
    Decl *first = a->candidate->decl, *second = b->candidate->decl;
    if (first->parent == second->parent && declarations_clash(c, first, second))
        return error_expr(c, loc); /* which is said where they are declared */
    report(c, DIAG_ambiguous_call, loc, name, arg_types_text(c, args));
    note(c, DIAG_note_candidate, a->candidate->decl->loc,
         function_text(c, name, a->candidate->decl, &a->sig));
    note(c, DIAG_note_candidate, b->candidate->decl->loc,
         function_text(c, name, b->candidate->decl, &b->sig));
    return error_expr(c, loc);
}

/* ---- performing the call that was chosen */

static Expr *place_arg(Env *env, Expr *arg, const ParamSig *param, const Type *type) {
    Checker *c = env->c;
    if (!require_writable(env, arg, arg->loc)) return error_expr(c, arg->loc);
    if (arg->type == type) return arg;
    Expr *node =
        convert_node(c, arg, type, differ_in_sign_only(arg->type, type) ? CONVERT_same_bits : CONVERT_upcast);
    node->flags |= EXPR_PLACE;
    (void)param;
    return node;
}

static Expr *this_arg(Env *env, Loc loc, const Attempt *attempt) {
    Checker *c = env->c;
    Expr *base = attempt->candidate->base;
    Decl *decl = attempt->candidate->decl;
    if (!base) {
        report(c, DIAG_needs_object, loc, decl->name ? decl->name->text : "[]");
        return error_expr(c, loc);
    }
    if (!base->type && base->kind != EXPR_error) { /* `this`, or what a function that was made calls it on */
        base->loc = loc;
        base = check_term(env, base);
    }
    if (base->kind == EXPR_error) return base;
    const Type *type = check_subst(c, attempt->sig.this_type, attempt->subst);
    bool writes = attempt->sig.this_pass == PASS_inout && decl->kind != DECL_subscript;
    if (writes && (!(base->flags & EXPR_PLACE) || (base->flags & EXPR_READONLY))) {
        report(c, DIAG_mutating_readonly, loc, decl->name ? decl->name->text : "[]");
        if (!(base->flags & EXPR_PLACE)) note(c, DIAG_note_keep_in_variable, 0);
        else why_readonly(env, base);
        return error_expr(c, loc);
    }
    if (writes) mark_assigned(base);
    return as_base(env, base, type);
}

void check_default_argument(Checker *c, Decl *param) {
    if (!param->init || (param->init->flags & EXPR_CHECKED) || !param->type) return;
    Decl *func = param->parent;
    Env env = env_for_decl(c, func);
    env.scope = func->generics ? scope_inside(c, func) : scope_inside(c, func->parent);
    env.this_type = NULL;
    const Decl *context = c->context;
    c->context = func;
    int large = c->large.count;
    param->init = check_value_of(&env, param->init, param->type);
    report_large_numbers(c, large);
    param->init->flags |= EXPR_CHECKED;
    c->context = context;
}

void check_default_argument_of(Checker *c, Decl *param) { check_default_argument(c, param); }

static bool opens_interface(const Subst *subst) {
    for (; subst; subst = subst->outer)
        for (int i = 0; i < subst->nargs; i++)
            if (subst->args[i]->kind == TYPE_interface) return true;
    return false;
}

static bool mentions_self(const Type *type, const Decl *interface) {
    if (type->kind == TYPE_param) return type->decl == interface && type->number == 0;
    for (int i = 0; i < type->nargs; i++)
        if (mentions_self(type->args[i], interface)) return true;
    return false;
}

/* A member of extension<T : I> T, on a value of I: opened like a parameter; else T is the interface
 * itself. */
static bool refuse_in_extension(Checker *c, Loc loc, const Attempt *attempt) {
    const Decl *decl = attempt->candidate->decl, *extension = decl->parent;
    const Type *target = decl_sema(c, (Decl *)(uintptr_t)extension)->target;
    if (!target || target->kind != TYPE_param || target->decl != extension) return false;
    const Type *self = subst_find(attempt->subst, extension, (int)target->number);
    if (!self || self->kind != TYPE_interface) return false;
    if (attempt->sig.has_this && check_opens(c, &attempt->sig, target)) return false;
    if (attempt->sig.has_this) return !interface_as_argument(c, extension, target, loc);
    report(c, DIAG_static_of_interface, loc, decl->name ? decl->name->text : "[]", type_str(c, self));
    return true;
}

/* A requirement, called where all that is known of the type is that it conforms. */
static bool refuse_unknown_self(Env *env, Loc loc, const Candidates *list, const Attempt *attempt) {
    Checker *c = env->c;
    const Decl *decl = attempt->candidate->decl, *interface = decl->parent;
    if (interface && interface->kind == DECL_extension) return refuse_in_extension(c, loc, attempt);
    if (!interface || interface->kind != DECL_interface || list->nmodes) return false;
    const Type *self = subst_find(attempt->subst, interface, 0);
    if (!self || self->kind != TYPE_interface) return false;
    const char *name = decl->name ? decl->name->text : "[]";
    if (!attempt->sig.has_this && !attempt->candidate->base) {
        report(c, DIAG_static_of_interface, loc, name, type_str(c, self));
        return true;
    }
    for (int i = 0; i < attempt->sig.nparams; i++) {
        const Type *type = attempt->sig.params[i].type;
        bool differential = type->kind == TYPE_assoc && type->name == c->known.Differential;
        bool tied = is_associated(c, type) && attempt->sig.params[i].pass == PASS_in;
        if (!mentions_self(type, interface) || differential || tied) continue;
        report(c, DIAG_takes_this, loc, name, type_str(c, self));
        note(c, DIAG_note_signature, decl->loc, function_text(c, name, decl, &attempt->sig));
        return true;
    }
    return false;
}

/* Where the call leaves its error; `try` looks there. */
static void set_error_arg(Env *env, Expr *call, const Type *type) {
    call->c = error_variable(env, call->loc, type);
    vec_push(env->c->arena, &call->args, call->c);
    call->flags |= EXPR_THROWS;
}

static void add_error_arg(Env *env, Expr *call, const Attempt *attempt) {
    const ParamSig *param = &attempt->sig.params[attempt->sig.nparams - 1];
    set_error_arg(env, call, check_subst(env->c, param->type, attempt->subst));
}

/* A pair with a derivative of zero, which the call may change. */
static Expr *constant_pair(Env *env, Expr *value) {
    return value->kind == EXPR_error ? value
                                     : call_named(env, value->loc, env->c->known.diffPair, &value, 1, false);
}

static Expr *invoke(Env *env, Loc loc, const Candidates *list, const Attempt *attempt, ExprVec *args) {
    Checker *c = env->c;
    Decl *decl = attempt->candidate->decl;
    bool is_subscript = decl->kind == DECL_subscript;
    if ((decl->flags & DECL_DERIV_METHOD) && !env->in_attribute) {
        report(c, DIAG_deriv_method_call, loc, decl->name->text);
        return error_expr(c, loc);
    }
    if (refuse_unknown_self(env, loc, list, attempt)) return error_expr(c, loc);
    Expr *e = expr_new(c->arena, is_subscript ? EXPR_decl : EXPR_invoke, loc);
    e->decl = decl;
    e->name = decl->name;
    e->subst = attempt->subst;
    e->type = check_subst(c, attempt->sig.result, attempt->subst);
    e->flags = EXPR_CHECKED;
    memcpy(e->modes, list->modes, sizeof e->modes);
    e->nmodes = list->nmodes;
    bool failed = false;
    ExprVec written = {0};
    if (decl->kind == DECL_var) e->a = attempt->candidate->base; /* a parameter of function type */
    else if (attempt->sig.has_this) e->a = this_arg(env, loc, attempt);
    else if (attempt->candidate->base && attempt->candidate->base->type &&
             attempt->candidate->base->type->kind == TYPE_interface)
        e->a = attempt->candidate->base;
    if (e->a && e->a->kind == EXPR_error) failed = true;
    for (int i = 0; i < args->count; i++) {
        const ParamSig *param = &attempt->sig.params[sig_param_of(&attempt->sig, args->count, i)];
        const Type *type = arg_type(c, attempt, args, i);
        bool by_place = param->pass == PASS_out || param->pass == PASS_inout || param->pass == PASS_ref;
        Expr *arg = args->at[i];
        const Type *constant = as_constant(c, attempt, type, arg);
        if (constant) arg = constant_pair(env, coerce(env, arg, constant));
        else if (arg->kind != EXPR_expand)
            arg = by_place ? place_arg(env, arg, param, type) : coerce(env, arg, type);
        failed |= arg->kind == EXPR_error;
        vec_push(c->arena, &e->args, arg);
        if (by_place && !constant) vec_push(c->arena, &written, arg);
    }
    bool changes_object = e->a && attempt->sig.this_pass == PASS_inout && !is_subscript;
    if (changes_object) vec_push(c->arena, &written, e->a);
    if (written.count > 1 && !failed) check_aliases(env, written.at, written.count);
    for (int i = args->count; i < sig_written(&attempt->sig) && !sig_packs(&attempt->sig); i++) {
        check_default_argument(c, attempt->sig.params[i].decl);
        vec_push(c->arena, &e->args, NULL);
    }
    if (sig_throws(&attempt->sig)) add_error_arg(env, e, attempt);
    if (failed || !require_origins(env, decl, &attempt->sig, e->subst, e->a, &e->args))
        return error_expr(c, loc);
    if (!is_subscript && refuse_lost_associated(env, loc, decl, &attempt->sig, e)) return error_expr(c, loc);
    if (is_subscript) e->flags |= decl_place_flags(decl, e->a);
    if (opens_interface(e->subst)) e->flags |= EXPR_OPENED;
    if (e->nmodes && (refuse_hidden_derivative(env, loc, decl, (DiffMode)e->modes[0]) ||
                      refuse_open_derivative(c, loc, decl, attempt->candidate->subst)))
        return error_expr(c, loc);
    if (e->nmodes) flow_request(c, decl, e->modes, e->nmodes, loc);
    flow_given_args(env, e, &attempt->sig);
    if (decl->name == c->known.printf && (decl->flags & DECL_PRELUDE)) check_format(c, e);
    report_deprecated(c, decl, loc);
    return e;
}

/* ---- entry */

static bool has_bad_arg(ExprVec *args) {
    for (int i = 0; i < args->count; i++) {
        const Expr *arg = args->at[i];
        if (arg->kind == EXPR_error || (arg->type && has_error(arg->type))) return true;
    }
    return false;
}

#define MAX_CANDIDATES 4000

/* A function that cannot be seen from here is no candidate. */
static bool is_hidden(Env *env, const Decl *decl) {
    return !decl_visible_from(env->c, decl, env->decl) && !satisfies_public_requirement(env->c, decl);
}

/* `attempts` has room for all candidates. */
static Expr *choose_candidate(Env *env, Loc loc, const Candidates *list, Attempt *attempts, ExprVec *args,
                              bool quiet) {
    Checker *c = env->c;
    Attempt *best = NULL, *tied = NULL;
    const Decl *hidden = NULL;
    for (int i = 0; i < list->count; i++) {
        Attempt *attempt = &attempts[i];
        attempt->candidate = &list->at[i];
        attempt->is_derivative = list->nmodes > 0;
        attempt->sig = derived_signature(c, list->at[i].decl, list->at[i].subst, list->at[i].base != NULL,
                                         list->modes, list->nmodes);
        attempt_candidate(env, attempt, args);
        if (attempt->failure) continue;
        if (is_hidden(env, list->at[i].decl)) {
            hidden = list->at[i].decl;
            continue;
        }
        int order = best ? compare(c, attempt, best) : -1;
        if (order < 0) best = attempt, tied = NULL;
        else if (order == 0) tied = attempt;
    }
    if (!best && hidden && !quiet) {
        report_not_visible(c, loc, hidden);
        return error_expr(c, loc);
    }
    if (!best) return quiet ? NULL : report_no_match(env, loc, list, attempts, args);
    if (tied) return report_tie(env, loc, list, best, tied, args);
    return invoke(env, loc, list, best, args);
}

Expr *resolve_call(Env *env, Loc loc, Candidates *list, ExprVec *args, bool quiet) {
    Checker *c = env->c;
    splice_expansions(env, args);
    for (int i = 0; i < args->count; i++) {
        Expr *arg = args->at[i] = check_term(env, args->at[i]);
        if (arg->kind == EXPR_type || arg->kind == EXPR_space) args->at[i] = check_value(env, arg);
    }
    if (has_bad_arg(args)) return error_expr(c, loc);
    if (list->count > MAX_CANDIDATES) {
        report(c, DIAG_too_many_overloads, loc, list->name ? list->name->text : "?");
        return error_expr(c, loc);
    }
    Arena *scratch = arena_scratch(c->arena); /* else calls of n overloads would keep n attempts each */
    Attempt *attempts = arena_array(scratch, Attempt, list->count);
    Expr *call = choose_candidate(env, loc, list, attempts, args, quiet);
    arena_free(scratch);
    return call;
}

Expr *call_named(Env *env, Loc loc, Name name, Expr **args, int nargs, bool quiet) {
    Checker *c = env->c;
    Candidates *list = arena_new(c->arena, Candidates);
    if (!lookup_name(env, name, list) || !decl_is_function(list->at[0].decl)) return NULL;
    Candidates *fitting = arena_new(c->arena, Candidates); /* members named operator+ do not count */
    fitting->name = name;
    for (int i = 0; i < list->count; i++)
        if (!decl_type_around(list->at[i].decl)) candidates_push(c, fitting, list->at[i]);
    ExprVec vec = {0};
    for (int i = 0; i < nargs; i++) vec_push(c->arena, &vec, args[i]);
    return fitting->count ? resolve_call(env, loc, fitting, &vec, quiet) : NULL;
}

/* ---- calling values: operator(), function-typed parameters */

static Expr *call_function_value(Env *env, Expr *e, Expr *callee) {
    Checker *c = env->c;
    const Type *result, *const *params;
    int nparams;
    function_type_parts(callee->type, &result, &params, &nparams);
    bool throws = callee->type->flags & TYPE_THROWS;
    const Type *error = throws ? params[--nparams] : NULL;
    if (e->args.count != nparams) {
        report_expr(c, e, DIAG_argument_count,
                    callee->kind == EXPR_decl && callee->decl->name ? callee->decl->name->text
                                                                    : "the function",
                    range_text(c, nparams, nparams, "argument"), e->args.count);
        return error_expr(c, e->loc);
    }
    bool failed = false;
    for (int i = 0; i < nparams; i++) {
        e->args.at[i] = check_value_of(env, e->args.at[i], params[i]);
        failed |= e->args.at[i]->kind == EXPR_error;
    }
    if (failed) return error_expr(c, e->loc);
    Expr *node = expr_new(c->arena, EXPR_invoke, e->loc);
    node->decl = callee->decl; /* the parameter */
    node->a = callee;
    node->args = e->args;
    node->type = result;
    node->flags = EXPR_CHECKED;
    if (throws) set_error_arg(env, node, error);
    return node;
}

Candidates *call_operators(Checker *c, Expr *object) {
    Candidates *list = arena_new(c->arena, Candidates);
    list->name = c->known.call;
    if (!lookup_member(c, object->type, c->known.call, list)) return NULL;
    for (int i = 0; i < list->count; i++) {
        list->at[i].base = object;
        list->at[i].base_type = object->type;
    }
    return list;
}

static Expr *call_value(Env *env, Expr *e, Expr *callee) {
    Checker *c = env->c;
    if (callee->type->kind == TYPE_function) return call_function_value(env, e, callee);
    bool half = callee->kind == EXPR_part &&
                (callee->a->type->kind == TYPE_pair || callee->a->type->kind == TYPE_ptr_pair);
    if (half && e->args.count == 0) return callee; /* pair.p(), as seed 004 writes it */
    Candidates *list = call_operators(c, callee);
    if (!list) {
        report_expr(c, e, DIAG_not_callable, type_str(c, callee->type));
        if (callee->kind == EXPR_decl && callee->decl->name)
            note(c, DIAG_note_declared_here, callee->decl->loc, callee->decl->name->text);
        return error_expr(c, e->loc);
    }
    return resolve_call(env, e->loc, list, &e->args, false);
}

static Expr *check_args_only(Env *env, Expr *e) {
    for (int i = 0; i < e->args.count; i++) check_term(env, e->args.at[i]);
    return error_expr(env->c, e->loc);
}

/* [__from_one(f)] before the name of a type: of one value, it is made by f. */
static Expr *made_from_one(Env *env, Expr *e, const Decl *alias) {
    const Attribute *attribute = alias ? find_attribute(alias, "__from_one") : NULL;
    if (!attribute || e->args.count != 1 || e->args.at[0]->kind == EXPR_list) return NULL;
    Decl *module = decl_module(alias);
    Env there = {.c = env->c, .scope = scope_inside(env->c, module), .decl = module};
    Expr *maker = check_term(&there, expr_copy(env->c->arena, attribute->args.at[0]));
    return resolve_call(env, e->loc, maker->candidates, &e->args, false);
}

Expr *check_call(Env *env, Expr *e) {
    if (is_launch(e->a)) return check_launch(env, e);
    Expr *callee = check_term(env, e->a);
    if (callee->kind == EXPR_error) return check_args_only(env, e);
    if (callee->kind == EXPR_type) {
        Expr *made = made_from_one(env, e, callee->decl);
        if (made) return made;
        const Type *type = callee->type_value ? callee->type_value : resolve_type(env, callee);
        return is_error(type) ? check_args_only(env, e) : check_construct(env, e->loc, type, &e->args);
    }
    if (callee->kind == EXPR_overload) return resolve_call(env, e->loc, callee->candidates, &e->args, false);
    callee = check_value(env, callee);
    if (callee->kind == EXPR_error || has_error(callee->type)) return check_args_only(env, e);
    return call_value(env, e, callee);
}
