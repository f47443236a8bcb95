/* Blocks of memory that programs have given back, kept for the next ones.
 *
 * Checking a file of some hundred lines takes about 4 MiB. To get them from the system, which clears every
 * page of them anew, takes a third of the time that checking takes. A session keeps a few MiB; what is more
 * goes back at once. Arenas ask for blocks of few sizes, so that one of the very size is mostly there. The
 * address sanitizer is to see what is used after it was freed: with it nothing is kept. */
#include "driver.h"

struct SpareBlock {
    SpareBlock *next;
    size_t size;
};

#if defined(__SANITIZE_ADDRESS__)
#define KEPT_BYTES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEPT_BYTES 0
#endif
#endif
#ifndef KEPT_BYTES
#define KEPT_BYTES ((size_t)8 * 1024 * 1024)
#endif

static void *take(Spare *spare, size_t size) {
    for (SpareBlock **at = &spare->first; *at; at = &(*at)->next) {
        SpareBlock *block = *at;
        if (block->size != size) continue;
        *at = block->next;
        spare->bytes -= size;
        return block;
    }
    return NULL;
}

static bool keep(Spare *spare, void *memory, size_t size) {
    if (size < sizeof(SpareBlock) || spare->bytes + size > KEPT_BYTES) return false;
    SpareBlock *block = memory;
    *block = (SpareBlock){spare->first, size};
    spare->first = block;
    spare->bytes += size;
    return true;
}

void *driver_resize_spare(SlopeSession *session, void *old, size_t old_size, size_t new_size) {
    if (old && !new_size && keep(&session->spare, old, old_size)) return NULL;
    void *block = old ? NULL : take(&session->spare, new_size);
    return block ? block : session->allocator.resize(session->allocator.user, old, old_size, new_size);
}

void driver_free_spare(SlopeSession *session) {
    for (SpareBlock *block = session->spare.first, *next; block; block = next) {
        next = block->next;
        session->allocator.resize(session->allocator.user, block, block->size, 0);
    }
    session->spare = (Spare){0};
}
