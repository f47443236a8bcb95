/* The memory of a global as it is before anything runs: its constants, scalar by scalar, at the places of its
 * layout. */
#include "emit/reach.h"

typedef struct Image {
    Val **data;
    int ndata, next;
    unsigned char *bytes;
} Image;

static void put_scalar(Image *image, const Type *type, int64_t offset) {
    if (image->next >= image->ndata) return;
    const Val *v = image->data[image->next++];
    unsigned char *to = image->bytes + offset;
    float single = (float)v->real;
    uint16_t half;
    switch (type->kind) {
    case TYPE_double: memcpy(to, &v->real, 8); break;
    case TYPE_float: memcpy(to, &single, 4); break;
    case TYPE_half:
        half = half_from_double(v->real);
        memcpy(to, &half, 2);
        break;
    default: /* little-endian, as all hosts are */
        memcpy(to, &v->integer, type->kind == TYPE_bool ? 1 : (size_t)type_bits(type) / 8);
    }
}

static void put_object(Image *image, const Type *type, int64_t offset) {
    if (type_is_scalar(type)) {
        put_scalar(image, type, offset);
    } else if (type->kind == TYPE_array || type->kind == TYPE_vector) {
        int64_t stride = type_element_stride(type, LAYOUT_scalar);
        int64_t count = type->kind == TYPE_array ? type_length(type) : type_count(type);
        for (int64_t i = 0; i < count; i++) put_object(image, type->args[0], offset + i * stride);
    } else if (type->kind == TYPE_record) {
        for (int i = 0; i < type_record(type)->nfields; i++)
            put_object(image, type_record(type)->fields[i].type,
                       offset + type_field_offset(type, i, LAYOUT_scalar));
    } else {
        image->next++; /* pointers and buffers: null */
    }
}

void emit_fill_image(const Global *global, char *memory) {
    Image image = {global->data, global->ndata, 0, (unsigned char *)memory};
    if (global->data) put_object(&image, global->type, 0);
}
