/* What differentiable types provide without a declaration: dzero, dadd, dmul, use; and default construction.
 * All by structure, except where a struct inside has its own. */
#include "lower/lowerer.h"

/* ---- zero */

static void zero_parts(Fn *f, const Type *type, Val *to);

/* Is the zero of a part of it written in the source? */
static bool has_own_zero(Fn *f, const Type *type) {
    if (type->kind == TYPE_struct) {
        if (own_method(f->l, type, "dzero")) return true;
        DeclVec fields = check_all_fields(f->l->c, type);
        for (int i = 0; i < fields.count; i++)
            if (has_own_zero(f, check_field_type(f->l->c, type, fields.at[i]))) return true;
        return false;
    }
    if (type->kind == TYPE_array) return has_own_zero(f, type->args[0]);
    return type->kind == TYPE_optional || type->kind == TYPE_pair || type->kind == TYPE_tuple;
}

static void zero_elements(Fn *f, const Type *element, Val *to) {
    int64_t n = has_own_zero(f, element) ? type_length(to->type->args[0]) : 0;
    for (int64_t i = 0; i < n; i++)
        zero_parts(f, element, build_elem(&f->b, to, const_int(f, TYPE_int, i), true));
}

static void zero_fields(Fn *f, const Type *type, Val *to) {
    Lowerer *l = f->l;
    DeclVec fields = check_all_fields(l->c, type);
    const FieldSlot *slots = check_field_slots(l->c, type, &fields);
    Record *record = type_record(lower_type(l, type));
    complete_record_diff(l, record);
    for (int i = 0; i < fields.count; i++) {
        int to_field = record->diff.field_map ? record->diff.field_map[slots[i].member] : -1;
        if (to_field >= 0)
            zero_parts(f, check_field_type(l->c, type, fields.at[i]), build_field(&f->b, to, to_field));
    }
}

/* The parts of a differential of `type` whose zero is written in the source; all else is zero already. */
static void zero_parts(Fn *f, const Type *type, Val *to) {
    Func *own = type->kind == TYPE_struct ? own_method(f->l, type, "dzero") : NULL;
    const Type *ir = to->type->args[0];
    if (own) {
        Val *value = call_func(f, own, NULL, 0, ir, is_simple(ir) ? NULL : to);
        if (value) build_store(&f->b, to, value);
    } else if (type->kind == TYPE_struct && ir->kind == TYPE_record) zero_fields(f, type, to);
    else if (type->kind == TYPE_array) zero_elements(f, type->args[0], to);
    else if (type->kind == TYPE_optional || type->kind == TYPE_pair)
        zero_parts(f, type->args[0], build_field(&f->b, to, 0));
    else if (type->kind == TYPE_tuple)
        for (int i = 0; i < type->nargs; i++) zero_parts(f, type->args[i], build_field(&f->b, to, i));
    if (type->kind == TYPE_pair)
        zero_parts(f, check_differential(f->l->c, type->args[0]), build_field(&f->b, to, 1));
}

static void zero_differential(Fn *f, const Type *type, Val *to) {
    build_zero(&f->b, to);
    zero_parts(f, type, to);
}

/* ---- addition */

/* The type that a struct was made for as its Differential; a struct that is its own is that type. */
static const Type *type_of_differential(Lowerer *l, const Type *front) {
    const Decl *decl = front->decl;
    const Decl *owner = decl->modifiers & MODIFIER_synthesized ? decl->parent : NULL;
    bool made = owner && (owner->kind == DECL_struct || owner->kind == DECL_extension);
    return made ? check_type_around(l->c, front) : front;
}

/* A use() with a backward derivative of its own says how derivatives are added: use_bwd adds one to
 * another. */
