/* type: interned types. Two types are equal exactly if they are the same pointer.
 *
 * Every type is one node: a kind, and depending on it a declaration, a number and arguments. This makes
 * interning, printing, hashing and substitution one function each. Numbers that occur in types (array sizes,
 * generic value arguments) are nodes too, so that a list of generic arguments is a list of types.
 *
 * Front end types (structs of a declaration with arguments, generic parameters, ...) end with lowering. The
 * IR knows only: void, scalars, vectors, arrays, pointers, buffers, tapes and records. A record is nominal
 * and carries its own fields, so that the IR and all that comes after it never sees a declaration. */
#ifndef SLOPE_TYPE_H
#define SLOPE_TYPE_H

#include "base/base.h"

struct Func; /* ir */

typedef enum TypeKind {
    TYPE_error, /* silences whatever it meets */
    TYPE_void,
    /* Scalars, in the order in which operands of different types join. */
    TYPE_bool,
    TYPE_int8,
    TYPE_uint8,
    TYPE_int16,
    TYPE_uint16,
    TYPE_int,
    TYPE_uint,
    TYPE_int64,
    TYPE_uint64,
    TYPE_half,
    TYPE_float,
    TYPE_double,
    /* Built from others. */
    TYPE_vector,   /* element, count */
    TYPE_matrix,   /* element, rows, columns */
    TYPE_array,    /* element, count; without count: unsized */
    TYPE_pointer,  /* target */
    TYPE_buffer,   /* element (void for byte buffers); number: BufferKind */
    TYPE_tuple,    /* elements */
    TYPE_optional, /* value */
    TYPE_pair,     /* DifferentialPair: primal; its differential follows from it */
    TYPE_ptr_pair, /* DifferentialPtrPair */
    TYPE_function, /* result, parameters..., what it throws; number: a bit for each of these that is no_diff */
    TYPE_string,
    TYPE_none, /* of the literal `none` */
    TYPE_null, /* of the literal `nullptr` */
    TYPE_list, /* of an initialiser list that has no type yet */
    /* Declared; arguments are the generic arguments of the declaration and of those around it, outermost
     * first. */
    TYPE_struct,
    TYPE_enum,
    TYPE_interface, /* as a type: a value of some type that conforms */
    /* Abstract: only inside generic declarations. */
    TYPE_param,  /* decl: the generic declaration; number: index (0 of an interface is This) */
    TYPE_assoc,  /* decl: the associated type required; args: base type, then arguments of the interface */
    TYPE_pack,   /* elements of a pack that is known */
    TYPE_expand, /* pattern, mentioning packs through TYPE_each */
    TYPE_each,   /* an element of a pack: a parameter, or a slice of one */
    TYPE_slice,  /* a pack without elements at its ends; number: how many at the front, << 32 at the back */
    TYPE_at,     /* one element of a pack; number: its index, from the back if negative */
    TYPE_repeat, /* a type without packs, and a pattern: the type, as often as the packs in the pattern have elements */
    TYPE_branch, /* pack, the type if it is empty, the type if not */
    /* Numbers. */
    TYPE_number,  /* number */
    TYPE_sum,     /* number: constant term; args: products */
    TYPE_product, /* number: factor; args: parameters or opaque terms, sorted */
    TYPE_apply,   /* number: an operator code of the front end; args: operands; opaque to arithmetic */
    /* IR only. */
    TYPE_record,
    TYPE_tape, /* storage of a reverse pass */
    TYPE_KIND_COUNT
} TypeKind;

typedef enum BufferKind {
    BUFFER_structured,
    BUFFER_rw_structured,
    BUFFER_append,
    BUFFER_consume,
    BUFFER_bytes,
    BUFFER_rw_bytes,
    BUFFER_constant, /* ConstantBuffer and ParameterBlock: one element */
} BufferKind;

/* Memory that an address leads to, as far as the IR knows it. Memory of one kind never overlaps with that of
 * another; `any` may be each of them, except a tape. Pointers of the front end are to any. */
