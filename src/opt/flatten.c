/* Turns jumps into plain control flow where that copies no code.
 *
 *   block #1 -> float {                         %r = if %c -> float {
 *     if %c {                                     yield 0.0
 *       break #1 0.0                            } else {
 *     }                                  to       %y = sqrt %x
 *     %y = sqrt %x                                yield %y
 *     yield %y                                  }
 *   }
 *
 * What follows an `if` or `switch` of which only one region goes on can move into that region; then the
 * construct is the last thing in its region, and a jump at the end of one of its regions is a yield. This
 * works inward from the region of the target, and from the last instruction of a region to the first, so that
 * nothing moves twice at one level. It is done only if it removes all jumps of that kind: a jump out of an
 * inner loop, or two ways that lead to the same rest, leave everything as it is. */
#include "opt.h"

typedef struct Flatten {
    Arena *arena;
    Inst *target;
    Op op; /* break or continue */
    InstVec jumps;
} Flatten;

static bool is_jump(const Flatten *f, const Inst *inst) {
    return inst->op == f->op && inst->target == f->target;
}

static void find_jumps(void *user, Inst *inst) {
    Flatten *f = user;
    inst->note = NULL;
    if (is_jump(f, inst)) vec_push(f->arena, &f->jumps, inst);
}

/* Marks the constructs between the target and its jumps. */
static bool mark_owners(const Flatten *f) {
    for (int i = 0; i < f->jumps.count; i++)
        for (Inst *owner = f->jumps.at[i]->parent->owner; owner != f->target; owner = owner->parent->owner) {
            if (owner->op != OP_if && owner->op != OP_switch) return false;
            if (owner->note) break;
            owner->note = f->target;
        }
    return true;
}

static int count_yields(const Inst *inst) {
    int count = 0;
    for (int i = 0; i < inst->nregions; i++) count += inst->regions[i]->last->op == OP_yield;
    return count;
}

/* Can it be done without copying? `more`: something runs after the end of the region. */
static bool fits(const Flatten *f, const Region *region, bool more) {
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        if (!inst->note) continue;
        const Inst *next = inst->next;
        bool nothing_left = is_jump(f, next) || (next->op == OP_yield && !more);
        if (!nothing_left && count_yields(inst) > 1) return false;
        for (int i = 0; i < inst->nregions; i++)
            if (!fits(f, inst->regions[i], !nothing_left)) return false;
    }
    return true;
}

static void become_yield(Inst *jump) {
    jump->op = OP_yield;
    jump->target = NULL;
}

static void drop_after(Inst *inst) {
    while (inst->next) inst_remove(inst->next);
}

/* The rest of the region moves to the end of `into`, the only one that goes on. */
static void move_rest(Inst *inst, Region *into) {
    Inst *yield = into->last;
    for (int i = 0; i < inst->nresults; i++) inst->results[i]->forward = ir_resolve(yield->args[i]);
    inst_remove(yield);
    while (inst->next) {
        Inst *moved = inst->next;
        inst_remove(moved);
        inst_append(into, moved);
    }
}

/* Nothing is left but the end of the region: every region that goes on gives the values itself. */
static void spread_end(const Flatten *f, Inst *inst) {
    const Inst *end = inst->next;
    for (int r = 0; r < inst->nregions; r++) {
        Inst *yield = inst->regions[r]->last;
        if (yield->op != OP_yield) continue;
        Val **values = arena_array(f->arena, Val *, end->nargs + 1);
        for (int i = 0; i < end->nargs; i++) {
            Val *value = ir_resolve(end->args[i]);
            bool own = value->kind == VAL_inst && value->inst == inst;
            values[i] = own ? ir_resolve(yield->args[value->index]) : value;
        }
        Builder b = build_before(yield);
        build_yield(&b, values, end->nargs);
        inst_remove(yield);
    }
    drop_after(inst);
}

static void give_results(const Flatten *f, Inst *inst) {
    inst->nresults = 0;
    for (int i = 0; i < f->target->nresults; i++)
        inst_add_result(inst, f->target->results[i]->type, f->target->results[i]->name);
    Builder b = build_at_end(inst->parent);
    b.loc = inst->loc;
    build_yield(&b, inst->results, inst->nresults);
}

static void flatten_region(const Flatten *f, Region *region);

static void flatten_at(const Flatten *f, Inst *inst) {
    int yields = count_yields(inst);
    for (int i = 0; i < inst->nregions && yields == 1; i++)
        if (inst->regions[i]->last->op == OP_yield) {
            move_rest(inst, inst->regions[i]);
            break;
        }
    if (yields == 0) drop_after(inst);
    else if (yields > 1) spread_end(f, inst);
    give_results(f, inst);
    for (int i = 0; i < inst->nregions; i++) flatten_region(f, inst->regions[i]);
}

static void flatten_region(const Flatten *f, Region *region) {
    if (is_jump(f, region->last)) become_yield(region->last);
    for (Inst *inst = region->last, *previous; inst; inst = previous) {
        previous = inst->prev;
        if (!inst->note) continue;
        inst->note = NULL;
        flatten_at(f, inst);
    }
}

bool opt_flatten_jumps(Inst *target, Op op) {
    Module *module = target->func->module;
    Region *region = target->regions[op == OP_continue ? 1 : 0];
    Flatten f = {.arena = arena_scratch(module->arena), .target = target, .op = op};
    region_walk(region, find_jumps, &f);
    bool can = mark_owners(&f) && fits(&f, region, false);
    if (can && f.jumps.count) flatten_region(&f, region);
    arena_free(f.arena);
    return can;
}
