/* check: names, types, overloads, conversions, generics, conformance, modules, attributes, derivative
 * signatures.
 *
 * The checker fills in the tree that syntax made. It is driven by demand: a declaration is checked when
 * somebody needs to know about it, so that the order of declarations never matters and an unused part of the
 * prelude costs nothing. A generic declaration is checked once, in its generic form; lowering specialises it
 * by substitution.
 *
 * After checking, expressions are of the kinds listed as "checked" in nodes.def, literals, and a few that
 * keep their form (select, assign, lambda, is, as, sizeof ...). */
#ifndef SLOPE_CHECK_H
#define SLOPE_CHECK_H

#include "syntax/syntax.h"

typedef struct Checker Checker;

/* ---- generic arguments */

/* Arguments for the parameters of `owner` (a generic declaration, or an interface, whose argument 0 is This),
 * and through `outer` for the generic declarations around it. Interned: equal substitutions are one pointer.
 * NULL: none. */
struct Subst {
    const Subst *outer;
    const Decl *owner;
    int nargs;
    const Type *args[];
};

/* ---- signatures */

typedef enum PassMode { PASS_in, PASS_out, PASS_inout, PASS_ref, PASS_constref } PassMode;

typedef struct ParamSig {
    Name name;
    const Type *type;
    uint8_t pass; /* PassMode */
    bool no_diff;
    bool is_pack;  /* stands for any number of arguments */
    bool is_error; /* of a function that throws: see sig_throws */
    int index;     /* lowering: of the parameter as declared, where packs are taken apart */
    Decl *decl;    /* NULL in derivative signatures */
} ParamSig;

typedef struct FuncSig {
    ParamSig *params;
    int nparams;
    const Type *result;
    bool result_no_diff;
    /* `this`, unless static: */
    bool has_this, this_no_diff;
    uint8_t this_pass;
    const Type *this_type;
    bool is_init; /* constructor: `this` is the result */
} FuncSig;

/* What the error of a function that throws goes to: its last parameter, `out Optional<E>`, which nobody
 * writes. */
static inline bool sig_throws(const FuncSig *sig) {
    return sig->nparams > 0 && sig->params[sig->nparams - 1].is_error;
}

/* ---- conformance */

typedef enum SatisfyKind {
    SATISFY_none,
    SATISFY_decl,    /* by the declaration `decl` with `subst` */
    SATISFY_type,    /* associated type: `type` */
    SATISFY_default, /* by the interface's own default implementation */
    SATISFY_field,   /* a property by a field: `decl` */
} SatisfyKind;

typedef struct Satisfaction {
    uint8_t kind;
    Decl *requirement;
    Decl *decl;
    const Subst *subst; /* in terms of the parameters of the conformance's declaration */
    const Type *type;
} Satisfaction;

/* That `type` (in generic form: of the struct or the extension's target) conforms to `interface`. */
typedef struct Conformance {
    Decl *decl;            /* struct, or extension */
    const Type *type;      /* in terms of decl's own parameters */
    const Type *interface; /* TYPE_interface, likewise */
    Loc loc;
    bool checked;
    uint8_t of_base; /* declared by the base: what is known of it */
    Map satisfied;   /* requirement Decl -> Satisfaction */
} Conformance;

/* A conformance of a particular type: the generic one, with arguments for decl's parameters. */
typedef struct Witness {
    const Conformance *conformance; /* NULL: by a constraint, or an interface value itself */
    const Subst *subst;
} Witness;

/* ---- what the checker knows about a declaration */

typedef enum DeclState { STATE_new, STATE_busy, STATE_header, STATE_body_busy, STATE_body } DeclState;

