/* Types: their names, declarations of what has them, definitions of structs.
 *
 * Memory is laid out as C does it, which is the layout of the IR, except for what takes no memory at all:
 * such fields are left out. half is two bytes in memory and a float where it is a value. */
#include "emit/clike/clike.h"

static const char *const scalar_names[] = {"bool",     "int8_t",     "uint8_t",  "int16_t",
                                           "uint16_t", "int32_t",    "uint32_t", "int64_t",
                                           "uint64_t", "slope_half", "float",    "double"};
static const char *const scalar_words[] = {"bool", "int8",  "uint8",  "int16", "uint16", "int",
                                           "uint", "int64", "uint64", "half",  "float",  "double"};

/* ---- names */

bool clike_is_claimed(Printer *p, const char *name, NameScope scope) {
    const Language *language = p->dialect->language;
    if (!language->claimed) return emit_is_claimed(&p->arena, name, scope);
    const char *word = clike_format(p, " %s ", name);
    return strstr(language->claimed, word) || (scope != SCOPE_field && strstr(language->called, word));
}

const char *clike_free_name(Printer *p, const char *name) {
    if (!p->dialect->language->claimed) return emit_outer_name(&p->arena, name);
    const char *plain = emit_c_name(&p->arena, name);
    return clike_is_claimed(p, plain, SCOPE_outside) ? clike_format(p, "%s_", plain) : plain;
}

/* ---- records */

bool clike_is_nothing(const Type *type) { return type_layout(type, LAYOUT_scalar).stride == 0; }

/* C++ minds if a field is called like a type. */
static const char *field_wish(Printer *p, Name field) {
    const char *name = emit_c_name(&p->arena, field ? field->text : "value");
    bool is_type = map_has(&p->reserved, PTR_KEY(name_from(p->module->names, name))) || emit_is_vector(name);
    return is_type || clike_is_claimed(p, name, SCOPE_field) ? clike_format(p, "%s_", name) : name;
}

static bool take_name(Printer *p, Map *taken, const char *name) {
    uint64_t key = PTR_KEY(name_from(p->module->names, name));
    if (map_has(taken, key)) return false;
    map_put(&p->arena, taken, key, p);
    return true;
}

/* Those that C can say stay as they are; others give way to them. */
static const char **name_fields(Printer *p, const Record *record) {
    const char **names = arena_array(&p->arena, const char *, record->nfields + 1);
    Map taken = {0};
    for (int i = 0; i < record->nfields; i++) {
        Name field = record->fields[i].name;
        const char *wish = field_wish(p, field);
        if (field && strcmp(wish, field->text) == 0 && take_name(p, &taken, wish)) names[i] = wish;
    }
    for (int i = 0; i < record->nfields; i++) {
        const char *wish = field_wish(p, record->fields[i].name);
        if (names[i]) continue;
        names[i] = wish;
        for (int n = i; !take_name(p, &taken, names[i]); n++) names[i] = clike_format(p, "%s_%d", wish, n);
    }
    return names;
}

const char *clike_field(Printer *p, const Type *type, int field) {
    const Record *record = type_record(type);
    const char **names = map_get(&p->field_names, PTR_KEY(record));
    if (!names) {
        names = name_fields(p, record);
        map_put(&p->arena, &p->field_names, PTR_KEY(record), names);
    }
    return names[field];
}

/* 1: A, 2: B; for who makes such a value. */
static const char *choices(Printer *p, const Type *type) {
    Text text = {.arena = &p->arena};
    const Record *record = type_record(type);
    for (int i = 1; i < record->nfields; i++)
        text_printf(&text, "%s%d: %s", i > 1 ? ", " : " /* ", i, clike_field(p, type, i));
    return text.len ? clike_format(p, "%s */", text.at) : "";
}

/* Bytes behind all fields: what takes no memory, such as an array of any length, may have to begin at a
 * larger multiple than they do. */
static int64_t padding_of(const Type *type) {
    const Record *record = type_record(type);
    int64_t end = 0, align = 1, whole = type_layout(type, LAYOUT_scalar).stride;
    for (int i = 0; i < record->nfields; i++) {
        Layout field = type_layout(record->fields[i].type, LAYOUT_scalar);
        if (field.stride == 0) continue;
        end = type_field_offset(type, i, LAYOUT_scalar) + field.stride;
        if (field.align > align) align = field.align;
    }
    return (end + align - 1) / align * align < whole ? whole - end : 0;
}

