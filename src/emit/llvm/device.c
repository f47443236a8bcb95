/* Code for a GPU: what differs from that for a CPU. LLVM's NVPTX makes PTX of it, which NVIDIA's driver, or
 * its assembler, translates.
 *
 * A kernel is a function that every thread runs. It makes the context that all functions take, in the
 * thread's own memory, of which the optimiser leaves what is needed: static variables, room for what is
 * written out of range, the thread's tapes. Who a thread is, it asks the machine. What functions of the
 * runtime do for a CPU is done by those of device.ll, which becomes a part of the module; elementary
 * functions are those of libdevice, likewise.
 *
 * Pointers are generic. What is known to be in global, shared or constant memory is made from such an
 * address, and LLVM follows it to where it is used. Names and kernels' parameters are those of CUDA C++
 * (emit/clike/cuda.c), so that the runtime launches either: uniforms are in constant memory, if they fit, in
 * scalar layout; records are passed by value, arrays by their address. */
#include "emit/llvm/llvm.h"

enum { GLOBAL_MEMORY = 1, SHARED_MEMORY = 3, CONSTANT_MEMORY = 4 }; /* as LLVM numbers them */
enum { MOST_CONSTANT = 32 * 1024, MOST_LOCAL = 512 * 1024 };        /* bytes */
enum { KERNEL_CONVENTION = 71, WAVE_LANES = 32 };

const char device_host[] = "_ZN5slope10slope_hostE";

static void tell(const Emitter *e, EmitSymbol what, const char *name, const char *symbol) {
    if (e->device->found) e->device->found(e->device->user, what, name, symbol);
}

/* ---- memory */

/* LLVM follows the result to where it is used, and sees that it leads to global memory. (A cast there and
 * back again it would drop.) */
LLVMValueRef emit_in_global(Emitter *e, LLVMValueRef data, LLVMTypeRef unit, LLVMValueRef index) {
    LLVMTypeRef type = LLVMPointerTypeInContext(e->context, GLOBAL_MEMORY);
    LLVMValueRef there =
        LLVMBuildIntToPtr(e->builder, LLVMBuildPtrToInt(e->builder, data, e->i64, ""), type, "");
    there = LLVMBuildInBoundsGEP2(e->builder, unit, there, &index, 1, "");
    return LLVMBuildAddrSpaceCast(e->builder, there, e->ptr, "");
}

static unsigned uniform_space(const Emitter *e) {
    int64_t size = 0;
    for (int i = 0; i < e->global_order.count; i++) {
        const Global *global = e->global_order.at[i]->global;
        if (global->kind == GLOBAL_uniform) size += type_layout(global->type, LAYOUT_scalar).stride + 16;
    }
    return size < MOST_CONSTANT ? CONSTANT_MEMORY : GLOBAL_MEMORY;
}

static LLVMValueRef new_global(Emitter *e, LLVMTypeRef type, const char *name, unsigned space) {
    LLVMValueRef global = LLVMAddGlobalInAddressSpace(e->llvm, type, name, space);
    LLVMSetAlignment(global, 16);
    return global;
}

LLVMValueRef emit_device_global(Emitter *e, const Global *global, LLVMTypeRef type) {
    if (global->kind != GLOBAL_uniform) return new_global(e, type, global->name->text, GLOBAL_MEMORY);
    const char *name = emit_c_name(&e->arena, global->name->text);
    const char *symbol = format_text(&e->arena, "_ZN5slope%d%sE", (int)strlen(name), name);
    tell(e, EMIT_uniform, global->name->text, symbol);
    LLVMValueRef memory = new_global(e, type, symbol, uniform_space(e));
    LLVMSetExternallyInitialized(memory, true);
    return memory;
}

static int64_t shared_words(const Emitter *e) { return (e->reached.shared_size + 3) / 4; }

static LLVMValueRef shared_block(Emitter *e) {
    static const char name[] = "slope_shared";
    LLVMValueRef block = LLVMGetNamedGlobal(e->llvm, name);
    if (block) return block;
    block = new_global(e, LLVMArrayType2(e->i32, (uint64_t)shared_words(e)), name, SHARED_MEMORY);
    LLVMSetInitializer(block, LLVMGetUndef(LLVMGlobalGetValueType(block)));
    LLVMSetLinkage(block, LLVMInternalLinkage);
    return block;
}

LLVMValueRef emit_device_shared(Emitter *e, int64_t offset) {
    return emit_at(e, LLVMConstAddrSpaceCast(shared_block(e), e->ptr), offset);
}

