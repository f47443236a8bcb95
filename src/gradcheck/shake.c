/* Copies of functions whose every rounding is a random one: how far the results spread is how far they can be
 * trusted.
 *
 * The differences of a function are as good as its values. A result may be exact to the last digit and say
 * nothing nevertheless: in log(1 + exp(x)) for x = -40 the exponential is lost in the sum, and the result is
 * 0 wherever one looks. What happens to intermediate values cannot be seen from outside. So, in a copy, what
 * every operation gives is changed at random by as much as its rounding may have been, in the precision it
 * was made in (what goes to memory in single precision is rounded there): after a few runs at the same point
 * one knows what rounding does to the results, amplified or not on the way.
 *
 * The same tells what rounding does to a derivative in a narrow type: its copy in double is shaken by the
 * unit of that type, and overflows where that would.
 *
 * A state of the random numbers is among the counts of a HoldState. */
#include "gradcheck/copy.h"

#include <math.h>

typedef struct Shaker {
    Module *m;
    Global *state;
    const ShakeUnit *as; /* NULL: by their type */
    Func *shake;         /* made when first needed */
} Shaker;

static const Type *basic(const Shaker *s, TypeKind kind) { return type_basic(s->m->types, kind); }
static Val *int64(const Shaker *s, int64_t value) { return ir_const_int(s->m, basic(s, TYPE_int64), value); }
static Val *real(const Shaker *s, double value) { return ir_const_real(s->m, basic(s, TYPE_double), value); }

/* The next random number between -1 and 1. */
static Val *draw(const Shaker *s, Builder *b) {
    Val *counts = build_load(b, build_field(b, build_global(b, s->state), 1));
    Val *address = build_offset(b, counts, int64(s, HOLD_random));
    Val *word = build_binary(b, OP_mul, build_load(b, address), int64(s, 6364136223846793005));
    word = build_binary(b, OP_add, word, int64(s, 1442695040888963407));
    build_store(b, address, word);
    Val *top = build_convert(b, build_binary(b, OP_shr, word, int64(s, 33)), basic(s, TYPE_double));
    return build_binary(b, OP_mul, top, real(s, 0x1p-30));
}

static Val *as_narrow(Shaker *s, Builder *b, Val *x) {
    x = build_binary(b, OP_add, x, build_binary(b, OP_mul, draw(s, b), real(s, s->as->least)));
    Val *size = build_unary(b, OP_abs, x);
    Val *most = real(s, s->as->most);
    Val *fits = build_binary(b, OP_le, size, most);
    return build_select(b, fits, x, build_binary(b, OP_mul, x, real(s, (double)INFINITY)));
}

/* shake(x, unit): x, changed by no more than that fraction of it; infinite, where a narrow type has no such
 * number. */
static Func *shake_function(Shaker *s) {
    if (s->shake) return s->shake;
    const Type *type = basic(s, TYPE_double);
    Param params[] = {{.name = name_from(s->m->names, "x"), .type = type},
                      {.name = name_from(s->m->names, "unit"), .type = type}};
    s->shake = func_new(s->m, "shake");
    func_set_params(s->shake, params, 2);
    func_set_results(s->shake, &type, 1);
    s->shake->flags |= FUNC_NOINLINE;
    func_begin(s->shake);
    Builder b = build_at_end(s->shake->body);
    Val *x = s->shake->body->params[0], *unit = s->shake->body->params[1];
    Val *share = build_binary(&b, OP_mul, draw(s, &b), unit);
    Val *result = build_binary(&b, OP_add, x, build_binary(&b, OP_mul, x, share));
    if (s->as) result = as_narrow(s, &b, result);
    build_return(&b, &result, 1);
    return s->shake;
}

static double unit_of(const Shaker *s, const Type *type) {
    if (s->as) return s->as->unit;
    return type->kind == TYPE_half ? 0x1p-10 : type->kind == TYPE_float ? 0x1p-23 : 0x1p-52;
}

static Val *shake_scalar(Shaker *s, Builder *b, Val *x) {
    Val *args[] = {build_convert(b, x, basic(s, TYPE_double)), real(s, unit_of(s, x->type))};
    return build_convert(b, build_call(b, shake_function(s), args, 2)->results[0], x->type);
}

static Val *shaken(Shaker *s, Builder *b, Val *x) {
    if (type_is_scalar(x->type)) return shake_scalar(s, b, x);
    int count = type_count(x->type);
    Val **lanes = arena_array(s->m->arena, Val *, count);
    for (int i = 0; i < count; i++) lanes[i] = shake_scalar(s, b, build_extract_lane(b, x, i));
    return build_vec(b, x->type, lanes);
}

static const Type *element(const Type *type) { return type->kind == TYPE_vector ? type->args[0] : type; }

static bool rounds(const Inst *inst) {
    if (inst->nresults != 1 || !op_has(inst->op, OP_ELEMENTWISE)) return false;
    const Type *to = element(inst->results[0]->type), *from = element(ir_resolve(inst->args[0])->type);
    if (!type_is_float(to)) return false;
    switch ((Op)inst->op) { /* these are exact */
    case OP_neg:
    case OP_min:
    case OP_max:
    case OP_abs:
    case OP_detach:
    case OP_copysign:
    case OP_floor:
    case OP_ceil:
    case OP_round:
    case OP_trunc:
    case OP_ldexp: return false;
    case OP_convert: return type_is_float(from) && from->kind > to->kind;
    default: return true;
    }
}

/* The instruction is made anew, and the old result is the shaken one. */
static void shake_inst(Shaker *s, Inst *inst) {
    Builder b = build_before(inst);
    Val *old = inst->results[0];
    Inst *again = build_inst(&b, (Op)inst->op, inst->args, inst->nargs, 1, 0);
    again->results[0]->type = old->type;
    old->forward = shaken(s, &b, again->results[0]);
    inst_remove(inst);
}

static void shake_region(Shaker *s, Region *region) {
    for (Inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        for (int i = 0; i < inst->nregions; i++) shake_region(s, inst->regions[i]);
        if (rounds(inst)) shake_inst(s, inst);
    }
}

void gradcheck_shake(Module *module, Global *state, const ShakeUnit *as, Func *const *funcs, int count) {
    Shaker s = {.m = module, .state = state, .as = as};
    for (int i = 0; i < count; i++) {
        if (funcs[i]->body) shake_region(&s, funcs[i]->body);
        funcs[i]->flags &= ~(uint32_t)(FUNC_PURE | FUNC_HARMLESS);
        ir_resolve_func(funcs[i]);
    }
}
