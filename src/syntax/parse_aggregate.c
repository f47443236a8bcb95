/* Types with members: struct, class, enum, interface, extension, cbuffer, blocks of GLSL.
 *
 *   struct    = ( "struct" | "class" ) [ name ] [ parameters ] [ ":" bases ] [ where ]
 *               ( "{" { declaration } "}" | [ "=" type ] ";" )
 *   enum      = "enum" [ "class" ] [ name ] [ ":" type ] "{" [ case { "," case } [ "," ] ] "}"
 *   interface = "interface" name [ parameters ] [ ":" bases ] [ where ] "{" { declaration } "}"
 *   extension = "extension" [ parameters ] type [ ":" bases ] [ where ] "{" { declaration } "}"
 *   block     = ( "buffer" | "uniform" ) name "{" { declaration } "}" [ name { "[" size "]" } ] ";" */
#include "syntax/parser.h"

/* A name for a declaration that stands where its name could: `struct { int x; } s;`. */
static Expr *reference(Parser *p, Decl *decl) {
    Expr *expr = expr_new(p->arena, EXPR_name, decl->loc);
    expr->name = decl->name;
    expr->decl = decl;
    return expr;
}

static void parse_head(Parser *p, Decl *decl) {
    if (parser_at(p, TOKEN_less)) decl->generics = parse_generic_parameters(p, decl->generics);
    if (!p->panic && parser_take(p, TOKEN_colon)) parse_bases(p, &decl->bases);
    decl->generics = parse_where(p, decl->generics);
}

/* A broken head need not cost the members. */
static void parse_braces(Parser *p, Decl *decl) {
    for (int i = 0; p->panic && i < 64 && !parser_at(p, TOKEN_end); i++) {
        if (parser_at(p, TOKEN_brace_open)) p->panic = false;
        else if (parser_at(p, TOKEN_semicolon) || parser_at(p, TOKEN_brace_close)) return;
        else parser_advance(p);
    }
    if (!p->panic) parse_members(p, decl);
}

/* `struct S;` says nothing: the order of declarations never matters. */
static void make_forward(Decl *decl) {
    decl->kind = DECL_empty;
    decl->name = NULL;
}

/* ---- struct */

static bool is_attribute_class(const Decl *decl) {
    for (int i = 0; i < decl->attributes.count; i++)
        if (strcmp(decl->attributes.at[i]->name->text, "__AttributeUsage") == 0) return true;
    return false;
}

/* `struct S : I = Other;` is another name for a type that conforms. */
static void make_alias(Parser *p, Decl *decl) {
    decl->kind = DECL_alias;
    decl->type_expr = parse_type(p);
    decl->generics = parse_where(p, decl->generics);
    if (!p->panic && !parser_at(p, TOKEN_semicolon)) parser_expected(p, "';'");
}

/* `extern struct S : I;` is one that another module defines. */
static bool is_declared(const Parser *p, const Decl *decl) {
    return (decl->modifiers & MODIFIER_extern) && parser_at(p, TOKEN_semicolon);
}

static Expr *parse_struct(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_struct, p->token->loc, NULL, prefix);
    if (parser_at_word(p, KEYWORD_class))
        diag_portable(p->syntax->diags, p->token->loc, "a 'class' whose values are copied, as in HLSL");
    parser_advance(p);
    parse_attributes(p, &decl->attributes); /* struct [raypayload] Name, as HLSL has it */
    if (token_is_identifier(p->token)) {
        decl->loc = p->token->loc;
        decl->name = p->token->name;
        parser_advance(p);
    }
    parse_head(p, decl);
    if (!p->panic && decl->name && is_declared(p, decl)) decl->kind = DECL_alias;
    else if (!p->panic && decl->name && parser_at(p, TOKEN_semicolon)) make_forward(decl);
    else if (!p->panic && decl->name && parser_take(p, TOKEN_equal)) make_alias(p, decl);
    else if (p->panic || parser_at(p, TOKEN_brace_open)) parse_braces(p, decl);
    else parser_expected(p, decl->name ? "'{'" : "a name or '{'");
    if (decl->kind == DECL_struct && is_attribute_class(decl)) decl->kind = DECL_attribute;
    parse_add_decl(out, p, decl);
    return reference(p, decl);
}

