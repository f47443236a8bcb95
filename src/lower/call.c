/* Calls: which function is meant once types are known, and how arguments are passed.
 *
 * Out and inout arguments of simple type go through a temporary: copied in, copied back in the order of the
 * parameters. Structs and arrays are passed by the address of where they are, if that is a local variable
 * that no other argument of the call overlaps; otherwise they are copied, too. So the rules in ir.h about
 * what addresses may overlap always hold.
 *
 * What lies in memory that other threads may see (buffers, group-shared memory) is not copied: the copy back
 * would undo what they wrote meanwhile. Such a call is to a version of the function that takes any address.
 * Differentiable code keeps to copies: it must know what overlaps. */
#include "lower/lowerer.h"

/* ---- finding the callee */

static Decl *interface_of(const Decl *decl) {
    Decl *owner = decl->parent;
    if (owner && (owner->kind == DECL_property || owner->kind == DECL_subscript)) owner = owner->parent;
    return owner && owner->kind == DECL_interface ? owner : NULL;
}

const Subst *own_arguments(Lowerer *l, const Subst *found, Decl *implementation, const Decl *requirement,
                           const Subst *given) {
    for (const Subst *s = given; s; s = s->outer)
        if (s->owner == requirement && implementation->generics && implementation->generics->params.count)
            return subst_new(l->c, found, implementation, s->args, s->nargs);
    return found;
}

Callee resolve_callee(Fn *f, Decl *decl, const Subst *subst) {
    Lowerer *l = f->l;
    Callee callee = {.decl = decl, .subst = subst};
    Decl *interface = interface_of(decl);
    if (!interface) return callee;
    callee.requirement = decl;
    const Type *self = subst_find(subst, interface, 0);
    if (!self) arena_fault(l->arena, "a requirement is called without a type");
    bool associated = self->kind == TYPE_assoc && self->args[0]->kind == TYPE_interface &&
                      !check_differential(l->c, self); /* o.A.member(...) */
    if (self->kind == TYPE_interface || associated) {
        callee.request = request_dispatch(l, decl, subst, false);
        return callee;
    }
    Satisfaction found = check_witness(l->c, self, decl, subst);
    switch ((SatisfyKind)found.kind) {
    case SATISFY_decl:
        callee.decl = found.decl;
        callee.subst = own_arguments(l, found.subst, found.decl, decl, subst);
        break;
    case SATISFY_default: break;
    default:
        callee.native = decl->flavour == FUNC_init ? "__init" : decl->name->text;
        callee.native_type = self;
        break;
    }
    return callee;
}

/* ---- arguments */

typedef struct Arg {
    Expr *expr;         /* NULL: `place` is given */
    int element;        /* of a pack; -1: none */
    const Subst *subst; /* set: a default value, under the callee's arguments */
    Place place;
    Val *value; /* in, simple */
    Val *temp;  /* copied here */
    bool copy_back;
    bool drop; /* its derivative must not flow */
} Arg;

typedef VEC(Arg) ArgVec;

static void add_element(Fn *f, Expr *e, void *user) {
    ArgVec *args = user;
    vec_push(f->l->arena, args, ((Arg){.expr = e, .element = f->pack_element}));
}

static void add_arg_expr(Fn *f, ArgVec *args, Expr *e) {
    if (e->kind != EXPR_expand) {
        vec_push(f->l->arena, args, ((Arg){.expr = e, .element = f->pack_element}));
        return;
    }
    for_expansion(f, e, add_element, args);
}

static void evaluate(Fn *f, Arg *arg, const ParamSig *param, const Type *ir) {
    const Subst *subst = f->subst;
    int element = f->pack_element;
    if (arg->expr) {
        f->pack_element = arg->element;
        if (arg->subst) f->subst = arg->subst;
        bool by_value = param->pass == PASS_in && is_simple(ir);
        if (by_value) arg->value = lower_value(f, arg->expr);
        else arg->place = lower_place(f, arg->expr);
    } else if (param->pass == PASS_in && is_simple(ir)) arg->value = place_load(f, &arg->place);
    f->subst = subst;
    f->pack_element = element;
}

/* Of an argument that is void. */
static void evaluate_effect(Fn *f, const Arg *arg) {
    int element = f->pack_element;
    f->pack_element = arg->element;
    if (arg->expr) lower_effect(f, arg->expr);
    f->pack_element = element;
}

static bool is_local_memory(const Place *place) {
    bool memory = place->kind == PLACE_memory || (place->kind == PLACE_value && place->address);
    return memory && !place->shared && !place->write_back && !is_transposed(place->type);
}

