/* What the files of the LLVM emitter share.
 *
 * Translation is one walk over each function that is reached from an exported one. A value of the IR becomes
 * one LLVM value; bool is i1 in values and a byte in memory, a buffer is {ptr, i64}, a tape a pointer. Memory
 * is addressed in bytes by type/layout; LLVM's own struct layouts are never used.
 *
 * An address carries more than its LLVM value, as long as it is not merged with others or handed away
 * (`Value`): a condition under which it is in range, and where the
 * memory comes from. */
#ifndef SLOPE_EMIT_LLVM_H
#define SLOPE_EMIT_LLVM_H

#include "emit/emit.h"
#include "emit/names.h"
#include "emit/reach.h"
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>

/* Memory that the program has no pointers to, besides the spaces of the IR. Accesses are tagged (type-based
 * alias metadata): no two of all these overlap, except that SPACE_any may be each of those that pointers lead
 * to. */
enum {
    SPACE_context = SPACE_COUNT,
    SPACE_tape_header,
    TAG_COUNT,
};

typedef struct Value {
    LLVMValueRef value;
    /* Addresses only: */
    /* i1: in range; NULL: always is. Out of range, loads give zero and stores are dropped */
    LLVMValueRef guard;
    uint8_t space;   /* of the memory it leads to; emit_set takes it from the type */
    ApartMark apart; /* of buffers: which one it is in */
    bool unaligned;
    bool is_parameter; /* `value` is where it lies: loaded where it is used */
    /* Vectors of lanes, integers and addresses: lane i is first + i * step, if `whole` holds (NULL: it does)
     * ... */
    LLVMValueRef first; /* NULL: nobody knows */
    int64_t step;       /* of addresses: bytes */
    LLVMValueRef whole; /* i1; ... and all addresses are in range */
    bool is_held;       /* ... and `whole` says, too, that no lane is held back by a bound */
    struct Indexed
        *indexed; /* of addresses: what they are made from, if that is one buffer for all lanes; or NULL */
} Value;

typedef struct FuncInfo {
    Func *func;
    ReachedFunc *reached;
    LLVMValueRef function;
    LLVMTypeRef type;
    int direct_params;     /* the first of its parameters, as such; others lie in memory */
    bool many_results;     /* so many that they go through memory */
    bool is_large;         /* for most of LLVM's passes */
    LLVMMetadataRef scope; /* debug info */
} FuncInfo;

typedef struct GlobalInfo {
    Global *global;
    ReachedGlobal *reached;
    LLVMValueRef memory; /* const and uniform */
    FuncInfo *init;
} GlobalInfo;

/* A block where control flows together, with the values that come along. */
typedef struct Merge {
    LLVMBasicBlockRef block;
    LLVMValueRef *phis;
    int nphis, incoming;
} Merge;

/* A region being emitted, and where control goes from it. */
typedef struct Frame {
    struct Frame *up;
    const Inst *owner;
    Merge *on_yield, *on_break, *on_continue;
    LLVMBasicBlockRef if_true; /* condition of a loop: where a yield of true goes; of false: on_break */
    LLVMValueRef *carried;     /* ... and with which values */
    LLVMValueRef *yielded;     /* no jump: what a yield has goes there */
} Frame;

/* Of a value, the first result that it is, from 1, and where among results in memory; 0: none, or it waits
 * for the return. */
typedef struct EarlySlot {
    int result;
    int64_t offset;
} EarlySlot;

/* The function being emitted. */
typedef struct FuncState {
    FuncInfo *info;
    LLVMValueRef function, context;
    LLVMBasicBlockRef entry; /* variables only; ends in a jump to the code */
    Value *values;           /* by Val.id */
    EarlySlot *early;        /* by Val.id; NULL: none */
    Frame *frame;
    Map scopes;           /* nest of an ApartMark -> LLVMMetadataRef[], of each of its buffers */
    LLVMValueRef large;   /* memory of large variables; NULL: there are none */
    int64_t large_used;   /* bytes of it that have an owner */
    SumsTogether sums;    /* on a GPU: those that wait for the next ones, */
    WholeElement whole;   /* ... the element that is being put together, */
    LLVMValueRef element; /* ... and where */
    Map records;          /* Inst -> RecordAccess that it is one of */
    Loc here;             /* the instruction that is being emitted */
} FuncState;

/* What a processor, or LLVM for it, does in ways of its own. */
/* Whose rules C compilers follow where they pass structs. */
typedef enum StructRules { STRUCTS_unknown, STRUCTS_x86_64, STRUCTS_aarch64 } StructRules;

