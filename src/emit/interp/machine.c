/* The machine around the program: thread ids, barriers, waves, printf, abort. */
#include "emit/interp/code.h"

static const Step *thread_id(Slot *r, const Step *s) {
    const char *context = (const char *)context_of(r);
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        uint32_t id;
        memcpy(&id, context + s->number + i * sizeof id, sizeof id);
        r[s->to + i].bits = id;
    }
    return s + 1;
}

static void take_thread_id(Translator *t, const Inst *inst) {
    static const size_t offsets[] = {offsetof(RtContext, thread_id),  offsetof(RtContext, group_id),
                                     offsetof(RtContext, local_id),   offsetof(RtContext, local_index),
                                     offsetof(RtContext, group_size), offsetof(RtContext, groups),
                                     offsetof(RtContext, wave_size)};
    Step *step = interp_step(t, thread_id, interp_result(t, inst), 0, 0);
    step->number = (int64_t)offsets[inst->index];
    step->lanes = type_count(inst->results[0]->type);
}

static const Step *barrier(Slot *r, const Step *s) {
    rt_barrier(context_of(r));
    return s + 1;
}

static const Step *fence(Slot *r, const Step *s) {
    (void)r;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return s + 1;
}

/* `number` is the place where threads meet, `more` has room for a table of one. */
static const Step *wave(Slot *r, const Step *s) {
    Frame *frame = r[0].frame;
    uint64_t *own = (uint64_t *)(void *)(frame->memory + s->more);
    uint64_t *table =
        rt_wave(frame->context, (uint64_t)s->number, r[s->a].bits, r[s->b].bits, r[s->c].bits, own);
    r[s->to].address = (char *)table;
    return s + 1;
}

static void meet(Translator *t, const Inst *inst) {
    uint32_t args[3];
    for (int i = 0; i < 3; i++) args[i] = interp_use(t, inst, i);
    int64_t own = interp_take_memory(t, 3 * sizeof(uint64_t));
    Step *step = interp_step(t, wave, interp_result(t, inst), args[0], args[1]);
    step->c = args[2];
    step->number = ++t->wave_sites;
    step->more = own;
}

/* ---- printf and abort */

typedef struct Print {
    Str text;
    int nargs, lanes;
    RtPrintArg *args;
    struct {
        const Type *type; /* of a lane; NULL: an address */
        uint32_t slot;
    } * from;
} Print;

static uint64_t printed(Slot slot, const Type *type) {
    Slot wide = slot;
    if (type && type->kind == TYPE_float) wide.real = (double)slot.single;
    if (type && type->kind == TYPE_half) wide.real = (double)half_to_float((uint16_t)slot.bits);
    return wide.bits;
}

static const Step *print(Slot *r, const Step *s) {
    const Print *plan = s->data;
    uint64_t values[plan->lanes + 1], *next = values;
    for (int i = 0; i < plan->nargs; i++)
        for (uint32_t lane = 0; lane < plan->args[i].lanes; lane++)
            *next++ = printed(r[plan->from[i].slot + lane], plan->from[i].type);
    rt_print(context_of(r), plan->text.at, plan->text.len, plan->args, plan->nargs, values);
    return s + 1;
}

static void take_print(Translator *t, const Inst *inst) {
    Print *plan = arena_new(t->arena, Print);
    size_t count = (size_t)inst->nargs + 1;
    plan->text = inst->text;
    plan->nargs = inst->nargs;
    plan->args = arena_array(t->arena, RtPrintArg, count);
    plan->lanes = emit_print_args(inst, plan->args);
    plan->from = arena_take(t->arena, sizeof *plan->from * count);
    for (int i = 0; i < inst->nargs; i++) {
        const Type *type = inst->args[i]->type;
        bool is_number = type_is_scalar(type) || type->kind == TYPE_vector;
        plan->from[i].type = is_number ? type_element(type) : NULL;
        plan->from[i].slot = interp_use(t, inst, i);
    }
    interp_step(t, print, 0, 0, 0)->data = plan;
}

static const Step *end(Slot *r, const Step *s) {
    const Inst *inst = s->data;
    InterpCounts *counts = r[0].frame->code->program->counts;
    if (counts) counts->end = INTERP_aborted;
    rt_abort(context_of(r), inst->text.at, inst->text.len);
}

bool interp_machine(Translator *t, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_thread_id: take_thread_id(t, inst); return true;
    case OP_barrier: interp_step(t, inst->index == 1 ? barrier : fence, 0, 0, 0); return true;
    case OP_wave: meet(t, inst); return true;
    case OP_printf: take_print(t, inst); return true;
    case OP_abort: interp_step(t, end, 0, 0, 0)->data = inst; return true;
    default: return false;
    }
}
