/* What compilers are told of loops.
 *
 * gcc writes out some, as LLVM does of its own accord. Left alone, it vectorises an ordered sum by
 * multiplying vectors and adding their elements one by one, which takes longer than to add number by number;
 * and it keeps a loop around another that runs up to the counter of the first, so that nothing is known of
 * the indices in there. Other short loops become vectors, and stay loops for that.
 *
 * clang, of versions after 14, is told to leave some as loops: it writes out 32 rounds before it looks
 * whether they could be vectors, and then finds out for rounds that follow each other only if they write to
 * no memory that they may read from. A loop is tested for that before it begins.
 *
 * gcc is told to leave loops of 16 rounds: longer ones it does not write out, and having done that takes
 * rounds of the loop around together, whose rows it turns into columns and back.
 *
 * Where there are elementary functions for vectors, a sum of their results is left as a loop, too.
 *
 * A loop that adds up products of many rows at once is too long to be written out, and one whose rounds add
 * up a row each would become vectors of rounds. Compilers are kept from the first: numbers of different rows
 * are not beside each other, and to bring them together takes longer than to multiply them one by one. gcc
 * does so in as many steps as the logarithm of a row's length says. That is also longer in the second case
 * where a register holds two or four numbers; for x86-64 it is told to use the largest that there are.
 *
 * Both write out nests of short loops over small arrays (emit/nest.c). */
#include "emit/clike/clike.h"
#include "emit/elementary.h"

enum { MOST_ROUNDS = 64, MOST_INSTS = 1024, LEAST_VECTORS = 16, MOST_WRITTEN_BY_GCC = 16, LEAST_SUMS = 4 };
static const char TRIANGLE[] = "SLOPE_UNROLL_TRIANGLE";

typedef struct Inside {
    const Inst *loop;   /* that is looked at */
    const Inst *nested; /* the loop in it */
    bool calls;         /* functions that there are for vectors, too */
    bool jumps;         /* so that it may end sooner */
    int loops, insts, nested_insts;
} Inside;

/* With those of a function that is called: it may become a part of who calls it. What is more than anyone
 * writes out is not counted further. */
static void count_insts(void *user, Inst *inst) {
    int *insts = user;
    ++*insts;
    bool is_known = inst->op == OP_call && inst->callee->body;
    if (is_known && *insts <= MOST_INSTS) region_walk(inst->callee->body, count_insts, insts);
}

static void count_nested(void *user, Inst *inst) {
    Inside *inside = user;
    count_insts(&inside->nested_insts, inst);
    inside->loops += inst->op == OP_loop;
}

static void count_inside(void *user, Inst *inst) {
    Inside *inside = user;
    count_insts(&inside->insts, inst);
    inside->calls |= emit_is_for_vectors(inst);
    inside->jumps |= inst->op == OP_break || inst->op == OP_continue || inst->op == OP_return;
    if (inst->op != OP_loop || inside->nested) return;
    inside->nested = inst;
    inst_walk(inst, count_nested, inside);
}

/* How many numbers does it carry to which each round adds? */
static int count_sums(const Inst *loop) {
    int sums = 0;
    for (int i = 0; i < loop->nargs; i++)
        sums += type_is_float(loop->args[i]->type) && loop_term(loop, i) >= 0;
    return sums;
}

/* How often the nested loop runs depends on the round. */
static bool is_triangle(const Inside *inside) {
    LoopTest test;
    const Inst *yield = inside->nested->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? ir_resolve(yield->args[0]) : NULL;
    if (!condition || condition->kind != VAL_inst || !loop_comparison(inside->nested, condition->inst, &test))
        return false;
    return inst_contains(inside->loop, ir_resolve(test.limit)) ||
           inst_contains(inside->loop, ir_resolve(inside->nested->args[test.index]));
}

/* Does it run as often as its counter says? gcc hears no wishes for loops that test two things, and warns of
 * them. */
static bool is_one_test(const Inst *loop) {
    const Inst *yield = loop->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? ir_resolve(yield->args[0]) : NULL;
    return condition && condition->kind == VAL_inst && condition->inst->op != OP_and;
}

