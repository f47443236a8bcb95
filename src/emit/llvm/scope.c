/* Buffers that do not overlap, as LLVM is told: each access in a nest of loops that was found to have such
 * buffers (opt/apart.c) is in the scope of its buffer, and in none of the others'. Scopes are declared where
 * the function begins: where it has become part of a loop, those of one round say nothing about the next,
 * which may have other buffers. */
#include "emit/llvm/llvm.h"

static void declare(Emitter *e, LLVMMetadataRef scope) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(e->builder);
    LLVMPositionBuilderBefore(e->builder, LLVMGetBasicBlockTerminator(e->at->entry));
    LLVMMetadataRef list = LLVMMDNodeInContext2(e->context, &scope, 1);
    LLVMValueRef arg = LLVMMetadataAsValue(e->context, list);
    emit_intrinsic(e, "llvm.experimental.noalias.scope.decl", NULL, 0, &arg, 1);
    LLVMPositionBuilderAtEnd(e->builder, here);
    LLVMSetCurrentDebugLocation2(e->builder, place);
}

static LLVMMetadataRef *scopes_of(Emitter *e, ApartMark apart) {
    LLVMMetadataRef *scopes = map_get(&e->at->scopes, apart.nest);
    if (scopes) return scopes;
    LLVMMetadataRef domain = emit_own_node(e, NULL, 0);
    scopes = arena_array(&e->arena, LLVMMetadataRef, apart.count);
    for (int i = 0; i < apart.count; i++) declare(e, scopes[i] = emit_own_node(e, &domain, 1));
    map_put(&e->arena, &e->at->scopes, apart.nest, scopes);
    return scopes;
}

static void set_list(Emitter *e, LLVMValueRef access, unsigned kind, LLVMMetadataRef *scopes, int count) {
    LLVMMetadataRef list = LLVMMDNodeInContext2(e->context, scopes, (size_t)count);
    LLVMSetMetadata(access, kind, LLVMMetadataAsValue(e->context, list));
}

void emit_tag_at(Emitter *e, LLVMValueRef access, const Value *address) {
    ApartMark apart = address->apart;
    emit_tag(e, access, address->space);
    if (apart.nest == 0 || e->device || !LLVMIsAInstruction(access)) return;
    LLVMMetadataRef *scopes = scopes_of(e, apart), others[UINT8_MAX];
    int own = apart.which - 1, count = 0;
    for (int i = 0; i < apart.count; i++)
        if (i != own) others[count++] = scopes[i];
    set_list(e, access, e->scope_kind, &scopes[own], 1);
    set_list(e, access, e->apart_kind, others, count);
}
