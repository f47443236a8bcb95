/* Arrays of NumPy (.npy): a header in Python's notation with type and shape, then the numbers. Little-endian,
 * C order. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 64, MOST_HEADER = 65535, LARGEST_NUMBER = 16 }; /* as NumPy has them */

typedef struct Header {
    char kind; /* f, i, u, b */
    int size;  /* bytes of a number */
    int ndims;
    size_t dims[MOST_DIMENSIONS];
} Header;

static ExitStatus unreadable(const char *path, const char *why) {
    return cli_misuse("cannot read '%s': %s", path, why);
}

/* ---- reading */

static bool read_shape(const char *text, Header *header) {
    const char *at = strstr(text, "'shape':");
    if (!at || !(at = strchr(at, '('))) return false;
    for (at++; *at && *at != ')';) {
        char *end;
        unsigned long long size = strtoull(at, &end, 10);
        if (end == at || header->ndims == MOST_DIMENSIONS) return false;
        header->dims[header->ndims++] = (size_t)size;
        at = end + strspn(end, ", ");
    }
    return *at == ')';
}

static bool read_header(FILE *file, Header *header) {
    unsigned char start[12];
    char text[MOST_HEADER + 1];
    *header = (Header){0};
    if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0) return false;
    size_t length = (size_t)start[8] | (size_t)start[9] << 8;
    if (start[6] > 1 && fread(start + 10, 1, 2, file) != 2) return false;
    if (length > MOST_HEADER || fread(text, 1, length, file) != length) return false;
    text[length] = 0;
    const char *type = strstr(text, "'descr':");
    if (!type || sscanf(type, "'descr': '%*1[<|]%c%d'", &header->kind, &header->size) != 2) return false;
    if (header->size < 1 || header->size > LARGEST_NUMBER) return false;
    return !strstr(text, "'fortran_order': True") && read_shape(text, header);
}

static size_t numbers_of(const Header *header) {
    size_t count = 1;
    for (int i = 0; i < header->ndims; i++) {
        if (header->dims[i] && count > SIZE_MAX / LARGEST_NUMBER / 2 / header->dims[i]) return 0;
        count *= header->dims[i];
    }
    return count;
}

static ExitStatus read_whole(const char *path, Header *header, Data *out) {
    *out = (Data){0};
    FILE *file = fopen(path, "rb");
    if (!file) return unreadable(path, strerror(errno));
    bool known = read_header(file, header);
    out->size = known ? numbers_of(header) * (size_t)header->size : 0;
    out->bytes = known ? malloc(out->size + 1) : NULL;
    bool whole = out->bytes && fread(out->bytes, 1, out->size, file) == out->size;
    fclose(file);
    if (!known) return unreadable(path, "this is no array of little-endian numbers in C order");
    return whole ? EXIT_fine : unreadable(path, out->bytes ? "it ends early" : "out of memory");
}

const char *array_type(SlopeTypeKind kind) {
    static const char *const types[] = {
        [SLOPE_TYPE_bool] = "b1",   [SLOPE_TYPE_int8] = "i1",   [SLOPE_TYPE_uint8] = "u1",
        [SLOPE_TYPE_int16] = "i2",  [SLOPE_TYPE_uint16] = "u2", [SLOPE_TYPE_int32] = "i4",
        [SLOPE_TYPE_uint32] = "u4", [SLOPE_TYPE_int64] = "i8",  [SLOPE_TYPE_uint64] = "u8",
        [SLOPE_TYPE_half] = "f2",   [SLOPE_TYPE_float] = "f4",  [SLOPE_TYPE_double] = "f8"};
    return kind >= SLOPE_TYPE_bool && kind <= SLOPE_TYPE_double ? types[kind] : "";
}

static bool kind_fits(const Header *header, SlopeTypeKind kind) {
    const char *type = array_type(kind);
    return *type && type[0] == header->kind && type[1] == '0' + header->size;
}

/* The last dimensions are those of an element, or there is only one, of all numbers. */
static bool shape_fits(const Header *header, size_t numbers) {
    size_t count = 1;
    for (int i = header->ndims - 1; i > 0 && count < numbers; i--) count *= header->dims[i];
    return header->ndims <= 1 || numbers == 1 || count == numbers;
}

