/* Statements. Each function bears the name of its rule.
 *
 *   statement = ";" | block | { attribute } loop-or-if | "switch" "(" expression ")" block | label ":" statement
 *             | "break" [ label ] ";" | "continue" ";" | "return" [ expression | list ] ";" | "defer" statement
 *             | "__target_switch" block | "__stage_switch" block | "__intrinsic_asm" string ";"
 *             | "discard" ";" | "throw" expression ";" | "do" statement { "catch" [ "(" name ":" type ")" ] block }
 *             | "static_assert" "(" condition [ "," string ] ")" ";" | declaration | expression ";" */
#include "syntax/parser.h"

static Stmt *new_stmt(Parser *p, StmtKind kind) { return stmt_new(p->arena, kind, p->token->loc); }

static Stmt *parse_statement(Parser *p);

/* ---- blocks */

Stmt *parse_block(Parser *p) {
    Stmt *block = new_stmt(p, STMT_block);
    int scope = parser_scope(p), angle = p->angle;
    int open = parser_open_bracket(p, TOKEN_brace_open, "'{'");
    p->angle = 0;
    while (open >= 0 && !parser_at(p, TOKEN_brace_close) && !parser_at(p, TOKEN_end)) {
        int before = p->at;
        Stmt *stmt = parse_statement(p);
        vec_push(p->arena, &block->body, stmt);
        if (p->panic) parser_skip_statement(p);
        if (p->at == before && !parser_at(p, TOKEN_brace_close)) parser_advance(p);
    }
    parser_close_bracket(p, open);
    if (open >= 0) block->end = parser_previous(p)->loc;
    p->angle = angle;
    parser_end_scope(p, scope);
    return block;
}

/* A statement that is part of another; what it declares stays in it. */
static Stmt *parse_inner(Parser *p) {
    int scope = parser_scope(p);
    Stmt *stmt = p->panic ? new_stmt(p, STMT_empty) : parse_statement(p);
    parser_end_scope(p, scope);
    return stmt;
}

/* ( expression ) */
static Expr *parse_controlled(Parser *p, const char *what) {
    int open = parser_open_bracket(p, TOKEN_paren_open, what);
    Expr *expr = open < 0 ? parse_error_expr(p) : parse_expression(p);
    parser_close_bracket(p, open);
    return expr;
}

/* ---- if */

/* let x = */
static void parse_binding(Parser *p, Stmt *stmt) {
    parser_advance(p);
    Decl *decl = parse_new_decl(p, DECL_var, p->token->loc, NULL, NULL);
    decl->flavour = VAR_local;
    decl->modifiers = MODIFIER_let;
    decl->name = parser_expect_name(p, "the name of a variable");
    if (!p->panic && parser_take(p, TOKEN_colon)) decl->type_expr = parse_declared_type(p);
    parse_move_modifiers(decl);
    parser_expect(p, TOKEN_equal);
    vec_push(p->arena, &stmt->decls, decl);
}

/* if (condition) statement */
static Stmt *parse_if_arm(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_if);
    int scope = parser_scope(p);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' after 'if'");
    if (open >= 0 && parser_at_word(p, KEYWORD_let)) parse_binding(p, stmt);
    stmt->expr = p->panic ? parse_error_expr(p) : parse_expression(p);
    parser_close_bracket(p, open);
    if (stmt->decls.count) parser_add_local(p, stmt->decls.at[0]->name);
    stmt->then = parse_inner(p);
    parser_end_scope(p, scope);
    return stmt;
}

/* `if`, or attributes of one */
static bool at_if(const Parser *p) {
    int at = p->at;
    while (at < p->end && p->file->tokens[at].kind == TOKEN_bracket_open && p->file->match[at] >= 0)
        at = p->file->match[at] + 1;
    return at < p->end && token_word(&p->file->tokens[at]) == KEYWORD_if;
}

