/* Functions: signature, attributes, body. The hidden first parameter is the context (RtContext). */
#include "emit/llvm/llvm.h"

/* ---- values of the function at hand */

LLVMBasicBlockRef emit_block(Emitter *e, const char *name) {
    return LLVMAppendBasicBlockInContext(e->context, e->at->function, name);
}

void emit_set(Emitter *e, const Val *v, Value value) {
    if (ir_target(v->type)) value.space = (uint8_t)ir_space(v->type);
    e->at->values[v->id] = value;
    if (e->options->level > 0 || !v->name || !value.value || LLVMIsConstant(value.value)) return;
    size_t length;
    LLVMGetValueName2(value.value, &length);
    if (length == 0) LLVMSetValueName2(value.value, v->name->text, (size_t)v->name->len);
}

void emit_result(Emitter *e, const Inst *inst, LLVMValueRef value) {
    emit_set(e, inst->results[0], emit_plain_value(value));
}

Value emit_value(Emitter *e, const Val *v) {
    if (val_is_const(v)) return emit_plain_value(emit_constant(e, v));
    Value value = e->at->values[v->id];
    if (value.is_parameter) {
        value.value = LLVMBuildLoad2(e->builder, emit_type(e, v->type), value.value, "");
        value.is_parameter = false;
    }
    return value;
}

Value emit_operand(Emitter *e, const Inst *inst, int index) {
    return emit_value(e, ir_resolve(inst->args[index]));
}

LLVMValueRef emit_use(Emitter *e, const Inst *inst, int index) {
    Value value = emit_operand(e, inst, index);
    if (!value.guard) return value.value;
    return emit_plain_address(e, value, inst->args[index]->type->args[0], false);
}

/* ---- signature */

/* How many floating-point results come back in registers. C's convention for x86-64 has two of those, then
 * takes the x87 stack: slow, and LLVM 19 encodes the way from there wrongly for the upper registers of
 * AVX-512. Its regcall has more and mixes up arguments. */
#if defined(__x86_64__)
enum { MOST_RESULTS = 32, MOST_FLOAT_RESULTS = 2 };
#else
enum { MOST_RESULTS = 32, MOST_FLOAT_RESULTS = MOST_RESULTS };
#endif

/* More results than there are registers go through memory that the caller provides, the last parameter: LLVM
 * takes time that grows with the square of their number otherwise. */
static bool has_many_results(const Emitter *e, const Func *func) {
    const int most_floats = e->device ? MOST_RESULTS : MOST_FLOAT_RESULTS;
    if (func->nresults > MOST_RESULTS) return true;
    int floats = 0;
    for (int i = 0; i < func->nresults; i++)
        floats += type_is_float(func->results[i]) || func->results[i]->kind == TYPE_vector;
    return floats > most_floats;
}

/* Registers for vectors that a parameter takes, also for a float. */
static int vector_registers(const Param *param) {
    if (param->flags & PARAM_BY_ADDRESS) return 0;
    if (param->type->kind != TYPE_vector) return type_is_float(param->type);
    int64_t size = type_layout(param->type, LAYOUT_scalar).size;
    return size > 16 ? (int)(size / 8) : 1;
}

/* Of many parameters, the first are passed as such; the others lie in memory that the caller provides, for
 * the same reason, and are taken from there where they are used: what is taken at once lives through all
 * blocks up to its use, and the time for registers grows with the product. So do those from the first vector
 * of three on that finds no register, and from the first bool1 on: LLVM 19 crashes over them, without
 * optimisation, on AArch64 and on x86-64 with AVX-512. */
static int count_direct_params(const Func *func) {
    const int many = 128, registers = 8;
    const int most = func->nparams > many ? 2 * registers : many;
    int count = 0, taken = 0;
    for (; count < func->nparams && count < most; count++) {
        const Param *param = &func->params[count];
        taken += vector_registers(param);
        bool is_odd = param->type->kind == TYPE_vector && type_count(param->type) == 3;
        bool is_truth = param->type->kind == TYPE_vector && type_count(param->type) == 1 &&
                        param->type->args[0]->kind == TYPE_bool;
        if ((is_odd && taken > registers) || is_truth) break;
    }
    return count;
}

