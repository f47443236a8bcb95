/* Constant buffers that are not globals themselves: parameters of kernels, fields of structs.
 *
 * The host sees what is in a constant buffer laid out by std140; the program reads it through a pointer, as it reads all
 * memory, in the scalar layout. So there are two of each: the bytes that the host sets, and the program's copy, which the
 * pointer refers to. They exist as soon as the uniform does, all zero. (A global constant buffer needs none of this:
 * compiled code knows its layout.) */
#include "driver.h"

/* ---- from one layout to the other */

static void copy_scalar(const Type *type, const char *from, char *to) {
    if (type->kind == TYPE_bool) {
        uint32_t word;
        memcpy(&word, from, sizeof word);
        *to = word != 0;
        return;
    }
    memcpy(to, from, (size_t)type_layout(type, LAYOUT_scalar).size);
}

static int64_t count_of(const Type *type) {
    return type->kind == TYPE_array ? type_length(type) : type_count(type);
}

static void copy_value(const Type *type, const char *from, char *to) {
    if (type->kind == TYPE_vector || type->kind == TYPE_array) {
        int64_t step_from = type_element_stride(type, LAYOUT_std140),
                step_to = type_element_stride(type, LAYOUT_scalar);
        for (int64_t i = 0; i < count_of(type); i++)
            copy_value(type->args[0], from + i * step_from, to + i * step_to);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            copy_value(type_record(type)->fields[i].type, from + type_field_offset(type, i, LAYOUT_std140),
                       to + type_field_offset(type, i, LAYOUT_scalar));
    } else copy_scalar(type, from, to);
}

/* ---- memory for them */

static void make_constant(SlopeProgram *program, const Type *element, char *slot) {
    ConstantCopy copy = {.slot = slot, .element = element};
    copy.host = arena_take(&program->arena, (size_t)type_layout(element, LAYOUT_std140).stride);
    copy.data = arena_take(&program->arena, (size_t)type_layout(element, LAYOUT_scalar).stride);
    memcpy(slot, &copy.data, sizeof copy.data);
    driver_make_constants(program, element, LAYOUT_std140, copy.host, false);
    vec_push(&program->arena, &program->constants, copy);
}

void driver_make_constants(SlopeProgram *program, const Type *type, LayoutRules rules, char *data,
                           bool is_block) {
    if (type->kind == TYPE_pointer && is_block) make_constant(program, type->args[0], data);
    else if (type->kind == TYPE_array) {
        for (int64_t i = 0; i < count_of(type); i++)
            driver_make_constants(program, type->args[0], rules, data + i * type_element_stride(type, rules),
                                  is_block);
    } else if (type->kind == TYPE_record) {
        const Record *record = type_record(type);
        for (int i = 0; i < record->nfields; i++)
            driver_make_constants(program, record->fields[i].type, rules,
                                  data + type_field_offset(type, i, rules), record->fields[i].is_block);
    }
}

char *driver_constant_data(SlopeProgram *program, const char *slot) {
    for (int i = 0; i < program->constants.count; i++)
        if (program->constants.at[i].slot == slot) return program->constants.at[i].host;
    return NULL;
}

void driver_copy_constants(SlopeProgram *program) {
    for (int i = 0; i < program->constants.count; i++) {
        const ConstantCopy *copy = &program->constants.at[i];
        copy_value(copy->element, copy->host, copy->data);
    }
}
