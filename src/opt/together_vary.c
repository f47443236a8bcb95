/* Which rounds of a loop differ in what, and what of a round may be done together with the others.
 *
 * Late is what has to stay in the order of the rounds: what writes memory that was there before the loop,
 * prints, or uses what the round before has left; and whatever depends on that, or works on memory after it.
 * All of that is done at the end, round by round. What comes before it writes nothing but variables and tapes
 * of its own round, and reads nothing that the late part writes, so that rounds cannot notice each other.
 *
 * What varies is found by going on from the counter: the result of an instruction with an operand that
 * varies; a variable in which something that varies is stored, and a tape on which it is kept; what is
 * written where rounds may go different ways. */
#include "opt/together.h"

bool rounds_vary(const Rounds *r, const Val *v) {
    return v->kind != VAL_const && !v->forward && v->id < r->nids && r->varies[v->id];
}

bool rounds_count(const Inst *loop, int index) {
    int64_t step;
    return loop_step(loop, index, &step);
}

bool rounds_is_late(const Rounds *r, const Inst *inst) { return r->late && inst->note == r; }

/* ---- memory and tapes */

/* A variable of the round that nobody reaches by other ways. */
static bool is_own(const Rounds *r, Val *address) {
    const Val *root = ir_root(address);
    return root->kind == VAL_inst && root->inst->op == OP_var && inst_contains(r->loop, root) &&
           (r->guesses || opt_memory_object(&r->memory, address).is_private);
}

static bool is_own_tape(const Rounds *r, Val *tape) {
    const Val *root = ir_resolve(tape);
    return root->kind == VAL_inst && root->inst->op == OP_tape_open && inst_contains(r->loop, root);
}

typedef void (*PlaceVisitor)(void *user, Val *address, bool writes);

static void visit_operand(const Inst *inst, int i, PlaceVisitor visit, void *user) {
    switch (ir_role(inst, i)) {
    case ROLE_read: visit(user, ir_resolve(inst->args[i]), false); break;
    case ROLE_share:
    case ROLE_write: visit(user, ir_resolve(inst->args[i]), true); break;
    default: break;
    }
    bool reads_too = i == 0 && op_has(inst->op, OP_READS) && op_has(inst->op, OP_WRITES);
    if (reads_too) visit(user, ir_resolve(inst->args[i]), false);
}

/* The memory that an instruction works on. */
static void visit_places(const Inst *inst, PlaceVisitor visit, void *user) {
    if (!op_has(inst->op, OP_READS | OP_WRITES) && inst->op != OP_call) return;
    for (int i = 0; i < inst->nargs; i++) visit_operand(inst, i, visit, user);
}

static void walk(Inst *inst, InstVisitor visit, void *user) {
    visit(user, inst);
    inst_walk(inst, visit, user);
}

/* ---- what the loop writes */

static void note_written(void *user, Val *address, bool writes) {
    Rounds *r = user;
    if (!writes || is_own(r, address)) return;
    Object object = opt_memory_object(&r->memory, address);
    if (object.key) map_put(r->scratch, &r->written, PTR_KEY(object.key), r);
    if (!object.key || !object.is_private) r->writes_unknown = true;
}

static bool is_harmless(const Inst *call) { return (call->callee->flags & (FUNC_PURE | FUNC_HARMLESS)) != 0; }

static bool is_inside(const Inst *owner, const Inst *inst) {
    const Region *region = inst->parent;
    while (region && region->owner != owner) region = region->owner ? region->owner->parent : NULL;
    return region != NULL;
}

static void find_written(void *user, Inst *inst) {
    Rounds *r = user;
    visit_places(inst, note_written, r);
    r->writes_unknown |= inst->op == OP_call && !is_harmless(inst) && !r->guesses;
    if (op_has(inst->op, OP_LEAVES)) r->leaves |= inst->op == OP_return || !is_inside(r->loop, inst->target);
}

/* ---- what is late */

