/* Dead code: removes what has no effect, directly or through others.
 *
 * Marking starts from what must stay (returns, effects, stores to memory that others see, loops that may
 * never end) and follows operands. Three things are more than a plain operand:
 *
 *   results      a result of `if`, `switch`, `block` needs only its own place in each yield and break, and a carried
 *                value of a loop only its own place in yields, breaks and continues; the other places go;
 *   control      what is live makes the constructs around it live, with their conditions; a live loop or block
 *                needs the jumps that target it, since they decide what runs;
 *   variables    a store to a local variable is live only once the variable is: when something else than a store
 *                uses its address.
 *
 * A loop in which nothing is live is removed only if it surely ends. */
#include "opt.h"

/* Of every instruction, in Inst.note. */
typedef struct Fate {
    bool live;
    InstVec waiting; /* var: stores and the like to it; loop, block: jumps that target it */
} Fate;

typedef struct Dce {
    Func *func;
    Arena *scratch;
    bool *live;   /* by id of the value */
    InstVec work; /* live, and what they need is not marked yet */
    ValVec vals;  /* likewise: results and parameters of constructs */
    bool changed;
} Dce;

static Fate *fate_of(const Inst *inst) { return inst->note; }

static void make_fate(void *user, Inst *inst) {
    Dce *d = user;
    inst->note = arena_new(d->scratch, Fate);
    inst_resolve(inst);
    if (inst->op == OP_break || inst->op == OP_continue)
        vec_push(d->scratch, &fate_of(inst->target)->waiting, inst);
}

/* ---- marking */

static void mark_inst(Dce *d, Inst *inst) {
    if (fate_of(inst)->live) return;
    fate_of(inst)->live = true;
    vec_push(d->scratch, &d->work, inst);
}

static void mark_val(Dce *d, Val *v) {
    if (v->kind == VAL_const || d->live[v->id]) return;
    d->live[v->id] = true;
    Inst *inst = v->kind == VAL_inst ? v->inst : v->region->owner;
    if (!inst) return; /* a parameter of the function */
    mark_inst(d, inst);
    if (inst->nregions) vec_push(d->scratch, &d->vals, v);
}

/* A result or carried value is needed: so is what it comes from, on every way. */
static void mark_sources(Dce *d, const Val *v) {
    if (v->kind == VAL_param) { /* carried: one fate for all regions */
        mark_val(d, v->region->owner->results[v->index]);
        return;
    }
    const Inst *inst = v->inst;
    bool is_loop = inst->op == OP_loop;
    if (is_loop) mark_val(d, inst->args[v->index]);
    for (int i = is_loop ? 1 : 0; i < inst->nregions; i++) {
        const Inst *end = inst->regions[i]->last;
        if (end->op == OP_yield) mark_val(d, end->args[v->index]);
    }
    const InstVec *jumps = &fate_of(inst)->waiting;
    for (int i = 0; i < jumps->count; i++) mark_val(d, jumps->at[i]->args[v->index]);
}

/* What a live instruction needs, apart from its results. */
static void mark_needs(Dce *d, Inst *inst) {
    if (inst->parent->owner) mark_inst(d, inst->parent->owner);
    const InstVec *waiting = &fate_of(inst)->waiting;
    for (int i = 0; i < waiting->count; i++) mark_inst(d, waiting->at[i]);
    if (inst->op == OP_loop) {
        if (inst->regions[0]->last->op == OP_yield) mark_val(d, inst->regions[0]->last->args[0]);
    } else if (inst->op != OP_break && inst->op != OP_continue && inst->op != OP_yield)
        for (int i = 0; i < inst->nargs; i++) mark_val(d, inst->args[i]);
}

/* ---- where marking starts */

/* The variable that an address is in, or NULL. */
static Inst *variable_of(const Val *address) {
    while (address->kind == VAL_inst && (address->inst->op == OP_field || address->inst->op == OP_elem))
        address = ir_resolve(address->inst->args[0]);
    return address->kind == VAL_inst && address->inst->op == OP_var ? address->inst : NULL;
}

