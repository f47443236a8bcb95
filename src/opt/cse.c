/* Common subexpressions: what is computed twice from the same operands is computed once, and memory is read
 * once.
 *
 * A table holds the pure instructions that the walk has passed and whose results are in scope; leaving a
 * region takes its entries out again. An instruction that is there already is replaced.
 *
 * Beside it the walk keeps facts, "at this address is this value", from loads and stores. A load finds its
 * fact; a store to private memory of what is there already goes away, and for C one that the next overwrites
 * (LLVM does that itself, and better after it has made pairs of what a loop reads). A store ends the facts
 * that it may touch, see memory.c; a call ends those about what it is given to write and about everything
 * that is not private. A region sees the facts from before its owner; after the owner those hold that no
 * region ended. Entering a loop ends at once what anything in the loop may end.
 *
 * An address in a buffer may be out of range, where a store is dropped and a load gives zero: from a store to
 * it nothing follows.
 *
 * In a linearized function, only values of the primal are merged: a rule computes again what the function
 * has, as the sine in the derivative of the cosine. Its instructions carry notes about its addresses and
 * differentials.
 *
 * Facts about one object are in one list that never gets long: old ones are given up. */
#include "opt.h"

#include <stdlib.h>

#define MAX_FACTS 64 /* about one object */

typedef struct Entry Entry;
struct Entry {
    Inst *inst;
    uint64_t hash;
    Entry *next; /* same hash, older */
};

typedef struct Fact {
    Val *address, *value;
    bool holds;
} Fact;

typedef struct FactList {
    Object object;
    VEC(Fact *) facts;
    int start; /* those before are given up */
} FactList;

typedef enum ChangeKind { CHANGE_added, CHANGE_ended, CHANGE_given_up } ChangeKind;

typedef struct Change {
    ChangeKind kind;
    FactList *list;
    Fact *fact;
    int start;
} Change;

typedef struct Cse {
    Func *func;
    Arena *scratch;
    Memory memory;
    Map table; /* hash -> Entry, the newest */
    VEC(Entry *) entries;
    Map lists;              /* key of Object -> FactList */
    VEC(FactList *) shared; /* those whose objects are not private */
    FactList unknown;
    VEC(Change) log;
    VEC(Fact *) ended; /* in the regions of the construct at work; to be ended after it too */
    bool linear;       /* only values of the primal, and no memory */
    bool changed;
} Cse;

/* ---- the table of pure instructions */

uint64_t opt_hash_val(const Val *v) {
    if (v->kind != VAL_const) return v->id;
    return hash_mix(PTR_KEY(v->type), (uint64_t)v->integer) | 1;
}

static uint64_t attribute_of(const Inst *inst) {
    uint32_t lanes = 0;
    switch ((Op)inst->op) {
    case OP_global: return PTR_KEY(inst->global);
    case OP_buffer_elem:
    case OP_buffer_bytes:
        return (uint64_t)inst->apart.nest << 16 | (uint64_t)inst->apart.which << 8 |
               (inst->flags & (uint8_t)~INST_WRITES);
    case OP_call: return PTR_KEY(inst->callee) | inst_has(inst, INST_NO_DIFF);
    case OP_shuffle: memcpy(&lanes, inst->lanes, (size_t)type_count(inst->results[0]->type)); return lanes;
    default: return (uint64_t)inst->index << 8 | (inst->flags & (uint8_t)~INST_WRITES);
    }
}

uint64_t opt_hash_inst(const Inst *inst) {
    uint64_t h = hash_mix(inst->op, attribute_of(inst));
    if (inst->nresults) h = hash_mix(h, PTR_KEY(inst->results[0]->type));
    if (op_has(inst->op, OP_COMMUTES)) /* in any order */
        return hash_mix(h, opt_hash_val(inst->args[0]) + opt_hash_val(inst->args[1])) | 1;
    for (int i = 0; i < inst->nargs; i++) h = hash_mix(h, opt_hash_val(inst->args[i]));
    return h | 1;
}

