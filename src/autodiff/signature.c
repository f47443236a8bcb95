/* Signatures: what the parameters and results of generated functions are, and in which order.
 *
 * Each is something of a leaf (its primal value, its differential, its adjoint ...), or belongs to the
 * function as a whole (slots, the tape). That is its role, a row of roles.def; the shapes below say which
 * roles a function has. Declarations, bodies and calls walk the places of a function and ask what stands at
 * each: the order is written here and nowhere else.
 *
 * Derivatives as users see them have pairs instead, a place for each parameter of the source. */
#include "autodiff/ad.h"

enum { MOST_ROLES = 8 };

typedef struct ShapeInfo {
    const char *suffix;
    AdRole params[MOST_ROLES], results[MOST_ROLES]; /* up to AS_nothing */
    bool by_parameter; /* what belongs to one parameter of the source stands together */
    bool afterwards;   /* it runs when the primal has: what that was given is only read */
} ShapeInfo;

static const ShapeInfo shapes[] = {
    [SHAPE_fwd] = {.suffix = "fwd",
                   .params = {AS_primal, AS_counterpart, AS_differential},
                   .results = {AS_primal, AS_counterpart, AS_differential},
                   .by_parameter = true},
    [SHAPE_linear] = {.suffix = "linear",
                      .params = {AS_primal, AS_counterpart, AS_differential},
                      .results = {AS_primal, AS_counterpart, AS_differential}},
    [SHAPE_tangent] = {.suffix = "tangent", .params = {AS_differential}, .results = {AS_differential}},
    [SHAPE_pri] = {.suffix = "pri",
                   .params = {AS_primal, AS_counterpart, AS_tape},
                   .results = {AS_primal, AS_counterpart, AS_slot}},
    [SHAPE_prop] = {.suffix = "prop",
                    .params = {AS_primal, AS_counterpart, AS_slot, AS_seed, AS_shadow, AS_tape},
                    .results = {AS_adjoint},
                    .afterwards = true},
    [SHAPE_bwd] = {.suffix = "bwd",
                   .params = {AS_primal, AS_state, AS_counterpart, AS_seed, AS_shadow, AS_present},
                   .results = {AS_adjoint},
                   .afterwards = true},
};

/* ---- roles of leaves */

/* Adjoints of memory are in memory, and those of a tape on a tape. */
static bool is_memory(const Leaf *leaf) { return leaf->by_ref || leaf->type->kind == TYPE_tape; }

static uint8_t shadow_dir(const Leaf *leaf) {
    if (!leaf->by_ref) return DIR_in;
    return leaf->dir == DIR_in || leaf->dir == DIR_ref ? DIR_ref : DIR_inout;
}

