/* The checker as a whole: setting it up, and checking everything that a module declares. */
#include "check/checker.h"

/* ---- setting up */

void known_names(Names *names, Arena *arena, Known *known) {
#define X(name) known->name = name_from(names, #name);
#include "check/known.def"
#undef X
    known->call = name_from(names, "operator()");
    known->subscript = name_from(names, "__subscript");
    for (int op = 1; op < OPERATOR_COUNT; op++)
        known->operators[op] =
            name_from(names, format_text(arena, "operator%s", operator_text((Operator)op)));
}

Checker *checker_new(Arena *arena, const CheckerConfig *config) {
    Checker *c = arena_new(arena, Checker);
    c->arena = arena;
    c->config = *config;
    c->types = config->types;
    c->names = config->syntax->names;
    c->sources = config->syntax->sources;
    c->diags = config->syntax->diags;
    library_open(c);
    return c;
}

Decl *check_prelude(Checker *c) { return c->prelude; }

Decl *check_prelude_decl(Checker *c, const char *name) {
    DeclVec *found = c->prelude ? scope_find(scope_inside(c, c->prelude), name_from(c->names, name)) : NULL;
    return found ? found->at[0] : NULL;
}

/* ---- redeclarations */

static bool same_constraints(Checker *c, const Decl *a, const Decl *b, const Subst *b_as_a) {
    if (a->generics->constraints.count != b->generics->constraints.count) return false;
    for (int i = 0; i < a->generics->constraints.count; i++) {
        const Constraint *x = &a->generics->constraints.at[i], *y = &b->generics->constraints.at[i];
        if (!x->bound_type || !y->bound_type || x->equal != y->equal) return false;
        if (x->subject_type != check_subst(c, y->subject_type, b_as_a)) return false;
        if (x->bound_type != check_subst(c, y->bound_type, b_as_a)) return false;
    }
    return true;
}

static bool same_parameters(Checker *c, Decl *a, Decl *b) {
    if (a->flavour != b->flavour || generic_count(a) != generic_count(b)) return false;
    if (decl_is_static(a) != decl_is_static(b)) return false;
    FuncSig *sa = signature_of(c, a), *sb = signature_of(c, b);
    if (sa->nparams != sb->nparams) return false;
    const Subst *subst = NULL;
    int n = generic_count(b);
    if (n) {
        const Type **args = arena_array(c->arena, const Type *, n);
        for (int i = 0; i < n; i++) args[i] = param_type(c, a, i);
        subst = subst_new(c, NULL, b, args, n);
    }
    for (int i = 0; i < sa->nparams; i++)
        if (sa->params[i].type != check_subst(c, sb->params[i].type, subst) ||
            sa->params[i].pass != sb->params[i].pass)
            return false;
    uint32_t fix = MODIFIER_prefix | MODIFIER_postfix;
    if ((a->modifiers & fix) != (b->modifiers & fix)) return false;
    return !n || same_constraints(c, a, b, subst);
}

static bool has_body(const Decl *decl) { return decl->body || decl->lazy.count; }

bool declarations_clash(Checker *c, Decl *a, Decl *b) {
    bool functions = a->kind == DECL_func && b->kind == DECL_func;
    if (!functions) {
        bool harmless = a->kind == DECL_namespace || a->kind == DECL_extension || a->kind == DECL_subscript ||
                        a->kind == DECL_import || a->kind == DECL_using || a->kind == DECL_empty ||
                        a->kind == DECL_include || a->kind == DECL_module_name ||
                        a->kind == DECL_implementing;
        return !harmless;
    }
    if (!same_parameters(c, a, b) || find_attribute(b, "__FuncExtension")) return false;
    bool differ_in_result = signature_of(c, a)->result != signature_of(c, b)->result && generic_count(a) == 0;
    return differ_in_result || (has_body(a) && has_body(b)) ||
           (!has_body(a) && !has_body(b) && decl_type_around(a));
}

static DiagId redeclaration(Checker *c, Decl *a, Decl *b) {
    if (a->kind != DECL_func || b->kind != DECL_func) return DIAG_redeclared;
    bool differ_in_result = signature_of(c, a)->result != signature_of(c, b)->result && generic_count(a) == 0;
    return differ_in_result ? DIAG_result_differs : DIAG_redefined;
}

