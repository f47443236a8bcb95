/* The IR: text that reads back, folding that is exact, copies, and a verifier that finds what is wrong. */
#include "ir_module.h"

#include <math.h>

static const Type *basic(TypeKind kind) { return type_basic(&types, kind); }

static const char *print_module(void) {
    Text text = {.arena = &arena};
    ir_print_module(&text, module);
    return text.at;
}

/* ---- text */

/* Everything that can be written, as it is printed. */
static const char everything[] =
    "struct Empty {}\n\n"
    "struct Point {\n  x: float\n  y: float3\n  \"odd name\": int[3][2]\n} diff Point.d map [0, 1, -1] zero "
    "@zero add @add "
    "opaque\n\n"
    "struct Point.d {\n  x: float\n  y: float3\n} diff Point.d map [0, 1]\n\n"
    "struct \"Pair<float, 3>\" {\n  a: Point\n  a: Point*\n  b: RWStructuredBuffer<Point>\n} diff none\n\n"
    "struct \"float3\" {\n  list: \"Pair<float, 3>\"[2]\n}\n\n"
    "global const @table: float[3] = [0.5, -inf, nan]\n"
    "global const @made: Point init @fill\n"
    "global static @count: int\n"
    "global shared @tile: float[16]\n"
    "global uniform @settings: ConstantBuffer<Point> std140\n"
    "global uniform @bytes: RWByteAddressBuffer.Handle\n\n"
    "func @fill() {\n  return\n}\n\n"
    "func @zero(%0: out Point.d result)\n\n"
    "func @add(%0: out Point.d result, %a: Point.d, %b: Point.d) pure\n\n"
    "func @f(%x: float diff, %n: int, %a: inout float[8] diff, %p: Point ptr_diff this, %q: ref int) -> "
    "float export fwd "
    "bwd result_diff recompute normal custom(fwd @f.fwd, bwd @f.bwd) {\n"
    "  %i, %s = loop max_iters 8 unroll -1 checkpoint 3 (%i.1: int = 0, %s.1: float = 0.0) {\n"
    "    %go = lt %i.1, %n\n"
    "    yield %go\n"
    "  } do {\n"
    "    %e = elem %a, %i.1\n"
    "    %0 = load %e\n"
    "    %1 = fma %x, %0, %s.1\n"
    "    %2 = add %i.1, 1\n"
    "    yield %2, %1\n"
    "  }\n"
    "  %\"odd\\x01\\n\\\"name\\\"\" = field %p, x\n"
    "  %u.1.0 = neg %s\n"
    "  %dx' = diff mul %x, %s\n"
    "  mixed if true {\n"
    "    store %q, %n\n"
    "  }\n"
    "  return %s\n"
    "}\n\n"
    "func @f.fwd(%x: \"float3\") -> float noinline generated fwd_diff(@f)\n\n"
    "func @f.bwd() generated bwd_diff(@f)\n";

