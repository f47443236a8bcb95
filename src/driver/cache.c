/* Machine code on disk, so that what was compiled once starts at once.
 *
 * A file holds what was made and the whole key that it was made for, which is compared: no two keys are ever
 * taken for each other. It is written beside its name and renamed, so that other processes see all of it or
 * nothing. When the files become too many, those go that nobody has asked for longest. Whatever fails, fails
 * in silence: then the code is made again.
 *
 * What is read here is run. So the folder must be the user's own and closed to the writing of others, and so
 * must be each file. */
#include "driver/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES ((int64_t)256 << 20)
#define SUFFIX     ".code"

typedef struct Head {
    char magic[16];
    uint64_t key_size, size;
    uint64_t sum; /* of what was made */
} Head;

static const char magic[sizeof((Head *)0)->magic] = "slope code 1\n";

/* ---- the folder */

static bool is_own(const struct stat *about) {
    return about->st_uid == geteuid() && !(about->st_mode & (S_IWGRP | S_IWOTH));
}

/* A descriptor; -1: there is none that can be trusted. */
static int open_folder(const char *path) {
    struct stat about;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || (fstat(folder, &about) == 0 && is_own(&about))) return folder;
    close(folder);
    return -1;
}

static void make_folders(const char *path) {
    char part[4096];
    for (size_t i = 1; i < sizeof part && i <= strlen(path); i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST) return;
    }
}

static const char *user_folder(Arena *arena) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (caches && caches[0] == '/') return format_text(arena, "%s/slope", caches);
    return home && home[0] == '/' ? format_text(arena, "%s/.cache/slope", home) : NULL;
}

/* ---- files */

static void file_of(const char *key, size_t key_size, char name[64]) {
    snprintf(name, 64, "%016llx%016llx" SUFFIX, (unsigned long long)hash_bytes(key, key_size, 1),
             (unsigned long long)hash_bytes(key, key_size, 2));
}

/* Is this the head of a file of that size, for a key of that size? */
static bool fits(const Head *head, const struct stat *about, size_t key_size) {
    uint64_t rest = (uint64_t)about->st_size - sizeof *head;
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->key_size == key_size && rest >= key_size &&
           head->size == rest - key_size;
}

/* To be freed; NULL: it is not what was asked for. */
static char *read_entry(FILE *file, const char *key, size_t key_size, size_t *size) {
    Head head;
    struct stat about;
    if (fstat(fileno(file), &about) < 0 || !S_ISREG(about.st_mode) || !is_own(&about)) return NULL;
    if (fread(&head, sizeof head, 1, file) != 1 || !fits(&head, &about, key_size)) return NULL;
    char *bytes = malloc(key_size + head.size + 1);
    bool same = bytes && fread(bytes, key_size + head.size, 1, file) == 1 &&
                memcmp(bytes, key, key_size) == 0 && hash_bytes(bytes + key_size, head.size, 0) == head.sum;
    if (!same) {
        free(bytes);
        return NULL;
    }
    memmove(bytes, bytes + key_size, head.size);
    *size = head.size;
    futimens(fileno(file), NULL); /* it is not among the oldest now */
    return bytes;
}

static char *find(void *user, const char *key, size_t key_size, size_t *size) {
    char name[64], *bytes = NULL;
    int folder = open_folder(user);
    if (folder < 0) return NULL;
    file_of(key, key_size, name);
    int descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (file) bytes = read_entry(file, key, key_size, size);
    if (file) fclose(file);
    else if (descriptor >= 0) close(descriptor);
    close(folder);
    return bytes;
}

static bool write_entry(int folder, const char *name, const Head *head, const char *key, const char *bytes) {
    int descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file) return false; /* somebody else is at it */
    bool fine = fwrite(head, sizeof *head, 1, file) == 1 && fwrite(key, head->key_size, 1, file) == 1 &&
                fwrite(bytes, head->size, 1, file) == 1;
    return fclose(file) == 0 && fine;
}

/* ---- not too many */

typedef struct Entry {
    char name[64];
    struct timespec used;
    int64_t size;
} Entry;

typedef struct Entries {
    Entry *at;
    size_t count, room;
    int64_t bytes;
} Entries;

static int older(const void *a, const void *b) {
    const struct timespec *x = &((const Entry *)a)->used, *y = &((const Entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool add_entry(Entries *entries, int folder, const char *name) {
    struct stat about;
    if (!strstr(name, SUFFIX) || strlen(name) >= sizeof entries->at->name) return true;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(about.st_mode)) return true;
    if (entries->count == entries->room) {
        entries->room = entries->room ? entries->room * 2 : 64;
        Entry *grown = realloc(entries->at, entries->room * sizeof *grown);
        if (!grown) return false;
        entries->at = grown;
    }
    Entry *entry = &entries->at[entries->count++];
    *entry = (Entry){.used = about.st_mtim, .size = about.st_size};
    memcpy(entry->name, name, strlen(name) + 1); /* it fits: see above */
    entries->bytes += entry->size;
    return true;
}

static void remove_oldest(Entries *entries, int folder) {
    qsort(entries->at, entries->count, sizeof *entries->at, older);
    for (size_t i = 0; i < entries->count && entries->bytes > MOST_BYTES / 4 * 3; i++) {
        unlinkat(folder, entries->at[i].name, 0);
        entries->bytes -= entries->at[i].size;
    }
}

static void trim(int folder) {
    Entries entries = {0};
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list && again >= 0) close(again);
    if (!list) return;
    for (struct dirent *next = readdir(list); next && add_entry(&entries, folder, next->d_name);)
        next = readdir(list);
    closedir(list);
    if (entries.bytes > MOST_BYTES) remove_oldest(&entries, folder);
    free(entries.at);
}

/* ---- for code generators */

static void keep(void *user, const char *key, size_t key_size, const char *bytes, size_t size) {
    char name[64], beside[96];
    make_folders(user);
    int folder = open_folder(user);
    if (folder < 0 || (int64_t)(key_size + size) > MOST_BYTES / 16) {
        if (folder >= 0) close(folder);
        return;
    }
    Head head = {.key_size = key_size, .size = size, .sum = hash_bytes(bytes, size, 0)};
    memcpy(head.magic, magic, sizeof magic);
    file_of(key, key_size, name);
    snprintf(beside, sizeof beside, "%s.%d", name, (int)getpid());
    if (!write_entry(folder, beside, &head, key, bytes) || renameat(folder, beside, folder, name) < 0)
        unlinkat(folder, beside, 0);
    trim(folder);
    close(folder);
}

const EmitCache *unit_cache(SlopeSession *session) {
    Pipeline *pipeline = session->stages;
    const char *path = session->config.cache;
    if (!path || !path[0]) return NULL;
    if (pipeline->cache.find) return &pipeline->cache;
    if (strcmp(path, SLOPE_CACHE_USER) == 0) path = user_folder(&session->arena);
    if (!path) return NULL;
    pipeline->cache = (EmitCache){(void *)(uintptr_t)path, find, keep};
    return &pipeline->cache;
}

GpuCache driver_gpu_cache(SlopeSession *session) {
    const EmitCache *cache = unit_cache(session);
    return cache ? (GpuCache){cache->user, cache->find, cache->keep} : (GpuCache){0};
}
