/* The LLVM emitter and the interpreter against C: every elementwise operation on every type it takes, as a
 * scalar and in the lanes of a vector, on values at the edges; every conversion; the native calling
 * convention; several modules in one JIT; files. */
#include "emit/interp/interp.h"
#include "jitload.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- a session with one program */

typedef struct Fixture {
    Arena arena;
    Trap trap;
    Names names;
    Types types;
    Sources sources;
    Diags diags;
    Module *module;
    JitProgram program;
} Fixture;

static void show_diagnostic(void *user, const Diagnostic *diagnostic) {
    (void)user;
    print_error("%d:%d: %s\n", diagnostic->at.line, diagnostic->at.column, diagnostic->message);
}

static void fixture_open(Fixture *f, const EmitBackend *backend) {
    *f = (Fixture){0};
    arena_init(&f->arena, allocator_system, NULL);
    names_init(&f->names, &f->arena, NULL);
    types_init(&f->types, &f->arena, &f->names);
    sources_init(&f->sources, &f->arena, NULL);
    diags_init(&f->diags, &f->arena, &f->sources);
    f->diags.sink = show_diagnostic;
    f->module = module_new(&f->arena, &f->types, &f->names, &f->diags);
    assert_true(jit_open(&f->program, backend, NULL));
}

static void fixture_close(Fixture *f) {
    jit_close(&f->program);
    arena_free(&f->arena);
}

static void parse(Fixture *f, const char *text) {
    SourceFile *file = source_add(&f->sources, name_from(&f->names, "test.ir"), str_of(text));
    bool fine = ir_parse(f->module, file);
    diags_flush(&f->diags);
    assert_true(fine);
    for (int i = 0; i < f->module->funcs.count; i++) {
        const char *wrong = ir_verify(&f->arena, f->module->funcs.at[i]);
        if (wrong) print_error("%s\n", wrong);
        assert_null(wrong);
    }
}

static void compile_for(Fixture *f, int level, const char *cpu) {
    EmitOptions options = {.level = level, .verify = true, .cpu = cpu};
    assert_true(jit_compile(&f->program, f->module, &options));
}

static void compile(Fixture *f, int level) { compile_for(f, level, NULL); }

typedef struct Three {
    float x, y, z;
} Three;

typedef union Code {
    void *data;
    float (*float_float)(float);
    bool (*bool_bool)(bool);
    int8_t (*int8_int8)(int8_t);
    uint16_t (*half_half)(uint16_t);
    double (*mixed)(int, double, const float *, uint64_t, float *);
    void (*vector)(const float *, float, float *);
    const float *(*pointer)(const float *, int64_t);
    void (*launch)(uint32_t, uint32_t, uint32_t, float, const RtBuffer *);
    double (*mixed_values)(int, double, Three, uint64_t, float *); /* as C declares them */
    Three (*vector_values)(Three, float);
    void (*launch_values)(uint32_t, uint32_t, uint32_t, float, RtBuffer);
    int (*none)(void);
    int (*int_int)(int);
} Code;

static Code find(Fixture *f, EmitSymbol what, const char *name) {
    Code code = {f->program.backend->jit_find(f->program.jit, what, name)};
    if (!code.data) print_error("no %s\n", name);
    assert_non_null(code.data);
    return code;
}

/* ---- scalars of all types */

static const TypeKind all_kinds[] = {TYPE_bool,   TYPE_int8, TYPE_uint8, TYPE_int16,
                                     TYPE_uint16, TYPE_int,  TYPE_uint,  TYPE_int64,
                                     TYPE_uint64, TYPE_half, TYPE_float, TYPE_double};
static const char *const kind_names[] = {"bool", "int8_t",  "uint8_t",  "int16_t", "uint16_t", "int",
                                         "uint", "int64_t", "uint64_t", "half",    "float",    "double"};
enum { KINDS = 12, MAX_VALUES = 40 };

static const char *kind_name(TypeKind kind) { return kind_names[kind - TYPE_bool]; }
static bool is_float(TypeKind kind) { return kind >= TYPE_half; }
static bool is_signed(TypeKind kind) {
    return kind == TYPE_int8 || kind == TYPE_int16 || kind == TYPE_int || kind == TYPE_int64;
}
static int bits_of(TypeKind kind) {
    static const int bits[] = {1, 8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64};
    return bits[kind - TYPE_bool];
}
static size_t size_of(TypeKind kind) { return kind == TYPE_bool ? 1 : (size_t)bits_of(kind) / 8; }

