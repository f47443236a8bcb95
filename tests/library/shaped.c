/* Functions of vectors and matrices as a whole. Sums are compared in proportion to what was added up: `scale`
 * is the sum of the magnitudes. Where the result hangs on a comparison that rounding can turn, scale is
 * infinite and anything goes. */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = 4 };

static int columns_of(Shape shape) { return shape.columns ? shape.columns : 1; }
static int rows_of(Shape shape) { return shape.rows ? shape.rows : 1; }

/* ---- vectors */

static Real dot(const Real *a, const Real *b, int n, Real *scale) {
    Real sum = 0, size = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i], size += fabsl(a[i] * b[i]);
    if (scale) *scale = size;
    return sum;
}

static void ref_dot(const Case *c, const Real *in, Real *out, Real *scale) {
    int n = shape_lanes(c->ins[0]);
    *out = dot(in, in + n, n, scale);
    if (!kind_is_float(c->ins[0].kind)) *out = wrap_to(c->outs[0].kind, bits_of(*out));
}

static void ref_cross(const Case *c, const Real *in, Real *out, Real *scale) {
    const Real *a = in, *b = in + 3;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        out[i] = a[j] * b[k] - a[k] * b[j];
        scale[i] = fabsl(a[j] * b[k]) + fabsl(a[k] * b[j]);
        if (!kind_is_float(c->ins[0].kind)) out[i] = wrap_to(c->outs[0].kind, bits_of(out[i]));
    }
}

static void ref_length(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int n = shape_lanes(c->ins[0]);
    *out = sqrtl(dot(in, in, n, NULL));
}

static void ref_distance(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    Real difference[MAX_SIZE];
    int n = shape_lanes(c->ins[0]);
    for (int i = 0; i < n; i++) difference[i] = in[i] - in[n + i];
    *out = sqrtl(dot(difference, difference, n, NULL));
}

static void ref_normalize(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int n = shape_lanes(c->ins[0]);
    for (int i = 0; i < n; i++) out[i] = in[i] / sqrtl(dot(in, in, n, NULL));
}

static void ref_reflect(const Case *c, const Real *in, Real *out, Real *scale) {
    int n = shape_lanes(c->ins[0]);
    const Real *normal = in + n;
    Real size, d = dot(normal, in, n, &size);
    for (int i = 0; i < n; i++) {
        out[i] = in[i] - 2 * d * normal[i];
        scale[i] = fabsl(in[i]) + 2 * size * fabsl(normal[i]);
    }
}

static void ref_refract(const Case *c, const Real *in, Real *out, Real *scale) {
    int n = shape_lanes(c->ins[0]);
    const Real *normal = in + n;
    Real eta = in[2 * n], size, d = dot(normal, in, n, &size), k = 1 - eta * eta * (1 - d * d);
    Real possible = 1 + eta * eta * (1 + size * size), unit = unit_of(c->ins[0].kind, 1);
    for (int i = 0; i < n; i++) {
        out[i] = k < 0 ? 0 : eta * in[i] - (eta * d + sqrtl(k)) * normal[i];
        scale[i] = fabsl(eta * in[i]) + (fabsl(eta * size) + sqrtl(possible)) * fabsl(normal[i]);
        if (fabsl(k) < 64 * unit * possible) scale[i] = INFINITY;
    }
}

static void ref_faceforward(const Case *c, const Real *in, Real *out, Real *scale) {
    int n = shape_lanes(c->ins[0]);
    Real size, d = dot(in + n, in + 2 * n, n, &size);
    for (int i = 0; i < n; i++) {
        out[i] = d < 0 ? in[i] : -in[i];
        if (fabsl(d) < 8 * unit_of(c->ins[0].kind, size)) scale[i] = INFINITY;
    }
}

static void ref_dst(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)c, (void)scale;
    out[0] = 1, out[1] = in[1] * in[5], out[2] = in[2], out[3] = in[7];
}

static void ref_lit(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)c, (void)scale;
    out[0] = out[3] = 1;
    out[1] = fmaxl(in[0], 0);
    out[2] = in[0] < 0 || in[1] < 0 ? 0 : powl(in[1], in[2]);
}

/* ---- matrices; a vector on the left is one row, on the right one column */

static void multiply(const Case *c, const Real *in, int rows, int inner, int columns, Real *out,
                     Real *scale) {
    const Real *a = in, *b = in + rows * inner;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            Real sum = 0, size = 0;
            for (int k = 0; k < inner; k++) {
                Real product = a[i * inner + k] * b[k * columns + j];
                sum += product, size += fabsl(product);
            }
            bool real = kind_is_float(c->ins[0].kind);
            out[i * columns + j] = real ? sum : wrap_to(c->outs[0].kind, bits_of(sum));
            scale[i * columns + j] = size;
        }
}

static void ref_mul(const Case *c, const Real *in, Real *out, Real *scale) {
    Shape a = c->ins[0], b = c->ins[1];
    bool two_vectors = !a.rows && !b.rows;
    int inner = columns_of(a), columns = b.rows && !two_vectors ? columns_of(b) : 1;
    multiply(c, in, rows_of(a), inner, columns, out, scale);
}

