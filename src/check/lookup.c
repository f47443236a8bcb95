/* Finding declarations by name: from a place outwards, in a namespace, in a type.
 *
 * Functions of all enclosing scopes are candidates together; anything else hides what is farther out. Members
 * of a type come from its declaration, its base struct, its extensions and, last, from the interfaces it
 * conforms to. */
#include "check/checker.h"

void candidates_push(Checker *c, Candidates *list, Candidate candidate) {
    if (list->count == list->room)
        list->at = vec_grow(c->arena, list->at, list->count, &list->room, sizeof *list->at);
    list->at[list->count++] = candidate;
}

/* Unless it is among the first `known` of the list: several that are added have no two alike among them. */
static void add_unless_known(Checker *c, Candidates *list, Candidate candidate, int known) {
    for (int i = 0; i < known; i++)
        if (list->at[i].decl == candidate.decl && list->at[i].subst == candidate.subst) return;
    candidates_push(c, list, candidate);
}

void candidates_add(Checker *c, Candidates *list, Candidate candidate) {
    add_unless_known(c, list, candidate, list->count);
}

static void add_all(Checker *c, Candidates *out, const DeclVec *found, const Subst *subst, int distance) {
    int known = out->count;
    for (int i = 0; found && i < found->count; i++)
        add_unless_known(c, out, (Candidate){.decl = found->at[i], .subst = subst, .distance = distance},
                         known);
}

/* ---- in types */

void type_vec_add_once(Checker *c, TypeVec *types, const Type *type) {
    for (int i = 0; i < types->count; i++)
        if (types->at[i] == type) return;
    vec_push(c->arena, types, type);
}

/* In an interface, else in those that it inherits: each once, by its shortest way. A redeclared requirement
 * hides the inherited one. */
static void from_interface(Checker *c, const Type *interface, const Type *self, Name name, int distance,
                           Candidates *out) {
    TypeVec queue = {0};
    const Type *now = interface;
    for (int i = 0, end = 0; now; i++) {
        Decl *decl = (Decl *)(uintptr_t)now->decl;
        const Subst *subst = interface_subst(c, now, self);
        DeclVec *found = scope_find(scope_inside(c, decl), name);
        add_all(c, out, found, subst, distance);
        ensure_bases(c, decl);
        const Sema *sema = decl_sema(c, decl);
        for (int k = 0; !found && k < sema->interfaces.count; k++)
            type_vec_add_once(c, &queue, check_subst(c, sema->interfaces.at[k], subst));
        if (i == end) {
            distance++;
            end = queue.count;
        }
        now = i < queue.count ? queue.at[i] : NULL;
    }
}

/* How far a member of an extension is from the type: extensions of that very type are nearest, those of any
 * type farthest. */
static int extension_distance(Checker *c, Decl *extension) {
    if (generic_count(extension) == 0) return 1;
    return decl_sema(c, extension)->target->kind == TYPE_param ? 3 : 2;
}

static void from_extensions(Checker *c, const Type *type, Name name, int distance, Candidates *out) {
    const DeclVec *lists[2] = {extensions_of(c, type_head(c, type)), extensions_of(c, NULL)};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; lists[k] && i < lists[k]->count; i++) {
            Decl *extension = lists[k]->at[i];
            DeclVec *found = scope_find(scope_inside(c, extension), name);
            const Subst *subst;
            if (found && infer_extension(c, extension, type, &subst))
                add_all(c, out, found, subst, distance + extension_distance(c, extension));
        }
    }
}

static void from_declaration(Checker *c, const Type *type, Name name, int distance, Candidates *out) {
    Decl *decl = (Decl *)(uintptr_t)type_head(c, type);
    if (!decl || type->kind == TYPE_interface) return;
    const DeclVec *found = scope_find(scope_inside(c, decl), name);
    if (found) add_all(c, out, found, subst_of_type(c, type), distance);
    const Type *base = out->count == 0 ? check_base(c, type) : NULL;
    if (base) from_declaration(c, base, name, distance, out);
}

