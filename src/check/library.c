/* The library: prelude/, in Slang, of which each program has its own copy of the part that it uses.
 *
 * The checker writes what it finds out into the tree, so trees cannot be shared. Tokens can: a session reads the files of the library
 * once, and keeps the tokens with an index of what is declared where. Nothing of that changes any more, however many programs
 * use it. A program parses a declaration when it is first asked for by name: a small program touches a few dozen of more
 * than a thousand. Three kinds are not found by their own name: extensions (all of them are declared as soon as one is looked
 * for, there are few), derivatives of other functions (by the name of these), and what stands for a built-in type (by its kind). */
#include "check/checker.h"

/* One declaration of the library. */
typedef struct Row {
    int file;
    int at; /* its first token */
    Name name;
    Name derivative_of; /* NULL: of nothing */
    bool is_extension;
    Str doc;
} Row;

typedef VEC(int) Rows;

struct Library {
    struct ParseFile **files;
    int nfiles;
    VEC(Row) rows;   /* in order */
    Map names;       /* Name -> Rows */
    Map derivatives; /* Name -> Rows, of what they are derivatives of */
    Known known;
};

/* ---- making one */

static void add_to(Arena *arena, Map *map, Name name, int row) {
    Rows *rows = map_get(map, PTR_KEY(name));
    if (!rows) {
        rows = arena_new(arena, Rows);
        map_put(arena, map, PTR_KEY(name), rows);
    }
    vec_push(arena, rows, row);
}

/* Overloads that follow each other share the documentation of the first. */
static Str doc_of(const Library *library, const Decl *decl) {
    const Row *before = library->rows.count ? &vec_last(&library->rows) : NULL;
    bool shares = decl->kind == DECL_func && decl->doc.len == 0 && before && before->name == decl->name;
    return shares ? before->doc : decl->doc;
}

static void add_row(Arena *arena, Library *library, int file, int at, const Decl *decl) {
    Row row = {.file = file,
               .at = at,
               .name = decl->name,
               .derivative_of = derivative_target(decl),
               .is_extension = decl->kind == DECL_extension,
               .doc = doc_of(library, decl)};
    if (row.name) add_to(arena, &library->names, row.name, library->rows.count);
    if (row.derivative_of) add_to(arena, &library->derivatives, row.derivative_of, library->rows.count);
    vec_push(arena, &library->rows, row);
}

/* The trees are made to be looked at and thrown away. */
static void index_file(Syntax *syntax, Library *library, int file, Arena *scratch) {
    Syntax aside = *syntax;
    aside.arena = scratch;
    struct ParseFile *tokens = syntax_share(&aside, library->files[file]);
    Decl *module = decl_new(scratch, DECL_module, 0, NULL);
    for (int at = 0;;) {
        int start = at;
        const Decl *decl = syntax_declaration(tokens, module, &at);
        if (!decl) return;
        add_row(syntax->arena, library, file, start, decl);
    }
}

Library *library_new(Syntax *syntax, const PreludeFile *files, int nfiles) {
    Arena scratch;
    Library *library = arena_new(syntax->arena, Library);
    library->files = arena_array(syntax->arena, struct ParseFile *, nfiles);
    library->nfiles = nfiles;
    arena_init(&scratch, syntax->arena->allocator, syntax->arena->trap);
    for (int i = 0; i < nfiles; i++) {
        Name path = name_from(syntax->names, format_text(syntax->arena, "prelude/%s", files[i].name));
        SourceFile *source = source_add(syntax->sources, path, (Str){files[i].text, files[i].len});
        library->files[i] = syntax_open(syntax, source);
        index_file(syntax, library, i, &scratch);
    }
    arena_free(&scratch);
    known_names(syntax->names, syntax->arena, &library->known);
    return library;
}

/* ---- built-in types */

static const struct {
    const char *name;
    TypeKind kind;
    int64_t number;
} builtin_types[] = {
    {"void", TYPE_void, 0},
    {"bool", TYPE_bool, 0},
    {"int8_t", TYPE_int8, 0},
    {"uint8_t", TYPE_uint8, 0},
    {"int16_t", TYPE_int16, 0},
    {"uint16_t", TYPE_uint16, 0},
    {"int", TYPE_int, 0},
    {"uint", TYPE_uint, 0},
    {"int64_t", TYPE_int64, 0},
    {"uint64_t", TYPE_uint64, 0},
    {"half", TYPE_half, 0},
    {"float", TYPE_float, 0},
    {"double", TYPE_double, 0},
    {"vector", TYPE_vector, 0},
    {"matrix", TYPE_matrix, 0},
    {"Array", TYPE_array, 0},
    {"Ptr", TYPE_pointer, 0},
    {"Optional", TYPE_optional, 0},
    {"Tuple", TYPE_tuple, 0},
    {"DifferentialPair", TYPE_pair, 0},
    {"DifferentialPtrPair", TYPE_ptr_pair, 0},
    {"String", TYPE_string, 0},
    {"StructuredBuffer", TYPE_buffer, BUFFER_structured},
    {"RWStructuredBuffer", TYPE_buffer, BUFFER_rw_structured},
    {"AppendStructuredBuffer", TYPE_buffer, BUFFER_append},
    {"ConsumeStructuredBuffer", TYPE_buffer, BUFFER_consume},
    {"ByteAddressBuffer", TYPE_buffer, BUFFER_bytes},
    {"RWByteAddressBuffer", TYPE_buffer, BUFFER_rw_bytes},
    {"ConstantBuffer", TYPE_buffer, BUFFER_constant},
    {"ParameterBlock", TYPE_buffer, BUFFER_constant},
};

