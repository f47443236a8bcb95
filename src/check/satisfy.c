/* How a type meets the requirements of an interface.
 *
 * A requirement is looked at as the conforming declaration would state it: `This` and the interface's
 * arguments are known, its own generic parameters are those of a copy of its header. It is met by a member of
 * that name with just this signature, and else by anything that can be called in its place: then the copy
 * gets a body that does so. Members of the declaration that states the conformance come first, so that a type
 * may conform twice to a generic interface, by two extensions. */
#include "check/checker.h"

typedef struct Placed {
    Conformance *conformance;
    Decl *requirement;
    Decl *copy;         /* in the conforming declaration, so far without parameters and body */
    const Subst *subst; /* what the requirement's types mean there */
    Candidates members; /* of that name */
    Satisfaction *out;
} Placed;

/* ---- the requirement in its place */

/* Those of the conforming declaration itself, then all the others. */
static void find_members(Checker *c, const Conformance *conformance, Name name, Candidates *out) {
    out->name = name;
    const DeclVec *own = scope_find(scope_inside(c, conformance->decl), name);
    const Subst *identity = subst_identity(c, conformance->decl);
    for (int i = 0; own && i < own->count; i++)
        candidates_add(c, out, (Candidate){.decl = own->at[i], .subst = identity});
    Candidates others = {.name = name};
    lookup_own_member(c, conformance->type, name, &others);
    for (int i = 0; i < others.count; i++)
        if (others.at[i].decl->parent != conformance->decl) candidates_add(c, out, others.at[i]);
}

static Placed place_requirement(Checker *c, Conformance *conformance, Decl *requirement, Satisfaction *out) {
    Placed placed = {.conformance = conformance, .requirement = requirement, .out = out};
    placed.subst = interface_subst(c, conformance->interface, conformance->type);
    placed.copy = decl_new(c->arena, requirement->kind, conformance->decl->loc, requirement->name);
    placed.copy->parent = conformance->decl;
    placed.subst = copy_generics(c, requirement, placed.copy, placed.subst);
    Name name = requirement->name;
    if (requirement->kind == DECL_func && requirement->flavour == FUNC_init) name = c->known.__init;
    if (requirement->kind == DECL_subscript) name = c->known.subscript;
    find_members(c, conformance, name, &placed.members);
    return placed;
}

/* The implementation's own generic parameters, replaced by the requirement's; false: it has others, or asks
 * for more. */
static bool align_generics(Checker *c, const Placed *placed, Decl *decl, const Subst **subst) {
    int wanted = generic_count(placed->copy), have = generic_count(decl);
    if (wanted != have) return false;
    if (wanted == 0) return true;
    const Type **args = arena_array(c->arena, const Type *, wanted);
    for (int i = 0; i < wanted; i++) args[i] = param_type(c, placed->copy, i);
    *subst = subst_new(c, *subst, decl, args, wanted);
    return constraints_hold(c, decl, *subst, 0);
}

static void met_by(const Placed *placed, SatisfyKind kind, Decl *decl, const Subst *subst) {
    *placed->out = (Satisfaction){
        .kind = (uint8_t)kind, .requirement = placed->requirement, .decl = decl, .subst = subst};
}

static void met_by_copy(Checker *c, const Placed *placed) {
    placed->copy->modifiers |= MODIFIER_synthesized;
    met_by(placed, SATISFY_decl, placed->copy, subst_identity(c, placed->conformance->decl));
}

/* A member of the struct that the conforming one inherits from takes that as `this`: it can be called, not
 * stand for it. */
static bool is_of_base(Checker *c, const Placed *placed, const Decl *member) {
    const Type *type = placed->conformance->type, *owner = this_type_of(c, member->parent);
    return type->kind == TYPE_struct && owner->kind == TYPE_struct && owner->decl != type->decl &&
           !(member->modifiers & MODIFIER_static);
}

/* ---- calls in place of the requirement */

static Expr *name_node(Checker *c, Loc loc, Name name) {
    Expr *e = expr_new(c->arena, EXPR_name, loc);
    e->name = name;
    return e;
}

