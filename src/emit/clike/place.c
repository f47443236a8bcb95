/* Addresses and what is done with them. A place that is an array stands for the address of its first element,
 * as in C. */
#include "emit/clike/clike.h"

static const Type *target_of(const Val *address) { return address->type->args[0]; }

/* ---- from one form to another */

const char *clike_pointer(Printer *p, Value address, const Type *target, bool read_only) {
    const char *text = address.text;
    if (address.is_place && target->kind != TYPE_array) text = clike_format(p, "&%s", text);
    if (!address.constant || read_only) return text;
    return clike_format(p, "(%s)%s", clike_type(p, type_pointer(p->module->types, target)), text);
}

const char *clike_place(Printer *p, Value address, const Type *target) {
    bool as_is = address.is_place || target->kind == TYPE_array;
    return as_is ? address.text : clike_format(p, "*%s", clike_in(p, address, LEVEL_unary));
}

/* The address of something that takes no memory. */
Value clike_nowhere(Printer *p, const Type *target) {
    return clike_value(clike_format(p, "(%s)0", clike_type(p, type_pointer(p->module->types, target))),
                       LEVEL_unary);
}

static Value part(Value whole, const char *text) {
    whole.text = text;
    whole.level = LEVEL_primary;
    whole.is_place = true;
    whole.bare = NULL;
    return whole;
}

/* A pointer of any type: for functions that take all of them, or to be cast. */
static Value bare_pointer(Printer *p, Value address, const Type *target) {
    if (address.bare) return clike_value(address.bare, address.bare_level);
    bool is_taken = address.is_place && target->kind != TYPE_array;
    return clike_value(clike_pointer(p, address, target, true), is_taken ? LEVEL_unary : address.level);
}

/* The same address, said in another way. */
static Value cast_to(Printer *p, Value address, const Type *pointer, Value bare) {
    address.text = clike_format(p, "(%s)(void *)%s", clike_type(p, pointer), clike_in(p, bare, LEVEL_unary));
    address.level = LEVEL_unary;
    address.bare = address.constant ? NULL : bare.text;
    address.bare_level = bare.level;
    address.is_place = address.constant = false;
    return address;
}

/* A part of what may have another type: by its distance; NULL: it is where the whole is. */
static Value raw_part(Printer *p, Value whole, const Type *type, const Type *target, const char *distance) {
    Value bare = bare_pointer(p, whole, type);
    if (distance)
        bare = clike_value(clike_format(p, "(char *)%s + %s", clike_in(p, bare, LEVEL_unary), distance),
                           LEVEL_sum);
    return cast_to(p, whole, type_pointer(p->module->types, target), bare);
}

static Value member(Printer *p, Value whole, const char *name) {
    const char *text = clike_in(p, whole, LEVEL_primary);
    return part(whole, clike_format(p, whole.is_place ? "%s.%s" : "%s->%s", text, name));
}

/* ---- parts */

static Value whole_of(Printer *p, const Inst *inst, bool reading) {
    return reading ? clike_read_operand(p, inst, 0) : clike_operand(p, inst, 0);
}

/* An array of any length that a struct ends with: it is behind the struct, which C has without it. */
static bool is_rest(const Val *address) {
    const Type *type = target_of(address);
    if (address->kind != VAL_inst || address->inst->op != OP_field) return false;
    return type->kind == TYPE_array && type_length(type) == 0 && !clike_is_nothing(type->args[0]);
}

static Value field(Printer *p, const Inst *inst, bool reading) {
    const Type *record = target_of(inst->args[0]), *type = type_record(record)->fields[inst->index].type;
    Value whole = whole_of(p, inst, reading);
    bool behind = is_rest(inst->results[0]);
    if (clike_is_nothing(type) && !behind) return clike_nowhere(p, type);
    if (!whole.raw && !behind) return member(p, whole, clike_field(p, record, inst->index));
    long long offset = (long long)type_field_offset(record, inst->index, LAYOUT_scalar);
    return raw_part(p, whole, record, type, offset ? clike_format(p, "%lld", offset) : NULL);
}

