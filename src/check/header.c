/* Headers: what must be known about a declaration before it can be used. Bodies come later, see stmt.c.
 *
 * Everything here is computed when first asked for. A declaration that needs itself for its own header (an
 * alias of itself, a variable whose inferred type depends on it) is found `busy` and reported. */
#include "check/checker.h"

Sema *decl_sema(Checker *c, Decl *decl) {
    if (!decl->sema) decl->sema = arena_new(c->arena, Sema);
    return decl->sema;
}

/* ---- bases */

static void add_base(Env *env, Decl *decl, Sema *sema, Expr *expr) {
    Checker *c = env->c;
    const Type *type = resolve_type(env, expr);
    if (has_error(type)) {
        decl->flags |= DECL_BASE_ERROR;
        return;
    }
    if (decl->kind == DECL_enum) {
        if (type_is_integer(type) || type->kind == TYPE_bool) sema->underlying = type;
        else if (type->kind != TYPE_interface) report_expr(c, expr, DIAG_enum_underlying, type_str(c, type));
        return;
    }
    if (type->kind == TYPE_interface) {
        vec_push(c->arena, &sema->interfaces, type);
        return;
    }
    if (decl->kind == DECL_struct && type->kind == TYPE_struct && !sema->base) {
        sema->base = type;
        report_expr(c, expr, DIAG_struct_inheritance);
        return;
    }
    if (decl->kind == DECL_assoc && type->kind == TYPE_param) { /* `associatedtype D : This`: equal to it */
        sema->underlying = type;
        return;
    }
    report_expr(c, expr, DIAG_bad_base, type_str(c, type));
    note(c, decl->kind == DECL_struct ? DIAG_note_struct_bases : DIAG_note_interface_bases, 0);
}

/* A struct must not inherit from itself, whatever the way. */
static void check_base_cycle(Checker *c, Decl *decl) {
    int steps = 0;
    for (const Type *base = decl_sema(c, decl)->base; base;
         base = decl_sema(c, (Decl *)(uintptr_t)base->decl)->base) {
        ensure_bases(c, (Decl *)(uintptr_t)base->decl);
        if (base->decl != decl && steps++ < 100) continue;
        report(c, DIAG_circular, decl->loc, decl->name->text);
        decl_sema(c, decl)->base = NULL;
        return;
    }
}

enum { MAX_INHERITANCE = 50 }; /* and see visit_inherited */

typedef struct Inheritance {
    const Decl *wanted;
    Map seen; /* declarations, each looked at once: diamonds over diamonds would make many paths */
    bool too_deep;
} Inheritance;

static bool inherits_from(Checker *c, const Type *interface, Inheritance *search, int depth) {
    if (interface->decl == search->wanted) return true;
    search->too_deep |= depth >= MAX_INHERITANCE;
    if (search->too_deep || map_has(&search->seen, PTR_KEY(interface->decl))) return false;
    map_put(c->arena, &search->seen, PTR_KEY(interface->decl), c);
    const Sema *sema = decl_sema(c, (Decl *)(uintptr_t)interface->decl);
    for (int i = 0; i < sema->interfaces.count; i++)
        if (inherits_from(c, sema->interfaces.at[i], search, depth + 1)) return true;
    return false;
}

static void check_interface_cycle(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    for (int i = 0; i < sema->interfaces.count; i++) {
        Inheritance search = {.wanted = decl};
        bool circular = inherits_from(c, sema->interfaces.at[i], &search, 0);
        if (circular) report(c, DIAG_circular, decl->loc, decl->name->text);
        else if (search.too_deep) report(c, DIAG_too_deep, decl->loc);
        else continue;
        sema->interfaces.count = 0;
    }
}

void ensure_bases(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    if (sema->bases_done || sema->bases_busy) return;
    sema->bases_busy = true;
    const Decl *context = c->context;
    c->context = decl;
    Env env = env_for_head(c, decl);
    for (int i = 0; i < decl->bases.count; i++) add_base(&env, decl, sema, decl->bases.at[i]);
    c->context = context;
    sema->bases_busy = false;
    sema->bases_done = true;
    if (sema->base) check_base_cycle(c, decl);
    if (decl->kind == DECL_interface) check_interface_cycle(c, decl);
}