void emit_device_variable(Emitter *e, const Type *type) {
    int64_t size = type_layout(type, LAYOUT_scalar).size;
    if (size > MOST_LOCAL)
        emit_fail(e, "this target has no variables of %lld bytes: a thread has %d", (long long)size,
                  MOST_LOCAL);
}

/* ---- which thread it is */

static LLVMValueRef special(Emitter *e, const char *what, int axis) {
    const char *name = format_text(&e->arena, "llvm.nvvm.read.ptx.sreg.%s.%c", what, "xyz"[axis]);
    return emit_intrinsic(e, name, NULL, 0, NULL, 0);
}

static LLVMValueRef of_dispatch(Emitter *e, int axis) {
    LLVMValueRef before = LLVMBuildMul(e->builder, special(e, "ctaid", axis), special(e, "ntid", axis), "");
    return LLVMBuildAdd(e->builder, before, special(e, "tid", axis), "");
}

static LLVMValueRef local_index(Emitter *e) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef row = LLVMBuildMul(b, special(e, "tid", 2), special(e, "ntid", 1), "");
    row = LLVMBuildAdd(b, row, special(e, "tid", 1), "");
    return LLVMBuildAdd(b, LLVMBuildMul(b, row, special(e, "ntid", 0), ""), special(e, "tid", 0), "");
}

LLVMValueRef emit_device_id(Emitter *e, const Inst *inst) {
    static const char *const names[] = {NULL, "ctaid", "tid", NULL, "ntid", "nctaid"};
    if (inst->index == 3) return local_index(e);
    if (inst->index == 6) return emit_i32(e, WAVE_LANES);
    LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(e->i32, 3));
    for (int axis = 0; axis < 3; axis++) {
        LLVMValueRef part = inst->index == 0 ? of_dispatch(e, axis) : special(e, names[inst->index], axis);
        vector = LLVMBuildInsertElement(e->builder, vector, part, emit_i32(e, axis), "");
    }
    return vector;
}

void emit_device_barrier(Emitter *e, bool waits) {
    emit_intrinsic(e, waits ? "llvm.nvvm.barrier0" : "llvm.nvvm.membar.gl", NULL, 0, NULL, 0);
}

/* ---- what the runtime is told */

/* A variable that is there says something of the code. */
static void mark(Emitter *e, const char *name) {
    if (LLVMGetNamedGlobal(e->llvm, name)) return;
    LLVMSetInitializer(LLVMAddGlobalInAddressSpace(e->llvm, e->i32, name, GLOBAL_MEMORY), emit_i32(e, 1));
}

LLVMValueRef emit_device_stop(Emitter *e) {
    LLVMValueRef host = LLVMGetNamedGlobal(e->llvm, device_host);
    if (!host) host = LLVMAddGlobalInAddressSpace(e->llvm, e->i32, device_host, GLOBAL_MEMORY);
    return host; /* which begins with the flag */
}

void emit_device_print(Emitter *e) {
    if (!e->device->hosted)
        emit_fail(e, "this target has no printf in files that others launch; -target ptx-nvrtc has");
    mark(e, "slope_again");
}

/* ---- functions of the module's own */

DeviceHelper emit_device_helper(Emitter *e, const char *name, LLVMTypeRef *types, int count) {
    DeviceHelper helper = {.function = LLVMGetNamedFunction(e->llvm, name)};
    if (helper.function) return helper;
    helper.function =
        LLVMAddFunction(e->llvm, name, LLVMFunctionType(e->void_type, types, count_of(count), false));
    helper.from = LLVMGetInsertBlock(e->builder);
    helper.place = LLVMGetCurrentDebugLocation2(e->builder);
    emit_attribute(e, helper.function, of_function, "nounwind", 0);
    emit_attribute(e, helper.function, of_function, "convergent", 0);
    LLVMSetLinkage(helper.function, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, helper.function, ""));
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    return helper;
}

void emit_device_helper_end(Emitter *e, const DeviceHelper *helper) {
    LLVMPositionBuilderAtEnd(e->builder, helper->from);
    LLVMSetCurrentDebugLocation2(e->builder, helper->place);
}

/* ---- atomic operations */

static bool is_own(Space space) {
    return space == SPACE_local || space == SPACE_static || space == SPACE_tape;
}

/* What the thread alone can reach has no atomic operations. i1: it is that; NULL: never. */
LLVMValueRef emit_device_is_own(Emitter *e, Value address) {
    if (is_own((Space)address.space)) return LLVMConstInt(e->i1, 1, false);
    if (address.space != SPACE_any) return NULL;
    return emit_intrinsic(e, "llvm.nvvm.isspacep.local", NULL, 0, &address.value, 1);
}

