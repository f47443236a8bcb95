/* Buffers: memory for kernels, made by the runtime (with a counter before it) or the caller's own.
 *
 * Where kernels run on a GPU, a buffer is in two places: here, and there from the first run that uses it.
 * What a kernel may have written is copied back when somebody asks for it; who asks may also write, so that
 * it is copied there before the next run. Memory of the caller is copied both ways in each run, as nobody
 * asks for that. */
#include "driver.h"

enum { FRONT = 256 }; /* bytes before the data on a GPU, for its alignment; the counter is at their end */

static SlopeStatus add_buffer(SlopeSession *session, const SlopeBuffer *like, SlopeBuffer **out) {
    Allocator allocator = session->allocator;
    SlopeBuffer *buffer = allocator.resize(allocator.user, NULL, 0, sizeof *buffer);
    if (!buffer) {
        if (!like->wrapped) runtime_buffer_free(like->memory);
        return SLOPE_STATUS_memory;
    }
    *buffer = *like;
    buffer->session = session;
    buffer->next = session->buffers;
    if (buffer->next) buffer->next->prev = buffer;
    session->buffers = buffer;
    *out = buffer;
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_buffer_new(SlopeSession *session, size_t size, SlopeBuffer **out) {
    if (out) *out = NULL;
    if (!session || !out) return SLOPE_STATUS_misuse;
    if (session->broken) return SLOPE_STATUS_fault;
    SlopeBuffer buffer = {.memory = runtime_buffer_new(size, 1)};
    return buffer.memory.data ? add_buffer(session, &buffer, out) : SLOPE_STATUS_memory;
}

SlopeStatus slope_buffer_wrap(SlopeSession *session, void *data, size_t size, SlopeBuffer **out) {
    if (out) *out = NULL;
    if (!session || !out) return SLOPE_STATUS_misuse;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!data && size > 0) return driver_missing(session, "slope_buffer_wrap", "data");
    return add_buffer(session, &(SlopeBuffer){.memory = {data, size}, .wrapped = true, .host_newer = true},
                      out);
}

static SlopeStatus absent(SlopeSession *session, const char *function) {
    diag_report(session->diags, DIAG_device_absent, 0, function);
    return driver_leave(session, SLOPE_STATUS_misuse);
}

SlopeStatus slope_buffer_wrap_device(SlopeSession *session, uint64_t address, size_t size,
                                     SlopeBuffer **out) {
    if (out) *out = NULL;
    if (!session || !out) return SLOPE_STATUS_misuse;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!driver_has_gpu(session)) return absent(session, "slope_buffer_wrap_device");
    if (!address && size > 0) return driver_missing(session, "slope_buffer_wrap_device", "address");
    SlopeBuffer buffer = {
        .memory = {(void *)(uintptr_t)address, size}, .wrapped = true, .foreign = true, .address = address};
    return add_buffer(session, &buffer, out);
}

void slope_buffer_free(SlopeBuffer *buffer) {
    if (!buffer) return;
    SlopeSession *session = buffer->session;
    if (buffer->prev) buffer->prev->next = buffer->next;
    else session->buffers = buffer->next;
    if (buffer->next) buffer->next->prev = buffer->prev;
    if (!buffer->wrapped) runtime_buffer_free(buffer->memory);
    if (session->gpu) gpu_give(session->gpu, buffer->base);
    session->allocator.resize(session->allocator.user, buffer, sizeof *buffer, 0);
}

/* ---- where it is */

/* The counter goes along with the data. */
size_t driver_buffer_header(const SlopeBuffer *buffer) { return buffer->wrapped ? 0 : RT_BUFFER_HEADER; }

static bool copy_to_device(SlopeBuffer *buffer, Gpu *gpu) {
    size_t header = driver_buffer_header(buffer);
    const char *from = (const char *)buffer->memory.data - header;
    if (!gpu_write(gpu, buffer->address - header, from, buffer->memory.count + header)) return false;
    buffer->host_newer = buffer->wrapped;
    return true;
}

bool driver_buffer_to_device(SlopeBuffer *buffer, Gpu *gpu) {
    if (buffer->foreign) return true;
    if (!buffer->base) {
        if (!gpu_take(gpu, FRONT + buffer->memory.count, &buffer->base)) return false;
        buffer->address = buffer->base + FRONT;
        buffer->host_newer = true;
    }
    return !buffer->host_newer || copy_to_device(buffer, gpu);
}

bool driver_buffer_to_host(SlopeBuffer *buffer) {
    size_t header = driver_buffer_header(buffer);
    if (!buffer->device_newer) return true;
    buffer->device_newer = false;
    return gpu_read(buffer->session->gpu, (char *)buffer->memory.data - header, buffer->address - header,
                    buffer->memory.count + header);
}

bool driver_buffers_to_host(SlopeSession *session) {
    for (SlopeBuffer *buffer = session->buffers; buffer; buffer = buffer->next) {
        if (buffer->foreign) continue;
        if (!driver_buffer_to_host(buffer)) {
            diag_report(session->diags, DIAG_device_failed, 0, gpu_error(session->gpu));
            return false;
        }
        buffer->host_newer = true;
    }
    return true;
}

