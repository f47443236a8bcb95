/* Functions, constructors, properties and subscripts.
 *
 *   function-rest = [ parameters ] "(" params ")" [ "throws" type ] { ":" semantic } [ where ] body
 *   modern        = "func" name [ parameters ] "(" params ")" [ "throws" type ] [ "->" type ] [ where ] body
 *   extension     = "__func_extension" [ parameters ] ( "fwd_diff" | "bwd_diff" | "__apply" ) "(" function ")"
 *                   "(" params ")" [ "->" type ] [ where ] body
 *   param         = { modifier | attribute } ( type [ name { dimension } ] | name ":" type ) { ":" semantic }
 *                   [ "=" initializer ]
 *   property      = "property" ( type name | name ":" type ) ( "{" { accessor } "}" | ";" )
 *   subscript     = "__subscript" [ parameters ] "(" params ")" "->" type [ where ] ( "{" { accessor } "}" | ";" )
 *   accessor      = prefix ( "get" | "set" | "ref" ) [ "(" ( params | name ) ")" ] body
 *   body          = block | ";" */
#include "syntax/parser.h"

void parse_move_modifiers(Decl *decl) {
    const Expr *type = decl->type_expr;
    if (!type || type->kind != EXPR_modified_type) return;
    if (type->flags & EXPR_NO_DIFF) decl->modifiers |= MODIFIER_no_diff;
    if (type->flags & EXPR_CONST) decl->modifiers |= MODIFIER_const;
    if (type->flags & EXPR_ROW_MAJOR) decl->modifiers |= MODIFIER_row_major;
    if (type->flags & EXPR_COLUMN_MAJOR) decl->modifiers |= MODIFIER_column_major;
    decl->type_expr = type->a;
}

/* ---- parameters */

static void modern_parameter(Parser *p, Decl *param) {
    Prefix inner = {0};
    param->name = p->token->name;
    parser_advance(p);
    parser_advance(p);
    parse_prefix(p, &inner);
    param->modifiers |= inner.modifiers;
    param->type_expr = parse_declared_type(p);
}

static void typed_parameter(Parser *p, Decl *param) {
    param->type_expr = parse_type(p);
    if (scan_is_conjunction(p)) param->type_expr = parse_all_types(p, param->type_expr);
    if (parser_take_word(p, KEYWORD_const)) param->modifiers |= MODIFIER_const;
    if (token_is_identifier(p->token)) {
        param->loc = p->token->loc;
        param->name = p->token->name;
        parser_advance(p);
        param->type_expr = parse_array_suffix(p, param->type_expr);
    }
    parse_semantics(p, param, false);
}

/* "inout)": a direction, and not a type of that name, which lacks its type. */
static bool at_lone_direction(const Parser *p) {
    TokenKind next = parser_peek(p, 1)->kind;
    return (keyword_modifiers(token_word(p->token)) & (MODIFIER_in | MODIFIER_out)) &&
           (next == TOKEN_comma || next == TOKEN_paren_close);
}

static void parse_parameter(Parser *p, Decl *func, bool modern) {
    Prefix prefix = {0};
    parse_prefix(p, &prefix);
    if (at_lone_direction(p)) parser_advance(p);
    if (p->panic) return;
    Decl *param = parse_new_decl(p, DECL_var, p->token->loc, NULL, &prefix);
    param->flavour = VAR_param;
    if (modern && token_is_identifier(p->token) && parser_peek(p, 1)->kind == TOKEN_colon)
        modern_parameter(p, param);
    else typed_parameter(p, param);
    parse_move_modifiers(param);
    if (param->type_expr->kind == EXPR_expand) param->modifiers |= MODIFIER_pack;
    if (!p->panic && parser_take(p, TOKEN_equal)) param->init = parse_initializer(p);
    vec_push(p->arena, &func->params, param);
}

static bool is_void_list(const Parser *p) {
    return parser_at_word(p, KEYWORD_type) && strcmp(p->token->name->text, "void") == 0 &&
           parser_peek(p, 1)->kind == TOKEN_paren_close;
}

static void miss_comma(Parser *p, const Decl *func) {
    const Expr *type = vec_last(&func->params)->type_expr;
    bool reference =
        parser_at(p, TOKEN_amp) || (type->kind == EXPR_name && strcmp(type->name->text, "ref") == 0);
    parser_expected(p, "',' or ')' after a parameter");
    if (reference) diag_note(p->syntax->diags, DIAG_note_by_reference, 0);
}

void parse_parameters(Parser *p, Decl *func, bool modern) {
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' and parameters");
    if (open < 0) return;
    Decl *parent = p->parent;
    p->parent = func;
    if (is_void_list(p)) parser_advance(p);
    while (!p->panic && !parser_at(p, TOKEN_paren_close)) {
        parse_parameter(p, func, modern);
        if (!parser_take(p, TOKEN_comma)) break;
    }
    if (!p->panic && !parser_at(p, TOKEN_paren_close) && !parser_at(p, TOKEN_end)) miss_comma(p, func);
    parser_close_bracket(p, open);
    p->parent = parent;
}

