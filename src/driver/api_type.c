/* Reflection on types: IR types as they lie in memory, described to the host. */
#include "driver.h"

const SlopeType *driver_type(SlopeProgram *program, const Type *type, LayoutRules rules) {
    uint64_t key = PTR_KEY(type) + (uint64_t)rules; /* types are aligned: their low bits are free */
    SlopeType *handle = map_get(&program->type_handles, key);
    if (handle) return handle;
    handle = arena_new(&program->arena, SlopeType);
    *handle = (SlopeType){program, type, rules, type_text(&program->arena, type)};
    map_put(&program->arena, &program->type_handles, key, handle);
    return handle;
}

static bool has_element(const Type *type) {
    return type->kind == TYPE_vector || type->kind == TYPE_array || type->kind == TYPE_pointer ||
           type->kind == TYPE_buffer;
}

/* What a pointer or buffer refers to is laid out plainly, whatever holds the pointer; a constant buffer's by
 * its rules. */
static LayoutRules element_rules(const Type *type, LayoutRules rules) {
    bool elsewhere =
        type->kind == TYPE_pointer || (type->kind == TYPE_buffer && type->number != BUFFER_constant);
    return elsewhere ? LAYOUT_scalar : rules;
}

/* NULL: it has none */
static const SlopeType *driver_element(SlopeProgram *program, const Type *type, LayoutRules rules) {
    return has_element(type) ? driver_type(program, type->args[0], element_rules(type, rules)) : NULL;
}

SlopeTypeKind slope_type_kind(const SlopeType *type) {
    static const uint8_t kinds[TYPE_KIND_COUNT] = {
        [TYPE_bool] = SLOPE_TYPE_bool,       [TYPE_int8] = SLOPE_TYPE_int8,
        [TYPE_uint8] = SLOPE_TYPE_uint8,     [TYPE_int16] = SLOPE_TYPE_int16,
        [TYPE_uint16] = SLOPE_TYPE_uint16,   [TYPE_int] = SLOPE_TYPE_int32,
        [TYPE_uint] = SLOPE_TYPE_uint32,     [TYPE_int64] = SLOPE_TYPE_int64,
        [TYPE_uint64] = SLOPE_TYPE_uint64,   [TYPE_half] = SLOPE_TYPE_half,
        [TYPE_float] = SLOPE_TYPE_float,     [TYPE_double] = SLOPE_TYPE_double,
        [TYPE_vector] = SLOPE_TYPE_vector,   [TYPE_array] = SLOPE_TYPE_array,
        [TYPE_record] = SLOPE_TYPE_struct,   [TYPE_buffer] = SLOPE_TYPE_buffer,
        [TYPE_pointer] = SLOPE_TYPE_pointer,
    };
    return type ? (SlopeTypeKind)kinds[type->type->kind] : SLOPE_TYPE_void;
}

const char *slope_type_name(const SlopeType *type) { return type ? type->name : ""; }

static Layout layout_of(const SlopeType *type) {
    if (!type || type->type->kind == TYPE_void) return (Layout){0, 1, 0};
    return type_layout(type->type, type->rules);
}

size_t slope_type_size(const SlopeType *type) {
    Layout layout = layout_of(type);
    return (size_t)(type && type->type->kind == TYPE_record ? layout.stride : layout.size);
}

size_t slope_type_align(const SlopeType *type) { return (size_t)layout_of(type).align; }

const SlopeType *slope_type_element(const SlopeType *type) {
    if (!type) return NULL;
    SlopeSession *session = type->program->session;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return NULL;
    }
    if (!driver_enter_program(type->program)) return NULL;
    return driver_element(type->program, type->type, type->rules);
}

int64_t slope_type_count(const SlopeType *type) {
    if (!type) return 0;
    if (type->type->kind == TYPE_array) return type_length(type->type);
    return type->type->kind == TYPE_vector ? type_count(type->type) : 1;
}

size_t slope_type_element_stride(const SlopeType *type) {
    if (!type) return 0;
    const Type *t = type->type;
    if (t->kind == TYPE_vector || t->kind == TYPE_array) return (size_t)type_element_stride(t, type->rules);
    if (!has_element(t)) return 0;
    if (t->args[0]->kind == TYPE_void) return 1; /* byte buffers */
    return (size_t)type_layout(t->args[0], element_rules(t, type->rules)).stride;
}

int slope_type_field_count(const SlopeType *type) {
    return type && type->type->kind == TYPE_record ? type_record(type->type)->nfields : 0;
}

bool slope_type_field(const SlopeType *type, int index, SlopeField *out) {
    if (!type || !out) return false;
    SlopeSession *session = type->program->session;
    if (index < 0 || index >= slope_type_field_count(type)) return false;
    if (setjmp(session->trap.at)) {
        driver_trapped(session);
        return false;
    }
    if (!driver_enter_program(type->program)) return false;
    const Field *field = &type_record(type->type)->fields[index];
    *out = (SlopeField){field->name ? field->name->text : "",
                        driver_type(type->program, field->type, type->rules),
                        (size_t)type_field_offset(type->type, index, type->rules)};
    return true;
}

SlopeBufferKind slope_type_buffer_kind(const SlopeType *type) {
    /* The two enums list the kinds in the same order. */
    return type && type->type->kind == TYPE_buffer ? (SlopeBufferKind)type->type->number
                                                   : SLOPE_BUFFER_structured;
}

_Static_assert((int)BUFFER_constant == (int)SLOPE_BUFFER_constant &&
                   (int)BUFFER_append == (int)SLOPE_BUFFER_append,
               "buffer kinds are numbered alike");