static const char operations[] =
    "struct S {\n  a: int\n  a: int\n  v: float3\n}\n\n"
    "global static @g: S\n\n"
    "func @all(%f: float, %h: half, %d: double, %i: int, %u: uint, %l: int64_t, %b: bool, %v: float3, %s: S, "
    "%w: ref "
    "S, %buf: RWStructuredBuffer<float>, %raw: RWByteAddressBuffer, %ptr: float*) -> (int, float) "
    "treat_as_diff "
    "transposable inline recompute_effects checkpoint pure threads(8, 4, 1) incomplete "
    "custom(substitute "
    "@all, primal @none) {\n"
    "  %0 = add %f, 1.0\n"
    "  %1 = sub %h, 0.5:half\n"
    "  %2 = mul %d, 0.1:double\n"
    "  %3 = div %v, 0:float3\n"
    "  %4 = rem %i, -7\n"
    "  %5 = neg %f\n"
    "  %6 = fma %f, %f, %f\n"
    "  %sc = scale %f, %f\n"
    "  %ra = ratio %f, %f\n"
    "  %7 = min %u, 4294967295:uint\n"
    "  %8 = max %l, -9223372036854775808:int64_t\n"
    "  %9 = abs %i\n"
    "  %10 = and %b, false\n"
    "  %11 = or %i, 1\n"
    "  %12 = xor %u, %u\n"
    "  %13 = not %b\n"
    "  %14 = shl %i, %u\n"
    "  %15 = shr %l, %i\n"
    "  %16 = countbits %i\n"
    "  %17 = firstbithigh %i\n"
    "  %18 = firstbitlow %u\n"
    "  %19 = reversebits %u\n"
    "  %20 = eq %ptr, 0:float*\n"
    "  %21 = ne %v, %v\n"
    "  %22 = lt %f, 1e+30\n"
    "  %23 = le %i, %i\n"
    "  %24 = any %21\n"
    "  %25 = all %21\n"
    "  %26 = select %b, %v, %v\n"
    "  %27: int3 = convert %v\n"
    "  %28: uint = bitcast %f\n"
    "  %29 = detach %f\n"
    "  %30 = sqrt %f\n"
    "  %31 = sin %f\n"
    "  %32 = cos %f\n"
    "  %33 = tan %f\n"
    "  %34 = asin %f\n"
    "  %35 = acos %f\n"
    "  %36 = atan %f\n"
    "  %37 = atan2 %f, %f\n"
    "  %38 = sinh %f\n"
    "  %39 = cosh %f\n"
    "  %40 = tanh %f\n"
    "  %41 = asinh %f\n"
    "  %42 = acosh %f\n"
    "  %43 = atanh %f\n"
    "  %44 = exp %f\n"
    "  %45 = exp2 %f\n"
    "  %46 = log %f\n"
    "  %47 = log2 %f\n"
    "  %48 = log10 %f\n"
    "  %49 = pow %f, %f\n"
    "  %in_expm1 = expm1 %f\n"
    "  %in_log1p = log1p %f\n"
    "  %in_cbrt = cbrt %f\n"
    "  %in_hypot = hypot %f, %f\n"
    "  %in_erf = erf %f\n"
    "  %in_erfc = erfc %f\n"
    "  %in_lgamma = lgamma %f\n"
    "  %50 = floor %f\n"
    "  %51 = ceil %f\n"
    "  %52 = round %f\n"
    "  %53 = trunc %f\n"
    "  %54 = copysign %f, -1.0\n"
    "  %55 = ldexp %f, %i\n"
    "  %56 = isnan %v\n"
    "  %57 = vec %f, %f\n"
    "  %58: half4 = splat %h\n"
    "  %59 = extract %v, %i\n"
    "  %60 = insert %v, 1, %f\n"
    "  %61 = shuffle %v, zzxy\n"
    "  %62 = var S\n"
    "  %63 = var raw float[2]\n"
    "  %64 = global @g\n"
    "  %65 = field %62, a\n"
    "  %66 = field %62, 1\n"
    "  %67 = field %62, v\n"
    "  %68 = elem unchecked %67, 2\n"
    "  %69 = offset %ptr, %i\n"
    "  %70 = load %69\n"
    "  store %69, %70\n"
    "  copy %62, %64\n"
    "  copy no_diff %62, %64\n"
    "  zero %62\n"
    "  acc %62, %64\n"
    "  %71 = buffer_length %buf\n"
    "  %72 = buffer_elem unchecked writes %buf, %u\n"
    "  %alone = buffers_apart %buf, %raw\n"
    "  %own = buffer_elem apart(1, 2, 3) %buf, %u\n"
    "  %73: S* buffer = buffer_bytes %raw, 8\n"
    "  %74 = buffer_pointer %buf\n"
    "  %new: RWStructuredBuffer<float> = buffer_new %u\n"
    "  %75 = buffer_counter %buf\n"
    "  %76 = atomic exchange %75, 1:uint\n"
    "  %77 = atomic_cas %75, 1:uint, 2:uint\n"
    "  barrier 1\n"
    "  %78 = thread_id 0\n"
    "  %79 = thread_id 3\n"
    "  %met = wave 5:uint64_t, 3:uint64_t, 0:uint64_t\n"
    "  printf \"%d and \\\"%f\\\"\\n\", %i, %v\n"
    "  %80 = tape_open\n"
    "  tape_push %80, %f\n"
    "  %81: float = tape_pop %80\n"
    "  %82 = tape_grow int %80, %l\n"
    "  tape_store %80, %82, 7\n"
    "  %83: int = tape_load %80, %82\n"
    "  tape_reach int %80, %l\n"
    "  %row: int8* tape = tape_elem %80, %82\n"
    "  %on: bool8 = splat %b\n"
    "  %several = gather %row, %on\n"
    "  %places = buffer_elem writes %buf, %several\n"
    "  %there = gather %places, %on\n"
    "  scatter %places, %there, %on\n"
    "  tape_shrink int %80, %l\n"
    "  tape_close %80\n"
    "  call no_diff @none()\n"
    "  %84, %85 = call @all(%f, %h, %d, %i, %u, %l, %b, %v, %62, %w, %buf, %raw, %ptr)\n"
    "  %86 = if %b -> int {\n"
    "    yield 1\n"
    "  } else {\n"
    "    yield 2\n"
    "  }\n"
    "  %87, %88 = switch %i -> (int, float) case 1, -2 {\n"
    "    yield 1, 1.0\n"
    "  } case {\n"
    "    unreachable\n"
    "  } default {\n"
    "    yield 3, 3.0\n"
    "  }\n"
    "  %89 = loop #1 (%c: int = 0) {\n"
    "    %90 = lt %c, 10\n"
    "    yield %90\n"
    "  } do (%d.1) {\n"
    "    %91 = block #2 -> int {\n"
    "      if %b {\n"
    "        break #2 %d.1\n"
    "      } else {\n"
    "        if %b {\n"
    "          continue #1 %d.1\n"
    "        }\n"
    "        break #1 %d.1\n"
    "      }\n"
    "      yield 4\n"
    "    }\n"
    "    yield %91\n"
    "  } step (%e) {\n"
    "    %92 = add %e, 1\n"
    "    yield %92\n"
    "  }\n"
    "  abort \"no\"\n"
    "  return %89, %f\n"
    "}\n\n"
    "func @none()\n";

