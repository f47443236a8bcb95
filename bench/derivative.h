/* The host of a benchmark of derivatives: a function in Slang, its gradient and its forward derivative by
 * Slope, against the function and a gradient written by hand in C, on the same data and one thread.
 *
 * The program in Slang has kernels `primal`, `gradient` and `forward`; they write to buffers `values`,
 * `gradients` and `tangents`. There are `items` of the problem: one value, one tangent and `parameters`
 * components of a gradient for each. `directions` has the shape of `gradients`. Results are compared before
 * anything is measured: values and gradients with those of C, tangents with C's gradient times the direction.
 *
 * Arguments are shared libraries, each the whole program as C that `slope build -target c` has made: their
 * gradient is one more work. Compiled by clang with Enzyme as a plugin and -DENZYME, the gradient that Enzyme
 * makes of the function in C is one, too.
 *
 * Measured in turns, several rounds, the best of each counts; a measurement is so many calls that it takes 20
 * ms. The program prints one line: milliseconds per call of primal, gradient and forward by Slope, of primal
 * and gradient by C, of gradient by Slope without lanes, by Enzyme if it is there and by each library, then
 * the greatest difference. With the first argument `count` it makes each call once between marks for
 * callgrind instead of measuring; with `slope` it measures the first three alone, and prints milliseconds to
 * compile them. */
#ifndef DERIVATIVE_H
#define DERIVATIVE_H

#include "bench.h"
#include <dlfcn.h>
#include <string.h>
#include <tgmath.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION (void)0
#define CALLGRIND_STOP_INSTRUMENTATION  (void)0
#define CALLGRIND_ZERO_STATS            (void)0
#define CALLGRIND_DUMP_STATS_AT(name)   (void)name
#endif

/* The precision, which the program in Slang is told as well; what else it is told, by a name that is defined,
 * is where its parameters lie: in a DiffBuffer or a DiffTensor. */
#ifndef REAL
#define REAL float
#endif
#ifndef STORAGE
#define STORAGE STRUCT
#endif
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
typedef REAL real;
#define R(constant) ((real)(constant))

static inline void sine_and_cosine(real x, real *sine, real *cosine) {
    _Generic(x, float : sincosf, default : sincos)(x, sine, cosine);
}

#define BY_HAND static inline /* before functions that bench/gpu takes as well, for the device */

/* What Enzyme differentiates: a call that names the function and its arguments, one that is differentiated
 * (enzyme_dup) with the memory that its derivatives are added to. BY_ENZYME makes a gradient of `primal`
 * where no item's value depends on another's parameters, and Data are parameters and inputs. */
#ifdef ENZYME
extern int enzyme_dup, enzyme_const;
extern void __enzyme_autodiff(void *function, ...);
static void gradient_by_enzyme(const void *data, real *restrict gradients);

#define BY_ENZYME(COUNT, PARAMETERS, parameters, inputs)                                                     \
    static void primal_of(const void *first, const void *second, real *restrict values) {                    \
        Data data = {first, second};                                                                         \
        primal(&data, values);                                                                               \
    }                                                                                                        \
    static void gradient_by_enzyme(const void *data, real *restrict gradients) {                             \
        static real values[COUNT], seeds[COUNT];                                                             \
        const Data *d = data;                                                                                \
        for (int i = 0; i < (COUNT); i++) seeds[i] = 1;                                                      \
        memset(gradients, 0, sizeof(real) * (COUNT) * (PARAMETERS));                                         \
        __enzyme_autodiff((void *)primal_of, enzyme_dup, (const void *)d->parameters, (void *)gradients,     \
                          enzyme_const, (const void *)d->inputs, enzyme_dup, values, seeds);                 \
    }
#else
#define BY_ENZYME(COUNT, PARAMETERS, parameters, inputs)
#endif

typedef struct Problem {
    int items, parameters;
    void (*primal)(const void *data, real *values); /* in C */
    void (*gradient)(const void *data, real *gradients);
    const void *data; /* what they work on */
    double tolerance; /* of the comparison, in float */
} Problem;

/* What the program's variables are set to. */
typedef struct Bound {
    const char *name;
    const void *value; /* what is copied there */
    size_t size;
} Bound;

typedef struct BoundBuffer {
    void *data;
    uint64_t count;
} BoundBuffer;

typedef struct Derivative {
    Bench bench, single; /* with as many lanes as are best; one item at a time */
    Problem problem;
    Bound bound[16];
    int nbound;
    real *values, *gradients, *tangents, *directions; /* of Slope */
    real *expected_values, *expected_gradients, *expected_tangents;
} Derivative;

typedef struct Work {
    const char *name;
    SlopeKernel *kernel;                                  /* NULL: C */
    void (*function)(uint32_t x, uint32_t y, uint32_t z); /* of a library; else NULL */
    void (*enzyme)(const void *data, real *gradients);    /* else NULL */
    int repeats;
    double best;
} Work;

