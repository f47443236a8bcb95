/* Sums of a GPU's threads. What one number takes is in device_sums.ll. For a row of several (emit/together.c)
 * there is a function, made here as CUDA C++ has a template for it: where a whole warp adds to the same
 * places, its lanes share the work, of all numbers at once or in two parts; where lanes add to places in a
 * row that overlap, they pass on what is for others. What only some lanes of a warp add is added there,
 * too. */
#include "emit/llvm/llvm.h"

enum { SHARED_MEMORY = 3, CONSTANT_MEMORY = 4 }; /* as LLVM numbers them */
enum { LANES = 32, MOST_IN_ROW = 16 };

static LLVMTypeRef number_type(const Emitter *e) { return e->sums.kind == TYPE_double ? e->f64 : e->f32; }

static const char *with_kind(Emitter *e, const char *name, TypeKind kind) {
    return format_text(&e->arena, "%s_%s", name, kind == TYPE_double ? "double" : "float");
}

/* A function of device_sums.ll for the numbers that wait, which returns nothing unless it gives back a
 * number. */
static LLVMValueRef call(Emitter *e, const char *name, LLVMTypeRef result, LLVMValueRef *args, int count) {
    LLVMTypeRef types[4];
    for (int i = 0; i < count; i++) types[i] = LLVMTypeOf(args[i]);
    LLVMValueRef function =
        emit_external(e, with_kind(e, name, e->sums.kind), result, types, count, "nounwind convergent");
    return emit_call_external(e, function, args, count);
}

/* ---- a single one */

bool emit_device_sum(Emitter *e, const Type *type, LLVMValueRef pointer, LLVMValueRef value) {
    if (type->kind != TYPE_float && type->kind != TYPE_double) return false;
    LLVMTypeRef types[] = {e->ptr, LLVMTypeOf(value)};
    LLVMValueRef args[] = {pointer, value};
    bool waits = e->sums.any && type->kind == e->sums.kind;
    const char *name = with_kind(e, waits ? "rt_group_sum" : "rt_sum", type->kind);
    emit_call_external(e, emit_external(e, name, e->void_type, types, 2, "nounwind convergent"), args, 2);
    return true;
}

/* ---- what a group keeps */

static void shared_variable(Emitter *e, const char *name, LLVMTypeRef type) {
    LLVMValueRef variable = LLVMAddGlobalInAddressSpace(e->llvm, type, name, SHARED_MEMORY);
    LLVMSetAlignment(variable, 16);
    LLVMSetInitializer(variable, LLVMGetUndef(type));
}

static void constant(Emitter *e, const char *name, int value) {
    LLVMValueRef variable = LLVMAddGlobalInAddressSpace(e->llvm, e->i32, name, CONSTANT_MEMORY);
    LLVMSetInitializer(variable, emit_i32(e, value));
    LLVMSetGlobalConstant(variable, true);
}

void emit_device_sums(Emitter *e) {
    uint64_t count = (uint64_t)e->sums.count;
    if (!e->sums.any) return;
    shared_variable(e, "slope_sums", LLVMArrayType2(number_type(e), count));
    shared_variable(e, "slope_sum_places", LLVMArrayType2(e->i64, e->sums.in_order ? 1 : count));
    shared_variable(e, "slope_sum_base", e->i64);
    constant(e, "slope_sum_count", e->sums.count);
    constant(e, "slope_sum_order", e->sums.in_order ? 2 : e->sums.buffer ? 1 : 0);
}

/* Both ends are told of the buffer that all sums are in. */
static void at_end(Emitter *e, const char *name) {
    LLVMValueRef args[] = {LLVMConstNull(e->ptr), emit_i64(e, 0), emit_i64(e, 4)};
    if (!e->sums.any) return;
    if (e->sums.buffer) {
        const Type *element = e->sums.buffer->type->args[0];
        Value memory = emit_plain_value(emit_global_info(e, e->sums.buffer)->memory);
        memory.space = SPACE_uniform;
        LLVMValueRef buffer = emit_load(e, e->sums.buffer->type, memory);
        for (unsigned i = 0; i < 2; i++) args[i] = LLVMBuildExtractValue(e->builder, buffer, i, "");
        args[2] = emit_i64(e, type_layout(element, LAYOUT_scalar).stride);
    }
    call(e, name, e->void_type, args, 3);
}