/* A number with anything. */
static void ref_scale(const Case *c, const Real *in, Real *out, Real *scale) {
    bool number_first = !c->ins[0].columns;
    int n = shape_lanes(c->outs[0]);
    const Real *number = number_first ? in : in + n, *other = number_first ? in + 1 : in;
    for (int i = 0; i < n; i++) multiply(c, (Real[]){*number, other[i]}, 1, 1, 1, out + i, scale + i);
}

static void ref_transpose(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int rows = c->ins[0].rows, columns = c->ins[0].columns;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) out[j * rows + i] = in[i * columns + j];
}

/* By the first row, without those columns that are used already. */
static Real expand(const Real *m, int n, int row, unsigned used, Real *size) {
    if (row == n) {
        *size = 1;
        return 1;
    }
    Real sum = 0, sign = 1;
    *size = 0;
    for (int j = 0; j < n; j++) {
        if (used >> j & 1) continue;
        Real minor_size, term = m[row * n + j] * expand(m, n, row + 1, used | 1u << j, &minor_size);
        sum += sign * term;
        *size += fabsl(m[row * n + j]) * minor_size;
        sign = -sign;
    }
    return sum;
}

static void ref_determinant(const Case *c, const Real *in, Real *out, Real *scale) {
    *out = expand(in, c->ins[0].rows, 0, 0, scale);
}

static void swap_rows(Real *m, int width, int a, int b) {
    for (int j = 0; j < width; j++) {
        Real value = m[a * width + j];
        m[a * width + j] = m[b * width + j];
        m[b * width + j] = value;
    }
}

