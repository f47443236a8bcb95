/* Rounds of a loop as lanes: what a round does, as a function of its own, and the loop that does several at
 * once.
 *
 *     for (i = 0; i < n; i++) { A(i); da = da + g(i); total = total + f(i); }
 *
 *     for (k = 0; k + 8 <= n; k += 8) {                what the lanes do:
 *         A(i .. i + 7);                                   a function of i and da, which returns da + g(i), and f(i)
 *         da8 = da8 + g(i .. i + 7);
 *         for each lane: total = total + its f(i);         the tail
 *     }
 *     da = da + the sum of da8;
 *     the loop as it was, for the rounds that are left
 *
 * A loop carries counters, which are known in every round; sums that no one has written an order of (`add
 * free`, which differentiation makes, and sums of integers), of which each lane has its own; and what else a
 * round computes from the one before, as long as that is arithmetic at the end of it: the tail, which is done
 * for one lane after the other, so that it gives what it gave before, bit by bit. */
#include "opt/lanes.h"

static const Region *body_of(const Rounds *rounds) { return rounds->loop->regions[1]; }

/* ---- what follows from the rounds before */

typedef struct Survey {
    Lanes *lanes;
    Map dependent; /* Val: it is not known before the round before is done */
    int *uses;
} Survey;

static bool depends(const Survey *survey, const Val *v) { return map_has(&survey->dependent, PTR_KEY(v)); }

static void note(Survey *survey, const Val *v) {
    map_put(survey->lanes->scratch, &survey->dependent, PTR_KEY(v), survey);
}

static bool uses_one(const void *values, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (map_has(values, PTR_KEY(inst_operand(inst, i)))) return true;
    return false;
}

bool lanes_uses_any(const Map *values, const Inst *inst) {
    return uses_one(values, inst) || inst_find(inst, uses_one, values);
}

static void find_tail(Survey *survey) {
    Lanes *lanes = survey->lanes;
    Rounds *rounds = lanes->rounds;
    for (Inst *inst = body_of(rounds)->first; inst != body_of(rounds)->last; inst = inst->next) {
        if (!lanes_uses_any(&survey->dependent, inst)) continue;
        if (inst->nregions || !op_has(inst->op, OP_PURE) || ir_target(inst->results[0]->type))
            lanes_decline(lanes, inst, "a round needs what the one before has computed");
        for (int i = 0; i < inst->nresults; i++) note(survey, inst->results[i]);
        vec_push(lanes->scratch, &rounds->tail, inst);
    }
}

/* Can it be added to in any order? */
static bool is_free(const Inst *inst) {
    bool is_sum = inst->op == OP_add || inst->op == OP_sub;
    return is_sum && (inst_has(inst, INST_FREE) || type_is_integer(type_element(inst->results[0]->type)));
}

/* What of such a sum is the sum before; NULL: it is none. */
static Val *summand(const Survey *survey, const Val *v) {
    if (v->kind != VAL_inst || survey->uses[v->id] != 1 || !is_free(v->inst)) return NULL;
    Val *a = inst_operand(v->inst, 0), *b = inst_operand(v->inst, 1);
    if (depends(survey, a) == depends(survey, b) || (v->inst->op == OP_sub && depends(survey, b)))
        return NULL;
    return depends(survey, a) ? a : b;
}

static bool is_sum(const Survey *survey, int index) {
    const Region *body = body_of(survey->lanes->rounds);
    const Val *v = inst_operand(body->last, index), *start = body->params[index];
    if (v == start) return false;
    while (v && v != start) v = summand(survey, v);
    return v && survey->uses[start->id] == 1;
}

static void drop_from_tail(Rounds *rounds, const Inst *inst) {
    int kept = 0;
    for (int i = 0; i < rounds->tail.count; i++)
        if (rounds->tail.at[i] != inst) rounds->tail.at[kept++] = rounds->tail.at[i];
    rounds->tail.count = kept;
}

/* Each lane adds up by itself. */
static void take_sum(const Survey *survey, int index) {
    Rounds *rounds = survey->lanes->rounds;
    const Val *v = inst_operand(body_of(rounds)->last, index);
    for (; v != body_of(rounds)->params[index]; v = summand(survey, v)) drop_from_tail(rounds, v->inst);
    rounds->kinds[index] = CARRIED_sum;
    rounds->nsums++;
}

static bool is_counter(const Rounds *rounds, int index, int64_t *step) {
    const Type *type = body_of(rounds)->params[index]->type;
    return type_is_integer(type) && type_bits(type) >= 32 && loop_step(rounds->loop, index, step) &&
           *step >= -INT16_MAX && *step <= INT16_MAX;
}

