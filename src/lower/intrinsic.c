/* Functions of the prelude that are operations: [__op(name)].
 *
 * `name` is an operation of the IR, applied to the arguments as they are, or one of the names in the table
 * here, which need a little more. Arguments are values, or addresses for structs, arrays and __ref
 * parameters; `this` comes first. */
#include "lower/lowerer.h"

typedef struct Call {
    Fn *f;
    Decl *decl;
    const Subst *subst;
    FuncSig sig; /* concrete, flattened */
    Val **args;
    const Type *result; /* front end */
    const Type *result_ir;
    Val *into;
} Call;

static Module *module_of(const Call *call) { return call->f->l->m; }

/* ---- bits */

/* Are its parts in the natural layout where they are in memory? */
static bool is_natural(const Type *ir) {
    if (ir->kind == TYPE_array) return is_natural(ir->args[0]);
    if (ir->kind != TYPE_record) return true;
    for (int i = 0; i < type_record(ir)->nfields; i++) {
        if (type_field_offset(ir, i, LAYOUT_natural) != type_field_offset(ir, i, LAYOUT_scalar)) return false;
        if (!is_natural(type_record(ir)->fields[i].type)) return false;
    }
    return true;
}

/* Between an object and its bytes in the natural layout, part by part. */
static void copy_bytes(Fn *f, Val *object, Val *bytes, int64_t at, bool out) {
    const Type *ir = object->type->args[0];
    if (!is_natural(ir) && ir->kind == TYPE_record) {
        for (int i = 0; i < type_record(ir)->nfields; i++)
            copy_bytes(f, build_field(&f->b, object, i), bytes, at + type_field_offset(ir, i, LAYOUT_natural),
                       out);
        return;
    }
    if (!is_natural(ir)) {
        for (int64_t i = 0; i < type_length(ir); i++)
            copy_bytes(f, build_elem(&f->b, object, const_int(f, TYPE_int, i), true), bytes,
                       at + i * type_element_stride(ir, LAYOUT_natural), out);
        return;
    }
    Val *place =
        build_bitcast(&f->b, build_elem(&f->b, bytes, const_int(f, TYPE_int, at), true), object->type);
    Val *from = out ? place : object, *to = out ? object : place;
    if (is_simple(ir)) build_store(&f->b, to, build_load(&f->b, from));
    else copy_object(f, to, from, false);
}

static void reinterpret_natural(Call *call, const Type *from_ir, Val *value, int64_t size) {
    Fn *f = call->f;
    Val *bytes = temp_var(f, type_array(f->l->types, type_basic(f->l->types, TYPE_uint8), size), "bits");
    Val *object = value;
    if (is_simple(from_ir)) {
        object = build_var(&f->b, from_ir, name_from(f->l->m->names, "from"), false);
        build_store(&f->b, object, value);
    }
    copy_bytes(f, object, bytes, 0, false);
    copy_bytes(f, call->into, bytes, 0, true);
}

/* Of scalars: as an unsigned number of the same size, which is extended or cut. */
static Val *reinterpret_scalar(Fn *f, Val *value, const Type *to) {
    static const TypeKind kinds[] = {[1] = TYPE_uint8, [2] = TYPE_uint16, [4] = TYPE_uint, [8] = TYPE_uint64};
    int64_t from_size = type_layout(value->type, LAYOUT_natural).size,
            to_size = type_layout(to, LAYOUT_natural).size;
    const Type *from_bits = type_basic(f->l->types, kinds[from_size]),
               *to_bits = type_basic(f->l->types, kinds[to_size]);
    bool was_bool = value->type->kind == TYPE_bool;
    Val *bits = was_bool ? build_convert(&f->b, value, from_bits) : build_bitcast(&f->b, value, from_bits);
    bits = build_convert(&f->b, bits, to_bits);
    return to->kind == TYPE_bool ? build_convert(&f->b, bits, to) : build_bitcast(&f->b, bits, to);
}

