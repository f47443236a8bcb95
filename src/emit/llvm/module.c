/* The module: declares what exported functions reach, has bodies and ways in emitted.
 *
 * Uniforms are writable memory that others can find by name. Constants with data are private; those with an
 * initialiser are filled by slope.init. Static and group-shared variables have an offset in a block that the
 * context points to. */
#include "emit/llvm/llvm.h"
#include <stdio.h>

void emit_fail(Emitter *e, const char *format, ...) {
    Text text = {.arena = &e->arena};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    e->trap_loc = e->at ? e->at->here : 0;
    trap_spring(&e->trap, TRAP_fault, text.at);
}

/* ---- names */

/* a.f and a_f are the same to C: the second is a_f_2, as in C's own source. */
static const char *name_for_c(Emitter *e, const char *name) {
    Names *names = e->module->names;
    const char *known = map_get(&e->symbols, PTR_KEY(name_from(names, name)));
    if (known) return known;
    const char *plain = emit_c_name(&e->arena, name), *found = plain;
    for (int i = 2; map_has(&e->taken, PTR_KEY(name_from(names, found))); i++)
        found = format_text(&e->arena, "%s_%d", plain, i);
    map_put(&e->arena, &e->taken, PTR_KEY(name_from(names, found)), e);
    map_put(&e->arena, &e->symbols, PTR_KEY(name_from(names, name)), (void *)(uintptr_t)found);
    return found;
}

/* The JIT finds things by their names in the IR; in files they have names that C can say. */
const char *emit_symbol_name(Emitter *e, const char *name, const char *suffix) {
    if (e->for_jit) return format_text(&e->arena, "slope.%s%s", name, suffix);
    name = name_for_c(e, name);
    return format_text(&e->arena, "%s%s", *suffix ? name : emit_outer_name(&e->arena, name), suffix);
}

static void note_defined(Emitter *e, const char *symbol) { vec_push(&e->arena, &e->defined, symbol); }

static bool is_defined(const Emitter *e, const char *symbol) {
    return e->is_defined && e->is_defined(e->user, symbol);
}

LLVMValueRef emit_runtime_slot(Emitter *e) {
    if (e->runtime_slot) return e->runtime_slot;
    LLVMValueRef slot = LLVMAddGlobal(e->llvm, e->ptr, "slope.runtime");
    if (!e->for_jit) {
        LLVMSetInitializer(slot, LLVMConstNull(e->ptr));
        LLVMSetLinkage(slot, LLVMInternalLinkage);
    }
    return e->runtime_slot = slot;
}

/* ---- what is reached */

FuncInfo *emit_func_info(const Emitter *e, const Func *func) {
    return reached_func(&e->reached, func)->emitted;
}

GlobalInfo *emit_global_info(const Emitter *e, const Global *global) {
    return reached_global(&e->reached, global)->emitted;
}

static void find_reached(Emitter *e) {
    e->reached = emit_reach(&e->arena, e->module, !e->device);
    if (e->reached.missing) emit_fail(e, "function '%s' has no body", e->reached.missing->name->text);
    if (e->device) e->sums = emit_waiting_sums(&e->reached, e->module);
    for (int i = 0; i < e->reached.funcs.count; i++) {
        FuncInfo *info = arena_new(&e->arena, FuncInfo);
        info->reached = e->reached.funcs.at[i];
        info->func = info->reached->func;
        info->reached->emitted = info;
        e->shared_taken += emit_copied_bytes(info->func);
        vec_push(&e->arena, &e->order, info);
    }
    for (int i = 0; i < e->reached.globals.count; i++) {
        GlobalInfo *info = arena_new(&e->arena, GlobalInfo);
        info->reached = e->reached.globals.at[i];
        info->global = info->reached->global;
        info->init = info->reached->init ? info->reached->init->emitted : NULL;
        info->reached->emitted = info;
        vec_push(&e->arena, &e->global_order, info);
    }
}

/* Before globals choose theirs, as in C's own source. */
static void name_functions(Emitter *e) {
    for (int i = 0; i < e->order.count; i++) {
        const Func *func = e->order.at[i]->func;
        if (func->flags & FUNC_EXPORT) emit_symbol_name(e, func->name->text, "");
    }
}

