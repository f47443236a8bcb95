/* Lists: local arrays that only hold a handful of values on their way to somewhere, as the index {j, i} of a tensor does.
 *
 * An array is a list if each of its elements is stored once, at an index that is known, in the region that the array belongs to, and all
 * that is done with it later is reading it. It need not be kept for the reverse: it is made again there, from its values, each of
 * which is kept or recomputed like any other; an index mostly consists of counters, which cost nothing.
 *
 * Only arrays of integers are lists. Of an array of numbers that carry derivatives, a callee that keeps what it reads may keep less
 * than all of it. */
#include "autodiff/ad.h"

enum { MOST_ELEMENTS = 8 };

typedef struct Search {
    Ad *ad;
    Lists *lists;
} Search;

List *ad_list_at(const Lists *lists, const Val *address) {
    return val_is_const(address) ? NULL : map_get(&lists->by_var, PTR_KEY(address));
}

static void propose(Search *s, Inst *var) {
    const Type *type = var->type;
    if (type->kind != TYPE_array || !type_is_integer(type->args[0]) || type_length(type) > MOST_ELEMENTS)
        return;
    List *list = arena_new(s->ad->arena, List);
    *list = (List){.var = var, .count = (int)type_length(type)};
    list->stores = arena_array(s->ad->arena, Inst *, list->count + 1);
    map_put(s->ad->arena, &s->lists->by_var, PTR_KEY(var->results[0]), list);
}

static bool is_full(const List *list) {
    for (int i = 0; i < list->count; i++)
        if (!list->stores[i]) return false;
    return true;
}

/* The place for a store in the list; NULL: it is none that a list may have. */
static Inst **place_of(const List *list, const Inst *store) {
    if (store->op != OP_store || store->parent != list->var->parent) return NULL;
    const Val *at = store->args[0];
    int64_t index;
    bool direct =
        at->kind == VAL_inst && at->inst->op == OP_elem && at->inst->args[0] == list->var->results[0];
    if (!direct || !val_is_int(at->inst->args[1], &index) || index < 0 || index >= list->count) return NULL;
    return list->stores[index] ? NULL : &list->stores[index];
}

static bool fits(List *list, Inst *inst, int operand) {
    Role role = ir_role(inst, operand);
    if (role == ROLE_part || role == ROLE_value) return true;
    if (role == ROLE_read) return is_full(list);
    Inst **place = role == ROLE_write ? place_of(list, inst) : NULL;
    if (!place) return false;
    *place = list->last = inst;
    return true;
}

static void walk(Search *s, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_var) propose(s, inst);
        for (int i = 0; i < inst->nargs; i++) {
            const Val *root = inst->args[i]->type->kind == TYPE_pointer ? ad_root(inst->args[i]) : NULL;
            List *list = root ? ad_list_at(s->lists, root) : NULL;
            if (list && !fits(list, inst, i)) map_put(s->ad->arena, &s->lists->by_var, PTR_KEY(root), NULL);
        }
        for (int i = 0; i < inst->nregions; i++) walk(s, inst->regions[i]);
    }
}

Lists *ad_find_lists(Ad *ad, const Region *primal) {
    Lists all = {0}, *full = arena_new(ad->arena, Lists);
    Search search = {ad, &all};
    walk(&search, primal);
    for (int i = 0; i < all.by_var.count; i++) {
        List *list = all.by_var.entries[i].value;
        if (list && is_full(list)) map_put(ad->arena, &full->by_var, all.by_var.entries[i].key, list);
    }
    return full;
}
