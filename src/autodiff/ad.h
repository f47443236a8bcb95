/* Inside of autodiff: its state, and what its files offer each other. */
#ifndef SLOPE_AD_H
#define SLOPE_AD_H

#include "autodiff/autodiff.h"

/* ---- leaves: how a parameter or result is taken apart */

typedef struct Leaf {
    int param;       /* of the source function; -1: its result by value */
    const int *path; /* from the object to the leaf: fields, and -1-i for lane or element i */
    int npath;
    const Type *type;
    /* array, record that stays whole, or what atomic operations are done on: passed by address */
    bool by_ref;
    uint8_t dir; /* Dir */
    bool diff;   /* has a differential */
    bool dual;   /* a part of an IDifferentiablePtrType: accompanied by its counterpart, never transposed */
    /* says whether an optional has a value, of which there is a differential; by_ref: or holds some that do */
    bool flag;
    bool held; /* dual, in a parameter whose Differential has no place for it: none to who calls with pairs */
    const Type *dtype; /* of the differential, or the counterpart */
    /* of the counterpart that it has in derivatives of derivatives; NULL: the same as here */
    const Type *later;
    const int *dpath; /* in the differential of the parameter */
    int ndpath;
    int in, out; /* index among parameters and results of the flat function; -1: not there */
} Leaf;

typedef struct Leaves {
    Leaf *at;
    int count, room;
} Leaves;

/* ---- functions */

typedef enum AdRole {
    AS_nothing,
#define ROLE(name, has, type, param_name, dir, flags, counterpart) AS_##name,
#include "autodiff/roles.def"
} AdRole;

/* What a parameter or result is. */
typedef struct Place {
    AdRole role;
    int leaf; /* of the function; if it is state, of its forward pass; of slots, which of them */
} Place;
typedef VEC(Place) Places;

/* A generated function. */
typedef struct Made {
    Func *func; /* NULL: it was not asked for */
    Places params, results;
} Made;

/* What the callers of pri and prop promise, and what they want. */
typedef struct Terms {
    const bool *stable; /* per leaf: an array that stays as it is */
    /* by result: its adjoint is not zero because something else was chosen or is used; the last bit: all
     * from there on */
    uint64_t firm;
    bool given;  /* likewise the adjoints of all that it hands out by address */
    bool steady; /* its callers write no buffer between its pri and its prop */
    bool lone;   /* nobody wants what it returns */
    int places;  /* of its caller in which it is called */
} Terms;

enum { FIRM_BITS = 64 };
#define ALL_FIRM UINT64_MAX

/* pri and prop of a flat function, on certain terms. */
typedef struct Reverse {
    Terms terms;
    Made pri, prop;
    bool uses_tape;
    int kept; /* values that it hands over, or would if it were called in one place; 0: by the tape, however often that is */
} Reverse;

/* What holds of a function or of one that it calls. */
typedef enum AdFact {
    AD_sources, /* it has a derivative written by the user */
    AD_sinks, /* ... that must be run in reverse though nobody uses what the function returns: a store with a gradient */
    AD_substitutes, /* it calls what has a substitute */
    AD_effects,     /* beyond its parameters: output, buffers, globals */
    AD_disturbs,    /* it has effects, or its reverse pass writes more than the counterparts of references */
    AD_reads,       /* it reads numbers that are neither its own nor those of its parameters, nor constants */
    AD_looks_around, /* it reads what others may write: neither its own, nor what it is given, nor what stays */
    AD_looks_back,   /* a backward derivative of the user reads by a pointer, and not in its counterpart */
    AD_fact_count
} AdFact;
typedef enum Answer { ANSWER_unknown, ANSWER_no, ANSWER_yes } Answer;

