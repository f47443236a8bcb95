/* Gives the kernel images of one texel each, and says nothing of formats. */
#include "program.h"

#include <string.h>

static uint32_t texels[4];

static void set(slope_Image *image, uint32_t *texel) {
    memset(image, 0, sizeof *image);
    image->texels.data = texel;
    image->texels.count = 1;
    image->width = image->height = 1;
}

int main(void) {
    RWTexture2D_float depth;
    RWTexture2D_uint marks[2];
    Layers layers;
    layers.gain = 1;
    set(&depth.image, &texels[0]);
    set(&layers.mask.image, &texels[1]);
    set(&marks[0].image, &texels[2]);
    set(&marks[1].image, &texels[3]);
    paint(1, 1, 1, &depth, &layers, marks);
    return 0;
}
