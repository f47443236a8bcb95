/* Passes: what they tell and what they are told; that they stay linear. What they do is in tests/ir. */
#include "opt/opt.h"

#include <time.h>

#include "ir_module.h"

/* The last function of the text. */
static Func *read_func(const char *text) {
    if (!parse(text)) fail_msg("%s", message);
    return vec_last(&module->funcs);
}

static void count_calls(void *user, Inst *inst) { *(int *)user += inst->op == OP_call; }

static int calls_in(const Func *func) {
    int calls = 0;
    region_walk(func->body, count_calls, &calls);
    return calls;
}

/* ---- what they tell */

typedef bool (*Pass)(Func *func);

static bool inline_any(Func *func) { return opt_inline(func, (InlinePolicy){.max_size = 100}); }

static const struct {
    const char *name;
    Pass pass;
} passes[] = {{"sroa", opt_sroa},     {"ssa", opt_ssa},       {"simplify", opt_simplify}, {"cse", opt_cse},
              {"licm", opt_licm},     {"upward", opt_upward}, {"unroll", opt_unroll},     {"dce", opt_dce},
              {"inline", inline_any}, {"asked", opt_asked}};
#define PASS_COUNT ((int)(sizeof passes / sizeof *passes))

static void nothing_to_do_is_told(void **state) {
    (void)state;
    Func *func = read_func("func @g(%x: float) -> float noinline {\n  return %x\n}\n"
                           "func @f(%n: int, %x: float, %p: inout float) -> float {\n"
                           "  %i, %s = loop (%i.1: int = 0, %s.1: float = %x) {\n"
                           "    %c = lt %i.1, %n\n    yield %c\n  } do {\n"
                           "    %0 = load %p\n    %1 = mul %s.1, %0\n    %2 = call @g(%1)\n    store %p, %2\n"
                           "    %3 = add %i.1, 1\n    yield %3, %1\n  }\n  return %s\n}\n");
    Func *declared = func_new(module, "declared");
    const char *before = print_func(func);
    for (int i = 0; i < PASS_COUNT; i++) {
        if (passes[i].pass(func)) fail_msg("%s says that it changed something", passes[i].name);
        assert_string_equal(print_func(func), before);
        assert_false(passes[i].pass(declared));
    }
}

/* ---- inlining */

static bool veto(void *user, const Func *callee, const Inst *call) {
    assert_ptr_equal(call->callee, callee);
    return strcmp(callee->name->text, user) != 0;
}

static const char calls[] = "func @small(%x: float) -> float {\n  %0 = neg %x\n  return %0\n}\n"
                            "func @large(%x: float) -> float {\n  %0 = neg %x\n  %1 = sin %0\n  %2 = cos %1\n"
                            "  return %2\n}\n"
                            "func @forced(%x: float) -> float inline {\n  %0 = sin %x\n  %1 = sin %0\n"
                            "  %2 = sin %1\n  return %2\n}\n"
                            "func @f(%x: float) -> float {\n  %0 = call @small(%x)\n  %1 = call @large(%0)\n"
                            "  %2 = call @forced(%1)\n  return %2\n}\n";

static void the_policy_decides(void **state) {
    (void)state;
    Func *func = read_func(calls);
    assert_true(opt_inline(func, (InlinePolicy){.max_size = 2}));
    assert_int_equal(calls_in(func), 1); /* large */
    tear_down(NULL), set_up(NULL);
    func = read_func(calls);
    assert_true(opt_inline(func, (InlinePolicy){.max_size = 100, .may = veto, .user = "forced"}));
    assert_int_equal(calls_in(func), 1);
    tear_down(NULL), set_up(NULL);
    func = read_func(calls);
    assert_true(opt_inline(func, (InlinePolicy){.max_size = 0}));
    assert_int_equal(calls_in(func), 2); /* only what says [ForceInline] */
    assert_null(ir_verify(&arena, func));
}

static void mutual_recursion_ends(void **state) {
    (void)state;
    Func *func =
        read_func("func @a(%n: int) -> int {\n  %0 = call @b(%n)\n  %1 = call @b(%0)\n  return %1\n}\n"
                  "func @b(%n: int) -> int {\n  %0 = call @a(%n)\n  %1 = call @a(%0)\n  return %1\n}\n"
                  "func @f(%n: int) -> int {\n  %0 = call @a(%n)\n  return %0\n}\n");
    assert_true(opt_inline(func, (InlinePolicy){.max_size = 100}));
    assert_int_equal(calls_in(func), 4); /* a, twice b in it, twice a in each of those */
    assert_null(ir_verify(&arena, func));
}

