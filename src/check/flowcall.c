/* The derivative data-flow check: calls. What goes in comes out, if the function that is called has a
 * derivative; if not, and something went in, the call is a loss. Reading and writing properties are calls as
 * well. */
#include "check/flow.h"

typedef struct FlowArg {
    const Expr *place; /* to write back to; NULL: none */
    const Flow *flow;
} FlowArg;

typedef struct FlowCall {
    const Expr *site;
    Decl *callee;
    FuncSig sig; /* as declared, `this` first */
    FlowArg *args;
    int nargs;
    const Type *type;    /* of the result, at the call */
    Decl *derived;       /* the function that is to be differentiated; NULL: it certainly can be */
    const Decl *context; /* whose constraints tell what it takes; NULL: whatever the arguments carry */
    const Subst *subst;  /* what it stands for here; NULL: what has a derivative is said by its declaration */
} FlowCall;

static const ParamSig *param_of(const FlowCall *call, int arg) {
    const FuncSig *sig = &call->sig;
    int extra = call->nargs - sig->nparams;
    for (int i = 0; i < sig->nparams && i <= arg; i++)
        if (sig->params[i].is_pack) return &sig->params[arg <= i + extra ? i : arg - extra];
    return arg < sig->nparams ? &sig->params[arg] : NULL;
}

static bool is_output(const ParamSig *param) {
    return param->pass == PASS_out || param->pass == PASS_inout || param->pass == PASS_ref;
}

/* Is it differentiable, or one of several, for all that the callee knows or as it is here? */
static bool is_diff_type(FlowWalk *w, const FlowCall *call, const Type *type) {
    if (check_is_diff_type(w->c, type, call->context)) return true;
    const Type *here = call->subst ? check_subst(w->c, type, call->subst) : NULL;
    for (int i = 0; here && here->kind == TYPE_pack && i < here->nargs; i++)
        if (flow_is_diff(w, here->args[i])) return true;
    return flow_is_diff(w, here);
}

static bool takes_derivative(FlowWalk *w, const FlowCall *call, const ParamSig *param) {
    return !param->no_diff && (!call->context || is_diff_type(w, call, param->type));
}

static bool gives_derivative(FlowWalk *w, const FlowCall *call) {
    const FuncSig *sig = &call->sig;
    if (sig->result_no_diff || sig->result->kind == TYPE_void) return false;
    return call->context ? is_diff_type(w, call, sig->result) : flow_is_diff(w, call->type);
}

/* One that the caller has as a constant has nothing to lose. */
static bool is_no_diff_argument(const Expr *arg) {
    while (arg && (arg->kind == EXPR_convert || arg->kind == EXPR_paren ||
                   (arg->kind == EXPR_decl && arg->a && arg->decl->kind == DECL_var)))
        arg = arg->a;
    return arg && arg->kind == EXPR_decl && arg->decl->kind == DECL_var &&
           (arg->decl->modifiers & MODIFIER_no_diff);
}

static bool takes_reference(FlowWalk *w, const FlowCall *call) {
    for (int i = 0; call->context && i < call->sig.nparams; i++) {
        const ParamSig *param = &call->sig.params[i];
        if (!param->no_diff && check_is_reference(w->c, param->type, call->context)) return true;
    }
    return false;
}

static uint8_t lost_modes(Checker *c, Decl *func, uint8_t wanted) {
    uint8_t lost = 0;
    if ((wanted & LOST_fwd) && !check_is_differentiable(c, func, DIFF_fwd)) lost |= LOST_fwd;
    if ((wanted & LOST_bwd) && !check_is_differentiable(c, func, DIFF_bwd)) lost |= LOST_bwd;
    Decl *target = check_differentiated(c, func);
    /* A function with one custom derivative serves in that mode: an error only when the other is asked for.
     * One that is marked as forward only is not good enough. */
    bool marked = (target->flags & (DECL_FWD | DECL_BWD)) != 0;
    return lost && marked ? wanted : lost;
}

/* fwd_diff(f), again differentiated: generated derivatives (NULL) can be, a custom one must say so. */
static Decl *custom_derivative(Checker *c, const Expr *e) {
    Decl *func = e->decl;
    for (int i = 0; i < e->nmodes && func->kind == DECL_func; i++) {
        func = check_differentiated(c, func);
        const FuncRef *custom = e->modes[i] == DIFF_fwd ? &func->sema->fwd : &func->sema->bwd;
        if (!custom->decl || (custom->decl->flags & DECL_PRELUDE)) return NULL;
        Decl *pass = e->modes[i] == DIFF_bwd ? func->sema->primal.decl : NULL;
        if (pass && !(pass->flags & (DECL_FWD | DECL_BWD))) return pass;
        func = custom->decl;
    }
    return e->nmodes && func->kind == DECL_func ? func : NULL;
}

