/* bwd_diff(f) as users see it, and derivatives that users wrote as generated code calls them. */
#include "autodiff/ad.h"

static void build_copy_object(Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type->kind == TYPE_array || type->kind == TYPE_record) build_copy(b, to, from);
    else build_store(b, to, build_load(b, from));
}

/* ---- calling a user's backward derivative */

static void put_leaf(Builder *b, Val *to, const Leaf *leaf, Val *value) {
    if (leaf->by_ref) build_copy(b, to, value);
    else build_store(b, to, value);
}

/* The user's function gets pairs whose differential is zero (in) or the adjoint so far (inout); what it
 * leaves there is added. */
static void make_objects(Frame *x, const CallPlan *plan) {
    const Func *source = x->of, *custom = plan->custom;
    UserPlaces places = ad_user_bwd(x->ad, source, plan->pass != NULL);
    x->params = arena_array(x->ad->arena, Where, source->nparams + 1);
    for (int i = 0; i < places.count && i < custom->nparams; i++) {
        const UserPlace *place = &places.at[i];
        const Param *param = place->param < 0 ? &custom->params[i] : &source->params[place->param];
        const Where *where = ad_make_object(x, place, custom->params[i].type, param->name);
        if (place->kind == USER_pair && (param->flags & PARAM_DIFF)) ad_zero_object(x->ad, &x->b, where->d);
    }
}

static void fill_place(Frame *x, const Place *place, Val *value) {
    const Leaf *leaf = ad_leaf_of(x, place);
    const Where *where = place->role == AS_state ? NULL : ad_where(x, leaf->param);
    switch (place->role) {
    case AS_primal:
    case AS_state:
        if (where ? where->address : x->state) put_leaf(&x->b, ad_place_at(x, place), leaf, value);
        break;
    case AS_counterpart: put_leaf(&x->b, ad_place_at(x, place), leaf, value); break;
    case AS_seed:
        if (where->d) build_store(&x->b, ad_place_at(x, place), value);
        break;
    case AS_present:
        if (leaf->by_ref) ad_mark_present(x->ad, &x->b, leaf->type, value, ad_place_at(x, place));
        else build_store(&x->b, ad_place_at(x, place), value);
        break;
    default: /* shadows of out and inout arrays are adjoints that arrive */
        if (leaf->dir == DIR_in) break;
        build_copy(&x->b, ad_place_at(x, place), value);
        ad_zero_object(x->ad, &x->b, value);
    }
}

static void mark_inputs_present(Frame *x) {
    for (int i = 0; i < x->of->nparams; i++)
        if ((x->of->params[i].flags & PARAM_DIFF) && x->of->params[i].dir == DIR_in)
            ad_mark_present(x->ad, &x->b, x->of->params[i].type, x->params[i].address, x->params[i].d);
}

static void return_adjoints(Frame *x, const Made *made) {
    ValVec results = {0};
    for (int i = 0; i < made->params.count; i++) {
        const Place *place = &made->params.at[i];
        if (place->role == AS_shadow && ad_leaf_of(x, place)->dir != DIR_out)
            ad_accumulate(x->ad, &x->b, made->func->body->params[i], ad_place_at(x, place));
    }
    for (int i = 0; i < made->results.count; i++)
        vec_push(x->ad->arena, &results, build_load(&x->b, ad_place_at(x, &made->results.at[i])));
    build_return(&x->b, results.at, results.count);
}

const Made *ad_bwd_adapter(Ad *ad, const CallPlan *plan) {
    Made *made = &plan->callee->bwd;
    if (made->func) return made;
    map_put(ad->arena, &ad->customs, PTR_KEY(plan->custom), plan->custom);
    ad_declare(ad, plan->callee, SHAPE_bwd, (Contents){.plan = plan}, made);
    made->func->flags |= plan->custom->flags & FUNC_INLINE;
    Frame x = {
        .ad = ad, .f = plan->callee, .pass = plan->pass, .func = made->func, .of = plan->callee->source};
    x.b = build_at_end(func_begin(made->func));
    make_objects(&x, plan);
    for (int i = 0; i < made->params.count; i++)
        fill_place(&x, &made->params.at[i], made->func->body->params[i]);
    mark_inputs_present(&x);
    ad_call_custom(&x, plan->custom);
    return_adjoints(&x, made);
    map_put(ad->arena, &ad->adapters, PTR_KEY(made->func), made->func);
    return made;
}

/* ---- bwd_diff(f) */

typedef struct Backward {
    Frame frame;
    Val **origin;  /* inputs with a differential: memory of the primal as it came */
    Val **primals; /* by leaf: as they were passed */
    ValVec slots;  /* what pri has kept */
    Val *tape;
} Backward;

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
static void bind_pair(Backward *x, int i, Val *pair) {
    Builder *b = &x->frame.b;
    const Param *param = &x->frame.of->params[i];
    Val *p = build_field(b, pair, 0), *d = build_field(b, pair, 1);
    bool changes = param->dir == DIR_inout, is_reference = (param->flags & PARAM_PTR_DIFF) != 0;
    x->origin[i] = is_reference ? NULL : p;
    x->frame.params[i].address = changes ? copy_of(b, p) : p;
    x->frame.params[i].d = changes && is_reference ? copy_of(b, d) : d;
}

