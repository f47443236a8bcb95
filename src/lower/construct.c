/* EXPR_construct: a vector from components, or an aggregate from its parts. */
#include "lower/lowerer.h"

static void add_components(Fn *f, Expr *e, ValVec *out) {
    const Type *front = concrete(f, e->type);
    if (front->kind == TYPE_matrix) {
        Val *matrix = lower_address(f, e);
        const Type *ir = lower_type(f->l, front);
        for (int64_t i = 0; i < type_length(ir); i++) {
            Val *row = build_load(&f->b, build_elem(&f->b, matrix, const_int(f, TYPE_int, i), true));
            for (int k = 0; k < type_count(row->type); k++)
                vec_push(f->l->arena, out, build_extract_lane(&f->b, row, k));
        }
        return;
    }
    Val *value = lower_value(f, e);
    if (value->type->kind != TYPE_vector) {
        vec_push(f->l->arena, out, value);
        return;
    }
    for (int i = 0; i < type_count(value->type); i++)
        vec_push(f->l->arena, out, build_extract_lane(&f->b, value, i));
}

static void next_component(Fn *f, Expr *e, void *all) { add_components(f, e, all); }

static void report_too_many(Fn *f, const Expr *e, int64_t wanted, int given) {
    const char *type = type_text(f->l->arena, concrete(f, e->type));
    lower_report(f, DIAG_too_many_initialisers, e->loc, type, (int)wanted, given);
}

static ValVec components(Fn *f, Expr *e, const Type *element, int wanted) {
    ValVec all = {0};
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (!arg) vec_push(f->l->arena, &all, ir_const_zero(f->l->m, element));
        else if (arg->kind == EXPR_expand) for_expansion(f, arg, next_component, &all);
        else add_components(f, arg, &all);
    }
    if (all.count > wanted) report_too_many(f, e, wanted, all.count);
    while (all.count < wanted) vec_push(f->l->arena, &all, ir_const_zero(f->l->m, element));
    return all;
}

Val *lower_construct(Fn *f, Expr *e) {
    const Type *type = ir_type(f, e->type);
    if (type->kind != TYPE_vector)
        return e->args.count && e->args.at[0] ? lower_value(f, e->args.at[0]) : ir_const_zero(f->l->m, type);
    ValVec all = components(f, e, type->args[0], type_count(type));
    return build_vec(&f->b, type, all.at);
}

static void matrix_into(Fn *f, Expr *e, Val *to) {
    const Type *rows = to->type->args[0], *row_type = rows->args[0];
    int columns = type_count(row_type);
    ValVec all = components(f, e, row_type->args[0], columns * (int)type_length(rows));
    for (int64_t i = 0; i < type_length(rows); i++) {
        Val *to_part = build_elem(&f->b, to, const_int(f, TYPE_int, i), true);
        Val *row = build_vec(&f->b, row_type, all.at + i * columns);
        build_store(&f->b, to_part, row);
    }
}

typedef struct Elements {
    Val *to;
    int64_t length;
    int next;
} Elements;

static void next_element(Fn *f, Expr *e, void *user) {
    Elements *elements = user;
    int index = elements->next++;
    if (index < elements->length)
        lower_into(f, e, build_elem(&f->b, elements->to, const_int(f, TYPE_int, index), true));
}

static int count_elements(Fn *f, const Expr *e) {
    int count = 0;
    for (int i = 0; i < e->args.count; i++) {
        const Expr *arg = e->args.at[i];
        count += arg && arg->kind == EXPR_expand ? expansion_length(f, arg) : 1;
    }
    return count;
}

static void array_into(Fn *f, Expr *e, const Type *front, Val *to) {
    Elements elements = {to, type_length(to->type->args[0]), 0};
    int count = count_elements(f, e);
    if (count > elements.length) report_too_many(f, e, elements.length, count);
    if (count < elements.length) build_zero(&f->b, to);
    for (int i = 0; i < e->args.count && elements.next < elements.length; i++) {
        Expr *arg = e->args.at[i];
        if (!arg)
            store_default(f, front->args[0],
                          build_elem(&f->b, to, const_int(f, TYPE_int, elements.next++), true));
        else if (arg->kind == EXPR_expand) for_expansion(f, arg, next_element, &elements);
        else next_element(f, arg, &elements);
    }
    default_elements(f, front->args[0], to, count);
}

static void struct_into(Fn *f, Expr *e, const Type *front, Val *to) {
    DeclVec fields = check_all_fields(f->l->c, front);
    for (int i = 0; i < fields.count; i++) {
        Decl *field = fields.at[i];
        Place place = place_new_field(f, to, front, field);
        Expr *arg = i < e->args.count ? e->args.at[i] : NULL;
        if (arg) place_init(f, &place, arg);
        else place_default(f, &place, front, field);
    }
}

typedef struct Parts {
    Val *to;
    int next;
} Parts;

static void next_part(Fn *f, Expr *e, void *user) {
    Parts *parts = user;
    lower_into(f, e, build_field(&f->b, parts->to, parts->next++));
}

/* Tuples and pairs: parts in order; a part may be an expansion of a pack. */
static void parts_into(Fn *f, Expr *e, Val *to) {
    Parts parts = {to, 0};
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (!arg) {
            build_zero(&f->b, build_field(&f->b, to, parts.next++));
            continue;
        }
        if (arg->kind != EXPR_expand) {
            next_part(f, arg, &parts);
            continue;
        }
        for_expansion(f, arg, next_part, &parts);
    }
}

void lower_construct_into(Fn *f, Expr *e, Val *to) {
    const Type *front = concrete(f, e->type);
    switch (front->kind) {
    case TYPE_matrix: matrix_into(f, e, to); return;
    case TYPE_array: array_into(f, e, front, to); return;
    case TYPE_struct: struct_into(f, e, front, to); return;
    default: parts_into(f, e, to); return;
    }
}
