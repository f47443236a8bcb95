/* Memory, names, containers, text, numbers and positions. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static Arena arena;
static int blocks; /* handed out and not given back */

static void *counting_resize(void *user, void *old, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size == 0) {
        blocks--;
        free(old);
        return NULL;
    }
    blocks++;
    return malloc(new_size);
}

static int set_up(void **state) {
    (void)state;
    blocks = 0;
    arena_init(&arena, (Allocator){counting_resize, NULL}, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&arena);
    return blocks != 0;
}

/* ---- arenas */

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    for (int i = 1; i < 3000; i += 7) {
        unsigned char *taken = arena_take(&arena, (size_t)i);
        assert_int_equal((uintptr_t)taken % 16, 0);
        for (int j = 0; j < i; j++) assert_int_equal(taken[j], 0);
        memset(taken, 0xff, (size_t)i);
    }
    arena_free(&arena);
    assert_int_equal(blocks, 0);
    assert_int_equal(*(unsigned char *)arena_take(&arena, 1), 0);
}

static void large_objects_fit(void **state) {
    (void)state;
    char *small = arena_take(&arena, 10), *large = arena_take(&arena, 10 << 20),
         *after = arena_take(&arena, 10);
    large[(10 << 20) - 1] = 1;
    assert_ptr_not_equal(small, after);
    assert_int_equal(after[0], 0);
}

static void copies_are_equal(void **state) {
    (void)state;
    char *copy = arena_copy(&arena, "hello", 6);
    assert_string_equal(copy, "hello");
    arena_copy(&arena, NULL, 0);
}

static void the_limit_springs_the_trap(void **state) {
    (void)state;
    Trap trap = {.why = TRAP_none};
    arena.trap = &trap;
    arena.limit = 1 << 20;
    if (setjmp(trap.at) == 0)
        for (;;) arena_take(&arena, 1000);
    assert_int_equal(trap.why, TRAP_memory);
    assert_true(arena.total <= 1 << 20);
    if (setjmp(trap.at) == 0) arena_take(&arena, SIZE_MAX / 2);
    if (setjmp(trap.at) == 0) arena_fault(&arena, "a reason");
    assert_int_equal(trap.why, TRAP_fault);
    assert_string_equal(trap.what, "a reason");
}

static void scratch_goes_with_its_arena(void **state) {
    (void)state;
    Arena *first = arena_scratch(&arena), *second = arena_scratch(&arena);
    assert_ptr_not_equal(first, second);
    arena_take(first, 100000);
    arena_take(second, 100000);
    int before = blocks;
    arena_free(first);
    assert_true(blocks < before);
    assert_ptr_equal(arena_scratch(&arena), first); /* used again */
    arena_take(arena_scratch(second), 1000);        /* of another scratch */
    arena_free(&arena);
    assert_int_equal(blocks, 0);
}

static void an_arena_is_set_back(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    int *numbers = arena_array(&arena, int, COUNT), *more = arena_array(&arena, int, 10);
    for (int i = 0; i < COUNT; i++) numbers[i] = i;
    arena_free(arena_scratch(&arena));
    ArenaImage *image = arena_save(&arena, arena.allocator);
    int before = blocks;
    char *next = arena.next;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) numbers[i] = more[i % 10] = -1;
        arena_take(&arena, 1000000);
        arena_take(arena_scratch(&arena), 100000); /* as one that was left through the trap */
        arena_restore(&arena, image);
        assert_int_equal(blocks, before);
        assert_ptr_equal(arena.next, next);
        for (int i = 0; i < COUNT; i++) assert_int_equal(numbers[i], i);
        assert_int_equal(more[9], 0);
    }
    arena_image_free(image, arena.allocator);
    arena_free(&arena);
    assert_int_equal(blocks, 0);
}

/* ---- names and slices */

