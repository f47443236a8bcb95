/* The front end behind the API: loading, checking, finding functions and entry points by name. */
#include "driver/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* ---- files */

static const char *directory_of(Arena *arena, Name path) {
    const char *slash = path ? strrchr(path->text, '/') : NULL;
    return slash ? format_text(arena, "%.*s/", (int)(slash - path->text), path->text) : "";
}

/* One file, one name, that by which it was first found: a folder may be spelt from the root and from here. */
static Name name_of_file(SlopeProgram *program, const char *path) {
    Name name = name_from(&program->names, path);
    char resolved[PATH_MAX];
    if (!driver_reads_disk(program->session) || !realpath(path, resolved)) return name;
    Map *files = &program->unit->files;
    uint64_t key = PTR_KEY(name_from(&program->names, resolved));
    if (!map_has(files, key)) map_put(&program->arena, files, key, (void *)(uintptr_t)name);
    return map_get(files, key);
}

/* A file that is there and cannot be read is named all the same, with the reason for a text. */
static bool try_file(SlopeProgram *program, const char *path, Str *text, Name *found) {
    int error = driver_read_file(program, path, text);
    if (error == ENOENT || error == ENOTDIR) return false;
    *found = name_of_file(program, path);
    if (error) *text = str_of(format_text(&program->arena, "%s", strerror(error)));
    return !error;
}

static const char *beside(Arena *arena, Name from, const char *name) {
    return format_text(arena, "%s%s", directory_of(arena, from), name);
}

static bool find_in_paths(SlopeProgram *program, const char *name, Str *text, Name *found) {
    const SlopeConfig *config = &program->session->config;
    Arena *arena = &program->arena;
    for (int i = 0; i < config->include_path_count; i++) {
        const char *folder = config->include_paths[i];
        size_t n = strlen(folder);
        const char *separator = n && folder[n - 1] == '/' ? "" : "/";
        if (try_file(program, format_text(arena, "%s%s%s", folder, separator, name), text, found))
            return true;
    }
    return false;
}

/* In the folders above the one of the file that asks, as far as its path names them: Utils/Geometry.slang
 * says Utils.Color for its neighbour, like those outside. */
static bool find_above(SlopeProgram *program, Name from, const char *name, Str *text, Name *found) {
    Arena *arena = &program->arena;
    Name folder = from;
    while (folder && strchr(folder->text, '/')) {
        folder = name_from(
            &program->names,
            format_text(arena, "%.*s", (int)(strrchr(folder->text, '/') - folder->text), folder->text));
        if (try_file(program, beside(arena, folder, name), text, found)) return true;
    }
    return false;
}

/* Beside the file that asks, then in the search paths, then above. */
static bool find_file(void *user, Str path, Name from, Str *text, Name *found) {
    SlopeProgram *program = user;
    const char *name = format_text(&program->arena, "%.*s", STR_ARG(path));
    if (name[0] == '/') return try_file(program, name, text, found);
    return try_file(program, beside(&program->arena, from, name), text, found) ||
           find_in_paths(program, name, text, found) || find_above(program, from, name, text, found);
}

/* A module that imports its own name means another one, if there is one. */
static bool find_module(void *user, Str path, Name from, Str *text, Name *found) {
    SlopeProgram *program = user;
    const char *name = format_text(&program->arena, "%.*s", STR_ARG(path));
    bool itself = from && strcmp(beside(&program->arena, from, name), from->text) == 0;
    return (itself && find_in_paths(program, name, text, found)) || find_file(user, path, from, text, found);
}

/* ---- sessions and programs */

SlopeStatus driver_open(SlopeSession *session) {
    Pipeline *stages = session->stages = arena_new(&session->arena, Pipeline);
    StageTimer timer;
    Syntax *syntax = stages->syntax = arena_new(&session->arena, Syntax);
    *syntax = (Syntax){.arena = &session->arena,
                       .names = &session->names,
                       .sources = &session->sources,
                       .diags = session->diags};
    driver_time_begin(session, &timer, "prelude");
    syntax_init_names(&session->names);
    stages->library = library_new(syntax, prelude_files, prelude_rows);
    driver_time_end(&timer);
    return SLOPE_STATUS_ok;
}

void driver_keep(SlopeSession *session, Str text) {
    Library *library = session->stages->library;
    StageTimer timer;
    driver_time_begin(session, &timer, "prelude");
    if (!library_is_ready(library)) library_expect(library, &session->names, text);
    if (library_keep(session->stages->syntax, library)) driver_free_ready(session);
    driver_time_end(&timer);
}

