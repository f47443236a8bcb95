/* Places: where a value is, or where it goes.
 *
 * Most are memory. Lanes of a vector are read and written as a whole vector, so that local vectors can become values, except in
 * memory that others may see, where just the lane is touched. Properties and subscripts are calls; changing a part of what
 * they give is get, change, set: the place is then in a temporary that is written back. */
#include "lower/lowerer.h"

Place place_of_memory(Val *address, const Type *front) {
    return (Place){.kind = PLACE_memory, .address = address, .type = front};
}

static Place *keep(Fn *f, Place place) { return arena_copy(f->l->arena, &place, sizeof place); }

Val *detached(Fn *f, Val *value, bool no_diff) {
    if (!no_diff || !f->diff) return value;
    const Type *element = value->type->kind == TYPE_vector ? value->type->args[0] : value->type;
    return type_is_float(element) ? build_unary(&f->b, OP_detach, value) : value;
}

void copy_object(Fn *f, Val *to, Val *from, bool no_diff) {
    if (to == from) return;
    build_copy(&f->b, to, from);
    Inst *last = f->b.before ? f->b.before->prev : f->b.region->last;
    if (no_diff && f->diff && last && last->op == OP_copy) last->flag = true;
}

/* ---- lanes */

static bool is_matrix(const Type *front) { return front->kind == TYPE_matrix; }

static Val *row_address(Fn *f, Val *matrix, int row) {
    return build_elem(&f->b, matrix, const_int(f, TYPE_int, row), true);
}

static Val *matrix_lane(Fn *f, Val *matrix, int lane) {
    Val *row = build_load(&f->b, row_address(f, matrix, lane / 4));
    return build_extract_lane(&f->b, row, lane % 4);
}

static Val *join_lanes(Fn *f, Val **lanes, int n) {
    if (n == 1) return lanes[0];
    return build_vec(&f->b, type_vector(f->l->types, lanes[0]->type, n), lanes);
}

static Val *load_lanes(Fn *f, const Place *place) {
    Val *lanes[4];
    int n = place->nlanes;
    if (is_matrix(place->base->type)) {
        Val *matrix = place_address(f, place->base);
        for (int i = 0; i < n; i++) lanes[i] = matrix_lane(f, matrix, place->lanes[i]);
        return join_lanes(f, lanes, n);
    }
    Val *vector = place_load(f, place->base);
    if (vector->type->kind != TYPE_vector) { /* a scalar: every lane is it */
        for (int i = 0; i < n; i++) lanes[i] = vector;
        return join_lanes(f, lanes, n);
    }
    if (n == 1) return build_extract_lane(&f->b, vector, place->lanes[0]);
    return build_shuffle(&f->b, vector, place->lanes, n);
}

static Val *lane_of(Fn *f, Val *value, int i, int n) {
    return n == 1 ? value : build_extract_lane(&f->b, value, i);
}

static void store_lanes(Fn *f, const Place *place, Val *value) {
    const Place *base = place->base;
    int n = place->nlanes;
    if (is_matrix(base->type)) {
        Val *matrix = base->kind == PLACE_memory ? base->address : place_address(f, base);
        for (int i = 0; i < n; i++) {
            Val *row = row_address(f, matrix, place->lanes[i] / 4),
                *index = const_int(f, TYPE_int, place->lanes[i] % 4);
            if (base->shared)
                build_store(&f->b, build_elem(&f->b, row, index, true), lane_of(f, value, i, n));
            else
                build_store(&f->b, row,
                            build_insert(&f->b, build_load(&f->b, row), index, lane_of(f, value, i, n)));
        }
        if (base->kind != PLACE_memory) place_store_from(f, base, matrix);
        return;
    }
    if (base->kind == PLACE_memory && base->shared && base->type->kind == TYPE_vector) {
        for (int i = 0; i < n; i++)
            build_store(&f->b,
                        build_elem(&f->b, base->address, const_int(f, TYPE_int, place->lanes[i]), true),
                        lane_of(f, value, i, n));
        return;
    }
    Val *vector = place_load(f, base);
    if (vector->type->kind != TYPE_vector) vector = lane_of(f, value, 0, n);
    else
        for (int i = 0; i < n; i++)
            vector =
                build_insert(&f->b, vector, const_int(f, TYPE_int, place->lanes[i]), lane_of(f, value, i, n));
    place_store(f, base, vector);
}

