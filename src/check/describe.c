/* How declarations are shown in messages, and which constraint a generic body lacks. */
#include "check/checker.h"

/* ---- generic parameters */

static bool is_shown(const Decl *param) { return !(param->modifiers & MODIFIER_synthesized); }

static void add_bounds(Checker *c, Text *out, const Decl *decl, const Type *param) {
    const char *before = " : ";
    for (int i = 0; i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        if (constraint->equal || constraint->optional || constraint->subject_type != param) continue;
        text_printf(out, "%s%s", before, type_str(c, constraint->bound_type));
        before = " & ";
    }
}

static void add_param(Checker *c, Text *out, const Decl *decl, int index) {
    const Decl *param = generic_param(decl, index);
    const char *each = param->modifiers & MODIFIER_pack ? "each " : "";
    if (param->kind == DECL_value_param) {
        text_printf(out, "let %s%s", each, param->name->text);
        if (param->type) text_printf(out, " : %s", type_str(c, param->type));
        return;
    }
    text_printf(out, "%s%s", each, param->name->text);
    add_bounds(c, out, decl, param_type(c, decl, index));
}

/* <T : I, let N : int>; empty for what is not generic */
const char *generics_text(Checker *c, const Decl *decl) {
    Text text = {.arena = c->arena};
    int first = decl->kind == DECL_interface ? 1 : 0, shown = 0;
    if (decl->generics) ensure_generics(c, (Decl *)(uintptr_t)decl);
    for (int i = first; i < generic_count(decl); i++) {
        if (!is_shown(generic_param(decl, i))) continue;
        text_add(&text, shown++ ? STR(", ") : STR("<"));
        add_param(c, &text, decl, i);
    }
    if (shown) text_char(&text, '>');
    return text.at ? text.at : "";
}

/* where A.X == B, and what else does not belong to one parameter */
static void add_where(Checker *c, Text *out, const Decl *decl, const Subst *subst) {
    const char *before = " where ";
    for (int i = 0; decl->generics && i < decl->generics->constraints.count; i++) {
        const Constraint *constraint = &decl->generics->constraints.at[i];
        const Type *subject = constraint->subject_type;
        if (!subject || (!constraint->equal && !constraint->optional && subject->kind == TYPE_param))
            continue;
        text_printf(out, "%s%s%s%s%s", before, constraint->optional ? "optional " : "",
                    type_str(c, check_subst(c, subject, subst)), constraint->equal ? " == " : " : ",
                    type_str(c, check_subst(c, constraint->bound_type, subst)));
        before = ", ";
    }
}

/* ---- functions and other members */

const char *function_text(Checker *c, const char *name, const Decl *decl, const FuncSig *sig) {
    Text text = {.arena = c->arena};
    bool member = decl_type_around(decl) != NULL;
    if (decl->modifiers & MODIFIER_static && member) text_add(&text, STR("static "));
    if (sig->has_this && sig->this_pass == PASS_inout && decl->flavour == FUNC_plain)
        text_add(&text, STR("[mutating] "));
    const char *full = format_text(c->arena, "%s%s", name, generics_text(c, decl));
    text_add(&text, str_of(signature_text(c, full, sig)));
    add_where(c, &text, decl, NULL);
    return text.at;
}

static void add_accessors(Text *out, const Decl *decl) {
    text_add(out, STR(" {"));
    for (int i = 0; i < decl->members.count; i++) {
        const char *names[] = {[FUNC_get] = " get;", [FUNC_set] = " set;", [FUNC_ref] = " ref;"};
        unsigned flavour = decl->members.at[i]->flavour;
        if (flavour == FUNC_get || flavour == FUNC_set || flavour == FUNC_ref)
            text_add(out, str_of(names[flavour]));
    }
    text_add(out, STR(" }"));
}

static void add_assoc(Checker *c, Text *out, Decl *decl, const Subst *subst) {
    ensure_bases(c, decl);
    const Sema *sema = decl_sema(c, decl);
    text_printf(out, "associatedtype %s", decl->name->text);
    for (int i = 0; i < sema->interfaces.count; i++)
        text_printf(out, "%s%s", i ? " & " : " : ",
                    type_str(c, check_subst(c, sema->interfaces.at[i], subst)));
}

static void add_subscript(Checker *c, Text *out, Decl *decl, const Subst *subst) {
    ensure_header(c, decl);
    text_add(out, STR("__subscript("));
    for (int i = 0; i < decl->params.count; i++) {
        const Type *type = decl->params.at[i]->type ? decl->params.at[i]->type : ERROR_TYPE(c);
        text_printf(out, "%s%s", i ? ", " : "", type_str(c, check_subst(c, type, subst)));
        if (decl->params.at[i]->name) text_printf(out, " %s", decl->params.at[i]->name->text);
    }
    text_printf(out, ") -> %s", type_str(c, check_subst(c, decl_value_type(c, decl), subst)));
    add_accessors(out, decl);
}

