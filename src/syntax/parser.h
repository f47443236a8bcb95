/* What the files of syntax share among themselves; nobody else includes this.
 *
 * Three layers, one on the other: the lexer gives one token at a time from a text; the preprocessor drives it
 * and fills an array of tokens; the parser walks that array. The parser never backs up: where the grammar is
 * ambiguous it looks ahead over the tokens (scan.c) and then parses once. */
#ifndef SLOPE_SYNTAX_PARSER_H
#define SLOPE_SYNTAX_PARSER_H

#include "syntax/syntax.h"

/* ---- words: NameText.keyword holds one of these */

typedef enum Keyword {
    KEYWORD_none,
    KEYWORD_type,         /* no word of the grammar: the name of a built-in type, as float3 ... */
    KEYWORD_generic_type, /* ... or of a built-in generic one, as vector */
#define CONTEXTUAL(name, text, modifiers) KEYWORD_##name,
#include "syntax/keywords.def"
    KEYWORD_last_contextual,
#define RESERVED(name, text, modifiers) KEYWORD_##name,
#include "syntax/keywords.def"
    KEYWORD_COUNT
} Keyword;

static inline Keyword token_word(const Token *token) {
    return token->kind == TOKEN_name ? (Keyword)token->name->keyword : KEYWORD_none;
}
static inline bool token_is_identifier(const Token *token) {
    return token->kind == TOKEN_name && token->name->keyword < KEYWORD_last_contextual;
}

/* keyword.c */
uint32_t keyword_modifiers(Keyword word);

/* tree.c */
void expr_ends_at(Expr *expr, Loc last);     /* it is whole: what it consists of is in it */
const char *token_kind_text(TokenKind kind); /* "<<=", or a description of the kind */
const char *token_describe(Arena *arena, const Token *token);
TokenKind token_closing(TokenKind open); /* of an opening bracket; TOKEN_end: it is none */
Operator
operator_of_token(TokenKind kind); /* also of the assignments: + for +=; OPERATOR_none: no operator */
enum { LEVEL_none, LEVEL_lowest, LEVEL_relation = 8 };
int token_level(TokenKind kind); /* how strongly a binary operator binds; LEVEL_none: it is none */

/* ---- lexer */

typedef struct Lexer {
    Syntax *syntax;
    const SourceFile *file;
    const char *at, *end;
    bool line_start;
    bool in_directive; /* the end of the line gives TOKEN_end, again and again */
    bool quiet;        /* nothing is reported but a comment without end */
    bool pieces;       /* numbers may be pieces of others yet: their mistakes are not reported */
    bool bad;          /* something was wrong with the literal just read */
    bool untold;       /* and was not reported */
    bool cut_off;      /* a comment without end took the rest, and was reported */
    int stray;         /* characters complained about so far */
    Loc loc;           /* of all of it, if it is not in a file */
} Lexer;

/* lex.c */
void lex_open(Lexer *lexer, Syntax *syntax, const SourceFile *file);
void lex_open_text(Lexer *lexer, Syntax *syntax, Str text, Loc loc); /* not in a file, but stands at `loc` */
void lex_next(Lexer *lexer, Token *token);
Str lex_line(Lexer *lexer); /* what is left of the line, trimmed; the lexer stands at its end afterwards */
Loc lex_loc(const Lexer *lexer, const char *at);
int lex_utf8(const char *at, const char *end, uint32_t *code); /* bytes of the character; 0: not UTF-8 */
bool lex_is_word(char c);                                      /* may stand in an identifier (ASCII) */

/* literal.c: the lexer stands at the first character */
void lex_number(Lexer *lexer, Token *token);
void lex_string(Lexer *lexer, Token *token);
void lex_raw_string(Lexer *lexer, Token *token);
void lex_character(Lexer *lexer, Token *token);

/* ---- preprocessor */

/* A token with its spelling, which `#` and `##` need. */
typedef struct MacroToken {
    Token token;
    const char *text;
    int len;
    int param; /* in a macro's body: 1 + index of the parameter it names, 0: none */
} MacroToken;
typedef VEC(MacroToken) MacroTokens;

typedef enum MacroKind { MACRO_object, MACRO_function, MACRO_file, MACRO_line } MacroKind;