static bool overlaps(const ArgVec *args, int except, const FuncSig *sig, const void *root, bool before) {
    for (int i = 0; i < args->count; i++) {
        const ParamSig *param = &sig->params[i];
        bool writes = param->pass == PASS_out || param->pass == PASS_inout || param->pass == PASS_ref;
        if (i == except || !writes || (before && i > except)) continue;
        if (!args->at[i].value && args->at[i].place.root == root) return true;
    }
    return false;
}

static Val *copy_in(Fn *f, Arg *arg, bool fill) {
    arg->temp = temp_var(f, arg->place.type, "arg");
    Place source = arg->place;
    source.no_diff |= arg->drop;
    if (fill) place_load_into(f, &source, arg->temp);
    return arg->temp;
}

static Val *pass_in(Fn *f, Arg *arg, const ArgVec *args, int index, const FuncSig *sig) {
    const Place *place = &arg->place;
    bool constant = place->kind == PLACE_memory && place->constant && !is_transposed(place->type);
    bool direct = (is_local_memory(place) || constant) && !(place->no_diff && f->diff) && !arg->drop;
    if (direct && !(place->root && overlaps(args, index, sig, place->root, false))) return place->address;
    if (place->kind == PLACE_value && place->value) {
        arg->temp = temp_var(f, place->type, "arg");
        build_store(&f->b, arg->temp, place->value);
        return arg->temp;
    }
    return copy_in(f, arg, true);
}

static Val *pass_by_place(Fn *f, Arg *arg, const ArgVec *args, int index, const FuncSig *sig,
                          const Type *ir) {
    const ParamSig *param = &sig->params[index];
    const Place *place = &arg->place;
    if (param->pass == PASS_ref) {
        Val *address = place_reference(f, place);
        if (address) return address;
        arg->copy_back = true;
        return copy_in(f, arg, true);
    }
    bool direct = !is_simple(ir) && is_local_memory(place) && !arg->drop && !(place->no_diff && f->diff);
    if (direct && place->root && overlaps(args, index, sig, place->root, true)) direct = false;
    if (direct) return place->address;
    arg->copy_back = true;
    return copy_in(f, arg, param->pass == PASS_inout);
}

static Val *pass(Fn *f, ArgVec *args, int index, const FuncSig *sig) {
    Arg *arg = &args->at[index];
    const ParamSig *param = &sig->params[index];
    const Type *ir = lower_type(f->l, param->type);
    bool in = param->pass == PASS_in || param->pass == PASS_constref;
    if (!in) return pass_by_place(f, arg, args, index, sig, ir);
    if (!is_simple(ir)) return pass_in(f, arg, args, index, sig);
    Val *value = arg->value ? arg->value : place_load(f, &arg->place);
    return arg->drop && f->diff ? detached(f, value, true) : value;
}

static void copy_back(Fn *f, Arg *arg) {
    if (!arg->copy_back) return;
    bool drop = arg->drop && f->diff; /* what a no_diff parameter gives back has no derivative */
    if (is_simple(lower_type(f->l, arg->place.type))) {
        place_store(f, &arg->place, detached(f, build_load(&f->b, arg->temp), drop));
        return;
    }
    Val *object = arg->temp;
    if (drop) copy_object(f, object = temp_var(f, arg->place.type, "plain"), arg->temp, true);
    place_store_from(f, &arg->place, object);
}

/* ---- the call */

Val *call_func(Fn *f, Func *func, Val **args, int nargs, const Type *result, Val *into) {
    ValVec all = {0};
    bool by_address = !is_simple(result);
    if (by_address) {
        if (!into) into = build_var(&f->b, result, name_from(f->l->m->names, "result"), false);
        vec_push(f->l->arena, &all, into);
    }
    for (int i = 0; i < nargs; i++) vec_push(f->l->arena, &all, args[i]);
    Inst *call = build_call(&f->b, func, all.at, all.count);
    if (f->no_diff_calls) call->flags |= INST_NO_DIFF;
    return by_address || result->kind == TYPE_void ? NULL : inst_result(call);
}

static bool is_shared_memory(Fn *f, const Place *place) {
    if (place->kind == PLACE_accessor) return accessor_lies_elsewhere(f, place);
    return place->kind == PLACE_memory && place->shared && !place->constant && !place->write_back &&
           !is_transposed(place->type);
}

/* Is the parameter written through, and its argument memory that other threads may see? */
static bool is_shared_argument(Fn *f, const ParamSig *param, const Arg *arg) {
    bool writes = param->pass == PASS_inout || param->pass == PASS_out;
    return writes && !arg->value && is_shared_memory(f, &arg->place);
}

