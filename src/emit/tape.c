/* How many elements a tape holds at most, which follows from trip counts that are constant. What needs little
 * memory need not grow: it is a local array of who opens it.
 *
 * Counted is what happens to one tape, in order: how much it has grown behind an instruction, and how high it
 * stood meanwhile, both at most. Of branches the greater amount counts; a loop that leaves more than it found
 * adds that in every round. A function that is given the tape is counted once for each of its parameters. */
#include "emit/reach.h"

static const int64_t unknown = INT64_MAX, most = 1 << 24;

/* By kind of element, from TYPE_bool on; unknown: there is no limit. */
typedef struct Amounts {
    int64_t grown[TAPE_KINDS], peak[TAPE_KINDS];
} Amounts;

typedef struct Count {
    const Reached *reached;
    Map *jumps;    /* Func -> LoopJumps */
    bool believes; /* what [MaxIters] says */
    Map done;      /* Val: parameter of a function -> Amounts */
    Loc loose;     /* some place whose amount is not known */
} Count;

/* ---- numbers of which one may be unknown */

static int64_t limited(int64_t n) { return n < most ? n : unknown; }

static int64_t plus(int64_t a, int64_t b) { return a == unknown || b == unknown ? unknown : limited(a + b); }

static int64_t times(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    if (a == unknown || b == unknown) return unknown;
    return a < most / b ? a * b : unknown;
}

static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- trip counts */

static const LoopJumps *jumps_of(const Count *count, const Func *func) {
    LoopJumps *jumps = map_get(count->jumps, PTR_KEY(func));
    if (jumps) return jumps;
    jumps = arena_new(count->reached->arena, LoopJumps);
    *jumps = loop_find_jumps(count->reached->arena, func);
    map_put(count->reached->arena, count->jumps, PTR_KEY(func), jumps);
    return jumps;
}

static int64_t loop_bound(const Count *count, const Inst *loop) {
    int64_t trip = loop_bounded_trips(jumps_of(count, loop->func), loop);
    return trip == unknown && count->believes && loop->hints.max_iters > 0 ? loop->hints.max_iters : trip;
}

/* ---- sizes of blocks */

typedef struct Longest {
    const Count *count;
    int64_t trip;
} Longest;

static void note_loop(void *user, Inst *inst) {
    Longest *longest = user;
    if (inst->op == OP_loop) longest->trip = greater(longest->trip, loop_bound(longest->count, inst));
}

typedef struct Places {
    Arena *arena;
    Map known; /* where a block starts, and what is computed from that */
    bool used;
} Places;

static void note_use(void *user, Inst *inst) {
    Places *places = user;
    for (int i = 0; i < inst->nargs; i++)
        places->used |= map_get(&places->known, PTR_KEY(ir_resolve(inst->args[i]))) != NULL;
}

static void note_results(Places *places, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        map_put(places->arena, &places->known, PTR_KEY(inst->results[i]), inst->results[i]);
}

/* What goes to the block first: a loop, as a rule. */
static Inst *first_user(Places *places, Inst *inst) {
    for (; inst; inst = inst->next) {
        places->used = false;
        note_use(places, inst);
        inst_walk(inst, note_use, places);
        if (!places->used) continue;
        if (!op_has(inst->op, OP_PURE)) return inst;
        note_results(places, inst);
    }
    return NULL;
}

/* A trip count of the loop that the block is for, or of one in it. Nobody knows if that stands in a function
 * that is called. */
static int64_t bound_of_user(const Count *count, const Inst *grow) {
    Places places = {.arena = count->reached->arena};
    Longest longest = {.count = count};
    note_results(&places, grow);
    Inst *inst = first_user(&places, grow->next);
    if (!inst || inst->nregions == 0) return unknown;
    note_loop(&longest, inst);
    inst_walk(inst, note_loop, &longest);
    return longest.trip > 0 ? longest.trip : unknown;
}

static int64_t size_bound(const Count *count, const Inst *grow, const Val *size) {
    int64_t known;
    if (val_is_int(size, &known)) return known;
    if (size->kind == VAL_inst && size->inst->op == OP_mul)
        return times(size_bound(count, grow, ir_resolve(size->inst->args[0])),
                     size_bound(count, grow, ir_resolve(size->inst->args[1])));
    int64_t greatest = ir_most(jumps_of(count, grow->func), size);
    return greatest < 0 ? 0 : greatest < unknown ? limited(greatest) : bound_of_user(count, grow);
}

static bool is_same_block(const Inst *a, const Inst *b) {
    return a->type == b->type && ir_resolve(a->args[0]) == ir_resolve(b->args[0]) &&
           ir_resolve(a->args[1]) == ir_resolve(b->args[1]);
}

/* As much as it grew by before, in the same region. */
static int64_t shrink_bound(const Count *count, const Inst *shrink) {
    int64_t known;
    int others = 0;
    if (val_is_int(ir_resolve(shrink->args[1]), &known)) return known;
    for (const Inst *at = shrink->prev; at; at = at->prev) {
        bool grows = at->op == OP_tape_grow;
        if ((!grows && at->op != OP_tape_shrink) || !is_same_block(at, shrink)) continue;
        others += grows ? -1 : 1;
        if (others >= 0) continue;
        known = size_bound(count, at, ir_resolve(at->args[1]));
        return known == unknown ? 0 : known;
    }
    return 0;
}