/* Same bytes, read as another type; the shorter of the two sizes counts, the rest is zero. */
static Val *op_reinterpret(Call *call, int source) {
    Fn *f = call->f;
    const Type *from = call->sig.has_this && source == 0
                           ? call->sig.this_type
                           : call->sig.params[source - (call->sig.has_this ? 1 : 0)].type;
    const Type *from_ir = lower_type(f->l, from);
    Val *value = call->args[source];
    int64_t from_size = type_layout(from_ir, LAYOUT_natural).size,
            to_size = type_layout(call->result_ir, LAYOUT_natural).size;
    if (!is_simple(call->result_ir) && !(is_natural(from_ir) && is_natural(call->result_ir))) {
        reinterpret_natural(call, from_ir, value, from_size > to_size ? from_size : to_size);
        return NULL;
    }
    if (is_simple(from_ir) && is_simple(call->result_ir) && from_size == to_size &&
        from_ir->kind != TYPE_bool && call->result_ir->kind != TYPE_bool)
        return build_bitcast(&f->b, value, call->result_ir);
    if (type_is_scalar(from_ir) && type_is_scalar(call->result_ir))
        return reinterpret_scalar(f, value, call->result_ir);
    const Type *larger = from_size > to_size ? from : call->result;
    Val *memory = temp_var(f, larger, "bits"); /* zeroed */
    Val *from_view = build_bitcast(&f->b, memory, type_pointer(f->l->types, from_ir));
    Val *to_view = build_bitcast(&f->b, memory, type_pointer(f->l->types, call->result_ir));
    if (is_simple(from_ir)) build_store(&f->b, from_view, value);
    else copy_object(f, from_view, value, false);
    if (is_simple(call->result_ir)) return build_load(&f->b, to_view);
    copy_object(f, call->into, to_view, false);
    return NULL;
}

static Val *op_bit_cast(Call *call) { return op_reinterpret(call, 0); }

static Val *op_cast(Call *call) { return convert_numeric(call->f, call->args[0], call->result_ir); }

static Val *op_root(Call *call) {
    Val *root = build_unary(&call->f->b, OP_sqrt, call->args[0]);
    if (root->kind == VAL_inst && root->inst->op == OP_sqrt) root->inst->flags |= INST_STEEP;
    return root;
}

static Val *op_detach(Call *call) {
    Fn *f = call->f;
    if (is_simple(call->result_ir)) {
        const Type *element =
            call->result_ir->kind == TYPE_vector ? call->result_ir->args[0] : call->result_ir;
        return type_is_float(element) ? build_unary(&f->b, OP_detach, call->args[0]) : call->args[0];
    }
    copy_constant(f, call->into, call->args[0]);
    return NULL;
}

/* ---- buffers */

static Val *op_buffer_load(Call *call) {
    Fn *f = call->f;
    Place place = {.kind = PLACE_memory, .type = call->result, .shared = true};
    place.address = build_buffer_elem(&f->b, call->args[0], call->args[1], false);
    if (has_external_form(f->l, call->result)) place.kind = PLACE_external;
    if (is_simple(call->result_ir)) return place_load(f, &place);
    place_load_into(f, &place, call->into);
    return NULL;
}

static Val *op_buffer_store(Call *call) {
    Fn *f = call->f;
    Place place = {.kind = PLACE_memory, .type = call->sig.params[1].type, .shared = true};
    place.address = build_buffer_elem(&f->b, call->args[0], call->args[1], true);
    if (has_external_form(f->l, place.type)) place.kind = PLACE_external;
    if (is_simple(lower_type(f->l, place.type))) place_store(f, &place, call->args[2]);
    else place_store_from(f, &place, call->args[2]);
    return NULL;
}

static Val *op_bytes_load(Call *call) {
    Fn *f = call->f;
    const Type *ir = lower_external_type(f->l, call->result);
    Val *at = build_buffer_bytes(&f->b, call->args[0], call->args[1], ir, false);
    if (is_simple(ir)) return build_load(&f->b, at);
    if (has_external_form(f->l, call->result)) load_external(f, call->result, at, call->into);
    else copy_object(f, call->into, at, false);
    return NULL;
}

static Val *op_bytes_store(Call *call) {
    Fn *f = call->f;
    const Type *front = call->sig.params[1].type, *ir = lower_external_type(f->l, front);
    Val *at = build_buffer_bytes(&f->b, call->args[0], call->args[1], ir, true);
    if (is_simple(ir)) build_store(&f->b, at, call->args[2]);
    else if (has_external_form(f->l, front)) store_external(f, front, call->args[2], at);
    else copy_object(f, at, call->args[2], false);
    return NULL;
}

/* The address of a scalar in a byte buffer, for atomics on it. */
static Val *op_bytes_address(Call *call) {
    const Type *target = call->result_ir->args[0];
    return build_buffer_bytes(&call->f->b, call->args[0], call->args[1], target, true);
}

static Val *emit_plain(Call *call, Op op, Val **args, int nargs, const Type *type) {
    Inst *inst = build_inst(&call->f->b, op, args, nargs, 0, 0);
    if (!type) return NULL;
    inst_add_result(inst, type, NULL);
    ir_follow_space(inst);
    return inst->results[0];
}