static void text_reads_back_as_it_was(void **state) {
    (void)state;
    assert_true(parse(operations));
    assert_string_equal(print_module(), operations);
}

static void attributes_read_back_as_they_were(void **state) {
    (void)state;
    if (!parse(everything)) fail_msg("%s", message);
    assert_string_equal(print_module(), everything);
}

static void mark_op(void *user, Inst *inst) { ((bool *)user)[inst->op] = true; }

static void every_operation_is_in_the_text(void **state) {
    (void)state;
    bool seen[OP_COUNT] = {0};
    assert_true(parse(operations));
    region_walk(module->funcs.at[0]->body, mark_op, seen);
    for (int op = 0; op < OP_COUNT; op++)
        if (!seen[op]) fail_msg("%s is not tested", op_info[op].name);
}

static void names_are_kept_apart(void **state) {
    (void)state;
    Func *func = func_new(module, "f");
    const Type *f = basic(TYPE_float);
    Param params[] = {{.name = name_from(&names, "x"), .type = f, .dir = DIR_in},
                      {.name = name_from(&names, "x"), .type = f, .dir = DIR_in}};
    func_set_params(func, params, 2);
    func_set_results(func, &f, 1);
    Builder b = build_at_end(func_begin(func));
    Val *sum = build_binary(&b, OP_add, func->body->params[0], func->body->params[1]);
    sum->name = name_from(&names, "x.1");
    build_return(&b, &sum, 1);
    assert_string_equal(print_func(func), "func @f(%x: float, %x.1: float) -> float {\n"
                                          "  %x.1.0 = add %x, %x.1\n"
                                          "  return %x.1.0\n"
                                          "}\n");
    assert_string_equal(func_new(module, "f")->name->text, "f.1");
    assert_string_equal(global_new(module, GLOBAL_static, "g", f)->name->text, "g");
    assert_string_equal(global_new(module, GLOBAL_static, "g", f)->name->text, "g.1");
}

static void records_of_one_name_are_told_apart(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        Record *record = record_new(&types, name_from(&names, "S"));
        record->fields = arena_array(&arena, Field, 1);
        record->fields[0] =
            (Field){.name = name_from(&names, "x"), .type = i ? basic(TYPE_int) : basic(TYPE_float)};
        record->nfields = 1;
        global_new(module, GLOBAL_static, "g", record->type); /* found there, not in module->records */
    }
    assert_string_equal(print_module(), "struct S {\n  x: float\n}\n\nstruct S.1 {\n  x: int\n}\n\n"
                                        "global static @g: S\nglobal static @g.1: S.1\n");
}

static void errors_in_text_are_reported(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"fun @f() {}", "1:1: expected struct, global or func, found 'fun'"},
        {"func @f(%x: flot)", "1:13: there is no type 'flot'"},
        {"func @f() {\n  retrun\n}", "2:3: there is no operation 'retrun'"},
        {"func @f() {\n  %a = add %b, 1\n  return\n}", "2:12: there is no value 'b'"},
        {"func @f() {\n  %a = splat 1.0\n  return\n}", "2:14: the result needs a type: %a: T = ..."},
        {"func @f() {\n  add 1, 2\n  return\n}", "2:7: 'add' has 1 results"},
        {"func @f() {\n  call @g()\n  return\n}", "2:8: there is no function 'g'"},
        {"func @f() {\n  break #1\n}", "2:9: there is no label '1'"},
        {"func @f() {\n  if true {\n", "3:1: the region does not end"},
        {"func @f() {}\nfunc @f() {}", "2:6: there are two functions 'f'"},
        {"struct S { x: int }\nfunc @f(%s: S) {\n  %p = field %s, y\n  return\n}",
         "3:18: there is no field 'y'"},
        {"func @f(%v: float3) {\n  %p = shuffle %v, xyq\n  return\n}", "2:20: there is no lane 'q'"},
        {"func @f() {\n  %i = loop (%a: int = 0) {\n    yield true\n  } do (%x, %y) {\n    yield %x\n  }\n}",
         "4:17: 1 values are carried"},
        {"global odd @g: int", "1:8: there is no such kind of global"},
        {"func @f() {\n  printf hello\n}", "2:10: expected a string, found 'hello'"},
    };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        tear_down(NULL), set_up(NULL);
        assert_false(parse(rows[i].text));
        if (!strstr(message, rows[i].expected)) fail_msg("%s: %s", rows[i].text, message);
    }
}

/* ---- folding */

static Func *func;
static Builder b;

/* A function with one parameter of each type that the tests want. */
static Val *value(const Type *type) {
    Region *body = func->body;
    return region_add_param(body, type, NULL);
}

static int set_up_builder(void **state) {
    set_up(state);
    func = func_new(module, "f");
    b = build_at_end(func_begin(func));
    return 0;
}

