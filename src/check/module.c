/* Modules: loading files, import, __include, namespaces, visibility mode. */
#include "check/checker.h"

/* ---- names to paths */

static Str replace_char(Checker *c, Str s, char from, char to) {
    char *copy = arena_copy(c->arena, s.at, (size_t)s.len);
    for (int i = 0; i < s.len; i++)
        if (copy[i] == from) copy[i] = to;
    return (Str){copy, s.len};
}

static Str with_extension(Checker *c, Str path) {
    if (str_ends(path, ".slang") || str_ends(path, ".hlsl") || str_ends(path, ".slangh")) return path;
    return str_of(format_text(c->arena, "%.*s.slang", STR_ARG(path)));
}

static Str import_path(Checker *c, const Decl *decl) {
    if (!decl->path_parts) return decl->path;
    Text text = {.arena = c->arena};
    for (int i = 0; i < decl->npath_parts; i++)
        text_printf(&text, "%s%s", i ? "/" : "", decl->path_parts[i]->text);
    return text_str(&text);
}

/* `a/./b/../c` is `a/c`: one file, one name. */
static Name plain_path(Checker *c, Name path) {
    VEC(Str) parts = {0};
    for (const char *at = path->text; *at;) {
        const char *end = strchr(at, '/');
        Str part = {at, end ? (int)(end - at) : (int)strlen(at)}, last = {0};
        if (parts.count) last = parts.at[parts.count - 1];
        if (str_eq(part, str_of("..")) && last.len && !str_eq(last, str_of(".."))) parts.count--;
        else if (!str_eq(part, str_of("."))) vec_push(c->arena, &parts, part);
        at += part.len + (end ? 1 : 0);
    }
    Text text = {.arena = c->arena};
    for (int i = 0; i < parts.count; i++) text_printf(&text, "%s%.*s", i ? "/" : "", STR_ARG(parts.at[i]));
    return name_of(c->names, text_str(&text));
}

/* The file that a declaration stands in: what it names is looked for beside it. */
static Name file_of(Checker *c, const Decl *decl) {
    const SourceFile *file = source_of(c->sources, decl->loc);
    return file ? file->path : NULL;
}

static bool find_file(Checker *c, Str path, Name from, Str *text, Name *found) {
    if (c->config.find_module(c->config.user, with_extension(c, path), from, text, found)) return true;
    Str dashed = replace_char(c, path, '_', '-');
    if (c->config.find_module(c->config.user, with_extension(c, dashed), from, text, found)) return true;
    return c->config.find_module(c->config.user, path, from, text, found);
}

/* ---- joining what belongs together */

/* Namespaces reopen: the members of a second one of the same name move to the first. */
static void merge_namespaces(Checker *c, Decl *decl) {
    DeclVec kept = {0};
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i], *first = NULL;
        for (int k = 0; member->kind == DECL_namespace && k < kept.count && !first; k++)
            if (kept.at[k]->kind == DECL_namespace && kept.at[k]->name == member->name) first = kept.at[k];
        if (!first) {
            vec_push(c->arena, &kept, member);
            continue;
        }
        for (int k = 0; k < member->members.count; k++) {
            member->members.at[k]->parent = first;
            vec_push(c->arena, &first->members, member->members.at[k]);
        }
    }
    decl->members = kept;
    for (int i = 0; i < kept.count; i++)
        if (kept.at[i]->kind == DECL_namespace) merge_namespaces(c, kept.at[i]);
}

static bool spells_visibility(const Decl *decl) {
    if (decl->kind == DECL_module_name || decl->kind == DECL_include || decl->kind == DECL_implementing)
        return true;
    if (decl->modifiers & (MODIFIER_public | MODIFIER_internal | MODIFIER_private)) return true;
    for (int i = 0; i < decl->members.count; i++)
        if (spells_visibility(decl->members.at[i])) return true;
    return false;
}

static void adopt_members(Checker *c, Decl *module, Decl *part) {
    for (int i = 0; i < part->members.count; i++) {
        part->members.at[i]->parent = module;
        if (part->members.at[i]->kind == DECL_implementing) continue; /* that is what happens here */
        vec_push(c->arena, &module->members, part->members.at[i]);
    }
}

/* ---- loading */

static bool was_included(Checker *c, Sema *sema, Name path) {
    for (int i = 0; i < sema->parts.count; i++)
        if (sema->parts.at[i] == path) return true;
    vec_push(c->arena, &sema->parts, path);
    return false;
}

static const Decl *find_kind(const Decl *module, DeclKind kind) {
    for (int i = 0; i < module->members.count; i++)
        if (module->members.at[i]->kind == kind) return module->members.at[i];
    return NULL;
}