/* Adds to the counter of the buffer; the value before. */
static Val *op_counter_add(Call *call) {
    Fn *f = call->f;
    const Type *word = type_basic(f->l->types, TYPE_uint);
    Val *counter = emit_plain(call, OP_buffer_counter, call->args, 1, type_pointer(f->l->types, word));
    Val *args[2] = {counter, build_convert(&f->b, call->args[1], word)};
    Val *before = emit_plain(call, OP_atomic, args, 2, word);
    before->inst->index = ATOMIC_add;
    return before;
}

static Val *op_stride(Call *call) {
    const Type *type = subst_find(call->subst, call->decl, 0);
    if (!type) type = call->sig.this_type->args[0];
    return ir_const_int(module_of(call), call->result_ir, external_layout(call->f->l, type).stride);
}

/* ---- atomics: the first argument is an address */

static Val *atomic(Call *call, AtomicKind kind) {
    const Type *type = call->args[0]->type->args[0];
    Val *args[2] = {call->args[0], call->args[1]};
    if (args[1]->type != type) args[1] = build_bitcast(&call->f->b, args[1], type);
    Val *before = emit_plain(call, OP_atomic, args, 2, type);
    before->inst->index = (int)kind;
    return build_bitcast(&call->f->b, before, call->result_ir);
}

static Val *op_atomic_add(Call *call) { return atomic(call, ATOMIC_add); }
static Val *op_atomic_min(Call *call) { return atomic(call, ATOMIC_min); }
static Val *op_atomic_max(Call *call) { return atomic(call, ATOMIC_max); }
static Val *op_atomic_and(Call *call) { return atomic(call, ATOMIC_and); }
static Val *op_atomic_or(Call *call) { return atomic(call, ATOMIC_or); }
static Val *op_atomic_xor(Call *call) { return atomic(call, ATOMIC_xor); }
static Val *op_atomic_exchange(Call *call) { return atomic(call, ATOMIC_exchange); }

static Val *op_atomic_cas(Call *call) {
    const Type *type = call->args[0]->type->args[0];
    return emit_plain(call, OP_atomic_cas, call->args, 3, type);
}

static void atomic_add_parts(Fn *f, Val *to, Val *from);

static void atomic_add_element(Fn *f, Val *to, Val *from, int64_t index) {
    Val *at = const_int(f, TYPE_int, index);
    Val *to_part = build_elem(&f->b, to, at, true);
    Val *from_part = build_elem(&f->b, from, at, true);
    atomic_add_parts(f, to_part, from_part);
}

/* Short arrays without a loop: each sum can then take the place of the zero that was stored there
 * (opt/fill.c). */
static void atomic_add_elements(Fn *f, Val *to, Val *from) {
    enum { SHORT = 4 };
    int64_t length = type_length(to->type->args[0]);
    for (int64_t i = 0; i < length && length <= SHORT; i++) atomic_add_element(f, to, from, i);
    if (length <= SHORT) return;
    Count count = begin_count(f, 0, length);
    Val *to_part = build_elem(&f->b, to, count.index, true);
    Val *from_part = build_elem(&f->b, from, count.index, true);
    atomic_add_parts(f, to_part, from_part);
    end_count(f, &count);
}

/* Adds the floating numbers of one object to those of another, each atomically. */
static void atomic_add_parts(Fn *f, Val *to, Val *from) {
    const Type *type = to->type->args[0];
    if (type_is_float(type)) {
        Val *args[2] = {to, build_load(&f->b, from)};
        Inst *add = build_inst(&f->b, OP_atomic, args, 2, 0, 0);
        inst_add_result(add, type, NULL);
        add->index = ATOMIC_add;
    } else if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++) {
            Val *lane = const_int(f, TYPE_int, i);
            Val *to_part = build_elem(&f->b, to, lane, true);
            Val *from_part = build_elem(&f->b, from, lane, true);
            atomic_add_parts(f, to_part, from_part);
        }
    } else if (type->kind == TYPE_array) atomic_add_elements(f, to, from);
    else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            Val *to_part = build_field(&f->b, to, i);
            Val *from_part = build_field(&f->b, from, i);
            atomic_add_parts(f, to_part, from_part);
        }
    }
}

static Val *op_atomic_add_parts(Call *call) {
    Val *from = call->args[1];
    if (is_simple(from->type) && from->type->kind != TYPE_pointer) {
        Val *value = from;
        from = build_var(&call->f->b, value->type, NULL, false);
        build_store(&call->f->b, from, value);
    }
    atomic_add_parts(call->f, call->args[0], from);
    return NULL;
}

