/* Reachability: a work list of functions, a walk over each, then needs flow from callees to callers until
 * they settle. */
#include "emit/reach.h"

ReachedFunc *reached_func(const Reached *reached, const Func *func) {
    return map_get(&reached->func_map, PTR_KEY(func));
}

ReachedGlobal *reached_global(const Reached *reached, const Global *global) {
    return map_get(&reached->global_map, PTR_KEY(global));
}

static ReachedFunc *reach_func(Reached *reached, Func *func) {
    ReachedFunc *info = reached_func(reached, func);
    if (info) return info;
    if (!func->body) reached->missing = func;
    info = arena_new(reached->arena, ReachedFunc);
    info->func = func;
    map_put(reached->arena, &reached->func_map, PTR_KEY(func), info);
    vec_push(reached->arena, &reached->funcs, info);
    return info;
}

static ReachedGlobal *reach_global(Reached *reached, Global *global) {
    ReachedGlobal *info = reached_global(reached, global);
    if (info) return info;
    info = arena_new(reached->arena, ReachedGlobal);
    info->global = global;
    map_put(reached->arena, &reached->global_map, PTR_KEY(global), info);
    if (global->init && (global->kind == GLOBAL_const || global->kind == GLOBAL_static))
        info->init = reach_func(reached, global->init);
    return info;
}

bool reach_is_large(const Type *type) { return type_layout(type, LAYOUT_scalar).size > LARGE_SIZE; }

typedef struct Walk {
    Reached *reached;
    ReachedFunc *from;
} Walk;

static void reach_from_global(Walk *walk, Global *global) {
    ReachedGlobal *info = reach_global(walk->reached, global);
    vec_push(walk->reached->arena, &walk->from->globals, info);
    if (global->kind == GLOBAL_shared) walk->from->needs |= NEEDS_SHARED;
    if (global->kind != GLOBAL_static) return;
    walk->from->needs |= NEEDS_STATICS;
    if (info->init) vec_push(walk->reached->arena, &walk->from->callees, info->init);
}

static void note_call(ReachedFunc *callee, ReachedFunc *caller, const Inst *call) {
    callee->calls++;
    callee->caller = caller;
    callee->loops_around = inst_loops_around(call);
}

/* Compilers write such a loop out, or so it may be. */
static bool is_short(const Inst *loop) {
    const int64_t most_rounds = 256, most_written = 1024; /* instructions */
    int64_t rounds = loop_most_trips(loop), size = 0;
    if (rounds > most_rounds) return false;
    for (int i = 0; i < loop->nregions; i++) size += region_size(loop->regions[i]);
    return rounds * size <= most_written;
}

static void note_loop(ReachedFunc *info, const Inst *loop) {
    int loops = inst_loops_around(loop) + 1;
    info->all_loops++;
    if (info->loops < loops) info->loops = loops;
    info->needs |= NEEDS_LOOP;
    if (is_short(loop)) info->needs |= NEEDS_LOOP_ROWS;
}

static bool has_rows(const Type *type) {
    enum { ROW = 4 };
    if (type->kind == TYPE_vector) return type_count(type) >= ROW;
    if (type->kind == TYPE_array) return type_length(type) >= ROW || has_rows(type->args[0]);
    if (type->kind != TYPE_record) return false;
    const Record *record = type_record(type);
    for (int i = 0, alike = 0; i < record->nfields; i++) {
        const Type *field = record->fields[i].type;
        bool goes_on = i > 0 && field == record->fields[i - 1].type && type_is_scalar(field);
        alike = goes_on ? alike + 1 : 1;
        if (alike >= ROW || has_rows(field)) return true;
    }
    return false;
}

/* `inst`: that has such a value; NULL: it is a parameter. What a function that is called from outside does
 * out of its loops is done once in a call. */
static void note_rows(ReachedFunc *info, const Inst *inst, const Type *type) {
    const Type *target = ir_target(type);
    if (!has_rows(target ? target : type)) return;
    bool is_once = (info->func->flags & FUNC_EXPORT) && !(inst && inst_loops_around(inst));
    info->needs |= is_once ? NEEDS_ROWS : NEEDS_ROWS | NEEDS_LOOP_ROWS;
}

bool reach_may_hold_made(const Type *type) {
    if (type->kind == TYPE_buffer || type->kind == TYPE_pointer) return true;
    if (type->kind == TYPE_array) return reach_may_hold_made(type->args[0]);
    bool may = false;
    for (int i = 0; type->kind == TYPE_record && i < type_record(type)->nfields; i++)
        may |= reach_may_hold_made(type_record(type)->fields[i].type);
    return may;
}

