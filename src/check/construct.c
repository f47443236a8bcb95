/* Making values: T(args), initialiser lists, default values.
 *
 * The result is an EXPR_construct with one argument per part (component, field, element; NULL: the default of
 * that part), a call of a constructor, or a conversion. A list without braces inside is read flat: a nested
 * aggregate takes one value of its type or as many items as it has parts. */
#include "check/checker.h"

static Expr *construct_node(Checker *c, Loc loc, const Type *type) {
    Expr *e = expr_new(c->arena, EXPR_construct, loc);
    e->type = type;
    e->flags = EXPR_CHECKED;
    return e;
}

static Expr *default_node(Checker *c, Loc loc, const Type *type) {
    Expr *e = expr_new(c->arena, EXPR_default, loc);
    e->type = type;
    e->flags = EXPR_CHECKED;
    return e;
}

static bool any_error(const Expr *e) {
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i] && e->args.at[i]->kind == EXPR_error) return true;
    return false;
}

static Expr *done(Checker *c, Expr *e) { return any_error(e) ? error_expr(c, e->loc) : e; }

/* ---- constructors of structs */

static bool user_inits(Checker *c, const Type *type, Candidates *out) {
    out->name = c->known.__init;
    if (type->kind != TYPE_struct) return false;
    return lookup_own_member(c, type, c->known.__init, out);
}

bool has_default_init(Checker *c, const Type *type, Decl **init) {
    Candidates list = {0};
    while (type->kind == TYPE_array) type = type->args[0];                /* each element is made by it */
    bool required = type->kind == TYPE_param || type->kind == TYPE_assoc; /* by its constraints */
    if (!(required ? lookup_member(c, type, c->known.__init, &list) : user_inits(c, type, &list)))
        return false;
    for (int i = 0; i < list.count; i++) {
        Decl *decl = list.at[i].decl;
        FuncSig *sig = signature_of(c, decl);
        bool callable = sig->nparams == 0 || (sig->params[0].decl && sig->params[0].decl->init);
        if (!callable) continue;
        *init = decl;
        return true;
    }
    return false;
}

/* Constructors of the struct itself replace those that it has by its fields; extensions only add some. */
static bool has_own_init(const Candidates *inits) {
    for (int i = 0; i < inits->count; i++)
        if (inits->at[i].decl->parent->kind != DECL_extension) return true;
    return false;
}

typedef struct Defaults {
    Checker *c;
    Arena *scratch;
    Map seen; /* Type: structs that were looked at */
} Defaults;

/* Its own, or those of what it holds, unless constructors say how it is made. */
static bool find_default(Defaults *d, const Type *type) {
    Candidates inits = {0};
    Decl *init;
    if (has_default_init(d->c, type, &init)) return true;
    while (type->kind == TYPE_array) type = type->args[0];
    if (type->kind != TYPE_struct || map_has(&d->seen, PTR_KEY(type))) return false;
    map_put(d->scratch, &d->seen, PTR_KEY(type), d);
    if (user_inits(d->c, type, &inits) && has_own_init(&inits)) return false;
    DeclVec fields = check_all_fields(d->c, type);
    for (int i = 0; i < fields.count; i++)
        if (fields.at[i]->init || find_default(d, check_field_type(d->c, type, fields.at[i]))) return true;
    return false;
}

bool has_default(Checker *c, const Type *type) {
    Defaults d = {.c = c, .scratch = arena_scratch(c->arena)};
    bool found = find_default(&d, type);
    arena_free(d.scratch);
    return found;
}

/* By a constructor that an extension gives to a type that has others, or is built in. NULL: none fits. */
Expr *construct_by_extension(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Candidates *inits = arena_new(env->c->arena, Candidates), all = {0};
    inits->name = all.name = env->c->known.__init;
    if (!lookup_own_member(env->c, type, inits->name, &all)) return NULL;
    for (int i = 0; i < all.count; i++)
        if (!(all.at[i].decl->flags & DECL_PRELUDE)) candidates_add(env->c, inits, all.at[i]);
    return inits->count ? resolve_call(env, loc, inits, args, true) : NULL;
}

Expr *default_value(Env *env, Loc loc, const Type *type) {
    Checker *c = env->c;
    Candidates *list = arena_new(c->arena, Candidates);
    Decl *init;
    if (user_inits(c, type, list) && has_own_init(list) && !has_default_init(c, type, &init)) {
        ExprVec none = {0};
        return resolve_call(env, loc, list, &none, false); /* reports */
    }
    return default_node(c, loc, type);
}

Expr *check_default_value(Checker *c, Loc loc, const Type *type) {
    Env env = {.c = c, .scope = scope_inside(c, c->prelude), .decl = c->prelude};
    return default_value(&env, loc, type);
}

static bool all_bits(const DeclVec *fields) {
    for (int i = 0; i < fields->count; i++)
        if (!fields->at[i]->bits) return false;
    return true;
}

