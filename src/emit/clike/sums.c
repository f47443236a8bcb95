/* Sums that a group of threads can keep for itself until it ends: additions to elements of buffers that the program does nothing else with. Then
 * nobody sees that they come late, and a number that all threads of a group add to takes one atomic operation in place of many.
 *
 * A buffer is known by the uniform or the parameter of a kernel that it is in: its owner. Whatever may reach the same memory in another way (addresses that were loaded, buffers that were handed
 * on) is taken to do so; different uniforms are taken to be different memory, as threads would race for it otherwise.
 *
 * Sums that follow each other in elements of one buffer, at fixed distances, are printed together: the lanes of a warp share the work. */
#include "emit/clike/clike.h"

enum { FEWEST_THREADS = 128, MOST_SHARED = 32 << 10 }; /* of a group; its own shared memory, in bytes */
enum { FEWEST_SUMS = 32, MOST_SUMS = 2048 };           /* that a group keeps */

typedef struct Search {
    Arena *arena;
    Map kernels;              /* Region: the body of one */
    Map used;                 /* Val: its value is */
    Map touched;              /* owner: accessed in another way than that ... */
    VEC(const void *) summed; /* ... something is added to it, and nothing comes of the value before */
    bool unknown;
    bool moves; /* ... at a place that is not constant */
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
    return inst->op == OP_atomic && inst->index == ATOMIC_add && inst->results[0]->type->kind == TYPE_float &&
           !map_has(&search->used, PTR_KEY(inst->results[0]));
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
    else if (is_sum(search, inst) && root->inst->op == OP_buffer_elem) {
        vec_push(search->arena, &search->summed, owner);
        search->moves |= !is_constant(ir_resolve(inst->args[0]));
    } else map_put(search->arena, &search->touched, PTR_KEY(owner), search);
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

/* The uniform that all sums are in; NULL: there are several, or it holds more than a buffer. */
static const Global *find_only_buffer(const Printer *p, const Search *search) {
    const Global *only = NULL;
    for (int i = 1; i < search->summed.count; i++)
        if (search->summed.at[i] != search->summed.at[0]) return NULL;
    for (int i = 0; i < p->module->globals.count && search->summed.count; i++)
        if (p->module->globals.at[i] == search->summed.at[0]) only = p->module->globals.at[i];
    return only && only->type->kind == TYPE_buffer ? only : NULL;
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
    p->sum_buffer = find_only_buffer(p, &search);
    p->sums = FEWEST_SUMS;
    while (p->sums < MOST_SUMS && (search.moves || p->sums < 2 * search.summed.count)) p->sums *= 2;
    return search.summed.count && !search.unknown;
}

/* ---- several at once */

enum { MOST_TOGETHER = 32 };

/* Element `base + index` of a buffer, and which byte of it. */
typedef struct Place {
    const Val *buffer, *base; /* base: NULL: 0 */
    const Inst *access;       /* what finds the element */
    int64_t index, offset;
} Place;

static bool add_part(const Inst *part, int64_t *offset) {
    const Type *whole = part->args[0]->type->args[0];
    int64_t index;
    if (part->op == OP_field) {
        *offset += type_field_offset(whole, part->index, LAYOUT_scalar);
        return true;
    }
    if (part->op != OP_elem || !val_is_int(ir_resolve(part->args[1]), &index) || index < 0) return false;
    if (index >= (whole->kind == TYPE_vector ? type_count(whole) : type_length(whole))) return false;
    *offset += index * type_element_stride(whole, LAYOUT_scalar);
    return true;
}

static bool is_small(const Val *v, int64_t *number) {
    return val_is_int(v, number) && *number >= INT16_MIN && *number <= INT16_MAX;
}

/* What is computed as something and a constant is counted from the former. */
static void find_base(Place *place) {
    const Val *index = ir_resolve(place->access->args[1]);
    if (is_small(index, &place->index)) return;
    place->index = 0;
    place->base = index;
    const Inst *adds = index->kind == VAL_inst && index->inst->op == OP_add ? index->inst : NULL;
    const Val *from = adds ? ir_resolve(adds->args[0]) : NULL;
    int64_t distance;
    if (!adds || val_is_const(from)) return;
    if (!is_small(ir_resolve(adds->args[1]), &distance)) return;
    place->base = from;
    place->index = distance;
}

static bool find_place(const Inst *sum, Place *place) {
    const Val *address = ir_resolve(sum->args[0]);
    *place = (Place){0};
    while (address->kind == VAL_inst && op_has(address->inst->op, OP_PART)) {
        if (!add_part(address->inst, &place->offset)) return false;
        address = ir_resolve(address->inst->args[0]);
    }
    if (address->kind != VAL_inst || address->inst->op != OP_buffer_elem) return false;
    place->access = address->inst;
    place->buffer = ir_resolve(place->access->args[0]);
    find_base(place);
    return place->offset <= INT16_MAX;
}

static bool is_waiting_sum(const Printer *p, const Inst *inst) {
    return p->sums_wait && inst->op == OP_atomic && inst->index == ATOMIC_add &&
           inst->results[0]->type->kind == TYPE_float && p->at->uses[inst->results[0]->id] == 0;
}

/* The next sum, if nothing happens in between. */
static const Inst *next_sum(const Printer *p, const Inst *sum) {
    const Inst *next = sum->next;
    while (next && next->nregions == 0 && (op_has(next->op, OP_PURE) || next->op == OP_load))
        next = next->next;
    return next && is_waiting_sum(p, next) ? next : NULL;
}

/* Is the third as far from the second as that from the first? */
static bool is_regular(const Place *a, const Place *b, const Place *c) {
    return b->index - a->index == c->index - b->index && b->offset - a->offset == c->offset - b->offset;
}

/* `place`: of the last that waits. */
static bool goes_on(const Printer *p, const Inst *sum, const Place *place) {
    const Inst *next = next_sum(p, sum);
    int count = p->at->sums.count;
    Place other, before;
    if (!next || count == MOST_TOGETHER || !find_place(next, &other)) return false;
    if (other.buffer != place->buffer || other.base != place->base) return false;
    return count < 2 ||
           (find_place(p->at->sums.at[count - 2], &before) && is_regular(&before, place, &other));
}

static void print_together(Printer *p) {
    Text values = {.arena = &p->arena};
    int count = p->at->sums.count;
    Place first, second;
    find_place(p->at->sums.at[0], &first);
    second = first;
    if (count > 1) find_place(p->at->sums.at[1], &second);
    for (int i = 0; i < count; i++)
        text_printf(&values, "%s%s", i ? ", " : "", clike_operand(p, p->at->sums.at[i], 1).text);
    const char *data = clike_in(p, clike_operand(p, first.access, 0), LEVEL_primary);
    clike_line(p, "%s<%d, %s>(%s.data, %s.count, sizeof *%s.data, %s, %lld, %lld, %lld, {%s});",
               clike_helper(p, "slope_group_sums"), count, first.base ? "true" : "false", data, data, data,
               clike_operand(p, first.access, 1).text, (long long)(second.index - first.index),
               (long long)first.offset, (long long)(second.offset - first.offset), values.at);
}

bool clike_sum(Printer *p, const Inst *inst) {
    Place place;
    if (!is_waiting_sum(p, inst) || !find_place(inst, &place)) return false;
    vec_push(&p->arena, &p->at->sums, inst);
    if (goes_on(p, inst, &place)) return true;
    print_together(p);
    p->at->sums.count = 0;
    return true;
}

/* ---- addresses that nobody needs */

typedef struct Addresses {
    Printer *p;
    VEC(const Inst *) all;
} Addresses;

static void note_inst(void *user, Inst *inst) {
    Addresses *addresses = user;
    if (op_has(inst->op, OP_PART) || is_waiting_sum(addresses->p, inst))
        vec_push(&addresses->p->arena, &addresses->all, inst);
}

void clike_find_summed(Printer *p) {
    Addresses addresses = {.p = p};
    Place place;
    if (!p->sums_wait) return;
    p->at->summed = arena_array(&p->arena, int, p->at->func->nvals + 1);
    region_walk(p->at->func->body, note_inst, &addresses);
    for (int i = addresses.all.count - 1; i >= 0; i--) {
        const Inst *inst = addresses.all.at[i];
        const Val *address = ir_resolve(inst->args[0]);
        if (val_is_const(address)) continue;
        bool counts = inst->op == OP_atomic ? find_place(inst, &place) : clike_is_summed(p, inst->results[0]);
        p->at->summed[address->id] += counts;
    }
}

bool clike_is_summed(const Printer *p, const Val *address) {
    const FuncState *at = p->at;
    return at->summed && at->uses[address->id] > 0 && at->summed[address->id] == at->uses[address->id];
}
