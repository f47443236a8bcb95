/* Functions to steps: one walk over the regions of each. */
#include "emit/interp/code.h"
#include <stdarg.h>
#include <stdio.h>

void interp_fail(Translator *t, Loc loc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t->error->text, sizeof t->error->text, format, args);
    va_end(args);
    t->error->loc = loc;
    trap_spring(&t->jit->trap, TRAP_fault, t->error->text);
}

/* ---- slots */

int interp_slots(const Type *type) {
    return type->kind == TYPE_vector ? type_count(type) : type->kind == TYPE_buffer ? 2 : 1;
}

uint32_t interp_new_slots(Translator *t, int count) {
    const uint32_t most = 1 << 28;
    uint32_t slot = t->next;
    t->next += (uint32_t)count;
    if (t->next > most) interp_fail(t, t->func->loc, "'%s' has too many values", t->func->name->text);
    if (t->next > t->code->nslots) t->code->nslots = t->next;
    return slot;
}

int64_t interp_take_memory(Translator *t, int64_t size) {
    const int64_t most = INT64_MAX / 4;
    int64_t offset = t->code->memory, end = (size + 15) / 16 * 16;
    if (size > most - offset)
        interp_fail(t, t->func->loc, "the variables of '%s' are too large", t->func->name->text);
    t->code->memory = offset + end;
    return offset;
}

Step *interp_step(Translator *t, StepFunction *run, uint32_t to, uint32_t a, uint32_t b) {
    vec_push(t->scratch, &t->steps, ((Step){.run = run, .to = to, .a = a, .b = b, .lanes = 1}));
    return &vec_last(&t->steps);
}

/* ---- constants: known before the code is made, since they come before everything else in a frame */

static Slot constant(const Val *v) {
    Slot slot = {0};
    switch (v->type->kind) {
    case TYPE_half: slot.integer = half_from_double(v->real); break;
    case TYPE_float: slot.single = (float)v->real; break;
    case TYPE_double: slot.real = v->real; break;
    default:
        if (type_is_scalar(v->type)) slot.integer = v->integer;
    }
    return slot;
}

typedef struct Search {
    Translator *t;
    VEC(Slot) found;
    uint32_t zeros; /* of the longest vector that is all zero */
} Search;

static void find_constants(void *user, Inst *inst) {
    Search *search = user;
    Translator *t = search->t;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        if (!val_is_const(v)) continue;
        Slot slot = constant(v);
        if (v->type->kind == TYPE_vector && (uint32_t)type_count(v->type) > search->zeros)
            search->zeros = (uint32_t)type_count(v->type);
        if (slot.bits == 0 || map_has(&t->constants, slot.bits)) continue;
        map_put(t->scratch, &t->constants, slot.bits, (void *)(uintptr_t)search->found.count);
        vec_push(t->scratch, &search->found, slot);
    }
}

static uint32_t constant_slot(const Translator *t, const Val *v) {
    uint64_t bits = constant(v).bits;
    if (!bits) return ZERO_SLOT;
    return ZERO_SLOT + t->code->nzeros + (uint32_t)(uintptr_t)map_get(&t->constants, bits);
}

static void take_constants(Translator *t) {
    Search search = {.t = t, .zeros = FEW_ZEROS};
    region_walk(t->func->body, find_constants, &search);
    int count = search.found.count;
    t->code->nzeros = search.zeros;
    interp_new_slots(t, ZERO_SLOT + (int)search.zeros + count);
    t->code->nconstants = (uint32_t)count;
    t->code->constants = count ? arena_copy(t->arena, search.found.at, sizeof(Slot) * (size_t)count) : NULL;
}

/* ---- values */

Known interp_known(Translator *t, const Inst *inst, int operand) {
    const Val *v = ir_resolve(inst->args[operand]);
    return val_is_const(v) ? (Known){.slot = constant_slot(t, v)} : t->values[v->id];
}

uint32_t interp_use(Translator *t, const Inst *inst, int operand) {
    Known known = interp_known(t, inst, operand);
    if (!known.guarded) return known.slot;
    return interp_plain(t, known, inst->args[operand]->type->args[0], false);
}

void interp_set(Translator *t, const Val *v, Known known) { t->values[v->id] = known; }

uint32_t interp_result(Translator *t, const Inst *inst) {
    uint32_t slot = interp_new_slots(t, interp_slots(inst->results[0]->type));
    interp_set(t, inst->results[0], (Known){.slot = slot});
    return slot;
}

/* ---- code */

static void translate(Translator *t, const Inst *inst) {
    interp_count_inst(t, inst);
    interp_watch(t, inst);
    if (interp_control(t, inst)) {
        t->block = NULL;
        return;
    }
    if (interp_call(t, inst) || interp_library(t, inst) || interp_number(t, inst) || interp_wide(t, inst) ||
        interp_vector(t, inst) || interp_memory(t, inst) || interp_buffer(t, inst) ||
        interp_machine(t, inst) || interp_tape(t, inst))
        return;
    interp_fail(t, inst->loc, "'%s' cannot be interpreted", op_info[inst->op].name);
}

void interp_region(Translator *t, const Region *region) {
    uint32_t next = t->next;
    t->block = NULL;
    for (const Inst *inst = region->first; inst; inst = inst->next) translate(t, inst);
    t->next = next;
}

static void take_params(Translator *t) {
    t->code->first_param = t->next;
    for (int i = 0; i < t->func->nparams; i++) {
        const Val *param = t->func->body->params[i];
        interp_set(t, param, (Known){.slot = interp_new_slots(t, interp_slots(param->type))});
    }
    t->code->nparam_slots = t->next - t->code->first_param;
}

/* Steps stand where they stay, so that jumps can point to them. */
static void settle(Translator *t) {
    size_t size = sizeof(Step) * (size_t)t->steps.count;
    Step *steps = arena_copy(t->arena, t->steps.at, size);
    for (int i = 0; i < t->jumps.count; i++) {
        const Jump *jump = &t->jumps.at[i];
        const Step **where = jump->where ? jump->where : &steps[jump->step].target;
        *where = &steps[jump->label->at];
    }
    t->code->steps = steps;
}

void interp_function(Translator *t, Code *code) {
    t->code = code;
    t->func = code->reached->func;
    t->scratch = arena_scratch(t->arena);
    t->steps.at = NULL, t->steps.count = t->steps.room = 0;
    t->jumps.at = NULL, t->jumps.count = t->jumps.room = 0;
    t->constants = (Map){0};
    t->next = 0;
    t->labelled = 0;
    t->values = arena_array(t->scratch, Known, t->func->nvals + 1);
    take_constants(t);
    take_params(t);
    interp_region(t, t->func->body);
    interp_step(t, interp_unreachable, 0, 0, 0);
    settle(t);
    arena_free(t->scratch);
}