/* ---- bodies */

static void add_parameters(Parser *p, const Decl *func) {
    for (int i = 0; i < func->params.count; i++) parser_add_local(p, func->params.at[i]->name);
    const Decl *owner = func->parent;
    for (int i = 0; owner && owner->kind == DECL_subscript && i < owner->params.count; i++)
        parser_add_local(p, owner->params.at[i]->name);
    if (func->flavour == FUNC_set && func->params.count == 0)
        parser_add_local(p, name_from(p->syntax->names, "newValue"));
}

/* The '{' before the statements of a function is missing: they end with a '}' that closes nothing, which goes
 * with them. */
static void skip_open_body(Parser *p, const Decl *func) {
    bool outside = func->parent && func->parent->kind == DECL_module;
    if (!outside || !p->token->line_start) return;
    for (int at = p->at; at < p->end; at++) {
        const Token *token = &p->file->tokens[at];
        if (token->kind == TOKEN_brace_close) {
            parser_jump(p, at + 1);
            p->panic = false;
            return;
        }
        int match = token->kind == TOKEN_brace_open ? p->file->match[at] : at;
        if (match < at) return;
        at = match;
    }
}

void parse_body(Parser *p, Decl *func) {
    if (p->panic || parser_take(p, TOKEN_semicolon)) return;
    if (!parser_at(p, TOKEN_brace_open)) {
        parser_expected(p, "'{' or ';'");
        if (parser_at(p, TOKEN_arrow)) diag_note(p->syntax->diags, DIAG_note_result, 0);
        skip_open_body(p, func);
        return;
    }
    int match = p->file->match[p->at];
    if (p->lazy && match >= 0 && match < p->end) {
        func->lazy = (TokenRange){p->token, match - p->at + 1};
        func->end = p->file->tokens[match].loc;
        parser_jump(p, match + 1);
        return;
    }
    Decl *parent = p->parent;
    int scope = parser_scope(p);
    p->parent = func;
    add_parameters(p, func);
    func->body = parse_block(p);
    func->end = func->body->end;
    parser_end_scope(p, scope);
    p->parent = parent;
}

/* ---- functions */

/* throws E */
static void parse_throws(Parser *p, Decl *func) {
    if (!p->panic && parser_take_word(p, KEYWORD_throws)) func->throws = parse_type(p);
}

void parse_function_rest(Parser *p, Decl *func) {
    if (parser_at(p, TOKEN_less)) func->generics = parse_generic_parameters(p, func->generics);
    if (!p->panic) parse_parameters(p, func, func->flavour == FUNC_init);
    parser_take_word(p, KEYWORD_const);
    parse_throws(p, func);
    parse_semantics(p, func, false);
    func->generics = parse_where(p, func->generics);
    parse_body(p, func);
}

static void result_after_arrow(Parser *p, Decl *decl) {
    if (!p->panic && parser_take(p, TOKEN_arrow)) decl->type_expr = parse_declared_type(p);
    parse_move_modifiers(decl);
}

void parse_modern_function(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Loc loc = p->token->loc;
    Name name;
    if (parser_take_word(p, KEYWORD_operator)) name = parse_operator_name(p);
    else name = parser_expect_name(p, "the name of a function");
    if (!name) return;
    Decl *func = parse_new_decl(p, DECL_func, loc, name, prefix);
    if (parser_at(p, TOKEN_less)) func->generics = parse_generic_parameters(p, func->generics);
    if (!p->panic) parse_parameters(p, func, true);
    parse_throws(p, func);
    result_after_arrow(p, func);
    parse_semantics(p, func, false);
    func->generics = parse_where(p, func->generics);
    parse_body(p, func);
    parse_add_decl(out, p, func);
}

/* What a function extension says is what an attribute on the derivative says. */
static const char *extension_attribute(const Parser *p) {
    switch (token_word(p->token)) {
    case KEYWORD_fwd_diff: return "ForwardDerivativeOf";
    case KEYWORD_bwd_diff: return "BackwardDerivativeOf";
    case KEYWORD_apply: return "__ApplyOf";
    default: return NULL;
    }
}

/* __func_extension fwd_diff(f)(params) -> type { }: a function without a name of its own */
void parse_func_extension(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Decl *func = parse_new_decl(p, DECL_func, p->token->loc, NULL, prefix);
    if (parser_at(p, TOKEN_less)) func->generics = parse_generic_parameters(p, func->generics);
    Attribute *attribute = arena_new(p->arena, Attribute);
    attribute->loc = p->token->loc;
    const char *kind = p->panic ? NULL : extension_attribute(p);
    if (!kind) {
        parser_expected(p, "'fwd_diff', 'bwd_diff' or '__apply'");
        return;
    }
    attribute->name = name_from(p->syntax->names, kind);
    const char *operator_name = p->token->name->text;
    parser_advance(p);
    attribute->args = parse_arguments(p);
    if (!p->panic && attribute->args.count != 1) parser_expected(p, "the name of one function");
    if (p->panic) return;
    const Expr *of = attribute->args.at[0];
    if (of->kind == EXPR_apply) of = of->a;
    func->name = name_from(p->syntax->names,
                           format_text(p->arena, "%s(%s)", operator_name, of->name ? of->name->text : "?"));
    vec_push(p->arena, &func->attributes, attribute);
    Attribute *mark = arena_new(p->arena, Attribute);
    mark->loc = attribute->loc;
    mark->name = name_from(p->syntax->names, "__FuncExtension");
    vec_push(p->arena, &func->attributes, mark);
    parse_parameters(p, func, false);
    result_after_arrow(p, func);
    func->generics = parse_where(p, func->generics);
    parse_body(p, func);
    parse_add_decl(out, p, func);
}

