/* Variables, and what is declared in the way of C: a type, then names with stars and brackets around them.
 *
 *   typed      = base-type declarator { "," declarator } ";" | base-type { "*" } name function-rest
 *   declarator = { "*" } name { "[" [ size ] "]" } { ":" semantic } [ "=" initializer ]
 *   let        = ( "let" | "var" ) name [ ":" type ] [ "=" initializer ] { "," ... } ";"
 *   typedef    = "typedef" ( aggregate | base-type ) declarator { "," declarator } ( ";" | end of the line ) */
#include "syntax/parser.h"

static VarFlavour flavour_at(Place place) {
    switch (place) {
    case PLACE_global: return VAR_global;
    case PLACE_member: return VAR_field;
    case PLACE_local: return VAR_local;
    }
    return VAR_global;
}

/* ---- semantics */

static void skip_parentheses(Parser *p) {
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    while (open >= 0 && !parser_at(p, TOKEN_end) && p->at != p->file->match[open]) {
        if (p->file->match[open] < 0 && (parser_at(p, TOKEN_semicolon) || parser_at(p, TOKEN_brace_close)))
            break;
        parser_advance(p);
    }
    parser_close_bracket(p, open);
}

/* `: register(b0)`, `: packoffset(c0)` and, of ray payloads, `: read(caller)`, `: write(miss)` have no
 * effect. */
static bool at_placement(const Parser *p) {
    if (p->token->kind != TOKEN_name || parser_peek(p, 1)->kind != TOKEN_paren_open) return false;
    const char *word = p->token->name->text;
    return parser_at_word(p, KEYWORD_register) || parser_at_word(p, KEYWORD_packoffset) ||
           strcmp(word, "read") == 0 || strcmp(word, "write") == 0;
}

/* `: SV_X`, placements, and of fields `: 4`, the width in bits. */
void parse_semantics(Parser *p, Decl *decl, bool bits) {
    while (!p->panic && parser_take(p, TOKEN_colon)) {
        if (at_placement(p)) {
            parser_advance(p);
            skip_parentheses(p);
        } else if (token_is_identifier(p->token)) {
            decl->semantic = p->token->name;
            parser_advance(p);
        } else if (bits) decl->bits = parse_condition(p);
        else {
            bool initial = parser_at(p, TOKEN_equal) && !p->panic;
            parser_expected(p, "a semantic after ':'");
            if (initial) diag_note(p->syntax->diags, DIAG_note_initial, 0);
        }
    }
}

/* ---- variables */

static void finish_variable(Parser *p, Decl *decl, DeclVec *out) {
    if ((decl->modifiers & MODIFIER_constexpr) && decl->flavour != VAR_local)
        decl->modifiers |= MODIFIER_static;
    if (!p->panic && parser_take(p, TOKEN_equal)) decl->init = parse_initializer(p);
    if (decl->flavour == VAR_local) parser_add_local(p, decl->name);
    parse_add_decl(out, p, decl);
}

static void parse_variable(Parser *p, Place place, const Prefix *prefix, Expr *type, DeclVec *out) {
    Loc loc = p->token->loc;
    Name name =
        place == PLACE_member ? parser_expect_member_name(p, "a name") : parser_expect_name(p, "a name");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_var, loc, name, prefix);
    decl->flavour = (uint8_t)flavour_at(place);
    decl->type_expr = parse_array_suffix(p, type);
    parse_move_modifiers(decl);
    parse_semantics(p, decl, place == PLACE_member);
    finish_variable(p, decl, out);
}

/* What other languages write behind the name of a variable is told along with the ';' that was expected. */
static void end_declaration(Parser *p, bool inferred) {
    TokenKind kind = (TokenKind)p->token->kind;
    int errors = p->errors;
    parser_expect_semicolon(p, "the declaration");
    if (p->errors == errors || !p->panic) return;
    Diags *diags = p->syntax->diags;
    if (kind == TOKEN_fat_arrow) diag_note(diags, DIAG_note_lambda, 0);
    if (kind == TOKEN_equal_equal) diag_note(diags, DIAG_note_initial, 0);
    if (inferred && kind == TOKEN_name && !parser_at_word(p, KEYWORD_in))
        diag_note(diags, DIAG_note_let_type, 0);
}

/* int x, float y */
static bool at_other_type(const Parser *p) {
    return parser_at_word(p, KEYWORD_type) && token_is_identifier(parser_peek(p, 1)) &&
           !parser_peek(p, 1)->line_start;
}

void parse_variables(Parser *p, Place place, const Prefix *prefix, Expr *base, DeclVec *out) {
    bool first = true;
    do {
        Expr *type = parse_pointer_suffix(p, first ? base : expr_copy(p->arena, base));
        if (!first && at_other_type(p)) {
            parser_expected(p, "the name of a variable");
            diag_note(p->syntax->diags, DIAG_note_other_type, 0);
            break;
        }
        parse_variable(p, place, prefix, type, out);
        first = false;
    } while (!p->panic && parser_take(p, TOKEN_comma));
    end_declaration(p, false);
}

/* ---- functions and variables */

static void parse_function(Parser *p, const Prefix *prefix, Expr *result, DeclVec *out) {
    Loc loc = p->token->loc;
    Name name;
    if (parser_take_word(p, KEYWORD_operator)) name = parse_operator_name(p);
    else name = parser_expect_name(p, "a name");
    if (!name) return;
    Decl *decl = parse_new_decl(p, DECL_func, loc, name, prefix);
    if (decl->modifiers & MODIFIER_constexpr) diag_report(p->syntax->diags, DIAG_constexpr_function, loc);
    decl->modifiers &= ~(uint32_t)(MODIFIER_constexpr | MODIFIER_const);
    decl->type_expr = result;
    parse_move_modifiers(decl);
    parse_function_rest(p, decl);
    parse_add_decl(out, p, decl);
}