static bool is_detach(const Decl *callee) {
    return (callee->flags & DECL_PRELUDE) && callee->sema && callee->sema->op &&
           strcmp(callee->sema->op->text, "detach") == 0;
}

/* Some of what it computes has a derivative that is not that of its arguments: what is taken as a constant is
 * not lost. */
static bool reads_source(FlowWalk *w, const FlowCall *call) {
    return call->derived && call->derived == call->callee &&
           check_has_effect(w->c, call->callee, EFFECT_source);
}

/* What goes in: of everything, or only of what has a derivative in the callee. */
static const Flow *joined_args(FlowWalk *w, const FlowCall *call, bool only_taken) {
    const Flow *joined = NULL;
    for (int i = 0; i < call->nargs; i++) {
        const ParamSig *param = param_of(call, i);
        if (!param || param->no_diff || param->pass == PASS_out) continue;
        bool taken = !only_taken || !call->args[i].flow || takes_derivative(w, call, param);
        if (!taken && reads_source(w, call)) continue;
        const Flow *flow =
            taken ? flow_whole(w->arena, call->args[i].flow) : flow_lost(w->arena, call->args[i].flow);
        joined = flow_join(w->arena, joined, flow);
    }
    return joined;
}

static void write_outputs(FlowWalk *w, const FlowCall *call, const Flow *flow) {
    for (int i = 0; i < call->nargs; i++) {
        const ParamSig *param = param_of(call, i);
        const Expr *place = call->args[i].place;
        if (!param || !is_output(param) || !place) continue;
        const Flow *plain = param->no_diff ? NULL : flow_as(w, flow_lost(w->arena, flow), place->type);
        flow_write(w, place, flow && takes_derivative(w, call, param) ? flow : plain);
    }
}

static bool has_outputs(FlowWalk *w, const FlowCall *call) {
    for (int i = 0; i < call->sig.nparams; i++)
        if (is_output(&call->sig.params[i]) && takes_derivative(w, call, &call->sig.params[i])) return true;
    return gives_derivative(w, call);
}

/* Its derivative comes from elsewhere: by a reference, or as its author says, who knows what becomes of what
 * it takes. */
static bool is_source(FlowWalk *w, const FlowCall *call, bool refers) {
    if (call->derived != call->callee) return false;
    check_derivatives(w->c, call->callee);
    const Sema *sema = call->callee->sema;
    for (int i = 0; i < call->sig.nparams; i++)
        if (takes_derivative(w, call, &call->sig.params[i])) return refers;
    return sema->bwd.decl || refers;
}

/* What a function writes by itself, if it gives nothing back: buffers, globals; NULL: nothing that others
 * see. */
static const char *written_memory(FlowWalk *w, const FlowCall *call) {
    const Expr *object = call->site->a;
    bool sets = call->callee->flavour == FUNC_set,
         silent = sets || (call->type && call->type->kind == TYPE_void);
    bool library = (call->callee->flags & DECL_PRELUDE) && object && object->type;
    if (!silent || (!sets && has_outputs(w, call))) return NULL;
    if (library && object->type->kind == TYPE_buffer) return "a buffer";
    if (!check_has_effect(w->c, call->callee, EFFECT_memory)) return NULL;
    return library ? format_text(w->c->arena, "'%s'", type_str(w->c, object->type))
                   : format_text(w->c->arena, "memory by '%s'", function_name(w->c, call->callee));
}

/* A place that cannot hold a derivative, or a function that writes memory which others see, takes the value
 * away. */
static void check_memory(FlowWalk *w, const FlowCall *call) {
    const Type *plain = NULL;
    const char *where = NULL;
    for (int i = 0; i < call->nargs && !where; i++) {
        const ParamSig *param = param_of(call, i);
        if (param && is_output(param) && call->args[i].place && !(param->no_diff))
            where = flow_plain_place(w, call->args[i].place, &plain);
    }
    if (!where) where = written_memory(w, call);
    Loss loss = {.kind = LOSS_stored, .loc = call->site->loc, .cause = call->site, .where = where};
    if (where) flow_report_stored(w, &loss);
}

/* The derivative of a generic function that is made, and not written, goes through whatever is differentiable
 * in an instance. */
