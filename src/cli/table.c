/* Tables of text (.csv): a row per line, commas between the columns. Empty lines, lines that begin with # and
 * a first line of names are passed over. Rows are as long as each other, and hold whole elements, or are
 * parts of one. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Table {
    const char *path;
    char *text; /* all numbers, commas between them; where it ends: */
    size_t length;
    size_t columns; /* of a row; 0: there is none yet */
    int line;
    bool has_rows;
} Table;

static size_t count_columns(const char *row, size_t length) {
    size_t count = 1;
    for (size_t i = 0; i < length; i++) count += row[i] == ',';
    return count;
}

static bool is_value(const char *field, size_t length) {
    char word[64], scalar[8];
    while (length && strchr(" \t", *field)) field++, length--;
    while (length && strchr(" \t", field[length - 1])) length--;
    if (length == 0 || length >= sizeof word) return false;
    memcpy(word, field, length);
    word[length] = 0;
    return slope_scalar_parse(SLOPE_TYPE_double, word, scalar) == SLOPE_STATUS_ok ||
           slope_scalar_parse(SLOPE_TYPE_bool, word, scalar) == SLOPE_STATUS_ok;
}

/* Not one of them is a value. */
static bool is_names(const char *row, size_t length) {
    const char *end = row + length;
    for (const char *field = row; field < end;) {
        size_t used = strcspn(field, ",");
        if (used > (size_t)(end - field)) used = (size_t)(end - field);
        if (is_value(field, used)) return false;
        field += used + 1;
    }
    return true;
}

static ExitStatus add_row(Table *table, const char *row, size_t length) {
    while (length && strchr(" \t\r", row[length - 1])) length--;
    if (length == 0 || *row == '#') return EXIT_fine;
    size_t columns = count_columns(row, length);
    if (table->columns && table->columns != columns)
        return cli_misuse("line %d of '%s' has %zu column%s, others %zu", table->line, table->path, columns,
                          columns == 1 ? "" : "s", table->columns);
    bool names = !table->columns && is_names(row, length);
    table->columns = columns;
    if (names) return EXIT_fine;
    if (table->has_rows) table->text[table->length++] = ',';
    memcpy(table->text + table->length, row, length);
    table->length += length;
    table->has_rows = true;
    return EXIT_fine;
}

static ExitStatus add_rows(Table *table, const Data *data) {
    static const char mark[] = "\xef\xbb\xbf"; /* that some editors begin with */
    const char *at = data->bytes, *end = at + data->size;
    ExitStatus status = EXIT_fine;
    if (data->size >= 3 && memcmp(at, mark, 3) == 0) at += 3;
    while (at < end && status == EXIT_fine) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        table->line++;
        status = add_row(table, at, (size_t)(stop - at));
        at = stop + (stop < end);
    }
    return status;
}

static ExitStatus read_all(const char *path, Data *out) {
    *out = (Data){0};
    FILE *file = fopen(path, "rb");
    if (!file) return cli_misuse("cannot read '%s': %s", path, strerror(errno));
    ExitStatus status = data_read_stream(file, path, out);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (status == EXIT_fine && error) return cli_misuse("cannot read '%s': %s", path, strerror(error));
    if (status == EXIT_fine && memchr(out->bytes, 0, out->size))
        return cli_misuse("'%s' is no table: it is not text", path);
    return status;
}

ExitStatus table_read(const char *path, char **text, size_t *columns) {
    Data data;
    Table table = {.path = path};
    ExitStatus status = read_all(path, &data);
    if (status == EXIT_fine && !(table.text = malloc(data.size + 2))) status = EXIT_fault;
    if (status == EXIT_fine) status = add_rows(&table, &data);
    if (status == EXIT_fine && !table.has_rows) status = cli_misuse("'%s' has no rows", path);
    if (table.text) table.text[table.length] = 0;
    *text = table.text;
    *columns = table.columns;
    free(data.bytes);
    return status;
}
