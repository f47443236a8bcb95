/* Sums that loops within a round add to, out of these loops:
 *
 *     for (k = 0; k < 3; k++)                    float f[3];
 *         if (c) total = total + f(k);           for (k = 0; k < 3; k++) f[k] = c ? f(k) : -0;
 *                                                total = ((total + f[0]) + f[1]) + f[2];
 *
 * So what is added is a part of the round alone, which lanes do together, and the sum is arithmetic at its
 * end, as lanes_items.c wants it: in the order that the program wrote, and as -0 is what x + y leaves alone,
 * to the same bits. That is done for a few summands, of which constants say how many there are at most. A sum
 * that has no order needs no array: a round adds up by itself, beginning with zero. A loop of many rounds is
 * left as it is if they have nothing but the sum and counters from each other.
 *
 * The way of a sum leads from what a round is given to what it hands on, through sums, loops and branches;
 * nothing else may use what is on it. In place of the sum, loops then count where the next summand goes. */
#include "opt/lanes.h"

#include <math.h>

enum { MOST_SUMMANDS = 16 };

typedef VEC(Inst *) Users;

typedef struct Inner {
    Arena *scratch;
    Module *module;
    Map users; /* Val -> Users; what uses it twice is there twice */
    /* of the sum at hand: */
    bool in_loops; /* a loop adds to it */
    bool is_free;  /* in any order */
    bool has_gaps; /* what is said to be added need not be */
    Val *summands; /* the address of the array */
} Inner;

/* A part of the way, to the end of a region. */
typedef struct Way {
    bool is_sum;
    double count; /* of summands, at most */
    int index;    /* of what the region yields */
} Way;

static Users *users_of(const Inner *inner, const Val *v) { return map_get(&inner->users, PTR_KEY(v)); }

static void note_user(void *user, Inst *inst) {
    Inner *inner = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (val_is_const(v) || !type_is_scalar(part_type(v->type))) continue;
        Users *users = users_of(inner, v);
        if (!users) users = arena_new(inner->scratch, Users);
        vec_push(inner->scratch, users, inst);
        map_put(inner->scratch, &inner->users, PTR_KEY(v), users);
    }
}

static void forget_user(const Inner *inner, const Val *v, const Inst *user) {
    Users *users = users_of(inner, v);
    int kept = 0;
    for (int i = 0; i < users->count; i++)
        if (users->at[i] != user) users->at[kept++] = users->at[i];
    users->count = kept;
}

/* What of the region itself an instruction is, or is inside of; NULL: of none, or it was removed. */
static Inst *part_of(const Region *region, Inst *inst) {
    while (inst && inst->parent != region) inst = inst->parent ? inst->parent->owner : NULL;
    return inst;
}

/* The only part of the region that uses it; NULL: there is none, or there are others. */
static Inst *next_on_way(const Inner *inner, const Val *v, const Region *region) {
    const Users *users = users_of(inner, v);
    Inst *next = NULL;
    int count = 0;
    for (int i = 0; users && i < users->count; i++) {
        Inst *part = part_of(region, users->at[i]);
        if (!part) continue;
        if (next && next != part) return NULL;
        next = part;
        count++;
    }
    return count == 1 || (next && next->op == OP_if) ? next : NULL;
}

/* -1: something inside of it uses the value. */
static int operand_of(const Inst *inst, const Val *v) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst_operand(inst, i) == v) return i;
    return -1;
}

static void replace_uses(const Inner *inner, const Val *v, Val *by) {
    const Users *users = users_of(inner, v);
    for (int i = 0; i < users->count; i++)
        for (int k = 0; k < users->at[i]->nargs; k++)
            if (inst_operand(users->at[i], k) == v) users->at[i]->args[k] = by;
}

/* What may be added without any change. */
static Val *nothing(Builder *b, const Type *type) {
    const Type *number = part_type(type);
    if (type_is_integer(number)) return ir_const_zero(b->func->module, type);
    Val *zero = ir_const_real(b->func->module, number, -0.0);
    return type->kind == TYPE_vector ? build_splat(b, type, zero) : zero;
}

/* What a sum adds to the value. */
static Val *summand_of(Builder *b, const Inst *sum, const Val *v) {
    if (sum->op == OP_sub) return build_unary(b, OP_neg, inst_operand(sum, 1));
    return inst_operand(sum, inst_operand(sum, 0) == v ? 1 : 0);
}

/* ---- whether it can be done */

static bool is_free(const Inst *inst) {
    return inst_has(inst, INST_FREE) || type_is_integer(type_element(inst->results[0]->type));
}

static bool is_sum_with(const Inst *inst, const Val *v) {
    return inst->op == OP_add || (inst->op == OP_sub && inst_operand(inst, 0) == v);
}