typedef struct Macro {
    Name name;
    Loc loc;
    uint8_t kind; /* MacroKind */
    bool variadic;
    bool active; /* being expanded: its name is not expanded again */
    int nparams;
    Name *params;
    MacroTokens body;
} Macro;

/* Tokens that are read before anything else. */
typedef struct MacroFrame {
    Macro *macro; /* active as long as the frame is there; NULL: an argument */
    const MacroToken *tokens;
    int count, next;
    Token use; /* the macro's name where it was used: gives its place to all tokens from the body */
    bool relocate;
} MacroFrame;

typedef struct Condition {
    Loc loc;    /* of the #if */
    bool taken; /* one of its groups was, or the whole is skipped */
    bool else_seen;
} Condition;

typedef struct Preprocessor {
    Syntax *syntax;
    Arena *arena;
    TokenVec *out;
    Lexer *lexer; /* of the file being read */
    Token ahead;  /* read from it already */
    bool has_ahead;
    Map macros;          /* Name -> Macro */
    uint64_t filter[16]; /* a bit for each hash of a macro's name: most names have none */
    VEC(MacroFrame) frames;
    int floor;     /* frames below are out of reach */
    bool isolated; /* so is the file */
    bool in_condition;
    int depth;      /* of macro calls in arguments of macro calls */
    int produced;   /* tokens that macros made in the use at hand, so far */
    Name outermost; /* the macro of the file that is being expanded */
    VEC(Condition) conditions;
    int condition_base; /* those of the current file */
    Map once;           /* paths that said #pragma once */
    Map files;          /* path -> SourceFile, of the files included so far */
    int include_depth, includes;
    int language;            /* year after #language; 0: none */
    bool in_arguments;       /* of a macro call, where #include has no place */
    bool line_start_pending; /* the macro at the start of the line expanded to nothing */
    bool stopped;            /* something ran away, and was reported */
    bool cut_off;            /* so did a comment or a macro call without end */
} Preprocessor;

/* preprocess.c */
void preprocess_run(Syntax *syntax, SourceFile *file, TokenVec *out, int *language);
void preprocess_directive(Preprocessor *pp); /* the lexer stands after the # */
void preprocess_stop(Preprocessor *pp);

/* macro.c */
void macro_define(Preprocessor *pp); /* the lexer stands after #define */
void macro_undefine(Preprocessor *pp, Name name);
void macro_add_builtins(Preprocessor *pp);
Macro *macro_find(const Preprocessor *pp, Name name);
MacroToken macro_token(const Preprocessor *pp, const Token *token); /* just read by the lexer */

/* expand.c */
void macro_expand_use(Preprocessor *pp, const Token *name, Macro *macro); /* into the output */
MacroTokens macro_expand_line(Preprocessor *pp, const MacroTokens *line);

/* condition.c */
bool condition_holds(Preprocessor *pp, const MacroTokens *line, Loc loc);

/* ---- parser */

/* What is known of a file while its parts are parsed. Lives as long as the tree, for the bodies parsed
 * later. */
typedef struct ParseFile {
    Syntax *syntax;
    const Token *tokens;
    int count;  /* the last one is TOKEN_end */
    int *match; /* of an opening bracket: index of the one that closes it, or -1 */
    Map types;  /* names that the file declares as types */
    Map angles; /* of a < that was met behind another: where its arguments end, see scan_generic_arguments */
    int language;
} ParseFile;

typedef struct Parser {
    ParseFile *file;
    Syntax *syntax;
    Arena *arena;
    const Token *token; /* the current one: tokens[at], `part` or `stop` */
    int at, end;        /* indices in file->tokens */
    Token part;         /* what is left of a `>>` whose first half was taken */
    Token stop;         /* stands at `end` */
    bool panic;         /* reported something and not yet found its feet */
    int errors;
    int depth;           /* of nesting, up to syntax->max_depth */
    bool was_too_deep;   /* once: an 'else' may have lost its 'if' */
    int too_deep;        /* > 0: it went too deep, which is not said again before it is less deep than this */
    int height;          /* of the expression parsed last */
    int angle;           /* > 0: directly inside <...>, where > closes */
    bool noted_unclosed; /* a message has pointed out the '{' that lacks its '}' */
    bool lazy;           /* keep bodies as tokens */
    Decl *parent;        /* the declaration being parsed */
    ExprVec group_size;  /* layout(local_size_x = ...) in; empty: not given */
    Map locals;          /* Name -> how many local variables of that name are in scope */
    VEC(Name) scope;     /* those, in order */
} Parser;

