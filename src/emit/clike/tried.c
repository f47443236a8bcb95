/* Loops that try their sines the short way.
 *
 *     if (!f_loops(false, ...)) f_loops(true, ...);          static bool f_loops(bool exact, ...) {
 *                                                                uint32_t large = 0;
 *                                                                for (...) {
 *                                                                    uint32_t is_large = 0;
 *                                                                    to[i] = slope_sin_tried_float(from[i], exact, &is_large);
 *                                                                    large |= is_large;
 *                                                                }
 *                                                                return large == 0;
 *                                                            }
 *
 * What whole turns leave of a number of any size takes many steps to find, and a sine in vectors must take
 * them all (elementary.c); up to 2^17, few do. Greater numbers hardly ever come. So a loop begins with the
 * few, notes whether there was a greater one, and is done again if so, with the many. That it may be if it
 * writes whole elements and reads none that it writes (rows.c): what was there before does not matter then.
 * In double there is only the short way, up to 2^30; the second time, sines are called, and no vectors made.
 * It has to be a function of its own as well (opt/outline.c), of which compilers make one copy for each way;
 * where sines are called, nothing is noted, and the second copy is never reached.
 *
 * A round's note is a variable of its own: gcc sees no sum in what is added to in one of two ways. */
#include "emit/clike/clike.h"

/* Is that loop all that the function does? */
static const Inst *only_loop(const Func *func) {
    const Inst *loop = NULL;
    for (const Inst *inst = func->body->first; inst; inst = inst->next) {
        bool is_loop = inst->op == OP_loop && !loop;
        if (!is_loop && inst->op != OP_return && !op_has(inst->op, OP_PURE)) return NULL;
        if (is_loop) loop = inst;
    }
    return loop;
}

bool clike_is_tried(const Printer *p, const Func *func) {
    bool is_alone = emit_is_outlined(func) && func->nresults == 0 && !clike_takes_thread(p, func);
    const Inst *loop = is_alone && clike_has_vectors(p) ? only_loop(func) : NULL;
    return loop && clike_turns_rows_anew(p, loop);
}

void clike_begin_tried(Printer *p, const Func *func) {
    if (!clike_is_tried(p, func)) return;
    p->at->tried.exact = clike_unique(p, &p->at->names, "exact");
    p->at->tried.any = clike_local(p, "large");
    p->at->tried.own = clike_local(p, "is_large");
    p->at->result = clike_format(p, "%s == 0", p->at->tried.any);
    clike_line(p, "uint32_t %s = 0;", p->at->tried.any);
}

void clike_begin_tried_round(Printer *p) {
    if (p->at->tried.any) clike_line(p, "uint32_t %s = 0;", p->at->tried.own);
}

void clike_end_tried_round(Printer *p) {
    if (p->at->tried.any) clike_line(p, "%s |= %s;", p->at->tried.any, p->at->tried.own);
}

bool clike_tried_sine(Printer *p, const Inst *inst, Value x, Value *result) {
    if (!clike_is_turn(inst) || !p->at->tried.any || !clike_is_computed_in_rows(p, inst)) return false;
    const char *type = clike_word(p, inst->results[0]->type), *function = op_info[inst->op].name;
    const char *name = clike_helper(p, clike_format(p, "slope_%s_tried_%s", function, type));
    const Value args[] = {x, clike_value(p->at->tried.exact, LEVEL_primary),
                          clike_value(clike_format(p, "&%s", p->at->tried.own), LEVEL_unary)};
    *result = clike_call(p, name, args, 3);
    return true;
}