void emit_device_atomic(Emitter *e, const Type *type) {
    const int least = 32;
    if (type->kind == TYPE_half || type_bits(type) < least)
        emit_fail(e, "this target has no atomic operations on %s", type_text(&e->arena, type));
}

/* ---- elements that a group copies when it begins (opt/copies.c) */

static LLVMValueRef copy_memory(Emitter *e, const Func *func, int index) {
    const GroupCopy *copy = &func->copies[index];
    int64_t words = copy->elements * (type_layout(copy->owner->type->args[0], LAYOUT_scalar).stride / 4);
    const char *name = format_text(&e->arena, "slope_copy_%s_%d", func->name->text, index);
    LLVMValueRef memory = LLVMGetNamedGlobal(e->llvm, name);
    if (memory) return memory;
    memory = new_global(e, LLVMArrayType2(e->i32, (uint64_t)words), name, SHARED_MEMORY);
    LLVMSetInitializer(memory, LLVMGetUndef(LLVMGlobalGetValueType(memory)));
    LLVMSetLinkage(memory, LLVMInternalLinkage);
    return memory;
}

LLVMValueRef emit_device_copy(Emitter *e, const Inst *access) {
    const Func *func = e->at->info->func;
    if (!inst_has(access, INST_COPIED)) return NULL;
    const Global *owner = ir_owner(ir_resolve(access->args[0]));
    for (int i = 0; i < func->ncopies; i++)
        if (func->copies[i].owner == owner) return LLVMConstAddrSpaceCast(copy_memory(e, func, i), e->ptr);
    return NULL;
}

/* Sums begin with a barrier. */
static void make_copies(Emitter *e, const Func *func) {
    LLVMTypeRef types[] = {LLVMPointerTypeInContext(e->context, SHARED_MEMORY), e->i32, e->i32, e->ptr,
                           e->i64};
    for (int i = 0; i < func->ncopies; i++) {
        const GroupCopy *copy = &func->copies[i];
        Value memory = emit_plain_value(emit_global_info(e, copy->owner)->memory);
        memory.space = SPACE_uniform;
        LLVMValueRef buffer = emit_load(e, copy->owner->type, memory);
        int64_t each = type_layout(copy->owner->type->args[0], LAYOUT_scalar).stride / 4;
        LLVMValueRef args[] = {copy_memory(e, func, i), emit_i32(e, copy->elements), emit_i32(e, each),
                               LLVMBuildExtractValue(e->builder, buffer, 0, ""),
                               LLVMBuildExtractValue(e->builder, buffer, 1, "")};
        emit_call_external(
            e, emit_external(e, "rt_copy_elements", e->void_type, types, 5, "nounwind convergent"), args, 5);
    }
    if (func->ncopies && !e->sums.any) emit_device_barrier(e, true);
}

/* ---- kernels */

static bool has_growing_tapes(const Emitter *e) {
    for (int i = 0; i < e->reached.tapes.count; i++) {
        const TapeRoom *room = e->reached.tapes.entries[i].value;
        if (!room->is_local) return true;
    }
    return false;
}

static LLVMValueRef make_thread(Emitter *e) {
    LLVMValueRef thread = emit_alloca(e, sizeof(RtDeviceThread), _Alignof(RtDeviceThread));
    emit_zero(e, thread, offsetof(RtDeviceThread, room), _Alignof(RtDeviceThread));
    mark(e, "slope_again");
    return thread;
}

static void clear_shared(Emitter *e) {
    LLVMTypeRef types[] = {LLVMPointerTypeInContext(e->context, SHARED_MEMORY), e->i32};
    LLVMValueRef args[] = {shared_block(e), emit_i32(e, shared_words(e))};
    emit_call_external(e, emit_external(e, "rt_clear", e->void_type, types, 2, "nounwind convergent"), args,
                       2);
}

/* Everything that `needs` says; the context. */
static LLVMValueRef begin_thread(Emitter *e, FuncState *state, uint32_t needs, LLVMValueRef *thread) {
    LLVMValueRef context = emit_make_context(e, needs & ~(uint32_t)NEEDS_SHARED, NULL);
    state->context = context;
    *thread = (needs & NEEDS_RUNTIME) && has_growing_tapes(e) ? make_thread(e) : NULL;
    if (*thread) emit_context_store(e, context, *thread, offsetof(RtContext, owner));
    if (needs & NEEDS_SHARED) clear_shared(e);
    emit_start_thread(e, needs, context);
    return context;
}

static void end_thread(Emitter *e, LLVMValueRef thread) {
    if (thread)
        emit_call_external(
            e, emit_external(e, "rt_tape_end", e->void_type, &e->ptr, 1, "nounwind convergent"), &thread, 1);
    LLVMBuildRetVoid(e->builder);
}

