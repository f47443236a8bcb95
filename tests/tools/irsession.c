/* See irtool.h. */
#include "irtool.h"
#include "opt/opt.h"

#include <stdio.h>

void tool_begin(ToolSession *session) {
    *session = (ToolSession){0};
    arena_init(&session->arena, allocator_system, NULL);
    names_init(&session->names, &session->arena, NULL);
    types_init(&session->types, &session->arena, &session->names);
    sources_init(&session->sources, &session->arena, NULL);
    diags_init(&session->diags, &session->arena, &session->sources);
    session->module = module_new(&session->arena, &session->types, &session->names, &session->diags);
}

bool tool_parse(ToolSession *session, const char *path, Str text) {
    SourceFile *file = source_add(&session->sources, name_from(&session->names, path), text);
    return ir_parse(session->module, file);
}

static void show_diagnostic(void *user, const Diagnostic *diagnostic) {
    Text text = {.arena = user};
    diag_render_text(&text, diagnostic, (RenderStyle){0});
    fputs(text.at, stderr);
}

static Str read_all(Arena *arena, FILE *file) {
    Text text = {.arena = arena};
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) text_add(&text, (Str){chunk, (int)n});
    return text_str(&text);
}

bool tool_open(ToolSession *session, const char *path, Str *text) {
    tool_begin(session);
    session->diags.sink = show_diagnostic;
    session->diags.user = &session->arena;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) return fprintf(stderr, "cannot read '%s'\n", path), false;
    Str all = read_all(&session->arena, file);
    fclose(file);
    if (text) *text = all;
    return tool_parse(session, path, all);
}

/* ---- passes by name */

typedef bool (*Pass)(Func *func);

static bool inline_all(Func *func) { return opt_inline(func, (InlinePolicy){.max_size = 200}); }
static bool sroa_keep(Func *func) { return opt_sroa_func(func, (SroaOptions){.keep_opaque = true}); }

static bool legalize(Func *func) { return opt_legalize(func, (LegalOptions){true, true, true, true}); }

static bool range(Func *func) {
    return opt_range(func, (RangeOptions){.copies = true, .apart = true, .register_bits = 128});
}

static bool first(Func *func) {
    func->module->keeps_order = true;
    return opt_first(func);
}

static bool terms(Func *func) {
    func->module->keeps_order = true;
    return opt_terms(func);
}

static bool order(Func *func) {
    func->module->keeps_order = true;
    return opt_order(func);
}

/* The order as for LLVM. */
static bool marches(Func *func) {
    func->module->keeps_order = false;
    return opt_order(func);
}

static bool pairs(Func *func) { return opt_pairs(func, 128); }
static bool pairs_wide(Func *func) { return opt_pairs(func, 256); }
static bool sink(Func *func) { return opt_sink(func, 1); }

static bool infer_pure(Func *func) { return opt_infer_pure(func->module, 0); }

static void mark_loop(void *user, Inst *inst) {
    bool *any = user;
    if (inst->op == OP_loop) *any = inst->hints.together = true;
}

/* Of any loops. */
static bool together(Func *func) {
    bool marked = false;
    region_walk(func->body, mark_loop, &marked);
    return opt_together(func) || marked;
}

/* ---- ifs that ask again */

static bool is_known(const CloneMap *map, const Inst *owner, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (inst_contains(owner, inst->args[i]) && !map_has(&map->vals, PTR_KEY(inst->args[i]))) return false;
    return true;
}

/* What has no effect, and is made of nothing that has. */
static void copy_pure(const Inst *owner, const Region *from, Region *into) {
    CloneMap map = {.module = owner->func->module, .func = owner->func};
    for (Inst *inst = from->first; inst; inst = inst->next)
        if (op_has(inst->op, OP_PURE) && is_known(&map, owner, inst))
            inst_append(into, clone_inst(&map, inst));
    Builder b = build_at_end(into);
    build_yield(&b, NULL, 0);
}

static void ask_before(void *user, Inst *inst) {
    if (inst->op != OP_if || inst->args[0]->kind == VAL_const) return;
    Builder b = build_before(inst);
    const Inst *other = build_if(&b, inst->args[0], NULL, 0);
    for (int i = 0; i < 2; i++) copy_pure(inst, inst->regions[i], other->regions[i]);
    *(bool *)user = true;
}

/* Another `if` stands before each, with all of it that has no effect. */
static bool asked_before(Func *func) {
    bool any = false;
    ir_resolve_func(func);
    region_walk(func->body, ask_before, &any);
    return opt_asked(func) || any;
}

static const struct {
    const char *name;
    Pass pass;
} table[] = {
    {"inline", inline_all},
    {"sroa", opt_sroa},
    {"sroa_keep", sroa_keep},
    {"ssa", opt_ssa},
    {"dce", opt_dce},
    {"simplify", opt_simplify},
    {"powers", opt_powers},
    {"extremes", opt_extremes},
    {"reciprocal", opt_reciprocal},
    {"cse", opt_cse},
    {"licm", opt_licm},
    {"upward", opt_upward},
    {"untape", opt_untape},
    {"unroll", opt_unroll},
    {"digits", opt_take_digits},
    {"pure", infer_pure},
    {"exits", opt_lower_exits},
    {"share", opt_share},
    {"range", range},
    {"legalize", legalize},
    {"together", together},
    {"scalars", opt_scalars},
    {"order", order},
    {"pack", opt_pack},
    {"first", first},
    {"rejoin", opt_rejoin},
    {"steps", opt_steps},
    {"asked", opt_asked},
    {"asked_before", asked_before},
    {"terms", terms},
    {"fill", opt_fill},
    {"unlikely", opt_outline_unlikely},
    {"near", opt_near},
    {"marches", marches},
    {"turn", opt_turn},
    {"skip", opt_skip},
    {"totals", opt_totals},
    {"window", opt_window},
    {"ways", opt_ways},
    {"sink", sink},
    {"pairs", pairs},
    {"pairs_wide", pairs_wide},
};

bool tool_run_pass(Func *func, const char *name, bool *changed) {
    for (int i = 0; i < (int)(sizeof table / sizeof *table); i++) {
        if (strcmp(table[i].name, name) != 0) continue;
        bool did = table[i].pass(func);
        if (changed) *changed = did;
        return true;
    }
    return false;
}

const char *tool_pass_name(int index) {
    return index < (int)(sizeof table / sizeof *table) ? table[index].name : NULL;
}
