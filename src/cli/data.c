/* Memory from text and back: what --bind, --set, --print and --save do.
 *
 * A value of any type is the list of its scalars in the order in which they lie in memory. Text is one scalar
 * after the other with commas between them; files are the bytes as they are. A byte buffer is read and shown
 * as 32-bit words. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the scalars of a type */

typedef struct Scalars {
    /* Called for each scalar; false ends the walk. */
    bool (*visit)(void *user, const SlopeType *type, size_t offset);
    void *user;
    size_t open; /* elements of an array of any length */
} Scalars;

static bool is_scalar(const SlopeType *type) {
    SlopeTypeKind kind = slope_type_kind(type);
    return kind >= SLOPE_TYPE_bool && kind <= SLOPE_TYPE_double;
}

/* False: ended early, or there is something that is no data (a pointer, a buffer). */
static bool walk(const SlopeType *type, size_t offset, const Scalars *scalars) {
    if (is_scalar(type)) return scalars->visit(scalars->user, type, offset);
    SlopeTypeKind kind = slope_type_kind(type);
    if (kind == SLOPE_TYPE_struct) {
        SlopeField field;
        for (int i = 0; slope_type_field(type, i, &field); i++)
            if (!walk(field.type, offset + field.offset, scalars)) return false;
        return true;
    }
    if (kind != SLOPE_TYPE_vector && kind != SLOPE_TYPE_array) return false;
    const SlopeType *element = slope_type_element(type);
    size_t stride = slope_type_element_stride(type);
    size_t count = slope_type_count(type) <= 0 ? scalars->open : (size_t)slope_type_count(type);
    for (size_t i = 0; i < count; i++)
        if (!walk(element, offset + i * stride, scalars)) return false;
    return true;
}

static bool count_one(void *user, const SlopeType *type, size_t offset) {
    (void)type, (void)offset;
    return ++*(long *)user < 1000000000;
}

/* -1: it holds something that cannot be written as values. */
static long count_scalars(const SlopeType *type) {
    long count = 0;
    return walk(type, 0, &(Scalars){.visit = count_one, .user = &count}) ? count : -1;
}

/* ---- what a buffer holds */

typedef struct Elements {
    const SlopeType *type; /* NULL: 32-bit words */
    const char *type_name;
    size_t stride;
    long scalars; /* per element; -1: not only scalars */
    bool single;  /* exactly one element */
    /* its last part is an array of any length: there is one such element, and as much of the array as there
     * is room; type NULL: it has none */
    SlopeField tail;
    size_t open; /* elements of that */
} Elements;

static bool find_tail(const SlopeType *type, SlopeField *out) {
    int fields = slope_type_kind(type) == SLOPE_TYPE_struct ? slope_type_field_count(type) : 0;
    if (fields && slope_type_field(type, fields - 1, out) && slope_type_kind(out->type) == SLOPE_TYPE_array &&
        slope_type_count(out->type) <= 0)
        return true;
    *out = (SlopeField){0};
    return false;
}

bool data_open_elements(const SlopeType *type, size_t size, size_t *open) {
    SlopeField tail;
    *open = 0;
    if (!find_tail(type, &tail) || size < tail.offset) return false;
    *open = (size - tail.offset) / slope_type_element_stride(tail.type);
    return true;
}

static Elements elements_of(const SlopeType *type) {
    const SlopeType *element = slope_type_element(type);
    if (slope_type_kind(element) == SLOPE_TYPE_void)
        return (Elements){.type_name = "uint", .stride = 4, .scalars = 1};
    bool single =
        slope_type_kind(type) == SLOPE_TYPE_buffer && slope_type_buffer_kind(type) == SLOPE_BUFFER_constant;
    Elements elements = {.type = element,
                         .type_name = slope_type_name(element),
                         .stride = slope_type_element_stride(type),
                         .scalars = count_scalars(element),
                         .single = single};
    find_tail(element, &elements.tail);
    return elements;
}

/* One element, with so many in its array. */
static void open_tail(Elements *elements, size_t count) {
    elements->open = count;
    elements->single = true;
    elements->stride = elements->tail.offset + count * slope_type_element_stride(elements->tail.type);
    if (elements->scalars >= 0)
        elements->scalars += (long)count * count_scalars(slope_type_element(elements->tail.type));
}

static bool is_whole(Elements *elements, size_t size) {
    size_t open;
    if (elements->tail.type && data_open_elements(elements->type, size, &open)) open_tail(elements, open);
    return elements->single ? size == elements->stride : size % elements->stride == 0;
}