static Stmt *parse_if(Parser *p) {
    Stmt *stmt = parse_if_arm(p);
    while (!p->panic && !stmt->other && parser_take_word(p, KEYWORD_else)) {
        if (!at_if(p)) {
            stmt->other = parse_inner(p);
            break;
        }
        AttributeVec attributes = {0};
        parse_attributes(p, &attributes);
        if (p->panic) break;
        Stmt *arm = parse_if_arm(p);
        arm->attributes = attributes;
        vec_push(p->arena, &stmt->body, arm);
    }
    return stmt;
}

/* ---- loops */

static bool starts_declaration(const Parser *p);
static Stmt *parse_declarations(Parser *p, const Prefix *prefix);

static bool is_elif(const Expr *e) {
    if (e->kind != EXPR_call || e->a->kind != EXPR_name) return false;
    const char *name = e->a->name->text;
    return strcmp(name, "elif") == 0 || strcmp(name, "elsif") == 0 || strcmp(name, "elseif") == 0;
}

static Stmt *parse_expression_statement(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_expr);
    stmt->expr = parse_expression(p);
    bool fine = p->panic || parser_at(p, TOKEN_semicolon);
    parser_expect_semicolon(p, "the expression");
    if (!fine && is_elif(stmt->expr)) diag_note(p->syntax->diags, DIAG_note_else_if, stmt->loc);
    return stmt;
}

static Stmt *parse_for_init(Parser *p) {
    if (parser_take(p, TOKEN_semicolon)) return NULL;
    if (!starts_declaration(p)) return parse_expression_statement(p);
    Prefix prefix = {0};
    parse_prefix(p, &prefix);
    return parse_declarations(p, &prefix);
}

/* for (int x : list), for (x in list) */
static bool is_for_each(const Parser *p, int open) {
    int close = open < 0 ? -1 : p->file->match[open];
    for (int at = open + 1; at < close; at++)
        if (p->file->tokens[at].kind == TOKEN_semicolon) return false;
    return close >= 0 &&
           (p->at == close || parser_at_word(p, KEYWORD_in) || token_word(parser_previous(p)) == KEYWORD_in);
}

static Stmt *parse_for(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_for);
    int scope = parser_scope(p);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' after 'for'");
    if (open >= 0) stmt->init = parse_for_init(p);
    if (p->panic && is_for_each(p, open)) diag_note(p->syntax->diags, DIAG_note_for_each, 0);
    if (!p->panic && !parser_at(p, TOKEN_semicolon)) stmt->expr = parse_expression(p);
    if (!p->panic && !parser_take(p, TOKEN_semicolon)) parser_expected(p, "';' after the condition of 'for'");
    if (!p->panic && !parser_at(p, TOKEN_paren_close)) stmt->step = parse_expression(p);
    parser_close_bracket(p, open);
    stmt->then = parse_inner(p);
    parser_end_scope(p, scope);
    return stmt;
}

static Stmt *parse_while(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_while);
    parser_advance(p);
    stmt->expr = parse_controlled(p, "'(' after 'while'");
    stmt->then = parse_inner(p);
    return stmt;
}

/* catch (e : E) block, catch block */
static Stmt *parse_catch(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_catch);
    int scope = parser_scope(p);
    parser_advance(p);
    if (parser_at(p, TOKEN_paren_open)) {
        int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
        Decl *decl = parse_new_decl(p, DECL_var, p->token->loc, NULL, NULL);
        decl->flavour = VAR_local;
        decl->modifiers = MODIFIER_let;
        decl->name = parser_expect_name(p, "the name of the error");
        if (!p->panic && parser_take(p, TOKEN_colon)) decl->type_expr = parse_type(p);
        parser_close_bracket(p, open);
        vec_push(p->arena, &stmt->decls, decl);
        parser_add_local(p, decl->name);
    }
    if (!p->panic && !parser_at(p, TOKEN_brace_open))
        parser_expected(p, "'{' and what to do after the error");
    stmt->then = p->panic ? new_stmt(p, STMT_block) : parse_block(p);
    parser_end_scope(p, scope);
    return stmt;
}

static Stmt *parse_catches(Parser *p, Stmt *stmt) {
    stmt->kind = STMT_try;
    while (!p->panic && parser_at_word(p, KEYWORD_catch)) {
        Stmt *handler = parse_catch(p);
        vec_push(p->arena, &stmt->body, handler);
    }
    return stmt;
}

