/* Arrays that must have memory of their own.
 *
 * NVIDIA's compilers let two arrays of a thread have the same memory if one is no longer read where the other
 * one begins, and are wrong about that at times: what a random function had kept for its way back (seed
 * 560292) was gone when an array was written whose index depends on data. They do not do so with arrays whose
 * address they have seen go elsewhere, to an instruction that is none. That costs nothing where an array is
 * in memory anyway; those which they make registers of, as all their indices are known once loops are
 * unrolled, are left alone. */
#include "emit/clike/clike.h"

enum { MOST_DEPTH = 16 }; /* of an index */

/* Is it known when loops are unrolled? */
static bool is_counted(const Val *v, int depth) {
    int64_t step;
    if (val_is_const(v)) return true;
    if (depth == 0) return false;
    if (v->kind == VAL_param) {
        const Inst *loop = v->region->owner;
        return loop && loop->op == OP_loop && v->region == loop->regions[1] &&
               loop_step(loop, v->index, &step);
    }
    const Inst *inst = v->inst;
    if (inst->op != OP_add && inst->op != OP_sub && inst->op != OP_mul && inst->op != OP_convert)
        return false;
    for (int i = 0; i < inst->nargs; i++)
        if (!is_counted(ir_resolve(inst->args[i]), depth - 1)) return false;
    return true;
}

/* Somewhere in the array? */
static bool leads_anywhere(const void *array, const Inst *inst) {
    if (inst->op == OP_elem)
        return ir_root(inst->args[0]) == array && !is_counted(inst_operand(inst, 1), MOST_DEPTH);
    for (int i = 0; i < inst->nargs && (inst->op == OP_call || inst->op == OP_offset); i++)
        if (ir_root(inst->args[i]) == array) return true;
    return false;
}

static bool has_array(const Type *type) {
    if (type->kind == TYPE_array) return true;
    const Record *record = type->kind == TYPE_record ? type_record(type) : NULL;
    for (int i = 0; i < (record ? record->nfields : 0); i++)
        if (has_array(record->fields[i].type)) return true;
    return false;
}

void clike_own_array(Printer *p, const Inst *var, const char *name) {
    if (!p->dialect->own || !has_array(var->type)) return;
    if (region_find(p->at->func->body, leads_anywhere, var->results[0]))
        clike_line(p, "%s(&%s);", clike_helper(p, p->dialect->own), name);
}

/* ---- tapes */

static bool is_conditional(const Inst *inst) {
    for (const Region *region = inst->parent; region->owner; region = region->owner->parent)
        if (region->owner->op != OP_loop) return true;
    return false;
}

static bool may_grow(const void *tape, const Inst *inst) {
    bool moves = inst->op == OP_tape_grow || inst->op == OP_tape_push || inst->op == OP_tape_reach;
    if (inst->op != OP_call && !(moves && is_conditional(inst))) return false;
    for (int i = 0; i < inst->nargs; i++)
        if (inst_operand(inst, i) == tape) return true;
    return false;
}

/* Where something is on a tape is known unless the tape grows in branches. */
void clike_own_tape(Printer *p, const Inst *open, const char *name) {
    if (p->dialect->own && region_find(p->at->func->body, may_grow, open->results[0]))
        clike_line(p, "%s(&%s);", clike_helper(p, p->dialect->own), name);
}