static void copy_param(Checker *c, const Placed *placed, Decl *to, const Type *type, uint32_t modifiers) {
    Name name = name_from(c->names, format_text(c->arena, "__p%d", to->params.count));
    Decl *param = decl_new(c->arena, DECL_var, to->loc, name);
    param->flavour = VAR_param;
    param->parent = to;
    param->type_expr = type_expr(c, to->loc, check_subst(c, type, placed->subst));
    param->modifiers = modifiers;
    vec_push(c->arena, &to->params, param);
}

static void pass_params(Checker *c, const Decl *func, ExprVec *args) {
    for (int i = 0; i < func->params.count; i++)
        vec_push(c->arena, args, name_node(c, func->loc, func->params.at[i]->name));
}

static void set_body(Checker *c, Decl *func, StmtKind kind, Expr *expr) {
    Stmt *statement = stmt_new(c->arena, kind, func->loc);
    statement->expr = expr;
    func->body = stmt_new(c->arena, STMT_block, func->loc);
    vec_push(c->arena, &func->body->body, statement);
}

/* f<T, N>, f<expand each T> */
static Expr *with_generics(Checker *c, const Decl *func, Expr *callee) {
    Expr *apply = expr_new(c->arena, EXPR_apply, func->loc);
    apply->a = callee;
    for (int i = 0; i < func->generics->params.count; i++) {
        const Decl *param = func->generics->params.at[i];
        Expr *arg = name_node(c, func->loc, param->name);
        if (param->modifiers & MODIFIER_pack) {
            Expr *each = expr_new(c->arena, EXPR_each, func->loc),
                 *expand = expr_new(c->arena, EXPR_expand, func->loc);
            each->a = arg;
            expand->a = each;
            arg = expand;
        }
        vec_push(c->arena, &apply->args, arg);
    }
    return apply;
}

/* What stands for an argument, or for `this`, while calls are tried. */
static Expr *stand_in(Checker *c, Loc loc, const Type *type, bool writable) {
    Expr *e = expr_new(c->arena, EXPR_default, loc);
    e->type = known_type(c, type);
    e->flags = EXPR_CHECKED | EXPR_PLACE | (writable ? 0 : EXPR_READONLY);
    return e;
}

static Expr *try_call(Checker *c, const Placed *placed, Candidates *fitting, const TypeVec *types) {
    Env env = env_for_decl(c, placed->conformance->decl);
    ExprVec args = {0};
    for (int i = 0; i < types->count; i++)
        vec_push(c->arena, &args, stand_in(c, placed->conformance->loc, types->at[i], true));
    Expr *call = fitting->count ? resolve_call(&env, placed->conformance->loc, fitting, &args, true) : NULL;
    return call && (call->flags & EXPR_THROWS) ? NULL : call; /* what cannot fail is not met by what can */
}

static bool converts(Checker *c, const Placed *placed, const Type *from, const Type *to) {
    Env env = env_for_decl(c, placed->conformance->decl);
    return to->kind == TYPE_void || type_conversion_cost(&env, from, to) >= 0;
}

/* ---- methods */

typedef struct FlatParams {
    TypeVec types;
    VEC(uint8_t) passes;
} FlatParams;

/* The parameters with everything substituted; a pack stands for each of its elements. */
static FlatParams flat_params(Checker *c, const FuncSig *sig, const Subst *subst) {
    FlatParams flat = {0};
    for (int i = 0; i < sig->nparams; i++) {
        const Type *type = check_subst(c, sig->params[i].type, subst);
        int n = type->kind == TYPE_pack ? type->nargs : 1;
        for (int k = 0; k < n; k++) {
            vec_push(c->arena, &flat.types, type->kind == TYPE_pack ? type->args[k] : type);
            vec_push(c->arena, &flat.passes, sig->params[i].pass);
        }
    }
    return flat;
}

