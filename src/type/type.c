/* Interned types, and arithmetic on the numbers in them.
 *
 * A node is found by its content: kind, identity flags, declaration, number, arguments. The arguments are
 * interned themselves, so that comparing pointers is enough and making a type costs one look into a hash
 * table.
 *
 * Numbers have a normal form: a constant; or an atom (a parameter, an opaque term); or a product of a factor
 * and sorted atoms; or a sum of a constant and products, sorted and with distinct atoms. The simplest form
 * that fits is the one that stands for the value: never a sum of one product, never a product of one atom
 * with factor 1. */
#include "type.h"

#include <stdlib.h>

#define IDENTITY_FLAGS                                                                                       \
    ((uint32_t)(TYPE_COLUMN_MAJOR | TYPE_HANDLE | TYPE_READONLY | TYPE_THROWS | TYPE_IS_PACK_PARAM |         \
                TYPE_IS_VALUE_PARAM))
#define INHERITED_FLAGS ((uint32_t)(TYPE_HAS_PARAM | TYPE_HAS_ERROR | TYPE_HAS_PACK))

/* ---- interning */

typedef struct Candidate {
    TypeKind kind;
    uint32_t flags;
    const void *decl;
    int64_t number;
    const Type *const *args;
    int nargs;
} Candidate;

static bool same_type(const void *stored, const void *candidate) {
    const Type *t = stored;
    const Candidate *c = candidate;
    if (t->kind != c->kind || t->decl != c->decl || t->number != c->number || t->nargs != c->nargs ||
        (t->flags & IDENTITY_FLAGS) != c->flags)
        return false;
    for (int i = 0; i < t->nargs; i++)
        if (t->args[i] != c->args[i]) return false;
    return true;
}

static uint64_t hash_candidate(const Candidate *c) {
    uint64_t h = hash_mix((uint64_t)c->kind | (uint64_t)c->flags << 32, PTR_KEY(c->decl));
    h = hash_mix(h, (uint64_t)c->number);
    for (int i = 0; i < c->nargs; i++) h = hash_mix(h, c->args[i]->id);
    return h;
}

static uint32_t own_flags(TypeKind kind, uint32_t identity) {
    if (kind == TYPE_error) return TYPE_HAS_ERROR;
    if (kind == TYPE_pack) return TYPE_HAS_PACK;
    if (kind >= TYPE_expand && kind <= TYPE_branch) return TYPE_HAS_PARAM | TYPE_HAS_PACK;
    if (kind == TYPE_param && (identity & TYPE_IS_PACK_PARAM)) return TYPE_HAS_PARAM | TYPE_HAS_PACK;
    if (kind == TYPE_param || kind == TYPE_assoc) return TYPE_HAS_PARAM;
    return 0;
}

const Type *type_make(Types *types, TypeKind kind, uint32_t identity_flags, const void *decl, Name name,
                      int64_t number, const Type *const *args, int nargs) {
    Candidate candidate = {kind, identity_flags & IDENTITY_FLAGS, decl, number, args, nargs};
    uint64_t hash = hash_candidate(&candidate);
    Type *type = intern_find(&types->table, hash, &candidate, same_type);
    if (type) return type;
    type = arena_take(types->arena, sizeof(Type) + sizeof(Type *) * (size_t)nargs);
    type->kind = kind;
    type->flags = candidate.flags | own_flags(kind, identity_flags);
    type->id = types->count++;
    type->decl = decl;
    type->name = name;
    type->number = number;
    type->nargs = nargs;
    for (int i = 0; i < nargs; i++) {
        type->args[i] = args[i];
        type->flags |= args[i]->flags & INHERITED_FLAGS;
    }
    intern_add(types->arena, &types->table, hash, type);
    return type;
}

void types_init(Types *types, Arena *arena, Names *names) {
    *types = (Types){.arena = arena, .names = names};
    for (int kind = TYPE_error; kind <= TYPE_double; kind++)
        types->basic[kind] = type_make(types, (TypeKind)kind, 0, NULL, NULL, 0, NULL, 0);
    static const TypeKind others[] = {TYPE_string, TYPE_none, TYPE_null, TYPE_list, TYPE_tape};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        types->basic[others[i]] = type_make(types, others[i], 0, NULL, NULL, 0, NULL, 0);
}

int64_t type_function_drop(int arg) { return arg < 64 ? (int64_t)((uint64_t)1 << arg) : 0; }

