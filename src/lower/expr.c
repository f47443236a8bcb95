/* Expressions. Simple ones give a value; structs and arrays are written into memory that the caller
 * provides. */
#include "lower/lowerer.h"

Val *const_int(Fn *f, TypeKind kind, int64_t value) {
    return ir_const_int(f->l->m, type_basic(f->l->types, kind), value);
}

/* Values are row-major, whatever the memory is that they come from. */
Val *temp_var(Fn *f, const Type *front, const char *name) {
    if (is_transposed(front))
        front = type_matrix(f->l->types, front->args[0], (int)front->args[1]->number,
                            (int)front->args[2]->number);
    return build_var(&f->b, lower_type(f->l, front), name_from(f->l->m->names, name), false);
}

const Subst *concrete_subst(Fn *f, const Subst *subst) {
    if (!subst) return NULL;
    const Type **args = arena_array(f->l->arena, const Type *, subst->nargs ? subst->nargs : 1);
    for (int i = 0; i < subst->nargs; i++) args[i] = concrete(f, subst->args[i]);
    return subst_new(f->l->c, concrete_subst(f, subst->outer), subst->owner, args, subst->nargs);
}

bool expr_constant(Fn *f, Expr *e, int64_t *value) {
    return check_constant(f->l->c, e, f->subst, f->pack_element, value);
}

/* ---- default values */

Count begin_count(Fn *f, int64_t first, int64_t end) {
    Count count = {.loop = build_count(&f->b, first, end), .outside = f->b};
    count.index = count.loop.index;
    f->b = count.loop.body;
    return count;
}

void end_count(Fn *f, Count *count) {
    count->loop.body = f->b;
    build_next(&count->loop);
    f->b = count->outside;
}

static bool has_own_default(Lowerer *l, const Type *front);

static bool find_own_default(Lowerer *l, const Type *front) {
    Decl *init;
    if (front->kind == TYPE_array) return has_own_default(l, front->args[0]);
    if (front->kind == TYPE_tuple)
        for (int i = 0; i < front->nargs; i++)
            if (has_own_default(l, front->args[i])) return true;
    if (front->kind != TYPE_struct) return false;
    if (has_default_init(l->c, front, &init)) return true;
    DeclVec fields = check_all_fields(l->c, front);
    for (int i = 0; i < fields.count; i++)
        if (fields.at[i]->init || has_own_default(l, check_field_type(l->c, front, fields.at[i])))
            return true;
    return false;
}

/* Whether a default value is more than zeros. */
static bool has_own_default(Lowerer *l, const Type *front) {
    const bool *known = map_get(&l->own_defaults, PTR_KEY(front));
    if (known) return *known;
    bool *found = arena_new(l->arena, bool);
    *found = find_own_default(l, front);
    map_put(l->arena, &l->own_defaults, PTR_KEY(front), found);
    return *found;
}

/* Those of its base, too, unless they are made already. */
static void default_fields(Fn *f, const Type *front, Val *to, bool of_base) {
    DeclVec fields = check_all_fields(f->l->c, front);
    for (int i = 0; i < fields.count; i++) {
        Decl *field = fields.at[i];
        if (!of_base && field->parent != front->decl) continue;
        Place place = place_new_field(f, to, front, field);
        place_default(f, &place, front, field);
    }
}

/* Elements from `first` on; what has no default of its own is zero already. */
void default_elements(Fn *f, const Type *element, Val *to, int64_t first) {
    enum { FEW = 4 };
    int64_t length = type_length(to->type->args[0]);
    if (first >= length || !has_own_default(f->l, element)) return;
    if (length - first > FEW) {
        Count count = begin_count(f, first, length);
        store_default(f, element, build_elem(&f->b, to, count.index, true));
        end_count(f, &count);
        return;
    }
    for (int64_t i = first; i < length; i++)
        store_default(f, element, build_elem(&f->b, to, const_int(f, TYPE_int, i), true));
}

