/* Inferring generic arguments from the types of arguments.
 *
 * A pattern (the type of a parameter) is matched against an actual type; parameters of `owner` that it meets
 * are bound. Several arguments for one parameter are joined like the operands of an operator. What does not
 * match structurally is left to the conversions, which are tried once the arguments are known. */
#include "check/checker.h"

/* ---- joining */

static const Type *join_shapes(Checker *c, const Type *a, const Type *b, const Type *element) {
    const Type *shape = a->kind == TYPE_vector || a->kind == TYPE_matrix ? a : b;
    const Type *other = shape == a ? b : a;
    bool other_scalar = type_is_scalar(other) || type_is_abstract(other);
    if (!other_scalar) {
        if (other->kind != shape->kind || other->args[1] != shape->args[1]) return NULL;
        if (shape->kind == TYPE_matrix && other->args[2] != shape->args[2]) return NULL;
    }
    const Type *args[3] = {element, shape->args[1], shape->kind == TYPE_matrix ? shape->args[2] : NULL};
    return type_make(c->types, shape->kind, shape->flags & TYPE_COLUMN_MAJOR, NULL, NULL, 0, args,
                     shape->nargs);
}

static bool is_shape(const Type *t) { return t->kind == TYPE_vector || t->kind == TYPE_matrix; }

const Type *join_types(Checker *c, const Type *a, const Type *b) {
    if (a == b) return a;
    if (is_error(a) || is_error(b)) return ERROR_TYPE(c);
    if (type_is_scalar(a) && type_is_scalar(b)) return a->kind > b->kind ? a : b;
    if (is_shape(a) || is_shape(b)) {
        const Type *ea = is_shape(a) ? a->args[0] : a, *eb = is_shape(b) ? b->args[0] : b;
        const Type *element = join_types(c, ea, eb);
        return element ? join_shapes(c, a, b, element) : NULL;
    }
    if (a->kind == TYPE_null || a->kind == TYPE_none) return b;
    if (b->kind == TYPE_null || b->kind == TYPE_none) return a;
    if (a->kind == TYPE_enum && type_is_scalar(b))
        return join_types(c, decl_sema(c, (Decl *)(uintptr_t)a->decl)->underlying, b);
    if (b->kind == TYPE_enum && type_is_scalar(a)) return join_types(c, b, a);
    return NULL;
}

/* ---- matching */

static void bind(Inference *inference, int index, const Type *actual) {
    const Type *old = inference->args[index];
    if (index < inference->given) return; /* as written; the argument is converted */
    if (!old || is_error(old)) {
        inference->args[index] = actual;
        return;
    }
    if (old == actual) return;
    const Type *joined = NULL;
    const Decl *param = generic_param(inference->owner, index);
    if (!param || param->kind != DECL_value_param) joined = join_types(inference->c, old, actual);
    if (joined) {
        inference->args[index] = joined;
        return;
    }
    if (!inference->failed) inference->conflict = index, inference->first = old, inference->second = actual;
    inference->failed = true;
}

static void match_args(Inference *inference, const Type *pattern, const Type *actual) {
    int n = pattern->nargs < actual->nargs ? pattern->nargs : actual->nargs;
    for (int i = 0; i < n; i++) infer_match(inference, pattern->args[i], actual->args[i]);
}

/* N + 1 against 4. */
static void match_sum(Inference *inference, const Type *pattern, const Type *actual) {
    int64_t number;
    if (!type_is_number(actual, &number) || pattern->nargs != 1) return;
    const Type *term = pattern->args[0];
    if (term->kind == TYPE_product && (term->number != 1 || term->nargs != 1)) return;
    const Type *param = term->kind == TYPE_product ? term->args[0] : term;
    diag_portable(inference->c->diags, inference->owner->loc, "a number that is inferred from a sum");
    infer_match(inference, param, type_number(inference->c->types, number - pattern->number));
}

/* IFoo<T> against a type that conforms to some IFoo; of I<T> & J<T> each. */
static void match_interface(Inference *inference, const Type *pattern, const Type *actual) {
    const Type *found = check_find_conformance(inference->c, actual, pattern->decl);
    if (found) match_args(inference, pattern, found);
    if (found || !is_conjunction(pattern)) return;
    const TypeVec *all = interface_with_inherited(inference->c, pattern);
    for (int i = 1; i < all->count; i++) match_interface(inference, all->at[i], actual);
}

/* An element of a list is matched; one that is an expansion itself binds expansions. */
static void match_element(Inference *inference, const Type *pattern, const Type *actual) {
    bool expands = actual->kind == TYPE_expand;
    infer_match(inference, pattern, expands ? actual->args[0] : actual);
    for (int i = 0; i < inference->nargs && expands; i++)
        if (inference->args[i]) inference->args[i] = pack_expand(inference->c, inference->args[i]);
}