bool reach_may_return_made(const Param *param) {
    bool is_written = (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in;
    return (is_written || (param->flags & PARAM_RESULT)) && reach_may_hold_made(param->type);
}

static void reach_from_inst(void *user, Inst *inst) {
    Walk *walk = user;
    walk->from->size++;
    for (int i = 0; i < inst->nresults; i++) note_rows(walk->from, inst, inst->results[i]->type);
    switch ((Op)inst->op) {
    case OP_call: {
        ReachedFunc *callee = reach_func(walk->reached, inst->callee);
        if (!inst_is_unlikely(inst)) note_call(callee, walk->from, inst);
        vec_push(walk->reached->arena, &walk->from->callees, callee);
        break;
    }
    case OP_loop: note_loop(walk->from, inst); break;
    case OP_var:
        if (reach_is_large(inst->type)) walk->from->needs |= NEEDS_LARGE;
        break;
    case OP_global: reach_from_global(walk, inst->global); break;
    case OP_buffer_elem:
    case OP_buffer_bytes:
    case OP_buffer_counter: walk->from->needs |= NEEDS_SINK; break;
    case OP_thread_id:
        walk->from->needs |=
            NEEDS_IDS | (inst->index > 3 ? NEEDS_SIZES : 0) | (inst->index > 5 ? NEEDS_LANES : 0);
        break;
    case OP_wave: walk->from->needs |= NEEDS_FIBER | NEEDS_IDS; break;
    case OP_barrier:
        if (inst->index == 1) walk->from->needs |= NEEDS_FIBER;
        break;
    case OP_printf:
    case OP_abort: walk->from->needs |= NEEDS_RUNTIME; break;
    case OP_buffer_new: walk->from->needs |= NEEDS_RUNTIME | NEEDS_MADE; break;
    default: break;
    }
}

/* ---- what becomes a part of its only caller
 *
 * Compilers take a time for a function that grows with the square of the loops that follow each other in it, and faster with those that
 * are in each other. So what is joined has a limit as a whole; what comes too late stands alone. */

enum { LARGEST_JOINED = 2000, MOST_JOINED = 4000, MOST_LOOPS_JOINED = 5 };

bool reach_is_joined(const ReachedFunc *info) { return info->root != info; }

static void join(ReachedFunc *info) {
    bool is_open = (info->func->flags & (FUNC_EXPORT | FUNC_NOINLINE)) != 0;
    info->root = info;
    info->whole = info->size;
    if (is_open || info->calls != 1 || info->size > LARGEST_JOINED || !info->caller->root) return;
    ReachedFunc *root = info->caller->root;
    int around = info->loops_around + (reach_is_joined(info->caller) ? info->caller->loops_around : 0);
    info->is_too_much = root->whole + info->size > MOST_JOINED || around + info->loops > MOST_LOOPS_JOINED;
    if (info->is_too_much) return;
    info->root = root;
    info->loops_around = around;
    root->whole += info->size;
}

/* Compilers copy what is small to all places that call it. Where a function has many of these, there is no
 * room for all copies. */
static void count_copies(const ReachedFunc *caller) {
    enum { MOST_LOOPS_COPIED = 64 };
    for (int i = 0; i < caller->callees.count; i++) caller->callees.at[i]->in_caller = 0;
    for (int i = 0; i < caller->callees.count; i++) {
        ReachedFunc *callee = caller->callees.at[i];
        int64_t copies = ++callee->in_caller;
        if (copies > 1 &&
            (copies * callee->size > MOST_JOINED || copies * callee->all_loops > MOST_LOOPS_COPIED))
            callee->is_too_much = true;
    }
}

/* Callers come first, as they were reached. */
static void join_all(const Reached *reached) {
    for (int i = 0; i < reached->funcs.count; i++) join(reached->funcs.at[i]);
    for (int i = 0; i < reached->funcs.count; i++) count_copies(reached->funcs.at[i]);
}

void reach_on_stack(ReachedFunc *info) {
    info->tests_stack = true;
    info->needs |= NEEDS_STACK;
}

/* Takes away functions that call nothing that is left, or that nothing left calls, until all have both: those
 * are on a cycle or between two of them. */
static void find_cycles(Reached *reached) {
    VEC(ReachedFunc *) work = {0};
    for (int i = 0; i < reached->funcs.count; i++) {
        ReachedFunc *info = reached->funcs.at[i];
        info->is_cyclic = true;
        info->open_callees = info->callees.count;
        for (int k = 0; k < info->callees.count; k++) {
            vec_push(reached->arena, &info->callees.at[k]->callers, info);
            info->callees.at[k]->open_callers++;
        }
        vec_push(reached->arena, &work, info);
    }
    for (int i = 0; i < work.count; i++) {
        ReachedFunc *info = work.at[i];
        if (!info->is_cyclic || (info->open_callees > 0 && info->open_callers > 0)) continue;
        info->is_cyclic = false;
        for (int k = 0; k < info->callers.count; k++)
            if (--info->callers.at[k]->open_callees == 0)
                vec_push(reached->arena, &work, info->callers.at[k]);
        for (int k = 0; k < info->callees.count; k++)
            if (--info->callees.at[k]->open_callers == 0)
                vec_push(reached->arena, &work, info->callees.at[k]);
    }
    for (int i = 0; i < reached->funcs.count; i++)
        if (reached->funcs.at[i]->is_cyclic) reach_on_stack(reached->funcs.at[i]);
}

static void spread_needs(Reached *reached) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = reached->funcs.count - 1; i >= 0; i--) {
            ReachedFunc *info = reached->funcs.at[i];
            uint32_t needs = info->needs;
            for (int k = 0; k < info->callees.count; k++) needs |= info->callees.at[k]->needs;
            changed |= needs != info->needs;
            info->needs = needs;
        }
    }
}