bool lookup_own_member(Checker *c, const Type *type, Name name, Candidates *out) {
    int before = out->count;
    from_declaration(c, type, name, 0, out);
    if (type->kind != TYPE_interface) from_extensions(c, type, name, 0, out);
    while (out->count == before && (type = check_base(c, type))) from_extensions(c, type, name, 0, out);
    return out->count > before;
}

static void from_bounds(Checker *c, const Type *type, Name name, Candidates *out) {
    TypeVec bounds = {0};
    bounds_of(c, type, &bounds);
    for (int i = 0; i < bounds.count; i++) from_interface(c, bounds.at[i], type, name, 2, out);
}

/* Does an interface, or one that it inherits, have such a member? */
static bool declares(Checker *c, const Type *interface, Name name) {
    const TypeVec *all = interface_with_inherited(c, interface);
    for (int i = 0; i < all->count; i++)
        if (scope_find(scope_inside(c, (Decl *)(uintptr_t)all->at[i]->decl), name)) return true;
    return false;
}

/* Kept once all of them know what they inherit. */
static uint64_t inherited_bits(Checker *c, Sema *sema) {
    if (sema->inherited_known) return sema->inherited_bits;
    bool known = sema->bases_done;
    uint64_t bits = 0;
    for (int i = 0; i < sema->interfaces.count; i++) {
        const TypeVec *all = interface_with_inherited(c, sema->interfaces.at[i]);
        known &= map_has(&c->inherited, PTR_KEY(sema->interfaces.at[i]));
        for (int k = 0; k < all->count; k++)
            bits |= scope_inside(c, (Decl *)(uintptr_t)all->at[k]->decl)->bits;
    }
    sema->inherited_known = known;
    return sema->inherited_bits = bits;
}

/* From the interfaces that a struct or an extension names: of `type`, from which `self` may inherit. Most
 * names are no members at all, and this is quickly seen. */
static void from_named(Checker *c, Decl *source, const Type *type, const Type *self, Name name,
                       Candidates *out) {
    const Subst *subst = NULL;
    bool fits = false;
    ensure_bases(c, source);
    Sema *sema = decl_sema(c, source);
    if (!(inherited_bits(c, sema) & name_bit(name))) return;
    for (int i = 0; i < sema->interfaces.count; i++) {
        if (!declares(c, sema->interfaces.at[i], name)) continue;
        if (!fits && source->kind == DECL_extension && !infer_extension(c, source, type, &subst)) return;
        if (!fits && source->kind != DECL_extension) subst = subst_of_type(c, type);
        fits = true;
        from_interface(c, check_subst(c, sema->interfaces.at[i], subst), self, name, 3, out);
    }
}

/* What a concrete type inherits from the interfaces it names, or its base does: default implementations and
 * static constants. */
static void from_conformances(Checker *c, const Type *self, Name name, Candidates *out) {
    int before = out->count;
    for (const Type *type = self; type && out->count == before; type = check_base(c, type)) {
        Decl *decl = (Decl *)(uintptr_t)type_head(c, type);
        if (!decl) return;
        from_named(c, decl, type, self, name, out);
        const DeclVec *lists[2] = {extensions_of(c, decl), extensions_of(c, NULL)};
        for (int k = 0; k < 2; k++)
            for (int i = 0; lists[k] && i < lists[k]->count; i++)
                if (lists[k]->at[i]->bases.count) from_named(c, lists[k]->at[i], type, self, name, out);
    }
}

static int farthest(const Candidates *list) {
    int distance = 0;
    for (int i = 0; i < list->count; i++)
        if (list->at[i].distance > distance) distance = list->at[i].distance;
    return distance;
}

