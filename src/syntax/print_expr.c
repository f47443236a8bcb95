/* Expressions as text: (operator operands...), names and literals bare, everything on one line but the bodies
 * of lambdas. Kinds that have no way of their own are shown as (kind parts...). */
#include "syntax/parser.h"

static const char *const kind_names[] = {
#define EXPR(name, meaning) [EXPR_##name] = #name,
#include "syntax/nodes.def"
};

void print_quoted(Text *out, Str text) {
    text_char(out, '"');
    for (int i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c == '\n') text_add(out, STR("\\n"));
        else if (c == '"' || c == '\\') text_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) text_printf(out, "\\x%02x", c);
        else text_char(out, (char)c);
    }
    text_char(out, '"');
}

static void print_rest(TreePrinter *printer, const Expr *const *parts, int count) {
    for (int i = 0; i < count; i++) {
        text_char(printer->out, ' ');
        print_expr(printer, parts[i]);
    }
}

/* (head a b c args...) */
static void print_form(TreePrinter *printer, const Expr *expr, const char *head) {
    const Expr *parts[] = {expr->a, expr->b, expr->c};
    text_printf(printer->out, "(%s", head);
    for (int i = 0; i < 3; i++)
        if (parts[i]) print_rest(printer, &parts[i], 1);
    print_rest(printer, (const Expr *const *)expr->args.at, expr->args.count);
    text_char(printer->out, ')');
}

/* ---- literals and names */

static const char *suffix_text(LiteralSuffix suffix) {
    switch (suffix) {
    case SUFFIX_none: return "";
    case SUFFIX_u: return "u";
    case SUFFIX_l: return "l";
    case SUFFIX_ul: return "ul";
    case SUFFIX_ll: return "ll";
    case SUFFIX_ull: return "ull";
    case SUFFIX_z: return "z";
    case SUFFIX_uz: return "uz";
    case SUFFIX_f: return "f";
    case SUFFIX_h: return "h";
    case SUFFIX_lf: return "lf";
    }
    return "";
}

static void print_int(TreePrinter *printer, const Expr *expr) {
    unsigned long long number = expr->number;
    if (expr->flags & EXPR_CHAR) text_printf(printer->out, "(char %llu)", number);
    else text_printf(printer->out, expr->flags & EXPR_HEX ? "0x%llx" : "%llu", number);
    text_add(printer->out, str_of(suffix_text((LiteralSuffix)expr->suffix)));
}

static void print_float(TreePrinter *printer, const Expr *expr) {
    text_float(printer->out, expr->real, WIDTH_double);
    text_add(printer->out, str_of(suffix_text((LiteralSuffix)expr->suffix)));
}

static void print_bool(TreePrinter *printer, const Expr *expr) {
    text_add(printer->out, expr->number ? STR("true") : STR("false"));
}

static void print_string(TreePrinter *printer, const Expr *expr) { print_quoted(printer->out, expr->text); }
static void print_assembly(TreePrinter *printer, const Expr *expr) {
    (void)expr;
    text_add(printer->out, STR("(asm)"));
}

static void print_null(TreePrinter *printer, const Expr *expr) {
    (void)expr;
    text_add(printer->out, STR("nullptr"));
}
static void print_none(TreePrinter *printer, const Expr *expr) {
    (void)expr;
    text_add(printer->out, STR("none"));
}
static void print_this(TreePrinter *printer, const Expr *expr) {
    text_add(printer->out, expr->kind == EXPR_this ? STR("this") : STR("This"));
}

static void print_name(TreePrinter *printer, const Expr *expr) {
    text_add(printer->out, str_of(expr->name ? expr->name->text : "anonymous"));
}

static void print_member(TreePrinter *printer, const Expr *expr) {
    const char *dot = expr->flags & EXPR_ARROW ? "->" : expr->flags & EXPR_SCOPE ? "::" : ".";
    text_printf(printer->out, "(%s ", dot);
    print_expr(printer, expr->a);
    text_printf(printer->out, " %s)", expr->name ? expr->name->text : "?");
}

/* ---- operators */

static void print_unary(TreePrinter *printer, const Expr *expr) {
    const char *how = expr->kind == EXPR_unary ? "prefix" : "postfix";
    text_printf(printer->out, "(%s %s ", how, operator_text((Operator)expr->op));
    print_expr(printer, expr->a);
    text_char(printer->out, ')');
}

static void print_binary(TreePrinter *printer, const Expr *expr) {
    print_form(printer, expr, operator_text((Operator)expr->op));
}

