/* Elements that the threads of a warp write together (emit/whole.c), for a GPU: they are put together in a
 * variable of the thread; a function that is made for each size of them takes them through memory of the
 * group, so that each store of a warp is a whole line. */
#include "emit/llvm/llvm.h"

enum { GLOBAL_MEMORY = 1, SHARED_MEMORY = 3, LANES = 32 }; /* memory as LLVM numbers it */
enum { DATA, COUNT, INDEX, ELEMENT, SHARED };              /* the function's parameters */

typedef struct Put {
    Emitter *e;
    LLVMValueRef function, lane, index, in_range; /* the index as i64 */
    const Type *index_type;
    int words;
} Put;

static LLVMValueRef param(const Put *p, int index) { return LLVMGetParam(p->function, count_of(index)); }

static LLVMBasicBlockRef new_block(const Put *p) {
    return LLVMAppendBasicBlockInContext(p->e->context, p->function, "");
}

static LLVMValueRef call_i32(const Put *p, const char *name) {
    LLVMValueRef function = emit_external(p->e, name, p->e->i32, NULL, 0, "nounwind convergent");
    return emit_call_external(p->e, function, NULL, 0);
}

static LLVMValueRef word_at(const Put *p, LLVMValueRef memory, LLVMValueRef index) {
    return LLVMBuildInBoundsGEP2(p->e->builder, p->e->i32, memory, &index, 1, "");
}

static LLVMValueRef element_word(const Put *p, int k) {
    LLVMValueRef word =
        LLVMBuildLoad2(p->e->builder, p->e->i32, word_at(p, param(p, ELEMENT), emit_i32(p->e, k)), "");
    LLVMSetAlignment(word, 4);
    return word;
}

static void store_word(const Put *p, LLVMValueRef memory, LLVMValueRef index, LLVMValueRef word) {
    LLVMSetAlignment(LLVMBuildStore(p->e->builder, word, word_at(p, memory, index)), 4);
}

/* Where the elements from that one on are. */
static LLVMValueRef elements(const Put *p, LLVMValueRef index) {
    LLVMBuilderRef b = p->e->builder;
    LLVMValueRef data = LLVMBuildPtrToInt(b, param(p, DATA), p->e->i64, "");
    LLVMValueRef bytes = LLVMBuildMul(b, index, emit_i64(p->e, 4 * p->words), "");
    return LLVMBuildIntToPtr(b, LLVMBuildAdd(b, data, bytes, ""),
                             LLVMPointerTypeInContext(p->e->context, GLOBAL_MEMORY), "");
}

/* Has each lane the element after that of the lane before? */
static LLVMValueRef are_together(const Put *p) {
    LLVMBuilderRef b = p->e->builder;
    LLVMTypeRef types[] = {p->e->i32, p->e->i64, p->e->i32};
    LLVMValueRef args[] = {emit_i32(p->e, -1), p->index, emit_i32(p->e, 0)};
    LLVMValueRef shuffle = emit_external(p->e, "slope_shuffle", p->e->i64, types, 3, "nounwind convergent");
    LLVMValueRef first = emit_call_external(p->e, shuffle, args, 3);
    LLVMValueRef expected = LLVMBuildAdd(b, first, LLVMBuildZExt(b, p->lane, p->e->i64, ""), "");
    LLVMValueRef follows = LLVMBuildICmp(b, LLVMIntEQ, p->index, expected, "");
    LLVMValueRef votes[] = {emit_i32(p->e, -1), LLVMBuildAnd(b, follows, p->in_range, "")};
    return emit_intrinsic(p->e, "llvm.nvvm.vote.all.sync", NULL, 0, votes, 2);
}