bool type_function_drops(const Type *type, int arg) { return (type->number & type_function_drop(arg)) != 0; }

const Type *type_basic(const Types *types, TypeKind kind) {
    assert(types->basic[kind] && "a kind with arguments");
    return types->basic[kind];
}

/* ---- building types from others */

const Type *type_number(Types *types, int64_t number) {
    return type_make(types, TYPE_number, 0, NULL, NULL, number, NULL, 0);
}

const Type *type_vector(Types *types, const Type *element, int count) {
    const Type *args[] = {element, type_number(types, count)};
    return type_make(types, TYPE_vector, 0, NULL, NULL, 0, args, 2);
}

const Type *type_matrix(Types *types, const Type *element, int rows, int columns) {
    const Type *args[] = {element, type_number(types, rows), type_number(types, columns)};
    return type_make(types, TYPE_matrix, 0, NULL, NULL, 0, args, 3);
}

const Type *type_array(Types *types, const Type *element, int64_t count) {
    const Type *args[] = {element, type_number(types, count)};
    return type_make(types, TYPE_array, 0, NULL, NULL, 0, args, 2);
}

const Type *type_wrap(Types *types, TypeKind kind, const Type *inner) {
    return type_make(types, kind, 0, NULL, NULL, 0, &inner, 1);
}

const Type *type_unsized_array(Types *types, const Type *element) {
    return type_wrap(types, TYPE_array, element);
}

const Type *type_pointer(Types *types, const Type *target) { return type_wrap(types, TYPE_pointer, target); }

const Type *type_address(Types *types, const Type *target, Space space) {
    return type_make(types, TYPE_pointer, 0, NULL, NULL, space, &target, 1);
}

const Type *type_buffer(Types *types, BufferKind kind, const Type *element) {
    return type_make(types, TYPE_buffer, 0, NULL, NULL, kind, &element, 1);
}

/* ---- questions */

bool type_leads_into(const Type *a, const Type *b) {
    if (a->kind == TYPE_vector && b->kind == TYPE_vector)
        return a->args[1] == b->args[1] && type_leads_into(a->args[0], b->args[0]);
    if (a->kind != TYPE_pointer || b->kind != TYPE_pointer || a->args[0] != b->args[0]) return false;
    bool anywhere = type_space(b) == SPACE_any && type_space(a) != SPACE_tape;
    return anywhere || type_space(a) == type_space(b);
}

const Type *type_element(const Type *t) {
    bool has = t->kind == TYPE_vector || t->kind == TYPE_matrix || t->kind == TYPE_array;
    return has ? t->args[0] : t;
}

static bool type_holds(const Type *type, TypeKind kind) {
    if (type->kind == kind) return true;
    if (type->kind == TYPE_array) return type_holds(type->args[0], kind);
    const Record *record = type->kind == TYPE_record ? type_record(type) : NULL;
    for (int i = 0; i < (record ? record->nfields : 0); i++)
        if (type_holds(record->fields[i].type, kind)) return true;
    return false;
}

bool type_leads_elsewhere(const Type *type) {
    return type_holds(type, TYPE_buffer) || type_holds(type, TYPE_pointer);
}

bool type_is_signed(const Type *t) {
    TypeKind kind = type_element(t)->kind;
    return kind == TYPE_int8 || kind == TYPE_int16 || kind == TYPE_int || kind == TYPE_int64 ||
           (kind >= TYPE_half && kind <= TYPE_double);
}

int type_bits(const Type *t) {
    static const uint8_t bits[] = {1, 8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64};
    assert(type_is_scalar(t));
    return bits[t->kind - TYPE_bool];
}

bool type_is_number(const Type *t, int64_t *number) {
    if (t->kind != TYPE_number) return false;
    *number = t->number;
    return true;
}

int type_count(const Type *t) {
    int64_t count = 1;
    if (t->kind == TYPE_vector && !type_is_number(t->args[1], &count)) return 0;
    return (int)count;
}

int64_t type_length(const Type *t) {
    int64_t count = -1;
    if (t->kind == TYPE_array && t->nargs == 2) type_is_number(t->args[1], &count);
    return count;
}

/* ---- arithmetic on numbers */

typedef struct Term {
    int64_t factor;
    const Type *const *atoms;
    int natoms;
} Term;

/* A number taken apart: constant + terms. */
typedef struct Polynomial {
    Arena *arena;
    int64_t constant;
    VEC(Term) terms;
} Polynomial;