/* In memory, a vector of three, or something with one in it. */
static bool has_triple(const Type *type) {
    if (type->kind == TYPE_vector) return type_count(type) == 3;
    if (type->kind == TYPE_array) return has_triple(type->args[0]);
    if (type->kind != TYPE_record) return false;
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++)
        if (has_triple(record->fields[i].type)) return true;
    return false;
}

static bool has_many_params(const FuncInfo *info) { return info->func->nparams > info->direct_params; }

/* Where among LLVM's parameters the address of the others is, and that of results. */
static int rest_index(const FuncInfo *info) { return info->direct_params + 1; }

static int results_index(const FuncInfo *info) { return rest_index(info) + has_many_params(info); }

static LLVMTypeRef param_type(Emitter *e, const Param *param) {
    return param->flags & PARAM_BY_ADDRESS ? e->ptr : emit_type(e, param->type);
}

/* Of the memory with parameters. */
static LLVMTypeRef rest_type(Emitter *e, const FuncInfo *info) {
    const Func *func = info->func;
    int first = info->direct_params, count = func->nparams - first;
    LLVMTypeRef *types = arena_array(&e->arena, LLVMTypeRef, count + 1);
    for (int i = 0; i < count; i++) types[i] = param_type(e, &func->params[first + i]);
    return LLVMStructTypeInContext(e->context, types, count_of(count), false);
}

static LLVMTypeRef result_type(Emitter *e, const FuncInfo *info) {
    const Func *func = info->func;
    if (func->nresults == 0 || info->many_results) return e->void_type;
    if (func->nresults == 1) return emit_type(e, func->results[0]);
    LLVMTypeRef *types = arena_array(&e->arena, LLVMTypeRef, func->nresults);
    for (int i = 0; i < func->nresults; i++) types[i] = emit_type(e, func->results[i]);
    return LLVMStructTypeInContext(e->context, types, count_of(func->nresults), false);
}

static LLVMTypeRef func_type(Emitter *e, const FuncInfo *info) {
    const Func *func = info->func;
    int count = results_index(info);
    LLVMTypeRef *types = arena_array(&e->arena, LLVMTypeRef, count + 1);
    types[0] = e->ptr;
    for (int i = 0; i < info->direct_params; i++) types[i + 1] = param_type(e, &func->params[i]);
    if (has_many_params(info)) types[rest_index(info)] = e->ptr;
    if (info->many_results) types[count++] = e->ptr;
    return LLVMFunctionType(result_type(e, info), types, count_of(count), false);
}

/* Where the next of many results lies. */
static int64_t result_offset(const Type *type, int64_t *end) {
    Layout layout = type_layout(type, LAYOUT_scalar);
    int64_t at = (*end + layout.align - 1) / layout.align * layout.align;
    *end = at + layout.size;
    return at;
}

static LLVMValueRef result_slot(Emitter *e, LLVMValueRef memory, const Type *type, int64_t *end) {
    return emit_at(e, memory, result_offset(type, end));
}

static bool *find_escapes(Emitter *e, const Func *func);

static void address_attributes(Emitter *e, LLVMValueRef function, unsigned index, const Param *param,
                               bool escapes) {
    if (!emit_is_alone(&e->reached, param)) return;
    Layout layout = type_layout(param->type, LAYOUT_scalar);
    emit_attribute(e, function, index, "noalias", 0);
    emit_attribute(e, function, index, "nonnull", 0);
    if (layout.size > 0) emit_attribute(e, function, index, "dereferenceable", (uint64_t)layout.size);
    if (param->dir == DIR_in) emit_attribute(e, function, index, "readonly", 0);
    if (!escapes) emit_attribute(e, function, index, "nocapture", 0);
}

/* Of the parameter, by its index: the caller's memory for this call alone. */
static void memory_attributes(Emitter *e, LLVMValueRef function, int index) {
    emit_attribute(e, function, count_of(index + 1), "noalias", 0);
    emit_attribute(e, function, count_of(index + 1), "nocapture", 0);
}

