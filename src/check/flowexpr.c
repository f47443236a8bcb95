/* The derivative data-flow check: expressions and places. */
#include "check/flow.h"

/* ---- types, as this function sees them */

typedef struct TypeFacts {
    bool diff;
    bool holds;        /* numbers that could have derivatives, in a type that has none */
    const Type *plain; /* ... the struct without which it would be differentiable */
    DeclVec fields;
    enum { FIELD_unknown, FIELD_plain, FIELD_diff } * kinds; /* of the fields */
} TypeFacts;

static TypeFacts *facts_of(FlowWalk *w, const Type *type);

static bool could_hold(FlowWalk *w, const Type *type) {
    const TypeFacts *facts = facts_of(w, type);
    return facts->diff || facts->holds;
}

/* A reference to elsewhere is no value that could have been differentiable; but where it is kept, its
 * counterpart must have a place too. */
static bool keeps(FlowWalk *w, const Type *type) {
    return could_hold(w, type) || is_ptr_differentiable_type(w->c, type);
}

static void find_numbers(FlowWalk *w, const Type *type, TypeFacts *facts) {
    bool own = false;
    switch (type->kind) {
    case TYPE_interface:
    case TYPE_param:
    case TYPE_assoc:
        facts->holds = !is_ptr_differentiable_type(w->c, type);
        if (type->kind == TYPE_interface && may_be_ptr_pair(w->c, type)) facts->plain = type;
        break;
    case TYPE_array:
    case TYPE_optional:
    case TYPE_tuple:
        for (int i = 0; i < type->nargs && (i == 0 || type->kind == TYPE_tuple); i++) {
            const TypeFacts *part = facts_of(w, type->args[i]);
            facts->holds |= part->diff || part->holds;
            if (part->plain) facts->plain = part->plain;
        }
        break;
    case TYPE_struct:
        if (is_ptr_differentiable_type(w->c, type)) break;
        for (int i = 0; i < facts->fields.count; i++) {
            Decl *field = facts->fields.at[i];
            own |= !check_is_no_diff_field(field) && keeps(w, check_field_type(w->c, type, field));
        }
        facts->holds = own;
        if (own && !(((const Decl *)type->decl)->flags & DECL_PRELUDE)) facts->plain = type;
        break;
    default: break;
    }
}

static TypeFacts *facts_of(FlowWalk *w, const Type *type) {
    TypeFacts *facts = map_get(&w->types, PTR_KEY(type));
    if (facts) return facts;
    facts = arena_new(w->arena, TypeFacts);
    facts->diff = type->kind != TYPE_void && !has_error(type) && is_differentiable_type(w->c, type);
    facts->fields = check_all_fields(w->c, type);
    facts->kinds = arena_take(w->arena, sizeof *facts->kinds * (size_t)(facts->fields.count + 1));
    map_put(w->arena, &w->types, PTR_KEY(type), facts);
    if (!facts->diff) find_numbers(w, type, facts);
    return facts;
}

bool flow_is_diff(FlowWalk *w, const Type *type) { return type && facts_of(w, type)->diff; }

static int field_number(FlowWalk *w, const Type *type, const Decl *field) {
    const TypeFacts *facts = facts_of(w, type);
    for (int i = 0; i < facts->fields.count; i++)
        if (facts->fields.at[i] == field) return i;
    return -1;
}

/* Does this field hold a derivative? Where nobody knows what was written for the Differential, that was told:
 * it does. */
static bool field_is_diff(FlowWalk *w, const Type *type, Decl *field) {
    TypeFacts *facts = facts_of(w, type);
    int number = facts->diff ? field_number(w, type, field) : -1;
    if (number < 0) return false;
    if (facts->kinds[number] == FIELD_unknown) {
        bool is_named = field->sema && field->sema->derivative_member; /* if in vain, that was told */
        bool diff =
            flow_is_diff(w, check_field_type(w->c, type, field)) &&
            (is_named || !check_differential(w->c, type) || check_differential_field(w->c, type, field));
        facts->kinds[number] = diff ? FIELD_diff : FIELD_plain;
    }
    return facts->kinds[number] == FIELD_diff;
}

