/* A short loop that adds up quotients has them in an array first.
 *
 *     for (i = 0; i < 4; i++) sum += x[i] / y[i];          for (i = 0; i < 4; i++) t[i] = x[i] / y[i];
 *                                                          for (i = 0; i < 4; i++) sum += t[i];
 *
 * The sum is kept in order, and so compilers of C, for which the pass is, do its rounds one by one. Those
 * before it can be vectors, and a processor divides several numbers in the time that it takes for one. They
 * count up, since elements that are read downwards are no vectors to gcc. */
#include "opt.h"

enum { MOST_ROUNDS = 16, WIDTH = 4, MOST_SUMS = 8 }; /* rounds: a multiple of what a vector has */

typedef struct Terms {
    Inst *loop;
    int64_t rounds, low; /* the least that the counter is in a round */
    int *uses;           /* by Val.id */
    int sums[MOST_SUMS]; /* which of the carried values */
    int count, counter, quotients;
    bool refused;
} Terms;

/* Is it a sum that nobody else uses? */
static bool adds_up(const Terms *t, int index) {
    const Region *body = t->loop->regions[1];
    const Val *param = body->params[index];
    if (!type_is_float(param->type) || loop_term(t->loop, index) < 0) return false;
    const Val *next = inst_operand(body->last, index);
    return t->uses[param->id] == 1 && t->uses[next->id] == 1 && next->inst->parent == body;
}

static void look_at(Terms *t, const Inst *inst) {
    bool is_access = inst->op == OP_buffer_elem && inst_has(inst, INST_UNCHECKED);
    bool is_plain = inst->op == OP_load || inst->op == OP_yield || is_access ||
                    (op_has(inst->op, OP_PURE) && inst->op != OP_buffer_elem);
    t->refused |= inst->nregions || !is_plain || op_is_elementary(inst->op);
    t->quotients += inst->op == OP_div && type_is_float(inst->results[0]->type);
}

/* By one in each round, from a constant to another. */
static bool find_counter(Terms *t) {
    const Inst *first = t->loop->regions[0]->first;
    LoopTest test;
    int64_t step, start;
    if (!first || !first->next || first->next->op != OP_yield || !loop_comparison(t->loop, first, &test))
        return false;
    if (inst_operand(first->next, 0) != first->results[0] || !loop_step(t->loop, test.index, &step) ||
        (step != 1 && step != -1) || !val_is_int(inst_operand(t->loop, test.index), &start))
        return false;
    t->counter = test.index;
    t->rounds = loop_most_trips(t->loop);
    t->low = step > 0 ? start : start - t->rounds + 1;
    return t->rounds >= WIDTH && t->rounds <= MOST_ROUNDS && t->rounds % WIDTH == 0;
}

static bool find_sums(Terms *t) {
    for (int i = 0; i < t->loop->nargs; i++) {
        if (i == t->counter) continue;
        if (t->count == MOST_SUMS || !adds_up(t, i)) return false;
        t->sums[t->count++] = i;
    }
    return t->count > 0;
}

static bool fits(Terms *t) {
    const Region *body = t->loop->regions[1];
    if (t->loop->nregions != 2 || body->last->op != OP_yield || inst_is_unlikely(t->loop)) return false;
    if (!find_counter(t) || !find_sums(t)) return false;
    for (const Inst *inst = body->first; inst; inst = inst->next) look_at(t, inst);
    return !t->refused && t->quotients > 0;
}

/* The array, and where the term of a sum is in it. */
static Val *place_of(Builder *b, const Terms *t, Val *array) {
    const Val *counter = t->loop->regions[1]->params[t->counter];
    Val *low = ir_const_int(b->func->module, counter->type, t->low);
    return build_elem(b, array, build_binary(b, OP_sub, (Val *)(uintptr_t)counter, low), true);
}

static void copy_rounds(const Terms *t, CountLoop *rounds, Val *const *arrays) {
    const Region *body = t->loop->regions[1];
    Val *counter = body->params[t->counter];
    CloneMap map = {.module = t->loop->func->module, .func = t->loop->func};
    Val *low = ir_const_int(map.module, counter->type, t->low);
    Val *index = build_convert(&rounds->body, rounds->index, counter->type);
    clone_map_val(&map, counter, build_binary(&rounds->body, OP_add, index, low));
    for (Inst *inst = body->first; inst != body->last; inst = inst->next) {
        bool is_of_sum = false;
        for (int i = 0; i < t->count; i++) is_of_sum |= inst == inst_operand(body->last, t->sums[i])->inst;
        if (!is_of_sum) inst_append(rounds->body.region, clone_inst(&map, inst));
    }
    for (int i = 0; i < t->count; i++) {
        const Inst *sum = inst_operand(body->last, t->sums[i])->inst;
        Val *term = clone_val(&map, inst_operand(sum, loop_term(t->loop, t->sums[i])));
        build_store(&rounds->body, build_elem(&rounds->body, arrays[i], rounds->index, true), term);
    }
}

static void split(const Terms *t) {
    Builder b = build_before(t->loop);
    b.loc = t->loop->loc;
    Val *arrays[MOST_SUMS];
    for (int i = 0; i < t->count; i++) {
        const Val *sum = t->loop->regions[1]->params[t->sums[i]];
        arrays[i] = build_var(&b, type_array(b.func->module->types, sum->type, t->rounds), sum->name, true);
    }
    CountLoop rounds = build_count(&b, 0, t->rounds);
    rounds.index->name = t->loop->regions[1]->params[t->counter]->name;
    copy_rounds(t, &rounds, arrays);
    build_next(&rounds);
    for (int i = 0; i < t->count; i++) {
        Inst *sum = inst_operand(t->loop->regions[1]->last, t->sums[i])->inst;
        Builder before = build_before(sum);
        sum->args[loop_term(t->loop, t->sums[i])] = build_load(&before, place_of(&before, t, arrays[i]));
    }
}

static bool visit_region(int *uses, Region *region) {
    bool changed = false;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        Terms terms = {.loop = inst, .uses = uses};
        bool is_split = inst->op == OP_loop && fits(&terms);
        if (is_split) split(&terms);
        for (int i = 0; i < inst->nregions && !is_split; i++) changed |= visit_region(uses, inst->regions[i]);
        changed |= is_split;
    }
    return changed;
}

bool opt_terms(Func *func) {
    if (!func->body || !func->module->keeps_order) return false;
    Arena *scratch = arena_scratch(func->module->arena);
    bool changed = visit_region(region_count_uses(scratch, func->body), func->body);
    arena_free(scratch);
    return changed;
}
