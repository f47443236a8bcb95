/* Variables become values.
 *
 * A `var` whose address is only loaded from and stored to needs no memory: at every point of the function its
 * content is one known value. The walk keeps that value for each such variable, in the order of execution: a
 * store changes it, a load is replaced by it. Control flow is structured, so that no dominance frontier is
 * needed:
 *
 *   if, switch   yield what their regions stored, unless nothing changed on any way through;
 *   block        yields what was stored in it; a break out of it carries the values of its moment;
 *   loop         carries every variable stored in it, and no other; break and continue carry them too.
 *
 * Which variables a construct stores to is found first, for all constructs in one walk, as sorted lists.
 *
 * Lanes of vector variables count as loads and stores of the whole: v[i] = x becomes v = insert v, i, x. In
 * flat code, which is to have no vectors as values, such a variable stays memory: sroa has left it as it was
 * because its lanes are only known at run time.
 *
 * A condition can give nothing but its bool to the body, so that a loop whose condition stores to a variable
 * is turned around first: the condition is computed before the loop and at the end of each iteration, and
 * carried as a bool. In normal form, which is to be differentiated, so is a loop whose condition changes
 * memory: a condition has no derivative.
 *
 * Values of a region are undone when the walk leaves it, from a log, so that a region costs what it stores
 * and not what the function has. The results are as many as the constructs around a store: the size of the
 * output. */
#include "opt.h"

#include <stdlib.h>

typedef struct Slot {
    const Type *type;
    Name name;
    Val *current;
    bool stays; /* the address is used in some other way */
} Slot;

typedef VEC(int) IndexVec;

/* What a construct with regions stores to, of the variables from outside; in Inst.note. */
typedef struct Stored {
    IndexVec slots;
    IndexVec in_condition; /* those stored to in the condition of this loop */
} Stored;

typedef struct Undo {
    int slot;
    Val *old;
} Undo;

typedef struct Ssa {
    Func *func;
    Arena *scratch;
    int *slot_of; /* by id of the address: index + 1 */
    uint32_t nids;
    VEC(Slot) slots;
    VEC(Undo) log;
    bool is_flat; /* without vectors as values */
    bool found, turned, changed;
} Ssa;

/* ---- which variables, and who stores to them */

static bool is_value_type(const Type *type) {
    return type_is_scalar(type) || type->kind == TYPE_vector || type->kind == TYPE_pointer ||
           type->kind == TYPE_buffer || type->kind == TYPE_tape;
}

/* The slot whose address v is, or -1. */
static int slot_at(const Ssa *s, const Val *v) {
    return v->kind == VAL_inst && v->id < s->nids ? s->slot_of[v->id] - 1 : -1;
}

/* The slot of which v is the address of a lane, or -1. */
static int lane_slot_at(const Ssa *s, const Val *v) {
    bool is_elem = v->kind == VAL_inst && v->inst->op == OP_elem;
    return is_elem ? slot_at(s, ir_resolve(v->inst->args[0])) : -1;
}

/* Does the instruction only read or write what is there, or take a part of it? */
static bool is_accessed(const Inst *inst, int operand, const Type *type) {
    Role role = ir_role(inst, operand);
    if (role == ROLE_part) return true;
    if (inst->op == OP_acc && !type_is_float(type_element(type))) return false;
    return op_has(inst->op, OP_PLAIN) && (role == ROLE_read || role == ROLE_write);
}

static void note_operand(Ssa *s, const Inst *inst, int operand) {
    const Val *arg = inst->args[operand];
    int slot = slot_at(s, arg), lane = lane_slot_at(s, arg);
    if (slot >= 0 && !is_accessed(inst, operand, s->slots.at[slot].type)) s->slots.at[slot].stays = true;
    bool lane_access = op_has(inst->op, OP_PLAIN) && !op_has(inst->op, OP_OBJECTS) && operand == 0;
    if (lane >= 0 && !lane_access) s->slots.at[lane].stays = true;
}

static void note_var(Ssa *s, const Inst *inst) {
    if (!is_value_type(inst->type) || (s->is_flat && inst->type->kind == TYPE_vector)) return;
    Slot slot = {.type = inst->type, .name = inst->results[0]->name};
    vec_push(s->scratch, &s->slots, slot);
    s->slot_of[inst->results[0]->id] = s->slots.count;
}

static bool stores_to_first(const Inst *inst) {
    return op_has(inst->op, OP_PLAIN) && op_has(inst->op, OP_WRITES);
}

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Sorted, each once, and only those from outside: indices below `limit`. */
static void tidy(IndexVec *slots, int limit) {
    int kept = 0;
    if (slots->count) qsort(slots->at, (size_t)slots->count, sizeof(int), compare_ints);
    for (int i = 0; i < slots->count; i++) {
        int slot = slots->at[i];
        if (slot < limit && (kept == 0 || slots->at[kept - 1] != slot)) slots->at[kept++] = slot;
    }
    slots->count = kept;
}