static void store_lane(Fn *f, const Place *place, Val *value) {
    const Place *base = place->base;
    if (base->kind == PLACE_memory && base->shared) {
        build_store(&f->b, build_elem(&f->b, base->address, place->value, false), value);
        return;
    }
    place_store(f, base, build_insert(&f->b, place_load(f, base), place->value, value));
}

/* ---- reading and writing */

static Val *wrap_bits(Fn *f, Val *value, int width) {
    int shift = width ? type_bits(value->type) - width : 0;
    if (shift <= 0) return value;
    Val *count = ir_const_int(f->l->m, value->type, shift);
    return build_binary(&f->b, OP_shr, build_binary(&f->b, OP_shl, value, count), count);
}

Val *place_load(Fn *f, const Place *place) {
    switch (place->kind) {
    case PLACE_value: return place->value ? place->value : build_load(&f->b, place->address);
    case PLACE_lanes: return load_lanes(f, place);
    case PLACE_lane: return build_extract(&f->b, place_load(f, place->base), place->value);
    case PLACE_accessor:
        return detached(f,
                        call_accessor(f, place->decl, place->subst, FUNC_get, place->base, place->args,
                                      place->nargs, NULL, NULL),
                        place->no_diff);
    default: return detached(f, build_load(&f->b, place->address), place->no_diff);
    }
}

void place_load_into(Fn *f, const Place *place, Val *to) {
    if (is_simple(lower_type(f->l, place->type))) {
        build_store(&f->b, to, place_load(f, place));
        return;
    }
    if (place->kind == PLACE_accessor)
        call_accessor(f, place->decl, place->subst, FUNC_get, place->base, place->args, place->nargs, NULL,
                      to);
    else if (place->kind == PLACE_external) from_external(f, place->type, place->address, to);
    else copy_object(f, to, place->address, place->no_diff);
}

static void write_back(Fn *f, const Place *place) {
    if (!place->write_back) return;
    const Type *ir = lower_type(f->l, place->write_back->type);
    if (is_simple(ir)) place_store(f, place->write_back, build_load(&f->b, place->write_back_from));
    else place_store_from(f, place->write_back, place->write_back_from);
}

void place_store(Fn *f, const Place *place, Val *value) {
    switch (place->kind) {
    case PLACE_lanes: store_lanes(f, place, value); break;
    case PLACE_lane: store_lane(f, place, value); break;
    case PLACE_accessor:
        call_accessor(f, place->decl, place->subst, FUNC_set, place->base, place->args, place->nargs, value,
                      NULL);
        break;
    default: build_store(&f->b, place->address, wrap_bits(f, value, place->bit_width)); break;
    }
    write_back(f, place);
}

void place_store_from(Fn *f, const Place *place, Val *from) {
    if (place->kind == PLACE_accessor)
        call_accessor(f, place->decl, place->subst, FUNC_set, place->base, place->args, place->nargs, from,
                      NULL);
    else if (place->kind == PLACE_external) to_external(f, place->type, from, place->address);
    else copy_object(f, place->address, from, false);
    write_back(f, place);
}

Val *place_address(Fn *f, const Place *place) {
    bool in_memory = place->kind == PLACE_memory || (place->kind == PLACE_value && place->address);
    if (in_memory && !(place->no_diff && f->diff)) return place->address;
    Val *copy = temp_var(f, place->type, "copy");
    place_load_into(f, place, copy);
    return copy;
}

/* A base that is not memory is taken into a temporary; what is written there goes back. */
static Place in_memory(Fn *f, Place place) {
    if (place.kind == PLACE_memory) return place;
    if (place.kind == PLACE_value && place.address) {
        place.kind = PLACE_memory;
        return place;
    }
    Place temp = place_of_memory(temp_var(f, place.type, "part"), place.type);
    place_load_into(f, &place, temp.address);
    if (place.kind != PLACE_value) temp.write_back = keep(f, place);
    temp.write_back_from = temp.address;
    temp.no_diff = place.no_diff;
    return temp;
}

