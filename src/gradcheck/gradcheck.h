/* gradcheck: derivatives against the functions they came from.
 *
 * A subject is a function with its derivatives. Its parameters and its result are arguments in memory; the
 * scalars in them are slots. The slots that come in and have a derivative are the inputs, those that go out
 * and have one the outputs: the derivative is a matrix J of outputs by inputs, and
 *   - the function itself, widened to double (widen.c, hold.c), gives J u by differences;
 *   - fwd_diff gives J u, and bwd_diff gives J^T v.
 * Where these disagree, shake.c tells whether the differences can be trusted.
 * gradcheck.c finds the subjects and compiles them, shape.c takes their signatures apart,
 * call.c calls them, difference.c differentiates numerically, compare.c judges. */
#ifndef SLOPE_GRADCHECK_H
#define SLOPE_GRADCHECK_H

#include "driver/unit.h"
#include "gradcheck/copy.h"

/* ---- random numbers, the same everywhere */

typedef struct Random {
    uint64_t state;
} Random;
uint64_t gradcheck_random(Random *random);
double gradcheck_uniform(Random *random, double low, double high);

/* ---- subjects */

/* Everything exists twice: as it is, and widened. Derivatives also shaken, in the memory of what is
 * widened. */
typedef enum Width { NARROW, WIDE, WIDTHS, SHAKEN = WIDTHS, CODES } Width;

typedef struct Slot {
    const char *name; /* "ray.origin.x" */
    TypeKind kind;
    TypeKind diff_kind;
    int argument;
    int hole; /* it is in that buffer, which has the same type in both widths; -1: in the argument */
    int64_t at[WIDTHS];      /* where it is in the argument */
    int64_t diff_at[WIDTHS]; /* where its derivative is in the differential of the argument */
    bool has_diff;
    bool mirrored;   /* a part of a reference that its counterpart has too ... */
    bool own;        /* ... which is in the same argument */
    bool flag;       /* part of an optional that its differential has too: is there a value? */
    double present;  /* what it was when the function itself was run */
    bool is_limited; /* it is drawn from low to high */
    double low, high;
    int choices; /* it is the tag of an interface value: from 1 to that; 0: it is not */
    int axis,
        axes; /* it is the stride of that dimension of a tensor with so many, or its rank: -1; axes 0: neither */
    bool is_extent;    /* a number of a tensor that says where its elements are */
    int in;            /* among all scalars that come in; -1 */
    int input, output; /* among those with a derivative; -1 */
} Slot;

typedef struct Form {
    const Type *type;
    const Type *pair;   /* primal and differential; NULL: no derivative */
    const Type *diff;   /* the differential; NULL: no derivative */
    int64_t p_at, d_at; /* in the pair */
    char *memory, *pair_memory, *diff_memory;
} Form;

/* A parameter, or the result. */
typedef struct Argument {
    Name name;
    uint8_t dir; /* Dir */
    bool is_result;
    bool is_reference; /* of an IDifferentiablePtrType */
    Form forms[WIDTHS];
} Argument;

/* A buffer in an argument, which refers to memory of the check. In an IDifferentiablePtrType it has a
 * counterpart, and its first elements are inputs and outputs. */
typedef struct Hole {
    int argument;
    bool is_pointer; /* without a count */
    bool is_zero;    /* the gradient that a view of a tensor carries along: forward, it is a tangent */
    int64_t at[WIDTHS], diff_at[WIDTHS];
    bool paired, own; /* it has a counterpart; which is in the same argument */
    const Type *element, *diff_element;
    RtBuffer buffer, diff;
    uint64_t before;          /* elements in front of where they point to */
    char *start, *diff_start; /* what they hold before a call */
} Hole;

typedef struct Subject {
    const char *name;
    const char *short_name; /* without the parameters that tell overloads apart */
    bool is_generic;
    Decl *decl;
    const Subst *subst;
    uint8_t modes[8]; /* derivative operators that are part of the function to be checked */
    int nmodes;
    const char *skip;       /* why it is not checked */
    Func *func;             /* or its primal substitute: what the derivatives are those of */
    Func *wide, *fwd, *bwd; /* fwd, bwd: NULL: not differentiable so */
    bool bwd_is_custom;
    WidenSurvey survey;
    TypeKind narrowest;      /* floating type in it */
    bool cuts_references;    /* differences do not tell what moves through them */
    VEC(Argument) arguments; /* parameters in order, then the result */
    VEC(Slot) slots;
    VEC(Hole) holes;
    int nin, ninputs, noutputs;
    VEC(int) inputs, outputs; /* their slots */
    double **points;          /* to be used, instead of others */
    int npoints;
    void *call;                              /* the widened function; these are for driver_call */
    void *call_fwd[CODES], *call_bwd[CODES]; /* WIDE, SHAKEN: made when first needed */
    bool tried_wide;                         /* to make them */
    void *call_shaken;                       /* see shake.c; made when first needed */
    bool tried_shaken;
} Subject;