bool lookup_member(Checker *c, const Type *type, Name name, Candidates *out) {
    int before = out->count;
    if (type->kind == TYPE_interface) {
        from_interface(c, type, type, name, 2, out);
        if (out->count == before) from_extensions(c, type, name, 0, out);
        return out->count > before;
    }
    if (type_is_abstract(type)) {
        from_bounds(c, type, name, out);
        from_extensions(c, type, name, farthest(out), out); /* what is known to be there comes first */
        return out->count > before;
    }
    if (!lookup_own_member(c, type, name, out)) from_conformances(c, type, name, out);
    if (out->count == before && (type->flags & TYPE_HAS_PARAM)) from_bounds(c, type, name, out);
    bool native = type->kind == TYPE_array || type->kind == TYPE_pair || type->kind == TYPE_tuple ||
                  type->kind == TYPE_optional || type->kind == TYPE_matrix;
    if (out->count == before && native && is_differentiable_type(c, type)) /* without saying so */
        from_interface(c, interface_named(c, c->known.IDifferentiable), type, name, 2, out);
    return out->count > before;
}

/* ---- in namespaces and modules */

static void from_space(Checker *c, Decl *space, Name name, const Decl *from, int distance, Candidates *out) {
    DeclVec *found = scope_find(scope_inside(c, space), name);
    int known = out->count;
    for (int i = 0; found && i < found->count; i++)
        if (decl_visible_from(c, found->at[i], from))
            add_unless_known(c, out, (Candidate){.decl = found->at[i], .distance = distance}, known);
}

/* Functions overload, namespaces are one wherever they are opened; anything else hides. */
static bool may_join(const Candidates *found) {
    return found->count == 0 || decl_is_function(found->at[0].decl) ||
           found->at[0].decl->kind == DECL_namespace;
}

/* With what it uses itself, and so on: namespaces may use each other in a circle. */
static void from_space_and_usings(Checker *c, Decl *space, Name name, const Decl *from, int distance,
                                  Map *seen, Candidates *out) {
    from_space(c, space, name, from, distance, out);
    const DeclVec *usings = &decl_sema(c, space)->usings;
    if (usings->count == 0 || map_has(seen, PTR_KEY(space))) return;
    map_put(c->arena, seen, PTR_KEY(space), space);
    for (int i = 0; i < usings->count && may_join(out); i++)
        from_space_and_usings(c, usings->at[i], name, from, distance, seen, out);
}

bool lookup_in_space(Checker *c, Decl *space, Name name, Candidates *out) {
    int before = out->count;
    from_space_and_usings(c, space, name, NULL, 0, &(Map){0}, out);
    return out->count > before;
}

static void from_imports(Checker *c, Decl *module, Name name, int distance, Candidates *out) {
    Sema *sema = decl_sema(c, module);
    for (int i = 0; i < sema->imports.count; i++)
        from_space(c, sema->imports.at[i], name, module, distance, out);
}

static void from_usings(Checker *c, const DeclVec *usings, Name name, const Decl *from, int distance,
                        Candidates *out) {
    for (int i = 0; i < usings->count; i++)
        from_space_and_usings(c, usings->at[i], name, from, distance, &(Map){0}, out);
}

/* ---- from a place outwards */

static bool is_member_scope(const Scope *scope) {
    if (!scope->decl || scope->is_generics || scope->is_params) return false;
    switch ((DeclKind)scope->decl->kind) {
    case DECL_struct:
    case DECL_enum:
    case DECL_interface:
    case DECL_extension: return true;
    default: return false;
    }
}

static Expr *implicit_this(Env *env) {
    Expr *this_expr = expr_new(env->c->arena, EXPR_this, 0);
    this_expr->flags |= EXPR_IMPLICIT;
    return this_expr;
}

/* In a scope whose names are its own. */
static void from_names(Checker *c, Scope *scope, Name name, int distance, Candidates *out) {
    const DeclVec *found = scope_find(scope, name);
    if (found) add_all(c, out, found, subst_identity(c, scope->decl), distance);
}

/* Members named without an object belong to `this`. Static members and types need none. Bases and constraints
 * of a declaration see what is written in it, not what it inherits: that is what they decide. */
static void from_type_scope(Env *env, Scope *scope, Name name, int distance, Candidates *out) {
    if (env->head == scope->decl) {
        from_names(env->c, scope, name, distance, out);
        return;
    }
    Candidates members = {.name = name};
    const Type *self = this_type_of(env->c, scope->decl);
    lookup_member(env->c, self, name, &members);
    for (int i = 0; i < members.count; i++) {
        Candidate found = members.at[i];
        found.distance += distance;
        if (!decl_is_static(found.decl) && decl_type_around(found.decl)) {
            found.base_type = self;
            if (env->this_type) found.base = implicit_this(env);
        }
        candidates_add(env->c, out, found);
    }
}