static void annotate(Emitter *e, LLVMValueRef function, const char *what, int value) {
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(function),
                               LLVMMDStringInContext2(e->context, what, strlen(what)),
                               LLVMValueAsMetadata(emit_i32(e, value))};
    LLVMAddNamedMetadataOperand(e->llvm, "nvvm.annotations",
                                LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, parts, 3)));
}

static LLVMValueRef new_kernel(Emitter *e, const char *name, LLVMTypeRef *types, int count, const int *size) {
    static const char *const limits[] = {"maxntidx", "maxntidy", "maxntidz"};
    LLVMValueRef function =
        LLVMAddFunction(e->llvm, name, LLVMFunctionType(e->void_type, types, count_of(count), false));
    LLVMSetFunctionCallConv(function, KERNEL_CONVENTION);
    emit_attribute(e, function, of_function, "nounwind", 0);
    emit_attribute(e, function, of_function, "convergent", 0);
    annotate(e, function, "kernel", 1);
    for (int axis = 0; axis < 3; axis++) annotate(e, function, limits[axis], size[axis] > 0 ? size[axis] : 1);
    return function;
}

static bool is_array(const Param *param) {
    return (param->flags & PARAM_BY_ADDRESS) && param->type->kind == TYPE_array;
}

static bool is_direct(const Param *param) {
    if (param->flags & PARAM_BY_ADDRESS) return is_array(param);
    return type_is_scalar(param->type) || param->type->kind == TYPE_pointer;
}

static LLVMTypeRef param_type(Emitter *e, const Param *param) {
    return is_direct(param) && !is_array(param) ? emit_memory_type(e, param->type) : e->ptr;
}

/* What is not a scalar lies among the kernel's parameters as it does in memory. */
static void pass_by_value(Emitter *e, LLVMValueRef function, unsigned index, const Type *type) {
    static const char name[] = "byval";
    Layout layout = type_layout(type, LAYOUT_scalar);
    LLVMTypeRef bytes = LLVMArrayType2(e->i8, (uint64_t)(layout.stride > 0 ? layout.stride : 1));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateTypeAttribute(e->context, kind, bytes));
    emit_attribute(e, function, index, "align", (uint64_t)layout.align);
}

static LLVMValueRef take_param(Emitter *e, const Param *param, LLVMValueRef value) {
    if (is_array(param) || (param->flags & PARAM_BY_ADDRESS)) return value;
    if (!is_direct(param)) return emit_load(e, param->type, emit_plain_value(value));
    if (param->type->kind != TYPE_bool) return value;
    return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

void emit_device_kernel(Emitter *e, FuncInfo *info) {
    const Func *func = info->func;
    const char *name = emit_symbol_name(e, func->name->text, "");
    LLVMTypeRef *types = arena_array(&e->arena, LLVMTypeRef, func->nparams + 1);
    LLVMValueRef *values = arena_array(&e->arena, LLVMValueRef, func->nparams + 1), thread;
    for (int i = 0; i < func->nparams; i++) types[i] = param_type(e, &func->params[i]);
    LLVMValueRef kernel = new_kernel(e, name, types, func->nparams, func->group_size);
    for (int i = 0; i < func->nparams; i++)
        if (!is_direct(&func->params[i])) pass_by_value(e, kernel, count_of(i + 1), func->params[i].type);
    FuncState state;
    emit_begin(e, &state, kernel);
    LLVMValueRef context = begin_thread(e, &state, info->reached->needs, &thread);
    for (int i = 0; i < func->nparams; i++)
        values[i + 1] = take_param(e, &func->params[i], LLVMGetParam(kernel, count_of(i)));
    make_copies(e, func);
    emit_device_sums_begin(e);
    emit_call_loaded(e, info, context, values);
    emit_device_sums_end(e);
    end_thread(e, thread);
    tell(e, EMIT_kernel, func->name->text, name);
    if (info->reached->needs & NEEDS_STACK) mark(e, "slope_recursive");
}

void emit_device_init(Emitter *e) {
    static const char name[] = "slope_init_kernel";
    static const int one[3] = {1, 1, 1};
    bool any = false;
    LLVMValueRef thread;
    uint32_t needs = emit_needs_of_init(e, &any);
    if (!any) return;
    FuncState state;
    emit_begin(e, &state, new_kernel(e, name, NULL, 0, one));
    emit_run_inits(e, begin_thread(e, &state, needs, &thread));
    end_thread(e, thread);
    tell(e, EMIT_kernel, "", name);
}
