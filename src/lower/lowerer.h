/* Inside of lower: its state, and what its files offer each other. */
#ifndef SLOPE_LOWERER_H
#define SLOPE_LOWERER_H

#include "lower/lower.h"

/* A function that was asked for. Equal requests are one Func. */
typedef enum RequestKind {
    REQUEST_decl,     /* the body of a declaration */
    REQUEST_dispatch, /* a requirement, called on a value of an interface: a switch over what can be in it */
    REQUEST_opened,   /* a generic function, called with an interface value for T: likewise */
    REQUEST_init,     /* the initialiser of a global */
    REQUEST_entry,
    REQUEST_move, /* an interface value into another form: a switch likewise */
} RequestKind;

/* How a value changes its form when it is moved; each needs to know all types behind an interface. */
typedef enum MoveKind {
    MOVE_between, /* of one interface to another; of a differential to that of an interface, and back */
    MOVE_as, /* of the differential of an interface, or the pair that has it, to an optional of one type's */
    MOVE_load,  /* from the form in buffers */
    MOVE_store, /* to the form in buffers */
} MoveKind;

typedef struct FuncBinding { /* a function known at compile time, behind a parameter of function type */
    Decl *param;
    Decl *decl;
    const Subst *subst;
    Decl *lambda;       /* struct of a lambda, or of an object */
    const Type *object; /* ... that holds data, which is passed in place of the function; else NULL */
    int64_t drops;      /* arguments that are no_diff by the types on the way: type_function_drop */
    const struct Request *around; /* lambda: in whose body it stands, if that takes functions; else NULL */
    Loc loc;                      /* where it is passed */
} FuncBinding;

typedef struct Request {
    RequestKind kind;
    struct Request *cause; /* being lowered when this one was made; NULL: asked for from outside */
    Decl *decl;
    const Subst *subst;
    bool plain_this;  /* `this` is not differentiated, whatever its type */
    bool as_declared; /* derivatives go through what the declaration says, not all that the arguments allow */
    /* a letter per parameter, `this` counted: & takes any address, whatever its direction; or NULL */
    Name by_reference;
    FuncBinding *bindings;
    int nbindings;
    const Type *object; /* dispatch of a static method: the interface of the value that it is called on */
    const Type *type;   /* move: the value's type before */
    const Type *to;     /* move: and after */
    MoveKind move;
    Func *derived;  /* entry: of a derivative, which it calls */
    Global *global; /* init */
    Expr *init;
    Func *func;
    FuncSig sig;     /* concrete; packs flattened */
    FuncSig generic; /* as declared */
    int variants;    /* switches: how many types were known behind interfaces */
} Request;

typedef struct Constant Constant; /* constant.c */

struct Lowerer {
    Arena *arena;
    Checker *c;
    Module *m;
    Types *types;
    Map lowered_types; /* front end Type -> IR Type */
    Loc at;            /* of what has the type that is lowered, as the program has it; 0: not known */
    Map field_slots;   /* front end Type -> Map of Decl -> FieldSlot */
    Map requests;      /* hash -> Request * chain */
    VEC(Request *) pending;
    int done;                     /* of pending */
    VEC(Request *) switches;      /* of these: what depends on the types behind interfaces */
    Map derivatives;              /* hash of (Func, mode) -> Func */
    Map copying;                  /* IR Type -> Func that copies an object no derivative of which is wanted */
    Map globals;                  /* hash of (Decl, Subst) -> Global */
    Map constants;                /* hash of (Decl, Subst) -> Constant */
    Map constant_kinds;           /* Decl -> the GlobalKind of that constant */
    Map external;                 /* front end Type -> IR record of its form in buffers */
    Map has_external;             /* front end Type: those that have one */
    Map own_defaults;             /* type -> whether its default value is more than zeros */
    VEC(const Type *) stored;     /* interfaces whose form in buffers is used */
    VEC(const Type *) interfaces; /* whose records are open: fields are added as types turn up */
    Map foreign;                  /* Decl: functions without code for this target, reported */
    Map type_sizes;               /* front end Type -> TypeSize of func.c */
    Request *current;             /* being lowered */
    int depth;
    bool too_deep, running;
    LowerConfig config;
    bool launches;      /* the program launches kernels itself */
    bool asks_machine;  /* something that was handed over asks the machine which thread it is */
    VEC(Inst *) asking; /* ... and what does among the functions that are being lowered */
};

