/* Addresses of several lanes, and what is loaded and stored there (opt/lanes.c).
 *
 * An address that differs between lanes is a vector of pointers. Mostly they follow each other at equal
 * distances, since that is what indices made from a thread's do; so integers and addresses of lanes carry
 * along that lane i is first + i * step. Numbers may wrap in between: `whole` says whether they do not, and
 * of addresses that all are in range. An access is then
 *
 *     if (whole, and all lanes are on) one load of a vector
 *     else gather, under the mask of lanes that are on and in range
 *
 * Of min (i, n - 1) and max (i, 0), `whole` also says that all lanes keep to the bound.
 *
 * If the distance is another, the first way is a load for each lane, by a distance that is known; without
 * such a form it is a gather of all. The other way is a function of its own, which keeps the code small. */
#include "emit/llvm/wide.h"

/* ---- numbers at equal distances */

static int lanes_in(const Type *type) { return type->kind == TYPE_vector ? type_count(type) : 1; }

static LLVMValueRef both(Emitter *e, LLVMValueRef a, LLVMValueRef b) {
    return a && b ? LLVMBuildAnd(e->builder, a, b, "") : a ? a : b;
}

static bool constants_with_step(const Inst *inst, int64_t *step) {
    int64_t last = 0, now;
    if (inst->nargs < 2) return false;
    for (int i = 0; i < inst->nargs; i++) {
        if (!val_is_int(ir_resolve(inst->args[i]), &now)) return false;
        if (i == 1) *step = now - last;
        if (i > 1 && now - last != *step) return false;
        last = now;
    }
    return true;
}

/* Does no lane wrap around, so that more bits do not change the distances? */
static LLVMValueRef no_lane_wraps(Emitter *e, const Value *v, const Type *type) {
    int64_t reach = v->step * (lanes_in(type) - 1);
    const Type *scalar = type_element(type);
    bool is_signed = type_is_signed(scalar);
    int bits = type_bits(scalar) - is_signed;
    uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    LLVMValueRef limit = LLVMConstInt(LLVMTypeOf(v->first), most - (uint64_t)reach, false);
    return LLVMBuildICmp(e->builder, is_signed ? LLVMIntSLE : LLVMIntULE, v->first, limit, "");
}

static Value converted(Emitter *e, Value v, const Type *from, const Type *to) {
    bool widens = type_bits(type_element(to)) > type_bits(type_element(from));
    if (!v.first || !type_is_integer(type_element(from)) || (widens && (v.step < 0 || v.step > INT16_MAX)))
        return (Value){0};
    if (widens && v.step) v.whole = both(e, v.whole, no_lane_wraps(e, &v, from));
    v.first = LLVMBuildIntCast2(e->builder, v.first, emit_type(e, type_element(to)),
                                type_is_signed(type_element(from)), "");
    return v;
}

static Value sum_of(Emitter *e, Value a, Value b, bool subtract) {
    if (!a.first || !b.first) return (Value){0};
    return (Value){.first = subtract ? LLVMBuildSub(e->builder, a.first, b.first, "")
                                     : LLVMBuildAdd(e->builder, a.first, b.first, ""),
                   .step = subtract ? a.step - b.step : a.step + b.step,
                   .whole = both(e, a.whole, b.whole),
                   .is_held = a.is_held || b.is_held};
}

static Value product_of(Emitter *e, Value a, Value b) {
    if (!a.first || !b.first || (a.step && b.step)) return (Value){0};
    Value moving = a.step ? a : b, fixed = a.step ? b : a;
    if (moving.step && !LLVMIsAConstantInt(fixed.first)) return (Value){0};
    int64_t factor = moving.step ? LLVMConstIntGetSExtValue(fixed.first) : 0;
    if (factor < -INT16_MAX || factor > INT16_MAX || moving.step > INT16_MAX || moving.step < -INT16_MAX)
        return (Value){0};
    return (Value){.first = LLVMBuildMul(e->builder, a.first, b.first, ""),
                   .step = moving.step * factor,
                   .whole = both(e, a.whole, b.whole),
                   .is_held = a.is_held || b.is_held};
}

/* By a bound that is the same for all lanes: as it was, if the first and the last lane keep to it. */
static Value held(Emitter *e, Value v, Value bound, const Type *type, bool is_least) {
    if (!v.first || !bound.first || bound.step || v.step <= 0 || v.step > INT16_MAX) return (Value){0};
    int64_t reach = is_least ? 0 : v.step * (lanes_in(type) - 1);
    bool is_signed = type_is_signed(type_element(type));
    LLVMIntPredicate keeps = is_least    ? is_signed ? LLVMIntSGE : LLVMIntUGE
                             : is_signed ? LLVMIntSLE
                                         : LLVMIntULE;
    LLVMValueRef limit = LLVMConstInt(LLVMTypeOf(v.first), (uint64_t)reach, false),
                 nearest = LLVMBuildAdd(e->builder, v.first, limit, "");
    v.whole = both(e, v.whole, no_lane_wraps(e, &v, type));
    v.whole = both(e, v.whole, LLVMBuildICmp(e->builder, keeps, nearest, bound.first, ""));
    v.is_held = true;
    return v;
}

