/* Ways in for kernels. Without barriers, f.run goes through all threads of a range of groups in loops around
 * the inlined kernel, which the optimiser can vectorise: the context is on the stack and dissolves into
 * values. If there is a form of the kernel for several threads (Func.wide), the innermost loop takes those
 * many at a time; it knows where a row ends. With barriers, f.thread runs one thread, or as many as there are
 * lanes, of which a row is then a multiple, and the runtime switches between them. */
#include "emit/llvm/llvm.h"

#include <llvm-c/DebugInfo.h>

enum { SHARED_ALIGN = 16 };

/* A loop from a first number to an end, at least once: open while its body is built. */
typedef struct Counting {
    LLVMBasicBlockRef before, body; /* NULL: one round is known to be all */
    LLVMValueRef index, first;
} Counting;

static Counting counting_begin(Emitter *e, LLVMValueRef first) {
    Counting loop = {.before = LLVMGetInsertBlock(e->builder), .body = emit_block(e, "each"), .first = first};
    LLVMBuildBr(e->builder, loop.body);
    LLVMPositionBuilderAtEnd(e->builder, loop.body);
    loop.index = LLVMBuildPhi(e->builder, LLVMTypeOf(first), "");
    return loop;
}

static void counting_end(Emitter *e, Counting *loop, LLVMValueRef end, int step) {
    LLVMValueRef distance = LLVMConstInt(LLVMTypeOf(loop->first), (unsigned long long)step, false);
    LLVMValueRef next = LLVMBuildNUWAdd(e->builder, loop->index, distance, "");
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder), after = emit_block(e, "after");
    LLVMValueRef goes_on = LLVMBuildICmp(e->builder, LLVMIntULT, next, end, "");
    LLVMValueRef branch = LLVMBuildCondBr(e->builder, goes_on, loop->body, after);
    if (step > 1) emit_wish(e, branch, "llvm.loop.unroll.disable", 0); /* lanes are what others unroll for */
    LLVMAddIncoming(loop->index, &loop->first, &loop->before, 1);
    LLVMAddIncoming(loop->index, &next, &here, 1);
    LLVMPositionBuilderAtEnd(e->builder, after);
}

/* From 0 to a number that is known: most groups have one thread in y and z, and LLVM would find out that a
 * loop is none at some expense. */
static Counting known_begin(Emitter *e, int end, int step) {
    LLVMValueRef zero = emit_i32(e, 0);
    return end <= step ? (Counting){.index = zero, .first = zero} : counting_begin(e, zero);
}

static void known_end(Emitter *e, Counting *loop, int end, int step) {
    if (loop->body) counting_end(e, loop, emit_i32(e, end), step);
}

static LLVMValueRef triple(Emitter *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
    LLVMValueRef vector = LLVMGetPoison(LLVMVectorType(e->i32, 3)), parts[] = {x, y, z};
    for (int i = 0; i < 3; i++)
        vector = LLVMBuildInsertElement(e->builder, vector, parts[i], emit_i32(e, i), "");
    return vector;
}

/* ---- f.run */

typedef struct Run {
    FuncInfo *info;
    uint32_t needs;
    LLVMValueRef context;
    LLVMValueRef *args; /* loaded once, before all loops */
    LLVMValueRef group[3];
    int size[3];
    const FuncInfo *wide; /* the form for several threads, NULL: there is none ... */
    int lanes;            /* ... in x, or for several groups, if they have one thread each */
} Run;

static void store_ids(Emitter *e, const Run *run, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
    LLVMValueRef local[] = {x, y, z}, global[3];
    for (int i = 0; i < 3; i++) {
        LLVMValueRef base = LLVMBuildNUWMul(e->builder, run->group[i], emit_i32(e, run->size[i]), "");
        global[i] = LLVMBuildNUWAdd(e->builder, base, local[i], "");
    }
    LLVMValueRef row = LLVMBuildNUWMul(e->builder, z, emit_i32(e, run->size[1]), "");
    row = LLVMBuildNUWMul(e->builder, LLVMBuildNUWAdd(e->builder, row, y, ""), emit_i32(e, run->size[0]), "");
    emit_context_store(e, run->context, triple(e, global[0], global[1], global[2]),
                       offsetof(RtContext, thread_id));
    emit_context_store(e, run->context, triple(e, x, y, z), offsetof(RtContext, local_id));
    emit_context_store(e, run->context, LLVMBuildNUWAdd(e->builder, row, x, ""),
                       offsetof(RtContext, local_index));
}

