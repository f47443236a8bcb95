/* Expressions of the checked tree as text; see print.c for the notation. */
#include "check/print.h"

static void print_text(CheckPrinter *p, const char *text) { text_add(p->out, str_of(text)); }

static void print_args(CheckPrinter *p, const ExprVec *args) {
    for (int i = 0; i < args->count; i++) {
        if (i) print_text(p, ", ");
        if (args->at[i]) print_checked_expr(p, args->at[i], false);
        else print_text(p, "default");
    }
}

static void print_string(CheckPrinter *p, Str text) {
    text_char(p->out, '"');
    for (int i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '\n') print_text(p, "\\n");
        else if (c == '\t') print_text(p, "\\t");
        else if (c == '"' || c == '\\') text_printf(p->out, "\\%c", c);
        else text_char(p->out, c);
    }
    text_char(p->out, '"');
}

static void print_literal(CheckPrinter *p, const Expr *e) {
    TypeKind kind = e->type ? e->type->kind : TYPE_int;
    if (e->kind == EXPR_float) {
        text_float(p->out, e->real,
                   kind == TYPE_half     ? WIDTH_half
                   : kind == TYPE_double ? WIDTH_double
                                         : WIDTH_float);
        if (kind == TYPE_half) text_char(p->out, 'h');
        if (kind == TYPE_double) text_char(p->out, 'l');
        return;
    }
    text_printf(p->out, "%llu", (unsigned long long)e->number);
    if (kind == TYPE_uint) text_char(p->out, 'u');
    if (kind == TYPE_int64) print_text(p, "ll");
    if (kind == TYPE_uint64) print_text(p, "ull");
}

/* What a member, an index or a call follows. */
static void print_base(CheckPrinter *p, const Expr *e) {
    while (e->kind == EXPR_paren) e = e->a;
    bool prefix = e->kind == EXPR_convert || e->kind == EXPR_address || e->kind == EXPR_no_diff ||
                  ((e->kind == EXPR_builtin || e->kind == EXPR_update) && e->args.count < 2 && !e->b);
    if (prefix) text_char(p->out, '(');
    print_checked_expr(p, e, !prefix);
    if (prefix) text_char(p->out, ')');
}

/* ---- names */

static void print_scope(CheckPrinter *p, const Decl *decl) {
    const Decl *owner = decl->parent;
    if (!owner || owner->kind == DECL_func) return;
    bool shown = owner->kind == DECL_struct || owner->kind == DECL_enum || owner->kind == DECL_namespace ||
                 owner->kind == DECL_interface;
    if (!shown || !owner->name) return;
    print_scope(p, owner);
    text_printf(p->out, "%s.", owner->name->text);
}

static void print_decl_name(CheckPrinter *p, const Expr *e) {
    const Decl *decl = e->decl;
    if (e->a) {
        print_base(p, e->a);
        if (decl->kind != DECL_subscript) text_char(p->out, '.');
    } else if (decl->kind != DECL_var || decl->flavour == VAR_global || decl->flavour == VAR_field)
        print_scope(p, decl);
    if (decl->kind == DECL_subscript) {
        text_char(p->out, '[');
        print_args(p, &e->args);
        text_char(p->out, ']');
    } else print_text(p, decl->name ? decl->name->text : "_");
}

/* ---- calls */

static void note_callee(CheckPrinter *p, Decl *decl, const Subst *subst) {
    for (int i = 0; i < p->callees.count; i++)
        if (p->callees.at[i].decl == decl && p->callees.at[i].subst == subst) return;
    vec_push(p->c->arena, &p->callees, ((Callee){decl, subst}));
}