/* Such parameters take the address itself. The result says which, as Request does. */
static Name pass_shared(Fn *f, const Request *request, const FuncSig *sig, const ArgVec *args) {
    if (!request || f->diff || request->kind != REQUEST_decl) return NULL;
    Text letters = {.arena = f->l->arena};
    bool any = false;
    for (int i = 0; i < args->count; i++) {
        bool shared = is_shared_argument(f, &sig->params[i], &args->at[i]);
        if (shared) sig->params[i].pass = PASS_ref;
        if (shared && !any) /* rare: others pay nothing */
            for (int k = 0; k < i; k++) text_char(&letters, '-');
        any |= shared;
        if (any) text_char(&letters, shared ? '&' : '-');
    }
    return any ? name_of(f->l->m->names, text_str(&letters)) : NULL;
}

/* `sig` lists every parameter, `this` (if any) first; `request` is what is called, NULL if that is a
 * derivative of one. */
static Val *emit_call(Fn *f, Func *func, const Request *request, FuncSig *sig, ArgVec *args, Val *into) {
    Lowerer *l = f->l;
    ValVec values = {0};
    for (int i = 0; i < args->count; i++) args->at[i].drop |= f->diff && sig->params[i].no_diff;
    int no_diff_calls = f->no_diff_calls;
    f->no_diff_calls = 0; /* no_diff g(h(y)) is about g: what h does to y flows */
    for (int i = 0; i < args->count; i++)
        if (sig->params[i].type->kind == TYPE_void) evaluate_effect(f, &args->at[i]);
        else if (is_passed(&sig->params[i]))
            evaluate(f, &args->at[i], &sig->params[i], lower_type(l, sig->params[i].type));
    f->no_diff_calls = no_diff_calls;
    Name shared = pass_shared(f, request, sig, args);
    if (shared) func = request_by_reference(l, request, shared)->func;
    for (int i = 0; i < args->count; i++) {
        if (!is_passed(&sig->params[i])) continue;
        vec_push(l->arena, &values, pass(f, args, i, sig));
    }
    Val *value = call_func(f, func, values.at, values.count, lower_type(l, sig->result), into);
    for (int i = 0; i < args->count; i++) copy_back(f, &args->at[i]);
    return value;
}

static FuncSig with_this(Lowerer *l, const FuncSig *sig) {
    FuncSig all = *sig;
    int first = sig->has_this ? 1 : 0;
    all.params = arena_array(l->arena, ParamSig, sig->nparams + 1);
    if (sig->nparams) memcpy(all.params + first, sig->params, sizeof(ParamSig) * (size_t)sig->nparams);
    if (!first) return all;
    all.params[0] = (ParamSig){.name = name_from(l->m->names, "this"),
                               .type = sig->this_type,
                               .pass = sig->this_pass,
                               .no_diff = sig->this_no_diff};
    all.nparams++;
    return all;
}

static Decl *param_decl(const Decl *decl, int index) {
    return index < decl->params.count ? decl->params.at[index] : NULL;
}

/* ---- functions as arguments */

static bool is_function(const Expr *arg) { return arg->type && arg->type->kind == TYPE_function; }

static const FuncBinding *find_binding(const Fn *f, const Decl *param) {
    for (int i = 0; i < f->request->nbindings; i++)
        if (f->request->bindings[i].param == param) return &f->request->bindings[i];
    return NULL;
}

typedef VEC(FuncBinding) BindingVec;

/* Functions are known when a call is compiled, those of the body around a lambda included if it is passed as
 * a function; as an object it has a type that anybody may use. */
static const FuncBinding *known_binding(Fn *f, const Expr *use) {
    const FuncBinding *binding = find_binding(f, use->decl);
    if (!binding) lower_report(f, DIAG_function_not_known, use->loc, use->decl->name->text);
    return binding;
}

/* A lambda or an object with a call operator in place of a function; NULL: it is something else. */
static Expr *object_in(Expr *arg) {
    while (arg->kind == EXPR_paren) arg = arg->a;
    bool object = arg->kind == EXPR_convert && arg->a->type && arg->a->type->kind == TYPE_struct;
    return object ? arg : NULL;
}

static void bind_object(Fn *f, FuncBinding *binding, const Expr *as_function) {
    const Expr *object = as_function->a;
    const Type *type = concrete(f, object->type);
    bool lambda = object->kind == EXPR_lambda;
    binding->decl = lambda ? object->decl : as_function->decl;
    binding->lambda = (Decl *)(uintptr_t)type->decl;
    binding->subst = lambda ? f->subst : concrete_subst(f, as_function->subst);
    binding->around = lambda && f->request->nbindings ? f->request : NULL;
    if (check_all_fields(f->l->c, type).count) binding->object = type;
}

/* The function that holds data behind the parameter that a lambda was made for, to pass it on; NULL: it is
 * something else. */
static const FuncBinding *passed_on(const Fn *f, const Expr *as_function) {
    const Decl *param = as_function->a->kind == EXPR_lambda ? as_function->decl : NULL;
    const FuncBinding *binding = param ? find_binding(f, param) : NULL;
    return binding && binding->object ? binding : NULL;
}

