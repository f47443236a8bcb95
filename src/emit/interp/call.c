/* Frames, calls and returns. A frame is on the stack of the machine, so that fibers and deep recursions are
 * the runtime's affair as with machine code; one that is too large for that is taken from the runtime. */
#include "emit/interp/code.h"

static void run(const Code *code, Frame *frame, Slot *r, const Slot *from, const Copies *args) {
    r[0].frame = frame;
    memset(&r[ZERO_SLOT], 0, sizeof(Slot) * code->nzeros);
    if (code->nconstants)
        memcpy(&r[ZERO_SLOT + code->nzeros], code->constants, sizeof(Slot) * code->nconstants);
    for (int i = 0; i < args->count; i++)
        memcpy(&r[code->first_param + args->at[i].to], &from[args->at[i].from],
               sizeof(Slot) * args->at[i].count);
    frame->memory = (char *)(r + code->nslots);
    for (const Step *s = code->steps; s;) s = s->run(r, s);
}

static int64_t frame_size(const Code *code) { return (int64_t)(code->nslots * sizeof(Slot)) + code->memory; }

static void run_on_stack(const Code *code, Frame *frame, const Slot *from, const Copies *args) {
    Slot slots[frame_size(code) / (int64_t)sizeof(Slot)];
    run(code, frame, slots, from, args);
}

void interp_enter(const Code *code, const RtContext *context, const Slot *from, const Copies *args,
                  Slot *results) {
    Frame frame = {.context = context, .code = code, .results = results};
    const char *name = code->reached->func->name->text;
    if (code->reached->tests_stack && (char *)__builtin_frame_address(0) < context->stack_limit)
        rt_stack(context, name, (int64_t)strlen(name));
    if (code->reached->looks) look_at_stop(context);
    if (frame_size(code) <= LARGE_SIZE) {
        run_on_stack(code, &frame, from, args);
        return;
    }
    char *memory = rt_local_take(context, frame_size(code));
    run(code, &frame, (Slot *)(void *)memory, from, args);
    rt_memory_give(memory);
}

/* ---- steps */

typedef struct Call {
    const Code *callee;
    Copies args;
} Call;

static const Step *call(Slot *r, const Step *s) {
    const Call *plan = s->data;
    interp_enter(plan->callee, context_of(r), r, &plan->args, &r[s->to]);
    return s + 1;
}

static const Step *give_back(Slot *r, const Step *s) {
    const Copies *results = s->data;
    Slot *to = r[0].frame->results;
    for (int i = 0; i < results->count; i++)
        memcpy(&to[results->at[i].to], &r[results->at[i].from], sizeof(Slot) * results->at[i].count);
    return NULL;
}

/* ---- translation */

static uint32_t argument(Translator *t, const Inst *inst, int index) {
    const Param *param = &inst->callee->params[index];
    if (!(param->flags & PARAM_BY_ADDRESS)) return interp_use(t, inst, index);
    Known known = interp_known(t, inst, index);
    return interp_plain(t, known, param->type, param->dir == DIR_in);
}

static uint32_t value_slots(const Val *v) { return (uint32_t)interp_slots(v->type); }

static void take_call(Translator *t, const Inst *inst) {
    Call *plan = arena_new(t->arena, Call);
    const ReachedFunc *callee = reached_func(&t->program->reached, inst->callee);
    plan->callee = callee->emitted;
    uint32_t to = 0; /* from its first parameter on */
    for (int i = 0; i < inst->nargs; i++) {
        uint32_t count = value_slots(inst->args[i]);
        vec_push(t->arena, &plan->args, ((Copy){to, argument(t, inst, i), count}));
        to += count;
    }
    uint32_t results = t->next;
    for (int i = 0; i < inst->nresults; i++) {
        uint32_t slot = interp_new_slots(t, interp_slots(inst->results[i]->type));
        interp_set(t, inst->results[i], (Known){.slot = slot});
    }
    interp_step(t, call, results, 0, 0)->data = plan;
}

static void take_return(Translator *t, const Inst *inst) {
    Copies *results = arena_new(t->arena, Copies);
    uint32_t to = 0;
    for (int i = 0; i < inst->nargs; i++) {
        uint32_t count = value_slots(inst->args[i]);
        vec_push(t->arena, results, ((Copy){to, interp_use(t, inst, i), count}));
        to += count;
    }
    interp_step(t, give_back, 0, 0, 0)->data = results;
}

bool interp_call(Translator *t, const Inst *inst) {
    if (inst->op == OP_call) take_call(t, inst);
    else if (inst->op == OP_return) take_return(t, inst);
    return inst->op == OP_call || inst->op == OP_return;
}
