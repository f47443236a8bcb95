/* base: memory, names, containers, source text and numbers. Everything else stands on this folder.
 *
 * Memory comes from arenas and is never freed piece by piece. An arena is named by its lifetime: session
 * (names, types, prelude), module (tree, IR), scratch (one pass). All memory from an arena is zeroed, and
 * zero is a valid empty value for every container here.
 *
 * Running out of memory, or a fault of Slope's own, unwinds to the nearest Trap, which every entry point of
 * the public API sets up: no function below it has to test for either. */
#ifndef SLOPE_BASE_H
#define SLOPE_BASE_H

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(pattern, first) __attribute__((format(printf, pattern, first)))
#define NORETURN                    __attribute__((noreturn))
#else
#define PRINTF_LIKE(pattern, first)
#define NORETURN
#endif

/* ---- arena.c */

typedef struct Allocator {
    /* As realloc: new_size 0 frees, old NULL allocates. Returns NULL when there is no memory. */
    void *(*resize)(void *user, void *old, size_t old_size, size_t new_size);
    void *user;
} Allocator;

extern const Allocator allocator_system; /* realloc and free */

typedef enum TrapReason { TRAP_none, TRAP_memory, TRAP_limit, TRAP_malformed, TRAP_fault } TrapReason;

/* Where to go when work cannot continue. `setjmp(trap.at)` by the owner; `why` and `what` tell the reason. */
typedef struct Trap {
    jmp_buf at;
    TrapReason why;
    const char *what;
} Trap;

void trap_spring(Trap *trap, TrapReason why, const char *what) NORETURN;

typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
    ArenaBlock *block; /* the newest; older ones behind it */
    char *next, *end;
    size_t total; /* bytes in all blocks */
    size_t limit; /* 0: none */
    Allocator allocator;
    Trap *trap;
    struct Arena *scratches, *next_scratch; /* see arena_scratch */
    bool in_use;
} Arena;

void arena_init(Arena *arena, Allocator allocator, Trap *trap);
void arena_free(Arena *arena); /* everything; the arena is empty and usable again */
#define ARENA_ALIGNMENT ((size_t)16)
static inline size_t arena_round(size_t size) {
    return size ? (size + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1) : ARENA_ALIGNMENT;
}
void *arena_take(Arena *arena, size_t size); /* zeroed, aligned for any type */
/* The same where the size is known to the compiler. */
static inline void *arena_take_fixed(Arena *arena, size_t size) {
    size = arena_round(size);
    if ((size_t)(arena->end - arena->next) < size) return arena_take(arena, size);
    char *taken = arena->next;
    arena->next += size;
    return memset(taken, 0, size);
}
void *arena_copy(Arena *arena, const void *data, size_t size);
/* An empty arena for the time of one pass: arena_free gives its memory back, and so does freeing the arena it
 * came from, in case the pass was left through the trap. */
Arena *arena_scratch(Arena *arena);
/* A copy of what is in it, from another allocator, to be put back where it was: what was taken since is gone
 * then, and what was changed is as before. At a time when no scratch is in use. NULL: no memory. */
typedef struct ArenaImage ArenaImage;
ArenaImage *arena_save(const Arena *arena, Allocator allocator);
void arena_restore(Arena *arena, const ArenaImage *image);
void arena_image_free(ArenaImage *image, Allocator allocator);
void arena_fault(Arena *arena, const char *what) NORETURN; /* a fault of Slope's own */
/* A fault too, but found by looking at what was made: only the program that it belongs to is spoilt. */
void arena_malformed(Arena *arena, const char *what) NORETURN;
/* A limit that is none of memory was passed, which has been reported: what is made so far is not to be
 * used. */
void arena_give_up(Arena *arena) NORETURN;

#define arena_new(arena, T)      ((T *)arena_take_fixed((arena), sizeof(T)))
#define arena_array(arena, T, n) ((T *)arena_take((arena), sizeof(T) * (size_t)(n)))

/* ---- names.c: text slices and interned names */

typedef struct Str {
    const char *at;
    int len;
} Str;

#define STR(literal) ((Str){(literal), (int)sizeof(literal) - 1})
#define STR_ARG(s)   (s).len, (s).at /* for "%.*s" */

Str str_of(const char *text);
bool str_eq(Str a, Str b);
bool str_starts(Str s, const char *prefix);
bool str_ends(Str s, const char *suffix);
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);
/* Two words into one, spread well: different pairs of small numbers or pointers never meet in practice. */
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    uint64_t h = a * 0x9e3779b97f4a7c15u + b;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* Interned: two names are the same text exactly if they are the same pointer. Ends with a NUL byte. */
typedef struct NameText {
    uint64_t hash;
    int len;
    uint16_t keyword; /* a token kind, 0 for plain identifiers; set by syntax */
    char text[];
} NameText;
typedef const NameText *Name;

/* One of 64: sets of these are asked first where most names are not in. */
static inline uint64_t name_bit(Name name) { return (uint64_t)1 << (name->hash & 63); }