void emit_device_sums_begin(Emitter *e) { at_end(e, "rt_sums_start"); }

void emit_device_sums_end(Emitter *e) { at_end(e, "rt_sums_end"); }

/* ---- rows: a function for each kind of them */

enum { DATA, COUNT, STRIDE, FIRST, STEP, OFFSET, DISTANCE, VALUES }; /* its parameters */

typedef struct Row {
    Emitter *e;
    LLVMValueRef function, lane;
    LLVMValueRef own; /* memory for the numbers */
    const Type *index;
    int count;
} Row;

static LLVMValueRef param(const Row *r, int index) { return LLVMGetParam(r->function, count_of(index)); }

static LLVMValueRef number(const Row *r, int index) { return param(r, VALUES + index); }

static LLVMValueRef shuffle(const Row *r, const char *how, LLVMValueRef value, LLVMValueRef by) {
    LLVMValueRef args[] = {emit_i32(r->e, -1), value, by};
    return call(r->e, how, number_type(r->e), args, 3);
}

/* A function of this row's own, at the end of which is a new block. */
static LLVMBasicBlockRef new_block(const Row *r) {
    return LLVMAppendBasicBlockInContext(r->e->context, r->function, "");
}

/* Goes on in a new block if the condition holds; where it goes otherwise. */
static LLVMBasicBlockRef go_on_if(const Row *r, LLVMValueRef condition) {
    LLVMBasicBlockRef then = new_block(r), otherwise = new_block(r);
    LLVMBuildCondBr(r->e->builder, condition, then, otherwise);
    LLVMPositionBuilderAtEnd(r->e->builder, then);
    return otherwise;
}

/* The element that lane or number `which` adds to: indices are as wide as the program has them, and may wrap
 * around. */
static LLVMValueRef index_of(const Row *r, LLVMValueRef which) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef first = param(r, FIRST), step = param(r, STEP);
    LLVMValueRef by = LLVMBuildMul(b, LLVMBuildIntCast2(b, which, LLVMTypeOf(step), true, ""), step, "");
    return emit_index(r->e, LLVMBuildAdd(b, first, by, ""), r->index, -1);
}

static LLVMValueRef address_of(const Row *r, LLVMValueRef index, LLVMValueRef which) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef data = LLVMBuildPtrToInt(b, param(r, DATA), r->e->i64, "");
    LLVMValueRef wide = LLVMBuildIntCast2(b, which, r->e->i64, true, "");
    LLVMValueRef part = LLVMBuildAdd(b, param(r, OFFSET), LLVMBuildMul(b, wide, param(r, DISTANCE), ""), "");
    LLVMValueRef element = LLVMBuildAdd(b, data, LLVMBuildMul(b, index, param(r, STRIDE), ""), "");
    return LLVMBuildAdd(b, element, part, "");
}

/* A number, if it is in range, by a function of device_sums.ll; the code goes on where all come together
 * again. */
static void add_number(const Row *r, const char *name, LLVMValueRef which, LLVMValueRef place,
                       LLVMValueRef value) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef index = index_of(r, place);
    LLVMBasicBlockRef after = go_on_if(r, LLVMBuildICmp(b, LLVMIntULT, index, param(r, COUNT), ""));
    LLVMValueRef args[] = {address_of(r, index, which), value};
    call(r->e, name, r->e->void_type, args, 2);
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
}

static void add_each(const Row *r, const char *name) {
    for (int i = 0; i < r->count; i++)
        add_number(r, name, emit_i32(r->e, i), emit_i32(r->e, i), number(r, i));
    LLVMBuildRetVoid(r->e->builder);
}

/* ---- shared by the lanes of a warp */

static int power_of(int count) {
    int power = 1;
    while (power < count) power *= 2;
    return power;
}

/* What it takes to share as many: a power of two. */
static int effort(int power) {
    int rounds = 0;
    for (int left = power; left < LANES; left *= 2) rounds++;
    return 4 * (power - 1) + 2 * rounds;
}

