/* Bump allocation in blocks that double in size. Nothing is freed before the arena is. */
#include "base.h"

#include <stdlib.h>

struct ArenaBlock {
    ArenaBlock *older;
    size_t size; /* header included */
};

#define ALIGNMENT   ((size_t)16)
#define FIRST_BLOCK ((size_t)16 * 1024)
#define LAST_BLOCK  ((size_t)4 * 1024 * 1024)
#define HEADER      ((sizeof(ArenaBlock) + ALIGNMENT - 1) & ~(ALIGNMENT - 1))

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

void arena_free(Arena *arena) {
    for (Arena *scratch = arena->scratches; scratch; scratch = scratch->next_scratch) arena_free(scratch);
    arena->scratches = NULL; /* they live in the blocks that go now */
    arena->in_use = false;
    for (ArenaBlock *block = arena->block, *older; block; block = older) {
        older = block->older;
        arena->allocator.resize(arena->allocator.user, block, block->size, 0);
    }
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
    size = size ? (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1) : ALIGNMENT;
    if ((size_t)(arena->end - arena->next) < size) add_block(arena, size);
    char *taken = arena->next;
    arena->next += size;
    return memset(taken, 0, size);
}

void *arena_copy(Arena *arena, const void *data, size_t size) {
    void *taken = arena_take(arena, size);
    if (size) memcpy(taken, data, size);
    return taken;
}