static bool same_signature(Checker *c, const FuncSig *wanted, const FuncSig *have, const Subst *wanted_subst,
                           const Subst *have_subst) {
    if (wanted->has_this != have->has_this || wanted->is_init != have->is_init) return false;
    if (wanted->has_this && have->this_pass == PASS_inout && wanted->this_pass != PASS_inout) return false;
    if (check_subst(c, wanted->result, wanted_subst) != check_subst(c, have->result, have_subst))
        return false;
    FlatParams w = flat_params(c, wanted, wanted_subst), h = flat_params(c, have, have_subst);
    if (w.types.count != h.types.count) return false;
    for (int i = 0; i < w.types.count; i++)
        if (w.types.at[i] != h.types.at[i] || w.passes.at[i] != h.passes.at[i]) return false;
    return true;
}

/* Functions that can be called where the requirement is; those that are generic with its arguments, if
 * `given`. */
static Candidates callable_methods(Checker *c, const Placed *placed, const FuncSig *sig, bool given) {
    const Placed *p = placed;
    Expr *self = stand_in(c, p->conformance->loc, p->conformance->type, sig->this_pass == PASS_inout);
    int n = generic_count(p->copy);
    const Type **args = arena_array(c->arena, const Type *, n + 1);
    for (int i = 0; i < n; i++) args[i] = param_type(c, p->copy, i);
    Candidates fitting = {.name = p->members.name};
    for (int i = 0; i < p->members.count; i++) {
        Candidate candidate = p->members.at[i];
        if (!decl_is_function(candidate.decl)) continue;
        FuncSig *have = signature_of(c, candidate.decl);
        if (have->has_this && !sig->has_this) continue;
        if (have->has_this) candidate.base = self;
        if (given && generic_count(candidate.decl) != n) continue;
        if (given) candidate.args = args, candidate.nargs = n;
        candidates_add(c, &fitting, candidate);
    }
    return fitting;
}

/* A fraction that the call drops, though nobody wrote it; unless the interface would do the same. */
static void warn_of_fraction(Checker *c, const Placed *placed, const Expr *call, const Type *from,
                             const Type *to) {
    if (!type_is_float(from) || !type_is_integer(to)) return;
    if (placed->requirement->body || placed->requirement->lazy.count) return;
    report(c, DIAG_narrowing, call->decl->loc, type_str(c, from), type_str(c, to));
    note(c, DIAG_note_required_here, placed->requirement->loc);
}

static void warn_of_fractions(Checker *c, const Placed *placed, const Expr *call, const Type *wanted) {
    if (call->kind != EXPR_invoke || !call->decl) return;
    for (int i = 0; i < call->args.count; i++) {
        const Expr *arg = call->args.at[i];
        if (arg && arg->kind == EXPR_convert) warn_of_fraction(c, placed, call, arg->a->type, arg->type);
    }
    warn_of_fraction(c, placed, call, call->type, wanted);
}

/* Can one of the candidates be called with arguments of the requirement's types, and its result be used? */
static bool is_callable(Checker *c, const Placed *placed, const FuncSig *sig, bool given) {
    Candidates fitting = callable_methods(c, placed, sig, given);
    TypeVec types = {0};
    for (int i = 0; i < sig->nparams; i++)
        vec_push(c->arena, &types, check_subst(c, sig->params[i].type, placed->subst));
    c->diags->muted++;
    const Type *wanted = check_subst(c, sig->result, placed->subst);
    Expr *call = try_call(c, placed, &fitting, &types);
    bool fine = call && call->kind != EXPR_error && converts(c, placed, call->type, wanted);
    c->diags->muted--;
    if (fine) warn_of_fractions(c, placed, call, wanted);
    return fine;
}

static Expr *callee_of_copy(Checker *c, const Placed *placed, const FuncSig *sig, bool given) {
    Loc loc = placed->copy->loc;
    if (placed->requirement->flavour == FUNC_init) return type_expr(c, loc, placed->conformance->type);
    Expr *callee = expr_new(c->arena, EXPR_member, loc);
    callee->a =
        sig->has_this ? expr_new(c->arena, EXPR_this, loc) : type_expr(c, loc, placed->conformance->type);
    callee->name = placed->requirement->name;
    return given ? with_generics(c, placed->copy, callee) : callee;
}