static int64_t wrapping_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrapping_multiply(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static int compare_types(const void *a, const void *b) {
    const Type *x = *(const Type *const *)a, *y = *(const Type *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_atoms(const Term *x, const Term *y) {
    if (x->natoms != y->natoms) return x->natoms < y->natoms ? -1 : 1;
    for (int i = 0; i < x->natoms; i++) {
        int order = compare_types(&x->atoms[i], &y->atoms[i]);
        if (order) return order;
    }
    return 0;
}

static int compare_terms(const void *a, const void *b) { return compare_atoms(a, b); }

static void add_term(Polynomial *p, Term term) {
    for (int i = 0; i < p->terms.count; i++)
        if (compare_atoms(&p->terms.at[i], &term) == 0) {
            p->terms.at[i].factor = wrapping_add(p->terms.at[i].factor, term.factor);
            return;
        }
    vec_push(p->arena, &p->terms, term);
}

static void add_number(Polynomial *p, const Type *number) {
    if (number->kind == TYPE_number) p->constant = wrapping_add(p->constant, number->number);
    else if (number->kind == TYPE_product) add_term(p, (Term){number->number, number->args, number->nargs});
    else if (number->kind == TYPE_sum) {
        p->constant = wrapping_add(p->constant, number->number);
        for (int i = 0; i < number->nargs; i++) add_number(p, number->args[i]);
    } else {
        const Type **atom = arena_new(p->arena, const Type *);
        *atom = number;
        add_term(p, (Term){1, atom, 1});
    }
}

static const Type *make_product(Types *types, Term term, bool alone) {
    if (alone && term.factor == 1 && term.natoms == 1) return term.atoms[0];
    return type_make(types, TYPE_product, 0, NULL, NULL, term.factor, term.atoms, term.natoms);
}

static const Type *make_number(Types *types, Polynomial *p) {
    int kept = 0;
    for (int i = 0; i < p->terms.count; i++)
        if (p->terms.at[i].factor != 0) p->terms.at[kept++] = p->terms.at[i];
    if (kept == 0) return type_number(types, p->constant);
    if (kept == 1 && p->constant == 0) return make_product(types, p->terms.at[0], true);
    qsort(p->terms.at, (size_t)kept, sizeof(Term), compare_terms);
    const Type **products = arena_array(types->arena, const Type *, kept);
    for (int i = 0; i < kept; i++) products[i] = make_product(types, p->terms.at[i], false);
    return type_make(types, TYPE_sum, 0, NULL, NULL, p->constant, products, kept);
}

static const Type *error_of(const Type *a, const Type *b) {
    return a->kind == TYPE_error ? a : b->kind == TYPE_error ? b : NULL;
}

const Type *type_add(Types *types, const Type *a, const Type *b) {
    if (error_of(a, b)) return error_of(a, b);
    Polynomial sum = {.arena = types->arena};
    add_number(&sum, a);
    add_number(&sum, b);
    return make_number(types, &sum);
}

static Term multiply_terms(Arena *arena, Term x, Term y) {
    int count = x.natoms + y.natoms;
    const Type **atoms = arena_array(arena, const Type *, count);
    for (int i = 0; i < count; i++) atoms[i] = i < x.natoms ? x.atoms[i] : y.atoms[i - x.natoms];
    if (count > 1) qsort(atoms, (size_t)count, sizeof *atoms, compare_types);
    return (Term){wrapping_multiply(x.factor, y.factor), atoms, count};
}

static void add_scaled(Polynomial *p, const Polynomial *terms, int64_t factor) {
    for (int i = 0; i < terms->terms.count; i++) {
        Term term = terms->terms.at[i];
        term.factor = wrapping_multiply(term.factor, factor);
        add_term(p, term);
    }
}

const Type *type_multiply(Types *types, const Type *a, const Type *b) {
    if (error_of(a, b)) return error_of(a, b);
    Polynomial x = {.arena = types->arena}, y = x, product = x;
    add_number(&x, a);
    add_number(&y, b);
    product.constant = wrapping_multiply(x.constant, y.constant);
    add_scaled(&product, &x, y.constant);
    add_scaled(&product, &y, x.constant);
    for (int i = 0; i < x.terms.count; i++)
        for (int j = 0; j < y.terms.count; j++)
            add_term(&product, multiply_terms(types->arena, x.terms.at[i], y.terms.at[j]));
    return make_number(types, &product);
}
