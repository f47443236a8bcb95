/* What differentiable types provide without a declaration: dzero, dadd, dmul, use; and default construction. All by structure,
 * except where a struct inside has its own. */
#include "lower/lowerer.h"

static Func *user_method(Fn *f, const Type *front, const char *name) {
    Decl *requirement;
    if (front->kind != TYPE_struct) return NULL;
    Satisfaction found = check_differentiable_witness(f->l->c, front, name, &requirement);
    return found.kind == SATISFY_decl ? lower_func(f->l, found.decl, found.subst, NULL, 0) : NULL;
}

/* ---- zero */

void zero_differential(Fn *f, const Type *front, Val *to) {
    (void)front;
    build_zero(&f->b, to);
}

/* ---- addition */

static Val *add_values(Fn *f, Val *a, Val *b) { return build_binary(&f->b, OP_add, a, b); }

static void add_elements(Fn *f, const Type *front, Val *to, Val *from) {
    const Type *ir = lower_type(f->l, front);
    if (front->kind == TYPE_matrix || type_is_float(front->args[0]) || front->args[0]->kind == TYPE_vector) {
        Val *args[2] = {to, from};
        build_inst(&f->b, OP_acc, args, 2, 0, 0);
        return;
    }
    Val *zero = const_int(f, TYPE_int, 0);
    Inst *loop = build_loop(&f->b, &zero, 1, false);
    Builder outer = f->b;
    f->b = build_at_end(loop->regions[0]);
    Val *go =
        build_binary(&f->b, OP_lt, loop->regions[0]->params[0], const_int(f, TYPE_int, type_length(ir)));
    build_yield(&f->b, &go, 1);
    f->b = build_at_end(loop->regions[1]);
    Val *i = loop->regions[1]->params[0];
    add_differential(f, front->args[0], build_elem(&f->b, to, i, true), build_elem(&f->b, from, i, true));
    Val *next = add_values(f, i, const_int(f, TYPE_int, 1));
    build_yield(&f->b, &next, 1);
    f->b = outer;
}

void add_differential(Fn *f, const Type *front, Val *to, Val *from) {
    Lowerer *l = f->l;
    const Type *ir = lower_type(l, front);
    Func *own = user_method(f, front, "dadd");
    if (is_simple(ir)) {
        build_store(&f->b, to, add_values(f, build_load(&f->b, to), build_load(&f->b, from)));
    } else if (own) {
        Val *sum = temp_var(f, front, "sum"), *args[2] = {to, from};
        call_func(f, own, args, 2, ir, sum);
        copy_object(f, to, sum, false);
    } else if (ir->kind == TYPE_array) add_elements(f, front, to, from);
    else if (front->kind == TYPE_struct) {
        DeclVec fields = check_all_fields(l->c, front);
        for (int i = 0; i < fields.count; i++)
            add_differential(f, check_field_type(l->c, front, fields.at[i]), build_field(&f->b, to, i),
                             build_field(&f->b, from, i));
    } else if (front->kind == TYPE_optional)
        add_differential(f, front->args[0], build_field(&f->b, to, 0), build_field(&f->b, from, 0));
    else if (front->kind == TYPE_pair) {
        add_differential(f, front->args[0], build_field(&f->b, to, 0), build_field(&f->b, from, 0));
        add_differential(f, check_differential(l->c, front->args[0]), build_field(&f->b, to, 1),
                         build_field(&f->b, from, 1));
    } else if (front->kind == TYPE_tuple) {
        for (int i = 0; i < front->nargs; i++)
            add_differential(f, front->args[i], build_field(&f->b, to, i), build_field(&f->b, from, i));
    } else if (front->kind == TYPE_assoc) {
        const TypeVec *types = check_conformers(l->c, front->args[0]);
        for (int i = 0; i < types->count; i++) {
            const Type *d = check_differential(l->c, types->at[i]);
            if (d) add_differential(f, d, build_field(&f->b, to, i), build_field(&f->b, from, i));
        }
    }
}

void lower_dadd_body(Lowerer *l, Request *request) {
    request->sig = (FuncSig){.result = type_basic(l->types, TYPE_void)};
    Fn f = fn_begin(l, request);
    add_differential(&f, request->type, request->func->body->params[0], request->func->body->params[1]);
    fn_end(&f);
}

/* ---- scaling */

static void scale(Fn *f, const Type *front, Val *factor, Val *to) {
    Lowerer *l = f->l;
    const Type *ir = lower_type(l, front);
    if (is_simple(ir)) {
        build_store(&f->b, to,
                    build_binary(&f->b, OP_mul, build_load(&f->b, to), convert_numeric(f, factor, ir)));
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
    else if (strcmp(callee->native, "dzero") == 0) zero_differential(f, front, at);
    else if (strcmp(callee->native, "use") == 0) {
        if (e->a) lower_into(f, e->a, at);
    } else if (strcmp(callee->native, "dadd") == 0) {
        lower_into(f, e->args.at[0], at);
        Val *other = temp_var(f, front, "other");
        lower_into(f, e->args.at[1], other);
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
