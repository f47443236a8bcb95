/* ir: the program as typed SSA values with structured control flow.
 *
 * Control flow is held as nested regions: `if`, `switch` and `loop` are instructions that own regions and
 * yield values; there are no blocks and no jumps, so a pass is a recursion. Values are scalars, vectors,
 * pointers, buffers and tapes. (Where opt/lanes.c made several items of one: also vectors of pointers.)
 * Structs and arrays live in memory and are handled by address: `var` makes one, `field` and `elem` reach
 * into it. (Matrices are arrays of row vectors.)
 *
 * Two states, both verified:
 *   free    break, continue and return may stand anywhere; lowering makes it, and code that is never differentiated
 *           stays so;
 *   normal  one return, at the end of the body; no break, continue or unreachable; a loop is "while condition, body". Autodiff
 *           takes and gives this.
 *
 * Functions. A parameter is passed by value, or by address. As lowered: `in` scalars, vectors, pointers,
 * buffers by value; `in` structs and arrays, and everything out or inout, by address. An `in` address is not
 * written by anyone during the call; addresses of out and inout parameters overlap with nothing else the
 * function can reach. A result that is a struct or array is returned through an `out` parameter that comes
 * first (PARAM_RESULT). A function can have any number of results; lowered ones have none or one, functions
 * made by autodiff have many.
 *
 * Memory is in the module's arena. There are no use lists: a pass that replaces a value sets its `forward`
 * and lets every later operand be resolved, see ir_resolve. */
#ifndef SLOPE_IR_H
#define SLOPE_IR_H

#include "diag/diag.h"
#include "type/type.h"

typedef struct Val Val;
typedef struct Inst Inst;
typedef struct Region Region;
typedef struct Func Func;
typedef struct Global Global;
typedef struct Module Module;

typedef VEC(Val *) ValVec;
typedef VEC(Inst *) InstVec;

/* ---- operations */

typedef enum Op {
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning) OP_##name,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} Op;

typedef enum OpProperties {
    OP_NONE_ = 0,
    OP_PURE = 1 << 0,        /* result depends on operands alone; may be removed, moved, merged */
    OP_ELEMENTWISE = 1 << 1, /* lane by lane on vectors */
    OP_COMMUTES = 1 << 2,
    OP_COMPARES = 1 << 3, /* result is bool in the shape of the operands */
    OP_READS = 1 << 4,    /* memory */
    OP_WRITES = 1 << 5,
    OP_EFFECT = 1 << 6, /* something else that must stay, once, in order */
    OP_TAPE = 1 << 7,   /* reads or changes a tape */
    OP_CALLS = 1 << 8,
    OP_REGIONS = 1 << 9,
    OP_ENDS = 1 << 10,   /* ends a region */
    OP_LEAVES = 1 << 11, /* ... and control goes elsewhere than to the owner's end */
    OP_STEEP =
        1 << 12, /* it or a partial derivative may be infinite, or NaN, though the operands are finite */
    OP_PRODUCT = 1 << 13, /* its partial derivatives are its operands; it may overflow */
    OP_FLOATS = 1 << 14,  /* takes floats only */
    OP_INTEGERS = 1 << 15,
    OP_BITS = 1 << 16,        /* integers or bool */
    OP_PART = 1 << 17,        /* the address of a part of the object at the first operand */
    OP_MOVES = 1 << 18,       /* of an address: another one in the same object */
    OP_TWO_OBJECTS = 1 << 19, /* reads or writes the object at the first operand, reads that at the second */
    OP_PLAIN = 1 << 20,       /* reads and writes, and nothing else: can be done part by part */
    OP_OBJECTS = 1 << 21,     /* objects of any type, not only what can be a value */
    OP_ATTRIBUTES =
        1 << 22, /* operands and type are not all of it, or it is an address: a copy is made of the whole */
    OP_INTRINSIC =
        1 << 23,         /* a function for which LLVM has an intrinsic, so that it makes vectors around it */
    OP_DOMAIN = 1 << 24, /* has no value, NaN, for some finite operands */
} OpProperties;

typedef struct OpInfo {
    const char *name;
    int nargs, nresults; /* -1: any */
    uint32_t properties;
    int cost;
    bool has_partials; /* its derivative is in its row */
} OpInfo;
extern const OpInfo op_info[OP_COUNT];

/* ---- values */

typedef enum ValKind { VAL_inst, VAL_param, VAL_const } ValKind;
typedef enum ValFlags {
    VAL_DIFF = 1, /* autodiff: a differential; only between linearize and extract */
} ValFlags;

struct Val {
    uint8_t kind; /* ValKind */
    uint8_t flags;
    int index;   /* which result of `inst`, which parameter of `region` */
    uint32_t id; /* dense within the function, from 1; constants: 0 */
    const Type *type;
    Name name; /* for dumps; may be NULL; of a constant: the case of an enum that it is */
    union {
        Inst *inst;          /* VAL_inst */
        Region *region;      /* VAL_param: also the parameters of a function, which are those of its body */
        union {              /* VAL_const: of scalar type; pointers and vectors only as all zero */
            int64_t integer; /* integers (sign- or zero-extended as the type says) and bool */
            double real;
        };
    };
    Val *forward; /* replaced by this; see ir_resolve */
};

/* ---- instructions and regions */

/* What the cases of an enum are called, for targets that are read. */
typedef struct EnumCase {
    Name name; /* Kind.Circle */
    int64_t value;
} EnumCase;

typedef struct EnumNames {
    const void *decl; /* the checker's */
    const Type *type; /* the integer that it is */
    Loc loc;
    const EnumCase *cases;
    int ncases;
} EnumNames;

