/* Helpers by name: fixed ones, and families with one member per scalar type, from the rows of helpers.def. */
#include "emit/clike/clike.h"

#define HELPER_ROWS "emit/clike/helpers.def"
#include "emit/clike/tables.h"

bool clike_begin_helper(Printer *p, const char *name) {
    uint64_t key = PTR_KEY(name_from(p->module->names, name));
    if (map_has(&p->known, key)) return false;
    map_put(&p->arena, &p->known, key, p);
    return true;
}

/* ---- families */

static const char *bound(Printer *p, const Type *type, bool greatest) {
    if (type->kind == TYPE_bool) return greatest ? "true" : "false";
    return clike_format(p, "%sINT%d_%s", type_is_signed(type) ? "" : "U", type_bits(type),
                        greatest ? "MAX" : "MIN");
}

static const char *replacement(Printer *p, char letter, const Type *type) {
    int bits = type_bits(type);
    bool is_signed = type_is_signed(type);
    switch (letter) {
    case 'W': return clike_word(p, type);
    case 'T': return clike_type(p, type);
    case 'S': return type->kind == TYPE_double ? "" : "f";
    case 'U': return clike_format(p, "uint%d_t", bits);
    case 'B': return clike_format(p, "%d", bits);
    case 'L': return bound(p, type, false);
    case 'G': return bound(p, type, true);
    case 'D': return clike_format(p, "-%.0f.0", (double)((uint64_t)1 << (bits - 1)));
    case 'H':
        return clike_format(p, "%.0f.0", 2.0 * (double)((uint64_t)1 << (is_signed ? bits - 2 : bits - 1)));
    case 'C': return bits == 64 ? "unsigned long long" : "unsigned int";
    case 'A': return type_is_float(type) ? clike_type(p, type) : replacement(p, 'C', type);
    case 'K': return clike_format(p, "%d", (int)type->kind - TYPE_bool);
    default: return "$";
    }
}

static void add_member(Printer *p, const HelperFamily *family, const Type *type) {
    bool is_signed = type_is_integer(type) && type_is_signed(type) && *family->on_signed;
    Text text = {.arena = &p->arena};
    for (const char *at = is_signed ? family->on_signed : family->on_other; *at; at++) {
        if (*at != '$') text_char(&text, *at);
        else text_add(&text, str_of(replacement(p, *++at, type)));
    }
    text_add(&p->helpers, text_str(&text));
}

static const Type *type_of_word(Printer *p, const char *word) {
    for (int kind = TYPE_bool; kind <= TYPE_double; kind++) {
        const Type *type = type_basic(p->module->types, (TypeKind)kind);
        if (strcmp(clike_word(p, type), word) == 0) return type;
    }
    return NULL;
}

static bool find_member(Printer *p, const HelperFamily *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(rows[i].prefix);
        const Type *type = strncmp(name, rows[i].prefix, length) == 0 && name[length] == '_'
                               ? type_of_word(p, name + length + 1)
                               : NULL;
        if (!type) continue;
        add_member(p, &rows[i], type);
        return true;
    }
    return false;
}

/* ---- by name */

static void add_needs(Printer *p, const char *needs) {
    while (*needs) {
        size_t length = strcspn(needs, " ");
        clike_helper(p, clike_format(p, "%.*s", (int)length, needs));
        needs += length + (needs[length] == ' ');
    }
}

static bool find_row(Printer *p, const HelperRow *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        add_needs(p, rows[i].needs);
        bool for_types = strcmp(name, "SLOPE_MAY_ALIAS") == 0;
        text_add(for_types ? &p->types : &p->helpers, str_of(rows[i].text));
        return true;
    }
    return false;
}

/* They are written as C's. */
static void add_as_written(const Text *written, const char *inline_as, Text *out) {
    static const char inline_word[] = "static inline ";
    const size_t length = sizeof inline_word - 1;
    for (const char *at = written->len ? written->at : ""; *at;) {
        const char *end = strchr(at, '\n');
        if (strncmp(at, inline_word, length) == 0) {
            text_add(out, str_of(inline_as));
            at += length;
        }
        text_add(out, (Str){at, (int)(end + 1 - at)});
        at = end + 1;
    }
}

/* A type, that structs may need; of a header, with what makes numbers of it. */
static void define_half(Printer *p) {
    static const char definition[] = "typedef uint16_t slope_half; /* the bits */\n";
    if (!p->file->header) {
        text_add(&p->types, str_of(definition));
        return;
    }
    Text others = p->helpers;
    p->helpers = (Text){.arena = &p->arena};
    clike_helper(p, "slope_half_value");
    clike_helper(p, "slope_half_bits");
    text_printf(&p->types, "#ifndef SLOPE_HAS_slope_half\n#define SLOPE_HAS_slope_half\n%s", definition);
    add_as_written(&p->helpers, p->dialect->header_helper, &p->types);
    text_add(&p->types, STR("#endif\n"));
    p->helpers = others;
    p->header_copies = true;
}

static void define_wave(Printer *p) {
    text_printf(
        &p->helpers,
        "/* How many threads of a group that follow each other are the lanes of a wave: 1 to 128. */\n"
        "#ifndef SLOPE_WAVE\n#define SLOPE_WAVE %d\n#endif\n",
        p->options->wave ? p->options->wave : 32);
}

const char *clike_helper(Printer *p, const char *name) {
    const Dialect *dialect = p->dialect;
    if (!clike_begin_helper(p, name)) return name;
    if (strcmp(name, "SLOPE_WAVE") == 0) {
        define_wave(p);
        return name;
    }
    if (strcmp(name, "slope_half") == 0) {
        define_half(p);
        return name;
    }
    if (p->file->hosted && find_row(p, dialect->hosted, dialect->nhosted, name)) return name;
    if (find_row(p, dialect->helpers, dialect->nhelpers, name)) return name;
    if (find_row(p, helpers, sizeof helpers / sizeof *helpers, name)) return name;
    if (find_member(p, dialect->families, dialect->nfamilies, name)) return name;
    if (find_member(p, families, sizeof families / sizeof *families, name)) return name;
    clike_fail(p, 0, "there is no function '%s'", name);
}

const char *clike_tape(Printer *p, const char *what, const Type *type) {
    static const char *const growing[] = {"push", "grow", "take", "reserve"};
    clike_helper(p, "SlopeTape");
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
        if (strcmp(what, growing[i]) == 0) clike_helper(p, "slope_tape_room");
    bool is_access = strcmp(what, "keep") == 0 || strcmp(what, "kept") == 0 || strcmp(what, "all") == 0;
    if (is_access && p->dialect->once) clike_helper(p, p->dialect->once);
    return clike_helper(p, clike_format(p, "slope_%s_%s", what, clike_word(p, type)));
}

const char *clike_atomic(Printer *p, const char *what, const Type *type) {
    return clike_helper(p, clike_format(p, "slope_atomic_%s_%s", what, clike_word(p, type)));
}

void clike_add_helpers(Printer *p, Text *out) {
    const char *inline_as = p->dialect->helper, *of_vectors = p->dialect->helper_of_vectors;
    Text written = p->helpers;
    if (p->has_vectors && of_vectors && written.len) {
        p->helpers = (Text){.arena = &p->arena};
        inline_as = clike_format(p, "static %s ", clike_helper(p, of_vectors));
        text_add(out, text_str(&p->helpers));
        p->helpers = written;
    }
    add_as_written(&written, inline_as, out);
}
