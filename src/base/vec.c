/* Growable arrays, maps and hash-consing tables. */
#include "base.h"

void *vec_grow(Arena *arena, void *old, int count, int *room, size_t size) {
    if (*room > INT32_MAX / 2) trap_spring(arena->trap, TRAP_memory, "out of memory");
    int wanted = *room ? *room * 2 : 4;
    void *grown = arena_take(arena, (size_t)wanted * size);
    if (count) memcpy(grown, old, (size_t)count * size);
    *room = wanted;
    return grown;
}

/* ---- maps: open addressing over indices into the entries */

static uint64_t spread(uint64_t key) {
    key *= 0x9e3779b97f4a7c15u;
    return key ^ (key >> 32);
}

static inline int find_slot(const Map *map, uint64_t key) {
    int at = (int)(spread(key) & (uint64_t)(map->nslots - 1));
    while (map->slots[at] && map->entries[map->slots[at] - 1].key != key) at = (at + 1) & (map->nslots - 1);
    return at;
}

static inline const MapEntry *find_entry(const Map *map, uint64_t key) {
    if (map->count <= 8) { /* few: a scan beats hashing, and no slots are needed */
        for (int i = 0; i < map->count; i++)
            if (map->entries[i].key == key) return &map->entries[i];
        return NULL;
    }
    int slot = map->slots[find_slot(map, key)];
    return slot ? &map->entries[slot - 1] : NULL;
}

void *map_get(const Map *map, uint64_t key) {
    const MapEntry *entry = find_entry(map, key);
    return entry ? entry->value : NULL;
}

bool map_has(const Map *map, uint64_t key) { return find_entry(map, key) != NULL; }

static void map_rehash(Arena *arena, Map *map) {
    map->nslots = 32;
    while (map->nslots < map->count * 3) map->nslots *= 2;
    map->slots = arena_array(arena, int, map->nslots);
    for (int i = 0; i < map->count; i++) map->slots[find_slot(map, map->entries[i].key)] = i + 1;
}

void map_put(Arena *arena, Map *map, uint64_t key, void *value) {
    assert(key != 0);
    const MapEntry *found = find_entry(map, key);
    if (found) {
        map->entries[found - map->entries].value = value;
        return;
    }
    if (map->count == map->room)
        map->entries = vec_grow(arena, map->entries, map->count, &map->room, sizeof *map->entries);
    map->entries[map->count++] = (MapEntry){key, value};
    if (map->count <= 8) return;
    if (map->count * 2 > map->nslots) map_rehash(arena, map);
    else map->slots[find_slot(map, key)] = map->count;
}

/* ---- hash-consing */

void *intern_find(const InternTable *table, uint64_t hash, const void *candidate, InternEqual equal) {
    if (!table->room) return NULL;
    int mask = table->room - 1;
    for (int at = (int)(hash & (uint64_t)mask); table->slots[at]; at = (at + 1) & mask)
        if (table->hashes[at] == hash && equal(table->slots[at], candidate)) return table->slots[at];
    return NULL;
}

static void intern_insert(InternTable *table, uint64_t hash, void *value) {
    int mask = table->room - 1, at = (int)(hash & (uint64_t)mask);
    while (table->slots[at]) at = (at + 1) & mask;
    table->slots[at] = value;
    table->hashes[at] = hash;
}

void intern_add(Arena *arena, InternTable *table, uint64_t hash, void *value) {
    if (table->count * 2 >= table->room) {
        InternTable grown = {.count = table->count, .room = table->room ? table->room * 2 : 64};
        grown.slots = arena_array(arena, void *, grown.room);
        grown.hashes = arena_array(arena, uint64_t, grown.room);
        for (int i = 0; i < table->room; i++)
            if (table->slots[i]) intern_insert(&grown, table->hashes[i], table->slots[i]);
        *table = grown;
    }
    intern_insert(table, hash, value);
    table->count++;
}
