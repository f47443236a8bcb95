/* Checkpoint: each primal value that the reversed half names is stored by the primal half, or recomputed.
 *
 * Both kinds reappear at the head of the reversed region that mirrors the region of the definition: stored
 * ones first, then recomputed ones in their old order. So each value has one stand-in, which dominates all
 * its uses; a value is stored at most once, and an instruction recomputed at most once, per execution of the
 * primal.
 *
 * Policy. Operands come first, so that a value sees which of them are stored already. The cost of recomputing
 * is that of the operation plus its operands; constants, parameters and stored values are free, and so is an
 * operation that the primal would not need at all, and a [PreferRecompute] call, which the reverse makes
 * again. A call that only reads is made again if what it reads holds the same by then: an element of a
 * DiffBuffer is read twice, not kept; its cost is that of all results that are wanted together. Arrays that
 * come from there are fetched again, or read where they came from (list.c). Never
 * recomputed: results of control flow and other calls, loads from memory that may change, carried values
 * other than induction variables. What costs more than the limit is stored; but where it is a short way from
 * values that cannot be recomputed, and these are computed in an outer loop, or one of them serves several,
 * they are stored instead. What stays in an array that is kept is read there (held.c). What decides which way
 * the primal went is computed again only where that gives the same to the last bit: on another way, nothing
 * was kept. All else may differ in its last digit, so that the quotients among it are free (opt/reciprocal.c).
 *
 * Homes, innermost region first. An `if` yields what its branches keep, in slots that they share. A loop with
 * a known trip count reserves one block of that many elements per value, together with the loops around it
 * that do (nest.c); any other loop pushes, in rounds that are gone back through (taken.c). A function hands
 * slots over. */
#include "autodiff/ad.h"

/* What a processor computes again while it would load what was kept, in units of ir/ops.def; threads of a GPU
 * keep things where all of them together do not fit into its caches. */
enum { RECOMPUTE_LIMIT = 8, RECOMPUTE_LIMIT_MANY_THREADS = 200, NEVER = AD_NEVER };

typedef struct Def {
    Region *region;
    Inst *inst; /* owner of the region, for parameters */
    int index, order;
} Def;

typedef struct Policy {
    Ad *ad;
    const Making *in;
    Checkpoint *out;
    int limit; /* what costs more to compute is kept */
    Def *defs; /* by id */
    uint32_t nids;
    ValVec *order; /* all primal values */
    bool *live, *needed, *stored, *redo;
    bool *pinned;   /* what is computed from it when it is computed again must be the same to the last bit */
    bool *decides;  /* which branch is gone through again, or how often a loop */
    uint8_t *exact; /* EXACT, ROUNDED; 0: not asked yet */
    ValVec spreading; /* live values; their operands are marked next */
    bool *whole;      /* arrays: kept as they are when their region ends */
    Val **bases;      /* ... where on the tape */
    Val **held;       /* values that the reverse reads in such an array: where */
    Map lifted;       /* Region -> ValVec: bases of blocks that it keeps for nests in it */
    Settled *settled;
    int *costs;     /* memo: 0 unknown, else cost + 1 */
    int *seen, now; /* by id: the last walk that came by, and which that is */
    Map readings;   /* call -> what it costs to make it again, plus one */
    Map made_again; /* call -> the one in the reverse */
    Map values_of;  /* Region -> ValVec */
    Map heads;      /* reversed Region -> last Inst of its head */
} Policy;

/* ---- definitions */

static bool is_primal(const Policy *p, const Val *v) {
    return !val_is_const(v) && v->id < p->nids && p->defs[v->id].region;
}

static void define(Policy *p, ValVec *list, Val *v, Region *region, Inst *inst, int index) {
    p->defs[v->id] = (Def){region, inst, index, p->order->count};
    vec_push(p->ad->arena, p->order, v);
    vec_push(p->ad->arena, list, v);
}

static void number(Policy *p, Region *region, Inst *owner) {
    ValVec *list = arena_new(p->ad->arena, ValVec);
    map_put(p->ad->arena, &p->values_of, PTR_KEY(region), list);
    for (int i = 0; i < region->nparams && owner; i++) define(p, list, region->params[i], region, owner, i);
    for (Inst *inst = region->first; inst; inst = inst->next) {
        for (int i = 0; i < inst->nregions; i++) number(p, inst->regions[i], inst);
        for (int i = 0; i < inst->nresults; i++) define(p, list, inst->results[i], region, inst, i);
    }
}

/* ---- what the primal computes anyway */

static void add_live(Policy *p, Val *v) {
    if (val_is_const(v) || v->id >= p->nids || p->live[v->id]) return;
    p->live[v->id] = true;
    vec_push(p->ad->arena, &p->spreading, v);
}

/* To what it is computed from. */
static void spread_live(Policy *p, const Val *v) {
    const Def *def = &p->defs[v->id];
    if (!def->region) return;
    Inst *inst = def->inst;
    if (inst && inst->op == OP_call && v->kind != VAL_param)
        return; /* its arguments are live by themselves */
    if (v->kind == VAL_param) {
        if (inst && inst->op == OP_loop) {
            add_live(p, inst->args[def->index]);
            add_live(p, inst->regions[1]->last->args[def->index]);
        }
        return;
    }
    for (int i = 0; i < inst->nargs && inst->op != OP_loop; i++) add_live(p, inst->args[i]);
    for (int k = 0; k < inst->nregions; k++) {
        Inst *end = inst->regions[k]->last;
        if (inst->op == OP_loop && k == 0) add_live(p, end->args[0]);
        else if (end->op == OP_yield && def->index < end->nargs) add_live(p, end->args[def->index]);
    }
    if (inst->op == OP_loop) add_live(p, inst->args[def->index]);
}