void parse_init(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *func = parse_new_decl(p, DECL_func, p->token->loc, p->token->name, prefix);
    func->flavour = FUNC_init;
    parser_advance(p);
    parse_function_rest(p, func);
    parse_add_decl(out, p, func);
}

/* ---- accessors */

/* set(x): it has the type of the property */
static void parse_new_value(Parser *p, Decl *func) {
    const Expr *type = func->parent->type_expr;
    bool bare = type && func->flavour == FUNC_set && token_is_identifier(parser_peek(p, 1)) &&
                parser_peek(p, 2)->kind == TOKEN_paren_close;
    if (!bare) {
        parse_parameters(p, func, true);
        return;
    }
    parser_advance(p);
    Decl *param = decl_new(p->arena, DECL_var, p->token->loc, p->token->name);
    param->parent = func;
    param->file = p->file;
    param->flavour = VAR_param;
    param->type_expr = expr_copy(p->arena, type);
    vec_push(p->arena, &func->params, param);
    parser_advance(p);
    parser_advance(p);
}

static void refuse_throws(Parser *p, Decl *func) {
    if (p->panic || !parser_at_word(p, KEYWORD_throws)) return;
    const char *owner = func->parent->kind == DECL_property ? "the property" : "an element";
    diag_report(p->syntax->diags, DIAG_accessor_throws, p->token->loc, func->name->text, owner);
    parse_throws(p, func);
    func->throws = NULL;
}

static void parse_accessor(Parser *p, Decl *owner) {
    Prefix prefix = {.doc_at = p->token->loc};
    parse_prefix(p, &prefix);
    FuncFlavour flavour = FUNC_get;
    if (parser_at_word(p, KEYWORD_set)) flavour = FUNC_set;
    else if (parser_at_word(p, KEYWORD_ref)) flavour = FUNC_ref;
    else if (!parser_at_word(p, KEYWORD_get)) {
        parser_expected(p, "'get', 'set' or 'ref'");
        return;
    }
    Decl *func = parse_new_decl(p, DECL_func, p->token->loc, p->token->name, &prefix);
    func->flavour = (uint8_t)flavour;
    parser_advance(p);
    if (parser_at(p, TOKEN_paren_open)) parse_new_value(p, func);
    refuse_throws(p, func);
    parse_body(p, func);
    parse_add_decl(&owner->members, p, func);
}

static void parse_accessors(Parser *p, Decl *owner) {
    Decl *parent = p->parent;
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{' and accessors");
    p->parent = owner;
    while (open >= 0 && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end)) {
        int before = p->at;
        if (!parser_take(p, TOKEN_semicolon)) parse_accessor(p, owner);
        if (p->panic) parser_skip_declaration(p);
        if (p->at == before && !parser_at(p, TOKEN_brace_close)) parser_advance(p);
    }
    parser_close_bracket(p, open);
    if (open >= 0) owner->end = parser_previous(p)->loc;
    p->parent = parent;
}

void parse_property(Parser *p, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Decl *decl = parse_new_decl(p, DECL_property, p->token->loc, NULL, prefix);
    bool modern = token_is_identifier(p->token) && parser_peek(p, 1)->kind == TOKEN_colon;
    if (!modern) decl->type_expr = parse_declared_type(p);
    decl->loc = p->token->loc;
    decl->name = p->panic ? NULL : parser_expect_name(p, "the name of a property");
    if (!decl->name) return;
    if (!modern) decl->type_expr = parse_array_suffix(p, decl->type_expr);
    else if (parser_expect(p, TOKEN_colon)) decl->type_expr = parse_declared_type(p);
    parse_move_modifiers(decl);
    if (!p->panic && !parser_take(p, TOKEN_semicolon)) parse_accessors(p, decl);
    parse_add_decl(out, p, decl);
}

void parse_subscript(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_subscript, p->token->loc, p->token->name, prefix);
    parser_advance(p);
    if (parser_at(p, TOKEN_less)) decl->generics = parse_generic_parameters(p, decl->generics);
    if (!p->panic) parse_parameters(p, decl, true);
    if (!p->panic && !parser_at(p, TOKEN_arrow)) parser_expected(p, "'->' and the type of the elements");
    result_after_arrow(p, decl);
    decl->generics = parse_where(p, decl->generics);
    if (!p->panic && !parser_take(p, TOKEN_semicolon)) parse_accessors(p, decl);
    parse_add_decl(out, p, decl);
}