/* ---- parts */

static int field_index(Fn *f, const Type *type, const Decl *field) {
    DeclVec fields = check_all_fields(f->l->c, type);
    for (int i = 0; i < fields.count; i++)
        if (fields.at[i] == field) return i;
    arena_fault(f->l->arena, "a field is not in its struct");
}

/* Does the derivative of this field exist? Only asked where a derivative would go lost otherwise. */
static bool field_is_no_diff(Fn *f, const Type *type, Decl *field) {
    if (!f->diff) return false;
    const Type *field_type = check_field_type(f->l->c, type, field);
    if (!check_is_diff_type(f->l->c, field_type, NULL)) return false;
    return check_differential_field(f->l->c, type, field) == NULL;
}

Place place_field(Fn *f, Place base, Decl *field) {
    const Type *type = base.type;
    Place place = in_memory(f, base);
    place.address = build_field(&f->b, place.address, field_index(f, type, field));
    place.no_diff |= field_is_no_diff(f, type, field);
    place.type = check_field_type(f->l->c, type, field);
    if (field->bits) {
        int64_t width;
        if (check_constant(f->l->c, field->bits, f->subst, &width)) place.bit_width = (int)width;
    }
    return place;
}

Place place_element(Fn *f, Place base, const Type *type, Val *index) {
    if (base.type->kind == TYPE_vector) {
        int64_t lane;
        Place place = {
            .kind = PLACE_lane, .type = type, .base = keep(f, base), .value = index, .shared = base.shared};
        if (val_is_int(index, &lane) && lane >= 0 && lane < type_count(base.type)) {
            place.kind = PLACE_lanes;
            place.lanes[0] = (uint8_t)lane;
            place.nlanes = 1;
        }
        place.root = base.root;
        return place;
    }
    Place place = in_memory(f, base);
    place.address = build_elem(&f->b, place.address, index, false);
    place.type = type;
    return place;
}

static Place place_part(Fn *f, Expr *e) {
    Place base = lower_place(f, e->a);
    const Type *type = base.type;
    Place place = in_memory(f, base);
    int index = (int)e->number;
    if (type->kind == TYPE_optional) index = 1 - index;
    place.address = build_field(&f->b, place.address, index);
    place.type = concrete(f, e->type);
    return place;
}

static Place place_swizzle(Fn *f, Expr *e) {
    Place base = lower_place(f, e->a);
    Place place = {.kind = PLACE_lanes,
                   .type = concrete(f, e->type),
                   .nlanes = e->nlanes,
                   .shared = base.shared,
                   .root = base.root};
    if (base.kind == PLACE_lanes && !is_matrix(base.base->type)) { /* a swizzle of a swizzle: compose */
        for (int i = 0; i < e->nlanes; i++) place.lanes[i] = base.lanes[e->lanes[i]];
        place.base = base.base;
        return place;
    }
    memcpy(place.lanes, e->lanes, sizeof place.lanes);
    place.base = keep(f, base);
    return place;
}

static Place place_indexed(Fn *f, Expr *e) {
    const Type *base_type = concrete(f, e->a->type), *type = concrete(f, e->type);
    if (base_type->kind == TYPE_buffer) {
        Val *buffer = lower_value(f, e->a), *index = lower_value(f, e->b);
        bool writable = base_type->number == BUFFER_rw_structured;
        Place place = {.kind = PLACE_memory, .type = type, .shared = true, .constant = !writable};
        place.address = build_buffer_elem(&f->b, buffer, index, writable);
        if (type->kind == TYPE_interface) place.kind = PLACE_external;
        return place;
    }
    if (base_type->kind == TYPE_pointer) {
        Val *pointer = lower_value(f, e->a);
        Place place = {.kind = PLACE_memory, .type = type, .shared = true};
        place.address = build_offset(&f->b, pointer, lower_value(f, e->b));
        return place;
    }
    Place base = lower_place(f, e->a);
    return place_element(f, base, type, lower_value(f, e->b));
}

