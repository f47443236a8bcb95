/* What the files of opt/lanes share; lanes.c says what they do. */
#ifndef SLOPE_OPT_LANES_H
#define SLOPE_OPT_LANES_H

#include "opt.h"

enum {
    MOST_PARTS = 32,
    MOST_LANES = 64,
    SCALAR_KINDS = TYPE_double - TYPE_bool + 1,
    LANES_SMALL_STEP = 1 << 24 /* so that no two lanes meet where 32 bits wrap around */
};

/* Of a tape that the kernel opens, in the `note` of tape_open. */
typedef struct TapeUse {
    int level;                  /* how many divergent constructs are around it */
    bool spread[SCALAR_KINDS];  /* the stack has a row for each element, with one number per lane */
    bool uneven;                /* lanes push and pop by themselves */
    Val *heights[SCALAR_KINDS]; /* ... so that heights are counted in these variables */
    bool apart;                 /* functions that are called lane by lane keep something on it ... */
    Val *own[MOST_LANES];       /* ... so that each lane has a tape of its own */
} TapeUse;

/* Of a variable, in its `note`. */
typedef struct VarUse {
    int level;
    bool spread; /* an object for each lane, interleaved */
} VarUse;

/* Elements of a buffer that every round uses, at equal distances: the loop asks before it begins whether all
 * are in range. */
typedef struct Reach {
    Val *buffer;
    Val *index;   /* the least of a round, in `from` */
    int64_t step; /* from a round to the next */
    int64_t more; /* how far behind the least the greatest of a round is */
} Reach;

/* Of a loop whose rounds are lanes: lanes_loop.c. The lanes' `from` does one round; its parameters are
 * counters, sums, and what comes from outside. */
typedef struct Rounds {
    Func *func; /* the loop stands in, with nothing else that does much */
    Inst *loop;
    uint8_t *kinds;                 /* by carried value: CarriedKind */
    int64_t *steps;                 /* of counters, from a round to the next */
    int ncounters, nsums;           /* parameters of `from` */
    Val **outside;                  /* by parameter: what it is in `func`; NULL: it differs between rounds */
    const struct Captured *params;  /* by parameter of `func` */
    InstVec tail;                   /* what is done one round after the other, behind the rest */
    ValVec given;                   /* what a round computes for it; behind the sums, `from` returns them */
    bool is_derivative;             /* `func` was a part of one */
    bool is_left;                   /* LLVM does several at once, if it sees all of a round */
    bool sums_meet;                 /* lanes_sums_meet */
    int64_t trip;                   /* how many there are; 0: not known */
    bool keeps_checks;              /* as it was, where one round is done at a time */
    double done_alone;              /* lanes_done_beside_calls */
    Inst *before;                   /* what stands before the loop, and ... */
    Val **initial;                  /* ... what it began with, as it was */
    double code_around, code_added; /* lanes_code_around, and to loops of the function before */
    double at_most;                 /* rounds that there will be, in all that is run */
    VEC(Val *)
    apart; /* pairs of buffers that must have nothing in common, which is found out before the loop */
    VEC(Reach) reaches;
} Rounds;

typedef enum CarriedKind { CARRIED_counter, CARRIED_sum, CARRIED_in_order } CarriedKind;

/* What an address leads to that a loop was given. */
typedef struct Captured {
    Object object;
    bool is_whole; /* it is that of the object itself */
} Captured;

/* Of a kernel: from one thread to the next, and the first and last number that one has of such a row. */
typedef struct LaneStride {
    Val *stride; /* of `from` */
    int64_t least, most;
} LaneStride;