static void bind_function(Fn *f, BindingVec *bindings, Decl *param, Expr *arg) {
    const Expr *object = object_in(arg);
    FuncBinding binding = {.param = param, .loc = arg->loc};
    while (arg->kind == EXPR_paren || arg->kind == EXPR_convert) arg = arg->a;
    const FuncBinding *on = object ? passed_on(f, object) : NULL;
    if (on) {
        binding = *on;
        binding.param = param;
        binding.drops |= object->decl->type->number;
    } else if (object) bind_object(f, &binding, object);
    else if (arg->kind == EXPR_decl && arg->decl->kind == DECL_var) {
        const FuncBinding *outer = known_binding(f, arg);
        if (!outer) return;
        binding = *outer;
        binding.param = param;
    } else { /* T.f is what T has for the requirement */
        Callee callee = resolve_callee(f, arg->decl, concrete_subst(f, arg->subst));
        binding.decl = callee.decl;
        binding.subst = callee.subst;
    }
    vec_push(f->l->arena, bindings, binding);
}

static BindingVec bind_functions(Fn *f, Decl *decl, Expr *e) {
    BindingVec bindings = {0};
    for (int i = 0; i < e->args.count && i < decl->params.count; i++) {
        Expr *arg = e->args.at[i];
        if (arg && is_function(arg)) bind_function(f, &bindings, decl->params.at[i], arg);
    }
    return bindings;
}

/* Where the data of a function is that came as an argument. */
static bool data_of_function(Fn *f, const Decl *param, Loc loc, const FuncBinding *binding, Place *place) {
    const Local *local = find_local(f, param);
    if (!local) lower_report(f, DIAG_function_holds_data, loc, param->name->text);
    *place = place_of_memory(local ? local->address : temp_var(f, binding->object, "data"), binding->object);
    return local != NULL;
}

/* In place of a function that holds data goes the data. */
static void add_function(Fn *f, ArgVec *args, Expr *arg, const FuncBinding *binding) {
    const Expr *object = object_in(arg);
    Arg data = {.element = -1};
    if (!binding->object) {
        add_arg_expr(f, args, arg);
        return;
    }
    while (arg->kind == EXPR_paren) arg = arg->a;
    bool on = object && passed_on(f, object);
    if (object && !on) data = (Arg){.expr = object->a, .element = f->pack_element};
    else data_of_function(f, on ? object->decl : arg->decl, arg->loc, binding, &data.place);
    vec_push(f->l->arena, args, data);
}

/* `bindings`: of the functions among them. */
static void collect_args(Fn *f, Expr *e, Decl *decl, const Subst *subst, const BindingVec *bindings,
                         ArgVec *args) {
    int next = 0;
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (arg && is_function(arg) && next < bindings->count) {
            add_function(f, args, arg, &bindings->at[next++]);
            continue;
        }
        if (arg) {
            add_arg_expr(f, args, arg);
            continue;
        }
        Decl *param = param_decl(decl, i); /* left out: its default */
        vec_push(f->l->arena, args, ((Arg){.expr = param->init, .element = -1, .subst = subst}));
    }
}

void call_defaults(Fn *f, Request *request, Val *into) {
    ArgVec args = {0};
    for (int i = 0; i < request->sig.nparams; i++) {
        Decl *param = request->sig.params[i].decl;
        check_default_argument_of(f->l->c, param);
        vec_push(f->l->arena, &args, ((Arg){.expr = param->init, .element = -1, .subst = request->subst}));
    }
    FuncSig sig = with_this(f->l, &request->sig);
    emit_call(f, request->func, NULL, &sig, &args, into);
}

/* What the interface says is no_diff does not flow, even if the implementation could. */
static void drop_unpromised(Fn *f, const Callee *callee, ArgVec *args, bool has_this) {
    if (!f->diff || !callee->requirement || callee->requirement == callee->decl) return;
    if (callee->requirement->flags & DECL_PRELUDE) return; /* arithmetic promises what the type can do */
    FuncSig promised = check_generic_signature(f->l->c, callee->requirement, NULL, NULL, 0, true);
    if (has_this && args->count) args->at[0].drop = promised.this_no_diff;
    int first = has_this ? 1 : 0;
    for (int i = 0; i < promised.nparams && i + first < args->count; i++) {
        if (promised.params[i].is_pack) return;
        args->at[i + first].drop = promised.params[i].no_diff;
    }
}

/* An object that holds data is passed as it is, with no_diff parameters of its own; those of its derivatives
 * must be the wanted ones. */
static bool fits_derived(Fn *f, const FuncBinding *binding, const FuncSig *have, const Type *wanted) {
    for (int i = 0; i < have->nparams && binding->object; i++) {
        bool is_wanted = type_function_drops(wanted, i + 1),
             dropped = binding->drops & type_function_drop(i + 1);
        if (have->params[i].no_diff == is_wanted && (is_wanted || !dropped)) continue;
        lower_report(f, DIAG_function_no_diff, binding->loc, i + 1);
        return false;
    }
    return true;
}