/* Fields less visible than their struct are left out, wherever it is made, and so are bit fields between
 * others. */
static bool is_left_out(Checker *c, const DeclVec *fields, int index) {
    const Decl *field = fields->at[index];
    if (field->bits && !all_bits(fields)) return true;
    return decl_visibility(c, field) > decl_visibility(c, field->parent);
}

/* Why it takes fewer than one may think: the first field that is less visible, and the constructors that
 * there are. */
static void note_taken(Checker *c, const Type *type) {
    Candidates inits = {0};
    if (type->kind != TYPE_struct) return;
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++) {
        const Decl *field = fields.at[i];
        if (decl_visibility(c, field) <= decl_visibility(c, field->parent)) continue;
        note(c, DIAG_note_left_out, field->loc, field->name->text, type_str(c, type));
        break;
    }
    if (!user_inits(c, type, &inits) || !has_own_init(&inits)) return;
    for (int i = 0; i < inits.count; i++) {
        Decl *init = inits.at[i].decl;
        note(c, DIAG_note_signature, init->loc,
             function_text(c, type_str(c, type), init, signature_of(c, init)));
    }
}

static bool takes_flat_items(Checker *c, const Type *type);

/* `{ { ... }, ... }`: a list in first place is for the base, all of it. Gives the number of fields that are
 * filled by it. */
static int fill_base(Env *env, Expr *e, const ExprVec *items, int next) {
    Checker *c = env->c;
    const Type *base = e->type->kind == TYPE_struct ? check_base(c, e->type) : NULL;
    bool braced = next < items->count && items->at[next]->kind == EXPR_list;
    if (!base || !braced || !takes_flat_items(c, base)) return 0;
    Expr *made = coerce_list(env, items->at[next], base);
    int count = check_all_fields(c, base).count;
    bool whole = made->kind == EXPR_construct;
    for (int i = 0; i < count; i++) {
        Expr *part = whole && i < made->args.count ? made->args.at[i] : NULL;
        vec_push(c->arena, &e->args, made->kind == EXPR_error ? made : part);
    }
    return count;
}

static Expr *fill_fields(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    Expr *e = construct_node(c, loc, type);
    DeclVec fields = check_all_fields(c, type);
    int based = fill_base(env, e, args, 0), used = based > 0;
    for (int i = based; i < fields.count; i++) {
        Decl *field = fields.at[i];
        bool hidden = is_left_out(c, &fields, i);
        if (hidden || used >= args->count) {
            vec_push(c->arena, &e->args, NULL);
            continue;
        }
        vec_push(c->arena, &e->args, check_value_of(env, args->at[used++], check_field_type(c, type, field)));
    }
    if (used < args->count) {
        report(c, DIAG_too_many_initialisers, loc, type_str(c, type), used, args->count);
        note_taken(c, type);
        return error_expr(c, loc);
    }
    return done(c, e);
}

/* Is there a constructor that copies: one that says that it takes a value of this very type? */
static bool has_copy_init(Checker *c, const Candidates *inits, const Type *type) {
    for (int i = 0; i < inits->count; i++) {
        const FuncSig *sig = signature_of(c, inits->at[i].decl);
        if (sig_required(sig) <= 1 && sig->nparams && !sig->params[0].is_pack &&
            check_subst(c, sig->params[0].type, inits->at[i].subst) == type)
            return true;
    }
    return false;
}

/* What is in a block of this very type. */
static Expr *of_itself(Env *env, Expr *e, const Type *type) {
    Expr *inside = read_block(env, e);
    return inside->type == type ? inside : e;
}

static Expr *construct_struct(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    Candidates *inits = arena_new(c->arena, Candidates);
    if (args->count == 0) return default_value(env, loc, type);
    if (user_inits(c, type, inits)) {
        if (args->count == 1 && args->at[0]->kind != EXPR_list) {
            args->at[0] = of_itself(env, check_term(env, args->at[0]), type);
            if (args->at[0]->type == type && !has_copy_init(c, inits, type)) return args->at[0];
        }
        bool own = has_own_init(inits);
        Expr *made = resolve_call(env, loc, inits, args, !own);
        if (own || made) return made;
    }
    if (args->count == 1 && args->at[0]->kind != EXPR_list) {
        Expr *only = args->at[0] = of_itself(env, check_value(env, args->at[0]), type);
        if (only->kind == EXPR_error) return only;
        if (type_conversion_cost(env, only->type, type) >= 0) return coerce(env, only, type);
    }
    return fill_fields(env, loc, type, args);
}

/* ---- expansions of packs among components and elements */

static bool has_expansion(const ExprVec *items) {
    for (int i = 0; i < items->count; i++)
        if (items->at[i]->kind == EXPR_expand) return true;
    return false;
}