typedef enum DeclFlags {
    DECL_MUTATING = 1 << 0,
    DECL_NONMUTATING = 1 << 1,
    DECL_FWD = 1 << 2, /* differentiable forward ... */
    DECL_BWD = 1 << 3, /* ... and backward, by its own body */
    DECL_TREAT_AS_DIFF = 1 << 4,
    DECL_NO_DIFF_THIS = 1 << 5,
    DECL_FORCE_INLINE = 1 << 6,
    DECL_NO_INLINE = 1 << 7,
    DECL_RECOMPUTE = 1 << 8,
    DECL_RECOMPUTE_EFFECTS = 1 << 9,
    DECL_CHECKPOINT = 1 << 10,
    DECL_DERIV_METHOD = 1 << 11, /* [deriv_method]: this is a pair */
    DECL_TRANSPOSABLE = 1 << 12, /* forward derivative whose transpose is the backward one */
    DECL_UNSCOPED = 1 << 13,     /* enum */
    DECL_FLAGS_ENUM = 1 << 14,
    DECL_PRELUDE = 1 << 15,
    DECL_ENTRY = 1 << 16,
    DECL_REQUIREMENT = 1 << 17, /* a member of an interface that types must provide */
    DECL_HAS_DEFAULT = 1 << 18, /* ... with a default implementation */
    DECL_ASSIGNED = 1 << 19,    /* parameter: written to in the body */
    DECL_BEFORE_CASE = 1 << 20, /* variable: in the body of a switch, and a label follows ... */
    DECL_BUSY_CONST = 1 << 21,  /* its value is being computed */
    DECL_MODERN = 1 << 22,      /* module: visibility is spelled out */
    DECL_IN_CASES = 1 << 23,    /* ... behind which it is used */
    DECL_DEPRECATED = 1 << 24,
    DECL_BASE_ERROR = 1 << 25, /* something that it inherits from is an error */
    DECL_SELF_DIFF = 1 << 26,  /* struct: its synthesized Differential is itself */
    DECL_BODY_ERRORS = 1 << 27,
    DECL_GLSL = 1 << 30,     /* module: imports glsl */
    DECL_LAUNCHED = 1 << 29, /* an entry point whose parameters are given by the host, as CUDA has it */
    DECL_NO_CYCLE = 1 << 28, /* constant: its value does not depend on itself */
} DeclFlags;

typedef enum Visibility { VISIBLE_default, VISIBLE_public, VISIBLE_internal, VISIBLE_private } Visibility;

/* A reference to a function in an attribute: a declaration with arguments. */
typedef struct FuncRef {
    Decl *decl;
    const Subst *subst; /* in terms of the parameters of the function that has the attribute */
} FuncRef;

typedef struct Sema {
    FuncSig *sig;                 /* func */
    const Type *base;             /* struct: the struct it inherits from */
    VEC(const Type *) interfaces; /* struct, extension, interface, assoc, type_param: TYPE_interface each */
    bool bases_done, bases_busy;
    /* struct, extension: of the names that its interfaces declare, with what they inherit, ... */
    uint64_t inherited_bits;
    bool inherited_known; /* ... if they were looked at */
    Map reached; /* struct, extension: interface Decl that it leads to, itself or by inheritance -> this */
    bool reached_all;      /* the list is complete */
    bool promises_nothing; /* interface: neither it nor those it inherits constrain associated types */
    VEC(Conformance *) conformances; /* struct, extension */
    DeclVec fields;                  /* struct: own instance fields, in order */
    DeclVec inits;                   /* struct: constructors, of extensions not included */
    bool members_done;
    bool finite;            /* struct: it was found not to contain itself */
    bool containment_known; /* struct: whether it is was looked at, or is being */
    const Type *target;     /* extension */
    const Type *underlying; /* enum */
    const double *range;    /* parameter: [Range(low, high)]; NULL: none */
    int64_t value;          /* enum case; width of a bit field; constant variable: if it is an integer */
    double real_value;      /* constant variable: if it is a floating number */
    uint8_t constant;       /* variable: 0 not asked yet, 1 integer, 2 floating, 3 not known */
    int builtin_kind;       /* prelude struct that stands for a built-in type: its TypeKind */
    int64_t builtin_number; /* ... BufferKind */
    Name op;                /* prelude function: [__op(name)] or [__intrinsic(name)] */
    int group_size[3];      /* entry point */
    int overload_rank;
    /* derivatives */
    Decl *differential;                   /* struct: synthesized Differential, or NULL */
    FuncRef fwd, bwd, substitute, primal; /* resolved attributes; decl NULL: none */
    DeclVec specials;   /* generic function: what stands for specialisations with derivatives */
    FuncRef special_of; /* ... the function, with arguments in terms of their parameters */
    bool derivatives_done, derivatives_busy, pass_done;
    bool derivatives_broken; /* one that was named cannot be used, which was told */
    Attribute *fwd_attr, *bwd_attr, *bwd_attr2, *substitute_attr, *primal_attr;
    Expr *derivative_member; /* field: argument of [DerivativeMember] */
    Decl *member_said_in;    /* ... the extension that has it on an extern field; NULL: it is on the field */
    const Decl *came_from;   /* local of type o.D: the variable o */
    DeclVec captures;        /* lambda: captured variables; fields of its struct in the same order */
    Decl *lambda_struct;
    Decl *ref_accessor;     /* get, set, address: made from this `ref` */
    Decl *address;          /* ref: the function that gives the address of its place */
    bool gives_own;         /* ref: what it gives may be a part of the object, which has no lasting address */
    ExprVec given_by;       /* ref: ... or of what these accessors give */
    Decl *return_value;     /* func: the variable __return_val; NULL: not mentioned */
    int64_t any_value_size; /* interface */
    Str stage;              /* entry point of another stage than compute: its name */
    uint16_t image_format;  /* variable: [format(...)], see image.c; 0: none */
    /* module */
    DeclVec imports;  /* modules, directly imported or re-exported to here */
    DeclVec exported; /* modules that importers see too */
    Name module_name;
    Name file;           /* path */
    const char *foreign; /* func: why it cannot be compiled for the target; NULL: it can */
    Loc foreign_loc;
    DeclVec usings;     /* module, namespace: namespaces used */
    DeclVec extensions; /* module: all extensions in it */
    VEC(Name) parts;    /* files joined by __include */
} Sema;

