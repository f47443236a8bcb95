/* Ways in for functions:
 *   f.call(args)              makes a context, unpacks the arguments, calls, stores results; for code in memory
 *   f(...)                    the native form (native.c), does so with its own parameters
 *   f.inner(context, args)    where the runtime is needed: it makes the context, and the two above have it call this (rt_call)
 * To a function that is not made a part of them, LLVM can do nothing that makes them faster: its passes leave
 * those in memory alone. */
#include "emit/llvm/llvm.h"

/* ---- contexts */

static uint32_t all_needs(const Emitter *e, uint32_t needs) {
    if ((needs & NEEDS_SINK) && e->sink_size == 0) needs &= ~(uint32_t)NEEDS_SINK;
    if (((needs & NEEDS_STATICS) && e->reached.statics_size > LARGE_SIZE) ||
        ((needs & NEEDS_SHARED) && e->reached.shared_size > LARGE_SIZE) ||
        ((needs & NEEDS_SINK) && e->sink_size > LARGE_SIZE))
        needs |= NEEDS_RUNTIME;
    if (needs & (NEEDS_STACK | NEEDS_LARGE)) needs |= NEEDS_RUNTIME;
    if (((needs & NEEDS_STOP) && e->for_jit) || e->options->watch) needs |= NEEDS_RUNTIME;
    return needs;
}

static void take_block(Emitter *e, LLVMValueRef context, int64_t size, size_t field) {
    LLVMValueRef memory;
    if (size > LARGE_SIZE && !e->device) {
        LLVMTypeRef types[] = {e->ptr, e->i64};
        LLVMValueRef args[] = {context, emit_i64(e, size)};
        memory =
            emit_call_external(e, emit_external(e, "rt_memory_take", e->ptr, types, 2, "nounwind"), args, 2);
    } else {
        memory = emit_alloca(e, size, 64);
    }
    emit_context_store(e, context, memory, field);
}

static void take_blocks(Emitter *e, uint32_t needs, LLVMValueRef context) {
    if (needs & NEEDS_STATICS) take_block(e, context, e->reached.statics_size, offsetof(RtContext, statics));
    if ((needs & NEEDS_SINK) && e->sink_size > 0)
        take_block(e, context, e->sink_size, offsetof(RtContext, sink));
    if (needs & NEEDS_SHARED) {
        take_block(e, context, e->reached.shared_size, offsetof(RtContext, shared));
        LLVMValueRef shared = emit_context_load(e, context, e->ptr, offsetof(RtContext, shared));
        emit_zero(e, shared, e->reached.shared_size, 16);
    }
}

/* What is set up here is written in any case. */
static bool reads_context(const Emitter *e, uint32_t needs) {
    return e->device || (needs & (NEEDS_RUNTIME | NEEDS_FIBER | NEEDS_IDS | NEEDS_SIZES)) != 0;
}

LLVMValueRef emit_make_context(Emitter *e, uint32_t needs, LLVMValueRef outer) {
    LLVMValueRef context = emit_alloca(e, sizeof(RtContext), _Alignof(RtContext));
    if (outer)
        LLVMBuildMemCpy(e->builder, context, _Alignof(RtContext), outer, _Alignof(RtContext),
                        emit_i64(e, sizeof(RtContext)));
    else if (reads_context(e, needs)) emit_zero(e, context, sizeof(RtContext), _Alignof(RtContext));
    take_blocks(e, needs, context);
    return context;
}

/* The runtime makes one for each call, which is the call's own. */
static LLVMValueRef context_of_call(Emitter *e, uint32_t needs, LLVMValueRef inner) {
    LLVMValueRef context = LLVMGetParam(inner, 0);
    take_blocks(e, needs, context);
    return context;
}

static void give_block(Emitter *e, LLVMValueRef context, int64_t size, size_t field) {
    if (size <= LARGE_SIZE) return;
    LLVMValueRef memory = emit_context_load(e, context, e->ptr, field);
    emit_call_external(e, emit_external(e, "rt_memory_give", e->void_type, &e->ptr, 1, "nounwind"), &memory,
                       1);
}