static const char *given_index(Printer *p, const Inst *inst) {
    return clike_given_index(p, inst, clike_operand(p, inst, 1)).text;
}

static const char *index_text(Printer *p, const Inst *inst, int64_t length) {
    int64_t known;
    Value index = clike_operand(p, inst, 1);
    if (val_is_int(ir_resolve(inst->args[1]), &known) && known >= 0 && (length < 0 || known < length))
        return clike_format(p, "%lld", (long long)known);
    if (inst_has(inst, INST_UNCHECKED) || p->options->unchecked || length < 0) return index.text;
    return clike_format(p, "%s(%s, %lld)", clike_helper(p, "slope_in_range"), given_index(p, inst),
                        (long long)length);
}

static Value lane(Printer *p, const Inst *inst, Value whole) {
    int64_t known;
    const Type *vector = target_of(inst->args[0]);
    if (val_is_int(ir_resolve(inst->args[1]), &known) && known >= 0 && known < type_count(vector))
        return member(p, whole, clike_format(p, "%c", "xyzw"[known]));
    const char *pointer = clike_pointer(p, whole, vector, true);
    const char *cast = clike_format(p, "%s%s", whole.constant ? "const " : "",
                                    clike_declare(p, type_pointer(p->module->types, vector->args[0]), ""));
    return part(whole, clike_format(p, "((%s)%s)[%s]", cast,
                                    clike_in(p, clike_value(pointer, LEVEL_choice), LEVEL_unary),
                                    index_text(p, inst, type_count(vector))));
}

static Value element(Printer *p, const Inst *inst, bool reading) {
    Value whole = whole_of(p, inst, reading), index = clike_operand(p, inst, 1);
    const Type *type = target_of(inst->args[0]);
    bool open = is_rest(ir_resolve(inst->args[0]));
    int64_t length = open ? -1 : type->kind == TYPE_vector ? type_count(type) : type_length(type);
    if (clike_is_nothing(type->args[0]) || length == 0) return clike_nowhere(p, type->args[0]);
    if (whole.raw) {
        Value at = clike_value(index_text(p, inst, length), LEVEL_choice);
        const char *distance = clike_format(p, "%s * %lld", clike_in(p, at, LEVEL_unary),
                                            (long long)type_element_stride(type, LAYOUT_scalar));
        Value far = raw_part(p, whole, type, type->args[0], distance);
        far.reads |= index.reads;
        return far;
    }
    Value result = type->kind == TYPE_vector
                       ? lane(p, inst, whole)
                       : part(whole, clike_format(p, "%s[%s]", clike_in(p, whole, LEVEL_primary),
                                                  index_text(p, inst, length)));
    result.reads |= index.reads;
    return result;
}

/* A pointer to an array points to its first element, of which it has to pass many. */
static Value moved(Printer *p, const Inst *inst) {
    Value pointer = clike_operand(p, inst, 0), count = clike_operand(p, inst, 1);
    const Type *target = target_of(inst->args[0]);
    Value start = clike_value(clike_pointer(p, pointer, target, true), LEVEL_choice);
    const char *by = clike_in(p, count, LEVEL_unary);
    if (target->kind == TYPE_array) by = clike_format(p, "%s * %lld", by, (long long)type_length(target));
    pointer.text =
        clike_format(p, "%s + %s", pointer.is_place ? start.text : clike_in(p, pointer, LEVEL_sum), by);
    pointer.level = LEVEL_sum;
    pointer.is_place = false;
    pointer.bare = NULL;
    pointer.reads |= count.reads;
    return pointer;
}

/* ---- roots */

/* What a helper that may have to give memory of the thread is called with first. */
static const char *thread_first(const Printer *p) { return p->dialect->thread_local_ ? "" : "thread, "; }

static Value global(Printer *p, const Inst *inst) {
    const Global *g = inst->global;
    bool in_thread = g->kind == GLOBAL_static && !p->dialect->thread_local_;
    const char *name = g->kind == GLOBAL_static ? clike_static_place(p, g) : clike_global_name(p, g);
    Value value = clike_value(in_thread ? clike_format(p, "thread->%s", name) : name, LEVEL_primary);
    value.is_place = true;
    value.steady = g->kind == GLOBAL_const || g->kind == GLOBAL_uniform;
    value.constant = g->kind == GLOBAL_const && !g->init;
    return value;
}