static bool has_one_thread(const Run *run) { return run->size[0] * run->size[1] * run->size[2] == 1; }

/* The threads of a row, `step` at a time. */
static void run_in_x(Emitter *e, const Run *run, LLVMValueRef y, LLVMValueRef z, int step) {
    Counting x = known_begin(e, run->size[0], step);
    store_ids(e, run, x.index, y, z);
    emit_start_thread(e, run->needs, run->context);
    emit_call_loaded(e, step > 1 ? run->wide : run->info, run->context, run->args);
    bool is_all = !x.body && run->size[1] * run->size[2] == 1; /* of the group, which asks itself */
    if (!is_all && run->info->reached->work * step > SOME_WORK) emit_stop_test(e);
    known_end(e, &x, run->size[0], step);
}

static void run_threads(Emitter *e, const Run *run) {
    Counting z = known_begin(e, run->size[2], 1), y = known_begin(e, run->size[1], 1);
    run_in_x(e, run, y.index, z.index, run->wide && !has_one_thread(run) ? run->lanes : 1);
    known_end(e, &y, run->size[1], 1);
    known_end(e, &z, run->size[2], 1);
}

/* Several groups of one thread each. */
static void run_wide_groups(Emitter *e, const Run *run) {
    LLVMValueRef zero = emit_i32(e, 0);
    store_ids(e, run, zero, zero, zero);
    emit_call_loaded(e, run->wide, run->context, run->args);
}

static void run_group(Emitter *e, const Run *run, bool wide) {
    emit_context_store(e, run->context, triple(e, run->group[0], run->group[1], run->group[2]),
                       offsetof(RtContext, group_id));
    if (run->info->reached->needs & NEEDS_SHARED) {
        LLVMValueRef shared = emit_context_load(e, run->context, e->ptr, offsetof(RtContext, shared));
        emit_zero(e, shared, e->reached.shared_size, 16);
    }
    if (wide) run_wide_groups(e, run);
    else run_threads(e, run);
    int64_t threads = (int64_t)run->size[0] * run->size[1] * run->size[2] * (wide ? run->lanes : 1);
    if (run->info->reached->work * threads > SOME_WORK) emit_stop_test(e); /* else they can be vectorised */
}

/* Groups first to end - 1 in x, `step` at a time; there may be none. */
static void run_groups(Emitter *e, Run *run, LLVMValueRef first, LLVMValueRef end, int step) {
    Branch any = emit_branch_begin(e, LLVMBuildICmp(e->builder, LLVMIntULT, first, end, ""));
    Counting each = counting_begin(e, first);
    run->group[0] = each.index;
    run_group(e, run, step > 1);
    counting_end(e, &each, end, step);
    emit_branch_end(e, &any);
}

/* Groups number, number + 1, ... of one row, as many as there are before the row or the range ends. Returns
 * the first number after them. */
static LLVMValueRef run_row(Emitter *e, Run *run, LLVMValueRef number, LLVMValueRef end) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef size[2];
    for (int i = 0; i < 2; i++) {
        size_t offset = offsetof(RtContext, groups) + sizeof(uint32_t) * (size_t)i;
        size[i] = LLVMBuildZExt(b, emit_context_load(e, run->context, e->i32, offset), e->i64, "");
    }
    LLVMValueRef x = LLVMBuildURem(b, number, size[0], ""), row = LLVMBuildUDiv(b, number, size[0], "");
    run->group[1] = LLVMBuildTrunc(b, LLVMBuildURem(b, row, size[1], ""), e->i32, "");
    run->group[2] = LLVMBuildTrunc(b, LLVMBuildUDiv(b, row, size[1], ""), e->i32, "");
    LLVMValueRef left[] = {LLVMBuildSub(b, end, number, ""), LLVMBuildSub(b, size[0], x, "")};
    LLVMValueRef count = emit_intrinsic(e, "llvm.umin", &e->i64, 1, left, 2);
    LLVMValueRef last = LLVMBuildTrunc(b, LLVMBuildAdd(b, x, count, ""), e->i32, "");
    LLVMValueRef first = LLVMBuildTrunc(b, x, e->i32, "");
    if (run->wide && has_one_thread(run)) {
        LLVMValueRef together =
            LLVMBuildAnd(b, LLVMBuildTrunc(b, count, e->i32, ""), emit_i32(e, -run->lanes), "");
        LLVMValueRef middle = LLVMBuildAdd(b, first, together, "");
        run_groups(e, run, first, middle, run->lanes);
        run_groups(e, run, middle, last, 1);
    } else {
        Counting each = counting_begin(e, first);
        run->group[0] = each.index;
        run_group(e, run, false);
        counting_end(e, &each, last, 1);
    }
    return LLVMBuildAdd(b, number, count, "");
}