/* Is the object of the method differentiated where it is a parameter? */
static bool object_is_paired(Lowerer *l, const Expr *e, Decl *method, const Subst *subst, FuncSig *sig) {
    if (!check_signature(l->c, method)->has_this) return false;
    FuncSig declared = check_signature_of(l->c, method, subst, e->modes, e->nmodes, false);
    *sig = flatten_signature(l, &declared);
    return sig->nparams && sig->params[0].type->kind == TYPE_pair;
}

/* An object that is bound to a derivative: it goes in as a pair without a derivative, and what would come out
 * is dropped. Around this, derivatives flow through the object as through anything else. `itself` is where
 * its value is in the pair. */
static Place still_pair(Fn *f, const Type *type, const Place *object, Val **itself) {
    Val *pair = temp_var(f, type, "pair");
    build_zero(&f->b, pair);
    *itself = pair;
    for (const Type *t = type; t->kind == TYPE_pair; t = t->args[0]) *itself = build_field(&f->b, *itself, 0);
    place_load_into(f, object, *itself);
    return place_of_memory(pair, type);
}

static Val *call_bound(Fn *f, Expr *e, Val *into) {
    Lowerer *l = f->l;
    Expr *callee = e->a;
    while (callee->kind == EXPR_paren) callee = callee->a;
    const Type *type = callee->decl->type;
    const FuncBinding *binding = known_binding(f, callee);
    if (!binding) return NULL;
    const Request *around = binding->around;
    FuncRef known = {binding->decl, binding->subst};
    if (e->nmodes) check_special(l->c, binding->decl, binding->subst, &known);
    const FuncBinding *bindings = around ? around->bindings : NULL;
    int nbindings = around ? around->nbindings : 0;
    FuncSig paired;
    bool is_paired = e->nmodes && binding->object && object_is_paired(l, e, known.decl, known.subst, &paired);
    bool plain_this = binding->lambda && e->nmodes && !is_paired;
    Request *request = e->nmodes
                           ? request_declared(l, known.decl, known.subst, plain_this, bindings, nbindings)
                           : request_func(l, known.decl, known.subst, plain_this, bindings, nbindings);
    FuncSig flat = request->sig;
    Func *func = request->func;
    if (e->nmodes) {
        bool derived = check_is_differentiable(l->c, known.decl, (DiffMode)e->modes[0]);
        if (!derived ||
            request->as_declared) { /* of id<float> the type has a derivative, but not the declaration */
            lower_report(f, DIAG_not_differentiable, binding->loc, binding->decl->name->text,
                         e->modes[0] == DIFF_fwd ? "fwd_diff" : "bwd_diff");
            return NULL;
        }
        if (!fits_derived(f, binding, &request->sig, type)) return NULL;
        func = request_derivative(l, request, e->modes, e->nmodes);
        FuncSig declared = check_signature_of(l->c, request->decl, request->subst, e->modes, e->nmodes,
                                              binding->lambda != NULL);
        flat = flatten_signature(l, &declared);
    }
    ArgVec args = {0};
    FuncSig sig = is_paired ? paired : with_this(l, &flat);
    if (binding->lambda) {
        Place self;
        Val *itself;
        if (!binding->object)
            self = place_of_memory(temp_var(f, request->sig.this_type, "lambda"), request->sig.this_type);
        else if (!data_of_function(f, callee->decl, callee->loc, binding, &self)) return NULL;
        if (is_paired) self = still_pair(f, sig.params[0].type, &self, &itself);
        vec_push(l->arena, &args, ((Arg){.place = self, .element = -1}));
    }
    for (int i = 0; i < e->args.count; i++) {
        add_arg_expr(f, &args, e->args.at[i]);
        bool drops = type_function_drops(type, i + 1) || binding->drops & type_function_drop(i + 1);
        vec_last(&args).drop = !e->nmodes && drops;
    }
    return emit_call(f, func, NULL, &sig, &args, into);
}

/* ---- entry */

static bool all_forward(const Expr *e) {
    for (int i = 0; i < e->nmodes; i++)
        if (e->modes[i] != DIFF_fwd) return false;
    return true;
}

