/* Types: one node for one type, as users read them, numbers in types, layout. */
#include "type/type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static Arena arena;
static Names names;
static Types types;

static int set_up(void **state) {
    (void)state;
    arena_init(&arena, allocator_system, NULL);
    names_init(&names, &arena, NULL);
    types_init(&types, &arena, &names);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&arena);
    return 0;
}

static const Type *basic(TypeKind kind) { return type_basic(&types, kind); }
static Name name(const char *text) { return name_from(&names, text); }

static const Type *generic(const char *text, int index, uint32_t flags) {
    static int declaration;
    return type_make(&types, TYPE_param, flags, &declaration, name(text), index, NULL, 0);
}

static const Type *declared(TypeKind kind, const char *text, const Type *const *args, int nargs) {
    static int declaration;
    return type_make(&types, kind, 0, &declaration, name(text), 0, args, nargs);
}

static void shows(const Type *type, const char *expected) {
    assert_string_equal(type_text(&arena, type), expected);
}

/* ---- interning */

static void equal_types_are_one(void **state) {
    (void)state;
    const Type *f = basic(TYPE_float), *i = basic(TYPE_int);
    assert_ptr_equal(type_vector(&types, f, 3), type_vector(&types, f, 3));
    assert_ptr_not_equal(type_vector(&types, f, 3), type_vector(&types, f, 4));
    assert_ptr_not_equal(type_vector(&types, f, 3), type_vector(&types, i, 3));
    assert_ptr_equal(type_array(&types, f, 3), type_array(&types, f, 3));
    assert_ptr_not_equal(type_array(&types, f, 3), type_unsized_array(&types, f));
    assert_ptr_not_equal(type_buffer(&types, BUFFER_structured, f),
                         type_buffer(&types, BUFFER_rw_structured, f));
    const Type *args[] = {f, type_number(&types, 2), type_number(&types, 2)};
    const Type *columns = type_make(&types, TYPE_matrix, TYPE_COLUMN_MAJOR, NULL, NULL, 0, args, 3);
    assert_ptr_not_equal(columns, type_matrix(&types, f, 2, 2));
    assert_ptr_not_equal(record_new(&types, name("S"))->type, record_new(&types, name("S"))->type);
}

static void many_types_are_found(void **state) {
    (void)state;
    const Type *made[2000];
    for (int i = 0; i < 2000; i++) made[i] = type_array(&types, basic(TYPE_int), i);
    for (int i = 0; i < 2000; i++) assert_ptr_equal(type_array(&types, basic(TYPE_int), i), made[i]);
}

static void flags_follow_from_the_parts(void **state) {
    (void)state;
    const Type *T = generic("T", 0, 0), *P = generic("P", 1, TYPE_IS_PACK_PARAM);
    assert_true(type_pointer(&types, T)->flags & TYPE_HAS_PARAM);
    assert_false(type_pointer(&types, basic(TYPE_int))->flags & TYPE_HAS_PARAM);
    assert_true(type_wrap(&types, TYPE_optional, type_pointer(&types, basic(TYPE_error)))->flags &
                TYPE_HAS_ERROR);
    assert_true(type_wrap(&types, TYPE_each, P)->flags & TYPE_HAS_PACK);
    assert_false(type_pointer(&types, P)->flags & TYPE_IS_PACK_PARAM); /* that is of the parameter alone */
}

static void questions_are_answered(void **state) {
    (void)state;
    const Type *v = type_vector(&types, basic(TYPE_half), 3), *N = generic("N", 0, TYPE_IS_VALUE_PARAM);
    const Type *generic_args[] = {basic(TYPE_float), N};
    assert_true(type_is_signed(basic(TYPE_int8)) && !type_is_signed(basic(TYPE_uint64)) && type_is_signed(v));
    assert_int_equal(type_bits(basic(TYPE_bool)), 1);
    assert_int_equal(type_bits(basic(TYPE_uint16)), 16);
    assert_int_equal(type_bits(basic(TYPE_double)), 64);
    assert_ptr_equal(type_element(v), basic(TYPE_half));
    assert_ptr_equal(type_element(basic(TYPE_int)), basic(TYPE_int));
    assert_int_equal(type_count(v), 3);
    assert_int_equal(type_count(basic(TYPE_int)), 1);
    assert_int_equal(type_length(type_array(&types, v, 7)), 7);
    assert_int_equal(type_length(type_unsized_array(&types, v)), -1);
    assert_int_equal(type_length(type_make(&types, TYPE_array, 0, NULL, NULL, 0, generic_args, 2)), -1);
}

/* ---- printing */