static void check_redeclarations(Checker *c, Decl *decl) {
    const Scope *scope = scope_inside(c, decl);
    if (scope->decl != decl || scope->is_params || scope->is_generics) return;
    for (int i = 0; i < scope->names.count; i++) {
        DeclVec *list = scope->names.entries[i].value;
        if (list->count > 200) continue; /* generated overload sets: pairs would be too many */
        for (int a = 1; a < list->count; a++)
            for (int b = 0; b < a; b++) {
                if (!list->at[a]->name || !declarations_clash(c, list->at[b], list->at[a])) continue;
                report(c, redeclaration(c, list->at[b], list->at[a]), list->at[a]->loc,
                       list->at[a]->name->text);
                note(c, DIAG_note_declared_here, list->at[b]->loc, list->at[b]->name->text);
                b = a;
            }
    }
}

/* ---- visibility */

/* A declared type inside `type` that is less visible than public; NULL: none. */
static const Type *hidden_part(Checker *c, const Type *type) {
    bool declared = type->kind == TYPE_struct || type->kind == TYPE_enum || type->kind == TYPE_interface;
    const Decl *decl = declared ? type->decl : NULL;
    if (decl && !(decl->flags & DECL_PRELUDE) && !(decl->modifiers & MODIFIER_synthesized) &&
        decl_visibility(c, decl) != VISIBLE_public)
        return type;
    for (int i = 0; i < type->nargs; i++) {
        const Type *part = hidden_part(c, type->args[i]);
        if (part) return part;
    }
    return NULL;
}

static void check_shown_type(Checker *c, const Decl *decl, const Type *type) {
    const Type *hidden = hidden_part(c, type);
    if (!hidden) return;
    report(c, DIAG_signature_visibility, decl->loc, decl->name->text, type_str(c, hidden));
    note(c, DIAG_note_declared_here, ((const Decl *)hidden->decl)->loc, type_str(c, hidden));
}

/* What a public declaration says about itself must be public, too. */
static void check_shown_types(Checker *c, Decl *decl) {
    if (decl->kind == DECL_var && decl->type) check_shown_type(c, decl, decl->type);
    if (decl->kind == DECL_property || decl->kind == DECL_subscript)
        check_shown_type(c, decl, decl_value_type(c, decl));
    for (int i = 0; decl->generics && i < decl->generics->constraints.count; i++)
        if (decl->generics->constraints.at[i].bound_type)
            check_shown_type(c, decl, decl->generics->constraints.at[i].bound_type);
    if (decl->kind != DECL_func) return;
    FuncSig *sig = signature_of(c, decl);
    if (!sig->is_init) check_shown_type(c, decl, sig->result);
    for (int i = 0; i < sig->nparams; i++) check_shown_type(c, decl, sig->params[i].type);
}

static void check_visibility(Checker *c, Decl *decl) {
    if (!(decl_module(decl)->flags & DECL_MODERN) || !decl->name) return;
    if (decl->kind == DECL_struct && (decl->modifiers & MODIFIER_private))
        report(c, DIAG_private_struct, decl->loc, decl->name->text);
    Decl *parent = decl_type_around(decl);
    if (parent && parent->kind != DECL_extension && (decl->modifiers & MODIFIER_public) &&
        decl_visibility(c, parent) != VISIBLE_public) {
        report(c, DIAG_more_visible, decl->loc, decl->name->text, parent->name ? parent->name->text : "?");
        return;
    }
    bool local = decl->kind == DECL_var && decl->flavour == VAR_local;
    if (!local && decl_visibility(c, decl) == VISIBLE_public) check_shown_types(c, decl);
}

/* ---- everything about one declaration */

static void check_members(Checker *c, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++)
        if (!decl_is_extern_field(decl->members.at[i])) check_declaration(c, decl->members.at[i]);
}

Decl *field_named(const Decl *type, Name name) {
    for (int i = 0; i < type->members.count; i++) {
        Decl *member = type->members.at[i];
        bool field = member->kind == DECL_var && !(member->modifiers & MODIFIER_static);
        if (field && member->name == name) return member;
    }
    return NULL;
}

