/* Copies that nobody needs: a variable that takes the whole of an unchanging object, and is read from then
 * on, is that object.
 *
 *   %l.shape = var int[5]                 what an array parameter is to a callee, a field of a struct that was put together,
 *   copy %l.shape, %image.shape           a second name for a tensor. Calls take it by its address, so that it does not become
 *   call @load(.., %l.shape, ..)          a value; and what is memory of its own is kept for every call that the reverse goes through.
 *
 * Uses are numbered as they stand. The copy must stand before every other use, and in a region that contains
 * them all, so that each of them comes after it whenever it runs; the source must be an input that this
 * function writes nowhere. Going through copies in their order, the source of a copy of a copy has become
 * such an input by its turn.
 *
 * Of memory that a group shares, a copy would read what other threads write, only to use a part of it: it is
 * not made where all uses follow it, and nothing in between writes but to variables of the thread. Nor is one
 * of an element of a buffer that is only read: its memory could be that of another.
 *
 * What is copied from such a buffer in each round of a loop that writes to none, and is the same in all of
 * them, is copied before it.
 *
 * Zeros that nobody needs, either: a variable that is zero from the start, and that nothing was done with,
 * need not be set to zero; and it need not be zero if a copy of the whole comes first. */
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

/* Where a derivative ends, or where there is none. */
static bool keeps_derivative(const Share *s, const Inst *copy) {
    if (!copy->flags) return true;
    const Val *from = ir_root(copy->args[1]);
    bool is_input = from->kind == VAL_param && from->region == s->func->body;
    return copy->flags == INST_NO_DIFF && is_input && !(s->func->params[from->index].flags & PARAM_DIFF);
}

static void note_use(Share *s, Inst *inst, int operand) {
    const Val *arg = ir_resolve(inst->args[operand]);
    Role role = ir_role(inst, operand);
    if (role == ROLE_value) return;
    const Val *root = ir_root((Val *)(uintptr_t)arg);
    if (val_is_const(root)) return;
    Uses *uses = &s->uses[root->id];
    if (role == ROLE_write) {
        uses->writes++;
        bool whole = inst->op == OP_copy && operand == 0 && arg == root && keeps_derivative(s, inst);
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

/* Nobody writes there who knows that it is read from; but the same memory may be bound to something else,
 * too. */
static bool is_only_read(Val *address) {
    const Val *root = ir_root(address);
    return root->kind == VAL_inst && root->inst->op == OP_buffer_elem &&
           type_is_read_only(root->inst->args[0]->type);
}

/* What is called can reach the source by other ways than what it is given. */
static bool is_quiet_call(const Inst *call) {
    if (!(call->callee->flags & (FUNC_PURE | FUNC_HARMLESS))) return false;
    for (int i = 0; i < call->nargs; i++) {
        Role role = ir_role(call, i);
        if (role != ROLE_value && role != ROLE_read && ir_space(call->args[i]->type) != SPACE_local)
            return false;
    }
    return true;
}

static bool is_quiet(const Inst *inst) {
    if (inst->op == OP_tape_open || inst->op == OP_tape_close) return true;
    if (inst->op == OP_call) return is_quiet_call(inst);
    if (op_has(inst->op, OP_EFFECT | OP_CALLS)) return false;
    return !op_has(inst->op, OP_WRITES) || ir_space(inst->args[0]->type) == SPACE_local;
}

/* Does nothing but to variables of the thread, and counts. */
static bool are_quiet(const Inst *inst, int *number) {
    ++*number;
    if (!is_quiet(inst)) return false;
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *inner = inst->regions[i]->first; inner; inner = inner->next)
            if (!are_quiet(inner, number)) return false;
    return true;
}

/* Does nothing happen to the source before the last use? What it is in, a loop maybe, is looked at as a
 * whole. */
static bool is_used_at_once(const Inst *copy, int number, int last) {
    for (const Inst *inst = copy->next; inst; inst = inst->next) {
        if (number + 1 == last && !inst->nregions) return inst->op != OP_call || is_quiet_call(inst);
        if (!are_quiet(inst, &number)) return false;
        if (number >= last) return true;
    }
    return false;
}

static int number_of(const Share *s, const Inst *copy) {
    return (int)(uintptr_t)map_get(&s->numbers, PTR_KEY(copy));
}

/* Is the variable nothing but that copy, from which all read? */
static bool is_copy_alone(const Share *s, const Inst *copy) {
    const Val *to = ir_resolve(copy->args[0]);
    if (to->kind != VAL_inst || to->inst->op != OP_var) return false;
    const Uses *uses = &s->uses[to->id];
    if (uses->writes != 1 || uses->escapes) return false;
    int end = (int)(uintptr_t)map_get(&s->ends, PTR_KEY(copy->parent));
    return uses->first > number_of(s, copy) && uses->last <= end;
}

static bool can_share(const Share *s, const Inst *copy) {
    if (!is_copy_alone(s, copy)) return false;
    const Val *to = ir_resolve(copy->args[0]);
    const Uses *uses = &s->uses[to->id];
    if (uses->copy != copy || ir_target(to->type) != ir_target(copy->args[1]->type)) return false;
    if (is_unchanging(s, copy->args[1])) return true;
    bool is_of_group = ir_space(copy->args[1]->type) == SPACE_shared;
    return (is_of_group || is_only_read(copy->args[1])) &&
           is_used_at_once(copy, number_of(s, copy), uses->last);
}

/* ---- the same copy in each round */

static bool leaves_buffers(const Inst *inst) {
    if (!op_has(inst->op, OP_TAPE) && !is_quiet(inst)) return false;
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *inner = inst->regions[i]->first; inner; inner = inner->next)
            if (!leaves_buffers(inner)) return false;
    return true;
}