/* fwd_diff(obj.m), of a method with a differentiable object. */
static Val *call_with_object(Fn *f, Expr *e, const Callee *callee, FuncSig *sig, Val *into) {
    Lowerer *l = f->l;
    BindingVec bindings = bind_functions(f, e->decl, e);
    Request *request = callee->request ? callee->request
                                       : request_declared(l, callee->decl, callee->subst, false, bindings.at,
                                                          bindings.count);
    Func *func = request_derivative(l, request, e->modes, e->nmodes);
    Val *itself;
    Place object = lower_place(f, e->a), pair = still_pair(f, sig->params[0].type, &object, &itself);
    ArgVec args = {0};
    vec_push(l->arena, &args, ((Arg){.place = pair, .element = -1}));
    collect_args(f, e, e->decl, concrete_subst(f, e->subst), &bindings, &args);
    Val *value = emit_call(f, func, NULL, sig, &args, into);
    if (request->sig.this_pass == PASS_inout && all_forward(e)) {
        if (is_simple(ir_target(itself->type))) place_store(f, &object, build_load(&f->b, itself));
        else place_store_from(f, &object, itself);
    }
    return value;
}

/* The data of functions among the arguments stands still as well. */
static void pair_objects(Fn *f, const Expr *e, const BindingVec *bindings, const FuncSig *sig, int first,
                         ArgVec *args) {
    int next = 0;
    for (int i = 0; i < e->args.count && next < bindings->count; i++) {
        if (!e->args.at[i] || !is_function(e->args.at[i])) continue;
        const FuncBinding *binding = &bindings->at[next++];
        Arg *arg = &args->at[first + i];
        const Type *type = sig->params[first + i].type;
        if (!binding->object || type->kind != TYPE_pair) continue;
        Val *itself;
        Place object = arg->expr ? lower_place(f, arg->expr) : arg->place;
        *arg = (Arg){.place = still_pair(f, type, &object, &itself), .element = -1};
    }
}

/* Has the derivative of what stands for a requirement the parameters that the requirement promises? Something
 * may be differentiable that the interface knows nothing about, or that it calls no_diff. */
static bool keeps_promise(Lowerer *l, const Expr *e, const Callee *callee, const Subst *subst, bool bound) {
    FuncSig promised = check_signature_of(l->c, callee->requirement, subst, e->modes, e->nmodes, bound),
            have = check_signature_of(l->c, callee->decl, callee->subst, e->modes, e->nmodes, bound);
    promised = flatten_signature(l, &promised);
    have = flatten_signature(l, &have);
    if (promised.result != have.result || promised.nparams != have.nparams) return false;
    for (int i = 0; i < have.nparams; i++)
        if (promised.params[i].type != have.params[i].type || promised.params[i].pass != have.params[i].pass)
            return false;
    return true;
}

/* A type that a constraint calls an integer can turn out to be differentiable; the call is made for one that
 * is not. */
static const Type *open_argument(Fn *f, const Expr *e, const FuncSig *sig, const ArgVec *args) {
    if (sig->result->kind == TYPE_pair && concrete(f, e->type)->kind != TYPE_pair) return e->type;
    for (int i = 0; i < args->count && i < sig->nparams; i++) {
        const Expr *arg = args->at[i].expr;
        if (arg && sig->params[i].type->kind == TYPE_pair && concrete(f, arg->type)->kind != TYPE_pair)
            return arg->type;
    }
    return NULL;
}

static Val *call_derivative(Fn *f, Expr *e, Decl *decl, const Subst *subst, Val *into) {
    Lowerer *l = f->l;
    bool bound = e->a != NULL;
    Callee callee = resolve_callee(f, decl, subst);
    if (callee.request ||
        (callee.requirement && !callee.native && !keeps_promise(l, e, &callee, subst, bound)))
        callee.request = request_dispatch(l, decl, subst, true);
    BindingVec bindings = bind_functions(f, decl, e);
    FuncSig paired;
    const Request *found = callee.request;
    if (bound && object_is_paired(l, e, found ? found->decl : callee.decl,
                                  found ? found->subst : callee.subst, &paired))
        return call_with_object(f, e, &callee, &paired, into);
    Request *request =
        callee.request ? callee.request
                       : request_declared(l, callee.decl, callee.subst, bound, bindings.at, bindings.count);
    bool was_plain = request->plain_this;
    request->plain_this = was_plain || bound;
    Func *func = request_derivative(l, request, e->modes, e->nmodes);
    request->plain_this = was_plain;
    FuncSig declared = check_signature_of(l->c, request->decl, request->subst, e->modes, e->nmodes, bound);
    add_object(request, &declared);
    pass_objects_to_derivative(l, request, e->modes, e->nmodes, &declared);
    FuncSig flat = flatten_signature(l, &declared), sig = with_this(l, &flat);
    ArgVec args = {0};
    if (bound && flat.has_this) vec_push(l->arena, &args, ((Arg){.expr = e->a, .element = f->pack_element}));
    int first = args.count;
    collect_args(f, e, decl, subst, &bindings, &args);
    const Type *open = callee.requirement ? open_argument(f, e, &sig, &args) : NULL;
    if (open) {
        const char *name = type_text(l->arena, open);
        lower_report(f, DIAG_open_derivative, e->loc, name, name);
        return NULL;
    }
    pair_objects(f, e, &bindings, &sig, first, &args);
    return emit_call(f, func, NULL, &sig, &args, into);
}

