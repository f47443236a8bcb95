/* Elements that follow each other, as a rule.
 *
 *     a.data[a.offset + y * a.strides[0] + x * a.strides[1]]
 *
 * Of a tensor that the host has bound, nobody knows how far apart its elements are, and rounds of a loop over
 * x would read and write one number each, anywhere. Mostly the last stride is one. Where several rounds gain
 * much by that, their form takes it for one, and the loop asks before it begins; if it is another, it does one
 * round at a time.
 *
 * The last product of a sum is the one whose factor is taken for one: what follows in the program runs fastest
 * in memory. So a loop over y assumes nothing, and lanes_loop.c looks at the loops in it.
 *
 * The wide form of a kernel asks itself, each time, and else does its lanes one by one. It can ask for what it
 * was given: uniforms, parameters, what is computed from these. Where each of its threads has some numbers in
 * the last dimension, t[i, 0] to t[i, 2], that stride is taken for one, too; and where threads write, that of
 * the dimension they follow each other in for at least as large as what each of them has there (lanes_rows.c). */
#include "opt/lanes.h"

/* An index: what it ends with, and what the number of the round is multiplied by. */
typedef struct Index {
    const Lanes *lanes;
    Val *last;    /* factor of the last term that is no constant; NULL: it has none */
    Val *inner;   /* ... if it is a constant times that; NULL: it is not */
    ValVec outer; /* what was so, and has another behind it */
    Val *round;   /* factor of the counter of rounds, in all terms that have it */
    bool counts, lost;
} Index;

typedef struct Search {
    Lanes *lanes;
    ValVec found, refused;
} Search;

static bool has(const ValVec *vals, const Val *v) {
    for (int i = 0; i < vals->count; i++)
        if (vals->at[i] == v) return true;
    return false;
}

bool lanes_is_one(const Lanes *lanes, const Val *v) { return has(&lanes->ones, lanes_unconverted(v)); }

Val *lanes_times_one(const Lanes *lanes, const Inst *product) {
    for (int i = 0; i < 2; i++)
        if (lanes_is_one(lanes, inst_operand(product, i))) return inst_operand(product, 1 - i);
    return NULL;
}

/* Of a kernel: from an array that has others before it. Who adds an offset to an index reads it elsewhere. */
static bool is_inner_stride(const Lanes *lanes, const Val *v) {
    int64_t number;
    if (lanes->rounds || v->kind != VAL_inst || v->inst->op != OP_load || !lanes_given(lanes, v))
        return false;
    const Val *address = inst_operand(v->inst, 0);
    return address->kind == VAL_inst && address->inst->op == OP_elem &&
           val_is_int(inst_operand(address->inst, 1), &number) && number > 0;
}

static Val *inner_stride(const Lanes *lanes, const Val *v, Val *factor) {
    if (val_is_const(v)) return is_inner_stride(lanes, factor) ? factor : NULL;
    return !factor && is_inner_stride(lanes, v) ? v->inst->results[0] : NULL;
}

static void add_term(void *user, const Val *v, Val *factor, bool is_multiple) {
    Index *index = user;
    const Lanes *lanes = index->lanes;
    if (index->inner) vec_push(lanes->scratch, &index->outer, index->inner);
    index->last = is_multiple ? NULL : factor;
    index->inner = is_multiple ? NULL : inner_stride(lanes, v, factor);
    if (!varies(lanes, v)) return;
    bool is_counter = lanes_step_of(lanes, v) == STEP_one;
    bool is_other = index->counts && index->round != factor;
    index->lost |= !is_counter || is_multiple || is_other;
    index->round = factor;
    index->counts = true;
}