static void param_attributes(Emitter *e, const FuncInfo *info) {
    const Func *func = info->func;
    LLVMValueRef function = info->function;
    emit_attribute(e, function, 1, "nonnull", 0);
    emit_attribute(e, function, 1, "dereferenceable", sizeof(RtContext));
    emit_attribute(e, function, 1, "align", _Alignof(RtContext));
    bool *escapes = find_escapes(e, func);
    for (int i = 0; i < info->direct_params; i++) {
        const Param *param = &func->params[i];
        if (param->flags & PARAM_BY_ADDRESS)
            address_attributes(e, function, count_of(i + 2), param, !escapes || escapes[i]);
    }
    if (has_many_params(info)) memory_attributes(e, function, rest_index(info));
    if (info->many_results) memory_attributes(e, function, results_index(info));
}

/* How much there is of what LLVM takes more than its share of time for. */
typedef struct FuncSize {
    int branches, loops; /* loops are branches, too */
    int compare;         /* branches that compare floats */
    int longest;         /* instructions without a branch between them */
    int writes;          /* to elements of arrays that an index tells, likewise */
    int depth;           /* of loops in each other */
    int all, likely;     /* instructions, and those of them in what a choice within calls likely */
} FuncSize;

/* An element of a tape has an index and an address. */
static int llvm_length(const Inst *inst) { return op_has(inst->op, OP_TAPE) ? 3 : 1; }

static bool compares_floats(const Inst *branch) {
    const Val *asked = ir_resolve(branch->args[0]);
    return asked->kind == VAL_inst && op_has(asked->inst->op, OP_COMPARES) &&
           type_is_float(asked->inst->args[0]->type);
}

static bool writes_by_index(const Inst *inst) {
    if (inst->op != OP_store) return false;
    const Val *address = ir_resolve(inst->args[0]);
    while (address->kind == VAL_inst && (address->inst->op == OP_elem || address->inst->op == OP_field)) {
        if (address->inst->op == OP_elem && !val_is_const(ir_resolve(address->inst->args[1]))) return true;
        address = ir_resolve(address->inst->args[0]);
    }
    return false;
}

static void measure(const Region *region, int depth, FuncSize *size) {
    int length = 0, writes = 0;
    for (const Inst *inst = region->first; inst; length += llvm_length(inst), inst = inst->next) {
        writes += writes_by_index(inst);
        size->branches += inst->op == OP_if || inst->op == OP_loop;
        size->loops += inst->op == OP_loop;
        size->compare += inst->op == OP_if && compares_floats(inst);
        if (inst->op == OP_if && inst_has(inst, INST_LIKELY)) size->likely += region_size(inst->regions[0]);
        for (int i = 0; i < inst->nregions; i++)
            measure(inst->regions[i], depth + (inst->op == OP_loop), size);
    }
    size->all += length;
    if (length > size->longest) size->longest = length;
    if (writes > size->writes) size->writes = writes;
    if (depth > size->depth) size->depth = depth;
}

/* LLVM passes what is in memory as a value where it likes, and such a vector may then find no register: on
 * AArch64 its number is lost. It leaves functions alone of which the address is known elsewhere. (In large
 * ones the search takes seconds.) */
#if defined(__aarch64__)
enum { VECTORS_GET_LOST = true };
#else
enum { VECTORS_GET_LOST = false };
#endif

static bool loses_vectors(const FuncInfo *info) {
    const Func *func = info->func;
    const int registers = 8, in_memory = 4;
    int taken = 0;
    bool any = false;
    if (!VECTORS_GET_LOST) return false;
    for (int i = 0; i < func->nparams; i++) {
        const Param *param = &func->params[i];
        bool is_in_memory = (param->flags & PARAM_BY_ADDRESS) || i >= info->direct_params;
        taken += is_in_memory ? in_memory : vector_registers(param);
        any = any || (is_in_memory && has_triple(param->type));
    }
    return any && taken > registers;
}

/* Of its callers, before LLVM looks at parameters. What calls itself stays a function. */
static bool becomes_a_part(const FuncInfo *info) {
    static const char name[] = "alwaysinline";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    return LLVMGetEnumAttributeAtIndex(info->function, of_function, kind) && !info->reached->is_cyclic;
}

/* Called by its ways in alone (thunk.c). As a part of those, it would be optimised once more, which gains
 * nothing that a call would lose, unless it is small. */
static bool stands_alone(const FuncInfo *info) {
    enum { SMALL = 64 };
    const Func *func = info->func;
    bool is_kernel = func->group_size[0] > 0, is_part = (func->flags & FUNC_INLINE) != 0;
    return (func->flags & FUNC_EXPORT) && !is_kernel && !is_part && info->reached->callers.count == 0 &&
           info->reached->whole > SMALL;
}

