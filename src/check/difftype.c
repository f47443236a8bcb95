/* Differentiable types: which they are, and what their Differential is.
 *
 * Built-in types are differentiable by structure. A struct says so; its Differential is the one it names, or
 * is made here: a struct nested in it with a field of the same name for each differentiable field. If that
 * would have just the same fields with the same types, the struct is its own Differential. Generic structs
 * are treated once, in generic form. */
#include "check/checker.h"

/* Is it known now what it will be when generic arguments are? */
static bool is_settled(const Type *type) {
    return type->kind != TYPE_param && type->kind != TYPE_each && type->kind != TYPE_assoc;
}

/* One element that is differentiable suffices, as one field does in a struct. */
static bool has_differentiable(Checker *c, const Type *tuple) {
    bool found = tuple->nargs == 0;
    for (int i = 0; i < tuple->nargs; i++) {
        const Type *part = tuple->args[i]->kind == TYPE_expand ? tuple->args[i]->args[0] : tuple->args[i];
        bool differentiable = is_differentiable_type(c, part);
        if (!differentiable && !is_settled(part)) return false;
        found |= differentiable;
    }
    return found;
}

bool is_differentiable_type(Checker *c, const Type *type) {
    switch (type->kind) {
    case TYPE_half:
    case TYPE_float:
    case TYPE_double:
    case TYPE_pair: return true;
    case TYPE_vector:
    case TYPE_matrix:
    case TYPE_array:
    case TYPE_optional: return is_differentiable_type(c, type->args[0]);
    case TYPE_tuple: return has_differentiable(c, type);
    case TYPE_repeat:
    case TYPE_expand: return is_differentiable_type(c, type->args[0]);
    case TYPE_struct:
    case TYPE_interface:
    case TYPE_param:
    case TYPE_each: return conforms_to(c, type, c->known.IDifferentiable);
    case TYPE_assoc:
        if (type->args[0]->kind == TYPE_interface) return type->name == c->known.Differential;
        return conforms_to(c, type, c->known.IDifferentiable);
    default: return false;
    }
}

/* Can it be in a DifferentialPtrPair? By an extension anything can. */
bool may_be_ptr_pair(Checker *c, const Type *type) {
    if (type->kind == TYPE_array) return may_be_ptr_pair(c, type->args[0]);
    return type->kind == TYPE_ptr_pair || conforms_to(c, type, c->known.IDifferentiablePtrType);
}

/* Does it become such a pair in derivatives? */
bool is_ptr_differentiable_type(Checker *c, const Type *type) {
    const Type *element = type;
    while (element->kind == TYPE_array) element = element->args[0];
    bool may = element->kind == TYPE_struct || element->kind == TYPE_param || element->kind == TYPE_assoc ||
               element->kind == TYPE_ptr_pair;
    return may && may_be_ptr_pair(c, type);
}

static Decl *assoc_named(Checker *c, Name interface) {
    const Type *type = interface_named(c, interface);
    if (is_error(type)) return NULL;
    DeclVec *found = scope_find(scope_inside(c, (Decl *)(uintptr_t)type->decl), c->known.Differential);
    return found ? found->at[0] : NULL;
}

static const Type *assoc_differential(Checker *c, const Type *type, Name interface) {
    Decl *assoc = assoc_named(c, interface);
    if (!assoc) return NULL;
    const Subst *subst = subst_new(c, NULL, assoc->parent, &type, 1);
    const Type *found = assoc_of(c, type, assoc, subst);
    return is_error(found) ? NULL : found;
}

/* What is not differentiable has NullDifferential in its place, so that elements keep their numbers. */
static const Type *map_parts(Checker *c, const Type *type) {
    const Type *null = type_with_subst(c, check_prelude_decl(c, "NullDifferential"), NULL);
    TypeVec parts = {0};
    for (int i = 0; i < type->nargs; i++) {
        const Type *part = type->args[i];
        bool expands = part->kind == TYPE_expand;
        const Type *pattern = expands ? part->args[0] : part;
        const Type *d = check_differential(c, pattern->kind == TYPE_repeat ? pattern->args[0] : pattern);
        if (!d) d = null;
        if (expands) d = pack_expand(c, d->flags & TYPE_HAS_PACK ? d : pack_repeat(c, d, pattern));
        vec_push(c->arena, &parts, d);
    }
    return type_make(c->types, type->kind, 0, NULL, NULL, 0, parts.at, parts.count);
}

static const Type *map_first(Checker *c, const Type *type, const Type *first) {
    const Type *args[3] = {first, type->nargs > 1 ? type->args[1] : NULL,
                           type->nargs > 2 ? type->args[2] : NULL};
    return first ? type_make(c->types, type->kind, 0, NULL, NULL, 0, args, type->nargs) : NULL;
}