static void names_are_interned(void **state) {
    (void)state;
    Names names;
    names_init(&names, &arena, NULL);
    Name a = name_from(&names, "abc"), empty = name_from(&names, "");
    for (int i = 0; i < 5000; i++) {
        Name made = name_from(&names, format_text(&arena, "n%d", i));
        assert_ptr_equal(made, name_of(&names, str_of(format_text(&arena, "n%d", i))));
    }
    assert_ptr_equal(a, name_of(&names, (Str){"abcdef", 3}));
    assert_ptr_not_equal(a, empty);
    assert_int_equal(empty->len, 0);
    assert_string_equal(a->text, "abc");
}

static void slices_compare(void **state) {
    (void)state;
    assert_true(str_eq(STR("ab"), (Str){"abc", 2}));
    assert_false(str_eq(STR("ab"), STR("ac")));
    assert_true(str_eq((Str){NULL, 0}, STR("")));
    assert_true(str_starts(STR("hello"), "he") && !str_starts(STR("h"), "he"));
    assert_true(str_ends(STR("hello"), "lo") && !str_ends(STR("o"), "lo"));
}

/* ---- containers */

static void vectors_grow(void **state) {
    (void)state;
    VEC(int) v = {0};
    for (int i = 0; i < 10000; i++) vec_push(&arena, &v, i * 3);
    for (int i = 0; i < 10000; i++) assert_int_equal(v.at[i], i * 3);
    assert_int_equal(vec_last(&v), 29997);
    assert_int_equal(vec_pop(&v), 29997);
    assert_int_equal(v.count, 9999);
}

static void maps_keep_order_and_replace(void **state) {
    (void)state;
    Map map = {0};
    assert_null(map_get(&map, 5));
    for (uint64_t i = 1; i <= 3000; i++) map_put(&arena, &map, i * 0x10000, (void *)(uintptr_t)i);
    map_put(&arena, &map, 0x10000, (void *)(uintptr_t)99);
    assert_int_equal(map.count, 3000);
    assert_int_equal((uintptr_t)map_get(&map, 0x10000), 99);
    for (uint64_t i = 2; i <= 3000; i++) {
        assert_int_equal((uintptr_t)map_get(&map, i * 0x10000), i);
        assert_int_equal(map.entries[i - 1].key, i * 0x10000);
    }
    assert_false(map_has(&map, 7));
    map_put(&arena, &map, 7, NULL);
    assert_true(map_has(&map, 7));
    assert_null(map_get(&map, 7));
}

static bool same_number(const void *stored, const void *candidate) {
    return *(const int *)stored == *(const int *)candidate;
}

static void intern_tables_find_by_content(void **state) {
    (void)state;
    InternTable table = {0};
    for (int i = 0; i < 1000; i++) {
        int *number = arena_copy(&arena, &i, sizeof i);
        assert_null(intern_find(&table, (uint64_t)i % 10, number, same_number)); /* many collisions */
        intern_add(&arena, &table, (uint64_t)i % 10, number);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(*(int *)intern_find(&table, (uint64_t)i % 10, &i, same_number), i);
}

/* ---- text and numbers */

static void text_is_built(void **state) {
    (void)state;
    Text text = {.arena = &arena};
    assert_int_equal(text_str(&text).len, 0);
    text_printf(&text, "%d, %s", 5, "five");
    text_char(&text, '\n');
    text_add(&text, STR("ab"));
    text_pad(&text, 5);
    text_add(&text, STR("|"));
    assert_string_equal(text.at, "5, five\nab   |");
    for (int i = 0; i < 1000; i++) text_printf(&text, "%05d", i);
    assert_int_equal(text.len, 14 + 5000);
    assert_string_equal(format_text(&arena, "%s", ""), "");
}

static void expect_float(double value, FloatWidth width, const char *expected) {
    Text text = {.arena = &arena};
    text_float(&text, value, width);
    assert_string_equal(text.at, expected);
}

static void numbers_are_shortest(void **state) {
    (void)state;
    expect_float(1, WIDTH_float, "1.0");
    expect_float(-0.0, WIDTH_float, "-0.0");
    expect_float((double)0.1f, WIDTH_float, "0.1");
    expect_float(0.1, WIDTH_double, "0.1");
    expect_float((double)0.1f, WIDTH_double, "0.10000000149011612");
    expect_float((double)half_to_float(half_from_double(0.1)), WIDTH_half, "0.1");
    expect_float(1e20, WIDTH_float, "1e+20");
    expect_float((double)INFINITY, WIDTH_double, "inf");
    expect_float(-(double)INFINITY, WIDTH_float, "-inf");
    expect_float((double)NAN, WIDTH_float, "nan");
}

static void numbers_read_back(void **state) {
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, 8);
        if (isnan(value) || isinf(value)) continue;
        Text text = {.arena = &arena};
        text_float(&text, value, WIDTH_double);
        const char *end;
        assert_true(number_parse(text.at, &end) == value && *end == 0);
    }
    assert_true(number_parse("0x1.8p3", NULL) == 12.0);
}