/* An array of any length that a struct ends with is behind the struct: its element, or NULL. */
static const Type *rest_of(const Record *record) {
    const Type *type = record->nfields ? record->fields[record->nfields - 1].type : NULL;
    bool is_rest = type && type->kind == TYPE_array && type_length(type) == 0;
    return is_rest && !clike_is_nothing(type->args[0]) ? type->args[0] : NULL;
}

void clike_define_c_record(Printer *p, Text *text, const Type *type, const char *name) {
    const Record *record = type_record(type);
    bool punned = map_has(&p->punned, PTR_KEY(type));
    if (punned) clike_helper(p, "SLOPE_MAY_ALIAS");
    text_printf(text, "typedef struct %s%s {\n", punned ? "SLOPE_MAY_ALIAS " : "", name);
    bool empty = true;
    for (int i = 0; i < record->nfields; i++) {
        if (clike_is_nothing(record->fields[i].type)) continue;
        const char *shared = record->fields[i].shared;
        text_printf(text, "    %s;%s\n", clike_declare(p, record->fields[i].type, clike_field(p, type, i)),
                    shared                        ? clike_format(p, " /* %s */", shared)
                    : record->is_choice && i == 0 ? choices(p, type)
                                                  : "");
        empty = false;
    }
    if (empty) text_add(text, STR("    char nothing;\n"));
    else if (padding_of(type) > 0)
        text_printf(text, "    unsigned char slope_padding[%lld];\n", (long long)padding_of(type));
    const Type *rest = rest_of(record);
    if (rest)
        text_printf(
            text, "    /* then %s */\n",
            clike_declare(p, rest, clike_format(p, "%s[]", clike_field(p, type, record->nfields - 1))));
    text_printf(text, "} %s;\n", name);
}

void clike_check_c_record(Printer *p, Text *text, const Type *type, const char *name) {
    const Record *record = type_record(type);
    if (clike_is_nothing(type)) return;
    text_printf(text, "static_assert(sizeof(%s) == %lld, \"size of %s\");\n", name,
                (long long)type_layout(type, LAYOUT_scalar).stride, name);
    for (int i = 0; i < record->nfields; i++)
        if (!clike_is_nothing(record->fields[i].type))
            text_printf(text, "static_assert(offsetof(%s, %s) == %lld, \"offset of %s.%s\");\n", name,
                        clike_field(p, type, i), (long long)type_field_offset(type, i, LAYOUT_scalar), name,
                        clike_field(p, type, i));
}

static void define_vector(Printer *p, Text *text, const Type *type, const char *name) {
    p->has_vectors |= type_is_float(type->args[0]);
    text_printf(text, "typedef struct %s { %s ", name, clike_declare(p, type->args[0], ""));
    while (text->at[text->len - 1] == ' ') text->len--;
    for (int i = 0; i < type_count(type); i++) text_printf(text, "%s%c", i ? ", " : " ", "xyzw"[i]);
    text_printf(text, "; } %s;\n", name);
}

const char *clike_declare_data(Printer *p, const Type *buffer, const char *name) {
    const Type *element = buffer->args[0];
    if (element->kind == TYPE_void) return clike_format(p, "unsigned char *%s", name);
    return clike_declare(p, element, clike_format(p, element->kind == TYPE_array ? "(*%s)" : "*%s", name));
}

static void define_buffer(Printer *p, Text *text, const Type *type, const char *name) {
    text_printf(text, "typedef struct %s { %s; uint64_t count; } %s;\n", name,
                clike_declare_data(p, type, "data"), name);
}

const char *clike_word(Printer *p, const Type *type) {
    if (type_is_scalar(type)) return scalar_words[type->kind - TYPE_bool];
    switch (type->kind) {
    case TYPE_array:
        return clike_format(p, "%s_%lld", clike_word(p, type->args[0]), (long long)type_length(type));
    case TYPE_pointer: return clike_format(p, "%s_p", clike_word(p, type->args[0]));
    case TYPE_void: return "bytes";
    case TYPE_tape: return "tape";
    default: return clike_type(p, type);
    }
}

/* Headers of several programs may have a type in common, and must not have different ones of the same
 * name. */
