/* Images behind textures. The prelude reads texels of 32 bits per channel (prelude/texture.slang, __Image),
 * so an image is converted once, when it is bound: normalised integers and halves to float, integers to 32
 * bits. What is written there later is rounded to what the format can hold. */
#include "driver.h"

#include <stdio.h>

typedef struct Size {
    size_t width, height, depth;
} Size;

/* ---- one channel */

typedef struct Format {
    size_t size; /* bytes of a channel */
    bool is_integer;
} Format;

static const Format formats[] = {
    [SLOPE_IMAGE_unorm8] = {1, false},  [SLOPE_IMAGE_snorm8] = {1, false}, [SLOPE_IMAGE_unorm16] = {2, false},
    [SLOPE_IMAGE_snorm16] = {2, false}, [SLOPE_IMAGE_half] = {2, false},   [SLOPE_IMAGE_float] = {4, false},
    [SLOPE_IMAGE_uint8] = {1, true},    [SLOPE_IMAGE_int8] = {1, true},    [SLOPE_IMAGE_uint16] = {2, true},
    [SLOPE_IMAGE_int16] = {2, true},    [SLOPE_IMAGE_uint32] = {4, true},  [SLOPE_IMAGE_int32] = {4, true},
};

static float at_least(float value, float least) { return value < least ? least : value; }

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t channel(const void *data, size_t index, SlopeImageFormat format) {
    const uint8_t *bytes = data;
    const uint16_t *words = data;
    switch (format) {
    case SLOPE_IMAGE_unorm8: return float_bits((float)bytes[index] / 255);
    case SLOPE_IMAGE_snorm8: return float_bits(at_least((float)(int8_t)bytes[index] / 127, -1));
    case SLOPE_IMAGE_unorm16: return float_bits((float)words[index] / 65535);
    case SLOPE_IMAGE_snorm16: return float_bits(at_least((float)(int16_t)words[index] / 32767, -1));
    case SLOPE_IMAGE_half: return float_bits(half_to_float(words[index]));
    case SLOPE_IMAGE_uint8: return bytes[index];
    case SLOPE_IMAGE_int8: return (uint32_t)(int8_t)bytes[index];
    case SLOPE_IMAGE_uint16: return words[index];
    case SLOPE_IMAGE_int16: return (uint32_t)(int16_t)words[index];
    case SLOPE_IMAGE_float:
    case SLOPE_IMAGE_uint32:
    case SLOPE_IMAGE_int32: return ((const uint32_t *)data)[index];
    }
    return 0;
}

/* ---- levels */

static size_t half_of(size_t n) { return n > 1 ? n / 2 : 1; }

static Size next_level(Size size, bool layered) {
    return (Size){half_of(size.width), half_of(size.height), layered ? size.depth : half_of(size.depth)};
}

static size_t texels_of(Size size) { return size.width * size.height * size.depth; }

static bool is_last(Size size, bool layered) {
    return size.width == 1 && size.height == 1 && (layered || size.depth == 1);
}

/* The mean of the texels of a larger level that a texel covers. */
static float mean(const float *from, Size large, Size small, const size_t at[3], size_t channels) {
    size_t sizes[] = {large.width, large.height, large.depth},
           less[] = {small.width, small.height, small.depth};
    size_t first[3], end[3];
    for (int i = 0; i < 3; i++) {
        first[i] = at[i] * sizes[i] / less[i];
        end[i] = (at[i] + 1) * sizes[i] / less[i];
    }
    double sum = 0;
    for (size_t z = first[2]; z < end[2]; z++)
        for (size_t y = first[1]; y < end[1]; y++)
            for (size_t x = first[0]; x < end[0]; x++)
                sum += (double)from[((z * large.height + y) * large.width + x) * channels];
    return (float)(sum / (double)((end[0] - first[0]) * (end[1] - first[1]) * (end[2] - first[2])));
}

static void shrink(const float *from, Size large, float *to, Size small, size_t channels) {
    size_t at[3], index = 0;
    for (at[2] = 0; at[2] < small.depth; at[2]++)
        for (at[1] = 0; at[1] < small.height; at[1]++)
            for (at[0] = 0; at[0] < small.width; at[0]++)
                for (size_t c = 0; c < channels; c++)
                    to[index++] = mean(from + c, large, small, at, channels);
}

/* ---- binding */

typedef struct Plan {
    Size size;
    size_t channels, total; /* channels of all levels */
    uint32_t levels;
    bool layered;
} Plan;

static Plan plan_of(const SlopeImage *image, bool layered) {
    Plan plan = {{(size_t)image->width, (size_t)image->height, (size_t)image->depth},
                 (size_t)image->channels,
                 0,
                 1,
                 layered};
    Size size = plan.size;
    plan.total = texels_of(size) * plan.channels;
    while (image->make_levels && !is_last(size, layered)) {
        const Size next = next_level(size, layered); /* by name: clang 14's sanitizer takes it for gone */
        size = next;
        plan.total += texels_of(size) * plan.channels;
        plan.levels++;
    }
    return plan;
}

