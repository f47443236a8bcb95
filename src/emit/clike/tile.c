/* Elements that all threads read in the same order: a loop over the bodies that attract, the Gaussians of a
 * picture. Each thread would ask for each part of each element, and get what its neighbours get as well. So
 * the lanes of a warp read 32 elements at once, an element each, to memory of their own in the group, where
 * they lie so that whole elements are read; the next 32 come while these are used.
 *
 *     for (i = first; i < limit; i++) ... data[i] ...
 *
 *     SlopeTile<8, T> tile(data, i, limit);
 *     while (i < limit) {
 *         const int rounds = tile.turn(i, limit);
 *         for (int k = 0; k < rounds; k++, i++) ... tile.slots[k].element ...
 *     }
 *
 * All lanes must be there until the loop ends, with the same bounds. That is tested where it is tested
 * whether all indices are in range (opt/range.c): what is done otherwise is there, too. The buffer is one
 * that programs only read.
 *
 * Numbers are read like that as well, also in the row of a matrix, which begins somewhere: all 32 are used at
 * once, a few by one instruction. Whether lanes are in one row is known when the kernel runs, and often they
 * are not. So a short loop is there in both forms.
 *
 *     for (i = first; i < limit; i++) ... data[start + i] ...
 *
 *     SlopeTile<8, float> tile(data + start, i, limit);
 *     const bool together = slope_together(i, limit) && slope_together(start, start);
 *     while (together && limit - i >= 32) {
 *         tile.turn(i, limit);
 *         for (int k = 0; k < 32; k++, i++) { const float item = tile.slots[k].element; ... }
 *     }
 *     if (i < limit) {
 *         for (; i < limit; i++) { const float item = data[start + i]; ... }
 *     } */
#include "emit/clike/clike.h"

enum { FEWEST_BYTES = 12, MOST_BYTES = 64, FEWEST_ROUNDS = 32 }; /* of an element; of a loop */
enum {
    FEW_INSTS = 40
}; /* of a round; all 32 are written out then, so that they need not wait for each other */

enum { MOST_DEPTH = 16 }; /* of an index */

enum { MOST_INSTS = 128 }; /* of a kernel that does nothing else worth mentioning */

