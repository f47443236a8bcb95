/* Declarations: which kind is it? The kinds themselves are in parse_func.c, parse_var.c, parse_aggregate.c
 * and parse_module.c.
 *
 *   declaration = prefix ( ";" | struct | enum | interface | extension | typedef | alias | assoc | func | let | init
 *                        | property | subscript | buffer-block | glsl-block | module-declaration | typed ) */
#include "syntax/parser.h"

Decl *parse_new_decl(Parser *p, DeclKind kind, Loc loc, Name name, const Prefix *prefix) {
    Decl *decl = decl_new(p->arena, kind, loc, name);
    decl->parent = p->parent;
    decl->file = p->file;
    if (!prefix) return decl;
    decl->modifiers = prefix->modifiers;
    decl->number = prefix->number;
    decl->attributes = prefix->attributes;
    decl->generics = prefix->generics;
    decl->doc_at = prefix->doc_at;
    return decl;
}

/* Done with a declaration: its generic parameters belong to it. */
void parse_add_decl(DeclVec *out, Parser *p, Decl *decl) {
    for (int i = 0; decl->generics && i < decl->generics->params.count; i++)
        decl->generics->params.at[i]->parent = decl;
    vec_push(p->arena, out, decl);
}

void parse_members(Parser *p, Decl *decl) {
    Decl *parent = p->parent;
    Place place = decl->kind == DECL_namespace ? PLACE_global : PLACE_member;
    bool entered = parser_enter(p);
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'");
    p->parent = decl;
    while (entered && open >= 0 && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end))
        parse_declaration(p, place, &decl->members);
    parser_close_bracket(p, open);
    if (open >= 0) decl->end = parser_previous(p)->loc;
    p->parent = parent;
    parser_leave(p);
}

/* ---- small kinds */

/* typealias V<T> = vector<T, 3>; typealias I = A & B; */
static void parse_alias(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of the new type");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_alias, loc, name, prefix);
    if (parser_at(p, TOKEN_less)) decl->generics = parse_generic_parameters(p, decl->generics);
    decl->generics = parse_where(p, decl->generics);
    if (parser_expect(p, TOKEN_equal)) decl->type_expr = parse_type(p);
    if (!p->panic && parser_take(p, TOKEN_amp)) {
        decl->kind = DECL_interface;
        decl->flavour = INTERFACE_all;
        vec_push(p->arena, &decl->bases, decl->type_expr);
        decl->type_expr = NULL;
        parse_bases(p, &decl->bases);
    }
    decl->generics = parse_where(p, decl->generics);
    parser_expect_semicolon(p, "the type");
    parse_add_decl(out, p, decl);
}

/* __constraint A.B == C; */
static void parse_constraint(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_constraint, p->token->loc, NULL, prefix);
    if (!p->parent || p->parent->kind != DECL_interface)
        diag_report(p->syntax->diags, DIAG_constraint_place, decl->loc);
    parser_advance(p);
    decl->generics = parse_constraints(p, decl->generics);
    parser_expect_semicolon(p, "the constraint");
    parse_add_decl(out, p, decl);
}

/* associatedtype D : I where D.D == D; some write the clause after the semicolon */
static void parse_assoc(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Loc loc = p->token->loc;
    Name name = parser_expect_name(p, "the name of the associated type");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_assoc, loc, name, prefix);
    if (parser_at(p, TOKEN_less)) decl->generics = parse_generic_parameters(p, decl->generics);
    if (parser_take(p, TOKEN_colon)) parse_bases(p, &decl->bases);
    decl->generics = parse_where(p, decl->generics);
    parser_expect_semicolon(p, "the associated type");
    if (!p->panic && parser_at_word(p, KEYWORD_where) && parser_previous(p)->kind == TOKEN_semicolon) {
        decl->generics = parse_where(p, decl->generics);
        parser_expect_semicolon(p, "the 'where' clause");
    }
    parse_add_decl(out, p, decl);
}

static void parse_empty(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_empty, p->token->loc, NULL, prefix);
    bool dangling = prefix->modifiers || prefix->attributes.count || prefix->generics;
    if (dangling) parser_expected(p, "a declaration");
    p->panic = false;
    parser_advance(p);
    parse_add_decl(out, p, decl);
}