static void report_not_found(Checker *c, Str path, Loc loc) {
    const char *text = format_text(c->arena, "%.*s", STR_ARG(path));
    report(c, DIAG_module_not_found, loc, text);
    Str file = with_extension(c, path);
    note(c, DIAG_note_search_path, 0, format_text(c->arena, "%.*s", STR_ARG(file)));
}

/* A module, or a part of one. */
static void check_is_one(Checker *c, const Decl *file) {
    const Decl *name = find_kind(file, DECL_module_name), *part = find_kind(file, DECL_implementing);
    if (!name || !part) return;
    report(c, DIAG_module_and_part, part->loc, name->name->text, part->name->text);
    note(c, DIAG_note_declared_here, name->loc, name->name->text);
}

static Str library_text(Checker *c, const PreludeFile *file, Name *path) {
    *path = name_from(c->names, format_text(c->arena, "prelude/%s", file->name));
    return (Str){file->text, file->len};
}

static bool find_part(Checker *c, const Decl *module, const Decl *include, Str *text, Name *found) {
    Str path = import_path(c, include);
    const PreludeFile *file = module->flags & DECL_PRELUDE ? library_part(c, path) : NULL;
    if (!file)
        return find_file(c, path, file_of(c, include), text, found) ||
               find_file(c, path, module->sema->file, text, found);
    *text = library_text(c, file, found);
    return true;
}

static void include_part(Checker *c, Decl *module, Decl *include) {
    Sema *sema = decl_sema(c, module);
    Str text;
    Name found;
    if (!find_part(c, module, include, &text, &found)) {
        report_not_found(c, import_path(c, include), include->loc);
        return;
    }
    found = plain_path(c, found);
    if (was_included(c, sema, found)) return;
    Syntax *syntax = module->flags & DECL_PRELUDE ? c->library_syntax : c->config.syntax;
    Decl *part = syntax_parse(syntax, source_add(c->sources, found, text));
    check_is_one(c, part);
    const Decl *implementing = find_kind(part, DECL_implementing);
    const Decl *name = find_kind(module, DECL_module_name);
    if (!implementing) report(c, DIAG_part_not_implementing, include->loc, found->text);
    else if (name && name->name && implementing->name && name->name != implementing->name)
        report(c, DIAG_part_of_other, include->loc, found->text, implementing->name->text, name->name->text);
    adopt_members(c, module, part);
    for (int i = 0; i < part->members.count; i++)
        if (part->members.at[i]->kind == DECL_include) include_part(c, module, part->members.at[i]);
}

static void add_import(Checker *c, DeclVec *list, Decl *module) {
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == module) return;
    vec_push(c->arena, list, module);
}

static Decl *load_module(Checker *c, Str path, Name from, Loc loc);

static void import_module(Checker *c, Decl *module, Decl *decl) {
    Sema *sema = decl_sema(c, module);
    Decl *imported = load_module(c, import_path(c, decl), file_of(c, decl), decl->loc);
    if (!imported || imported == module) return;
    add_import(c, &sema->imports, imported);
    Sema *theirs = decl_sema(c, imported);
    for (int i = 0; i < theirs->exported.count; i++) add_import(c, &sema->imports, theirs->exported.at[i]);
    if (!(decl->modifiers & MODIFIER_exported)) return;
    add_import(c, &sema->exported, imported);
    for (int i = 0; i < theirs->exported.count; i++) add_import(c, &sema->exported, theirs->exported.at[i]);
}

void add_using(Env *env, DeclVec *usings, Decl *decl) {
    Checker *c = env->c;
    Expr *e = check_term(env, decl->target);
    if (e->kind == EXPR_error) return;
    if (e->kind != EXPR_space) {
        report(c, DIAG_using_needs_namespace, decl->loc);
        return;
    }
    for (int i = 0; i < e->candidates->count; i++) vec_push(c->arena, usings, e->candidates->at[i].decl);
}

static void add_inner_usings(Checker *c, Decl *space) {
    for (int i = 0; i < space->members.count; i++) {
        Decl *member = space->members.at[i];
        if (member->kind == DECL_namespace) add_inner_usings(c, member);
        if (member->kind != DECL_using) continue;
        Env env = {.c = c, .scope = scope_inside(c, space), .decl = space};
        add_using(&env, &decl_sema(c, space)->usings, member);
    }
}

/* One file, one name. */
static void check_one_name(Checker *c, const Decl *module) {
    const Decl *first = find_kind(module, DECL_module_name);
    for (int i = 0; i < module->members.count; i++) {
        const Decl *other = module->members.at[i];
        if (other->kind != DECL_module_name || other == first) continue;
        report(c, DIAG_module_named_twice, other->loc, first->name->text);
        note(c, DIAG_note_declared_here, first->loc, first->name->text);
    }
}

