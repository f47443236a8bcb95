/* --watch: waits until a source changes.
 *
 * What a program imports is found by looking, and may change with it; so all .slang files beside the program
 * and in the folders of -I are watched, by their times and sizes. An editor that writes a file anew is no
 * different from one that changes it. */
#include "cli.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { PAUSE_MS = 100 };

static uint64_t mix(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x9e3779b97f4a7c15u; }

/* Files come in any order, so that theirs must not matter. */
static uint64_t look_at_file(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0) return 0;
    uint64_t sum = mix((uint64_t)found.st_ino, (uint64_t)found.st_size);
    sum = mix(sum, (uint64_t)found.st_mtim.tv_sec);
    return mix(sum, (uint64_t)found.st_mtim.tv_nsec);
}

static bool is_source(const char *name) {
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".slang") == 0;
}

static uint64_t look_at_folder(const char *folder) {
    uint64_t sum = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        char path[4096];
        if (!is_source(entry->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        sum += look_at_file(path);
    }
    if (open) closedir(open);
    return sum;
}

uint64_t watch_look(const Options *options) {
    uint64_t sum = 0;
    for (int i = 0; i < options->files.count; i++) {
        const char *file = options->files.at[i], *slash = strrchr(file, '/');
        char *folder = slash ? strndup(file, (size_t)(slash - file) + 1) : NULL;
        sum += look_at_file(file) + look_at_folder(folder ? folder : ".");
        free(folder);
    }
    for (int i = 0; i < options->values[OPTION_include].count; i++)
        sum += look_at_folder(options->values[OPTION_include].at[i]);
    return sum;
}

bool watch_wait(const Options *options, uint64_t *seen) {
    if (options->files.count == 0 || strcmp(options->files.at[0], "-") == 0) {
        cli_misuse("the option '--watch' needs a file to watch");
        return false;
    }
    fprintf(stderr, "slope: waiting for a change; Ctrl-C ends this\n");
    uint64_t before = *seen;
    while ((*seen = watch_look(options)) == before)
        nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
    return true;
}
