/* Which values are the same for all lanes?
 *
 * All are, until something says otherwise: the index of a thread varies, so does what is computed from it,
 * and what is loaded by an address that varies. Parts of a vector are told apart: the second number of a
 * thread's index is the same for threads of a row. An `if` whose condition varies is divergent, its results
 * vary; so is a loop whose condition does: some lanes leave it before others. Inside, a value is the same for
 * all lanes that are on, though not for the others: a counter of rounds is, also in a loop with a break,
 * after which it would not have been counted up: lanes that go on have not met it.
 *
 * Memory: a variable is one object for all lanes as long as the same is stored to it at the same places, by
 * all lanes at the time (atomic operations are by each lane), that is not deeper inside divergent constructs
 * than where it was made. Otherwise it is spread: one for each. The same goes for the stacks of a tape. All
 * other memory is shared anyway.
 *
 * What varies only grows, so that walks over the function come to an end. Which loops are divergent is known
 * only then, so that what concerns the others is done in a second round. */
#include "opt/lanes.h"

bool lanes_is_spread(Val *address) {
    const Val *root = ir_root(address);
    if (root->kind != VAL_inst || root->inst->op != OP_var) return false;
    return ((const VarUse *)root->inst->note)->spread;
}

TapeUse *lanes_tape_use(Val *tape) {
    tape = ir_resolve(tape);
    return tape->kind == VAL_inst && tape->inst->op == OP_tape_open ? tape->inst->note : NULL;
}

TapeUse *lanes_tape(const Inst *inst) {
    return lanes_tape_use(inst->op == OP_tape_open ? inst->results[0] : inst->args[0]);
}

static void set(Lanes *lanes, const Val *v, uint32_t bits) {
    bits &= all_parts(v->type);
    if ((lanes->varies[v->id] | bits) == lanes->varies[v->id]) return;
    lanes->varies[v->id] |= bits;
    lanes->changed = true;
}

static uint32_t of(const Lanes *lanes, const Inst *inst, int arg) {
    return varies(lanes, ir_resolve(inst->args[arg]));
}

static bool any_operand(const Lanes *lanes, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (of(lanes, inst, i)) return true;
    return false;
}

/* ---- vectors */

static bool lane_of(const Inst *inst, int arg, int64_t *lane) {
    int count = type_count(inst->args[0]->type);
    if (!val_is_int(ir_resolve(inst->args[arg]), lane)) return false;
    if (*lane < 0 || *lane >= count) *lane = count - 1;
    return true;
}

static uint32_t vector_bits(const Lanes *lanes, const Inst *inst) {
    uint32_t first = inst->nargs ? of(lanes, inst, 0) : 0, bits = 0;
    int64_t lane;
    switch ((Op)inst->op) {
    case OP_vec:
        for (int i = 0; i < inst->nargs; i++) bits |= (of(lanes, inst, i) & 1) << i;
        return bits;
    case OP_extract:
        if (lane_of(inst, 1, &lane)) return first >> lane & 1;
        break;
    case OP_insert:
        if (!lane_of(inst, 1, &lane)) break;
        return (first & ~((uint32_t)1 << lane)) | (of(lanes, inst, 2) & 1) << lane;
    case OP_shuffle:
        for (int i = 0; i < parts_of(inst->results[0]->type); i++) bits |= (first >> inst->lanes[i] & 1) << i;
        return bits;
    default: break;
    }
    return any_operand(lanes, inst) ? UINT32_MAX : 0;
}

static uint32_t thread_bits(const Lanes *lanes, const Inst *inst) {
    if (lanes->rounds) return 0; /* it is one thread that goes through them */
    bool of_thread = inst->index == 0 || (lanes->along_groups ? inst->index == 1 : inst->index >= 2);
    return of_thread && inst->index <= 3 ? 1 : 0;
}

static uint32_t plain_bits(const Lanes *lanes, const Inst *inst) {
    if (op_has(inst->op, OP_ELEMENTWISE)) {
        uint32_t bits = 0;
        for (int i = 0; i < inst->nargs; i++) bits |= of(lanes, inst, i);
        return bits;
    }
    if (inst->op == OP_select) {
        uint32_t condition = of(lanes, inst, 0);
        if (condition && inst->args[0]->type->kind != TYPE_vector) return UINT32_MAX;
        return condition | of(lanes, inst, 1) | of(lanes, inst, 2);
    }
    if (inst->op == OP_thread_id) return thread_bits(lanes, inst);
    if (inst->op == OP_wave) return 0; /* all get the same table */
    if (inst->op == OP_atomic || inst->op == OP_atomic_cas) return 1;
    return vector_bits(lanes, inst);
}

/* ---- memory */

