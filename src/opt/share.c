/* Copies that nobody needs: a variable that takes the whole of an unchanging object, and is read from then on, is that object.
 *
 *   %l.shape = var int[5]                 what an array parameter is to a callee, a field of a struct that was put together,
 *   copy %l.shape, %image.shape           a second name for a tensor. Calls take it by its address, so that it does not become
 *   call @load(.., %l.shape, ..)          a value; and what is memory of its own is kept for every call that the reverse goes through.
 *
 * Uses are numbered as they stand. The copy must stand before every other use, and in a region that contains them all, so that each
 * of them comes after it whenever it runs; the source must be an input that this function writes nowhere. Going through copies in their
 * order, the source of a copy of a copy has become such an input by its turn.
 *
 * Of memory that a group shares, a copy would read what other threads write, only to use a part of it: it is not made where all uses follow it, and nothing in between
 * writes but to variables of the thread. */
#include "opt.h"

typedef struct Uses {
    Inst *copy;      /* what writes it, if that is a copy of the whole */
    int writes;      /* how many do */
    int first, last; /* of the reads */
    bool escapes;
} Uses;

typedef struct Share {
    Func *func;
    Arena *scratch;
    Uses *uses;     /* by id of a variable or parameter */
    Map ends;       /* Region -> the number of its last instruction, plus one */
    InstVec copies; /* of whole variables, in order */
    Map numbers;    /* copy -> its number */
    int now;
} Share;

/* ---- looking at uses */

static void note_use(Share *s, Inst *inst, int operand) {
    const Val *arg = ir_resolve(inst->args[operand]);
    Role role = ir_role(inst, operand);
    if (role == ROLE_value) return;
    const Val *root = ir_root((Val *)(uintptr_t)arg);
    if (val_is_const(root)) return;
    Uses *uses = &s->uses[root->id];
    if (role == ROLE_write) {
        uses->writes++;
        bool whole = inst->op == OP_copy && operand == 0 && arg == root && !inst->flags;
        uses->copy = whole ? inst : NULL;
        return;
    }
    uses->escapes |= role == ROLE_escape || role == ROLE_share || role == ROLE_move;
    if (!uses->first) uses->first = s->now;
    uses->last = s->now;
}

static void note_region(Share *s, const Region *region);

static void note_inst(Share *s, Inst *inst) {
    s->now++;
    for (int i = 0; i < inst->nargs; i++) note_use(s, inst, i);
    if (inst->op == OP_copy) {
        vec_push(s->scratch, &s->copies, inst);
        map_put(s->scratch, &s->numbers, PTR_KEY(inst), (void *)(uintptr_t)s->now);
    }
    for (int i = 0; i < inst->nregions; i++) note_region(s, inst->regions[i]);
}

static void note_region(Share *s, const Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) note_inst(s, inst);
    map_put(s->scratch, &s->ends, PTR_KEY(region), (void *)(uintptr_t)s->now);
}

/* ---- taking the source itself */

/* Is it in an input that stays what it is? */
static bool is_unchanging(const Share *s, Val *address) {
    const Val *root = ir_root(address);
    if (root->kind != VAL_param || root->region != s->func->body) return false;
    const Param *param = &s->func->params[root->index];
    const Uses *uses = &s->uses[root->id];
    return (param->flags & PARAM_BY_ADDRESS) && param->dir == DIR_in && !uses->writes && !uses->escapes;
}

static bool is_quiet(const Inst *inst) {
    if (inst->nregions || op_has(inst->op, OP_EFFECT | OP_CALLS | OP_ENDS)) return false;
    return !op_has(inst->op, OP_WRITES) || ir_space(inst->args[0]->type) == SPACE_local;
}

/* Does nothing happen to the source before the last use? */
static bool is_used_at_once(const Inst *copy, int number, int last) {
    const Inst *inst = copy->next;
    for (; inst && ++number < last && is_quiet(inst); inst = inst->next) {}
    return inst && number == last && !inst->nregions;
}

static bool can_share(const Share *s, const Inst *copy) {
    const Val *to = ir_resolve(copy->args[0]);
    if (to->kind != VAL_inst || to->inst->op != OP_var ||
        ir_target(to->type) != ir_target(copy->args[1]->type))
        return false;
    const Uses *uses = &s->uses[to->id];
    if (uses->copy != copy || uses->writes != 1 || uses->escapes) return false;
    int number = (int)(uintptr_t)map_get(&s->numbers, PTR_KEY(copy)),
        end = (int)(uintptr_t)map_get(&s->ends, PTR_KEY(copy->parent));
    if (uses->first <= number || uses->last > end) return false;
    bool is_of_group = ir_space(copy->args[1]->type) == SPACE_shared;
    return is_unchanging(s, copy->args[1]) || (is_of_group && is_used_at_once(copy, number, uses->last));
}

bool opt_share(Func *func) {
    Share s = {.func = func, .scratch = arena_scratch(func->module->arena)};
    s.uses = arena_array(s.scratch, Uses, func->nvals + 1);
    bool changed = false;
    note_region(&s, func->body);
    for (int i = 0; i < s.copies.count; i++) {
        Inst *copy = s.copies.at[i];
        if (!can_share(&s, copy)) continue;
        Val *to = ir_resolve(copy->args[0]);
        to->forward = ir_resolve(copy->args[1]);
        inst_remove(to->inst);
        inst_remove(copy);
        changed = true;
    }
    if (changed) ir_resolve_func(func);
    arena_free(s.scratch);
    return changed;
}
