/* Reflection on what a program declares. */
#include "driver.h"

static SlopeStatus list(DriverWork *work) {
    return driver_list_declarations(work->program, &work->declarations);
}

int slope_declaration_count(SlopeProgram *program) {
    if (!program) return 0;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return 0;
    }
    if (!driver_enter_program(program)) return 0;
    DriverWork work = {.program = program};
    if (!program->declarations_listed &&
        driver_leave(session, driver_deep(session, list, &work)) == SLOPE_STATUS_ok) {
        program->declarations = work.declarations;
        program->declarations_listed = true;
    }
    return program->declarations.count;
}

bool slope_declaration(SlopeProgram *program, int index, SlopeDeclaration *out) {
    if (!program || !out) return false;
    if (index < 0 || index >= slope_declaration_count(program)) return false;
    *out = program->declarations.at[index];
    return true;
}

static SlopeStatus find_type(DriverWork *work) {
    return driver_find_type(work->program, work->name, &work->type);
}

SlopeStatus slope_find_type(SlopeProgram *program, const char *expression, const SlopeType **out) {
    if (out) *out = NULL;
    if (!program || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!expression) return driver_missing(session, "slope_find_type", "expression");
    Name name = name_from(&program->names, expression);
    const SlopeType *type = map_get(&program->found_types, PTR_KEY(name));
    if (!type) {
        DriverWork work = {.program = program, .name = expression};
        SlopeStatus status = driver_leave(session, driver_deep(session, find_type, &work));
        if (status != SLOPE_STATUS_ok) return status;
        type = driver_type(program, work.type, LAYOUT_scalar);
        map_put(&program->arena, &program->found_types, PTR_KEY(name), (void *)(uintptr_t)type);
    }
    *out = type;
    return SLOPE_STATUS_ok;
}
