/* Text slices, hashing, interned names. */
#include "base.h"

Str str_of(const char *text) { return (Str){text, (int)strlen(text)}; }

bool str_eq(Str a, Str b) { return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, (size_t)a.len) == 0); }

bool str_starts(Str s, const char *prefix) {
    size_t n = strlen(prefix);
    return (size_t)s.len >= n && memcmp(s.at, prefix, n) == 0;
}

bool str_ends(Str s, const char *suffix) {
    size_t n = strlen(suffix);
    return (size_t)s.len >= n && memcmp(s.at + s.len - n, suffix, n) == 0;
}

/* FNV-1a, eight bytes at a time where there are eight. */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; size; size--, p++) h = (h ^ *p) * 0x100000001b3u;
    return h ^ (h >> 32);
}

void names_init(Names *names, Arena *arena, const Names *outer) {
    *names = (Names){.arena = arena, .outer = outer};
}

static void names_rehash(Names *names) {
    int room = names->room ? names->room * 2 : names->outer ? 128 : 1024;
    struct NameSlot *slots = arena_array(names->arena, struct NameSlot, room);
    for (int i = 0; i < names->room; i++) {
        if (!names->slots[i].name) continue;
        int at = (int)(names->slots[i].hash & (uint64_t)(room - 1));
        while (slots[at].name) at = (at + 1) & (room - 1);
        slots[at] = names->slots[i];
    }
    names->slots = slots;
    names->room = room;
}

/* The slot that holds the name, or would. */
static int slot_of(const Names *names, Str text, uint64_t hash) {
    int at = (int)(hash & (uint64_t)(names->room - 1));
    for (; names->slots[at].name; at = (at + 1) & (names->room - 1)) {
        const NameText *name = names->slots[at].name;
        if (names->slots[at].hash == hash && name->len == text.len &&
            memcmp(name->text, text.at, (size_t)text.len) == 0)
            break;
    }
    return at;
}

static Name find_name(const Names *names, Str text, uint64_t hash) {
    for (; names && names->room; names = names->outer) {
        Name known = names->slots[slot_of(names, text, hash)].name;
        if (known) return known;
    }
    return NULL;
}

Name name_known(const Names *names, Str text) {
    return find_name(names, text, hash_bytes(text.at, (size_t)text.len, 0));
}

Name name_of(Names *names, Str text) {
    uint64_t hash = hash_bytes(text.at, (size_t)text.len, 0);
    Name known = find_name(names->outer, text, hash);
    if (known) return known;
    if (names->count * 2 >= names->room) names_rehash(names);
    int at = slot_of(names, text, hash);
    if (names->slots[at].name) return names->slots[at].name;
    NameText *name = arena_take(names->arena, sizeof(NameText) + (size_t)text.len + 1);
    name->hash = hash;
    name->len = text.len;
    memcpy(name->text, text.at, (size_t)text.len);
    names->slots[at] = (struct NameSlot){hash, name};
    names->count++;
    return name;
}

Name name_from(Names *names, const char *text) { return name_of(names, str_of(text)); }