static const Type *count_items(Env *env, const ExprVec *items) {
    Types *types = env->c->types;
    const Type *count = type_number(types, 0);
    for (int i = 0; i < items->count; i++) {
        Expr *item = items->at[i];
        bool expands = item->kind == EXPR_expand;
        count = type_add(types, count, expands ? expansion_count(env, item) : type_number(types, 1));
    }
    return count;
}

/* How many there are is known once the packs are: too many are told then. */
static Expr *expanded_items(Env *env, Loc loc, const Type *type, const ExprVec *items) {
    Checker *c = env->c;
    Expr *e = construct_node(c, loc, type);
    for (int i = 0; i < items->count; i++) {
        Expr *item = items->at[i];
        bool expands = item->kind == EXPR_expand;
        vec_push(c->arena, &e->args,
                 expands ? coerce_expansion(env, item, type->args[0])
                         : check_value_of(env, item, type->args[0]));
    }
    return done(c, e);
}

/* ---- vectors and matrices */

static int known_lanes(const Type *type) {
    if (type->kind == TYPE_vector)
        return type->args[1]->kind == TYPE_number ? (int)type->args[1]->number : -1;
    if (type->kind == TYPE_matrix) {
        bool known = type->args[1]->kind == TYPE_number && type->args[2]->kind == TYPE_number;
        return known ? (int)(type->args[1]->number * type->args[2]->number) : -1;
    }
    return 1;
}

static const Type *shape_with(Checker *c, const Type *shape, const Type *element) {
    if (shape->kind != TYPE_vector && shape->kind != TYPE_matrix) return element;
    const Type *args[3] = {element, shape->args[1], shape->kind == TYPE_matrix ? shape->args[2] : NULL};
    return type_make(c->types, shape->kind, 0, NULL, NULL, 0, args, shape->nargs);
}

static bool is_component(Checker *c, const Type *type) {
    return is_builtin_operand(c, type) || type->kind == TYPE_enum;
}

static Expr *convert_component(Env *env, Expr *arg, const Type *element) {
    return convert_explicit(env, arg, shape_with(env->c, arg->type, element), arg->loc);
}

/* Are these numbers, as many as the type takes? Of others an extension may know what they mean. */
static bool are_components(Env *env, const Type *type, ExprVec *args) {
    int total = 0, wanted = known_lanes(type);
    for (int i = 0; i < args->count; i++) {
        Expr *arg = args->at[i] = read_block(env, check_term(env, args->at[i]));
        if (arg->kind == EXPR_error || arg->kind == EXPR_expand || !arg->type || has_error(arg->type))
            return true;
        bool number = arg->type == type->args[0] || is_component(env->c, arg->type);
        int n = number ? known_lanes(arg->type) : -1;
        if (!number) return type_is_abstract(arg->type);
        if (n < 0 || wanted < 0) return true;
        total += n;
    }
    return total == wanted || args->count == 1;
}

static bool check_components(Env *env, const Type *element, ExprVec *args, int *total) {
    Checker *c = env->c;
    *total = 0;
    for (int i = 0; i < args->count; i++) {
        Expr *arg = args->at[i] = read_block(env, check_value(env, args->at[i]));
        if (arg->kind == EXPR_error || has_error(arg->type)) return false;
        bool same = arg->type == element || (arg->type->nargs && arg->type->args[0] == element);
        if (!same && !is_component(c, arg->type)) {
            report_expr(c, arg, DIAG_bad_component, type_str(c, arg->type));
            return false;
        }
        int n = known_lanes(arg->type);
        *total = n < 0 || *total < 0 ? -1 : *total + n;
    }
    return true;
}

static Expr *wrong_components(Env *env, Loc loc, const Type *type, int total) {
    report(env->c, DIAG_component_count, loc, type_str(env->c, type), known_lanes(type), total);
    return error_expr(env->c, loc);
}

static Expr *construct_vector(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    int total, wanted = known_lanes(type);
    if (has_expansion(args)) return expanded_items(env, loc, type, args);
    if (!check_components(env, type->args[0], args, &total)) return error_expr(c, loc);
    if (args->count == 1) {
        Expr *only = args->at[0];
        bool scalar = only->type->kind != TYPE_vector && only->type->kind != TYPE_matrix;
        if (scalar || (only->type->kind == TYPE_vector && only->type->args[1] == type->args[1])) {
            if (only->type->kind == TYPE_enum) only = convert_explicit(env, only, type->args[0], loc);
            return convert_explicit(env, only, type, loc);
        }
        Expr *failed = wrong_components(env, loc, type, total);
        note_conversion(c, only->type, type);
        return failed;
    }
    Expr *e = construct_node(c, loc, type);
    int repeat = -1; /* float4(v2, s): the scalar fills up */
    if (args->count == 2 && total >= 0 && total < wanted)
        for (int i = 0; i < 2; i++)
            if (known_lanes(args->at[i]->type) == 1 && known_lanes(args->at[1 - i]->type) > 1) repeat = i;
    if (total != wanted && repeat < 0 && wanted >= 0 && total >= 0)
        return wrong_components(env, loc, type, total);
    for (int i = 0; i < args->count; i++) {
        int times = i == repeat ? wanted - total + 1 : 1;
        for (int k = 0; k < times; k++)
            vec_push(c->arena, &e->args, convert_component(env, args->at[i], type->args[0]));
    }
    return done(c, e);
}