typedef struct AdFunc {
    Func *source; /* as lowered; NULL: flat by birth */
    Func *flat;
    Func *plain;   /* computes the same by a shorter way, for where it is not reversed; may be NULL */
    Func *primal;  /* flat, calling the substitutes of what has one; NULL: not asked for yet */
    Leaves leaves; /* of the flat function's parameters and results, in order */
    bool filled;   /* flat has its body */
    bool normal;   /* ... in normal form */
    bool written;  /* it is code of the source, and what it is given is what that has: no derivative ... */
    const bool *doubted; /* ... but for these parameters of the flat function; may be NULL */
    struct AdFunc
        *round;  /* the function is a loop that carries one number with a derivative: a round of it; ... */
    int carried; /* ... which parameter and result that is */
    bool has_own_tape;     /* calls that are made again in the reverse have a tape of their own */
    bool reversed_at_once; /* it is such a round: what it hands over is not kept */
    Made fwd;
    bool fwd_begun, fwd_made; /* between these, its body is not whole */
    Made bwd;                 /* reverse mode by a derivative of the user */
    Made tangent; /* the linear part, for the time between linearize and transpose: without a body */
    VEC(Reverse *) reverses;
    Answer recursive, facts[AD_fact_count];
    int open, leads_to;     /* while circles of calls are looked for */
    struct AdFunc *general; /* of which this is a copy, some of its references being constants; or NULL */
    VEC(struct AdFunc *) copies;
} AdFunc;

typedef struct Ad {
    Module *m;
    Arena *arena;
    AdConfig config;
    Map funcs;    /* source or flat Func -> AdFunc */
    Map rules;    /* (op, type) -> Func: flat, normal; or the Ad itself: there is none */
    Map adapters; /* Func made by autodiff around a user's derivative -> itself, while it is not flat inside */
    Map customs;  /* derivatives written by the user that generated code calls */
    Map tried;    /* Func: a derivative that was asked for -> itself */
    VEC(AdFunc *) unfilled;
    const Func *what; /* being differentiated, for dumps */
} Ad;

/* ---- derive.c */
AdFunc *ad_func(Ad *ad, Func *func); /* for a source function, or one that is flat by birth */
/* The same where these leaves, references that have no counterparts, are constants. */
AdFunc *ad_with_constants(Ad *ad, AdFunc *f, const bool *constants);
void ad_complete(Ad *ad, Func *func); /* its body and what the source provides for it */
Func *ad_substitute(
    Ad *ad,
    Func *
        func); /* whose derivative is meant when it is differentiated: its primal substitute, if it has one */
void ad_refuse_endless(Ad *ad, const AdFunc *f);
const char *ad_name(const AdFunc *f); /* of the source, if there is one */
typedef enum CallKind {
    CALL_plain,        /* nothing flows through it */
    CALL_rule,         /* a forward derivative to be put in place: `custom` */
    CALL_custom,       /* written by the user: `custom` */
    CALL_derived,      /* by this compiler */
    CALL_counterparts, /* gives references and takes no values: its forward derivative serves both modes */
} CallKind;
typedef struct CallPlan {
    CallKind kind;
    AdFunc *callee; /* after substitution */
    Func *custom;
    AdFunc *pass; /* custom, reverse mode: runs in place of the callee and hands over a state; or NULL */
} CallPlan;
CallPlan ad_plan_call(Ad *ad, const Inst *call, AdMode mode);
/* The function as differentiated code runs it where nothing is reversed: in it, too, substitutes stand for
 * what has them. */
Func *ad_primal(Ad *ad, AdFunc *f);
bool ad_knows_counterparts(const CallPlan *plan); /* of the references that the call gives, if any */

/* ---- normalize.c */
void ad_fill(Ad *ad, AdFunc *f, bool normal); /* gives the flat function its body */
void ad_flatten_adapter(Ad *ad, Func *func);  /* from structured to flat code, in place */
void ad_inline_rule(Ad *ad, Func *fwd);       /* an adapter whose code is to be put in place */

/* ---- stages.c */
Func *ad_fwd(Ad *ad, AdFunc *f);
Reverse *ad_reverse(Ad *ad, AdFunc *f, Terms terms);
void ad_after(Ad *ad, const char *stage, const Func *now, const Func *other);
void ad_verify(Ad *ad, const Func *func, const char *stage); /* malformed: left through the trap */
void ad_clear_marks(Region *region);                         /* nothing in it is a differential any more */

