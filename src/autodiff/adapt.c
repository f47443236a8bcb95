/* Between flat functions and the signatures that users see.
 *
 * fwd_diff(f) and bwd_diff(f) take pairs; their bodies take the pairs apart, call the flat functions and put
 * the results back. The other way round, a derivative that a user wrote is called from flat code through an
 * adapter that makes the pairs. All of it is plain memory traffic on fresh objects, which inlining and sroa
 * remove. */
#include "autodiff/ad.h"

/* ---- where the parameters of a function are in its derivative's signature */

static Where pair_at(Builder *b, Val *pair) {
    return (Where){.address = build_field(b, pair, 0), .d = build_field(b, pair, 1)};
}

static Where plain_at(const Param *param, Val *value) {
    return param->flags & PARAM_BY_ADDRESS ? (Where){.address = value} : (Where){.value = value};
}

Where *ad_where(Frame *frame, int param) { return param < 0 ? &frame->result : &frame->params[param]; }

const Leaf *ad_leaf_of(const Frame *frame, const Place *place) {
    return &(place->role == AS_state ? frame->pass : frame->f)->leaves.at[place->leaf];
}

Val *ad_place_at(Frame *frame, const Place *place) {
    const Leaf *leaf = ad_leaf_of(frame, place);
    if (place->role == AS_state) return ad_leaf_at(&frame->b, frame->state, leaf, false);
    const Where *where = ad_where(frame, leaf->param);
    bool primal = place->role == AS_primal;
    return ad_leaf_at(&frame->b, primal ? where->address : where->d, leaf, !primal);
}

/* ---- objects that a custom derivative is given */

Where *ad_make_object(Frame *frame, const UserPlace *place, const Type *type, Name name) {
    Val *object = build_var(&frame->b, type, name, false);
    Where *where = ad_where(frame, place->param);
    vec_push(frame->ad->arena, &frame->objects, object);
    switch (place->kind) {
    case USER_state: frame->state = object; break;
    case USER_differential: where->d = object; break;
    case USER_plain: where->address = object; break;
    case USER_pair: *where = pair_at(&frame->b, object); break;
    }
    return where;
}

Inst *ad_call_custom(Frame *frame, Func *custom) {
    ValVec *objects = &frame->objects;
    for (int i = 0; i < objects->count; i++)
        if (!(custom->params[i].flags & PARAM_BY_ADDRESS))
            objects->at[i] = build_load(&frame->b, objects->at[i]);
    return build_call(&frame->b, custom, objects->at, objects->count);
}

/* ---- optional values */

bool ad_has_optional(Ad *ad, const Type *type) {
    if (type->kind == TYPE_array) return ad_has_optional(ad, type->args[0]);
    if (type->kind != TYPE_record) return false;
    const RecordDiff *diff = ir_record_diff(ad->m, type);
    if (diff->optional) return true;
    for (int i = 0; diff->field_map && !diff->reference && i < type_record(type)->nfields; i++)
        if (diff->field_map[i] >= 0 && ad_has_optional(ad, type_record(type)->fields[i].type)) return true;
    return false;
}

static void mark_elements(Ad *ad, Builder *b, const Type *type, Val *p, Val *d) {
    CountLoop loop = build_count(b, 0, type_length(type));
    Val *p_part = p ? build_elem(&loop.body, p, loop.index, true) : NULL;
    Val *d_part = build_elem(&loop.body, d, loop.index, true);
    ad_mark_present(ad, &loop.body, type->args[0], p_part, d_part);
    build_next(&loop);
}

void ad_mark_present(Ad *ad, Builder *b, const Type *type, Val *p, Val *d) {
    if (!ad_has_optional(ad, type)) return;
    if (type->kind == TYPE_array) {
        mark_elements(ad, b, type, p, d);
        return;
    }
    const RecordDiff *diff = ir_record_diff(ad->m, type);
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++)
        if (diff->field_map[i] >= 0) {
            Val *p_part = p ? build_field(b, p, i) : NULL;
            Val *d_part = build_field(b, d, diff->field_map[i]);
            ad_mark_present(ad, b, record->fields[i].type, p_part, d_part);
        }
    if (!diff->optional) return;
    Val *yes = ir_const_int(ad->m, type_basic(ad->m->types, TYPE_bool), 1);
    Val *d_part = build_field(b, d, 1);
    Val *p_part = p ? build_load(b, build_field(b, p, 1)) : yes;
    build_store(b, d_part, p_part);
}