/* Is there such a field, with that type? */
static bool redeclares_field(Checker *c, Decl *extension, Decl *member) {
    const Type *type = this_type_of(c, extension);
    const Decl *head = type_head(c, type);
    Decl *field = head && decl_is_extern_field(member) ? field_named(head, member->name) : NULL;
    if (!field || !member->type_expr) return false;
    Env env = env_for_decl(c, extension);
    const Type *have = resolve_type(&env, member->type_expr), *wanted = check_field_type(c, type, field);
    if (!types_match(c, have, wanted)) {
        report(c, DIAG_extern_field_type, member->loc, member->name->text, type_str(c, wanted),
               type_str(c, have));
        note(c, DIAG_note_declared_here, field->loc, field->name->text);
    }
    return true;
}

static void check_no_fields(Checker *c, Decl *decl) {
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        if (member->kind != DECL_var || (member->modifiers & MODIFIER_static) || !member->name) continue;
        if (decl->kind == DECL_extension && redeclares_field(c, decl, member)) continue;
        if (decl->kind == DECL_extension) report(c, DIAG_extension_field, member->loc, member->name->text);
        else {
            const char *type = type_str(c, decl_value_type(c, member));
            report(c, DIAG_interface_field, member->loc, member->name->text, type, member->name->text);
        }
    }
}

/* Besides its integer type an enum may name what it conforms to. */
static void check_enum_bases(Checker *c, Decl *decl) {
    Env env = env_for_decl(c, decl);
    for (int i = 0; i < decl->bases.count; i++) {
        const Type *base = resolve_type(&env, decl->bases.at[i]);
        if (base->kind == TYPE_interface && !check_conforms(c, this_type_of(c, decl), base, NULL))
            report(c, DIAG_constraint_not_met, decl->bases.at[i]->loc, type_str(c, this_type_of(c, decl)),
                   type_str(c, base));
    }
}

static void check_type_decl(Checker *c, Decl *decl) {
    ensure_header(c, decl);
    ensure_generics(c, decl);
    if (decl->kind == DECL_extension && has_error(this_type_of(c, decl)))
        return; /* of nothing: said already */
    ensure_bases(c, decl);
    if (decl->kind == DECL_extension || decl->kind == DECL_interface) check_no_fields(c, decl);
    check_members(c, decl);
    check_redeclarations(c, decl);
    if (decl->kind == DECL_struct) check_containment(c, decl);
    if (decl->kind == DECL_enum) check_enum_bases(c, decl);
    if (decl->kind == DECL_struct || decl->kind == DECL_extension) check_conformances(c, decl);
}

/* Of what the host sets. */
static void warn_unused_init(Checker *c, const Decl *decl) {
    if (!decl->init || decl->init->kind == EXPR_error || !decl->name) return;
    report(c, DIAG_uniform_init, decl->init->loc, decl->name->text);
    if (decl->flavour == VAR_global) note(c, DIAG_note_shader_parameter, decl->loc, decl->name->text);
}

static void check_global(Checker *c, Decl *decl) {
    check_attributes(c, decl);
    bool global = decl->flavour == VAR_global;
    if (global && decl->init && (decl->modifiers & MODIFIER_const) &&
        !(decl->modifiers & (MODIFIER_static | MODIFIER_extern)))
        report(c, DIAG_const_without_static, decl->loc, decl->name->text);
    if ((decl->modifiers & MODIFIER_groupshared) && decl->init)
        report(c, DIAG_groupshared_init, decl->loc, decl->name->text);
    uint32_t constant = MODIFIER_static | MODIFIER_const;
    bool required = decl->parent && decl->parent->kind == DECL_interface;
    if ((decl->modifiers & constant) == constant && !decl->init && !required)
        report(c, DIAG_constant_needs_value, decl->loc, decl->name->text);
    check_decl_body(c, decl);
    check_constant_cycle(c, decl);
    uint32_t own = constant | MODIFIER_extern | MODIFIER_groupshared;
    if (global && !(decl->modifiers & own)) warn_unused_init(c, decl);
}

static void check_entry_point(Checker *c, Decl *func);

