/* Global variables: constants, statics, group-shared memory, uniforms. */
#include "lower/lowerer.h"

static bool is_constant(const Decl *decl) {
    return (decl->modifiers & MODIFIER_const) &&
           ((decl->modifiers & MODIFIER_static) || decl->flavour == VAR_local);
}

static const char *global_name(Lowerer *l, const Decl *decl) {
    const char *name = decl->name ? decl->name->text : "global";
    const Decl *parent = decl->parent;
    if (decl->modifiers & MODIFIER_static)
        for (; parent && parent->kind != DECL_module; parent = parent->parent)
            if (parent->name) name = format_text(l->arena, "%s.%s", parent->name->text, name);
    return name;
}

static GlobalKind kind_of(const Decl *decl) {
    if (decl->modifiers & MODIFIER_groupshared) return GLOBAL_shared;
    if (is_constant(decl)) return GLOBAL_const;
    return decl->modifiers & MODIFIER_static ? GLOBAL_static : GLOBAL_uniform;
}

/* ---- constants as data */

/* The scalars of a constant in order of the layout, or false if one is not known at compile time. */
static bool constant_values(Fn *f, Expr *e, const Type *front, ValVec *out);

static bool constant_scalars(Fn *f, Val *value, ValVec *out) {
    if (val_is_const(value) && value->type->kind != TYPE_vector) {
        vec_push(f->l->arena, out, value);
        return true;
    }
    if (value->type->kind != TYPE_vector) return false;
    for (int i = 0; i < type_count(value->type); i++) {
        Val *lane = build_extract_lane(&f->b, value, i);
        if (!val_is_const(lane)) return false;
        vec_push(f->l->arena, out, lane);
    }
    return true;
}

static void zero_values(Lowerer *l, const Type *ir, ValVec *out) {
    if (ir->kind == TYPE_record) {
        for (int i = 0; i < type_record(ir)->nfields; i++)
            zero_values(l, type_record(ir)->fields[i].type, out);
    } else if (ir->kind == TYPE_array || ir->kind == TYPE_vector) {
        int64_t n = ir->kind == TYPE_array ? type_length(ir) : type_count(ir);
        for (int64_t i = 0; i < n; i++) zero_values(l, ir->args[0], out);
    } else vec_push(l->arena, out, ir_const_zero(l->m, ir));
}

static bool constant_parts(Fn *f, Expr *e, const Type *front, ValVec *out) {
    Lowerer *l = f->l;
    if (front->kind == TYPE_array) {
        for (int64_t i = 0; i < type_length(front); i++) {
            if (i < e->args.count && e->args.at[i]) {
                if (!constant_values(f, e->args.at[i], front->args[0], out)) return false;
            } else zero_values(l, lower_type(l, front->args[0]), out);
        }
        return front->args[0]->kind != TYPE_struct || e->args.count >= type_length(front);
    }
    if (front->kind != TYPE_struct) return false;
    DeclVec fields = check_all_fields(l->c, front);
    for (int i = 0; i < fields.count; i++) {
        if (i >= e->args.count || !e->args.at[i] || fields.at[i]->bits) return false;
        if (!constant_values(f, e->args.at[i], check_field_type(l->c, front, fields.at[i]), out))
            return false;
    }
    return true;
}

static bool is_plain(const Expr *e) {
    switch ((ExprKind)e->kind) {
    case EXPR_int:
    case EXPR_float:
    case EXPR_bool:
    case EXPR_default:
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: return true;
    case EXPR_decl:
        return e->decl->kind == DECL_case || e->decl->kind == DECL_value_param ||
               (e->decl->kind == DECL_var && is_constant(e->decl) && !e->a && is_plain_constant(e->decl));
    case EXPR_paren:
    case EXPR_convert: return is_plain(e->a);
    case EXPR_select: return is_plain(e->a) && is_plain(e->b) && is_plain(e->c);
    case EXPR_builtin:
    case EXPR_construct:
        for (int i = 0; i < e->args.count; i++)
            if (!e->args.at[i] || !is_plain(e->args.at[i])) return false;
        return true;
    case EXPR_invoke:
        if (!(e->decl->flags & DECL_PRELUDE) || !e->decl->sema || !e->decl->sema->op || e->nmodes)
            return false;
        for (int i = 0; i < e->args.count; i++)
            if (!e->args.at[i] || !is_plain(e->args.at[i])) return false;
        return !e->a || is_plain(e->a);
    case EXPR_swizzle: return is_plain(e->a);
    default: return false;
    }
}

/* A constant of simple type whose initialiser can be repeated wherever it is named. */
bool is_plain_constant(const Decl *decl) {
    return decl->init && (decl->init->flags & EXPR_CHECKED) && is_plain(decl->init);
}