static void types_print_as_written(void **state) {
    (void)state;
    const Type *f = basic(TYPE_float), *T = generic("T", 0, 0), *N = generic("N", 1, TYPE_IS_VALUE_PARAM);
    shows(basic(TYPE_uint8), "uint8_t");
    shows(type_vector(&types, f, 3), "float3");
    shows(type_vector(&types, basic(TYPE_int16), 2), "int16_t2");
    shows(type_matrix(&types, f, 3, 4), "float3x4");
    const Type *vector_args[] = {T, N}, *matrix_args[] = {f, N, type_number(&types, 2)};
    shows(type_make(&types, TYPE_vector, 0, NULL, NULL, 0, vector_args, 2), "vector<T, N>");
    shows(type_make(&types, TYPE_matrix, 0, NULL, NULL, 0, matrix_args, 3), "matrix<float, N, 2>");
    shows(type_array(&types, type_array(&types, basic(TYPE_int), 3), 2), "int[3][2]");
    shows(type_unsized_array(&types, T), "T[]");
    shows(type_pointer(&types, type_array(&types, f, 2)), "float[2]*");
    shows(type_buffer(&types, BUFFER_rw_structured, f), "RWStructuredBuffer<float>");
    shows(type_buffer(&types, BUFFER_bytes, basic(TYPE_void)), "ByteAddressBuffer");
    const Type *handle = type_make(&types, TYPE_buffer, TYPE_HANDLE, NULL, NULL, BUFFER_structured, &f, 1);
    shows(handle, "StructuredBuffer<float>.Handle");
    shows(type_wrap(&types, TYPE_pair, f), "DifferentialPair<float>");
    shows(type_wrap(&types, TYPE_optional, T), "Optional<T>");
    const Type *two[] = {f, type_number(&types, 3)};
    shows(declared(TYPE_struct, "S", two, 2), "S<float, 3>");
    shows(declared(TYPE_enum, "E", NULL, 0), "E");
    const Type *pair[] = {f, basic(TYPE_int)};
    shows(type_make(&types, TYPE_tuple, 0, NULL, NULL, 0, pair, 2), "Tuple<float, int>");
    shows(type_make(&types, TYPE_tuple, 0, NULL, NULL, 0, NULL, 0), "Tuple<>");
    shows(type_make(&types, TYPE_function, 0, NULL, NULL, 0, pair, 2), "functype(int) -> float");
    shows(declared(TYPE_assoc, "Differential", &T, 1), "T.Differential");
    shows(basic(TYPE_null), "nullptr");
}

/* ---- numbers */

static void sums_have_one_form(void **state) {
    (void)state;
    const Type *N = generic("N", 1, TYPE_IS_VALUE_PARAM), *M = generic("M", 2, TYPE_IS_VALUE_PARAM);
    const Type *one = type_number(&types, 1), *minus = type_number(&types, -1),
               *zero = type_number(&types, 0);
    const Type *sum = type_add(&types, N, one);
    assert_ptr_equal(sum, type_add(&types, one, N));
    assert_ptr_equal(type_add(&types, sum, minus), N);
    assert_ptr_equal(type_add(&types, N, zero), N);
    assert_ptr_equal(type_add(&types, N, type_multiply(&types, minus, N)), zero);
    assert_ptr_equal(type_add(&types, N, N), type_multiply(&types, type_number(&types, 2), N));
    assert_ptr_equal(type_multiply(&types, N, M), type_multiply(&types, M, N));
    assert_ptr_equal(type_multiply(&types, N, zero), zero);
    assert_ptr_equal(type_add(&types, type_add(&types, N, M), one),
                     type_add(&types, type_add(&types, one, M), N));
    assert_ptr_equal(type_add(&types, type_number(&types, 40), type_number(&types, 2)),
                     type_number(&types, 42));
    assert_ptr_equal(type_add(&types, N, basic(TYPE_error)), basic(TYPE_error));
    assert_true(sum->flags & TYPE_HAS_PARAM);
}

static void products_distribute(void **state) {
    (void)state;
    const Type *N = generic("N", 1, TYPE_IS_VALUE_PARAM), *M = generic("M", 2, TYPE_IS_VALUE_PARAM);
    const Type *one = type_number(&types, 1), *minus = type_number(&types, -1);
    const Type *plus = type_add(&types, N, one), *less = type_add(&types, N, minus);
    const Type *square = type_multiply(&types, plus, less);
    assert_ptr_equal(square, type_add(&types, type_multiply(&types, N, N), minus));
    shows(square, "N * N - 1");
    shows(type_add(&types, type_multiply(&types, type_number(&types, 3), N), type_multiply(&types, minus, M)),
          "3 * N - M");
    shows(type_multiply(&types, minus, N), "-N");
    const Type *operands[] = {N, type_number(&types, 2)};
    const Type *quotient = type_make(&types, TYPE_apply, 0, NULL, name("/"), 7, operands, 2);
    shows(type_multiply(&types, quotient, M), "M * (N / 2)");
    assert_ptr_equal(type_add(&types, quotient, quotient),
                     type_multiply(&types, quotient, type_number(&types, 2)));
}

