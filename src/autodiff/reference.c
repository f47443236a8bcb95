/* References: which values of a flat function are accompanied by a counterpart.
 *
 * A parameter of an IDifferentiablePtrType comes with a counterpart, the place of its derivatives. The
 * counterpart goes wherever the reference goes: through choices, loops and local memory. What is computed
 * from a reference (its offset plus one) has none: it is lost, an error where a derivative needs it, unless a
 * function computes it whose forward derivative gives both. What has no connection to such parameters (a
 * buffer of the program, a no_diff parameter) is plain: nothing flows through it.
 *
 * A reference that a reverse pass kept for itself comes from its tape without one, and is not found again
 * either.
 *
 * A least fixed point of: none < plain, paired < kept < lost. The state of memory is that of its root, a var
 * or parameter. */
#include "autodiff/ad.h"

typedef struct Walk {
    Ad *ad;
    AdMode mode;
    Refs *refs;
    bool changed;
} Walk;

/* ---- states */

static Ref of_value(const Walk *w, const Val *v) {
    if (val_is_const(v)) return (Ref){.state = val_is_zero(v) ? REF_none : REF_plain};
    return w->refs->at[v->id];
}

Ref ad_merge_refs(Ref a, Ref b) {
    if (a.state == REF_none) return b;
    if (b.state == REF_none || (a.state == b.state && a.type == b.type)) return a;
    bool kept = (a.state == REF_kept || b.state == REF_kept) && a.state != REF_lost && b.state != REF_lost;
    return (Ref){.state = kept ? REF_kept : REF_lost};
}

static void join(Walk *w, const Val *v, Ref ref) {
    if (val_is_const(v) || type_is_float(v->type)) return;
    Ref *at = &w->refs->at[v->id], now = ad_merge_refs(*at, ref);
    if (now.state == at->state && now.type == at->type) return;
    *at = now;
    w->changed = true;
}

Ref ad_ref_of(const Refs *refs, Val *v) {
    if (val_is_const(v)) return (Ref){.state = val_is_zero(v) ? REF_none : REF_plain};
    Val *root = v->type->kind == TYPE_pointer ? ad_root(v) : NULL;
    return refs->at[root ? root->id : v->id];
}

bool ad_is_number(const Leaf *leaf) {
    const Type *type = leaf->type;
    while (type->kind == TYPE_array) type = type->args[0];
    return leaf->dtype == leaf->type && type_is_scalar(type);
}

bool ad_is_own_number(const Refs *refs, const Leaf *leaf, Val *v) {
    return ad_is_number(leaf) && ad_ref_of(refs, v).state == REF_plain;
}

/* ---- memory */

/* The type of the counterpart of what an address points to, given that of its root; NULL: it has none. */
static const Type *counterpart_at(Walk *w, const Val *address, const Type *root_type) {
    if (address->kind != VAL_inst || !op_has(address->inst->op, OP_PART | OP_MOVES)) return root_type;
    const Inst *inst = address->inst;
    if (inst->op == OP_bitcast) return NULL;
    if (op_has(inst->op, OP_MOVES))
        return counterpart_at(w, ir_resolve(inst->args[inst->op == OP_select]), root_type);
    const Type *base = counterpart_at(w, ir_resolve(inst->args[0]), root_type);
    if (!base) return NULL;
    if (inst->op == OP_elem)
        return base->kind == TYPE_array || base->kind == TYPE_vector ? base->args[0] : NULL;
    int field = ad_counterpart_field(w->ad, inst->args[0]->type->args[0], base, inst->index);
    return field < 0 ? NULL : type_record(base)->fields[field].type;
}

static Ref loaded(Walk *w, Val *address) {
    Val *root = ad_root(address);
    if (!root || root->type->kind == TYPE_tape) return (Ref){.state = root ? REF_kept : REF_plain};
    Ref ref = w->refs->at[root->id];
    if (ref.state != REF_paired) return ref;
    const Type *type = counterpart_at(w, address, ref.type);
    return type ? (Ref){REF_paired, type} : (Ref){.state = REF_plain};
}