/* A value as the widest of its sort: integers sign- or zero-extended. */
typedef struct Number {
    int64_t integer;
    double real;
} Number;

static int64_t wrap(TypeKind kind, int64_t value) {
    int unused = 64 - bits_of(kind);
    if (kind == TYPE_bool) return value & 1;
    if (is_signed(kind)) return (int64_t)((uint64_t)value << unused) >> unused;
    return (int64_t)((uint64_t)value << unused >> unused);
}

static double round_to(TypeKind kind, double value) {
    if (kind == TYPE_half) return (double)half_to_float(half_from_double(value));
    return kind == TYPE_float ? (double)(float)value : value;
}

static void put(TypeKind kind, Number number, char *to) {
    float single = (float)number.real;
    uint16_t half = half_from_double(number.real);
    if (kind == TYPE_double) memcpy(to, &number.real, 8);
    else if (kind == TYPE_float) memcpy(to, &single, 4);
    else if (kind == TYPE_half) memcpy(to, &half, 2);
    else memcpy(to, &number.integer, size_of(kind));
}

static Number get(TypeKind kind, const char *from) {
    Number number = {0};
    float single;
    uint16_t half;
    if (kind == TYPE_double) memcpy(&number.real, from, 8);
    else if (kind == TYPE_float) memcpy(&single, from, 4), number.real = (double)single;
    else if (kind == TYPE_half) memcpy(&half, from, 2), number.real = (double)half_to_float(half);
    else memcpy(&number.integer, from, size_of(kind)), number.integer = wrap(kind, number.integer);
    return number;
}

static bool same(TypeKind kind, Number a, Number b) {
    if (!is_float(kind)) return a.integer == b.integer;
    if (isnan(a.real) || isnan(b.real)) return isnan(a.real) && isnan(b.real);
    return a.real == b.real && signbit(a.real) == signbit(b.real);
}

/* Values at the edges of a type. */
static int edge_values(TypeKind kind, Number *values) {
    static const double reals[] = {0.0,   -0.0,    1.0,    -1.0,  0.5,  -0.5,     1.5,  2.5,
                                   -2.5,  3.25,    0.1,    -7.0,  10.0, 100.7,    1e-4, 1e-7,
                                   -3e4,  65504.0, 1e10,   -1e20, 1e38, INFINITY, NAN,  -0.9,
                                   127.5, 2e9,     -2.2e9, 4.3e9, 1e19, 255.9,    6e-8, -INFINITY};
    int count = 0;
    if (is_float(kind)) {
        for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
            values[count++] = (Number){.real = round_to(kind, reals[i])};
        if (kind == TYPE_double) values[count++] = (Number){.real = 1.00048828125000001};
        return count;
    }
    int bits = bits_of(kind);
    const uint64_t top = (uint64_t)1 << (bits - 1);
    const int64_t integers[] = {
        0,  1,        -1, 2,  3,           -3, 7, 10, -10, 63, 5, (int64_t)(top - 1), (int64_t)(top - 2),
        12, 0x5a5a5a, 33, 31, (int64_t)top};
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        values[count++] = (Number){.integer = wrap(kind, integers[i])};
    return count;
}

/* ---- what the operations mean, in C */

typedef struct Case {
    Op op;
    TypeKind kind, result;
    int nargs;
} Case;

static Number integer(TypeKind kind, int64_t value) { return (Number){.integer = wrap(kind, value)}; }

static int highest_bit(uint64_t value) {
    int bit = -1;
    for (; value; value >>= 1) bit++;
    return bit;
}

static int lowest_bit(uint64_t value) {
    if (value == 0) return -1;
    int bit = 0;
    for (; !(value & 1); value >>= 1) bit++;
    return bit;
}

static uint64_t reversed(uint64_t value, int bits) {
    uint64_t result = 0;
    for (int i = 0; i < bits; i++) result = result << 1 | (value >> i & 1);
    return result;
}

static int64_t divide(TypeKind kind, int64_t a, int64_t b, bool remainder) {
    if (b == 0) return -1;
    if (!is_signed(kind)) {
        uint64_t u = (uint64_t)a, v = (uint64_t)b;
        return (int64_t)(remainder ? u % v : u / v);
    }
    if (b == -1) return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
    return remainder ? a % b : a / b;
}