/* ---- a number of an object */

static void set_unit(Fn *f, Val *to, Val *i);

/* Only the element that number i is in; the others are zero. */
static void set_unit_element(Fn *f, Val *to, Val *i, int64_t count) {
    Builder *b = &f->b;
    int64_t numbers = ir_count_numbers(to->type->args[0]->args[0]);
    if (count * numbers == 0) return;
    Val *each = const_int(f, TYPE_int, numbers), *zero = const_int(f, TYPE_int, 0);
    Val *element = build_binary(b, OP_div, i, each), *last = const_int(f, TYPE_int, count - 1);
    element = build_binary(b, OP_max, build_binary(b, OP_min, element, last), zero);
    Val *to_part = build_elem(b, to, element, true);
    Val *rest = build_binary(b, OP_sub, i, build_binary(b, OP_mul, element, each));
    set_unit(f, to_part, rest);
}

/* Number i of an object that is zero becomes one, if there is such a number. */
static void set_unit(Fn *f, Val *to, Val *i) {
    Builder *b = &f->b;
    const Type *type = to->type->args[0];
    if (type_is_float(type)) {
        Val *is_it = build_binary(b, OP_eq, i, const_int(f, TYPE_int, 0));
        build_store(b, to,
                    build_select(b, is_it, ir_const_real(f->l->m, type, 1), ir_const_zero(f->l->m, type)));
    } else if (type->kind == TYPE_vector) set_unit_element(f, to, i, type_count(type));
    else if (type->kind == TYPE_array) set_unit_element(f, to, i, type_length(type));
    else if (type->kind == TYPE_record) {
        for (int k = 0; k < type_record(type)->nfields; k++) {
            Val *field = build_field(b, to, k);
            set_unit(f, field, i);
            i = build_binary(b, OP_sub, i, const_int(f, TYPE_int, ir_count_numbers(field->type->args[0])));
        }
    }
}

/* Number i, which there is. */
static void set_unit_inside(Fn *f, Val *to, Val *i) {
    Builder *b = &f->b;
    const Type *type = to->type->args[0];
    if (type->kind == TYPE_vector || type->kind == TYPE_array) {
        Val *each = const_int(f, TYPE_int, ir_count_numbers(type->args[0])),
            *element = build_binary(b, OP_div, i, each);
        Val *to_part = build_elem(b, to, element, true);
        Val *rest = build_binary(b, OP_sub, i, build_binary(b, OP_mul, element, each));
        set_unit_inside(f, to_part, rest);
    } else if (type_is_float(type)) build_store(b, to, ir_const_real(f->l->m, type, 1));
    else set_unit(f, to, i);
}

static Val *op_unit(Call *call) {
    Fn *f = call->f;
    bool simple = is_simple(call->result_ir);
    Val *into = simple ? build_var(&f->b, call->result_ir, NULL, true) : call->into;
    build_zero(&f->b, into);
    if (ir_count_numbers(call->result_ir)) set_unit_inside(f, into, call->args[0]);
    return simple ? build_load(&f->b, into) : NULL;
}

/* ---- numbers of objects, across */

/* The way to a number inside of an object: fields, and elements. */
typedef struct Step {
    const struct Step *before;
    Val *element; /* or NULL */
    int field;
} Step;

typedef struct Across {
    Fn *f;
    Val *from, *to; /* arrays of objects */
    /* in the elements of from, where the code is */
    const Step *way;
    Val *index;
} Across;

typedef void Visit(Across *a, const Type *type, const Step *way, Val *index);

static Val *follow(Fn *f, Val *object, const Step *way) {
    if (!way) return object;
    Val *within = follow(f, object, way->before);
    return way->element ? build_elem(&f->b, within, way->element, true)
                        : build_field(&f->b, within, way->field);
}

static void visit_numbers(Across *a, const Type *type, const Step *way, Val *index, Visit *visit);

static void visit_element(Across *a, const Type *type, const Step *way, Val *index, Visit *visit, Val *i) {
    Fn *f = a->f;
    Val *before = build_binary(&f->b, OP_mul, i, const_int(f, TYPE_int, ir_count_numbers(type->args[0])));
    Step step = {.before = way, .element = i};
    visit_numbers(a, type->args[0], &step, build_binary(&f->b, OP_add, index, before), visit);
}