static Expr *construct_matrix(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    int total, wanted = known_lanes(type);
    if (!check_components(env, type->args[0], args, &total)) return error_expr(c, loc);
    if (args->count == 1) {
        Expr *only = args->at[0];
        bool scalar = only->type->kind != TYPE_vector && only->type->kind != TYPE_matrix;
        if (scalar || only->type->kind == TYPE_matrix) {
            if (only->type->kind == TYPE_matrix && only->type->args[0] != type->args[0])
                only = convert_component(env, only, type->args[0]);
            return convert_explicit(env, only, type, loc);
        }
    }
    if (wanted >= 0 && total != wanted) return wrong_components(env, loc, type, total);
    bool rows = true, scalars = true;
    for (int i = 0; i < args->count; i++) {
        const Type *t = args->at[i]->type;
        rows &= t->kind == TYPE_vector && t->args[1] == type->args[2];
        scalars &= t->kind != TYPE_vector && t->kind != TYPE_matrix;
    }
    bool flat_vector = args->count == 1 && args->at[0]->type->kind == TYPE_vector;
    if (!rows && !scalars && !flat_vector)
        diag_portable(c->diags, loc, "a matrix of numbers and vectors that are no rows");
    Expr *e = construct_node(c, loc, type);
    for (int i = 0; i < args->count; i++)
        vec_push(c->arena, &e->args, convert_component(env, args->at[i], type->args[0]));
    return done(c, e);
}

/* In GLSL the last argument may have more numbers than are wanted: vec3(v4), vec4(v2, v4), float(v4). */
static void drop_lanes(Env *env, const Type *type, ExprVec *args) {
    bool is_glsl = env->decl && (decl_module(env->decl)->flags & DECL_GLSL);
    if (!is_glsl || args->count == 0) return;
    if (type->kind != TYPE_vector && !type_is_scalar(type)) return;
    int before = 0, wanted = known_lanes(type);
    for (int i = 0; i < args->count; i++) {
        if (args->at[i]->kind == EXPR_list) return;
        Expr *arg = args->at[i] = read_block(env, check_term(env, args->at[i]));
        bool number = arg->type && (type_is_scalar(arg->type) || arg->type->kind == TYPE_vector);
        int n = number ? known_lanes(arg->type) : -1;
        if (n < 0) return;
        if (i + 1 < args->count) before += n;
    }
    Expr *last = args->at[args->count - 1];
    int kept = wanted - before;
    if (kept <= 0 || kept >= known_lanes(last->type)) return;
    Expr *node = expr_new(env->c->arena, EXPR_swizzle, last->loc);
    node->a = last;
    node->nlanes = kept;
    for (int i = 0; i < kept; i++) node->lanes[i] = (uint8_t)i;
    node->type = kept == 1 ? last->type->args[0] : type_vector(env->c->types, last->type->args[0], kept);
    node->flags = EXPR_CHECKED;
    args->at[args->count - 1] = node;
}

/* ---- the rest */

static Expr *one_argument(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    if (args->count != 1) {
        report(c, DIAG_argument_count, loc, type_str(c, type), range_text(c, 1, 1, "argument"), args->count);
        return error_expr(c, loc);
    }
    if (args->at[0]->kind == EXPR_list) return coerce_list(env, args->at[0], type);
    Expr *arg = check_value(env, args->at[0]);
    return arg->kind == EXPR_error ? arg : convert_explicit(env, arg, type, loc);
}

static Expr *parts_from_args(Env *env, Loc loc, const Type *type, const Type *const *parts, int nparts,
                             ExprVec *args) {
    Checker *c = env->c;
    if (args->count != nparts) {
        report(c, DIAG_argument_count, loc, type_str(c, type), range_text(c, nparts, nparts, "argument"),
               args->count);
        return error_expr(c, loc);
    }
    Expr *e = construct_node(c, loc, type);
    for (int i = 0; i < nparts; i++) vec_push(c->arena, &e->args, check_value_of(env, args->at[i], parts[i]));
    return done(c, e);
}

static Expr *construct_pair(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    const Type *primal = type->args[0];
    const Type *d =
        type->kind == TYPE_pair ? check_differential(c, primal) : check_ptr_differential(c, primal);
    const Type *parts[2] = {primal, d ? d : ERROR_TYPE(c)};
    return parts_from_args(env, loc, type, parts, 2, args);
}

