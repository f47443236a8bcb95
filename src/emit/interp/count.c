/* Counting. Instructions that always run together are a block; a step at its beginning counts how often that
 * was. */
#include "emit/interp/code.h"

void interp_count(EmitJit *jit, InterpCounts *counts) { jit->counts = counts; }

int64_t interp_executed(const EmitJit *jit, Op op) {
    int64_t executed = 0;
    for (const Block *block = jit->blocks; block; block = block->next)
        for (int i = 0; i < block->ops.count; i++)
            if (block->ops.at[i] == op) executed += block->times;
    return executed;
}

void interp_end(const Slot *r, InterpEnd end, const char *text) {
    const Frame *frame = r[0].frame;
    InterpCounts *counts = frame->code->program->counts;
    if (counts) counts->end = end;
    rt_abort(frame->context, text, (int64_t)strlen(text));
}

void interp_keep(const Slot *r, const Type *type, int64_t count) {
    InterpCounts *counts = r[0].frame->code->program->counts;
    if (!counts) return;
    counts->kept += count * type_layout(type, LAYOUT_scalar).size;
    if (counts->kept > counts->most) counts->most = counts->kept;
}

static const Step *count_block(Slot *r, const Step *s) {
    Block *block = (Block *)(uintptr_t)s->data;
    InterpCounts *counts = r[0].frame->code->program->counts;
    block->times++;
    counts->work += block->work;
    counts->steps -= block->count;
    if (counts->steps < 0) interp_end(r, INTERP_out_of_steps, "it takes too many steps");
    return s + 1;
}

static void open_block(Translator *t) {
    Block *block = arena_new(t->arena, Block);
    block->next = t->jit->blocks;
    t->jit->blocks = t->block = block;
    interp_step(t, count_block, 0, 0, 0)->data = block;
}

/* Words that it moves, beyond what an instruction does. */
static int64_t words_moved(const Inst *inst) {
    bool whole = inst->op == OP_copy || inst->op == OP_zero;
    return whole ? type_layout(inst->args[0]->type->args[0], LAYOUT_scalar).size / (int64_t)sizeof(Slot) : 0;
}

void interp_count_inst(Translator *t, const Inst *inst) {
    if (!t->program->counts) return;
    if (!t->block) open_block(t);
    t->block->count++;
    t->block->work += 1 + words_moved(inst);
    vec_push(t->arena, &t->block->ops, inst->op);
}