/* A constructor that is inherited makes what the struct has from its base. */
static void store_default_of_base(Fn *f, const Type *front, Val *to) {
    const Type *base = check_base(f->l->c, front);
    store_default(f, base, build_bitcast(&f->b, to, type_pointer(f->l->types, lower_type(f->l, base))));
    default_fields(f, front, to, false);
}

/* What `= {}` gives: a constructor without arguments, default values of fields, or zero. */
void store_default(Fn *f, const Type *front, Val *to) {
    Lowerer *l = f->l;
    Decl *init;
    bool is_made = front->kind == TYPE_struct && has_default_init(l->c, front, &init);
    if (is_made && init->parent->kind == DECL_struct && init->parent != front->decl) {
        store_default_of_base(f, front, to);
    } else if (is_made) {
        Request *request = request_func(l, init, subst_of_type(l->c, front), false, NULL, 0);
        call_defaults(f, request, to);
    } else if (front->kind == TYPE_struct) default_fields(f, front, to, true);
    else {
        build_zero(&f->b, to);
        if (front->kind == TYPE_array) default_elements(f, front->args[0], to, 0);
        for (int i = 0; front->kind == TYPE_tuple && i < front->nargs; i++)
            if (has_own_default(l, front->args[i]))
                store_default(f, front->args[i], build_field(&f->b, to, i));
    }
}

/* ---- operators */

static Op arithmetic_op(Operator op) {
    switch (op) {
    case OPERATOR_add: return OP_add;
    case OPERATOR_sub: return OP_sub;
    case OPERATOR_mul: return OP_mul;
    case OPERATOR_div: return OP_div;
    case OPERATOR_mod: return OP_rem;
    case OPERATOR_bit_and:
    case OPERATOR_and: return OP_and;
    case OPERATOR_bit_or:
    case OPERATOR_or: return OP_or;
    case OPERATOR_bit_xor: return OP_xor;
    case OPERATOR_shl: return OP_shl;
    case OPERATOR_shr: return OP_shr;
    case OPERATOR_less:
    case OPERATOR_greater: return OP_lt;
    case OPERATOR_less_equal:
    case OPERATOR_greater_equal: return OP_le;
    case OPERATOR_equal: return OP_eq;
    case OPERATOR_not_equal: return OP_ne;
    default: return OP_COUNT;
    }
}

static bool swaps(Operator op) { return op == OPERATOR_greater || op == OPERATOR_greater_equal; }

static Val *apply_unary(Fn *f, Operator op, Val *a) {
    switch (op) {
    case OPERATOR_sub: return build_unary(&f->b, OP_neg, a);
    case OPERATOR_not:
    case OPERATOR_bit_not: return build_unary(&f->b, OP_not, a);
    default: return a;
    }
}

static Val *apply_binary(Fn *f, Operator op, Val *a, Val *b) {
    if (a->type->kind == TYPE_pointer && (op == OPERATOR_add || op == OPERATOR_sub)) {
        if (op == OPERATOR_sub)
            b = build_unary(&f->b, OP_neg, build_convert(&f->b, b, type_basic(f->l->types, TYPE_int64)));
        return build_offset(&f->b, a, b);
    }
    if (a->type->kind == TYPE_pointer) {
        const Type *word = type_basic(f->l->types, TYPE_uint64);
        a = build_bitcast(&f->b, a, word);
        b = build_bitcast(&f->b, b, word);
    }
    return swaps(op) ? build_binary(&f->b, arithmetic_op(op), b, a)
                     : build_binary(&f->b, arithmetic_op(op), a, b);
}

static Val *pointer_difference(Fn *f, Expr *e) {
    const Type *word = type_basic(f->l->types, TYPE_int64), *pointer = ir_type(f, e->args.at[0]->type);
    Val *a = build_bitcast(&f->b, lower_value(f, e->args.at[0]), word),
        *b = build_bitcast(&f->b, lower_value(f, e->args.at[1]), word);
    int64_t stride = type_layout(pointer->args[0], LAYOUT_scalar).stride;
    return build_binary(&f->b, OP_div, build_binary(&f->b, OP_sub, a, b),
                        ir_const_int(f->l->m, word, stride ? stride : 1));
}