static bool *find_counters(Lanes *lanes) {
    const Rounds *rounds = lanes->rounds;
    bool *counts = arena_array(lanes->scratch, bool, rounds->loop->nargs + 1);
    for (int i = 0; i < rounds->loop->nargs; i++) counts[i] = is_counter(rounds, i, &rounds->steps[i]);
    return counts;
}

static void give(Survey *survey, Val *v) {
    Rounds *rounds = survey->lanes->rounds;
    if (inst_contains(rounds->loop, v) && !depends(survey, v))
        vec_push(survey->lanes->scratch, &rounds->given, v);
}

/* What a round computes by itself, and the tail or the next round takes. */
static void find_given(Survey *survey) {
    const Rounds *rounds = survey->lanes->rounds;
    for (int i = 0; i < rounds->tail.count; i++)
        for (int k = 0; k < rounds->tail.at[i]->nargs; k++) give(survey, inst_operand(rounds->tail.at[i], k));
    for (int i = 0; i < rounds->loop->nargs; i++)
        if (rounds->kinds[i] == CARRIED_in_order) give(survey, inst_operand(body_of(rounds)->last, i));
}

static void sort_carried(Lanes *lanes) {
    Rounds *rounds = lanes->rounds;
    Inst *loop = rounds->loop;
    lanes_take_out_sums(lanes, find_counters(lanes));
    lanes_take_out_choices(lanes, find_counters(lanes));
    const bool *counts = find_counters(lanes);
    Survey survey = {.lanes = lanes, .uses = region_count_uses(lanes->scratch, loop->regions[1])};
    for (int i = 0; i < loop->nargs; i++) {
        rounds->kinds[i] = counts[i] ? CARRIED_counter : CARRIED_in_order;
        rounds->ncounters += counts[i];
        if (!counts[i]) note(&survey, body_of(rounds)->params[i]);
        if (!type_is_scalar(part_type(loop->results[i]->type)))
            lanes_decline(lanes, loop, "rounds hand on an address");
    }
    find_tail(&survey);
    for (int i = 0; i < loop->nargs && !lanes->why; i++)
        if (rounds->kinds[i] == CARRIED_in_order && is_sum(&survey, i)) take_sum(&survey, i);
    find_given(&survey);
}

/* ---- a round as a function */

typedef struct Item {
    Lanes *lanes;
    CloneMap map;
    VEC(Param) params;
    ValVec stands_for; /* by parameter: what it is in the function of the loop */
} Item;

static void add_param(Item *item, Val *v) {
    vec_push(item->lanes->scratch, &item->params,
             ((Param){.name = v->name, .type = v->type, .flags = ir_own_flag(v)}));
    vec_push(item->lanes->scratch, &item->stands_for, v);
}

static void capture(void *user, Inst *inst) {
    Item *item = user;
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = inst_operand(inst, i);
        if (val_is_const(v) || inst_contains(item->lanes->rounds->loop, v) ||
            map_has(&item->map.vals, PTR_KEY(v)))
            continue;
        clone_map_val(&item->map, v, v); /* seen */
        add_param(item, v);
    }
}

static void add_params(Item *item) {
    const Rounds *rounds = item->lanes->rounds;
    Inst *loop = rounds->loop;
    for (int kind = CARRIED_counter; kind <= CARRIED_sum; kind++)
        for (int i = 0; i < loop->nargs; i++)
            if (rounds->kinds[i] == kind) add_param(item, body_of(rounds)->params[i]);
    region_walk(loop->regions[1], capture, item);
}

static bool is_in_tail(const Rounds *rounds, const Inst *inst) {
    for (int i = 0; i < rounds->tail.count; i++)
        if (rounds->tail.at[i] == inst) return true;
    return false;
}

static void fill_item(Item *item, Func *func) {
    const Rounds *rounds = item->lanes->rounds;
    const Inst *end = body_of(rounds)->last;
    for (int i = 0; i < item->params.count; i++)
        clone_map_val(&item->map, item->stands_for.at[i], func->body->params[i]);
    for (Inst *inst = body_of(rounds)->first; inst != end; inst = inst->next)
        if (!is_in_tail(rounds, inst)) inst_append(func->body, clone_inst(&item->map, inst));
    ValVec results = {0};
    for (int i = 0; i < end->nargs; i++)
        if (rounds->kinds[i] == CARRIED_sum)
            vec_push(item->lanes->scratch, &results, clone_val(&item->map, end->args[i]));
    for (int i = 0; i < rounds->given.count; i++)
        vec_push(item->lanes->scratch, &results, clone_val(&item->map, rounds->given.at[i]));
    Builder b = build_at_end(func->body);
    build_return(&b, results.at, results.count);
}

