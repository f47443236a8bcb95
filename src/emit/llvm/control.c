/* Control flow: from nested regions to blocks. A place where control flows together is a Merge: a block whose
 * phis stand for the values that come along. A region knows by its Frame where yield, break and continue
 * go. */
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

/* Goes on in the merge's block. If nothing leads there, what follows is dead, and the phis would be
 * malformed. */
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

static bool is_done_at_once(const Region *region) {
    enum { MOST = 4 };
    int count = 0;
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        bool is_plain = inst->op == OP_add || inst->op == OP_sub || inst->op == OP_mul || inst->op == OP_neg;
        if (inst->op == OP_yield) continue;
        if (!is_plain || !type_is_float(inst->results[0]->type) || ++count > MOST) return false;
    }
    return region->last && region->last->op == OP_yield;
}

/* In a large function, what takes no longer than a branch is computed both ways: where instructions are
 * selected LLVM does the same, but the time that it takes to find out grows with the square of the
 * branches. */
static bool is_choice(const Emitter *e, const Inst *inst) {
    if (!e->at->info || !e->at->info->is_large || e->device) return false;
    for (int i = 0; i < inst->nresults; i++)
        if (!type_is_float(inst->results[i]->type)) return false;
    return inst->nresults > 0 && is_done_at_once(inst->regions[0]) && is_done_at_once(inst->regions[1]);
}

static void emit_choice(Emitter *e, const Inst *inst) {
    LLVMValueRef condition = emit_use(e, inst, 0), *yielded[2];
    for (int i = 0; i < 2; i++) {
        yielded[i] = arena_array(&e->arena, LLVMValueRef, inst->nresults);
        emit_framed(e, inst->regions[i], (Frame){.owner = inst, .yielded = yielded[i]});
    }
    for (int i = 0; i < inst->nresults; i++) {
        LLVMValueRef chosen = LLVMBuildSelect(e->builder, condition, yielded[0][i], yielded[1][i], "");
        emit_set(e, inst->results[i], emit_plain_value(chosen));
    }
}

static void emit_if(Emitter *e, const Inst *inst) {
    if (is_choice(e, inst)) {
        emit_choice(e, inst);
        return;
    }
    LLVMBasicBlockRef then = emit_block(e, "then"), otherwise = emit_block(e, "else");
    LLVMValueRef jump = LLVMBuildCondBr(e->builder, emit_use(e, inst, 0), then, otherwise);
    if (inst_has(inst, INST_LIKELY)) LLVMSetMetadata(jump, e->weight_kind, e->likely);
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
 * A loop that may take long looks whether it is to stop. If it counts it does so once in many rounds, after a loop within:
 *
 *             if (i < limit) do {
 *     part:       end = limit - i > rounds ? i + rounds : limit
 *     inner:      do { body; step } while (i < end)
 *                 leave if told to stop
 *             } while (i < limit)
 *     exit:
 *
 * A counter that may step over its end and wrap around is compared by the way that it has gone in this part. If the loop does not
 * count, several rounds may be written out after a look: header, body and step, again and again. */

typedef struct EmittedLoop {
    const Inst *inst;
    const LoopLooks *looks; /* NULL: it need not look */
    Merge exit;
} EmittedLoop;

/* Rounds without a look. */
typedef struct Part {
    LoopTest test;
    bool by_way;
    LLVMValueRef first, end; /* of the counter; by way: how far it goes at most */
} Part;

/* How far the counter has moved. */
static LLVMValueRef way_between(Emitter *e, const LoopTest *test, LLVMValueRef from, LLVMValueRef to) {
    return test->up ? LLVMBuildSub(e->builder, to, from, "") : LLVMBuildSub(e->builder, from, to, "");
}

static Part find_part(Emitter *e, const EmittedLoop *loop, const Merge *header) {
    LLVMBuilderRef b = e->builder;
    Part part = {0};
    LoopTest *test = &part.test;
    loop_comparison(loop->inst, ir_resolve(loop->inst->regions[0]->last->args[0])->inst, test);
    int64_t step = loop->looks->step, stride = step < 0 ? -step : step;
    part.by_way = !loop_cannot_wrap(test, stride);
    part.first = header->phis[test->index];
    LLVMValueRef limit = emit_value(e, test->limit).value;
    int64_t way = loop->looks->rounds * stride - (test->or_equal ? 1 : 0);
    LLVMValueRef most = LLVMConstInt(LLVMTypeOf(part.first), (unsigned long long)way, false);
    LLVMValueRef left = way_between(e, test, part.first, limit);
    LLVMValueRef is_long = LLVMBuildICmp(b, LLVMIntUGT, left, most, "");
    LLVMValueRef end =
        test->up ? LLVMBuildAdd(b, part.first, most, "") : LLVMBuildSub(b, part.first, most, "");
    part.end = part.by_way ? LLVMBuildSelect(b, is_long, most, left, "")
                           : LLVMBuildSelect(b, is_long, end, limit, "");
    return part;
}

/* With this counter. */
static LLVMValueRef is_within(Emitter *e, const Part *part, LLVMValueRef counter) {
    const LoopTest *test = &part->test;
    bool is_signed = type_is_signed(test->limit->type) && !part->by_way;
    LLVMIntPredicate below = is_signed ? LLVMIntSLT : LLVMIntULT,
                     or_equal = is_signed ? LLVMIntSLE : LLVMIntULE;
    LLVMValueRef at = part->by_way ? way_between(e, test, part->first, counter) : counter;
    bool up = test->up || part->by_way;
    return LLVMBuildICmp(e->builder, test->or_equal ? or_equal : below, up ? at : part->end,
                         up ? part->end : at, "");
}

/* With these values; goes on in the block where it holds, or leaves the loop with them. */
static void emit_condition(Emitter *e, EmittedLoop *loop, Merge *values) {
    const Region *condition = loop->inst->regions[0];
    LLVMBasicBlockRef begin = emit_block(e, "body");
    set_values(e, condition->params, condition->nparams, values);
    emit_framed(
        e, condition,
        (Frame){.owner = loop->inst, .on_break = &loop->exit, .if_true = begin, .carried = values->phis});
    LLVMPositionBuilderAtEnd(e->builder, begin);
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

static void set_wishes(Emitter *e, LLVMValueRef branch, LLVMMetadataRef *wishes, int count) {
    static const char kind[] = "llvm.loop";
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, kind, sizeof kind - 1),
                    LLVMMetadataAsValue(e->context, emit_own_node(e, wishes, count)));
}

