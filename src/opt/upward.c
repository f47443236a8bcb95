/* Loops of a reverse pass count down, since it undoes the last round first. Where no round touches what
 * another does, any order will do, and the loop counts up: then compilers vectorise it without turning every
 * vector round.
 *
 *     left = 32; while (0 < left) { it = left - 1; dw[it] += x[it] * g; left = it; }
 *     it = 0; while (it < 32) { dw[it] += x[it] * g; it = it + 1; }
 *
 * That is so if all that is written, and all else that might be the same memory, is an element whose index is
 * the number of the round, of arrays of one and the same type: such arrays are the same or have nothing in
 * common. The number has a constant limit within the arrays, since indices out of range all mean the last
 * element. What else is carried are sums that nobody wrote an order of.
 *
 * Sums in memory (what is read, added to in any order and put back, or atomic operations whose result nobody
 * uses) have no order either. In what autodiff has made those in buffers go to derivatives, while
 * what is read from other buffers belongs to the function itself; a loop that also sets elements of a buffer
 * stays as it is, and so does one that reads derivatives of what was stored (LoopHints.takes): these may be
 * what it adds to, under another name.
 *
 * Loops around loops are turned as well, for the sake of those inside: LLVM tests before the outer one
 * whether what the inner one reads and writes might be the same memory, but only if it counts up. */
#include "opt.h"

enum { MOST_ACCESSES = 48 };

typedef struct Access {
    const Inst *inst;
    bool writes, sums; /* sums: what it writes, or reads for that, is a sum in memory */
    Object object;
    const Val *buffer; /* of which it is an element; else NULL */
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
    int number;    /* which of the carried values counts */
    Inst *step;    /* it = left - 1 */
    int64_t count; /* of rounds; 0: not known */
    Access accesses[MOST_ACCESSES];
    int naccesses;
} Rounds;

static bool is_int(const Val *v, int64_t value) {
    int64_t found;
    return val_is_int(v, &found) && found == value;
}

/* ---- the form of the loop */

/* The condition is that there is something left: which of the carried values that is, or -1. */
static int find_left(const Inst *loop) {
    const Region *condition = loop->regions[0];
    const Inst *test = condition->first;
    if (test->op != OP_lt || test->next != condition->last || condition->last->op != OP_yield) return -1;
    if (inst_operand(condition->last, 0) != test->results[0] || !is_int(inst_operand(test, 0), 0)) return -1;
    for (int i = 0; i < loop->nargs; i++)
        if (inst_operand(test, 1) == condition->params[i]) return i;
    return -1;
}

static bool counts_down(const Upward *u, const Inst *loop, Rounds *rounds) {
    int number = loop->nregions == 2 ? find_left(loop) : -1;
    if (number < 0 || u->uses[loop->results[number]->id]) return false;
    const Region *body = loop->regions[1];
    if (body->last->op != OP_yield) return false;
    const Val *next = inst_operand(body->last, number);
    if (next->kind != VAL_inst || next->inst->op != OP_sub || next->inst->parent != body) return false;
    *rounds = (Rounds){.loop = loop, .number = number, .step = next->inst};
    if (val_is_int(inst_operand(loop, number), &rounds->count) && rounds->count <= 0) return false;
    bool is_used_else = u->uses[body->params[number]->id] > 1;
    if (is_used_else && !loop->func->module->keeps_order)
        return false; /* LLVM finds pairs in triangles that count down */
    return inst_operand(next->inst, 0) == body->params[number] && is_int(inst_operand(next->inst, 1), 1);
}

static bool is_free_sum(const Upward *u, const Inst *loop, int index);

/* Is it the value with something added to it, or subtracted, by this loop or one inside, that nobody else
 * sees? */
static bool adds_to(const Upward *u, const Val *sum, const Val *value) {
    if (sum == value) return u->uses[value->id] == 1;
    if (sum->kind != VAL_inst || u->uses[sum->id] != 1) return false;
    const Inst *inst = sum->inst;
    if (inst->op == OP_loop)
        return adds_to(u, inst_operand(inst, sum->index), value) && is_free_sum(u, inst, sum->index);
    if (!inst_is_free_sum(inst)) return false;
    return adds_to(u, inst_operand(inst, 0), value) ||
           (inst->op == OP_add && adds_to(u, inst_operand(inst, 1), value));
}