typedef struct Lanes {
    Module *module;
    Arena *scratch;
    Func *from, *to;
    const LaneOptions *options;
    int width;
    bool along_groups;   /* lanes are groups of one thread, not threads of a group */
    bool waits, waves;   /* at barriers; its lanes are a wave */
    Rounds *rounds;      /* lanes are rounds of a loop; NULL: items of a kernel */
    ValVec ones;         /* values of `from` that are taken for one: lanes_ones.c */
    VEC(LaneStride) far; /* ... and those that are taken for so large that threads do not meet */
    uint32_t *varies;    /* by id of a value of `from`: bit i, part i is not the same for all lanes */
    bool changed;        /* the analysis found something new */
    bool settled;        /* ... and knows which loops are divergent */
    const char *why;     /* it cannot be done; NULL: it can */
    Loc where;
    /* making the wide function */
    CloneMap map; /* values that are the same for all lanes */
    Val ***
        parts; /* by id: the others, one value per part: a vector of lanes, or a scalar if that part is the same for all */
    Builder b;
    Val *mask; /* bool vector: lanes that are on; NULL: all */
    Map types; /* Type -> Type, of records: interleaved */
    int loops; /* around what is being made ... */
    /* ... and around what lets lanes go different ways there: those off may be in another round */
    bool drifts;
} Lanes;

static inline int parts_of(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }
static inline uint32_t all_parts(const Type *type) { return (uint32_t)(((uint64_t)1 << parts_of(type)) - 1); }
static inline const Type *part_type(const Type *type) {
    return type->kind == TYPE_vector ? type_element(type) : type;
}
static inline uint32_t varies(const Lanes *lanes, const Val *v) {
    return v->kind == VAL_const ? 0 : lanes->varies[v->id];
}

/* ---- lanes.c */
void lanes_decline(Lanes *lanes, const Inst *at, const char *why); /* the first reason counts */
void lanes_clean(Func *copy);                                      /* after inlining: to normal form */
void lanes_look(Lanes *lanes);          /* at `from`: what differs, and whether it can be done */
bool lanes_make_narrower(Lanes *lanes); /* half as many, if they fill a register and are worth while */

/* ---- lanes_items.c */
bool lanes_uses_any(const Map *values,
                    const Inst *inst); /* it, or something inside of it, uses one of these */
void lanes_make_item(Lanes *lanes);    /* `from`, of the loop; declines if its rounds need each other */
void lanes_make_rounds(Lanes *lanes); /* the loop does several rounds at once, and then those that are left */
void lanes_undo_rounds(Lanes *lanes);

/* ---- lanes_choice.c */
void lanes_take_out_choices(Lanes *lanes, const bool *is_counter); /* of carried values */

/* ---- lanes_inner.c */
void lanes_take_out_sums(Lanes *lanes, const bool *is_counter); /* of loops within a round */

/* ---- lanes_apart.c */
void lanes_find_sums(
    Lanes *lanes); /* in memory: they become atomic operations, until the wide form is made */
void lanes_write_sums(Region *region);
void lanes_look_for_conflicts(Lanes *lanes); /* between rounds: declines if there may be one */
bool lanes_are_elsewhere(Lanes *lanes, const Inst *sum, const Inst *load); /* what they add to, and read */
bool lanes_sums_meet(Lanes *lanes); /* loops in a round add to places that other rounds add to */

/* ---- lanes_ones.c */
void lanes_take_for_ones(Lanes *lanes);                        /* what the wide form takes for one */
bool lanes_is_one(const Lanes *lanes, const Val *v);           /* it does so */
Val *lanes_times_one(const Lanes *lanes, const Inst *product); /* the other factor; NULL: none is one */
int64_t lanes_far(const Lanes *lanes,
                  const Val *v); /* at least how large it is taken for; 0: nothing is known */
/* Of a kernel: whether all are one, with what is done if they are not. The first region is left to be filled. */
Inst *lanes_ask_for_ones(Lanes *lanes);

/* ---- lanes_rows.c */
void lanes_find_rows(Lanes *lanes);                                /* of numbers beside each other */
int64_t lanes_number_beside(const Lanes *lanes, const Inst *elem); /* the constant that its index ends with */
void lanes_order_rows(Lanes *lanes, Func *wide);

