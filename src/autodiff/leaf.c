/* Leaves: how parameters and results are taken apart, and where their differentials are. */
#include "autodiff/ad.h"

/* ---- differentials of types */

const Type *ad_differential(Ad *ad, const Type *type) {
    switch (type->kind) {
    case TYPE_half:
    case TYPE_float:
    case TYPE_double:
    case TYPE_tape: return type;
    case TYPE_vector: return type_is_float(type->args[0]) ? type : NULL;
    case TYPE_array: {
        const Type *element = ad_differential(ad, type->args[0]);
        return element ? type_array(ad->m->types, element, type_length(type)) : NULL;
    }
    case TYPE_record: {
        const RecordDiff *diff = ir_record_diff(ad->m, type);
        return diff->reference ? NULL : diff->differential;
    }
    default: return NULL;
    }
}

const Type *ad_counterpart(Ad *ad, const Type *type) {
    if (type->kind == TYPE_array) {
        const Type *element = ad_counterpart(ad, type->args[0]);
        return element ? type_array(ad->m->types, element, type_length(type)) : NULL;
    }
    if (type->kind != TYPE_record) return NULL;
    const RecordDiff *diff = ir_record_diff(ad->m, type);
    return diff->reference ? diff->differential : NULL;
}

int ad_counterpart_field(Ad *ad, const Type *record, const Type *counterpart, int field) {
    if (record->kind != TYPE_record || counterpart->kind != TYPE_record) return -1;
    const RecordDiff *diff = ir_record_diff(ad->m, record);
    if (diff->reference && diff->field_map) return diff->field_map[field];
    bool exists = field < type_record(counterpart)->nfields;
    return exists ? field : -1; /* a plain struct in a reference, and the one that goes with it */
}

Val *ad_zero(Ad *ad, const Type *type) { return ir_const_zero(ad->m, type); }
Val *ad_int64(Ad *ad, int64_t value) {
    return ir_const_int(ad->m, type_basic(ad->m->types, TYPE_int64), value);
}

/* ---- taking apart */

typedef VEC(int) Path;

typedef struct Walk {
    Ad *ad;
    Leaves *leaves;
    Leaf base;
    Path path, dpath;
    bool dual;
    bool later; /* dual, but not in this function */
    bool flag;
} Walk;

static void push_leaf(Ad *ad, Leaves *leaves, Leaf leaf) {
    if (leaves->count == leaves->room)
        leaves->at = vec_grow(ad->arena, leaves->at, leaves->count, &leaves->room, sizeof(Leaf));
    leaves->at[leaves->count++] = leaf;
}

static void add_leaf(Walk *w, const Type *type, const Type *dtype, bool by_ref) {
    Ad *ad = w->ad;
    Leaf leaf = w->base;
    leaf.type = type;
    leaf.by_ref = by_ref;
    leaf.dual = w->dual && dtype && !w->later;
    leaf.diff = !w->dual && dtype;
    leaf.flag = w->flag || (by_ref && leaf.diff && ad_has_optional(ad, type));
    leaf.dtype = w->later ? NULL : dtype;
    leaf.later = w->later ? dtype : NULL;
    leaf.path = arena_copy(ad->arena, w->path.at, sizeof(int) * (size_t)w->path.count);
    leaf.npath = w->path.count;
    leaf.dpath = arena_copy(ad->arena, w->dpath.at, sizeof(int) * (size_t)w->dpath.count);
    leaf.ndpath = w->dpath.count;
    leaf.in = leaf.out = -1;
    push_leaf(ad, w->leaves, leaf);
}

static void walk_type(Walk *w, const Type *type, const Type *dtype);

static void walk_step(Walk *w, int step, int dstep, const Type *type, const Type *dtype) {
    vec_push(w->ad->arena, &w->path, step);
    if (dtype) vec_push(w->ad->arena, &w->dpath, dstep);
    walk_type(w, type, dtype);
    w->path.count--;
    if (dtype) w->dpath.count--;
}

