/* Elements of buffers that a kernel stores part by part, one part right after the other, until nothing of
 * them is as it was: a result, a gradient. If the threads of a warp store elements that follow each other, as
 * they mostly do, each instruction writes a few bytes here and there, and the memory is kept busy by parts of
 * lines. So on a GPU such an element is put together in a variable, and a warp writes its elements at once,
 * through memory of the group. */
#include "emit/reach.h"

enum { FEWEST_WORDS = 3, MOST_WORDS = 64, MOST_SHARED = 44 << 10 }; /* of an element; of a group, in bytes */

typedef struct Parts {
    const Inst *access, *last; /* what finds the element; the store after which nothing of it is missing */
    uint64_t covered;          /* a bit for each word */
    int words;
} Parts;

/* The bytes of the element that are stored; false: not known, or not in whole words. */
static bool find_bytes(const Inst *store, int64_t *offset, const Inst **access) {
    const Val *address = ir_resolve(store->args[0]);
    *offset = 0;
    for (; address->kind == VAL_inst && op_has(address->inst->op, OP_PART);
         address = ir_resolve(address->inst->args[0])) {
        const Inst *part = address->inst;
        const Type *whole = part->args[0]->type->args[0];
        int64_t index;
        if (part->op == OP_field) {
            *offset += type_field_offset(whole, part->index, LAYOUT_scalar);
            continue;
        }
        if (part->op != OP_elem || !val_is_int(ir_resolve(part->args[1]), &index) || index < 0) return false;
        if (index >= (whole->kind == TYPE_vector ? type_count(whole) : type_length(whole))) return false;
        *offset += index * type_element_stride(whole, LAYOUT_scalar);
    }
    *access = address->kind == VAL_inst ? address->inst : NULL;
    return *access && (*access)->op == OP_buffer_elem;
}

static bool add_store(Parts *parts, const Inst *store) {
    const Inst *access;
    int64_t offset, size = type_layout(store->args[0]->type->args[0], LAYOUT_scalar).size;
    if (!find_bytes(store, &offset, &access) || access != parts->access || size <= 0) return false;
    if ((offset | size) % 4 || offset + size > parts->words * 4) return false;
    uint64_t bits = size == 4 * MOST_WORDS ? UINT64_MAX : ((1ull << size / 4) - 1) << offset / 4;
    parts->covered |= bits;
    parts->last = store;
    return true;
}

static bool is_store(const Inst *inst) {
    return inst->op == OP_store || inst->op == OP_copy || inst->op == OP_zero;
}

/* What stands between two of the stores must not look at the element. */
static bool is_harmless(const Inst *inst) {
    if (inst->nregions || inst->op == OP_buffer_elem) return inst->op == OP_buffer_elem;
    if (inst->op != OP_load) return op_has(inst->op, OP_PURE);
    Space space = ir_space(inst->args[0]->type);
    return space != SPACE_any && space != SPACE_buffer;
}

/* The source of a copy is read, too. */
static bool reads_own(const Inst *store) {
    return store->op != OP_copy || ir_space(store->args[1]->type) == SPACE_local;
}

static bool find_parts(const Inst *first, Parts *parts) {
    uint64_t all = parts->words == MOST_WORDS ? UINT64_MAX : (1ull << parts->words) - 1;
    for (const Inst *inst = first; inst && parts->covered != all; inst = inst->next) {
        if (is_store(inst) ? !reads_own(inst) || !add_store(parts, inst) : !is_harmless(inst)) return false;
    }
    return parts->covered == all && parts->last != first;
}

static int words_of(const Inst *access) {
    int64_t size = type_layout(access->results[0]->type->args[0], LAYOUT_scalar).stride;
    return size % 4 || size < 4 * FEWEST_WORDS || size > 4 * MOST_WORDS ? 0 : (int)(size / 4);
}

const Inst *emit_last_part(const Inst *store, const Inst *access) {
    Parts parts = {.access = access, .words = words_of(access)};
    return parts.words && find_parts(store, &parts) ? parts.last : NULL;
}

/* Memory of the group for a warp's elements, one after the other. */
int64_t emit_whole_bytes(const Func *func, const WholeElement *whole) {
    return (int64_t)emit_warps(func) * 32 * (whole->words | 1) * 4;
}

bool emit_find_whole(const Inst *store, WholeElement *whole) {
    Parts parts = {0};
    int64_t offset;
    if (!find_bytes(store, &offset, &parts.access)) return false;
    parts.words = words_of(parts.access);
    if (!parts.words || !find_parts(store, &parts)) return false;
    *whole = (WholeElement){parts.access, parts.last, parts.words};
    return true;
}

int64_t emit_part_offset(const Inst *store) {
    const Inst *access;
    int64_t offset;
    return find_bytes(store, &offset, &access) ? offset : 0;
}

int64_t emit_copied_bytes(const Func *func) {
    int64_t bytes = 0;
    for (int i = 0; i < func->ncopies; i++)
        bytes += func->copies[i].elements *
                 type_layout(func->copies[i].owner->type->args[0], LAYOUT_scalar).stride;
    return bytes;
}

bool emit_take_shared(const Reached *reached, const WaitingSums *sums, int64_t *taken, int64_t bytes) {
    if (reached->shared_size + emit_sums_bytes(sums) + *taken + bytes > MOST_SHARED) return false;
    *taken += bytes;
    return true;
}

int emit_warps(const Func *func) {
    const int *size = func->group_size;
    return (size[0] * size[1] * size[2] + 31) / 32;
}
