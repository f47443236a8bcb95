/* The signatures of functions: as declared, differentiated, and with generic arguments.
 *
 * A derivative follows from the declaration in generic form: a parameter of type T is plain in it unless a
 * constraint says that T is differentiable. But a requirement stands for methods that know the arguments of
 * its interface: it is differentiated with these in place. That of IDifferentiableFunc<float, float, int>
 * takes a pair and an int. */
#include "check/checker.h"

/* ---- as declared */

static FuncSig subscript_signature(Checker *c, Decl *decl) {
    FuncSig sig = {.result = decl_value_type(c, decl), .has_this = !decl_is_static(decl)};
    sig.nparams = decl->params.count;
    sig.params = arena_array(c->arena, ParamSig, sig.nparams ? sig.nparams : 1);
    for (int i = 0; i < sig.nparams; i++) {
        Decl *param = decl->params.at[i];
        const Type *type = param->type ? param->type : ERROR_TYPE(c);
        sig.params[i] = (ParamSig){
            .name = param->name, .type = type, .is_pack = type->kind == TYPE_expand, .decl = param};
    }
    Decl *type = decl_type_around(decl);
    sig.this_type = type ? this_type_of(c, type) : NULL;
    return sig;
}

/* A parameter of function type. */
static FuncSig function_signature(Checker *c, Decl *decl) {
    const Type *result, *const *params;
    FuncSig sig = {0};
    function_type_parts(decl->type, &result, &params, &sig.nparams);
    sig.result = result;
    sig.params = arena_array(c->arena, ParamSig, sig.nparams ? sig.nparams : 1);
    for (int i = 0; i < sig.nparams; i++)
        sig.params[i] = (ParamSig){.type = params[i], .no_diff = type_function_drops(decl->type, i + 1)};
    if (decl->type->flags & TYPE_THROWS) {
        sig.params[sig.nparams - 1].pass = PASS_out;
        sig.params[sig.nparams - 1].is_error = true;
    }
    return sig;
}

/* ---- differentiated */

