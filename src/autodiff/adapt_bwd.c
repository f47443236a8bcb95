/* bwd_diff(f) as users see it, and derivatives that users wrote as generated code calls them. */
#include "autodiff/ad.h"

static void build_copy_object(Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type->kind == TYPE_array || type->kind == TYPE_record) build_copy(b, to, from);
    else build_store(b, to, build_load(b, from));
}

/* ---- calling a user's backward derivative */

typedef struct Arg {
    Val *object; /* what is passed: pair, differential or plain object; NULL: no such parameter */
    Val *p, *d;
} Arg;

static void put_leaf(Builder *b, Val *to, const Leaf *leaf, Val *value) {
    if (leaf->by_ref) build_copy(b, to, value);
    else build_store(b, to, value);
}

/* The user's function gets pairs whose differential is zero (in) or
 * the adjoint so far (inout); what it leaves there is added. */
typedef struct Adapter {
    Ad *ad;
    const CallPlan *plan;
    const Made *made;
    Builder b;
    UserPlaces places;
    Arg *objects; /* by parameter of the source */
    Arg result;
    Val *state; /* what the forward pass has kept; NULL: there is none */
} Adapter;

static const Leaf *leaf_at(const Adapter *x, const Place *place) {
    return &x->plan->callee->leaves.at[place->leaf];
}

static Arg *arg_at(Adapter *x, int param) { return param < 0 ? &x->result : &x->objects[param]; }

static Val *differential_at(Adapter *x, const Leaf *leaf) {
    return ad_leaf_address(&x->b, arg_at(x, leaf->param)->d, leaf->dpath, leaf->ndpath);
}

static void make_pair(Adapter *x, Arg *arg, bool is_reference) {
    arg->p = build_field(&x->b, arg->object, 0);
    arg->d = build_field(&x->b, arg->object, 1);
    if (!is_reference) ad_zero_object(x->ad, &x->b, arg->d);
}

static void make_objects(Adapter *x) {
    const Func *source = x->plan->callee->source, *custom = x->plan->custom;
    x->places = ad_user_bwd(x->ad, source, x->plan->pass != NULL);
    x->objects = arena_array(x->ad->arena, Arg, source->nparams + 1);
    for (int i = 0; i < x->places.count && i < custom->nparams; i++) {
        const UserPlace *place = &x->places.at[i];
        const Param *param = place->param < 0 ? &custom->params[i] : &source->params[place->param];
        Val *object = build_var(&x->b, custom->params[i].type, param->name, false);
        Arg *arg = arg_at(x, place->param);
        if (place->kind != USER_state) arg->object = object;
        switch (place->kind) {
        case USER_state: x->state = object; break;
        case USER_differential: arg->d = object; break;
        case USER_plain: arg->p = object; break;
        case USER_pair: make_pair(x, arg, !(param->flags & PARAM_DIFF)); break;
        }
    }
}

static void fill_place(Adapter *x, const Place *place, Val *value) {
    const Leaf *leaf = place->role == AS_state ? &x->plan->pass->leaves.at[place->leaf] : leaf_at(x, place);
    Val *p = place->role == AS_state ? x->state : arg_at(x, leaf->param)->p;
    switch (place->role) {
    case AS_primal:
    case AS_state:
        if (p) put_leaf(&x->b, ad_leaf_address(&x->b, p, leaf->path, leaf->npath), leaf, value);
        break;
    case AS_counterpart: put_leaf(&x->b, differential_at(x, leaf), leaf, value); break;
    case AS_seed:
        if (arg_at(x, leaf->param)->d) build_store(&x->b, differential_at(x, leaf), value);
        break;
    default: /* shadows of out and inout arrays are adjoints that arrive */
        if (leaf->dir == DIR_in) break;
        build_copy(&x->b, differential_at(x, leaf), value);
        ad_zero_object(x->ad, &x->b, value);
    }
}

/* Seeds come without their primal. */
static void mark_present(Adapter *x) {
    const Func *source = x->plan->callee->source;
    for (int i = 0; i < source->nparams; i++)
        if ((source->params[i].flags & PARAM_DIFF) && x->objects[i].d)
            ad_mark_present(x->ad, &x->b, source->params[i].type, x->objects[i].p, x->objects[i].d);
}

static void call_custom(Adapter *x) {
    Func *custom = x->plan->custom;
    ValVec objects = {0};
    mark_present(x);
    for (int i = 0; i < x->places.count && i < custom->nparams; i++) {
        const UserPlace *place = &x->places.at[i];
        Val *object = place->kind == USER_state ? x->state : arg_at(x, place->param)->object;
        bool by_address = custom->params[i].flags & PARAM_BY_ADDRESS;
        vec_push(x->ad->arena, &objects, by_address ? object : build_load(&x->b, object));
    }
    build_call(&x->b, custom, objects.at, objects.count);
}