typedef struct SwitchCase {
    int64_t *values;
    int nvalues;
    const EnumNames *of; /* the enum that they are from; NULL: they are numbers */
} SwitchCase;

typedef enum AtomicKind {
    ATOMIC_add,
    ATOMIC_min,
    ATOMIC_max,
    ATOMIC_and,
    ATOMIC_or,
    ATOMIC_xor,
    ATOMIC_exchange
} AtomicKind;

/* What the source says about a loop. */
typedef struct LoopHints {
    int64_t max_iters;  /* [MaxIters(n)]; 0: unknown */
    int64_t unroll;     /* [ForceUnroll(n)]; -1: [ForceUnroll]; 0: no */
    int64_t checkpoint; /* [Checkpoint(budget)]; 0: no */
    bool together;      /* there are derivatives in it, whose primal may be the same in all rounds */
    bool few;           /* rounds are left for it to do */
    bool wide; /* does several rounds at once, and may leave any of the last, or all, to the loop behind it */
    bool ways; /* a round goes the way of the one before, as a rule (opt/ways.c) */
    bool written; /* it is about to be written out (opt/written.c) */
    bool back;    /* autodiff made it, and all in it, of a loop */
    bool takes;   /* ... and it reads derivatives in memory: those of what the loop stored there */
} LoopHints;

/* Of an access to a buffer in a nest of loops: which of the buffers of that nest it is. A test before the
 * nest has found that none of those that are written overlaps another of them, and all of them stay the same
 * as long as the function runs. Whoever copies the access drops this. */
enum { APART_NESTS = UINT16_MAX }; /* of a function at most */
typedef struct ApartMark {
    uint16_t nest; /* of the function, from 1; 0: nothing is known */
    uint8_t which, count;
} ApartMark;

static inline bool ir_are_marked_apart(ApartMark a, ApartMark b) {
    return a.nest > 0 && a.nest == b.nest && a.which != b.which;
}

/* A linearized instruction is one of these; only between linearize and extract. */
typedef enum InstTag { TAG_primal, TAG_diff, TAG_mixed } InstTag;

/* Which operations have which of them, and their words in dumps: words.def. */
typedef enum InstFlags {
    INST_RAW =
        1, /* memory that begins with whatever was there: everything is stored before it is read; of the address of an element: the loop around it goes through the whole row, and
            * elements behind that fill vectors are nobody's (opt/padded.c) */
    INST_UNCHECKED =
        2, /* the index is known to be in range; of arithmetic: operands and result are, nothing wraps */
    INST_NO_DIFF = 4, /* under no_diff: no derivative passes */
    INST_FREE =
        8, /* nobody wrote it: of a sum, any order will do; of a quotient, a product with a reciprocal */
    INST_WRITES = 16, /* some store goes through the address */
    INST_LIKELY = 64, /* of an if: the condition is true, as a rule */
    INST_BESIDE =
        8, /* of the address of an element for each lane: neighbours are used, too (opt/lanes_rows.c) */
    INST_COPIED = 128, /* of an access to a buffer: groups may have a copy of the element (Func.copies) */
    INST_AGAIN = 32,   /* autodiff: the reverse pass makes the call once more */
    INST_STEEP = 1,    /* of a square root: its derivative has no bound close to 0 */
    /* autodiff: of a guarded product or quotient, it needs no guard where somebody reads what the primal loop
     * has carried on */
    INST_CARRIED = 1,
} InstFlags;

struct Inst {
    uint16_t op;   /* Op */
    uint8_t tag;   /* InstTag */
    uint8_t flags; /* InstFlags */
    int nargs, nresults, nregions;
    Loc loc;
    Inst *prev, *next;
    Region *parent; /* NULL: not inserted */
    Func *func;
    Val **args;
    Val **results;
    Region **regions;
    /* attributes */
    const Type *type; /* var: of the memory; tape_grow, tape_shrink: element */
    int index;        /* field, barrier, thread_id; atomic: AtomicKind */
    union {
        Func *callee;     /* call */
        Global *global;   /* global */
        Inst *target;     /* break, continue */
        Str text;         /* printf, abort */
        uint8_t lanes[4]; /* shuffle: as many as the result has */
        struct {          /* switch */
            SwitchCase *cases;
            int ncases;
        };
        LoopHints hints; /* loop */
        ApartMark apart; /* buffer_elem, buffer_bytes */
    };
    void *note; /* of the pass at work */
};

struct Region {
    Inst *owner; /* NULL: body of a function */
    Func *func;
    Val **params;
    int nparams;
    Inst *first, *last; /* the last one ends the region, once it is complete */
    void *note;
};

/* ---- functions */

typedef enum Dir { DIR_in, DIR_out, DIR_inout, DIR_ref } Dir; /* ref: __ref, any address */

typedef enum ParamFlags {
    PARAM_BY_ADDRESS = 1, /* the value is the address */
    PARAM_DIFF = 2,       /* differentiable: its type is, and nothing says no_diff */
    PARAM_PTR_DIFF = 4,   /* of a type that is IDifferentiablePtrType */
    PARAM_RESULT = 8,     /* the result, through memory */
    PARAM_THIS = 16,
    PARAM_NO_DIFF = 64, /* of such a type, but under no_diff: its counterpart stays behind */
    PARAM_BLOCK = 32,   /* of an entry point: a constant buffer, the value being its address */
    PARAM_OWN = 128,    /* of a kernel: a buffer to add to, that nobody else uses meanwhile (Func.sums) */
    PARAM_APART =
        256, /* a buffer: what is written of its memory meanwhile is reached by this parameter alone */
    PARAM_PLACE = 512, /* by address: atomic operations are done on it, which a copy would undo */
} ParamFlags;

