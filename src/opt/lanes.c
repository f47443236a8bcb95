/* Lanes: several items of a kernel at once.
 *
 * The threads of a group that follow each other in x do the same, mostly, to different data. This pass makes
 * a function that does it for `width` of them, the lanes: what differs between them becomes a vector with one
 * number per lane, what does not stays a scalar. It works on a copy of the kernel after all other passes,
 * derivatives included, which are code like any other:
 *
 *     1  the copy: all calls are inlined, early exits become conditions, what that leaves is cleaned up
 *     2  lanes_vary.c finds out what differs between lanes: values, variables, stacks of tapes
 *     3  lanes_widen.c makes the wide function: lanes_memory.c memory, lanes_tape.c tapes, lanes_wave.c waves, lanes_single.c what
 *        is done lane by lane
 *
 * The kernel keeps its form for one thread, and knows the wide one (Func.wide); the emitter's loop over the
 * threads of a group takes steps of `width`. If that does not divide a row, the lanes behind its end are off.
 * Groups of one thread are lanes themselves: there what follows each other in x is groups, and those that are
 * left are done one by one.
 *
 * A wide function reads nothing that its threads would not have read: memory is touched under the mask of the
 * lanes that are on, and with the range checks of each lane. Threads of a dispatch may run in any order, so
 * that doing a step of all lanes before the next step of any is one of the orders that a program must expect.
 * What it computes is what each thread would compute, bit by bit, but for sums into one place
 * (lanes_memory.c), and where LLVM contracts a * b + c.
 *
 * Not everything can be done by lanes together. What they print, and functions that call themselves, are done
 * lane after lane. A kernel is left as it is, with a remark that says why, if it makes buffers, waits for
 * others where lanes go different ways, or handles addresses that differ between items in other ways than
 * reading and writing there; and one that prints, unless lanes were asked for by their number. */
#include "opt/lanes.h"

#include <limits.h>

enum { MOST_INSTS = 30000, MOST_SINGLE = 64, MOST_TAPES = 4 };

void lanes_decline(Lanes *lanes, const Inst *at, const char *why) {
    if (lanes->why) return;
    lanes->why = why;
    lanes->where = at ? at->loc : lanes->from->loc;
}

/* ---- what cannot be done */

/* Rounds of a loop are done in order, as far as anybody sees. */
static const char *refused_in_round(const Inst *inst) {
    if (inst->op == OP_printf) return "it prints";
    if (inst->op == OP_gather || inst->op == OP_scatter) return "a loop in it does several rounds at once";
    bool has_effect = (op_has(inst->op, OP_EFFECT) && !is_for_tape(inst)) || inst->op == OP_wave;
    return has_effect ? "rounds do what others may see" : NULL;
}

static const char *refused(const Lanes *lanes, const Inst *inst) {
    if (lanes->rounds) return refused_in_round(inst);
    switch ((Op)inst->op) {
    case OP_printf: return lanes->options->width ? NULL : "it prints";
    case OP_wave: return lanes->along_groups ? "it is a wave alone" : NULL;
    case OP_buffer_new: return "each item makes a buffer";
    case OP_gather:
    case OP_scatter: return "a loop in it does several rounds at once";
    case OP_barrier:
        return inst->index == 1 && lanes->along_groups ? "it waits at a barrier, alone in its group" : NULL;
    default: return NULL;
    }
}

static void look_before(void *user, Inst *inst) {
    const char *why = refused(user, inst);
    if (why) lanes_decline(user, inst, why);
}

/* An address for each lane is made from others and used, nothing else. */
static bool handles_address(const Lanes *lanes, const Inst *inst) {
    if (inst->op == OP_call || inst->op == OP_printf) return false; /* lane by lane */
    if (op_has(inst->op, OP_PART | OP_READS | OP_WRITES) || inst->op == OP_offset ||
        inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes)
        return false;
    for (int i = 0; i < inst->nargs; i++) {
        Val *arg = ir_resolve(inst->args[i]);
        bool plain = type_is_scalar(part_type(arg->type));
        if (!plain && (varies(lanes, arg) || (ir_target(arg->type) && lanes_is_spread(arg)))) return true;
    }
    for (int i = 0; i < inst->nresults; i++)
        if (!type_is_scalar(part_type(inst->results[i]->type)) && varies(lanes, inst->results[i]))
            return true;
    return false;
}

typedef struct Size {
    Lanes *lanes;
    int insts;
    int single, tapes; /* what there is of for each lane: calls, tapes */
} Size;

static void count_single(Size *size, const Inst *inst) {
    bool is_tape = inst->op == OP_tape_open && ((const TapeUse *)inst->note)->apart;
    size->insts++;
    size->single += inst->op == OP_call || inst->op == OP_printf;
    size->tapes += is_tape;
    if (size->insts > MOST_INSTS) lanes_decline(size->lanes, NULL, "it is too large");
    if (size->single > MOST_SINGLE || size->tapes > MOST_TAPES)
        lanes_decline(size->lanes, inst, "too much is done for one item after the other");
}