/* ---- signature.c */
typedef enum AdShape { SHAPE_fwd, SHAPE_linear, SHAPE_tangent, SHAPE_pri, SHAPE_prop, SHAPE_bwd } AdShape;
/* What of it a function has. */
typedef struct Contents {
    const bool *primal;   /* by leaf: the parameters that are there; NULL: all */
    ValVec slots;         /* values like those that are kept */
    const CallPlan *plan; /* whose forward pass hands over a state; or NULL */
    bool tape;
} Contents;
void ad_declare(Ad *ad, const AdFunc *f, AdShape shape, Contents contents, Made *made);
bool ad_has_role(const Leaf *leaf, AdRole role, bool is_result);
typedef Val *(*PlaceValue)(void *user, const Place *place);
Val **ad_arguments(Ad *ad, const Made *made, PlaceValue value, void *user);
Inst *ad_call(Ad *ad, Builder *b, const Made *made, PlaceValue value, void *user);
/* Those of `values`, one for each place, that have the role. */
Val **ad_by_leaf(Ad *ad, const AdFunc *f, const Places *places, AdRole role, Val *const *values);
Name ad_diff_name(Ad *ad, Name name);
bool ad_is_state(const CallPlan *plan, int leaf);    /* of the forward pass: is it what it hands over? */
int ad_leaf_of_pass(const CallPlan *plan, int leaf); /* of the callee -> of its forward pass, or itself */
/* A parameter of a derivative as users see it: what it is of a parameter of the source, or of its result
 * (-1). */
typedef enum UserKind { USER_plain, USER_pair, USER_differential, USER_state } UserKind;
typedef struct UserPlace {
    UserKind kind;
    int param;
} UserPlace;
typedef VEC(UserPlace) UserPlaces;
UserPlaces ad_user_fwd(Ad *ad, const Func *of);
UserPlaces ad_user_bwd(Ad *ad, const Func *of, bool has_state);

/* ---- facts.c */
bool ad_is_recursive(Ad *ad, AdFunc *f);
bool ad_has(Ad *ad, AdFunc *f, AdFact fact);
bool ad_is_sink(Ad *ad, const CallPlan *plan);
/* The variables that an address may lead into are added; false: it is not known when it leads into which. */
bool ad_find_objects(Ad *ad, Val *address, ValVec *objects);
bool ad_reads_primal(Ad *ad, Func *custom); /* by a pointer that has a counterpart, not in that */
/* Generated code calls a derivative that the user wrote, and that cannot be differentiated though it gives
 * what should be. */
bool ad_is_unmarked_custom(Ad *ad, const AdFunc *caller, const CallPlan *plan);
bool ad_is_object(
    Val *address); /* in memory of the function itself, or a parameter: no pointer of the source */
bool ad_inst_has_effects(Ad *ad, const Inst *inst);
enum { AD_NEVER = 1 << 20 }; /* a cost that is too high, whatever the limit */
/* Memory that nobody writes: of a uniform, of a buffer. */
bool ad_is_steady(const Val *root, bool buffers_are);
/* An object that is an argument: the call makes it, whatever it was. */
bool ad_gives_object(const Inst *call, int arg);
/* Of making a call again that only reads, and gives; `steady`: buffers hold the same by then. */
int ad_cost_of_reading(Ad *ad, const Inst *call, bool steady);

/* ---- leaf.c */
const Type *ad_differential(Ad *ad, const Type *type); /* NULL: it has none */
const Type *ad_counterpart(Ad *ad,
                           const Type *type); /* of a reference type, or an array of them; NULL: it is none */