static Val *real(double x) { return ir_const_real(module, basic(TYPE_float), x); }
static Val *integer(int64_t x) { return ir_const_int(module, basic(TYPE_int), x); }
static Val *typed(TypeKind kind, int64_t x) { return ir_const_int(module, basic(kind), x); }

static void is_real(const Val *v, double expected) {
    assert_true(val_is_const(v) && type_is_float(v->type));
    if (v->real != expected && !(isnan(v->real) && isnan(expected)))
        fail_msg("%.17g is not %.17g", v->real, expected);
    assert_int_equal(!signbit(v->real), !signbit(expected));
}

static void is_integer(const Val *v, int64_t expected) {
    int64_t found;
    assert_true(val_is_int(v, &found));
    assert_int_equal(found, expected);
}

static void constants_are_wrapped_and_rounded(void **state) {
    (void)state;
    is_integer(typed(TYPE_int8, 200), -56);
    is_integer(typed(TYPE_uint8, -1), 255);
    is_integer(typed(TYPE_int, INT64_C(1) << 31), INT32_MIN);
    is_integer(typed(TYPE_uint64, -1), -1);
    is_integer(typed(TYPE_bool, 3), 1);
    is_real(real(0.1), (double)0.1f);
    is_real(ir_const_real(module, basic(TYPE_half), 0.1), 0.0999755859375);
    is_real(real(1e300), (double)INFINITY);
    assert_true(val_is_zero(real(0)) && !val_is_zero(real(-0.0)));
    assert_true(val_is_zero(ir_const_zero(module, type_vector(&types, basic(TYPE_float), 3))));
    assert_true(val_is_one(real(1)) && val_is_one(integer(1)) && !val_is_one(integer(2)));
}

static void floats_fold_as_the_machine_computes(void **state) {
    (void)state;
    is_real(build_binary(&b, OP_add, real(0.1), real(0.2)), (double)(0.1f + 0.2f));
    is_real(build_binary(&b, OP_div, real(1), real(3)), (double)(1.0f / 3.0f));
    is_real(build_binary(&b, OP_div, real(1), real(0)), (double)INFINITY);
    is_real(build_binary(&b, OP_sub, real((double)INFINITY), real((double)INFINITY)), (double)NAN);
    is_real(build_unary(&b, OP_sqrt, real(2)), (double)sqrtf(2.0f));
    is_real(build_unary(&b, OP_round, real(2.5)), 2);
    is_real(build_unary(&b, OP_neg, real(0)), -0.0);
    is_real(build_binary(&b, OP_rem, real(-7.5), real(2)), -1.5);
    is_real(build_binary(&b, OP_min, real((double)NAN), real(2)), 2);
    is_real(build_binary(&b, OP_max, real(-0.0), real(0.0)), 0.0);
    /* 0.1 * 10 - 1 in one rounding is not zero; through double it would be rounded twice. */
    is_real(build_fma(&b, real(0.1), real(10), real(-1)), (double)fmaf(0.1f, 10.0f, -1.0f));
    assert_true(val_is_zero(build_binary(&b, OP_lt, real((double)NAN), real(1))));
    assert_true(val_is_one(build_binary(&b, OP_ne, real((double)NAN), real((double)NAN))));
    assert_true(val_is_one(build_unary(&b, OP_isnan, real((double)NAN))));
    Val *args[] = {real(3), integer(4)};
    is_real(build_op(&b, OP_ldexp, basic(TYPE_float), args, 2), 48);
}

static void integers_fold_and_wrap(void **state) {
    (void)state;
    is_integer(build_binary(&b, OP_add, integer(INT32_MAX), integer(1)), INT32_MIN);
    is_integer(build_binary(&b, OP_mul, typed(TYPE_uint8, 16), typed(TYPE_uint8, 16)), 0);
    is_integer(build_binary(&b, OP_div, integer(-7), integer(2)), -3);
    is_integer(build_binary(&b, OP_rem, integer(-7), integer(2)), -1);
    is_integer(build_binary(&b, OP_div, integer(5), integer(0)), -1);
    is_integer(build_binary(&b, OP_div, typed(TYPE_uint, 5), typed(TYPE_uint, 0)), UINT32_MAX);
    is_integer(build_binary(&b, OP_div, typed(TYPE_int64, INT64_MIN), typed(TYPE_int64, -1)), INT64_MIN);
    is_integer(build_binary(&b, OP_div, typed(TYPE_uint64, -1), typed(TYPE_uint64, 2)), INT64_MAX);
    is_integer(build_binary(&b, OP_shl, integer(1), typed(TYPE_uint, 33)), 2);
    is_integer(build_binary(&b, OP_shr, integer(-8), integer(1)), -4);
    is_integer(build_binary(&b, OP_shr, typed(TYPE_uint8, 0x80), typed(TYPE_int, 7)), 1);
    is_integer(build_binary(&b, OP_max, typed(TYPE_uint, -1), typed(TYPE_uint, 1)), UINT32_MAX);
    is_integer(build_binary(&b, OP_lt, typed(TYPE_uint64, -1), typed(TYPE_uint64, 1)), 0);
    is_integer(build_binary(&b, OP_lt, integer(-1), integer(1)), 1);
    is_integer(build_unary(&b, OP_abs, integer(INT32_MIN)), INT32_MIN);
    is_integer(build_not(&b, typed(TYPE_bool, 1)), 0);
    is_integer(build_not(&b, typed(TYPE_uint16, 1)), 0xfffe);
    Val *x = integer(0x50), *negative = integer(-2), *none = integer(0);
    const Type *u = basic(TYPE_uint);
    is_integer(build_op(&b, OP_countbits, u, &negative, 1), 31);
    is_integer(build_op(&b, OP_firstbithigh, u, &x, 1), 6);
    is_integer(build_op(&b, OP_firstbithigh, u, &negative, 1), 0);
    is_integer(build_op(&b, OP_firstbitlow, u, &x, 1), 4);
    is_integer(build_op(&b, OP_firstbitlow, u, &none, 1), UINT32_MAX);
    is_integer(build_unary(&b, OP_reversebits, typed(TYPE_uint8, 0x0d)), 0xb0);
}