/* ---- unrolling */

static void loops_that_stay_are_reported(void **state) {
    (void)state;
    Func *func =
        read_func("func @f(%n: int) {\n"
                  "  %i = loop unroll -1 (%i.1: int = 0) {\n    %c = lt %i.1, %n\n    yield %c\n  } do {\n"
                  "    %0 = add %i.1, 1\n    yield %0\n  }\n  return\n}\n");
    assert_false(opt_unroll(func));
    diags_flush(&diags);
    assert_string_equal(
        message, "2:8: this loop is not unrolled: the number of iterations is not known, or too large");
    assert_int_equal(diags.warnings, 1);
}

static int trips(const char *initial, const char *test, const char *step) {
    tear_down(NULL), set_up(NULL);
    Func *func =
        read_func(format_text(&arena,
                              "func @f(%%p: inout int) {\n"
                              "  %%r = loop unroll -1 (%%i: int = %s) {\n    %%c = %s\n    yield %%c\n"
                              "  } do {\n    store %%p, %%i\n    %%0 = %s\n    yield %%0\n  }\n  return\n}\n",
                              initial, test, step));
    int count = 0;
    module->many_threads = true; /* where much straight code is no reason to keep a loop */
    if (!opt_unroll(func)) return -1;
    assert_null(ir_verify(&arena, func));
    for (const Inst *inst = func->body->first; inst; inst = inst->next) count += inst->op == OP_store;
    return count;
}

static void trips_are_counted_by_running(void **state) {
    (void)state;
    assert_int_equal(trips("0", "lt %i, 5", "add %i, 1"), 5);
    assert_int_equal(trips("0", "le %i, 5", "add %i, 2"), 3);
    assert_int_equal(trips("10", "lt 0, %i", "sub %i, 3"), 4);
    assert_int_equal(trips("1", "lt %i, 100", "mul %i, 3"), 5);
    assert_int_equal(trips("7", "ne %i, 1", "shr %i, 1"), 2);
    assert_int_equal(trips("5", "lt %i, 5", "add %i, 1"), 0);
    assert_int_equal(trips("0", "lt %i, 4096", "add %i, 1"), 4096);
    assert_int_equal(trips("0", "lt %i, 4097", "add %i, 1"), -1);
    assert_int_equal(trips("0", "lt %i, 5", "mul %i, 1"), -1); /* never ends */
}

static bool unrolls_with_continue(const char *at_continue) {
    tear_down(NULL), set_up(NULL);
    Func *func = read_func(
        format_text(&arena,
                    "func @f(%%c: bool) -> int {\n"
                    "  %%r = loop #1 unroll -1 (%%i: int = 0) {\n    %%g = lt %%i, 4\n    yield %%g\n"
                    "  } do {\n    if %%c {\n      %%a = add %%i, %s\n      continue #1 %%a\n    }\n"
                    "    %%b = add %%i, 1\n    yield %%b\n  }\n  return %%r\n}\n",
                    at_continue));
    return opt_unroll(func);
}

static void all_ways_must_count_alike(void **state) {
    (void)state;
    assert_true(unrolls_with_continue("1"));
    assert_false(unrolls_with_continue("2"));
}

/* ---- loops that end */

static bool ends(const char *type, const char *test, const char *step) {
    tear_down(NULL), set_up(NULL);
    Func *func =
        read_func(format_text(&arena,
                              "func @f(%%n: %s) {\n"
                              "  %%r = loop (%%i: %s = 0:%s) {\n    %%c = %s\n    yield %%c\n  } do {\n"
                              "    %%0 = %s\n    yield %%0\n  }\n  return\n}\n",
                              type, type, type, test, step));
    bool finite = loop_is_finite(func->body->first, NULL, 0);
    opt_dce(func);
    assert_int_equal(func->body->first->op == OP_return, finite);
    return finite;
}