static void find_stored(Ssa *s, Region *region, IndexVec *stored);

static void find_stored_in(Ssa *s, Inst *inst, IndexVec *outer) {
    Stored *own = arena_new(s->scratch, Stored);
    int limit = s->slots.count;
    inst->note = own;
    for (int i = 0; i < inst->nregions; i++) {
        find_stored(s, inst->regions[i], &own->slots);
        if (inst->op != OP_loop || i > 0) continue;
        tidy(&own->slots, limit);
        for (int j = 0; j < own->slots.count; j++) vec_push(s->scratch, &own->in_condition, own->slots.at[j]);
    }
    tidy(&own->slots, limit);
    for (int i = 0; i < own->slots.count; i++) vec_push(s->scratch, outer, own->slots.at[i]);
}

static void find_stored(Ssa *s, Region *region, IndexVec *stored) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        inst_resolve(inst);
        for (int i = 0; i < inst->nargs; i++) note_operand(s, inst, i);
        if (inst->op == OP_var) note_var(s, inst);
        if (stores_to_first(inst)) {
            int slot = slot_at(s, inst->args[0]), lane = lane_slot_at(s, inst->args[0]);
            if (slot >= 0 || lane >= 0) vec_push(s->scratch, stored, slot >= 0 ? slot : lane);
        }
        if (inst->nregions) find_stored_in(s, inst, stored);
    }
}

/* Leaves only those slots in the lists that become values. */
static void drop_staying(const Ssa *s, IndexVec *slots) {
    int kept = 0;
    for (int i = 0; i < slots->count; i++)
        if (!s->slots.at[slots->at[i]].stays) slots->at[kept++] = slots->at[i];
    slots->count = kept;
}

static void finish_lists(void *user, Inst *inst) {
    if (!inst->nregions) return;
    Stored *stored = inst->note;
    drop_staying(user, &stored->slots);
    drop_staying(user, &stored->in_condition);
}

static void analyse(Ssa *s) {
    IndexVec ignored = {0};
    s->nids = s->func->nvals;
    s->slot_of = arena_array(s->scratch, int, s->nids);
    s->slots.count = 0;
    find_stored(s, s->func->body, &ignored);
    region_walk(s->func->body, finish_lists, s);
    s->found = false;
    for (int i = 0; i < s->slots.count; i++) s->found |= !s->slots.at[i].stays;
}

/* ---- turning loops around whose condition stores */

/* Appends a copy of the condition, run on `carried`, before the builder's place; its bool. */
static Val *copy_condition(Builder *b, const Inst *loop, Val *const *carried) {
    const Region *condition = loop->regions[0];
    CloneMap map = {.module = b->func->module, .func = b->func};
    for (int i = 0; i < condition->nparams; i++) clone_map_val(&map, condition->params[i], carried[i]);
    for (Inst *inst = condition->first; inst != condition->last; inst = inst->next)
        inst_insert_before(b->before, clone_inst(&map, inst));
    return clone_val(&map, condition->last->args[0]);
}

static void add_go_to_end(Inst *loop, Region *region) {
    if (region->last->op != OP_yield) return;
    Builder b = build_before(region->last);
    inst_add_arg(region->last, copy_condition(&b, loop, region->last->args));
}

static void add_step(Inst *loop) {
    Func *func = loop->func;
    Region *step = region_new(func, loop), **regions = arena_array(func->module->arena, Region *, 3);
    for (int i = 0; i < loop->nargs; i++)
        region_add_param(step, loop->args[i]->type, loop->regions[1]->params[i]->name);
    Builder b = build_at_end(step);
    build_yield(&b, step->params, step->nparams);
    memcpy(regions, loop->regions, 2 * sizeof *regions);
    regions[2] = step;
    loop->regions = regions;
    loop->nregions = 3;
}

typedef struct Jumps {
    const Inst *target;
    Val *value;
} Jumps;

static void extend_jump(void *user, Inst *inst) {
    Jumps *jumps = user;
    if ((inst->op == OP_break || inst->op == OP_continue) && inst->target == jumps->target)
        inst_add_arg(inst, jumps->value);
}

static void turn_loop(Inst *loop) {
    Module *module = loop->func->module;
    const Type *boolean = type_basic(module->types, TYPE_bool);
    Name go = name_from(module->names, "go");
    Jumps jumps = {.target = loop, .value = ir_const_int(module, boolean, 0)};
    if (loop_has_continue(loop) && loop->nregions == 2) add_step(loop);
    region_walk(loop->regions[1], extend_jump, &jumps);
    Builder before = build_before(loop);
    Val *first = copy_condition(&before, loop, loop->args);
    add_go_to_end(loop, loop->regions[loop->nregions - 1]);
    if (loop->nregions == 3 && loop->regions[1]->last->op == OP_yield)
        inst_add_arg(loop->regions[1]->last, jumps.value);
    inst_add_arg(loop, first);
    inst_add_result(loop, boolean, go);
    for (int i = 0; i < loop->nregions; i++) region_add_param(loop->regions[i], boolean, go);
    Region *condition = loop->regions[0];
    condition->first = condition->last = NULL;
    Builder b = build_at_end(condition);
    b.loc = loop->loc;
    build_yield(&b, &condition->params[condition->nparams - 1], 1);
}