static void wait_for_warp(const Put *p) {
    LLVMValueRef all = emit_i32(p->e, -1);
    emit_intrinsic(p->e, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
}

/* Rows of an odd number of words, so that lanes have different banks of the memory. */
static void put_together(const Put *p) {
    LLVMBuilderRef b = p->e->builder;
    const int stride = p->words | 1;
    LLVMValueRef warp = LLVMBuildUDiv(b, call_i32(p, "slope_local_index"), emit_i32(p->e, LANES), "");
    LLVMValueRef own =
        word_at(p, param(p, SHARED), LLVMBuildMul(b, warp, emit_i32(p->e, LANES * stride), ""));
    LLVMValueRef row = LLVMBuildMul(b, p->lane, emit_i32(p->e, stride), "");
    LLVMValueRef words = emit_i32(p->e, p->words), lane = LLVMBuildZExt(b, p->lane, p->e->i64, "");
    LLVMValueRef to = elements(p, LLVMBuildSub(b, p->index, lane, ""));
    for (int k = 0; k < p->words; k++)
        store_word(p, own, LLVMBuildAdd(b, row, emit_i32(p->e, k), ""), element_word(p, k));
    wait_for_warp(p);
    for (int k = 0; k < p->words; k++) {
        LLVMValueRef at = LLVMBuildAdd(b, p->lane, emit_i32(p->e, LANES * k), ""), from = at;
        if (stride != p->words) {
            LLVMValueRef before =
                LLVMBuildMul(b, LLVMBuildUDiv(b, at, words, ""), emit_i32(p->e, stride), "");
            from = LLVMBuildAdd(b, before, LLVMBuildURem(b, at, words, ""), "");
        }
        store_word(p, to, at, LLVMBuildLoad2(b, p->e->i32, word_at(p, own, from), ""));
    }
    wait_for_warp(p); /* before the next element comes */
    LLVMBuildRetVoid(b);
}

static void put_alone(const Put *p) {
    LLVMBuilderRef b = p->e->builder;
    LLVMBasicBlockRef inside = new_block(p), end = new_block(p);
    LLVMBuildCondBr(b, p->in_range, inside, end);
    LLVMPositionBuilderAtEnd(b, inside);
    LLVMValueRef to = elements(p, p->index);
    for (int k = 0; k < p->words; k++) store_word(p, to, emit_i32(p->e, k), element_word(p, k));
    LLVMBuildBr(b, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
}

static void build_put(Put *p) {
    LLVMBuilderRef b = p->e->builder;
    LLVMBasicBlockRef whole = new_block(p), together = new_block(p), apart = new_block(p);
    p->lane = emit_intrinsic(p->e, "llvm.nvvm.read.ptx.sreg.laneid", NULL, 0, NULL, 0);
    p->index = emit_index(p->e, param(p, INDEX), p->index_type, -1);
    p->in_range = LLVMBuildICmp(b, LLVMIntULT, p->index, param(p, COUNT), "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, call_i32(p, "slope_active"), emit_i32(p->e, -1), ""),
                    whole, apart);
    LLVMPositionBuilderAtEnd(b, whole);
    LLVMBuildCondBr(b, are_together(p), together, apart);
    LLVMPositionBuilderAtEnd(b, together);
    put_together(p);
    LLVMPositionBuilderAtEnd(b, apart);
    put_alone(p);
}

/* It is a part of where it is called, so that the variable is in registers. */
static LLVMValueRef put_function(Emitter *e, int words, const Type *index, LLVMTypeRef index_type) {
    LLVMTypeRef types[] = {e->ptr, e->i64, index_type, e->ptr,
                           LLVMPointerTypeInContext(e->context, SHARED_MEMORY)};
    const char *name = format_text(&e->arena, "slope_put_%d_%s", words, type_text(&e->arena, index));
    DeviceHelper helper = emit_device_helper(e, name, types, SHARED + 1);
    if (!helper.from) return helper.function;
    Put put = {.e = e, .function = helper.function, .index_type = index, .words = words};
    emit_attribute(e, put.function, of_function, "alwaysinline", 0);
    build_put(&put);
    emit_device_helper_end(e, &helper);
    return helper.function;
}

/* Kernels with as many threads share it, one after the other. */
static LLVMValueRef shared_rows(Emitter *e, int words) {
    int warps = emit_warps(e->at->info->func);
    const char *name = format_text(&e->arena, "slope_rows_%d_%d", words, warps);
    LLVMValueRef known = LLVMGetNamedGlobal(e->llvm, name);
    if (known) return known;
    LLVMTypeRef type = LLVMArrayType2(e->i32, (uint64_t)warps * LANES * (uint64_t)(words | 1));
    LLVMValueRef rows = LLVMAddGlobalInAddressSpace(e->llvm, type, name, SHARED_MEMORY);
    LLVMSetAlignment(rows, 16);
    LLVMSetInitializer(rows, LLVMGetUndef(type));
    LLVMSetLinkage(rows, LLVMInternalLinkage);
    return rows;
}

Value emit_device_stored(Emitter *e, const Inst *store) {
    FuncState *at = e->at;
    WholeElement whole;
    bool begins =
        at->info->func->group_size[0] > 0 && !at->whole.access && emit_find_whole(store, &whole) &&
        emit_take_shared(&e->reached, &e->sums, &e->shared_taken, emit_whole_bytes(at->info->func, &whole));
    if (begins) {
        at->whole = whole;
        at->element = emit_alloca(e, (int64_t)whole.words * 4, 16);
    }
    if (!at->whole.access) return emit_operand(e, store, 0);
    return emit_plain_value(emit_at(e, at->element, emit_part_offset(store)));
}

void emit_device_end_stored(Emitter *e, const Inst *store) {
    FuncState *at = e->at;
    const Inst *access = at->whole.access;
    if (!access || at->whole.last != store) return;
    LLVMValueRef buffer = emit_use(e, access, 0), args[SHARED + 1];
    bool is_checked = !inst_has(access, INST_UNCHECKED) && !e->options->unchecked;
    args[DATA] = LLVMBuildExtractValue(e->builder, buffer, 0, "");
    args[COUNT] = is_checked ? LLVMBuildExtractValue(e->builder, buffer, 1, "") : emit_i64(e, INT64_MAX);
    args[INDEX] = emit_use(e, access, 1);
    args[ELEMENT] = at->element;
    args[SHARED] = shared_rows(e, at->whole.words);
    LLVMValueRef put = put_function(e, at->whole.words, access->args[1]->type, LLVMTypeOf(args[INDEX]));
    emit_call_external(e, put, args, SHARED + 1);
    at->whole = (WholeElement){0};
}
