/* Derivatives against those by hand: of |y|^2, where y is x and the products of the triangle with it. */
#include <stdio.h>

enum { DIM = 6, LOWER = 15, MANY = 5 };

static Point given[MANY];
static Factors factors_of, derived;
static double in_a_row[2 * LOWER], derived_in_a_row[2 * LOWER], by_hand[2][LOWER];

static void fill(void) {
    for (int n = 0; n < MANY; n++)
        for (int i = 0; i < DIM; i++) given[n].x[i] = (n + 2 * i) % 5 - 2;
    for (int i = 0; i < 2 * LOWER; i++) in_a_row[i] = factors_of.below[i / LOWER][i % LOWER] = i % 7 - 3;
}

static void add_by_hand(int k, const double *x) {
    double y[DIM];
    int next = 0;
    for (int i = 0; i < DIM; i++) y[i] = x[i];
    for (int i = 0; i < DIM; i++)
        for (int j = i + 1; j < DIM; j++) y[j] += factors_of.below[k][next++] * x[i];
    next = 0;
    for (int i = 0; i < DIM; i++)
        for (int j = i + 1; j < DIM; j++) by_hand[k][next++] += 2 * y[j] * x[i];
}

static int wrong(const double *found) {
    int count_wrong = 0;
    for (int i = 0; i < 2 * LOWER; i++) count_wrong += found[i] != by_hand[i / LOWER][i % LOWER];
    return count_wrong;
}

int main(void) {
    fill();
    points.data = given, objects.data = &factors_of, object_derivatives.data = &derived;
    factors.data = in_a_row, derivatives.data = derived_in_a_row;
    points.count = MANY, objects.count = object_derivatives.count = 1;
    factors.count = derivatives.count = 2 * LOWER;
    count = MANY;
    add_by_hand(1, given[0].x);
    one(1, 1, 1);
    printf("%d wrong, ", wrong(derived.below[0]));
    memset(by_hand, 0, sizeof by_hand);
    for (int n = 0; n < MANY; n++)
        for (int k = 0; k < 2; k++) add_by_hand(k, given[n].x);
    in_object(1, 1, 1);
    in_buffer(1, 1, 1);
    printf("%d wrong, %d wrong\n", wrong(derived.below[0]), wrong(derived_in_a_row));
    return 0;
}