/* A region of an `if` that computes one value. */
static void branch_value(Fn *f, Region *region, Expr *e, Val *constant) {
    Builder outer = f->b;
    bool dead = f->dead;
    f->b = build_at_end(region);
    f->b.loc = outer.loc;
    Val *value = constant ? constant : lower_value(f, e);
    if (!f->dead) build_yield(&f->b, &value, 1);
    f->dead = dead;
    f->b = outer;
}

static Val *lower_lazy(Fn *f, Expr *e) {
    const Type *flag = type_basic(f->l->types, TYPE_bool);
    bool is_and = e->op == OPERATOR_and;
    Val *a = lower_value(f, e->args.at[0]);
    int64_t known;
    if (val_is_int(a, &known)) return (known != 0) == is_and ? lower_value(f, e->args.at[1]) : a;
    Inst *inst = build_if(&f->b, a, &flag, 1);
    Val *other = ir_const_int(f->l->m, flag, !is_and);
    branch_value(f, inst->regions[0], e->args.at[1], is_and ? NULL : other);
    branch_value(f, inst->regions[1], e->args.at[1], is_and ? other : NULL);
    return inst_result(inst);
}

static Val *lower_builtin(Fn *f, Expr *e) {
    Operator op = (Operator)e->op;
    if (e->args.count == 1) return apply_unary(f, op, lower_value(f, e->args.at[0]));
    const Type *left = concrete(f, e->args.at[0]->type);
    if ((op == OPERATOR_and || op == OPERATOR_or) && type_is_scalar(left)) return lower_lazy(f, e);
    if (op == OPERATOR_comma) {
        lower_effect(f, e->args.at[0]);
        return lower_value(f, e->args.at[1]);
    }
    if (left->kind == TYPE_pointer && op == OPERATOR_sub &&
        concrete(f, e->args.at[1]->type)->kind == TYPE_pointer)
        return pointer_difference(f, e);
    Val *a = lower_value(f, e->args.at[0]), *b = lower_value(f, e->args.at[1]);
    return apply_binary(f, op, a, b);
}

/* Matrices: row by row. */
static void builtin_matrix(Fn *f, Expr *e, Val *to) {
    Operator op = (Operator)e->op;
    Val *a = lower_address(f, e->args.at[0]), *b = e->args.count > 1 ? lower_address(f, e->args.at[1]) : NULL;
    int64_t rows = type_length(to->type->args[0]);
    for (int64_t i = 0; i < rows; i++) {
        Val *index = const_int(f, TYPE_int, i);
        Val *x = build_load(&f->b, build_elem(&f->b, a, index, true));
        Val *y = b ? build_load(&f->b, build_elem(&f->b, b, index, true)) : NULL;
        Val *to_part = build_elem(&f->b, to, index, true);
        Val *value = y ? apply_binary(f, op, x, y) : apply_unary(f, op, x);
        build_store(&f->b, to_part, value);
    }
}

/* ---- assignment */

static Val *one_of(Fn *f, const Type *ir) {
    const Type *element = ir->kind == TYPE_vector ? ir->args[0] : ir;
    Val *one =
        type_is_float(element) ? ir_const_real(f->l->m, element, 1) : ir_const_int(f->l->m, element, 1);
    return ir->kind == TYPE_vector ? build_splat(&f->b, ir, one) : one;
}

static Val *lower_update(Fn *f, Expr *e) {
    Place place = lower_place(f, e->a);
    const Type *ir = ir_type(f, e->type);
    Val *operand;
    if (e->b) operand = lower_value(f, e->b);
    else operand = ir->kind == TYPE_pointer ? const_int(f, TYPE_int64, 1) : one_of(f, ir);
    Val *before = place_load(f, &place);
    Val *after = apply_binary(f, (Operator)e->op, before, operand);
    place_store(f, &place, after);
    return e->flags & EXPR_POSTFIX ? before : after;
}

