/* Between flat functions and the signatures that users see.
 *
 * fwd_diff(f) and bwd_diff(f) take pairs; their bodies take the pairs apart, call the flat functions and put the results
 * back. The other way round, a derivative that a user wrote is called from flat code through an adapter that makes the
 * pairs. All of it is plain memory traffic on fresh objects, which inlining and sroa remove. */
#include "autodiff/ad.h"

/* ---- where the parameters of a function are in its derivative's signature */

/* An object that a leaf belongs to: a value, or memory. */
typedef struct Where {
    Val *value;   /* by value, plain: scalar or vector */
    Val *address; /* memory of the object */
    Val *d;       /* memory of its differential (or counterpart); NULL: none */
} Where;

typedef struct Frame {
    Ad *ad;
    Func *func;
    const Func *of;
    Builder b;
    Where *params; /* by parameter of `of` */
    Where result;
} Frame;

static bool is_result(const Param *param) { return (param->flags & PARAM_RESULT) != 0; }
static bool is_paired(const Param *param) { return (param->flags & (PARAM_DIFF | PARAM_PTR_DIFF)) != 0; }

static Where pair_at(Builder *b, Val *pair) {
    return (Where){.address = build_field(b, pair, 0), .d = build_field(b, pair, 1)};
}

static Where plain_at(const Param *param, Val *value) {
    return param->flags & PARAM_BY_ADDRESS ? (Where){.address = value} : (Where){.value = value};
}

/* ---- leaves of objects */

static Val *lane_of(Builder *b, Val *value, const Leaf *leaf) {
    return leaf->npath ? build_extract_lane(b, value, -1 - leaf->path[0]) : value;
}

static Val *leaf_value(Builder *b, const Where *where, const Leaf *leaf) {
    if (where->value) return lane_of(b, where->value, leaf);
    Val *address = ad_leaf_address(b, where->address, leaf->path, leaf->npath);
    return leaf->by_ref ? address : build_load(b, address);
}

static Val *leaf_diff(Builder *b, const Where *where, const Leaf *leaf) {
    Val *address = ad_leaf_address(b, where->d, leaf->dpath, leaf->ndpath);
    return leaf->by_ref ? address : build_load(b, address);
}

static const Where *where_of(const Frame *frame, const Leaf *leaf) {
    return leaf->param < 0 ? &frame->result : &frame->params[leaf->param];
}

/* ---- optional values */

static bool has_optional(Ad *ad, const Type *type) {
    if (type->kind == TYPE_array) return has_optional(ad, type->args[0]);
    if (type->kind != TYPE_record) return false;
    const RecordDiff *diff = ad_record_diff(ad, type);
    if (diff->optional) return true;
    for (int i = 0; diff->field_map && !diff->reference && i < type_record(type)->nfields; i++)
        if (diff->field_map[i] >= 0 && has_optional(ad, type_record(type)->fields[i].type)) return true;
    return false;
}

static void mark_elements(Ad *ad, Builder *b, const Type *type, Val *p, Val *d) {
    const Type *word = type_basic(ad->m->types, TYPE_int);
    Val *start = ir_const_int(ad->m, word, 0);
    Inst *loop = build_loop(b, &start, 1, false);
    Builder cond = build_at_end(loop->regions[0]), body = build_at_end(loop->regions[1]);
    Val *go =
        build_binary(&cond, OP_lt, loop->regions[0]->params[0], ir_const_int(ad->m, word, type_length(type)));
    build_yield(&cond, &go, 1);
    Val *i = loop->regions[1]->params[0];
    ad_mark_present(ad, &body, type->args[0], p ? build_elem(&body, p, i, true) : NULL,
                    build_elem(&body, d, i, true));
    Val *next = build_binary(&body, OP_add, i, ir_const_int(ad->m, word, 1));
    build_yield(&body, &next, 1);
}

void ad_mark_present(Ad *ad, Builder *b, const Type *type, Val *p, Val *d) {
    if (!has_optional(ad, type)) return;
    if (type->kind == TYPE_array) {
        mark_elements(ad, b, type, p, d);
        return;
    }
    const RecordDiff *diff = ad_record_diff(ad, type);
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++)
        if (diff->field_map[i] >= 0)
            ad_mark_present(ad, b, record->fields[i].type, p ? build_field(b, p, i) : NULL,
                            build_field(b, d, diff->field_map[i]));
    if (!diff->optional) return;
    Val *yes = ir_const_int(ad->m, type_basic(ad->m->types, TYPE_bool), 1);
    build_store(b, build_field(b, d, 1), p ? build_load(b, build_field(b, p, 1)) : yes);
}

/* ---- forward */

