/* Sizes and offsets of IR types, the only place that knows them.
 *
 * scalar   everything is aligned as its scalars: a vector as its element, a record as its strictest field. The size
 *          of a record has no padding at its end, but inside an array or another record it takes its stride.
 * std140   bool takes four bytes; two-vectors align to twice, three- and four-vectors to four times their element;
 *          elements of arrays, and records, align to sixteen bytes.
 * natural what `sizeof` and `bit_cast` see: as scalar, but a record inside a record takes its size, not its
 * stride, so that the
 *          next field may begin in what it left over.
 *
 * Pointers and tapes take 8 bytes; a buffer is a pointer and a count. */
#include "type.h"

static int64_t round_up(int64_t value, int64_t align) { return (value + align - 1) / align * align; }
static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

static Layout plain(int64_t size) { return (Layout){size, size, size}; }

static Layout scalar_layout(const Type *type, LayoutRules rules) {
    if (type->kind == TYPE_bool) return plain(rules == LAYOUT_std140 ? 4 : 1);
    return plain(type_bits(type) / 8);
}

static Layout vector_layout(const Type *type, LayoutRules rules) {
    Layout layout = scalar_layout(type->args[0], rules);
    int64_t count = type_count(type), element = layout.size;
    if (rules == LAYOUT_std140) layout.align = element * (count <= 2 ? count : 4);
    layout.size = element * count;
    layout.stride = round_up(layout.size, layout.align);
    return layout;
}

int64_t type_element_stride(const Type *array_or_vector, LayoutRules rules) {
    const Type *element = array_or_vector->args[0];
    Layout layout = type_layout(element, rules);
    if (array_or_vector->kind == TYPE_vector || rules != LAYOUT_std140) return layout.stride;
    return round_up(layout.stride, 16);
}

static Layout array_layout(const Type *type, LayoutRules rules) {
    Layout element = type_layout(type->args[0], rules), layout = {.align = element.align};
    int64_t count = greater(type_length(type), 0), stride = element.stride;
    if (rules == LAYOUT_std140) stride = round_up(stride, 16), layout.align = round_up(element.align, 16);
    layout.size = layout.stride = count * stride;
    return layout;
}

/* Fills in offsets and layout. A record inside a record takes its stride, as in C. */
static void lay_out_record(Record *record, LayoutRules rules) {
    Layout layout = {.align = 1};
    int64_t next = 0, *offsets = arena_array(record->arena, int64_t, record->nfields + 1);
    for (int i = 0; i < record->nfields; i++) {
        const Type *type = record->fields[i].type;
        Layout part = type_layout(type, rules);
        layout.align = greater(layout.align, part.align);
        offsets[i] = round_up(next, part.align);
        layout.size = offsets[i] + part.size;
        bool whole = type->kind == TYPE_record && rules != LAYOUT_natural;
        next = whole ? offsets[i] + part.stride : layout.size;
    }
    if (rules == LAYOUT_std140) layout.align = round_up(layout.align, 16);
    layout.stride = round_up(layout.size, layout.align);
    if (rules == LAYOUT_std140) layout.size = layout.stride;
    record->layouts[rules] = layout;
    record->offsets[rules] = offsets;
}

static Layout record_layout(const Type *type, LayoutRules rules) {
    Record *record = type_record(type);
    if (!record->offsets[rules]) lay_out_record(record, rules);
    return record->layouts[rules];
}

int64_t type_field_offset(const Type *record, int field, LayoutRules rules) {
    assert(field >= 0 && field < type_record(record)->nfields);
    record_layout(record, rules);
    return type_record(record)->offsets[rules][field];
}

Layout type_layout(const Type *type, LayoutRules rules) {
    if (type_is_scalar(type)) return scalar_layout(type, rules);
    switch (type->kind) {
    case TYPE_vector: return vector_layout(type, rules);
    case TYPE_array: return array_layout(type, rules);
    case TYPE_record: return record_layout(type, rules);
    case TYPE_pointer:
    case TYPE_tape: return plain(8);
    case TYPE_buffer: return (Layout){16, 8, 16};
    default: break;
    }
    assert(type->kind == TYPE_void && "front end types have no layout");
    return (Layout){0, 1, 0};
}
