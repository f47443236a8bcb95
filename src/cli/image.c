/* Pictures and arrays in files, by their ending: .png (libpng), .pfm (portable float map), .npy (NumPy). All
 * become a Picture: channels of one number type, row by row from the top. */
#include "cli.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

bool picture_is_only_that(const char *path) {
    return cli_ends_with(path, ".png") || cli_ends_with(path, ".pfm");
}

bool picture_is_file(const char *path) { return picture_is_only_that(path) || cli_ends_with(path, ".npy"); }

static ExitStatus unreadable(const char *path, const char *why) {
    return cli_misuse("cannot read '%s': %s", path, why);
}
static ExitStatus unwritable(const char *path, const char *why) {
    return cli_misuse("cannot write '%s': %s", path, why);
}

/* ---- PNG */

static ExitStatus read_png(const char *path, Picture *out) {
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_file(&png, path)) return unreadable(path, png.message);
    bool colour = png.format & PNG_FORMAT_FLAG_COLOR, alpha = png.format & PNG_FORMAT_FLAG_ALPHA;
    png.format = (colour ? PNG_FORMAT_FLAG_COLOR : 0u) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
    *out = (Picture){
        .width = (int)png.width, .height = (int)png.height, .depth = 1, .format = SLOPE_IMAGE_unorm8};
    out->channels = (colour ? 3 : 1) + (alpha ? 1 : 0);
    out->data = malloc(PNG_IMAGE_SIZE(png));
    if (out->data && png_image_finish_read(&png, NULL, out->data, 0, NULL)) return EXIT_fine;
    ExitStatus status = unreadable(path, out->data ? png.message : "out of memory");
    png_image_free(&png);
    return status;
}

static uint8_t to_byte(float value) {
    return (uint8_t)(value >= 1 ? 255 : value > 0 ? (int)(value * 255 + 0.5f) : 0);
}

static ExitStatus write_png(const char *path, const Picture *picture) {
    static const uint32_t kinds[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
    size_t count = (size_t)picture->width * (size_t)picture->height * (size_t)picture->channels;
    uint8_t *bytes = malloc(count + 1);
    if (!bytes) return unwritable(path, "out of memory");
    const float *from = picture->data;
    for (size_t i = 0; i < count; i++) bytes[i] = to_byte(from[i]);
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)picture->width,
                     .height = (png_uint_32)picture->height,
                     .format = kinds[picture->channels]};
    Saving saving;
    ExitStatus status = save_begin(&saving, path);
    if (status == EXIT_fine) {
        errno = EIO; /* in case libpng fails for a reason of its own */
        status = save_end(&saving, png_image_write_to_stdio(&png, saving.file, 0, bytes, 0, NULL) != 0);
    }
    free(bytes);
    return status;
}

/* ---- PFM: rows from the bottom; a negative scale says little-endian */

static void swap_words(uint32_t *words, size_t count) {
    for (size_t i = 0; i < count; i++) words[i] = __builtin_bswap32(words[i]);
}

static bool read_rows(FILE *file, Picture *out) {
    size_t row = (size_t)out->width * (size_t)out->channels * sizeof(float);
    for (int y = out->height - 1; y >= 0; y--)
        if (fread((char *)out->data + (size_t)y * row, 1, row, file) != row) return false;
    return true;
}

static ExitStatus read_pfm_body(const char *path, FILE *file, Picture *out) {
    char kind;
    float scale;
    *out = (Picture){.depth = 1, .format = SLOPE_IMAGE_float};
    if (fscanf(file, "P%c %d %d %f", &kind, &out->width, &out->height, &scale) != 4 || fgetc(file) == EOF ||
        (kind != 'F' && kind != 'f') || out->width < 1 || out->height < 1 || out->width > 1 << 20 ||
        out->height > 1 << 20)
        return unreadable(path, "this is no portable float map");
    out->channels = kind == 'F' ? 3 : 1;
    size_t count = (size_t)out->width * (size_t)out->height * (size_t)out->channels;
    out->data = malloc(count * sizeof(float));
    if (!out->data) return unreadable(path, "out of memory");
    if (!read_rows(file, out)) return unreadable(path, "it ends early");
    if (scale > 0) swap_words(out->data, count);
    return EXIT_fine;
}

static ExitStatus read_pfm(const char *path, Picture *out) {
    FILE *file = fopen(path, "rb");
    if (!file) return unreadable(path, strerror(errno));
    ExitStatus status = read_pfm_body(path, file, out);
    fclose(file);
    return status;
}

static ExitStatus write_pfm(const char *path, const Picture *picture) {
    if (picture->channels == 2) return unwritable(path, "a portable float map has one or three channels");
    Saving saving;
    ExitStatus status = save_begin(&saving, path);
    if (status != EXIT_fine) return status;
    FILE *file = saving.file;
    int kept = picture->channels == 1 ? 1 : 3;
    const float *from = picture->data;
    bool written =
        fprintf(file, "P%c\n%d %d\n-1.0\n", kept == 3 ? 'F' : 'f', picture->width, picture->height) > 0;
    for (int y = picture->height - 1; y >= 0; y--)
        for (int x = 0; x < picture->width; x++) {
            const float *texel =
                from + ((size_t)y * (size_t)picture->width + (size_t)x) * (size_t)picture->channels;
            written = written && fwrite(texel, sizeof(float), (size_t)kept, file) == (size_t)kept;
        }
    return save_end(&saving, written);
}

/* ---- the ways in and out */

ExitStatus picture_read(const char *path, Picture *out) {
    *out = (Picture){0};
    if (cli_ends_with(path, ".png")) return read_png(path, out);
    if (cli_ends_with(path, ".pfm")) return read_pfm(path, out);
    return array_read_picture(path, out);
}

ExitStatus picture_write(const char *path, const Picture *picture) {
    bool flat = picture->depth == 1 && picture->format == SLOPE_IMAGE_float;
    if (!cli_ends_with(path, ".npy") && !flat)
        return unwritable(path, "only images of numbers between 0 and 1 can be pictures; write .npy");
    if (cli_ends_with(path, ".png")) return write_png(path, picture);
    if (cli_ends_with(path, ".pfm")) return write_pfm(path, picture);
    return array_write_picture(path, picture);
}
