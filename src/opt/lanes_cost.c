/* Is it worth while, and how many lanes?
 *
 * A value of all lanes takes a register or several. Two are best, mostly: what one waits for is done in the
 * other, and more do not fit. So there are twice as many lanes as a register has numbers of the kernel's type
 * (float, unless most of what differs has 64 bits), 4 to 16, and no more than a group has threads in x: 8
 * with registers of 128 bits, 16 with larger ones.
 *
 * Then the work of the kernel is estimated, one item at a time and all lanes together, in the units of
 * ops.def:
 *
 *     the same for all lanes           once
 *     arithmetic                       once for each register; indices that grow with counters, of kernels with the number of the thread, a quarter, for those of neighbours once
 *     elementary functions             2.4 times for each register, the exponential 2.9 times with 128 bits; for each lane where vectors have none that is better (2.5 times
 *                                      with registers of 512 bits, which are saved meanwhile): lgamma, with registers of 128 bits more, and most of those for double; pow for
 *                                      each lane, with registers of 512 bits 0.75 times: half, and some numbers take a slow way
 *     quotients of integers            1.5 times for each lane: processors have none for vectors
 *     rows                             once for each register
 *     neighbours in memory             three quarters for each lane, and a test: memory has no lanes
 *     other places                     for each lane 1.2 times at equal distances, 1.6 with larger registers, else twice if the processor gathers, and 4.5 times if it
 *                                      does not, 9 times for rounds of a loop, which test no index when they are done alone; twice where all write to one
 *     ... in records of 16 bytes or more   for each lane 0.7 times: rows of them, turned (emit/llvm/records.c)
 *     objects of more than 4 KiB       for each lane, and elements of those that lanes have of their own: memory has no lanes
 *     tapes                            once for each register; 3.5 times for each lane where heights differ
 *     atomic operations                sums into one place: half for each lane, and one; others: for each lane, and 5. Plain sums, of one thread or into copies that a kernel has for
 *                                      itself: 3, one at a time, unless items wait for each other in one place; where no two lanes share one, what
 *                                      reading and writing cost; 10 for each lane at distances where a lane adds to what another one just wrote
 *     meetings of a wave               once for each lane, and 30
 *     calls that are not inlined       for each lane, and 3
 *     if, switch                       half of all branches, one at a time; together all of them, where lanes go different ways. Where a
 *                                      thread's index is compared with what all share, it is the longer branch, for both
 *     loops                            as often as they say, or 8 times; 1.6 times that where lanes leave at different times, and where that is after 8 rounds at
 *                                      most, half of them one at a time, and all of them together. One at a time less, if LLVM does
 *                                      rounds of the loop as vectors: by three quarters of what fits into a register, half of that where
 *                                      rounds go to places up to 4 numbers apart; and nothing for
 *                                      arrays in nests of short loops, which are then in registers (lanes_alone.c)
 *     copies                           one at a time, once for each register
 *     rounds of a loop                 with registers of 128 bits, and nothing in it but arithmetic and elementary functions that LLVM knows: it makes vectors around these, and
 *                                      all else counts one at a time by three quarters of what fits into a register. Then 1.18 times as fast is enough. With
 *                                      512 bits, another estimate tells what larger registers gain (below)
 *
 * The factors were found by measuring small kernels (bench/lanes.py, bench/lanes_survey.py); on x86-64, four
 * of five gain 0.6 to 1.6 times what is estimated. Lanes are used where they seem to be 1.5 times as fast
 * with registers of 128 bits (1.75 for rounds of a loop, unless most numbers are doubles; 1.35 where nothing
 * but a function that LLVM has not for vectors keeps it from making them), 1.7 with larger ones, and twice
 * 1.75 (1.25 times for doubles, three times 1.7 with 256 bits) for rounds that keep something for a reverse
 * pass, read it, or have such nests over arrays (with larger registers three times where it is not known how
 * much is kept, 2.4 times where items have other elements of their arrays), and where there is enough to do,
 * if that is known (of loops: lanes_often.c), to make up for the time to compile them. With 512 bits, such
 * rounds are like others: LLVM has either all of them in vectors of several rounds (below), or no more than a
 * row of one. If to compile them seems to take almost twice as long, half as many lanes are tried, as long as
 * they fill half a register, and then none. It is counted in instructions of scalars:
 *
 *     all else that is done            90
 *     a value of all lanes             half for each register
 *     neighbours in memory             12, with the test and what is done if it fails; 2, where a loop has asked before it begins
 *     other places                     for each lane 1.5 at equal distances (4 for all with registers of 512 bits), else 3.5; 24 if the processor gathers, 4 in
 *                                      an object of the item's own; 0.6 in records
 *     if, loop                         3, of rounds 10 for what is no loop; and 25 for each register beyond 16 that a loop carries values in
 *
 * The loop whose rounds are lanes stays as it was, too, for the rounds that are left: there is no less than
 * before, and all that is made for lanes comes on top. That may be as much (1.25 times for the fewest lanes
 * with registers of 128 bits; with those of 512, 0.85 times as often as the loop seems to be faster, 1.1 to
 * 2.5) as 230, all functions that are compiled with the loop anyway (lanes_around.c), and 100 for each loop in
 * them that is not short, which LLVM tries to write out and to make vectors of. There, elementary functions
 * are 8 more. Found by compiling benchmarks and functions of tests/diff: a unit takes
 * LLVM 0.03 to 0.15 ms in lanes, 0.08 else, so that the whole may be 2.5 times as long where it is least. */
#include "opt/lanes.h"

#include <math.h>

typedef struct Cost {
    double alone, together; /* of an item, of all lanes */
} Cost;

static bool is_in_registers(const Inst *access) {
    return lanes_is_spread(ir_resolve(access->args[0])) && inst_is_in_written_out(access);
}

/* ---- instructions */

