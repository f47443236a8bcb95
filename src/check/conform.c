/* Conformance: which types conform to which interfaces, and by which of their members.
 *
 * A struct or extension declares conformances in its generic form; a query for a particular type finds the
 * declaration and the arguments that specialise it. How a requirement is met is found when first asked for,
 * see satisfy.c. IDifferentiable is met by built-in types without any declaration, see diff.c. */
#include "check/checker.h"

/* ---- extensions */

/* `extern` fields of an extension put their attributes on those of the struct. */
static void adopt_fields(Checker *c, Decl *extension, const Decl *head) {
    for (int i = 0; i < extension->members.count; i++) {
        const Decl *member = extension->members.at[i];
        Decl *field = decl_is_extern_field(member) ? field_named(head, member->name) : NULL;
        if (!field) continue;
        const Attribute *attribute = find_attribute(member, "DerivativeMember");
        if (attribute && attribute->args.count) {
            decl_sema(c, field)->derivative_member = attribute->args.at[0];
            decl_sema(c, field)->member_said_in = extension;
        }
        if (check_is_no_diff_field(member)) field->modifiers |= MODIFIER_no_diff;
    }
}

static void index_extension(Checker *c, Decl *decl) {
    if (decl->state == STATE_busy) {
        vec_push(c->arena, &c->unfinished_extensions, decl);
        return;
    }
    ensure_header(c, decl);
    const Type *target = decl_sema(c, decl)->target;
    if (has_error(target)) return;
    const Decl *head = target->kind == TYPE_param ? NULL : type_head(c, target);
    if (!head && target->kind != TYPE_param) return;
    if (head) adopt_fields(c, decl, head);
    uint64_t key = head ? PTR_KEY(head) : 1;
    DeclVec *list = map_get(&c->extensions, key);
    if (!list) {
        list = arena_new(c->arena, DeclVec);
        map_put(c->arena, &c->extensions, key, list);
    }
    vec_push(c->arena, list, decl);
}

/* Those of types with arguments come last: what the arguments conform to may be said by the others. */
static void index_among(Checker *c, const DeclVec *members, int from, bool with_arguments) {
    for (int i = from; i < members->count; i++) {
        Decl *member = members->at[i];
        bool extension = member->kind == DECL_extension;
        if (extension && with_arguments == (member->target && member->target->kind == EXPR_apply))
            index_extension(c, member);
        else if (member->kind == DECL_namespace) index_among(c, &member->members, 0, with_arguments);
    }
}

static void index_both(Checker *c, const DeclVec *members, int from) {
    index_among(c, members, from, false);
    index_among(c, members, from, true);
}

/* Looking at an extension may need more files of the library, which have some too. One that is just being
 * looked at, which is why we are here, comes next time. */
static void index_extensions(Checker *c) {
    if (c->unfinished_extensions.count) {
        DeclVec unfinished = c->unfinished_extensions;
        c->unfinished_extensions = (DeclVec){0};
        index_both(c, &unfinished, 0);
    }
    while (c->extension_modules < c->modules.count) {
        Decl *module = c->modules.at[c->extension_modules++];
        if (module == c->prelude) library_extensions(c);
        else index_both(c, &module->members, 0);
    }
    while (c->library_extensions_indexed < c->library_extensions.count) {
        int from = c->library_extensions_indexed;
        c->library_extensions_indexed = c->library_extensions.count;
        index_both(c, &c->library_extensions, from);
    }
}

DeclVec *extensions_of(Checker *c, const Decl *head) {
    index_extensions(c);
    return map_get(&c->extensions, head ? PTR_KEY(head) : 1);
}

/* ---- what a type declares */

typedef struct Closure {
    const Type *self;
    DeclaredVisitor visit;
    void *user;
    Map seen; /* inherited interfaces, each visited once: diamonds over diamonds would make many paths */
} Closure;

