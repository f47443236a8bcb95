/* syntax: text to tree. Lexer, preprocessor, parser, tree printer.
 *
 * The tree is made by the parser and filled in by the checker: fields marked "check" are zero after parsing.
 * Everything is in the module's arena. Nodes carry the position of the token that best shows them: the
 * operator of a binary expression, the name of a member, the name of a declaration. */
#ifndef SLOPE_SYNTAX_H
#define SLOPE_SYNTAX_H

#include "diag/diag.h"
#include "type/type.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Decl Decl;
typedef struct Subst Subst; /* check */

typedef VEC(Expr *) ExprVec;
typedef VEC(Stmt *) StmtVec;
typedef VEC(Decl *) DeclVec;

/* ---- operators */

typedef enum Operator {
    OPERATOR_none,
#define OPERATOR(name, text) OPERATOR_##name,
#include "syntax/operators.def"
#undef OPERATOR
    OPERATOR_COUNT
} Operator;

const char *operator_text(Operator op); /* "+", "<<", "()", ... */

/* ---- expressions */

typedef enum ExprKind {
#define EXPR(name, meaning) EXPR_##name,
#include "syntax/nodes.def"
} ExprKind;

typedef enum ExprFlags {
    EXPR_ARROW = 1,     /* member: -> */
    EXPR_SCOPE = 2,     /* member: :: */
    EXPR_POSTFIX = 4,   /* update: value before */
    EXPR_CHAR = 8,      /* int: written as 'a' */
    EXPR_HEX = 16,      /* int: written in hex, binary or octal */
    EXPR_OLD_NAME = 32, /* __fwd_diff, __bwd_diff */
    EXPR_NO_DIFF = 64,  /* modified_type; check: a call under no_diff */
    EXPR_CONST = 128,   /* modified_type */
    /* check */
    EXPR_PLACE = 256,    /* can be assigned to */
    EXPR_READONLY = 512, /* a place, but not to be written */
    EXPR_CHECKED = 1024,
    EXPR_IMPLICIT = 2048,    /* not in the source: implied `this`, inserted conversion */
    EXPR_MEMBER_FORM = 4096, /* fwd_diff, bwd_diff written as f.fwd_diff */
    EXPR_OPENED = 8192,      /* invoke: some argument is an interface value that is opened by the call */
    EXPR_TYPE_CONTEXT = 16384,
    /* parser again */
    EXPR_ROW_MAJOR = 32768,    /* modified_type */
    EXPR_COLUMN_MAJOR = 65536, /* modified_type */
    EXPR_OUTERMOST = 131072,   /* name: ::name */
    EXPR_THROWS = 262144,      /* check: invoke that may fail and is not under `try` yet */
    EXPR_EXPLICIT = 524288,    /* check: convert, which a cast or constructor asked for */
} ExprFlags;

typedef enum LiteralSuffix {
    SUFFIX_none,
    SUFFIX_u, /* u */
    SUFFIX_l, /* l, L: does not make 64 bits */
    SUFFIX_ul,
    SUFFIX_ll,
    SUFFIX_ull,
    SUFFIX_z,
    SUFFIX_uz,
    SUFFIX_f, /* floats: f, h/hf, l/lf */
    SUFFIX_h,
    SUFFIX_lf,
} LiteralSuffix;

/* What a call calls: a declaration with arguments for everything generic around it, then derivative operators
 * applied to it, innermost first. */
typedef enum DiffMode { DIFF_none, DIFF_fwd, DIFF_bwd } DiffMode;

struct Expr {
    uint8_t kind;       /* ExprKind */
    uint8_t op;         /* Operator */
    uint8_t suffix;     /* LiteralSuffix */
    uint8_t conversion; /* check: kind of an EXPR_convert */
    uint32_t flags;
    Loc loc;
    Loc first, last;  /* its first and last token; 0: it is only the token at `loc` */
    const Type *type; /* check: of the value; NULL before */
    Expr *a, *b, *c;
    Name name;
    ExprVec args;
    Decl *decl;
    union {
        uint64_t number; /* int, bool */
        double real;
        Str text;
        struct {                /* check: decl, invoke, overload */
            const Subst *subst; /* of decl */
            struct Candidates *candidates;
            uint8_t modes[8]; /* DiffMode: innermost first */
            int nmodes;
        };
        struct { /* check: try; NULL: it leaves the function */
            Stmt *guard, *handler;
        };
        struct { /* check: type, type_is */
            const Type *type_value, *type_other;
        };
        struct {               /* check: swizzle */
            uint8_t lanes[16]; /* matrices: row * 4 + column */
            int nlanes;
        };
    };
};

