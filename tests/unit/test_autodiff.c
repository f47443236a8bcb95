/* Partial derivatives in ops.def: each against differences of the value in the same row, in both modes. */
#include "autodiff/ad.h"

#include <math.h>

#include "ir_module.h"

/* ---- the rows */

#define NONE 0
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning)                 \
    static double value_of_##name(double a, double b, double c) {                                            \
        (void)a, (void)b, (void)c;                                                                           \
        return float_value;                                                                                  \
    }
#include "ir/ops.def"
#undef OP
#undef NONE

typedef struct Row {
    const char *name;
    int partials;
    double (*value)(double a, double b, double c);
} Row;

#define P1(a)       1
#define P2(a, b)    2
#define P3(a, b, c) 3
#define QUOTIENT    2
#define MULTIPLIED  2
#define SCALED      2
#define NO_PARTIALS 0
#define OP(name, args, results, properties, cost, float_value, int_value, partials, meaning)                 \
    {#name, partials, value_of_##name},
static const Row rows[OP_COUNT] = {
#include "ir/ops.def"
};
#undef OP
#undef NO_PARTIALS
#undef QUOTIENT
#undef MULTIPLIED
#undef SCALED
#undef P3
#undef P2
#undef P1

/* ---- a module */

static void leave_alone(void *user, Func *func) { (void)user, (void)func; }
static bool find_nothing(void *user, Func *func) { return (void)user, (void)func, false; }
static void inline_nothing(void *user, Func *func,
                           bool (*may)(void *user, const Func *callee, const Inst *call), void *may_user) {
    (void)user, (void)func, (void)may, (void)may_user;
}

static void mark_normal(void *user, Func *func) {
    (void)user;
    func->flags |= FUNC_NORMAL;
}

static void leave_unmerged(void *user, Func *func, const InstVec *calls, const ValVec *named) {
    (void)user, (void)func, (void)calls, (void)named;
}
static void leave_whole(void *user, Func *func, bool params) { (void)user, (void)func, (void)params; }

static Ad new_ad(void) {
    return (Ad){.m = module,
                .arena = &arena,
                .config = {.module = module,
                           .inline_calls = inline_nothing,
                           .lower_exits = mark_normal,
                           .clean = leave_alone,
                           .split = leave_whole,
                           .clean_flat = leave_alone,
                           .straighten = find_nothing,
                           .merge = leave_unmerged}};
}

/* double f(a, b, c) { return op(a, b, c) } with as many parameters as there are partials */
static Func *make_function(const Row *row) {
    static const char *const params[] = {"", "%a: double diff", "%a: double diff, %b: double diff",
                                         "%a: double diff, %b: double diff, %c: double diff"};
    static const char *const args[] = {"", "%a", "%a, %b", "%a, %b, %c"};
    const char *text = format_text(
        &arena, "func @f_%s(%s) -> double fwd bwd result_diff {\n  %%y = %s %s\n  return %%y\n}\n", row->name,
        params[row->partials], row->name, args[row->partials]);
    assert_true(ir_parse(module, source_add(&sources, name_from(&names, row->name), str_of(text))));
    return vec_last(&module->funcs);
}

/* ---- running straight code, by folding */

static void run(const Func *func, const double *args, double *results) {
    Val **now = arena_array(&arena, Val *, func->nvals + 1);
    const Type *number = type_basic(&types, TYPE_double);
    for (int i = 0; i < func->nparams; i++)
        now[func->body->params[i]->id] = ir_const_real(module, number, args[i]);
    for (Inst *inst = func->body->first; inst; inst = inst->next) {
        Val *operands[3];
        for (int i = 0; i < inst->nargs; i++) {
            Val *v = ir_resolve(inst->args[i]);
            Val *constant = val_is_const(v) ? v : now[v->id];
            if (inst->op == OP_return) results[i] = constant->real;
            else operands[i] = constant;
        }
        if (inst->op == OP_return) return;
        Val *y = ir_fold(module, (Op)inst->op, inst->results[0]->type, operands, inst->nargs);
        assert_non_null(y);
        now[inst->results[0]->id] = y;
    }
}

static double numeric(const Row *row, const double *at, int by) {
    double h = 1e-4, near[2][3], far[2][3];
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++) {
            double step = i != by ? 0 : side ? h : -h;
            near[side][i] = at[i] + step;
            far[side][i] = at[i] + 2 * step;
        }
    double inner =
        row->value(near[1][0], near[1][1], near[1][2]) - row->value(near[0][0], near[0][1], near[0][2]);
    double outer = row->value(far[1][0], far[1][1], far[1][2]) - row->value(far[0][0], far[0][1], far[0][2]);
    return (8 * inner - outer) / (12 * h);
}

