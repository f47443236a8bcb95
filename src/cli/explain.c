/* slope explain: what a code means, with an example and a remedy where there are any. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* "E5102", "W3201", "5102"; 0: none of these. */
static int read_code(const char *text) {
    if (strchr("EWew", *text)) text++;
    return strlen(text) == 4 && strspn(text, "0123456789") == 4 ? atoi(text) : 0;
}

static void show_indented(const char *text) {
    while (*text) {
        int length = (int)strcspn(text, "\n");
        printf("    %.*s\n", length, text);
        text += length + (text[length] == '\n');
    }
}

static ExitStatus explain(const char *text) {
    SlopeExplanation found;
    if (!slope_explain(read_code(text), &found))
        return cli_misuse("there is no message '%s'; a code is one letter and four digits, E5102", text);
    printf("%c%04d: %s\n", found.is_error ? 'E' : 'W', found.code, found.message);
    if (found.cause) printf("\n%s\n", found.cause);
    if (found.example) {
        printf("\n");
        show_indented(found.example);
    }
    if (found.remedy) printf("\n%s\n", found.remedy);
    return EXIT_fine;
}

ExitStatus command_explain(const Options *options) {
    ExitStatus status = EXIT_fine;
    if (options->files.count == 0) return cli_misuse("which code? write: slope explain E5102");
    for (int i = 0; i < options->files.count; i++) {
        if (i) printf("\n");
        status = cli_worse(status, explain(options->files.at[i]));
    }
    return cli_flush(status);
}
