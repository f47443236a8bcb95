/* printf: the format of the program, which takes values of any type, becomes one of C that fits the types.
 * The rules are those of runtime/print.c: a vector prints its lanes, a value of another type than its
 * conversion is converted, what has no value stands as it is. */
#include "emit/clike/clike.h"

const char *clike_string(Printer *p, Str s) {
    Text text = {.arena = &p->arena};
    text_char(&text, '"');
    for (int i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (c == '\n') text_add(&text, STR("\\n"));
        else if (c == '\t') text_add(&text, STR("\\t"));
        else if (c == '"' || c == '\\' || c == '?') text_printf(&text, "\\%c", c);
        else if ((unsigned char)c < 32 || (unsigned char)c > 126)
            text_printf(&text, "\\%03o", (unsigned char)c);
        else text_char(&text, c);
    }
    text_char(&text, '"');
    return text.at;
}

typedef struct Print {
    const Inst *inst;
    int next;          /* argument */
    int values;        /* of C's printf */
    Text format, args; /* of C */
} Print;

typedef struct Conversion {
    Str flags;         /* with width and precision, as written */
    const char *sizes; /* the arguments that `*` took, each with a comma before it */
    int shorts;        /* how many `h` */
    char letter;
} Conversion;

static char natural_letter(const Type *type) {
    if (type_is_float(type)) return 'g';
    return type->kind == TYPE_uint || type->kind == TYPE_uint64 || type->kind == TYPE_bool ? 'u' : 'd';
}

static const char *as_integer(Printer *p, const Type *type, const char *text) {
    return type_is_float(type) ? clike_format(p, "%s(%s)", clike_helper(p, "slope_to_int64"), text) : text;
}

static const char *shortened(int shorts, bool is_signed) {
    if (shorts == 0) return "";
    if (is_signed) return shorts == 1 ? "(int16_t)" : "(int8_t)";
    return shorts == 1 ? "(uint16_t)" : "(uint8_t)";
}

/* One value by one conversion. */
static void print_lane(Printer *p, Print *print, const Conversion *how, const Type *type, const char *text) {
    char letter = how->letter == 's' ? natural_letter(type) : how->letter;
    print->values++;
    bool wide = type->kind == TYPE_int64 || type->kind == TYPE_uint64 || type_is_float(type);
    text_printf(&print->format, "%%%.*s", STR_ARG(how->flags));
    if (letter == 'c') {
        text_char(&print->format, 'c');
        text_printf(&print->args, ", (int)(unsigned char)(%s)", as_integer(p, type, text));
    } else if (strchr("diuxXo", letter)) {
        bool is_signed = letter == 'd' || letter == 'i';
        text_printf(&print->format, "%s%c", wide ? "ll" : "", letter);
        text_printf(&print->args, ", (%s%s)%s(%s)", is_signed ? "" : "unsigned ", wide ? "long long" : "int",
                    shortened(how->shorts, is_signed), as_integer(p, type, text));
    } else {
        text_char(&print->format, letter);
        text_printf(&print->args, ", (double)(%s)", text);
    }
}

static void print_value(Printer *p, Print *print, const Conversion *how) {
    const Type *type = print->inst->args[print->next]->type;
    Value value = clike_operand(p, print->inst, print->next++);
    if (clike_is_text(type)) {
        print->values++;
        text_printf(&print->format, "%%%.*ss", STR_ARG(how->flags));
        const char *pointer = clike_pointer(p, value, type->args[0], true);
        text_printf(&print->args, pointer[0] == '"' ? ", %s" : ", slope_text(%s)", pointer);
        if (pointer[0] != '"') clike_helper(p, "slope_text");
    } else if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++) {
            if (i) text_add(&print->format, STR(", "));
            if (i) text_add(&print->args, str_of(how->sizes));
            print_lane(p, print, how, type->args[0],
                       clike_lane(p, type, clike_in(p, value, LEVEL_primary), i));
        }
    } else if (type_is_scalar(type)) {
        print_lane(p, print, how, type, value.text);
    } else {
        const char *address = type->kind == TYPE_buffer
                                  ? clike_format(p, "%s.data", clike_in(p, value, LEVEL_primary))
                                  : clike_pointer(p, value, type->args[0], true);
        print_lane(p, print, how, type_basic(p->module->types, TYPE_uint64),
                   clike_format(p, "(uintptr_t)(%s)", address));
    }
}

/* A `*` takes the next value, which must be a number. */
static void take_size(Printer *p, Print *print) {
    print->values++;
    if (print->next >= print->inst->nargs) {
        text_add(&print->args, STR(", 0"));
        return;
    }
    const Type *type = print->inst->args[print->next]->type;
    Value value = clike_operand(p, print->inst, print->next++);
    text_printf(&print->args, ", (int)(%s)", as_integer(p, type, value.text));
}

