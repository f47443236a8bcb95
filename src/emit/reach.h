/* reach: what a module's exported functions reach, and what each function needs of its surroundings. Every
 * target begins with this; nothing here knows of any. With it come answers that several targets need: what
 * memory of globals begins with, how printf sees its values. */
#ifndef SLOPE_EMIT_REACH_H
#define SLOPE_EMIT_REACH_H

#include "emit/abi.h"
#include "ir/ir.h"

/* What a function needs from its surroundings, itself or through what it calls. */
typedef enum Needs {
    NEEDS_RUNTIME = 1, /* an RtThread: tapes, printf, abort */
    NEEDS_STATICS = 2,
    NEEDS_SHARED = 4,
    NEEDS_SINK = 8,
    NEEDS_FIBER = 16,       /* waits at barriers */
    NEEDS_IDS = 32,         /* asks which thread it is */
    NEEDS_STACK = 64,       /* calls itself somewhere, or others in a long chain */
    NEEDS_LARGE = 128,      /* has variables above LARGE_SIZE */
    NEEDS_STOP = 256,       /* may take so long that it looks whether it is to stop */
    NEEDS_SIZES = 512,      /* asks how large a group or a dispatch is */
    NEEDS_ROWS = 1024,      /* has numbers in rows of four, which may be done at once */
    NEEDS_LOOP = 2048,      /* has loops, rounds of which may be */
    NEEDS_LOOP_ROWS = 4096, /* has such rows in loops, or loops that become some once they are written out */
    NEEDS_MADE = 8192,      /* makes tensors */
    NEEDS_LANES = 16384,    /* asks how many lanes a wave has */
} Needs;

/* Bytes; larger variables and blocks do not belong on a stack. */
enum { LARGE_SIZE = 16 * 1024 };

/* Instructions, roughly: what may be done without a look whether to stop, and how much of it loops do between
 * two looks. */
enum { MUCH_WORK = 1 << 18, SOME_WORK = 1 << 14 };

/* A loop that looks whether it is to stop, once in that many rounds. Where it counts towards something fixed
 * these are a loop of their own; where it does not, they are few, and written out. */
typedef struct LoopLooks {
    int64_t rounds;
    int64_t step; /* that it counts by; 0: it does not */
} LoopLooks;

/* Elements that a tape holds at most, by type from TYPE_bool on; -1: there is no limit. */
enum { TAPE_KINDS = TYPE_double - TYPE_bool + 1 };
typedef struct TapeRoom {
    int64_t exact[TAPE_KINDS];    /* as constant trip counts say */
    int64_t promised[TAPE_KINDS]; /* ... or [MaxIters] */
    int64_t bytes;                /* of all that are exact; -1: not all are */
    bool is_local;                /* so few that they are a variable of who opens it */
    Loc loose;                    /* a place whose amount not even [MaxIters] tells */
} TapeRoom;

/* As LOCAL_TAPE, on a GPU, where memory of a thread is set aside for as many as can run at once. */
enum { LOCAL_TAPE_MANY_THREADS = 16 * 1024 };

typedef struct ReachedFunc {
    Func *func;
    uint32_t needs;
    int calls, size;            /* places that call it, but for unlikely ones; instructions it has */
    struct ReachedFunc *caller; /* one of those */
    int loops_around, loops;    /* around that call; in each other, at most, in itself */
    int all_loops;              /* in itself */
    int in_caller;              /* places that call it, in the function that is looked at */
    struct ReachedFunc
        *root;        /* of its own, with others, is to become one function; itself: it stands alone */
    int whole;        /* instructions of all that have it as root */
    bool is_too_much; /* what calls it has no room for it */
    VEC(struct ReachedFunc *) callees; /* and initialisers of static globals it mentions */
    VEC(struct ReachedFunc *) callers;
    VEC(struct ReachedGlobal *) globals; /* that it mentions */
    bool is_listed;                      /* ... and whose turn to be filled comes before its own */
    int open_callees, open_callers;      /* while cycles are looked for */
    bool is_cyclic;                      /* may call itself, directly or not */
    bool tests_stack;                    /* at its start, whether there is enough left */
    int height;                          /* of the longest chain of calls that it begins; cyclic: 0 */
    bool looks;                          /* at its start, whether it is to stop */
    int64_t work;                        /* that it does at most before the next look */
    bool has_nest;                       /* of loops that are best written out */
    void *emitted;                       /* the target's own */
} ReachedFunc;

