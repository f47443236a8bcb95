/* Writing a file so that it is either all there or as it was: beside its place first, then moved. What is no
 * file, such as a pipe or a device, is written as it is. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ExitStatus unwritable(const char *path, int error) {
    return cli_misuse("cannot write '%s': %s", path, strerror(error));
}

static bool is_no_file(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

/* The file that a link leads to is the one to replace. */
static char *beside(const char *path) {
    char *target = realpath(path, NULL);
    const char *place = target ? target : path;
    size_t room = strlen(place) + 32;
    char *name = malloc(room);
    if (name) snprintf(name, room, "%s.%ld.part", place, (long)getpid());
    free(target);
    return name;
}

ExitStatus save_begin(Saving *saving, const char *path) {
    *saving = (Saving){.path = path};
    if (!is_no_file(path) && !(saving->beside = beside(path))) return unwritable(path, ENOMEM);
    saving->file = fopen(saving->beside ? saving->beside : path, "wb");
    if (saving->file) return EXIT_fine;
    ExitStatus status = unwritable(path, errno);
    free(saving->beside);
    return status;
}

ExitStatus save_end(Saving *saving, bool written) {
    int error = errno;
    bool closed = fclose(saving->file) == 0;
    if (written && !closed) error = errno;
    written = written && closed;
    char *target = realpath(saving->path, NULL);
    if (written && saving->beside && rename(saving->beside, target ? target : saving->path) != 0) {
        error = errno;
        written = false;
    }
    if (!written && saving->beside) unlink(saving->beside);
    free(target);
    free(saving->beside);
    return written ? EXIT_fine : unwritable(saving->path, error);
}