static void print_callee_name(CheckPrinter *p, const Expr *e) {
    const Decl *decl = e->decl;
    for (int i = 0; i < e->nmodes; i++)
        print_text(p, e->modes[e->nmodes - 1 - i] == DIFF_fwd ? "fwd_diff(" : "bwd_diff(");
    if (e->a) {
        print_base(p, e->a);
        text_char(p->out, '.');
    }
    bool init = decl->kind == DECL_func && decl->flavour == FUNC_init;
    if (init) type_print(p->out, e->type);
    else {
        if (!e->a) print_scope(p, decl);
        print_text(p, decl->name ? decl->name->text : "lambda");
    }
    for (int i = 0; i < e->nmodes; i++) text_char(p->out, ')');
}

static void print_invoke(CheckPrinter *p, const Expr *e) {
    if (!e->decl || e->decl->kind == DECL_var) print_base(p, e->a); /* a function that is a parameter */
    else {
        note_callee(p, e->decl, e->subst);
        print_callee_name(p, e);
    }
    text_char(p->out, '(');
    print_args(p, &e->args);
    text_char(p->out, ')');
}

/* ---- operators */

static void print_operator(CheckPrinter *p, const Expr *e, bool nested) {
    if (e->args.count == 1) {
        print_text(p, operator_text((Operator)e->op));
        print_checked_expr(p, e->args.at[0], true);
        return;
    }
    if (nested) text_char(p->out, '(');
    print_checked_expr(p, e->args.at[0], true);
    text_printf(p->out, e->op == OPERATOR_comma ? "%s " : " %s ", operator_text((Operator)e->op));
    print_checked_expr(p, e->args.at[1], true);
    if (nested) text_char(p->out, ')');
}

static void print_update(CheckPrinter *p, const Expr *e, bool nested) {
    const char *op = operator_text((Operator)e->op);
    if (!e->b && !(e->flags & EXPR_POSTFIX)) text_printf(p->out, "%s%s", op, op);
    if (e->b && nested) text_char(p->out, '(');
    print_checked_expr(p, e->a, true);
    if (!e->b && (e->flags & EXPR_POSTFIX)) text_printf(p->out, "%s%s", op, op);
    if (!e->b) return;
    text_printf(p->out, " %s= ", op);
    print_checked_expr(p, e->b, false);
    if (nested) text_char(p->out, ')');
}

static void print_between(CheckPrinter *p, const Expr *e, const char *word, bool nested) {
    if (nested) text_char(p->out, '(');
    print_checked_expr(p, e->a, true);
    print_text(p, word);
    print_checked_expr(p, e->b, e->kind != EXPR_assign);
    if (nested) text_char(p->out, ')');
}

static void print_choice(CheckPrinter *p, const Expr *condition, const Expr *value) {
    print_checked_expr(p, condition, true);
    print_text(p, " ? ");
    print_checked_expr(p, value, true);
    print_text(p, " : ");
}

static void print_select(CheckPrinter *p, const Expr *e, bool nested) {
    if (nested) text_char(p->out, '(');
    print_choice(p, e->a, e->b);
    for (int i = 0; i < e->args.count; i += 2) {
        text_char(p->out, '(');
        print_choice(p, e->args.at[i], e->args.at[i + 1]);
    }
    print_checked_expr(p, e->c, true);
    for (int i = 0; i < e->args.count; i += 2) text_char(p->out, ')');
    if (nested) text_char(p->out, ')');
}

/* ---- parts */

static void print_swizzle(CheckPrinter *p, const Expr *e) {
    print_base(p, e->a);
    text_char(p->out, '.');
    bool matrix = e->a->type->kind == TYPE_matrix;
    for (int i = 0; i < e->nlanes; i++) {
        if (matrix) text_printf(p->out, "_m%d%d", e->lanes[i] / 4, e->lanes[i] % 4);
        else text_char(p->out, "xyzw"[e->lanes[i] & 3]);
    }
}

static void print_part(CheckPrinter *p, const Expr *e) {
    print_base(p, e->a);
    TypeKind kind = e->a->type->kind;
    if (kind == TYPE_tuple) text_printf(p->out, "._%d", (int)e->number);
    else if (kind == TYPE_optional) print_text(p, e->number ? ".value" : ".hasValue");
    else print_text(p, e->number ? ".d" : ".p");
}

