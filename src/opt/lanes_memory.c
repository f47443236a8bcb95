/* Memory in the wide function.
 *
 * A variable that is spread has an object for each lane, interleaved: each scalar is a row, a vector with one
 * number per lane. Rows at one place are loaded and stored whole, under the mask where lanes are off. At
 * places that differ, and in memory that all share, every scalar is gathered or scattered, which for
 * neighbouring places is one access again (emit/llvm/wide.c).
 *
 *     buffer[i]             gather (buffer_elem buffer, i), mask       i: one index per lane
 *     spread[2]             load (elem var, 2)
 *     spread[k]             gather (elem var, k), mask                 each lane from its own column of a row
 *
 * Atomic operations on variables, which nobody else sees, are a load and a store; so are sums that nobody comes
 * between, if each lane has a place of its own. Others are in lanes_single.c. Where indices are held between
 * bounds, lanes have places of their own as long as none is held back, which is asked:
 *
 *     x[clamp(i + 1, 0, n - 1)] += g     if (all: clamp(i + 1, 0, n - 1) == i + 1) x[i + 1 ..] += g
 *                                        else one lane after the other */
#include "opt/lanes.h"

/* ---- types of objects */

static const Type *spread_type(Lanes *lanes, const Type *type);

static const Type *spread_record(Lanes *lanes, const Type *type) {
    const Type *known = map_get(&lanes->types, PTR_KEY(type));
    if (known) return known;
    const Record *from = type_record(type);
    Record *to = record_new(lanes->module->types, from->name);
    map_put(lanes->scratch, &lanes->types, PTR_KEY(type), (void *)(uintptr_t)to->type);
    to->fields = arena_array(lanes->module->arena, Field, from->nfields + 1);
    to->nfields = from->nfields;
    to->parts = from->parts;
    for (int i = 0; i < from->nfields; i++)
        to->fields[i] =
            (Field){.name = from->fields[i].name, .type = spread_type(lanes, from->fields[i].type)};
    vec_push(lanes->module->arena, &lanes->module->records, to);
    return to->type;
}

static const Type *spread_type(Lanes *lanes, const Type *type) {
    Types *types = lanes->module->types;
    if (type_is_scalar(type)) return lanes_row(lanes, type);
    if (type->kind == TYPE_vector)
        return type_array(types, lanes_row(lanes, type->args[0]), type_count(type));
    if (type->kind == TYPE_array)
        return type_array(types, spread_type(lanes, type->args[0]), type_length(type));
    return spread_record(lanes, type);
}

/* Numbers, and nothing that leads elsewhere. */
bool lanes_can_be_spread(const Type *type) {
    if (type->kind == TYPE_array) return type_length(type) >= 0 && lanes_can_be_spread(type->args[0]);
    if (type->kind != TYPE_record) return type_is_scalar(type) || type->kind == TYPE_vector;
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++)
        if (!lanes_can_be_spread(record->fields[i].type)) return false;
    return true;
}

static void widen_variable(Lanes *lanes, Inst *inst) {
    if (!((const VarUse *)inst->note)->spread) {
        lanes_copy(lanes, inst);
        return;
    }
    if (!lanes_can_be_spread(inst->type)) {
        lanes_decline(lanes, inst, "a variable that differs between items holds an address");
        return;
    }
    Val *var = build_var(&lanes->b, spread_type(lanes, inst->type), inst->results[0]->name,
                         inst_has(inst, INST_RAW));
    clone_map_val(&lanes->map, inst->results[0], var);
}

/* ---- places: addresses of the wide function */

typedef struct Place {
    Val *address; /* one, or one for each lane */
    bool spread;  /* in an object that is */
} Place;

static Place place_of(Lanes *lanes, Val *address) {
    address = ir_resolve(address);
    bool differs = varies(lanes, address) != 0;
    return (Place){differs ? lanes_part(lanes, address, 0) : lanes_same(lanes, address),
                   lanes_is_spread(address)};
}

static bool is_one(Place place) { return place.address->type->kind == TYPE_pointer; }

/* An instruction that makes an address, with these operands: its type follows from them. */
static Val *make_address(Lanes *lanes, const Inst *like, Op op, Val *const *args, int nargs) {
    Inst *inst = build_inst(&lanes->b, op, args, nargs, 1, 0);
    if (like) inst->flags = like->flags;
    if (like) inst->index = like->index;
    inst->results[0]->type = ir_result_type(lanes->module, inst);
    return inst->results[0];
}

static Place element(Lanes *lanes, Place place, int64_t index) {
    Val *args[] = {place.address,
                   ir_const_int(lanes->module, type_basic(lanes->module->types, TYPE_int), index)};
    Val *address = make_address(lanes, NULL, OP_elem, args, 2);
    address->inst->flags |= INST_UNCHECKED;
    return (Place){address, place.spread};
}