static void bind_fwd(Frame *frame) {
    const Func *of = frame->of;
    Func *func = frame->func;
    Builder *b = &frame->b;
    int next = 0;
    Val *result = func->nparams && is_result(&func->params[0]) ? func->body->params[next++] : NULL;
    frame->params = arena_array(frame->ad->arena, Where, of->nparams + 1);
    for (int i = 0; i < of->nparams; i++) {
        const Param *param = &of->params[i];
        if (is_result(param)) {
            frame->params[i] = is_paired(param) ? pair_at(b, result) : (Where){.address = result};
            continue;
        }
        Val *value = func->body->params[next++];
        frame->params[i] = is_paired(param) ? pair_at(b, value) : plain_at(param, value);
    }
    if (of->nresults && (of->flags & FUNC_RESULT_DIFF)) frame->result = pair_at(b, result);
}

static void return_plain(Frame *frame, AdFunc *f, Val *const *results) {
    if (!frame->of->nresults || (frame->of->flags & FUNC_RESULT_DIFF) || !frame->func->nresults) {
        build_return(&frame->b, NULL, 0);
        return;
    }
    Val *lanes[4];
    int n = 0;
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].param < 0) lanes[n++] = results[f->leaves.at[i].fout];
    const Type *type = frame->func->results[0];
    Val *value = type->kind == TYPE_vector ? build_vec(&frame->b, type, lanes) : lanes[0];
    build_return(&frame->b, &value, 1);
}

static void call_fwd(Frame *frame, AdFunc *f, Func *fwd) {
    Builder *b = &frame->b;
    Val **args = arena_array(frame->ad->arena, Val *, fwd->nparams ? fwd->nparams : 1);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in < 0) continue;
        args[leaf->fin] = leaf_value(b, where_of(frame, leaf), leaf);
        if (leaf->fdin >= 0) args[leaf->fdin] = leaf_diff(b, where_of(frame, leaf), leaf);
    }
    Inst *call = build_call(b, fwd, args, fwd->nparams);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        const Where *where = where_of(frame, leaf);
        if (leaf->out < 0 || !where->address) continue;
        ad_leaf_store(b, where->address, leaf->path, leaf->npath, call->results[leaf->fout]);
        if (leaf->fdout >= 0)
            ad_leaf_store(b, where->d, leaf->dpath, leaf->ndpath, call->results[leaf->fdout]);
    }
    for (int i = 0; i < frame->of->nparams; i++) {
        const Param *param = &frame->of->params[i];
        if ((param->flags & PARAM_DIFF) && param->dir != DIR_in)
            ad_mark_present(frame->ad, b, param->type, frame->params[i].address, frame->params[i].d);
    }
    return_plain(frame, f, call->results);
}

void ad_fill_user_fwd(Ad *ad, Func *func, AdFunc *of) {
    Func *fwd = ad_fwd(ad, of);
    if (!fwd->body) return;
    Frame frame = {.ad = ad, .func = func, .of = of->source ? of->source : of->flat};
    frame.b = build_at_end(func_begin(func));
    bind_fwd(&frame);
    call_fwd(&frame, of, fwd);
}

/* A derivative that is there: same signature. */
void ad_fill_forwarding(Ad *ad, Func *func, Func *custom) {
    Builder b = build_at_end(func_begin(func));
    map_put(ad->arena, &ad->customs, PTR_KEY(custom), custom);
    Inst *call = build_call(&b, custom, func->body->params, func->nparams);
    build_return(&b, call->results, call->nresults);
}

/* ---- calling a user's forward derivative */

/* The pair type that a parameter of the derivative has. */
static Val *make_object(Builder *b, const Type *type) { return build_var(b, type, NULL, false); }