/* ---- forward */

static void bind_fwd(Frame *frame) {
    UserPlaces places = ad_user_fwd(frame->ad, frame->of);
    frame->params = arena_array(frame->ad->arena, Where, frame->of->nparams + 1);
    for (int i = 0; i < places.count; i++) {
        Val *value = frame->func->body->params[i];
        *ad_where(frame, places.at[i].param) = places.at[i].kind == USER_pair
                                                   ? pair_at(&frame->b, value)
                                                   : plain_at(&frame->func->params[i], value);
    }
}

static void return_plain(Frame *frame, Val *const *results) {
    if (!frame->of->nresults || (frame->of->flags & FUNC_RESULT_DIFF) || !frame->func->nresults) {
        build_return(&frame->b, NULL, 0);
        return;
    }
    Val *lanes[4];
    int n = 0;
    const Places *places = &frame->f->fwd.results;
    for (int i = 0; i < places->count; i++)
        if (ad_leaf_of(frame, &places->at[i])->param < 0) lanes[n++] = results[i];
    const Type *type = frame->func->results[0];
    Val *value = type->kind == TYPE_vector ? build_vec(&frame->b, type, lanes) : lanes[0];
    build_return(&frame->b, &value, 1);
}

static Val *fwd_arg(void *user, const Place *place) {
    Frame *frame = user;
    const Leaf *leaf = ad_leaf_of(frame, place);
    const Where *where = ad_where(frame, leaf->param);
    if (place->role == AS_primal && where->value) return ad_leaf_lane(&frame->b, where->value, leaf);
    Val *address = ad_place_at(frame, place);
    return leaf->by_ref ? address : build_load(&frame->b, address);
}

static void call_fwd(Frame *frame) {
    Builder *b = &frame->b;
    const Made *fwd = &frame->f->fwd;
    Inst *call = ad_call(frame->ad, b, fwd, fwd_arg, frame);
    for (int i = 0; i < fwd->results.count; i++) {
        const Place *place = &fwd->results.at[i];
        if (ad_where(frame, ad_leaf_of(frame, place)->param)->address)
            build_store(b, ad_place_at(frame, place), call->results[i]);
    }
    for (int i = 0; i < frame->of->nparams; i++) {
        const Param *param = &frame->of->params[i];
        if ((param->flags & PARAM_DIFF) && param->dir != DIR_in)
            ad_mark_present(frame->ad, b, param->type, frame->params[i].address, frame->params[i].d);
    }
    return_plain(frame, call->results);
}

void ad_fill_user_fwd(Ad *ad, Func *func, AdFunc *f) {
    if (!ad_fwd(ad, f)->body || !f->fwd_made) return;
    Frame frame = {.ad = ad, .f = f, .func = func, .of = f->source ? f->source : f->flat};
    frame.b = build_at_end(func_begin(func));
    bind_fwd(&frame);
    call_fwd(&frame);
}

/* A derivative that is there: same signature. */
void ad_fill_forwarding(Ad *ad, Func *func, Func *custom) {
    Builder b = build_at_end(func_begin(func));
    map_put(ad->arena, &ad->customs, PTR_KEY(custom), custom);
    Inst *call = build_call(&b, custom, func->body->params, func->nparams);
    build_return(&b, call->results, call->nresults);
}

/* ---- calling a user's forward derivative */

/* Memory for what it takes. */
static void make_objects(Frame *frame, const Func *custom) {
    UserPlaces places = ad_user_fwd(frame->ad, frame->of);
    frame->params = arena_array(frame->ad->arena, Where, frame->of->nparams + 1);
    for (int i = 0; i < places.count; i++) ad_make_object(frame, &places.at[i], custom->params[i].type, NULL);
}