static bool visit_inherited(Checker *c, Closure *closure, const Declared *declared, int depth) {
    if (closure->visit(c, closure->user, declared)) return true;
    if (depth > 50) return false;
    Decl *interface = (Decl *)(uintptr_t)declared->interface->decl;
    ensure_bases(c, interface);
    Sema *sema = decl_sema(c, interface);
    const Subst *subst = interface_subst(c, declared->interface, closure->self);
    for (int i = 0; i < sema->interfaces.count; i++) {
        Declared inherited = *declared;
        inherited.interface = check_subst(c, sema->interfaces.at[i], subst);
        if (map_has(&closure->seen, PTR_KEY(inherited.interface))) continue;
        map_put(c->arena, &closure->seen, PTR_KEY(inherited.interface), c);
        if (visit_inherited(c, closure, &inherited, depth + 1)) return true;
    }
    return false;
}

bool visit_closure(Checker *c, const Declared *declared, const Type *self, DeclaredVisitor visit,
                   void *user) {
    Closure closure = {.self = self, .visit = visit, .user = user};
    return visit_inherited(c, &closure, declared, 0);
}

static bool visit_source(Checker *c, Decl *source, const Subst *subst, DeclaredVisitor visit, void *user) {
    ensure_bases(c, source);
    Sema *sema = decl_sema(c, source);
    for (int i = 0; i < sema->interfaces.count; i++) {
        Declared declared = {source, sema->interfaces.at[i], subst, false};
        if (visit_closure(c, &declared, this_type_of(c, source), visit, user)) return true;
    }
    return false;
}

Conformance *conformance_for(Checker *c, const Declared *declared) {
    Sema *sema = decl_sema(c, declared->source);
    for (int i = 0; i < sema->conformances.count; i++)
        if (sema->conformances.at[i]->interface == declared->interface) return sema->conformances.at[i];
    Conformance *conformance = arena_new(c->arena, Conformance);
    conformance->decl = declared->source;
    conformance->type = this_type_of(c, declared->source);
    conformance->interface = declared->interface;
    conformance->loc = declared->source->loc;
    vec_push(c->arena, &sema->conformances, conformance);
    return conformance;
}

/* `wanted`: only sources that lead to this interface declaration are looked into any further (NULL: all). */
static bool leads_to(Checker *c, Decl *source, const Decl *wanted);

static bool visit_extensions(Checker *c, const Decl *head, const Type *type, const Decl *wanted,
                             DeclaredVisitor visit, void *user) {
    const DeclVec *list = extensions_of(c, head);
    for (int i = 0; list && i < list->count; i++) {
        Decl *extension = list->at[i];
        const Subst *subst;
        if (extension->bases.count == 0 || !leads_to(c, extension, wanted)) continue;
        if (infer_extension(c, extension, type, &subst) && visit_source(c, extension, subst, visit, user))
            return true;
    }
    return false;
}

/* What the base of a struct conforms to, the struct does as well: by what it inherits, or by members of its
 * own. */
typedef struct FromBase {
    Decl *head;
    const Subst *subst;
    DeclaredVisitor visit;
    void *user;
} FromBase;

static bool visit_of_base(Checker *c, void *user, const Declared *declared) {
    const FromBase *from = user;
    const Type *interface = check_subst(c, declared->interface, declared->subst);
    return from->visit(c, from->user, &(Declared){from->head, interface, from->subst, true});
}

/* In terms of its own generic parameters. */
static const Type *base_in_general(Checker *c, const Decl *head) {
    if (!head || head->kind != DECL_struct || head->bases.count == 0) return NULL;
    ensure_bases(c, (Decl *)(uintptr_t)head);
    return head->sema->base;
}

const Type *check_base(Checker *c, const Type *type) {
    const Type *base = type->kind == TYPE_struct ? base_in_general(c, type->decl) : NULL;
    return base ? check_subst(c, base, subst_of_type(c, type)) : NULL;
}

bool visit_declared(Checker *c, const Type *type, const Decl *wanted, DeclaredVisitor visit, void *user) {
    Decl *head = (Decl *)(uintptr_t)type_head(c, type);
    if (head && type->kind != TYPE_interface &&
        head->bases.count + (head->sema ? head->sema->interfaces.count : 0) > 0)
        if (visit_source(c, head, subst_of_type(c, type), visit, user)) return true;
    if (head && visit_extensions(c, head, type, wanted, visit, user)) return true;
    const Type *base = base_in_general(c, head);
    FromBase from = {head, base ? subst_of_type(c, type) : NULL, visit, user};
    if (base && visit_declared(c, base, wanted, visit_of_base, &from)) return true;
    return visit_extensions(c, NULL, type, wanted, visit, user);
}

