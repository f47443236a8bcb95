/* "Did you mean": the candidate at the smallest edit distance.
 *
 * The distance is that of Damerau and Levenshtein (insert, delete, replace, swap neighbours), restricted to
 * one edit per place, counted in halves so that a letter in the wrong case costs half an edit. Near enough is
 * one edit per three letters of the name. */
#include "diag.h"

#define LONGEST 64 /* longer names are not compared */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int replace_cost(char a, char b) { return a == b ? 0 : lower(a) == lower(b) ? 1 : 2; }

static int least(int a, int b) { return a < b ? a : b; }

static bool are_swapped(const char *a, int i, const char *b, int j) {
    return i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && a[i - 1] != b[j - 1];
}

/* In half edits, or `most + 1` if it is more than `most`. */
static int distance(Name a, Name b, int most) {
    if ((a->len > b->len ? a->len - b->len : b->len - a->len) * 2 > most) return most + 1;
    int rows[3][LONGEST + 1];
    int *before = rows[0], *above = rows[1], *here = rows[2];
    for (int j = 0; j <= b->len; j++) above[j] = j * 2;
    for (int i = 1; i <= a->len; i++) {
        int best = here[0] = i * 2;
        for (int j = 1; j <= b->len; j++) {
            here[j] = above[j - 1] + replace_cost(a->text[i - 1], b->text[j - 1]);
            here[j] = least(here[j], least(above[j], here[j - 1]) + 2);
            if (are_swapped(a->text, i, b->text, j)) here[j] = least(here[j], before[j - 2] + 2);
            best = least(best, here[j]);
        }
        if (best > most) return most + 1;
        int *free_row = before;
        before = above, above = here, here = free_row;
    }
    return above[b->len];
}

Name diag_nearest(Name name, const Name *candidates, int count) {
    if (name->len > LONGEST) return NULL;
    int most = name->len < 2 ? 1 : name->len < 6 ? 2 : name->len / 3 * 2;
    Name nearest = NULL;
    for (int i = 0; i < count; i++) {
        Name candidate = candidates[i];
        if (candidate == name || candidate->len > LONGEST || candidate->len == 0) continue;
        int found = distance(name, candidate, most);
        if (found > most) continue;
        nearest = candidate;
        most = found - 1; /* the first of several equally near ones wins */
    }
    return nearest;
}
