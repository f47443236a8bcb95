/* The backend: the parts of a file in their order, and errors. */
#include "emit/clike/clike.h"

#include <stdio.h>
#include <stdlib.h>

void clike_fail(Printer *p, Loc loc, const char *format, ...) {
    Text text = {.arena = &p->arena};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    p->trap_loc = loc;
    trap_spring(&p->trap, TRAP_fault, text.at);
}

/* ---- what the target lacks */

enum { WAVE_SIZE = 6 }; /* of what a thread can ask for */

static bool needs_waves(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_wave || (inst->op == OP_thread_id && inst->index == WAVE_SIZE);
}

/* Of the program's own functions, the one that calls it, itself or through others of the library. */
static const Func *user_of(const Printer *p, const Func *func) {
    const ReachedFunc *at = reached_func(&p->reached, func);
    for (int i = 0; at->func->is_library && at->caller && i < p->reached.funcs.count; i++) at = at->caller;
    return at->func; /* of some that call each other, one */
}

static void check_capabilities(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count && !(p->file->target->capabilities & TARGET_WAVES); i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        const Inst *wave = region_find(func->body, needs_waves, NULL);
        if (!wave) continue;
        const Func *who = user_of(p, func);
        clike_fail(p, func->is_library ? who->loc : wave->loc, "this target has no waves, which '%s' needs",
                   who->name->text);
    }
}

/* Nobody could give the function a value. */
static void check_choices(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        for (int k = 0; k < func->nparams && (func->flags & FUNC_EXPORT); k++) {
            const Type *type = func->params[k].type;
            if (type->kind != TYPE_record || func->params[k].dir != DIR_in) continue;
            const Record *record = type_record(type);
            if (record->is_choice && record->nfields == 1)
                clike_fail(p, func->loc,
                           "'%s' takes a value of '%s', which no type of the program implements",
                           func->name->text, record->name->text);
        }
    }
}

/* ---- memory that has several types */

static void note_punned(void *user, Inst *inst) {
    Printer *p = user;
    const Type *seen = ir_is_view(inst) ? inst->results[0]->type->args[0] : NULL;
    if (seen && seen->kind == TYPE_record) map_put(&p->arena, &p->punned, PTR_KEY(seen), p);
}

static void find_punned(Printer *p) {
    for (int i = 0; i < p->reached.funcs.count; i++)
        region_walk(p->reached.funcs.at[i]->func->body, note_punned, p);
}

/* ---- the file */

static void reserve_names(Printer *p) {
    for (int i = 0; i < p->module->records.count; i++) {
        const char *name = clike_free_name(p, p->module->records.at[i]->name->text);
        map_put(&p->arena, &p->reserved, PTR_KEY(name_from(p->module->names, name)), p);
    }
}

static void add_part(Text *out, const Text *part, bool blank) {
    if (part->len == 0) return;
    text_add(out, text_str(part));
    if (blank) text_char(out, '\n');
}

static void add_host(const Printer *p, Text *out, const Text *part) {
    if (part->len == 0) return;
    text_printf(out, "%s%s%s", p->dialect->host_open, part->at, p->dialect->host_close);
}

static bool has_precise(const Printer *p) {
    for (int i = 0; i < p->module->funcs.count; i++)
        if (p->module->funcs.at[i]->flags & FUNC_PRECISE) return true;
    return false;
}

static void print_sums(const Printer *p, Text *out) {
    text_printf(out, "#define SLOPE_SUMS %du\n#define SLOPE_SUM %s\n#define SLOPE_ONE_BUFFER %d\n",
                p->sums.count, p->sums.kind == TYPE_double ? "double" : "float", p->sums.buffer != NULL);
    text_printf(out, "#define SLOPE_IN_ORDER %d\n", p->sums.in_order);
}

