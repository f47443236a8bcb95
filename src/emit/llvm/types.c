/* Types, constants, attributes and the small steps that all other files of the emitter are made of. */
#include "emit/llvm/llvm.h"

/* ---- types */

static LLVMValueRef metadata_value(Emitter *e, LLVMMetadataRef node) {
    return LLVMMetadataAsValue(e->context, node);
}

static LLVMMetadataRef metadata_text(Emitter *e, const char *text) {
    return LLVMMDStringInContext2(e->context, text, strlen(text));
}

static LLVMMetadataRef alias_type(Emitter *e, const char *name, LLVMMetadataRef parent) {
    LLVMMetadataRef parts[] = {metadata_text(e, name), parent, LLVMValueAsMetadata(emit_i64(e, 0))};
    return LLVMMDNodeInContext2(e->context, parts, 3);
}

static void make_tags(Emitter *e) {
    static const char *const names[TAG_COUNT] = {"memory", "local",  "buffer", "uniform", "const",
                                                 "static", "shared", "tape",   "context", "tape header"};
    LLVMMetadataRef text = metadata_text(e, "slope");
    LLVMMetadataRef root = LLVMMDNodeInContext2(e->context, &text, 1), memory = NULL;
    for (int i = 0; i < TAG_COUNT; i++) {
        bool in_memory = i > SPACE_any && i < SPACE_tape;
        LLVMMetadataRef type = alias_type(e, names[i], in_memory ? memory : root);
        if (i == SPACE_any) memory = type;
        LLVMMetadataRef parts[] = {type, type, LLVMValueAsMetadata(emit_i64(e, 0))};
        e->tags[i] = metadata_value(e, LLVMMDNodeInContext2(e->context, parts, 3));
    }
    LLVMMetadataRef weights[] = {metadata_text(e, "branch_weights"), LLVMValueAsMetadata(emit_i32(e, 2000)),
                                 LLVMValueAsMetadata(emit_i32(e, 1))};
    e->likely = metadata_value(e, LLVMMDNodeInContext2(e->context, weights, 3));
    e->invariant = metadata_value(e, LLVMMDNodeInContext2(e->context, NULL, 0));
    e->tag_kind = LLVMGetMDKindIDInContext(e->context, "tbaa", 4);
    e->invariant_kind = LLVMGetMDKindIDInContext(e->context, "invariant.load", 14);
    e->weight_kind = LLVMGetMDKindIDInContext(e->context, "prof", 4);
    e->scope_kind = LLVMGetMDKindIDInContext(e->context, "alias.scope", 11);
    e->apart_kind = LLVMGetMDKindIDInContext(e->context, "noalias", 7);
}

void emit_types_init(Emitter *e) {
    LLVMContextRef c = e->context;
    e->void_type = LLVMVoidTypeInContext(c);
    e->i1 = LLVMInt1TypeInContext(c);
    e->i8 = LLVMInt8TypeInContext(c);
    e->i16 = LLVMInt16TypeInContext(c);
    e->i32 = LLVMInt32TypeInContext(c);
    e->i64 = LLVMInt64TypeInContext(c);
    e->f16 = LLVMHalfTypeInContext(c);
    e->f32 = LLVMFloatTypeInContext(c);
    e->f64 = LLVMDoubleTypeInContext(c);
    e->ptr = LLVMPointerTypeInContext(c, 0);
    LLVMTypeRef parts[] = {e->ptr, e->i64};
    e->buffer = LLVMStructTypeInContext(c, parts, 2, false);
    make_tags(e);
}

static LLVMTypeRef scalar_type(Emitter *e, TypeKind kind) {
    switch (kind) {
    case TYPE_bool: return e->i1;
    case TYPE_int8:
    case TYPE_uint8: return e->i8;
    case TYPE_int16:
    case TYPE_uint16: return e->i16;
    case TYPE_int:
    case TYPE_uint: return e->i32;
    case TYPE_int64:
    case TYPE_uint64: return e->i64;
    case TYPE_half: return e->f16;
    case TYPE_float: return e->f32;
    case TYPE_double: return e->f64;
    default: return NULL;
    }
}

LLVMTypeRef emit_shaped(LLVMTypeRef element, const Type *shape) {
    return shape->kind == TYPE_vector ? LLVMVectorType(element, count_of(type_count(shape))) : element;
}

LLVMTypeRef emit_type(Emitter *e, const Type *type) {
    if (type->kind == TYPE_pointer || type->kind == TYPE_tape) return e->ptr;
    if (type->kind == TYPE_buffer) return e->buffer;
    if (type->kind == TYPE_void) return e->void_type;
    TypeKind kind = type->kind == TYPE_vector ? type->args[0]->kind : type->kind;
    LLVMTypeRef scalar = kind == TYPE_pointer ? e->ptr : scalar_type(e, kind);
    if (!scalar) emit_fail(e, "a value of type %s cannot be emitted", type_text(&e->arena, type));
    return emit_shaped(scalar, type);
}

LLVMTypeRef emit_memory_type(Emitter *e, const Type *type) {
    if (type_element(type)->kind == TYPE_bool && type->kind != TYPE_array) return emit_shaped(e->i8, type);
    return emit_type(e, type);
}

/* ---- constants */

LLVMValueRef emit_i32(Emitter *e, int64_t value) {
    return LLVMConstInt(e->i32, (unsigned long long)value, true);
}
LLVMValueRef emit_i64(Emitter *e, int64_t value) {
    return LLVMConstInt(e->i64, (unsigned long long)value, true);
}

