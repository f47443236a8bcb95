/* Loops over items that have nothing to do with each other: several rounds at once.
 *
 *     for (i = 0; i < n; i++) result[i] = f(data[i]);         a loss over all data; its gradient, round by round; a reverse pass
 *
 * A loop that may be of this kind becomes a function of its own, in which all calls are inlined and the
 * rounds have plain control flow, as with kernels (lanes.c). A round of it is a function, too
 * (lanes_items.c), of which the lanes are found to be in no one's way (lanes_apart.c); that is widened as a
 * kernel is, inside a loop that makes steps of `width` rounds. What is left is done by the loop as it was.
 * The function that had the loop calls the one that has it now.
 *
 * Loops around loops are tried first. LLVM does several rounds of a simple loop at once as well, so that
 * loops without calls, loops inside, elementary functions and the like are left to it. Functions call those
 * that have their loops once all have been looked at: until then they are inlined as they were. */
#include "opt/lanes.h"

#include <limits.h>
#include <math.h>

enum { MOST_INLINED = 4000, LEAST_ROUNDS = 16 };

/* Of a loop that is a function, too. */
typedef struct Outline {
    struct Loops *loops;
    Inst *loop;
    CloneMap map;
    ValVec captured;
    Func *func; /* that has it, once several rounds are done at once */
} Outline;

typedef struct Loops {
    Func *func;
    const LaneOptions *options;
    const LaneRemarks *remarks;
    Memory memory;
    Arena *scratch;
    Map sizes;    /* Func -> its size plus one, with all that it calls */
    double added; /* code, to its loops */
    Often *often;
    const Around *around;
    VEC(Outline *) done;
    InstVec left; /* loops of which LLVM does several rounds at once, as soon as it sees all of a round */
} Loops;

/* ---- whether to try */

static int64_t size_of(Loops *loops, const Region *region);

/* Of a function that calls itself: what it has without that. */
static int64_t size_of_func(Loops *loops, const Func *func) {
    if (!func->body) return 1;
    void *known = map_get(&loops->sizes, PTR_KEY(func));
    if (known) return (int64_t)(intptr_t)known - 1;
    map_put(loops->scratch, &loops->sizes, PTR_KEY(func), (void *)(intptr_t)1);
    int64_t size = size_of(loops, func->body);
    if (size > MOST_INLINED) size = MOST_INLINED + 1;
    map_put(loops->scratch, &loops->sizes, PTR_KEY(func), (void *)(intptr_t)(size + 1));
    return size;
}

static int64_t size_of(Loops *loops, const Region *region) {
    int64_t size = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        size += inst->op == OP_call ? size_of_func(loops, inst->callee) : 1;
        for (int i = 0; i < inst->nregions; i++) size += size_of(loops, inst->regions[i]);
    }
    return size;
}

typedef struct Contents {
    const LaneOptions *options;
    const Inst *loop;
    bool leaves; /* it, or what is around it, from inside */
    bool rich;   /* there is something that keeps LLVM from doing several rounds at once */
    const char *why;
} Contents;

/* A loop within a round adds to memory: rounds may add to the same places. */
static bool is_inner_sum(const Inst *loop, const Inst *inst) {
    const Val *stored = inst->op == OP_store ? inst_operand(inst, 1) : NULL;
    bool is_sum =
        inst->op == OP_atomic || (stored && stored->kind == VAL_inst && inst_is_free_sum(stored->inst));
    const Inst *outer = inst->parent->owner;
    while (outer && outer->op != OP_loop) outer = outer->parent->owner;
    return is_sum && outer != loop;
}

static void look_into(void *user, Inst *inst) {
    Contents *contents = user;
    bool is_jump = inst->op == OP_break || inst->op == OP_continue;
    bool goes_on = inst->op == OP_continue && inst->target == contents->loop;
    if (inst->op == OP_return) contents->leaves = true;
    if (is_jump && !goes_on) {
        const Region *region = inst->target->parent;
        while (region && region->owner != contents->loop)
            region = region->owner ? region->owner->parent : NULL;
        contents->leaves |= !region;
    }
    contents->rich |= lanes_is_left_to_lanes(contents->options, inst) || is_inner_sum(contents->loop, inst);
    if (inst->op == OP_printf) contents->why = "it prints";
    else if (op_has(inst->op, OP_EFFECT) && !is_for_tape(inst))
        contents->why = "rounds do what others may see";
}