/* What imported modules call so, but is of another kind than the module's own, is hidden. */
static void keep_joining(Candidates *list, int own) {
    int kept = own;
    for (int i = own; i < list->count; i++)
        if (list->at[i].decl->kind == list->at[0].decl->kind) list->at[kept++] = list->at[i];
    list->count = kept;
}

static void from_container(Env *env, const Scope *scope, Name name, int distance, Candidates *out) {
    Checker *c = env->c;
    Decl *decl = scope->decl;
    from_space(c, decl, name, env->decl, distance, out);
    Sema *sema = decl_sema(c, decl);
    if (may_join(out)) from_usings(c, &sema->usings, name, env->decl, distance, out);
    if (decl->kind != DECL_module) return;
    if (!may_join(out)) return;
    int own = out->count;
    from_imports(c, decl, name, distance + 100, out);
    if (own) keep_joining(out, own);
}

static void from_one_scope(Env *env, Scope *scope, Name name, int distance, Candidates *out) {
    if (is_member_scope(scope)) from_type_scope(env, scope, name, distance, out);
    else if (scope->decl && !scope->is_generics && !scope->is_params)
        from_container(env, scope, name, distance, out);
    else {
        from_names(env->c, scope, name, distance, out);
        from_usings(env->c, &scope->usings, name, env->decl, distance, out);
    }
}

/* The type of an alias is sought outside of it: `typedef Differential Differential;` names the one around. */
static void forget_alias(const Decl *alias, Candidates *list) {
    int kept = 0;
    for (int i = 0; i < list->count; i++)
        if (list->at[i].decl != alias) list->at[kept++] = list->at[i];
    list->count = kept;
}

static bool all_functions(const Candidates *list) {
    for (int i = 0; i < list->count; i++)
        if (!decl_is_function(list->at[i].decl)) return false;
    return true;
}

/* Keeps what was found in scopes farther in when something farther out is no function. */
static void add_outer(Checker *c, Candidates *out, const Candidates *found) {
    if (out->count && !all_functions(found)) return;
    int known = out->count;
    for (int i = 0; i < found->count; i++) add_unless_known(c, out, found->at[i], known);
}

bool lookup_local(Env *env, Name name, Candidate *out) {
    int distance = 0;
    for (Scope *scope = env->scope; scope && (!scope->decl || scope->is_params);
         scope = scope->outer, distance += 10) {
        const DeclVec *found = scope_find(scope, name);
        if (scope->usings.count || (found && (found->count > 1 || found->at[0]->kind != DECL_var)))
            return false;
        if (!found) continue;
        *out = (Candidate){
            .decl = found->at[0], .subst = subst_identity(env->c, scope->decl), .distance = distance};
        return true;
    }
    return false;
}

bool lookup_name(Env *env, Name name, Candidates *out) {
    Checker *c = env->c;
    out->name = name;
    int distance = 0;
    for (Scope *scope = env->scope; scope; scope = scope->outer, distance += 10) {
        if (out->count == 0) from_one_scope(env, scope, name, distance, out);
        else {
            Candidates found = {.name = name};
            from_one_scope(env, scope, name, distance, &found);
            add_outer(c, out, &found);
        }
        if (env->decl && env->decl->kind == DECL_alias) forget_alias(env->decl, out);
        if (out->count && !all_functions(out)) return true;
    }
    bool hidden = out->count && c->prelude && library_adds(c, name);
    if (c->prelude && decl_module(env->decl) != c->prelude && !hidden) {
        Candidates found = {.name = name};
        from_space(c, c->prelude, name, NULL, distance + 1000, &found);
        add_outer(c, out, &found);
    }
    return out->count > 0;
}

/* ---- messages */

typedef VEC(Name) NameVec;