static Val *operand(Lanes *lanes, Val *v) {
    v = ir_resolve(v);
    return varies(lanes, v) ? lanes_part(lanes, v, 0) : lanes_same(lanes, v);
}

static void widen_address(Lanes *lanes, Inst *inst) {
    Val *args[2];
    for (int i = 0; i < inst->nargs; i++) args[i] = operand(lanes, inst->args[i]);
    bool buffer_differs =
        inst->args[0]->type->kind == TYPE_buffer && varies(lanes, ir_resolve(inst->args[0]));
    if (buffer_differs) {
        lanes_decline(lanes, inst, "which buffer is used differs between items");
        return;
    }
    Val *address;
    if (inst->op == OP_buffer_bytes) {
        Inst *copy = build_inst(&lanes->b, OP_buffer_bytes, args, inst->nargs, 1, 0);
        copy->flags = inst->flags;
        copy->results[0]->type = lanes_row(lanes, inst->results[0]->type);
        address = copy->results[0];
    } else {
        address = make_address(lanes, inst, (Op)inst->op, args, inst->nargs);
    }
    if (varies(lanes, inst->results[0])) lanes_define(lanes, inst->results[0], &address);
    else clone_map_val(&lanes->map, inst->results[0], address);
}

/* ---- loads and stores of scalars */

static Val *load_scalar(Lanes *lanes, Place place) {
    if (is_one(place)) return build_load(&lanes->b, place.address);
    Val *args[] = {place.address, lanes_mask(lanes)};
    Inst *inst = build_inst(&lanes->b, OP_gather, args, 2, 1, 0);
    return inst->results[0]->type = ir_result_type(lanes->module, inst), inst->results[0];
}

static void store_scalar(Lanes *lanes, Place place, Val *value) {
    bool row = value->type->kind == TYPE_vector;
    if (is_one(place) && (!row || (place.spread && !lanes->mask))) {
        build_store(&lanes->b, place.address, value);
        return;
    }
    if (is_one(place) && !place.spread && !lanes->mask) { /* the last gets it */
        build_store(&lanes->b, place.address, build_extract_lane(&lanes->b, value, lanes->width - 1));
        return;
    }
    Val *args[] = {place.address, value, lanes_mask(lanes)};
    build_inst(&lanes->b, OP_scatter, args, 3, 0, 0);
}

static bool is_row_place(Place place) { return place.spread || !is_one(place); }

/* ---- loads and stores of the program */

static void widen_load(Lanes *lanes, Inst *inst) {
    const Type *type = inst->results[0]->type;
    if (!type_is_scalar(part_type(type))) {
        lanes_decline(lanes, inst, "an address that is loaded differs between items");
        return;
    }
    Place place = place_of(lanes, inst->args[0]);
    Val *parts[MOST_PARTS];
    for (int i = 0; i < parts_of(type); i++)
        parts[i] = load_scalar(lanes, type->kind == TYPE_vector ? element(lanes, place, i) : place);
    lanes_define(lanes, inst->results[0], parts);
}

static void widen_store(Lanes *lanes, Inst *inst) {
    const Type *type = inst->args[1]->type;
    if (!type_is_scalar(part_type(type))) {
        lanes_decline(lanes, inst, "an address that is stored differs between items");
        return;
    }
    Place place = place_of(lanes, inst->args[0]);
    for (int i = 0; i < parts_of(type); i++) {
        Place part = type->kind == TYPE_vector ? element(lanes, place, i) : place;
        store_scalar(lanes, part, lanes_spread(lanes, inst->args[1], i));
    }
}

/* ---- whole objects, scalar by scalar */

typedef struct Objects {
    Op op; /* copy, acc, zero */
    Place to, from;
    int lane; /* not 0: its number plus one; one of the two is memory of that lane alone */
} Objects;

/* That are not copied by a loop: neighbours in memory that all share are read and written as rows
 * (emit/llvm/records.c). */
enum { FEW_ELEMENTS = 8, FEW_NEIGHBOURS = 32 };

static void each_scalar(Lanes *lanes, const Objects *objects, const Type *type);

static Val *widened(Lanes *lanes, Place place, Val *value) {
    return is_row_place(place) ? value : build_splat(&lanes->b, lanes_row(lanes, value->type), value);
}

static void one_of_lane(Lanes *lanes, const Objects *objects, const Type *type) {
    Val *value = load_scalar(lanes, objects->from);
    if (value->type->kind != TYPE_vector) {
        store_scalar(lanes, objects->to, build_splat(&lanes->b, lanes_row(lanes, type), value));
        return;
    }
    build_store(&lanes->b, objects->to.address, build_extract_lane(&lanes->b, value, objects->lane - 1));
}

