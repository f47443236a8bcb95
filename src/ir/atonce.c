/* How many rounds of a loop are best done at once, in vectors.
 *
 *     for (i = 0; i < n; i++) to[i] = f(from[i]);
 *
 * Where numbers of a round lie more than 64 bytes from those of the next, LLVM estimates that this gains
 * nothing; it takes 0.5 to 0.75 of the time. So it is asked for it where a round is arithmetic on numbers of
 * one size, and enough of it for what is read and written, with all that is called and both sides of
 * branches.
 *
 * Loops inside count as often as they run if they are written out: then every index into an array that the
 * round has for itself is a constant, and so is the place of all that is kept on a tape, so that these are in
 * registers. */
#include "ir/ir.h"

enum { MOST_CALLS = 4 };        /* inside each other */
enum { MOST_LOOKED_AT = 4096 }; /* instructions, with those of a loop as often as they are run */

/* What a round does, number by number, with all that it calls. */
typedef struct Arithmetic {
    const Inst *loop;
    int64_t looked_at;
    int64_t done, dear; /* dear: quotients and roots */
    int64_t moved;      /* bytes that are read or written */
    int64_t elementary; /* functions, which stay one by one */
    double taken;       /* of `done`, if half of the arms of each `if` are taken */
    int bits;           /* of all numbers */
    bool is_other;      /* also something else */
} Arithmetic;

/* Where in a round. */
typedef struct Part {
    double share;  /* of the rounds come there */
    int64_t often; /* in one of these, as loops are run */
    int calls;
    const CallPath *path;
} Part;

static int numbers_in(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }

/* ---- what the round has for itself */

static const Val *root_of(Val *address, const CallPath **path) {
    const Val *root = ir_root(address);
    while (*path && root->kind == VAL_param && !root->region->owner) {
        root = ir_root((*path)->call->args[root->index]);
        *path = (*path)->caller;
    }
    return root;
}

/* Is every index on the way a constant, once loops are written out? */
static bool is_fixed_place(Val *address, const CallPath *path) {
    const Val *v = ir_resolve(address);
    for (; v->kind == VAL_inst && op_has(v->inst->op, OP_PART); v = inst_operand(v->inst, 0))
        if (v->inst->op == OP_elem && !val_is_fixed(inst_operand(v->inst, 1), path)) return false;
    if (v->kind == VAL_param && !v->region->owner && path)
        return is_fixed_place(path->call->args[v->index], path->caller);
    return true;
}

static bool is_own(const Arithmetic *all, const Part *part, Val *v, Op op) {
    const CallPath *path = part->path;
    const Val *root = root_of(v, &path);
    return root->kind == VAL_inst && root->inst->op == op && (path || inst_contains(all->loop, root));
}

/* A variable of the round is no memory, if it is known which part is meant. */
static bool is_in_registers(Arithmetic *all, const Part *part, Val *address) {
    if (!is_own(all, part, address, OP_var)) return false;
    all->is_other |= !is_fixed_place(address, part->path);
    return true;
}

static void add_tape(Arithmetic *all, const Part *part, const Inst *inst) {
    bool is_known = inst->op == OP_tape_open || is_own(all, part, inst->args[0], OP_tape_open);
    switch ((Op)inst->op) {
    case OP_tape_grow:
    case OP_tape_shrink:
    case OP_tape_push:
    case OP_tape_pop: is_known &= part->share == 1; break;
    case OP_tape_reach:
    case OP_tape_elem: is_known = false; break;
    default: break;
    }
    bool has_place = inst->op != OP_tape_push && inst->nargs > 1;
    all->is_other |= !is_known || (has_place && !val_is_fixed(inst_operand(inst, 1), part->path));
}

/* ---- what it does */

static void add_moved(Arithmetic *all, const Part *part, Val *address, const Type *type) {
    if (is_in_registers(all, part, address)) return;
    all->moved += part->often * type_layout(type, LAYOUT_scalar).size;
    all->is_other |= part->share < 1;
}