static LLVMMetadataRef wish_of(Emitter *e, const char *wish, LLVMMetadataRef more) {
    LLVMMetadataRef parts[] = {LLVMMDStringInContext2(e->context, wish, strlen(wish)), more};
    return LLVMMDNodeInContext2(e->context, parts, more ? 2 : 1);
}

/* What LLVM is to do with the loop to which the branch goes back. */
void emit_wish(Emitter *e, LLVMValueRef branch, const char *wish, int number) {
    LLVMMetadataRef node = wish_of(e, wish, number > 0 ? LLVMValueAsMetadata(emit_i32(e, number)) : NULL);
    set_wishes(e, branch, &node, 1);
}

/* It is not written out, unless it has become vectors: what is wished of that is something else, that it
 * ends. */
static void wish_for_vectors(Emitter *e, LLVMValueRef branch) {
    LLVMMetadataRef ends = wish_of(e, "llvm.loop.mustprogress", NULL);
    LLVMMetadataRef wishes[] = {wish_of(e, "llvm.loop.unroll.disable", NULL),
                                wish_of(e, "llvm.loop.vectorize.followup_all", ends)};
    set_wishes(e, branch, wishes, 2);
}

/* So many rounds at once. If they leave none over, nothing is written out before: vectors with room would be
 * read and written under a mask, and what little a round does may be better off in smaller ones. */
static void wish_for_whole_register(Emitter *e, LLVMValueRef branch, const Inst *loop, int rounds) {
    LLVMMetadataRef ends = wish_of(e, "llvm.loop.mustprogress", NULL);
    LLVMMetadataRef wishes[] = {
        wish_of(e, "llvm.loop.vectorize.width", LLVMValueAsMetadata(emit_i32(e, rounds))),
        wish_of(e, "llvm.loop.unroll.disable", NULL), wish_of(e, "llvm.loop.vectorize.followup_all", ends)};
    set_wishes(e, branch, wishes, loop_most_trips(loop) % rounds == 0 ? 3 : 1);
    emit_string_attribute(e, e->at->function, WHOLE_REGISTERS, "");
}

/* The copy of a loop for indices that are out of range, what does the rounds that others have left and what
 * does little beside others is neither unrolled nor vectorised, which would take as long as for the other
 * one; nests of short loops over arrays are written out. */
static void steer_loop(Emitter *e, const EmittedLoop *loop) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(e->builder));
    bool is_rare = inst_is_unlikely(loop->inst) || loop->inst->hints.few ||
                   (!e->device && emit_is_beside(&e->reached, loop->inst));
    int in_a_row = is_rare || loop->looks ? 1 : emit_rounds_in_a_row(loop->inst);
    bool is_free = loop->looks || e->device,
         has_short_vectors = e->habits.row == 16 && !target_masks_vectors();
    Unrolling unrolling = is_free ? UNROLL_freely : emit_unrolling(loop->inst, has_short_vectors);
    if (branch && is_rare) emit_wish(e, branch, "llvm.loop.disable_nonforced", 0);
    else if (branch && !loop->looks && emit_is_written_out(&e->reached, loop->inst))
        emit_wish(e, branch, "llvm.loop.unroll.full", 0);
    else if (branch && in_a_row > 1) emit_wish(e, branch, "llvm.loop.unroll.count", in_a_row);
    else if (branch && unrolling == UNROLL_never) emit_wish(e, branch, "llvm.loop.unroll.disable", 0);
    else if (branch && unrolling == UNROLL_as_vectors) wish_for_vectors(e, branch);
    else if (branch && !e->device && emit_rounds_that_fill(loop->inst, e->habits.row) > 1)
        wish_for_whole_register(e, branch, loop->inst, emit_rounds_that_fill(loop->inst, e->habits.row));
