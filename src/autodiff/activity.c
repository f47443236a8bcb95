/* Activity: which values and which memory can carry a derivative that is not zero.
 *
 * Scalars that depend on a differentiable parameter, and local arrays that one of them is ever stored to. All
 * of it is a least fixed point: loops and memory are gone through until nothing changes. What is inactive
 * gets no differential at all. */
#include "autodiff/ad.h"

typedef struct Walk {
    Ad *ad;
    AdMode mode;
    Activity *a;
    bool changed;
} Walk;

/* The var or parameter that an address points into; NULL: a global, a buffer, a pointer. */
Val *ad_root(Val *address) {
    Val *root = ir_root(address);
    if (root->type->kind != TYPE_pointer && root->type->kind != TYPE_tape) return NULL;
    if (root->kind == VAL_param) return root;
    if (root->kind == VAL_inst && (root->inst->op == OP_var || root->inst->op == OP_tape_open)) return root;
    return NULL;
}

static bool is_active(const Walk *w, const Val *v) {
    return v->kind != VAL_const && v->id < w->a->nvals && w->a->vals[v->id];
}

static void activate(Walk *w, const Val *v) {
    if (v->kind == VAL_const || v->id >= w->a->nvals || w->a->vals[v->id]) return;
    w->a->vals[v->id] = true;
    w->changed = true;
}

static bool any_active(const Walk *w, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++)
        if (is_active(w, inst->args[i])) return true;
    return false;
}

static void memory_active(Walk *w, Val *address) {
    Val *root = ad_root(address);
    if (root && ad_differential(w->ad, root->type->kind == TYPE_tape ? root->type : root->type->args[0]))
        activate(w, root);
}

static bool memory_is_active(const Walk *w, Val *address) {
    Val *root = ad_root(address);
    return root && is_active(w, root);
}

bool ad_is_active_address(const Activity *a, Val *address) {
    const Val *root = ad_root(address);
    return root && a->vals[root->id];
}

static void walk_region(Walk *w, Region *region);

bool ad_reads_active(const Activity *a, const Inst *call) {
    Walk w = {.a = (Activity *)(uintptr_t)a};
    for (int i = 0; i < call->nargs; i++) {
        if (is_active(&w, call->args[i])) return true;
        if (call->args[i]->type->kind == TYPE_pointer && memory_is_active(&w, call->args[i])) return true;
    }
    return false;
}

/* Can the call pass a derivative on? A function with a derivative of its own may even if nothing active goes
 * in: reading a buffer that has a gradient, for one. */
bool ad_call_is_live(Ad *ad, const Activity *a, const Inst *call, const CallPlan *plan) {
    if (plan->kind == CALL_plain) return false;
    if (plan->kind == CALL_custom || plan->kind == CALL_counterparts) return true;
    return ad_reads_active(a, call) || ad_gives_references(&plan->callee->leaves) ||
           ad_has(ad, plan->callee, AD_sources);
}

/* The address of a local object as a pointer: the callee may store something active there. */
static bool points_to_local(Val *arg) {
    const Val *root = arg->type->kind == TYPE_pointer ? ad_root(arg) : NULL;
    return root && root->kind == VAL_inst;
}

static void walk_call(Walk *w, Inst *inst) {
    CallPlan plan = ad_plan_call(w->ad, inst, w->mode);
    if (!ad_call_is_live(w->ad, w->a, inst, &plan)) return;
    const Leaves *leaves = &plan.callee->leaves;
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].out >= 0 && !leaves->at[i].dual && type_is_float(leaves->at[i].type))
            activate(w, inst->results[leaves->at[i].out]);
    for (int k = 0; k < leaves->count; k++) {
        int i = leaves->at[k].in;
        if (i < 0 || (leaves->at[k].dual && leaves->at[k].by_ref)) continue;
        bool by_address = (inst->callee->params[i].flags & PARAM_BY_ADDRESS) != 0,
             tape = inst->args[i]->type->kind == TYPE_tape;
        if ((by_address && inst->callee->params[i].dir != DIR_in) || tape ||
            (!by_address && points_to_local(inst->args[i])))
            memory_active(w, inst->args[i]);
    }
}

static void walk_loop(Walk *w, Inst *loop) {
    Region *body = loop->regions[1];
    bool before;
    do {
        before = w->changed;
        w->changed = false;
        for (int i = 0; i < loop->nresults; i++) {
            bool active = is_active(w, loop->args[i]) || is_active(w, body->last->args[i]) ||
                          is_active(w, body->params[i]);
            if (!active) continue;
            activate(w, body->params[i]);
            activate(w, loop->results[i]);
        }
        walk_region(w, body);
        bool again = w->changed;
        w->changed |= before;
        if (!again) break;
    } while (true);
}

static void walk_branches(Walk *w, Inst *inst) {
    for (int k = 0; k < inst->nregions; k++) {
        walk_region(w, inst->regions[k]);
        const Inst *yield = inst->regions[k]->last;
        for (int i = 0; i < inst->nresults; i++)
            if (is_active(w, yield->args[i])) activate(w, inst->results[i]);
    }
}

static void walk_inst(Walk *w, Inst *inst) {
    switch ((Op)inst->op) {
    case OP_if:
    case OP_switch: walk_branches(w, inst); return;
    case OP_loop: walk_loop(w, inst); return;
    case OP_call: walk_call(w, inst); return;
    case OP_load:
    case OP_tape_load:
    case OP_tape_pop:
        if (type_is_float(inst->results[0]->type) && memory_is_active(w, inst->args[0]))
            activate(w, inst->results[0]);
        return;
    case OP_store:
    case OP_tape_push:
    case OP_tape_store:
        if (is_active(w, inst->args[inst->nargs - 1])) memory_active(w, inst->args[0]);
        return;
    case OP_copy:
    case OP_acc:
        if (!inst_has(inst, INST_NO_DIFF) && memory_is_active(w, inst->args[1]))
            memory_active(w, inst->args[0]);
        return;
    case OP_detach:
    case OP_bitcast: return;
    default: break;
    }
    if (!op_has(inst->op, OP_PURE) || inst->nresults != 1 || !type_is_float(inst->results[0]->type)) return;
    if (any_active(w, inst)) activate(w, inst->results[0]);
}

static void walk_region(Walk *w, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) walk_inst(w, inst);
}

Activity ad_activity(Ad *ad, AdFunc *f, AdMode mode) {
    Activity a = {.nvals = f->flat->nvals, .vals = arena_array(ad->arena, bool, f->flat->nvals + 1)};
    Walk w = {ad, mode, &a, false};
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->diff && leaf->in >= 0) activate(&w, f->flat->body->params[leaf->in]);
    }
    do {
        w.changed = false;
        walk_region(&w, f->flat->body);
    } while (w.changed);
    return a;
}