static const Subst *subst_if_made(Checker *c, Decl *func, const Subst *subst) {
    if (!func || func->kind != DECL_func) return NULL;
    check_derivatives(c, func);
    return func->sema->fwd.decl || func->sema->bwd.decl ? NULL : subst;
}

/* It reads elements that have a derivative, and is not differentiable itself. */
static bool reads_by_reference(FlowWalk *w, const FlowCall *call) {
    const Expr *site = call->site;
    if (site->kind != EXPR_invoke || site->nmodes || call->derived != call->callee) return false;
    if (!takes_reference(w, call) || is_no_diff_argument(site->a)) return false;
    for (int i = 0; i < site->args.count; i++)
        if (is_no_diff_argument(site->args.at[i])) return false;
    return check_has_effect(w->c, call->callee, EFFECT_reads);
}

/* The pairs that a derivative changes are its very result. */
static const Flow *call_plain(FlowWalk *w, const FlowCall *call, uint8_t lost) {
    const Flow *in = joined_args(w, call, false), *out = flow_moves(in) ? NULL : in;
    bool reads = !flow_moves(in) && reads_by_reference(w, call);
    if (flow_moves(in) || reads) {
        Loss loss = {
            .cause = call->site, .loc = call->site->loc, .call = call->site, .callee = call->derived};
        loss.modes = lost;
        loss.indirect =
            reads || (!in->carries && flow_indirect(w->arena, in) == in); /* as all that went in */
        out = flow_make(w->arena, false, loss_add(w->arena, NULL, &loss));
        if (!reads && in->carries) check_memory(w, call);
    }
    write_outputs(w, call, call->site->nmodes ? out : flow_indirect(w->arena, out));
    if (w->no_diff || call->sig.result_no_diff) return NULL;
    return flow_is_diff(w, call->type) ? out : flow_as(w, flow_indirect(w->arena, out), call->type);
}

/* Could a derivative go through it? */
static bool is_smooth(Checker *c, Decl *func) {
    const FuncSig *sig = signature_of(c, func);
    if (sig->result_no_diff || !check_is_diff_type(c, sig->result, func)) return false;
    for (int i = 0; i < sig->nparams; i++)
        if (!sig->params[i].no_diff && check_is_diff_type(c, sig->params[i].type, func)) return true;
    return false;
}

/* The call operator of an object that the library calls a function. */
Decl *flow_call_of(Checker *c, const Type *type) {
    if (type->kind == TYPE_pair) type = type->args[0];
    DeclVec *interface = scope_find(scope_inside(c, c->prelude), c->known.IMutatingFunc);
    if (type->kind != TYPE_struct || !interface || !check_find_conformance(c, type, interface->at[0]))
        return NULL;
    Candidates list = {0};
    return lookup_own_member(c, type, c->known.call, &list) && list.count == 1 ? list.at[0].decl : NULL;
}

Decl *flow_function_arg(Checker *c, const Expr *arg) {
    while (arg && (arg->kind == EXPR_convert || arg->kind == EXPR_paren)) arg = arg->a;
    if (!arg || !arg->type) return NULL;
    if (arg->kind != EXPR_decl || arg->decl->kind != DECL_func) return flow_call_of(c, arg->type);
    FuncRef known = {arg->decl, NULL};
    check_special(c, arg->decl, arg->subst, &known);
    return known.decl;
}

bool flow_is_plain(Checker *c, Decl *func, uint8_t modes) {
    return lost_modes(c, func, modes) && is_smooth(c, func);
}

/* A function without derivative that is passed to one that calls it. */
static Decl *plain_function_arg(FlowWalk *w, const FlowCall *call) {
    const ExprVec *args = &call->site->args;
    for (int i = 0; i < args->count; i++) {
        const ParamSig *param = param_of(call, call->nargs - args->count + i);
        Decl *func = param && !param->no_diff ? flow_function_arg(w->c, args->at[i]) : NULL;
        if (func && flow_is_plain(w->c, func, w->modes)) return func;
    }
    return NULL;
}

static const Flow *with_loss(FlowWalk *w, const FlowCall *call, const Flow *in, Decl *callee, uint8_t lost) {
    Loss loss = {.cause = call->site, .loc = call->site->loc, .call = call->site, .callee = callee};
    loss.modes = lost;
    return flow_make(w->arena, in->carries, loss_add(w->arena, in->losses, &loss));
}

