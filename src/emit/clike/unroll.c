/* Loops that gcc is told to write out, as LLVM does of its own accord. Left alone, it vectorises an ordered sum by multiplying vectors and adding
 * their elements one by one, which takes longer than to add number by number; and it keeps a loop around another that runs up to the
 * counter of the first, so that nothing is known of the indices in there. Other short loops become vectors, and stay loops for that. */
#include "emit/clike/clike.h"

enum { MOST_ROUNDS = 64, MOST_INSTS = 1024 };

typedef struct Inside {
    const Inst *loop;   /* that is looked at */
    const Inst *nested; /* the loop in it */
    int loops, insts, nested_insts;
} Inside;

static void count_nested(void *user, Inst *inst) {
    Inside *inside = user;
    inside->nested_insts++;
    inside->loops += inst->op == OP_loop;
}

static void count_inside(void *user, Inst *inst) {
    Inside *inside = user;
    inside->insts++;
    if (inst->op != OP_loop || inside->nested) return;
    inside->nested = inst;
    for (int i = 0; i < inst->nregions; i++) region_walk(inst->regions[i], count_nested, inside);
}

/* Does it carry a number to which each round adds? */
static bool carries_sum(const Inst *loop) {
    const Inst *yield = loop->regions[1]->last;
    for (int i = 0; i < loop->nargs && yield->op == OP_yield; i++) {
        const Val *next = ir_resolve(yield->args[i]), *param = loop->regions[1]->params[i];
        if (!type_is_float(param->type) || next->kind != VAL_inst) continue;
        const Inst *sum = next->inst;
        bool adds = sum->op == OP_add || sum->op == OP_sub;
        if (adds && (ir_resolve(sum->args[0]) == param || ir_resolve(sum->args[1]) == param)) return true;
    }
    return false;
}

/* How often the nested loop runs depends on the round. */
static bool is_triangle(const Inside *inside) {
    LoopTest test;
    const Inst *yield = inside->nested->regions[0]->last;
    const Val *condition = yield->op == OP_yield ? ir_resolve(yield->args[0]) : NULL;
    if (!condition || condition->kind != VAL_inst || !loop_comparison(inside->nested, condition->inst, &test))
        return false;
    return inst_contains(inside->loop, ir_resolve(test.limit)) ||
           inst_contains(inside->loop, ir_resolve(inside->nested->args[test.index]));
}

int64_t clike_unrolled(const Printer *p, const Inst *loop) {
    Inside inside = {.loop = loop};
    int64_t rounds = p->dialect->unroll && p->options->level > 0 ? emit_constant_trip(loop) : -1;
    if (rounds < 2 || rounds > MOST_ROUNDS || inst_is_unlikely(loop)) return 0;
    for (int i = 0; i < loop->nregions; i++) region_walk(loop->regions[i], count_inside, &inside);
    if (inside.loops > 0) return 0;
    if (!inside.nested) return carries_sum(loop) && rounds * inside.insts <= MOST_INSTS ? rounds : 0;
    int64_t once = inside.insts - inside.nested_insts;
    return is_triangle(&inside) && rounds * (once + inside.nested_insts * rounds / 2) <= MOST_INSTS ? rounds
                                                                                                    : 0;
}