/* A sum of which no round sees what the others have added. */
static bool is_free_sum(const Upward *u, const Inst *loop, int index) {
    const Region *body = loop->regions[1];
    const Val *param = body->params[index];
    if (loop->nregions != 2 || body->last->op != OP_yield) return false;
    const Val *next = inst_operand(body->last, index);
    return next != param && adds_to(u, next, param) && u->uses[loop->regions[0]->params[index]->id] == 0;
}

static bool carries_sums(const Upward *u, const Rounds *rounds) {
    for (int i = 0; i < rounds->loop->nargs; i++)
        if (i != rounds->number && !is_free_sum(u, rounds->loop, i)) return false;
    return true;
}

/* ---- what is accessed */

static bool is_number(const Rounds *rounds, const Val *index) {
    const Val *number = rounds->step->results[0];
    bool is_converted = index->kind == VAL_inst && index->inst->op == OP_convert;
    return index == number ||
           (is_converted && inst_operand(index->inst, 0) == number && rounds->count < INT32_MAX);
}

/* Finds `whole`. Indices of its other parts must not change. */
static bool find_whole(const Rounds *rounds, Access *access) {
    const Val *at = inst_operand(access->inst, 0);
    for (; at->kind == VAL_inst && (at->inst->op == OP_field || at->inst->op == OP_elem);
         at = inst_operand(at->inst, 0)) {
        const Type *whole = at->inst->args[0]->type->args[0];
        if (at->inst->op == OP_field || !inst_contains(rounds->loop, inst_operand(at->inst, 1))) continue;
        bool is_right = whole->kind == TYPE_array && is_number(rounds, inst_operand(at->inst, 1)) &&
                        rounds->count > 0 && rounds->count <= type_length(whole) && !access->whole;
        if (!is_right) return false;
        access->whole = whole;
    }
    return access->whole && !inst_contains(rounds->loop, at);
}

/* Was it made by autodiff? */

static bool is_sum(const Upward *u, const Inst *inst) {
    return inst->op == OP_atomic && inst->index == ATOMIC_add && u->uses[inst->results[0]->id] == 0 &&
           inst_is_derivative(inst);
}

/* A variable of the loop's body: each round has its own. */
static bool is_of_round(const Rounds *rounds, const Object *object) {
    return object->is_private && inst_contains(rounds->loop, object->key);
}

static bool add_access(const Upward *u, Rounds *rounds, const Inst *inst) {
    Object object = opt_memory_object(&u->memory, inst->args[0]);
    if (is_of_round(rounds, &object)) return true;
    if (rounds->naccesses == MOST_ACCESSES) return false;
    Access *access = &rounds->accesses[rounds->naccesses++];
    *access = (Access){.inst = inst, .writes = inst->op != OP_load, .sums = inst->op == OP_atomic};
    access->object = object;
    access->buffer = opt_memory_buffer(inst->args[0]);
    if (!find_whole(rounds, access)) access->whole = NULL;
    return true;
}

/* What is added to, if the store does nothing but add to its place, and reads it each time; else NULL. */
static const Inst *added_to(const Upward *u, const Inst *store) {
    const Inst *load = opt_memory_sum(store);
    bool is_all = load && load->parent == store->parent && u->uses[load->results[0]->id] == 1 &&
                  u->uses[inst_operand(store, 1)->id] == 1;
    return is_all ? load : NULL;
}

static void find_sums(const Upward *u, Rounds *rounds) {
    for (int i = 0; i < rounds->naccesses && inst_is_derivative(rounds->loop); i++) {
        const Inst *load = added_to(u, rounds->accesses[i].inst);
        for (int k = 0; load && k < rounds->naccesses; k++)
            rounds->accesses[k].sums |= k == i || rounds->accesses[k].inst == load;
    }
}

static bool is_harmless(const Inst *inst) {
    bool has_parts = inst->op == OP_loop || inst->op == OP_if || inst->op == OP_switch;
    return has_parts || op_has(inst->op, OP_PURE) || inst->op == OP_var || inst->op == OP_tape_load ||
           inst->op == OP_yield;
}