typedef struct TargetHabits {
    bool has_extremes;      /* the greater of two numbers, one of which may be none, in one instruction */
    bool has_round_even;    /* in one instruction: else it calls what not every C library has */
    bool fuses;             /* every processor of the kind has products that are fused with a sum */
    unsigned seldom_called; /* the convention of functions that leave almost all registers as they were */
    int row;                /* bytes that the widest register takes: arrays lie at multiples of it */
    StructRules structs;
} TargetHabits;

typedef struct Emitter {
    Arena arena;
    Trap trap;
    Module *module;
    const EmitOptions *options;
    bool for_jit;
    bool is_huge;           /* some function: see Translation */
    const EmitFile *device; /* that runs on a GPU; NULL: on a CPU */
    const char *libdevice;  /* the file, once something of it is called */
    Loc trap_loc;
    TargetHabits habits;
    const char *features;                               /* of the processor, as LLVM lists them */
    bool (*is_defined)(void *user, const char *symbol); /* by an earlier module of the JIT; may be NULL */
    void *user;
    const char *init_symbol; /* "" if nothing needs it */

    LLVMContextRef context;
    LLVMModuleRef llvm;
    LLVMBuilderRef builder;
    LLVMTypeRef void_type, i1, i8, i16, i32, i64, f16, f32, f64, ptr, buffer;
    LLVMValueRef tags[TAG_COUNT];
    unsigned tag_kind, invariant_kind, weight_kind, scope_kind, apart_kind;
    LLVMValueRef invariant, likely;

    WaitingSums sums;     /* on a GPU */
    int64_t shared_taken; /* there, bytes of groups' memory for elements */
    Reached reached;      /* `emitted` there: a FuncInfo or GlobalInfo */
    VEC(FuncInfo *) order;
    VEC(GlobalInfo *) global_order; /* in the order of the module */
    VEC(const char *) defined;      /* symbols this module defines and the JIT must know */
    Map symbols, taken;             /* names that C can say, by those of the IR; those in use */
    int64_t sink_size, zero_size;
    int64_t wave_sites; /* places where the threads of a wave meet, so far */
    LLVMValueRef zero_object, runtime_slot;

    LLVMDIBuilderRef debug;
    LLVMMetadataRef unit;
    Map debug_files;        /* Name -> file */
    Map sites;              /* Loc + 1 -> RtSite: where indices are watched */
    bool uses_runtime;      /* some function of it is called */
    VEC(LLVMValueRef) kept; /* functions that calls may be vectorised with, or whose parameters are to stay */
    bool calls_lanes;       /* some such function is called */
    bool lanes_searched;    /* for a library of them, which is: */
    void *lanes_opened;
    const char *lanes_library;

    FuncState *at;
} Emitter;

static inline unsigned count_of(int count) { return (unsigned)count; }

/* Where attributes of a function itself stand, not of a parameter. */
static const unsigned of_function = (unsigned)LLVMAttributeFunctionIndex;

/* ---- module.c */
/* The whole translation; fills e->llvm. Springs the trap on errors. */
void emit_module(Emitter *e);
void emit_fail(Emitter *e, const char *format, ...) PRINTF_LIKE(2, 3) NORETURN;
FuncInfo *emit_func_info(const Emitter *e, const Func *func);
GlobalInfo *emit_global_info(const Emitter *e, const Global *global);
/* The name in the object of something that others can see; `suffix` is added. */
const char *emit_symbol_name(Emitter *e, const char *name, const char *suffix);
LLVMValueRef emit_runtime_slot(Emitter *e);

/* ---- types.c */
void emit_types_init(Emitter *e);
LLVMTypeRef emit_type(Emitter *e, const Type *type); /* of values */
LLVMTypeRef emit_memory_type(Emitter *e, const Type *type);
LLVMTypeRef emit_shaped(LLVMTypeRef element,
                        const Type *shape); /* a vector of that element if shape is one */
LLVMValueRef emit_constant(Emitter *e, const Val *v);
LLVMValueRef emit_i32(Emitter *e, int64_t value);
LLVMValueRef emit_i64(Emitter *e, int64_t value);
LLVMValueRef emit_splat(Emitter *e, LLVMValueRef scalar, const Type *shape);
LLVMValueRef emit_int_like(Emitter *e, const Type *type, int64_t value); /* scalar or every lane */
LLVMValueRef emit_intrinsic(Emitter *e, const char *name, LLVMTypeRef *overloads, int noverloads,
                            LLVMValueRef *args, int nargs);