static LLVMValueRef is_upper(const Row *r, int bit) {
    LLVMValueRef set = LLVMBuildAnd(r->e->builder, r->lane, emit_i32(r->e, bit), "");
    return LLVMBuildICmp(r->e->builder, LLVMIntNE, set, emit_i32(r->e, 0), "");
}

/* Each half of the lanes takes over one half of the numbers from the other, and so on, until a lane has the
 * sum of one: lane l that of number l / (LANES / power). */
static LLVMValueRef share(const Row *r, LLVMValueRef *values, int power) {
    LLVMBuilderRef b = r->e->builder;
    int half = power / 2;
    for (int bit = LANES / 2; bit; bit /= 2, half /= 2) {
        LLVMValueRef upper = is_upper(r, bit), by = emit_i32(r->e, bit);
        for (int k = 0; k < half; k++) {
            LLVMValueRef own = LLVMBuildSelect(b, upper, values[k + half], values[k], "");
            LLVMValueRef theirs = LLVMBuildSelect(b, upper, values[k], values[k + half], "");
            values[k] = LLVMBuildFAdd(b, own, shuffle(r, "slope_xor", theirs, by), "");
        }
        if (half == 0) values[0] = LLVMBuildFAdd(b, values[0], shuffle(r, "slope_xor", values[0], by), "");
    }
    return values[0];
}

/* The numbers from the first on; zeros take the place of those that are missing. */
static LLVMValueRef share_part(const Row *r, int first, int power) {
    LLVMValueRef values[LANES];
    for (int i = 0; i < power; i++)
        values[i] = first + i < r->count ? number(r, first + i) : LLVMConstNull(number_type(r->e));
    return share(r, values, power);
}

static LLVMValueRef lane_part(const Row *r, int power, bool within) {
    LLVMValueRef width = emit_i32(r->e, LANES / power);
    return within ? LLVMBuildURem(r->e->builder, r->lane, width, "")
                  : LLVMBuildUDiv(r->e->builder, r->lane, width, "");
}

static void add_shared(const Row *r) {
    LLVMBuilderRef b = r->e->builder;
    int power = power_of(r->count), rest = r->count - power / 2, others = power_of(rest);
    bool in_two = power > r->count && effort(power / 2) + effort(others) < effort(power);
    if (in_two) power /= 2;
    LLVMValueRef sum = share_part(r, 0, power), none = emit_i32(r->e, r->count);
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, lane_part(r, power, true), emit_i32(r->e, 0), "");
    LLVMValueRef mine = LLVMBuildSelect(b, is_first, lane_part(r, power, false), none, "");
    if (in_two) {
        LLVMValueRef other = share_part(r, power, others);
        LLVMValueRef is_second =
            LLVMBuildICmp(b, LLVMIntEQ, lane_part(r, others, true), emit_i32(r->e, 1), "");
        LLVMValueRef place = LLVMBuildAdd(b, lane_part(r, others, false), emit_i32(r->e, power), "");
        sum = LLVMBuildSelect(b, is_second, other, sum, "");
        mine = LLVMBuildSelect(b, is_second, place, mine, "");
    }
    LLVMBasicBlockRef end = go_on_if(r, LLVMBuildICmp(b, LLVMIntULT, mine, none, ""));
    add_number(r, "slope_sum_add", mine, mine, sum);
    LLVMBuildBr(b, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
}

/* ---- places in a row */

/* Of which the next lane has all but the first: what is for one place comes together there, and what is
 * beyond the last lane's goes to the first ones. */