static void mark_live(Policy *p, Val *v) {
    add_live(p, v);
    while (p->spreading.count > 0) spread_live(p, vec_pop(&p->spreading));
}

static bool has_effect(const Inst *inst) {
    if (inst->op == OP_call) return true;
    return op_has(inst->op, OP_WRITES | OP_EFFECT | OP_TAPE);
}

static void live_roots(Policy *p, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        bool root = has_effect(inst) || inst->op == OP_return;
        for (int i = 0; i < inst->nargs && root; i++) mark_live(p, inst->args[i]);
        bool effects = false;
        for (int i = 0; i < inst->nregions; i++) {
            live_roots(p, inst->regions[i]);
            for (const Inst *inner = inst->regions[i]->first; inner; inner = inner->next)
                effects |= has_effect(inner) || inner->nregions;
        }
        if (effects && inst->op != OP_loop) mark_live(p, inst->args[0]);
        if (effects && inst->op == OP_loop) mark_live(p, inst->regions[0]->last->args[0]);
    }
}

/* ---- costs */

/* Memory that holds the same in the reverse as where it is read. */
static bool is_steady(const Policy *p, Val *address, const Inst *at) {
    return ad_root(address) ? ad_is_stable(p->in, address, at)
                            : ad_is_steady(ir_root(address), p->in->steady);
}

/* Of making a call again: it reads, and nothing else. */
static int cost_of_call(Policy *p, const Inst *call) {
    if (map_has(&p->in->mirror, PTR_KEY(call))) return 0; /* the reverse makes it anyway */
    int known = (int)(uintptr_t)map_get(&p->readings, PTR_KEY(call));
    if (known) return known - 1;
    int total = ad_cost_of_reading(p->ad, call, p->in->steady);
    for (int i = 0; i < call->nargs; i++)
        if (call->args[i]->type->kind == TYPE_pointer && !is_steady(p, call->args[i], call)) total = NEVER;
    map_put(p->ad->arena, &p->readings, PTR_KEY(call), (void *)(uintptr_t)(total + 1));
    return total;
}

static bool can_redo(Policy *p, const Val *v) {
    const Def *def = &p->defs[v->id];
    if (v->kind == VAL_param) {
        int64_t first, change;
        if (def->inst->op != OP_loop) return false;
        const LoopInfo *info = ad_loop_info(p->in, def->inst);
        return info && (v == info->counter || loop_ramp(def->inst, def->index, &first, &change));
    }
    if (def->inst->op == OP_load) {
        const Val *root = ad_settled_root(p->settled, def->inst);
        return (root && p->whole[root->id]) || is_steady(p, def->inst->args[0], def->inst);
    }
    if (def->inst->op == OP_call) return cost_of_call(p, def->inst) < NEVER;
    if (def->inst->op == OP_var) return true; /* its address; the memory itself ends with the primal pass */
    return op_has(def->inst->op, OP_PURE) && def->inst->nregions == 0;
}

/* The part of one of its results: it is made once for all that are wanted. */
static int cost_of_result(Policy *p, const Inst *call) {
    int total = cost_of_call(p, call), wanted = 0;
    for (int i = 0; i < call->nresults; i++) wanted += p->needed[call->results[i]->id];
    return total < NEVER && wanted > 1 ? (total + wanted - 1) / wanted : total;
}

static bool is_counter(const Policy *p, const Val *v) {
    return v->kind == VAL_param && v == ad_loop_info(p->in, p->defs[v->id].inst)->counter;
}

/* The operands of what is computed again, one after the other: of a carried value, what it begins with; of a
 * list, all of its values. */
static Val *source(const Policy *p, const Val *v, int index) {
    const Def *def = &p->defs[v->id];
    if (p->held[v->id]) return ad_held_source(p->held[v->id], index);
    if (v->kind == VAL_param) return index || is_counter(p, v) ? NULL : def->inst->args[def->index];
    if (index < def->inst->nargs) return def->inst->args[index];
    const List *list = ad_list_at(p->in->lists, v);
    return list ? ad_list_source(list, index - def->inst->nargs) : NULL;
}

/* Without that of its sources. */
static int own_cost(Policy *p, const Val *v) {
    const Inst *inst = p->defs[v->id].inst;
    if (v->kind == VAL_param) return !is_counter(p, v);
    if (inst->op == OP_call) return cost_of_result(p, inst);
    const List *list = ad_list_at(p->in->lists, v);
    if (list && list->is_made_at_once) return 0; /* for all that is read there */
    return p->live[v->id] ? op_info[inst->op].cost : 0;
}

/* In the reverse, without being computed again. */
static bool is_there(const Policy *p, const Val *v) {
    return !is_primal(p, v) || p->stored[v->id] || p->whole[v->id];
}

static int loop_depth(const Policy *p, const Val *v) {
    int depth = 0;
    for (const Region *r = p->defs[v->id].region; r && r->owner; r = r->owner->parent)
        depth += r->owner->op == OP_loop;
    return depth;
}

static int cost(Policy *p, Val *v);

/* Whole numbers of a loop further out, such as how often this one runs, are computed again once for all
 * rounds. */
static int cost_of_source(Policy *p, const Val *v, Val *of) {
    int total = cost(p, of);
    bool is_shared =
        total && total <= p->limit && type_is_integer(of->type) && loop_depth(p, of) < loop_depth(p, v);
    return is_shared ? 0 : total;
}

