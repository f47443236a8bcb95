/* What library functions should give, computed in C, independently of Slope.
 *
 * Every value is a long double here: it holds all values of half, float and double, and all integers of 64
 * bits, exactly. A case is a piece of Slang with its inputs and outputs, and a C function that computes the
 * outputs from the inputs. library.py makes programs of the cases, and gives what they compute back to
 * `reference check`. */
#ifndef SLOPE_TESTS_REFERENCE_H
#define SLOPE_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

_Static_assert(sizeof(long double) > 8, "long double must hold every 64-bit integer");

typedef long double Real;

/* ---- values.c */

typedef enum Kind {
    KIND_bool,
    KIND_int8,
    KIND_uint8,
    KIND_int16,
    KIND_uint16,
    KIND_int,
    KIND_uint,
    KIND_int64,
    KIND_uint64,
    KIND_half,
    KIND_float,
    KIND_double,
    KIND_COUNT
} Kind;

const char *kind_name(Kind kind); /* as Slang writes it */
int kind_bits(Kind kind);
bool kind_is_float(Kind kind);
bool kind_is_signed(Kind kind);

Real round_to(Kind kind, Real x);              /* to the nearest value of a floating type, ties to even */
Real wrap_to(Kind kind, uint64_t x);           /* the lowest bits as an integer */
uint64_t bits_of(Real x);                      /* of an integer, in two's complement */
Real unit_of(Kind kind, Real x);               /* the distance of values near x */
Real from_transport(Kind kind, uint64_t word); /* as programs write them: double, or an integer of 64 bits */
uint64_t to_transport(Kind kind, Real x);
uint64_t real_bits(Kind kind, Real x); /* as the type has them */
Real real_of(Kind kind, uint64_t bits);

/* Inputs. The wild ones go through special values and the whole range; the others are between bounds. */
typedef enum Pool {
    POOL_wild,
    POOL_tame /* -4 to 4 */,
    POOL_unit /* 0 to 1 */,
    POOL_above /* 1 to 5 */,
    POOL_COUNT
} Pool;
const char *pool_name(Pool pool);
Real pool_value(Kind kind, Pool pool, int item, int lane);

/* ---- cases */

enum { MAX_INS = 6, MAX_OUTS = 2, MAX_LANES = 64, ITEMS = 1024, CONSTANT_ITEMS = 12 };

typedef struct Shape {
    Kind kind;
    int rows, columns; /* vector: no rows; scalar: neither */
} Shape;
int shape_lanes(Shape shape);

typedef struct Case Case;
struct Case {
    const char *name; /* of the function */
    char code[320];   /* statements that set y, and z, from a, b, c ... */
    Shape ins[MAX_INS], outs[MAX_OUTS];
    int nins, nouts;
    Pool pool;
    /* Fills in `out`; `scale`, zero before, where an error is to be seen in proportion to something greater
     * than the result. */
    void (*compute)(const Case *c, const Real *in, Real *out, Real *scale);
    const void *row; /* compute's own */
    Real tolerance;  /* in units in the last place */
    bool any_zero;   /* the sign of a zero does not matter */
    bool constant;   /* also to be tried on constants */
    bool weighted;   /* derivatives: of a sum of the components */
};

typedef void (*AddCase)(void *user, const Case *c);
void add_elementwise_cases(AddCase add, void *user);                    /* elementwise.c */
void add_integer_cases(AddCase add, void *user);                        /* integers.c */
void add_shaped_cases(AddCase add, void *user);                         /* shaped.c */
void add_derivative_cases(const Case *primal, AddCase add, void *user); /* derivatives.c: primal must stay */

#endif