/* ---- members of structs */

void ensure_members(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    if (sema->members_done) return;
    sema->members_done = true;
    for (int i = 0; i < decl->members.count; i++) {
        Decl *member = decl->members.at[i];
        bool is_field = member->kind == DECL_var && member->flavour == VAR_field;
        if (is_field && !(member->modifiers & MODIFIER_static)) vec_push(c->arena, &sema->fields, member);
        if (member->kind == DECL_func && member->flavour == FUNC_init)
            vec_push(c->arena, &sema->inits, member);
    }
}

/* ---- variables */

/* The width goes to `value`; 0: none after all. */
static void header_of_bit_field(Checker *c, Decl *decl) {
    Env env = env_for_decl(c, decl->parent);
    Expr *e = decl->bits = check_value(&env, decl->bits);
    int64_t width;
    if (e->kind == EXPR_error || has_error(decl->type)) return;
    if (!type_is_integer(decl->type))
        report(c, DIAG_bit_field_type, decl->loc, decl->name->text, type_str(c, decl->type));
    else if (!eval_number(&env, e, &width)) report_expr(c, e, DIAG_not_constant);
    else if (width < 0 || width > type_bits(decl->type))
        report_expr(c, e, DIAG_bit_field_width, type_str(c, decl->type), type_bits(decl->type));
    else decl_sema(c, decl)->value = width;
}

/* Which function a value of function type stands for is known where it is passed, and nowhere else. */
static bool holds_function(const Type *type) {
    if (type->kind == TYPE_function) return true;
    for (int i = 0; i < type->nargs; i++)
        if (holds_function(type->args[i])) return true;
    return false;
}

const Type *refuse_function_type(Checker *c, const Decl *decl, const Type *type) {
    bool alone = type->kind == TYPE_function && decl->flavour == VAR_param;
    if (alone || !holds_function(type)) return type;
    report(c, DIAG_function_data, decl->loc, decl->name ? decl->name->text : "?", type_str(c, type));
    return ERROR_TYPE(c);
}

/* What the program itself makes has a size; that of a parameter of the program is known to who binds it. */
static bool is_made(const Decl *decl) {
    return (decl->modifiers & (MODIFIER_static | MODIFIER_groupshared)) &&
           !(decl->modifiers & MODIFIER_extern);
}

static void header_of_var(Checker *c, Decl *decl) {
    Env env = env_for_decl(c, decl->parent ? decl->parent : decl);
    env.decl = decl->parent ? decl->parent : decl;
    if (decl->type_expr) {
        const Type *type = resolve_type(&env, decl->type_expr);
        bool unsized = type->kind == TYPE_array && type->nargs == 1;
        decl->type = unsized && decl->init ? sized_by_init(&env, type, decl) : type;
        if (is_made(decl)) decl->type = refuse_open_array(c, decl, decl->type);
    } else if (decl->init) {
        Env inside = env_for_decl(c, decl);
        int large = c->large.count;
        decl->init = check_value(&inside, decl->init);
        report_large_numbers(c, large);
        decl->type = decl->init->type ? decl->init->type : ERROR_TYPE(c);
        if (decl->type->kind == TYPE_list) {
            report(c, DIAG_list_needs_type, decl->loc);
            decl->type = ERROR_TYPE(c);
        }
    } else {
        report(c, DIAG_var_needs_type, decl->loc, decl->name ? decl->name->text : "?");
        decl->type = ERROR_TYPE(c);
    }
    if (decl->type->kind == TYPE_void) {
        report(c, DIAG_void_variable, decl->loc, decl->name ? decl->name->text : "?");
        decl->type = ERROR_TYPE(c);
    }
    decl->type = refuse_function_type(c, decl, decl->type);
    uint32_t major = decl->modifiers & (MODIFIER_column_major | MODIFIER_row_major);
    if (major) decl->type = type_with_major(c, decl->type, (major & MODIFIER_column_major) != 0);
    if (decl->bits) header_of_bit_field(c, decl);
}

/* ---- functions */

