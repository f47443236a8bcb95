/* Constants whose value is known while compiling.
 *
 * The initialiser is lowered into a function that is thrown away: building folds, and what is left tells
 * whether all of it was constant. A scalar or vector constant is worked out once and put in wherever it is
 * named; constants that it needs are worked out before it, from a list, so that no chain of constants is too
 * long for the stack. Arrays and structs become data. What is not known in this way is computed when the
 * program starts. */
#include "lower/lowerer.h"

struct Constant {
    bool done; /* else: waiting for those it needs */
    Val **lanes;
    int nlanes; /* 0: not known */
};

bool is_constant(const Decl *decl) {
    uint32_t fixed = decl->modifiers & MODIFIER_static ? MODIFIER_const | MODIFIER_let : MODIFIER_const;
    bool anywhere = decl->modifiers & MODIFIER_static || decl->flavour == VAR_local;
    return decl->kind == DECL_var && anywhere && (decl->modifiers & fixed);
}

/* ---- what can be folded at all */

static bool all_plain(Fn *f, const ExprVec *args);

static bool is_plain(Fn *f, const Expr *e) {
    switch ((ExprKind)e->kind) {
    case EXPR_int:
    case EXPR_float:
    case EXPR_bool:
    case EXPR_default:
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: return true;
    case EXPR_decl:
        if (e->decl->kind == DECL_case || e->decl->kind == DECL_value_param) return true;
        return is_constant(e->decl) && !e->a &&
               constant_value(f->l, e->decl, concrete_subst(f, e->subst))->nlanes;
    case EXPR_paren:
    case EXPR_convert:
    case EXPR_swizzle: return is_plain(f, e->a);
    case EXPR_select:
        return is_plain(f, e->a) && is_plain(f, e->b) && is_plain(f, e->c) && all_plain(f, &e->args);
    case EXPR_builtin:
    case EXPR_construct: return all_plain(f, &e->args);
    case EXPR_invoke:
        if (!(e->decl->flags & DECL_PRELUDE) || !e->decl->sema || !e->decl->sema->op || e->nmodes)
            return false;
        return all_plain(f, &e->args) && (!e->a || is_plain(f, e->a));
    default: return false;
    }
}

static bool all_plain(Fn *f, const ExprVec *args) {
    for (int i = 0; i < args->count; i++)
        if (!args->at[i] || !is_plain(f, args->at[i])) return false;
    return true;
}

/* ---- the scalars of a value, in order of the layout */

static bool add_scalars(Fn *f, Val *value, ValVec *out) {
    if (value->type->kind != TYPE_vector) {
        if (val_is_const(value)) vec_push(f->l->arena, out, value);
        return val_is_const(value);
    }
    for (int i = 0; i < type_count(value->type); i++) {
        Val *lane = build_extract_lane(&f->b, value, i);
        if (!val_is_const(lane)) return false;
        vec_push(f->l->arena, out, lane);
    }
    return true;
}

static void add_zeros(Lowerer *l, const Type *ir, ValVec *out) {
    if (ir->kind == TYPE_record) {
        for (int i = 0; i < type_record(ir)->nfields; i++) add_zeros(l, type_record(ir)->fields[i].type, out);
    } else if (ir->kind == TYPE_array || ir->kind == TYPE_vector) {
        int64_t n = ir->kind == TYPE_array ? type_length(ir) : type_count(ir);
        for (int64_t i = 0; i < n; i++) add_zeros(l, ir->args[0], out);
    } else vec_push(l->arena, out, ir_const_zero(l->m, ir));
}

static bool add_values(Fn *f, Expr *e, const Type *front, ValVec *out);

static bool add_elements(Fn *f, const Expr *e, const Type *front, ValVec *out) {
    Lowerer *l = f->l;
    for (int64_t i = 0; i < type_length(front); i++) {
        if (i >= e->args.count || !e->args.at[i]) add_zeros(l, lower_type(l, front->args[0]), out);
        else if (!add_values(f, e->args.at[i], front->args[0], out)) return false;
    }
    return front->args[0]->kind != TYPE_struct || e->args.count >= type_length(front);
}

static bool add_fields(Fn *f, const Expr *e, const Type *front, ValVec *out) {
    Lowerer *l = f->l;
    DeclVec fields = check_all_fields(l->c, front);
    for (int i = 0; i < fields.count; i++) {
        if (i >= e->args.count || !e->args.at[i] || fields.at[i]->bits) return false;
        if (!add_values(f, e->args.at[i], check_field_type(l->c, front, fields.at[i]), out)) return false;
    }
    return true;
}

/* Of numbers and rows, one after the other; what is missing is zero. */
static bool add_rows(Fn *f, const Expr *e, const Type *rows, ValVec *out) {
    const Type *element = rows->args[0]->args[0];
    int end = out->count + (int)type_length(rows) * type_count(rows->args[0]);
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (!arg) add_zeros(f->l, element, out);
        else if (!is_simple(ir_type(f, arg->type)) || !is_plain(f, arg)) return false;
        else if (!add_scalars(f, lower_value(f, arg), out)) return false;
    }
    while (out->count < end) add_zeros(f->l, element, out);
    return out->count == end;
}