int ad_counterpart_field(Ad *ad, const Type *record, const Type *counterpart, int field); /* -1: none */
bool ad_is_given(const Leaf *leaf);             /* a reference that the function hands out */
bool ad_gives_references(const Leaves *leaves); /* are there any? */
Leaves ad_leaves_of_func(Ad *ad, Func *source);
Leaves ad_leaves_of_flat(Ad *ad, const Func *flat); /* one for each parameter and result, whatever its type */
Func *ad_declare_flat(Ad *ad, const Func *source, Leaves *leaves);
Val *ad_leaf_address(Builder *b, Val *object, const int *path, int npath);
Val *ad_leaf_at(Builder *b, Val *object, const Leaf *leaf,
                bool differential); /* of it, or in its differential */
Val *ad_leaf_in(Builder *b, Val *object, const Leaf *leaf,
                bool differential);                          /* that address, or what is there */
Val *ad_leaf_lane(Builder *b, Val *value, const Leaf *leaf); /* of a scalar or vector */
Val *ad_zero(Ad *ad, const Type *type);
Val *ad_int64(Ad *ad, int64_t value);

/* ---- flat.c */
/* Fills to->flat from the structured function `from`, which is used up. `in_parts`: its parameters are taken
 * apart. */
void ad_flatten(Ad *ad, Func *from, AdFunc *to, bool in_parts);

/* ---- segment.c */
void ad_segment_loops(Ad *ad, Func *func); /* a flat function in normal form */

/* ---- outline.c */
/* A loop of a flat function whose code is to become a function of its own. */
typedef struct Outline {
    Ad *ad;
    Func *func; /* that the loop stands in */
    Inst *loop;
    bool steady;     /* buffers hold the same whenever it runs */
    ValVec captured; /* values from outside, in order of first use */
    ValVec globals;  /* of these: addresses of globals, which the function names itself */
    bool writes_memory, has_effects;
} Outline;
void ad_survey(Outline *x, const Region *region);
void ad_take_globals(Outline *x); /* out of what is captured */
/* Numbers that the function computes are none that the source has given. */
bool ad_is_given_number(const Outline *x, const Val *v);
Param ad_captured_param(const Outline *x, Val *captured);
/* It takes words of that name, then what the loop carries, which it also gives, then what is captured. Of
 * loops that carry counters and sums, it takes the former and gives the latter. */
Func *ad_outline(const Outline *x, const char *name, const char *const *words, int nwords,
                 bool (*counts)(const Inst *loop, int index));
CloneMap ad_enter(const Outline *x, Func *func);                              /* begins its body */
Inst *ad_call_outline(const Outline *x, Builder *b, Func *func, ValVec args); /* and what is captured */
/* Iterations lo to hi of the loop as it is, from a given state on; the map knows what stands for captured
 * values. */
Inst *ad_copy_loop(const Outline *x, Builder *b, CloneMap *map, Val *const *state, Val *lo, Val *hi);
/* Each loop, the outermost first; what is in one that was changed is left alone. */
bool ad_for_loops(const Region *region, bool (*change)(void *user, Inst *loop), void *user);
/* A copy of the body that was changed; NULL: nothing was. */
Region *ad_change_copy(Ad *ad, Func *flat, bool (*change)(void *user, Region *body), void *user);

/* ---- round.c */
/* A body for the flat function in which loops of independent rounds call a function for some rounds each;
 * NULL: it has none. */
Region *ad_split_rounds(Ad *ad, AdFunc *f, const bool *stable);

/* ---- along.c */
/* A body for the flat function in which loops that carry one number with a derivative are functions; NULL: it
 * has none. */
Region *ad_carry_along(Ad *ad, AdFunc *f);
void ad_reverse_along(Ad *ad, AdFunc *f, Reverse *made); /* of such a function */

/* ---- activity.c */
typedef struct Activity {
    bool *vals; /* by id */
    uint32_t nvals;
} Activity;
Activity ad_activity(Ad *ad, AdFunc *f, AdMode mode);
bool ad_reads_active(const Activity *a, const Inst *call);
bool ad_call_is_live(Ad *ad, const Activity *a, const Inst *call, const CallPlan *plan);
bool ad_is_active_address(const Activity *a,
                          Val *address); /* into memory that has a shadow of differentials */