void emit_attribute(Emitter *e, LLVMValueRef function, unsigned index, const char *name, uint64_t value);
void emit_string_attribute(Emitter *e, LLVMValueRef function, const char *name, const char *value);
void emit_call_attribute(Emitter *e, LLVMValueRef call, const char *name, const char *value);
/* A function outside of the module; `properties` are names of attributes, separated by spaces. */
LLVMValueRef emit_external(Emitter *e, const char *name, LLVMTypeRef result, LLVMTypeRef *params, int nparams,
                           const char *properties);
LLVMValueRef emit_call_external(Emitter *e, LLVMValueRef function, LLVMValueRef *args, int nargs);
LLVMValueRef emit_at(Emitter *e, LLVMValueRef pointer, int64_t bytes);
void emit_tag(Emitter *e, LLVMValueRef access, int space);
LLVMMetadataRef emit_own_node(Emitter *e, LLVMMetadataRef *others,
                              int count); /* told from all others by that it names itself */
LLVMValueRef emit_alloca(Emitter *e, int64_t size, int64_t align);

/* ---- func.c */
void emit_func_declare(Emitter *e, FuncInfo *info);
/* It is called by its ways in alone, and not made a part of them. */
bool emit_stands_alone(const Emitter *e, const FuncInfo *info);
/* Calls the function itself; the results. `values` begins with the context. */
LLVMValueRef *emit_call_body(Emitter *e, const FuncInfo *info, LLVMValueRef *values);
void emit_return(Emitter *e, const Inst *inst);
void emit_func_body(Emitter *e, FuncInfo *info);
void emit_region(Emitter *e, const Region *region);
Value emit_operand(Emitter *e, const Inst *inst, int index);    /* with what is known of it */
Value emit_value(Emitter *e, const Val *v);                     /* where the builder is */
LLVMValueRef emit_use(Emitter *e, const Inst *inst, int index); /* plain */
void emit_set(Emitter *e, const Val *v, Value value);
void emit_result(Emitter *e, const Inst *inst, LLVMValueRef value); /* the only result, plain */
LLVMBasicBlockRef emit_block(Emitter *e, const char *name);
/* Opens the body of an LLVM function; what is built next is its code. Variables go to a block of their own in
 * front. */
void emit_begin(Emitter *e, FuncState *state, LLVMValueRef function);

/* ---- control.c */
void emit_control(Emitter *e, const Inst *inst); /* ops with regions, and those that end one */
void emit_wish(Emitter *e, LLVMValueRef branch, const char *wish, int number); /* 0: it has none */

/* ---- scope.c */
void emit_tag_at(Emitter *e, LLVMValueRef access, const Value *address); /* a load or store there */

/* ---- arith.c: each returns NULL for ops of other files */
/* With what the options allow: a floating-point instruction, just made. */
LLVMValueRef emit_freely(Emitter *e, LLVMValueRef value);
LLVMValueRef emit_arith(Emitter *e, const Inst *inst);
EmitFloats emit_floats(const Emitter *e); /* what they allow, here */

/* ---- math.c */
LLVMValueRef emit_math(Emitter *e, const Inst *inst);
/* e^x of a vector, in place, within one unit in the last place; can it be done of one of this type? */
bool emit_has_exponential(const Emitter *e, LLVMTypeRef vector);
LLVMValueRef emit_exponential(Emitter *e, LLVMValueRef x);
/* Of float and double; NVPTX has none that is exact. */
LLVMValueRef emit_remainder(Emitter *e, LLVMValueRef a, LLVMValueRef b, const Type *shape);

/* ---- lanes.c: elementary functions of several numbers at once */
void emit_lanes(Emitter *e, LLVMValueRef call,
                const char *library); /* tells of those that do what the call does */
void emit_lanes_keep(Emitter *e);     /* at the end of the module */
/* The function of that name in the library of C on vectors of lanes; NULL: there is none. */
LLVMValueRef emit_lanes_call(Emitter *e, const char *library, LLVMValueRef *args, int nargs);
const char *emit_lanes_library(const Emitter *e); /* where they are */
bool emit_knows_vectors(void);                    /* is LLVM told of them? */
/* One vector of vectors of equal size, a power of two of them; they are overwritten. */
LLVMValueRef emit_joined(Emitter *e, LLVMValueRef *parts, unsigned nparts);

