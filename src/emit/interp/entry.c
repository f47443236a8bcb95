/* Ways in from outside: calls, and kernels over the threads of groups. The runtime gives a context; what it
 * has no room for (static variables, what is written out of range) is added here. */
#include "emit/interp/code.h"

/* ---- contexts */

static void take_context(RtContext *context, const Program *program, uint32_t needs) {
    if (needs & NEEDS_STATICS) context->statics = rt_memory_take(context, program->reached.statics_size);
    if (program->sink_size > 0) context->sink = rt_memory_take(context, program->sink_size);
}

static void drop_context(const RtContext *context, const Program *program, uint32_t needs) {
    if (program->sink_size > 0) rt_memory_give(context->sink);
    if (needs & NEEDS_STATICS) rt_memory_give(context->statics);
}

static const Copies no_args;

/* Static variables begin anew with each thread. */
static void start_thread(const RtContext *context, const Program *program, uint32_t needs) {
    if (!(needs & NEEDS_STATICS)) return;
    memset(context->statics, 0, (size_t)program->reached.statics_size);
    for (int i = 0; i < program->inits.count; i++)
        interp_enter(program->inits.at[i], context, NULL, &no_args, NULL);
}

/* ---- arguments: a list of pointers to the parameters, then to the results */

static int count_plain_params(const Func *func) {
    int count = 0;
    for (int i = 0; i < func->nparams; i++) count += !(func->params[i].flags & PARAM_RESULT);
    return count;
}

static void load_args(const Func *func, void *const *args, Slot *to) {
    int next = 0, result = count_plain_params(func);
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        char *pointer = args[(param->flags & PARAM_RESULT) ? result++ : next++];
        if (param->flags & PARAM_BY_ADDRESS) to->address = pointer;
        else interp_load_value(param->type, pointer, to);
        to += param->flags & PARAM_BY_ADDRESS ? 1 : interp_slots(param->type);
    }
}

static int count_result_slots(const Func *func) {
    int count = 0;
    for (int i = 0; i < func->nresults; i++) count += interp_slots(func->results[i]);
    return count;
}

static void store_results(const Func *func, const Slot *from, void *const *args) {
    for (int i = 0; i < func->nresults; i++) {
        interp_store_value(func->results[i], args[func->nparams + i], from);
        from += interp_slots(func->results[i]);
    }
}

static void return_made(const RtContext *context, const Func *func, void *const *args) {
    int next = 0, result = count_plain_params(func);
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        const void *object = args[(param->flags & PARAM_RESULT) ? result++ : next++];
        if (reach_may_return_made(param))
            rt_made_return(context, object, type_layout(param->type, LAYOUT_scalar).size);
    }
    for (int i = 0; i < func->nresults; i++)
        if (reach_may_hold_made(func->results[i]))
            rt_made_return(context, args[func->nparams + i],
                           type_layout(func->results[i], LAYOUT_scalar).size);
}

static void enter(const Code *code, const RtContext *context, const Slot *values, Slot *results) {
    Copy all = {0, 0, code->nparam_slots};
    Copies args = {.at = &all, .count = 1};
    interp_enter(code, context, values, &args, results);
}

/* ---- calls */

/* args: the entry, and its arguments. */
static void run_call(const RtContext *outer, void *const *args) {
    const Entry *entry = args[0];
    void *const *given = args[1];
    const Func *func = entry->code->reached->func;
    RtContext context = *outer;
    Slot values[entry->code->nparam_slots + 1], results[count_result_slots(func) + 1];
    take_context(&context, entry->program, entry->needs);
    if (entry->needs & NEEDS_SHARED)
        context.shared = rt_memory_take(&context, entry->program->reached.shared_size);
    start_thread(&context, entry->program, entry->needs);
    load_args(func, given, values);
    enter(entry->code, &context, values, results);
    store_results(func, results, given);
    if (entry->needs & NEEDS_MADE) return_made(&context, func, given);
    if (entry->needs & NEEDS_SHARED) rt_memory_give(context.shared);
    drop_context(&context, entry->program, entry->needs);
}

void interp_call_entry(EmitJit *jit, void *entry, void *const *args) {
    const Entry *called = entry;
    void *pack[] = {entry, (void *)(uintptr_t)args};
    if (called->needs & NEEDS_STACK) rt_call_deep(&jit->runtime, run_call, pack);
    else rt_call(&jit->runtime, run_call, pack);
}

/* ---- constants that need code */

typedef struct Inits {
    const Program *program;
    const Code *const *list;
    int count;
} Inits;

static void run_inits(const RtContext *outer, void *const *args) {
    const Inits *inits = args[0];
    RtContext context = *outer;
    uint32_t needs = 0;
    for (int i = 0; i < inits->count; i++) needs |= inits->list[i]->reached->needs;
    take_context(&context, inits->program, needs);
    start_thread(&context, inits->program, needs);
    for (int i = 0; i < inits->count; i++) interp_enter(inits->list[i], &context, NULL, &no_args, NULL);
    if (needs & NEEDS_MADE) rt_made_constants(&context);
    drop_context(&context, inits->program, needs);
}

void interp_run_inits(EmitJit *jit, const Program *program, const Code *const *list, int count) {
    Inits inits = {program, list, count};
    void *pack[] = {&inits};
    if (count) rt_call_deep(&jit->runtime, run_inits, pack);
}

/* ---- kernels */