Val *ad_root(Val *address); /* the var or parameter that an address points into; NULL: other memory */

/* ---- escape.c */
bool ad_addresses_escape(Ad *ad, const AdFunc *f, const Activity *activity);

/* ---- reference.c */
typedef enum RefState { REF_none, REF_plain, REF_paired, REF_kept, REF_lost } RefState;
typedef struct Ref {
    RefState state;
    const Type *type; /* paired: of the counterpart */
} Ref;
typedef struct Refs {
    Ref *at; /* by id; of memory: that of its root */
} Refs;
Refs ad_references(Ad *ad, const AdFunc *f, AdMode mode);
Ref ad_ref_of(const Refs *refs, Val *v); /* of a value, or of the memory that an address points into */
Ref ad_merge_refs(Ref a, Ref b);
bool ad_is_number(const Leaf *leaf); /* in a reference, and in its counterpart */
/* A number in a reference that comes from nowhere else (its offset is 5) is the same in the counterpart. */
bool ad_is_own_number(const Refs *refs, const Leaf *leaf, Val *v);

/* What belongs to a tangent call. */
typedef struct CallNote {
    Inst *primal;
    CallPlan plan;
    Val **args;  /* by leaf, of the forward pass if there is one: primal arguments */
    Val **duals; /* by leaf: counterparts of references */
    int places;  /* in which the callee is called */
} CallNote;

/* What the later stages know about a primal loop. */
typedef struct LoopInfo {
    bool known;    /* its trip count is computed before it starts */
    Val *trip;     /* int64 */
    Val *counter;  /* parameter of the body: iterations so far */
    Inst *reverse; /* the reversed loop, if there is one */
    Val *it;       /* in it: index of the primal iteration */
    Val *most;     /* uint64: the greatest that it may be, where only some are gone back through; else NULL */
} LoopInfo;

typedef struct Lists Lists;
typedef struct Settled Settled;
typedef struct Checkpoint Checkpoint;

/* Settled: a local array is kept as it is when its region ends, for those that read it after it was written
 * last. */
typedef enum Stable { STABLE_not, STABLE_settled, STABLE_always } Stable;

/* A derivative while it is made: what each stage leaves for the next ones. */
typedef struct Making {
    AdFunc *f;
    Reverse *reverse; /* NULL: forward mode */
    bool recursive;
    bool steady; /* buffers hold the same in the reverse */
    /* linearize */
    Made linear;
    Val **primals, **differentials; /* its parameters, by leaf; differentials: counterparts, too */
    Map calls;                      /* tangent call -> CallNote */
    bool results_unwanted;
    ValVec seeds;             /* adjoints of the differential results, and ... */
    Val *tape, *reverse_tape; /* ... tapes of the two halves: they stand for parameters of pri and prop */
    /* unzip */
    Region *primal, *diff;
    Map twins;       /* Inst of the differential half, with regions -> that of the primal half */
    Map loops;       /* primal loop -> LoopInfo */
    uint8_t *stable; /* Stable, by id of primal values: memory that holds the same in the reverse */
    uint32_t nstable;
    Settled *settled;
    ValVec kept_whole; /* those that are STABLE_settled */
    Lists *lists;
    /* transpose */
    Region *reversed;
    Map mirror; /* primal Region or Inst -> reversed */
    Map taken;  /* primal loop, or `if` in it, of which only rounds matter that come to a Region -> that */
    /* checkpoint */
    Checkpoint *checkpoint;
} Making;

/* ---- detached.c */
void ad_mark_detached(Ad *ad, Func *func); /* a flat function in normal form */
/* Does it, or a derivative of what it calls, use memory other than its own? It need not have its body yet. */
bool ad_reaches_elsewhere(Ad *ad, Func *func);

/* ---- choose.c */
bool ad_choose_by_number(Ad *ad, const AdFunc *f); /* its flat function, in normal form; true: it changed */