static void conversions_fold(void **state) {
    (void)state;
    is_integer(build_convert(&b, real(-2.9), basic(TYPE_int)), -2);
    is_integer(build_convert(&b, real(1e20), basic(TYPE_int)), INT32_MAX);
    is_integer(build_convert(&b, real(-1e20), basic(TYPE_int64)), INT64_MIN);
    is_integer(build_convert(&b, real(-5), basic(TYPE_uint)), 0);
    is_integer(build_convert(&b, real(1e20), basic(TYPE_uint64)), -1);
    is_integer(build_convert(&b, real((double)NAN), basic(TYPE_int)), 0);
    is_integer(build_convert(&b, real((double)NAN), basic(TYPE_bool)), 1);
    is_integer(build_convert(&b, integer(-1), basic(TYPE_uint8)), 255);
    is_real(build_convert(&b, typed(TYPE_uint64, -1), basic(TYPE_float)), 18446744073709551616.0);
    /* Between two floats, just above the middle: through double it would fall on the middle, and then to
     * even. */
    int64_t above = (INT64_C(1) << 62) + (INT64_C(1) << 38) + 1;
    is_real(build_convert(&b, typed(TYPE_int64, above), basic(TYPE_float)), (double)(float)above);
    is_integer(build_bitcast(&b, real(1), basic(TYPE_uint)), 0x3f800000);
    is_real(build_bitcast(&b, typed(TYPE_uint, 0xc0000000), basic(TYPE_float)), -2);
    is_integer(build_bitcast(&b, ir_const_real(module, basic(TYPE_half), 1), basic(TYPE_uint16)), 0x3c00);
}

static void identities_hold_exactly(void **state) {
    (void)state;
    Val *x = value(basic(TYPE_float)), *i = value(basic(TYPE_int)), *c = value(basic(TYPE_bool));
    assert_ptr_equal(build_binary(&b, OP_mul, x, real(1)), x);
    assert_ptr_equal(build_binary(&b, OP_mul, real(1), x), x);
    assert_ptr_equal(build_binary(&b, OP_sub, x, real(0)), x);
    assert_ptr_equal(build_binary(&b, OP_add, x, real(-0.0)), x);
    assert_ptr_equal(build_unary(&b, OP_neg, build_unary(&b, OP_neg, x)), x);
    assert_ptr_equal(build_binary(&b, OP_add, i, integer(0)), i);
    assert_true(val_is_zero(build_binary(&b, OP_mul, i, integer(0))));
    assert_true(val_is_zero(build_binary(&b, OP_sub, i, i)));
    assert_ptr_equal(build_binary(&b, OP_and, i, integer(-1)), i);
    is_integer(build_binary(&b, OP_or, c, typed(TYPE_bool, 1)), 1);
    assert_ptr_equal(build_binary(&b, OP_eq, c, typed(TYPE_bool, 1)), c);
    assert_ptr_equal(build_select(&b, c, x, x), x);
    assert_ptr_equal(build_select(&b, typed(TYPE_bool, 0), real(1), x), x);
    assert_ptr_equal(build_select(&b, c, typed(TYPE_bool, 1), typed(TYPE_bool, 0)), c);
    assert_true(val_is_zero(build_binary(&b, OP_lt, x, x)));
    assert_true(val_is_one(build_binary(&b, OP_le, i, i)));
}

static void is_built(const Val *v, Op op) {
    assert_int_equal(v->kind, VAL_inst);
    assert_int_equal(v->inst->op, op);
}

