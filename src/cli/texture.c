/* Textures and samplers on the command line: --bind tex=@picture.png, tex=@picture.png,mips,
 * tex=random:64x32, tex=2x1:1,0,0,1,0,1,0,1, s=nearest,wrap. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

bool texture_is(const SlopeType *type) {
    const char *name = slope_type_name(type);
    return strncmp(name, "Texture", 7) == 0 || strncmp(name, "RWTexture", 9) == 0;
}

bool texture_is_sampler(const SlopeType *type) { return strcmp(slope_type_name(type), "SamplerState") == 0; }

/* ---- the element: "RWTexture2D<uint2>" */

static const char *element_of(const SlopeType *type) {
    const char *angle = strchr(slope_type_name(type), '<');
    return angle ? angle + 1 : "float4";
}

static bool has_integers(const SlopeType *type) {
    return strncmp(element_of(type), "int", 3) == 0 || strncmp(element_of(type), "uint", 4) == 0;
}

static int channels_of(const SlopeType *type) {
    const char *element = element_of(type);
    size_t length = strcspn(element, ",>"); /* behind it may stand how many samples there are */
    char last = length ? element[length - 1] : 0;
    return last >= '1' && last <= '4' ? last - '0' : 1;
}

/* Integers in a file are fractions of one, unless the texture holds integers. */
static SlopeImageFormat format_for(const SlopeType *type, SlopeImageFormat format) {
    if (has_integers(type)) return format == SLOPE_IMAGE_unorm8 ? SLOPE_IMAGE_uint8 : format;
    switch (format) {
    case SLOPE_IMAGE_uint8: return SLOPE_IMAGE_unorm8;
    case SLOPE_IMAGE_int8: return SLOPE_IMAGE_snorm8;
    case SLOPE_IMAGE_uint16: return SLOPE_IMAGE_unorm16;
    case SLOPE_IMAGE_int16: return SLOPE_IMAGE_snorm16;
    default: return format;
    }
}

/* ---- binding */

static int bits_format(const SlopeType *type) {
    return !has_integers(type)        ? SLOPE_IMAGE_float
           : *element_of(type) == 'i' ? SLOPE_IMAGE_int32
                                      : SLOPE_IMAGE_uint32;
}

static SlopeTypeKind kind_of_texels(const Picture *shape) {
    return shape->format == SLOPE_IMAGE_float   ? SLOPE_TYPE_float
           : shape->format == SLOPE_IMAGE_int32 ? SLOPE_TYPE_int32
                                                : SLOPE_TYPE_uint32;
}

static size_t count_texels(const Picture *picture) {
    return (size_t)picture->width * (size_t)picture->height * (size_t)picture->depth *
           (size_t)picture->channels;
}

/* ",unorm8" behind the sizes of an empty image: what its channels can hold. */
static bool read_format(const SlopeType *type, const char *text, SlopeImageFormat *out) {
    static const char *const names[] = {"unorm8", "snorm8", "unorm16", "snorm16", "half",   "float",
                                        "uint8",  "int8",   "uint16",  "int16",   "uint32", "int32"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(text, names[i]) == 0 && (i >= SLOPE_IMAGE_uint8) == has_integers(type)) {
            *out = (SlopeImageFormat)i;
            return true;
        }
    return false;
}

static bool read_sizes(const char *text, const char *end, Picture *out) {
    char sizes[64], rest;
    snprintf(sizes, sizeof sizes, "%.*s", (int)(end - text), text);
    int given = sscanf(sizes, "%dx%dx%d%c", &out->width, &out->height, &out->depth, &rest);
    return given >= 1 && given <= 3 && out->width >= 1 && out->height >= 1 && out->depth >= 1;
}

static ExitStatus take_texels(Picture *out) {
    bool fits = (double)out->width * out->height * out->depth < INT32_MAX;
    out->data = fits ? calloc(count_texels(out), 4) : NULL;
    return out->data ? EXIT_fine : cli_misuse("there is not so much memory");
}

static ExitStatus read_fill(const SlopeType *type, const char *name, const char *text, Picture *out) {
    size_t word = data_fill_word(text);
    const char *comma = strchr(text, ',');
    bool zeros = strncmp(text, "zeros:", word) == 0;
    if (!read_sizes(text + word, comma ? comma : text + strlen(text), out))
        return cli_misuse("how large is '%s'? write zeros:64x32, not '%s'", name, text);
    if (comma && (!zeros || !read_format(type, comma + 1, &out->format)))
        return cli_misuse("'%s' is %s: write zeros:64x32%s, not '%s'", name, slope_type_name(type),
                          has_integers(type) ? ",uint8" : ",unorm8", text);
    out->channels = channels_of(type);
    if (zeros) return EXIT_fine;
    ExitStatus status = take_texels(out);
    if (status != EXIT_fine) return status;
    SlopeTypeKind kind = has_integers(type) ? SLOPE_TYPE_uint32 : SLOPE_TYPE_float;
    return data_fill_numbers(text, kind, count_texels(out), out->data) ? EXIT_fine : EXIT_fault;
}