/* Is it made anew in each round of a loop that writes nothing but to variables of the thread, and tapes? */
static bool is_repeated(const Share *s, const Inst *copy) {
    const Inst *loop = copy->parent->owner, *var = ir_resolve(copy->args[0])->inst;
    if (!loop || loop->op != OP_loop || copy->parent != loop->regions[1] || !is_copy_alone(s, copy))
        return false;
    return ir_resolve(copy->args[0])->kind == VAL_inst && var->parent == copy->parent &&
           is_only_read(copy->args[1]) && !inst_contains(loop, ir_resolve(copy->args[1])) &&
           leaves_buffers(loop);
}

static bool make_before(Share *s, Inst *copy) {
    if (!is_repeated(s, copy)) return false;
    Inst *moved[] = {ir_resolve(copy->args[0])->inst, copy}, *loop = copy->parent->owner;
    for (int i = 0; i < 2; i++) {
        inst_remove(moved[i]);
        inst_insert_before(loop, moved[i]);
    }
    return true;
}

/* ---- zeros */

typedef struct Fresh {
    bool *zero; /* by id of a variable: it is as it was made */
    bool *read;
    InstVec needless;
    Arena *scratch;
    bool changed;
} Fresh;

/* Only what stands beside the variable surely runs after it, once. */
static bool is_beside(const Val *var, const Inst *inst, int operand) {
    return ir_resolve(inst->args[operand]) == var && inst->parent == var->inst->parent;
}

static void note_fresh(void *user, Inst *inst) {
    Fresh *fresh = user;
    if (inst->op == OP_var) fresh->zero[inst->results[0]->id] = !inst_has(inst, INST_RAW);
    for (int i = 0; i < inst->nargs; i++) {
        Role role = ir_role(inst, i);
        if (role == ROLE_value || role == ROLE_part) continue;
        const Val *root = ir_root(inst->args[i]);
        if (root->kind != VAL_inst || root->inst->op != OP_var) continue;
        if (role == ROLE_read) fresh->read[root->id] = true;
        if (role == ROLE_read || !fresh->zero[root->id]) continue;
        if (inst->op == OP_zero && is_beside(root, inst, i)) {
            vec_push(fresh->scratch, &fresh->needless, inst);
            continue;
        }
        fresh->zero[root->id] = false;
        bool whole = inst->op == OP_copy && i == 0 && is_beside(root, inst, i);
        if (!whole || fresh->read[root->id] || ir_root(inst->args[1]) == root) continue;
        root->inst->flags |= INST_RAW;
        fresh->changed = true;
    }
}

static bool drop_zeros(Share *s) {
    Fresh fresh = {.scratch = s->scratch,
                   .zero = arena_array(s->scratch, bool, s->func->nvals + 1),
                   .read = arena_array(s->scratch, bool, s->func->nvals + 1)};
    region_walk(s->func->body, note_fresh, &fresh);
    for (int i = 0; i < fresh.needless.count; i++) inst_remove(fresh.needless.at[i]);
    return fresh.changed || fresh.needless.count > 0;
}

bool opt_share(Func *func) {
    Share s = {.func = func, .scratch = arena_scratch(func->module->arena)};
    s.uses = arena_array(s.scratch, Uses, func->nvals + 1);
    bool changed = drop_zeros(&s);
    note_region(&s, func->body);
    for (int i = 0; i < s.copies.count; i++) {
        Inst *copy = s.copies.at[i];
        if (!can_share(&s, copy)) continue;
        Val *to = ir_resolve(copy->args[0]);
        to->forward = ir_resolve(copy->args[1]);
        inst_remove(to->inst);
        inst_remove(copy);
        s.copies.at[i] = NULL;
        changed = true;
    }
    if (changed) ir_resolve_func(func);
    for (int i = 0; i < s.copies.count; i++)
        if (s.copies.at[i]) changed |= make_before(&s, s.copies.at[i]);
    arena_free(s.scratch);
    return changed;
}
