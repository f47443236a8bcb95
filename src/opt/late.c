/* Sums that a thread of a GPU adds to buffers are made together: each comes as late as its region lets it, so
 * that it stands beside the next. Lanes of a warp share the work of sums that stand together
 * (emit/together.c); in a reverse pass, other statements stand between them.
 *
 *     g[i] += a; x[i] = b; g[i + 1] += c;      x[i] = b; g[i] += a; g[i + 1] += c;
 *
 * Nothing may happen in between that could tell: sums wait for variables of the thread, its tapes, and what
 * is read from other buffers. Buffers of different uniforms are taken to be different memory, as they are
 * where a group keeps sums until it ends. Values that wait are in registers, so that not too many do. */
#include "opt.h"

enum { MOST_WAITING = 64 };

typedef struct Late {
    int *uses; /* by Val.id */
    Inst *waiting[MOST_WAITING];
    int count;
    bool changed;
} Late;

static bool is_real(TypeKind kind) { return kind == TYPE_float || kind == TYPE_double; }

bool opt_is_sum(const int *uses, const Inst *inst) {
    return inst->op == OP_atomic && inst->index == ATOMIC_add && is_real(inst->results[0]->type->kind) &&
           uses[inst->results[0]->id] == 0 && opt_memory_buffer(inst->args[0]);
}

static bool is_atomic(const void *user, const Inst *inst) {
    (void)user;
    return inst->op == OP_atomic;
}

bool opt_has_own_sums(const Func *func) {
    return func->body && !func->module->many_threads && region_find(func->body, is_atomic, NULL);
}

bool opt_is_of_thread(const Val *address) {
    Space space = ir_space(address->type);
    return space == SPACE_local || space == SPACE_tape;
}

/* Is what is read there something else than what the waiting sums add to? */
static bool is_apart(const Late *l, const Val *address) {
    const Val *buffer = opt_memory_buffer(address), *root = ir_root((Val *)(uintptr_t)address);
    if (root->kind == VAL_inst && root->inst->op == OP_global)
        return root->inst->global->kind == GLOBAL_uniform || root->inst->global->kind == GLOBAL_const;
    if (!buffer) return false;
    if (type_is_read_only(buffer->type)) return true;
    const Global *owner = ir_owner(buffer);
    for (int i = 0; i < l->count; i++) {
        const Global *other = ir_owner(opt_memory_buffer(l->waiting[i]->args[0]));
        if (!owner || !other || owner == other) return false;
    }
    return true;
}

/* Can the sums wait until it is done? */
static bool can_pass(const Late *l, const Inst *inst) {
    if (inst->nregions || op_has(inst->op, OP_EFFECT | OP_CALLS | OP_ENDS)) return false;
    if (!op_has(inst->op, OP_READS | OP_WRITES)) return true;
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || opt_is_of_thread(inst->args[i])) continue;
        if (role != ROLE_read || !is_apart(l, inst->args[i])) return false;
    }
    return true;
}

static void put_before(Late *l, Inst *inst) {
    for (int i = 0; i < l->count; i++) {
        inst_remove(l->waiting[i]);
        inst_insert_before(inst, l->waiting[i]);
    }
    l->count = 0;
}

static void visit_region(Late *l, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        if (opt_is_sum(l->uses, inst) && next) {
            l->changed |= l->count > 0;
            if (l->count == MOST_WAITING) put_before(l, inst);
            l->waiting[l->count++] = inst;
        } else if (l->count && !can_pass(l, inst)) put_before(l, inst);
        for (int i = 0; i < inst->nregions; i++) visit_region(l, inst->regions[i]);
    }
}

bool opt_late_sums(Func *func) {
    if (!func->body || !func->module->many_threads) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Late l = {.uses = region_count_uses(scratch, func->body)};
    visit_region(&l, func->body);
    arena_free(scratch);
    return l.changed;
}
