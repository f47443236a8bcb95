/* The module: finds what exported functions reach, declares it, has bodies and ways in emitted.
 *
 * Uniforms are writable memory that others can find by name. Constants with data are private; those with an initialiser are
 * filled by slope.init. Static and group-shared variables have an offset in a block that the context points to. */
#include "emit/llvm/llvm.h"
#include <stdio.h>

void emit_fail(Emitter *e, const char *format, ...) {
    Text text = {.arena = &e->arena};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    trap_spring(&e->trap, TRAP_fault, text.at);
}

/* ---- names */

/* What the C library, or LLVM on its behalf, gives a meaning to. */
static const char claimed_names[] =
    " abort abs acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf atanh atanhf bcmp "
    "calloc cbrt "
    "cbrtf ceil ceilf copysign copysignf cos cosf cosh coshf erf erff exit exp exp10 exp10f exp2 exp2f expf "
    "expm1 expm1f "
    "fabs fabsf fdim fdimf ffs floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf fprintf fputs free "
    "frexp frexpf "
    "fwrite hypot hypotf labs ldexp ldexpf log log10 log10f log1p log1pf log2 log2f logb logbf logf malloc "
    "memchr memcmp "
    "memcpy memmove memset modf modff nearbyint nearbyintf pow powf printf putchar puts read realloc "
    "remainder "
    "remainderf remquo rint rintf round roundeven roundevenf roundf scalbn sin sincos sincosf sinf sinh "
    "sinhf sprintf "
    "sqrt sqrtf strcmp strcpy strlen strncmp tan tanf tanh tanhf trunc truncf write ";

static bool is_claimed(Emitter *e, const char *name) {
    if (strchr(name, ' ')) return false;
    if (strncmp(name, "rt_", 3) == 0 || strncmp(name, "runtime_", 8) == 0) return true;
    return strstr(claimed_names, format_text(&e->arena, " %s ", name)) != NULL;
}

const char *emit_symbol_name(Emitter *e, const char *name, const char *suffix) {
    bool prefix = e->for_jit || (*suffix == '\0' && is_claimed(e, name));
    return format_text(&e->arena, "%s%s%s", prefix ? "slope." : "", name, suffix);
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

FuncInfo *emit_func_info(const Emitter *e, const Func *func) { return map_get(&e->funcs, PTR_KEY(func)); }

static FuncInfo *reach_func(Emitter *e, Func *func) {
    FuncInfo *info = emit_func_info(e, func);
    if (info) return info;
    if (!func->body) emit_fail(e, "function '%s' has no body", func->name->text);
    info = arena_new(&e->arena, FuncInfo);
    info->func = func;
    map_put(&e->arena, &e->funcs, PTR_KEY(func), info);
    vec_push(&e->arena, &e->order, info);
    return info;
}

static GlobalInfo *reach_global(Emitter *e, Global *global) {
    GlobalInfo *info = map_get(&e->globals, PTR_KEY(global));
    if (info) return info;
    info = arena_new(&e->arena, GlobalInfo);
    info->global = global;
    map_put(&e->arena, &e->globals, PTR_KEY(global), info);
    if (global->init && (global->kind == GLOBAL_const || global->kind == GLOBAL_static))
        info->init = reach_func(e, global->init);
    return info;
}

typedef struct Reach {
    Emitter *e;
    FuncInfo *from;
} Reach;

static void reach_from_global(Reach *reach, Global *global) {
    GlobalInfo *info = reach_global(reach->e, global);
    if (global->kind == GLOBAL_shared) reach->from->needs |= NEEDS_SHARED;
    if (global->kind != GLOBAL_static) return;
    reach->from->needs |= NEEDS_STATICS;
    if (info->init) vec_push(&reach->e->arena, &reach->from->callees, info->init);
}

static void reach_from_inst(void *user, Inst *inst) {
    Reach *reach = user;
    reach->from->size++;
    switch ((Op)inst->op) {
    case OP_call: {
        FuncInfo *callee = reach_func(reach->e, inst->callee);
        callee->calls++;
        vec_push(&reach->e->arena, &reach->from->callees, callee);
        break;
    }
    case OP_global: reach_from_global(reach, inst->global); break;
    case OP_buffer_elem:
    case OP_buffer_bytes:
    case OP_buffer_counter: reach->from->needs |= NEEDS_SINK; break;
    case OP_barrier:
        if (inst->index == 1) reach->from->needs |= NEEDS_FIBER;
        break;
    case OP_printf:
    case OP_abort:
    case OP_tape_open: reach->from->needs |= NEEDS_RUNTIME; break;
    default: break;
    }
}

static void spread_needs(Emitter *e) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = e->order.count - 1; i >= 0; i--) {
            FuncInfo *info = e->order.at[i];
            uint32_t needs = info->needs;
            for (int k = 0; k < info->callees.count; k++) needs |= info->callees.at[k]->needs;
            changed |= needs != info->needs;
            info->needs = needs;
        }
    }
}