/* A place that can be read and written. */
typedef enum PlaceKind {
    PLACE_none,
    PLACE_value,    /* not a place: a value (simple) or memory of a temporary */
    PLACE_memory,   /* at an address */
    PLACE_lanes,    /* some lanes of a vector or matrix that is in `base` */
    PLACE_lane,     /* one lane, chosen at run time */
    PLACE_accessor, /* property or subscript */
    PLACE_external, /* something that holds interface values, in the form that they have in buffers */
    PLACE_bits,     /* bit field, in the member at `address` */
    PLACE_row,      /* row `value` of a column-major matrix that is at `address` */
} PlaceKind;

/* Part of what an accessor gives: read into memory when it is first needed, not before. */
typedef struct Pending {
    const struct Place *from;
    Val *memory;
    bool done;
} Pending;

typedef struct Place Place;
struct Place {
    PlaceKind kind;
    const Type *type; /* front end, concrete */
    Val *address;     /* memory; value: memory of an aggregate */
    Val *value;       /* value: simple; lane: the index */
    Place *base;      /* lanes, lane; accessor: the object */
    bool shared;      /* memory that others may see: buffers, pointers, globals */
    bool no_diff;     /* what is read from it carries no derivative */
    bool constant;    /* memory that nobody writes: uniforms, constants */
    const void *root; /* variable that it is part of; NULL: unknown */
    uint8_t lanes[16];
    int nlanes;
    Decl *decl; /* accessor */
    const Subst *subst;
    Val **args; /* accessor: values of the subscript's arguments (address for aggregates) */
    int nargs;
    /* After a write through a temporary, it goes back to where it came from. */
    Place *write_back;
    Val *write_back_from;
    Pending *pending;
    int bit_offset, bit_width;
};

/* A local variable or parameter. */
typedef struct Local {
    Val *address;           /* memory, or NULL */
    Val *value;             /* simple and never assigned */
    struct Local *elements; /* pack */
    int nelements;
    bool no_diff;
    bool shared; /* the address was given: others may see the memory */
    bool early;  /* made before its declaration is reached, which may not be at all */
} Local;

typedef struct Defer {
    struct Defer *outer;
    Stmt *stmt;
} Defer;

typedef struct Target { /* of break and continue */
    struct Target *outer;
    Stmt *stmt;
    Inst *inst;
    Defer *defers;
    Inst *step;       /* $for: what continue leaves */
    Val *which;       /* do ... catch: the handler that goes on, from 1 */
    const Stmt *last; /* of a loop that goes on unless this one leaves it; else NULL */
    Val *go;          /* address: whether it does */
} Target;

/* The function being lowered. */
typedef struct Fn {
    Lowerer *l;
    Request *request;
    Func *func;
    Builder b;
    const Subst *subst;
    const FuncSig *sig;
    Map locals; /* Decl -> Local */
    Local self; /* this */
    const Type *self_type;
    Val *result; /* address of a result in memory */
    bool dead;   /* control does not come here */
    bool diff;   /* the function may be differentiated: derivatives that must not flow are cut */
    Target *targets;
    Defer *defers;
    int pack_element;  /* inside expand: which element; -1: outside */
    int no_diff_calls; /* > 0: under no_diff */
} Fn;

