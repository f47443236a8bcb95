/* Loops of which the last vector is not full.
 *
 *     float *const kept = slope_all_float(tape);
 *     SLOPE_FEW_ROUNDS
 *     for (int32_t i = 0; i < SLOPE_WHOLE_VECTORS(14, 8); i++) {
 *         if (i < 14) {
 *             kept[base + i] = 1.0f / (expf(x[i]) + 1.0f);
 *         }
 *     }
 *
 * Of 14 rounds gcc makes a vector of eight numbers, one of four, and two rounds that are done one by one:
 * each takes as long as a vector does. Where a processor can leave out elements of the vectors that it reads
 * and writes, LLVM does them in two vectors of eight. So does gcc with 16 rounds of which the last two do
 * nothing, if it sees that what is skipped can be computed all the same, that no round needs another
 * (independent.c), and where what a tape keeps begins, which it would not read ahead of a test. Only what
 * takes long is worth it: quotients, roots and elementary functions.
 *
 * What of a vector was not written cannot be read back before the rest is in the cache, so that the next loop
 * would wait. Where the row of a local array has elements for all rounds (opt/padded.c), whole vectors are
 * written:
 *
 *     float x_2 = 0.0f;
 *     if (i < 14) { x_2 = x[i]; x_2 = expf(x_2); }
 *     x[i] = x_2;
 *
 * Two vectors of floats with such rows are written out (SLOPE_TWO_VECTORS), and the first leaves out nothing:
 * `if (i < 8 || i < 14)`. Its rounds are counted in numbers of 32 bits, so that as many are compared at
 * once. */
#include "emit/clike/clike.h"

enum { MOST_ROUNDS = 64 };
enum { OF_FUNCTION = 30, OF_GUARDED = 3, MOST_WRITTEN_OUT = 80 }; /* instructions of a vector */

typedef struct Search {
    const Printer *printer;
    const Type *type; /* of all numbers that are not indices; NULL: none was found so far */
    const Val *tape;  /* likewise */
    bool is_long, refused;
    bool has_rows; /* with elements for all rounds */
    int weight;
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
    search->is_long |= type_is_float(type) && (is_elementary || op_is_quotient_or_root(inst->op));
    bool is_guarded = inst->op == OP_scale || inst->op == OP_ratio;
    search->weight += is_elementary ? OF_FUNCTION : is_guarded ? OF_GUARDED : 1;
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    search->has_rows |= clike_is_in_whole_row(inst);
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

static bool is_found(const Printer *p, const Inst *loop, int64_t rounds, Search *search) {
    region_walk(loop->regions[1], look_at, search);
    if (search->refused || !search->is_long) return false;
    return loop_leaves_rest(rounds, search->type) && clike_are_rounds_apart(p, loop, rounds);
}

static const char *declare_kept(Printer *p, const Search *search) {
    const char *kept = clike_local(p, "kept");
    clike_line(p, "%s *const %s = %s(%s);", clike_type(p, search->type), kept,
               clike_tape(p, "all", search->type), p->at->values[search->tape->id].text);
    return kept;
}

const char *clike_begin_masked(Printer *p, const Inst *loop, int counter) {
    Search search = {.printer = p};
    int64_t rounds = clike_has_vectors(p) && !inst_is_unlikely(loop) ? rounds_of(loop, counter) : 0;
    if (rounds == 0 || !carries_known(p, loop, counter) || !is_found(p, loop, rounds, &search)) return NULL;
    int numbers = loop_vector_numbers(search.type);
    int64_t whole = loop_whole_vectors(rounds, search.type);
    bool is_pair = search.has_rows && search.type->kind == TYPE_float &&
                   whole == 2 * numbers; /* four of doubles take longer so */
    const char *last = clike_local(p, "rounds");
    clike_line(p, "const int32_t %s = %s(%d);", last, clike_helper(p, "slope_last_round"), (int)rounds);
    p->at->masked.before = p->at->masked.first = p->at->masked.after = (Text){.arena = &p->arena};
    p->at->masked.full = is_pair ? numbers : 0;
    p->at->masked.is_written_out = is_pair || search.weight <= MOST_WRITTEN_OUT;
    p->at->masked.bits = p->at->masked.again = NULL;
    p->at->masked.is_double = search.type->kind == TYPE_double;
    p->at->masked.kept = search.tape ? declare_kept(p, &search) : NULL;
    p->at->masked.loop = loop;
    p->at->masked.counter = counter;
    p->at->masked.last = last;
    p->at->masked.rounds = whole;
    return clike_format(p, "SLOPE_WHOLE_VECTORS(%d, %d)", (int)rounds, numbers);
}

bool clike_is_pair(const Printer *p, const Inst *loop) {
    return p->at->masked.loop == loop && p->at->masked.full > 0;
}

const char *clike_masked_test(Printer *p, const char *counter, const char *last) {
    const char *test = clike_format(p, "%s < %s", counter, last);
    return p->at->masked.full ? clike_format(p, "%s < %d || %s", counter, p->at->masked.full, test) : test;
}

bool clike_counts_along(const Printer *p, const Inst *loop, int index) {
    return p->at->masked.loop == loop && index != p->at->masked.counter &&
           type_is_integer(loop->args[index]->type);
}

const char *clike_masked_place(Printer *p, const char *place) {
    return p->at->masked.loop && p->at->masked.kept ? clike_format(p, "%s[%s]", p->at->masked.kept, place)
                                                    : NULL;
}

/* ---- arrays with room for the rounds that do nothing */

typedef struct Accesses {
    const Val *root, *address;
    bool reads, writes, others;
} Accesses;

static void look_at_access(void *user, Inst *inst) {
    Accesses *accesses = user;
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = inst_operand(inst, i);
        bool is_one =
            v->type->kind == TYPE_pointer && !op_has(inst->op, OP_PART) && ir_root(v) == accesses->root;
        accesses->others |= is_one && v != accesses->address;
        accesses->reads |= is_one && op_has(inst->op, OP_READS);
        accesses->writes |= is_one && op_has(inst->op, OP_WRITES);
    }
}