/* Vectors that are constants are zero. */
static Value with_steps(Emitter *e, const Inst *inst, int index) {
    Value v = emit_operand(e, inst, index);
    if (val_is_const(ir_resolve(inst->args[index])))
        v.first = LLVMConstNull(LLVMGetElementType(LLVMTypeOf(v.value)));
    return v;
}

static Value held_one(Emitter *e, const Inst *inst) {
    Value a = with_steps(e, inst, 0), b = with_steps(e, inst, 1);
    const Type *type = inst->results[0]->type;
    bool is_least = inst->op == OP_max;
    return a.step ? held(e, a, b, type, is_least) : held(e, b, a, type, is_least);
}

void emit_note_steps(Emitter *e, const Inst *inst) {
    const Type *type = inst->results[0]->type;
    if (type->kind != TYPE_vector || !type_is_integer(type_element(type))) return;
    Value found = {0};
    Value *value = &e->at->values[inst->results[0]->id];
    switch ((Op)inst->op) {
    case OP_splat: found = (Value){.first = emit_use(e, inst, 0)}; break;
    case OP_vec:
        if (constants_with_step(inst, &found.step)) found.first = emit_use(e, inst, 0);
        break;
    case OP_add:
    case OP_sub:
        found = sum_of(e, emit_operand(e, inst, 0), emit_operand(e, inst, 1), inst->op == OP_sub);
        break;
    case OP_mul: found = product_of(e, emit_operand(e, inst, 0), emit_operand(e, inst, 1)); break;
    case OP_convert: found = converted(e, emit_operand(e, inst, 0), inst->args[0]->type, type); break;
    case OP_min:
    case OP_max: found = held_one(e, inst); break;
    default: break;
    }
    value->first = found.first, value->step = found.step;
    value->whole = found.whole, value->is_held = found.is_held;
}

/* ---- addresses */

/* An index with 64 bits, as a vector or one for all. */
static Value index_of(Emitter *e, const Inst *inst) {
    Value index = emit_operand(e, inst, 1);
    const Type *type = inst->args[1]->type;
    const Type *int64 = type_basic(inst->func->module->types, TYPE_int64);
    bool has_lanes = type->kind == TYPE_vector;
    const Type *to = has_lanes ? type_vector(inst->func->module->types, int64, type_count(type)) : int64;
    Value steps = has_lanes ? converted(e, index, type, to) : (Value){0};
    bool is_signed = type_is_signed(has_lanes ? type_element(type) : type);
    steps.value = LLVMBuildIntCast2(e->builder, index.value, emit_type(e, to), is_signed, "");
    return steps;
}

static LLVMValueRef every_lane(Emitter *e, LLVMValueRef scalar, const Type *lanes) {
    return emit_splat(e, scalar, lanes);
}

/* Unsigned: are the first and the last of them below that? Then so are those in between, as none is further
 * than some steps. */
static LLVMValueRef ends_below(Emitter *e, Value index, const Type *lanes, LLVMValueRef limit) {
    int64_t reach = index.step * (lanes_in(lanes) - 1);
    LLVMValueRef last = LLVMBuildAdd(e->builder, index.first, emit_i64(e, reach), "");
    return LLVMBuildAnd(e->builder, LLVMBuildICmp(e->builder, LLVMIntULT, index.first, limit, ""),
                        LLVMBuildICmp(e->builder, LLVMIntULT, last, limit, ""), "");
}

static LLVMValueRef moved_by(Emitter *e, LLVMValueRef pointer, LLVMValueRef index, int64_t unit) {
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)(unit > 0 ? unit : 1));
    return LLVMBuildInBoundsGEP2(e->builder, type, pointer, &index, 1, "");
}

static Indexed *further_on(Emitter *e, const Indexed *from, int64_t bytes) {
    Indexed *to = arena_copy(&e->arena, from, sizeof *from);
    to->offset += bytes;
    return to;
}

/* From one address, or one for each lane, by an index likewise. */
static Value moved(Emitter *e, const Inst *inst, Value base, Value index, int64_t unit) {
    bool many_bases = inst->args[0]->type->kind == TYPE_vector,
         many = inst->args[1]->type->kind == TYPE_vector;
    Value value = base;
    value.value = moved_by(e, base.value, index.value, unit);
    value.first = NULL;
    value.indexed = NULL;
    if (base.indexed && !many && LLVMIsAConstantInt(index.value))
        value.indexed = further_on(e, base.indexed, LLVMConstIntGetSExtValue(index.value) * unit);
    if (many_bases && !many && base.first) value.first = moved_by(e, base.first, index.value, unit);
    if (!many_bases && many && index.first) {
        value.first = moved_by(e, base.value, index.first, unit);
        value.step = index.step * unit;
        value.whole = index.whole;
    }
    if (!many_bases && base.guard) value.guard = every_lane(e, base.guard, inst->results[0]->type);
    if (!many_bases && base.guard) value.whole = both(e, value.whole, base.guard);
    return value;
}