static uint8_t pass_mode(const Decl *param) {
    if (param->modifiers & MODIFIER_ref) return PASS_ref;
    if (param->modifiers & MODIFIER_constref) return PASS_constref;
    if (!(param->modifiers & MODIFIER_out)) return PASS_in;
    return param->modifiers & MODIFIER_in ? PASS_inout : PASS_out;
}

/* `int a[]` accepts any size and knows it inside: the function becomes generic over the size. */
static const Type *unsized_param(Checker *c, Decl *func, const Type *type) {
    if (type->kind != TYPE_array || type->nargs != 1) return type;
    if (!func->generics) func->generics = arena_new(c->arena, Generics);
    Name name = name_from(c->names, format_text(c->arena, "__size%d", func->generics->params.count));
    Decl *size = decl_new(c->arena, DECL_value_param, func->loc, name);
    size->parent = func;
    size->type = type_basic(c->types, TYPE_int);
    size->state = STATE_header;
    size->modifiers |= MODIFIER_synthesized;
    vec_push(c->arena, &func->generics->params, size);
    const Type *args[2] = {type->args[0], param_type(c, func, generic_count(func) - 1)};
    return type_make(c->types, TYPE_array, 0, NULL, NULL, 0, args, 2);
}

/* What is written to must be a place at every call. */
static void check_direction(Checker *c, const Decl *func, Decl *param) {
    uint8_t pass = pass_mode(param);
    if (pass == PASS_in || pass == PASS_constref) return;
    if (param->init) report(c, DIAG_default_of_output, param->loc, param->name ? param->name->text : "?");
    if (func->kind != DECL_subscript) return;
    report(c, DIAG_subscript_output, param->loc, param->name ? param->name->text : "?");
    param->modifiers &= ~(uint32_t)(MODIFIER_ref | MODIFIER_out);
}

static ParamSig param_signature(Checker *c, Env *env, Decl *func, Decl *param) {
    param->parent = func;
    if (!param->type) {
        const Type *type = param->type_expr ? resolve_type(env, param->type_expr) : ERROR_TYPE(c);
        if (!param->type_expr)
            report(c, DIAG_var_needs_type, param->loc, param->name ? param->name->text : "?");
        if (type->kind == TYPE_void) {
            report(c, DIAG_void_variable, param->loc, param->name ? param->name->text : "?");
            type = ERROR_TYPE(c);
        }
        type = refuse_function_type(c, param, type);
        check_direction(c, func, param);
        type = pack_argument(c, type); /* T v is `expand each T v` */
        param->type = unsized_param(c, func, type_with_major(c, type, false));
        param->state = STATE_header;
        check_attributes(c, param);
    }
    bool modified = param->type_expr && param->type_expr->kind == EXPR_modified_type &&
                    (param->type_expr->flags & EXPR_NO_DIFF);
    return (ParamSig){.name = param->name,
                      .type = param->type,
                      .pass = pass_mode(param),
                      .no_diff = (param->modifiers & MODIFIER_no_diff) || modified,
                      .is_pack = param->type->kind == TYPE_expand,
                      .is_error = func->throws && param == vec_last(&func->params),
                      .decl = param};
}

static Decl *new_value_param(Checker *c, Decl *setter, const Type *type) {
    Decl *param = decl_new(c->arena, DECL_var, setter->loc, c->known.newValue);
    param->flavour = VAR_param;
    param->parent = setter;
    param->type = type;
    param->state = STATE_header;
    param->modifiers |= MODIFIER_synthesized;
    return param;
}

/* Accessors take the parameters of their subscript, and a setter the new value. */
static void accessor_params(Checker *c, Decl *func, DeclVec *params) {
    Decl *owner = func->parent;
    ensure_header(c, owner);
    for (int i = 0; i < owner->params.count; i++) vec_push(c->arena, params, owner->params.at[i]);
    if (func->flavour != FUNC_set) return;
    if (func->params.count == 0) {
        vec_push(c->arena, &func->params, new_value_param(c, func, owner->type));
        func->scope = NULL; /* it has a name to show now */
    }
    Decl *value = func->params.at[0];
    if (!value->type && !value->type_expr) value->type = owner->type;
    vec_push(c->arena, params, value);
}