static void fill(const SlopeImage *image, const Plan *plan, uint32_t *to) {
    size_t count = texels_of(plan->size) * plan->channels;
    for (size_t i = 0; image->data && i < count; i++) to[i] = channel(image->data, i, image->format);
    Size size = plan->size;
    float *level = (float *)to;
    for (uint32_t i = 1; i < plan->levels; i++) {
        Size small = next_level(size, plan->layered);
        float *next = level + texels_of(size) * plan->channels;
        shrink(level, size, next, small, plan->channels);
        level = next;
        size = small;
    }
}

/* Of "tex.image.width"; NULL: no memory. */
static char *part_name(SlopeSession *session, const char *name, const char *part, size_t *size) {
    *size = strlen(name) + strlen(part) + sizeof ".image.";
    char *path = session->allocator.resize(session->allocator.user, NULL, 0, *size);
    if (path) snprintf(path, *size, "%s.image.%s", name, part);
    return path;
}

static SlopeStatus set_part(SlopeProgram *program, const char *name, const char *part, uint32_t value,
                            SlopeBuffer *buffer) {
    SlopeSession *session = program->session;
    size_t size;
    char *path = part_name(session, name, part, &size);
    if (!path) return SLOPE_STATUS_memory;
    SlopeStatus status = buffer ? slope_bind_buffer(program, path, buffer)
                                : slope_set_uniform(program, path, &value, sizeof value);
    session->allocator.resize(session->allocator.user, path, size, 0);
    return status;
}

static SlopeStatus set_parts(SlopeProgram *program, const char *name, const Plan *plan,
                             SlopeImageFormat format, SlopeBuffer *texels) {
    const struct {
        const char *name;
        size_t value;
    } parts[] = {{"texels", 0},
                 {"width", plan->size.width},
                 {"height", plan->size.height},
                 {"depth", plan->size.depth},
                 {"levels", plan->levels},
                 {"channels", plan->channels},
                 {"layered", plan->layered},
                 {"format", (size_t)format + 1}};
    SlopeStatus status = SLOPE_STATUS_ok;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == SLOPE_STATUS_ok; i++)
        status = set_part(program, name, parts[i].name, (uint32_t)parts[i].value, i == 0 ? texels : NULL);
    return status;
}

static bool is_texture(const SlopeType *type) {
    const char *name = slope_type_name(type);
    return strncmp(name, "Texture", 7) == 0 || strncmp(name, "RWTexture", 9) == 0;
}

static bool is_sound(const SlopeImage *image) {
    enum { MOST = 1 << 20 };
    bool sized = image->width >= 1 && image->height >= 1 && image->depth >= 1 && image->width <= MOST &&
                 image->height <= MOST && image->depth <= MOST && image->channels >= 1 &&
                 image->channels <= 4;
    bool known = image->format >= SLOPE_IMAGE_unorm8 && image->format <= SLOPE_IMAGE_int32;
    return sized && known && !(image->make_levels && formats[image->format].is_integer) &&
           (uint64_t)image->width * (uint64_t)image->height <= INT32_MAX / 4 / (uint64_t)image->depth;
}

static SlopeStatus check_image(SlopeProgram *program, const SlopeUniform *uniform, const SlopeImage *image) {
    SlopeSession *session = program->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!image) return driver_missing(session, "slope_bind_image", "image");
    if (!is_texture(uniform->type))
        diag_report(session->diags, DIAG_uniform_is_no_texture, 0, uniform->name,
                    slope_type_name(uniform->type));
    else if (!is_sound(image))
        diag_report(session->diags, DIAG_bad_image, 0, image->width, image->height, image->depth,
                    image->channels);
    else return SLOPE_STATUS_ok;
    return driver_leave(session, SLOPE_STATUS_misuse);
}

/* The rows of an image are the layers of an array of rows. */
static SlopeImage image_for(const char *type, const SlopeImage *image) {
    SlopeImage shaped = *image;
    if (strstr(type, "1DArray") && image->depth == 1) {
        shaped.depth = image->height;
        shaped.height = 1;
    }
    return shaped;
}

SlopeStatus slope_bind_image(SlopeProgram *program, const char *name, const SlopeImage *image,
                             SlopeBuffer **texels) {
    SlopeUniform uniform;
    SlopeBuffer *buffer = NULL;
    if (texels) *texels = NULL;
    if (!program) return SLOPE_STATUS_misuse;
    SlopeStatus status = slope_find_uniform(program, name, &uniform);
    if (status == SLOPE_STATUS_ok) status = check_image(program, &uniform, image);
    if (status != SLOPE_STATUS_ok) return status;
    const char *type = slope_type_name(uniform.type);
    SlopeImage shaped = image_for(type, image);
    Plan plan = plan_of(&shaped, strstr(type, "Array") || strstr(type, "Cube"));
    status = slope_buffer_new(program->session, plan.total * sizeof(uint32_t), &buffer);
    if (status != SLOPE_STATUS_ok) return status;
    fill(&shaped, &plan, slope_buffer_data(buffer));
    status = set_parts(program, name, &plan, shaped.format, buffer);
    if (status != SLOPE_STATUS_ok) {
        slope_buffer_free(buffer);
        return status;
    }
    driver_free_images(program, uniform.name);
    if (texels) *texels = buffer;
    else buffer->program = program, buffer->texture = uniform.name;
    return SLOPE_STATUS_ok;
}