static Stmt *parse_do(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_do);
    parser_advance(p);
    stmt->then = parse_inner(p);
    if (!p->panic && parser_at_word(p, KEYWORD_catch)) return parse_catches(p, stmt);
    if (!p->panic && !parser_take_word(p, KEYWORD_while))
        parser_expected(p, "'while' after the body of 'do'");
    stmt->expr = parse_controlled(p, "'(' after 'while'");
    parser_expect_semicolon(p, "'do ... while'");
    return stmt;
}

/* $for (i in Range(first, end)) */
static Stmt *parse_static_for(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_static_for);
    int scope = parser_scope(p);
    parser_advance(p);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'(' after '$for'");
    Decl *decl = parse_new_decl(p, DECL_var, p->token->loc, NULL, NULL);
    decl->flavour = VAR_local;
    decl->modifiers = MODIFIER_let;
    decl->name = parser_expect_name(p, "the name of a variable");
    if (!p->panic && !parser_take_word(p, KEYWORD_in)) parser_expected(p, "'in'");
    bool range = parser_at(p, TOKEN_name) && strcmp(p->token->name->text, "Range") == 0;
    if (!p->panic && !range) parser_expected(p, "'Range(first, end)'");
    if (!p->panic) parser_advance(p);
    ExprVec args = {0};
    if (!p->panic) args = parse_arguments(p);
    if (!p->panic && (args.count == 0 || args.count > 2) && parser_complain(p))
        diag_report(p->syntax->diags, DIAG_range_arguments, decl->loc);
    parser_close_bracket(p, open);
    if (args.count == 2) stmt->expr = args.at[0];
    if (args.count) stmt->step = args.at[args.count - 1];
    vec_push(p->arena, &stmt->decls, decl);
    parser_add_local(p, decl->name);
    stmt->then = parse_inner(p);
    parser_end_scope(p, scope);
    return stmt;
}

/* ---- switch */

static Stmt *parse_switch(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_switch);
    parser_advance(p);
    stmt->expr = parse_controlled(p, "'(' after 'switch'");
    if (!p->panic && !parser_at(p, TOKEN_brace_open)) parser_expected(p, "'{' and the cases of 'switch'");
    stmt->then = p->panic ? new_stmt(p, STMT_block) : parse_block(p);
    return stmt;
}

/* __target_switch { case cpp: ... default: ... }: the labels are names of targets, or of stages. */
static Stmt *parse_target_switch(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_target_switch);
    stmt->label = p->token->name;
    parser_advance(p);
    if (!parser_at(p, TOKEN_brace_open)) parser_expected(p, "'{' and a case for each target");
    stmt->then = p->panic ? new_stmt(p, STMT_block) : parse_block(p);
    return stmt;
}

/* Labels that stand together are one: case 1: case 2: default: */
static Stmt *parse_labels(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_case);
    while (!p->panic) {
        if (parser_take_word(p, KEYWORD_default)) stmt->is_default = true;
        else if (parser_take_word(p, KEYWORD_case)) {
            Expr *value = parse_condition(p);
            vec_push(p->arena, &stmt->values, value);
        } else break;
        parser_expect(p, TOKEN_colon);
    }
    return stmt;
}

/* ---- jumps and others */

static Stmt *parse_break(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_break);
    parser_advance(p);
    if (token_is_identifier(p->token) && !p->token->line_start) {
        stmt->label = p->token->name;
        parser_advance(p);
    }
    parser_expect_semicolon(p, "'break'");
    return stmt;
}

static Stmt *parse_continue(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_continue);
    parser_advance(p);
    if (token_is_identifier(p->token) && !p->token->line_start) {
        if (!p->panic)
            diag_report(p->syntax->diags, DIAG_continue_label, p->token->loc, p->token->name->text);
        parser_advance(p);
    }
    parser_expect_semicolon(p, "'continue'");
    return stmt;
}

static Stmt *parse_word_and_semicolon(Parser *p, StmtKind kind, const char *after) {
    Stmt *stmt = new_stmt(p, kind);
    parser_advance(p);
    parser_expect_semicolon(p, after);
    return stmt;
}

