/* What a loop reads from buffers is read behind calls that come before its first use.
 *
 *     x = item.x; y = item.y; s = sin(x); z = s * y;            x = item.x; s = sin(x); y = item.y; z = s * y;
 *
 * An object that a function is given is read whole, where code by hand reads a field when it comes to it.
 * Functions for vectors leave few registers as they were: what is there before a call goes to memory and
 * comes back, for each of the rounds that LLVM takes together. So a load waits for the last call, or
 * elementary function, before its first use, if nothing in between might write what it reads; not for the use
 * itself, where it would have to be waited for.
 *
 * Compilers of C keep the order in which memory is read, more or less: there a copy of a whole object waits
 * for the last loop before its first use, likewise. A nest that is written out has better uses for
 * registers. */
#include "opt.h"

enum { MOST_CALLS = 64 }; /* of a region; loads wait for no others */

typedef struct Near {
    bool copies; /* wait, too */
    int *
        number; /* by Val.id: of the first instruction that uses it, in the region at work, counted from the end */
    Region **region; /* ... which that is */
    bool changed;
} Near;

/* ---- what an instruction, or something in it, does */

typedef struct Doing {
    Near *near;
    Region *region;
    int number;
    bool writes, calls;
} Doing;

static bool may_write(const Inst *inst) {
    if (inst->op == OP_call) return !(inst->callee->flags & FUNC_PURE);
    if (op_has(inst->op, OP_EFFECT | OP_LEAVES)) return true;
    Space space = op_has(inst->op, OP_WRITES) ? ir_space(inst->args[0]->type) : SPACE_local;
    return space == SPACE_buffer || space == SPACE_any;
}

static void note(void *user, Inst *inst) {
    Doing *doing = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = inst_operand(inst, i);
        if (val_is_const(v)) continue;
        doing->near->number[v->id] = doing->number;
        doing->near->region[v->id] = doing->region;
    }
    doing->calls |= op_is_elementary(inst->op) || inst->op == OP_call;
    doing->writes |= may_write(inst);
}

/* ---- the entry */

typedef struct Call {
    Inst *inst;
    int number;
} Call;

/* What it reads, if it can wait: the result of a load, or the variable that a copy goes to; else NULL. */
static const Val *read_by(const Near *n, const Inst *inst) {
    bool is_copy = n->copies && inst->op == OP_copy;
    if (inst->op != OP_load && !is_copy) return NULL;
    const Val *root = ir_base(inst->args[is_copy]), *to = is_copy ? inst_operand(inst, 0) : inst->results[0];
    bool is_own = !is_copy || (to->kind == VAL_inst && to->inst->op == OP_var);
    bool is_there =
        root->kind == VAL_inst && root->inst->op == OP_buffer_elem && inst_has(root->inst, INST_UNCHECKED);
    return is_own && is_there ? to : NULL;
}

typedef struct Calls {
    Call at[MOST_CALLS];
    int count;
} Calls;

static void add_call(Calls *calls, Inst *inst, int number) {
    if (calls->count < MOST_CALLS) calls->at[calls->count++] = (Call){inst, number};
}

/* Behind the last call before that number; NULL: there is none. */
static Inst *behind_call(const Calls *calls, int number) {
    int i = 0;
    while (i < calls->count && calls->at[i].number <= number) i++;
    return i < calls->count ? calls->at[i].inst->next : NULL;
}

static void move_loads(Near *n, Region *region) {
    Calls calls = {.count = 0}, loops = {.count = 0};
    int number = 0, written = 0; /* `written`: what is next that may write */
    for (Inst *inst = region->last, *prev; inst; inst = prev) {
        prev = inst->prev;
        const Val *read = read_by(n, inst);
        bool waits = read && n->region[read->id] == region && n->number[read->id] >= written;
        Inst *at = waits ? behind_call(inst->op == OP_copy ? &loops : &calls, n->number[read->id]) : NULL;
        if (at) {
            inst_remove(inst);
            inst_insert_before(at, inst);
            n->changed = true;
            continue;
        }
        Doing doing = {.near = n, .region = region, .number = ++number};
        note(&doing, inst);
        inst_walk(inst, note, &doing);
        if (doing.writes) written = number;
        if (doing.calls) add_call(&calls, inst, number);
        if (inst->op == OP_loop) add_call(&loops, inst, number);
    }
}

static void visit_region(Near *n, Region *region, bool in_loop) {
    bool any = false;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        any |= in_loop && read_by(n, inst);
        for (int i = 0; i < inst->nregions; i++)
            visit_region(n, inst->regions[i], in_loop || inst->op == OP_loop);
    }
    if (any) move_loads(n, region);
}

bool opt_near(Func *func) {
    if (!func->body || func->module->many_threads) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    Near n = {.copies = func->module->keeps_order,
              .number = arena_array(scratch, int, func->nvals + 1),
              .region = arena_array(scratch, Region *, func->nvals + 1)};
    visit_region(&n, func->body, false);
    arena_free(scratch);
    return n.changed;
}
