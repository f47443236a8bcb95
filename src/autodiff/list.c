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
 * Only objects of integers and references are lists of that kind. Of an array of numbers that carry
 * derivatives, a callee that keeps what it reads may keep less than all of it. But an array of any numbers is
 * a list if it is made at once, from buffers that nobody writes:
 *
 *     copy %sample.x, %6                                 by a copy, in a loop: the reverse reads the original
 *     call @"DiffBuffer<Net>.load"(%m.w, %n.data, 0)     by a call that only reads: the reverse makes it again */
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

Val *ad_list_source(const List *list, int index) {
    for (int i = 0; i < list->stores.count; i++) {
        const Inst *store = list->stores.at[i];
        bool calls = store->op == OP_call;
        for (int k = calls ? 0 : 1; k < store->nargs; k++)
            if (!(calls && ad_gives_object(store, k)) && index-- == 0) return store->args[k];
    }
    return NULL;
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
    bool fits = parts.fit && parts.count && !type_is_scalar(var->type);
    if (!fits && ad_scalars_in(var->type) <= 1) return;
    List *list = arena_new(s->ad->arena, List);
    *list = (List){.var = var, .left = fits ? (int)parts.count : 1, .is_made_at_once = !fits};
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

/* What it is a part of, perhaps the whole. */
static const Val *whole_of(const Val *address) {
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART))
        address = inst_operand(address->inst, 0);
    return address;
}

/* In a buffer that nobody writes, or in another list of this kind. */
static bool stays(const Search *s, const Val *address) {
    const Val *whole = whole_of(address);
    const List *other = ad_list_at(s->lists, whole);
    return other ? other->is_made_at_once && other->left == 0 : ad_is_steady(whole, s->making->steady);
}

/* The reverse has another one in place of a derived call, and of one with a pass of its own. */
static bool stays_as_it_is(const Search *s, const Inst *call) {
    CallPlan plan = ad_plan_call(s->ad, call, AD_bwd);
    return inst_has(call, INST_NO_DIFF) || plan.kind == CALL_plain ||
           (plan.kind == CALL_custom && !plan.pass);
}

/* With no more to do than to fetch it. */
static bool only_fetches(const Search *s, const List *list, const Inst *call, int operand) {
    if (!ad_gives_object(call, operand) || inst_has(call, INST_AGAIN) || !stays_as_it_is(s, call))
        return false;
    for (int i = 0; i < call->nargs; i++) {
        bool is_address = call->args[i]->type->kind == TYPE_pointer && !ad_gives_object(call, i);
        if (is_address && !ad_is_stable(s->making, call->args[i], call)) return false;
    }
    return ad_cost_of_reading(s->ad, call, s->making->steady) <= ad_scalars_in(list->var->type);
}

/* Outside of loops an array is there still when the reverse begins (opt/untape.c), or kept once for a call. In
 * C, loops that add to one buffer and read no other become functions, of which compilers are told more
 * (emit/clike/triangles.c). */
static bool is_better_read(const Search *s, const List *list) {
    return inst_loop_around(list->var) && !s->ad->m->keeps_order && stays(s, list->original);
}

static bool make_at_once(const Search *s, List *list, Inst *inst, int operand) {
    bool whole = inst->parent == list->var->parent && inst->args[operand] == list->var->results[0];
    if (!whole || list->left == 0) return false;
    if (inst->op == OP_copy) list->original = inst->args[1];
    else if (inst->op != OP_call || !only_fetches(s, list, inst, operand)) return false;
    if (list->original && !is_better_read(s, list)) return false;
    list->left = 0;
    vec_push(s->ad->arena, &list->stores, inst);
    return true;
}

/* Of what is a copy no address is taken before it is made: it will be one in the original. */
static bool fits(const Search *s, List *list, Inst *inst, int operand) {
    Role role = ir_role(inst, operand);
    if (role == ROLE_value) return true;
    if (role == ROLE_part) return !list->is_made_at_once || list->left == 0;
    if (role == ROLE_read) return list->left == 0;
    if (role != ROLE_write) return false;
    return list->is_made_at_once ? make_at_once(s, list, inst, operand) : fill(s, list, inst);
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

/* If that is a variable, is it a list still? */
static bool has_original(const Lists *full, const List *list) {
    const Val *whole = list->original ? whole_of(list->original) : NULL;
    bool is_var = whole && whole->kind == VAL_inst && whole->inst->op == OP_var;
    return !is_var || ad_list_at(full, whole);
}

Lists *ad_find_lists(Ad *ad, const Making *making) {
    Lists all = {0}, *full = arena_new(ad->arena, Lists);
    Search search = {ad, making, &all};
    walk(&search, making->primal);
    for (int i = 0; i < all.by_var.count; i++) {
        List *list = all.by_var.entries[i].value;
        if (list && list->left == 0 && has_original(full, list))
            map_put(ad->arena, &full->by_var, all.by_var.entries[i].key, list);
    }
    return full;
}