/* A generic parameter: through the constructors its constraints promise. */
static Expr *construct_abstract(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    if (args->count == 1) {
        Expr *only = args->at[0] = check_term(env, args->at[0]);
        if (only->type == type) return only;
        if (only->type && known_to_convert(c, only->type, type, false))
            return convert_explicit(env, only, type, loc);
        bool numbers = only->type && is_builtin_operand(c, type) && is_builtin_operand(c, only->type);
        if (numbers && only->type->kind != TYPE_vector && only->type->kind != TYPE_matrix)
            return convert_explicit(env, only, type, loc);
    }
    Candidates *inits = arena_new(c->arena, Candidates);
    inits->name = c->known.__init;
    if (!lookup_member(c, type, c->known.__init, inits)) {
        bool reference =
            conforms_to(c, type, c->known.IDifferentiablePtrType); /* comes from the user alone */
        if (args->count == 0 && !reference) return default_value(env, loc, type);
        report(c, DIAG_no_constructor, loc, type_str(c, type));
        suggest_for_construct(c, type, args);
        return error_expr(c, loc);
    }
    return resolve_call(env, loc, inits, args, false);
}

/* What is not made of numbers may be made by an extension; NULL: it is not. */
static Expr *not_of_numbers(Env *env, Loc loc, const Type *type, ExprVec *args) {
    bool shape = type->kind == TYPE_vector || type->kind == TYPE_matrix;
    if (args->count == 0 || !(shape || type_is_scalar(type) || type->kind == TYPE_enum)) return NULL;
    if (shape && are_components(env, type, args)) return NULL;
    bool number = !shape && args->count == 1 && args->at[0]->type && args->at[0]->type->kind != TYPE_struct;
    return number || (!shape && args->at[0]->kind == EXPR_list)
               ? NULL
               : construct_by_extension(env, loc, type, args);
}

Expr *check_construct(Env *env, Loc loc, const Type *type, ExprVec *args) {
    Checker *c = env->c;
    splice_expansions(env, args);
    drop_lanes(env, type, args);
    Expr *extended = not_of_numbers(env, loc, type, args);
    if (extended) return extended;
    switch (type->kind) {
    case TYPE_vector:
        return args->count ? construct_vector(env, loc, type, args) : one_argument(env, loc, type, args);
    case TYPE_matrix:
        return args->count ? construct_matrix(env, loc, type, args) : one_argument(env, loc, type, args);
    case TYPE_struct: return construct_struct(env, loc, type, args);
    case TYPE_param:
    case TYPE_each:
    case TYPE_at:
    case TYPE_assoc: return construct_abstract(env, loc, type, args);
    case TYPE_tuple: {
        bool expands = type->nargs == 1 && type->args[0]->kind == TYPE_expand;
        if (!expands) return parts_from_args(env, loc, type, type->args, type->nargs, args);
        Expr *e = construct_node(c, loc, type);
        for (int i = 0; i < args->count; i++) vec_push(c->arena, &e->args, check_value(env, args->at[i]));
        return done(c, e);
    }
    case TYPE_pair:
    case TYPE_ptr_pair: return construct_pair(env, loc, type, args);
    case TYPE_optional: return args->count ? one_argument(env, loc, type, args) : default_node(c, loc, type);
    case TYPE_array: {
        if (args->count == 0) return default_value(env, loc, type);
        Expr *list = expr_new(c->arena, EXPR_list, loc);
        list->args = *args;
        return coerce_list(env, list, type);
    }
    case TYPE_interface:
    case TYPE_void:
    case TYPE_function:
        if (type->kind == TYPE_interface && args->count == 1) return one_argument(env, loc, type, args);
        report(c, DIAG_no_constructor, loc, type_str(c, type));
        return error_expr(c, loc);
    default: return one_argument(env, loc, type, args);
    }
}

/* ---- lists */

typedef struct Items {
    Env *env;
    ExprVec *items;
    int next;
} Items;

static Expr *take_flat(Items *items, Loc loc, const Type *type);

static bool takes_flat_items(Checker *c, const Type *type) {
    Candidates inits = {0};
    switch (type->kind) {
    case TYPE_vector:
    case TYPE_matrix:
    case TYPE_array:
    case TYPE_tuple: return true;
    case TYPE_struct: return !user_inits(c, type, &inits) || !has_own_init(&inits);
    default: return false;
    }
}

static bool is_lane_value(const Type *item, const Type *type) {
    bool numeric = type->kind == TYPE_vector || type->kind == TYPE_matrix;
    return numeric && item->kind != TYPE_vector && item->kind != TYPE_matrix;
}

/* The value for a part of that type, from one item or from several. */
static Expr *take(Items *items, Loc loc, const Type *type) {
    Checker *c = items->env->c;
    if (items->next >= items->items->count) return NULL;
    Expr *item = items->items->at[items->next];
    if (item->kind == EXPR_list) {
        items->next++;
        return coerce_list(items->env, item, type);
    }
    item = items->items->at[items->next] = check_term(items->env, item);
    bool flat = takes_flat_items(c, type);
    bool fits = conversion_cost(items->env, item, type) >= 0;
    if (item->kind != EXPR_error && item->type && flat && (!fits || is_lane_value(item->type, type)))
        return take_flat(items, loc, type);
    items->next++;
    return coerce(items->env, item, type);
}