/* ---- counting */

static Amounts count_region(Count *count, const Region *region, const Val *tape);

static Amounts no_limit(void) {
    Amounts amounts;
    for (int i = 0; i < TAPE_KINDS; i++) amounts.grown[i] = amounts.peak[i] = unknown;
    return amounts;
}

static bool is_nothing(const Amounts *amounts) {
    for (int i = 0; i < TAPE_KINDS; i++)
        if (amounts->grown[i] || amounts->peak[i]) return false;
    return true;
}

/* One after the other. */
static void add(Count *count, Amounts *to, const Amounts *next, Loc loc) {
    for (int i = 0; i < TAPE_KINDS; i++) {
        int64_t peak = plus(to->grown[i], next->peak[i]);
        if (peak == unknown && to->peak[i] != unknown && !count->loose) count->loose = loc;
        to->peak[i] = greater(to->peak[i], peak);
        to->grown[i] = plus(to->grown[i], next->grown[i]);
    }
}

static const Amounts *count_param(Count *count, const Func *func, int index) {
    const Val *param = func->body->params[index];
    Amounts *amounts = map_get(&count->done, PTR_KEY(param));
    if (amounts) return amounts;
    amounts = arena_new(count->reached->arena, Amounts);
    *amounts = no_limit(); /* as deep as it goes */
    map_put(count->reached->arena, &count->done, PTR_KEY(param), amounts);
    if (!reached_func(count->reached, func)->is_cyclic) *amounts = count_region(count, func->body, param);
    return amounts;
}

/* What a loop inside goes on with stays inside: if that loop uses the tape, it is asked itself. */
static bool leaves(const void *user, const Inst *inst) {
    if (inst->op == OP_return) return true;
    if (inst->op != OP_break && inst->op != OP_continue) return false;
    const Inst *at = inst->target == user ? NULL : inst->target;
    while (at && at != user) at = at->parent->owner;
    return !at;
}

static Amounts count_branches(Count *count, const Inst *inst, const Val *tape) {
    Amounts greatest = {0};
    for (int k = 0; k < inst->nregions; k++) {
        Amounts one = count_region(count, inst->regions[k], tape);
        for (int i = 0; i < TAPE_KINDS; i++) {
            greatest.grown[i] = k ? greater(greatest.grown[i], one.grown[i]) : one.grown[i];
            greatest.peak[i] = greater(greatest.peak[i], one.peak[i]);
        }
    }
    return !is_nothing(&greatest) && inst_find(inst, leaves, inst) ? no_limit() : greatest;
}

/* Nobody knows how often it takes something away. */
static Amounts count_loop(Count *count, const Inst *loop, const Val *tape) {
    Amounts round = count_branches(count, loop, tape), all = {0};
    int64_t trips = loop_bound(count, loop);
    for (int i = 0; i < TAPE_KINDS; i++) {
        int64_t left = round.grown[i] > 0 ? round.grown[i] : 0; /* by each round */
        all.grown[i] = times(left, trips);
        all.peak[i] = plus(times(left, trips > 0 && trips < unknown ? trips - 1 : trips), round.peak[i]);
    }
    return all;
}

static Amounts count_call(Count *count, const Inst *call, const Val *tape) {
    Amounts all = {0};
    for (int i = 0; i < call->nargs; i++)
        if (ir_resolve(call->args[i]) == tape)
            add(count, &all, count_param(count, call->callee, i), call->loc);
    return all;
}

/* A row has an element for each lane. */
static Amounts change(const Type *type, int64_t by) {
    Amounts amounts = {0};
    const Type *scalar = type->kind == TYPE_vector ? type_element(type) : type;
    int kind = (int)scalar->kind - TYPE_bool;
    int64_t elements = by < 0 ? by * type_count(type) : times(by, type_count(type));
    amounts.grown[kind] = elements;
    amounts.peak[kind] = elements > 0 ? elements : 0;
    return amounts;
}

static Amounts count_inst(Count *count, const Inst *inst, const Val *tape) {
    if (inst->op == OP_loop) return count_loop(count, inst, tape);
    if (inst->nregions) return count_branches(count, inst, tape);
    if (inst->op == OP_call) return count_call(count, inst, tape);
    if (inst->nargs == 0 || ir_resolve(inst->args[0]) != tape) return (Amounts){0};
    switch ((Op)inst->op) {
    case OP_tape_push: return change(inst->args[1]->type, 1);
    case OP_tape_pop: return change(inst->results[0]->type, -1);
    case OP_tape_grow: return change(inst->type, size_bound(count, inst, ir_resolve(inst->args[1])));
    case OP_tape_shrink: return change(inst->type, -shrink_bound(count, inst));
    case OP_tape_reach: return no_limit();
    case OP_tape_close: return tape->kind == VAL_inst ? (Amounts){0} : no_limit(); /* not by who opened it */
    default: return (Amounts){0};
    }
}