const Type *check_differential(Checker *c, const Type *type) {
    if (has_error(type)) return ERROR_TYPE(c);
    if (!is_differentiable_type(c, type)) return NULL;
    switch (type->kind) {
    case TYPE_half:
    case TYPE_float:
    case TYPE_double: return type;
    case TYPE_vector:
    case TYPE_matrix:
        if (type_is_float(type->args[0])) return type;
        return map_first(c, type, check_differential(c, type->args[0]));
    case TYPE_array:
    case TYPE_optional:
    case TYPE_pair: return map_first(c, type, check_differential(c, type->args[0]));
    case TYPE_tuple: return map_parts(c, type);
    default: return assoc_differential(c, type, c->known.IDifferentiable);
    }
}

const Type *check_ptr_differential(Checker *c, const Type *type) {
    if (!may_be_ptr_pair(c, type)) return NULL;
    if (type->kind == TYPE_array || type->kind == TYPE_ptr_pair)
        return map_first(c, type, check_ptr_differential(c, type->args[0]));
    return assoc_differential(c, type, c->known.IDifferentiablePtrType);
}

/* ---- synthesis */

bool check_is_no_diff_field(const Decl *field) {
    const Expr *type = field->type_expr;
    bool in_type = type && type->kind == EXPR_modified_type && (type->flags & EXPR_NO_DIFF);
    return in_type || (field->modifiers & MODIFIER_no_diff);
}

static bool counts(Checker *c, const Type *type, Decl *field) {
    return !check_is_no_diff_field(field) && is_differentiable_type(c, check_field_type(c, type, field));
}

static bool is_own_differential(Checker *c, const Type *type, const DeclVec *fields) {
    for (int i = 0; i < fields->count; i++) {
        if (!counts(c, type, fields->at[i])) return false;
        const Type *t = check_field_type(c, type, fields->at[i]);
        if (check_differential(c, t) != t) return false;
    }
    return fields->count > 0;
}

static void add_field(Checker *c, Decl *owner, const Decl *like, const Type *type) {
    Decl *field = decl_new(c->arena, DECL_var, like->loc, like->name);
    field->flavour = VAR_field;
    field->parent = owner;
    field->type = type;
    field->state = STATE_body;
    field->modifiers =
        MODIFIER_synthesized | (like->modifiers & (MODIFIER_public | MODIFIER_internal | MODIFIER_private));
    vec_push(c->arena, &owner->members, field);
}

static void make_self_differential(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    sema->bases_done = true;
    vec_push(c->arena, &sema->interfaces, interface_named(c, c->known.IDifferentiable));
    decl->flags |= DECL_SELF_DIFF;
    decl->state = STATE_header;
}

static Decl *make_differential(Checker *c, Decl *decl, const Type *type) {
    Decl *made = decl_new(c->arena, DECL_struct, decl->loc, c->known.Differential);
    made->parent = decl;
    made->modifiers =
        MODIFIER_synthesized | (decl->modifiers & (MODIFIER_public | MODIFIER_internal | MODIFIER_private));
    make_self_differential(c, made);
    decl_sema(c, decl)->differential = made; /* before its fields: a field may refer back to it */
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++) {
        if (!counts(c, type, fields.at[i])) continue;
        const Type *d = check_differential(c, check_field_type(c, type, fields.at[i]));
        add_field(c, made, fields.at[i], d ? d : ERROR_TYPE(c)); /* unknown: that was told */
    }
    return made;
}

/* It belongs to what states the conformance: in an extension there may be more differentiable fields than in
 * the struct. */
const Type *synthesize_assoc(Checker *c, const Conformance *conformance, Decl *assoc) {
    const Type *type = conformance->type;
    bool wanted = assoc->name == c->known.Differential && assoc->parent->name == c->known.IDifferentiable &&
                  (assoc->parent->flags & DECL_PRELUDE);
    if (!wanted || type->kind != TYPE_struct) return NULL;
    Decl *owner = conformance->decl;
    if (owner->flags & DECL_SELF_DIFF) return type;
    Sema *sema = decl_sema(c, owner);
    if (!sema->differential) {
        DeclVec fields = check_all_fields(c, type);
        if (is_own_differential(c, type, &fields)) {
            owner->flags |= DECL_SELF_DIFF;
            return type;
        }
        make_differential(c, owner, type);
    }
    return type_with_subst(c, sema->differential, NULL);
}

/* ---- fields */