/* ---- the mode of a Jacobian: __by_rows<X, Y>(f), of a function whose argument has the differential X and whose result Y */

/* Is each number in it of one kind? Rows are kept in the type of the argument, which must not be narrower
 * than that of the result. */
static bool has_only(const Type *ir, TypeKind kind) {
    if (ir->kind == TYPE_array || ir->kind == TYPE_vector) return has_only(ir->args[0], kind);
    if (ir->kind != TYPE_record) return !type_is_float(ir) || ir->kind == kind;
    for (int i = 0; i < type_record(ir)->nfields; i++)
        if (!has_only(type_record(ir)->fields[i].type, kind)) return false;
    return true;
}

static bool are_alike(const Type *x, const Type *y) {
    static const TypeKind kinds[] = {TYPE_half, TYPE_float, TYPE_double};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (has_only(x, kinds[i]) && has_only(y, kinds[i])) return true;
    return false;
}

static bool asks(const Decl *decl, const char *op) {
    return decl->sema && decl->sema->op && strcmp(decl->sema->op->text, op) == 0;
}

enum {
    FEW_COLUMNS = 4, /* fill a vector, and need no memory */
    /* Numbers that a loop hands on in all directions, where columns are the better way; and better than one
     * gradient in double. */
    MOST_SIDE_BY_SIDE = 16,
    MOST_DOUBLES = 8,
};

/* As measured for functions with loops and without, of up to 16 numbers: a few rows more are as quick as so
 * many columns. */
static bool are_fewer_rows(int64_t columns, int64_t rows) {
    return columns > FEW_COLUMNS && 4 * columns > 5 * rows + 2;
}

/* Through a long loop that hands on few numbers, columns go side by side, where rows keep something in every
 * round. For that the function is lowered at once. */
static bool suits_columns(Lowerer *l, const FuncBinding *binding, FuncRef known, int64_t columns,
                          int64_t most) {
    const Request *around = binding->around;
    if (columns > most) return false;
    Request *request = request_declared(l, known.decl, known.subst, binding->lambda != NULL,
                                        around ? around->bindings : NULL, around ? around->nbindings : 0);
    lower_with_calls(l, request);
    if (!request->func->body || l->m->diags->failures > 0) return false;
    int64_t carried = l->config.most_carried(l->config.user, request->func);
    return carried > 0 && carried <= most / columns;
}

/* Of a function that is an argument: __reverses(f), and __by_rows<X, Y>(f). */
static Val *tell_mode(Fn *f, Decl *decl, const Subst *subst, Expr *e) {
    Lowerer *l = f->l;
    BindingVec bindings = bind_functions(f, decl, e);
    if (bindings.count != 1) return const_int(f, TYPE_bool, 0);
    FuncRef known = {bindings.at[0].decl, bindings.at[0].subst};
    check_special(l->c, known.decl, known.subst, &known);
    bool forward = check_keeps_derivative(l->c, known.decl, known.subst, DIFF_fwd),
         reverse = check_keeps_derivative(l->c, known.decl, known.subst, DIFF_bwd);
    if (asks(decl, "reverses") || !forward || !reverse) return const_int(f, TYPE_bool, reverse);
    const Type *x = lower_type(l, subst_find(subst, decl, 0)), *y = lower_type(l, subst_find(subst, decl, 1));
    int64_t columns = ir_count_numbers(x), rows = ir_count_numbers(y),
            most = rows == 1 && has_only(x, TYPE_double) ? MOST_DOUBLES : MOST_SIDE_BY_SIDE;
    bool by_rows = are_alike(x, y) && are_fewer_rows(columns, rows) &&
                   !suits_columns(l, &bindings.at[0], known, columns, most);
    return const_int(f, TYPE_bool, by_rows);
}

/* T.f() where T turned out to be an interface, as the elements of packs may be. */
static Val *refuse_static(Fn *f, const Expr *e, const Request *request, Val *into) {
    Lowerer *l = f->l;
    lower_report(f, DIAG_static_of_interface, e->loc, e->decl->name ? e->decl->name->text : "[]",
                 type_text(l->arena, request->sig.this_type));
    const Type *result = lower_type(l, request->sig.result);
    if (into) build_zero(&f->b, into);
    return into || result->kind == TYPE_void ? NULL : ir_const_zero(l->m, result);
}

