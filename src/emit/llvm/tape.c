/* Tapes. Pushes and pops are done in place on the stack's header; only a stack without room calls the
 * runtime, off the fast path. Accesses to headers and to data are tagged apart, so that the address of the
 * data stays in a register while data is written. */
#include "emit/llvm/llvm.h"

_Static_assert(TYPE_double - TYPE_bool + 1 == RT_STACKS, "one stack per scalar type");
_Static_assert(offsetof(RtDeviceStack, data) == offsetof(RtStack, data) &&
                   offsetof(RtDeviceStack, count) == offsetof(RtStack, count) &&
                   offsetof(RtDeviceStack, room) == offsetof(RtStack, room),
               "both kinds of stack begin the same");

typedef struct Stack {
    LLVMValueRef tape, header;
    const Type *type; /* a scalar */
    const Type *row;  /* what is counted: the same, or a vector of it */
    int lanes;
    bool has_room; /* for all that comes */
} Stack;

/* On a GPU, elements of a stack may be apart (RtDeviceStack). */
static int64_t header_size(const Emitter *e) {
    return e->device ? (int64_t)sizeof(RtDeviceStack) : (int64_t)sizeof(RtStack);
}

static Stack stack_of(Emitter *e, const Inst *inst, const Type *type) {
    LLVMValueRef tape = emit_use(e, inst, 0);
    const Type *scalar = type->kind == TYPE_vector ? type_element(type) : type;
    if (!type_is_scalar(scalar)) emit_fail(e, "a tape cannot hold a %s", type_text(&e->arena, type));
    int64_t offset = (int64_t)offsetof(RtTape, stacks) + header_size(e) * (scalar->kind - TYPE_bool);
    return (Stack){tape,
                   emit_at(e, tape, offset),
                   scalar,
                   type,
                   type->kind == TYPE_vector ? type_count(type) : 1,
                   reach_has_room(&e->reached, inst->args[0])};
}

static LLVMValueRef load_header(Emitter *e, Stack stack, LLVMTypeRef type, size_t offset) {
    LLVMValueRef load = LLVMBuildLoad2(e->builder, type, emit_at(e, stack.header, (int64_t)offset), "");
    LLVMSetAlignment(load, 8);
    emit_tag(e, load, SPACE_tape_header);
    return load;
}

static LLVMValueRef load_count(Emitter *e, Stack stack) {
    return load_header(e, stack, e->i64, offsetof(RtStack, count));
}

static void store_count(Emitter *e, Stack stack, LLVMValueRef count) {
    LLVMValueRef store =
        LLVMBuildStore(e->builder, count, emit_at(e, stack.header, offsetof(RtStack, count)));
    LLVMSetAlignment(store, 8);
    emit_tag(e, store, SPACE_tape_header);
}

static int64_t element_size(Stack stack) { return type_layout(stack.type, LAYOUT_scalar).size; }

/* Rows in elements. */
static LLVMValueRef elements(Emitter *e, Stack stack, LLVMValueRef rows) {
    return stack.lanes == 1 ? rows : LLVMBuildMul(e->builder, rows, emit_i64(e, stack.lanes), "");
}

static LLVMValueRef load_data(Emitter *e, Stack stack) {
    return load_header(e, stack, e->ptr, offsetof(RtStack, data));
}

static Value element_in(Emitter *e, Stack stack, LLVMValueRef data, LLVMValueRef index) {
    LLVMTypeRef unit = LLVMArrayType2(e->i8, (uint64_t)element_size(stack));
    if (e->device)
        index = LLVMBuildShl(e->builder, index, load_header(e, stack, e->i64, offsetof(RtDeviceStack, shift)),
                             "");
    LLVMValueRef address = LLVMBuildInBoundsGEP2(e->builder, unit, data, &index, 1, "");
    return (Value){.value = address, .space = SPACE_tape};
}

static Value element(Emitter *e, Stack stack, LLVMValueRef index) {
    return element_in(e, stack, load_data(e, stack), index);
}

/* So many elements from the one at `count` on. The constant part is the last to be added: where LLVM selects
 * instructions, it takes hundreds of them apart else. */
static Value element_from(Emitter *e, Stack stack, LLVMValueRef data, LLVMValueRef count, int64_t at) {
    if (e->device) return element_in(e, stack, data, LLVMBuildAdd(e->builder, count, emit_i64(e, at), ""));
    Value first = element_in(e, stack, data, count);
    if (at != 0) first.value = emit_at(e, first.value, at * element_size(stack));
    return first;
}