/* A vector inside a flat list: scalars and shorter vectors until it is full. */
static Expr *take_lanes(Items *items, Loc loc, const Type *type) {
    Checker *c = items->env->c;
    Expr *e = construct_node(c, loc, type);
    int wanted = known_lanes(type), have = 0;
    while (have < wanted && items->next < items->items->count) {
        Expr *item = items->items->at[items->next] = check_value(items->env, items->items->at[items->next]);
        items->next++;
        if (item->kind == EXPR_error) return item;
        int n = known_lanes(item->type);
        if (!is_component(c, item->type) || n < 0 || have + n > wanted) {
            report_expr(c, item, DIAG_cannot_convert, type_str(c, item->type), type_str(c, type));
            return error_expr(c, item->loc);
        }
        have += n;
        Expr *converted = coerce(items->env, item, shape_with(c, item->type, type->args[0]));
        vec_push(c->arena, &e->args, converted);
    }
    for (; have < wanted; have++) vec_push(c->arena, &e->args, default_node(c, loc, type->args[0]));
    return done(c, e);
}

static Expr *take_flat(Items *items, Loc loc, const Type *type) {
    Checker *c = items->env->c;
    if (type->kind == TYPE_vector || type->kind == TYPE_matrix) return take_lanes(items, loc, type);
    Expr *e = construct_node(c, loc, type);
    if (type->kind == TYPE_array) {
        int64_t n = type_length(type);
        for (int64_t i = 0; i < n && items->next < items->items->count; i++)
            vec_push(c->arena, &e->args, take(items, loc, type->args[0]));
    } else if (type->kind == TYPE_tuple) {
        for (int i = 0; i < type->nargs; i++) vec_push(c->arena, &e->args, take(items, loc, type->args[i]));
    } else {
        check_containment(c, (Decl *)(uintptr_t)type->decl); /* or this might not end */
        DeclVec fields = check_all_fields(c, type);
        int based = fill_base(items->env, e, items->items, items->next);
        items->next += based > 0;
        for (int i = based; i < fields.count; i++) {
            bool hidden = is_left_out(c, &fields, i);
            vec_push(c->arena, &e->args,
                     hidden ? NULL : take(items, loc, check_field_type(c, type, fields.at[i])));
        }
    }
    return done(c, e);
}

static Expr *finish_items(Items *items, Expr *e, const Type *type) {
    Checker *c = items->env->c;
    if (e->kind == EXPR_error || items->next >= items->items->count) return e;
    Loc loc = items->items->at[items->next]->loc;
    report(c, DIAG_too_many_initialisers, loc, type_str(c, type), items->next, items->items->count);
    note_taken(c, type);
    return error_expr(c, loc);
}

static Expr *matrix_list(Env *env, Expr *list, const Type *type) {
    Checker *c = env->c;
    int64_t rows;
    Items items = {env, &list->args, 0};
    if (!type_is_number(type->args[1], &rows) || list->args.count != rows)
        return finish_items(&items, take_lanes(&items, list->loc, type), type);
    Expr *e = construct_node(c, list->loc, type);
    const Type *row[2] = {type->args[0], type->args[2]};
    const Type *row_type = type_make(c->types, TYPE_vector, 0, NULL, NULL, 0, row, 2);
    for (int i = 0; i < list->args.count; i++)
        vec_push(c->arena, &e->args, check_value_of(env, list->args.at[i], row_type));
    return done(c, e);
}

static const Type *sized_by_list(Env *env, const Type *type, Expr *list) {
    bool expands = false;
    for (int i = 0; i < list->args.count; i++) expands |= may_expand(env, list->args.at[i]);
    if (expands) splice_expansions(env, &list->args);
    const Type *args[] = {type->args[0], count_items(env, &list->args)};
    return type_make(env->c->types, TYPE_array, 0, NULL, NULL, 0, args, 2);
}

/* T a[] = ...: as many elements as it is given. */
const Type *sized_by_init(Env *env, const Type *type, Decl *decl) {
    if (decl->init->kind == EXPR_list) return sized_by_list(env, type, decl->init);
    decl->init = check_value_of(env, decl->init, type);
    bool unsized = decl->init->kind == EXPR_convert && decl->init->conversion == CONVERT_unsized;
    if (unsized) decl->init = decl->init->a;
    return decl->init->type;
}

static Expr *array_list(Env *env, Expr *list, const Type *type) {
    if (type->nargs == 1) type = sized_by_list(env, type, list);
    bool is_open = type_length(type) < 0 || has_expansion(&list->args); /* its size, or how many there are */
    if (is_open) return expanded_items(env, list->loc, type, &list->args);
    Items items = {env, &list->args, 0};
    return finish_items(&items, take_flat(&items, list->loc, type), type);
}