static bool constant_values(Fn *f, Expr *e, const Type *front, ValVec *out) {
    const Type *ir = lower_type(f->l, front);
    if (is_simple(ir))
        return is_plain(e) && ir->kind != TYPE_pointer && ir->kind != TYPE_buffer &&
               constant_scalars(f, lower_value(f, e), out);
    if (e->kind == EXPR_default && front->kind != TYPE_struct) {
        zero_values(f->l, ir, out);
        return true;
    }
    if (e->kind != EXPR_construct || front->kind == TYPE_matrix) return false;
    return constant_parts(f, e, front, out);
}

/* Lowered into a function that is thrown away: building folds, and what is left tells whether all was constant. */
static bool set_data(Lowerer *l, Global *global, Expr *init, const Type *front, const Subst *subst) {
    Func scratch = {.name = name_from(l->m->names, "constant"), .module = l->m, .nvals = 1};
    Request request = {.func = &scratch, .subst = subst, .sig = {.result = type_basic(l->types, TYPE_void)}};
    Fn f = fn_begin(l, &request);
    ValVec values = {0};
    if (!constant_values(&f, init, front, &values)) return false;
    global->data = values.at;
    global->ndata = values.count;
    return true;
}

/* ---- making globals */

static void set_init(Lowerer *l, Global *global, Decl *decl, const Subst *subst) {
    Request *request = arena_new(l->arena, Request);
    *request =
        (Request){.kind = REQUEST_init, .decl = decl, .subst = subst, .global = global, .init = decl->init};
    request->func = func_new(l->m, format_text(l->arena, "%s.init", global->name->text));
    request->func->source = request;
    request->func->loc = decl->loc;
    request->sig = (FuncSig){.result = type_basic(l->types, TYPE_void)};
    global->init = request->func;
    vec_push(l->arena, &l->pending, request);
}

void lower_global_init(Lowerer *l, Request *request) {
    if (!request->init) return;
    Fn f = fn_begin(l, request);
    lower_into(&f, request->init, build_global(&f.b, request->global));
    fn_end(&f);
}

static Global *find_global(Lowerer *l, Decl *decl, const Subst *subst) {
    subst = subst_for_decl(l->c, decl, subst);
    uint64_t key = hash_mix(PTR_KEY(decl), PTR_KEY(subst)) | 1;
    Global *global = map_get(&l->globals, key);
    if (global) return global;
    check_decl_body(l->c, decl);
    const Type *front = check_subst(l->c, decl->type, subst);
    bool block = front->kind == TYPE_buffer && front->number == BUFFER_constant;
    GlobalKind kind = kind_of(decl);
    const Type *held = block && kind == GLOBAL_uniform ? front->args[0] : front;
    const Type *type = kind == GLOBAL_uniform ? lower_external_type(l, held) : lower_type(l, held);
    global = global_new(l->m, kind, global_name(l, decl), type);
    global->loc = decl->loc;
    global->source = decl;
    global->layout = block ? LAYOUT_std140 : LAYOUT_scalar;
    map_put(l->arena, &l->globals, key, global);
    bool initialised = kind == GLOBAL_const || kind == GLOBAL_static;
    Decl *unused;
    if (initialised && !decl->init && has_default_init(l->c, front, &unused))
        decl->init = check_default_value(l->c, decl->loc, front);
    if (!initialised || !decl->init || decl->init->kind == EXPR_error) return global;
    if (kind != GLOBAL_const || !set_data(l, global, decl->init, front, subst))
        set_init(l, global, decl, subst);
    return global;
}

/* The host lays out what it binds, so sizes are final from now on. */
Global *lower_uniform(Lowerer *l, Decl *decl) {
    Global *global = find_global(l, decl, NULL);
    const Type *held = decl->type->kind == TYPE_buffer || decl->type->kind == TYPE_pointer ? decl->type->args[0]
                                                                                           : decl->type;
    if (has_external_form(l, held)) external_layout(l, held);
    return global;
}

static bool is_uniform(const Decl *decl) { return kind_of(decl) == GLOBAL_uniform; }

Place global_place(Fn *f, Decl *decl, const Subst *subst) {
    Lowerer *l = f->l;
    subst = subst_for_decl(l->c, decl, subst);
    check_decl_body(l->c, decl);
    const Type *front = check_subst(l->c, decl->type, subst);
    if (is_constant(decl) && is_simple(lower_type(l, front)) && is_plain_constant(decl))
        return (Place){.kind = PLACE_value, .type = front, .value = lower_value_under(f, decl->init, subst)};
    Global *global = find_global(l, decl, subst);
    Val *address = build_global(&f->b, global);
    bool block = front->kind == TYPE_buffer && front->number == BUFFER_constant;
    if (block && is_uniform(decl)) return (Place){.kind = PLACE_value, .type = front, .value = address};
    bool constant = is_constant(decl) || is_uniform(decl);
    Place place = {
        .kind = PLACE_memory, .type = front, .address = address, .shared = true, .constant = constant};
    if (is_uniform(decl) && has_external_form(l, front)) place.kind = PLACE_external;
    return place;
}