static int64_t place(int64_t *size, const Type *type) {
    Layout layout = type_layout(type, LAYOUT_scalar);
    int64_t offset = (*size + layout.align - 1) / layout.align * layout.align;
    *size = offset + layout.stride;
    return offset;
}

static void list_global(Reached *reached, ReachedGlobal *info);

static void list_before(Reached *reached, ReachedFunc *func) {
    if (func->is_listed) return;
    func->is_listed = true;
    for (int i = 0; i < func->globals.count; i++) list_global(reached, func->globals.at[i]);
    for (int i = 0; i < func->callees.count; i++) list_before(reached, func->callees.at[i]);
}

/* Globals are filled in this order: those that the value of another is computed from come before it. */
static void list_global(Reached *reached, ReachedGlobal *info) {
    if (info->is_listed) return;
    info->is_listed = true;
    if (info->init) list_before(reached, info->init);
    vec_push(reached->arena, &reached->globals, info);
    if (info->global->kind == GLOBAL_static) info->offset = place(&reached->statics_size, info->global->type);
    if (info->global->kind == GLOBAL_shared) info->offset = place(&reached->shared_size, info->global->type);
}

static void list_globals(Reached *reached, const Module *module) {
    for (int i = 0; i < module->globals.count; i++) {
        ReachedGlobal *info = reached_global(reached, module->globals.at[i]);
        if (info) list_global(reached, info);
    }
}

/* The kernel needs for its threads what they need together. */
static void reach_wide(Reached *reached, ReachedFunc *kernel) {
    if (!kernel->func->wide) return;
    ReachedFunc *wide = reach_func(reached, kernel->func->wide);
    wide->calls++;
    wide->caller = kernel;
    vec_push(reached->arena, &kernel->callees, wide);
}

Reached emit_reach(Arena *arena, Module *module, bool wide) {
    Reached reached = {.arena = arena};
    for (int i = 0; i < module->funcs.count; i++) {
        Func *func = module->funcs.at[i];
        if ((func->flags & FUNC_EXPORT) && func->body) reach_func(&reached, func);
    }
    for (int i = 0; i < module->globals.count; i++)
        if (module->globals.at[i]->kind == GLOBAL_uniform) reach_global(&reached, module->globals.at[i]);
    for (int i = 0; i < reached.funcs.count && !reached.missing; i++) {
        Walk walk = {&reached, reached.funcs.at[i]};
        for (int k = 0; k < walk.from->func->nparams; k++)
            note_rows(walk.from, NULL, walk.from->func->params[k].type);
        region_walk(walk.from->func->body, reach_from_inst, &walk);
        if (wide) reach_wide(&reached, walk.from);
    }
    join_all(&reached);
    find_cycles(&reached);
    if (!reached.missing) reach_work(&reached);
    spread_needs(&reached);
    if (!reached.missing)
        reach_tapes(&reached), reach_nests(&reached), reach_beside(&reached), reach_alone(&reached);
    spread_needs(&reached);
    list_globals(&reached, module);
    return reached;
}