void lanes_make_item(Lanes *lanes) {
    Rounds *rounds = lanes->rounds;
    rounds->kinds = arena_array(lanes->scratch, uint8_t, rounds->loop->nargs + 1);
    rounds->steps = arena_array(lanes->scratch, int64_t, rounds->loop->nargs + 1);
    sort_carried(lanes);
    if (lanes->why) return;
    Func *func = arena_new(lanes->module->arena, Func); /* no part of the module */
    *func = (Func){.name = rounds->func->name, .module = lanes->module, .loc = rounds->loop->loc, .nvals = 1};
    func->flags = FUNC_NORMAL | (rounds->func->flags & FUNC_PRECISE);
    Item item = {.lanes = lanes, .map = {.module = lanes->module, .func = func}};
    add_params(&item);
    func_set_params(func, item.params.at, item.params.count);
    func_begin(func);
    fill_item(&item, func);
    rounds->outside = item.stands_for.at;
    for (int i = 0; i < rounds->ncounters + rounds->nsums; i++) rounds->outside[i] = NULL;
    lanes->from = func;
}

/* ---- the loop over several rounds */

typedef struct Wide {
    Lanes *lanes;
    Inst *loop;
    Val **carried; /* by carried value of the old loop, at this point; of sums: the first part */
    int *at;       /* where that is among those of the wide loop */
} Wide;

static Val *integer(const Lanes *lanes, const Type *type, int64_t value) {
    return ir_const_int(lanes->module, type, value);
}

/* ---- what it asks before */

/* A value of a round, in the first one. */
static Val *in_first_round(const Rounds *rounds, CloneMap *map, Val *v) {
    v = ir_resolve(v);
    if (val_is_const(v) || map_has(&map->vals, PTR_KEY(v))) return clone_val(map, v);
    for (int i = 0; i < v->inst->nargs; i++) in_first_round(rounds, map, v->inst->args[i]);
    inst_insert_before(rounds->loop, clone_inst(map, v->inst));
    return clone_val(map, v);
}

static CloneMap values_of_first_round(const Lanes *lanes) {
    const Rounds *rounds = lanes->rounds;
    CloneMap map = {.module = lanes->module, .func = rounds->func};
    Val **params = lanes->from->body->params;
    for (int i = 0, counter = 0; i < rounds->loop->nargs; i++)
        if (rounds->kinds[i] == CARRIED_counter)
            clone_map_val(&map, params[counter++], inst_operand(rounds->loop, i));
    for (int i = rounds->ncounters + rounds->nsums; i < lanes->from->body->nparams; i++)
        clone_map_val(&map, params[i], rounds->outside[i]);
    return map;
}

/* Are the elements of all rounds in range? The least and the greatest index are computed in 64 bits; if these
 * are those of elements, they are what the program computes in 32, and all others are in between. `way`: from
 * the first round to the last. */
static Val *is_in_reach(const Lanes *lanes, Builder *b, CloneMap *first, const Reach *reach, Val *way) {
    const Type *word = way->type;
    Val *index = in_first_round(lanes->rounds, first, reach->index),
        *moved = build_binary(b, OP_mul, way, integer(lanes, word, reach->step));
    Val *low = build_convert(b, index, word),
        *high = build_binary(b, OP_add, low, integer(lanes, word, reach->more));
    if (reach->step < 0) low = build_binary(b, OP_add, low, moved);
    else high = build_binary(b, OP_add, high, moved);
    const Type *length_type = type_basic(lanes->module->types, TYPE_uint);
    Val *length = build_convert(b, build_op(b, OP_buffer_length, length_type, &reach->buffer, 1), word);
    if (type_is_signed(index->type))
        length = build_binary(b, OP_min, length, integer(lanes, word, (int64_t)INT32_MAX + 1));
    Val *is_above = build_binary(b, OP_le, integer(lanes, word, 0), low);
    Val *is_below = build_binary(b, OP_lt, high, length);
    return build_binary(b, OP_and, is_above, is_below);
}