bool ad_has_role(const Leaf *leaf, AdRole role, bool is_result) {
#define ROLE(name, has, type, param_name, dir, flags, counterpart)                                           \
    if (role == AS_##name) return has;
#include "autodiff/roles.def"
    return false;
}

static const Type *type_of(const Leaf *leaf, AdRole role) {
#define ROLE(name, has, type, param_name, dir, flags, counterpart)                                           \
    if (role == AS_##name) return type;
#include "autodiff/roles.def"
    return NULL;
}

Name ad_diff_name(Ad *ad, Name name) {
    return name ? name_from(ad->m->names, format_text(ad->arena, "d%s", name->text)) : NULL;
}

static Param param_of_leaf(Ad *ad, const Leaf *leaf, AdRole role, const Param *given) {
#define ROLE(name, has, type, param_name, dir, flags, counterpart)                                           \
    if (role == AS_##name) return (Param){param_name, type, dir, (uint8_t)(flags), 0, counterpart};
#include "autodiff/roles.def"
    return (Param){0};
}

/* ---- places */

static void add_place(Ad *ad, Places *places, AdRole role, int leaf) {
    vec_push(ad->arena, places, ((Place){role, leaf}));
}

static bool is_wanted(const Contents *contents, AdRole role, int leaf) {
    return role != AS_primal || !contents->primal || contents->primal[leaf];
}

/* Of the leaves from `first` up to `end`. */
static void add_places(Ad *ad, const AdFunc *f, AdRole role, const Contents *contents, bool is_result,
                       int first, int end, Places *places) {
    switch (role) {
    case AS_slot:
        for (int i = 0; i < contents->slots.count; i++) add_place(ad, places, role, i);
        return;
    case AS_tape:
        if (contents->tape) add_place(ad, places, role, 0);
        return;
    case AS_state:
        for (int i = 0; contents->plan && contents->plan->pass && i < contents->plan->pass->leaves.count; i++)
            if (ad_is_state(contents->plan, i)) add_place(ad, places, role, i);
        return;
    default: break;
    }
    for (int i = first; i < end; i++)
        if (ad_has_role(&f->leaves.at[i], role, is_result) && (is_result || is_wanted(contents, role, i)))
            add_place(ad, places, role, i);
}

/* The end of the leaves that belong to the same parameter of the source. */
static int end_of_parameter(const Leaves *leaves, int first) {
    int end = first + 1;
    while (end < leaves->count && leaves->at[first].param >= 0 &&
           leaves->at[end].param == leaves->at[first].param)
        end++;
    return end;
}

static Places places_of(Ad *ad, const AdFunc *f, const ShapeInfo *shape, const Contents *contents,
                        bool is_result) {
    Places places = {0};
    const AdRole *roles = is_result ? shape->results : shape->params;
    int count = f->leaves.count, first = 0;
    do {
        int end = shape->by_parameter && first < count ? end_of_parameter(&f->leaves, first) : count;
        for (int i = 0; roles[i] != AS_nothing; i++)
            add_places(ad, f, roles[i], contents, is_result, first, end, &places);
        first = end;
    } while (first < count);
    return places;
}

/* ---- declarations */

static Param param_of(Ad *ad, const AdFunc *f, const ShapeInfo *shape, const Contents *contents,
                      const Place *place) {
    const Type *no_type = type_basic(ad->m->types, TYPE_void);
    switch (place->role) {
    case AS_tape:
        return (Param){.name = name_from(ad->m->names, "tape"), .type = type_basic(ad->m->types, TYPE_tape)};
    case AS_slot:
        return (Param){.name = contents->slots.at[place->leaf]->name,
                       .type = contents->slots.at[place->leaf]->type};
    case AS_state: {
        const Leaf *leaf = &contents->plan->pass->leaves.at[place->leaf];
        int flags = (leaf->by_ref ? PARAM_BY_ADDRESS : 0) | (leaf->diff ? PARAM_DIFF : 0);
        return (Param){.name = name_from(ad->m->names, "state"),
                       .type = leaf->type,
                       .flags = (uint8_t)flags,
                       .counterpart = no_type};
    }
    default: break;
    }
    const Leaf *leaf = &f->leaves.at[place->leaf];
    Param none = {0},
          param = param_of_leaf(ad, leaf, place->role, leaf->in >= 0 ? &f->flat->params[leaf->in] : &none);
    if (shape->afterwards && (place->role == AS_primal || place->role == AS_counterpart)) param.dir = DIR_in;
    bool is_constant = place->role == AS_primal && leaf->by_ref && !leaf->diff && !leaf->dual && !leaf->later;
    if (is_constant) param.flags |= PARAM_NO_DIFF;
    return param;
}

/* Of a result that is a reference, or its counterpart; NULL: it is none. */
static const Type *result_counterpart(const AdFunc *f, const Place *place) {
    if (place->role != AS_primal && place->role != AS_counterpart) return NULL;
    const Leaf *leaf = &f->leaves.at[place->leaf];
    return leaf->later ? leaf->later : leaf->dual ? leaf->dtype : NULL;
}

static const Type *result_type(const AdFunc *f, const Contents *contents, const Place *place) {
    return place->role == AS_slot ? contents->slots.at[place->leaf]->type
                                  : type_of(&f->leaves.at[place->leaf], place->role);
}

void ad_declare(Ad *ad, const AdFunc *f, AdShape kind, Contents contents, Made *made) {
    const ShapeInfo *shape = &shapes[kind];
    if (!made->func) made->func = func_new(ad->m, format_text(ad->arena, "%s.%s", ad_name(f), shape->suffix));
    made->func->is_library = (f->source ? f->source : f->flat)->is_library;
    made->params = places_of(ad, f, shape, &contents, false);
    made->results = places_of(ad, f, shape, &contents, true);
    Param *params = arena_array(ad->arena, Param, made->params.count + 1);
    const Type **results = arena_array(ad->arena, const Type *, made->results.count + 1),
               **counterparts = arena_array(ad->arena, const Type *, made->results.count + 1);
    for (int i = 0; i < made->params.count; i++)
        params[i] = param_of(ad, f, shape, &contents, &made->params.at[i]);
    for (int i = 0; i < made->results.count; i++) {
        results[i] = result_type(f, &contents, &made->results.at[i]);
        counterparts[i] = result_counterpart(f, &made->results.at[i]);
    }
    func_set_params(made->func, params, made->params.count);
    func_set_results(made->func, results, made->results.count);
    made->func->counterparts = counterparts;
    made->func->flags |= FUNC_GENERATED | FUNC_NORMAL;
    made->func->loc = f->flat->loc;
}

/* ---- calls */

Val **ad_arguments(Ad *ad, const Made *made, PlaceValue value, void *user) {
    Val **args = arena_array(ad->arena, Val *, made->params.count + 1);
    for (int i = 0; i < made->params.count; i++) args[i] = value(user, &made->params.at[i]);
    return args;
}

Inst *ad_call(Ad *ad, Builder *b, const Made *made, PlaceValue value, void *user) {
    return build_call(b, made->func, ad_arguments(ad, made, value, user), made->params.count);
}

Val **ad_by_leaf(Ad *ad, const AdFunc *f, const Places *places, AdRole role, Val *const *values) {
    Val **list = arena_array(ad->arena, Val *, f->leaves.count + 1);
    for (int i = 0; i < places->count; i++)
        if (places->at[i].role == role) list[places->at[i].leaf] = values[i];
    return list;
}

/* ---- custom derivatives with a state */

bool ad_is_state(const CallPlan *plan, int leaf) {
    return plan->pass->leaves.at[leaf].param == plan->callee->source->nparams;
}

int ad_leaf_of_pass(const CallPlan *plan, int leaf) {
    if (!plan->pass || plan->callee->leaves.at[leaf].param >= 0) return leaf;
    return leaf + plan->pass->leaves.count - plan->callee->leaves.count; /* results come after the state */
}

/* ---- derivatives as users see them */

static void add_user_place(Ad *ad, UserPlaces *places, UserKind kind, int param) {
    vec_push(ad->arena, places, ((UserPlace){kind, param}));
}

static UserKind kind_in_pairs(const Param *param) {
    return param->flags & (PARAM_DIFF | PARAM_PTR_DIFF) ? USER_pair : USER_plain;
}

/* The result comes first. */
UserPlaces ad_user_fwd(Ad *ad, const Func *of) {
    UserPlaces places = {0};
    if (of->nresults && (of->flags & FUNC_RESULT_DIFF)) add_user_place(ad, &places, USER_pair, -1);
    for (int results = 1; results >= 0; results--)
        for (int i = 0; i < of->nparams; i++)
            if (((of->params[i].flags & PARAM_RESULT) != 0) == results)
                add_user_place(ad, &places, kind_in_pairs(&of->params[i]), i);
    return places;
}

/* Of an output there is its differential; that of the result comes behind the parameters, and a state
 * last. */
UserPlaces ad_user_bwd(Ad *ad, const Func *of, bool has_state) {
    UserPlaces places = {0};
    for (int results = 0; results <= 1; results++)
        for (int i = 0; i < of->nparams; i++) {
            const Param *param = &of->params[i];
            if (((param->flags & PARAM_RESULT) != 0) != results) continue;
            if (param->dir != DIR_out) add_user_place(ad, &places, kind_in_pairs(param), i);
            else if (param->flags & PARAM_DIFF) add_user_place(ad, &places, USER_differential, i);
        }
    if (of->nresults && (of->flags & FUNC_RESULT_DIFF)) add_user_place(ad, &places, USER_differential, -1);
    if (has_state) add_user_place(ad, &places, USER_state, -1);
    return places;
}