static bool is_checked(const Printer *p, const Inst *inst) {
    return !inst_has(inst, INST_UNCHECKED) && !p->options->unchecked && p->at->tested != inst &&
           p->at->whole.access != inst && !clike_copied(p, inst);
}

static Value buffer_element(Printer *p, const Inst *inst, bool reading) {
    Value buffer = clike_operand(p, inst, 0), index = clike_operand(p, inst, 1), value;
    const Type *type = inst->args[0]->type, *element = type->args[0];
    if (clike_is_nothing(element)) return clike_nowhere(p, element);
    if (clike_row_element(p, inst, &value)) return value;
    if (p->at->whole.access == inst) {
        value = clike_value(p->at->whole.name, LEVEL_primary);
        value.is_place = true;
    } else if (clike_tiled(p, inst)) {
        value = clike_value(clike_tiled(p, inst), LEVEL_primary);
        value.is_place = true;
    } else if (clike_copied(p, inst)) {
        value = clike_value(clike_format(p, "%s[%s]", clike_copied(p, inst), index.text), LEVEL_primary);
        value.is_place = true;
    } else if (is_checked(p, inst)) {
        value = clike_value(clike_format(p, "%s(%s%s, %s)", clike_buffer(p, reading ? "read" : "at", type),
                                         reading ? "" : thread_first(p), buffer.text, given_index(p, inst)),
                            LEVEL_primary);
        value.constant = reading;
    } else {
        const char *row = clike_element_in_row(p, inst);
        const char *data = clike_in(p, buffer, LEVEL_primary);
        const char *far = clike_far_index(p, inst);
        value = clike_value(row ? row : clike_format(p, "%s.data[%s]", data, far ? far : index.text),
                            LEVEL_primary);
        value.is_place = true;
    }
    value.reads = buffer.reads || index.reads;
    return value;
}

static Value buffer_bytes(Printer *p, const Inst *inst, bool reading) {
    Value buffer = clike_operand(p, inst, 0), offset = clike_operand(p, inst, 1);
    const Type *target = target_of(inst->results[0]);
    const char *data = clike_in(p, buffer, LEVEL_primary);
    int64_t size = type_layout(target, LAYOUT_scalar).size;
    if (size > p->largest) p->largest = size;
    bool is_tested = is_checked(p, inst);
    const char *bare =
        is_tested
            ? clike_format(p, "%s(%s%s.data, %s.count, %s, %lld)",
                           clike_helper(p, reading ? "slope_bytes_read" : "slope_bytes_at"),
                           reading ? "" : thread_first(p), data, data, given_index(p, inst), (long long)size)
            : clike_format(p, "%s.data + %s", data, clike_in(p, offset, LEVEL_product));
    Value value = clike_value(clike_format(p, is_tested ? "(%s)%s" : "(%s)(void *)(%s)",
                                           clike_type(p, inst->results[0]->type), bare),
                              LEVEL_unary);
    value.bare = bare;
    value.bare_level = is_tested ? LEVEL_primary : LEVEL_sum;
    value.raw = true;
    value.reads = buffer.reads || offset.reads;
    return value;
}

static Value buffer_pointer(Printer *p, const Inst *inst) {
    Value buffer = clike_operand(p, inst, 0);
    const Type *element = inst->args[0]->type->args[0];
    const char *first = element->kind == TYPE_array ? "[0]" : "";
    Value value =
        clike_value(clike_format(p, "%s.data%s", clike_in(p, buffer, LEVEL_primary), first), LEVEL_primary);
    if (element->kind == TYPE_void) {
        value =
            clike_value(clike_format(p, "(%s)(void *)%s", clike_type(p, inst->results[0]->type), value.text),
                        LEVEL_unary);
        value.raw = true;
    }
    value.reads = buffer.reads;
    return value;
}

