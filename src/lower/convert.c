/* Conversions. */
#include "lower/lowerer.h"

Val *convert_numeric(Fn *f, Val *value, const Type *to) {
    if (to->kind == TYPE_vector && value->type->kind != TYPE_vector) {
        Val *element = build_convert(&f->b, value, to->args[0]);
        return build_splat(&f->b, to, element);
    }
    return build_convert(&f->b, value, to);
}

static Val *to_bool(Fn *f, Val *value) {
    const Type *flag = type_basic(f->l->types, TYPE_bool);
    if (value->type->kind == TYPE_pointer)
        value = build_bitcast(&f->b, value, type_basic(f->l->types, TYPE_uint64));
    return build_convert(&f->b, value, flag);
}

static Val *pointer_cast(Fn *f, Val *value, const Type *to) {
    const Type *word = type_basic(f->l->types, TYPE_uint64);
    if (value->type->kind == TYPE_pointer && to->kind == TYPE_pointer) return build_bitcast(&f->b, value, to);
    if (value->type->kind == TYPE_pointer) return build_convert(&f->b, build_bitcast(&f->b, value, word), to);
    return build_bitcast(&f->b, build_convert(&f->b, value, word), to);
}

static Val *lane_zero(Fn *f, Expr *e) {
    Val *value = lower_value(f, e->a);
    if (value->type->kind == TYPE_vector) return build_extract_lane(&f->b, value, 0);
    return build_vec(&f->b, ir_type(f, e->type), &value);
}

/* What a constraint promised, now that the types are known: the value is put into a variable, and that is
 * converted. */
static Expr *promised(Fn *f, Expr *e) {
    const Type *from = concrete(f, e->a->type), *to = concrete(f, e->type);
    if (from == to) return e->a;
    Decl *variable = decl_new(f->l->arena, DECL_var, e->loc, name_from(f->l->m->names, "from"));
    variable->flavour = VAR_local;
    variable->type = from;
    Val *temp = temp_var(f, from, "from");
    lower_into(f, e->a, temp);
    bind_local(f, variable, (Local){.address = temp});
    return check_promised_conversion(f->l->c, variable, to, (e->flags & EXPR_EXPLICIT) != 0);
}

static bool is_minus(const Expr *e) {
    return e->kind == EXPR_builtin && e->op == OPERATOR_sub && e->args.count == 1;
}

/* A number without a suffix that becomes a double, `x * -0.1`, is meant as it is written; 0.1f is a float
 * first. */
static bool has_all_digits(const Expr *e) {
    const Expr *digits = is_minus(e) ? e->args.at[0] : e;
    return digits->kind == EXPR_float && digits->suffix == SUFFIX_none;
}

Val *lower_convert(Fn *f, Expr *e) {
    const Type *to = ir_type(f, e->type);
    switch ((ConversionKind)e->conversion) {
    case CONVERT_splat: return build_splat(&f->b, to, lower_value(f, e->a));
    case CONVERT_single: return lane_zero(f, e);
    case CONVERT_bool: return to_bool(f, lower_value(f, e->a));
    case CONVERT_null: lower_effect(f, e->a); return ir_const_zero(f->l->m, to);
    case CONVERT_pointer: return pointer_cast(f, lower_value(f, e->a), to);
    case CONVERT_numeric:
        if (to->kind == TYPE_double && has_all_digits(e->a))
            return ir_const_real(f->l->m, to, is_minus(e->a) ? -e->a->args.at[0]->real : e->a->real);
        return build_convert(&f->b, lower_value(f, e->a), to);
    case CONVERT_enum: return build_convert(&f->b, lower_value(f, e->a), to);
    case CONVERT_same_bits: return build_bitcast(&f->b, lower_value(f, e->a), to);
    case CONVERT_promised: return lower_value(f, promised(f, e));
    default: return lower_value(f, e->a);
    }
}

/* ---- matrices */

static void splat_matrix(Fn *f, Val *value, Val *to) {
    const Type *rows = to->type->args[0];
    Val *row = build_splat(&f->b, rows->args[0], value);
    for (int64_t i = 0; i < type_length(rows); i++)
        build_store(&f->b, build_elem(&f->b, to, const_int(f, TYPE_int, i), true), row);
}

static void convert_matrix(Fn *f, Val *from, Val *to) {
    const Type *rows = to->type->args[0], *row_type = rows->args[0];
    int columns = type_count(row_type);
    uint8_t lanes[4] = {0, 1, 2, 3};
    for (int64_t i = 0; i < type_length(rows); i++) {
        Val *index = const_int(f, TYPE_int, i);
        Val *row = build_load(&f->b, build_elem(&f->b, from, index, true));
        if (type_count(row->type) > columns)
            row = columns == 1 ? build_vec(&f->b, type_vector(f->l->types, row->type->args[0], 1),
                                           (Val *[]){build_extract_lane(&f->b, row, 0)})
                               : build_shuffle(&f->b, row, lanes, columns);
        Val *to_part = build_elem(&f->b, to, index, true);
        Val *converted = build_convert(&f->b, row, row_type);
        build_store(&f->b, to_part, converted);
    }
}

/* ---- interfaces, optionals, pairs */

/* A value of a concrete type (at `from`, or simple `value`) into an interface value. A plain interface drops
 * derivatives. */
void to_interface(Fn *f, const Type *interface, const Type *type, Val *value, Val *from, Val *to) {
    int field = variant_index(f->l, interface, type);
    bool no_diff = f->diff && !check_is_diff_type(f->l->c, interface, NULL);
    build_zero(&f->b, to);
    build_store(&f->b, build_field(&f->b, to, 0), const_int(f, TYPE_uint, field));
    Val *place = build_field(&f->b, to, field);
    if (value) build_store(&f->b, place, detached(f, value, no_diff));
    else copy_object(f, place, from, no_diff);
}