static void run_rows(Emitter *e, Run *run, LLVMValueRef first, LLVMValueRef end) {
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->builder), body = emit_block(e, "row"),
                      after = emit_block(e, "done");
    LLVMBuildBr(e->builder, body);
    LLVMPositionBuilderAtEnd(e->builder, body);
    LLVMValueRef number = LLVMBuildPhi(e->builder, e->i64, "");
    LLVMValueRef next = run_row(e, run, number, end);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    LLVMAddIncoming(number, &first, &before, 1);
    LLVMAddIncoming(number, &next, &here, 1);
    LLVMBuildCondBr(e->builder, LLVMBuildICmp(e->builder, LLVMIntULT, next, end, ""), body, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
}

static LLVMValueRef internal_function(Emitter *e, const FuncInfo *info, const char *suffix,
                                      LLVMTypeRef *types, int count) {
    const char *name = format_text(&e->arena, "%s%s", info->func->name->text, suffix);
    LLVMValueRef function =
        LLVMAddFunction(e->llvm, name, LLVMFunctionType(e->void_type, types, count_of(count), false));
    LLVMSetLinkage(function, LLVMInternalLinkage);
    emit_attribute(e, function, of_function, "nounwind", 0);
    emit_string_attribute(e, function, "probe-stack", "inline-asm");
    return function;
}

/* The block that is shared belongs to the dispatcher. */
static Run open_run(Emitter *e, FuncInfo *info, FuncState *state, LLVMValueRef function) {
    Run run = {.info = info, .needs = info->reached->needs & ~(uint32_t)NEEDS_SHARED};
    if (info->func->wide) run.wide = emit_func_info(e, info->func->wide), run.lanes = info->func->lanes;
    for (int i = 0; i < 3; i++) run.size[i] = info->func->group_size[i] > 0 ? info->func->group_size[i] : 1;
    emit_begin(e, state, function);
    run.context = emit_make_context(e, run.needs, LLVMGetParam(function, 0));
    state->context = run.context;
    LLVMValueRef args = emit_context_load(e, run.context, e->ptr, offsetof(RtContext, args));
    run.args = emit_load_args(e, info->func, args);
    return run;
}

static LLVMValueRef emit_run(Emitter *e, FuncInfo *info) {
    LLVMTypeRef types[] = {e->ptr, e->i64, e->i64};
    LLVMValueRef function = internal_function(e, info, ".run", types, 3);
    FuncState state;
    Run run = open_run(e, info, &state, function);
    run_rows(e, &run, LLVMGetParam(function, 1), LLVMGetParam(function, 2));
    emit_drop_context(e, run.needs, run.context);
    LLVMBuildRetVoid(e->builder);
    return function;
}

/* ---- f.thread */

static LLVMValueRef emit_thread(Emitter *e, FuncInfo *info) {
    LLVMValueRef function = internal_function(e, info, ".thread", &e->ptr, 1);
    FuncState state;
    Run run = open_run(e, info, &state, function);
    emit_start_thread(e, run.needs, run.context);
    emit_call_loaded(e, run.wide ? run.wide : info, run.context, run.args);
    emit_drop_context(e, run.needs, run.context);
    LLVMBuildRetVoid(e->builder);
    return function;
}

/* ---- f.kernel and f */

static LLVMTypeRef sum_type(Emitter *e) {
    LLVMTypeRef types[] = {e->ptr, e->i64, LLVMArrayType2(e->i64, RT_SUM_STEPS), e->i64, e->i64, e->i64};
    return LLVMStructTypeInContext(e->context, types, 6, false);
}

static LLVMValueRef describe_sum(Emitter *e, const SumSource *sum) {
    LLVMValueRef offsets[RT_SUM_STEPS];
    for (int i = 0; i < RT_SUM_STEPS; i++) offsets[i] = emit_i64(e, sum->offsets[i]);
    LLVMValueRef parts[] = {sum->global ? emit_global_info(e, sum->global)->memory : LLVMConstNull(e->ptr),
                            emit_i64(e, sum->param),
                            LLVMConstArray2(e->i64, offsets, RT_SUM_STEPS),
                            emit_i64(e, sum->nsteps),
                            emit_i64(e, type_layout(sum->scalar, LAYOUT_scalar).size),
                            emit_i64(e, sum->stride)};
    return LLVMConstNamedStruct(sum_type(e), parts, 6);
}