/* Left alone, gcc would keep it as it is. Then the name of the macro by which it does not; else NULL. */
static const char *unrolled_by(const Inst *loop, int64_t rounds) {
    Inside inside = {.loop = loop};
    inst_walk(loop, count_inside, &inside);
    int64_t once = inside.insts - inside.nested_insts;
    bool is_unrolled = inside.nested ? is_triangle(&inside) : count_sums(loop) > 0;
    if (inside.loops > 0 || !is_unrolled) return NULL;
    if (rounds * (inside.nested ? once + inside.nested_insts * rounds / 2 : once) > MOST_INSTS) return NULL;
    if (inside.calls) return "SLOPE_UNROLL_CALLS";
    return inside.nested && !inside.jumps ? TRIANGLE : "SLOPE_UNROLL";
}

typedef struct Effects {
    bool writes, writes_buffer, others, divides;
    bool is_more;    /* than what every compiler makes vectors of, if it is told to */
    bool fills_rows; /* of floats that loops with rounds which do nothing go through, too (masked.c) */
} Effects;

static bool is_float(const Val *v) { return type_is_float(type_element(v->type)); }

/* Not a call of the C library, as some that may set errno are, nor what helpers branch for. */
static bool is_arithmetic(const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_neg:
    case OP_min:
    case OP_max:
    case OP_eq:
    case OP_ne:
    case OP_lt:
    case OP_le:
    case OP_select:
    case OP_vec:
    case OP_splat:
    case OP_elem:
    case OP_field:
    case OP_buffer_elem:
    case OP_load:
    case OP_store:
    case OP_yield: return true;
    case OP_extract: return val_is_const(inst_operand(inst, 1));
    case OP_div: return is_float(inst->results[0]);
    case OP_convert: return !is_float(inst_operand(inst, 0)) || is_float(inst->results[0]);
    default: return false;
    }
}

static void find_effects(void *user, Inst *inst) {
    Effects *effects = user;
    bool adds = inst->op == OP_store || inst->op == OP_acc || (inst->op == OP_atomic && inst->index == 0);
    if (inst->op == OP_loop || inst->op == OP_call || inst->op == OP_if) effects->others = true;
    effects->divides |= inst->op == OP_div && type_is_float(inst->results[0]->type);
    effects->is_more |= !is_arithmetic(inst);
    effects->fills_rows |=
        clike_is_in_whole_row(inst) && ir_target(inst->results[0]->type)->kind == TYPE_float;
    if (!adds) return;
    effects->writes = true;
    const Val *root = ir_root(inst->args[0]);
    effects->writes_buffer |= root->kind == VAL_inst && root->inst->op == OP_buffer_elem;
}

bool clike_carries_counters(const Inst *loop) {
    for (int i = 0; i < loop->nargs; i++)
        if (!type_is_integer(loop->args[i]->type)) return false;
    return true;
}

/* What its rounds do, if they could become vectors: else nothing. */
static Effects effects_of_rounds(const Inst *loop) {
    Effects effects = {0};
    if (!clike_carries_counters(loop)) return effects;
    region_walk(loop->regions[1], find_effects, &effects);
    return effects.others ? (Effects){0} : effects;
}

/* Where it writes to buffers, these may be what it reads from: only where it is a loop is that tested before
 * it. The vectors are written out, so that what every round of a loop around adds to stays in registers:
 * clang is told to do so with half of the rounds, as with all of them it would before it looks for
 * vectors. */
static const char *wish_for_vectors(Printer *p, const Inst *loop, int64_t rounds) {
    Effects effects = effects_of_rounds(loop);
    bool is_likely = !inst_is_unlikely(loop);
    if (rounds < LEAST_VECTORS)
        return is_likely && effects.fills_rows && effects.writes ? clike_helper(p, "SLOPE_VECTORS_AND_REST")
                                                                 : NULL;
    bool is_left = effects.writes && rounds <= MOST_WRITTEN_BY_GCC && is_likely;
    if (!is_left && !effects.writes_buffer) return NULL;
    bool is_whole = is_likely && loop_known_rounds(loop) == (double)rounds;
    const char *macro = clike_helper(p, is_left ? "SLOPE_VECTORS_OF_ROUNDS" : "SLOPE_VECTORS");
    return clike_format(p, "%s(%lld)", macro, (long long)(is_whole ? rounds / 2 : 1));
}