/* "2x1:" in front of as many numbers as its channels are. */
static bool has_sizes(const char *text) {
    size_t length = strspn(text, "0123456789x");
    return length && text[length] == ':';
}

static ExitStatus read_numbers(const SlopeType *type, const char *name, const char *text, Picture *out) {
    const char *numbers = strchr(text, ':') + 1;
    if (!read_sizes(text, numbers - 1, out))
        return cli_misuse("how large is '%s'? write 2x2:1,2,3,4, not '%s'", name, text);
    out->channels = channels_of(type);
    out->format = (SlopeImageFormat)bits_format(type);
    ExitStatus status = take_texels(out);
    if (status != EXIT_fine) return status;
    return data_read_numbers(name, numbers, kind_of_texels(out), count_texels(out), out->data);
}

static ExitStatus read_picture(const SlopeType *type, const char *name, const char *text, bool *levels,
                               Picture *out) {
    *out = (Picture){.width = 1,
                     .height = 1,
                     .depth = 1,
                     .format = has_integers(type) ? SLOPE_IMAGE_uint32 : SLOPE_IMAGE_float};
    *levels = false;
    if (data_fill_word(text)) return read_fill(type, name, text, out);
    if (has_sizes(text)) return read_numbers(type, name, text, out);
    if (*text != '@')
        return cli_misuse("'%s' is %s: write --bind %s=@picture.png or zeros:64x32", name,
                          slope_type_name(type), name);
    char *path = strdup(text + 1), *comma = path ? strrchr(path, ',') : NULL;
    if (comma && strcmp(comma, ",mips") == 0) {
        *levels = true;
        *comma = 0;
    }
    ExitStatus status = !path                   ? EXIT_fault
                        : picture_is_file(path) ? picture_read(path, out)
                                                : cli_misuse("'%s' is no .png, .pfm or .npy file", path);
    free(path);
    return status;
}

ExitStatus texture_bind(SlopeProgram *program, const SlopeType *type, const char *name, const char *text,
                        Texture *out) {
    Picture picture;
    bool levels;
    ExitStatus status = read_picture(type, name, text, &levels, &picture);
    if (status == EXIT_fine) {
        SlopeImage image = {.data = picture.data,
                            .width = picture.width,
                            .height = picture.height,
                            .depth = picture.depth,
                            .channels = picture.channels,
                            .format = format_for(type, picture.format),
                            .make_levels = levels};
        status = cli_exit_status(slope_bind_image(program, name, &image, &out->texels));
    }
    free(picture.data);
    picture.data = NULL;
    picture.format = (SlopeImageFormat)bits_format(type);
    out->shape = picture;
    return status;
}

/* ---- samplers */

static bool sampler_word(const char *word, size_t length, uint32_t *nearest, uint32_t *address) {
    static const char *const modes[] = {"clamp", "wrap", "mirror", "border", "mirror-once"};
    for (uint32_t i = 0; i < 5; i++)
        if (strlen(modes[i]) == length && strncmp(word, modes[i], length) == 0) {
            *address = i;
            return true;
        }
    bool is_nearest = length == 7 && strncmp(word, "nearest", 7) == 0;
    if (is_nearest) *nearest = 7;
    return is_nearest || (length == 6 && strncmp(word, "linear", 6) == 0);
}

ExitStatus texture_set_sampler(SlopeProgram *program, const char *name, const char *text) {
    uint32_t nearest = 0, address = 0;
    for (const char *at = text; at;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (!sampler_word(at, length, &nearest, &address))
            return cli_misuse("'%s' is a sampler: linear or nearest, and clamp, wrap, mirror, border or "
                              "mirror-once; not '%s'",
                              name, text);
        at = comma ? comma + 1 : NULL;
    }
    uint32_t axes[3] = {address, address, address};
    char part[256];
    snprintf(part, sizeof part, "%s.nearest", name);
    SlopeStatus status = slope_set_uniform(program, part, &nearest, sizeof nearest);
    snprintf(part, sizeof part, "%s.address", name);
    if (status == SLOPE_STATUS_ok) status = slope_set_uniform(program, part, axes, sizeof axes);
    return cli_exit_status(status);
}

/* ---- after the run */

void texture_print(const Texture *texture) {
    const char *at = slope_buffer_data(texture->texels);
    size_t count = count_texels(&texture->shape);
    for (size_t i = 0; i < count; i++) {
        char text[64];
        slope_scalar_print(kind_of_texels(&texture->shape), at + i * 4, text, sizeof text);
        puts(text);
    }
}

void texture_show(const Texture *texture, const char *name) {
    show_texels(&texture->shape, kind_of_texels(&texture->shape), name, slope_buffer_data(texture->texels));
}

ExitStatus texture_save(const Texture *texture, const char *path) {
    Picture picture = texture->shape;
    picture.data = slope_buffer_data(texture->texels);
    if (picture_is_file(path)) return picture_write(path, &picture);
    return data_save(path, picture.data, slope_buffer_size(texture->texels));
}
