/* Points are drawn, derivatives compared there, and a verdict is given.
 *
 * At a point, J is found by differences for some directions u: along each input (all of them, or as many as a
 * sample may cost, others in the next sample) and along mixed ones. Then fwd_diff is compared for each u,
 * bwd_diff for unit and mixed v against the same differences, and <J u, v> = <u, J^T v> holds between the
 * two.
 *
 * Two numbers agree if they differ by no more than the tolerance, relative to the greater, or to a hundredth
 * of the largest entry of the row: what is smaller than that is a difference of larger things. If they do not
 * agree, either the derivative is wrong, or the function is computed so badly in its own precision that its
 * derivative cannot be better. To tell, the derivative is computed in double as well. If that does not agree
 * either, it is wrong, unless it is the differences that are: the function is computed again with random
 * roundings (shake.c), and if its values spread so far that differences of them may be as wrong as this, they
 * say nothing. If it does agree, it was a matter of rounding: the error is small, or the derivative changes
 * as much if the inputs change by a rounding error. Then the point is of no use, and another is drawn. */
#include "gradcheck/gradcheck.h"

#include <float.h>
#include <math.h>
#include <time.h>

enum { MOST_DIRECTIONS = 24, MOST_JITTERS = 6, MOST_SHAKES = 12, MOST_NEARER = 12 };
enum { DEFAULT_SAMPLES = 32 };
static const double DEFAULT_SECONDS = 20;
#define WORK_LIMIT 30000000 /* steps of loops for one function */

typedef enum PartKind { PART_value, PART_fwd, PART_bwd, PART_identity, PARTS } PartKind;

/* One number that is compared. */
typedef struct Quantity {
    PartKind part;
    int u, v, output; /* direction, cotangent, output */
} Quantity;

typedef struct Worst {
    double error; /* relative */
    double told;  /* the error that the rest is about: of a single input and output, if there is one */
    bool is_single;
    double got, wanted;
    const char *input, *output; /* NULL: mixed */
    const double *x;
} Worst;

typedef struct Direction {
    double *u;
    int only; /* the only input, or output, that is not zero; -1: mixed */
    double step, size;
    double *value, *error; /* differences: one per output */
    double *steps;         /* that they were found with */
} Direction;

typedef struct Probe {
    Check *check;
    Subject *s;
    Arena *scratch; /* of this sample */
    double tolerance, epsilon;
    Random random;
    double *x, *y0, *y, *dy, *dx, *row; /* row: largest entry per output */
    const char *unusable;
    Direction *us, *vs;
    int nus, nvs;
    double *jitter[MOST_JITTERS];
    double *spread; /* of each output, by rounding; NULL: not asked yet */
    int8_t *
        itself; /* inputs that are outputs too: does it depend on what it was? 0: not asked yet, 1: no, 2: yes */
    Worst worst[PARTS];
} Probe;

/* ---- time */

/* Of the processor: a machine that does other things as well is no reason to know less. */
static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_late(const Check *check) { return seconds_now() > check->deadline; }

/* ---- drawing */

static double epsilon_of(TypeKind kind) {
    return kind == TYPE_half ? 0x1p-10 : kind == TYPE_float ? FLT_EPSILON : DBL_EPSILON;
}

static double least_of(TypeKind kind) {
    return kind == TYPE_half ? 0x1p-14 : kind == TYPE_float ? (double)FLT_MIN : DBL_MIN;
}

static double most_of(TypeKind kind) {
    return kind == TYPE_half ? 65504 : kind == TYPE_float ? (double)FLT_MAX : DBL_MAX;
}

/* Where functions are defined is not known: one range after the other is tried. */
static const struct Range {
    double low, high;
    int sign; /* 1, -1; 0: either */
    bool by_magnitude;
} ranges[] = {{0.25, 2, 0, false}, {0.25, 2, 1, false}, {0.05, 0.95, 1, false}, {0.05, 0.95, 0, false},
              {1.1, 4, 1, false},  {0.5, 8, 0, false},  {0.25, 2, -1, false},   {0.02, 50, 0, true},
              {0.02, 50, 1, true}, {3, 10, 1, false}};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

static double draw_float(Random *random, const struct Range *range) {
    double value = range->by_magnitude ? exp(gradcheck_uniform(random, log(range->low), log(range->high)))
                                       : gradcheck_uniform(random, range->low, range->high);
    bool negative = range->sign < 0 || (range->sign == 0 && gradcheck_random(random) & 1);
    return negative ? -value : value;
}