static void add_in_row(const Row *r) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef own = number(r, 0), zero = LLVMConstNull(number_type(r->e)), beyond = zero;
    for (int k = 1; k < r->count; k++) {
        LLVMValueRef from = LLVMBuildSub(b, r->lane, emit_i32(r->e, k), "");
        from = LLVMBuildAnd(b, from, emit_i32(r->e, LANES - 1), "");
        LLVMValueRef theirs = shuffle(r, "slope_other", number(r, k), from);
        LLVMValueRef is_here = LLVMBuildICmp(b, LLVMIntUGE, r->lane, emit_i32(r->e, k), "");
        own = LLVMBuildFAdd(b, own, LLVMBuildSelect(b, is_here, theirs, zero, ""), "");
        beyond = LLVMBuildFAdd(b, beyond, LLVMBuildSelect(b, is_here, zero, theirs, ""), "");
    }
    add_number(r, "slope_sum_own", emit_i32(r->e, 0), emit_i32(r->e, 0), own);
    LLVMBasicBlockRef end =
        go_on_if(r, LLVMBuildICmp(b, LLVMIntULT, r->lane, emit_i32(r->e, r->count - 1), ""));
    add_number(r, "slope_sum_own", emit_i32(r->e, 0), emit_i32(r->e, LANES), beyond);
    LLVMBuildBr(b, end);
    LLVMPositionBuilderAtEnd(b, end);
    LLVMBuildRetVoid(b);
}

/* Whether something holds for all lanes. */
static LLVMValueRef vote(const Row *r, LLVMValueRef condition) {
    LLVMValueRef args[] = {emit_i32(r->e, -1), condition};
    return emit_intrinsic(r->e, "llvm.nvvm.vote.all.sync", NULL, 0, args, 2);
}

/* The first lane's. */
static LLVMValueRef first_of_warp(const Row *r) {
    LLVMBuilderRef b = r->e->builder;
    LLVMTypeRef types[] = {r->e->i32, r->e->i64, r->e->i32};
    LLVMValueRef first = param(r, FIRST);
    LLVMValueRef args[] = {emit_i32(r->e, -1), LLVMBuildIntCast2(b, first, r->e->i64, false, ""),
                           emit_i32(r->e, 0)};
    LLVMValueRef function = emit_external(r->e, "slope_shuffle", r->e->i64, types, 3, "nounwind convergent");
    LLVMValueRef theirs = emit_call_external(r->e, function, args, 3);
    return LLVMBuildIntCast2(b, theirs, LLVMTypeOf(first), false, "");
}

static void add_spread(const Row *r, LLVMValueRef start) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef step = param(r, STEP), zero = LLVMConstNull(LLVMTypeOf(step));
    if (r->count > 1 && r->count <= MOST_IN_ROW) {
        LLVMValueRef lane = LLVMBuildIntCast2(b, r->lane, LLVMTypeOf(step), false, "");
        LLVMValueRef expected = LLVMBuildAdd(b, start, LLVMBuildMul(b, lane, step, ""), "");
        LLVMValueRef in_row = vote(r, LLVMBuildICmp(b, LLVMIntEQ, param(r, FIRST), expected, ""));
        LLVMValueRef by_elements = LLVMBuildICmp(b, LLVMIntNE, step, zero, "");
        LLVMValueRef alone = LLVMBuildICmp(b, LLVMIntEQ, param(r, DISTANCE), emit_i64(r->e, 0), "");
        in_row = LLVMBuildAnd(b, in_row, LLVMBuildAnd(b, by_elements, alone, ""), "");
        LLVMBasicBlockRef otherwise = go_on_if(r, in_row);
        add_in_row(r);
        LLVMPositionBuilderAtEnd(b, otherwise);
    }
    add_each(r, "slope_sum_own");
}

/* ---- some lanes of a warp */

/* They find their numbers in memory. */
static void add_some(const Row *r) {
    LLVMBuilderRef b = r->e->builder;
    LLVMTypeRef type = number_type(r->e);
    LLVMTypeRef types[] = {r->e->ptr, r->e->i64, r->e->i64, r->e->i64, r->e->i64, r->e->i64,
                           r->e->i64, r->e->i64, r->e->i1,  r->e->ptr, r->e->i32};
    for (int i = 0; i < r->count; i++) {
        LLVMValueRef index = emit_i32(r->e, i);
        LLVMBuildStore(b, number(r, i), LLVMBuildInBoundsGEP2(b, type, r->own, &index, 1, ""));
    }
    LLVMValueRef args[] = {param(r, DATA),
                           param(r, COUNT),
                           param(r, STRIDE),
                           emit_index(r->e, param(r, FIRST), r->index, -1),
                           LLVMBuildIntCast2(b, param(r, STEP), r->e->i64, true, ""),
                           param(r, OFFSET),
                           param(r, DISTANCE),
                           emit_i64(r->e, 64 - type_bits(r->index)),
                           LLVMConstInt(r->e->i1, type_is_signed(r->index), false),
                           r->own,
                           emit_i32(r->e, r->count)};
    LLVMValueRef function = emit_external(r->e, with_kind(r->e, "slope_sums_some", r->e->sums.kind),
                                          r->e->void_type, types, 11, "nounwind convergent");
    emit_call_external(r->e, function, args, 11);
    LLVMBuildRetVoid(b);
}