/* ---- lanes_swap.c */
bool lanes_swap_loops(Lanes *lanes); /* in a round, so that sums are made apart; was anything done? */

/* ---- lanes_vary.c */
void lanes_find_varying(Lanes *lanes);
Val *lanes_goes_on_with(const Inst *loop, int index); /* what it carries to the next round, if there is one */
bool lanes_is_spread(Val *address);    /* it leads into a variable of which each lane has its own */
TapeUse *lanes_tape_use(Val *tape);    /* NULL: nobody knows which that is */
TapeUse *lanes_tape(const Inst *inst); /* the tape that it works on */
bool lanes_varies_here(const Lanes *lanes, const Inst *inst); /* more is needed than a copy of it */

/* ---- lanes_alone.c */
bool lanes_keeps_in_memory(
    const Inst *inst); /* of a local array or a tape, even when short loops are written out */
double
lanes_done_alone(const Lanes *lanes,
                 const Inst *loop); /* so many rounds at once, by vectors of LLVM's; some of it is lost */

/* ---- lanes_step.c */
/* How far a lane is from the one before it, in numbers: nobody knows, not at all, one, some. */
enum { STEP_none = -1, STEP_same, STEP_one, STEP_other };
int64_t lanes_step_of_counter(const Rounds *rounds, int param); /* of the round; 0: it is no counter */
int lanes_step_of(const Lanes *lanes, const Val *v);
int lanes_step_of_address(const Lanes *lanes, const Val *address);
Val *lanes_held(const Lanes *lanes, const Val *v); /* what it is, if it keeps to a bound; NULL: it has none */
bool lanes_is_held(const Lanes *lanes, const Val *v); /* an index or address that is made with such */
/* A sum that one lane makes by a load and a store, each in another place; if no index is held back. */
bool lanes_adds_by_rows(const Lanes *lanes, const Inst *inst);
bool lanes_adds_by_rows_inside(const Lanes *lanes, const Inst *inst);

/* The terms of an index but for constants, as the program adds them up. What comes from outside of the loop is
 * the `factor` of another, NULL for one; a multiple has one that is not known, or constant. */
typedef void LaneTerm(void *user, const Val *v, Val *factor, bool is_multiple);
void lanes_terms(const Lanes *lanes, Val *index, LaneTerm *term, void *user);
Val *lanes_given(const Lanes *lanes,
                 const Val *v); /* known outside of the loop, before the kernel begins; or NULL */
int64_t lanes_least_step(const Lanes *lanes,
                         const Val *v);                  /* however numbers wrap around; 0: lanes may meet */
bool lanes_is_counter(const Lanes *lanes, const Val *v); /* of rounds, by one; of a kernel: of threads */
const Val *lanes_unconverted(const Val *v);

/* ---- lanes_cost.c */
bool lanes_is_plain_sum(const LaneOptions *options,
                        const Inst *inst); /* one lane does it by a load and a store */
int lanes_best_width(const Lanes *lanes);
int lanes_least_width(const Lanes *lanes);
/* More than arithmetic, choices between two, memory, and loops over these that are short or written out. */
bool lanes_is_left_to_lanes(const LaneOptions *options, const Inst *inst);
/* So many rounds at once, by vectors of LLVM's around calls of elementary functions, which are done one by
 * one. */
double lanes_done_beside_calls(const Lanes *lanes);
bool lanes_are_left_to_others(const Lanes *lanes); /* LLVM does several rounds of such a loop at once */
bool lanes_are_vectors_alone(
    const Lanes *lanes); /* so it does, of those with functions that it has for them, too */
const char *lanes_not_worth_it(const Lanes *lanes); /* why; NULL: they are */
double lanes_gain(const Lanes *lanes);              /* how many times as fast they seem */
double lanes_time_alone(const Lanes *lanes);        /* of a round or item ... */
double lanes_time_together(const Lanes *lanes);     /* ... where several are done at once */
double lanes_rounds_of(const Inst *loop);           /* as estimated */
bool lanes_are_scattered(const Lanes *lanes);       /* they read or write in other places than neighbours */
bool lanes_half_is_enough(const Lanes *lanes);
int lanes_width_for_trip(
    const Lanes *lanes); /* what leaves few rounds behind, if it is known how many there are */