static int cost(Policy *p, Val *v) {
    if (is_there(p, v) || p->redo[v->id]) return 0;
    if (p->costs[v->id]) return p->costs[v->id] - 1;
    int total = can_redo(p, v) ? own_cost(p, v) : NEVER;
    for (int i = 0; total < NEVER && source(p, v, i); i++) total += cost_of_source(p, v, source(p, v, i));
    if (total > NEVER) total = NEVER;
    p->costs[v->id] = total + 1;
    return total;
}

/* What remains of `room` when the value and all that it needs have been computed again: each operation once,
 * though several need it. */
static int pay(Policy *p, Val *v, int room) {
    if (is_there(p, v) || p->redo[v->id] || p->costs[v->id] == 1) return room;
    if (p->seen[v->id] == p->now || room < 0) return room;
    p->seen[v->id] = p->now;
    if (!can_redo(p, v)) return -1;
    room -= own_cost(p, v);
    for (int i = 0; source(p, v, i); i++) room = pay(p, source(p, v, i), room);
    return room;
}

/* Is it computed again for no more than that? How often a loop ran is chosen by what it is itself. */
static bool is_cheap(Policy *p, Val *v, int limit) {
    bool is_within = cost(p, v) <= limit;
    bool by_parts = p->ad->m->many_threads || (type_is_integer(v->type) && !is_within);
    if (limit >= NEVER - 1 || !by_parts) return is_within;
    p->now++;
    return pay(p, v, limit) >= 0;
}

/* ---- what is the same when it is computed again */

enum { EXACT = 1, ROUNDED };

/* A product that is added to something may be rounded or not, as the code around it suits. */
static bool may_be_fused(const Val *v) {
    if (v->kind != VAL_inst) return false;
    if (v->inst->op == OP_neg) return may_be_fused(v->inst->args[0]);
    return v->inst->op == OP_mul || v->inst->op == OP_scale;
}

/* Elementary functions of vectors are others than those of scalars; threads of a GPU divide by
 * multiplying. */
static bool may_be_rounded_otherwise(const Policy *p, const Inst *inst) {
    if (inst->nresults == 0 || !type_is_float(type_element(inst->results[0]->type))) return false;
    switch ((Op)inst->op) {
    case OP_add:
    case OP_sub: return may_be_fused(inst->args[0]) || may_be_fused(inst->args[1]);
    case OP_div:
    case OP_ratio:
    case OP_sqrt: return p->ad->m->many_threads;
    case OP_rem: return true;
    default: return op_is_elementary(inst->op);
    }
}

static bool is_exact(Policy *p, Val *v) {
    if (is_there(p, v) || !can_redo(p, v)) return true;
    if (!p->exact[v->id]) {
        p->exact[v->id] = EXACT;
        bool is_rounded = v->kind == VAL_inst && may_be_rounded_otherwise(p, v->inst);
        for (int i = 0; !is_rounded && source(p, v, i); i++) is_rounded = !is_exact(p, source(p, v, i));
        if (is_rounded) p->exact[v->id] = ROUNDED;
    }
    return p->exact[v->id] == EXACT;
}

/* ---- decisions */

static void need(Policy *p, const Val *v);

/* As an address that is computed again, not kept. */
static void need_place(Policy *p, const Val *v) {
    const Inst *inst = v->kind == VAL_inst ? v->inst : NULL;
    bool is_part =
        inst && (op_has(inst->op, OP_PART) || inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes);
    need(p, v);
    for (int i = 0; is_part && i < inst->nargs; i++) need_place(p, inst_operand(inst, i));
}

/* Of a list, all of its values. */
static void need(Policy *p, const Val *v) {
    if (!is_primal(p, v)) return;
    p->needed[v->id] = true;
    const List *list = ad_list_at(p->in->lists, v);
    for (int i = 0; list && ad_list_source(list, i); i++) need_place(p, ad_list_source(list, i));
}

static void note_needed(void *user, Inst *inst) {
    Policy *p = user;
    for (int i = 0; i < inst->nargs; i++) {
        need(p, inst->args[i]);
        bool decides = inst->op == OP_loop || (i == 0 && (inst->op == OP_if || inst->op == OP_switch));
        if (decides && is_primal(p, inst->args[i]) && !type_is_float(inst->args[i]->type))
            p->decides[inst->args[i]->id] = true;
    }
}

static void redo(Policy *p, Val *v) {
    if (is_there(p, v) || p->redo[v->id]) return;
    p->redo[v->id] = true;
    for (int i = 0; source(p, v, i); i++) redo(p, source(p, v, i));
}

static bool can_store(const Val *v) {
    return type_is_scalar(v->type) || v->type->kind == TYPE_pointer || v->type->kind == TYPE_buffer;
}

/* ---- better places: what a value is made from may be kept less often than the value, or serve several of them */

enum { MOST_ORIGINS = 3 };

typedef struct Origins {
    Val *at[MOST_ORIGINS]; /* that cannot be recomputed */
    int count, cost;       /* cost: of the way from them to the value */
} Origins;

/* False: they are too many, or the way is too long, or one is a reference: what is read through it is kept
 * instead, as a reference from a tape has no counterpart in a further derivative. */
static bool find_origins(Policy *p, Val *v, Origins *s) {
    if (is_there(p, v)) return true;
    if (!can_redo(p, v)) {
        for (int i = 0; i < s->count; i++)
            if (s->at[i] == v) return true;
        if (s->count == MOST_ORIGINS || !type_is_scalar(v->type)) return false;
        s->at[s->count++] = v;
        return true;
    }
    s->cost += v->kind == VAL_param || !p->live[v->id] ? 1 : own_cost(p, v);
    if (s->cost > p->limit) return false;
    for (int i = 0; source(p, v, i); i++)
        if (!find_origins(p, source(p, v, i), s)) return false;
    return true;
}