static double registers(const Lanes *lanes, const Type *type) {
    const Type *scalar = type_element(type);
    int bits = scalar->kind == TYPE_bool || !type_is_scalar(scalar) ? 32 : type_bits(scalar);
    double count = (double)lanes->width * bits / lanes->options->register_bits;
    return count < 1 ? 1 : count;
}

/* Has the processor an instruction that reads at many places? */
static bool gathers(const Lanes *lanes) { return lanes->options->register_bits > 128; }

/* One takes all lanes, and one instruction reads or writes them, at equal distances, too. */
static bool has_wide_registers(const Lanes *lanes) { return lanes->options->register_bits >= 512; }

static bool is_integer_quotient(const Inst *inst) {
    return (inst->op == OP_div || inst->op == OP_rem) && type_is_integer(type_element(inst->args[0]->type));
}

/* Libraries have no function for vectors, or one that is not better; for registers of 128 bits, that of SLEEF
 * (emit/llvm/lanes.c). */
static bool is_done_apart(const Lanes *lanes, const Inst *inst) {
    bool is_small = lanes->options->register_bits <= 128 && op_is_elementary(inst->op);
    switch ((Op)inst->op) {
    case OP_rem:
    case OP_lgamma: return true;
    case OP_pow: return !has_wide_registers(lanes);
    case OP_hypot:
    case OP_erf:
    case OP_erfc:
    case OP_sinh:
    case OP_cosh:
    case OP_asinh:
    case OP_acosh:
    case OP_log1p: return is_small;
    case OP_sin:
    case OP_cos:
    case OP_tan:
    case OP_tanh:
    case OP_cbrt: return false;
    default: return is_small && type_bits(type_element(inst->results[0]->type)) == 64;
    }
}

static double together_elementwise(const Lanes *lanes, const Inst *inst) {
    double cost = op_info[inst->op].cost, parts = parts_of(inst->results[0]->type);
    double wide = registers(lanes, inst->results[0]->type), from = registers(lanes, inst->args[0]->type);
    if (from > wide) wide = from;
    if (is_integer_quotient(inst)) return parts * cost * lanes->width * 1.5;
    if (is_done_apart(lanes, inst))
        return parts * cost * lanes->width * (has_wide_registers(lanes) ? 2.5 : 1.05);
    if (inst->op == OP_pow) return parts * cost * lanes->width * 0.75;
    if (op_is_elementary(inst->op))
        return parts * cost * wide * (inst->op == OP_exp && !gathers(lanes) ? 2.9 : 2.4);
    return parts * cost * wide;
}

static const double cached = 1024; /* words; larger objects wait for memory, which has no lanes */

static double words_of(const Type *type) { return (double)type_layout(type, LAYOUT_scalar).size / 4; }

/* Is it in an object that one item has in a near cache, and all lanes have not? */
static bool is_far(const Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_elem || address->inst->op == OP_field))
        address = ir_resolve(address->inst->args[0]);
    const Type *whole = ir_target(address->type);
    return whole && words_of(whole) > cached;
}

/* A part of something larger, and there are others beside it: rows of them are read and written, and turned
 * (emit/llvm/records.c). */
static bool is_in_row(const Val *address) {
    static const double FOUR = 4;
    if (ir_is_beside(address)) return true;
    while (address->kind == VAL_inst) {
        const Inst *inst = address->inst;
        bool is_part =
            inst->op == OP_field || (inst->op == OP_elem && val_is_const(ir_resolve(inst->args[1])));
        if (!is_part) return false;
        address = ir_resolve(inst->args[0]);
        if (words_of(ir_target(address->type)) >= FOUR) return true;
    }
    return false;
}

static double together_at(const Lanes *lanes, Val *address, const Type *type) {
    static const double IN_ROW = 0.7;
    double parts = parts_of(type);
    int step = lanes_step_of_address(lanes, address);
    double apart = gathers(lanes) ? 2 : lanes->rounds ? 9 : 4.5, strided = gathers(lanes) ? 1.6 : 1.2;
    if (lanes_is_spread(address))
        return parts * (step != STEP_same ? apart * lanes->width
                        : is_far(address) ? lanes->width
                                          : registers(lanes, type));
    if (step == STEP_same) return parts;
    if (step == STEP_one && type->kind != TYPE_vector) return 0.75 * lanes->width + 1;
    if (is_in_row(address)) return parts * lanes->width * IN_ROW;
    return parts * lanes->width * (step == STEP_none ? apart : strided);
}

static Cost cost_of_access(const Lanes *lanes, const Inst *inst) {
    Val *address = ir_resolve(inst->args[0]);
    const Type *type = ir_target(address->type);
    bool is_race = inst->op == OP_store && lanes_step_of_address(lanes, address) == STEP_same &&
                   !lanes_is_spread(address);
    if (is_race) return (Cost){parts_of(type), 2.0 * parts_of(type) * lanes->width};
    if (inst->op == OP_load || inst->op == OP_store)
        return (Cost){is_in_registers(inst) ? 0 : parts_of(type), together_at(lanes, address, type)};
    double words = words_of(type);
    const Type *word = type_basic(lanes->module->types, TYPE_float);
    if (words > cached) return (Cost){words, words * lanes->width};
    double at_once = lanes->options->register_bits / 32.0; /* words of one item follow each other */
    return (Cost){words < at_once ? 1 : words / at_once, words * together_at(lanes, address, word)};
}

static bool is_sum(const Inst *inst) { return inst->op == OP_atomic && inst->index == ATOMIC_add; }

/* Of threads that have what they add to for themselves. */
static bool is_own_sum(const LaneOptions *options, const Inst *inst) {
    return is_sum(inst) && (options->alone || ir_is_own(inst->args[0]));
}

bool lanes_is_plain_sum(const LaneOptions *options, const Inst *inst) {
    return is_own_sum(options, inst) || (is_sum(inst) && inst_has(inst, INST_FREE));
}

