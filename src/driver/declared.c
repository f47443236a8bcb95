/* What a program declares, for hosts that do not know it: names, places and which of it is differentiable;
 * and types by name. */
#include "driver/unit.h"

/* ---- names */

static const char *own_name(const Decl *decl) {
    static const char *const flavours[] = {
        [FUNC_init] = "__init", [FUNC_get] = "get", [FUNC_set] = "set", [FUNC_ref] = "ref"};
    if (decl->kind == DECL_func && decl->flavour != FUNC_plain && decl->flavour != FUNC_lambda)
        return flavours[decl->flavour];
    if (decl->kind == DECL_subscript) return "__subscript";
    return decl->name ? decl->name->text : "_";
}

static void add_name(Text *text, const Decl *decl) {
    const Decl *parent = decl->parent;
    const Type *target = decl->kind == DECL_extension && decl->sema ? decl->sema->target : NULL;
    if (target && target->kind == TYPE_struct && !target->nargs) add_name(text, target->decl);
    else if (target) type_print(text, target);
    else {
        if (parent && parent->kind != DECL_module) {
            add_name(text, parent);
            text_char(text, '.');
        }
        text_add(text, str_of(own_name(decl)));
    }
}

const char *unit_qualified_name(Unit *unit, Decl *decl) {
    Text text = {.arena = &unit->program->arena};
    add_name(&text, decl);
    return text.at;
}

bool unit_is_generic(const Decl *decl) {
    for (; decl; decl = decl->parent)
        if (decl->generics && decl->generics->params.count) return true;
    return false;
}

/* ---- the list */

static bool is_listed_function(const Decl *decl) {
    bool has_body = decl->body || decl->lazy.count;
    return has_body && decl->name && decl->flavour == FUNC_plain && !(decl->flags & DECL_REQUIREMENT);
}

static void add(Unit *unit, Declarations *out, Decl *decl, SlopeDeclaration row) {
    SlopeProgram *program = unit->program;
    Position at = source_position(&program->sources, decl->loc);
    row.name = unit_qualified_name(unit, decl);
    row.is_generic = unit_is_generic(decl);
    row.path = at.path ? at.path->text : NULL;
    row.line = at.line;
    row.column = at.column;
    vec_push(&program->arena, out, row);
}

static void add_function(Unit *unit, Declarations *out, Decl *decl) {
    bool is_kernel = (decl->flags & DECL_ENTRY) != 0;
    add(unit, out, decl,
        (SlopeDeclaration){.kind = is_kernel ? SLOPE_DECLARATION_kernel : SLOPE_DECLARATION_function,
                           .has_fwd_diff = check_is_differentiable(unit->checker, decl, DIFF_fwd),
                           .has_bwd_diff = check_is_differentiable(unit->checker, decl, DIFF_bwd)});
}

static void add_type(Unit *unit, Declarations *out, Decl *decl) {
    check_decl_header(unit->checker, decl);
    const Type *type = decl->kind == DECL_alias ? decl->type : check_self_type(unit->checker, decl);
    bool differentiable = type && check_is_diff_type(unit->checker, type, decl);
    add(unit, out, decl,
        (SlopeDeclaration){
            .kind = SLOPE_DECLARATION_type, .has_fwd_diff = differentiable, .has_bwd_diff = differentiable});
}

static bool is_type(const Decl *decl) {
    return decl->kind == DECL_struct || decl->kind == DECL_interface || decl->kind == DECL_enum ||
           decl->kind == DECL_alias;
}

static void list(Unit *unit, Declarations *out, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind == DECL_func && is_listed_function(member)) add_function(unit, out, member);
        if (is_type(member) && member->name) add_type(unit, out, member);
        if (member->kind == DECL_namespace || member->kind == DECL_struct || member->kind == DECL_extension)
            list(unit, out, member);
    }
}

SlopeStatus driver_list_declarations(SlopeProgram *program, Declarations *out) {
    Unit *unit = program->unit;
    SlopeStatus status = unit_check(unit);
    if (status == SLOPE_STATUS_ok) list(unit, out, unit->module);
    return status;
}

/* ---- types by name */

SlopeStatus driver_find_type(SlopeProgram *program, const char *expression, const Type **out) {
    Unit *unit = program->unit;
    if (unit_check(unit) != SLOPE_STATUS_ok) return SLOPE_STATUS_error;
    Expr *expr = unit_parse(unit, expression);
    const Type *type = expr ? check_type(unit->checker, unit->module, expr) : NULL;
    if (!type) return SLOPE_STATUS_misuse;
    *out = lower_type(unit->lowerer, type);
    return SLOPE_STATUS_ok;
}