enum { MAX_HEIGHT = 4000, DEFAULT_DEPTH = 600 };

/* parse.c */
void parser_advance(Parser *p);
const Token *parser_peek(const Parser *p, int ahead);
const Token *parser_previous(const Parser *p);
void parser_jump(Parser *p, int to); /* makes tokens[to] the current one */
bool parser_complain(Parser *p);     /* may an error be reported now? Enters panic. */
void parser_expected(Parser *p, const char *what);
bool parser_expect(Parser *p, TokenKind kind);
void parser_expect_semicolon(Parser *p, const char *after);
Name parser_expect_name(Parser *p, const char *what); /* NULL: there was none */
Name parser_expect_member_name(Parser *p,
                               const char *what); /* any word: after a dot none has another meaning */
int parser_open_bracket(Parser *p, TokenKind kind,
                        const char *what); /* its index, for the next; -1: not there */
bool parser_note_unclosed(Parser *p);      /* false: indentation does not tell */
/* A declaration that stands as far left as the block around it: that block lacks its end. */
void parser_note_outside(Parser *p);
void parser_close_bracket(Parser *p, int open);
bool parser_enter(Parser *p); /* one level deeper; false: too deep, reported; always leave again */
void parser_leave(Parser *p);
void parser_skip_statement(Parser *p);   /* recovers: to the next place where a statement may start */
void parser_skip_declaration(Parser *p); /* likewise */
int parser_scope(Parser *p);
void parser_end_scope(Parser *p, int mark);
void parser_add_local(Parser *p, Name name);
bool parser_is_local(const Parser *p, Name name);

static inline bool parser_at(const Parser *p, TokenKind kind) { return p->token->kind == kind; }
static inline bool parser_at_word(const Parser *p, Keyword word) { return token_word(p->token) == word; }
static inline bool parser_take(Parser *p, TokenKind kind) {
    if (p->token->kind != kind) return false;
    parser_advance(p);
    return true;
}
static inline bool parser_take_word(Parser *p, Keyword word) {
    if (token_word(p->token) != word) return false;
    parser_advance(p);
    return true;
}

/* scan.c: looking ahead; indices in file->tokens, -1: no */
void scan_file(ParseFile *file); /* fills in match and types */
int scan_type(const Parser *p, int at);
bool scan_is_type_name(const Parser *p, const Token *token);
bool scan_is_conjunction(const Parser *p);                   /* `& J name`, behind a type */
bool scan_is_tuple_of(const Parser *p, int at);              /* `(int, float) name`, not a call */
bool scan_is_declaration(const Parser *p);                   /* of a variable, from the current token on */
bool scan_is_generic_use(const Parser *p, const Expr *base); /* the current < opens generic arguments */
bool scan_is_cast(const Parser *p);                          /* the current ( does */
bool scan_is_lambda(const Parser *p);

static inline int max_int(int a, int b) { return a > b ? a : b; }

/* parse_expr.c */
Expr *parse_expression(Parser *p);  /* commas included */
Expr *parse_assignment(Parser *p);  /* one argument */
Expr *parse_condition(Parser *p);   /* without assignments */
Expr *parse_initializer(Parser *p); /* or a list in braces */
Expr *parse_term(Parser *p);        /* something in <...>: no type, and > ends it */
Expr *parse_type_or_expression(Parser *p);
ExprVec parse_arguments(Parser *p); /* (a, b) with the current token at the parenthesis */
Expr *parse_error_expr(Parser *p);
Expr *parse_grown(Parser *p, Expr *expr, int height); /* the node stands above parts of that height */

/* parse_primary.c */
Expr *parse_primary(Parser *p);
Expr *parse_list(Parser *p);
Name parse_operator_name(Parser *p); /* after `operator` */
Expr *parse_outermost_name(Parser *p);