static void place_thread(RtContext *context, uint32_t x, uint32_t y, uint32_t z) {
    uint32_t local[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        context->local_id[i] = local[i];
        context->thread_id[i] = context->group_id[i] * context->group_size[i] + local[i];
    }
    context->local_index = (z * context->group_size[1] + y) * context->group_size[0] + x;
}

/* `code`: of one thread, or of as many as there are lanes. */
static void run_threads(const Entry *entry, const Code *code, const RtContext *context) {
    Slot values[code->nparam_slots + 1];
    load_args(code->reached->func, context->args, values);
    start_thread(context, entry->program, entry->needs);
    enter(code, context, values, NULL);
    look_at_stop(context);
}

static bool has_one_thread(const uint32_t *size) { return size[0] * size[1] * size[2] == 1; }

/* How many; beyond the end of the row lanes are off. */
static uint32_t run_in_row(const Entry *entry, RtContext *context, uint32_t x, uint32_t y, uint32_t z) {
    bool together = entry->wide && !has_one_thread(context->group_size);
    place_thread(context, x, y, z);
    run_threads(entry, together ? entry->wide : entry->code, context);
    return together ? entry->lanes : 1;
}

/* Groups of one thread are lanes themselves. */
static bool are_lanes(const Entry *entry, const RtContext *context, uint64_t left) {
    return entry->wide && has_one_thread(context->group_size) && entry->lanes <= left &&
           entry->lanes <= context->groups[0] - context->group_id[0];
}

/* How many were done: the group of that number, and perhaps some that follow it; `left` there are. */
static uint64_t run_group(const Entry *entry, RtContext *context, uint64_t number, uint64_t left) {
    const uint32_t *size = context->group_size, *groups = context->groups;
    context->group_id[0] = (uint32_t)(number % groups[0]);
    context->group_id[1] = (uint32_t)(number / groups[0] % groups[1]);
    context->group_id[2] = (uint32_t)(number / groups[0] / groups[1]);
    if (entry->kernel.shared_size) memset(context->shared, 0, (size_t)entry->kernel.shared_size);
    if (are_lanes(entry, context, left)) {
        place_thread(context, 0, 0, 0);
        run_threads(entry, entry->wide, context);
        return entry->lanes;
    }
    for (uint32_t z = 0; z < size[2]; z++)
        for (uint32_t y = 0; y < size[1]; y++)
            for (uint32_t x = 0; x < size[0];) x += run_in_row(entry, context, x, y, z);
    return 1;
}

static const Entry *entry_of(const RtContext *context) {
    return (const Entry *)(const void *)context->kernel;
}

static void run_groups(const RtContext *outer, uint64_t first, uint64_t end) {
    const Entry *entry = entry_of(outer);
    RtContext context = *outer;
    take_context(&context, entry->program, entry->needs);
    for (uint64_t number = first; number < end;) number += run_group(entry, &context, number, end - number);
    drop_context(&context, entry->program, entry->needs);
}

static void run_fiber(const RtContext *outer) {
    const Entry *entry = entry_of(outer);
    RtContext context = *outer;
    take_context(&context, entry->program, entry->needs);
    run_threads(entry, entry->wide ? entry->wide : entry->code, &context);
    drop_context(&context, entry->program, entry->needs);
}

static const RtSum *describe_sums(Arena *arena, const Entry *entry, const Func *func) {
    RtSum *sums = arena_array(arena, RtSum, func->nsums + 1);
    for (int i = 0; i < func->nsums; i++) {
        const SumSource *from = &func->sums[i];
        sums[i] = (RtSum){.arg = (uint64_t)from->param,
                          .nsteps = (uint64_t)from->nsteps,
                          .size = (uint64_t)type_layout(from->scalar, LAYOUT_scalar).size,
                          .stride = (uint64_t)from->stride};
        if (from->global) sums[i].base = reached_global(&entry->program->reached, from->global)->emitted;
        memcpy(sums[i].offsets, from->offsets, sizeof sums[i].offsets);
    }
    return sums;
}

void interp_describe(Arena *arena, Entry *entry, const Code *code) {
    const Func *func = code->reached->func;
    entry->code = code;
    entry->program = code->program;
    entry->needs = code->reached->needs;
    if (func->group_size[0] <= 0) return;
    if (func->wide) entry->wide = reached_func(&entry->program->reached, func->wide)->emitted;
    entry->lanes = (uint32_t)func->lanes;
    entry->kernel.lanes = entry->wide ? entry->lanes : 0;
    const Code *runs = entry->wide ? entry->wide : code;
    if (runs->reached->needs & NEEDS_FIBER) entry->kernel.thread = run_fiber;
    else entry->kernel.run = run_groups;
    for (int i = 0; i < 3; i++)
        entry->kernel.group_size[i] = func->group_size[i] > 0 ? (uint32_t)func->group_size[i] : 1;
    entry->kernel.shared_align = 16;
    if (entry->needs & NEEDS_SHARED)
        entry->kernel.shared_size = (uint64_t)entry->program->reached.shared_size;
    entry->kernel.deep = (entry->needs & NEEDS_STACK) != 0;
    entry->kernel.nargs = (uint64_t)(func->nparams - func->nsums);
    entry->kernel.nsums = (uint64_t)func->nsums;
    entry->kernel.sums = describe_sums(arena, entry, func);
    entry->kernel.work = (uint64_t)func->work;
    entry->kernel.least = (uint64_t)func->least_work;
}