bool emit_stands_alone(const Emitter *e, const FuncInfo *info) {
    return stands_alone(info) && e->options->level > 0;
}

/* Without rows of numbers, what LLVM finds to do at once is not worth what it takes to bring it together; to
 * look for it takes up to half of the time. Without loops there is nothing at all to find; with them, rounds
 * may be done at once, but of one round nothing. */
static bool loses_by_vectors(const FuncInfo *info, uint32_t seek) {
    return stands_alone(info) && !(info->reached->needs & seek);
}

/* The same of loops with rows of numbers in them, where registers are wider than most rows: gradients of one
 * item then take 0.83 to 1.0 of the time. It is no matter in what is brief; and what is long does all items
 * in a nest, where pairs of numbers gain 7 %. */
static bool has_short_rows(const Emitter *e, const FuncInfo *info) {
    enum { WIDE = 32, BRIEF = 100, LONG = 500 };
    const ReachedFunc *reached = info->reached;
    return e->habits.row >= WIDE && reached->whole > BRIEF && reached->whole < LONG && stands_alone(info);
}

/* The time of many of LLVM's passes grows with the square of the loops that follow one another, with the cube
 * of the depth of those in each other, for branches somewhat less, but with their cube where they compare one
 * float again and again, and that for vectors with the square of a block's length: what the compiler's own
 * passes have made of such a function must do. Beyond that, registers and the order of instructions take
 * minutes. Where elements of arrays are written by indices, each access is compared with hundreds before it
 * when instructions are selected and ordered, unless they are selected the quick way. */
static void size_attributes(Emitter *e, FuncInfo *info) {
    enum { MANY_LOOPS = 128, DEEP_LOOPS = 12, MANY_COMPARE = 200, TOO_MANY_BRANCHES = 1000 };
    enum { LONG_BLOCK = 2000, TOO_LONG_BLOCK = 12000, MANY_WRITES = 200 };
    enum {
        MUCH_LIKELY = 4
    }; /* a quarter of what is unlikely: then it has a nest that runs as a rule if another does not */
    const Func *func = info->func;
    FuncSize size = {0};
    if (func->body) measure(func->body, 0, &size);
    bool is_large = size.branches > TOO_MANY_BRANCHES || size.compare > MANY_COMPARE;
    if (!e->device)
        is_large |= size.loops > MANY_LOOPS || size.depth > DEEP_LOOPS || size.longest > TOO_LONG_BLOCK;
    bool is_unlikely = (func->flags & FUNC_UNLIKELY) && size.likely <= size.all / MUCH_LIKELY && !e->device;
    bool is_quick = is_unlikely || (size.writes > MANY_WRITES && !e->device && e->options->level > 0);
    is_large |= is_unlikely;
    if (func->flags & FUNC_INLINE) is_large = is_quick = false;
    if (is_quick) emit_string_attribute(e, info->function, QUICKLY, "");
    info->is_large = is_large;
    if (is_large) emit_attribute(e, info->function, of_function, WITHOUT_PASSES, 0);
    else if ((func->flags & FUNC_INLINE) ||
             (e->options->level > 0 && !is_quick && reach_is_joined(info->reached)))
        emit_attribute(e, info->function, of_function, "alwaysinline", 0);
    else if (info->reached->is_too_much) emit_attribute(e, info->function, of_function, "noinline", 0);
    if (size.longest > LONG_BLOCK || (func->flags & FUNC_ONE_BY_ONE) ||
        loses_by_vectors(info, NEEDS_LOOP | NEEDS_ROWS))
        emit_attribute(e, info->function, of_function, WITHOUT_VECTORS, 0);
    else if (e->options->level > 0 && (info->reached->needs & NEEDS_LOOP) &&
             (loses_by_vectors(info, NEEDS_LOOP_ROWS) || has_short_rows(e, info)))
        emit_string_attribute(e, info->function, ROUNDS_ALONE, "");
    if (is_large || is_quick || (func->flags & FUNC_NOINLINE) || emit_stands_alone(e, info))
        emit_attribute(e, info->function, of_function, "noinline", 0);
    e->is_huge = e->is_huge || size.branches > TOO_MANY_BRANCHES || size.longest > TOO_LONG_BLOCK;
}