void check_declaration(Checker *c, Decl *decl) {
    switch ((DeclKind)decl->kind) {
    case DECL_module:
    case DECL_namespace:
        check_members(c, decl);
        check_redeclarations(c, decl);
        break;
    case DECL_struct:
    case DECL_enum:
    case DECL_interface:
    case DECL_extension:
    case DECL_attribute: check_type_decl(c, decl); break;
    case DECL_func:
        check_decl_body(c, decl);
        check_diff_attributes(c, decl);
        check_entry_point(c, decl);
        break;
    case DECL_var: check_global(c, decl); break;
    case DECL_property:
    case DECL_subscript:
        ensure_header(c, decl);
        check_members(c, decl);
        break;
    case DECL_buffer_block: check_members(c, decl); break;
    case DECL_alias:
    case DECL_assoc:
        ensure_header(c, decl);
        if (decl->kind == DECL_assoc) ensure_bases(c, decl);
        break;
    case DECL_constraint: ensure_generics(c, decl); break;
    case DECL_case: ensure_header(c, decl); break;
    default: break;
    }
    check_visibility(c, decl);
    check_portable(c, decl);
}

/* everything in it, called or not */
static void check_module(Checker *c, Decl *module) {
    const Decl *context = c->context;
    c->context = module;
    check_declaration(c, module);
    check_diff_requests(c);
    c->context = context;
    diags_flush(c->diags);
}

void check_imported(Checker *c) {
    link_externs(c);
    for (int i = 0; i < c->modules.count; i++)
        if (c->modules.at[i] != c->prelude) check_module(c, c->modules.at[i]);
}

/* ---- entry points */

static const char *const semantics[] = {"SV_DispatchThreadID", "SV_GroupID", "SV_GroupThreadID",
                                        "SV_GroupIndex"};

static bool same_ignoring_case(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a | 32) != (*b | 32)) return false;
    return *a == *b;
}

int check_semantic(Name name) {
    for (int i = 0; i < 4; i++)
        if (same_ignoring_case(name->text, semantics[i])) return i;
    return -1;
}

/* Who asks which thread it is expects more than one. */
static void warn_group_size(Checker *c, const Decl *func, const Decl *param) {
    if (func->sema->group_size[0] || func->flags & DECL_LAUNCHED) return;
    report(c, DIAG_no_group_size, param->loc, func->name->text, param->semantic->text);
    note(c, DIAG_note_write_numthreads, func->loc);
}

/* A struct of which some field is told by the machine, as in `struct Input { uint3 id : SV_DispatchThreadID;
 * }`. */
static bool has_semantics(Checker *c, const Type *type) {
    if (type->kind != TYPE_struct) return false;
    DeclVec fields = check_all_fields(c, type);
    for (int i = 0; i < fields.count; i++) {
        const Decl *field = fields.at[i];
        if (field->semantic ? check_semantic(field->semantic) >= 0
                            : has_semantics(c, check_field_type(c, type, fields.at[i])))
            return true;
    }
    return false;
}

bool check_takes_thread(Checker *c, const Decl *param) {
    if (param->semantic) return check_semantic(param->semantic) >= 0;
    return param->type && !(param->modifiers & MODIFIER_uniform) && has_semantics(c, param->type);
}

static bool report_unknown_semantic(Checker *c, const Decl *decl) {
    if (!decl->semantic || check_semantic(decl->semantic) >= 0 ||
        !same_ignoring_case(format_text(c->arena, "%.3s", decl->semantic->text), "SV_"))
        return false;
    report(c, DIAG_unknown_semantic, decl->loc, decl->semantic->text);
    return true;
}

/* A parameter, or a field of one. */
static void check_thread_value(Checker *c, const Decl *func, const Decl *decl, const Type *type) {
    if (has_error(type)) return;
    if (!decl->semantic && has_semantics(c, type)) {
        DeclVec fields = check_all_fields(c, type);
        for (int i = 0; i < fields.count; i++)
            check_thread_value(c, func, fields.at[i], check_field_type(c, type, fields.at[i]));
        return;
    }
    if (!decl->semantic || check_semantic(decl->semantic) < 0) {
        if (!report_unknown_semantic(c, decl)) report(c, DIAG_field_semantic, decl->loc, decl->name->text);
        return;
    }
    warn_group_size(c, func, decl);
    bool vector = type->kind == TYPE_vector;
    const Type *element = vector ? type->args[0] : type;
    if (!type_is_integer(element) || (vector && type_count(type) > 3))
        report(c, DIAG_semantic_type, decl->loc, decl->semantic->text, type_str(c, type));
}