static void one_scalar(Lanes *lanes, const Objects *objects, const Type *type) {
    Val *value = NULL;
    if (objects->lane) {
        one_of_lane(lanes, objects, type);
        return;
    }
    if (objects->op == OP_zero) value = ir_const_zero(lanes->module, lanes_row(lanes, type));
    else value = widened(lanes, objects->from, load_scalar(lanes, objects->from));
    store_scalar(lanes, objects->to, value);
}

static Place field(Lanes *lanes, Place place, int index) {
    if (!place.address) return place;
    Inst *inst = build_inst(&lanes->b, OP_field, &place.address, 1, 1, 0);
    inst->index = index;
    inst->results[0]->type = ir_result_type(lanes->module, inst);
    return (Place){inst->results[0], place.spread};
}

static Place at_index(Lanes *lanes, Place place, Val *index) {
    if (!place.address) return place;
    Val *args[] = {place.address, index}, *address = make_address(lanes, NULL, OP_elem, args, 2);
    address->inst->flags |= INST_UNCHECKED;
    return (Place){address, place.spread};
}

static void each_element(Lanes *lanes, const Objects *objects, const Type *type) {
    int64_t length = type->kind == TYPE_vector ? type_count(type) : type_length(type);
    bool is_between = objects->to.spread && (objects->op == OP_zero || objects->from.spread);
    if (length <= (is_between ? FEW_ELEMENTS : FEW_NEIGHBOURS)) {
        for (int64_t i = 0; i < length; i++) {
            Val *index = ir_const_int(lanes->module, type_basic(lanes->module->types, TYPE_int), i);
            Objects inner = {objects->op, at_index(lanes, objects->to, index),
                             at_index(lanes, objects->from, index), objects->lane};
            each_scalar(lanes, &inner, type->args[0]);
        }
        return;
    }
    CountLoop loop = build_count(&lanes->b, 0, length);
    Builder outer = lanes->b;
    lanes->b = loop.body;
    Objects inner = {objects->op, at_index(lanes, objects->to, loop.index),
                     at_index(lanes, objects->from, loop.index), objects->lane};
    each_scalar(lanes, &inner, type->args[0]);
    loop.body = lanes->b;
    build_next(&loop);
    lanes->b = outer;
}

static void each_scalar(Lanes *lanes, const Objects *objects, const Type *type) {
    if (type_is_scalar(type)) {
        one_scalar(lanes, objects, type);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            Objects inner = {objects->op, field(lanes, objects->to, i), field(lanes, objects->from, i),
                             objects->lane};
            each_scalar(lanes, &inner, type_record(type)->fields[i].type);
        }
    } else {
        each_element(lanes, objects, type);
    }
}

/* Both are spread, one place for all lanes, all lanes on: as it is, with rows for scalars. */
static bool is_whole(const Lanes *lanes, const Objects *objects) {
    bool from = objects->op == OP_zero || (objects->from.spread && is_one(objects->from));
    return !lanes->mask && objects->to.spread && is_one(objects->to) && from;
}

static void widen_objects(Lanes *lanes, Inst *inst) {
    const Type *type = ir_target(inst->args[0]->type);
    if (!lanes_can_be_spread(type)) {
        lanes_decline(lanes, inst, "an object with addresses in it differs between items");
        return;
    }
    Objects objects = {.op = (Op)inst->op, .to = place_of(lanes, inst->args[0])};
    if (inst->nargs > 1) objects.from = place_of(lanes, inst->args[1]);
    if (!is_whole(lanes, &objects)) {
        each_scalar(lanes, &objects, type);
        return;
    }
    Val *args[] = {objects.to.address, objects.from.address};
    build_inst(&lanes->b, (Op)inst->op, args, inst->nargs, 0, 0);
}

/* ---- the object of one lane, as memory of its own */

static void copy_column(Lanes *lanes, Place to, Place from, const Type *type, int lane) {
    Objects objects = {.op = OP_copy, .to = to, .from = from, .lane = lane + 1};
    each_scalar(lanes, &objects, type);
}

void lanes_take_column(Lanes *lanes, Val *to, Val *object, int lane) {
    copy_column(lanes, (Place){to, false}, place_of(lanes, object), ir_target(to->type), lane);
}

void lanes_give_column(Lanes *lanes, Val *object, Val *from, int lane) {
    copy_column(lanes, place_of(lanes, object), (Place){from, false}, ir_target(from->type), lane);
}

/* ---- atomic operations by loads and stores */

/* What is there afterwards. */
static Val *changed(Lanes *lanes, const Inst *inst, Val *old) {
    static const Op ops[] = {[ATOMIC_add] = OP_add, [ATOMIC_min] = OP_min, [ATOMIC_max] = OP_max,
                             [ATOMIC_and] = OP_and, [ATOMIC_or] = OP_or,   [ATOMIC_xor] = OP_xor};
    Val *value = lanes_spread(lanes, inst->args[1], 0);
    if (inst->op == OP_atomic)
        return inst->index == ATOMIC_exchange ? value : build_binary(&lanes->b, ops[inst->index], old, value);
    Val *is_expected = build_binary(&lanes->b, OP_eq, old, value);
    return build_select(&lanes->b, is_expected, lanes_spread(lanes, inst->args[2], 0), old);
}

