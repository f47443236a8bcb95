/* Unread: what a loop carries on and nobody reads where it ends, such as the state of a filter of which only the
 * likelihood is wanted.
 *
 * Its adjoint is zero where the reverse begins: for one round, each product with it needs a guard against
 * infinite slopes (untaken.c). In all others it is what rounds behind them make of it. So the reverse takes that round
 * by itself, before the loop, which has no such guards then: in a loop, where each round waits for the one
 * before, they take a quarter of the time. */
#include "autodiff/ad.h"

enum { MOST = 300 }; /* instructions of a round */

/* Not where items are done side by side, which would do the first round under a mask; nor in derivatives of
 * derivatives, each of which would have twice the rounds. */
bool ad_may_peel(const Ad *ad, const Making *making) {
    return !ad->config.many_threads && ad->config.no_lanes && making->f->written;
}

static bool is_carried(const Inst *inst) {
    return (inst->op == OP_scale || inst->op == OP_ratio) && inst_has(inst, INST_CARRIED);
}

static bool has_guard(const void *user, const Inst *inst) {
    (void)user;
    return is_carried(inst);
}

static bool has_effect(const void *user, const Inst *inst) {
    (void)user;
    return !op_has(inst->op, OP_PURE) && inst->op != OP_yield;
}

/* ---- the first round */

/* Copies the instructions of a region to the builder's place, its parameters being `carried`; not its end. */
static void copy_region(Builder *b, CloneMap *map, const Region *region, Val *const *carried) {
    for (int i = 0; i < region->nparams; i++) clone_map_val(map, region->params[i], carried[i]);
    for (Inst *inst = region->first; inst != region->last; inst = inst->next) {
        Inst *copy = clone_inst(map, inst);
        if (b->before) inst_insert_before(b->before, copy);
        else inst_append(b->region, copy);
    }
}

/* What the loop begins with becomes what the first round makes of it, if there is one. */
static void take_first_round(Inst *loop) {
    Module *module = loop->func->module;
    Builder b = build_before(loop);
    CloneMap map = {.module = module, .func = loop->func};
    const Type **types = arena_array(module->arena, const Type *, loop->nargs + 1);
    Val **carried = arena_array(module->arena, Val *, loop->nargs + 1);
    for (int i = 0; i < loop->nargs; i++) carried[i] = inst_operand(loop, i), types[i] = carried[i]->type;
    copy_region(&b, &map, loop->regions[0], carried);
    Inst *test = build_if(&b, clone_val(&map, loop->regions[0]->last->args[0]), types, loop->nargs);
    Builder go = build_at_end(test->regions[0]), stop = build_at_end(test->regions[1]);
    build_yield(&stop, carried, loop->nargs);
    copy_region(&go, &map, loop->regions[1], carried);
    for (int i = 0; i < loop->nargs; i++) carried[i] = clone_val(&map, loop->regions[1]->last->args[i]);
    build_yield(&go, carried, loop->nargs);
    for (int i = 0; i < loop->nargs; i++) loop->args[i] = test->results[i];
}

/* ---- the others */

static void drop_guard(void *user, Inst *inst) {
    (void)user;
    if (!is_carried(inst)) return;
    inst->op = inst->op == OP_scale ? OP_mul : OP_div;
    inst->flags &= (uint8_t)~INST_CARRIED;
}

static void forget_guard(void *user, Inst *inst) {
    (void)user;
    if (is_carried(inst)) inst->flags &= (uint8_t)~INST_CARRIED;
}

static void find_loops(void *user, Inst *inst) {
    InstVec *loops = user;
    bool is_plain = inst->op == OP_loop && inst->nregions == 2 && inst->regions[0]->last->op == OP_yield &&
                    inst->regions[1]->last->op == OP_yield &&
                    !region_find(inst->regions[0], has_effect, NULL);
    if (!is_plain || region_size(inst->regions[1]) > MOST) return;
    if (region_has_loop(inst->regions[1]) || !region_find(inst->regions[1], has_guard, NULL)) return;
    vec_push(inst->func->module->arena, loops, inst);
}

void ad_peel(Func *prop) {
    InstVec loops = {0};
    if (!prop->body) return;
    region_walk(prop->body, find_loops, &loops);
    for (int i = 0; i < loops.count; i++) {
        take_first_round(loops.at[i]);
        region_walk(loops.at[i]->regions[1], drop_guard, NULL);
    }
    region_walk(prop->body, forget_guard, NULL);
}