static void endless_loops_are_not_taken_for_finite(void **state) {
    (void)state;
    assert_true(ends("int", "lt %i, %n", "add %i, 1"));
    assert_true(ends("int", "lt %n, %i", "sub %i, 1"));
    assert_true(ends("int", "lt %i, 100", "add %i, 7"));
    assert_true(ends("int", "le %i, 100", "add %i, 1"));
    assert_true(ends("uint", "lt %i, 4294967290:uint", "add %i, 5:uint"));
    assert_true(ends("int", "ne %i, %n", "add %i, 1"));
    assert_false(ends("int", "le %i, %n", "add %i, 1"));         /* n may be the greatest number */
    assert_false(ends("int", "lt %i, %n", "add %i, 2"));         /* may jump over the end */
    assert_false(ends("int", "lt %i, 2147483647", "add %i, 2")); /* does */
    assert_false(ends("int", "lt %i, %n", "sub %i, 1:int"));
    assert_false(ends("int", "lt %i, %n", "mul %i, 2"));
    assert_false(ends("uint", "le 0:uint, %i", "sub %i, 1:uint"));
    assert_false(ends("int", "ne %i, %n", "add %i, 2"));
}

/* ---- size: twenty thousand instructions in a moment, whatever their shape */

static void straight_code(Text *t, int n) {
    text_printf(t, "func @f(%%x: float, %%p: inout float) -> float {\n  %%v0 = add %%x, 1.0\n");
    for (int i = 1; i < n; i++) text_printf(t, "  %%v%d = mul %%v%d, %%x\n", i, i - 1);
    text_printf(t, "  return %%v%d\n}\n", n - 1);
}

static void stores_and_loads(Text *t, int n) {
    text_printf(t, "func @f(%%x: float, %%a: inout float[64]) -> float {\n  %%s = var float\n");
    for (int i = 0; i < n / 4; i++)
        text_printf(t,
                    "  %%e%d = elem %%a, %d\n  %%l%d = load %%e%d\n  store %%e%d, %%x\n  store %%s, %%l%d\n",
                    i, i % 64, i, i, (i * 7) % (i + 1), i);
    text_printf(t, "  %%r = load %%s\n  return %%r\n}\n");
}

static void many_variables_in_a_loop(Text *t, int n) {
    text_printf(t, "func @f(%%n: int) -> int {\n");
    for (int i = 0; i < n / 4; i++) text_printf(t, "  %%v%d = var int\n", i);
    text_printf(t, "  loop {\n    %%c = load %%v0\n    %%go = lt %%c, %%n\n    yield %%go\n  } do {\n");
    for (int i = 0; i < n / 4; i++)
        text_printf(t, "    %%l%d = load %%v%d\n    %%m%d = add %%l%d, 1\n    store %%v%d, %%m%d\n", i, i, i,
                    i, i, i);
    text_printf(t, "  }\n  %%r = load %%v1\n  return %%r\n}\n");
}

static void many_branches(Text *t, int n) {
    text_printf(t, "func @f(%%c: bool, %%x: float) -> float {\n  %%v = var float\n");
    for (int i = 0; i < n / 5; i++)
        text_printf(t, "  if %%c {\n    %%l%d = load %%v\n    %%m%d = sin %%l%d\n    store %%v, %%m%d\n  }\n",
                    i, i, i, i);
    text_printf(t, "  %%r = load %%v\n  return %%r\n}\n");
}

static void deep_branches(Text *t, int n) {
    int depth = n / 20; /* a chain of else-ifs */
    text_printf(t, "func @f(%%k: int, %%x: float) -> float {\n  %%v = var float\n");
    for (int i = 0; i < depth; i++)
        text_printf(
            t, "  %%c%d = eq %%k, %d\n  if %%c%d {\n    %%s%d = sin %%x\n    store %%v, %%s%d\n  } else {\n",
            i, i, i, i, i);
    for (int i = 0; i < depth; i++) text_printf(t, "  }\n");
    text_printf(t, "  %%r = load %%v\n  return %%r\n}\n");
}

static void early_exits(Text *t, int n) {
    text_printf(t, "func @f(%%k: int, %%x: float) -> float {\n  %%r = block #1 -> float {\n");
    for (int i = 0; i < n / 20; i++)
        text_printf(
            t, "    %%c%d = eq %%k, %d\n    if %%c%d {\n      break #1 %d.0\n    }\n    %%s%d = sin %%x\n", i,
            i, i, i, i);
    text_printf(t, "    yield %%x\n  }\n  return %%r\n}\n");
}

static void many_loops(Text *t, int n) {
    text_printf(t, "func @f(%%n: int, %%x: float, %%p: inout float) {\n");
    for (int i = 0; i < n / 8; i++)
        text_printf(t,
                    "  %%r%d = loop unroll -1 (%%i%d: int = 0) {\n    %%c%d = lt %%i%d, 2\n    yield %%c%d\n "
                    " } do {\n"
                    "    %%a%d = mul %%x, %%x\n    store %%p, %%a%d\n    %%b%d = add %%i%d, 1\n    yield "
                    "%%b%d\n  }\n",
                    i, i, i, i, i, i, i, i, i, i);
    text_printf(t, "  return\n}\n");
}