static void look_after(void *user, Inst *inst) {
    Size *size = user;
    Lanes *lanes = size->lanes;
    const char *why = inst->op == OP_call ? lanes_refused_call(lanes, inst) : refused(lanes, inst);
    if (why) lanes_decline(lanes, inst, why);
    else if (handles_address(lanes, inst))
        lanes_decline(lanes, inst, "an address that differs between items");
    for (int i = 0; i < inst->nresults; i++)
        if (parts_of(inst->results[i]->type) > MOST_PARTS) lanes_decline(lanes, inst, "a vector is too long");
    count_single(size, inst);
}

/* ---- the copy */

/* A clone is no part of the module: nobody else is to see it. */
static Func *copy_of(Func *func) {
    Func *copy = arena_new(func->module->arena, Func);
    *copy = *func;
    CloneMap map = {.module = func->module, .func = copy};
    copy->nvals = 1;
    copy->body = clone_region(&map, func->body, NULL);
    return copy;
}

/* ---- static variables: each thread has its own, so that they may as well be variables of the kernel */

static void inline_all(Func *copy) {
    opt_inline(copy, (InlinePolicy){.max_size = INT_MAX, .any_form = true});
}

static bool is_that(void *user, const Func *callee, const Inst *call) {
    (void)call;
    return callee == user;
}

/* Everything once more would be too much: each time a recursion is unrolled by a step. */
static void inline_one(Func *copy, Func *callee) {
    opt_inline(copy, (InlinePolicy){.max_size = INT_MAX, .any_form = true, .may = is_that, .user = callee});
}

typedef struct Statics {
    Lanes *lanes;
    Map vars;      /* Global -> Val */
    Global *found; /* one that has no variable yet */
    bool mixed;    /* a value is computed from that of another which is filled later */
} Statics;

static bool is_static(const Inst *inst) {
    return inst->op == OP_global && inst->global->kind == GLOBAL_static;
}

static void find_static(void *user, Inst *inst) {
    Statics *statics = user;
    if (is_static(inst) && !statics->found && !map_has(&statics->vars, PTR_KEY(inst->global)))
        statics->found = inst->global;
}

static void look_at_init(void *user, Inst *inst) {
    Statics *statics = user;
    statics->mixed |=
        inst->op == OP_call || (is_static(inst) && map_has(&statics->vars, PTR_KEY(inst->global)));
}

/* In front of what is there: what its value is computed from is found next, and comes before it. */
static void add_variable(Statics *statics, Func *copy, Global *global) {
    Builder b = build_before(copy->body->first);
    Func *init = global->init;
    if (init) region_walk(init->body, look_at_init, statics);
    if (statics->mixed)
        lanes_decline(statics->lanes, NULL, "it has static variables that depend on each other");
    Val *var = build_var(&b, global->type, global->name, false);
    map_put(statics->lanes->scratch, &statics->vars, PTR_KEY(global), var);
    if (!init) return;
    build_call(&b, init, NULL, 0);
    inline_one(copy, init);
}

static void use_variable(void *user, Inst *inst) {
    const Statics *statics = user;
    if (is_static(inst)) inst->results[0]->forward = map_get(&statics->vars, PTR_KEY(inst->global));
}

static void own_statics(Lanes *lanes, Func *copy) {
    Statics statics = {.lanes = lanes};
    for (bool more = true; more && !lanes->why;) {
        statics.found = NULL;
        region_walk(copy->body, find_static, &statics);
        more = statics.found != NULL;
        if (more) add_variable(&statics, copy, statics.found);
    }
    region_walk(copy->body, use_variable, &statics);
    ir_resolve_func(copy);
    opt_dce(copy);
}

void lanes_clean(Func *copy) {
    opt_lower_exits(copy);
    opt_clean(copy, (SroaOptions){0});
    if (opt_behind(copy)) opt_simplify(copy);
    ir_resolve_func(copy);
}

static void prepare(Lanes *lanes, Func *copy) {
    inline_all(copy);
    own_statics(lanes, copy);
    if (!lanes->why) lanes_clean(copy);
}

/* ---- which kernels, and how wide */

static bool has_one_thread(const Func *func) {
    return func->group_size[0] * func->group_size[1] * func->group_size[2] == 1;
}

static void uses_shared(void *user, Inst *inst) {
    bool *shared = user;
    *shared |= inst->op == OP_global && inst->global->kind == GLOBAL_shared;
}

static void look_for_meetings(void *user, Inst *inst) {
    Lanes *lanes = user;
    lanes->waits |= inst->op == OP_barrier && inst->index == 1;
    lanes->waves |= inst->op == OP_wave;
}

/* No more than there are, of groups as far as that is known; and where all wait for each other, none is to be
 * left over. */
static int fitting(const Func *func, const LaneOptions *options, int width, bool waits) {
    bool along_groups = has_one_thread(func);
    int row = !along_groups ? func->group_size[0] : options->groups ? options->groups : width;
    while (width > 1 && (row < width || (waits && !along_groups && row % width != 0))) width /= 2;
    return width;
}