static bool less(TypeKind kind, int64_t a, int64_t b) {
    return is_signed(kind) ? a < b : (uint64_t)a < (uint64_t)b;
}

static Number on_integers(Case c, int64_t a, int64_t b) {
    int bits = bits_of(c.kind);
    uint64_t u = (uint64_t)a, v = (uint64_t)b;
    uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    switch (c.op) {
    case OP_add: return integer(c.kind, (int64_t)(u + v));
    case OP_sub: return integer(c.kind, (int64_t)(u - v));
    case OP_mul: return integer(c.kind, (int64_t)(u * v));
    case OP_div: return integer(c.kind, divide(c.kind, a, b, false));
    case OP_rem: return integer(c.kind, divide(c.kind, a, b, true));
    case OP_neg: return integer(c.kind, (int64_t)(0 - u));
    case OP_min: return integer(c.kind, less(c.kind, b, a) ? b : a);
    case OP_max: return integer(c.kind, less(c.kind, a, b) ? b : a);
    case OP_abs: return integer(c.kind, is_signed(c.kind) && a < 0 ? (int64_t)(0 - u) : a);
    case OP_and: return integer(c.kind, a & b);
    case OP_or: return integer(c.kind, a | b);
    case OP_xor: return integer(c.kind, a ^ b);
    case OP_not: return integer(c.kind, ~a);
    case OP_shl: return integer(c.kind, (int64_t)(u << (v % (uint64_t)bits)));
    case OP_shr:
        return integer(c.kind,
                       is_signed(c.kind) ? a >> (v % (uint64_t)bits) : (int64_t)(u >> (v % (uint64_t)bits)));
    case OP_countbits: return integer(TYPE_uint, __builtin_popcountll(u & mask));
    case OP_firstbithigh:
        return integer(TYPE_uint, highest_bit((is_signed(c.kind) && a < 0 ? ~u : u) & mask));
    case OP_firstbitlow: return integer(TYPE_uint, lowest_bit(u & mask));
    case OP_reversebits: return integer(c.kind, (int64_t)reversed(u & mask, bits));
    case OP_eq: return integer(TYPE_bool, a == b);
    case OP_ne: return integer(TYPE_bool, a != b);
    case OP_lt: return integer(TYPE_bool, less(c.kind, a, b));
    case OP_le: return integer(TYPE_bool, !less(c.kind, b, a));
    case OP_detach: return integer(c.kind, a);
    default: fail_msg("no meaning for %s", op_info[c.op].name); return (Number){0};
    }
}

static Number on_floats(Case c, double x, double y, double z) {
    Number r = {0};
    bool single = c.kind != TYPE_double; /* half is computed in float */
    float a = (float)x, b = (float)y;
#define EITHER(name)  r.real = single ? (double)name##f(a) : name(x)
#define EITHER2(name) r.real = single ? (double)name##f(a, b) : name(x, y)
    switch (c.op) {
    case OP_add: r.real = single ? (double)(a + b) : x + y; break;
    case OP_sub: r.real = single ? (double)(a - b) : x - y; break;
    case OP_mul: r.real = single ? (double)(a * b) : x * y; break;
    case OP_div: r.real = single ? (double)(a / b) : x / y; break;
    case OP_rem: EITHER2(fmod); break;
    case OP_neg: r.real = -x; break;
    case OP_scale: r.real = y == 0 ? 0 : single ? (double)(a * b) : x * y; break;
    case OP_ratio: r.real = x == 0 ? 0 : single ? (double)(a / b) : x / y; break;
    case OP_fma: r.real = single ? (double)fmaf(a, b, (float)z) : fma(x, y, z); break;
    case OP_min: r.real = fmin(x, y); break;
    case OP_max: r.real = fmax(x, y); break;
    case OP_abs: r.real = fabs(x); break;
    case OP_eq: r.integer = x == y; break;
    case OP_ne: r.integer = x != y; break;
    case OP_lt: r.integer = x < y; break;
    case OP_le: r.integer = x <= y; break;
    case OP_isnan: r.integer = isnan(x); break;
    case OP_sqrt: EITHER(sqrt); break;
    case OP_sin: EITHER(sin); break;
    case OP_cos: EITHER(cos); break;
    case OP_tan: EITHER(tan); break;
    case OP_asin: EITHER(asin); break;
    case OP_acos: EITHER(acos); break;
    case OP_atan: EITHER(atan); break;
    case OP_atan2: EITHER2(atan2); break;
    case OP_sinh: EITHER(sinh); break;
    case OP_cosh: EITHER(cosh); break;
    case OP_tanh: EITHER(tanh); break;
    case OP_asinh: EITHER(asinh); break;
    case OP_acosh: EITHER(acosh); break;
    case OP_atanh: EITHER(atanh); break;
    case OP_exp: EITHER(exp); break;
    case OP_exp2: EITHER(exp2); break;
    case OP_log: EITHER(log); break;
    case OP_log2: EITHER(log2); break;
    case OP_log10: EITHER(log10); break;
    case OP_pow: EITHER2(pow); break;
    case OP_expm1: EITHER(expm1); break;
    case OP_log1p: EITHER(log1p); break;
    case OP_cbrt: EITHER(cbrt); break;
    case OP_hypot: EITHER2(hypot); break;
    case OP_erf: EITHER(erf); break;
    case OP_erfc: EITHER(erfc); break;
    case OP_lgamma: EITHER(lgamma); break;
    case OP_floor: r.real = floor(x); break;
    case OP_ceil: r.real = ceil(x); break;
    case OP_round: r.real = nearbyint(x); break;
    case OP_trunc: r.real = trunc(x); break;
    case OP_copysign: r.real = copysign(x, y); break;
    case OP_detach: r.real = x; break;
    default: fail_msg("no meaning for %s", op_info[c.op].name);
    }
    r.real = round_to(c.kind, r.real);
    return r;
}

