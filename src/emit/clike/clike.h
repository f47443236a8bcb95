/* clike: source code for languages of the C family, from IR.
 *
 * The output is meant to be read: names of the source, structs as they were written, structured statements,
 * and a value that is used once stands inside the expression that uses it. What the language leaves open and
 * the IR defines (division by zero, shifts, indices, ...) is done by small static functions (helper.c), which
 * come along where they are used; so do tapes.
 *
 * Text is made in one walk. Every value of the IR is a `Value`: a name, or the text of an expression that is
 * yet to be used. An expression that reads memory must be written down before memory changes: those that wait
 * are `pending`.
 *
 * An address is held as a place, an lvalue (`p->x`, `a[i]`), for as long as possible. A pointer to an array
 * is a pointer to its first element, as in C. An element of a buffer that may be out of range has no memory
 * that an address could stand for: it is guarded, that is, said anew at each use, which reads zeros or writes
 * to memory that nobody looks at. */
#ifndef SLOPE_CLIKE_H
#define SLOPE_CLIKE_H

#include "emit/emit.h"
#include "emit/names.h"
#include "emit/reach.h"

/* How tightly text binds, as in C's grammar. */
typedef enum Level {
    LEVEL_choice,     /* a ? b : c */
    LEVEL_logic,      /* && || */
    LEVEL_bits,       /* & | ^ */
    LEVEL_comparison, /* == < */
    LEVEL_shift,
    LEVEL_sum,
    LEVEL_product,
    LEVEL_unary,
    LEVEL_primary,
} Level;

typedef struct Value {
    const char *text; /* NULL: nothing yet */
    Level level;
    bool is_place;    /* of an address: the text is the lvalue that it points to */
    bool raw;         /* of an address: maybe not aligned, or of another type: accessed byte by byte */
    bool constant;    /* of an address: to be read only */
    bool steady;      /* of an address: nobody writes there */
    bool reads;       /* memory that may change */
    bool named;       /* the text is a variable of its own */
    bool guarded;     /* of an address: maybe out of range; it has a text for each use, see clike_operand */
    const char *bare; /* of a raw address: a pointer of any type, of which the text is a cast; or NULL */
    Level bare_level;
    const char *offset; /* of an object in a byte buffer, where there are no pointers */
    /* of a signed integer: the unsigned one of the same bits; NULL: the text, with a cast */
    const char *bits;
    Level bits_level;
    const char *narrow; /* of what was converted to a wider integer: as it was; or NULL */
    Level narrow_level;
} Value;

/* A region that is being printed, and where control goes from it. */
typedef struct Frame {
    struct Frame *up;
    const Inst *owner;
    Value *results;           /* variables: what yield and break assign to */
    const Val **held;         /* what they have held so far, each or NULL; NULL: nothing */
    Value *condition;         /* in that of a loop: what is yielded */
    bool is_loop;             /* `break` and `continue` of the language mean it */
    bool is_switch;           /* `break` means it */
    bool has_step;            /* of a loop: `continue` would leave out its step */
    bool is_body_left;        /* of a loop: its body is a statement of its own */
    const char **end, **next; /* labels; NULL there: not needed so far */
    int gone; /* in which threads of a group part: the number of those that left it, and one more of those that wait
               * for its next round; 0: it is none (group.c) */
} Frame;

enum { GONE_ENDED = 1 }; /* the number of threads that returned: all others are above it */

/* Elements of a buffer that a loop reads or writes one by one: rows.c. */
typedef struct Row {
    const Inst *access;
    const Inst *last; /* the store, or sum, after which all of an element is written; NULL: none is */
    int numbers;      /* in an element; 0: it is accessed as it is */
    int64_t each,
        first;        /* the element of a round is its number times `each`, and `first` more, which is less */
    bool is_read;     /* before it is written, if it is */
    const char *name; /* of the variable that has a pointer to each; NULL: the loop is not being printed */
} Row;

enum { MOST_ROWS = 8 };

/* Expressions that read memory and are to be written down before it changes. */
typedef VEC(const Val *) Pending;