/* ---- lower.c, type.c */
void lower_with_calls(Lowerer *l, Request *request); /* at once, for who looks at it */
const Type *concrete(Fn *f, const Type *type);       /* front end, substituted */
const Type *ir_type(Fn *f, const Type *type);        /* of a type in the tree */
bool is_simple(const Type *ir);                      /* held in a value, not in memory */
bool has_image_format(const Type *type);             /* do fields of it say one? */
uint16_t image_format(const Decl *decl);             /* what [format(...)] says; 0: nothing */
bool is_block(const Type *front);                    /* a constant buffer, or an array of them */
void complete_interfaces(Lowerer *l);
const Type *part_of_variant(Lowerer *l, const Type *sum, const Type *variant);
int variant_index(Lowerer *l, const Type *interface, const Type *type); /* field of the record, tag + 1 */
void complete_record_diff(void *user, Record *record);
Record *record_of(Lowerer *l, const Type *front, const char *name);
/* Its text, with the namespaces and structs that it is in, so that no other type of the program has the
 * same. */
const char *unique_name(Lowerer *l, const Type *type);

/* ---- func.c */
Request *request_func(Lowerer *l, Decl *decl, const Subst *subst, bool plain_this,
                      const FuncBinding *bindings, int nbindings);
Request *request_declared(Lowerer *l, Decl *decl, const Subst *subst, bool plain_this,
                          const FuncBinding *bindings, int nbindings);     /* whose derivative is asked for */
Request *request_by_reference(Lowerer *l, const Request *of, Name params); /* see call.c */
const char *func_name(Lowerer *l, const Decl *decl, const Subst *subst);
Func *request_derivative(Lowerer *l, Request *request, const uint8_t *modes, int nmodes);
void add_object(const Request *request, FuncSig *sig);
void pass_objects_to_derivative(Lowerer *l, const Request *request, const uint8_t *modes, int nmodes,
                                FuncSig *sig);
Request *request_dispatch(Lowerer *l, Decl *requirement, const Subst *subst, bool declared);
Func *request_move(Lowerer *l, MoveKind kind, const Type *from, const Type *to);
void complete_func_diff(void *user, Func *func);
Func *op_rule(void *user, const Inst *inst);
Func *library_func(void *user, const char *name);
bool is_passed(const ParamSig *param); /* is it a parameter of the IR function? */
FuncSig flatten_signature(Lowerer *l, const FuncSig *sig);

/* ---- entry.c */
void lower_entry_body(Lowerer *l, Request *request);

/* ---- body.c */
void lower_body(Lowerer *l, Request *request);
bool report_foreign(Lowerer *l, const Request *request); /* false: it has code for this target */
void lower_stmt(Fn *f, Stmt *stmt);
void run_defers(Fn *f, Defer *until);
void lower_region(Fn *f, Region *region, Stmt *stmt); /* a statement, and the end of the region */
Target *find_target(Fn *f, const Stmt *stmt);
void after_if(Fn *f, const Inst *inst);
Fn fn_begin(Lowerer *l, Request *request);
void fn_end(Fn *f);
void bind_local(Fn *f, Decl *decl, Local local);
Local *find_local(Fn *f, const Decl *decl);

/* ---- loop.c */
void lower_loop(Fn *f, Stmt *stmt);
void lower_static_for(Fn *f, Stmt *stmt);
bool loop_ends_with(Fn *f, Stmt *stmt); /* it is what a loop asks last in a round: that is stored */

/* ---- chain.c */
typedef struct Chain Chain;
struct Chain {
    int count; /* of conditions */
    Val *(*condition)(Fn *f, Chain *chain, int index);
    void (*branch)(Fn *f, Chain *chain, int index); /* index is count: if no condition holds */
    void *of;                                       /* Stmt or Expr */
    Val *to;                                        /* Expr: where the value goes */
    Val *open;                                      /* whether no condition has held; NULL: a short chain */
    bool passes, ended; /* some branch so far does not leave; one is known to be taken, at the latest */
};
bool chain_is_long(int count);
void lower_chain(Fn *f, Chain *chain);

/* ---- throw.c */
void lower_throw(Fn *f, Stmt *stmt);
void lower_try_block(Fn *f, Stmt *stmt);
Val *lower_try(Fn *f, Expr *e, Val *into); /* the value, or NULL if it went `into` or there is none */
void begin_error(Fn *f);                   /* no error yet */
bool may_fail(const Expr *e);

/* A loop over numbers that is being written. */
typedef struct Count {
    Val *index;
    Builder outside;
    CountLoop loop;
} Count;