/* ---- cases.c */
bool ad_do_by_cases(Ad *ad, Func *flat); /* in normal form; true: it changed */

/* ---- counted.c */
/* A copy of what a flat function in normal form does; NULL: there is nothing to be computed so. */
Region *ad_compute_counted(Ad *ad, Func *flat);

/* ---- sink.c */
void ad_sink(Ad *ad, Func *func);
void ad_sink_differentials(Ad *ad, const Making *making);

/* ---- factors.c */
typedef struct Tangents {
    Builder *b;
    Val **p, **d; /* by id of the old value: its copy, its differential */
    bool forward; /* they are not transposed */
} Tangents;
bool ad_has_factors(const Tangents *t, const Inst *inst);                         /* has it a rule here? */
Val *ad_factors_differential(const Tangents *known, const Inst *inst, Val *copy); /* NULL: zero */

/* ---- linearize.c */
/* The linearized copy of a flat function. mode fwd: a function that computes both; bwd: calls are split into
 * primal and tangent, ready for unzip, and noted in `calls`. */
void ad_linearize(Ad *ad, AdFunc *f, AdMode mode, const Made *into, Map *calls);
void ad_declare_fwd(Ad *ad, AdFunc *f);

/* ---- unzip.c */
void ad_unzip(Ad *ad, Making *making);
void ad_count_trips(Ad *ad, Making *making);                    /* of the primal loops that have a twin */
LoopInfo *ad_loop_info(const Making *making, const Inst *loop); /* primal */
/* What is computed between two instructions, a trip count say, is computed as far outside as it is known, so
 * that the loops around know it. */
void ad_hoist(const Inst *before, Inst *from);
/* Does memory hold the same in the reverse as where the primal instruction reads it? */
bool ad_is_stable(const Making *making, Val *address, const Inst *at);

/* ---- elements.c */
typedef struct Elements Elements;
Elements *ad_elements(Ad *ad, const Making *making);
void ad_elements_restart(Elements *e); /* at the end of the differential half, from where it goes backwards */
bool ad_elements_store(Elements *e, const Inst *store); /* is what it stores firm? */
void ad_elements_load(Elements *e, const Inst *load);   /* whose result is */
void ad_elements_overwrite(Elements *e, const Inst *inst);
/* Around regions: what is known where control goes on behind them, and of branches what is known before all
 * so far. */
typedef struct ElementsAfter {
    struct Firm *firm, *met;
    int *stores;
} ElementsAfter;
ElementsAfter ad_elements_enter(const Elements *e);
void ad_elements_branch(Elements *e, ElementsAfter *after); /* after each */
void ad_elements_join(Elements *e, const ElementsAfter *after);
void ad_elements_enter_round(Elements *e, const ElementsAfter *after);
/* `trip`: how many rounds there are, 0: not known, or maybe none. True: it was assumed in vain that all of an
 * array is firm. */
bool ad_elements_leave_loop(Elements *e, const Inst *loop, int64_t trip, const ElementsAfter *after);

/* ---- unread.c */
bool ad_may_peel(const Ad *ad, const Making *making);
void ad_peel(Func *prop);

/* ---- untaken.c */
typedef struct Untaken Untaken;
Untaken *ad_untaken(Ad *ad, const Making *making);
uint64_t ad_result_bit(int i); /* in Terms.firm */
bool ad_is_firm(const Untaken *untaken, const Val *differential);
bool ad_is_carried(const Untaken *untaken, const Val *differential); /* firm but for the last round */
/* How the adjoint of a differential is multiplied, or divided, by a primal value. */
Op ad_product(Untaken *untaken, const Val *differential, const Val *factor);
Op ad_quotient(const Untaken *untaken, const Val *differential, const Val *divisor);

/* ---- transpose.c */
void ad_transpose(Ad *ad, Making *making);
/* Variables that the custom derivative of a call reads by the address that it is given as the argument of a
 * leaf. */
ValVec ad_objects_read(Ad *ad, const CallNote *note, int leaf);

