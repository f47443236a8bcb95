/* Control flow: from nested regions to blocks. A place where control flows together is a Merge: a block whose phis stand for
 * the values that come along. A region knows by its Frame where yield, break and continue go. */
#include "emit/llvm/llvm.h"

/* ---- merges */

static Merge merge_new(Emitter *e, const char *name, Val *const *values, int count) {
    Merge merge = {.block = emit_block(e, name), .nphis = count};
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    merge.phis = arena_array(&e->arena, LLVMValueRef, count + 1);
    LLVMPositionBuilderAtEnd(e->builder, merge.block);
    for (int i = 0; i < count; i++)
        merge.phis[i] = LLVMBuildPhi(e->builder, emit_type(e, values[i]->type), "");
    LLVMPositionBuilderAtEnd(e->builder, here);
    return merge;
}

/* Jumps there with these values. */
static void merge_values(Emitter *e, Merge *merge, LLVMValueRef *values) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    for (int i = 0; i < merge->nphis; i++) LLVMAddIncoming(merge->phis[i], &values[i], &here, 1);
    merge->incoming++;
    LLVMBuildBr(e->builder, merge->block);
}

static void merge_from(Emitter *e, Merge *merge, const Inst *inst) {
    LLVMValueRef *values = arena_array(&e->arena, LLVMValueRef, merge->nphis + 1);
    for (int i = 0; i < merge->nphis; i++) values[i] = emit_use(e, inst, i);
    merge_values(e, merge, values);
}

/* Goes on in the merge's block. If nothing leads there, what follows is dead, and the phis would be malformed. */
static void merge_enter(Emitter *e, Merge *merge) {
    LLVMPositionBuilderAtEnd(e->builder, merge->block);
    if (merge->incoming > 0) return;
    for (int i = 0; i < merge->nphis; i++) {
        LLVMValueRef nothing = LLVMGetPoison(LLVMTypeOf(merge->phis[i]));
        LLVMReplaceAllUsesWith(merge->phis[i], nothing);
        LLVMInstructionEraseFromParent(merge->phis[i]);
        merge->phis[i] = nothing;
    }
}

static void set_values(Emitter *e, Val *const *values, int count, const Merge *merge) {
    for (int i = 0; i < count; i++) emit_set(e, values[i], emit_plain_value(merge->phis[i]));
}

static void emit_framed(Emitter *e, const Region *region, Frame frame) {
    frame.up = e->at->frame;
    e->at->frame = &frame;
    emit_region(e, region);
    e->at->frame = frame.up;
}

/* ---- if, switch, block */

static void emit_arm(Emitter *e, const Inst *inst, int region, LLVMBasicBlockRef block, Merge *merge) {
    LLVMPositionBuilderAtEnd(e->builder, block);
    emit_framed(e, inst->regions[region], (Frame){.owner = inst, .on_yield = merge, .on_break = merge});
}

static void emit_if(Emitter *e, const Inst *inst) {
    LLVMBasicBlockRef then = emit_block(e, "then"), otherwise = emit_block(e, "else");
    LLVMBuildCondBr(e->builder, emit_use(e, inst, 0), then, otherwise);
    Merge merge = merge_new(e, "endif", inst->results, inst->nresults);
    emit_arm(e, inst, 0, then, &merge);
    emit_arm(e, inst, 1, otherwise, &merge);
    merge_enter(e, &merge);
    set_values(e, inst->results, inst->nresults, &merge);
}

static void emit_switch(Emitter *e, const Inst *inst) {
    LLVMValueRef value = emit_use(e, inst, 0);
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMBasicBlockRef otherwise = emit_block(e, "default");
    LLVMValueRef jump = LLVMBuildSwitch(e->builder, value, otherwise, count_of(inst->ncases));
    Merge merge = merge_new(e, "endswitch", inst->results, inst->nresults);
    for (int i = 0; i < inst->ncases; i++) {
        LLVMBasicBlockRef arm = emit_block(e, "case");
        for (int k = 0; k < inst->cases[i].nvalues; k++)
            LLVMAddCase(jump, LLVMConstInt(type, (unsigned long long)inst->cases[i].values[k], true), arm);
        emit_arm(e, inst, i, arm, &merge);
    }
    emit_arm(e, inst, inst->ncases, otherwise, &merge);
    merge_enter(e, &merge);
    set_values(e, inst->results, inst->nresults, &merge);
}