static bool is_reference(const Val *v) {
    return v->type->kind == TYPE_pointer || v->type->kind == TYPE_buffer;
}

/* May the instruction change memory that stays memory? */
static bool changes_memory(const Ssa *s, const Inst *inst) {
    if (stores_to_first(inst)) {
        int slot = slot_at(s, inst->args[0]), lane = lane_slot_at(s, inst->args[0]);
        int known = slot >= 0 ? slot : lane;
        return known < 0 || s->slots.at[known].stays;
    }
    if (inst->op != OP_call) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (is_reference(inst->args[i])) return true;
    return false;
}

static bool region_changes_memory(const Ssa *s, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (changes_memory(s, inst)) return true;
        for (int i = 0; i < inst->nregions; i++)
            if (region_changes_memory(s, inst->regions[i])) return true;
    }
    return false;
}

static void turn_if_needed(void *user, Inst *inst) {
    Ssa *s = user;
    const Stored *stored = inst->note; /* NULL: a copy that was made just now; its turn is the next round */
    if (inst->op != OP_loop || !stored) return;
    if (inst->regions[0]->last->op != OP_yield) return; /* it never comes to the body */
    bool normal = s->func->flags & FUNC_NORMAL;
    if (!stored->in_condition.count && !(normal && region_changes_memory(s, inst->regions[0]))) return;
    turn_loop(inst);
    s->turned = s->changed = true;
}

/* ---- the walk */

static void set_current(Ssa *s, int slot, Val *v) {
    Slot *at = &s->slots.at[slot];
    Undo undo = {slot, at->current};
    vec_push(s->scratch, &s->log, undo);
    at->current = v;
    if (v->kind != VAL_const && !v->name) v->name = at->name;
}

static void undo_to(Ssa *s, int mark) {
    while (s->log.count > mark) {
        Undo undo = vec_pop(&s->log);
        s->slots.at[undo.slot].current = undo.old;
    }
}

static Val *current_of(const Ssa *s, int slot) { return s->slots.at[slot].current; }

static int promoted(const Ssa *s, const Val *address) {
    int slot = slot_at(s, address);
    return slot >= 0 && !s->slots.at[slot].stays ? slot : -1;
}

static int promoted_lane(const Ssa *s, const Val *address) {
    int slot = lane_slot_at(s, address);
    return slot >= 0 && !s->slots.at[slot].stays ? slot : -1;
}

static Val *read_place(Ssa *s, Builder *b, Val *address) {
    int slot = promoted(s, address), lane = promoted_lane(s, address);
    if (slot >= 0) return current_of(s, slot);
    if (lane >= 0) return build_extract(b, current_of(s, lane), address->inst->args[1]);
    return build_load(b, address);
}

static void write_place(Ssa *s, Builder *b, Val *address, Val *value) {
    int slot = promoted(s, address), lane = promoted_lane(s, address);
    if (slot >= 0) set_current(s, slot, value);
    else if (lane >= 0)
        set_current(s, lane, build_insert(b, current_of(s, lane), address->inst->args[1], value));
    else build_store(b, address, value);
}

/* A copy may be one that no derivative goes through. */
static Val *detached(Builder *b, const Inst *copy, Val *v) {
    bool detaches = inst_has(copy, INST_NO_DIFF) && type_is_float(type_element(v->type));
    return detaches ? build_unary(b, OP_detach, v) : v;
}

/* A load, store or the like; does it touch a slot, and is it then replaced? */
static bool replace_access(Ssa *s, Inst *inst) {
    bool touches = false;
    for (int i = 0; i < inst->nargs; i++)
        touches |= promoted(s, inst->args[i]) >= 0 || promoted_lane(s, inst->args[i]) >= 0;
    if (!touches) return false;
    Builder b = build_before(inst);
    Val **args = inst->args;
    switch ((Op)inst->op) {
    case OP_load: inst->results[0]->forward = read_place(s, &b, args[0]); break;
    case OP_store: write_place(s, &b, args[0], args[1]); break;
    case OP_zero: write_place(s, &b, args[0], ir_const_zero(s->func->module, args[0]->type->args[0])); break;
    case OP_copy: write_place(s, &b, args[0], detached(&b, inst, read_place(s, &b, args[1]))); break;
    case OP_acc: {
        Val *old = read_place(s, &b, args[0]), *more = read_place(s, &b, args[1]);
        write_place(s, &b, args[0], build_sum(&b, old, more));
        break;
    }
    case OP_elem: break; /* its uses look at it from outside */
    default: return false;
    }
    if (inst->op == OP_load && !inst->results[0]->forward->name &&
        inst->results[0]->forward->kind == VAL_inst)
        inst->results[0]->forward->name = inst->results[0]->name;
    inst_remove(inst);
    return true;
}