static bool find_accesses(const Upward *u, Rounds *rounds, const Region *region) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        bool is_access = inst->op == OP_load || inst->op == OP_store || is_sum(u, inst);
        if (is_access ? !add_access(u, rounds, inst) : !is_harmless(inst)) return false;
        for (int i = 0; i < inst->nregions; i++)
            if (!find_accesses(u, rounds, inst->regions[i])) return false;
    }
    return true;
}

static bool are_apart(const Object *a, const Object *b) {
    if (a->key == b->key) return false;
    return a->is_private || b->is_private || a->is_constant || b->is_constant || (a->key && b->key);
}

static bool has_numbers(const Type *array) { return type_is_scalar(array->args[0]); }

/* Two sums, or one in a buffer and what is read from another. */
static bool is_beside_sum(const Rounds *rounds, const Access *a, const Access *b) {
    if (a->sums && b->sums) return true;
    if (!a->buffer || !b->buffer || !(a->sums || b->sums) || rounds->loop->hints.takes) return false;
    return a->buffer != b->buffer && !(a->writes && b->writes);
}

/* Does each round have its own part of both? */
static bool is_parted(const Rounds *rounds, const Access *a, const Access *b) {
    if (are_apart(&a->object, &b->object) || is_beside_sum(rounds, a, b)) return true;
    if (!a->whole || !b->whole) return false;
    return a->whole == b->whole || (has_numbers(a->whole) && has_numbers(b->whole));
}

static bool are_independent(const Rounds *rounds) {
    for (int i = 0; i < rounds->naccesses; i++)
        for (int k = 0; k < rounds->naccesses && rounds->accesses[i].writes; k++)
            if (!is_parted(rounds, &rounds->accesses[i], &rounds->accesses[k])) return false;
    return true;
}

/* ---- the other way round */

typedef struct Turned {
    const Inst *end; /* of the round, and which of its operands is the next number */
    int index;
    const Inst *step;
    Val *next, *number;
} Turned;

/* How many are left is one more than the number, which is the next. */
static void use_number(void *user, Inst *inst) {
    const Turned *t = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        if (v == t->next && (inst != t->end || i != t->index)) inst->args[i] = t->number;
        else if (v == t->number && inst != t->step) inst->args[i] = t->next;
    }
}

/* The number is what is carried, and the step adds to it. */
static void turn(Inst *loop, const Rounds *rounds) {
    Module *module = loop->func->module;
    int i = rounds->number;
    Inst *step = rounds->step, *test = loop->regions[0]->first;
    Val *number = loop->regions[1]->params[i], *left = loop->regions[0]->params[i], *next = step->results[0];
    const Type *type = number->type;
    Turned turned = {.end = loop->regions[1]->last, .index = i, .step = step, .next = next, .number = number};
    region_walk(loop->regions[1], use_number, &turned);
    if (step != loop->regions[1]->first) {
        inst_remove(step);
        inst_insert_before(loop->regions[1]->first, step);
    }
    test->args[0] = left;
    test->args[1] = ir_resolve(loop->args[i]);
    loop->args[i] = ir_const_int(module, type, 0);
    step->op = OP_add;
    step->args[0] = number;
    step->args[1] = ir_const_int(module, type, 1);
    loop->results[i]->name = number->name = left->name = next->name;
    next->name = NULL;
}

static void note_loop(void *user, Inst *inst) {
    Upward *u = user;
    if (inst->op == OP_loop) vec_push(u->scratch, &u->loops, inst);
}

bool opt_upward(Func *func) {
    if (!func->body) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Upward u = {.scratch = scratch, .uses = region_count_uses(scratch, func->body)};
    bool changed = false;
    region_walk(func->body, note_loop, &u);
    if (u.loops.count) opt_memory_init(&u.memory, scratch, func);
    for (int i = 0; i < u.loops.count; i++) {
        Rounds rounds;
        if (!counts_down(&u, u.loops.at[i], &rounds)) continue;
        if (!carries_sums(&u, &rounds) || !find_accesses(&u, &rounds, rounds.loop->regions[1])) continue;
        find_sums(&u, &rounds);
        if (!are_independent(&rounds)) continue;
        turn(u.loops.at[i], &rounds);
        changed = true;
    }
    arena_free(scratch);
    return changed;
}