typedef struct Param {
    Name name;
    const Type *type;      /* of the object, also where the value is its address */
    uint8_t dir;           /* Dir */
    uint16_t flags;        /* ParamFlags */
    uint16_t image_format; /* of the images in it, as check has it; 0: not said */
    /* Autodiff, in flat functions: the type of the counterpart of a reference; void: there is none; NULL: not
     * known. */
    const Type *counterpart;
} Param;

typedef enum FuncFlags {
    FUNC_FWD = 1 << 0,    /* may be differentiated forward ... */
    FUNC_BWD = 1 << 1,    /* ... and backward */
    FUNC_INLINE = 1 << 2, /* [ForceInline] */
    FUNC_NOINLINE = 1 << 3,
    FUNC_TREAT_AS_DIFF = 1 << 4,
    FUNC_RECOMPUTE = 1 << 5,         /* [PreferRecompute] */
    FUNC_CHECKPOINT = 1 << 6,        /* [PreferCheckpoint] */
    FUNC_RECOMPUTE_EFFECTS = 1 << 7, /* [PreferRecompute(SideEffectBehavior.Allow)] */
    FUNC_RESULT_DIFF = 1 << 8,       /* a result by value is differentiable */
    FUNC_NORMAL = 1 << 9,            /* in normal state */
    FUNC_GENERATED = 1 << 10,        /* made by autodiff */
    FUNC_TRANSPOSABLE = 1 << 11, /* a forward derivative that also serves, transposed, as the backward one */
    FUNC_EXPORT = 1 << 12,       /* reachable from outside: entry points, functions asked for by the API */
    FUNC_PURE = 1 << 13,     /* harmless, and reads nothing but its variables and parameters (opt/pure.c) */
    FUNC_PRECISE = 1 << 14,  /* arithmetic is done as it is written: something in it is declared `precise` */
    FUNC_HARMLESS = 1 << 15, /* no effect but on parameters, and it ends: a call that nobody needs can go */
    FUNC_UNLIKELY = 1 << 16, /* called where a condition is false as a rule (opt/unlikely.c) */
    FUNC_FAILED = 1 << 17,   /* an error was found in it, or in what it calls: no code is made of it */
    FUNC_BOUND = 1 << 18,    /* `this`, a reference, is bound to a derivative (leaf.c) */
    FUNC_BY_HAND = 1 << 19,  /* made by autodiff, of a function whose derivatives the source gives */
    FUNC_ONE_BY_ONE = 1 << 20, /* vectors bring nothing: LLVM is to look for none (opt/range.c) */
    FUNC_PART = 1 << 21,       /* of another function, for which it reads and writes (func_new_part) */
    FUNC_PLACE = 1 << 22,      /* the address that it returns is read and written: there, or nowhere */
} FuncFlags;

/* A derivative that someone asked for: autodiff fills in the body of the function that holds this. Its
 * signature is the one that users see, with pairs. */
typedef struct Derivation {
    Func *of;
    int mode; /* DiffMode of syntax: 1 forward, 2 backward */
} Derivation;

/* Derivatives and the like that the source provides; filled in by the hook `complete_diff`. */
typedef struct Custom {
    bool complete;
    Func *fwd, *bwd;  /* custom derivatives, with the signatures that users write */
    Func *substitute; /* primal substitute */
    Func *primal;     /* custom derivative with state: the forward pass that fills the state */
} Custom;

/* Where a kernel would find a buffer, of which it is given a copy of its own: in a uniform, or at a
 * parameter. From there an offset in bytes leads to a pointer, which is followed, and so on; the last leads
 * to the buffer. */
enum { SUM_STEPS = 4 };
typedef struct SumSource {
    Global *global; /* NULL: ... */
    int param;      /* ... the parameter of that number */
    int64_t offsets[SUM_STEPS];
    int nsteps;
    const Type *scalar; /* float or double: all that its elements consist of */
    int64_t stride;     /* bytes of an element */
} SumSource;

/* The first elements of a buffer, which each group copies when it begins: opt/copies.c. */
typedef struct GroupCopy {
    const Global *owner; /* a uniform */
    int64_t elements;
    int64_t words; /* of it that a thread reads, about */
} GroupCopy;

struct Func {
    Name name; /* unique in the module: a mangled form of the source name, readable */
    Loc loc;
    /* of the prelude, or made from such: copied into others, it stands in the line that calls it */
    bool is_library;
    uint32_t flags;
    Param *params;
    int nparams;
    const Type **results;      /* types of the results by value */
    const Type **counterparts; /* of results that are references, as in Param; NULL: none is */
    int nresults;
    Region *body;   /* NULL: not there (yet); its params are the function's */
    uint32_t nvals; /* every id is less; a table by id has this size */
    Module *module;
    Derivation derivation;
    Custom custom;
    int group_size[3]; /* entry points: [numthreads]; 0: not one */
    Func *
        wide; /* of such: what does it for `lanes` threads that follow each other in x; NULL: there is none */
    Func *setting;    /* what is given zeros where this one adds (opt/first.c); NULL: there is none */
    const bool *sets; /* ... of which parameters, by index */
    int lanes;        /* of the wide one, and of that itself */
    int rounds;       /* that loops of it do at once, at most (opt/lanes_loop.c); 0: one after the other */
    SumSource *sums;  /* of such: buffers that it has copies of, in its last parameters (opt/sums.c) */
    int nsums;
    int64_t work;        /* ... operations of a thread, at most; 0: not known */
    int64_t least_work;  /* ... and about, if loops whose length is not known are no longer than most */
    bool has_other_sums; /* ... and it adds floating-point numbers to other memory, too */
    GroupCopy *copies;   /* of such, on a GPU */
    int ncopies;
    const void *source; /* lowering's own */
    void *note;
};
/* Asked for, or made on the way. */
static inline bool func_is_derivative(const Func *func) {
    return (func->flags & FUNC_GENERATED) || func->derivation.of;
}
bool inst_is_derivative(const Inst *inst); /* in such a function, or in a loop that came from one */

