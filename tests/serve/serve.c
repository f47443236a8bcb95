/* The command `slope`, many times in one process: to open a GPU takes longer than most tests. Its `main` is
 * called cli_main here.
 *
 * A line of standard input is a command: the folder it is run in, files for what it prints and for its
 * messages, and its arguments, separated by the character 31. When it is done its status is printed, on a
 * line. The GPU's context is held all the time, so that sessions find it open. See tests/served.py. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_main(int argc, char **argv);

enum { MOST_WORDS = 256 };

static void hold_context(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context;
    if (!library) return;
    int (*init)(unsigned) = NULL, (*retain)(void **, int) = NULL;
    void *symbols[] = {dlsym(library, "cuInit"), dlsym(library, "cuDevicePrimaryCtxRetain")};
    memcpy(&init, &symbols[0], sizeof init); /* ISO C has no such cast */
    memcpy(&retain, &symbols[1], sizeof retain);
    if (init && retain && init(0) == 0) retain(&context, 0);
}

static int split(char *line, char **words) {
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && count < MOST_WORDS; count++) {
        words[count] = at;
        at = strchr(at, 31);
        if (at) *at++ = 0;
    }
    words[count] = NULL;
    return count;
}

static int redirect(const char *path, int to) {
    int kept = dup(to), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (kept < 0 || file < 0) exit(2);
    dup2(file, to);
    close(file);
    return kept;
}

static void restore(FILE *stream, int kept, int to) {
    fflush(stream);
    clearerr(stream);
    dup2(kept, to);
    close(kept);
}

static int run(char **words, int count) {
    if (chdir(words[0]) != 0) return 2;
    fflush(stdout);
    int out = redirect(words[1], 1), err = redirect(words[2], 2);
    int status = cli_main(count - 3, words + 3);
    restore(stdout, out, 1);
    restore(stderr, err, 2);
    return status;
}

int main(void) {
    static char *words[MOST_WORDS + 1];
    char *line = NULL;
    size_t room = 0;
    hold_context();
    while (getline(&line, &room, stdin) > 0) {
        int count = split(line, words);
        printf("%d\n", count > 3 ? run(words, count) : 2);
        fflush(stdout);
    }
    free(line);
    return 0;
}