static bool is_in_loop(const Inst *inst) {
    const Inst *owner = inst->parent->owner;
    while (owner && owner->op != OP_loop) owner = owner->parent->owner;
    return owner != NULL;
}

/* Items of a kernel that add to one place, one at a time, wait for each other, unless each does much else in
 * between; of a loop, the sum may be in a register meanwhile. */
static Cost cost_of_atomic(const Lanes *lanes, const Inst *inst) {
    static const double OF_WAITING =
        10; /* at distances, where the next is to read what is still being written */
    if (lanes_adds_by_rows_inside(lanes, inst)) {
        Val *address = ir_resolve(inst->args[0]);
        double wide = registers(lanes, inst->args[1]->type);
        bool wait =
            lanes->rounds && lanes->rounds->sums_meet && lanes_step_of_address(lanes, address) != STEP_one;
        if (wait) return (Cost){3, OF_WAITING * lanes->width};
        return (Cost){3, 2 * together_at(lanes, address, inst->args[1]->type) + wide};
    }
    bool one_place = !varies(lanes, ir_resolve(inst->args[0])) && is_sum(inst),
         waits = one_place && !lanes->rounds && !is_in_loop(inst);
    double cost = lanes_is_plain_sum(lanes->options, inst) && !waits ? 3 : op_info[inst->op].cost;
    return (Cost){cost, one_place ? cost + 0.5 * lanes->width : lanes->width * (cost + 5)};
}

static Cost cost_on_tape(const Lanes *lanes, const Inst *inst) {
    double cost = op_info[inst->op].cost, alone = lanes_tape(inst) && inst_is_in_written_out(inst) ? 0 : cost;
    bool has_index = inst->op == OP_tape_load || inst->op == OP_tape_store;
    bool apart = has_index && varies(lanes, ir_resolve(inst->args[1]));
    const Type *type = ir_on_stack(inst);
    double wide = type && type_is_scalar(type) ? registers(lanes, type) : 1;
    const TapeUse *use = lanes_tape(inst);
    if (!use && lanes->rounds && has_index) {
        int step = lanes_step_of(lanes, ir_resolve(inst->args[1]));
        return (Cost){cost, step == STEP_one ? 0.75 * lanes->width + 1 : 1.2 * lanes->width};
    }
    if (use && use->apart) return (Cost){cost, (cost + 1) * lanes->width};
    return (Cost){alone, apart ? 3.5 * lanes->width : cost * wide};
}

/* An index that grows with counters, or of a kernel with the number of the thread: one instruction moves it
 * on, or an address does without it. */
static bool is_index(const Lanes *lanes, const Inst *inst, int depth) {
    bool is_linear = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul || inst->op == OP_convert;
    if (!is_linear || !type_is_integer(inst->results[0]->type) || depth == 0) return false;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        bool is_known =
            v->kind != VAL_inst || (!lanes->rounds && (!varies(lanes, v) || lanes_is_counter(lanes, v)));
        if (!is_known && !is_index(lanes, v->inst, depth - 1)) return false;
    }
    return true;
}

static Cost cost_of_plain(const Lanes *lanes, const Inst *inst) {
    static const double OF_INDEX = 0.25;
    enum { DEPTH = 6 };
    double cost = op_info[inst->op].cost;
    if (is_index(lanes, inst, DEPTH)) {
        bool is_apart = !lanes->rounds && varies(lanes, inst->results[0]) &&
                        lanes_step_of(lanes, inst->results[0]) != STEP_one;
        return (Cost){OF_INDEX * cost, is_apart ? together_elementwise(lanes, inst) : OF_INDEX * cost};
    }
    if (inst->nresults == 1 && op_has(inst->op, OP_ELEMENTWISE)) cost *= parts_of(inst->results[0]->type);
    if (inst->op == OP_atomic || inst->op == OP_atomic_cas) return cost_of_atomic(lanes, inst);
    bool on_tape = inst->op >= OP_tape_push && inst->op <= OP_tape_elem;
    if (on_tape) return cost_on_tape(lanes, inst);
    if (inst->op == OP_call && !lanes_calls_once(lanes, inst)) return (Cost){cost, (cost + 3) * lanes->width};
    if (inst->op == OP_wave) return (Cost){cost, 30 + lanes->width};
    if (!lanes_varies_here(lanes, inst)) return (Cost){cost, cost};
    if (op_has(inst->op, OP_READS | OP_WRITES)) return cost_of_access(lanes, inst);
    if (op_has(inst->op, OP_ELEMENTWISE)) return (Cost){cost, together_elementwise(lanes, inst)};
    bool moves = inst->op != OP_select || inst->nresults != 1; /* parts and addresses: nothing is done */
    double wide = moves ? 0 : parts_of(inst->results[0]->type) * registers(lanes, inst->results[0]->type);
    return (Cost){moves ? 0 : cost, wide};
}

/* ---- regions */

static Cost cost_of_region(const Lanes *lanes, const Region *region);

static void add(Cost *to, Cost more, double alone, double together) {
    to->alone += more.alone * alone;
    to->together += more.together * together;
}

static bool is_choice_of_constants(const Val *v) {
    return v->kind == VAL_inst && v->inst->op == OP_select && val_is_const(ir_resolve(v->inst->args[1])) &&
           val_is_const(ir_resolve(v->inst->args[2]));
}

/* Is the index of a thread, or what grows with it, compared with what is the same for all? It asks whether
 * there is an item at all, or which side of a border it is on: lanes then go the same way, but for those of
 * one step. */
static bool is_border(const Lanes *lanes, const Val *condition);

/* a && b, a || b: what its branches hand on. */
static bool are_borders(const Lanes *lanes, const Val *choice) {
    bool all = is_border(lanes, ir_resolve(choice->inst->args[0]));
    for (int i = 0; i < choice->inst->nregions && all; i++) {
        const Inst *end = choice->inst->regions[i]->last;
        all = end->op == OP_yield && is_border(lanes, inst_operand(end, choice->index));
    }
    return all;
}