typedef struct Reach {
    Sema *sema;
    bool unfinished; /* some interface is just finding out what it inherits */
} Reach;

static bool note_reached(Checker *c, void *user, const Declared *declared) {
    Reach *reach = user;
    const Decl *decl = declared->interface->decl;
    map_put(c->arena, &reach->sema->reached, PTR_KEY(decl), reach->sema);
    reach->unfinished |= decl->sema && decl->sema->bases_busy;
    return false;
}

/* Asked of every extension, again and again: the interfaces that a source leads to are listed once. */
static bool leads_to(Checker *c, Decl *source, const Decl *wanted) {
    if (!wanted) return true;
    ensure_bases(c, source);
    Reach reach = {.sema = decl_sema(c, source)};
    if (!reach.sema->reached_all) {
        visit_source(c, source, NULL, note_reached, &reach);
        reach.sema->reached_all = reach.sema->bases_done && !reach.unfinished;
    }
    return map_has(&reach.sema->reached, PTR_KEY(wanted));
}

/* ---- queries */

typedef struct Query {
    const Type *interface;
    Witness witness;
    const Type *found;
} Query;

/* What is required of `This` may be met by the base, but not by what inherits from it: then that does not
 * conform. To find out takes questions whether it does; while they are asked, it does. */
enum { OF_BASE = 1, OF_BASE_BUSY, OF_BASE_MET, OF_BASE_NOT_MET };

static bool holds_of_base(Checker *c, Conformance *conformance) {
    if (conformance->of_base == OF_BASE) {
        conformance->of_base = OF_BASE_BUSY;
        conformance->of_base = meets_requirements(c, conformance) ? OF_BASE_MET : OF_BASE_NOT_MET;
    }
    return conformance->of_base != OF_BASE_NOT_MET;
}

static bool match_query(Checker *c, void *user, const Declared *declared) {
    Query *query = user;
    if (declared->interface->decl != query->interface->decl) return false;
    if (check_subst(c, declared->interface, declared->subst) != query->interface) return false;
    Conformance *conformance = conformance_for(c, declared);
    if (declared->of_base && !conformance->of_base) conformance->of_base = OF_BASE;
    query->witness = (Witness){conformance, declared->subst};
    return true;
}

static bool match_decl(Checker *c, void *user, const Declared *declared) {
    Query *query = user;
    if (declared->interface->decl != query->interface) return false;
    query->found = check_subst(c, declared->interface, declared->subst);
    return true;
}

static bool is_assumed(Checker *c, const Type *type, const Type *interface) {
    TypeVec bounds = {0};
    bounds_of(c, type, &bounds);
    for (int i = 0; i < bounds.count; i++)
        if (interface_inherits(c, bounds.at[i], interface)) return true;
    return false;
}

static bool abstract_conforms(Checker *c, const Type *type, const Type *interface, Witness *witness) {
    if (is_assumed(c, type, interface)) return true;
    Query query = {.interface = interface};
    bool holds = visit_extensions(c, NULL, type, interface->decl, match_query, &query);
    *witness = query.witness;
    return holds;
}

static bool is_native_differentiable(Checker *c, const Type *type, const Type *interface) {
    if (!(((const Decl *)interface->decl)->flags & DECL_PRELUDE)) return false;
    if (interface->name == c->known.IDifferentiablePtrType)
        return (type->kind == TYPE_array || type->kind == TYPE_ptr_pair) && may_be_ptr_pair(c, type);
    if (interface->name != c->known.IDifferentiable) return false;
    return type->kind != TYPE_struct && type->kind != TYPE_enum && is_differentiable_type(c, type);
}

typedef struct CachedWitness {
    bool holds;
    Witness witness;
} CachedWitness;

/* Differentials can be made without arguments: those of built-in types, which are the same types, and those
 * that were made. */
