/* Buffers with a header in front of the data, whose first four bytes are the counter. The header is padded so
 * that the data is aligned for the widest vectors. */
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

enum { FRONT = 64 };

RtBuffer runtime_buffer_new(uint64_t count, uint64_t stride) {
    RtBuffer none = {NULL, 0};
    if (stride && count > (SIZE_MAX / 2 - 2 * FRONT) / stride) return none;
    size_t size = (size_t)(count * stride);
    size_t whole = (FRONT + size + FRONT - 1) / FRONT * FRONT;
    char *memory = aligned_alloc(FRONT, whole < 2 * FRONT ? 2 * FRONT : whole);
    if (!memory) return none;
    memset(memory, 0, FRONT + size);
    return (RtBuffer){memory + FRONT, count};
}

void runtime_buffer_free(RtBuffer buffer) {
    if (buffer.data) free((char *)buffer.data - FRONT);
}

uint32_t *runtime_buffer_counter(RtBuffer buffer) {
    return (uint32_t *)(void *)((char *)buffer.data - RT_BUFFER_HEADER);
}
