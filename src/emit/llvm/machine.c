/* The machine around the program: thread ids, barriers, printf, abort. */
#include "emit/llvm/llvm.h"

/* ---- the context */

LLVMValueRef emit_context_load(Emitter *e, LLVMValueRef context, LLVMTypeRef type, size_t offset) {
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, emit_at(e, context, (int64_t)offset), "");
    LLVMSetAlignment(load, type == e->ptr || type == e->i64 ? 8 : 4);
    emit_tag(e, load, SPACE_context);
    return load;
}

void emit_context_store(Emitter *e, LLVMValueRef context, LLVMValueRef value, size_t offset) {
    LLVMValueRef store = LLVMBuildStore(e->builder, value, emit_at(e, context, (int64_t)offset));
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMSetAlignment(store, type == e->ptr || type == e->i64 ? 8 : 4);
    emit_tag(e, store, SPACE_context);
}

static LLVMValueRef thread_id(Emitter *e, const Inst *inst) {
    if (e->device) return emit_device_id(e, inst);
    static const size_t offsets[] = {offsetof(RtContext, thread_id),  offsetof(RtContext, group_id),
                                     offsetof(RtContext, local_id),   offsetof(RtContext, local_index),
                                     offsetof(RtContext, group_size), offsetof(RtContext, groups),
                                     offsetof(RtContext, wave_size)};
    return emit_context_load(e, e->at->context, emit_type(e, inst->results[0]->type), offsets[inst->index]);
}

static void barrier(Emitter *e, const Inst *inst) {
    if (e->device) {
        emit_device_barrier(e, inst->index == 1);
        return;
    }
    if (inst->index != 1) {
        LLVMBuildFence(e->builder, LLVMAtomicOrderingSequentiallyConsistent, false, "");
        return;
    }
    LLVMValueRef function = emit_external(e, "rt_barrier", e->void_type, &e->ptr, 1, "nounwind");
    emit_call_external(e, function, &e->at->context, 1);
}

/* Every operation of the program is a place of its own where threads meet. */
static LLVMValueRef wave(Emitter *e, const Inst *inst) {
    const int lanes = e->device ? 32 : 1; /* that the table has room for */
    LLVMTypeRef types[] = {e->ptr, e->i64, e->i64, e->i64, e->i64, e->ptr};
    LLVMValueRef args[] = {e->at->context,       emit_i64(e, ++e->wave_sites),
                           emit_use(e, inst, 0), emit_use(e, inst, 1),
                           emit_use(e, inst, 2), emit_alloca(e, (2 + lanes) * 8, 8)};
    const char *properties = e->device ? "nounwind convergent" : "nounwind";
    return emit_call_external(e, emit_external(e, "rt_wave", e->ptr, types, 6, properties), args, 6);
}

/* ---- printf and abort */

static LLVMValueRef bytes_of(Emitter *e, const void *data, int length) {
    LLVMValueRef text = LLVMConstStringInContext2(e->context, data, (size_t)length, true);
    LLVMValueRef global = LLVMAddGlobal(e->llvm, LLVMTypeOf(text), "text");
    LLVMSetInitializer(global, text);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, true);
    LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
    return global;
}

static LLVMValueRef print_bits(Emitter *e, LLVMValueRef lane, const Type *element) {
    if (!type_is_float(element))
        return LLVMBuildIntCast2(e->builder, lane, e->i64, type_is_signed(element), "");
    if (element->kind != TYPE_double) lane = LLVMBuildFPExt(e->builder, lane, e->f64, "");
    return LLVMBuildBitCast(e->builder, lane, e->i64, "");
}

/* Pointers and the like print as numbers. */
static LLVMValueRef printable(Emitter *e, const Inst *inst, int index, const Type **type) {
    LLVMValueRef value = emit_use(e, inst, index);
    *type = inst->args[index]->type;
    if (type_is_scalar(*type) || (*type)->kind == TYPE_vector) return value;
    if ((*type)->kind == TYPE_buffer) value = LLVMBuildExtractValue(e->builder, value, 0, "");
    *type = type_basic(e->module->types, TYPE_uint64);
    return LLVMBuildPtrToInt(e->builder, value, e->i64, "");
}

static int store_lanes(Emitter *e, LLVMValueRef value, const Type *type, LLVMValueRef values, int first) {
    int count = type_count(type);
    for (int lane = 0; lane < count; lane++) {
        LLVMValueRef scalar = value;
        if (type->kind == TYPE_vector)
            scalar = LLVMBuildExtractElement(e->builder, value, emit_i32(e, lane), "");
        LLVMValueRef bits = print_bits(e, scalar, type_element(type));
        LLVMSetAlignment(LLVMBuildStore(e->builder, bits, emit_at(e, values, (first + lane) * 8)), 8);
    }
    return count;
}