/* Is there a constructor for so many arguments? */
static bool takes_count(Checker *c, const Candidates *inits, int count) {
    for (int i = 0; i < inits->count; i++) {
        const FuncSig *sig = signature_of(c, inits->at[i].decl);
        int least = 0;
        bool pack = false;
        for (int k = 0; k < sig->nparams; k++) {
            pack |= sig->params[k].is_pack;
            least += !sig->params[k].is_pack && !(sig->params[k].decl && sig->params[k].decl->init);
        }
        if (count >= least && (pack || count <= sig->nparams)) return true;
    }
    return false;
}

static bool is_zero(const Expr *e) {
    bool is_whole = e->kind == EXPR_int || e->kind == EXPR_bool;
    return (is_whole && e->number == 0) || (e->kind == EXPR_float && e->real == 0);
}

/* A list that would also be right with a value for each field, but is read flat, so that a number goes to one
 * component of a vector. Where all are zero that is the same. */
static void warn_of_lanes(Env *env, const Expr *list, const Type *type) {
    Checker *c = env->c;
    DeclVec fields = check_all_fields(c, type);
    const Expr *lane = NULL;
    const Decl *field = NULL;
    bool differs = false;
    if (list->args.count > fields.count) return;
    for (int i = 0; i < list->args.count; i++) {
        Expr *item = list->args.at[i];
        const Type *wanted = check_field_type(c, type, fields.at[i]);
        if (item->kind == EXPR_list || is_left_out(c, &fields, i)) return;
        item = list->args.at[i] = check_term(env, item);
        if (item->kind == EXPR_error || !item->type || conversion_cost(env, item, wanted) < 0) return;
        if (!lane && is_lane_value(item->type, wanted)) lane = item, field = fields.at[i];
        differs |= lane && !is_zero(item);
    }
    if (differs)
        report_expr(c, lane, DIAG_list_fills_lanes, field->name->text,
                    type_str(c, check_field_type(c, type, (Decl *)(uintptr_t)field)));
}

/* Through a constructor that takes as many items; where there is none, field by field. */
static Expr *struct_list(Env *env, Expr *list, const Type *type) {
    Checker *c = env->c;
    Candidates *inits = arena_new(c->arena, Candidates);
    if (user_inits(c, type, inits) && takes_count(c, inits, list->args.count)) {
        bool own = has_own_init(inits);
        Expr *made = resolve_call(env, list->loc, inits, &list->args, !own);
        if (own || made) return made;
    }
    warn_of_lanes(env, list, type);
    Items items = {env, &list->args, 0};
    return finish_items(&items, take_flat(&items, list->loc, type), type);
}

/* One item that is an optional already, or what makes the value in it. */
static Expr *optional_list(Env *env, Expr *list, const Type *type) {
    Checker *c = env->c;
    if (list->args.count == 1 && list->args.at[0]->kind != EXPR_list) {
        Expr *item = list->args.at[0] = check_term(env, list->args.at[0]);
        if (conversion_cost(env, item, type) >= 0) return coerce(env, item, type);
    }
    Expr *value = coerce_list(env, list, type->args[0]);
    return value->kind == EXPR_error ? value : convert_node(c, value, type, CONVERT_optional);
}

Expr *coerce_list(Env *env, Expr *list, const Type *type) {
    Checker *c = env->c;
    if (has_error(type)) {
        for (int i = 0; i < list->args.count; i++) check_term(env, list->args.at[i]);
        return error_expr(c, list->loc);
    }
    if (list->args.count == 0 && type->kind != TYPE_pair && type->kind != TYPE_ptr_pair)
        return default_value(
            env, list->loc,
            type->kind == TYPE_array && type->nargs == 1 ? type_array(c->types, type->args[0], 0) : type);
    splice_expansions(env, &list->args);
    bool one = list->args.count == 1;
    switch (type->kind) {
    case TYPE_struct: return struct_list(env, list, type);
    case TYPE_array: return array_list(env, list, type);
    case TYPE_matrix:
        if (one && list->args.at[0]->kind != EXPR_list) return check_value_of(env, list->args.at[0], type);
        return matrix_list(env, list, type);
    case TYPE_vector: {
        if (has_expansion(&list->args)) return expanded_items(env, list->loc, type, &list->args);
        if (one) return check_value_of(env, list->args.at[0], type);
        Items items = {env, &list->args, 0};
        return finish_items(&items, take_lanes(&items, list->loc, type), type);
    }
    case TYPE_tuple: {
        Items items = {env, &list->args, 0};
        return finish_items(&items, take_flat(&items, list->loc, type), type);
    }
    case TYPE_pair:
    case TYPE_ptr_pair: return construct_pair(env, list->loc, type, &list->args);
    case TYPE_optional: return optional_list(env, list, type);
    default: break;
    }
    if (one)
        return type_is_abstract(type) ? construct_abstract(env, list->loc, type, &list->args)
                                      : check_value_of(env, list->args.at[0], type);
    if (type_is_abstract(type)) return construct_abstract(env, list->loc, type, &list->args);
    report_expr(c, list, DIAG_too_many_initialisers, type_str(c, type), 1, list->args.count);
    return error_expr(c, list->loc);
}

