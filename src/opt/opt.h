/* opt: passes that make a function smaller or faster and leave its meaning alone.
 *
 * One file, one pass, one function; it returns whether it changed anything. Every pass takes free and normal
 * form and keeps the form (but for exits.c, which makes the one of the other), leaves the function verified,
 * keeps positions and names where there is a choice, and is linear in the size of the function, up to a
 * logarithm. What a pass leaves unused, dce removes: passes do not clean up after themselves. */
#ifndef SLOPE_OPT_H
#define SLOPE_OPT_H

#include "ir/ir.h"

/* ---- inline.c */
typedef struct InlinePolicy {
    int max_size; /* instructions of a callee; functions that say [ForceInline] may be of any size */
    int max_whole; /* instructions that all copies in a function may have, with a callee's own callees; 0: any number */
    int max_each; /* instructions of a callee with what would be copied into it; 0: any number */
    /* instructions added to the whole module, beyond which only these are taken; 0: any number */
    int64_t max_growth;
    /* Asked about every callee that is small enough to be inlined, [ForceInline] included: what has a
     * derivative of its own must not be inlined before it is differentiated, nor a call under no_diff (its
     * flag). NULL: all may be. [noinline] is never asked about. */
    bool (*may)(void *user, const Func *callee, const Inst *call);
    void *user;
    bool any_form; /* a function in normal form may leave it: nobody will differentiate what is made here */
} InlinePolicy;
bool opt_inline(Func *func, InlinePolicy policy);
/* What waits at barriers becomes part of the kernel: for targets that must see them all at once. */
bool opt_inline_waiting(Func *func);
/* What takes objects apart for others or fills them, as constructors do and the derivatives that a program
 * calls: the caller knows the parts then, such as buffers. And what is called in one place with arrays of a
 * few integers: strides that the caller knows. */
bool opt_inline_parts(Func *func);
/* What a loop calls in one place, and that uses elements of buffers, becomes part of the loop: so that their
 * indices can be tested before it. */
bool opt_inline_in_loops(Func *func);
bool opt_is_inlined_in_loop(const Inst *call);

/* ---- sroa.c: variables of record and small array type become one variable per part */
typedef struct SroaOptions {
    bool keep_opaque; /* records with diff.opaque stay whole */
    bool flat;        /* vectors are taken apart: code that has none as values is to stay without */
    bool params;      /* so are parameters by address, except arrays in them */
    bool any_size;    /* variables are split however many parts they have */
} SroaOptions;
/* Is what a call is given by address a variable of the caller that would have been taken apart, had not what
 * is called been there? It is by constant indices that this reaches into it. */
bool opt_is_split_in_caller(const Inst *call, int operand);
bool opt_sroa(Func *func);
bool opt_sroa_func(Func *func, SroaOptions options);

/* clean.c: what inlining leaves; in place: but for what could be computed before loops, or not at all */
void opt_clean(Func *func, SroaOptions options);
void opt_clean_in_place(Func *func, SroaOptions options);