static void inexact_identities_are_left_alone(void **state) {
    (void)state;
    Val *x = value(basic(TYPE_float)), *y = value(basic(TYPE_float));
    is_built(build_binary(&b, OP_add, x, real(0)), OP_add);
    is_built(build_binary(&b, OP_mul, x, real(0)), OP_mul);
    is_built(build_binary(&b, OP_sub, x, x), OP_sub);
    is_built(build_binary(&b, OP_div, x, x), OP_div);
    is_built(build_binary(&b, OP_eq, x, x), OP_eq);
    is_built(build_binary(&b, OP_sub, real(0), x), OP_sub);
    is_built(build_not(&b, build_binary(&b, OP_lt, x, y)), OP_not); /* a NaN is not less and not greater */
    is_built(build_convert(&b, build_convert(&b, value(basic(TYPE_int)), basic(TYPE_float)), basic(TYPE_int)),
             OP_convert);
}

static void rewriting_finds_the_simpler_form(void **state) {
    (void)state;
    Val *i = value(basic(TYPE_int)), *j = value(basic(TYPE_int)), *x = value(basic(TYPE_float)),
        *small = value(basic(TYPE_int8));
    Val *sum = build_binary(&b, OP_add, build_binary(&b, OP_sub, i, integer(5)), integer(2));
    is_built(sum, OP_add);
    assert_ptr_equal(sum->inst->args[0], i);
    is_integer(sum->inst->args[1], -3);
    assert_ptr_equal(build_binary(&b, OP_add, integer(3), sum), i);
    Val *not_less = build_not(&b, build_binary(&b, OP_lt, i, j));
    is_built(not_less, OP_le);
    assert_ptr_equal(not_less->inst->args[0], j);
    is_built(build_not(&b, build_binary(&b, OP_eq, x, x)), OP_ne);
    is_built(build_binary(&b, OP_add, x, build_unary(&b, OP_neg, x)), OP_sub);
    is_built(build_binary(&b, OP_mul, x, real(-1)), OP_neg);
    assert_ptr_equal(build_convert(&b, build_convert(&b, small, basic(TYPE_double)), basic(TYPE_int8)),
                     small);
    Val *wide = build_convert(&b, build_convert(&b, small, basic(TYPE_int)), basic(TYPE_float));
    assert_ptr_equal(wide->inst->args[0], small);
    b.no_fold = true;
    is_built(build_binary(&b, OP_mul, x, real(1)), OP_mul);
}

static void vectors_are_taken_apart(void **state) {
    (void)state;
    const Type *f3 = type_vector(&types, basic(TYPE_float), 3);
    Val *v = value(f3), *x = value(basic(TYPE_float)), *y = value(basic(TYPE_float)),
        *n = value(basic(TYPE_int));
    Val *lanes[] = {x, y, x}, *constants[] = {real(1), real(2), real(3)}, *same[] = {x, x, x};
    Val *made = build_vec(&b, f3, lanes), *known = build_vec(&b, f3, constants);
    assert_ptr_equal(build_extract_lane(&b, made, 1), y);
    assert_ptr_equal(build_extract_lane(&b, made, 7), x); /* the last */
    assert_ptr_equal(build_extract(&b, build_splat(&b, f3, x), n), x);
    assert_ptr_equal(build_extract_lane(&b, build_insert(&b, v, integer(2), x), 2), x);
    Val *through = build_extract_lane(&b, build_insert(&b, v, integer(2), x), 0);
    assert_ptr_equal(through->inst->args[0], v);
    Val *parts[] = {build_extract_lane(&b, v, 0), build_extract_lane(&b, v, 1), build_extract_lane(&b, v, 2)};
    assert_ptr_equal(build_vec(&b, f3, parts), v);
    Val *turned[] = {parts[2], parts[1], parts[0]}, *shuffled = build_vec(&b, f3, turned);
    is_built(shuffled, OP_shuffle);
    uint8_t back[] = {2, 1, 0};
    assert_ptr_equal(build_shuffle(&b, shuffled, back, 3), v);
    is_built(build_vec(&b, f3, same), OP_splat);
    Val *doubled = build_binary(&b, OP_add, known, known);
    is_built(doubled, OP_vec);
    is_real(doubled->inst->args[2], 6);
    Val *scaled = build_binary(&b, OP_mul, build_splat(&b, f3, x), build_splat(&b, f3, y));
    is_built(scaled, OP_splat);
    is_built(scaled->inst->args[0], OP_mul);
    assert_ptr_equal(build_binary(&b, OP_mul, v, build_splat(&b, f3, real(1))), v);
    assert_true(val_is_zero(build_splat(&b, f3, real(0))));
    is_built(build_splat(&b, f3, real(-0.0)), OP_splat);
}

/* ---- copies */

static void copies_refer_to_copies(void **state) {
    (void)state;
    assert_true(parse("func @f(%n: int, %c: bool) -> int {\n"
                      "  %r = loop #1 (%i: int = 0) {\n    %go = lt %i, %n\n    yield %go\n  } do {\n"
                      "    if %c {\n      break #1 %i\n    }\n    continue #1 %i\n  }\n  return %r\n}\n"));
    Func *original = module->funcs.at[0], *copy = clone_func(original, "f");
    assert_string_equal(copy->name->text, "f.1");
    char *expected = format_text(&arena, "%s", print_func(original)),
         *found = format_text(&arena, "%s", print_func(copy));
    assert_string_equal(strchr(expected, '('), strchr(found, '('));
    Inst *loop = copy->body->first;
    assert_ptr_equal(loop->regions[1]->last->target, loop);
    assert_ptr_equal(loop->func, copy);
    assert_null(ir_verify(&arena, copy));
    assert_int_equal(copy->nvals, original->nvals);
}

