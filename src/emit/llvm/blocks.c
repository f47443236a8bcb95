/* Blocks with many accesses to memory are cut into several. LLVM compares each access in a block with
 * hundreds before it where it selects instructions and twice where it puts them in order: nests that were
 * written out, with 800 accesses by indices, took 2.7 s, and 0.7 s in parts. A part ends by a branch that is
 * always taken, which LLVM cannot know: it would join what follows one another. */
#include "emit/llvm/llvm.h"

enum { MANY_ACCESSES = 300, PART_ACCESSES = 100 };

typedef struct Cutter {
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMBasicBlockRef stop; /* nobody gets there */
} Cutter;

static bool is_access(LLVMValueRef inst) {
    LLVMOpcode op = LLVMGetInstructionOpcode(inst);
    return op == LLVMLoad || op == LLVMStore;
}

static LLVMBasicBlockRef stop_of(Cutter *c) {
    if (c->stop) return c->stop;
    c->stop = LLVMAppendBasicBlockInContext(c->context, c->function, "stop");
    LLVMPositionBuilderAtEnd(c->builder, c->stop);
    static const char name[] = "llvm.trap";
    LLVMModuleRef module = LLVMGetGlobalParent(c->function);
    LLVMValueRef trap =
        LLVMGetIntrinsicDeclaration(module, LLVMLookupIntrinsicID(name, sizeof name - 1), NULL, 0);
    LLVMBuildCall2(c->builder, LLVMGlobalGetValueType(trap), trap, NULL, 0, "");
    LLVMBuildUnreachable(c->builder);
    return c->stop;
}

/* 0, as nobody can tell. */
static LLVMValueRef hidden_zero(const Cutter *c) {
    LLVMTypeRef word = LLVMInt64TypeInContext(c->context), type = LLVMFunctionType(word, &word, 1, 0);
    static const char constraints[] = "=r,0";
    LLVMValueRef hide =
        LLVMGetInlineAsm(type, "", 0, constraints, sizeof constraints - 1, 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef zero = LLVMConstInt(word, 0, 0);
    return LLVMBuildCall2(c->builder, type, hide, &zero, 1, "");
}

/* Whoever goes to a block goes to another instead. What comes from it still does. */
static void lead_to(LLVMBasicBlockRef block, LLVMBasicBlockRef other) {
    for (LLVMUseRef use; (use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)));) {
        LLVMValueRef end = LLVMGetUser(use);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++)
            if (LLVMGetSuccessor(end, i) == block) LLVMSetSuccessor(end, i, other);
    }
}

/* What is in the block up to `last` becomes one of its own before it. */
static void cut_after(Cutter *c, LLVMBasicBlockRef block, LLVMValueRef last) {
    LLVMBasicBlockRef stop = stop_of(c), part = LLVMInsertBasicBlockInContext(c->context, block, "part");
    lead_to(block, part);
    LLVMPositionBuilderAtEnd(c->builder, part);
    for (LLVMValueRef inst = NULL; inst != last;) {
        inst = LLVMGetFirstInstruction(block);
        LLVMInstructionRemoveFromParent(inst);
        LLVMInsertIntoBuilder(c->builder, inst);
    }
    LLVMValueRef zero = hidden_zero(c);
    LLVMValueRef is_zero = LLVMBuildICmp(c->builder, LLVMIntEQ, zero, LLVMConstNull(LLVMTypeOf(zero)), "");
    LLVMBuildCondBr(c->builder, is_zero, block, stop);
}

static void cut(Cutter *c, LLVMBasicBlockRef block) {
    int accesses = 0, here = 0;
    for (LLVMValueRef inst = LLVMGetFirstInstruction(block); inst; inst = LLVMGetNextInstruction(inst))
        accesses += is_access(inst);
    if (accesses < MANY_ACCESSES) return;
    for (LLVMValueRef inst = LLVMGetFirstInstruction(block), next; inst; inst = next) {
        next = LLVMGetNextInstruction(inst);
        here += is_access(inst);
        if (here < PART_ACCESSES) continue;
        cut_after(c, block, inst);
        here = 0;
    }
}

void target_cut_blocks(LLVMModuleRef module) {
    LLVMContextRef context = LLVMGetModuleContext(module);
    Cutter c = {.context = context, .builder = LLVMCreateBuilderInContext(context)};
    for (c.function = LLVMGetFirstFunction(module); c.function;
         c.function = LLVMGetNextFunction(c.function), c.stop = NULL)
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(c.function); block;
             block = LLVMGetNextBasicBlock(block))
            cut(&c, block);
    LLVMDisposeBuilder(c.builder);
}