/* Flat function -> objects -> custom(objects) -> flat results. */
void ad_fill_fwd_adapter(Ad *ad, AdFunc *f, Func *custom) {
    Func *fwd = f->fwd;
    const Func *source = f->source;
    map_put(ad->arena, &ad->customs, PTR_KEY(custom), custom);
    Builder b = build_at_end(func_begin(fwd));
    ValVec args = {0};
    Where *where = arena_array(ad->arena, Where, source->nparams + 1), result = {0};
    int next = 0;
    if (custom->nparams && is_result(&custom->params[0])) {
        Val *object = make_object(&b, custom->params[next++].type);
        vec_push(ad->arena, &args, object);
        bool paired = source->nresults ? (source->flags & FUNC_RESULT_DIFF) != 0
                                       : source->nparams && is_paired(&source->params[0]);
        result = paired ? pair_at(&b, object) : (Where){.address = object};
    }
    for (int i = 0; i < source->nparams; i++) {
        const Param *param = &source->params[i];
        if (is_result(param)) {
            where[i] = result;
            continue;
        }
        Val *object = make_object(&b, custom->params[next++].type);
        where[i] = is_paired(param) ? pair_at(&b, object) : (Where){.address = object};
        where[i].value = object;
    }
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in < 0) continue;
        Val *at = ad_leaf_address(&b, where[leaf->param].address, leaf->path, leaf->npath),
            *value = fwd->body->params[leaf->fin];
        if (!leaf->by_ref) build_store(&b, at, value);
        else if (leaf->dir != DIR_out) build_copy(&b, at, value);
        if (leaf->fdin < 0) continue;
        Val *dat = ad_leaf_address(&b, where[leaf->param].d, leaf->dpath, leaf->ndpath),
            *dvalue = fwd->body->params[leaf->fdin];
        if (!leaf->by_ref) build_store(&b, dat, dvalue);
        else if (leaf->dir != DIR_out) build_copy(&b, dat, dvalue);
    }
    next = args.count;
    for (int i = 0; i < source->nparams; i++) {
        if (is_result(&source->params[i])) continue;
        if (source->params[i].flags & PARAM_DIFF)
            ad_mark_present(ad, &b, source->params[i].type, where[i].address, where[i].d);
        const Param *param = &custom->params[next++];
        vec_push(ad->arena, &args,
                 param->flags & PARAM_BY_ADDRESS ? where[i].value : build_load(&b, where[i].value));
    }
    Inst *call = build_call(&b, custom, args.at, args.count);
    Val **results = arena_array(ad->arena, Val *, fwd->nresults ? fwd->nresults : 1);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        const Where *from = leaf->param < 0 ? &result : &where[leaf->param];
        if (leaf->out >= 0) {
            bool by_value = leaf->param < 0 && !result.address;
            results[leaf->fout] = by_value ? lane_of(&b, call->results[0], leaf)
                                           : ad_leaf_load(&b, from->address, leaf->path, leaf->npath);
            if (leaf->fdout >= 0) results[leaf->fdout] = ad_leaf_load(&b, from->d, leaf->dpath, leaf->ndpath);
        } else if (leaf->by_ref && leaf->dir != DIR_in) {
            build_copy(&b, fwd->body->params[leaf->fin],
                       ad_leaf_address(&b, from->address, leaf->path, leaf->npath));
            if (leaf->fdin >= 0)
                build_copy(&b, fwd->body->params[leaf->fdin],
                           ad_leaf_address(&b, from->d, leaf->dpath, leaf->ndpath));
        }
    }
    build_return(&b, results, fwd->nresults);
    fwd->flags |= FUNC_NORMAL;
    map_put(ad->arena, &ad->adapters, PTR_KEY(fwd), fwd);
}

/* [TreatAsDifferentiable]: the function itself, and zeros. */
void ad_fill_trivial_fwd(Ad *ad, AdFunc *f) {
    Func *fwd = f->fwd;
    Builder b = build_at_end(func_begin(fwd));
    Val **args = arena_array(ad->arena, Val *, f->flat->nparams ? f->flat->nparams : 1);
    Val **results = arena_array(ad->arena, Val *, fwd->nresults ? fwd->nresults : 1);
    for (int i = 0; i < f->leaves.count; i++)
        if (f->leaves.at[i].in >= 0) args[f->leaves.at[i].in] = fwd->body->params[f->leaves.at[i].fin];
    Inst *call = build_call(&b, f->flat, args, f->flat->nparams);
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->out >= 0) results[leaf->fout] = call->results[leaf->out];
        if (leaf->fdout >= 0) results[leaf->fdout] = ad_zero(ad, leaf->dtype);
        if (leaf->by_ref && leaf->dir != DIR_in && leaf->fdin >= 0)
            ad_zero_object(ad, &b, fwd->body->params[leaf->fdin]);
    }
    build_return(&b, results, fwd->nresults);
}

/* From structured code to flat code, in place; calls of the user's functions become calls of their flat forms. */
void ad_flatten_adapter(Ad *ad, Func *func) {
    Func *copy = clone_func(func, format_text(ad->arena, "%s.copy", func->name->text));
    ad->config.lower_exits(ad->config.user, copy);
    ad->config.clean(ad->config.user, copy);
    AdFunc to = {.flat = func, .leaves = ad_leaves_of_flat(ad, func)};
    ad_flatten(ad, copy, &to);
    copy->body = NULL;
    func->flags |= FUNC_NORMAL;
    ad->config.clean_flat(ad->config.user, func);
}

void ad_inline_rule(Ad *ad, Func *fwd) {
    ad_complete_all(ad, fwd);
    fwd->flags &= ~(uint32_t)FUNC_NORMAL; /* until exits are lowered */
    ad->config.inline_calls(ad->config.user, fwd, NULL, NULL);
    ad_flatten_adapter(ad, fwd);
}