static void replaced_values_are_resolved(void **state) {
    (void)state;
    Val *x = value(basic(TYPE_float)), *y = value(basic(TYPE_float));
    b.no_fold = true;
    Val *first = build_unary(&b, OP_neg, x), *second = build_unary(&b, OP_neg, first);
    first->forward = y;
    inst_remove(first->inst);
    ir_resolve_func(func);
    assert_ptr_equal(second->inst->args[0], y);
    assert_ptr_equal(build_unary(&b, OP_neg, first)->inst->args[0], y);
}

/* ---- the verifier */

static void finds(const char *text, const char *expected) {
    tear_down(NULL), set_up(NULL);
    if (!parse(text)) fail_msg("%s: %s", text, message);
    const char *wrong = NULL;
    for (int i = 0; i < module->funcs.count && !wrong; i++) wrong = ir_verify(&arena, module->funcs.at[i]);
    if (!expected) {
        if (wrong) fail_msg("%s: %s", text, wrong);
    } else if (!wrong || !strstr(wrong, expected)) fail_msg("%s: found: %s", text, wrong ? wrong : "nothing");
}

static void wrong_types_are_found(void **state) {
    (void)state;
    finds("func @f(%x: float, %i: int) {\n  %a = add %x, %i\n  return\n}",
          "an operand has type int, not float");
    finds("func @f(%x: float) {\n  %a: int = neg %x\n  return\n}", "the result has type int, not float");
    finds("func @f(%x: int) {\n  %a = sqrt %x\n  return\n}", "operands must be floats");
    finds("func @f(%x: float) {\n  %a = and %x, %x\n  return\n}", "integers or bool");
    finds("func @f(%x: float) {\n  %a: int2 = convert %x\n  return\n}", "keeps the shape");
    finds("func @f(%x: float) {\n  %a: double = bitcast %x\n  return\n}", "the sizes differ");
    finds("func @f(%x: int) {\n  %a = select %x, 1, 2\n  return\n}", "the condition must be bool");
    finds("func @f(%x: int) {\n  if %x {}\n  return\n}", "the condition must be bool");
    finds("func @f(%x: float3) {\n  %a: float4 = vec 1.0, 2.0\n  return\n}", "one operand per lane");
    finds("func @f(%x: float3) {\n  %a = extract %x, 1.0\n  return\n}", "the index must be an integer");
    finds("func @f(%x: float2) {\n  %a = shuffle %x, xyz\n  return\n}", "lane 2 does not exist");
    finds("func @f(%x: float) {\n  %a: float = load %x\n  return\n}", "operand 1 must be an address");
    finds("func @f() {\n  %v = var float[2]\n  %a: float[2] = load %v\n  return\n}", "has no value type");
    finds("func @f() {\n  %v = var float\n  store %v, 1\n  return\n}", "the value has type int, not float");
    finds("func @f() {\n  %v = var int\n  %e: int* = elem %v, 0\n  return\n}", "array or vector");
    finds("struct S { a: int }\nfunc @f() {\n  %v = var S\n  %e: int* = field %v, 3\n  return\n}",
          "there is no field 3");
    finds("func @f(%b: RWByteAddressBuffer) {\n  %e: float* local = buffer_bytes %b, 0\n  return\n}",
          "leads to other memory");
    finds("func @f() {\n  %v = var int*\n  %e: int* shared = load %v\n  return\n}", "has type");
    finds("func @f(%b: RWByteAddressBuffer) {\n  %e: float* = buffer_elem %b, 0\n  return\n}", "no elements");
    finds("func @f() {\n  %t = tape_open\n  %a: float = tape_load %t, 1\n  return\n}",
          "has type int, not int64_t");
    finds("func @f(%b: StructuredBuffer<float>, %i: int4) {\n  %e = buffer_elem %b, %i\n"
          "  %a = load %e\n  return\n}",
          "only gather takes several addresses");
    finds("func @f(%b: StructuredBuffer<float>, %i: int4, %m: bool2) {\n  %e = buffer_elem %b, %i\n"
          "  %a = gather %e, %m\n  return\n}",
          "an address for each lane is needed");
    finds("func @f(%m: bool4, %x: float4) {\n  %v = var int4\n  scatter %v, %x, %m\n  return\n}",
          "what is at the address has type int, not float");
    finds("func @f() {\n  %t = thread_id 7\n  return\n}", "there is no thread id 7");
    finds("func @g(%x: float)\nfunc @f() {\n  call @g(1)\n  return\n}",
          "an argument has type int, not float");
    finds("func @g(%x: float)\nfunc @f() {\n  call @g()\n  return\n}",
          "0 operands for the 1 parameters of g");
    finds("func @f() -> int {\n  return 1.0\n}", "an operand has type float, not int");
    finds("func @f() {\n  %a = if true -> int {\n    yield 1.0\n  } else {\n    yield 1\n  }\n  return\n}",
          "not int");
    finds("func @f(%x: float) {\n  %i = loop (%a: int = %x) {\n    yield true\n  } do {\n    yield 1\n  }\n  "
          "return\n}",
          "an operand has type float, not int");
    finds("func @f() {\n  loop {\n    yield 1\n  } do {}\n  return\n}", "a condition yields one bool");
}