/* ---- the check */

/* Memory that calls may change, and what it is to hold before each. */
typedef struct Restored {
    char *data;
    const char *pristine;
    size_t size;
    bool is_buffer; /* `data` is of runtime_buffer_new */
    bool is_host;   /* the host has bound it */
} Restored;

typedef struct Check {
    SlopeProgram *program; /* that is compiled */
    SlopeProgram *host;    /* of the caller: for its uniforms */
    SlopeSession *session;
    Arena *arena; /* of the host */
    const SlopeGradcheckOptions *options;
    Widener widener;
    Global *hold;
    char *hold_memory; /* of that uniform; NULL: nothing refers to it */
    HoldState state;
    int64_t counts[HOLD_COUNTS];
    double *record; /* held values */
    VEC(Restored) restored;
    Random random;   /* for data that is not drawn anew for each sample */
    Map filled;      /* uniforms that have their data */
    int64_t steps;   /* of loops, so far */
    double deadline; /* of the subject at hand, in seconds of the processor; 0: none */
} Check;

/* ---- shape.c */
/* What in the signature cannot be checked; NULL: nothing. */
const char *gradcheck_signature_trouble(Check *check, const Subject *subject);
/* Objects and slots of a subject whose functions are declared; sets `skip` where it cannot be checked. */
void gradcheck_shape(Check *check, Subject *subject);
/* Memory of arguments, and data for buffers. */
void gradcheck_make_memory(Check *check, Subject *subject);
/* Data for the uniforms that it reads; once code exists. */
void gradcheck_fill_uniforms(Check *check, const WidenSurvey *survey);
/* The value that the host gave to a uniform; NULL: none, or all zero. */
const char *gradcheck_host_value(const Check *check, const Global *global);
bool gradcheck_holds_pointer(const Type *type);
bool gradcheck_holds_view(const Type *type);               /* of a tensor, with memory for its derivatives */
void gradcheck_put(TypeKind kind, void *at, double value); /* converted as the type demands */
double gradcheck_get(TypeKind kind, const void *at);
double gradcheck_round(TypeKind kind, double value); /* to what a slot of that kind can hold */

/* ---- call.c: x has `nin` values, u `ninputs`, v and y `noutputs`. NULL: done; else why it could not be. */
const char *gradcheck_call(Check *check, Subject *subject, const double *x, HoldMode mode, double *y);
const char *gradcheck_call_fwd(Check *check, Subject *subject, Width width, const double *x, const double *u,
                               double *y, double *dy);
const char *gradcheck_call_bwd(Check *check, Subject *subject, Width width, const double *x, const double *v,
                               double *dx);
/* After that: is what it found for an input just what was there before, in an element that has been written
 * to? Then nobody knows whether that is its derivative. */
bool gradcheck_is_left(Subject *subject, Width width, int input, const double *v, double found);
const char *gradcheck_call_shaken(Check *check, Subject *subject, const double *x, double *y);

/* ---- difference.c */
typedef struct Difference {
    int n; /* functions, of one variable */
    /* Their values at t; false: they have none. */
    bool (*evaluate)(void *user, double t, double *y);
    void *user;
    const double *y0;      /* at 0 */
    double least;          /* the smallest step; 0: there is none */
    double step;           /* the largest */
    double tolerance;      /* relative; the error must be well below it */
    const double *slack;   /* absolute, likewise */
    double *value, *error; /* the derivatives at 0, and how wrong they may be */
    double *steps;         /* the smallest that went into each */
} Difference;
typedef enum DifferenceStatus {
    DIFFERENCE_fine,
    DIFFERENCE_undefined, /* not defined nearby */
    DIFFERENCE_corner,    /* left and right differ */
    DIFFERENCE_unsettled, /* smaller steps go on changing it */
} DifferenceStatus;
DifferenceStatus gradcheck_difference(Arena *scratch, Difference *difference);

/* ---- gradcheck.c */
/* Derivatives in double: what their formulas give, apart from rounding. False: there are none. */
bool gradcheck_make_wide(Check *check, Subject *subject);
/* The function with random roundings, and its derivatives with those of the narrowest type; likewise. */
bool gradcheck_make_shaken(Check *check, Subject *subject);

/* ---- compare.c */
void gradcheck_subject(Check *check, Subject *subject, SlopeGradcheckResult *result);

#endif