static Elements value_elements(const SlopeType *type) {
    return (Elements){.type = type,
                      .type_name = slope_type_name(type),
                      .stride = slope_type_size(type),
                      .scalars = count_scalars(type),
                      .single = true};
}

static ExitStatus no_memory(void) { return cli_misuse("there is not so much memory"); }

static ExitStatus take_memory(Data *out, size_t count, size_t stride) {
    *out = (Data){0};
    if (stride && count > SIZE_MAX / 2 / stride) return no_memory();
    out->size = count * stride;
    out->bytes = calloc(out->size + 1, 1);
    return out->bytes ? EXIT_fine : no_memory();
}

/* ---- values */

typedef struct Reader {
    const char *name, *text; /* the text that is left */
    char *bytes;
    long index; /* of the value, from 1 */
    bool failed;
} Reader;

static bool read_scalar(Reader *reader, SlopeTypeKind kind, const char *type_name, size_t offset) {
    char word[128];
    reader->text += strspn(reader->text, " \t\n");
    size_t length = strcspn(reader->text, ","), used = length;
    while (used && strchr(" \t\n", reader->text[used - 1])) used--;
    bool fits = used < sizeof word;
    if (!fits) used = sizeof word - 1;
    memcpy(word, reader->text, used);
    word[used] = 0;
    reader->text += length + (reader->text[length] == ',');
    reader->index++;
    if (fits && slope_scalar_parse(kind, word, reader->bytes + offset) == SLOPE_STATUS_ok) return true;
    cli_misuse("value %ld of '%s' is not of type %s: '%s'", reader->index, reader->name, type_name, word);
    reader->failed = true;
    return false;
}

static bool read_one(void *user, const SlopeType *type, size_t offset) {
    return read_scalar(user, slope_type_kind(type), slope_type_name(type), offset);
}

static size_t count_values(const char *text) {
    size_t count = 1;
    for (; *text; text++) count += *text == ',';
    return count;
}

static ExitStatus check_count(const Elements *elements, const char *name, size_t count) {
    if (elements->scalars < 0)
        return cli_misuse("'%s' holds %s, which cannot be written as values; give its bytes: @FILE", name,
                          elements->type_name);
    size_t per_element = (size_t)elements->scalars;
    if (elements->single && count != per_element)
        return cli_misuse("'%s' is %s: it takes %zu value%s, not %zu", name, elements->type_name, per_element,
                          per_element == 1 ? "" : "s", count);
    if (per_element == 0 || count % per_element)
        return cli_misuse("'%s' holds %s: %zu values are not a whole number of elements of %zu", name,
                          elements->type_name, count, per_element);
    return EXIT_fine;
}

/* What follows the other parts is its array. */
static void open_by_values(Elements *elements, size_t values) {
    long each = elements->tail.type ? count_scalars(slope_type_element(elements->tail.type)) : 0;
    if (each <= 0 || elements->scalars < 0 || values < (size_t)elements->scalars) return;
    open_tail(elements, (values - (size_t)elements->scalars) / (size_t)each);
}

static ExitStatus read_values(Elements *elements, const char *name, const char *text, Data *out) {
    size_t values = count_values(text);
    open_by_values(elements, values);
    ExitStatus status = check_count(elements, name, values);
    if (status != EXIT_fine) return status;
    size_t count = values / (size_t)elements->scalars;
    status = take_memory(out, count, elements->stride);
    if (status != EXIT_fine) return status;
    Reader reader = {.name = name, .text = text, .bytes = out->bytes};
    for (size_t i = 0; i < count && !reader.failed; i++) {
        size_t offset = i * elements->stride;
        if (elements->type) walk(elements->type, offset, &(Scalars){read_one, &reader, elements->open});
        else read_scalar(&reader, SLOPE_TYPE_uint32, "uint", offset);
    }
    return reader.failed ? EXIT_misuse : EXIT_fine;
}

/* Numbers of four bytes. */
ExitStatus data_read_numbers(const char *name, const char *text, SlopeTypeKind kind, size_t count,
                             void *out) {
    const char *type = kind == SLOPE_TYPE_float ? "float" : kind == SLOPE_TYPE_int32 ? "int" : "uint";
    size_t values = count_values(text);
    if (values != count)
        return cli_misuse("'%s' takes %zu value%s, not %zu", name, count, count == 1 ? "" : "s", values);
    Reader reader = {.name = name, .text = text, .bytes = out};
    for (size_t i = 0; i < count && !reader.failed; i++) read_scalar(&reader, kind, type, i * 4);
    return reader.failed ? EXIT_misuse : EXIT_fine;
}