static const Type *result_of(Checker *c, Env *env, Decl *func, FuncSig *sig) {
    const Type *none = type_basic(c->types, TYPE_void);
    bool address = func->flavour == FUNC_plain && decl_sema(c, func)->ref_accessor;
    if (address) return type_pointer(c->types, func->parent->type);
    switch ((FuncFlavour)func->flavour) {
    case FUNC_init: return this_type_of(c, decl_type_around(func));
    case FUNC_get: return func->parent->type;
    case FUNC_ref: return func->parent->type;
    case FUNC_set: return none;
    case FUNC_plain:
    case FUNC_lambda: break;
    }
    if (func->type_expr && func->type_expr->kind == EXPR_modified_type &&
        (func->type_expr->flags & EXPR_NO_DIFF))
        sig->result_no_diff = true;
    const Type *type = func->type_expr ? type_with_major(c, resolve_type(env, func->type_expr), false) : none;
    if (!holds_function(type)) return type;
    report(c, DIAG_function_result, func->loc, type_str(c, type));
    return ERROR_TYPE(c);
}

static void this_signature(Checker *c, Decl *func, FuncSig *sig) {
    Decl *type = decl_type_around(func);
    if (!type || decl_is_static(func)) return;
    sig->has_this = true;
    sig->this_type = this_type_of(c, type);
    bool setter = func->flavour == FUNC_set || func->flavour == FUNC_ref;
    bool writes = setter ? !(func->flags & DECL_NONMUTATING) : (func->flags & DECL_MUTATING) != 0;
    sig->this_pass = writes ? PASS_inout : PASS_in;
    sig->this_no_diff = (func->flags & DECL_NO_DIFF_THIS) != 0;
    bool paired = (func->flags & DECL_DERIV_METHOD) && (is_differentiable_type(c, sig->this_type) ||
                                                        is_ptr_differentiable_type(c, sig->this_type));
    if (paired) {
        bool pointer = is_ptr_differentiable_type(c, sig->this_type);
        sig->this_type = type_wrap(c->types, pointer ? TYPE_ptr_pair : TYPE_pair, sig->this_type);
    }
}

static void mark_requirement(Decl *func) {
    Decl *owner = func->parent;
    if (owner && (owner->kind == DECL_property || owner->kind == DECL_subscript)) owner = owner->parent;
    if (!owner || owner->kind != DECL_interface) return;
    func->flags |= DECL_REQUIREMENT;
    if (func->body || func->lazy.count) func->flags |= DECL_HAS_DEFAULT;
}

FuncSig *signature_of(Checker *c, Decl *func) {
    ensure_header(c, func);
    return decl_sema(c, func)->sig;
}

static void check_parameter_names(Checker *c, const DeclVec *params) {
    for (int i = 1; i < params->count; i++)
        for (int k = 0; k < i; k++) {
            if (!params->at[i]->name || params->at[i]->name != params->at[k]->name) continue;
            report(c, DIAG_redeclared, params->at[i]->loc, params->at[i]->name->text);
            note(c, DIAG_note_declared_here, params->at[k]->loc, params->at[k]->name->text);
            break;
        }
}

/* Operators of which none of the program's own is called. */
static void refuse_operator(Checker *c, const Decl *func) {
    const char *name = func->name ? func->name->text : "";
    if (strncmp(name, "operator", strlen("operator")) != 0) return;
    const char *op = name + strlen("operator"), *why = NULL;
    bool is_method = decl_type_around(func) && !(func->modifiers & MODIFIER_static);
    int operands = func->params.count + (is_method ? 1 : 0);
    if (strcmp(op, "[]") == 0)
        why = "elements are given by __subscript(int i) -> T { get { ... } set { ... } }";
    if (strcmp(op, "()") == 0 && !decl_type_around(func))
        why = "what is called is an object; write it in the struct";
    if (strcmp(op, "&") == 0 && operands == 1) why = "'&' with one operand is its address; write a function";
    if (why) report(c, DIAG_operator_refused, func->loc, op, why);
}

