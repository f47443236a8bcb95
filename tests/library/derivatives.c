/* Derivatives of library functions, against quotients of differences. They are made from the cases of the
 * functions themselves: after the inputs that say at which point, as many say in which direction it moves. y
 * is the value, z how it changes; in reverse mode of a weighted sum of the components. Where the function is
 * not smooth nearby, or has no value, anything goes: tests/library has programs for such points. */
#include "reference.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- quotients */

enum { STEPS = 3 };
static const Real steps[STEPS] = {1e-5L, 3e-6L, 7e-8L};

static int moving_lanes(const Case *primal) {
    int n = 0;
    for (int i = 0; i < primal->nins; i++) n += shape_lanes(primal->ins[i]);
    return n;
}

static void move(const Case *primal, const Real *in, const Real *direction, Real step, Real *out) {
    int lane = 0, moved = 0;
    for (int i = 0; i < primal->nins; i++)
        for (int k = 0; k < shape_lanes(primal->ins[i]); k++, lane++) {
            bool moves = kind_is_float(primal->ins[i].kind);
            out[lane] = in[lane] + (moves ? step * direction[moved] : 0);
            moved += moves;
        }
}

/* What a component counts in the sum that is differentiated in reverse. */
static Real weight(int lane) { return 1 + 0.25L * (Real)lane; }

static void value_at(const Case *c, const Case *primal, const Real *in, Real *out) {
    Real all[MAX_LANES], scale[MAX_LANES] = {0};
    primal->compute(primal, in, all, scale);
    int lanes = shape_lanes(primal->outs[0]);
    if (!c->weighted) memcpy(out, all, (size_t)lanes * sizeof *out);
    else *out = 0;
    for (int i = 0; i < lanes && c->weighted; i++) *out += weight(i) * all[i];
}

/* Steps of different size: how much they disagree tells how good the quotients are. */
static void compute(const Case *c, const Real *in, Real *out, Real *scale) {
    Case primal = *(const Case *)c->row;
    for (int i = 0; i < primal.nins; i++)
        if (kind_is_float(primal.ins[i].kind))
            primal.ins[i].kind = KIND_double; /* for those that round on the way */
    const Real *direction = in + moving_lanes(&primal);
    Real quotients[STEPS][MAX_LANES];
    int lanes = shape_lanes(c->outs[0]);
    value_at(c, &primal, in, out);
    for (int k = 0; k < STEPS; k++) {
        Real point[MAX_LANES], above[MAX_LANES], below[MAX_LANES];
        move(&primal, in, direction, steps[k], point);
        value_at(c, &primal, point, above);
        move(&primal, in, direction, -steps[k], point);
        value_at(c, &primal, point, below);
        for (int i = 0; i < lanes; i++) quotients[k][i] = (above[i] - below[i]) / (2 * steps[k]);
    }
    for (int i = 0; i < lanes; i++) {
        Real a = quotients[0][i], b = quotients[1][i], least = quotients[2][i],
             size = fmaxl(fmaxl(fabsl(a), fabsl(out[i])), 1);
        out[lanes + i] = b + (b - a) * 0.09L / 0.91L; /* as the square of the step goes to zero */
        scale[i] = scale[lanes + i] = 8 * size;
        if (!(fabsl(a - b) + fabsl(a - least) < 1e-5L * size) || isnan(out[i]) || size > 1e3L)
            scale[i] = scale[lanes + i] = INFINITY;
    }
}

/* ---- code */

/* Appends to the code of a case. */
static void add_text(Case *c, const char *format, const char *a, char b, char d) {
    size_t length = strlen(c->code);
    snprintf(c->code + length, sizeof c->code - length, format, a, b, d);
}

static bool moves(const Case *primal, int input) { return kind_is_float(primal->ins[input].kind); }