static void find_reached(Emitter *e) {
    Module *module = e->module;
    for (int i = 0; i < module->funcs.count; i++) {
        Func *func = module->funcs.at[i];
        if ((func->flags & FUNC_EXPORT) && func->body) reach_func(e, func);
    }
    for (int i = 0; i < module->globals.count; i++)
        if (module->globals.at[i]->kind == GLOBAL_uniform) reach_global(e, module->globals.at[i]);
    for (int i = 0; i < e->order.count; i++) {
        Reach reach = {e, e->order.at[i]};
        region_walk(e->order.at[i]->func->body, reach_from_inst, &reach);
    }
    spread_needs(e);
    for (int i = 0; i < module->globals.count; i++) {
        GlobalInfo *info = map_get(&e->globals, PTR_KEY(module->globals.at[i]));
        if (info) vec_push(&e->arena, &e->global_order, info);
    }
}

/* ---- globals */

typedef struct Image {
    Val **data;
    int ndata, next;
    unsigned char *bytes;
    LayoutRules rules;
} Image;

static void put_scalar(Image *image, const Type *type, int64_t offset) {
    if (image->next >= image->ndata) return;
    const Val *v = image->data[image->next++];
    unsigned char *to = image->bytes + offset;
    float single = (float)v->real;
    uint16_t half;
    switch (type->kind) {
    case TYPE_double: memcpy(to, &v->real, 8); break;
    case TYPE_float: memcpy(to, &single, 4); break;
    case TYPE_half:
        half = half_from_double(v->real);
        memcpy(to, &half, 2);
        break;
    default: /* little-endian, as all hosts are */
        memcpy(to, &v->integer, type->kind == TYPE_bool ? 1 : (size_t)type_bits(type) / 8);
    }
}

static void put_object(Image *image, const Type *type, int64_t offset) {
    if (type_is_scalar(type)) {
        put_scalar(image, type, offset);
    } else if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t stride = type_element_stride(type, image->rules);
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++) put_object(image, type->args[0], offset + i * stride);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            put_object(image, type_record(type)->fields[i].type,
                       offset + type_field_offset(type, i, image->rules));
    } else {
        image->next++; /* pointers and buffers: null */
    }
}

static LLVMValueRef global_image(Emitter *e, const Global *global, int64_t size) {
    if (!global->data || global->ndata == 0) return LLVMConstNull(LLVMArrayType2(e->i8, (uint64_t)size));
    Image image = {global->data, global->ndata, 0, arena_take(&e->arena, (size_t)size),
                   (LayoutRules)global->layout};
    put_object(&image, global->type, 0);
    return LLVMConstStringInContext2(e->context, (const char *)image.bytes, (size_t)size, true);
}

static void declare_memory(Emitter *e, GlobalInfo *info) {
    const Global *global = info->global;
    Layout layout = type_layout(global->type, (LayoutRules)global->layout);
    int64_t size = layout.stride > 0 ? layout.stride : 1;
    bool is_uniform = global->kind == GLOBAL_uniform;
    const char *name = is_uniform ? emit_symbol_name(e, global->name->text, "") : global->name->text;
    info->memory = LLVMAddGlobal(e->llvm, LLVMArrayType2(e->i8, (uint64_t)size), name);
    LLVMSetAlignment(info->memory, (unsigned)(layout.align < 16 ? 16 : layout.align));
    if (is_uniform && is_defined(e, name)) return; /* the memory is in an earlier module */
    LLVMSetInitializer(info->memory, global_image(e, global, size));
    if (is_uniform) {
        note_defined(e, name);
        return;
    }
    LLVMSetLinkage(info->memory, LLVMInternalLinkage);
    LLVMSetGlobalConstant(info->memory, !info->init);
}

static int64_t place(int64_t *size, const Type *type) {
    Layout layout = type_layout(type, LAYOUT_scalar);
    int64_t offset = (*size + layout.align - 1) / layout.align * layout.align;
    *size = offset + layout.stride;
    return offset;
}

static void declare_globals(Emitter *e) {
    e->shared_align = 16;
    for (int i = 0; i < e->global_order.count; i++) {
        GlobalInfo *info = e->global_order.at[i];
        switch ((GlobalKind)info->global->kind) {
        case GLOBAL_const:
        case GLOBAL_uniform: declare_memory(e, info); break;
        case GLOBAL_static: info->offset = place(&e->statics_size, info->global->type); break;
        case GLOBAL_shared: info->offset = place(&e->shared_size, info->global->type); break;
        }
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
    if (is_kernel) emit_kernel(e, info);
    else emit_thunks(e, info);
}

void emit_module(Emitter *e) {
    emit_types_init(e);
    if (e->options->debug) emit_debug_init(e);
    find_reached(e);
    declare_globals(e);
    for (int i = 0; i < e->order.count; i++) emit_func_declare(e, e->order.at[i]);
    for (int i = 0; i < e->order.count; i++) emit_func_body(e, e->order.at[i]);
    emit_debug_none(e);
    for (int i = 0; i < e->order.count; i++) emit_ways_in(e, e->order.at[i]);
    emit_init(e);
    emit_close(e);
    settle_zero_object(e);
    emit_lanes_keep(e);
    emit_debug_finish(e);
}
