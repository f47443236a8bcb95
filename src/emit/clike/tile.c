/* Elements that all threads read in the same order: a loop over the bodies that attract, the Gaussians of a picture. Each thread would ask for each part of each element, and get what its
 * neighbours get as well. So the lanes of a warp read 32 elements at once, an element each, to memory of their own in the group, where they lie so that whole elements are read; the next 32 come
 * while these are used.
 *
 *     for (i = first; i < limit; i++) ... data[i] ...
 *
 *     SlopeTile<8, T> tile(data, i, limit);
 *     while (i < limit) {
 *         const int rounds = tile.turn(i, limit);
 *         for (int k = 0; k < rounds; k++, i++) ... tile.slots[k].element ...
 *     }
 *
 * All lanes must be there until the loop ends, with the same bounds. That is tested where it is tested whether all indices are in range (opt/range.c): what is
 * done otherwise is there, too. The buffer is one that programs only read. */
#include "emit/clike/clike.h"

enum { FEWEST_BYTES = 12, MOST_BYTES = 64, FEWEST_ROUNDS = 32 }; /* of an element; of a loop */
enum {
    FEW_INSTS = 40
}; /* of a round; all 32 are written out then, so that they need not wait for each other */

typedef struct Search {
    const Inst *loop;
    const Val *counter;
    const Inst *access;
    int insts;
    bool refused;
} Search;

static bool is_inside(const Inst *loop, const Inst *inst) {
    const Region *region = inst->parent;
    while (region && region->owner != loop) region = region->owner ? region->owner->parent : NULL;
    return region != NULL;
}

/* What ends a round for some of the lanes alone, or waits for other warps. */
static bool is_way_out(const Search *search, const Inst *inst) {
    if (inst->op == OP_break || inst->op == OP_continue) return !is_inside(search->loop, inst->target);
    return inst->op == OP_return || inst->op == OP_barrier || inst->op == OP_wave;
}

/* Not computed from what a thread alone knows. */
static bool is_of_uniform(const Val *buffer) {
    const Global *owner = ir_owner(buffer);
    return owner && owner->kind == GLOBAL_uniform;
}

static const Val *index_of(const Inst *access) {
    const Val *index = ir_resolve(access->args[1]);
    while (index->kind == VAL_inst && index->inst->op == OP_convert) index = ir_resolve(index->inst->args[0]);
    return index;
}

static int64_t element_size(const Inst *access) {
    return type_layout(access->results[0]->type->args[0], LAYOUT_scalar).stride;
}

static bool is_in_step(const Search *search, const Inst *inst) {
    if (inst->op != OP_buffer_elem || !inst_has(inst, INST_UNCHECKED) || index_of(inst) != search->counter)
        return false;
    const Val *buffer = ir_resolve(inst->args[0]);
    int64_t size = element_size(inst);
    return type_is_read_only(buffer->type) && is_of_uniform(buffer) && size >= FEWEST_BYTES &&
           size <= MOST_BYTES && size % 4 == 0;
}

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    search->insts += inst->op == OP_loop || inst->op == OP_call ? FEW_INSTS : 1;
    search->refused |= is_way_out(search, inst);
    if (!search->access && is_in_step(search, inst)) search->access = inst;
}

bool clike_counts_up(const Inst *choice, const Inst *loop, LoopTest *test) {
    const Inst *first = loop->regions[0]->first, *yield = first ? first->next : NULL;
    int64_t step, rounds = loop_most_trips(loop);
    if (loop->nregions > 2 || !yield || yield->op != OP_yield || !loop_comparison(loop, first, test))
        return false;
    if (!test->up || test->or_equal || !loop_step(loop, test->index, &step) || step != 1) return false;
    return (rounds < 0 || rounds >= FEWEST_ROUNDS) && !inst_contains(choice, ir_resolve(test->limit)) &&
           !inst_contains(choice, ir_resolve(loop->args[test->index]));
}

static bool find_in(const Inst *choice, const Inst *loop, LoopTest *test, Search *search) {
    if (loop->op != OP_loop || !clike_counts_up(choice, loop, test)) return false;
    *search = (Search){.loop = loop, .counter = loop->regions[1]->params[test->index]};
    region_walk(loop->regions[1], look_at, search);
    return search->access && !search->refused;
}

/* An element has a multiple of 16 bytes, which one instruction reads. */
static bool fits(Printer *p, const Inst *access) {
    const int *size = p->at->func->group_size;
    int64_t threads = ((int64_t)size[0] * size[1] * size[2] + 31) / 32 * 32;
    return clike_take_shared(p, threads * ((element_size(access) + 15) / 16 * 16));
}

const char *clike_limit(Printer *p, const Inst *loop, const LoopTest *test) {
    const Inst *compare = loop->regions[0]->first;
    int index = 0;
    while (ir_resolve(compare->args[index]) != ir_resolve(test->limit)) index++;
    return clike_operand(p, compare, index).text;
}

const char *clike_find_tile(Printer *p, const Inst *choice) {
    FuncState *at = p->at;
    LoopTest test;
    Search search;
    if (!p->dialect->tile || at->func->group_size[0] == 0 || at->tile.loop || p->options->level < 2)
        return NULL;
    for (const Inst *inst = choice->regions[0]->first; inst; inst = inst->next) {
        if (!find_in(choice, inst, &test, &search) || !fits(p, search.access)) continue;
        at->tile.loop = inst;
        at->tile.access = search.access;
        at->tile.is_short = search.insts < FEW_INSTS;
        at->tile.limit = clike_limit(p, inst, &test);
        return clike_format(p, "%s(%s, %s)", clike_helper(p, "slope_together"),
                            clike_operand(p, inst, test.index).text, at->tile.limit);
    }
    return NULL;
}

bool clike_is_tiled(const Printer *p, const Inst *access) {
    const Inst *tiled = p->at->tile.name ? p->at->tile.access : NULL;
    return tiled && access->op == OP_buffer_elem && index_of(access) == index_of(tiled) &&
           ir_resolve(access->args[0]) == ir_resolve(tiled->args[0]);
}

bool clike_name_tile(Printer *p, const Inst *loop) {
    FuncState *at = p->at;
    if (at->tile.loop != loop) return false;
    at->tile.name = clike_local(p, "tile");
    at->tile.round = clike_local(p, "k");
    return true;
}

void clike_begin_tile(Printer *p, const char *counter, const char *condition, const char *step) {
    FuncState *at = p->at;
    const Inst *access = at->tile.access;
    const int *size = at->func->group_size;
    const char *rounds = clike_local(p, "rounds");
    clike_line(p, "%s<%d, %s> %s(%s.data, %s, %s);", clike_helper(p, p->dialect->tile),
               (size[0] * size[1] * size[2] + 31) / 32,
               clike_declare(p, access->results[0]->type->args[0], ""), at->tile.name,
               clike_in(p, clike_operand(p, access, 0), LEVEL_primary), counter, at->tile.limit);
    clike_line(p, "while (%s) {", condition);
    p->indent++;
    clike_line(p, "const int %s = %s.turn(%s, %s);", rounds, at->tile.name, counter, at->tile.limit);
    if (at->tile.is_short) clike_line(p, "#pragma unroll 32");
    clike_line(p, "for (int %s = 0; %s < %s; %s++, %s) {", at->tile.round, at->tile.round, rounds,
               at->tile.round, step);
}

void clike_end_tile(Printer *p) {
    p->indent--;
    clike_line(p, "}");
    p->at->tile.name = NULL;
}
