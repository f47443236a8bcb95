/* Nests of short loops over small arrays, as in elimination on a 4 x 4 matrix. Written out, every index is a constant, so that the arrays are numbers in
 * registers; left as loops, each number is stored and read again, and what vectorises the inner loop reads rows of which one number was
 * stored just before, for which processors wait. Compilers write out such loops one by one, the inner first, and stop at a limit that is meant for
 * loops of which little is known. */
#include "emit/reach.h"

enum { MOST_ROUNDS = 8, MOST_WRITTEN = 2048 }; /* of one loop; instructions of a nest */

/* What is inside a loop, without the loops in there. */
typedef struct Inside {
    int64_t written; /* instructions of one round, with those of loops inside as often as they are run */
    bool has_loop, is_left;
    bool has_array; /* of which it depends on the round which element is used */
} Inside;

static int64_t written_size(const Inst *loop, Inside *inside);

static void look_at(Inside *inside, const Inst *inst);

static void look_into(Inside *inside, const Inst *inst) {
    for (int i = 0; i < inst->nregions; i++)
        for (const Inst *part = inst->regions[i]->first; part && inside->written <= MOST_WRITTEN;
             part = part->next)
            look_at(inside, part);
}

static void look_at(Inside *inside, const Inst *inst) {
    bool jumps = inst->op == OP_break || inst->op == OP_continue || inst->op == OP_return;
    inside->is_left |= jumps || inst->op == OP_call;
    inside->written++;
    if (inst->op == OP_elem)
        inside->has_array |=
            !val_is_const(ir_resolve(inst->args[1])) && ir_space(inst->args[0]->type) == SPACE_local;
    if (inst->op != OP_loop) {
        look_into(inside, inst);
        return;
    }
    Inside nested = {0};
    inside->written += written_size(inst, &nested);
    inside->has_loop = true;
    inside->has_array |= nested.has_array;
}

/* Instructions that it becomes; more than MOST_WRITTEN: too many, or nobody knows. */
static int64_t written_size(const Inst *loop, Inside *inside) {
    const Inst *yield = loop->regions[0]->last;
    const Val *condition = yield && yield->op == OP_yield ? ir_resolve(yield->args[0]) : NULL;
    bool is_one_test = condition && condition->kind == VAL_inst && condition->inst->op != OP_and;
    int64_t rounds = is_one_test ? emit_constant_trip(loop) : INT64_MAX;
    if (rounds > MOST_ROUNDS) return MOST_WRITTEN + 1;
    look_into(inside, loop);
    if (inside->is_left || inside->written > MOST_WRITTEN) return MOST_WRITTEN + 1;
    return rounds * inside->written;
}

static const Inst *loop_around(const Inst *inst) {
    const Region *region = inst->parent;
    while (region->owner && region->owner->op != OP_loop) region = region->owner->parent;
    return region->owner;
}

bool emit_is_written_out(const Inst *loop) {
    Inside inside = {0};
    if (written_size(loop, &inside) > MOST_WRITTEN || !inside.has_array) return false;
    const Inst *around = inside.has_loop ? NULL : loop_around(loop);
    return inside.has_loop || (around && emit_is_written_out(around));
}
