/* Inside of check: the checker's state and what its files offer each other. */
#ifndef SLOPE_CHECKER_H
#define SLOPE_CHECKER_H

#include "check/check.h"

/* ---- state */

typedef struct Scope Scope;

/* Names visible at a place. A scope with `decl` holds the members of that declaration; others are blocks. */
struct Scope {
    Scope *outer;
    Decl *decl;
    Map names;        /* Name -> DeclVec * */
    uint64_t bits;    /* of these names */
    bool is_generics; /* generic parameters of decl */
    bool is_params;   /* parameters of decl */
    DeclVec usings;   /* namespaces made visible by `using` in a block */
    Checker *library; /* names are those of the library, declared when asked for; NULL: just what is in it */
};

/* Names the checker itself looks for, interned once. */
typedef struct Known {
#define X(name) Name name;
#include "check/known.def"
#undef X
    Name call, subscript;           /* operator(), __subscript */
    Name operators[OPERATOR_COUNT]; /* "operator+" ... */
} Known;

/* -conformance T:I=ID */
typedef struct GivenConformance {
    const Type *type, *interface;
    int64_t id; /* -1: none */
} GivenConformance;

/* A derivative that the program asks for. */
typedef struct DiffRequest {
    Decl *func;
    uint8_t modes; /* bits: 1 << DiffMode */
    Loc loc;
} DiffRequest;

/* A function, or a parameter that is one, as argument of a call. */
typedef struct GivenFunction {
    const Decl *caller, *callee, *param;
    const Expr *arg;
} GivenFunction;

typedef struct ConformQuery ConformQuery; /* conform.c */

typedef enum EffectKind {
    EFFECT_memory, /* changes memory that others see: buffers, globals */
    EFFECT_output, /* that, or prints */
    EFFECT_source, /* calls what says its own derivative */
    EFFECT_reads,  /* reads elements that have a derivative by a reference of the library */
    EFFECT_count
} EffectKind;

struct Checker {
    Arena *arena;
    Types *types;
    Names *names;
    Sources *sources;
    Diags *diags;
    CheckerConfig config;
    Known known;
    Decl *prelude;
    DeclVec modules; /* in order of loading, the prelude first */
    Map by_path;     /* Name -> module */
    VEC(struct Loading {
        Name path;
        Loc loc; /* of the import */
    })
    loading; /* files being loaded, for cycles */
    InternTable substs;
    Decl *builtin[TYPE_KIND_COUNT]; /* prelude declarations of built-in types, so far; see library_builtin */
    Decl *buffers[8];
    Syntax *library_syntax;
    struct ParseFile **library_files; /* the tokens of the library; NULL: not read yet */
    DeclVec library_extensions;       /* of files that were read */
    int library_extensions_indexed;
    Map refused_members;           /* names that interfaces were to be given by extensions: said already */
    DeclVec unfinished_extensions; /* whose target is not known yet */
    Decl **declared;               /* by row of the library; NULL: not yet */
    /* extensions by the declaration of what they extend; key 1: of a bare parameter */
    Map extensions;        /* Decl -> DeclVec * */
    int extension_modules; /* how many of `modules` are in it */
    Map conform_cache;     /* hash of (type, interface) -> CachedWitness */
    ConformQuery *queries; /* being answered */
    bool query_cut;        /* an answer was given up because it was asked for already */
    Map conformers;        /* interface Type -> struct ConformerSet */
    Map inherited;         /* interface Type -> TypeVec: itself and what it inherits */
    ExprVec large;         /* numbers without suffix that are infinite, unless they become doubles */
    struct OwnOperators *own_operators; /* by Operator, see operator.c; NULL: not looked for yet */
    VEC(GivenConformance) given;
    bool conformances_done; /* `given` is filled in */
    Map derivative_of;      /* Name -> DeclVec of functions that say they are a derivative of it */
    int derivative_modules;
    Map effects[EFFECT_count]; /* Decl -> itself if it has some, see effects.c */
    Map told_losses;           /* causes of lost derivatives that were reported */
    Map flow_facts;            /* Decl -> FlowFacts, see diffflow.c */
    VEC(DiffRequest) diff_requests;
    int diff_requests_done;
    Map diff_searched[2]; /* functions looked into for them, by mode */
    VEC(GivenFunction) given_functions;
    Map differentiated;     /* parameters that are functions -> how, see flowgiven.c */
    const Decl *context;    /* the declaration whose constraints are in force */
    int depth;              /* of nested checks, against endless generics */
    Map layouts;            /* Type -> Layout, those that are known */
    Map open_arrays;        /* Type -> itself if it has an array without a size, else anything */
    Map conjunctions;       /* Name -> Decl: I & J, by what is joined */
    Map named_types;        /* Name -> Type: float3 and the like, so far */
    const Decl *unknown_in; /* the declaration whose unknown names these are, reported once each */
    Map unknown_names;
    int searches;   /* for what an unknown name might mean */
    Map list_costs; /* Expr of a list -> ListCost of construct.c */
    int subst_depth, expr_depth, layout_depth;
    int expand_depth, each_count; /* inside how many expand; how many each were seen */
    bool expand_around;           /* inside a lambda that has an expand around it */
    bool has_equations;           /* somewhere a generic parameter is said to be a type: where T == int */
    const Decl *header;           /* being found out: there parameters stay, for inference */
    const Type *nonempty_pack;    /* in the third operand of __packBranch: its pack */
    bool too_deep;                /* reported */
    Map *optional_bounds;         /* Constraint -> itself: optional ones known to hold here */
};

