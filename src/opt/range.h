/* What the files of opt/range share; range.c says what they do. */
#ifndef SLOPE_OPT_RANGE_H
#define SLOPE_OPT_RANGE_H

#include "opt/lanes.h"

enum {
    MOST_ACCESSES = 256,
    MOST_COUNTERS = 8, /* of the loops of a nest, that constants do not tell all of */
    MOST_OWN = 2,
    MOST_CLIPPED = 6,    /* numbers that conditions tell of */
    MOST_TESTS = 4,      /* that a counter is told of by */
    OWN = MOST_COUNTERS, /* the first of what belongs to an index alone */
    FACTORS = OWN + MOST_OWN,
    MOST_BOUND_FACTOR = 64,
    RANGE_TERMS = 512, /* that an index is computed from, at most */
};

/* The counters, as bits, with which something rises, and with which it falls. */
typedef struct Ways {
    unsigned rises, falls;
} Ways;

typedef struct Curve Curve; /* depends on one sum of counters alone, but is not linear */

/* Something of the nest, and the least and the greatest that it is there: int64. */
typedef struct Between {
    const Val *v;
    Val *low, *high;
    const struct Bound *parts; /* it is the least or the greatest of these; NULL: something else */
    const Curve *curve;        /* it is that; NULL: it is not */
    Ways ways;                 /* by other counters */
    bool is_loose;             /* it need not come near low and high */
} Between;

/* base + the sum of factor * counter; as part of an index of type int, modulo 2^32, of a bound int64. A
 * counter can be its own: something else that the nest computes, and of which it is known what it may be. */
typedef struct Linear {
    Val *base, *factors[FACTORS]; /* NULL: 0 */
    Between own[MOST_OWN];
} Linear;

/* By the counters of loops further out. */
typedef struct Bound {
    Linear parts[2];
    int count;
    Op op; /* of several parts: OP_min or OP_max */
} Bound;

typedef struct Counter {
    Between between; /* a parameter of the loop's body; in rounds that come to the access at work */
    Between whole;   /* in all of them */
    const Inst *loop, *tests[MOST_TESTS]; /* tests: comparisons of which any ends it */
    int ntests, index;
    int64_t step;   /* 0: not the same in every round, or no constant */
    Val *size;      /* of a step, int64; NULL: not always the same */
    bool varies;    /* so do low and high, which else are what the span says */
    bool ends_loop; /* nothing else does */
    bool begins;    /* there is a round, whatever low and high are: that these are in order is required */
    Bound low, high;
} Counter;

/* What conditions tell at a place: of counters, and of other numbers. */
typedef struct Clips {
    Between counters[MOST_COUNTERS], clipped[MOST_CLIPPED];
    int nclipped;
} Clips;

typedef struct Access {
    Inst *inst;
    Linear index;
} Access;

typedef struct Nest {
    Arena *scratch;
    const LoopJumps *jumps;
    Rehearsal *rehearsal;
    Inst *loop;         /* the outermost */
    Builder before;     /* it */
    CloneMap again;     /* what is computed in it is computed before it, too */
    const Inst *access; /* that is looked at; NULL: none */
    Counter counters[MOST_COUNTERS];
    Between clipped[MOST_CLIPPED]; /* numbers that conditions tell of where the access is */
    int nclipped;
    bool clips_counters; /* alone: nothing is to be told of numbers */
    bool looks_ahead;    /* at what a carried number becomes: no other is looked at then */
    VEC(Access) accesses;
    ValVec addresses; /* from before it, of elements that are tested in it */
    Map outside;      /* those, and the elements */
    InstVec inner;    /* loops */
    ApartBuffers buffers;
    int number; /* of those whose buffers are apart; 0: nobody asks */
    const Map *summed;
    Map masked; /* accesses of lanes that may be off */
    int ncounters, ninsts, ncalled, terms;
    int naccesses; /* that there are in it */
    int ntested;   /* accesses, in a loop that does several rounds at once */
    bool reads_buffers, calls, is_short, is_reversed; /* calls: something that takes long */
    bool rehearses;                                   /* constants may tell what an index is */
    bool is_flat; /* loops inside are taken for what their rounds do, one after the other */
    bool forks;   /* branches or loops are in it */
    bool meets;   /* threads meet in it, who may differ in what is in range */
    bool has_doubles;
    bool stores_quotients; /* by what is no constant */
    bool has_wide_indices;
    bool is_reverse;    /* it adds to derivatives in arrays */
    bool is_loose;      /* so are the bounds of the sum that was looked at last */
    bool may_be_loose;  /* so was one of those of the index */
    bool meets_clipped; /* it is made of a number that conditions tell of */
    Val *safe;          /* bool: everything so far is in range */
} Nest;