SlopeBuffer *driver_buffer_at(const SlopeSession *session, const void *data) {
    for (SlopeBuffer *buffer = session->buffers; buffer && data; buffer = buffer->next) {
        const char *first = buffer->memory.data, *at = data;
        if (at == first || (at > first && (size_t)(at - first) < buffer->memory.count)) return buffer;
    }
    return NULL;
}

/* Says why the GPU did not do it. */
static SlopeStatus device_failed(SlopeSession *session) {
    diag_report(session->diags, DIAG_device_failed, 0, gpu_error(session->gpu));
    return driver_leave(session, SLOPE_STATUS_error);
}

/* ---- asking for it */

void *slope_buffer_data(SlopeBuffer *buffer) {
    if (!buffer || buffer->foreign) return NULL;
    SlopeSession *session = buffer->session;
    if (buffer->device_newer) {
        if (setjmp(session->trap.at)) {
            driver_trapped(session);
            return NULL;
        }
        if (!driver_enter(session)) return NULL;
        if (!driver_buffer_to_host(buffer)) {
            device_failed(session);
            return NULL;
        }
    }
    buffer->host_newer = true;
    return buffer->memory.data;
}

size_t slope_buffer_size(const SlopeBuffer *buffer) { return buffer ? buffer->memory.count : 0; }

uint32_t *slope_buffer_counter(SlopeBuffer *buffer) {
    if (!buffer || buffer->wrapped || !slope_buffer_data(buffer)) return NULL;
    return runtime_buffer_counter(buffer->memory);
}

SlopeStatus slope_buffer_address(SlopeBuffer *buffer, uint64_t *out) {
    if (!buffer || !out) return SLOPE_STATUS_misuse;
    SlopeSession *session = buffer->session;
    *out = 0;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!driver_has_gpu(session)) return absent(session, "slope_buffer_address");
    Gpu *gpu = driver_gpu(session);
    if (!gpu) return driver_leave(session, SLOPE_STATUS_error);
    if (!driver_buffer_to_device(buffer, gpu)) return device_failed(session);
    buffer->device_newer = !buffer->foreign && !buffer->wrapped; /* others may write there */
    *out = buffer->address;
    return SLOPE_STATUS_ok;
}

/* Is that part of the buffer? */
static bool is_within(SlopeBuffer *buffer, const char *function, size_t offset, size_t size) {
    size_t whole = buffer->memory.count;
    if (offset <= whole && size <= whole - offset) return true;
    diag_report(buffer->session->diags, DIAG_buffer_range, 0, function, whole, size, offset);
    return false;
}

SlopeStatus slope_buffer_read(SlopeBuffer *buffer, size_t offset, void *to, size_t size) {
    if (!buffer || (!to && size > 0)) return SLOPE_STATUS_misuse;
    SlopeSession *session = buffer->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!is_within(buffer, "slope_buffer_read", offset, size))
        return driver_leave(session, SLOPE_STATUS_misuse);
    if (buffer->foreign && !driver_gpu(session)) return driver_leave(session, SLOPE_STATUS_error);
    if (buffer->foreign || buffer->device_newer)
        return gpu_read(session->gpu, to, buffer->address + offset, size) ? SLOPE_STATUS_ok
                                                                          : device_failed(session);
    if (size) memcpy(to, (const char *)buffer->memory.data + offset, size);
    return SLOPE_STATUS_ok;
}

SlopeStatus slope_buffer_write(SlopeBuffer *buffer, size_t offset, const void *from, size_t size) {
    if (!buffer || (!from && size > 0)) return SLOPE_STATUS_misuse;
    SlopeSession *session = buffer->session;
    if (setjmp(session->trap.at)) return driver_trapped(session);
    if (!driver_enter(session)) return driver_refused(session);
    if (!is_within(buffer, "slope_buffer_write", offset, size))
        return driver_leave(session, SLOPE_STATUS_misuse);
    if (buffer->foreign && !driver_gpu(session)) return driver_leave(session, SLOPE_STATUS_error);
    bool is_there = buffer->foreign || (buffer->address && !buffer->host_newer);
    if (!is_there) {
        if (size) memcpy((char *)buffer->memory.data + offset, from, size);
        return SLOPE_STATUS_ok;
    }
    if (!gpu_write(session->gpu, buffer->address + offset, from, size)) return device_failed(session);
    buffer->device_newer = !buffer->foreign;
    return SLOPE_STATUS_ok;
}

void driver_free_images(const SlopeProgram *program, const char *texture) {
    for (SlopeBuffer *buffer = program->session->buffers, *next; buffer; buffer = next) {
        next = buffer->next;
        bool is_meant = buffer->program == program && (!texture || buffer->texture == texture);
        if (is_meant) slope_buffer_free(buffer);
    }
}

void driver_free_buffers(SlopeSession *session) {
    while (session->buffers) slope_buffer_free(session->buffers);
}
