/* gradcheck_difference: derivatives by differences, and where it must refuse to give one. */
#include "gradcheck/gradcheck.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef double (*Function)(double x);

typedef struct Curve {
    Function f;
    double x; /* where it is differentiated */
    int calls;
} Curve;

static bool evaluate(void *user, double t, double *y) {
    Curve *curve = user;
    curve->calls++;
    y[0] = curve->f(curve->x + t);
    return true;
}

static DifferenceStatus differentiate(Function f, double x, double *value) {
    Arena arena;
    Curve curve = {.f = f, .x = x};
    double y0 = f(x), slack = 1e-9 * fabs(y0), error, step;
    arena_init(&arena, allocator_system, NULL);
    Difference difference = {.n = 1,
                             .evaluate = evaluate,
                             .user = &curve,
                             .y0 = &y0,
                             .step = fmax(fabs(x), 0.05) / 8,
                             .tolerance = 1e-6,
                             .slack = &slack,
                             .value = value,
                             .error = &error,
                             .steps = &step};
    DifferenceStatus status = gradcheck_difference(&arena, &difference);
    arena_free(&arena);
    assert_true(curve.calls <= 60);
    return status;
}

static void assert_derivative(Function f, double x, double wanted) {
    double value;
    assert_int_equal(differentiate(f, x, &value), DIFFERENCE_fine);
    assert_true(fabs(value - wanted) <= (wanted == 0 ? 1e-12 : 1e-8 * fabs(wanted)));
}

static void assert_refused(Function f, double x, DifferenceStatus status) {
    double value;
    assert_int_equal(differentiate(f, x, &value), status);
}

/* ---- functions */

static double cube(double x) { return x * x * x; }
static double wave(double x) { return sin(500 * x); }
static double tiny(double x) { return 1e-20 * x; }
static double offset(double x) { return 1e6 + x; }
static double flat(double x) { return 0 * x + 7; }
static double root(double x) { return sqrt(x); }
static double stairs(double x) { return floor(3 * x) * x; }
static double corner(double x) { return 2 + fabs(x - 1); }
static double near_corner(double x) { return fabs(x - 1 - 1e-4); }
static double ramp(double x) { return x < 1 ? 1 : x; }
static double jump(double x) { return x < 1 ? 0 : 1; }
static double hole(double x) { return x == 1 ? 1 : NAN; }
static double right_only(double x) { return x < 1 ? NAN : x; }
static double cusp(double x) { return cbrt(x - 1); }
static double scatter(double x) { return sin(1e12 * x); }

static void smooth_functions(void **state) {
    (void)state;
    assert_derivative(cube, 2, 12);
    assert_derivative(cube, 1e-3, 3e-6);
    assert_derivative(cube, 1e5, 3e10);
    assert_derivative(exp, -3, exp(-3));
    assert_derivative(wave, 1.3, 500 * cos(500 * 1.3));
    assert_derivative(tiny, 0.7, 1e-20);
    assert_derivative(flat, 0.7, 0);
}

/* Steps stay inside the domain, or shrink until they do. */
static void edges_of_the_domain(void **state) {
    (void)state;
    assert_derivative(log, 0.01, 100);
    assert_derivative(root, 0.3, 0.5 / sqrt(0.3));
    assert_derivative(acos, 0.999, -1 / sqrt(1 - 0.999 * 0.999));
    assert_derivative(right_only, 1.001, 1);
}

static void what_is_large_beside_its_slope(void **state) {
    double value;
    (void)state;
    assert_int_equal(differentiate(offset, 0.5, &value), DIFFERENCE_fine);
    assert_true(fabs(value - 1) < 1e-6);
}

/* A corner or a jump close by is stepped over. */
static void corners_nearby(void **state) {
    (void)state;
    assert_derivative(corner, 0.9, -1);
    assert_derivative(near_corner, 1, -1);
    assert_derivative(ramp, 0.999, 0);
    assert_derivative(stairs, -4.909089, -15);
    assert_derivative(jump, 1.01, 0);
}

static void refused(void **state) {
    (void)state;
    assert_refused(corner, 1, DIFFERENCE_corner);
    assert_refused(ramp, 1, DIFFERENCE_corner);
    assert_refused(jump, 1, DIFFERENCE_unsettled);
    assert_refused(hole, 1, DIFFERENCE_undefined);
    assert_refused(right_only, 1, DIFFERENCE_undefined);
    assert_refused(cusp, 1, DIFFERENCE_unsettled);
    assert_refused(scatter, 0.7, DIFFERENCE_unsettled);
}

/* ---- scalars in memory */

static void scalars(void **state) {
    static const struct {
        TypeKind kind;
        double given, kept;
    } rows[] = {{TYPE_double, 0.1, 0.1}, {TYPE_float, 0.1, (double)0.1f}, {TYPE_half, 0.1, 0.0999755859375}};
    char memory[8];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gradcheck_put(rows[i].kind, memory, rows[i].given);
        assert_true(gradcheck_get(rows[i].kind, memory) == rows[i].kept);
        assert_true(gradcheck_round(rows[i].kind, rows[i].given) == rows[i].kept);
    }
    int16_t small;
    gradcheck_put(TYPE_int16, memory, -3);
    memcpy(&small, memory, sizeof small);
    assert_int_equal(small, -3);
}

static void random_numbers(void **state) {
    Random a = {1}, b = {1}, c = {2};
    (void)state;
    assert_true(gradcheck_random(&a) == gradcheck_random(&b));
    assert_true(gradcheck_random(&a) != gradcheck_random(&c));
    for (int i = 0; i < 1000; i++) {
        double x = gradcheck_uniform(&a, -2, 3);
        assert_true(x >= -2 && x < 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smooth_functions),
        cmocka_unit_test(edges_of_the_domain),
        cmocka_unit_test(what_is_large_beside_its_slope),
        cmocka_unit_test(corners_nearby),
        cmocka_unit_test(refused),
        cmocka_unit_test(scalars),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