static Func *sum_of_uses(Lowerer *l, const Type *differential) {
    const Type *type = type_of_differential(l, differential);
    Decl *requirement;
    Satisfaction use = check_differentiable_witness(l->c, type, "use", &requirement);
    if (use.kind != SATISFY_decl || (use.decl->flags & DECL_PRELUDE)) return NULL;
    check_derivatives(l->c, use.decl);
    Decl *sum = check_prelude_decl(l->c, "__sum_of_uses");
    if (!decl_sema(l->c, use.decl)->bwd.decl || !sum) return NULL;
    return lower_func(l, sum, subst_new(l->c, NULL, sum, &type, 1), NULL, 0);
}

/* The user's dadd or dzero, if there is one. It needs no attribute to be differentiated, as derivatives of
 * derivatives want it. */
Func *own_method(Lowerer *l, const Type *type, const char *name) {
    Decl *requirement;
    Satisfaction found = check_differentiable_witness(l->c, type, name, &requirement);
    if (found.kind != SATISFY_decl) return NULL;
    Func *func = lower_func(l, found.decl, found.subst, NULL, 0);
    func->flags |= FUNC_FWD | FUNC_BWD;
    return func;
}

Func *own_sum(Lowerer *l, const Type *differential) {
    if (differential->kind != TYPE_struct) return NULL;
    Func *own = own_method(l, differential, "dadd");
    return own ? own : sum_of_uses(l, differential);
}

/* ... or that of a type whose Differential it is, once that was seen. */
static Func *known_sum(Lowerer *l, const Type *differential) {
    Func *own = own_sum(l, differential);
    const Type *ir = lower_type(l, differential);
    return own || ir->kind != TYPE_record ? own : type_record(ir)->diff.add;
}

static void see_parts(Lowerer *l, const Type *type) {
    const Type *ir = type->kind == TYPE_struct ? lower_type(l, type) : NULL;
    if (ir) complete_record_diff(l, type_record(ir));
    DeclVec fields = check_all_fields(l->c, type);
    for (int i = 0; i < fields.count; i++) {
        const Type *field = check_field_type(l->c, type, fields.at[i]);
        if (check_differential(l->c, field)) see_parts(l, field);
    }
    for (int i = 0; i < type->nargs && type->kind != TYPE_struct; i++)
        if (check_differential(l->c, type->args[i])) see_parts(l, type->args[i]);
}

static void add_differential(Fn *f, const Type *front, Val *to, Val *from);

static void add_elements(Fn *f, const Type *front, Val *to, Val *from) {
    const Type *ir = lower_type(f->l, front);
    if (front->kind == TYPE_matrix || type_is_float(front->args[0]) || front->args[0]->kind == TYPE_vector) {
        Val *args[2] = {to, from};
        build_inst(&f->b, OP_acc, args, 2, 0, 0);
        return;
    }
    Count count = begin_count(f, 0, type_length(ir));
    Val *to_part = build_elem(&f->b, to, count.index, true);
    Val *from_part = build_elem(&f->b, from, count.index, true);
    add_differential(f, front->args[0], to_part, from_part);
    end_count(f, &count);
}

/* Of such a field. */
static void add_field(Fn *f, const Type *front, Val *to, Val *from, int field) {
    Val *to_field = build_field(&f->b, to, field), *from_field = build_field(&f->b, from, field);
    add_differential(f, front, to_field, from_field);
}