static Number meaning(Case c, const Number *args) {
    if (is_float(c.kind)) return on_floats(c, args[0].real, args[1].real, args[2].real);
    return on_integers(c, args[0].integer, args[1].integer);
}

/* ---- every operation on every type */

static bool takes(Op op, TypeKind kind) {
    bool real = is_float(kind), whole = kind >= TYPE_int8 && kind <= TYPE_uint64;
    switch (op) {
    case OP_fma:
    case OP_scale:
    case OP_ratio:
    case OP_isnan: return real;
    case OP_and:
    case OP_or:
    case OP_xor:
    case OP_not: return !real;
    case OP_shl:
    case OP_shr:
    case OP_countbits:
    case OP_firstbithigh:
    case OP_firstbitlow:
    case OP_reversebits: return whole;
    case OP_eq:
    case OP_ne:
    case OP_detach: return true;
    case OP_lt:
    case OP_le:
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_div:
    case OP_rem:
    case OP_min:
    case OP_max: return real || whole;
    case OP_neg: return real || whole;
    case OP_abs: return real || is_signed(kind);
    default: return real && op >= OP_sqrt && op <= OP_copysign;
    }
}

static TypeKind result_kind(Op op, TypeKind kind) {
    if (op_has(op, OP_COMPARES)) return TYPE_bool;
    bool counts = op == OP_countbits || op == OP_firstbithigh || op == OP_firstbitlow;
    return counts ? TYPE_uint : kind;
}

static void write_case(Text *text, Case c, int lanes) {
    static const char *const letters[] = {"a", "b", "c"};
    text_printf(text, "func @%s_%s_%d(", op_info[c.op].name, kind_name(c.kind), lanes);
    for (int i = 0; i < c.nargs; i++)
        text_printf(text, lanes > 1 ? "%s%%%s: %s3" : "%s%%%s: %s", i ? ", " : "", letters[i],
                    kind_name(c.kind));
    text_printf(text, lanes > 1 ? ") -> %s3 export {\n  %%r: %s3 = %s" : ") -> %s export {\n  %%r: %s = %s",
                kind_name(c.result), kind_name(c.result), op_info[c.op].name);
    for (int i = 0; i < c.nargs; i++) text_printf(text, "%s%%%s", i ? ", " : " ", letters[i]);
    text_printf(text, "\n  return %%r\n}\n");
}

static bool same_result(Case c, Number expected, Number found) {
    bool signless = is_float(c.kind) && (c.op == OP_min || c.op == OP_max);
    if (signless && expected.real == 0 && found.real == 0) return true;
    return same(c.result, expected, found);
}