static void prefer_origins(Policy *p) {
    int *served = arena_array(p->ad->arena, int, (int)p->nids);
    for (int i = 0; i < p->order->count; i++) {
        Val *v = p->order->at[i];
        Origins s = {0};
        if (!p->needed[v->id] || !can_redo(p, v) || !find_origins(p, v, &s)) continue;
        bool outer = true;
        for (int k = 0; k < s.count; k++) outer &= loop_depth(p, s.at[k]) < loop_depth(p, v);
        for (int k = 0; k < s.count; k++) served[s.at[k]->id] += outer ? 2 : s.count == 1;
    }
    for (int i = 0; i < p->order->count; i++) {
        const Val *v = p->order->at[i];
        if (served[v->id] >= 2 || (served[v->id] == 1 && p->needed[v->id])) p->stored[v->id] = true;
    }
}

/* ---- arrays */

/* How often an instruction runs while `region` does, as far as that is known. */
static int64_t runs_within(const Policy *p, const Region *region, const Inst *inst) {
    int64_t runs = 1;
    for (const Region *r = inst->parent; r != region; r = r->owner->parent) {
        const LoopInfo *info = r->owner->op == OP_loop ? ad_loop_info(p->in, r->owner) : NULL;
        if (info && info->known && val_is_const(info->trip) && runs < NEVER) runs *= info->trip->integer;
    }
    return runs;
}

/* Of a copy, but by what is itself one. */
static void note_read(void *user, Inst *inst) {
    Policy *p = user;
    const List *copy = inst->op == OP_copy ? ad_list_at(p->in->lists, inst->args[0]) : NULL;
    for (int i = 0; i < inst->nargs && !copy; i++) {
        const Val *root = ir_role(inst, i) == ROLE_read ? ad_root(inst->args[i]) : NULL;
        List *list = root ? ad_list_at(p->in->lists, root) : NULL;
        if (!list || !list->original) continue;
        int64_t size = ad_scalars_in(ir_target(inst->args[i]->type));
        list->left_to_read -= size * runs_within(p, list->var->parent, inst);
        if (list->left_to_read < 0 || inst->op == OP_call) list->original = NULL;
    }
}

/* What is a copy is read where it comes from, but copied again where that is less than what is read of it:
 * other items may have theirs at a distance. A call is given what is in no buffer. */
static void choose_copies(Policy *p) {
    for (int i = 0; i < p->in->lists->by_var.count; i++) {
        List *list = p->in->lists->by_var.entries[i].value;
        if (list->original) list->left_to_read = ad_scalars_in(list->var->type);
    }
    region_walk(p->in->primal, note_read, p);
}

/* Perhaps without its derivative; NULL: it is not read from memory. */
static const Inst *load_of(const Val *v) {
    while (v->kind == VAL_inst && v->inst->op == OP_detach) v = inst_operand(v->inst, 0);
    return v->kind == VAL_inst && v->inst->op == OP_load ? v->inst : NULL;
}

/* An array is kept whole where that is less than what is read of it. */
static void choose_arrays(Policy *p) {
    int64_t *reads = arena_array(p->ad->arena, int64_t, (int)p->nids);
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i < p->order->count; i++) {
            Val *v = p->order->at[i];
            const Inst *inst = p->needed[v->id] ? load_of(v) : NULL;
            if (!inst || is_steady(p, inst->args[0], inst)) continue;
            const Val *root = ad_settled_root(p->settled, inst);
            if (!root || !map_has(&p->in->mirror, PTR_KEY(ad_home(root)))) continue;
            int64_t size = ad_scalars_in(root->type->args[0]);
            if (pass == 0) p->whole[root->id] = size > 1;
            else if (pass == 2) p->whole[root->id] = size > 1 && reads[root->id] >= size;
            else if (cost(p, v) <= 2 * p->limit) reads[root->id] += runs_within(p, ad_home(root), inst);
        }
    memset(p->costs, 0, sizeof *p->costs * p->nids);
}

/* What stays in an array that is kept whole is not kept once more. */
static void read_held(Policy *p) {
    Val **places = ad_find_held(p->ad, p->in->primal, p->nids);
    for (int i = 0; i < p->order->count; i++) {
        const Val *v = p->order->at[i];
        Val *place = p->stored[v->id] ? places[v->id] : NULL;
        bool is_there = place && p->whole[ad_root(place)->id];
        for (int k = 0; is_there && ad_held_source(place, k); k++)
            is_there = cost(p, ad_held_source(place, k)) < NEVER;
        if (!is_there) continue;
        p->stored[v->id] = false;
        p->held[v->id] = place;
    }
}

/* Indices cost little to compute, and they vary with what is there anyway. */
static int limit_of(const Policy *p, const Type *type) {
    if (type->kind == TYPE_pointer || type->kind == TYPE_buffer) return NEVER - 1;
    return type_is_float(type) ? p->limit : 2 * p->limit;
}

/* What was promised to be there. */
static void keep_settled(Policy *p) {
    for (int i = 0; i < p->in->kept_whole.count; i++) {
        const Val *array = p->in->kept_whole.at[i];
        p->whole[array->id] = map_has(&p->in->mirror, PTR_KEY(ad_home(array)));
    }
}

/* Where only some rounds are gone back through, which they are is kept, if something is computed from
 * that. */
