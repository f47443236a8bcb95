/* The library: prelude/, in Slang, of which each program has its own copy of the part that it uses.
 *
 * What is declared where is known since the build, see library_index. The checker writes what it finds out
 * into the tree, so trees cannot be shared. Tokens can: of the files that most programs use, a session reads
 * the tokens once, and nothing of that changes any more, however many programs use it. The other files are
 * read by a program that mentions one of their declarations; between programs, the session reads those that
 * were mentioned, for the next ones (library_keep). A program parses a declaration when it is first asked for
 * by name: a small program touches a few dozen of more than a thousand. Those that earlier programs asked
 * for, or that the text of the first one names, are declared from the start, headers checked, since such a
 * start is made once and used by many programs, one after the other (driver/ready.c). Three kinds are not
 * found by their own name: extensions (those of a file are declared when it is read: there are few, and what
 * they add can be named by who reads the file alone), derivatives of other functions (by the name of these),
 * and what stands for a built-in type (by its kind). */
#include "check/checker.h"

typedef struct Row {
    int file;
    int at; /* its first token */
    Name name;
    Name derivative_of; /* NULL: of nothing */
    bool is_extension;
} Row;

typedef VEC(int) Rows;

/* Of rows, or of files, by their index. */
typedef struct Uses {
    bool *asked; /* a program asked for it */
    bool *ready; /* a start has it: what was asked for when that was made, or on the way */
    int count;
} Uses;

struct Library {
    const PreludeFile *texts;
    struct ParseFile **files; /* NULL: one that programs read themselves, or ... */
    struct ParseFile **kept;  /* ... that was read for them; NULL: not so far */
    int nfiles;
    VEC(Row) rows;   /* in order */
    Uses files_used; /* those that programs read themselves */
    Uses rows_used;  /* by name */
    int waited;      /* programs that began without some that were asked for */
    Map names;       /* Name -> Rows */
    Map derivatives; /* Name -> Rows, of what they are derivatives of */
    Known known;
};

/* ---- making one */

/* Those that most programs use. */
static const char *const shared_files[] = {"atomic.slang",    "core.slang",   "diff.slang", "math.slang",
                                           "operators.slang", "vector.slang", NULL};
/* What these declare under a name that others have too is for types of their own, which nobody has before the
 * file is read: it comes with it. */
static const char *const typed_files[] = {"matrix_coop.slang", "vector_coop.slang", NULL};
/* Modules of their own: what they declare is there for who imports them. */
static const char *const module_files[] = {"glsl.slang", NULL};
static const char *const part_files[] = {"glsl_textures.slang", "glsl_threads.slang",
                                         NULL}; /* which these include */
/* What Slang has not. */
static const char *const added_files[] = {"geometry.slang",
                                          "operators.slang",
                                          "optimize.slang",
                                          "random.slang",
                                          "sparse.slang",
                                          "special.slang",
                                          NULL};

static bool is_among(const char *const *names, const PreludeFile *file) {
    for (; *names; names++)
        if (strcmp(*names, file->name) == 0) return true;
    return false;
}

static void add_to(Arena *arena, Map *map, Name name, int row) {
    Rows *rows = map_get(map, PTR_KEY(name));
    if (!rows) {
        rows = arena_new(arena, Rows);
        map_put(arena, map, PTR_KEY(name), rows);
    }
    vec_push(arena, rows, row);
}

static void add_row(Syntax *syntax, Library *library, const PreludeRow *from) {
    Row row = {.file = from->file, .at = from->at, .is_extension = from->is_extension};
    if (from->name) row.name = name_from(syntax->names, from->name);
    if (from->derivative_of) row.derivative_of = name_from(syntax->names, from->derivative_of);
    if (row.name) add_to(syntax->arena, &library->names, row.name, library->rows.count);
    if (row.derivative_of)
        add_to(syntax->arena, &library->derivatives, row.derivative_of, library->rows.count);
    vec_push(syntax->arena, &library->rows, row);
}

static struct ParseFile *read_file(Syntax *syntax, const PreludeFile *file) {
    Name path = name_from(syntax->names, format_text(syntax->arena, "prelude/%s", file->name));
    return syntax_open(syntax, source_add(syntax->sources, path, (Str){file->text, file->len}));
}

static Uses uses_of(Arena *arena, int count) {
    return (Uses){arena_array(arena, bool, count), arena_array(arena, bool, count), count};
}