static void fill_objects(Frame *frame) {
    const Made *fwd = &frame->f->fwd;
    for (int i = 0; i < fwd->params.count; i++) {
        const Leaf *leaf = ad_leaf_of(frame, &fwd->params.at[i]);
        Val *at = ad_place_at(frame, &fwd->params.at[i]), *value = fwd->func->body->params[i];
        if (!leaf->by_ref) build_store(&frame->b, at, value);
        else if (leaf->dir != DIR_out) build_copy(&frame->b, at, value);
    }
    for (int i = 0; i < frame->of->nparams; i++) {
        const Param *param = &frame->of->params[i];
        if ((param->flags & (PARAM_DIFF | PARAM_RESULT)) == PARAM_DIFF)
            ad_mark_present(frame->ad, &frame->b, param->type, frame->params[i].address, frame->params[i].d);
    }
}

static void return_from_objects(Frame *frame, const Inst *call) {
    const Made *fwd = &frame->f->fwd;
    ValVec results = {0};
    for (int i = 0; i < fwd->results.count; i++) {
        const Leaf *leaf = ad_leaf_of(frame, &fwd->results.at[i]);
        bool by_value = leaf->param < 0 && !frame->result.address;
        vec_push(frame->ad->arena, &results,
                 by_value ? ad_leaf_lane(&frame->b, call->results[0], leaf)
                          : build_load(&frame->b, ad_place_at(frame, &fwd->results.at[i])));
    }
    for (int i = 0; i < fwd->params.count; i++) {
        const Leaf *leaf = ad_leaf_of(frame, &fwd->params.at[i]);
        if (leaf->by_ref && leaf->dir != DIR_in)
            build_copy(&frame->b, fwd->func->body->params[i], ad_place_at(frame, &fwd->params.at[i]));
    }
    build_return(&frame->b, results.at, results.count);
}

/* Flat function -> objects -> custom(objects) -> flat results. */
void ad_fill_fwd_adapter(Ad *ad, AdFunc *f, Func *custom) {
    Func *fwd = f->fwd.func;
    map_put(ad->arena, &ad->customs, PTR_KEY(custom), custom);
    Frame frame = {.ad = ad, .f = f, .func = fwd, .of = f->source};
    frame.b = build_at_end(func_begin(fwd));
    make_objects(&frame, custom);
    fill_objects(&frame);
    return_from_objects(&frame, ad_call_custom(&frame, custom));
    fwd->flags |= FUNC_NORMAL;
    map_put(ad->arena, &ad->adapters, PTR_KEY(fwd), fwd);
}

/* [TreatAsDifferentiable]: the function itself, and zeros. */
void ad_fill_trivial_fwd(Ad *ad, AdFunc *f) {
    const Made *fwd = &f->fwd;
    Builder b = build_at_end(func_begin(fwd->func));
    ValVec args = {0}, results = {0};
    for (int i = 0; i < fwd->params.count; i++)
        if (fwd->params.at[i].role == AS_primal) vec_push(ad->arena, &args, fwd->func->body->params[i]);
    Inst *call = build_call(&b, f->flat, args.at, args.count);
    for (int i = 0; i < fwd->results.count; i++) {
        const Leaf *leaf = &f->leaves.at[fwd->results.at[i].leaf];
        bool is_primal = fwd->results.at[i].role == AS_primal;
        vec_push(ad->arena, &results, is_primal ? call->results[leaf->out] : ad_zero(ad, leaf->dtype));
    }
    for (int i = 0; i < fwd->params.count; i++) {
        const Leaf *leaf = &f->leaves.at[fwd->params.at[i].leaf];
        if (fwd->params.at[i].role != AS_primal && leaf->by_ref && leaf->dir != DIR_in)
            ad_zero_object(ad, &b, fwd->func->body->params[i]);
    }
    build_return(&b, results.at, results.count);
}
