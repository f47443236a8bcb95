/* bwd_diff(f) as users see it, and derivatives that users wrote as generated code calls them. */
#include "autodiff/ad.h"

static bool is_result(const Param *param) { return (param->flags & PARAM_RESULT) != 0; }

static void build_copy_object(Builder *b, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type->kind == TYPE_array || type->kind == TYPE_record) build_copy(b, to, from);
    else build_store(b, to, build_load(b, from));
}

/* ---- keeping arrays for the reverse */

static void save_object(Ad *ad, Builder *b, Val *tape, Val *at, bool restore);

static void save_loop(Ad *ad, Builder *b, Val *tape, Val *at, bool restore) {
    const Type *word = type_basic(ad->m->types, TYPE_int);
    int64_t n = type_length(at->type->args[0]);
    Val *start = ir_const_int(ad->m, word, 0), *one = ir_const_int(ad->m, word, 1);
    Inst *loop = build_loop(b, &start, 1, false);
    Builder cond = build_at_end(loop->regions[0]), body = build_at_end(loop->regions[1]);
    Val *go = build_binary(&cond, OP_lt, loop->regions[0]->params[0], ir_const_int(ad->m, word, n));
    build_yield(&cond, &go, 1);
    Val *i = loop->regions[1]->params[0],
        *index = restore ? build_binary(&body, OP_sub, ir_const_int(ad->m, word, n - 1), i) : i;
    save_object(ad, &body, tape, build_elem(&body, at, index, true), restore);
    Val *next = build_binary(&body, OP_add, i, one);
    build_yield(&body, &next, 1);
}

/* Pushes an object scalar by scalar; restoring goes the other way round. */
static void save_object(Ad *ad, Builder *b, Val *tape, Val *at, bool restore) {
    const Type *type = at->type->args[0];
    if (type->kind == TYPE_array) {
        save_loop(ad, b, tape, at, restore);
        return;
    }
    if (type->kind == TYPE_record || type->kind == TYPE_vector) {
        int n = type->kind == TYPE_record ? type_record(type)->nfields : type_count(type);
        for (int i = 0; i < n; i++) {
            int k = restore ? n - 1 - i : i;
            Val *part =
                type->kind == TYPE_record
                    ? build_field(b, at, k)
                    : build_elem(b, at, ir_const_int(ad->m, type_basic(ad->m->types, TYPE_int), k), true);
            save_object(ad, b, tape, part, restore);
        }
        return;
    }
    if (restore) build_store(b, at, ad_pop(ad, b, tape, type, NULL));
    else ad_push(ad, b, tape, build_load(b, at));
}

Val *ad_keep_object(Ad *ad, const TransposeInput *input, Inst *after, Builder *b, Val *object) {
    Builder behind = after->next ? build_before(after->next) : build_at_end(after->parent);
    save_object(ad, &behind, input->tape, object, false);
    Val *again = build_var(b, object->type->args[0], object->name, false);
    save_object(ad, b, input->reverse_tape, again, true);
    return again;
}

int ad_leaf_of_pass(const CallPlan *plan, int leaf) {
    if (!plan->pass || plan->callee->leaves.at[leaf].param >= 0) return leaf;
    return leaf + plan->pass->leaves.count - plan->callee->leaves.count; /* results come after the state */
}

Val *ad_primal_arg(const CallNote *note, const Leaf *leaf) {
    return note->primal->args[note->forward ? leaf->fin : leaf->in];
}

bool ad_is_state(const CallPlan *plan, int leaf) {
    return plan->pass->leaves.at[leaf].param == plan->callee->source->nparams;
}

static bool is_kept(const TransposeInput *input, Val *arg) {
    Val *root = ad_root(arg);
    return root && root->id < input->nstable && input->stable[root->id];
}

static Builder build_after(Inst *inst) {
    return inst->next ? build_before(inst->next) : build_at_end(inst->parent);
}