/* Elimination on the matrix with the identity beside it. */
static void invert(const Real *m, int n, Real *out) {
    Real work[MAX_SIZE * 2 * MAX_SIZE] = {0};
    int width = 2 * n;
    for (int i = 0; i < n; i++) {
        memcpy(work + i * width, m + i * n, (size_t)n * sizeof *m);
        work[i * width + n + i] = 1;
    }
    for (int i = 0; i < n; i++) {
        int best = i;
        for (int k = i + 1; k < n; k++)
            if (fabsl(work[k * width + i]) > fabsl(work[best * width + i])) best = k;
        swap_rows(work, width, i, best);
        for (int k = 0; k < n; k++) {
            Real factor = work[k * width + i] / work[i * width + i];
            for (int j = 0; j < width && k != i; j++) work[k * width + j] -= factor * work[i * width + j];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) out[i * n + j] = work[i * width + n + j] / work[i * width + i];
}

static Real greatest(const Real *x, int n) {
    Real result = 0;
    for (int i = 0; i < n; i++) result = fmaxl(result, fabsl(x[i]));
    return result;
}

static void ref_inverse(const Case *c, const Real *in, Real *out, Real *scale) {
    int n = c->ins[0].rows;
    invert(in, n, out);
    Real condition = greatest(in, n * n) * greatest(out, n * n) * n * n,
         size = greatest(out, n * n) * condition;
    Real sum, determinant = fabsl(expand(in, n, 0, 0, &sum));
    bool hopeless = 64 * unit_of(c->ins[0].kind, sum) > determinant;
    for (int i = 0; i < n * n; i++) scale[i] = hopeless ? INFINITY : size;
}

/* ---- conditions */

static void ref_any(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    *out = 0;
    for (int i = 0; i < shape_lanes(c->ins[0]); i++)
        if (in[i] != 0) *out = 1;
}

static void ref_all(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    *out = 1;
    for (int i = 0; i < shape_lanes(c->ins[0]); i++)
        if (in[i] == 0) *out = 0;
}

static void ref_select(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int conditions = shape_lanes(c->ins[0]), n = shape_lanes(c->outs[0]);
    for (int i = 0; i < n; i++)
        out[i] = in[in[conditions == n ? i : 0] != 0 ? conditions + i : conditions + n + i];
}

static void ref_and(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int n = shape_lanes(c->outs[0]);
    for (int i = 0; i < n; i++) out[i] = in[i] != 0 && in[n + i] != 0;
}

static void ref_or(const Case *c, const Real *in, Real *out, Real *scale) {
    (void)scale;
    int n = shape_lanes(c->outs[0]);
    for (int i = 0; i < n; i++) out[i] = in[i] != 0 || in[n + i] != 0;
}

/* ---- the cases */

typedef void (*Compute)(const Case *c, const Real *in, Real *out, Real *scale);

typedef struct Adder {
    AddCase add;
    void *user;
    Kind kind;
    Pool pool;
} Adder;

static Shape scalar(Kind kind) { return (Shape){kind, 0, 0}; }
static Shape vector(Kind kind, int n) { return (Shape){kind, 0, n}; }
static Shape matrix(Kind kind, int rows, int columns) { return (Shape){kind, rows, columns}; }

/* `name` called with inputs a, b, c; the tolerance is for floating types. */
static void add_call(const Adder *to, const char *name, Compute compute, Shape out, const Shape *ins,
                     int nins, Real tolerance) {
    static const char *const arguments[] = {"", "a", "a, b", "a, b, c"};
    Case c = {.name = name, .nins = nins, .nouts = 1, .pool = to->pool, .compute = compute, .any_zero = true};
    snprintf(c.code, sizeof c.code, "y = %s(%s);", name, arguments[nins]);
    memcpy(c.ins, ins, (size_t)nins * sizeof *ins);
    c.outs[0] = out;
    if (kind_is_float(out.kind)) c.tolerance = tolerance;
    to->add(to->user, &c);
}

#define CALL(name, tolerance, out, ...)                                                                      \
    add_call(to, #name, ref_##name, out, (const Shape[]){__VA_ARGS__},                                       \
             (int)(sizeof((const Shape[]){__VA_ARGS__}) / sizeof(Shape)), tolerance)

static void add_products(const Adder *to) {
    Kind kind = to->kind;
    for (int r = 2; r <= MAX_SIZE; r++)
        for (int c = 2; c <= MAX_SIZE; c++) {
            CALL(mul, 4, vector(kind, r), matrix(kind, r, c), vector(kind, c));
            CALL(mul, 4, vector(kind, c), vector(kind, r), matrix(kind, r, c));
            CALL(transpose, 0, matrix(kind, c, r), matrix(kind, r, c));
            for (int k = 2; k <= MAX_SIZE; k++)
                if (kind == KIND_float || kind == KIND_int || (r == 2 && k == 3))
                    CALL(mul, 4, matrix(kind, r, c), matrix(kind, r, k), matrix(kind, k, c));
        }
    for (int n = 2; n <= MAX_SIZE; n++) {
        CALL(dot, 4, scalar(kind), vector(kind, n), vector(kind, n));
        CALL(mul, 4, scalar(kind), vector(kind, n), vector(kind, n));
    }
    CALL(dot, 0.5005L, scalar(kind), scalar(kind), scalar(kind));
    CALL(mul, 0.5005L, scalar(kind), scalar(kind), scalar(kind));
    CALL(cross, 2, vector(kind, 3), vector(kind, 3), vector(kind, 3));
    Shape one = scalar(kind), v = vector(kind, 3), m = matrix(kind, 3, 4);
    add_call(to, "mul", ref_scale, v, (const Shape[]){one, v}, 2, 0.5005L);
    add_call(to, "mul", ref_scale, v, (const Shape[]){v, one}, 2, 0.5005L);
    add_call(to, "mul", ref_scale, m, (const Shape[]){one, m}, 2, 0.5005L);
    add_call(to, "mul", ref_scale, m, (const Shape[]){m, one}, 2, 0.5005L);
}

static void add_geometry(const Adder *to) {
    Kind kind = to->kind;
    for (int n = 2; n <= MAX_SIZE; n++) {
        Shape v = vector(kind, n);
        CALL(length, 2, scalar(kind), v);
        CALL(distance, 3, scalar(kind), v, v);
        CALL(normalize, 3, v, v);
        CALL(reflect, 5, v, v, v);
        CALL(refract, 16, v, v, v, scalar(kind));
        CALL(faceforward, 0, v, v, v, v);
    }
    CALL(length, 2, scalar(kind), scalar(kind));
    CALL(distance, 3, scalar(kind), scalar(kind), scalar(kind));
    CALL(normalize, 0, scalar(kind), scalar(kind));
    CALL(reflect, 5, scalar(kind), scalar(kind), scalar(kind));
    CALL(dst, 0.5005L, vector(kind, 4), vector(kind, 4), vector(kind, 4));
    CALL(lit, kind == KIND_half ? 0.51L : 2.5L, vector(kind, 4), scalar(kind), scalar(kind), scalar(kind));
    for (int n = 1; n <= MAX_SIZE; n++) {
        CALL(determinant, 8, scalar(kind), matrix(kind, n, n));
        CALL(inverse, 16, matrix(kind, n, n), matrix(kind, n, n));
    }
}

static void add_conditions(const Adder *to) {
    Kind kind = to->kind;
    const Shape shapes[] = {scalar(kind),    vector(kind, 2),    vector(kind, 3),
                            vector(kind, 4), matrix(kind, 2, 3), matrix(kind, 4, 4)};
    for (int i = 0; i < 6; i++) {
        Shape s = shapes[i], condition = s;
        condition.kind = KIND_bool;
        CALL(any, 0, scalar(KIND_bool), s);
        CALL(all, 0, scalar(KIND_bool), s);
        CALL(select, 0, s, condition, s, s);
        CALL(select, 0, s, scalar(KIND_bool), s, s);
        if (kind != KIND_bool) continue;
        if (s.rows) CALL(transpose, 0, matrix(kind, s.columns, s.rows), s);
        CALL(and, 0, s, s, s);
        CALL(or, 0, s, s, s);
    }
}

void add_shaped_cases(AddCase add, void *user) {
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        Adder tame = {add, user, (Kind)kind, POOL_tame}, wild = {add, user, (Kind)kind, POOL_wild};
        if (kind != KIND_bool) add_products(&tame);
        if (kind_is_float((Kind)kind)) add_geometry(&tame);
        add_conditions(kind_is_float((Kind)kind) ? &wild : &tame);
    }
}