bool opt_same_inst(const Inst *a, const Inst *b) {
    if (a->op != b->op || a->nargs != b->nargs || a->nresults != b->nresults) return false;
    if (attribute_of(a) != attribute_of(b)) return false;
    if (a->nresults && a->results[0]->type != b->results[0]->type) return false;
    if (op_has(a->op, OP_COMMUTES) && val_is_same(a->args[0], b->args[1]) &&
        val_is_same(a->args[1], b->args[0]))
        return true;
    for (int i = 0; i < a->nargs; i++)
        if (!val_is_same(a->args[i], b->args[i])) return false;
    return true;
}

bool opt_is_repeatable(const Inst *inst) {
    if (op_has(inst->op, OP_PURE)) return true;
    if (inst->op != OP_call || !(inst->callee->flags & FUNC_PURE)) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (inst->args[i]->type->kind == TYPE_pointer || inst->args[i]->type->kind == TYPE_buffer)
            return false;
    return true;
}

/* Of what somebody wrote and what nobody did, one is left that was written. */
static void replace(Cse *c, Inst *inst, Inst *with) {
    uint8_t both = with->flags & inst->flags;
    with->flags = (uint8_t)(((with->flags | inst->flags) & ~INST_FREE) | (both & INST_FREE));
    inst_replace(inst, with);
    c->changed = true;
}

/* Was it computed before? Then it is gone. */
static bool merge_inst(Cse *c, Inst *inst) {
    uint64_t hash = opt_hash_inst(inst);
    Entry *newest = map_get(&c->table, hash);
    for (Entry *entry = newest; entry; entry = entry->next)
        if (opt_same_inst(entry->inst, inst)) {
            replace(c, inst, entry->inst);
            return true;
        }
    Entry *entry = arena_new(c->scratch, Entry);
    *entry = (Entry){inst, hash, newest};
    map_put(c->scratch, &c->table, hash, entry);
    vec_push(c->scratch, &c->entries, entry);
    return false;
}

/* ---- facts */

static FactList *list_of(Cse *c, Object object) {
    if (!object.key) return &c->unknown;
    FactList *list = map_get(&c->lists, PTR_KEY(object.key));
    if (list) return list;
    list = arena_new(c->scratch, FactList);
    list->object = object;
    map_put(c->scratch, &c->lists, PTR_KEY(object.key), list);
    if (!object.is_private && !object.is_constant) vec_push(c->scratch, &c->shared, list);
    return list;
}

static void end_fact(Cse *c, FactList *list, Fact *fact) {
    if (!fact->holds) return;
    fact->holds = false;
    Change change = {CHANGE_ended, list, fact, 0};
    vec_push(c->scratch, &c->log, change);
}

static void give_up_old(Cse *c, FactList *list) {
    for (int i = list->start; i < list->facts.count; i++) end_fact(c, list, list->facts.at[i]);
    Change change = {CHANGE_given_up, list, NULL, list->start};
    vec_push(c->scratch, &c->log, change);
    list->start = list->facts.count;
}

static void add_fact(Cse *c, FactList *list, Val *address, Val *value) {
    if (list->facts.count - list->start >= MAX_FACTS) give_up_old(c, list);
    Fact *fact = arena_new(c->scratch, Fact);
    *fact = (Fact){address, value, true};
    vec_push(c->scratch, &list->facts, fact);
    Change change = {CHANGE_added, list, fact, 0};
    vec_push(c->scratch, &c->log, change);
}

static Fact *find_fact(const FactList *list, const Val *address) {
    for (int i = list->facts.count - 1; i >= list->start; i--)
        if (list->facts.at[i]->holds && list->facts.at[i]->address == address) return list->facts.at[i];
    return NULL;
}