static bool is_native_differential(Checker *c, const Type *type) {
    if (type->kind == TYPE_struct) return ((const Decl *)type->decl)->modifiers & MODIFIER_synthesized;
    return type->kind != TYPE_enum && is_differentiable_type(c, type);
}

/* Builtin facts that no declaration states. */
static bool holds_natively(Checker *c, const Type *type, const Type *interface) {
    if (type_is_abstract(type)) return false;
    if (interface->name == c->known.__EnumType) return type->kind == TYPE_enum;
    if (interface->name == c->known.IDefaultInitializable &&
        (((const Decl *)interface->decl)->flags & DECL_PRELUDE))
        return is_native_differential(c, type);
    return is_native_differentiable(c, type, interface);
}

/* A question that is being answered: asked again on the way, it adds nothing. */
struct ConformQuery {
    const Type *type, *interface;
    ConformQuery *outer;
};

#define MAX_QUERIES 64 /* one needs another; more than that is endless */

static bool is_asked(Checker *c, const Type *type, const Type *interface) {
    int depth = 0;
    for (const ConformQuery *q = c->queries; q; q = q->outer)
        if (++depth > MAX_QUERIES || (q->type == type && q->interface == interface)) return true;
    return false;
}

static bool find_conformance(Checker *c, const Type *type, const Type *interface, Witness *witness) {
    if (type_is_abstract(type)) return abstract_conforms(c, type, interface, witness);
    Query query = {.interface = interface};
    bool holds = visit_declared(c, type, interface->decl, match_query, &query);
    *witness = query.witness;
    if (holds || ((type->flags & TYPE_HAS_PARAM) && is_assumed(c, type, interface))) return true;
    const Decl *head = type_head(c, type);
    if (!head || !head->sema || !head->sema->bases_busy) return false;
    c->query_cut = true;
    return true; /* asked for while its own bases are being resolved: judged later */
}

bool is_conjunction(const Type *interface) {
    return ((const Decl *)interface->decl)->flavour == INTERFACE_all;
}

/* With a @ for each generic argument (type/print.c). */
static Name conjunction_name(Checker *c, const TypeVec *all) {
    Text text = {.arena = c->arena};
    for (int i = 0; i < all->count; i++) {
        const Type *type = all->at[i];
        text_printf(&text, "%s%s", i ? " & " : "", type->name->text);
        for (int k = 0; k < type->nargs; k++) text_add(&text, k ? STR(", @") : STR("<@"));
        if (type->nargs) text_char(&text, '>');
    }
    return name_from(c->names, text.at);
}

static uint32_t head_id(Checker *c, const Type *interface) {
    return type_of_type_decl(c, (Decl *)(uintptr_t)interface->decl)->id;
}

/* By declarations, then by ids; each once. */
static int sort_types(Checker *c, TypeVec *all) {
    int n = 0;
    for (int i = 0; i < all->count; i++) {
        const Type *type = all->at[i];
        uint32_t head = head_id(c, type);
        int k = n;
        for (; k > 0; k--) {
            const Type *before = all->at[k - 1];
            uint32_t other = head_id(c, before);
            if (other < head || (other == head && before->id <= type->id)) break;
        }
        if (k > 0 && all->at[k - 1] == type) continue;
        for (int m = n++; m > k; m--) all->at[m] = all->at[m - 1];
        all->at[k] = type;
    }
    return n;
}

/* What `base` takes becomes a parameter of the conjunction. */
static const Type *with_parameters(Checker *c, Decl *conjunction, Decl *base) {
    TypeVec args = {0};
    for (int i = 1; i < generic_count(base); i++) {
        if (!conjunction->generics) conjunction->generics = arena_new(c->arena, Generics);
        conjunction->generics->checked = true;
        Decl *param = arena_copy(c->arena, generic_param(base, i), sizeof *param);
        param->parent = conjunction;
        vec_push(c->arena, &conjunction->generics->params, param);
        vec_push(c->arena, &args, param_argument(c, conjunction, conjunction->generics->params.count));
    }
    return type_make(c->types, TYPE_interface, 0, base, base->name, 0, args.at, args.count);
}

