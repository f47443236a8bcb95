/* Lists: local objects that only hold a handful of values on their way to somewhere, as the index {j, i} of a
 * tensor does, or an array of references.
 *
 * An object is a list if each of its parts is stored once, at a place that is known, in the region that the
 * object belongs to, and all that is done with it later is reading it. It need not be kept for the reverse:
 * it is made again there, from its values, each of which is kept or recomputed like any other; an index
 * mostly consists of counters, which cost nothing, and a reference of a parameter stays with its counterpart,
 * which it would lose on a tape. Several parts may be copied at once, from memory that holds the same in the
 * reverse.
 *
 * Only objects of integers and references are lists. Of an array of numbers that carry derivatives, a callee
 * that keeps what it reads may keep less than all of it. */
#include "autodiff/ad.h"

enum { MOST_PARTS = 8, MOST_PARTS_WITH_REFERENCES = 64 };

typedef struct Search {
    Ad *ad;
    const Making *making;
    Lists *lists;
} Search;

List *ad_list_at(const Lists *lists, const Val *address) {
    return val_is_const(address) ? NULL : map_get(&lists->by_var, PTR_KEY(address));
}

typedef struct Parts {
    int64_t count;
    bool fit, references;
} Parts;

static void count_parts(const Type *type, int64_t times, Parts *parts) {
    bool is_reference = type->kind == TYPE_pointer || type->kind == TYPE_buffer;
    parts->fit &= parts->count + times <= MOST_PARTS_WITH_REFERENCES;
    if (!parts->fit) return;
    if (type->kind == TYPE_array && type_length(type) > 0)
        count_parts(type->args[0], times * type_length(type), parts);
    else if (type->kind == TYPE_record)
        for (int i = 0; i < type_record(type)->nfields; i++)
            count_parts(type_record(type)->fields[i].type, times, parts);
    else {
        parts->count += times;
        parts->fit &= is_reference || (type_is_scalar(type) && !type_is_float(type));
        parts->references |= is_reference;
    }
}

static Parts parts_of(const Type *type) {
    Parts parts = {.fit = true};
    count_parts(type, 1, &parts);
    parts.fit &= parts.count <= (parts.references ? MOST_PARTS_WITH_REFERENCES : MOST_PARTS);
    return parts;
}

static void propose(Search *s, Inst *var) {
    Parts parts = parts_of(var->type);
    if (!parts.fit || !parts.count || type_is_scalar(var->type)) return;
    List *list = arena_new(s->ad->arena, List);
    *list = (List){.var = var, .left = (int)parts.count};
    list->filled = arena_array(s->ad->arena, bool, list->left + 1);
    map_put(s->ad->arena, &s->lists->by_var, PTR_KEY(var->results[0]), list);
}

/* The first part of what an address in the object leads to; negative: nobody knows which. */
static int64_t first_part(const List *list, const Val *at) {
    int64_t index;
    if (at == list->var->results[0]) return 0;
    if (at->kind != VAL_inst || (at->inst->op != OP_elem && at->inst->op != OP_field)) return -1;
    const Inst *inst = at->inst;
    int64_t first = first_part(list, inst->args[0]);
    const Type *whole = ir_target(inst->args[0]->type);
    if (first < 0) return -1;
    if (inst->op == OP_field) {
        for (int i = 0; i < inst->index; i++) first += parts_of(type_record(whole)->fields[i].type).count;
        return first;
    }
    bool is_known = whole->kind == TYPE_array && val_is_int(inst->args[1], &index) && index >= 0 &&
                    index < type_length(whole);
    return is_known ? first + index * parts_of(whole->args[0]).count : -1;
}

/* A store, or a copy of what is still there in the reverse. */
static bool is_filling(const Search *s, const List *list, const Inst *inst) {
    if (inst->parent != list->var->parent) return false;
    if (inst->op == OP_store) return true;
    const Val *from = inst->op == OP_copy ? ad_root(inst->args[1]) : NULL;
    return from && from->kind == VAL_param && ad_is_stable(s->making, inst->args[1], inst);
}

static bool fill(const Search *s, List *list, Inst *inst) {
    int64_t first = is_filling(s, list, inst) ? first_part(list, inst->args[0]) : -1;
    if (first < 0) return false;
    int64_t end = first + parts_of(ir_target(inst->args[0]->type)).count;
    for (int64_t i = first; i < end; i++) {
        if (list->filled[i]) return false;
        list->filled[i] = true;
        list->left--;
    }
    vec_push(s->ad->arena, &list->stores, inst);
    return true;
}

static bool fits(const Search *s, List *list, Inst *inst, int operand) {
    Role role = ir_role(inst, operand);
    if (role == ROLE_part || role == ROLE_value) return true;
    if (role == ROLE_read) return list->left == 0;
    return role == ROLE_write && fill(s, list, inst);
}

static void walk(Search *s, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (inst->op == OP_var) propose(s, inst);
        for (int i = 0; i < inst->nargs; i++) {
            const Val *root = inst->args[i]->type->kind == TYPE_pointer ? ad_root(inst->args[i]) : NULL;
            List *list = root ? ad_list_at(s->lists, root) : NULL;
            if (list && !fits(s, list, inst, i))
                map_put(s->ad->arena, &s->lists->by_var, PTR_KEY(root), NULL);
        }
        for (int i = 0; i < inst->nregions; i++) walk(s, inst->regions[i]);
    }
}

Lists *ad_find_lists(Ad *ad, const Making *making) {
    Lists all = {0}, *full = arena_new(ad->arena, Lists);
    Search search = {ad, making, &all};
    walk(&search, making->primal);
    for (int i = 0; i < all.by_var.count; i++) {
        List *list = all.by_var.entries[i].value;
        if (list && list->left == 0) map_put(ad->arena, &full->by_var, all.by_var.entries[i].key, list);
    }
    return full;
}