/* After '}' on the same line: in "int x", "S f(" or "S s;" no variable is declared that is of the type
 * before. */
static bool at_another_declaration(const Parser *p) {
    const Token *next = parser_peek(p, 1);
    return parser_at(p, TOKEN_name) && next->kind == TOKEN_name && !next->line_start;
}

/* struct and enum: variables may follow, `struct { int x; } s;`, on the same line. */
static void parse_aggregate_and_variables(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    Expr *type = parse_aggregate(p, prefix, out);
    if (p->panic || !type || parser_take(p, TOKEN_semicolon)) return;
    if (p->token->line_start || parser_at(p, TOKEN_brace_close) || parser_at(p, TOKEN_end)) return;
    if (at_another_declaration(p) || (!token_is_identifier(p->token) && !parser_at(p, TOKEN_star))) {
        if (parser_complain(p))
            diag_report(p->syntax->diags, DIAG_after_aggregate, p->token->loc,
                        token_describe(p->arena, p->token));
        p->panic = false;
        return;
    }
    const uint32_t visibility = MODIFIER_public | MODIFIER_internal | MODIFIER_private;
    Prefix rest = {.modifiers = prefix->modifiers, .loc = prefix->loc};
    type->decl->modifiers &= visibility;
    parse_variables(p, place, &rest, type, out);
}

/* ---- which one */

/* `struct S x`: the word says what is known anyway. */
static bool is_elaborated(const Parser *p) {
    return token_is_identifier(parser_peek(p, 1)) &&
           (token_is_identifier(parser_peek(p, 2)) || parser_peek(p, 2)->kind == TOKEN_star);
}

static bool starts_type(const Parser *p) {
    return token_is_identifier(p->token) || parser_at_word(p, KEYWORD_this_type) ||
           parser_at(p, TOKEN_scope) || parser_at(p, TOKEN_paren_open);
}

/* uniform Block { ... } */
static bool at_uniform_block(const Parser *p, Place place, const Prefix *prefix) {
    return place == PLACE_global && (prefix->modifiers & MODIFIER_uniform) && token_is_identifier(p->token) &&
           parser_peek(p, 1)->kind == TOKEN_brace_open;
}

static void parse_other(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    if (at_uniform_block(p, place, prefix)) parse_glsl_block(p, prefix, out);
    else if (starts_type(p)) parse_typed_declaration(p, place, prefix, out);
    else parser_expected(p, "a declaration");
}

static bool refuse_local(Parser *p, Place place) {
    if (place != PLACE_local) return false;
    if (parser_complain(p))
        diag_report(p->syntax->diags, DIAG_word_in_function, p->token->loc,
                    token_describe(p->arena, p->token));
    return true;
}

/* What only types have. */
static bool refuse_outside(Parser *p, Place place) {
    if (place != PLACE_global) return refuse_local(p, place);
    if (parser_complain(p))
        diag_report(p->syntax->diags, DIAG_word_outside_type, p->token->loc,
                    token_describe(p->arena, p->token));
    return true;
}

bool parse_starts_let(const Parser *p) {
    switch ((TokenKind)parser_peek(p, 1)->kind) {
    case TOKEN_name:
    case TOKEN_int:
    case TOKEN_float:
    case TOKEN_string:
    case TOKEN_paren_open: return !parser_is_local(p, p->token->name);
    default: return false;
    }
}

/* type_param T : I; a type of the whole program, which another module gives: as extern struct T : I; */
static void parse_type_param(Parser *p, const Prefix *prefix, DeclVec *out) {
    Prefix external = *prefix;
    external.modifiers |= MODIFIER_extern;
    parse_aggregate(p, &external, out);
    if (!p->panic) parser_expect(p, TOKEN_semicolon);
}

/* precision highp float; of GLSL: which numbers have how many bits is known. */
static bool parse_precision(Parser *p) {
    Keyword how = token_word(parser_peek(p, 1));
    if (how != KEYWORD_highp && how != KEYWORD_mediump && how != KEYWORD_lowp) return false;
    if (parser_peek(p, 2)->kind != TOKEN_name) return false; /* a variable of that name */
    parser_advance(p);
    parser_advance(p);
    parse_type(p);
    parser_expect_semicolon(p, "the precision");
    return true;
}