static bool is_border(const Lanes *lanes, const Val *condition) {
    if (!varies(lanes, condition)) return true;
    if (condition->kind != VAL_inst) return false;
    const Inst *inst = condition->inst;
    const Val *a = ir_resolve(inst->args[0]), *b = inst->nargs > 1 ? ir_resolve(inst->args[1]) : NULL;
    switch ((Op)inst->op) {
    case OP_not: return is_border(lanes, a);
    case OP_if: return are_borders(lanes, condition);
    case OP_eq: /* after early exits: is the state, one of two constants, that one? */
        return is_choice_of_constants(a) && val_is_const(b) && is_border(lanes, ir_resolve(a->inst->args[0]));
    case OP_and:
    case OP_or: return is_border(lanes, a) && is_border(lanes, b);
    case OP_lt:
    case OP_le: return lanes_step_of(lanes, a) != STEP_none && lanes_step_of(lanes, b) != STEP_none;
    default: return false;
    }
}

/* The longer branch is what nearly all do. */
static Cost cost_at_border(const Lanes *lanes, const Inst *inst) {
    Cost most = {0};
    for (int i = 0; i < inst->nregions; i++) {
        Cost one = cost_of_region(lanes, inst->regions[i]);
        if (one.alone >= most.alone) most = one;
    }
    return (Cost){most.alone + 1, most.together + 2.0 * inst->nregions};
}

static Cost cost_of_choice(const Lanes *lanes, const Inst *inst) {
    const Val *condition = ir_resolve(inst->args[0]);
    bool divergent = varies(lanes, condition) != 0;
    Cost all = {1, divergent ? 2.0 * inst->nregions : 1};
    if (divergent && is_border(lanes, condition)) return cost_at_border(lanes, inst);
    double share = 1.0 / inst->nregions;
    for (int i = 0; i < inst->nregions; i++)
        add(&all, cost_of_region(lanes, inst->regions[i]), share, divergent ? 1 : share);
    return all;
}

double lanes_rounds_of(const Inst *loop) {
    double known = loop_known_rounds(loop);
    return known > 0 ? known : 8;
}

/* Of a divergent loop, together as a multiple of alone. Where there are few rounds at most, some lane does
 * them all. */
static double share_of_rounds(const Inst *loop, bool divergent, double *count) {
    enum { FEW = 8 };
    int64_t most = loop_most_trips(loop);
    bool is_cut = divergent && most <= FEW;
    *count = is_cut ? 0.5 * (double)most : lanes_rounds_of(loop);
    return is_cut ? 2 : divergent ? 1.6 : 1;
}

static Cost cost_of_loop(const Lanes *lanes, const Inst *loop) {
    bool divergent = varies(lanes, ir_resolve(loop->regions[0]->last->args[0])) != 0;
    double count, share = share_of_rounds(loop, divergent, &count);
    Cost all = {1, 1},
         round = {loop_is_written_out(loop) || inst_is_in_written_out(loop) ? 0 : 1, divergent ? 4 : 1};
    for (int i = 0; i < 2; i++) add(&round, cost_of_region(lanes, loop->regions[i]), 1, 1);
    add(&all, round, count / lanes_done_alone(lanes, loop), count * share);
    return all;
}

static Cost cost_of_region(const Lanes *lanes, const Region *region) {
    Cost all = {0};
    for (Inst *inst = region->first; inst; inst = inst->next) {
        Cost one = inst->op == OP_loop            ? cost_of_loop(lanes, inst)
                   : op_has(inst->op, OP_REGIONS) ? cost_of_choice(lanes, inst)
                                                  : cost_of_plain(lanes, inst);
        bool is_vector = lanes->rounds && !op_has(inst->op, OP_REGIONS) && !op_is_elementary(inst->op);
        add(&all, one, is_vector ? 1 / lanes->rounds->done_alone : 1, 1);
    }
    return all;
}

typedef struct More {
    const LaneOptions *options;
    bool found, calls; /* what is left to lanes; elementary functions alone */
    bool stops;        /* among them one around which LLVM makes no vectors */
} More;

/* The hyperbolic tangent is computed in place (emit/llvm/math.c). */
static bool is_known_to_llvm(unsigned op) { return op_has(op, OP_INTRINSIC) || op == OP_tanh; }

static void look_for_more(void *user, Inst *inst) {
    More *more = user;
    bool is_left = lanes_is_left_to_lanes(more->options, inst), is_call = op_is_elementary(inst->op);
    more->calls |= is_call;
    more->stops |= is_call && !is_known_to_llvm(inst->op);
    more->found |= is_left && !is_call;
}

static More left_to_lanes(const Lanes *lanes) {
    const Rounds *rounds = lanes->rounds;
    More more = {.options = lanes->options, .found = rounds->keeps_checks || rounds->sums_meet};
    region_walk(lanes->from->body, look_for_more, &more);
    return more;
}

bool lanes_are_left_to_others(const Lanes *lanes) {
    More more = left_to_lanes(lanes);
    return !more.found && !more.calls;
}

double lanes_done_beside_calls(const Lanes *lanes) {
    const Rounds *rounds = lanes->rounds;
    bool has_order = rounds->ncounters + rounds->nsums < rounds->loop->nargs;
    More more = left_to_lanes(lanes);
    bool is_possible = !gathers(lanes) && !has_order && !more.found && !more.stops;
    return is_possible ? 0.375 * lanes_best_width(lanes) : 1;
}