static void many_records(Text *t, int n) {
    text_printf(t,
                "struct S {\n  a: float\n  b: float[3]\n}\nfunc @f(%%x: float) -> float {\n  %%s0 = var S\n");
    for (int i = 1; i < n / 4; i++)
        text_printf(t, "  %%s%d = var S\n  %%f%d = field %%s%d, a\n  store %%f%d, %%x\n  copy %%s%d, %%s%d\n",
                    i, i, i, i, i, i - 1);
    text_printf(t, "  return %%x\n}\n");
}

static void many_calls(Text *t, int n) {
    text_printf(t, "func @g(%%x: float) -> float {\n  %%0 = lt %%x, 0.0\n  if %%0 {\n    return 0.0\n  }\n"
                   "  %%1 = sqrt %%x\n  return %%1\n}\nfunc @f(%%x: float) -> float {\n  %%v0 = neg %%x\n");
    for (int i = 1; i < n / 6; i++) text_printf(t, "  %%v%d = call @g(%%v%d)\n", i, i - 1);
    text_printf(t, "  return %%v%d\n}\n", n / 6 - 1);
}

typedef void (*Shape)(Text *text, int size);

static const struct {
    const char *name;
    Shape shape;
} shapes[] = {{"straight code", straight_code},
              {"stores and loads", stores_and_loads},
              {"many variables in a loop", many_variables_in_a_loop},
              {"many branches", many_branches},
              {"deep branches", deep_branches},
              {"early exits", early_exits},
              {"many loops", many_loops},
              {"many records", many_records},
              {"many calls", many_calls}};

static double seconds_since(clock_t start) { return (double)(clock() - start) / CLOCKS_PER_SEC; }

/* Anything quadratic would take minutes; the limit leaves room for sanitizers on a slow machine. */
#define SECONDS 4.0

static void large_functions_take_a_moment(void **state) {
    (void)state;
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        tear_down(NULL), set_up(NULL);
        Text text = {.arena = &arena};
        shapes[i].shape(&text, 20000);
        clock_t start = clock();
        Func *func = read_func(text.at);
        if (seconds_since(start) > SECONDS) fail_msg("%s: reading took too long", shapes[i].name);
        for (int round = 0; round < 2; round++)
            for (int j = 0; j < PASS_COUNT; j++) {
                start = clock();
                passes[j].pass(func);
                const char *wrong = ir_verify(&arena, func);
                double taken = seconds_since(start);
                if (wrong) fail_msg("%s: %s: %s", shapes[i].name, passes[j].name, wrong);
                if (taken > SECONDS) fail_msg("%s: %s took %.1f s", shapes[i].name, passes[j].name, taken);
            }
        start = clock();
        print_func(func);
        if (seconds_since(start) > SECONDS) fail_msg("%s: printing took too long", shapes[i].name);
    }
}

/* ---- lanes: what is estimated with registers of 128, 256 and 512 bits, on whatever machine */

/* What an item does: it takes x0 from a buffer, and each step makes the next x. */
typedef void (*LaneStep)(Text *t, int i);

static void lane_arithmetic(Text *t, int i) {
    text_printf(t, "%%y%d = mul %%x%d, %%x%d\n%%x%d = add %%y%d, %%x%d\n", i, i - 1, i - 1, i, i, i - 1);
}

static void lane_in_double(Text *t, int i) {
    text_printf(t, "%%d%d: double = convert %%x%d\n%%t%d = mul %%d%d, %%d%d\n", i, i - 1, i, i, i);
    text_printf(t, "%%u%d = mul %%t%d, %%d%d\n%%v%d = mul %%u%d, %%t%d\n", i, i, i, i, i, i);
    text_printf(t, "%%x%d: float = convert %%v%d\n", i, i);
}

static void lane_logarithm(Text *t, int i) { text_printf(t, "%%x%d = log1p %%x%d\n", i, i - 1); }

/* A power, which vectors have, and tangents. */
static void lane_power(Text *t, int i) {
    if (i == 1) text_printf(t, "%%x1 = pow %%x0, %%x0\n");
    else text_printf(t, "%%x%d = tanh %%x%d\n", i, i - 1);
}