/* ---- conversions: Expr.conversion of EXPR_convert */

typedef enum ConversionKind {
    CONVERT_none,
    CONVERT_numeric,      /* scalar, vector or matrix, element by element; bool too */
    CONVERT_splat,        /* scalar to vector or matrix; the element is converted first */
    CONVERT_single,       /* vector of one lane to or from scalar */
    CONVERT_enum,         /* between an enum and an integer */
    CONVERT_bool,         /* anything to bool, for conditions */
    CONVERT_to_interface, /* concrete value into an interface value */
    CONVERT_interface,    /* interface value to another interface that its own inherits */
    CONVERT_upcast,       /* struct to its base */
    CONVERT_optional,     /* T to Optional<T> */
    CONVERT_optional_map, /* Optional<T> to Optional<U> */
    CONVERT_null,         /* none to Optional<T>, nullptr to a pointer */
    CONVERT_unsized,      /* sized array to unsized array parameter */
    CONVERT_pointer,      /* between pointer types */
    CONVERT_pair,         /* DifferentialPair<A> to DifferentialPair<I> */
    CONVERT_same_bits,    /* int and uint of one size; a place stays a place */
    CONVERT_truncate,     /* matrix to a smaller one */
    CONVERT_same,         /* same representation: equal types written differently */
    CONVERT_promised, /* that a constraint promises: found once the types are known; a cast if EXPR_EXPLICIT */
    CONVERT_interface_diff, /* Differential of an interface, from or to a concrete Differential */
} ConversionKind;

/* ---- the session's checker */

/* The standard library, read once and used by any number of checkers; see library.c. */
typedef struct Library Library;
typedef struct PreludeFile {
    const char *name, *text;
    int len;
} PreludeFile;
/* One declaration of the library. The build makes the list of them all: cmake/index.c. */
typedef struct PreludeRow {
    int file;
    int at;                    /* its first token */
    const char *name;          /* NULL: it has none */
    const char *derivative_of; /* NULL: of nothing */
    bool is_extension;
} PreludeRow;
typedef VEC(PreludeRow) PreludeRows;
void library_index(Syntax *syntax, const PreludeFile *files, int nfiles, PreludeRows *out);
/* In the arena of `syntax`. Nothing is added to its names and sources while programs use them. */
Library *library_new(Syntax *syntax, const PreludeFile *files, const PreludeRow *rows);
/* Before the first program: what its text names will be declared from the start, and is in that of the
 * second. */
void library_expect(Library *library, const Names *names, Str text);
/* Between programs: files that they had to read themselves are read, and what they asked for will be declared
 * from the start. True: that is more than before, so that checkers made earlier are not to be used again. */
bool library_keep(Syntax *syntax, Library *library);
bool library_is_ready(const Library *library); /* something is declared from the start */

typedef struct CheckerConfig {
    Syntax *syntax;
    Types *types;
    /* Source text of a module. `from`: the importing file; NULL: the command line. */
    bool (*find_module)(void *user, Str path, Name from, Str *text, Name *found);
    void *user;
    const Library *library;    /* NULL: there is none */
    const char **conformances; /* -conformance T:I=ID */
    int nconformances;
} CheckerConfig;

/* check.c */
Checker *checker_new(Arena *arena, const CheckerConfig *config);
void check_imported(Checker *checker); /* bodies of imported modules, all but the prelude */
Decl *check_prelude(Checker *checker);

/* One function, with arguments and derivative operators, from such an expression. False after an error. */
typedef struct CheckedFunction {
    Decl *decl;
    const Subst *subst;
    uint8_t modes[8];
    int nmodes;
} CheckedFunction;
bool check_function(Checker *checker, Decl *module, Expr *expr, CheckedFunction *out);
const Type *check_type(Checker *checker, Decl *module, Expr *expr); /* NULL after an error */
const DeclVec *check_modules(Checker *checker);                     /* the prelude first */