static Value element_address(Emitter *e, const Inst *inst) {
    const Type *whole = ir_target(inst->args[0]->type), *lanes = inst->results[0]->type;
    int64_t length = whole->kind == TYPE_vector ? type_count(whole) : type_length(whole);
    Value base = emit_operand(e, inst, 0), index = index_of(e, inst);
    bool checked = length > 0 && !inst_has(inst, INST_UNCHECKED) && !e->options->unchecked;
    if (checked) {
        LLVMTypeRef type = LLVMTypeOf(index.value);
        LLVMValueRef last = emit_i64(e, length - 1);
        if (inst->args[1]->type->kind == TYPE_vector) last = every_lane(e, last, lanes);
        LLVMValueRef args[] = {index.value, last};
        index.value = emit_intrinsic(e, "llvm.umin", &type, 1, args, 2);
        if (index.first) index.whole = both(e, index.whole, ends_below(e, index, lanes, emit_i64(e, length)));
    }
    return moved(e, inst, base, index, type_element_stride(whole, LAYOUT_scalar));
}

static Value offset_address(Emitter *e, const Inst *inst) {
    int64_t stride = type_layout(ir_target(inst->args[0]->type), LAYOUT_scalar).stride;
    Value base = emit_operand(e, inst, 0);
    return moved(e, inst, base, index_of(e, inst), stride);
}

Value emit_further(Emitter *e, Value address, int64_t bytes) {
    address.value = emit_at(e, address.value, bytes);
    if (address.first) address.first = emit_at(e, address.first, bytes);
    if (address.indexed) address.indexed = further_on(e, address.indexed, bytes);
    return address;
}

static Value field_address(Emitter *e, const Inst *inst) {
    Value value = emit_operand(e, inst, 0);
    const Type *record = ir_target(inst->args[0]->type);
    return emit_further(e, value, type_field_offset(record, inst->index, LAYOUT_scalar));
}

static Value buffer_address(Emitter *e, const Inst *inst) {
    const Type *lanes = inst->results[0]->type, *element = ir_target(lanes);
    Value value = emit_operand(e, inst, 0), index = index_of(e, inst);
    LLVMValueRef buffer = value.value, data = LLVMBuildExtractValue(e->builder, buffer, 0, "");
    LLVMValueRef count = LLVMBuildExtractValue(e->builder, buffer, 1, "");
    bool bytes = inst->op == OP_buffer_bytes;
    Layout layout = type_layout(element, LAYOUT_scalar);
    int64_t unit = bytes ? 1 : layout.stride;
    value.unaligned = bytes;
    value.apart = inst->apart;
    value.value = moved_by(e, data, index.value, unit);
    value.first = index.first ? moved_by(e, data, index.first, unit) : NULL;
    value.step = index.step * unit;
    value.indexed = arena_new(&e->arena, Indexed);
    *value.indexed = (Indexed){.data = data,
                               .index = emit_use(e, inst, 1),
                               .is_signed = type_is_signed(type_element(inst->args[1]->type)),
                               .unit = unit};
    if (inst_has(inst, INST_UNCHECKED) || e->options->unchecked) { /* nor does one wrap around */
        if (index.is_held) value.whole = index.whole;
        return value;
    }
    if (bytes) {
        LLVMValueRef args[] = {count, emit_i64(e, layout.size > 0 ? layout.size - 1 : 0)};
        count = emit_intrinsic(e, "llvm.usub.sat", &e->i64, 1, args, 2);
    }
    value.indexed->count = count;
    value.guard = LLVMBuildICmp(e->builder, LLVMIntULT, index.value, every_lane(e, count, lanes), "");
    if (value.first) value.whole = both(e, index.whole, ends_below(e, index, lanes, count));
    return value;
}

/* ---- access */

static bool is_all_on(LLVMValueRef mask) { return mask == LLVMConstAllOnes(LLVMTypeOf(mask)); }

static LLVMValueRef every(Emitter *e, LLVMValueRef mask) {
    LLVMTypeRef type = LLVMTypeOf(mask);
    return is_all_on(mask) ? NULL : emit_intrinsic(e, "llvm.vector.reduce.and", &type, 1, &mask, 1);
}