static void print_list(CheckPrinter *p, const Expr *e) {
    if (e->type) type_print(p->out, e->type);
    text_char(p->out, '{');
    print_args(p, &e->args);
    text_char(p->out, '}');
}

static void print_prefixed(CheckPrinter *p, const char *prefix, const Expr *e, const char *suffix) {
    print_text(p, prefix);
    print_checked_expr(p, e, suffix[0] == 0);
    print_text(p, suffix);
}

static void print_lambda(CheckPrinter *p, const Expr *e) {
    print_text(p, "lambda(");
    for (int i = 0; e->decl && i < e->decl->params.count; i++) {
        const Decl *param = e->decl->params.at[i];
        if (i) print_text(p, ", ");
        if (param->type) type_print(p->out, param->type);
        if (param->name) text_printf(p->out, " %s", param->name->text);
    }
    print_text(p, ")");
    if (e->args.count) print_text(p, " with "), print_args(p, &e->args);
}

void print_checked_expr(CheckPrinter *p, const Expr *e, bool nested) {
    switch ((ExprKind)e->kind) {
    case EXPR_int:
    case EXPR_float: print_literal(p, e); break;
    case EXPR_bool: print_text(p, e->number ? "true" : "false"); break;
    case EXPR_string: print_string(p, e->text); break;
    case EXPR_asm: print_text(p, "spirv_asm {...}"); break;
    case EXPR_null: print_text(p, "nullptr"); break;
    case EXPR_none: print_text(p, "none"); break;
    case EXPR_this: print_text(p, "this"); break;
    case EXPR_paren: print_checked_expr(p, e->a, nested); break;
    case EXPR_decl: print_decl_name(p, e); break;
    case EXPR_type: type_print(p->out, e->type_value); break;
    case EXPR_convert:
        text_char(p->out, '<');
        type_print(p->out, e->type);
        print_prefixed(p, ">", e->a, "");
        break;
    case EXPR_invoke: print_invoke(p, e); break;
    case EXPR_builtin: print_operator(p, e, nested); break;
    case EXPR_update: print_update(p, e, nested); break;
    case EXPR_assign: print_between(p, e, " = ", nested); break;
    case EXPR_is: print_between(p, e, " is ", nested); break;
    case EXPR_as: print_between(p, e, " as ", nested); break;
    case EXPR_select: print_select(p, e, nested); break;
    case EXPR_construct:
    case EXPR_default:
    case EXPR_list: print_list(p, e); break;
    case EXPR_swizzle: print_swizzle(p, e); break;
    case EXPR_part: print_part(p, e); break;
    case EXPR_element:
        print_base(p, e->a);
        print_prefixed(p, "[", e->b, "]");
        break;
    case EXPR_deref: print_prefixed(p, "(*", e->a, ")"); break;
    case EXPR_address: print_prefixed(p, "&", e->a, ""); break;
    case EXPR_sizeof: print_prefixed(p, e->number ? "__numbersof(" : "sizeof(", e->a, ")"); break;
    case EXPR_alignof: print_prefixed(p, "alignof(", e->a, ")"); break;
    case EXPR_countof: print_prefixed(p, "countof(", e->a, ")"); break;
    case EXPR_no_diff: print_prefixed(p, "no_diff ", e->a, ""); break;
    case EXPR_try: print_prefixed(p, "try ", e->a, ""); break;
    case EXPR_each: print_prefixed(p, "each ", e->a, ""); break;
    case EXPR_expand:
        if (e->a) print_prefixed(p, "expand ", e->a, "");
        else print_args(p, &e->args); /* written out */
        break;
    case EXPR_lambda: print_lambda(p, e); break;
    default: print_text(p, e->name ? e->name->text : "?"); break;
    }
}
