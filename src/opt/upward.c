/* Loops of a reverse pass count down, since it undoes the last round first. Where no round touches what another does, any order will do, and
 * the loop counts up: then compilers vectorise it without turning every vector round.
 *
 *     left = 32; while (0 < left) { it = left - 1; dw[it] += x[it] * g; left = it; }
 *     it = 0; while (it < 32) { dw[it] += x[it] * g; it = it + 1; }
 *
 * That is so if all that is written, and all else that might be the same memory, is an element whose index is the number of the round, of arrays of one
 * and the same type: such arrays are the same or have nothing in common. Nothing but the number is carried, and it has a constant limit
 * within the arrays, since indices out of range all mean the last element. */
#include "opt.h"

enum { MOST_ACCESSES = 16 };

typedef struct Access {
    const Val *address;
    bool writes;
    Object object;
    const Type *whole; /* the array of which each round has an element; NULL: it is not so */
} Access;

typedef struct Upward {
    Memory memory;
    int *uses; /* by Val.id */
    InstVec loops;
    Arena *scratch;
} Upward;

typedef struct Rounds {
    const Inst *loop;
    Inst *step; /* it = left - 1 */
    int64_t count;
    Access accesses[MOST_ACCESSES];
    int naccesses;
} Rounds;

static const Val *operand(const Inst *inst, int index) { return ir_resolve(inst->args[index]); }

static bool is_int(const Val *v, int64_t value) {
    int64_t found;
    return val_is_int(v, &found) && found == value;
}

/* ---- the form of the loop */

static bool counts_down(const Upward *u, const Inst *loop, Rounds *rounds) {
    if (loop->nargs != 1 || loop->nregions != 2 || u->uses[loop->results[0]->id]) return false;
    const Region *condition = loop->regions[0], *body = loop->regions[1];
    const Inst *test = condition->first, *end = body->last;
    if (test->op != OP_lt || test->next != condition->last || condition->last->op != OP_yield) return false;
    if (operand(condition->last, 0) != test->results[0] || !is_int(operand(test, 0), 0)) return false;
    if (operand(test, 1) != condition->params[0] || end->op != OP_yield) return false;
    const Val *next = operand(end, 0);
    if (next->kind != VAL_inst || next->inst->op != OP_sub || next->inst->parent != body) return false;
    *rounds = (Rounds){.loop = loop, .step = next->inst};
    return operand(next->inst, 0) == body->params[0] && is_int(operand(next->inst, 1), 1) &&
           u->uses[body->params[0]->id] == 1 && val_is_int(operand(loop, 0), &rounds->count) &&
           rounds->count > 0;
}

/* ---- what is accessed */

static bool is_number(const Rounds *rounds, const Val *index) {
    const Val *number = rounds->step->results[0];
    bool is_converted = index->kind == VAL_inst && index->inst->op == OP_convert;
    return index == number ||
           (is_converted && operand(index->inst, 0) == number && rounds->count < INT32_MAX);
}

/* Finds `whole`. Indices of its other parts must not change. */
static bool find_whole(const Rounds *rounds, Access *access) {
    const Val *at = ir_resolve((Val *)(uintptr_t)access->address);
    for (; at->kind == VAL_inst && (at->inst->op == OP_field || at->inst->op == OP_elem);
         at = operand(at->inst, 0)) {
        const Type *whole = at->inst->args[0]->type->args[0];
        if (at->inst->op == OP_field || !inst_contains(rounds->loop, operand(at->inst, 1))) continue;
        bool is_right = whole->kind == TYPE_array && is_number(rounds, operand(at->inst, 1)) &&
                        rounds->count <= type_length(whole) && !access->whole;
        if (!is_right) return false;
        access->whole = whole;
    }
    return access->whole && !inst_contains(rounds->loop, at);
}

static bool add_access(const Upward *u, Rounds *rounds, const Inst *inst) {
    if (rounds->naccesses == MOST_ACCESSES) return false;
    Access *access = &rounds->accesses[rounds->naccesses++];
    *access = (Access){.address = inst->args[0], .writes = inst->op == OP_store};
    access->object = opt_memory_object(&u->memory, access->address);
    if (!find_whole(rounds, access)) access->whole = NULL;
    return true;
}

static bool find_accesses(const Upward *u, Rounds *rounds) {
    for (const Inst *inst = rounds->loop->regions[1]->first; inst; inst = inst->next) {
        bool is_access = inst->op == OP_load || inst->op == OP_store;
        bool is_harmless = op_has(inst->op, OP_PURE) || inst->op == OP_tape_load || inst->op == OP_yield;
        if (inst->nregions || !(is_access || is_harmless)) return false;
        if (is_access && !add_access(u, rounds, inst)) return false;
    }
    return true;
}

static bool are_apart(const Object *a, const Object *b) {
    if (a->key == b->key) return false;
    return a->is_private || b->is_private || a->is_constant || b->is_constant || (a->key && b->key);
}

static bool has_numbers(const Type *array) { return type_is_scalar(array->args[0]); }

/* Does each round have its own part of both? */
static bool is_parted(const Access *a, const Access *b) {
    if (are_apart(&a->object, &b->object)) return true;
    if (!a->whole || !b->whole) return false;
    return a->whole == b->whole || (has_numbers(a->whole) && has_numbers(b->whole));
}

static bool are_independent(const Rounds *rounds) {
    for (int i = 0; i < rounds->naccesses; i++)
        for (int k = 0; k < rounds->naccesses && rounds->accesses[i].writes; k++)
            if (!is_parted(&rounds->accesses[i], &rounds->accesses[k])) return false;
    return true;
}

/* ---- the other way round */

/* The number is what is carried, and the step adds to it. */
static void turn(Inst *loop, Inst *step) {
    Module *module = loop->func->module;
    Region *condition = loop->regions[0], *body = loop->regions[1];
    Val *number = body->params[0], *left = condition->params[0], *next = step->results[0];
    const Type *type = number->type;
    for (Inst *inst = body->first; inst != body->last; inst = inst->next)
        for (int i = 0; i < inst->nargs; i++)
            if (ir_resolve(inst->args[i]) == next) inst->args[i] = number;
    condition->first->args[0] = left;
    condition->first->args[1] = ir_resolve(loop->args[0]);
    loop->args[0] = ir_const_int(module, type, 0);
    step->op = OP_add;
    step->args[0] = number;
    step->args[1] = ir_const_int(module, type, 1);
    loop->results[0]->name = number->name = left->name = next->name;
    next->name = NULL;
}

static void note_inst(void *user, Inst *inst) {
    Upward *u = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = operand(inst, i);
        if (!val_is_const(v)) u->uses[v->id]++;
    }
    if (inst->op == OP_loop) vec_push(u->scratch, &u->loops, inst);
}

bool opt_upward(Func *func) {
    if (!func->body) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Upward u = {.scratch = scratch, .uses = arena_array(scratch, int, func->nvals + 1)};
    bool changed = false;
    region_walk(func->body, note_inst, &u);
    if (u.loops.count) opt_memory_init(&u.memory, scratch, func);
    for (int i = 0; i < u.loops.count; i++) {
        Rounds rounds;
        if (!counts_down(&u, u.loops.at[i], &rounds)) continue;
        if (!find_accesses(&u, &rounds) || !are_independent(&rounds)) continue;
        turn(u.loops.at[i], rounds.step);
        changed = true;
    }
    arena_free(scratch);
    return changed;
}