static void check_entry_point(Checker *c, Decl *func) {
    if (!(func->flags & DECL_ENTRY)) return;
    for (int i = 0; i < func->params.count; i++) {
        Decl *param = func->params.at[i];
        if (!param->type || has_error(param->type)) continue;
        if (check_takes_thread(c, param)) {
            check_thread_value(c, func, param, param->type);
            continue;
        }
        bool refers = param->type->kind == TYPE_buffer || param->type->kind == TYPE_pointer;
        if (!report_unknown_semantic(c, param) && !refers && !(func->flags & DECL_LAUNCHED) &&
            !(param->modifiers & MODIFIER_uniform))
            report(c, DIAG_implied_uniform, param->loc, param->name ? param->name->text : "?");
        warn_unused_init(c, param);
    }
}

/* ---- lookup from outside */

/* Looks up an expression as a user would write it at the end of `module`, e.g. "Camera.project" or
 * "bwd_diff(f<float>)". The result is an EXPR_decl, EXPR_type or EXPR_overload with one candidate and modes;
 * NULL after an error. */
static Expr *check_lookup(Checker *c, Decl *module, Expr *expr) {
    c->unknown_in = NULL; /* who asks again is told again */
    Env env = {.c = c, .scope = scope_inside(c, module), .decl = module};
    Expr *e = check_term(&env, expr);
    diags_flush(c->diags);
    return e->kind == EXPR_error ? NULL : e;
}

const DeclVec *check_modules(Checker *c) { return &c->modules; }

/* f(float, float3): the types of the parameters tell which of several functions is meant. */
typedef struct Wanted {
    bool is_said;
    bool is_wrong; /* a type was not found */
    VEC(const Type *) types;
} Wanted;

/* The types of the parameters tell about generic arguments that were not written. */
static void infer_from_wanted(Inference *inference, const Candidate *candidate, const Wanted *wanted) {
    const FuncSig *sig = signature_of(inference->c, candidate->decl);
    for (int i = 0; wanted->is_said && sig->nparams == wanted->types.count && i < sig->nparams; i++)
        infer_match(inference, check_subst(inference->c, sig->params[i].type, candidate->subst),
                    wanted->types.at[i]);
}

/* Explicit generic arguments, and those that follow from the types of parameters, must be all there are. With
 * a `loc` it is told what they do not satisfy. */
static bool complete_candidate(Checker *c, const Candidate *candidate, const Wanted *wanted,
                               const Subst **subst, Loc loc) {
    Decl *decl = candidate->decl;
    ensure_header(c, decl);
    *subst = candidate->subst;
    int n = generic_count(decl);
    if (n == 0) return candidate->nargs == 0;
    Inference inference = {.c = c, .owner = decl, .args = arena_array(c->arena, const Type *, n), .nargs = n};
    if (!take_written_args(&inference, candidate)) return false;
    infer_from_wanted(&inference, candidate, wanted);
    return infer_finish(&inference, candidate->subst, subst) && constraints_hold(c, decl, *subst, loc);
}

/* Takes the types out of the expression, from within derivative operators. */
static Wanted take_wanted(Checker *c, Decl *module, Expr **at) {
    Wanted wanted = {0};
    while ((*at)->kind == EXPR_bwd_diff || (*at)->kind == EXPR_fwd_diff || (*at)->kind == EXPR_paren)
        at = &(*at)->a;
    Expr *call = *at;
    if (call->kind != EXPR_call) return wanted;
    wanted.is_said = true;
    for (int i = 0; i < call->args.count; i++) {
        const Type *type = check_type(c, module, call->args.at[i]);
        wanted.is_wrong |= !type;
        vec_push(c->arena, &wanted.types, type);
    }
    diags_flush(c->diags);
    *at = call->a;
    return wanted;
}