static void keep_numbers(Policy *p) {
    for (int i = 0; i < p->in->loops.count; i++) {
        const Inst *loop = (const Inst *)(uintptr_t)p->in->loops.entries[i].key;
        const LoopInfo *info = p->in->loops.entries[i].value;
        const Region *body = loop->regions[1];
        bool is_wanted = false;
        for (int k = 0; k < body->nparams && info->most; k++) is_wanted |= p->redo[body->params[k]->id];
        if (is_wanted) p->stored[info->counter->id] = true;
        if (is_wanted) p->redo[info->counter->id] = false;
    }
}

static bool must_be_exact(const Policy *p, const Val *v) {
    return p->decides[v->id] || type_is_integer(v->type);
}

/* What is kept that this is computed from must stay as it was. */
static void pin(const Policy *p, Val *v) {
    if (!is_primal(p, v) || p->pinned[v->id]) return;
    p->pinned[v->id] = true;
    for (int i = 0; !is_there(p, v) && source(p, v, i); i++) pin(p, source(p, v, i));
}

/* Values that were dear by themselves, and cost little beside all else that is computed again. */
static void drop_cheap(Policy *p) {
    for (int i = 0; i < p->order->count; i++) {
        Val *v = p->order->at[i];
        if (!p->needed[v->id] || p->stored[v->id]) continue;
        redo(p, v);
        if (must_be_exact(p, v)) pin(p, v);
    }
    memset(p->costs, 0, sizeof *p->costs * p->nids);
    for (int i = 0; i < p->order->count; i++) {
        Val *v = p->order->at[i];
        bool may = p->stored[v->id] && p->needed[v->id] && !p->pinned[v->id] && !must_be_exact(p, v);
        if (!may || !can_redo(p, v)) continue;
        p->stored[v->id] = false;
        if (is_cheap(p, v, limit_of(p, v->type))) redo(p, v);
        else p->stored[v->id] = true;
        p->costs[v->id] = 1;
    }
}

static void decide(Policy *p) {
    region_walk(p->in->reversed, note_needed, p);
    choose_copies(p);
    choose_arrays(p);
    keep_settled(p);
    prefer_origins(p);
    for (int i = 0; i < p->order->count; i++) {
        Val *v = p->order->at[i];
        if (!p->needed[v->id] || !can_store(v) || ad_list_at(p->in->lists, v)) continue;
        bool keeps = !is_cheap(p, v, limit_of(p, v->type)) || (must_be_exact(p, v) && !is_exact(p, v));
        p->stored[v->id] = p->stored[v->id] || keeps;
        p->costs[v->id] = 1; /* either way it is there, and free for others */
    }
    drop_cheap(p);
    read_held(p);
    for (int i = 0; i < p->order->count; i++)
        if (p->needed[p->order->at[i]->id]) redo(p, p->order->at[i]);
    for (int i = 0; i < p->order->count; i++) {
        Val *v = p->order->at[i];
        if (p->redo[v->id] && (must_be_exact(p, v) || !type_is_float(type_element(v->type)))) pin(p, v);
    }
    keep_numbers(p);
}

/* ---- heads of reversed regions */

static Builder head_builder(Policy *p, Region *reverse) {
    Inst *last = map_get(&p->heads, PTR_KEY(reverse));
    Inst *next = last ? last->next : reverse->first;
    Builder b = next ? build_before(next) : build_at_end(reverse);
    return b;
}

static void end_head(Policy *p, Region *reverse, const Builder *b) {
    Inst *last = b->before ? b->before->prev : reverse->last;
    if (last) map_put(p->ad->arena, &p->heads, PTR_KEY(reverse), last);
}

static void stand_in(Policy *p, const Val *v, Val *now) {
    map_put(p->ad->arena, &p->out->stand_in, PTR_KEY(v), now);
}

/* ---- the report */

static void tell(Policy *p, const Val *v, const Inst *loop, bool exact) {
    const AdConfig *config = &p->ad->config;
    if (!config->stored || !p->ad->what || (!loop && p->in->f->reversed_at_once)) return;
    const Func *what = p->in->f->source ? p->in->f->source : p->in->f->flat;
    Loc loc = v->kind == VAL_inst ? v->inst->loc : v->region->owner ? v->region->owner->loc : what->loc;
    bool is_exit = loc == 0 && v->type->kind == TYPE_bool;
    const char *operation = is_exit ? "exit" : v->kind == VAL_inst ? op_info[v->inst->op].name : "";
    AdStored row = {.what = what,
                    .name = v->name ? v->name->text : operation,
                    .loc = loc,
                    .loop = loop ? loop->loc : 0,
                    .exact = exact};
    bool whole = v->id < p->nids && p->whole[v->id];
    row.bytes = (int)type_layout(whole ? v->type->args[0] : v->type, LAYOUT_scalar).size;
    config->stored(config->user, &row);
}

/* ---- saving */

static ValVec save_region(Policy *p, Region *region);

/* A block is there from before the nest on, so it is the region around that keeps where it begins. */
static void lift(Policy *p, const Region *region, Val *base) {
    ValVec *lifted = map_get(&p->lifted, PTR_KEY(region));
    if (!lifted) {
        lifted = arena_new(p->ad->arena, ValVec);
        map_put(p->ad->arena, &p->lifted, PTR_KEY(region), lifted);
    }
    vec_push(p->ad->arena, lifted, base);
}