static void update_matrix(Fn *f, Expr *e, Val *to) {
    Place place = lower_place(f, e->a);
    const Type *ir = ir_type(f, e->type);
    Val *operand = e->b ? lower_address(f, e->b) : NULL;
    Val *now = temp_var(f, place.type, "matrix");
    place_load_into(f, &place, now);
    if (to && (e->flags & EXPR_POSTFIX)) copy_object(f, to, now, false);
    for (int64_t i = 0; i < type_length(ir); i++) {
        Val *row = build_elem(&f->b, now, const_int(f, TYPE_int, i), true);
        Val *other = operand ? build_load(&f->b, build_elem(&f->b, operand, const_int(f, TYPE_int, i), true))
                             : one_of(f, ir->args[0]);
        build_store(&f->b, row, apply_binary(f, (Operator)e->op, build_load(&f->b, row), other));
    }
    place_store_from(f, &place, now);
    if (to && !(e->flags & EXPR_POSTFIX)) copy_object(f, to, now, false);
}

static Val *lower_assign(Fn *f, Expr *e) {
    Place place = lower_place(f, e->a);
    Val *value = lower_value(f, e->b);
    place_store(f, &place, value);
    return value;
}

/* t._1_0 = e.b: the parts of what is assigned go to their places one by one. */
static void assign_parts(Fn *f, const ExprVec *parts, Val *from) {
    for (int i = 0; i < parts->count; i++) {
        Place place = lower_place(f, parts->at[i]);
        Val *part = build_field(&f->b, from, i);
        const Type *type = lower_type(f->l, place.type);
        if (is_simple(type)) place_store(f, &place, convert_numeric(f, build_load(&f->b, part), type));
        else place_store_from(f, &place, part);
    }
}

/* The right side is complete before the left is touched: it may read what it replaces. An object that lies
 * somewhere is that; it is copied from there, since two of one type are the same or apart. */
static void assign_object(Fn *f, Expr *e, Val *to) {
    if (e->a->kind == EXPR_construct) {
        Val *tuple = temp_var(f, concrete(f, e->b->type), "assigned");
        lower_into(f, e->b, tuple);
        assign_parts(f, &e->a->args, tuple);
        if (to) lower_into(f, e->a, to);
        return;
    }
    Place place = lower_place(f, e->a);
    Val *from = lower_address(f, e->b);
    place_store_from(f, &place, from);
    if (to) copy_object(f, to, from, false);
}

/* ---- choice */

Val *lower_condition(Fn *f, Expr *e) { return lower_value(f, e); }

static Val *choice_condition(Fn *f, Chain *chain, int index) {
    Expr *e = chain->of;
    return lower_value(f, index ? e->args.at[2 * index - 2] : e->a);
}

static Expr *choice_value(const Chain *chain, int index) {
    Expr *e = chain->of;
    return index == chain->count ? e->c : index ? e->args.at[2 * index - 1] : e->b;
}

static void choice_branch(Fn *f, Chain *chain, int index) {
    Expr *value = choice_value(chain, index);
    if (chain->to) lower_into(f, value, chain->to);
    else lower_effect(f, value); /* of type void */
}

static Chain chain_of(Expr *e) {
    int count = e->args.count / 2 + 1;
    return (Chain){.count = count, .condition = choice_condition, .branch = choice_branch, .of = e};
}

/* From a condition of a short chain on. */
static Val *lower_choice(Fn *f, Chain *chain, int index, const Type *type) {
    if (index == chain->count) return lower_value(f, choice_value(chain, index));
    Val *condition = choice_condition(f, chain, index);
    int64_t known;
    if (val_is_int(condition, &known))
        return known ? lower_value(f, choice_value(chain, index)) : lower_choice(f, chain, index + 1, type);
    Inst *inst = build_if(&f->b, condition, &type, 1);
    branch_value(f, inst->regions[0], choice_value(chain, index), NULL);
    Builder outer = f->b;
    f->b = build_at_end(inst->regions[1]);
    f->b.loc = outer.loc;
    Val *rest = lower_choice(f, chain, index + 1, type);
    build_yield(&f->b, &rest, 1);
    f->b = outer;
    return inst_result(inst);
}