/* How many rounds, if a constant says so. */
static bool has_few_rounds(const Inst *loop) {
    const Val *condition =
        loop->regions[0]->last->op == OP_yield ? ir_resolve(loop->regions[0]->last->args[0]) : NULL;
    LoopTest test;
    int64_t first, limit;
    if (!condition || condition->kind != VAL_inst || !loop_comparison(loop, condition->inst, &test))
        return false;
    return val_is_int(ir_resolve(loop->args[test.index]), &first) && val_is_int(test.limit, &limit) &&
           limit - first < LEAST_ROUNDS && first - limit < LEAST_ROUNDS;
}

/* NULL: it is worth trying. */
static const char *not_tried(Loops *loops, const Inst *loop) {
    Contents contents = {.options = loops->options, .loop = loop};
    inst_walk(loop, look_into, &contents);
    if (contents.why) return contents.why;
    if (contents.leaves) return "a round may be the last";
    if (loops->options->width == 0 && !contents.rich) return "it is left to LLVM";
    if (loops->options->width == 0 && has_few_rounds(loop)) return "it has few rounds";
    int64_t size = 0;
    for (int i = 0; i < loop->nregions; i++) size += size_of(loops, loop->regions[i]);
    return size > MOST_INLINED ? "it is too large" : NULL;
}

/* ---- the loop as a function */

/* A uniform, or a part of one; an element of a buffer, so that it is seen which buffer it is in: it can be
 * named again. */
static bool is_named(const Val *v) {
    if (v->kind != VAL_inst) return false;
    if (v->inst->op == OP_global || v->inst->op == OP_buffer_elem) return true;
    bool is_step = v->inst->op == OP_field || v->inst->op == OP_load;
    return is_step && inst_is_steady(v->inst) && is_named(ir_resolve(v->inst->args[0]));
}

static void capture(void *user, Inst *inst) {
    Outline *outline = user;
    for (int i = 0; i < inst->nargs; i++) {
        Val *v = ir_resolve(inst->args[i]);
        if (val_is_const(v) || inst_contains(outline->loop, v) || map_has(&outline->map.vals, PTR_KEY(v)))
            continue;
        clone_map_val(&outline->map, v, v); /* seen */
        vec_push(outline->loops->scratch, &outline->captured, v);
        if (is_named(v)) capture(outline, v->inst);
    }
}

static void name_again(Outline *outline, Region *body, Val *v) {
    if (val_is_const(v) || clone_val(&outline->map, v) != v) return;
    for (int i = 0; i < v->inst->nargs; i++) name_again(outline, body, ir_resolve(v->inst->args[i]));
    inst_append(body, clone_inst(&outline->map, v->inst));
}

/* A part of the function that calls it, it would be looked at once more, with the loops around it. Where it
 * is given addresses or tapes, LLVM knows more about them there. */
static bool stands_alone(const Outline *outline) {
    for (int i = 0; i < outline->captured.count; i++) {
        const Val *v = outline->captured.at[i];
        if (!is_named(v) && !type_is_scalar(part_type(v->type))) return false;
    }
    return true;
}

typedef struct Written {
    const Memory *memory;
    const void *key; /* of the object */
} Written;

static bool may_write(const void *user, const Inst *inst) {
    const Written *written = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_read || role == ROLE_part) continue;
        if (opt_memory_object(written->memory, inst_operand(inst, i)).key == written->key) return true;
    }
    return false;
}

/* An object that nobody writes during the loop, be it one that the function was given to read. */
static bool is_only_read(const Outline *outline, const Val *v) {
    const Memory *memory = &outline->loops->memory;
    Object object = opt_memory_object(memory, v);
    Written written = {memory, object.key};
    if (object.is_constant) return v->kind == VAL_param;
    return object.key && object.is_private && !inst_find(outline->loop, may_write, &written);
}

/* It is given on as that: where calls become a part of the loop, it is known that what they read from it stays
 * the same. */
static Param param_for(const Outline *outline, const Val *v) {
    bool is_read = ir_target(v->type) && is_only_read(outline, v);
    return (Param){.name = v->name,
                   .type = is_read ? ir_target(v->type) : v->type,
                   .flags = is_read ? PARAM_BY_ADDRESS : ir_own_flag(v)};
}