static void print_shape(const Header *header, char *out, size_t size) {
    size_t used = 0;
    *out = 0;
    for (int i = 0; i < header->ndims && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%zu", i ? ", " : "", header->dims[i]);
}

ExitStatus array_read(const char *path, const ArrayWanted *wanted, Data *out) {
    Header header;
    char shape[200];
    ExitStatus status = read_whole(path, &header, out);
    if (status != EXIT_fine) return status;
    if (!kind_fits(&header, wanted->kind))
        return cli_misuse("'%s' holds %s: the numbers in '%s' are of NumPy's type %c%d", wanted->name,
                          wanted->kind_name, path, header.kind, header.size);
    if (shape_fits(&header, wanted->numbers)) return EXIT_fine;
    print_shape(&header, shape, sizeof shape);
    return cli_misuse(
        "'%s' holds %s: the array in '%s' has the shape (%s), which does not end with %zu numbers",
        wanted->name, wanted->type_name, path, shape, wanted->numbers);
}

static bool picture_format(const Header *header, SlopeImageFormat *out) {
    static const struct {
        char kind, size;
        SlopeImageFormat format;
    } rows[] = {{'f', 4, SLOPE_IMAGE_float},  {'f', 2, SLOPE_IMAGE_half},   {'u', 1, SLOPE_IMAGE_uint8},
                {'i', 1, SLOPE_IMAGE_int8},   {'u', 2, SLOPE_IMAGE_uint16}, {'i', 2, SLOPE_IMAGE_int16},
                {'u', 4, SLOPE_IMAGE_uint32}, {'i', 4, SLOPE_IMAGE_int32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == header->kind && rows[i].size == header->size) {
            *out = rows[i].format;
            return true;
        }
    return false;
}

/* (h, w), (h, w, c) or (d, h, w, c). */
ExitStatus array_read_picture(const char *path, Picture *out) {
    Header header;
    Data data;
    ExitStatus status = read_whole(path, &header, &data);
    *out = (Picture){.data = data.bytes};
    if (status != EXIT_fine) return status;
    size_t dims[4] = {1, 1, 1, 1};
    int first = header.ndims == 2 ? 1 : 4 - header.ndims;
    if (header.ndims < 2 || header.ndims > 4 || !picture_format(&header, &out->format))
        return unreadable(path,
                          "an image is an array of 2 to 4 dimensions of float32, float16 or small integers");
    for (int i = 0; i < header.ndims; i++) dims[first + i] = header.dims[i];
    for (int i = 0; i < 4; i++)
        if (dims[i] > 1 << 20) return unreadable(path, "it is too large for an image");
    out->depth = (int)dims[0], out->height = (int)dims[1], out->width = (int)dims[2],
    out->channels = (int)dims[3];
    return EXIT_fine;
}

/* ---- writing */

ExitStatus array_write(const char *path, const char *type, const char *shape, const char *bytes,
                       size_t size) {
    char header[512];
    int length = snprintf(header, sizeof header, "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }",
                          type, shape);
    size_t padded = ((size_t)length + 1 + 10 + 63) / 64 * 64 - 10;
    memset(header + length, ' ', padded - (size_t)length);
    header[padded - 1] = '\n';
    unsigned char start[] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    Saving saving;
    ExitStatus status = save_begin(&saving, path);
    if (status != EXIT_fine) return status;
    return save_end(&saving, fwrite(start, 1, 10, saving.file) == 10 &&
                                 fwrite(header, 1, padded, saving.file) == padded &&
                                 fwrite(bytes, 1, size, saving.file) == size);
}

ExitStatus array_write_picture(const char *path, const Picture *picture) {
    char shape[80];
    const char *type = picture->format == SLOPE_IMAGE_float   ? "f4"
                       : picture->format == SLOPE_IMAGE_int32 ? "i4"
                                                              : "u4";
    if (picture->depth > 1)
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", picture->depth, picture->height, picture->width,
                 picture->channels);
    else snprintf(shape, sizeof shape, "%d, %d, %d", picture->height, picture->width, picture->channels);
    size_t count =
        (size_t)picture->depth * (size_t)picture->height * (size_t)picture->width * (size_t)picture->channels;
    return array_write(path, type, shape, picture->data, count * 4);
}
