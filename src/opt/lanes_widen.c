/* The wide function: values, vectors and control flow. lanes.c tells the whole story, lanes_memory.c and
 * lanes_tape.c do the rest.
 *
 * A value that is the same for all lanes has a copy. Any other has its parts, one for a scalar, n for a
 * vector of n: a vector of lanes each, so that a varying float3 is three of them.
 *
 *     if (c) A else B       on = mask & c;  if (any(on)) A under on;  off = mask & ~c;  if (any(off)) B under off;
 *                           results: select(c, those of A, those of B)
 *     while (c) A           on = mask & c;  while (any(on)) { A under on; on = on & c }
 *                           what the loop carries: select(on, new, old)
 *
 * What A and B do is skipped if no lane is on, unless that is so little that a branch costs more. The
 * condition of a loop is written twice, before the loop and at the end of its body, so that the body knows
 * which lanes are on. */
#include "opt/lanes.h"

#include <math.h>

static void widen_region(Lanes *lanes, const Region *region);

/* ---- values */

const Type *lanes_row(Lanes *lanes, const Type *scalar) {
    return type_vector(lanes->module->types, scalar, lanes->width);
}

Val *lanes_same(Lanes *lanes, Val *v) { return clone_val(&lanes->map, v); }

/* For what was not made any more, since it turned out that the function cannot be. */
static Val *anything(Lanes *lanes, Val *v) {
    const Type *scalar = part_type(v->type);
    return type_is_scalar(scalar) ? ir_const_zero(lanes->module, lanes_row(lanes, scalar)) : v;
}

Val *lanes_part(Lanes *lanes, Val *v, int part) {
    v = ir_resolve(v);
    if (varies(lanes, v)) return lanes->parts[v->id] ? lanes->parts[v->id][part] : anything(lanes, v);
    Val *same = lanes_same(lanes, v);
    return v->type->kind == TYPE_vector ? build_extract_lane(&lanes->b, same, part) : same;
}

Val *lanes_spread(Lanes *lanes, Val *v, int part) {
    Val *value = lanes_part(lanes, v, part);
    if (varies(lanes, ir_resolve(v)) >> part & 1) return value;
    return build_splat(&lanes->b, lanes_row(lanes, value->type), value);
}

static Val *constant_mask(Lanes *lanes, bool on) {
    const Type *boolean = type_basic(lanes->module->types, TYPE_bool);
    return build_splat(&lanes->b, lanes_row(lanes, boolean), ir_const_int(lanes->module, boolean, on));
}

Val *lanes_mask(Lanes *lanes) { return lanes->mask ? lanes->mask : constant_mask(lanes, true); }

Val *lanes_where_on(Lanes *lanes, Val *row, Val *other) {
    return lanes->mask ? build_select(&lanes->b, lanes->mask, row, other) : row;
}

/* Also of what turns out to be the same for all, though some of what it is made from is not. */
void lanes_define(Lanes *lanes, const Val *old, Val *const *parts) {
    int count = parts_of(old->type);
    if (!varies(lanes, old)) {
        Val *whole = old->type->kind == TYPE_vector ? build_vec(&lanes->b, old->type, parts) : parts[0];
        clone_map_val(&lanes->map, (Val *)(uintptr_t)old, whole);
        return;
    }
    lanes->parts[old->id] = arena_copy(lanes->scratch, parts, sizeof *parts * (size_t)count);
    for (int i = 0; i < count; i++)
        if (!parts[i]->name && parts[i]->kind != VAL_const && count == 1) parts[i]->name = old->name;
}

void lanes_copy(Lanes *lanes, Inst *inst) { inst_append(lanes->b.region, clone_inst(&lanes->map, inst)); }

/* ---- operations on each lane */