/* One for all of the same interfaces, whatever these take. */
static Decl *conjunction_decl(Checker *c, const TypeVec *all) {
    Text key = {.arena = c->arena};
    for (int i = 0; i < all->count; i++) text_printf(&key, "&%u", head_id(c, all->at[i]));
    Name name = name_from(c->names, key.at);
    Decl *decl = map_get(&c->conjunctions, PTR_KEY(name));
    if (decl) return decl;
    const Decl *first = all->at[0]->decl;
    decl = decl_new(c->arena, DECL_interface, first->loc, conjunction_name(c, all));
    decl->flavour = INTERFACE_all;
    decl->modifiers = MODIFIER_synthesized | MODIFIER_public;
    decl->parent = first->parent;
    decl->file = first->file;
    for (int i = 0; i < all->count; i++) {
        const Type *base = with_parameters(c, decl, (Decl *)(uintptr_t)all->at[i]->decl);
        vec_push(c->arena, &decl->bases, type_expr(c, first->loc, base));
    }
    map_put(c->arena, &c->conjunctions, PTR_KEY(name), decl);
    return decl;
}

const Type *conjunction_of(Checker *c, TypeVec *all) {
    all->count = sort_types(c, all);
    if (all->count == 1) return all->at[0];
    Decl *decl = conjunction_decl(c, all);
    TypeVec args = {0};
    for (int i = 0; i < all->count; i++)
        for (int k = 0; k < all->at[i]->nargs; k++) vec_push(c->arena, &args, all->at[i]->args[k]);
    return type_make(c->types, TYPE_interface, 0, decl, decl->name, 0, args.at, args.count);
}

static bool conforms_to_all(Checker *c, const Type *type, const Type *interface) {
    Decl *decl = (Decl *)(uintptr_t)interface->decl;
    ensure_bases(c, decl);
    const Sema *sema = decl_sema(c, decl);
    const Subst *subst = interface_subst(c, interface, type);
    for (int i = 0; i < sema->interfaces.count; i++)
        if (!check_conforms(c, type, check_subst(c, sema->interfaces.at[i], subst), NULL)) return false;
    return true;
}

bool check_conforms(Checker *c, const Type *type, const Type *interface, Witness *witness) {
    Witness unused;
    if (!witness) witness = &unused;
    *witness = (Witness){0};
    if (has_error(type) || has_error(interface)) return true;
    if (interface->kind != TYPE_interface) return false;
    if (type->kind == TYPE_interface && interface_inherits(c, type, interface)) return true;
    if (type->kind == TYPE_interface && !is_conjunction(interface)) return false;
    if (type->kind == TYPE_expand || type->kind == TYPE_repeat)
        return check_conforms(c, type->args[0], interface, witness);
    if (is_conjunction(interface)) return conforms_to_all(c, type, interface);
    type = known_type(c, type);
    if (holds_natively(c, type, interface)) return true;
    bool generic = ((type->flags | interface->flags) & TYPE_HAS_PARAM) != 0;
    uint64_t key = ((uint64_t)type->id << 32) | interface->id;
    const CachedWitness *cached = generic ? NULL : map_get(&c->conform_cache, key);
    if (cached) {
        *witness = cached->witness;
        return cached->holds;
    }
    if (!c->queries) index_extensions(c); /* not on the way: their targets raise questions, too */
    if (is_asked(c, type, interface)) {
        c->query_cut = true;
        return false;
    }
    ConformQuery query = {type, interface, c->queries};
    bool cut = c->query_cut;
    c->queries = &query;
    c->query_cut = false;
    bool holds = find_conformance(c, type, interface, witness);
    c->queries = query.outer;
    Conformance *found = (Conformance *)(uintptr_t)witness->conformance;
    if (found && found->of_base) holds = holds_of_base(c, found);
    /* What rests on a question that was not answered is not known for good, unless it is the outermost. */
    bool final = !c->query_cut || (holds ? witness->conformance != NULL : !query.outer);
    c->query_cut = query.outer && (cut || (c->query_cut && !final));
    if (generic || !final || (found && found->of_base == OF_BASE_BUSY)) return holds;
    CachedWitness *answer = arena_new(c->arena, CachedWitness);
    *answer = (CachedWitness){holds, *witness};
    map_put(c->arena, &c->conform_cache, key, answer);
    return holds;
}