/* Takes `lanes` triples of arguments, calls, compares each lane. */
static void check_call(Fixture *f, Case c, Code code, int lanes, const Number (*inputs)[3]) {
    char memory[4][32];
    void *args[4];
    int used = 0;
    for (int i = 0; i < c.nargs; i++) {
        for (int lane = 0; lane < lanes; lane++)
            put(c.kind, inputs[lane][i], memory[i] + (size_t)lane * size_of(c.kind));
        args[used++] = memory[i];
    }
    args[used] = memory[3];
    f->program.backend->jit_call(f->program.jit, code.data, args);
    for (int lane = 0; lane < lanes; lane++) {
        Number expected = meaning(c, inputs[lane]);
        Number found = get(c.result, memory[3] + (size_t)lane * size_of(c.result));
        if (same_result(c, expected, found)) continue;
        fail_msg("%s on %s (lane %d of %d): (%lld %g), (%lld %g) should give %lld %g, not %lld %g",
                 op_info[c.op].name, kind_name(c.kind), lane, lanes, (long long)inputs[lane][0].integer,
                 inputs[lane][0].real, (long long)inputs[lane][1].integer, inputs[lane][1].real,
                 (long long)expected.integer, expected.real, (long long)found.integer, found.real);
    }
}

static void check_case(Fixture *f, Case c, int lanes) {
    Number values[MAX_VALUES], inputs[3][3];
    int count = edge_values(c.kind, values);
    Code code =
        find(f, EMIT_call, format_text(&f->arena, "%s_%s_%d", op_info[c.op].name, kind_name(c.kind), lanes));
    for (int i = 0; i < count; i++)
        for (int k = 0; k < (c.nargs > 1 ? count : 1); k++) {
            for (int lane = 0; lane < lanes; lane++) {
                inputs[lane][0] = values[(i + lane) % count];
                inputs[lane][1] = values[(k + 5 * lane) % count];
                inputs[lane][2] = values[(i + k + lane) % count];
            }
            check_call(f, c, code, lanes, (const Number(*)[3])inputs);
        }
}

static void for_all_cases(void (*visit)(void *user, Case c), void *user) {
    for (int op = 0; op < OP_COUNT; op++) {
        bool listed =
            op <= OP_le || op == OP_isnan || op == OP_detach || (op >= OP_sqrt && op <= OP_copysign);
        for (int i = 0; listed && i < KINDS; i++)
            if (takes((Op)op, all_kinds[i]))
                visit(user,
                      (Case){(Op)op, all_kinds[i], result_kind((Op)op, all_kinds[i]), op_info[op].nargs});
    }
}

static void add_case(void *user, Case c) {
    write_case(user, c, 1);
    write_case(user, c, 3);
}

static void run_case(void *user, Case c) {
    check_case(user, c, 1);
    check_case(user, c, 3);
}

static void check_operations(const EmitBackend *backend, int level, const char *cpu) {
    Fixture f;
    fixture_open(&f, backend);
    Text text = {.arena = &f.arena};
    for_all_cases(add_case, &text);
    parse(&f, text.at);
    compile_for(&f, level, cpu);
    for_all_cases(run_case, &f);
    fixture_close(&f);
}

static void test_operations_plain(void **state) { check_operations(*state, 0, NULL); }
static void test_operations_optimised(void **state) { check_operations(*state, 3, NULL); }
static void test_operations_interpreted(void **state) {
    (void)state;
    check_operations(interp_backend(), 0, NULL);
}

/* Without instructions for half, rounding and fma: the functions behind them are found as well. */
static void test_operations_oldest(void **state) {
#if defined(__x86_64__)
    check_operations(*state, 3, "x86-64");
#else
    (void)state;
    skip();
#endif
}

/* ---- every conversion */

static Number converted(TypeKind from, TypeKind to, Number n) {
    if (to == TYPE_bool) return integer(to, is_float(from) ? n.real != 0 || isnan(n.real) : n.integer != 0);
    if (!is_float(to)) {
        if (!is_float(from)) return integer(to, n.integer);
        double low = is_signed(to) ? -ldexp(1, bits_of(to) - 1) : 0;
        double high = ldexp(1, is_signed(to) ? bits_of(to) - 1 : bits_of(to));
        if (isnan(n.real)) return integer(to, 0);
        if (n.real <= low)
            return integer(to, is_signed(to) ? (int64_t)((uint64_t)1 << (bits_of(to) - 1)) : 0);
        if (n.real >= high)
            return integer(to, is_signed(to) ? (int64_t)(((uint64_t)1 << (bits_of(to) - 1)) - 1) : -1);
        return integer(to, is_signed(to) ? (int64_t)n.real : (int64_t)(uint64_t)n.real);
    }
    if (is_float(from)) return (Number){.real = round_to(to, n.real)};
    bool negative = is_signed(from) && n.integer < 0;
    if (to == TYPE_float)
        return (Number){.real = negative ? (double)(float)n.integer : (double)(float)(uint64_t)n.integer};
    return (Number){.real = round_to(to, negative ? (double)n.integer : (double)(uint64_t)n.integer)};
}