/* One number everywhere. */
static bool add_copies(Fn *f, const Expr *e, const Type *rows, ValVec *out) {
    Val *value = is_plain(f, e->a) ? lower_value(f, e->a) : NULL;
    int count = (int)type_length(rows) * type_count(rows->args[0]);
    for (int i = 0; value && i < count; i++)
        if (!add_scalars(f, value, out)) return false;
    return value;
}

static bool add_values(Fn *f, Expr *e, const Type *front, ValVec *out) {
    const Type *ir = lower_type(f->l, front);
    if (is_simple(ir))
        return ir->kind != TYPE_pointer && ir->kind != TYPE_buffer && is_plain(f, e) &&
               add_scalars(f, lower_value(f, e), out);
    if (e->kind == EXPR_default && front->kind != TYPE_struct) {
        add_zeros(f->l, ir, out);
        return true;
    }
    if (front->kind == TYPE_matrix && e->kind == EXPR_convert && e->conversion == CONVERT_splat)
        return add_copies(f, e, ir, out);
    if (e->kind != EXPR_construct) return false;
    if (front->kind == TYPE_matrix) return add_rows(f, e, ir, out);
    if (front->kind == TYPE_array) return add_elements(f, e, front, out);
    return front->kind == TYPE_struct && add_fields(f, e, front, out);
}

bool constant_data(Lowerer *l, Expr *init, const Type *front, const Subst *subst, ValVec *out) {
    Func scratch = {.name = name_from(l->m->names, "constant"), .module = l->m, .nvals = 1};
    Request request = {.func = &scratch, .subst = subst, .sig = {.result = type_basic(l->types, TYPE_void)}};
    Fn f = fn_begin(l, &request);
    return add_values(&f, init, front, out);
}

/* ---- scalars and vectors, worked out once */

typedef struct Item {
    Decl *decl;
    const Subst *subst;
} Item;
typedef VEC(Item) ItemVec;

static uint64_t key_of(const Item *item) { return hash_mix(PTR_KEY(item->decl), PTR_KEY(item->subst)) | 1; }

/* The constants that an expression names. */
static void add_needed(Lowerer *l, const Expr *e, const Subst *subst, ItemVec *out) {
    if (e->kind == EXPR_decl && !e->a && is_constant(e->decl)) {
        const Subst *args = subst_for_decl(l->c, e->decl, check_subst_subst(l->c, e->subst, subst));
        Item item = {e->decl, args};
        if (!map_get(&l->constants, key_of(&item))) vec_push(l->arena, out, item);
    }
    const Expr *parts[] = {e->a, e->b, e->c};
    for (int i = 0; i < 3; i++)
        if (parts[i]) add_needed(l, parts[i], subst, out);
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i]) add_needed(l, e->args.at[i], subst, out);
}

static bool has_value(const Decl *decl) {
    return decl->init && (decl->init->flags & EXPR_CHECKED) && decl->init->kind != EXPR_error;
}

static void work_out(Lowerer *l, const Item *item, Constant *constant) {
    constant->done = true;
    const Type *front = check_subst(l->c, item->decl->type, item->subst);
    if (!has_value(item->decl) || !is_simple(lower_type(l, front))) return;
    ValVec lanes = {0};
    if (!constant_data(l, item->decl->init, front, item->subst, &lanes)) return;
    constant->lanes = lanes.at;
    constant->nlanes = lanes.count;
}

const Constant *constant_value(Lowerer *l, Decl *decl, const Subst *subst) {
    Item wanted = {decl, subst_for_decl(l->c, decl, subst)};
    Constant *known = map_get(&l->constants, key_of(&wanted));
    if (known) return known;
    ItemVec waiting = {0};
    vec_push(l->arena, &waiting, wanted);
    while (waiting.count) {
        Item item = vec_last(&waiting);
        Constant *constant = map_get(&l->constants, key_of(&item));
        if (constant) { /* those it needs are done */
            if (!constant->done) work_out(l, &item, constant);
            waiting.count--;
            continue;
        }
        check_decl_body(l->c, item.decl);
        map_put(l->arena, &l->constants, key_of(&item), arena_new(l->arena, Constant));
        if (has_value(item.decl)) add_needed(l, item.decl->init, item.subst, &waiting);
    }
    return map_get(&l->constants, key_of(&wanted));
}

bool constant_is_known(const Constant *constant) { return constant->nlanes > 0; }

Val *constant_build(Fn *f, const Constant *constant, const Type *ir) {
    return ir->kind == TYPE_vector ? build_vec(&f->b, ir, constant->lanes) : constant->lanes[0];
}