typedef struct ReachedGlobal {
    Global *global;
    int64_t offset; /* static and shared: in their block */
    ReachedFunc *init;
    bool is_listed;
    void *emitted; /* the target's own */
} ReachedGlobal;

typedef struct Reached {
    Arena *arena;
    Map func_map;   /* Func -> ReachedFunc */
    Map global_map; /* Global -> ReachedGlobal */
    Map tapes;      /* Inst that opens one -> TapeRoom */
    Map growing;    /* Val: parameters that are given tapes which may grow */
    Map looks;      /* Inst -> LoopLooks, for loops that may take long */
    Map nests;      /* Inst: short loops over small arrays, and what is in them */
    Map at_once;    /* Inst: loops of which several rounds are done at once; int: how many */
    Map left;       /* Inst: loops in these; Func: what they call */
    Map beside;     /* Inst: outermost loops that do little beside others; NULL: it is none */
    Map alone;      /* Param: a `ref` that nothing else leads to */
    VEC(ReachedFunc *) funcs;
    VEC(ReachedGlobal *) globals; /* in the order of the module */
    int64_t statics_size, shared_size;
    const Func *missing; /* reached, but without a body: nothing can be emitted */
} Reached;

/* ---- reach.c */
/* All that functions with FUNC_EXPORT reach, and every uniform; `wide`: with the forms of kernels for several
 * lanes. */
Reached emit_reach(Arena *arena, Module *module, bool wide);
ReachedFunc *reached_func(const Reached *reached, const Func *func); /* NULL: it is not */
ReachedGlobal *reached_global(const Reached *reached, const Global *global);
bool reach_is_large(const Type *type);
bool reach_may_hold_made(const Type *type);     /* such an object, a tensor that was made */
bool reach_may_return_made(const Param *param); /* through it, to who calls the function from outside */
/* The derivative of a function, mostly, that is called in one place: as a part of its caller it knows sizes
 * and strides. Compilers have the same rule, but may copy the caller's loop, and with it the call, before
 * they come to that; and they take in whatever comes. */
bool reach_is_joined(const ReachedFunc *info);
void reach_on_stack(ReachedFunc *info); /* it tests whether there is enough */

/* ---- printed.c */
RtPrintKind emit_print_kind(const Type *element); /* of a scalar that is given to printf */
/* Of all its operands, one each; how many lanes they have together. */
int emit_print_args(const Inst *inst, RtPrintArg *args);

/* ---- work.c */
void reach_work(Reached *reached); /* where to look whether to stop */

/* ---- tape.c */
/* The first push, or pop, in a row of one stack may do it for all of them: how many there are, or 0 for the
 * others. */
int emit_count_row(const Inst *inst);
const Inst *emit_next_in_row(const Inst *inst); /* NULL: it is the last */
void reach_tapes(Reached *reached);
const TapeRoom *reach_local_tape(const Reached *reached, Val *tape); /* NULL: it may grow */
bool reach_has_room(const Reached *reached, Val *tape);              /* never grows, whoever opened it */

/* ---- nest.c */
void reach_nests(Reached *reached);
bool emit_is_written_out(const Reached *reached,
                         const Inst *loop); /* it is best replaced by its rounds, one after the other */
/* How many rounds of a loop over vectors are best written out: LLVM, which makes none of such loops, does so
 * of itself only if it can write out all; 1: no more than there is. */
int emit_rounds_in_a_row(const Inst *loop);
/* How LLVM is to write out a loop of more than a few rounds. It would do so before it looks for vectors, and
 * every pass from there on has as many instructions more, the longest time that large functions take; vectors
 * are found in the loop as well, and what is left of it then may be written out. Where rounds wait for each
 * other there is nothing to gain; nor where a loop does what is left for it to do. */
