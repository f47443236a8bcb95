/* How far two words are from each other: letters inserted, left out, replaced, or exchanged with their
 * neighbour. */
#include "cli.h"

#include <string.h>

enum { LONGEST = 32 };

static int least(int a, int b) { return a < b ? a : b; }

int cli_distance(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST) return LONGEST;
    int rows[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            rows[i][j] = (int)(i ? i : j);
            if (!i || !j) continue;
            int replaced = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = least(least(rows[i - 1][j], rows[i][j - 1]) + 1, replaced);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[m][n];
}
