/* Loops whose counter is taken apart are two loops.
 *
 *     for (k = 0; k < 9; k++) s += w[k] * x[y + k / 3][k % 3];
 *     for (a = 0; a < 3; a++) for (b = 0; b < 3; b++) s += w[a * 3 + b] * x[y + a][b];
 *
 * Divided by a constant, a counter says where in rows and columns it is. Who reads `k / 3` does not see that
 * what it finds there stands together, neither does LLVM; and a reverse pass would keep the element for each k, as
 * finding it again takes two divisions. In the nest each counter is an index by itself. The number of rounds
 * is known, and a multiple of the divisor; quotients by multiples of that are quotients of the outer counter,
 * which is then looked at in its turn. */
#include "opt.h"

typedef struct Digits {
    Inst *loop; /* at work */
    int index;  /* of its counter */
    int64_t rounds, base;
    Val *high, *low, *whole; /* what stands for quotient, remainder and counter */
    InstVec digits;          /* whose results these are */
    bool changed;
} Digits;

static bool is_int(const Val *v, int64_t value) {
    int64_t found;
    return val_is_int(v, &found) && found == value;
}

/* From zero by ones up to a constant; of a form that can be taken apart: without jumps and wishes. */
static bool counts(Digits *d, Inst *loop) {
    const Inst *test = loop->op == OP_loop && loop->nregions == 2 ? loop->regions[0]->first : NULL;
    LoopTest limit;
    int64_t step;
    bool is_plain = test && !loop->hints.unroll && !loop->hints.checkpoint && !loop->hints.max_iters &&
                    loop->regions[1]->last->op == OP_yield && !loop_has_jumps(loop);
    if (!is_plain || test->op != OP_lt || test->next != loop->regions[0]->last) return false;
    if (inst_operand(test->next, 0) != test->results[0] || !loop_comparison(loop, test, &limit)) return false;
    d->loop = loop;
    d->index = limit.index;
    return limit.up && !limit.or_equal && val_is_int(limit.limit, &d->rounds) &&
           is_int(inst_operand(loop, limit.index), 0) && loop_step(loop, limit.index, &step) && step == 1;
}

/* Is the counter divided there? Then the divisor; else 0. */
static int64_t divisor(const Digits *d, const Inst *inst) {
    int64_t by;
    const Val *counter = d->loop->regions[1]->params[d->index];
    if ((inst->op != OP_div && inst->op != OP_rem) || inst->args[0] != counter) return 0;
    return val_is_int(inst_operand(inst, 1), &by) && by > 1 && by < d->rounds ? by : 0;
}

static void find_base(void *user, Inst *inst) {
    Digits *d = user;
    int64_t by = divisor(d, inst);
    if (by && d->rounds % by == 0 && (!d->base || by < d->base)) d->base = by;
}

static void take_digit(Digits *d, Inst *inst) {
    inst->results[0]->forward = inst->op == OP_div ? d->high : d->low;
    vec_push(inst->func->module->arena, &d->digits, inst);
}

/* What else is made of the counter sees it as it was. The remainder is the inner counter from here on, so that
 * operands are looked at as they stand. */
static void take_digits(void *user, Inst *inst) {
    Digits *d = user;
    int64_t by = divisor(d, inst);
    const Val *counter = d->loop->regions[1]->params[d->index];
    if (by == d->base) take_digit(d, inst);
    else if (by && inst->op == OP_div && by % d->base == 0) {
        inst->args[0] = d->high;
        inst->args[1] = ir_const_int(inst->func->module, d->high->type, by / d->base);
    } else if (inst != d->whole->inst)
        for (int i = 0; i < inst->nargs; i++)
            if (inst->args[i] == counter) inst->args[i] = d->whole;
}

static Inst *loop_below(Builder *b, const Inst *like, Val *const *initial, int index, int64_t rounds) {
    Inst *loop = build_loop(b, initial, like->nargs, false);
    Builder condition = build_at_end(loop->regions[0]);
    Val *counter = loop->regions[0]->params[index];
    Val *more =
        build_binary(&condition, OP_lt, counter, ir_const_int(like->func->module, counter->type, rounds));
    build_yield(&condition, &more, 1);
    for (int i = 0; i < like->nargs; i++) {
        loop->results[i]->name = like->results[i]->name;
        for (int r = 0; r < 2; r++) loop->regions[r]->params[i]->name = like->regions[r]->params[i]->name;
    }
    return loop;
}

static Val *next_of(Builder *b, Val *counter) {
    return build_binary(b, OP_add, counter, ir_const_int(b->func->module, counter->type, 1));
}

/* The body becomes that of the inner loop. */
static void take_apart(Digits *d) {
    Inst *loop = d->loop;
    Module *m = loop->func->module;
    Builder before = build_before(loop);
    before.loc = loop->loc;
    Inst *outer = loop_below(&before, loop, loop->args, d->index, d->rounds / d->base);
    Region *around = outer->regions[1], *body = loop->regions[1];
    Builder b = build_at_end(around);
    b.loc = loop->loc;
    Val **initial = arena_copy(m->arena, around->params, sizeof(Val *) * (size_t)loop->nargs);
    const Type *type = body->params[d->index]->type;
    initial[d->index] = ir_const_int(m, type, 0);
    Inst *inner = loop_below(&b, loop, initial, d->index, d->base);
    Val **yields = arena_copy(m->arena, inner->results, sizeof(Val *) * (size_t)loop->nargs);
    d->high = around->params[d->index];
    d->low = body->params[d->index];
    yields[d->index] = next_of(&b, d->high);
    build_yield(&b, yields, loop->nargs);
    Builder top = build_before(body->first), end = build_before(body->last);
    Val *first = build_binary(&top, OP_mul, d->high, ir_const_int(m, type, d->base));
    d->whole = build_binary(&top, OP_add, first, d->low);
    region_walk(body, take_digits, d);
    body->last->args[d->index] = next_of(&end, d->low);
    inner->regions[1] = body;
    body->owner = inner;
    for (int i = 0; i < loop->nresults; i++)
        loop->results[i]->forward = i == d->index ? ir_const_int(m, type, d->rounds) : outer->results[i];
    inst_remove(loop);
    ir_resolve_func(loop->func);
    while (d->digits.count) inst_remove(vec_pop(&d->digits));
    d->changed = true;
}

static bool look_at(Digits *d, Region *region) {
    for (Inst *inst = region->first; inst; inst = inst->next) {
        d->base = 0;
        if (counts(d, inst)) region_walk(inst->regions[1], find_base, d);
        if (d->base) {
            take_apart(d);
            return true;
        }
        for (int i = 0; i < inst->nregions; i++)
            if (look_at(d, inst->regions[i])) return true;
    }
    return false;
}

bool opt_take_digits(Func *func) {
    Digits d = {0};
    ir_resolve_func(func);
    while (look_at(&d, func->body)) continue;
    return d.changed;
}
