/* Addresses of several lanes, and what is loaded and stored there (opt/lanes.c): a slot for each. One that is
 * out of range of its buffer is null, as everywhere; lanes that are off touch nothing. */
#include "emit/interp/code.h"

/* Step.what: which operands have a slot for each lane; and that null is no place. */
enum { MANY_BASES = 1, MANY_INDICES = 2, MUST_BE = 4 };

static uint32_t lane_of(uint32_t slot, bool many, uint32_t lane) { return many ? slot + lane : slot; }

static int lanes_in(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }

/* ---- addresses: `number` is the size of an element */

/* `more`: how many there are, 0: nobody looks. */
static const Step *elements(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        char *base = r[lane_of(s->a, s->what & MANY_BASES, i)].address;
        uint64_t index = r[lane_of(s->b, s->what & MANY_INDICES, i)].bits;
        if (s->more && index >= (uint64_t)s->more) index = (uint64_t)s->more - 1;
        r[s->to + i].address = base ? (char *)((uintptr_t)base + index * (uint64_t)s->number) : NULL;
    }
    return s + 1;
}

static const Step *fields(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        char *base = r[s->a + i].address;
        r[s->to + i].address = base ? base + s->number : NULL;
    }
    return s + 1;
}

/* Of a buffer; `more`: its elements, or bytes, are looked at that many at a time, 0: unchecked. */
static const Step *places(Slot *r, const Step *s) {
    char *data = r[s->a].address;
    uint64_t count = r[s->a + 1].bits, last = s->more ? (uint64_t)s->more - 1 : 0;
    uint64_t end = count > last ? count - last : 0;
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        uint64_t index = r[s->b + i].bits;
        bool inside = !s->more || (data && index < end);
        r[s->to + i].address = inside ? (char *)((uintptr_t)data + index * (uint64_t)s->number) : NULL;
    }
    return s + 1;
}

static Step *address_step(Translator *t, const Inst *inst, StepFunction *run, Known *known) {
    const Type *lanes = inst->results[0]->type;
    uint32_t index = inst->nargs > 1 ? interp_use(t, inst, 1) : 0;
    uint32_t to = interp_new_slots(t, type_count(lanes));
    Step *step = interp_step(t, run, to, known->slot, index);
    step->lanes = type_count(lanes);
    step->what = inst->args[0]->type->kind == TYPE_vector ? MANY_BASES : 0;
    if (inst->nargs > 1 && inst->args[1]->type->kind == TYPE_vector) step->what |= MANY_INDICES;
    known->slot = to;
    return step;
}

static bool is_checked(const Translator *t, const Inst *inst) {
    return !inst_has(inst, INST_UNCHECKED) && !t->options->unchecked;
}

static void element_addresses(Translator *t, const Inst *inst, Known *known) {
    const Type *whole = ir_target(inst->args[0]->type);
    int64_t length = whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
    Step *step = address_step(t, inst, elements, known);
    step->number = type_element_stride(whole, LAYOUT_scalar);
    step->more = is_checked(t, inst) && length > 0 ? length : 0;
}

static void moved_addresses(Translator *t, const Inst *inst, Known *known) {
    int64_t stride = type_layout(ir_target(inst->args[0]->type), LAYOUT_scalar).stride;
    address_step(t, inst, elements, known)->number = stride > 0 ? stride : 1;
}

static void field_addresses(Translator *t, const Inst *inst, Known *known) {
    int64_t offset = type_field_offset(ir_target(inst->args[0]->type), inst->index, LAYOUT_scalar);
    address_step(t, inst, fields, known)->number = offset;
}

static void buffer_addresses(Translator *t, const Inst *inst, Known *known) {
    bool of_bytes = inst->op == OP_buffer_bytes;
    Layout layout = type_layout(ir_target(inst->results[0]->type), LAYOUT_scalar);
    Step *step = address_step(t, inst, places, known);
    known->guarded = is_checked(t, inst);
    step->number = of_bytes ? 1 : layout.stride;
    step->more = !known->guarded ? 0 : of_bytes && layout.size > 0 ? layout.size : 1;
}

/* ---- what is there: a is where, b the mask, c what is stored; `number` is the size of a scalar, `more` what is added lane by lane */

static char *place_of(const Slot *r, const Step *s, uint32_t lane) {
    char *at = r[lane_of(s->a, s->what & MANY_BASES, lane)].address;
    if (!r[s->b + lane].integer) return NULL;
    if (!at && (s->what & MUST_BE)) interp_end(r, INTERP_bad_tape, "a lane takes what was not kept");
    return at ? at + (int64_t)lane * s->more : NULL;
}

static const Step *gather(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        const char *at = place_of(r, s, i);
        r[s->to + i] = at ? interp_load(s->type, at, (int)s->number) : (Slot){0};
    }
    return s + 1;
}

static const Step *scatter(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        char *at = place_of(r, s, i);
        if (at) interp_store(at, (int)s->number, r[s->c + i]);
    }
    return s + 1;
}

static void access(Translator *t, const Inst *inst) {
    Known address = interp_known(t, inst, 0);
    const Type *type = inst->args[0]->type, *target = ir_target(type);
    bool stores = inst->op == OP_scatter;
    uint32_t mask = interp_use(t, inst, inst->nargs - 1), value = stores ? interp_use(t, inst, 1) : 0;
    uint32_t to = stores ? 0 : interp_result(t, inst);
    Step *step = interp_step(t, stores ? scatter : gather, to, address.slot, mask);
    step->c = value;
    step->type = type_element(target);
    step->lanes = type_count(inst->args[inst->nargs - 1]->type);
    step->what = (type->kind == TYPE_vector ? MANY_BASES : 0) | (address.guarded ? 0 : MUST_BE);
    step->number = type_layout(step->type, LAYOUT_scalar).size;
    step->more = target->kind == TYPE_vector ? step->number : 0;
}

/* That of one lane. */
static const Step *take_address(Slot *r, const Step *s) {
    r[s->to].address = r[s->a + (uint32_t)s->number].address;
    return s + 1;
}

static void one_address(Translator *t, const Inst *inst, Known *known) {
    int64_t lane = 0;
    if (!val_is_int(ir_resolve(inst->args[1]), &lane)) interp_fail(t, inst->loc, "a lane must be known");
    uint32_t to = interp_new_slots(t, 1);
    interp_step(t, take_address, to, known->slot, 0)->number = lane;
    known->slot = to;
}

bool interp_wide(Translator *t, const Inst *inst) {
    if (inst->op == OP_gather || inst->op == OP_scatter) {
        access(t, inst);
        return true;
    }
    if (inst->nresults != 1 || inst->nargs == 0 || !ir_target(inst->results[0]->type)) return false;
    bool takes_one = inst->op == OP_extract;
    if (lanes_in(inst->results[0]->type) == 1 && !takes_one) return false;
    Known known = interp_known(t, inst, 0);
    switch ((Op)inst->op) {
    case OP_extract: one_address(t, inst, &known); break;
    case OP_field: field_addresses(t, inst, &known); break;
    case OP_elem: element_addresses(t, inst, &known); break;
    case OP_offset: moved_addresses(t, inst, &known); break;
    case OP_buffer_elem:
    case OP_buffer_bytes: buffer_addresses(t, inst, &known); break;
    default: return false;
    }
    interp_set(t, inst->results[0], known);
    return true;
}