/* Type.field: does it name the Differential? */
static bool names_differential(Checker *c, const Type *differential, Decl *field, Expr *e) {
    if (e->kind != EXPR_member) return e->kind == EXPR_name;
    Decl *around = field->sema->member_said_in ? field->sema->member_said_in : field->parent;
    Env env = env_for_decl(c, around);
    const Decl *context = c->context;
    c->context = around;
    const Type *named = resolve_type(&env, e->a);
    c->context = context;
    if (is_error(named) || named->decl == differential->decl) return true;
    report_expr(c, e, DIAG_derivative_member_of, type_str(c, differential), type_str(c, named));
    return false;
}

/* [DerivativeMember(Type.field)], for a field of `type` */
static Decl *named_member(Checker *c, const Type *type, const Type *differential, Decl *field) {
    Expr *e = field->sema ? field->sema->derivative_member : NULL;
    if (!e || !names_differential(c, differential, field, e)) return NULL;
    Name name = e->name;
    DeclVec fields = check_all_fields(c, differential);
    for (int i = 0; i < fields.count; i++) {
        if (fields.at[i]->name != name) continue;
        const Type *own = check_field_type(c, type, field),
                   *have = check_field_type(c, differential, fields.at[i]);
        const Type *wanted = check_differential(c, own);
        if (!wanted) wanted = check_ptr_differential(c, own);
        if (!wanted && !has_error(own))
            report_expr(c, e, DIAG_derivative_member_plain, field->name->text, type_str(c, own));
        if (!wanted || has_error(have) || types_match(c, wanted, have)) return wanted ? fields.at[i] : NULL;
        report_expr(c, e, DIAG_derivative_member_type, field->name->text, type_str(c, wanted), name->text,
                    type_str(c, have));
        return NULL;
    }
    report_expr(c, e, DIAG_derivative_member, type_str(c, differential), name ? name->text : "?");
    return NULL;
}

/* The type itself, or what was made: its fields have the names of those that they are the derivatives of. */
static bool is_made_for(Checker *c, const Type *type, const Type *differential) {
    if (differential == type) return true;
    const Decl *decl = differential->decl;
    if (!(decl->modifiers & MODIFIER_synthesized)) return false;
    Decl *owner = decl->parent;
    return owner == type->decl ||
           (owner->kind == DECL_extension && this_type_of(c, owner)->decl == type->decl);
}

/* How a reference and its Differential, which may be of another type, go together field by field. */
typedef struct Partners {
    DeclVec own, theirs;
    int *of;     /* those of our own: the number among theirs, or -1 */
    bool *taken; /* among theirs */
} Partners;

static void pair_up(Partners *p, int own, int theirs) {
    if (p->of[own] >= 0 || p->taken[theirs]) return;
    p->of[own] = theirs;
    p->taken[theirs] = true;
}

static Name wanted_name(const Decl *field) {
    const Expr *said = field->sema ? field->sema->derivative_member : NULL;
    return said ? said->name : field->name;
}

/* By their names; what is left belongs together in its order, buffers with buffers first. */
static Partners partners_of(Checker *c, const Type *type, const Type *differential) {
    Partners p = {.own = check_all_fields(c, type), .theirs = check_all_fields(c, differential)};
    p.of = arena_array(c->arena, int, p.own.count + 1);
    p.taken = arena_array(c->arena, bool, p.theirs.count + 1);
    for (int i = 0; i < p.own.count; i++) p.of[i] = -1;
    enum { BY_NAME, BY_KIND, BY_ORDER };
    for (int by = BY_NAME; by <= BY_ORDER; by++)
        for (int i = 0; i < p.own.count; i++)
            for (int k = 0; k < p.theirs.count; k++) {
                bool alike = check_field_type(c, type, p.own.at[i])->kind ==
                             check_field_type(c, differential, p.theirs.at[k])->kind;
                bool named = wanted_name(p.own.at[i]) == p.theirs.at[k]->name;
                if (by == BY_NAME ? named : by == BY_KIND ? alike : true) pair_up(&p, i, k);
            }
    return p;
}

static Decl *left_partner(Checker *c, const Type *type, const Type *differential, Decl *field) {
    Partners p = partners_of(c, type, differential);
    for (int i = 0; i < p.own.count; i++)
        if (p.own.at[i] == field && p.of[i] >= 0) return p.theirs.at[p.of[i]];
    return NULL;
}

