/* The checked program as text, for `slope dump --after check`: the source again, with everything said that
 * the checker found out.
 *
 *     int y = f(<float>x, this.k);              // float f(float a, int b = 2)
 *
 * Every variable has its type. `<T>e` is a conversion that the checker put in; members of the object are
 * written with `this`; an argument or a part that is left out is `default`; T{...} is a value made from its
 * parts. The functions that a statement calls are listed beside it as they are declared, with generic
 * arguments behind in brackets. Expressions are in print_expr.c. */
#include "check/print.h"

enum { CALLEE_COLUMN = 56 };

static void print_line(CheckPrinter *p) {
    if (p->out->len) text_char(p->out, '\n');
    for (int i = 0; i < p->indent; i++) text_add(p->out, STR("    "));
}

static void print_text(CheckPrinter *p, const char *text) { text_add(p->out, str_of(text)); }

/* ---- signatures */

static void print_constraint(CheckPrinter *p, const Constraint *constraint) {
    if (!constraint->subject_type) return;
    type_print(p->out, constraint->subject_type);
    print_text(p, constraint->equal ? " == " : " : ");
    type_print(p->out, constraint->bound_type);
}

/* What does not stand with one parameter already. */
static void print_where(CheckPrinter *p, const Generics *generics) {
    const char *before = " where ";
    for (int i = 0; generics && i < generics->constraints.count; i++) {
        const Constraint *constraint = &generics->constraints.at[i];
        bool shown = !constraint->equal && !constraint->optional && constraint->subject_type &&
                     constraint->subject_type->kind == TYPE_param;
        if (shown) continue;
        print_text(p, before);
        if (constraint->optional) print_text(p, "optional ");
        print_constraint(p, constraint);
        before = ", ";
    }
}

static const char *display_of(const Decl *func) {
    static const char *const names[] = {
        [FUNC_init] = "__init", [FUNC_get] = "get", [FUNC_set] = "set", [FUNC_ref] = "ref"};
    if (func->kind == DECL_subscript) return "__subscript";
    if (func->flavour != FUNC_plain && func->flavour != FUNC_lambda) return names[func->flavour];
    return func->name ? func->name->text : "lambda";
}

static void print_owner(CheckPrinter *p, const Decl *decl) {
    const Decl *owner = decl->parent;
    if (!owner || owner->kind == DECL_module || owner->kind == DECL_func) return;
    print_owner(p, owner);
    if (owner->kind == DECL_extension && owner->sema && owner->sema->target)
        type_print(p->out, owner->sema->target);
    else if (owner->name) print_text(p, owner->name->text);
    else return;
    print_text(p, ".");
}

static void print_parameters(CheckPrinter *p, const FuncSig *sig) {
    static const char *const directions[] = {"", "out ", "inout ", "__ref ", "__constref "};
    text_char(p->out, '(');
    for (int i = 0; i < sig->nparams; i++) {
        const ParamSig *param = &sig->params[i];
        if (i) print_text(p, ", ");
        if (param->no_diff) print_text(p, "no_diff ");
        print_text(p, directions[param->pass]);
        type_print(p->out, param->type);
        if (param->name) text_printf(p->out, " %s", param->name->text);
        const Decl *decl = param->decl;
        if (decl && decl->semantic) text_printf(p->out, " : %s", decl->semantic->text);
        if (!decl || !decl->init) continue;
        print_text(p, " = ");
        print_checked_expr(p, decl->init, false);
    }
    text_char(p->out, ')');
}

static void print_signature(CheckPrinter *p, Decl *func, bool qualified) {
    const FuncSig *sig = signature_of(p->c, func);
    if (func->modifiers & MODIFIER_static) print_text(p, "static ");
    if (!sig->is_init) {
        if (sig->result_no_diff) print_text(p, "no_diff ");
        type_print(p->out, sig->result);
        text_char(p->out, ' ');
    }
    if (qualified) print_owner(p, func);
    print_text(p, display_of(func));
    print_text(p, generics_text(p->c, func));
    print_parameters(p, sig);
    print_where(p, func->generics);
}

/* ---- what a statement calls */

static void print_arguments(CheckPrinter *p, const Subst *subst, bool *any) {
    if (!subst) return;
    print_arguments(p, subst->outer, any);
    for (int i = 0; i < subst->nargs; i++) {
        const Decl *param = generic_param(subst->owner, i);
        print_text(p, *any ? ", " : " [");
        print_text(p, param && param->name ? param->name->text : "This");
        print_text(p, " = ");
        type_print(p->out, subst->args[i]);
        *any = true;
    }
}