/* 'get' and 'ref' are given nothing, 'set' the new value. */
static void check_accessor_params(Checker *c, const Decl *func, const FuncSig *sig) {
    bool sets = func->flavour == FUNC_set;
    const Decl *owner = func->parent;
    const ParamSig *value = sets ? &sig->params[sig->nparams - 1] : NULL;
    bool fits = func->params.count == (sets ? 1 : 0);
    if (fits && sets) fits = value->pass == PASS_in && (value->type == owner->type || has_error(value->type));
    if (fits || has_error(owner->type)) return;
    const char *name = sets ? "set" : func->flavour == FUNC_get ? "get" : "ref";
    Loc loc = func->params.at[func->params.count > 1 && sets ? 1 : 0]->loc;
    report(c, DIAG_accessor_params, loc, name,
           sets
               ? format_text(c->arena, "one parameter, the new value, of type '%s'", type_str(c, owner->type))
               : "no parameters");
}

static void header_of_func(Checker *c, Decl *func) {
    place_apply(c, func);
    Sema *sema = decl_sema(c, func);
    FuncSig *sig = sema->sig = arena_new(c->arena, FuncSig);
    sig->result = ERROR_TYPE(c); /* until known: silences whoever asks in between */
    mark_requirement(func);
    check_attributes(c, func);
    ensure_generics(c, func);
    DeclVec params = {0};
    bool accessor = func->flavour == FUNC_get || func->flavour == FUNC_set || func->flavour == FUNC_ref ||
                    sema->ref_accessor;
    Env env = env_for_decl(c, func);
    if (func->throws) add_error_param(c, &env, func);
    if (accessor) accessor_params(c, func, &params);
    else params = func->params;
    if (accessor) env = env_for_decl(c, func); /* the new value has a name */
    sig->params = arena_array(c->arena, ParamSig, params.count ? params.count : 1);
    for (int i = 0; i < params.count; i++) {
        sig->params[i] = param_signature(
            c, &env, accessor && params.at[i]->parent != func ? func->parent : func, params.at[i]);
        sig->nparams = i + 1;
        bool no_default = i > 0 && params.at[i - 1]->init && !params.at[i]->init && !sig->params[i].is_pack &&
                          !sig->params[i].is_error && !accessor;
        if (no_default)
            report(c, DIAG_default_order, params.at[i]->loc,
                   params.at[i]->name ? params.at[i]->name->text : "?");
    }
    check_parameter_names(c, &params);
    if (accessor && func->flavour != FUNC_plain) check_accessor_params(c, func, sig);
    refuse_operator(c, func);
    bool of_no_diff = accessor && check_is_no_diff_field(func->parent); /* such a property */
    sig->result_no_diff = (func->modifiers & MODIFIER_no_diff) || of_no_diff;
    if (of_no_diff && func->flavour == FUNC_set) sig->params[sig->nparams - 1].no_diff = true;
    sig->is_init = func->flavour == FUNC_init;
    sig->result = result_of(c, &env, func, sig);
    this_signature(c, func, sig);
}

/* ---- enums */

static int64_t value_of_init(Checker *c, Decl *owner, Decl *decl) {
    Env env = env_for_decl(c, owner);
    int64_t value = 0;
    int errors = c->diags->errors;
    Expr *e = decl->init = check_value(&env, decl->init);
    if (e->kind == EXPR_error || eval_number(&env, e, &value) || c->diags->errors > errors) return value;
    if (type_is_scalar(e->type) && !type_is_float(e->type)) report_expr(c, e, DIAG_not_constant);
    else report_expr(c, e, DIAG_needs_integer, type_str(c, e->type));
    return 0;
}

/* Flags double, from 1 on, also after a case that stands for none of them. */
static int64_t value_after(const Decl *owner, int64_t before) {
    if (!(owner->flags & DECL_FLAGS_ENUM)) return (int64_t)((uint64_t)before + 1);
    return before == 0 ? 1 : (int64_t)((uint64_t)before * 2);
}