/* expand P against a list: element by element, collecting what each pack parameter was matched with. */
static void match_expand(Inference *inference, const Type *pattern, const Type *const *actuals, int count) {
    Checker *c = inference->c;
    Inference each = *inference;
    TypeVec *collected = arena_array(c->arena, TypeVec, inference->nargs);
    for (int k = 0; k < count; k++) {
        each.args = arena_array(c->arena, const Type *, inference->nargs);
        match_element(&each, pattern->args[0], actuals[k]);
        for (int i = 0; i < inference->nargs; i++)
            if (each.args[i]) vec_push(c->arena, &collected[i], each.args[i]);
    }
    for (int i = 0; i < inference->nargs; i++) {
        const Decl *param = generic_param(inference->owner, i);
        bool is_pack = param && (param->modifiers & MODIFIER_pack);
        if (i < inference->given) continue;
        if (is_pack && (collected[i].count || (count == 0 && !inference->args[i])))
            bind(inference, i, pack_make(c, collected[i].at, collected[i].count));
        else if (!is_pack && collected[i].count) bind(inference, i, collected[i].at[0]);
    }
}

static int count_expansions(const Type *const *list, int count) {
    int n = 0;
    for (int i = 0; i < count; i++) n += list[i]->kind == TYPE_expand;
    return n;
}

/* Lists of any length: the expansions in the pattern share equally what the others leave. */
static void match_lists(Inference *inference, const Type *const *patterns, int npatterns,
                        const Type *const *actuals, int nactuals) {
    int expansions = count_expansions(patterns, npatterns), rest = nactuals - (npatterns - expansions),
        at = 0;
    if (expansions ? rest < 0 || rest % expansions : rest != 0) return;
    for (int i = 0; i < npatterns; i++) {
        if (patterns[i]->kind != TYPE_expand) {
            infer_match(inference, patterns[i], actuals[at++]);
            continue;
        }
        match_expand(inference, patterns[i], actuals + at, rest / expansions);
        at += rest / expansions;
    }
}

/* A scalar for a vector: of one lane, unless another argument tells how many. */
static void single_lane(Inference *inference, const Type *pattern) {
    const Type *count = pattern->args[1];
    if (pattern->kind != TYPE_vector || count->kind != TYPE_param || count->decl != inference->owner) return;
    if (inference->single_lane) inference->single_lane[count->number] = true;
}

void infer_match(Inference *inference, const Type *pattern, const Type *actual) {
    if (!(pattern->flags & TYPE_HAS_PARAM)) return;
    Checker *c = inference->c;
    switch (pattern->kind) {
    case TYPE_param:
        if (pattern->decl == inference->owner) bind(inference, (int)pattern->number, actual);
        return;
    case TYPE_each:
        if (pattern->args[0]->kind == TYPE_param && pattern->args[0]->decl == inference->owner)
            bind(inference, (int)pattern->args[0]->number, actual);
        return;
    case TYPE_expand:
    case TYPE_pack: {
        bool is_list = pattern->kind == TYPE_pack, actual_list = actual->kind == TYPE_pack;
        if (!actual_list && actual->kind != TYPE_expand) return;
        match_lists(inference, is_list ? pattern->args : &pattern, is_list ? pattern->nargs : 1,
                    actual_list ? actual->args : &actual, actual_list ? actual->nargs : 1);
        return;
    }
    case TYPE_sum: match_sum(inference, pattern, actual); return;
    case TYPE_vector:
    case TYPE_matrix:
        actual = in_block(actual);
        if (actual->kind == pattern->kind) match_args(inference, pattern, actual);
        else if (type_is_scalar(actual) || type_is_abstract(actual)) {
            infer_match(inference, pattern->args[0], actual);
            single_lane(inference, pattern);
        }
        return;
    case TYPE_interface:
        if (actual->kind == TYPE_interface && actual->decl == pattern->decl)
            match_args(inference, pattern, actual);
        else match_interface(inference, pattern, actual);
        return;
    case TYPE_tuple:
        if (actual->kind == TYPE_tuple)
            match_lists(inference, pattern->args, pattern->nargs, actual->args, actual->nargs);
        return;
    case TYPE_slice:
    case TYPE_repeat:
    case TYPE_at:
    case TYPE_branch:
    case TYPE_assoc: return;
    default: break;
    }
    if (pattern->kind != TYPE_buffer) actual = in_block(actual);
    bool is_same_kind = actual->kind == pattern->kind && !((actual->flags ^ pattern->flags) & TYPE_THROWS);
    if (is_same_kind && actual->decl == pattern->decl && actual->number == pattern->number) {
        match_args(inference, pattern, actual);
    } else if (pattern->kind == TYPE_struct && actual->kind == TYPE_struct) {
        const Type *base = check_base(c, actual);
        if (base) infer_match(inference, pattern, base);
    }
}

/* ---- completing */

static bool all_known(const Inference *inference) {
    for (int i = 0; i < inference->nargs; i++)
        if (!inference->args[i]) return false;
    return true;
}

