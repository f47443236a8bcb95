/* The native form of a function: as other programs call it.
 *
 * In memory, scalars and pointers go by value, half as its bits, everything else by address, results behind
 * the parameters.
 *
 * In files, it is the function that the header declares (emit/clike), as a C compiler would have made it: a
 * half is a float, vectors and buffers are structs that are passed and returned by value, other results are
 * written through the first parameter. How a struct travels is up to the processor's rules; these here are
 * small, and all that is in one has the same type:
 *   aarch64   up to four floats or doubles in a register each; what else fits into 16 bytes in one or two; the rest is a copy of the caller's, given by address
 *   x86-64    what fits into 16 bytes in one or two registers, if there are so many left, with two floats in each;
 *             the rest is on the stack */
#include "emit/llvm/llvm.h"

enum { EIGHT = 8, MOST_IN_REGISTERS = 16 };

/* Where a parameter comes from: what LLVM calls one. */
typedef struct Passed {
    LLVMTypeRef type;
    const Type *value; /* what it is; NULL: the address of it is given */
    int arg;           /* its place in the list of pointers */
    int64_t on_stack;  /* bytes, of which LLVM has the address; 0: it is not there */
    /* its registers, or what stands for them on the stack, begin at a multiple of eight bytes */
    bool is_aligned;
} Passed;

typedef struct Native {
    Emitter *e;
    const Func *func;
    Passed *passed;
    int count;
    const Type *result;      /* by value; NULL: there is none */
    LLVMTypeRef result_type; /* void: it is written through the first parameter, if there is one */
    int whole, floating;     /* registers that are left, for integers and addresses, and for floats */
} Native;

static bool is_single(const Type *type) { return type_is_scalar(type) || type->kind == TYPE_pointer; }

static int count_plain_params(const Func *func) {
    int count = 0;
    for (int i = 0; i < func->nparams; i++) count += !(func->params[i].flags & PARAM_RESULT);
    return count;
}

/* ---- how C passes things */

static LLVMTypeRef single_type(Emitter *e, const Type *type) {
    if (type->kind == TYPE_half) return e->for_jit ? e->i16 : e->f32;
    return emit_memory_type(e, type);
}

static bool has_floats(const Type *type) {
    TypeKind kind = type_element(type)->kind;
    return type->kind == TYPE_vector && (kind == TYPE_float || kind == TYPE_double);
}

static LLVMTypeRef arm_registers(Emitter *e, const Type *type, int64_t size) {
    if (has_floats(type)) return LLVMArrayType2(emit_type(e, type->args[0]), (uint64_t)type_count(type));
    if (size > MOST_IN_REGISTERS) return NULL;
    return size > EIGHT ? LLVMArrayType2(e->i64, 2) : e->i64;
}

/* What is in the eight bytes from there on. */
static LLVMTypeRef x86_register(Emitter *e, const Type *type, int64_t left) {
    if (!has_floats(type)) return e->i64;
    if (type->args[0]->kind == TYPE_double) return e->f64;
    return left >= EIGHT ? LLVMVectorType(e->f32, 2) : e->f32;
}

static LLVMTypeRef x86_registers(Emitter *e, const Type *type, int64_t size) {
    if (size > MOST_IN_REGISTERS) return NULL;
    LLVMTypeRef first = x86_register(e, type, size);
    if (size <= EIGHT) return first;
    LLVMTypeRef both[] = {first, x86_register(e, type, size - EIGHT)};
    return LLVMStructTypeInContext(e->context, both, 2, false);
}

/* NULL: such a struct is not passed in registers. */
static LLVMTypeRef registers(Emitter *e, const Type *type) {
    int64_t size = type_layout(type, LAYOUT_scalar).size;
    switch (e->habits.structs) {
    case STRUCTS_aarch64: return arm_registers(e, type, size);
    case STRUCTS_x86_64: return x86_registers(e, type, size);
    case STRUCTS_unknown: break;
    }
    emit_fail(e, "it is not known how C passes a '%s' on this processor", type_text(&e->arena, type));
    return NULL;
}

/* Are there so many registers left? */
static bool take(int *left, int count) {
    if (*left < count) return false;
    *left -= count;
    return true;
}

static void add_address(Native *n, int arg) {
    take(&n->whole, 1);
    n->passed[n->count++] = (Passed){.type = n->e->ptr, .arg = arg};
}

static void add_single(Native *n, const Type *type, int arg) {
    take(type_is_float(type) ? &n->floating : &n->whole, 1);
    n->passed[n->count++] = (Passed){.type = single_type(n->e, type), .value = type, .arg = arg};
}