/* fwd_diff(f)(diffPair(a, d), b, diffPair(c, e)) */
static void write_forward(Case *c, const Case *primal) {
    char direction = (char)('a' + primal->nins);
    add_text(c, "let p = fwd_diff(%s)(", primal->name, 0, 0);
    for (int i = 0; i < primal->nins; i++) {
        add_text(c, "%s", i ? ", " : "", 0, 0);
        if (moves(primal, i)) add_text(c, "diffPair(%s%c, %c)", "", (char)('a' + i), direction++);
        else add_text(c, "%s%c", "", (char)('a' + i), 0);
    }
    add_text(c, "%s); y = p.p; z = p.d;", "", 0, 0);
}

static void write_reverse(Case *c, const Case *primal) {
    char direction = (char)('a' + primal->nins), call[80];
    static const char *const arguments[] = {"", "a", "a, b", "a, b, c"};
    snprintf(call, sizeof call, "%s(%s)", primal->name, arguments[primal->nins]);
    for (int i = 0; i < primal->nins; i++)
        if (moves(primal, i)) add_text(c, "var p%s%c = diffPair(%c); ", "", (char)('a' + i), (char)('a' + i));
    add_text(c, "let v = %s; ", call, 0, 0);
    add_text(c, "bwd_diff(%s)(", primal->name, 0, 0);
    for (int i = 0; i < primal->nins; i++)
        add_text(c, moves(primal, i) ? "p%s%c, " : "%s%c, ", "", (char)('a' + i), 0);
    add_text(c, "%sweights(v)); y = inner(v, weights(v)); z = ", "", 0, 0);
    const char *plus = "";
    for (int i = 0; i < primal->nins; i++) {
        if (!moves(primal, i)) continue;
        add_text(c, "%sinner(p%c.d, %c)", plus, (char)('a' + i), direction++);
        plus = " + ";
    }
    add_text(c, "%s;", "", 0, 0);
}

/* ---- the cases */

/* Where the function has a value, and a derivative. */
static Pool pool_of(const char *name) {
    static const char *const inside[] = {"asin", "acos", "atanh", "asinpi", "acospi"};
    static const char *const positive[] = {"acosh", "log",  "log2",  "log10", "sqrt",  "rsqrt",
                                           "pow",   "powr", "log1p", "cbrt",  "lgamma"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (strcmp(name, inside[i]) == 0) return POOL_unit;
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (strcmp(name, positive[i]) == 0) return POOL_above;
    return POOL_tame;
}

static bool can_derive(const Case *primal) {
    Kind kind = primal->outs[0].kind;
    if (primal->nouts != 1 || !isalpha((unsigned char)primal->name[0]) || kind < KIND_float) return false;
    if (!isalpha((unsigned char)primal->code[4]) || !strchr(primal->code, '(')) return false;
    if (kind == KIND_double && primal->ins[0].columns) return false; /* enough is enough */
    if (primal->pool == POOL_wild && (primal->ins[0].columns == 2 || primal->ins[0].columns == 4))
        return false;
    return strcmp(primal->name, "conversion") != 0 && strcmp(primal->name, "bits") != 0;
}

void add_derivative_cases(const Case *primal, AddCase add, void *user) {
    if (!can_derive(primal)) return;
    Kind kind = primal->outs[0].kind;
    for (int reverse = 0; reverse < 2; reverse++) {
        Case c = {.name = primal->name,
                  .nins = primal->nins,
                  .nouts = 2,
                  .pool = pool_of(primal->name),
                  .row = primal};
        memcpy(c.ins, primal->ins, sizeof c.ins);
        for (int i = 0; i < primal->nins; i++)
            if (moves(primal, i)) c.ins[c.nins++] = primal->ins[i];
        c.outs[0] = c.outs[1] = reverse ? (Shape){kind, 0, 0} : primal->outs[0];
        c.weighted = reverse;
        c.any_zero = true;
        c.compute = compute;
        c.tolerance = kind == KIND_float ? 200 : 5e7L;
        if (reverse) write_reverse(&c, primal);
        else write_forward(&c, primal);
        add(user, &c);
    }
}