/* What a region of a loop keeps in each iteration: the body, or a part of it that runs at most once. */
static void keep_in_loop(Policy *p, Region *region, Inst *loop, const ValVec *mine) {
    LoopInfo *info = ad_loop_info(p->in, loop);
    Region *reverse = map_get(&p->in->mirror, PTR_KEY(region));
    for (int i = 0; i < mine->count; i++) tell(p, mine->at[i], loop, info->known);
    Keeping keep = {.making = p->in, .region = region, .loop = loop, .head = head_builder(p, reverse)};
    keep.nest = ad_nest(p->ad, p->in, loop->regions[1], mine->count);
    Val **again = ad_keep_in_loop(p->ad, &keep, mine->at, mine->count);
    for (int i = 0; i < mine->count; i++) stand_in(p, mine->at[i], again[i]);
    for (int i = 0; i < keep.bases.count; i++) lift(p, keep.nest.outer->parent, keep.bases.at[i]);
    end_head(p, reverse, &keep.head);
}

/* Only one branch runs, so they share slots: the k-th value of a type of either is the k-th that the `if`
 * yields. */
static void share_slots(Policy *p, Inst *inst, const ValVec *columns, ValVec *kept) {
    Ad *ad = p->ad;
    int n = inst->nregions;
    bool **used = arena_array(ad->arena, bool *, n);
    for (int k = 0; k < n; k++) used[k] = arena_array(ad->arena, bool, columns[k].count + 1);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < columns[k].count; i++) {
            if (used[k][i]) continue;
            Val *first = columns[k].at[i],
                *slot = inst_add_result(inst, first->type,
                                        first->name ? first->name : name_from(ad->m->names, "kept"));
            for (int r = 0; r < n; r++) {
                Val *value = NULL;
                for (int j = 0; j < columns[r].count && !value && r >= k; j++) {
                    if (used[r][j] || columns[r].at[j]->type != first->type) continue;
                    used[r][j] = true;
                    value = columns[r].at[j];
                    stand_in(p, value, slot);
                }
                inst_add_arg(inst->regions[r]->last, value ? value : ad_zero(ad, first->type));
            }
            vec_push(ad->arena, kept, slot);
        }
}

/* Each of the branches around yields on what one in them keeps. Where these are many, and so are the values,
 * they go to the tape instead: or what they take would grow with the square of their number. */
enum { DEEP = 8, MANY_KEPT = 64 };

static bool is_deep(const Inst *branches) {
    int depth = 0;
    for (const Inst *at = branches; depth < DEEP && at && at->op != OP_loop; at = at->parent->owner) depth++;
    return depth == DEEP;
}

/* The number of the round, where only some are gone back through: no greater than that of the last, so that
 * what is found by it is known to be in range (opt/range.c). */
static Val *bounded(Policy *p, Builder *b, const Val *v, Val *again) {
    const Inst *loop = v->kind == VAL_param ? v->region->owner : NULL;
    LoopInfo *info = loop && loop->op == OP_loop ? ad_loop_info(p->in, loop) : NULL;
    if (!info || !info->most || v != info->counter) return again;
    Val *least = build_binary(b, OP_min, build_convert(b, again, info->most->type), info->most);
    info->it = build_convert(b, least, again->type);
    return info->it;
}

/* What a region keeps is pushed at the end of one in it, or its own. */
static void keep_at_end(Policy *p, const Region *region, Region *end, ValVec *mine) {
    Region *reverse = map_get(&p->in->mirror, PTR_KEY(region));
    Builder head = head_builder(p, reverse);
    const Inst *loop = region->owner;
    while (loop && loop->op != OP_loop) loop = loop->parent->owner;
    for (int i = 0; i < mine->count; i++) tell(p, mine->at[i], loop, !map_has(&p->in->taken, PTR_KEY(loop)));
    Val **again = ad_keep_on_stack(p->ad, p->in, end, &head, mine);
    for (int i = 0; i < mine->count; i++) stand_in(p, mine->at[i], bounded(p, &head, mine->at[i], again[i]));
    end_head(p, reverse, &head);
    mine->count = 0;
}

/* What an iteration skips is not kept: a branch of the body of a loop that alone has something to keep does
 * so itself. */
static void save_branches(Policy *p, Inst *inst, ValVec *kept) {
    ValVec *columns = arena_array(p->ad->arena, ValVec, inst->nregions);
    Inst *owner = inst->parent->owner;
    Region *taken = map_get(&p->in->taken, PTR_KEY(inst));
    int keepers = 0, last = 0;
    for (int k = 0; k < inst->nregions; k++) {
        columns[k] = save_region(p, inst->regions[k]);
        if (taken && columns[k].count) keep_at_end(p, inst->regions[k], taken, &columns[k]);
        if (columns[k].count > MANY_KEPT && is_deep(inst))
            keep_at_end(p, inst->regions[k], inst->regions[k], &columns[k]);
        if (columns[k].count == 0) continue;
        keepers++;
        last = k;
    }
    if (keepers == 1 && owner && owner->op == OP_loop)
        keep_in_loop(p, inst->regions[last], owner, &columns[last]);
    else share_slots(p, inst, columns, kept);
}

static void save_loop(Policy *p, Inst *loop) {
    const LoopInfo *info = ad_loop_info(p->in, loop);
    map_put(p->ad->arena, &p->heads, PTR_KEY(info->reverse->regions[1]), info->it->inst);
    ValVec mine = save_region(p, loop->regions[1]);
    Region *taken = map_get(&p->in->taken, PTR_KEY(loop));
    if (mine.count && taken) keep_at_end(p, loop->regions[1], taken, &mine);
    else if (mine.count) keep_in_loop(p, loop->regions[1], loop, &mine);
}

static Nest nest_of_array(Policy *p, const Region *region, const Val *array) {
    return ad_nest(p->ad, p->in, region, ad_scalars_in(array->type->args[0]));
}