static Stmt *parse_return(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_return);
    parser_advance(p);
    if (parser_at(p, TOKEN_brace_open)) stmt->expr = parse_list(p);
    else if (!parser_at(p, TOKEN_semicolon) && !parser_at(p, TOKEN_brace_close))
        stmt->expr = parse_expression(p);
    parser_expect_semicolon(p, "'return'");
    return stmt;
}

static Stmt *parse_throw(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_throw);
    parser_advance(p);
    stmt->expr = parse_expression(p);
    parser_expect_semicolon(p, "'throw'");
    return stmt;
}

static Stmt *parse_defer(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_defer);
    parser_advance(p);
    stmt->then = parse_inner(p);
    return stmt;
}

static Stmt *parse_label(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_label);
    stmt->label = p->token->name;
    parser_advance(p);
    parser_advance(p);
    stmt->then = parse_inner(p);
    return stmt;
}

static Stmt *parse_static_assert(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_static_assert);
    parser_advance(p);
    int open = parser_open_bracket(p, TOKEN_paren_open, "'('");
    stmt->expr = parse_condition(p);
    if (!p->panic && parser_take(p, TOKEN_comma)) {
        if (parser_at(p, TOKEN_string)) stmt->text = parse_primary(p)->text;
        else parser_expected(p, "a string");
    }
    parser_close_bracket(p, open);
    parser_expect_semicolon(p, "'static_assert'");
    return stmt;
}

/* __intrinsic_asm "text", type, ...; what follows the text is for targets with instructions of their own */
static Stmt *parse_intrinsic_asm(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_intrinsic_asm);
    parser_advance(p);
    if (parser_at(p, TOKEN_string)) stmt->text = parse_primary(p)->text;
    else parser_expected(p, "a string");
    while (!p->panic && parser_take(p, TOKEN_comma)) parse_type_or_expression(p);
    parser_expect_semicolon(p, "'__intrinsic_asm'");
    return stmt;
}

static Stmt *parse_stray_else(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_empty);
    if (parser_complain(p) && !p->was_too_deep) diag_report(p->syntax->diags, DIAG_stray_else, p->token->loc);
    parser_advance(p);
    return stmt;
}

/* ---- declarations */

static bool starts_declaration(const Parser *p) {
    const Token *next = parser_peek(p, 1);
    bool name = token_is_identifier(next);
    Keyword word = token_word(p->token);
    switch (word) {
    case KEYWORD_struct:
    case KEYWORD_class:
    case KEYWORD_enum:
    case KEYWORD_interface:
    case KEYWORD_typedef:
    case KEYWORD_include:
    case KEYWORD_generic: return true;
    case KEYWORD_let:
    case KEYWORD_var: return parse_starts_let(p);
    case KEYWORD_alias: return name;
    case KEYWORD_using: return next->kind == TOKEN_name;
    case KEYWORD_no_diff: return scan_is_declaration(p);
    case KEYWORD_try: return map_has(&p->file->types, PTR_KEY(p->token->name)) && scan_is_declaration(p);
    default: break;
    }
    if (p->token->kind == TOKEN_name && keyword_modifiers(word)) {
        if (!token_is_identifier(p->token)) return true;
        if (next->kind == TOKEN_name && !parser_is_local(p, p->token->name)) return true;
    }
    return scan_is_declaration(p);
}

static Stmt *parse_declarations(Parser *p, const Prefix *prefix) {
    Stmt *stmt = new_stmt(p, STMT_decl);
    parse_declaration_after(p, PLACE_local, prefix, &stmt->decls);
    return stmt;
}

/* ---- which one */