static void widen_elementwise(Lanes *lanes, Inst *inst) {
    const Val *result = inst->results[0];
    uint32_t bits = varies(lanes, result);
    Val *parts[MOST_PARTS];
    for (int i = 0; i < parts_of(result->type); i++) {
        Val *args[3];
        bool wide = bits >> i & 1;
        for (int k = 0; k < inst->nargs; k++) {
            bool one = inst->args[k]->type->kind != TYPE_vector; /* the condition of a select */
            args[k] = wide ? lanes_spread(lanes, inst->args[k], one ? 0 : i)
                           : lanes_part(lanes, inst->args[k], one ? 0 : i);
        }
        const Type *type = part_type(result->type);
        bool any_order = inst_is_free_sum(inst);
        if (any_order && inst->op == OP_sub) args[1] = build_unary(&lanes->b, OP_neg, args[1]);
        parts[i] = any_order ? build_sum(&lanes->b, args[0], args[1])
                             : build_op(&lanes->b, (Op)inst->op, wide ? lanes_row(lanes, type) : type, args,
                                        inst->nargs);
    }
    lanes_define(lanes, result, parts);
}

/* Parts of the same size; others would have to be cut. */
static void widen_bitcast(Lanes *lanes, Inst *inst) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    bool alike = type_is_scalar(part_type(from)) && type_is_scalar(part_type(to)) &&
                 parts_of(from) == parts_of(to) && part_type(from)->kind != TYPE_bool &&
                 part_type(to)->kind != TYPE_bool;
    if (alike) widen_elementwise(lanes, inst);
    else lanes_decline(lanes, inst, "bits are read as a type of another shape");
}

static Val *uint_const(Lanes *lanes, int64_t value) {
    return ir_const_int(lanes->module, type_basic(lanes->module->types, TYPE_uint), value);
}

/* 0, 1, 2 ... */
static Val *lane_numbers(Lanes *lanes) {
    Val *numbers[MOST_LANES];
    for (int i = 0; i < lanes->width; i++) numbers[i] = uint_const(lanes, i);
    return build_vec(&lanes->b, lanes_row(lanes, type_basic(lanes->module->types, TYPE_uint)), numbers);
}

/* That of the first lane comes from the machine, the others follow. */
static void widen_thread_id(Lanes *lanes, Inst *inst) {
    Val *parts[3];
    Inst *copy = clone_inst(&lanes->map, inst);
    inst_append(lanes->b.region, copy);
    Val *id = copy->results[0];
    const Type *row = lanes_row(lanes, type_basic(lanes->module->types, TYPE_uint));
    bool is_vector = id->type->kind == TYPE_vector;
    Val *first = is_vector ? build_extract_lane(&lanes->b, id, 0) : id;
    Val *firsts = build_splat(&lanes->b, row, first);
    parts[0] = build_binary(&lanes->b, OP_add, firsts, lane_numbers(lanes));
    for (int i = 1; i < 3 && is_vector; i++) parts[i] = build_extract_lane(&lanes->b, id, i);
    lanes_define(lanes, inst->results[0], parts);
}

/* ---- vectors of the program: their parts move about */

/* One of several by an index that may differ: a chain of choices. */
static Val *chosen_part(Lanes *lanes, Val *vector, Val *index) {
    int last = parts_of(vector->type) - 1;
    Val *value = lanes_spread(lanes, vector, last), *at = lanes_spread(lanes, index, 0);
    for (int i = last - 1; i >= 0; i--) {
        Val *number =
            build_splat(&lanes->b, at->type, ir_const_int(lanes->module, type_element(at->type), i));
        Val *is_it = build_binary(&lanes->b, OP_eq, at, number);
        value = build_select(&lanes->b, is_it, lanes_spread(lanes, vector, i), value);
    }
    return value;
}