/* The function being printed. */
typedef struct FuncState {
    const Func *func;
    Value *values;     /* by Val.id */
    int *uses;         /* by Val.id */
    const Inst **user; /* by Val.id: the last that uses it */
    const Inst **all_uses;
    int *first_use;  /* by Val.id: where its uses begin there, and those of the one before end */
    int *places;     /* by Val.id: uses as a place on a tape, or as a part of one */
    LoopJumps jumps; /* for what is known of counters */
    Map names;       /* Name -> not NULL: taken */
    Pending pending;
    Map computed;      /* Inst -> const char *: the variable that has it already, for who comes to it next */
    SumsTogether sums; /* that are printed with the next: sums.c */
    int *summed;       /* by Val.id: uses of an address by such sums alone; NULL: there are none */
    VEC(const Inst *) large; /* variables with memory of their own: large.c */
    Frame *frame;
    int labels;
    Loc loc;             /* of the instruction being printed */
    const char *result;  /* the variable that is returned; NULL: what the IR returns */
    bool adds_triangles; /* triangles.c */
    /* the access to a buffer that was tested before the statement being printed; NULL: none */
    const Inst *tested;
    struct {
        const Inst *access; /* that was tested for the last such statement, */
        const Text *out;    /* which is here ... */
        int start, end;     /* ... and has its last line there */
    } closed;
    struct {
        const Inst *access, *last; /* whose element is put together, until that store; NULL: none is */
        const char *name;          /* the variable */
    } whole;                       /* whole.c */
    struct {
        const Inst *loop, *access; /* whose elements a warp reads together; NULL: none's */
        const char *limit;         /* of its counter */
        bool is_short;             /* what is done in a round */
        bool is_row;               /* numbers, which start at operand `start` of `sum`; NULL: at 0 */
        const Inst *sum;
        int start;
        const char *name, *round, *item; /* variables; NULL: the loop is not being printed */
        const char *row;                 /* where numbers begin */
    } tile;                              /* tile.c */
    struct {
        const Inst *loop; /* NULL: there is none */
        Row at[MOST_ROWS];
        int count;
        bool chooses;  /* between ways, or calls functions that there are for vectors */
        bool computes; /* and all that it calls comes along */
    } rows;            /* rows.c */
    struct {
        const Val *counter; /* of the loop; NULL: there is none */
        const char *name;   /* of the variable that its elements are apart by */
    } far;                  /* rows.c */
    struct {
        const char *exact, *any, *own; /* variables; NULL: this is no such function */
    } tried;                           /* tried.c */
    struct {
        const Inst *loop; /* NULL: there is none */
        int counter;      /* of what it carries */
        const char *last; /* how often it does something */
        int full;         /* rounds of its first vector, if it has two that are written out; else 0 */
        const char *kept; /* where numbers on its tape begin; NULL: it uses none */
        bool is_double, is_written_out; /* what it computes with; by gcc */
        const char *again,
            *bits;      /* how often, once more; all bits, where a round does something; NULL: nobody asks */
        int64_t rounds; /* with those that do nothing */
        Text before, first, after; /* lines of a round, for arrays that have elements for all of them */
    } masked;                      /* masked.c */
    /* Of a kernel that is cut into phases (group.c): */
    bool *crosses; /* by Val.id: needed in several phases; NULL: not such a kernel */
    bool *again;   /* by Val.id: likewise, and said again there */
    Text spread;   /* declarations of variables with an element for each thread */
    int threads;   /* of a group */
    Map cut;       /* Inst: with a place inside where threads wait */
    Map parting;   /* Inst: in which threads part */
    bool parts;    /* some may wait at the end of one, or have returned */
    int numbers;   /* that they have then, so far */
    Map sites; /* Inst -> int: where they wait, if they meet in waves; from GONE_ENDED + 1 on, in the order of the program */
    int nsites;            /* 0: they do not */
    const char *phase_end; /* a label; NULL: not needed so far */
} FuncState;

typedef struct Printer Printer;

/* How a language says what touches memory and the machine. Two are known: addresses are values, or all there
 * is are places. */
typedef struct Language {
    const char *(*declare)(Printer *p, const Type *type, const char *name);
    const char *(*declare_value)(Printer *p, const Type *type, const char *name);
    const char *(*declare_param)(Printer *p, const Param *param, const char *name); /* NULL: it is left out */
    void (*define_record)(Printer *p, Text *text, const Type *type, const char *name);
    void (*check_record)(Printer *p, Text *text, const Type *type, const char *name); /* NULL: no need to */
    const char *(*constant)(Printer *p, const Val *v);
    Value (*compute)(Printer *p, const Inst *inst); /* from operands alone */
    bool (*address)(Printer *p, const Inst *inst, Value *result);
    Value (*load)(Printer *p, const Inst *inst);
    void (*memory)(Printer *p, const Inst *inst); /* store, copy, zero */
    void (*var)(Printer *p, const Inst *inst);
    void (*call)(Printer *p, const Inst *inst);
    void (*atomic)(Printer *p, const Inst *inst);
    Value (*kept)(Printer *p, const Inst *inst); /* a number on a tape; NULL: a statement of its own */
    void (*tape)(Printer *p, const Inst *inst);
    void (*wave)(Printer *p, const Inst *inst);
    void (*abort)(Printer *p, const Inst *inst);
    void (*print)(Printer *p, const Inst *inst);
    void (*refuse)(Printer *p); /* what the language cannot say; NULL: it can say everything */
    bool has_goto;              /* else a jump is a `break` with a label */
    bool has_places_only;       /* no pointers */
    const char *no_params;      /* what an empty list of parameters says */
    const char *claimed;        /* words that mean something, each with a space around; NULL: those of C */
    const char *called;         /* functions that printed code calls, in the same way */
} Language;