/* Sees to it that count + more elements fit, unless they always do; returns the new count, not yet stored. */
static LLVMValueRef make_room(Emitter *e, Stack stack, LLVMValueRef count, LLVMValueRef more) {
    LLVMValueRef end = LLVMBuildAdd(e->builder, count, more, "");
    if (stack.has_room) return end;
    LLVMValueRef room = load_header(e, stack, e->i64, offsetof(RtStack, room));
    Branch branch = emit_unless_begin(e, LLVMBuildICmp(e->builder, LLVMIntULE, end, room, ""));
    const int count_args = e->device ? 4 : 3; /* there, the bytes of an element, too */
    LLVMTypeRef types[] = {e->ptr, e->i64, e->i64, e->i64};
    LLVMValueRef args[] = {stack.tape, emit_i64(e, stack.type->kind - TYPE_bool), more,
                           emit_i64(e, element_size(stack))};
    const char *properties = e->device ? "nounwind convergent" : "nounwind cold noinline";
    emit_call_external(e, emit_external(e, "rt_tape_more", e->void_type, types, count_args, properties), args,
                       count_args);
    emit_branch_end(e, &branch);
    return end;
}

/* The first of a row does all of it: a count that is stored each time would stand between the others for all
 * who put instructions in order, and indices that are made one of the other take them time that grows with
 * the square. */
static void push(Emitter *e, const Inst *inst) {
    int row = emit_count_row(inst);
    if (row == 0) return;
    Stack stack = stack_of(e, inst, inst->args[1]->type);
    LLVMValueRef count = load_count(e, stack);
    LLVMValueRef end = make_room(e, stack, count, emit_i64(e, (int64_t)row * stack.lanes));
    LLVMValueRef data = load_data(e, stack);
    int64_t at = 0;
    for (const Inst *i = inst; i; i = emit_next_in_row(i), at += stack.lanes) {
        emit_store(e, stack.row, element_from(e, stack, data, count, at), emit_use(e, i, 1));
    }
    store_count(e, stack, end);
}

static void pop(Emitter *e, const Inst *inst) {
    int row = emit_count_row(inst);
    if (row == 0) return;
    Stack stack = stack_of(e, inst, inst->results[0]->type);
    LLVMValueRef count = load_count(e, stack), data = load_data(e, stack);
    int64_t at = 0;
    for (const Inst *i = inst; i; i = emit_next_in_row(i)) {
        at -= stack.lanes;
        emit_result(e, i, emit_load(e, stack.row, element_from(e, stack, data, count, at)));
    }
    store_count(e, stack, LLVMBuildAdd(e->builder, count, emit_i64(e, at), ""));
}

static void clear_on_device(Emitter *e, Stack stack, LLVMValueRef from, LLVMValueRef count) {
    LLVMTypeRef types[] = {e->ptr, e->i64, e->i64, e->i64};
    LLVMValueRef args[] = {stack.header, from, count, emit_i64(e, element_size(stack))};
    emit_call_external(e, emit_external(e, "rt_tape_clear", e->void_type, types, 4, "nounwind"), args, 4);
}

static void clear(Emitter *e, Stack stack, LLVMValueRef from, LLVMValueRef count) {
    if (e->device) {
        clear_on_device(e, stack, from, count);
        return;
    }
    LLVMValueRef bytes = LLVMBuildMul(e->builder, count, emit_i64(e, element_size(stack)), "");
    LLVMValueRef fill = LLVMBuildMemSet(e->builder, element(e, stack, from).value,
                                        LLVMConstInt(e->i8, 0, false), bytes, (unsigned)element_size(stack));
    emit_tag(e, fill, SPACE_tape);
}

static LLVMValueRef grow(Emitter *e, const Inst *inst) {
    Stack stack = stack_of(e, inst, inst->type);
    LLVMValueRef more = elements(e, stack, emit_use(e, inst, 1)), count = load_count(e, stack);
    LLVMValueRef end = make_room(e, stack, count, more);
    if (!inst_has(inst, INST_RAW)) clear(e, stack, count, more);
    store_count(e, stack, end);
    return stack.lanes == 1 ? count : LLVMBuildExactUDiv(e->builder, count, emit_i64(e, stack.lanes), "");
}

static void shrink(Emitter *e, const Inst *inst) {
    Stack stack = stack_of(e, inst, inst->type);
    store_count(e, stack,
                LLVMBuildSub(e->builder, load_count(e, stack), elements(e, stack, emit_use(e, inst, 1)), ""));
}