static void insert_chosen(Lanes *lanes, Inst *inst, Val **parts) {
    int last = parts_of(inst->args[0]->type) - 1;
    Val *at = lanes_spread(lanes, inst->args[1], 0), *added = lanes_spread(lanes, inst->args[2], 0);
    const Type *type = type_element(at->type);
    for (int i = 0; i <= last; i++) {
        Val *number = build_splat(&lanes->b, at->type, ir_const_int(lanes->module, type, i));
        Val *is_it = build_binary(&lanes->b, OP_eq, at, number);
        if (i == last) { /* also for all that are out of range */
            const Type *bits = type_is_signed(type) ? lanes_row(lanes, type) : NULL;
            Val *above = build_binary(&lanes->b, OP_le, number, at);
            if (bits) {
                Val *zero = ir_const_zero(lanes->module, bits);
                above = build_binary(&lanes->b, OP_or, above, build_binary(&lanes->b, OP_lt, at, zero));
            }
            is_it = above;
        }
        parts[i] = build_select(&lanes->b, is_it, added, lanes_spread(lanes, inst->args[0], i));
    }
}

static bool constant_index(const Inst *inst, int64_t *lane) {
    if (!val_is_int(ir_resolve(inst->args[1]), lane)) return false;
    int count = type_count(inst->args[0]->type);
    if (*lane < 0 || *lane >= count) *lane = count - 1;
    return true;
}

static Val *any_or_all(Lanes *lanes, const Inst *inst) {
    Val *value = lanes_spread(lanes, inst->args[0], 0);
    Op op = inst->op == OP_any ? OP_or : OP_and;
    for (int i = 1; i < parts_of(inst->args[0]->type); i++)
        value = build_binary(&lanes->b, op, value, lanes_spread(lanes, inst->args[0], i));
    return value;
}

static bool widen_vector(Lanes *lanes, Inst *inst) {
    Val *parts[MOST_PARTS] = {0};
    int count = parts_of(inst->results[0]->type);
    int64_t lane;
    switch ((Op)inst->op) {
    case OP_vec:
        for (int i = 0; i < count; i++) parts[i] = lanes_part(lanes, inst->args[i], 0);
        break;
    case OP_splat:
        for (int i = 0; i < count; i++) parts[i] = lanes_part(lanes, inst->args[0], 0);
        break;
    case OP_shuffle:
        for (int i = 0; i < count; i++) parts[i] = lanes_part(lanes, inst->args[0], inst->lanes[i]);
        break;
    case OP_extract:
        if (constant_index(inst, &lane)) parts[0] = lanes_part(lanes, inst->args[0], (int)lane);
        else parts[0] = chosen_part(lanes, ir_resolve(inst->args[0]), inst->args[1]);
        break;
    case OP_insert:
        if (!constant_index(inst, &lane)) {
            insert_chosen(lanes, inst, parts);
            break;
        }
        for (int i = 0; i < count; i++)
            parts[i] = i == lane ? lanes_part(lanes, inst->args[2], 0) : lanes_part(lanes, inst->args[0], i);
        break;
    case OP_any:
    case OP_all: parts[0] = any_or_all(lanes, inst); break;
    default: return false;
    }
    lanes_define(lanes, inst->results[0], parts);
    return true;
}

/* ---- lists of values at the end of a region */

typedef struct List {
    VEC(Val *) vals;
} List;

static void list_add(Lanes *lanes, List *list, Val *v) { vec_push(lanes->scratch, &list->vals, v); }

/* In the shape that `like` has: as it is, or its parts, each as wide as it has to be. */
static void list_value(Lanes *lanes, List *list, Val *v, const Val *like) {
    uint32_t bits = varies(lanes, like);
    if (!bits) {
        list_add(lanes, list, lanes_same(lanes, v));
        return;
    }
    for (int i = 0; i < parts_of(like->type); i++)
        list_add(lanes, list, bits >> i & 1 ? lanes_spread(lanes, v, i) : lanes_part(lanes, v, i));
}

/* Takes what stands for `old` off the list. */
static Val *const *define_from(Lanes *lanes, const Val *old, Val *const *vals) {
    if (!varies(lanes, old)) {
        clone_map_val(&lanes->map, (Val *)(uintptr_t)old, *vals);
        return vals + 1;
    }
    lanes_define(lanes, old, vals);
    return vals + parts_of(old->type);
}