/* What is known at a place in a body. */
typedef struct LambdaState LambdaState;
typedef struct LabelList {
    struct LabelList *outer;
    Name label;
    Stmt *stmt;
} LabelList;
typedef struct TryList { /* the blocks with handlers around a place, innermost first */
    struct TryList *outer;
    Stmt *stmt;
} TryList;
typedef struct Env {
    Checker *c;
    Scope *scope;
    Decl *decl;            /* the function (or other declaration) being checked */
    const Decl *head;      /* whose bases or constraints these are: nothing that it inherits is known yet */
    const FuncSig *sig;    /* of decl, if it is a function */
    const Type *this_type; /* NULL: no `this` */
    bool this_writable;
    bool is_static; /* inside a type, but without `this` */
    Stmt *breakable, *loop;
    LambdaState *lambda;
    LabelList *labels;
    TryList *tries;
    int in_switch;
    bool in_defer;
    const Expr *tried; /* what the 'try' around stands before; NULL: there is none */
    bool in_step;      /* the start or step of a for: comma is no surprise */
    bool in_attribute;
    const Expr *written; /* the term that is assigned to as a whole: it need not be readable */
    bool want_function;  /* the term may stay a function: operand of fwd_diff, attribute argument */
} Env;

/* ---- candidates of an overloaded name */

typedef struct Candidate {
    Decl *decl;
    const Subst *subst;        /* arguments for what is around decl, and for decl itself if `complete` */
    Expr *base;                /* object, for an instance member */
    const Type *base_type;     /* type through which a member was named: S.m */
    int distance;              /* scopes between the use and the declaration */
    const Type *const *args;   /* explicit generic arguments */
    const Type *const *values; /* types of those that are values; NULL: a type */
    int nargs;
} Candidate;

struct Candidates {
    Candidate *at;
    int count, room;
    Name name;
    uint8_t modes[8];
    int nmodes;
};
typedef struct Candidates Candidates;

/* ---- check.c */
Decl *field_named(const Decl *type, Name name); /* its own; NULL: none */
void known_names(Names *names, Arena *arena, Known *known);
int64_t conformance_id(Checker *c, const Type *interface,
                       const Type *type); /* of -conformance; -1: none given */
bool conformance_id_taken(Checker *c, const Type *interface, int64_t id);

/* ---- scope.c */
Scope *scope_new(Checker *c, Scope *outer, Decl *decl);
Scope *scope_within(Checker *c, Scope *outer, Decl *decl); /* as if it stood there */
Scope *scope_inside(Checker *c, Decl *decl);               /* what is visible in its body */
void scope_add(Checker *c, Scope *scope, Decl *decl);
DeclVec *scope_find(Scope *scope, Name name);
Decl *decl_type_around(const Decl *decl); /* nearest struct, enum, interface or extension, itself excluded */
bool decl_is_static(const Decl *decl);
bool decl_is_extern_field(const Decl *decl);
bool decl_is_type(const Decl *decl);
bool decl_is_function(const Decl *decl);
Visibility decl_visibility(Checker *c, const Decl *decl);
bool decl_visible_from(Checker *c, const Decl *decl, const Decl *from);
Env env_for_decl(Checker *c, Decl *decl); /* for checking headers and bodies of decl */
Env env_for_head(Checker *c, Decl *decl); /* for its bases and constraints */

/* ---- lookup.c */
bool lookup_name(Env *env, Name name, Candidates *out);
/* The same for what most names are, a variable or a parameter of the function; false: it may be something
 * else. */
