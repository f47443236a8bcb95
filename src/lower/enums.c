/* Enums are integers to the IR. What their cases are called is kept beside it, for targets that are read:
 * constants of the program have the name of their case, and the labels of a switch know which enum they are
 * from. */
#include "lower/lowerer.h"

static const EnumNames *find(const Module *module, const Decl *decl) {
    for (int i = 0; i < module->enums.count; i++)
        if (module->enums.at[i]->decl == decl) return module->enums.at[i];
    return NULL;
}

const EnumNames *lower_enum(Lowerer *l, const Type *type) {
    const Decl *decl = type->decl;
    const EnumNames *known = find(l->m, decl);
    if (known) return known;
    const char *name = unique_name(l, type);
    EnumNames *made = arena_new(l->m->arena, EnumNames);
    EnumCase *cases = arena_array(l->m->arena, EnumCase, decl->members.count + 1);
    *made = (EnumNames){
        .decl = decl, .type = check_enum_underlying(l->c, type), .loc = decl->loc, .cases = cases};
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind != DECL_case) continue;
        check_decl_header(l->c, member);
        const char *full = format_text(l->arena, "%s.%s", name, member->name->text);
        cases[made->ncases++] = (EnumCase){name_from(l->m->names, full), member->sema->value};
    }
    vec_push(l->m->arena, &l->m->enums, made);
    return made;
}

Val *lower_case(Lowerer *l, const Decl *decl, const Type *type) {
    const EnumNames *names = lower_enum(l, decl->type);
    Val *v = ir_const_int(l->m, type, decl->sema->value);
    for (int i = 0; i < names->ncases && !v->name; i++)
        if (names->cases[i].value == decl->sema->value) v->name = names->cases[i].name;
    return v;
}