/* Words that start a statement only where it makes sense; a variable of that name goes first. */
static Stmt *parse_contextual(Parser *p) {
    if (!token_is_identifier(p->token) || parser_is_local(p, p->token->name)) return NULL;
    TokenKind next = (TokenKind)parser_peek(p, 1)->kind;
    switch (token_word(p->token)) {
    case KEYWORD_defer:
        return next == TOKEN_name || next == TOKEN_brace_open || next == TOKEN_plus_plus ||
                       next == TOKEN_minus_minus
                   ? parse_defer(p)
                   : NULL;
    case KEYWORD_throw:
        return next == TOKEN_name || next == TOKEN_paren_open || next == TOKEN_int || next == TOKEN_float
                   ? parse_throw(p)
                   : NULL;
    case KEYWORD_discard:
        return next == TOKEN_semicolon ? parse_word_and_semicolon(p, STMT_discard, "'discard'") : NULL;
    case KEYWORD_static_assert: return next == TOKEN_paren_open ? parse_static_assert(p) : NULL;
    default: return NULL;
    }
}

/* retrun 3; but not after a mere lack of a semicolon */
static void note_statement_word(Parser *p, const Token *first) {
    if (p->token->line_start || !token_is_identifier(first) || parser_is_local(p, first->name) ||
        scan_is_type_name(p, first))
        return;
    Name meant = syntax_statement_word(p->syntax->names, first->name);
    if (meant) diag_note(p->syntax->diags, DIAG_did_you_mean, first->loc, meant->text);
}

static Stmt *parse_other(Parser *p, const Prefix *prefix) {
    Stmt *stmt = parse_contextual(p);
    if (stmt) return stmt;
    bool static_for = parser_at(p, TOKEN_dollar) && token_word(parser_peek(p, 1)) == KEYWORD_for;
    if (static_for) return parse_static_for(p);
    if (token_is_identifier(p->token) && parser_peek(p, 1)->kind == TOKEN_colon) return parse_label(p);
    const Token *first = p->token;
    int errors = p->errors;
    if (prefix->modifiers || starts_declaration(p)) {
        Prefix all = *prefix;
        parse_prefix(p, &all);
        stmt = parse_declarations(p, &all);
    } else stmt = parse_expression_statement(p);
    if (p->errors > errors) note_statement_word(p, first);
    return stmt;
}

static Stmt *parse_after_attributes(Parser *p, const Prefix *prefix) {
    if (parser_at(p, TOKEN_brace_open)) return parse_block(p);
    if (parser_at(p, TOKEN_semicolon)) {
        Stmt *stmt = new_stmt(p, STMT_empty);
        parser_advance(p);
        return stmt;
    }
    switch (token_word(p->token)) {
    case KEYWORD_if: return parse_if(p);
    case KEYWORD_else: return parse_stray_else(p);
    case KEYWORD_for: return parse_for(p);
    case KEYWORD_while: return parse_while(p);
    case KEYWORD_do: return parse_do(p);
    case KEYWORD_switch: return parse_switch(p);
    case KEYWORD_target_switch:
    case KEYWORD_stage_switch: return parse_target_switch(p);
    case KEYWORD_intrinsic_asm: return parse_intrinsic_asm(p);
    case KEYWORD_case:
    case KEYWORD_default: return parse_labels(p);
    case KEYWORD_break: return parse_break(p);
    case KEYWORD_continue: return parse_continue(p);
    case KEYWORD_return: return parse_return(p);
    default: return parse_other(p, prefix);
    }
}

/* Past a statement that is nested too deeply, with all the `else if` that hang on it. */
static Stmt *skip_nested(Parser *p) {
    Stmt *stmt = new_stmt(p, STMT_empty);
    do {
        parser_take_word(p, KEYWORD_if);
        if (parser_at(p, TOKEN_paren_open) && p->file->match[p->at] >= 0)
            parser_jump(p, p->file->match[p->at] + 1);
        parser_skip_statement(p);
    } while (parser_take_word(p, KEYWORD_else));
    return stmt;
}

static Stmt *parse_statement(Parser *p) {
    Stmt *stmt;
    if (parser_enter(p)) {
        Prefix prefix = {0};
        parse_attributes(p, &prefix.attributes);
        stmt = parse_after_attributes(p, &prefix);
        if (stmt->kind != STMT_decl) stmt->attributes = prefix.attributes;
    } else stmt = skip_nested(p);
    parser_leave(p);
    return stmt;
}