/* ---- range_linear.c */
const Type *range_type(const Nest *n, TypeKind kind);
bool range_is_word(const Type *type); /* of 32 bits */
bool range_is_long(const Type *type);
bool range_fits_word(const Type *type);    /* an integer of 32 bits or less */
Val *range_number(Nest *n, int64_t value); /* int64 */
Val *range_wide(Nest *n, Val *v);          /* before the loop */
Val *range_binary(Nest *n, Op op, Val *a, Val *b);
void range_require(Nest *n, Val *condition);
void range_require_ordered(Nest *n, Val *low, Val *high);
Val *range_prepared(Nest *n, Val *v); /* as it can be computed before the loop; NULL: it cannot */
bool range_is_fixed(const Linear *l);
int range_factors(const Linear *l); /* how many */
bool range_combine(Nest *n, const Linear *a, const Linear *b, bool negative, Linear *result);
Linear range_times(Nest *n, const Linear *varies, Val *factor);
Linear range_widened(Nest *n, const Linear *index);                      /* int64 */
const Between *range_between(const Nest *n, const Linear *index, int i); /* that belongs to a factor */
const Val *range_counter(const Nest *n, const Access *access, int i);
/* Of which it is the number, in the body of the loop, or in its condition, behind the test; NULL: of none. */
const Counter *range_counter_of(const Nest *n, const Val *v);
Ways range_ways(const Nest *n, const Linear *l);
/* Says whether it is loose; NULL: there are too many counters of its own. */
Val *range_extreme(Nest *n, const Linear *wide, bool greatest);
/* The least and the greatest, of 64 bits. */
bool range_find_ends(Nest *n, const Linear *wide, Between *between);
/* What the program computes in 32 bits is required to be the sum itself; false: that cannot be told. */
bool range_find_between(Nest *n, const Linear *wide, const Type *type, Between *between);
Linear range_linear_counter(Nest *n, const Counter *counter, Val *factor);
bool range_is_bounding(const Linear *part); /* its factors are small constants */
const Bound *range_parts(const Nest *n, Op op, const Linear *one,
                         const Linear *other);      /* NULL: they are not */
bool range_linear(Nest *n, Val *v, Linear *result); /* of 64 bits, the lower 32 */
void range_require_of_type(Nest *n, const Between *between, const Type *type);
Linear range_own_number(Nest *n, const Val *v, Between between);

/* ---- range_own.c */
bool range_between_of(Nest *n, Val *v, Linear *wide, Between *between); /* within 32 bits */
bool range_own(Nest *n, Val *v, Linear *result); /* an instruction; false: nothing is known of it */
bool range_own_carried(Nest *n, const Counter *c, const Val *v, Linear *result); /* by its loop */
Linear range_number_between(Nest *n, const Val *v, int64_t low, int64_t high);
Between range_grown(Nest *n, Op op, const Between *x,
                    const Between *y); /* the result of an operation that grows with both */
bool range_find_product(Nest *n, const Inst *inst, Between *between); /* false: it is no square */

/* ---- range_clip.c */
Clips range_save_clips(const Nest *n);
void range_restore_clips(Nest *n, const Clips *saved);
void range_drop_clips(Nest *n);
const Between *range_clipped(Nest *n, const Val *v);        /* NULL: nothing is known of it */
void range_clip(Nest *n, const Val *condition, bool holds); /* what it tells, if it holds or does not */
void range_clip_around(Nest *n, const Inst *access);        /* what those tell that it is done under */

/* ---- range_curve.c */
int range_first_of_curves(
    const Linear *sum); /* the outermost counter that they depend on; without any: FACTORS */
/* One of its own numbers, once or taken away once, that depends on this counter, and by which its ends are
 * found; -1: none. */
int range_find_curve(Nest *n, const Linear *sum, int counter);
Val *range_curve_extreme(Nest *n, const Linear *sum, int own, bool greatest); /* by that number */
/* Of numbers that are these sums, in 32 bits; false: it is no square. */
bool range_product(Nest *n, const Linear *one, const Linear *other, Between *between);
bool range_half(Nest *n, const Linear *product, Between *between); /* false: it may be odd, or is no square */
/* Half of a product that is even, and more; more: NULL if nothing. */
bool range_even_half(Nest *n, const Between *product, Val *more, Between *between);
/* Of the sum, by a constant above zero: if it can be told how that moves. */
void range_quotient(Nest *n, const Linear *sum, Op op, int64_t by, Between *between);

/* ---- range_counter.c */
bool range_exact(Nest *n, Val *v, Linear *result); /* the number itself, in 64 bits */
/* An instruction of 64 bits that is not linear: a quotient by a constant, a square, the least or the greatest
 * of two. */
bool range_exact_own(Nest *n, const Val *v, Between *between);
bool range_add_loop(Nest *n, const Inst *loop); /* its counter; those further out come first */

/* ---- range_below.c */
bool range_mark_below(
    Func *func, const LoopJumps *jumps); /* indices that are compared with the length; true: there are */

/* ---- range_index.c */
bool range_is_rehearsed(const Nest *n, const Inst *loop); /* constants tell all of it */
Val *range_narrow_index(const Inst *access);              /* in 32 bits, whatever it is converted to */
bool range_require_moderate(
    Nest *n, const Linear *wide); /* nothing overflows where terms are added up; false: it may */
bool range_require_access(Nest *n, Access *access); /* that it is in range; false: that cannot be told */
int64_t range_length(const Inst *elem);
void range_merge_tests(Nest *n);

#endif