/* ---- enum */

static void parse_case(Parser *p, Decl *owner) {
    Prefix prefix = {.doc_at = p->token->loc};
    parse_attributes(p, &prefix.attributes);
    Loc loc = p->token->loc;
    Name name = parser_expect_member_name(p, "the name of a case");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_case, loc, name, &prefix);
    if (parser_take(p, TOKEN_equal)) decl->init = parse_condition(p);
    decl->number = owner->members.count;
    vec_push(p->arena, &owner->members, decl);
}

static void parse_cases(Parser *p, Decl *decl) {
    Decl *parent = p->parent;
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'");
    p->parent = decl;
    while (open >= 0 && !p->panic && !parser_at(p, TOKEN_brace_close)) {
        parse_case(p, decl);
        if (!parser_take(p, TOKEN_comma)) break;
    }
    if (open >= 0 && !p->panic && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end))
        parser_expected(p, "',' or '}' after a case");
    parser_close_bracket(p, open);
    if (open >= 0) decl->end = parser_previous(p)->loc;
    p->parent = parent;
}

static Expr *parse_enum(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_enum, p->token->loc, NULL, prefix);
    parser_advance(p);
    if (!parser_take_word(p, KEYWORD_class)) parser_take_word(p, KEYWORD_struct);
    if (token_is_identifier(p->token)) {
        decl->loc = p->token->loc;
        decl->name = p->token->name;
        parser_advance(p);
    }
    if (parser_take(p, TOKEN_colon)) parse_bases(p, &decl->bases);
    if (!p->panic && decl->name && parser_at(p, TOKEN_semicolon)) make_forward(decl);
    else if (!p->panic) parse_cases(p, decl);
    parse_add_decl(out, p, decl);
    return reference(p, decl);
}

Expr *parse_aggregate(Parser *p, const Prefix *prefix, DeclVec *out) {
    return parser_at_word(p, KEYWORD_enum) ? parse_enum(p, prefix, out) : parse_struct(p, prefix, out);
}

/* ---- the others */

static bool is_about_this(const Constraint *constraint) {
    const Expr *root = constraint->subject;
    while (root->kind == EXPR_member) root = root->a;
    return root->kind == EXPR_this_type;
}

/* `interface I where This : B, This.D == This`: a base, and a __constraint, as is all that is not said of
 * parameters. */
static void make_promises(Parser *p, Decl *interface) {
    Generics *all = interface->generics, *promises = arena_new(p->arena, Generics);
    int kept = 0;
    for (int i = 0; i < all->constraints.count; i++) {
        const Constraint *constraint = &all->constraints.at[i];
        if (constraint->subject->kind == EXPR_this_type && !constraint->equal && !constraint->optional)
            vec_push(p->arena, &interface->bases, constraint->bound);
        else if (all->params.count && !is_about_this(constraint)) all->constraints.at[kept++] = *constraint;
        else vec_push(p->arena, &promises->constraints, *constraint);
    }
    if (kept == all->constraints.count) return;
    all->constraints.count = kept;
    if (!all->params.count && !all->demands.count) interface->generics = NULL;
    if (!promises->constraints.count) return;
    Decl *decl = parse_new_decl(p, DECL_constraint, promises->constraints.at[0].loc, NULL, NULL);
    decl->generics = promises;
    decl->parent = interface;
    vec_push(p->arena, &interface->members, decl);
}

void parse_interface(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of an interface");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_interface, loc, name, prefix);
    parse_head(p, decl);
    if (!p->panic && decl->generics) make_promises(p, decl);
    parse_braces(p, decl);
    if (!p->panic) parser_take(p, TOKEN_semicolon);
    parse_add_decl(out, p, decl);
}