/* Leaves are checked aloud first; then trying out the list in silence loses no message. */
static void check_items(Env *env, const Expr *list) {
    for (int i = 0; i < list->args.count; i++) {
        if (list->args.at[i]->kind == EXPR_list) check_items(env, list->args.at[i]);
        else list->args.at[i] = check_term(env, list->args.at[i]);
    }
}

/* What was found out about a list once is kept: in nested lists each level would be tried again for each
 * level around it. */
typedef struct ListCost {
    const Type *type;
    int cost;
    struct ListCost *next;
} ListCost;

static int try_list(Env *env, const Expr *list, const Type *type) {
    Checker *c = env->c;
    check_items(env, list);
    Expr *copy = expr_new(c->arena, EXPR_list, list->loc);
    *copy = *list;
    c->diags->muted++;
    Expr *e = coerce_list(env, copy, type);
    c->diags->muted--;
    if (e->kind == EXPR_error) return COST_none;
    return type_is_scalar(type) ? COST_lane : 0; /* braces are rather for what has parts */
}

int list_cost(Env *env, const Expr *list, const Type *type) {
    Checker *c = env->c;
    ListCost *known = map_get(&c->list_costs, PTR_KEY(list));
    for (const ListCost *k = known; k; k = k->next)
        if (k->type == type) return k->cost;
    ListCost *entry = arena_new(c->arena, ListCost);
    *entry = (ListCost){type, try_list(env, list, type), map_get(&c->list_costs, PTR_KEY(list))};
    map_put(c->arena, &c->list_costs, PTR_KEY(list), entry);
    return entry->cost;
}

/* ---- fields */

static void add_fields(Checker *c, const Type *type, DeclVec *out) {
    Decl *decl = (Decl *)(uintptr_t)type->decl;
    const Type *base = check_base(c, type);
    if (base) add_fields(c, base, out);
    ensure_members(c, decl);
    Sema *sema = decl_sema(c, decl);
    for (int i = 0; i < sema->fields.count; i++) vec_push(c->arena, out, sema->fields.at[i]);
}

DeclVec check_all_fields(Checker *c, const Type *type) {
    DeclVec fields = {0};
    if (type->kind != TYPE_struct) return fields;
    Decl *decl = (Decl *)(uintptr_t)type->decl;
    ensure_bases(c, decl);
    ensure_members(c, decl);
    const Sema *sema = decl_sema(c, decl);
    if (!sema->base) return sema->fields; /* no copy: there may be thousands, asked for one by one */
    add_fields(c, type, &fields);
    return fields;
}

const Type *check_field_type(Checker *c, const Type *type, Decl *field) {
    const Type *owner = type, *base = type;
    while (owner->kind == TYPE_struct && owner->decl != field->parent && (base = check_base(c, owner)))
        owner = base;
    return check_subst(c, decl_value_type(c, field), subst_of_type(c, owner));
}

static int bit_width_of(Checker *c, Decl *field) {
    if (!field->bits) return 0;
    ensure_header(c, field);
    return (int)decl_sema(c, field)->value;
}

/* Bit fields that follow each other share a word, lowest bits first, as long as they fit into the widest type
 * among them. */
FieldSlot *check_field_slots(Checker *c, const Type *type, const DeclVec *fields) {
    FieldSlot *slots = arena_array(c->arena, FieldSlot, fields->count ? fields->count : 1);
    const Type *word =
        NULL; /* of the bits that are being shared; NULL: the next bit field begins a new one */
    int used = 0, member = -1, first = 0;
    for (int i = 0; i < fields->count; i++) {
        const Type *field_type = check_field_type(c, type, fields->at[i]);
        if (!fields->at[i]->bits || !type_is_integer(field_type)) {
            slots[i] = (FieldSlot){.member = ++member, .word = field_type, .is_first = true};
            word = NULL;
            continue;
        }
        int width = bit_width_of(c, fields->at[i]);
        const Type *wider = !word || type_bits(field_type) > type_bits(word) ? field_type : word;
        bool shares = word && used + width <= type_bits(wider);
        if (width && !shares) member++, used = 0, first = i, wider = field_type;
        if (width) word = wider;
        slots[i] = (FieldSlot){member, used, width, word, width && first == i, true};
        used += width;
        for (int k = first; k < i && width; k++) slots[k].word = word;
        if (!width) word = NULL;
    }
    return slots;
}