/* ---- what LLVM does by vectors of its own, where there are registers of 512 bits
 *
 * A round of arithmetic, choices and the functions that it has for vectors: it does eight at a time, in registers of 256 bits. Lanes fill larger ones, but quotients, roots and
 * numbers at distances gain nothing by that. In additions, for eight and for sixteen (least squares over 43 loops of tests/diff, on Sapphire Rapids):
 *
 *     elementary functions             27, 38
 *     quotients, roots                 5, 18
 *     numbers at distances, what is kept for a reverse pass, or read there
 *                                      1, 15; added to, 2, 30
 *     all else                         1, 1
 *
 * and 1.23 times as fast is enough: the others were 0.8 to 1.2 times as fast. What is kept or read in some
 * rounds only, and sums into one place, it does one at a time. */

static bool has_vectors_by_llvm(Op op) {
    return op == OP_sin || op == OP_cos || op == OP_exp || op == OP_log;
}

static bool is_quotient_or_root(const Inst *inst) {
    return op_is_quotient_or_root(inst->op) && type_is_float(type_element(inst->results[0]->type));
}

/* What a round keeps for a reverse pass, or reads there: each has its place on the tape, at equal distances. */
static bool is_kept(const Inst *inst) {
    return (inst->op == OP_tape_store || inst->op == OP_tape_load) && !lanes_tape(inst);
}

static bool is_one_kept(const void *user, const Inst *inst) {
    (void)user;
    return is_kept(inst);
}

static bool keeps_something(const Lanes *lanes) {
    return lanes->rounds && region_find(lanes->from->body, is_one_kept, NULL);
}

static Cost cost_in_vectors(const Lanes *lanes, const Inst *inst) {
    if (!lanes_varies_here(lanes, inst)) return (Cost){0};
    if (op_is_elementary(inst->op)) return (Cost){27, 38};
    if (is_quotient_or_root(inst)) return (Cost){5, 18};
    if (op_has(inst->op, OP_ELEMENTWISE)) return (Cost){1, 1};
    if (is_kept(inst)) return (Cost){1, 15};
    bool adds = inst->op == OP_atomic;
    if (inst->op != OP_load && inst->op != OP_store && !adds) return (Cost){0};
    Val *address = ir_resolve(inst->args[0]);
    if (adds) return lanes_step_of_address(lanes, address) == STEP_other ? (Cost){2, 30} : (Cost){0};
    return (Cost){1, lanes_is_spread(address) || lanes_step_of_address(lanes, address) == STEP_one ? 1 : 15};
}

/* Where a short loop asks for its counter, LLVM knows the answer once it is written out, and what functions
 * give for constants; of functions for vectors it does not. */
static double share_when_written_out(const Lanes *lanes, const Inst *inst) {
    bool asks = inst->op == OP_if && inst->parent->owner && inst->parent->owner->op == OP_loop;
    return asks && !varies(lanes, ir_resolve(inst->args[0])) ? 0.5 : 1;
}

static Cost cost_of_vectors(const Lanes *lanes, const Region *region) {
    Cost all = {0};
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        double times = inst->op == OP_loop ? loop_known_rounds(inst) : 1;
        Cost one = cost_in_vectors(lanes, inst);
        double parts = inst->nresults == 1 ? parts_of(inst->results[0]->type) : 1;
        add(&all, one, parts, parts);
        for (int i = 0; i < inst->nregions; i++)
            add(&all, cost_of_vectors(lanes, inst->regions[i]), times * share_when_written_out(lanes, inst),
                times);
    }
    return all;
}

/* It is not kept in every round, or added to one place in memory, or nothing that LLVM has for vectors. */
static bool is_without_vectors(const void *user, const Inst *inst) {
    const Lanes *lanes = user;
    if (is_kept(inst)) return inst->parent != lanes->from->body;
    if (inst->op == OP_atomic) {
        bool in_one_place = lanes_step_of_address(lanes, ir_resolve(inst->args[0])) == STEP_same;
        return (in_one_place && is_in_loop(inst)) || !is_own_sum(lanes->options, inst);
    }
    if (op_is_elementary(inst->op)) return !has_vectors_by_llvm(inst->op);
    return lanes_is_left_to_lanes(lanes->options, inst);
}

/* Is it computed from a number that is read, and differs between rounds? */
static bool is_of_read(const Lanes *lanes, const Val *v) {
    if (!varies(lanes, v) || v->kind != VAL_inst) return false;
    if (v->inst->op == OP_load) return true;
    if (!op_has(v->inst->op, OP_ELEMENTWISE) && v->inst->op != OP_extract) return false;
    for (int i = 0; i < v->inst->nargs; i++)
        if (is_of_read(lanes, ir_resolve(v->inst->args[i]))) return true;
    return false;
}

static bool has_index_that_is_read(const Lanes *lanes, const Val *address) {
    for (; address->kind == VAL_inst && address->inst->nargs; address = ir_resolve(address->inst->args[0]))
        if (address->inst->nargs > 1 && is_of_read(lanes, ir_resolve(address->inst->args[1]))) return true;
    return false;
}

typedef struct Places {
    const Lanes *lanes;
    bool anywhere, written; /* what is read; something is, too */
} Places;

static void look_at_place(void *user, Inst *inst) {
    Places *places = user;
    bool is_access = op_has(inst->op, OP_READS | OP_WRITES) && inst->nargs && ir_target(inst->args[0]->type);
    if (!is_access || lanes_is_spread(ir_resolve(inst->args[0]))) return;
    places->written |= op_has(inst->op, OP_WRITES);
    for (int i = 0; i < inst->nargs; i++)
        places->anywhere |= ir_target(inst->args[i]->type) &&
                            has_index_that_is_read(places->lanes, ir_resolve(inst->args[i]));
}

/* LLVM then cannot ask before the loop whether what is written there overlaps with what is read. */
static bool reads_anywhere(const Lanes *lanes) {
    Places places = {.lanes = lanes};
    region_walk(lanes->from->body, look_at_place, &places);
    return places.anywhere && places.written;
}