void emit_drop_context(Emitter *e, uint32_t needs, LLVMValueRef context) {
    if (needs & NEEDS_SHARED) give_block(e, context, e->reached.shared_size, offsetof(RtContext, shared));
    if (needs & NEEDS_SINK) give_block(e, context, e->sink_size, offsetof(RtContext, sink));
    if (needs & NEEDS_STATICS) give_block(e, context, e->reached.statics_size, offsetof(RtContext, statics));
}

void emit_start_thread(Emitter *e, uint32_t needs, LLVMValueRef context) {
    if (!(needs & NEEDS_STATICS)) return;
    emit_zero(e, emit_context_load(e, context, e->ptr, offsetof(RtContext, statics)), e->reached.statics_size,
              16);
    for (int i = 0; i < e->global_order.count; i++) {
        GlobalInfo *info = e->global_order.at[i];
        if (info->global->kind == GLOBAL_static && info->init)
            LLVMBuildCall2(e->builder, info->init->type, info->init->function, &context, 1, "");
    }
}

/* ---- arguments as a list of pointers: the parameters, then the results */

static LLVMValueRef arg_pointer(Emitter *e, LLVMValueRef args, int index) {
    LLVMValueRef load = LLVMBuildLoad2(e->builder, e->ptr, emit_at(e, args, index * 8), "");
    LLVMSetAlignment(load, 8);
    return load;
}

static int count_plain_params(const Func *func) {
    int count = 0;
    for (int i = 0; i < func->nparams; i++) count += !(func->params[i].flags & PARAM_RESULT);
    return count;
}

static Place *load_places(Emitter *e, const Func *func, LLVMValueRef args) {
    int count = func->nparams + func->nresults;
    Place *places = arena_array(&e->arena, Place, count + 1);
    for (int i = 0; i < count; i++) places[i] = (Place){.address = arg_pointer(e, args, i)};
    return places;
}

static LLVMValueRef value_at(Emitter *e, const Type *type, const Place *place) {
    return place->value ? place->value : emit_load(e, type, emit_plain_value(place->address));
}

static LLVMValueRef *load_values(Emitter *e, const Func *func, const Place *places) {
    LLVMValueRef *values = arena_array(&e->arena, LLVMValueRef, func->nparams + 1);
    int next = 0, result = count_plain_params(func);
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        const Place *place = &places[(param->flags & PARAM_RESULT) ? result++ : next++];
        bool by_address = (param->flags & PARAM_BY_ADDRESS) != 0;
        values[i + 1] = by_address ? place->address : value_at(e, param->type, place);
    }
    return values;
}

LLVMValueRef *emit_load_args(Emitter *e, const Func *func, LLVMValueRef args) {
    return load_values(e, func, load_places(e, func, args));
}

LLVMValueRef *emit_call_loaded(Emitter *e, const FuncInfo *info, LLVMValueRef context, LLVMValueRef *values) {
    values[0] = context;
    return emit_call_body(e, info, values);
}

static void store_results(Emitter *e, const Func *func, LLVMValueRef *results, Place *places) {
    for (int i = 0; i < func->nresults; i++) {
        Place *place = &places[func->nparams + i]; /* results through memory come before those by value */
        place->value = results[i];
        if (place->address) emit_store(e, func->results[i], emit_plain_value(place->address), results[i]);
    }
}

static void return_object(Emitter *e, LLVMValueRef context, LLVMValueRef object, const Type *type) {
    LLVMTypeRef types[] = {e->ptr, e->ptr, e->i64};
    LLVMValueRef args[] = {context, object, emit_i64(e, type_layout(type, LAYOUT_scalar).size)};
    emit_call_external(e, emit_external(e, "rt_made_return", e->void_type, types, 3, "nounwind"), args, 3);
}