static void collect_name(Checker *c, Name name, NameVec *out) {
    bool internal = str_starts((Str){name->text, name->len}, "__") ||
                    str_starts((Str){name->text, name->len}, "operator");
    if (!internal) vec_push(c->arena, out, name);
}

static void collect_scope(Checker *c, const Scope *scope, NameVec *out) {
    Name name;
    if (scope->library)
        for (int i = 0; (name = library_name_at(c, i)); i++) collect_name(c, name, out);
    else
        for (int i = 0; i < scope->names.count; i++)
            collect_name(c, (Name)(uintptr_t)scope->names.entries[i].key, out);
}

static void collect_visible(Env *env, Decl *module, NameVec *out) {
    const Scope *scope = scope_inside(env->c, module);
    for (int i = 0; i < scope->names.count; i++) {
        const DeclVec *list = scope->names.entries[i].value;
        bool names_module = list->at[0]->kind == DECL_module_name || list->at[0]->kind == DECL_import ||
                            list->at[0]->kind == DECL_include;
        if (!names_module && decl_visible_from(env->c, list->at[0], env->decl))
            vec_push(env->c->arena, out, (Name)(uintptr_t)scope->names.entries[i].key);
    }
}

void note_instead(Checker *c, Name name, const char *meant) {
    note(c, DIAG_did_you_mean, 0, meant);
    diag_fix_word(c->diags, name->text, meant);
}

static bool note_nearest(Checker *c, Name name, const NameVec *names) {
    Name nearest = diag_nearest(name, names->at, names->count);
    if (nearest) note_instead(c, name, nearest->text);
    return nearest != NULL;
}

enum { MAX_SEARCHES = 200 };

/* What might be meant is looked for among all names that can be seen: not where nobody listens, and not for
 * each of very many. */
static bool is_worth_a_search(Checker *c) {
    const Diags *diags = c->diags;
    bool listens = !diags->muted && (!diags->limit || diags->errors <= diags->limit);
    return listens && c->searches++ < MAX_SEARCHES;
}

/* A local variable of that name somewhere in the body, though not where it could be seen. */
const Decl *find_local_decl(const Stmt *stmt, Name name) {
    if (!stmt) return NULL;
    for (int i = 0; i < stmt->decls.count; i++)
        if (stmt->decls.at[i]->name == name) return stmt->decls.at[i];
    const Stmt *parts[] = {stmt->init, stmt->then, stmt->other};
    for (int i = 0; i < 3; i++) {
        const Decl *found = find_local_decl(parts[i], name);
        if (found) return found;
    }
    for (int i = 0; i < stmt->body.count; i++) {
        const Decl *found = find_local_decl(stmt->body.at[i], name);
        if (found) return found;
    }
    return NULL;
}

static void add_shapes(Checker *c, NameVec *names) {
    static const char *const scalars[] = {"float", "int", "uint", "half", "double", "bool"};
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
        for (int n = 2; n <= 4; n++) {
            vec_push(c->arena, names, name_from(c->names, format_text(c->arena, "%s%d", scalars[i], n)));
            for (int m = 2; m <= 4; m++)
                vec_push(c->arena, names,
                         name_from(c->names, format_text(c->arena, "%s%dx%d", scalars[i], n, m)));
        }
}

/* A declaration of an imported module that has the name, but does not show it. */
static const Decl *find_invisible(Env *env, Name name) {
    Checker *c = env->c;
    const Sema *module = decl_sema(c, decl_module(env->decl));
    for (int i = 0; i < module->imports.count; i++) {
        const DeclVec *found = scope_find(scope_inside(c, module->imports.at[i]), name);
        if (found && !decl_visible_from(c, found->at[0], env->decl)) return found->at[0];
    }
    return NULL;
}