/* R name(P0 p0, ...) { return this.name(p0, ...); } in the conforming declaration */
static void complete_method(Checker *c, const Placed *placed, const FuncSig *sig, bool given) {
    const Decl *requirement = placed->requirement;
    Decl *func = placed->copy;
    func->flavour = requirement->flavour == FUNC_init ? FUNC_plain : requirement->flavour;
    func->modifiers = sig->has_this ? 0 : MODIFIER_static;
    func->flags = requirement->flags & (DECL_MUTATING | DECL_FWD | DECL_BWD | DECL_NO_DIFF_THIS);
    func->type_expr = type_expr(c, func->loc, check_subst(c, sig->result, placed->subst));
    static const uint32_t dirs[] = {0, MODIFIER_out, MODIFIER_in | MODIFIER_out, MODIFIER_ref,
                                    MODIFIER_constref};
    for (int i = 0; i < sig->nparams; i++)
        copy_param(c, placed, func, sig->params[i].type,
                   dirs[sig->params[i].pass] | (sig->params[i].no_diff ? MODIFIER_no_diff : 0));
    Expr *call = expr_new(c->arena, EXPR_call, func->loc);
    call->a = callee_of_copy(c, placed, sig, given);
    pass_params(c, func, &call->args);
    set_body(c, func, sig->result->kind == TYPE_void ? STMT_expr : STMT_return, call);
    met_by_copy(c, placed);
}

static bool implements(const Decl *decl, const Decl *requirement) {
    return decl->kind == DECL_func && decl->flavour == requirement->flavour &&
           !(decl->flags & DECL_REQUIREMENT);
}

static bool find_same_method(Checker *c, const Placed *placed, const FuncSig *wanted) {
    for (int i = 0; i < placed->members.count; i++) {
        const Candidate *member = &placed->members.at[i];
        if (!implements(member->decl, placed->requirement) || is_of_base(c, placed, member->decl)) continue;
        const Subst *have_subst = member->subst;
        FuncSig *have = signature_of(c, member->decl);
        if (!align_generics(c, placed, member->decl, &have_subst)) continue;
        if (!same_signature(c, wanted, have, placed->subst, have_subst)) continue;
        met_by(placed, SATISFY_decl, member->decl, member->subst);
        return true;
    }
    return false;
}

static void find_method(Checker *c, const Placed *placed) {
    Decl *requirement = placed->requirement;
    FuncSig *wanted = signature_of(c, requirement);
    if (find_same_method(c, placed, wanted)) return;
    bool generic = generic_count(requirement) > 0, given = generic && is_callable(c, placed, wanted, true);
    if (given || is_callable(c, placed, wanted, false)) {
        complete_method(c, placed, wanted, given);
        return;
    }
    if (requirement->flavour == FUNC_init && wanted->nparams == 0 &&
        placed->members.count == 0) { /* the default value will do */
        *placed->out = (Satisfaction){.kind = SATISFY_none, .requirement = requirement};
        placed->out->type = placed->conformance->type;
        return;
    }
    if (requirement->flags & DECL_HAS_DEFAULT) met_by(placed, SATISFY_default, requirement, NULL);
}

/* ---- associated types and constants */

static void find_assoc(Checker *c, const Placed *placed) {
    Satisfaction found = {.kind = SATISFY_type, .requirement = placed->requirement};
    for (int i = 0; i < placed->members.count && !found.type; i++) {
        Decl *decl = placed->members.at[i].decl;
        if (!decl_is_type(decl) || decl->kind == DECL_assoc) continue;
        const Subst *subst = placed->members.at[i].subst;
        if (decl->kind == DECL_alias) {
            ensure_header(c, decl);
            found.type = check_subst(c, decl->type ? decl->type : ERROR_TYPE(c), subst);
        } else found.type = type_with_subst(c, decl, subst);
    }
    if (!found.type) found.type = synthesize_assoc(c, placed->conformance, placed->requirement);
    if (found.type) *placed->out = found;
}