static void add_struct(Native *n, const Type *type, int arg) {
    bool is_x86 = n->e->habits.structs == STRUCTS_x86_64;
    int64_t size = type_layout(type, LAYOUT_scalar).size;
    LLVMTypeRef parts = registers(n->e, type);
    bool fits = parts && take(has_floats(type) ? &n->floating : &n->whole, size > EIGHT ? 2 : 1);
    if (parts && (fits || !is_x86)) {
        n->passed[n->count++] =
            (Passed){.type = parts, .value = type, .arg = arg, .is_aligned = !is_x86 && has_floats(type)};
    } else if (is_x86) {
        n->passed[n->count++] = (Passed){.type = n->e->ptr, .arg = arg, .on_stack = size};
    } else {
        add_address(n, arg);
    }
}

static void add_param(Native *n, const Param *param, int arg) {
    if (param->flags & PARAM_BY_ADDRESS) add_address(n, arg);
    else if (is_single(param->type)) add_single(n, param->type, arg);
    else if (n->e->for_jit) add_address(n, arg);
    else add_struct(n, param->type, arg);
}

/* ---- the whole signature */

static void plan_result(Native *n) {
    const Func *func = n->func;
    n->result_type = n->e->void_type;
    if (func->nresults != 1) return;
    const Type *type = func->results[0];
    if (n->e->for_jit && !is_single(type)) return;
    n->result = type;
    LLVMTypeRef parts = is_single(type) ? single_type(n->e, type) : registers(n->e, type);
    if (parts) n->result_type = parts;
    else add_address(n, func->nparams);
}

/* In the list of pointers, results come behind parameters. */
static void plan_params(Native *n) {
    const Func *func = n->func;
    int plain = 0, result = count_plain_params(func);
    for (int i = 0; i < func->nparams; i++) {
        bool is_result = (func->params[i].flags & PARAM_RESULT) != 0;
        int arg = is_result ? result++ : plain++;
        if (!n->e->for_jit || !is_result) add_param(n, &func->params[i], arg);
    }
    for (int i = plain; i < result && n->e->for_jit; i++) add_address(n, i);
    for (int i = 0; i < func->nresults && !n->result; i++) add_address(n, func->nparams + i);
}

static Native plan(Emitter *e, const Func *func) {
    enum { WHOLE = 6, FLOATING = 8, GROUPS = 3 }; /* registers of x86-64 */
    bool is_kernel = func->group_size[0] > 0;
    Native n = {.e = e, .func = func, .whole = WHOLE - (is_kernel ? GROUPS : 0), .floating = FLOATING};
    n.passed = arena_array(&e->arena, Passed, func->nparams + func->nresults + 1);
    plan_result(&n);
    plan_params(&n);
    return n;
}

static void add_type_attribute(Emitter *e, LLVMValueRef function, unsigned index, const char *name,
                               int64_t size) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)size);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateTypeAttribute(e->context, kind, type));
}

static bool is_written_result(const Native *n) {
    return n->result && LLVMGetTypeKind(n->result_type) == LLVMVoidTypeKind;
}

static void describe_params(const Native *n, LLVMValueRef function, int first) {
    for (int i = 0; i < n->count; i++) {
        unsigned index = count_of(first + i + 1);
        if (i == 0 && is_written_result(n))
            add_type_attribute(n->e, function, index, "sret", type_layout(n->result, LAYOUT_scalar).size);
        if (n->passed[i].on_stack) {
            add_type_attribute(n->e, function, index, "byval", n->passed[i].on_stack);
            emit_attribute(n->e, function, index, "align", EIGHT);
        }
        if (n->passed[i].is_aligned) emit_attribute(n->e, function, index, "alignstack", EIGHT);
    }
}

/* C expects small integers extended to 32 bits. */
static void extend_result(const Native *n, LLVMValueRef function) {
    if (!n->result || !type_is_scalar(n->result) || n->result->kind > TYPE_uint16) return;
    emit_attribute(n->e, function, LLVMAttributeReturnIndex,
                   type_is_signed(n->result) ? "signext" : "zeroext", 0);
}

static LLVMValueRef declare(const Native *n, int first) {
    Emitter *e = n->e;
    LLVMTypeRef *types = arena_array(&e->arena, LLVMTypeRef, first + n->count + 1);
    for (int i = 0; i < first; i++) types[i] = e->i32;
    for (int i = 0; i < n->count; i++) types[first + i] = n->passed[i].type;
    LLVMTypeRef type = LLVMFunctionType(n->result_type, types, count_of(first + n->count), false);
    LLVMValueRef function = LLVMAddFunction(e->llvm, emit_symbol_name(e, n->func->name->text, ""), type);
    emit_attribute(e, function, of_function, "nounwind", 0);
    describe_params(n, function, first);
    extend_result(n, function);
    return function;
}

