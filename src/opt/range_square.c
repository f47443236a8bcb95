/* Squares of a counter (range.c): the index of a packed triangle is one, plus something linear.
 *
 *     i * (i + 1) / 2 + j                i * (2 * n - i - 1) / 2 + j - i - 1               i * n - i * (i - 1) / 2 + j - i
 *
 * What such a sum gains from one number to the next is linear in the counter. So if it does not fall at either end of the counter's range, it does not in between, and is least at the first number
 * and greatest at the last; or the other way round. Both steps are computed before the nest, and tested. Half of a product is the number itself if one factor is even: if both differ by an odd
 * number, whatever the counter is.
 *
 * Factors are within 32 bits at both ends, hence nothing overflows in 64. */
#include "opt/range.h"

struct Square {
    Linear factors[2];
    int counter;
    bool is_halved;
};

/* ---- its value */

static Val *linear_at(Nest *n, const Linear *l, int counter, Val *at) {
    return range_binary(n, OP_add, l->base, range_binary(n, OP_mul, l->factors[counter], at));
}

static Val *square_at(Nest *n, const Square *s, Val *at) {
    Val *value = range_binary(n, OP_mul, linear_at(n, &s->factors[0], s->counter, at),
                              linear_at(n, &s->factors[1], s->counter, at));
    return s->is_halved ? range_binary(n, OP_div, value, range_number(n, 2)) : value;
}

/* With what else the sum has of the counter. */
static Val *part_at(Nest *n, const Linear *sum, int own, Val *at) {
    const Square *s = sum->own[own - OWN].square;
    Val *value = range_binary(n, OP_mul, sum->factors[own], square_at(n, s, at));
    Val *factor = sum->factors[s->counter];
    return factor ? range_binary(n, OP_add, value, range_binary(n, OP_mul, factor, at)) : value;
}

/* ---- its ends */

Val *range_square_extreme(Nest *n, const Linear *sum, int own, bool greatest) {
    int counter = sum->own[own - OWN].square->counter;
    const Between *between = &n->counters[counter].between;
    Val *one = range_number(n, 1), *zero = range_number(n, 0), *low = between->low, *high = between->high;
    Val *second = range_binary(n, OP_min, range_binary(n, OP_add, low, one), high),
        *last_but_one = range_binary(n, OP_max, range_binary(n, OP_sub, high, one), low);
    Val *first = part_at(n, sum, own, low), *last = part_at(n, sum, own, high);
    Val *begins = range_binary(n, OP_sub, part_at(n, sum, own, second), first),
        *ends = range_binary(n, OP_sub, last, part_at(n, sum, own, last_but_one));
    Val *rises = range_binary(n, OP_le, zero, range_binary(n, OP_min, begins, ends)),
        *falls = range_binary(n, OP_le, range_binary(n, OP_max, begins, ends), zero);
    Val *is_straight = range_binary(n, OP_or, rises, falls);
    if (val_is_zero(is_straight)) return NULL;
    range_require(n, is_straight);
    Linear rest = *sum;
    rest.factors[counter] = rest.factors[own] = NULL;
    Ways others = range_ways(n, &rest);
    Val *extreme = range_extreme(n, &rest, greatest);
    n->is_loose |= ((others.rises | others.falls) >> counter & 1) != 0;
    return extreme
               ? range_binary(n, OP_add, extreme, range_binary(n, greatest ? OP_max : OP_min, first, last))
               : NULL;
}

/* ---- products */

/* The counter that is all that the sum depends on; -1: it is something else. */
static int only_counter(const Nest *n, const Linear *l) {
    for (int i = 0; i < n->ncounters; i++)
        if (l->factors[i]) return range_factors(l) == 1 && !n->counters[i].varies ? i : -1;
    return -1;
}

static bool find_square_ends(Nest *n, const Square *s, Between *between) {
    unsigned of = 1u << s->counter;
    Linear alone = {.base = range_number(n, 0), .own = {{.square = s}}};
    alone.factors[OWN] = range_number(n, 1);
    *between = (Between){.low = range_square_extreme(n, &alone, OWN, false),
                         .high = range_square_extreme(n, &alone, OWN, true),
                         .square = s,
                         .ways = {of, of}};
    return between->low && between->high;
}

bool range_product(Nest *n, const Linear *one, const Linear *other, Between *between) {
    int counter = only_counter(n, one);
    if (counter < 0 || only_counter(n, other) != counter) return false;
    Square *s = arena_new(n->scratch, Square);
    *s = (Square){.factors = {*one, *other}, .counter = counter};
    return find_square_ends(n, s, between);
}

static Val *difference(Nest *n, Val *a, Val *b) {
    return range_binary(n, OP_and, range_binary(n, OP_sub, a, b), range_number(n, 1));
}

bool range_half(Nest *n, const Linear *product, Between *between) {
    int own = range_find_own(product, true);
    const Square *whole = own >= 0 ? product->own[own - OWN].square : NULL;
    int64_t known;
    if (!whole || whole->is_halved || range_factors(product) != 1 || !val_is_zero(product->base) ||
        !val_is_one(product->factors[own]))
        return false;
    Val *odd = difference(n, whole->factors[0].base, whole->factors[1].base),
        *even = difference(n, whole->factors[0].factors[whole->counter],
                           whole->factors[1].factors[whole->counter]);
    if ((val_is_int(odd, &known) && !known) || (val_is_int(even, &known) && known)) return false;
    range_require(n, range_binary(n, OP_eq, odd, range_number(n, 1)));
    range_require(n, range_binary(n, OP_eq, even, range_number(n, 0)));
    Square *s = arena_new(n->scratch, Square);
    *s = *whole;
    s->is_halved = true;
    return find_square_ends(n, s, between);
}