/* A nest of short loops over an array, which is written out. */
static void lane_nest(Text *t, int i) {
    text_printf(t, "%%v%d = var float[4]\n%%q%d = elem %%v%d, 0\nstore %%q%d, %%x%d\n", i, i, i, i, i - 1);
    text_printf(t, "%%n%d.2 = loop (%%n%d: int = 0) {\n%%m%d = lt %%n%d, 4\nyield %%m%d\n} do {\n", i, i, i,
                i, i);
    text_printf(t, "%%k%d.2 = loop (%%k%d: int = 1) {\n%%l%d = lt %%k%d, 4\nyield %%l%d\n} do {\n", i, i, i,
                i, i);
    text_printf(t, "%%e%d = elem %%v%d, %%n%d\n%%a%d = load %%e%d\n", i, i, i, i, i);
    text_printf(t, "%%b%d = mul %%a%d, %%x%d\n%%f%d = elem %%v%d, %%k%d\nstore %%f%d, %%b%d\n", i, i, i - 1,
                i, i, i, i, i);
    text_printf(t, "%%k%d.1 = add %%k%d, 1\nyield %%k%d.1\n}\n", i, i, i);
    text_printf(t, "%%n%d.1 = add %%n%d, 1\nyield %%n%d.1\n}\n", i, i, i);
    text_printf(t, "%%g%d = elem %%v%d, 3\n%%x%d = load %%g%d\n", i, i, i, i);
}

static void lane_wave(Text *t, int i) { text_printf(t, "%%x%d = sin %%x%d\n", i, i - 1); }

static void lane_quotient(Text *t, int i) {
    text_printf(t, "%%y%d = add %%x%d, 2.0\n%%x%d = div %%x%d, %%y%d\n", i, i - 1, i, i - 1, i);
}

static void lane_distant(Text *t, int i) {
    text_printf(t, "%%w%d = mul %%i, 3:uint\n%%j%d = add %%w%d, %d:uint\n", i, i, i, i);
    text_printf(t, "%%e%d = buffer_elem %%data, %%j%d\n%%a%d = load %%e%d\n", i, i, i, i);
    text_printf(t, "%%x%d = mul %%a%d, %%x%d\n", i, i, i - 1);
}

static void lane_tangent(Text *t, int i) { text_printf(t, "%%x%d = tanh %%x%d\n", i, i - 1); }

static void lane_anywhere(Text *t, int i) {
    text_printf(t, "%%w%d: uint = convert %%x%d\n%%e%d = buffer_elem %%data, %%w%d\n", i, i - 1, i, i);
    text_printf(t, "%%a%d = load %%e%d\n%%b%d = mul %%a%d, %%x%d\n", i, i, i, i, i - 1);
    text_printf(t, "%%x%d = div %%a%d, %%b%d\n", i, i, i);
}

static void lane_row(Text *t, int i) {
    text_printf(t, "%%w%d = mul %%i, 32:uint\n%%j%d = add %%w%d, %d:uint\n", i, i, i, i);
    text_printf(t, "%%e%d = buffer_elem %%data, %%j%d\n%%a%d = load %%e%d\n", i, i, i, i);
    text_printf(t, "%%b%d = mul %%a%d, %%x%d\n%%c%d = mul %%b%d, %%b%d\n", i, i, i - 1, i, i, i);
    text_printf(t, "%%f%d = sqrt %%c%d\n%%x%d = div %%f%d, %%b%d\n", i, i, i, i, i);
}

static void lane_sums(Text *t, int i) {
    text_printf(t, "%%x%d = mul %%x%d, %%x%d\n%%k%d.2 = loop (%%k%d: uint = 0:uint) {\n", i, i - 1, i - 1, i,
                i);
    text_printf(t, "%%l%d = lt %%k%d, 64:uint\nyield %%l%d\n} do {\n", i, i, i);
    text_printf(t, "%%e%d = buffer_elem writes %%sums, %%k%d\n%%w%d = atomic add %%e%d, %%x%d\n", i, i, i, i,
                i);
    text_printf(t, "%%k%d.1 = add %%k%d, 1:uint\nyield %%k%d.1\n}\n", i, i, i);
}

static void lane_one_sum(Text *t, int i) {
    if (i == 1) text_printf(t, "%%v = rem %%i, 64:uint\n%%d = buffer_elem %%data, %%v\n%%a = load %%d\n");
    text_printf(t, "%%x%d = mul %%a, %%x%d\n%%e%d = buffer_elem writes %%sums, %d:uint\n", i, i - 1, i, i);
    text_printf(t, "%%w%d = atomic add %%e%d, %%x%d\n", i, i, i);
}

