/* Bump allocation in blocks that double in size. Nothing is freed before the arena is. */
#include "base.h"

#include <stdlib.h>

struct ArenaBlock {
    ArenaBlock *older;
    size_t size; /* header included */
};

#define FIRST_BLOCK ((size_t)16 * 1024)
#define LAST_BLOCK  ((size_t)4 * 1024 * 1024)
#define HEADER      ((sizeof(ArenaBlock) + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1))

static void *system_resize(void *user, void *old, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_size);
}

const Allocator allocator_system = {system_resize, NULL};

void trap_spring(Trap *trap, TrapReason why, const char *what) {
    if (!trap) abort(); /* only in unit tests, which set none up */
    trap->why = why;
    trap->what = what;
    longjmp(trap->at, 1);
}

void arena_init(Arena *arena, Allocator allocator, Trap *trap) {
    *arena = (Arena){.allocator = allocator, .trap = trap};
}

/* The blocks that are newer than this one; NULL: all. */
static void free_newer(Arena *arena, const ArenaBlock *last) {
    for (Arena *scratch = arena->scratches; scratch; scratch = scratch->next_scratch) arena_free(scratch);
    arena->scratches = NULL; /* they live in the blocks that go now */
    for (ArenaBlock *block = arena->block, *older; block != last; block = older) {
        older = block->older;
        arena->allocator.resize(arena->allocator.user, block, block->size, 0);
    }
}

void arena_free(Arena *arena) {
    free_newer(arena, NULL);
    arena->in_use = false;
    arena->block = NULL;
    arena->next = arena->end = NULL;
    arena->total = 0;
}

Arena *arena_scratch(Arena *arena) {
    Arena *scratch = arena->scratches;
    while (scratch && scratch->in_use) scratch = scratch->next_scratch;
    if (!scratch) {
        scratch = arena_new(arena, Arena);
        arena_init(scratch, arena->allocator, arena->trap);
        scratch->limit = arena->limit;
        scratch->next_scratch = arena->scratches;
        arena->scratches = scratch;
    }
    scratch->in_use = true;
    return scratch;
}

void arena_fault(Arena *arena, const char *what) { trap_spring(arena->trap, TRAP_fault, what); }

void arena_malformed(Arena *arena, const char *what) { trap_spring(arena->trap, TRAP_malformed, what); }

void arena_give_up(Arena *arena) { trap_spring(arena->trap, TRAP_limit, "a limit was passed"); }

static void add_block(Arena *arena, size_t wanted) {
    size_t size = arena->block ? arena->block->size * 2 : FIRST_BLOCK;
    if (size > LAST_BLOCK) size = LAST_BLOCK;
    if (size < wanted + HEADER) size = wanted + HEADER;
    bool allowed = wanted < SIZE_MAX / 2 && (!arena->limit || arena->total + size <= arena->limit);
    ArenaBlock *block = allowed ? arena->allocator.resize(arena->allocator.user, NULL, 0, size) : NULL;
    if (!block) trap_spring(arena->trap, TRAP_memory, "out of memory");
    *block = (ArenaBlock){arena->block, size};
    arena->block = block;
    arena->total += size;
    arena->next = (char *)block + HEADER;
    arena->end = (char *)block + size;
}

void *arena_take(Arena *arena, size_t size) {
    if ((size_t)(arena->end - arena->next) < arena_round(size)) add_block(arena, arena_round(size));
    return arena_take_fixed(arena, size);
}

void *arena_copy(Arena *arena, const void *data, size_t size) {
    void *taken = arena_take(arena, size);
    if (size) memcpy(taken, data, size);
    return taken;
}

/* ---- images */

struct ArenaImage {
    Arena arena;
    size_t size;  /* of the image, header included */
    char bytes[]; /* of the blocks, the newest first */
};

static size_t used_of(const Arena *arena, const ArenaBlock *block) {
    return block == arena->block ? (size_t)(arena->next - (const char *)block) : block->size;
}

ArenaImage *arena_save(const Arena *arena, Allocator allocator) {
    size_t size = sizeof(ArenaImage);
    for (const ArenaBlock *block = arena->block; block; block = block->older) size += used_of(arena, block);
    ArenaImage *image = allocator.resize(allocator.user, NULL, 0, size);
    if (!image) return NULL;
    image->arena = *arena;
    image->size = size;
    char *to = image->bytes;
    for (const ArenaBlock *block = arena->block; block; block = block->older) {
        memcpy(to, block, used_of(arena, block));
        to += used_of(arena, block);
    }
    return image;
}

void arena_restore(Arena *arena, const ArenaImage *image) {
    free_newer(arena, image->arena.block);
    *arena = image->arena;
    const char *from = image->bytes;
    for (ArenaBlock *block = arena->block; block; block = block->older) {
        size_t used = used_of(arena, block);
        memcpy(block, from, used);
        from += used;
    }
}

void arena_image_free(ArenaImage *image, Allocator allocator) {
    if (image) allocator.resize(allocator.user, image, image->size, 0);
}