static const char *read_conversion(Printer *p, Print *print, const char *at, const char *end,
                                   Conversion *how) {
    const char *start = at;
    int before = print->args.len;
    for (; at < end && *at && strchr("-+ #0123456789.*", *at); at++) {
        if (*at != '*') continue;
        if (at > start && at[-1] == '.' && p->dialect->printf_values) /* CUDA's shows it as it is written */
            clike_fail(p, print->inst->loc, "printf of this target takes no precision as an argument");
        take_size(p, print);
    }
    *how =
        (Conversion){.flags = {start, (int)(at - start)},
                     .sizes = print->args.len > before ? clike_format(p, "%s", print->args.at + before) : ""};
    for (; at < end && *at && strchr("hlLqjzt", *at); at++) how->shorts += *at == 'h';
    how->letter = at < end ? *at++ : 0;
    return at;
}

static void literal(Print *print, const char *at, const char *end) {
    for (; at < end; at++) {
        if (*at == '%') text_char(&print->format, '%');
        text_char(&print->format, *at);
    }
}

/* ---- for the runtime, which formats it */

static void keep_lane(Printer *p, Text *values, const Type *type, const char *text) {
    const char *form = type_is_float(type)    ? "(uint64_t)__double_as_longlong((double)(%s))"
                       : type_is_signed(type) ? "(uint64_t)(int64_t)(%s)"
                                              : "(uint64_t)(%s)";
    text_printf(values, "%s%s", values->len ? ", " : "", clike_format(p, form, text));
}

/* Returns how many numbers it is. */
static int keep_value(Printer *p, Text *values, const Type *type, Value value, RtPrintKind *kind) {
    if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++)
            keep_lane(p, values, type->args[0], clike_lane(p, type, clike_in(p, value, LEVEL_primary), i));
        *kind = emit_print_kind(type->args[0]);
        return type_count(type);
    }
    if (type_is_scalar(type)) {
        keep_lane(p, values, type, value.text);
        *kind = emit_print_kind(type);
        return 1;
    }
    const char *address = type->kind == TYPE_buffer
                              ? clike_format(p, "%s.data", clike_in(p, value, LEVEL_primary))
                              : clike_pointer(p, value, type->args[0], true);
    keep_lane(p, values, type_basic(p->module->types, TYPE_uint64),
              clike_format(p, "(uintptr_t)(%s)", address));
    *kind = clike_is_text(type) ? RT_PRINT_text : RT_PRINT_uint64;
    return 1;
}

static void keep(Printer *p, const Inst *inst) {
    Text values = {.arena = &p->arena}, kinds = {.arena = &p->arena};
    int count = 0;
    for (int i = 0; i < inst->nargs; i++) {
        RtPrintKind kind;
        int lanes = keep_value(p, &values, inst->args[i]->type, clike_operand(p, inst, i), &kind);
        text_char(&kinds, (char)kind);
        text_char(&kinds, (char)lanes);
        count += lanes;
    }
    const char *name = count ? clike_local(p, "values") : "NULL";
    if (count) clike_line(p, "const uint64_t %s[] = {%s};", name, values.at);
    clike_line(p, "%s(%s, %d, %s, %d, %s, %d);", clike_helper(p, "slope_print"), clike_string(p, inst->text),
               inst->text.len, clike_string(p, text_str(&kinds)), inst->nargs, name, count);
}

void clike_printf(Printer *p, const Inst *inst) {
    if (p->file->hosted) {
        keep(p, inst);
        return;
    }
    Print print = {.inst = inst, .format = {.arena = &p->arena}, .args = {.arena = &p->arena}};
    const char *at = inst->text.at, *end = at + inst->text.len;
    while (at < end) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        literal(&print, at, percent ? percent : end);
        if (!percent) break;
        if (percent + 1 < end && percent[1] == '%') {
            literal(&print, percent, percent + 1);
            at = percent + 2;
            continue;
        }
        Conversion how;
        int before = print.args.len;
        at = read_conversion(p, &print, percent + 1, end, &how);
        bool known = how.letter && strchr("diuxXocfFeEgGaAs", how.letter);
        if (known && print.next < inst->nargs) {
            print_value(p, &print, &how);
        } else {
            print.args.len = before;
            literal(&print, percent, at);
        }
    }
    int most = p->dialect->printf_values;
    if (most && print.values > most)
        clike_fail(p, inst->loc, "printf of this target takes at most %d numbers", most);
    if (print.args.at) print.args.at[print.args.len] = 0;
    if (print.format.len == 0) return; /* compilers warn of a format without anything */
    clike_line(p, "printf(%s%s);", clike_string(p, text_str(&print.format)),
               print.args.at ? print.args.at : "");
}