/* ---- statements */

typedef enum StmtKind {
#define STMT(name, meaning) STMT_##name,
#include "syntax/nodes.def"
} StmtKind;

typedef struct Attribute Attribute;
typedef VEC(Attribute *) AttributeVec;

struct Attribute {
    Loc loc;
    Name name; /* without brackets; `a::b` is the name "a::b" */
    ExprVec args;
    bool used; /* check */
};

struct Stmt {
    uint8_t kind; /* StmtKind */
    Loc loc;
    Loc end;        /* block: its closing brace */
    Name label;     /* break, label */
    Expr *expr;     /* expr, return; condition of if, switch, while, do, for */
    Expr *step;     /* for; static_for: the end of the range */
    Stmt *init;     /* for */
    Stmt *then;     /* if, loops, defer, label */
    Stmt *other;    /* else */
    StmtVec body;   /* block; if: its `else if`s in order */
    DeclVec decls;  /* decl; the one variable of `if (let ..)` and `$for` */
    ExprVec values; /* case; besides `is_default` */
    Str text;       /* static_assert */
    AttributeVec attributes;
    struct Scope *scope; /* check */
    Stmt *target;        /* check: what break and continue leave; the switch that a case belongs to */
    bool is_default;     /* case: `default:` is among the labels */
};

/* ---- declarations */

typedef enum DeclKind {
#define DECL(name, meaning) DECL_##name,
#include "syntax/nodes.def"
} DeclKind;

typedef enum Modifiers {
    MODIFIER_static = 1 << 0,
    MODIFIER_const = 1 << 1,
    MODIFIER_uniform = 1 << 2,
    MODIFIER_groupshared = 1 << 3,
    MODIFIER_in = 1 << 4,
    MODIFIER_out = 1 << 5,      /* inout: both */
    MODIFIER_ref = 1 << 6,      /* __ref */
    MODIFIER_constref = 1 << 7, /* __constref */
    MODIFIER_no_diff = 1 << 8,
    MODIFIER_public = 1 << 9,
    MODIFIER_internal = 1 << 10,
    MODIFIER_private = 1 << 11,
    MODIFIER_extern = 1 << 12,
    MODIFIER_export = 1 << 13,
    MODIFIER_exported = 1 << 14, /* __exported import */
    MODIFIER_inline = 1 << 15,
    MODIFIER_override = 1 << 16,
    MODIFIER_prefix = 1 << 17,  /* __prefix */
    MODIFIER_postfix = 1 << 18, /* __postfix */
    MODIFIER_row_major = 1 << 19,
    MODIFIER_column_major = 1 << 20,
    MODIFIER_let = 1 << 21,         /* declared by `let` */
    MODIFIER_var = 1 << 22,         /* declared by `var` */
    MODIFIER_pack = 1 << 23,        /* each T; expand-typed parameter */
    MODIFIER_implicit = 1 << 24,    /* __implicit_conversion(cost): `number` */
    MODIFIER_idle = 1 << 25,        /* volatile, globallycoherent, nointerpolation ...: accepted, no effect */
    MODIFIER_optional = 1 << 26,    /* constraint: where optional */
    MODIFIER_synthesized = 1 << 27, /* check: not in the source */
    MODIFIER_constexpr = 1 << 28,   /* const; outside of functions static as well */
    MODIFIER_precise = 1 << 29,     /* the arithmetic of the function around it is done as it is written */
} Modifiers;