/* A result of a type that cannot hold a derivative, from something that carried one. */
static const Flow *result_plain(FlowWalk *w, const FlowCall *call, const Flow *flow) {
    const FuncSig *sig = &call->sig;
    if (!flow || sig->result_no_diff || !call->type || !flow_as(w, flow, call->type)) return NULL;
    const Type *plain = flow_plain_struct(w, call->type);
    if (!plain || !call->context || sig->result->kind == TYPE_param) return flow_lost(w->arena, flow);
    Loss loss = {.kind = LOSS_stored, .loc = call->site->loc, .cause = plain->decl, .plain = plain};
    loss.where =
        format_text(w->c->arena, "a value of '%s', which is not differentiable", type_str(w->c, plain));
    return flow_stored(w, flow, loss);
}

static const Flow *call_differentiable(FlowWalk *w, const FlowCall *call, uint8_t lost) {
    const Flow *in = joined_args(w, call, true), *out = in;
    Decl *plain = in && call->site->kind == EXPR_invoke ? plain_function_arg(w, call) : NULL;
    bool refers = takes_reference(w, call);
    if (is_source(w, call, refers)) out = flow_make(w->arena, true, in && refers ? in->losses : NULL);
    if (plain) out = with_loss(w, call, in, plain, lost_modes(w->c, plain, w->modes));
    else if (lost && (flow_moves(in) || (refers && out))) out = with_loss(w, call, out, call->derived, lost);
    if (in && (refers || !has_outputs(w, call)))
        flow_output(w, lost ? out : in, OUTPUT_argument, call->site->loc, call->callee);
    if (call->derived && !call->site->nmodes) flow_calls(w, call->derived);
    write_outputs(w, call, out);
    return gives_derivative(w, call) && flow_is_diff(w, call->type) ? out : result_plain(w, call, out);
}

/* The derivative is zero because somebody said so. */
static bool gives_zero(FlowWalk *w, const FlowCall *call) {
    if (is_detach(call->callee)) return true;
    const Decl *target = call->derived ? check_differentiated(w->c, call->derived) : NULL;
    return target && (target->flags & DECL_TREAT_AS_DIFF) && !target->sema->fwd.decl &&
           !target->sema->bwd.decl;
}

static const Flow *flow_call(FlowWalk *w, const FlowCall *call) {
    if (w->no_diff || gives_zero(w, call)) {
        write_outputs(w, call, NULL);
        return NULL;
    }
    uint8_t lost = call->derived ? lost_modes(w->c, call->derived, w->modes) : 0;
    return lost == w->modes ? call_plain(w, call, lost) : call_differentiable(w, call, lost);
}