/* Code for all numbers of an object, the first of which has that index. */
static void visit_numbers(Across *a, const Type *type, const Step *way, Val *index, Visit *visit) {
    Fn *f = a->f;
    if (type_is_float(type)) visit(a, type, way, index);
    else if (type->kind == TYPE_vector) {
        for (int i = 0; i < type_count(type); i++)
            visit_element(a, type, way, index, visit, const_int(f, TYPE_int, i));
    } else if (type->kind == TYPE_array) {
        Count count = begin_count(f, 0, type_length(type));
        visit_element(a, type, way, index, visit, count.index);
        end_count(f, &count);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++) {
            const Type *field = type_record(type)->fields[i].type;
            Step step = {.before = way, .field = i};
            visit_numbers(a, field, &step, index, visit);
            index = build_binary(&f->b, OP_add, index, const_int(f, TYPE_int, ir_count_numbers(field)));
        }
    }
}

/* from[i].j to to[j].i */
static void copy_across(Across *a, const Type *type, const Step *way, Val *index) {
    Builder *b = &a->f->b;
    Val *number = build_load(b, follow(a->f, build_elem(b, a->from, index, true), a->way));
    Val *to = follow(a->f, build_elem(b, a->to, a->index, true), way);
    build_store(b, to, convert_numeric(a->f, number, type));
}

static void visit_others(Across *a, const Type *type, const Step *way, Val *index) {
    (void)type;
    a->way = way;
    a->index = index;
    visit_numbers(a, a->to->type->args[0]->args[0], NULL, const_int(a->f, TYPE_int, 0), copy_across);
}

static Val *op_transpose(Call *call) {
    Across across = {.f = call->f, .from = call->args[0], .to = call->into};
    build_zero(&call->f->b, call->into);
    visit_numbers(&across, across.from->type->args[0]->args[0], NULL, const_int(call->f, TYPE_int, 0),
                  visit_others);
    return NULL;
}

/* ---- the machine */

/* Where the program itself launches kernels (prelude/torch.slang), the library knows which thread this is,
 * and where threads would wait for each other. Programs without a launch do not pay: what asks is kept in
 * mind, and goes to the library once there is one. */

static Val *which_thread(Builder *b, int what, const Type *type) {
    Inst *inst = build_inst(b, OP_thread_id, NULL, 0, 0, 0);
    inst->index = what;
    return inst_add_result(inst, type, NULL);
}

static Inst *ask_library(Lowerer *l, Builder *b, const char *name, Val **args, int nargs) {
    return build_call(b, lower_func(l, check_prelude_decl(l->c, name), NULL, NULL, 0), args, nargs);
}

static void ask(Lowerer *l, Inst *inst) {
    Builder b = build_before(inst);
    if (inst->op != OP_thread_id) {
        ask_library(l, &b, "__meet_launched", NULL, 0);
        return;
    }
    Val *args[2] = {ir_const_int(l->m, type_basic(l->m->types, TYPE_int), inst->index),
                    which_thread(&b, inst->index, inst->results[0]->type)};
    Inst *known = ask_library(l, &b, "__as_launched", args, 2);
    inst_replace(inst, known);
}

static void may_ask(Lowerer *l, Inst *inst) {
    if (l->launches) ask(l, inst);
    else vec_push(l->arena, &l->asking, inst);
}

static Val *op_begin_launch(Call *call) {
    Lowerer *l = call->f->l;
    if (l->asks_machine && !l->launches) diag_report(l->m->diags, DIAG_late_launch, call->f->b.loc);
    l->launches = true;
    for (int i = 0; i < l->asking.count; i++) {
        Inst *inst = l->asking.at[i];
        if (inst->parent) ask(l, inst), ir_resolve_func(inst->func);
    }
    l->asking.count = 0;
    return NULL;
}

static Val *op_barrier(Call *call) {
    Inst *inst = build_inst(&call->f->b, OP_barrier, NULL, 0, 0, 0);
    inst->index = 1;
    may_ask(call->f->l, inst);
    return NULL;
}

static Val *op_fence(Call *call) {
    build_inst(&call->f->b, OP_barrier, NULL, 0, 0, 0);
    return NULL;
}

static Val *op_thread_id(Call *call) {
    static const char *const names[] = {"dispatch_id", "group_id",    "local_id", "local_index",
                                        "group_size",  "group_count", "wave_size"};
    int what = 0;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(names[i], call->decl->sema->op->text) == 0) what = i;
    Val *id = which_thread(&call->f->b, what, call->result_ir);
    if (id->type->kind == TYPE_vector) may_ask(call->f->l, id->inst);
    return ir_resolve(id);
}

static Val *op_wave(Call *call) {
    module_of(call)->has_waves = true;
    Val *value = emit_plain(call, OP_wave, call->args, 3, call->result_ir);
    may_ask(call->f->l, value->inst);
    return value;
}