bool lookup_local(Env *env, Name name, Candidate *out);
Decl *module_named(Checker *c, Decl *from, Name name); /* module.c: itself or an import; NULL: none */
bool lookup_in_space(Checker *c, Decl *space, Name name, Candidates *out); /* namespace or module */
bool lookup_member(Checker *c, const Type *type, Name name, Candidates *out);
bool lookup_own_member(Checker *c, const Type *type, Name name, Candidates *out); /* without interfaces */
const Decl *find_local_decl(const Stmt *stmt,
                            Name name); /* a local variable somewhere in the body; NULL: none */
void type_vec_add_once(Checker *c, TypeVec *types, const Type *type);
void candidates_add(Checker *c, Candidates *list, Candidate candidate);  /* unless it is there */
void candidates_push(Checker *c, Candidates *list, Candidate candidate); /* that is known not to be there */
void report_unknown_name(Env *env, Expr *expr, Name name);
void report_not_visible(Checker *c, Loc loc, const Decl *decl);
void report_unknown_in_space(Env *env, Loc loc, const Expr *space, Name name);
void report_unknown_member(Env *env, Loc loc, const Type *type, Name name);
void note_instead(Checker *c, Name name, const char *meant); /* "did you mean", and what to write */

/* ---- subst.c */
const Type *param_type(Checker *c, const Decl *owner, int index);
const Type *param_argument(Checker *c, const Decl *owner, int index); /* a pack as its expansion */
const Type *this_type_of(Checker *c,
                         Decl *decl); /* of struct, enum, interface (its This), extension (its target) */
const Type *type_of_type_decl(Checker *c, Decl *decl); /* unspecialised: its own parameters as arguments */
const Type *type_with_subst(Checker *c, Decl *decl, const Subst *subst);
int generic_count(const Decl *decl); /* its own parameters; interfaces: This included */
Decl *generic_param(const Decl *owner, int index);
const Decl *type_head(Checker *c, const Type *type); /* declaration that holds its members, NULL: none */
bool type_is_abstract(const Type *type);             /* TYPE_param or an associated type of one */
const Subst *subst_identity(Checker *c, const Decl *decl); /* its own parameters as arguments */
const Type *assoc_of(Checker *c, const Type *base, Decl *assoc, const Subst *interface_subst);
/* The number that a constant is, in generic form; NULL: it is not known at compile time. */
const Type *constant_number(Checker *c, Decl *decl);
const Type *assoc_node(Checker *c, const Type *base, Decl *assoc,
                       const Subst *interface_subst); /* as it is */
const Subst *interface_subst(Checker *c, const Type *interface, const Type *self);
const Subst *subst_for_self(Checker *c, const Subst *subst, const Decl *interface, const Type *self);

/* ---- generics.c */
void ensure_generics(Checker *c, Decl *decl);
/* Is every constraint of decl satisfied under subst? If not, and `loc` is given, says so. */
bool constraints_hold(Checker *c, const Decl *decl, const Subst *subst, Loc loc);
const Type *generic_arg_for(Checker *c, const Decl *owner, Decl *param, const Type *arg,
                            const Type *value_type, Loc loc);
bool interface_as_argument(Checker *c, const Decl *decl, const Type *param, Loc loc);
/* Interfaces that an abstract type is known to conform to. */
void bounds_of(Checker *c, const Type *type, TypeVec *out);
/* Is a constraint or a base of it an error? Then nobody knows what else it has, and lacks are not reported. */
bool is_half_known(Checker *c, const Type *type);
/* What an associated type of an abstract type is known to equal, or NULL. */
const Type *known_equal(Checker *c, const Type *assoc);
const Type *known_type(Checker *c, const Type *type); /* what a parameter is known to be; or itself */
bool known_to_convert(Checker *c, const Type *from, const Type *to, bool implicitly);
const Subst *copy_generics(Checker *c, Decl *from, Decl *to, const Subst *outer);

/* infer.c */
typedef struct Inference {
    Checker *c;
    const Decl *owner;
    const Type **args; /* found so far, NULL: not yet */
    int nargs;
    int given; /* so many were written */
    bool *
        single_lane; /* by parameter: counts the lanes of a vector, and a scalar was given; NULL: not asked */
    bool failed;
    int conflict; /* failed: the parameter that would have to be both of these */
    const Type *first, *second;
} Inference;
void infer_match(Inference *inference, const Type *pattern, const Type *actual);
bool infer_extension(Checker *c, Decl *extension, const Type *type, const Subst **subst);
const Type *join_types(Checker *c, const Type *a, const Type *b); /* of operands; NULL: none */
bool infer_finish(Inference *inference, const Subst *outer, const Subst **subst);