static FuncSig with_this(FlowWalk *w, const FuncSig *sig, bool plain_this) {
    if (!sig->has_this) return *sig;
    FuncSig all = *sig;
    all.params = arena_array(w->arena, ParamSig, sig->nparams + 1);
    all.params[0] = (ParamSig){
        .type = sig->this_type, .pass = sig->this_pass, .no_diff = sig->this_no_diff || plain_this};
    if (sig->nparams) memcpy(all.params + 1, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    all.nparams++;
    return all;
}

static FlowArg argument(FlowWalk *w, const Expr *e) {
    if (!e) return (FlowArg){0}; /* left out: its default is a constant */
    return (FlowArg){(e->flags & EXPR_PLACE) ? e : NULL, flow_expr(w, e)};
}

/* The operators of the prelude are differentiable for every type with arithmetic; whether they are for this
 * one is up to the method behind. */
static Decl *behind_operator(Checker *c, const Expr *e) {
    static const char *const methods[][2] = {{"operator+", "add"},
                                             {"operator-", "sub"},
                                             {"operator*", "mul"},
                                             {"operator/", "div"},
                                             {"operator%", "mod"}};
    const Type *interface = interface_named(c, c->known.IArithmetic),
               *self = subst_find(e->subst, e->decl, 0);
    if (!(e->decl->flags & DECL_PRELUDE) || !self || self->kind != TYPE_struct || is_error(interface))
        return e->decl;
    const char *method = NULL;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (e->name && strcmp(e->name->text, methods[i][0]) == 0)
            method = e->args.count == 1 ? "neg" : methods[i][1];
    if (!method) return e->decl;
    DeclVec *found =
        scope_find(scope_inside(c, (Decl *)(uintptr_t)interface->decl), name_from(c->names, method));
    Satisfaction how = {0};
    if (found) how = check_witness(c, self, found->at[0], interface_subst(c, interface, self));
    return how.kind == SATISFY_decl ? how.decl : e->decl;
}

/* makeTuple and concat: what goes in is in it, part by part, although they know nothing of its types. */
static const Flow *flow_tuple(FlowWalk *w, const FlowCall *call) {
    const Flow *made = NULL;
    int nparts = call->type->nargs, at = 0;
    for (int i = 0; i < call->nargs; i++) {
        const ParamSig *param = param_of(call, i);
        const Expr *arg = call->site->args.at[i];
        int inner = param && param->type->kind == TYPE_tuple && arg ? arg->type->nargs : 0;
        for (int k = 0; k < inner && at < nparts; k++)
            made = flow_with_part(w->arena, made, nparts, at++, flow_part(call->args[i].flow, k));
        if (inner == 0 && at < nparts)
            made = flow_with_part(w->arena, made, nparts, at++, call->args[i].flow);
    }
    return made;
}

/* A parameter of function type is taken to be differentiable: it is judged where it is known. So is what the
 * prelude demands of types with arithmetic. */
const Flow *flow_invoke(FlowWalk *w, const Expr *e) {
    Checker *c = w->c;
    bool known = e->decl->kind == DECL_func,
         promised = (e->decl->flags & DECL_PRELUDE) && (e->decl->flags & DECL_REQUIREMENT);
    FuncSig sig = check_generic_signature(c, e->decl, e->subst, e->modes, e->nmodes, e->a != NULL);
    if (e->nmodes && e->modes[0] == DIFF_bwd) flow_reverses(c, w->func, e->decl);
    if (!known && w->asked) flow_given_differentiated(c, e->decl, w->modes);
    FlowCall call = {.site = e, .callee = e->decl, .type = e->type, .context = known ? e->decl : w->func};
    if (e->nmodes) call.derived = custom_derivative(c, e);
    else if (known && !promised) call.derived = behind_operator(c, e);
    FuncRef special = {call.derived, NULL};
    if (known && !e->nmodes && check_special(c, e->decl, e->subst, &special)) call.derived = special.decl;
    if (promised && !e->nmodes) call.context = NULL;
    if (!e->nmodes && call.derived == e->decl) call.subst = subst_if_made(c, e->decl, e->subst);
    call.sig = with_this(w, &sig, e->nmodes > 0);
    call.args = arena_array(w->arena, FlowArg, e->args.count + 1);
    if (e->a) {
        FlowArg object = argument(w, e->a);
        if (sig.has_this) call.args[call.nargs++] = object;
    }
    bool detaches = known && is_detach(e->decl);
    w->detached += detaches;
    for (int i = 0; i < e->args.count; i++) call.args[call.nargs++] = argument(w, e->args.at[i]);
    w->detached -= detaches;
    bool makes_tuple = (e->decl->flags & DECL_PRELUDE) && sig.result->kind == TYPE_tuple;
    return makes_tuple && !e->nmodes && !w->no_diff ? flow_tuple(w, &call) : flow_call(w, &call);
}

static Decl *accessor(const Decl *property, FuncFlavour flavour) {
    for (int i = 0; i < property->members.count; i++)
        if (property->members.at[i]->kind == DECL_func && property->members.at[i]->flavour == flavour)
            return property->members.at[i];
    return NULL;
}

/* Reading or writing a property, or a subscript that is a declaration. */
const Flow *flow_access(FlowWalk *w, const Expr *e, FuncFlavour flavour, const Flow *value) {
    Decl *func = accessor(e->decl, flavour);
    FlowArg object = e->a ? argument(w, e->a) : (FlowArg){0};
    FlowCall call = {.site = e, .callee = func, .type = e->type, .derived = func, .context = func};
    call.args = arena_array(w->arena, FlowArg, e->args.count + 2);
    if (!func) return NULL;
    call.subst = subst_if_made(w->c, func, e->subst);
    FuncSig sig = check_generic_signature(w->c, func, NULL, NULL, 0, true);
    call.sig = with_this(w, &sig, false);
    if (sig.has_this) call.args[call.nargs++] = object;
    for (int i = 0; i < e->args.count; i++) call.args[call.nargs++] = argument(w, e->args.at[i]);
    if (flavour == FUNC_set) call.args[call.nargs++] = (FlowArg){.flow = value};
    const Flow *given = flow_whole(w->arena, value);
    Loss loss = {.kind = LOSS_stored, .loc = e->loc, .cause = e};
    if (given && given->carries && check_is_no_diff_field(e->decl)) {
        loss.where = format_text(w->c->arena, "the no_diff property '%s'", e->decl->name->text);
        flow_report_stored(w, &loss);
    }
    return flow_call(w, &call);
}