enum { WORKS = 6, OTHERS = 5, ROUNDS = 9 };
static const double measurement = 20; /* ms */

static inline real *derivative_numbers(int count, real low, real high) {
    static uint32_t state = 12345;
    real *numbers = malloc(sizeof(real) * (size_t)count);
    if (!numbers) exit(1);
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = low + (high - low) * (real)(state >> 8) / (real)(1 << 24);
    }
    return numbers;
}

static inline void derivative_note(Derivative *d, const char *name, const void *value, size_t size) {
    void *copy = malloc(size);
    if (!copy || d->nbound == 16) exit(1);
    memcpy(copy, value, size);
    d->bound[d->nbound++] = (Bound){name, copy, size};
}

static inline void derivative_bind_in(const Bench *bench, const char *name, void *data, size_t size) {
    SlopeBuffer *buffer;
    require(bench->session, slope_buffer_wrap(bench->session, data, size, &buffer));
    require(bench->session, slope_bind_buffer(bench->program, name, buffer));
}

static inline void derivative_bind(Derivative *d, const char *name, void *data, size_t size) {
    SlopeUniform uniform;
    require(d->single.session, slope_find_uniform(d->single.program, name, &uniform));
    BoundBuffer bound = {data, size / slope_type_element_stride(uniform.type)};
    derivative_note(d, name, &bound, sizeof bound);
    derivative_bind_in(&d->bench, name, data, size);
    derivative_bind_in(&d->single, name, data, size);
}

static inline void derivative_set_object(Derivative *d, const char *name, const void *value, size_t size) {
    derivative_note(d, name, value, size);
    require(d->bench.session, slope_set_uniform(d->bench.program, name, value, size));
    require(d->single.session, slope_set_uniform(d->single.program, name, value, size));
}

static inline void derivative_set(Derivative *d, const char *name, int value) {
    derivative_set_object(d, name, &value, sizeof value);
}

static inline Bench derivative_load_with(int lanes) {
    static const SlopeDefine defines[] = {{"REAL", TEXT(REAL)}, {TEXT(STORAGE), "1"}};
    Bench bench = {0};
    SlopeConfig config;
    slope_config_init(&config);
    config.defines = defines;
    config.define_count = 2;
    config.threads = 1;
    config.lanes = lanes;
    if (slope_session_new(&config, &bench.session) != SLOPE_STATUS_ok) exit(1);
    require(bench.session, slope_load_file(bench.session, PROGRAM, &bench.program));
    return bench;
}

static inline Derivative derivative_open(Problem problem) {
    Derivative d = {.problem = problem,
                    .bench = derivative_load_with(bench_lanes(SLOPE_LANES_AUTO)),
                    .single = derivative_load_with(1)};
    size_t items = (size_t)problem.items, all = items * (size_t)problem.parameters;
    real **arrays[] = {&d.values,    &d.tangents,          &d.expected_values, &d.expected_tangents,
                       &d.gradients, &d.expected_gradients};
    for (int i = 0; i < 6; i++)
        if (!(*arrays[i] = calloc(i < 4 ? items : all, sizeof(real)))) exit(1);
    d.directions = derivative_numbers((int)all, -1, 1);
    derivative_bind(&d, "values", d.values, sizeof(real) * items);
    derivative_bind(&d, "tangents", d.tangents, sizeof(real) * items);
    derivative_bind(&d, "gradients", d.gradients, sizeof(real) * all);
    derivative_bind(&d, "directions", d.directions, sizeof(real) * all);
    return d;
}

static inline void derivative_call(const Derivative *d, const Work *work) {
    if (work->function) work->function(1, 1, 1);
    else if (work->enzyme) work->enzyme(d->problem.data, d->gradients);
    else if (work->kernel) require(d->bench.session, slope_dispatch(work->kernel, 1, 1, 1));
    else if (work->name[0] == 'p') d->problem.primal(d->problem.data, d->expected_values);
    else d->problem.gradient(d->problem.data, d->expected_gradients);
}

/* ---- comparison */

/* Relative to the greatest component of the item: sums that cancel are as wrong as their terms. */
static inline double derivative_compare(const real *found, const real *expected, int items, int each) {
    double worst = 0;
    for (int i = 0; i < items; i++) {
        double scale = 1e-3;
        for (int k = 0; k < each; k++) scale = fmax(scale, fabs((double)expected[i * each + k]));
        for (int k = 0; k < each; k++) {
            double error = fabs((double)found[i * each + k] - (double)expected[i * each + k]) / scale;
            worst = error <= worst ? worst : error; /* keeps a NaN */
        }
    }
    return worst;
}

static inline double derivative_compare_tangents(const Derivative *d) {
    int n = d->problem.parameters;
    double worst = 0;
    for (int i = 0; i < d->problem.items; i++) {
        double sum = 0, scale = 1e-3;
        for (int k = 0; k < n; k++) {
            double term = (double)d->expected_gradients[i * n + k] * (double)d->directions[i * n + k];
            sum += term;
            scale = fmax(scale, fabs(term));
        }
        double error = fabs(sum - (double)d->tangents[i]) / scale;
        worst = error <= worst ? worst : error;
    }
    return worst;
}