static void return_adjoints(Adapter *x) {
    const Made *made = x->made;
    ValVec results = {0};
    for (int i = 0; i < made->params.count; i++) {
        if (made->params.at[i].role != AS_shadow) continue;
        const Leaf *leaf = leaf_at(x, &made->params.at[i]);
        if (leaf->dir != DIR_out)
            ad_accumulate(x->ad, &x->b, made->func->body->params[i], differential_at(x, leaf));
    }
    for (int i = 0; i < made->results.count; i++)
        vec_push(x->ad->arena, &results,
                 build_load(&x->b, differential_at(x, leaf_at(x, &made->results.at[i]))));
    build_return(&x->b, results.at, results.count);
}

const Made *ad_bwd_adapter(Ad *ad, const CallPlan *plan) {
    Made *made = &plan->callee->bwd;
    if (made->func) return made;
    map_put(ad->arena, &ad->customs, PTR_KEY(plan->custom), plan->custom);
    ad_declare(ad, plan->callee, SHAPE_bwd, (Contents){.plan = plan}, made);
    made->func->flags |= plan->custom->flags & FUNC_INLINE;
    Adapter x = {.ad = ad, .plan = plan, .made = made};
    x.b = build_at_end(func_begin(made->func));
    make_objects(&x);
    for (int i = 0; i < made->params.count; i++)
        fill_place(&x, &made->params.at[i], made->func->body->params[i]);
    call_custom(&x);
    return_adjoints(&x);
    map_put(ad->arena, &ad->adapters, PTR_KEY(made->func), made->func);
    return made;
}

/* ---- bwd_diff(f) */

typedef struct Frame {
    Ad *ad;
    Func *func;
    AdFunc *f;
    const Func *of;
    Builder b;
    Val **p; /* by parameter of `of`: memory of the primal object, or its value (plain, by value) */
    bool *by_value;
    Val **d;       /* memory of the differential */
    Val **origin;  /* inputs with a differential: memory of the primal as it came */
    Val *result_d; /* of a result by value */
    Val **primals; /* by leaf: as they were passed */
    ValVec slots;  /* what pri has kept */
    Val *tape;
} Frame;

/* A parameter of the derivative that holds a differential: memory of its own to be read, or used up. */
static Val *differential_memory(Frame *x, const Param *param, Val *value) {
    Val *copy = build_var(&x->b, param->type, param->name, false);
    if (param->flags & PARAM_BY_ADDRESS) build_copy(&x->b, copy, value);
    else build_store(&x->b, copy, value);
    return copy;
}

static Val *copy_of(Builder *b, Val *object) {
    Val *copy = build_var(b, object->type->args[0], object->name, false);
    build_copy_object(b, copy, object);
    return copy;
}

/* A pair, or its reference and counterpart: what is changed during the call is changed in a copy. */
static void bind_pair(Frame *x, int i, Val *pair) {
    const Param *param = &x->of->params[i];
    Val *p = build_field(&x->b, pair, 0), *d = build_field(&x->b, pair, 1);
    bool changes = param->dir == DIR_inout, is_reference = (param->flags & PARAM_PTR_DIFF) != 0;
    x->origin[i] = is_reference ? NULL : p;
    x->p[i] = changes ? copy_of(&x->b, p) : p;
    x->d[i] = changes && is_reference ? copy_of(&x->b, d) : d;
}

/* What the function gives goes nowhere: only a differential of it is wanted. */
static void bind_outputs(Frame *x) {
    for (int i = 0; i < x->of->nparams; i++) {
        const Param *param = &x->of->params[i];
        if (param->dir != DIR_out) continue;
        x->p[i] = build_var(&x->b, param->type, param->name, false);
        if (param->flags & PARAM_PTR_DIFF)
            x->d[i] = build_var(&x->b, ad_counterpart(x->ad, param->type), NULL, false);
    }
}

static void bind_plain(Frame *x, int i, const Param *have, Val *value) {
    bool changes = x->of->params[i].dir == DIR_inout;
    x->p[i] = changes ? differential_memory(x, have, value) : value;
    x->by_value[i] = !changes && !(have->flags & PARAM_BY_ADDRESS);
}

static void bind(Frame *x) {
    const Func *of = x->of;
    UserPlaces places = ad_user_bwd(x->ad, of, false);
    int n = of->nparams;
    x->p = arena_array(x->ad->arena, Val *, n + 1);
    x->d = arena_array(x->ad->arena, Val *, n + 1);
    x->origin = arena_array(x->ad->arena, Val *, n + 1);
    x->by_value = arena_array(x->ad->arena, bool, n + 1);
    bind_outputs(x);
    for (int i = 0; i < places.count; i++) {
        int param = places.at[i].param;
        const Param *have = &x->func->params[i];
        Val *value = x->func->body->params[i];
        switch (places.at[i].kind) {
        case USER_pair: bind_pair(x, param, value); break;
        case USER_plain: bind_plain(x, param, have, value); break;
        default: *(param < 0 ? &x->result_d : &x->d[param]) = differential_memory(x, have, value);
        }
    }
}

