/* `if ... else if ... else` and `a ? b : c ? d : e`: conditions of which the first that holds decides.
 *
 * In the IR each stands in the other region of the one before. Since all that follows walks down into
 * regions, a long chain is cut into pieces, one after the other: a variable says whether the choice is still
 * open, and the next piece is skipped if it is not. Where every branch so far leaves (returns, say), whoever
 * comes past them is still to choose, and nothing is asked. */
#include "lower/lowerer.h"

enum { PIECE = 32 };

typedef struct RegionEnd { /* what was built before */
    Builder outer;
    bool dead;
} RegionEnd;

static RegionEnd begin_region(Fn *f, Region *region) {
    RegionEnd end = {f->b, f->dead};
    f->b = build_at_end(region);
    f->b.loc = end.outer.loc;
    f->dead = false;
    return end;
}

static void end_region(Fn *f, const RegionEnd *end) {
    if (!f->dead) build_yield(&f->b, NULL, 0);
    f->dead = end->dead;
    f->b = end->outer;
}

static void set_open(Fn *f, const Chain *chain, bool open) {
    if (chain->open) build_store(&f->b, chain->open, const_int(f, TYPE_bool, open));
}

static void lower_branch(Fn *f, Chain *chain, int index) {
    chain->branch(f, chain, index);
    chain->passes |= !f->dead;
}

/* The conditions from `at` to `end`, then the rest of the chain, if that is all. */
static void lower_piece(Fn *f, Chain *chain, int at, int end) {
    if (at == end) {
        if (end == chain->count) lower_branch(f, chain, end);
        else set_open(f, chain, true);
        return;
    }
    Val *condition = chain->condition(f, chain, at);
    int64_t known;
    if (val_is_int(condition, &known)) { /* keeps code out that a specialisation cannot lower: if (T is I) */
        if (!known) lower_piece(f, chain, at + 1, end);
        else {
            lower_branch(f, chain, at);
            chain->ended = true;
        }
        return;
    }
    Inst *inst = build_if(&f->b, condition, NULL, 0);
    RegionEnd then = begin_region(f, inst->regions[0]);
    lower_branch(f, chain, at);
    end_region(f, &then);
    RegionEnd other = begin_region(f, inst->regions[1]);
    lower_piece(f, chain, at + 1, end);
    end_region(f, &other);
    after_if(f, inst);
}

static void lower_next_piece(Fn *f, Chain *chain, int at, int end) {
    if (!chain->passes) {
        set_open(f, chain, false);
        lower_piece(f, chain, at, end);
        return;
    }
    Inst *inst = build_if(&f->b, build_load(&f->b, chain->open), NULL, 0);
    RegionEnd then = begin_region(f, inst->regions[0]);
    set_open(f, chain, false);
    lower_piece(f, chain, at, end);
    end_region(f, &then);
    RegionEnd other = begin_region(f, inst->regions[1]);
    end_region(f, &other);
}

bool chain_is_long(int count) { return count > PIECE; }

void lower_chain(Fn *f, Chain *chain) {
    if (chain_is_long(chain->count))
        chain->open =
            build_var(&f->b, type_basic(f->l->types, TYPE_bool), name_from(f->l->m->names, "open"), false);
    for (int at = 0; at < chain->count && !chain->ended; at += PIECE) {
        int end = at + PIECE;
        lower_next_piece(f, chain, at, end < chain->count ? end : chain->count);
    }
}