typedef enum Unrolling { UNROLL_freely, UNROLL_as_vectors, UNROLL_never } Unrolling;
/* `has_short_vectors`: so few rounds fill some. */
Unrolling emit_unrolling(const Inst *loop, bool has_short_vectors);
/* Of a loop whose rounds are best done so (ir/atonce.c); else 1. */
int emit_rounds_at_once(const Reached *reached, const Inst *loop);
/* How many rounds of a short loop of elementary functions, quotients or roots of rows fill a register of so
 * many bytes. Of registers of 512 bits LLVM would fill halves: what else a function does is not faster with
 * all of them as a rule, but a call is. 1: no such loop, or it would leave some rounds to be done one by one. */
int emit_rounds_that_fill(const Inst *loop, int bytes);

/* ---- beside.c */
void reach_beside(Reached *reached);
bool emit_is_beside(const Reached *reached,
                    const Inst *inst); /* the loop, or one around it, does little beside others */

/* ---- alone.c */
void reach_alone(Reached *reached);
bool emit_is_alone(const Reached *reached,
                   const Param *param); /* nothing else leads to what it is given by address, during a call */
bool emit_is_outlined(const Func *func); /* a nest of loops that was taken out of another */

/* ---- sums.c */
/* Additions that the groups of a GPU may keep until they end. */
typedef struct WaitingSums {
    bool any;
    const Global *buffer; /* that all are in; NULL: there are several, or it is a parameter */
    TypeKind kind;        /* of the numbers: float, or double */
    int count;            /* that a group has room for */
    bool in_order;        /* sum i is of the buffer's number i: what threads have in common is among these */
} WaitingSums;
WaitingSums emit_waiting_sums(const Reached *reached, const Module *module);
int64_t emit_sums_bytes(const WaitingSums *sums); /* of a group's shared memory */

/* ---- together.c */
typedef VEC(const Inst *) SumTerms;

/* Sums in elements of one buffer, at equal distances. */
typedef struct SumRow {
    const Inst *access; /* what finds the first element */
    int64_t step;       /* elements from one to the next, */
    int64_t offset;     /* bytes before the number in an element, */
    int64_t distance;   /* ... and from that of one to that of the next */
    bool varies;        /* not all lanes of a warp need have the same */
    int count;
    SumTerms *terms; /* of each, what is added there */
} SumRow;
typedef VEC(SumRow) SumRows;

/* The sums of a function that wait, as they are come across. */
typedef struct SumsTogether {
    const WaitingSums *sums;
    const int *uses; /* by Val.id */
    SumTerms waiting;
} SumsTogether;
/* The sum stands with the next, or makes rows with those that have waited; false: it is none that waits. */
bool emit_sums_together(Arena *arena, SumsTogether *together, const Inst *inst, SumRows *rows);
bool emit_sum_waits(const SumsTogether *together, const Inst *inst);

/* ---- whole.c */
/* An element of a buffer that is stored part by part, as a whole. */
typedef struct WholeElement {
    const Inst *access, *last; /* what finds it; the store after which nothing of it is missing */
    int words;
} WholeElement;
bool emit_find_whole(const Inst *store, WholeElement *whole);          /* that begins with the store */
const Inst *emit_last_part(const Inst *store, const Inst *access);     /* of that element; NULL: it is none */
int64_t emit_part_offset(const Inst *store);                           /* in the element */
int64_t emit_whole_bytes(const Func *func, const WholeElement *whole); /* of a group's shared memory */
int emit_warps(const Func *func);                                      /* of a group of the kernel */
int64_t emit_copied_bytes(const Func *func); /* of what its groups copy (Func.copies) */
/* So many bytes more of a group's shared memory; false: there is not so much. */
bool emit_take_shared(const Reached *reached, const WaitingSums *sums, int64_t *taken, int64_t bytes);

/* ---- image.c */
void emit_fill_image(const Global *global,
                     char *memory); /* which is zero; what it has no constants for stays so */

#endif
