/* Loops of which every round keeps numbers of its own.
 *
 *     SLOPE_INDEPENDENT
 *     for (int32_t i = 0; i < 14; i++) {
 *         double h = tanh(x[i] * w[i]);
 *         y[i] = h;
 *         slope_keep_double(tape, base + trip, h);
 *         trip++;
 *     }
 *
 * Before gcc makes vectors of a loop, it wants a test for each pair of what is written and what is read that
 * might be the same memory, and gives up if they are many. A tape is memory of its own, in which each round
 * has another place, and so has it in arrays that are indexed by a counter; then it is told that nothing
 * needs a test. */
#include "emit/clike/clike.h"

enum { MOST_ARRAYS = 24, MOST_ELEMENTS = 48 };

/* Where a counter stands among the indices. */
typedef struct Spot {
    const Val *counter; /* NULL: nowhere */
    int depth;          /* parts between the object and the element that it chooses */
} Spot;

/* Of a buffer that a nest of loops is given: the counter and `base` and `offset` are its index. */
typedef struct Element {
    const Val *buffer;
    const Val *base; /* NULL: 0 */
    int64_t offset;
    bool is_known; /* the index; else it may be any */
    bool is_written;
} Element;

typedef struct Rounds {
    const Printer *printer; /* NULL: buffers are not written to */
    const Inst *loop;
    Element elements[MOST_ELEMENTS];
    int nelements;
    const Val *arrays[MOST_ARRAYS]; /* that are written, from outside */
    Spot spots[MOST_ARRAYS];
    int narrays;
    uint32_t kept, read; /* kinds of numbers: written to a tape, and read from one */
    bool depends;
} Rounds;

/* Does it go up or down by the same in each round? */
static bool is_counter(const Inst *loop, const Val *v) {
    int64_t step;
    return loop && loop->op == OP_loop && v->kind == VAL_param && v->region == loop->regions[1] &&
           loop_step(loop, v->index, &step) && step != 0;
}

/* NULL: it is something else. */
static const Val *counter_of(const Inst *loop, const Val *v) {
    v = val_unconverted(v);
    return is_counter(loop, v) ? v : NULL;
}

static bool is_of_round(const Inst *loop, const Val *place) {
    if (counter_of(loop, place)) return true;
    if (place->kind != VAL_inst || place->inst->op != OP_add) return false;
    for (int i = 0; i < 2; i++)
        if (counter_of(loop, inst_operand(place->inst, i)) &&
            !inst_contains(loop, inst_operand(place->inst, 1 - i)))
            return true;
    return false;
}

static Spot spot_of_counter(const Inst *loop, const Val *address) {
    Spot spot = {0};
    for (; address->kind == VAL_inst && op_has(address->inst->op, OP_PART);
         address = inst_operand(address->inst, 0)) {
        if (spot.counter) spot.depth++;
        else if (address->inst->op == OP_elem)
            spot.counter = counter_of(loop, inst_operand(address->inst, 1));
    }
    return spot;
}

/* Of those that a nest of loops is given, each is another one; of others, those that C is told are alone
 * (emit/alone.c). */
static bool is_variable(const Rounds *rounds, const Val *root) {
    if (root->kind == VAL_inst) return root->inst->op == OP_var;
    if (root->kind != VAL_param || root->region->owner) return false;
    if (emit_is_outlined(root->region->func)) return true;
    const Param *param = &root->region->func->params[root->index];
    return rounds->printer && (param->flags & PARAM_BY_ADDRESS) &&
           emit_is_alone(&rounds->printer->reached, param);
}

static bool is_array_outside(const Rounds *rounds, const Val *root) {
    return is_variable(rounds, root) && !inst_contains(rounds->loop, root);
}

bool clike_is_indexed_by_data(const Val *address) {
    for (; address->kind == VAL_inst && op_has(address->inst->op, OP_PART);
         address = inst_operand(address->inst, 0)) {
        if (address->inst->op != OP_elem) continue;
        const Val *index = val_unconverted(inst_operand(address->inst, 1));
        bool is_counted = index->kind == VAL_param && is_counter(index->region->owner, index);
        if (!val_is_const(index) && !is_counted) return true;
    }
    return false;
}

static void add_offset(Element *element, const Val *v) {
    int64_t value;
    const Inst *sum = v->kind == VAL_inst && v->inst->op == OP_add ? v->inst : NULL;
    if (val_is_int(v, &value)) element->offset += value;
    else if (sum && val_is_int(inst_operand(sum, 1), &value)) {
        element->offset += value;
        element->base = inst_operand(sum, 0);
    } else element->base = v;
}

/* An index that is a counter, or one and what is the same in all rounds. */
static bool find_index(const Inst *loop, const Val *index, Element *element) {
    int64_t step;
    const Inst *sum = index->kind == VAL_inst && index->inst->op == OP_add ? index->inst : NULL;
    const Val *counter = counter_of(loop, sum ? inst_operand(sum, 0) : index);
    if (!counter || !loop_step(loop, counter->index, &step) || step != 1) return false;
    if (sum && inst_contains(loop, inst_operand(sum, 1))) return false;
    if (sum) add_offset(element, inst_operand(sum, 1));
    return true;
}

static bool is_given(const Val *buffer) {
    return buffer->kind == VAL_param && !buffer->region->owner && emit_is_outlined(buffer->region->func);
}