/* Is it short, and writes quotients to arrays, as opt/terms.c has them before they are added up? */
bool clike_keeps_quotients(const Inst *loop) {
    int64_t rounds = inst_is_unlikely(loop) ? INT64_MAX : loop_most_trips(loop);
    if (rounds % 4 || rounds > MOST_WRITTEN_BY_GCC) return false;
    Effects effects = effects_of_rounds(loop);
    return effects.divides && effects.writes && !effects.writes_buffer && !effects.is_more &&
           clike_is_independent(loop);
}

/* How many rounds has it, where compilers are told of so few? Else 0. */
static int64_t few_rounds(const Printer *p, const Inst *loop) {
    int64_t rounds = p->dialect->steers_loops && p->options->level > 0 ? loop_most_trips(loop) : 0;
    return rounds < 2 || rounds > MOST_ROUNDS ? 0 : rounds;
}

bool clike_is_triangle(const Printer *p, const Inst *loop) {
    int64_t rounds = inst_is_unlikely(loop) || !is_one_test(loop) ? 0 : few_rounds(p, loop);
    bool is_other = !rounds || emit_is_written_out(&p->reached, loop) || clike_keeps_quotients(loop);
    const char *macro = is_other ? NULL : unrolled_by(loop, rounds);
    return macro && strcmp(macro, TRIANGLE) == 0;
}

static const char *wish_for_rounds(Printer *p, const Inst *loop) {
    bool likely = !inst_is_unlikely(loop); /* else it is the copy for indices that are out of range */
    int64_t rounds = few_rounds(p, loop);
    if (!rounds) return NULL;
    if (likely && emit_is_written_out(&p->reached, loop))
        return clike_format(p, "%s(%lld)", clike_helper(p, "SLOPE_WRITE_OUT"), (long long)rounds);
    if (clike_keeps_quotients(loop))
        return clike_format(p, "%s(%lld)", clike_helper(p, "SLOPE_QUOTIENTS"), (long long)rounds);
    const char *macro = likely ? unrolled_by(loop, rounds) : NULL;
    if (macro) return clike_format(p, "%s(%lld)", clike_helper(p, macro), (long long)rounds);
    return wish_for_vectors(p, loop, rounds);
}

/* ---- rows that are added up */

static bool is_more_than_product(const void *user, const Inst *inst) {
    (void)user;
    bool is_cheap =
        op_has(inst->op, OP_PURE) && !op_is_elementary(inst->op) && inst->op != OP_div && inst->op != OP_sqrt;
    return !is_cheap && inst->op != OP_load && inst->op != OP_yield;
}

static bool is_steered(const Printer *p, const Inst *loop) {
    return p->dialect->steers_loops && p->options->level > 0 && !inst_is_unlikely(loop);
}

static bool is_written_out(const Printer *p, const Inst *loop) {
    int64_t rounds = few_rounds(p, loop);
    return rounds && (emit_is_written_out(&p->reached, loop) || unrolled_by(loop, rounds));
}

bool clike_adds_rows(const Printer *p, const Inst *loop) {
    return is_steered(p, loop) && count_sums(loop) >= LEAST_SUMS && !is_written_out(p, loop) &&
           !region_find(loop->regions[1], is_more_than_product, NULL);
}

static bool is_within(int64_t by, int64_t most) { return -most <= by && by <= most; }

/* By how much is it more in the next round of a loop? false: that is not known. What loops inside count is
 * not looked at. */
static bool find_move(const Val *v, const Inst *loop, int64_t *by) {
    int64_t other, factor;
    *by = 0;
    if (!inst_contains(loop, v)) return true;
    if (v->kind == VAL_param) return v->region->owner != loop || loop_step(loop, v->index, by);
    const Inst *inst = v->kind == VAL_inst ? v->inst : NULL;
    if (!inst || inst->nargs < 1 || !find_move(inst_operand(inst, 0), loop, by)) return false;
    switch ((Op)inst->op) {
    case OP_convert: return true;
    case OP_add:
        if (!find_move(inst_operand(inst, 1), loop, &other)) return false;
        *by += other;
        return true;
    case OP_mul:
        if (!val_is_int(inst_operand(inst, 1), &factor)) return false;
        if (!is_within(*by, INT32_MAX) || !is_within(factor, INT32_MAX)) return false;
        *by *= factor;
        return true;
    default: return false;
    }
}