void emit_func_declare(Emitter *e, FuncInfo *info) {
    Func *func = info->func;
    info->direct_params = count_direct_params(func);
    info->many_results = has_many_results(e, func);
    info->type = func_type(e, info);
    const char *name = format_text(&e->arena, "%s.body", func->name->text);
    info->function = LLVMAddFunction(e->llvm, name, info->type);
    LLVMSetLinkage(info->function, LLVMInternalLinkage);
    emit_attribute(e, info->function, of_function, "nounwind", 0);
    if (e->device) emit_attribute(e, info->function, of_function, "convergent", 0);
    else emit_string_attribute(e, info->function, "probe-stack", "inline-asm");
    if (e->options->debug) emit_string_attribute(e, info->function, "frame-pointer", "all");
    size_attributes(e, info);
    param_attributes(e, info);
    if (info->is_large || (loses_vectors(info) && !becomes_a_part(info)))
        vec_push(&e->arena, &e->kept, info->function);
    emit_debug_func(e, info);
}

/* ---- which by-address parameters escape: their address, or one into them, is used for more than an access. (LLVM follows
 * calls by itself.) */

typedef struct EscapeSearch {
    int *origin; /* by Val.id: 1 + parameter, or 0 */
    bool *escapes;
} EscapeSearch;

static void note_escapes(void *user, Inst *inst) {
    EscapeSearch *search = user;
    for (int i = 0; i < inst->nargs; i++) {
        const Val *v = ir_resolve(inst->args[i]);
        int origin = val_is_const(v) ? 0 : search->origin[v->id];
        if (origin == 0) continue;
        Role role = ir_role(inst, i);
        if (role == ROLE_escape || role == ROLE_move || inst->op == OP_call)
            search->escapes[origin - 1] = true;
        if (role == ROLE_part) search->origin[inst->results[0]->id] = origin;
    }
}

static bool *find_escapes(Emitter *e, const Func *func) {
    bool any = false;
    for (int i = 0; i < func->nparams; i++) any |= (func->params[i].flags & PARAM_BY_ADDRESS) != 0;
    if (!any) return NULL;
    EscapeSearch search = {arena_array(&e->arena, int, func->nvals + 1),
                           arena_array(&e->arena, bool, func->nparams)};
    for (int i = 0; i < func->nparams; i++)
        if (func->params[i].flags & PARAM_BY_ADDRESS) search.origin[func->body->params[i]->id] = i + 1;
    region_walk(func->body, note_escapes, &search);
    return search.escapes;
}

/* ---- calls */

static LLVMValueRef argument(Emitter *e, const Inst *inst, int index) {
    const Param *param = &inst->callee->params[index];
    if (!(param->flags & PARAM_BY_ADDRESS)) return emit_use(e, inst, index);
    Value value = emit_operand(e, inst, index);
    return emit_plain_address(e, value, param->type, param->dir == DIR_in);
}

static LLVMValueRef memory_for_results(Emitter *e, const Func *func) {
    int64_t size = 0, largest = 16;
    for (int i = 0; i < func->nresults; i++) {
        Layout layout = type_layout(func->results[i], LAYOUT_scalar);
        size = (size + layout.align - 1) / layout.align * layout.align + layout.size;
    }
    return emit_alloca(e, size, largest);
}

static LLVMValueRef memory_with_params(Emitter *e, const FuncInfo *info, LLVMValueRef *params) {
    const Func *func = info->func;
    LLVMTypeRef type = rest_type(e, info);
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(e->llvm);
    LLVMValueRef memory =
        emit_alloca(e, (int64_t)LLVMABISizeOfType(layout, type), (int)LLVMABIAlignmentOfType(layout, type));
    int first = info->direct_params;
    for (int i = first; i < func->nparams; i++)
        LLVMBuildStore(e->builder, params[i],
                       LLVMBuildStructGEP2(e->builder, type, memory, count_of(i - first), ""));
    return memory;
}

