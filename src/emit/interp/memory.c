/* Addresses, loads and stores. */
#include "emit/interp/code.h"

static const Type *target_of(const Val *address) { return address->type->args[0]; }

/* ---- scalars in memory */

Slot interp_load(const Type *type, const char *at, int size) {
    Slot slot = {0};
    memcpy(&slot, at, (size_t)size);
    switch (type->kind) {
    case TYPE_bool: slot.integer = slot.bits != 0; break;
    case TYPE_int8: slot.integer = (int8_t)slot.bits; break;
    case TYPE_int16: slot.integer = (int16_t)slot.bits; break;
    case TYPE_int: slot.integer = (int32_t)slot.bits; break;
    default: break;
    }
    return slot;
}

void interp_store(char *at, int size, Slot value) { memcpy(at, &value, (size_t)size); }

static int size_of(const Type *scalar) { return (int)type_layout(scalar, LAYOUT_scalar).size; }

void interp_load_value(const Type *type, const char *at, Slot *to) {
    bool lanes = type->kind == TYPE_vector || type_is_scalar(type);
    const Type *element = lanes ? type_element(type) : type;
    int size = lanes ? size_of(element) : (int)sizeof(Slot);
    for (int i = 0; i < interp_slots(type); i++) to[i] = interp_load(element, at + i * size, size);
}

void interp_store_value(const Type *type, char *at, const Slot *from) {
    bool lanes = type->kind == TYPE_vector || type_is_scalar(type);
    const Type *element = lanes ? type_element(type) : type;
    int size = lanes ? size_of(element) : (int)sizeof(Slot);
    for (int i = 0; i < interp_slots(type); i++) interp_store(at + i * size, size, from[i]);
}

/* ---- loads and stores: `what` is the size of a lane */

static const Step *load(Slot *r, const Step *s) {
    const char *at = r[s->a].address;
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++)
        r[s->to + i] = at ? interp_load(s->type, at + (int64_t)i * s->what, s->what) : (Slot){0};
    return s + 1;
}

static const Step *store(Slot *r, const Step *s) {
    char *at = r[s->a].address;
    for (uint32_t i = 0; at && i < (uint32_t)s->lanes; i++)
        interp_store(at + (int64_t)i * s->what, s->what, r[s->b + i]);
    return s + 1;
}

/* Single numbers of four bytes that are not extended by their sign, which are most. */
static const Step *load_word(Slot *r, const Step *s) {
    uint32_t word = 0;
    const char *at = r[s->a].address;
    if (at) memcpy(&word, at, sizeof word);
    r[s->to].bits = word;
    return s + 1;
}

static const Step *load_int(Slot *r, const Step *s) {
    int32_t word = 0;
    const char *at = r[s->a].address;
    if (at) memcpy(&word, at, sizeof word);
    r[s->to].integer = word;
    return s + 1;
}

static const Step *store_word(Slot *r, const Step *s) {
    char *at = r[s->a].address;
    uint32_t word = (uint32_t)r[s->b].bits;
    if (at) memcpy(at, &word, sizeof word);
    return s + 1;
}

static const Step *load_whole(Slot *r, const Step *s) {
    const char *at = r[s->a].address;
    if (at) memcpy(&r[s->to], at, sizeof(Slot) * (size_t)s->lanes);
    else memset(&r[s->to], 0, sizeof(Slot) * (size_t)s->lanes);
    return s + 1;
}

static const Step *store_whole(Slot *r, const Step *s) {
    char *at = r[s->a].address;
    if (at) memcpy(at, &r[s->b], sizeof(Slot) * (size_t)s->lanes);
    return s + 1;
}

static void access(Translator *t, const Type *type, bool writes, uint32_t to, uint32_t address,
                   uint32_t value) {
    bool lanes = type->kind == TYPE_vector || type_is_scalar(type);
    const Type *element = lanes ? type_element(type) : type;
    int size = lanes ? size_of(element) : (int)sizeof(Slot), count = interp_slots(type);
    bool is_word = size == 4 && count == 1 && element->kind != TYPE_bool, whole = size == sizeof(Slot);
    StepFunction *run;
    if (writes) run = whole ? store_whole : is_word ? store_word : store;
    else run = whole ? load_whole : !is_word ? load : element->kind == TYPE_int ? load_int : load_word;
    Step *step = interp_step(t, run, to, address, value);
    step->lanes = count;
    step->what = size;
    step->type = element;
}

static void load_from(Translator *t, const Inst *inst) {
    Known address = interp_known(t, inst, 0);
    uint32_t to = interp_result(t, inst);
    const Type *type = inst->results[0]->type;
    access(t, type, false, to, address.slot, 0);
}

static void store_to(Translator *t, const Inst *inst) {
    Known address = interp_known(t, inst, 0);
    uint32_t value = interp_use(t, inst, 1);
    access(t, target_of(inst->args[0]), true, 0, address.slot, value);
}

/* ---- addresses for others */

static const Step *replace_by_zeros(Slot *r, const Step *s) {
    char *zeros = (char *)(uintptr_t)s->data;
    r[s->to].address = r[s->a].address ? r[s->a].address : zeros;
    return s + 1;
}

static const Step *replace_by_sink(Slot *r, const Step *s) {
    char *address = r[s->a].address;
    if (!address) {
        address = context_of(r)->sink;
        memset(address, 0, (size_t)s->number);
    }
    r[s->to].address = address;
    return s + 1;
}

static const char *zeros_of(Translator *t, int64_t size) {
    if (size > t->zeros_size || !t->zeros) {
        t->zeros = arena_take(t->arena, (size_t)size + 1);
        t->zeros_size = size;
    }
    return t->zeros;
}

