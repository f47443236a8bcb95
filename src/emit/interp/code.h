/* What the files of the interpreter share: the form that functions are translated to, and the translator.
 *
 * A frame is an array of slots of eight bytes. Slot 0 has the way to the rest of the frame; then come zeros,
 * the constants of the function, its parameters, its values, and the memory of its variables. A slot holds a
 * scalar with the bits that it has in memory, integers extended by their sign if they have one; a vector
 * takes as many slots as it has lanes, a buffer two. Values of a region give their slots back at its end.
 *
 * An address that is out of range in a buffer is null: loads through it give zero, stores are dropped. Where
 * such an address goes elsewhere than to an access, it is replaced by one that can be read and written
 * (`Known.guarded`), as machine code has it.
 *
 * Where the compiler has found out that an index is in range, one that is not leads nowhere: an access
 * through it is a fault that nobody overlooks, instead of one to what lies beside. */
#ifndef SLOPE_EMIT_INTERP_CODE_H
#define SLOPE_EMIT_INTERP_CODE_H

#include "emit/interp/interp.h"
#include "emit/reach.h"

typedef struct Frame Frame;
typedef struct Code Code;
typedef struct Program Program;

typedef union Slot {
    int64_t integer;
    uint64_t bits;
    float single;
    double real;
    char *address;
    RtTape *tape;
    Frame *frame; /* slot 0 */
} Slot;

static inline char *interp_nowhere(void) { return (char *)1; }

typedef struct Step Step;
typedef const Step *StepFunction(Slot *r, const Step *s); /* the next one; NULL: the function returns */

struct Step {
    StepFunction *run;
    uint32_t to, a, b, c; /* slots */
    int lanes, what;      /* what: of the operation, as it likes */
    const Type *type;
    union {
        int64_t number;
        const Step *target;
        const void *data;
    };
    int64_t more;
};

/* Slots that go from one place to another. */
typedef struct Copy {
    uint32_t to, from, count;
} Copy;
typedef VEC(Copy) Copies;

struct Code {
    const ReachedFunc *reached;
    const Program *program;
    const Step *steps;
    const Slot *constants;
    uint32_t nzeros; /* slots, which begin at ZERO_SLOT; constants follow */
    uint32_t nconstants;
    uint32_t first_param, nparam_slots, nslots;
    int64_t memory; /* bytes of variables, behind the slots */
};

typedef VEC(const Code *) Codes;

enum { ZERO_SLOT = 1, FEW_ZEROS = 4 };

struct Frame {
    const RtContext *context;
    const Code *code;
    char *memory;
    Slot *results; /* of the caller */
};

static inline const RtContext *context_of(const Slot *r) { return r[0].frame->context; }

/* Ends the run if it was told to; the flag is set by other threads. */
static inline void look_at_stop(const RtContext *context) {
    if (__atomic_load_n(context->stop, __ATOMIC_RELAXED)) rt_stop(context->owner);
}

/* Instructions that are always run together, for counting. */
typedef struct Block {
    struct Block *next;
    int64_t times, work;
    int count;
    VEC(uint16_t) ops;
} Block;

/* What one module became. */
struct Program {
    Reached reached;
    InterpCounts *counts; /* NULL: nothing is counted */
    int64_t sink_size;
    Codes inits; /* of static globals, in their order */
};

struct EmitJit {
    Runtime *runtime;
    Arena arena;
    Trap trap;
    VEC(struct Entry *) entries;
    VEC(struct Uniform *) uniforms;
    InterpCounts *counts;
    Block *blocks; /* of all that is counted */
};

/* Something that is called from outside. */
typedef struct Entry {
    RtKernel kernel; /* first: the runtime knows it by this */
    const char *name;
    const Program *program;
    const Code *code;
    uint32_t needs;
    const Code *wide; /* does `lanes` threads that follow each other in x; NULL: one at a time */
    uint32_t lanes;
} Entry;

typedef struct Uniform {
    const char *name;
    char *memory;
} Uniform;

/* ---- the translator */

/* What is known of a value. */
typedef struct Known {
    uint32_t slot;
    bool guarded; /* addresses: may be null, for out of range */
} Known;

/* A place among the steps, perhaps one that is still to come. */
typedef struct Label {
    int at;
} Label;

typedef struct Jump {
    int step;           /* whose target it is ... */
    const Step **where; /* ... or, if not NULL, somewhere else */
    const Label *label;
} Jump;