Library *library_new(Syntax *syntax, const PreludeFile *files, const PreludeRow *rows) {
    Library *library = arena_new(syntax->arena, Library);
    library->texts = files;
    while (files[library->nfiles].name) library->nfiles++;
    library->files = arena_array(syntax->arena, struct ParseFile *, library->nfiles);
    library->kept = arena_array(syntax->arena, struct ParseFile *, library->nfiles);
    for (int i = 0; i < library->nfiles; i++)
        if (is_among(shared_files, &files[i])) library->files[i] = read_file(syntax, &files[i]);
    for (const PreludeRow *row = rows; row->file >= 0; row++) add_row(syntax, library, row);
    library->files_used = uses_of(syntax->arena, library->nfiles);
    library->rows_used = uses_of(syntax->arena, library->rows.count);
    known_names(syntax->names, syntax->arena, &library->known);
    return library;
}

/* ---- what programs use */

static int count_ready(const Uses *uses) {
    int count = 0;
    for (int i = 0; i < uses->count; i++) count += uses->ready[i];
    return count;
}

static int count_new(const Uses *uses) {
    int count = 0;
    for (int i = 0; i < uses->count; i++) count += uses->asked[i] && !uses->ready[i];
    return count;
}

static void make_ready(Uses *uses) {
    for (int i = 0; i < uses->count; i++) uses->ready[i] |= uses->asked[i];
}

/* Asked for by name, and not by who looks at all. What comes with a file, if it is read, is no part of a
 * start. */
static void note_asked(const Library *library, const Rows *rows) {
    for (int i = 0; rows && i < rows->count; i++)
        if (!is_among(typed_files, &library->texts[library->rows.at[rows->at[i]].file]))
            library->rows_used.asked[rows->at[i]] = true;
}

static void expect_word(Library *library, const Names *names, Str word) {
    Name name = name_known(names, word);
    const Rows *rows = name ? map_get(&library->names, PTR_KEY(name)) : NULL;
    if (!rows) return;
    note_asked(library, rows);
    note_asked(library, map_get(&library->derivatives, PTR_KEY(name)));
    for (int i = 0; i < rows->count; i++) {
        int file = library->rows.at[rows->at[i]].file;
        library->files_used.asked[file] |= !library->files[file] && library->rows_used.asked[rows->at[i]];
    }
}

void library_expect(Library *library, const Names *names, Str text) {
    Str word;
    for (int at = 0; syntax_next_word(text, &at, &word);) expect_word(library, names, word);
}

static void keep_files(Syntax *syntax, Library *library) {
    for (int i = 0; i < library->nfiles; i++)
        if (library->files_used.asked[i] && !library->kept[i])
            library->kept[i] = read_file(syntax, &library->texts[i]);
}

/* Few new ones are left to the programs for some time: a start is not made anew for each of them. */
bool library_keep(Syntax *syntax, Library *library) {
    enum { FEW = 8, LONG = 8 }; /* one in so many; so many programs */
    Uses *rows = &library->rows_used, *files = &library->files_used;
    int added = count_new(rows);
    if (added) library->waited++;
    if (!count_new(files) && added * FEW <= count_ready(rows) && library->waited < LONG) return false;
    library->waited = 0;
    keep_files(syntax, library);
    make_ready(files);
    make_ready(rows);
    return true;
}

bool library_is_ready(const Library *library) { return count_ready(&library->rows_used) > 0; }

/* ---- the list of what is declared, for the build */

static void index_file(Syntax *syntax, int file, struct ParseFile *tokens, PreludeRows *out) {
    Decl *module = decl_new(syntax->arena, DECL_module, 0, NULL);
    for (int at = 0;;) {
        PreludeRow row = {.file = file, .at = at};
        const Decl *decl = syntax_declaration(tokens, module, &at);
        if (!decl) return;
        Name of = derivative_target(decl);
        row.name = decl->name ? decl->name->text : NULL;
        row.derivative_of = of ? of->text : NULL;
        row.is_extension = decl->kind == DECL_extension;
        vec_push(syntax->arena, out, row);
    }
}

void library_index(Syntax *syntax, const PreludeFile *files, int nfiles, PreludeRows *out) {
    for (int i = 0; i < nfiles; i++)
        if (!is_among(module_files, &files[i]) && !is_among(part_files, &files[i]))
            index_file(syntax, i, read_file(syntax, &files[i]), out);
}

static const PreludeFile *find_file(const Checker *c, const char *const *among, Str name) {
    const Library *library = c->config.library;
    for (int i = 0; library && i < library->nfiles; i++) {
        const PreludeFile *file = &library->texts[i];
        Str own = str_of(file->name);
        own.len -= (int)strlen(".slang");
        if (str_eq(own, name) && is_among(among, file)) return file;
    }
    return NULL;
}

const PreludeFile *library_module(const Checker *c, Str name) { return find_file(c, module_files, name); }
const PreludeFile *library_part(const Checker *c, Str name) { return find_file(c, part_files, name); }

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

static Decl *declare(Checker *c, int index);

static void declare_extensions(Checker *c, int file) {
    const Library *library = c->config.library;
    for (int i = 0; i < library->rows.count; i++)
        if (library->rows.at[i].file == file && library->rows.at[i].is_extension)
            vec_push(c->arena, &c->library_extensions, declare(c, i));
}