/* ---- globals */

typedef enum GlobalKind {
    GLOBAL_const,   /* never written; `data`, or filled by `init` before anything runs */
    GLOBAL_static,  /* one per thread of a dispatch, filled by `init` when the thread starts */
    GLOBAL_shared,  /* groupshared */
    GLOBAL_uniform, /* set from outside, not written */
} GlobalKind;

struct Global {
    Name name; /* unique, as users write it for uniforms */
    uint8_t kind;
    const Type *type;
    Val **data; /* constants, one per scalar in order of the layout, or NULL */
    int ndata;
    Func *init;            /* no parameters; stores to the global; or NULL */
    uint8_t layout;        /* LayoutRules of what a uniform holds */
    bool is_block;         /* a uniform: a constant buffer; of an array of those it has the addresses */
    uint16_t image_format; /* of the images in it, as check has it; 0: not said */
    Loc loc;
    const void *source;
    void *note;
};

/* ---- modules */

/* What autodiff needs and only lowering knows; each may be called any number of times. */
typedef struct IrHooks {
    void *user;
    void (*complete)(void *user, Func *func);            /* give it a body, if the source has one */
    void (*complete_diff)(void *user, Func *func);       /* fill in func->custom */
    void (*complete_record)(void *user, Record *record); /* fill in record->diff */
    /* The derivative of an elementary operation on scalars of that type, a function of pairs; NULL: there is
     * none. */
    Func *(*op_rule)(void *user, const Inst *inst);
    Func *(*library)(void *user, const char *name); /* a function of the prelude; NULL: there is none */
} IrHooks;

struct Module {
    Arena *arena;
    void *derivatives; /* autodiff's own: what it knows of functions that it has made, for the next request */
    Types *types;
    Names *names;
    Diags *diags;
    VEC(Func *) funcs;
    VEC(Global *) globals;
    VEC(Record *) records;            /* in order of creation, for dumps */
    VEC(const EnumNames *) enums;     /* that were met */
    Map func_names;                   /* Name -> Func */
    Map global_names;                 /* Name -> Global */
    Map func_numbers, global_numbers; /* Name -> the last number behind it that made another one */
    bool has_waves;                   /* some function meets the other threads of its wave: OP_wave */
    bool many_threads; /* it is for a target with so many that memory is far, and sums are shared: a GPU */
    bool keeps_order;  /* for it, what compiles it does all as it is written, one item at a time: C */
    bool rounds_as_written; /* every operation by itself: --fp strict */
    int64_t inlined;        /* instructions copied to callers since derivatives, or passes, began */
    int64_t written;        /* instructions that there were then */
    IrHooks hooks;
};

/* ---- ops.c */
/* The type of the only result, where it follows from operands and attributes; NULL: it does not. */
const Type *ir_result_type(Module *module, const Inst *inst);
uint8_t ir_flags_of(unsigned op);    /* InstFlags that it may have */
Space ir_space(const Type *address); /* of an address, or of each of a vector of them */
/* Does the type of an address that an instruction makes name the space which its operands lead to? Whoever
 * changes operands has it follow them. */
bool ir_has_right_space(const Inst *inst);
void ir_follow_space(Inst *inst);
/* What an address, or each of a vector of them, points to; NULL: it is no address. */
const Type *ir_target(const Type *address);
const Type *
ir_on_stack(const Inst *inst);  /* of an operation on a tape: the scalars on the stack that it works on */
enum { LOCAL_TAPE = 4 * 1024 }; /* bytes of a tape that is a local variable of who opens it */
const RecordDiff *ir_record_diff(Module *module, const Type *record); /* what derivatives take it for */
bool ir_holds_reference(Module *module,
                        const Type *type); /* that has a counterpart: it, or a part of its values */

/* ---- ir.c: making and walking */

Module *module_new(Arena *arena, Types *types, Names *names, Diags *diags);
Func *func_new(Module *module, const char *name); /* the name is made unique */
int func_lanes(const Func *func); /* of vectors in it, at most; 0: it does one thing at a time */
Func *func_new_part(const Func *of, const char *suffix,
                    Loc loc);       /* for code of a function, in the same state */
void func_forget(const Func *func); /* the last that was made is none any more */
Func *module_find(const Module *module, Name name);
Global *global_new(Module *module, GlobalKind kind, const char *name, const Type *type);
bool global_data_fit(const Global *global); /* its data are what its type holds */
void func_set_params(Func *func, const Param *params, int nparams);
void func_set_results(Func *func, const Type *const *results, int nresults);
Region *func_begin(Func *func); /* an empty body whose params are the function's */
const Type *param_value_type(Module *module, const Param *param); /* the type, or a pointer to it */
bool param_goes_by_address(unsigned dir, const Type *type);       /* as lowered; autodiff may differ */

Region *region_new(Func *func, Inst *owner);
Val *region_add_param(Region *region, const Type *type, Name name);
/* With room for operands (NULL), fresh results (types NULL) and empty regions, all to be filled in; not
 * inserted. */
