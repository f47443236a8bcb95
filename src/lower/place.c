/* Places: where a value is, or where it goes.
 *
 * Most are memory. Lanes of a vector are read and written as a whole vector, so that local vectors can become
 * values, except in memory that others may see, where just the lane is touched. Properties and subscripts are
 * calls; changing a part of what they give is get, change, set: the place is then in a temporary that is
 * written back, and that is filled as late as possible, after everything else in the expression was
 * evaluated. Column-major matrices exist in memory only: they are transposed when they are read or written as
 * a whole. */
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

/* A function that copies an object. */
static Func *copying(Lowerer *l, const Type *type) {
    Func *func = map_get(&l->copying, PTR_KEY(type));
    if (func) return func;
    func = func_new(l->m, format_text(l->arena, "constant<%s>", type_text(l->arena, type)));
    Param params[] = {
        {.name = name_from(l->m->names, "to"), .type = type, .dir = DIR_out, .flags = PARAM_BY_ADDRESS},
        {.name = name_from(l->m->names, "from"), .type = type, .dir = DIR_in, .flags = PARAM_BY_ADDRESS}};
    func_set_params(func, arena_copy(l->arena, params, sizeof params), 2);
    func->custom.complete = true;
    Builder b = build_at_end(func_begin(func));
    build_copy(&b, func->body->params[0], func->body->params[1]);
    build_return(&b, NULL, 0);
    map_put(l->arena, &l->copying, PTR_KEY(type), func);
    return func;
}

void copy_object(Fn *f, Val *to, Val *from, bool no_diff) {
    if (to == from) return;
    build_copy(&f->b, to, from);
    Inst *last = f->b.before ? f->b.before->prev : f->b.region->last;
    if (no_diff && f->diff && last && last->op == OP_copy) last->flags |= INST_NO_DIFF;
}

/* References lead to the same place when they are copied: that of derivatives is not to come along, so it is
 * a call that does it, through which none goes. */
void copy_constant(Fn *f, Val *to, Val *from) {
    Val *args[] = {to, from};
    const Type *type = to->type->args[0];
    if (!f->diff || !ir_holds_reference(f->l->m, type)) copy_object(f, to, from, true);
    else build_call(&f->b, copying(f->l, type), args, 2)->flags |= INST_NO_DIFF;
}

/* ---- column-major matrices */

bool is_transposed(const Type *front) {
    return front->kind == TYPE_matrix && (front->flags & TYPE_COLUMN_MAJOR) != 0;
}

static const Type *value_type(Fn *f, const Type *front) {
    if (!is_transposed(front)) return front;
    return type_matrix(f->l->types, front->args[0], (int)front->args[1]->number, (int)front->args[2]->number);
}

/* From rows to columns or back. */
static void copy_transposed(Fn *f, Val *to, Val *from) {
    const Type *target = to->type->args[0], *source = from->type->args[0];
    int lines = (int)type_length(target), lanes = (int)type_length(source);
    Val *loaded[4], *parts[4];
    for (int i = 0; i < lanes; i++)
        loaded[i] = build_load(&f->b, build_elem(&f->b, from, const_int(f, TYPE_int, i), true));
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < lanes; k++) parts[k] = build_extract_lane(&f->b, loaded[k], i);
        Val *to_part = build_elem(&f->b, to, const_int(f, TYPE_int, i), true);
        Val *row = build_vec(&f->b, target->args[0], parts);
        build_store(&f->b, to_part, row);
    }
}

static Val *column_element(Fn *f, const Place *row, int column) {
    Val *at = build_elem(&f->b, row->address, const_int(f, TYPE_int, column), true);
    return build_elem(&f->b, at, row->value, false);
}

static Val *load_row(Fn *f, const Place *row) {
    Val *lanes[4];
    int n = type_count(row->type);
    for (int i = 0; i < n; i++) lanes[i] = build_load(&f->b, column_element(f, row, i));
    return build_vec(&f->b, row->type, lanes);
}

static void store_row(Fn *f, const Place *row, Val *value) {
    for (int i = 0; i < type_count(row->type); i++) {
        Val *element = column_element(f, row, i);
        Val *number = build_extract_lane(&f->b, value, i);
        build_store(&f->b, element, number);
    }
}