/* A case of an enum, named without it. */
static bool note_enum_case(Checker *c, const Decl *decl, Name name) {
    for (int i = 0; i < decl->members.count; i++) {
        const Decl *member = decl->members.at[i];
        bool outer =
            member->kind == DECL_namespace || member->kind == DECL_struct || member->kind == DECL_enum;
        if (!outer) continue;
        if (note_enum_case(c, member, name)) return true;
        for (int k = 0; member->kind == DECL_enum && member->name && k < member->members.count; k++)
            if (member->members.at[k]->name == name) {
                note_instead(c, name, format_text(c->arena, "%s.%s", member->name->text, name->text));
                return true;
            }
    }
    return false;
}

/* What a name of Slang's library belongs to that Slope does not have; NULL: it is no such name. */
static const char *kind_elsewhere(Name name) {
    static const struct {
        const char *name, *kind;
    } rows[] = {
#define ELSEWHERE(text, of) {text, of},
#include "check/elsewhere.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = strlen(rows[i].name);
        bool family = rows[i].name[n - 1] == '*';
        if (family ? strncmp(rows[i].name, name->text, n - 1) == 0 : strcmp(rows[i].name, name->text) == 0)
            return rows[i].kind;
    }
    return NULL;
}

/* A name from another language: what it is called here. */
static bool note_foreign(Checker *c, Name name) {
    static const char *const others[][2] = {
#define OTHER_NAME(written, meant) {written, meant},
#define USAGE(function, how)
#include "check/hints.def"
#undef OTHER_NAME
#undef USAGE
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name->text, others[i][0]) == 0) {
            note_instead(c, name, others[i][1]);
            return true;
        }
    return false;
}

/* Has the function been told that it uses this name? Once is enough. */
static bool is_known_unknown(Env *env, Name name) {
    Checker *c = env->c;
    if (c->unknown_in != env->decl) c->unknown_names = (Map){0};
    c->unknown_in = env->decl;
    if (map_get(&c->unknown_names, PTR_KEY(name))) return true;
    map_put(c->arena, &c->unknown_names, PTR_KEY(name), (void *)(uintptr_t)name);
    return false;
}

void report_not_visible(Checker *c, Loc loc, const Decl *decl) {
    const char *name = decl->name ? decl->name->text : "[]";
    report(c, DIAG_not_visible, loc, name);
    note(c, DIAG_note_declared_here, decl->loc, name);
}

void report_unknown_name(Env *env, Expr *expr, Name name) {
    Checker *c = env->c;
    if (!c->diags->muted && is_known_unknown(env, name)) return;
    if (!is_worth_a_search(c)) {
        report_expr(c, expr, DIAG_unknown_name, name->text);
        return;
    }
    const Decl *invisible = find_invisible(env, name);
    if (invisible) {
        report_expr(c, expr, DIAG_not_visible, name->text);
        note(c, DIAG_note_declared_here, invisible->loc, name->text);
        return;
    }
    const Decl *hidden = env->decl->kind == DECL_func ? find_local_decl(env->decl->body, name) : NULL;
    if (hidden && hidden->loc > expr->loc) {
        report_expr(c, expr, DIAG_used_before_declared, name->text);
        note(c, DIAG_note_declared_here, hidden->loc, name->text);
        return;
    }
    report_expr(c, expr, DIAG_unknown_name, name->text);
    if (hidden) {
        bool inside = hidden->kind == DECL_var &&
                      hidden->state != STATE_body; /* it is being checked: this is its initialiser */
        note(c, inside ? DIAG_note_own_initialiser : DIAG_note_block_ended, hidden->loc, name->text);
        return;
    }
    const char *kind = kind_elsewhere(name);
    if (kind) {
        note(c, DIAG_note_elsewhere, 0, name->text, kind);
        return;
    }
    if (strcmp(name->text, "goto") == 0) {
        note(c, DIAG_note_no_goto, 0);
        return;
    }
    if (strcmp(name->text, "auto") == 0) {
        note(c, DIAG_note_let_or_var, 0);
        return;
    }
    if (note_foreign(c, name)) return;
    NameVec names = {0};
    for (Scope *scope = env->scope; scope; scope = scope->outer) collect_scope(c, scope, &names);
    Sema *module = decl_sema(c, decl_module(env->decl));
    for (int i = 0; i < module->imports.count; i++) collect_visible(env, module->imports.at[i], &names);
    if (c->prelude) collect_scope(c, scope_inside(c, c->prelude), &names);
    add_shapes(c, &names);
    if (note_enum_case(c, decl_module(env->decl), name) || note_nearest(c, name, &names)) return;
    Name word = syntax_statement_word(c->names, name);
    if (word) note_instead(c, name, word->text);
}