typedef struct HelperRow {
    const char *name, *needs, *text;
} HelperRow;

typedef struct HelperFamily {
    const char *prefix, *on_signed, *on_other;
} HelperFamily;

/* What the languages of the family say differently. Qualifiers have a space behind them. */
typedef struct Dialect {
    const Language *language;
    const char *includes, *header_includes;   /* how a file begins */
    const char *open, *close;                 /* around all that is declared */
    const char *outside_open, *outside_close; /* around variables that others see */
    const char *host_open, *host_close;       /* around functions of the host */
    const char *helper;                       /* what a helper has instead of `static inline ` */
    const char *header_helper;                /* likewise, in a header */
    const char *helper_of_vectors; /* a helper: instead of `inline`, where there are vectors; or NULL */
    const char *inner, *outer;     /* before functions: for this file, for others */
    /* before those called in one place: a helper, with `static ` before it; NULL: as inner */
    const char *once;
    const char *apart; /* before large ones called in several; NULL: as inner */
    bool steers_loops; /* compilers are told what to do with them: unroll.c */
    bool has_rows; /* structs are read number by number, where gcc makes vectors of loops only so: rows.c */
    const char *constant, *computed, *shared, *thread_local_; /* before globals; NULL: in SlopeThread */
    const char *barrier, *fence;                              /* statements; NULL: nothing to be done */
    uint32_t thread_needs;           /* Needs: a function that has one of them takes a SlopeThread */
    const char *thread_param;        /* how that is declared */
    const char *const *kernel_names; /* what kernels and those who launch them call their own; then NULL */
    bool early_init;                 /* constants that need code are computed by who launches a kernel */
    const char *copy,
        *set;           /* helpers: memcpy and memset of memory that is aligned as its type says; or NULL */
    const char *within; /* a helper: is an index less than a count? NULL: C's operator */
    bool puts_lanes;    /* vectors are written to memory lane by lane */
    const char *sine_and_cosine; /* the function of x and two addresses, of double; NULL: there is none */
    const char *over_root;       /* the function 1 / sqrt(x), of double; NULL: there is none */
    bool reserves;               /* pushes in a row make room on a tape once */
    const char *wave;            /* a helper: threads of a wave meet; NULL: they do so in phases (group.c) */
    bool warp_sums;              /* slope_atomic_sum_* is there */
    const char *put_whole;       /* a helper: whole elements of a warp at once; NULL: there is none */
    const char *tile;            /* a helper: elements that a warp reads together; NULL: there is none */
    const char *copy_elements;   /* a helper: to memory of the group; NULL: there is none */
    int atomic_bits;             /* the narrowest type that atomic operations have */
    int printf_values;           /* the most that printf takes; 0: any number */
    bool has_heap;               /* for variables that are too large for a stack: large.c */
    int64_t most_local;          /* bytes that a variable can take; 0: any number */
    const char *own; /* a helper: nothing else is where a variable is; NULL: that goes without saying */
    const HelperRow *helpers; /* that differ from C's */
    const HelperRow *hosted;  /* in place of those, in code that the runtime launches */
    const HelperFamily *families;
    size_t nhelpers, nhosted, nfamilies;
    const char *(*thread_id)(Printer *p, int index); /* NULL: the language does not know */
    void (*need_thread)(Printer *p);                 /* some function takes a SlopeThread */
    void (*thread_type)(Printer *p, Text *out);      /* defines it before the helpers */
    void (*declare_kernel)(Printer *p, const Func *func, const char **names);
    void (*kernel)(Printer *p, const Func *func, const char **names);
    void (*declare_uniform)(Printer *p, const Global *global);
    void (*uniform)(Printer *p, const Global *global,
                    const char *declaration); /* declaration: with initial value */
    void (*start)(Printer *p);                /* slope_start_group, slope_start_thread and slope_init */
} Dialect;