static Define *defines_of(SlopeProgram *program) {
    const SlopeConfig *config = &program->session->config;
    int n = config->define_count;
    Define *defines = arena_array(&program->arena, Define, n ? n : 1);
    for (int i = 0; i < n; i++) {
        const SlopeDefine *define = &config->defines[i];
        defines[i] = (Define){str_of(define->name), str_of(define->value ? define->value : "")};
    }
    return defines;
}

bool driver_begin(SlopeProgram *program) {
    SlopeSession *session = program->session;
    StageTimer timer;
    Unit *unit = program->unit = arena_new(&program->arena, Unit);
    unit->program = program;
    unit->syntax = (Syntax){.arena = &program->arena,
                            .names = &program->names,
                            .sources = &program->sources,
                            .diags = &program->diags,
                            .read = find_file,
                            .user = program,
                            .defines = defines_of(program),
                            .ndefines = session->config.define_count};
    CheckerConfig config = {.syntax = &unit->syntax,
                            .types = &program->types,
                            .find_module = find_module,
                            .user = program,
                            .library = session->stages->library,
                            .conformances = (const char **)(uintptr_t)session->config.conformances,
                            .nconformances = session->config.conformance_count};
    driver_time_begin(session, &timer, "prelude");
    unit->checker = checker_new(&program->arena, &config);
    driver_time_end(&timer);
    unit->ir = module_new(&program->arena, &program->types, &program->names, &program->diags);
    LowerConfig lowering = {.most_carried = unit_most_carried, .user = unit};
    unit->lowerer = lower_new(&program->arena, unit->checker, unit->ir, &lowering);
    return library_is_ready(session->stages->library);
}

SlopeStatus driver_load(SlopeProgram *program, Str text) {
    SlopeSession *session = program->session;
    StageTimer timer;
    Unit *unit = program->unit;
    driver_time_begin(session, &timer, "syntax");
    name_of_file(program, program->path->text);
    unit->module = check_load_text(unit->checker, program->path, text);
    for (int i = 0; i < session->config.link_count; i++) check_link(unit->checker, session->config.links[i]);
    driver_time_end(&timer);
    return SLOPE_STATUS_ok; /* errors are those of driver_check */
}

SlopeStatus unit_check(Unit *unit) {
    SlopeSession *session = unit->program->session;
    if (!unit->checked) {
        StageTimer timer;
        int before = session->diags->errors;
        driver_time_begin(session, &timer, "check");
        check_imported(unit->checker);
        check_add_conformances(unit->checker);
        diags_flush(session->diags);
        driver_time_end(&timer);
        unit->errors = session->diags->errors - before;
        unit->checked = true;
    }
    return unit->errors ? SLOPE_STATUS_error : SLOPE_STATUS_ok;
}

SlopeStatus driver_check(SlopeProgram *program) { return unit_check(program->unit); }

/* ---- functions by expression */

Expr *unit_parse(Unit *unit, const char *expression) {
    SlopeProgram *program = unit->program;
    char *copy = format_text(&program->arena, "%s", expression);
    SourceFile *file = source_add(&program->sources, name_from(&program->names, "expression"), str_of(copy));
    return syntax_parse_expr(&unit->syntax, file);
}

/* The declaration that an expression names, with arguments and derivative operators. */
SlopeStatus driver_find_declaration(SlopeProgram *program, const char *expression, CheckedFunction *out) {
    Unit *unit = program->unit;
    if (unit_check(unit) != SLOPE_STATUS_ok) return SLOPE_STATUS_error;
    Expr *expr = unit_parse(unit, expression);
    return expr && check_function(unit->checker, unit->module, expr, out) ? SLOPE_STATUS_ok
                                                                          : SLOPE_STATUS_misuse;
}

SlopeStatus driver_find_function(SlopeProgram *program, const char *expression, Func **out) {
    Unit *unit = program->unit;
    CheckedFunction found;
    SlopeStatus status = driver_find_declaration(program, expression, &found);
    if (status != SLOPE_STATUS_ok) return status;
    *out = lower_func(unit->lowerer, found.decl, found.subst, found.modes, found.nmodes);
    (*out)->flags |= FUNC_EXPORT;
    return SLOPE_STATUS_ok;
}

/* ---- entry points */

typedef VEC(Decl *) Decls;

/* Of functions of one name: which of them is meant. What is marked before what is not, then what has a body,
 * what is not generic, and what is in no namespace. */