bool lanes_take_long(const Lanes *lanes);    /* to compile: the wide function that was made */
double lanes_code_added(const Lanes *lanes); /* ... which is this much */
double lanes_code_alone(const Inst *inst);   /* of what is compiled without lanes */
bool lanes_are_too_much(const Lanes *lanes); /* ... even if they are asked for */

/* ---- lanes_around.c */
typedef struct Around Around;
Around *lanes_around(Arena *scratch, Func *const *funcs, int count);
double lanes_code_around(const Around *around, const Func *func); /* that is compiled with it anyway */

/* ---- lanes_often.c */
typedef struct Often Often;
Often *lanes_often(Arena *scratch, Func *const *funcs, int count, const LaneOptions *options);
double lanes_rounds_at_most(Often *often, const Inst *loop); /* in all that is run; INFINITY: not known */

/* ---- lanes_race.c */
void lanes_look_for_races(Lanes *lanes); /* declines if there may be one */
bool lanes_is_same_memory(Val *a,
                          Val *b); /* the same uniform, variable, or part of one, as far as is known */

/* ---- lanes_widen.c */
void lanes_widen(Lanes *lanes);
void lanes_widen_at(Lanes *lanes, Builder b);     /* begins; the parameters are to be defined next, then: */
void lanes_widen_body(Lanes *lanes);              /* all but what it returns */
Val *lanes_left_in_row(Lanes *lanes, Builder *b); /* threads of the group, from the first lane on */
const Type *lanes_row(Lanes *lanes, const Type *scalar); /* one for each lane */
Val *lanes_same(Lanes *lanes, Val *v);             /* what stands for a value that is the same for all */
Val *lanes_part(Lanes *lanes, Val *v, int part);   /* a vector of lanes or a scalar */
Val *lanes_spread(Lanes *lanes, Val *v, int part); /* a vector of lanes */
Val *lanes_mask(Lanes *lanes);                     /* as a value, also where all are on */
Val *lanes_where_on(Lanes *lanes, Val *row, Val *other); /* for lanes that are off, `other` */
void lanes_define(Lanes *lanes, const Val *old, Val *const *parts);
void lanes_copy(Lanes *lanes, Inst *inst); /* one for all lanes */

/* ---- lanes_memory.c */
bool lanes_memory(Lanes *lanes, Inst *inst); /* false: not an op of this file */

bool lanes_can_be_spread(const Type *type); /* numbers, and nothing that leads elsewhere */
/* Between the object of one lane and memory that it has alone; lanes but that are off. */
void lanes_take_column(Lanes *lanes, Val *to, Val *object, int lane);
void lanes_give_column(Lanes *lanes, Val *object, Val *from, int lane);

/* ---- lanes_single.c */
void lanes_one_by_one(Lanes *lanes, Inst *inst);
Val *lanes_of_lane(Lanes *lanes, Val *v, int lane);
Val *lanes_sum(Lanes *lanes, Val *row);                         /* over the lanes, in pairs */
void lanes_atomic(Lanes *lanes, Inst *inst);                    /* not on a variable; not by rows */
bool lanes_calls_once(const Lanes *lanes, const Inst *call);    /* for all lanes */
const char *lanes_refused_call(Lanes *lanes, const Inst *call); /* why not even one by one; NULL: it can be */

/* ---- lanes_wave.c */
void lanes_wave(Lanes *lanes, Inst *inst);
int lanes_of_wave(const Lanes *lanes, const Func *kernel); /* 1: a wave cannot be lanes */

/* ---- lanes_tape.c */
bool lanes_even_out(Lanes *lanes); /* tapes that are uneven; what was found out before no longer holds */
void lanes_on_tape(Lanes *lanes, Inst *inst);

#endif