struct Printer {
    Arena arena;
    const Dialect *dialect;
    Trap trap;
    Loc trap_loc;
    Loc head; /* where the function that begins next comes from; 0: from nowhere, or no matter */
    Module *module;
    const EmitOptions *options;
    const EmitFile *file;
    Reached reached;
    bool is_strict;     /* no liberties with floating-point numbers */
    bool has_vectors;   /* structs of them */
    bool header_copies; /* functions of the header do so, by memcpy */
    /* The parts of the file, in its order. */
    Text types, helpers, prototypes, outside, globals, functions; /* outside: variables that others see */
    Text host_prototypes, host; /* functions that run beside the device, not on it */
    Text last;                  /* after all that is declared */
    Text *out;                  /* where statements go */
    int indent;
    Map names;          /* Name -> not NULL: taken at file level */
    Map type_names;     /* Type -> const char *: records, vectors, buffers */
    Map cases;          /* Name -> const char *: cases of enums */
    Map func_names;     /* Func -> const char * */
    Map outer_names;    /* Func -> const char *: as others call it */
    Map results_names;  /* Func -> const char *: struct of its results */
    Map results_fields; /* Func -> const char **: what is in there */
    Map global_names;
    Map field_names;      /* Record -> const char **: of each field */
    Map sizes;            /* ReachedFunc -> instructions, with what is inlined */
    Map punned;           /* Type -> not NULL: records that pointers to others are made to point to */
    Map reserved;         /* Name -> not NULL: types that may come */
    Map known;            /* Name -> not NULL: helpers that are there */
    WaitingSums sums;     /* in buffers, which a group keeps until it ends: sums.c */
    int64_t shared_bytes; /* memory of groups for elements: whole.c, tile.c, copied.c */
    Map waiting;          /* Func -> not NULL: kernels that mostly wait for numbers in rows: tile.c */
    Map copies;           /* GroupCopy -> const char *: what it is called */
    bool has_init;        /* constants are computed when the program starts */
    int static_copies;    /* of static variables: threads of a group that wait for each other; else 0 */
    int static_ids,
        own_ids; /* slang.c: which of a thread's numbers functions ask for, and the kernel that is printed; bits */
    int64_t largest;    /* object in a byte buffer */
    int64_t *tape_room; /* without memory that grows, by type: elements of a tape ... */
    bool *tape_known;   /* ... and are they all that are needed? */
    bool *tape_used;    /* ... by what was printed so far */
    FuncState *at;
};

/* ---- clike.c */
const EmitBackend *clike_backend(void);
void clike_fail(Printer *p, Loc loc, const char *format, ...) PRINTF_LIKE(3, 4) NORETURN;

/* ---- host.c: C */
extern const Dialect clike_c;

/* ---- cuda.c */
extern const Dialect clike_cuda;

/* ---- slang.c */
extern const Dialect clike_slang;

/* ---- text.c */
const char *clike_format(Printer *p, const char *format, ...) PRINTF_LIKE(2, 3);
void clike_line(Printer *p, const char *format, ...) PRINTF_LIKE(2, 3); /* indented, with its end */
/* A name that nobody has in that set, like the one wished for. */
const char *clike_unique(Printer *p, Map *taken, const char *wish);
Value clike_value(const char *text, Level level);
const char *clike_in(Printer *p, Value value,
                     Level level); /* in parentheses unless it binds at least like that */
/* A number without the suffix that it needs only where nothing else tells its type; other text as it is. */
const char *clike_short(Printer *p, const char *text);
const char *clike_assignment(Printer *p, const char *to, const char *from); /* `x = x + y` is `x += y` */
bool clike_is_word_char(char c);
bool clike_mentions(const char *text,
                    const char *name);             /* as a variable: not as a member, nor inside a string */
Map clike_variables(Printer *p, const char *text); /* all that it mentions, by name */

/* ---- whole.c */
bool clike_begin_whole(Printer *p,
                       const Inst *store); /* from here on, parts of the element are those of a variable */
void clike_end_whole(Printer *p);
bool clike_take_shared(Printer *p, int64_t bytes); /* of the memory of a group; false: there is not so much */

/* ---- tile.c */
/* Is there a loop to be done with tiles where that condition is true? What is to be tested as well; NULL:
 * there is none. */
const char *clike_find_tile(Printer *p, const Inst *choice);
/* Does the loop count up, one by one, to a limit that is known before the choice? The same holds for what it
 * begins with. */
