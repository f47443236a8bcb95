/* Taken: rounds of a loop that go past all that matters are not gone back through.
 *
 *   for (i = 0; i < n; i++) {                          reversed:
 *       a = f(i, x);                                       for (; taken > 0; taken--) {
 *       if (a < eps) continue;                                 pop i, left, ..;
 *       color += left * a;                                     dleft = ..
 *       left *= 1 - a;                                     }
 *       taken++, push i, left, ..;
 *   }
 *
 * Where a branch of the body leaves all adjoints as they are (idle.c), the primal pass counts the rounds that
 * do not go there, and keeps in these alone what the reverse needs, with the number of the round; so the
 * reverse need not know which way the others went. That takes little where most rounds are taken, and saves
 * most of the reverse where few are.
 *
 * It is done where the way depends on floating-point numbers, which have to be kept in each round otherwise,
 * and where rounds wait for each other anyway: a loop whose rounds can be done at once gains more by that.
 * For the same reason it is not done for threads of a GPU: those in which others are taken would wait, and what
 * they read and add to would be neighbours no longer. Lanes, which are as many as it pays to have, do less of
 * the reverse, too. */
#include "autodiff/ad.h"

enum { MOST_WAYS = 4 }; /* one in the other */

typedef struct Taken {
    Ad *ad;
    Making *making;
    Inst *loop; /* primal */
    LoopInfo *info;
    Inst *branches[MOST_WAYS]; /* primal */
    Way idle[MOST_WAYS];       /* by branch: its mirror, and the way on which nothing happens */
    int count;
    Map named; /* primal values that the reverse names */
} Taken;

/* ---- finding the branches */

static int other(const Taken *t, int level) { return 1 - t->idle[level].region; }

/* The only instruction of a reversed region that has regions itself, if that is an `if`. */
static Inst *only_branch(const Region *region) {
    Inst *found = NULL;
    for (Inst *inst = region->first; inst; inst = inst->next) {
        if (!inst->nregions) continue;
        if (found || inst->op != OP_if) return NULL;
        found = inst;
    }
    return found;
}

static Inst *primal_of(const Taken *t, const Region *region, const Inst *reverse) {
    for (Inst *inst = region->first; inst; inst = inst->next)
        if (inst->nregions && map_get(&t->making->mirror, PTR_KEY(inst)) == reverse) return inst;
    return NULL;
}

/* It and all further out being gone through but for the last, which goes there. */
static bool is_idle(const Taken *t, Inst *branch, int region) {
    Way ways[MOST_WAYS];
    for (int i = 0; i < t->count; i++) ways[i] = (Way){t->idle[i].branch, other(t, i)};
    ways[t->count] = (Way){branch, region};
    return ad_is_idle(t->ad, t->info->reverse, ways, t->count + 1);
}

static bool is_empty(const Region *region) {
    return region->last->op == OP_yield && region->first == region->last;
}

static bool is_named(const Taken *t, const Inst *inst) {
    for (int i = 0; i < inst->nresults; i++)
        if (map_has(&t->named, PTR_KEY(inst->results[i]))) return true;
    return false;
}

/* Can all that the reverse names be kept in the branch? What comes behind it cannot, nor can local arrays as
 * they are when the round ends. */
static bool can_be_kept(const Taken *t, const Region *region, const Inst *branch) {
    bool is_behind = false;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        is_behind |= inst == branch;
        if (is_behind && is_named(t, inst)) return false;
        bool is_array = inst->op == OP_var && inst->results[0]->type->args[0]->kind == TYPE_array;
        if (is_array && !ad_list_at(t->making->lists, inst->results[0])) return false;
    }
    return true;
}

static bool add_branch(Taken *t, const Region *primal, const Region *reverse) {
    Inst *mirror = t->count < MOST_WAYS ? only_branch(reverse) : NULL,
         *branch = mirror ? primal_of(t, primal, mirror) : NULL;
    if (!branch || !can_be_kept(t, primal, branch)) return false;
    for (int k = 0; k < 2; k++) {
        if (!is_empty(mirror->regions[k]) || branch->regions[k]->last->op != OP_yield) continue;
        if (branch->regions[1 - k]->last->op != OP_yield || !is_idle(t, mirror, k)) continue;
        t->branches[t->count] = branch;
        t->idle[t->count++] = (Way){mirror, k};
        return true;
    }
    return false;
}

static void note_named(void *user, Inst *inst) {
    Taken *t = user;
    for (int i = inst->op == OP_if; i < inst->nargs; i++)
        map_put(t->ad->arena, &t->named, PTR_KEY(ir_resolve(inst->args[i])), t);
}

static bool find_branches(Taken *t) {
    const Region *primal = t->loop->regions[1], *reverse = t->info->reverse->regions[1];
    region_walk(t->info->reverse->regions[1], note_named, t);
    while (add_branch(t, primal, reverse)) {
        int level = t->count - 1;
        primal = t->branches[level]->regions[other(t, level)];
        reverse = t->idle[level].branch->regions[other(t, level)];
    }
    return t->count > 0;
}

