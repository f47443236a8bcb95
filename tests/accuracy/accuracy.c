/* How far library functions are from what long double gives, in units in the last place, over the whole range
 * of their arguments.
 *
 *   accuracy list                          one line per case that gives floating numbers: number, is it componentwise, type, name
 *   accuracy measure NUMBER EFFORT LEVEL   the worst error of a case, how often a result is wrong, and where; compiled with -OLEVEL
 *
 * Cases and references are those of tests/library. Functions of one number get every half; floats by a stride
 * over all 2^32 patterns; and everything near places where functions change their ways. Arguments of several
 * are drawn: a quarter from all patterns, the others of moderate size. What is tried with less effort is
 * tried with more, too. */
#include "../library/reference.h"

#include <math.h>
#include <slope.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 14, NEAR = 1500, BASE_SAMPLES = 1 << 12 };
static const uint64_t STRIDE =
    2654435769u; /* the golden section of 2^32: any number of steps is spread evenly */

typedef struct Cases {
    Case at[1024];
    int count;
} Cases;

static bool is_usual(Shape shape) {
    return (!shape.rows || shape.rows == 3) && (!shape.columns || shape.columns == 3);
}

/* Component by component a scalar is enough; of products and the like, one size. */
static bool is_wanted(const Case *c) {
    bool scalar = !c->outs[0].columns && !c->ins[0].columns;
    if (!kind_is_float(c->outs[0].kind) || !kind_is_float(c->ins[0].kind)) return false;
    if ((c->pool == POOL_wild && !scalar) || strcmp(c->name, "select") == 0) return false;
    return c->pool == POOL_wild || c->nins == 1 || (is_usual(c->ins[0]) && is_usual(c->ins[1]));
}

static void add_case(void *user, const Case *c) {
    Cases *cases = user;
    if (!is_wanted(c)) return;
    if (cases->count < 1024) cases->at[cases->count++] = *c;
}

/* ---- arguments */

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t mask_of(Kind kind) { return ~(uint64_t)0 >> (64 - kind_bits(kind)); }

/* Where functions change: zero, powers of 2, ends of exponentials, multiples of a quarter of a turn. */
static const Real centers[] = {0,
                               1e-45L,
                               1.1754944e-38L,
                               1e-20L,
                               1e-10L,
                               0.0001L,
                               0.001L,
                               0.0625L,
                               0.25L,
                               0.34657359L,
                               0.5L,
                               0.70710678L,
                               0.75L,
                               0.99L,
                               1,
                               1.1L,
                               1.4142136L,
                               1.5L,
                               2,
                               2.5L,
                               2.7182818L,
                               3,
                               4,
                               5,
                               8,
                               9.011L,
                               10,
                               16,
                               16.6355L,
                               17.3287L,
                               22,
                               31,
                               32.5L,
                               38.2308L,
                               38.5318L,
                               44.8535L,
                               45.1545L,
                               64,
                               88.72284L,
                               89.41599L,
                               103.2789L,
                               103.97208L,
                               126,
                               127,
                               128,
                               149,
                               150,
                               308.2547L,
                               323.3062L,
                               709.782712893384L,
                               710.4758600739439L,
                               745.1332191019411L,
                               1022,
                               1024,
                               1074,
                               1075,
                               8192,
                               65504,
                               8388608,
                               16777216,
                               1e10L,
                               3.4028234e38L};
enum { CENTERS = sizeof centers / sizeof *centers, TURNS = 40 };

static Real center(int which) {
    return which < CENTERS ? centers[which] : (which - CENTERS + 1) * 0.785398163397448309616L;
}

enum { NEAR_ALL = (CENTERS + TURNS) * 2 * (2 * NEAR), SPARSE = 12 };

static uint64_t near_bits(Kind kind, int index) {
    int place = index / (2 * NEAR), offset = index % (2 * NEAR) - NEAR;
    uint64_t bits = real_bits(kind, round_to(kind, center(place / 2))) + (uint64_t)(int64_t)offset;
    return (place & 1 ? bits ^ (uint64_t)1 << (kind_bits(kind) - 1) : bits) & mask_of(kind);
}