static bool may_hold(const Walk *w, const Type *dtype) { return dtype && !w->dual; }

/* A part that the Differential leaves out. A reference in it (a lambda may hold one) has a counterpart in
 * calls within derivatives, though no pair has room for it. */
static void walk_held(Walk *w, int step, const Type *type) {
    const Type *counterpart = ad_counterpart(w->ad, type);
    w->dual = w->base.held = counterpart != NULL;
    walk_step(w, step, step, type, counterpart);
    w->dual = w->base.held = false;
}

/* That of an optional is the same in its differential. */
static void walk_flag(Walk *w, const Type *type) {
    vec_push(w->ad->arena, &w->path, 1);
    vec_push(w->ad->arena, &w->dpath, 1);
    w->flag = true;
    add_leaf(w, type, NULL, false);
    w->flag = false;
    w->path.count--;
    w->dpath.count--;
}

static void walk_record(Walk *w, const Type *type, const Type *dtype) {
    const RecordDiff *diff = ir_record_diff(w->ad->m, type);
    Record *record = type_record(type);
    if (diff->opaque && !w->dual) {
        add_leaf(w, type, dtype, true);
        return;
    }
    Record *target = dtype && dtype->kind == TYPE_record ? type_record(dtype) : NULL;
    for (int i = 0; i < record->nfields; i++) {
        int to = target && diff->field_map ? diff->field_map[i] : -1;
        if (target && w->dual) to = ad_counterpart_field(w->ad, type, dtype, i);
        if (diff->optional && i == 1 && may_hold(w, dtype)) walk_flag(w, record->fields[i].type);
        else if (to == -1 && may_hold(w, dtype)) walk_held(w, i, record->fields[i].type);
        else walk_step(w, i, to, record->fields[i].type, to >= 0 ? target->fields[to].type : NULL);
    }
}

static void walk_type(Walk *w, const Type *type, const Type *dtype) {
    switch (type->kind) {
    case TYPE_void: return;
    case TYPE_vector:
        for (int i = 0; i < type_count(type); i++)
            walk_step(w, -1 - i, -1 - i, type->args[0], dtype ? dtype->args[0] : NULL);
        return;
    case TYPE_record: walk_record(w, type, dtype); return;
    case TYPE_array: add_leaf(w, type, dtype, true); return;
    default: add_leaf(w, type, dtype, false); return;
    }
}

/* ---- places */

typedef struct PlaceSearch {
    Ad *ad;
    const Val *param;
    int depth; /* of calls */
    bool found;
} PlaceSearch;

enum { MOST_CALLS = 16 };

static bool needs_place(Ad *ad, Func *func, int param, int depth);

static void search_place(void *user, Inst *inst) {
    PlaceSearch *s = user;
    bool atomic = inst->op == OP_atomic || inst->op == OP_atomic_cas;
    if (atomic && ir_root(inst->args[0]) == s->param) s->found = true;
    for (int i = 0; inst->op == OP_call && !s->found && i < inst->nargs; i++)
        s->found = (inst->callee->params[i].flags & PARAM_BY_ADDRESS) && ir_root(inst->args[i]) == s->param &&
                   needs_place(s->ad, inst->callee, i, s->depth + 1);
}

/* Does a function without derivatives, such as InterlockedAdd, do atomic operations on what it is given the
 * address of? These are none on a copy. */
static bool needs_place(Ad *ad, Func *func, int param, int depth) {
    const Param *p = &func->params[param];
    if (!(p->flags & PARAM_BY_ADDRESS) || p->dir == DIR_in || p->dir == DIR_out) return false;
    if ((func->flags & (FUNC_FWD | FUNC_BWD | FUNC_GENERATED)) || func->derivation.of || depth > MOST_CALLS)
        return false;
    ad_complete(ad, func);
    PlaceSearch s = {.ad = ad, .param = func->body ? func->body->params[param] : NULL, .depth = depth};
    if (func->body) region_walk(func->body, search_place, &s);
    return s.found;
}