static void print_callee(CheckPrinter *p, const Callee *callee) {
    text_pad(p->out, CALLEE_COLUMN);
    print_text(p, p->out->at[p->out->len - 1] == ' ' ? "// " : " // ");
    print_signature(p, callee->decl, true);
    bool any = false;
    print_arguments(p, callee->subst, &any);
    if (any) text_char(p->out, ']');
}

static void print_callees(CheckPrinter *p) {
    for (int i = 0; i < p->callees.count; i++) {
        if (i) text_char(p->out, '\n');
        Callee callee = p->callees.at[i];
        print_callee(p, &callee);
    }
    p->callees.count = 0;
}

/* ---- statements */

static void print_stmt(CheckPrinter *p, const Stmt *stmt);

static void print_nested(CheckPrinter *p, const Stmt *stmt) {
    if (!stmt) return;
    if (stmt->kind != STMT_block) p->indent++;
    print_stmt(p, stmt);
    if (stmt->kind != STMT_block) p->indent--;
}

static void print_variable(CheckPrinter *p, const Decl *decl) {
    if (decl->modifiers & MODIFIER_static) print_text(p, "static ");
    if (decl->modifiers & MODIFIER_groupshared) print_text(p, "groupshared ");
    if (decl->modifiers & MODIFIER_uniform) print_text(p, "uniform ");
    if (decl->modifiers & (MODIFIER_const | MODIFIER_let)) print_text(p, "const ");
    if (decl->modifiers & MODIFIER_no_diff) print_text(p, "no_diff ");
    if (decl->type) type_print(p->out, decl->type);
    text_printf(p->out, " %s", decl->name ? decl->name->text : "_");
    if (decl->bits) print_text(p, " : "), print_checked_expr(p, decl->bits, false);
    if (decl->semantic) text_printf(p->out, " : %s", decl->semantic->text);
    if (decl->init && decl->init->type) print_text(p, " = "), print_checked_expr(p, decl->init, false);
}

static void print_decl(CheckPrinter *p, Decl *decl);

static void print_local_decls(CheckPrinter *p, const Stmt *stmt) {
    for (int i = 0; i < stmt->decls.count; i++) {
        if (stmt->decls.at[i]->kind != DECL_var) {
            print_decl(p, stmt->decls.at[i]);
            continue;
        }
        print_line(p);
        print_variable(p, stmt->decls.at[i]);
        text_char(p->out, ';');
        print_callees(p);
    }
}

static void print_head(CheckPrinter *p, const char *word, const Expr *condition) {
    print_line(p);
    text_printf(p->out, "%s (", word);
    if (condition) print_checked_expr(p, condition, false);
    text_char(p->out, ')');
    print_callees(p);
}

static void print_if_arm(CheckPrinter *p, const char *word, const Stmt *stmt) {
    if (stmt->decls.count) {
        print_line(p);
        text_printf(p->out, "%s (let ", word);
        print_variable(p, stmt->decls.at[0]);
        text_char(p->out, ')');
        print_callees(p);
    } else print_head(p, word, stmt->expr);
    print_nested(p, stmt->then);
}

static void print_if(CheckPrinter *p, const Stmt *stmt) {
    print_if_arm(p, "if", stmt);
    for (int i = 0; i < stmt->body.count; i++) print_if_arm(p, "else if", stmt->body.at[i]);
    if (!stmt->other) return;
    print_line(p);
    print_text(p, "else");
    print_nested(p, stmt->other);
}

static void print_for(CheckPrinter *p, const Stmt *stmt) {
    print_line(p);
    print_text(p, "for (");
    if (stmt->init && stmt->init->kind == STMT_decl)
        for (int i = 0; i < stmt->init->decls.count; i++) {
            if (i) print_text(p, ", ");
            print_variable(p, stmt->init->decls.at[i]);
        }
    else if (stmt->init && stmt->init->expr) print_checked_expr(p, stmt->init->expr, false);
    print_text(p, "; ");
    if (stmt->expr) print_checked_expr(p, stmt->expr, false);
    print_text(p, "; ");
    if (stmt->step) print_checked_expr(p, stmt->step, false);
    text_char(p->out, ')');
    print_callees(p);
    print_nested(p, stmt->then);
}

static void print_static_for(CheckPrinter *p, const Stmt *stmt) {
    print_line(p);
    text_printf(p->out, "$for (%s in Range(", stmt->decls.at[0]->name->text);
    if (stmt->expr) print_checked_expr(p, stmt->expr, false), print_text(p, ", ");
    print_checked_expr(p, stmt->step, false);
    print_text(p, "))");
    print_nested(p, stmt->then);
}

static void print_case(CheckPrinter *p, const Stmt *stmt) {
    for (int i = 0; i < stmt->values.count; i++) {
        print_line(p);
        print_text(p, "case ");
        print_checked_expr(p, stmt->values.at[i], false);
        text_char(p->out, ':');
    }
    if (!stmt->is_default) return;
    print_line(p);
    print_text(p, "default:");
}