const Type *flow_plain_struct(FlowWalk *w, const Type *type) { return facts_of(w, type)->plain; }

const Flow *flow_as(FlowWalk *w, const Flow *flow, const Type *type) {
    if (!flow || !type) return NULL;
    const TypeFacts *facts = facts_of(w, type);
    if (facts->diff || facts->holds) return flow;
    return is_ptr_differentiable_type(w->c, type) ? flow_lost(w->arena, flow) : NULL;
}

static const Flow *masked(FlowWalk *w, const Flow *flow, const Type *type) { return flow_as(w, flow, type); }

static const Flow *join(FlowWalk *w, const Flow *a, const Flow *b) { return flow_join(w->arena, a, b); }

/* ---- variables */

static int number_of(FlowWalk *w, const Decl *decl) {
    int number = (int)(intptr_t)map_get(&w->variables, PTR_KEY(decl));
    if (number) return number - 1;
    number = w->variables.count;
    map_put(w->arena, &w->variables, PTR_KEY(decl), (void *)(intptr_t)(number + 1));
    return number;
}

void flow_declare(FlowWalk *w, const Decl *decl, const Flow *flow) {
    int number = number_of(w, decl);
    if (number < MAX_FLOW_VARS) w->now.vars = vars_put(w->arena, w->now.vars, number, flow);
}

const Flow *flow_variable(FlowWalk *w, const Decl *decl) {
    int number = number_of(w, decl);
    return number < MAX_FLOW_VARS ? vars_get(w->now.vars, number) : NULL;
}

static bool is_local(const Decl *decl) {
    return decl->kind == DECL_var && (decl->flavour == VAR_local || decl->flavour == VAR_param) &&
           !(decl->modifiers & (MODIFIER_static | MODIFIER_groupshared));
}

bool flow_is_pointer_variable(const Expr *e) {
    return e->kind == EXPR_decl && !e->a && e->type->kind == TYPE_pointer && is_local(e->decl);
}

static bool is_accessed(const Decl *decl) {
    return decl->kind == DECL_property || decl->kind == DECL_subscript;
}

/* ---- parts of values */

static int known_number(const Type *number) {
    int64_t n;
    return type_is_number(number, &n) && n > 0 && n <= 16 ? (int)n : 0;
}

/* 0: a value of that type is looked at as a whole. */
static int part_count(FlowWalk *w, const Type *type) {
    switch (type->kind) {
    case TYPE_struct: return facts_of(w, type)->fields.count;
    case TYPE_vector:
    case TYPE_matrix: return known_number(type->args[1]);
    case TYPE_array: return 1;
    case TYPE_pair:
    case TYPE_optional: return 2;
    case TYPE_tuple: {
        bool expands = type->nargs == 1 && type->args[0]->kind == TYPE_expand;
        return expands ? 0 : type->nargs;
    }
    default: return 0;
    }
}

static bool constant_index(FlowWalk *w, const Expr *index, int count, int *value) {
    Env env = {.c = w->c, .decl = w->func};
    int64_t n;
    if (!eval_number(&env, (Expr *)(uintptr_t)index, &n) || n < 0 || n >= count) return false;
    *value = (int)n;
    return true;
}

static const Flow *element_of(FlowWalk *w, const Flow *flow, const Expr *e) {
    int index;
    if (e->a->type->kind == TYPE_array) return flow_part(flow, 0);
    if (constant_index(w, e->b, part_count(w, e->a->type), &index)) return flow_part(flow, index);
    return flow_whole(w->arena, flow);
}

static const Flow *lanes_of(FlowWalk *w, const Flow *flow, const Expr *e) {
    if (e->a->type->kind != TYPE_vector || !part_count(w, e->a->type)) return flow_whole(w->arena, flow);
    if (e->nlanes == 1) return flow_part(flow, e->lanes[0]);
    const Flow *lanes = NULL;
    for (int i = 0; i < e->nlanes; i++)
        lanes = flow_with_part(w->arena, lanes, e->nlanes, i, flow_part(flow, e->lanes[i]));
    return lanes;
}

/* ---- places */

static const char *quoted(FlowWalk *w, const Decl *decl) {
    return format_text(w->c->arena, "'%s'", decl->name ? decl->name->text : "?");
}