static List yielded(Lanes *lanes, const Region *region, const Inst *owner) {
    List list = {0};
    for (int i = 0; i < owner->nresults; i++)
        list_value(lanes, &list, region->last->args[i], owner->results[i]);
    return list;
}

/* ---- if and switch where all lanes go the same way */

static const Type **result_types(Lanes *lanes, const Inst *inst, int *count) {
    VEC(const Type *) types = {0};
    for (int i = 0; i < inst->nresults; i++) {
        const Type *type = inst->results[i]->type;
        uint32_t bits = varies(lanes, inst->results[i]);
        if (!bits) vec_push(lanes->scratch, &types, type);
        for (int k = 0; k < parts_of(type) && bits; k++)
            vec_push(lanes->scratch, &types,
                     bits >> k & 1 ? lanes_row(lanes, part_type(type)) : part_type(type));
    }
    *count = types.count;
    return types.at;
}

static void widen_arm(Lanes *lanes, const Inst *inst, int arm, Region *into) {
    Builder outer = lanes->b;
    lanes->b = build_at_end(into);
    widen_region(lanes, inst->regions[arm]);
    List list = yielded(lanes, inst->regions[arm], inst);
    build_yield(&lanes->b, list.vals.at, list.vals.count);
    lanes->b = outer;
}

static void widen_same_way(Lanes *lanes, Inst *inst) {
    int count;
    const Type **types = result_types(lanes, inst, &count);
    Val *value = lanes_same(lanes, inst->args[0]);
    Inst *copy = inst->op == OP_if ? build_if(&lanes->b, value, types, count)
                                   : build_switch(&lanes->b, value, inst->cases, inst->ncases, types, count);
    for (int r = 0; r < inst->nregions; r++) widen_arm(lanes, inst, r, copy->regions[r]);
    Val *const *at = copy->results;
    for (int i = 0; i < inst->nresults; i++) at = define_from(lanes, inst->results[i], at);
}

/* ---- if and switch where lanes go different ways */

enum { CHEAP_ARM = 12 };

/* Nothing but arithmetic, and little of it: done for lanes that are off as well. */
static bool is_cheap(const Region *region) {
    int cost = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_yield) continue;
        if (!op_has(inst->op, OP_PURE)) return false;
        cost += op_info[inst->op].cost;
    }
    return cost <= CHEAP_ARM;
}

static Val *and_mask(Lanes *lanes, Val *condition) {
    return lanes->mask ? build_binary(&lanes->b, OP_and, lanes->mask, condition) : condition;
}

/* What an arm yields for the lanes that it is run for, and for others what there was before; NULL:
 * nothing. */
static List arm_over(Lanes *lanes, const Inst *inst, int arm, Val *condition, const List *before) {
    List list = yielded(lanes, inst->regions[arm], inst);
    for (int i = 0; i < list.vals.count && before; i++)
        list.vals.at[i] = build_select(&lanes->b, condition, list.vals.at[i], before->vals.at[i]);
    return list;
}

static List zeros(Lanes *lanes, const Type *const *types, int count) {
    List list = {0};
    for (int i = 0; i < count; i++) list_add(lanes, &list, ir_const_zero(lanes->module, types[i]));
    return list;
}

/* Around an arm for which no lane may be on. What was before stays then, without a selection. */
static List skipped_arm(Lanes *lanes, const Inst *inst, int arm, Val *condition, const List *before) {
    int count;
    const Type **types = result_types(lanes, inst, &count);
    Val *any = build_op(&lanes->b, OP_any, type_basic(lanes->module->types, TYPE_bool), &lanes->mask, 1);
    Inst *skip = build_if(&lanes->b, any, types, count);
    Builder outer = lanes->b, otherwise = build_at_end(skip->regions[1]);
    lanes->b = build_at_end(skip->regions[0]);
    widen_region(lanes, inst->regions[arm]);
    List list = arm_over(lanes, inst, arm, condition, before), nothing = zeros(lanes, types, count);
    build_yield(&lanes->b, list.vals.at, list.vals.count);
    build_yield(&otherwise, (before ? before : &nothing)->vals.at, count);
    lanes->b = outer;
    List results = {0};
    for (int i = 0; i < count; i++) list_add(lanes, &results, skip->results[i]);
    return results;
}