static bool writes_argument(const Inst *call, int index) {
    const Param *param = &call->callee->params[index];
    return (param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in;
}

/* A function without effects changes nothing but what it is given: such a call waits for the variables it
 * writes. */
static bool call_can_wait(Dce *d, Inst *call) {
    if (!(call->callee->flags & (FUNC_PURE | FUNC_HARMLESS))) return false;
    for (int i = 0; i < call->nargs; i++)
        if (writes_argument(call, i) && !variable_of(call->args[i])) return false;
    for (int i = 0; i < call->nargs; i++)
        if (writes_argument(call, i))
            vec_push(d->scratch, &fate_of(variable_of(call->args[i]))->waiting, call);
    return true;
}

static bool store_can_wait(Dce *d, Inst *store) {
    Inst *variable = variable_of(store->args[0]);
    if (variable) vec_push(d->scratch, &fate_of(variable)->waiting, store);
    return variable != NULL;
}

static bool must_stay(Dce *d, Inst *inst) {
    switch ((Op)inst->op) {
    case OP_store:
    case OP_zero:
    case OP_copy:
    case OP_acc: return !store_can_wait(d, inst);
    case OP_call: return !call_can_wait(d, inst);
    case OP_loop: return !loop_is_finite(inst, fate_of(inst)->waiting.at, fate_of(inst)->waiting.count);
    case OP_return: return true;
    case OP_tape_load: return false;
    default: return op_has(inst->op, OP_WRITES | OP_EFFECT | OP_TAPE);
    }
}

static void start(void *user, Inst *inst) {
    if (must_stay(user, inst)) mark_inst(user, inst);
}

/* ---- removal */

/* Keeps the places of `vals` that belong to live results. */
static int keep_live(Dce *d, Val **vals, Val *const *results, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (d->live[results[i]->id]) vals[kept++] = vals[i];
    d->changed |= kept < count;
    return kept;
}

static void trim_end(Dce *d, Inst *inst) {
    const Inst *target = inst->op == OP_yield ? inst->parent->owner : inst->target;
    bool condition = inst->op == OP_yield && target->op == OP_loop && inst->parent == target->regions[0];
    if (!condition) inst->nargs = keep_live(d, inst->args, target->results, inst->nargs);
}

static void renumber(Val **vals, int count) {
    for (int i = 0; i < count; i++) vals[i]->index = i;
}

static void trim_results(Dce *d, Inst *inst) {
    int count = inst->nresults;
    if (inst->op == OP_loop) {
        inst->nargs = keep_live(d, inst->args, inst->results, count);
        for (int i = 0; i < inst->nregions; i++) {
            Region *region = inst->regions[i];
            region->nparams = keep_live(d, region->params, inst->results, count);
            renumber(region->params, region->nparams);
        }
    }
    inst->nresults = keep_live(d, inst->results, inst->results, count);
    renumber(inst->results, inst->nresults);
}

static void sweep(Dce *d, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (inst->op == OP_yield || inst->op == OP_break || inst->op == OP_continue) trim_end(d, inst);
        else if (!op_has(inst->op, OP_ENDS) && !fate_of(inst)->live) {
            inst_remove(inst);
            d->changed = true;
        }
        if (!inst->parent || !inst->nregions) continue;
        for (int i = 0; i < inst->nregions; i++) sweep(d, inst->regions[i]);
        trim_results(d, inst);
    }
}

bool opt_dce_but(Func *func, const InstVec *insts, const ValVec *vals) {
    if (!func->body) return false;
    Dce d = {.func = func, .scratch = arena_scratch(func->module->arena)};
    d.live = arena_array(d.scratch, bool, func->nvals);
    region_walk(func->body, make_fate, &d);
    region_walk(func->body, start, &d);
    for (int i = 0; insts && i < insts->count; i++)
        if (insts->at[i]->parent) mark_inst(&d, insts->at[i]);
    for (int i = 0; vals && i < vals->count; i++) mark_val(&d, ir_resolve(vals->at[i]));
    while (d.work.count || d.vals.count) {
        if (d.work.count) mark_needs(&d, vec_pop(&d.work));
        else mark_sources(&d, vec_pop(&d.vals));
    }
    sweep(&d, func->body);
    arena_free(d.scratch);
    return d.changed;
}

bool opt_dce(Func *func) { return opt_dce_but(func, NULL, NULL); }