static void spread_object(Lanes *lanes, Val *address) {
    const Val *root = ir_root(address);
    if (root->kind != VAL_inst || root->inst->op != OP_var) return;
    VarUse *use = root->inst->note;
    lanes->changed |= !use->spread;
    use->spread = true;
}

static void note_write(Lanes *lanes, const Inst *inst, int level) {
    const Val *root = ir_root(inst->args[0]);
    if (root->kind != VAL_inst || root->inst->op != OP_var) return;
    const VarUse *use = root->inst->note;
    bool reads = op_has(inst->op, OP_TWO_OBJECTS) && lanes_is_spread(inst->args[1]);
    bool adds_up = inst->op == OP_atomic || inst->op == OP_atomic_cas; /* each lane by itself */
    if (any_operand(lanes, inst) || reads || adds_up || level > use->level)
        spread_object(lanes, inst->args[0]);
}

/* An index that varies, into a variable that does not: loads give what varies, but the variable need not be
 * spread. */
static uint32_t load_bits(const Lanes *lanes, const Inst *inst) {
    return of(lanes, inst, 0) || lanes_is_spread(inst->args[0]) ? UINT32_MAX : 0;
}

static void part_tape(Lanes *lanes, Val *tape) {
    TapeUse *use = lanes_tape_use(tape);
    if (!use || use->apart) return;
    use->apart = lanes->changed = true;
}

/* A call for each lane, which writes to what is its own. */
static void note_call(Lanes *lanes, const Inst *call) {
    if (lanes_calls_once(lanes, call)) return;
    for (int i = 0; i < call->nargs; i++)
        if (call->args[i]->type->kind == TYPE_tape) part_tape(lanes, call->args[i]);
    for (int i = 0; i < call->nresults; i++) set(lanes, call->results[i], UINT32_MAX);
    for (int i = 0; i < call->nargs; i++)
        if (ir_target(call->args[i]->type) && call->callee->params[i].dir != DIR_in)
            spread_object(lanes, call->args[i]);
}

/* ---- tapes */

/* Blocks of different sizes, where lanes are not all on: with room for the lane that wants the most, where a
 * lane's next block begins would depend on which lanes are on. In the reverse of a loop that lanes leave one
 * after the other those are others, and what is kept on one tape may say where to look on another, that of
 * its adjoints. */
static bool has_own_blocks(const Lanes *lanes, const Inst *inst, const TapeUse *use) {
    return inst->op == OP_tape_grow && use->level > 0 && of(lanes, inst, 1);
}

static void note_tape(Lanes *lanes, const Inst *inst, int level) {
    TapeUse *use = lanes_tape(inst);
    if (!use && inst->op == OP_tape_load) set(lanes, inst->results[0], of(lanes, inst, 1));
    if (inst->op == OP_tape_open || inst->op == OP_tape_close || !use) return;
    if (use->apart) {
        if (inst->nresults) set(lanes, inst->results[0], 1);
        return;
    }
    bool *spread = &use->spread[ir_on_stack(inst)->kind - TYPE_bool];
    bool deep = level > use->level, moves = inst->op <= OP_tape_shrink;
    if (!*spread && (deep || any_operand(lanes, inst))) *spread = lanes->changed = true;
    bool uneven = *spread && moves && (deep || has_own_blocks(lanes, inst, use));
    if (uneven && !use->uneven) use->uneven = lanes->changed = true;
    bool is_base = inst->op == OP_tape_grow;
    if (inst->nresults && (is_base ? use->uneven && *spread : *spread)) set(lanes, inst->results[0], 1);
}

/* ---- control flow */

static void visit_region(Lanes *lanes, const Region *region, int level);

static void join_yields(Lanes *lanes, const Inst *inst, int first_region) {
    for (int r = first_region; r < inst->nregions; r++) {
        const Inst *end = inst->regions[r]->last;
        for (int i = 0; i < inst->nresults && end->op == OP_yield; i++)
            set(lanes, inst->results[i], of(lanes, end, i));
    }
}

static void visit_choice(Lanes *lanes, const Inst *inst, int level) {
    bool divergent = of(lanes, inst, 0) != 0;
    for (int r = 0; r < inst->nregions; r++) visit_region(lanes, inst->regions[r], level + divergent);
    join_yields(lanes, inst, 0);
    for (int i = 0; i < inst->nresults && divergent; i++) set(lanes, inst->results[i], UINT32_MAX);
}