/* Does LLVM do all of a round by vectors? What is summed up in order hinders it; where that is done for a
 * reverse pass, nobody uses the sum. */
bool lanes_are_vectors_alone(const Lanes *lanes) {
    const Rounds *rounds = lanes->rounds;
    bool has_order = rounds->ncounters + rounds->nsums < rounds->loop->nargs;
    if (rounds->keeps_checks || rounds->sums_meet || (has_order && !keeps_something(lanes))) return false;
    return !region_find(lanes->from->body, is_without_vectors, lanes) && !reads_anywhere(lanes);
}

/* ... so that wider registers are what is gained? */
static bool is_done_by_vectors(const Lanes *lanes) {
    return lanes->rounds && has_wide_registers(lanes) && lanes_are_vectors_alone(lanes);
}

static bool gains_by_width(const Lanes *lanes) {
    Cost cost = cost_of_vectors(lanes, lanes->from->body);
    return 2 * cost.alone >= 1.23 * cost.together;
}

/* What rounds of a loop do one after the other is done for each lane, with what the lanes give. */
static Cost cost_of_all(const Lanes *lanes) {
    Cost all = cost_of_region(lanes, lanes->from->body);
    const Rounds *rounds = lanes->rounds;
    for (int i = 0; rounds && i < rounds->tail.count; i++) {
        const Inst *inst = rounds->tail.at[i];
        double cost = op_info[inst->op].cost * parts_of(inst->results[0]->type);
        add(&all, (Cost){cost, cost}, 1, lanes->width);
    }
    if (rounds) all.together += 0.5 * rounds->given.count * lanes->width;
    return all;
}

/* With registers of more than 128 bits, LLVM has a few numbers in some of them, and makes vectors of such
 * rounds. */
static bool is_little(const LaneOptions *options, const Inst *inst) {
    static const double FEW = 32;
    bool is_whole = inst->op == OP_copy || inst->op == OP_zero;
    return is_whole && options->register_bits > 128 && words_of(ir_target(inst->args[0]->type)) <= FEW;
}

bool lanes_is_left_to_lanes(const LaneOptions *options, const Inst *inst) {
    bool is_loop = inst->op == OP_loop && !loop_is_short(inst) && !loop_is_written_out(inst);
    return (lanes_keeps_in_memory(inst) && !is_little(options, inst)) || op_is_elementary(inst->op) ||
           inst->op == OP_call || is_loop || inst->op == OP_switch ||
           (inst->op == OP_atomic && !is_own_sum(options, inst));
}

/* ---- how many lanes */

typedef struct Widths {
    const Lanes *lanes;
    int narrow, wide; /* instructions on numbers of up to 32 bits, and of 64 */
} Widths;

static void count_bits(void *user, Inst *inst) {
    Widths *widths = user;
    bool counts =
        inst->nresults == 1 && op_has(inst->op, OP_ELEMENTWISE) && varies(widths->lanes, inst->results[0]);
    if (!counts) return;
    if (type_bits(type_element(inst->results[0]->type)) == 64) widths->wide++;
    else widths->narrow++;
}

int lanes_best_width(const Lanes *lanes) {
    Widths widths = {.lanes = lanes};
    region_walk(lanes->from->body, count_bits, &widths);
    int width = 2 * lanes->options->register_bits / (widths.wide > widths.narrow ? 64 : 32);
    return width < 4 ? 4 : width > 16 ? 16 : width;
}

/* Half a register of floats: fewer gain little, and are hardly less code. */
int lanes_least_width(const Lanes *lanes) {
    int width = lanes->options->register_bits / 64;
    return width < 4 ? 4 : width;
}

/* ---- how much code */

typedef struct Amount {
    const Lanes *lanes;
    double code; /* in instructions of scalars, by the time that LLVM takes for them */
} Amount;

static double code_elsewhere(const Lanes *lanes) { return gathers(lanes) ? 24 : 3.5 * lanes->width; }

/* The loop has asked before it begins. */
static bool is_in_reach(const Val *address) {
    return address->kind == VAL_inst && address->inst->op == OP_buffer_elem &&
           inst_has(address->inst, INST_UNCHECKED);
}

static double code_of_access(const Lanes *lanes, const Inst *inst) {
    static const double IN_ROW = 0.6;
    Val *address = ir_resolve(inst->args[0]);
    const Type *type = ir_target(address->type);
    int step = lanes_step_of_address(lanes, address), parts = parts_of(type);
    if (step == STEP_same) return 0;
    if (lanes_is_spread(address)) return parts * (gathers(lanes) ? 4 : 1.5 * lanes->width);
    if (step == STEP_one && type->kind != TYPE_vector) return is_in_reach(address) ? 2 : 12;
    if (is_in_row(address)) return parts * IN_ROW * lanes->width;
    double strided = has_wide_registers(lanes) ? 4 : 1.5 * lanes->width;
    return parts * (step == STEP_none ? code_elsewhere(lanes) : strided);
}

static void count_apart(void *user, Inst *inst) {
    Amount *amount = user;
    const Lanes *lanes = amount->lanes;
    bool is_access = (inst->op == OP_load || inst->op == OP_store) && lanes_varies_here(lanes, inst);
    bool on_tape = inst->op == OP_tape_load || inst->op == OP_tape_store;
    if (is_access) amount->code += code_of_access(lanes, inst);
    else if (lanes_adds_by_rows_inside(lanes, inst)) amount->code += 2 * code_of_access(lanes, inst);
    else if (on_tape && varies(lanes, ir_resolve(inst->args[1]))) amount->code += code_elsewhere(lanes);
}

static void count_one(void *user, Inst *inst) {
    (void)inst;
    ((Amount *)user)->code++;
}

/* What a loop carries, in more registers than it should have: the code generator then looks for long which to
 * spare. */
