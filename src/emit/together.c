/* Sums that a group of a GPU's threads keeps (sums.c) and that stand together: those in elements of one
 * buffer, at equal distances, make a row, whose work the lanes of a warp share. How they do is the
 * target's. */
#include "emit/reach.h"

enum { MOST_TERMS = 4, MOST_DEPTH = 16 }; /* of an index */

enum { MOST_TOGETHER = 32 };

/* Element `terms + index` of a buffer, and which byte of it. */
typedef struct Place {
    const Inst *sum;
    const Val *buffer;
    const Inst *access;           /* what finds the element */
    const Val *terms[MOST_TERMS]; /* in the order of their ids */
    int nterms;
    int64_t index, offset;
} Place;

static bool add_part(const Inst *part, int64_t *offset) {
    const Type *whole = part->args[0]->type->args[0];
    int64_t index;
    if (part->op == OP_field) {
        *offset += type_field_offset(whole, part->index, LAYOUT_scalar);
        return true;
    }
    if (part->op != OP_elem || !val_is_int(ir_resolve(part->args[1]), &index) || index < 0) return false;
    if (index >= (whole->kind == TYPE_vector ? type_count(whole) : type_length(whole))) return false;
    *offset += index * type_element_stride(whole, LAYOUT_scalar);
    return true;
}

static bool is_small(const Val *v, int64_t *number) {
    return val_is_int(v, number) && *number >= INT16_MIN && *number <= INT16_MAX;
}

static bool add_term(Place *place, const Val *term) {
    int at = place->nterms;
    if (at == MOST_TERMS) return false;
    for (; at > 0 && place->terms[at - 1]->id > term->id; at--) place->terms[at] = place->terms[at - 1];
    place->terms[at] = term;
    place->nterms++;
    return true;
}

/* What is computed as a sum is taken apart: what is constant in it tells the distance from others. */
static bool add_terms(Place *place, const Val *index) {
    int64_t distance;
    if (is_small(index, &distance)) {
        place->index += distance;
        return true;
    }
    if (val_is_const(index)) return false;
    if (index->kind != VAL_inst || index->inst->op != OP_add) return add_term(place, index);
    return add_terms(place, ir_resolve(index->inst->args[0])) &&
           add_terms(place, ir_resolve(index->inst->args[1]));
}

static void find_terms(Place *place) {
    const Val *index = ir_resolve(place->access->args[1]);
    if (add_terms(place, index)) return;
    place->terms[0] = index;
    place->nterms = 1;
    place->index = 0;
}

static bool find_place(const Inst *sum, Place *place) {
    const Val *address = ir_resolve(sum->args[0]);
    *place = (Place){.sum = sum};
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART)) {
        if (!add_part(address->inst, &place->offset)) return false;
        address = ir_resolve(address->inst->args[0]);
    }
    if (address->kind != VAL_inst || address->inst->op != OP_buffer_elem) return false;
    place->access = address->inst;
    place->buffer = ir_resolve(place->access->args[0]);
    find_terms(place);
    return place->offset <= INT16_MAX;
}

static bool is_waiting_sum(const SumsTogether *together, const Inst *inst) {
    const WaitingSums *sums = together->sums;
    return sums->any && inst->op == OP_atomic && inst->index == ATOMIC_add &&
           inst->results[0]->type->kind == sums->kind && together->uses[inst->results[0]->id] == 0;
}

bool emit_sum_waits(const SumsTogether *together, const Inst *inst) {
    Place place;
    return is_waiting_sum(together, inst) && find_place(inst, &place);
}

/* Does another sum come, before anything else happens? */
static bool is_followed(const SumsTogether *together, const Inst *sum) {
    const Inst *next = sum->next;
    while (next && next->nregions == 0 && (op_has(next->op, OP_PURE) || next->op == OP_load))
        next = next->next;
    return next && emit_sum_waits(together, next);
}

/* ---- whether all lanes of a warp have the same number */

static bool is_steady(const Val *v, int depth);

static bool are_steady(const Inst *inst, int depth) {
    for (int i = 0; i < inst->nargs; i++)
        if (!is_steady(ir_resolve(inst->args[i]), depth)) return false;
    return true;
}

/* A counter of a loop with a known number of rounds. */
static bool is_steady_in_loop(const Val *v, int depth) {
    const Inst *loop = v->region->owner;
    if (!loop || loop->op != OP_loop || loop_most_trips(loop) == INT64_MAX) return false;
    const Inst *yield = loop->regions[loop->nregions - 1]->last;
    if (yield->op != OP_yield || !is_steady(ir_resolve(loop->args[v->index]), depth)) return false;
    const Val *next = ir_resolve(yield->args[v->index]);
    const Inst *step = next->kind == VAL_inst ? next->inst : NULL;
    int64_t distance;
    if (next->kind == VAL_param) return next->region->owner == loop && next->index == v->index;
    return step && (step->op == OP_add || step->op == OP_sub) &&
           ir_resolve(step->args[0])->kind == VAL_param && ir_resolve(step->args[0])->region->owner == loop &&
           ir_resolve(step->args[0])->index == v->index && val_is_int(ir_resolve(step->args[1]), &distance);
}