typedef struct Names {
    Arena *arena;
    const struct Names *outer; /* whose names these are too; it is not added to any more. NULL: none */
    struct NameSlot {
        uint64_t hash; /* of the name, which is far away */
        NameText *name;
    } * slots;
    int count, room;
} Names;

void names_init(Names *names, Arena *arena, const Names *outer);
Name name_of(Names *names, Str text);
Name name_known(const Names *names, Str text); /* NULL: there is none so far */
Name name_from(Names *names, const char *text);

/* ---- vec.c: growable arrays and maps; memory from an arena, old blocks are left behind */

#define VEC(T)                                                                                               \
    struct {                                                                                                 \
        T *at;                                                                                               \
        int count, room;                                                                                     \
    }

void *vec_grow(Arena *arena, void *old, int count, int *room, size_t size);

/* Makes room for one more, then appends. `v` is a pointer to a VEC. */
#define vec_push(arena, v, item)                                                                             \
    ((void)((v)->count < (v)->room ||                                                                        \
            ((v)->at = vec_grow((arena), (v)->at, (v)->count, &(v)->room, sizeof *(v)->at), 1)),             \
     (v)->at[(v)->count++] = (item))
#define vec_last(v) ((v)->at[(v)->count - 1])
#define vec_pop(v)  ((v)->at[--(v)->count])

/* From 64-bit keys (often pointers) to pointers; key 0 is not allowed. Iteration order is insertion order. */
typedef struct MapEntry {
    uint64_t key;
    void *value;
} MapEntry;
typedef struct Map {
    MapEntry *entries; /* in order of insertion */
    int count, room;
    int *slots;
    int nslots;
} Map;

void *map_get(const Map *map, uint64_t key); /* NULL if absent */
bool map_has(const Map *map, uint64_t key);
void map_put(Arena *arena, Map *map, uint64_t key, void *value); /* replaces */
#define PTR_KEY(p) ((uint64_t)(uintptr_t)(p))

/* A set of pointers to values found by content: hash-consing. `equal` compares a stored value with a
 * candidate. */
typedef struct InternTable {
    void **slots;
    uint64_t *hashes;
    int count, room;
} InternTable;
typedef bool (*InternEqual)(const void *stored, const void *candidate);
void *intern_find(const InternTable *table, uint64_t hash, const void *candidate, InternEqual equal);
void intern_add(Arena *arena, InternTable *table, uint64_t hash, void *value);

/* ---- text.c: building text */

typedef struct Text {
    Arena *arena;
    char *at; /* always NUL-terminated once something was added */
    int len, room;
} Text;

void text_add(Text *text, Str s);
void text_char(Text *text, char c);
void text_printf(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_vprintf(Text *text, const char *format, va_list args);
void text_cut(Text *text, int len);    /* takes back what came later */
void text_pad(Text *text, int column); /* spaces up to that column of the current line */
Str text_str(const Text *text);
char *format_text(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* ---- number.c: numbers and text, independent of the locale, exact both ways */

double number_parse(const char *text, const char **end); /* decimal or 0x1.8p3 */
float half_to_float(uint16_t bits);
uint16_t half_from_float(float value); /* round to nearest even */
uint16_t half_from_double(double value);
/* The shortest decimal that reads back as the same number of that precision; always looks like a float
 * ("1.0"). */
typedef enum FloatWidth { WIDTH_half, WIDTH_float, WIDTH_double } FloatWidth;
void text_float(Text *text, double value, FloatWidth width);

/* ---- source.c: files in one address space of positions */

typedef uint32_t Loc; /* 0: nowhere. Positions of all files share one numbering. */

typedef struct SourceFile {
    Name path;  /* as shown to the user */
    Str text;   /* NUL-terminated */
    Loc base;   /* of its first byte */
    int *lines; /* offsets of line starts, made when first asked for */
    int nlines;
    int asked, asked_line, asked_column; /* the offset that was asked about last, and where that is */
    /* #line: from offset `at` on, positions are shown as `path`, counting from `line`. */
    VEC(struct LineMark {
        int at;
        int line;
        Name path;
    })
    marks;
} SourceFile;

typedef struct Sources {
    Arena *arena;
    struct Sources
        *outer; /* files with the positions before these, to which none is added any more; NULL: none */
    VEC(SourceFile *) files;
    Loc next;
} Sources;

typedef struct Position {
    Name path;
    int line, column; /* from 1; columns count characters, not bytes */
    Str text;         /* the line, without its end; of a very long one what is around the position */
    int byte;         /* offset of the position in `text` */
} Position;

void sources_init(Sources *sources, Arena *arena, Sources *outer);
SourceFile *source_add(Sources *sources, Name path, Str text); /* the text must outlive the sources */
SourceFile *source_of(const Sources *sources, Loc loc);        /* NULL for 0 */
void source_mark_line(Sources *sources, Loc at, int line, Name path);
Position source_position(Sources *sources, Loc loc);

/* What a message is about: `at` is where the caret stands, the tokens at `first` and `last` are its ends. */
typedef struct Span {
    Loc first, at, last;
} Span;

#endif