void parse_extension(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_extension, p->token->loc, NULL, prefix);
    parser_advance(p);
    if (parser_at(p, TOKEN_less)) decl->generics = parse_generic_parameters(p, decl->generics);
    if (!p->panic) decl->target = parse_type(p);
    if (!p->panic && parser_take(p, TOKEN_colon)) parse_bases(p, &decl->bases);
    decl->generics = parse_where(p, decl->generics);
    parse_braces(p, decl);
    if (!p->panic) parser_take(p, TOKEN_semicolon);
    parse_add_decl(out, p, decl);
}

void parse_buffer_block(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_buffer_block, p->token->loc, NULL, prefix);
    parser_advance(p);
    if (token_is_identifier(p->token)) {
        decl->loc = p->token->loc;
        decl->name = p->token->name;
        parser_advance(p);
    }
    parse_semantics(p, decl, false);
    parse_braces(p, decl);
    for (int i = 0; i < decl->members.count;
         i++) /* not of an object: each is a shader parameter of its own */
        if (decl->members.at[i]->kind == DECL_var) decl->members.at[i]->flavour = VAR_global;
    if (!p->panic) parser_take(p, TOKEN_semicolon);
    parse_add_decl(out, p, decl);
}

/* ---- blocks of GLSL */

static Expr *named_type(Parser *p, const char *name, Expr *argument) {
    Expr *type = expr_new(p->arena, EXPR_name, argument->loc);
    type->name = name_from(p->syntax->names, name);
    Expr *applied = expr_new(p->arena, EXPR_apply, argument->loc);
    applied->a = type;
    vec_push(p->arena, &applied->args, argument);
    return applied;
}

/* float data[] */
static bool is_open_array(const Decl *member) {
    const Expr *type = member->kind == DECL_var ? member->type_expr : NULL;
    return type && type->kind == EXPR_index && type->args.count == 0;
}

static bool is_one_open_array(const Decl *block) {
    return block->members.count == 1 && is_open_array(block->members.at[0]);
}

/* Memory of a buffer: an array of any length alone is a buffer of its own, anything else is what a pointer
 * leads to. */
static Expr *storage_type(Parser *p, Decl *block) {
    Expr *type = reference(p, block), *pointer = expr_new(p->arena, EXPR_pointer_type, block->loc);
    for (int i = 0; i + 1 < block->members.count; i++)
        if (is_open_array(block->members.at[i]))
            diag_report(p->syntax->diags, DIAG_open_array_in_block, block->members.at[i]->loc);
    if (is_one_open_array(block)) {
        Decl *first = block->members.at[0];
        first->type_expr = named_type(p, "RWStructuredBuffer", first->type_expr->a);
        return type;
    }
    pointer->a = type;
    return pointer;
}

/* Its members are parameters by their own names. */
static void open_block(Parser *p, Decl *block, bool storage, DeclVec *out) {
    if (storage && !is_one_open_array(block))
        diag_report(p->syntax->diags, DIAG_block_needs_name, block->loc);
    if (storage) storage_type(p, block);
    block->kind = DECL_buffer_block;
    for (int i = 0; i < block->members.count; i++)
        if (block->members.at[i]->kind == DECL_var) block->members.at[i]->flavour = VAR_global;
    parse_add_decl(out, p, block);
}

void parse_glsl_block(Parser *p, const Prefix *prefix, DeclVec *out) {
    bool storage = parser_take_word(p, KEYWORD_buffer);
    Decl *block = parse_new_decl(p, DECL_struct, p->token->loc, p->token->name, NULL);
    parser_advance(p);
    parse_braces(p, block);
    if (p->panic || parser_take(p, TOKEN_semicolon) || p->token->line_start || parser_at(p, TOKEN_end)) {
        open_block(p, block, storage, out);
        return;
    }
    parse_add_decl(out, p, block);
    Prefix rest = {.modifiers = prefix->modifiers, .attributes = prefix->attributes, .loc = prefix->loc};
    Expr *type = reference(p, block);
    parse_variables(p, PLACE_global, &rest,
                    storage ? storage_type(p, block) : named_type(p, "ConstantBuffer", type), out);
}
