/* Would lanes do what the program means, though it did not say so?
 *
 * Threads of a dispatch run in any order, and lanes are one of the orders. But a program may have been
 * written for one thread of the machine, where a thread ends before the next one begins:
 *
 *     sum[0] += x;                     all add to one place, without atomic operations
 *     histogram[bin(x)] += 1;          some may
 *
 * Lanes would all read before one of them writes. So lanes that nobody has asked for are not used where
 * memory that others see is read, and written at a place that may be that of another item: one for all of
 * them, or one that is computed in other ways than by adding to the thread's index and multiplying it. */
#include "opt/lanes.h"

typedef struct Races {
    Lanes *lanes;
    VEC(Val *) read;
    VEC(const Inst *) written;
} Races;

/* Elements of arrays may be. */
bool lanes_is_same_memory(Val *a, Val *b) {
    a = ir_resolve(a), b = ir_resolve(b);
    if (a == b) return true;
    if (a->kind != VAL_inst || b->kind != VAL_inst || a->inst->op != b->inst->op) return false;
    const Inst *one = a->inst, *other = b->inst;
    if (one->op == OP_global) return one->global == other->global;
    bool leads_on = one->op == OP_field || one->op == OP_elem || one->op == OP_load;
    return leads_on && one->index == other->index && lanes_is_same_memory(one->args[0], other->args[0]);
}

/* The buffer that an address leads into, or the variable that all items share. */
static Val *shared_memory(Val *address) {
    Val *root = ir_root(address);
    if (root->kind == VAL_inst && (root->inst->op == OP_buffer_elem || root->inst->op == OP_buffer_bytes))
        root = ir_resolve(root->inst->args[0]);
    bool is_own = root->kind == VAL_inst && root->inst->op == OP_var;
    return is_own ? NULL : root;
}

static bool may_meet(const Lanes *lanes, Val *address) {
    int step = lanes_step_of_address(lanes, address);
    return step == STEP_none || step == STEP_same || lanes_is_held(lanes, address);
}

static void note_access(void *user, Inst *inst) {
    Races *races = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        bool writes = role == ROLE_write && inst->op != OP_atomic && inst->op != OP_atomic_cas;
        if (role != ROLE_read && !writes) continue;
        Val *address = ir_resolve(inst->args[i]), *memory = shared_memory(address);
        if (!memory) continue;
        bool reads = role == ROLE_read || inst->op == OP_acc;
        if (reads) vec_push(races->lanes->scratch, &races->read, memory);
        if (writes && may_meet(races->lanes, address)) vec_push(races->lanes->scratch, &races->written, inst);
    }
}

static bool is_read(const Races *races, const Inst *store) {
    Val *memory = shared_memory(store->args[0]);
    for (int i = 0; i < races->read.count; i++)
        if (lanes_is_same_memory(memory, races->read.at[i])) return true;
    return false;
}

void lanes_look_for_races(Lanes *lanes) {
    Races races = {.lanes = lanes};
    region_walk(lanes->from->body, note_access, &races);
    for (int i = 0; i < races.written.count; i++)
        if (is_read(&races, races.written.at[i]))
            lanes_decline(lanes, races.written.at[i], "it writes where other items may read");
}
