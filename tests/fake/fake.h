/* What the pretending libraries share. FAKE_LOG names a file that gets a line for each call;
 * FAKE_FAIL=cuMemAlloc_v2:2 makes that call return that number, with another number behind a second colon
 * only from its n-th time on. */
#ifndef SLOPE_TESTS_FAKE_H
#define SLOPE_TESTS_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int

/* Writes it down; what it returns if it is to fail. */
static inline int called(const char *name) {
    const char *path = getenv("FAKE_LOG"), *failing = getenv("FAKE_FAIL");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", name);
        fclose(log);
    }
    static int count;
    size_t length = strlen(name);
    if (!failing || strncmp(failing, name, length) != 0 || failing[length] != ':') return 0;
    const char *from = strchr(failing + length + 1, ':');
    return ++count >= (from ? atoi(from + 1) : 1) ? atoi(failing + length + 1) : 0;
}

#endif
