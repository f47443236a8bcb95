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
 * in memory. So a loop over y assumes nothing, and lanes_loop.c looks at the loops in it. */
#include "opt/lanes.h"

/* An index: what it ends with, and what the number of the round is multiplied by. */
typedef struct Index {
    const Lanes *lanes;
    Val *last;  /* factor of the last term that is no constant; NULL: it has none */
    Val *round; /* factor of the counter of rounds, in all terms that have it */
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

bool lanes_is_one(const Lanes *lanes, const Val *v) {
    return lanes->rounds && has(&lanes->rounds->ones, lanes_unconverted(v));
}

Val *lanes_times_one(const Lanes *lanes, const Inst *product) {
    for (int i = 0; i < 2; i++)
        if (lanes_is_one(lanes, inst_operand(product, i))) return inst_operand(product, 1 - i);
    return NULL;
}

static void add_term(void *user, const Val *v, Val *factor, bool is_multiple) {
    Index *index = user;
    const Lanes *lanes = index->lanes;
    index->last = is_multiple ? NULL : factor;
    if (!varies(lanes, v)) return;
    bool is_counter = lanes_is_counter(lanes, v);
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
    if (!index.round) return;
    bool is_last = !index.lost && index.last == index.round;
    vec_push(search->lanes->scratch, is_last ? &search->found : &search->refused, index.round);
}

/* With two times the gain, it does not matter what becomes of other strides; nor where lanes were asked for. */
static bool gains_enough(Lanes *lanes, const ValVec *ones) {
    static const double LEAST = 1.3, WHERE_OTHERS_GAIN = 2;
    if (lanes->options->width) return true;
    double before = lanes_gain(lanes);
    const char *why = lanes_not_worth_it(lanes);
    lanes->rounds->ones = *ones;
    double factor = lanes_gain(lanes) / before;
    lanes->rounds->ones = (ValVec){0};
    return factor >= (why ? LEAST : WHERE_OTHERS_GAIN);
}

void lanes_take_for_ones(Lanes *lanes) {
    Search search = {.lanes = lanes};
    ValVec ones = {0};
    region_walk(lanes->from->body, look, &search);
    for (int i = 0; i < search.found.count; i++) {
        Val *v = search.found.at[i];
        if (!has(&search.refused, v) && !has(&ones, v)) vec_push(lanes->scratch, &ones, v);
    }
    if (ones.count && gains_enough(lanes, &ones)) lanes->rounds->ones = ones;
}