/* A loop that hands on what it computes, which LLVM does one round at a time. */
static void lane_root(Text *t, int i) {
    text_printf(t, "%%m%d, %%x%d = loop (%%k%d: uint = 0:uint, %%y%d: float = 1.0) {\n", i, i, i, i);
    text_printf(t, "%%l%d = lt %%k%d, 64:uint\nyield %%l%d\n} do {\n", i, i, i);
    text_printf(t, "%%d%d = div %%x%d, %%y%d\n%%s%d = add %%d%d, %%y%d\n", i, i - 1, i, i, i, i);
    text_printf(t, "%%h%d = mul %%s%d, 0.5\n%%k%d.1 = add %%k%d, 1:uint\nyield %%k%d.1, %%h%d\n}\n", i, i, i,
                i, i, i);
}

static void lane_row_and_root(Text *t, int i) {
    if (i == 1) lane_root(t, i);
    else lane_row(t, i);
}

/* LLVM does the row of several rounds at once beside a sine, and beside no arc. */
static void lane_row_and_arc(Text *t, int i) {
    if (i == 1) text_printf(t, "%%x1 = acos %%x0\n");
    else lane_row(t, i);
}

static void lane_distant_and_arc(Text *t, int i) {
    if (i == 1) text_printf(t, "%%x1 = acos %%x0\n");
    else lane_distant(t, i);
}

/* A root in double, of which a register has two, and arcs, which are done one by one. */
static void lane_in_pairs(Text *t, int i) {
    text_printf(t, "%%g%d: double = convert %%x%d\n", i, i - 1);
    if (i > 1) text_printf(t, "%%h%d = acos %%g%d\n", i, i);
    else
        text_printf(t, "%%m, %%h1 = loop (%%k: uint = 0:uint, %%y: double = 1.0:double) {\n"
                       "%%l1 = lt %%k, 64:uint\nyield %%l1\n} do {\n%%d = div %%g1, %%y\n%%s = add %%d, %%y\n"
                       "%%s.1 = mul %%s, 0.5:double\n%%k.1 = add %%k, 1:uint\nyield %%k.1, %%s.1\n}\n");
    text_printf(t, "%%x%d: float = convert %%h%d\n", i, i);
}

static void write_lane_func(Text *t, int threads) {
    text_printf(t, "global uniform @data: StructuredBuffer<float>\n"
                   "global uniform @out: RWStructuredBuffer<float>\n"
                   "global uniform @sums: RWStructuredBuffer<float>\n");
    text_printf(t, "func @f() export threads(%d, 1, 1) {\n%%p = global @data\n%%data = load %%p\n", threads);
    text_printf(t, "%%q = global @out\n%%out = load %%q\n%%r = global @sums\n%%sums = load %%r\n");
}

enum { SIZES = 3 };

typedef struct LaneCase {
    LaneStep step;
    int count; /* of steps */
    int widths[SIZES];
    const char *why; /* not more, with the smallest registers */
} LaneCase;

static void lane_sum(Text *t, int i) { text_printf(t, "%%x%d = add %%x%d, %%x0\n", i, i - 1); }

/* LLVM has sines for vectors, and no tangents. */
static bool is_for_llvm(LaneStep step) {
    return step == lane_wave || step == lane_quotient || step == lane_distant;
}

static void write_item(Text *t, const LaneCase *at) {
    text_printf(t, "%%e = buffer_elem %%data, %%i\n%%x0 = load %%e\n");
    for (int i = 1; i <= at->count; i++) at->step(t, i);
    text_printf(t, "%%o = buffer_elem writes %%out, %%i\n%%z = %s %%x%d\nstore %%o, %%z\n",
                at->step == lane_sum || at->step == lane_one_sum ? "neg"
                : is_for_llvm(at->step)                          ? "sin"
                                                                 : "tanh",
                at->count);
}

static void write_kernel(Text *t, int threads, const LaneCase *at) {
    write_lane_func(t, threads);
    text_printf(t, "%%id = thread_id 0\n%%i = extract %%id, 0\n");
    write_item(t, at);
    text_printf(t, "return\n}\n");
}

static LaneRemark lanes_of_kernel(const LaneCase *at, const LaneOptions *options) {
    Text text = {.arena = &arena};
    write_kernel(&text, 64, at);
    LaneRemark remark = {0};
    opt_lanes(read_func(text.at), options, &remark);
    return remark;
}