static void check_conversion(Fixture *f, TypeKind from, TypeKind to) {
    Number values[MAX_VALUES];
    char in[8], out[8];
    void *args[] = {in, out};
    int count = edge_values(from, values);
    Code code = find(f, EMIT_call, format_text(&f->arena, "%s_to_%s", kind_name(from), kind_name(to)));
    for (int i = 0; i < count; i++) {
        put(from, values[i], in);
        f->program.backend->jit_call(f->program.jit, code.data, args);
        Number expected = converted(from, to, values[i]), found = get(to, out);
        if (!same(to, expected, found))
            fail_msg("%s to %s: %lld %g should give %lld %g, not %lld %g", kind_name(from), kind_name(to),
                     (long long)values[i].integer, values[i].real, (long long)expected.integer, expected.real,
                     (long long)found.integer, found.real);
    }
}

static void check_conversions(const EmitBackend *backend, int level) {
    Fixture f;
    fixture_open(&f, backend);
    Text text = {.arena = &f.arena};
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++)
            text_printf(&text,
                        "func @%s_to_%s(%%x: %s) -> %s export {\n  %%y: %s = convert %%x\n  return %%y\n}\n",
                        kind_names[i], kind_names[k], kind_names[i], kind_names[k], kind_names[k]);
    parse(&f, text.at);
    compile(&f, level);
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++) check_conversion(&f, all_kinds[i], all_kinds[k]);
    fixture_close(&f);
}

static void test_conversions(void **state) {
    check_conversions(*state, 0);
    check_conversions(*state, 3);
    check_conversions(interp_backend(), 0);
}

/* ---- calling from C */

static const char native_program[] =
    "global uniform @sin: float\n"
    "global uniform @seen: int\n"
    "func @exp(%x: float) -> float export {\n  %g = global @sin\n  %s = load %g\n  %y = mul %x, %s\n  return "
    "%y\n}\n"
    "func @negate(%b: bool) -> bool export {\n  %r = not %b\n  return %r\n}\n"
    "func @minus(%x: int8_t) -> int8_t export {\n  %r = neg %x\n  return %r\n}\n"
    "func @twice(%h: half) -> half export {\n  %r = add %h, %h\n  return %r\n}\n"
    "func @mixed(%i: int, %d: double, %v: float3, %u: uint64_t, %out: out float) -> double export {\n"
    "  %x = extract %v, 2\n  store %out, %x\n  %a: double = convert %i\n  %b: double = convert %u\n"
    "  %s = add %a, %b\n  %t = add %s, %d\n  return %t\n}\n"
    "func @vector(%v: float3, %k: float) -> float3 export {\n  %w: float3 = splat %k\n  %r = mul %v, %w\n  "
    "return %r\n}\n"
    "func @advance(%p: float*, %n: int64_t) -> float* export {\n  %q = offset %p, %n\n  return %q\n}\n"
    "func @which() -> int export {\n  %t = thread_id 0\n  %x = extract %t, 1\n  %r: int = convert %x\n  "
    "return "
    "%r\n}\n"
    "func @stops(%x: int) -> int export {\n  %c = lt %x, 0\n  if %c {\n    abort \"negative\"\n  }\n  return "
    "%x\n}\n"
    "func @scale(%k: float, %b: RWStructuredBuffer<float>) export threads(4, 1, 1) {\n  %t = thread_id 0\n"
    "  %i = extract %t, 0\n  %e = buffer_elem writes %b, %i\n  %x = load %e\n  %y = mul %x, %k\n  store %e, "
    "%y\n"
    "  return\n}\n";

static void check_calls(Code exp_code, Code negate, Code minus) {
    assert_true(exp_code.float_float(2.0f) == 6.0f);
    assert_true(negate.bool_bool(false));
    assert_false(negate.bool_bool(true));
    assert_int_equal(minus.int8_int8(100), -100);
    assert_int_equal(minus.int8_int8(-128), -128);
}

/* In memory, half is its bits, and vectors go by address. */
static void check_addresses(Code twice, Code mixed) {
    assert_int_equal(twice.half_half(half_from_float(1.25f)), half_from_float(2.5f));
    float v[3] = {1, 2, 3}, out = 0;
    assert_true(mixed.mixed(-5, 0.5, v, 100, &out) == 95.5);
    assert_true(out == 3.0f);
}