/* ---- layout */

static Record *record_of(const char *record_name, const Type *const *fields, int count) {
    Record *record = record_new(&types, name(record_name));
    record->fields = arena_array(&arena, Field, count);
    record->nfields = count;
    for (int i = 0; i < count; i++) record->fields[i] = (Field){.name = NULL, .type = fields[i]};
    return record;
}

static void has_layout(const Type *type, LayoutRules rules, int64_t size, int64_t align, int64_t stride) {
    Layout layout = type_layout(type, rules);
    assert_int_equal(layout.size, size);
    assert_int_equal(layout.align, align);
    assert_int_equal(layout.stride, stride);
}

static void scalar_layout(void **state) {
    (void)state;
    const Type *f3 = type_vector(&types, basic(TYPE_float), 3);
    has_layout(basic(TYPE_bool), LAYOUT_scalar, 1, 1, 1);
    has_layout(basic(TYPE_half), LAYOUT_scalar, 2, 2, 2);
    has_layout(f3, LAYOUT_scalar, 12, 4, 12);
    has_layout(type_array(&types, f3, 3), LAYOUT_scalar, 36, 4, 36);
    has_layout(type_pointer(&types, f3), LAYOUT_scalar, 8, 8, 8);
    has_layout(type_buffer(&types, BUFFER_structured, f3), LAYOUT_scalar, 16, 8, 16);
    has_layout(basic(TYPE_tape), LAYOUT_scalar, 8, 8, 8);
    const Type *fields[] = {f3, basic(TYPE_float), basic(TYPE_uint8)};
    const Type *tail = record_of("Tail", fields, 3)->type;
    has_layout(tail, LAYOUT_scalar, 17, 4, 20);
    has_layout(type_array(&types, tail, 2), LAYOUT_scalar, 40, 4, 40);
    const Type *outer[] = {tail, basic(TYPE_uint8), basic(TYPE_int64)};
    const Type *nested = record_of("Nested", outer, 3)->type;
    assert_int_equal(type_field_offset(nested, 0, LAYOUT_scalar), 0);
    assert_int_equal(type_field_offset(nested, 1, LAYOUT_scalar), 20); /* as in C */
    assert_int_equal(type_field_offset(nested, 2, LAYOUT_scalar), 24);
    has_layout(nested, LAYOUT_scalar, 32, 8, 32);
    has_layout(record_of("Empty", NULL, 0)->type, LAYOUT_scalar, 0, 1, 0);
}

static void constant_buffer_layout(void **state) {
    (void)state;
    const Type *f = basic(TYPE_float), *f2 = type_vector(&types, f, 2), *f3 = type_vector(&types, f, 3);
    has_layout(basic(TYPE_bool), LAYOUT_std140, 4, 4, 4);
    has_layout(f2, LAYOUT_std140, 8, 8, 8);
    has_layout(f3, LAYOUT_std140, 12, 16, 16);
    has_layout(type_array(&types, f, 3), LAYOUT_std140, 48, 16, 48);
    assert_int_equal(type_element_stride(type_array(&types, f, 3), LAYOUT_std140), 16);
    const Type *fields[] = {f, f2, f3, f, type_array(&types, f, 2), f};
    const Type *record = record_of("R", fields, 6)->type;
    const int64_t offsets[] = {0, 8, 16, 28, 32, 64};
    for (int i = 0; i < 6; i++) assert_int_equal(type_field_offset(record, i, LAYOUT_std140), offsets[i]);
    has_layout(record, LAYOUT_std140, 80, 16, 80);
    assert_int_equal(type_field_offset(record, 2, LAYOUT_scalar), 12); /* both rules side by side */
    assert_int_equal(type_element_stride(f3, LAYOUT_std140), 4);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(equal_types_are_one),    TEST(many_types_are_found),   TEST(flags_follow_from_the_parts),
        TEST(questions_are_answered), TEST(types_print_as_written), TEST(sums_have_one_form),
        TEST(products_distribute),    TEST(scalar_layout),          TEST(constant_buffer_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