#if defined(__aarch64__)
    else if (branch && !e->device && emit_rounds_at_once(&e->reached, loop->inst) > 1)
        emit_wish(e, branch, "llvm.loop.vectorize.width", emit_rounds_at_once(&e->reached, loop->inst));
#endif
}

/* With these values, which then go to `again`. */
static void emit_body(Emitter *e, EmittedLoop *loop, const Merge *values, Merge *again) {
    const Inst *inst = loop->inst;
    const Region *body = inst->regions[1];
    Merge next = merge_new(e, "next", body->params, body->nparams);
    set_values(e, body->params, body->nparams, values);
    emit_framed(e, body,
                (Frame){.owner = inst, .on_yield = &next, .on_break = &loop->exit, .on_continue = &next});
    emit_step(e, inst, &next, again, &loop->exit);
}

static Merge carried_merge(Emitter *e, const EmittedLoop *loop, const char *name) {
    const Region *condition = loop->inst->regions[0];
    return merge_new(e, name, condition->params, condition->nparams);
}

static void emit_in_parts(Emitter *e, EmittedLoop *loop) {
    Merge first = carried_merge(e, loop, "loop"), begin = carried_merge(e, loop, "part");
    Merge inner = carried_merge(e, loop, "inner"), after = carried_merge(e, loop, "after");
    merge_from(e, &first, loop->inst);
    merge_enter(e, &first);
    emit_condition(e, loop, &first);
    merge_values(e, &begin, first.phis);
    merge_enter(e, &begin);
    Part part = find_part(e, loop, &begin);
    merge_values(e, &inner, begin.phis);
    merge_enter(e, &inner);
    emit_body(e, loop, &inner, &after);
    merge_enter(e, &after);
    LLVMBasicBlockRef again = emit_block(e, "round"), look = emit_block(e, "look");
    LLVMBuildCondBr(e->builder, is_within(e, &part, after.phis[part.test.index]), again, look);
    LLVMPositionBuilderAtEnd(e->builder, again);
    merge_values(e, &inner, after.phis);
    steer_loop(e, loop);
    LLVMPositionBuilderAtEnd(e->builder, look);
    emit_stop_test(e);
    emit_condition(e, loop, &after);
    merge_values(e, &begin, after.phis);
}

/* So many rounds follow each other, the first of which looks, if any does. */
static void emit_in_a_row(Emitter *e, EmittedLoop *loop, int rounds) {
    Merge *headers = arena_array(&e->arena, Merge, rounds);
    for (int i = 0; i < rounds; i++) headers[i] = carried_merge(e, loop, "loop");
    merge_from(e, &headers[0], loop->inst);
    for (int i = 0; i < rounds; i++) {
        merge_enter(e, &headers[i]);
        emit_condition(e, loop, &headers[i]);
        if (loop->looks && i == 0) emit_stop_test(e);
        emit_body(e, loop, &headers[i], &headers[(i + 1) % rounds]);
    }
    steer_loop(e, loop);
}

/* Tested before it, and at its end. LLVM makes this of most loops, but the time that it takes grows with the
 * square of those that follow one another. */
static void emit_tested_twice(Emitter *e, EmittedLoop *loop) {
    Merge first = carried_merge(e, loop, "loop"), inner = carried_merge(e, loop, "inner");
    Merge after = carried_merge(e, loop, "after");
    merge_from(e, &first, loop->inst);
    merge_enter(e, &first);
    emit_condition(e, loop, &first);
    merge_values(e, &inner, first.phis);
    merge_enter(e, &inner);
    if (loop->looks) emit_stop_test(e);
    emit_body(e, loop, &inner, &after);
    merge_enter(e, &after);
    emit_condition(e, loop, &after);
    merge_values(e, &inner, after.phis);
    steer_loop(e, loop);
}

static void emit_loop(Emitter *e, const Inst *inst) {
    const LoopLooks *looks = emit_looks(e) ? map_get(&e->reached.looks, PTR_KEY(inst)) : NULL;
    EmittedLoop loop = {.inst = inst, .looks = looks};
    loop.exit = merge_new(e, "endloop", inst->results, inst->nresults);
    if (looks && looks->step) emit_in_parts(e, &loop);
    else if (e->at->info && e->at->info->is_large) emit_tested_twice(e, &loop);
    else emit_in_a_row(e, &loop, looks ? (int)looks->rounds : 1);
    merge_enter(e, &loop.exit);
    set_values(e, inst->results, inst->nresults, &loop.exit);
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
    for (int i = 0; i < inst->nargs && frame->yielded; i++) frame->yielded[i] = emit_use(e, inst, i);
    if (frame->yielded) return;
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