/* The bytes of a value, as they would lie in a buffer. */
static Val *bytes_of(Fn *f, const Type *front, Val *value) {
    const Type *ir = lower_external_type(f->l, front);
    if (!is_simple(ir) && !has_external_form(f->l, front)) return value;
    Val *bytes = build_var(&f->b, ir, name_from(f->l->m->names, "bits"), false);
    if (is_simple(ir)) build_store(&f->b, bytes, value);
    else to_external(f, front, value, bytes);
    return bytes;
}

static Val *op_create_dynamic(Call *call) {
    Fn *f = call->f;
    Lowerer *l = f->l;
    const Type *interface = call->result, *stored = lower_external_type(l, interface);
    if (interface->kind != TYPE_interface) return NULL;
    int64_t room = external_room(l, interface), size = external_layout(l, call->sig.params[1].type).size;
    Val *memory = build_var(&f->b, stored, NULL, false);
    Val *id = build_convert(&f->b, call->args[0], type_basic(l->types, TYPE_uint64));
    build_store(&f->b, build_field(&f->b, memory, 0), id);
    build_store(&f->b, build_field(&f->b, memory, 1), id);
    Val *payload = build_field(&f->b, memory, 2),
        *bytes = bytes_of(f, call->sig.params[1].type, call->args[1]);
    if (size <= room) payload = build_bitcast(&f->b, payload, bytes->type);
    else bytes = build_bitcast(&f->b, bytes, payload->type); /* what fits */
    if (is_simple(payload->type->args[0])) build_store(&f->b, payload, build_load(&f->b, bytes));
    else copy_object(f, payload, bytes, false);
    from_external(f, interface, memory, call->into);
    return NULL;
}

static Val *op_address_value(Call *call) {
    return build_bitcast(&call->f->b, call->args[0], call->result_ir);
}

static const struct {
    const char *name;
    Val *(*lower)(Call *call);
} special[] = {
    {"bit_cast", op_bit_cast},
    {"cast", op_cast},
    {"detach", op_detach},
    {"root", op_root},
    {"unit", op_unit},
    {"transpose", op_transpose},
    {"begin_launch", op_begin_launch},
    {"buffer_load", op_buffer_load},
    {"buffer_store", op_buffer_store},
    {"bytes_load", op_bytes_load},
    {"bytes_store", op_bytes_store},
    {"bytes_address", op_bytes_address},
    {"counter_add", op_counter_add},
    {"stride", op_stride},
    {"atomic_add", op_atomic_add},
    {"atomic_min", op_atomic_min},
    {"atomic_max", op_atomic_max},
    {"atomic_and", op_atomic_and},
    {"atomic_or", op_atomic_or},
    {"atomic_xor", op_atomic_xor},
    {"atomic_exchange", op_atomic_exchange},
    {"atomic_cas", op_atomic_cas},
    {"atomic_add_parts", op_atomic_add_parts},
    {"group_barrier", op_barrier},
    {"fence", op_fence},
    {"dispatch_id", op_thread_id},
    {"group_id", op_thread_id},
    {"local_id", op_thread_id},
    {"local_index", op_thread_id},
    {"group_size", op_thread_id},
    {"group_count", op_thread_id},
    {"wave_size", op_thread_id},
    {"wave", op_wave},
    {"create_dynamic", op_create_dynamic},
    {"address_value", op_address_value},
};

static int find_op(Name name) {
    for (int i = 0; i < OP_COUNT; i++)
        if (strcmp(op_info[i].name, name->text) == 0) return i;
    return -1;
}

Val *lower_op(Fn *f, Decl *decl, const Subst *subst, Val **args, Val *into) {
    Lowerer *l = f->l;
    Call call = {.f = f, .decl = decl, .subst = subst, .args = args, .into = into};
    FuncSig sig = check_signature_of(l->c, decl, subst, NULL, 0, true);
    call.sig = flatten_signature(l, &sig);
    call.result = call.sig.result;
    call.result_ir = lower_type(l, call.result);
    if (!is_simple(call.result_ir) && !into) call.into = temp_var(f, call.result, "result");
    Name name = decl->sema->op;
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strcmp(special[i].name, name->text) == 0) return special[i].lower(&call);
    int op = find_op(name), nargs = call.sig.nparams + (call.sig.has_this ? 1 : 0);
    if (op < 0)
        arena_fault(l->arena,
                    format_text(l->arena, "the prelude names an unknown operation '%s'", name->text));
    return build_op(&f->b, (Op)op, call.result_ir, args, nargs);
}