/* On the loop itself, not on those in it. */
static void keep_remark(void *user, const Func *func, const LaneRemark *remark) {
    LaneRemark *first = user;
    (void)func;
    if (first->width == 0) *first = *remark;
}

static LaneRemark lanes_among(const LaneCase *at, const LaneOptions *options, int others) {
    Text text = {.arena = &arena};
    text_printf(&text, "func @g(%%x: float) -> float export {\n%%v0 = add %%x, 1.0\n");
    for (int i = 1; i <= others; i++) text_printf(&text, "%%v%d = mul %%v%d, %%x\n", i, i - 1);
    text_printf(&text, "return %%v%d\n}\n", others);
    write_lane_func(&text, 1);
    text_printf(&text, "%%n = loop (%%i: uint = 0:uint) {\n%%l = lt %%i, 1000:uint\nyield %%l\n} do {\n");
    write_item(&text, at);
    text_printf(&text, "%%i.1 = add %%i, 1:uint\nyield %%i.1\n}\nreturn\n}\n");
    LaneRemark remark = {0};
    Func *funcs[2] = {NULL, read_func(text.at)};
    funcs[0] = module->funcs.at[0];
    opt_lane_loops(funcs, 2, options, &(LaneRemarks){keep_remark, &remark});
    return remark;
}

static LaneRemark lanes_of_loop(const LaneCase *at, const LaneOptions *options) {
    return lanes_among(at, options, 0);
}

static LaneRemark lanes_among_others(const LaneCase *at, const LaneOptions *options) {
    return lanes_among(at, options, 400);
}

typedef LaneRemark (*LanesOf)(const LaneCase *at, const LaneOptions *options);

static void look_at_lanes(const LaneCase *at, LanesOf lanes, bool alone) {
    static const int bits[SIZES] = {128, 256, 512};
    for (int i = 0; i < SIZES; i++) {
        tear_down(NULL), set_up(NULL);
        LaneRemark remark = lanes(at, &(LaneOptions){.register_bits = bits[i], .wave = 32, .alone = alone});
        const char *why = remark.why ? remark.why : "", *expected = i == 0 && at->why ? at->why : why;
        if (remark.width != at->widths[i] || strcmp(why, expected) != 0)
            fail_msg("%d steps with %d bits: %d lanes, not %d (%s)", at->count, bits[i], remark.width,
                     at->widths[i], why);
    }
}

static const char slow[] = "several at once would hardly be faster",
                  long_to_compile[] = "it would take long to compile";