static bool is_steady(const Val *v, int depth) {
    if (val_is_const(v)) return true;
    if (depth == MOST_DEPTH) return false;
    if (v->kind == VAL_param) return is_steady_in_loop(v, depth + 1);
    const Inst *inst = v->inst;
    if (inst->op == OP_load) {
        const Val *from = ir_root(inst->args[0]);
        return from->kind == VAL_inst && from->inst->op == OP_global &&
               from->inst->global->kind == GLOBAL_uniform && ir_resolve(inst->args[0]) == from;
    }
    return op_has(inst->op, OP_ELEMENTWISE) && op_has(inst->op, OP_PURE) && are_steady(inst, depth + 1);
}

static bool varies(const Place *place) {
    for (int i = 0; i < place->nterms; i++)
        if (!is_steady(place->terms[i], 0)) return true;
    return false;
}

/* ---- rows of them */

static int compare_terms(const Place *a, const Place *b) {
    if (a->buffer != b->buffer) return a->buffer->id < b->buffer->id ? -1 : 1;
    if (a->nterms != b->nterms) return a->nterms - b->nterms;
    for (int i = 0; i < a->nterms; i++)
        if (a->terms[i] != b->terms[i]) return a->terms[i]->id < b->terms[i]->id ? -1 : 1;
    return 0;
}

static int compare_places(const Place *a, const Place *b) {
    int order = compare_terms(a, b);
    if (order) return order;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Few, and mostly in order. */
static void sort_places(Place *places, int count) {
    for (int i = 1; i < count; i++) {
        Place place = places[i];
        int at = i;
        for (; at > 0 && compare_places(&place, &places[at - 1]) < 0; at--) places[at] = places[at - 1];
        places[at] = place;
    }
}

/* Is the third as far from the second as that from the first? */
static bool is_regular(const Place *a, const Place *b, const Place *c) {
    return b->index - a->index == c->index - b->index && b->offset - a->offset == c->offset - b->offset;
}

static bool is_nearer(const Place *a, const Place *b, const Place *c) {
    int64_t before = b->index - a->index, after = c->index - b->index;
    return after < before || (after == before && c->offset - b->offset < b->offset - a->offset);
}

/* How many of them, from the first on, are at equal distances. Two that are not so with a third are no pair
 * if that is nearer to the second. */
static int count_regular(const Place *places, int count) {
    int n = 1;
    while (n < count && n < MOST_TOGETHER && compare_terms(&places[0], &places[n]) == 0 &&
           (n < 2 || is_regular(&places[n - 2], &places[n - 1], &places[n])))
        n++;
    bool is_pair = n == 2 && count > 2 && compare_terms(&places[1], &places[2]) == 0;
    return is_pair && is_nearer(&places[0], &places[1], &places[2]) ? 1 : n;
}

/* What goes to one place is added up before. */
static int count_same(const Place *places, int count) {
    int n = 1;
    while (n < count && compare_places(&places[0], &places[n]) == 0) n++;
    return n;
}

static SumRow make_row(Arena *arena, const Place *places, const SumTerms *terms, int count) {
    const Place *first = &places[0], *second = &places[count > 1 ? 1 : 0];
    SumRow row = {.access = first->access,
                  .count = count,
                  .varies = varies(first),
                  .step = second->index - first->index,
                  .offset = first->offset,
                  .distance = second->offset - first->offset,
                  .terms = arena_array(arena, SumTerms, count)};
    for (int i = 0; i < count; i++) row.terms[i] = terms[i];
    return row;
}

static void make_rows(Arena *arena, const SumsTogether *together, SumRows *rows) {
    int count = together->waiting.count, distinct = 0;
    Place *places = arena_array(arena, Place, count);
    SumTerms *terms = arena_array(arena, SumTerms, count);
    for (int i = 0; i < count; i++) find_place(together->waiting.at[i], &places[i]);
    sort_places(places, count);
    for (int i = 0, n; i < count; i += n, distinct++) {
        n = count_same(&places[i], count - i);
        for (int k = i; k < i + n; k++) vec_push(arena, &terms[distinct], places[k].sum);
        places[distinct] = places[i];
    }
    for (int first = 0, n; first < distinct; first += n) {
        n = count_regular(&places[first], distinct - first);
        vec_push(arena, rows, make_row(arena, &places[first], &terms[first], n));
    }
}

bool emit_sums_together(Arena *arena, SumsTogether *together, const Inst *inst, SumRows *rows) {
    *rows = (SumRows){0};
    if (!emit_sum_waits(together, inst)) return false;
    vec_push(arena, &together->waiting, inst);
    if (is_followed(together, inst)) return true;
    make_rows(arena, together, rows);
    together->waiting.count = 0;
    return true;
}