static double code_of_carried(const Lanes *lanes, const Inst *loop) {
    static const double FITTING = 16;
    double taken = 0;
    for (int i = 0; i < loop->nresults; i++)
        if (loop->results[i]->type->kind == TYPE_vector) taken += registers(lanes, loop->results[i]->type);
    return taken > FITTING ? 25 * (taken - FITTING) : 0;
}

/* With masks, what is done if no lane is on, and selections. */
static double code_of_fork(const Lanes *lanes, const Inst *inst) {
    return lanes->rounds && inst->op != OP_loop ? 10 : 3;
}

static void count_wide(void *user, Inst *inst) {
    Amount *amount = user;
    if (inst->op == OP_loop) amount->code += code_of_carried(amount->lanes, inst);
    bool is_call =
        amount->lanes->rounds && op_is_elementary(inst->op) && inst->results[0]->type->kind == TYPE_vector;
    if (is_call) amount->code += 8; /* registers are kept in memory meanwhile */
    const Val *value = inst->nresults ? inst->results[0] : inst->nargs ? inst->args[inst->nargs > 1] : NULL;
    bool is_wide = value && value->type->kind == TYPE_vector, forks = op_has(inst->op, OP_REGIONS);
    double parts = is_wide ? type_count(value->type) / (double)amount->lanes->width : 1;
    amount->code += forks     ? code_of_fork(amount->lanes, inst)
                    : is_wide ? 0.5 * parts * registers(amount->lanes, type_element(value->type))
                              : 1;
}

static double code_of_one(const Lanes *lanes) {
    Amount amount = {.lanes = lanes};
    region_walk(lanes->from->body, count_one, &amount);
    return amount.code;
}

static double code_of_wide(const Lanes *lanes) {
    Amount amount = {.lanes = lanes};
    region_walk(lanes->to->body, count_wide, &amount);
    region_walk(lanes->from->body, count_apart, &amount);
    return amount.code;
}

/* Wide registers gain much more: then what runs often may take longer to compile. */
static double code_for_gain(const Lanes *lanes, double least) {
    static const double OF_GAIN = 0.85, MOST = 2.5;
    if (!has_wide_registers(lanes)) return least;
    Cost cost = cost_of_all(lanes);
    return fmin(fmax(OF_GAIN * lanes->width * cost.alone / cost.together, least), MOST);
}

/* Of a loop: where none are left but the fewest lanes, and those fill a register, there is much to lose. */
static double most_code_of_loop(const Lanes *lanes) {
    bool is_least = !gathers(lanes) && lanes->width == lanes_least_width(lanes);
    return code_for_gain(lanes, has_wide_registers(lanes) ? 1.1 : is_least ? 1.25 : 1);
}

/* About twice as long as one by one, with all else that is done: of a loop, what its rounds call is among
 * that. */
bool lanes_take_long(const Lanes *lanes) {
    static const double ALL_ELSE = 90, FOR_LOOPS = 230;
    const Rounds *rounds = lanes->rounds;
    double wide = code_of_wide(lanes), one = code_of_one(lanes);
    if (!rounds && lanes->ones.count)
        wide -= one; /* what is done where they are others: the kernel as it was */
    if (!rounds) return wide - one > code_for_gain(lanes, 0.8) * (ALL_ELSE + one);
    return wide + rounds->code_added > most_code_of_loop(lanes) * (FOR_LOOPS + rounds->code_around);
}

double lanes_code_added(const Lanes *lanes) { return code_of_wide(lanes); }

double lanes_code_alone(const Inst *inst) {
    enum { LOOP = 100 };
    return inst->op == OP_loop && !loop_is_short(inst) ? LOOP : 1;
}

/* LLVM would take minutes. */
bool lanes_are_too_much(const Lanes *lanes) {
    static const double MOST_CODE = 80000;
    return code_of_wide(lanes) > MOST_CODE;
}

/* Is there so much to do that it is done sooner, with the time to compile? That is some 10 ms and 0.1 ms for
 * each instruction, of which the processor does one in 0.2 ns. */
static bool saves_time(const Lanes *lanes, Cost cost) {
    const int *size = lanes->from->group_size;
    double items =
        lanes->rounds ? lanes->rounds->at_most : (double)lanes->options->groups * size[0] * size[1] * size[2];
    double compile = 4e7 + 5e5 * code_of_one(lanes);
    return (items <= 0 && !lanes->rounds) || items * (cost.alone - cost.together / lanes->width) > compile;
}

static bool is_vector_alone(const void *user, const Inst *inst) {
    (void)user;
    bool is_array =
        inst->op == OP_elem && !val_is_const(ir_resolve(inst->args[1])) && lanes_is_spread(inst->results[0]);
    return is_kept(inst) || (is_array && inst_is_in_written_out(inst));
}

/* Has a round of a loop what LLVM does with vectors by itself? It may keep something for a reverse pass, or
 * read it there: one lane after the other, where LLVM takes all that one round has at once; or there are
 * short loops over an array, whose rows LLVM has in registers. */
static bool has_vectors_alone(const Lanes *lanes) {
    return lanes->rounds && region_find(lanes->from->body, is_vector_alone, NULL);
}

typedef struct Own {
    const Lanes *lanes;
    bool pushes;  /* something is kept in each of as many steps as an item happens to make */
    bool gathers; /* items have other elements of their arrays */
} Own;

static void look_at_own(void *user, Inst *inst) {
    Own *own = user;
    own->pushes |= inst->op == OP_tape_reach;
    own->gathers |= inst->op == OP_elem && lanes_is_spread(inst->results[0]) &&
                    varies(own->lanes, ir_resolve(inst->args[1]));
}

/* With larger registers: a gather reads one number after the other, too. */
static double least_gain_of_own(const Lanes *lanes) {
    Own own = {.lanes = lanes};
    region_walk(lanes->from->body, look_at_own, &own);
    return own.pushes ? 3 : own.gathers ? 2.4 : 1;
}