static inline double derivative_check(const Derivative *d) {
    int n = d->problem.parameters;
    double value = derivative_compare(d->values, d->expected_values, d->problem.items, 1);
    double gradient = derivative_compare(d->gradients, d->expected_gradients, d->problem.items, n);
    double tangent = derivative_compare_tangents(d), worst = fmax(fmax(value, gradient), tangent);
    double tolerance = sizeof(real) < sizeof(double) ? d->problem.tolerance : 1e-9;
    if (!(worst <= tolerance) || isnan(value) || isnan(gradient) || isnan(tangent)) {
        fprintf(stderr, "the results differ: values by %g, gradients by %g, tangents by %g\n", value,
                gradient, tangent);
        exit(1);
    }
    return worst;
}

/* ---- measuring */

static inline double derivative_time(const Derivative *d, const Work *work) {
    double start = now_milliseconds();
    for (int i = 0; i < work->repeats; i++) derivative_call(d, work);
    return (now_milliseconds() - start) / work->repeats;
}

static inline void derivative_measure(const Derivative *d, Work *works, int count) {
    for (int i = 0; i < count; i++) {
        works[i].best = derivative_time(d, &works[i]);
        works[i].repeats = works[i].best > measurement ? 1 : (int)(measurement / works[i].best) + 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++) works[i].best = fmin(works[i].best, derivative_time(d, &works[i]));
}

static inline void derivative_count(const Derivative *d, const Work *works, int count) {
    for (int i = 0; i < count; i++) {
        CALLGRIND_START_INSTRUMENTATION;
        CALLGRIND_ZERO_STATS;
        derivative_call(d, &works[i]);
        CALLGRIND_DUMP_STATS_AT(works[i].name);
        CALLGRIND_STOP_INSTRUMENTATION;
    }
}

/* ---- libraries */

static inline Work derivative_load(const Derivative *d, const char *path) {
    Work work = {.name = path, .repeats = 1};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *function = library ? dlsym(library, "gradient") : NULL;
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(&work.function, &function, sizeof function);
    for (int i = 0; i < d->nbound; i++) {
        const Bound *bound = &d->bound[i];
        void *variable = dlsym(library, bound->name);
        if (variable) memcpy(variable, bound->value, bound->size);
    }
    return work;
}

/* In how many milliseconds. */
static inline double derivative_compile(const Derivative *d, Work *works) {
    double start = now_milliseconds();
    for (int i = 0; i < 3; i++) {
        require(d->bench.session, slope_find_kernel(d->bench.program, works[i].name, &works[i].kernel));
        require(d->bench.session, slope_kernel_prepare(works[i].kernel));
    }
    return now_milliseconds() - start;
}

/* Is that the first argument? */
static inline bool derivative_is_told(int argc, char **argv, const char *word) {
    return argc > 1 && strcmp(argv[1], word) == 0;
}

static inline int derivative_run(Derivative *d, int argc, char **argv) {
    Work works[WORKS + OTHERS] = {
        {.name = "primal", .repeats = 1},        {.name = "gradient", .repeats = 1},
        {.name = "forward", .repeats = 1},       {.name = "primal in C", .repeats = 1},
        {.name = "gradient in C", .repeats = 1}, {.name = "gradient, one by one", .repeats = 1}};
    double compile = derivative_compile(d, works);
    if (derivative_is_told(argc, argv, "slope")) {
        derivative_measure(d, works, 3);
        printf("%.6f %.6f %.6f %.3f\n", works[0].best, works[1].best, works[2].best, compile);
        return 0;
    }
    bool counts = derivative_is_told(argc, argv, "count");
    int count = WORKS;
#ifdef ENZYME
    works[count++] = (Work){.name = "gradient by Enzyme", .enzyme = gradient_by_enzyme, .repeats = 1};
#endif
    for (int i = counts ? 2 : 1; i < argc && count < WORKS + OTHERS; i++)
        works[count++] = derivative_load(d, argv[i]);
    require(d->single.session, slope_find_kernel(d->single.program, "gradient", &works[WORKS - 1].kernel));
    for (int i = 0; i < WORKS - 1; i++) derivative_call(d, &works[i]);
    double difference = derivative_check(d);
    for (int i = WORKS - 1; i < count; i++) {
        memset(d->gradients, 0, sizeof(real) * (size_t)d->problem.items * (size_t)d->problem.parameters);
        derivative_call(d, &works[i]);
        difference = fmax(difference, derivative_check(d));
    }
    if (counts) derivative_count(d, works, count);
    else derivative_measure(d, works, count);
    for (int i = 0; i < count; i++) printf("%.6f ", works[i].best);
    printf("%g\n", difference);
    slope_session_free(d->bench.session);
    slope_session_free(d->single.session);
    return 0;
}

#endif