/* Are all indices of lanes, on or off, below the count? By the greatest of them, as it has no sign. */
static LLVMValueRef are_all_below(Emitter *e, const Indexed *at) {
    LLVMTypeRef type = LLVMTypeOf(at->index);
    LLVMValueRef index = at->index, limit = at->count;
    LLVMValueRef most = emit_intrinsic(e, "llvm.vector.reduce.umax", &type, 1, &index, 1);
    most = LLVMBuildIntCast2(e->builder, most, e->i64, false, "");
    unsigned bits = LLVMGetIntTypeWidth(LLVMGetElementType(type));
    if (at->is_signed && bits < 64) {
        LLVMValueRef args[] = {limit, emit_i64(e, (int64_t)1 << (bits - 1))};
        limit = emit_intrinsic(e, "llvm.umin", &e->i64, 1, args, 2);
    }
    return LLVMBuildICmp(e->builder, LLVMIntULT, most, limit, "");
}

/* Each lane has its own number of the vector that its address leads to. */
static void own_column(Emitter *e, Access *access, int64_t size) {
    LLVMValueRef steps[64];
    for (int i = 0; i < access->lanes; i++) steps[i] = emit_i64(e, i * size);
    LLVMValueRef offsets = LLVMConstVector(steps, count_of(access->lanes));
    access->address.value = LLVMBuildInBoundsGEP2(e->builder, e->i8, access->address.value, &offsets, 1, "");
    access->address.step += size;
}

Access emit_access(Emitter *e, const Inst *inst, Value at, LLVMValueRef mask) {
    const Type *type = inst->args[0]->type, *target = ir_target(type),
               *lanes = inst->args[inst->nargs - 1]->type;
    Access access = {.scalar = type_element(target),
                     .shape = lanes,
                     .address = at,
                     .mask = mask,
                     .lanes = type_count(lanes)};
    Value *address = &access.address;
    Layout layout = type_layout(access.scalar, LAYOUT_scalar);
    LLVMTypeRef element = emit_memory_type(e, access.scalar);
    access.memory = LLVMVectorType(element, count_of(access.lanes));
    access.align = address->unaligned ? 1 : (unsigned)layout.align;
    if (type->kind == TYPE_pointer) { /* one for all */
        address->value = every_lane(e, address->value, lanes);
        if (address->guard) address->guard = every_lane(e, address->guard, lanes);
    } else if (target->kind == TYPE_vector) {
        own_column(e, &access, layout.size);
        address->indexed = NULL;
    }
    access.on = both(e, address->guard, is_all_on(mask) && address->guard ? NULL : mask);
    bool is_row = address->first && (address->step == layout.size || address->step == -layout.size);
    access.row = !is_row ? 0 : address->step > 0 ? 1 : -1;
    return access;
}

void emit_access_ask(Emitter *e, Access *access) {
    const Value *address = &access->address;
    bool has_count = address->indexed && address->indexed->count;
    access->all = address->first ? both(e, every(e, access->mask), address->whole)
                  : has_count    ? both(e, every(e, access->mask), are_all_below(e, address->indexed))
                                 : every(e, access->on);
}

static Access access_of(Emitter *e, const Inst *inst) {
    Access access = emit_access(e, inst, emit_operand(e, inst, 0), emit_use(e, inst, inst->nargs - 1));
    emit_access_ask(e, &access);
    return access;
}

/* ---- under a mask: a function of its own for each form of access, which is given the least that it needs */

typedef struct Masked {
    LLVMValueRef args[7];
    int nargs;
    const char *name;
    bool in_turn;            /* the processor has no instruction for it: lane after lane */
    int unit, count, stored; /* which parameters these are; 0: none */
} Masked;

static int give(Masked *masked, LLVMValueRef value) {
    masked->args[masked->nargs] = value;
    return masked->nargs++;
}

static bool has_instruction(const Emitter *e, const Access *access, bool store) {
    return type_bits(access->scalar) >= 32 && strstr(e->features, store ? "+avx512f" : "+avx2") != NULL;
}

static Masked masked_access(Emitter *e, const Access *access, LLVMValueRef stored) {
    const Indexed *at = access->address.indexed;
    Masked masked = {.in_turn = !has_instruction(e, access, stored != NULL)};
    masked.name = format_text(
        &e->arena, "%s.%s%u.%d.%u", stored ? "scatter" : "gather", type_text(&e->arena, access->scalar),
        (unsigned)LLVMGetTypeKind(LLVMGetElementType(access->memory)), access->lanes, access->align);
    give(&masked, at ? at->index : access->address.value);
    give(&masked, at ? access->mask : access->on);
    if (at) {
        unsigned bits = LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(at->index)));
        int64_t unit = masked.in_turn ? 0 : at->unit; /* else one function for all */
        masked.name = format_text(&e->arena, "%s.%c%u.%lld%s", masked.name, at->is_signed ? 's' : 'u', bits,
                                  (long long)unit, at->count ? ".in" : "");
        give(&masked, emit_at(e, at->data, at->offset));
        if (masked.in_turn) masked.unit = give(&masked, emit_i64(e, at->unit));
        if (at->count) masked.count = give(&masked, at->count);
    }
    if (stored) masked.stored = give(&masked, stored);
    return masked;
}

