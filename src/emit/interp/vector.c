/* Vectors: making them, taking them apart; and indices that are clamped. */
#include "emit/interp/code.h"

static const Step *splat(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) r[s->to + i] = r[s->a];
    return s + 1;
}

static const Step *clamp(Slot *r, const Step *s) {
    r[s->to].bits = r[s->a].bits < (uint64_t)s->number ? r[s->a].bits : (uint64_t)s->number - 1;
    return s + 1;
}

static const Step *extract(Slot *r, const Step *s) {
    r[s->to] = r[s->a + r[s->b].bits];
    return s + 1;
}

static const Step *insert(Slot *r, const Step *s) {
    Slot value = r[s->c];
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) r[s->to + i] = r[s->a + i];
    r[s->to + r[s->b].bits] = value;
    return s + 1;
}

static const Step *watch_index(Slot *r, const Step *s) {
    if (r[s->a].bits >= (uint64_t)s->more) rt_outside(context_of(r), (RtSite *)(uintptr_t)s->data);
    return s + 1;
}

static bool is_known_in_range(const Val *index, int64_t length) {
    int64_t value;
    return val_is_int(index, &value) && (uint64_t)value < (uint64_t)length;
}

Known interp_clamped(Translator *t, const Inst *inst, int operand, int64_t length) {
    Known index = {.slot = interp_use(t, inst, operand)};
    if (length <= 0 || is_known_in_range(ir_resolve(inst->args[operand]), length)) return index;
    if (t->options->watch) {
        Step *watch = interp_step(t, watch_index, 0, index.slot, 0);
        watch->data = interp_site(t, inst->loc);
        watch->more = length;
    }
    Known clamped = {.slot = interp_new_slots(t, 1)};
    interp_step(t, clamp, clamped.slot, index.slot, 0)->number = length;
    return clamped;
}

static void from_lanes(Translator *t, const Inst *inst, uint32_t to) {
    Copies copies = {0};
    for (int i = 0; i < inst->nargs; i++)
        vec_push(t->scratch, &copies, ((Copy){to + (uint32_t)i, interp_use(t, inst, i), 1}));
    interp_moves(t, &copies);
}

static void shuffled(Translator *t, const Inst *inst, uint32_t to) {
    Copies copies = {0};
    uint32_t from = interp_use(t, inst, 0);
    for (int i = 0; i < type_count(inst->results[0]->type); i++)
        vec_push(t->scratch, &copies, ((Copy){to + (uint32_t)i, from + inst->lanes[i], 1}));
    interp_moves(t, &copies);
}

static void at_index(Translator *t, const Inst *inst, StepFunction *run) {
    uint32_t vector = interp_use(t, inst, 0);
    uint32_t index = interp_clamped(t, inst, 1, type_count(inst->args[0]->type)).slot;
    Step *step = interp_step(t, run, interp_result(t, inst), vector, index);
    step->lanes = type_count(inst->args[0]->type);
    if (inst->nargs > 2) step->c = interp_use(t, inst, 2);
}

bool interp_vector(Translator *t, const Inst *inst) {
    uint32_t value;
    switch ((Op)inst->op) {
    case OP_vec: from_lanes(t, inst, interp_result(t, inst)); return true;
    case OP_shuffle: shuffled(t, inst, interp_result(t, inst)); return true;
    case OP_extract: at_index(t, inst, extract); return true;
    case OP_insert: at_index(t, inst, insert); return true;
    case OP_splat:
        value = interp_use(t, inst, 0);
        interp_step(t, splat, interp_result(t, inst), value, 0)->lanes = type_count(inst->results[0]->type);
        return true;
    default: return false;
    }
}