/* Results, with those of an arm for the lanes that the condition holds for. */
static List masked_arm(Lanes *lanes, const Inst *inst, int arm, Val *condition, const List *before) {
    Val *outer = lanes->mask;
    lanes->mask = and_mask(lanes, condition);
    List list;
    if (is_cheap(inst->regions[arm])) {
        widen_region(lanes, inst->regions[arm]);
        list = arm_over(lanes, inst, arm, condition, before);
    } else {
        list = skipped_arm(lanes, inst, arm, condition, before);
    }
    lanes->mask = outer;
    return list;
}

static void define_results(Lanes *lanes, const Inst *inst, const List *list) {
    Val *const *at = list->vals.at;
    for (int i = 0; i < inst->nresults; i++) at = define_from(lanes, inst->results[i], at);
}

/* An arm that is done in any case comes first. */
static void widen_if(Lanes *lanes, Inst *inst) {
    Val *condition = lanes_spread(lanes, inst->args[0], 0);
    Val *conditions[] = {condition, build_not(&lanes->b, condition)};
    int first = is_cheap(inst->regions[1]) ? 1 : 0;
    List results = masked_arm(lanes, inst, first, conditions[first], NULL);
    results = masked_arm(lanes, inst, 1 - first, conditions[1 - first], &results);
    define_results(lanes, inst, &results);
}

static Val *is_case(Lanes *lanes, Val *value, const SwitchCase *row) {
    Val *found = NULL;
    for (int i = 0; i < row->nvalues; i++) {
        Val *wanted = ir_const_int(lanes->module, type_element(value->type), row->values[i]);
        Val *equal = build_binary(&lanes->b, OP_eq, value, build_splat(&lanes->b, value->type, wanted));
        found = found ? build_binary(&lanes->b, OP_or, found, equal) : equal;
    }
    return found ? found : constant_mask(lanes, false);
}

static void widen_switch(Lanes *lanes, Inst *inst) {
    Val *value = lanes_spread(lanes, inst->args[0], 0), *none = constant_mask(lanes, true);
    Val **is_it = arena_array(lanes->scratch, Val *, inst->ncases + 1);
    for (int i = 0; i < inst->ncases; i++) {
        is_it[i] = is_case(lanes, value, &inst->cases[i]);
        none = build_binary(&lanes->b, OP_and, none, build_not(&lanes->b, is_it[i]));
    }
    List results = masked_arm(lanes, inst, inst->ncases, none, NULL);
    for (int i = 0; i < inst->ncases; i++) results = masked_arm(lanes, inst, i, is_it[i], &results);
    define_results(lanes, inst, &results);
}

/* ---- loops */

static List carried(Lanes *lanes, const Inst *loop, Val *const *vals) {
    List list = {0};
    for (int i = 0; i < loop->nargs; i++) list_value(lanes, &list, vals[i], loop->regions[1]->params[i]);
    return list;
}

/* What is the same for all lanes that go on need not be for those that do not. */
static Val **carried_on(Lanes *lanes, const Inst *loop) {
    Val **vals = arena_array(lanes->scratch, Val *, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) {
        bool varied = varies(lanes, loop->regions[1]->params[i]) != 0;
        vals[i] = varied ? loop->regions[1]->last->args[i] : lanes_goes_on_with(loop, i);
    }
    return vals;
}

static void define_params(Lanes *lanes, const Region *region, Val *const *vals) {
    for (int i = 0; i < region->nparams; i++) vals = define_from(lanes, region->params[i], vals);
}

/* What is the same for all lanes has the type that it had: an address that starts in a variable may go
 * elsewhere. `at` of what the wide loop carries comes first. */