static const char *of_type(FlowWalk *w, const char *what, const Type *type, const Type **plain) {
    if (type->kind == TYPE_struct) *plain = type;
    return format_text(w->c->arena, "%s of '%s', which is not differentiable", what, type_str(w->c, type));
}

static const char *plain_variable(FlowWalk *w, const Decl *decl) {
    const char *format = NULL;
    if (decl->kind != DECL_var) return NULL;
    if (decl->modifiers & MODIFIER_groupshared) format = "the groupshared variable %s";
    else if (decl->modifiers & MODIFIER_static) format = "the static variable %s";
    else if (decl->flavour == VAR_global) format = "the global variable %s";
    if (!format) return NULL;
    const char *name = decl->name ? decl->name->text : "?";
    Text text = {.arena = w->c->arena};
    text_add(&text, (Str){format, (int)strlen(format) - 2});
    text_printf(&text, "'%s'", name);
    return text.at;
}

static const char BEHIND_POINTER[] = "memory behind a pointer";

/* Why a place cannot hold a derivative; NULL: it can. `plain`: a struct that could be made differentiable. */
const char *flow_plain_place(FlowWalk *w, const Expr *e, const Type **plain) {
    const char *inner = NULL;
    switch ((ExprKind)e->kind) {
    case EXPR_paren:
    case EXPR_convert:
    case EXPR_each:
    case EXPR_swizzle: return flow_plain_place(w, e->a, plain);
    case EXPR_this: return w->sig->this_no_diff ? "'this', which is [NoDiffThis]" : NULL;
    case EXPR_deref: return flow_points_inside(w, e->a) ? NULL : BEHIND_POINTER;
    case EXPR_element:
        if (e->a->type->kind == TYPE_buffer) return "a buffer";
        if (e->a->type->kind != TYPE_pointer) return flow_plain_place(w, e->a, plain);
        return flow_points_inside(w, e->a) ? NULL : BEHIND_POINTER;
    case EXPR_part:
        inner = flow_plain_place(w, e->a, plain);
        return inner || flow_is_diff(w, e->a->type) ? inner : of_type(w, "a part", e->a->type, plain);
    case EXPR_decl: break;
    default: return NULL;
    }
    if (is_accessed(e->decl)) return NULL;
    if (!e->a) return plain_variable(w, e->decl);
    inner = flow_plain_place(w, e->a, plain);
    if (inner) return inner;
    if (!flow_is_diff(w, e->a->type)) return of_type(w, quoted(w, e->decl), e->a->type, plain);
    if (!flow_is_diff(w, e->type) || field_is_diff(w, e->a->type, e->decl)) return NULL;
    if (check_is_no_diff_field(e->decl))
        return format_text(w->c->arena, "the no_diff field %s", quoted(w, e->decl));
    return format_text(w->c->arena, "%s, which has no counterpart in '%s'", quoted(w, e->decl),
                       type_str(w->c, check_differential(w->c, e->a->type)));
}

static void store(FlowWalk *w, const Expr *place, const Flow *flow, Loc loc);

static void store_part(FlowWalk *w, const Expr *base, int index, const Flow *part, Loc loc) {
    int nparts = part_count(w, base->type);
    const Flow *old = flow_expr(w, base);
    if (nparts) store(w, base, flow_with_part(w->arena, old, nparts, index, part), loc);
    else store(w, base, join(w, old, flow_whole(w->arena, part)), loc);
}

static void store_lanes(FlowWalk *w, const Expr *e, const Flow *flow, Loc loc) {
    const Flow *vector = flow_expr(w, e->a);
    int nparts = e->a->type->kind == TYPE_vector ? part_count(w, e->a->type) : 0;
    for (int i = 0; nparts && i < e->nlanes; i++)
        vector =
            flow_with_part(w->arena, vector, nparts, e->lanes[i], e->nlanes == 1 ? flow : flow_part(flow, i));
    if (!nparts) vector = join(w, vector, flow_whole(w->arena, flow));
    store(w, e->a, vector, loc);
}