typedef enum FuncFlavour {
    FUNC_plain, /* free function or method; `operator+` included */
    FUNC_init,  /* __init */
    FUNC_get,
    FUNC_set, /* parameter newValue, not in params, unless it names another */
    FUNC_ref, /* accessor `ref` */
    FUNC_lambda,
} FuncFlavour;

/* `typealias I = A & B;` is an interface to which whoever conforms to all of its bases conforms. */
typedef enum InterfaceFlavour { INTERFACE_plain, INTERFACE_all } InterfaceFlavour;

typedef enum VarFlavour { VAR_global, VAR_field, VAR_local, VAR_param } VarFlavour;

/* Which end of a pack: number of EXPR_end and EXPR_trim. */
typedef enum PackEnd { PACK_first, PACK_last } PackEnd;

/* where T : I, A.X == B; and `T : I` in the parameter list, after the parser moved it here */
typedef struct Constraint {
    Loc loc;
    Expr *subject;
    Expr *bound;
    bool equal; /* == instead of : */
    bool optional;
    const Type *subject_type, *bound_type; /* check */
} Constraint;

/* where nonempty(P), To(From), To(From) implicit: what arguments must be like, without telling an
 * interface */
typedef enum DemandKind { DEMAND_nonempty, DEMAND_cast, DEMAND_implicit } DemandKind;
typedef struct Demand {
    uint8_t kind; /* DemandKind */
    Loc loc;
    Expr *subject;                      /* P, From */
    Expr *to;                           /* To; NULL: nonempty */
    const Type *subject_type, *to_type; /* check */
} Demand;

typedef struct Generics {
    DeclVec params; /* type_param and value_param */
    VEC(Constraint) constraints;
    VEC(Demand) demands;
    bool checked; /* check */
} Generics;

typedef struct TokenRange {
    const struct Token *first;
    int count;
} TokenRange;

struct Decl {
    uint8_t kind;       /* DeclKind */
    uint8_t flavour;    /* FuncFlavour, VarFlavour */
    uint8_t state;      /* check */
    uint8_t visibility; /* check */
    uint32_t modifiers;
    uint32_t flags;     /* check */
    Loc loc, end;       /* end: closing brace of a body, for messages */
    Name name;          /* NULL: anonymous */
    Decl *parent;       /* the declaration it stands in */
    Generics *generics; /* NULL: not generic */
    AttributeVec attributes;
    Name semantic; /* `: SV_DispatchThreadID` */
    Loc doc_at; /* its first token, before which documentation may stand: `///`, or a block comment with two stars; 0: none */

    Expr *type_expr; /* var, property, subscript, alias, value_param; result of func (NULL: void) */
    Expr *init;      /* var, case, type_param, value_param */
    Expr *target;    /* extension, using: type or namespace */
    Expr *throws;    /* func: the type of its errors */
    ExprVec bases;   /* struct, enum, interface, extension, assoc, type_param */
    DeclVec params;  /* func, subscript */
    DeclVec members; /* everything with braces; parameters' own order is in params */
    Expr *bits;      /* field: width of a bit field */
    int64_t number;  /* case: its index in the enum; see MODIFIER_implicit */

    /* func: the body is parsed when first asked for, if `lazy` has tokens */
    Stmt *body;
    Expr *body_expr; /* lambda: => expr */
    TokenRange lazy;
    struct ParseFile *file; /* to parse it with */

    Str path;         /* import, include */
    Name *path_parts; /* import a.b.c; NULL if a string */
    int npath_parts;

    /* check: what the checker finds out; see check.h */
    /* var, property, alias, case, value_param: its type; struct ...: itself, unspecialised */
    const Type *type;
    struct Scope *scope;
    struct Sema *sema;
};

/* ---- tokens */

typedef enum TokenKind {
    TOKEN_end,
    TOKEN_name, /* identifiers and words; name->keyword tells a word apart */
    TOKEN_int,
    TOKEN_float,
    TOKEN_string,
    TOKEN_char,
    TOKEN_error, /* already reported */
#define PUNCTUATION(name, text) TOKEN_##name,
#include "syntax/operators.def"
#undef PUNCTUATION
    TOKEN_KIND_COUNT
} TokenKind;