/* ---- enums.c */
const EnumNames *lower_enum(Lowerer *l, const Type *type);
Val *lower_case(Lowerer *l, const Decl *decl, const Type *type);

/* ---- expr.c */
Val *lower_value(Fn *f, Expr *e);         /* of simple type */
void lower_into(Fn *f, Expr *e, Val *to); /* of any type, into memory that nothing else refers to */
Val *lower_address(Fn *f, Expr *e);       /* memory with the value, to be read only */
void lower_effect(Fn *f, Expr *e);        /* for its effects */
Val *temp_var(Fn *f, const Type *front, const char *name);
Val *lower_condition(Fn *f, Expr *e);
Count begin_count(Fn *f, int64_t first, int64_t end); /* code for each number goes between the two */
void end_count(Fn *f, Count *count);
void default_elements(Fn *f, const Type *element, Val *to, int64_t first);
void store_default(Fn *f, const Type *front, Val *to);
Val *const_int(Fn *f, TypeKind kind, int64_t value);
bool expr_constant(Fn *f, Expr *e, int64_t *value);
const Subst *concrete_subst(Fn *f, const Subst *subst);
Val *lower_value_under(Fn *f, Expr *e, const Subst *subst);

/* ---- reference.c */
bool accessor_lies_elsewhere(
    Fn *f, const Place *place); /* what it gives has an address, in memory that others may see */
Val *accessor_reference(Fn *f, const Place *place); /* to read and write; NULL: there is no such address */

/* ---- place.c */
Place lower_place(Fn *f, Expr *e);
Val *place_load(Fn *f, const Place *place);                  /* simple */
void place_load_into(Fn *f, const Place *place, Val *to);    /* any */
void place_store(Fn *f, const Place *place, Val *value);     /* simple */
void place_store_from(Fn *f, const Place *place, Val *from); /* aggregate at an address */
Val *place_address(Fn *f, const Place *place);               /* to read from; a copy if it must be */
Val *place_reference(Fn *f, const Place *place); /* to read and write; NULL: there is no such address */
Place place_of_memory(Val *address, const Type *front);
Place place_field(Fn *f, Place base, Decl *field);
Place place_new_field(Fn *f, Val *object, const Type *type,
                      Decl *field);                  /* to be initialised, in the order of the fields */
void place_init(Fn *f, const Place *place, Expr *e); /* of a new field; NULL: the default of its type */
void place_default(Fn *f, const Place *place, const Type *type, Decl *field); /* as its struct says */
bool is_transposed(const Type *front);                                        /* column-major */
void copy_object(Fn *f, Val *to, Val *from, bool no_diff);
void copy_constant(Fn *f, Val *to, Val *from); /* references in it, too */
Val *detached(Fn *f, Val *value, bool no_diff);

/* ---- call.c */
void call_defaults(Fn *f, Request *request, Val *into); /* all arguments are defaults */
Val *lower_call(Fn *f, Expr *e, Val *into);             /* result: the value, or NULL if it went `into` */
Val *call_func(Fn *f, Func *func, Val **args, int nargs, const Type *result, Val *into);
typedef struct Callee {
    Request *request; /* NULL: native */
    Decl *decl;
    const Subst *subst;
    const char *native; /* dzero, dadd, ... */
    const Type *native_type;
    Decl *requirement; /* that it was found for */
} Callee;
/* The implementation's generics take the arguments that were given for the requirement's. */
const Subst *own_arguments(Lowerer *l, const Subst *found, Decl *implementation, const Decl *requirement,
                           const Subst *given);
Callee resolve_callee(Fn *f, Decl *decl, const Subst *subst);
Val *call_accessor(Fn *f, Decl *property, const Subst *subst, FuncFlavour flavour, const Place *object,
                   Val **args, int nargs, Val *new_value, Val *into);
Val *call_method(Fn *f, Decl *method, const Subst *subst, const Place *object, Val **values, int nvalues);

