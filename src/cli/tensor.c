/* Tensors on the command line: --bind NAME=2x3:1,2,3,4,5,6 or NAME=random:2x3.
 *
 * A tensor is a struct that has its elements in a buffer `data` and says with `shape` and `strides` how they
 * lie there; one with a gradient has such a struct as its `primal`. What is bound is the buffer, and the rest
 * is set to fit. Without a shape the tensor has one dimension. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static bool find_field(const SlopeType *type, const char *name, SlopeField *out) {
    if (slope_type_kind(type) != SLOPE_TYPE_struct) return false;
    for (int i = 0; slope_type_field(type, i, out); i++)
        if (strcmp(out->name, name) == 0) return true;
    return false;
}

static bool is_list(const SlopeType *type, const char *name, int *length) {
    SlopeField field;
    if (!find_field(type, name, &field) || slope_type_kind(field.type) != SLOPE_TYPE_array) return false;
    *length = (int)slope_type_count(field.type);
    return *length > 0 && *length <= TENSOR_RANK && slope_type_element_stride(field.type) == 4;
}

static bool is_tensor(const SlopeType *type) {
    SlopeField data;
    int shape, strides;
    return find_field(type, "data", &data) && slope_type_kind(data.type) == SLOPE_TYPE_buffer &&
           is_list(type, "shape", &shape) && is_list(type, "strides", &strides) && shape == strides;
}

static char *joined(const char *name, const char *field) {
    size_t length = strlen(name) + strlen(field) + 2;
    char *text = malloc(length);
    if (text) snprintf(text, length, "%s.%s", name, field);
    return text;
}

bool tensor_find(const SlopeType *type, const char *name, Tensor *out) {
    SlopeField field;
    *out = (Tensor){.type = type};
    if (is_tensor(type)) out->name = strdup(name);
    else if (find_field(type, "primal", &field) && is_tensor(field.type)) {
        out->type = field.type;
        out->name = joined(name, "primal");
    } else return false;
    out->data = out->name ? joined(out->name, "data") : NULL;
    find_field(out->type, "data", &field);
    out->data_type = field.type;
    return out->data != NULL;
}

void tensor_free(Tensor *tensor) {
    free(tensor->name);
    free(tensor->data);
    free(tensor->values);
}

/* "2x3" and what ends it; NULL: no shape. */
static const char *read_shape(Tensor *tensor, const char *text) {
    tensor->rank = 0;
    while (*text >= '0' && *text <= '9' && tensor->rank < TENSOR_RANK) {
        char *end;
        long size = strtol(text, &end, 10);
        if (size < 0 || size > 0x7fffffff || (*end && *end != 'x' && *end != ':')) return NULL;
        tensor->shape[tensor->rank++] = (uint32_t)size;
        text = end;
        if (*text != 'x') return text;
        text++;
    }
    return NULL;
}

static size_t product(const Tensor *tensor) {
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
    return count;
}

ExitStatus tensor_read(Tensor *tensor, const char *text) {
    char fill[48];
    size_t word = data_fill_word(text);
    const char *end = word ? read_shape(tensor, text + word) : NULL;
    if (end && !*end) {
        snprintf(fill, sizeof fill, "%.*s%zu", (int)word, text, product(tensor));
        text = fill;
    } else {
        end = read_shape(tensor, text);
        if (end && *end == ':') text = end + 1;
        else tensor->rank = 0;
    }
    tensor->values = strdup(text);
    return tensor->values ? EXIT_fine : EXIT_fault;
}

static ExitStatus set_field(SlopeProgram *program, const Tensor *tensor, const char *field, const void *data,
                            size_t size) {
    char *name = joined(tensor->name, field);
    SlopeStatus status = name ? slope_set_uniform(program, name, data, size) : SLOPE_STATUS_memory;
    free(name);
    return cli_exit_status(status);
}

ExitStatus tensor_set_shape(SlopeProgram *program, Tensor *tensor, size_t count) {
    SlopeField field;
    int length;
    uint32_t strides[TENSOR_RANK] = {0}, step = 1;
    if (tensor->rank == 0) tensor->shape[tensor->rank++] = (uint32_t)count;
    if (!is_list(tensor->type, "shape", &length)) return EXIT_fault;
    bool open = find_field(tensor->type, "rank", &field);
    if (tensor->rank > length || (!open && tensor->rank != length))
        return cli_misuse("'%s' is %s: it has %s%d dimensions, not %d", tensor->name,
                          slope_type_name(tensor->type), open ? "up to " : "", length, tensor->rank);
    if (product(tensor) != count)
        return cli_misuse("'%s' has %zu elements, which do not fill its shape of %zu", tensor->name, count,
                          product(tensor));
    for (int i = tensor->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= tensor->shape[i];
    }
    uint32_t rank = (uint32_t)tensor->rank;
    ExitStatus status = set_field(program, tensor, "shape", tensor->shape, sizeof rank * (size_t)length);
    if (status == EXIT_fine)
        status = set_field(program, tensor, "strides", strides, sizeof rank * (size_t)length);
    if (status == EXIT_fine && open) status = set_field(program, tensor, "rank", &rank, sizeof rank);
    return status;
}
