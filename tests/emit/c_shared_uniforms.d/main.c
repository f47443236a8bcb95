/* Calls what c_shared_uniforms.slang has in two files. */
#include "a.h"
#include "b.h"
#include <stdio.h>

int main(void) {
    uint8_t4 memory[1], x = {1, 2, 3, 4};
    bytes.data = memory;
    bytes.count = 1;
    scale = 7;
    x = second(x);
    printf("%g %d\n", first(4), x.y);
    return 0;
}
