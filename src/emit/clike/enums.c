/* Cases of enums by their names:
 *
 *     #define Kind_Circle 0
 *     #define Kind_Square 1
 *     switch (kind) { case Kind_Circle: ...
 *
 * A number by another name has no type that C++ could mind, and fits integers of every size. The header has
 * the enums that functions and structs of the program use, the code those of which it uses a case. */
#include "emit/clike/clike.h"

static bool is_of_program(const Printer *p, const EnumNames *names) {
    const Sources *own = p->module->diags->sources;
    const SourceFile *file = names->loc ? source_of(p->module->diags->sources, names->loc) : NULL;
    for (int i = 0; i < own->files.count; i++)
        if (own->files.at[i] == file) return true;
    return false;
}

static void define(Printer *p, const EnumNames *names) {
    for (int i = 0; i < names->ncases; i++) {
        const EnumCase *one = &names->cases[i];
        const char *name = map_get(&p->cases, PTR_KEY(one->name));
        const char *number = clike_constant(p, ir_const_int(p->module, names->type, one->value));
        if (number[0] == '-') number = clike_format(p, "(%s)", number);
        if (p->dialect->language->has_places_only)
            text_printf(&p->types, "static const %s = %s;\n", clike_declare(p, names->type, name), number);
        else text_printf(&p->types, "#define %s %s\n", name, number);
    }
    if (p->dialect->language->has_places_only) text_char(&p->types, '\n');
}

void clike_name_enums(Printer *p) {
    for (int i = 0; i < p->module->enums.count; i++) {
        const EnumNames *names = p->module->enums.at[i];
        if (!is_of_program(p, names)) continue;
        for (int k = 0; k < names->ncases; k++) {
            const char *name = clike_unique(p, &p->names, clike_free_name(p, names->cases[k].name->text));
            map_put(&p->arena, &p->cases, PTR_KEY(names->cases[k].name), (void *)(uintptr_t)name);
        }
        if (p->file->header) define(p, names);
    }
}

const char *clike_case_name(Printer *p, Name name) {
    const char *text = name ? map_get(&p->cases, PTR_KEY(name)) : NULL;
    for (int i = 0; i < p->module->enums.count && text; i++) {
        const EnumNames *names = p->module->enums.at[i];
        bool has_case = false;
        for (int k = 0; k < names->ncases; k++) has_case |= names->cases[k].name == name;
        if (!has_case) continue;
        const char *all = clike_format(p, "cases beside %s", names->cases[0].name->text);
        if (clike_begin_helper(p, all)) define(p, names);
        break;
    }
    return text;
}

Name clike_case_of(const EnumNames *names, int64_t value) {
    for (int i = 0; names && i < names->ncases; i++)
        if (names->cases[i].value == value) return names->cases[i].name;
    return NULL;
}