void conform_forget_refusals(Checker *c) {
    Map known = c->conform_cache;
    c->conform_cache = (Map){0};
    for (int i = 0; i < known.count; i++) {
        CachedWitness *answer = known.entries[i].value;
        if (answer->holds) map_put(c->arena, &c->conform_cache, known.entries[i].key, answer);
    }
}

const Type *check_find_conformance(Checker *c, const Type *type, const Decl *interface) {
    Query query = {.interface = (const Type *)(const void *)interface};
    if (type->kind == TYPE_interface || type_is_abstract(type)) {
        TypeVec bounds = {0};
        if (type->kind == TYPE_interface) vec_push(c->arena, &bounds, type);
        else bounds_of(c, type, &bounds);
        for (int i = 0; i < bounds.count; i++) {
            Declared declared = {NULL, bounds.at[i], NULL, false};
            if (visit_closure(c, &declared, type, match_decl, &query)) return query.found;
        }
        return NULL;
    }
    return visit_declared(c, type, interface, match_decl, &query) ? query.found : NULL;
}

const Type *interface_named(Checker *c, Name name) {
    DeclVec *found = c->prelude ? scope_find(scope_inside(c, c->prelude), name) : NULL;
    if (!found || found->at[0]->kind != DECL_interface) return ERROR_TYPE(c);
    return type_of_type_decl(c, found->at[0]);
}

bool conforms_to(Checker *c, const Type *type, Name name) {
    const Type *interface = interface_named(c, name);
    return !is_error(interface) && check_conforms(c, type, interface, NULL);
}

/* ---- how a requirement is met for a particular type */

Satisfaction check_witness(Checker *c, const Type *type, Decl *requirement, const Subst *subst) {
    Satisfaction none = {.requirement = requirement};
    Decl *owner = requirement->parent;
    if (owner && (owner->kind == DECL_property || owner->kind == DECL_subscript)) owner = owner->parent;
    const Type *interface = type_with_subst(c, owner, subst);
    if (requirement->kind == DECL_assoc && requirement->name == c->known.Differential &&
        !type_is_abstract(type) && is_native_differentiable(c, type, interface)) {
        bool refers = interface->name == c->known.IDifferentiablePtrType;
        const Type *differential = refers ? check_ptr_differential(c, type) : check_differential(c, type);
        if (differential)
            return (Satisfaction){.kind = SATISFY_type, .requirement = requirement, .type = differential};
    }
    if (requirement->kind == DECL_assoc && type->kind == TYPE_enum && interface->name == c->known.__EnumType)
        return (Satisfaction){
            .kind = SATISFY_type, .requirement = requirement, .type = check_enum_underlying(c, type)};
    Witness witness;
    if (!check_conforms(c, type, interface, &witness) || !witness.conformance) return none;
    Satisfaction found = *satisfaction(c, (Conformance *)(uintptr_t)witness.conformance, requirement);
    if (found.type) found.type = check_subst(c, found.type, witness.subst);
    if (found.kind == SATISFY_default) found.subst = interface_subst(c, interface, type);
    else if (found.subst) found.subst = check_subst_subst(c, found.subst, witness.subst);
    return found;
}

static bool is_public_requirement(Checker *c, void *user, const Declared *declared) {
    Decl *interface = (Decl *)(uintptr_t)declared->interface->decl;
    return scope_find(scope_inside(c, interface), user) && decl_visibility(c, interface) == VISIBLE_public;
}

bool satisfies_public_requirement(Checker *c, const Decl *decl) {
    Decl *owner = decl_type_around(decl);
    if (!owner || owner->kind == DECL_interface || !decl->name) return false;
    return visit_declared(c, this_type_of(c, owner), NULL, is_public_requirement,
                          (void *)(uintptr_t)decl->name);
}

/* ---- types behind an interface */

typedef struct ConformerSet {
    TypeVec declared; /* all that conform */
    TypeVec types;    /* those that can be in a value */
    VEC(int64_t) ids;
} ConformerSet;