/* Words that start a declaration only if a name (or the like) follows; true if it was one. */
static bool parse_contextual(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    const Token *next = parser_peek(p, 1);
    TokenKind kind = (TokenKind)next->kind;
    bool name = token_is_identifier(next);
    Keyword word = token_word(p->token);
    switch (word) {
    case KEYWORD_let:
    case KEYWORD_var:
        name = parse_starts_let(p);
        if (name) parse_let(p, place, prefix, out);
        return name;
    case KEYWORD_alias:
        if (name) parse_alias(p, prefix, out);
        return name;
    case KEYWORD_assoc:
        if (name && !refuse_local(p, place)) parse_assoc(p, prefix, out);
        return name;
    case KEYWORD_func:
        name |= token_word(next) == KEYWORD_operator;
        if (name && !refuse_local(p, place)) parse_modern_function(p, prefix, out);
        return name;
    case KEYWORD_extension:
    case KEYWORD_old_extension:
        name = kind == TOKEN_name || kind == TOKEN_less || (kind == TOKEN_brace_open && place != PLACE_local);
        if (name && !refuse_local(p, place)) parse_extension(p, prefix, out);
        return name;
    case KEYWORD_property:
        name = kind == TOKEN_name || scan_is_tuple_of(p, p->at + 1);
        if (name && !refuse_local(p, place)) parse_property(p, prefix, out);
        return name;
    case KEYWORD_cbuffer:
    case KEYWORD_tbuffer:
        name |= kind == TOKEN_brace_open || kind == TOKEN_colon;
        if (name && !refuse_local(p, place)) parse_buffer_block(p, prefix, out);
        return name;
    case KEYWORD_precision: return parse_precision(p);
    case KEYWORD_buffer:
        name &= place == PLACE_global && parser_peek(p, 2)->kind == TOKEN_brace_open;
        if (name) parse_glsl_block(p, prefix, out);
        return name;
    case KEYWORD_type_param:
        if (name && !refuse_local(p, place)) parse_type_param(p, prefix, out);
        return name;
    case KEYWORD_static_assert:
        if (kind != TOKEN_paren_open) return false;
        if (parser_complain(p)) diag_report(p->syntax->diags, DIAG_static_assert_place, p->token->loc);
        return true;
    default: return false;
    }
}

static bool is_module_word(Keyword word) {
    return word == KEYWORD_import || word == KEYWORD_old_import || word == KEYWORD_include ||
           word == KEYWORD_implementing || word == KEYWORD_module || word == KEYWORD_namespace;
}

/* template<typename T> T f(T x): a habit from C++ */
static bool complain_of_template(Parser *p) {
    bool found = parser_at(p, TOKEN_name) && strcmp(p->token->name->text, "template") == 0 &&
                 parser_peek(p, 1)->kind == TOKEN_less;
    if (found && parser_complain(p)) diag_report(p->syntax->diags, DIAG_template_syntax, p->token->loc);
    return found;
}

void parse_declaration_after(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    Keyword word = token_word(p->token);
    if (p->panic) return;
    if (parser_at(p, TOKEN_semicolon)) {
        parse_empty(p, prefix, out);
        return;
    }
    switch (word) {
    case KEYWORD_struct:
    case KEYWORD_class:
    case KEYWORD_enum:
        if (word == KEYWORD_enum && place == PLACE_local)
            diag_portable(p->syntax->diags, p->token->loc, "an enum inside of a function");
        if (is_elaborated(p)) parse_typed_declaration(p, place, prefix, out);
        else parse_aggregate_and_variables(p, place, prefix, out);
        return;
    case KEYWORD_interface:
        if (!refuse_local(p, place)) parse_interface(p, prefix, out);
        return;
    case KEYWORD_typedef: parse_typedef(p, prefix, out); return;
    case KEYWORD_init:
        if (!refuse_outside(p, place)) parse_init(p, prefix, out);
        return;
    case KEYWORD_subscript:
        if (!refuse_outside(p, place)) parse_subscript(p, prefix, out);
        return;
    case KEYWORD_constraint: parse_constraint(p, prefix, out); return;
    case KEYWORD_func_extension:
        if (!refuse_local(p, place)) parse_func_extension(p, prefix, out);
        return;
    default: break;
    }
    if (parse_contextual(p, place, prefix, out) || complain_of_template(p)) return;
    bool names_something = parser_peek(p, 1)->kind == TOKEN_name || parser_peek(p, 1)->kind == TOKEN_string;
    if (is_module_word(word) && names_something && refuse_local(p, place)) return;
    if (parse_module_declaration(p, prefix, out)) return;
    parse_other(p, place, prefix, out);
}