/* A member of a type, as it would be declared. */
const char *member_text(Checker *c, Decl *decl, const Subst *subst) {
    Text text = {.arena = c->arena};
    if (decl->kind == DECL_func) {
        FuncSig sig = check_signature_of(c, decl, subst, NULL, 0, true);
        return function_text(c, decl->name ? decl->name->text : "__init", decl, &sig);
    }
    if (decl->kind == DECL_assoc) add_assoc(c, &text, decl, subst);
    else if (decl->kind == DECL_subscript) add_subscript(c, &text, decl, subst);
    else if (decl_is_type(decl)) text_printf(&text, "type %s", decl->name->text);
    else {
        const Type *type = check_subst(c, decl_value_type(c, decl), subst);
        text_printf(&text, "%s%s%s%s %s", decl->kind == DECL_property ? "property " : "",
                    decl->modifiers & MODIFIER_static ? "static " : "",
                    decl->modifiers & MODIFIER_const ? "const " : "", type_str(c, type),
                    decl->name ? decl->name->text : "?");
        if (decl->kind == DECL_property) add_accessors(&text, decl);
    }
    return text.at;
}

/* ---- which constraint is missing */

static void suggest(Checker *c, const Type *type, const char *interface) {
    if (interface) note(c, DIAG_note_constraint_missing, 0, type_str(c, type), type_str(c, type), interface);
    else note(c, DIAG_note_constraint_unknown, 0, type_str(c, type));
}

/* The interface that makes an operator work on generic values. */
static const char *interface_of_operator(Operator op) {
    switch (op) {
    case OPERATOR_less:
    case OPERATOR_greater:
    case OPERATOR_less_equal:
    case OPERATOR_greater_equal:
    case OPERATOR_equal:
    case OPERATOR_not_equal: return "IComparable";
    case OPERATOR_bit_and:
    case OPERATOR_bit_or:
    case OPERATOR_bit_xor:
    case OPERATOR_bit_not:
    case OPERATOR_and:
    case OPERATOR_or:
    case OPERATOR_not: return "ILogical";
    case OPERATOR_shl:
    case OPERATOR_shr: return "__BuiltinIntegerType";
    case OPERATOR_increment:
    case OPERATOR_decrement: return "__BuiltinArithmeticType";
    default: return "IArithmetic";
    }
}

bool allows_operator(Checker *c, const Type *type, Operator op) {
    return conforms_to(c, type, name_from(c->names, interface_of_operator(op)));
}

void suggest_for_operator(Checker *c, const Type *type, Operator op) {
    suggest(c, type, interface_of_operator(op));
}

static const char *interface_with(Checker *c, Decl *space, Name name, const Decl *from) {
    for (int i = 0; i < space->members.count; i++) {
        Decl *member = space->members.at[i];
        if (member->kind == DECL_interface && member->name && !member->generics &&
            scope_find(scope_inside(c, member), name) && decl_visible_from(c, member, from))
            return member->name->text;
    }
    return NULL;
}

/* The first interface that is visible and has such a member: of this module, of those it imports, of the
 * library. */
void suggest_for_member(Env *env, const Type *type, Name name) {
    Checker *c = env->c;
    Decl *module = decl_module(env->decl);
    const char *found = interface_with(c, module, name, env->decl);
    const Sema *sema = decl_sema(c, module);
    for (int i = 0; i < sema->imports.count && !found; i++)
        found = interface_with(c, sema->imports.at[i], name, env->decl);
    if (!found && c->prelude) {
        library_all(c);
        found = interface_with(c, c->prelude, name, env->decl);
    }
    suggest(c, type, found);
}

void suggest_for_construct(Checker *c, const Type *type, const ExprVec *args) {
    const char *interface = args->count == 0 ? "IDefaultInitializable" : NULL;
    if (args->count == 1 && args->at[0]->type && type_is_scalar(args->at[0]->type))
        interface = type_is_float(args->at[0]->type) ? "IFloat" : "IArithmetic";
    suggest(c, type, interface);
}

/* "1 generic argument", "2 generic arguments" */
const char *count_text(Checker *c, int count, const char *what) {
    return format_text(c->arena, "%d %s%s", count, what, count == 1 ? "" : "s");
}

void note_usage(Checker *c, const Candidates *list) {
    static const char *const usages[][2] = {
#define OTHER_NAME(written, meant)
#define USAGE(function, how) {function, how},
#include "check/hints.def"
#undef OTHER_NAME
#undef USAGE
    };
    bool library = list->name && (list->at[0].decl->flags & DECL_PRELUDE);
    for (size_t i = 0; library && i < sizeof usages / sizeof usages[0]; i++)
        if (strcmp(list->name->text, usages[i][0]) == 0) note(c, DIAG_note_usage, 0, usages[i][1]);
}

bool note_plain_param(Checker *c, const Decl *func, int index, const Type *given) {
    const Type *type = index < func->params.count ? func->params.at[index]->type : NULL;
    if (given->kind != TYPE_pair || !type || type->kind != TYPE_param) return false;
    const Decl *param = type->decl;
    note(c, DIAG_note_add_constraint, param->loc, type_str(c, type), c->known.IDifferentiable->text);
    return true;
}
