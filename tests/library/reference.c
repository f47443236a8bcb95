/* reference list           one line per case: number, constant, pool, code | inputs | outputs
 * reference inputs POOL    the inputs: for each kind with values, ITEMS times MAX_LANES words
 * reference check FILE...  each file holds results: a line per case with its number, then the words in binary
 * library.py calls it. */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Cases {
    Case *at;
    int count, room;
} Cases;

static void add_case(void *user, const Case *c) {
    Cases *cases = user;
    if (cases->count == cases->room) {
        cases->room = cases->room ? cases->room * 2 : 256;
        cases->at = realloc(cases->at, (size_t)cases->room * sizeof *cases->at);
        if (!cases->at) abort();
    }
    cases->at[cases->count++] = *c;
}

static void add_primal_cases(Cases *cases) {
    add_elementwise_cases(add_case, cases);
    add_integer_cases(add_case, cases);
    add_shaped_cases(add_case, cases);
}

/* ---- list */

static void print_shape(Shape shape) {
    printf(" %s", kind_name(shape.kind));
    if (shape.rows) printf(":%dx%d", shape.rows, shape.columns);
    else if (shape.columns) printf(":%d", shape.columns);
}

static void list(const Cases *cases) {
    for (int i = 0; i < cases->count; i++) {
        const Case *c = &cases->at[i];
        printf("%d %d %s %s |", i, c->constant, pool_name(c->pool), c->code);
        for (int k = 0; k < c->nins; k++) print_shape(c->ins[k]);
        printf(" |");
        for (int k = 0; k < c->nouts; k++) print_shape(c->outs[k]);
        printf("\n");
    }
}

/* ---- inputs */

static int print_inputs(const char *name) {
    Pool pool = POOL_wild;
    while (pool < POOL_COUNT && strcmp(name, pool_name(pool)) != 0) pool++;
    if (pool == POOL_COUNT) return 2;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (int item = 0; item < ITEMS; item++)
            for (int lane = 0; lane < MAX_LANES; lane++) {
                uint64_t word = to_transport((Kind)kind, pool_value((Kind)kind, pool, item, lane));
                if (fwrite(&word, sizeof word, 1, stdout) != 1) return 1;
            }
    return 0;
}

/* ---- check */

typedef struct Values {
    Real in[MAX_INS * MAX_LANES], out[MAX_LANES], scale[MAX_LANES], found[MAX_LANES];
    int nin, compared;
} Values;

/* Lanes of the pool are handed out in order, counted for each kind. */
static void set_inputs(const Case *c, int item, Values *values) {
    int next[KIND_COUNT] = {0};
    values->nin = 0;
    for (int k = 0; k < c->nins; k++)
        for (int lane = 0; lane < shape_lanes(c->ins[k]); lane++) {
            Kind kind = c->ins[k].kind;
            values->in[values->nin++] = pool_value(kind, c->pool, item, next[kind]++);
        }
}

static bool is_close(const Case *c, Kind kind, Real expected, Real scale, Real found) {
    if (isinf(scale)) return true;
    if (isnan(expected) || isnan(found)) return isnan(expected) && isnan(found);
    Real rounded = round_to(kind, expected);
    if (rounded == found)
        return found != 0 || c->any_zero || !kind_is_float(kind) || !signbit(rounded) == !signbit(found);
    if (isinf(rounded) || isinf(found)) {
        Real greatest = round_to(kind, kind == KIND_half    ? 65504
                                       : kind == KIND_float ? 3.4028235e38L
                                                            : 1.7976931348623157e308L);
        return c->tolerance > 0 && fabsl(isinf(found) ? rounded : found) == greatest &&
               signbit(found) == signbit(rounded);
    }
    Real size = fabsl(scale) > fabsl(expected) ? fabsl(scale) : fabsl(expected);
    return fabsl(found - expected) <= c->tolerance * unit_of(kind, size);
}

static void print_value(Kind kind, Real x) {
    if (kind_is_float(kind)) printf("%.*Lg", kind == KIND_double ? 17 : 9, x);
    else printf("%.0Lf", x);
}

static void report(const Case *c, int item, const Values *values, int lane, Kind kind) {
    printf("  item %d, lane %d: a b.. =", item, lane);
    for (int i = 0, n = 0; i < c->nins; i++)
        for (int k = 0; k < shape_lanes(c->ins[i]); k++) {
            printf(k || !i ? " " : " ; ");
            print_value(c->ins[i].kind, values->in[n++]);
        }
    printf(": found ");
    print_value(kind, values->found[lane]);
    printf(", expected ");
    print_value(kind, round_to(kind, values->out[lane]));
    printf("\n");
}

static int check_item(const Case *c, int item, Values *values) {
    memset(values->scale, 0, sizeof values->scale);
    set_inputs(c, item, values);
    c->compute(c, values->in, values->out, values->scale);
    int wrong = 0, lane = 0;
    for (int k = 0; k < c->nouts; k++)
        for (int i = 0; i < shape_lanes(c->outs[k]); i++, lane++) {
            Kind kind = c->outs[k].kind;
            values->compared += !isinf(values->scale[lane]);
            if (is_close(c, kind, values->out[lane], values->scale[lane], values->found[lane])) continue;
            if (wrong++ < 2) report(c, item, values, lane, kind);
        }
    return wrong;
}

static bool read_item(const Case *c, FILE *file, Values *values) {
    int lane = 0;
    for (int k = 0; k < c->nouts; k++)
        for (int i = 0; i < shape_lanes(c->outs[k]); i++) {
            uint64_t word;
            if (fread(&word, sizeof word, 1, file) != 1) return false;
            values->found[lane++] = from_transport(c->outs[k].kind, word);
        }
    return true;
}

/* One run of results: the number of the case and of its items, then the items. */
static bool check_run(const Cases *cases, FILE *file) {
    uint64_t head[2];
    if (fread(head, sizeof head, 1, file) != 1) return false;
    if (head[0] >= (uint64_t)cases->count || head[1] > ITEMS) return false;
    const Case *c = &cases->at[head[0]];
    int wrong = 0;
    Values values = {0};
    for (int item = 0; item < (int)head[1]; item++) {
        if (!read_item(c, file, &values)) return false;
        if (wrong < 4) wrong += check_item(c, item, &values);
    }
    if (values.compared < (int)head[1] / 8)
        wrong += printf("  only %d numbers could be compared\n", values.compared);
    printf("%s %s%s %s\n", wrong ? "FAIL" : "ok", head[1] == ITEMS ? "" : "constants: ", c->name, c->code);
    return true;
}

static int check(const Cases *cases, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        printf("FAIL cannot open %s\n", path);
        return 1;
    }
    while (check_run(cases, file)) continue;
    bool whole = feof(file);
    if (!whole) printf("FAIL %s is not as it should be\n", path);
    fclose(file);
    return whole ? 0 : 1;
}

int main(int argc, char **argv) {
    Cases primal = {0}, cases = {0};
    int status = 0;
    add_primal_cases(&primal);
    add_primal_cases(&cases);
    for (int i = 0; i < primal.count; i++) add_derivative_cases(&primal.at[i], add_case, &cases);
    if (argc == 2 && strcmp(argv[1], "list") == 0) list(&cases);
    else if (argc == 3 && strcmp(argv[1], "inputs") == 0) status = print_inputs(argv[2]);
    else if (argc > 2 && strcmp(argv[1], "check") == 0)
        for (int i = 2; i < argc; i++) status |= check(&cases, argv[i]);
    else status = 2;
    free(cases.at);
    free(primal.at);
    return status;
}