static void print_block(CheckPrinter *p, const Stmt *stmt) {
    print_line(p);
    text_char(p->out, '{');
    for (int i = 0; i < stmt->body.count; i++) {
        int deeper = stmt->body.at[i]->kind == STMT_case ? 0 : 1; /* labels stand out */
        p->indent += deeper;
        print_stmt(p, stmt->body.at[i]);
        p->indent -= deeper;
    }
    print_line(p);
    text_char(p->out, '}');
}

static void print_simple(CheckPrinter *p, const char *word, const Expr *e) {
    print_line(p);
    print_text(p, word);
    if (e && *word) text_char(p->out, ' ');
    if (e) print_checked_expr(p, e, false);
    text_char(p->out, ';');
    print_callees(p);
}

static void print_jump(CheckPrinter *p, const char *word, const Stmt *stmt) {
    print_line(p);
    text_printf(p->out, stmt->label ? "%s %s;" : "%s;", word, stmt->label ? stmt->label->text : "");
}

static void print_catch(CheckPrinter *p, const Stmt *stmt) {
    print_line(p);
    print_text(p, "catch");
    if (stmt->decls.count) {
        text_printf(p->out, " (%s : ", stmt->decls.at[0]->name->text);
        type_print(p->out, stmt->decls.at[0]->type);
        text_char(p->out, ')');
    }
    print_nested(p, stmt->then);
}

static void print_stmt(CheckPrinter *p, const Stmt *stmt) {
    switch ((StmtKind)stmt->kind) {
    case STMT_expr: print_simple(p, "", stmt->expr); break;
    case STMT_return: print_simple(p, "return", stmt->expr); break;
    case STMT_decl: print_local_decls(p, stmt); break;
    case STMT_block: print_block(p, stmt); break;
    case STMT_if: print_if(p, stmt); break;
    case STMT_for: print_for(p, stmt); break;
    case STMT_static_for: print_static_for(p, stmt); break;
    case STMT_case: print_case(p, stmt); break;
    case STMT_while:
    case STMT_switch:
        print_head(p, stmt->kind == STMT_while ? "while" : "switch", stmt->expr);
        print_nested(p, stmt->then);
        break;
    case STMT_do:
        print_line(p);
        print_text(p, "do");
        print_nested(p, stmt->then);
        print_head(p, "while", stmt->expr);
        text_char(p->out, ';');
        break;
    case STMT_break: print_jump(p, "break", stmt); break;
    case STMT_continue: print_jump(p, "continue", stmt); break;
    case STMT_discard: print_jump(p, "discard", stmt); break;
    case STMT_defer:
        print_line(p);
        print_text(p, "defer");
        print_nested(p, stmt->then);
        break;
    case STMT_label:
        print_line(p);
        text_printf(p->out, "%s:", stmt->label->text);
        print_stmt(p, stmt->then);
        break;
    case STMT_static_assert:
        print_head(p, "static_assert", stmt->expr);
        text_char(p->out, ';');
        break;
    case STMT_target_switch:
    case STMT_intrinsic_asm:
        print_line(p);
        print_text(p, stmt->label ? stmt->label->text : "__intrinsic_asm");
        text_char(p->out, ';');
        break;
    case STMT_throw: print_simple(p, "throw", stmt->expr); break;
    case STMT_try:
        print_line(p);
        print_text(p, "do");
        print_nested(p, stmt->then);
        for (int i = 0; i < stmt->body.count; i++) print_stmt(p, stmt->body.at[i]);
        break;
    case STMT_catch: print_catch(p, stmt); break;
    case STMT_empty: break;
    }
}

/* ---- declarations */

static void print_members(CheckPrinter *p, const Decl *decl) {
    print_line(p);
    text_char(p->out, '{');
    p->indent++;
    for (int i = 0; i < decl->members.count; i++) print_decl(p, decl->members.at[i]);
    p->indent--;
    print_line(p);
    text_char(p->out, '}');
}