/* ---- globals */

static LLVMValueRef global_image(Emitter *e, const Global *global, int64_t size) {
    if (!global->data || global->ndata == 0) return LLVMConstNull(LLVMArrayType2(e->i8, (uint64_t)size));
    char *bytes = arena_take(&e->arena, (size_t)size);
    emit_fill_image(global, bytes);
    return LLVMConstStringInContext2(e->context, bytes, (size_t)size, true);
}

static void declare_memory(Emitter *e, GlobalInfo *info) {
    const Global *global = info->global;
    Layout layout = type_layout(global->type, LAYOUT_scalar);
    int64_t size = layout.stride > 0 ? layout.stride : 1;
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)size);
    bool is_uniform = global->kind == GLOBAL_uniform;
    const char *name = is_uniform ? emit_symbol_name(e, global->name->text, "") : global->name->text;
    LLVMValueRef memory =
        e->device ? emit_device_global(e, global, type) : LLVMAddGlobal(e->llvm, type, name);
    info->memory = e->device ? LLVMConstAddrSpaceCast(memory, e->ptr) : memory;
    LLVMSetAlignment(memory, (unsigned)(layout.align < 16 ? 16 : layout.align));
    if (is_uniform && is_defined(e, name)) return; /* the memory is in an earlier module */
    LLVMSetInitializer(memory, global_image(e, global, size));
    if (is_uniform) {
        note_defined(e, name);
        return;
    }
    LLVMSetLinkage(memory, LLVMInternalLinkage);
    LLVMSetGlobalConstant(memory, !info->init);
}

static void declare_globals(Emitter *e) {
    for (int i = 0; i < e->global_order.count; i++) {
        GlobalInfo *info = e->global_order.at[i];
        if (info->global->kind == GLOBAL_const || info->global->kind == GLOBAL_uniform)
            declare_memory(e, info);
    }
}

/* Loads out of range come from here; its size is known only now. */
static void settle_zero_object(Emitter *e) {
    if (!e->zero_object) return;
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)e->zero_size);
    LLVMValueRef object = LLVMAddGlobal(e->llvm, type, "zero");
    LLVMSetInitializer(object, LLVMConstNull(type));
    LLVMSetLinkage(object, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(object, true);
    LLVMSetAlignment(object, 64);
    LLVMReplaceAllUsesWith(e->zero_object, object);
    LLVMDeleteGlobal(e->zero_object);
}

static void emit_ways_in(Emitter *e, FuncInfo *info) {
    if (!(info->func->flags & FUNC_EXPORT)) return;
    bool is_kernel = info->func->group_size[0] > 0;
    const char *symbol = emit_symbol_name(e, info->func->name->text, is_kernel ? ".kernel" : ".call");
    if (is_defined(e, symbol)) return;
    note_defined(e, symbol);
    if (e->device && !is_kernel)
        emit_fail(e, "'%s' is not a kernel: this target has nobody who could call it",
                  info->func->name->text);
    if (e->device) emit_device_kernel(e, info);
    else if (is_kernel) emit_kernel(e, info);
    else emit_thunks(e, info);
}

void emit_module(Emitter *e) {
    emit_types_init(e);
    if (e->options->debug) emit_debug_init(e);
    find_reached(e);
    name_functions(e);
    declare_globals(e);
    if (e->device) emit_device_sums(e);
    for (int i = 0; i < e->order.count; i++) emit_func_declare(e, e->order.at[i]);
    for (int i = 0; i < e->order.count; i++) emit_func_body(e, e->order.at[i]);
    emit_debug_none(e);
    for (int i = 0; i < e->order.count; i++) emit_ways_in(e, e->order.at[i]);
    if (e->device) {
        emit_device_init(e);
    } else {
        emit_init(e);
        emit_close(e);
    }
    settle_zero_object(e);
    emit_lanes_keep(e);
    emit_debug_finish(e);
    if (e->device) emit_device_link(e);
}
