/* Modules and namespaces: import, __include, implementing, module, namespace, using. */
#include "syntax/parser.h"

/* ---- paths */

/* a.b.c or "file": the text, and the parts where it has some. */
static void parse_path(Parser *p, Decl *decl, const char *what) {
    if (parser_at(p, TOKEN_string) && p->token->text.len > 0) {
        decl->path = p->token->text;
        parser_advance(p);
        return;
    }
    VEC(Name) parts = {0};
    Text path = {.arena = p->arena};
    do {
        if (!parser_at(p, TOKEN_name)) {
            parser_expected(p, what);
            return;
        }
        if (parts.count) text_char(&path, '.');
        text_add(&path, str_of(p->token->name->text));
        vec_push(p->arena, &parts, p->token->name);
        parser_advance(p);
    } while (parser_take(p, TOKEN_dot) || parser_take(p, TOKEN_scope));
    decl->path = text_str(&path);
    decl->path_parts = parts.at;
    decl->npath_parts = parts.count;
}

static void path_declaration(Parser *p, DeclKind kind, const Prefix *prefix, DeclVec *out) {
    parser_advance(p);
    Decl *decl = parse_new_decl(p, kind, p->token->loc, NULL, prefix);
    parse_path(p, decl, "the name of a module or a file in quotes");
    parser_expect_semicolon(p, "the name");
    if (decl->path.len == 0) return;
    if (kind == DECL_implementing || kind == DECL_module_name)
        decl->name = name_of(p->syntax->names, decl->path);
    parse_add_decl(out, p, decl);
}

/* ---- namespaces */

/* namespace A.B { }: one inside the other */
static void parse_namespace(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *parent = p->parent, *inner = NULL;
    int levels = 0;
    parser_advance(p);
    do {
        Loc loc = p->token->loc;
        Name name = parser_expect_name(p, "the name of a namespace");
        if (!name || (levels++, !parser_enter(p))) break;
        Decl *decl = parse_new_decl(p, DECL_namespace, loc, name, prefix);
        parse_add_decl(inner ? &inner->members : out, p, decl);
        p->parent = inner = decl;
    } while (parser_take(p, TOKEN_dot) || parser_take(p, TOKEN_scope));
    if (inner && !p->panic) parse_members(p, inner);
    for (Decl *decl = inner; decl && decl != parent; decl = decl->parent) decl->end = inner->end;
    for (; levels > 0; levels--) parser_leave(p);
    p->parent = parent;
}

static void parse_using(Parser *p, const Prefix *prefix, DeclVec *out) {
    Decl *decl = parse_new_decl(p, DECL_using, p->token->loc, NULL, prefix);
    parser_advance(p);
    parser_take_word(p, KEYWORD_namespace);
    decl->target = parse_type(p);
    parser_expect_semicolon(p, "the namespace");
    parse_add_decl(out, p, decl);
}

bool parse_module_declaration(Parser *p, const Prefix *prefix, DeclVec *out) {
    const Token *next = parser_peek(p, 1);
    bool path = next->kind == TOKEN_name || next->kind == TOKEN_string || next->kind == TOKEN_semicolon;
    bool unnamed = token_word(p->token) == KEYWORD_namespace && next->kind == TOKEN_brace_open;
    if (!path && !unnamed && token_word(p->token) != KEYWORD_include) return false;
    switch (token_word(p->token)) {
    case KEYWORD_import:
    case KEYWORD_old_import: path_declaration(p, DECL_import, prefix, out); return true;
    case KEYWORD_include: path_declaration(p, DECL_include, prefix, out); return true;
    case KEYWORD_implementing: path_declaration(p, DECL_implementing, prefix, out); return true;
    case KEYWORD_module: path_declaration(p, DECL_module_name, prefix, out); return true;
    case KEYWORD_namespace: parse_namespace(p, prefix, out); return true;
    case KEYWORD_using: parse_using(p, prefix, out); return true;
    default: return false;
    }
}