bool opt_scalars(Func *func);     /* scalars.c: short vectors become scalars */
bool opt_pack(Func *func);        /* pack.c: no memory is seen as another type */
bool opt_lower_exits(Func *func); /* exits.c: free to normal form */
bool opt_behind(Func *func);      /* behind.c: what is done as a loop is left is done behind it */
bool opt_decide(Func *func);      /* decided.c: what a way decides is decided on that way */
bool opt_ssa(Func *func);         /* ssa.c: variables become values ... */
bool opt_ssa_flat(Func *func);    /* ssa.c: ... but for vectors */
bool opt_place(Func *func);       /* placed.c: what ends in an `out` parameter is made there */
bool opt_share(Func *func);       /* share.c: copies of what stays the same are not made */
bool opt_simplify(Func *func);    /* simplify.c: folding, constant and trivial control flow */
bool opt_cse(Func *func);         /* cse.c: one computation, one load for the same thing */
bool opt_cse_linear(Func *func);  /* cse.c: the same for the primal values of a linearized function */
bool opt_asked(Func *func);       /* asked.c: ifs on one condition compute what they share once */
bool opt_licm(Func *func);        /* licm.c: what a loop computes anew is computed before it */
bool opt_rejoin(Func *func);      /* rejoin.c: a loop over parts of a loop is that loop */
bool opt_upward(Func *func);      /* upward.c: loops that count down for no reason count up */
bool opt_unroll(Func *func);      /* unroll.c: loops that ask for it */
bool opt_take_digits(Func *func); /* digits.c: a loop over k, k / 3 and k % 3 is two loops */
/* written.c: short nests over local arrays; for_source: a compiler of C makes code of them */
bool opt_write_out(Func *func, bool for_source);
bool opt_extremes(Func *func);    /* extremes.c: choices that are the greater one of two numbers */
bool opt_powers(Func *func);      /* powers.c: pow(x, 5) becomes products */
bool opt_reciprocal(Func *func);  /* reciprocal.c: one division instead of several by the same number */
bool opt_direct_sums(Func *func); /* direct.c: on a GPU, sums that are kept for a buffer go there at once */
bool opt_copies(Func *func);      /* copies.c: on a GPU, groups copy elements that all threads read */
bool opt_untape(Func *func);      /* untape.c: arrays that are there still are not kept on tapes */
bool opt_steps(Func *func);       /* steps.c: counters do not wait for what ends their loop */
bool opt_fill(Func *func);        /* fill.c: what is set in a buffer and then added to is set once */
bool opt_turn(Func *func);        /* turn.c: arrays that lanes read in every round are read once */
bool opt_skip(Func *func);        /* skip.c: sums of what an `if` chooses are made where it is not zero */
bool opt_totals(Func *func);      /* totals.c: what rounds add to one place of a buffer is added up first */
bool opt_window(Func *func);      /* window.c: what is added to places beside each other is added up first */
bool opt_ways(Func *func);        /* ways.c: loops that carry derivatives along branch where others choose */
bool opt_near(Func *func);        /* near.c: what is read from a buffer is read where it is needed */
bool opt_pad_rows(Func *func);    /* padded.c: rows of local arrays fill whole vectors */
bool opt_first(Func *func);       /* first.c: what is added to zeros is put there */
bool opt_calls(Func *func);       /* calls.c: elementary functions of many numbers are a loop */
bool opt_terms(Func *func);       /* terms.c: quotients that are added up are computed before */
bool opt_order(Func *func);       /* order.c: sums of derivatives wait for no term that comes late */

/* ---- pairs.c: two products that a loop adds up have a sum each, unless a short one would fill registers of more than 128 bits with them */
bool opt_pairs(Func *func, int register_bits);

/* ---- cse.c: instructions that compute the same; their operands are resolved */
bool opt_is_repeatable(
    const Inst *inst); /* the same operands give the same results, and nothing else happens */
bool opt_same_inst(const Inst *a, const Inst *b);
uint64_t opt_hash_inst(const Inst *inst); /* equal for such; never 0 */
uint64_t opt_hash_val(const Val *v);

/* ---- late.c: on a GPU, sums in buffers stand together */
bool opt_late_sums(Func *func);
/* Something is added to an element of a buffer, and nobody uses what was there. uses: by Val.id */
bool opt_is_sum(const int *uses, const Inst *inst);
bool opt_has_own_sums(const Func *func);   /* one thread runs it, and may add to buffers */
bool opt_is_of_thread(const Val *address); /* memory of its own, or of its tapes */

static inline bool is_for_tape(const Inst *inst) {
    return inst->op >= OP_tape_open && inst->op <= OP_tape_elem;
}

/* ---- dce.c: what nobody needs */
bool opt_dce(Func *func);
/* These are needed elsewhere; each may be NULL. */
bool opt_dce_but(Func *func, const InstVec *insts, const ValVec *vals);

/* ---- legalize.c: sums of objects are written out, and what else a target lacks */
typedef struct LegalOptions {
    /* division and shifts are defined for all operands, and only some will do for the target */
    bool integers;
    bool clamps; /* of vectors of floats it makes integers only where all are in range */
    /* it makes halves of floats alone, and floats alone of halves, and has no remainder of them */
    bool halves;
    bool zeros; /* no products and quotients of which nothing stays nothing */
} LegalOptions;
bool opt_legalize(Func *func, LegalOptions options);

/* ---- range.c: indices that are in range are marked; with `copies`, loops of which a test before them says so have two forms, and with `apart` that tests, too,
 * whether the buffers that they use overlap */
typedef struct RangeOptions {
    bool copies, apart;
    int register_bits; /* of vectors that LLVM makes of loops; 0: it makes none */
} RangeOptions;
bool opt_range(Func *func, RangeOptions options);
bool opt_is_written_out_in_c(const Inst *loop); /* range.c: so short that compilers of C write it out */
bool opt_calls_keep_checks(
    const Inst *loop,
    bool if_flat); /* range checks stay in it because of what it calls, and it is no loop for vectors */

/* ---- sink.c: among many branches, numbers are computed where they are first needed; `many`: of a region, others stay as they are */
bool opt_sink(Func *func, int many);

/* ---- nowhere.c: what is done in a buffer that is none */
bool opt_nowhere(Module *module, int first);
bool opt_drop_nowhere(Inst *inst); /* an access */