/* The buffers that it has copies of; NULL: there are none. */
static LLVMValueRef describe_sums(Emitter *e, const Func *func) {
    LLVMTypeRef type = sum_type(e);
    LLVMValueRef *rows = arena_array(&e->arena, LLVMValueRef, func->nsums + 1);
    if (func->nsums == 0) return LLVMConstNull(e->ptr);
    for (int i = 0; i < func->nsums; i++) rows[i] = describe_sum(e, &func->sums[i]);
    LLVMValueRef all = LLVMConstArray2(type, rows, (uint64_t)func->nsums);
    LLVMValueRef global = LLVMAddGlobal(e->llvm, LLVMTypeOf(all), "sums");
    LLVMSetInitializer(global, all);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(global, true);
    return global;
}

static LLVMValueRef describe(Emitter *e, FuncInfo *info, LLVMValueRef run, LLVMValueRef thread) {
    LLVMTypeRef sizes = LLVMArrayType2(e->i32, 3);
    LLVMTypeRef types[] = {e->ptr, e->ptr, sizes,  e->i32, e->i64, e->i64, e->i64,
                           e->i64, e->i64, e->ptr, e->i64, e->i64, e->i64, e->i64};
    enum { FIELDS = sizeof types / sizeof *types };
    LLVMTypeRef type = LLVMStructTypeInContext(e->context, types, FIELDS, false);
    LLVMValueRef size[3];
    for (int i = 0; i < 3; i++)
        size[i] = emit_i32(e, info->func->group_size[i] > 0 ? info->func->group_size[i] : 1);
    bool shares = (info->reached->needs & NEEDS_SHARED) != 0;
    LLVMValueRef none = LLVMConstNull(e->ptr);
    LLVMValueRef parts[FIELDS] = {run ? run : none,
                                  thread ? thread : none,
                                  LLVMConstArray2(e->i32, size, 3),
                                  emit_i32(e, SHARED_ALIGN),
                                  emit_i64(e, shares ? e->reached.shared_size : 0),
                                  emit_i64(e, (info->reached->needs & NEEDS_STACK) != 0),
                                  emit_i64(e, info->func->wide ? info->func->lanes : 0),
                                  emit_i64(e, info->func->nparams - info->func->nsums),
                                  emit_i64(e, info->func->nsums),
                                  describe_sums(e, info->func),
                                  emit_i64(e, info->func->work),
                                  emit_i64(e, info->func->least_work),
                                  emit_i64(e, e->options->alone),
                                  emit_i64(e, e->options->wave)};
    LLVMValueRef kernel =
        LLVMAddGlobal(e->llvm, type, emit_symbol_name(e, info->func->name->text, ".kernel"));
    LLVMSetInitializer(kernel, LLVMConstNamedStruct(type, parts, FIELDS));
    LLVMSetGlobalConstant(kernel, true);
    if (!e->for_jit) LLVMSetLinkage(kernel, LLVMInternalLinkage);
    return kernel;
}

/* Copies for sums are given by the runtime. */
static void emit_launcher(Emitter *e, FuncInfo *info, LLVMValueRef kernel) {
    Func given = *info->func, *func = &given;
    given.nparams -= given.nsums;
    FuncState state;
    LLVMValueRef groups, args = emit_native_kernel(e, func, &state, &groups);
    LLVMTypeRef launch[] = {e->ptr, e->ptr, e->ptr, e->ptr};
    LLVMValueRef values[] = {emit_runtime_slot(e), kernel, groups, args};
    emit_call_external(e, emit_external(e, "rt_launch", e->void_type, launch, 4, "nounwind"), values, 4);
    LLVMBuildRetVoid(e->builder);
}

void emit_kernel(Emitter *e, FuncInfo *info) {
    const FuncInfo *runs = info->func->wide ? emit_func_info(e, info->func->wide) : info;
    bool waits = (runs->reached->needs & NEEDS_FIBER) != 0;
    LLVMValueRef run = waits ? NULL : emit_run(e, info), thread = waits ? emit_thread(e, info) : NULL;
    LLVMValueRef kernel = describe(e, info, run, thread);
    emit_launcher(e, info, kernel);
}