void check_add_conformances(Checker *checker); /* of -conformance; after the program is loaded */
int check_semantic(
    Name name); /* 0 dispatch thread id, 1 group id, 2 group thread id, 3 group index; -1: none of them */
/* Of an entry point: is this parameter told by the machine, or a struct of such values, and not set from
 * outside? */
bool check_takes_thread(Checker *checker, const Decl *param);

/* The prelude declaration of that name. */
Decl *check_prelude_decl(Checker *checker, const char *name);

/* header.c and friends, for lowering: everything below works on checked declarations. */
void check_decl_header(Checker *checker, Decl *decl); /* types and signature */
Sema *decl_sema(Checker *checker, Decl *decl);
const FuncSig *check_signature(Checker *checker, Decl *func);

/* generics.c */
/* Is an interface value for a parameter of this generic type opened, so that the type is what it holds? */
bool check_opens(Checker *checker, const FuncSig *sig, const Type *param);

/* subst.c */
const Subst *subst_new(Checker *checker, const Subst *outer, const Decl *owner, const Type *const *args,
                       int nargs);
const Type *check_subst(Checker *checker, const Type *type, const Subst *subst);
int check_value_pack_length(const Decl *param, const Subst *subst); /* of a pack of values */
int check_pack_length(Checker *checker, const Type *type,
                      const Subst *subst); /* of the packs it mentions; -1: none */
const Subst *check_subst_subst(Checker *checker, const Subst *inner,
                               const Subst *subst); /* args of inner substituted */
const Subst *subst_for_decl(Checker *checker, const Decl *decl,
                            const Subst *subst); /* only what decl can mention */
const Subst *subst_of_type(Checker *checker,
                           const Type *type); /* of a TYPE_struct etc.: for its declaration */
const Type *check_subst_element(Checker *checker, const Type *type, const Subst *subst,
                                int element); /* inside expand */
const Type *subst_find(const Subst *subst, const Decl *owner, int index);
const Type *check_self_type(Checker *checker, const Decl *type_decl);
/* The arguments of a requirement that is called on an interface value, for one type that may be in it. */
const Subst *check_subst_behind(Checker *checker, const Subst *subst, const Decl *interface,
                                const Type *type);
const Type *check_type_around(Checker *checker, const Type *nested); /* the struct that it is nested in */

/* conform.c */
const Type *check_base(Checker *checker, const Type *type); /* what a struct inherits from; NULL: nothing */
bool check_conforms(Checker *checker, const Type *type, const Type *interface, Witness *witness);
/* How `type` provides a requirement of an interface it conforms to. `interface_subst` has the interface's
 * arguments and This. The subst of the result is complete. */
Satisfaction check_witness(Checker *checker, const Type *type, Decl *requirement,
                           const Subst *interface_subst);
/* Concrete types that can stand behind an interface in the loaded modules, in a fixed order; generic types
 * only as far as somebody mentioned an instance with check_add_conformer. */
typedef VEC(const Type *) TypeVec;
const TypeVec *check_conformers(Checker *checker, const Type *interface);
int check_add_conformer(Checker *checker, const Type *interface, const Type *type); /* its index */
int64_t check_conformer_id(Checker *checker, const Type *interface,
                           int index); /* as -conformance says, or the index */

int64_t check_any_value_size(Checker *checker, const Type *interface); /* of [anyValueSize]; 0: none */
const Type *check_enum_underlying(Checker *checker, const Type *type);
/* How a type provides a method of IDifferentiable; kind SATISFY_none: by structure. */
Satisfaction check_differentiable_witness(Checker *checker, const Type *type, const char *method,
                                          Decl **requirement);

/* diff.c */
void check_derivatives(Checker *checker, Decl *func); /* resolves its derivative attributes */
bool check_is_differentiable(Checker *checker, Decl *func, DiffMode mode); /* in whatever way */
Decl *check_differentiated(Checker *checker, Decl *func); /* itself, or what takes its place in derivatives */
bool check_is_inlined(const Decl *func);                  /* unmarked, but differentiated through */

/* flowgiven.c */
/* Has it a derivative in this mode, and so all that it calls? */
bool check_keeps_derivative(Checker *checker, Decl *func, const Subst *subst, DiffMode mode);

/* convert.c */
Expr *check_promised_conversion(Checker *checker, Decl *variable, const Type *to, bool explicitly);

