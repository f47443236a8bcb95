/* Asked before: an `if` on a condition that decided another one before it goes the same way, and what that
 * has computed on this way is there.
 *
 *     if (c) { s = sin(x); y = s * a; }                 Two derivatives of one function, in two directions, both go the ways of the
 *     if (c) { t = sin(x); z = t * b; }                 function; so do a function and its reverse.
 *
 * cse.c sees one way at a time. Here the instructions of both ifs are matched, way by way, ifs inside of them
 * too: a twin computes the same from the same. A result of the second that all ways make of twins is the
 * result of the first. Of what else the second uses, the first gives what is dear as further results; what
 * takes few steps from there is computed again, which costs no more than to hand it over.
 *
 * Twins are instructions without effects on operands that are twins or come from outside; what reads memory
 * has none. */
#include "opt.h"

enum { DEAR = 6 }; /* by op_info: a square root, or a quotient and two products */

typedef struct Entry Entry;
struct Entry {
    Inst *inst;
    Entry *next; /* same hash */
};

/* What stands for a value of the second `if`, in the first. */
typedef struct Twin {
    Val *of;
    int cost;     /* of computing it again, from twins that are dear */
    Val *outside; /* what stands for it after the first; NULL: nothing yet */
} Twin;

typedef struct Asked {
    Func *func;
    Arena *scratch;
    Map first; /* condition -> the first `if` in scope that it decides */
    ValVec conditions;
    Map tables; /* region of such -> Map: hash -> Entry, of what may have a twin */
    Map twins;  /* value of the second -> Twin */
    bool changed;
} Asked;

/* ---- twins */

static Twin *twin_of(const Asked *a, const Val *v) {
    return v->kind == VAL_const ? NULL : map_get(&a->twins, PTR_KEY(v));
}

static Val *in_first(const Asked *a, Val *v) {
    const Twin *twin = twin_of(a, v);
    return twin ? twin->of : v;
}

static void add_twin(Asked *a, const Val *v, Val *of, int cost) {
    Twin *twin = arena_new(a->scratch, Twin);
    *twin = (Twin){of, cost, NULL};
    map_put(a->scratch, &a->twins, PTR_KEY(v), twin);
}

static bool ends_with_yields(const Inst *choice) {
    return choice->regions[0]->last->op == OP_yield && choice->regions[1]->last->op == OP_yield;
}

static bool may_have_twin(const Inst *inst) {
    if (inst->op == OP_if) return ends_with_yields(inst);
    return inst->nregions == 0 && inst->nresults > 0 && opt_is_repeatable(inst);
}

/* Of an `if` only the condition counts. */
static uint64_t hash_of(const Inst *inst) {
    return inst->op == OP_if ? hash_mix(OP_if, inst->args[0]->id) | 1 : opt_hash_inst(inst);
}

static bool is_same(const Inst *x, const Inst *y) {
    if (x->op == OP_if) return y->op == OP_if && x->args[0] == y->args[0];
    return opt_same_inst(x, y);
}

static Map *table_of(Asked *a, const Region *region) {
    Map *table = map_get(&a->tables, PTR_KEY(region));
    if (table) return table;
    table = arena_new(a->scratch, Map);
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst_resolve(inst);
        if (!may_have_twin(inst)) continue;
        uint64_t hash = hash_of(inst);
        Entry *entry = arena_new(a->scratch, Entry);
        *entry = (Entry){inst, map_get(table, hash)};
        map_put(a->scratch, table, hash, entry);
    }
    map_put(a->scratch, &a->tables, PTR_KEY(region), table);
    return table;
}

/* The instruction in the region of the first that does the same. */
static Inst *find_same(Asked *a, const Region *region, const Inst *inst) {
    Inst probe = *inst;
    probe.args = arena_array(a->scratch, Val *, inst->nargs + 1);
    for (int i = 0; i < inst->nargs; i++) probe.args[i] = in_first(a, inst->args[i]);
    for (Entry *entry = map_get(table_of(a, region), hash_of(&probe)); entry; entry = entry->next)
        if (is_same(&probe, entry->inst)) return entry->inst;
    return NULL;
}

static int cost_again(const Asked *a, const Inst *inst) {
    int cost = inst->op == OP_call ? DEAR : op_info[inst->op].cost;
    for (int i = 0; i < inst->nargs && cost < DEAR; i++) {
        const Twin *twin = twin_of(a, inst->args[i]);
        if (twin && twin->cost < DEAR) cost += twin->cost;
    }
    return cost;
}

static uint64_t hash_ways(const Val *one, const Val *other) {
    return hash_mix(opt_hash_val(one), opt_hash_val(other)) | 1;
}

/* Results that come about in the same way. */
static void match_results(Asked *a, const Inst *first, const Inst *second) {
    Map known = {0}; /* by what the ways yield; several of one hash: the last */
    const Inst *yields[2] = {first->regions[0]->last, first->regions[1]->last};
    for (int i = 0; i < first->nresults; i++)
        map_put(a->scratch, &known, hash_ways(yields[0]->args[i], yields[1]->args[i]), first->results[i]);
    for (int i = 0; i < second->nresults; i++) {
        const Val *ways[2];
        for (int k = 0; k < 2; k++) ways[k] = in_first(a, second->regions[k]->last->args[i]);
        Val *same = map_get(&known, hash_ways(ways[0], ways[1]));
        bool is_twin = same != NULL;
        for (int k = 0; k < 2 && is_twin; k++) is_twin = val_is_same(yields[k]->args[same->index], ways[k]);
        if (is_twin) add_twin(a, second->results[i], same, DEAR);
    }
}