/* ---- zeros:N and the like */

typedef enum FillKind { FILL_zeros, FILL_ones, FILL_range, FILL_random, FILL_COUNT } FillKind;

static const char *const fill_names[] = {"zeros:", "ones:", "range:", "random:"};

typedef struct Fill {
    FillKind kind;
    uint64_t index, state;
    char *bytes;
} Fill;

/* Always the same numbers: xorshift. From 0 to 1, of integers from 0 to 99. */
static double draw(Fill *fill, bool whole) {
    fill->state ^= fill->state << 13;
    fill->state ^= fill->state >> 7;
    fill->state ^= fill->state << 17;
    return whole ? (double)(fill->state >> 33 & 0xffffff) / 16777216.0 * 100.0
                 : (double)(fill->state >> 40) / 16777216.0;
}

static bool fill_number(Fill *fill, SlopeTypeKind kind, size_t offset) {
    bool real = kind == SLOPE_TYPE_half || kind == SLOPE_TYPE_float || kind == SLOPE_TYPE_double;
    double value = fill->kind == FILL_ones    ? 1
                   : fill->kind == FILL_range ? (double)fill->index
                                              : draw(fill, !real);
    char text[32];
    fill->index++;
    if (kind == SLOPE_TYPE_bool) value = fill->kind == FILL_random ? value >= 50 : value != 0;
    snprintf(text, sizeof text, real ? "%.9g" : "%.0f", real ? value : (double)(uint64_t)value);
    return slope_scalar_parse(kind, text, fill->bytes + offset) == SLOPE_STATUS_ok;
}

static bool fill_one(void *user, const SlopeType *type, size_t offset) {
    return fill_number(user, slope_type_kind(type), offset);
}

static FillKind fill_kind(const char *text) {
    int kind = 0;
    while (kind < FILL_COUNT && strncmp(text, fill_names[kind], strlen(fill_names[kind])) != 0) kind++;
    return (FillKind)kind;
}

size_t data_fill_word(const char *text) {
    FillKind kind = fill_kind(text);
    return kind == FILL_COUNT ? 0 : strlen(fill_names[kind]);
}

static Fill begin_fill(FillKind kind, void *bytes) { return (Fill){kind, 0, 0x9e3779b97f4a7c15u, bytes}; }

bool data_fill_numbers(const char *text, SlopeTypeKind kind, size_t count, void *out) {
    Fill fill = begin_fill(fill_kind(text), out);
    for (size_t i = 0; fill.kind != FILL_zeros && i < count; i++)
        if (!fill_number(&fill, kind, i * 4)) return false;
    return true;
}

/* "32x32x3": the product; false: it is none. */
static bool read_product(const char *text, unsigned long long *count) {
    char *end;
    *count = 1;
    do {
        errno = 0;
        unsigned long long size = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
        if (*text < '0' || *text > '9' || errno || (size && *count > SIZE_MAX / 2 / size)) return false;
        *count *= size;
        text = *end == 'x' ? end + 1 : end;
    } while (*end == 'x');
    return *end == 0;
}

static ExitStatus read_fill(Elements *elements, const char *name, FillKind kind, const char *text,
                            Data *out) {
    const char *word = fill_names[kind], *number = text + strlen(word);
    unsigned long long count;
    if (!read_product(number, &count))
        return cli_misuse("how many elements for '%s'? write %s16, not '%s'", name, word, text);
    if (elements->tail.type) open_tail(elements, (size_t)count), count = 1;
    if (elements->single && count != 1)
        return cli_misuse("'%s' is one %s: %s1", name, elements->type_name, word);
    ExitStatus status = take_memory(out, (size_t)count, elements->stride);
    if (status != EXIT_fine || kind == FILL_zeros) return status;
    if (!elements->type || elements->scalars < 0)
        return cli_misuse("'%s' holds %s: only zeros:%s are possible", name, elements->type_name, number);
    Fill fill = begin_fill(kind, out->bytes);
    for (size_t i = 0; i < count; i++)
        if (!walk(elements->type, i * elements->stride, &(Scalars){fill_one, &fill, elements->open}))
            return cli_misuse("element %zu of '%s' does not fit %s", i, name, elements->type_name);
    return EXIT_fine;
}

