/* The tree as text, for `slope dump --after syntax`: one declaration or statement per line, its parts below
 * it, two spaces further in. A line names the kind, then what the source says about it; nothing that the
 * parser found out is left out, except positions. */
#include "syntax/parser.h"

static const char *const decl_names[] = {
#define DECL(name, meaning) [DECL_##name] = #name,
#include "syntax/nodes.def"
};

static const char *const stmt_names[] = {
#define STMT(name, meaning) [STMT_##name] = #name,
#include "syntax/nodes.def"
};

typedef struct ModifierName {
    uint32_t bits;
    const char *text;
} ModifierName;

/* In the order in which they are shown. */
static const ModifierName modifier_names[] = {
    {MODIFIER_public, "public"},
    {MODIFIER_internal, "internal"},
    {MODIFIER_private, "private"},
    {MODIFIER_exported, "exported"},
    {MODIFIER_extern, "extern"},
    {MODIFIER_export, "export"},
    {MODIFIER_override, "override"},
    {MODIFIER_static, "static"},
    {MODIFIER_inline, "inline"},
    {MODIFIER_const, "const"},
    {MODIFIER_uniform, "uniform"},
    {MODIFIER_groupshared, "groupshared"},
    {MODIFIER_no_diff, "no_diff"},
    {MODIFIER_in, "in"},
    {MODIFIER_out, "out"},
    {MODIFIER_ref, "ref"},
    {MODIFIER_constref, "constref"},
    {MODIFIER_prefix, "prefix"},
    {MODIFIER_postfix, "postfix"},
    {MODIFIER_row_major, "row_major"},
    {MODIFIER_column_major, "column_major"},
    {MODIFIER_idle, "idle"},
    {MODIFIER_precise, "precise"},
    {MODIFIER_implicit, "implicit"},
    {MODIFIER_pack, "pack"},
    {MODIFIER_let, "let"},
    {MODIFIER_var, "var"},
    {MODIFIER_synthesized, "synthesized"},
};

void print_line(TreePrinter *printer) {
    text_char(printer->out, '\n');
    for (int i = 0; i < printer->indent; i++) text_add(printer->out, STR("  "));
}

static void print_word(TreePrinter *printer, const char *word) {
    text_char(printer->out, ' ');
    text_add(printer->out, str_of(word));
}

static void print_part(TreePrinter *printer, const char *before, const Expr *expr) {
    if (!expr) return;
    text_add(printer->out, str_of(before));
    print_expr(printer, expr);
}

static void print_exprs(TreePrinter *printer, const char *before, const ExprVec *exprs) {
    for (int i = 0; i < exprs->count; i++) print_part(printer, i ? ", " : before, exprs->at[i]);
}

/* ---- the line of a declaration */

static const char *flavour_name(const Decl *decl) {
    static const char *const funcs[] = {[FUNC_plain] = NULL, [FUNC_init] = "init", [FUNC_get] = "get",
                                        [FUNC_set] = "set",  [FUNC_ref] = "ref",   [FUNC_lambda] = "lambda"};
    static const char *const vars[] = {
        [VAR_global] = "global", [VAR_field] = "field", [VAR_local] = "local", [VAR_param] = "param"};
    if (decl->kind == DECL_func) return funcs[decl->flavour];
    return decl->kind == DECL_var ? vars[decl->flavour] : NULL;
}

static void print_modifiers(TreePrinter *printer, const Decl *decl) {
    for (size_t i = 0; i < sizeof modifier_names / sizeof *modifier_names; i++)
        if (decl->modifiers & modifier_names[i].bits) print_word(printer, modifier_names[i].text);
    if (decl->modifiers & MODIFIER_implicit) text_printf(printer->out, "(%lld)", (long long)decl->number);
}

static void print_path(TreePrinter *printer, const Decl *decl) {
    if (!decl->path.at) return;
    text_char(printer->out, ' ');
    if (decl->path_parts) text_add(printer->out, decl->path);
    else print_quoted(printer->out, decl->path);
}