typedef struct Search {
    const Inst *choice, *loop;
    const Val *counter;
    const Inst *access; /* of an element */
    const Inst *number; /* of a number, or NULL */
    int insts;
    bool refused, branches;
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

static int64_t element_size(const Inst *access) {
    return type_layout(access->results[0]->type->args[0], LAYOUT_scalar).stride;
}

static bool is_in_step(const Search *search, const Inst *inst) {
    if (inst->op != OP_buffer_elem || !inst_has(inst, INST_UNCHECKED) ||
        val_unconverted(inst_operand(inst, 1)) != search->counter)
        return false;
    const Val *buffer = ir_resolve(inst->args[0]);
    int64_t size = element_size(inst);
    return type_is_read_only(buffer->type) && is_of_uniform(buffer) && size >= FEWEST_BYTES &&
           size <= MOST_BYTES && size % 4 == 0;
}

/* ---- numbers in a row */

/* Does it grow with where a thread stands in its row? Then lanes are in rows of their own. */
static bool follows_thread(const Func *func, const Val *v, int depth) {
    if (v->kind != VAL_inst || depth == 0) return false;
    const Inst *inst = v->inst;
    if (inst->op == OP_thread_id) return inst->index == 3;
    if (inst->op == OP_extract) {
        const Val *whole = ir_resolve(inst->args[0]);
        bool is_id = whole->kind == VAL_inst && whole->inst->op == OP_thread_id &&
                     (whole->inst->index == 0 || whole->inst->index == 2);
        int64_t lane;
        bool is_x = val_is_int(ir_resolve(inst->args[1]), &lane) && lane == 0;
        return is_id && (is_x || func->group_size[0] % 32);
    }
    bool is_linear = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul || inst->op == OP_shl ||
                     inst->op == OP_convert;
    for (int i = 0; i < inst->nargs && is_linear; i++)
        if (follows_thread(func, ir_resolve(inst->args[i]), depth - 1)) return true;
    return false;
}

/* The sum of the counter and of where the row starts, which is that operand; NULL: the index is something
 * else. Sums of 64 bits do not wrap where they are in range. */
static const Inst *find_start(const Inst *choice, const Inst *access, const Val *counter, int *operand) {
    const Val *index = ir_resolve(access->args[1]);
    const Inst *sum = index->kind == VAL_inst && index->inst->op == OP_add ? index->inst : NULL;
    if (!sum || index->type->kind != TYPE_int64) return NULL;
    for (int i = 0; i < 2; i++) {
        const Val *start = ir_resolve(sum->args[1 - i]);
        if (val_unconverted(inst_operand(sum, i)) != counter || inst_contains(choice, start)) continue;
        *operand = 1 - i;
        return follows_thread(choice->func, start, MOST_DEPTH) ? NULL : sum;
    }
    return NULL;
}

static bool is_in_row(const Search *search, const Inst *inst) {
    int start;
    if (inst->op != OP_buffer_elem || !inst_has(inst, INST_UNCHECKED)) return false;
    if (val_unconverted(inst_operand(inst, 1)) != search->counter &&
        !find_start(search->choice, inst, search->counter, &start))
        return false;
    const Val *buffer = ir_resolve(inst->args[0]);
    const Type *type = buffer->type->args[0];
    return type_is_read_only(buffer->type) && is_of_uniform(buffer) && type_is_scalar(type) &&
           (element_size(inst) == 4 || element_size(inst) == 8);
}

/* ---- loops */

static void look_at(void *user, Inst *inst) {
    Search *search = user;
    search->branches |= inst->nregions && inst->op != OP_if;
    search->branches |= inst->op == OP_continue;
    if (!search->number && is_in_row(search, inst)) search->number = inst;
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
    *search = (Search){.choice = choice, .loop = loop, .counter = loop->regions[1]->params[test->index]};
    region_walk(loop->regions[1], look_at, search);
    if (!search->access && !search->branches && search->insts < FEW_INSTS) search->access = search->number;
    return search->access && !search->refused;
}

/* An element has a multiple of 16 bytes, which one instruction reads. */
static bool fits(Printer *p, const Search *search) {
    const int *size = p->at->func->group_size;
    int64_t threads = ((int64_t)size[0] * size[1] * size[2] + 31) / 32 * 32,
            each = element_size(search->access);
    return clike_take_shared(p, threads * (search->access == search->number ? each : (each + 15) / 16 * 16));
}

static const char *limit_of(Printer *p, const Inst *loop, const LoopTest *test) {
    const Inst *compare = loop->regions[0]->first;
    int index = 0;
    while (ir_resolve(compare->args[index]) != ir_resolve(test->limit)) index++;
    return clike_operand(p, compare, index).text;
}

/* What else is read in such a loop comes from the other groups on a multiprocessor, if there are enough of
 * them. */
static void note_waiting(Printer *p) {
    const ReachedFunc *reached = reached_func(&p->reached, p->at->func);
    if (reached->callees.count == 0 && reached->size <= MOST_INSTS)
        map_put(&p->arena, &p->waiting, PTR_KEY(p->at->func), p);
}

const char *clike_find_tile(Printer *p, const Inst *choice) {
    FuncState *at = p->at;
    LoopTest test;
    Search search;
    if (!p->dialect->tile || at->func->group_size[0] == 0 || at->tile.loop || p->options->level < 2)
        return NULL;
    for (const Inst *inst = choice->regions[0]->first; inst; inst = inst->next) {
        if (!find_in(choice, inst, &test, &search) || !fits(p, &search)) continue;
        at->tile.loop = inst;
        at->tile.access = search.access;
        at->tile.is_short = search.insts < FEW_INSTS;
        at->tile.limit = limit_of(p, inst, &test);
        at->tile.is_row = search.access == search.number;
        at->tile.sum = find_start(choice, search.access, search.counter, &at->tile.start);
        if (at->tile.is_row) {
            note_waiting(p);
            return NULL;
        }
        return clike_format(p, "%s(%s, %s)", clike_helper(p, "slope_together"),
                            clike_operand(p, inst, test.index).text, at->tile.limit);
    }
    return NULL;
}

const char *clike_tiled(Printer *p, const Inst *access) {
    const FuncState *at = p->at;
    const Inst *tiled = at->tile.name ? at->tile.access : NULL;
    bool is_same = tiled && access->op == OP_buffer_elem &&
                   val_unconverted(inst_operand(access, 1)) == val_unconverted(inst_operand(tiled, 1)) &&
                   ir_resolve(access->args[0]) == ir_resolve(tiled->args[0]);
    if (!is_same) return NULL;
    return at->tile.is_row ? at->tile.item
                           : clike_format(p, "%s.slots[%s].element", at->tile.name, at->tile.round);
}

bool clike_name_tile(Printer *p, const Inst *loop) {
    FuncState *at = p->at;
    if (at->tile.loop != loop) return false;
    at->tile.name = clike_local(p, "tile");
    at->tile.round = clike_local(p, "k");
    at->tile.item = at->tile.is_row ? clike_local(p, "item") : NULL;
    return true;
}

static void declare_tile(Printer *p, const char *data, const char *counter) {
    const FuncState *at = p->at;
    const int *size = at->func->group_size;
    clike_line(p, "%s<%d, %s> %s(%s, %s, %s);", clike_helper(p, p->dialect->tile),
               (size[0] * size[1] * size[2] + 31) / 32,
               clike_declare(p, at->tile.access->results[0]->type->args[0], ""), at->tile.name, data, counter,
               at->tile.limit);
}

void clike_begin_tile(Printer *p, const char *counter, const char *condition, const char *step) {
    FuncState *at = p->at;
    const char *rounds = clike_local(p, "rounds");
    const char *buffer = clike_in(p, clike_operand(p, at->tile.access, 0), LEVEL_primary);
    declare_tile(p, clike_format(p, "%s.data", buffer), counter);
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

/* ---- both forms of a loop over numbers */

static void declare_item(Printer *p, const char *from) {
    const Type *type = p->at->tile.access->results[0]->type->args[0];
    p->indent++;
    clike_line(p, "const %s = %s;", clike_declare(p, type, p->at->tile.item), from);
    p->indent--;
}

void clike_begin_numbers(Printer *p, const char *counter, const char *step) {
    FuncState *at = p->at;
    const char *data =
        clike_format(p, "%s.data", clike_in(p, clike_operand(p, at->tile.access, 0), LEVEL_primary));
    const char *together = clike_local(p, "together"), *test = clike_helper(p, "slope_together"), *same = "";
    at->tile.row = data;
    if (at->tile.sum) {
        Value start = clike_operand(p, at->tile.sum, at->tile.start);
        at->tile.row = clike_format(p, "%s + %s", data, clike_in(p, start, LEVEL_product));
        same = clike_format(p, " && %s(%s, %s)", test, start.text, start.text);
    }
    declare_tile(p, at->tile.row, counter);
    clike_line(p, "const bool %s = %s(%s, %s)%s;", together, test, counter, at->tile.limit, same);
    clike_line(p, "while (%s && %s - %s >= 32) {", together, at->tile.limit, counter);
    p->indent++;
    clike_line(p, "%s.turn(%s, %s);", at->tile.name, counter, at->tile.limit);
    clike_line(p, "#pragma unroll");
    clike_line(p, "for (int %s = 0; %s < 32; %s++, %s) {", at->tile.round, at->tile.round, at->tile.round,
               step);
    declare_item(p, clike_format(p, "%s.slots[%s].element", at->tile.name, at->tile.round));
}

void clike_next_numbers(Printer *p, const char *counter, const char *condition, const char *step) {
    p->indent--;
    clike_line(p, "}");
    clike_line(p, "if (%s) {", condition);
    p->indent++;
    clike_line(p, "for (; %s; %s) {", condition, step);
    declare_item(p, clike_format(p, "(%s)[%s]", p->at->tile.row, counter));
}
