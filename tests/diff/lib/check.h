/* check.h: derivatives of a function against central differences: prints one line, "ok" if everything agrees, else the numbers.
     CHECK(f, x)          double f(double)
     CHECK_WITH(f, x, n)  double f(double, plain n...)
     CHECK2(f, x, y)      double f(double, double), each argument in turn
   SLOPES(f), SLOPES_WITH(f, type of n) define f_fwd and f_bwd, the derivative of f by either mode, as differentiable functions.
   SLOPES2(f) defines the second derivatives f_fwd_fwd, ... as well; CHECK_ALL(f, x) checks these six: all nestings of two and three. */
static const double STEP = 1e-4l;

bool near(double a, double b) { return abs(a - b) <= 1e-6l * max(1.0l, max(abs(a), abs(b))); }

void report(double at, double numeric, double forward, double reverse) {
    if (near(numeric, forward) && near(numeric, reverse)) printf("ok\n");
    else printf("at %g: numeric %.9g, forward %.9g, reverse %.9g\n", at, numeric, forward, reverse);
}

#define CHECK_WITH(f, x, n)                                                                                  \
    {                                                                                                        \
        var pair = diffPair(x, 99.0l);                                                                       \
        bwd_diff(f)(pair, n, 1.0l);                                                                          \
        double near_by = 8 * (f(x + STEP, n) - f(x - STEP, n)),                                              \
               far = f(x + 2 * STEP, n) - f(x - 2 * STEP, n);                                                \
        report(x, (near_by - far) / (12 * STEP), fwd_diff(f)(diffPair(x, 1.0l), n).d, pair.d);               \
    }

#define CHECK(f, x)                                                                                          \
    {                                                                                                        \
        var pair = diffPair(x, 99.0l);                                                                       \
        bwd_diff(f)(pair, 1.0l);                                                                             \
        double near_by = 8 * (f(x + STEP) - f(x - STEP)), far = f(x + 2 * STEP) - f(x - 2 * STEP);           \
        report(x, (near_by - far) / (12 * STEP), fwd_diff(f)(diffPair(x, 1.0l)).d, pair.d);                  \
    }

#define CHECK2(f, x, y)                                                                                      \
    {                                                                                                        \
        var first = diffPair(x, 99.0l), second = diffPair(y, 99.0l);                                         \
        bwd_diff(f)(first, second, 1.0l);                                                                    \
        double near_x = 8 * (f(x + STEP, y) - f(x - STEP, y)),                                               \
               far_x = f(x + 2 * STEP, y) - f(x - 2 * STEP, y);                                              \
        double near_y = 8 * (f(x, y + STEP) - f(x, y - STEP)),                                               \
               far_y = f(x, y + 2 * STEP) - f(x, y - 2 * STEP);                                              \
        report(x, (near_x - far_x) / (12 * STEP), fwd_diff(f)(diffPair(x, 1.0l), diffPair(y)).d, first.d);   \
        report(y, (near_y - far_y) / (12 * STEP), fwd_diff(f)(diffPair(x), diffPair(y, 1.0l)).d, second.d);  \
    }

#define SLOPES(f)                                                                                            \
    [Differentiable] double f##_fwd(double x) { return fwd_diff(f)(diffPair(x, 1.0l)).d; }                   \
    [Differentiable] double f##_bwd(double x) {                                                              \
        var p = diffPair(x, 9.0l);                                                                           \
        bwd_diff(f)(p, 1.0l);                                                                                \
        return p.d;                                                                                          \
    }

#define SLOPES_WITH(f, N)                                                                                    \
    [Differentiable] double f##_fwd(double x, N n) { return fwd_diff(f)(diffPair(x, 1.0l), n).d; }           \
    [Differentiable] double f##_bwd(double x, N n) {                                                         \
        var p = diffPair(x, 9.0l);                                                                           \
        bwd_diff(f)(p, n, 1.0l);                                                                             \
        return p.d;                                                                                          \
    }

#define SLOPES2(f) SLOPES(f) SLOPES(f##_fwd) SLOPES(f##_bwd)

#define CHECK_ALL(f, x)                                                                                      \
    {                                                                                                        \
        CHECK(f##_fwd, x);                                                                                   \
        CHECK(f##_bwd, x);                                                                                   \
        CHECK(f##_fwd_fwd, x);                                                                               \
        CHECK(f##_fwd_bwd, x);                                                                               \
        CHECK(f##_bwd_fwd, x);                                                                               \
        CHECK(f##_bwd_bwd, x);                                                                               \
    }