static void halfs_convert_exactly(void **state) {
    (void)state;
    for (int i = 0; i < 65536; i++) {
        float value = half_to_float((uint16_t)i);
        if (isnan(value)) assert_true((half_from_float(value) & 0x7fff) > 0x7c00);
        else assert_int_equal(half_from_float(value), i);
    }
    assert_int_equal(half_from_double(65519.99), 0x7bff);
    assert_int_equal(half_from_double(65520), 0x7c00);
    assert_int_equal(half_from_double(1 + 1.0 / 2048), 0x3c00); /* a tie, to even */
    assert_int_equal(half_from_double(1 + 3.0 / 2048), 0x3c02); /* likewise */
    assert_int_equal(half_from_double(ldexp(1, -25)), 0);       /* half of the least, a tie */
    assert_int_equal(half_from_double(ldexp(1.0001, -25)), 1);
    assert_int_equal(half_from_double(1 + 1.0 / 2048 + 1e-12), 0x3c01); /* would be lost in float */
}

/* ---- positions */

static void positions_are_found(void **state) {
    (void)state;
    Names names;
    Sources sources;
    names_init(&names, &arena, NULL);
    sources_init(&sources, &arena, NULL);
    SourceFile *first = source_add(&sources, name_from(&names, "a"), STR("one\ntwo\n"));
    SourceFile *second = source_add(&sources, name_from(&names, "b"), STR("\xc3\xa4 x\r\nlast"));
    assert_null(source_of(&sources, 0));
    assert_ptr_equal(source_of(&sources, first->base + 8), first); /* its end */
    assert_ptr_equal(source_of(&sources, second->base), second);
    Position at = source_position(&sources, first->base + 5);
    assert_int_equal(at.line, 2);
    assert_int_equal(at.column, 2);
    assert_true(str_eq(at.text, STR("two")));
    at = source_position(&sources, second->base + 3);
    assert_int_equal(at.column, 3); /* characters, not bytes */
    assert_true(str_eq(at.text, STR("\xc3\xa4 x")));
    source_mark_line(&sources, second->base + 6, 40, name_from(&names, "c"));
    at = source_position(&sources, second->base + 7);
    assert_string_equal(at.path->text, "c");
    assert_int_equal(at.line, 40);
    assert_null(source_position(&sources, 0).path);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(memory_is_zeroed_and_aligned),
        TEST(large_objects_fit),
        TEST(copies_are_equal),
        TEST(the_limit_springs_the_trap),
        TEST(scratch_goes_with_its_arena),
        TEST(an_arena_is_set_back),
        TEST(names_are_interned),
        TEST(slices_compare),
        TEST(vectors_grow),
        TEST(maps_keep_order_and_replace),
        TEST(intern_tables_find_by_content),
        TEST(text_is_built),
        TEST(numbers_are_shortest),
        TEST(numbers_read_back),
        TEST(halfs_convert_exactly),
        TEST(positions_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
