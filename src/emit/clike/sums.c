/* Sums that a group of threads can keep for itself until it ends: additions to elements of buffers that the program does nothing else with. Then
 * nobody sees that they come late, and a number that all threads of a group add to takes one atomic operation in place of many.
 *
 * A buffer is known by the uniform or the parameter of a kernel that it is in: its owner. Whatever may reach the same memory in another way (addresses that were loaded, buffers that were handed
 * on) is taken to do so; different uniforms are taken to be different memory, as threads would race for it otherwise. */
#include "emit/clike/clike.h"

enum { FEWEST_THREADS = 128, MOST_SHARED = 32 << 10 }; /* of a group; its own shared memory, in bytes */

typedef struct Search {
    Arena *arena;
    Map kernels;              /* Region: the body of one */
    Map used;                 /* Val: its value is */
    Map touched;              /* owner: accessed in another way than that ... */
    VEC(const void *) summed; /* ... something is added to it, and nothing comes of the value before */
    bool unknown;
} Search;

static void note_used(void *user, Inst *inst) {
    Search *search = user;
    for (int i = 0; i < inst->nargs; i++)
        map_put(search->arena, &search->used, PTR_KEY(ir_resolve(inst->args[i])), search);
}

static const void *owner_of(const Search *search, const Val *buffer) {
    if (buffer->kind == VAL_param) return map_get(&search->kernels, PTR_KEY(buffer->region)) ? buffer : NULL;
    if (buffer->kind != VAL_inst || buffer->inst->op != OP_load) return NULL;
    const Val *from = ir_root(buffer->inst->args[0]);
    return from->kind == VAL_inst && from->inst->op == OP_global ? from->inst->global : NULL;
}

static bool is_of_buffer(const Inst *inst) {
    return inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes || inst->op == OP_buffer_pointer ||
           inst->op == OP_buffer_counter;
}

static bool is_sum(const Search *search, const Inst *inst) {
    return inst->op == OP_atomic && inst->index == 0 && inst->results[0]->type->kind == TYPE_float &&
           !map_has(&search->used, PTR_KEY(inst->results[0]));
}

static void note_place(Search *search, const Inst *inst, const Val *root) {
    bool is_private = root->kind == VAL_inst && (root->inst->op == OP_var || root->inst->op == OP_global ||
                                                 root->inst->op == OP_tape_elem);
    if (root->kind == VAL_param && !is_sum(search, inst)) is_private = true; /* who calls it was asked */
    if (is_private) return;
    if (root->kind != VAL_inst || !is_of_buffer(root->inst)) {
        search->unknown = true;
        return;
    }
    const Val *buffer = ir_resolve(root->inst->args[0]);
    const void *owner = owner_of(search, buffer);
    if (type_is_read_only(buffer->type)) return;
    if (!owner) search->unknown = true;
    else if (is_sum(search, inst) && root->inst->op == OP_buffer_elem)
        vec_push(search->arena, &search->summed, owner);
    else map_put(search->arena, &search->touched, PTR_KEY(owner), search);
}

static void note_access(void *user, Inst *inst) {
    Search *search = user;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_part || role == ROLE_move) continue;
        note_place(search, inst, ir_root(inst->args[i]));
    }
}

static bool fits(const Printer *p) {
    if (p->reached.shared_size > MOST_SHARED) return false;
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        const int *size = func->group_size;
        bool is_function =
            size[0] == 0 && (func->flags & FUNC_EXPORT); /* others call it, in groups of theirs */
        if (is_function || (size[0] > 0 && size[0] * size[1] * size[2] < FEWEST_THREADS)) return false;
    }
    return true;
}

bool clike_sums_can_wait(Printer *p) {
    Search search = {.arena = &p->arena};
    if (!p->dialect->warp_sums || !fits(p)) return false;
    for (int i = 0; i < p->reached.funcs.count; i++) {
        const Func *func = p->reached.funcs.at[i]->func;
        if (func->group_size[0] > 0) map_put(&p->arena, &search.kernels, PTR_KEY(func->body), p);
        region_walk(func->body, note_used, &search);
    }
    for (int i = 0; i < p->reached.funcs.count; i++)
        region_walk(p->reached.funcs.at[i]->func->body, note_access, &search);
    for (int i = 0; i < search.summed.count && !search.unknown; i++)
        search.unknown = map_has(&search.touched, PTR_KEY(search.summed.at[i]));
    return search.summed.count && !search.unknown;
}