static void store_element(FlowWalk *w, const Expr *e, const Flow *flow, Loc loc) {
    int index, nparts = part_count(w, e->a->type);
    const Flow *old = flow_expr(w, e->a);
    if (e->a->type->kind == TYPE_array) store_part(w, e->a, 0, join(w, flow_part(old, 0), flow), loc);
    else if (nparts && constant_index(w, e->b, nparts, &index)) store_part(w, e->a, index, flow, loc);
    else store(w, e->a, join(w, old, flow_whole(w->arena, flow)), loc);
}

/* The fields of a base come first. */
static void store_base(FlowWalk *w, const Expr *e, const Flow *flow, Loc loc) {
    int inherited = part_count(w, e->type), nparts = part_count(w, e->a->type);
    const Flow *object = flow_expr(w, e->a);
    for (int i = 0; i < inherited && i < nparts; i++)
        object = flow_with_part(w->arena, object, nparts, i, flow_part(flow, i));
    store(w, e->a, object, loc);
}

/* A no_diff parameter that the caller sees takes values without their derivatives: it says so. */
static bool is_plain_output(const FlowWalk *w, const Decl *variable) {
    for (int i = 0; i < w->sig->nparams; i++) {
        const ParamSig *param = &w->sig->params[i];
        if (param->decl == variable && variable)
            return param->no_diff && (param->pass == PASS_out || param->pass == PASS_inout);
    }
    return false;
}

/* The variable that a place is a part of; NULL: memory elsewhere. */
static const Decl *root_of(const Expr *e) {
    for (;; e = e->a) {
        bool memory =
            e->kind == EXPR_deref || (e->kind == EXPR_element &&
                                      (e->a->type->kind == TYPE_buffer || e->a->type->kind == TYPE_pointer));
        if (memory) return NULL;
        if (!e->a) return e->kind == EXPR_decl ? e->decl : NULL;
    }
}

/* What was there is replaced, as far as it is known what is written. */
static void store(FlowWalk *w, const Expr *place, const Flow *flow, Loc loc) {
    switch ((ExprKind)place->kind) {
    case EXPR_each:
    case EXPR_paren: store(w, place->a, flow, loc); break;
    case EXPR_this: flow_declare(w, w->func, flow); break;
    case EXPR_swizzle: store_lanes(w, place, flow, loc); break;
    case EXPR_element: {
        bool inside = place->a->type->kind != TYPE_buffer && place->a->type->kind != TYPE_pointer;
        if (place->a->type->kind == TYPE_array) flow = flow_indirect(w->arena, flow);
        if (inside) store_element(w, place, flow, loc);
        else if (flow_points_inside(w, place->a)) flow_store_behind(w, flow);
        break;
    }
    case EXPR_deref:
        if (flow_points_inside(w, place->a)) flow_store_behind(w, flow);
        break;
    case EXPR_part: store_part(w, place->a, (int)place->number, flow, loc); break;
    case EXPR_construct:
        for (int i = 0; i < place->args.count; i++) store(w, place->args.at[i], flow_part(flow, i), loc);
        break;
    case EXPR_convert:
        if (place->conversion == CONVERT_upcast) store_base(w, place, flow, loc);
        else store(w, place->a, flow, loc);
        break;
    case EXPR_decl:
        if (is_accessed(place->decl)) flow_access(w, place, FUNC_set, flow);
        else if (place->a && !decl_is_static(place->decl)) {
            bool holds = field_is_diff(w, place->a->type, place->decl);
            int number = field_number(w, place->a->type, place->decl);
            flow = holds ? flow_indirect(w->arena, flow) : flow_lost(w->arena, flow);
            if (number >= 0) store_part(w, place->a, number, flow, loc);
        } else if (is_local(place->decl))
            flow_declare(w, place->decl,
                         flow_through(w->arena, masked(w, flow, place->decl->type), loc, place->decl));
        break;
    default: break;
    }
}