/* Pushed in order around the primal call, popped in the opposite order in the reverse. */
void ad_keep_arguments(Ad *ad, const TransposeInput *input, const CallNote *note, Builder *b, ValVec *args) {
    const CallPlan *plan = &note->plan;
    Inst *call = note->primal;
    const Leaves *leaves = &(plan->pass ? plan->pass : plan->callee)->leaves;
    Val **kept = arena_array(ad->arena, Val *, leaves->count + 1);
    Builder before = build_before(call), after = build_after(call);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        bool state = plan->pass && ad_is_state(plan, i);
        if (!leaf->by_ref)
            kept[i] = state ? call->results[leaf->out] : leaf->in >= 0 ? ad_primal_arg(note, leaf) : NULL;
        else if (!state && is_kept(input, ad_primal_arg(note, leaf))) kept[i] = ad_primal_arg(note, leaf);
        else if (state || leaf->dir != DIR_out)
            save_object(ad, state ? &after : &before, input->tape, ad_primal_arg(note, leaf), false);
    }
    for (int states = 1; states >= 0; states--)
        for (int i = leaves->count - 1; i >= 0; i--) {
            const Leaf *leaf = &leaves->at[i];
            bool state = plan->pass && ad_is_state(plan, i);
            if (kept[i] || state != states || leaf->in < 0) continue;
            kept[i] = build_var(b, leaf->type, ad_primal_arg(note, leaf)->name, false);
            if (state || leaf->dir != DIR_out) save_object(ad, b, input->reverse_tape, kept[i], true);
        }
    for (int i = 0; i < plan->callee->leaves.count; i++)
        if (plan->callee->leaves.at[i].in >= 0) vec_push(ad->arena, args, kept[ad_leaf_of_pass(plan, i)]);
    for (int i = 0; plan->pass && i < leaves->count; i++)
        if (ad_is_state(plan, i)) vec_push(ad->arena, args, kept[i]);
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

/* Flat: primal leaves, state, counterparts, seeds, shadows -> adjoints. The user's function gets pairs whose differential is zero (in) or
 * the adjoint so far (inout); what it leaves there is added. */
typedef struct Adapter {
    Ad *ad;
    const CallPlan *plan;
    const Leaves *leaves;
    Func *func;
    Builder b;
    Arg *objects; /* by parameter of the source */
    Arg result;
    Val *state;  /* what the forward pass has kept; NULL: there is none */
    int at;      /* next parameter of func */
    int shadows; /* the first of them */
} Adapter;

static Val *next_param(Adapter *x) { return x->func->body->params[x->at++]; }

static Val *differential_at(Adapter *x, const Leaf *leaf) {
    return ad_leaf_address(&x->b, x->objects[leaf->param].d, leaf->dpath, leaf->ndpath);
}

static bool is_result_diff(const Func *source) {
    if (source->nresults) return (source->flags & FUNC_RESULT_DIFF) != 0;
    return source->nparams && is_result(&source->params[0]) && (source->params[0].flags & PARAM_DIFF);
}

static void make_objects(Adapter *x) {
    const Func *source = x->plan->callee->source, *custom = x->plan->custom;
    int next = 0;
    x->objects = arena_array(x->ad->arena, Arg, source->nparams + 1);
    for (int i = 0; i < source->nparams; i++) {
        const Param *param = &source->params[i];
        bool diff = (param->flags & PARAM_DIFF) != 0;
        if (is_result(param) || (param->dir == DIR_out && !diff)) continue;
        Arg *arg = &x->objects[i];
        arg->object = build_var(&x->b, custom->params[next++].type, param->name, false);
        if (param->dir == DIR_out) arg->d = arg->object;
        else if (diff || (param->flags & PARAM_PTR_DIFF)) {
            arg->p = build_field(&x->b, arg->object, 0);
            arg->d = build_field(&x->b, arg->object, 1);
            if (diff) ad_zero_object(x->ad, &x->b, arg->d);
        } else arg->p = arg->object;
    }
    if (is_result_diff(source) && next < custom->nparams)
        x->result.object = x->result.d = build_var(&x->b, custom->params[next].type, NULL, false);
    if (source->nparams && is_result(&source->params[0])) x->objects[0] = x->result;
    const Param *last = &custom->params[custom->nparams - 1];
    if (x->plan->pass) x->state = build_var(&x->b, last->type, last->name, false);
}

