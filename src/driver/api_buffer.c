/* Buffers: memory for kernels, made by the runtime (with a counter before it) or the caller's own. */
#include "driver.h"

static SlopeStatus add_buffer(SlopeSession *session, RtBuffer memory, bool wrapped, SlopeBuffer **out) {
    Allocator allocator = session->allocator;
    SlopeBuffer *buffer = allocator.resize(allocator.user, NULL, 0, sizeof *buffer);
    if (!buffer) {
        if (!wrapped) runtime_buffer_free(memory);
        return SLOPE_STATUS_memory;
    }
    *buffer =
        (SlopeBuffer){.session = session, .next = session->buffers, .memory = memory, .wrapped = wrapped};
    if (buffer->next) buffer->next->prev = buffer;
    session->buffers = buffer;
    *out = buffer;
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_buffer_new(SlopeSession *session, size_t size, SlopeBuffer **out) {
    if (!session || !out) return SLOPE_STATUS_misuse;
    *out = NULL;
    if (session->broken) return SLOPE_STATUS_fault;
    RtBuffer memory = runtime_buffer_new(size, 1);
    return memory.data ? add_buffer(session, memory, false, out) : SLOPE_STATUS_memory;
}

SlopeStatus slope_buffer_wrap(SlopeSession *session, void *data, size_t size, SlopeBuffer **out) {
    if (!session || !out || (!data && size > 0)) return SLOPE_STATUS_misuse;
    *out = NULL;
    if (session->broken) return SLOPE_STATUS_fault;
    return add_buffer(session, (RtBuffer){data, size}, true, out);
}

void slope_buffer_free(SlopeBuffer *buffer) {
    if (!buffer) return;
    SlopeSession *session = buffer->session;
    if (buffer->prev) buffer->prev->next = buffer->next;
    else session->buffers = buffer->next;
    if (buffer->next) buffer->next->prev = buffer->prev;
    if (!buffer->wrapped) runtime_buffer_free(buffer->memory);
    session->allocator.resize(session->allocator.user, buffer, sizeof *buffer, 0);
}

void *slope_buffer_data(SlopeBuffer *buffer) { return buffer ? buffer->memory.data : NULL; }

size_t slope_buffer_size(const SlopeBuffer *buffer) { return buffer ? buffer->memory.count : 0; }

uint32_t *slope_buffer_counter(SlopeBuffer *buffer) {
    return !buffer || buffer->wrapped ? NULL : runtime_buffer_counter(buffer->memory);
}

void driver_free_buffers(SlopeSession *session) {
    while (session->buffers) slope_buffer_free(session->buffers);
}