void flow_write(FlowWalk *w, const Expr *place, const Flow *flow) {
    const Flow *whole = flow_whole(w->arena, flow);
    const Type *plain = NULL;
    const char *why = whole && whole->carries ? flow_plain_place(w, place, &plain) : NULL;
    if (why && is_plain_output(w, root_of(place))) { /* and only reading it back loses them */
        Loss loss = {.kind = LOSS_stored, .loc = place->loc, .cause = place, .where = why, .plain = plain};
        store(w, place, flow_stored(w, flow, loss), place->loc);
    } else if (why) {
        flow_dropped(w, place->loc, why, plain);
        if (why == BEHIND_POINTER) note(w->c, DIAG_note_pass_place, 0);
    } else {
        bool lost = whole && whole->losses && flow_plain_place(w, place, &plain);
        for (const Loss *loss = lost ? whole->losses : NULL; loss; loss = loss->next)
            if (loss->kind == LOSS_stored) flow_report_stored(w, loss);
        store(w, place, flow, place->loc);
    }
}

/* ---- expressions */

/* The `this` that a field is in, in another field of it or an element of one; NULL: it is elsewhere, or
 * no_diff says what it is. */
static const Expr *this_around(const Expr *e) {
    while (e->kind != EXPR_this) {
        bool is_field =
            e->kind == EXPR_decl && e->a && !is_accessed(e->decl) && !check_is_no_diff_field(e->decl);
        if (!is_field && e->kind != EXPR_paren && (e->kind != EXPR_element || e->a->type->kind != TYPE_array))
            return NULL;
        e = e->a;
    }
    return e;
}

/* In a method of a struct without derivatives: a constant, which may surprise. */
static void warn_plain_this(FlowWalk *w, const Expr *e) {
    bool is_silent = w->warned || w->no_diff || w->detached || w->sig->this_no_diff,
         reference = is_ptr_differentiable_type(w->c, e->type);
    const Expr *object = !is_silent && (reference || flow_is_diff(w, e->type)) ? this_around(e) : NULL;
    bool plain = object && object->type->kind == TYPE_struct && !flow_is_diff(w, object->type) &&
                 !is_ptr_differentiable_type(w->c, object->type);
    if (!plain) return;
    w->warned = true;
    if (!flow_first(w->c, object->type->decl)) return;
    report(w->c, DIAG_plain_this, e->loc, e->decl->name->text, type_str(w->c, object->type));
    note(w->c, reference ? DIAG_note_no_diff_this_reference : DIAG_note_no_diff_this, 0,
         declared_name(w->c, object->type));
}

/* Why a field of a differentiable object is a constant, though its type could have a derivative. */
static const Flow *constant_field(FlowWalk *w, const Expr *e, const Flow *part) {
    Loss loss = {.kind = LOSS_constant, .modes = w->modes, .loc = e->loc, .where = quoted(w, e->decl)};
    const Type *type = e->a->type;
    bool carries = part && part->carries && flow_is_diff(w, type) && !check_is_no_diff_field(e->decl);
    if (!carries || !could_hold(w, e->type)) return flow_lost(w->arena, part);
    loss.plain = flow_plain_struct(w, e->type);
    loss.cause = loss.plain ? (const void *)loss.plain->decl : (const void *)e->decl;
    if (!loss.plain && !flow_is_diff(w, e->type)) return flow_lost(w->arena, part);
    if (!loss.plain) loss.callee = e->decl; /* it has no counterpart */
    return flow_make(w->arena, false, loss_add(w->arena, part->losses, &loss));
}

static const Flow *flow_field(FlowWalk *w, const Expr *e, const Flow *object) {
    const Flow *part = flow_part(object, field_number(w, e->a->type, e->decl));
    if (field_is_diff(w, e->a->type, e->decl)) return part;
    return flow_as(w, constant_field(w, e, flow_whole(w->arena, part)), e->type);
}

/* The variable outside of the function that a field or element is in, or that it is; NULL: it is elsewhere,
 * or no_diff says what it is. */
static const Decl *global_around(const Expr *e) {
    for (;; e = e->a) {
        bool is_name = e->kind == EXPR_decl && e->decl->kind == DECL_var;
        if (is_name && (!e->a || decl_is_static(e->decl))) return is_local(e->decl) ? NULL : e->decl;
        bool is_field = is_name && !check_is_no_diff_field(e->decl), is_other = e->kind == EXPR_paren;
        is_other |= e->kind == EXPR_element && e->a->type->kind == TYPE_array;
        is_other |= e->kind == EXPR_deref && e->a->type->kind == TYPE_buffer; /* of constants */
        if (!is_field && !is_other) return NULL;
    }
}