static Value buffer_counter(Printer *p, const Inst *inst) {
    Value buffer = clike_operand(p, inst, 0);
    const char *text = clike_format(p, "%s(%s%s.data)", clike_helper(p, "slope_counter"), thread_first(p),
                                    clike_in(p, buffer, LEVEL_primary));
    Value value = clike_value(text, LEVEL_primary);
    value.reads = buffer.reads;
    return value;
}

/* ---- bits as an address */

bool clike_text_literal(Printer *p, const Inst *inst, Value *result) {
    const Val *v = ir_resolve(inst->args[0]);
    if (!clike_is_text(inst->results[0]->type) || v->kind != VAL_inst || v->inst->op != OP_global)
        return false;
    const Global *g = v->inst->global;
    if (g->kind != GLOBAL_const || !g->data || g->type->args[0]->kind != TYPE_int8) return false;
    Text text = {.arena = &p->arena};
    for (int i = 0; i < g->ndata - 1; i++) text_char(&text, (char)g->data[i]->integer);
    *result = clike_value(clike_string(p, text_str(&text)), LEVEL_primary);
    return true;
}

static Value pointer_cast(Printer *p, const Inst *inst) {
    const Type *from = inst->args[0]->type, *to = inst->results[0]->type;
    Value value, operand = clike_operand(p, inst, 0);
    if (from->kind != TYPE_pointer) {
        value = clike_value(
            clike_format(p, "(%s)(intptr_t)%s", clike_type(p, to), clike_in(p, operand, LEVEL_unary)),
            LEVEL_unary);
        value.reads = operand.reads;
        return value;
    }
    if (clike_text_literal(p, inst, &value)) return value;
    value = cast_to(p, operand, to, bare_pointer(p, operand, from->args[0]));
    value.raw = from != to;
    value.steady = false;
    return value;
}

/* ---- what may be out of range */

static bool is_guarded(const Printer *p, const Inst *inst) {
    if (inst->nresults != 1 || inst->results[0]->type->kind != TYPE_pointer) return false;
    if (clike_is_nothing(target_of(inst->results[0]))) return false;
    switch ((Op)inst->op) {
    case OP_buffer_counter: return true;
    case OP_buffer_elem:
    case OP_buffer_bytes: return is_checked(p, inst);
    case OP_field:
    case OP_elem: return p->at->values[ir_resolve(inst->args[0])->id].guarded;
    default: return false;
    }
}

static Value guarded(const Printer *p, const Inst *inst) {
    Value result = {.guarded = true};
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        result.reads |= !val_is_const(v) && p->at->values[v->id].reads;
    }
    return result;
}

Value clike_guarded(Printer *p, const Inst *inst, bool reading) {
    switch ((Op)inst->op) {
    case OP_buffer_counter: return buffer_counter(p, inst);
    case OP_buffer_elem: return buffer_element(p, inst, reading);
    case OP_buffer_bytes: return buffer_bytes(p, inst, reading);
    case OP_field: return field(p, inst, reading);
    default: return element(p, inst, reading);
    }
}

bool clike_address(Printer *p, const Inst *inst, Value *result) {
    if (is_guarded(p, inst)) {
        *result = guarded(p, inst);
        return true;
    }
    switch ((Op)inst->op) {
    case OP_global: *result = global(p, inst); return true;
    case OP_field: *result = field(p, inst, false); return true;
    case OP_elem: *result = clike_masked_element(p, inst, element(p, inst, false)); return true;
    case OP_offset: *result = moved(p, inst); return true;
    case OP_buffer_elem: *result = buffer_element(p, inst, false); return true;
    case OP_buffer_bytes: *result = buffer_bytes(p, inst, false); return true;
    case OP_buffer_pointer: *result = buffer_pointer(p, inst); return true;
    case OP_buffer_counter: *result = buffer_counter(p, inst); return true;
    case OP_bitcast:
        if (inst->results[0]->type->kind != TYPE_pointer) return false;
        *result = pointer_cast(p, inst);
        return true;
    default: return false;
    }
}