static int entry_rank(const Unit *unit, const Decl *func) {
    return ((func->flags & DECL_ENTRY) ? 8 : 0) + (func->body || func->lazy.count ? 4 : 0) +
           (unit_is_generic(func) ? 0 : 2) + (func->parent == unit->module);
}

typedef struct Entries {
    Decls marked;
    Decls named; /* those of the name that are meant; several: the name does not tell which */
} Entries;

static void add_named(Unit *unit, Decl *func, Decls *named) {
    int rank = entry_rank(unit, func), best = named->count ? entry_rank(unit, named->at[0]) : 0;
    if (rank > best) named->count = 0;
    if (rank >= best) vec_push(&unit->program->arena, named, func);
}

static void collect_entries(Unit *unit, Decl *decl, const char *name, Entries *found) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind == DECL_namespace) collect_entries(unit, member, name, found);
        if (member->kind != DECL_func || !member->name) continue;
        if (member->flags & DECL_ENTRY) vec_push(&unit->program->arena, &found->marked, member);
        if (strcmp(member->name->text, name) == 0) add_named(unit, member, &found->named);
    }
}

static Entries find_entries(Unit *unit, const char *name) {
    Entries found = {0};
    collect_entries(unit, unit->module, name, &found);
    return found;
}

int driver_count_entries(SlopeProgram *program, const char *name) {
    Entries found = find_entries(program->unit, name ? name : "main");
    return name ? found.named.count > 0 : found.marked.count;
}

static bool is_block_in_order(const SlopeProgram *program) {
    const int *block = program->session->config.block;
    int64_t size[3];
    for (int i = 0; i < 3; i++) size[i] = block[i] ? block[i] : 1;
    if (check_group_fits(size)) return true;
    diag_report(program->session->diags, DIAG_bad_block, 0, block[0], block[1], block[2]);
    return false;
}

/* Kernels that do not say how large their groups are have what the session says. */
static void set_block(const Unit *unit, const Decl *decl, Func *func) {
    const int *block = unit->program->session->config.block;
    bool says = decl->sema && decl->sema->group_size[0];
    for (int i = 0; i < 3 && !says; i++) func->group_size[i] = block[i] ? block[i] : 1;
}

/* Of another stage than compute there is code, but nobody calls it as that stage does. */
static bool is_of_other_stage(Unit *unit, const Decl *entry) {
    if (!entry->sema || !entry->sema->stage.len) return false;
    diag_report(unit->program->session->diags, DIAG_other_stage, entry->loc, entry->name->text,
                STR_ARG(entry->sema->stage));
    return true;
}

static Func *entry_of(Unit *unit, Decl *decl) {
    Func *func = map_get(&unit->entries, PTR_KEY(decl));
    if (func) return func;
    func = lower_entry(unit->lowerer, decl, NULL);
    set_block(unit, decl, func);
    map_put(&unit->program->arena, &unit->entries, PTR_KEY(decl), func);
    return func;
}

/* bwd_diff(kernel), space.kernel, kernel<float>; no methods, and what is generic only if it is marked. */
static SlopeStatus find_entry_of_expression(SlopeProgram *program, const char *expression, Func **out) {
    Unit *unit = program->unit;
    CheckedFunction found;
    if (!is_block_in_order(program)) return SLOPE_STATUS_misuse;
    SlopeStatus status = driver_find_declaration(program, expression, &found);
    if (status != SLOPE_STATUS_ok) return status;
    bool generic = unit_is_generic(found.decl);
    if (!found.nmodes && ((generic && !(found.decl->flags & DECL_ENTRY)) ||
                          check_signature(unit->checker, found.decl)->has_this)) {
        diag_report(program->session->diags, DIAG_unknown_entry, 0, expression);
        return SLOPE_STATUS_misuse;
    }
    if (!found.nmodes && is_of_other_stage(unit, found.decl)) return SLOPE_STATUS_error;
    if (!found.nmodes && !generic) {
        *out = entry_of(unit, found.decl);
        return SLOPE_STATUS_ok;
    }
    Map *entries = &unit->entries;
    uint64_t key =
        found.nmodes ? PTR_KEY(lower_func(unit->lowerer, found.decl, found.subst, found.modes, found.nmodes))
                     : PTR_KEY(name_from(&program->names, expression));
    *out = map_get(entries, key);
    if (*out) return SLOPE_STATUS_ok;
    *out = found.nmodes
               ? lower_derived_entry(unit->lowerer, found.decl, found.subst, found.modes, found.nmodes)
               : lower_entry(unit->lowerer, found.decl, found.subst);
    set_block(unit, found.decl, *out);
    map_put(&program->arena, entries, key, *out);
    return SLOPE_STATUS_ok;
}