static Val *lower_select(Fn *f, Expr *e) {
    if (ir_type(f, e->a->type)->kind == TYPE_vector) {
        Val *condition = lower_value(f, e->a);
        Val *a = lower_value(f, e->b), *b = lower_value(f, e->c);
        return build_select(&f->b, condition, a, b);
    }
    Chain chain = chain_of(e);
    if (!chain_is_long(chain.count)) return lower_choice(f, &chain, 0, ir_type(f, e->type));
    chain.to = temp_var(f, concrete(f, e->type), "chosen");
    lower_chain(f, &chain);
    return build_load(&f->b, chain.to);
}

static void select_into(Fn *f, Expr *e, Val *to) {
    const Type *condition_type = ir_type(f, e->a->type);
    if (!is_simple(condition_type)) { /* matrix of bools */
        Val *condition = lower_address(f, e->a), *a = lower_address(f, e->b), *b = lower_address(f, e->c);
        for (int64_t i = 0; i < type_length(condition_type); i++) {
            Val *k = const_int(f, TYPE_int, i);
            Val *which = build_load(&f->b, build_elem(&f->b, condition, k, true));
            Val *a_row = build_load(&f->b, build_elem(&f->b, a, k, true));
            Val *b_row = build_load(&f->b, build_elem(&f->b, b, k, true));
            Val *row = build_select(&f->b, which, a_row, b_row);
            build_store(&f->b, build_elem(&f->b, to, k, true), row);
        }
        return;
    }
    Chain chain = chain_of(e);
    chain.to = to;
    lower_chain(f, &chain);
}

/* ---- leaves */

static Val *lower_literal(Fn *f, Expr *e) {
    const Type *type = ir_type(f, e->type);
    if (e->kind == EXPR_float) return ir_const_real(f->l->m, type, e->real);
    return ir_const_int(f->l->m, type, (int64_t)e->number);
}

static Val *lower_name(Fn *f, Expr *e) {
    Lowerer *l = f->l;
    Decl *decl = e->decl;
    const Type *type = ir_type(f, e->type);
    int64_t value;
    if (decl->kind == DECL_case) {
        check_decl_header(l->c, decl);
        return lower_case(l, decl, type);
    }
    if (decl->kind == DECL_value_param) {
        if (expr_constant(f, e, &value)) return ir_const_int(l->m, type, value);
        lower_report(f, DIAG_generic_value, e->loc, decl->name->text);
        return ir_const_int(l->m, type, 0);
    }
    Place place = lower_place(f, e);
    return place_load(f, &place);
}

static Val *lower_size(Fn *f, Expr *e) {
    int64_t known;
    if (expr_constant(f, e, &known)) return const_int(f, TYPE_int, known);
    if (e->kind == EXPR_countof && e->a->kind == EXPR_expand)
        return const_int(f, TYPE_int, expansion_length(f, e->a));
    const Type *front = concrete(f, e->a->kind == EXPR_type ? e->a->type_value : e->a->type);
    if (e->kind == EXPR_countof) {
        if (front->kind == TYPE_pack || front->kind == TYPE_tuple)
            return const_int(f, TYPE_int, front->nargs);
        return const_int(f, TYPE_int, front->kind == TYPE_vector ? type_count(front) : type_length(front));
    }
    if (e->number) return const_int(f, TYPE_int, ir_count_numbers(lower_type(f->l, front)));
    Layout layout = external_layout(f->l, front);
    return const_int(f, TYPE_int, e->kind == EXPR_sizeof ? layout.size : layout.align);
}

/* Also of one component of a vector in memory. */
static Val *lane_address(Fn *f, const Place *place) {
    bool lane = place->kind == PLACE_lane || (place->kind == PLACE_lanes && place->nlanes == 1);
    if (!lane || !place->base->address) return place->address;
    Val *index = place->kind == PLACE_lane ? place->value : const_int(f, TYPE_int, place->lanes[0]);
    return build_elem(&f->b, place->base->address, index, false);
}

