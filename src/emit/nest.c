/* Nests of short loops over small arrays, as in elimination on a 4 x 4 matrix. Written out, every index is a
 * constant, so that the arrays are numbers in registers; left as loops, each number is stored and read again,
 * and what vectorises the inner loop reads rows of which one number was stored just before, for which
 * processors wait. Compilers write out such loops one by one, the inner first, and stop at a limit that is
 * meant for loops of which little is known. */
#include "emit/reach.h"

enum { MOST_ROUNDS = 8, MOST_WRITTEN = 2048 }; /* of one loop; instructions of a nest */

/* What is inside a loop, or a function. */
typedef struct Inside {
    /* instructions of one round, with those of loops inside as often as they are run; more than
     * MOST_WRITTEN: too many */
    int64_t written;
    bool has_loop, is_left;
    bool has_array; /* of which it depends on the round which element is used */
} Inside;

static void look_into(Reached *reached, Inside *inside, const Inst *inst);

/* More than MOST_ROUNDS: or nobody knows how many. */
static int64_t rounds_of(const Inst *loop) {
    const Inst *yield = loop->regions[0]->last;
    const Val *condition = yield && yield->op == OP_yield ? inst_operand(yield, 0) : NULL;
    bool is_one_test = condition && condition->kind == VAL_inst && condition->inst->op != OP_and;
    return is_one_test ? loop_most_trips(loop) : INT64_MAX;
}

static void look_at_loop(Reached *reached, Inside *around, const Inst *loop) {
    Inside inside = {0};
    look_into(reached, &inside, loop);
    int64_t rounds = inside.is_left ? INT64_MAX : rounds_of(loop);
    bool fits =
        rounds <= MOST_ROUNDS && inside.written <= MOST_WRITTEN && rounds * inside.written <= MOST_WRITTEN;
    if (fits && inside.has_array)
        map_put(reached->arena, &reached->nests, PTR_KEY(loop),
                arena_copy(reached->arena, &inside, sizeof inside));
    around->written += fits ? rounds * inside.written : MOST_WRITTEN + 1;
    around->has_loop = true;
    around->has_array |= inside.has_array;
}

static void look_at(Reached *reached, Inside *inside, const Inst *inst) {
    bool jumps = inst->op == OP_break || inst->op == OP_continue || inst->op == OP_return;
    inside->is_left |= jumps || inst->op == OP_call;
    inside->written++;
    if (inst->op == OP_elem)
        inside->has_array |=
            !val_is_const(inst_operand(inst, 1)) && ir_space(inst->args[0]->type) == SPACE_local;
    if (inst->op == OP_loop) look_at_loop(reached, inside, inst);
    else look_into(reached, inside, inst);
}

static void look_into(Reached *reached, Inside *inside, const Inst *inst) {
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *part = inst->regions[i]->first; part; part = part->next)
            look_at(reached, inside, part);
}

bool emit_is_written_out(const Reached *reached, const Inst *loop) {
    const Inside *inside = map_get(&reached->nests, PTR_KEY(loop));
    if (map_has(&reached->left, PTR_KEY(loop))) return true;
    if (!inside || inside->has_loop) return inside;
    const Inst *around = inst_loop_around(loop);
    return around && map_has(&reached->nests, PTR_KEY(around));
}

/* ---- short rounds of vectors */

/* Of one round, in which nothing else is run. */
typedef struct Round {
    int length;
    bool has_row, is_plain;
} Round;

/* Lanes have numbers on a tape that lie apart: they are read or written one after the other, each by an
 * address of its own. */
static bool is_one_by_one(const Inst *inst) {
    return op_has(inst->op, OP_TAPE) && inst->nargs > 1 && inst->args[1]->type->kind == TYPE_vector;
}

static void add_to_round(Round *round, const Region *region) {
    enum { ROW = 4 };
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        round->length++;
        round->is_plain &= inst->nregions == 0 && inst->op != OP_call && !is_one_by_one(inst);
        for (int i = 0; i < inst->nresults; i++)
            round->has_row |=
                inst->results[i]->type->kind == TYPE_vector && type_count(inst->results[i]->type) >= ROW;
    }
}

int emit_rounds_in_a_row(const Inst *loop) {
    enum { AT_ONCE = 4, MOST_LENGTH = 48, MOST_WHOLE = 300 };
    Round round = {.is_plain = true};
    for (int i = 0; i < loop->nregions; i++) add_to_round(&round, loop->regions[i]);
    if (!round.has_row || !round.is_plain || round.length > MOST_LENGTH) return 1;
    int64_t rounds = rounds_of(loop);
    bool is_long = rounds != INT64_MAX && rounds * round.length > MOST_WHOLE;
    return is_long && rounds % AT_ONCE == 0 ? AT_ONCE : 1;
}

/* ---- loops that are left as they are */

static bool is_innermost(const Inst *loop) {
    const Region *body = loop->regions[1];
    for (const Inst *inst = body->first; inst; inst = inst->next)
        if (inst->nregions || inst->op == OP_call) return false;
    return body->last->op == OP_yield;
}

/* Counters apart, does a round need what the one before it has made? */
static bool has_order(const Inst *loop) {
    int64_t step;
    for (int i = 0; i < loop->nargs; i++)
        if (!loop_adds_freely(loop, i) && !loop_step(loop, i, &step)) return true;
    return false;
}

static bool is_for_what_is_left(const Inst *loop) {
    const Inst *around = inst_loop_around(loop);
    while (around && !around->hints.few) around = inst_loop_around(around);
    return around;
}