typedef struct Plan {
    const Case *c;
    bool unary;
    int64_t samples; /* after those near centers */
    int near, step;  /* how many those are; each of them, or every twelfth when there is little time */
} Plan;

static Plan make_plan(const Case *c, int effort) {
    Plan plan = {.c = c, .samples = (int64_t)BASE_SAMPLES * effort};
    plan.unary = c->nins == 1 && !c->ins[0].columns;
    if (c->pool == POOL_tame) plan.samples /= 8;
    if (!plan.unary) return plan;
    plan.step = effort < SPARSE ? SPARSE : 1;
    if (c->ins[0].kind == KIND_half) plan.samples = 65536;
    else plan.near = NEAR_ALL / plan.step;
    if (c->ins[0].kind == KIND_float) plan.samples *= 16;
    return plan;
}

/* A value between 2^-8 and 2^8, of either sign; for a whole vector or matrix, of about 1. */
static uint64_t moderate_bits(Kind kind, uint64_t random, bool shaped) {
    Real size = ldexpl(1 + (Real)(random >> 12) / 4503599627370496.0L,
                       shaped ? (int)(random % 4) - 2 : (int)(random % 16) - 8);
    return real_bits(kind, round_to(kind, random >> 11 & 1 ? -size : size));
}

static uint64_t any_bits(const Plan *plan, int64_t sample, int lane, Kind kind) {
    bool shaped = plan->c->pool == POOL_tame;
    uint64_t random = mix((uint64_t)sample * 0x9e3779b97f4a7c15u + (uint64_t)lane * 0xd1342543de82ef95u + 1);
    if (!kind_is_float(kind)) return (uint64_t)(int64_t)(random % 601) - 300;
    if (plan->unary) {
        if (sample < plan->near) return near_bits(kind, (int)sample * plan->step);
        int64_t near = plan->near;
        if (kind == KIND_half) return (uint64_t)(sample - near);
        if (kind == KIND_float) return (uint64_t)(sample - near) * STRIDE & mask_of(kind);
    }
    if (sample % 4 == 0 && !shaped) return random & mask_of(kind);
    return moderate_bits(kind, mix(random), shaped);
}

/* What a signalling NaN gives differs from processor to processor: all are quiet. */
static uint64_t argument_bits(const Plan *plan, int64_t sample, int lane, Kind kind) {
    uint64_t bits = any_bits(plan, sample, lane, kind);
    if (!kind_is_float(kind) || !isnan(real_of(kind, bits))) return bits;
    return bits | (uint64_t)1 << (kind == KIND_half ? 9 : kind == KIND_float ? 22 : 51);
}

/* ---- the program */

typedef struct Machine {
    SlopeSession *session;
    SlopeFunction *function;
} Machine;

static void type_text(Shape shape, char *text, size_t room) {
    const char *name = kind_name(shape.kind);
    if (shape.rows) snprintf(text, room, "matrix<%s, %d, %d>", name, shape.rows, shape.columns);
    else if (shape.columns) snprintf(text, room, "vector<%s, %d>", name, shape.columns);
    else snprintf(text, room, "%s", name);
}

static void write_program(const Case *c, char *text, size_t room) {
    char type[64];
    size_t n = (size_t)snprintf(text, room, "void measure(int count");
    for (int k = 0; k < c->nins; k++) {
        type_text(c->ins[k], type, sizeof type);
        n += (size_t)snprintf(text + n, room - n, ", StructuredBuffer<%s> in%d", type, k);
    }
    for (int k = 0; k < c->nouts; k++) {
        type_text(c->outs[k], type, sizeof type);
        n += (size_t)snprintf(text + n, room - n, ", RWStructuredBuffer<%s> out%d", type, k);
    }
    n += (size_t)snprintf(text + n, room - n, ")\n{\n    for (int i = 0; i < count; i++)\n    {\n        ");
    for (int k = 0; k < c->nins; k++)
        n += (size_t)snprintf(text + n, room - n, "var %c = in%d[i]; ", 'a' + k, k);
    for (int k = 0; k < c->nouts; k++) {
        type_text(c->outs[k], type, sizeof type);
        n += (size_t)snprintf(text + n, room - n, "%s %c; ", type, 'y' + k);
    }
    n += (size_t)snprintf(text + n, room - n, "%s", c->code);
    for (int k = 0; k < c->nouts; k++)
        n += (size_t)snprintf(text + n, room - n, " out%d[i] = %c;", k, 'y' + k);
    snprintf(text + n, room - n, "\n    }\n}\n");
}