/* ---- unlikely.c: what is, if large, is a function */
bool opt_outline_unlikely(Func *func);

/* ---- apart.c: buffers that a nest of loops uses */
enum { MOST_APART = 6 };
typedef struct ApartBuffer {
    Val *buffer;
    bool is_written;
    int number; /* several may have one: then nobody knows whether they are apart */
} ApartBuffer;
typedef struct ApartBuffers {
    ApartBuffer at[MOST_APART]; /* which stay the same as long as the function runs */
    int count;
    bool overflows; /* there are more */
} ApartBuffers;
void opt_find_buffers(ApartBuffers *buffers, const Inst *loop);
void opt_join_written(ApartBuffers *buffers);                             /* they have one number */
int opt_number_of_buffer(const ApartBuffers *buffers, const Val *buffer); /* -1: it is none of them */
Inst *opt_buffer_element(Val *address); /* that it leads into, also of lanes; NULL: it does not */
/* That those which are written overlap no other; NULL: there is nothing to be told apart. */
Val *opt_test_apart(Builder *b, const ApartBuffers *buffers);
/* The loop runs if they do not. */
void opt_mark_apart(const ApartBuffers *buffers, Inst *loop, int nest);

/* ---- outline.c: for C, nests of loops whose buffers are apart become functions */
bool opt_outline(Func *func);

/* ---- together.c: rounds of a loop that differ in little, at once */
bool opt_mark_derivatives(Module *module, int first); /* loops with derivatives in them */
bool opt_may_be_together(
    Func *func); /* are there such loops, of few rounds, that may have something in common? */
bool opt_inline_together(Func *func); /* all that is called in them */
bool opt_together(Func *func);

/* ---- siblings.c: calls of one derivative that have operands in common become parts of the function */
bool opt_inline_siblings(Func *func);

/* ---- reach.c: values that are used outside of the region where they came about */
void opt_reach_values(Func *func, Arena *scratch);

/* ---- pure.c: functions without effects are marked, from the first on that is new */
bool opt_infer_pure(Module *module, int first);

/* ---- sums.c: what kernels add to buffers goes to copies of their own (Func.sums) */
bool opt_has_sums(
    Func *kernel); /* it, or what it calls, adds floating-point numbers to something that is shared */
bool opt_inline_sums(Func *kernel); /* all that is called and does so */
/* False: nothing can be kept. `large`: bits of those, in the order of Func.sums, that are not to be. */
bool opt_keep_sums(Func *kernel, uint64_t large);

/* ---- lanes.c: a form of a kernel that does several items at once (Func.wide) */
typedef struct LaneOptions {
    int width;         /* 2, 4, 8, ... 64; 0: what is best, if it is worth while */
    int register_bits; /* of the registers for vectors that the machine has */
    int groups;        /* that there will be; 0: many */
    int wave;          /* threads of one, at most */
    bool alone;        /* one thread runs all: sums are plain ones */
    bool unchecked;    /* nobody asks whether indices are in range */
} LaneOptions;
typedef struct LaneRemark {
    int width;       /* 1: none was made */
    const char *why; /* then, or NULL */
    Loc loc;
} LaneRemark;
bool opt_lanes(Func *func, const LaneOptions *options, LaneRemark *remark);

/* ---- lanes_loop.c: loops that do several rounds at once */
typedef struct LaneRemarks {
    void (*note)(void *user, const Func *func, const LaneRemark *remark); /* of each loop */
    void *user;
} LaneRemarks;
bool opt_lane_loops(Func *const *funcs, int count, const LaneOptions *options, const LaneRemarks *remarks);

/* ---- flatten.c */
/* Makes plain control flow of all breaks out of a block, or all continues of a loop, if that copies no code.
 * Returns whether none is left. */
bool opt_flatten_jumps(Inst *target, Op op);

/* ---- memory.c */
typedef struct Memory {
    const Func *func;
    bool *given_away; /* by id of a variable or parameter */
    uint32_t nids;
} Memory;
typedef struct Object {
    const void *key;  /* NULL: unknown, may be anything that is not private */
    bool is_private;  /* reached through no other object, nor by a call that it is not given to */
    bool is_constant; /* nobody but this function itself could write it while it runs */
} Object;
void opt_memory_init(Memory *memory, Arena *arena, Func *func);
/* The buffer of which it is an element, or a part of one; NULL: of none. */
const Val *opt_memory_buffer(const Val *address);
Object opt_memory_object(const Memory *memory, const Val *address);
/* What it adds to its place, in any order, is added to what this has read there; NULL: it does something
 * else. */
const Inst *opt_memory_sum(const Inst *store);

#endif