static void assemble_code(Printer *p, Text *out) {
    text_printf(out, "/* Made by Slope. */\n%s", p->dialect->includes);
    if (p->is_strict && !p->dialect->language->has_places_only)
        text_add(out, STR("#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF /* other compilers: "
                          "-ffp-contract=off */\n#endif\n\n"));
    bool blank = !p->dialect->language->has_places_only; /* there, each part ends with a blank line */
    add_part(out, &p->types, blank);
    if (p->sums.any) print_sums(p, out);
    if (p->largest) text_printf(out, "#define SLOPE_LARGEST %lld\n", (long long)p->largest);
    if (p->dialect->thread_type) p->dialect->thread_type(p, out);
    clike_add_helpers(p, out);
    if (p->helpers.len && blank) text_char(out, '\n');
    text_add(out, str_of(p->dialect->open));
    add_part(out, &p->prototypes, true);
    add_host(p, out, &p->host_prototypes);
    text_add(out, str_of(p->outside.len ? p->dialect->outside_open : ""));
    add_part(out, &p->outside, p->dialect->outside_close[0] == 0);
    text_add(out, str_of(p->outside.len ? p->dialect->outside_close : ""));
    add_part(out, &p->globals, true);
    add_part(out, &p->functions, false);
    add_host(p, out, &p->host);
    text_add(out, str_of(p->dialect->close));
    add_part(out, &p->last, false);
}

static void assemble_header(Printer *p, Text *out) {
    text_printf(out, "/* Made by Slope. */\n#pragma once\n%s%s%s",
                p->header_copies ? "#include <string.h>\n" : "", p->dialect->header_includes,
                p->dialect->open);
    add_part(out, &p->types, true);
    add_part(out, &p->prototypes, p->host_prototypes.len == 0);
    add_part(out, &p->host_prototypes, true);
    text_add(out, str_of(p->dialect->close));
}

static void print_module(Printer *p, Text *out) {
    p->is_strict = p->options->floats == EMIT_floats_strict || has_precise(p);
    p->reached = emit_reach(&p->arena, p->module, false);
    if (p->reached.missing)
        clike_fail(p, p->reached.missing->loc, "function '%s' has no body", p->reached.missing->name->text);
    check_capabilities(p);
    if (p->dialect->language->refuse) p->dialect->language->refuse(p);
    check_choices(p);
    reserve_names(p);
    find_punned(p);
    clike_find_init(p);
    clike_find_copies(p);
    if (p->dialect->warp_sums) p->sums = emit_waiting_sums(&p->reached, p->module);
    clike_name_functions(p);
    clike_name_enums(p);
    for (int i = 0; i < p->reached.globals.count; i++) clike_global_name(p, p->reached.globals.at[i]->global);
    clike_declare_globals(p);
    clike_declare_functions(p);
    if (p->file->header) {
        assemble_header(p, out);
        return;
    }
    clike_functions(p);
    clike_globals(p);
    assemble_code(p, out);
    clike_resolve_marks(p, out);
}

static char *copy_out(const Text *text, size_t *size) {
    char *bytes = malloc((size_t)text->len + 1);
    if (bytes) memcpy(bytes, text->at, (size_t)text->len + 1);
    *size = (size_t)text->len;
    return bytes;
}

static char *make(Module *module, const EmitOptions *options, const EmitFile *file, size_t *size,
                  EmitTimes *times, EmitError *error) {
    static const Dialect *const dialects[] = {[EMIT_c] = &clike_c,
                                              [EMIT_cuda] = &clike_cuda,
                                              [EMIT_ptx_nvrtc] = &clike_cuda,
                                              [EMIT_slang] = &clike_slang};
    Printer p = {.module = module, .options = options, .file = file, .dialect = dialects[file->format]};
    (void)times;
    arena_init(&p.arena, allocator_system, &p.trap);
    Text *parts[] = {&p.types,     &p.helpers, &p.prototypes, &p.host_prototypes, &p.outside, &p.globals,
                     &p.functions, &p.host,    &p.last};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) parts[i]->arena = &p.arena;
    if (setjmp(p.trap.at)) {
        snprintf(error->text, sizeof error->text, "%s",
                 p.trap.why == TRAP_memory ? "out of memory" : p.trap.what);
        error->loc = p.trap_loc;
        arena_free(&p.arena);
        return NULL;
    }
    Text out = {.arena = &p.arena};
    print_module(&p, &out);
    char *bytes = copy_out(&out, size);
    arena_free(&p.arena);
    return bytes;
}

static const EmitBackend backend = {.name = "clike", .version = "1", .make = make};

const EmitBackend *clike_backend(void) { return &backend; }