static void report_unknown_entry(SlopeProgram *program, const Decls *marked, const char *name) {
    VEC(Name) names = {0};
    for (int i = 0; i < marked->count; i++) vec_push(&program->arena, &names, marked->at[i]->name);
    diag_report(program->session->diags, DIAG_unknown_entry, 0, name);
    Name nearest = diag_nearest(name_from(&program->names, name), names.at, names.count);
    if (nearest) diag_note(program->session->diags, DIAG_did_you_mean_uniform, 0, nearest->text);
}

static void report_generic_entry(SlopeProgram *program, const Decl *entry) {
    diag_report(program->session->diags, DIAG_generic_entry, entry->loc, entry->name->text);
}

/* Several of one namespace are overloads: an expression may say which. */
static SlopeStatus choose_among(SlopeProgram *program, const char *name, const Decls *named, Func **out) {
    Unit *unit = program->unit;
    Diags *diags = program->session->diags;
    const char *first = unit_qualified_name(unit, named->at[0]);
    bool overloads = true;
    for (int i = 1; i < named->count; i++)
        overloads = overloads && strcmp(first, unit_qualified_name(unit, named->at[i])) == 0;
    if (overloads) return find_entry_of_expression(program, first, out);
    diag_report(diags, DIAG_ambiguous_entry, 0, name, first);
    for (int i = 0; i < named->count; i++)
        diag_note(diags, DIAG_note_entry, named->at[i]->loc, unit_qualified_name(unit, named->at[i]));
    return SLOPE_STATUS_misuse;
}

static SlopeStatus report_no_entry(SlopeProgram *program, const Decls *marked, const char *name) {
    Diags *diags = program->session->diags;
    if (name) {
        report_unknown_entry(program, marked, name);
        return SLOPE_STATUS_misuse;
    }
    diag_report(diags, marked->count ? DIAG_which_entry : DIAG_no_entry, 0);
    for (int i = 0; i < marked->count; i++)
        diag_note(diags, DIAG_note_entry, marked->at[i]->loc,
                  unit_qualified_name(program->unit, marked->at[i]));
    return SLOPE_STATUS_misuse;
}

SlopeStatus driver_find_entry(SlopeProgram *program, const char *name, Func **out) {
    Unit *unit = program->unit;
    if (unit_check(unit) != SLOPE_STATUS_ok) return SLOPE_STATUS_error;
    if (name && strpbrk(name, "(.:<")) return find_entry_of_expression(program, name, out);
    if (!is_block_in_order(program)) return SLOPE_STATUS_misuse;
    Entries found = find_entries(unit, name ? name : "main");
    const Decls *marked = &found.marked, *named = &found.named;
    bool hosted = named->count && marked->count == 1 && (marked->at[0]->flags & DECL_LAUNCHED);
    bool only = !name && marked->count == 1 && !hosted;
    if (!only && named->count == 0) return report_no_entry(program, marked, name);
    if (!only && named->count > 1) return choose_among(program, name ? name : "main", named, out);
    Decl *entry = only ? marked->at[0] : named->at[0];
    if (unit_is_generic(entry)) {
        report_generic_entry(program, entry);
        return SLOPE_STATUS_misuse;
    }
    if (is_of_other_stage(unit, entry)) return SLOPE_STATUS_error;
    *out = entry_of(unit, entry);
    return SLOPE_STATUS_ok;
}

/* Those that are not generic; if there are no others, that is told of the first. */
SlopeStatus driver_all_entries(SlopeProgram *program) {
    Unit *unit = program->unit;
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    if (!is_block_in_order(program)) return SLOPE_STATUS_misuse;
    const Decls marked = find_entries(unit, "main").marked;
    int made = 0;
    for (int i = 0; i < marked.count; i++)
        if (!unit_is_generic(marked.at[i])) entry_of(unit, marked.at[i]), made++;
    if (made || marked.count == 0) return SLOPE_STATUS_ok;
    report_generic_entry(program, marked.at[0]);
    return SLOPE_STATUS_misuse;
}