/* ---- writing only what is in range: where memory for what is dropped is a variable, compilers get rid of more than that */

/* What finds the element that an address leads into, if that is to be tested; NULL: it need not be. */
static const Inst *tested_access(const Printer *p, const Val *address) {
    address = ir_resolve((Val *)(uintptr_t)address);
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART))
        address = ir_resolve(address->inst->args[0]);
    if (p->dialect->thread_local_ || address->kind != VAL_inst) return NULL;
    const Inst *access = address->inst;
    if (access->op != OP_buffer_elem && access->op != OP_buffer_bytes) return NULL;
    return is_guarded(p, access) ? access : NULL;
}

static const char *range_test(Printer *p, const Inst *access) {
    Value buffer = clike_operand(p, access, 0), index = clike_operand(p, access, 1);
    const char *count = clike_format(p, "%s.count", clike_in(p, buffer, LEVEL_primary));
    if (access->op == OP_buffer_elem)
        return clike_format(p, "%s(%s, %s)", clike_helper(p, p->dialect->within), index.text, count);
    int64_t size = type_layout(target_of(access->results[0]), LAYOUT_scalar).size;
    return clike_format(p, "%s(%s, %s, %lld)", clike_helper(p, "slope_bytes_within"), count, index.text,
                        (long long)size);
}

/* Does a statement for the same element end right here? Then it goes on. */
static bool reopen(Printer *p, const Inst *access) {
    FuncState *at = p->at;
    if (at->closed.access != access || at->closed.out != p->out || at->closed.end != p->out->len)
        return false;
    p->out->len = at->closed.start;
    p->out->at[p->out->len] = 0;
    return true;
}

bool clike_begin_tested(Printer *p, const Inst *inst) {
    const Inst *access = tested_access(p, inst->args[0]);
    if (!access) return false;
    if (!reopen(p, access)) clike_line(p, "if (%s) {", range_test(p, access));
    p->indent++;
    p->at->tested = access;
    return true;
}

void clike_end_tested(Printer *p) {
    FuncState *at = p->at;
    p->indent--;
    at->closed.access = at->tested;
    at->closed.out = p->out;
    at->closed.start = p->out->len;
    clike_line(p, "}");
    at->closed.end = p->out->len;
    at->tested = NULL;
}

/* ---- accesses */

/* A number, vector or buffer that is a whole guarded element is read and written by functions: the element,
 * or NULL. */
static const Inst *whole_element(const Printer *p, const Inst *access) {
    const Val *v = ir_resolve(access->args[0]);
    if (val_is_const(v) || !p->at->values[v->id].guarded || v->inst->op != OP_buffer_elem) return NULL;
    const Type *type = target_of(v);
    bool is_simple = type_is_scalar(type) || type->kind == TYPE_vector || type->kind == TYPE_buffer;
    return is_simple ? v->inst : NULL;
}

static const char *element_call(Printer *p, const char *what, const Inst *element) {
    return clike_format(p, "%s(%s, %s", clike_buffer(p, what, element->args[0]->type),
                        clike_operand(p, element, 0).text, given_index(p, element));
}

static Value load_from(Printer *p, const Type *type, Value address) {
    if (address.raw)
        return clike_value(
            clike_format(p, "%s(%s)", clike_bytes(p, "load", type), bare_pointer(p, address, type).text),
            LEVEL_primary);
    const char *place = clike_place(p, address, type);
    return clike_value(place, place[0] == '*' ? LEVEL_unary : LEVEL_primary);
}

bool clike_leads_nowhere(const Inst *access) { return val_is_const(inst_operand(access, 0)); }

Value clike_load(Printer *p, const Inst *inst) {
    const Type *type = inst->results[0]->type;
    if (clike_leads_nowhere(inst) && type_is_scalar(type))
        return clike_value(clike_zero(p, type), LEVEL_primary);
    const Inst *element = whole_element(p, inst);
    Value address = {0}, value;
    if (!element) address = clike_read_operand(p, inst, 0);
    if (element) value = clike_value(clike_format(p, "%s)", element_call(p, "get", element)), LEVEL_primary);
    else value = load_from(p, type, address);
    if (type->kind == TYPE_half)
        value = clike_value(clike_format(p, "%s(%s)", clike_helper(p, "slope_half_value"), value.text),
                            LEVEL_primary);
    value.reads = address.reads || !address.steady;
    return value;
}