static Func *declare(Outline *outline) {
    const Func *from = outline->loops->func;
    VEC(Param) params = {0};
    VEC(const Type *) results = {0};
    Arena *scratch = outline->loops->scratch;
    for (int i = 0; i < outline->captured.count; i++) {
        const Val *v = outline->captured.at[i];
        if (!is_named(v)) vec_push(scratch, &params, param_for(outline, v));
    }
    for (int i = 0; i < outline->loop->nresults; i++)
        vec_push(scratch, &results, outline->loop->results[i]->type);
    Func *func = func_new_part(from, "items", outline->loop->loc);
    func_set_params(func, params.at, params.count);
    func_set_results(func, results.at, results.count);
    if (stands_alone(outline)) func->flags |= FUNC_NOINLINE;
    return func;
}

static Func *make_func(Outline *outline) {
    capture(outline, outline->loop);
    inst_walk(outline->loop, capture, outline);
    Func *func = declare(outline);
    Region *body = func_begin(func);
    outline->map.func = func;
    for (int i = 0, next = 0; i < outline->captured.count; i++)
        if (!is_named(outline->captured.at[i]))
            clone_map_val(&outline->map, outline->captured.at[i], body->params[next++]);
    for (int i = 0; i < outline->captured.count; i++)
        if (is_named(outline->captured.at[i])) name_again(outline, body, outline->captured.at[i]);
    Inst *loop = clone_inst(&outline->map, outline->loop);
    inst_append(body, loop);
    Builder b = build_at_end(body);
    build_return(&b, loop->results, loop->nresults);
    return func;
}

static Captured *captured_objects(Outline *outline) {
    Loops *loops = outline->loops;
    Captured *params = arena_array(loops->scratch, Captured, outline->captured.count + 1);
    int next = 0;
    for (int i = 0; i < outline->captured.count; i++) {
        const Val *v = outline->captured.at[i];
        if (is_named(v)) continue;
        if (ir_target(v->type)) {
            params[next].object = opt_memory_object(&loops->memory, v);
            params[next].is_whole = params[next].object.key == v;
        }
        next++;
    }
    return params;
}

/* The only loop that stands in the function itself; NULL: there are others, or none. */
static Inst *only_loop(const Func *func) {
    Inst *found = NULL;
    for (Inst *inst = func->body->first; inst; inst = inst->next) {
        if (inst->op == OP_loop && found) return NULL;
        if (inst->op == OP_loop) found = inst;
    }
    return found && found->nregions == 2 ? found : NULL;
}

/* ---- lanes */

static int64_t known_trip(const Inst *loop) {
    int64_t most = loop_most_trips(loop);
    return most != INT64_MAX && loop_known_rounds(loop) == (double)most ? most : 0;
}

static void choose_width(Lanes *lanes) {
    int wanted = lanes->options->width;
    lanes->width = wanted ? wanted : lanes_best_width(lanes);
    if (!wanted && lanes_half_is_enough(lanes)) lanes->width /= 2;
    if (wanted) return;
    lanes->width = lanes_width_for_trip(lanes);
    if (lanes_are_left_to_others(lanes)) lanes_decline(lanes, NULL, "it is left to LLVM");
    else if (lanes->width < 4) lanes_decline(lanes, NULL, "fewer than four rounds fit");
    else if (lanes_not_worth_it(lanes)) lanes_decline(lanes, NULL, lanes_not_worth_it(lanes));
    lanes->rounds->is_left = lanes->why && lanes_are_vectors_alone(lanes);
}

static void make_wide(Lanes *lanes) {
    bool again = false;
    do {
        lanes_make_rounds(lanes);
        again =
            !lanes->why && lanes->options->width == 0 && lanes_take_long(lanes) && lanes_make_narrower(lanes);
        if (!again && !lanes->why && lanes_are_too_much(lanes)) lanes_decline(lanes, NULL, "it is too large");
        if (again) lanes_undo_rounds(lanes);
    } while (again);
}

static void count_rounds(Lanes *lanes) {
    const Val *trip = loop_trip(lanes->rounds->loop);
    int64_t rounds;
    if (!trip) lanes_decline(lanes, NULL, "how many rounds there are is not known before");
    else if (val_is_int(trip, &rounds) && rounds < 2 * (int64_t)lanes->width)
        lanes_decline(lanes, NULL, "it has few rounds");
}

