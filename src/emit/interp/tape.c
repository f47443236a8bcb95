/* Tapes: the stacks are those of the runtime. Unlike machine code, the interpreter looks whether there is
 * something to take. What is pushed may be a row, with a number for each lane (opt/lanes.c): then rows are
 * counted. */
#include "emit/interp/code.h"

static int size_of(const Type *type) { return type->kind == TYPE_bool ? 1 : type_bits(type) / 8; }

static RtStack *stack_of(const Slot *r, const Step *s) {
    return &r[s->a].tape->stacks[s->type->kind - TYPE_bool];
}

/* `what` is the size of an element, of which a row has `lanes`. */
static char *element(const RtStack *stack, const Step *s, int64_t index) {
    return stack->data + index * s->what;
}

static void store_row(char *at, const Step *s, const Slot *from) {
    for (int i = 0; i < s->lanes; i++) interp_store(at + i * s->what, s->what, from[i]);
}

static void load_row(const char *at, const Step *s, Slot *to) {
    for (int i = 0; i < s->lanes; i++) to[i] = interp_load(s->type, at + i * s->what, s->what);
}

static void refuse(const Slot *r) {
    interp_end(r, INTERP_bad_tape, "a reverse pass takes what was not kept, or leaves something behind");
}

static void make_room(const Slot *r, const Step *s, RtStack *stack, int64_t more) {
    if (more < 0 || more > stack->room - stack->count)
        rt_tape_more(r[s->a].tape, s->type->kind - TYPE_bool, more);
    interp_keep(r, s->type, more);
}

static const Step *push(Slot *r, const Step *s) {
    RtStack *stack = stack_of(r, s);
    make_room(r, s, stack, s->lanes);
    store_row(element(stack, s, stack->count), s, &r[s->b]);
    stack->count += s->lanes;
    return s + 1;
}

static const Step *pop(Slot *r, const Step *s) {
    RtStack *stack = stack_of(r, s);
    if (stack->count < s->lanes) refuse(r);
    stack->count -= s->lanes;
    load_row(element(stack, s, stack->count), s, &r[s->to]);
    interp_keep(r, s->type, -s->lanes);
    return s + 1;
}

/* `more`: not 0: the elements stay as they come. */
static const Step *grow(Slot *r, const Step *s) {
    RtStack *stack = stack_of(r, s);
    int64_t count = r[s->b].integer * s->lanes;
    make_room(r, s, stack, count);
    if (!s->more && count) memset(element(stack, s, stack->count), 0, (size_t)(count * s->what));
    r[s->to].integer = stack->count / s->lanes;
    stack->count += count;
    return s + 1;
}

static const Step *shrink(Slot *r, const Step *s) {
    RtStack *stack = stack_of(r, s);
    int64_t count = r[s->b].integer * s->lanes;
    if (count < 0 || count > stack->count) refuse(r);
    stack->count -= count;
    interp_keep(r, s->type, -count);
    return s + 1;
}

static const Step *reach(Slot *r, const Step *s) {
    RtStack *stack = stack_of(r, s);
    int64_t count = r[s->b].integer * s->lanes;
    if (count <= stack->count) return s + 1;
    make_room(r, s, stack, count - stack->count);
    stack->count = count;
    return s + 1;
}

static char *inside(const Slot *r, const Step *s) {
    const RtStack *stack = stack_of(r, s);
    if (r[s->b].bits >= (uint64_t)stack->count) refuse(r);
    return element(stack, s, r[s->b].integer);
}

static const Step *load(Slot *r, const Step *s) {
    r[s->to] = interp_load(s->type, inside(r, s), s->what);
    return s + 1;
}

static const Step *store(Slot *r, const Step *s) {
    interp_store(inside(r, s), s->what, r[s->c]);
    return s + 1;
}

/* Where rows are, one or one for each lane; `more` is how many. Of lanes that are off the index may be
 * anything. */
static const Step *rows(Slot *r, const Step *s) {
    const RtStack *stack = stack_of(r, s);
    for (uint32_t i = 0; i < (uint32_t)s->more; i++) {
        uint64_t index = r[s->b + i].bits;
        bool is_there = index < (uint64_t)(stack->count / s->lanes);
        r[s->to + i].address = is_there ? element(stack, s, (int64_t)index * s->lanes) : NULL;
    }
    return s + 1;
}

/* Of what is counted, nothing may be left behind. */
static void count_open(const Slot *r, const RtTape *tape, int64_t more) {
    InterpCounts *counts = r[0].frame->code->program->counts;
    if (!counts) return;
    for (int i = 0; i < RT_STACKS; i++)
        if (tape->stacks[i].count) refuse(r);
    counts->open_tapes += more;
}

static const Step *open_tape(Slot *r, const Step *s) {
    r[s->to].tape = rt_tape_open(context_of(r));
    count_open(r, r[s->to].tape, 1);
    return s + 1;
}

static const Step *close_tape(Slot *r, const Step *s) {
    count_open(r, r[s->a].tape, -1);
    rt_tape_close(r[s->a].tape);
    return s + 1;
}

/* ---- translation */

static Step *on_stack(Translator *t, const Inst *inst, StepFunction *run, const Type *type) {
    uint32_t args[3] = {0};
    for (int i = 0; i < inst->nargs; i++) args[i] = interp_use(t, inst, i);
    Step *step = interp_step(t, run, inst->nresults ? interp_result(t, inst) : 0, args[0], args[1]);
    step->c = args[2];
    step->type = type_element(type);
    step->lanes = type_count(type);
    step->what = size_of(step->type);
    step->more = inst_has(inst, INST_RAW);
    return step;
}

static void row_address(Translator *t, const Inst *inst) {
    const Type *result = inst->results[0]->type;
    on_stack(t, inst, rows, ir_target(result))->more = type_count(inst->args[1]->type);
}

bool interp_tape(Translator *t, const Inst *inst) {
    uint32_t tape;
    switch ((Op)inst->op) {
    case OP_tape_open: interp_step(t, open_tape, interp_result(t, inst), 0, 0); return true;
    case OP_tape_close:
        tape = interp_use(t, inst, 0);
        interp_step(t, close_tape, 0, tape, 0);
        return true;
    case OP_tape_push: on_stack(t, inst, push, inst->args[1]->type); return true;
    case OP_tape_pop: on_stack(t, inst, pop, inst->results[0]->type); return true;
    case OP_tape_grow: on_stack(t, inst, grow, inst->type); return true;
    case OP_tape_shrink: on_stack(t, inst, shrink, inst->type); return true;
    case OP_tape_reach: on_stack(t, inst, reach, inst->type); return true;
    case OP_tape_elem: row_address(t, inst); return true;
    case OP_tape_load: on_stack(t, inst, load, inst->results[0]->type); return true;
    case OP_tape_store: on_stack(t, inst, store, inst->args[2]->type); return true;
    default: return false;
    }
}