static const char *stored(Printer *p, const Inst *inst, const Type *type) {
    Value value = clike_operand(p, inst, 1);
    if (type->kind == TYPE_pointer) return clike_pointer(p, value, type->args[0], false);
    if (type->kind != TYPE_half) return value.text;
    return clike_format(p, "%s(%s)", clike_helper(p, "slope_half_bits"), value.text);
}

static void store(Printer *p, const Inst *inst) {
    const Type *type = target_of(inst->args[0]);
    const Inst *element = whole_element(p, inst);
    const char *value = stored(p, inst, type);
    if (element) {
        clike_line(p, "%s, %s);", element_call(p, "set", element), value);
        return;
    }
    Value address = clike_operand(p, inst, 0);
    bool is_far = ir_space(inst->args[0]->type) != SPACE_local && !p->at->whole.access;
    if (address.raw)
        clike_line(p, "%s(%s, %s);", clike_bytes(p, "store", type),
                   address.constant ? clike_pointer(p, address, type, false)
                                    : bare_pointer(p, address, type).text,
                   value);
    else if (is_far && type->kind == TYPE_vector && p->dialect->puts_lanes)
        clike_line(p, "%s(%s, %s);", clike_put_vector(p, type), clike_pointer(p, address, type, false),
                   value);
    else {
        const char *place = clike_place(p, address, type);
        bool is_same = strcmp(place, value) == 0 && !strpbrk(place, "*[>"); /* a variable, as it is */
        if (!is_same) clike_line(p, "%s;", clike_assignment(p, place, value));
    }
}

static void copy(Printer *p, const Inst *inst, const Type *type) {
    Value to = clike_operand(p, inst, 0), from = clike_read_operand(p, inst, 1);
    bool by_type = p->dialect->copy && !to.raw && !from.raw;
    if (clike_copy_apart(p, inst, type, to, from)) return;
    if (to.raw || from.raw || type->kind == TYPE_array) {
        bool may_be_same = ir_root(inst->args[0]) == ir_root(inst->args[1]); /* rows of one array */
        const char *by = may_be_same ? "memmove" : "memcpy";
        clike_line(p, "%s(%s, %s, sizeof(%s));", by_type ? clike_helper(p, p->dialect->copy) : by,
                   clike_pointer(p, to, type, false), clike_pointer(p, from, type, true),
                   clike_declare(p, type, ""));
    } else clike_line(p, "%s = %s;", clike_place(p, to, type), clike_place(p, from, type));
}

static void zero(Printer *p, const Inst *inst, const Type *type) {
    Value to = clike_operand(p, inst, 0);
    if (!to.raw && type_is_scalar(type))
        clike_line(p, "%s = %s;", clike_place(p, to, type), clike_zero(p, type));
    else
        clike_line(p, "%s(%s, 0, sizeof(%s));",
                   p->dialect->set && !to.raw ? clike_helper(p, p->dialect->set) : "memset",
                   clike_pointer(p, to, type, false), clike_declare(p, type, ""));
}

void clike_memory(Printer *p, const Inst *inst) {
    const Type *type = target_of(inst->args[0]);
    if (clike_is_nothing(type) || clike_leads_nowhere(inst)) return;
    bool is_whole = inst->op == OP_store && whole_element(p, inst);
    if (!is_whole) clike_begin_whole(p, inst);
    bool is_tested = !is_whole && clike_begin_tested(p, inst);
    switch ((Op)inst->op) {
    case OP_store: store(p, inst); break;
    case OP_copy: copy(p, inst, type); break;
    default: zero(p, inst, type);
    }
    if (is_tested) clike_end_tested(p);
    if (p->at->whole.access && p->at->whole.last == inst) clike_end_whole(p);
    clike_end_row(p, inst);
}
