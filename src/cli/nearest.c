/* How far two words are from each other: letters inserted, left out or replaced. */
#include "cli.h"

#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b) { return a < b ? a : b; }

int cli_distance(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST) return LONGEST;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= n; j++) row[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int above = row[j];
            row[j] = least(least(above, row[j - 1]) + 1, corner + (a[i - 1] != b[j - 1]));
            corner = above;
        }
    }
    return row[n];
}