static void change_by_rows(Lanes *lanes, const Inst *inst, Place place) {
    Val *old = load_scalar(lanes, place);
    store_scalar(lanes, place, changed(lanes, inst, old));
    lanes_define(lanes, inst->results[0], &old);
}

/* What it is where nothing is held back, of all lanes. */
static Val *index_inside(Lanes *lanes, Val *v) {
    v = ir_resolve(v);
    if (!lanes_is_held(lanes, v)) return lanes_spread(lanes, v, 0);
    if (lanes_held(lanes, v)) return index_inside(lanes, lanes_held(lanes, v));
    Val *args[2];
    for (int i = 0; i < v->inst->nargs; i++) args[i] = index_inside(lanes, v->inst->args[i]);
    return build_op(&lanes->b, (Op)v->inst->op, lanes_row(lanes, v->type), args, v->inst->nargs);
}

/* Leaves the index at which the element is in `index`. */
static Val *address_inside(Lanes *lanes, const Inst *inst, Val **index) {
    Val *args[2] = {inst->op == OP_buffer_elem ? lanes_same(lanes, inst->args[0])
                                               : address_inside(lanes, inst_operand(inst, 0)->inst, index)};
    if (inst->op == OP_buffer_elem) args[1] = *index = index_inside(lanes, inst->args[1]);
    else if (inst->nargs > 1) args[1] = operand(lanes, inst->args[1]);
    return make_address(lanes, inst, (Op)inst->op, args, inst->nargs);
}

static void end_arm(Lanes *lanes, const Inst *inst) {
    Val *row = lanes_spread(lanes, inst->results[0], 0);
    build_yield(&lanes->b, &row, 1);
}

static void change_by_rows_inside(Lanes *lanes, Inst *inst) {
    const Inst *elem = inst_operand(inst, 0)->inst;
    Val *inside, *address = address_inside(lanes, elem, &inside);
    while (elem->op != OP_buffer_elem) elem = inst_operand(elem, 0)->inst;
    Val *is_inside = build_binary(&lanes->b, OP_eq, lanes_spread(lanes, elem->args[1], 0), inside);
    if (lanes->mask) is_inside = build_binary(&lanes->b, OP_or, is_inside, build_not(&lanes->b, lanes->mask));
    const Type *boolean = type_basic(lanes->module->types, TYPE_bool),
               *row = lanes_row(lanes, inst->results[0]->type);
    Val *all = build_op(&lanes->b, OP_all, boolean, &is_inside, 1);
    Inst *branch = build_if(&lanes->b, all, &row, 1);
    branch->flags |= INST_LIKELY;
    Builder outer = lanes->b;
    lanes->b = build_at_end(branch->regions[0]);
    change_by_rows(lanes, inst, (Place){address, false});
    end_arm(lanes, inst);
    lanes->b = build_at_end(branch->regions[1]);
    lanes_atomic(lanes, inst);
    end_arm(lanes, inst);
    lanes->b = outer;
    lanes_define(lanes, inst->results[0], branch->results);
}

static void widen_atomic(Lanes *lanes, Inst *inst) {
    Place place = place_of(lanes, inst->args[0]);
    bool compares_bits = inst->op == OP_atomic_cas && type_is_float(inst->args[1]->type);
    if (place.spread && compares_bits) lanes_decline(lanes, inst, "a variable is exchanged by its bits");
    else if (place.spread || lanes_adds_by_rows(lanes, inst)) change_by_rows(lanes, inst, place);
    else if (lanes_adds_by_rows_inside(lanes, inst)) change_by_rows_inside(lanes, inst);
    else lanes_atomic(lanes, inst);
}

bool lanes_memory(Lanes *lanes, Inst *inst) {
    bool differs = lanes_varies_here(lanes, inst);
    switch ((Op)inst->op) {
    case OP_var: widen_variable(lanes, inst); return true;
    case OP_atomic:
    case OP_atomic_cas: widen_atomic(lanes, inst); return true;
    case OP_field:
    case OP_elem:
    case OP_offset:
    case OP_buffer_elem:
    case OP_buffer_bytes:
        if (differs) widen_address(lanes, inst);
        return differs;
    case OP_load:
        if (differs) widen_load(lanes, inst);
        return differs;
    case OP_store:
        if (differs) widen_store(lanes, inst);
        return differs;
    case OP_copy:
    case OP_zero:
        if (differs) widen_objects(lanes, inst);
        return differs;
    default: return false;
    }
}