static void check_near(const Row *row, const char *mode, int by, double expected, double found) {
    if (fabs(expected - found) > 1e-8 * fmax(1, fabs(expected)))
        fail_msg("%s, %s, operand %d: %.12g, differences say %.12g", row->name, mode, by + 1, found,
                 expected);
}

/* ---- tests */

static const double samples[][3] = {
    {1.3, 2.7, 0.4}, {-1.3, 2.7, -5}, {6.1, -0.7, 2}, {-4.2, -1.6, 0}, {0.3, 5.9, 1}, {25.5, 3.1, -0.2},
};

static void check_forward(const Row *row, const Func *fwd) {
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++)
        for (int by = 0; by < row->partials; by++) {
            double args[6], results[2];
            for (int i = 0; i < row->partials; i++) {
                args[2 * i] = samples[s][i];
                args[2 * i + 1] = i == by;
            }
            run(fwd, args, results);
            assert_true(results[0] == row->value(samples[s][0], samples[s][1], samples[s][2]));
            check_near(row, "forward", by, numeric(row, samples[s], by), results[1]);
        }
}

static void check_reverse(const Row *row, const Reverse *r) {
    for (size_t s = 0; s < sizeof samples / sizeof samples[0]; s++) {
        double kept[16], args[16], adjoints[3];
        run(r->pri.func, samples[s], kept);
        for (int i = 0; i < r->prop.params.count; i++) {
            const Place *place = &r->prop.params.at[i];
            args[i] = place->role == AS_primal ? samples[s][place->leaf]
                      : place->role == AS_slot ? kept[1 + place->leaf]
                                               : 1; /* seed */
        }
        run(r->prop.func, args, adjoints);
        for (int by = 0; by < row->partials; by++)
            check_near(row, "reverse", by, numeric(row, samples[s], by), adjoints[by]);
    }
}

static void partials_match_differences(void **state) {
    (void)state;
    Ad ad = new_ad();
    bool stable[8] = {0};
    int checked = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        const Row *row = &rows[op];
        if (!row->partials || op == OP_ldexp)
            continue; /* whose power is an integer: tests/diff/nested/library-values.slang */
        AdFunc *f = ad_func(&ad, make_function(row));
        check_forward(row, ad_fwd(&ad, f));
        check_reverse(row, ad_reverse(&ad, f, (Terms){.stable = stable, .firm = ALL_FIRM, .steady = true}));
        checked++;
    }
    assert_true(checked >= 7); /* add sub mul div rem neg fma, at least */
}

static void every_operand_has_a_partial(void **state) {
    (void)state;
    for (int op = 0; op < OP_COUNT; op++)
        if (rows[op].partials) assert_int_equal(rows[op].partials, op_info[op].nargs - (op == OP_ldexp));
}

/* What does not move is not computed with: no differential instruction is made for it. */
static void nothing_for_zero(void **state) {
    (void)state;
    Ad ad = new_ad();
    const char *text = "func @g(%a: double diff, %b: double) -> double fwd bwd result_diff {\n"
                       "  %x = div %b, 3.0:double\n  %y = mul %x, %b\n  %z = add %y, %a\n  return %z\n}\n";
    assert_true(ir_parse(module, source_add(&sources, name_from(&names, "g"), str_of(text))));
    const Func *fwd = ad_fwd(&ad, ad_func(&ad, vec_last(&module->funcs)));
    int count = 0;
    for (const Inst *inst = fwd->body->first; inst; inst = inst->next) count++;
    assert_int_equal(count, 4); /* the three of the function, whose differential is that of a, and return */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(partials_match_differences, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_operand_has_a_partial, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_for_zero, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