Inst *inst_new(Func *func, Op op, int nargs, int nresults, int nregions);
void inst_append(Region *region, Inst *inst);
void inst_insert_before(Inst *at, Inst *inst);
void inst_remove(Inst *inst);                    /* from its region; it can be inserted elsewhere */
void inst_replace(Inst *inst, const Inst *with); /* whose results, the first of them, are now its own */
Val *inst_add_result(Inst *inst, const Type *type, Name name); /* one more than it had */
Val *inst_renew_result(Inst *inst, int index); /* the old one may then be replaced by what is made of it */
void inst_add_arg(Inst *inst, Val *arg);
Val *inst_result(const Inst *inst); /* the only one */

static inline bool op_has(unsigned op, uint32_t properties) {
    return (op_info[op].properties & properties) != 0;
}
/* Processors have no instruction for it; libraries have functions, others for vectors than for scalars. */
static inline bool op_is_elementary(unsigned op) { return op >= OP_sin && op <= OP_lgamma; }
/* Processors have an instruction for it, which takes several times as long as others. */
static inline bool op_is_quotient_or_root(unsigned op) {
    return op == OP_div || op == OP_ratio || op == OP_sqrt;
}
static inline bool inst_has(const Inst *inst, InstFlags flag) { return (inst->flags & flag) != 0; }
static inline bool inst_is_free_sum(const Inst *inst) {
    return (inst->op == OP_add || inst->op == OP_sub) && inst_has(inst, INST_FREE);
}
/* Do threads of a group meet there? Then all must come to the same one: it is not there twice for some and
 * for others. */
static inline bool inst_meets(const Inst *inst) {
    return inst->op == OP_wave || (inst->op == OP_barrier && inst->index == 1);
}
/* The source gives its derivatives in both modes. */
static inline bool func_is_by_hand(const Func *func) {
    const Custom *custom = &func->custom;
    return custom->fwd && (custom->bwd || (custom->fwd->flags & FUNC_TRANSPOSABLE));
}
static inline bool val_is_const(const Val *v) { return v->kind == VAL_const; }
bool val_is_zero(const Val *v); /* the constant zero, of any type */
bool val_is_one(const Val *v);
bool val_is_int(const Val *v, int64_t *value); /* an integer or bool constant */
bool val_is_same(const Val *a, const Val *b);  /* also equal constants */

/* What an index was before it became one of another width; of less than 32 bits it may be another number. */
const Val *val_unconverted(const Val *v);
Val *val_half(const Val *v); /* of twice the same that differentiation adds up; else NULL */

Val *ir_const_int(Module *module, const Type *type, int64_t value); /* wrapped to the type; bool too */
Val *ir_const_real(Module *module, const Type *type, double value); /* rounded to the type */
Val *ir_const_zero(Module *module, const Type *type);               /* any value type */

/* The value that now stands for v. Passes call it on every operand they read. */
static inline Val *ir_resolve(Val *v) {
    while (v->forward) v = v->forward;
    return v;
}
static inline Val *inst_operand(const Inst *inst, int index) { return ir_resolve(inst->args[index]); }
void inst_resolve(Inst *inst);    /* its operands; what its own address leads to follows */
void ir_resolve_func(Func *func); /* all operands, so that no forward is left in use */

typedef void (*InstVisitor)(void *user, Inst *inst);
void region_walk(Region *region, InstVisitor visit,
                 void *user); /* every instruction, owners before their regions */
void inst_walk(const Inst *inst, InstVisitor visit, void *user); /* all that is inside of it */
typedef bool (*InstTest)(const void *user, const Inst *inst);
Inst *region_find(const Region *region, InstTest test,
                  const void *user); /* the first one that is such, in that order; NULL: none is */
Inst *inst_find(const Inst *inst, InstTest test, const void *user); /* inside of it */
int *region_count_uses(Arena *arena, Region *region); /* of values by instructions in it, by id */
int region_size(Region *region);                      /* instructions, with those inside of others */
int region_calls(Region *region, const Func *callee); /* places where it is called */

/* ---- build.c: building folds, so that producers stay naive */

typedef struct Builder {
    Func *func;
    Region *region;
    Inst *before; /* insert here; NULL: append to the region */
    Loc loc;
    bool no_fold;
} Builder;

Builder build_at_end(Region *region);
Builder build_before(Inst *inst);
Builder build_after(Inst *inst);

Inst *build_inst(Builder *b, Op op, Val *const *args, int nargs, int nresults,
                 int nregions); /* inserted, no fold */
/* Any op with one result and no attributes; `type` is the result's. Folds, and simplifies what is local. */
Val *build_op(Builder *b, Op op, const Type *type, Val *const *args, int nargs);
Val *build_unary(Builder *b, Op op, Val *a); /* result has the type of a (bool for COMPARES) */
/* Of contributions to a differential: no order of them is written anywhere, so that any will do (`add free`,
 * `sub free`). */
Val *build_sum(Builder *b, Val *x, Val *y);
Val *build_quotient(Builder *b, Op op, Val *x, Val *y); /* of differentials: div or ratio */
Val *build_binary(Builder *b, Op op, Val *x, Val *y);   /* result has the type of x (bool for COMPARES) */
Val *build_fma(Builder *b, Val *x, Val *y, Val *z);
Val *build_select(Builder *b, Val *condition, Val *x, Val *y);
Val *build_convert(Builder *b, Val *x, const Type *to); /* scalar or vector; nothing if it has the type */
Val *build_bitcast(Builder *b, Val *x, const Type *to);
Val *build_not(Builder *b, Val *x);
Val *build_vec(Builder *b, const Type *type, Val *const *lanes);
Val *build_splat(Builder *b, const Type *vector, Val *x);
Val *build_extract(Builder *b, Val *vector, Val *index);
Val *build_extract_lane(Builder *b, Val *vector, int lane);
Val *build_insert(Builder *b, Val *vector, Val *index, Val *x);
Val *build_shuffle(Builder *b, Val *vector, const uint8_t *lanes, int nlanes);

