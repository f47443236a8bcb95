/* Inside of the derivative data-flow check: what is known about the derivative of a value while a body is
 * walked. flow.c has the values, flowexpr.c, flowpointer.c and flowcall.c what expressions do to them,
 * diffflow.c statements and messages. */
#ifndef SLOPE_FLOW_H
#define SLOPE_FLOW_H

#include "check/checker.h"

enum { LOST_fwd = 1, LOST_bwd = 2, LOST_both = 3 };

/* A variable that the result of a call went through on its way to an output. */
typedef struct LossStep {
    const struct LossStep *before;
    Loc loc;
    const Decl *into;
} LossStep;

typedef enum LossKind {
    LOSS_call,   /* a call that does not pass on the derivative of its arguments */
    LOSS_stored, /* something that carries a derivative became a part of what cannot: `where` says of what */
    LOSS_constant, /* something that could carry one but does not: `where` is its name, `plain` the reason */
} LossKind;

/* Where a derivative was lost on which a value would depend. */
typedef struct Loss {
    const struct Loss *next;
    uint8_t kind;  /* LossKind */
    uint8_t modes; /* in which the derivative is lost */
    /* on its way the value was a part of something, or left a function as `out`: a warning only */
    bool indirect;
    const void *cause; /* one message for each */
    Loc loc;
    const Expr *call; /* call */
    Decl *callee;
    const char *where; /* stored, constant */
    const Type *plain; /* a type that could be made differentiable; NULL: none */
    const LossStep *path;
} Loss;

/* NULL: a constant. Without parts, what is said holds for the whole value; with them, each part has its own:
 * fields of a struct, lanes of a vector, rows of a matrix; the elements of an array are one part together. */
typedef struct Flow {
    bool carries; /* a derivative */
    const Loss *losses;
    int nparts;
    const struct Flow *parts[];
} Flow;

/* ---- flow.c */
const Flow *flow_join(Arena *arena, const Flow *a, const Flow *b); /* `a` itself, if b adds nothing */
const Flow *flow_part(const Flow *flow, int index);
const Flow *flow_with_part(Arena *arena, const Flow *flow, int nparts, int index, const Flow *part);
const Flow *flow_whole(Arena *arena, const Flow *flow);                              /* all parts joined */
const Flow *flow_through(Arena *arena, const Flow *flow, Loc loc, const Decl *into); /* one step further */
const Flow *flow_make(Arena *arena, bool carries, const Loss *losses);
const Flow *flow_lost(Arena *arena, const Flow *flow);     /* its losses alone; NULL if there are none */
const Flow *flow_indirect(Arena *arena, const Flow *flow); /* the same, as a part of something */
bool flow_moves(const Flow *flow); /* does it carry a derivative, or would it but for a call? */
const Loss *loss_add(Arena *arena, const Loss *losses, const Loss *loss);
/* The variables of a body, by number: a tree that is never changed, so that a copy costs nothing and parts
 * that are the same in both are joined at once. NULL: constants only. */
typedef struct FlowVars FlowVars;
enum { MAX_FLOW_VARS = 1 << 20 };
const Flow *vars_get(const FlowVars *vars, int index);
const FlowVars *vars_put(Arena *arena, const FlowVars *vars, int index, const Flow *flow);
const FlowVars *vars_join(Arena *arena, const FlowVars *a, const FlowVars *b);

/* ---- the walk over one body */

typedef struct FlowState {
    bool reached;
    const FlowVars *vars;
} FlowState;

typedef struct FlowJump { /* where break and continue go */
    struct FlowJump *outer;
    const Stmt *stmt;
    FlowState left, next; /* by break, by continue */
} FlowJump;

typedef struct FlowWalk {
    Checker *c;
    Arena *arena; /* for the time of the walk */
    Decl *func;
    const FuncSig *sig;
    uint8_t modes; /* in which the function is differentiable */
    Map variables; /* Decl -> number + 1; `this` is the function itself */
    Map types;     /* Type -> what is known about it */
    Map heads;     /* loop -> FlowState at its head, as far as known */
    int steps;     /* statements walked so far */
    FlowState now;
    FlowJump *jumps;
    int no_diff;       /* > 0: under no_diff */
    int detached;      /* > 0: in the argument of detach */
    bool warned;       /* about fields of a plain `this` */
    DeclVec addressed; /* local variables whose address is taken; `this` is the function itself */
    bool asked;        /* its derivative is asked for, so that functions which it calls are differentiated */
} FlowWalk;

typedef enum OutputKind {
    OUTPUT_result,
    OUTPUT_error,
    OUTPUT_param,
    OUTPUT_this,
    OUTPUT_argument
} OutputKind;

/* ---- flowexpr.c */
const Flow *flow_expr(FlowWalk *w, const Expr *e);
void flow_declare(FlowWalk *w, const Decl *decl, const Flow *flow);
const Flow *flow_variable(FlowWalk *w, const Decl *decl); /* w->func: `this` */
bool flow_is_pointer_variable(const Expr *e);             /* of the function */
bool flow_is_diff(FlowWalk *w, const Type *type);
const Flow *flow_as(FlowWalk *w, const Flow *flow,
                    const Type *type); /* what a value of that type keeps of it */
const Type *flow_plain_struct(FlowWalk *w,
                              const Type *type); /* what keeps it from being differentiable; NULL: none */
const char *flow_plain_place(FlowWalk *w, const Expr *place, const Type **plain);
void flow_write(FlowWalk *w, const Expr *place,
                const Flow *flow); /* an error if no derivative can be kept there */

/* ---- flowpointer.c */
bool flow_points_inside(FlowWalk *w, const Expr *pointer);
void flow_address(FlowWalk *w, const Expr *e);
void flow_point(FlowWalk *w, const Decl *variable, const Expr *value); /* a pointer */
const Flow *flow_behind(FlowWalk *w, const Expr *pointer);
void flow_store_behind(FlowWalk *w, const Flow *flow);

/* ---- flowcall.c */
const Flow *flow_invoke(FlowWalk *w, const Expr *e);
const Flow *flow_access(FlowWalk *w, const Expr *e, FuncFlavour flavour, const Flow *value); /* get or set */
Decl *flow_function_arg(Checker *c, const Expr *arg);      /* that it is, or calls; NULL: none */
Decl *flow_call_of(Checker *c, const Type *type);          /* its call operator; NULL: it is no function */
bool flow_is_plain(Checker *c, Decl *func, uint8_t modes); /* a derivative would get lost in it */

/* ---- flowgiven.c */
void flow_given_differentiated(Checker *c, const Decl *param, uint8_t modes);
void flow_given(Checker *c); /* to functions that differentiate it: it has a derivative */

/* ---- diffflow.c */
void flow_output(FlowWalk *w, const Flow *flow, OutputKind kind, Loc loc, const Decl *decl);
void flow_dropped(FlowWalk *w, Loc loc, const char *where, const Type *plain);
bool flow_first(Checker *c, const void *cause);         /* not yet told */
void flow_report_stored(FlowWalk *w, const Loss *loss); /* a warning: what is lost went into memory */
const Flow *flow_stored(FlowWalk *w, const Flow *flow, Loss loss); /* lost from here on, if it carried one */
void flow_calls(FlowWalk *w, Decl *callee);                        /* a differentiable function */
void flow_reverses(Checker *c, const Decl *func, Decl *callee);    /* calls its backward derivative */
void flow_lambda(FlowWalk *w, Decl *call, const Flow *captured);
void flow_request_lambda(Checker *c, Decl *call);
bool flow_loses(Checker *c, Decl *func,
                DiffMode mode); /* a derivative, in this mode and not in the other one */

#endif
