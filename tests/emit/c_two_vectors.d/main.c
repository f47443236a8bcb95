/* Derivatives against differences of the same in double; what is added to is not zero before, and what is
 * behind it stays. */
#include <stdio.h>

enum { MANY = 28, BEHIND = 4 };

static double weights[MANY], derived[MANY + BEHIND];
static float weights_float[MANY], derived_float[MANY + BEHIND];

static double cells(double x) {
    double sum = 0;
    for (int i = 0; i < 14; i++) {
        double state = x * weights[i];
        for (int t = 0; t < 3; t++) state = tanh(state * weights[i] + weights[i + 14]) / (1 + exp(-state));
        sum += state;
    }
    return sum;
}

static double difference(double *at) {
    const double before = *at, step = 1e-5;
    *at = before + step;
    const double above = cells(0.5);
    *at = before - step;
    const double below = cells(0.5);
    *at = before;
    return (above - below) / (2 * step);
}

static int is_off(double found, double expected, double by) { return !(fabs(found - expected) <= by); }

int main(void) {
    int wrong = 0;
    for (int i = 0; i < MANY; i++) weights[i] = weights_float[i] = 0.125f * (float)(i % 11) - 0.5f;
    for (int i = 0; i < MANY + BEHIND; i++) derived[i] = derived_float[i] = 1;
    const Buffer_double w = {weights, MANY}, dw = {derived, MANY};
    const Buffer_float v = {weights_float, MANY}, dv = {derived_float, MANY};
    const double by_x = (cells(0.5 + 1e-5) - cells(0.5 - 1e-5)) / 2e-5;
    wrong += is_off(doubles_back(w, dw, 0.5), by_x, 1e-8);
    wrong += is_off(floats_back(v, dv, 0.5f), by_x, 1e-4);
    wrong += is_off(floats(v, 0.5f), cells(0.5), 1e-4);
    for (int i = 0; i < MANY; i++) {
        const double expected = 1 + difference(&weights[i]);
        wrong += is_off(derived[i], expected, 1e-8) + is_off(derived_float[i], expected, 1e-4);
    }
    for (int i = MANY; i < MANY + BEHIND; i++) wrong += derived[i] != 1 || derived_float[i] != 1;
    printf("%d wrong\n", wrong);
    return 0;
}
