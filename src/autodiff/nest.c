/* Nests: where a loop stands in a loop, and how often each runs is known before the outermost begins, the
 * rounds of the innermost are numbered throughout. So all of them share one block on the tape, which is there
 * before the nest begins: no round needs a block of its own, nor has to keep where that begins.
 *
 *   for (i < n) for (j < m) ...       round i, j has number i * m + j of n * m
 *
 * What stands under a condition is part of it only if few values are reserved in vain. */
#include "autodiff/ad.h"

enum { MOST_RESERVED = 4096 };

static bool is_constant(const Nest *nest, const LoopInfo *more, int64_t size) {
    int64_t trip, total = size;
    for (int i = 0; i <= nest->loops.count; i++) {
        const LoopInfo *info = i < nest->loops.count ? nest->loops.at[i] : more;
        if (!val_is_int(info->trip, &trip) || trip > MOST_RESERVED) return false;
        total *= trip;
        if (total > MOST_RESERVED) return false;
    }
    return true;
}

/* Are the trip counts so far known before it begins? */
static bool is_around(const Nest *nest, const Inst *loop) {
    for (int i = 0; i < nest->loops.count; i++)
        if (inst_contains(loop, nest->loops.at[i]->trip)) return false;
    return true;
}

Nest ad_nest(Ad *ad, const Making *making, const Region *region, int64_t size) {
    Nest nest = {0};
    bool chosen = false; /* under a condition */
    for (; region->owner; region = region->owner->parent) {
        Inst *owner = region->owner;
        if (owner->op != OP_loop) {
            chosen = true;
            continue;
        }
        LoopInfo *info = ad_loop_info(making, owner);
        if (!info || !info->known || !info->reverse || !is_around(&nest, owner)) break;
        if (chosen && !is_constant(&nest, info, size)) break;
        vec_push(ad->arena, &nest.loops, info);
        nest.outer = owner;
    }
    return nest;
}

Val *ad_rounds(Ad *ad, Builder *b, const Nest *nest) {
    Val *rounds = ad_int64(ad, 1);
    for (int i = 0; i < nest->loops.count; i++)
        rounds = build_binary(b, OP_mul, rounds, nest->loops.at[i]->trip);
    return rounds;
}

static Val *now(const LoopInfo *info, bool reversed) { return reversed ? info->it : info->counter; }

/* What does not change in the innermost loop stands together. */
Val *ad_place_of_round(Ad *ad, Builder *b, const Nest *nest, Val *start, RoundLayout layout, bool reversed) {
    if (!nest->outer) return start;
    Val *around = ad_int64(ad, 0);
    for (int i = nest->loops.count - 1; i > 0; i--)
        around = build_binary(b, OP_mul, build_binary(b, OP_add, around, now(nest->loops.at[i], reversed)),
                              nest->loops.at[i - 1]->trip);
    Val *rows = build_binary(b, OP_mul, around, ad_int64(ad, layout.size * layout.rows));
    Val *inside = build_binary(b, OP_mul, now(nest->loops.at[0], reversed), ad_int64(ad, layout.size));
    return build_binary(b, OP_add, build_binary(b, OP_add, start, rows), inside);
}