typedef enum Space {
    SPACE_any,
    SPACE_local, /* a variable of the function, or of one that called it */
    SPACE_buffer,
    SPACE_uniform,
    SPACE_const,
    SPACE_static, /* one for each thread of a dispatch */
    SPACE_shared, /* ... for each group */
    SPACE_tape,
    SPACE_COUNT
} Space;

typedef enum TypeFlags {
    TYPE_HAS_PARAM = 1, /* something generic inside: not concrete */
    TYPE_HAS_ERROR = 2,
    TYPE_HAS_PACK = 4,
    TYPE_COLUMN_MAJOR = 8,    /* matrices only; part of the identity */
    TYPE_HANDLE = 16,         /* buffers only: written as `.Handle`; part of the identity */
    TYPE_READONLY = 1 << 30,  /* pointers only: nothing is written through it; part of the identity */
    TYPE_IS_PACK_PARAM = 32,  /* TYPE_param only */
    TYPE_IS_VALUE_PARAM = 64, /* TYPE_param only: a number, not a type */
    TYPE_THROWS =
        128, /* functions only: the last argument is an Optional of what it throws; part of the identity */
} TypeFlags;

typedef struct Type Type;
typedef struct Record Record;

struct Type {
    TypeKind kind;
    uint32_t flags;
    uint32_t id;      /* dense, in order of creation */
    const void *decl; /* Decl of the front end, or Record */
    Name name;        /* of decl, for printing */
    int64_t number;
    int nargs;
    const Type *args[];
};

typedef struct Types {
    Arena *arena;
    Names *names;
    InternTable table;
    uint32_t count;
    const Type *basic[TYPE_KIND_COUNT]; /* kinds without arguments, ready */
} Types;

/* ---- type.c */
void types_init(Types *types, Arena *arena, Names *names);
/* The one node with this content. `args` is copied. Flags are computed, apart from those that are
 * identity. */
const Type *type_make(Types *types, TypeKind kind, uint32_t identity_flags, const void *decl, Name name,
                      int64_t number, const Type *const *args, int nargs);
/* Is this argument of a function's type, one of the first 64, a no_diff parameter? The bit of its number that
 * says so. */
bool type_function_drops(const Type *type, int arg);
int64_t type_function_drop(int arg);
const Type *type_basic(const Types *types, TypeKind kind);
const Type *type_number(Types *types, int64_t number);
const Type *type_vector(Types *types, const Type *element, int count);
const Type *type_matrix(Types *types, const Type *element, int rows, int columns);
const Type *type_array(Types *types, const Type *element, int64_t count);
const Type *type_unsized_array(Types *types, const Type *element);
const Type *type_pointer(Types *types, const Type *target);
const Type *type_address(Types *types, const Type *target, Space space); /* a pointer into that */
const Type *type_buffer(Types *types, BufferKind kind, const Type *element);
const Type *type_wrap(Types *types, TypeKind kind, const Type *inner); /* optional, pair, ptr_pair */

/* Numbers in types, kept in a normal form, so that N+1 and 1+N are one node. */
const Type *type_add(Types *types, const Type *a, const Type *b);
const Type *type_multiply(Types *types, const Type *a, const Type *b);

static inline Space type_space(const Type *pointer) { return (Space)pointer->number; }
bool type_leads_into(const Type *a, const Type *b); /* is the address a one of the addresses b? */
static inline bool type_is_scalar(const Type *t) { return t->kind >= TYPE_bool && t->kind <= TYPE_double; }
static inline bool type_is_float(const Type *t) { return t->kind >= TYPE_half && t->kind <= TYPE_double; }
static inline bool type_is_integer(const Type *t) { return t->kind >= TYPE_int8 && t->kind <= TYPE_uint64; }
/* A buffer that no program writes. */
static inline bool type_is_read_only(const Type *t) {
    if (t->kind != TYPE_buffer) return false;
    return t->number == BUFFER_structured || t->number == BUFFER_bytes || t->number == BUFFER_constant;
}
bool type_leads_elsewhere(const Type *type); /* by a buffer or pointer in it */
bool type_is_signed(const Type *t);          /* int8, int16, int, int64, floats */
int type_bits(const Type *t);                /* of a scalar; bool has 1 */
const Type *type_element(const Type *t);     /* of vector, matrix, array; a scalar is its own element */
int type_count(const Type *t);               /* lanes of a vector with known size; 1 for a scalar */
int64_t type_length(const Type *t);          /* of an array with known size; -1: unsized or generic */
bool type_is_number(const Type *t, int64_t *number); /* is it a TYPE_number, and which */