uint32_t interp_plain(Translator *t, Known address, const Type *target, bool read_only) {
    if (!address.guarded) return address.slot;
    int64_t size = type_layout(target, LAYOUT_scalar).stride;
    uint32_t to = interp_new_slots(t, 1);
    if (read_only) {
        interp_step(t, replace_by_zeros, to, address.slot, 0)->data = zeros_of(t, size);
        return to;
    }
    if (size > t->program->sink_size) t->program->sink_size = size;
    interp_step(t, replace_by_sink, to, address.slot, 0)->number = size;
    return to;
}

/* ---- making addresses */

static const Step *variable(Slot *r, const Step *s) {
    char *address = r[0].frame->memory + s->number;
    if (s->more) memset(address, 0, (size_t)s->more);
    r[s->to].address = address;
    return s + 1;
}

static uint32_t take_variable(Translator *t, const Type *type, bool cleared) {
    int64_t size = type_layout(type, LAYOUT_scalar).size, offset = interp_take_memory(t, size);
    uint32_t to = interp_new_slots(t, 1);
    Step *step = interp_step(t, variable, to, 0, 0);
    step->number = offset;
    step->more = cleared ? size : 0;
    return to;
}

static const Step *fixed_address(Slot *r, const Step *s) {
    r[s->to].address = (char *)(uintptr_t)s->data;
    return s + 1;
}

static const Step *static_address(Slot *r, const Step *s) {
    r[s->to].address = context_of(r)->statics + s->number;
    return s + 1;
}

static const Step *shared_address(Slot *r, const Step *s) {
    r[s->to].address = context_of(r)->shared + s->number;
    return s + 1;
}

static void global_address(Translator *t, const Inst *inst) {
    const ReachedGlobal *info = reached_global(&t->program->reached, inst->global);
    Known known = {.slot = interp_new_slots(t, 1)};
    Step *step = interp_step(t, fixed_address, known.slot, 0, 0);
    switch ((GlobalKind)inst->global->kind) {
    case GLOBAL_uniform:
    case GLOBAL_const: step->data = info->emitted; break;
    case GLOBAL_static: step->run = static_address, step->number = info->offset; break;
    case GLOBAL_shared: step->run = shared_address, step->number = info->offset; break;
    }
    interp_set(t, inst->results[0], known);
}

static const Step *field(Slot *r, const Step *s) {
    char *address = r[s->a].address;
    r[s->to].address = address ? address + s->number : NULL;
    return s + 1;
}

static const Step *element(Slot *r, const Step *s) {
    char *address = r[s->a].address;
    r[s->to].address = address ? (char *)((uintptr_t)address + r[s->b].bits * (uint64_t)s->number) : NULL;
    return s + 1;
}

/* As the compiler has found out; `more`: how many there are. */
static const Step *element_inside(Slot *r, const Step *s) {
    if (r[s->b].bits < (uint64_t)s->more) return element(r, s);
    r[s->to].address = interp_nowhere();
    return s + 1;
}

static void field_address(Translator *t, const Inst *inst) {
    Known known = interp_known(t, inst, 0);
    int64_t offset = type_field_offset(target_of(inst->args[0]), inst->index, LAYOUT_scalar);
    uint32_t to = interp_new_slots(t, 1);
    interp_step(t, field, to, known.slot, 0)->number = offset;
    known.slot = to;
    interp_set(t, inst->results[0], known);
}

static void element_address(Translator *t, const Inst *inst) {
    Known known = interp_known(t, inst, 0);
    const Type *whole = target_of(inst->args[0]);
    int64_t length = whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
    bool is_inside = inst_has(inst, INST_UNCHECKED) && !t->options->unchecked && length > 0;
    uint32_t index = interp_clamped(t, inst, 1, is_inside || t->options->unchecked ? -1 : length).slot,
             to = interp_new_slots(t, 1);
    Step *step = interp_step(t, is_inside ? element_inside : element, to, known.slot, index);
    step->number = type_element_stride(whole, LAYOUT_scalar);
    step->more = length;
    known.slot = to;
    interp_set(t, inst->results[0], known);
}

static void moved_pointer(Translator *t, const Inst *inst) {
    int64_t stride = type_layout(target_of(inst->args[0]), LAYOUT_scalar).stride;
    uint32_t address = interp_use(t, inst, 0), count = interp_use(t, inst, 1);
    interp_step(t, element, interp_result(t, inst), address, count)->number = stride > 0 ? stride : 1;
}

bool interp_memory(Translator *t, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_var: {
        Known known = {.slot = take_variable(t, inst->type, !inst_has(inst, INST_RAW))};
        interp_set(t, inst->results[0], known);
        return true;
    }
    case OP_global: global_address(t, inst); return true;
    case OP_field: field_address(t, inst); return true;
    case OP_elem: element_address(t, inst); return true;
    case OP_offset: moved_pointer(t, inst); return true;
    case OP_bitcast:
        if (!ir_is_view(inst)) return false; /* which has the layout that the memory has */
        interp_set(t, inst->results[0], interp_known(t, inst, 0));
        return true;
    case OP_load: load_from(t, inst); return true;
    case OP_store: store_to(t, inst); return true;
    case OP_copy:
        interp_copy(t, target_of(inst->args[0]), interp_known(t, inst, 0), interp_known(t, inst, 1));
        return true;
    case OP_zero: interp_zero(t, target_of(inst->args[0]), interp_known(t, inst, 0)); return true;
    default: return false;
    }
}