static void ad_add_leaves(Ad *ad, Leaves *leaves, int index, const Param *param, bool is_bound) {
    Walk w = {.ad = ad, .leaves = leaves, .base = {.param = index, .dir = param->dir}};
    w.later = is_bound && (param->flags & PARAM_THIS) && (param->flags & PARAM_NO_DIFF);
    w.dual = w.later || (param->flags & PARAM_PTR_DIFF) !=
                            0; /* a reference: what the Differential names is its counterpart */
    const Type *dtype = NULL;
    if (param->flags & PARAM_DIFF) dtype = ad_differential(ad, param->type);
    if (w.dual) dtype = ad_counterpart(ad, param->type);
    if (param->flags & PARAM_PLACE) add_leaf(&w, param->type, dtype, true);
    else walk_type(&w, param->type, dtype);
}

/* Every scalar in and out of the flat function gets its number. */
static void number_leaves(Leaves *leaves, int *nparams, int *nresults) {
    *nparams = *nresults = 0;
    for (int i = 0; i < leaves->count; i++) {
        Leaf *leaf = &leaves->at[i];
        bool in = leaf->param >= 0 && (leaf->by_ref || leaf->dir != DIR_out);
        bool out = leaf->param < 0 || (!leaf->by_ref && leaf->dir != DIR_in);
        leaf->in = in ? (*nparams)++ : -1;
        leaf->out = out ? (*nresults)++ : -1;
    }
}

bool ad_is_given(const Leaf *leaf) {
    return leaf->dual && (leaf->out >= 0 || (leaf->by_ref && leaf->dir != DIR_in));
}

bool ad_gives_references(const Leaves *leaves) {
    for (int i = 0; i < leaves->count; i++)
        if (ad_is_given(&leaves->at[i])) return true;
    return false;
}

Leaves ad_leaves_of_func(Ad *ad, Func *source) {
    Leaves leaves = {0};
    for (int i = 0; i < source->nparams; i++) {
        if (needs_place(ad, source, i, 0)) source->params[i].flags |= PARAM_PLACE;
        ad_add_leaves(ad, &leaves, i, &source->params[i], source->flags & FUNC_BOUND);
    }
    for (int i = 0; i < source->nresults; i++) {
        Param result = {.type = source->results[i],
                        .dir = DIR_out,
                        .flags = source->flags & FUNC_RESULT_DIFF ? PARAM_DIFF : 0};
        ad_add_leaves(ad, &leaves, -1, &result, false);
    }
    return leaves;
}

static Leaf flat_leaf(Ad *ad, int param, const Type *type, uint8_t dir) {
    const Type *dtype = ad_differential(ad, type);
    return (Leaf){
        .param = param, .type = type, .dtype = dtype, .diff = dtype != NULL, .dir = dir, .in = -1, .out = -1};
}

/* void, or NULL: it is no reference. */
static void accompany(Leaf *leaf, const Type *counterpart) {
    if (!counterpart || counterpart->kind == TYPE_void) return;
    leaf->dual = true;
    leaf->diff = false;
    leaf->dtype = counterpart;
}

Leaves ad_leaves_of_flat(Ad *ad, const Func *flat) {
    Leaves leaves = {0};
    for (int i = 0; i < flat->nparams; i++) {
        const Param *param = &flat->params[i];
        bool by_ref = (param->flags & PARAM_BY_ADDRESS) != 0;
        Leaf leaf = flat_leaf(ad, i, param->type, by_ref ? param->dir : DIR_in);
        leaf.in = i;
        leaf.by_ref = by_ref;
        if (param->flags & PARAM_NO_DIFF) {
            leaf.diff = false;
            leaf.dtype = NULL;
        }
        accompany(&leaf, param->counterpart);
        push_leaf(ad, &leaves, leaf);
    }
    for (int i = 0; i < flat->nresults; i++) {
        Leaf leaf = flat_leaf(ad, -1, flat->results[i], DIR_out);
        leaf.out = i;
        if (flat->counterparts) accompany(&leaf, flat->counterparts[i]);
        push_leaf(ad, &leaves, leaf);
    }
    return leaves;
}