/* How many rounds are done together. */
static Val *rounds_together(const Lanes *lanes, Builder *b, Val *trip) {
    const Rounds *rounds = lanes->rounds;
    Val *count = build_binary(b, OP_and, trip, integer(lanes, trip->type, -(int64_t)lanes->width)),
        *none = ir_const_zero(lanes->module, trip->type);
    const Type *type = type_basic(lanes->module->types, TYPE_bool);
    for (int i = 0; i < rounds->apart.count; i += 2)
        count = build_select(b, build_op(b, OP_buffers_apart, type, rounds->apart.at + i, 2), count, none);
    for (int i = 0; i < lanes->ones.count; i++) {
        Val *one = rounds->outside[lanes->ones.at[i]->index];
        count = build_select(b, build_binary(b, OP_eq, one, integer(lanes, one->type, 1)), count, none);
    }
    if (rounds->reaches.count == 0) return count;
    CloneMap first = values_of_first_round(lanes);
    Val *way = build_binary(b, OP_sub, trip, integer(lanes, trip->type, 1)),
        *is_short = build_binary(b, OP_lt, trip, integer(lanes, trip->type, (int64_t)1 << 32));
    count = build_select(b, is_short, count, none); /* so that nothing overflows */
    for (int i = 0; i < rounds->reaches.count; i++)
        count = build_select(b, is_in_reach(lanes, b, &first, &rounds->reaches.at[i], way), count, none);
    return count;
}

/* ---- the loop */

static void begin_loop(Wide *wide, Builder *b, Val *trip) {
    Lanes *lanes = wide->lanes;
    const Rounds *rounds = lanes->rounds;
    Val *end = rounds_together(lanes, b, trip);
    ValVec initial = {0};
    vec_push(lanes->scratch, &initial, ir_const_zero(lanes->module, trip->type));
    for (int i = 0; i < rounds->loop->nargs; i++) {
        const Type *type = rounds->loop->results[i]->type;
        wide->at[i] = initial.count;
        if (rounds->kinds[i] != CARRIED_sum)
            vec_push(lanes->scratch, &initial, inst_operand(rounds->loop, i));
        for (int k = 0; k < parts_of(type) && rounds->kinds[i] == CARRIED_sum; k++)
            vec_push(lanes->scratch, &initial,
                     ir_const_zero(lanes->module, lanes_row(lanes, part_type(type))));
    }
    wide->loop = build_loop(b, initial.at, initial.count, false);
    wide->loop->loc = rounds->loop->loc;
    wide->loop->hints.wide = true;
    Builder test = build_at_end(wide->loop->regions[0]);
    Val *go = build_binary(&test, OP_lt, wide->loop->regions[0]->params[0], end);
    build_yield(&test, &go, 1);
}

/* first, first + step, first + 2 step ... */
static Val *row_of_counter(Lanes *lanes, Val *first, int64_t step) {
    Val *numbers[MOST_LANES];
    const Type *row = lanes_row(lanes, first->type);
    for (int i = 0; i < lanes->width; i++) numbers[i] = integer(lanes, first->type, i * step);
    Val *firsts = build_splat(&lanes->b, row, first);
    Val *steps = build_vec(&lanes->b, row, numbers);
    return build_binary(&lanes->b, OP_add, firsts, steps);
}

static void define_params(const Wide *wide) {
    Lanes *lanes = wide->lanes;
    const Rounds *rounds = lanes->rounds;
    const Region *item = lanes->from->body;
    Val **params = wide->loop->regions[1]->params;
    int counter = 0, sum = rounds->ncounters;
    for (int i = 0; i < rounds->loop->nargs; i++) {
        if (rounds->kinds[i] == CARRIED_counter) {
            Val *row = row_of_counter(lanes, params[wide->at[i]], rounds->steps[i]);
            lanes_define(lanes, item->params[counter++], &row);
        } else if (rounds->kinds[i] == CARRIED_sum) {
            lanes_define(lanes, item->params[sum++], params + wide->at[i]);
        }
    }
    for (int i = sum; i < item->nparams; i++) {
        Val *outside = rounds->outside[i];
        bool is_one = lanes_is_one(lanes, item->params[i]);
        clone_map_val(&lanes->map, item->params[i], is_one ? integer(lanes, outside->type, 1) : outside);
    }
}