static bool is_wanted(Checker *c, const Wanted *wanted, Decl *decl, const Subst *subst) {
    if (!wanted->is_said) return true;
    FuncSig sig = check_signature_of(c, decl, subst, NULL, 0, true);
    if (sig.nparams != wanted->types.count) return false;
    for (int i = 0; i < sig.nparams; i++)
        if (sig.params[i].type != wanted->types.at[i]) return false;
    return true;
}

static const char *wanted_text(Checker *c, const Wanted *wanted) {
    Text text = {.arena = c->arena};
    for (int i = 0; i < wanted->types.count; i++)
        text_printf(&text, "%s%s", i ? ", " : "", type_str(c, wanted->types.at[i]));
    return text.len ? text.at : "";
}

/* What would choose the first of them. */
static const char *choice_text(Checker *c, const Candidate *candidate, const char *name) {
    FuncSig *sig = signature_of(c, candidate->decl);
    Wanted first = {0};
    for (int i = 0; i < sig->nparams; i++) vec_push(c->arena, &first.types, sig->params[i].type);
    return format_text(c->arena, "%s(%s)", name, wanted_text(c, &first));
}

static void report_choice(Checker *c, Loc loc, const Candidates *list, const Wanted *wanted) {
    const char *name = list->name ? list->name->text : "?";
    if (wanted->is_said) report(c, DIAG_no_overload, loc, name, wanted_text(c, wanted));
    else report(c, DIAG_which_overload, loc, name);
    for (int i = 0; i < list->count && i < 6; i++)
        note(c, DIAG_note_candidate, list->at[i].decl->loc,
             signature_text(c, name, signature_of(c, list->at[i].decl)));
    if (!wanted->is_said) note(c, DIAG_note_choose_overload, loc, choice_text(c, &list->at[0], name));
}

/* Of the only function of that name. False: nothing is wrong with them. */
static bool refuse_arguments(Checker *c, Decl *module, const Candidate *candidate, const char *name,
                             const Wanted *wanted, Loc loc) {
    Env env = {.c = c, .scope = scope_inside(c, module), .decl = module};
    const Subst *subst;
    int failures = c->diags->failures;
    if (!refuse_written_args(&env, loc, candidate, name))
        complete_candidate(c, candidate, wanted, &subst, loc);
    diags_flush(c->diags);
    return c->diags->failures > failures;
}

bool check_function(Checker *c, Decl *module, Expr *expr, CheckedFunction *out) {
    Wanted wanted = take_wanted(c, module, &expr);
    if (wanted.is_wrong) return false;
    Loc loc = expr->loc;
    Expr *e = check_lookup(c, module, expr);
    if (!e) return false;
    if (e->kind != EXPR_overload) {
        report(c, DIAG_not_a_function, loc);
        return false;
    }
    const Candidates *list = e->candidates;
    const Candidate *found = NULL;
    int fitting = 0;
    for (int i = 0; i < list->count; i++) {
        const Subst *subst;
        if (!complete_candidate(c, &list->at[i], &wanted, &subst, 0)) continue;
        if (!is_wanted(c, &wanted, list->at[i].decl, subst)) continue;
        bool declared_only = !list->at[i].decl->body && !list->at[i].decl->lazy.count && found;
        if (declared_only) continue;
        int order = found && wanted.is_said ? compare_candidates(c, found, &list->at[i]) : 0;
        if (order < 0) continue;
        if (order > 0) fitting = 0;
        if (!found || fitting == 0 || found->decl->body || found->decl->lazy.count) fitting++;
        found = &list->at[i];
        *out = (CheckedFunction){.decl = found->decl, .subst = subst, .nmodes = list->nmodes};
        memcpy(out->modes, list->modes, sizeof out->modes);
    }
    if (fitting == 1) {
        int failures = c->diags->failures;
        c->diff_searched[0] = c->diff_searched[1] = (Map){0}; /* what was lost before is lost again */
        flow_request(c, out->decl, out->modes, out->nmodes, loc);
        check_diff_requests(c);
        diags_flush(c->diags);
        return c->diags->failures == failures;
    }
    const char *name = list->name ? list->name->text : "?";
    if (list->count == 1 && refuse_arguments(c, module, &list->at[0], name, &wanted, loc)) return false;
    if (!found && !wanted.is_said) report(c, DIAG_cannot_infer, loc, "an argument", name, name);
    else report_choice(c, loc, list, &wanted);
    return false;
}