/* What LLVM is given for these values and the address of results, if that is not NULL; how many they are. */
static LLVMValueRef *call_args(Emitter *e, const FuncInfo *info, LLVMValueRef *values, LLVMValueRef results,
                               int *count) {
    LLVMValueRef *args = arena_array(&e->arena, LLVMValueRef, results_index(info) + 1);
    *count = results_index(info);
    for (int i = 0; i <= info->direct_params; i++) args[i] = values[i];
    if (has_many_params(info)) args[rest_index(info)] = memory_with_params(e, info, values + 1);
    if (results) args[(*count)++] = results;
    return args;
}

LLVMValueRef *emit_call_body(Emitter *e, const FuncInfo *info, LLVMValueRef *values) {
    const Func *func = info->func;
    LLVMValueRef *results = arena_array(&e->arena, LLVMValueRef, func->nresults + 1);
    bool many = info->many_results;
    LLVMValueRef memory = many ? memory_for_results(e, func) : NULL;
    int count;
    LLVMValueRef *args = call_args(e, info, values, memory, &count);
    LLVMValueRef call = LLVMBuildCall2(e->builder, info->type, info->function, args, count_of(count), "");
    int64_t end = 0;
    for (int i = 0; i < func->nresults; i++) {
        const Type *type = func->results[i];
        if (many) results[i] = emit_load(e, type, emit_plain_value(result_slot(e, memory, type, &end)));
        else if (func->nresults == 1) results[i] = call;
        else results[i] = LLVMBuildExtractValue(e->builder, call, count_of(i), "");
    }
    return results;
}

/* ---- results that are stored as soon as they are known: what waits for the return lives through all blocks between, and the time
 * for registers grows with the product */

/* The slot that a value of the body's last instruction goes to early; NULL: it waits. */
static EarlySlot *early_slot(const Emitter *e, const Val *v) {
    const FuncState *at = e->at;
    if (!at->early || v->kind != VAL_inst || v->inst->parent != at->info->func->body) return NULL;
    return &at->early[v->id];
}

static void find_early(Emitter *e, FuncState *state) {
    const Func *func = state->info->func;
    const Inst *last = func->body->last;
    if (func->nresults <= MOST_RESULTS || last->op != OP_return) return;
    state->early = arena_array(&e->arena, EarlySlot, func->nvals + 1);
    int64_t end = 0;
    for (int i = 0; i < last->nargs; i++) {
        int64_t offset = result_offset(func->results[i], &end);
        EarlySlot *slot = early_slot(e, ir_resolve(last->args[i]));
        if (slot && slot->result == 0) *slot = (EarlySlot){.result = i + 1, .offset = offset};
    }
}

static void store_early(Emitter *e, const Inst *inst) {
    const FuncInfo *info = e->at->info;
    for (int i = 0; e->at->early && i < inst->nresults; i++) {
        const EarlySlot *slot = early_slot(e, inst->results[i]);
        if (!slot || slot->result == 0) continue;
        LLVMValueRef memory = LLVMGetParam(e->at->function, count_of(results_index(info)));
        int index = slot->result - 1;
        emit_store(e, info->func->results[index], emit_plain_value(emit_at(e, memory, slot->offset)),
                   emit_use(e, info->func->body->last, index));
    }
}

static bool is_stored(const Emitter *e, const Inst *inst, int index) {
    if (inst != e->at->info->func->body->last) return false;
    const EarlySlot *slot = early_slot(e, ir_resolve(inst->args[index]));
    return slot && slot->result == index + 1;
}

static void store_results(Emitter *e, const Inst *inst) {
    const FuncInfo *info = e->at->info;
    LLVMValueRef memory = LLVMGetParam(e->at->function, count_of(results_index(info)));
    int64_t end = 0;
    for (int i = 0; i < inst->nargs; i++) {
        const Type *type = info->func->results[i];
        int64_t offset = result_offset(type, &end);
        if (!is_stored(e, inst, i))
            emit_store(e, type, emit_plain_value(emit_at(e, memory, offset)), emit_use(e, inst, i));
    }
}

void emit_return(Emitter *e, const Inst *inst) {
    const FuncInfo *info = e->at->info;
    if (info->many_results) store_results(e, inst);
    if (inst->nargs == 0 || info->many_results) {
        emit_give_large(e);
        LLVMBuildRetVoid(e->builder);
        return;
    }
    LLVMValueRef result = emit_use(e, inst, 0);
    if (inst->nargs > 1) {
        result = LLVMGetPoison(LLVMGetReturnType(e->at->info->type));
        for (int i = 0; i < inst->nargs; i++)
            result = LLVMBuildInsertValue(e->builder, result, emit_use(e, inst, i), count_of(i), "");
    }
    emit_give_large(e);
    LLVMBuildRet(e->builder, result);
}