static LLVMValueRef param_of(LLVMValueRef function, int index) {
    return LLVMGetParam(function, count_of(index));
}

/* All lanes by one instruction. */
static void access_together(Emitter *e, const Access *access, const Masked *masked, LLVMValueRef function) {
    const Indexed *at = access->address.indexed;
    LLVMValueRef address = param_of(function, 0), on = param_of(function, 1);
    if (at) {
        LLVMTypeRef wide = LLVMVectorType(e->i64, count_of(access->lanes));
        LLVMValueRef index = LLVMBuildIntCast2(e->builder, address, wide, at->is_signed, "");
        address = moved_by(e, param_of(function, 2), index, at->unit);
        LLVMValueRef count =
            masked->count ? every_lane(e, param_of(function, masked->count), access->shape) : NULL;
        if (count)
            on = LLVMBuildAnd(e->builder, on, LLVMBuildICmp(e->builder, LLVMIntULT, index, count, ""), "");
    }
    LLVMTypeRef overloads[] = {access->memory, LLVMTypeOf(address)};
    LLVMValueRef align = emit_i32(e, access->align);
    if (masked->stored) {
        LLVMValueRef args[] = {param_of(function, masked->stored), address, align, on};
        emit_intrinsic(e, "llvm.masked.scatter", overloads, 2, args, 4);
        LLVMBuildRetVoid(e->builder);
    } else {
        LLVMValueRef args[] = {address, align, on, LLVMConstNull(access->memory)};
        LLVMBuildRet(e->builder, emit_intrinsic(e, "llvm.masked.gather", overloads, 2, args, 4));
    }
}

/* A loop over lanes, which stays one: there are few instructions, and it seldom runs. */
typedef struct Turns {
    LLVMBasicBlockRef before, each, does, next, after;
    LLVMValueRef lane;
    LLVMValueRef places, on, values; /* memory: vectors whose numbers are found by an index */
} Turns;

/* Not aligned beyond what the stack is: to do so LLVM takes a register on arm64 that such a function promises
 * to keep. */
static LLVMValueRef laid_out(Emitter *e, LLVMValueRef vector) {
    LLVMValueRef memory = LLVMBuildAlloca(e->builder, LLVMTypeOf(vector), "");
    LLVMSetAlignment(memory, 16);
    LLVMSetAlignment(LLVMBuildStore(e->builder, vector, memory), 16);
    return memory;
}

static LLVMValueRef load_laid_out(Emitter *e, LLVMTypeRef type, LLVMValueRef memory) {
    LLVMValueRef vector = LLVMBuildLoad2(e->builder, type, memory, "");
    LLVMSetAlignment(vector, 16);
    return vector;
}

static LLVMValueRef own_number(Emitter *e, const Turns *turns, LLVMTypeRef type, LLVMValueRef memory) {
    LLVMValueRef lane = turns->lane;
    return LLVMBuildInBoundsGEP2(e->builder, type, memory, &lane, 1, "");
}

static Turns turns_begin(Emitter *e, const Access *access, const Masked *masked, LLVMValueRef function) {
    LLVMTypeRef flags = LLVMVectorType(e->i8, count_of(access->lanes));
    LLVMValueRef on = LLVMBuildZExt(e->builder, param_of(function, 1), flags, "");
    Turns turns = {.places = laid_out(e, param_of(function, 0)),
                   .on = laid_out(e, on),
                   .values = laid_out(e, masked->stored ? param_of(function, masked->stored)
                                                        : LLVMConstNull(access->memory)),
                   .before = LLVMGetInsertBlock(e->builder)};
    LLVMBasicBlockRef *blocks[] = {&turns.each, &turns.does, &turns.next, &turns.after};
    for (int i = 0; i < 4; i++) *blocks[i] = LLVMAppendBasicBlockInContext(e->context, function, "");
    LLVMBuildBr(e->builder, turns.each);
    LLVMPositionBuilderAtEnd(e->builder, turns.each);
    turns.lane = LLVMBuildPhi(e->builder, e->i64, "");
    return turns;
}

static void turns_end(Emitter *e, const Turns *turns, int lanes) {
    LLVMValueRef zero = emit_i64(e, 0), more = LLVMBuildNUWAdd(e->builder, turns->lane, emit_i64(e, 1), "");
    LLVMBasicBlockRef before = turns->before, next = turns->next;
    LLVMAddIncoming(turns->lane, &zero, &before, 1);
    LLVMAddIncoming(turns->lane, &more, &next, 1);
    LLVMValueRef goes_on = LLVMBuildICmp(e->builder, LLVMIntULT, more, emit_i64(e, lanes), "");
    LLVMBuildCondBr(e->builder, goes_on, turns->each, turns->after);
    LLVMPositionBuilderAtEnd(e->builder, turns->after);
}