static void wrong_structure_is_found(void **state) {
    (void)state;
    finds("func @f() {\n  return\n  return\n}", "something follows the end");
    finds("func @f(%c: bool) -> int {\n  if %c {\n    %a = add 1, 2\n  }\n  return %a\n}",
          "is not defined here");
    finds("func @f(%n: int) {\n  %r = loop (%i: int = 0) {\n    %c = lt %i, %n\n    yield %c\n  } do {\n"
          "    %d = not %c\n    yield %i\n  }\n  return\n}",
          "is not defined here"); /* values of the condition are not seen in the body */
    finds("func @f() {\n  if true {}\n}", "a function ends with return");
    finds("func @f() {\n  block #1 {}\n  break #1\n}", "not around this instruction");
    finds("func @f() {\n  block #1 {\n    continue #1\n  }\n  return\n}", "wrong kind");
    finds("func @f() {\n  loop #1 {\n    break #1\n  } do {}\n  return\n}",
          "only the body of a loop can leave it");
    finds("func @f() -> int normal {\n  if true {\n    return 1\n  }\n  return 2\n}",
          "return inside a region");
    finds("func @f() normal {\n  block {}\n  return\n}", "block in a function of normal form");
    finds("func @f() normal {\n  loop #1 {\n    yield true\n  } do {\n    break #1\n  }\n  return\n}",
          "break in a function");
    finds("func @f() normal {\n  loop {\n    yield true\n  } do {} step {}\n  return\n}",
          "wrong number of regions");
    finds("func @f(%x: bool) {\n  switch %x case 1 {} default {}\n  return\n}", NULL);
    finds(operations, NULL);
}

static Func *simple_func(void) {
    finds("func @f(%x: float) -> float {\n  %y = neg %x\n  %z = neg %y\n  return %z\n}", NULL);
    return module->funcs.at[0];
}

static void broken_links_are_found(void **state) {
    (void)state;
    Func *f = simple_func();
    f->body->first->results[0]->forward = f->body->params[0];
    assert_non_null(strstr(ir_verify(&arena, f), "was replaced"));
    f = simple_func();
    f->body->first->next->results[0]->id = f->body->first->results[0]->id;
    assert_non_null(strstr(ir_verify(&arena, f), "two values have the id"));
    f = simple_func();
    f->body->first->next->prev = NULL;
    assert_non_null(strstr(ir_verify(&arena, f), "list of instructions is broken"));
    f = simple_func();
    f->body->first->results[0]->index = 1;
    assert_non_null(strstr(ir_verify(&arena, f), "does not know its place"));
    f = simple_func();
    f->body->params[0]->type = basic(TYPE_int);
    assert_non_null(strstr(ir_verify(&arena, f), "a parameter has type int, not float"));
    f = simple_func();
    inst_remove(f->body->last);
    assert_non_null(strstr(ir_verify(&arena, f), "the region does not end"));
    f = simple_func();
    f->body->first->args[0] = NULL;
    assert_non_null(strstr(ir_verify(&arena, f), "an operand is missing"));
}

static void the_message_shows_the_instruction(void **state) {
    (void)state;
    Func *f = simple_func();
    f->body->first->next->args[0] = ir_const_int(module, basic(TYPE_int), 3);
    assert_string_equal(ir_verify(&arena, f),
                        "function f: the result has type float, not int\n  in: %z: float = neg 3");
}

int main(void) {
#define TEST(name)  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define BUILD(name) cmocka_unit_test_setup_teardown(name, set_up_builder, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(text_reads_back_as_it_was),
        TEST(attributes_read_back_as_they_were),
        TEST(every_operation_is_in_the_text),
        TEST(names_are_kept_apart),
        TEST(records_of_one_name_are_told_apart),
        TEST(errors_in_text_are_reported),
        BUILD(constants_are_wrapped_and_rounded),
        BUILD(floats_fold_as_the_machine_computes),
        BUILD(integers_fold_and_wrap),
        BUILD(conversions_fold),
        BUILD(identities_hold_exactly),
        BUILD(inexact_identities_are_left_alone),
        BUILD(rewriting_finds_the_simpler_form),
        BUILD(vectors_are_taken_apart),
        TEST(copies_refer_to_copies),
        BUILD(replaced_values_are_resolved),
        TEST(wrong_types_are_found),
        TEST(wrong_structure_is_found),
        TEST(broken_links_are_found),
        TEST(the_message_shows_the_instruction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