static bool is_in_block(Val *address) {
    const Val *root = ir_root(address);
    return root->kind == VAL_inst && root->inst->op == OP_global &&
           root->inst->global->layout != LAYOUT_scalar;
}

/* A pointer leads to the form of buffers; interface values in variables have another, as has all that is in a
 * constant buffer. */
static Val *address_of(Fn *f, const Expr *e) {
    Place place = lower_place(f, e->a);
    const Type *front = concrete(f, e->a->type);
    if (place.kind == PLACE_external || !has_external_form(f->l, front)) {
        Val *address = lane_address(f, &place);
        if (is_in_block(address)) lower_report(f, DIAG_block_address, e->loc);
        return address;
    }
    lower_report(f, DIAG_interface_address, e->loc, type_text(f->l->arena, front));
    return NULL;
}

/* ---- entries */

static Val *value_of_element(Fn *f, Expr *e) {
    int element = f->pack_element;
    Val *value = lower_value(f, enter_element(f, e));
    f->pack_element = element;
    return value;
}

Val *lower_value(Fn *f, Expr *e) {
    if (names_element(e)) return value_of_element(f, e);
    Loc outer = f->b.loc;
    if (e->loc) f->b.loc = e->loc;
    Val *value = NULL;
    switch ((ExprKind)e->kind) {
    case EXPR_int:
    case EXPR_bool:
    case EXPR_float: value = lower_literal(f, e); break;
    case EXPR_string: value = lower_text(f, e->text); break;
    case EXPR_null:
    case EXPR_none:
    case EXPR_default: value = ir_const_zero(f->l->m, ir_type(f, e->type)); break;
    case EXPR_decl: value = lower_name(f, e); break;
    case EXPR_paren: value = lower_value(f, e->a); break;
    case EXPR_builtin: value = lower_builtin(f, e); break;
    case EXPR_update: value = lower_update(f, e); break;
    case EXPR_assign: value = lower_assign(f, e); break;
    case EXPR_try: value = lower_try(f, e, NULL); break;
    case EXPR_select: value = lower_select(f, e); break;
    case EXPR_convert: value = lower_convert(f, e); break;
    case EXPR_construct: value = lower_construct(f, e); break;
    case EXPR_invoke: value = lower_call(f, e, NULL); break;
    case EXPR_sizeof:
    case EXPR_alignof:
    case EXPR_countof: value = lower_size(f, e); break;
    case EXPR_is: value = lower_is(f, e); break;
    case EXPR_no_diff:
        f->no_diff_calls++;
        value = detached(f, lower_value(f, e->a), true);
        f->no_diff_calls--;
        break;
    case EXPR_address: value = address_of(f, e); break;
    case EXPR_each: {
        Local *element = pack_element(f, e);
        int64_t number;
        if (expr_constant(f, e, &number)) value = ir_const_int(f->l->m, ir_type(f, e->type), number);
        else if (element) value = element->address ? build_load(&f->b, element->address) : element->value;
        else value = build_load(&f->b, each_address(f, e));
        break;
    }
    case EXPR_this:
    case EXPR_swizzle:
    case EXPR_element:
    case EXPR_part:
    case EXPR_deref: {
        Place place = lower_place(f, e);
        value = place_load(f, &place);
        break;
    }
    default: arena_fault(f->l->arena, format_text(f->l->arena, "cannot lower expression kind %d", e->kind));
    }
    f->b.loc = outer;
    if (!value) value = ir_const_zero(f->l->m, ir_type(f, e->type));
    return value;
}

static void lambda_into(Fn *f, Expr *e, Val *to) {
    for (int i = 0; i < e->args.count; i++) lower_into(f, e->args.at[i], build_field(&f->b, to, i));
}