/* An array goes to the tape when its region ends. */
static void save_array(Policy *p, Region *region, Val *array) {
    Builder tail = build_before(region->last);
    Nest nest = nest_of_array(p, region, array);
    p->bases[array->id] = ad_save_array(p->ad, p->in, &nest, &tail, array);
    const Inst *loop = region->owner;
    while (loop && loop->op != OP_loop) loop = loop->parent->owner;
    tell(p, array, loop, true);
    lift(p, nest.outer ? nest.outer->parent : region, p->bases[array->id]);
}

static void restore_array(Policy *p, Builder *b, const Region *region, const Val *array) {
    Nest nest = nest_of_array(p, region, array);
    stand_in(p, array, ad_load_array(p->ad, p->in, &nest, b, array, p->bases[array->id]));
}

/* What the region must keep for its mirror; the owner of the region finds it a home. */
static ValVec save_region(Policy *p, Region *region) {
    ValVec kept = {0}, *values = map_get(&p->values_of, PTR_KEY(region));
    for (int i = 0; i < region->nparams && !region->owner; i++)
        if (p->whole[region->params[i]->id]) save_array(p, region, region->params[i]);
    for (int i = 0; i < values->count; i++) {
        Val *v = values->at[i];
        if (p->whole[v->id]) save_array(p, region, v);
        else if (p->stored[v->id]) vec_push(p->ad->arena, &kept, v);
    }
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (!map_has(&p->in->mirror, PTR_KEY(inst))) continue;
        if (inst->op == OP_loop) save_loop(p, inst);
        else if (inst->op == OP_if || inst->op == OP_switch) save_branches(p, inst, &kept);
    }
    const ValVec *lifted = map_get(&p->lifted, PTR_KEY(region));
    for (int i = 0; lifted && i < lifted->count; i++) vec_push(p->ad->arena, &kept, lifted->at[i]);
    return kept;
}

/* ---- restoring */

static Val *times(Policy *p, Builder *b, Val *v, int64_t factor) {
    return build_binary(b, OP_mul, v, ir_const_int(p->ad->m, v->type, factor));
}

static Val *redo_param(Policy *p, Builder *b, const Val *v) {
    const Def *def = &p->defs[v->id];
    const LoopInfo *info = ad_loop_info(p->in, def->inst);
    if (v == info->counter) return info->it;
    int64_t first = 0, change = 0;
    loop_ramp(def->inst, def->index, &first, &change);
    Val *moved = times(p, b, build_convert(b, info->it, v->type), first);
    if (change) { /* by change more in each round */
        const Type *word = info->it->type;
        Val *before = build_binary(b, OP_sub, info->it, ir_const_int(p->ad->m, word, 1));
        Val *pairs = build_binary(b, OP_div, build_binary(b, OP_mul, info->it, before),
                                  ir_const_int(p->ad->m, word, 2));
        moved = build_binary(b, OP_add, moved, times(p, b, build_convert(b, pairs, v->type), change));
    }
    return build_binary(b, OP_add, def->inst->args[def->index], moved);
}

static Inst *redo_inst(const Policy *p, Builder *b, const Val *v) {
    Inst *again = clone_with(b, v->inst, v->inst->args);
    bool is_quotient = again->op == OP_div && type_is_float(type_element(v->type));
    if (is_quotient && !p->pinned[v->id]) again->flags |= INST_FREE;
    return again;
}

/* Is it made again with what is in it? */
static bool is_list_again(const Policy *p, const Val *array) {
    return ad_list_at(p->in->lists, array) && p->redo[array->id];
}

/* What it gives that nobody needs goes elsewhere: there may be more in its place by then. */
static Inst *call_again(Policy *p, Builder *b, const Inst *call) {
    Val **args = arena_copy(p->ad->arena, call->args, sizeof(Val *) * (size_t)call->nargs);
    for (int i = 0; i < call->nargs; i++)
        if (ad_gives_object(call, i) && !is_list_again(p, args[i]))
            args[i] = build_var(b, ir_target(args[i]->type), args[i]->name, false);
    Inst *again = clone_with(b, call, args);
    again->flags &= INST_NO_DIFF;
    return again;
}

/* A call that the reverse makes anyway comes before everything that needs its results. */
static void redo_call(Policy *p, Builder *b, const Inst *call) {
    Inst *again = map_get(&p->in->mirror, PTR_KEY(call));
    if (map_has(&p->made_again, PTR_KEY(call))) return; /* with another of its results */
    if (!again) again = call_again(p, b, call);
    else if (b->before == again) b->before = again->next;
    else {
        inst_remove(again);
        if (b->before) inst_insert_before(b->before, again);
        else inst_append(b->region, again);
    }
    map_put(p->ad->arena, &p->made_again, PTR_KEY(call), again);
    for (int i = 0; i < call->nresults; i++)
        if (!p->stored[call->results[i]->id]) stand_in(p, call->results[i], again->results[i]);
}

/* A tape that stands for one of the primal pass is empty; it is only passed on. */
static void close_at_end(Region *region, Val *tape) {
    bool ended = region->last && op_has(region->last->op, OP_ENDS);
    Builder b = ended ? build_before(region->last) : build_at_end(region);
    build_inst(&b, OP_tape_close, &tape, 1, 0, 0);
}

static void copy_again(Builder *b, const Inst *copy, Val *to) {
    Val *args[] = {to, build_place_again(b, copy->args[1], NULL, NULL)};
    clone_with(b, copy, args)->flags &= INST_NO_DIFF;
}