static void keep_types(Lanes *lanes, const Inst *loop, Inst *wide, int at) {
    for (int i = 0; i < loop->nargs; i++) {
        const Val *param = loop->regions[1]->params[i];
        bool same = !varies(lanes, param);
        for (int r = 0; r < wide->nregions && same; r++) wide->regions[r]->params[at]->type = param->type;
        if (same) wide->results[at]->type = param->type;
        at += same ? 1 : parts_of(param->type);
    }
}

static void widen_loop_together(Lanes *lanes, Inst *inst) {
    List first = carried(lanes, inst, inst->args);
    Inst *copy = build_loop(&lanes->b, first.vals.at, first.vals.count, false);
    keep_types(lanes, inst, copy, 0);
    copy->hints = inst->hints;
    Builder outer = lanes->b;
    lanes->b = build_at_end(copy->regions[0]);
    define_params(lanes, inst->regions[0], copy->regions[0]->params);
    widen_region(lanes, inst->regions[0]);
    Val *go = lanes_same(lanes, inst->regions[0]->last->args[0]);
    build_yield(&lanes->b, &go, 1);
    lanes->b = build_at_end(copy->regions[1]);
    define_params(lanes, inst->regions[1], copy->regions[1]->params);
    widen_region(lanes, inst->regions[1]);
    List next = carried(lanes, inst, inst->regions[1]->last->args);
    build_yield(&lanes->b, next.vals.at, next.vals.count);
    lanes->b = outer;
    Val *const *at = copy->results;
    for (int i = 0; i < inst->nresults; i++) at = define_from(lanes, inst->results[i], at);
}

/* The lanes that go on: those that are on, and for which the condition holds with these values. */
static Val *still_on(Lanes *lanes, const Inst *loop, Val *const *vals, Val *on) {
    Val *outer = lanes->mask;
    lanes->mask = on;
    define_params(lanes, loop->regions[0], vals);
    widen_region(lanes, loop->regions[0]);
    Val *condition = lanes_spread(lanes, loop->regions[0]->last->args[0], 0);
    Val *result = and_mask(lanes, condition);
    lanes->mask = outer;
    return result;
}

/* What the loop carries, lane by lane. What is the same for all lanes that are on need not be for those that
 * are off: each left the loop with what it was at the time. Parts that vary keep that themselves; the others
 * are carried a second time. */
static List left_with(Lanes *lanes, const Inst *loop, Val *const *vals) {
    List list = {0};
    for (int i = 0; i < loop->nargs; i++)
        for (int k = 0; k < parts_of(loop->results[i]->type); k++)
            list_add(lanes, &list, lanes_spread(lanes, vals[i], k));
    return list;
}

static bool part_varies(const Lanes *lanes, const Inst *loop, int index, int part) {
    return varies(lanes, loop->regions[1]->params[index]) >> part & 1;
}

/* Appends the parts of `left` that the carried values do not tell. */
static void add_left(Lanes *lanes, const Inst *loop, List *to, const List *left) {
    int at = 0;
    for (int i = 0; i < loop->nargs; i++)
        for (int k = 0; k < parts_of(loop->results[i]->type); k++, at++)
            if (!part_varies(lanes, loop, i, k)) list_add(lanes, to, left->vals.at[at]);
}

/* For lanes that are off the old values stay. `old`: what the loop carries, then what lanes left with. */
static void keep_old(Lanes *lanes, const Inst *loop, List *next, Val *const *old, Val *on) {
    int at = 0;
    for (int i = 0; i < loop->nargs; i++) {
        uint32_t bits = varies(lanes, loop->regions[1]->params[i]);
        int count = bits ? parts_of(loop->results[i]->type) : 1;
        for (int k = 0; k < count; k++, at++)
            if (bits >> k & 1) next->vals.at[at] = build_select(&lanes->b, on, next->vals.at[at], old[at]);
    }
    for (; at < next->vals.count; at++)
        next->vals.at[at] = build_select(&lanes->b, on, next->vals.at[at], old[at]);
}