static void reach(Emitter *e, const Inst *inst) {
    Stack stack = stack_of(e, inst, inst->type);
    LLVMValueRef end = elements(e, stack, emit_use(e, inst, 1)), count = load_count(e, stack);
    Branch branch = emit_unless_begin(e, LLVMBuildICmp(e->builder, LLVMIntSLE, end, count, ""));
    make_room(e, stack, count, LLVMBuildSub(e->builder, end, count, ""));
    store_count(e, stack, end);
    emit_branch_end(e, &branch);
}

/* Of a row, or for each lane of the row where its element is. */
static Value row_address(Emitter *e, const Inst *inst) {
    Stack stack = stack_of(e, inst, ir_target(inst->results[0]->type));
    int64_t size = element_size(stack) * stack.lanes;
    LLVMValueRef data = load_header(e, stack, e->ptr, offsetof(RtStack, data));
    LLVMTypeRef unit = LLVMArrayType2(e->i8, (uint64_t)size);
    Value index = emit_operand(e, inst, 1);
    Value row = {.space = SPACE_tape, .step = index.step * size, .whole = index.whole};
    row.value = LLVMBuildInBoundsGEP2(e->builder, unit, data, &index.value, 1, "");
    if (index.first) row.first = LLVMBuildInBoundsGEP2(e->builder, unit, data, &index.first, 1, "");
    return row;
}

/* A tape of known size is a local variable: header and data are dissolved where pri and prop become part of
 * who opens it. */
static LLVMValueRef open_local(Emitter *e, const TapeRoom *room) {
    const int64_t size = header_size(e) * RT_STACKS;
    LLVMValueRef tape = emit_alloca(e, size, _Alignof(RtTape));
    emit_zero(e, tape, size, _Alignof(RtTape));
    for (int kind = 0; kind < RT_STACKS; kind++) {
        if (room->exact[kind] == 0) continue;
        const Type *type = type_basic(e->module->types, (TypeKind)(TYPE_bool + kind));
        int64_t at = header_size(e) * kind;
        LLVMValueRef data =
            emit_alloca(e, room->exact[kind] * type_layout(type, LAYOUT_scalar).size, e->habits.row);
        LLVMValueRef stores[] = {
            LLVMBuildStore(e->builder, data, emit_at(e, tape, at + (int64_t)offsetof(RtStack, data))),
            LLVMBuildStore(e->builder, emit_i64(e, room->exact[kind]),
                           emit_at(e, tape, at + (int64_t)offsetof(RtStack, room)))};
        for (int i = 0; i < 2; i++) emit_tag(e, stores[i], SPACE_tape_header);
    }
    return tape;
}

static LLVMValueRef open_tape(Emitter *e, const Inst *inst) {
    const TapeRoom *room = reach_local_tape(&e->reached, inst->results[0]);
    if (room) return open_local(e, room);
    const char *properties = e->device ? "nounwind convergent" : "nounwind";
    LLVMValueRef function = emit_external(e, "rt_tape_open", e->ptr, &e->ptr, 1, properties);
    LLVMValueRef owner = e->at->context;
    if (e->device) owner = emit_context_load(e, owner, e->ptr, offsetof(RtContext, owner));
    return emit_call_external(e, function, &owner, 1);
}

static void close_tape(Emitter *e, const Inst *inst) {
    if (reach_local_tape(&e->reached, inst->args[0])) return;
    LLVMValueRef tape = emit_use(e, inst, 0);
    const char *properties = e->device ? "nounwind convergent" : "nounwind";
    emit_call_external(e, emit_external(e, "rt_tape_close", e->void_type, &e->ptr, 1, properties), &tape, 1);
}

bool emit_tape(Emitter *e, const Inst *inst) {
    Stack stack;
    switch ((Op)inst->op) {
    case OP_tape_open: emit_result(e, inst, open_tape(e, inst)); return true;
    case OP_tape_close: close_tape(e, inst); return true;
    case OP_tape_push: push(e, inst); return true;
    case OP_tape_pop: pop(e, inst); return true;
    case OP_tape_grow: emit_result(e, inst, grow(e, inst)); return true;
    case OP_tape_shrink: shrink(e, inst); return true;
    case OP_tape_load:
        stack = stack_of(e, inst, inst->results[0]->type);
        emit_result(e, inst, emit_load(e, stack.type, element(e, stack, emit_use(e, inst, 1))));
        return true;
    case OP_tape_reach: reach(e, inst); return true;
    case OP_tape_elem: emit_set(e, inst->results[0], row_address(e, inst)); return true;
    case OP_tape_store:
        stack = stack_of(e, inst, inst->args[2]->type);
        emit_store(e, stack.type, element(e, stack, emit_use(e, inst, 1)), emit_use(e, inst, 2));
        return true;
    default: return false;
    }
}