/* Is `given`, of the body, what the condition finds as `wanted` in the next round? */
static bool is_same_test(const Inst *loop, const Val *wanted, const Val *given) {
    if (wanted->kind != VAL_inst || given->kind != VAL_inst) return false;
    const Inst *a = wanted->inst, *b = given->inst;
    if (a->op != b->op || a->nargs != b->nargs || !op_has(a->op, OP_PURE) || !op_has(a->op, OP_ELEMENTWISE))
        return false;
    for (int i = 0; i < a->nargs; i++) {
        const Val *x = ir_resolve(a->args[i]), *y = ir_resolve(b->args[i]);
        bool is_carried = x->kind == VAL_param && x->region == loop->regions[0];
        if (is_carried) x = ir_resolve(loop->regions[1]->last->args[x->index]);
        int64_t m, n;
        bool equal = x == y || (x->type == y->type && val_is_int(x, &m) && val_is_int(y, &n) && m == n);
        if (!equal) return false;
    }
    return true;
}

/* Does the loop go on only if that holds? */
static bool is_required(const Inst *loop, const Val *condition, const Val *given) {
    if (condition->kind == VAL_inst && condition->inst->op == OP_and)
        return is_required(loop, ir_resolve(condition->inst->args[0]), given) ||
               is_required(loop, ir_resolve(condition->inst->args[1]), given);
    return is_same_test(loop, condition, given);
}

Val *lanes_goes_on_with(const Inst *loop, int index) {
    Val *next = ir_resolve(loop->regions[1]->last->args[index]);
    if (next->kind != VAL_inst || next->inst->op != OP_select) return next;
    const Inst *choice = next->inst;
    bool required =
        is_required(loop, ir_resolve(loop->regions[0]->last->args[0]), ir_resolve(choice->args[0]));
    return required ? ir_resolve(choice->args[1]) : next;
}

static void visit_loop(Lanes *lanes, const Inst *loop, int level) {
    const Inst *test = loop->regions[0]->last;
    bool divergent = of(lanes, test, 0) != 0;
    for (int i = 0; i < loop->nargs; i++) {
        uint32_t bits = of(lanes, loop, i) | varies(lanes, lanes_goes_on_with(loop, i));
        if (bits || (lanes->settled && !divergent)) bits |= of(lanes, loop->regions[1]->last, i);
        set(lanes, loop->regions[0]->params[i], bits);
        set(lanes, loop->regions[1]->params[i], bits);
        set(lanes, loop->results[i], divergent ? UINT32_MAX : bits);
    }
    visit_region(lanes, loop->regions[0], level + divergent);
    visit_region(lanes, loop->regions[1], level + divergent);
}

static void visit(Lanes *lanes, Inst *inst, int level) {
    if (inst->op == OP_loop) visit_loop(lanes, inst, level);
    else if (op_has(inst->op, OP_REGIONS)) visit_choice(lanes, inst, level);
    else if (inst->op == OP_var) ((VarUse *)inst->note)->level = level;
    else if (inst->op == OP_tape_open) ((TapeUse *)inst->note)->level = level;
    else if (is_for_tape(inst)) note_tape(lanes, inst, level);
    else if (inst->op == OP_call) note_call(lanes, inst);
    else if (inst->op == OP_load) set(lanes, inst->results[0], load_bits(lanes, inst));
    else if (inst->nresults == 1) set(lanes, inst->results[0], plain_bits(lanes, inst));
    if (op_has(inst->op, OP_WRITES)) note_write(lanes, inst, level);
}

static void visit_region(Lanes *lanes, const Region *region, int level) {
    for (Inst *inst = region->first; inst; inst = inst->next) visit(lanes, inst, level);
}

/* ---- the whole */

static void make_note(void *user, Inst *inst) {
    Lanes *lanes = user;
    if (inst->op == OP_var) inst->note = arena_new(lanes->scratch, VarUse);
    if (inst->op == OP_tape_open) inst->note = arena_new(lanes->scratch, TapeUse);
}

bool lanes_varies_here(const Lanes *lanes, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (varies(lanes, inst->results[i])) return true;
    for (int i = 0; i < inst->nargs; i++) {
        Val *arg = ir_resolve(inst->args[i]);
        if (varies(lanes, arg) || (ir_target(arg->type) && lanes_is_spread(arg))) return true;
    }
    return false;
}

/* Which round it is, and what the rounds before have added up. */
static void note_params(Lanes *lanes) {
    const Region *body = lanes->from->body;
    int count = lanes->rounds ? lanes->rounds->ncounters + lanes->rounds->nsums : 0;
    for (int i = 0; i < count; i++) set(lanes, body->params[i], UINT32_MAX);
}

void lanes_find_varying(Lanes *lanes) {
    lanes->varies = arena_array(lanes->scratch, uint32_t, lanes->from->nvals + 1);
    note_params(lanes);
    region_walk(lanes->from->body, make_note, lanes);
    for (int round = 0; round < 2; round++) {
        lanes->settled = round == 1;
        do {
            lanes->changed = false;
            visit_region(lanes, lanes->from->body, 0);
        } while (lanes->changed);
    }
}
