/* Settle: which reads of a local array, or of an array that is a parameter, see its final content.
 *
 * A variable belongs to a region and begins anew with each execution of it. Of the instructions of that very
 * region, the last one that writes it, itself or somewhere inside, is noted; what is read behind that one is
 * settled: it is what the array holds when the region ends, so that keeping the array once serves all such
 * reads. An array whose address goes elsewhere is never settled. */
#include "autodiff/ad.h"

struct Settled {
    Arena *arena;
    Map positions; /* Inst -> its position in the order of execution */
    int *last;     /* by id of a variable: position of the last write */
    uint32_t nvals;
    int count;
};

static int position_of(const Settled *s, const Inst *inst) {
    int position = (int)(uintptr_t)map_get(&s->positions, PTR_KEY(inst));
    return position ? position : INT32_MAX;
}

/* The instruction of `region` that `inst` is, or is inside of. */
static const Inst *ancestor_in(const Region *region, const Inst *inst) {
    while (inst && inst->parent != region) inst = inst->parent->owner;
    return inst;
}

Region *ad_home(const Val *root) { return root->kind == VAL_param ? root->region : root->inst->parent; }

static void note_use(Settled *s, const Inst *inst, int arg) {
    Role role = ir_role(inst, arg);
    if (role != ROLE_write && role != ROLE_share && role != ROLE_escape) return;
    const Val *root = ad_root(inst->args[arg]);
    if (!root || root->id >= s->nvals) return;
    const Inst *top = ancestor_in(ad_home(root), inst);
    int position = role == ROLE_escape || !top ? INT32_MAX : position_of(s, top);
    if (position > s->last[root->id]) s->last[root->id] = position;
}

static void walk(Settled *s, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        map_put(s->arena, &s->positions, PTR_KEY(inst), (void *)(uintptr_t)++s->count);
        for (int i = 0; i < inst->nargs; i++) note_use(s, inst, i);
        for (int i = 0; i < inst->nregions; i++) walk(s, inst->regions[i]);
    }
}

Settled *ad_settle(Ad *ad, const Region *region, uint32_t nvals) {
    Settled *s = arena_new(ad->arena, Settled);
    *s = (Settled){.arena = ad->arena, .last = arena_array(ad->arena, int, (int)nvals + 1), .nvals = nvals};
    walk(s, region);
    return s;
}

static bool is_settled(const Settled *s, const Val *root, const Inst *at) {
    if (!root || root->type->kind != TYPE_pointer || root->id >= s->nvals) return false;
    const Inst *top = ancestor_in(ad_home(root), at);
    return top && position_of(s, top) != INT32_MAX && position_of(s, top) > s->last[root->id];
}

Val *ad_settled_root(const Settled *s, const Inst *load) {
    Val *root = ad_root(load->args[0]);
    return is_settled(s, root, load) ? root : NULL;
}

bool ad_is_settled_array(const Settled *s, const Val *v, const Inst *at) {
    bool is_array = v->kind == VAL_inst && v->inst->op == OP_var && ad_scalars_in(v->inst->type) > 1;
    return is_array && is_settled(s, v, at);
}