/* A loop, as it would be done. */
typedef struct Attempt {
    Outline outline;
    Rounds rounds;
    Lanes lanes;
} Attempt;

static Attempt *begin(Loops *loops, Inst *loop) {
    Module *module = loops->func->module;
    Attempt *attempt = arena_new(loops->scratch, Attempt);
    attempt->outline = (Outline){.loops = loops, .loop = loop, .map = {.module = module}};
    attempt->rounds =
        (Rounds){.is_derivative = inst_is_derivative(loop),
                 .keeps_checks = opt_calls_keep_checks(loop, loops->options->register_bits > 128),
                 .code_added = loops->added,
                 .at_most = INFINITY};
    attempt->lanes = (Lanes){.module = module,
                             .scratch = arena_scratch(module->arena),
                             .options = loops->options,
                             .width = loops->options->width ? loops->options->width : 16,
                             .rounds = &attempt->rounds};
    attempt->outline.func = make_func(&attempt->outline);
    attempt->rounds.params = captured_objects(&attempt->outline);
    return attempt;
}

/* Is it worth doing? The function that was made has nothing but the loop. */
static void consider(Attempt *attempt) {
    Lanes *lanes = &attempt->lanes;
    Rounds *rounds = &attempt->rounds;
    Func *func = attempt->outline.func;
    opt_inline(func, (InlinePolicy){.max_size = INT_MAX, .any_form = true});
    lanes_clean(func);
    ir_mark_in_range(func);
    lanes->from = func;
    rounds->func = func;
    rounds->loop = only_loop(func);
    if (!rounds->loop) lanes_decline(lanes, NULL, "it is no loop that counts");
    if (!lanes->why) lanes_make_item(lanes);
    if (lanes->why) return;
    lanes_find_sums(lanes);
    lanes_look(lanes);
    if (lanes->why) return;
    rounds->done_alone = lanes_done_beside_calls(lanes);
    lanes_take_for_ones(lanes);
    rounds->trip = known_trip(rounds->loop);
    rounds->sums_meet = lanes_sums_meet(lanes);
    choose_width(lanes);
    if (!lanes->why) lanes_look_for_conflicts(lanes);
    if (!lanes->why) count_rounds(lanes);
    if (!lanes->why && lanes_swap_loops(lanes)) lanes_look(lanes);
}

static void abandon(Attempt *attempt) {
    func_forget(attempt->outline.func);
    arena_free(attempt->lanes.scratch);
}

static double saved_in(Loops *loops, const Region *region);

/* The time that a loop takes less, if several of its rounds are done at once, or of one within it. */
static double saved_by(Loops *loops, Inst *loop) {
    double saved = 0;
    if (!not_tried(loops, loop)) {
        Attempt *attempt = begin(loops, loop);
        consider(attempt);
        const Lanes *lanes = &attempt->lanes;
        if (!lanes->why) saved = lanes_time_alone(lanes) - lanes_time_together(lanes);
        abandon(attempt);
    }
    for (int i = 0; i < loop->nregions && saved == 0; i++) saved = saved_in(loops, loop->regions[i]);
    return lanes_rounds_of(loop) * saved;
}

static double saved_in(Loops *loops, const Region *region) {
    double saved = 0;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_loop) saved += saved_by(loops, inst);
        for (int i = 0; i < inst->nregions && inst->op != OP_loop; i++)
            saved += saved_in(loops, inst->regions[i]);
    }
    return saved;
}

/* Rounds that read and write apart, around a loop whose rounds do so beside each other. */
static bool gains_more_within(const Attempt *attempt) {
    const Lanes *lanes = &attempt->lanes;
    if (lanes->options->width || !lanes_are_scattered(lanes)) return false;
    Loops within = *attempt->outline.loops;
    within.func = attempt->outline.func;
    opt_memory_init(&within.memory, lanes->scratch, within.func);
    double saved = saved_in(&within, attempt->rounds.loop->regions[1]);
    return lanes_time_alone(lanes) - saved < lanes_time_together(lanes);
}

static void widen(Attempt *attempt) {
    Lanes *lanes = &attempt->lanes;
    Func *func = attempt->outline.func;
    make_wide(lanes);
    if (lanes->why) return;
    ir_resolve_func(func);
    opt_cse(func);
    opt_dce(func);
    ir_resolve_func(func);
    func->rounds = lanes->width;
}