static bool start(Machine *machine, const Case *c, int level) {
    char text[4096];
    SlopeConfig config;
    slope_config_init(&config);
    config.optimization = level;
    config.floats = SLOPE_FLOATS_strict; /* what functions do, not what is made of the code around them */
    SlopeProgram *program;
    write_program(c, text, sizeof text);
    bool fine =
        slope_session_new(&config, &machine->session) == SLOPE_STATUS_ok &&
        slope_load_text(machine->session, "measure.slang", text, strlen(text), &program) == SLOPE_STATUS_ok &&
        slope_find_function(program, "measure", &machine->function) == SLOPE_STATUS_ok;
    if (!fine) fprintf(stderr, "%s\n%s", text, slope_messages(machine->session));
    return fine;
}

/* ---- comparison */

typedef struct Worst {
    Real error;
    int64_t wrong; /* not a number or infinite where it should not be, or the reverse */
    Real in[MAX_INS * MAX_LANES], found, expected;
    bool seen;
} Worst;

static Real greatest_of(Kind kind) {
    return kind == KIND_half ? 65504 : kind == KIND_float ? 0x1.fffffep127L : 0x1.fffffffffffffp1023L;
}

/* In units in the last place; negative: wrong altogether. An infinite result stands for the next number after
 * the greatest. */
static Real error_of(Kind kind, Real expected, Real scale, Real found) {
    if (isnan(expected) || isnan(found)) return isnan(expected) && isnan(found) ? 0 : -1;
    if (round_to(kind, expected) == found && !isfinite(found)) return 0;
    Real unit = unit_of(kind, fmaxl(fabsl(expected), scale));
    if (isinf(found)) found = copysignl(greatest_of(kind) + unit_of(kind, greatest_of(kind)), found);
    if (isinf(expected)) return -1;
    Real error = fabsl(found - expected) / unit;
    return error > 1e6L ? -1 : error;
}

static void note(Worst *worst, Kind kind, const Real *in, int nin, Real expected, Real scale, Real found) {
    if (isinf(scale)) return;
    Real error = error_of(kind, expected, scale, found);
    bool wrong = error < 0, first_wrong = wrong && !worst->wrong;
    worst->wrong += wrong;
    if (!first_wrong && (wrong || worst->wrong || (worst->seen && error <= worst->error))) return;
    worst->seen = true;
    worst->error = wrong ? worst->error : error;
    worst->found = found;
    worst->expected = expected;
    memcpy(worst->in, in, (size_t)nin * sizeof *in);
}

/* ---- memory of one batch: each argument and result as the program has it */

typedef struct Batch {
    unsigned char *in[MAX_INS], *out[MAX_OUTS];
    Real *values; /* the arguments */
    int nin;      /* numbers of one item */
} Batch;

static size_t bytes_of(Kind kind) { return (size_t)kind_bits(kind) / 8; }

static void put_bits(unsigned char *at, Kind kind, uint64_t bits) { memcpy(at, &bits, bytes_of(kind)); }

static Real get_real(const unsigned char *at, Kind kind) {
    uint64_t bits = 0;
    memcpy(&bits, at, bytes_of(kind));
    return real_of(kind, bits);
}

static void fill(const Plan *plan, Batch *batch, int64_t first, int count) {
    const Case *c = plan->c;
    for (int i = 0; i < count; i++) {
        Real *values = batch->values + (size_t)i * (size_t)batch->nin;
        for (int k = 0, lane = 0; k < c->nins; k++) {
            Kind kind = c->ins[k].kind;
            int lanes = shape_lanes(c->ins[k]);
            for (int j = 0; j < lanes; j++, lane++) {
                uint64_t bits = argument_bits(plan, first + i, lane, kind);
                put_bits(batch->in[k] + (size_t)(i * lanes + j) * bytes_of(kind), kind, bits);
                values[lane] = real_of(kind, bits);
            }
        }
    }
}