Val *lower_call(Fn *f, Expr *e, Val *into) {
    Lowerer *l = f->l;
    Decl *decl = e->decl;
    if (!decl || decl->kind == DECL_var) return call_bound(f, e, into);
    const Subst *subst = concrete_subst(f, e->subst);
    if (e->nmodes) return call_derivative(f, e, decl, subst, into);
    Val *value;
    if (asks(decl, "by_rows") || asks(decl, "reverses")) return tell_mode(f, decl, subst, e);
    if (lower_intrinsic(f, decl, subst, e, into, &value)) return value;
    Callee callee = resolve_callee(f, decl, subst);
    if (callee.native) return lower_native(f, &callee, e, into);
    if (!callee.request && callee.decl != decl &&
        lower_intrinsic(f, callee.decl, callee.subst, e, into, &value))
        return value;
    BindingVec bindings = bind_functions(f, decl, e);
    Request *request = callee.request;
    if (!request) request = request_func(l, callee.decl, callee.subst, false, bindings.at, bindings.count);
    FuncSig sig = with_this(l, &request->sig);
    ArgVec args = {0};
    bool has_this = request->sig.has_this;
    if (has_this && !e->a) return refuse_static(f, e, request, into);
    if (has_this) vec_push(l->arena, &args, ((Arg){.expr = e->a, .element = f->pack_element}));
    collect_args(f, e, decl, subst, &bindings, &args);
    drop_unpromised(f, &callee, &args, has_this);
    return emit_call(f, request->func, request, &sig, &args, into);
}

/* ---- properties and subscripts */

static Decl *accessor_of(Decl *property, FuncFlavour flavour) {
    for (int i = 0; i < property->members.count; i++)
        if (property->members.at[i]->kind == DECL_func && property->members.at[i]->flavour == flavour)
            return property->members.at[i];
    return NULL;
}

/* A field that stands in for a property of an interface. */
static Val *access_field(Fn *f, const Satisfaction *found, FuncFlavour flavour, const Place *object,
                         Val *new_value, Val *into) {
    Place place = place_field(f, *object, found->decl);
    bool simple = is_simple(lower_type(f->l, place.type));
    if (flavour == FUNC_set) {
        if (simple) place_store(f, &place, new_value);
        else place_store_from(f, &place, new_value);
        return NULL;
    }
    if (into) {
        place_load_into(f, &place, into);
        return NULL;
    }
    return place_load(f, &place);
}

static Arg value_arg(Fn *f, Val *value, const Type *front) {
    Arg arg = {.element = -1};
    if (is_simple(lower_type(f->l, front)))
        arg.place = (Place){.kind = PLACE_value, .value = value, .type = front};
    else arg.place = (Place){.kind = PLACE_value, .address = value, .type = front};
    return arg;
}

static Val *call_with(Fn *f, Request *request, const Place *object, Val **values, int nvalues, Val *new_value,
                      Val *into) {
    const FuncSig *own = &request->sig;
    FuncSig sig = with_this(f->l, own);
    ArgVec args = {0};
    if (own->has_this) vec_push(f->l->arena, &args, ((Arg){.place = *object, .element = -1}));
    for (int i = 0; i < nvalues; i++)
        vec_push(f->l->arena, &args, value_arg(f, values[i], own->params[i].type));
    if (new_value) vec_push(f->l->arena, &args, value_arg(f, new_value, own->params[nvalues].type));
    return emit_call(f, request->func, request, &sig, &args, into);
}

Val *call_accessor(Fn *f, Decl *property, const Subst *subst, FuncFlavour flavour, const Place *object,
                   Val **values, int nvalues, Val *new_value, Val *into) {
    Lowerer *l = f->l;
    Decl *interface = property->parent->kind == DECL_interface ? property->parent : NULL;
    const Type *self = interface ? subst_find(subst, interface, 0) : NULL;
    Request *request = NULL;
    if (self && self->kind == TYPE_interface)
        request = request_dispatch(l, accessor_of(property, flavour), subst, false);
    else if (self) {
        Satisfaction found = check_witness(l->c, self, property, subst);
        if (found.kind == SATISFY_field) return access_field(f, &found, flavour, object, new_value, into);
        if (found.kind == SATISFY_decl) {
            subst = own_arguments(l, found.subst, found.decl, property, subst);
            property = found.decl;
        }
    }
    if (!request) {
        Decl *accessor = accessor_of(property, flavour);
        if (!accessor && flavour == FUNC_get) accessor = accessor_of(property, FUNC_ref);
        if (!accessor) arena_fault(l->arena, "a property lacks an accessor");
        request = request_func(l, accessor, subst, false, NULL, 0);
    }
    return call_with(f, request, object, values, nvalues, flavour == FUNC_set ? new_value : NULL, into);
}

Val *call_method(Fn *f, Decl *method, const Subst *subst, const Place *object, Val **values, int nvalues) {
    Request *request = request_func(f->l, method, subst, false, NULL, 0);
    return call_with(f, request, object, values, nvalues, NULL, NULL);
}
