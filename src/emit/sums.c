/* Sums that a group of threads can keep for itself until it ends: additions to elements of buffers that the
 * program does nothing else with. Then nobody sees that they come late, and a number that all threads of a
 * group add to takes one atomic operation in place of many.
 *
 * A buffer is known by the uniform or the parameter of a kernel that it is in: its owner. Whatever may reach
 * the same memory in another way (addresses that were loaded, buffers that were handed on) is taken to do so;
 * different uniforms are taken to be different memory, as threads would race for it otherwise. */
#include "emit/reach.h"

enum { FEWEST_THREADS = 128, MOST_SHARED = 20 << 10 }; /* of a group; its own shared memory, in bytes */
enum { FEWEST_SUMS = 32, MOST_SUMS = 2048 };           /* that a group keeps */
enum { MOST_DEPTH = 16 };                              /* of an index */

typedef struct Search {
    Arena *arena;
    Map kernels;              /* Region: the body of one */
    Map used;                 /* Val: its value is */
    Map touched;              /* owner: accessed in another way than that ... */
    VEC(const void *) summed; /* ... something is added to it, and nothing comes of the value before */
    TypeKind kind;            /* of these numbers */
    LoopJumps jumps;          /* of the function that is looked at */
    bool unknown;
    bool moves;    /* ... at a place that is not constant, and may be that of all threads */
    int64_t bound; /* these places, as numbers of their buffer, are below; INT64_MAX: nobody knows */
} Search;

static void note_used(void *user, Inst *inst) {
    Search *search = user;
    for (int i = 0; i < inst->nargs; i++)
        map_put(search->arena, &search->used, PTR_KEY(ir_resolve(inst->args[i])), search);
    bool adds = inst->op == OP_atomic && inst->index == ATOMIC_add;
    if (adds && inst->results[0]->type->kind == TYPE_float)
        search->kind = TYPE_float; /* rather than double */
}

static const void *owner_of(const Search *search, const Val *buffer) {
    if (buffer->kind == VAL_param) return map_get(&search->kernels, PTR_KEY(buffer->region)) ? buffer : NULL;
    return ir_owner(buffer);
}

static bool is_of_buffer(const Inst *inst) {
    return inst->op == OP_buffer_elem || inst->op == OP_buffer_bytes || inst->op == OP_buffer_pointer ||
           inst->op == OP_buffer_counter;
}

static bool is_sum(const Search *search, const Inst *inst) {
    return inst->op == OP_atomic && inst->index == ATOMIC_add &&
           inst->results[0]->type->kind == search->kind && !map_has(&search->used, PTR_KEY(inst->results[0]));
}

static bool is_constant(const Val *address) {
    int64_t index;
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART)) {
        const Inst *part = address->inst;
        if (part->nargs > 1 && !val_is_int(ir_resolve(part->args[1]), &index)) return false;
        address = ir_resolve(part->args[0]);
    }
    return val_is_int(ir_resolve(address->inst->args[1]), &index);
}

/* Is it computed from where a thread stands in its row? Then the lanes of a warp have places of their own,
 * which no group keeps. */
static bool follows_thread(const Val *v, int depth) {
    if (v->kind != VAL_inst || depth == 0) return false;
    const Inst *inst = v->inst;
    if (inst->op == OP_thread_id) return inst->index == 3;
    if (inst->op == OP_extract) {
        const Val *whole = ir_resolve(inst->args[0]);
        bool is_id = whole->kind == VAL_inst && whole->inst->op == OP_thread_id;
        int64_t lane;
        return is_id && (whole->inst->index == 0 || whole->inst->index == 2) &&
               val_is_int(ir_resolve(inst->args[1]), &lane) && lane == 0;
    }
    bool computes = op_has(inst->op, OP_ELEMENTWISE) || inst->op == OP_select;
    for (int i = 0; i < inst->nargs && computes; i++)
        if (follows_thread(ir_resolve(inst->args[i]), depth - 1)) return true;
    return false;
}