static void case_value(Checker *c, Decl *owner, int index) {
    Decl *decl = owner->members.at[index];
    if (decl->state != STATE_new) return;
    decl->state = STATE_busy;
    Sema *sema = decl_sema(c, decl);
    if (decl->init) sema->value = value_of_init(c, owner, decl);
    else if (index == 0) sema->value = owner->flags & DECL_FLAGS_ENUM ? 1 : 0;
    else {
        case_value(c, owner, index - 1);
        sema->value = value_after(owner, decl_sema(c, owner->members.at[index - 1])->value);
    }
    ensure_header(c, owner); /* not by its type: an enum that depends on itself has none */
    const Type *underlying = decl_sema(c, owner)->underlying;
    if (!underlying) underlying = type_basic(c->types, TYPE_int); /* too deep, which is said */
    if (!constant_fits(sema->value, underlying))
        report(c, DIAG_constant_wraps, decl->loc, type_str(c, underlying));
    sema->value = number_wrap(sema->value, underlying);
    decl->state = STATE_header;
}

/* Cases count on from the one before: all up to this one, in order. */
static void header_of_case(Checker *c, Decl *decl) {
    Decl *owner = decl->parent;
    check_attributes(c, decl);
    decl->type = type_of_type_decl(c, owner);
    decl->state = STATE_new;
    int index = (int)decl->number, first = index;
    while (first > 0 && !owner->members.at[first]->init && owner->members.at[first - 1]->state == STATE_new)
        first--;
    for (int i = first; i <= index; i++) {
        owner->members.at[i]->type = decl->type;
        case_value(c, owner, i);
    }
}

static void header_of_enum(Checker *c, Decl *decl) {
    check_attributes(c, decl);
    Sema *sema = decl_sema(c, decl);
    sema->underlying = type_basic(c->types, TYPE_int);
    ensure_bases(c, decl);
}

/* ---- the rest */

/* struct S : I = Other; */
static void check_alias_bases(Checker *c, Env *env, Decl *decl) {
    for (int i = 0; i < decl->bases.count; i++) {
        Expr *base = decl->bases.at[i];
        const Type *interface = resolve_type(env, base);
        if (has_error(decl->type) || has_error(interface) || check_conforms(c, decl->type, interface, NULL))
            continue;
        report(c, DIAG_constraint_not_met, base->loc, type_str(c, decl->type), type_str(c, interface));
    }
}

static void header_of_alias(Checker *c, Decl *decl) {
    ensure_generics(c, decl);
    Env env = env_for_decl(c, decl);
    const Decl *context = c->context;
    c->context = decl;
    decl->type = decl->type_expr ? resolve_type(&env, decl->type_expr) : ERROR_TYPE(c);
    check_alias_bases(c, &env, decl);
    c->context = context;
}

static void header_of_extension(Checker *c, Decl *decl) {
    Sema *sema = decl_sema(c, decl);
    sema->target = ERROR_TYPE(c);
    Env env = {.c = c, .scope = scope_inside(c, decl), .decl = decl};
    if (env.scope->decl == decl && !env.scope->is_generics)
        env.scope = env.scope->outer; /* not its own members */
    const Type *target = resolve_type(&env, decl->target);
    if (target->kind == TYPE_interface) {
        report(c, DIAG_extend_interface, decl->target->loc, type_str(c, target), type_str(c, target));
        for (int i = 0; i < decl->members.count; i++)
            if (decl->members.at[i]->name)
                map_put(c->arena, &c->refused_members, PTR_KEY(decl->members.at[i]->name), decl);
        target = ERROR_TYPE(c);
    }
    sema->target = target;
}

static Decl *made_from_ref(Checker *c, Decl *owner, Decl *ref, FuncFlavour flavour, Name name) {
    Decl *made = decl_new(c->arena, DECL_func, ref->loc, name);
    made->flavour = (uint8_t)flavour;
    made->parent = owner;
    made->modifiers = ref->modifiers | MODIFIER_synthesized;
    made->flags = ref->flags;
    decl_sema(c, made)->ref_accessor = ref;
    return made;
}

/* `ref { return place; }` serves as get, which reads the place, as set, which writes it, and as a function
 * that gives its address. */
static void split_ref_accessor(Checker *c, Decl *owner, Decl *ref) {
    ensure_header(c, ref);
    for (FuncFlavour flavour = FUNC_get; flavour <= FUNC_set; flavour++)
        vec_push(c->arena, &owner->members, made_from_ref(c, owner, ref, flavour, NULL));
    Decl *address = made_from_ref(c, owner, ref, FUNC_plain, name_from(c->names, "address"));
    address->flags &= ~(uint32_t)(DECL_FWD | DECL_BWD);
    decl_sema(c, ref)->address = address;
}