static void add_conformer(Checker *c, ConformerSet *set, const Type *interface, const Type *type) {
    if ((type->flags & (TYPE_HAS_PARAM | TYPE_HAS_ERROR)) || type->kind == TYPE_interface) return;
    for (int i = 0; i < set->types.count; i++)
        if (set->types.at[i] == type) return;
    vec_push(c->arena, &set->types, type);
    vec_push(c->arena, &set->ids, conformance_id(c, interface, type));
}

static void collect_conformer(Checker *c, ConformerSet *set, const Type *interface, const Type *type) {
    if (check_conforms(c, type, interface, NULL)) type_vec_add_once(c, &set->declared, type);
}

static void collect_conformers(Checker *c, Decl *decl, const Type *interface, ConformerSet *set) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        bool is_type = member->kind == DECL_struct || member->kind == DECL_enum;
        if (is_type && !member->generics) collect_conformer(c, set, interface, type_of_type_decl(c, member));
        if (member->kind == DECL_extension && !member->generics && member->bases.count) {
            const Type *target = this_type_of(c, member);
            if (!has_error(target)) collect_conformer(c, set, interface, target);
        }
        if ((is_type && !member->generics) || member->kind == DECL_namespace)
            collect_conformers(c, member, interface, set);
    }
}

static ConformerSet *conformer_set(Checker *c, const Type *interface) {
    ConformerSet *set = map_get(&c->conformers, PTR_KEY(interface));
    if (set) return set;
    set = arena_new(c->arena, ConformerSet);
    map_put(c->arena, &c->conformers, PTR_KEY(interface), set);
    bool of_prelude = (((const Decl *)interface->decl)->flags & DECL_PRELUDE) != 0;
    for (int i = 0; i < c->modules.count && !of_prelude; i++)
        if (c->modules.at[i] != c->prelude) collect_conformers(c, c->modules.at[i], interface, set);
    for (int i = 0; i < set->declared.count; i++)
        if (!contains_interface(c, set->declared.at[i], interface))
            add_conformer(c, set, interface, set->declared.at[i]);
    return set;
}

const TypeVec *declared_conformers(Checker *c, const Type *interface) {
    return &conformer_set(c, interface)->declared;
}

const TypeVec *check_conformers(Checker *c, const Type *interface) {
    return &conformer_set(c, interface)->types;
}

int check_add_conformer(Checker *c, const Type *interface, const Type *type) {
    ConformerSet *set = conformer_set(c, interface);
    add_conformer(c, set, interface, type);
    for (int i = 0; i < set->types.count; i++)
        if (set->types.at[i] == type) return i;
    return -1;
}

/* Types that were given no id have the numbers that are left, in order. */
int64_t check_conformer_id(Checker *c, const Type *interface, int index) {
    ConformerSet *set = conformer_set(c, interface);
    if (index >= set->ids.count || set->ids.at[index] >= 0)
        return index < set->ids.count ? set->ids.at[index] : index;
    int64_t id = -1;
    for (int i = 0; i <= index; i++) {
        if (set->ids.at[i] >= 0) continue;
        do id++;
        while (conformance_id_taken(c, interface, id));
    }
    return id;
}

int64_t check_any_value_size(Checker *c, const Type *interface) {
    Decl *decl = (Decl *)(uintptr_t)interface->decl;
    ensure_header(c, decl);
    return decl_sema(c, decl)->any_value_size;
}

const Type *check_enum_underlying(Checker *c, const Type *type) {
    Decl *decl = (Decl *)(uintptr_t)type->decl;
    ensure_header(c, decl);
    return decl_sema(c, decl)->underlying;
}

Satisfaction check_differentiable_witness(Checker *c, const Type *type, const char *method,
                                          Decl **requirement) {
    const Type *interface = interface_named(c, c->known.IDifferentiable);
    DeclVec *found = is_error(interface) ? NULL
                                         : scope_find(scope_inside(c, (Decl *)(uintptr_t)interface->decl),
                                                      name_from(c->names, method));
    if (!found) return (Satisfaction){0};
    *requirement = found->at[0];
    return check_witness(c, type, found->at[0], interface_subst(c, interface, type));
}
