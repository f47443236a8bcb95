/* slope dump: the program after a stage. */
#include "driver/unit.h"

static void dump_func(Text *out, const Func *func) {
    ir_print_func(out, func);
    text_char(out, '\n');
}

/* Every function that can be lowered by itself. */
static void lower_everything(Unit *unit, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (unit_is_generic(member)) continue;
        bool function = member->kind == DECL_func && (member->body || member->lazy.count);
        if (function && !(member->flags & (DECL_ENTRY | DECL_REQUIREMENT)))
            lower_func(unit->lowerer, member, NULL, NULL, 0);
        bool container = member->kind == DECL_namespace || member->kind == DECL_struct;
        if (container) lower_everything(unit, member);
    }
}

/* A row per value that the program's reverse passes keep. */
static void print_stored(const SlopeProgram *program, Text *out) {
    const SlopeSession *session = program->session;
    int rows = 0;
    for (int i = 0; i < session->stored.count; i++) {
        const SlopeStored *row = &session->stored.at[i].row;
        if (session->stored.at[i].program != program) continue;
        if (rows++ == 0)
            text_printf(out, "%-24s %-16s %6s %6s  %s\n", "; function", "value", "line", "bytes",
                        "how often");
        text_printf(out, "; %-22s %-16s %6d %6d  ", row->function, row->name, row->line, row->bytes);
        if (!row->loop_line) text_add(out, STR("once per call\n"));
        else
            text_printf(out, "per iteration of the loop in line %d%s\n", row->loop_line,
                        row->exact ? "" : " (growing)");
    }
}

/* The stages of autodiff show the derivatives of a function, asked for or not. */
static SlopeStatus dump_ad(SlopeProgram *program, const char *function, const char *stage, Text *out) {
    Unit *unit = program->unit;
    SlopeSession *session = program->session;
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    unit->dump = out;
    unit->dump_stage = stage;
    if (function) {
        Func *func;
        bool derivative = strstr(function, "_diff") != NULL;
        const char *backward = derivative ? function : format_text(&program->arena, "bwd_diff(%s)", function);
        session->diags->muted++;
        status = driver_find_function(program, backward, &func);
        session->diags->muted--;
        if (status != SLOPE_STATUS_ok)
            status = driver_find_function(
                program, derivative ? function : format_text(&program->arena, "fwd_diff(%s)", function),
                &func);
    } else {
        status = driver_all_entries(program);
        lower_everything(unit, unit->module);
    }
    if (status == SLOPE_STATUS_ok) status = unit_prepare(unit, stage);
    unit->dump = NULL;
    if (strcmp(stage, "checkpoint") == 0) print_stored(program, out);
    return status;
}

static SlopeStatus dump_ir(SlopeProgram *program, const char *function, const char *stage, Text *out) {
    Unit *unit = program->unit;
    Func *func = NULL;
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    if (function) status = driver_entry_or_function(program, function, &func);
    else {
        status = driver_all_entries(program);
        lower_everything(unit, unit->module);
    }
    unit->keeps_sums = stage && strcmp(stage, "sums") == 0; /* as for kernels that run at once */
    if (status == SLOPE_STATUS_ok) status = unit_prepare(unit, stage);
    if (status == SLOPE_STATUS_ok) status = unit_refuse_failed(unit, func);
    if (status != SLOPE_STATUS_ok) return status;
    if (stage && strcmp(stage, "lower") == 0) lower_links(unit->lowerer);
    if (func) dump_func(out, func);
    else ir_print_module(out, unit->ir);
    return SLOPE_STATUS_ok;
}

SlopeStatus driver_dump(SlopeProgram *program, const char *function, const char *stage, Text *out) {
    Unit *unit = program->unit;
    if (stage && strcmp(stage, "syntax") == 0) {
        if (program->session->diags->errors) return SLOPE_STATUS_error;
        syntax_print(out, &program->sources, unit->module);
        return SLOPE_STATUS_ok;
    }
    if (stage && strcmp(stage, "check") == 0) {
        CheckedFunction only = {.decl = unit->module};
        SlopeStatus status = function ? driver_find_declaration(program, function, &only) : unit_check(unit);
        if (status == SLOPE_STATUS_ok) check_print(out, unit->checker, only.decl);
        return status;
    }
    if (unit_is_ad_stage(stage)) return dump_ad(program, function, stage, out);
    return dump_ir(program, function, stage, out);
}