/* The type of the counterpart of a root, given that of what an address in it points to. A part of a struct
 * that was taken apart does not tell by its own type: the strides of a tensor are integers like any others.
 * NULL: it lies in a struct. */
static const Type *counterpart_around(Walk *w, const Val *address, const Type *type) {
    if (address->kind != VAL_inst || !op_has(address->inst->op, OP_PART | OP_MOVES)) return type;
    const Inst *inst = address->inst;
    const Val *base = ir_resolve(inst->args[inst->op == OP_select]);
    if (inst->op == OP_bitcast) return NULL;
    if (op_has(inst->op, OP_MOVES)) return counterpart_around(w, base, type);
    const Type *array = base->type->args[0];
    if (inst->op != OP_elem || array->kind != TYPE_array || type_length(array) < 0) return NULL;
    return counterpart_around(w, base, type_array(w->ad->m->types, type, type_length(array)));
}

static void stored(Walk *w, Val *address, Ref ref) {
    Val *root = ad_root(address);
    if (!root || root->type->kind != TYPE_pointer) return;
    if (ref.state == REF_paired) {
        const Type *whole = ad_counterpart(w->ad, root->type->args[0]);
        if (!whole || !counterpart_at(w, address, whole)) whole = counterpart_around(w, address, ref.type);
        ref = whole ? (Ref){REF_paired, whole} : (Ref){.state = REF_lost};
    }
    join(w, root, ref);
}

/* ---- instructions */

static void walk_region(Walk *w, Region *region);

static Ref computed(const Walk *w, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        if (type_is_float(inst->args[i]->type)) continue;
        Ref ref = of_value(w, inst->args[i]);
        if (ref.state == REF_kept) return ref;
        if (ref.state == REF_paired || ref.state == REF_lost) return (Ref){.state = REF_lost};
    }
    return (Ref){.state = REF_plain};
}

static bool takes_more_than_numbers(const Leaves *leaves) {
    for (int i = 0; i < leaves->count; i++)
        if (leaves->at[i].dual && leaves->at[i].in >= 0 && !ad_is_number(&leaves->at[i])) return true;
    return false;
}

/* Of the references that a call gives: they have counterparts if those have that it takes. */
static Ref given_by(const Walk *w, const Inst *call, const CallPlan *plan) {
    const Leaves *leaves = &plan->callee->leaves;
    bool takes = false, is_more = takes_more_than_numbers(leaves);
    Ref all = {0};
    if (plan->callee->source && !ad_knows_counterparts(plan)) return (Ref){.state = REF_lost};
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        if (!leaf->dual || leaf->in < 0 || leaf->dir == DIR_out) continue;
        if (ad_is_own_number(w->refs, leaf, call->args[leaf->in])) continue;
        Ref ref = ad_ref_of(w->refs, call->args[leaf->in]);
        if (ref.state == REF_paired && is_more && ad_is_number(leaf)) continue;
        if (ref.state == REF_paired) ref.type = NULL;
        all = ad_merge_refs(all, ref);
        takes = true;
    }
    return takes ? all : (Ref){.state = plan->custom ? REF_paired : REF_plain};
}

/* Backward derivatives leave the primal half of a pair as it is. */
static Ref given(const Walk *w, const Inst *call, const CallPlan *plan, const Leaf *leaf) {
    const Func *source = plan->callee->source;
    bool stays = source && source->derivation.of && source->derivation.mode == AD_bwd && leaf->in >= 0;
    return stays ? ad_ref_of(w->refs, call->args[leaf->in]) : given_by(w, call, plan);
}

/* The source says that nothing flows there. */
static bool is_dropped(const Inst *call, const AdFunc *callee, const Leaf *leaf) {
    bool declared = callee->source && leaf->param >= 0;
    return inst_has(call, INST_NO_DIFF) ||
           (declared && (callee->source->params[leaf->param].flags & PARAM_NO_DIFF));
}