/* One lane after the other. Leaves what is carried in order in `carried`. */
static void do_tail(const Wide *wide) {
    Lanes *lanes = wide->lanes;
    const Rounds *rounds = lanes->rounds;
    const Inst *end = body_of(rounds)->last, *ret = lanes->from->body->last;
    for (int lane = 0; lane < lanes->width; lane++) {
        CloneMap map = {.module = lanes->module, .func = rounds->func};
        for (int i = 0; i < end->nargs; i++)
            if (rounds->kinds[i] == CARRIED_in_order)
                clone_map_val(&map, body_of(rounds)->params[i], wide->carried[i]);
        for (int i = 0; i < rounds->given.count; i++)
            clone_map_val(&map, rounds->given.at[i],
                          lanes_of_lane(lanes, inst_operand(ret, rounds->nsums + i), lane));
        for (int i = 0; i < rounds->tail.count; i++)
            inst_append(lanes->b.region, clone_inst(&map, rounds->tail.at[i]));
        for (int i = 0; i < end->nargs; i++)
            if (rounds->kinds[i] == CARRIED_in_order) wide->carried[i] = clone_val(&map, end->args[i]);
    }
}

static Val *moved_on(Lanes *lanes, Val *v, int64_t by) {
    return build_binary(&lanes->b, OP_add, v, integer(lanes, v->type, by));
}

static void end_round(const Wide *wide) {
    Lanes *lanes = wide->lanes;
    const Rounds *rounds = lanes->rounds;
    const Inst *ret = lanes->from->body->last;
    Val **params = wide->loop->regions[1]->params;
    ValVec next = {0};
    int sum = 0;
    vec_push(lanes->scratch, &next, moved_on(lanes, params[0], lanes->width));
    for (int i = 0; i < rounds->loop->nargs; i++) {
        Val *now = params[wide->at[i]];
        if (rounds->kinds[i] == CARRIED_counter)
            vec_push(lanes->scratch, &next, moved_on(lanes, now, lanes->width * rounds->steps[i]));
        else if (rounds->kinds[i] == CARRIED_in_order) vec_push(lanes->scratch, &next, wide->carried[i]);
        else {
            for (int k = 0; k < parts_of(rounds->loop->results[i]->type); k++)
                vec_push(lanes->scratch, &next, lanes_spread(lanes, inst_operand(ret, sum), k));
            sum++;
        }
    }
    build_yield(&lanes->b, next.at, next.count);
}

/* What the loop had at the beginning, and what lanes have added. */
static Val *whole_sum(Lanes *lanes, Val *start, Val *const *rows) {
    Val *parts[MOST_PARTS];
    for (int k = 0; k < parts_of(start->type); k++) parts[k] = lanes_sum(lanes, rows[k]);
    Val *added = start->type->kind == TYPE_vector ? build_vec(&lanes->b, start->type, parts) : parts[0];
    return type_is_integer(part_type(start->type)) ? build_binary(&lanes->b, OP_add, start, added)
                                                   : build_sum(&lanes->b, start, added);
}

void lanes_make_rounds(Lanes *lanes) {
    Rounds *rounds = lanes->rounds;
    Inst *loop = rounds->loop;
    int count = loop->nargs + 1;
    Wide wide = {.lanes = lanes,
                 .carried = arena_array(lanes->scratch, Val *, count),
                 .at = arena_array(lanes->scratch, int, count)};
    rounds->before = loop->prev;
    rounds->initial = arena_copy(lanes->scratch, loop->args, sizeof *loop->args * (size_t)loop->nargs);
    Val *trip = loop_trip(loop);
    Builder b = build_before(loop);
    b.loc = loop->loc;
    lanes->to = rounds->func;
    begin_loop(&wide, &b, trip);
    lanes_widen_at(lanes, build_at_end(wide.loop->regions[1]));
    lanes->b.loc = loop->loc;
    define_params(&wide);
    lanes_widen_body(lanes);
    if (lanes->why) return;
    for (int i = 0; i < loop->nargs; i++) wide.carried[i] = wide.loop->regions[1]->params[wide.at[i]];
    do_tail(&wide);
    end_round(&wide);
    lanes_write_sums(wide.loop->regions[1]);
    loop->hints.few = true;
    lanes->b = build_before(loop);
    for (int i = 0; i < loop->nargs; i++) {
        Val *const *result = wide.loop->results + wide.at[i];
        loop->args[i] =
            rounds->kinds[i] == CARRIED_sum ? whole_sum(lanes, inst_operand(loop, i), result) : *result;
    }
}

void lanes_undo_rounds(Lanes *lanes) {
    Rounds *rounds = lanes->rounds;
    Inst *loop = rounds->loop;
    while (loop->prev != rounds->before) inst_remove(loop->prev);
    for (int i = 0; i < loop->nargs; i++) loop->args[i] = rounds->initial[i];
}