/* A place that is out of range may be anything: nothing is added there. */
static void note_bound(Search *search, const Inst *access) {
    const Type *element = access->results[0]->type->args[0];
    int64_t numbers = type_layout(element, LAYOUT_scalar).stride / (search->kind == TYPE_double ? 8 : 4);
    Interval index = ir_interval(&search->jumps, ir_resolve(access->args[1]));
    bool is_low = index.known && index.high < MOST_SUMS;
    int64_t bound = is_low ? (index.high + 1) * numbers : INT64_MAX;
    if (bound > search->bound) search->bound = bound;
}

static void note_sum(Search *search, const Inst *sum, const Inst *access, const void *owner) {
    vec_push(search->arena, &search->summed, owner);
    if (follows_thread(ir_resolve(access->args[1]), MOST_DEPTH)) return;
    search->moves |= !is_constant(ir_resolve(sum->args[0]));
    note_bound(search, access);
}

static void note_place(Search *search, const Inst *inst, const Val *root) {
    Space space = ir_space(root->type);
    bool is_private = space != SPACE_any && space != SPACE_buffer;
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
        note_sum(search, inst, root->inst, owner);
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

static bool fits(const Reached *reached) {
    if (reached->shared_size > MOST_SHARED) return false;
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        const int *size = func->group_size;
        bool is_function =
            size[0] == 0 && (func->flags & FUNC_EXPORT); /* others call it, in groups of theirs */
        if (is_function || (size[0] > 0 && size[0] * size[1] * size[2] < FEWEST_THREADS)) return false;
    }
    return true;
}

/* The uniform that all sums are in; NULL: there are several, or it holds more than a buffer. */
static const Global *find_only_buffer(const Module *module, const Search *search) {
    const Global *only = NULL;
    for (int i = 1; i < search->summed.count; i++)
        if (search->summed.at[i] != search->summed.at[0]) return NULL;
    for (int i = 0; i < module->globals.count && search->summed.count; i++)
        if (module->globals.at[i] == search->summed.at[0]) only = module->globals.at[i];
    return only && only->type->kind == TYPE_buffer ? only : NULL;
}

/* Numbers have their own places if these are known to be few; otherwise they share what there is room for,
 * and are found by their addresses. */
static void make_room(WaitingSums *sums, const Search *search) {
    const int size = sums->kind == TYPE_double ? 2 : 1;
    sums->in_order = sums->buffer && search->bound <= MOST_SUMS / size;
    sums->count = FEWEST_SUMS;
    while (sums->count < MOST_SUMS / size &&
           ((search->moves && !sums->in_order) || sums->count < 2 * search->summed.count))
        sums->count *= 2;
    if (sums->in_order && sums->count < search->bound) sums->count = (int)search->bound;
}

int64_t emit_sums_bytes(const WaitingSums *sums) {
    const int64_t size = sums->kind == TYPE_double ? 8 : 4, address = 8;
    return sums->any ? sums->count * (sums->in_order ? size : size + address) + address : 0;
}

WaitingSums emit_waiting_sums(const Reached *reached, const Module *module) {
    Search search = {.arena = reached->arena, .kind = TYPE_double};
    WaitingSums sums = {0};
    if (!fits(reached)) return sums;
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        if (func->group_size[0] > 0) map_put(search.arena, &search.kernels, PTR_KEY(func->body), &search);
        region_walk(func->body, note_used, &search);
    }
    for (int i = 0; i < reached->funcs.count; i++) {
        const Func *func = reached->funcs.at[i]->func;
        search.jumps = loop_find_jumps(search.arena, func);
        region_walk(func->body, note_access, &search);
    }
    for (int i = 0; i < search.summed.count && !search.unknown; i++)
        search.unknown = map_has(&search.touched, PTR_KEY(search.summed.at[i]));
    sums.any = search.summed.count && !search.unknown;
    sums.buffer = find_only_buffer(module, &search);
    sums.kind = search.kind;
    make_room(&sums, &search);
    return sums;
}