bool clike_counts_up(const Inst *choice, const Inst *loop, LoopTest *test);
bool clike_name_tile(Printer *p, const Inst *loop);      /* false: not this loop */
const char *clike_tiled(Printer *p, const Inst *access); /* where its element is; NULL: not in a tile */
void clike_begin_tile(Printer *p, const char *counter, const char *condition, const char *step);
void clike_end_tile(Printer *p);
/* A loop over numbers in two forms: before each of them. */
void clike_begin_numbers(Printer *p, const char *counter, const char *step);
void clike_next_numbers(Printer *p, const char *counter, const char *condition, const char *step);

/* ---- copied.c */
void clike_declare_copies(Printer *p, const Func *func);
const char *clike_copied(const Printer *p,
                         const Inst *access); /* the copy that its element is in; NULL: in none */
bool clike_make_copies(Printer *p,
                       const Func *func); /* false: there are none; else all threads must wait for them */

/* ---- rows.c */
bool clike_has_rows(const Printer *p, const Func *func);   /* is there a loop over structs? */
void clike_begin_rows(Printer *p, const Inst *loop);       /* if it is a loop over structs */
const char *clike_rows_wish(Printer *p, const Inst *loop); /* what is said before it; NULL: nothing */
/* Of a loop whose rounds are done at once: where its element is, said so that gcc reads number by number;
 * NULL: that makes no difference. */
const char *clike_far_index(Printer *p, const Inst *access);
bool clike_row_element(Printer *p, const Inst *access, Value *result); /* the variable that stands for it */
void clike_end_row(Printer *p, const Inst *store); /* after it the element may have to be written */
bool clike_is_called_in_rows(const Printer *p, const Inst *inst);   /* so that vectors are wanted of it */
bool clike_is_computed_in_rows(const Printer *p, const Inst *inst); /* as all that is called there */
/* Does such a loop compute sines, and write elements without reading what was there, so that it can be done
 * twice? */
bool clike_turns_rows_anew(const Printer *p, const Inst *loop);

/* ---- tried.c */
bool clike_is_tried(const Printer *p,
                    const Func *func);                /* a loop that is done again if a sine was too short */
void clike_begin_tried(Printer *p, const Func *func); /* if it is one */
void clike_begin_tried_round(Printer *p);
void clike_end_tried_round(Printer *p);
bool clike_tried_sine(Printer *p, const Inst *inst, Value x, Value *result); /* or cosine, if it is there */

/* ---- sums.c */
bool clike_sum(Printer *p,
               const Inst *inst); /* prints it, or will do so with the next; false: it is no such sum */
void clike_find_summed(Printer *p);
bool clike_is_summed(const Printer *p,
                     const Val *address); /* sums alone use it, which find their place themselves */

/* ---- machine.c: C and CUDA */
extern const Language clike_with_pointers;
bool clike_is_plain_sum(const Printer *p, const Inst *inst); /* of an atomic operation */

/* ---- origin.c */
void clike_mark_line(Printer *p); /* the line that ends here: where it comes from, if that is asked for */
void clike_mark_head(Printer *p, const Func *func); /* the function that begins next */
void clike_resolve_marks(Printer *p, Text *code);   /* into what was asked for */

/* ---- types.c */
const char *clike_type(Printer *p, const Type *type); /* of a value, as one word or with a star */
const char *clike_declare(Printer *p, const Type *type, const char *name);       /* memory */
const char *clike_declare_value(Printer *p, const Type *type, const char *name); /* half is held as float */
const char *clike_word(Printer *p, const Type *type);                            /* for names of helpers */
const char *clike_field(Printer *p, const Type *record, int field);
const char *clike_declare_data(Printer *p, const Type *buffer,
                               const char *name);           /* a pointer to its elements */
bool clike_is_nothing(const Type *type);                    /* it takes no memory */
bool clike_is_text(const Type *type);                       /* a string, as a value */
const char *clike_named_type(Printer *p, const Type *type); /* of a record, vector or buffer */
const char *clike_declare_pointers(Printer *p, const Type *type, const char *name);
const char *clike_declare_pointers_value(Printer *p, const Type *type, const char *name);
void clike_define_c_record(Printer *p, Text *text, const Type *type, const char *name);
void clike_check_c_record(Printer *p, Text *text, const Type *type, const char *name);
/* Names: is it one that the language gives a meaning, and the same without one. */
bool clike_is_claimed(Printer *p, const char *name, NameScope scope);
const char *clike_free_name(Printer *p, const char *name);

/* ---- helper.c */
/* Is the helper of that name to be written now? Then its text goes to p->helpers. */
bool clike_begin_helper(Printer *p, const char *name);
const char *clike_helper(Printer *p,
                         const char *name); /* a fixed one, with those it needs; returns its name */