/* ---- typeexpr.c */
const Type *resolve_type(Env *env, Expr *expr);    /* TYPE_error after a message */
const Type *resolve_number(Env *env, Expr *expr);  /* constant or generic integer expression */
void report_not_number(Checker *c, const Expr *e); /* e is neither; unless that was told already */
/* `values`: types of the arguments that are values; NULL: no arguments. */
const Type *apply_generic_type(Env *env, Loc loc, Decl *decl, const Subst *outer, const Type *const *args,
                               const Type *const *values, int nargs);
const Type *builtin_named_type(Checker *c, Name name); /* float3, int2x4, ...; NULL */
const Type *resolve_generic_arg(Env *env, Decl *param, Expr *expr);
const char *type_str(Checker *c, const Type *type);
const char *declared_name(Checker *c, const Type *type); /* as where it is declared: without arguments */
/* "1 argument", "2 to 3 arguments"; most -1: no limit. */
const char *range_text(Checker *c, int least, int most, const char *noun);
/* The type with its matrices (also in arrays) laid out in that way. Values are always row-major: column-major
 * ones exist only in memory, as the types of fields, elements and shader parameters. */
const Type *type_with_major(Checker *c, const Type *type, bool column_major);

/* ---- header.c */
void ensure_header(Checker *c, Decl *decl);
void ensure_bases(Checker *c, Decl *decl);
void ensure_members(Checker *c, Decl *decl);         /* fields and constructors of a struct are listed */
const Type *decl_value_type(Checker *c, Decl *decl); /* of a variable, field, property, case ... */
FuncSig *signature_of(Checker *c, Decl *func);
const Type *refuse_function_type(Checker *c, const Decl *decl, const Type *type); /* functions are no data */

/* ---- attribute.c */
void check_attributes(Checker *c, Decl *decl); /* known ones take effect, unknown ones are warned about */
void check_stmt_attributes(Env *env, Stmt *stmt);
void check_max_iters(Env *env, const Stmt *stmt); /* of a loop whose counter is not changed inside */

/* ---- expr.c */
Expr *check_term(Env *env, Expr *expr);  /* value, type, namespace or overloaded function */
Expr *check_value(Env *env, Expr *expr); /* a value; EXPR_error after a message */
Expr *check_value_of(Env *env, Expr *expr, const Type *type); /* converted */
Expr *error_expr(Checker *c, Loc loc);
Expr *type_expr(Checker *c, Loc loc, const Type *type);
Expr *decl_expr(Checker *c, Loc loc, Decl *decl, const Subst *subst, Expr *base);
Expr *expr_from_candidates(Env *env, Expr *expr, Candidates *list);
void report_deprecated(Checker *c, const Decl *decl, Loc loc);
bool has_accessor(const Decl *decl, FuncFlavour flavour);
uint32_t decl_place_flags(const Decl *decl, const Expr *base);
bool require_writable(Env *env, Expr *expr, Loc loc); /* reports why it is not */
void why_readonly(Env *env, const Expr *expr);        /* a note for the message before */
void mark_assigned(Expr *expr);

/* ---- expand.c */
Expr *check_each(Env *env, Expr *expr);
Expr *check_expand(Env *env, Expr *expr);
Expr *check_end(Env *env, Expr *expr);
Expr *check_trim(Env *env, Expr *expr);
Expr *check_branch(Env *env, Expr *expr);
Expr *as_expansion(Env *env, Expr *expr);
Expr *pack_as_tuple(Checker *c, Expr *pack);                 /* makeTuple(expand each pack) */
bool may_expand(Env *env, const Expr *e);                    /* an item that is not checked yet */
void splice_expansions(Env *env, ExprVec *items);            /* checks them, too */
const Type *expansion_count(Env *env, Expr *e);              /* how many values it makes */
Expr *coerce_expansion(Env *env, Expr *e, const Type *type); /* each value converted */

/* ---- operator.c */
Expr *check_unary(Env *env, Expr *expr);
Expr *check_postfix(Env *env, Expr *expr);
Expr *check_binary(Env *env, Expr *expr);
Expr *check_assign(Env *env, Expr *expr);
Expr *check_select(Env *env, Expr *expr);
bool is_builtin_operand(Checker *c, const Type *type);
Expr *check_condition(Env *env, Expr *expr);