static void lanes_are_chosen_by_registers(void **state) {
    (void)state;
    static const LaneCase cases[] = {
        {lane_arithmetic, 20, {8, 16, 16}, NULL},
        {lane_in_double, 6, {4, 8, 16}, NULL},
        {lane_logarithm, 4, {1, 16, 16}, slow},
        {lane_tangent, 4, {8, 16, 16}, NULL},
        {lane_anywhere, 3, {1, 8, 16}, slow},
        {lane_row, 4, {8, 16, 16}, NULL},
        {lane_row, 24, {8, 8, 16}, NULL},
        {lane_anywhere, 12, {1, 1, 16}, slow},
        {lane_sum, 19, {8, 16, 1}, NULL},
        {lane_sum, 20, {8, 16, 16}, NULL},
        {lane_one_sum, 12, {1, 1, 16}, long_to_compile},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        look_at_lanes(&cases[i], lanes_of_kernel, false);
}

/* It is no matter what else is compiled. */
static void loops_get_lanes_by_what_they_are(void **state) {
    (void)state;
    static const LaneCase cases[] = {
        {lane_arithmetic, 20, {8, 16, 16}, NULL},
        {lane_logarithm, 3, {1, 16, 16}, slow},
        {lane_row, 14, {1, 8, 16}, slow},
        {lane_row_and_arc, 14, {8, 8, 16}, NULL},
        {lane_distant_and_arc, 8, {8, 16, 16}, NULL},
        {lane_in_pairs, 12, {4, 8, 16}, NULL},
        {lane_in_pairs, 20, {1, 8, 16}, slow},
        {lane_row, 30, {1, 1, 16}, slow},
        {lane_row_and_root, 14, {8, 8, 16}, NULL},
        {lane_row_and_root, 27, {4, 4, 16}, NULL},
        {lane_row_and_root, 45, {4, 1, 16}, NULL},
        {lane_row_and_root, 90, {1, 1, 16}, long_to_compile},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        look_at_lanes(&cases[i], lanes_of_loop, false);
        look_at_lanes(&cases[i], lanes_among_others, false);
    }
}

/* Of sines lanes do twice as many as LLVM does by itself; quotients, and what lies at distances, gain nothing
 * by larger registers. */
static void loops_get_lanes_by_what_llvm_does(void **state) {
    (void)state;
    static const LaneCase cases[] = {
        {lane_distant, 4, {8, 16, 1}, NULL},
        {lane_power, 3, {8, 16, 16}, NULL},
        {lane_nest, 2, {1, 1, 16}, slow},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        look_at_lanes(&cases[i], lanes_of_loop, false);
}

/* Those of one thread are plain, and LLVM makes those of several places at once. */
static void sums_are_left_to_llvm_where_they_are_plain(void **state) {
    (void)state;
    look_at_lanes(&(LaneCase){lane_sums, 1, {8, 16, 16}, NULL}, lanes_of_loop, false);
    look_at_lanes(&(LaneCase){lane_sums, 1, {1, 1, 1}, NULL}, lanes_of_loop, true);
}

/* Each waits for the one before it. */
static void sums_of_items_in_one_place_are_made_together(void **state) {
    (void)state;
    look_at_lanes(&(LaneCase){lane_one_sum, 3, {8, 16, 8}, NULL}, lanes_of_kernel, true);
}

/* Sums that a kernel has for itself are as plain in the part that a loop becomes, and as little a reason for
 * lanes, as where one thread runs. */
static void own_sums_stay_so_in_loops(void **state) {
    static const char text[] =
        "func @f(%n: uint, %mine: RWStructuredBuffer<float> own) export threads(1, 1, 1) {\n"
        "%r.2 = loop (%r: uint = 0:uint) {\n%l = lt %r, %n\nyield %l\n} do {\n%s: float = convert %r\n"
        "%k.2 = loop (%k: uint = 0:uint) {\n%m = lt %k, 64:uint\nyield %m\n} do {\n"
        "%e = buffer_elem writes %mine, %k\n%w = atomic add %e, %s\n%k.1 = add %k, 1:uint\nyield %k.1\n}\n"
        "%r.1 = add %r, 1:uint\nyield %r.1\n}\nreturn\n}\n";
    (void)state;
    for (int width = 0; width <= 8; width += 8) {
        tear_down(NULL), set_up(NULL);
        Func *func = read_func(text);
        LaneRemark remark = {0};
        LaneOptions options = {.width = width, .register_bits = 128, .wave = 32};
        opt_lane_loops(&func, 1, &options, &(LaneRemarks){keep_remark, &remark});
        assert_int_equal(remark.width, width ? width : 1);
    }
    const Func *items = module->funcs.at[module->funcs.count - 1];
    assert_int_equal(items->nparams, 2);
    assert_int_equal(items->params[0].flags | items->params[1].flags, PARAM_OWN);
}

/* Groups of one thread are lanes where that is asked for, and no more than there are. */
static void groups_are_lanes_if_there_are_enough(void **state) {
    (void)state;
    static const struct {
        int wanted, groups, width;
    } cases[] = {{8, 0, 8}, {8, 8, 8}, {8, 7, 4}, {8, 1, 1}, {0, 64, 1}};
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        Text text = {.arena = &arena};
        LaneRemark remark = {0};
        tear_down(NULL), set_up(NULL);
        write_kernel(&text, 1, &(LaneCase){lane_arithmetic, 20, {0}, NULL});
        opt_lanes(read_func(text.at),
                  &(LaneOptions){
                      .width = cases[i].wanted, .groups = cases[i].groups, .register_bits = 128, .wave = 32},
                  &remark);
        assert_int_equal(remark.width, cases[i].width);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_to_do_is_told),
        TEST(the_policy_decides),
        TEST(mutual_recursion_ends),
        TEST(loops_that_stay_are_reported),
        TEST(trips_are_counted_by_running),
        TEST(all_ways_must_count_alike),
        TEST(endless_loops_are_not_taken_for_finite),
        TEST(lanes_are_chosen_by_registers),
        TEST(loops_get_lanes_by_what_they_are),
        TEST(loops_get_lanes_by_what_llvm_does),
        TEST(sums_are_left_to_llvm_where_they_are_plain),
        TEST(sums_of_items_in_one_place_are_made_together),
        TEST(own_sums_stay_so_in_loops),
        TEST(groups_are_lanes_if_there_are_enough),
        TEST(large_functions_take_a_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