/* Every function becomes so long that it is no part of its ways in. */
static const char *lengthened(Arena *arena, const char *program) {
    enum { TIMES = 50 };
    static const char head[] = " export {\n";
    Text text = {.arena = arena};
    for (const char *next; (next = strstr(program, head)); program = next + strlen(head)) {
        text_printf(&text, "%.*s%s  %%g.0 = global @seen\n", (int)(next - program), program, head);
        for (int i = 1; i <= TIMES; i++)
            text_printf(&text, "  %%l.%d = load %%g.0\n  %%a.%d = add %%l.%d, 1\n  store %%g.0, %%a.%d\n", i,
                        i, i, i);
    }
    text_printf(&text, "%s", program);
    return text.at;
}

static void check_native_calls(const EmitBackend *backend, bool are_long) {
    Fixture f;
    fixture_open(&f, backend);
    parse(&f, are_long ? lengthened(&f.arena, native_program) : native_program);
    compile(&f, 3);
    float *factor = find(&f, EMIT_uniform, "sin").data;
    *factor = 3.0f;
    check_calls(find(&f, EMIT_native, "exp"), find(&f, EMIT_native, "negate"),
                find(&f, EMIT_native, "minus"));
    check_addresses(find(&f, EMIT_native, "twice"), find(&f, EMIT_native, "mixed"));
    float v[4] = {1, 2, 3, 4}, r[3];
    find(&f, EMIT_native, "vector").vector(v, 2.0f, r);
    assert_true(r[0] == 2 && r[1] == 4 && r[2] == 6);
    assert_ptr_equal(find(&f, EMIT_native, "advance").pointer(v, 3), v + 3);
    assert_int_equal(find(&f, EMIT_native, "which").none(), 0);
    assert_int_equal(find(&f, EMIT_native, "stops").int_int(7), 7);
    assert_int_equal(find(&f, EMIT_native, "stops").int_int(-7), 0);
    char *error = runtime_take_error(f.program.runtime);
    assert_string_equal(error, "negative");
    free(error);
    RtBuffer buffer = {v, 4};
    find(&f, EMIT_native, "scale").launch(2, 1, 1, 10.0f, &buffer);
    assert_true(v[0] == 10 && v[3] == 40);
    assert_int_equal(*(int *)find(&f, EMIT_uniform, "seen").data > 0, are_long);
    fixture_close(&f);
}

static void test_native_calls(void **state) {
    check_native_calls(*state, false);
    check_native_calls(*state, true);
}

/* ---- several modules */

/* A function that reads the first global, added to what is there. */
static void add_reader(Fixture *f, const char *name) {
    Func *func = func_new(f->module, name);
    func->flags |= FUNC_EXPORT;
    func_set_results(func, &f->module->globals.at[0]->type, 1);
    Builder b = build_at_end(func_begin(func));
    Val *value = build_load(&b, build_global(&b, f->module->globals.at[0]));
    build_return(&b, &value, 1);
}

static void test_modules_share(void **state) {
    Fixture f;
    fixture_open(&f, *state);
    parse(&f, "global uniform @k: int\n"
              "func @f() -> int export {\n  %g = global @k\n  %x = load %g\n  return %x\n}\n");
    compile(&f, 2);
    int *k = find(&f, EMIT_uniform, "k").data;
    *k = 11;
    parse(&f,
          "global const @c: int[2] init @start\n"
          "func @start() {\n  %a = global @c\n  %e = elem %a, 1\n  store %e, 5\n  return\n}\n"
          "func @g() -> int export {\n  %a = global @c\n  %e = elem %a, 1\n  %x = load %e\n  return %x\n}\n");
    add_reader(&f, "again");
    compile(&f, 2);
    assert_int_equal(find(&f, EMIT_native, "f").none(), 11);
    assert_int_equal(find(&f, EMIT_native, "g").none(), 5);
    assert_int_equal(find(&f, EMIT_native, "again").none(), 11);
    assert_ptr_equal(find(&f, EMIT_uniform, "k").data, k);
    assert_null(f.program.backend->jit_find(f.program.jit, EMIT_native, "h"));
    fixture_close(&f);
}

