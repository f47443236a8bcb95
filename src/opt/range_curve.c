/* What depends on one sum of counters alone (range.c), but is not linear: squares, as the index of a packed
 * triangle has them, and quotients.
 *
 *     i * (i + 1) / 2 + j         i * (2 * n - i - 1) / 2 + j - i - 1         i * n - i * (i - 1) / 2 + j - i         i - i / 2
 *
 * What a square gains from one number to the next is linear in that number. So if a sum with it does not fall
 * at either end of the range, it does not in between, and is least at the first number and greatest at the
 * last; or the other way round. Both steps are computed before the nest, and tested. Half of a product is the
 * number itself if one factor is even: if both differ by an odd number, whatever the counter is. What a
 * quotient by a constant gains is between zero and a constant: it is known without a test whether a sum with
 * it turns round.
 *
 * Where several counters make up the square, and one is there beside it, (i + j) * (i + j + 1) / 2 + j, all
 * have to rise, so that they are at their ends together.
 *
 * A number that is carried through a triangle, a[next++], has gained a square, too: the sum of what it gained
 * in each row.
 *
 * Factors are within 32 bits at both ends, hence nothing overflows in 64. */
#include "opt/range.h"

struct Curve {
    Linear of;                 /* int64, without a base; constants, if it has several counters */
    Val *scales[2], *bases[2]; /* factors: scale * of + base */
    int nfactors;              /* 1: it is a quotient */
    Op divides;                /* OP_div or OP_shr */
    Val *by;                   /* NULL: it is not divided */
    Val *more;                 /* is added to it; NULL: nothing */
};

/* ---- sums as multiples of others */

/* How much of `of` is in the sum: NULL if nothing; false: its counters are there by other parts. */
static bool find_rate(Nest *n, const Linear *sum, const Linear *of, Val **rate) {
    int64_t whole = 0, part, unit;
    bool is_first = true;
    *rate = NULL;
    for (int i = 0; i < MOST_COUNTERS; i++) {
        if (!of->factors[i]) continue;
        if (range_factors(of) == 1) {
            *rate = sum->factors[i];
            return true;
        }
        part = 0;
        if (!val_is_int(of->factors[i], &unit) || (sum->factors[i] && !val_is_int(sum->factors[i], &part)) ||
            part % unit != 0 || (!is_first && part / unit != whole))
            return false;
        whole = part / unit;
        is_first = false;
    }
    if (whole != 0) *rate = range_number(n, whole);
    return true;
}

/* What a curve of this sum depends on. */
static bool find_of(Nest *n, const Linear *sum, Linear *of) {
    int64_t known;
    int count = range_factors(sum);
    *of = (Linear){.base = range_number(n, 0)};
    for (int i = 0; i < FACTORS; i++) {
        Val *factor = sum->factors[i];
        if (factor && (i >= OWN || (count > 1 && !val_is_int(factor, &known)))) return false;
        if (factor) of->factors[i] = count > 1 ? factor : range_number(n, 1);
    }
    return count > 0;
}

static unsigned counters_of(const Curve *c) {
    unsigned counters = 0;
    for (int i = 0; i < MOST_COUNTERS; i++)
        if (c->of.factors[i]) counters |= 1u << i;
    return counters;
}

int range_first_of_curves(const Linear *sum) {
    unsigned counters = 0;
    int first = FACTORS;
    for (int i = 0; i < MOST_OWN; i++)
        if (sum->factors[OWN + i] && sum->own[i].curve) counters |= counters_of(sum->own[i].curve);
    for (int i = MOST_COUNTERS - 1; i >= 0; i--)
        if (counters >> i & 1) first = i;
    return first;
}

/* ---- its value */

static Val *factor_at(Nest *n, const Curve *c, int factor, Val *at) {
    return range_binary(n, OP_add, c->bases[factor], range_binary(n, OP_mul, c->scales[factor], at));
}