static Val *primal_leaf(Frame *x, const Leaf *leaf) {
    Val *object = x->p[leaf->param];
    if (x->by_value[leaf->param])
        return leaf->npath ? build_extract_lane(&x->b, object, -1 - leaf->path[0]) : object;
    Val *address = ad_leaf_address(&x->b, object, leaf->path, leaf->npath);
    return leaf->by_ref ? address : build_load(&x->b, address);
}

static Val *diff_leaf(Frame *x, const Leaf *leaf) {
    Val *object = leaf->param < 0 ? x->result_d : x->d[leaf->param];
    Val *address = ad_leaf_address(&x->b, object, leaf->dpath, leaf->ndpath);
    return leaf->by_ref ? address : build_load(&x->b, address);
}

static void mark_inputs(Frame *x) {
    for (int i = 0; i < x->of->nparams; i++)
        if (x->origin[i]) ad_mark_present(x->ad, &x->b, x->of->params[i].type, x->origin[i], x->d[i]);
}

/* [TreatAsDifferentiable]: adjoints of inputs are zero. */
static void zero_inputs(Frame *x) {
    for (int i = 0; i < x->of->nparams; i++) {
        const Param *param = &x->of->params[i];
        if ((param->flags & PARAM_DIFF) && param->dir != DIR_out && x->d[i])
            ad_zero_object(x->ad, &x->b, x->d[i]);
    }
    mark_inputs(x);
    build_return(&x->b, NULL, 0);
}

static bool *all_stable(Frame *x) {
    const Leaves *leaves = &x->f->leaves;
    bool *stable = arena_array(x->ad->arena, bool, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++) stable[i] = leaves->at[i].by_ref && leaves->at[i].dir == DIR_in;
    return stable;
}

static Val *reverse_arg(void *user, const Place *place) {
    Frame *x = user;
    switch (place->role) {
    case AS_tape: return x->tape;
    case AS_slot: return x->slots.at[place->leaf];
    case AS_primal:
        if (!x->primals[place->leaf]) x->primals[place->leaf] = primal_leaf(x, &x->f->leaves.at[place->leaf]);
        return x->primals[place->leaf];
    default: return diff_leaf(x, &x->f->leaves.at[place->leaf]);
    }
}

/* The adjoint of an `in` array is overwritten: it starts at zero. */
static void zero_arrays(Frame *x) {
    for (int i = 0; i < x->f->leaves.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[i];
        if (leaf->diff && leaf->by_ref && leaf->dir == DIR_in)
            ad_zero_object(x->ad, &x->b, diff_leaf(x, leaf));
    }
}

static void run_reverse(Frame *x, const Reverse *r) {
    Ad *ad = x->ad;
    Builder *b = &x->b;
    zero_arrays(x);
    if (r->uses_tape)
        x->tape = inst_add_result(build_inst(b, OP_tape_open, NULL, 0, 0, 0),
                                  type_basic(ad->m->types, TYPE_tape), name_from(ad->m->names, "tape"));
    x->primals = arena_array(ad->arena, Val *, x->f->leaves.count + 1);
    Inst *pri = ad_call(ad, b, &r->pri, reverse_arg, x);
    for (int i = 0; i < pri->nresults; i++)
        if (r->pri.results.at[i].role == AS_slot) vec_push(ad->arena, &x->slots, pri->results[i]);
    Inst *prop = ad_call(ad, b, &r->prop, reverse_arg, x);
    for (int i = 0; i < r->prop.results.count; i++) {
        const Leaf *leaf = &x->f->leaves.at[r->prop.results.at[i].leaf];
        ad_leaf_store(b, x->d[leaf->param], leaf->dpath, leaf->ndpath, prop->results[i]);
    }
    if (x->tape) build_inst(b, OP_tape_close, &x->tape, 1, 0, 0);
    mark_inputs(x);
    build_return(b, NULL, 0);
}

void ad_fill_user_bwd(Ad *ad, Func *func, AdFunc *f) {
    const Func *of = f->source ? f->source : f->flat;
    Frame x = {.ad = ad, .func = func, .f = f, .of = of};
    if (of->flags & FUNC_TREAT_AS_DIFF) {
        x.b = build_at_end(func_begin(func));
        bind(&x);
        zero_inputs(&x);
        return;
    }
    Terms terms = {.stable = all_stable(&x), .firm = true, .steady = true, .lone = true};
    Reverse *r = ad_reverse(ad, f, terms);
    if (!r->pri.func || !r->pri.func->body) return;
    x.b = build_at_end(func_begin(func));
    bind(&x);
    run_reverse(&x, r);
}