/* After the type and `stars` stars: the name of a function? */
static bool is_function(const Parser *p, int stars) {
    const Token *name = parser_peek(p, stars);
    TokenKind next = (TokenKind)parser_peek(p, stars + 1)->kind;
    if (token_word(name) == KEYWORD_operator) return true;
    return token_is_identifier(name) && (next == TOKEN_paren_open || next == TOKEN_less);
}

/* No name after the type: `S(int x) { }` inside S, a constructor as C++ writes it, or `f(x);`, a
 * statement. */
static bool complain_of_call(Parser *p, Place place, const Expr *type) {
    if (place == PLACE_local || !parser_at(p, TOKEN_paren_open)) return false;
    bool constructor = type->kind == EXPR_name && p->parent && type->name == p->parent->name;
    if (!parser_complain(p)) return true;
    int close = p->file->match[p->at];
    bool body = close > p->at && close + 1 < p->end && p->file->tokens[close + 1].kind == TOKEN_brace_open;
    if (constructor) diag_report(p->syntax->diags, DIAG_constructor_syntax, type->loc, type->name->text);
    else if (body && type->kind == EXPR_name)
        diag_report(p->syntax->diags, DIAG_result_missing, type->loc, type->name->text);
    else diag_report(p->syntax->diags, DIAG_statement_outside, type->loc);
    return true;
}

static int count_stars(const Parser *p) {
    int stars = 0;
    while (parser_peek(p, stars)->kind == TOKEN_star) stars++;
    return stars;
}

/* int& r = x; */
static void refuse_reference(Parser *p) {
    if (!parser_at(p, TOKEN_amp) || parser_peek(p, 1)->kind != TOKEN_name) return;
    if (!p->panic) diag_report(p->syntax->diags, DIAG_no_references, p->token->loc);
    parser_advance(p);
}

void parse_typed_declaration(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    Expr *base = parse_base_type(p);
    if (scan_is_conjunction(p)) base = parse_all_types(p, base);
    Prefix all = *prefix;
    if (parser_take_word(p, KEYWORD_const)) all.modifiers |= MODIFIER_const;
    refuse_reference(p);
    int stars = count_stars(p);
    if (stars && parser_peek(p, stars)->kind == TOKEN_bracket_open) { /* float*[4] x */
        base = parse_type_after(p, base);
        stars = count_stars(p);
    }
    if (p->panic || complain_of_call(p, place, base)) return;
    if (!is_function(p, stars)) {
        parse_variables(p, place, &all, base, out);
        return;
    }
    if (place != PLACE_local) {
        parse_function(p, &all, parse_pointer_suffix(p, base), out);
        return;
    }
    const Token *name = parser_peek(p, stars);
    if (!parser_complain(p) || p->noted_unclosed)
        return; /* all that follows is inside, and it was said why */
    diag_report(p->syntax->diags, DIAG_local_function, name->loc, name->name->text);
    if (!parser_note_unclosed(p)) parser_note_outside(p);
}

/* ---- let, typedef */

void parse_let(Parser *p, Place place, const Prefix *prefix, DeclVec *out) {
    uint32_t modifier = parser_at_word(p, KEYWORD_let) ? MODIFIER_let : MODIFIER_var;
    parser_advance(p);
    do {
        Loc loc = p->token->loc;
        Name name = parser_expect_name(p, "the name of a variable");
        if (!name) break;
        Decl *decl = parse_new_decl(p, DECL_var, loc, name, prefix);
        decl->flavour = (uint8_t)flavour_at(place);
        decl->modifiers |= modifier;
        if (parser_take(p, TOKEN_colon)) decl->type_expr = parse_declared_type(p);
        parse_move_modifiers(decl);
        finish_variable(p, decl, out);
        if (parser_at(p, TOKEN_comma))
            diag_portable(p->syntax->diags, p->token->loc, "several variables in one 'let' or 'var'");
    } while (!p->panic && parser_take(p, TOKEN_comma));
    end_declaration(p, true);
}

static bool defines_aggregate(const Parser *p) {
    Keyword word = token_word(p->token);
    if (word != KEYWORD_struct && word != KEYWORD_class && word != KEYWORD_enum) return false;
    int ahead = token_is_identifier(parser_peek(p, 1)) ? 2 : 1;
    TokenKind kind = (TokenKind)parser_peek(p, ahead)->kind;
    return kind == TOKEN_brace_open || kind == TOKEN_colon;
}

void parse_typedef(Parser *p, const Prefix *prefix, DeclVec *out) {
    Prefix none = {.loc = prefix->loc};
    bool first = true;
    parser_advance(p);
    Expr *base = defines_aggregate(p) ? parse_aggregate(p, &none, out) : parse_base_type(p);
    if (!base) return;
    do {
        Expr *type = parse_pointer_suffix(p, first ? base : expr_copy(p->arena, base));
        Loc loc = p->token->loc;
        Name name = parser_expect_name(p, "the name of the new type");
        if (!name) break;
        Decl *decl = parse_new_decl(p, DECL_alias, loc, name, prefix);
        decl->type_expr = parse_array_suffix(p, type);
        parse_add_decl(out, p, decl);
        first = false;
    } while (!p->panic && parser_take(p, TOKEN_comma));
    if (!p->token->line_start) parser_expect_semicolon(p, "the type");
}