/* Its gradient has no place: a counterpart comes with an argument. */
static void warn_global_reference(FlowWalk *w, const Expr *e) {
    if (w->no_diff || w->detached || !is_ptr_differentiable_type(w->c, e->type)) return;
    const Decl *global = global_around(e);
    if (!global || !flow_first(w->c, global)) return;
    report(w->c, DIAG_global_reference, e->loc, global->name->text);
    note(w->c, DIAG_note_pass_reference, 0, global->name->text);
}

static const Flow *flow_decl(FlowWalk *w, const Expr *e) {
    const Decl *decl = e->decl;
    if (is_accessed(decl)) return masked(w, flow_access(w, e, FUNC_get, NULL), e->type);
    if (decl->kind == DECL_var && e->a && !decl_is_static(decl)) {
        const Flow *object = flow_expr(w, e->a);
        warn_plain_this(w, e);
        warn_global_reference(w, e);
        return object ? flow_field(w, e, object) : NULL;
    }
    if (is_local(decl)) return masked(w, flow_variable(w, decl), e->type);
    warn_global_reference(w, e);
    return NULL;
}

/* Into a value of an interface, or a base, that is not differentiable. */
static const Flow *into_plain(FlowWalk *w, const Expr *e, const Flow *flow) {
    const Type *type = e->type;
    Loss loss = {
        .kind = LOSS_stored, .loc = e->a->loc, .cause = type->decl, .plain = flow_plain_struct(w, type)};
    if (!loss.cause) loss.cause = e;
    loss.where =
        format_text(w->c->arena, "a value of '%s', which is not differentiable", type_str(w->c, type));
    if (type->kind == TYPE_interface && !(((const Decl *)type->decl)->flags & DECL_PRELUDE))
        loss.plain = type;
    return flow_stored(w, flow, loss);
}

static const Flow *flow_convert(FlowWalk *w, const Expr *e) {
    const Flow *flow = flow_as(w, flow_expr(w, e->a), e->type);
    if (!flow) return NULL;
    if (!flow_is_diff(w, e->type) && flow_is_diff(w, e->a->type)) return into_plain(w, e, flow);
    switch ((ConversionKind)e->conversion) {
    case CONVERT_numeric:
    case CONVERT_same_bits:
    case CONVERT_same:
    case CONVERT_optional_map: return flow;
    case CONVERT_optional: return flow_with_part(w->arena, NULL, 2, 1, flow);
    case CONVERT_upcast: {
        const Flow *base = NULL;
        for (int i = 0, n = part_count(w, e->type); i < n; i++)
            base = flow_with_part(w->arena, base, n, i, flow_part(flow, i));
        return base;
    }
    default: return flow_whole(w->arena, flow);
    }
}

static int lane_count(FlowWalk *w, const Type *type) {
    return type->kind == TYPE_vector ? part_count(w, type) : 1;
}

/* Components of a vector may be vectors themselves. */
static const Flow *construct_vector(FlowWalk *w, const Expr *e) {
    int nparts = part_count(w, e->type), next = 0;
    const Flow *vector = NULL, *whole = NULL;
    bool exact = nparts > 0;
    for (int i = 0; i < e->args.count; i++) {
        const Expr *arg = e->args.at[i];
        const Flow *flow = arg ? flow_expr(w, arg) : NULL;
        whole = join(w, whole, flow_whole(w->arena, flow));
        int lanes = arg ? lane_count(w, arg->type) : 1;
        exact &= lanes > 0 && next + lanes <= nparts;
        for (int k = 0; exact && k < lanes; k++, next++)
            vector = flow_with_part(w->arena, vector, nparts, next,
                                    arg && arg->type->kind == TYPE_vector ? flow_part(flow, k) : flow);
    }
    return exact ? vector : whole;
}