const Type *check_type(Checker *c, Decl *module, Expr *expr) {
    Env env = {.c = c, .scope = scope_inside(c, module), .decl = module};
    c->unknown_in = NULL; /* who asks again is told again */
    const Type *type = resolve_type(&env, expr);
    return is_error(type) ? NULL : type;
}

/* ---- -conformance T:I=ID */

static const Type *type_from_text(Checker *c, Str text, Loc *loc) {
    char *copy = format_text(c->arena, "%.*s", STR_ARG(text));
    SourceFile *file = source_add(c->sources, name_from(c->names, "-conformance"), str_of(copy));
    *loc = file->base;
    Expr *expr = syntax_parse_expr(c->config.syntax, file);
    Decl *module = NULL;
    for (int i = c->modules.count - 1; i >= 0;
         i--) /* the first that was loaded by name sees all it imports */
        if (c->modules.at[i] != c->prelude) module = c->modules.at[i];
    return expr && module ? check_type(c, module, expr) : NULL;
}

static bool split_conformance(const char *text, Str *type, Str *interface, int64_t *id) {
    const char *colon = strchr(text, ':'), *equal = strrchr(text, '=');
    while (colon && colon[1] == ':') colon = strchr(colon + 2, ':'); /* a::b */
    if (!colon) return false;
    *id = -1;
    *type = (Str){text, (int)(colon - text)};
    *interface = str_of(colon + 1);
    if (!equal || equal < colon) return true;
    interface->len = (int)(equal - colon - 1);
    const char *end;
    double number = number_parse(equal + 1, &end);
    if (end == equal + 1 || *end || !(number >= 0 && number < 4294967296.0)) return false;
    *id = (int64_t)number;
    return (double)*id == number;
}

/* What the options say, resolved once. */
static void resolve_conformances(Checker *c) {
    if (c->conformances_done) return;
    c->conformances_done = true;
    for (int i = 0; i < c->config.nconformances; i++) {
        Str type_name, interface_name;
        GivenConformance given = {0};
        if (!split_conformance(c->config.conformances[i], &type_name, &interface_name, &given.id)) {
            report(c, DIAG_bad_conformance_option, 0, c->config.conformances[i]);
            continue;
        }
        Loc loc, interface_loc;
        given.type = type_from_text(c, type_name, &loc);
        given.interface = type_from_text(c, interface_name, &interface_loc);
        if (!given.type || !given.interface) continue;
        if (given.interface->kind != TYPE_interface)
            report(c, DIAG_constraint_no_interface, interface_loc, type_str(c, given.interface));
        else if (!check_conforms(c, given.type, given.interface, NULL))
            report(c, DIAG_constraint_not_met, loc, type_str(c, given.type), type_str(c, given.interface));
        else vec_push(c->arena, &c->given, given);
    }
}

int64_t conformance_id(Checker *c, const Type *interface, const Type *type) {
    resolve_conformances(c);
    for (int i = 0; i < c->given.count; i++)
        if (c->given.at[i].type == type && c->given.at[i].interface == interface) return c->given.at[i].id;
    return -1;
}

bool conformance_id_taken(Checker *c, const Type *interface, int64_t id) {
    for (int i = 0; i < c->given.count; i++)
        if (c->given.at[i].interface == interface && c->given.at[i].id == id) return true;
    return false;
}

void check_add_conformances(Checker *c) {
    resolve_conformances(c);
    for (int i = 0; i < c->given.count; i++) {
        const GivenConformance *given = &c->given.at[i];
        check_add_conformer(c, given->interface, given->type);
        for (int k = 0; k < i && given->id >= 0; k++) {
            const GivenConformance *other = &c->given.at[k];
            if (other->interface == given->interface && other->id == given->id && other->type != given->type)
                report(c, DIAG_conformance_id_twice, 0, type_str(c, other->type), type_str(c, given->type),
                       (int)given->id, type_str(c, given->interface));
        }
    }
}