/* ---- vector.c */
LLVMValueRef emit_vector(Emitter *e, const Inst *inst);
/* An index of any integer type as i64, clamped to 0 .. length - 1 unless length < 0. */
LLVMValueRef emit_index(Emitter *e, LLVMValueRef index, const Type *type, int64_t length);
LLVMValueRef emit_index_arg(Emitter *e, const Inst *inst,
                            int64_t length); /* the second operand, into memory */

/* ---- wide.c: addresses of several lanes */
void emit_note_steps(Emitter *e, const Inst *inst); /* of integers that an instruction has just made */
bool emit_wide(Emitter *e, const Inst *inst);       /* false: not an op of this file, or of one lane */

/* ---- records.c: those of one record for each lane */
typedef struct RecordAccess RecordAccess;
void emit_find_records(Emitter *e, const Region *region); /* before it is emitted */

/* ---- memory.c */
void emit_take_large(Emitter *e, const Func *func); /* memory for all large variables, before the code */
void emit_give_large(Emitter *e);                   /* before each return */
bool emit_memory(Emitter *e, const Inst *inst);     /* false: not an op of this file */
LLVMValueRef emit_from_memory(Emitter *e, const Type *type, LLVMValueRef stored);
LLVMValueRef emit_to_memory(Emitter *e, const Type *type, LLVMValueRef value, LLVMTypeRef memory);
LLVMValueRef emit_load(Emitter *e, const Type *type, Value address);
void emit_store(Emitter *e, const Type *type, Value address, LLVMValueRef value);
void emit_zero(Emitter *e, LLVMValueRef address, int64_t size, int64_t align);
/* An address that can be given away: out of range it is a place that reads as zero and may be written. */
LLVMValueRef emit_plain_address(Emitter *e, Value address, const Type *target, bool read_only);
Value emit_plain_value(LLVMValueRef value);

/* ---- object.c: copies and sums of whole objects */
void emit_copy(Emitter *e, const Type *type, Value to, Value from);
typedef struct Branch {
    LLVMBasicBlockRef from, inside, after;
} Branch;
/* What follows, up to emit_branch_end, happens only if the condition holds, which is likely ... */
Branch emit_branch_begin(Emitter *e, LLVMValueRef condition);
Branch emit_unless_begin(Emitter *e,
                         LLVMValueRef condition); /* ... or only if it does not, which is unlikely */
void emit_branch_end(Emitter *e, Branch *branch);

/* ---- watch.c: with EmitOptions.watch; else nothing */
void emit_watch(Emitter *e, LLVMValueRef in_range); /* tells if it is not */
void emit_watch_operands(Emitter *e, const Inst *inst);

/* ---- buffer.c */
bool emit_buffer(Emitter *e, const Inst *inst);
LLVMValueRef emit_atomic(Emitter *e, const Inst *inst);

/* ---- machine.c: threads, printf, abort */
bool emit_machine(Emitter *e, const Inst *inst);
void emit_stack_test(Emitter *e, const Func *func); /* at the start of a function that may call itself */
bool emit_looks(const Emitter *e);                  /* whether there is somebody who may tell it to stop */
void emit_stop_test(Emitter *e); /* leaves if the run was told to stop; files have nobody who tells them */
LLVMValueRef emit_context_load(Emitter *e, LLVMValueRef context, LLVMTypeRef type, size_t offset);
void emit_context_store(Emitter *e, LLVMValueRef context, LLVMValueRef value, size_t offset);

/* ---- tape.c */
bool emit_tape(Emitter *e, const Inst *inst);

/* ---- thunk.c, kernel.c: ways in from outside */
void emit_thunks(Emitter *e, FuncInfo *info);
void emit_kernel(Emitter *e, FuncInfo *info);
/* A context on the stack with all that `needs` says, copied from `outer` where that matters. */
LLVMValueRef emit_make_context(Emitter *e, uint32_t needs, LLVMValueRef outer);
void emit_start_thread(Emitter *e, uint32_t needs,
                       LLVMValueRef context); /* statics are zeroed and initialised */
void emit_drop_context(Emitter *e, uint32_t needs, LLVMValueRef context); /* gives back what it took */
/* The arguments of a function from a list of pointers, with a free place in front for the context. */
LLVMValueRef *emit_load_args(Emitter *e, const Func *func, LLVMValueRef args);
LLVMValueRef *emit_call_loaded(Emitter *e, const FuncInfo *info, LLVMValueRef context, LLVMValueRef *values);
uint32_t emit_needs_of_init(const Emitter *e, bool *any); /* of constants that need code, if any do */
void emit_run_inits(Emitter *e, LLVMValueRef context);
void emit_init(Emitter *e);
void emit_close(Emitter *e);