typedef struct Step {
    Rounds *r;
    bool pure, late;
} Step;

static void look_at_place(void *user, Val *address, bool writes) {
    Step *step = user;
    const Rounds *r = step->r;
    if (is_own(r, address)) return;
    Object object = opt_memory_object(&r->memory, address);
    bool is_written = object.key && map_has(&r->written, PTR_KEY(object.key));
    bool may_be = is_written || (r->writes_unknown && !object.is_private && !object.is_constant);
    step->late |= writes || may_be;
}

static void look_at_operand(Step *step, const Val *v) {
    const Rounds *r = step->r;
    bool is_carried = v->kind == VAL_param && v->region == r->loop->regions[1];
    if (is_carried) step->late |= !rounds_count(r->loop, v->index);
    else step->late |= v->kind != VAL_const && r->late[v->id];
}

static void look_at(void *user, Inst *inst) {
    Step *step = user;
    const Rounds *r = step->r;
    for (int i = 0; i < inst->nargs; i++) look_at_operand(step, inst->args[i]);
    visit_places(inst, look_at_place, step);
    bool reads_anything = inst->op == OP_call && !(inst->callee->flags & FUNC_PURE) && !r->guesses;
    step->late |= reads_anything && (!is_harmless(inst) || r->writes_unknown);
    bool is_on_tape = op_has(inst->op, OP_TAPE) || inst->op == OP_tape_close;
    if (is_on_tape) step->late |= !is_own_tape(r, inst->args[0]);
    else if (op_has(inst->op, OP_EFFECT)) step->late |= inst->op != OP_tape_open;
    step->pure &= op_has(inst->op, OP_PURE | OP_REGIONS | OP_ENDS);
}

static void find_late(Rounds *r) {
    bool past = false; /* something that works on memory is late */
    for (Inst *inst = r->loop->regions[1]->first; inst; inst = inst->next) {
        Step step = {.r = r, .pure = true};
        if (inst->op == OP_yield) break;
        walk(inst, look_at, &step);
        step.late |= past && !step.pure;
        past |= step.late && !step.pure;
        inst->note = step.late ? r : NULL;
        for (int i = 0; i < inst->nresults; i++) r->late[inst->results[i]->id] = step.late;
    }
}

/* ---- what varies */

static void set(Rounds *r, const Val *v, bool varies) {
    if (!varies || v->kind == VAL_const || r->varies[v->id]) return;
    r->varies[v->id] = r->changed = true;
}

static void own_place(void *user, Val *address, bool writes) {
    if (writes) set(user, ir_root(address), true);
}

/* What it changes is changed in another way in each round. */
static void own_changes(Rounds *r, const Inst *inst) {
    visit_places(inst, own_place, r);
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_tape) set(r, inst->args[i], true);
}

/* Late code is copied, and so is what it changes. */
static void own_late(void *user, Inst *inst) { own_changes(user, inst); }

static bool ends_with_yield(const Inst *inst) {
    for (int i = 0; i < inst->nregions; i++)
        if (inst->regions[i]->last->op != OP_yield) return false;
    return true;
}

bool rounds_part(const Rounds *r, const Inst *inst) {
    if (inst->op == OP_block || !ends_with_yield(inst)) return true;
    if (inst->op != OP_loop) return rounds_vary(r, inst->args[0]);
    return rounds_vary(r, inst->regions[0]->last->args[0]) || loop_has_jumps(inst);
}

static bool operand_varies(const Rounds *r, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (rounds_vary(r, inst->args[i])) return true;
    return false;
}

static void look_for_varying(const Rounds *r, const Inst *inst, bool *found) {
    *found |= operand_varies(r, inst);
    for (int i = 0; i < inst->nresults; i++) *found |= rounds_vary(r, inst->results[i]);
    for (int i = 0; i < inst->nregions && !*found; i++)
        for (const Inst *inner = inst->regions[i]->first; inner && !*found; inner = inner->next)
            look_for_varying(r, inner, found);
}