/* Where the lane whose turn it is finds its number; leaves those out that are off. */
static LLVMValueRef place_in_turn(Emitter *e, const Access *access, const Masked *masked, const Turns *turns,
                                  LLVMValueRef function) {
    const Indexed *at = access->address.indexed;
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(param_of(function, 0)));
    LLVMValueRef flag = LLVMBuildLoad2(e->builder, e->i8, own_number(e, turns, e->i8, turns->on), "");
    LLVMValueRef place = LLVMBuildLoad2(e->builder, type, own_number(e, turns, type, turns->places), "");
    LLVMValueRef goes = LLVMBuildICmp(e->builder, LLVMIntNE, flag, LLVMConstNull(e->i8), "");
    if (at) place = LLVMBuildIntCast2(e->builder, place, e->i64, at->is_signed, "");
    if (masked->count)
        goes = both(e, goes,
                    LLVMBuildICmp(e->builder, LLVMIntULT, place, param_of(function, masked->count), ""));
    LLVMBuildCondBr(e->builder, goes, turns->does, turns->next);
    LLVMPositionBuilderAtEnd(e->builder, turns->does);
    if (!at) return place;
    place = LLVMBuildMul(e->builder, place, param_of(function, masked->unit), "");
    return moved_by(e, param_of(function, 2), place, 1);
}

static void access_in_turn(Emitter *e, const Access *access, const Masked *masked, LLVMValueRef function) {
    Turns turns = turns_begin(e, access, masked, function);
    LLVMTypeRef type = LLVMGetElementType(access->memory);
    LLVMValueRef place = place_in_turn(e, access, masked, &turns, function);
    LLVMValueRef own = own_number(e, &turns, type, turns.values);
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, masked->stored ? own : place, "");
    LLVMValueRef store = LLVMBuildStore(e->builder, load, masked->stored ? place : own);
    LLVMSetAlignment(masked->stored ? store : load, access->align);
    LLVMBuildBr(e->builder, turns.next);
    LLVMPositionBuilderAtEnd(e->builder, turns.next);
    turns_end(e, &turns, access->lanes);
    if (masked->stored) LLVMBuildRetVoid(e->builder);
    else LLVMBuildRet(e->builder, load_laid_out(e, access->memory, turns.values));
}

static void fill_masked(Emitter *e, const Access *access, const Masked *masked, LLVMValueRef function) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(e->builder);
    LLVMSetCurrentDebugLocation2(e->builder, NULL);
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, function, ""));
    if (masked->in_turn) access_in_turn(e, access, masked, function);
    else access_together(e, access, masked, function);
    LLVMPositionBuilderAtEnd(e->builder, here);
    LLVMSetCurrentDebugLocation2(e->builder, place);
}

static bool gathers_slowly(const Emitter *e) { return strstr(e->features, "+prefer-no-gather") != NULL; }

/* Even so it is faster than a branch for each lane. */
static void gather_nevertheless(Emitter *e, LLVMValueRef function) {
    emit_string_attribute(e, function, "target-features",
                          format_text(&e->arena, "%s,-prefer-no-gather,-prefer-no-scatter", e->features));
}

/* What is seldom called costs those who do not call it nothing. */
static LLVMValueRef masked_function(Emitter *e, const Access *access, const Masked *masked) {
    LLVMValueRef function = LLVMGetNamedFunction(e->llvm, masked->name);
    if (function) return function;
    LLVMTypeRef params[7];
    for (int i = 0; i < masked->nargs; i++) params[i] = LLVMTypeOf(masked->args[i]);
    LLVMTypeRef result = masked->stored ? e->void_type : access->memory;
    function = LLVMAddFunction(e->llvm, masked->name,
                               LLVMFunctionType(result, params, count_of(masked->nargs), false));
    LLVMSetLinkage(function, LLVMInternalLinkage);
    LLVMSetFunctionCallConv(function, e->habits.seldom_called);
    emit_attribute(e, function, of_function, "nounwind", 0);
    emit_attribute(e, function, of_function, "noinline", 0);
    if (masked->in_turn) emit_attribute(e, function, of_function, "optsize", 0);
    else if (gathers_slowly(e)) gather_nevertheless(e, function);
    fill_masked(e, access, masked, function);
    return function;
}

/* What is there; `stored` NULL: it is loaded. */
LLVMValueRef emit_access_masked(Emitter *e, const Access *access, LLVMValueRef stored) {
    Masked masked = masked_access(e, access, stored);
    LLVMValueRef function = masked_function(e, access, &masked);
    LLVMValueRef call = emit_call_external(e, function, masked.args, masked.nargs);
    LLVMSetInstructionCallConv(call, e->habits.seldom_called);
    return call;
}