static bool is_outside(const Inst *loop, const Val *v) {
    if (!inst_contains(loop, v)) return true;
    return v->kind == VAL_inst && v->inst->op == OP_elem && !inst_contains(loop, inst_operand(v->inst, 0)) &&
           !inst_contains(loop, val_unconverted(inst_operand(v->inst, 1)));
}

static bool is_counter(const Printer *p, const Val *index) {
    const Inst *loop = p->at->masked.loop;
    return index->kind == VAL_param && index->region->owner == loop &&
           ((int)index->index == p->at->masked.counter || clike_counts_along(p, loop, (int)index->index));
}

static bool is_in_every_round(const Printer *p, const Inst *elem) {
    const Inst *loop = p->at->masked.loop;
    return loop && elem->parent == loop->regions[1] && clike_is_in_whole_row(elem) &&
           type_length(ir_target(inst_operand(elem, 0)->type)) >= p->at->masked.rounds &&
           is_counter(p, val_unconverted(inst_operand(elem, 1))) && is_outside(loop, inst_operand(elem, 0));
}

static void add_line(Printer *p, Text *text, int indent, const char *to, const char *from) {
    Text *out = p->out;
    p->out = text;
    p->indent += indent;
    clike_line(p, "%s = %s;", to, from);
    p->indent -= indent;
    p->out = out;
}

const char *clike_short_counter(Printer *p, const Inst *loop, const char *name) {
    const Type *type = clike_is_pair(p, loop) ? loop->args[p->at->masked.counter]->type : NULL;
    if (!type || type_bits(type) <= 32) return NULL;
    const char *round = clike_local(p, "n");
    add_line(p, &p->at->masked.before, 1, clike_declare_value(p, type, name), round);
    return round;
}

/* Read in the rounds that do something, and written in all. */
Value clike_masked_element(Printer *p, const Inst *elem, Value place) {
    if (place.raw || !is_in_every_round(p, elem)) return place;
    const Val *address = elem->results[0];
    const Type *type = ir_target(address->type);
    Accesses accesses = {.root = ir_root(elem->results[0]), .address = address};
    region_walk(p->at->masked.loop->regions[1], look_at_access, &accesses);
    if (accesses.others || !accesses.writes) return place;
    const char *element = clike_place(p, place, type), *name = clike_name_value(p, address);
    add_line(p, &p->at->masked.before, -1, clike_declare(p, type, name), clike_zero(p, type));
    if (accesses.reads) add_line(p, &p->at->masked.first, 0, name, element);
    add_line(p, &p->at->masked.after, -1, element, name);
    place.text = name;
    place.level = LEVEL_primary;
    return place;
}

bool clike_is_in_whole_row(const Inst *inst) { return inst->op == OP_elem && inst_has(inst, INST_RAW); }

static bool is_element(const Val *address) {
    return address->kind == VAL_inst && clike_is_in_whole_row(address->inst);
}

/* gcc writes out both vectors of a short loop, and has other registers for the second: nothing was in
 * those. */
Value clike_masked_load(Printer *p, const Inst *inst, Value value) {
    const Inst *loop = p->at->masked.loop;
    if (!loop || !p->at->masked.is_written_out || inst->parent != loop->regions[1]) return value;
    if (inst->op != OP_tape_load && is_element(inst_operand(inst, 0))) return value;
    if (!p->at->masked.bits) {
        p->at->masked.again = clike_local(p, "again");
        p->at->masked.bits = clike_local(p, "bits");
    }
    const char *helper = clike_helper(p, p->at->masked.is_double ? "slope_only_double" : "slope_only_float");
    value.text = clike_format(p, "%s(%s, %s)", helper, value.text, p->at->masked.bits);
    value.level = LEVEL_primary;
    return value;
}

void clike_masked_again(Printer *p) {
    if (!p->at->masked.again) return;
    clike_line(p, "const int32_t %s = %s(%s);", p->at->masked.again, clike_helper(p, "slope_again"),
               p->at->masked.last);
}

void clike_masked_bits(Printer *p, const char *counter) {
    const char *type = p->at->masked.is_double ? "uint64_t" : "uint32_t";
    if (!p->at->masked.again) return;
    clike_line(p, "const %s %s = (%s)0 - (%s);", type, p->at->masked.bits, type,
               clike_masked_test(p, counter, p->at->masked.again));
}
