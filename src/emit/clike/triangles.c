/* Triangles of sums.
 *
 *     for (i = 0; i < 8; i++)
 *         for (j = i + 1; j < 8; j++) to[next++] += x[i] * y[j];
 *
 * Written out (unroll.c), they add to numbers that lie beside each other, which can be done in pairs, as LLVM
 * does. gcc does not, by its estimate of what that takes; it can be told not to estimate, but of a whole
 * function alone, and makes pairs of more than is good where there are other triangles. So a function that
 * has such ones in its loops, and no others, does not become a part of who calls it. clang gains by that as
 * well: among few addresses it has those by which one instruction reads or writes two vectors.
 *
 * gcc does not see whether two elements of a buffer are the same, but of elements of an array it does; so
 * they are called that.
 *
 *     SLOPE_ROW(double, &to.data[first])[next] += ...; */
#include "emit/clike/clike.h"

enum { MOST_ROUNDS = 64 };

typedef struct Triangles {
    const Printer *printer;
    bool adds, others; /* some add to memory, in a loop; some do not */
} Triangles;

static bool is_sum(const void *user, const Inst *inst) {
    (void)user;
    if (inst->op != OP_store && inst->op != OP_atomic) return false;
    const Val *root = ir_root(inst->args[0]);
    return root->kind != VAL_inst || root->inst->op != OP_var;
}

static void look_for_triangles(void *user, Inst *inst) {
    Triangles *triangles = user;
    if (inst->op != OP_loop || !clike_is_triangle(triangles->printer, inst)) return;
    bool adds = inst_loop_around(inst) && region_find(inst->regions[1], is_sum, NULL);
    triangles->adds |= adds;
    triangles->others |= !adds;
}

bool clike_adds_triangles(const Printer *p, const Func *func) {
    Triangles triangles = {.printer = p};
    region_walk(func->body, look_for_triangles, &triangles);
    return triangles.adds && !triangles.others;
}

/* ---- rows */

/* All rounds that are written out with the one that this is in, as far as triangles are; NULL: it is in
 * none. */
static const Inst *rounds_around(const Printer *p, const Inst *inst) {
    const Inst *loop = inst_loop_around(inst), *outer = loop ? inst_loop_around(loop) : NULL;
    return outer && clike_is_triangle(p, outer) ? outer : loop;
}

static bool is_positive(Interval range) { return range.known && range.low >= 0; }

/* Never less than 0: whatever the round, or in each of them. */
static bool is_in_array(const Printer *p, const Inst *rounds, const Val *v) {
    if (is_positive(ir_interval(&p->at->jumps, v))) return true;
    for (int i = 0; i < rounds->nargs; i++) {
        const Val *counter = rounds->regions[1]->params[i];
        Interval range = ir_interval(&p->at->jumps, counter);
        bool is_positive_in_all = range.known && range.high - range.low < MOST_ROUNDS;
        for (int64_t at = range.low; is_positive_in_all && at <= range.high; at++)
            is_positive_in_all = is_positive(ir_interval_at(&p->at->jumps, v, counter, at));
        if (is_positive_in_all) return true;
    }
    return false;
}

static bool can_be_said_again(const Printer *p, const Val *v) {
    return !val_is_const(v) && !p->at->values[v->id].reads && !p->at->values[v->id].guarded;
}

const char *clike_element_in_row(Printer *p, const Inst *access) {
    const Val *element = access->results[0], *index = inst_operand(access, 1);
    if (!p->at->adds_triangles || p->at->uses[element->id] != 1) return NULL;
    const Inst *rounds = rounds_around(p, access), *sum = index->kind == VAL_inst ? index->inst : NULL;
    if (!rounds || !sum || sum->op != OP_add || !clike_is_plain_sum(p, p->at->user[element->id])) return NULL;
    int first = inst_contains(rounds, inst_operand(sum, 0)) ? 1 : 0;
    if (inst_contains(rounds, inst_operand(sum, first))) return NULL;
    for (int i = 0; i < 2; i++) {
        const Val *part = inst_operand(sum, i);
        if (!can_be_said_again(p, part) || !is_in_array(p, rounds, part)) return NULL;
    }
    const char *data = clike_in(p, clike_operand(p, access, 0), LEVEL_primary);
    return clike_format(p, "%s(%s, &%s.data[%s])[%s]", clike_helper(p, "SLOPE_ROW"),
                        clike_type(p, element->type->args[0]), data, clike_operand(p, sum, first).text,
                        clike_operand(p, sum, 1 - first).text);
}