static void fill_primals(Adapter *x) {
    for (int i = 0; i < x->leaves->count; i++) {
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->in < 0) continue;
        Val *value = next_param(x), *object = x->objects[leaf->param].p;
        if (object) put_leaf(&x->b, ad_leaf_address(&x->b, object, leaf->path, leaf->npath), leaf, value);
    }
    for (int i = 0; x->state && i < x->plan->pass->leaves.count; i++) {
        const Leaf *leaf = &x->plan->pass->leaves.at[i];
        if (ad_is_state(x->plan, i))
            put_leaf(&x->b, ad_leaf_address(&x->b, x->state, leaf->path, leaf->npath), leaf, next_param(x));
    }
}

static void fill_differentials(Adapter *x) {
    for (int i = 0; i < x->leaves->count; i++) { /* counterparts */
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->dual && leaf->in >= 0) put_leaf(&x->b, differential_at(x, leaf), leaf, next_param(x));
    }
    for (int i = 0; i < x->leaves->count; i++) { /* seeds */
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->tout < 0) continue;
        Val *value = next_param(x), *d = leaf->param < 0 ? x->result.d : x->objects[leaf->param].d;
        if (d) ad_leaf_store(&x->b, d, leaf->dpath, leaf->ndpath, value);
    }
    x->shadows = x->at;
    for (int i = 0; i < x->leaves->count;
         i++) { /* shadows of out and inout arrays are adjoints that arrive */
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->tin < 0 || !leaf->by_ref) continue;
        Val *shadow = next_param(x);
        if (leaf->dir == DIR_in) continue;
        build_copy(&x->b, differential_at(x, leaf), shadow);
        ad_zero_object(x->ad, &x->b, shadow);
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
    const Func *source = x->plan->callee->source;
    Func *custom = x->plan->custom;
    ValVec objects = {0};
    mark_present(x);
    for (int i = 0; i < source->nparams; i++)
        if (!is_result(&source->params[i]) && x->objects[i].object)
            vec_push(x->ad->arena, &objects, x->objects[i].object);
    if (x->result.object) vec_push(x->ad->arena, &objects, x->result.object);
    if (x->state) vec_push(x->ad->arena, &objects, x->state);
    for (int i = 0; i < objects.count; i++)
        if (!(custom->params[i].flags & PARAM_BY_ADDRESS)) objects.at[i] = build_load(&x->b, objects.at[i]);
    build_call(&x->b, custom, objects.at, objects.count);
}

static void return_adjoints(Adapter *x) {
    ValVec results = {0};
    x->at = x->shadows;
    for (int i = 0; i < x->leaves->count; i++) {
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->tin < 0 || !leaf->by_ref) continue;
        Val *shadow = next_param(x);
        if (leaf->dir != DIR_out) ad_accumulate(x->ad, &x->b, shadow, differential_at(x, leaf));
    }
    for (int i = 0; i < x->leaves->count; i++) {
        const Leaf *leaf = &x->leaves->at[i];
        if (leaf->tin >= 0 && !leaf->by_ref)
            vec_push(x->ad->arena, &results, build_load(&x->b, differential_at(x, leaf)));
    }
    build_return(&x->b, results.at, results.count);
}