Val *build_var(Builder *b, const Type *type, Name name, bool raw);
Val *build_global(Builder *b, Global *global);
Val *build_field(Builder *b, Val *address, int field);
Val *build_elem(Builder *b, Val *address, Val *index, bool unchecked);
Val *build_offset(Builder *b, Val *pointer, Val *count);
/* The same place, computed anew. Asked for each address on the way, `stands_for` says what is there instead;
 * NULL: it is computed itself. */
Val *build_place_again(Builder *b, Val *address, Val *(*stands_for)(void *user, Builder *b, Val *v),
                       void *user);
Val *build_load(Builder *b, Val *address);
void build_store(Builder *b, Val *address, Val *value);
void build_copy(Builder *b, Val *to, Val *from);
void build_zero(Builder *b, Val *address);
Val *build_buffer_elem(Builder *b, Val *buffer, Val *index, bool writes);
Val *build_buffer_bytes(Builder *b, Val *buffer, Val *offset, const Type *type, bool writes);
Inst *build_call(Builder *b, Func *callee, Val *const *args, int nargs);

/* Control flow: the regions are made empty; fill them and end each with a terminator. */
Inst *build_if(Builder *b, Val *condition, const Type *const *results, int nresults);
Inst *build_switch(Builder *b, Val *value, const SwitchCase *cases, int ncases, const Type *const *results,
                   int nresults);
Inst *build_loop(Builder *b, Val *const *initial, int ncarried, bool with_step);
Inst *build_block(Builder *b);
void build_yield(Builder *b, Val *const *args, int nargs);
/* For each int from `first` up to `end`: what goes to `body`, until build_next. */
typedef struct CountLoop {
    Builder body;
    Val *index;
} CountLoop;
CountLoop build_count(Builder *b, int64_t first, int64_t end);
void build_next(CountLoop *loop);
void build_break(Builder *b, Inst *target, Val *const *args, int nargs);
void build_continue(Builder *b, Inst *target, Val *const *args, int nargs);
void build_return(Builder *b, Val *const *args, int nargs);
void build_unreachable(Builder *b);
/* What a pure instruction of one result can be replaced with, its operands having changed; NULL: nothing. New
 * instructions go to the builder. May exchange the operands in place. */
Val *build_again(Builder *b, Inst *inst);

/* ---- rewrite.c: local identities that need new instructions; NULL: nothing to do. build_op uses it. */
Val *build_rewrite(Builder *b, Op op, const Type *type, Val *const *args, int nargs);

/* ---- partials.c */
/* Of the result y of an operation on a, up to three operands, whose differentials are d; NULL: zero. */
Val *build_differential(Builder *b, Op op, Val *const *a, Val *const *d, Val *y);
Val *build_unless_infinite(Builder *b, Val *v, Val *change);             /* by a divisor v: zero if that is */
Val *build_quotient_differential(Builder *b, Val *v, Val *du, Val *ydv); /* of y = u / v; NULL: zero */

/* ---- compute.c: operations on numbers */
/* Of one result, on scalars of that type, which the caller rounds (compute_round) or wraps (number_wrap); of
 * a comparison, 0 or 1. False: the op is none of these. */
bool compute_float(Op op, const Type *type, const double x[3], double *result);
bool compute_int(Op op, const Type *type, int64_t a, int64_t b, int64_t *result);
double compute_ldexp(double a, int64_t exponent);
double compute_round(const Type *type, double value);    /* to a floating type */
int64_t compute_integer(const Type *type, double value); /* clamped to that type; a NaN is 0 */
double compute_real(const Type *from, const Type *to, int64_t value);

/* ---- fold.c: constants and local identities; NULL: nothing to do. Used by build and by opt/simplify. */
/* A number that goes through bits which are none has no derivative: the way must not be shortened. */
bool ir_bits_cut(const Type *through, const Type *to);
Val *ir_fold(Module *module, Op op, const Type *type, Val *const *args, int nargs);
/* Where lane `*lane` of a vector comes from: a scalar, then *lane becomes -1; or a lane of the vector
 * returned. */
Val *ir_trace_lane(Val *vector, int *lane);

/* ---- alias.c */
typedef enum Role {
    ROLE_value,  /* no address, or one that is only compared */
    ROLE_read,   /* what is there is read ... */
    ROLE_write,  /* ... or written */
    ROLE_part,   /* the result is the address of a part */
    ROLE_move,   /* the result is another address in the same object */
    ROLE_share,  /* what is there is read and written, and others may do so meanwhile */
    ROLE_escape, /* the address goes somewhere */
} Role;
Role ir_role(const Inst *inst, int operand);
bool ir_is_private_use(const Inst *inst, int operand); /* nobody else can reach the object by this operand */
bool ir_is_view(const Inst *inst); /* the result is the address of the same memory, seen as another type */
Val *ir_root(Val *address);        /* where it comes from, through parts and moves */
Val *ir_index_beside(
    const Inst *elem,
    int64_t *number); /* of an element for each lane: without the constant that is added to it */