/* ---- what accessors give, in memory */

static void fill_pending(Fn *f, const Place *place) {
    Pending *pending = place->pending;
    if (!pending || pending->done) return;
    pending->done = true;
    place_load_into(f, pending->from, pending->memory);
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

static void write_back(Fn *f, const Place *place);

static void store_lanes(Fn *f, const Place *place, Val *value) {
    const Place *base = place->base;
    int n = place->nlanes;
    if (is_matrix(base->type)) {
        fill_pending(f, base);
        Val *matrix = base->kind == PLACE_memory ? base->address : place_address(f, base);
        bool transposed = is_transposed(base->type) && base->kind == PLACE_memory;
        for (int i = 0; i < n; i++) {
            int line = transposed ? place->lanes[i] % 4 : place->lanes[i] / 4,
                lane = transposed ? place->lanes[i] / 4 : place->lanes[i] % 4;
            Val *row = row_address(f, matrix, line), *index = const_int(f, TYPE_int, lane);
            Val *number = lane_of(f, value, i, n);
            if (base->shared) build_store(&f->b, build_elem(&f->b, row, index, true), number);
            else build_store(&f->b, row, build_insert(&f->b, build_load(&f->b, row), index, number));
        }
        if (base->kind != PLACE_memory) place_store_from(f, base, matrix);
        else write_back(f, base);
        return;
    }
    if (base->kind == PLACE_row) {
        for (int i = 0; i < n; i++) {
            Val *element = column_element(f, base, place->lanes[i]);
            Val *number = lane_of(f, value, i, n);
            build_store(&f->b, element, number);
        }
        return;
    }
    if (base->kind == PLACE_memory && base->shared && base->type->kind == TYPE_vector) {
        for (int i = 0; i < n; i++) {
            Val *lane = build_elem(&f->b, base->address, const_int(f, TYPE_int, place->lanes[i]), true);
            Val *number = lane_of(f, value, i, n);
            build_store(&f->b, lane, number);
        }
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

static TypeKind word_kind(int bits, bool is_signed) {
    static const TypeKind kinds[4][2] = {
        {TYPE_uint8, TYPE_int8}, {TYPE_uint16, TYPE_int16}, {TYPE_uint, TYPE_int}, {TYPE_uint64, TYPE_int64}};
    return kinds[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3][is_signed];
}

/* Up to the top and down again, in the word with the sign of the field, which extends it if there is one. */
static Val *load_bits(Fn *f, const Place *place) {
    const Type *type = lower_type(f->l, place->type);
    if (!place->bit_width) return ir_const_zero(f->l->m, type);
    Val *word = build_load(&f->b, place->address);
    int bits = type_bits(word->type);
    const Type *same = type_basic(f->l->types, word_kind(bits, type_is_signed(type)));
    Val *up = ir_const_int(f->l->m, same, bits - place->bit_offset - place->bit_width),
        *down = ir_const_int(f->l->m, same, bits - place->bit_width);
    Val *shifted = build_binary(&f->b, OP_shl, build_bitcast(&f->b, word, same), up);
    return build_convert(&f->b, build_binary(&f->b, OP_shr, shifted, down), type);
}

static void store_bits(Fn *f, const Place *place, Val *value) {
    if (!place->bit_width) return; /* takes nothing */
    const Type *type = place->address->type->args[0];
    uint64_t mask = place->bit_width == 64 ? ~(uint64_t)0 : ((uint64_t)1 << place->bit_width) - 1;
    Val *kept = build_binary(&f->b, OP_and, build_load(&f->b, place->address),
                             ir_const_int(f->l->m, type, (int64_t) ~(mask << place->bit_offset)));
    Val *low = build_binary(&f->b, OP_and, build_convert(&f->b, value, type),
                            ir_const_int(f->l->m, type, (int64_t)mask));
    Val *shifted = build_binary(&f->b, OP_shl, low, ir_const_int(f->l->m, type, place->bit_offset));
    build_store(&f->b, place->address, build_binary(&f->b, OP_or, kept, shifted));
}

Val *place_load(Fn *f, const Place *place) {
    fill_pending(f, place);
    switch (place->kind) {
    case PLACE_bits: return load_bits(f, place);
    case PLACE_row: return detached(f, load_row(f, place), place->no_diff);
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
    fill_pending(f, place);
    if (place->kind == PLACE_accessor)
        call_accessor(f, place->decl, place->subst, FUNC_get, place->base, place->args, place->nargs, NULL,
                      to);
    else if (is_transposed(place->type)) copy_transposed(f, to, place->address);
    else if (place->kind == PLACE_external) load_external(f, place->type, place->address, to);
    else if (place->no_diff) copy_constant(f, to, place->address);
    else copy_object(f, to, place->address, false);
}

static void write_back(Fn *f, const Place *place) {
    if (!place->write_back) return;
    const Type *ir = lower_type(f->l, place->write_back->type);
    if (is_simple(ir)) place_store(f, place->write_back, build_load(&f->b, place->write_back_from));
    else place_store_from(f, place->write_back, place->write_back_from);
}

void place_store(Fn *f, const Place *place, Val *value) {
    fill_pending(f, place);
    switch (place->kind) {
    case PLACE_bits: store_bits(f, place, value); break;
    case PLACE_row: store_row(f, place, value); break;
    case PLACE_lanes: store_lanes(f, place, value); break;
    case PLACE_lane: store_lane(f, place, value); break;
    case PLACE_accessor:
        call_accessor(f, place->decl, place->subst, FUNC_set, place->base, place->args, place->nargs, value,
                      NULL);
        break;
    default: build_store(&f->b, place->address, value); break;
    }
    write_back(f, place);
}

void place_store_from(Fn *f, const Place *place, Val *from) {
    fill_pending(f, place);
    if (place->kind == PLACE_accessor)
        call_accessor(f, place->decl, place->subst, FUNC_set, place->base, place->args, place->nargs, from,
                      NULL);
    else if (place->kind == PLACE_external) store_external(f, place->type, from, place->address);
    else if (is_transposed(place->type)) copy_transposed(f, place->address, from);
    else copy_object(f, place->address, from, false);
    write_back(f, place);
}

/* Of a component, its vector being in memory. */
static Val *lane_reference(Fn *f, const Place *place) {
    const Place *base = place->base;
    if (type_is_scalar(base->type)) return place_reference(f, base);
    Val *vector = place_reference(f, base);
    if (!vector) return NULL;
    if (place->kind == PLACE_lane) return build_elem(&f->b, vector, place->value, false);
    int lane = place->lanes[0];
    if (is_matrix(base->type)) vector = row_address(f, vector, lane / 4), lane %= 4;
    return build_elem(&f->b, vector, const_int(f, TYPE_int, lane), true);
}

Val *place_reference(Fn *f, const Place *place) {
    if (place->kind == PLACE_accessor) return accessor_reference(f, place);
    bool is_lane = place->kind == PLACE_lane || (place->kind == PLACE_lanes && place->nlanes == 1);
    if (is_lane) return lane_reference(f, place);
    if (place->write_back)
        return place->address == place->write_back_from ? place_reference(f, place->write_back) : NULL;
    bool in_memory = place->kind == PLACE_memory && !is_transposed(place->type);
    fill_pending(f, place);
    return in_memory ? place->address : NULL;
}

Val *place_address(Fn *f, const Place *place) {
    bool in_memory = (place->kind == PLACE_memory || (place->kind == PLACE_value && place->address)) &&
                     !is_transposed(place->type);
    fill_pending(f, place);
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
    if (place.kind == PLACE_accessor && accessor_lies_elsewhere(f, &place)) {
        Place there = place_of_memory(accessor_reference(f, &place), place.type);
        there.shared = true;
        there.no_diff = place.no_diff;
        return there;
    }
    Place temp = place_of_memory(temp_var(f, place.type, "part"), value_type(f, place.type));
    temp.no_diff = place.no_diff;
    if (place.kind == PLACE_value) {
        place_load_into(f, &place, temp.address);
        return temp;
    }
    temp.write_back = keep(f, place);
    temp.write_back_from = temp.address;
    temp.pending = arena_new(f->l->arena, Pending);
    *temp.pending = (Pending){temp.write_back, temp.address, false};
    return temp;
}

/* A base whose parts have addresses; in the form of buffers as well. */
static Place with_parts(Fn *f, Place place) {
    return place.kind == PLACE_external && place.type->kind != TYPE_interface ? place : in_memory(f, place);
}

/* After going to a part: does it still hold interface values? */
static Place settle_form(Fn *f, Place place) {
    if (place.kind == PLACE_external && !has_external_form(f->l, place.type)) place.kind = PLACE_memory;
    return place;
}

/* ---- parts */

/* Once for each type: one with thousands of fields is asked about each of them. */
static Map *slots_by_field(Lowerer *l, const Type *type) {
    Map *known = map_get(&l->field_slots, PTR_KEY(type));
    if (known) return known;
    known = arena_new(l->arena, Map);
    DeclVec fields = check_all_fields(l->c, type);
    FieldSlot *slots = check_field_slots(l->c, type, &fields);
    for (int i = 0; i < fields.count; i++) map_put(l->arena, known, PTR_KEY(fields.at[i]), &slots[i]);
    map_put(l->arena, &l->field_slots, PTR_KEY(type), known);
    return known;
}

static FieldSlot slot_of(Fn *f, const Type *type, const Decl *field) {
    const FieldSlot *slot = map_get(slots_by_field(f->l, type), PTR_KEY(field));
    if (!slot) arena_fault(f->l->arena, "a field is not in its struct");
    return *slot;
}

static void to_slot(Fn *f, Place *place, FieldSlot slot) {
    bool nowhere = slot.is_bits && !slot.bit_width;
    if (!nowhere) place->address = build_field(&f->b, place->address, slot.member);
    if (!slot.is_bits) return;
    place->kind = PLACE_bits;
    place->bit_offset = slot.bit_offset;
    place->bit_width = slot.bit_width;
}

/* Does the derivative of this field exist? Only asked where a derivative would go lost otherwise. */
static bool field_is_no_diff(Fn *f, const Type *type, Decl *field) {
    if (!f->diff) return false;
    const Type *field_type = check_field_type(f->l->c, type, field);
    if (check_is_no_diff_field(field) && ir_holds_reference(f->l->m, lower_type(f->l, field_type)))
        return true;
    if (!check_is_diff_type(f->l->c, field_type, NULL)) return false;
    return check_differential_field(f->l->c, type, field) == NULL;
}

Place place_field(Fn *f, Place base, Decl *field) {
    const Type *type = base.type;
    Place place = with_parts(f, base);
    to_slot(f, &place, slot_of(f, type, field));
    place.no_diff |= field_is_no_diff(f, type, field);
    place.type = check_field_type(f->l->c, type, field);
    return settle_form(f, place);
}

Place place_new_field(Fn *f, Val *object, const Type *type, Decl *field) {
    Place place = place_of_memory(object, check_field_type(f->l->c, type, field));
    FieldSlot slot = slot_of(f, type, field);
    to_slot(f, &place, slot);
    if (slot.is_bits && slot.is_first) build_zero(&f->b, place.address);
    return place;
}

void place_init(Fn *f, const Place *place, Expr *e) {
    if (place->kind == PLACE_bits) {
        if (e) place_store(f, place, lower_value(f, e));
    } else if (is_transposed(place->type)) {
        Val *rows = temp_var(f, place->type, "rows");
        if (e) lower_into(f, e, rows);
        else build_zero(&f->b, rows);
        place_store_from(f, place, rows);
    } else if (e) lower_into(f, e, place->address);
    else store_default(f, place->type, place->address);
}

void place_default(Fn *f, const Place *place, const Type *type, Decl *field) {
    const Subst *subst = f->subst;
    int element = f->pack_element;
    if (field->init) check_decl_body(f->l->c, field);
    f->subst = subst_of_type(f->l->c, type);
    f->pack_element = -1;
    place_init(f, place, field->init);
    f->subst = subst;
    f->pack_element = element;
}

/* What stands in the table at a run-time index. */
static Val *look_up(Fn *f, const uint8_t *table, int n, Val *index) {
    Val *items[4];
    for (int i = 0; i < n; i++) items[i] = const_int(f, TYPE_int, table[i]);
    return build_extract(&f->b, join_lanes(f, items, n), index);
}

/* Of components that a swizzle chose, the one at a run-time index: as an element of what the swizzle is of,
 * so that no other one is written. */
static Place place_chosen(Fn *f, const Place *swizzle, const Type *type, Val *index) {
    Place place = *swizzle->base;
    place.type = type;
    if (!is_matrix(swizzle->base->type)) {
        place = (Place){.kind = PLACE_lane, .type = type, .base = swizzle->base, .shared = swizzle->shared};
        place.value = look_up(f, swizzle->lanes, swizzle->nlanes, index);
        place.root = swizzle->root;
        return place;
    }
    uint8_t lines[4], lanes[4];
    bool transposed = is_transposed(swizzle->base->type);
    for (int i = 0; i < swizzle->nlanes; i++) {
        lines[i] = transposed ? swizzle->lanes[i] % 4 : swizzle->lanes[i] / 4;
        lanes[i] = transposed ? swizzle->lanes[i] / 4 : swizzle->lanes[i] % 4;
    }
    Val *line = build_elem(&f->b, place.address, look_up(f, lines, swizzle->nlanes, index), false);
    place.address = build_elem(&f->b, line, look_up(f, lanes, swizzle->nlanes, index), false);
    return place;
}

static Place place_component(Fn *f, Place base, const Type *type, Val *index) {
    int64_t lane;
    bool constant = val_is_int(index, &lane) && lane >= 0 && lane < type_count(base.type);
    bool swizzled = base.kind == PLACE_lanes, has_elements = swizzled && !type_is_scalar(base.base->type);
    if (has_elements && !constant && base.base->kind == PLACE_memory && base.base->shared)
        return place_chosen(f, &base, type, index);
    Place place = {.kind = PLACE_lane, .type = type, .value = index, .shared = base.shared};
    place.base = keep(f, base);
    if (constant) {
        place.kind = PLACE_lanes;
        place.lanes[0] = swizzled ? base.lanes[lane] : (uint8_t)lane;
        place.nlanes = 1;
        if (swizzled) place.base = base.base;
    }
    place.root = base.root;
    return place;
}

/* An array of no elements has no last one, which an index out of range would mean: what is read is zero, what
 * is written is lost. */
static Val *element_address(Fn *f, const Place *array, Val *index) {
    const Type *type = array->type;
    if (type->kind != TYPE_array || type_length(type) != 0)
        return build_elem(&f->b, array->address, index, false);
    return build_var(&f->b, type_element(array->address->type->args[0]), NULL, false);
}

static Place place_element(Fn *f, Place base, const Type *type, Val *index) {
    if (base.kind == PLACE_row && !base.pending) { /* an element of a column-major matrix */
        Place place = base;
        place.kind = PLACE_memory;
        place.address = build_elem(&f->b, build_elem(&f->b, base.address, index, false), base.value, false);
        place.type = type;
        return place;
    }
    if (base.kind == PLACE_accessor) base = in_memory(f, base);
    if (base.type->kind == TYPE_vector) return place_component(f, base, type, index);
    Place place = with_parts(f, base);
    if (is_transposed(base.type)) {
        place.kind = PLACE_row;
        place.type = type;
        place.value = index;
        return place;
    }
    place.address = element_address(f, &place, index);
    place.type = type;
    return settle_form(f, place);
}

static Place part_of(Fn *f, Place base, int index, const Type *type) {
    Place place = with_parts(f, base);
    place.address = build_field(&f->b, place.address, index);
    place.type = type;
    return settle_form(f, place);
}

static Place place_part(Fn *f, Expr *e) {
    Place base = lower_place(f, e->a);
    int index = (int)e->number;
    return part_of(f, base, base.type->kind == TYPE_optional ? 1 - index : index, concrete(f, e->type));
}

/* each of a tuple */
static Place place_tuple_element(Fn *f, Expr *e) {
    int element = f->pack_element;
    f->pack_element = -1;
    Place tuple = lower_place(f, e->a);
    f->pack_element = element;
    return part_of(f, tuple, element, concrete(f, e->type));
}

static Place place_swizzle(Fn *f, Expr *e) {
    Place base = lower_place(f, e->a);
    if (base.kind == PLACE_accessor) base = in_memory(f, base); /* got once, even if it is read and written */
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

/* The element as it lies in memory: the expression's type says nothing about the layout of a matrix. */
static const Type *stored_element(const Type *base, const Type *value) {
    return base->kind == TYPE_matrix || base->kind == TYPE_vector ? value : base->args[0];
}

static Place place_indexed(Fn *f, Expr *e) {
    const Type *base_type = concrete(f, e->a->type), *type = stored_element(base_type, concrete(f, e->type));
    if (base_type->kind == TYPE_buffer) {
        Val *buffer = lower_value(f, e->a), *index = lower_value(f, e->b);
        bool writable = base_type->number == BUFFER_rw_structured;
        Place place = {.kind = PLACE_external, .type = type, .shared = true, .constant = !writable};
        place.address = build_buffer_elem(&f->b, buffer, index, writable);
        return settle_form(f, place);
    }
    if (base_type->kind == TYPE_pointer) {
        Val *pointer = lower_value(f, e->a);
        Place place = {.kind = PLACE_external, .type = type, .shared = true};
        place.address = build_offset(&f->b, pointer, lower_value(f, e->b));
        return settle_form(f, place);
    }
    Place base = lower_place(f, e->a);
    return place_element(f, base, stored_element(base.type, concrete(f, e->type)), lower_value(f, e->b));
}

/* ---- declarations */

static Place place_local(Fn *f, const Local *local, const Decl *decl, const Type *type) {
    Place place = {.type = type, .root = decl, .no_diff = local->no_diff, .shared = local->shared};
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

static void add_index(Fn *f, Expr *e, void *indices) {
    bool simple = is_simple(ir_type(f, e->type));
    vec_push(f->l->arena, (ValVec *)indices, simple ? lower_value(f, e) : lower_address(f, e));
}

/* Left out: its default, which knows the parameters of the subscript and nothing else. */
static void add_default_index(Fn *f, const Place *place, int index, ValVec *indices) {
    Decl *param = place->decl->params.at[index];
    const Subst *subst = f->subst;
    f->subst = place->subst;
    check_default_argument_of(f->l->c, param);
    add_index(f, param->init, indices);
    f->subst = subst;
}

static Place place_accessor(Fn *f, Expr *e) {
    Place place = {.kind = PLACE_accessor, .decl = e->decl, .type = concrete(f, e->type)};
    place.subst = concrete_subst(f, e->subst);
    if (e->a) place.base = keep(f, lower_place(f, e->a));
    ValVec indices = {0};
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (!arg) add_default_index(f, &place, i, &indices);
        else if (arg->kind == EXPR_expand) for_expansion(f, arg, add_index, &indices);
        else add_index(f, arg, &indices);
    }
    place.nargs = indices.count;
    place.args = indices.at;
    return place;
}

/* A static constant that an interface requires: that of the type which conforms. */
static Place place_requirement(Fn *f, Decl *requirement, const Subst *subst) {
    const Type *self = subst_find(subst, requirement->parent, 0);
    Satisfaction found = check_witness(f->l->c, self, requirement, subst);
    return found.decl ? global_place(f, found.decl, found.subst) : global_place(f, requirement, subst);
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
    const Subst *subst = concrete_subst(f, e->subst);
    if (decl->parent && decl->parent->kind == DECL_interface)
        return e->a ? dispatch_constant(f, decl, subst, e->a) : place_requirement(f, decl, subst);
    return global_place(f, decl, subst);
}

static Place place_this(Fn *f) {
    Place place = place_local(f, &f->self, NULL, f->self_type);
    place.root = &f->self;
    return place;
}

static Place place_deref(Fn *f, Expr *e) {
    const Type *pointer = concrete(f, e->a->type);
    Place place = {.kind = PLACE_external, .type = pointer->args[0], .shared = true};
    place.address = lower_value(f, e->a);
    place.constant = pointer->kind == TYPE_buffer;
    return settle_form(f, place);
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
    case EXPR_end:
    case EXPR_each: {
        if (names_element(e)) {
            int outer = f->pack_element;
            Place place = lower_place(f, enter_element(f, e));
            f->pack_element = outer;
            return place;
        }
        Local *element = pack_element(f, e);
        if (element) return place_local(f, element, NULL, concrete(f, e->type));
        if (e->a->type && e->a->type->kind == TYPE_tuple) return place_tuple_element(f, e);
        return place_of_value(f, e);
    }
    default: return place_of_value(f, e);
    }
}