static Val *curve_at(Nest *n, const Curve *c, Val *at) {
    Val *value = factor_at(n, c, 0, at);
    if (c->nfactors == 2) value = range_binary(n, OP_mul, value, factor_at(n, c, 1, at));
    if (c->by) value = range_binary(n, c->divides, value, c->by);
    return c->more ? range_binary(n, OP_add, value, c->more) : value;
}

/* A part of a sum: the curve, once or taken away, and what else the sum has of what it depends on. */
typedef struct Bend {
    const Curve *curve;
    Val *factor, *rate; /* rate: NULL if nothing */
} Bend;

static Val *bend_at(Nest *n, const Bend *b, Val *at) {
    Val *value = range_binary(n, OP_mul, b->factor, curve_at(n, b->curve, at));
    return b->rate ? range_binary(n, OP_add, value, range_binary(n, OP_mul, b->rate, at)) : value;
}

/* ---- its ends */

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

/* Does a quotient with it go one way, by what constants tell? */
static bool is_one_way(const Bend *b) {
    int64_t scale, by, factor, rate = 0;
    const Curve *c = b->curve;
    if (!val_is_int(c->scales[0], &scale) || !val_is_int(c->by, &by) || !val_is_int(b->factor, &factor) ||
        (b->rate && !val_is_int(b->rate, &rate)))
        return false;
    if (c->divides == OP_shr) by = (int64_t)1 << by;
    int64_t most = (magnitude(scale) + by - 1) / by, turn = (scale < 0) == (factor < 0) ? most : -most;
    return turn < 0 ? rate <= 0 || rate + turn >= 0 : rate >= 0 || rate + turn <= 0;
}

/* What is required is that the part rises, or falls, at both ends; false: it does neither. `rises_only`: it
 * has to rise. */
static bool require_one_way(Nest *n, const Bend *b, Val *low, Val *high, bool rises_only) {
    if (b->curve->nfactors == 1) return is_one_way(b);
    Val *one = range_number(n, 1), *zero = range_number(n, 0);
    Val *second = range_binary(n, OP_min, range_binary(n, OP_add, low, one), high),
        *last_but_one = range_binary(n, OP_max, range_binary(n, OP_sub, high, one), low);
    Val *at_second = bend_at(n, b, second), *begins = range_binary(n, OP_sub, at_second, bend_at(n, b, low));
    Val *at_high = bend_at(n, b, high), *ends = range_binary(n, OP_sub, at_high, bend_at(n, b, last_but_one));
    Val *rises = range_binary(n, OP_le, zero, range_binary(n, OP_min, begins, ends)),
        *falls = range_binary(n, OP_le, range_binary(n, OP_max, begins, ends), zero);
    Val *is_straight = rises_only ? rises : range_binary(n, OP_or, rises, falls);
    if (val_is_zero(is_straight)) return false;
    range_require(n, is_straight);
    return true;
}

static bool find_bend(Nest *n, const Linear *sum, int own, Bend *bend) {
    *bend = (Bend){.curve = sum->own[own - OWN].curve, .factor = sum->factors[own]};
    return find_rate(n, sum, &bend->curve->of, &bend->rate) || bend->curve->nfactors == 2;
}

static bool is_own_curve(const Linear *sum, int own) {
    int64_t known;
    const Val *factor = sum->factors[own];
    return factor && sum->own[own - OWN].curve && val_is_int(factor, &known) && magnitude(known) == 1;
}

int range_find_curve(Nest *n, const Linear *sum, int counter) {
    Bend bend;
    for (int own = OWN; own < FACTORS; own++) {
        if (!is_own_curve(sum, own)) continue;
        bool depends = counters_of(sum->own[own - OWN].curve) >> counter & 1;
        if (depends && find_bend(n, sum, own, &bend) && (bend.curve->nfactors == 2 || is_one_way(&bend)))
            return own;
    }
    return -1;
}