/* Overloads of what was found already. */
static void declare_overloads(Checker *c, int file) {
    const Library *library = c->config.library;
    Scope *scope = c->prelude->scope;
    for (int i = 0; i < library->rows.count; i++) {
        const Row *row = &library->rows.at[i];
        if (row->file == file && row->name && map_has(&scope->names, PTR_KEY(row->name)))
            scope_add(c, scope, declare(c, i));
    }
}

static struct ParseFile *read_again(Checker *c, int file) {
    const Library *library = c->config.library;
    if (library->kept[file]) return syntax_share(c->library_syntax, library->kept[file]);
    library->files_used.asked[file] = true;
    return read_file(c->library_syntax, &library->texts[file]);
}

static struct ParseFile *file_of(Checker *c, int file) {
    const PreludeFile *text = &c->config.library->texts[file];
    if (c->library_files[file]) return c->library_files[file];
    c->library_files[file] = read_again(c, file);
    declare_extensions(c, file);
    if (is_among(typed_files, text)) declare_overloads(c, file);
    return c->library_files[file];
}

static bool is_waiting(const Checker *c, int file) {
    return !c->library_files[file] && is_among(typed_files, &c->config.library->texts[file]);
}

static Decl *declare(Checker *c, int index) {
    const Row *row = &c->config.library->rows.at[index];
    int at = row->at;
    struct ParseFile *file = file_of(c, row->file);
    if (c->declared[index]) return c->declared[index];
    Decl *decl = c->declared[index] = syntax_declaration(file, c->prelude, &at);
    mark(decl);
    if (decl->kind == DECL_struct && decl->name && find_attribute(decl, "__builtin_type"))
        register_builtin(c, decl);
    return decl;
}

/* What was asked for on the way comes with every start. */
static void note_ready(Checker *c) {
    const Uses *files = &c->config.library->files_used, *rows = &c->config.library->rows_used;
    for (int i = 0; i < files->count; i++) files->ready[i] |= files->asked[i] && c->library_files[i];
    for (int i = 0; i < rows->count; i++) rows->ready[i] |= rows->asked[i] && c->declared[i];
}

/* Those that earlier programs asked for, or that this one names. */
static void declare_ready(Checker *c) {
    const Library *library = c->config.library;
    const bool *ready = library->rows_used.ready;
    for (int i = 0; i < library->rows.count; i++)
        if (ready[i] && library->rows.at[i].name) scope_find(c->prelude->scope, library->rows.at[i].name);
    for (int i = 0; i < library->rows.count; i++) {
        if (!ready[i]) continue;
        ensure_header(c, declare(c, i));
        ensure_bases(c, declare(c, i));
    }
    conform_forget_refusals(c);
    note_ready(c);
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
    c->library_syntax = plain;
    c->library_files = arena_array(c->arena, struct ParseFile *, library->nfiles);
    for (int i = 0; i < library->nfiles; i++)
        if (library->files[i]) c->library_files[i] = syntax_share(plain, library->files[i]);
    c->prelude = decl_new(c->arena, DECL_module, 1, NULL);
    c->prelude->flags |= DECL_PRELUDE;
    decl_sema(c, c->prelude)->file = name_from(c->names, "prelude");
    c->prelude->scope = scope_new(c, NULL, c->prelude);
    c->prelude->scope->library = c;
    vec_push(c->arena, &c->modules, c->prelude);
    declare_ready(c);
}

void library_find(Checker *c, Scope *scope, Name name) {
    const Library *library = c->config.library;
    const Rows *rows = map_get(&library->names, PTR_KEY(name));
    bool has_others = false;
    note_asked(library, rows);
    for (int i = 0; rows && i < rows->count; i++)
        has_others |= !is_waiting(c, library->rows.at[rows->at[i]].file);
    for (int i = 0; rows && i < rows->count && !has_others; i++)
        file_of(c, library->rows.at[rows->at[i]].file);
    for (int i = 0; rows && i < rows->count; i++)
        if (!is_waiting(c, library->rows.at[rows->at[i]].file)) scope_add(c, scope, declare(c, rows->at[i]));
}

bool library_adds(const Checker *c, Name name) {
    const Library *library = c->config.library;
    const Rows *rows = map_get(&library->names, PTR_KEY(name));
    return rows && is_among(added_files, &library->texts[library->rows.at[rows->at[0]].file]);
}

void library_extensions(Checker *c) {
    for (int i = 0; i < c->config.library->nfiles; i++)
        if (c->config.library->files[i]) declare_extensions(c, i);
}

void library_derivatives(Checker *c, Name name, DeclVec *out) {
    const Rows *rows = c->prelude ? map_get(&c->config.library->derivatives, PTR_KEY(name)) : NULL;
    note_asked(c->config.library, rows);
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