/* ---- signatures */

static Name leaf_name(Ad *ad, const Func *source, const Leaf *leaf) {
    Text text = {.arena = ad->arena};
    const Param *param = leaf->param >= 0 ? &source->params[leaf->param] : NULL;
    text_add(&text, str_of(param && param->name ? param->name->text : "result"));
    const Type *type = param ? param->type : NULL;
    for (int i = 0; i < leaf->npath; i++) {
        int step = leaf->path[i];
        if (step < 0) text_printf(&text, ".%c", "xyzw"[(-1 - step) & 3]);
        else if (type && type->kind == TYPE_record)
            text_printf(&text, ".%s", type_record(type)->fields[step].name->text);
        if (type && type->kind == TYPE_record) type = type_record(type)->fields[step].type;
        else type = NULL;
    }
    return name_of(ad->m->names, text_str(&text));
}

Func *ad_declare_flat(Ad *ad, const Func *source, Leaves *leaves) {
    int nparams, nresults;
    number_leaves(leaves, &nparams, &nresults);
    Func *flat = func_new(ad->m, format_text(ad->arena, "%s.flat", source->name->text));
    flat->is_library = source->is_library;
    Param *params = arena_array(ad->arena, Param, nparams ? nparams : 1);
    const Type **results = arena_array(ad->arena, const Type *, nresults ? nresults : 1);
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (leaf->out >= 0) results[leaf->out] = leaf->type;
        if (leaf->in < 0) continue;
        uint8_t flags = (uint8_t)((leaf->by_ref ? PARAM_BY_ADDRESS : 0) | (leaf->diff ? PARAM_DIFF : 0));
        uint8_t dir = leaf->by_ref ? leaf->dir : DIR_in;
        params[leaf->in] =
            (Param){.name = leaf_name(ad, source, leaf),
                    .type = leaf->type,
                    .dir = dir,
                    .flags = flags,
                    .counterpart = leaf->dual ? leaf->dtype : type_basic(ad->m->types, TYPE_void)};
    }
    func_set_params(flat, params, nparams);
    func_set_results(flat, results, nresults);
    flat->loc = source->loc;
    flat->flags |=
        FUNC_GENERATED | (source->flags & (FUNC_RECOMPUTE | FUNC_CHECKPOINT | FUNC_RECOMPUTE_EFFECTS |
                                           FUNC_NOINLINE | FUNC_TREAT_AS_DIFF));
    return flat;
}

/* ---- leaves of objects in memory */

Val *ad_leaf_address(Builder *b, Val *object, const int *path, int npath) {
    Module *m = b->func->module;
    for (int i = 0; i < npath; i++) {
        if (path[i] >= 0) object = build_field(b, object, path[i]);
        else
            object =
                build_elem(b, object, ir_const_int(m, type_basic(m->types, TYPE_int), -1 - path[i]), true);
    }
    return object;
}

Val *ad_leaf_at(Builder *b, Val *object, const Leaf *leaf, bool differential) {
    return differential ? ad_leaf_address(b, object, leaf->dpath, leaf->ndpath)
                        : ad_leaf_address(b, object, leaf->path, leaf->npath);
}

Val *ad_leaf_in(Builder *b, Val *object, const Leaf *leaf, bool differential) {
    Val *address = ad_leaf_at(b, object, leaf, differential);
    return leaf->by_ref ? address : build_load(b, address);
}

Val *ad_leaf_lane(Builder *b, Val *value, const Leaf *leaf) {
    return leaf->npath ? build_extract_lane(b, value, -1 - leaf->path[0]) : value;
}