/* ---- member.c */
Expr *check_member(Env *env, Expr *expr);
Expr *check_index(Env *env, Expr *expr);
Expr *check_apply(Env *env, Expr *expr);
Expr *auto_deref(Env *env, Expr *expr);
Expr *primal_part(Env *env, Expr *pair);
bool in_deriv_method(const Env *env);

/* ---- arguments.c */
int sig_written(const FuncSig *sig); /* parameters, without the one for the error */
int sig_packs(const FuncSig *sig);
int sig_share(const FuncSig *sig, int nargs); /* arguments for each pack */
int sig_first_arg(const FuncSig *sig, int nargs, int param);
int sig_param_of(const FuncSig *sig, int nargs, int arg);
int sig_required(const FuncSig *sig);

/* ---- call.c */
Expr *check_call(Env *env, Expr *expr);
/* Of two that take the same arguments; negative: a is what a call means. */
int compare_candidates(Checker *c, const Candidate *a, const Candidate *b);
Candidates *call_operators(Checker *c, Expr *object); /* bound to it; NULL: it has none */
Expr *resolve_call(Env *env, Loc loc, Candidates *list, ExprVec *args, bool quiet);
Expr *as_base(Env *env, Expr *object, const Type *type);
Expr *call_named(Env *env, Loc loc, Name name, Expr **args, int nargs, bool quiet); /* a global function */
void check_default_argument(Checker *c, Decl *param);
bool take_written_args(Inference *inference,
                       const Candidate *candidate); /* false: they are too many or of the wrong kind */
bool refuse_written_args(Env *env, Loc loc, const Candidate *candidate,
                         const char *name); /* tells why they are; false: they are not */

/* signature.c */
FuncSig derived_signature(Checker *c, Decl *decl, const Subst *subst, bool bound_this, const uint8_t *modes,
                          int nmodes);
bool refuse_open_derivative(Checker *c, Loc loc, Decl *decl, const Subst *subst);

/* ---- convert.c */
enum { COST_none = -1, COST_lane = 1, COST_splat = 2, COST_any_type = 10, COST_interface = 50 };
int conversion_cost(Env *env, const Expr *from, const Type *to); /* implicit; COST_none: impossible */
int type_conversion_cost(Env *env, const Type *from, const Type *to);
bool type_converts(Env *env, const Type *from, const Type *to); /* implicitly, in whatever way */
bool type_can_cast(Env *env, const Type *from, const Type *to);
Expr *coerce(Env *env, Expr *expr, const Type *to); /* reports if impossible */
Expr *convert_explicit(Env *env, Expr *expr, const Type *to, Loc loc);
void note_conversion(Checker *c, const Type *from,
                     const Type *to);             /* what to write where it is not implicit */
void note_large_number(Checker *c, Expr *e);      /* a float as written */
void report_large_numbers(Checker *c, int first); /* those of c->large from there on, and forgets them */
Expr *convert_node(Checker *c, Expr *expr, const Type *to, ConversionKind kind);
bool is_conditional(Checker *c, const Type *type); /* Conditional<T, flag> ... */
Expr *conditional_value(Env *env, Expr *e);        /* ... as an optional */
const Type *in_block(const Type *type);            /* of what is in a ConstantBuffer or ParameterBlock ... */
Expr *read_block(Env *env, Expr *e);               /* ... and that itself; anything else as it is */
bool types_match(Checker *c, const Type *a, const Type *b);
bool interface_inherits(Checker *c, const Type *sub, const Type *super);
const TypeVec *interface_with_inherited(Checker *c, const Type *interface);

void warn_quotient(Checker *c, const Expr *e, const Type *to); /* 1 / 2 * x */

/* ---- construct.c */
Expr *check_construct(Env *env, Loc loc, const Type *type, ExprVec *args); /* T(args) */
Expr *construct_by_extension(Env *env, Loc loc, const Type *type, ExprVec *args);
Expr *coerce_list(Env *env, Expr *list, const Type *type);
const Type *sized_by_init(Env *env, const Type *type, Decl *decl); /* a variable T a[] */
int list_cost(Env *env, const Expr *list, const Type *type);
Expr *default_value(Env *env, Loc loc, const Type *type); /* what `= {}` gives */

/* ---- image.c */
void check_image_format(Checker *c, Decl *decl, const Attribute *attribute);

/* ---- target.c */
void check_foreign_lambda(Env *around,
                          Decl *lambda); /* what it has no code for, the function around it has none for */