/* What the function gives goes nowhere: only a differential of it is wanted. */
static void bind_outputs(Frame *x) {
    for (int i = 0; i < x->of->nparams; i++) {
        const Param *param = &x->of->params[i];
        if (param->dir != DIR_out) continue;
        x->params[i].address = build_var(&x->b, param->type, param->name, false);
        if (param->flags & PARAM_PTR_DIFF)
            x->params[i].d = build_var(&x->b, ad_counterpart(x->ad, param->type), NULL, false);
    }
}

static void bind_plain(Frame *x, int i, const Param *have, Val *value) {
    Where *where = &x->params[i];
    if (x->of->params[i].dir == DIR_inout) where->address = differential_memory(x, have, value);
    else *(have->flags & PARAM_BY_ADDRESS ? &where->address : &where->value) = value;
}

static void bind(Backward *x) {
    Frame *frame = &x->frame;
    UserPlaces places = ad_user_bwd(frame->ad, frame->of, false);
    frame->params = arena_array(frame->ad->arena, Where, frame->of->nparams + 1);
    x->origin = arena_array(frame->ad->arena, Val *, frame->of->nparams + 1);
    bind_outputs(frame);
    for (int i = 0; i < places.count; i++) {
        int param = places.at[i].param;
        const Param *have = &frame->func->params[i];
        Val *value = frame->func->body->params[i];
        switch (places.at[i].kind) {
        case USER_pair: bind_pair(x, param, value); break;
        case USER_plain: bind_plain(frame, param, have, value); break;
        default: ad_where(frame, param)->d = differential_memory(frame, have, value);
        }
    }
}

static Val *primal_leaf(Frame *x, const Leaf *leaf) {
    const Where *where = &x->params[leaf->param];
    return where->value ? ad_leaf_lane(&x->b, where->value, leaf)
                        : ad_leaf_in(&x->b, where->address, leaf, false);
}

static Val *diff_leaf(Frame *x, const Leaf *leaf) {
    return ad_leaf_in(&x->b, ad_where(x, leaf->param)->d, leaf, true);
}

static void mark_inputs(Backward *x) {
    Frame *frame = &x->frame;
    for (int i = 0; i < frame->of->nparams; i++)
        if (x->origin[i])
            ad_mark_present(frame->ad, &frame->b, frame->of->params[i].type, x->origin[i],
                            frame->params[i].d);
}

/* [TreatAsDifferentiable]: adjoints of inputs are zero. */
static void zero_inputs(Backward *x) {
    Frame *frame = &x->frame;
    for (int i = 0; i < frame->of->nparams; i++) {
        const Param *param = &frame->of->params[i];
        if ((param->flags & PARAM_DIFF) && param->dir != DIR_out && frame->params[i].d)
            ad_zero_object(frame->ad, &frame->b, frame->params[i].d);
    }
    mark_inputs(x);
    build_return(&frame->b, NULL, 0);
}

static bool *all_stable(Frame *x) {
    const Leaves *leaves = &x->f->leaves;
    bool *stable = arena_array(x->ad->arena, bool, leaves->count + 1);
    for (int i = 0; i < leaves->count; i++) stable[i] = leaves->at[i].by_ref && leaves->at[i].dir == DIR_in;
    return stable;
}

static Val *reverse_arg(void *user, const Place *place) {
    Backward *x = user;
    switch (place->role) {
    case AS_tape: return x->tape;
    case AS_slot: return x->slots.at[place->leaf];
    case AS_primal:
        if (!x->primals[place->leaf])
            x->primals[place->leaf] = primal_leaf(&x->frame, ad_leaf_of(&x->frame, place));
        return x->primals[place->leaf];
    default: return diff_leaf(&x->frame, ad_leaf_of(&x->frame, place));
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

static void run_reverse(Backward *x, const Reverse *r) {
    Ad *ad = x->frame.ad;
    Builder *b = &x->frame.b;
    zero_arrays(&x->frame);
    if (r->uses_tape)
        x->tape = inst_add_result(build_inst(b, OP_tape_open, NULL, 0, 0, 0),
                                  type_basic(ad->m->types, TYPE_tape), name_from(ad->m->names, "tape"));
    x->primals = arena_array(ad->arena, Val *, x->frame.f->leaves.count + 1);
    Inst *pri = ad_call(ad, b, &r->pri, reverse_arg, x);
    for (int i = 0; i < pri->nresults; i++)
        if (r->pri.results.at[i].role == AS_slot) vec_push(ad->arena, &x->slots, pri->results[i]);
    Inst *prop = ad_call(ad, b, &r->prop, reverse_arg, x);
    for (int i = 0; i < r->prop.results.count; i++)
        build_store(b, ad_place_at(&x->frame, &r->prop.results.at[i]), prop->results[i]);
    if (x->tape) build_inst(b, OP_tape_close, &x->tape, 1, 0, 0);
    mark_inputs(x);
    build_return(b, NULL, 0);
}

void ad_fill_user_bwd(Ad *ad, Func *func, AdFunc *f) {
    const Func *of = f->source ? f->source : f->flat;
    Backward x = {.frame = {.ad = ad, .func = func, .f = f, .of = of}};
    if (of->flags & FUNC_TREAT_AS_DIFF) {
        x.frame.b = build_at_end(func_begin(func));
        bind(&x);
        zero_inputs(&x);
        return;
    }
    Terms terms = {
        .stable = all_stable(&x.frame), .firm = ALL_FIRM, .given = true, .steady = true, .lone = true};
    Reverse *r = ad_reverse(ad, f, terms);
    if (!r->pri.func || !r->pri.func->body) return;
    x.frame.b = build_at_end(func_begin(func));
    bind(&x);
    run_reverse(&x, r);
}