/* What goes into a field that has no derivative. */
static const Flow *construct_plain(FlowWalk *w, const Expr *e, int index, Decl *field, const Flow *flow) {
    const Type *type = e->type, *held = check_field_type(w->c, type, field);
    Loss loss = {.kind = LOSS_stored, .loc = e->args.at[index]->loc, .cause = field};
    if (!flow_is_diff(w, type)) {
        loss.where = of_type(w, quoted(w, field), type, &loss.plain);
        loss.cause = type->decl;
    } else if (check_is_no_diff_field(field))
        loss.where = format_text(w->c->arena, "the no_diff field %s", quoted(w, field));
    else if (flow_is_diff(w, held)) {
        loss.where = format_text(w->c->arena, "%s, which has no counterpart in '%s'", quoted(w, field),
                                 type_str(w->c, check_differential(w->c, type)));
    } else return flow_as(w, flow, held); /* the value itself is of a plain type: it was lost before */
    return flow_as(w, flow_stored(w, flow, loss), held);
}

static const Flow *construct_parts(FlowWalk *w, const Expr *e) {
    int nparts = part_count(w, e->type);
    DeclVec fields = facts_of(w, e->type)->fields;
    const Flow *made = NULL;
    for (int i = 0; i < e->args.count; i++) {
        const Flow *part = e->args.at[i] ? flow_expr(w, e->args.at[i]) : NULL;
        if (i < fields.count && part && !field_is_diff(w, e->type, fields.at[i]))
            part = construct_plain(w, e, i, fields.at[i], part);
        if (e->type->kind == TYPE_struct || e->type->kind == TYPE_array) part = flow_indirect(w->arena, part);
        if (e->type->kind == TYPE_array || nparts == 0) made = join(w, made, flow_whole(w->arena, part));
        else made = flow_with_part(w->arena, made, nparts, i, part);
    }
    return made;
}

static const Flow *flow_construct(FlowWalk *w, const Expr *e) {
    bool by_rows = e->type->kind == TYPE_matrix && e->args.count == part_count(w, e->type);
    const Flow *made;
    if (e->type->kind == TYPE_vector) made = construct_vector(w, e);
    else if (e->type->kind == TYPE_matrix && !by_rows) {
        made = NULL;
        for (int i = 0; i < e->args.count; i++)
            if (e->args.at[i]) made = join(w, made, flow_whole(w->arena, flow_expr(w, e->args.at[i])));
    } else made = construct_parts(w, e);
    return masked(w, made, e->type);
}

/* What is evaluated if a condition holds; the variables as it leaves them are added to `after`. */
static const Flow *flow_chosen(FlowWalk *w, const Expr *e, const FlowVars **after) {
    FlowState before = w->now;
    const Flow *flow = flow_expr(w, e);
    *after = vars_join(w->arena, *after, w->now.vars);
    w->now = before;
    return flow;
}

static bool is_lazy(const Expr *e) {
    return e->args.count == 2 && (e->op == OPERATOR_and || e->op == OPERATOR_or) && type_is_scalar(e->type);
}

/* Chains lean left: down them in a loop. */
static const Flow *flow_builtin(FlowWalk *w, const Expr *e) {
    VEC(const Expr *) chain = {0};
    for (; e->kind == EXPR_builtin && !is_lazy(e) && e->args.count == 2; e = e->args.at[0])
        vec_push(w->arena, &chain, e);
    const Flow *flow = NULL;
    if (e->kind == EXPR_builtin && is_lazy(e)) {
        flow_expr(w, e->args.at[0]);
        const FlowVars *after = w->now.vars;
        flow_chosen(w, e->args.at[1], &after);
        w->now.vars = after;
    } else if (e->kind == EXPR_builtin) {
        for (int i = 0; i < e->args.count; i++) flow = join(w, flow, flow_expr(w, e->args.at[i]));
        flow = masked(w, flow, e->type);
    } else flow = flow_expr(w, e);
    for (int i = chain.count - 1; i >= 0; i--) {
        const Flow *right = flow_expr(w, chain.at[i]->args.at[1]);
        flow = chain.at[i]->op == OPERATOR_comma ? right : join(w, flow, right);
        flow = masked(w, flow, chain.at[i]->type);
    }
    return flow;
}