/* `values`: as they were loaded, behind the context. */
static void return_made(Emitter *e, const Func *func, LLVMValueRef *values, const Place *places) {
    for (int i = 0; i < func->nparams; i++)
        if (reach_may_return_made(&func->params[i]))
            return_object(e, values[0], values[i + 1], func->params[i].type);
    for (int i = 0; i < func->nresults; i++)
        if (reach_may_hold_made(func->results[i]))
            return_object(e, values[0], places[func->nparams + i].address, func->results[i]);
}

/* ---- the uniform form */

static LLVMValueRef inner_function(Emitter *e, const char *name) {
    LLVMTypeRef types[] = {e->ptr, e->ptr};
    LLVMValueRef inner = LLVMAddFunction(e->llvm, format_text(&e->arena, "%s.inner", name),
                                         LLVMFunctionType(e->void_type, types, 2, false));
    LLVMSetLinkage(inner, LLVMInternalLinkage);
    emit_attribute(e, inner, of_function, "nounwind", 0);
    return inner;
}

static void call_inner(Emitter *e, uint32_t needs, LLVMValueRef inner, LLVMValueRef args) {
    LLVMTypeRef types[] = {e->ptr, e->ptr, e->ptr};
    LLVMValueRef values[] = {emit_runtime_slot(e), inner, args};
    const char *way = needs & NEEDS_STACK ? "rt_call_deep" : "rt_call";
    emit_call_external(e, emit_external(e, way, e->void_type, types, 3, "nounwind"), values, 3);
}

static void run(Emitter *e, const FuncInfo *info, uint32_t needs, LLVMValueRef context, Place *places) {
    e->at->context = context;
    emit_start_thread(e, needs, context);
    LLVMValueRef *values = load_values(e, info->func, places);
    LLVMValueRef *results = emit_call_loaded(e, info, context, values);
    store_results(e, info->func, results, places);
    if (needs & NEEDS_MADE) return_made(e, info->func, values, places);
    emit_drop_context(e, needs, context);
}

static LLVMValueRef inner_of(Emitter *e, const FuncInfo *info, uint32_t needs) {
    FuncState state;
    LLVMValueRef inner = inner_function(e, info->func->name->text);
    emit_begin(e, &state, inner);
    LLVMValueRef context = context_of_call(e, needs, inner);
    run(e, info, needs, context, load_places(e, info->func, LLVMGetParam(inner, 1)));
    LLVMBuildRetVoid(e->builder);
    return inner;
}

void emit_call_places(Emitter *e, const Way *way, Place *places) {
    const Func *func = way->info->func;
    if (way->inner)
        call_inner(e, way->needs, way->inner, emit_list(e, places, func->nparams + func->nresults));
    else run(e, way->info, way->needs, emit_make_context(e, way->needs, NULL), places);
}

static LLVMValueRef uniform_form(Emitter *e, const Way *way) {
    const Func *func = way->info->func;
    const char *name = emit_symbol_name(e, func->name->text, ".call");
    LLVMValueRef uniform = LLVMAddFunction(e->llvm, name, LLVMFunctionType(e->void_type, &e->ptr, 1, false));
    emit_attribute(e, uniform, of_function, "nounwind", 0);
    FuncState state;
    emit_begin(e, &state, uniform);
    LLVMValueRef args = LLVMGetParam(uniform, 0);
    if (way->inner) call_inner(e, way->needs, way->inner, args);
    else emit_call_places(e, way, load_places(e, func, args));
    LLVMBuildRetVoid(e->builder);
    return uniform;
}

static void leave_as_it_is(Emitter *e, LLVMValueRef function) {
    emit_attribute(e, function, of_function, "noinline", 0);
    emit_attribute(e, function, of_function, WITHOUT_PASSES, 0);
    emit_string_attribute(e, function, QUICKLY, "");
    emit_string_attribute(e, function, AS_IT_IS, "");
}

void emit_thunks(Emitter *e, FuncInfo *info) {
    Way way = {.info = info, .needs = all_needs(e, info->reached->needs)};
    if (way.needs & NEEDS_RUNTIME) way.inner = inner_of(e, info, way.needs);
    LLVMValueRef ways[] = {way.inner, e->for_jit ? uniform_form(e, &way) : NULL, emit_native(e, &way)};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i] && e->for_jit && emit_stands_alone(e, info)) leave_as_it_is(e, ways[i]);
}