typedef enum TokenFlags {
    TOKEN_HEX = 1,     /* int: written in hex, binary or octal */
    TOKEN_PAINTED = 2, /* name: of a macro, but not to be expanded any more */
    TOKEN_BAD = 4,     /* literal: with a mistake in it, already reported, or UNTOLD */
    TOKEN_UNTOLD = 8,  /* number: a piece of a macro, whose mistake counts if it stays a number */
} TokenFlags;

typedef struct Token {
    uint8_t kind;
    uint8_t suffix;  /* LiteralSuffix */
    bool line_start; /* first on its line */
    bool space_before;
    Loc loc;       /* where it came from; of a macro's token: where the macro was used */
    int len;       /* of the text in the source */
    uint8_t flags; /* TokenFlags */
    union {
        Name name;
        uint64_t number;
        double real;
        Str text; /* strings: decoded */
    };
} Token;

/* ---- the entry points */

typedef struct Define {
    Str name, value;
} Define;

/* What parsing needs from outside. One per session. */
typedef struct Syntax {
    Arena *arena;
    Names *names;
    Sources *sources;
    Diags *diags;
    /* The text of a file, or false. `from`: the including file (NULL: the command line). The path found is
     * written to `found`; with false, it is that of a file that cannot be read, and `text` says why. Used for
     * #include; modules are found by check. */
    bool (*read)(void *user, Str path, Name from, Str *text, Name *found);
    void *user;
    const Define *defines;
    int ndefines;
    int max_depth; /* of nesting; 0: the default */
} Syntax;

/* keyword.c */
void syntax_init_names(Names *names); /* marks keywords; once per session */
/* The word that starts a statement which `name` may stand for by mistake, or NULL. */
Name syntax_statement_word(Names *names, Name name);

/* lex.c: raw tokens of a file, comments removed; also used to read numbers elsewhere */
typedef VEC(Token) TokenVec;
void syntax_lex(Syntax *syntax, SourceFile *file, TokenVec *out);
/* The next word outside of comments, from *at on; false: there is none. Roughly: what a text names, before it
 * is read. */
bool syntax_next_word(Str text, int *at, Str *word);

/* preprocess.c: the tokens that the parser sees */
void syntax_preprocess(Syntax *syntax, SourceFile *file, TokenVec *out);

/* parse.c: always gives a module, whatever was wrong */
Decl *syntax_parse(Syntax *syntax, SourceFile *file);
/* The same by the piece, for a library of which each program parses what it uses. The tokens of a file; the
 * same tokens for a tree elsewhere; and the declaration that starts at one of them, which becomes a member of
 * `module`, and `*at` the next: bodies are kept as tokens, NULL: that was the end. Sharing changes nothing in
 * the file. */
struct ParseFile *syntax_open(Syntax *syntax, SourceFile *file);
struct ParseFile *syntax_share(Syntax *syntax, const struct ParseFile *file);
Decl *syntax_declaration(struct ParseFile *file, Decl *module, int *at);
Stmt *syntax_body(Decl *func); /* its body, parsed now if it was not; NULL: it has none */
/* One expression, for the command line and the API: "bwd_diff(f<float>)". NULL if there were errors. */
Expr *syntax_parse_expr(Syntax *syntax, SourceFile *file);

/* doc.c */
Str syntax_doc(Arena *arena, const Sources *sources, Loc first); /* what the comment before a token says */

/* print.c */
void syntax_print(Text *out, const Sources *sources, const Decl *module); /* `slope dump --after syntax` */

/* tree.c: making nodes */
Expr *expr_new(Arena *arena, ExprKind kind, Loc loc);
Span expr_span(const Expr *expr);
Expr *expr_copy(Arena *arena, const Expr *expr); /* types as written; bodies of lambdas are shared */
Stmt *stmt_new(Arena *arena, StmtKind kind, Loc loc);
Decl *decl_new(Arena *arena, DeclKind kind, Loc loc, Name name);

/* print_expr.c */
void syntax_print_expr(Text *out, const Expr *expr);

#endif