/* ---- idle.c */
/* An `if`, taken to go to that region of it. */
typedef struct Way {
    Inst *branch;
    int region;
} Way;
/* Does a round of a reversed loop change nothing then? */
bool ad_is_idle(Ad *ad, const Inst *loop, const Way *ways, int count);

/* ---- taken.c */
void ad_leave_out_rounds(Ad *ad, Making *making);

/* ---- list.c: local objects that are lists of values */
typedef struct List {
    Inst *var;
    InstVec stores;       /* and copies, and calls, as they are executed */
    bool *filled;         /* by part: has it been stored? */
    int left;             /* parts that have not */
    bool is_made_at_once; /* by one instruction */
    Val *original;        /* of a copy that is read where it comes from: what it is a copy of */
    int64_t left_to_read; /* scalars, until it is worth while to copy it again */
} List;
struct Lists {
    Map by_var; /* Val -> List */
};
Lists *ad_find_lists(Ad *ad, const Making *making);
List *ad_list_at(const Lists *lists, const Val *address); /* of the variable itself; NULL: it is none */
Val *ad_list_source(const List *list, int index);         /* what it is made of; NULL: there are no more */

/* ---- settle.c */
Settled *ad_settle(Ad *ad, const Region *region, uint32_t nvals);
/* The variable whose final content a load reads; NULL: it may be written later. */
Val *ad_settled_root(const Settled *settled, const Inst *load);
bool ad_is_settled_array(const Settled *settled, const Val *v, const Inst *at); /* a local one, of scalars */
Region *ad_home(const Val *root); /* the region of a variable or parameter */

/* ---- held.c */
/* By id of a value: the address of the element of an array that has it from then on; NULL: none has. */
Val **ad_find_held(Ad *ad, Region *primal, uint32_t nvals);
Val *ad_held_source(Val *address,
                    int index); /* what the address is made of, one after the other; NULL: no more */
Val *ad_read_held(Builder *b, Val *address); /* made again from those */

/* ---- checkpoint.c */
struct Checkpoint {
    ValVec slots; /* primal values that the function hands over */
    Map stand_in; /* primal Val -> Val in the reverse */
    Inst *head;   /* last of what restores slots, at the beginning of the reverse; NULL: nothing does */
};
void ad_checkpoint(Ad *ad, Making *making);
void ad_restore(Ad *ad, const Making *making);

/* ---- nest.c */
/* Loops around a place whose trip counts are known before the outermost begins. */
typedef struct Nest {
    Inst *outer;           /* NULL: there are none */
    VEC(LoopInfo *) loops; /* the innermost first */
} Nest;
Nest ad_nest(Ad *ad, const Making *making, const Region *region, int64_t size); /* size: scalars per round */
Val *ad_rounds(Ad *ad, Builder *b, const Nest *nest);                           /* all there are */
/* Of what rounds keep: scalars per round, and rows, one value of all rounds of the innermost loop each, that
 * stand beside each other. */
typedef struct RoundLayout {
    int64_t size, rows;
} RoundLayout;
/* Where the values of this round begin, if those of the first begin at `start`. */
Val *ad_place_of_round(Ad *ad, Builder *b, const Nest *nest, Val *start, RoundLayout layout, bool reversed);

/* ---- tape.c */
Inst *ad_tape_inst(Builder *b, Op op, Val *const *args, int nargs, const Type *type);
/* Values are pushed where the region ends, and popped at the head of the one that mirrors it: there they are
 * the result. */