/* With unknown ones left as themselves, so that constraints can be looked at half way. */
static const Subst *partial_subst(Inference *inference, const Subst *outer) {
    const Type **args = arena_array(inference->c->arena, const Type *, inference->nargs);
    for (int i = 0; i < inference->nargs; i++)
        args[i] = inference->args[i] ? inference->args[i] : param_argument(inference->c, inference->owner, i);
    return subst_new(inference->c, outer, inference->owner, args, inference->nargs);
}

/* U : IC<T> finds T from U; A.X == T finds T from A. */
static void infer_from_constraints(Inference *inference, const Subst *outer) {
    Checker *c = inference->c;
    const Generics *generics = inference->owner->generics;
    for (int i = 0; generics && i < generics->constraints.count; i++) {
        const Constraint *constraint = &generics->constraints.at[i];
        if (!constraint->subject_type || all_known(inference)) continue;
        if (constraint->subject_type->kind == TYPE_apply) continue; /* countof(P) == N only tests */
        const Subst *subst = partial_subst(inference, outer);
        const Type *subject = check_subst(c, constraint->subject_type, subst);
        if (subject->kind == TYPE_param && subject->decl == inference->owner) {
            if (constraint->equal)
                infer_match(inference, subject, check_subst(c, constraint->bound_type, subst));
            continue;
        }
        const Type *bound = check_subst(c, constraint->bound_type, subst);
        if (constraint->equal) infer_match(inference, bound, subject);
        else if (bound->kind == TYPE_interface && bound->nargs) match_interface(inference, bound, subject);
    }
}

/* An integer where only floating types will do becomes a float, a block what is in it. */
static const Type *promote(Checker *c, const Type *type) {
    const Type *to = type_basic(c->types, TYPE_float);
    if (in_block(type) != type) return in_block(type);
    if (type_is_integer(type) || type->kind == TYPE_bool) return to;
    if (!is_shape(type) || !type_is_integer(type->args[0])) return NULL;
    const Type *args[3] = {to, type->args[1], type->kind == TYPE_matrix ? type->args[2] : NULL};
    return type_make(c->types, type->kind, 0, NULL, NULL, 0, args, type->nargs);
}

static void promote_args(Inference *inference, const Subst *outer) {
    Checker *c = inference->c;
    const Generics *generics = inference->owner->generics;
    for (int i = 0; generics && i < generics->constraints.count; i++) {
        const Constraint *constraint = &generics->constraints.at[i];
        const Type *subject = constraint->subject_type;
        if (!subject || constraint->equal || subject->kind != TYPE_param || subject->decl != inference->owner)
            continue;
        if (subject->number < inference->given) continue; /* as written */
        const Type *arg = inference->args[subject->number], *promoted = arg ? promote(c, arg) : NULL;
        if (!promoted) continue;
        const Type *bound = check_subst(c, constraint->bound_type, partial_subst(inference, outer));
        if (!check_conforms(c, arg, bound, NULL) && check_conforms(c, promoted, bound, NULL))
            inference->args[subject->number] = promoted;
    }
}

static void infer_defaults(Inference *inference, const Subst *outer) {
    Checker *c = inference->c;
    for (int i = 0; i < inference->nargs; i++) {
        Decl *param = generic_param(inference->owner, i);
        if (inference->args[i] || !param) continue;
        if (param->modifiers & MODIFIER_pack) {
            inference->args[i] = pack_make(c, NULL, 0);
        } else if (inference->single_lane && inference->single_lane[i]) {
            inference->args[i] = type_number(c->types, 1);
        } else if (param->init) {
            Env env = env_for_decl(c, (Decl *)(uintptr_t)inference->owner);
            const Type *value = resolve_generic_arg(&env, param, param->init);
            inference->args[i] = check_subst(c, value, partial_subst(inference, outer));
        }
    }
}

bool infer_finish(Inference *inference, const Subst *outer, const Subst **subst) {
    ensure_generics(inference->c, (Decl *)(uintptr_t)inference->owner);
    if (inference->failed) return false;
    promote_args(inference, outer);
    infer_from_constraints(inference, outer);
    if (!all_known(inference)) infer_defaults(inference, outer);
    if (inference->failed || !all_known(inference)) return false;
    *subst = subst_new(inference->c, outer, inference->owner, inference->args, inference->nargs);
    return true;
}

bool infer_extension(Checker *c, Decl *extension, const Type *type, const Subst **subst) {
    ensure_header(c, extension);
    const Type *target = decl_sema(c, extension)->target;
    if (has_error(target)) return false;
    int n = generic_count(extension);
    if (n == 0) {
        *subst = NULL;
        return target == type;
    }
    if (target->kind != TYPE_param && target->kind != type->kind) return false;
    Inference inference = {
        .c = c, .owner = extension, .args = arena_array(c->arena, const Type *, n), .nargs = n};
    infer_match(&inference, target, type);
    if (!infer_finish(&inference, NULL, subst)) return false;
    if (check_subst(c, target, *subst) != type) return false;
    return constraints_hold(c, extension, *subst, 0);
}
