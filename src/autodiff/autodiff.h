/* autodiff: derivatives of functions, as functions.
 *
 * A request is a Func without a body whose `derivation` says what it is the derivative of; ad_run gives it
 * one. Requests lead to others: callees, and derivatives of derivatives, innermost first. The stages, one
 * file each:
 *
 *   normalize   a copy of the function, lean, in normal form, then flat (flat.c): structs and vectors taken
 *               apart, so that only scalars, arrays and references are left
 *   activity    which values and memory can carry a derivative
 *   linearize   beside each primal instruction its differential; this is forward mode
 *   unzip       primal half, differential half
 *   transpose   the differential half, backwards
 *   checkpoint  primal values that the reversed half needs: stored or recomputed
 *   extract     the two functions of reverse mode: pri fills the context, prop consumes it
 *
 * stages.c has them in order; signature.c knows what the functions made here take and return; adapt.c and
 * adapt_bwd.c put the signatures that users see (pairs) around the flat functions.
 *
 * Flat functions. A parameter is taken apart into leaves: scalars, pointers, buffers by value; arrays (and
 * structs whose Differential is opaque) by address. An inout scalar is a parameter and a result. Everything
 * made by autodiff is flat, in normal form and can be differentiated like any other function: nothing here
 * knows about second order. */
#ifndef SLOPE_AUTODIFF_H
#define SLOPE_AUTODIFF_H

#include "ir/ir.h"

typedef enum AdMode { AD_fwd = 1, AD_bwd = 2 } AdMode;

/* A value that the primal half keeps for the reversed half. */
typedef struct AdStored {
    const Func *what; /* the function the user wrote */
    const char *name; /* of the value, else of what computes it; "" if neither has one */
    Loc loc;          /* where it is computed */
    int bytes;        /* per execution */
    Loc loop;         /* innermost loop that it is in, 0: kept once per call */
    bool exact;       /* in a block of exactly the trip count; else on a growing stack */
} AdStored;

typedef struct AdConfig {
    Module *module;
    bool many_threads; /* of a GPU do items side by side */
    bool no_lanes;     /* neither items nor rounds of loops are done side by side on the processor */
    /* Passes of opt, which autodiff does not see. `may`: which callees may be inlined before
     * differentiation; NULL: all that can be, of any size. */
    void (*inline_calls)(void *user, Func *func,
                         bool (*may)(void *user, const Func *callee, const Inst *call), void *may_user);
    void (*lower_exits)(void *user, Func *func); /* free to normal form */
    void (*clean)(void *user, Func *func);       /* structured code: sroa, ssa, simplify, unroll, ... */
    void (*split)(void *user, Func *func,
                  bool params);                 /* sroa; also of parameters by address, but for arrays */
    void (*clean_flat)(void *user, Func *func); /* flat code: ssa, simplify, cse, licm, dce */
    /* Flat code: what loops do as they are left is done behind them, what a way decides on that way. True: it
     * changed. */
    bool (*straighten)(void *user, Func *func);
    /* A linearized function: primal values that are there twice, and what leads nowhere, but for calls and
     * values that are named elsewhere. */
    void (*merge)(void *user, Func *func, const InstVec *calls, const ValVec *named);
    /* After each stage, for dumps; may be NULL. `what` is the function the user wrote; `other` the second of
     * two halves, or NULL. */
    void (*after)(void *user, const char *stage, const Func *what, const Func *now, const Func *other);
    void (*stored)(void *user, const AdStored *stored); /* told of each; may be NULL */
    void *user;
} AdConfig;

/* Gives a body to every function of the module that has a derivation and none yet. */
void ad_run(const AdConfig *config);

extern const char *const ad_stages[]; /* names, NULL at the end */

#endif
