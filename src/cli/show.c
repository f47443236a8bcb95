/* Values for people to read: what --show does. An element is a line, with its index; parts of structs have
 * their names. */
#include "cli.h"

static void show_scalar(SlopeTypeKind kind, const char *at) {
    char text[64];
    slope_scalar_print(kind, at, text, sizeof text);
    fputs(text, stdout);
}

/* `open`: how many elements an array of any length has. */
static void show_value(const SlopeType *type, const char *at, size_t open);

static void show_struct(const SlopeType *type, const char *at, size_t open) {
    SlopeField field;
    putchar('{');
    for (int i = 0; slope_type_field(type, i, &field); i++) {
        printf("%s%s: ", i ? ", " : "", field.name);
        show_value(field.type, at + field.offset, open);
    }
    putchar('}');
}

/* A vector in parentheses, an array in brackets. */
static void show_list(const SlopeType *type, const char *at, size_t open) {
    bool is_vector = slope_type_kind(type) == SLOPE_TYPE_vector;
    const SlopeType *element = slope_type_element(type);
    size_t stride = slope_type_element_stride(type);
    putchar(is_vector ? '(' : '[');
    size_t count = slope_type_count(type) <= 0 ? open : (size_t)slope_type_count(type);
    for (size_t i = 0; i < count; i++) {
        if (i) fputs(", ", stdout);
        show_value(element, at + i * stride, open);
    }
    putchar(is_vector ? ')' : ']');
}

static void show_value(const SlopeType *type, const char *at, size_t open) {
    switch (slope_type_kind(type)) {
    case SLOPE_TYPE_struct: show_struct(type, at, open); break;
    case SLOPE_TYPE_vector:
    case SLOPE_TYPE_array: show_list(type, at, open); break;
    default: show_scalar(slope_type_kind(type), at); break;
    }
}

static const char *plural(size_t count) { return count == 1 ? "" : "s"; }

void show_data(const SlopeType *type, const char *name, const char *bytes, size_t size) {
    const SlopeType *element = slope_type_element(type);
    bool words = slope_type_kind(element) == SLOPE_TYPE_void; /* of a byte buffer */
    size_t open, stride = words ? 4 : slope_type_element_stride(type);
    size_t count = data_open_elements(element, size, &open) ? 1 : size / stride;
    printf("%s: %zu element%s of %s\n", name, count, plural(count),
           words ? "uint" : slope_type_name(element));
    for (size_t i = 0; i < count; i++) {
        printf("[%zu] ", i);
        if (words) show_scalar(SLOPE_TYPE_uint32, bytes + i * stride);
        else show_value(element, bytes + i * stride, open);
        putchar('\n');
    }
}

void show_texels(const Picture *shape, SlopeTypeKind kind, const char *name, const char *at) {
    int rows = shape->height * (shape->depth > 1 ? shape->depth : 1);
    printf("%s: %d by %d texel%s of %d channel%s\n", name, shape->width, rows,
           plural((size_t)shape->width * (size_t)rows), shape->channels, plural((size_t)shape->channels));
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < shape->width; x++) {
            printf("[%d, %d] (", x, y);
            for (int c = 0; c < shape->channels; c++, at += 4) {
                if (c) fputs(", ", stdout);
                show_scalar(kind, at);
            }
            puts(")");
        }
}