/* ---- printf and abort */

/* Formats and messages exist only while compiling: what they are must be known. */
static Str text_of(Fn *f, Expr *e) {
    const Expr *literal = check_text_literal(e);
    if (!literal) lower_report(f, DIAG_text_not_constant, e->loc);
    return literal ? literal->text : STR("");
}

/* One argument after another: its values, or text that is known and becomes a part of the format. */
typedef struct PrintArg {
    ValVec values; /* of a struct, an array or a matrix: all that is in it */
    Str text;
    bool is_text, cut;
} PrintArg;
typedef VEC(PrintArg) PrintArgs;

enum { MAX_PRINTED = 256 }; /* values of one argument */

static void add_parts(Fn *f, Val *at, PrintArg *out) {
    const Type *type = at->type->args[0];
    int64_t count = type->kind == TYPE_record ? type_record(type)->nfields : type_length(type);
    if (is_simple(type)) vec_push(f->l->arena, &out->values, build_load(&f->b, at));
    for (int64_t i = 0; !is_simple(type) && i < count; i++) {
        out->cut |= out->values.count >= MAX_PRINTED;
        if (out->cut) return;
        if (type->kind == TYPE_record) add_parts(f, build_field(&f->b, at, (int)i), out);
        else add_parts(f, build_elem(&f->b, at, const_int(f, TYPE_int, i), true), out);
    }
}

static void add_print_arg(Fn *f, Expr *e, PrintArgs *out) {
    const Type *front = concrete(f, e->type);
    const Expr *literal = front->kind == TYPE_string ? check_text_literal(e) : NULL;
    PrintArg arg = {0};
    if (literal) arg = (PrintArg){.text = literal->text, .is_text = true};
    else if (front->kind == TYPE_void) { /* of a generic function */ lower_effect(f, e);
        arg = (PrintArg){.text = STR("void"), .is_text = true};
    } else if (is_simple(lower_type(f->l, front))) vec_push(f->l->arena, &arg.values, lower_value(f, e));
    else add_parts(f, lower_address(f, e), &arg);
    vec_push(f->l->arena, out, arg);
}

static void add_padding(Text *out, int64_t count) {
    for (; count > 0; count--) text_char(out, ' ');
}

/* %-10.3s with its text filled in. */
static void fill_in_text(Text *out, Str conversion, Str text) {
    bool left = memchr(conversion.at, '-', (size_t)conversion.len) != NULL;
    int64_t width = 0, precision = -1;
    for (int i = 1; i < conversion.len; i++) {
        char c = conversion.at[i];
        if (c == '.') precision = 0;
        else if (c >= '0' && c <= '9' && precision >= 0 && precision < 10000)
            precision = precision * 10 + (c - '0');
        else if (c >= '0' && c <= '9' && precision < 0 && width < 10000) width = width * 10 + (c - '0');
    }
    if (precision >= 0 && precision < text.len) text.len = (int)precision;
    if (!left) add_padding(out, width - text.len);
    for (int i = 0; i < text.len; i++) {
        if (text.at[i] == '%') text_char(out, '%');
        text_char(out, text.at[i]);
    }
    if (left) add_padding(out, width - text.len);
}

/* One conversion for each of the values. */
static void fill_in_values(Fn *f, Text *out, Str conversion, const PrintArg *arg, ValVec *values) {
    for (int i = 0; i < arg->values.count; i++) {
        if (i) text_add(out, STR(", "));
        text_add(out, conversion);
        vec_push(f->l->arena, values, arg->values.at[i]);
    }
    if (arg->cut) text_add(out, STR(", ..."));
}

static Str fill_in_format(Fn *f, Str format, const PrintArgs *args, ValVec *values) {
    Text out = {.arena = f->l->arena};
    int next = 0;
    for (int i = 0; i < format.len;) {
        bool percent = format.at[i] == '%' && i + 1 < format.len;
        if (!percent || format.at[i + 1] == '%') {
            text_add(&out, (Str){format.at + i, percent ? 2 : 1});
            i += percent ? 2 : 1;
            continue;
        }
        int stars, length = check_conversion_length(format, i, &stars);
        Str conversion = {format.at + i, length};
        i += length;
        for (; stars > 0 && next < args->count; stars--, next++)
            if (args->at[next].values.count) vec_push(f->l->arena, values, args->at[next].values.at[0]);
        const PrintArg *arg = next < args->count ? &args->at[next++] : NULL;
        if (!arg) text_add(&out, conversion);
        else if (arg->is_text) fill_in_text(&out, conversion, arg->text);
        else fill_in_values(f, &out, conversion, arg, values);
    }
    return out.at ? text_str(&out) : STR("");
}

