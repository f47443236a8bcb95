/* --report-checkpoints: what reverse passes keep of their primal pass, for those who look where memory goes.
 *
 * A row per value. A function that is differentiated in several ways (by itself, as a part of another, at two
 * orders) keeps its values in each of them; rows that say the same are shown once, with how many they are. */
#include "cli.h"

#include <string.h>

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool same_row(const SlopeStored *a, const SlopeStored *b) {
    return same_text(a->function, b->function) && same_text(a->name, b->name) &&
           same_text(a->path, b->path) && a->line == b->line && a->column == b->column &&
           a->bytes == b->bytes && a->loop_line == b->loop_line && a->exact == b->exact;
}

/* How many rows are like this one; 0 if one before it is. */
static int count_like(const SlopeSession *session, int index) {
    SlopeStored row, other;
    int count = 0;
    slope_stored(session, index, &row);
    for (int i = 0; slope_stored(session, i, &other); i++) {
        if (!same_row(&row, &other)) continue;
        if (i < index) return 0;
        count++;
    }
    return count;
}

static void show_row(const SlopeStored *row, int count) {
    char place[64] = "", bytes[32], *end = place;
    const char *name = row->path ? strrchr(row->path, '/') : NULL;
    if (row->path) end += snprintf(place, sizeof place, "%.40s:%d", name ? name + 1 : row->path, row->line);
    if (end > place) snprintf(end, sizeof place - (size_t)(end - place), ":%d", row->column);
    snprintf(bytes, sizeof bytes, count > 1 ? "%d x %d" : "%d", row->bytes, count);
    fprintf(stderr, "%-20s  %-12s  %-28s  %8s  ", row->function, row->name, place, bytes);
    if (row->loop_line)
        fprintf(stderr, "per iteration of the loop in line %d%s\n", row->loop_line,
                row->exact ? "" : ", growing");
    else fprintf(stderr, "once per call\n");
}

static void show_json(const SlopeStored *row, int count) {
    fprintf(stderr, "{\"stored\":%d", count);
    cli_json_text(stderr, "function", row->function);
    cli_json_text(stderr, "value", row->name);
    cli_json_text(stderr, "path", row->path);
    fprintf(stderr, ",\"line\":%d,\"column\":%d,\"bytes\":%d,\"loop_line\":%d,\"growing\":%s}\n", row->line,
            row->column, row->bytes, row->loop_line, row->loop_line && !row->exact ? "true" : "false");
}

void stored_show(const Options *options, const SlopeSession *session) {
    SlopeStored row;
    bool json = option_given(options, OPTION_json);
    if (!json && slope_stored_count(session) == 0) fprintf(stderr, "no reverse pass keeps a value\n");
    else if (!json)
        fprintf(stderr, "%-20s  %-12s  %-28s  %8s  %s\n", "function", "value", "computed at", "bytes",
                "how often");
    for (int i = 0; slope_stored(session, i, &row); i++) {
        int count = count_like(session, i);
        if (count == 0) continue;
        if (json) show_json(&row, count);
        else show_row(&row, count);
    }
}