/* ---- declarations */

static Place place_local(Fn *f, const Local *local, const Decl *decl, const Type *type) {
    Place place = {.type = type, .root = decl, .no_diff = local->no_diff};
    if (local->address) {
        place.kind = PLACE_memory;
        place.address = local->address;
    } else {
        place.kind = PLACE_value;
        place.value = local->value;
    }
    (void)f;
    return place;
}

static Place place_accessor(Fn *f, Expr *e) {
    Lowerer *l = f->l;
    Place place = {.kind = PLACE_accessor, .decl = e->decl, .type = concrete(f, e->type)};
    place.subst = concrete_subst(f, e->subst);
    if (e->a) place.base = keep(f, lower_place(f, e->a));
    place.nargs = e->args.count;
    place.args = arena_array(l->arena, Val *, place.nargs ? place.nargs : 1);
    for (int i = 0; i < place.nargs; i++) {
        bool simple = is_simple(ir_type(f, e->args.at[i]->type));
        place.args[i] = simple ? lower_value(f, e->args.at[i]) : lower_address(f, e->args.at[i]);
    }
    return place;
}

static Place place_decl(Fn *f, Expr *e) {
    Decl *decl = e->decl;
    if (decl->kind == DECL_property || decl->kind == DECL_subscript) return place_accessor(f, e);
    if (decl->kind != DECL_var)
        return (Place){.kind = PLACE_value, .type = concrete(f, e->type), .value = lower_value(f, e)};
    if (decl->flavour == VAR_field && !(decl->modifiers & MODIFIER_static))
        return place_field(f, lower_place(f, e->a), decl);
    const Local *local = find_local(f, decl);
    if (local) return place_local(f, local, decl, concrete(f, e->type));
    return global_place(f, decl, concrete_subst(f, e->subst));
}

static Place place_this(Fn *f) {
    Place place = place_local(f, &f->self, NULL, f->self_type);
    place.root = &f->self;
    return place;
}

static Place place_deref(Fn *f, Expr *e) {
    const Type *pointer = concrete(f, e->a->type);
    Place place = {.kind = PLACE_memory, .type = concrete(f, e->type), .shared = true};
    place.address = lower_value(f, e->a);
    place.constant = pointer->kind == TYPE_buffer;
    return place;
}

/* Same memory, seen as another type: int as uint, a struct as its base. */
static Place place_converted(Fn *f, Expr *e) {
    Place base = in_memory(f, lower_place(f, e->a));
    base.type = concrete(f, e->type);
    base.address = build_bitcast(&f->b, base.address, type_pointer(f->l->types, lower_type(f->l, base.type)));
    return base;
}

static Place place_of_value(Fn *f, Expr *e) {
    const Type *type = concrete(f, e->type);
    Place place = {.kind = PLACE_value, .type = type};
    if (is_simple(lower_type(f->l, type))) place.value = lower_value(f, e);
    else {
        place.address = temp_var(f, type, "temp");
        place.root = place.address;
        lower_into(f, e, place.address);
    }
    return place;
}

Place lower_place(Fn *f, Expr *e) {
    switch ((ExprKind)e->kind) {
    case EXPR_decl: return place_decl(f, e);
    case EXPR_this: return place_this(f);
    case EXPR_swizzle: return place_swizzle(f, e);
    case EXPR_element: return place_indexed(f, e);
    case EXPR_part: return place_part(f, e);
    case EXPR_deref: return place_deref(f, e);
    case EXPR_paren: return lower_place(f, e->a);
    case EXPR_convert:
        if (e->flags & EXPR_PLACE) return place_converted(f, e);
        if (e->conversion == CONVERT_unsized || e->conversion == CONVERT_same) return lower_place(f, e->a);
        return place_of_value(f, e);
    case EXPR_each: {
        Local *element = pack_element(f, e);
        if (element) return place_local(f, element, NULL, concrete(f, e->type));
        return place_of_value(f, e);
    }
    default: return place_of_value(f, e);
    }
}