static void emit_simple_block(Emitter *e, const Inst *inst) {
    LLVMBasicBlockRef inside = emit_block(e, "block");
    LLVMBuildBr(e->builder, inside);
    Merge merge = merge_new(e, "endblock", inst->results, inst->nresults);
    emit_arm(e, inst, 0, inside, &merge);
    merge_enter(e, &merge);
    set_values(e, inst->results, inst->nresults, &merge);
}

/* ---- loop: header (condition), body, step, exit
 *
 * A loop that may take long looks whether it is to stop. If it counts it does so once in many rounds, by a loop within:
 *
 *     header: if (i < end) {
 *                 part = end - i > rounds ? i + rounds : end
 *     inner:      while (i < part) { body; step }
 *                 leave if told to stop
 *                 go to header
 *             }
 *     exit:   */

/* From here on, in the header's block, to `inside`. Returns where the rounds go on. */
static Merge begin_part(Emitter *e, const Inst *inst, Merge *header, int64_t rounds,
                        LLVMBasicBlockRef inside) {
    const Region *condition = inst->regions[0];
    LLVMBuilderRef b = e->builder;
    LoopTest test;
    loop_comparison(inst, ir_resolve(condition->last->args[0])->inst, &test);
    LLVMValueRef limit =
        val_is_const(test.limit) ? emit_constant(e, test.limit) : e->at->values[test.limit->id].value;
    LLVMValueRef first = header->phis[test.index],
                 distance = LLVMConstInt(LLVMTypeOf(first), (unsigned long long)rounds, false);
    LLVMValueRef left = test.up ? LLVMBuildSub(b, limit, first, "") : LLVMBuildSub(b, first, limit, "");
    LLVMValueRef part = test.up ? LLVMBuildAdd(b, first, distance, "") : LLVMBuildSub(b, first, distance, "");
    part = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, left, distance, ""), part, limit, "");
    Merge inner = merge_new(e, "inner", condition->params, condition->nparams);
    merge_values(e, &inner, header->phis);
    merge_enter(e, &inner);
    LLVMBasicBlockRef after = emit_block(e, "part");
    bool is_signed = type_is_signed(test.limit->type);
    LLVMIntPredicate below = is_signed ? LLVMIntSLT : LLVMIntULT, above = is_signed ? LLVMIntSGT : LLVMIntUGT;
    LLVMValueRef goes_on = LLVMBuildICmp(b, test.up ? below : above, inner.phis[test.index], part, "");
    LLVMBuildCondBr(b, goes_on, inside, after);
    LLVMPositionBuilderAtEnd(b, after);
    emit_stop_test(e);
    merge_values(e, header, inner.phis);
    return inner;
}

static void emit_step(Emitter *e, const Inst *inst, Merge *next, Merge *again, Merge *exit) {
    const Region *step = inst->nregions > 2 ? inst->regions[2] : NULL;
    merge_enter(e, next);
    if (step) {
        set_values(e, step->params, step->nparams, next);
        emit_framed(e, step, (Frame){.owner = inst, .on_yield = again, .on_break = exit});
    } else {
        merge_values(e, again, next->phis);
    }
}