static void print_attributes(CheckPrinter *p, const Decl *func) {
    static const struct {
        uint32_t flags;
        const char *text;
    } known[] = {
        {DECL_MUTATING, "[mutating] "},
        {DECL_NONMUTATING, "[nonmutating] "},
        {DECL_FWD | DECL_BWD, "[Differentiable] "},
        {DECL_FORCE_INLINE, "[ForceInline] "},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if ((func->flags & known[i].flags) == known[i].flags) print_text(p, known[i].text);
    if ((func->flags & (DECL_FWD | DECL_BWD)) == DECL_FWD) print_text(p, "[ForwardDifferentiable] ");
    if (!(func->flags & DECL_ENTRY) || !func->sema) return;
    const int *size = func->sema->group_size;
    text_printf(p->out, "[numthreads(%d, %d, %d)] ", size[0] ? size[0] : 1, size[1] ? size[1] : 1,
                size[2] ? size[2] : 1);
}

static void print_function(CheckPrinter *p, Decl *func) {
    bool accessor = func->flavour == FUNC_get || func->flavour == FUNC_set || func->flavour == FUNC_ref;
    if (accessor && (func->modifiers & MODIFIER_synthesized)) return;
    print_line(p);
    print_attributes(p, func);
    if (accessor) print_text(p, display_of(func));
    else print_signature(p, func, false);
    if (func->body) print_block(p, func->body);
    else text_char(p->out, ';');
}

static void print_type_head(CheckPrinter *p, const char *word, const Decl *decl) {
    print_line(p);
    if (decl->modifiers & MODIFIER_synthesized) print_text(p, "/* made by the compiler */ ");
    text_printf(p->out, "%s %s", word, decl->name ? decl->name->text : "");
    print_text(p, generics_text(p->c, decl));
    const Sema *sema = decl->sema;
    bool first = true;
    if (sema && sema->base) print_text(p, " : "), type_print(p->out, sema->base), first = false;
    for (int i = 0; sema && i < sema->interfaces.count; i++) {
        print_text(p, first ? " : " : ", ");
        type_print(p->out, sema->interfaces.at[i]);
        first = false;
    }
    print_where(p, decl->generics);
}

static void print_enum(CheckPrinter *p, Decl *decl) {
    print_line(p);
    text_printf(p->out, "enum %s : ", decl->name ? decl->name->text : "");
    type_print(p->out, check_enum_underlying(p->c, type_of_type_decl(p->c, decl)));
    print_line(p);
    text_char(p->out, '{');
    p->indent++;
    for (int i = 0; i < decl->members.count; i++) {
        const Decl *member = decl->members.at[i];
        print_line(p);
        text_printf(p->out, "%s = %lld,", member->name->text,
                    (long long)(member->sema ? member->sema->value : 0));
    }
    p->indent--;
    print_line(p);
    text_char(p->out, '}');
}

static void print_accessors(CheckPrinter *p, const Decl *decl) {
    print_line(p);
    if (decl->kind == DECL_property) {
        print_text(p, "property ");
        type_print(p->out, decl->type);
        text_printf(p->out, " %s", decl->name->text);
    } else {
        print_text(p, "__subscript(");
        for (int i = 0; i < decl->params.count; i++) {
            if (i) print_text(p, ", ");
            print_variable(p, decl->params.at[i]);
        }
        print_text(p, ") -> ");
        type_print(p->out, decl->type);
    }
    print_members(p, decl);
}

static void print_decl(CheckPrinter *p, Decl *decl) {
    switch ((DeclKind)decl->kind) {
    case DECL_func: print_function(p, decl); break;
    case DECL_var:
        print_line(p);
        print_variable(p, decl);
        text_char(p->out, ';');
        print_callees(p);
        break;
    case DECL_struct: print_type_head(p, "struct", decl), print_members(p, decl); break;
    case DECL_interface: print_type_head(p, "interface", decl), print_members(p, decl); break;
    case DECL_extension:
        print_line(p);
        print_text(p, "extension");
        print_text(p, generics_text(p->c, decl));
        text_char(p->out, ' ');
        if (decl->sema && decl->sema->target) type_print(p->out, decl->sema->target);
        print_where(p, decl->generics);
        print_members(p, decl);
        break;
    case DECL_enum: print_enum(p, decl); break;
    case DECL_namespace:
        print_line(p);
        text_printf(p->out, "namespace %s", decl->name->text);
        print_members(p, decl);
        break;
    case DECL_buffer_block:
        print_line(p);
        text_printf(p->out, "cbuffer %s", decl->name ? decl->name->text : "");
        print_members(p, decl);
        break;
    case DECL_property:
    case DECL_subscript: print_accessors(p, decl); break;
    case DECL_alias:
        print_line(p);
        text_printf(p->out, "typealias %s", decl->name->text);
        print_text(p, generics_text(p->c, decl));
        print_text(p, " = ");
        type_print(p->out, decl->type);
        text_char(p->out, ';');
        break;
    case DECL_assoc:
        print_line(p);
        text_printf(p->out, "associatedtype %s;", decl->name->text);
        break;
    default: break;
    }
}

void check_print(Text *out, Checker *c, Decl *decl) {
    CheckPrinter printer = {.c = c, .out = out};
    if (decl->kind != DECL_module) print_decl(&printer, decl);
    else
        for (int i = 0; i < decl->members.count; i++) print_decl(&printer, decl->members.at[i]);
    if (out->len) text_char(out, '\n');
}