static void into_interface(Fn *f, Expr *e, Val *to) {
    const Type *interface = concrete(f, e->type), *type = concrete(f, e->a->type);
    if (type->kind == TYPE_interface) {
        pass_between(f, type, lower_address(f, e->a), interface, to);
        return;
    }
    if (is_simple(lower_type(f->l, type))) {
        to_interface(f, interface, type, lower_value(f, e->a), NULL, to);
        return;
    }
    to_interface(f, interface, type, NULL, lower_address(f, e->a), to);
}

static void into_optional(Fn *f, Expr *e, Val *to) {
    lower_into(f, e->a, build_field(&f->b, to, 0));
    build_store(&f->b, build_field(&f->b, to, 1), const_int(f, TYPE_bool, 1));
}

static void convert_part(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to);

/* DifferentialPair<A> to DifferentialPair<I> or back, or between widths of floats. */
void convert_pair(Fn *f, const Type *from_type, Val *source, const Type *to_type, Val *to) {
    Checker *c = f->l->c;
    const Type *from = from_type->args[0], *type = to_type->args[0];
    Val *p = build_field(&f->b, source, 0), *d = build_field(&f->b, source, 1),
        *to_d = build_field(&f->b, to, 1);
    const Type *dfrom = check_differential(c, from), *dtype = check_differential(c, type);
    convert_part(f, from, p, type, build_field(&f->b, to, 0));
    if (type->kind == TYPE_interface &&
        from->kind != TYPE_interface) { /* the one of that type, not all that look alike */
        build_zero(&f->b, to_d);
        convert_part(f, dfrom, d, dfrom, build_field(&f->b, to_d, variant_index(f->l, type, from) - 1));
    } else if (from->kind == TYPE_interface && type->kind != TYPE_interface)
        convert_part(f, dtype, build_field(&f->b, d, variant_index(f->l, from, type) - 1), dtype, to_d);
    else convert_part(f, dfrom, d, dtype, to_d);
}

static void map_parts(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to) {
    Val *to_has = build_field(&f->b, to, 1), *has = build_load(&f->b, build_field(&f->b, from, 1));
    build_store(&f->b, to_has, has);
    Val *from_part = build_field(&f->b, from, 0);
    Val *to_part = build_field(&f->b, to, 0);
    convert_part(f, from_type->args[0], from_part, to_type->args[0], to_part);
}

static int optional_depth(const Type *type) {
    int depth = 0;
    for (; type->kind == TYPE_optional; type = type->args[0]) depth++;
    return depth;
}

static void convert_part(Fn *f, const Type *from_type, Val *from, const Type *to_type, Val *to) {
    const Type *ir = lower_type(f->l, from_type), *target = lower_type(f->l, to_type);
    if (from_type == to_type) {
        if (is_simple(ir)) build_store(&f->b, to, build_load(&f->b, from));
        else copy_object(f, to, from, false);
    } else if (to_type->kind == TYPE_optional && optional_depth(from_type) < optional_depth(to_type)) {
        convert_part(f, from_type, from, to_type->args[0], build_field(&f->b, to, 0));
        build_store(&f->b, build_field(&f->b, to, 1), const_int(f, TYPE_bool, 1));
    } else if (to_type->kind == TYPE_optional) map_parts(f, from_type, from, to_type, to);
    else if (to_type->kind == TYPE_matrix && from_type->kind == TYPE_matrix) convert_matrix(f, from, to);
    else if (to_type->kind == TYPE_matrix) {
        const Type *element = lower_type(f->l, to_type->args[0]);
        splat_matrix(f, convert_numeric(f, build_load(&f->b, from), element), to);
    } else if (is_simple(ir) && is_simple(target))
        build_store(&f->b, to, convert_numeric(f, build_load(&f->b, from), target));
    else pass_between(f, from_type, from, to_type, to);
}

void lower_convert_into(Fn *f, Expr *e, Val *to) {
    switch ((ConversionKind)e->conversion) {
    case CONVERT_promised: lower_into(f, promised(f, e), to); return;
    case CONVERT_splat: splat_matrix(f, lower_value(f, e->a), to); return;
    case CONVERT_numeric:
    case CONVERT_truncate: convert_matrix(f, lower_address(f, e->a), to); return;
    case CONVERT_to_interface:
    case CONVERT_interface: into_interface(f, e, to); return;
    case CONVERT_optional: into_optional(f, e, to); return;
    case CONVERT_optional_map:
        map_parts(f, concrete(f, e->a->type), lower_address(f, e->a), concrete(f, e->type), to);
        return;
    case CONVERT_null: build_zero(&f->b, to); return;
    case CONVERT_pair:
        convert_pair(f, concrete(f, e->a->type), lower_address(f, e->a), concrete(f, e->type), to);
        return;
    case CONVERT_interface_diff:
        if (concrete(f, e->type)->kind == TYPE_interface && concrete(f, e->a->type)->kind == TYPE_assoc) {
            differential_into_interface(f, e->a, concrete(f, e->type), to);
            return;
        }
        pass_between(f, concrete(f, e->a->type), lower_address(f, e->a), concrete(f, e->type), to);
        return;
    case CONVERT_upcast: {
        Val *from = lower_address(f, e->a);
        int n = type_record(to->type->args[0])->nfields;
        for (int i = 0; i < n; i++) {
            Val *a = build_field(&f->b, to, i), *b = build_field(&f->b, from, i);
            if (is_simple(a->type->args[0])) build_store(&f->b, a, build_load(&f->b, b));
            else copy_object(f, a, b, false);
        }
        return;
    }
    default: lower_into(f, e->a, to); return;
    }
}