static void emit_one_loop(Emitter *e, const Inst *inst) {
    const Region *condition = inst->regions[0], *body = inst->regions[1];
    const LoopLooks *looks = e->for_jit ? map_get(&e->reached.looks, PTR_KEY(inst)) : NULL;
    bool in_parts = looks && looks->rounds > 1;
    Merge header = merge_new(e, "loop", condition->params, condition->nparams), inner;
    merge_from(e, &header, inst);
    Merge exit = merge_new(e, "endloop", inst->results, inst->nresults);
    Merge next = merge_new(e, "next", body->params, body->nparams);
    LLVMBasicBlockRef begin = emit_block(e, "body"), inside = in_parts ? emit_block(e, "round") : begin;

    merge_enter(e, &header);
    set_values(e, condition->params, condition->nparams, &header);
    emit_framed(e, condition,
                (Frame){.owner = inst, .on_break = &exit, .if_true = begin, .carried = header.phis});

    LLVMPositionBuilderAtEnd(e->builder, begin);
    if (in_parts) inner = begin_part(e, inst, &header, looks->rounds, inside);
    LLVMPositionBuilderAtEnd(e->builder, inside);
    if (looks && !in_parts) emit_stop_test(e);
    set_values(e, body->params, body->nparams, in_parts ? &inner : &header);
    emit_framed(e, body, (Frame){.owner = inst, .on_yield = &next, .on_break = &exit, .on_continue = &next});

    emit_step(e, inst, &next, in_parts ? &inner : &header, &exit);
    merge_enter(e, &exit);
    set_values(e, inst->results, inst->nresults, &exit);
}

static void emit_copy_of_loop(Emitter *e, const Inst *inst, LLVMBasicBlockRef block, Merge *after) {
    LLVMValueRef *results = arena_array(&e->arena, LLVMValueRef, inst->nresults + 1);
    LLVMPositionBuilderAtEnd(e->builder, block);
    emit_one_loop(e, inst);
    for (int i = 0; i < inst->nresults; i++) results[i] = e->at->values[inst->results[i]->id].value;
    merge_values(e, after, results);
}

static void emit_loop(Emitter *e, const Inst *inst) {
    LLVMValueRef safe = emit_range_test(e, inst);
    if (!safe) {
        emit_one_loop(e, inst);
        return;
    }
    LLVMBasicBlockRef unchecked = emit_block(e, "in_range"), checked = emit_block(e, "checked");
    LLVMValueRef jump = LLVMBuildCondBr(e->builder, safe, unchecked, checked);
    LLVMSetMetadata(jump, e->weight_kind, e->likely);
    Merge after = merge_new(e, "after", inst->results, inst->nresults);
    e->at->within_range = true;
    emit_copy_of_loop(e, inst, unchecked, &after);
    e->at->within_range = false;
    emit_copy_of_loop(e, inst, checked, &after);
    merge_enter(e, &after);
    set_values(e, inst->results, inst->nresults, &after);
}

/* The end of a loop's condition: on to the body, or out with the carried values. */
static void yield_condition(Emitter *e, const Inst *inst, Frame *frame) {
    Merge *exit = frame->on_break;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    for (int i = 0; i < exit->nphis; i++) LLVMAddIncoming(exit->phis[i], &frame->carried[i], &here, 1);
    exit->incoming++;
    LLVMBuildCondBr(e->builder, emit_use(e, inst, 0), frame->if_true, exit->block);
}

/* ---- ends */

static Frame *frame_of(Emitter *e, const Inst *target) {
    Frame *frame = e->at->frame;
    while (frame && frame->owner != target) frame = frame->up;
    if (!frame) emit_fail(e, "a jump leaves a statement that is not around it");
    return frame;
}

static void emit_yield(Emitter *e, const Inst *inst) {
    Frame *frame = e->at->frame;
    if (frame->if_true) yield_condition(e, inst, frame);
    else merge_from(e, frame->on_yield, inst);
}

void emit_control(Emitter *e, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_if: emit_if(e, inst); break;
    case OP_switch: emit_switch(e, inst); break;
    case OP_loop: emit_loop(e, inst); break;
    case OP_block: emit_simple_block(e, inst); break;
    case OP_yield: emit_yield(e, inst); break;
    case OP_break: merge_from(e, frame_of(e, inst->target)->on_break, inst); break;
    case OP_continue: merge_from(e, frame_of(e, inst->target)->on_continue, inst); break;
    case OP_return: emit_return(e, inst); break;
    case OP_unreachable: LLVMBuildUnreachable(e->builder); break;
    default: emit_fail(e, "'%s' cannot be emitted", op_info[inst->op].name);
    }
}