/* ---- convert.c, construct.c */
Val *lower_convert(Fn *f, Expr *e);
void lower_convert_into(Fn *f, Expr *e, Val *to);
void to_interface(Fn *f, const Type *interface, const Type *type, Val *value, Val *from, Val *to);
Val *lower_construct(Fn *f, Expr *e);
void lower_construct_into(Fn *f, Expr *e, Val *to);
Val *convert_numeric(Fn *f, Val *value, const Type *to);
void convert_pair(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to);

/* ---- dynamic.c */
void lower_dispatch_body(Lowerer *l, Request *request);
void lower_opened_body(Lowerer *l, Request *request);
bool needs_opening(Lowerer *l, Decl *decl, const Subst *subst);
void differential_into_interface(Fn *f, Expr *e, const Type *interface, Val *to);
void lower_as(Fn *f, Expr *e, Val *to);
Val *lower_is(Fn *f, Expr *e);
void lower_move_body(Lowerer *l, Request *request);
void call_move(Fn *f, MoveKind kind, const Type *from_type, const Type *to_type, Val *from, Val *to);
Place dispatch_constant(Fn *f, Decl *requirement, const Subst *subst, Expr *object);
void pass_between(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to);

/* ---- external.c */
bool has_external_form(Lowerer *l, const Type *type);
const Type *lower_external_type(Lowerer *l, const Type *type); /* as lower_type, in the form of buffers */
Layout external_layout(Lowerer *l, const Type *type);
void settle_external(Lowerer *l, const Type *interface); /* its size is final */
int64_t external_room(Lowerer *l, const Type *interface);
bool fits_external(Lowerer *l, const Type *interface, const Type *type); /* a value of that type, behind it */
void from_external(Fn *f, const Type *type, Val *from, Val *to);         /* within local memory */
void to_external(Fn *f, const Type *type, Val *from, Val *to);
void load_external(Fn *f, const Type *type, Val *from, Val *to); /* from memory that others see */
void store_external(Fn *f, const Type *type, Val *from, Val *to);

/* ---- intrinsic.c */
/* One operation of the IR on values (addresses for aggregates); the result, or NULL if it went `into`. */
Val *lower_op(Fn *f, Decl *decl, const Subst *subst, Val **args, Val *into);
bool lower_intrinsic(Fn *f, Decl *decl, const Subst *subst, Expr *e, Val *into, Val **result);

/* ---- global.c */
void lower_static(Fn *f, Decl *decl); /* where a static variable is declared in a function */
Place global_place(Fn *f, Decl *decl, const Subst *subst);
void lower_global_init(Lowerer *l, Request *request);
Val *lower_text(Fn *f, Str text);

/* ---- constant.c */
bool is_constant(const Decl *decl);
const Constant *constant_value(Lowerer *l, Decl *decl, const Subst *subst); /* of simple type */
bool constant_is_known(const Constant *constant);
Val *constant_build(Fn *f, const Constant *constant, const Type *ir);
/* The scalars of an initialiser in order of the layout; false: some are not known. */
bool constant_data(Lowerer *l, Expr *init, const Type *front, const Subst *subst, ValVec *out);

/* ---- native.c: what differentiable types have without a declaration */
Val *lower_native(Fn *f, const Callee *callee, Expr *e, Val *into);
/* The sum of two values of a differential, where the source says what that is; else NULL. */
Func *own_method(Lowerer *l, const Type *type, const char *name);
Func *own_sum(Lowerer *l, const Type *differential);

#define lower_report(f, ...) diag_report((f)->l->m->diags, __VA_ARGS__)

/* ---- pack.c */
Local *pack_element(Fn *f, Expr *e); /* of EXPR_each: the current element; NULL: of a tuple */
Val *each_address(Fn *f, Expr *e);
int expansion_length(Fn *f, const Expr *expansion);
/* Calls `lower` for each element of an expansion, with the expression that it is. */
void for_expansion(Fn *f, Expr *e, void (*lower)(Fn *f, Expr *pattern, void *user), void *user);
void lower_expand(Fn *f, Expr *e);
bool names_element(const Expr *e);
Expr *enter_element(Fn *f, Expr *e);

#endif
