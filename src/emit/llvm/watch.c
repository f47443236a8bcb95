/* Indices out of range, told: where an access misses, the runtime counts it, by its place in the program. */
#include "emit/llvm/llvm.h"

/* An RtSite for each place. */
static LLVMValueRef site_of(Emitter *e, Loc loc) {
    LLVMValueRef site = map_get(&e->sites, (uint64_t)loc + 1);
    if (site) return site;
    LLVMTypeRef fields[] = {e->i64, e->i64, e->ptr};
    LLVMValueRef values[] = {emit_i64(e, loc), emit_i64(e, 0), LLVMConstNull(e->ptr)};
    site = LLVMAddGlobal(e->llvm, LLVMStructTypeInContext(e->context, fields, 3, false), "site");
    LLVMSetInitializer(site, LLVMConstStructInContext(e->context, values, 3, false));
    LLVMSetLinkage(site, LLVMInternalLinkage);
    LLVMSetAlignment(site, _Alignof(RtSite));
    map_put(&e->arena, &e->sites, (uint64_t)loc + 1, site);
    return site;
}

void emit_watch(Emitter *e, LLVMValueRef in_range) {
    if (!e->options->watch) return;
    Branch missed = emit_unless_begin(e, in_range);
    LLVMTypeRef types[] = {e->ptr, e->ptr};
    LLVMValueRef args[] = {e->at->context, site_of(e, e->at->here)};
    emit_call_external(e, emit_external(e, "rt_outside", e->void_type, types, 2, "nounwind cold"), args, 2);
    emit_branch_end(e, &missed);
}

void emit_watch_operands(Emitter *e, const Inst *inst) {
    e->at->here = inst->loc;
    if (!e->options->watch || inst->op == OP_field || inst->op == OP_elem) return; /* no access yet */
    for (int i = 0; i < inst->nargs; i++) {
        LLVMValueRef guard = emit_operand(e, inst, i).guard;
        if (guard) emit_watch(e, guard);
    }
}