void report_unknown_in_space(Env *env, Loc loc, const Expr *space, Name name) {
    Checker *c = env->c;
    report(c, DIAG_unknown_in_space, loc, space->name->text, name->text);
    if (!is_worth_a_search(c)) return;
    NameVec names = {0};
    for (int i = 0; i < space->candidates->count; i++)
        collect_scope(c, scope_inside(c, space->candidates->at[i].decl), &names);
    note_nearest(c, name, &names);
}

/* Does the name look like a swizzle? */
static bool is_all_of(Name name, const char *letters) {
    for (int i = 0; i < name->len; i++)
        if (!strchr(letters, name->text[i])) return false;
    return true;
}

static bool note_components(Checker *c, const Type *type, Name name) {
    static const char *const components[] = {"x", "x and y", "x, y and z", "x, y, z and w"};
    bool numeric = type_is_scalar(type) || type->kind == TYPE_vector;
    int64_t rows, columns;
    if (numeric && name->len > 4 && is_all_of(name, "xyzwrgba")) note(c, DIAG_note_swizzle_length, 0);
    else if (numeric && is_all_of(name, "xyzwrgba") && type_count(type) >= 1 && type_count(type) <= 4)
        note(c, DIAG_note_components, 0, components[type_count(type) - 1]);
    else if (type->kind == TYPE_matrix && is_all_of(name, "_m0123456789") &&
             type_is_number(type->args[1], &rows) && type_is_number(type->args[2], &columns))
        note(c, DIAG_note_elements, 0, (int)rows - 1, (int)columns - 1, (int)rows, (int)columns);
    else return false;
    return true;
}

/* A field of the struct that its Differential was made for, without a counterpart there. */
static bool note_not_in_differential(Checker *c, const Type *type, Name name) {
    const Decl *made = type->kind == TYPE_struct ? type->decl : NULL;
    if (!made || made->name != c->known.Differential || !(made->modifiers & MODIFIER_synthesized))
        return false;
    const DeclVec *found = scope_find(scope_inside(c, made->parent), name);
    Decl *field = found ? found->at[0] : NULL;
    if (!field || field->kind != DECL_var || field->flavour != VAR_field) return false;
    const char *owner = made->parent->name->text, *of = type_str(c, decl_value_type(c, field));
    if (check_is_no_diff_field(field)) note(c, DIAG_note_no_diff_field, field->loc, name->text, owner);
    else note(c, DIAG_note_no_derivative_field, field->loc, name->text, owner, of);
    return true;
}

void report_unknown_member(Env *env, Loc loc, const Type *type, Name name) {
    Checker *c = env->c;
    if (has_error(type) || map_has(&c->refused_members, PTR_KEY(name)) || is_half_known(c, type)) return;
    report(c, DIAG_unknown_member, loc, type_str(c, type), name->text);
    if (!is_worth_a_search(c)) return;
    Candidates inside = {.name = name};
    if (type->kind == TYPE_optional && lookup_member(c, type->args[0], name, &inside)) {
        note(c, DIAG_note_optional_value, 0);
        return;
    }
    if (note_not_in_differential(c, type, name)) return;
    NameVec names = {0};
    Decl *decl = (Decl *)(uintptr_t)type_head(c, type);
    if (decl) collect_scope(c, scope_inside(c, decl), &names);
    TypeVec bounds = {0};
    if (type_is_abstract(type)) bounds_of(c, type, &bounds);
    for (int i = 0; i < bounds.count; i++)
        collect_scope(c, scope_inside(c, (Decl *)(uintptr_t)bounds.at[i]->decl), &names);
    if (note_components(c, type, name) || note_nearest(c, name, &names)) return;
    if (type_is_abstract(type)) suggest_for_member(env, type, name);
}