/* Something is written at the address, in the object of the list. */
static void end_overlapping(Cse *c, FactList *list, const Val *address) {
    for (int i = list->start; i < list->facts.count; i++) {
        Fact *fact = list->facts.at[i];
        if (!ir_are_apart(fact->address, address)) end_fact(c, list, fact);
    }
}

/* Something is written in that space. */
static void end_in_space(Cse *c, FactList *list, Space space) {
    for (int i = list->start; i < list->facts.count; i++) {
        Fact *fact = list->facts.at[i];
        Space its = ir_space(fact->address->type);
        if (its == space || its == SPACE_any || space == SPACE_any) end_fact(c, list, fact);
    }
}

static void end_shared(Cse *c, Space space) {
    end_in_space(c, &c->unknown, space);
    for (int i = 0; i < c->shared.count; i++) end_in_space(c, c->shared.at[i], space);
}

static void end_at(Cse *c, const Val *address) {
    Object object = opt_memory_object(&c->memory, address);
    if (object.key) end_overlapping(c, list_of(c, object), address);
    if (object.is_private) return;
    if (!object.key) end_shared(c, ir_space(address->type)); /* it may be any of them */
    else end_in_space(c, &c->unknown, ir_space(address->type));
}

static void end_at_call(Cse *c, const Inst *call) {
    for (int i = 0; i < call->nargs; i++) {
        const Param *param = &call->callee->params[i];
        if ((param->flags & PARAM_BY_ADDRESS) && param->dir != DIR_in) end_at(c, ir_resolve(call->args[i]));
    }
    if (!(call->callee->flags & (FUNC_PURE | FUNC_HARMLESS))) end_shared(c, SPACE_any);
}

/* Ends what the instruction may change. */
static void end_changed(void *user, Inst *inst) {
    Cse *c = user;
    if (inst->op == OP_call) end_at_call(c, inst);
    else if (op_has(inst->op, OP_WRITES)) end_at(c, ir_resolve(inst->args[0]));
    else if (inst->op == OP_barrier) end_shared(c, SPACE_any);
}

/* ---- regions */

typedef struct Mark {
    int entries, log;
} Mark;

static Mark mark_here(const Cse *c) { return (Mark){c->entries.count, c->log.count}; }

/* Back to what was known at the mark; facts that ended since then are noted in `ended`. */
static void undo_to(Cse *c, Mark mark) {
    while (c->entries.count > mark.entries) {
        Entry *entry = vec_pop(&c->entries);
        map_put(c->scratch, &c->table, entry->hash, entry->next);
    }
    while (c->log.count > mark.log) {
        Change change = vec_pop(&c->log);
        if (change.kind == CHANGE_added) change.fact->holds = false, change.list->facts.count--;
        else if (change.kind == CHANGE_given_up) change.list->start = change.start;
        else {
            change.fact->holds = true;
            vec_push(c->scratch, &c->ended, change.fact);
        }
    }
}

static void walk_region(Cse *c, Region *region);

static void walk_regions(Cse *c, Inst *inst) {
    int before = c->ended.count;
    for (int i = 0; inst->op == OP_loop && i < inst->nregions; i++)
        region_walk(inst->regions[i], end_changed, c);
    for (int i = 0; i < inst->nregions; i++) {
        Mark mark = mark_here(c);
        walk_region(c, inst->regions[i]);
        undo_to(c, mark);
    }
    while (c->ended.count > before) {
        Fact *fact = vec_pop(&c->ended);
        Object object = opt_memory_object(&c->memory, fact->address);
        end_fact(c, list_of(c, object), fact);
    }
}

/* ---- memory */

static bool is_in_buffer(const Val *address) {
    for (; address->kind == VAL_inst; address = ir_resolve(address->inst->args[0])) {
        if (address->inst->op == OP_buffer_elem || address->inst->op == OP_buffer_bytes) return true;
        if (address->inst->op != OP_field && address->inst->op != OP_elem) return false;
    }
    return false;
}