static void replace(const Outline *outline) {
    Builder b = build_before(outline->loop);
    ValVec args = {0};
    b.loc = outline->loop->loc;
    for (int i = 0; i < outline->captured.count; i++)
        if (!is_named(outline->captured.at[i]))
            vec_push(outline->loops->scratch, &args, outline->captured.at[i]);
    inst_replace(outline->loop, build_call(&b, outline->func, args.at, args.count));
}

static void tell(const Loops *loops, const Inst *loop, int width, const char *why, Loc loc) {
    if (loops->func->is_library) return;
    LaneRemark remark = {.width = width, .why = why, .loc = loc ? loc : loop->loc};
    loops->remarks->note(loops->remarks->user, loops->func, &remark);
}

/* Was it done? */
static bool try_loop(Loops *loops, Inst *loop) {
    const char *why = not_tried(loops, loop);
    if (why) {
        tell(loops, loop, 1, why, 0);
        return false;
    }
    Attempt *attempt = begin(loops, loop);
    Lanes *lanes = &attempt->lanes;
    attempt->rounds.code_around = lanes_code_around(loops->around, loops->func);
    attempt->rounds.at_most = lanes_rounds_at_most(loops->often, loop);
    consider(attempt);
    if (!lanes->why && gains_more_within(attempt)) lanes_decline(lanes, NULL, "a loop within it gains more");
    if (!lanes->why) widen(attempt);
    bool done = !lanes->why;
    if (done) vec_push(loops->scratch, &loops->done, &attempt->outline);
    else func_forget(attempt->outline.func);
    if (attempt->rounds.is_left) vec_push(loops->scratch, &loops->left, loop);
    if (done) loops->added += lanes_code_added(lanes);
    tell(loops, loop, done ? lanes->width : 1, lanes->why, done ? 0 : lanes->where);
    arena_free(lanes->scratch);
    return done;
}

static void try_region(Loops *loops, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OP_loop && try_loop(loops, inst)) continue;
        for (int i = 0; i < inst->nregions; i++) try_region(loops, inst->regions[i]);
    }
}

static bool has_loop(const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_loop) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (has_loop(inst->regions[i])) return true;
    }
    return false;
}

static void replace_all(const Loops *loops) {
    for (int i = 0; i < loops->done.count; i++) replace(loops->done.at[i]);
    if (loops->done.count) ir_resolve_func(loops->func);
}

static bool is_in_left(void *user, const Func *callee, const Inst *call) {
    const Loops *loops = user;
    (void)callee;
    for (const Region *region = call->parent; region->owner; region = region->owner->parent)
        for (int i = 0; i < loops->left.count; i++)
            if (loops->left.at[i] == region->owner) return true;
    return false;
}

/* LLVM would not copy what others call, too, and then does one round at a time. */
static bool take_in(Loops *loops) {
    InlinePolicy policy = {.max_size = MOST_INLINED, .may = is_in_left, .user = loops, .any_form = true};
    if (loops->left.count == 0 || !opt_inline(loops->func, policy)) return false;
    opt_clean(loops->func, (SroaOptions){0});
    return true;
}

bool opt_lane_loops(Func *const *funcs, int count, const LaneOptions *options, const LaneRemarks *remarks) {
    bool changed = false;
    if (count == 0) return false;
    Arena *scratch = arena_scratch(funcs[0]->module->arena);
    Loops *loops = arena_array(scratch, Loops, count);
    Often *often = lanes_often(scratch, funcs, count, options);
    const Around *around = lanes_around(scratch, funcs, count);
    for (int i = 0; i < count; i++) {
        loops[i] = (Loops){.func = funcs[i],
                           .options = options,
                           .remarks = remarks,
                           .scratch = scratch,
                           .often = often,
                           .around = around};
        if (!has_loop(funcs[i]->body)) continue;
        opt_memory_init(&loops[i].memory, scratch, funcs[i]);
        try_region(&loops[i], funcs[i]->body);
    }
    for (int i = 0; i < count; i++) {
        replace_all(&loops[i]);
        changed |= take_in(&loops[i]) || loops[i].done.count > 0;
    }
    arena_free(scratch);
    return changed;
}