/* An entry point of that name, or any function that the expression names. */
SlopeStatus driver_entry_or_function(SlopeProgram *program, const char *expression, Func **out) {
    Unit *unit = program->unit;
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    const Decls named = find_entries(unit, expression).named;
    if (named.count && (named.at[0]->flags & DECL_ENTRY)) return driver_find_entry(program, expression, out);
    CheckedFunction found;
    status = driver_find_declaration(program, expression, &found);
    if (status != SLOPE_STATUS_ok) return status;
    return !found.nmodes && (found.decl->flags & DECL_ENTRY)
               ? find_entry_of_expression(program, expression, out)
               : driver_find_function(program, expression, out);
}

/* ---- uniforms */

static bool is_uniform(const Decl *decl) {
    uint32_t others = MODIFIER_static | MODIFIER_groupshared;
    return decl->kind == DECL_var && !(decl->modifiers & others) && decl->type &&
           !(decl->type->flags & TYPE_HAS_ERROR);
}

typedef struct Found {
    Decl *decl;
    Name full; /* with its namespaces and, if another module declares it, that */
} Found;

typedef VEC(Found) FoundVec;

static Name name_inside(SlopeProgram *program, Name outer, Name name) {
    if (!outer || !name) return name ? name : outer;
    return name_from(&program->names, format_text(&program->arena, "%s.%s", outer->text, name->text));
}

static void find_uniforms(SlopeProgram *program, Decl *decl, Name space, FoundVec *out) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind == DECL_buffer_block) find_uniforms(program, member, space, out);
        else if (member->kind == DECL_namespace)
            find_uniforms(program, member, name_inside(program, space, member->name), out);
        else if (is_uniform(member))
            vec_push(&program->arena, out, ((Found){member, name_inside(program, space, member->name)}));
    }
}

/* By its own name, if that tells which it is, or no other has it as its full name. */
static Name name_outside(const FoundVec *all, const Found *found) {
    Name name = found->decl->name;
    for (int i = 0; i < all->count && found->full != name; i++)
        if (all->at[i].decl != found->decl && all->at[i].decl->name == name) return found->full;
    return name;
}

/* What another module says that it is called, else its file. */
static Name module_space(Unit *unit, Decl *module) {
    const Sema *sema = decl_sema(unit->checker, module);
    if (module == unit->module || sema->module_name || !sema->file)
        return module == unit->module ? NULL : sema->module_name;
    const char *slash = strrchr(sema->file->text, '/'), *name = slash ? slash + 1 : sema->file->text;
    SlopeProgram *program = unit->program;
    return name_from(&program->names, format_text(&program->arena, "%.*s", (int)strcspn(name, "."), name));
}

SlopeStatus driver_list_uniforms(SlopeProgram *program) {
    Unit *unit = program->unit;
    SlopeStatus status = unit_check(unit);
    if (status != SLOPE_STATUS_ok) return status;
    const DeclVec *modules = check_modules(unit->checker);
    FoundVec all = {0};
    for (int i = 0; i < modules->count; i++) {
        Decl *module = modules->at[i];
        if (module != check_prelude(unit->checker))
            find_uniforms(program, module, module_space(unit, module), &all);
    }
    for (int i = 0; i < all.count; i++)
        driver_add_uniform(program, name_outside(&all, &all.at[i]), all.at[i].full,
                           lower_uniform(unit->lowerer, all.at[i].decl));
    return SLOPE_STATUS_ok;
}

/* ---- which uniforms a kernel uses */

typedef struct Use {
    Arena *arena;
    const Global *wanted;
    Map seen; /* Func -> itself */
    VEC(Func *) open;
    bool found;
} Use;

static void look_into(Use *use, Func *func) {
    if (!func || map_get(&use->seen, PTR_KEY(func))) return;
    map_put(use->arena, &use->seen, PTR_KEY(func), func);
    vec_push(use->arena, &use->open, func);
}

static void look_at(void *user, Inst *inst) {
    Use *use = user;
    if (inst->op == OP_call) look_into(use, inst->callee);
    if (inst->op != OP_global) return;
    use->found |= inst->global == use->wanted;
    look_into(use, inst->global->init);
}

const char *driver_built_name(SlopeProgram *program, const char *name) {
    return emit_outer_name(&program->arena, name);
}

bool driver_mentions(SlopeKernel *kernel, const Global *global) {
    Use use = {.arena = &kernel->program->arena, .wanted = global};
    if (!kernel->func->body) unit_derive(kernel->program->unit, NULL); /* nobody has asked for its code yet */
    look_into(&use, kernel->func);
    for (int i = 0; i < use.open.count && !use.found; i++)
        if (use.open.at[i]->body) region_walk(use.open.at[i]->body, look_at, &use);
    return use.found;
}