/* ---- to and from the list of pointers */

LLVMValueRef emit_list(Emitter *e, const Place *places, int count) {
    LLVMValueRef args = emit_alloca(e, count * 8, 8);
    for (int i = 0; i < count; i++)
        LLVMSetAlignment(LLVMBuildStore(e->builder, places[i].address, emit_at(e, args, i * 8)), 8);
    return args;
}

/* Registers may be wider than what they hold. */
static Layout slot_layout(const Type *type) {
    Layout layout = type_layout(type, LAYOUT_scalar);
    if (is_single(type)) return layout;
    layout.size = (layout.size + EIGHT - 1) / EIGHT * EIGHT;
    layout.align = EIGHT;
    return layout;
}

static bool is_float_half(const Emitter *e, const Type *type) {
    return type->kind == TYPE_half && !e->for_jit;
}

static LLVMValueRef spilled(Emitter *e, LLVMValueRef value, const Type *type) {
    Layout layout = slot_layout(type);
    LLVMValueRef slot = emit_alloca(e, layout.size, layout.align);
    if (is_float_half(e, type)) value = LLVMBuildFPTrunc(e->builder, value, e->f16, "");
    LLVMSetAlignment(LLVMBuildStore(e->builder, value, slot), (unsigned)layout.align);
    return slot;
}

static LLVMValueRef reloaded(const Native *n, LLVMValueRef slot) {
    Emitter *e = n->e;
    bool is_half = is_float_half(e, n->result);
    LLVMValueRef value = LLVMBuildLoad2(e->builder, is_half ? e->f16 : n->result_type, slot, "");
    LLVMSetAlignment(value, (unsigned)slot_layout(n->result).align);
    return is_half ? LLVMBuildFPExt(e->builder, value, e->f32, "") : value;
}

/* Registers hold it as code does. */
static bool is_same(Emitter *e, const Type *type) {
    return e->for_jit && is_single(type) && single_type(e, type) == emit_type(e, type);
}

/* `in_memory`: all of them. */
static Place *places_of(const Native *n, LLVMValueRef function, int first, bool in_memory) {
    Emitter *e = n->e;
    Place *places = arena_array(&e->arena, Place, n->func->nparams + n->func->nresults + 1);
    for (int i = 0; i < n->count; i++) {
        LLVMValueRef value = LLVMGetParam(function, count_of(first + i));
        const Type *type = n->passed[i].value;
        Place *place = &places[n->passed[i].arg];
        if (!type) place->address = value;
        else if (!in_memory && is_same(e, type)) place->value = value;
        else place->address = spilled(e, value, type);
    }
    return places;
}

LLVMValueRef emit_native(Emitter *e, const Way *way) {
    const Func *func = way->info->func;
    Native n = plan(e, func);
    LLVMValueRef function = declare(&n, 0);
    FuncState state;
    emit_begin(e, &state, function);
    Place *places = places_of(&n, function, 0, way->inner != NULL), *result = &places[func->nparams];
    bool is_returned = n.result && !is_written_result(&n);
    if (is_returned && (way->inner || !is_same(e, n.result))) {
        Layout layout = slot_layout(n.result);
        result->address = emit_alloca(e, layout.size, layout.align);
        if (way->inner) /* it is returned if the call does not end well */
            emit_zero(e, result->address, layout.size, layout.align);
    }
    emit_call_places(e, way, places);
    if (is_returned)
        LLVMBuildRet(e->builder, result->address ? reloaded(&n, result->address) : result->value);
    else LLVMBuildRetVoid(e->builder);
    return function;
}

LLVMValueRef emit_native_kernel(Emitter *e, const Func *func, FuncState *state, LLVMValueRef *groups) {
    enum { GROUPS = 3 };
    Native n = plan(e, func);
    LLVMValueRef function = declare(&n, GROUPS);
    emit_begin(e, state, function);
    *groups = emit_alloca(e, GROUPS * 4, 4);
    for (int i = 0; i < GROUPS; i++) {
        LLVMValueRef count = LLVMGetParam(function, count_of(i));
        LLVMSetAlignment(LLVMBuildStore(e->builder, count, emit_at(e, *groups, i * 4)), 4);
    }
    return emit_list(e, places_of(&n, function, GROUPS, true), func->nparams + func->nresults);
}