Val *range_curve_extreme(Nest *n, const Linear *sum, int own, bool greatest) {
    Linear rest = *sum;
    Bend bend;
    if (!find_bend(n, sum, own, &bend)) return NULL;
    unsigned counters = counters_of(bend.curve);
    Val *low = range_extreme(n, &bend.curve->of, false);
    bool is_loose = n->is_loose;
    Val *high = range_extreme(n, &bend.curve->of, true);
    is_loose |= n->is_loose;
    rest.factors[own] = NULL;
    for (int i = 0; i < MOST_COUNTERS && bend.rate; i++)
        if (counters >> i & 1) rest.factors[i] = NULL;
    Ways of = range_ways(n, &bend.curve->of), others = range_ways(n, &rest);
    bool rise_together =
        bend.curve->nfactors == 2 && !of.falls && (others.rises & counters) && !(others.falls & of.rises);
    if (!low || !high || !require_one_way(n, &bend, low, high, rise_together)) return NULL;
    Val *extreme = range_extreme(n, &rest, greatest);
    n->is_loose |= is_loose || (!rise_together && ((others.rises | others.falls) & counters) != 0);
    Val *ends[] = {bend_at(n, &bend, low), bend_at(n, &bend, high)};
    Val *part = range_binary(n, greatest ? OP_max : OP_min, ends[0], ends[1]);
    return extreme ? range_binary(n, OP_add, extreme, part) : NULL;
}

/* ---- products and quotients */

static bool find_curve_ends(Nest *n, const Curve *c, Between *between) {
    unsigned of = counters_of(c);
    Linear alone = {.base = range_number(n, 0), .own = {{.curve = c}}};
    alone.factors[OWN] = range_number(n, 1);
    *between = (Between){.curve = c, .ways = {of, of}};
    between->low = range_curve_extreme(n, &alone, OWN, false);
    between->is_loose = n->is_loose;
    between->high = range_curve_extreme(n, &alone, OWN, true);
    between->is_loose |= n->is_loose;
    return between->low && between->high;
}

bool range_product(Nest *n, const Linear *one, const Linear *other, Between *between) {
    Curve *c = arena_new(n->scratch, Curve);
    *c = (Curve){.nfactors = 2, .bases = {one->base, other->base}};
    return find_of(n, one, &c->of) && range_factors(other) == range_factors(&c->of) &&
           find_rate(n, one, &c->of, &c->scales[0]) && find_rate(n, other, &c->of, &c->scales[1]) &&
           c->scales[1] && find_curve_ends(n, c, between);
}

bool range_even_half(Nest *n, const Between *product, Val *more, Between *between) {
    Curve *c = arena_new(n->scratch, Curve);
    *c = *product->curve;
    c->divides = OP_div;
    c->by = range_number(n, 2);
    c->more = more;
    return find_curve_ends(n, c, between);
}

static Val *difference(Nest *n, Val *const pair[2]) {
    return range_binary(n, OP_and, range_binary(n, OP_sub, pair[0], pair[1]), range_number(n, 1));
}

bool range_half(Nest *n, const Linear *product, Between *between) {
    const Curve *whole = is_own_curve(product, OWN) ? product->own[0].curve : NULL;
    int64_t known;
    if (!whole || whole->nfactors != 2 || whole->by || range_factors(product) != 1 ||
        !val_is_zero(product->base) || !val_is_one(product->factors[OWN]))
        return false;
    Val *odd = difference(n, whole->bases), *even = difference(n, whole->scales);
    if ((val_is_int(odd, &known) && !known) || (val_is_int(even, &known) && known)) return false;
    range_require(n, range_binary(n, OP_eq, odd, range_number(n, 1)));
    range_require(n, range_binary(n, OP_eq, even, range_number(n, 0)));
    return range_even_half(n, &product->own[0], NULL, between);
}

void range_quotient(Nest *n, const Linear *sum, Op op, int64_t by, Between *between) {
    Curve *c = arena_new(n->scratch, Curve);
    *c = (Curve){.nfactors = 1, .bases = {sum->base}, .divides = op, .by = range_number(n, by)};
    if (by <= INT32_MAX && find_of(n, sum, &c->of) && find_rate(n, sum, &c->of, &c->scales[0]))
        between->curve = c;
}