static void fill_bwd_adapter(Ad *ad, const CallPlan *plan, Func *func) {
    Adapter x = {.ad = ad, .plan = plan, .leaves = &plan->callee->leaves, .func = func};
    x.b = build_at_end(func_begin(func));
    make_objects(&x);
    fill_primals(&x);
    fill_differentials(&x);
    call_custom(&x);
    return_adjoints(&x);
}

Func *ad_bwd_adapter(Ad *ad, const CallPlan *plan) {
    AdFunc *f = plan->callee;
    if (f->bwd_adapter) return f->bwd_adapter;
    map_put(ad->arena, &ad->customs, PTR_KEY(plan->custom), plan->custom);
    ad_declare_tangent(ad, f);
    Func *func = f->bwd_adapter = func_new(ad->m, format_text(ad->arena, "%s.bwd", f->source->name->text));
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in < 0) continue;
        Param param = f->flat->params[leaf->in];
        param.dir = DIR_in;
        vec_push(ad->arena, &params, param);
    }
    for (int i = 0; plan->pass && i < plan->pass->leaves.count; i++) {
        const Leaf *leaf = &plan->pass->leaves.at[i];
        if (!ad_is_state(plan, i)) continue;
        vec_push(ad->arena, &params,
                 ((Param){.name = name_from(ad->m->names, "state"),
                          .type = leaf->type,
                          .flags = (uint8_t)((leaf->by_ref ? PARAM_BY_ADDRESS : 0) |
                                             (leaf->diff ? PARAM_DIFF : 0)),
                          .counterpart = type_basic(ad->m->types, TYPE_void)}));
    }
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->dual && leaf->in >= 0)
            vec_push(ad->arena, &params,
                     ((Param){.type = leaf->dtype,
                              .flags = leaf->by_ref ? PARAM_BY_ADDRESS : 0,
                              .counterpart = leaf->dtype}));
    }
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].tout >= 0)
            vec_push(ad->arena, &params,
                     ((Param){.name = name_from(ad->m->names, "seed"), .type = f->leaves.at[i].dtype}));
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->tin < 0) continue;
        uint8_t dir = leaf->dir == DIR_in ? DIR_ref : DIR_inout;
        if (leaf->by_ref)
            vec_push(ad->arena, &params,
                     ((Param){.name = name_from(ad->m->names, "shadow"),
                              .type = leaf->dtype,
                              .dir = dir,
                              .flags = PARAM_BY_ADDRESS}));
        else vec_push(ad->arena, &results, leaf->dtype);
    }
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    func->flags |= FUNC_GENERATED | FUNC_NORMAL | (plan->custom->flags & FUNC_INLINE);
    fill_bwd_adapter(ad, plan, func);
    map_put(ad->arena, &ad->adapters, PTR_KEY(func), func);
    return func;
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