static bool has_attribute(const Decl *decl, const char *name) {
    for (int i = 0; i < decl->attributes.count; i++)
        if (strcmp(decl->attributes.at[i]->name->text, name) == 0) return true;
    return false;
}

/* An entry point that does not say its group size has the one of the layout before. */
static void give_group_size(Parser *p, Decl *decl) {
    bool entry = decl->name && (strcmp(decl->name->text, "main") == 0 || has_attribute(decl, "shader"));
    if (decl->kind != DECL_func || !entry || has_attribute(decl, "numthreads")) return;
    Attribute *attribute = arena_new(p->arena, Attribute);
    attribute->loc = decl->loc;
    attribute->name = name_from(p->syntax->names, "numthreads");
    attribute->args = p->group_size;
    vec_push(p->arena, &decl->attributes, attribute);
}

/* The group size of the layout as a constant, gl_WorkGroupSize, that arrays can be sized by. */
void parse_group_size_constant(Parser *p, DeclVec *out) {
    if (p->group_size.count == 0) return;
    Loc loc = p->group_size.at[0]->loc;
    Expr *type = expr_new(p->arena, EXPR_name, loc), *value = expr_new(p->arena, EXPR_call, loc);
    type->name = name_from(p->syntax->names, "uint3");
    value->a = expr_copy(p->arena, type);
    for (int i = 0; i < p->group_size.count; i++)
        vec_push(p->arena, &value->args, expr_copy(p->arena, p->group_size.at[i]));
    Decl *decl = parse_new_decl(p, DECL_var, loc, name_from(p->syntax->names, "gl_WorkGroupSize"), NULL);
    decl->flavour = VAR_global;
    decl->modifiers = MODIFIER_static | MODIFIER_const;
    decl->type_expr = type;
    decl->init = value;
    parse_add_decl(out, p, decl);
}

/* How many tokens come before the brace of a block that is no scope; 0: it is none. */
static int starts_open_block(const Parser *p, Place place) {
    switch (token_word(p->token)) {
    case KEYWORD_extern: /* extern "C" { ... } */
        return place == PLACE_global && parser_peek(p, 1)->kind == TOKEN_string &&
                       parser_peek(p, 2)->kind == TOKEN_brace_open
                   ? 2
                   : 0;
    case KEYWORD_file_decl: return place == PLACE_global && parser_peek(p, 1)->kind == TOKEN_brace_open;
    case KEYWORD_transparent_block:
    case KEYWORD_ignored_block: return parser_peek(p, 1)->kind == TOKEN_brace_open;
    default: return 0;
    }
}

/* Declarations in a block that stand as if they were around it, or tokens that stand for nothing. */
static bool parse_open_block(Parser *p, Place place, DeclVec *out) {
    bool ignored = token_word(p->token) == KEYWORD_ignored_block;
    int words = starts_open_block(p, place);
    if (!words) return false;
    while (words--) parser_advance(p);
    bool entered = parser_enter(p);
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'");
    int closing = p->file->match[open];
    if (ignored) parser_jump(p, closing > open && closing < p->end ? closing : p->end);
    while (entered && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end))
        parse_declaration(p, place, out);
    parser_close_bracket(p, open);
    parser_leave(p);
    return true;
}

void parse_declaration(Parser *p, Place place, DeclVec *out) {
    int before = p->at, first = out->count;
    Prefix prefix = {.doc_at = p->token->loc};
    if (parse_open_block(p, place, out)) return;
    parse_prefix(p, &prefix);
    parse_declaration_after(p, place, &prefix, out);
    for (int i = first; p->group_size.count && place == PLACE_global && i < out->count; i++)
        give_group_size(p, out->at[i]);
    if (p->panic) parser_skip_declaration(p);
    if (p->at == before && !parser_at(p, TOKEN_brace_close)) parser_advance(p);
}