/* ---- for all lanes */

/* Numbers at equal distances, too, where registers are large: one instruction takes no longer than one for
 * each lane, and LLVM takes long to see which of those could be one. */
static bool is_done_at_once(const Emitter *e, const Access *access, bool store) {
    if (gathers_slowly(e)) return false;
    return has_instruction(e, access, store) && (!access->address.first || strstr(e->features, "+avx512f"));
}

LLVMValueRef emit_lane_at(Emitter *e, const Access *access, int lane) {
    const Value *address = &access->address;
    const Indexed *at = address->indexed;
    if (address->first) return emit_at(e, address->first, lane * address->step);
    LLVMValueRef places = at ? at->index : address->value;
    LLVMValueRef place = LLVMBuildExtractElement(e->builder, places, emit_i32(e, lane), "");
    if (!at) return place;
    place = LLVMBuildIntCast2(e->builder, place, e->i64, at->is_signed, "");
    return moved_by(e, emit_at(e, at->data, at->offset), place, at->unit);
}

static LLVMValueRef load_one(Emitter *e, const Access *access, int lane) {
    LLVMTypeRef type = LLVMGetElementType(access->memory);
    LLVMValueRef one = LLVMBuildLoad2(e->builder, type, emit_lane_at(e, access, lane), "");
    LLVMSetAlignment(one, access->align);
    emit_tag_at(e, one, &access->address);
    return one;
}

/* In pairs, so that not every one waits for that before it. */
static LLVMValueRef load_each(Emitter *e, const Access *access) {
    LLVMTypeRef pair = LLVMVectorType(LLVMGetElementType(access->memory), 2);
    LLVMValueRef parts[32];
    for (int i = 0; i < access->lanes / 2; i++) {
        parts[i] = LLVMGetPoison(pair);
        for (int k = 0; k < 2; k++)
            parts[i] = LLVMBuildInsertElement(e->builder, parts[i], load_one(e, access, 2 * i + k),
                                              emit_i32(e, k), "");
    }
    return emit_joined(e, parts, count_of(access->lanes / 2));
}

static void store_each(Emitter *e, const Access *access, LLVMValueRef value) {
    for (int i = 0; i < access->lanes; i++) {
        LLVMValueRef one = LLVMBuildExtractElement(e->builder, value, emit_i32(e, i), "");
        LLVMValueRef store = LLVMBuildStore(e->builder, one, emit_lane_at(e, access, i));
        LLVMSetAlignment(store, access->align);
        emit_tag_at(e, store, &access->address);
    }
}

/* Where the row begins in memory. */
static LLVMValueRef row_at(Emitter *e, const Access *access) {
    return emit_lane_at(e, access, access->row > 0 ? 0 : access->lanes - 1);
}

/* As the lanes are, or as it is in memory. */
static LLVMValueRef in_order(Emitter *e, const Access *access, LLVMValueRef row) {
    LLVMValueRef from[64];
    if (access->row > 0) return row;
    for (int i = 0; i < access->lanes; i++) from[i] = emit_i32(e, access->lanes - 1 - i);
    LLVMValueRef mask = LLVMConstVector(from, count_of(access->lanes));
    return LLVMBuildShuffleVector(e->builder, row, LLVMGetPoison(access->memory), mask, "");
}

static LLVMValueRef load_neighbours(Emitter *e, const Access *access) {
    LLVMValueRef load = LLVMBuildLoad2(e->builder, access->memory, row_at(e, access), "");
    LLVMSetAlignment(load, access->align);
    emit_tag_at(e, load, &access->address);
    return in_order(e, access, load);
}

static void store_neighbours(Emitter *e, const Access *access, LLVMValueRef value) {
    LLVMValueRef store = LLVMBuildStore(e->builder, in_order(e, access, value), row_at(e, access));
    LLVMSetAlignment(store, access->align);
    emit_tag_at(e, store, &access->address);
}

LLVMValueRef emit_load_all(Emitter *e, const Access *access) {
    const Value *address = &access->address;
    if (access->row) return load_neighbours(e, access);
    if (!is_done_at_once(e, access, false)) return load_each(e, access);
    LLVMTypeRef overloads[] = {access->memory, LLVMTypeOf(address->value)};
    LLVMValueRef args[] = {address->value, emit_i32(e, access->align),
                           LLVMConstAllOnes(LLVMTypeOf(access->on)), LLVMConstNull(access->memory)};
    LLVMValueRef load = emit_intrinsic(e, "llvm.masked.gather", overloads, 2, args, 4);
    emit_tag_at(e, load, address);
    return load;
}