const char *clike_tape(Printer *p, const char *what, const Type *type);
const char *clike_atomic(Printer *p, const char *what, const Type *type);
void clike_add_helpers(Printer *p, Text *out); /* all that were needed */

/* ---- object.c: functions for vectors, buffers and whole objects */
const char *clike_put_vector(Printer *p, const Type *vector); /* function that writes it to memory */
const char *clike_make_vector(Printer *p, const Type *vector);
const char *clike_zero(Printer *p, const Type *type);  /* the value zero */
const char *clike_zeros(Printer *p, const Type *type); /* of an object: what a variable begins with */
const char *clike_lane(Printer *p, const Type *vector, const char *text, int lane);
Value clike_vector_op(Printer *p, const Inst *inst, const Value *args);
const char *clike_bitcast(Printer *p, const Type *from, const Type *to);
const char *clike_buffer(Printer *p, const char *what, const Type *buffer);
Value clike_given_index(Printer *p, const Inst *inst, Value index);      /* of its operand 1, to a function */
const char *clike_bytes(Printer *p, const char *what, const Type *type); /* load or store, unaligned */

/* ---- expr.c */
const char *clike_constant(Printer *p, const Val *v);
const char *clike_c_constant(Printer *p, const Val *v);
Value clike_infix(Printer *p, const Value *args, const char *operator, Level level);
Value clike_call(Printer *p, const char *function, const Value *args, int nargs);
bool clike_has_vectors(const Printer *p); /* are functions of the C library for vectors called? */
Value clike_choice(Printer *p, const Value *args);
Value clike_scalar_op(Printer *p, Op op, const Type *from, const Type *to, const Value *args,
                      const Inst *inst);
/* a && b, a || b, where b is computed only if it is asked: an `if` of which one arm says nothing but a
 * constant. */
typedef struct Logic {
    const Region *asked; /* says the rest; NULL: it is something else */
    bool known;          /* without it */
    bool when;           /* what the condition is where it is asked */
} Logic;
Logic clike_logic(const Inst *inst);
Value clike_operand(Printer *p, const Inst *inst, int index);      /* if it is an address: to be written to */
Value clike_read_operand(Printer *p, const Inst *inst, int index); /* to be read only */

/* ---- place.c */
Value clike_guarded(Printer *p, const Inst *inst, bool reading); /* the text of such an address for one use */
const char *clike_pointer(Printer *p, Value address, const Type *target, bool read_only);
const char *clike_place(Printer *p, Value address, const Type *target); /* what is there */
bool clike_address(Printer *p, const Inst *inst, Value *result);        /* false: not an op of this file */
Value clike_load(Printer *p, const Inst *inst);
bool clike_leads_nowhere(
    const Inst *access); /* by a null pointer, of which compilers warn; no program does that */
bool clike_text_literal(Printer *p, const Inst *inst, Value *result); /* a cast that makes a string */
Value clike_nowhere(Printer *p, const Type *target); /* the address of what takes no memory */
void clike_memory(Printer *p, const Inst *inst);     /* store, copy, zero */
/* What is printed next is done only if the address is in range; false: it need not be tested. */
bool clike_begin_tested(Printer *p, const Inst *inst);
void clike_end_tested(Printer *p);

/* ---- reading.c */
bool clike_bind_element(Printer *p,
                        const Inst *access); /* gives it a name; false: it is said anew at each use */

/* ---- elementary.c */
bool clike_is_turn(const Inst *inst);     /* a sine or a cosine */
bool clike_comes_along(const Inst *inst); /* there is a function of ours that can be vectors */
/* The function that is written out where vectors are wanted of a loop that calls it; NULL: it is called. */
const char *clike_computed_in_place(Printer *p, const Inst *inst, const Type *type);
/* The function that computes a cosine beside, not with, the sine of the same number; NULL: any will do. */
const char *clike_cosine_apart(Printer *p, const Inst *inst, const Type *type);

/* ---- independent.c */
bool clike_is_independent(const Inst *loop); /* does no round need what another one writes, but for sums? */
bool clike_keeps_independent(const Inst *loop); /* likewise, and writes to a tape? */
/* Does none, of those that count up one by one? */
bool clike_are_rounds_apart(const Printer *p, const Inst *loop, int64_t rounds);
/* By something else than constants and counters. An array of a round's own is one for all rounds: gcc, told
 * that they are independent, would write several at once where data tell the place. */
bool clike_is_indexed_by_data(const Val *address);