/* ---- number.c: integers of the language, in 64 bits; results are not wrapped yet */
int64_t number_wrap(int64_t value, const Type *type); /* to the bits of a scalar type */
uint64_t number_bits(int64_t value, const Type *type);
int64_t number_divide(int64_t a, int64_t b, const Type *type);
int64_t number_remainder(int64_t a, int64_t b, const Type *type);
bool number_less(int64_t a, int64_t b, const Type *type);
int64_t number_shift_left(int64_t a, int64_t count, const Type *type);
int64_t number_shift_right(int64_t a, int64_t count, const Type *type);

/* ---- print.c: as a user would write it */
void type_print(Text *out, const Type *type);
const char *type_text(Arena *arena, const Type *type);
const char *type_buffer_name(BufferKind kind); /* RWStructuredBuffer and so on, without the element */

/* ---- record.c: structs of the IR */

typedef enum LayoutRules {
    LAYOUT_scalar, /* as C with scalar alignment: buffers and locals */
    LAYOUT_std140, /* constant buffers */
    LAYOUT_natural, /* sizeof and bit_cast: as scalar, but a field may begin in what the struct before it left over */
    LAYOUT_RULES_COUNT
} LayoutRules;
typedef struct Layout {
    int64_t size; /* without padding at the end */
    int64_t align;
    int64_t stride; /* of an element in an array */
} Layout;

typedef struct Field {
    Name name;
    const Type *type;
    bool is_block;         /* (an array of) constant buffers: pointers here */
    uint16_t image_format; /* of the images here, as check has it; 0: not said */
    const char *shared;    /* by bit fields, and which has which bits; NULL: by none */
} Field;

enum { FIELD_NO_DIFF = -2 }; /* a constant, as the source says */

/* How values of a record are differentiated; `differential` NULL: not at all. */
typedef struct RecordDiff {
    const Type *differential;
    const int *field_map;    /* field -> field of the differential, -1: none, or FIELD_NO_DIFF */
    struct Func *zero, *add; /* written by the user; NULL: by component */
    bool opaque;             /* values must stay whole while being differentiated */
    bool optional;           /* field 1 says whether there is a value; it is that of the primal */
    bool reference;          /* an IDifferentiablePtrType: the differential is its counterpart */
} RecordDiff;

struct Record {
    Name name;
    const Type *type; /* the TYPE_record that stands for it */
    Field *fields;
    int nfields;
    int64_t parts;  /* fields, and theirs; an array counts as its element */
    bool is_choice; /* a value of an interface: field 0 is the number of the one that counts; 0: none */
    bool is_view;   /* a DiffTensorView: field 0 refers to values, the others to their derivatives */
    bool has_diff;  /* `diff` is filled in */
    RecordDiff diff;
    void *user; /* lowering's own */
    /* layout.c: by LayoutRules, made when first asked for */
    Arena *arena;
    Layout layouts[LAYOUT_RULES_COUNT];
    int64_t *offsets[LAYOUT_RULES_COUNT]; /* of the fields; NULL: not made yet */
};

/* A new record type, different from all others. The fields may be filled in later, once. */
Record *record_new(Types *types, Name name);
static inline Record *type_record(const Type *t) { return (Record *)(uintptr_t)t->decl; }

/* ---- layout.c: sizes and offsets of IR types */
Layout type_layout(const Type *type, LayoutRules rules);
int64_t type_field_offset(const Type *record, int field, LayoutRules rules);
int64_t type_element_stride(const Type *array_or_vector, LayoutRules rules);

#endif