/* Likewise an address, in bytes. */
static bool find_way(const Val *address, const Inst *loop, int64_t *bytes) {
    int64_t by;
    *bytes = 0;
    while (address->kind == VAL_inst &&
           (op_has(address->inst->op, OP_PART) || address->inst->op == OP_buffer_elem)) {
        const Inst *part = address->inst;
        const Type *element = ir_target(address->type);
        if (part->op != OP_field) {
            if (!element || !find_move(inst_operand(part, 1), loop, &by)) return false;
            *bytes += by * (int64_t)type_layout(element, LAYOUT_scalar).size;
        }
        address = inst_operand(part, 0);
    }
    return !inst_contains(loop, address);
}

typedef struct Rows {
    const Inst *around, *inside; /* loops: over rows, and over what is in one */
    bool is_walked;              /* a row, from number to number */
    bool has_more;               /* than sums of rows, and what is gained by vectors of them */
    bool is_other;
} Rows;

static void look_for_row(void *user, Inst *inst) {
    Rows *rows = user;
    int64_t on, down;
    if (inst->op != OP_load || !type_is_float(inst->results[0]->type)) return;
    const Val *address = inst_operand(inst, 0);
    int64_t size = (int64_t)type_layout(inst->results[0]->type, LAYOUT_scalar).size;
    if (!find_way(address, rows->inside, &on) || !find_way(address, rows->around, &down)) return;
    rows->is_walked |= on == size && !is_within(down, size);
}

static void look_around(void *user, Inst *inst) {
    Rows *rows = user;
    if (inst->op == OP_loop) {
        rows->is_other |= rows->inside != NULL;
        rows->inside = inst;
    }
    rows->has_more |= op_is_elementary(inst->op) || op_is_quotient_or_root(inst->op) || inst->op == OP_call ||
                      inst->op == OP_if || inst->op == OP_switch;
}

/* What its rounds do, if each adds up a row. A few rounds are written out where a loop around them becomes
 * vectors. */
static Rows rows_of(const Printer *p, const Inst *loop) {
    Rows rows = {.around = loop};
    if (!is_steered(p, loop) || loop_most_trips(loop) < LEAST_VECTORS || is_written_out(p, loop)) return rows;
    region_walk(loop->regions[1], look_around, &rows);
    const Inst *inside = rows.inside;
    if (rows.is_other || !inside || inst_loop_around(inside) != loop || count_sums(inside) == 0) return rows;
    if (is_written_out(p, inside)) region_walk(inside->regions[1], look_for_row, &rows);
    return rows;
}

bool clike_adds_row_by_row(const Printer *p, const Inst *loop) { return rows_of(p, loop).is_walked; }

const char *clike_round_wish(Printer *p, const Inst *loop) {
    if (clike_adds_rows(p, loop)) return clike_helper(p, "SLOPE_ONE_BY_ONE");
    Rows rows = rows_of(p, loop);
    return rows.is_walked && !rows.has_more ? clike_helper(p, "SLOPE_ROW_BY_ROW") : NULL;
}

bool clike_is_in_open_loop(const Inst *inst) {
    const Inst *loop = inst_loop_around(inst);
    return loop && !is_one_test(loop);
}

const char *clike_loop_wish(Printer *p, const Inst *loop) {
    if (p->at->masked.loop == loop)
        return clike_helper(p, clike_is_pair(p, loop) ? "SLOPE_TWO_VECTORS" : "SLOPE_FEW_ROUNDS");
    if (!is_one_test(loop)) return NULL;
    const char *wish =
        clike_adds_rows(p, loop) ? clike_helper(p, "SLOPE_NO_VECTORS") : wish_for_rounds(p, loop);
    bool is_apart = p->dialect->steers_loops && p->options->level > 0 && clike_keeps_independent(loop);
    const char *apart = is_apart ? clike_helper(p, "SLOPE_INDEPENDENT") : NULL;
    return wish && apart ? clike_format(p, "%s %s", apart, wish) : apart ? apart : wish;
}