static void find_constant(Checker *c, const Placed *placed) {
    const Type *wanted = check_subst(c, decl_value_type(c, placed->requirement), placed->subst);
    for (int i = 0; i < placed->members.count; i++) {
        Decl *decl = placed->members.at[i].decl;
        uint32_t kind =
            MODIFIER_static | MODIFIER_const; /* constants for constants, variables for variables */
        if (decl->kind != DECL_var || decl->parent->kind == DECL_interface ||
            (decl->modifiers & kind) != (placed->requirement->modifiers & kind) ||
            check_subst(c, decl_value_type(c, decl), placed->members.at[i].subst) != wanted)
            continue;
        met_by(placed, SATISFY_decl, decl, placed->members.at[i].subst);
        return;
    }
    if (placed->requirement->init) met_by(placed, SATISFY_default, placed->requirement, NULL);
}

/* ---- properties and subscripts */

/* Has it each of the accessors that are required? */
static bool has_accessors(const Decl *decl, const Decl *required) {
    for (FuncFlavour flavour = FUNC_get; flavour <= FUNC_set; flavour++)
        if (has_accessor(required, flavour) && !has_accessor(decl, flavour)) return false;
    return true;
}

static bool has_default_accessors(const Decl *requirement) {
    for (int i = 0; i < requirement->members.count; i++)
        if (!requirement->members.at[i]->body && !requirement->members.at[i]->lazy.count) return false;
    return requirement->members.count > 0;
}

/* this[p0, ...] or this.name */
static Expr *place_of_copy(Checker *c, const Decl *copy) {
    Expr *place = expr_new(c->arena, copy->kind == DECL_subscript ? EXPR_index : EXPR_member, copy->loc);
    place->a = expr_new(c->arena, EXPR_this, copy->loc);
    if (copy->kind == DECL_subscript) pass_params(c, copy, &place->args);
    else place->name = copy->name;
    return place;
}

/* get { return this[p0, ...]; } or set { this[p0, ...] = newValue; } */
static void complete_accessor(Checker *c, Decl *copy, const Decl *required) {
    Loc loc = copy->loc;
    Decl *func = decl_new(c->arena, DECL_func, loc, NULL);
    func->flavour = required->flavour;
    func->parent = copy;
    func->modifiers = MODIFIER_synthesized;
    func->flags = required->flags & (DECL_FWD | DECL_BWD | DECL_NONMUTATING | DECL_NO_DIFF_THIS);
    Expr *place = place_of_copy(c, copy), *result = place;
    if (func->flavour == FUNC_set) {
        result = expr_new(c->arena, EXPR_assign, loc);
        result->a = place;
        result->b = name_node(c, loc, c->known.newValue);
    }
    set_body(c, func, func->flavour == FUNC_set ? STMT_expr : STMT_return, result);
    vec_push(c->arena, &copy->members, func);
}

static void complete_accessors(Checker *c, const Placed *placed) {
    const Decl *requirement = placed->requirement;
    placed->copy->type_expr =
        type_expr(c, placed->copy->loc, check_subst(c, requirement->type, placed->subst));
    for (int i = 0; i < requirement->params.count; i++)
        copy_param(c, placed, placed->copy, requirement->params.at[i]->type, 0);
    for (int i = 0; i < requirement->members.count; i++)
        if (requirement->members.at[i]->flavour != FUNC_ref)
            complete_accessor(c, placed->copy, requirement->members.at[i]);
    met_by_copy(c, placed);
}

static void find_property(Checker *c, const Placed *placed) {
    Decl *requirement = placed->requirement;
    const Type *wanted = check_subst(c, decl_value_type(c, requirement), placed->subst);
    for (int i = 0; i < placed->members.count; i++) {
        Decl *decl = placed->members.at[i].decl;
        if (decl->parent && decl->parent->kind == DECL_interface) continue;
        bool is_field = decl->kind == DECL_var;
        if (!is_field && decl->kind != DECL_property) continue;
        if (check_subst(c, decl_value_type(c, decl), placed->members.at[i].subst) != wanted) continue;
        bool fixed = is_field && (decl->modifiers & (MODIFIER_const | MODIFIER_let));
        if (is_field ? fixed && has_accessor(requirement, FUNC_set) : !has_accessors(decl, requirement))
            continue;
        if (!is_field && is_of_base(c, placed, decl)) {
            complete_accessors(c, placed);
            return;
        }
        met_by(placed, is_field ? SATISFY_field : SATISFY_decl, decl, placed->members.at[i].subst);
        return;
    }
    if (has_default_accessors(requirement)) met_by(placed, SATISFY_default, requirement, NULL);
}