Decl *check_differential_field(Checker *c, const Type *type, Decl *field) {
    if (type->kind != TYPE_struct) return NULL;
    bool pointer = is_ptr_differentiable_type(c, type);
    const Type *differential = pointer ? check_ptr_differential(c, type) : check_differential(c, type);
    if (!differential) return NULL;
    ensure_header(c, field);
    check_attributes(c, field);
    if (differential->kind != TYPE_struct) {
        const Expr *e = field->sema ? field->sema->derivative_member : NULL;
        if (e && e->name) report_expr(c, e, DIAG_derivative_member, type_str(c, differential), e->name->text);
        return NULL;
    }
    Decl *named = named_member(c, type, differential, field);
    if (named) return named;
    if (field->sema && field->sema->derivative_member) return NULL;
    if (!is_made_for(c, type, differential) && !pointer)
        return NULL; /* a Differential written by hand holds what is mapped to it, nothing else */
    if (!pointer && !counts(c, type, field)) return NULL;
    DeclVec fields = check_all_fields(c, differential);
    for (int i = 0; i < fields.count; i++)
        if (fields.at[i]->name == field->name) return fields.at[i];
    return pointer ? left_partner(c, type, differential, field) : NULL;
}

/* ---- checks */

/* What one field is given would take the place of what the other one is given. */
static void refuse_shared_member(Checker *c, const Type *type, const DeclVec *fields, int index) {
    Decl *field = fields->at[index], *member = check_differential_field(c, type, field);
    const Expr *e = field->sema ? field->sema->derivative_member : NULL;
    for (int i = 0; member && e && i < index; i++) {
        if (check_differential_field(c, type, fields->at[i]) != member) continue;
        report_expr(c, e, DIAG_derivative_member_shared, member->name->text, fields->at[i]->name->text);
        return;
    }
}

void check_differentiable_struct(Checker *c, Conformance *conformance) {
    const Type *type = conformance->type;
    if (conforms_to(c, type, c->known.IDifferentiablePtrType)) {
        report(c, DIAG_both_differentiable, conformance->loc, type_str(c, type));
        return;
    }
    const Type *differential = check_differential(c, type);
    if (!differential) return;
    if (!is_differentiable_type(c, differential)) {
        report(c, DIAG_differential_not_differentiable, conformance->loc, type_str(c, differential));
        note(c, DIAG_note_make_differentiable, 0, declared_name(c, differential));
        return;
    }
    const Type *second = check_differential(c, differential);
    if (second && second != differential)
        report(c, DIAG_differential_of_differential, conformance->loc, type_str(c, type),
               type_str(c, differential), type_str(c, second));
    if (differential != type && conforms_to(c, type, c->known.ISelfDifferentiableValueType))
        report(c, DIAG_not_own_differential, conformance->loc, type_str(c, type), type_str(c, differential));
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++) check_differential_field(c, type, fields.at[i]);
    for (int i = 0; i < fields.count; i++) refuse_shared_member(c, type, &fields, i);
}

/* What a reference has no field for does not come along where derivatives take it apart. */
void check_reference_struct(Checker *c, Conformance *conformance) {
    const Type *type = conformance->type, *differential = check_ptr_differential(c, type);
    if (type->kind != TYPE_struct || !differential || differential->kind != TYPE_struct) return;
    Partners p = partners_of(c, type, differential);
    for (int k = 0; k < p.theirs.count; k++) {
        if (p.taken[k]) continue;
        report(c, DIAG_counterpart_alone, conformance->loc, p.theirs.at[k]->name->text,
               type_str(c, differential), type_str(c, type));
        return;
    }
}

bool check_is_diff_type(Checker *c, const Type *type, const Decl *context) {
    const Decl *before = c->context;
    c->context = context;
    bool result = is_differentiable_type(c, type);
    c->context = before;
    return result;
}

bool check_is_ptr_diff_type(Checker *c, const Type *type, const Decl *context) {
    const Decl *before = c->context;
    c->context = context;
    bool result = is_ptr_differentiable_type(c, type);
    c->context = before;
    return result;
}

bool check_is_view(const Type *type) {
    const Decl *decl = type->kind == TYPE_struct ? type->decl : NULL;
    return decl && (decl->flags & DECL_PRELUDE) && strcmp(decl->name->text, "DiffTensorView") == 0;
}

static bool holds_own_reference(Checker *c, const Type *type) {
    if (type->kind == TYPE_array) return holds_own_reference(c, type->args[0]);
    const Decl *decl = type->kind == TYPE_struct ? type->decl : NULL;
    if (!decl || (decl->flags & DECL_PRELUDE)) return check_is_view(type);
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++)
        if (holds_own_reference(c, check_field_type(c, type, fields.at[i]))) return true;
    return false;
}

bool check_is_reference(Checker *c, const Type *type, const Decl *context) {
    return check_is_ptr_diff_type(c, type, context) || holds_own_reference(c, type);
}