static void object_into(Fn *f, Expr *e, Val *to) {
    switch ((ExprKind)e->kind) {
    case EXPR_paren: lower_into(f, e->a, to); return;
    case EXPR_default: store_default(f, concrete(f, e->type), to); return;
    case EXPR_construct: lower_construct_into(f, e, to); return;
    case EXPR_convert: lower_convert_into(f, e, to); return;
    case EXPR_invoke: lower_call(f, e, to); return;
    case EXPR_select: select_into(f, e, to); return;
    case EXPR_builtin:
        if (e->op == OPERATOR_comma) {
            lower_effect(f, e->args.at[0]);
            lower_into(f, e->args.at[1], to);
        } else builtin_matrix(f, e, to);
        return;
    case EXPR_update: update_matrix(f, e, to); return;
    case EXPR_assign: assign_object(f, e, to); return;
    case EXPR_try: lower_try(f, e, to); return;
    case EXPR_lambda: lambda_into(f, e, to); return;
    case EXPR_as: lower_as(f, e, to); return;
    case EXPR_no_diff: {
        f->no_diff_calls++;
        Val *temp = temp_var(f, concrete(f, e->type), "no_diff");
        lower_into(f, e->a, temp);
        copy_object(f, to, temp, true);
        f->no_diff_calls--;
        return;
    }
    case EXPR_each: {
        Local *element = pack_element(f, e);
        copy_object(f, to, element ? element->address : each_address(f, e), false);
        return;
    }
    default: {
        Place place = lower_place(f, e);
        place_load_into(f, &place, to);
    }
    }
}

void lower_into(Fn *f, Expr *e, Val *to) {
    Loc outer = f->b.loc;
    if (e->loc) f->b.loc = e->loc;
    int element = f->pack_element;
    if (names_element(e)) {
        lower_into(f, enter_element(f, e), to);
        f->pack_element = element;
    } else if (ir_type(f, e->type)->kind == TYPE_void) lower_effect(f, e);
    else if (is_simple(ir_type(f, e->type))) build_store(&f->b, to, lower_value(f, e));
    else object_into(f, e, to);
    f->b.loc = outer;
}

Val *lower_address(Fn *f, Expr *e) {
    Place place = lower_place(f, e);
    if (place.kind == PLACE_value && place.value) {
        Val *temp = temp_var(f, place.type, "temp");
        build_store(&f->b, temp, place.value);
        return temp;
    }
    return place_address(f, &place);
}

/* An initialiser that belongs to another declaration: its types are in terms of that one's parameters. */
Val *lower_value_under(Fn *f, Expr *e, const Subst *subst) {
    const Subst *outer = f->subst;
    int element = f->pack_element;
    f->subst = subst;
    f->pack_element = -1;
    Val *value = lower_value(f, e);
    f->subst = outer;
    f->pack_element = element;
    return value;
}

void lower_effect(Fn *f, Expr *e) {
    const Type *type = e->kind == EXPR_expand ? NULL : concrete(f, e->type);
    if (e->kind == EXPR_expand) lower_expand(f, e);
    else if (e->kind == EXPR_invoke && type->kind == TYPE_void) lower_call(f, e, NULL);
    else if (e->kind == EXPR_try && type->kind == TYPE_void) lower_try(f, e, NULL);
    else if (e->kind == EXPR_assign && !is_simple(lower_type(f->l, type))) assign_object(f, e, NULL);
    else if (e->kind == EXPR_update && !is_simple(lower_type(f->l, type))) update_matrix(f, e, NULL);
    else if (e->kind == EXPR_no_diff && type->kind == TYPE_void) {
        f->no_diff_calls++;
        lower_effect(f, e->a);
        f->no_diff_calls--;
    } else if (e->kind == EXPR_builtin && e->op == OPERATOR_comma) {
        lower_effect(f, e->args.at[0]);
        lower_effect(f, e->args.at[1]);
    } else if (e->kind == EXPR_select && type->kind == TYPE_void) {
        Chain chain = chain_of(e);
        lower_chain(f, &chain);
    } else if (type->kind == TYPE_void) {
        if (e->kind == EXPR_paren || e->kind == EXPR_convert) lower_effect(f, e->a);
        else if (e->kind == EXPR_assign) lower_effect(f, e->b);
    } else if (is_simple(lower_type(f->l, type))) lower_value(f, e);
    else lower_into(f, e, temp_var(f, type, "unused"));
}
