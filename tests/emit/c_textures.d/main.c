/* Fills the textures of c_textures.slang, and prints what its functions find there. */
#include "program.h"

#include <stdio.h>
#include <string.h>

static uint32_t texels[12], painted[16], masked[4], deep[16], line[2];

static slope_Image make_image(uint32_t *data, uint64_t count, uint32_t width) {
    slope_Image image;
    memset(&image, 0, sizeof image); /* height, depth and levels: 1; channels: those of an element */
    image.texels.data = data;
    image.texels.count = count;
    image.width = width;
    return image;
}

static void fill(uint32_t *to, const float *from, size_t size) { memcpy(to, from, size); }

/* All but what the program says of its format. */
static void set(slope_Image *image, uint32_t *data, uint64_t count, uint32_t depth) {
    uint32_t declared = image->declared;
    *image = make_image(data, count, 2);
    image->height = 2;
    image->depth = depth;
    image->declared = declared;
}

static float number(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void show_slopes(bool is_wrapped) {
    float2 at = {0.125f, 0.25f};
    float along = slope(&at, is_wrapped);
    printf("slopes %g %g, together %g\n", at.x, at.y, along);
}

int main(void) {
    const float colours[12] = {1, 1, 1, 8, 0, 0, 5, 0, 2, 3, 4, 0};
    float second[16] = {0};
    second[15] = 0.4f;
    fill(texels, colours, sizeof colours);
    fill(deep, second, sizeof second);
    set(&picture.image, texels, 12, 0);
    set(&canvas.image, painted, 16, 0);
    set(&layers.mask.image, masked, 4, 0);
    set(&layers.volume.image, deep, 16, 2);
    lines[1].image.texels.data = line;
    lines[1].image.texels.count = 2;
    lines[1].image.width = 2;
    wrapped.address.x = wrapped.address.y = 1;
    float2 corner = {0.25f, 0.25f}, edge = {0, 0.25f};
    printf("%g %g %g\n", brightness(corner, false), brightness(edge, false), brightness(edge, true));
    show_slopes(false);
    show_slopes(true);
    int2 at = {1, 1};
    paint(at, 0.334f);
    printf("%g %g %g of 0.334\n", number(painted[12]), number(masked[3]), number(line[1]));
    return 0;
}