/* With registers of 128 bits: LLVM does much for a loop of one round at a time, less where a register has two
 * numbers, and little around a function that it has not for vectors. */
static double least_gain_of_rounds(const Lanes *lanes, bool in_pairs) {
    More more = left_to_lanes(lanes);
    if (lanes->rounds->done_alone > 1) return 1.18; /* there is little to be wrong about */
    return more.stops && !more.found ? 1.35 : in_pairs ? 1.5 : 1.75;
}

/* How many times as fast they must seem: the wider registers are, the more often something else is in the
 * way. */
static double least_gain(const Lanes *lanes) {
    bool has_vectors = has_vectors_alone(lanes);
    bool in_pairs = lanes->options->register_bits == 128 && lanes_best_width(lanes) == 4; /* of doubles */
    double least = gathers(lanes)  ? 1.7
                   : lanes->rounds ? least_gain_of_rounds(lanes, in_pairs && !has_vectors)
                                   : 1.5;
    double alone = has_wide_registers(lanes) ? 1
                   : gathers(lanes)          ? 3
                   : in_pairs                ? 1.25
                              : 2; /* the fewer numbers a register has, the less LLVM takes at once */
    double own = gathers(lanes) ? least_gain_of_own(lanes) : 1;
    least = has_vectors ? alone * least : least;
    return own > least ? own : least;
}

/* All lanes fill one wide register, and half of it would do: much of the time goes to memory, where 64 bytes
 * that are read or written at once mostly lie in two lines. */
bool lanes_half_is_enough(const Lanes *lanes) {
    Lanes half = *lanes;
    half.width /= 2;
    if (!has_wide_registers(lanes) || lanes->width < 8 || lanes->rounds) return false;
    double all = cost_of_all(lanes).together / lanes->width, some = cost_of_all(&half).together / half.width;
    return some < 1.25 * all;
}

typedef struct Threads {
    const LaneOptions *options;
    const Lanes *lanes;
    bool has_more, has_loops,
        is_scattered; /* than LLVM makes vectors of; that are short; not neighbours alone */
} Threads;

static bool is_scattered(const Lanes *lanes, const Inst *inst) {
    bool is_access = (inst->op == OP_load || inst->op == OP_store || inst->op == OP_atomic) &&
                     lanes_varies_here(lanes, inst);
    int step = is_access ? lanes_step_of_address(lanes, ir_resolve(inst->args[0])) : STEP_one;
    return step == STEP_none || step == STEP_other;
}

static void look_at_threads(void *user, Inst *inst) {
    Threads *threads = user;
    threads->has_more |= lanes_is_left_to_lanes(threads->options, inst) || inst->op == OP_wave ||
                         inst->op == OP_barrier || inst->op == OP_atomic;
    threads->has_loops |= inst->op == OP_loop;
    threads->is_scattered |= is_scattered(threads->lanes, inst);
}

/* Kernels of little but arithmetic wait for memory, mostly, and LLVM makes vectors of the loop over threads:
 * lanes, and their tests of indices, are in its way. What it then gains by writing out short loops is not
 * estimated. Those with more than this to do were 0.97 to 1.8 times as fast with registers of 512 bits, the
 * others 0.7 to 1.4. */
static bool is_left_over_threads(const Lanes *lanes, Cost cost) {
    static const double LITTLE = 14, LITTLE_OF_NEIGHBOURS = 24;
    if (lanes->rounds || !has_wide_registers(lanes)) return false;
    Threads threads = {.options = lanes->options, .lanes = lanes};
    region_walk(lanes->from->body, look_at_threads, &threads);
    if (threads.has_more || cost.alone <= LITTLE) return !threads.has_more;
    return !threads.is_scattered &&
           (threads.has_loops || cost.alone <= LITTLE_OF_NEIGHBOURS || !gains_by_width(lanes));
}

static bool is_inner_scattered(const void *user, const Inst *inst) {
    return inst->parent->owner && is_scattered(user, inst);
}

bool lanes_are_scattered(const Lanes *lanes) {
    return region_find(lanes->from->body, is_inner_scattered, lanes);
}

/* Of a round, with those that are left behind: these are done with all tests of indices. */
static double time_of_round(const Lanes *lanes, Cost cost) {
    static const double LEFT = 1.5;
    int64_t trip = lanes->rounds ? lanes->rounds->trip : 0, left = trip % lanes->width;
    if (trip < lanes->width) return cost.together / lanes->width;
    double wide = (double)(trip / lanes->width) * cost.together;
    return (wide + (double)left * LEFT * cost.alone) / (double)trip;
}

double lanes_time_alone(const Lanes *lanes) { return cost_of_all(lanes).alone; }
double lanes_time_together(const Lanes *lanes) { return time_of_round(lanes, cost_of_all(lanes)); }
double lanes_gain(const Lanes *lanes) { return lanes_time_alone(lanes) / lanes_time_together(lanes); }

int lanes_width_for_trip(const Lanes *lanes) {
    static const double MUCH = 1.1;
    Lanes other = *lanes;
    int best = lanes->width;
    double most = lanes_gain(lanes);
    while (lanes->rounds->trip % lanes->width && (other.width /= 2) >= lanes_least_width(lanes)) {
        double gain = lanes_gain(&other);
        if (gain > MUCH * most) most = gain, best = other.width;
    }
    return best;
}

const char *lanes_not_worth_it(const Lanes *lanes) {
    Cost cost = cost_of_all(lanes);
    if (is_left_over_threads(lanes, cost)) return "it is left to LLVM";
    bool is_faster = is_done_by_vectors(lanes)
                         ? gains_by_width(lanes)
                         : cost.together * least_gain(lanes) < lanes->width * cost.alone;
    if (!is_faster) return "several at once would hardly be faster";
    return saves_time(lanes, cost) ? NULL : "it is done sooner than compiled for several";
}
