/* The text of printf against the values that follow it.
 *
 * A conversion prints any value; one of several numbers (a vector, a matrix, an array, a struct, a pair) is
 * printed number by number by the same conversion. So types are hardly ever wrong: what is wrong is a
 * conversion without a value, a value without a conversion, a conversion that does not exist, a value that
 * has no text, and a fraction that is dropped. */
#include "check/checker.h"

const Expr *check_text_literal(const Expr *e) {
    while (e && e->kind != EXPR_string) {
        bool constant = e->kind == EXPR_decl && e->decl->kind == DECL_var && e->decl->flavour != VAR_param &&
                        (e->decl->modifiers & (MODIFIER_const | MODIFIER_let));
        if (e->kind == EXPR_paren || e->kind == EXPR_convert) e = e->a;
        else e = constant ? e->decl->init : NULL;
    }
    return e;
}

int check_conversion_length(Str format, int at, int *stars) {
    int i = at + 1;
    *stars = 0;
    for (; i < format.len && strchr("-+ #0123456789.*hlLqjzt", format.at[i]); i++)
        *stars += format.at[i] == '*';
    return (i < format.len ? i + 1 : i) - at;
}

static bool has_fraction(const Type *type) {
    while (type->kind == TYPE_vector || type->kind == TYPE_matrix || type->kind == TYPE_array)
        type = type->args[0];
    return type_is_float(type);
}

static void warn_of_fraction(Checker *c, const ExprVec *args, int index, const char *conversion) {
    const Expr *arg = index < args->count ? args->at[index] : NULL;
    if (!arg || arg->kind == EXPR_expand || !strchr("diuxXo", conversion[strlen(conversion) - 1]) ||
        !has_fraction(arg->type))
        return;
    report_expr(c, arg, DIAG_format_fraction, conversion, type_str(c, arg->type));
}

/* Of "%q\n" and "%l é" the letters only. */
static const char *conversion_text(Checker *c, Str format, int at, int length) {
    char last = format.at[at + length - 1];
    return format_text(c->arena, "%.*s", last > ' ' && last < 127 ? length : length - 1, format.at + at);
}

/* How many values the text takes; -1: that cannot be told. */
static int count_conversions(Checker *c, const Expr *literal, Loc loc, const ExprVec *args) {
    Str format = literal->text;
    int count = 0;
    bool all_known = true;
    for (int i = 0; i < format.len;) {
        bool percent = format.at[i] == '%' && i + 1 < format.len,
             literally = percent && format.at[i + 1] == '%';
        int stars = 0, length = !percent ? 1 : literally ? 2 : check_conversion_length(format, i, &stars);
        bool known = strchr("diuxXocfFeEgGaAs", format.at[i + length - 1]) != NULL;
        const char *text = format_text(c->arena, "%.*s", length, format.at + i);
        if (percent && !literally && known) {
            count += 1 + stars;
            warn_of_fraction(c, args, count, text);
        } else if (percent && !literally) {
            report(c, DIAG_format_conversion, loc, conversion_text(c, format, i, length));
            all_known = false;
        }
        i += length;
    }
    return all_known ? count : -1;
}

static bool has_text(const Type *type) {
    switch (type->kind) {
    case TYPE_optional:
    case TYPE_interface:
    case TYPE_buffer:
    case TYPE_ptr_pair:
    case TYPE_void:
    case TYPE_function: return false;
    case TYPE_array: return has_text(type->args[0]);
    default: return true;
    }
}

void check_format(Checker *c, const Expr *call) {
    const Expr *literal = call->args.count ? check_text_literal(call->args.at[0]) : NULL;
    if (!literal) return;
    Loc loc = call->args.at[0]->loc;
    int wanted = count_conversions(c, literal, loc, &call->args), given = call->args.count - 1;
    for (int i = 1; i < call->args.count; i++) {
        const Expr *arg = call->args.at[i];
        if (arg->kind == EXPR_expand) return; /* how many it stands for is not known here */
        if (has_text(arg->type)) continue;
        report_expr(c, arg, DIAG_format_value, type_str(c, arg->type));
        if (arg->type->kind == TYPE_optional) note(c, DIAG_note_optional_value, 0);
    }
    if (wanted >= 0 && wanted != given)
        report(c, DIAG_format_count, loc, range_text(c, wanted, wanted, "value"), given);
}