static void look(void *user, Inst *inst) {
    Search *search = user;
    if (inst->op != OP_buffer_elem || !varies(search->lanes, inst->results[0])) return;
    Index index = {.lanes = search->lanes};
    lanes_terms(search->lanes, inst->args[1], add_term, &index);
    for (int i = 0; i < index.outer.count; i++)
        vec_push(search->lanes->scratch, &search->refused, index.outer.at[i]);
    if (index.inner) vec_push(search->lanes->scratch, &search->found, index.inner);
    if (!index.round) return;
    bool is_last = !index.lost && index.last == index.round;
    vec_push(search->lanes->scratch, is_last ? &search->found : &search->refused, index.round);
}

/* ---- of kernels: how far threads are apart */

static Val *stride_of_lanes(Lanes *lanes, const Inst *elem) {
    Index index = {.lanes = lanes};
    lanes_terms(lanes, elem->args[1], add_term, &index);
    bool is_one = index.round && lanes_is_one(lanes, index.round);
    return index.lost || is_one ? NULL : index.round;
}

static LaneStride *find_far(const Lanes *lanes, const Val *stride) {
    for (int i = 0; i < lanes->far.count; i++)
        if (lanes->far.at[i].stride == stride) return &lanes->far.at[i];
    return NULL;
}

int64_t lanes_far(const Lanes *lanes, const Val *v) {
    const LaneStride *far = find_far(lanes, lanes_unconverted(v));
    return far ? far->most - far->least + 1 : 0;
}

static void look_at_write(void *user, Inst *inst) {
    Lanes *lanes = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *address = inst_operand(inst, i);
        bool is_element = address->kind == VAL_inst && address->inst->op == OP_buffer_elem;
        if (!is_element || !varies(lanes, address) || ir_role(inst, i) == ROLE_read) continue;
        Val *stride = stride_of_lanes(lanes, address->inst);
        if (stride && !find_far(lanes, stride))
            vec_push(lanes->scratch, &lanes->far, ((LaneStride){.stride = stride}));
    }
}

static void look_at_number(void *user, Inst *inst) {
    Lanes *lanes = user;
    if (inst->op != OP_buffer_elem || !varies(lanes, inst->results[0])) return;
    LaneStride *far = find_far(lanes, stride_of_lanes(lanes, inst));
    int64_t number = lanes_number_beside(lanes, inst);
    if (far && number < far->least) far->least = number;
    if (far && number > far->most) far->most = number;
}

static void suppose(Lanes *lanes, ValVec ones) {
    lanes->ones = ones;
    lanes->far.count = 0;
    if (!lanes->rounds && ones.count) {
        region_walk(lanes->from->body, look_at_write, lanes);
        region_walk(lanes->from->body, look_at_number, lanes);
    }
    if (!lanes->rounds) lanes_find_rows(lanes);
}

/* ---- what is taken for one */

/* With two times the gain, it does not matter what becomes of other strides; nor where lanes were asked for. */
static bool gains_enough(Lanes *lanes, ValVec ones) {
    static const double LEAST = 1.3, WHERE_OTHERS_GAIN = 2;
    double before = lanes_gain(lanes);
    const char *why = lanes_not_worth_it(lanes);
    suppose(lanes, ones);
    return lanes->options->width || lanes_gain(lanes) / before >= (why ? LEAST : WHERE_OTHERS_GAIN);
}

void lanes_take_for_ones(Lanes *lanes) {
    Search search = {.lanes = lanes};
    ValVec ones = {0};
    region_walk(lanes->from->body, look, &search);
    for (int i = 0; i < search.found.count; i++) {
        Val *v = search.found.at[i];
        if (!has(&search.refused, v) && !has(&ones, v)) vec_push(lanes->scratch, &ones, v);
    }
    suppose(lanes, (ValVec){0});
    if (ones.count && !gains_enough(lanes, ones)) suppose(lanes, (ValVec){0});
}

/* ---- of kernels: what is done where they are not */

static CloneMap of_params(const Lanes *lanes) {
    CloneMap map = {.module = lanes->module, .func = lanes->to};
    for (int i = 0; i < lanes->from->nparams; i++)
        clone_map_val(&map, lanes->from->body->params[i], lanes->to->body->params[i]);
    return map;
}