/* What a way in leads to. */
typedef struct Way {
    const FuncInfo *info;
    uint32_t needs;
    LLVMValueRef inner; /* what the runtime is to call; NULL: it is not needed */
} Way;
/* Of a parameter or a result: its address, or NULL; what is there, where that is known, as it is of a result
 * that has no address after the call. */
typedef struct Place {
    LLVMValueRef address, value;
} Place;
/* `places`: those of parameters, then of results; all have addresses if the runtime is needed. */
void emit_call_places(Emitter *e, const Way *way, Place *places);

/* ---- native.c: functions as other programs call them */
LLVMValueRef emit_native(Emitter *e, const Way *way);
LLVMValueRef emit_list(Emitter *e, const Place *places, int count); /* of addresses, in memory */
/* Begins the function that others start a kernel by: a list of pointers to its arguments, and the address of
 * the numbers of groups. */
LLVMValueRef emit_native_kernel(Emitter *e, const Func *func, FuncState *state, LLVMValueRef *groups);

/* ---- device.c: for a GPU */
extern const char device_host[]; /* how RtHost is called there */
/* The address of a unit by its index, where `data` leads to global memory. */
LLVMValueRef emit_in_global(Emitter *e, LLVMValueRef data, LLVMTypeRef unit, LLVMValueRef index);
LLVMValueRef emit_device_global(Emitter *e, const Global *global, LLVMTypeRef type);
LLVMValueRef emit_device_shared(Emitter *e, int64_t offset); /* an address in shared memory */
void emit_device_variable(Emitter *e, const Type *type);     /* refuses what is too large */
LLVMValueRef emit_device_id(Emitter *e, const Inst *inst);
LLVMValueRef emit_device_copy(Emitter *e,
                              const Inst *access); /* of the elements that it leads to; NULL: there is none */
void emit_device_barrier(Emitter *e, bool waits);
LLVMValueRef emit_device_stop(Emitter *e); /* the flag's address */
void emit_device_print(Emitter *e);
/* i1: an address leads to memory that has no atomic operations; NULL: it does not */
LLVMValueRef emit_device_is_own(Emitter *e, Value address);
void emit_device_atomic(Emitter *e, const Type *type); /* refuses what is too small */
void emit_device_kernel(Emitter *e, FuncInfo *info);
void emit_device_init(Emitter *e);

/* A function that is made where it is first called, in the midst of another. */
typedef struct DeviceHelper {
    LLVMValueRef function;
    LLVMBasicBlockRef from; /* NULL: it is there already; else what is built next is its body ... */
    LLVMMetadataRef place;
} DeviceHelper;
DeviceHelper emit_device_helper(Emitter *e, const char *name, LLVMTypeRef *types, int count);
void emit_device_helper_end(Emitter *e, const DeviceHelper *helper); /* ... up to here */

/* ---- device_sums.c */
/* Adds where nobody asks for the number before: warps add up first. false: not such numbers. */
bool emit_device_sum(Emitter *e, const Type *type, LLVMValueRef pointer, LLVMValueRef value);
void emit_device_row(Emitter *e, const SumRow *row);
void emit_device_sums(Emitter *e); /* memory for those that groups keep */
void emit_device_sums_begin(Emitter *e);
void emit_device_sums_end(Emitter *e);

/* ---- device_whole.c */
/* Where something is stored: in the element of a buffer, or in a variable of which a warp writes whole
 * elements ... */
Value emit_device_stored(Emitter *e, const Inst *store);
void emit_device_end_stored(Emitter *e, const Inst *store); /* ... after the last part */

/* ---- device_link.c */
extern const char *const device_text; /* device.ll */
extern const size_t device_text_size;
extern const char *const device_sums_text; /* device_sums.ll */
extern const size_t device_sums_text_size;
/* Of libdevice, by the name that C has for it, which it is called by. */
const char *emit_device_function(Emitter *e, const char *name);
void emit_device_link(Emitter *e);

/* ---- debug.c */
void emit_debug_init(Emitter *e);
void emit_debug_func(Emitter *e, FuncInfo *info);
void emit_debug_at(Emitter *e, Loc loc); /* for the instructions that follow */
void emit_debug_begin(Emitter *e,
                      LLVMValueRef function); /* for all of one that no function of the program is */