static void walk_call(Walk *w, const Inst *call) {
    Ref ref = computed(w, call);
    CallPlan plan = ad_plan_call(w->ad, call, w->mode);
    const Leaves *leaves = &plan.callee->leaves;
    for (int i = 0; i < leaves->count; i++) {
        const Leaf *leaf = &leaves->at[i];
        Ref now = plan.kind != CALL_plain && ad_is_given(leaf) ? given(w, call, &plan, leaf) : ref;
        if (now.state == REF_paired) now.type = leaf->dtype;
        if (is_dropped(call, plan.callee, leaf)) now = (Ref){.state = REF_plain};
        bool writes = leaf->in >= 0 && leaf->by_ref && leaf->dir != DIR_in;
        if (leaf->out >= 0) join(w, call->results[leaf->out], now);
        else if (writes && !ad_differential(w->ad, leaf->type)) stored(w, call->args[leaf->in], now);
    }
}

static void walk_loop(Walk *w, const Inst *loop) {
    const Region *cond = loop->regions[0], *body = loop->regions[1];
    for (int i = 0; i < loop->nresults; i++) {
        Ref ref = ad_merge_refs(of_value(w, loop->args[i]), of_value(w, body->last->args[i]));
        join(w, body->params[i], ref);
        join(w, cond->params[i], ref);
        join(w, loop->results[i], ref);
    }
    walk_region(w, loop->regions[0]);
    walk_region(w, loop->regions[1]);
}

static void walk_inst(Walk *w, Inst *inst) {
    switch ((Op)inst->op) {
    case OP_if:
    case OP_switch:
        for (int k = 0; k < inst->nregions; k++) {
            walk_region(w, inst->regions[k]);
            for (int i = 0; i < inst->nresults; i++)
                join(w, inst->results[i], of_value(w, inst->regions[k]->last->args[i]));
        }
        return;
    case OP_loop: walk_loop(w, inst); return;
    case OP_call: walk_call(w, inst); return;
    case OP_var: return;
    case OP_load: join(w, inst->results[0], loaded(w, inst->args[0])); return;
    case OP_store:
        if (!type_is_float(inst->args[1]->type)) stored(w, inst->args[0], of_value(w, inst->args[1]));
        return;
    case OP_copy: {
        Ref ref = loaded(w, inst->args[1]);
        if (ref.state == REF_paired || !ad_differential(w->ad, inst->args[0]->type->args[0]))
            stored(w, inst->args[0], ref);
        return;
    }
    case OP_select:
        join(w, inst->results[0], ad_merge_refs(of_value(w, inst->args[1]), of_value(w, inst->args[2])));
        return;
    case OP_field:
    case OP_elem: return; /* by root */
    case OP_tape_pop:
    case OP_tape_load: join(w, inst->results[0], (Ref){.state = REF_kept}); return;
    default:
        for (int i = 0; i < inst->nresults; i++) join(w, inst->results[i], computed(w, inst));
    }
}

static void walk_region(Walk *w, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) walk_inst(w, inst);
}

/* An object that has derivatives is like one of the function itself: where its address goes, that of its
 * shadow goes along. */
static Ref given_as(const Leaf *leaf, const Param *param) {
    if (leaf->by_ref && leaf->diff) return (Ref){.state = REF_none};
    if (!param->counterpart) return (Ref){.state = REF_lost};
    bool has_one = param->counterpart->kind != TYPE_void;
    return has_one ? (Ref){REF_paired, param->counterpart} : (Ref){.state = REF_plain};
}

Refs ad_references(Ad *ad, const AdFunc *f, AdMode mode) {
    Refs refs = {.at = arena_array(ad->arena, Ref, f->flat->nvals + 1)};
    Walk w = {.ad = ad, .mode = mode, .refs = &refs};
    for (int i = 0; i < f->leaves.count; i++) {
        const Leaf *leaf = &f->leaves.at[i];
        if (leaf->in < 0) continue;
        refs.at[f->flat->body->params[leaf->in]->id] = given_as(leaf, &f->flat->params[leaf->in]);
    }
    do {
        w.changed = false;
        walk_region(&w, f->flat->body);
    } while (w.changed);
    return refs;
}