/* attribute.c */
Attribute *find_attribute(const Decl *decl, const char *name); /* NULL: it has none */

/* construct.c */
Expr *check_default_value(Checker *checker, Loc loc, const Type *type);
bool has_default_init(Checker *checker, const Type *type, Decl **init); /* a constructor without arguments */
bool has_default(
    Checker *checker,
    const Type *type); /* that, or fields with default values: what has no value begins with those */
DeclVec check_all_fields(Checker *checker,
                         const Type *type); /* of a struct, those of its base first; to be read */
const Type *check_field_type(Checker *checker, const Type *type, Decl *field);
/* Where the fields of check_all_fields are: bit fields that follow each other share a member of the
 * record. */
typedef struct FieldSlot {
    int member;
    int bit_offset, bit_width; /* of a bit field */
    const Type *word;          /* of the member */
    bool is_first;             /* of the fields that share the member */
    bool is_bits;              /* a bit field; one without bits has no member */
} FieldSlot;
FieldSlot *check_field_slots(Checker *checker, const Type *type, const DeclVec *fields);

/* format.c */
const Expr *check_text_literal(const Expr *e); /* text that is known; NULL: it is not */
/* Of the conversion of printf that starts at `at`, up to its letter. Each `*` in it takes a value before. */
int check_conversion_length(Str format, int at, int *stars);

/* const.c */
/* Of an integer, bool or enum; `element`: of the packs in it, inside expand, -1: outside. */
bool check_constant(Checker *checker, Expr *expr, const Subst *subst, int element, int64_t *value);
bool check_type_is_a(Checker *checker, const Type *type, const Type *other); /* is it, or conforms to it */

/* print.c */
void check_print(Text *out, Checker *checker,
                 Decl *decl); /* `slope dump --after check`: a module or a function */

/* module.c */
/* Loads a file as a module, with everything it imports. Checks nothing yet. */
void check_link(Checker *checker, const char *path); /* a module for its exports */
Decl *check_load_text(Checker *checker, Name path, Str text);

/* scope.c */
Decl *decl_module(const Decl *decl);    /* that it stands in */
bool decl_is_library(const Decl *decl); /* of the prelude, or of a module that comes with it */

/* stmt.c */
void check_decl_body(Checker *checker, Decl *decl); /* of a function; initialiser of a variable */

/* signature.c */
/* Signature with everything substituted, derivative operators applied. */
FuncSig check_signature_of(Checker *checker, Decl *func, const Subst *subst, const uint8_t *modes, int nmodes,
                           bool bound_this);
/* Only the arguments of the interface that a requirement stands in are substituted: with them it is
 * differentiated. */
FuncSig check_generic_signature(Checker *checker, Decl *func, const Subst *subst, const uint8_t *modes,
                                int nmodes, bool bound_this);
/* Likewise, not differentiated; a pack that is known is as many parameters. */
FuncSig check_declared_signature(Checker *checker, Decl *func, const Subst *subst);
FuncSig check_subst_signature(Checker *checker, const FuncSig *sig, const Subst *subst);

/* call.c */
void check_default_argument_of(Checker *checker, Decl *param);

/* difftype.c */
/* Is a type, as it stands in the generic declaration `context`, differentiable? */
bool check_is_diff_type(Checker *checker, const Type *type, const Decl *context);
bool check_is_ptr_diff_type(Checker *checker, const Type *type, const Decl *context);
bool check_is_view(const Type *type); /* of a tensor, that has the memory for its derivatives with it */
/* That, or such a view, or what holds one. */
bool check_is_reference(Checker *checker, const Type *type, const Decl *context);
/* The Differential of a type, NULL if it is not IDifferentiable. */
const Type *check_differential(Checker *checker, const Type *type);
const Type *check_ptr_differential(Checker *checker,
                                   const Type *type); /* of an IDifferentiablePtrType, else NULL */
/* Field of the differential that holds the derivative of a field of a struct; NULL: none. */
Decl *check_differential_field(Checker *checker, const Type *type, Decl *field);
bool check_is_no_diff_field(const Decl *field);

/* funcext.c */
/* What has the derivatives of a specialisation, if they are its own; else `out` stays as it is. */
bool check_special(Checker *checker, Decl *func, const Subst *subst, FuncRef *out);

/* diffflow.c: where it, and what it calls, loses derivatives on a way that there is a warning for */
typedef VEC(Loc) LocVec;
LocVec check_lost_derivatives(Checker *checker, Decl *func);

/* attribute.c */
bool check_group_fits(const int64_t size[3]); /* not more threads than a group may have */

#endif