/* Elements of a tensor are not in front of its buffer. */
static double draw_integer(Random *random, const Slot *slot, int attempt) {
    TypeKind kind = slot->kind;
    if (kind == TYPE_bool) return (double)(gradcheck_random(random) & 1);
    double value = (double)(gradcheck_random(random) % 5);
    bool is_signed = kind == TYPE_int8 || kind == TYPE_int16 || kind == TYPE_int || kind == TYPE_int64;
    return is_signed && !slot->is_extent && attempt % 4 == 3 ? value - 2 : value;
}

/* Of a buffer: so that small steps from it are exact in single precision. */
static double draw_element(Random *random) {
    double value = ldexp(round(ldexp(gradcheck_uniform(random, 0.25, 1.75), 8)), -8);
    return gradcheck_random(random) & 1 ? value : -value;
}

/* From the range that somebody has given; not quite to its ends, so that there is room for steps. */
static double draw_limited(Random *random, const Slot *slot) {
    double inset = (slot->high - slot->low) / 64;
    if (slot->kind >= TYPE_half) return gradcheck_uniform(random, slot->low + inset, slot->high - inset);
    return floor(gradcheck_uniform(random, ceil(slot->low), floor(slot->high) + 1));
}

/* So that no two elements share a place: any dimension may be the one whose elements are neighbours; a tensor
 * of rank 0 has but one dimension. */
static double draw_stride(Random *random, const Slot *slot, int *turn) {
    enum { BITS = 4 };
    if (slot->axis < 0) return 1 + (double)(gradcheck_random(random) % (uint64_t)slot->axes);
    if (slot->axis == 0) *turn = (int)(gradcheck_random(random) % (uint64_t)slot->axes);
    return ldexp(1, BITS * ((slot->axis + *turn) % slot->axes));
}

static void draw(Probe *p, int attempt, double *x) {
    const struct Range *range = &ranges[attempt % RANGES];
    int turn = 0;
    for (int i = 0; i < p->s->slots.count; i++) {
        const Slot *slot = &p->s->slots.at[i];
        if (slot->in < 0) continue;
        bool is_float = slot->kind >= TYPE_half;
        double value = is_float        ? draw_float(&p->random, range)
                       : slot->choices ? 1 + (double)(gradcheck_random(&p->random) % (uint64_t)slot->choices)
                                       : draw_integer(&p->random, slot, attempt);
        if (is_float && slot->hole >= 0) value = draw_element(&p->random);
        if (slot->axes && p->s->survey.stores_once) value = draw_stride(&p->random, slot, &turn);
        if (slot->is_limited) value = draw_limited(&p->random, slot);
        x[slot->in] = gradcheck_round(slot->kind, value);
    }
}

static double sign(Random *random) { return gradcheck_random(random) & 1 ? 1 : -1; }

/* Numbers that are exact in every precision. */
static double draw_coefficient(Random *random) {
    return sign(random) * (double)(8 + gradcheck_random(random) % 9) / 16;
}

/* ---- directions */

static double reach(const Probe *p, const Slot *slot) {
    double x = p->x[slot->in], far = fmax(fabs(x), 0.05) / 8;
    if (!slot->is_limited || !(x > slot->low && x < slot->high)) return far;
    return fmin(far, fmin(x - slot->low, slot->high - x));
}

/* How far one may go along it, and how large the point is there. The step is a power of two, so that elements
 * of buffers, which are not widened, are the same numbers in single precision. */
static void measure(Probe *p, Direction *direction) {
    direction->step = INFINITY;
    direction->size = 0.1;
    for (int i = 0; i < p->s->slots.count; i++) {
        const Slot *slot = &p->s->slots.at[i];
        if (slot->input < 0 || direction->u[slot->input] == 0) continue;
        direction->step = fmin(direction->step, reach(p, slot) / fabs(direction->u[slot->input]));
        if (direction->only >= 0) direction->size = fmax(direction->size, fabs(p->x[slot->in]));
    }
    if (isfinite(direction->step)) direction->step = exp2(floor(log2(direction->step)));
}

/* `count` directions in `n` dimensions: along single ones, starting anew in each sample, the last one
 * mixed. */
static Direction *make_directions(Probe *p, int n, int sample, int *count) {
    int single = n < MOST_DIRECTIONS ? n : MOST_DIRECTIONS / 2;
    *count = single + 1;
    Direction *list = arena_array(p->scratch, Direction, *count);
    for (int k = 0; k < *count; k++) {
        Direction *direction = &list[k];
        direction->u = arena_array(p->scratch, double, n);
        direction->only = k == single ? -1 : single == n ? k : (int)(((int64_t)sample * single + k) % n);
        if (direction->only >= 0) direction->u[direction->only] = 1;
        else
            for (int i = 0; i < n; i++) direction->u[i] = draw_coefficient(&p->random);
    }
    return list;
}