static void emit_call(Emitter *e, const Inst *inst) {
    FuncInfo *callee = emit_func_info(e, inst->callee);
    LLVMValueRef *args = arena_array(&e->arena, LLVMValueRef, inst->nargs + 1);
    args[0] = e->at->context;
    for (int i = 0; i < inst->nargs; i++) args[i + 1] = argument(e, inst, i);
    LLVMValueRef *results = emit_call_body(e, callee, args);
    for (int i = 0; i < inst->nresults; i++) emit_set(e, inst->results[i], emit_plain_value(results[i]));
}

/* ---- body */

static void emit_inst(Emitter *e, const Inst *inst) {
    if (e->debug) emit_debug_at(e, inst->loc);
    emit_watch_operands(e, inst);
    if (inst->op == OP_call) {
        emit_call(e, inst);
        return;
    }
    if (op_has(inst->op, OP_REGIONS | OP_ENDS)) {
        emit_control(e, inst);
        return;
    }
    if (emit_wide(e, inst)) return;
    LLVMValueRef value = emit_arith(e, inst);
    if (!value) value = emit_math(e, inst);
    if (!value) value = emit_vector(e, inst);
    if (!value) value = emit_atomic(e, inst);
    if (value) {
        emit_result(e, inst, value);
        emit_note_steps(e, inst);
        return;
    }
    if (emit_memory(e, inst) || emit_buffer(e, inst) || emit_machine(e, inst) || emit_tape(e, inst)) return;
    emit_fail(e, "'%s' cannot be emitted", op_info[inst->op].name);
}

void emit_region(Emitter *e, const Region *region) {
    emit_find_records(e, region);
    for (const Inst *inst = region->first; inst; inst = inst->next) {
        emit_inst(e, inst);
        store_early(e, inst);
    }
}

void emit_begin(Emitter *e, FuncState *state, LLVMValueRef function) {
    *state = (FuncState){.function = function};
    e->at = state;
    emit_debug_begin(e, function);
    state->entry = emit_block(e, "entry");
    LLVMBasicBlockRef start = emit_block(e, "start");
    LLVMPositionBuilderAtEnd(e->builder, state->entry);
    LLVMBuildBr(e->builder, start);
    LLVMPositionBuilderAtEnd(e->builder, start);
}

static void take_params(Emitter *e, const FuncInfo *info) {
    const Func *func = info->func;
    LLVMValueRef function = info->function;
    int first = info->direct_params;
    for (int i = 0; i < first; i++)
        emit_set(e, func->body->params[i], emit_plain_value(LLVMGetParam(function, count_of(i + 1))));
    if (!has_many_params(info)) return;
    LLVMTypeRef type = rest_type(e, info);
    LLVMValueRef memory = LLVMGetParam(function, count_of(rest_index(info)));
    for (int i = first; i < func->nparams; i++) {
        LLVMValueRef slot = LLVMBuildStructGEP2(e->builder, type, memory, count_of(i - first), "");
        Value value = emit_plain_value(slot);
        value.is_parameter = true;
        emit_set(e, func->body->params[i], value);
    }
}

void emit_func_body(Emitter *e, FuncInfo *info) {
    Func *func = info->func;
    FuncState state;
    emit_debug_none(e);
    emit_begin(e, &state, info->function);
    state.info = info;
    state.context = LLVMGetParam(info->function, 0);
    state.values = arena_array(&e->arena, Value, func->nvals + 1);
    if (e->device)
        state.sums = (SumsTogether){.sums = &e->sums, .uses = region_count_uses(&e->arena, func->body)};
    if (e->debug) emit_debug_at(e, func->loc);
    take_params(e, info);
    find_early(e, &state);
    if (info->reached->tests_stack && !e->device) emit_stack_test(e, func);
    if (info->reached->looks) emit_stop_test(e);
    emit_take_large(e, func);
    emit_region(e, func->body);
    e->at = NULL;
}