static void match_choice(Asked *a, const Inst *first, Inst *second);

static void match_region(Asked *a, const Region *first, const Region *second) {
    for (Inst *inst = second->first; inst; inst = inst->next) {
        inst_resolve(inst);
        if (!may_have_twin(inst)) continue;
        const Inst *same = find_same(a, first, inst);
        if (same && inst->op == OP_if) match_choice(a, same, inst);
        else if (same)
            for (int i = 0; i < inst->nresults; i++)
                add_twin(a, inst->results[i], ir_resolve(same->results[i]), cost_again(a, inst));
    }
}

static void match_choice(Asked *a, const Inst *first, Inst *second) {
    for (int i = 0; i < 2; i++) match_region(a, first->regions[i], second->regions[i]);
    if (ends_with_yields(second)) match_results(a, first, second);
}

/* ---- what the first hands over */

/* The result of an `if` that gives the value where it is made. */
static Val *result_for(Asked *a, Inst *choice, Val *v) {
    const Inst *yield = v->inst->parent->last;
    for (int i = 0; i < yield->nargs; i++)
        if (yield->args[i] == v) return choice->results[i];
    for (int i = 0; i < 2; i++) {
        const Region *region = choice->regions[i];
        bool is_here = v->inst->parent == region;
        inst_add_arg(region->last, is_here ? v : ir_const_zero(a->func->module, v->type));
    }
    return inst_add_result(choice, v->type, v->name);
}

static Val *hand_over(Asked *a, const Inst *first, Val *v) {
    while (v->inst->parent != first->parent) v = result_for(a, v->inst->parent->owner, v);
    return v;
}

static bool is_number(const Val *v) { return type_is_scalar(type_element(v->type)); }

/* What an instruction of the second uses instead of the value. */
static Val *needed(Asked *a, const Inst *first, Val *v) {
    Twin *twin = twin_of(a, v);
    if (!twin) return v;
    if (twin->outside) return twin->outside;
    if (twin->cost >= DEAR && is_number(v)) {
        a->changed = true;
        return twin->outside = hand_over(a, first, twin->of);
    }
    twin->outside = v; /* itself, computed again */
    Inst *inst = v->inst;
    for (int i = 0; i < inst->nargs; i++) inst->args[i] = needed(a, first, inst->args[i]);
    return v;
}

static void take_for_region(Asked *a, const Inst *first, const Region *region);

static void take_for(Asked *a, const Inst *first, Inst *inst) {
    bool has_twin = inst->nregions == 0 && inst->nresults > 0 && twin_of(a, inst->results[0]);
    for (int i = 0; i < inst->nargs && !has_twin; i++) inst->args[i] = needed(a, first, inst->args[i]);
    for (int i = 0; i < inst->nregions; i++) take_for_region(a, first, inst->regions[i]);
}

/* What an `if` yields for a result that has a twin is not needed. */
static void take_for_region(Asked *a, const Inst *first, const Region *region) {
    const Inst *owner = region->owner;
    Inst *last = region->last;
    for (Inst *inst = region->first; inst != last; inst = inst->next) take_for(a, first, inst);
    bool chooses = owner->op == OP_if && last->op == OP_yield;
    for (int i = 0; i < last->nargs; i++)
        if (!chooses || !twin_of(a, owner->results[i])) last->args[i] = needed(a, first, last->args[i]);
}

/* Whoever uses it uses the other; what is left in its place nobody does. */
static void replace_result(Inst *inst, int index, Val *with) {
    Val *old = inst->results[index], *rest = inst_add_result(inst, old->type, old->name);
    inst->nresults--;
    inst->results[index] = rest;
    rest->index = index;
    old->forward = with;
}

static void take_over(Asked *a, const Inst *first, Inst *second) {
    a->twins = (Map){0};
    match_choice(a, first, second);
    for (int i = 0; i < second->nregions; i++) take_for_region(a, first, second->regions[i]);
    for (int i = 0; i < second->nresults; i++) {
        const Twin *twin = twin_of(a, second->results[i]);
        if (!twin) continue;
        replace_result(second, i, twin->of);
        a->changed = true;
    }
}

/* ---- the walk */

static void visit_choice(Asked *a, Inst *inst) {
    const Val *condition = inst->args[0];
    if (condition->kind == VAL_const) return;
    Inst *first = map_get(&a->first, PTR_KEY(condition));
    if (first) {
        take_over(a, first, inst);
    } else if (ends_with_yields(inst)) {
        map_put(a->scratch, &a->first, PTR_KEY(condition), inst);
        vec_push(a->scratch, &a->conditions, inst->args[0]);
    }
}

static void walk_region(Asked *a, const Region *region) {
    int before = a->conditions.count;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst_resolve(inst);
        for (int i = 0; i < inst->nregions; i++) walk_region(a, inst->regions[i]);
        if (inst->op == OP_if) visit_choice(a, inst);
    }
    while (a->conditions.count > before)
        map_put(a->scratch, &a->first, PTR_KEY(vec_pop(&a->conditions)), NULL);
}

bool opt_asked(Func *func) {
    if (!func->body) return false;
    Asked a = {.func = func, .scratch = arena_scratch(func->module->arena)};
    walk_region(&a, func->body);
    if (a.changed) ir_resolve_func(func);
    arena_free(a.scratch);
    return a.changed;
}