static void walk_region(Ssa *s, Region *region);

static const IndexVec *stored_in(const Inst *inst) { return &((const Stored *)inst->note)->slots; }

static void add_currents(Ssa *s, Inst *end, const Inst *owner) {
    const IndexVec *slots = stored_in(owner);
    for (int i = 0; i < slots->count; i++) inst_add_arg(end, current_of(s, slots->at[i]));
}

static void take_result(Ssa *s, Inst *inst, int slot) {
    const Slot *at = &s->slots.at[slot];
    Val *result = inst_add_result(inst, at->type, at->name);
    set_current(s, slot, result);
}

/* if, switch: the values at the ends of the regions; a result where they are not all what they were
 * before. */
static void walk_branches(Ssa *s, Inst *inst) {
    const IndexVec *slots = stored_in(inst);
    int count = slots->count;
    Val **ends = arena_array(s->scratch, Val *, inst->nregions * count + 1);
    for (int r = 0; r < inst->nregions; r++) {
        int mark = s->log.count;
        walk_region(s, inst->regions[r]);
        for (int i = 0; i < count; i++) ends[r * count + i] = current_of(s, slots->at[i]);
        undo_to(s, mark);
    }
    for (int i = 0; i < count; i++) {
        bool differs = false;
        for (int r = 0; r < inst->nregions; r++)
            differs |=
                inst->regions[r]->last->op == OP_yield && ends[r * count + i] != current_of(s, slots->at[i]);
        if (!differs) continue;
        for (int r = 0; r < inst->nregions; r++)
            if (inst->regions[r]->last->op == OP_yield)
                inst_add_arg(inst->regions[r]->last, ends[r * count + i]);
        take_result(s, inst, slots->at[i]);
    }
}

static void walk_block(Ssa *s, Inst *inst) {
    const IndexVec *slots = stored_in(inst);
    int mark = s->log.count;
    walk_region(s, inst->regions[0]);
    if (inst->regions[0]->last->op == OP_yield) add_currents(s, inst->regions[0]->last, inst);
    undo_to(s, mark);
    for (int i = 0; i < slots->count; i++) take_result(s, inst, slots->at[i]);
}

static void walk_loop(Ssa *s, Inst *inst) {
    const IndexVec *slots = stored_in(inst);
    for (int i = 0; i < slots->count; i++) inst_add_arg(inst, current_of(s, slots->at[i]));
    for (int r = 0; r < inst->nregions; r++) {
        Region *region = inst->regions[r];
        int mark = s->log.count;
        for (int i = 0; i < slots->count; i++) {
            const Slot *slot = &s->slots.at[slots->at[i]];
            set_current(s, slots->at[i], region_add_param(region, slot->type, slot->name));
        }
        walk_region(s, region);
        if (r > 0 && region->last->op == OP_yield) add_currents(s, region->last, inst);
        undo_to(s, mark);
    }
    for (int i = 0; i < slots->count; i++) take_result(s, inst, slots->at[i]);
}

static void walk_inst(Ssa *s, Inst *inst) {
    inst_resolve(inst);
    switch ((Op)inst->op) {
    case OP_var: {
        int slot = promoted(s, inst->results[0]);
        if (slot < 0) break;
        set_current(s, slot, ir_const_zero(s->func->module, inst->type));
        inst_remove(inst);
        break;
    }
    case OP_if:
    case OP_switch: walk_branches(s, inst); break;
    case OP_block: walk_block(s, inst); break;
    case OP_loop: walk_loop(s, inst); break;
    case OP_break:
    case OP_continue: add_currents(s, inst, inst->target); break;
    default: replace_access(s, inst); break;
    }
}

static void walk_region(Ssa *s, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        walk_inst(s, inst);
    }
}

static bool make_values(Func *func, bool is_flat) {
    if (!func->body) return false;
    Ssa s = {.func = func, .scratch = arena_scratch(func->module->arena), .is_flat = is_flat};
    do {
        s.turned = false;
        analyse(&s);
        region_walk(func->body, turn_if_needed, &s);
    } while (s.turned);
    if (s.found) walk_region(&s, func->body);
    arena_free(s.scratch);
    return s.found || s.changed;
}

bool opt_ssa(Func *func) { return make_values(func, false); }

bool opt_ssa_flat(Func *func) { return make_values(func, true); }