/* to += from */
static void add_differential(Fn *f, const Type *front, Val *to, Val *from) {
    Lowerer *l = f->l;
    const Type *ir = lower_type(l, front);
    Func *own = known_sum(l, front);
    if (is_simple(ir)) {
        Val *sum = build_load(&f->b, to);
        Val *term = build_load(&f->b, from);
        build_store(&f->b, to, build_sum(&f->b, sum, term));
    } else if (own) {
        Val *sum = temp_var(f, front, "sum"), *args[2] = {to, from};
        call_func(f, own, args, 2, ir, sum);
        copy_object(f, to, sum, false);
    } else if (ir->kind == TYPE_array) add_elements(f, front, to, from);
    else if (front->kind == TYPE_struct) {
        DeclVec fields = check_all_fields(l->c, front);
        for (int i = 0; i < fields.count; i++)
            add_field(f, check_field_type(l->c, front, fields.at[i]), to, from, i);
    } else if (front->kind ==
               TYPE_optional) { /* it has a value if one of them has; where there is none, it is zero */
        Val *has = build_field(&f->b, to, 1), *other = build_field(&f->b, from, 1);
        add_field(f, front->args[0], to, from, 0);
        Val *had = build_load(&f->b, has), *given = build_load(&f->b, other);
        build_store(&f->b, has, build_binary(&f->b, OP_or, had, given));
    } else if (front->kind == TYPE_pair) {
        add_field(f, front->args[0], to, from, 0);
        add_field(f, check_differential(l->c, front->args[0]), to, from, 1);
    } else if (front->kind == TYPE_tuple) {
        for (int i = 0; i < front->nargs; i++) add_field(f, front->args[i], to, from, i);
    } else if (front->kind == TYPE_assoc) {
        const TypeVec *types = check_conformers(l->c, front->args[0]);
        for (int i = 0; i < types->count; i++) {
            const Type *d = check_differential(l->c, types->at[i]);
            if (d) add_field(f, d, to, from, i);
        }
    }
}

/* ---- scaling */

static void scale(Fn *f, const Type *front, Val *factor, Val *to) {
    Lowerer *l = f->l;
    const Type *ir = lower_type(l, front);
    if (is_simple(ir)) {
        Val *number = build_load(&f->b, to), *scaled = convert_numeric(f, factor, ir);
        build_store(&f->b, to, build_binary(&f->b, OP_mul, number, scaled));
    } else if (ir->kind == TYPE_array) {
        const Type *element = front->kind == TYPE_matrix ? ir->args[0] : front->args[0];
        for (int64_t i = 0; i < type_length(ir); i++)
            scale(f, element, factor, build_elem(&f->b, to, const_int(f, TYPE_int, i), true));
    } else if (front->kind == TYPE_struct) {
        DeclVec fields = check_all_fields(l->c, front);
        for (int i = 0; i < fields.count; i++)
            scale(f, check_field_type(l->c, front, fields.at[i]), factor, build_field(&f->b, to, i));
    } else if (front->kind == TYPE_tuple) {
        for (int i = 0; i < front->nargs; i++) scale(f, front->args[i], factor, build_field(&f->b, to, i));
    } else if (front->kind == TYPE_optional) scale(f, front->args[0], factor, build_field(&f->b, to, 0));
}

/* ---- entry */

static Val *result_in(Fn *f, const Type *front, Val *at, Val *into) {
    if (into) return NULL;
    return is_simple(lower_type(f->l, front)) ? build_load(&f->b, at) : NULL;
}

Val *lower_native(Fn *f, const Callee *callee, Expr *e, Val *into) {
    const Type *type = callee->native_type, *front = concrete(f, e->type);
    Val *at = into ? into : temp_var(f, front, "native");
    if (strcmp(callee->native, "__init") == 0) store_default(f, type, at);
    else if (strcmp(callee->native, "dzero") == 0) zero_differential(f, type, at);
    else if (strcmp(callee->native, "use") == 0) {
        if (e->a) lower_into(f, e->a, at);
    } else if (strcmp(callee->native, "dadd") == 0) {
        lower_into(f, e->args.at[0], at);
        Val *other = temp_var(f, front, "other");
        lower_into(f, e->args.at[1], other);
        see_parts(f->l, type);
        add_differential(f, front, at, other);
    } else if (strcmp(callee->native, "dmul") == 0) {
        Val *factor = lower_value(f, e->args.at[0]);
        lower_into(f, e->args.at[1], at);
        scale(f, front, factor, at);
    } else
        arena_fault(f->l->arena, format_text(f->l->arena, "'%s' has no '%s'", type_text(f->l->arena, type),
                                             callee->native));
    return result_in(f, front, at, into);
}