Expr *check_assembly(Env *env, Expr *e);
void check_target_switch(Env *env, Stmt *stmt); /* it becomes the branch that is taken */
void check_discard(Env *env, const Stmt *stmt);
bool is_launch(const Expr *callee);
Expr *check_launch(Env *env, Expr *e);
void check_intrinsic_asm(Env *env, Stmt *stmt); /* it becomes the statement that it stands for */
Stmt *target_body(Checker *c, Decl *func);      /* of a function that has attributes instead; NULL: none */

/* ---- check.c */
bool declarations_clash(Checker *c, Decl *a, Decl *b); /* both cannot be there */

/* ---- stmt.c */
void check_declaration(Checker *c, Decl *decl); /* check.c: everything about it and in it */
void check_stmt(Env *env, Stmt *stmt);
Decl *hidden_variable(Env *env, Loc loc, Name name,
                      const Type *type); /* local, and declared by no statement */
bool always_leaves(const Stmt *stmt);

/* ---- throw.c */
Expr *check_try(Env *env, Expr *e);
Expr *untried(Env *env, Expr *e); /* a call that may fail, without try: told */
Expr *error_variable(Env *env, Loc loc, const Type *type);
void check_throw(Env *env, Stmt *stmt);
void check_try_block(Env *env, Stmt *stmt);
const Type *error_param_type(Env *env, Expr *throws); /* Optional<E>, DifferentialPair<Optional<E>> */
const Type *thrown_type(Checker *c, const Type *param);
void add_error_param(Checker *c, Env *env, Decl *func);

/* ---- funcext.c */
Decl *adapt_derivative(Checker *c, const FuncSig *wanted, Decl *written);  /* NULL: it cannot be called so */
Decl *make_special(Checker *c, const Candidate *target, Decl *derivative); /* NULL: not for such functions */
bool special_fits_around(Checker *c, Decl *special, const Subst *outer, const Subst **out);
/* __func_extension __apply(primal); `outer`: arguments for what is around it, in terms of the primal's
 * parameters. */
bool link_apply(Checker *c, Decl *primal, Decl *apply, const Subst *outer);
void place_apply(Checker *c, Decl *apply); /* of a method: it becomes one */
void check_apply_of(Checker *c, Decl *apply, const Candidates *targets, Loc loc);

/* ---- link.c */
void link_externs(Checker *c); /* what is extern becomes what is exported under its name */

/* ---- format.c */
void check_format(Checker *c, const Expr *call); /* of printf */

/* ---- assigned.c */
void check_assigned(Checker *c, Decl *func); /* variables read before they can have a value */

/* ---- alias.c */
void check_aliases(Env *env, Expr *const *places, int count); /* arguments that one call writes */

/* ---- lambda.c */
Expr *check_lambda(Env *env, Expr *expr);
Expr *lambda_capture(Env *env, Expr *expr, Decl *decl); /* a variable named inside a lambda */
void lambda_return(Env *env, Stmt *stmt);
bool lambda_this(Env *env, Expr *expr, Expr **out);
bool is_captured(const Env *env, const Expr *e);
bool is_captured_pack(const Env *env, const Expr *e);

/* ---- functype.c */
bool type_mentions(const Type *type, const Decl *owner); /* a parameter of that declaration */
void function_type_parts(const Type *type, const Type **result, const Type *const **params, int *nparams);
void infer_from_function(Inference *inference, const Type *pattern, const Expr *arg, bool early);
int function_cost(Env *env, const Expr *arg, const Type *to); /* where a functype is wanted */
Expr *coerce_function(Env *env, Expr *e, const Type *to);
void note_function_holds(Checker *c, const Expr *e); /* an object with fields is no function */

/* ---- pack.c */
const Type *pack_expand(Checker *c, const Type *pattern);
const Type *pack_repeat(Checker *c, const Type *type,
                        const Type *pattern); /* type, as often as the pattern has elements */
const Type *pack_each(Checker *c, const Type *pack);
const Type *pack_element_type(const Type *listed);
const Type *pack_over(Checker *c, const Type *tuple);
const Type *pack_source(const Type *type);
const Type *pack_make(Checker *c, const Type *const *elements, int count); /* of a list of arguments */
const Type *pack_argument(Checker *c, const Type *type); /* the name of a pack: as its expansion */
bool type_is_pack(const Type *type);
const Type *value_pack_type(Checker *c, const Decl *decl);
const Type *pack_root(const Type *element);
const Type *pack_in(const Type *pattern); /* of which it is a pattern; NULL: of none */
int64_t pack_trim_number(int64_t front,
                         int64_t back); /* of TYPE_slice, and of EXPR_expand that was trimmed */
