/* Inside of the derivative data-flow check: what is known about the derivative of a value while a body is walked.
 * flow.c has the values, flowexpr.c and flowcall.c what expressions do to them, diffflow.c statements and messages. */
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

/* A call that does not pass on the derivative of its arguments, on whose result a value depends. */
typedef struct Loss {
    const struct Loss *next;
    const Expr *call;
    Decl *callee;
    uint8_t modes; /* in which the derivative is lost */
    const LossStep *path;
} Loss;

/* NULL: a constant. Without parts, what is said holds for the whole value; with them, each part has its own: fields of a
 * struct, lanes of a vector, rows of a matrix; the elements of an array are one part together. */
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
const Loss *loss_add(Arena *arena, const Loss *losses, const Loss *loss);
/* The variables of a body, by number: a tree that is never changed, so that a copy costs nothing and parts that are the
 * same in both are joined at once. NULL: constants only. */
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
    int steps;     /* statements walked so far */
    FlowState now;
    FlowJump *jumps;
    int no_diff; /* > 0: under no_diff */
    bool warned; /* about fields of a plain `this` */
} FlowWalk;

typedef enum OutputKind { OUTPUT_result, OUTPUT_param, OUTPUT_this, OUTPUT_argument } OutputKind;

/* ---- flowexpr.c */
const Flow *flow_expr(FlowWalk *w, const Expr *e);
void flow_declare(FlowWalk *w, const Decl *decl, const Flow *flow);
const Flow *flow_variable(FlowWalk *w, const Decl *decl); /* w->func: `this` */
bool flow_is_diff(FlowWalk *w, const Type *type);
void flow_write(FlowWalk *w, const Expr *place,
                const Flow *flow); /* an error if no derivative can be kept there */

/* ---- flowcall.c */
const Flow *flow_invoke(FlowWalk *w, const Expr *e);
const Flow *flow_access(FlowWalk *w, const Expr *e, FuncFlavour flavour, const Flow *value); /* get or set */

/* ---- diffflow.c */
void flow_output(FlowWalk *w, const Flow *flow, OutputKind kind, Loc loc, const Decl *decl);
void flow_dropped(FlowWalk *w, Loc loc, const char *where, const Type *plain);
void flow_calls(FlowWalk *w, Decl *callee); /* a differentiable function */
void flow_lambda(FlowWalk *w, const Expr *lambda, const Flow *captured);

#endif