static void print_assign(TreePrinter *printer, const Expr *expr) {
    char head[8] = {0};
    const char *op = operator_text((Operator)expr->op);
    size_t n = strlen(op);
    memcpy(head, op, n < 6 ? n : 6);
    head[n < 6 ? n : 6] = '=';
    print_form(printer, expr, head);
}

static void print_select(TreePrinter *printer, const Expr *expr) {
    const Expr *first[] = {expr->a, expr->b};
    text_add(printer->out, STR("(?"));
    print_rest(printer, first, 2);
    for (int i = 0; i < expr->args.count; i += 2) {
        text_add(printer->out, STR(" (?"));
        print_rest(printer, (const Expr *const *)expr->args.at + i, 2);
    }
    print_rest(printer, (const Expr *const *)&expr->c, 1);
    for (int i = 0; i <= expr->args.count; i += 2) text_char(printer->out, ')');
}

static void print_cast(TreePrinter *printer, const Expr *expr) {
    const Expr *parts[] = {expr->b, expr->a};
    text_add(printer->out, STR("(cast"));
    print_rest(printer, parts, 2);
    text_char(printer->out, ')');
}

static void print_diff(TreePrinter *printer, const Expr *expr) {
    const char *name = expr->kind == EXPR_fwd_diff ? "fwd_diff" : "bwd_diff";
    text_printf(printer->out, "(%s%s ", expr->flags & EXPR_OLD_NAME ? "__" : "", name);
    print_expr(printer, expr->a);
    text_char(printer->out, ')');
}

static void print_modified(TreePrinter *printer, const Expr *expr) {
    Text *out = printer->out;
    text_add(out, STR("(type"));
    if (expr->flags & EXPR_NO_DIFF) text_add(out, STR(" no_diff"));
    if (expr->flags & EXPR_CONST) text_add(out, STR(" const"));
    if (expr->flags & EXPR_ROW_MAJOR) text_add(out, STR(" row_major"));
    if (expr->flags & EXPR_COLUMN_MAJOR) text_add(out, STR(" column_major"));
    print_rest(printer, (const Expr *const *)&expr->a, 1);
    text_char(out, ')');
}

static void print_function_type(TreePrinter *printer, const Expr *expr) {
    text_add(printer->out, STR("(functype ("));
    for (int i = 0; i < expr->args.count; i++) {
        if (i) text_char(printer->out, ' ');
        print_expr(printer, expr->args.at[i]);
    }
    text_add(printer->out, STR(") "));
    if (expr->b) {
        text_add(printer->out, STR("throws "));
        print_expr(printer, expr->b);
        text_char(printer->out, ' ');
    }
    print_expr(printer, expr->a);
    text_char(printer->out, ')');
}

static void print_lambda(TreePrinter *printer, const Expr *expr) {
    text_add(printer->out, STR("(lambda"));
    printer->indent++;
    print_line(printer);
    print_decl(printer, expr->decl);
    printer->indent--;
    text_char(printer->out, ')');
}

typedef void (*ExprPrinter)(TreePrinter *printer, const Expr *expr);

static const ExprPrinter printers[sizeof kind_names / sizeof *kind_names] = {
    [EXPR_int] = print_int,
    [EXPR_float] = print_float,
    [EXPR_bool] = print_bool,
    [EXPR_string] = print_string,
    [EXPR_null] = print_null,
    [EXPR_asm] = print_assembly,
    [EXPR_none] = print_none,
    [EXPR_name] = print_name,
    [EXPR_this] = print_this,
    [EXPR_this_type] = print_this,
    [EXPR_member] = print_member,
    [EXPR_unary] = print_unary,
    [EXPR_postfix] = print_unary,
    [EXPR_binary] = print_binary,
    [EXPR_assign] = print_assign,
    [EXPR_select] = print_select,
    [EXPR_cast] = print_cast,
    [EXPR_fwd_diff] = print_diff,
    [EXPR_bwd_diff] = print_diff,
    [EXPR_lambda] = print_lambda,
    [EXPR_function_type] = print_function_type,
    [EXPR_modified_type] = print_modified,
};

void print_expr(TreePrinter *printer, const Expr *expr) {
    if (!expr) text_add(printer->out, STR("()"));
    else if (printers[expr->kind]) printers[expr->kind](printer, expr);
    else print_form(printer, expr, kind_names[expr->kind]);
}

void syntax_print_expr(Text *out, const Expr *expr) {
    TreePrinter printer = {.out = out};
    print_expr(&printer, expr);
}