static void compare(const Plan *plan, const Batch *batch, int count, Worst *worst) {
    const Case *c = plan->c;
    for (int i = 0; i < count; i++) {
        Real out[MAX_LANES] = {0}, scale[MAX_LANES] = {0};
        const Real *in = batch->values + (size_t)i * (size_t)batch->nin;
        c->compute(c, in, out, scale);
        for (int k = 0, lane = 0; k < c->nouts; k++) {
            int lanes = shape_lanes(c->outs[k]);
            Kind kind = c->outs[k].kind;
            for (int j = 0; j < lanes; j++, lane++) {
                Real found = get_real(batch->out[k] + (size_t)(i * lanes + j) * bytes_of(kind), kind);
                if (kind_is_float(kind))
                    note(worst, kind, in, batch->nin, out[lane], fabsl(scale[lane]), found);
            }
        }
    }
}

static bool run_batch(const Machine *machine, const Case *c, const Batch *batch, int count) {
    SlopeSpan spans[MAX_INS + MAX_OUTS];
    void *args[MAX_INS + MAX_OUTS + 1] = {&count};
    for (int k = 0; k < c->nins + c->nouts; k++) {
        spans[k] = (SlopeSpan){k < c->nins ? batch->in[k] : batch->out[k - c->nins], (uint64_t)count};
        args[k + 1] = &spans[k];
    }
    return slope_call(machine->function, args) == SLOPE_STATUS_ok;
}

static void *room(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) abort();
    return memory;
}

static Batch make_batch(const Case *c) {
    Batch batch = {0};
    for (int k = 0; k < c->nins; k++) {
        batch.in[k] = room((size_t)(BATCH * shape_lanes(c->ins[k])) * 8);
        batch.nin += shape_lanes(c->ins[k]);
    }
    for (int k = 0; k < c->nouts; k++) batch.out[k] = room((size_t)(BATCH * shape_lanes(c->outs[k])) * 8);
    batch.values = room((size_t)(BATCH * batch.nin) * sizeof *batch.values);
    return batch;
}

static void free_batch(Batch *batch) {
    for (int k = 0; k < MAX_INS; k++) free(batch->in[k]);
    for (int k = 0; k < MAX_OUTS; k++) free(batch->out[k]);
    free(batch->values);
}

static int measure(const Case *c, int effort, int level) {
    Plan plan = make_plan(c, effort);
    Machine machine = {0};
    Worst worst = {0};
    bool fine = start(&machine, c, level);
    Batch batch = make_batch(c);
    int64_t samples = plan.samples + plan.near;
    for (int64_t first = 0; fine && first < samples; first += BATCH) {
        int count = samples - first < BATCH ? (int)(samples - first) : BATCH;
        fill(&plan, &batch, first, count);
        fine = run_batch(&machine, c, &batch, count);
        compare(&plan, &batch, count, &worst);
    }
    printf("%.4Lf %lld", worst.error, (long long)worst.wrong);
    for (int i = 0; i < batch.nin && fine; i++) printf(" %.9Lg", worst.in[i]);
    printf(" : %.17Lg %.17Lg\n", worst.found, worst.expected);
    free_batch(&batch);
    slope_session_free(machine.session);
    return fine ? 0 : 1;
}

int main(int argc, char **argv) {
    static Cases cases;
    add_elementwise_cases(add_case, &cases);
    add_shaped_cases(add_case, &cases);
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (int i = 0; i < cases.count; i++)
            printf("%d %d %s %s\n", i, cases.at[i].pool == POOL_wild, kind_name(cases.at[i].ins[0].kind),
                   cases.at[i].name);
        return 0;
    }
    int number = argc == 5 ? atoi(argv[2]) : -1;
    if (number < 0 || number >= cases.count || strcmp(argv[1], "measure") != 0) return 2;
    return measure(&cases.at[number], atoi(argv[3]), atoi(argv[4]));
}