static const Flow *flow_select(FlowWalk *w, const Expr *e) {
    const FlowVars *after = NULL;
    flow_expr(w, e->a);
    const Flow *flow = flow_chosen(w, e->b, &after);
    for (int i = 0; i < e->args.count; i += 2) {
        flow_expr(w, e->args.at[i]);
        flow = join(w, flow, flow_chosen(w, e->args.at[i + 1], &after));
    }
    flow = join(w, flow, flow_expr(w, e->c));
    w->now.vars = vars_join(w->arena, w->now.vars, after);
    return masked(w, flow, e->type);
}

static const Flow *flow_update(FlowWalk *w, const Expr *e) {
    const Flow *old = flow_expr(w, e->a), *by = e->b ? flow_expr(w, e->b) : NULL;
    if (e->type->kind == TYPE_pointer) return NULL; /* it stays in what it leads to */
    const Flow *changed = masked(w, join(w, old, by), e->type);
    flow_write(w, e->a, changed);
    return e->flags & EXPR_POSTFIX ? old : changed;
}

static const Flow *flow_assign(FlowWalk *w, const Expr *e) {
    const Flow *flow = flow_expr(w, e->b);
    if (flow_is_pointer_variable(e->a)) flow_point(w, e->a->decl, e->b);
    else flow_write(w, e->a, flow);
    return flow;
}

static const Flow *flow_under_no_diff(FlowWalk *w, const Expr *e) {
    w->no_diff++;
    flow_expr(w, e->a);
    w->no_diff--;
    return NULL;
}

static const Flow *flow_captures(FlowWalk *w, const Expr *e) {
    const Flow *captured = NULL;
    for (int i = 0; i < e->args.count; i++)
        captured = flow_with_part(w->arena, captured, e->args.count, i, flow_expr(w, e->args.at[i]));
    flow_lambda(w, e->decl, captured);
    return masked(w, captured, e->type);
}

static void visit_operands(FlowWalk *w, const Expr *e) {
    if (e->a) flow_expr(w, e->a);
    if (e->b && e->b->kind != EXPR_type) flow_expr(w, e->b);
    if (e->c) flow_expr(w, e->c);
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i]) flow_expr(w, e->args.at[i]);
}

const Flow *flow_expr(FlowWalk *w, const Expr *e) {
    const Flow *flow;
    switch ((ExprKind)e->kind) {
    case EXPR_this: return masked(w, flow_variable(w, w->func), e->type);
    case EXPR_decl: return flow_decl(w, e);
    case EXPR_convert: return flow_convert(w, e);
    case EXPR_invoke: return flow_invoke(w, e);
    case EXPR_builtin: return flow_builtin(w, e);
    case EXPR_select: return flow_select(w, e);
    case EXPR_update: return flow_update(w, e);
    case EXPR_construct: return flow_construct(w, e);
    case EXPR_no_diff: return flow_under_no_diff(w, e);
    case EXPR_lambda: return flow_captures(w, e);
    case EXPR_paren:
    case EXPR_try:
    case EXPR_each: return flow_expr(w, e->a);
    case EXPR_expand:
        if (e->a) return flow_expr(w, e->a);
        visit_operands(w, e); /* written out */
        return NULL;
    case EXPR_as: return masked(w, flow_whole(w->arena, flow_expr(w, e->a)), e->type);
    case EXPR_swizzle: return masked(w, lanes_of(w, flow_expr(w, e->a), e), e->type);
    case EXPR_part: return masked(w, flow_part(flow_expr(w, e->a), (int)e->number), e->type);
    case EXPR_assign: return flow_assign(w, e);
    case EXPR_address:
        flow_expr(w, e->a);
        flow_address(w, e);
        return NULL;
    case EXPR_deref: return flow_as(w, join(w, flow_expr(w, e->a), flow_behind(w, e->a)), e->type);
    case EXPR_element:
        flow = flow_expr(w, e->a);
        flow_expr(w, e->b);
        warn_global_reference(w, e);
        if (e->a->type->kind == TYPE_pointer) return flow_as(w, flow_behind(w, e->a), e->type);
        return masked(w, element_of(w, flow, e), e->type);
    case EXPR_type:
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof:
    case EXPR_is:
    case EXPR_type_is: return NULL;
    default: visit_operands(w, e); return NULL;
    }
}