static bool same_subscript(Checker *c, const Placed *placed, Decl *decl, const Subst *subst) {
    const Decl *requirement = placed->requirement;
    if (decl->params.count != requirement->params.count || !has_accessors(decl, requirement)) return false;
    if (!align_generics(c, placed, decl, &subst)) return false;
    if (check_subst(c, decl->type, subst) != check_subst(c, requirement->type, placed->subst)) return false;
    for (int k = 0; k < decl->params.count; k++)
        if (check_subst(c, decl->params.at[k]->type, subst) !=
            check_subst(c, requirement->params.at[k]->type, placed->subst))
            return false;
    return true;
}

static bool subscript_is_callable(Checker *c, const Placed *placed) {
    const Decl *requirement = placed->requirement;
    bool writes = has_accessor(requirement, FUNC_set);
    Candidates fitting = {.name = placed->members.name};
    for (int i = 0; i < placed->members.count; i++) {
        Candidate candidate = placed->members.at[i];
        if (candidate.decl->kind != DECL_subscript || !has_accessors(candidate.decl, requirement)) continue;
        candidate.base = stand_in(c, placed->conformance->loc, placed->conformance->type, writes);
        candidates_add(c, &fitting, candidate);
    }
    TypeVec types = {0};
    for (int i = 0; i < requirement->params.count; i++)
        vec_push(c->arena, &types, check_subst(c, requirement->params.at[i]->type, placed->subst));
    const Type *wanted = check_subst(c, requirement->type, placed->subst);
    c->diags->muted++;
    Expr *found = try_call(c, placed, &fitting, &types);
    bool fine = found && found->kind != EXPR_error && converts(c, placed, found->type, wanted) &&
                (!writes || converts(c, placed, wanted, found->type));
    c->diags->muted--;
    return fine;
}

static void find_subscript(Checker *c, const Placed *placed) {
    for (int i = 0; i < placed->members.count; i++) {
        const Candidate *member = &placed->members.at[i];
        if (member->decl->kind != DECL_subscript || member->decl->parent->kind == DECL_interface) continue;
        ensure_header(c, member->decl);
        if (is_of_base(c, placed, member->decl) || !same_subscript(c, placed, member->decl, member->subst))
            continue;
        met_by(placed, SATISFY_decl, member->decl, member->subst);
        return;
    }
    if (subscript_is_callable(c, placed)) complete_accessors(c, placed);
    else if (has_default_accessors(placed->requirement))
        met_by(placed, SATISFY_default, placed->requirement, NULL);
}

/* ---- entry */

Satisfaction *satisfaction(Checker *c, Conformance *conformance, Decl *requirement) {
    Satisfaction *found = map_get(&conformance->satisfied, PTR_KEY(requirement));
    if (found) return found;
    found = arena_new(c->arena, Satisfaction);
    found->requirement = requirement;
    map_put(c->arena, &conformance->satisfied, PTR_KEY(requirement), found);
    const Decl *context = c->context;
    c->context = conformance->decl;
    ensure_header(c, requirement);
    Placed placed = place_requirement(c, conformance, requirement, found);
    c->context = placed.copy;
    switch ((DeclKind)requirement->kind) {
    case DECL_func: find_method(c, &placed); break;
    case DECL_assoc: find_assoc(c, &placed); break;
    case DECL_property: find_property(c, &placed); break;
    case DECL_subscript: find_subscript(c, &placed); break;
    case DECL_var: find_constant(c, &placed); break;
    default: break;
    }
    c->context = context;
    return found;
}