LLVMValueRef emit_constant(Emitter *e, const Val *v) {
    LLVMTypeRef type = emit_type(e, v->type);
    if (!type_is_scalar(v->type)) return LLVMConstNull(type);
    if (type_is_float(v->type)) return LLVMConstReal(type, v->real);
    return LLVMConstInt(type, (unsigned long long)v->integer, true);
}

static LLVMValueRef constant_splat(Emitter *e, LLVMValueRef scalar, int count) {
    LLVMValueRef *lanes = arena_array(&e->arena, LLVMValueRef, count);
    for (int i = 0; i < count; i++) lanes[i] = scalar;
    return LLVMConstVector(lanes, count_of(count));
}

LLVMValueRef emit_splat(Emitter *e, LLVMValueRef scalar, const Type *shape) {
    if (shape->kind != TYPE_vector) return scalar;
    int count = type_count(shape);
    if (LLVMIsConstant(scalar)) return constant_splat(e, scalar, count);
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), count_of(count));
    LLVMValueRef first = LLVMBuildInsertElement(e->builder, LLVMGetPoison(type), scalar, emit_i32(e, 0), "");
    LLVMValueRef mask = LLVMConstNull(LLVMVectorType(e->i32, count_of(count)));
    return LLVMBuildShuffleVector(e->builder, first, LLVMGetPoison(type), mask, "");
}

LLVMValueRef emit_int_like(Emitter *e, const Type *type, int64_t value) {
    LLVMTypeRef element = emit_type(e, type_element(type));
    return emit_splat(e, LLVMConstInt(element, (unsigned long long)value, true), type);
}

/* ---- functions from elsewhere */

LLVMValueRef emit_intrinsic(Emitter *e, const char *name, LLVMTypeRef *overloads, int noverloads,
                            LLVMValueRef *args, int nargs) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->llvm, id, overloads, (size_t)noverloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, (size_t)noverloads);
    return LLVMBuildCall2(e->builder, type, function, args, count_of(nargs), "");
}

void emit_attribute(Emitter *e, LLVMValueRef function, unsigned index, const char *name, uint64_t value) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, index, LLVMCreateEnumAttribute(e->context, kind, value));
}

void emit_string_attribute(Emitter *e, LLVMValueRef function, const char *name, const char *value) {
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, of_function, attribute);
}

void emit_call_attribute(Emitter *e, LLVMValueRef call, const char *name, const char *value) {
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
    LLVMAddCallSiteAttribute(call, of_function, attribute);
}

static void add_properties(Emitter *e, LLVMValueRef function, const char *properties) {
    while (*properties) {
        size_t length = strcspn(properties, " ");
        unsigned kind = LLVMGetEnumAttributeKindForName(properties, length);
        assert(kind != 0);
        LLVMAddAttributeAtIndex(function, of_function, LLVMCreateEnumAttribute(e->context, kind, 0));
        properties += length;
        if (*properties) properties++;
    }
}

LLVMValueRef emit_external(Emitter *e, const char *name, LLVMTypeRef result, LLVMTypeRef *params, int nparams,
                           const char *properties) {
    LLVMValueRef function = LLVMGetNamedFunction(e->llvm, name);
    if (function) return function;
    function = LLVMAddFunction(e->llvm, name, LLVMFunctionType(result, params, count_of(nparams), false));
    add_properties(e, function, properties);
    if (strncmp(name, "rt_", 3) == 0) e->uses_runtime = true;
    return function;
}

LLVMValueRef emit_call_external(Emitter *e, LLVMValueRef function, LLVMValueRef *args, int nargs) {
    return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(function), function, args, count_of(nargs), "");
}

/* ---- memory */

LLVMValueRef emit_at(Emitter *e, LLVMValueRef pointer, int64_t bytes) {
    if (bytes == 0) return pointer;
    LLVMValueRef index = emit_i64(e, bytes);
    return LLVMBuildInBoundsGEP2(e->builder, e->i8, pointer, &index, 1, "");
}

void emit_tag(Emitter *e, LLVMValueRef access, int space) {
    if (LLVMIsAInstruction(access)) LLVMSetMetadata(access, e->tag_kind, e->tags[space]);
}

LLVMMetadataRef emit_own_node(Emitter *e, LLVMMetadataRef *others, int count) {
    LLVMMetadataRef self = LLVMTemporaryMDNode(e->context, NULL, 0);
    LLVMMetadataRef *parts = arena_array(&e->arena, LLVMMetadataRef, count + 1);
    parts[0] = self;
    for (int i = 0; i < count; i++) parts[i + 1] = others[i];
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, (size_t)count + 1);
    LLVMMetadataReplaceAllUsesWith(self, node);
    return node;
}

LLVMValueRef emit_alloca(Emitter *e, int64_t size, int64_t align) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
    LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(e->builder);
    LLVMPositionBuilderBefore(e->builder, LLVMGetBasicBlockTerminator(e->at->entry));
    LLVMTypeRef type = LLVMArrayType2(e->i8, (uint64_t)(size > 0 ? size : 1));
    LLVMValueRef memory = LLVMBuildAlloca(e->builder, type, "");
    LLVMSetAlignment(memory, (unsigned)(align > 0 ? align : 1));
    LLVMPositionBuilderAtEnd(e->builder, here);
    LLVMSetCurrentDebugLocation2(e->builder, place);
    return memory;
}