Unrolling emit_unrolling(const Inst *loop, bool has_short_vectors) {
    enum { MANY_ROUNDS = 12, MOST_UNROLLED = 64 };
    int64_t rounds = rounds_of(loop);
    if (is_for_what_is_left(loop)) return rounds > MOST_ROUNDS ? UNROLL_never : UNROLL_freely;
    if (!has_short_vectors || rounds < MANY_ROUNDS || rounds > MOST_UNROLLED || !is_innermost(loop))
        return UNROLL_freely;
    return has_order(loop) ? UNROLL_never : UNROLL_as_vectors;
}

/* ---- several rounds at once */

/* Loops inside are written out, also in what is called. */
static void write_out(void *user, Inst *inst) {
    Reached *reached = user;
    if (inst->op == OP_loop) map_put(reached->arena, &reached->left, PTR_KEY(inst), inst);
    if (inst->op == OP_call && inst->callee->body && !map_has(&reached->left, PTR_KEY(inst->callee))) {
        map_put(reached->arena, &reached->left, PTR_KEY(inst->callee), inst->callee);
        region_walk(inst->callee->body, write_out, reached);
    }
}

static void look_for_rounds(void *user, Inst *inst) {
    Reached *reached = user;
    if (inst->op != OP_loop || inst_is_unlikely(inst) || inst->hints.few) return;
    int rounds = loop_rounds_at_once(inst);
    if (rounds == 1) return;
    map_put(reached->arena, &reached->at_once, PTR_KEY(inst),
            arena_copy(reached->arena, &rounds, sizeof rounds));
    region_walk(inst->regions[1], write_out, reached);
}

int emit_rounds_at_once(const Reached *reached, const Inst *loop) {
    const int *rounds = map_get(&reached->at_once, PTR_KEY(loop));
    return rounds ? *rounds : 1;
}

/* ---- rounds that fill a register */

static bool is_counter(const Inst *loop, const Val *index) {
    int64_t step;
    index = val_unconverted(index);
    return index->kind == VAL_param && index->region->owner == loop && loop_step(loop, index->index, &step) &&
           step == 1;
}

static bool is_from_outside(const Inst *loop, const Val *v) {
    if (v->kind == VAL_const) return true;
    const Region *region = v->kind == VAL_inst ? v->inst->parent : v->region;
    return region->owner != loop;
}

/* A counter, or so much more. A stride that is not known here is taken for one, as a tensor's last mostly is. */
static bool goes_up(const Inst *loop, const Val *index) {
    index = val_unconverted(index);
    if (is_counter(loop, index)) return true;
    if (index->kind != VAL_inst || is_from_outside(loop, index)) return false;
    const Inst *inst = index->inst;
    if (inst->op != OP_add && inst->op != OP_mul) return false;
    const Val *a = inst_operand(inst, 0), *b = inst_operand(inst, 1);
    const Val *fixed = is_from_outside(loop, a) ? a : b, *other = fixed == a ? b : a;
    bool is_known = inst->op == OP_mul && val_is_const(fixed);
    return is_from_outside(loop, fixed) && !is_known && goes_up(loop, other);
}

/* What rounds read and write lies side by side, and nothing else is done but arithmetic. */
static bool is_of_row(const Inst *loop, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_buffer_elem:
        if (!inst_has(inst, INST_UNCHECKED)) return false; /* fall through */
    case OP_elem:
        return type_is_float(ir_target(inst->results[0]->type)) && goes_up(loop, inst_operand(inst, 1));
    case OP_tape_load: /* fall through */
    case OP_tape_store: return goes_up(loop, inst_operand(inst, 1));
    case OP_store: return !is_from_outside(loop, inst_operand(inst, 0));
    case OP_load: /* fall through */
    case OP_yield: return true;
    default: return op_has(inst->op, OP_PURE) && inst->op != OP_field;
    }
}

typedef struct RowOf {
    int bits;     /* of a number */
    bool is_long; /* what is done with one */
} RowOf;

static bool find_row(const Inst *loop, RowOf *row) {
    for (const Inst *inst = loop->regions[1]->first; inst; inst = inst->next) {
        if (inst->nregions || !is_of_row(loop, inst)) return false;
        row->is_long |= op_is_quotient_or_root(inst->op) || op_is_elementary(inst->op);
        for (int i = 0; i < inst->nresults; i++) {
            const Type *type = inst->results[i]->type;
            int bits = type_is_float(type) ? (int)type_bits(type) : 0;
            row->bits = bits > row->bits ? bits : row->bits;
        }
    }
    return row->is_long;
}

int emit_rounds_that_fill(const Inst *loop, int bytes) {
    enum { WIDE = 64, FEW_ROUNDS = 16, MOST_ROUNDS_HERE = 64 };
    int64_t rounds = rounds_of(loop);
    RowOf row = {0};
    if (bytes < WIDE || loop->nregions != 2 || rounds > MOST_ROUNDS_HERE || has_order(loop)) return 1;
    if (!find_row(loop, &row)) return 1;
    int count = bytes * 8 / row.bits;
    bool leaves_none = rounds < FEW_ROUNDS || rounds % count == 0;
    return leaves_none && rounds > count / 2 ? count : 1;
}

/* ---- which functions have some */

static bool is_nest(const void *reached, const Inst *inst) {
    return inst->op == OP_loop && emit_is_written_out(reached, inst);
}

void reach_nests(Reached *reached) {
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        if (!func->module->many_threads) region_walk(func->body, look_for_rounds, reached);
    }
    for (int i = 0; i < reached->funcs.count; i++) {
        Inside inside = {0};
        const Region *body = reached->funcs.at[i]->func->body;
        for (const Inst *inst = body->first; inst; inst = inst->next) look_at(reached, &inside, inst);
        reached->funcs.at[i]->has_nest =
            inside.has_loop && inside.has_array && region_find(body, is_nest, reached);
    }
}