static void register_builtin(Checker *c, Decl *decl) {
    for (size_t i = 0; i < sizeof builtin_types / sizeof builtin_types[0]; i++) {
        if (strcmp(builtin_types[i].name, decl->name->text) != 0) continue;
        Sema *sema = decl_sema(c, decl);
        sema->builtin_kind = (int)builtin_types[i].kind;
        sema->builtin_number = builtin_types[i].number;
        if (builtin_types[i].kind != TYPE_buffer) c->builtin[builtin_types[i].kind] = decl;
        else if (!c->buffers[builtin_types[i].number]) c->buffers[builtin_types[i].number] = decl;
    }
}

static void find_builtin(Checker *c, TypeKind kind, int64_t number) {
    for (size_t i = 0; i < sizeof builtin_types / sizeof builtin_types[0]; i++)
        if (builtin_types[i].kind == kind && builtin_types[i].number == number) {
            check_prelude_decl(c, builtin_types[i].name); /* registers it */
            return;
        }
}

Decl *library_builtin(Checker *c, const Type *type) {
    bool buffer = type->kind == TYPE_buffer;
    Decl **decl = buffer ? &c->buffers[type->number] : &c->builtin[type->kind];
    if (!*decl && c->prelude) find_builtin(c, (TypeKind)type->kind, buffer ? type->number : 0);
    return *decl;
}

/* ---- in a program */

static void mark(Decl *decl) {
    decl->flags |= DECL_PRELUDE;
    for (int i = 0; i < decl->members.count; i++) mark(decl->members.at[i]);
}

static Decl *declare(Checker *c, int index) {
    const Row *row = &c->config.library->rows.at[index];
    int at = row->at;
    if (c->declared[index]) return c->declared[index];
    Decl *decl = c->declared[index] = syntax_declaration(c->library_files[row->file], c->prelude, &at);
    decl->doc = row->doc;
    mark(decl);
    if (decl->kind == DECL_struct && decl->name && find_attribute(decl, "__builtin_type"))
        register_builtin(c, decl);
    return decl;
}

void library_open(Checker *c) {
    const Library *library = c->config.library;
    if (!library) {
        known_names(c->names, c->arena, &c->known);
        return;
    }
    Syntax *plain = arena_copy(c->arena, c->config.syntax, sizeof *plain);
    plain->ndefines = 0; /* the user's macros are none of its business */
    c->known = library->known;
    c->declared = arena_array(c->arena, Decl *, library->rows.count);
    c->library_files = arena_array(c->arena, struct ParseFile *, library->nfiles);
    for (int i = 0; i < library->nfiles; i++) c->library_files[i] = syntax_share(plain, library->files[i]);
    c->prelude = decl_new(c->arena, DECL_module, 1, NULL);
    c->prelude->flags |= DECL_PRELUDE;
    decl_sema(c, c->prelude)->file = name_from(c->names, "prelude");
    c->prelude->scope = scope_new(c, NULL, c->prelude);
    c->prelude->scope->library = c;
    vec_push(c->arena, &c->modules, c->prelude);
}

void library_find(Checker *c, Scope *scope, Name name) {
    const Rows *rows = map_get(&c->config.library->names, PTR_KEY(name));
    for (int i = 0; rows && i < rows->count; i++) scope_add(c, scope, declare(c, rows->at[i]));
}

void library_extensions(Checker *c) {
    const Library *library = c->config.library;
    for (int i = 0; i < library->rows.count; i++)
        if (library->rows.at[i].is_extension) declare(c, i);
}

void library_derivatives(Checker *c, Name name, DeclVec *out) {
    const Rows *rows = c->prelude ? map_get(&c->config.library->derivatives, PTR_KEY(name)) : NULL;
    for (int i = 0; rows && i < rows->count; i++) vec_push(c->arena, out, declare(c, rows->at[i]));
}

void library_all(Checker *c) {
    DeclVec all = {0};
    for (int i = 0; i < c->config.library->rows.count; i++) vec_push(c->arena, &all, declare(c, i));
    c->prelude->members = all;
}

Name library_name_at(const Checker *c, int index) {
    const Library *library = c->config.library;
    return index < library->names.count ? (Name)(uintptr_t)library->names.entries[index].key : NULL;
}