/* A method named through its type has `this` as its first parameter once it is differentiated. */
static FuncSig with_explicit_this(Checker *c, const FuncSig *sig) {
    FuncSig result = *sig;
    result.params = arena_array(c->arena, ParamSig, sig->nparams + 1);
    result.params[0] = (ParamSig){
        .name = c->known._this, .type = sig->this_type, .pass = sig->this_pass, .no_diff = sig->this_no_diff};
    if (sig->nparams) memcpy(result.params + 1, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    result.nparams = sig->nparams + 1;
    result.has_this = false;
    return result;
}

/* The arguments of the interface that a requirement stands in, but for This. NULL: it has none. */
static const Subst *interface_arguments(Checker *c, const Decl *decl, const Subst *subst) {
    const Decl *interface = decl->parent;
    if (!interface || interface->kind != DECL_interface || !interface->generics) return NULL;
    while (subst && subst->owner != interface) subst = subst->outer;
    if (!subst) return NULL;
    const Type **args = arena_copy(c->arena, subst->args, sizeof subst->args[0] * (size_t)subst->nargs);
    args[0] = param_type(c, interface, 0);
    for (int i = 1; i < subst->nargs; i++) /* what is substituted once more must stay what it is */
        if (args[i] != param_argument(c, interface, i) && type_mentions(args[i], interface)) return NULL;
    return subst_new(c, subst->outer, interface, args, subst->nargs);
}

static void add_known_param(FuncSig *sig, const ParamSig *param, const Type *type) {
    int times = type->kind == TYPE_pack ? type->nargs : 1;
    for (int i = 0; i < times; i++) {
        ParamSig *known = &sig->params[sig->nparams++];
        *known = *param;
        known->type = type->kind == TYPE_pack ? type->args[i] : type;
        known->is_pack = known->type->kind == TYPE_expand;
    }
}

FuncSig check_declared_signature(Checker *c, Decl *decl, const Subst *subst) {
    const FuncSig *sig = signature_of(c, decl);
    const Subst *known = interface_arguments(c, decl, subst);
    if (!known) return *sig;
    FuncSig result = *sig;
    const Type **types = arena_array(c->arena, const Type *, sig->nparams + 1);
    int nparams = 0;
    for (int i = 0; i < sig->nparams; i++) {
        types[i] = check_subst(c, sig->params[i].type, known);
        nparams += types[i]->kind == TYPE_pack ? types[i]->nargs : 1;
    }
    result.params = arena_array(c->arena, ParamSig, nparams + 1);
    result.nparams = 0;
    for (int i = 0; i < sig->nparams; i++) add_known_param(&result, &sig->params[i], types[i]);
    result.result = check_subst(c, sig->result, known);
    return result;
}

FuncSig derived_signature(Checker *c, Decl *decl, const Subst *subst, bool bound_this, const uint8_t *modes,
                          int nmodes) {
    FuncSig sig = decl->kind == DECL_subscript ? subscript_signature(c, decl)
                  : decl->kind == DECL_var     ? function_signature(c, decl)
                  : nmodes                     ? check_declared_signature(c, decl, subst)
                                               : *signature_of(c, decl);
    if (nmodes == 0) return sig;
    if (sig.has_this && !bound_this) sig = with_explicit_this(c, &sig);
    const Decl *context = c->context;
    c->context = decl->kind == DECL_var || interface_arguments(c, decl, subst) ? context : decl;
    for (int i = 0; i < nmodes; i++) sig = diff_signature(c, &sig, (DiffMode)modes[i]);
    c->context = context;
    return sig;
}

FuncSig check_generic_signature(Checker *c, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes,
                                bool bound_this) {
    return derived_signature(c, decl, subst, bound_this, modes, nmodes);
}

FuncSig check_subst_signature(Checker *c, const FuncSig *sig, const Subst *subst) {
    FuncSig result = *sig;
    result.params = arena_array(c->arena, ParamSig, sig->nparams ? sig->nparams : 1);
    for (int i = 0; i < sig->nparams; i++) {
        result.params[i] = sig->params[i];
        result.params[i].type = check_subst(c, sig->params[i].type, subst);
    }
    result.result = check_subst(c, sig->result, subst);
    if (sig->this_type) result.this_type = check_subst(c, sig->this_type, subst);
    return result;
}

FuncSig check_signature_of(Checker *c, Decl *decl, const Subst *subst, const uint8_t *modes, int nmodes,
                           bool bound_this) {
    FuncSig sig = derived_signature(c, decl, subst, bound_this, modes, nmodes);
    return check_subst_signature(c, &sig, subst);
}

/* Integers, enumerations and bool: types that a constraint admits, none of which is differentiable. */
static bool is_discrete(Checker *c, const Type *type) {
    return conforms_to(c, type, c->known.__BuiltinLogicalType) || conforms_to(c, type, c->known.IInteger) ||
           conforms_to(c, type, c->known.__EnumType);
}

static const Type *open_part(Checker *c, const Type *type) {
    if (is_differentiable_type(c, type) || is_ptr_differentiable_type(c, type)) return NULL;
    if (type_is_abstract(type))
        return (type->flags & TYPE_IS_VALUE_PARAM) || is_discrete(c, type) ? NULL : type;
    bool shape = type->kind == TYPE_vector || type->kind == TYPE_matrix || type->kind == TYPE_array ||
                 type->kind == TYPE_optional || type->kind == TYPE_tuple || type->kind == TYPE_expand;
    const Type *found = NULL;
    for (int i = 0; i < type->nargs && shape && !found; i++) found = open_part(c, type->args[i]);
    return found;
}

/* The arguments of its interface decide what the derivative of a requirement takes: it must be known whether
 * they are differentiable. */
bool refuse_open_derivative(Checker *c, Loc loc, Decl *decl, const Subst *subst) {
    if (decl->kind != DECL_func || !interface_arguments(c, decl, subst)) return false;
    FuncSig sig = check_declared_signature(c, decl, subst);
    const Type *open = sig.result_no_diff ? NULL : open_part(c, sig.result);
    for (int i = 0; i < sig.nparams && !open; i++)
        if (!sig.params[i].no_diff && !type_mentions(sig.params[i].type, decl))
            open = open_part(c, sig.params[i].type);
    if (!open) return false;
    report(c, DIAG_open_derivative, loc, type_str(c, open), type_str(c, open));
    return true;
}