static void fill_list(Policy *p, Builder *b, const List *list) {
    for (int i = 0; i < list->stores.count && !list->original; i++) {
        const Inst *store = list->stores.at[i];
        if (store->op == OP_call) {
            redo_call(p, b, store);
            continue;
        }
        Val *to = build_place_again(b, store->args[0], NULL, NULL);
        if (store->op == OP_store) build_store(b, to, store->args[1]);
        else copy_again(b, store, to);
    }
}

/* Is it the last that fills one? */
static void fill_lists_at(Policy *p, Builder *b, const Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) {
        const Val *root = ir_role(inst, i) == ROLE_write ? ad_root(inst->args[i]) : NULL;
        const List *list = root ? ad_list_at(p->in->lists, root) : NULL;
        if (list && list->stores.at[list->stores.count - 1] == inst && p->redo[root->id])
            fill_list(p, b, list);
    }
}

/* The lists of a region are filled as soon as what comes before their last element is there again: in order,
 * up to `before`. */
static const Inst *fill_lists(Policy *p, Builder *b, const Inst *from, const Inst *before) {
    for (; from != before; from = from->next) fill_lists_at(p, b, from);
    return from;
}

static void restore_region(Policy *p, Region *region, Region *reverse) {
    const ValVec *values = map_get(&p->values_of, PTR_KEY(region));
    const Inst *next = region->first;
    Builder b = head_builder(p, reverse);
    for (int i = values ? values->count - 1 : -1; i >= 0; i--)
        if (p->whole[values->at[i]->id]) restore_array(p, &b, region, values->at[i]);
    for (int i = region->nparams - 1; i >= 0 && !region->owner; i--)
        if (region->params[i]->id < p->nids && p->whole[region->params[i]->id])
            restore_array(p, &b, region, region->params[i]);
    for (int i = 0; values && i < values->count; i++) {
        Val *v = values->at[i];
        if (v->id >= p->nids || !p->redo[v->id]) continue;
        b.loc = v->kind == VAL_inst ? v->inst->loc : 0;
        if (v->kind == VAL_inst) next = fill_lists(p, &b, next, v->inst);
        if (p->held[v->id]) {
            stand_in(p, v, ad_read_held(&b, p->held[v->id]));
            continue;
        }
        if (v->kind == VAL_inst && v->inst->op == OP_call) {
            redo_call(p, &b, v->inst);
            continue;
        }
        const List *list = ad_list_at(p->in->lists, v);
        if (list && list->original) {
            stand_in(p, v, list->original);
            continue;
        }
        Val *again = v->kind == VAL_param ? redo_param(p, &b, v) : redo_inst(p, &b, v)->results[0];
        if (v->kind == VAL_inst && v->inst->op == OP_tape_open) close_at_end(reverse, again);
        stand_in(p, v, again);
    }
    fill_lists(p, &b, next, NULL);
}

static Val *current(Policy *p, Val *v) {
    while (!val_is_const(v)) {
        Val *now = map_get(&p->out->stand_in, PTR_KEY(v));
        if (!now || now == v) break;
        v = now;
    }
    return v;
}

static void substitute(void *user, Inst *inst) {
    for (int i = 0; i < inst->nargs; i++) inst->args[i] = current(user, inst->args[i]);
    ir_follow_space(inst); /* a copy was elsewhere than the original */
}

/* ---- entries */

typedef struct CheckpointState {
    Checkpoint public;
    Policy policy;
} CheckpointState;

static Policy new_policy(Ad *ad, const Making *in, Checkpoint *out) {
    uint32_t n = in->linear.func->nvals + 1;
    Policy p = {.ad = ad, .in = in, .out = out, .nids = n};
    p.limit = ad->m->many_threads ? RECOMPUTE_LIMIT_MANY_THREADS : RECOMPUTE_LIMIT;
    p.defs = arena_array(ad->arena, Def, n);
    p.live = arena_array(ad->arena, bool, n);
    p.needed = arena_array(ad->arena, bool, n);
    p.stored = arena_array(ad->arena, bool, n);
    p.redo = arena_array(ad->arena, bool, n);
    p.pinned = arena_array(ad->arena, bool, n);
    p.decides = arena_array(ad->arena, bool, n);
    p.exact = arena_array(ad->arena, uint8_t, n);
    p.whole = arena_array(ad->arena, bool, n);
    p.bases = arena_array(ad->arena, Val *, n);
    p.held = arena_array(ad->arena, Val *, n);
    p.costs = arena_array(ad->arena, int, n);
    p.seen = arena_array(ad->arena, int, n);
    p.order = arena_new(ad->arena, ValVec);
    return p;
}

void ad_checkpoint(Ad *ad, Making *making) {
    CheckpointState *state = arena_new(ad->arena, CheckpointState);
    making->checkpoint = &state->public;
    state->policy = new_policy(ad, making, &state->public);
    Policy *p = &state->policy;
    number(p, making->primal, NULL);
    live_roots(p, making->primal);
    p->settled = ad_settle(ad, making->primal, p->nids);
    decide(p);
    state->public.slots = save_region(p, making->primal);
    for (int i = 0; i < state->public.slots.count; i++) tell(p, state->public.slots.at[i], NULL, true);
}

void ad_restore(Ad *ad, const Making *making) {
    CheckpointState *state = (CheckpointState *)(void *)making->checkpoint;
    Policy *p = &state->policy;
    if (state->public.head) map_put(ad->arena, &p->heads, PTR_KEY(making->reversed), state->public.head);
    for (int i = 0; i < making->mirror.count; i++) {
        Region *region = (Region *)(uintptr_t)making->mirror.entries[i].key;
        if (map_has(&p->values_of, PTR_KEY(region)))
            restore_region(p, region, making->mirror.entries[i].value);
    }
    region_walk(making->reversed, substitute, p);
}