/* `property int p;` in an interface is `property int p { get; set; }`. */
static void add_accessors(Checker *c, Decl *decl) {
    for (FuncFlavour flavour = FUNC_get; flavour <= FUNC_set; flavour++) {
        Name name = name_from(c->names, flavour == FUNC_get ? "get" : "set");
        Decl *accessor = decl_new(c->arena, DECL_func, decl->loc, name);
        accessor->flavour = (uint8_t)flavour;
        accessor->parent = decl;
        vec_push(c->arena, &decl->members, accessor);
    }
}

static void header_of_property(Checker *c, Decl *decl) {
    ensure_generics(c, decl);
    Env env = env_for_decl(c, decl);
    decl->type = decl->type_expr ? resolve_type(&env, decl->type_expr) : ERROR_TYPE(c);
    for (int i = 0; i < decl->params.count; i++) param_signature(c, &env, decl, decl->params.at[i]);
    check_attributes(c, decl);
    for (int i = 0, n = decl->members.count; i < n; i++)
        if (decl->members.at[i]->kind == DECL_func && decl->members.at[i]->flavour == FUNC_ref)
            split_ref_accessor(c, decl, decl->members.at[i]);
    if (decl->members.count == 0) add_accessors(c, decl);
}

static void header_of(Checker *c, Decl *decl) {
    switch ((DeclKind)decl->kind) {
    case DECL_var: header_of_var(c, decl); break;
    case DECL_func: header_of_func(c, decl); break;
    case DECL_alias: header_of_alias(c, decl); break;
    case DECL_extension: header_of_extension(c, decl); break;
    case DECL_enum: header_of_enum(c, decl); break;
    case DECL_case: header_of_case(c, decl); break;
    case DECL_property:
    case DECL_subscript: header_of_property(c, decl); break;
    case DECL_value_param: {
        Env env =
            env_for_decl(c, decl->parent); /* its type is written outside of what it is a parameter of */
        while (env.scope && env.scope->decl == decl->parent && !env.scope->is_generics)
            env.scope = env.scope->outer;
        decl->type = decl->type_expr ? resolve_type(&env, decl->type_expr)
                     : decl->init    ? check_value(&env, decl->init)->type
                                     : type_basic(c->types, TYPE_int);
        break;
    }
    case DECL_struct:
    case DECL_interface: check_attributes(c, decl); break;
    default: break;
    }
}

static void report_circular(Checker *c, Decl *decl) {
    if (decl->kind == DECL_func || decl->kind == DECL_extension || decl->kind == DECL_property ||
        decl->kind == DECL_subscript)
        return; /* half of it is known, which is enough for whoever asks */
    if (decl->type) return;
    report(c, DIAG_circular, decl->loc, decl->name ? decl->name->text : "?");
    decl->type = ERROR_TYPE(c);
}

#define MAX_DEPTH 400

void ensure_header(Checker *c, Decl *decl) {
    if (decl->state == STATE_busy) report_circular(c, decl);
    if (decl->state != STATE_new) return;
    if (c->depth > MAX_DEPTH) {
        if (!c->too_deep) report(c, DIAG_too_deep, decl->loc);
        c->too_deep = true;
        if (!decl->type) decl->type = ERROR_TYPE(c);
        return;
    }
    c->depth++;
    decl->state = STATE_busy;
    const Decl *context = c->context, *header = c->header;
    c->header = decl;
    if (decl->kind != DECL_var || decl->flavour != VAR_local) c->context = decl;
    int muted = c->diags->muted; /* what is found out here is said here, even during a trial */
    c->diags->muted = 0;
    header_of(c, decl);
    c->diags->muted = muted;
    c->context = context;
    c->header = header;
    if (decl->state == STATE_busy) decl->state = STATE_header;
    c->depth--;
}

const Type *decl_value_type(Checker *c, Decl *decl) {
    ensure_header(c, decl);
    return decl->type ? decl->type : ERROR_TYPE(c);
}

void check_decl_header(Checker *c, Decl *decl) { ensure_header(c, decl); }
const FuncSig *check_signature(Checker *c, Decl *func) { return signature_of(c, func); }