const Global *ir_owner(const Val *buffer); /* the global that it was read from; NULL: it was not */
bool ir_is_own(Val *address); /* in a buffer that the kernel has for itself (PARAM_OWN); also of a lane's */
uint16_t ir_own_flag(const Val *buffer); /* PARAM_OWN, where it is one: it stays so in a part of the kernel */
const Val *ir_base(const Val *address);  /* likewise, through fields and elements alone */
bool ir_is_beside(const Val *address);   /* of an element for each lane, whose neighbours are used, too */
const Inst *ir_element(const Val *address);    /* of a buffer, that it is in; NULL: it is elsewhere */
bool ir_are_apart(const Val *a, const Val *b); /* addresses in the same object */
/* The constants at an address in a global that is known, one per scalar; NULL: it is not. */
Val *const *ir_constants_at(const Val *address);

/* ---- loop.c */
bool inst_contains(const Inst *owner, const Val *v);          /* is it made in one of the regions? */
bool region_is_in(const Region *region, const Region *outer); /* or the same */
bool inst_is_unlikely(const Inst *inst);                      /* a condition around it is false as a rule */
const Inst *inst_loop_around(const Inst *inst);               /* NULL: none is */
bool loop_adds_freely(const Inst *loop, int index); /* is the carried value a sum that has no order? */
/* A choice of a number in a loop that goes ways (min and max, too): a branch does better. */
bool inst_goes_ways(const Inst *inst);
bool region_has_loop(const Region *region); /* or regions in it */
int inst_loops_around(const Inst *inst);
typedef struct LoopJumps {
    Arena *arena;
    Map of; /* loop -> InstVec: what goes on with its next round */
    const Val *counter;
    int64_t at;    /* what that counter is taken to be; NULL: none is */
    bool by_types; /* ir_interval_by_types */
} LoopJumps;
LoopJumps loop_find_jumps(Arena *arena, const Func *func); /* of all its loops */
bool loop_has_jumps(const Inst *loop); /* does a break or continue in its body go to it? */
bool loop_has_continue(const Inst *loop);
bool loop_body_leaves(const Inst *loop); /* may a round be the last, by what its body does? */
/* A comparison of a carried value with something else. */
typedef struct LoopTest {
    int index; /* of the carried value */
    Val *limit;
    bool up, or_equal; /* up: the loop goes on below the limit */
} LoopTest;
bool loop_comparison(const Inst *loop, const Inst *test, LoopTest *out);
typedef struct LoopAhead {
    Val *by;       /* NULL: nothing */
    bool negative; /* it is taken away */
} LoopAhead;
/* Of a sum with a carried value, i + lag < n, and what that is. */
bool loop_comparison_ahead(const Inst *loop, const Inst *test, LoopTest *out, LoopAhead *ahead);
bool inst_is_steady(
    const Inst *inst); /* the same operands give the same result, whatever happens meanwhile */
/* Is the value the same in every round: made outside, or by few steady instructions from such values? */
bool loop_has_fixed(const Inst *loop, const Val *v);
void loop_limits_of(const Type *type, int64_t *low,
                    int64_t *high); /* the least and the greatest number of up to 32 bits */
bool loop_cannot_wrap(const LoopTest *test, int64_t longest); /* no step jumps over the end of the numbers */
/* Does the condition fail after finitely many iterations, whatever the values? */
bool loop_is_finite(const Inst *loop, Inst *const *jumps, int njumps);
Val *loop_trip(Inst *loop); /* normal form: int64, computed before the loop; NULL: not known there */
Val *loop_trip_before(Inst *at, Inst *loop); /* ... before one around it */

/* ---- nest.c */
double loop_known_rounds(const Inst *loop); /* as constants say; 0: they do not */
bool loop_is_short(const Inst *loop); /* LLVM writes it out, and then makes vectors of the one around it */
bool loop_is_written_out(const Inst *nest);    /* of short loops, so that its arrays are in registers */
bool loop_is_left(const Inst *loop);           /* either: nothing but its rounds is left */
bool inst_is_in_written_out(const Inst *inst); /* it stands in such a nest */
/* The call by which something is done, and those around that. */
typedef struct CallPath {
    const Inst *call;
    const struct CallPath *caller; /* NULL: of the function that is looked at */
} CallPath;
/* A constant then: made of constants, and of counters of loops that are written out. `path`: to the function
 * that it stands in; NULL: its parameters may be anything. */
bool val_is_fixed(const Val *v, const CallPath *path);

/* ---- atonce.c */
/* How many rounds fill a register of 128 bits, if a round is arithmetic alone, and enough of it; else 1. */
int loop_rounds_at_once(const Inst *loop);

/* ---- step.c */
/* How far a carried integer moves in one iteration, over all ways through it; `jumps`: those to the loop. */
typedef struct LoopSteps {
    int64_t least, greatest;
    bool known;
} LoopSteps;
LoopSteps loop_steps(const Inst *loop, Inst *const *jumps, int njumps, int index);
LoopSteps loop_steps_by(const LoopJumps *jumps, const Inst *loop, int index);
/* In normal form, over all rounds that another one follows: what the round that ends the loop by its state
 * does is not seen by others. */
LoopSteps loop_steps_while_running(const Inst *loop, int index);
bool loop_step(const Inst *loop, int index, int64_t *step); /* ... if it is always the same */
/* In normal form: its state says so after a round in which the condition holds, or does not. */
bool loop_ends_if(const Inst *loop, const Val *condition, bool holds);
/* Which operand of its sum a round adds to a carried number or takes from it; normal form; -1: it is no
 * sum. */
int loop_term(const Inst *loop, int index);

/* ---- carried.c */
int64_t ir_count_numbers(const Type *type); /* floating ones in it */
/* The most that one of its loops of more than a few rounds hands on from round to round; 0: there are none;
 * INT64_MAX: not known. */