static LLVMValueRef load_lanes(Emitter *e, const Access *access) {
    if (!access->all) return emit_load_all(e, access);
    LLVMBasicBlockRef fast = emit_block(e, "all"), slow = emit_block(e, "some"),
                      after = emit_block(e, "loaded");
    LLVMBuildCondBr(e->builder, access->all, fast, slow);
    LLVMPositionBuilderAtEnd(e->builder, fast);
    LLVMValueRef whole = emit_load_all(e, access);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, slow);
    LLVMValueRef some = emit_access_masked(e, access, NULL);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
    LLVMValueRef phi = LLVMBuildPhi(e->builder, access->memory, "");
    LLVMAddIncoming(phi, &whole, &fast, 1);
    LLVMAddIncoming(phi, &some, &slow, 1);
    return phi;
}

static LLVMValueRef gather(Emitter *e, const Inst *inst) {
    if (inst->args[0]->type->kind ==
        TYPE_pointer) /* a row is there for all lanes, whether they are on or not */
        return emit_load(e, inst->results[0]->type, emit_operand(e, inst, 0));
    Access access = access_of(e, inst);
    return emit_from_memory(e, access.scalar, load_lanes(e, &access));
}

void emit_store_all(Emitter *e, const Access *access, LLVMValueRef value) {
    const Value *address = &access->address;
    if (access->row) {
        store_neighbours(e, access, value);
        return;
    }
    if (!is_done_at_once(e, access, true)) {
        store_each(e, access, value);
        return;
    }
    LLVMTypeRef overloads[] = {access->memory, LLVMTypeOf(address->value)};
    LLVMValueRef args[] = {value, address->value, emit_i32(e, access->align),
                           LLVMConstAllOnes(LLVMTypeOf(access->on))};
    LLVMValueRef store = emit_intrinsic(e, "llvm.masked.scatter", overloads, 2, args, 4);
    emit_tag_at(e, store, address);
}

static void store_lanes(Emitter *e, const Access *access, LLVMValueRef value) {
    if (!access->all) {
        emit_store_all(e, access, value);
        return;
    }
    LLVMBasicBlockRef fast = emit_block(e, "all"), slow = emit_block(e, "some"),
                      after = emit_block(e, "stored");
    LLVMBuildCondBr(e->builder, access->all, fast, slow);
    LLVMPositionBuilderAtEnd(e->builder, fast);
    emit_store_all(e, access, value);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, slow);
    emit_access_masked(e, access, value);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
}

/* A row of memory that no other thread sees: lanes that are off keep what they have. */
static void store_row(Emitter *e, const Inst *inst) {
    LLVMValueRef mask = emit_use(e, inst, 2), value = emit_use(e, inst, 1);
    Value address = emit_operand(e, inst, 0);
    const Type *row = inst->args[1]->type;
    if (!is_all_on(mask)) value = LLVMBuildSelect(e->builder, mask, value, emit_load(e, row, address), "");
    emit_store(e, row, address, value);
}

static void scatter(Emitter *e, const Inst *inst) {
    const Type *type = inst->args[0]->type;
    if (type->kind == TYPE_pointer && ir_target(type)->kind == TYPE_vector) {
        store_row(e, inst);
        return;
    }
    Access access = access_of(e, inst);
    store_lanes(e, &access, emit_to_memory(e, access.scalar, emit_use(e, inst, 1), access.memory));
}

/* The address of one lane. */
static Value lane_address(Emitter *e, const Inst *inst) {
    Value value = emit_operand(e, inst, 0);
    LLVMValueRef lane = emit_use(e, inst, 1);
    value.value = LLVMBuildExtractElement(e->builder, value.value, lane, "");
    if (value.guard) value.guard = LLVMBuildExtractElement(e->builder, value.guard, lane, "");
    value.first = value.whole = NULL;
    return value;
}

bool emit_wide(Emitter *e, const Inst *inst) {
    if (emit_record(e, inst)) return true;
    if (inst->op == OP_scatter) scatter(e, inst);
    if (inst->op == OP_gather) emit_result(e, inst, gather(e, inst));
    if (inst->op == OP_gather || inst->op == OP_scatter) return true;
    bool extracts = inst->op == OP_extract && ir_target(inst->results[0]->type);
    if (extracts) emit_set(e, inst->results[0], lane_address(e, inst));
    if (extracts || inst->nresults != 1) return extracts;
    const Type *type = inst->results[0]->type;
    if (type->kind != TYPE_vector || !ir_target(type)) return false;
    Value value;
    switch ((Op)inst->op) {
    case OP_field: value = field_address(e, inst); break;
    case OP_elem: value = element_address(e, inst); break;
    case OP_offset: value = offset_address(e, inst); break;
    case OP_buffer_elem:
    case OP_buffer_bytes: value = buffer_address(e, inst); break;
    default: return false;
    }
    emit_set(e, inst->results[0], value);
    return true;
}