const Type *pack_slice(Checker *c, const Type *pack, int64_t trim_number);
const Type *pack_at(Checker *c, const Type *pack, int64_t index);
const Type *pack_count(Checker *c, const Type *pack);
bool pack_is_nonempty(Checker *c, const Type *pack);
bool pack_is_empty(const Type *pack);
const Type *pack_branch(Checker *c, const Type *pack, const Type *empty, const Type *nonempty);
bool pack_share(Checker *c, const Decl *decl, int first, const Type *const *args, int count,
                const Type **out);

/* ---- describe.c: for messages */
/* A pair for a parameter of a derivative whose type T is not differentiable: what to add. */
bool note_plain_param(Checker *c, const Decl *func, int index, const Type *given);
void note_usage(Checker *c, const Candidates *list); /* how a library function is called */
const char *generics_text(Checker *c, const Decl *decl);
const char *function_text(Checker *c, const char *name, const Decl *decl, const FuncSig *sig);
const char *member_text(Checker *c, Decl *decl, const Subst *subst);
bool allows_operator(Checker *c, const Type *type, Operator op); /* on generic values, by their constraints */
void suggest_for_operator(Checker *c, const Type *type, Operator op); /* notes: which constraint is missing */
void suggest_for_member(Env *env, const Type *type, Name name);
void suggest_for_construct(Checker *c, const Type *type, const ExprVec *args);
const char *count_text(Checker *c, int count, const char *what);

/* ---- requirement.c */
void check_conformances(Checker *c, Decl *decl); /* of a struct or extension: reports what is missing */
bool meets_requirements(Checker *c, Conformance *conformance); /* without a word */

/* ---- portable.c */
void check_portable(Checker *c, const Decl *decl);

/* ---- origin.c */
const Decl *variable_of(const Expr *e);
const Decl *origin_of(const Expr *e);
bool require_origin(Env *env, const Expr *e, const Decl *wanted);
bool require_origins(Env *env, const Decl *decl, const FuncSig *sig, const Subst *subst, Expr *object,
                     const ExprVec *args);
bool refuse_lost_associated(Env *env, Loc loc, const Decl *decl, const FuncSig *sig, const Expr *call);
bool is_associated(Checker *c, const Type *type); /* This.D, as a requirement mentions it */

/* ---- contain.c */
void check_containment(Checker *c, Decl *decl); /* of a struct: reports that it contains itself */
const Type *refuse_open_array(Checker *c, const Decl *decl,
                              const Type *type); /* of a variable that the program makes */
/* Has a struct a value of that interface as a part? */
bool contains_interface(Checker *c, const Type *type, const Type *interface);

/* ---- satisfy.c */
Satisfaction *satisfaction(Checker *c, Conformance *conformance, Decl *requirement);

/* ---- conform.c */
/* I & J; NULL: they depend on generic parameters. */
bool is_conjunction(const Type *interface);
const Type *conjunction_of(Checker *c, TypeVec *all);
typedef struct Declared {
    Decl *source;          /* struct or extension */
    const Type *interface; /* in terms of source's parameters */
    const Subst *subst;    /* arguments for them */
    bool of_base;          /* it is the base of source that declares it */
} Declared;
/* Called with each declared interface, inherited ones included; true: stop. */
typedef bool (*DeclaredVisitor)(Checker *c, void *user, const Declared *declared);
bool visit_closure(Checker *c, const Declared *declared, const Type *self, DeclaredVisitor visit, void *user);
/* `wanted`: only sources that lead to this interface declaration are looked into any further (NULL: all). */
bool visit_declared(Checker *c, const Type *type, const Decl *wanted, DeclaredVisitor visit, void *user);
Conformance *conformance_for(Checker *c, const Declared *declared);
/* What does not conform so far may do so once more is declared. */
void conform_forget_refusals(Checker *c);
const TypeVec *declared_conformers(Checker *c,
                                   const Type *interface); /* whether they fit in a value or not */
const Type *interface_named(Checker *c, Name name);        /* of the prelude, without arguments */
bool conforms_to(Checker *c, const Type *type, Name prelude_interface);
/* The interface type of that declaration that `type` conforms to, if any (its arguments may be wanted). */
const Type *check_find_conformance(Checker *c, const Type *type, const Decl *interface);
DeclVec *extensions_of(Checker *c, const Decl *head);
bool satisfies_public_requirement(Checker *c, const Decl *decl);