/* ---- the function */

static void build_row(Row *r, bool varies) {
    LLVMBuilderRef b = r->e->builder;
    LLVMValueRef active = emit_call_external(
        r->e, emit_external(r->e, "slope_active", r->e->i32, NULL, 0, "nounwind convergent"), NULL, 0);
    r->own = LLVMBuildAlloca(b, LLVMArrayType2(number_type(r->e), (uint64_t)r->count), "");
    r->lane = emit_intrinsic(r->e, "llvm.nvvm.read.ptx.sreg.laneid", NULL, 0, NULL, 0);
    LLVMBasicBlockRef some = go_on_if(r, LLVMBuildICmp(b, LLVMIntEQ, active, emit_i32(r->e, -1), "")),
                      spread = NULL;
    LLVMValueRef start = varies ? first_of_warp(r) : NULL;
    if (varies) spread = go_on_if(r, vote(r, LLVMBuildICmp(b, LLVMIntEQ, param(r, FIRST), start, "")));
    add_shared(r);
    if (spread) {
        LLVMPositionBuilderAtEnd(b, spread);
        add_spread(r, start);
    }
    LLVMPositionBuilderAtEnd(b, some);
    add_some(r);
}

static LLVMValueRef row_function(Emitter *e, const SumRow *row, const Type *index, LLVMTypeRef index_type) {
    LLVMTypeRef types[VALUES + LANES] = {e->ptr, e->i64, e->i64, index_type, index_type, e->i64, e->i64};
    const char *name = format_text(&e->arena, "slope_row_%d_%s%s", row->count, type_text(&e->arena, index),
                                   row->varies ? "_apart" : "");
    for (int i = 0; i < row->count; i++) types[VALUES + i] = number_type(e);
    DeviceHelper helper = emit_device_helper(e, name, types, VALUES + row->count);
    if (!helper.from) return helper.function;
    Row r = {.e = e, .function = helper.function, .index = index, .count = row->count};
    build_row(&r, row->varies);
    emit_device_helper_end(e, &helper);
    return helper.function;
}

static LLVMValueRef add_up(Emitter *e, const SumTerms *terms) {
    LLVMValueRef sum = emit_use(e, terms->at[0], 1);
    for (int i = 1; i < terms->count; i++)
        sum = emit_freely(e, LLVMBuildFAdd(e->builder, sum, emit_use(e, terms->at[i], 1), ""));
    return sum;
}

void emit_device_row(Emitter *e, const SumRow *row) {
    const Inst *access = row->access;
    const Type *index = access->args[1]->type;
    LLVMValueRef buffer = emit_use(e, access, 0), first = emit_use(e, access, 1), args[VALUES + LANES];
    LLVMTypeRef index_type = LLVMTypeOf(first);
    bool is_checked = !inst_has(access, INST_UNCHECKED) && !e->options->unchecked;
    args[DATA] = LLVMBuildExtractValue(e->builder, buffer, 0, "");
    args[COUNT] = is_checked ? LLVMBuildExtractValue(e->builder, buffer, 1, "") : emit_i64(e, INT64_MAX);
    args[STRIDE] = emit_i64(e, type_layout(access->results[0]->type->args[0], LAYOUT_scalar).stride);
    args[FIRST] = first;
    args[STEP] = LLVMConstInt(index_type, (uint64_t)row->step, true);
    args[OFFSET] = emit_i64(e, row->offset);
    args[DISTANCE] = emit_i64(e, row->distance);
    for (int i = 0; i < row->count; i++) args[VALUES + i] = add_up(e, &row->terms[i]);
    emit_call_external(e, row_function(e, row, index, index_type), args, VALUES + row->count);
}