static bool note_element(Rounds *rounds, Val *address, bool is_written) {
    const Val *root = ir_root(address);
    if (!rounds->printer || root->kind != VAL_inst || root->inst->op != OP_buffer_elem) return false;
    Element element = {.buffer = inst_operand(root->inst, 0), .is_written = is_written};
    bool is_whole = ir_resolve(address) == root;
    element.is_known = is_whole && find_index(rounds->loop, inst_operand(root->inst, 1), &element);
    if (rounds->nelements < MOST_ELEMENTS && is_given(element.buffer))
        rounds->elements[rounds->nelements++] = element;
    else rounds->depends = true;
    return true;
}

static void note_write(Rounds *rounds, const Inst *inst) {
    if (note_element(rounds, inst->args[0], true)) return;
    const Val *root = ir_root(inst->args[0]);
    bool is_local = is_variable(rounds, root);
    if (is_local && inst_contains(rounds->loop, root)) {
        rounds->depends |= clike_is_indexed_by_data(ir_resolve(inst->args[0]));
        return;
    }
    bool is_known = is_local && inst->op == OP_store && rounds->narrays < MOST_ARRAYS;
    Spot spot = is_known ? spot_of_counter(rounds->loop, ir_resolve(inst->args[0])) : (Spot){0};
    if (!spot.counter) {
        rounds->depends = true;
        return;
    }
    rounds->arrays[rounds->narrays] = root;
    rounds->spots[rounds->narrays++] = spot;
}

static void note_writes(void *user, Inst *inst) {
    Rounds *rounds = user;
    bool is_plain =
        op_has(inst->op, OP_PURE) || inst->op == OP_load || inst->op == OP_var || inst->op == OP_yield;
    switch ((Op)inst->op) {
    case OP_store: note_write(rounds, inst); break;
    case OP_tape_store:
        rounds->kept |= 1u << inst->args[2]->type->kind;
        rounds->depends |= !is_of_round(rounds->loop, inst_operand(inst, 1));
        break;
    case OP_tape_load: rounds->read |= 1u << inst->results[0]->type->kind; break;
    case OP_loop:
    case OP_if: break;
    case OP_atomic:
        rounds->depends |= !rounds->printer || !clike_is_plain_sum(rounds->printer, inst) ||
                           !note_element(rounds, inst->args[0], true);
        break;
    default: rounds->depends |= !is_plain;
    }
}

/* What is written is read in the same round only. */
static void note_access(void *user, Inst *inst) {
    Rounds *rounds = user;
    if (inst->op != OP_load && inst->op != OP_store && inst->op != OP_copy) return;
    if (inst->op == OP_load && note_element(rounds, inst->args[0], false)) return;
    for (int k = 0; k < inst->nargs; k++) {
        if (inst->args[k]->type->kind != TYPE_pointer) continue;
        const Val *root = ir_root(inst->args[k]);
        if (!is_array_outside(rounds, root)) continue;
        Spot here = spot_of_counter(rounds->loop, ir_resolve(inst->args[k]));
        for (int i = 0; i < rounds->narrays; i++) {
            Spot spot = rounds->spots[i];
            bool is_same = here.counter == spot.counter && here.depth == spot.depth;
            rounds->depends |= rounds->arrays[i] == root && !is_same;
        }
    }
}

/* What a round takes over from the one before is a counter or a sum. */
static bool carries_sums(const Inst *loop) {
    const Inst *yield = loop->regions[1]->last;
    for (int i = 0; i < loop->nargs && yield->op == OP_yield; i++) {
        bool is_same = inst_operand(yield, i) == loop->regions[1]->params[i];
        if (!is_same && loop_term(loop, i) < 0) return false;
    }
    return yield->op == OP_yield;
}

static bool are_apart(Rounds *rounds) {
    region_walk(rounds->loop->regions[1], note_writes, rounds);
    if (rounds->depends || (rounds->kept & rounds->read)) return false;
    region_walk(rounds->loop->regions[1], note_access, rounds);
    return !rounds->depends;
}

static bool is_independent(Rounds *rounds) {
    return rounds->loop->nregions == 2 && carries_sums(rounds->loop) && are_apart(rounds);
}

bool clike_is_independent(const Inst *loop) {
    Rounds rounds = {.loop = loop};
    return is_independent(&rounds);
}

bool clike_keeps_independent(const Inst *loop) {
    Rounds rounds = {.loop = loop};
    return is_independent(&rounds) && rounds.kept;
}

/* Where they are the same, only one round comes there. */
static bool may_meet(const Element *a, const Element *b, int64_t rounds) {
    if (a->buffer != b->buffer) return false;
    if (!a->is_known || !b->is_known || a->base != b->base) return true;
    return a->offset != b->offset && a->offset - b->offset < rounds && b->offset - a->offset < rounds;
}

bool clike_are_rounds_apart(const Printer *p, const Inst *loop, int64_t rounds) {
    Rounds found = {.printer = p, .loop = loop};
    if (!are_apart(&found)) return false;
    for (int i = 0; i < found.nelements; i++)
        for (int k = 0; k < found.nelements && found.elements[i].is_written; k++)
            if (may_meet(&found.elements[i], &found.elements[k], rounds)) return false;
    return true;
}
