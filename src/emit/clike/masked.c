/* Loops of which the last vector is not full.
 *
 *     float *const kept = slope_all_float(tape);
 *     SLOPE_INDEPENDENT
 *     for (int32_t i = 0; i < SLOPE_WHOLE_VECTORS(14, 8); i++) {
 *         if (i < 14) {
 *             kept[base + i] = 1.0f / (expf(x[i]) + 1.0f);
 *         }
 *     }
 *
 * Of 14 rounds gcc makes a vector of eight numbers, one of four, and two rounds that are done one by one: each takes as long as a vector does. Where a processor can leave out elements of the vectors that it reads
 * and writes, LLVM does them in two vectors of eight. So does gcc with 16 rounds of which the last two do nothing, if it sees that what is skipped can be computed all the same, that no round needs another (independent.c), and where what a tape
 * keeps begins, which it would not read ahead of a test. Only what takes long is worth it: quotients, roots and elementary functions. */
#include "emit/clike/clike.h"

enum { MOST_ROUNDS = 64, BITS_OF_VECTOR = 256 };

typedef struct Search {
    const Printer *printer;
    const Type *type; /* of all numbers that are not indices; NULL: none was found so far */
    const Val *tape;  /* likewise */
    bool is_long, refused;
} Search;

/* How often it runs, if it counts from 0 by 1; 0: it is no such loop. */
static int64_t rounds_of(const Inst *loop, int counter) {
    LoopTest test;
    int64_t first, step, rounds;
    const Inst *comparison = loop->regions[0]->first;
    if (loop->nregions != 2 || loop->regions[1]->last->op != OP_yield || !comparison ||
        !loop_comparison(loop, comparison, &test) || test.index != counter || !test.up || test.or_equal)
        return 0;
    bool is_known = val_is_int(ir_resolve(test.limit), &rounds) &&
                    val_is_int(inst_operand(loop, counter), &first) && loop_step(loop, counter, &step);
    return is_known && first == 0 && step == 1 && rounds > 0 && rounds <= MOST_ROUNDS ? rounds : 0;
}

static bool adds_up(const Printer *p, const Inst *loop, int index) {
    const Val *param = loop->regions[1]->params[index];
    return loop_term(loop, index) == 1 && p->at->uses[param->id] == 1 &&
           param->type->kind == TYPE_float; /* in double gcc makes no vectors of a sum with a choice */
}

/* What else it carries are sums, and counters that go from 0, by 1, to where nobody asks. */
static bool carries_known(const Printer *p, const Inst *loop, int counter) {
    int64_t first, step;
    for (int i = 0; i < loop->nargs; i++) {
        if (i == counter || adds_up(p, loop, i)) continue;
        bool counts = type_is_integer(loop->args[i]->type) && val_is_int(inst_operand(loop, i), &first) &&
                      loop_step(loop, i, &step) && first == 0 && step == 1;
        if (!counts || p->at->uses[loop->results[i]->id]) return false;
    }
    return true;
}

static void note_number(Search *search, const Type *type) {
    bool is_number = type->kind == TYPE_float || type->kind == TYPE_double;
    search->refused |= !is_number || (search->type && search->type != type);
    search->type = type;
}

static void note_tape(Search *search, const Val *tape) {
    search->refused |= search->tape && search->tape != tape;
    search->tape = tape;
}

static void note_value(Search *search, const Inst *inst) {
    const Type *type = inst->nresults == 1 ? inst->results[0]->type : NULL;
    bool is_elementary = op_is_elementary(inst->op);
    search->refused |= !type || (is_elementary && inst->op != OP_exp && inst->op != OP_tanh);
    if (!type) return;
    if (type_is_float(type)) note_number(search, type);
    else search->refused |= type->kind == TYPE_vector;
    bool divides = inst->op == OP_div || inst->op == OP_ratio || inst->op == OP_sqrt;
    search->is_long |= type_is_float(type) && (is_elementary || divides);
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    switch ((Op)inst->op) {
    case OP_yield: break;
    case OP_load: note_number(search, inst->results[0]->type); break;
    case OP_store: note_number(search, inst->args[1]->type); break;
    case OP_tape_load:
        note_number(search, inst->results[0]->type);
        note_tape(search, inst_operand(inst, 0));
        break;
    case OP_tape_store:
        note_number(search, inst->args[2]->type);
        note_tape(search, inst_operand(inst, 0));
        break;
    case OP_atomic:
        note_number(search, inst->args[1]->type);
        search->refused |=
            !clike_is_plain_sum(search->printer, inst) || search->printer->at->uses[inst->results[0]->id];
        break;
    case OP_buffer_elem: search->refused |= !inst_has(inst, INST_UNCHECKED); break;
    default: search->refused |= !op_has(inst->op, OP_PURE); note_value(search, inst);
    }
}

static int lanes_of(const Type *type) { return BITS_OF_VECTOR / (type->kind == TYPE_float ? 32 : 64); }

bool clike_leaves_rest(int64_t rounds, const Type *type) {
    int64_t lanes = lanes_of(type), rest = rounds % lanes, half = lanes / 2,
            steps = rest / half + rest % half;
    return rounds > lanes && rounds <= MOST_ROUNDS && steps > (type->kind == TYPE_float ? 1 : 0);
}

static bool is_found(const Printer *p, const Inst *loop, int64_t rounds, Search *search) {
    region_walk(loop->regions[1], look_at, search);
    if (search->refused || !search->is_long) return false;
    return clike_leaves_rest(rounds, search->type) && clike_are_rounds_apart(p, loop, rounds);
}

const char *clike_begin_masked(Printer *p, const Inst *loop, int counter) {
    Search search = {.printer = p};
    int64_t rounds = clike_has_vectors(p) && !inst_is_unlikely(loop) ? rounds_of(loop, counter) : 0;
    if (rounds == 0 || !carries_known(p, loop, counter) || !is_found(p, loop, rounds, &search)) return NULL;
    const char *last = clike_local(p, "rounds"), *kept = NULL;
    clike_line(p, "const int32_t %s = %s(%d);", last, clike_helper(p, "slope_last_round"), (int)rounds);
    if (search.tape) {
        kept = clike_local(p, "kept");
        clike_line(p, "%s *const %s = %s(%s);", clike_type(p, search.type), kept,
                   clike_tape(p, "all", search.type), p->at->values[search.tape->id].text);
    }
    p->at->masked.loop = loop;
    p->at->masked.counter = counter;
    p->at->masked.last = last;
    p->at->masked.kept = kept;
    return clike_format(p, "SLOPE_WHOLE_VECTORS(%d, %d)", (int)rounds, lanes_of(search.type));
}

bool clike_counts_along(const Printer *p, const Inst *loop, int index) {
    return p->at->masked.loop == loop && index != p->at->masked.counter &&
           type_is_integer(loop->args[index]->type);
}

const char *clike_masked_place(Printer *p, const char *place) {
    return p->at->masked.loop && p->at->masked.kept ? clike_format(p, "%s[%s]", p->at->masked.kept, place)
                                                    : NULL;
}