bool rounds_vary_in(const Rounds *r, const Inst *inst) {
    bool found = false;
    look_for_varying(r, inst, &found);
    return found;
}

static void visit_region(Rounds *r, const Region *region, bool apart);

/* Does what the way gives vary? It gives nothing if it goes elsewhere. */
static bool way_varies(const Rounds *r, const Region *way, int result) {
    return way->last->op == OP_yield && rounds_vary(r, way->last->args[result]);
}

/* The ways of a construct meet in its results; a loop begins again with what it yields. */
static void join_ways(Rounds *r, const Inst *inst, bool parts) {
    for (int i = 0; i < inst->nresults; i++) {
        bool varies = parts || (inst->op == OP_loop && rounds_vary(r, inst->args[i]));
        for (int k = inst->op == OP_loop; k < inst->nregions && !varies; k++)
            varies = way_varies(r, inst->regions[k], i);
        set(r, inst->results[i], varies);
        for (int k = 0; k < inst->nregions && inst->op == OP_loop; k++)
            set(r, inst->regions[k]->params[i], varies);
    }
}

static void visit_construct(Rounds *r, const Inst *inst, bool apart) {
    bool parts = apart || (rounds_vary_in(r, inst) && rounds_part(r, inst));
    for (int i = 0; i < inst->nregions; i++) visit_region(r, inst->regions[i], parts);
    join_ways(r, inst, parts);
}

static void visit(Rounds *r, const Inst *inst, bool apart) {
    bool varies = operand_varies(r, inst);
    if (inst->nregions) {
        visit_construct(r, inst, apart);
        return;
    }
    for (int i = 0; i < inst->nresults; i++) set(r, inst->results[i], varies);
    if (varies || apart) own_changes(r, inst);
}

static void visit_region(Rounds *r, const Region *region, bool apart) {
    for (const Inst *inst = region->first; inst; inst = inst->next) visit(r, inst, apart);
}

/* Goes on from what is set, in all of a region that is not late. */
static void spread(Rounds *r, const Region *region) {
    do {
        r->changed = false;
        for (const Inst *inst = region->first; inst != region->last; inst = inst->next)
            if (!rounds_is_late(r, inst)) visit(r, inst, false);
    } while (r->changed);
}

static void find_varying(Rounds *r) {
    const Region *body = r->loop->regions[1];
    for (int i = 0; i < body->nparams; i++) set(r, body->params[i], true);
    for (Inst *inst = body->first; inst; inst = inst->next)
        if (rounds_is_late(r, inst)) walk(inst, own_late, r);
    spread(r, body);
}

/* ---- what it would bring */

enum { MOST_CALLERS = 32 };
static const double ROUNDS_GUESSED = 8, COST_OF_CALL = 50;

static double cost_of(const Inst *inst) {
    return inst->op == OP_call ? COST_OF_CALL : op_info[inst->op].cost;
}

static bool counts(const Inst *inst) {
    const Type *type = inst->nresults == 1 ? inst->results[0]->type : NULL;
    return op_has(inst->op, OP_PURE) && type && (type_is_integer(type) || type->kind == TYPE_bool);
}

/* Addresses become part of what uses them. */
static void count_copy(void *user, Inst *inst) {
    int64_t *copies = user;
    *copies += op_info[inst->op].cost > 0 && !op_has(inst->op, OP_PART);
}

static void weigh(Rounds *r, Inst *inst, double often, bool apart);

/* Will it be inlined? Functions that call themselves, through few others, will not. */
static bool is_opened(const Rounds *r, const Inst *inst) {
    int depth = 0;
    if (inst->op != OP_call || !r->guesses || !inst->callee->body) return false;
    for (const Rounds *caller = r; caller; caller = caller->caller, depth++)
        if (caller->func == inst->callee) return false;
    return depth < MOST_CALLERS;
}