static void add_number(Arithmetic *all, const Part *part, const Inst *inst, const Type *type) {
    int bits = type_bits(type_element(type));
    int64_t count = part->often * numbers_in(type);
    all->is_other |= bits < 32 || (all->bits && bits != all->bits);
    all->bits = bits;
    if (inst->op == OP_load || inst->op == OP_store) add_moved(all, part, inst->args[0], type);
    all->dear += op_is_quotient_or_root(inst->op) ? count : 0;
    all->elementary += op_is_elementary(inst->op) ? count : 0;
    if (!op_has(inst->op, OP_ELEMENTWISE)) return;
    all->done += count;
    all->taken += part->share * (double)count;
}

static void add_numbers(Arithmetic *all, const Part *part, const Region *region);

static void add_branches(Arithmetic *all, const Part *part, const Inst *inst) {
    Part arm = *part;
    if (!val_is_fixed(inst_operand(inst, 0), part->path)) arm.share /= inst->nregions;
    for (int i = 0; i < inst->nregions; i++) add_numbers(all, &arm, inst->regions[i]);
}

static void add_loop(Arithmetic *all, const Part *part, const Inst *loop) {
    Part round = *part;
    round.often *= (int64_t)loop_known_rounds(loop);
    all->is_other |= !loop_is_left(loop) || loop_has_jumps(loop);
    if (!all->is_other) add_numbers(all, &round, loop->regions[1]);
}

static void add_call(Arithmetic *all, const Part *part, const Inst *call) {
    CallPath path = {call, part->path};
    Part called = *part;
    called.calls++;
    called.path = &path;
    all->is_other |= called.calls > MOST_CALLS || !call->callee->body;
    if (!all->is_other) add_numbers(all, &called, call->callee->body);
}

static void add_other(Arithmetic *all, const Part *part, const Inst *inst) {
    const Val *v = inst->op == OP_store  ? inst_operand(inst, 1)
                   : inst->nresults == 1 ? inst->results[0]
                                         : NULL;
    all->is_other |= inst->nregions > 0 || inst->nresults > 1;
    if (v && type_is_float(type_element(v->type))) add_number(all, part, inst, v->type);
}

static void add_inst(Arithmetic *all, const Part *part, const Inst *inst) {
    all->looked_at += part->often;
    switch ((Op)inst->op) {
    case OP_if: add_branches(all, part, inst); break;
    case OP_loop: add_loop(all, part, inst); break;
    case OP_call: add_call(all, part, inst); break;
    case OP_copy: add_moved(all, part, inst->args[1], inst->args[1]->type->args[0]); /* fall through */
    case OP_zero: add_moved(all, part, inst->args[0], inst->args[0]->type->args[0]); break;
    default:
        if (op_has(inst->op, OP_TAPE) || inst->op == OP_tape_open || inst->op == OP_tape_close)
            add_tape(all, part, inst);
        add_other(all, part, inst);
    }
}

static void add_numbers(Arithmetic *all, const Part *part, const Region *region) {
    for (const Inst *inst = region->first; inst && !all->is_other; inst = inst->next) {
        add_inst(all, part, inst);
        all->is_other |= all->looked_at > MOST_LOOKED_AT;
    }
}

/* Asked for a width, LLVM would change the order of a sum. */
static bool carries_numbers(const Region *body) {
    for (int i = 0; i < body->nparams; i++)
        if (!type_is_integer(body->params[i]->type)) return true;
    return false;
}

int loop_rounds_at_once(const Inst *loop) {
    enum { REGISTER = 128 };
    enum { LEAST_DEAR = 2, LEAST_CHEAP = 60 };   /* one of both: quotients and roots, or much of all */
    enum { LEAST_DONE = 3, LEAST_BETWEEN = 16 }; /* for each number that is moved; for each function */
    static const double most_in_vain = 0.85;     /* of what several at once gain at best */
    Arithmetic all = {.loop = loop};
    if (loop->nregions != 2 || carries_numbers(loop->regions[1])) return 1;
    add_numbers(&all, &(Part){.share = 1, .often = 1}, loop->regions[1]);
    bool is_little = all.dear < LEAST_DEAR && all.done < LEAST_CHEAP;
    if (all.is_other || is_little || all.done * all.bits < LEAST_DONE * 8 * all.moved ||
        all.done < LEAST_BETWEEN * all.elementary)
        return 1;
    int width = REGISTER / all.bits;
    return (double)all.done <= most_in_vain * width * all.taken ? width : 1;
}