int64_t ir_most_carried(Func *func);

/* ---- trips.c */
int64_t
loop_most_trips(const Inst *loop); /* how often it runs at most, by its constants; INT64_MAX: not known */
int64_t loop_bounded_trips(const LoopJumps *jumps,
                           const Inst *loop); /* likewise, by the bounds of what it starts from and ends at */
/* Does the rest of so many rounds that fills no vector of C's compilers take steps, half a vector at once and
 * then number by number? In float several. */
bool loop_leaves_rest(int64_t rounds, const Type *type);
int64_t loop_whole_vectors(int64_t rounds,
                           const Type *type); /* as many rounds, or a few more that fill them */
int loop_vector_numbers(const Type *type);    /* of one of them */
/* A carried integer moves by first + change * round in each round, from 0 on; a loop inside may do it. Normal
 * form; false: not known. */
bool loop_ramp(const Inst *loop, int index, int64_t *first, int64_t *change);

/* ---- interval.c */
typedef struct Interval {
    int64_t low, high;
    bool known; /* else it may be anything, or wrap around on the way */
} Interval;
Interval ir_interval(const LoopJumps *jumps, const Val *v); /* of an integer */
/* ... of which nothing else may be known than how many bits it was converted from. */
Interval ir_interval_by_types(const LoopJumps *jumps, const Val *v);
Interval ir_interval_at(const LoopJumps *jumps, const Val *v, const Val *counter,
                        int64_t at); /* likewise, in the round in which that counter is so much */
/* The greatest that an integer can be; INT64_MAX: not known. */
int64_t ir_most(const LoopJumps *jumps, const Val *v);
int64_t ir_most_between(const LoopJumps *jumps, const Val *from,
                        const Val *to); /* to - from, if that is positive */

/* ---- inrange.c */
bool ir_mark_in_range(Func *func); /* indices into arrays that cannot be out of range; true: there are more */
/* Loops are run on the constants that they start from. */
typedef struct Rehearsal Rehearsal;
Rehearsal *ir_rehearsal(Arena *scratch, Func *func);
bool ir_rehearse(Rehearsal *rehearsal, Inst *loop); /* do constants tell how it and those inside go on? */
int ir_rehearsed_steps(Rehearsal *rehearsal, Inst *loop,
                       int most); /* and for how many instructions; 0: they do not, or for more */
Interval ir_rehearsed(const Rehearsal *rehearsal, const Val *v); /* an integer, in all rounds of such loops */

/* ---- clone.c */
typedef struct CloneMap {
    Module *module;
    Func *func; /* where the copies go */
    Map vals;   /* old Val -> new Val; what is absent stays itself */
    Map insts;  /* old Inst -> new Inst, for the targets of break and continue */
    const Type *(*map_type)(void *user, const Type *type); /* NULL: types stay */
    void *user;
    Loc loc;        /* of copies of what has none ... */
    bool relocates; /* ... and of all others */
} CloneMap;
Val *clone_val(CloneMap *map, Val *v);
void clone_map_val(CloneMap *map, Val *old, Val *new_val);
Inst *clone_inst(CloneMap *map, Inst *inst);                      /* with its regions; not inserted */
Inst *clone_with(Builder *b, const Inst *inst, Val *const *args); /* on other operands; it has no regions */
void inst_copy_cases(const Inst *from, Inst *to);                 /* of a switch */
void clone_region_into(CloneMap *map, const Region *from,
                       Region *into); /* appends copies of the instructions */
Region *clone_region(CloneMap *map, const Region *region, Inst *owner);
Func *clone_func(Func *func, const char *name); /* same signature and flags */

/* ---- apart.c */
typedef struct LaneCopy {
    Module *module;
    Arena *arena;
    int most;  /* vectors of so many lanes at most are taken apart; 0: all */
    Builder b; /* where the copies go */
    /* Has it copied the instruction itself, and said what stands for its results? NULL: it never does. */
    bool (*copies)(void *user, Inst *inst);
    void *user;
    Map held;  /* old Val -> its lanes */
    Map insts; /* old Inst -> new Inst, for jumps */
} LaneCopy;
int apart_count(const LaneCopy *copy, const Type *type); /* values that stand for one of the type */
void apart_hold(LaneCopy *copy, const Val *old, Val **lanes);
void apart_hold_one(LaneCopy *copy, const Val *old, Val *value);
void apart_hold_joined(LaneCopy *copy, const Val *old, Val *value); /* takes it apart */
Val **apart_lanes(LaneCopy *copy, Val *old);
ValVec apart_all(LaneCopy *copy, Val *const *old, int n); /* one after the other */
void apart_copy_region(LaneCopy *copy, const Region *from);

/* ---- verify.c: NULL if well-formed in its state (FUNC_NORMAL or free), else what is wrong, in the arena */
const char *ir_verify(Arena *arena, const Func *func);

/* ---- print.c, parse.c: text that reads back exactly; print.c describes it */
void ir_print_module(Text *out, const Module *module);
void ir_print_func(Text *out, const Func *func);
/* Two halves of what was one function, by the same names. */
void ir_print_halves(Text *out, const Func *first, const Func *second);
void ir_print_inst(Text *out, const Inst *inst); /* one line, for messages and debugging */
/* Reads what ir_print_module wrote. Returns false after reporting an error. */
bool ir_parse(Module *module, SourceFile *file);
const Type *ir_type_from_name(Types *types,
                              Str name); /* void, a scalar, a vector, tape; NULL: not built in */

#endif