/* A region being translated, and where control goes from it. */
typedef struct Around {
    struct Around *up;
    const Inst *owner;
    Label *on_yield, *on_break, *on_continue;
    uint32_t yielded, broken; /* where the values go; those of continue: as of yield */
    bool is_condition;        /* of a loop: a yield of false breaks */
} Around;

typedef struct Translator {
    EmitJit *jit;
    Arena *arena; /* of what stays */
    Module *module;
    const EmitOptions *options;
    Program *program;
    EmitError *error;
    Map sites; /* Loc + 1 -> RtSite */
    char *zeros;
    int64_t zeros_size;
    int64_t wave_sites;
    /* Of the function at hand: */
    Arena *scratch;
    Code *code;
    const Func *func;
    VEC(Step) steps;
    VEC(Jump) jumps;
    int labelled;  /* the last place that has a label */
    Known *values; /* by Val.id */
    Map constants; /* bits, which are not 0 -> number */
    uint32_t next; /* slot */
    Around *around;
    Block *block; /* of the instructions at hand; NULL: the next opens one */
} Translator;

/* ---- translate.c */
void interp_fail(Translator *t, Loc loc, const char *format, ...) PRINTF_LIKE(3, 4) NORETURN;
int interp_slots(const Type *type); /* how many a value takes */
uint32_t interp_new_slots(Translator *t, int count);
/* The step that is added; it moves when another is. */
Step *interp_step(Translator *t, StepFunction *run, uint32_t to, uint32_t a, uint32_t b);
Known interp_known(Translator *t, const Inst *inst, int operand);
uint32_t interp_use(Translator *t, const Inst *inst, int operand); /* plain: an address that is not null */
void interp_set(Translator *t, const Val *v, Known known);
uint32_t interp_result(Translator *t, const Inst *inst); /* fresh slots for the only one, plain */
int64_t interp_take_memory(Translator *t, int64_t size); /* of a frame: its offset */
void interp_region(Translator *t, const Region *region);
void interp_function(Translator *t, Code *code);

/* ---- control.c */
bool interp_control(Translator *t, const Inst *inst); /* ops with regions, and those that end one */
void interp_moves(Translator *t, const Copies *copies);
StepFunction interp_unreachable;

/* ---- number.c */
bool interp_number(Translator *t, const Inst *inst);
Slot interp_compute(Op op, const Type *type, const Type *to, Slot a, Slot b, Slot c); /* of scalars */

/* ---- library.c */
bool interp_library(Translator *t, const Inst *inst); /* before number.c, which knows them too */

/* ---- vector.c */
bool interp_vector(Translator *t, const Inst *inst);
Known interp_clamped(Translator *t, const Inst *inst, int operand, int64_t length); /* an index */

/* ---- memory.c */
bool interp_memory(Translator *t, const Inst *inst);
uint32_t interp_plain(Translator *t, Known address, const Type *target, bool read_only);
Slot interp_load(const Type *type, const char *at, int size);
void interp_store(char *at, int size, Slot value);
void interp_load_value(const Type *type, const char *at, Slot *to);
void interp_store_value(const Type *type, char *at, const Slot *from);

/* ---- wide.c */
bool interp_wide(Translator *t,
                 const Inst *inst); /* before vector.c, memory.c and buffer.c: on several addresses */

/* ---- object.c */
void interp_copy(Translator *t, const Type *type, Known to, Known from);
void interp_zero(Translator *t, const Type *type, Known address);

/* ---- buffer.c */
bool interp_buffer(Translator *t, const Inst *inst);
void interp_watch(Translator *t, const Inst *inst); /* before it: are its addresses in range? */
const RtSite *interp_site(Translator *t, Loc loc);

/* ---- machine.c */
bool interp_machine(Translator *t, const Inst *inst);

/* ---- tape.c */
bool interp_tape(Translator *t, const Inst *inst);

/* ---- call.c */
bool interp_call(Translator *t, const Inst *inst); /* and return */
/* Runs it: its parameters come from there, its results go there. */
void interp_enter(const Code *code, const RtContext *context, const Slot *from, const Copies *args,
                  Slot *results);

/* ---- entry.c: ways in from outside */
void interp_call_entry(EmitJit *jit, void *entry, void *const *args);
void interp_describe(Arena *arena, Entry *entry, const Code *code);
void interp_run_inits(EmitJit *jit, const Program *program, const Code *const *inits, int count);

/* ---- count.c */
void interp_count_inst(Translator *t, const Inst *inst);
void interp_end(const Slot *r, InterpEnd end, const char *text) NORETURN; /* with an error */
void interp_keep(const Slot *r, const Type *type, int64_t count);         /* elements more on a tape */

#endif