/* Sessions in several threads at the same time. */
static void *compile_and_run(void *data) {
    const EmitBackend *backend = data;
    for (int round = 0; round < 5; round++) {
        Fixture f;
        fixture_open(&f, backend);
        parse(&f, native_program);
        compile(&f, round % 4);
        *(float *)find(&f, EMIT_uniform, "sin").data = (float)round;
        bool fine = find(&f, EMIT_native, "exp").float_float(2.0f) == 2.0f * (float)round;
        fine = fine && find(&f, EMIT_native, "stops").int_int(-1) == 0;
        fixture_close(&f);
        if (!fine) return NULL;
    }
    return data;
}

static void test_sessions_in_threads(void **state) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_and_run, *state), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
}

static void test_missing_body(void **state) {
    Fixture f;
    EmitError error;
    EmitOptions options = {.level = 1};
    fixture_open(&f, *state);
    parse(&f, "func @f() -> int export {\n  %x = call @g()\n  return %x\n}\nfunc @g() -> int\n");
    assert_false(f.program.backend->jit_add(f.program.jit, f.module, &options, NULL, &error));
    assert_string_equal(error.text, "function 'g' has no body");
    fixture_close(&f);
}

/* ---- files */

static void check_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) print_error("%s\n", dlerror());
    assert_non_null(library);
    float *factor = dlsym(library, "slope_sin");
    assert_non_null(factor);
    *factor = 3.0f;
    Code exp_code = {dlsym(library, "slope_exp")}, negate = {dlsym(library, "negate")},
         minus = {dlsym(library, "minus")};
    Code twice = {dlsym(library, "twice")}, mixed = {dlsym(library, "mixed")},
         vector = {dlsym(library, "vector")}, scale = {dlsym(library, "scale")};
    check_calls(exp_code, negate, minus);
    assert_true(twice.float_float(1.25f) == 2.5f);
    float out = 0;
    assert_true(mixed.mixed_values(-5, 0.5, (Three){1, 2, 3}, 100, &out) == 95.5 && out == 3.0f);
    Three r = vector.vector_values((Three){1, 2, 3}, 2.0f);
    assert_true(r.x == 2 && r.y == 4 && r.z == 6);
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    RtBuffer buffer = {v, 8};
    scale.launch_values(2, 1, 1, 2.0f, buffer);
    assert_true(v[0] == 2 && v[7] == 16);
    dlclose(library);
}

static void test_shared_library(void **state) {
    Fixture f;
    EmitError error;
    EmitTimes times = {0};
    EmitOptions options = {.level = 2, .verify = true, .debug = true};
    char folder[] = "/tmp/slope-emit-XXXXXX", path[64], library[4096];
    fixture_open(&f, *state);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/program.so", folder);
    EmitFile file = {.format = EMIT_shared,
                     .target = emit_find_target("shared"),
                     .path = path,
                     .runtime_library = jit_runtime_library(library, sizeof library)};
    parse(&f, native_program);
    bool fine = f.program.backend->write(f.module, &options, &file, &times, &error);
    if (!fine) print_error("%s\n", error.text);
    assert_true(fine);
    assert_true(times.translate > 0 && times.passes > 0 && times.machine > 0);
    check_library(path);
    unlink(path);
    rmdir(folder);
    fixture_close(&f);
}

static void test_unwritable_file(void **state) {
    Fixture f;
    EmitError error;
    EmitOptions options = {.level = 0};
    EmitFile file = {.format = EMIT_obj, .target = emit_find_target("obj"), .path = "/no/such/folder/x.o"};
    fixture_open(&f, *state);
    parse(&f, native_program);
    assert_false(f.program.backend->write(f.module, &options, &file, NULL, &error));
    assert_string_equal(error.text, "cannot write '/no/such/folder/x.o': No such file or directory");
    fixture_close(&f);
}

static int load_backend(void **state) {
    *state = (void *)(uintptr_t)jit_load_backend();
    return *state ? 0 : 1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_plain),    cmocka_unit_test(test_operations_optimised),
        cmocka_unit_test(test_operations_oldest),   cmocka_unit_test(test_operations_interpreted),
        cmocka_unit_test(test_conversions),         cmocka_unit_test(test_native_calls),
        cmocka_unit_test(test_modules_share),       cmocka_unit_test(test_missing_body),
        cmocka_unit_test(test_sessions_in_threads), cmocka_unit_test(test_shared_library),
        cmocka_unit_test(test_unwritable_file),
    };
    return cmocka_run_group_tests(tests, load_backend, NULL);
}
