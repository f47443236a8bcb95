/* The host of foreign_memory.slang: memory of exactly the size that it says, between what the address
 * sanitizer guards. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 3, HEIGHT = 2, CHANNELS = 4 };

static slope_Image make_image(void) {
    Buffer_uint texels = {calloc(WIDTH * HEIGHT * CHANNELS, sizeof(uint32_t)), WIDTH * HEIGHT * CHANNELS};
    return (slope_Image){texels, WIDTH, HEIGHT, 1, 1, CHANNELS, 0, 5};
}

int main(void) {
    static const int32_t indices[] = {0, 1, 2, 3, 4, 5, 9, -1, -2, -7, INT32_MAX, INT32_MIN};
    int count = sizeof indices / sizeof *indices;
    numbers = (Buffer_float){calloc(3, sizeof(float)), 3};
    items = (Buffer_Item){calloc(2, sizeof(Item)), 2};
    bytes = (Buffer_bytes){calloc(10, 1), 10};
    image.image = make_image();
    canvas.image = make_image();
    float sum = 0;
    for (int i = 0; i < count; i++) sum += try_all(1.5f, indices[i]);
    printf("all %d indices, three kinds of access\n", count);
    return sum == 12345;
}