static bool imports_glsl(const Decl *module) {
    for (int i = 0; i < module->members.count; i++) {
        const Decl *member = module->members.at[i];
        if (member->kind == DECL_import && str_eq(member->path, STR("glsl"))) return true;
    }
    return false;
}

/* In GLSL `const float pi = 3.14;` is a constant, wherever it stands. */
static void make_glsl(Decl *module) {
    module->flags |= DECL_GLSL;
    for (int i = 0; i < module->members.count; i++) {
        Decl *member = module->members.at[i];
        bool constant = member->kind == DECL_var && (member->modifiers & MODIFIER_const) && member->init;
        if (constant) member->modifiers |= MODIFIER_static;
    }
}

static void finish_module(Checker *c, Decl *module) {
    Sema *sema = decl_sema(c, module);
    int own = module->members.count;
    check_one_name(c, module);
    check_is_one(c, module);
    if (imports_glsl(module)) make_glsl(module);
    for (int i = 0; i < own; i++)
        if (module->members.at[i]->kind == DECL_include) include_part(c, module, module->members.at[i]);
    if (spells_visibility(module)) module->flags |= DECL_MODERN;
    merge_namespaces(c, module);
    for (int i = 0; i < module->members.count; i++) module->members.at[i]->parent = module;
    const Decl *name = find_kind(module, DECL_module_name);
    if (name) sema->module_name = name->name;
    vec_push(c->arena, &c->modules, module);
    for (int i = 0; i < module->members.count; i++)
        if (module->members.at[i]->kind == DECL_import) import_module(c, module, module->members.at[i]);
    add_inner_usings(c, module);
}

Decl *module_named(Checker *c, Decl *from, Name name) {
    const Sema *sema = decl_sema(c, from);
    if (sema->module_name == name) return from;
    for (int i = 0; i < sema->imports.count; i++)
        if (decl_sema(c, sema->imports.at[i])->module_name == name) return sema->imports.at[i];
    return NULL;
}

static Decl *parse_module(Checker *c, Syntax *syntax, Name path, Str text, Loc loc) {
    Decl *module = syntax_parse(syntax, source_add(c->sources, path, text));
    if (syntax == c->library_syntax) module->flags |= DECL_PRELUDE;
    Name plain = plain_path(c, path);
    decl_sema(c, module)->file = path;
    map_put(c->arena, &c->by_path, PTR_KEY(plain), module);
    vec_push(c->arena, &c->loading, ((struct Loading){plain, loc}));
    finish_module(c, module);
    c->loading.count--;
    return module;
}

/* Is the file being loaded, so that this import closes a circle? Then all its steps are told. */
static bool report_cycle(Checker *c, Name path, Loc loc) {
    int first = 0;
    while (first < c->loading.count && c->loading.at[first].path != path) first++;
    if (first == c->loading.count) return false;
    report(c, DIAG_import_cycle, loc, path->text);
    for (int i = first; i + 1 < c->loading.count; i++)
        note(c, DIAG_note_import_step, c->loading.at[i + 1].loc, c->loading.at[i].path->text,
             c->loading.at[i + 1].path->text);
    if (first + 1 < c->loading.count)
        note(c, DIAG_note_import_step, loc, vec_last(&c->loading).path->text, path->text);
    return true;
}

/* Modules that come with other compilers, and are part of the library here. */
static bool is_in_library(Str path) { return str_eq(path, STR("slangpy")); }

/* One that the library has, or nothing. */
static Decl *load_library_module(Checker *c, Str path, Loc loc) {
    const PreludeFile *file = library_module(c, path);
    if (!file) {
        if (!is_in_library(path)) report_not_found(c, path, loc);
        return NULL;
    }
    Name found;
    Str text = library_text(c, file, &found);
    Decl *known = map_get(&c->by_path, PTR_KEY(found));
    return known ? known : parse_module(c, c->library_syntax, found, text, loc);
}

static Decl *load_module(Checker *c, Str path, Name from, Loc loc) {
    Str text;
    Name found;
    if (!find_file(c, path, from, &text, &found)) return load_library_module(c, path, loc);
    found = plain_path(c, found);
    if (report_cycle(c, found, loc)) return NULL;
    Decl *known = map_get(&c->by_path, PTR_KEY(found));
    if (known) return known;
    Decl *module = parse_module(c, c->config.syntax, found, text, loc);
    if (find_kind(module, DECL_implementing) && loc) report(c, DIAG_import_part, loc, found->text);
    return module;
}

void check_link(Checker *c, const char *path) { load_module(c, str_of(path), NULL, 0); }

Decl *check_load_text(Checker *c, Name path, Str text) {
    return parse_module(c, c->config.syntax, path, text, 0);
}
