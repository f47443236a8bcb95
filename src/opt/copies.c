/* On a GPU, elements of a buffer that all threads read again and again, such as the weights of a network, are
 * copied by each group of threads when it begins, to memory of its own. They are near there, several are read
 * by one instruction, and no index needs a test: what would be out of range is zero in the copy.
 *
 *     for (i = 0; i < 32; i++) sum += weights[i + 7] * x[i];        39 elements are copied
 *
 * Here it is decided which, and the accesses are marked; who makes the code makes the copies. Indices are
 * between bounds that are known. Nothing in the kernel writes to the buffer, and no thread waits for another
 * that might have written to it by another name: different uniforms are taken to be different memory, as they
 * are where a group keeps sums (emit/sums.c). */
#include "opt.h"

enum { FEWEST_THREADS = 64, FEWEST_WORDS = 64, MOST_BYTES = 16 << 10 }; /* words that a thread reads */
enum { ROUNDS = 8, WORDS_EACH = 16 }; /* of a loop that nobody knows; copied for each that a thread reads */

typedef struct Copies {
    Func *func;
    Arena *scratch;
    LoopJumps jumps;
    VEC(const Global *) written;
    VEC(GroupCopy) all;
    bool unknown; /* something is written that may be in any buffer */
    bool refused;
} Copies;

/* ---- what must not be copied */

static void note_written(Copies *c, Val *address) {
    const Val *root = ir_root(address);
    Space space = ir_space(root->type);
    if (space != SPACE_any && space != SPACE_buffer) return;
    const Val *buffer = opt_memory_buffer(address);
    const Global *owner = buffer ? ir_owner(buffer) : NULL;
    if (owner) vec_push(c->scratch, &c->written, owner);
    else c->unknown = true;
}

static void look_for_writes(void *user, Inst *inst) {
    Copies *c = user;
    bool is_harmless = inst->op != OP_call || (inst->callee->flags & (FUNC_PURE | FUNC_HARMLESS));
    c->refused |= inst->op == OP_barrier || !is_harmless;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        bool is_read = role == ROLE_value || role == ROLE_part || role == ROLE_move || role == ROLE_read;
        if (!is_read) note_written(c, inst->args[i]);
    }
}

static bool may_be_written(const Copies *c, const Global *owner) {
    if (type_is_read_only(owner->type)) return false;
    bool is_written = c->unknown;
    for (int i = 0; i < c->written.count; i++) is_written |= c->written.at[i] == owner;
    return is_written;
}

/* ---- what is read */

static const Global *owner_of(const Inst *access) {
    const Global *owner = access->op == OP_buffer_elem ? ir_owner(ir_resolve(access->args[0])) : NULL;
    bool is_buffer = owner && owner->kind == GLOBAL_uniform && owner->type->kind == TYPE_buffer;
    return is_buffer ? owner : NULL;
}

static int64_t size_of(const Global *owner) {
    return type_layout(owner->type->args[0], LAYOUT_scalar).stride;
}

/* Those take as long from either memory, and have less of the cache then. */
static bool has_doubles(const Global *owner) {
    return type_layout(owner->type->args[0], LAYOUT_scalar).align > 4;
}

/* How many elements there must be for all that it leads to; 0: not known, or too many. */
static int64_t elements_of(const Copies *c, const Inst *access, const Global *owner) {
    Interval index = ir_interval(&c->jumps, ir_resolve(access->args[1]));
    int64_t size = size_of(owner);
    if (!index.known || index.low < 0 || size <= 0 || size % 4 || has_doubles(owner)) return 0;
    return index.high < MOST_BYTES / size ? index.high + 1 : 0;
}

/* The access that leads to what is read there; NULL: there is none. */
static Inst *access_of(const Inst *inst) {
    if (inst->op != OP_load && inst->op != OP_copy) return NULL;
    const Val *root = ir_root(inst->args[inst->op == OP_copy]);
    return root->kind == VAL_inst && root->inst->op == OP_buffer_elem ? root->inst : NULL;
}

/* Words that a thread reads there: as often as the loops around it say. */
static int64_t words_by(const Inst *inst) {
    const Type *type = inst->args[inst->op == OP_copy]->type->args[0];
    int64_t count = (type_layout(type, LAYOUT_scalar).size + 3) / 4;
    for (const Region *region = inst->parent; region->owner; region = region->owner->parent) {
        int64_t rounds = region->owner->op == OP_loop ? loop_most_trips(region->owner) : 1;
        count *= rounds < 0 || rounds == INT64_MAX ? ROUNDS : rounds;
        if (count >= MOST_BYTES) return MOST_BYTES;
    }
    return count;
}

static GroupCopy *find_copy(const Copies *c, const Global *owner) {
    for (int i = 0; i < c->all.count; i++)
        if (c->all.at[i].owner == owner) return &c->all.at[i];
    return NULL;
}

static void look_for_reads(void *user, Inst *inst) {
    Copies *c = user;
    const Inst *access = access_of(inst);
    const Global *owner = access ? owner_of(access) : NULL;
    int64_t elements = owner && !may_be_written(c, owner) ? elements_of(c, access, owner) : 0;
    if (!elements) return;
    if (!find_copy(c, owner)) vec_push(c->scratch, &c->all, ((GroupCopy){.owner = owner}));
    GroupCopy *copy = find_copy(c, owner);
    if (copy->elements < elements) copy->elements = elements;
    copy->words += words_by(inst);
}

/* ---- the choice */

static void choose(Copies *c) {
    int64_t bytes = 0;
    int kept = 0;
    for (int i = 0; i < c->all.count; i++) {
        const GroupCopy *copy = &c->all.at[i];
        int64_t size = (copy->elements * size_of(copy->owner) + 15) / 16 * 16;
        bool pays = copy->words >= FEWEST_WORDS && copy->words >= size / 4 / WORDS_EACH;
        if (!pays || bytes + size > MOST_BYTES) continue;
        bytes += size;
        c->all.at[kept++] = *copy;
    }
    c->all.count = kept;
}

static void mark(void *user, Inst *inst) {
    Copies *c = user;
    const Global *owner = inst->op == OP_buffer_elem ? owner_of(inst) : NULL;
    const GroupCopy *copy = owner ? find_copy(c, owner) : NULL;
    int64_t elements = copy ? elements_of(c, inst, owner) : 0;
    if (elements && elements <= copy->elements) inst->flags |= INST_COPIED;
}

/* Groups with memory of their own may need all there is. */
static bool is_wanted(const Func *func) {
    const int *size = func->group_size;
    const Module *module = func->module;
    if (!func->body || !module->many_threads || (int64_t)size[0] * size[1] * size[2] < FEWEST_THREADS)
        return false;
    for (int i = 0; i < module->globals.count; i++)
        if (module->globals.at[i]->kind == GLOBAL_shared) return false;
    return true;
}

bool opt_copies(Func *func) {
    if (!is_wanted(func)) return false;
    Copies c = {.func = func, .scratch = arena_scratch(func->module->arena)};
    c.jumps = loop_find_jumps(c.scratch, func);
    region_walk(func->body, look_for_writes, &c);
    if (!c.refused) region_walk(func->body, look_for_reads, &c);
    choose(&c);
    func->ncopies = c.all.count;
    func->copies = arena_array(func->module->arena, GroupCopy, c.all.count);
    for (int i = 0; i < c.all.count; i++) func->copies[i] = c.all.at[i];
    if (c.all.count) region_walk(func->body, mark, &c);
    arena_free(c.scratch);
    return func->ncopies > 0;
}