void emit_debug_none(Emitter *e);
void emit_debug_finish(Emitter *e);

/* ---- passes.c */
/* That LLVM runs, as text. */
typedef struct Passes {
    const char *first;
    const char *rest; /* from the search for vectors in straight code on; NULL: `first` is all */
} Passes;
Passes passes_of(int level, bool is_device); /* `level` is 0 to 3 */

/* ---- target.c */
LLVMTargetMachineRef target_machine(const EmitOptions *options, EmitError *error);
/* It is of no more use here: another translation of that session and level may have it. */
void target_give_back(LLVMTargetMachineRef machine, const EmitOptions *options);
void target_forget(EmitSpare *spare);
LLVMTargetMachineRef target_device(const EmitOptions *options, int capability, EmitError *error);
/* Have LLVM look for no vectors, or leave a function as it is. They are taken back before code for a CPU is
 * made, where they mean more; but a function that is done QUICKLY, which is a word of our own, has the second
 * then, whether or not it had it before: its instructions are selected the quick way. So are ROUNDS_ALONE: of
 * loops, vectors are made of several rounds, but not of one; and AS_IT_IS, of functions without passes to
 * which not even those for large ones are done. */
#define WITHOUT_VECTORS "noimplicitfloat"
#define WITHOUT_PASSES  "optnone"
#define QUICKLY         "slope-quickly"
#define ROUNDS_ALONE    "slope-rounds-alone"
#define AS_IT_IS        "slope-as-it-is"
#define WHOLE_REGISTERS "slope-whole-registers" /* vectors of 512 bits are asked for */
bool target_optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, const EmitOptions *options,
                     EmitError *error);
TargetHabits target_habits(LLVMTargetMachineRef machine);
bool target_masks_vectors(void); /* elements can be left out of what is read and written */

/* ---- blocks.c: blocks with many accesses to memory become several */
void target_cut_blocks(LLVMModuleRef module);

/* ---- translate.c: from an IR module to an LLVM module */
typedef struct Translation {
    LLVMContextRef context;
    LLVMModuleRef llvm;
    LLVMTargetMachineRef machine;
    EmitOptions made_by; /* for target_give_back: what the machine was made by */
    char init_symbol[64];
    bool uses_runtime;
    bool is_huge;              /* some function is: machine code is made without optimising */
    const char *lanes_library; /* that it calls functions of; NULL: none */
    char **defined;            /* symbols */
    int ndefined;
} Translation;
typedef struct TranslateWish {
    bool for_jit;
    const EmitFile *device; /* for a GPU */
    int number;             /* of the module in its JIT */
    bool (*is_defined)(void *user, const char *symbol);
    void *user;
} TranslateWish;
bool translate(Module *module, const EmitOptions *options, const TranslateWish *wish, Translation *result,
               EmitTimes *times, EmitError *error);
bool translation_optimise(Translation *t, const EmitOptions *options, EmitTimes *times, EmitError *error);
void translation_free(Translation *translation);
void error_set(EmitError *error, const char *format, ...) PRINTF_LIKE(2, 3);
void error_take(EmitError *error, LLVMErrorRef taken); /* LLVM's own */
double milliseconds(void);

/* device_link.c: what only NVPTX wants, after all optimisations */
bool device_lower(const Translation *t, EmitError *error);

/* ---- file.c */
bool file_write(Module *module, const EmitOptions *options, const EmitFile *file, EmitTimes *times,
                EmitError *error);
char *file_make(Module *module, const EmitOptions *options, const EmitFile *file, size_t *size,
                EmitTimes *times, EmitError *error);

/* ---- cache.c */
typedef struct CacheKey {
    char *bytes; /* to be freed; NULL: it cannot be told */
    size_t size;
} CacheKey;
CacheKey cache_key(const Translation *t, const EmitOptions *options);        /* before it is optimised */
LLVMMemoryBufferRef cache_find(const EmitCache *cache, const CacheKey *key); /* NULL: none */
void cache_keep(const EmitCache *cache, const CacheKey *key, LLVMMemoryBufferRef object);

/* ---- jit.c */
EmitJit *jit_new(const EmitJitConfig *config, EmitError *error);
void jit_free(EmitJit *jit);
bool jit_add(EmitJit *jit, Module *module, const EmitOptions *options, EmitTimes *times, EmitError *error);
void *jit_find(EmitJit *jit, EmitSymbol what, const char *name);
void jit_call(EmitJit *jit, void *function, void *const *args);

#endif
