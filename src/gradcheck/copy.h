/* Copies of functions, made to be differentiated numerically: in double, and with a record of what stands
 * still. */
#ifndef SLOPE_GRADCHECK_COPY_H
#define SLOPE_GRADCHECK_COPY_H

#include "ir/ir.h"

/* ---- widen.c: copies of functions that compute in double; zero but for the first fields at the start */
typedef struct Wide {
    Func *original, *copy;
    bool plain;
} Wide;
typedef struct Widener {
    Module *module;
    /* Of what a copy calls a copy; NULL: of the callee. A callee that it finds to be plain is copied as it
     * is, with all that it calls, for plain callers alone. */
    Func *(*redirect)(void *user, const Inst *call, bool *plain);
    void *user;
    const char *wrong; /* why there is no copy: "it ..." */
    Map types;         /* original -> copy */
    Map funcs[2];      /* likewise; the second: plain ones */
    VEC(Wide) added;   /* in order */
    bool plain;        /* the one at work */
} Widener;
/* The copy of a function; what it calls is copied with it. NULL: there is none, see `wrong`. */
Func *gradcheck_widen(Widener *widener, Func *func, bool plain);
const Type *gradcheck_widen_type(Widener *widener, const Type *type);
typedef struct WidenSurvey {
    TypeKind narrowest; /* floating type that occurs */
    bool stores_once;   /* by storeOnce, which takes for granted that each element has a place of its own */
    VEC(Global *) globals;
} WidenSurvey;
WidenSurvey gradcheck_widen_survey(Widener *widener, const Func *func,
                                   bool plain); /* of it and all that it calls */

/* ---- hold.c: copies of functions, made to be differentiated numerically */
typedef enum HoldCount {
    HOLD_values,
    HOLD_steps,
    HOLD_depth,
    HOLD_trouble,
    HOLD_random,
    HOLD_COUNTS
} HoldCount;
typedef enum HoldTrouble {
    HOLD_too_many = 1,   /* values, for the record */
    HOLD_small_root = 2, /* a square root of less than 1e-7, which moves */
} HoldTrouble;
typedef enum HoldMode {
    HOLD_record,
    HOLD_replay,
    HOLD_shift, /* as HOLD_replay, with other numbers for the roots that are trouble */
} HoldMode;
/* What the host gives to held code. Counts are to be zero at the start of a run. */
typedef struct HoldState {
    double *values;  /* the record */
    int64_t *counts; /* HOLD_COUNTS of them */
    int64_t room;    /* values that fit */
    int64_t mode;    /* a HoldMode */
} HoldState;
/* Is the derivative of a function, in some mode, made from its body? */
bool gradcheck_is_derived(const Func *func);
/* Changes widened functions, and all that they call, in place. The uniform holds a HoldState. */
Global *gradcheck_hold(Module *module, Func *const *roots, int nroots);
/* Has it, or what it calls, references that the source says are constants? */
bool gradcheck_cuts_references(Module *module, const Func *func);

/* ---- shake.c */
/* Changes functions in place: each of their roundings is a random one. `state`: that of gradcheck_hold. `as`:
 * the type they stand for; NULL: their own. */
typedef struct ShakeUnit {
    double unit, least, most; /* relative error of a number; the smallest that there is, and the largest */
} ShakeUnit;
void gradcheck_shake(Module *module, Global *state, const ShakeUnit *as, Func *const *funcs, int count);

#endif