/* The two users in a region. False: there are more or fewer, or one is inside of something else. */
static bool find_pair(const Inner *inner, const Val *v, const Region *region, Inst *pair[2]) {
    const Users *users = users_of(inner, v);
    int count = 0;
    for (int i = 0; users && i < users->count; i++) {
        const Inst *part = part_of(region, users->at[i]);
        if (!part) continue;
        if (part != users->at[i] || count == 2) return false;
        pair[count++] = users->at[i];
    }
    return count == 2;
}

/* c ? v + x : v, if nothing else there uses v, becomes v + (c ? x : -0). NULL: it is something else. */
static Inst *join(Inner *inner, Val *v, const Region *region) {
    Inst *pair[2];
    if (!find_pair(inner, v, region, pair)) return NULL;
    Inst *sum = pair[0], *choice = pair[1];
    Users *chosen = is_sum_with(sum, v) ? users_of(inner, sum->results[0]) : NULL;
    if (choice->op != OP_select || !chosen || chosen->count != 1 || chosen->at[0] != choice) return NULL;
    Builder b = build_before(choice);
    Val *more = summand_of(&b, sum, v), *chooses = choice->results[0];
    bool is_first = inst_operand(choice, 2) == v;
    choice->args[is_first ? 1 : 2] = more;
    choice->args[is_first ? 2 : 1] = nothing(&b, v->type);
    replace_uses(inner, chooses, sum->results[0]);
    map_put(inner->scratch, &inner->users, PTR_KEY(sum->results[0]), users_of(inner, chooses));
    map_put(inner->scratch, &inner->users, PTR_KEY(chooses), chosen);
    chosen->at[0] = sum;
    forget_user(inner, v, choice);
    inst_remove(sum);
    inst_insert_before(choice->next, sum);
    sum->op = OP_add;
    sum->args[0] = v, sum->args[1] = chooses;
    return sum;
}

static Way survey(Inner *inner, Val *v, const Region *region);

/* Many rounds that hand on nothing but the sum: rather these are done at once. */
static bool is_for_lanes(const Inst *loop, int index) {
    int64_t step;
    for (int i = 0; i < loop->nargs; i++)
        if (i != index && !loop_step(loop, i, &step)) return false;
    return loop_most_trips(loop) > MOST_SUMMANDS;
}

static Way survey_loop(Inner *inner, const Inst *loop, int index) {
    if (index < 0 || loop->nregions != 2 || users_of(inner, loop->regions[0]->params[index])) return (Way){0};
    if (is_for_lanes(loop, index)) return (Way){0};
    Way way = survey(inner, loop->regions[1]->params[index], loop->regions[1]);
    int64_t most = loop_most_trips(loop);
    way.is_sum &= way.index == index;
    way.count *= most == INT64_MAX ? INFINITY : (double)most;
    inner->has_gaps |= loop_known_rounds(loop) != (double)most;
    inner->in_loops = true;
    return way;
}

static Way survey_branch(Inner *inner, const Inst *branch, Val *v) {
    if (operand_of(branch, v) >= 0) return (Way){0};
    Way then = survey(inner, v, branch->regions[0]), other = survey(inner, v, branch->regions[1]);
    inner->has_gaps = true;
    return (Way){.is_sum = then.is_sum && other.is_sum && then.index == other.index,
                 .count = fmax(then.count, other.count),
                 .index = then.index};
}

static Way survey_part(Inner *inner, const Inst *inst, Val *v) {
    int index = operand_of(inst, v);
    if (inst->op == OP_loop) return survey_loop(inner, inst, index);
    if (inst->op == OP_if) return survey_branch(inner, inst, v);
    if (!is_sum_with(inst, v)) return (Way){0};
    inner->is_free &= is_free(inst);
    return (Way){.is_sum = true, .count = 1};
}

static Way survey(Inner *inner, Val *v, const Region *region) {
    Way way = {.is_sum = true};
    for (;;) {
        const Inst *next = next_on_way(inner, v, region);
        if (!next) next = join(inner, v, region);
        if (!next) return (Way){0};
        if (next == region->last) {
            way.index = operand_of(next, v);
            way.is_sum &= next->op == OP_yield;
            return way;
        }
        Way part = survey_part(inner, next, v);
        if (!part.is_sum) return part;
        way.count += part.count;
        v = next->results[part.index];
    }
}

/* ---- a sum that has no order */

static void add_at_end(const Inner *inner, Val *start, Inst *end, int index) {
    replace_uses(inner, start, ir_const_zero(inner->module, start->type));
    Builder b = build_before(end);
    Val *added = inst_operand(end, index);
    end->args[index] = type_is_integer(type_element(start->type)) ? build_binary(&b, OP_add, start, added)
                                                                  : build_sum(&b, start, added);
}