static void visit_load(Cse *c, Inst *load) {
    Val *address = load->args[0];
    FactList *list = list_of(c, opt_memory_object(&c->memory, address));
    const Fact *fact = find_fact(list, address);
    if (!fact) {
        add_fact(c, list, address, load->results[0]);
        return;
    }
    Val *value = ir_resolve(fact->value);
    if (!value->name && value->kind != VAL_const) value->name = load->results[0]->name;
    load->results[0]->forward = value;
    inst_remove(load);
    c->changed = true;
}

/* Does a store follow that writes the same place again, before anybody could read it? */
static bool is_overwritten(const Inst *store) {
    const Inst *next = store->next;
    while (next && op_has(next->op, OP_PURE)) next = next->next;
    return next && next->op == OP_store && inst_operand(next, 0) == store->args[0];
}

static void visit_store(Cse *c, Inst *store, Val *value) {
    Val *address = store->args[0];
    Object object = opt_memory_object(&c->memory, address);
    FactList *list = list_of(c, object);
    const Fact *fact = find_fact(list, address);
    bool is_there = fact && val_is_same(ir_resolve(fact->value), value);
    if (object.is_private && (is_there || (c->func->module->keeps_order && is_overwritten(store)))) {
        inst_remove(store);
        c->changed = true;
        return;
    }
    end_at(c, address);
    if (!is_in_buffer(address)) add_fact(c, list, address, value);
}

static bool is_value_type(const Type *type) { return type->kind != TYPE_record && type->kind != TYPE_array; }

static void visit_var(Cse *c, const Inst *var) {
    if (inst_has(var, INST_RAW) || !is_value_type(var->type)) return;
    Val *address = var->results[0];
    FactList *list = list_of(c, opt_memory_object(&c->memory, address));
    add_fact(c, list, address, ir_const_zero(c->func->module, var->type));
}

/* ---- the walk */

static void visit(Cse *c, Inst *inst) {
    inst_resolve(inst);
    if (opt_is_repeatable(inst) && merge_inst(c, inst)) return;
    switch ((Op)inst->op) {
    case OP_load: visit_load(c, inst); return;
    case OP_store: visit_store(c, inst, inst->args[1]); return;
    case OP_zero: {
        const Type *type = inst->args[0]->type->args[0];
        if (is_value_type(type)) visit_store(c, inst, ir_const_zero(c->func->module, type));
        else end_changed(c, inst);
        return;
    }
    case OP_var: visit_var(c, inst); return;
    default:
        if (inst->nregions) walk_regions(c, inst);
        else end_changed(c, inst);
    }
}

/* What makes an address stays where it is: its counterpart does. */
static bool is_primal_value(const Inst *inst) {
    if (!op_has(inst->op, OP_PURE) || inst->tag != TAG_primal) return false;
    for (int i = 0; i < inst->nresults; i++)
        if (!type_is_scalar(type_element(inst->results[i]->type))) return false;
    return true;
}

static void visit_linear(Cse *c, Inst *inst) {
    inst_resolve(inst);
    if (is_primal_value(inst) && merge_inst(c, inst)) return;
    for (int i = 0; i < inst->nregions; i++) {
        Mark mark = mark_here(c);
        walk_region(c, inst->regions[i]);
        undo_to(c, mark);
    }
}

static void walk_region(Cse *c, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (c->linear) visit_linear(c, inst);
        else visit(c, inst);
    }
}

static bool run(Func *func, bool linear) {
    if (!func->body) return false;
    Cse c = {.func = func, .scratch = arena_scratch(func->module->arena), .linear = linear};
    opt_memory_init(&c.memory, c.scratch, func);
    walk_region(&c, func->body);
    arena_free(c.scratch);
    return c.changed;
}

bool opt_cse(Func *func) { return run(func, false); }
bool opt_cse_linear(Func *func) { return run(func, true); }