static const Slot *slot_of(const Subject *s, int index, bool is_input) {
    return &s->slots.at[is_input ? s->inputs.at[index] : s->outputs.at[index]];
}

/* ---- differences */

typedef struct Line {
    Probe *p;
    const Direction *direction;
    double *x;
    const char *wrong; /* what was last in the way */
} Line;

static bool evaluate(void *user, double t, double *y) {
    Line *line = user;
    Subject *s = line->p->s;
    memcpy(line->x, line->p->x, sizeof(double) * (size_t)s->nin);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->input >= 0) line->x[slot->in] += t * line->direction->u[slot->input];
    }
    const char *wrong = gradcheck_call(line->p->check, s, line->x, HOLD_replay, y);
    if (wrong) line->wrong = wrong;
    return !wrong;
}

/* Errors of this size are those of a number of the size of the output in its own precision. */
static double slack_of(const Probe *p, const Direction *direction, int output) {
    return 4 * p->epsilon * fabs(p->y0[output]) / direction->size + 4 * least_of(p->s->narrowest);
}

/* Everything is computed in double, but what goes through buffers. */
static double rounding_of(const Subject *s) {
    double epsilon = DBL_EPSILON;
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->hole >= 0 && slot->has_diff) epsilon = fmax(epsilon, epsilon_of(slot->kind));
    }
    return epsilon;
}

static void differentiate(Probe *p, Direction *direction) {
    static const char *const troubles[] = {
        [DIFFERENCE_undefined] = "it is not defined nearby",
        [DIFFERENCE_corner] = "it has a corner",
        [DIFFERENCE_unsettled] = "its differences do not settle",
    };
    Subject *s = p->s;
    measure(p, direction);
    direction->value = arena_array(p->scratch, double, s->noutputs);
    direction->error = arena_array(p->scratch, double, s->noutputs);
    direction->steps = arena_array(p->scratch, double, s->noutputs);
    double *slack = arena_array(p->scratch, double, s->noutputs);
    for (int j = 0; j < s->noutputs;
         j++) /* a thousandth of what the slope would be, were the output proportional */
        slack[j] = slack_of(p, direction, j) + p->tolerance * 1e-3 * fabs(p->y0[j]) / direction->size;
    Line line = {p, direction, arena_array(p->scratch, double, s->nin), troubles[DIFFERENCE_undefined]};
    Difference difference = {.n = s->noutputs,
                             .evaluate = evaluate,
                             .user = &line,
                             .y0 = p->y0,
                             .least = rounding_of(s) > DBL_EPSILON ? 0x1p-13 : 0,
                             .step = direction->step,
                             .tolerance = p->tolerance,
                             .slack = slack,
                             .value = direction->value,
                             .error = direction->error,
                             .steps = direction->steps};
    DifferenceStatus status = gradcheck_difference(p->scratch, &difference);
    if (status != DIFFERENCE_fine)
        p->unusable = status == DIFFERENCE_undefined ? line.wrong : troubles[status];
    for (int j = 0; j < s->noutputs; j++) p->row[j] = fmax(p->row[j], fabs(direction->value[j]));
}

/* ---- quantities */