/* ---- enums.c */
void clike_name_enums(Printer *p);
const char *clike_case_name(Printer *p, Name name);        /* NULL: it is none of the program's */
Name clike_case_of(const EnumNames *names, int64_t value); /* NULL: none of them is that */

/* ---- unroll.c */
bool clike_keeps_quotients(const Inst *loop); /* in arrays, in a few rounds that can be vectors */
const char *clike_loop_wish(Printer *p, const Inst *loop);  /* what is said before it; NULL: nothing */
const char *clike_round_wish(Printer *p, const Inst *loop); /* likewise, where a round begins */
bool clike_adds_rows(const Printer *p, const Inst *loop);   /* products of many at once, and nothing else? */
bool clike_adds_row_by_row(const Printer *p, const Inst *loop); /* one in each round? */
bool clike_carries_counters(const Inst *loop);                  /* and nothing else? */
bool clike_is_in_open_loop(const Inst *inst); /* that ends by what it computes: no vectors */
/* Is it written out, and how often the loop in it runs depends on the round? */
bool clike_is_triangle(const Printer *p, const Inst *loop);

/* ---- triangles.c */
bool clike_adds_triangles(const Printer *p, const Func *func); /* to memory, in its loops? */
/* The element of a buffer that such a function adds to, as one of a row; NULL: it is none. */
const char *clike_element_in_row(Printer *p, const Inst *access);

/* ---- masked.c */
/* If it is to have some rounds which do nothing: returns what it counts up to, else NULL. */
const char *clike_begin_masked(Printer *p, const Inst *loop, int counter);
bool clike_is_pair(const Printer *p,
                   const Inst *loop); /* such a loop, of two vectors that are written out? */
const char *clike_masked_test(Printer *p, const char *counter, const char *last); /* of what a round does */
/* The variable of 32 bits that it counts in, from which each round sets the one of that name; NULL: it counts
 * in the latter. */
const char *clike_short_counter(Printer *p, const Inst *loop, const char *name);
bool clike_counts_along(const Printer *p, const Inst *loop,
                        int index);                            /* with its counter, whose number it is */
const char *clike_masked_place(Printer *p, const char *place); /* on its tape; NULL: there is no such loop */
void clike_masked_again(Printer *p);                           /* before the loop, if somebody asks */
void clike_masked_bits(Printer *p, const char *counter);       /* likewise, in a round */
bool clike_is_in_whole_row(
    const Inst *inst); /* the address of an element of an array that has some for all rounds? */
Value clike_masked_element(Printer *p, const Inst *elem, Value place); /* which may be a copy of it */
Value clike_masked_load(Printer *p, const Inst *inst, Value value); /* or zero, where a round does nothing */

/* ---- own.c */
void clike_own_array(Printer *p, const Inst *var, const char *name);
void clike_own_tape(Printer *p, const Inst *open, const char *name);

/* ---- large.c */
void clike_take_large(Printer *p);                   /* at the start of a function */
bool clike_begin_large(Printer *p, const Inst *var); /* it is such a variable, and begins here */
void clike_give_large(Printer *p);                   /* before it returns */

/* ---- made.c */
void clike_make_buffer(Printer *p, const Inst *inst);
bool clike_makes(const Printer *p, const Func *func); /* tensors */
void clike_name_made(Printer *p, const Func *func, Map *taken);
/* Around what a function does that makes some; and before the end, what it returns, as `returned` or through
 * parameters of those names. */
void clike_begin_made(Printer *p, const Func *func);
void clike_return_made(Printer *p, const Func *func, const char *const *names);
void clike_end_made(Printer *p, const Func *func);
void clike_keep_made(Printer *p, GlobalKind kind); /* after what computes such globals */

/* ---- apart.c */
bool clike_copy_apart(Printer *p, const Inst *copy, const Type *type, Value to,
                      Value from); /* number by number; false: it has not been copied */

/* ---- twice.c */
/* The operand that it is twice of, if it is a term of a sum in which a product had better be fused with the
 * addition; else -1. */
int clike_doubled_beside_product(const Printer *p, const Inst *inst);

/* ---- printf.c */
void clike_printf(Printer *p, const Inst *inst);
const char *clike_string(Printer *p, Str text); /* a literal */

/* ---- value.c */
const char *clike_id_name(int index);                   /* of what thread_id gives */
const char *clike_name_value(Printer *p, const Val *v); /* a fresh name */
const char *clike_local(Printer *p, const char *wish);  /* likewise */
void clike_consume(Printer *p, const Inst *inst);       /* its operands are about to be used */
void clike_flush(Printer *p); /* memory is about to change: what waits is written down */
void clike_settle(Printer *p, const Inst *inst,
                  int index); /* that operand is short and reads nothing from now on */
