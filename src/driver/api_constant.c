/* Constant buffers that are not globals themselves: parameters of kernels, fields of structs.
 *
 * The host sees what is in a constant buffer laid out by std140; the program reads it as it reads all memory,
 * in the scalar layout. So there are two of each: the bytes that the host sets, and the program's copy, which
 * a pointer refers to. They exist as soon as the uniform does, all zero. (Those of a global constant buffer
 * are the uniform's data and its place in compiled code.) Images there and elsewhere know the formats that
 * they are declared with. */
#include "driver.h"

/* ---- from one layout to the other */

static void copy_scalar(const LayoutCopy *copy, const Type *type, const char *from, char *to) {
    bool is_word = type->kind == TYPE_bool && copy->rules == LAYOUT_std140;
    if (is_word) {
        uint32_t word;
        memcpy(&word, from, sizeof word);
        *to = word != 0;
    } else memcpy(to, from, (size_t)type_layout(type, LAYOUT_scalar).size);
}

static int64_t count_of(const Type *type) {
    return type->kind == TYPE_array ? type_length(type) : type_count(type);
}

void driver_copy_value(const LayoutCopy *copy, const Type *type, const char *from, char *to) {
    if (copy->rules == LAYOUT_scalar && !copy->reference)
        memcpy(to, from, (size_t)type_layout(type, LAYOUT_scalar).size);
    else if (type->kind == TYPE_vector || type->kind == TYPE_array) {
        int64_t step_from = type_element_stride(type, copy->rules),
                step_to = type_element_stride(type, LAYOUT_scalar);
        for (int64_t i = 0; i < count_of(type); i++)
            driver_copy_value(copy, type->args[0], from + i * step_from, to + i * step_to);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            driver_copy_value(copy, type_record(type)->fields[i].type,
                              from + type_field_offset(type, i, copy->rules),
                              to + type_field_offset(type, i, LAYOUT_scalar));
    } else if (copy->reference && (type->kind == TYPE_buffer || type->kind == TYPE_pointer))
        copy->reference(copy->user, type, copy->rules, from, to);
    else copy_scalar(copy, type, from, to);
}

/* ---- memory for them */

static void make_constant(SlopeProgram *program, const Type *element, char *slot) {
    ConstantCopy copy = {.slot = slot, .element = element};
    copy.host = arena_take(&program->arena, (size_t)type_layout(element, LAYOUT_std140).stride);
    copy.data = arena_take(&program->arena, (size_t)type_layout(element, LAYOUT_scalar).stride);
    memcpy(slot, &copy.data, sizeof copy.data);
    driver_prepare(program, (Held){.type = element, .rules = LAYOUT_std140}, copy.host);
    vec_push(&program->arena, &program->constants, copy);
}

static void declare_format(const Type *type, LayoutRules rules, char *data, uint32_t format) {
    const Record *record = type_record(type);
    for (int i = 0; i < record->nfields; i++) {
        const Field *field = &record->fields[i];
        char *at = data + type_field_offset(type, i, rules);
        if (strcmp(field->name->text, "declared") == 0) memcpy(at, &format, sizeof format);
        else if (strcmp(field->name->text, "image") == 0) declare_format(field->type, rules, at, format);
    }
}

void driver_prepare(SlopeProgram *program, Held held, char *data) {
    const Type *type = held.type;
    if (type->kind == TYPE_pointer && held.is_block) make_constant(program, type->args[0], data);
    else if (type->kind == TYPE_array) {
        Held element = held;
        element.type = type->args[0];
        for (int64_t i = 0; i < count_of(type); i++)
            driver_prepare(program, element, data + i * type_element_stride(type, held.rules));
    } else if (type->kind == TYPE_record) {
        const Record *record = type_record(type);
        if (held.image_format) declare_format(type, held.rules, data, held.image_format);
        for (int i = 0; i < record->nfields; i++) {
            const Field *field = &record->fields[i];
            Held inner = {field->type, held.rules, field->is_block, field->image_format};
            driver_prepare(program, inner, data + type_field_offset(type, i, held.rules));
        }
    }
}

char *driver_constant_data(SlopeProgram *program, const char *slot) {
    for (int i = 0; i < program->constants.count; i++)
        if (program->constants.at[i].slot == slot) return program->constants.at[i].host;
    return NULL;
}

const ConstantCopy *driver_constant_at(const SlopeProgram *program, const void *data) {
    for (int i = 0; i < program->constants.count; i++)
        if (program->constants.at[i].data == data) return &program->constants.at[i];
    return NULL;
}

void driver_copy_constants(SlopeProgram *program) {
    for (int i = 0; i < program->constants.count; i++) {
        const ConstantCopy *copy = &program->constants.at[i];
        driver_copy_value(&(LayoutCopy){.rules = LAYOUT_std140}, copy->element, copy->host, copy->data);
    }
}