/* ---- @FILE */

/* A file has the size it has; a pipe or a device may go on for ever. */
enum { MOST_OF_STREAM_MIB = 4096 };

ExitStatus data_read_stream(FILE *file, const char *path, Data *out) {
    size_t room = 1 << 16, most = (size_t)MOST_OF_STREAM_MIB << 20;
    struct stat about;
    if (fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode)) most = SIZE_MAX / 4;
    *out = (Data){.bytes = malloc(room)};
    while (out->bytes) {
        out->size += fread(out->bytes + out->size, 1, room - out->size, file);
        if (out->size < room) return EXIT_fine;
        if (out->size >= most)
            return cli_misuse("'%s' does not end: more than %d MiB are read from files only", path,
                              MOST_OF_STREAM_MIB);
        char *grown = realloc(out->bytes, room *= 2);
        if (!grown) break;
        out->bytes = grown;
    }
    return no_memory();
}

static ExitStatus read_file(Elements *elements, const char *name, const char *path, Data *out) {
    FILE *file = fopen(path, "rb");
    if (!file) return cli_misuse("cannot read '%s' for '%s': %s", path, name, strerror(errno));
    ExitStatus status = data_read_stream(file, path, out);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (status != EXIT_fine) return status;
    if (error) return cli_misuse("cannot read '%s' for '%s': %s", path, name, strerror(error));
    if (!is_whole(elements, out->size))
        return cli_misuse("'%s' holds %s: the %zu bytes of '%s' are not %s of %zu bytes", name,
                          elements->type_name, out->size, path,
                          elements->single ? "one" : "a whole number of elements", elements->stride);
    return EXIT_fine;
}

typedef struct OneKind {
    SlopeTypeKind kind;
    const char *name;
    bool mixed;
} OneKind;

static bool note_kind(void *user, const SlopeType *type, size_t offset) {
    OneKind *one = user;
    (void)offset;
    one->mixed |= one->name && one->kind != slope_type_kind(type);
    one->kind = slope_type_kind(type);
    one->name = slope_type_name(type);
    return !one->mixed;
}

/* The type of all numbers in an element; name NULL: they have several. */
static OneKind kind_of(const Elements *elements) {
    OneKind one = {SLOPE_TYPE_uint32, elements->type ? NULL : "uint", false};
    if (elements->type && !walk(elements->type, 0, &(Scalars){note_kind, &one, 1})) one.name = NULL;
    return one;
}

static ExitStatus mixed(const char *name, const Elements *elements) {
    return cli_misuse("'%s' holds %s: an array of NumPy has numbers of one type", name, elements->type_name);
}

static ExitStatus read_array(Elements *elements, const char *name, const char *path, Data *out) {
    OneKind one = kind_of(elements);
    if (!one.name) return mixed(name, elements);
    ArrayWanted wanted = {name, elements->type_name, one.kind, one.name, (size_t)elements->scalars};
    ExitStatus status = array_read(path, &wanted, out);
    if (status != EXIT_fine || is_whole(elements, out->size)) return status;
    return cli_misuse("'%s' holds %s: the %zu bytes of '%s' are not %s of %zu bytes", name,
                      elements->type_name, out->size, path,
                      elements->single ? "one" : "a whole number of elements", elements->stride);
}

ExitStatus data_save_array(const SlopeType *type, const char *name, const char *path, const char *bytes,
                           size_t size) {
    Elements elements = elements_of(type);
    is_whole(&elements, size);
    OneKind one = kind_of(&elements);
    if (!one.name) return mixed(name, &elements);
    char shape[64];
    size_t count = size / elements.stride;
    if (elements.scalars == 1) snprintf(shape, sizeof shape, "%zu,", count);
    else snprintf(shape, sizeof shape, "%zu, %ld", count, elements.scalars);
    return array_write(path, array_type(one.kind), shape, bytes, size);
}

static ExitStatus read_table(Elements *elements, const char *name, const char *path, Data *out) {
    char *text;
    size_t columns, wanted = elements->scalars > 0 ? (size_t)elements->scalars : 1;
    ExitStatus status = table_read(path, &text, &columns);
    if (status == EXIT_fine && columns % wanted && wanted % columns)
        status = cli_misuse("'%s' holds %s: the rows of '%s' have %zu columns, not %zu", name,
                            elements->type_name, path, columns, wanted);
    if (status == EXIT_fine) status = read_values(elements, name, text, out);
    free(text);
    return status;
}