static List with_left(Lanes *lanes, const Inst *loop, Val *const *on_with, Val *const *vals) {
    List list = carried(lanes, loop, on_with), left = left_with(lanes, loop, vals);
    add_left(lanes, loop, &list, &left);
    return list;
}

/* What each lane left with, part by part, from what the wide loop has carried. */
static void define_left(Lanes *lanes, const Inst *loop, Val *const *carried_vals, Val *const *left) {
    for (int i = 0; i < loop->nargs; i++) {
        const Val *param = loop->regions[1]->params[i];
        Val *parts[MOST_PARTS];
        int count = parts_of(param->type);
        bool any = varies(lanes, param) != 0;
        for (int k = 0; k < count; k++) {
            bool wide = part_varies(lanes, loop, i, k);
            parts[k] = wide ? carried_vals[k] : *left++;
        }
        carried_vals += any ? count : 1;
        lanes_define(lanes, loop->results[i], parts);
    }
}

static void widen_loop_apart(Lanes *lanes, Inst *inst) {
    List plain = carried(lanes, inst, inst->args), first = with_left(lanes, inst, inst->args, inst->args);
    int ncarried = plain.vals.count, total = first.vals.count;
    Val *on = still_on(lanes, inst, first.vals.at, lanes->mask);
    Val **initial = arena_array(lanes->scratch, Val *, total + 1);
    initial[0] = on;
    if (total) memcpy(initial + 1, first.vals.at, sizeof *initial * (size_t)total);
    Inst *copy = build_loop(&lanes->b, initial, total + 1, false);
    keep_types(lanes, inst, copy, 1);
    Builder test = build_at_end(copy->regions[0]), outer = lanes->b;
    Val *any =
        build_op(&test, OP_any, type_basic(lanes->module->types, TYPE_bool), &copy->regions[0]->params[0], 1);
    build_yield(&test, &any, 1);
    Val *outer_mask = lanes->mask, **params = copy->regions[1]->params;
    lanes->b = build_at_end(copy->regions[1]);
    lanes->mask = params[0];
    define_params(lanes, inst->regions[1], params + 1);
    widen_region(lanes, inst->regions[1]);
    List next = with_left(lanes, inst, carried_on(lanes, inst), inst->regions[1]->last->args), all = {0};
    Val *goes_on = still_on(lanes, inst, next.vals.at, params[0]);
    keep_old(lanes, inst, &next, params + 1, params[0]);
    list_add(lanes, &all, goes_on);
    for (int i = 0; i < total; i++) list_add(lanes, &all, next.vals.at[i]);
    build_yield(&lanes->b, all.vals.at, all.vals.count);
    lanes->b = outer;
    lanes->mask = outer_mask;
    define_left(lanes, inst, copy->results + 1, copy->results + 1 + ncarried);
}

/* ---- the walk */

static void widen_control(Lanes *lanes, Inst *inst) {
    bool is_loop = inst->op == OP_loop, drifted = lanes->drifts;
    Val *condition = ir_resolve(is_loop ? inst->regions[0]->last->args[0] : inst->args[0]);
    bool apart = varies(lanes, condition) != 0;
    lanes->drifts |= apart && lanes->loops > 0;
    lanes->loops += is_loop;
    if (is_loop && apart) widen_loop_apart(lanes, inst);
    else if (is_loop) widen_loop_together(lanes, inst);
    else if (!apart) widen_same_way(lanes, inst);
    else if (inst->op == OP_if) widen_if(lanes, inst);
    else widen_switch(lanes, inst);
    lanes->loops -= is_loop;
    lanes->drifts = drifted;
}

/* Each lane by itself, though nothing may differ between them. */
static bool is_single(const Lanes *lanes, const Inst *inst) {
    return inst->op == OP_printf || (inst->op == OP_call && !lanes_calls_once(lanes, inst));
}