/* ---- is it worth it? */

enum { MOST_TERMS = 64, MOST_ROUNDS_SHORT = 64 };

/* Is it computed from floating-point numbers, in the loop? */
static bool is_of_floats(const Inst *loop, Val *v, int *terms) {
    v = ir_resolve(v);
    if (!inst_contains(loop, v) || --*terms < 0) return false;
    if (type_is_float(type_element(v->type))) return true;
    for (int i = 0; v->kind == VAL_inst && i < v->inst->nargs; i++)
        if (is_of_floats(loop, v->inst->args[i], terms)) return true;
    return false;
}

/* What a round hands on, if it goes through all of the branches. */
static const Val *handed_on(const Taken *t, int index) {
    const Val *v = inst_operand(t->loop->regions[1]->last, index);
    for (int i = 0; i < t->count && v->kind == VAL_inst && v->inst == t->branches[i]; i++)
        v = inst_operand(t->branches[i]->regions[other(t, i)]->last, v->index);
    return v;
}

/* Does it carry a number that is not only added to? */
static bool waits_for_rounds(const Taken *t) {
    const Region *body = t->loop->regions[1];
    for (int i = 0; i < body->nparams; i++) {
        const Val *given = body->params[i], *next = handed_on(t, i);
        const Inst *sum = next->kind == VAL_inst && next->inst->op == OP_add ? next->inst : NULL;
        bool adds = sum && (inst_operand(sum, 0) == given || inst_operand(sum, 1) == given);
        if (type_is_float(given->type) && next != given && !adds) return true;
    }
    return false;
}

/* What a short loop keeps is in local arrays, and its rounds are written out. */
static bool is_short(const LoopInfo *info) {
    int64_t trip;
    return info->known && val_is_int(info->trip, &trip) && trip <= MOST_ROUNDS_SHORT;
}

static bool is_worth_it(const Taken *t) {
    if (is_short(t->info)) return false;
    for (int i = 0; i < t->count; i++) {
        int terms = MOST_TERMS;
        if (is_of_floats(t->loop, t->branches[i]->args[0], &terms))
            return !t->info->known || waits_for_rounds(t);
    }
    return false;
}

/* ---- counting */

/* How often the innermost region was gone through. */
static Val *count_taken(Taken *t) {
    Ad *ad = t->ad;
    const Type *word = type_basic(ad->m->types, TYPE_int64);
    Name name = name_from(ad->m->names, "taken");
    inst_add_arg(t->loop, ad_int64(ad, 0));
    region_add_param(t->loop->regions[0], word, name);
    Val *before = region_add_param(t->loop->regions[1], word, name), *after = NULL;
    for (int i = t->count - 1; i >= 0; i--) {
        Inst *branch = t->branches[i], *end = branch->regions[other(t, i)]->last;
        Builder b = build_before(end);
        if (!after) after = build_binary(&b, OP_add, before, ad_int64(ad, 1));
        inst_add_arg(end, after);
        inst_add_arg(branch->regions[1 - other(t, i)]->last, before);
        after = inst_add_result(branch, word, name);
    }
    inst_add_arg(t->loop->regions[1]->last, after);
    return inst_add_result(t->loop, word, name);
}

static void go_back_through_taken(Taken *t) {
    Ad *ad = t->ad;
    Inst *reverse = t->info->reverse;
    Region *innermost = t->branches[t->count - 1]->regions[other(t, t->count - 1)];
    const Type *natural = type_basic(ad->m->types, TYPE_uint64), *truth = type_basic(ad->m->types, TYPE_bool);
    Builder b = build_before(reverse);
    t->info->most = build_convert(&b, build_binary(&b, OP_sub, t->info->trip, ad_int64(ad, 1)), natural);
    reverse->args[0] = t->info->trip = count_taken(t);
    t->info->known = false;
    map_put(ad->arena, &t->making->taken, PTR_KEY(t->loop), innermost);
    for (int i = 0; i < t->count; i++) {
        map_put(ad->arena, &t->making->taken, PTR_KEY(t->branches[i]), innermost);
        t->idle[i].branch->args[0] = ir_const_int(ad->m, truth, other(t, i) == 0);
    }
}

void ad_leave_out_rounds(Ad *ad, Making *making) {
    if (ad->config.many_threads) return;
    for (int i = 0; i < making->loops.count; i++) {
        Taken t = {.ad = ad, .making = making};
        t.loop = (Inst *)(uintptr_t)making->loops.entries[i].key;
        t.info = making->loops.entries[i].value;
        if (t.info->reverse && t.info->it && find_branches(&t) && is_worth_it(&t)) go_back_through_taken(&t);
    }
}