static double dot(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double dot_of_sizes(const double *a, const double *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += fabs(a[i] * b[i]);
    return sum;
}

/* Does an element of a buffer, at the end, depend on what it was at the start? One that was overwritten has
 * no derivative any more, and a reverse pass may leave there what it found, since nobody will ask for it. */
static bool depends_on_itself(Probe *p, int input) {
    Subject *s = p->s;
    const Slot *slot = slot_of(s, input, true);
    if (!p->itself) p->itself = arena_array(p->scratch, int8_t, s->ninputs);
    if (p->itself[input]) return p->itself[input] == 2;
    double *x = arena_copy(p->scratch, p->x, sizeof(double) * (size_t)s->nin);
    double *y = arena_array(p->scratch, double, s->noutputs);
    double step = exp2(floor(log2(reach(p, slot))));
    x[slot->in] += step;
    bool moves = gradcheck_call(p->check, s, x, HOLD_replay, y) != NULL;
    moves |= !(fabs(y[slot->output] - p->y0[slot->output]) <= 1e-3 * step);
    p->itself[input] = moves ? 2 : 1;
    return moves;
}

/* Was the gradient there left as it was found? Then another one in its place is left as well; that of another
 * element, which happened to be the same, stays what it is. */
static bool is_left_behind(Probe *p, Width width, const double *x, const double *v, int input) {
    Subject *s = p->s;
    if (depends_on_itself(p, input)) return false;
    int output = slot_of(s, input, true)->output;
    double *other = arena_copy(p->scratch, v, sizeof(double) * (size_t)s->noutputs);
    double *dx = arena_array(p->scratch, double, s->ninputs);
    other[output] = 3 - 2 * v[output];
    return !gradcheck_call_bwd(p->check, s, width, x, other, dx) &&
           gradcheck_is_left(s, width, input, other, dx[input]);
}

static const char *call_bwd(Probe *p, Width width, const double *x, const double *v, double *dx) {
    Subject *s = p->s;
    const char *wrong = gradcheck_call_bwd(p->check, s, width, x, v, dx);
    bool *left = arena_array(p->scratch, bool, s->ninputs);
    for (int i = 0; i < s->ninputs && !wrong; i++) left[i] = gradcheck_is_left(s, width, i, v, dx[i]);
    for (int i = 0; i < s->ninputs && !wrong; i++)
        if (left[i] && is_left_behind(p, width, x, v, i)) dx[i] = 0;
    return wrong;
}

/* The derivative's side of a quantity, at some x. */
static double compute(Probe *p, const Quantity *q, Width width, const double *x) {
    Subject *s = p->s;
    const double *u = p->us[q->u].u, *v = p->vs[q->v].u;
    bool fwd = q->part != PART_bwd, bwd = q->part == PART_bwd || q->part == PART_identity;
    const char *wrong = fwd ? gradcheck_call_fwd(p->check, s, width, x, u, p->y, p->dy) : NULL;
    if (!wrong && bwd) wrong = call_bwd(p, width, x, v, p->dx);
    if (wrong) return (double)NAN;
    switch (q->part) {
    case PART_value: return p->y[q->output];
    case PART_fwd: return p->dy[q->output];
    case PART_bwd: return dot(p->dx, u, s->ninputs);
    case PART_identity: return dot(p->dx, u, s->ninputs) - dot(p->dy, v, s->noutputs);
    case PARTS: break;
    }
    return 0;
}

/* The point again, changed by rounding errors. */
static const double *jittered(Probe *p, int index) {
    Subject *s = p->s;
    if (p->jitter[index]) return p->jitter[index];
    double *x = p->jitter[index] = arena_copy(p->scratch, p->x, sizeof(double) * (size_t)s->nin);
    for (int i = 0; i < s->slots.count; i++) {
        const Slot *slot = &s->slots.at[i];
        if (slot->in < 0 || slot->kind < TYPE_half) continue;
        double change = p->epsilon * sign(&p->random) * (double)(1 + (gradcheck_random(&p->random) & 1));
        x[slot->in] = gradcheck_round(slot->kind, x[slot->in] * (1 + change));
    }
    return x;
}

/* Is there shaken code for all that the quantity needs? */
static bool can_shake(const Probe *p, const Quantity *q) {
    bool fwd = q->part != PART_bwd, bwd = q->part == PART_bwd || q->part == PART_identity;
    if (!gradcheck_make_shaken(p->check, p->s)) return false;
    return (!fwd || p->s->call_fwd[SHAKEN]) && (!bwd || p->s->call_bwd[SHAKEN]);
}

static double noise_of(Probe *p, const Quantity *q, double got, double wide) {
    double noise = 0;
    for (int k = 0; k < MOST_SHAKES && can_shake(p, q); k++) {
        double change = fabs(compute(p, q, SHAKEN, p->x) - wide);
        if (!(change <= noise)) noise = change;
    }
    for (int k = 0; k < MOST_JITTERS; k++) {
        double change = fabs(compute(p, q, NARROW, jittered(p, k)) - got);
        if (!(change <= noise)) noise = change;
    }
    return noise;
}

/* How far each output is from itself if every rounding on the way is another. */
static const double *spread_of(Probe *p) {
    Subject *s = p->s;
    if (p->spread) return p->spread;
    p->spread = arena_array(p->scratch, double, s->noutputs);
    if (!gradcheck_make_shaken(p->check, s)) return p->spread;
    double *y = arena_array(p->scratch, double, s->noutputs);
    for (int k = 0; k < MOST_SHAKES; k++) {
        const char *wrong = gradcheck_call_shaken(p->check, s, p->x, y);
        for (int j = 0; j < s->noutputs; j++) {
            double change = wrong ? INFINITY : fabs(y[j] - p->y0[j]);
            if (!(change <= p->spread[j])) p->spread[j] = isnan(change) ? INFINITY : change;
        }
    }
    return p->spread;
}

/* How wrong the other side of a quantity may be, by rounding in the function itself. */
static double blur_of(Probe *p, const Quantity *q) {
    const double *spread = spread_of(p), *steps = p->us[q->u].steps, *v = p->vs[q->v].u;
    double sum = 0;
    switch (q->part) {
    case PART_value: return 4 * spread[q->output];
    case PART_fwd: return 4 * spread[q->output] / steps[q->output];
    case PART_bwd:
        for (int j = 0; j < p->s->noutputs; j++)
            if (v[j] != 0) sum += 4 * fabs(v[j]) * spread[j] / steps[j];
        return sum;
    case PART_identity:
    case PARTS: break;
    }
    return 0;
}

/* The step that differences took for a quantity. */
static double step_of(const Probe *p, const Quantity *q) {
    const double *steps = p->us[q->u].steps, *v = p->vs[q->v].u;
    double step = q->part == PART_bwd ? 0 : steps[q->output];
    for (int j = 0; q->part == PART_bwd && j < p->s->noutputs; j++)
        if (v[j] != 0) step = fmax(step, steps[j]);
    return step;
}

/* What differences over the step h give for a quantity, and how wrong that may be by rounding. */
static double difference_of(Probe *p, const Quantity *q, double h, double *noise) {
    int n = p->s->noutputs;
    Line line = {p, &p->us[q->u], arena_array(p->scratch, double, p->s->nin), NULL};
    double *right = arena_array(p->scratch, double, n), *left = arena_array(p->scratch, double, n), sum = 0;
    *noise = INFINITY;
    if (!evaluate(&line, h, right) || !evaluate(&line, -h, left)) return 0;
    *noise = 0;
    for (int j = 0; j < n; j++) {
        double weight = q->part == PART_bwd ? p->vs[q->v].u[j] : j == q->output;
        if (weight == 0) continue;
        sum += weight * (right[j] - left[j]) / (2 * h);
        *noise += 16 * DBL_EPSILON * fabs(weight) * fmax(fabs(right[j]), fabs(left[j])) / h;
    }
    return sum;
}

/* Do differences agree with the derivative over steps that are much smaller than those that were taken? Then
 * these have seen the mean of something that oscillates. */
static bool agrees_nearby(Probe *p, const Quantity *q, double wide, double off) {
    if (q->part != PART_fwd && q->part != PART_bwd) return false;
    if (!isfinite(off) || rounding_of(p->s) > DBL_EPSILON) return false; /* small steps are useless */
    double noise = 0, h = step_of(p, q) / 64;
    for (int k = 0; k < MOST_NEARER && noise <= off / 8; k++, h /= 8) {
        double value = difference_of(p, q, h, &noise);
        if (noise <= off / 8 && fabs(value - wide) <= off / 8) return true;
    }
    return false;
}

/* ---- judging */

typedef struct Comparison {
    Quantity q;
    double got, wanted;
    double scale; /* what the error is relative to */
    double slack; /* absolute error that is nothing */
} Comparison;

static const char *direction_name(const Subject *s, const Direction *direction, bool is_input) {
    return direction->only >= 0 ? slot_of(s, direction->only, is_input)->name : NULL;
}

/* Is it told rather than what was told so far? What is wrong before what is not; of what is wrong, what is
 * about one input and one output before a mixture. */
static bool is_better(const Worst *worst, double error, bool single, double tolerance) {
    bool wrong = error > tolerance, was_wrong = worst->told > tolerance;
    if (!worst->x || wrong != was_wrong) return !worst->x || wrong;
    return wrong && single != worst->is_single ? single : error > worst->told;
}

static void tell(Probe *p, const Comparison *c, double error) {
    Worst *worst = &p->worst[c->q.part];
    bool by_output = c->q.part == PART_value || c->q.part == PART_fwd;
    const char *input = c->q.part == PART_value ? NULL : direction_name(p->s, &p->us[c->q.u], true);
    const char *output =
        by_output ? slot_of(p->s, c->q.output, false)->name : direction_name(p->s, &p->vs[c->q.v], false);
    bool single = output && (input || c->q.part == PART_value);
    worst->error = fmax(worst->error, error);
    if (!is_better(worst, error, single, p->tolerance)) return;
    *worst = (Worst){worst->error, error, single, c->got, c->wanted, input, output, p->x};
}

/* The numbers do not agree: because of rounding, or of what a type has no number for? NULL: it is not
 * that. */
static const char *rounding(Probe *p, const Comparison *c, double scale) {
    double error = fabs(c->got - c->wanted), allowed = p->tolerance * scale;
    bool have_wide = gradcheck_make_wide(p->check, p->s);
    double wide = have_wide ? compute(p, &c->q, WIDE, p->x) : c->got;
    double off = fabs(wide - c->wanted);
    if (!(off <= allowed)) {
        if (off <= allowed + blur_of(p, &c->q)) return "its differences are lost in rounding errors";
        if (have_wide && agrees_nearby(p, &c->q, wide, off))
            return "its derivative changes too fast for differences";
        if (have_wide) return NULL;
    }
    static const char own[] = "rounding errors in its own precision are too large";
    if (have_wide && c->q.part == PART_value) return "its own precision gives another result";
    if (have_wide && error <= 0.05 * scale) return own;
    double noise = noise_of(p, &c->q, c->got, wide);
    return isnan(noise) || error <= allowed + 8 * noise ? own : NULL;
}

static void judge(Probe *p, const Comparison *c) {
    double error = fabs(c->got - c->wanted), most = most_of(p->s->narrowest);
    double size = fmax(c->scale, fmax(fabs(c->got), fabs(c->wanted))), scale = size + c->slack / p->tolerance;
    if (p->unusable) return;
    double relative = error == 0 ? 0 : error / scale;
    const char *excuse = NULL;
    if (relative <= p->tolerance) tell(p, c, relative);
    else if (!isfinite(c->got) && fabs(c->wanted) > most / 16)
        p->unusable = "its derivative is too large for its type";
    else if (isfinite(c->got) && (excuse = rounding(p, c, scale))) p->unusable = excuse;
    else tell(p, c, isfinite(c->got) ? error / size : INFINITY);
}

/* ---- the three comparisons */

static void compare_fwd(Probe *p, int k) {
    Subject *s = p->s;
    const Direction *direction = &p->us[k];
    double *y = arena_array(p->scratch, double, s->noutputs),
           *dy = arena_array(p->scratch, double, s->noutputs);
    const char *wrong = gradcheck_call_fwd(p->check, s, NARROW, p->x, direction->u, y, dy);
    if (wrong) p->unusable = wrong;
    for (int j = 0; j < s->noutputs && !p->unusable; j++) {
        if (!isfinite(y[j])) p->unusable = "its result is too large for its type";
        else if (p->y0[j] != 0 && fabs(p->y0[j]) < least_of(s->narrowest))
            p->unusable = "its result is too small for its type";
        Comparison value = {.q = {PART_value, k, 0, j}, .got = y[j], .wanted = p->y0[j]};
        value.slack = 4 * p->epsilon + 4 * least_of(s->narrowest);
        if (k == 0) judge(p, &value);
        Comparison c = {.q = {PART_fwd, k, 0, j},
                        .got = dy[j],
                        .wanted = direction->value[j],
                        .scale = p->row[j] / 100,
                        .slack = slack_of(p, direction, j) + 2 * direction->error[j]};
        judge(p, &c);
    }
}

static void compare_bwd(Probe *p, int k) {
    Subject *s = p->s;
    const double *v = p->vs[k].u;
    double *dx = arena_array(p->scratch, double, s->ninputs);
    const char *wrong = call_bwd(p, NARROW, p->x, v, dx);
    if (wrong) p->unusable = wrong;
    for (int i = 0; i < p->nus && !p->unusable; i++) {
        const Direction *direction = &p->us[i];
        Comparison c = {.q = {PART_bwd, i, k, 0}, .scale = dot_of_sizes(v, p->row, s->noutputs) / 100};
        c.got = dot(dx, direction->u, s->ninputs);
        c.wanted = dot(v, direction->value, s->noutputs);
        for (int j = 0; j < s->noutputs; j++)
            c.slack += fabs(v[j]) * (slack_of(p, direction, j) + 2 * direction->error[j]);
        judge(p, &c);
    }
}

/* The mixed direction with the mixed cotangent: everything takes part. */
static void compare_identity(Probe *p) {
    Subject *s = p->s;
    int i = p->nus - 1, k = p->nvs - 1;
    const double *u = p->us[i].u, *v = p->vs[k].u;
    Comparison c = {.q = {PART_identity, i, k, 0}};
    c.got = compute(p, &c.q, NARROW, p->x); /* the difference of both */
    c.scale = dot_of_sizes(p->dy, v, s->noutputs) + dot_of_sizes(p->dx, u, s->ninputs);
    for (int j = 0; j < s->noutputs; j++) c.slack += fabs(v[j]) * slack_of(p, &p->us[i], j);
    judge(p, &c);
}

/* ---- samples */

static void probe(Probe *p, int sample) {
    Subject *s = p->s;
    p->unusable = gradcheck_call(p->check, s, p->x, HOLD_record, p->y0);
    for (int j = 0; j < s->noutputs && !p->unusable; j++)
        if (!isfinite(p->y0[j])) p->unusable = "its result is not finite";
    if (p->unusable) return;
    memset(p->row, 0, sizeof(double) * (size_t)s->noutputs);
    p->us = make_directions(p, s->ninputs, sample, &p->nus);
    p->vs = make_directions(p, s->noutputs, sample, &p->nvs);
    for (int k = 0; k < p->nus && !p->unusable; k++) {
        differentiate(p, &p->us[k]);
        if (is_late(p->check)) p->unusable = "it takes too long";
    }
    for (int k = 0; k < p->nus && s->fwd && !p->unusable; k++) compare_fwd(p, k);
    for (int k = 0; k < p->nvs && s->bwd && !p->unusable; k++) compare_bwd(p, k);
    if (s->fwd && s->bwd && !p->unusable) compare_identity(p);
}

/* Why points were of no use, and how often. */
typedef struct Reasons {
    const char *texts[8];
    int counts[8];
} Reasons;

static void count_reason(Reasons *reasons, const char *text) {
    int i = 0;
    while (i < 7 && reasons->texts[i] && strcmp(reasons->texts[i], text) != 0) i++;
    if (!reasons->texts[i]) reasons->texts[i] = text;
    reasons->counts[i]++;
}

static const char *main_reason(const Reasons *reasons) {
    int best = 0;
    for (int i = 1; i < 8; i++)
        if (reasons->counts[i] > reasons->counts[best]) best = i;
    return reasons->texts[best];
}

typedef struct Run {
    Check *check;
    Subject *s;
    SlopeGradcheckResult *result;
    Worst worst[PARTS];
    Reasons reasons;
    double epsilon;
    int64_t work;
} Run;

static void merge(Run *run, const Probe *p) {
    for (int i = 0; i < PARTS; i++) {
        const Worst *found = &p->worst[i];
        Worst *worst = &run->worst[i];
        if (!found->x) continue;
        double error = fmax(worst->error, found->error);
        if (is_better(worst, found->told, found->is_single, run->result->tolerance)) {
            *worst = *found;
            worst->x = arena_copy(run->check->arena, found->x, sizeof(double) * (size_t)run->s->nin);
        }
        worst->error = error;
    }
}

/* Tries the point (NULL: one that is drawn). */
static void try_point(Run *run, int attempt, const double *point) {
    Subject *s = run->s;
    Arena *scratch = arena_scratch(run->check->arena);
    size_t outputs = (size_t)s->noutputs;
    uint64_t name = hash_bytes(s->name, strlen(s->name), run->check->options->seed);
    Probe p = {.check = run->check,
               .s = s,
               .scratch = scratch,
               .tolerance = run->result->tolerance,
               .epsilon = run->epsilon,
               .random = {hash_mix(name, (uint64_t)attempt)},
               .x = arena_array(scratch, double, s->nin),
               .y0 = arena_array(scratch, double, outputs),
               .y = arena_array(scratch, double, outputs),
               .dy = arena_array(scratch, double, outputs),
               .row = arena_array(scratch, double, outputs),
               .dx = arena_array(scratch, double, s->ninputs)};
    if (point) memcpy(p.x, point, sizeof(double) * (size_t)s->nin);
    else draw(&p, attempt, p.x);
    int64_t before = run->check->steps;
    probe(&p, run->result->samples);
    run->work += run->check->steps - before;
    if (p.unusable) {
        run->result->discarded++;
        count_reason(&run->reasons, format_text(run->check->arena, "%s", p.unusable));
    } else {
        run->result->samples++;
        merge(run, &p);
    }
    arena_free(scratch);
}

/* ---- verdicts */

static const char *describe(const Run *run, PartKind part) {
    Arena *arena = run->check->arena;
    const Worst *worst = &run->worst[part];
    Text text = {.arena = arena}, got = text, wanted = text;
    text_float(&got, worst->got, WIDTH_float);
    text_float(&wanted, worst->wanted, WIDTH_float);
    const char *mode = part == PART_bwd ? "bwd_diff" : "fwd_diff";
    const char *input = worst->input ? worst->input : "a mixed direction",
               *output = worst->output ? worst->output : "a mixture";
    if (part == PART_identity)
        return format_text(arena, "fwd_diff and bwd_diff do not fit together: <u, J^T v> - <J u, v> is %s",
                           got.at);
    if (part == PART_value)
        return format_text(arena, "fwd_diff: %s itself is %s, the function gives %s", output, got.at,
                           wanted.at);
    return format_text(arena, "%s: d %s / d %s is %s, differences give %s", mode, output, input, got.at,
                       wanted.at);
}

static const char *point_text(const Run *run, const double *x, bool names) {
    Text text = {.arena = run->check->arena};
    for (int i = 0; i < run->s->slots.count; i++) {
        const Slot *slot = &run->s->slots.at[i];
        if (slot->in < 0) continue;
        if (text.len) text_add(&text, names ? STR(", ") : STR(","));
        if (names) text_printf(&text, "%s = ", slot->name);
        if (slot->kind >= TYPE_half) text_float(&text, x[slot->in], (FloatWidth)(slot->kind - TYPE_half));
        else text_printf(&text, "%lld", (long long)x[slot->in]);
    }
    return text.at;
}

static const char *join(Arena *arena, const char *a, const char *b) {
    return a ? format_text(arena, "%s; %s", a, b) : b;
}

/* Are both modes right but for what differences say? */
static bool agrees_with_itself(const Run *run) {
    double tolerance = run->result->tolerance;
    bool both = run->s->fwd && run->s->bwd;
    return both && run->worst[PART_identity].error <= tolerance && run->worst[PART_value].error <= tolerance;
}

static void conclude(Run *run, int wanted) {
    SlopeGradcheckResult *result = run->result;
    Arena *arena = run->check->arena;
    const char *reason = main_reason(&run->reasons);
    const Worst *worst = &run->worst[0];
    for (int i = 0; i < PARTS; i++) {
        bool worse = run->worst[i].x && (!worst->x || run->worst[i].error > worst->error);
        if (worse) worst = &run->worst[i];
        if (!(run->worst[i].error > result->tolerance)) continue;
        result->verdict = SLOPE_VERDICT_wrong;
        bool follows = i == PART_identity && result->message; /* it says nothing new */
        if (!follows) result->message = join(arena, result->message, describe(run, (PartKind)i));
    }
    if (worst->x)
        result->point = point_text(run, worst->x, false), result->inputs = point_text(run, worst->x, true);
    if (run->s->fwd && result->samples)
        result->fwd_error = fmax(run->worst[PART_value].error, run->worst[PART_fwd].error);
    if (run->s->bwd && result->samples) result->bwd_error = run->worst[PART_bwd].error;
    if (run->s->fwd && run->s->bwd && result->samples)
        result->identity_error = run->worst[PART_identity].error;
    if (result->verdict == SLOPE_VERDICT_wrong && run->s->cuts_references && agrees_with_itself(run)) {
        result->verdict = SLOPE_VERDICT_unknown;
        result->message = format_text(arena,
                                      "it reads through references that are constants to derivatives, which "
                                      "differences cannot tell; %s",
                                      result->message);
        return;
    }
    if (result->verdict == SLOPE_VERDICT_wrong) return;
    if (!result->samples) result->verdict = SLOPE_VERDICT_unknown;
    int tried = result->samples + result->discarded;
    if (tried == 1 && reason) result->message = reason;
    else if (!result->samples)
        result->message = format_text(arena, "none of %d points was of use: %s", tried, reason);
    else if (result->samples < wanted && reason)
        result->message =
            format_text(arena, "only %d of %d points were of use: %s", result->samples, tried, reason);
    else if (result->samples < wanted)
        result->message = format_text(arena, "only %d points were tried: it takes long", tried);
    if (is_late(run->check) && result->samples < wanted)
        result->message = format_text(arena, "the time limit was reached; points that were tried: %d", tried);
}

static double default_tolerance(const Subject *s) {
    double through_buffers =
        rounding_of(s) > DBL_EPSILON ? 10 : 1; /* the function itself is rounded there too */
    return through_buffers * (s->narrowest == TYPE_half ? 2e-2 : s->narrowest == TYPE_float ? 1e-4 : 1e-6);
}

void gradcheck_subject(Check *check, Subject *s, SlopeGradcheckResult *result) {
    const SlopeGradcheckOptions *options = check->options;
    check->deadline = seconds_now() + (options->seconds > 0 ? options->seconds : DEFAULT_SECONDS);
    Run run = {.check = check, .s = s, .result = result, .epsilon = epsilon_of(s->narrowest)};
    result->tolerance = options->tolerance > 0 ? options->tolerance : default_tolerance(s);
    int wanted = options->samples > 0 ? options->samples : DEFAULT_SAMPLES;
    int64_t most = 10 * (int64_t)wanted + 20;
    for (int i = 0; i < s->npoints; i++) try_point(&run, i, s->points[i]);
    for (int i = 0; i < most && !s->npoints; i++) {
        if (result->samples >= wanted || (run.work > WORK_LIMIT && result->samples > 0)) break;
        if (is_late(check)) break;
        try_point(&run, i, NULL);
    }
    conclude(&run, s->npoints ? s->npoints : wanted);
}