/* ---- number.c */
const Type *number_node(Env *env, Expr *checked); /* constant or generic number, NULL: neither */
bool number_is_generic(Env *env, Expr *checked);  /* constant once specialised */
const Type *number_apply(Checker *c, const Type *type, const TypeVec *args);
const Type *pack_of_numbers(Env *env, Expr *expansion);
const Type *number_is_not_zero(Checker *c, const Type *number);
const Type *number_countof(Checker *c, const Type *pack);

/* ---- const.c */
bool constant_fits(int64_t value, const Type *type);
const Type *scalar_operands(Checker *c, const Type *type); /* what an operator computes with */
bool eval_operator(Operator op, int64_t a, int64_t b, const Type *type, int64_t *value);
bool check_layout(Checker *c, const Type *type, Layout *out);     /* of a concrete type; false: none */
bool check_numbers(Checker *c, const Type *type, int64_t *count); /* floating ones in a concrete type */
bool eval_number(Env *env, Expr *checked, int64_t *value);        /* of a checked expression */
void check_constant_cycle(Checker *c, Decl *decl);                /* constants that need themselves */
const Type *counted_elements(const Expr *call); /* by getCount, if the type tells; NULL: another call */

/* ---- diff.c */
Name derivative_target(const Decl *decl); /* what it says it is a derivative of; NULL: nothing */
void check_requirement_diff(Checker *c, Decl *requirement, Decl *implementation);
FuncSig diff_signature(Checker *c, const FuncSig *sig, DiffMode mode);
FuncSig flat_signature(Checker *c, const FuncSig *sig); /* `this` is the first parameter */
Expr *check_diff_operator(Env *env, Expr *expr);
void check_diff_attributes(Checker *c, Decl *func);
const char *signature_text(Checker *c, const char *name, const FuncSig *sig);
const char *function_name(Checker *c, Decl *func);
const char *call_name(Checker *c, Decl *func);
bool refuse_hidden_derivative(Env *env, Loc loc, Decl *func, DiffMode mode); /* reports */
/* ---- diffflow.c */
void check_differentiable_body(Checker *c, Decl *func);
void check_diff_requests(Checker *c); /* those that are new: nothing on the way may lack a derivative */
void flow_request(Checker *c, Decl *func, const uint8_t *modes, int nmodes, Loc loc);
void flow_implements(Checker *c, Decl *requirement, Decl *implementation);

/* ---- flowgiven.c */
void flow_given_args(Env *env, const Expr *call, const FuncSig *sig); /* functions among the arguments */

/* ---- effects.c */
bool check_has_effect(Checker *c, Decl *func, EffectKind kind);

/* ---- difftype.c */
bool is_differentiable_type(Checker *c, const Type *type);
bool may_be_ptr_pair(Checker *c, const Type *type);
bool is_ptr_differentiable_type(Checker *c, const Type *type);
const Type *synthesize_assoc(Checker *c, const Conformance *conformance, Decl *assoc);
void check_differentiable_struct(Checker *c, Conformance *conformance);
void check_reference_struct(Checker *c, Conformance *conformance);

/* ---- library.c */
void library_open(Checker *c); /* the prelude is a module, with what programs before asked for */
const PreludeFile *library_module(const Checker *c, Str name); /* that is imported by this name, or NULL */
const PreludeFile *library_part(const Checker *c, Str name);   /* that such a module includes */
/* Is the name one that other implementations of the language do not have? A program that declares it means
 * its own alone. */
bool library_adds(const Checker *c, Name name);
void library_find(Checker *c, Scope *scope, Name name); /* all that the library declares by that name */
void library_extensions(Checker *c);                    /* of the files that all programs share */
void library_derivatives(Checker *c, Name name,
                         DeclVec *out);              /* functions that say they are derivatives of it */
void library_all(Checker *c);                        /* all is a member of the prelude then, in order */
Name library_name_at(const Checker *c, int index);   /* NULL after the last */
Decl *library_builtin(Checker *c, const Type *type); /* what stands for a built-in type; NULL: nothing */

/* ---- module.c */
void add_using(Env *env, DeclVec *usings, Decl *decl);

#define ERROR_TYPE(c) type_basic((c)->types, TYPE_error)
static inline bool is_error(const Type *t) { return t->kind == TYPE_error; }
static inline bool has_error(const Type *t) { return (t->flags & TYPE_HAS_ERROR) != 0; }
#define report(c, ...) diag_report((c)->diags, __VA_ARGS__)
/* About the whole of an expression: report_expr(c, e, DIAG_..., ...). */
#define report_expr(c, e, ...) diag_report_span((c)->diags, expr_span(e), __VA_ARGS__)
#define note(c, ...)           diag_note((c)->diags, __VA_ARGS__)

#endif