static void print_head(TreePrinter *printer, const Decl *decl) {
    text_add(printer->out, str_of(decl_names[decl->kind]));
    if (flavour_name(decl)) print_word(printer, flavour_name(decl));
    print_modifiers(printer, decl);
    bool named_by_path = decl->path.at != NULL;
    bool named_by_flavour = decl->kind == DECL_func && decl->flavour != FUNC_plain;
    if (decl->name && !named_by_path && !named_by_flavour && decl->kind != DECL_subscript)
        print_word(printer, decl->name->text);
    print_path(printer, decl);
    print_part(printer, " ", decl->target);
    print_part(printer,
               decl->kind == DECL_alias  ? " = "
               : decl->kind == DECL_func ? " -> "
                                         : " : ",
               decl->type_expr);
    print_exprs(printer, " : ", &decl->bases);
    print_part(printer, " bits ", decl->bits);
    if (decl->semantic) text_printf(printer->out, " semantic %s", decl->semantic->text);
    print_part(printer, " = ", decl->init);
    if (decl->kind == DECL_module && decl->number)
        text_printf(printer->out, " language %d", (int)decl->number);
    if (decl->lazy.count) text_printf(printer->out, " lazy %d", decl->lazy.count);
}

/* ---- the lines below it */

static void print_attributes(TreePrinter *printer, const AttributeVec *attributes) {
    for (int i = 0; i < attributes->count; i++) {
        const Attribute *attribute = attributes->at[i];
        print_line(printer);
        text_printf(printer->out, "[%s", attribute->name->text);
        print_exprs(printer, "(", &attribute->args);
        text_add(printer->out, attribute->args.count ? STR(")]") : STR("]"));
    }
}

static void print_decls(TreePrinter *printer, const DeclVec *decls) {
    for (int i = 0; i < decls->count; i++) {
        print_line(printer);
        print_decl(printer, decls->at[i]);
    }
}

static void print_generics(TreePrinter *printer, const Generics *generics) {
    if (!generics) return;
    print_decls(printer, &generics->params);
    for (int i = 0; i < generics->constraints.count; i++) {
        const Constraint *constraint = &generics->constraints.at[i];
        print_line(printer);
        text_printf(printer->out, "where %s", constraint->optional ? "optional " : "");
        print_expr(printer, constraint->subject);
        print_part(printer, constraint->equal ? " == " : " : ", constraint->bound);
    }
}

static void print_doc(TreePrinter *printer, Loc first) {
    if (first && first != printer->doc_at)
        printer->doc = syntax_doc(printer->out->arena, printer->sources, first);
    printer->doc_at = first;
    if (!first || !printer->doc.len) return;
    print_line(printer);
    text_add(printer->out, STR("doc "));
    print_quoted(printer->out, printer->doc);
}

void print_decl(TreePrinter *printer, const Decl *decl) {
    print_head(printer, decl);
    printer->indent++;
    print_doc(printer, decl->doc_at);
    print_attributes(printer, &decl->attributes);
    print_generics(printer, decl->generics);
    print_decls(printer, &decl->params);
    print_decls(printer, &decl->members);
    if (decl->body) {
        print_line(printer);
        print_stmt(printer, decl->body);
    }
    if (decl->body_expr) {
        print_line(printer);
        print_part(printer, "=> ", decl->body_expr);
    }
    printer->indent--;
}

/* ---- statements */

static void print_child(TreePrinter *printer, const char *label, const Stmt *stmt) {
    if (!stmt) return;
    print_line(printer);
    text_add(printer->out, str_of(label));
    print_stmt(printer, stmt);
}

static void print_step(TreePrinter *printer, const Stmt *stmt) {
    if (!stmt->step) return;
    print_line(printer);
    print_part(printer, stmt->kind == STMT_static_for ? "end " : "step ", stmt->step);
}

void print_stmt(TreePrinter *printer, const Stmt *stmt) {
    text_add(printer->out, str_of(stmt_names[stmt->kind]));
    if (stmt->label) print_word(printer, stmt->label->text);
    print_part(printer, " ", stmt->expr);
    print_exprs(printer, " ", &stmt->values);
    if (stmt->is_default) print_word(printer, "default");
    if (stmt->text.at) {
        text_char(printer->out, ' ');
        print_quoted(printer->out, stmt->text);
    }
    printer->indent++;
    print_attributes(printer, &stmt->attributes);
    print_decls(printer, &stmt->decls);
    print_child(printer, "init ", stmt->init);
    print_step(printer, stmt);
    if (stmt->kind == STMT_if) print_child(printer, "", stmt->then);
    for (int i = 0; i < stmt->body.count; i++)
        print_child(printer, stmt->kind == STMT_if ? "else " : "", stmt->body.at[i]);
    if (stmt->kind != STMT_if) print_child(printer, "", stmt->then);
    print_child(printer, "else ", stmt->other);
    printer->indent--;
}

void syntax_print(Text *out, const Sources *sources, const Decl *module) {
    TreePrinter printer = {.out = out, .sources = sources};
    print_decl(&printer, module);
    text_char(out, '\n');
}