/* Of a call with operands that do not vary, and are no constants, some may turn out not to vary either. */
static bool may_share(const Rounds *r, const Inst *call) {
    for (int i = 0; i < call->nargs; i++)
        if (call->args[i]->kind != VAL_const && !rounds_vary(r, call->args[i])) return true;
    return false;
}

void rounds_weigh_func(Rounds *r, const bool *varies, double often, bool apart) {
    const Region *body = r->func->body;
    ir_resolve_func(r->func);
    r->nids = r->func->nvals;
    r->varies = arena_array(r->scratch, bool, r->nids + 1);
    for (int i = 0; i < body->nparams; i++) set(r, body->params[i], varies[i]);
    spread(r, body);
    for (Inst *inst = body->first; inst != body->last; inst = inst->next) weigh(r, inst, often, apart);
}

/* What would be in the place of the call, by which of its operands vary. What it writes is taken for
 * variables of its own. */
static void weigh_inside(Rounds *r, const Inst *call, double often, bool apart) {
    Func *callee = call->callee;
    Rounds inside = {.func = callee, .scratch = r->scratch, .caller = r, .guesses = true, .left = r->left};
    bool *varies = arena_array(r->scratch, bool, callee->body->nparams + 1);
    for (int i = 0; i < call->nargs && i < callee->body->nparams; i++)
        varies[i] = rounds_vary(r, ir_root(call->args[i]));
    rounds_weigh_func(&inside, varies, often, apart);
    r->left = inside.left;
    if (may_share(r, call)) r->shared += inside.shared + COST_OF_CALL;
    r->repeated += inside.repeated;
    r->copies += inside.copies;
}

static void weigh(Rounds *r, Inst *inst, double often, bool apart) {
    bool varies = apart || rounds_vary_in(r, inst);
    if (r->guesses && --r->left < 0) return;
    if (varies && is_opened(r, inst)) {
        weigh_inside(r, inst, often, apart);
        return;
    }
    apart |= varies && inst->nregions && rounds_part(r, inst);
    if (inst->op == OP_loop) often *= ROUNDS_GUESSED;
    if (varies) count_copy(&r->copies, inst);
    r->keeps |= varies && (inst->op == OP_tape_store || inst->op == OP_tape_push);
    if (varies && !inst->nregions) r->repeated += often * cost_of(inst);
    if (!varies) r->shared += often * cost_of(inst);
    if (!varies && counts(inst)) r->counted += often * cost_of(inst);
    for (int i = 0; i < inst->nregions; i++)
        for (Inst *inner = inst->regions[i]->first; inner; inner = inner->next) weigh(r, inner, often, apart);
}

/* What stays in the order of the rounds is repeated, with all that is in it. */
static void weigh_late(Rounds *r, Inst *inst, double often) {
    if (inst->op == OP_loop) often *= ROUNDS_GUESSED;
    count_copy(&r->copies, inst);
    if (!inst->nregions) r->repeated += often * cost_of(inst);
    for (int i = 0; i < inst->nregions; i++)
        for (Inst *inner = inst->regions[i]->first; inner; inner = inner->next) weigh_late(r, inner, often);
}

void rounds_analyse(Rounds *r) {
    const Region *body = r->loop->regions[1];
    r->nids = r->func->nvals;
    r->varies = arena_array(r->scratch, bool, r->nids + 1);
    r->late = arena_array(r->scratch, bool, r->nids + 1);
    opt_memory_init(&r->memory, r->scratch, r->func);
    walk(r->loop, find_written, r);
    find_late(r);
    find_varying(r);
    for (Inst *inst = body->first; inst->op != OP_yield; inst = inst->next) {
        bool is_late = rounds_is_late(r, inst);
        if (is_late) weigh_late(r, inst, 1);
        else weigh(r, inst, 1, false);
        if (!is_late && !inst->nregions && !rounds_vary_in(r, inst)) r->ahead += cost_of(inst);
    }
}