static Func *wide_form(Lanes *lanes, const Func *kernel) {
    Func *wide = func_new(lanes->module, format_text(lanes->scratch, "%s.lanes", kernel->name->text));
    func_set_params(wide, kernel->params, kernel->nparams);
    wide->loc = kernel->loc;
    wide->lanes = lanes->width;
    wide->flags = FUNC_NORMAL | (kernel->flags & FUNC_PRECISE);
    lanes->to = wide;
    lanes_widen(lanes);
    if (lanes->why) return wide; /* not all of it */
    ir_resolve_func(wide);
    opt_dce(wide);
    lanes_order_rows(lanes, wide);
    return wide;
}

bool lanes_make_narrower(Lanes *lanes) {
    lanes->width /= 2;
    bool can = !lanes->waves && lanes->width >= lanes_least_width(lanes) && !lanes_not_worth_it(lanes);
    if (!can) lanes_decline(lanes, NULL, "it would take long to compile");
    return can;
}

static void make_wide(Lanes *lanes, Func *kernel) {
    bool chooses = lanes->options->width == 0, again = false;
    do {
        Func *wide = wide_form(lanes, kernel);
        again = !lanes->why && chooses && lanes_take_long(lanes) && lanes_make_narrower(lanes);
        if (!again && !lanes->why && lanes_are_too_much(lanes)) lanes_decline(lanes, NULL, "it is too large");
        if (again || lanes->why) func_forget(wide);
        else kernel->wide = wide, kernel->lanes = lanes->width;
    } while (again);
}

void lanes_look(Lanes *lanes) {
    Size size = {.lanes = lanes};
    lanes_find_varying(lanes);
    if (lanes_even_out(lanes)) lanes_find_varying(lanes);
    region_walk(lanes->from->body, look_after, &size);
}

static void look_at_copy(Lanes *lanes) {
    bool shared = false;
    region_walk(lanes->from->body, uses_shared, &shared);
    if (shared && lanes->along_groups)
        lanes_decline(lanes, NULL, "groups of one thread have memory of their own");
    region_walk(lanes->from->body, look_for_meetings, lanes);
    lanes_look(lanes);
}

static void choose_width(Lanes *lanes) {
    int wanted = lanes->options->width;
    if (!lanes->waves && !lanes->waits && !lanes->along_groups) lanes_take_for_ones(lanes);
    else lanes_find_rows(lanes);
    if (lanes->waves) lanes->width = lanes_of_wave(lanes, lanes->from);
    else
        lanes->width =
            fitting(lanes->from, lanes->options, wanted ? wanted : lanes_best_width(lanes), lanes->waits);
    if (!wanted && !lanes->waves && lanes_half_is_enough(lanes)) lanes->width /= 2;
    if (lanes->width <= 1 && lanes->waves)
        lanes_decline(lanes, NULL, "a wave is no part of a row of its group");
    else if (lanes->width <= 1)
        lanes_decline(lanes, NULL, "it waits, and a row of its group cannot be divided");
    else if (wanted) return;
    else if (lanes->width < 4) lanes_decline(lanes, NULL, "a group has fewer than four threads in x");
    else if (lanes_not_worth_it(lanes)) lanes_decline(lanes, NULL, lanes_not_worth_it(lanes));
    else lanes_look_for_races(lanes);
}

/* Groups of one thread are often dispatched alone, and nobody knows before: they are lanes if that is asked
 * for. */
bool opt_lanes(Func *func, const LaneOptions *options, LaneRemark *remark) {
    int width = fitting(func, options, options->width ? options->width : 16, false);
    *remark = (LaneRemark){.width = 1, .loc = func->loc};
    if (width <= 1 || func->wide) {
        remark->why = func->wide             ? NULL
                      : has_one_thread(func) ? "there is one group, of one thread"
                                             : "a group has one thread in x";
        return false;
    }
    Lanes lanes = {.module = func->module,
                   .scratch = arena_scratch(func->module->arena),
                   .options = options,
                   .from = func,
                   .width = width,
                   .along_groups = has_one_thread(func)};
    region_walk(func->body, look_before, &lanes);
    if (lanes.along_groups && options->width == 0) lanes_decline(&lanes, NULL, "groups have one thread");
    if (!lanes.why) {
        lanes.from = copy_of(func);
        prepare(&lanes, lanes.from);
    }
    if (!lanes.why) {
        look_at_copy(&lanes);
        choose_width(&lanes);
    }
    if (!lanes.why && lanes_swap_loops(&lanes)) lanes_look(&lanes);
    if (!lanes.why) make_wide(&lanes, func);
    if (lanes.why) *remark = (LaneRemark){.width = 1, .why = lanes.why, .loc = lanes.where};
    else remark->width = lanes.width;
    arena_free(lanes.scratch);
    return !lanes.why;
}
