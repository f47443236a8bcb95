/* Random programs in IR, for tests of passes: every construct, in both states, well-formed, and mostly
 * finite. */
#ifndef IRGEN_H
#define IRGEN_H

#include "irtool.h"

typedef struct Random {
    uint64_t state;
} Random;

uint32_t random_bits(Random *random);
int random_below(Random *random, int count); /* 0 .. count - 1 */
bool random_chance(Random *random, int percent);

typedef struct GenOptions {
    int size;    /* statements of a region, about */
    int depth;   /* of nested regions */
    int helpers; /* functions that the others may call */
    bool free;   /* there are sums whose order is free, and so the sign of a zero */
} GenOptions;

/* Adds functions to the module; the last one is "main". Every function has the parameters that gen_params
 * gives. */
Func *gen_program(ToolSession *session, Random *random, GenOptions options);

#endif