static void bind(Frame *x) {
    const Func *of = x->of;
    Func *func = x->func;
    Builder *b = &x->b;
    int n = of->nparams, next = 0;
    x->p = arena_array(x->ad->arena, Val *, n + 1);
    x->d = arena_array(x->ad->arena, Val *, n + 1);
    x->origin = arena_array(x->ad->arena, Val *, n + 1);
    x->by_value = arena_array(x->ad->arena, bool, n + 1);
    for (int i = 0; i < n; i++) {
        const Param *param = &of->params[i];
        bool diff = (param->flags & PARAM_DIFF) != 0, reference = (param->flags & PARAM_PTR_DIFF) != 0;
        if (is_result(param)) continue; /* the last of the derivative's parameters */
        if (param->dir == DIR_out) {
            x->p[i] = build_var(b, param->type, param->name, false);
            if (diff) x->d[i] = differential_memory(x, &func->params[next], func->body->params[next]), next++;
            if (reference) x->d[i] = build_var(b, ad_counterpart(x->ad, param->type), NULL, false);
            continue;
        }
        Val *value = func->body->params[next];
        const Param *have = &func->params[next++];
        if (!diff && !reference) {
            if (param->dir == DIR_inout) { /* the caller's object stays as it is */
                x->p[i] = differential_memory(x, have, value);
            } else {
                x->p[i] = value;
                x->by_value[i] = !(have->flags & PARAM_BY_ADDRESS);
            }
            continue;
        }
        Val *p = build_field(b, value, 0);
        x->d[i] = build_field(b, value, 1);
        x->origin[i] = diff ? p : NULL;
        if (param->dir == DIR_inout) {
            x->p[i] = copy_of(b, p);
            if (reference) x->d[i] = copy_of(b, x->d[i]);
        } else x->p[i] = p;
    }
    for (int i = 0; i < n; i++) {
        if (!is_result(&of->params[i])) continue;
        x->p[i] = build_var(b, of->params[i].type, NULL, false);
        if (of->params[i].flags & PARAM_DIFF)
            x->d[i] = differential_memory(x, &func->params[next], func->body->params[next]), next++;
        if (of->params[i].flags & PARAM_PTR_DIFF)
            x->d[i] = build_var(b, ad_counterpart(x->ad, of->params[i].type), NULL, false);
    }
    if (of->nresults && (of->flags & FUNC_RESULT_DIFF))
        x->result_d = differential_memory(x, &func->params[next], func->body->params[next]);
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

static void run_reverse(Frame *x, Reverse *r) {
    Ad *ad = x->ad;
    Builder *b = &x->b;
    const Leaves *leaves = &x->f->leaves;
    for (int i = 0; i < leaves->count; i++) { /* an `in` array's adjoint is overwritten: it starts at zero */
        const Leaf *leaf = &leaves->at[i];
        if (leaf->diff && leaf->by_ref && leaf->dir == DIR_in) ad_zero_object(ad, b, diff_leaf(x, leaf));
    }
    Val *tape = NULL;
    if (r->uses_tape)
        tape = inst_add_result(build_inst(b, OP_tape_open, NULL, 0, 0, 0),
                               type_basic(ad->m->types, TYPE_tape), name_from(ad->m->names, "tape"));
    ValVec args = {0}, primal = {0};
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].in >= 0) vec_push(ad->arena, &primal, primal_leaf(x, &leaves->at[i]));
    for (int i = 0; i < primal.count; i++) vec_push(ad->arena, &args, primal.at[i]);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].dual && leaves->at[i].in >= 0)
            vec_push(ad->arena, &args, diff_leaf(x, &leaves->at[i]));
    if (tape) vec_push(ad->arena, &args, tape);
    Inst *pri = build_call(b, r->pri, args.at, args.count);
    args.count = 0;
    for (int i = 0; i < r->nprimal; i++) vec_push(ad->arena, &args, primal.at[r->primal_params[i]]);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].dual && leaves->at[i].in >= 0)
            vec_push(ad->arena, &args, diff_leaf(x, &leaves->at[i]));
    int first = pri->nresults - r->nslots;
    for (int i = 0; i < r->nslots; i++) vec_push(ad->arena, &args, pri->results[first + i]);
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].out >= 0 && leaves->at[i].diff)
            vec_push(ad->arena, &args, diff_leaf(x, &leaves->at[i]));
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].diff && leaves->at[i].in >= 0 && leaves->at[i].by_ref)
            vec_push(ad->arena, &args, diff_leaf(x, &leaves->at[i]));
    if (tape) vec_push(ad->arena, &args, tape);
    Inst *prop = build_call(b, r->prop, args.at, args.count);
    int next = 0;
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (!leaf->diff || leaf->in < 0 || leaf->by_ref) continue;
        ad_leaf_store(b, x->d[leaf->param], leaf->dpath, leaf->ndpath, prop->results[next++]);
    }
    if (tape) build_inst(b, OP_tape_close, &tape, 1, 0, 0);
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
    if (!r->pri || !r->pri->body) return;
    x.b = build_at_end(func_begin(func));
    bind(&x);
    run_reverse(&x, r);
}