static void widen_inst(Lanes *lanes, Inst *inst) {
    lanes->b.loc = inst->loc;
    if (op_has(inst->op, OP_REGIONS)) widen_control(lanes, inst);
    else if (is_for_tape(inst)) lanes_on_tape(lanes, inst);
    else if (lanes_memory(lanes, inst)) return;
    else if (is_single(lanes, inst)) lanes_one_by_one(lanes, inst);
    else if (inst->op == OP_wave) lanes_wave(lanes, inst);
    else if (inst->nresults == 1 && lanes_is_one(lanes, inst->results[0]))
        clone_map_val(&lanes->map, inst->results[0], ir_const_int(lanes->module, inst->results[0]->type, 1));
    else if (inst->op == OP_thread_id && inst->index == 6 && lanes->waves)
        clone_map_val(&lanes->map, inst->results[0], uint_const(lanes, lanes->width));
    else if (inst->op == OP_barrier && inst->index == 1 && lanes->mask)
        lanes_decline(lanes, inst, "it waits at a barrier where items go different ways");
    else if (inst->op == OP_mul && !varies(lanes, inst->results[0]) && lanes_times_one(lanes, inst))
        clone_map_val(&lanes->map, inst->results[0], lanes_same(lanes, lanes_times_one(lanes, inst)));
    else if (!lanes_varies_here(lanes, inst)) lanes_copy(lanes, inst);
    else if (inst->op == OP_bitcast) widen_bitcast(lanes, inst);
    else if (inst->op == OP_thread_id) widen_thread_id(lanes, inst);
    else if (op_has(inst->op, OP_ELEMENTWISE) || inst->op == OP_select) widen_elementwise(lanes, inst);
    else if (!widen_vector(lanes, inst)) lanes_decline(lanes, inst, "it does what lanes cannot do together");
}

static void widen_region(Lanes *lanes, const Region *region) {
    for (Inst *inst = region->first; inst != region->last && !lanes->why; inst = inst->next)
        widen_inst(lanes, inst);
}

Val *lanes_left_in_row(Lanes *lanes, Builder *b) {
    const Type *uint = type_basic(lanes->module->types, TYPE_uint);
    Inst *id = build_inst(b, OP_thread_id, NULL, 0, 0, 0);
    id->index = 2;
    Val *first =
        build_extract_lane(b, inst_add_result(id, type_vector(lanes->module->types, uint, 3), NULL), 0);
    return build_binary(b, OP_sub, uint_const(lanes, lanes->from->group_size[0]), first);
}

/* Those that are threads of the group: the last step of a row may go beyond its end. */
static Val *lanes_in_row(Lanes *lanes) {
    Val *left = lanes_left_in_row(lanes, &lanes->b), *numbers = lane_numbers(lanes);
    return build_binary(&lanes->b, OP_lt, numbers,
                        build_splat(&lanes->b, lanes_row(lanes, left->type), left));
}

void lanes_widen_at(Lanes *lanes, Builder b) {
    lanes->parts = arena_array(lanes->scratch, Val **, lanes->from->nvals + 1);
    lanes->map = (CloneMap){.module = lanes->module, .func = lanes->to};
    lanes->types = (Map){0};
    lanes->mask = NULL;
    lanes->b = b;
}

void lanes_widen_body(Lanes *lanes) { widen_region(lanes, lanes->from->body); }

void lanes_widen(Lanes *lanes) {
    Func *from = lanes->from, *to = lanes->to;
    lanes_widen_at(lanes, build_at_end(func_begin(to)));
    for (int i = 0; i < from->nparams; i++)
        clone_map_val(&lanes->map, from->body->params[i], to->body->params[i]);
    Inst *branch = lanes->ones.count ? lanes_ask_for_ones(lanes) : NULL; /* strides are far only then */
    if (branch) lanes->b = build_at_end(branch->regions[0]);
    bool is_divided = lanes->along_groups || from->group_size[0] % lanes->width == 0;
    if (!is_divided) lanes->mask = lanes_in_row(lanes);
    lanes_widen_body(lanes);
    if (branch) build_yield(&lanes->b, NULL, 0), lanes->b = build_at_end(to->body);
    build_return(&lanes->b, NULL, 0);
}
