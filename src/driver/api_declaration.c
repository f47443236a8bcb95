/* Reflection on what a program declares. */
#include "driver.h"

int slope_declaration_count(SlopeProgram *program) {
    if (!program) return 0;
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return 0;
    }
    if (!driver_enter_program(program)) return 0;
    Declarations found = {0};
    if (!program->declarations_listed &&
        driver_leave(session, driver_list_declarations(program, &found)) == SLOPE_STATUS_ok) {
        program->declarations = found;
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

SlopeStatus slope_find_type(SlopeProgram *program, const char *expression, const SlopeType **out) {
    if (!program || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = program->session;
    *out = NULL;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter_program(program)) return driver_refused(session);
    if (!expression) return driver_missing(session, "slope_find_type", "expression");
    const Type *type = NULL;
    SlopeStatus status = driver_leave(session, driver_find_type(program, expression, &type));
    if (status == SLOPE_STATUS_ok) *out = driver_type(program, type, LAYOUT_scalar);
    return status;
}