static Amounts count_region(Count *count, const Region *region, const Val *tape) {
    Amounts total = {0};
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        Amounts one = count_inst(count, inst, tape);
        if (!is_nothing(&one)) add(count, &total, &one, inst->loc);
    }
    return total;
}

/* ---- the tapes of a module */

typedef struct Tapes {
    Reached *reached;
    Count exact, promised;
} Tapes;

static void note_tape(void *user, Inst *inst) {
    if (inst->op != OP_tape_open) return;
    Tapes *tapes = user;
    TapeRoom *room = arena_new(tapes->reached->arena, TapeRoom);
    Amounts exact = count_region(&tapes->exact, inst->parent, inst->results[0]),
            promised = count_region(&tapes->promised, inst->parent, inst->results[0]);
    for (int i = 0; i < TAPE_KINDS; i++) {
        room->exact[i] = exact.peak[i] == unknown ? -1 : exact.peak[i];
        room->promised[i] = promised.peak[i] == unknown ? -1 : promised.peak[i];
        const Type *type = type_basic(inst->func->module->types, (TypeKind)(TYPE_bool + i));
        int64_t size = type_layout(type, LAYOUT_scalar).size;
        room->bytes = exact.peak[i] == unknown || room->bytes < 0 ? -1 : room->bytes + size * exact.peak[i];
    }
    room->loose = tapes->promised.loose;
    map_put(tapes->reached->arena, &tapes->reached->tapes, PTR_KEY(inst), room);
    ReachedFunc *func = reached_func(tapes->reached, inst->func);
    bool stays =
        !func->is_cyclic && !(func->needs & NEEDS_FIBER); /* no stack but its own, and that not deep */
    int64_t most_bytes = inst->func->module->many_threads ? LOCAL_TAPE_MANY_THREADS : LOCAL_TAPE;
    room->is_local = stays && room->bytes >= 0 && room->bytes <= most_bytes;
    if (!room->is_local) func->needs |= NEEDS_RUNTIME;
}

typedef struct Growing {
    Reached *reached;
    bool changed;
} Growing;

static void note_given(void *user, Inst *inst) {
    Growing *growing = user;
    if (inst->op != OP_call) return;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *param = inst->callee->body->params[i];
        if (param->type->kind != TYPE_tape || map_has(&growing->reached->growing, PTR_KEY(param))) continue;
        if (reach_has_room(growing->reached, inst->args[i])) continue;
        map_put(growing->reached->arena, &growing->reached->growing, PTR_KEY(param), growing);
        growing->changed = true;
    }
}

/* From callers to callees, until nothing is new: as often as calls are deep, at most. */
static void find_growing(Reached *reached) {
    Growing growing = {.reached = reached, .changed = true};
    while (growing.changed) {
        growing.changed = false;
        for (int i = 0; i < reached->funcs.count; i++)
            region_walk(reached->funcs.at[i]->func->body, note_given, &growing);
    }
}

void reach_tapes(Reached *reached) {
    Map jumps = {0};
    Tapes tapes = {.reached = reached, .exact = {.reached = reached, .jumps = &jumps}};
    tapes.promised = (Count){.reached = reached, .jumps = &jumps, .believes = true};
    for (int i = 0; i < reached->funcs.count; i++)
        region_walk(reached->funcs.at[i]->func->body, note_tape, &tapes);
    find_growing(reached);
}

const TapeRoom *reach_local_tape(const Reached *reached, Val *tape) {
    const Val *opened = ir_resolve(tape);
    const TapeRoom *room = opened->kind == VAL_inst ? map_get(&reached->tapes, PTR_KEY(opened->inst)) : NULL;
    return room && room->is_local ? room : NULL;
}

bool reach_has_room(const Reached *reached, Val *tape) {
    const Val *known = ir_resolve(tape);
    if (known->kind == VAL_inst) return reach_local_tape(reached, tape) != NULL;
    return !map_has(&reached->growing, PTR_KEY(known));
}

/* ---- pushes and pops in a row */

static const Type *type_on_tape(const Inst *inst) {
    return inst->op == OP_tape_push ? inst->args[1]->type : inst->results[0]->type;
}

static bool is_same_stack(const Inst *a, const Inst *b) {
    return ir_resolve(a->args[0]) == ir_resolve(b->args[0]) && type_on_tape(a) == type_on_tape(b);
}

const Inst *emit_next_in_row(const Inst *inst) {
    const Inst *next = inst->next;
    while (next && next->op == inst->op && !is_same_stack(next, inst)) next = next->next;
    return next && next->op == inst->op ? next : NULL;
}

int emit_count_row(const Inst *inst) {
    int count = 0;
    for (const Inst *i = inst->prev; i && i->op == inst->op; i = i->prev)
        if (is_same_stack(i, inst)) return 0;
    for (const Inst *i = inst; i; i = emit_next_in_row(i)) count++;
    return count;
}
