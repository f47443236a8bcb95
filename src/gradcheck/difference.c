/* Derivatives by differences.
 *
 * Central differences over steps that halve each time, D(h) = (f(h) - f(-h)) / 2h, have an error that is a
 * series in h squared; Richardson's extrapolation removes its terms one after the other:
 *   T(k, 0) = D(h_k),   T(k, m) = T(k, m-1) + (T(k, m-1) - T(k-1, m-1)) / (4^m - 1)
 * How far an entry is from those it is made of bounds its error (Ridders), and rounding in f adds eps |f| /
 * h. The entry with the least error is taken. So the step is chosen by itself: large steps are wrong by
 * curvature, small ones by rounding, and both show. A step that leaves the domain is left out, with all
 * larger ones. Once the entries agree, a step that is much smaller has to agree too: stairs look smooth from
 * afar. If it does not, all starts anew from there. (Not so where values are rounded on the way, which makes
 * steps below the least one useless.)
 *
 * A corner hides from central differences if they are symmetric (abs at 0). It shows in what the slopes to
 * the left and to the right differ by: for a smooth function that halves with the step, at a corner it
 * stays. */
#include "gradcheck/gradcheck.h"

#include <float.h>
#include <math.h>

enum { LEVELS = 18, ORDERS = 5, LEAST_LEVELS = 4 };
#define CONFIRM 0x1p-5

typedef struct Table {
    double entries[ORDERS]; /* of the last step */
    double value, error;    /* the best so far, and the smallest step in it */
    double step;
    double bend, last_bend; /* by how much the slopes to both sides differ */
    double rounding;        /* share of rounding in that */
} Table;

static void consider(Table *table, double value, double error, double step) {
    if (error >= table->error) return;
    table->value = value;
    table->error = error;
    table->step = step;
}

/* One more row. `levels`: how many there are before it. */
static void extend(Table *table, int levels, double h, double slope, double noise) {
    double old[ORDERS], factor = 1;
    memcpy(old, table->entries, sizeof old);
    table->entries[0] = slope;
    int orders = levels < ORDERS - 1 ? levels : ORDERS - 1;
    for (int m = 1; m <= orders; m++) {
        factor *= 4;
        double *entry = table->entries;
        entry[m] = entry[m - 1] + (entry[m - 1] - old[m - 1]) / (factor - 1);
        double change = fmax(fabs(entry[m] - entry[m - 1]), fabs(entry[m] - old[m - 1]));
        consider(table, entry[m], change + noise, h);
    }
}

static bool are_finite(const double *y, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(y[i])) return false;
    return true;
}

static void start(Table *tables, int n) {
    for (int i = 0; i < n; i++) tables[i] = (Table){.error = INFINITY};
}

static void add_level(Difference *d, Table *tables, int levels, double h, const double *right,
                      const double *left) {
    for (int i = 0; i < d->n; i++) {
        Table *table = &tables[i];
        double size = fmax(fabs(d->y0[i]), fmax(fabs(right[i]), fabs(left[i])));
        extend(table, levels, h, (right[i] - left[i]) / (2 * h), 2 * DBL_EPSILON * size / h);
        table->last_bend = table->bend;
        table->bend = fabs((right[i] - d->y0[i]) - (d->y0[i] - left[i])) / h;
        table->rounding = 16 * DBL_EPSILON * size / h;
    }
}

static double allowed(const Difference *d, const Table *table, int i) {
    return d->tolerance * fabs(table->value) + d->slack[i];
}

static bool are_settled(const Difference *d, const Table *tables, double share) {
    for (int i = 0; i < d->n; i++)
        if (!(tables[i].error <= share * allowed(d, &tables[i], i))) return false;
    return true;
}

static bool has_corner(const Difference *d, const Table *tables) {
    for (int i = 0; i < d->n; i++) {
        const Table *table = &tables[i];
        bool matters = table->bend > table->rounding && table->bend > 0.1 * allowed(d, table, i);
        if (matters && table->bend > 0.75 * table->last_bend) return true;
    }
    return false;
}

static bool evaluate_both(Difference *d, double h, double *right, double *left) {
    return d->evaluate(d->user, h, right) && d->evaluate(d->user, -h, left) && are_finite(right, d->n) &&
           are_finite(left, d->n);
}

/* Does a much smaller step say the same, as far as it can? What is left of its error is a fraction of
 * curvature. */
static bool is_confirmed(Difference *d, const Table *tables, double h, double *right, double *left) {
    if (!evaluate_both(d, h, right, left)) return false;
    for (int i = 0; i < d->n; i++) {
        const Table *table = &tables[i];
        double size = fmax(fabs(d->y0[i]), fmax(fabs(right[i]), fabs(left[i])));
        double curved = fabs(table->entries[1] - table->entries[0]) / 16, noise = 16 * DBL_EPSILON * size / h;
        double change = fabs((right[i] - left[i]) / (2 * h) - table->value);
        if (!(change <= 0.2 * allowed(d, table, i) + curved + noise)) return false;
    }
    return true;
}

DifferenceStatus gradcheck_difference(Arena *scratch, Difference *d) {
    Table *tables = arena_array(scratch, Table, d->n + 1);
    double *right = arena_array(scratch, double, d->n + 1), *left = arena_array(scratch, double, d->n + 1);
    int levels = 0;
    double h = d->step;
    start(tables, d->n);
    for (int k = 0; k < LEVELS && h >= d->least; k++, h /= 2) {
        bool defined = evaluate_both(d, h, right, left);
        if (defined) add_level(d, tables, levels++, h, right, left);
        bool settled = levels >= LEAST_LEVELS && are_settled(d, tables, 0.02);
        if (settled && (d->least > 0 || is_confirmed(d, tables, h * CONFIRM, right, left))) break;
        if (defined && !settled) continue;
        start(tables, d->n);
        levels = 0;
        if (settled) h *= 2 * CONFIRM;
    }
    for (int i = 0; i < d->n; i++)
        d->value[i] = tables[i].value, d->error[i] = tables[i].error, d->steps[i] = tables[i].step;
    if (levels < LEAST_LEVELS) return DIFFERENCE_undefined;
    if (!are_settled(d, tables, 0.2)) return DIFFERENCE_unsettled;
    return has_corner(d, tables) ? DIFFERENCE_corner : DIFFERENCE_fine;
}