Val **ad_keep_on_stack(Ad *ad, const Making *making, Region *region, Builder *head, const ValVec *values);
int64_t ad_scalars_in(const Type *type); /* of an array of scalars, or of arrays of them; else 0 */
/* An array of scalars goes to a block, which is the result; a copy of it comes back. */
Val *ad_save_array(Ad *ad, const Making *making, const Nest *nest, Builder *b, Val *array);
Val *ad_load_array(Ad *ad, const Making *making, const Nest *nest, Builder *b, const Val *array, Val *base);
/* What a loop keeps for its reverse. */
typedef struct Keeping {
    const Making *making;
    Region *region; /* at whose end they are stored: the body, or a branch of it */
    Inst *loop;
    Nest nest;    /* that it is the innermost loop of; empty: how often it runs is not known */
    Builder head; /* of the reversed region: where the values come back */
    ValVec bases; /* of blocks: they are kept as well, where the nest stands */
    /* much is kept of what the round before has made, and how many rounds there are is no constant */
    bool in_turn;
} Keeping;
Val **ad_keep_in_loop(Ad *ad, Keeping *keep, Val *const *values, int count); /* the values, in the reverse */
/* The primal arguments of a call as they were when it was made, and the state that a forward pass left, for
 * use in the reverse: arrays that may have changed are kept in a copy. By leaf of the callee, or of its
 * forward pass if it has one. */
Val **ad_keep_arguments(Ad *ad, const Making *making, const CallNote *note, Builder *b);
/* An address that leads into copies of variables as they are behind `after`, for use in the reverse. */
Val *ad_keep_address(Ad *ad, const Making *making, Inst *after, Builder *b, Val *address,
                     const ValVec *objects);
/* An object as it is behind `after`, for use in the reverse. */
Val *ad_keep_object(Ad *ad, const Making *making, Inst *after, Builder *b, Val *object);

/* ---- extract.c */
void ad_declare_recursive(Ad *ad, Making *making); /* what its callers see before it is done */
void ad_push_slots(Ad *ad, Making *making);        /* its context is on the tape */
void ad_extract(Ad *ad, Making *making);

/* ---- adapt.c: between flat functions and signatures with pairs */
/* An object that leaves belong to: a value, or memory. */
typedef struct Where {
    Val *value;   /* by value, plain: scalar or vector */
    Val *address; /* memory of the object */
    Val *d;       /* memory of its differential (or counterpart); NULL: none */
} Where;
typedef struct Frame {
    Ad *ad;
    AdFunc *f;
    const AdFunc *pass; /* the forward pass of a custom derivative; NULL: there is none */
    Func *func;
    const Func *of;
    Builder b;
    Where *params; /* by parameter of `of` */
    Where result;
    Val *state;     /* what that pass has kept */
    ValVec objects; /* that a custom derivative is given, in order */
} Frame;
Where *ad_where(Frame *frame, int param); /* -1: the result */
const Leaf *ad_leaf_of(const Frame *frame, const Place *place);
Val *ad_place_at(Frame *frame, const Place *place); /* in memory: in the object, or in its differential */
Where *ad_make_object(Frame *frame, const UserPlace *place, const Type *type, Name name);
Inst *ad_call_custom(Frame *frame, Func *custom); /* with the objects */
void ad_fill_user_fwd(Ad *ad, Func *func, AdFunc *of);
void ad_fill_forwarding(Ad *ad, Func *func, Func *custom);
void ad_fill_trivial_fwd(Ad *ad, AdFunc *f);
void ad_fill_fwd_adapter(Ad *ad, AdFunc *f, Func *custom); /* body of f->fwd that calls the user's function */
bool ad_has_optional(Ad *ad, const Type *type);            /* that is differentiable */
/* A differential has a value exactly where the primal object has one (NULL: it has all of them). */
void ad_mark_present(Ad *ad, Builder *b, const Type *type, Val *p, Val *d);

/* ---- sum.c: objects of a differential type */
void ad_accumulate(Ad *ad, Builder *b, Val *to, Val *from); /* to += from */
void ad_zero_object(Ad *ad, Builder *b, Val *at);
void ad_zero_shadow(Ad *ad, Builder *b,
                    Val *at); /* a fresh variable: only what does not start as bits that are zero */

/* ---- adapt_bwd.c */
void ad_fill_user_bwd(Ad *ad, Func *func, AdFunc *of);
const Made *ad_bwd_adapter(Ad *ad,
                           const CallPlan *plan); /* prop of a function with a custom backward derivative */

#endif