/* ---- slope.init */

/* `list_name`: llvm.global_ctors or llvm.global_dtors. */
static void run_at(Emitter *e, const char *list_name, LLVMValueRef function) {
    LLVMTypeRef types[] = {e->i32, e->ptr, e->ptr};
    LLVMTypeRef row = LLVMStructTypeInContext(e->context, types, 3, false);
    LLVMValueRef parts[] = {emit_i32(e, 65535), function, LLVMConstNull(e->ptr)};
    LLVMValueRef entry = LLVMConstNamedStruct(row, parts, 3);
    LLVMValueRef list = LLVMAddGlobal(e->llvm, LLVMArrayType2(row, 1), list_name);
    LLVMSetInitializer(list, LLVMConstArray2(row, &entry, 1));
    LLVMSetLinkage(list, LLVMAppendingLinkage);
}

uint32_t emit_needs_of_init(const Emitter *e, bool *any) {
    uint32_t needs = 0;
    for (int i = 0; i < e->global_order.count; i++) {
        const GlobalInfo *info = e->global_order.at[i];
        if (info->global->kind != GLOBAL_const || !info->init) continue;
        needs |= info->init->reached->needs;
        *any = true;
    }
    return all_needs(e, needs);
}

void emit_run_inits(Emitter *e, LLVMValueRef context) {
    for (int i = 0; i < e->global_order.count; i++) {
        FuncInfo *init = e->global_order.at[i]->init;
        if (init && e->global_order.at[i]->global->kind == GLOBAL_const)
            LLVMBuildCall2(e->builder, init->type, init->function, &context, 1, "");
    }
}

static void run_init(Emitter *e, uint32_t needs, LLVMValueRef context) {
    e->at->context = context;
    emit_start_thread(e, needs, context);
    emit_run_inits(e, context);
    if (needs & NEEDS_MADE)
        emit_call_external(e, emit_external(e, "rt_made_constants", e->void_type, &e->ptr, 1, "nounwind"),
                           &context, 1);
    emit_drop_context(e, needs, context);
}

void emit_init(Emitter *e) {
    bool any = false;
    uint32_t needs = emit_needs_of_init(e, &any);
    if (!any) {
        e->init_symbol = "";
        return;
    }
    FuncState state;
    LLVMValueRef inner = NULL;
    if (needs & NEEDS_RUNTIME) {
        inner = inner_function(e, e->init_symbol);
        emit_begin(e, &state, inner);
        run_init(e, needs, context_of_call(e, needs, inner));
        LLVMBuildRetVoid(e->builder);
    }
    LLVMValueRef outer =
        LLVMAddFunction(e->llvm, e->init_symbol, LLVMFunctionType(e->void_type, NULL, 0, false));
    emit_begin(e, &state, outer);
    if (inner) call_inner(e, needs, inner, LLVMConstNull(e->ptr));
    else run_init(e, needs, emit_make_context(e, needs, NULL));
    LLVMBuildRetVoid(e->builder);
    if (e->for_jit) return;
    LLVMSetLinkage(outer, LLVMInternalLinkage);
    run_at(e, "llvm.global_ctors", outer);
}

/* A library that is unloaded takes its runtime along. */
void emit_close(Emitter *e) {
    if (e->for_jit || !e->runtime_slot) return;
    LLVMValueRef close =
        LLVMAddFunction(e->llvm, "slope.close", LLVMFunctionType(e->void_type, NULL, 0, false));
    LLVMSetLinkage(close, LLVMInternalLinkage);
    FuncState state;
    emit_begin(e, &state, close);
    LLVMValueRef function = emit_external(e, "rt_close", e->void_type, &e->ptr, 1, "nounwind");
    emit_call_external(e, function, &e->runtime_slot, 1);
    LLVMBuildRetVoid(e->builder);
    run_at(e, "llvm.global_dtors", close);
}