static void clone_known(CloneMap *map, Builder *b, Val *v) {
    if (val_is_const(v) || map_has(&map->vals, PTR_KEY(v))) return;
    for (int i = 0; i < v->inst->nargs; i++) clone_known(map, b, ir_resolve(v->inst->args[i]));
    inst_append(b->region, clone_inst(map, v->inst));
}

typedef struct Moving {
    Module *module;
    Val *by; /* how many threads further on in x */
} Moving;

/* What the machine says is of the first lane. */
static void move_thread(void *user, Inst *inst) {
    const Moving *moving = user;
    bool is_of_thread =
        inst->op == OP_thread_id && (inst->index == 0 || inst->index == 2 || inst->index == 3);
    if (!is_of_thread) return;
    CloneMap map = {.module = moving->module, .func = inst->parent->func};
    Inst *first = clone_inst(&map, inst);
    inst_insert_before(inst, first);
    Builder b = build_before(inst);
    Val *id = first->results[0], *parts[3] = {id};
    int count = parts_of(id->type);
    for (int i = 0; i < count && count > 1; i++) parts[i] = build_extract_lane(&b, id, i);
    parts[0] = build_binary(&b, OP_add, parts[0], moving->by);
    inst->results[0]->forward = count > 1 ? build_vec(&b, id->type, parts) : parts[0];
}

static void do_one_by_one(Lanes *lanes, Region *region) {
    Builder b = build_at_end(region);
    Val *left = lanes_left_in_row(lanes, &b);
    CountLoop each = build_count(&b, 0, lanes->width);
    Val *lane = build_convert(&each.body, each.index, type_basic(lanes->module->types, TYPE_uint));
    Val *is_there = build_binary(&each.body, OP_lt, lane, left);
    Inst *branch = build_if(&each.body, is_there, NULL, 0);
    CloneMap map = of_params(lanes);
    for (Inst *inst = lanes->from->body->first; inst != lanes->from->body->last; inst = inst->next)
        inst_append(branch->regions[0], clone_inst(&map, inst));
    region_walk(branch->regions[0], move_thread, &(Moving){lanes->module, lane});
    for (int i = 0; i < branch->nregions; i++) {
        Builder end = build_at_end(branch->regions[i]);
        build_yield(&end, NULL, 0);
    }
    build_next(&each);
    build_yield(&b, NULL, 0);
}

/* As far, and not so far that indices of lanes wrap around. */
static Val *is_far(Builder *b, Val *stride, int64_t least) {
    Module *module = b->func->module;
    Val *is_most = build_binary(b, OP_le, stride, ir_const_int(module, stride->type, LANES_SMALL_STEP));
    Val *is_least = build_binary(b, OP_le, ir_const_int(module, stride->type, least), stride);
    return build_binary(b, OP_and, is_least, is_most);
}

Inst *lanes_ask_for_ones(Lanes *lanes) {
    Builder *b = &lanes->b;
    CloneMap map = of_params(lanes);
    Val *are_ones = NULL;
    for (int i = 0; i < lanes->ones.count; i++) {
        Val *one = lanes->ones.at[i];
        clone_known(&map, b, one);
        Val *is_one = build_binary(b, OP_eq, clone_val(&map, one), ir_const_int(lanes->module, one->type, 1));
        are_ones = are_ones ? build_binary(b, OP_and, are_ones, is_one) : is_one;
    }
    for (int i = 0; i < lanes->far.count; i++) {
        Val *stride = lanes->far.at[i].stride;
        clone_known(&map, b, stride);
        are_ones =
            build_binary(b, OP_and, are_ones, is_far(b, clone_val(&map, stride), lanes_far(lanes, stride)));
    }
    Inst *branch = build_if(b, are_ones, NULL, 0);
    do_one_by_one(lanes, branch->regions[1]);
    return branch;
}