/* parse_type.c */
Expr *parse_type(Parser *p);
Expr *parse_pack_word(Parser *p);
Expr *parse_base_type(Parser *p);                                  /* without * after it */
Expr *parse_all_types(Parser *p, Expr *first);                     /* first & J & K */
Expr *parse_declared_type(Parser *p);                              /* T, or I & J */
Expr *parse_type_after(Parser *p, Expr *base);                     /* the stars and what follows them */
Expr *parse_pointer_suffix(Parser *p, Expr *type);                 /* takes what * there are */
Expr *parse_array_suffix(Parser *p, Expr *type);                   /* a[2][3] after a declared name */
ExprVec parse_generic_arguments(Parser *p);                        /* from the < */
Generics *parse_generic_parameters(Parser *p, Generics *generics); /* from the <; adds to what is there */
Generics *parse_constraints(Parser *p, Generics *generics);        /* what follows `where` */
Generics *parse_where(Parser *p, Generics *generics);              /* any number of clauses */
void parse_bases(Parser *p, ExprVec *bases);                       /* after the colon */

/* parse_stmt.c */
Stmt *parse_block(Parser *p);

/* parse_decl.c */
typedef enum Place { PLACE_global, PLACE_member, PLACE_local } Place;

/* What stands before a declaration. */
typedef struct Prefix {
    uint32_t modifiers;
    int64_t number; /* of __implicit_conversion */
    AttributeVec attributes;
    Generics *generics; /* from __generic */
    Loc doc_at;         /* documentation ends before it */
    Loc loc;
} Prefix;

void parse_declaration(Parser *p, Place place, DeclVec *out);
void parse_group_size_constant(Parser *p, DeclVec *out);
void parse_declaration_after(Parser *p, Place place, const Prefix *prefix, DeclVec *out);
bool parse_starts_let(const Parser *p); /* at `let` or `var` */
void parse_members(Parser *p, Decl *decl);
Decl *parse_new_decl(Parser *p, DeclKind kind, Loc loc, Name name, const Prefix *prefix);
void parse_add_decl(DeclVec *out, Parser *p, Decl *decl);

/* parse_func.c */
void parse_parameters(Parser *p, Decl *func, bool modern);
void parse_function_rest(Parser *p, Decl *func); /* after the name: generics, parameters, ..., body */
void parse_body(Parser *p, Decl *func);          /* a block or ; */
void parse_func_extension(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_modern_function(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_init(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_property(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_subscript(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_move_modifiers(Decl *decl); /* of a type like `no_diff float`, to the declaration */

/* parse_var.c */
void parse_variables(Parser *p, Place place, const Prefix *prefix, Expr *base, DeclVec *out);
void parse_typed_declaration(Parser *p, Place place, const Prefix *prefix, DeclVec *out);
void parse_let(Parser *p, Place place, const Prefix *prefix, DeclVec *out);
void parse_typedef(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_semantics(Parser *p, Decl *decl, bool bits);

/* parse_aggregate.c */
Expr *parse_aggregate(Parser *p, const Prefix *prefix,
                      DeclVec *out); /* struct, class, enum; gives a name for it */
void parse_interface(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_extension(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_buffer_block(Parser *p, const Prefix *prefix, DeclVec *out);
void parse_glsl_block(Parser *p, const Prefix *prefix, DeclVec *out);

/* parse_module.c */
bool parse_module_declaration(Parser *p, const Prefix *prefix,
                              DeclVec *out); /* import, using, ...; false: none */

/* prefix.c */
void parse_prefix(Parser *p, Prefix *prefix);
void parse_attributes(Parser *p, AttributeVec *out); /* any number of [..] */

/* ---- printer */

typedef struct TreePrinter {
    Text *out;
    const Sources *sources;
    Loc doc_at; /* where documentation was looked for last: what a macro makes is all at one place; 0: nowhere */
    Str doc;    /* what was found there */
    int indent; /* of the line to come, in steps */
} TreePrinter;

/* print_expr.c */
void print_expr(TreePrinter *printer, const Expr *expr);
void print_quoted(Text *out, Str text);

/* print.c */
void print_line(TreePrinter *printer); /* a new one, indented */
void print_decl(TreePrinter *printer, const Decl *decl);
void print_stmt(TreePrinter *printer, const Stmt *stmt);

#endif