static void add_print_element(Fn *f, Expr *e, void *args) { add_print_arg(f, e, args); }

static void lower_printf(Fn *f, Expr *e) {
    PrintArgs args = {0};
    for (int i = 1; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        if (arg->kind != EXPR_expand) {
            add_print_arg(f, arg, &args);
            continue;
        }
        for_expansion(f, arg, add_print_element, &args);
    }
    ValVec values = {0};
    Str format = fill_in_format(f, text_of(f, e->args.at[0]), &args, &values);
    Inst *inst = build_inst(&f->b, OP_printf, values.at, values.count, 0, 0);
    inst->text = format;
}

/* The place is part of the message: the run has no other way to tell it. */
static Str assertion_text(Fn *f, const Expr *e) {
    Position at = source_position(f->l->m->diags->sources, e->loc);
    Str message = e->args.at[1] ? text_of(f, e->args.at[1]) : STR("");
    return str_of(format_text(f->l->arena, "%s:%d:%d: an assertion failed%s%.*s", at.path->text, at.line,
                              at.column, message.len ? ": " : "", STR_ARG(message)));
}

static void lower_assert(Fn *f, Expr *e) {
    Inst *inst = build_if(&f->b, lower_condition(f, e->args.at[0]), NULL, 0);
    Builder holds = build_at_end(inst->regions[0]), fails = build_at_end(inst->regions[1]);
    build_yield(&holds, NULL, 0);
    build_inst(&fails, OP_abort, NULL, 0, 0, 0)->text = assertion_text(f, e);
    build_yield(&fails, NULL, 0);
}

/* ---- entry */

/* A user's own derivative of a library function counts: then it stays a call. */
static bool has_user_derivative(Fn *f, Decl *decl) {
    if (!f->diff) return false;
    check_derivatives(f->l->c, decl);
    const Sema *sema = decl->sema;
    bool fwd = sema->fwd.decl && !(sema->fwd.decl->flags & DECL_PRELUDE),
         bwd = sema->bwd.decl && !(sema->bwd.decl->flags & DECL_PRELUDE);
    return fwd || bwd || sema->substitute.decl;
}

/* FNV-1a. */
static int32_t hash_text(Str text) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < text.len; i++) hash = (hash ^ (unsigned char)text.at[i]) * 16777619u;
    return (int32_t)hash;
}

static Val *intrinsic_arg(Fn *f, Expr *e, uint8_t pass) {
    if (pass != PASS_in) {
        Place place = lower_place(f, e);
        Val *address = place_reference(f, &place);
        return address ? address : place_address(f, &place);
    }
    return is_simple(ir_type(f, e->type)) ? lower_value(f, e) : lower_address(f, e);
}

bool lower_intrinsic(Fn *f, Decl *decl, const Subst *subst, Expr *e, Val *into, Val **result) {
    Lowerer *l = f->l;
    if (!(decl->flags & DECL_PRELUDE) || decl->kind != DECL_func) return false;
    check_decl_header(l->c, decl);
    if (!decl->sema->op || has_user_derivative(f, decl)) return false;
    *result = NULL;
    const char *name = decl->sema->op->text;
    if (strcmp(name, "printf") == 0) {
        lower_printf(f, e);
        return true;
    }
    if (strcmp(name, "abort") == 0) {
        Inst *inst = build_inst(&f->b, OP_abort, NULL, 0, 0, 0);
        inst->text = e->args.count ? text_of(f, e->args.at[0]) : STR("the program aborted");
        return true;
    }
    if (strcmp(name, "assert") == 0) {
        lower_assert(f, e);
        return true;
    }
    if (strcmp(name, "string_hash") == 0) {
        *result = const_int(f, TYPE_int, hash_text(text_of(f, e->args.at[0])));
        return true;
    }
    FuncSig sig = check_signature_of(l->c, decl, subst, NULL, 0, true);
    Val **args = arena_array(l->arena, Val *, e->args.count + 2);
    int n = 0;
    if (sig.has_this) args[n++] = intrinsic_arg(f, e->a, sig.this_pass);
    for (int i = 0; i < e->args.count; i++) {
        Expr *arg = e->args.at[i];
        args[n++] = arg ? intrinsic_arg(f, arg, sig.params[i].pass)
                        : lower_value_under(f, decl->params.at[i]->init, subst);
    }
    *result = lower_op(f, decl, subst, args, into);
    return true;
}