/* Its bytes would mean something else to whatever reads them. */
ExitStatus data_no_picture(const char *name, const char *path) {
    return cli_misuse("'%s' would be a picture, and '%s' is no texture", path, name);
}

static ExitStatus read_data(Elements *elements, const char *name, const char *text, Data *out) {
    *out = (Data){0};
    if (*text == 0) return cli_misuse("no data for '%s': write 1,2.5,3 or zeros:16 or @FILE", name);
    if (*text == '@' && cli_ends_with(text + 1, ".npy")) return read_array(elements, name, text + 1, out);
    if (*text == '@' && cli_ends_with(text + 1, ".csv")) return read_table(elements, name, text + 1, out);
    if (*text == '@' && picture_is_only_that(text + 1)) return data_no_picture(name, text + 1);
    if (*text == '@') return read_file(elements, name, text + 1, out);
    FillKind kind = fill_kind(text);
    if (kind != FILL_COUNT) return read_fill(elements, name, kind, text, out);
    return read_values(elements, name, text, out);
}

/* On failure too the caller frees out->bytes. */
ExitStatus data_for_buffer(const SlopeType *type, const char *name, const char *text, Data *out) {
    Elements elements = elements_of(type);
    return read_data(&elements, name, text, out);
}

ExitStatus data_for_value(const SlopeType *type, const char *name, const char *text, Data *out) {
    Elements elements = value_elements(type);
    return read_data(&elements, name, text, out);
}

/* ---- output */

ExitStatus data_can_print(const SlopeType *type, const char *name) {
    Elements elements = elements_of(type);
    if (elements.scalars >= 0) return EXIT_fine;
    return cli_misuse("'%s' holds %s, which cannot be printed; write --save %s=@FILE", name,
                      elements.type_name, name);
}

static void print_scalar(SlopeTypeKind kind, const char *scalar) {
    char text[64];
    slope_scalar_print(kind, scalar, text, sizeof text);
    puts(text);
}

static bool print_one(void *user, const SlopeType *type, size_t offset) {
    print_scalar(slope_type_kind(type), (const char *)user + offset);
    return true;
}

void data_print(const SlopeType *type, const char *bytes, size_t size) {
    Elements elements = elements_of(type);
    is_whole(&elements, size);
    char *start = (char *)(uintptr_t)bytes; /* only read from */
    for (size_t offset = 0; offset + elements.stride <= size; offset += elements.stride) {
        if (elements.type) walk(elements.type, offset, &(Scalars){print_one, start, elements.open});
        else print_scalar(SLOPE_TYPE_uint32, bytes + offset);
    }
}

typedef struct Row {
    FILE *file;
    const char *bytes;
    bool begun;
} Row;

static bool write_scalar(Row *row, SlopeTypeKind kind, size_t offset) {
    char text[64];
    slope_scalar_print(kind, row->bytes + offset, text, sizeof text);
    bool written = fprintf(row->file, "%s%s", row->begun ? "," : "", text) > 0;
    row->begun = true;
    return written;
}

static bool write_one(void *user, const SlopeType *type, size_t offset) {
    return write_scalar(user, slope_type_kind(type), offset);
}

static bool write_rows(const Elements *elements, FILE *file, const char *bytes, size_t size) {
    Row row = {file, bytes, false};
    bool written = true;
    for (size_t offset = 0; written && offset + elements->stride <= size; offset += elements->stride) {
        row.begun = false;
        written = elements->type ? walk(elements->type, offset, &(Scalars){write_one, &row, elements->open})
                                 : write_scalar(&row, SLOPE_TYPE_uint32, offset);
        written = written && fputc('\n', file) != EOF;
    }
    return written;
}

ExitStatus data_save_table(const SlopeType *type, const char *path, const char *bytes, size_t size) {
    Elements elements = elements_of(type);
    is_whole(&elements, size);
    Saving saving;
    ExitStatus status = save_begin(&saving, path);
    if (status != EXIT_fine) return status;
    return save_end(&saving, write_rows(&elements, saving.file, bytes, size));
}

ExitStatus data_save(const char *path, const char *bytes, size_t size) {
    Saving saving;
    ExitStatus status = save_begin(&saving, path);
    if (status != EXIT_fine) return status;
    return save_end(&saving, fwrite(bytes, 1, size, saving.file) == size);
}
