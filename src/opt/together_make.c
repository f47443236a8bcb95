/* The rounds of a loop, made together.
 *
 * What is the same in all rounds is moved in front of the loop, once. Of what varies there is a copy for each
 * round, beside each other: an `if` whose condition is the same for all has the results of all rounds, a loop
 * carries those of all. Where rounds may go different ways, each has the whole construct. Then follows what
 * is late, round by round; the loop is gone. */
#include "opt/together.h"

typedef struct Making {
    Rounds *r;
    int count;
    /* of each round: what varies; all else has one form, found by Val.forward */
    CloneMap maps[MOST_TOGETHER];
} Making;

static void make(Making *m, Builder *b, Inst *inst);

/* ---- values of all rounds, side by side */

static void add_values(Making *m, ValVec *list, Val *v, bool varies) {
    if (!varies) {
        vec_push(m->r->scratch, list, ir_resolve(v));
        return;
    }
    for (int k = 0; k < m->count; k++) vec_push(m->r->scratch, list, clone_val(&m->maps[k], v));
}

static void pass_name(const Val *from, Val *to) {
    if (!to->name && to->kind != VAL_const) to->name = from->name;
}

/* What stands for `old` from here on; gives what comes behind. */
static Val *const *define(Making *m, Val *old, Val *const *values) {
    if (!rounds_vary(m->r, old)) {
        pass_name(old, *values);
        old->forward = *values;
        return values + 1;
    }
    for (int k = 0; k < m->count; k++) {
        pass_name(old, values[k]);
        clone_map_val(&m->maps[k], old, values[k]);
    }
    return values + m->count;
}

/* ---- constructs that all rounds go through in the same way */

/* `like`: the results that the region's last instruction gives. */
static ValVec yielded(Making *m, const Region *region, Val *const *like, int count) {
    ValVec list = {0};
    for (int i = 0; i < count; i++) add_values(m, &list, region->last->args[i], rounds_vary(m->r, like[i]));
    return list;
}

static void make_all(Making *m, Builder *b, const Region *from) {
    for (Inst *inst = from->first, *next; inst != from->last; inst = next) {
        next = inst->next;
        make(m, b, inst);
    }
}

static const Type **types_of(Making *m, const Inst *inst, int *count) {
    VEC(const Type *) types = {0};
    for (int i = 0; i < inst->nresults; i++)
        for (int k = 0; k < (rounds_vary(m->r, inst->results[i]) ? m->count : 1); k++)
            vec_push(m->r->scratch, &types, inst->results[i]->type);
    *count = types.count;
    return types.at;
}

static Inst *make_choice(Making *m, Builder *b, Inst *inst) {
    int count;
    const Type **types = types_of(m, inst, &count);
    Val *value = ir_resolve(inst->args[0]);
    Inst *copy = inst->op == OP_if ? build_if(b, value, types, count)
                                   : build_switch(b, value, inst->cases, inst->ncases, types, count);
    for (int i = 0; i < inst->nregions; i++) {
        Builder in = build_at_end(copy->regions[i]);
        make_all(m, &in, inst->regions[i]);
        ValVec list = yielded(m, inst->regions[i], inst->results, inst->nresults);
        build_yield(&in, list.at, list.count);
    }
    return copy;
}

static void make_loop_region(Making *m, const Inst *loop, int index, Region *into) {
    const Region *from = loop->regions[index];
    Val *const *at = into->params;
    for (int i = 0; i < from->nparams; i++) at = define(m, from->params[i], at);
    Builder in = build_at_end(into);
    make_all(m, &in, from);
    ValVec list = {0};
    if (index == 0) add_values(m, &list, from->last->args[0], false);
    else list = yielded(m, from, loop->results, loop->nresults);
    build_yield(&in, list.at, list.count);
}

static Inst *make_loop(Making *m, Builder *b, const Inst *loop) {
    ValVec first = {0};
    for (int i = 0; i < loop->nargs; i++)
        add_values(m, &first, loop->args[i], rounds_vary(m->r, loop->results[i]));
    Inst *copy = build_loop(b, first.at, first.count, loop->nregions == 3);
    copy->hints = loop->hints;
    for (int i = 0; i < loop->nregions; i++) make_loop_region(m, loop, i, copy->regions[i]);
    return copy;
}

static void make_construct(Making *m, Builder *b, Inst *inst) {
    b->loc = inst->loc;
    const Inst *copy = inst->op == OP_loop ? make_loop(m, b, inst) : make_choice(m, b, inst);
    Val *const *at = copy->results;
    for (int i = 0; i < inst->nresults; i++) at = define(m, inst->results[i], at);
}

/* ---- any instruction */

static void insert(Builder *b, Inst *inst) {
    if (b->before) inst_insert_before(b->before, inst);
    else inst_append(b->region, inst);
}

static void make(Making *m, Builder *b, Inst *inst) {
    if (!rounds_vary_in(m->r, inst)) {
        inst_remove(inst);
        insert(b, inst);
    } else if (inst->nregions && !rounds_part(m->r, inst)) {
        make_construct(m, b, inst);
    } else {
        for (int k = 0; k < m->count; k++) insert(b, clone_inst(&m->maps[k], inst));
    }
}

/* ---- the loop */

/* What a carried value that counts is so many rounds after the first. */
static Val *counted(Builder *b, const Inst *loop, int index, int rounds) {
    Val *first = ir_resolve(loop->args[index]);
    int64_t step = 0;
    loop_step(loop, index, &step);
    return build_binary(b, OP_add, first, ir_const_int(loop->func->module, first->type, step * rounds));
}

static void make_late(Making *m, Builder *b, CloneMap *map, Val **carried) {
    const Inst *loop = m->r->loop;
    const Region *body = loop->regions[1];
    for (int i = 0; i < loop->nargs; i++)
        if (!rounds_count(loop, i)) clone_map_val(map, body->params[i], carried[i]);
    for (Inst *inst = body->first; inst != body->last; inst = inst->next)
        if (rounds_is_late(m->r, inst)) insert(b, clone_inst(map, inst));
    for (int i = 0; i < loop->nargs; i++) carried[i] = clone_val(map, body->last->args[i]);
}

static void begin_round(Making *m, Builder *b, int round) {
    const Inst *loop = m->r->loop;
    CloneMap *map = &m->maps[round];
    *map = (CloneMap){.module = m->r->func->module, .func = m->r->func};
    for (int i = 0; i < loop->nargs; i++)
        if (rounds_count(loop, i))
            clone_map_val(map, loop->regions[1]->params[i], counted(b, loop, i, round));
}

void rounds_make(Rounds *r, int count) {
    Inst *loop = r->loop;
    const Region *body = loop->regions[1];
    Making m = {.r = r, .count = count};
    Builder b = build_before(loop);
    Val **carried = arena_array(r->scratch, Val *, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) carried[i] = ir_resolve(loop->args[i]);
    for (int k = 0; k < count; k++) begin_round(&m, &b, k);
    for (Inst *inst = body->first, *next; inst != body->last; inst = next) {
        next = inst->next;
        if (!rounds_is_late(r, inst)) make(&m, &b, inst);
    }
    for (int k = 0; k < count; k++) make_late(&m, &b, &m.maps[k], carried);
    for (int i = 0; i < loop->nargs; i++)
        loop->results[i]->forward = rounds_count(loop, i) ? counted(&b, loop, i, count) : carried[i];
    inst_remove(loop);
}