static void print(Emitter *e, const Inst *inst) {
    if (e->device) emit_device_print(e);
    RtPrintArg *kinds = arena_array(&e->arena, RtPrintArg, inst->nargs + 1);
    LLVMValueRef values = emit_alloca(e, emit_print_args(inst, kinds) * 8, 8);
    int next = 0;
    for (int i = 0; i < inst->nargs; i++) {
        const Type *type;
        LLVMValueRef value = printable(e, inst, i, &type);
        next += store_lanes(e, value, type, values, next);
    }
    LLVMTypeRef types[] = {e->ptr, e->ptr, e->i64, e->ptr, e->i64, e->ptr};
    LLVMValueRef args[] = {e->at->context,
                           bytes_of(e, inst->text.at, inst->text.len),
                           emit_i64(e, inst->text.len),
                           bytes_of(e, kinds, inst->nargs * (int)sizeof *kinds),
                           emit_i64(e, inst->nargs),
                           values};
    emit_call_external(e, emit_external(e, "rt_print", e->void_type, types, 6, "nounwind"), args, 6);
}

/* A zero ends the text for those who count nothing. */
static void stop(Emitter *e, const Inst *inst) {
    const char *text = format_text(&e->arena, "%.*s", inst->text.len, inst->text.at);
    LLVMTypeRef types[] = {e->ptr, e->ptr, e->i64};
    LLVMValueRef args[] = {e->at->context, bytes_of(e, text, inst->text.len + 1),
                           emit_i64(e, inst->text.len)};
    emit_call_external(e, emit_external(e, "rt_abort", e->void_type, types, 3, "nounwind noreturn cold"),
                       args, 3);
    LLVMBuildUnreachable(e->builder);
    LLVMPositionBuilderAtEnd(e->builder, emit_block(e, "after"));
}

void emit_stack_test(Emitter *e, const Func *func) {
    LLVMValueRef level = emit_i32(e, 0);
    LLVMValueRef frame = emit_intrinsic(e, "llvm.frameaddress", &e->ptr, 1, &level, 1);
    LLVMValueRef limit = emit_context_load(e, e->at->context, e->ptr, offsetof(RtContext, stack_limit));
    Branch full = emit_unless_begin(e, LLVMBuildICmp(e->builder, LLVMIntUGE, frame, limit, ""));
    const char *name = func->name->text;
    int length = (int)strlen(name);
    LLVMTypeRef types[] = {e->ptr, e->ptr, e->i64};
    LLVMValueRef args[] = {e->at->context, bytes_of(e, name, length), emit_i64(e, length)};
    emit_call_external(e, emit_external(e, "rt_stack", e->void_type, types, 3, "nounwind cold"), args, 3);
    emit_branch_end(e, &full);
}

bool emit_looks(const Emitter *e) { return e->for_jit || (e->device && e->device->hosted); }

/* Nothing in the program aliases the flag, and volatile alone, unlike atomic, lets other memory be kept in
 * registers. */
void emit_stop_test(Emitter *e) {
    if (!emit_looks(e)) return;
    LLVMValueRef address = e->device
                               ? emit_device_stop(e)
                               : emit_context_load(e, e->at->context, e->ptr, offsetof(RtContext, stop));
    LLVMValueRef flag = LLVMBuildLoad2(e->builder, e->i32, address, "");
    LLVMSetAlignment(flag, 4);
    LLVMSetVolatile(flag, true);
    emit_tag(e, flag, SPACE_context);
    Branch told = emit_unless_begin(e, LLVMBuildICmp(e->builder, LLVMIntEQ, flag, emit_i32(e, 0), ""));
    LLVMValueRef thread = emit_context_load(e, e->at->context, e->ptr, offsetof(RtContext, owner));
    LLVMValueRef leave = emit_external(e, "rt_stop", e->void_type, &e->ptr, 1, "nounwind noreturn cold");
    emit_call_external(e, leave, &thread, 1);
    emit_branch_end(e, &told);
}

bool emit_machine(Emitter *e, const Inst *inst) {
    switch ((Op)inst->op) {
    case OP_thread_id: emit_result(e, inst, thread_id(e, inst)); return true;
    case OP_barrier: barrier(e, inst); return true;
    case OP_wave: emit_result(e, inst, wave(e, inst)); return true;
    case OP_printf: print(e, inst); return true;
    case OP_abort: stop(e, inst); return true;
    default: return false;
    }
}
