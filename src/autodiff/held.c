/* Held: values of the primal that stay in a local array until the region of that array ends.
 *
 *     for (i = 0; i < 8; i++) {
 *         c = x[i] - mean[i];
 *         centered[i] = c;
 *         y[i] = scale[i] * c;
 *     }
 *
 * Where `centered` is kept whole, the reverse reads c there, and does not keep it once more. Nothing else
 * writes to the array, and no round of a loop writes where another one did: the counters of all loops between
 * the array and the store are indices that are in range. */
#include "autodiff/ad.h"

typedef struct Search {
    Ad *ad;
    int *writes;   /* by id of an array: instructions that may write to it */
    Inst **stores; /* likewise: one of them */
    ValVec arrays;
    uint32_t nvals;
} Search;

static void note_writes(void *user, Inst *inst) {
    Search *s = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role != ROLE_write && role != ROLE_share && role != ROLE_escape) continue;
        Val *root = ad_root(inst->args[i]);
        if (!root || root->kind != VAL_inst || root->inst->op != OP_var || root->id >= s->nvals) continue;
        if (s->writes[root->id]++ == 0) vec_push(s->ad->arena, &s->arrays, root);
        s->stores[root->id] = inst->op == OP_store && i == 0 ? inst : NULL;
    }
}

/* Is the counter of the loop one of the indices? Then each round has another element. */
static bool is_index(const Val *address, const Inst *loop) {
    int64_t step;
    for (; address->kind == VAL_inst && address->inst->op == OP_elem;
         address = inst_operand(address->inst, 0)) {
        const Val *index = inst_operand(address->inst, 1);
        if (index->kind == VAL_param && index->region == loop->regions[1] &&
            loop_step(loop, index->index, &step))
            return step != 0 && inst_has(address->inst, INST_UNCHECKED);
    }
    return false;
}

/* By counters of loops around it and by constants. */
static bool is_plain(const Val *address, const Val *array) {
    for (; address != array; address = inst_operand(address->inst, 0)) {
        if (address->kind != VAL_inst || address->inst->op != OP_elem) return false;
        const Val *index = inst_operand(address->inst, 1);
        bool is_counter =
            index->kind == VAL_param && index->region->owner && index->region->owner->op == OP_loop;
        if (!val_is_const(index) && !is_counter) return false;
    }
    return true;
}

static bool stays(const Inst *store, const Val *array) {
    const Val *address = inst_operand(store, 0);
    if (!is_plain(address, array)) return false;
    for (const Region *r = store->parent; r != array->inst->parent; r = r->owner->parent)
        if (!r->owner || (r->owner->op == OP_loop && !is_index(address, r->owner))) return false;
    return true;
}

Val **ad_find_held(Ad *ad, Region *primal, uint32_t nvals) {
    Search s = {.ad = ad, .nvals = nvals};
    s.writes = arena_array(ad->arena, int, (int)nvals + 1);
    s.stores = arena_array(ad->arena, Inst *, (int)nvals + 1);
    Val **held = arena_array(ad->arena, Val *, (int)nvals + 1);
    region_walk(primal, note_writes, &s);
    for (int i = 0; i < s.arrays.count; i++) {
        const Val *array = s.arrays.at[i];
        const Inst *store = s.writes[array->id] == 1 ? s.stores[array->id] : NULL;
        Val *value = store ? store->args[1] : NULL;
        bool is_made_there =
            value && value->kind == VAL_inst && value->inst->parent == store->parent && value->id < nvals;
        if (is_made_there && stays(store, array)) held[value->id] = store->args[0];
    }
    return held;
}

Val *ad_held_source(Val *address, int index) {
    for (; address->kind == VAL_inst && address->inst->op == OP_elem;
         address = inst_operand(address->inst, 0))
        if (index-- == 0) return inst_operand(address->inst, 1);
    return index == 0 ? address : NULL;
}

static Val *address_again(Builder *b, Val *address) {
    if (address->kind != VAL_inst || address->inst->op != OP_elem) return address;
    const Inst *elem = address->inst;
    Val *args[] = {address_again(b, inst_operand(elem, 0)), inst_operand(elem, 1)};
    return clone_with(b, elem, args)->results[0];
}

Val *ad_read_held(Builder *b, Val *address) { return build_load(b, address_again(b, address)); }