/* ---- one that has */

static Val *moved_on(Builder *b, Val *at, int64_t by) {
    return build_binary(b, OP_add, at, ir_const_int(b->func->module, at->type, by));
}

static int64_t store(Inner *inner, Val *v, Region *region, Val *at);

static void store_summand(const Inner *inner, Inst *sum, const Val *before, Val *at) {
    Builder b = build_before(sum);
    Val *summand = summand_of(&b, sum, before), *place = build_elem(&b, inner->summands, at, true);
    build_store(&b, place, summand);
    inst_remove(sum);
}

/* It carries where summands go. */
static int64_t store_in_loop(Inner *inner, Inst *loop, int index, Val *at) {
    Region *body = loop->regions[1];
    Val *carried = body->params[index];
    loop->args[index] = at;
    loop->results[index]->type = loop->regions[0]->params[index]->type = carried->type = at->type;
    int64_t count = store(inner, carried, body, carried);
    Builder b = build_before(body->last);
    body->last->args[index] = moved_on(&b, carried, count);
    return count * loop_most_trips(loop);
}

/* Nobody asks for what it yields any more. */
static int64_t store_in_branch(Inner *inner, Inst *branch, Val *v, int index, Val *at) {
    int64_t most = 0;
    for (int arm = 0; arm < 2; arm++) {
        int64_t count = store(inner, v, branch->regions[arm], at);
        branch->regions[arm]->last->args[index] = ir_const_zero(inner->module, branch->results[index]->type);
        if (count > most) most = count;
    }
    return most;
}

/* From `at` on: how many. */
static int64_t store(Inner *inner, Val *v, Region *region, Val *at) {
    int64_t count = 0;
    for (Inst *next; (next = next_on_way(inner, v, region)) != region->last;) {
        Builder b = build_before(next);
        Val *here = moved_on(&b, at, count);
        int index = survey_part(inner, next, v).index;
        if (next->op == OP_loop) count += store_in_loop(inner, next, index, here);
        else if (next->op == OP_if) count += store_in_branch(inner, next, v, index, here);
        else store_summand(inner, next, v, here), count++;
        v = next->results[index];
    }
    return count;
}

static Val *place_of(const Inner *inner, Builder *b, int64_t number) {
    const Type *type = type_basic(inner->module->types, TYPE_int);
    return build_elem(b, inner->summands, ir_const_int(inner->module, type, number), true);
}

static void add_in_order(Inner *inner, Val *start, Region *body, Way way) {
    Builder b = build_before(body->first);
    const Type *type = type_array(inner->module->types, start->type, (int64_t)way.count),
               *number = type_basic(inner->module->types, TYPE_int);
    inner->summands = build_var(&b, type, NULL, true);
    Val *none = inner->has_gaps ? nothing(&b, start->type) : NULL;
    for (int i = 0; i < (int)way.count && none; i++) build_store(&b, place_of(inner, &b, i), none);
    store(inner, start, body, ir_const_int(inner->module, number, 0));
    b = build_before(body->last);
    for (int i = 0; i < (int)way.count; i++)
        start = build_binary(&b, OP_add, start, build_load(&b, place_of(inner, &b, i)));
    body->last->args[way.index] = start;
}

/* ---- of a loop */

static bool are_few(double summands) { return summands >= 1 && summands <= MOST_SUMMANDS; }

static bool take_out(Inner *inner, Region *body, int index) {
    Val *start = body->params[index];
    inner->in_loops = inner->has_gaps = false;
    inner->is_free = true;
    if (!type_is_scalar(part_type(start->type))) return false;
    Way way = survey(inner, start, body);
    if (!way.is_sum || way.index != index || !inner->in_loops) return false;
    if (inner->is_free) add_at_end(inner, start, body->last, index);
    else if (are_few(way.count * parts_of(start->type))) add_in_order(inner, start, body, way);
    else return false;
    return true;
}

static void find_users(Inner *inner, Region *body) {
    inner->users = (Map){0};
    region_walk(body, note_user, inner);
}

void lanes_take_out_sums(Lanes *lanes, const bool *is_counter) {
    Region *body = lanes->rounds->loop->regions[1];
    Inner inner = {.scratch = lanes->scratch, .module = lanes->module};
    bool changed = false;
    if (!region_has_loop(lanes->rounds->loop->regions[1])) return;
    find_users(&inner, body);
    for (int i = 0; i < body->nparams; i++) {
        if (is_counter[i] || !take_out(&inner, body, i)) continue;
        changed = true;
        find_users(&inner, body);
    }
    if (!changed) return;
    ir_resolve_func(lanes->rounds->func);
    opt_dce(lanes->rounds->func);
}