static void add_type(Printer *p, const char *name, Str text, Str checks) {
    if (p->file->header) text_printf(&p->types, "#ifndef SLOPE_HAS_%s\n#define SLOPE_HAS_%s\n", name, name);
    text_add(&p->types, text);
    if (p->file->header) text_add(&p->types, STR("#endif\n"));
    text_add(&p->types, checks);
}

const char *clike_named_type(Printer *p, const Type *type) {
    const char *name = map_get(&p->type_names, PTR_KEY(type));
    if (name) return name;
    Text text = {.arena = &p->arena}, checks = text;
    if (type->kind == TYPE_buffer) {
        /* Kinds of buffers differ in what the program may do, not in what they are. */
        const Type *plain = type_buffer(p->module->types, BUFFER_structured, type->args[0]);
        if (plain != type) return clike_named_type(p, plain);
        name = clike_format(p, "Buffer_%s", clike_word(p, type->args[0]));
    } else if (type->kind == TYPE_vector) {
        const char *word = clike_word(p, type->args[0]);
        bool has_bits = word[strlen(word) - 1] <= '9'; /* uint8_t4, but float4 */
        name = clike_format(p, "%s%s%d", word, has_bits ? "_t" : "", type_count(type));
    } else {
        name = clike_free_name(p, type_record(type)->name->text);
    }
    name = clike_unique(p, &p->names, name);
    /* Inside its own definition a struct is not known by its plain name yet. */
    map_put(&p->arena, &p->type_names, PTR_KEY(type), (void *)(uintptr_t)clike_format(p, "struct %s", name));
    if (type->kind == TYPE_buffer) define_buffer(p, &text, type, name);
    else if (type->kind == TYPE_vector) define_vector(p, &text, type, name);
    else p->dialect->language->define_record(p, &text, type, name);
    map_put(&p->arena, &p->type_names, PTR_KEY(type), (void *)(uintptr_t)name);
    if (type->kind == TYPE_record && p->dialect->language->check_record)
        p->dialect->language->check_record(p, &checks, type, name);
    add_type(p, name, text_str(&text), text_str(&checks));
    return name;
}

static const Type *pointed_at(const Type *target) {
    return target->kind == TYPE_array ? target->args[0] : target;
}

bool clike_is_text(const Type *type) {
    return type->kind == TYPE_pointer && type->args[0]->kind == TYPE_array &&
           type_length(type->args[0]) < 0 && type->args[0]->args[0]->kind == TYPE_int8;
}

static const char *spaced(Printer *p, const char *type, const char *name) {
    return *name ? clike_format(p, "%s %s", type, name) : type;
}

const char *clike_declare_pointers(Printer *p, const Type *type, const char *name) {
    if (type_is_scalar(type)) {
        if (type->kind == TYPE_half) clike_helper(p, "slope_half");
        return spaced(p, scalar_names[type->kind - TYPE_bool], name);
    }
    switch (type->kind) {
    case TYPE_void: return spaced(p, "void", name);
    case TYPE_tape: clike_helper(p, "SlopeTape"); return clike_format(p, "SlopeTape *%s", name);
    case TYPE_array: {
        long long length = (long long)(type_length(type) > 0 ? type_length(type) : 1);
        return clike_declare(p, type->args[0], clike_format(p, "%s[%lld]", name, length));
    }
    case TYPE_pointer: {
        if (clike_is_text(type)) return clike_format(p, "const char *%s", name);
        const Type *target = pointed_at(type->args[0]);
        return clike_declare(p, target, clike_format(p, target->kind == TYPE_array ? "(*%s)" : "*%s", name));
    }
    default: return spaced(p, clike_named_type(p, type), name);
    }
}

const char *clike_declare_pointers_value(Printer *p, const Type *type, const char *name) {
    return type->kind == TYPE_half ? spaced(p, "float", name) : clike_declare_pointers(p, type, name);
}

const char *clike_declare(Printer *p, const Type *type, const char *name) {
    return p->dialect->language->declare(p, type, name);
}

const char *clike_declare_value(Printer *p, const Type *type, const char *name) {
    return p->dialect->language->declare_value(p, type, name);
}

const char *clike_type(Printer *p, const Type *type) { return clike_declare_value(p, type, ""); }
