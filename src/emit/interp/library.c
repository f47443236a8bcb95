/* Elementary functions of float and half: the C library's for float, which machine code calls too, so that
 * results are the same to the last bit. (What is folded, and double, is computed in double by
 * ir/compute.c.) */
#include "emit/interp/code.h"
#include <math.h>

typedef struct Function {
    uint16_t op;
    float (*of_one)(float);
    float (*of_two)(float, float);
} Function;

static const Function functions[] = {
    {OP_sin, sinf, NULL},     {OP_cos, cosf, NULL},       {OP_tan, tanf, NULL},     {OP_asin, asinf, NULL},
    {OP_acos, acosf, NULL},   {OP_atan, atanf, NULL},     {OP_atan2, NULL, atan2f}, {OP_sinh, sinhf, NULL},
    {OP_cosh, coshf, NULL},   {OP_tanh, tanhf, NULL},     {OP_asinh, asinhf, NULL}, {OP_acosh, acoshf, NULL},
    {OP_atanh, atanhf, NULL}, {OP_exp, expf, NULL},       {OP_exp2, exp2f, NULL},   {OP_log, logf, NULL},
    {OP_log2, log2f, NULL},   {OP_log10, log10f, NULL},   {OP_pow, NULL, powf},     {OP_expm1, expm1f, NULL},
    {OP_log1p, log1pf, NULL}, {OP_cbrt, cbrtf, NULL},     {OP_hypot, NULL, hypotf}, {OP_erf, erff, NULL},
    {OP_erfc, erfcf, NULL},   {OP_lgamma, lgammaf, NULL},
};

static float value(const Function *function, float a, float b) {
    return function->of_one ? function->of_one(a) : function->of_two(a, b);
}

static const Step *on_float(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++)
        r[s->to + i].single = value(s->data, r[s->a + i].single, r[s->b + i].single);
    return s + 1;
}

static const Step *on_half(Slot *r, const Step *s) {
    for (uint32_t i = 0; i < (uint32_t)s->lanes; i++) {
        float a = half_to_float((uint16_t)r[s->a + i].bits), b = half_to_float((uint16_t)r[s->b + i].bits);
        r[s->to + i].bits = half_from_float(value(s->data, a, b));
    }
    return s + 1;
}

bool interp_library(Translator *t, const Inst *inst) {
    const Type *type = inst->results ? inst->results[0]->type : NULL;
    /* What is counted is compared with folded constants. */
    if (t->program->counts || !op_has(inst->op, OP_ELEMENTWISE) || !type) return false;
    TypeKind kind = type_element(type)->kind;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (functions[i].op != inst->op || (kind != TYPE_float && kind != TYPE_half)) continue;
        uint32_t a = interp_use(t, inst, 0), b = inst->nargs > 1 ? interp_use(t, inst, 1) : a;
        Step *step = interp_step(t, kind == TYPE_half ? on_half : on_float, interp_result(t, inst), a, b);
        step->data = &functions[i];
        step->lanes = type_count(type);
        return true;
    }
    return false;
}