void clike_set(Printer *p, const Inst *inst, Value value);                /* the only result: an expression */
void clike_set_statement(Printer *p, const Inst *inst, const char *text); /* what must happen here */

void clike_set_results(Printer *p, const Inst *inst, const char *text); /* of a call, any number */

/* ---- joined.c */
void clike_find_uses(Printer *p);
/* The variable that the result of an `if` or `switch` goes to in the end, if it can go there at once, and
 * what that has held so far, or NULL. */
const Value *clike_joined(Printer *p, const Inst *statement, int index, const Val **held);

/* ---- stmt.c */
void clike_instruction(Printer *p, const Inst *inst);
void clike_assign(Printer *p, const Inst *inst,
                  const Value *to);                         /* its arguments; those not read have no text */
void clike_choose(Printer *p, const Inst *inst, int first); /* gone: the number of its region, from that on */
void clike_body(Printer *p, const Func *func, const char *const *params);

/* ---- group.c */
void clike_bring(Printer *p, const Inst *wave);        /* what a thread has for the others of its wave */
bool clike_is_cut(const Printer *p, const Func *func); /* a kernel whose threads run phase by phase */
void clike_group(Printer *p);                          /* the body of one */
const char *clike_spread(Printer *p, const Type *type, const char *name, bool as_value); /* this thread's */

/* ---- outlined.c */
/* Of its buffers: */
const char *clike_name_apart(Printer *p, const char *wish);
const char *clike_declare_apart(Printer *p, const Param *param, const char *name);
const char *clike_parts_of_buffer(Printer *p, Value buffer); /* as it is handed over */
void clike_join_buffer(Printer *p, const Param *param, const char *name);

/* ---- func.c */
void clike_name_functions(Printer *p);
const char *clike_func_name(Printer *p, const Func *func);
const char *clike_results_type(Printer *p, const Func *func);
const char *clike_result_field(Printer *p, const Func *func, int index); /* in that type */
bool clike_takes_thread(const Printer *p, const Func *func);             /* a first, hidden parameter */
bool clike_is_const_param(const Param *param);
const char *clike_declare_pointer_param(Printer *p, const Param *param, const char *name);
void clike_declare_functions(Printer *p); /* those that others may call */
void clike_functions(Printer *p);
uint32_t clike_needs(const Printer *p, const Func *func);
/* Without pointers an object is returned as it is: which parameter stands for it in the IR? -1: none. */
int clike_returned_param(const Printer *p, const Func *func);
/* Without pointers a global that needs code is what its function returns; NULL: the function is another. */
const Global *clike_computed_global(const Printer *p, const Func *func);
bool clike_is_main(const Printer *p, const Func *func);
bool clike_has_threads(const Printer *p,
                       const Func *func); /* a kernel: more than one, or it asks which one it is */
const char *clike_outer_name(Printer *p, const Func *func);
/* The parameters with what stands before and after them; "void" if there is nothing. */
const char *clike_params(Printer *p, const Func *func, const char **names, const char *first);
const char *clike_call_inner(Printer *p, const Func *func, const char **names, const char *thread);

/* ---- global.c */
const char *clike_global_name(Printer *p, const Global *global);
void clike_find_init(Printer *p);
void clike_find_copies(Printer *p); /* of static variables */
const char *clike_static_place(Printer *p, const Global *global);
void clike_declare_globals(Printer *p); /* those that others see */
void clike_globals(Printer *p);
bool clike_has_globals(const Printer *p, GlobalKind kind);
void clike_inits(Printer *p, GlobalKind kind, const char *thread); /* calls of what computes them */
void clike_no_thread(Printer *p); /* declares the one that runs outside of a dispatch */
bool clike_inits_take_thread(const Printer *p, GlobalKind kind);
/* A call by which the static variables of a thread begin anew: of the one that the function is given, if
 * any. */
const char *clike_start_thread(Printer *p, const Func *func, const char *thread);
/* A function with which static or group-shared variables begin anew: all zero, then what computes them. */
typedef struct Start {
    GlobalKind kind;
    const char *head;
    const char *owner; /* before the name of a variable; NULL: nothing */
    const char *clear; /* the call that clears it, up to its name; NULL: memset */
    const char *thread;
    const char *end; /* a statement in place of what computes them; NULL: none */
} Start;
void clike_print_start(Printer *p, const Start *start);

#endif
